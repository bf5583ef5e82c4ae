"""Rows that can be what a rule says of them pass; one that cannot is named."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import halfseen as hs
from halfseen.errors import ContradictionError
from halfseen.missingness.holes import SEEN, Holes, Inequalities, Scan, whole_line
from halfseen.missingness.resolve import SetTable, one_interval_each
from halfseen.solvers.full_information.feasible import cell_bounds, check_feasible

N, D, NAMES = 300, 4, ("height", "weight", "age", "dose")
SCAN = Scan(np.zeros(D), np.ones(D), np.full(D, 40.0))
LIMITS = np.random.default_rng(5).uniform(-2.0, 0.8, (N, D))
LIMITS[::7] = np.nan
V = np.array([[1.0, 0.5, 0.0, -2.0], [0, 0, 0, 0], [0, 0, 0, 0], [0.3, 0.0, 1.0, 0.0]])
OBLIQUE = np.array(
    [[1.0, 0.5, -0.3, 0.2], [0.4, -1.0, 0.6, 0.0], [0.0, 0.7, 1.0, -0.5], [-0.6, 0.2, 0.3, 1.0]]
)
RULES = {
    "sets": hs.SelfCensoring(
        [hs.at_least(0), hs.between(-1, 0.5), hs.between(-2, -1) | hs.at_least(0), hs.everything]
    ),
    "predicate": hs.SelfCensoring(hs.Predicate(lambda x: np.abs(x - 0.2) > 0.7)),
    "probability": hs.SelfCensoring(hs.Probability(lambda x: expit(2.0 * x))),
    "limits": hs.DetectionLimits(lower=-0.5, upper=[1.0, np.nan, 0.3, 2.0]),
    "limits by row": hs.DetectionLimits(lower=LIMITS, upper=1.5),
    "threshold": hs.LinearThreshold(V, [0.3, 0.0, -1.0, 0.2]),
    "four thresholds": hs.LinearThreshold(OBLIQUE, [0.1, -0.2, 0.3, 0.0]),
    "larger of two": hs.LinearThreshold.larger_of(0, 2, D),
    "winner": hs.SelfSelection(),
    "losers win": hs.SelfSelection([[3, 0], [1, 2]], largest=False),
    "boxes": hs.Combined(
        [([2, 0], hs.SelfSelection()), ([3], hs.DetectionLimits(lower=LIMITS[:, :1]))]
    ),
    "parts": hs.Combined([
        ([3], hs.DetectionLimits(lower=0.1, upper=0.9)),
        ([2, 0], hs.LinearThreshold(-np.eye(2), 0)),
        ([1], hs.SelfCensoring(hs.Probability(lambda x: expit(-x)))),
    ]),
    "two thresholds": hs.Combined(
        [
            ([1, 3], hs.LinearThreshold([[1.0, -1.0], [0.5, 1.0]], [0.2, 0.1])),
            ([2, 0], hs.LinearThreshold.larger_of(0, 1, 2)),
        ]
    ),
}  # fmt: skip


@pytest.fixture(params=RULES.values(), ids=RULES.keys())
def rule(request):
    return request.param


def _hide(rule, seed=3):
    Y = np.random.default_rng(seed).normal(size=(N, D))
    return np.where(rule.seen(Y, seed), Y, np.nan)


def test_rows_that_a_rule_hid_are_feasible(rule):
    X = _hide(rule)
    check_feasible(X, rule.holes(X, SCAN), NAMES)


def test_rows_with_cells_missing_at_random_are_feasible(rule):
    X = _hide(rule)
    mask = np.random.default_rng(6).random(X.shape) < 0.3
    X[mask] = np.nan
    check_feasible(X, rule.holes(X, SCAN).with_missing_at_random(mask), NAMES)


def test_rows_far_from_what_is_usual_are_feasible(rule):
    # Ten standard deviations away on alternate sides.
    Y = np.random.default_rng(4).normal([10.0, -10.0, 10.0, -10.0], 1.0, (N, D))
    X = np.where(rule.seen(Y, 4), Y, np.nan)
    check_feasible(X, rule.holes(X, SCAN), NAMES)


def _threshold_holes(V, b, sign, hidden):
    sign = np.array(sign, dtype=np.int8)
    index = np.where(hidden, np.arange(D), SEEN).astype(np.int32)
    bound = Inequalities(
        np.array(V, dtype=float), np.array(b, dtype=float), sign, np.zeros(len(b), dtype=np.intp)
    )
    return Holes(index, SetTable.join([whole_line()] * D), np.arange(D), bound)


def test_narrow_regions_are_found_by_a_linear_programme():
    # A slab 0.001 wide (the relaxation wants 0.05 on both sides), and a long thin wedge.
    hidden = np.array([[True, True, True, False]] * 2)
    V = [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, -1.0, 0.01, 0.0], [1.0, -1.0, -0.01, 0]]
    sign = [[1, -1, 0, 0], [0, 0, 1, -1]]
    X = np.array([[np.nan, np.nan, np.nan, 0.3]] * 2)
    check_feasible(X, _threshold_holes(V, [2.0, 1.999, 0.0, 0.0], sign, hidden), NAMES)
    # The slab turned inside out.
    with pytest.raises(ContradictionError, match="row 0"):
        check_feasible(X, _threshold_holes(V, [2.0, 2.001, 0.0, 0.0], sign, hidden), NAMES)


@pytest.mark.parametrize("row", [0, 41])
def test_a_row_without_room_is_named(row):
    # y₀ + y₁ <= −1 and y₀ + y₁ >= 1.
    hidden = np.zeros((60, D), dtype=bool)
    hidden[:, :2] = True
    sign = np.zeros((60, 2))
    sign[:, 0] = 1
    sign[row, 1] = -1
    holes = _threshold_holes([[1.0, 1, 0, 0], [1.0, 1, 0, 0]], [-1.0, 1.0], sign, hidden)
    X = np.where(hidden, np.nan, 0.5)
    with pytest.raises(
        ContradictionError, match=rf"row {row}: no values .*\(height, weight\).* contradicts"
    ):
        check_feasible(X, holes, NAMES)
    with pytest.raises(ContradictionError, match=f"row {row + 1000}: .* contradicts"):
        check_feasible(X, holes, NAMES, 1000)


def test_a_threshold_that_contradicts_a_row_is_named():
    # As a user meets it: x₁ is shown iff x₀ <= 0, x₂ iff x₀ >= 0, x₀ never. A row that hides both has no
    # x₀; no seen value says so, only the hidden one.
    rule = hs.LinearThreshold(
        [[0.0, 0, 0, 0], [1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 0, 0, 0]], [-1.0, 0, 0, 0]
    )
    Y = np.random.default_rng(8).normal(size=(50, D))
    X = np.where(rule.seen(Y), Y, np.nan)
    X[17, 1:3] = np.nan
    rule.check(X, NAMES)
    with pytest.raises(ContradictionError, match=r"row 17: .* contradicts the thresholds"):
        check_feasible(X, rule.holes(X, SCAN), NAMES)
    # Unless one of them is missing for another reason.
    mask = np.zeros(X.shape, dtype=bool)
    mask[17, 2] = True
    check_feasible(X, rule.holes(X, SCAN).with_missing_at_random(mask), NAMES)


def test_a_set_that_contradicts_an_inequality_is_named():
    # y₀ + y₁ >= 1 with both below 0.4.
    holes = _threshold_holes(
        [[1.0, 1.0, 0, 0]], [1.0], [[-1]], np.array([[True, True, False, False]])
    )
    below = one_interval_each(np.full(D, -np.inf), np.full(D, 0.4))
    narrow = replace(holes, sets=below)
    X = np.array([[np.nan, np.nan, 0.0, 0.0]])
    check_feasible(X, holes, NAMES)
    with pytest.raises(ContradictionError, match=r"row 0: .* contradicts"):
        check_feasible(X, narrow, NAMES)


def test_bounds_of_cells():
    rule = hs.SelfCensoring([hs.between(-1, 0.5), hs.at_least(0), hs.between(0, 1) | hs.between(2, 3),
                             hs.Probability(expit)])  # fmt: skip
    X = np.array([[np.nan, np.nan, np.nan, np.nan], [0.0, 1.0, 2.5, 0.0]])
    lower, upper = cell_bounds(rule.holes(X, SCAN))
    np.testing.assert_array_equal(lower[0], [-np.inf, -np.inf, -np.inf, -np.inf])
    np.testing.assert_array_equal(upper[0], [np.inf, 0.0, np.inf, np.inf])
    data = hs.IntervalData([[1.0, -np.inf]], [[2.0, 3.0]])
    lower, upper = cell_bounds(data.holes())
    np.testing.assert_array_equal(lower, [[1.0, -np.inf]])
    np.testing.assert_array_equal(upper, [[2.0, 3.0]])
