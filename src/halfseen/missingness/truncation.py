"""Truncation: a row is shown whole or not at all (Daskalakis et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from halfseen.errors import ContradictionError, InputError
from halfseen.missingness.base import Floats, Generator, Mask, Missingness, RuleKind, Scale, Values
from halfseen.missingness.holes import SEEN, Box, Holes, Scan, gather


class RowTruncation(Missingness):
    """A row is shown iff it lies in a set, known through a membership function.

    Hidden rows may stand in the data as rows of NaN, or be absent: the estimate does not use
    them.

    Parameters
    ----------
    contains : callable
        Takes rows of shape (m, d), returns m booleans.
    width : int, optional
        Number of columns, to be checked against the data.

    Examples
    --------
    >>> import halfseen as hs
    >>> disc = hs.RowTruncation(lambda Y: (Y**2).sum(axis=1) < 4)
    >>> disc.seen([[0.0, 1.0], [2.0, 1.0]])
    array([[ True,  True],
           [False, False]])
    """

    def __init__(self, contains: Callable[[Floats], ArrayLike], width: int | None = None) -> None:
        if not callable(contains):
            raise InputError(f"RowTruncation takes a function of rows; got {contains!r}.")
        self._contains = contains
        self._width = width

    @property
    def kind(self) -> RuleKind:
        """Whole rows."""
        return RuleKind.WHOLE_ROWS

    @property
    def width(self) -> int | None:
        """Number of columns, where it was stated."""
        return self._width

    def contains(self, Y: Floats) -> Mask:
        """Ask the function, and check its answer."""
        try:
            answer = np.asarray(self._contains(Y))
        except Exception as error:
            raise InputError(
                f"the membership function failed on an array of shape {Y.shape}: {error}. It is given "
                "a NumPy array of rows, not a data frame."
            ) from error
        if answer.shape != (len(Y),) or not np.isin(answer, (0, 1)).all():
            raise InputError(
                f"the membership function must answer True or False for each of {len(Y)} rows; "
                f"it returned shape {answer.shape}, dtype {answer.dtype}."
            )
        return answer.astype(bool)

    def seen(self, Y: ArrayLike, random_state: int | Generator | None = None) -> Mask:
        """Mask that is True on whole rows."""
        Y = self._read_rows(Y)
        return np.repeat(self.contains(Y)[:, None], Y.shape[1], axis=1)

    def transformed(self, transforms: Sequence[Scale], names: Sequence[str]) -> RowTruncation:
        """Return the rule that asks the function about rows in original units."""

        def contains(Z: Floats) -> Mask:
            columns = [t.inverse(Z[:, j]) for j, t in enumerate(transforms)]
            return self.contains(np.stack(columns, axis=1))

        return RowTruncation(contains, self._width)

    def hidden_region(self, X: ArrayLike) -> Box:
        """Refused: the complement of an arbitrary set is neither a box nor a polyhedron."""
        raise InputError(
            "RowTruncation knows its set only through a membership function, so the region of a "
            "hidden row cannot be described. State the rule by column (SelfCensoring) if it has "
            "that form."
        )

    def holes(self, X: Values, scan: Scan) -> Holes:
        """Nothing is hidden in a row that is there."""
        return gather(np.full(X.shape, SEEN, dtype=np.int32), [], [])

    def check(self, X: Values, names: Sequence[str], at_random: Mask | None = None) -> None:
        """Raise a ``ContradictionError`` for a half-seen row or a seen row outside the set.

        A row with cells missing at random is half-seen too: it cannot be shown to be in the set.
        """
        hidden = np.isnan(X)
        whole = ~hidden.any(axis=1)
        partly = ~whole & ~hidden.all(axis=1)
        if partly.any():
            row = int(np.flatnonzero(partly)[0])
            name = names[int(np.flatnonzero(hidden[row])[0])]
            raise ContradictionError(
                f"it is seen in part (column {name} is NaN), but RowTruncation shows a row whole or "
                "not at all. Use SelfCensoring or DetectionLimits for cells.",
                row,
            )
        rows = np.flatnonzero(whole)
        outside = rows[~self.contains(X[rows].astype(float))] if rows.size else rows
        if outside.size:
            row = int(outside[0])
            raise ContradictionError(
                "it is seen, but the membership function says that it would not be "
                f"({outside.size} such rows). Correct the function or remove the rows.",
                row,
            )

    def __repr__(self) -> str:
        return f"RowTruncation({getattr(self._contains, '__name__', 'function')})"
