"""Rounded and heaped values: which interval each stands for, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import halfseen as hs
from halfseen.data.rounding import read_rounded
from halfseen.errors import told_in_options

INF = np.inf


@pytest.mark.parametrize(
    ("how", "ends"), [("nearest", (37.5, 42.5)), ("down", (40, 45)), ("up", (35, 40))]
)
def test_a_value_stands_for_a_step_around_it(how, ends):
    data = hs.rounded(5, how).intervals([[40.0], [-40.0], [np.nan]])
    assert (data.lower[0, 0], data.upper[0, 0]) == ends
    assert data.lower[1, 0] == -40 - (40 - ends[0])
    assert data.blank[2, 0]


def test_neighbouring_steps_meet_in_the_same_number():
    """As they would not by adding: 0.3 + 0.05 is not 0.4 - 0.05."""
    values = np.arange(-50, 50)[:, None] / 10
    data = hs.rounded(0.1).intervals(values)
    np.testing.assert_array_equal(data.upper[:-1], data.lower[1:])
    np.testing.assert_allclose(data.upper - data.lower, 0.1)


def test_some_columns_each_in_its_own_way():
    table = pd.DataFrame({"age": [40, 41], "dose": [0.3, 0.4], "x": [1.0, 2.0]}, index=["p", "q"])
    data = hs.rounded({"age": 1, "dose": 0.1}, {"age": "down"}).intervals(table)
    np.testing.assert_allclose(data.lower, [[40, 0.25, 1], [41, 0.35, 2]])
    np.testing.assert_allclose(data.upper, [[41, 0.35, 1], [42, 0.45, 2]])
    assert data.frame == "pandas"
    assert data.index.tolist() == ["p", "q"]


def test_heaped_values_go_with_the_coarsest_step():
    data = hs.rounded({"age": [5, 1]}).intervals([[40.0], [41.0], [43.0]], names=["age"])
    assert data.lower.ravel().tolist() == [37.5, 40.5, 42.5]
    assert data.upper.ravel().tolist() == [42.5, 41.5, 43.5]
    some = hs.rounded({"age": [5, 0]}).intervals([[40.0], [41.25]], names=["age"])
    assert some.seen.ravel().tolist() == [False, True]
    with pytest.raises(hs.InputError, match=r"row 1, column age: the value 41.25 is no multiple"):
        hs.rounded({"age": [5, 1]}).intervals([[40.0], [41.25]], names=["age"])


def test_cells_that_say_where_they_lie_stay():
    lower, upper = [[-INF], [2.0], [-INF], [7.0], [3.0]], [[0.5], [2.0], [INF], [INF], [4.0]]
    data = hs.IntervalData(
        lower, upper, ["x"], not_detected=np.ones(1) == [[0], [0], [1], [0], [0]]
    )
    out = hs.rounded(1).intervals(data)
    assert out.lower.ravel().tolist() == [-INF, 1.5, -INF, 7, 3]
    assert out.upper.ravel().tolist() == [0.5, 2.5, INF, INF, 4]
    np.testing.assert_array_equal(out.not_detected, data.not_detected)


def test_values_off_the_grid_are_doubted_once():
    with pytest.warns(
        hs.AssumptionWarning, match=r"1 values of x0 are no multiples of 5 .*\[5, 0\]"
    ):
        data = hs.rounded(5).intervals([[40.0], [42.0]])
    assert (data.lower[1, 0], data.upper[1, 0]) == (39.5, 44.5)
    with told_in_options(), pytest.warns(hs.AssumptionWarning, match="--rounded 'x0: 5/0'"):
        hs.rounded(5).intervals([[40.0], [42.0]])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0,), "step must be above 0; got 0"),
        ((float("nan"),), "step must be above 0; got nan"),
        ((None,), "step must be above 0; got None"),
        (("5",), "step must be a number, or a dict"),
        (([5, 1],), r"Several steps of a column are written \{'age': \[5, 1\]\}"),
        (({},), "step must be a number, or a dict"),
        (({"age": 0},), "the step of age must be above 0"),
        (({"age": [1, 5]},), "from the coarsest to the finest"),
        (({"age": [0]},), "the step of age must be above 0"),
        (({"age": []},), "from the coarsest to the finest"),
        ((5, "half"), "how must be 'nearest', 'down' or 'up'; got 'half'"),
        ((5, {"age": 1}), "how must be 'nearest', 'down' or 'up'; got 1"),
        ((5, "down", 0.5), "rule must be a rule"),
    ],
)
def test_mistakes_get_a_sentence(arguments, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.rounded(*arguments)


def test_unknown_columns_and_infinities_are_refused():
    with pytest.raises(hs.InputError, match="there is no column 'agee'; did you mean 'age'"):
        hs.rounded({"agee": 5}).intervals([[1.0]], names=["age"])
    with pytest.raises(hs.InputError, match="row 0, column x0: the value is inf"):
        hs.rounded(5).intervals([[INF]])


def test_the_words_of_the_command_line():
    one = read_rounded(["age: 5/1 down, lead: 0.1", '"a, b: 2 up"'])
    assert one.steps == {"age": (5, 1), "lead": (0.1,), "a, b": (2,)}
    assert one.how == {"": "nearest", "age": "down", "lead": "nearest", "a, b": "up"}
    assert read_rounded(["0.5"]).steps == {"": (0.5,)}
    for wrong in (
        ["age: five"],
        ["age:"],
        [": 5"],
        ["age: 5 sideways"],
        ["5, 6"],
        [""],
        ["age: 1/5"],
    ):
        with pytest.raises(hs.InputError):
            read_rounded(wrong)


def test_one_step_that_is_none_is_told_as_such():
    with pytest.raises(hs.InputError, match="the step of age must be above 0; got -1"):
        read_rounded(["age: -1"])
