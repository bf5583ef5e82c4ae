"""Fits of transformed columns: the same answer as by hand, and the way back."""

import warnings

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


def test_intervals_have_no_density_of_their_own():
    """Cells between two values add a probability, which no derivative belongs to."""
    x = np.exp(np.random.default_rng(0).normal(size=(200, 1)))
    lower, upper = x.copy(), x.copy()
    lower[:60], upper[:60] = np.floor(x[:60]) + 1e-3, np.floor(x[:60]) + 1.0
    data = hs.IntervalData(lower, upper)
    fit = hs.fit(data, transforms="log", random_state=0)
    by_hand = hs.fit(hs.IntervalData(np.log(lower), np.log(upper)), random_state=0)
    jacobian = -np.log(x[60:]).sum()
    assert fit.log_likelihood.value == pytest.approx(by_hand.log_likelihood.value + jacobian)


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


@pytest.mark.parametrize("transform", ["log", "sqrt", "boxcox(0.5)"])
def test_cells_alike_are_filled_alike_however_skewed(transform):
    """One column: every hole has the same mean, and no noise of sampling."""
    rng = np.random.default_rng(5)
    X = np.exp(1.5 * rng.normal(size=(300, 1)))
    X[:40] = np.nan
    lost = np.zeros(X.shape, dtype=bool)
    lost[:20] = True
    X[20:40] = np.nan
    X[40:][X[40:] > 4.0] = np.nan
    fit = hs.fit(
        X,
        hs.DetectionLimits(upper=4.0),
        transforms=transform,
        missing_at_random=lost,
        random_state=0,
    )
    filled = fit.impute()
    for cells in (lost, np.isnan(X) & ~lost):
        np.testing.assert_allclose(filled[cells], filled[cells][0], rtol=1e-10)
    found = fit.original_scale()
    assert filled[lost][0] == pytest.approx(found.mean[0], rel=1e-6)


def test_means_of_holes_on_two_sides_lie_in_the_likeliest_piece():
    rng = np.random.default_rng(6)
    X = np.exp(rng.normal(size=(2000, 1)))
    rule = hs.DetectionLimits(lower=0.7, upper=5.0)
    X = np.where(rule.seen(X), X, np.nan)
    fit = hs.fit(X, rule, transforms="log", random_state=0)
    filled = fit.impute()[np.isnan(X)]
    assert ((filled < 0.7) | (filled > 5.0)).all()
    mu, sigma = fit.gaussian.mean[0], fit.gaussian.standard_deviations[0]
    from scipy.special import ndtr

    a = (np.log(0.7) - mu) / sigma
    # E[exp z | z < log 0.7], where most of the hidden mass is
    below = np.exp(mu + sigma**2 / 2) * ndtr(a - sigma) / ndtr(a)
    np.testing.assert_allclose(filled, below, rtol=1e-6)


def test_every_table_is_read_as_when_it_was_fitted():
    """The same rows, in whatever form, are filled in the same way."""
    rng = np.random.default_rng(7)
    X = np.exp(rng.normal(size=(150, 2)) @ [[1.0, 0.5], [0.0, 1.0]])
    limits = np.array([0.8, 0.6])
    hidden = limits > X
    blanks = np.where(hidden, np.nan, X)
    rule = hs.DetectionLimits(lower=limits)
    nothing = np.where(hidden, -np.inf, X), np.where(hidden, np.inf, X)
    tables = [
        blanks,
        hs.IntervalData(*nothing),
        hs.IntervalData(*nothing, not_detected=hidden),
        hs.IntervalData(np.where(hidden, -np.inf, X), np.where(hidden, limits, X)),
    ]
    for table in tables:
        with warnings.catch_warnings():
            # That blank cells are taken to be hidden.
            warnings.simplefilter("ignore", hs.AssumptionWarning)
            fit = hs.fit(table, rule, transforms="log", random_state=0)
        own, again = fit.impute(), fit.impute(table)
        assert (own[hidden] < np.broadcast_to(limits, X.shape)[hidden]).all()
        np.testing.assert_allclose(again, own, rtol=1e-9)
        np.testing.assert_allclose(fit.score_rows(table), fit.score_rows(), rtol=1e-6)
        drawn = fit.draw_imputations(table, m=2, random_state=0)
        assert (drawn[:, hidden] < np.broadcast_to(limits, X.shape)[hidden]).all()


@pytest.mark.parametrize(
    ("rule", "transform"),
    [
        (hs.DetectionLimits(lower=0.0), "log"),
        (hs.SelfCensoring(hs.at_least(0.0)), "boxcox(0.5)"),
        (hs.DetectionLimits(lower=-1.0), "sqrt"),
        (hs.DetectionLimits(lower=np.r_[np.zeros(50), np.full(150, 0.6)][:, None]), "log"),
        (hs.rules({"x0": ">0"}), "log10"),
    ],
)
def test_a_rule_that_hides_where_a_scale_has_no_values_is_refused(rule, transform):
    X = np.exp(np.random.default_rng(0).normal(size=(200, 1)))
    X[X < 0.6] = np.nan
    with pytest.raises(hs.InputError, match=r"column x0: the rule says that the hidden value lies"):
        hs.fit(X, rule, transforms=transform)
    fit = hs.fit(X, rule, transforms=transform, missing_at_random=np.isnan(X), random_state=0)
    assert fit.status is hs.Status.CONVERGED


def test_names_of_another_table_are_checked():
    rng = np.random.default_rng(0)
    data = hs.IntervalData(*2 * [np.exp(rng.normal(size=(50, 2)))], ["a", "b"])
    fit = hs.fit(data, transforms={"a": "log"}, random_state=0)
    other = hs.IntervalData(data.lower[:, ::-1], data.upper[:, ::-1], ["b", "a"])
    with pytest.raises(hs.InputError, match="another order"):
        fit.impute(other)
    strange = hs.IntervalData(data.lower, data.upper, ["b", "c"])
    with pytest.raises(hs.InputError, match="the fit has a column 'a' where X has 'b'"):
        fit.impute(strange)
    assert fit.impute(data.lower[:3]).shape == (3, 2)


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
    rule = hs.RowTruncation(lambda Y: (Y > 0.5).all(axis=1))
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
    with pytest.raises(
        hs.InputError, match=r"column x0: on the scale .*no numbers in original units"
    ):
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
