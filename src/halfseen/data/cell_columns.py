"""What the cells of a column say, or of two with the ends of its intervals.

Each different text is read once, and plain numbers all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cells import (
    BLANK,
    Cell,
    CellFormat,
    called,
    is_lost,
    print_number,
    read_cell,
    shorten,
    tidy,
)
from halfseen.data.names import flag_option
from halfseen.data.raw_columns import RawColumn
from halfseen.errors import argument

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Texts made of these alone are numbers wherever Python takes them for numbers: without letters there
# is no "nan" or "inf", and without "_" and spaces none of Python's other liberties.
PLAIN = frozenset("0123456789.+-eE")
INFINITE = "is infinite; a missing value is NaN, and a limit is written as a text such as >100"


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


def read_ends(lower: RawColumn, upper: RawColumn, form: CellFormat) -> ReadColumn:
    """Read the columns of both ends of intervals; reversed ones are refused."""
    low, cells = _read_end(lower, form, "lower")
    high, of_upper = _read_end(upper, form, "upper")
    cells.lower[:], cells.upper[:] = low, high
    # First, so that an end that is no number is not taken for one that is reversed.
    for row, problem in (of_upper.problems | cells.problems).items():
        cells.refuse(row, *problem)
    for row in np.flatnonzero(low > high).tolist():
        text = f"{print_number(low[row])}..{print_number(high[row])}"
        cells.refuse(row, text, "is reversed: its lower end is above its upper end")
    return cells


def _read_end(raw: RawColumn, form: CellFormat, side: str) -> tuple[Floats, ReadColumn]:
    """Read a column of lower or upper ends; an empty cell is no bound on that side.

    Returns the ends, and cells whose ``problems`` say which could not be read.
    """
    lower = side == "lower"
    open_end, signs = (-np.inf, ["-"]) if lower else (np.inf, ["", "+"])
    words = {sign + word for sign in signs for word in ("inf", "infinity", "∞")}
    numbers, texts = raw.numbers, raw.texts
    if numbers is not None:
        numbers = np.where(numbers == open_end, np.nan, numbers)
    if texts is not None:
        texts = ["" if text and tidy(text).casefold() in words else text for text in texts]
    cells = read_column(RawColumn(raw.name, texts, numbers), form)
    end = "a lower end" if lower else "an upper end"
    ends = np.where(cells.missing, open_end, cells.lower)
    for row in np.flatnonzero((cells.lower != cells.upper) & ~cells.missing).tolist():
        cells.refuse(row, raw.text(row), f"must be a number, or empty, to be {end}")
    return ends, cells


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
    if "" in form.words:
        cells.put(np.isnan(values), form.words[""])
    wrong = np.isinf(values)
    for code, meaning in form.codes.items():
        cells.put(values == code, meaning)
        wrong &= values != code
    for row in np.flatnonzero(wrong):
        cells.refuse(int(row), str(values[row]), INFINITE)
    return cells


def _read_texts(texts: Sequence[str | None], form: CellFormat, cells: ReadColumn) -> None:
    """Read the cells that are texts: numbers and ``<number`` at once, the others one by one."""
    slow = [(row, text) for row, text in _read_common(texts, form, cells) if text is not None]
    known = {text: read_cell(text, form) for text in {text for _, text in slow}}
    rows = [row for row, _ in slow]
    read = [known[text] for _, text in slow]
    into = (cells.lower, cells.upper, cells.not_detected, cells.estimated)
    for array, values in zip(into, zip(*read, strict=True), strict=False):
        array[rows] = values
    for row, text in slow:
        if known[text].problem:
            cells.refuse(row, text, known[text].problem)


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


def example_of_numbers(raw: RawColumn, form: CellFormat) -> str:
    """Return a number other than 0 and 1 that a flag column holds; empty if there is none."""
    if raw.numbers is not None:
        other = raw.numbers[~np.isnan(raw.numbers) & (raw.numbers != 0) & (raw.numbers != 1)]
        if other.size:
            return print_number(other[0])
    for text in dict.fromkeys(raw.texts or ()):
        if text is not None and any(map(str.isdigit, text)):
            cell = read_cell(text, form)
            if np.isfinite(cell.lower) and cell.lower not in (0.0, 1.0):
                return text
    return ""


def holds_measurements(raw: RawColumn, form: CellFormat) -> bool:
    """Whether there is a value, a limit or a word for "not detected" in a column."""
    cells = (read_cell(text, form) for text in different(raw))
    return any(cell.not_detected or np.isfinite(cell[:2]).any() for cell in cells)


def holds_numbers(raw: RawColumn, form: CellFormat) -> bool:
    """Whether a column holds plain numbers, and nothing else but blank cells."""
    if raw.kind:
        return False
    cells = [read_cell(text, form) for text in different(raw)]
    known = [cell for cell in cells if cell != BLANK]
    return bool(known) and all(cell.lower == cell.upper for cell in known)


def different(raw: RawColumn) -> Iterator[str]:
    """Return the different cells of a column, as texts."""
    if raw.numbers is not None:
        yield from map(print_number, np.unique(raw.numbers[~np.isnan(raw.numbers)]))
    yield from dict.fromkeys(text for text in raw.texts or () if text is not None)


def whole_column(name: str, held: str, texts: Iterable[str], of: str = "") -> str:
    """Say that a column holds no measurements; ``of`` is the only other one, if there is one."""
    different = list(dict.fromkeys(texts))
    shown = ", ".join(shorten(text, 20) for text in different[:2])
    more = ", ..." if len(different) > 2 else ""
    quoted = f" ({shown}{more})" if shown else ""
    if held == "true and false":
        # To leave out the flags of another column would make measurements of its limits.
        mark = next(
            (text for text in different if text.casefold() in ("true", "yes")), different[0]
        )
        return (
            f"column {called(name)} holds {held}{quoted}. If {shorten(mark, 20)} marks values of "
            f"{called(of) if of else 'a column X'} that are not detected, say "
            f"{flag_option(of or 'X', name, mark)}. If it says nothing of "
            f"another column, leave it out with {argument('exclude', name)}, or make it the row labels "
            f"with {argument('index', name)}."
        )
    return (
        f"column {called(name)} holds {held}{quoted}: leave it out with {argument('exclude', name)}, "
        f"or make it the row labels with {argument('index', name)}."
    )
