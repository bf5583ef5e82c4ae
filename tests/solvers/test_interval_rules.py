"""Tables of intervals together with a rule: what a cell says of itself goes first."""

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
    for data in (_intervals(X, not_detected=hidden), _intervals(X)):
        fit = hs.fit(data, RULE, random_state=0)
        assert _close(fit, reference)
        assert (fit.impute()[hidden] < np.broadcast_to([-0.3, -0.5], X.shape)[hidden]).all()


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


def test_linear_rules_go_with_intervals():
    rule = hs.LinearThreshold.heckman(1, [1.0, 0.0])
    X = hs.simulate(TRUTH, rule, 400, 0)
    reference = hs.fit(X, rule, random_state=0)
    data = _intervals(X, not_detected=np.isnan(X))
    assert _close(hs.fit(data, rule, random_state=0), reference)
    broken = X.copy()
    broken[0] = [-3.0, 1.0]
    with pytest.raises(hs.ContradictionError, match="row 0, column x1"):
        hs.fit(_intervals(broken), rule)


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
    # Other units inside, by which the starts differ in their last digits.
    np.testing.assert_allclose(free.gaussian.mean, reference.gaussian.mean, rtol=1e-6)
