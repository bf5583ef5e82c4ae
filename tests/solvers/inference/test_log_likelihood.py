import warnings

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from tests import naive

BELOW, ABOVE = -np.inf, np.inf
# Units that differ, so that densities are seen to be per unit of the table.
TWO = hs.Gaussian([100.0, 0.02], [[400.0, 0.12], [0.12, 1e-4]])


def _fit(X, rule=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.fit(X, rule, "full", random_state=0, n_jobs=1, accuracy=0.5, **options)


def _reference(fit, X, cells):
    return naive.observed_log_likelihood(X, cells, fit.mean, fit.covariance)


@pytest.mark.parametrize(
    ("sets", "cell"),
    [
        (hs.at_least(90.0), [(BELOW, 90.0)]),
        (hs.between(90.0, 120.0), [(BELOW, 90.0), (120.0, ABOVE)]),
        (hs.at_most(80.0) | hs.between(85.0, 110.0), [(80.0, 85.0), (110.0, ABOVE)]),
        (
            hs.Probability(lambda x: 1 / (1 + np.exp((90 - x) / 5))),
            lambda x: 1 / (1 + np.exp((x - 90) / 5)),
        ),
    ],
    ids=["left", "two sides", "union", "probability"],
)
def test_one_column_is_exact(sets, cell):
    rule = hs.SelfCensoring(sets)
    X = hs.simulate(hs.Gaussian([100.0], [[400.0]]), rule, 120, 0)
    fit = _fit(X, rule)
    # Sums of 120 terms; where a set is a function, its quadrature has nine digits.
    assert fit.log_likelihood.value == pytest.approx(
        _reference(fit, X, lambda r, k: cell), rel=1e-8
    )
    assert fit.log_likelihood.standard_error == 0.0
    assert float(fit.log_likelihood) == fit.log_likelihood.value


@pytest.mark.parametrize(
    ("rule", "cells"),
    [
        (
            hs.DetectionLimits(lower=[95.0, 0.015]),
            [[(BELOW, 95.0)], [(BELOW, 0.015)]],
        ),
        (
            hs.DetectionLimits(lower=[90.0, 0.01], upper=[130.0, 0.035]),
            [[(BELOW, 90.0), (130.0, ABOVE)], [(BELOW, 0.01), (0.035, ABOVE)]],
        ),
        (
            hs.SelfCensoring(
                [hs.Probability(lambda x: 1 / (1 + np.exp((90 - x) / 5))), hs.at_least(0.02)]
            ),
            [lambda x: 1 / (1 + np.exp((x - 90) / 5)), [(BELOW, 0.02)]],
        ),
    ],
    ids=["left", "two sides", "probability"],
)
def test_two_columns_match_quadrature(rule, cells):
    X = hs.simulate(TWO, rule, 100, 1)
    assert np.isnan(X).all(axis=1).any()
    fit = _fit(X, rule)
    ref = _reference(fit, X, lambda r, k: cells[k])
    found = fit.log_likelihood
    if callable(cells[0]):
        # Two cells of which one is known as a function are sampled: five standard errors.
        assert 0.0 < found.standard_error < 0.01
        assert abs(found.value - ref) < 5.0 * found.standard_error
    else:
        assert found.value == pytest.approx(ref, rel=1e-7)
        assert found.standard_error == 0.0


def test_cells_missing_at_random_and_intervals():
    Y = TWO.sample(80, 2)
    kind = np.random.default_rng(2).choice(3, size=Y.shape)
    scale = np.array([10.0, 0.01])
    lower = np.choose(kind, [Y, np.floor(Y / scale) * scale, np.full_like(Y, BELOW)])
    upper = np.choose(kind, [Y, (np.floor(Y / scale) + 1) * scale, np.full_like(Y, ABOVE)])
    data = hs.IntervalData(lower, upper)
    fit = _fit(data)
    ref = _reference(fit, data.values, lambda r, k: [(data.lower[r, k], data.upper[r, k])])
    assert fit.log_likelihood.value == pytest.approx(ref, rel=1e-8)


def test_thresholds_and_selection():
    truth = hs.Gaussian([0.3, 0.0, -0.2], [[1.0, 0.4, -0.3], [0.4, 1.5, 0.2], [-0.3, 0.2, 0.8]])
    rule = hs.SelfSelection()
    X = hs.simulate(truth, rule, 60, 0)
    fit = _fit(X, rule, covariance=truth.covariance)
    ref = _reference(fit, X, lambda r, k: [(BELOW, np.nanmax(X[r]))])
    # Two cells of a row are hidden: still exact.
    assert fit.log_likelihood.value == pytest.approx(ref, rel=1e-8)
    larger = hs.LinearThreshold.larger_of(0, 1, 3)
    X = hs.simulate(truth, larger, 60, 0)
    fit = _fit(X, larger, covariance=truth.covariance)
    ref = _reference(fit, X, lambda r, k: [(BELOW, X[r, 1 - k])])
    assert fit.log_likelihood.value == pytest.approx(ref, rel=1e-8)


def test_nothing_hidden():
    Y = TWO.sample(50, 0)
    fit = _fit(Y)
    ref = stats.multivariate_normal.logpdf(Y, fit.mean, fit.covariance).sum()
    assert fit.log_likelihood.value == pytest.approx(ref, rel=1e-12)
    assert fit.log_likelihood.standard_error == 0.0


def test_more_hidden_cells_are_estimated_with_an_honest_error():
    d = 4
    truth = hs.Gaussian(np.zeros(d), 0.4 + 0.6 * np.eye(d))
    rule = hs.DetectionLimits(lower=0.3)
    X = hs.simulate(truth, rule, 40, 0)
    fit = _fit(X, rule)
    found = fit.log_likelihood
    ref = 0.0
    for x in X:
        H, S = np.isnan(x), ~np.isnan(x)
        m, C = fit.mean[H], fit.covariance[np.ix_(H, H)]
        if S.any():
            within, step = fit.covariance[np.ix_(S, S)], x[S] - fit.mean[S]
            ref += stats.multivariate_normal.logpdf(step, cov=within)
            slope = np.linalg.solve(within, fit.covariance[np.ix_(S, H)])
            m, C = m + step @ slope, C - fit.covariance[np.ix_(H, S)] @ slope
        if H.any():
            ref += stats.multivariate_normal.logcdf(
                np.full(H.sum(), 0.3),
                m,
                C,
                maxpts=200_000,
                abseps=1e-7,
                rng=np.random.default_rng(0),
            )
    assert 0.0 < found.standard_error < 0.1
    # The reference is good to 1e-4 in all.
    assert abs(found.value - ref) < 4.5 * found.standard_error + 1e-3


def test_criteria():
    rule = hs.DetectionLimits(lower=[95.0, 0.015])
    X = hs.simulate(TWO, rule, 100, 1)
    for options, count in (
        ({}, 5),
        ({"covariance": "diagonal"}, 4),
        ({"covariance": TWO.covariance}, 2),
        ({"correlation": TWO.correlation}, 4),
        ({"mean": TWO.mean}, 3),
        ({"covariance": "sparse", "penalty": 0.99}, 4),
    ):
        fit = _fit(X, rule, **options)
        assert fit.parameters == count
        value = fit.log_likelihood.value
        assert fit.aic == pytest.approx(-2 * value + 2 * count)
        assert fit.bic == pytest.approx(-2 * value + np.log(100) * count)
    # Columns that depend on each other: the free covariance is worth its parameter.
    assert _fit(X, rule).aic < _fit(X, rule, covariance="diagonal").aic
    with pytest.raises(hs.InputError, match='need a fit by method="full"'):
        _ = hs.fit(X, rule, "pairwise").aic


def test_the_fit_is_the_likeliest():
    rule = hs.DetectionLimits(lower=[95.0, 0.015])
    X = hs.simulate(TWO, rule, 200, 3)
    fit = hs.fit(X, rule, "full", random_state=0)
    top = fit.log_likelihood.value
    # A tenth of a standard error from the top costs 0.005 for each parameter; steps of one, a half.
    for step in (np.array([1.0, 0.0]), np.array([0.0, -1.0])):
        moved = fit.mean + step * fit.standard_errors.mean
        ref = naive.observed_log_likelihood(
            X, lambda r, k: [(BELOW, rule.lower[k])], moved, fit.covariance
        )
        assert ref < top - 0.2
