"""What columns of flags say: qualifiers (``U``, ``<``, ``J``), or yes and no to "censored".

Each row is read with all flags of its cell, which may say the same or more, and not the opposite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from halfseen.data.cell_columns import ReadColumn, different
from halfseen.data.cells import MISSING, NOT_DETECTED, CellFormat, called, read_cell, shorten, tidy
from halfseen.data.declared import Flag, flag_option
from halfseen.data.raw_columns import RawColumn

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


def meaning_of(text: str, kind: str, below: Sequence[str] = ()) -> int | None:
    """Return what a flag means in a column of this kind; None if that is not known.

    Where ``below`` has the flags of what was not detected, all others mean detected.
    """
    word = tidy(text).casefold()
    if below:
        own = {_plain(mark) for mark in below}
        return BELOW if _plain(word) in own else SILENT if word in MISSING else DETECTED
    if kind == "detected" and word in YES | {"detected", "d"}:
        return DETECTED
    if kind == "detected" and word in NO:
        return BELOW
    if kind == "censored" and word in YES | {"censored"}:
        return BELOW
    if word in (NOT_QUALIFIED if kind == "qualifier" else NO):
        return EXACT
    return WORDS.get(word)


def note_of_flags(column: str, raw: RawColumn, kind: str) -> str:
    """Say how a column of 0 and 1 is read; empty where its name says it in full, or it has others."""
    words = {tidy(text).casefold().removesuffix(".0") for text in different(raw)} - MISSING
    full = raw.name.casefold().endswith(("censored", "detected", "nondetect"))
    if kind == "qualifier" or full or not words or not words <= {"0", "1"}:
        return ""
    mark = "1" if kind == "censored" else "0"
    return f"{mark} in {called(raw.name)} marks values of {called(column)} that are limits"


def _plain(mark: str) -> str:
    """Write a flag in one way: numbers without a point, and truths as numbers."""
    word = tidy(mark).casefold().removesuffix(".0")
    return {"true": "1", "false": "0"}.get(word, word)


def example_of_flags(raw: RawColumn, form: CellFormat, kind: str) -> str:
    """Return a flag that a column holds; empty if it holds none, or if it holds measurements."""
    example = ""
    for text in different(raw):
        if meaning_of(text, kind) is not None or tidy(text).casefold() in YES | NO:
            if meaning_of(text, kind) != SILENT:
                example = example or text
        elif np.isfinite(read_cell(text, form)[:2]).any():
            return ""
    return example


class Said(NamedTuple):
    """What the flags of a row say together, how to quote them, and why they cannot be read."""

    meaning: int
    quoted: str
    problem: str = ""


def apply_flags(
    cells: ReadColumn, value: RawColumn, raw: Sequence[RawColumn], flags: Sequence[Flag]
) -> None:
    """Change what the cells of a column say by what all of its flags say of them."""
    known: dict[tuple[str, ...], Said] = {}
    said = []
    names = [flag.name for flag in raw]
    for row in range(len(cells.lower)):
        texts = tuple(flag.text(row) for flag in raw)
        if texts not in known:
            known[texts] = read_flags(texts, names, flags, value.name)
        said.append(known[texts])
        if said[row].problem:
            cells.refuse(row, value.text(row), said[row].problem)
    meanings = np.array([one.meaning for one in said], dtype=np.int8)
    meanings[list(cells.problems)] = SILENT
    _combine(cells, meanings, lambda row: value.text(row), lambda row: said[row].quoted)


def read_flags(
    texts: Sequence[str], names: Sequence[str], flags: Sequence[Flag], column: str = "X"
) -> Said:
    """Put together what several flags say of one cell, in whichever order they stand.

    Examples
    --------
    >>> from halfseen.data.declared import Flag
    >>> from halfseen.data.flags import BELOW, read_flags
    >>> names, flags = ["lead_flag", "lead_detected"], [Flag(1, "qualifier"), Flag(2, "detected")]
    >>> read_flags(["U", "0"], names, flags).meaning == BELOW
    True
    >>> read_flags(["U", "1"], names, flags).problem
    "has flags that contradict each other: 'U' in lead_flag, '1' in lead_detected"
    """
    meaning: int | None = SILENT
    quoted = []
    for text, name, flag in zip(texts, names, flags, strict=True):
        own = meaning_of(text, flag.kind, flag.below)
        if own is None:
            return Said(SILENT, "", _unknown(column, name, text))
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


def _unknown(column: str, name: str, text: str) -> str:
    mark = tidy(text)
    if mark.casefold() in YES | NO:
        one, other = ("1", "0") if mark.removesuffix(".0") in ("0", "1") else ("yes", "no")
        if mark.casefold() in ("true", "false"):
            one, other = "true", "false"
        say = (
            f"if {one} marks what was not detected, say {flag_option(column, name, one)}, and if "
            f"{other} does, {flag_option(column, name, other)}"
        )
    else:
        say = (
            f"if it marks what was not detected, say so with the others that do, as in "
            f"{flag_option(column, name, f'U|{mark}')}; if not, {flag_option(column, name, 'U')}: all "
            "that are not named mean detected"
        )
    return f"has the flag {shorten(text)} in column {called(name)}, which is not known: {say}"
