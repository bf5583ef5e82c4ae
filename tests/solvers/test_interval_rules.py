"""Tables of intervals together with a rule: what a cell says of itself goes first."""

import warnings

import numpy as np
import pytest

import halfseen as hs

TRUTH = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
RULE = hs.DetectionLimits(lower=[-0.3, -0.5])


def _table(n=300, seed=0):
    X = hs.simulate(TRUTH, RULE, n, seed)
    return X, np.isnan(X)


def _intervals(X, **more):
    return hs.IntervalData(
        np.where(np.isnan(X), -np.inf, X), np.where(np.isnan(X), np.inf, X), **more
    )


def _close(a, b):
    # The same likelihood from other starts: apart by Monte-Carlo errors, a tenth of a standard error.
    scale = a.uncertainty.mean
    return (np.abs(a.gaussian.mean - b.gaussian.mean) < 0.3 * scale).all()


def test_not_detected_and_blank_cells_are_hidden_by_the_rule():
    X, hidden = _table()
    reference = hs.fit(X, RULE, random_state=0)
    with pytest.warns(
        hs.AssumptionWarning, match=r"taken to be hidden by the rule, in column x0 \(\d+\)"
    ):
        hs.fit(_intervals(X), RULE, random_state=0)
    nobody = np.zeros(X.shape, dtype=bool)
    for data in (_intervals(X, not_detected=hidden), _intervals(X)):
        fit = hs.fit(data, RULE, missing_at_random=nobody, random_state=0)
        assert _close(fit, reference)
        assert (fit.impute()[hidden] < np.broadcast_to([-0.3, -0.5], X.shape)[hidden]).all()


def _without_limits():
    """Blank cells below limits that are there in some cells only, and where there is none."""
    X, hidden = _table()
    limits = np.broadcast_to([-0.3, -0.5], X.shape).copy()
    limits[:50, 0], limits[:, 1] = np.nan, np.nan
    lost = np.zeros_like(hidden)
    lost[:7, 0], lost[20:60, 1] = True, True
    return _intervals(np.where(hidden | lost, np.nan, X)), limits


def _said_of_blanks(data, rule, method="full"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hs.fit(data, rule, method, random_state=0)
    return [str(w.message) for w in caught if "blank cells" in str(w.message)]


@pytest.mark.parametrize("method", ["full", "pairwise"])
def test_only_cells_that_the_rule_hides_are_said_to_be_hidden_by_it(method):
    data, limits = _without_limits()
    with_limit = int((data.blank & ~np.isnan(limits)).sum())
    (said,) = _said_of_blanks(data, hs.DetectionLimits(lower=limits), method)
    assert f"in column x0 ({with_limit}). " in said
    assert 0 < with_limit < data.blank[:, 0].sum()
    assert "x1" not in said
    # What it tells to do can be done.
    assert ("method='full'" in said) == (method == "pairwise")


def test_cells_that_no_rule_hides_are_not_said_to_be_hidden():
    data, _ = _without_limits()
    lower = hs.DetectionLimits(lower=-0.3)
    for rule in (
        hs.Combined([([0], lower), ([1], hs.SelfCensoring(hs.everything))]),
        hs.SelfCensoring([hs.at_least(-0.3), hs.Predicate(lambda x: x == x)]),
    ):
        (said,) = _said_of_blanks(data, rule)
        assert f"in column x0 ({data.blank[:, 0].sum()}). " in said


@pytest.mark.parametrize("method", ["truncation", "truncation_psgd"])
def test_methods_that_ignore_hidden_cells_say_nothing_of_blank_ones(method):
    assert _said_of_blanks(_intervals(_table()[0]), RULE, method) == []


def test_blank_cells_of_rules_that_bind_columns_are_spoken_of():
    rule = hs.LinearThreshold.heckman(1, [1.0, 0.0])
    X = hs.simulate(TRUTH, rule, 400, 0)
    (said,) = _said_of_blanks(_intervals(X), rule)
    assert f"in column x1 ({np.isnan(X).sum()}). " in said
    half = hs.RowTruncation(lambda Y: Y[:, 0] > 0)
    (said,) = _said_of_blanks(_intervals(hs.simulate(TRUTH, half, 400, 0)), half, "truncated_sgd")
    assert "Leave these rows out" in said


def test_limits_for_other_rows_are_refused_before_anything_is_said():
    data, limits = _without_limits()
    with pytest.raises(hs.InputError, match="given for 299 rows, but the data have 300"):
        hs.fit(data, hs.DetectionLimits(lower=limits[1:]))


def test_blank_cells_among_marked_ones_are_missing_at_random():
    X, hidden = _table()
    lost = np.zeros_like(hidden)
    lost[:60, 0] = True
    data = _intervals(np.where(lost, np.nan, X), not_detected=hidden & ~lost)
    with pytest.warns(
        hs.AssumptionWarning, match="blank cells in column x0 are taken to be missing"
    ):
        fit = hs.fit(data, RULE, random_state=0)
    stated = hs.fit(data, RULE, missing_at_random=lost, random_state=0)
    assert (fit.gaussian.mean == stated.gaussian.mean).all()
    reference = hs.fit(np.where(lost, np.nan, X), RULE, missing_at_random=lost, random_state=0)
    assert _close(stated, reference)
    # Taken as hidden, they would pull the mean down.
    wrong = hs.fit(data, RULE, missing_at_random=np.zeros_like(lost), random_state=0)
    assert wrong.gaussian.mean[0] < fit.gaussian.mean[0] - 2.0 * fit.uncertainty.mean[0]


def test_a_cell_with_its_own_interval_keeps_it():
    X, hidden = _table()
    lower, upper = np.where(hidden, -np.inf, X), np.where(hidden, np.inf, X)
    told = hidden.copy()
    told[150:] = False
    upper[told] = np.broadcast_to([-0.3, -0.5], X.shape)[told]
    data = hs.IntervalData(lower, upper, not_detected=hidden & ~told)
    fit = hs.fit(data, RULE, random_state=0)
    assert _close(fit, hs.fit(X, RULE, random_state=0))


def test_told_cells_above_and_between_keep_both_ends():
    X = TRUTH.sample(400, np.random.default_rng(3))
    lower, upper = X.copy(), X.copy()
    above, between = X[:, 0] > 0.8, np.abs(X[:, 1]) < 0.4
    lower[above, 0], upper[above, 0] = 0.8, np.inf
    lower[between, 1], upper[between, 1] = -0.4, 0.4
    low = X[:, 1] < -1.0
    lower[low, 1], upper[low, 1] = -np.inf, -1.0
    reference = hs.fit(hs.IntervalData(lower, upper), random_state=0)
    upper[low, 1] = np.inf
    lost = np.zeros(X.shape, dtype=bool)
    lost[low, 1] = True
    data = hs.IntervalData(lower, upper, not_detected=lost)
    fit = hs.fit(data, hs.DetectionLimits(lower=[np.nan, -1.0]), random_state=0)
    assert _close(fit, reference)
    filled = fit.impute()
    assert (filled[above, 0] >= 0.8).all()
    assert (np.abs(filled[between, 1]) <= 0.4).all()


def test_not_detected_means_below():
    X = TRUTH.sample(300, np.random.default_rng(4))
    low, high = X[:, :1] < -0.8, X[:, :1] > 1.0
    hidden = low | high
    lower, upper = np.where(hidden, -np.inf, X[:, :1]), np.where(hidden, np.inf, X[:, :1])
    lower[high], upper[high] = 1.0, np.inf
    data = hs.IntervalData(lower, upper, ["a"], not_detected=low)
    fit = hs.fit(data, hs.DetectionLimits(lower=-0.8, upper=1.0), random_state=0)
    filled = fit.impute()
    assert (filled[low] < -0.8).all()
    assert (filled[high] > 1.0).all()
    with pytest.raises(hs.InputError, match=r"column a: .*not detected, but not at which limit"):
        hs.fit(data, hs.DetectionLimits(upper=1.0))


def test_next_to_nothing_is_a_value():
    y = np.round(np.exp(np.random.default_rng(0).normal(size=(200, 1))), 2)
    upper = y.copy()
    upper[:40] = np.nextafter(upper[:40], np.inf)
    data = hs.IntervalData(y, upper)
    for transform in ("none", "log"):
        fit = hs.fit(data, transforms=transform, random_state=0)
        reference = hs.fit(y, transforms=transform, random_state=0)
        np.testing.assert_allclose(fit.gaussian.mean, reference.gaussian.mean, rtol=1e-12)
        np.testing.assert_allclose(fit.impute(), y, rtol=1e-12)
        assert np.isfinite(fit.log_likelihood.value)


def test_clipped_values_lie_beyond_their_limits():
    X = np.clip(TRUTH.sample(800, np.random.default_rng(5)), -0.7, 0.9)
    rule = hs.DetectionLimits(lower=-0.7, upper=0.9)
    data = hs.IntervalData(X, X).saturated(rule)
    assert (data.lower[X == 0.9] == 0.9).all()
    assert np.isposinf(data.upper[X == 0.9]).all()
    assert np.isneginf(data.lower[X == -0.7]).all()
    fit = hs.fit(data, random_state=0)
    assert (np.abs(fit.gaussian.mean - TRUTH.mean) < 4.5 * fit.uncertainty.mean).all()
    by_row = hs.DetectionLimits(upper=np.full(X.shape, 0.9))
    assert (hs.IntervalData(X, X).saturated(by_row).seen == (X < 0.9)).all()
    with pytest.raises(hs.InputError, match="needs a rule by column"):
        hs.IntervalData(X, X).saturated(hs.SelfSelection())
    with pytest.raises(hs.InputError, match="column x0: saturated needs a lower and an upper"):
        hs.IntervalData(X, X).saturated(hs.SelfCensoring(hs.at_most(0) | hs.at_least(0.5)))


def test_a_limit_out_of_this_world_is_harmless():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 2))
    Z[:, 1] += Z[:, 0]
    Y = np.where(Z < 0, np.nan, Z)
    reference = hs.fit(Y, hs.DetectionLimits(lower=0), random_state=0)
    for upper in (10.0, 1e20, 1e100):
        fit = hs.fit(Y, hs.DetectionLimits(lower=0, upper=upper), random_state=0)
        assert _close(fit, reference)


def test_linear_rules_go_with_intervals():
    rule = hs.LinearThreshold.heckman(1, [1.0, 0.0])
    X = hs.simulate(TRUTH, rule, 400, 0)
    reference = hs.fit(X, rule, random_state=0)
    data = _intervals(X, not_detected=np.isnan(X))
    assert _close(hs.fit(data, rule, random_state=0), reference)
    broken = X.copy()
    broken[0] = [-3.0, 1.0]
    with pytest.raises(hs.ContradictionError, match="row 0, column x1"):
        hs.fit(_intervals(broken), rule, missing_at_random=np.zeros(X.shape, dtype=bool))


def test_what_needs_a_rule_says_so():
    X, hidden = _table(50)
    data = _intervals(X, names=["lead", "zinc"], not_detected=hidden)
    with pytest.raises(hs.InputError, match=r"row \d+, column lead: .*not at which limit"):
        hs.fit(data)
    with pytest.raises(hs.InputError, match=r"column zinc: .*not at which limit"):
        hs.fit(data, hs.DetectionLimits(lower={"lead": -0.3}))
    with pytest.raises(hs.InputError, match="IntervalData says of hidden cells alone"):
        hs.fit(data, RULE, random_state=0).bootstrap(2, "parametric")


def test_not_detected_is_checked():
    ends = [[-np.inf, 1.0]], [[np.inf, 1.0]]
    data = hs.IntervalData(*ends, not_detected=[[True, False]], labels=["s1"])
    assert repr(data) == "IntervalData(1 row, 2 columns; cells: 1 seen, 1 not detected)"
    assert not data.blank.any()
    assert data.take([0]).labels == ("s1",)
    assert data.take([0]).not_detected[0, 0]
    with pytest.raises(hs.InputError, match="row 0, column x1: not_detected is for cells without"):
        hs.IntervalData(*ends, not_detected=[[True, True]])
    with pytest.raises(hs.InputError, match=r"boolean array of shape \(1, 2\)"):
        hs.IntervalData(*ends, not_detected=[True])
    with pytest.raises(hs.InputError, match="labels must be 1, one for each row; got 2"):
        hs.IntervalData(*ends, labels=["a", "b"])


def test_missing_at_random_overrides_an_interval():
    X, hidden = _table(200)
    lower = np.where(hidden, -np.inf, X)
    upper = np.where(hidden, [-0.3, -0.5], X)
    data = hs.IntervalData(lower, upper)
    free = hs.fit(data, missing_at_random=hidden, random_state=0)
    reference = hs.fit(_intervals(X), random_state=0)
    # Other units inside, so that climbs start elsewhere, and end within √2e-4 = 0.014 standard errors of
    # the same top, each.
    gap = np.abs(free.gaussian.mean - reference.gaussian.mean)
    assert (gap < 0.028 * reference.standard_errors.mean).all()
