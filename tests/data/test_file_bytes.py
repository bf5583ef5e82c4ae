"""Bytes of files: compressed, in odd encodings, or no text at all."""

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import halfseen as hs
from halfseen import files
from halfseen.cli import app
from halfseen.cli.inputs import open_csv
from halfseen.cli.options import TableOptions
from halfseen.data.cells import CellFormat
from halfseen.data.csv_files import KINDS, NO_ENCODINGS

TEXT = "lead,zinc\n0.3,<5\n0.7,9\n"
DATA = hs.read_csv(io.StringIO(TEXT))


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
