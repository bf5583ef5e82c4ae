"""Large files of plain numbers: read at once, and cut into texts only where somebody asks for those.

Python needs some 3 microseconds for a cell that is cut out as a text. A file of which every cell is a
number or empty needs none, and pyarrow reads these to the same bits, twenty times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cells import CellFormat

# Characters from which on it pays.
LARGE = 2**20
# Where all cells are of these, they are numbers or nothing, as in ``cell_columns.PLAIN``.
SIGNS = b"0123456789.+-eE"
SEPARATORS = (",", ";", "\t", "|")


class PlainColumn(Sequence[str]):
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
) -> tuple[list[str], list[PlainColumn]] | None:
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
    return names, [PlainColumn(column, j, once) for j, column in enumerate(numbers)]


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
