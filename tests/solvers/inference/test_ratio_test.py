import numpy as np
import pytest
from scipy import stats

import halfseen as hs

RULE = hs.DetectionLimits(lower=-0.3)
TRUTH = hs.Gaussian([0.0, 0.5], np.diag([1.0, 2.0]))


def _fits(X, rule=RULE, **small):
    options = {"random_state": 0, "n_jobs": 1}
    return hs.fit(X, rule, "full", **small, **options), hs.fit(X, rule, "full", **options)


def test_statistic_is_twice_the_difference_of_log_likelihoods():
    X = hs.simulate(hs.Gaussian([0.0, 0.0], [[1.0, 0.4], [0.4, 1.0]]), RULE, 150, 0)
    small, large = _fits(X, covariance="diagonal")
    test = hs.likelihood_ratio_test(small, large)
    ref = 2 * (large.log_likelihood.value - small.log_likelihood.value)
    # The same numbers on another scale: rounding of sums of 300 terms.
    assert test.statistic == pytest.approx(ref, abs=1e-8)
    assert test.degrees_of_freedom == 1
    assert test.p_value == pytest.approx(stats.chi2.sf(ref, 1), rel=1e-6)
    # No row hides more than two cells, so that both are exact.
    assert test.monte_carlo_error == 0.0
    assert test.p_value_range == (test.p_value, test.p_value)
    assert test.p_value < 0.01


@pytest.mark.parametrize(
    ("small", "freedom"),
    [
        ({"mean": [0.0, 0.5]}, 2),
        ({"covariance": np.diag([1.0, 2.0])}, 3),
        ({"correlation": np.eye(2)}, 1),
        ({"mean": [0.0, 0.5], "covariance": "diagonal"}, 3),
    ],
)
def test_degrees_of_freedom_count_what_is_held_fixed(small, freedom):
    X = hs.simulate(TRUTH, RULE, 150, 1)
    test = hs.likelihood_ratio_test(*_fits(X, **small))
    assert test.degrees_of_freedom == freedom
    # True hypotheses: beyond the 99.9 % point once in a thousand times. Both estimates are within a
    # tenth of a standard error of the top, which is worth 0.01 of twice a log-likelihood each.
    assert -0.1 < test.statistic < stats.chi2.ppf(0.999, freedom)


def test_about_chi_squared_under_the_null():
    statistics, rejected = [], 0
    for seed in range(60):
        X = hs.simulate(TRUTH, RULE, 60, seed)
        test = hs.likelihood_ratio_test(*_fits(X, covariance="diagonal"))
        statistics.append(test.statistic)
        rejected += test.p_value < 0.1
    # Of 60 tests at 10 %, between 1 and 14 reject but for twice in a thousand times.
    assert 1 <= rejected <= 14
    # χ² with one degree of freedom: mean 1 ± √(2/60) = 0.18. Three of these.
    assert 0.45 < np.mean(statistics) < 1.55
    # Kolmogorov's statistic exceeds 1.95/√60 once in a thousand times.
    assert stats.kstest(statistics, stats.chi2(1).cdf).statistic < 1.95 / np.sqrt(60)


def test_noise_is_told_where_likelihoods_are_estimated():
    d = 4
    truth = hs.Gaussian(np.zeros(d), 0.3 + 0.7 * np.eye(d))
    rule = hs.DetectionLimits(lower=0.0)
    small, large = _fits(hs.simulate(truth, rule, 200, 0), rule, covariance="diagonal")
    test = hs.likelihood_ratio_test(small, large)
    assert test.degrees_of_freedom == 6
    assert 0.0 < test.monte_carlo_error < 1.0
    low, high = test.p_value_range
    assert low <= test.p_value <= high < 0.001


def _other_rule(X):
    other = hs.fit(X, hs.DetectionLimits(lower=-0.4), covariance="diagonal", random_state=0)
    return other, hs.fit(X, RULE, random_state=0)


def _other_holes(X):
    options = {"covariance": "diagonal", "random_state": 0}
    return hs.fit(X, RULE, missing_at_random=np.isnan(X), **options), hs.fit(
        X, RULE, random_state=0
    )


@pytest.mark.parametrize(
    ("fits", "sentence"),
    [
        (lambda X: _fits(X, covariance="diagonal")[::-1], "more free parameters than small"),
        (lambda X: (_fits(X)[1], _fits(X)[1]), "they have 5 and 5"),
        (lambda X: (_fits(X[:40], covariance="diagonal")[0], _fits(X)[1]), "of the same table"),
        (
            lambda X: (hs.fit(X, RULE, "pairwise"), _fits(X)[1]),
            'small must be a fit by method="full"',
        ),
        (lambda X: _fits(X, covariance="shrinkage"), "small is regularised"),
        (lambda X: _fits(X, covariance="sparse"), "small is regularised"),
        (lambda X: (_fits(X)[1], "large"), 'large must be a fit by method="full"'),
        (_other_rule, "same rule"),
        (_other_holes, "same rule"),
    ],
)
def test_what_cannot_be_tested_gets_a_sentence(fits, sentence):
    X = hs.simulate(TRUTH, RULE, 60, 0)
    with pytest.raises(hs.InputError, match=sentence):
        hs.likelihood_ratio_test(*fits(X))


def test_models_that_are_not_nested_are_told_where_it_shows():
    # Known correlations are no special case of independence, and far likelier here.
    truth = hs.Gaussian([0.0, 0.5], [[1.0, 1.1], [1.1, 2.0]])
    X = hs.simulate(truth, RULE, 60, 0)
    options = {"random_state": 0, "n_jobs": 1}
    right = hs.fit(X, RULE, "full", correlation=truth.correlation, mean=truth.mean, **options)
    wrong = hs.fit(X, RULE, "full", covariance="diagonal", **options)
    assert right.parameters < wrong.parameters
    with pytest.raises(hs.InputError, match="special case"):
        hs.likelihood_ratio_test(right, wrong)


def test_bartletts_factor_of_complete_rows():
    """Independence of three columns in 15 rows: the statistic is n/(n − 1 − 11/6) times too large (Box).

    The mean of 300 statistics with three degrees of freedom has a standard error of √(6/300)/3 = 0.047
    of it; three of these.
    """
    Y = np.random.default_rng(0).normal(size=(15, 3))
    rule = hs.DetectionLimits(lower=-9.0)
    small = hs.fit(Y, rule, covariance="diagonal", random_state=0, n_jobs=1)
    large = hs.fit(Y, rule, random_state=0, n_jobs=1)
    plain = hs.likelihood_ratio_test(small, large)
    found = hs.likelihood_ratio_test(small, large, replicates=300, random_state=1)
    assert found.factor == pytest.approx(15 / (15 - 1 - 11 / 6), abs=0.17)
    assert found.simulated.shape == (300,)
    assert found.statistic == plain.statistic
    assert (plain.factor, plain.simulated) == (1.0, None)
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic / found.factor, 3))
    assert plain.p_value < found.p_value


def test_simulated_tables_need_a_rule():
    Y = np.random.default_rng(0).normal(size=(40, 2))
    fits = [hs.fit(Y, covariance=c, random_state=0) for c in ("diagonal", "free")]
    with pytest.raises(hs.InputError, match="hides values by the rule, and none was stated"):
        hs.likelihood_ratio_test(*fits, replicates=20)
    with pytest.raises(hs.InputError, match="replicates must be"):
        hs.likelihood_ratio_test(*fits, replicates=-1)
