"""Columns and rows that do not look like measurements: a wrong model is worse than a question."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import numpy as np

from halfseen.data.cell_columns import Columns, FileColumns, Floats, ReadColumn
from halfseen.data.cells import called, print_number
from halfseen.data.conventions import Wanted
from halfseen.data.names import flag_option, is_label
from halfseen.errors import InputError, argument, spelled, warn

# From so many values on, two or three different ones are no measurements, and a count is no accident.
FEWEST_VALUES, FEWEST_COUNTED = 10, 10
MOST_DIFFERENT = 3
# As many different values that are seen must agree for a column to be a copy of another.
FEWEST_COPIED = 2
# As many values must add up for a row to be a sum.
FEWEST_ADDED = 3
UNITS = re.compile(
    r"[(\[]?([^\W\d_]{0,3}[/·][^\W\d].*|%|‰|°.*|[mµun]?[glm]|kg|km|cm|pp[mbt]|units?|[-–])[)\]]?",
    re.IGNORECASE,
)
TOTALS = re.compile(
    r"(grand |sub)?(totals?|sums?|means?|averages?|medians?|minimum|maximum|min|max|std\.?|st\.? ?dev\.?"
    r"|sd|count|summe|gesamt|mittelwert|somme|moyenne|suma|media)\b.*",
    re.IGNORECASE,
)


def doubt_columns(wanted: Sequence[Wanted], read: Mapping[str, ReadColumn]) -> None:
    """Ask of columns that look like flags, numbers of rows or groups; warn of others with few values."""
    few = {}
    for one in wanted:
        cells = read[one.name]
        seen = cells.lower[cells.lower == cells.upper]
        if one.flags or one.limits or one.value is None or not seen.size:
            continue
        different = np.unique(seen)
        if np.isin(different, (0.0, 1.0)).all() or _are_codes(seen, different):
            _doubt_flag(one.name, [other.name for other in wanted], different)
        _doubt_number_of_row(one.name, seen, different)
        plain = seen.size == len(cells.lower) or not cells.missing.all()
        if plain and 1 < different.size <= MOST_DIFFERENT and seen.size >= FEWEST_VALUES:
            few[one.name] = different
    _warn_of_few(few)


def _doubt_flag(name: str, names: Sequence[str], different: Floats) -> None:
    for other in names:
        if len(other) < len(name) and _speaks_of(name, other):
            marks = [print_number(one) for one in different]
            say = " or ".join(
                f"{flag_option(other, name, mark)} where {mark} marks them" for mark in marks[::-1]
            )
            raise InputError(
                f"column {called(name)} holds {' and '.join(marks)}, and has the name of "
                f"{called(other)} in it. If it says which values of {called(other)} are not detected, "
                f"say {say}. If not, leave it out with {argument('exclude', name)}, or name it among "
                f"{argument('columns')} to keep it as a column."
            )


def doubt_copies(wanted: Sequence[Wanted], read: Mapping[str, ReadColumn]) -> None:
    """Refuse two columns of the same numbers: the text of a sheet, and what was made of it.

    What was made of it holds the limit where the text says "<", or nothing.
    """
    whole: dict[bytes, Wanted] = {}
    measured: dict[bytes, Wanted] = {}
    for one in wanted:
        cells = read[one.name]
        seen = cells.lower == cells.upper
        if np.unique(cells.lower[seen]).size < FEWEST_COPIED:
            continue
        numbers = np.where(np.isfinite(cells.upper), cells.upper, cells.lower)
        all_of_them, of_seen = _fingerprint(numbers), _fingerprint(np.where(seen, numbers, np.nan))
        for others, key in ((whole, all_of_them), (measured, all_of_them), (whole, of_seen)):
            if key in others:
                _refuse_copy(others[key], one, read)
        whole.setdefault(all_of_them, one)
        measured.setdefault(of_seen, one)


def _fingerprint(numbers: Floats) -> bytes:
    """Return what two columns have in common that hold the same, and no others."""
    plain = np.where(np.isfinite(numbers), numbers + 0.0, np.nan)
    return hashlib.blake2b(plain.tobytes(), digest_size=16).digest()


def _refuse_copy(other: Wanted, one: Wanted, read: Mapping[str, ReadColumn]) -> None:
    """Raise if one of two columns that hold the same says what was not detected."""
    counts = [
        int((np.isneginf(read[it.name].lower) | np.isposinf(read[it.name].upper)).sum())
        for it in (other, one)
    ]
    if any(counts):
        plain, flagged = (one, other) if counts[1] <= counts[0] else (other, one)
        raise InputError(
            f"columns {called(other.name)} and {called(one.name)} hold the same numbers, and "
            f"{called(flagged.name)} says which of them were not detected. Leave the other one out: "
            f"{argument('exclude', plain.name)}."
        )


def _are_codes(seen: Floats, different: Floats) -> bool:
    """Whether values are few different whole numbers, as codes are."""
    whole = bool((np.trunc(different) == different).all())
    return whole and different.size <= MOST_DIFFERENT and seen.size >= FEWEST_VALUES


def _speaks_of(name: str, other: str) -> bool:
    """Whether a name begins or ends with that of another column, as a word of its own."""
    short = other.casefold()
    if len(short) < 2:
        pattern = rf"(^{re.escape(short)}[^a-z0-9])|([^a-z0-9]{re.escape(short)}$)"
        return bool(re.search(pattern, name.casefold()))
    if len(short) >= 4 and (name.casefold().startswith(short) or name.casefold().endswith(short)):
        return True
    start, end = name[: len(other)] == other, name[-len(other) :] == other
    after, before = name[len(other) :][:1], name[: -len(other)][-1:]
    by_start = start and bool(after) and not after.islower()
    by_end = end and bool(before) and (other[0].isupper() or not before.isalnum())
    return by_start or by_end


def _doubt_number_of_row(name: str, seen: Floats, different: Floats) -> None:
    whole = bool((np.trunc(seen) == seen).all())
    counts = (
        whole
        and seen.size >= FEWEST_COUNTED
        and different.size == seen.size
        and different[-1] - different[0] == seen.size - 1
    )
    if not counts and not (whole and seen.size > 1 and is_label(name)):
        return
    held = (
        f"counts from {print_number(different[0])} to {print_number(different[-1])}, each number once"
        if counts
        else f"holds whole numbers ({', '.join(map(print_number, different[:3]))}"
        f"{', ...' if different.size > 3 else ''}), and is named like groups or numbers of rows"
    )
    groups = (
        "" if counts or different.size == seen.size else f"compare its groups with {_by(name)}, "
    )
    raise InputError(
        f"column {called(name)} {held}: no measurement, it seems. Make it the row labels with "
        f"{argument('index', name)}, {groups}leave it out with {argument('exclude', name)}, or name it "
        f"among {argument('columns')} to model it all the same."
    )


def _by(name: str) -> str:
    """Spell how to compare the groups of a column."""
    return spelled(f"keep={name!r} here and fit(..., by={name!r})", argument("keep", name))


def _warn_of_few(few: Mapping[str, Floats]) -> None:
    if not few:
        return
    name = next(iter(few))
    told = ", ".join(
        f"{called(one)} ({', '.join(map(print_number, values))})" for one, values in few.items()
    )
    has = "column has" if len(few) == 1 else "columns have"
    warn(
        f"{len(few)} {has} two or three different values: {told}. They are read as measurements, "
        "which does no harm to the others where they are always seen (a column such as male). If one "
        f"says which values of X are not detected, say {flag_option('X', name)}; if it is a group, "
        f"compare groups with {_by(name)}, or leave it out with "
        f"{argument('exclude', name)}; to keep it without this "
        f"warning, name it among {argument('columns')}."
    )


def doubt_units(table: Columns, read: Mapping[str, ReadColumn]) -> None:
    """Refuse a first row of units, above columns that can be read otherwise."""
    above = [cells.problems[0][0].strip() for cells in read.values() if [*cells.problems] == [0]]
    if not above or table.rows < 2 or not all(map(UNITS.fullmatch, above)):
        return
    where = "row 0" if table.lines is None else f"line {table.lines[0]}"
    raise InputError(
        f"{table.source}: the first row ({where}) holds units ({', '.join(map(repr, above[:3]))}"
        f"{', ...' if len(above) > 3 else ''}). Take that row away, and write units in the names of the "
        "columns."
    )


def doubt_totals(
    table: Columns, read: Mapping[str, ReadColumn], labels: Sequence[str] | None
) -> None:
    """Refuse a last row that sums up the others: by its label, or because its values do."""
    last = table.rows - 1
    texts = [] if labels is None else [labels[last]]
    if isinstance(table, FileColumns):
        texts += [table.column(place).text(last) for place in range(len(table.names))]
    label = next((text.strip() for text in texts if TOTALS.fullmatch(text.strip())), "")
    if not label and not _adds_up(read):
        return
    where = f"row {last}" if table.lines is None else f"line {table.lines[last]}"
    what = f"is labelled {label!r}" if label else "holds the sums of the others"
    raise InputError(
        f"{table.source}: the last row ({where}) {what}, and is no sample, it seems. Take it out of "
        f"the file; if it is a sample all the same, {argument('companions', False)} reads it."
    )


def _adds_up(read: Mapping[str, ReadColumn]) -> bool:
    sums = 0
    for cells in read.values():
        seen = cells.lower == cells.upper
        if not seen[-1] or seen.sum() <= FEWEST_ADDED or cells.lower[-1] == 0.0:
            return False
        total = cells.lower[:-1][seen[:-1]].sum()
        if abs(cells.lower[-1] - total) > 1e-6 * np.abs(cells.lower[:-1][seen[:-1]]).sum():
            return False
        sums += 1
    return sums > 0
