"""Fits of transformed columns: the same answer as by hand, and the way back."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.data.transforms import BoxCox, Log

TRUTH = hs.Gaussian([0.0, 1.0], [[1.0, 0.6], [0.6, 0.8]])
LIMITS = np.exp([-0.4, 0.6])
RULE = hs.DetectionLimits(lower=LIMITS)


@pytest.fixture(scope="module")
def table():
    Z = hs.simulate(TRUTH, hs.DetectionLimits(lower=np.log(LIMITS)), 400, 3)
    return np.exp(Z)


@pytest.fixture(scope="module")
def logs(table):
    return hs.fit(table, RULE, transforms="log", random_state=0)


def test_a_fit_of_logarithms_is_that_of_a_table_of_logarithms(table, logs):
    by_hand = hs.fit(np.log(table), hs.DetectionLimits(lower=np.log(LIMITS)), random_state=0)
    assert (logs.gaussian.mean == by_hand.gaussian.mean).all()
    assert (logs.gaussian.covariance == by_hand.gaussian.covariance).all()
    assert logs.transforms == (Log(), Log())
    assert by_hand.transforms is None


def test_likelihoods_are_in_original_units(table, logs):
    by_hand = hs.fit(np.log(table), hs.DetectionLimits(lower=np.log(LIMITS)), random_state=0)
    # The density of x is that of log x times 1/x.
    jacobian = -np.nansum(np.log(table))
    assert logs.log_likelihood.value == pytest.approx(by_hand.log_likelihood.value + jacobian)
    rows = logs.score_rows(table[:20])
    np.testing.assert_allclose(rows, logs.score_rows()[:20], atol=0.05)
    # So scales can be compared: these data are log-normal.
    plain = hs.fit(table, RULE, random_state=0)
    assert logs.aic < plain.aic - 50.0


def test_imputations_are_in_original_units_and_inside_the_holes(table, logs):
    hidden = np.isnan(table)
    filled = logs.impute()
    assert (filled[~hidden] == table[~hidden]).all()
    assert (filled < LIMITS)[hidden].all()
    assert (filled > 0.0).all()
    # Each is a mean in original units, so it lies above the value at the mean of the logarithm.
    by_hand = hs.fit(np.log(table), hs.DetectionLimits(lower=np.log(LIMITS)), random_state=0)
    geometric = np.exp(by_hand.impute())
    assert filled[hidden].mean() > geometric[hidden].mean()
    drawn = logs.draw_imputations(m=3, random_state=0)
    assert (drawn < LIMITS)[:, hidden].all()
    assert (drawn[:, ~hidden] == table[~hidden]).all()
    other = logs.impute(table[:10])
    assert (other[~hidden[:10]] == table[:10][~hidden[:10]]).all()
    # Both are noisy by a tenth of the spread of a hidden cell, which is at most 0.45 below 1.8.
    np.testing.assert_allclose(other, filled[:10], atol=4 * np.sqrt(2) * 0.045)


def test_a_mean_in_original_units_is_the_integral(logs):
    """One column: E[exp z | z < log c] in closed form."""
    from scipy.special import ndtr

    X = np.exp(np.random.default_rng(0).normal(size=(300, 1)))
    X[X < 0.8] = np.nan
    fit = hs.fit(X, hs.DetectionLimits(lower=0.8), transforms="log", random_state=0)
    mu, sigma = fit.gaussian.mean[0], fit.gaussian.standard_deviations[0]
    a = (np.log(0.8) - mu) / sigma
    expected = np.exp(mu + sigma**2 / 2) * ndtr(a - sigma) / ndtr(a)
    filled = fit.impute()[np.isnan(X)]
    # 100 draws for each of about 120 cells; a draw's spread is below 0.25.
    assert filled.mean() == pytest.approx(expected, abs=4 * 0.25 / np.sqrt(100 * filled.size))
    # With the control variate each cell is much closer than its draws alone would be, 0.025.
    assert filled.std() < 0.01


def test_contradictions_are_named_in_original_units(table):
    wrong = table.copy()
    wrong[7, 0] = 0.25
    with pytest.raises(hs.ContradictionError, match=r"row 7, column x0: the value 0.25 is seen"):
        hs.fit(wrong, RULE, transforms="log")
    fit = hs.fit(table, RULE, transforms="log", random_state=0)
    with pytest.raises(hs.ContradictionError, match=r"the value 0.25 is seen"):
        fit.impute(wrong)


def test_values_on_the_limit_stay_there():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(400, 3)))
    limits = np.quantile(X, 0.3, axis=0)
    # The limits are seen values themselves; no rounding of a transform may hide them.
    for name in ("log", "log10", "sqrt", "boxcox(0.3)", "boxcox"):
        seen = np.where(limits > X, np.nan, X)
        seen[0] = limits
        fit = hs.fit(seen, hs.DetectionLimits(lower=limits), transforms=name, random_state=0)
        assert fit.status is hs.Status.CONVERGED


def test_powers_are_learned_and_counted(table, logs):
    fit = hs.fit(table, RULE, transforms={"x0": "boxcox"}, random_state=0)
    power = fit.transforms[0].power
    assert isinstance(fit.transforms[0], BoxCox)
    # The truth is 0; its standard error in 400 rows with a spread of 1 is about 0.06.
    assert 0.0 <= power < 0.25
    assert fit.parameters == logs.parameters + 1
    again = hs.fit(table, RULE, transforms={"x0": f"boxcox({power!r})"}, random_state=0)
    assert (again.gaussian.mean == fit.gaussian.mean).all()
    assert again.parameters == logs.parameters


def test_every_method_takes_transforms(table):
    for method in ("pairwise", "truncation"):
        fit = hs.fit(table, RULE, method, transforms="log")
        assert abs(fit.gaussian.mean - TRUTH.mean).max() < 0.4
        assert (fit.impute() > 0.0).all()
    rule = hs.Truncation(lambda Y: (Y > 0.5).all(axis=1))
    rows = np.exp(TRUTH.sample(800, np.random.default_rng(0)))
    rows = rows[rule.contains(rows)]
    fit = hs.fit(rows, rule, transforms="log", random_state=0)
    assert fit.method == "truncated_sgd"
    assert abs(fit.gaussian.mean - TRUTH.mean).max() < 0.5


def test_bad_requests():
    with pytest.raises(hs.InputError, match="transforms need the rows themselves"):
        hs.fit(hs.PairMoments.from_array(np.ones((5, 2))), None, transforms="log")
    X = np.array([[1.0, 2.0], [3.0, -4.0], [2.0, 1.0]])
    with pytest.raises(hs.InputError, match=r"row 1, column x1: boxcox.*got -4"):
        hs.fit(X, None, transforms="boxcox")
    with pytest.raises(hs.InputError, match="'ln' is no transform"):
        hs.fit(X, None, transforms="ln")


def test_a_scale_that_ends_says_so_when_values_lie_beyond():
    # Cells above a limit, on a scale that has no values beyond 1/0.9.
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(200, 1)))
    X[X > 1.0] = np.nan
    fit = hs.fit(X, hs.DetectionLimits(upper=1.0), transforms="boxcox(-2)", random_state=0)
    with pytest.raises(hs.InputError, match=r"column x0: on the scale .*original units have none"):
        fit.draw_imputations(m=2, random_state=0)


def test_bootstrap_and_estimator_go_along(table):
    fit = hs.fit(table, RULE, transforms="log", random_state=0)
    for kind in ("rows", "parametric"):
        errors = fit.bootstrap(10, kind, random_state=0).standard_error("mean")
        ratio = errors / fit.uncertainty.mean
        # A standard deviation of ten draws is off by 1/√18 of itself, or so.
        assert (ratio > 0.3).all()
        assert (ratio < 2.0).all()
    model = hs.CensoredGaussian(RULE, transforms="log", random_state=0).fit(table)
    assert (model.mean_ == fit.gaussian.mean).all()
    filled = model.transform(table)
    assert (filled[np.isnan(table)] < np.broadcast_to(LIMITS, table.shape)[np.isnan(table)]).all()
