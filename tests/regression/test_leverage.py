"""Robust errors of few rows and few clusters: those of estimates that have not seen them."""

import numpy as np
import pytest

import halfseen as hs


def _table(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Y = X @ rng.normal(size=(2, 2)) + np.exp(0.5 * X[:, :1]) * rng.normal(size=(n, 2))
    return X, Y, np.column_stack([np.ones(n), X])


def _least_squares(W, y):
    return np.linalg.lstsq(W, y)[0]


def test_rows_with_nothing_hidden_have_hc3():
    """MacKinnon and White (1985), of each outcome."""
    X, Y, W = _table()
    fit = hs.regress(Y, X, robust=True)
    inverse = np.linalg.inv(W.T @ W)
    leverage = np.einsum("ij,jk,ik->i", W, inverse, W)
    for j, y in enumerate(Y.T):
        e = (y - W @ _least_squares(W, y)) / (1.0 - leverage)
        ref = inverse @ (W.T * e**2) @ W @ inverse
        np.testing.assert_allclose(fit.standard_errors.weights[j], np.sqrt(np.diag(ref)), rtol=1e-6)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_clusters_with_nothing_hidden_have_the_jackknife(size):
    """Clusters with fewer and with more rows than there are parameters."""
    X, Y, W = _table(120)
    site = np.arange(120) // size
    fit = hs.regress(Y, X, cluster=site)
    count = 120 // size
    for j, y in enumerate(Y.T):
        whole = _least_squares(W, y)
        left = [_least_squares(W[site != g], y[site != g]) - whole for g in range(count)]
        ref = (count - 1.0) / count * np.sum(np.square(left), axis=0)
        np.testing.assert_allclose(fit.standard_errors.weights[j], np.sqrt(ref), rtol=1e-6)


def test_a_censored_outcome_is_near_the_jackknife():
    """Fits without each cluster: one step of Newton's is off by the square of how far they move.

    Moves are some 1/√20 = 0.2 standard errors, and sums of their squares err by some 0.2² of themselves.
    """
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(20), 10)
    x = rng.normal(size=20)[site]
    y = 0.5 + x + 0.7 * rng.normal(size=20)[site] + rng.normal(size=200)
    y = np.where(y >= 0.0, y, np.nan)
    rule = hs.DetectionLimits(lower=0.0)
    fit = hs.regress(y, x, rule, cluster=site, random_state=0)
    options = {"standard_errors": False, "random_state": 0}
    left = [hs.regress(y[site != g], x[site != g], rule, **options).vector for g in range(20)]
    ref = np.sqrt(19 / 20 * np.sum(np.square(left - fit.vector), axis=0))
    np.testing.assert_allclose(fit.standard_errors.vector, ref, rtol=0.06)


def test_what_one_cluster_alone_tells_stays_what_it_is():
    """Without its rows there is no coefficient of a site: its scores have no part in that direction."""
    rng = np.random.default_rng(2)
    site = np.repeat(np.arange(12), 8)
    x = rng.normal(size=96)
    data = {"x": x, "own": (site == 3).astype(float), "site": site, "y": x + rng.normal(size=96)}
    fit = hs.regress("y ~ x + own", data, cluster="site")
    assert np.isfinite(fit.covariance).all()
    assert (fit.standard_errors.weights[0, :2] > 0.03).all()
