"""Second columns that somebody declared: ``flags={"Pb": "PbCen"}``, ``limits={"*": "*_RL"}``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from halfseen.data.names import flag_kind, is_pattern, pairs_of
from halfseen.errors import InputError, argument, spelled


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
    >>> from halfseen.data.declared import declare
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
