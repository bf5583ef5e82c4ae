"""One column with all that speaks of it: its flags, and the columns of its limits.

Flags are qualifiers (``U``, ``<``, ``J``), or yes and no to "censored". Each row is read with all flags
of its cell, which may say the same or more, and not the opposite.

A column of limits says how far up a cell may lie that was not detected. Where it does not fit what
stands in the cells, the question is put to whoever knows, with the option that answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from halfseen.data.cell_columns import (
    Columns,
    Floats,
    Mask,
    RawColumn,
    ReadColumn,
    different,
    read_column,
    read_ends,
    whole_column,
)
from halfseen.data.cells import (
    MISSING,
    NOT_DETECTED,
    CellFormat,
    called,
    print_number,
    read_cell,
    shorten,
    tidy,
)
from halfseen.data.conventions import Wanted
from halfseen.data.names import Flag, flag_option, limit_option
from halfseen.errors import InputError, argument, spelled

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
# Shares of a limit that laboratories put in place of what was not detected: half of it, over root two.
SUBSTITUTES = (0.0, 0.5, 1.0 / np.sqrt(2.0))
# As far as rounding to three digits takes such a value.
ROUNDED = 2e-2
# So many seen values that are at most so many different ones, where the flagged ones all differ, are
# limits rather than measurements.
FEWEST, MOST_DIFFERENT = 4, 3


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
    >>> from halfseen.data.names import Flag
    >>> from halfseen.data.second_columns import BELOW, read_flags
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


def read_wanted(
    table: Columns, form: CellFormat, wanted: Wanted, saturated: bool = False
) -> ReadColumn:
    """Read one column of a table with its companions."""
    if wanted.value is None:
        lower, upper = (_measurements(table, place) for place in (wanted.lower, wanted.upper))
        return read_ends(lower, upper, form)
    raw = _measurements(table, wanted.value)
    cells = read_column(raw, form)
    stated = _below(cells)
    if wanted.flags:
        flags = [table.column(flag.place) for flag in wanted.flags]
        _check_marks(raw.name, flags, wanted.flags)
        apply_flags(cells, raw, flags, wanted.flags)
        _check_direction(cells, raw.name, flags, wanted.flags)
    if wanted.limits:
        limits = [(table.names[place], _limits(table, form, place)) for place in wanted.limits]
        name, limit = _the_limits(cells, raw.name, limits)
        if wanted.flags:
            flag = wanted.flags[0]
            _check_sides(cells, limit, raw.name, table.names[flag.place], wanted.flags)
        _apply_limits(cells, stated, raw.name, name, limit, form, wanted, saturated)
    return cells


def _measurements(table: Columns, place: int | None) -> RawColumn:
    """Return a column, unless its type says that it holds no measurements."""
    assert place is not None
    raw = table.column(place)
    if raw.kind:
        raise InputError(whole_column(raw.name, raw.kind, map(raw.text, range(table.rows))))
    return raw


# Flags.


def _check_marks(column: str, raw: Sequence[RawColumn], flags: Sequence[Flag]) -> None:
    """Raise where none of the flags that were declared to mark a column stands in it."""
    for one, flag in zip(raw, flags, strict=True):
        if not flag.below:
            continue
        texts = list(dict.fromkeys(one.text(row) for row in range(_length(one))))
        known = [meaning_of(text, flag.kind, flag.below) for text in texts]
        if meaning_of(flag.below[0], flag.kind, flag.below) not in known:
            shown = ", ".join(repr(text) for text in texts[:5])
            raise InputError(
                f"{argument('flags')}: {called(one.name)} marks no cell of {called(column)} with "
                f"{' or '.join(map(repr, flag.below))}; it holds {shown}"
                f"{', ...' if len(texts) > 5 else ''}."
            )


def _length(raw: RawColumn) -> int:
    return len(raw.texts) if raw.texts is not None else len(raw.numbers)  # type: ignore[arg-type]


def _check_direction(
    cells: ReadColumn, column: str, raw: Sequence[RawColumn], flags: Sequence[Flag]
) -> None:
    """Ask where flags look the wrong way round: seen values are few, and flagged ones all differ."""
    if len(flags) > 1 or flags[0].below or flags[0].kind == "qualifier":
        return
    seen = cells.lower[cells.lower == cells.upper]
    below = cells.upper[np.isneginf(cells.lower) & np.isfinite(cells.upper)]
    alike = 0 < np.unique(seen).size <= MOST_DIFFERENT and seen.size >= FEWEST
    differ = below.size >= FEWEST and np.unique(below).size > 0.8 * below.size
    if not (alike and np.unique(seen).size <= seen.size / 2 and differ):
        return
    odd = (
        f"{seen.size} values are measured of which only {np.unique(seen).size} differ, as limits do, "
        f"and {below.size} limits nearly all differ, as measurements do"
    )
    raise InputError(_which_way(column, raw[0].name, flags[0], odd))


def _check_sides(
    cells: ReadColumn, limit: Floats, column: str, name: str, flags: Sequence[Flag]
) -> None:
    """Ask where flags look the wrong way round: most cells that they mark lie above their limits."""
    if len(flags) > 1 or flags[0].below or flags[0].kind == "qualifier":
        return
    stated = np.isneginf(cells.lower) & np.isfinite(cells.upper) & np.isfinite(limit)
    above = int((stated & (cells.upper > limit)).sum())
    if 2 * above > stated.sum():
        odd = f"{above} of {int(stated.sum())} cells that were not detected lie above their limits"
        raise InputError(_which_way(column, name, flags[0], odd))


def _which_way(column: str, name: str, flag: Flag, odd: str) -> str:
    """Ask which way round flags are, where their name says one thing and the values another."""
    one, other = ("1", "0") if flag.kind == "censored" else ("0", "1")
    return (
        f"column {called(name)} says by its name that {one} marks what was not detected in "
        f"{called(column)}; but then {odd}. If {other} marks what was not detected, say "
        f"{flag_option(column, name, other)}; else {flag_option(column, name, one)}."
    )


# Limits.


def _limits(table: Columns, form: CellFormat, place: int) -> Floats:
    """Return a column of limits, NaN where it is empty."""
    raw = _measurements(table, place)
    cells = read_column(raw, form)
    seen = cells.lower == cells.upper
    wrong = np.flatnonzero(~(seen | cells.missing))
    wrong = np.union1d(wrong, np.array([*cells.problems], dtype=np.intp))
    if wrong.size:
        row = int(wrong[0])
        where = f"row {row}" if table.lines is None else f"line {table.lines[row]}"
        raise InputError(
            f"{where}, column {called(raw.name)}: a limit is a number, or empty; got "
            f"{raw.text(row)!r}."
        )
    return np.where(seen, cells.lower, np.nan)


def _the_limits(
    cells: ReadColumn, column: str, limits: list[tuple[str, Floats]]
) -> tuple[str, Floats]:
    """Return the column of limits; of several, that in which the limits of all cells stand."""
    below = _below(cells)
    stated = below & np.isfinite(cells.upper)
    fitting = [one for one in limits if np.array_equal(one[1][stated], cells.upper[stated])]
    if len(limits) > 1 and not (len(fitting) == 1 and stated.any()):
        first, second = (limit_option(column, name) for name, _ in limits[:2])
        raise InputError(
            f"columns {' and '.join(called(name) for name, _ in limits)} may hold the limits of "
            f"{called(column)}. Say below which its cells are not detected: {first}, or {second}."
        )
    return fitting[0] if len(limits) > 1 else limits[0]


def _below(cells: ReadColumn) -> Mask:
    return (np.isneginf(cells.lower) & np.isfinite(cells.upper)) | cells.not_detected


def _apply_limits(
    cells: ReadColumn,
    own: Mask,
    column: str,
    name: str,
    limit: Floats,
    form: CellFormat,
    wanted: Wanted,
    saturated: bool,
) -> None:
    """Put cells that are not detected below their limits, and ask where that is not clear.

    Cells that state an ``own`` limit, as in ``<0.05``, hold nothing that was put in their place.
    """
    known = np.isfinite(limit)
    seen = cells.lower == cells.upper
    if saturated:
        cells.lower[seen & known & (limit >= cells.lower)] = -np.inf
    below = _below(cells)
    if not below.any() and not wanted.flags:
        _ask_what_is_below(cells, column, name, limit, form)
    stated = below & known & np.isfinite(cells.upper) & ~(seen & saturated)
    if not wanted.sure:
        _check_stated(cells, stated, own, column, name, limit)
    below &= known
    cells.upper[below] = limit[below]
    cells.not_detected[below] = False


def _ask_what_is_below(
    cells: ReadColumn, column: str, name: str, limit: Floats, form: CellFormat
) -> None:
    """Ask which cells were not detected, where limits stand beside a column that does not say it."""
    out = f"leave the limits out: {argument('exclude', name)}"
    at = np.isfinite(limit) & (cells.lower == cells.upper) & (cells.lower <= limit)
    if at.any():
        row = int(np.flatnonzero(at)[0])
        clip = spelled(
            f"{limit_option(column, name)} and saturated=True",
            f"{limit_option(column, name)} --saturated",
        )
        raise InputError(
            f"Nothing says whether {_counted(int(at.sum()), 'value')} of {called(column)} on or below "
            f"the limit in {called(name)} were detected (the first is {print_number(cells.lower[row])}, "
            f"at a limit of {print_number(limit[row])}). If they stand for what was not detected, say "
            f"{clip}; if they are measured, {out}."
        )
    blank = int((cells.missing & np.isfinite(limit)).sum())
    if blank and "" not in form.words:
        raise InputError(
            f"Nothing says what {_counted(blank, 'blank cell')} of {called(column)} with a limit in "
            f"{called(name)} mean. If blank means not detected, pass {argument('not_detected', '')}; if "
            f"these values are missing for other reasons, {argument('missing', '')}."
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _check_stated(
    cells: ReadColumn, stated: Mask, own: Mask, column: str, name: str, limit: Floats
) -> None:
    """Ask where a cell that was not detected holds another number than its limit."""
    odd = np.flatnonzero(stated & (cells.upper != limit))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = cells.upper[odd] / limit[odd]
    put = any(np.all(np.abs(shares - one) <= ROUNDED * max(one, ROUNDED)) for one in SUBSTITUTES)
    if not odd.size or (put and (limit[odd] > 0.0).all() and not own[odd].any()):
        return
    row = int(odd[0])
    raise InputError(
        f"In {_counted(odd.size, 'row')} {called(column)} is not detected, but holds another number "
        f"than the limit in {called(name)} (the first is {print_number(cells.upper[row])}, at a limit "
        f"of {print_number(limit[row])}). If the limits are in {called(name)}, say "
        f"{limit_option(column, name)}; if the numbers in the cells are the limits, leave it out: "
        f"{argument('exclude', name)}."
    )
