"""Large files of plain numbers are read to the same bits as small ones, and cut into texts on demand."""

import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import halfseen as hs
from halfseen.cli import app
from halfseen.data import csv_files
from halfseen.data.cells import CellFormat
from halfseen.data.csv_files import NumberTexts, cut_records

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(
        ["", "0", "-0.0", ".5", "5.", "+3", "1e5", "1E-3", "007", "0." + "0" * 330 + "1"]
    ),
    # What only looks like numbers, and what no double can hold.
    st.sampled_from(
        ["1-2", "1.2.3", "--5", "e", "-", "1e999", "1e-999", ".", "5e", "1 ", "<2", "NA"]
    ),
)


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(csv_files, "LARGE", 0)


def both(text, read):
    """Read a text in the two ways."""
    out = []
    for large in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_files, "LARGE", large)
            out.append(read(text))
    return out


def cells(text):
    """Return what is read of a text, or what is said of it."""
    try:
        data = hs.read_csv(Opened(text), companions=False)
    except hs.InputError as error:
        return str(error)
    return data.names, data.lower.tobytes(), data.upper.tobytes(), data.not_detected.tobytes()


class Opened:
    name = "a.csv"

    def __init__(self, text):
        self.text = text

    def read(self):
        return self.text


@given(
    st.lists(st.lists(NUMBERS, min_size=2, max_size=3), min_size=1, max_size=5),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\n\n"]),
)
@example([["1e-400", "2"]], ",", "\n", "")
@example([["", ""], ["1", "2"]], ",", "\n", "\n")
@example([["1", "2"], ["1", "2", "3"]], ",", "\n", "")
@pytest.mark.filterwarnings("ignore::halfseen.AssumptionWarning")
def test_both_ways_agree_on_every_table(rows, separator, line, end):
    text = line.join(map(separator.join, [["a", "b"], *rows])) + end
    one, other = both(text, cells)
    assert one == other


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4",
        "a,b\r\n1,\r\n,4\r\n\r\n",
        "a;b\n1.5;2e3\n-3;+4\n",
    ],
)
def test_plain_tables_are_not_cut_into_texts(text, monkeypatch):
    records = cut_records("a.csv", text, None, CellFormat())
    assert all(isinstance(column, NumberTexts) for column in records.columns)
    (slow,) = [both(text, lambda text: cut_records("a.csv", text, None, CellFormat()))[1]]
    # The texts are there all the same, for whoever carries them along.
    assert [tuple(column) for column in records.columns] == slow.columns
    assert [column[1] for column in records.columns] == [column[1] for column in slow.columns]
    assert (records.names, list(records.lines)) == (slow.names, slow.lines)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a,b\n1,2\n3,<4", CellFormat()),
        ("a, b\n1, 2\n", CellFormat()),
        ('"a","b"\n1,2\n', CellFormat()),
        ("a;b\n1,5;2\n", CellFormat(decimal=",")),
        ("a,b\n1,-999\n", CellFormat(missing="-999")),
        (",b\n1,2\n2,3\n", CellFormat()),
        ("a,b\n1,2\n\n3,4\n", CellFormat()),
    ],
)
def test_others_are_read_as_ever(text, form):
    assert csv_files.plain_columns(text, text[1], form, list) is None


def test_without_pyarrow_they_are_read_as_ever(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert hs.read_csv(Opened("a,b\n1,2.5\n3,4\n")).lower.tolist() == [[1.0, 2.5], [3.0, 4.0]]


def test_columns_that_are_left_out_are_imputed_with_their_own_texts(tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 2))
    rows = [f"{a:.2f}0,{b:.3f}" for a, b in x]
    (tmp_path / "a.csv").write_text("\n".join(["a,b", *rows, "1.50,"]))
    words = ["impute", str(tmp_path / "a.csv"), "--columns", "b"]
    one, other = both(words, lambda words: CliRunner().invoke(app, words).stdout)
    assert one == other
    assert [line.split(",")[0] for line in one.splitlines()[1:-1]] == [
        row.split(",")[0] for row in rows
    ]
