"""Holes say in arrays what ``seen`` and ``hidden_region`` say in words."""

import numpy as np
import pytest
from scipy.special import expit

import halfseen as hs
from halfseen.missingness import Missingness
from halfseen.missingness.holes import SEEN, Scan, gather

N, D = 400, 4
# An oblique threshold, an anchor, a column that is never seen and one that depends on it.
V = np.array([[1.0, 0.5, 0.0, -2.0], [0, 0, 0, 0], [0, 0, 0, 0], [0.3, 0.0, 1.0, 0.0]])
SCAN = Scan(np.zeros(D), np.ones(D), np.full(D, 40.0))
LIMITS = np.random.default_rng(5).uniform(-2.0, 0.8, (N, D))
LIMITS[::7] = np.nan
RULES = {
    "sets": hs.SelfCensoring(
        [hs.at_least(0), hs.between(-1, 0.5), hs.between(-2, -1) | hs.at_least(0), hs.everything]
    ),
    "predicate": hs.SelfCensoring(hs.Predicate(lambda x: np.abs(x - 0.2) > 0.7)),
    "limits": hs.DetectionLimits(lower=-0.5, upper=[1.0, np.nan, 0.3, 2.0]),
    "limits by row": hs.DetectionLimits(lower=LIMITS, upper=1.5),
    "threshold": hs.LinearThreshold(V, [0.3, 0.0, -1.0, 0.2]),
    "winner": hs.SelfSelection(),
    "losers win": hs.SelfSelection([[3, 0], [1, 2]], largest=False),
    "one group": hs.SelfSelection([[2, 0, 1]]),
    "boxes": hs.Combined(
        [([2, 0], hs.SelfSelection()), ([3], hs.DetectionLimits(lower=LIMITS[:, :1]))]
    ),
    "parts": hs.Combined(
        [([3], hs.DetectionLimits(lower=0.1, upper=0.9)), ([2, 0], hs.LinearThreshold(-np.eye(2), 0))]
    ),
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


def _hide(rule, Y):
    return np.where(rule.seen(Y), Y, np.nan)


def _inside(holes, Y):
    """Whether each row of Y lies in its holes: slow and obvious."""
    sets = holes.sets
    inside = np.ones(len(Y), dtype=bool)
    for row, column in np.argwhere(holes.index != SEEN):
        k = holes.index[row, column]
        assert holes.set_column[k] == column
        pieces = range(sets.start[k], sets.start[k + 1])
        y = Y[row, column]
        inside[row] &= any(sets.lower[p] < y < sets.upper[p] for p in pieces)
    if holes.inequalities is not None:
        inside &= (holes.inequalities.slack(Y) >= 0).all(axis=1)
    return inside


def _elsewhere(X, rng):
    """Random hidden values for the same seen ones."""
    return np.where(np.isnan(X), rng.normal(0, 1.2, X.shape), X)


def test_the_hidden_values_lie_in_their_holes(rule, rng):
    Y = rng.normal(size=(N, D))
    X = _hide(rule, Y)
    holes = rule.holes(X, SCAN)
    np.testing.assert_array_equal(holes.index == SEEN, ~np.isnan(X))
    assert np.isnan(X).any()
    assert holes.shape == (N, D)
    assert _inside(holes, Y).all()


def test_a_row_lies_in_the_holes_iff_it_would_look_the_same(rule, rng):
    X = _hide(rule, rng.normal(size=(N, D)))
    holes, region = rule.holes(X, SCAN), rule.hidden_region(X)
    other = _elsewhere(X, rng)
    same = (rule.seen(other) == ~np.isnan(X)).all(axis=1)
    assert same.any()
    assert not same.all()
    np.testing.assert_array_equal(_inside(holes, other), same)
    np.testing.assert_array_equal(region.contains(other), same)


class Bare(Missingness):
    """A rule that says what it must, and nothing of its region."""

    width = None

    def __init__(self, rule):
        self.seen, self.holes, self.check = rule.seen, rule.holes, rule.check

    def seen(self, Y, random_state=None): ...

    def holes(self, X, scan): ...

    def check(self, X, names, at_random=None): ...


@pytest.mark.parametrize("name", ["sets", "limits", "limits by row", "losers win", "boxes"])
def test_the_region_of_a_rule_that_does_not_say_it_is_a_view_on_its_holes(name, rng):
    X = _hide(RULES[name], rng.normal(size=(N, D)))
    X[:5] = np.nan
    region, ref = Bare(RULES[name]).hidden_region(X), RULES[name].hidden_region(X)
    np.testing.assert_array_equal(region.hidden, np.isnan(X))
    other = _elsewhere(X, rng)
    np.testing.assert_array_equal(region.contains(other), ref.contains(other))
    for row, column in np.argwhere(np.isnan(X)):
        ends = [
            [(piece.lower, piece.upper) for piece in box.cell(row, column).pieces]
            for box in (region, ref)
        ]
        assert ends[0] == ends[1]


def test_what_arrays_cannot_tell_a_rule_has_to_say_itself():
    X = np.full((2, D), np.nan)
    with pytest.raises(hs.InputError, match="Bare binds the hidden cells of a row together"):
        Bare(RULES["threshold"]).hidden_region(X)


def test_regions_of_functions_are_looked_for_around_what_is_seen(rng):
    X = _hide(RULES["predicate"], rng.normal(size=(N, D)))
    other = _elsewhere(X, rng)
    region = Bare(RULES["predicate"]).hidden_region(X)
    np.testing.assert_array_equal(
        region.contains(other), RULES["predicate"].hidden_region(X).contains(other)
    )


def test_standardised_holes_hold_standardised_rows(rule, rng):
    centre, scale = np.array([1.0, -2.0, 0.3, 7.0]), np.array([0.5, 3.0, 1.7, 0.01])
    X = _hide(rule, rng.normal(size=(N, D)))
    other = _elsewhere(X, rng)
    holes = rule.holes(X, SCAN)
    moved = holes.standardised(centre, scale)
    np.testing.assert_array_equal(_inside(moved, (other - centre) / scale), _inside(holes, other))
    if moved.inequalities is not None:
        np.testing.assert_allclose(np.abs(moved.inequalities.V).max(axis=1), 1.0)


@pytest.mark.parametrize("rows", [slice(10, 50), np.array([7, 3, 3, 200])])
def test_holes_of_some_rows(rule, rng, rows):
    X = _hide(rule, rng.normal(size=(N, D)))
    other = _elsewhere(X, rng)
    holes = rule.holes(X, SCAN)
    some = holes.take(rows)
    assert some.shape == other[rows].shape
    np.testing.assert_array_equal(_inside(some, other[rows]), _inside(holes, other)[rows])


def test_cells_missing_at_random_may_be_anything(rule, rng):
    X = _hide(rule, rng.normal(size=(N, D)))
    mask = rng.random((N, D)) < 0.3
    X[mask] = np.nan
    holes = rule.holes(X, SCAN).with_missing_at_random(mask)
    np.testing.assert_array_equal(holes.index == SEEN, ~np.isnan(X))
    k = holes.index[mask]
    np.testing.assert_array_equal(holes.set_column[k], np.nonzero(mask)[1])
    assert (holes.sets.start[k + 1] - holes.sets.start[k] == 1).all()
    assert np.isneginf(holes.sets.lower[holes.sets.start[k]]).all()
    assert np.isposinf(holes.sets.upper[holes.sets.start[k]]).all()
    bound = holes.inequalities
    if bound is not None:
        assert (bound.sign[mask[:, bound.owner]] == 0).all()
        untold = ~mask[:, bound.owner]
        ref = np.where(np.isnan(X), -1, 1)[:, bound.owner]
        np.testing.assert_array_equal(bound.sign[untold], ref[untold])


def test_none_missing_at_random_changes_nothing(rng):
    holes = RULES["winner"].holes(_hide(RULES["winner"], rng.normal(size=(5, D))), SCAN)
    assert holes.with_missing_at_random(np.zeros((5, D), dtype=bool)) is holes


def test_convexity():
    X = np.full((1, D), np.nan)
    assert RULES["one group"].holes(X, SCAN).is_convex
    assert RULES["threshold"].holes(X, SCAN).is_convex
    assert not RULES["limits"].holes(X, SCAN).is_convex
    assert not RULES["parts"].holes(X, SCAN).is_convex


def test_thresholds_of_parts_become_inequalities_on_whole_rows(rng):
    X = _hide(RULES["two thresholds"], rng.normal(size=(6, D)))
    bound = RULES["two thresholds"].holes(X, SCAN).inequalities
    np.testing.assert_array_equal(
        bound.V, [[0, 1, 0, -1], [0, 0.5, 0, 1], [1, 0, -1, 0], [-1, 0, 1, 0]]
    )
    assert bound.owner.tolist() == [1, 3, 2, 0]
    np.testing.assert_array_equal(bound.sign, np.where(np.isnan(X), -1, 1)[:, bound.owner])


def test_a_probability_leaves_nodes_with_the_weight_of_being_hidden():
    rule = hs.Combined([([3, 1], hs.SelfCensoring([hs.everything, hs.Probability(expit)]))])
    holes = rule.holes(np.array([[0.0, np.nan, 0.0, 0.0]]), SCAN)
    k = holes.index[0, 1]
    nodes = slice(holes.sets.node_start[k], holes.sets.node_start[k + 1])
    x, w = holes.sets.node[nodes], holes.sets.weight[nodes]
    density = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    # By symmetry a standard normal is hidden half of the time.
    assert (w * density).sum() == pytest.approx(0.5, abs=1e-10)


@pytest.mark.parametrize("name", ["sets", "winner", "boxes", "threshold"])
def test_a_whole_table_has_a_set_that_no_cell_lies_in(name, rng):
    holes = RULES[name].holes(rng.normal(size=(N, D)), SCAN)
    assert (holes.index == SEEN).all()
    assert len(holes.sets) >= 1
    assert len(holes.sets) == holes.set_column.size


def test_truncation_has_no_holes():
    rule = hs.RowTruncation(lambda rows: rows[:, 0] > 0)
    assert (rule.holes(np.ones((3, D)), SCAN).index == SEEN).all()


def test_empty_tables_are_gathered_into_one_set():
    empty = hs.SelfSelection().holes(np.empty((0, D)), SCAN)
    assert empty.shape == (0, D)
    assert len(gather(empty.index, [], []).sets) == 1


def test_tables_become_intervals_under_a_rule_of_ones_own(rng):
    rule = hs.SelfCensoring(hs.Predicate(lambda x: x >= 0.25))
    X = _hide(rule, rng.normal(size=(N, D)))
    data = hs.IntervalData.from_table(X, Bare(rule))
    # Ends of sets that are functions are found by bisection.
    np.testing.assert_allclose(data.upper[np.isnan(X)], 0.25, rtol=1e-12)
    X = _hide(RULES["threshold"], rng.normal(size=(N, D)))
    with pytest.raises(hs.InputError, match="no intervals of their own"):
        hs.IntervalData.from_table(X, Bare(RULES["threshold"]))
