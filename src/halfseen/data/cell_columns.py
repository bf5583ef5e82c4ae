"""What the cells of a column say, together with its flags or the ends of its intervals.

Each different text is read once, and plain numbers all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cells import (
    BLANK,
    MISSING,
    NOT_DETECTED,
    Cell,
    CellFormat,
    called,
    is_lost,
    print_number,
    read_cell,
    shorten,
    tidy,
)
from halfseen.data.conventions import Wanted, flag_kind
from halfseen.data.raw_columns import Columns, RawColumn
from halfseen.errors import InputError, argument

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Texts made of these alone are numbers wherever Python takes them for numbers: without letters there
# is no "nan" or "inf", and without "_" and spaces none of Python's other liberties.
PLAIN = frozenset("0123456789.+-eE")
INFINITE = "is infinite; a missing value is NaN, and a limit is written as a text such as >100"
# In this order: of two meanings that go together, the later one says more.
SILENT, DETECTED, EXACT, ESTIMATED, BELOW, BELOW_ESTIMATED, ABOVE = range(7)
YES = frozenset(("true", "yes", "y", "t", "1", "1.0"))
NO = frozenset(("false", "no", "n", "f", "0", "0.0"))
# Of these words, the ones that say "seen" in a column of qualifiers. N and F are qualifiers themselves,
# with another meaning in every laboratory.
NOT_QUALIFIED = frozenset(("false", "0", "0.0"))
WORDS = (
    dict.fromkeys(("<", "<=", "left", *NOT_DETECTED), BELOW)
    | dict.fromkeys((">", ">=", "right"), ABOVE)
    | dict.fromkeys(("=", "=="), EXACT)
    | {"j": ESTIMATED, "j+": ESTIMATED, "j-": ESTIMATED, "uj": BELOW_ESTIMATED}
    | dict.fromkeys(MISSING, SILENT)
)
# What a second flag may say beside each meaning, other than the same: less, and in the same way.
# Detected is less than exact, because it only rules out what lies below a limit.
WEAKER = {
    EXACT: (DETECTED,),
    ESTIMATED: (DETECTED, EXACT),
    BELOW_ESTIMATED: (BELOW,),
    ABOVE: (DETECTED,),
}


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


def read_wanted(table: Columns, form: CellFormat, wanted: Wanted) -> ReadColumn:
    """Read one column of a table with its companions."""
    if wanted.value is None:
        lower, upper = (_measurements(table, place) for place in (wanted.lower, wanted.upper))
        return _read_ends(lower, upper, form)
    raw = _measurements(table, wanted.value)
    cells = read_column(raw, form)
    if wanted.flags:
        _apply_flags(cells, raw, [table.column(flag) for flag in wanted.flags])
    return cells


def _measurements(table: Columns, place: int | None) -> RawColumn:
    """Return a column, unless its type says that it holds no measurements."""
    assert place is not None
    raw = table.column(place)
    if raw.kind:
        raise InputError(whole_column(raw.name, raw.kind, map(raw.text, range(table.rows))))
    return raw


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


def _read_ends(lower: RawColumn, upper: RawColumn, form: CellFormat) -> ReadColumn:
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


def meaning_of(text: str, kind: str) -> int | None:
    """Return what a flag means in a column of this kind; None if that is not known."""
    word = tidy(text).casefold()
    if kind == "detected" and word in YES | {"detected", "d"}:
        return DETECTED
    if kind == "detected" and word in NO:
        return BELOW
    if kind == "censored" and word in YES | {"censored"}:
        return BELOW
    if word in (NOT_QUALIFIED if kind == "qualifier" else NO):
        return EXACT
    return WORDS.get(word)


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


def example_of_flags(raw: RawColumn, form: CellFormat) -> str:
    """Return a flag that a column holds; empty if it holds none, or if it holds measurements."""
    kind = flag_kind(raw.name)
    example = ""
    for text in _different(raw):
        if meaning_of(text, kind) is not None or tidy(text).casefold() in YES | NO:
            if meaning_of(text, kind) != SILENT:
                example = example or text
        elif np.isfinite(read_cell(text, form)[:2]).any():
            return ""
    return example


def holds_measurements(raw: RawColumn, form: CellFormat) -> bool:
    """Whether there is a value, a limit or a word for "not detected" in a column."""
    cells = (read_cell(text, form) for text in _different(raw))
    return any(cell.not_detected or np.isfinite(cell[:2]).any() for cell in cells)


def _different(raw: RawColumn) -> Iterator[str]:
    """Return the different cells of a column, as texts."""
    if raw.numbers is not None:
        yield from map(print_number, np.unique(raw.numbers[~np.isnan(raw.numbers)]))
    yield from dict.fromkeys(text for text in raw.texts or () if text is not None)


class Said(NamedTuple):
    """What the flags of a row say together, how to quote them, and why they cannot be read."""

    meaning: int
    quoted: str
    problem: str = ""


def _apply_flags(cells: ReadColumn, value: RawColumn, flags: Sequence[RawColumn]) -> None:
    """Change what the cells of a column say by what all of its flags say of them."""
    known: dict[tuple[str, ...], Said] = {}
    said = []
    for row in range(len(cells.lower)):
        texts = tuple(flag.text(row) for flag in flags)
        if texts not in known:
            known[texts] = read_flags(texts, [flag.name for flag in flags])
        said.append(known[texts])
        if said[row].problem:
            cells.refuse(row, value.text(row), said[row].problem)
    meanings = np.array([one.meaning for one in said], dtype=np.int8)
    meanings[list(cells.problems)] = SILENT
    _combine(cells, meanings, lambda row: value.text(row), lambda row: said[row].quoted)


def read_flags(texts: Sequence[str], names: Sequence[str]) -> Said:
    """Put together what several flags say of one cell, in whichever order they stand.

    Examples
    --------
    >>> from halfseen.data.cell_columns import BELOW, read_flags
    >>> read_flags(["U", "0"], ["lead_flag", "lead_detected"]).meaning == BELOW
    True
    >>> read_flags(["U", "1"], ["lead_flag", "lead_detected"]).problem
    "has flags that contradict each other: 'U' in lead_flag, '1' in lead_detected"
    """
    meaning: int | None = SILENT
    quoted = []
    for text, name in zip(texts, names, strict=True):
        own = meaning_of(text, flag_kind(name))
        if own is None:
            return Said(SILENT, "", _unknown(name, text))
        if own != SILENT:
            quoted.append(f"{shorten(text)} in {called(name)}")
        meaning = None if meaning is None else _both(meaning, own)
    if meaning is None:
        told = ", ".join(quoted)
        return Said(SILENT, "", f"has flags that contradict each other: {told}")
    return Said(meaning, ", ".join(quoted))


def _both(one: int, other: int) -> int | None:
    """Return what two flags say together; None if they contradict each other."""
    weak, strong = min(one, other), max(one, other)
    return strong if weak == strong or weak in (SILENT, *WEAKER.get(strong, ())) else None


def _combine(
    cells: ReadColumn, meanings: np.ndarray, text: Callable[[int], str], flag: Callable[[int], str]
) -> None:
    lower, upper = cells.lower.copy(), cells.upper.copy()
    missing, undetected = cells.missing, cells.not_detected.copy()
    seen = lower == upper
    below = np.isneginf(lower) & np.isfinite(upper)
    above = np.isfinite(lower) & np.isposinf(upper)
    says_below = (meanings == BELOW) | (meanings == BELOW_ESTIMATED)
    says_above = meanings == ABOVE
    cells.lower[says_below & seen] = -np.inf
    cells.not_detected[says_below & missing] = True
    cells.upper[says_above & seen] = np.inf
    cells.estimated[
        ((meanings == ESTIMATED) & seen) | ((meanings == BELOW_ESTIMATED) & ~missing)
    ] = True
    clash = (
        (says_below & ~(seen | below | missing | undetected))
        | (says_above & ~(seen | above | missing))
        | (((meanings == EXACT) | (meanings == ESTIMATED)) & ~(seen | missing))
        | ((meanings == DETECTED) & (below | undetected))
    )
    for row in np.flatnonzero(clash).tolist():
        cells.refuse(row, text(row), f"contradicts its flag {flag(row)}")
    for row in np.flatnonzero(says_above & missing).tolist():
        cells.refuse(
            int(row), text(int(row)), f"has the flag {flag(int(row))}, but no limit beside it"
        )


def _unknown(name: str, text: str) -> str:
    hint = ""
    if tidy(text).casefold() in YES | NO:
        hint = "; in a column named X_censored or X_detected, yes and no, true and false are known"
    return f"has the flag {shorten(text)} in column {called(name)}, which is not known{hint}"


def whole_column(name: str, held: str, texts: Iterable[str]) -> str:
    """Say that a column holds no measurements."""
    different = list(dict.fromkeys(texts))
    shown = ", ".join(shorten(text, 20) for text in different[:2])
    more = ", ..." if len(different) > 2 else ""
    quoted = f" ({shown}{more})" if shown else ""
    return (
        f"column {called(name)} holds {held}{quoted}: leave it out with {argument('columns')}, or "
        f"make it the row labels with {argument('index', name)}."
    )
