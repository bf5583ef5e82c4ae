import numpy as np
import pytest

import halfseen as hs
from halfseen.missingness.holes import Scan

Y = np.array([[3.0, 1.0, 2.0, 5.0], [0.0, 4.0, 9.0, 6.0], [2.0, 2.0, -1.0, 7.0]])
NAMES = ("a", "b", "c", "d")
ANYWHERE = Scan(np.zeros(4), np.ones(4), np.full(4, 50.0))


def _naive(row, group, largest):
    """Mask of one row: what a reader of the docstring would write."""
    best = max(row[k] for k in group) if largest else min(row[k] for k in group)
    winner = next(k for k in group if row[k] == best)
    return [k == winner or k not in group for k in range(len(row))]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("group", [[0, 1, 2, 3], [2, 0], [1, 3, 2]])
def test_only_the_winner_of_a_group_is_shown(largest, group):
    ref = [_naive(row, group, largest) for row in Y]
    np.testing.assert_array_equal(hs.SelfSelection([group], largest).seen(Y), ref)


def test_without_groups_all_columns_compete():
    np.testing.assert_array_equal(
        hs.SelfSelection().seen(Y), hs.SelfSelection([[0, 1, 2, 3]]).seen(Y)
    )


def test_of_equal_values_one_is_shown():
    assert hs.SelfSelection([[0, 1]]).seen(Y)[2].tolist() == [True, False, True, True]
    assert hs.SelfSelection([[1, 0]]).seen(Y)[2].tolist() == [False, True, True, True]


def test_two_columns_are_a_linear_threshold(rng):
    rows = rng.normal(size=(500, 3))
    ref = hs.LinearThreshold.larger_of(0, 2, 3).seen(rows)
    np.testing.assert_array_equal(hs.SelfSelection([[0, 2]]).seen(rows), ref)


def test_hidden_region_lies_below_the_winner():
    rule = hs.SelfSelection([[0, 1], [2, 3]])
    X = np.where(rule.seen(Y), Y, np.nan)
    region = rule.hidden_region(X)
    np.testing.assert_array_equal(region.hidden, np.isnan(X))
    assert region.cell(0, 1) == hs.at_most(3.0)
    assert region.cell(1, 3) == hs.at_most(9.0)
    assert region.contains(Y).all()
    wrong = Y.copy()
    wrong[1, 0] = 4.5
    assert region.contains(wrong).tolist() == [True, False, True]
    above = hs.SelfSelection([[0, 1]], largest=False).hidden_region([[np.nan, 1.0]])
    assert above.cell(0, 0) == hs.at_least(1.0)


def test_without_a_winner_a_cell_may_be_anything():
    rule = hs.SelfSelection([[0, 1]])
    X = np.array([[np.nan, np.nan, np.nan, 1.0], [np.nan, 2.0, 1.0, 1.0]])
    region, holes = rule.hidden_region(X), rule.holes(X, ANYWHERE)
    assert region.cell(0, 0) == region.cell(0, 2) == hs.everything
    sets, index = holes.sets, holes.index
    assert index[1].tolist() == [0, -1, -1, -1]
    assert sets.upper[index[1, 0]] == 2.0
    assert np.isneginf(sets.lower).all()
    assert np.isposinf(sets.upper[index[0, :3]]).all()
    np.testing.assert_array_equal(holes.set_column[index[0, :3]], [0, 1, 2])


def test_names_are_matched_with_columns():
    rule = hs.SelfSelection([["c", "a"], ["d", "b"]]).for_columns(NAMES)
    assert rule.groups == ((2, 0), (3, 1))
    smallest = hs.SelfSelection([["c", "a"]], largest=False).for_columns(NAMES)
    assert not smallest.largest
    plain = hs.SelfSelection()
    assert plain.for_columns(NAMES) is plain


def test_simulate_hides_all_but_the_winner(three):
    X, Z = hs.simulate(three, hs.SelfSelection(), 200, return_complete=True)
    assert (np.isfinite(X).sum(axis=1) == 1).all()
    np.testing.assert_array_equal(np.nanmax(X, axis=1), Z.max(axis=1))


class TestCheck:
    rule = hs.SelfSelection([[0, 1], [3, 2]])
    fine = np.array([[1.0, np.nan, np.nan, 4.0], [np.nan, 2.0, 1.0, np.nan]])

    def _refused(self, X, sentence, at_random=None, rule=None):
        with pytest.raises(hs.ContradictionError, match=sentence):
            (rule or self.rule).check(X, NAMES, at_random)

    def test_what_the_rule_shows_is_fine(self):
        self.rule.check(self.fine, NAMES)
        self.rule.check(self.fine.astype(np.float32), NAMES)

    def test_two_winners_are_named(self):
        X = self.fine.copy()
        X[1, 3] = 2.5
        self._refused(X, r"row 1: d \(2\.5\), c \(1\) are seen, .*largest of d, c \(1 such rows\)")

    def test_no_winner_is_named(self):
        X = self.fine.copy()
        X[1, 1] = np.nan
        self._refused(X, r"row 1: none of a, b is seen, but the rule shows the largest")
        mask = np.zeros(X.shape, dtype=bool)
        mask[1, 0] = True
        # The other took part, and must then have won.
        self._refused(X, "row 1: none of a, b", mask)
        mask[1, 1] = True
        self.rule.check(X, NAMES, mask)

    def test_columns_in_no_group_are_always_seen(self):
        rule = hs.SelfSelection([[0, 1]], largest=False)
        X = np.array([[1.0, np.nan, 2.0, 3.0], [1.0, np.nan, 2.0, np.nan]])
        self._refused(X, r"row 1, column d: the value is hidden, but the rule never", rule=rule)
        rule.check(X, NAMES, np.isnan(X))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hs.SelfSelection("ab"), "list of lists of columns"),
        (lambda: hs.SelfSelection(3), "list of lists of columns"),
        (lambda: hs.SelfSelection([]), "at least one group"),
        (lambda: hs.SelfSelection([0, 1]), "group 0 must be a list of columns; got 0"),
        (lambda: hs.SelfSelection(["ab"]), "group 0 must be a list of columns; got 'ab'"),
        (lambda: hs.SelfSelection([[0]]), r"group 0 must have at least 2 columns; got \[0\]"),
        (lambda: hs.SelfSelection([[0, 1], [1, 2]]), "column 1 stands in group 0 and again in gr"),
        (lambda: hs.SelfSelection([["a", "a"]]), "column 'a' stands in group 0 and again"),
        (lambda: hs.SelfSelection([[0, "a"]]), "all by position or all by name"),
        (lambda: hs.SelfSelection([[0, 1], ["a", "b"]]), "all by position or all by name"),
        (lambda: hs.SelfSelection([[0, -1]]), "counted from 0; group 0 holds -1"),
        (lambda: hs.SelfSelection([[0, 1.0]]), "counted from 0; group 0 holds 1.0"),
        (lambda: hs.SelfSelection([[False, True]]), "counted from 0; group 0 holds False"),
        (lambda: hs.SelfSelection(largest="no"), "True or False"),
        (lambda: hs.SelfSelection().seen([[1.0]]), "at least 2 columns; the data have 1"),
        (lambda: hs.SelfSelection([[0, 4]]).seen(Y), "speaks of column 4, but the data have 4 col"),
        (lambda: hs.SelfSelection([[0, 4]]).for_columns(NAMES), "speaks of column 4"),
        (lambda: hs.SelfSelection([["a", "z"]]).for_columns(NAMES), "'z', but the col.* a, b, c"),
        (lambda: hs.SelfSelection([["a", "b"]]).seen(Y), "by name .*Use positions, or match"),
    ],
)
def test_bad_groups_get_a_sentence(make, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        make()


def test_repr_reads_like_the_call():
    assert repr(hs.SelfSelection()) == "SelfSelection()"
    rule = hs.SelfSelection([["a", "b"]], largest=False)
    assert repr(rule) == "SelfSelection([['a', 'b']], largest=False)"
