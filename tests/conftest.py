import signal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import halfseen as hs

# A shell lets what it starts in the background ignore SIGINT; tests of interrupts send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No property is judged by a clock: compiling, or a busy machine, would break it.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture
def rng():
    return np.random.default_rng(20240501)


@pytest.fixture(scope="session")
def three():
    """A Gaussian of three correlated columns with different scales."""
    return hs.Gaussian([1.0, -2.0, 10.0], [[1.0, 0.8, -1.0], [0.8, 4.0, 1.5], [-1.0, 1.5, 9.0]])
