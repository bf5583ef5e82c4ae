"""What a flag says of a value: that it is a limit, that it was seen, that it is estimated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from halfseen.data.cell_columns import ColumnCells, Floats, RawColumn, text_of
from halfseen.data.cell_reasons import called, shorten
from halfseen.data.cells import MISSING, NOT_DETECTED, CellFormat, print_number, read_cell, tidy
from halfseen.data.conventions import SUFFIXES, split_name

SILENT, EXACT, DETECTED, ESTIMATED, BELOW, BELOW_ESTIMATED, ABOVE = range(7)
YES = frozenset(("true", "yes", "y", "t", "1", "1.0"))
NO = frozenset(("false", "no", "n", "f", "0", "0.0"))
WORDS = (
    dict.fromkeys(("<", "<=", "left", *NOT_DETECTED), BELOW)
    | dict.fromkeys((">", ">=", "right"), ABOVE)
    | dict.fromkeys(("=", "=="), EXACT)
    | {"j": ESTIMATED, "j+": ESTIMATED, "j-": ESTIMATED, "uj": BELOW_ESTIMATED}
    | dict.fromkeys(MISSING, SILENT)
)


def meaning_of(text: str, kind: str) -> int | None:
    """Return what a flag means in a column of this kind; None if that is not known."""
    word = tidy(text).casefold()
    if kind == "detected" and word in YES | {"detected", "d"}:
        return DETECTED
    if kind == "detected" and word in NO:
        return BELOW
    if kind == "censored" and word in YES | {"censored"}:
        return BELOW
    if word in NO:
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


def apply_flags(cells: ColumnCells, value: RawColumn, flag: RawColumn) -> None:
    """Change what the cells of a column say by what its flags say of them."""
    kind = SUFFIXES[split_name(flag.name)[1]]
    known: dict[str, int | None] = {}
    meanings = np.empty(len(cells.lower), dtype=np.int8)
    for row in range(len(meanings)):
        text = text_of(flag, row)
        if text not in known:
            known[text] = meaning_of(text, kind)
        meaning = known[text]
        if meaning is None:
            cells.refuse(row, text_of(value, row), _unknown(flag.name, text))
            meaning = SILENT
        meanings[row] = meaning
    bad = np.zeros(len(meanings), dtype=bool)
    bad[list(cells.problems)] = True
    meanings[bad] = SILENT
    _combine(cells, meanings, lambda row: text_of(value, row), lambda row: text_of(flag, row))


def _combine(
    cells: ColumnCells, meanings: np.ndarray, text: Callable[[int], str], flag: Callable[[int], str]
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
    for row in np.flatnonzero(clash):
        cells.refuse(int(row), text(int(row)), f"contradicts its flag {shorten(flag(int(row)))}")
    for row in np.flatnonzero(says_above & missing):
        cells.refuse(
            int(row),
            text(int(row)),
            f"has the flag {shorten(flag(int(row)))}, but no limit beside it",
        )


def join_ends(low: Floats, high: Floats, cells: ColumnCells) -> None:
    """Put the ends of intervals together; reversed ones are refused."""
    cells.lower[:], cells.upper[:] = low, high
    for row in np.flatnonzero(low > high):
        text = f"{print_number(low[row])}..{print_number(high[row])}"
        cells.refuse(int(row), text, "is reversed: its lower end is above its upper end")


def _unknown(name: str, text: str) -> str:
    hint = ""
    if tidy(text).casefold() in YES:
        hint = "; in a column named X_censored or X_detected, true and false are known"
    return f"has the flag {shorten(text)} in column {called(name)}, which is not known{hint}"
