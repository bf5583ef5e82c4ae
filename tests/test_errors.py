"""Errors know the cell that they are about, and are told in the words of whoever reads them."""

import pickle

import numpy as np
import pytest

import halfseen as hs
from halfseen.errors import argument, spelled, told_in_options


def _refused(X, rule):
    with pytest.raises(hs.ContradictionError) as caught:
        hs.fit(X, rule)
    return caught.value


def test_row_and_column_are_fields():
    error = _refused([[1.0, 2.0], [0.1, 3.0]], hs.DetectionLimits(lower=0.5))
    assert (error.row, error.column, error.where) == (1, "x0", "row 1")
    assert str(error) == f"row 1, column x0: {error.sentence}"
    assert error.sentence.startswith("the value 0.1 is seen, but")


def test_they_travel_between_processes():
    error = _refused([[1.0], [0.1]], hs.DetectionLimits(lower=0.5))
    error.count_from(100)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert (type(again), again.row, again.column) == (hs.ContradictionError, 101, "x0")


def test_without_a_place_the_sentence_is_all():
    error = hs.InputError("nothing to do.")
    error.count_from(7)
    assert str(error) == "nothing to do."
    assert error.row is None


def test_a_row_without_a_column():
    X = np.array([[1.0, np.nan], [1.0, 2.0]])
    error = _refused(X, hs.SelfSelection())
    assert (error.row, error.column) == (1, None)
    assert str(error).startswith("row 1: x0 (1), x1 (2) are seen")


def test_arguments_are_spelled_for_the_reader():
    assert argument("columns") == "columns="
    assert argument("decimal", ",") == "decimal=','"
    with told_in_options():
        with told_in_options():
            assert argument("not_detected") == "--not-detected"
        # The inner one ends, the outer one does not.
        assert argument("decimal", ",") == "--decimal ','"
        assert argument("missing_at_random") == "--blank random"
        assert argument("resume", True) == "--resume"
        assert spelled("f(x)", "--f") == "--f"
    assert spelled("f(x)", "--f") == "f(x)"
    with pytest.raises(KeyError), told_in_options():
        raise KeyError
    assert argument("resume", True) == "resume=True"
