"""Self-selection: of several columns only the largest value of a row is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import is_iterable
from halfseen.errors import ContradictionError, InputError
from halfseen.missingness.base import (
    Floats,
    Generator,
    Mask,
    Missingness,
    Scale,
    Values,
    by_name,
    check_fit,
    check_never_hidden,
    disjoint_columns,
    listed,
    positions,
)
from halfseen.missingness.holes import SEEN, Holes, Scan, gather
from halfseen.missingness.resolve import one_interval_each


class SelfSelection(Missingness):
    """Of each group of columns, only the largest value of a row is shown.

    An auction of which only the winning bid is published; wages in k trades, of which each person
    chose the best paid (the model of Roy). The others are hidden, but they are known to be smaller
    than the winner.

    Parameters
    ----------
    groups : None or list of lists of int or str
        The groups of columns that compete, by position or by name. None means that all columns
        form one group. Columns in no group are always seen.
    largest : bool
        Whether the largest value wins; with False the smallest does.

    Notes
    -----
    A cell that is missing at random did not take part: it may be anything, and the winner is the
    largest of the others. Of equal values the one that stands first in the group is shown.

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.SelfSelection().seen([[3.0, 1.0, 2.0]])
    array([[ True, False, False]])
    >>> hs.SelfSelection([[0, 1]], largest=False).seen([[3.0, 1.0, 2.0]])
    array([[False,  True,  True]])
    """

    def __init__(
        self, groups: Iterable[Iterable[int | str]] | None = None, largest: bool = True
    ) -> None:
        if groups is not None and (isinstance(groups, str) or not is_iterable(groups)):
            raise InputError(
                f"groups must be a list of lists of columns, such as [[0, 1], [2, 3]]; got {groups!r}."
            )
        if not isinstance(largest, bool | np.bool_):
            raise InputError(f"largest must be True or False; got {largest!r}.")
        self.groups = None if groups is None else disjoint_columns("group", groups, fewest=2)
        self.largest = bool(largest)

    @property
    def width(self) -> None:
        """Not known: columns in no group are always seen."""
        return None

    def for_columns(self, names: Sequence[str]) -> Self:
        """Return the rule with its groups told by position, where they have names."""
        if self.groups is not None and by_name(self.groups):
            return type(self)(positions(self.groups, names), self.largest)
        return super().for_columns(names)

    def check_width(self, width: int) -> None:
        """Raise an ``InputError`` unless the groups fit tables of ``width`` columns."""
        if self.groups is not None:
            check_fit(self.groups, width)
        elif width < 2:
            raise InputError(f"SelfSelection needs at least 2 columns; the data have {width}.")

    def seen(self, Y: ArrayLike, random_state: int | Generator | None = None) -> Mask:
        """Mask of the winners of their groups, and of the columns in no group."""
        Y = self._read_rows(Y)
        mask = np.ones(Y.shape, dtype=bool)
        for group in self._groups_of(Y.shape[1]):
            part = Y[:, group]
            winner = part.argmax(axis=1) if self.largest else part.argmin(axis=1)
            mask[:, group] = np.arange(group.size) == winner[:, None]
        return mask

    def transformed(self, transforms: Sequence[Scale], names: Sequence[str]) -> SelfSelection:
        """Return the rule itself: the largest stays the largest, if its group has one scale."""
        for group in self._groups_of(len(transforms)):
            first = transforms[group[0]]
            for k in group:
                if transforms[k] != first:
                    raise InputError(
                        f"{names[group[0]]} and {names[k]} are compared with each other, so they need "
                        f"the same transform; got {first.name} and {transforms[k].name}."
                    )
        return self

    def holes(self, X: Values, scan: Scan) -> Holes:
        """Return what lies below the winner of each hidden cell, as arrays."""
        hidden = np.isnan(X)
        winners = self._winners(X)
        index = np.full(X.shape, SEEN, dtype=np.int32)
        bounded = hidden & ~np.isnan(winners)
        column = np.nonzero(bounded)[1]
        limit = winners[bounded].astype(float)
        index[bounded] = np.arange(limit.size, dtype=np.int32)
        far = np.full(limit.size, -np.inf if self.largest else np.inf)
        below = one_interval_each(far, limit) if self.largest else one_interval_each(limit, far)
        return gather(index, [below], [column]).with_missing_at_random(hidden & ~bounded)

    def check(self, X: Values, names: Sequence[str], at_random: Mask | None = None) -> None:
        """Raise a ``ContradictionError`` for a row of which a group shows two values, or none.

        Cells in ``at_random`` did not take part in the choice. A group may show none if it lies in it
        whole.
        """
        seen = ~np.isnan(X)
        absent = np.zeros(X.shape, dtype=bool) if at_random is None else at_random
        best = "largest" if self.largest else "smallest"
        alone = np.ones(X.shape[1], dtype=bool)
        for group in self._groups_of(X.shape[1]):
            alone[group] = False
            members = listed([names[k] for k in group])
            count = seen[:, group].sum(axis=1)
            several = np.flatnonzero(count > 1)
            if several.size:
                row = int(several[0])
                shown = [f"{names[k]} ({X[row, k]:.6g})" for k in group[seen[row, group]]]
                raise ContradictionError(
                    f"{listed(shown)} are seen, but the rule shows only the {best} of "
                    f"{members} ({several.size} such rows). Correct the groups, or set the values "
                    "that were not chosen to NaN.",
                    row,
                )
            none = np.flatnonzero((count == 0) & ~absent[:, group].all(axis=1))
            if none.size:
                raise ContradictionError(
                    f"none of {members} is seen, but the rule shows the {best} of them "
                    f"({none.size} such rows). Correct the groups, or state that these cells are "
                    "missing at random.",
                    none[0],
                )
        check_never_hidden(seen | absent, alone, names)

    def _groups_of(self, width: int) -> list[NDArray[np.intp]]:
        """Positions of the columns of each group, in a table of ``width`` columns."""
        self.check_width(width)
        if self.groups is None:
            return [np.arange(width)]
        return [np.array(group, dtype=np.intp) for group in self.groups]

    def _winners(self, X: Values) -> Floats:
        """For each cell, the value that its group shows; NaN where there is none."""
        out = np.full(X.shape, np.nan)
        for group in self._groups_of(X.shape[1]):
            # The only value that is not NaN.
            out[:, group] = np.fmax.reduce(X[:, group], axis=1)[:, None]
        return out

    def __repr__(self) -> str:
        parts = [] if self.groups is None else [repr([list(group) for group in self.groups])]
        if not self.largest:
            parts.append("largest=False")
        return f"SelfSelection({', '.join(parts)})"
