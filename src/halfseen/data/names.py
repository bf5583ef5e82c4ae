"""What is said of second columns, by their names or by who declares them; and patterns such as ``PCB*``.

A second column has the name of the first, and a word after ``_``, ``.``, ``-``, a space, or in capitals
(``PbCen``); or a word in front, as in ProUCL's ``D_Pb``. Declared ones are ``flags={"Pb": "PbCen"}`` and
``limits={"*": "*_RL"}``.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from halfseen.data.cells import shorten
from halfseen.errors import InputError, argument, spelled

# What the booleans of a flag column mean, by the end of its name.
SUFFIXES = (
    dict.fromkeys(("flag", "flags", "qualifier", "qualifiers", "qual", "q"), "qualifier")
    | dict.fromkeys(("censored", "censor", "cens", "cen", "nd", "nondetect"), "censored")
    | dict.fromkeys(("nondetects", "bdl", "blod", "bloq", "bql", "blq"), "censored")
    | dict.fromkeys(("detected", "detect", "det"), "detected")
)
# What such a column means by the beginning of its name.
PREFIXES = (
    dict.fromkeys(("d", "detected", "detect"), "detected")
    | dict.fromkeys(("nd", "cen", "cens", "censored"), "censored")
    | dict.fromkeys(("flag", "qual", "qualifier"), "qualifier")
)
# The end of the name of a column of limits.
LIMITS = frozenset(
    (
        *("lod", "loq", "lloq", "dl", "mdl", "idl", "rl", "mrl", "pql", "crdl", "limit"),
        *("detection_limit", "reporting_limit", "detection limit", "reporting limit"),
    )
)
ENDS = {"lower": "upper", "lo": "hi"}
# The end of the name of a column of values whose second columns may leave it away: TCEConc, TCECen.
VALUES = ("concentration", "conc", "result", "res", "value", "val")
BETWEEN = " _.-"
# Names that say that a column numbers or groups the rows.
LABELS = frozenset(
    (
        *("id", "batch", "lot", "run", "row", "obs", "no", "nr", "number", "index", "rownames"),
        *("sample", "sampleid", "sampleno", "site", "siteid", "station", "well", "plate", "plot"),
        *("year", "unnamed: 0", "record", "case", "subject", "patient"),
    )
)


def ending(name: str, suffixes: Iterable[str]) -> tuple[str, str]:
    """Split a name into its stem and one of some words at its end; both are empty for other names."""
    for suffix in suffixes:
        stem, end = name[: -len(suffix)], name[-len(suffix) :]
        if end.lower() != suffix or not stem:
            continue
        if stem[-1] in BETWEEN:
            base = stem.rstrip(BETWEEN)
            return (base, suffix) if base else ("", "")
        # In capitals, after a small letter (PbND), or as a word (TCECen).
        word = end[1:].islower() and stem[-1].isalnum()
        if end[0].isupper() and (word or stem[-1].islower() or stem[-1].isdigit()):
            return stem, suffix
    return "", ""


def split_name(name: str) -> tuple[str, str]:
    """Split a name such as "lead_flag" into "lead" and "flag"; both are empty for other names."""
    return ending(name, (*SUFFIXES, *ENDS, *ENDS.values()))


def split_limit(name: str) -> tuple[str, str]:
    """Split a name such as "Pb_RL" into "Pb" and "rl"; both are empty for other names."""
    return ending(name, LIMITS)


def split_prefix(name: str) -> tuple[str, str]:
    """Split a name such as "D_Pb" into "Pb" and the kind of flags it has; both are empty for others."""
    start, _, rest = name.partition("_")
    kind = PREFIXES.get(start.casefold(), "")
    return (rest, kind) if kind and rest else ("", "")


def stem_of_values(name: str) -> str:
    """Return the name of a column of values without the word that says so, folded; "" if it has none."""
    return ending(name, VALUES)[0].casefold()


def base_of(name: str) -> str:
    """Return the column that a second column speaks of by its name alone; empty if it is none."""
    return split_name(name)[0] or split_limit(name)[0] or split_prefix(name)[0]


def flag_kind(name: str) -> str:
    """Return what kind of flags a column has by its name; empty if it has none."""
    by_end = SUFFIXES.get(split_name(name)[1] or name.strip().casefold(), "")
    return by_end or split_prefix(name)[1]


def is_label(name: str) -> bool:
    """Whether a column is named like one that numbers or groups the rows."""
    word = name.strip().casefold()
    return word in LABELS or bool(ending(name.strip(), ("id", "no"))[0])


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


def is_pattern(name: str, names: Iterable[str]) -> bool:
    """Whether a text stands for several columns: it has a ``*`` or a ``?``, and is no name itself."""
    return any(sign in name for sign in "*?") and name not in names


def matching(pattern: str, names: Iterable[str], where: str) -> list[str]:
    """Return the columns that a name or a pattern stands for.

    Examples
    --------
    >>> from halfseen.data.names import matching
    >>> matching("PCB*", ["PCB28", "PCB52", "lead"], "columns")
    ['PCB28', 'PCB52']
    >>> matching("lead", ["PCB28", "lead"], "columns")
    ['lead']
    """
    known = list(names)
    if not is_pattern(pattern, known):
        return [pattern]
    # Brackets stand in names as they are.
    plain = re.sub(r"\[", "[[]", pattern)
    if chosen := [name for name in known if fnmatch.fnmatchcase(name, plain)]:
        return chosen
    shown = ", ".join(shorten(name) for name in known[:8])
    raise InputError(
        f"{where}: no column is named like {pattern!r}; the table has {shown}"
        f"{', ...' if len(known) > 8 else ''}."
    )


def expand(patterns: Iterable[str], names: Sequence[str], where: str) -> list[str]:
    """Return the columns that names and patterns stand for; what two patterns match is there once."""
    out: list[str] = []
    for one in patterns:
        chosen = matching(one, names, where)
        out += chosen if chosen == [one] else [name for name in chosen if name not in out]
    return out


def pairs_of(given: str, names: Sequence[str], where: str) -> dict[str, str]:
    """Read what says which second columns belong to which: ``Pb=PbCen``, or ``*=*Cen`` for all.

    Parameters
    ----------
    given : a column or a pattern, ``=``, and its second column, whose ``*`` is what that of the first is
    names : names of all columns of the table
    where : how the option is called in messages

    Examples
    --------
    >>> from halfseen.data.names import pairs_of
    >>> pairs_of("*=*Cen", ["Pb", "PbCen", "Zn", "ZnCen"], "flags")
    {'Pb': 'PbCen', 'Zn': 'ZnCen'}
    """
    first, sign, second = (part.strip() for part in given.partition("="))
    if not sign or not first or not second:
        raise InputError(
            f"{where} is written as a column, =, and its second column, as in Pb=PbCen or *=*Cen; "
            f"got {given!r}."
        )
    if "*" not in first or first in names:
        for name in (first, second):
            find_column(names, name, where)
        return {first: second}
    if first.count("*") > 1 or second.count("*") != 1:
        raise InputError(f"{where}: {given!r} must have one * on each side, as in *=*Cen.")
    start, end = first.split("*")
    out = {}
    for name in names:
        if len(name) >= len(start + end) and name.startswith(start) and name.endswith(end):
            other = second.replace("*", name[len(start) : len(name) - len(end)])
            if other in names and other != name:
                out[name] = other
    if not out:
        raise InputError(
            f"{where}: no two columns are named as {given!r} says; the table has "
            f"{', '.join(map(shorten, names[:8]))}{', ...' if len(names) > 8 else ''}."
        )
    return out


class Flag(NamedTuple):
    """A column of flags: its position, its kind, and which texts mark cells that are not detected.

    Without such texts the kind says what flags mean: ``qualifier``, ``censored``, ``detected``.
    """

    place: int
    kind: str
    below: tuple[str, ...] = ()


@dataclass(frozen=True)
class Declared:
    """The flags of columns, and where their limits are. Columns are told by position."""

    flags: dict[int, list[Flag]] = field(default_factory=dict)
    limits: dict[int, int] = field(default_factory=dict)


def declare(
    names: Sequence[str],
    flags: Mapping[Any, Any] | Sequence[str] | None,
    limits: Mapping[Any, Any] | Sequence[str] | None,
) -> Declared:
    """Read what was declared of the columns of a table.

    Parameters
    ----------
    names : names of all columns
    flags : dict from columns to columns of flags, or texts such as ``"Pb=PbCen"``
        A column of flags may be followed by what marks a cell that is not detected: ``"D_Pb:0"``.
    limits : dict from columns to columns of limits, or texts such as ``"Pb=Pb_RL"``

    Examples
    --------
    >>> from halfseen.data.names import declare
    >>> declare(["Pb", "D_Pb"], {"Pb": "D_Pb:0"}, None).flags
    {0: [Flag(place=1, kind='detected', below=('0',))]}
    """
    place = {name: j for j, name in enumerate(names)}
    out = Declared()
    for text, where in _texts(flags, "flags"):
        column, mark = _split_mark(text, names)
        for base, flag in pairs_of(column, names, where).items():
            kind = flag_kind(flag) or "qualifier"
            one = Flag(place[flag], kind, () if mark is None else tuple(mark.split("|")))
            out.flags.setdefault(place[base], []).append(one)
    for text, where in _texts(limits, "limits"):
        for base, limit in pairs_of(text, names, where).items():
            if out.limits.setdefault(place[base], place[limit]) != place[limit]:
                raise InputError(f"{where} has two columns of limits of {base!r}; choose one.")
    _check(out, names)
    return out


def _texts(given: Any, name: str) -> list[tuple[str, str]]:
    """Write each declaration as a text, with how it is called."""
    where = argument(name)
    if given is None:
        return []
    if isinstance(given, Mapping):
        listed = {k: [v] if isinstance(v, str) else v for k, v in given.items()}
        if all(isinstance(of, Sequence) for of in listed.values()):
            return [(f"{key}={value}", where) for key, of in listed.items() for value in of]
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise InputError(
            f"{where} must be a dict from columns to their second columns, such as "
            f"{{'Pb': 'PbCen'}}; got {given!r}."
        )
    return [(str(text), where) for text in given]


def _split_mark(text: str, names: Sequence[str]) -> tuple[str, str | None]:
    """Split "Pb=D_Pb:0" into "Pb=D_Pb" and "0"; None where no colon is, or a name has it."""
    first, _, second = text.partition("=")
    column, colon, mark = second.rpartition(":")
    if not colon or second.strip() in names or not (column.strip() in names or "*" in column):
        return text, None
    if is_pattern(second, names) and not mark.strip():
        return text, None
    return f"{first}={column}", mark.strip()


def _check(declared: Declared, names: Sequence[str]) -> None:
    for base, flags in declared.flags.items():
        places = [flag.place for flag in flags]
        if base in places or len(set(places)) < len(places):
            raise InputError(
                f"{argument('flags')}: a column of flags is another one than {names[base]!r}, and is "
                "named once."
            )
    for base, limit in declared.limits.items():
        if base == limit:
            raise InputError(f"{argument('limits')}: {names[base]!r} cannot be its own limit.")


def flag_option(column: str, flag: str, mark: str = "") -> str:
    """Spell how to say that a column holds the flags of another."""
    second = f"{flag}:{mark}" if mark else flag
    return spelled(
        f"flags={{{column!r}: {second!r}}}", f"--flag {shlex.quote(f'{column}={second}')}"
    )


def limit_option(column: str, limit: str) -> str:
    """Spell how to say that a column holds the limits of another."""
    return spelled(
        f"limits={{{column!r}: {limit!r}}}", f"--limit {shlex.quote(f'{column}={limit}')}"
    )
