"""Files of separated values: unpacked, decoded, cut into columns of texts, and written again.

Large files of plain numbers are read at once, and cut into texts only where somebody asks for those:
Python needs some 3 microseconds for a cell that is cut out as a text. A file of which every cell is a
number or empty needs none, and pyarrow reads these to the same bits, twenty times as fast.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from io import BytesIO
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cells import CellFormat, print_cell, read_cell, shorten
from halfseen.data.interval_data import IntervalData
from halfseen.errors import InputError, argument
from halfseen.files import read_stream, read_whole, write_text_whole

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
# Characters of a file of numbers from which on it pays to read them at once.
LARGE = 2**20
# Where all cells are of these, they are numbers or nothing, as in ``cell_columns.PLAIN``.
SIGNS = b"0123456789.+-eE"
# The most likely ones come last in a text with several: a comma is also a decimal sign and prose.
SEPARATORS = ("\t", ";", "|", ",")
WORDS = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", " ": "blanks"}
TRUTHS = frozenset(("true", "false", "t", "f", "na"))
# Cells with one of these are quoted.
MARKS = frozenset(',;|\t"\r\n\0\ufeff')
# So many characters are looked at to find the separator.
SAMPLE = 50_000


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


class NumberTexts(Sequence[str]):
    """The texts of a column of numbers, which are cut out when they are asked for."""

    def __init__(
        self, numbers: NDArray[np.float64], place: int, cut: Callable[[], Sequence[Sequence[str]]]
    ) -> None:
        self.numbers, self._place, self._cut = numbers, place, cut

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: Any) -> Any:
        return self._cut()[self._place][row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cut()[self._place])


def plain_columns(
    text: str, separator: str, form: CellFormat, cut: Callable[[], Sequence[Sequence[str]]]
) -> tuple[list[str], list[NumberTexts]] | None:
    """Return names and columns of a large file of plain numbers; None for any other.

    ``cut`` cuts it into columns of texts.
    """
    head = text[: text.find("\n") + 1].rstrip("\r\n")
    if len(text) < LARGE or separator not in SEPARATORS or not _is_plain(head, form):
        return None
    names = head.split(separator)
    body = text[text.find("\n") + 1 :].encode("utf-8")
    if body.endswith((b"\n\n", b"\n\r\n")):
        body = body.rstrip(b"\r\n")
    if not names[0].strip() or body.translate(None, SIGNS + separator.encode() + b"\r\n"):
        return None
    numbers = _read(body, len(names), separator)
    if numbers is None:
        return None
    once = cache(cut)
    return names, [NumberTexts(column, j, once) for j, column in enumerate(numbers)]


def _is_plain(head: str, form: CellFormat) -> bool:
    # Names in quotes, or with spaces after the separator, are read as they always were.
    usual = form.decimal == "." and not form.thousands and not form.words and not form.codes
    return usual and '"' not in head and " " not in head


def _read(body: bytes, width: int, separator: str) -> list[NDArray[np.float64]] | None:
    """Read the numbers by column; None where any cell is odd, and has a sentence of its own."""
    try:
        import pyarrow as pa
        import pyarrow.csv
    except ImportError:
        return None
    names = [str(j) for j in range(width)]
    try:
        table = pyarrow.csv.read_csv(
            BytesIO(body),
            pyarrow.csv.ReadOptions(column_names=names),
            pyarrow.csv.ParseOptions(delimiter=separator, quote_char=False),
            pyarrow.csv.ConvertOptions(
                column_types={name: pa.float64() for name in names}, null_values=[""]
            ),
        )
    except pa.ArrowException:
        return None
    if table.num_rows != body.count(b"\n") + (not body.endswith(b"\n")):
        return None
    columns = [np.array(column, dtype=np.float64) for column in table.columns]
    # Too large for a double; or so small that it was lost.
    if any(np.isinf(column).any() for column in columns):
        return None
    zeros = any(not column.all() for column in columns)
    return None if zeros and _may_be_lost(body) else columns


def _may_be_lost(body: bytes) -> bool:
    """Whether a number that reads as zero may be another one: less than 1e-308 needs one of these."""
    return b"e-" in body.lower() or max(map(len, body.split(b"\n"))) > 300


class Records(NamedTuple):
    """A file: its name, the names in the first record, and the columns with the lines of the rows.

    ``labels`` are names of rows that stand before the columns, without a name of their own.
    """

    source: str
    names: list[str]
    columns: Sequence[Sequence[str]]
    lines: Sequence[int]
    labels: tuple[str, ...] | None = None


def read_records(
    path: str | os.PathLike[str] | IO[Any], separator: str | None, encoding: str, form: CellFormat
) -> Records:
    """Read a file, or what is left of an open one, into columns of texts."""
    return cut_records(*read_text(path, encoding), separator, form)


def cut_records(source: str, text: str, separator: str | None, form: CellFormat) -> Records:
    """Cut the text of a file into columns of texts."""
    if separator is not None and (not isinstance(separator, str) or len(separator) != 1):
        raise InputError(f"separator must be one character, or None; got {separator!r}.")
    if separator is not None and separator in ('"', "\r", "\n"):
        raise InputError(f"separator may not be {separator!r}; use one such as ',', ';' or a tab.")
    if not text or text.isspace():
        raise InputError(f"{source} is empty; the first line must hold the names of the columns.")
    # A line by which some spreadsheets tell each other the separator.
    told = re.match(r"sep=([^\r\n])\r?\n", text, re.IGNORECASE)
    if separator is None:
        separator = told[1] if told else find_separator(source, text, form)
    if plain := None if told else _plain(source, text, separator, form):
        return plain
    return _cut(source, text, separator, form, bool(told))


def _plain(source: str, text: str, separator: str, form: CellFormat) -> Records | None:
    """Cut a large file of plain numbers, whose texts are cut out only if they are asked for."""

    def texts() -> Sequence[Sequence[str]]:
        return _cut(source, text, separator, form, False).columns

    if (found := plain_columns(text, separator, form, texts)) is None:
        return None
    names, columns = found
    return Records(source, names, columns, range(2, 2 + len(columns[0])))


def _cut(source: str, text: str, separator: str, form: CellFormat, told: bool) -> Records:
    lines, rows = _split(source, text, separator)
    if told:
        lines, rows = lines[1:], rows[1:]
    names = rows[0] if rows else []
    if not names:
        raise InputError(
            f"{source}: line {2 if told else 1} is empty; it must hold the names of the columns."
        )
    while _is_blank(rows[-1], len(names)):
        rows.pop()
    if named := _has_row_names(rows, separator, text):
        names = rows[0] = ["", *names]
    if len(rows) == 1:
        raise InputError(f"{source} holds the names of {len(names)} columns, but no rows.")
    for line, cells in zip(lines, rows, strict=False):
        if not cells:
            raise InputError(
                f"{source}, line {line}: the line is empty, and rows follow it. Take it away, or "
                "write NA for values that are missing."
            )
        if len(cells) != len(names):
            raise InputError(_ragged(source, line, cells, names, separator, form))
    columns = list(zip(*rows[1:], strict=True))
    labels = None
    if named or _are_row_names(names, columns):
        names, labels, columns = names[1:], columns[0], columns[1:]
    return Records(source, names, columns, lines[1 : len(rows)], labels)


def _has_row_names(rows: list[list[str]], separator: str, text: str) -> bool:
    """Tell whether each row has one cell more than the first line, as R writes names of rows.

    A comma may also be a decimal sign, and a blank stand before a unit; there R's quotes around these
    names have to say it.
    """
    body = rows[1:]
    if not body or any(len(cells) != len(rows[0]) + 1 for cells in body):
        return False
    if len({cells[0] for cells in body}) < len(body) or not any(
        cells[-1].strip() for cells in body
    ):
        return False
    starts = (line.startswith('"') for line in text.splitlines()[1:] if line)
    return not (separator == "," or (separator == " " and len(rows[0]) == 1)) or all(starts)


def _are_row_names(names: list[str], columns: list[tuple[str, ...]]) -> bool:
    """Tell whether a first column without a name holds labels, as R and pandas write them."""
    if len(columns) < 2 or names[0].strip():
        return False
    return all(columns[0]) and len(set(columns[0])) == len(columns[0])


def _is_blank(cells: list[str], width: int) -> bool:
    """Tell an empty line at the end from a row; with one column, a row may be a quoted nothing."""
    return not cells or (len(cells) == 1 < width and not cells[0].strip())


def read_text(path: str | os.PathLike[str] | IO[Any], encoding: str) -> tuple[str, str]:
    """Return what a file is called, and its text without a byte-order mark."""
    if hasattr(path, "read"):
        name = getattr(path, "name", None)
        source = name if isinstance(name, str) else "the open file"
        try:
            content = path.read()
        except (OSError, ValueError) as error:
            raise InputError(f"{source} cannot be read: {error}.") from None
    elif isinstance(path, str | os.PathLike):
        source, content = os.fspath(path), read_whole(path)
    else:
        raise InputError(f"path must be the path of a file, or an open file; got {path!r}.")
    if isinstance(content, bytes):
        content = text_of(source, content, encoding)
    return source, content.removeprefix("\ufeff")


def _split(
    source: str, text: str, separator: str, part: bool = False
) -> tuple[list[int], list[list[str]]]:
    """Split a text into rows of cells, and say on which lines they start.

    Of a ``part`` of a text, the rows before an error are returned.
    """
    if separator == " ":
        # Runs of blanks, also where columns were aligned by tabs and at the ends of lines.
        text = "\n".join(" ".join(line.split("\t")).strip() for line in text.splitlines())
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator,
        strict=True,
        skipinitialspace=separator == " " or _spaces_follow(text, separator),
    )
    lines: list[int] = []
    rows: list[list[str]] = []
    line = 1
    try:
        for cells in reader:
            rows.append(cells)
            lines.append(line)
            line = reader.line_num + 1
    except csv.Error as error:
        if not part:
            raise InputError(f"{source}, line {line}: {_quoting(str(error))}.") from None
    return lines, rows


def _quoting(error: str) -> str:
    """Say in words what the csv module found."""
    if "field larger" in error:
        return f"a cell has more than {csv.field_size_limit()} characters; is a quote not closed?"
    if "end of data" in error:
        return 'a quote (") is opened and never closed'
    if "expected after" in error:
        return 'a closing quote (") must end its cell; a quote within a cell is written twice ("")'
    return error


def _spaces_follow(text: str, separator: str) -> bool:
    """Tell whether the names are written as in "a, b, c", where the spaces are no part of them."""
    first = re.match(r"[^\r\n]*", text)
    pieces = first[0].split(separator)[1:] if first else []
    return bool(pieces) and all(re.match(r" +[^ ]", piece) for piece in pieces)


def find_separator(source: str, text: str, form: CellFormat) -> str:
    """Find what stands between the cells: that by which all records are alike and can be read."""
    scores: dict[str, tuple[float, float, int]] = {}
    for separator in SEPARATORS:
        records = _sample(source, text, separator)
        if records and len(records[0]) > 1:
            width, body = len(records[0]), records[1:]
            alike = sum(len(cells) == width for cells in body) / max(len(body), 1)
            if not alike and _has_row_names(records, separator, text):
                alike = 1.0
            scores[separator] = (alike, _readable(body, form), width)
    if not scores and _is_cut_by_blanks(source, text):
        return " "
    if not scores:
        # One column. Its numbers may have commas.
        return ";" if form.decimal == "," else ","
    best = max(scores, key=lambda separator: scores[separator])
    if list(scores.values()).count(scores[best]) > 1:
        found = " or ".join(WORDS[s] for s, score in scores.items() if score == scores[best])
        raise InputError(
            f"{source}: the cells may be separated by {found}; tell it with "
            f"{argument('separator')}."
        )
    return best


def _is_cut_by_blanks(source: str, text: str) -> bool:
    """Tell whether every line has as many words as the first one, or a name of its row too."""
    records = _sample(source, text, " ")
    if not records or len(records[-1]) < 2:
        return False
    width, widths = len(records[0]), {len(cells) for cells in records[1:]}
    if not ((width > 1 and widths == {width}) or _has_row_names(records, " ", text)):
        return False
    # Not within "0.05 U" or "< 0.05": columns hold numbers, or truths, after one of names of rows.
    columns = [*zip(*records[1:], strict=True)][-width:]
    first = columns[0]
    named = len(set(first)) == len(first) and all(any(map(str.isalnum, cell)) for cell in first)
    if width > 1 and named:
        columns = columns[1:]
    return all(
        any(any(map(str.isdigit, cell)) for cell in column)
        or all(cell.casefold() in TRUTHS for cell in column)
        for column in columns
    )


def _sample(source: str, text: str, separator: str) -> list[list[str]]:
    """Give the first rows that have cells; none if they cannot be split so."""
    if len(text) > SAMPLE:
        # The last row may have been cut.
        _, rows = _split(source, text[:SAMPLE], separator, part=True)
        return [cells for cells in rows[:-1] if cells]
    try:
        return [cells for cells in _split(source, text, separator)[1] if cells]
    except InputError:
        return []


def _readable(body: list[list[str]], form: CellFormat) -> float:
    """Return the share of cells that can be read, whichever sign is the decimal one."""
    other = CellFormat(decimal="," if form.decimal == "." else ".")
    texts = Counter(text for cells in body for text in cells)
    good = sum(
        count
        for text, count in texts.items()
        if not (read_cell(text, form).problem and read_cell(text, other).problem)
    )
    return good / max(texts.total(), 1)


def _ragged(
    source: str, line: int, cells: list[str], names: list[str], separator: str, form: CellFormat
) -> str:
    told = WORDS.get(separator, repr(separator))
    message = (
        f"{source}, line {line}: {len(cells)} cell{'' if len(cells) == 1 else 's'}, but the first "
        f"line names {len(names)} column{'' if len(names) == 1 else 's'} (separated by {told}). "
        f"The line starts with {shorten(separator.join(cells))}."
    )
    if separator == "," and form.decimal == "." and len(cells) > len(names):
        message += f" If the comma is the decimal sign, pass {argument('decimal', ',')}."
    return message


def to_cells(data: IntervalData, decimal: str = ".") -> list[list[str]]:
    """Print the cells of a table as ``read_csv`` reads them.

    Numbers are the shortest texts that read back as the same bits; intervals are ``a..b``; cells that
    are not detected at an unknown limit are ``ND``; missing ones are empty.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> from halfseen.data.csv_files import to_cells
    >>> to_cells(hs.IntervalData([[1.5, np.nan, 100, -3]], [[1.5, 0.05, np.nan, -1]]))
    [['1.5', '<0.05', '>100', '-3..-1']]
    """
    if decimal not in (".", ","):
        raise InputError(f"decimal must be '.' or ','; got {decimal!r}.")
    rows = zip(data.lower.tolist(), data.upper.tolist(), data.not_detected.tolist(), strict=True)
    return [[print_cell(*cell, decimal=decimal) for cell in zip(*row, strict=True)] for row in rows]


def write_csv(
    data: IntervalData,
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    decimal: str = ".",
    index: str = "label",
) -> None:
    """Write a table as a file that ``read_csv`` reads back, bit for bit; whole or not at all.

    Parameters
    ----------
    data : IntervalData
    path : path of the file
    separator : str, optional
        A comma, or a semicolon where the comma is the decimal sign.
    decimal : "." or ","
    index : str
        Name of the column that the labels of the rows are written to, if there are any.

    Examples
    --------
    >>> import pathlib, tempfile, halfseen as hs
    >>> data = hs.IntervalData([[0.3], [-float("inf")]], [[0.3], [0.05]], ["lead"], labels=["A", "B"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hs.write_csv(data, f"{folder}/lead.csv", index="site")
    ...     print(pathlib.Path(f"{folder}/lead.csv").read_text())
    site,lead
    A,0.3
    B,<0.05
    <BLANKLINE>
    """
    if not isinstance(data, IntervalData):
        raise InputError(f"data must be IntervalData; got {type(data).__qualname__}.")
    mark = separator if separator is not None else (";" if decimal == "," else ",")
    if mark not in (",", ";", "\t", "|") or mark == decimal:
        raise InputError(
            f"separator must be ',', ';', a tab or '|', and not the decimal sign; got {mark!r}."
        )
    rows = [list(data.names), *to_cells(data, decimal)]
    if data.labels is not None:
        if index in data.names:
            raise InputError(
                f"the labels cannot be written to a column {index!r}, because the table has one of "
                f"that name. Choose another with {argument('index')}."
            )
        rows = [[label, *row] for label, row in zip((index, *data.labels), rows, strict=True)]
    text = "".join(mark.join(_quoted(cell, len(row)) for cell in row) + "\n" for row in rows)
    try:
        write_text_whole(path, text)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.start + 1]
        raise InputError(f"a name or a label holds {wrong!r}, which is no character.") from None
    except OSError as error:
        raise InputError(
            f"{os.fspath(path)} cannot be written: {error.strerror or error}."
        ) from None


def _quoted(cell: str, width: int) -> str:
    """Quote a cell where that is needed to read the same back."""
    # An empty cell alone on its line would be an empty line, spaces at the ends may be lost, and a
    # mark that could separate cells may mislead whoever looks for the separator.
    if MARKS.intersection(cell) or cell != cell.strip() or (not cell and width == 1):
        return '"' + cell.replace('"', '""') + '"'
    return cell
