from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import halfseen as hs
from halfseen.data import read_table


def test_arrays_are_not_copied():
    X = np.ones((3, 2))
    assert read_table(X).values is X


@pytest.mark.parametrize(
    "X",
    [
        [[1, 2], [3, None], [5, 6]],
        np.ma.masked_equal([[1.0, 2.0], [3.0, -9.0], [5.0, 6.0]], -9.0),
        pd.DataFrame({"x0": [1, 3, 5], "x1": [2.0, None, 6.0]}),
        pd.DataFrame({"x0": [1, 3, 5], "x1": pd.array([2, None, 6], dtype="Int64")}),
        np.array([[1, 2], [3, np.nan], [5, 6]], dtype=object),
    ],
)
def test_what_people_have_is_read_alike(X):
    values, names = read_table(X)
    np.testing.assert_array_equal(values, [[1, 2], [3, np.nan], [5, 6]])
    assert names == ("x0", "x1")


def test_names_come_from_the_frame_or_the_caller():
    frame = pd.DataFrame(np.ones((2, 2)), columns=["lead", "zinc"])
    assert read_table(frame).names == ("lead", "zinc")
    assert read_table(frame, ["a", "b"]).names == ("a", "b")


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.ones(3), r"1 dimension, shape \(3,\); reshape"),
        (np.ones((2, 2, 2)), "3 dimensions"),
        (np.ones((3, 0)), "no columns"),
        (np.ones((0, 3)), "at least 2 rows"),
        (np.ones((1, 3)), "n_samples = 1"),
        (np.ones((3, 2)) * 1j, "Complex data not supported"),
        (np.array([["a", "b"], ["c", "d"]]), r"row 0, column 0: the cell holds .*'a'"),
        (np.array([[1, 2], [3, "<0.5"]], dtype=object), r"row 1, column 1: the cell holds '<0\.5'"),
        (np.array([[1, 2], [3, 1j]], dtype=object), "row 1, column 1: the cell holds 1j"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), "row 0, column b: the cell holds 'x'"),
        (sparse.eye(3).tocsr(), "sparse data were passed"),
        (np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]").reshape(2, 1), "row 0"),
    ],
)
def test_bad_tables_get_a_sentence(X, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.fit(X)


def test_wrong_number_of_names():
    with pytest.raises(hs.InputError, match="names must be 2"):
        hs.fit(np.ones((3, 2)), names=["a"])


@pytest.mark.parametrize("path", ["wine.csv", Path("wine.csv")])
def test_the_name_of_a_file_is_not_a_table(path):
    with pytest.raises(hs.InputError, match=r"got the name of a file. Try read_csv\('wine.csv'\)"):
        read_table(path)
    with pytest.raises(hs.InputError, match="name of a file"):
        hs.fit(path, hs.DetectionLimits(lower=0.0))
