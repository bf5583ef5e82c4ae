"""Errors know the cell that they are about, and are told in the words of whoever reads them."""

import ast
import io
import pickle
import shlex
from pathlib import Path

import numpy as np
import pytest

import halfseen as hs
from halfseen.errors import argument, spelled, told_in_options
from tests.docs.commands import options_of_commands


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
    assert argument("index", "it's") == 'index="it\'s"'
    with told_in_options():
        with told_in_options():
            assert argument("not_detected") == "--not-detected"
        # The inner one ends, the outer one does not.
        assert argument("decimal", ";") == "--decimal ';'"
        assert shlex.split(argument("index", "it's $HOME")) == ["--index", "it's $HOME"]
        assert argument("missing_at_random") == "--blank random"
        assert argument("resume", True) == "--resume"
        assert spelled("f(x)", "--f") == "--f"
    assert spelled("f(x)", "--f") == "f(x)"
    with pytest.raises(KeyError), told_in_options():
        raise KeyError
    assert argument("resume", True) == "resume=True"


def _advised():
    """Every argument that messages name, as it is told on the command line."""
    for path in sorted(Path(hs.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            texts = [a.value if isinstance(a, ast.Constant) else "x" for a in node.args]
            if node.func.id == "argument" and isinstance(node.args[0], ast.Constant):
                with told_in_options():
                    yield argument(*texts)
            elif node.func.id == "spelled" and isinstance(node.args[1], ast.Constant):
                yield texts[1]


def test_what_is_advised_is_there():
    advised = {word for text in _advised() for word in text.split() if word.startswith("--")}
    assert {"--blank", "--columns", "--no-companions", "--saturated", "--quick"} <= advised
    assert advised <= options_of_commands()[""]


def _read_few_values():
    return hs.read_csv(io.StringIO("lead,male\n" + "".join(f"{k}.5,{k % 2}\n" for k in range(12))))


def _read_numbers_as_names():
    return hs.read_csv(io.StringIO("1,2\n3.5,4.5\n5.5,6.5\n7.5,8.5\n"))


@pytest.mark.parametrize(
    "call",
    [
        lambda: hs.between(0.0, 2.0) | hs.between(1.0, 3.0),
        _read_few_values,
        _read_numbers_as_names,
        lambda: hs.fit(np.append(np.arange(30.0), 2.5)[:, None], hs.rounded(1.0)),
    ],
)
def test_warnings_point_at_whoever_called_the_package(call):
    """Whichever door was taken, and however deep what warns lies behind it."""
    with pytest.warns(hs.HalfseenWarning) as caught:
        call()
    assert {one.filename for one in caught} == {__file__}
