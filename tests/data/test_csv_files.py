"""Bytes of files, compressed, in odd encodings, or no text at all; and large files of plain numbers.

The latter are read to the same bits as small ones, and cut into texts on demand.
"""

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import halfseen as hs
from halfseen import files
from halfseen.cli import app
from halfseen.cli.inputs import open_csv
from halfseen.cli.options import TableOptions
from halfseen.data import csv_files
from halfseen.data.cells import CellFormat
from halfseen.data.csv_files import KINDS, NO_ENCODINGS, NumberTexts, cut_records

TEXT = "lead,zinc\n0.3,<5\n0.7,9\n"
DATA = hs.read_csv(io.StringIO(TEXT))
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


def zst(content):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(content)
    return out.getvalue().to_pybytes()


PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zst}


def same(data):
    return bool((data.lower == DATA.lower).all() and (data.upper == DATA.upper).all())


@pytest.mark.parametrize("kind", PACKERS)
class TestCompressed:
    def test_is_read(self, tmp_path, kind):
        path = tmp_path / f"lab.csv.{kind}"
        path.write_bytes(PACKERS[kind](TEXT.encode()))
        assert same(hs.read_csv(path))
        with path.open("rb") as file:
            assert same(hs.read_csv(file))
        # In several members, as they are put together, and in another encoding.
        path.write_bytes(PACKERS[kind](TEXT[:14].encode()) + PACKERS[kind](TEXT[14:].encode()))
        assert same(hs.read_csv(path))
        path.write_bytes(PACKERS[kind](TEXT.encode("utf-16")))
        assert same(hs.read_csv(path, encoding="utf-16"))

    def test_is_told_where_it_is_cut_short_or_damaged(self, tmp_path, kind):
        whole = PACKERS[kind](TEXT.encode() * 50)
        path = tmp_path / "lab.csv"
        for place in range(8, len(whole), 3):
            path.write_bytes(whole[:place])
            with pytest.raises(hs.InputError, match=r"lab\.csv"):
                hs.read_csv(path)

    def test_does_not_fill_the_memory(self, tmp_path, kind, monkeypatch):
        monkeypatch.setattr(files, "free_bytes", lambda: 4 * 10**6)
        path = tmp_path / "bomb.csv"
        path.write_bytes(PACKERS[kind](bytes(10**7)))
        assert path.stat().st_size < 10**5
        with pytest.raises(hs.InputError, match="unpacked, holds more than 1 MB"):
            hs.read_csv(path)


@pytest.mark.parametrize("start", KINDS)
def test_what_is_no_text_is_named(tmp_path, start):
    path = tmp_path / "lab.csv"
    path.write_bytes(start + b"\x00\xff" * 20)
    with pytest.raises(hs.InputError, match=r"lab\.csv is an? .*; a file of text was expected"):
        hs.read_csv(path)


@pytest.mark.parametrize("name", ["RDX", "PAR1", "BZh", "GIF8", "ARROW1", "II", "MM", "PK"])
def test_columns_that_are_named_like_kinds_of_files(name):
    text = TEXT.replace("lead", name)
    assert hs.read_csv(io.BytesIO(text.encode())).names == (name, "zinc")


@pytest.mark.parametrize(
    "encoding", [*NO_ENCODINGS, "rot13", "base64", "hex", "no", "", "\0", "ü", 5]
)
def test_what_is_no_encoding_of_text_is_refused(encoding):
    with pytest.raises(hs.InputError, match=r"encoding .* is not known; 'utf-8'"):
        hs.read_csv(io.BytesIO(TEXT.encode()), encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1", "utf-8-sig", "cp1252"])
def test_standard_input_has_the_encoding_that_is_told(encoding):
    words = ["fit", "-", "--encoding", encoding, "--method", "full", "--json"]
    given = ("x\N{LATIN SMALL LETTER E WITH ACUTE},y\n" + "1,2\n2,1\n4,7\n5,3\n9,1\n").encode(
        encoding
    )
    result = CliRunner().invoke(app, words, input=given)
    assert result.exit_code in (0, 1), result.output
    assert '"x\\u00e9"' in result.stdout


def test_a_closed_standard_input_has_a_sentence(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(hs.InputError, match="standard input, which is closed"):
        open_csv(TableOptions("-"), CellFormat())


class Unwilling:
    """An object of somebody else, whose array is not to be had."""

    def __array__(self, *given, **more):
        raise RuntimeError("not today")


@pytest.mark.parametrize(
    "use",
    [
        hs.fit,
        hs.diagnose,
        lambda bad: hs.regress(bad, bad),
        lambda bad: hs.IntervalData(bad, bad),
        lambda bad: hs.Gaussian(bad, [[1.0]]),
        lambda bad: hs.DetectionLimits(lower=bad),
        lambda bad: hs.fit(np.zeros((5, 2)), missing_at_random=bad),
    ],
)
def test_an_array_that_cannot_be_made_is_told(use):
    with pytest.raises(hs.InputError, match="an array: RuntimeError: not today"):
        use(Unwilling())


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
