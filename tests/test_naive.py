"""Oracles that are not obvious enough to be believed at sight, against closed forms."""

import numpy as np
import pytest

from tests import naive


@pytest.fixture
def blanks(three, rng):
    """A table with a fifth of its cells missing at random, no row without any."""
    X = three.sample(120, rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def test_plain_em_ends_where_the_likelihood_is_flat(blanks):
    mean, covariance = naive.plain_em(blanks)
    here = naive.log_likelihood_at_random(blanks, mean, covariance)
    L, h = np.linalg.cholesky(covariance), 1e-4
    turns = [np.outer(L[:, i], L[:, j]) for i in range(3) for j in range(i + 1)]
    moves = [(step, 0.0) for step in L.T] + [(0.0, turn + turn.T) for turn in turns]
    for step, turn in moves:
        ahead, behind = (
            naive.log_likelihood_at_random(blanks, mean + w * step, covariance + w * turn)
            for w in (h, -h)
        )
        # Rounding of differences, 1e-13 / h, and their third derivative, 1000 h².
        assert abs(ahead - behind) / (2.0 * h) < 1e-4
        assert max(ahead, behind) < here


def test_plain_em_of_complete_rows_is_their_moments(three, rng):
    X = three.sample(50, rng)
    mean, covariance = naive.plain_em(X)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(covariance, np.cov(X.T, bias=True), rtol=1e-12)


def test_information_at_random_of_complete_rows_is_known(three, rng):
    """At the moments it is n Σ⁻¹ for the mean and n (Σ⁻¹ ⊗ Σ⁻¹) / 2 for the covariance."""
    X = three.sample(60, rng)
    mean, covariance = X.mean(axis=0), np.cov(X.T, bias=True)
    T = np.linalg.inv(covariance)
    ref = np.zeros((9, 9))
    ref[:3, :3] = 60 * T
    basis = []
    for i, j in zip(*np.tril_indices(3), strict=True):
        E = np.zeros((3, 3))
        E[i, j] = E[j, i] = 1.0
        basis.append(E)
    ref[3:, 3:] = [[30 * np.trace(T @ A @ T @ B) for B in basis] for A in basis]
    comp = naive.observed_information_at_random(X, mean, covariance)
    scale = np.sqrt(np.outer(np.diag(ref), np.diag(ref)))
    assert np.abs((comp - ref) / scale).max() < 1e-5


def test_information_at_random_does_not_depend_on_its_width(blanks):
    mean, covariance = naive.plain_em(blanks)
    wide, narrow = (
        naive.observed_information_at_random(blanks, mean, covariance, h) for h in (0.02, 0.01)
    )
    scale = np.sqrt(np.outer(np.diag(narrow), np.diag(narrow)))
    assert np.abs((wide - narrow) / scale).max() < 1e-5
