import numpy as np
import pytest

import halfseen as hs
from halfseen.missingness import Box, Parts
from halfseen.missingness.holes import Scan

NAMES = tuple("abcdefgh")


def _rule():
    """Six of eight columns have rules, in no order; b and h have none."""
    return hs.Combined(
        [
            ([6, 0], hs.DetectionLimits(lower=[0.2, -0.3])),
            ([3, 2], hs.LinearThreshold([[1.0, 0.5], [0.0, 1.0]], [0.4, 0.6])),
            ([5, 4], hs.SelfSelection()),
        ]
    )


@pytest.fixture
def rows(rng):
    return rng.normal(size=(300, 8))


def test_each_part_sees_its_own_columns(rows):
    mask = _rule().seen(rows)
    np.testing.assert_array_equal(mask[:, 6], rows[:, 6] >= 0.2)
    np.testing.assert_array_equal(mask[:, 0], rows[:, 0] >= -0.3)
    np.testing.assert_array_equal(mask[:, 3], rows[:, 3] + 0.5 * rows[:, 2] <= 0.4)
    np.testing.assert_array_equal(mask[:, 2], rows[:, 2] <= 0.6)
    np.testing.assert_array_equal(mask[:, 5], rows[:, 5] >= rows[:, 4])
    np.testing.assert_array_equal(mask[:, 4], ~mask[:, 5])
    assert mask[:, [1, 7]].all()


def test_limits_by_row_are_those_of_the_rows_of_the_part(rows, rng):
    limits = rng.normal(size=(300, 2))
    rule = hs.Combined([([4, 1], hs.DetectionLimits(lower=limits))])
    mask = rule.seen(rows)
    np.testing.assert_array_equal(mask[:, [4, 1]], rows[:, [4, 1]] >= limits)
    X = np.where(mask, rows, np.nan)
    rule.check(X, NAMES)
    region = rule.hidden_region(X)
    row = int(np.flatnonzero(~mask[:, 4])[0])
    assert region.cell(row, 4) == ~hs.at_least(limits[row, 0])
    holes = rule.holes(X, Scan(np.zeros(8), np.ones(8), np.full(8, 50.0)))
    assert holes.sets.upper[holes.index[row, 4]] == limits[row, 0]


def test_functions_are_scanned_where_their_columns_lie():
    narrow = hs.SelfCensoring(hs.Predicate(lambda x: np.abs(x - 5000.0) < 0.1))
    rule = hs.Combined([([2], narrow)])
    scan = Scan(np.array([0.0, 0.0, 5000.0]), np.array([1.0, 1.0, 0.05]), np.full(3, 40.0))
    holes = rule.holes(np.array([[0.0, 0.0, np.nan]]), scan)
    np.testing.assert_allclose(holes.sets.upper[0], 4999.9)


def test_parts_toss_coins_of_their_own():
    half = hs.SelfCensoring(hs.Probability(lambda x: np.full_like(x, 0.5)))
    mask = hs.Combined([([0], half), ([1], half)]).seen(np.zeros((400, 2)), 7)
    # 400 fair coins agree in half of the rows; ten standard deviations are 100.
    assert abs((mask[:, 0] == mask[:, 1]).sum() - 200) < 100


def test_region_holds_the_rows_with_the_same_pattern(rows, rng):
    rule = _rule()
    mask = rule.seen(rows)
    X = np.where(mask, rows, np.nan)
    region = rule.hidden_region(X)
    assert isinstance(region, Parts)
    np.testing.assert_array_equal(region.hidden, ~mask)
    assert region.contains(rows).all()
    other = np.where(mask, rows, rng.normal(size=rows.shape))
    same = (rule.seen(other) == mask).all(axis=1)
    assert 20 < same.sum() < 280
    np.testing.assert_array_equal(region.contains(other), same)
    with pytest.raises(hs.InputError, match=r"shape \(300, 8\) are needed; got \(2, 8\)"):
        region.contains(rows[:2])


def test_parts_that_are_boxes_make_a_box(rows):
    rule = hs.Combined([([6, 0], hs.DetectionLimits(lower=0.2)), ([5, 4], hs.SelfSelection())])
    X = np.where(rule.seen(rows), rows, np.nan)
    X[0, 1] = np.nan
    region = rule.hidden_region(X)
    assert isinstance(region, Box)
    assert region.contains(rows).all()
    assert region.cell(0, 1) == hs.everything
    assert region.cell(0, 6) == ~hs.at_least(0.2)


def test_rules_may_be_combined_twice(rows):
    parts = _rule().parts
    inner = hs.Combined([([1, 0], parts[0][1]), ([2, 3], parts[1][1])])
    rule = hs.Combined([([0, 6, 3, 2], inner), ([5, 4], hs.SelfSelection())])
    np.testing.assert_array_equal(rule.seen(rows), _rule().seen(rows))
    X = np.where(rule.seen(rows), rows, np.nan)
    assert rule.hidden_region(X).contains(rows).all()


def test_names_are_matched_in_the_table_and_in_the_parts(rows):
    named = hs.Combined(
        [
            (["g", "a"], hs.DetectionLimits(lower={"a": -0.3, "g": 0.2})),
            (["d", "c"], hs.LinearThreshold([[1.0, 0.5], [0.0, 1.0]], [0.4, 0.6])),
            (["e", "f"], hs.SelfSelection([["f", "e"]])),
        ]
    )
    rule = named.for_columns(NAMES)
    assert [columns for columns, _ in rule.parts] == [(6, 0), (3, 2), (4, 5)]
    np.testing.assert_array_equal(rule.seen(rows), _rule().seen(rows))
    # Positions in the table, names in a part: they meet where the table has names.
    mixed = hs.Combined([([6, 0], hs.DetectionLimits(lower={"a": -0.3}))]).for_columns(NAMES)
    np.testing.assert_array_equal(mixed.seen(rows)[:, 0], rows[:, 0] >= -0.3)
    assert mixed.seen(rows)[:, 6].all()


def test_simulate_takes_combined_rules():
    g = hs.Gaussian(np.zeros(8), np.eye(8))
    X, Z = hs.simulate(g, _rule(), 100, 1, return_complete=True)
    np.testing.assert_array_equal(np.isfinite(X), _rule().seen(Z))


class TestCheck:
    def _table(self, rows):
        return np.where(_rule().seen(rows), rows, np.nan)

    def test_what_the_rules_show_is_fine(self, rows):
        _rule().check(self._table(rows), NAMES)

    def test_a_part_names_the_columns_of_the_table(self, rows):
        X = self._table(rows)
        X[7, 6] = 0.1
        with pytest.raises(hs.ContradictionError, match=r"row 7, column g: the value 0\.1 is seen"):
            _rule().check(X, NAMES)
        X = self._table(rows)
        X[3, 4:6] = np.nan
        with pytest.raises(hs.ContradictionError, match="row 3: none of f, e is seen"):
            _rule().check(X, NAMES)

    def test_cells_missing_at_random_are_those_of_the_part(self, rows):
        X = self._table(rows)
        X[3, 4:6] = np.nan
        mask = np.zeros(X.shape, dtype=bool)
        mask[3, 4:6] = True
        _rule().check(X, NAMES, mask)

    def test_columns_that_no_part_mentions_are_always_seen(self, rows):
        X = self._table(rows)
        X[5, 7] = np.nan
        with pytest.raises(hs.ContradictionError, match="row 5, column h: the value is hidden"):
            _rule().check(X, NAMES)
        mask = np.zeros(X.shape, dtype=bool)
        mask[5, 7] = True
        _rule().check(X, NAMES, mask)


LIMITS = hs.DetectionLimits(lower=0.0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hs.Combined(3), r"takes a list of \(columns, rule\)"),
        (lambda: hs.Combined([]), "at least one part"),
        (lambda: hs.Combined([LIMITS]), r"part 0 must be \(columns, rule\)"),
        (lambda: hs.Combined([([0], 3)]), "part 0 needs a rule"),
        (lambda: hs.Combined([([], LIMITS)]), "part 0 must have at least 1 column; got"),
        (lambda: hs.Combined([(0, LIMITS)]), "part 0 must be a list of columns"),
        (lambda: hs.Combined([("ab", LIMITS)]), "part 0 must be a list of columns"),
        (lambda: hs.Combined([([0], LIMITS), ([1, 0], LIMITS)]), "column 0 stands in part 0 and"),
        (lambda: hs.Combined([([0], LIMITS), (["a"], LIMITS)]), "all by position or all by name"),
        (
            lambda: hs.Combined([([0], hs.RowTruncation(lambda r: r[:, 0] > 0))]),
            "rows whole or not",
        ),
        (lambda: hs.Combined([(["a"], LIMITS)]).check_width(3), "by name .*for_columns"),
        (lambda: hs.Combined([([5], LIMITS)]).check_width(3), "column 5, but the data have 3"),
        (
            lambda: hs.Combined([([0, 1], hs.DetectionLimits(lower=[0, 0, 0]))]).check_width(3),
            "part 0, columns 0, 1, does not fit: DetectionLimits is for 3 columns",
        ),
        (
            lambda: hs.Combined([(["a"], hs.DetectionLimits(lower={"z": 1}))]),
            "part 0, columns a, does not fit: a limit is given for 'z'",
        ),
    ],
)
def test_bad_parts_get_a_sentence(make, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        make()


def test_repr_names_the_parts():
    rule = hs.Combined([([0], LIMITS), ([1, 2], hs.SelfSelection())])
    assert repr(rule) == "Combined([([0], DetectionLimits(lower=0.0)), ([1, 2], SelfSelection())])"
