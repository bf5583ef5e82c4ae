import numpy as np
import pandas as pd
import pytest

import halfseen as hs
from halfseen.data import read_table
from halfseen.missingness.holes import SEEN

INF = np.inf
LOWER = np.array([[1.0, -INF, 2.0], [0.5, -INF, 3.0]])
UPPER = np.array([[1.0, 0.5, INF], [0.7, INF, 3.0]])


def test_cells_are_seen_below_above_between_or_missing():
    data = hs.IntervalData(LOWER, UPPER)
    np.testing.assert_array_equal(data.seen, [[True, False, False], [False, False, True]])
    np.testing.assert_array_equal(data.at_random, [[False] * 3, [False, True, False]])
    np.testing.assert_array_equal(data.values, [[1.0, np.nan, np.nan], [np.nan, np.nan, 3.0]])
    assert data.shape == (2, 3)
    assert len(data) == 2
    assert data.names == ("x0", "x1", "x2")
    assert repr(data) == (
        "IntervalData(2 rows, 3 columns; cells: 2 seen, 1 below, 1 above, 1 between, 1 blank)"
    )


@pytest.mark.parametrize("make", [np.asarray, lambda a: a.astype(object), np.ma.masked_invalid])
def test_nan_is_no_end_as_in_interval2(make):
    lower, upper = (
        np.where(np.isinf(LOWER), np.nan, LOWER),
        np.where(np.isinf(UPPER), np.nan, UPPER),
    )
    data = hs.IntervalData(make(lower), make(upper))
    np.testing.assert_array_equal(data.lower, LOWER)
    np.testing.assert_array_equal(data.upper, UPPER)


def test_names_come_from_frames_or_the_caller():
    frames = [pd.DataFrame(ends, columns=["a", "b", "c"]) for ends in (LOWER, UPPER)]
    assert hs.IntervalData(*frames).names == ("a", "b", "c")
    assert hs.IntervalData(frames[0], UPPER).names == ("a", "b", "c")
    assert hs.IntervalData(LOWER, frames[1]).names == ("a", "b", "c")
    assert hs.IntervalData(*frames, names=["p", "q", "r"]).names == ("p", "q", "r")
    with pytest.raises(hs.InputError, match="b stands where upper has c"):
        hs.IntervalData(frames[0], frames[1][["a", "c", "b"]])


def test_it_is_frozen_and_holds_float64_of_its_own():
    lower = LOWER.astype(np.float32)
    data = hs.IntervalData(lower, UPPER.astype(np.float32))
    assert data.lower.dtype == data.values.dtype == np.float64
    lower[0, 0] = 99
    assert data.lower[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        data.upper[0, 0] = 3.0
    with pytest.raises(AttributeError):
        data.lower = UPPER


@pytest.mark.parametrize("rows", [np.array([1, 0, 1]), np.array([False, True]), slice(1, None)])
def test_take(rows):
    part = hs.IntervalData(LOWER, UPPER, ["a", "b", "c"]).take(rows)
    np.testing.assert_array_equal(part.lower, LOWER[rows])
    np.testing.assert_array_equal(part.upper, UPPER[rows])
    assert part.names == ("a", "b", "c")


def test_no_rows_are_a_table_too():
    empty = hs.IntervalData(LOWER, UPPER).take(np.array([], dtype=int))
    assert empty.shape == (0, 3)
    assert len(empty.holes().sets) == 1
    assert repr(empty) == "IntervalData(0 rows, 3 columns; cells: none)"


def test_holes_have_a_set_for_each_hidden_cell():
    data = hs.IntervalData(LOWER, UPPER)
    holes = data.holes()
    np.testing.assert_array_equal(holes.index == SEEN, data.seen)
    for row, column in np.argwhere(~data.seen):
        k = holes.index[row, column]
        assert holes.set_column[k] == column
        p = holes.sets.start[k]
        assert holes.sets.start[k + 1] == p + 1
        assert (holes.sets.lower[p], holes.sets.upper[p]) == (
            LOWER[row, column],
            UPPER[row, column],
        )
    assert holes.is_convex
    assert holes.inequalities is None
    assert len(hs.IntervalData([[1.0]], [[1.0]]).holes().sets) == 1


@pytest.mark.parametrize(
    ("lower", "upper", "sentence"),
    [
        ([[1.0, 2.0]], [[1.0, 1.5]], r"row 0, column x1: lower is 2 and upper is 1\.5.*other way"),
        ([[1.0], [INF]], [[1.0], [INF]], "row 1, column x0: lower and upper are both inf"),
        ([[INF]], [[np.nan]], "both inf"),
        ([[np.nan]], [[-INF]], "both -inf.*NaN in both"),
        ([[1.0, 2.0]], [[1.0], [2.0]], r"same shape; got \(1, 2\) and \(2, 1\)"),
        ([1.0], [2.0], "table of rows and columns"),
        ([["<1"]], [[1.0]], "row 0, column 0: the cell holds .*<1"),
        (hs.IntervalData(LOWER, UPPER), UPPER, "got IntervalData"),
    ],
)
def test_bad_intervals_get_a_sentence(lower, upper, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.IntervalData(lower, upper)


def test_other_readers_of_tables_refuse_it():
    data = hs.IntervalData(LOWER, UPPER)
    with pytest.raises(hs.InputError, match="a table of values is needed here; got IntervalData"):
        read_table(data)


class TestFromTable:
    X = np.array([[1.0, np.nan], [np.nan, 2.0]])

    def _refused(self, sentence, *args, **kwargs):
        with pytest.raises(hs.InputError, match=sentence):
            hs.IntervalData.from_table(*args, **kwargs)

    def test_one_sided_limits(self):
        data = hs.IntervalData.from_table(
            self.X, hs.DetectionLimits(lower=[0.5, np.nan], upper=[np.nan, 9])
        )
        np.testing.assert_array_equal(data.lower, [[1, 9], [-INF, 2]])
        np.testing.assert_array_equal(data.upper, [[1, INF], [0.5, 2]])

    def test_limits_by_row_and_cells_without_a_limit(self):
        limits = [[0.1, np.nan], [0.2, 0.3]]
        data = hs.IntervalData.from_table(self.X, hs.DetectionLimits(lower=limits))
        assert data.upper[1, 0] == 0.2
        assert data.at_random.tolist() == [[False, True], [False, False]]

    def test_limits_by_name(self):
        frame = pd.DataFrame(self.X, columns=["b", "a"])
        data = hs.IntervalData.from_table(frame, hs.DetectionLimits(lower={"a": 1.5, "b": 0.5}))
        assert data.names == ("b", "a")
        assert (data.upper[1, 0], data.upper[0, 1]) == (0.5, 1.5)

    @pytest.mark.parametrize(
        "side",
        [
            [["", "<"], [">", ""]],
            [[0, -1], [1, 0]],
            np.array([[np.nan, -1.0], [1.0, np.nan]]),
            [[None, "<"], [">", None]],
            pd.DataFrame({"a": [pd.NA, " > "], "b": ["<", pd.NA]}),
            [["no", "<"], [">", "matter"]],
        ],
    )
    def test_the_side_is_said_where_there_are_two(self, side):
        data = hs.IntervalData.from_table(self.X, hs.DetectionLimits(lower=0, upper=4), side)
        np.testing.assert_array_equal(data.lower, [[1, -INF], [4, 2]])
        np.testing.assert_array_equal(data.upper, [[1, 0], [INF, 2]])

    def test_it_agrees_with_the_values_that_were_hidden(self, three):
        rule = hs.DetectionLimits(lower=[0.5, -3.0, 8.0], upper=[2.0, 0.0, 13.0])
        X, Y = hs.simulate(three, rule, 500, 2, return_complete=True)
        data = hs.IntervalData.from_table(X, rule, np.where(rule.upper < Y, ">", "<"))
        np.testing.assert_array_equal(data.values, X)
        assert ((data.lower <= Y) & (data.upper >= Y)).all()
        assert not data.at_random.any()

    def test_any_rule_that_leaves_intervals(self, three):
        X = hs.simulate(three, hs.SelfSelection(), 50, 2)
        data = hs.IntervalData.from_table(X, hs.SelfSelection())
        winner = np.repeat(np.nanmax(X, axis=1)[:, None], 3, axis=1)
        np.testing.assert_array_equal(data.upper, winner)
        far = hs.SelfCensoring(hs.Predicate(lambda x: x > -3.0))
        data = hs.IntervalData.from_table(1e200 * self.X, far)
        assert data.upper[0, 1] == pytest.approx(-3.0, abs=1e190)
        middle = hs.SelfCensoring(hs.at_most(0.5) | hs.at_least(0.7))
        data = hs.IntervalData.from_table(self.X, middle)
        assert (data.lower[0, 1], data.upper[0, 1]) == (0.5, 0.7)

    def test_float32_may_be_rounded_across_a_limit(self):
        X = np.array([[0.1], [np.nan]], dtype=np.float32)
        data = hs.IntervalData.from_table(X, hs.DetectionLimits(upper=0.1))
        assert data.lower[1, 0] == 0.1

    def test_what_is_not_known_is_asked_for(self):
        two = hs.DetectionLimits(lower=0, upper=4)
        self._refused(r"row 0, column x1: .*either side.*side=", self.X, two)
        self._refused("row 1, column x0: .*either side", self.X, two, [["", "<"], ["", ""]])
        self._refused(r"side must have the shape of the data, \(2, 2\)", self.X, two, ["<", ">"])
        self._refused(
            "row 1, column x0: side must be .*got 'x'", self.X, two, [["", "<"], ["x", ""]]
        )

    def test_a_side_on_which_nothing_is_hidden(self):
        sides = [["", ">"], ["<", ""]]
        one = hs.DetectionLimits(lower=0)
        self._refused("row 0, column x1: side says that the value lies above", self.X, one, sides)
        none = hs.SelfCensoring(hs.everything)
        self._refused("row 1, column x0: side says .* below", self.X, none, sides)

    def test_rules_without_intervals(self):
        self._refused("binds the hidden cells", self.X, hs.LinearThreshold(-np.eye(2), 0))
        chance = hs.SelfCensoring(hs.Probability(lambda x: np.full_like(x, 0.5)))
        self._refused("row 0, column x1: the value is hidden by chance", self.X, chance)
        self._refused("must be a rule", self.X, 3)
        whole = np.full((2, 2), np.nan)
        self._refused("cannot be described", whole, hs.RowTruncation(lambda r: r[:, 0] > 0))

    def test_contradictions_and_infinities(self):
        with pytest.raises(hs.ContradictionError, match="row 0, column x0: the value 1 is seen"):
            hs.IntervalData.from_table(self.X, hs.DetectionLimits(lower=1.5))
        self._refused("the value is inf", [[INF], [1.0]], hs.DetectionLimits(lower=0))
