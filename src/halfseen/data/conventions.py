"""Tables that say in a second column what the first one means.

A column X is read together with one whose name is X and a suffix, in any case, after ``_``, ``.``,
``-`` or a space:

===========================================  ====================================================
``flag``, ``qualifier``, ``qual``, ``q``     ``U``, ``<``, ``ND``: the value is a limit, and the
                                             truth below it; ``>``: above it; ``J``: estimated;
                                             empty, ``=``, 0, false: seen
``censored``, ``cen``, ``nd``                the same, and true, yes, 1: below the value
``detected``                                 the same, and false, no, 0: below the value
``lower`` and ``upper``, ``lo`` and ``hi``   the ends of an interval for X; an empty one is open
===========================================  ====================================================

Where a table has one column of measurements, its second columns may be named by the suffix alone.
"""

from __future__ import annotations

import difflib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from halfseen.data.cells import called, shorten
from halfseen.errors import AssumptionWarning, InputError, argument

# What the booleans of a flag column mean, by the end of its name.
SUFFIXES = (
    dict.fromkeys(("flag", "flags", "qualifier", "qualifiers", "qual", "q"), "qualifier")
    | dict.fromkeys(("censored", "cens", "cen", "nd", "nondetect"), "censored")
    | dict.fromkeys(("detected", "detect"), "detected")
)
ENDS = {"lower": "upper", "lo": "hi"}
# The name of the column that bare ``lower`` and ``upper`` give.
UNNAMED = "value"
BETWEEN = " _.-"
# So many columns of flags that belong to none are compared with all others, and so many are named.
MOST_LOST, MOST_TOLD = 100, 8
# Names that are those of flags also without a column before them.
BARE = frozenset({"flag", "flags", "qualifier", "qual", "censored", "cen", "detected"})


class Wanted(NamedTuple):
    """A column to read: where its values and its flags are, or its ends. Positions in the table."""

    name: str
    value: int | None
    flags: tuple[int, ...] = ()
    lower: int | None = None
    upper: int | None = None


class Contents(NamedTuple):
    """What columns hold, by position; asked only where their names leave a doubt.

    ``number`` returns an example if a column named like flags holds numbers other than 0 and 1, and
    ``flag`` returns one if it holds flags and no measurements; both are empty otherwise.
    """

    number: Callable[[int], str]
    flag: Callable[[int], str]
    measured: Callable[[int], bool]


class Companions(NamedTuple):
    """Second columns.

    ``flags`` has the position of the column that each flag column speaks of, ``pairs`` the ends of
    each name, and ``lost`` the flag columns whose name does not say of which column they speak, with
    those that it may be.
    """

    flags: dict[int, int]
    pairs: dict[str, tuple[int, int]]
    lost: dict[int, list[int]]


def choose(
    names: Sequence[str],
    columns: Sequence[str] | str | None,
    index: int | None,
    contents: Contents,
    companions: bool = True,
) -> list[Wanted]:
    """Decide which columns are read, and from where.

    Parameters
    ----------
    names : names of all columns of the table
    columns : those to read, or None for all
    index : position of the column of row labels
    contents : tells what columns hold
    companions : whether second columns are looked for
    """
    places = [j for j in range(len(names)) if j != index]
    found = _companions(names, places, contents) if companions else Companions({}, {}, {})
    if columns is None:
        _check_names(names, places)
        if companions:
            _refuse_bare(names, places, found, contents)
        return _all_of(names, places, found, contents)
    wanted = _some_of(names, places, columns, found, contents)
    if companions:
        _warn_of_unread_flags(names, places, wanted, found)
    return wanted


def split_name(name: str) -> tuple[str, str]:
    """Split a name such as "lead_flag" into "lead" and "flag"; both are empty for other names."""
    for suffix in (*SUFFIXES, *ENDS, *ENDS.values()):
        stem = name[: -len(suffix)]
        if name[-len(suffix) :].lower() == suffix and stem and stem[-1] in BETWEEN:
            base = stem.rstrip(BETWEEN)
            return (base, suffix) if base else ("", "")
    return "", ""


def flag_kind(name: str) -> str:
    """Return what kind of flags a column has by its name; empty if it has none."""
    return SUFFIXES.get(split_name(name)[1] or name.strip().casefold(), "")


def find_column(names: Sequence[str], name: str, where: str, others: Iterable[str] = ()) -> int:
    """Return the position of a column; an unknown one gets the closest match."""
    places = [j for j, known in enumerate(names) if known == name]
    if len(places) == 1:
        return places[0]
    if places:
        raise InputError(f"{where}: {len(places)} columns are named {name!r}; rename them first.")
    known = list(dict.fromkeys([*names, *others]))
    # Names differ in case more often than in letters.
    folded = {other.casefold().strip(): other for other in known}
    close = difflib.get_close_matches(str(name).casefold().strip(), folded, n=1)
    if close:
        hint = f"did you mean {shorten(folded[close[0]])}?"
    else:
        shown = ", ".join(shorten(other) for other in known[:8])
        hint = f"the table has {shown}{', ...' if len(known) > 8 else ''}."
    raise InputError(f"{where}: there is no column {shorten(str(name))}; {hint}")


def _companions(names: Sequence[str], places: Sequence[int], contents: Contents) -> Companions:
    """Find the columns that are named as companions of others."""
    flags: dict[int, int] = {}
    lost: dict[int, list[int]] = {}
    ends: dict[str, dict[str, int]] = {}
    # Looked up by name, so that the work grows with the number of columns and not with its square.
    exact: dict[str, list[int]] = {}
    folded: dict[str, list[int]] = {}
    for j in places:
        exact.setdefault(names[j], []).append(j)
        folded.setdefault(names[j].casefold(), []).append(j)
    for j in places:
        if names[j].casefold() in ("lower", "upper"):
            ends.setdefault(UNNAMED, {})[names[j].casefold()] = j
        stem, suffix = split_name(names[j])
        if suffix in SUFFIXES:
            base = _same_name(names, exact.get(stem) or folded.get(stem.casefold(), []), j)
            if base is not None:
                flags[j] = base
            elif contents.flag(j):
                start = stem.casefold()
                few = len(lost) < MOST_LOST
                lost[j] = [k for k in places if few and names[k].casefold().startswith(start)]
        elif flag_kind(names[j]) and contents.flag(j):
            lost[j] = []
        elif suffix:
            ends.setdefault(stem.casefold(), {})[suffix] = j
    pairs = {
        split_name(names[of[low]])[0] or UNNAMED: (of[low], of[high])
        for of in ends.values()
        for low, high in ENDS.items()
        if low in of and high in of
    }
    found = Companions(flags, pairs, lost)
    _match_bare(names, places, found, contents)
    return found


def _match_bare(
    names: Sequence[str], places: Sequence[int], found: Companions, contents: Contents
) -> None:
    """Match columns of flags that are named by a suffix alone with the only column of values."""
    taken = {*found.flags, *found.lost, *(end for pair in found.pairs.values() for end in pair)}
    bare = {j for j in found.lost if not split_name(names[j])[1]}
    values = [k for k in places if k not in taken and contents.measured(k)] if bare else []
    for j, others in found.lost.items():
        found.lost[j] = values if j in bare else [k for k in others if k not in taken]
    if len(values) == 1 and not found.pairs:
        for j in bare:
            del found.lost[j]
            found.flags[j] = values[0]


def _same_name(names: Sequence[str], alike: Sequence[int], flag: int) -> int | None:
    """Return the column that a flag column speaks of, where one alone has its name."""
    if len(alike) > 1:
        told = " or ".join(shorten(names[j]) for j in alike[:MOST_TOLD])
        raise InputError(
            f"column {called(names[flag])} may hold the flags of {told}; rename it, or pass "
            f"{argument('companions', False)} to read each column by itself."
        )
    return alike[0] if alike else None


def _check_names(names: Sequence[str], places: Sequence[int]) -> None:
    for j in places:
        if not names[j].strip():
            raise InputError(
                f"column {j + 1} has no name. Name it, leave it out with {argument('columns')}, or "
                f"make it the row labels with {argument('index', names[j])}."
            )
    for name, count in Counter(names[j] for j in places).items():
        if count > 1:
            raise InputError(
                f"{count} columns are named {shorten(name)}; rename them, or leave them out with "
                f"{argument('columns')}."
            )


def _refuse_bare(
    names: Sequence[str], places: Sequence[int], found: Companions, contents: Contents
) -> None:
    """Refuse a column that is named like flags alone and holds numbers: nobody can say which it is."""
    for j in places:
        if names[j].strip().casefold() in BARE and j not in found.flags and contents.number(j):
            raise InputError(
                f"column {called(names[j])} is named like flags, but holds numbers such as "
                f"{contents.number(j)}. Leave it out with {argument('columns')}, or pass "
                f"{argument('companions', False)} to read it as a measurement."
            )


def _all_of(
    names: Sequence[str], places: Sequence[int], found: Companions, contents: Contents
) -> list[Wanted]:
    """Read every column, with its companions."""
    _refuse_doubts([called(name) for name in names], found, contents)
    for flag, others in found.lost.items():
        labels = (
            f", make a column of row labels the index with {argument('index')}"
            if len(others) > 1
            else ""
        )
        raise InputError(f"{_lost(names, flag, found, contents)}{labels}, {_remedy()}.")
    flags = _flags_by_column(found)
    first = {low: (name, low, high) for name, (low, high) in found.pairs.items()}
    second = {high for _, high in found.pairs.values()}
    wanted = []
    for j in places:
        if j in first:
            name, low, high = first[j]
            wanted.append(Wanted(name, None, lower=low, upper=high))
        elif j not in second and j not in found.flags:
            wanted.append(Wanted(names[j], j, flags.get(j, ())))
    return wanted


def _refuse_doubts(names: Sequence[str], found: Companions, contents: Contents) -> None:
    """Ask where names alone do not tell what a column is."""
    for flag, base in found.flags.items():
        if base in found.flags:
            raise InputError(
                f"columns {names[base]} and {names[flag]} both have names of flags: {_remedy()}."
            )
        if example := contents.number(flag):
            raise InputError(
                f"column {names[flag]} is named like the flags of {names[base]}, but holds numbers "
                f"such as {example}: rename it, {_remedy()}."
            )
    known = {other.casefold() for other in names}
    for name, (low, high) in found.pairs.items():
        if name.casefold() in known:
            raise InputError(
                f"column {called(name)} stands beside {names[low]} and {names[high]}, which could "
                f"be its ends or columns of their own: {_remedy()}."
            )


def _remedy() -> str:
    """Say what to try where names alone do not tell what a column is."""
    return (
        f"choose the columns to read with {argument('columns')}, or pass "
        f"{argument('companions', False)} to read all as they are"
    )


def _lost(names: Sequence[str], flag: int, found: Companions, contents: Contents) -> str:
    """Say that nobody knows which column the flags of a column are of, and how to tell it."""
    stem, suffix = split_name(names[flag])
    others = found.lost[flag]
    told = f"column {called(names[flag])} holds flags such as {shorten(contents.flag(flag))}, but "
    if stem:
        told += f"there is no column {called(stem)}"
    else:
        told += "its name does not say of which column"
    if not others:
        return f"{told}: name it X_{suffix or names[flag].strip()} for a column X"
    better = [f"{names[k]}_{suffix or names[flag].strip()}" for k in others[:2]]
    return f"{told}: name it {' or '.join(map(called, better))}"


def _some_of(
    names: Sequence[str],
    places: Sequence[int],
    columns: Sequence[str] | str,
    found: Companions,
    contents: Contents,
) -> list[Wanted]:
    """Read the columns that were asked for, with their companions."""
    alone = isinstance(columns, str) or not isinstance(columns, Iterable)
    asked = [str(name) for name in ([columns] if alone else columns)]
    if not asked:
        raise InputError(f"{argument('columns')} names no column; leave it away to read all.")
    if twice := [name for name, count in Counter(asked).items() if count > 1]:
        raise InputError(f"{argument('columns')} names {twice[0]!r} more than once.")
    numeric = {flag for flag in found.flags if contents.number(flag)}
    flags = {f: b for f, b in found.flags.items() if f not in numeric}
    found = found._replace(flags=flags)
    flags_by_column = _flags_by_column(found)
    wanted = []
    for name in asked:
        if name in found.pairs and name not in names:
            low, high = found.pairs[name]
            wanted.append(Wanted(name, None, lower=low, upper=high))
            continue
        j = find_column(names, name, argument("columns"), found.pairs)
        if j not in places:
            raise InputError(
                f"column {called(name)} is in {argument('columns')} and in {argument('index')}; it "
                "can be one of them."
            )
        _refuse_flags(names, j, asked, found, contents)
        wanted.append(Wanted(name, j, flags_by_column.get(j, ())))
    read = {one.value for one in wanted}
    for flag, others in found.lost.items():
        if read.intersection(others):
            warnings.warn(
                f"{_lost(names, flag, found, contents)}. It is not read; "
                f"{argument('companions', False)} says that this is meant.",
                AssumptionWarning,
                stacklevel=5,  # whoever called read_csv
            )
    return wanted


def _warn_of_unread_flags(
    names: Sequence[str], places: Sequence[int], wanted: Sequence[Wanted], found: Companions
) -> None:
    """Warn of columns that look like flags of what is read, but are not read as such."""
    used = {j for one in wanted for j in (one.value, one.lower, one.upper, *one.flags)}
    bases = {one.name.casefold() for one in wanted}
    told = {flag for flag, others in found.lost.items() if used.intersection(others)}
    for j in places:
        base = split_name(names[j])[0].casefold()
        mine = base in bases if base else names[j].strip().casefold() in BARE
        if flag_kind(names[j]) and mine and j not in used and j not in told:
            warnings.warn(
                f"column {called(names[j])} looks like flags of what is read, but is not read: it "
                f"is not clear what it says. {argument('companions', False)} says that this is "
                "meant.",
                AssumptionWarning,
                stacklevel=5,  # whoever called read_csv
            )


def _refuse_flags(
    names: Sequence[str], column: int, asked: Sequence[str], found: Companions, contents: Contents
) -> None:
    """Raise an ``InputError`` for a column that was asked for, and holds flags."""
    name = called(names[column])
    if column in found.lost:
        raise InputError(
            f"{_lost(names, column, found, contents)}, leave it out of {argument('columns')}, or "
            f"pass {argument('companions', False)} to read it as a column."
        )
    if column not in found.flags:
        return
    base = names[found.flags[column]]
    if base in asked:
        raise InputError(
            f"column {name} holds the flags of {called(base)}, and is read with it: leave it out "
            f"of {argument('columns')}, or pass {argument('companions', False)} to read it as a "
            "column."
        )
    if contents.flag(column):
        raise InputError(
            f"column {name} looks like the flags of {called(base)}, and is read with it: write "
            f"{called(base)} in {argument('columns')} instead, or pass "
            f"{argument('companions', False)} to read it as a column."
        )


def _flags_by_column(found: Companions) -> dict[int, tuple[int, ...]]:
    """Return the flag columns of each column that has any."""
    out: dict[int, tuple[int, ...]] = {}
    for flag, base in found.flags.items():
        out[base] = (*out.get(base, ()), flag)
    return out
