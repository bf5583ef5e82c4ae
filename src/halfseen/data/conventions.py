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
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
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


def choose(
    names: Sequence[str],
    columns: Sequence[str] | str | None,
    index: int | None,
    contents: Contents,
    companions: bool = True,
    kept: Collection[int] = (),
) -> list[Wanted]:
    """Decide which columns are read, and from where.

    Parameters
    ----------
    names : names of all columns of the table
    columns : those to read, or None for all
    index : position of the column of row labels
    contents : tells what columns hold
    companions : whether second columns are looked for
    kept : positions of columns that are no measurements
    """
    others = {index, *kept}
    layout = _Layout(names, [j for j in range(len(names)) if j not in others], contents)
    if companions:
        layout.find_companions()
    if columns is None:
        layout.check_names()
        if companions:
            layout.refuse_bare()
        return layout.all_columns()
    wanted = layout.some_columns(columns)
    if companions:
        layout.warn_of_unread_flags(wanted)
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


class _Layout:
    """Which columns of a table hold values, and which speak of others. Columns are told by position.

    ``places`` are the columns without that of row labels. ``flags`` has the column that each flag column
    speaks of, ``pairs`` the ends of each name, and ``lost`` the flag columns whose name does not say of
    which column they speak, with those that it may be.
    """

    def __init__(self, names: Sequence[str], places: list[int], contents: Contents) -> None:
        self.names, self.places, self.contents = names, places, contents
        self.flags: dict[int, int] = {}
        self.pairs: dict[str, tuple[int, int]] = {}
        self.lost: dict[int, list[int]] = {}

    def find_companions(self) -> None:
        """Find the columns that are named as companions of others."""
        names = self.names
        ends: dict[str, dict[str, int]] = {}
        # Looked up by name, so that the work grows with the number of columns and not with its square.
        exact: dict[str, list[int]] = {}
        folded: dict[str, list[int]] = {}
        for j in self.places:
            exact.setdefault(names[j], []).append(j)
            folded.setdefault(names[j].casefold(), []).append(j)
        for j in self.places:
            if names[j].casefold() in ("lower", "upper"):
                ends.setdefault(UNNAMED, {})[names[j].casefold()] = j
            stem, suffix = split_name(names[j])
            if suffix in SUFFIXES:
                start = stem.casefold()
                base = self._same_name(exact.get(stem) or folded.get(start, []), j)
                if base is not None:
                    self.flags[j] = base
                elif self.contents.flag(j):
                    few = self.places if len(self.lost) < MOST_LOST else []
                    self.lost[j] = [k for k in few if names[k].casefold().startswith(start)]
            elif flag_kind(names[j]) and self.contents.flag(j):
                self.lost[j] = []
            elif suffix:
                ends.setdefault(stem.casefold(), {})[suffix] = j
        self.pairs = {
            split_name(names[of[low]])[0] or UNNAMED: (of[low], of[high])
            for of in ends.values()
            for low, high in ENDS.items()
            if low in of and high in of
        }
        self._match_bare()

    def _same_name(self, alike: Sequence[int], flag: int) -> int | None:
        """Return the column that a flag column speaks of, where one alone has its name."""
        if len(alike) > 1:
            told = " or ".join(shorten(self.names[j]) for j in alike[:MOST_TOLD])
            raise InputError(
                f"column {self._called(flag)} may hold the flags of {told}; rename it, or pass "
                f"{argument('companions', False)} to read each column by itself."
            )
        return alike[0] if alike else None

    def _match_bare(self) -> None:
        """Match columns of flags that are named by a suffix alone with the only column of values."""
        taken = {*self.flags, *self.lost, *(end for pair in self.pairs.values() for end in pair)}
        bare = {j for j in self.lost if not split_name(self.names[j])[1]}
        rest = [k for k in self.places if k not in taken] if bare else []
        values = [k for k in rest if self.contents.measured(k)]
        for j, others in self.lost.items():
            self.lost[j] = values if j in bare else [k for k in others if k not in taken]
        if len(values) == 1 and not self.pairs:
            for j in bare:
                del self.lost[j]
                self.flags[j] = values[0]

    def check_names(self) -> None:
        """Raise an ``InputError`` for a column without a name, or with that of another."""
        for j in self.places:
            if not self.names[j].strip():
                raise InputError(
                    f"column {j + 1} has no name. Name it, leave it out with {argument('columns')}, or "
                    f"make it the row labels with {argument('index', self.names[j])}."
                )
        for name, count in Counter(self.names[j] for j in self.places).items():
            if count > 1:
                raise InputError(
                    f"{count} columns are named {shorten(name)}; rename them, or leave them out with "
                    f"{argument('columns')}."
                )

    def refuse_bare(self) -> None:
        """Refuse a column named like flags alone that holds numbers: nobody can say which it is."""
        for j in self.places:
            bare = self.names[j].strip().casefold() in BARE and j not in self.flags
            if bare and (example := self.contents.number(j)):
                raise InputError(
                    f"column {self._called(j)} is named like flags, but holds numbers such as "
                    f"{example}. Leave it out with {argument('columns')}, or pass "
                    f"{argument('companions', False)} to read it as a measurement."
                )

    def all_columns(self) -> list[Wanted]:
        """Read every column, with its companions."""
        self._refuse_doubts()
        for flag, others in self.lost.items():
            index = f", make a column of row labels the index with {argument('index')}"
            raise InputError(f"{self._lost(flag)}{index * (len(others) > 1)}, {_remedy()}.")
        first = {low: name for name, (low, _) in self.pairs.items()}
        taken = {*self.flags, *(high for _, high in self.pairs.values())}
        return [
            self._pair(first[j]) if j in first else self._values(j)
            for j in self.places
            if j in first or j not in taken
        ]

    def _pair(self, name: str) -> Wanted:
        low, high = self.pairs[name]
        return Wanted(name, None, lower=low, upper=high)

    def _values(self, column: int) -> Wanted:
        return Wanted(self.names[column], column, tuple(self._flags_of.get(column, ())))

    @cached_property
    def _flags_of(self) -> dict[int, list[int]]:
        """The flag columns of each column that has any, once all are known."""
        out: dict[int, list[int]] = {}
        for flag, base in self.flags.items():
            out.setdefault(base, []).append(flag)
        return out

    def _refuse_doubts(self) -> None:
        """Ask where names alone do not tell what a column is."""
        for flag, base in self.flags.items():
            if base in self.flags:
                raise InputError(
                    f"columns {self._called(base)} and {self._called(flag)} both have names of flags: "
                    f"{_remedy()}."
                )
            if example := self.contents.number(flag):
                raise InputError(
                    f"column {self._called(flag)} is named like the flags of {self._called(base)}, but "
                    f"holds numbers such as {example}: rename it, {_remedy()}."
                )
        known = {called(other).casefold() for other in self.names}
        for name, (low, high) in self.pairs.items():
            if name.casefold() in known:
                raise InputError(
                    f"column {called(name)} stands beside {self._called(low)} and "
                    f"{self._called(high)}, which could be its ends or columns of their own: "
                    f"{_remedy()}."
                )

    def _lost(self, flag: int) -> str:
        """Say that it is not known of which column a column holds the flags, and how to name it."""
        stem, suffix = split_name(self.names[flag])
        ending = suffix or self.names[flag].strip()
        others = [called(f"{self.names[k]}_{ending}") for k in self.lost[flag][:2]]
        why = (
            f"there is no column {called(stem)}"
            if stem
            else "its name does not say of which column"
        )
        return (
            f"column {self._called(flag)} holds flags such as {shorten(self.contents.flag(flag))}, but "
            f"{why}: name it {' or '.join(others) or f'X_{ending} for a column X'}"
        )

    def _called(self, column: int) -> str:
        return called(self.names[column])

    def some_columns(self, columns: Sequence[str] | str) -> list[Wanted]:
        """Read the columns that were asked for, with their companions."""
        alone = isinstance(columns, str) or not isinstance(columns, Iterable)
        asked = [str(name) for name in ([columns] if alone else columns)]
        if not asked:
            raise InputError(f"{argument('columns')} names no column; leave it away to read all.")
        if twice := [name for name, count in Counter(asked).items() if count > 1]:
            raise InputError(f"{argument('columns')} names {twice[0]!r} more than once.")
        self.flags = {f: base for f, base in self.flags.items() if not self.contents.number(f)}
        wanted = []
        for name in asked:
            if name in self.pairs and name not in self.names:
                wanted.append(self._pair(name))
                continue
            j = find_column(self.names, name, argument("columns"), self.pairs)
            if j not in self.places:
                raise InputError(
                    f"column {called(name)} is in {argument('columns')} and in {argument('index')}; it "
                    "can be one of them."
                )
            self._refuse_flags(j, asked)
            wanted.append(self._values(j))
        read = {one.value for one in wanted}
        for flag, others in self.lost.items():
            if read.intersection(others):
                warnings.warn(
                    f"{self._lost(flag)}. It is not read; {argument('companions', False)} says that "
                    "this is meant.",
                    AssumptionWarning,
                    stacklevel=5,  # whoever called read_csv
                )
        return wanted

    def warn_of_unread_flags(self, wanted: Sequence[Wanted]) -> None:
        """Warn of columns that look like flags of what is read, but are not read as such."""
        used = {j for one in wanted for j in (one.value, one.lower, one.upper, *one.flags)}
        bases = {one.name.casefold() for one in wanted}
        told = {flag for flag, others in self.lost.items() if used.intersection(others)}
        for j in (j for j in self.places if j not in used and j not in told):
            name = self.names[j]
            base = split_name(name)[0].casefold()
            mine = base in bases if base else name.strip().casefold() in BARE
            if flag_kind(name) and mine:
                warnings.warn(
                    f"column {called(name)} looks like flags of what is read, but is not read: it "
                    f"is not clear what it says. {argument('companions', False)} says that this is "
                    "meant.",
                    AssumptionWarning,
                    stacklevel=5,  # whoever called read_csv
                )

    def _refuse_flags(self, column: int, asked: Sequence[str]) -> None:
        """Raise an ``InputError`` for a column that was asked for, and holds flags."""
        as_column = f"or pass {argument('companions', False)} to read it as a column."
        if column in self.lost:
            raise InputError(
                f"{self._lost(column)}, leave it out of {argument('columns')}, {as_column}"
            )
        if column not in self.flags:
            return
        name, base = self._called(column), self.names[self.flags[column]]
        if base in asked:
            raise InputError(
                f"column {name} holds the flags of {called(base)}, and is read with it: leave it out "
                f"of {argument('columns')}, {as_column}"
            )
        if self.contents.flag(column):
            raise InputError(
                f"column {name} looks like the flags of {called(base)}, and is read with it: write "
                f"{called(base)} in {argument('columns')} instead, {as_column}"
            )


def _remedy() -> str:
    """Say what to try where names alone do not tell what a column is."""
    return (
        f"choose the columns to read with {argument('columns')}, or pass "
        f"{argument('companions', False)} to read all as they are"
    )
