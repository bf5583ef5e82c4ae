"""From the bytes of a file to its text: unpacked, decoded, or named if they are no text."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

from halfseen.errors import InputError, argument
from halfseen.files import read_stream

# How files begin that are no tables of text. As far as a text would not begin so: RDX is an explosive,
# PAR1 may be a column of light.
KINDS = {
    b"\x89PNG\r\n\x1a\n": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
    b"GIF87a": "a picture (GIF)",
    b"GIF89a": "a picture (GIF)",
    b"II*\x00": "a picture (TIFF)",
    b"MM\x00*": "a picture (TIFF)",
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive, or a workbook (.xlsx, .ods)",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a workbook (.xls) or a document of Office",
    b"PAR1\x15": "a Parquet file: its name must end in .parquet or .pq, and read_parquet reads it",
    b"ARROW1\x00": "an Arrow (Feather) file",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file",
    b"\x93NUMPY": "an array of NumPy (.npy)",
    b"RDX2\nX\n": "a file of R (.RData)",
    b"RDX3\nX\n": "a file of R (.RData)",
    b"<stata_dta>": "a Stata file",
    b"$FL2@(#)": "an SPSS file",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\x7fELF": "a program",
}
# Encodings of Python that are not of text, or read something else than what stands in the file.
NO_ENCODINGS = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")
# What readers of compressed files raise about their content.
BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError)


def _open_zst(packed: BytesIO) -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise InputError(
            'Reading .zst files needs pyarrow: pip install "halfseen[parquet]".'
        ) from None
    return pa.CompressedInputStream(pa.PythonFile(packed, "r"), "zstd")


PACKED: dict[bytes, Callable[[BytesIO], Any]] = {
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
    **{b"BZh%d1AY&SY" % level: bz2.BZ2File for level in range(1, 10)},
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _open_zst,
}


def text_of(source: str, content: bytes, encoding: str) -> str:
    """Return the text in the bytes of a file, which may be compressed (gz, bz2, xz, zst)."""
    _check_encoding(encoding)
    for start, opened in PACKED.items():
        if content.startswith(start):
            content = _unpacked(source, content, opened)
            break
    for start, kind in KINDS.items():
        if content.startswith(start):
            raise InputError(f"{source} is {kind}; a file of text was expected, such as CSV.")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        other = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
        raise InputError(
            f"{source}, line {line}: byte {content[error.start]:#04x} is not {encoding}; try "
            f"{argument('encoding', other)}."
        ) from None
    except UnicodeError as error:
        raise InputError(f"{source} is not {encoding}: {error}.") from None


def _check_encoding(encoding: str) -> None:
    try:
        known = codecs.lookup(encoding)
        # What str.encode refuses is no encoding of texts, such as base64.
        wrong = known.name in NO_ENCODINGS or not known._is_text_encoding
    except (LookupError, TypeError, ValueError):
        wrong = True
    if wrong:
        raise InputError(
            f"encoding {encoding!r} is not known; 'utf-8' and 'latin-1' are common ones."
        )


def _unpacked(source: str, content: bytes, opened: Callable[[BytesIO], Any]) -> bytes:
    try:
        with opened(BytesIO(content)) as stream:
            return read_stream(f"{source}, unpacked,", stream)
    except InputError:
        raise
    except BROKEN as error:
        raise InputError(f"{source} is compressed, but damaged or cut short: {error}.") from None
