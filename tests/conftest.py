import numpy as np
import pytest

import halfseen as hs


@pytest.fixture
def rng():
    return np.random.default_rng(20240501)


@pytest.fixture(scope="session")
def three():
    """A Gaussian of three correlated columns with different scales."""
    return hs.Gaussian([1.0, -2.0, 10.0], [[1.0, 0.8, -1.0], [0.8, 4.0, 1.5], [-1.0, 1.5, 9.0]])
