"""What a flag says of a value: that it is a limit, that it was seen, that it is estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from halfseen.data.cell_columns import Floats, RawColumn, ReadColumn, text_of
from halfseen.data.cell_reasons import called, shorten
from halfseen.data.cells import MISSING, NOT_DETECTED, CellFormat, print_number, read_cell, tidy
from halfseen.data.conventions import flag_kind

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


def apply_flags(cells: ReadColumn, value: RawColumn, flags: Sequence[RawColumn]) -> None:
    """Change what the cells of a column say by what all of its flags say of them."""
    known: dict[tuple[str, ...], Said] = {}
    said = []
    for row in range(len(cells.lower)):
        texts = tuple(text_of(flag, row) for flag in flags)
        if texts not in known:
            known[texts] = read_flags(texts, [flag.name for flag in flags])
        said.append(known[texts])
        if said[row].problem:
            cells.refuse(row, text_of(value, row), said[row].problem)
    meanings = np.array([one.meaning for one in said], dtype=np.int8)
    meanings[list(cells.problems)] = SILENT
    _combine(cells, meanings, lambda row: text_of(value, row), lambda row: said[row].quoted)


def read_flags(texts: Sequence[str], names: Sequence[str]) -> Said:
    """Put together what several flags say of one cell, in whichever order they stand.

    Examples
    --------
    >>> from halfseen.data.flags import BELOW, read_flags
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
    for row in np.flatnonzero(clash):
        cells.refuse(int(row), text(int(row)), f"contradicts its flag {flag(int(row))}")
    for row in np.flatnonzero(says_above & missing):
        cells.refuse(
            int(row),
            text(int(row)),
            f"has the flag {flag(int(row))}, but no limit beside it",
        )


def join_ends(low: Floats, high: Floats, cells: ReadColumn) -> None:
    """Put the ends of intervals together; reversed ones are refused."""
    cells.lower[:], cells.upper[:] = low, high
    for row in np.flatnonzero(low > high):
        text = f"{print_number(low[row])}..{print_number(high[row])}"
        cells.refuse(int(row), text, "is reversed: its lower end is above its upper end")


def _unknown(name: str, text: str) -> str:
    hint = ""
    if tidy(text).casefold() in YES | NO:
        hint = "; in a column named X_censored or X_detected, yes and no, true and false are known"
    return f"has the flag {shorten(text)} in column {called(name)}, which is not known{hint}"
