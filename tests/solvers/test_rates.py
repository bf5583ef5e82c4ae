"""The paper's claims for self-censoring, small and seeded; ``make bench`` has them at full size."""

import numpy as np
import pytest
from scipy.special import ndtri

import halfseen as hs

TRUTH = hs.Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]])


def _left_censored(share):
    return hs.DetectionLimits(lower=TRUTH.mean + ndtri(share) * TRUTH.standard_deviations)


def _rms_error(method, n, seeds, share=0.3, **options):
    rule = _left_censored(share)
    errors = []
    for seed in seeds:
        X = hs.simulate(TRUTH, rule, n, seed)
        fit = hs.fit(X, rule, method, **options)
        errors.append(
            [
                hs.metrics.mahalanobis_error(fit.mean, TRUTH),
                hs.metrics.relative_frobenius_error(fit.covariance, TRUTH),
            ]
        )
    return np.sqrt((np.array(errors) ** 2).mean(axis=0))


@pytest.mark.parametrize(
    ("method", "options", "repeats"),
    [("truncation", {}, 60), ("pairwise", {}, 60), ("truncation_psgd", {"random_state": 0}, 16)],
)
def test_error_falls_like_the_root_of_n(method, options, repeats):
    # A root-mean-square over r runs of an error with two or three degrees of freedom has relative
    # standard error of about 1/√(2.5·2r)·√2; two decades of n divide the noise of the slope by log 100.
    factor = 10 if method == "truncation_psgd" else 100
    small, large = (
        _rms_error(method, n, range(repeats), **options) for n in (2_000, 2_000 * factor)
    )
    decades = np.log(factor)
    slope = np.log(large / small) / decades
    noise = np.sqrt(2) * np.sqrt(2 / (2.5 * 2 * repeats)) / decades
    np.testing.assert_allclose(slope, -0.5, atol=4 * noise)


def test_pairwise_is_three_times_sharper_on_the_mean_at_half_censored():
    seeds = range(40)
    truncation = _rms_error("truncation", 5_000, seeds, share=0.5)
    pairwise = _rms_error("pairwise", 5_000, seeds, share=0.5)
    assert truncation[0] >= 3.0 * pairwise[0]


def test_truncation_stays_right_when_cells_are_missing_for_other_reasons():
    rule = _left_censored(0.3)
    X = hs.simulate(TRUTH, rule, 100_000, 0)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = np.nan
    right = hs.metrics.mahalanobis_error(hs.fit(X, rule, "truncation").mean, TRUTH)
    wrong = hs.metrics.mahalanobis_error(hs.fit(X, rule, "pairwise").mean, TRUTH)
    # 42 000 seen values at 30 % truncation: a standard error of about 0.02 in each mean.
    assert right < 0.1
    assert wrong > 0.3


def test_fixed_marginals_beat_the_papers_form():
    seeds = range(20)
    fixed = _rms_error("truncation", 5_000, seeds, share=0.5)
    paper = _rms_error("truncation", 5_000, seeds, share=0.5, form="paper")
    assert fixed[1] < 0.8 * paper[1]


def test_hidden_at_random_columns_are_mixed_in():
    rule = hs.SelfCensoring([hs.at_least(float(ndtri(0.4))), hs.everything])
    X = hs.simulate(TRUTH, rule, 100_000, 2)
    X[np.random.default_rng(3).random(len(X)) < 0.3, 1] = np.nan
    with pytest.warns(
        hs.AssumptionWarning, match="column x1; they are taken to be missing at random"
    ):
        fit = hs.fit(X, rule, "pairwise")
    # Five standard errors of complete data with 60 000 rows, and half as much again for censoring.
    tolerance = 1.5 * 5 / np.sqrt(60_000)
    assert hs.metrics.mahalanobis_error(fit.mean, TRUTH) < 2 * tolerance
    assert abs(fit.correlation[0, 1] - 0.5) < tolerance


@pytest.mark.parametrize("method", ["truncation", "pairwise"])
@pytest.mark.parametrize("sides", ["few", "all different"])
def test_limits_by_row_are_unbiased(method, sides):
    rng = np.random.default_rng(4)
    n = 20_000
    below = rng.choice([0.2, 0.5, 1.0], (n, 2)) if sides == "few" else rng.uniform(0, 1, (n, 2))
    rule = hs.DetectionLimits(lower=TRUTH.mean - below)
    fit = hs.fit(hs.simulate(TRUTH, rule, n, 5), rule, method)
    # 14 000 seen values; truncation multiplies the standard error 1/√n by about 4 at 30 %.
    factor = 4.0 if method == "truncation" else 1.5
    assert hs.metrics.mahalanobis_error(fit.mean, TRUTH) < 4 * factor * np.sqrt(2 / 14_000)
    assert abs(fit.correlation[0, 1] - 0.5) < 4 * factor / np.sqrt(10_000)
