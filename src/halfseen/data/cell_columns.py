"""Columns of cells: each different text is read once, and plain numbers all at once."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cells import BLANK, Cell, CellFormat, is_lost, read_cell, tidy
from halfseen.data.table import float_of

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Texts made of these alone are numbers wherever Python takes them for numbers: without letters there
# is no "nan" or "inf", and without "_" and spaces none of Python's other liberties.
PLAIN = frozenset("0123456789.+-eE")
INFINITE = "is infinite; a missing value is NaN, and a limit is written as a text such as >100"


class RawColumn(NamedTuple):
    """A column as it came: texts, numbers, or a mixture.

    ``texts`` has None where ``numbers`` holds the cell, and NaN in ``numbers`` is a missing one.
    ``kind`` says what the column holds if its type alone rules out that it holds measurements.
    """

    name: str
    texts: Sequence[str | None] | None
    numbers: Floats | None
    kind: str = ""


@dataclass
class ReadColumn:
    """What the cells of one column say. ``problems`` has text and reason of the unreadable rows."""

    lower: Floats
    upper: Floats
    not_detected: Mask
    estimated: Mask
    problems: dict[int, tuple[str, str]]

    @classmethod
    def blank(cls, n: int) -> ReadColumn:
        """Return a column of which nothing is known."""
        return cls(
            np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n, bool), np.zeros(n, bool), {}
        )

    @property
    def missing(self) -> Mask:
        """Mask of the cells that say nothing at all, or could not be read."""
        return np.isneginf(self.lower) & np.isposinf(self.upper) & ~self.not_detected

    def put(self, rows: Any, cell: Cell) -> None:
        """Write one cell into some rows."""
        self.lower[rows], self.upper[rows] = cell.lower, cell.upper
        self.not_detected[rows], self.estimated[rows] = cell.not_detected, cell.estimated

    def refuse(self, row: int, text: str, reason: str) -> None:
        """Note that a cell cannot be read; it then says nothing."""
        self.put(row, BLANK)
        self.problems.setdefault(row, (text, reason))


def read_column(raw: RawColumn, form: CellFormat) -> ReadColumn:
    """Read the cells of a column of measurements."""
    if raw.texts is None:
        assert raw.numbers is not None
        return _cells_of_numbers(raw.numbers, form)
    if raw.numbers is None:
        plain = _plain_numbers(raw.texts, form)
        if plain is not None:
            return _cells_of_numbers(plain, form)
        cells = ReadColumn.blank(len(raw.texts))
    else:
        cells = _cells_of_numbers(raw.numbers, form)
    _read_texts(raw.texts, form, cells)
    return cells


def read_bounds(raw: RawColumn, form: CellFormat, side: str) -> tuple[Floats, ReadColumn]:
    """Read a column of lower or upper ends; an empty cell is no bound on that side.

    Returns the ends, and cells whose ``problems`` say which could not be read.
    """
    open_end = -np.inf if side == "lower" else np.inf
    sign = "-" if side == "lower" else ""
    words = {f"{sign}inf", f"{sign}infinity", f"{sign}∞"}
    if side == "upper":
        words |= {f"+{word}" for word in words}
    numbers_only = raw.numbers
    if numbers_only is not None:
        numbers_only = np.where(numbers_only == open_end, np.nan, numbers_only)
    texts = raw.texts
    if texts is not None:
        texts = [
            "" if text is not None and tidy(text).casefold() in words else text for text in texts
        ]
    cells = read_column(RawColumn(raw.name, texts, numbers_only), form)
    ends = np.where(cells.missing, open_end, cells.lower)
    for row in np.flatnonzero((cells.lower != cells.upper) & ~cells.missing):
        cells.refuse(
            int(row), text_of(raw, int(row)), f"must be a number, or empty, to be a {side} end"
        )
    return ends, cells


def text_of(raw: RawColumn, row: int) -> str:
    """Return a cell as a message shows it."""
    text = None if raw.texts is None else raw.texts[row]
    if text is not None:
        return text
    assert raw.numbers is not None
    value = float(raw.numbers[row])
    return "" if np.isnan(value) else repr(value)


def column_of_objects(name: str, values: Sequence[Any]) -> RawColumn:
    """Read a column of anything: numbers stay numbers, the rest becomes texts."""
    numbers_read = np.full(len(values), np.nan)
    texts: list[str | None] = [None] * len(values)
    for row, value in enumerate(values):
        if isinstance(value, str):
            texts[row] = value
        elif isinstance(value, bool | np.bool_):
            texts[row] = str(bool(value)).lower()
        elif isinstance(value, numbers.Real | Decimal):
            numbers_read[row] = float_of(value)
        elif not is_nothing(value):
            texts[row] = str(value)
    if all(text is None for text in texts):
        return RawColumn(name, None, numbers_read)
    return RawColumn(name, texts, numbers_read)


def is_nothing(value: Any) -> bool:
    """Tell the many kinds of missing values from others."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Real | Decimal) and value != value


def _float_of(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _plain_numbers(texts: Sequence[str | None], form: CellFormat) -> Floats | None:
    """Read a column of plain numbers; None if there is any other text in it."""
    if form.decimal != "." or form.thousands == ".":
        return None
    try:
        if not PLAIN.issuperset("".join(texts)):  # type: ignore[arg-type]  # None is a TypeError here
            return None
        values = np.fromiter(map(float, texts), np.float64, len(texts))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if not np.isfinite(values).all():
        return None
    if any(is_lost(str(texts[row])) for row in np.flatnonzero(values == 0.0).tolist()):
        return None
    if form.words and not form.words.keys().isdisjoint(texts):
        return None
    return values


def _cells_of_numbers(values: Floats, form: CellFormat) -> ReadColumn:
    cells = ReadColumn.blank(len(values))
    known = np.isfinite(values)
    cells.lower[known] = cells.upper[known] = values[known]
    wrong = np.isinf(values)
    for code, meaning in form.codes.items():
        cells.put(values == code, meaning)
        wrong &= values != code
    for row in np.flatnonzero(wrong):
        cells.refuse(int(row), str(values[row]), INFINITE)
    return cells


def _read_texts(texts: Sequence[str | None], form: CellFormat, cells: ReadColumn) -> None:
    """Read the cells that are texts: numbers and ``<number`` at once, the others one by one."""
    slow = _read_common(texts, form, cells)
    known = {text: read_cell(text, form) for _, text in slow if text is not None}
    rows = np.array([row for row, text in slow if text is not None], dtype=np.intp)
    read = [known[text] for _, text in slow if text is not None]
    cells.lower[rows] = [cell.lower for cell in read]
    cells.upper[rows] = [cell.upper for cell in read]
    cells.not_detected[rows] = [cell.not_detected for cell in read]
    cells.estimated[rows] = [cell.estimated for cell in read]
    for row, cell in zip(rows.tolist(), read, strict=True):
        if cell.problem:
            cells.refuse(row, str(texts[row]), cell.problem)


def _read_common(
    texts: Sequence[str | None], form: CellFormat, cells: ReadColumn
) -> list[tuple[int, str | None]]:
    """Read the plain numbers and the limits ``<number``; return the rows and texts of the rest."""
    everything = list(enumerate(texts))
    if form.words or form.codes:
        return everything
    is_common = form.patterns["common"].fullmatch
    common = [text is not None and is_common(text) is not None for text in texts]
    chosen = [str(text) for text, is_so in zip(texts, common, strict=True) if is_so]
    values = np.array(
        [float(form.plain(text.removeprefix("<"))) for text in chosen], dtype=np.float64
    )
    # What a double cannot hold is left for the way that has the sentences.
    odd = np.isinf(values)
    odd[[k for k in np.flatnonzero(values == 0.0).tolist() if is_lost(chosen[k])]] = True
    rows = np.flatnonzero(common)
    limit = np.array([text[0] == "<" for text in chosen], dtype=bool)
    cells.upper[rows] = values
    cells.lower[rows] = np.where(limit, -np.inf, values)
    slow = ~np.array(common, dtype=bool)
    slow[rows[odd]] = True
    return [everything[row] for row in np.flatnonzero(slow).tolist()]
