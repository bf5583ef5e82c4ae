"""Leaps between pieces: they leave the wanted distribution as it is, and reach all of it."""

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.missingness.holes import Scan
from halfseen.solvers.full_information.completion import Completion


def _corners(covariance, mean, low, high):
    """Masses of the four corners {below low, above high}², by the bivariate normal distribution."""
    law = stats.multivariate_normal(mean, covariance)
    reach = 12.0
    ends = [(-reach, low), (high, reach)]

    def mass(a, b):
        return (
            law.cdf([a[1], b[1]]) - law.cdf([a[0], b[1]]) - law.cdf([a[1], b[0]]) + law.cdf([a[0], b[0]])
        )  # fmt: skip

    table = np.array([[mass(a, b) for b in ends] for a in ends])
    return table / table.sum()


@pytest.mark.parametrize("rho", [0.5, 0.95, -0.8])
def test_every_corner_is_reached_from_the_wrong_one(rho):
    n, mean, low, high = 4000, np.array([0.4, 0.1]), -1.2, 1.0
    covariance = np.array([[1.0, rho], [rho, 1.0]])
    rule = hs.DetectionLimits(lower=low, upper=high)
    X = np.full((n, 2), np.nan)
    holes = rule.holes(X, Scan(np.zeros(2), np.ones(2), np.full(2, 40.0)))
    # All rows begin in the corner below both limits.
    Y = np.full((n, 2), low - 0.5)
    rows = Completion(Y, holes, seed=1)
    for _ in range(40):
        rows.sweep(mean, np.linalg.inv(covariance))
    up = high <= Y
    assert (up | (low >= Y)).all()
    found = np.array([[np.mean((up[:, 0] == a) & (up[:, 1] == b)) for b in (0, 1)] for a in (0, 1)])
    expected = _corners(covariance, mean, low, high)
    # Rows are independent: binomial errors, and five of them.
    assert (np.abs(found - expected) < 5 * np.sqrt(expected / n) + 1e-3).all()


def test_a_distribution_that_is_right_stays_so():
    """Three cells, started from exact draws: moments after leaps are those before."""
    rng = np.random.default_rng(2)
    covariance = np.array([[1.0, 0.6, 0.3], [0.6, 1.0, 0.5], [0.3, 0.5, 1.0]])
    gaussian = hs.Gaussian([0.2, -0.1, 0.3], covariance)
    rule = hs.DetectionLimits(lower=-0.8, upper=0.7)
    draws = gaussian.sample(200_000, rng)
    exact = draws[~rule.seen(draws).any(axis=1)]
    assert len(exact) > 15_000
    holes = rule.holes(
        np.full(exact.shape, np.nan), Scan(np.zeros(3), np.ones(3), np.full(3, 40.0))
    )
    Y = exact.copy()
    rows = Completion(Y, holes, seed=3)
    for _ in range(5):
        rows.sweep(gaussian.mean, gaussian.precision)
    moved = np.mean(np.sign(Y) != np.sign(exact))
    assert moved > 0.05
    # Two samples of the same law, nearly independent after five sweeps: four standard errors.
    error = np.sqrt(2.0 / len(exact))
    assert (np.abs(Y.mean(axis=0) - exact.mean(axis=0)) < 4 * error * exact.std(axis=0)).all()
    product = Y[:, 0] * Y[:, 1], exact[:, 0] * exact[:, 1]
    assert abs(product[0].mean() - product[1].mean()) < 4 * error * product[1].std()


def test_saturation_at_both_ends_of_two_columns_is_learned():
    truth = hs.Gaussian([35.0, 6.0], [[441.0, 33.6], [33.6, 10.24]])
    rule = hs.DetectionLimits(lower=[-20.0, 0.0], upper=[60.0, 10.0])
    for seed in range(5):
        fit = hs.fit(hs.simulate(truth, rule, 2000, seed), rule, random_state=0)
        assert fit.status is hs.Status.CONVERGED
        # Ten means: 4.5 standard errors.
        assert (np.abs(fit.mean - truth.mean) < 4.5 * fit.standard_errors.mean).all()


def test_rows_under_inequalities_and_single_cells_do_not_leap():
    rule = hs.Combined(
        [
            ([0, 1], hs.DetectionLimits(lower=-1.0, upper=1.0)),
            ([2, 3], hs.LinearThreshold([[0, 0], [1, 0]], [0.0, 0.0])),
        ]
    )
    X = np.array([[np.nan, np.nan, 1.0, np.nan], [np.nan, 0.0, -1.0, 0.5]])
    holes = rule.holes(X, Scan(np.zeros(4), np.ones(4), np.full(4, 40.0)))
    rows = Completion(np.where(np.isnan(X), 2.0, X), holes, seed=0)
    assert rows.blocks[0].leaping.size == 0
