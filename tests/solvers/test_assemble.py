import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from halfseen.solvers.correlations import assemble


@given(st.integers(0, 2**32 - 1), st.integers(2, 8))
def test_projection_is_positive_definite_and_never_increases_the_error(seed, d):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d + 2))
    truth = A @ A.T
    scale = np.sqrt(np.diag(truth))
    truth = truth / np.outer(scale, scale)
    floor = min(1e-3, 0.5 * np.linalg.eigvalsh(truth)[0])
    i, j = np.triu_indices(d, 1)
    rho = np.clip(truth[i, j] + 0.5 * rng.normal(size=i.size), -1, 1)
    covariance, before, projected = assemble(np.ones(d), rho, floor)
    assert np.linalg.eigvalsh(covariance)[0] >= floor * (1 - 1e-9)
    assert np.linalg.norm(covariance - truth) <= np.linalg.norm(before - truth) + 1e-12
    assert projected == (np.linalg.eigvalsh(before)[0] < floor)
    if not projected:
        np.testing.assert_array_equal(covariance, before)


def test_units_do_not_matter():
    rho = np.array([0.9, -0.9, 0.9])
    scale = np.array([1e-3, 1.0, 1e4])
    plain, _, _ = assemble(np.ones(3), rho)
    scaled, _, projected = assemble(scale, rho)
    assert projected
    np.testing.assert_allclose(scaled, plain * np.outer(scale, scale), rtol=1e-13)
