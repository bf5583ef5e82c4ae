"""Sets of columns that a rule speaks of, told by position or by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import is_iterable, is_time
from halfseen.errors import ContradictionError, InputError

Columns = tuple[int | str, ...]

# Names that a message lists before it says "…".
FEW_NAMES = 8


def disjoint_columns(what: str, given: Iterable[Any], fewest: int) -> tuple[Columns, ...]:
    """Read sets of columns that do not overlap: all of them positions, or all of them names.

    Parameters
    ----------
    what : str
        How one of the sets is called in messages.
    given : iterable of lists of int or str
    fewest : int
        Number of columns that each set must have.
    """
    groups = tuple(_columns(f"{what} {k}", item) for k, item in enumerate(given))
    if not groups:
        raise InputError(f"at least one {what} is needed; got none.")
    if len({type(column) for group in groups for column in group}) > 1:
        raise InputError(
            f"columns must be given all by position or all by name; got "
            f"{', '.join(repr(list(group)) for group in groups)}."
        )
    home: dict[int | str, int] = {}
    for k, group in enumerate(groups):
        if len(group) < fewest:
            raise InputError(
                f"{what} {k} must have at least {fewest} column{'s' if fewest > 1 else ''}; got "
                f"{list(group)}."
            )
        for column in group:
            if column in home:
                where = f"in {what} {home[column]} and again in {what} {k}"
                raise InputError(f"column {column!r} stands {where}; a column may stand only once.")
            home[column] = k
    return groups


def by_name(groups: Sequence[Columns]) -> bool:
    """Whether the columns are told by name."""
    return isinstance(groups[0][0], str)


def positions(groups: Sequence[Columns], names: Sequence[str]) -> list[list[int]]:
    """Return where the columns stand in a table with these names."""
    if not by_name(groups):
        check_fit(groups, len(names))
        return [[int(column) for column in group] for group in groups]
    place = {name: k for k, name in enumerate(names)}
    for column in (column for group in groups for column in group):
        if column not in place:
            raise InputError(
                f"the rule speaks of column {column!r}, but the columns of the data are "
                f"{listed(names)}."
            )
    return [[place[str(column)] for column in group] for group in groups]


def check_fit(groups: Sequence[Columns], width: int) -> None:
    """Raise an ``InputError`` unless the columns are positions in a table of ``width`` columns."""
    if by_name(groups):
        raise InputError(
            f"the rule tells its columns by name ({listed(groups[0])}), but the data have no names "
            "here. Use positions, or match the names first with rule.for_columns(names)."
        )
    last = max(int(column) for group in groups for column in group)
    if last >= width:
        raise InputError(
            f"the rule speaks of column {last}, but the data have {width} columns, 0 to {width - 1}."
        )


def listed(names: Sequence[object]) -> str:
    """Return the first few names, for a message."""
    return ", ".join(map(str, names[:FEW_NAMES])) + (", …" if len(names) > FEW_NAMES else "")


def check_never_hidden(
    fine: NDArray[np.bool_], columns: NDArray[np.bool_], names: Sequence[str]
) -> None:
    """Raise a ``ContradictionError`` for a cell that is not ``fine`` in columns that no rule hides."""
    wrong = np.argwhere(~fine & columns)
    if wrong.size:
        row, column = (int(k) for k in wrong[0])
        raise ContradictionError(
            f"the value is hidden, but the rule never hides this "
            f"column ({len(wrong)} such cells). Add the column to the rule, or state that these cells "
            "are missing at random.",
            row,
            names[column],
        )


def _columns(what: str, given: Any) -> Columns:
    if isinstance(given, str) or not is_iterable(given):
        raise InputError(f"{what} must be a list of columns; got {given!r}.")
    out: list[int | str] = []
    for column in given:
        position = isinstance(column, int | np.integer) and not isinstance(column, bool)
        position = position and not is_time(column)
        if not (isinstance(column, str) or (position and column >= 0)):
            raise InputError(
                f"a column is a name, or a position counted from 0; {what} holds {column!r}."
            )
        out.append(str(column) if isinstance(column, str) else int(column))
    return tuple(out)
