"""Tables that say in a second column what the first one means.

A column X is read together with one whose name is X and a suffix, in any case, after ``_``, ``.``,
``-`` or a space, or in capitals (``PbCen``):

===========================================  ====================================================
``flag``, ``qualifier``, ``qual``, ``q``     ``U``, ``<``, ``ND``: the value is a limit, and the
                                             truth below it; ``>``: above it; ``J``: estimated;
                                             empty, ``=``, 0, false: seen
``censored``, ``cen``, ``nd``, ``bdl``       the same, and true, yes, 1: below the value
``detected``; ``D_X`` as in ProUCL           the same, and false, no, 0: below the value
``rl``, ``mdl``, ``lod``, ``limit``          numbers: the limits below which X is not detected
``lower`` and ``upper``, ``lo`` and ``hi``   the ends of an interval for X; an empty one is open
===========================================  ====================================================

Where a table has one column of measurements, its second columns may be named by the suffix alone. What
was declared (``flags``, ``limits``) goes before all names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from halfseen.data.cells import called, shorten
from halfseen.data.names import (
    ENDS,
    LIMITS,
    SUFFIXES,
    Declared,
    Flag,
    expand,
    find_column,
    flag_kind,
    flag_option,
    limit_option,
    split_limit,
    split_name,
    split_prefix,
    stem_of_values,
)
from halfseen.errors import InputError, argument, warn

# The name of the column that bare ``lower`` and ``upper`` give.
UNNAMED = "value"
# So many columns of flags that belong to none are compared with all others, and so many are named.
MOST_LOST, MOST_TOLD = 100, 8
# Names that are those of flags also without a column before them.
BARE = frozenset({"flag", "flags", "qualifier", "qual", "censored", "cen", "detected"})


class Wanted(NamedTuple):
    """A column to read: where its values, flags and limits are, or its ends. Positions in the table.

    ``sure`` says that somebody declared the limits.
    """

    name: str
    value: int | None
    flags: tuple[Flag, ...] = ()
    lower: int | None = None
    upper: int | None = None
    limits: tuple[int, ...] = ()
    sure: bool = False


class Contents(NamedTuple):
    """What columns hold, by position; asked only where their names leave a doubt.

    ``number`` returns an example if a column named like flags holds numbers other than 0 and 1, and
    ``flag`` returns one if it holds flags of a kind and no measurements; both are empty otherwise.
    ``limits`` tells whether a column holds plain numbers alone.
    """

    number: Callable[[int], str]
    flag: Callable[[int, str], str]
    measured: Callable[[int], bool]
    limits: Callable[[int], bool]


def choose(
    names: Sequence[str],
    columns: Sequence[str] | str | None,
    index: int | None,
    contents: Contents,
    companions: bool = True,
    exclude: Collection[int] = (),
    declared: Declared | None = None,
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
    exclude : positions of columns that are left out, with what speaks of them
    declared : second columns that need not be looked for
    kept : positions of columns that are no measurements
    """
    places = [j for j in range(len(names)) if j not in (index, *kept)]
    layout = _Layout(names, places, contents, frozenset(exclude), declared or Declared())
    if companions:
        layout.find_companions()
    if columns is None:
        layout.check_names()
        if companions:
            layout.refuse_bare()
            layout.refuse_lost_limits()
        return layout.all_columns()
    wanted = layout.some_columns(columns)
    if companions:
        layout.warn_of_unread_flags(wanted)
    return wanted


class _Layout:
    """Which columns of a table hold values, and which speak of others. Columns are told by position.

    ``places`` are the columns without that of row labels. ``flags`` has the column that each flag column
    speaks of, ``pairs`` the ends of each name, and ``lost`` the flag columns whose name does not say of
    which column they speak, with those that it may be.
    """

    def __init__(
        self,
        names: Sequence[str],
        places: list[int],
        contents: Contents,
        left_out: frozenset[int],
        declared: Declared,
    ) -> None:
        self.names, self.places, self.contents, self.left_out = names, places, contents, left_out
        self.declared = declared
        self.flags = {flag.place: base for base, of in declared.flags.items() for flag in of}
        self.kinds = {flag.place: flag for of in declared.flags.values() for flag in of}
        self.limits = {limit: base for base, limit in declared.limits.items()}
        self.pairs: dict[str, tuple[int, int]] = {}
        self.lost: dict[int, list[int]] = {}

    def find_companions(self) -> None:
        """Find the columns that are named as companions of others."""
        names = self.names
        ends: dict[str, dict[str, int]] = {}
        for j in self.places:
            if j in self.flags or j in self.limits or j in self.left_out:
                continue
            if names[j].casefold() in ("lower", "upper"):
                ends.setdefault(UNNAMED, {})[names[j].casefold()] = j
            stem, suffix = split_name(names[j])
            if suffix in SUFFIXES:
                self._find_base(j, stem, SUFFIXES[suffix])
            elif suffix:
                ends.setdefault(stem.casefold(), {})[suffix] = j
            elif (kind := flag_kind(names[j])) and self.contents.flag(j, kind):
                prefixed = split_prefix(names[j])[0]
                self._find_base(j, prefixed, kind)
            elif not self._find_limited(j):
                self._find_joined(j)
        self.pairs = {
            split_name(names[of[low]])[0] or UNNAMED: (of[low], of[high])
            for of in ends.values()
            for low, high in ENDS.items()
            if low in of and high in of
        }
        self._match_bare()

    @cached_property
    def _places_of(self) -> tuple[dict[str, list[int]], ...]:
        """Where names stand: as they are, folded, and without a word for values at their end.

        Looked up by name, so that the work grows with the number of columns and not with its square.
        """
        tables: tuple[dict[str, list[int]], ...] = ({}, {}, {})
        for j in self.places:
            keys = (self.names[j], self.names[j].casefold(), stem_of_values(self.names[j]))
            for table, key in zip(tables, keys, strict=True):
                if key:
                    table.setdefault(key, []).append(j)
        return tables

    def _alike(self, stem: str) -> list[int]:
        """Return the columns that a stem may be the name of."""
        exact, folded, of_values = self._places_of
        start = stem.casefold()
        return exact.get(stem) or folded.get(start) or of_values.get(start, [])

    def _find_base(self, flag: int, stem: str, kind: str) -> None:
        """Note of which column a column of flags speaks, or that nobody knows."""
        base = self._same_name(self._alike(stem), flag) if stem else None
        if base is not None:
            self.flags[flag], self.kinds[flag] = base, Flag(flag, kind)
        elif self.contents.flag(flag, kind):
            few = self.places if stem and len(self.lost) < MOST_LOST else []
            start = stem.casefold()
            self.lost[flag] = [
                k for k in few if self.names[k].casefold().startswith(start) and k != flag
            ]

    def _find_limited(self, limit: int) -> bool:
        """Note of which column a column of limits speaks, if it is one."""
        stem = split_limit(self.names[limit])[0]
        alike = [j for j in self._alike(stem) if j != limit] if stem else []
        if len(alike) != 1 or not self.contents.limits(limit):
            return False
        self.limits[limit] = alike[0]
        return True

    def _find_joined(self, place: int) -> None:
        """Look for names such as PBCEN and pblod, in which no sign says where a word begins."""
        name = self.names[place]
        for word in (*SUFFIXES, *LIMITS):
            stem = name[: -len(word)]
            if len(word) < 2 or len(stem) < 2 or not name.casefold().endswith(word):
                continue
            alike = [j for j in self._alike(stem) if j != place]
            if len(alike) != 1:
                continue
            if word in LIMITS and self.contents.limits(place):
                self.limits[place] = alike[0]
            elif word in SUFFIXES and self.contents.flag(place, SUFFIXES[word]):
                self.flags[place] = alike[0]
                self.kinds[place] = Flag(place, SUFFIXES[word])

    def _same_name(self, alike: Sequence[int], flag: int) -> int | None:
        """Return the column that a flag column speaks of, where one alone has its name."""
        if len(alike) > 1:
            told = " or ".join(shorten(self.names[j]) for j in alike[:MOST_TOLD])
            say = flag_option(self.names[alike[0]], self.names[flag])
            raise InputError(
                f"column {self._called(flag)} may hold the flags of {told}; say of which, as in {say}, "
                f"or pass {argument('companions', False)} to read each column by itself."
            )
        return alike[0] if alike else None

    def _match_bare(self) -> None:
        """Match columns of flags that are named by a suffix alone with the only column of values."""
        taken = {*self.flags, *self.limits, *self.lost, *self.left_out}
        taken |= {end for pair in self.pairs.values() for end in pair}
        bare = {j for j in self.lost if flag_kind(self.names[j]) and self._is_bare(j)}
        limits = [
            j
            for j in self.places
            if j not in taken and self._is_bare_limit(j) and self.contents.limits(j)
        ]
        rest = [k for k in self.places if k not in taken and k not in limits]
        rest = rest if bare or limits else []
        values = [k for k in rest if self.contents.measured(k)]
        for j, others in self.lost.items():
            self.lost[j] = values if j in bare else [k for k in others if k not in taken]
        if len(values) == 1 and not self.pairs:
            for j in bare:
                del self.lost[j]
                self.flags[j], self.kinds[j] = values[0], Flag(j, flag_kind(self.names[j]))
            self.limits |= dict.fromkeys(limits, values[0])

    def _is_bare(self, place: int) -> bool:
        return not split_name(self.names[place])[1] and not split_prefix(self.names[place])[1]

    def _is_bare_limit(self, place: int) -> bool:
        return self.names[place].strip().casefold() in LIMITS

    def check_names(self) -> None:
        """Raise an ``InputError`` for a column without a name, or with that of another."""
        for j in self._kept:
            if not self.names[j].strip():
                raise InputError(
                    f"column {j + 1} has no name. Name it, choose others with {argument('columns')}, or "
                    f"make it the row labels with {argument('index', self.names[j])}."
                )
        for name, count in Counter(self.names[j] for j in self._kept).items():
            if count > 1:
                raise InputError(
                    f"{count} columns are named {shorten(name)}; rename them, or leave them out with "
                    f"{argument('columns')}."
                )

    def refuse_bare(self) -> None:
        """Refuse a column named like flags alone that holds numbers: nobody can say which it is."""
        for j in self._kept:
            bare = self.names[j].strip().casefold() in BARE and j not in self.flags
            if bare and (example := self.contents.number(j)):
                raise InputError(
                    f"column {self._called(j)} is named like flags, but holds numbers such as "
                    f"{example}. Leave it out with {argument('exclude', self.names[j])}, or pass "
                    f"{argument('companions', False)} to read it as a measurement."
                )

    @cached_property
    def _kept(self) -> list[int]:
        return [j for j in self.places if j not in self.left_out]

    def refuse_lost_limits(self) -> None:
        """Refuse a column that is named like limits, where it is not known of what."""
        for j in self._kept:
            stem = split_limit(self.names[j])[0]
            named = stem or self._is_bare_limit(j)
            if not named or j in self.limits or j in self.flags or not self.contents.limits(j):
                continue
            why = f", but there is no column {called(stem)} alone" if stem else ""
            others = [k for k in self._kept if k != j and self.contents.number(k)]
            of, which = "X", "of which column X they are"
            if len(others) == 1:
                of, which = (
                    self.names[others[0]],
                    f"that they are those of {called(self.names[others[0]])}",
                )
            raise InputError(
                f"column {self._called(j)} is named like detection limits{why}. Say {which} "
                f"with {limit_option(of, self.names[j])}, leave it out with "
                f"{argument('exclude', self.names[j])}, or name it among {argument('columns')} to keep "
                "it as a measurement."
            )

    def all_columns(self) -> list[Wanted]:
        """Read every column, with its companions."""
        self._refuse_doubts()
        for flag in self.lost:
            raise InputError(
                f"{self._lost(flag)}; only if it speaks of nothing that is read, leave it out with "
                f"{argument('exclude', self.names[flag])}."
            )
        first = {low: name for name, (low, _) in self.pairs.items()}
        taken = {*self.flags, *self.limits, *(high for _, high in self.pairs.values())}
        return [
            self._pair(first[j]) if j in first else self._values(j)
            for j in self._kept
            if j in first or j not in taken
        ]

    def _pair(self, name: str) -> Wanted:
        low, high = self.pairs[name]
        return Wanted(name, None, lower=low, upper=high)

    def _values(self, column: int) -> Wanted:
        flags = tuple(self.kinds[flag] for flag in self._flags_of.get(column, ()))
        limits = tuple(limit for limit, base in self.limits.items() if base == column)
        sure = self.declared.limits.get(column)
        if sure is not None:
            limits = (sure,)
        return Wanted(self.names[column], column, flags, limits=limits, sure=sure is not None)

    @cached_property
    def _flags_of(self) -> dict[int, list[int]]:
        """The flag columns of each column that has any, once all are known; declared ones alone."""
        out: dict[int, list[int]] = {}
        for flag, base in self.flags.items():
            own = self.declared.flags.get(base)
            if own is None or any(one.place == flag for one in own):
                out.setdefault(base, []).append(flag)
        return out

    def _refuse_doubts(self) -> None:
        """Ask where names alone do not tell what a column is."""
        for flag, base in self.flags.items():
            if base in self.flags and flag not in self._sure:
                raise InputError(
                    f"columns {self._called(base)} and {self._called(flag)} both have names of flags: "
                    f"{_remedy()}."
                )
            if flag not in self._sure and (example := self.contents.number(flag)):
                raise InputError(
                    f"column {self._called(flag)} is named like the flags of {self._called(base)}, but "
                    f"holds numbers such as {example}: if these are limits, say "
                    f"{limit_option(self.names[base], self.names[flag])}; else {_remedy()}."
                )
        known = {called(other).casefold() for other in self.names}
        for name, (low, high) in self.pairs.items():
            if name.casefold() in known:
                raise InputError(
                    f"column {called(name)} stands beside {self._called(low)} and "
                    f"{self._called(high)}, which could be its ends or columns of their own: "
                    f"{_remedy()}."
                )

    @cached_property
    def _sure(self) -> set[int]:
        """The flag columns that were declared."""
        return {flag.place for of in self.declared.flags.values() for flag in of}

    def _lost(self, flag: int) -> str:
        """Say that it is not known of which column a column holds the flags, and how to name it."""
        name = self.names[flag]
        stem = split_name(name)[0] or split_prefix(name)[0]
        few = [self.names[k] for k in self.lost[flag][:2]] or ["X"]
        say = " or ".join(flag_option(one, name) for one in few)
        why = (
            f"there is no column {called(stem)}"
            if stem
            else "its name does not say of which column"
        )
        shown = shorten(self.contents.flag(flag, flag_kind(name)))
        return (
            f"column {called(name)} holds flags such as {shown}, but {why}: say of which with {say}"
        )

    def _called(self, column: int) -> str:
        return called(self.names[column])

    def some_columns(self, columns: Sequence[str] | str) -> list[Wanted]:
        """Read the columns that were asked for, with their companions."""
        alone = isinstance(columns, str) or not isinstance(columns, Iterable)
        asked = [str(name) for name in ([columns] if alone else columns)]
        second = {*self.flags, *self.limits, *(end for pair in self.pairs.values() for end in pair)}
        known = [self.names[j] for j in self._kept if j not in second]
        asked = expand(asked, [*known, *self.pairs], argument("columns"))
        if not asked:
            raise InputError(f"{argument('columns')} names no column; leave it away to read all.")
        if twice := [name for name, count in Counter(asked).items() if count > 1]:
            raise InputError(f"{argument('columns')} names {twice[0]!r} more than once.")
        self.flags = {
            f: base
            for f, base in self.flags.items()
            if f in self._sure or not self.contents.number(f)
        }
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
                warn(
                    f"{self._lost(flag)}. It is not read; {argument('companions', False)} says that "
                    "this is meant."
                )
        return wanted

    def warn_of_unread_flags(self, wanted: Sequence[Wanted]) -> None:
        """Warn of columns that look like flags of what is read, but are not read as such."""
        used = {j for one in wanted for j in (one.value, one.lower, one.upper)}
        used |= {flag.place for one in wanted for flag in one.flags}
        bases = {one.name.casefold() for one in wanted}
        told = {flag for flag, others in self.lost.items() if used.intersection(others)}
        for j in (j for j in self._kept if j not in used and j not in told):
            name = self.names[j]
            base = split_name(name)[0].casefold()
            mine = base in bases if base else name.strip().casefold() in BARE
            if flag_kind(name) and mine:
                warn(
                    f"column {called(name)} looks like flags of what is read, but is not read: it "
                    f"is not clear what it says. {argument('companions', False)} says that this is "
                    "meant."
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
        if self.contents.flag(column, self.kinds[column].kind):
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
