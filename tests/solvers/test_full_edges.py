"""Where ``full`` comes to its limits: statuses, hard tables, and what it refuses."""

import warnings

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.ledger.designs import decaying, random_thresholds

TWO = hs.Gaussian([1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]])
LEFT = hs.DetectionLimits(lower=[0.5, 1.0])
THREE = hs.Gaussian([0.0, 0.2, -0.1], [[1.0, 0.5, 0.3], [0.5, 1.0, 0.4], [0.3, 0.4, 1.0]])
LIMITS = hs.DetectionLimits(lower=0.0)


def _quietly(X, rule=None, **options):
    """Fit, with warnings that a hard table deserves left aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.fit(X, rule, "full", random_state=0, **options)


def _is_finite(fit):
    arrays = [fit.mean, fit.covariance]
    if fit.uncertainty is not None:
        errors = fit.uncertainty
        arrays += [errors.mean, errors.covariance, errors.correlation]
        intervals = fit.confidence_interval()
        arrays += [*intervals.mean, *intervals.correlation, *intervals.standard_deviation]
    return all(np.isfinite(a).all() for a in arrays) and np.linalg.eigvalsh(fit.correlation)[0] > 0


# Statuses


def test_selection_with_a_free_covariance_says_that_it_is_hardly_identified():
    rule = hs.SelfSelection()
    truth = hs.Gaussian(np.zeros(5), 0.3 + 0.7 * np.eye(5))
    X = hs.simulate(truth, rule, 500, 0)
    with pytest.warns(hs.ConvergenceWarning, match="hardly determined"):
        fit = hs.fit(X, rule, random_state=0)
    assert fit.status is hs.Status.WEAKLY_IDENTIFIED
    assert "times)" in " ".join(note.text for note in fit.notes)
    assert _is_finite(fit)
    # No two values are ever seen together: a correlation could be anything between -1 and 1.
    errors = fit.standard_errors
    assert np.median(errors.correlation[np.triu_indices(5, 1)]) > 0.5
    # Holes take information away: no standard error is below that of complete rows, √(σ_ii/n) and
    # √((σ_ii σ_jj + σ_ij²)/n), even where the estimate is as good as singular. (1 % for rounding.)
    S = fit.covariance
    variance = np.diag(S)
    assert (errors.mean > 0.99 * np.sqrt(variance / 500)).all()
    complete = np.sqrt((np.outer(variance, variance) + S**2) / 500)
    assert (errors.covariance > 0.99 * complete).all()
    assert np.median(errors.mean) > 5 * 0.045
    # Such standard errors cover the truth.
    assert (np.abs(fit.mean) < 4 * errors.mean).all()


def test_a_singular_estimate_has_no_standard_errors():
    # The third column is the sum of the others, so that the likelihood has no top.
    Y = np.random.default_rng(0).normal(size=(500, 3))
    Y[:, 2] = Y[:, 0] + Y[:, 1]
    with pytest.warns(hs.ConvergenceWarning, match="no standard errors"):
        fit = hs.fit(np.where(Y < -0.5, np.nan, Y), hs.DetectionLimits(lower=-0.5), random_state=0)
    assert fit.status is hs.Status.ON_DOMAIN_EDGE
    assert _is_finite(fit)
    with pytest.raises(hs.InputError, match=r"use fit\.bootstrap"):
        _ = fit.standard_errors


@pytest.mark.parametrize("rho", [0.99, 0.9999])
def test_columns_that_nearly_repeat_each_other_are_learned(rho):
    truth = hs.Gaussian(np.zeros(3), [[1.0, rho, 0.5], [rho, 1.0, 0.5], [0.5, 0.5, 1.0]])
    rule = hs.DetectionLimits(upper=[0.2, 0.1, 0.3])
    fit = hs.fit(hs.simulate(truth, rule, 800, 0), rule, random_state=0)
    assert fit.status is hs.Status.CONVERGED
    gap = (fit.correlation - truth.correlation)[np.tril_indices(3, -1)]
    errors = fit.standard_errors.correlation[np.tril_indices(3, -1)]
    # Three correlations: a z of 3.5 comes up once in 700 times.
    assert (np.abs(gap) < 3.5 * errors).all()
    # (1 − ρ²)/√n in complete rows; about half of the cells are hidden.
    ratio = errors[0] / ((1.0 - rho**2) / np.sqrt(800))
    assert 1.0 < ratio < 2.0


def test_columns_that_repeat_each_other_are_named():
    Y = hs.Gaussian(np.zeros(2), [[1.0, 0.5], [0.5, 1.0]]).sample(400, 0)[:, [0, 0, 1]]
    # What is told apart by rounding alone.
    Y[:, 1] += 1e-7 * np.random.default_rng(1).normal(size=400)
    rule = hs.DetectionLimits(upper=[0.2, 0.1, 0.3])
    with pytest.warns(hs.ConvergenceWarning, match="repeat each other: x0 ~ x1"):
        fit = hs.fit(np.where(rule.seen(Y), Y, np.nan), rule, random_state=0)
    assert fit.status is hs.Status.ON_DOMAIN_EDGE


@pytest.mark.parametrize(
    "options", [{"covariance": "diagonal"}, {"covariance": np.diag([1, 2, 1, 1, 0.5])}]
)
def test_selection_of_independent_columns_is_identified(options):
    truth = hs.Gaussian([0.0, 0.2, -0.2, 0.1, 0.3], np.diag([1, 2, 1, 1, 0.5]))
    rule = hs.SelfSelection()
    fit = hs.fit(hs.simulate(truth, rule, 2000, 1), rule, random_state=0, **options)
    assert fit.status is hs.Status.CONVERGED
    # Ten parameters at most: a z of 3.5 comes up once in 200 times.
    assert (np.abs(fit.mean - truth.mean) < 3.5 * fit.standard_errors.mean).all()
    variance = np.diag(fit.covariance) - np.diag(truth.covariance)
    # (A known covariance has standard errors of zero.)
    assert (np.abs(variance) <= 3.5 * np.diag(fit.standard_errors.covariance) + 1e-12).all()
    # Complete rows would give 0.022 to 0.032; four of five values are hidden, but bounded.
    assert fit.standard_errors.mean.max() < 0.15


def test_thresholds_with_a_free_covariance_have_no_guarantee_but_are_near_complete_data():
    rng = np.random.default_rng(0)
    d = 5
    V = rng.normal(size=(d - 2, d)) * np.where(np.arange(d) < 2, 1.0, 0.5)
    rule = hs.LinearThreshold.anchored([0, 1], V, rng.uniform(0, 1, d - 2))
    A = rng.normal(size=(d, d))
    truth = hs.Gaussian(np.zeros(d), np.eye(d) + 0.3 * A @ A.T / d)
    errors = []
    for seed in range(4):
        Y = truth.sample(1000, seed)
        fit = hs.fit(np.where(rule.seen(Y), Y, np.nan), rule, random_state=0)
        assert fit.status is hs.Status.NO_GLOBAL_GUARANTEE
        assert len(fit.history["likelihoods_of_starts"]) > 1
        errors.append(
            [
                hs.metrics.mahalanobis_error(fit.mean, truth),
                hs.metrics.relative_frobenius_error(fit.covariance, truth),
                hs.metrics.mahalanobis_error(Y.mean(axis=0), truth),
                hs.metrics.relative_frobenius_error(np.cov(Y.T), truth),
            ]
        )
    mean, covariance, complete_mean, complete_covariance = np.mean(errors, axis=0)
    # Issue 4, point 6: within 1.5 times.
    assert mean < 1.5 * complete_mean
    assert covariance < 1.5 * complete_covariance


def test_too_few_steps_are_told():
    X = hs.simulate(THREE, LIMITS, 200, 0)
    with pytest.warns(hs.ConvergenceWarning, match=r"After 2 steps .* raise most_steps"):
        fit = hs.fit(X, LIMITS, random_state=0, most_steps=2)
    assert fit.history["steps"] == 2
    assert fit.status is hs.Status.NOT_CONVERGED
    assert _is_finite(fit)
    # Noise that could not be judged is not known to be small.
    assert not np.isnan(fit.monte_carlo_errors.mean).any()
    assert not np.isnan(fit.monte_carlo_errors.covariance).any()


def test_more_columns_than_rows_are_regularised():
    truth = hs.Gaussian(np.zeros(30), 0.3 + 0.7 * np.eye(30))
    rule = hs.DetectionLimits(lower=-0.5)
    X = hs.simulate(truth, rule, 20, 0)
    fit = hs.fit(X, rule, random_state=0)
    assert fit.status is hs.Status.REGULARISED
    assert "20 rows, 30 columns" in fit.summary()
    assert np.linalg.eigvalsh(fit.correlation)[0] > 0.01
    # Nearer to the truth than independence: ‖R − I‖ is 0.3·√870 = 8.8.
    assert np.linalg.norm(fit.correlation - truth.correlation) < 8.8
    with pytest.raises(hs.InputError, match=r"Regularised.*fit\.bootstrap"):
        _ = fit.standard_errors
    # Asked for, it is no news.
    assert hs.fit(X, rule, covariance="shrinkage", random_state=0).status is hs.Status.CONVERGED


def test_few_rows_do_not_blow_up_what_is_hidden():
    # Cells that are filled by noisy correlations with a hundred columns spread too far: variances came
    # out at 1.5², means half a deviation too low. Columns keep their own.
    truth = hs.Gaussian(np.zeros(100), 0.2 + 0.8 * np.eye(100))
    rule = hs.DetectionLimits(lower=0.0)
    X = hs.simulate(truth, rule, 50, 1)
    fit = hs.fit(X, rule, random_state=0)
    assert fit.status is hs.Status.REGULARISED
    for j in range(0, 100, 9):
        own = hs.fit(X[:, [j]], rule)
        # Some steps of expectation maximisation come so near, in standard errors.
        error = own.standard_errors
        assert abs(fit.mean[j] - own.mean[0]) < 0.5 * error.mean[0]
        assert abs(fit.covariance[j, j] - own.covariance[0, 0]) < 0.5 * error.covariance[0, 0]
    with pytest.warns(hs.ConvergenceWarning):
        pairs = hs.fit(X, rule, "pairwise")
    errors = [hs.metrics.relative_frobenius_error(g.covariance, truth) for g in (fit, pairs)]
    assert errors[0] < errors[1]


def test_starts_on_both_sides_end_at_the_same_top():
    rule = hs.SelfCensoring(hs.between(-1.0, 1.0))
    fit = hs.fit(hs.simulate(hs.Gaussian([0.2], [[1.0]]), rule, 500, 0), rule, random_state=0)
    assert len(fit.history["likelihoods_of_starts"]) == 3
    assert fit.status is hs.Status.CONVERGED
    assert abs(fit.mean[0] - 0.2) < 4 * fit.standard_errors.mean[0]


# Hard tables


def test_strong_correlation():
    truth = hs.Gaussian(np.zeros(3), 0.99 + 0.01 * np.eye(3))
    rule = hs.DetectionLimits(lower=-0.5)
    fit = _quietly(hs.simulate(truth, rule, 500, 0), rule)
    assert _is_finite(fit)
    # (1 − ρ²)/√n is 0.0009 in complete rows; a third is hidden.
    off = fit.correlation[np.triu_indices(3, 1)] - 0.99
    assert np.abs(off).max() < 4 * fit.standard_errors.correlation.max() < 0.01


def test_ninety_percent_hidden():
    truth = hs.Gaussian(np.zeros(3), 0.5 + 0.5 * np.eye(3))
    rule = hs.DetectionLimits(lower=1.2816)
    fit = _quietly(hs.simulate(truth, rule, 1000, 0), rule)
    assert _is_finite(fit)
    assert fit.status.severity >= hs.Status.WEAKLY_IDENTIFIED.severity
    # Honest errors: several times the 0.032 of complete rows, and they cover the truth.
    assert fit.standard_errors.mean.min() > 0.08
    assert (np.abs(fit.mean) < 4 * fit.standard_errors.mean).all()


def test_pieces_far_apart():
    # Hidden more than three standard deviations out, on either side; or in two gaps.
    truth = hs.Gaussian([0.0, 0.0], [[4.0, 3.0], [3.0, 4.0]])
    for sets in (
        hs.between(-6.5, 6.0),
        hs.at_most(-3.0) | hs.between(-1.0, 1.0) | hs.at_least(3.0),
    ):
        rule = hs.SelfCensoring([sets, hs.everything])
        fit = _quietly(hs.simulate(truth, rule, 400, 1), rule)
        assert _is_finite(fit)
        assert (np.abs(fit.mean) < 4 * fit.standard_errors.mean).all()


@pytest.mark.parametrize("rule", [None, hs.DetectionLimits(lower=[np.nan, -5.0])])
def test_a_column_seen_in_two_rows(rule):
    X = TWO.sample(100, 0)
    X[2:, 1] = np.nan
    fit = _quietly(X, rule)
    assert _is_finite(fit)
    assert fit.status.severity >= hs.Status.WEAKLY_IDENTIFIED.severity
    if rule is None:
        # A line through two points leaves no residual: the likelihood has no top.
        assert fit.status is hs.Status.ON_DOMAIN_EDGE
        assert fit.uncertainty is None
        return
    # Two values: the mean of x1 is known to a standard deviation or so at best.
    assert fit.standard_errors.mean[1] > 0.3 * fit.gaussian.standard_deviations[1]


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_tiny_and_huge_units(unit):
    X = hs.simulate(TWO, LEFT, 200, 0)
    ref = _quietly(X, LEFT)
    scale = np.array([unit, 1.0])
    comp = _quietly(X * scale, hs.DetectionLimits(lower=LEFT.lower * scale))
    # Only rounding differs: the same steps on the same standardised values.
    np.testing.assert_allclose(comp.mean / scale, ref.mean, rtol=1e-6)
    np.testing.assert_allclose(comp.correlation, ref.correlation, atol=1e-6)
    np.testing.assert_allclose(
        comp.standard_errors.correlation, ref.standard_errors.correlation, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("X", "rule"),
    [
        ([[1.0, 2.0], [np.nan, 0.5], [0.3, np.nan]], hs.DetectionLimits(lower=0.0)),
        ([[1.0, 2.0], [2.0, 4.0], [np.nan, 3.0]], None),
        ([[1.0], [0.3], [np.nan]], hs.DetectionLimits(lower=0.0)),
        ([[1.0, np.nan], [np.nan, 0.5], [0.3, np.nan], [np.nan, 2.0]], hs.SelfSelection()),
    ],
)
def test_three_rows(X, rule):
    fit = _quietly(X, rule)
    assert _is_finite(fit)
    assert isinstance(fit.summary(), str)


def test_intervals_that_allow_no_spread_are_not_identified():
    # One value, and intervals that all hold it: the likelihood grows without end as the variance
    # goes to zero.
    data = hs.IntervalData([[0.0], [-1.0], [-np.inf]], [[0.0], [1.0], [2.0]])
    with pytest.raises(hs.NotIdentifiedError, match="x0"):
        _quietly(data)
    # As soon as two cells exclude each other there is a spread.
    apart = hs.IntervalData([[0.0], [-1.0], [0.5]], [[0.0], [1.0], [2.0]])
    assert _is_finite(_quietly(apart))


def test_a_step_of_nothing_but_rounding():
    # With a known variance the mean of cells missing at random is found at once: what is left of a
    # step is rounding, and here exactly zero.
    rng = np.random.default_rng(24)
    mean, scale = rng.normal(), 10 ** rng.uniform(-3, 3)
    X = 100 * mean * scale + scale * rng.normal(size=(200, 1))
    X[rng.random(200) < 0.15] = np.nan
    fit = hs.fit(
        X,
        None,
        "full",
        missing_at_random=np.isnan(X),
        covariance=[[scale**2]],
        random_state=24,
        n_jobs=1,
    )
    assert fit.mean[0] == pytest.approx(np.nanmean(X), rel=1e-6)


# Refusals


MASK = np.zeros((50, 2), dtype=bool)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"missing_at_random": MASK[:, :1]}, r"boolean array of shape \(50, 2\).*got.*\(50, 1\)"),
        ({"missing_at_random": MASK.astype(int)}, "boolean array.*got dtype int64"),
        ({"missing_at_random": [[True], [True, False]]}, "boolean array of shape"),
        ({"missing_at_random": ~MASK}, r"row \d+, column .*missing at random.*is seen"),
        (
            {"covariance": "nonsense"},
            "one of free, diagonal, .*, sparse, as in .*; got 'nonsense'",
        ),
        ({"covariance": np.eye(3)}, r"must have shape \(2, 2\).*got \(3, 3\)"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "must be positive definite"),
        ({"correlation": [[2.0, 0.1], [0.1, 1.0]]}, "ones on its diagonal; got"),
        ({"correlation": np.eye(3)}, r"shape \(2, 2\).*got shape \(3, 3\)"),
        ({"correlation": "free"}, "correlation"),
        ({"correlation": np.eye(2), "covariance": "free"}, "not both"),
        ({"mean": [1.0, 2.0, 3.0]}, r"mean must be a vector of 2 numbers; got shape \(3,\)"),
        ({"mean": [1.0, np.nan]}, "mean must be finite; entry 1 is nan"),
        ({"accuracy": 0}, "accuracy must be above 0; got 0"),
        ({"accuracy": "high"}, "accuracy must be above 0; got 'high'"),
        ({"most_steps": 0}, "most_steps must be a whole number of at least 1; got 0"),
        ({"shrinkage": 0.1}, 'covariance="shrinkage"; say both'),
        ({"covariance": "shrinkage", "shrinkage": 2.0}, "between 0 and 1; got 2.0"),
        ({"covariance": "shrinkage", "shrinkage": "much"}, "between 0 and 1; got 'much'"),
        ({"penalty": 0.1}, 'covariance="sparse"; say both'),
        ({"covariance": "sparse", "penalty": -1.0}, "penalty must be above 0; got -1.0"),
        ({"start": (np.zeros(2), np.eye(2))}, "start must be a Gaussian"),
        ({"start": hs.Gaussian([0.0], [[1.0]])}, "start .*2 columns.*1"),
        ({"sweeps": 3}, "does not take the option 'sweeps'; it takes covariance, correlation"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_bad_options_get_a_sentence(options, sentence):
    X = hs.simulate(TWO, LEFT, 50, 0)
    with pytest.raises(hs.HalfseenError, match=sentence):
        hs.fit(X, LEFT, "full", random_state=0, **options)


def _intervals():
    return hs.IntervalData(
        [[1.0, 2.0], [0.0, 1.0], [3.0, -np.inf]], [[1.0, 2.0], [2.0, 1.0], [3.0, 0.5]]
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: hs.fit(_intervals(), hs.RowTruncation(lambda Y: Y[:, 0] > 0)),
            "RowTruncation shows whole rows or none",
        ),
        (
            lambda: hs.fit(_intervals(), None, "pairwise"),
            "does not fit IntervalData.*; choose full",
        ),
        (lambda: hs.fit(_intervals().take([0])), "at least 2 rows are needed; got 1"),
        (
            lambda: hs.fit(hs.IntervalData([[0.0], [0.0]], [[0.0], [np.inf]])),
            "column x0 has 1 distinct value",
        ),
        (
            lambda: hs.fit(TWO.sample(9, 0), hs.RowTruncation(lambda Y: Y[:, 0] > -9), "full"),
            "does not fit RowTruncation; choose truncated_sgd",
        ),
        (
            lambda: hs.fit(hs.PairMoments.from_array(TWO.sample(9, 0)), LEFT, "full"),
            "does not fit moments; choose pairwise",
        ),
        (
            lambda: hs.fit(hs.PairMoments.from_array(TWO.sample(9, 0)), hs.SelfSelection()),
            "needs the rows themselves",
        ),
        (
            lambda: hs.fit([[1.0, 2.0], [np.nan, 3.0]], hs.LinearThreshold.larger_of(0, 1, 2)),
            "row 0, column x",
        ),
        (
            # x0 is hidden though x1 <= x0 would show it, and x1 is hidden too.
            lambda: hs.fit(
                [[1.0, np.nan], [np.nan, 3.0], [2.0, np.nan], [np.nan, 4.0], [np.nan, np.nan]],
                hs.LinearThreshold.larger_of(0, 1, 2),
            ),
            "row 4: no values of its hidden columns",
        ),
    ],
)
def test_bad_data_get_a_sentence(call, sentence):
    with pytest.raises(hs.HalfseenError, match=sentence):
        call()


# What "auto" takes


@pytest.mark.parametrize(
    "rule",
    [
        LEFT,
        hs.DetectionLimits(lower=np.full((60, 2), 0.5)),
        hs.SelfCensoring(hs.at_least(0.5)),
        hs.LinearThreshold.heckman(1, [1.0, 0.0], -0.5),
        hs.SelfSelection(),
        hs.Combined([([0], hs.DetectionLimits(lower=0.5))]),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_auto_uses_everything(rule):
    assert _auto(hs.simulate(TWO, rule, 60, 0), rule) == "full"


def _auto(X, rule=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        return hs.fit(X, rule, random_state=0, accuracy=0.5).method


def test_auto_takes_full_for_intervals_and_pairwise_for_moments():
    X = hs.simulate(TWO, LEFT, 60, 0)
    assert _auto(hs.IntervalData.from_table(X, LEFT)) == "full"
    moments = hs.PairMoments.from_array(X)
    assert hs.fit(moments, LEFT).method == "pairwise"
    assert hs.fit(hs.PairMoments.from_array(TWO.sample(60, 0))).method == "truncation"
    truncation = hs.RowTruncation(lambda Y: Y[:, 0] > -99)
    assert hs.fit(TWO.sample(60, 0), truncation, random_state=0).method == "truncated_sgd"


def test_very_few_rows_are_said():
    """√(2/χ²) with one degree of freedom: 0.6 to 45."""
    with pytest.warns(hs.ConvergenceWarning, match=r"2 rows: .* may be 0\.6 to 45 times"):
        fit = hs.fit([[1.0], [2.0]], random_state=0)
    assert fit.status is hs.Status.WEAKLY_IDENTIFIED
    low, high = fit.confidence_interval(kind="wald").standard_deviation
    assert high[0] / low[0] == pytest.approx(
        np.sqrt(stats.chi2.ppf(0.975, 1) / stats.chi2.ppf(0.025, 1))
    )
    assert hs.fit([[1.0], [2.0], [4.0], [5.0]], random_state=0).status is hs.Status.CONVERGED


def test_cells_that_too_many_inequalities_bind_get_a_sentence():
    """Each of 27 columns is hidden by a combination of all 30, which paths settle in their last cell."""
    truth = decaying(30, mean=np.random.default_rng(3).normal(size=30))
    rule = random_thresholds(truth, 3, 0.4, 4)
    X = hs.simulate(truth, rule, 2000, 0)
    with pytest.raises(hs.RarelyHitError, match=r"find no place.*missing_descent"):
        hs.fit(X, rule, "full", covariance=truth.covariance)
