"""Sample selection: outcomes that are seen where a latent index is positive (Heckman)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from halfseen.checks import is_iterable
from halfseen.errors import ContradictionError, InputError
from halfseen.missingness.base import (
    Generator,
    Mask,
    Missingness,
    Values,
    check_fit,
    listed,
    positions,
)
from halfseen.missingness.holes import SEEN, Holes, Scan, gather
from halfseen.missingness.resolve import one_interval_each


class Selection(Missingness):
    """Outcomes are seen where a latent index is positive.

    Wages are seen of those who work; prices of houses that were sold. Why somebody works is an
    equation of its own, whose residual may go together with that of the wage. Of the index only
    the sign is known: 1 or true in the column ``by`` where the outcome is seen, 0 or false
    elsewhere. A table without such a column shows it by which outcomes are seen.

    Parameters
    ----------
    outcomes : int or str, or a list of them
        Columns that are seen where the index is positive.
    by : int or str
        The index.
    when : bool
        False: outcomes that are seen where the index is *not* positive, as in the other of two regimes.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.Selection("wage", by="works").for_columns(["wage", "works"])
    >>> rule.seen([[9.5, 0.3], [7.1, -0.2]])  # the index itself is never seen
    array([[ True, False],
           [False, False]])
    """

    def __init__(
        self, outcomes: int | str | Iterable[int | str], by: int | str, when: bool = True
    ) -> None:
        single = isinstance(outcomes, int | np.integer | str) or not is_iterable(outcomes)
        columns: tuple[Any, ...] = (outcomes,) if single else tuple(outcomes)  # type: ignore[arg-type]
        for column in (*columns, by):
            if isinstance(column, bool) or not isinstance(column, int | np.integer | str):
                raise InputError(
                    "Selection takes names or positions of columns, as in "
                    f'Selection("wage", by="works"); got {column!r}.'
                )
        if not columns:
            raise InputError('Selection needs an outcome, as in Selection("wage", by="works").')
        if len({isinstance(column, str) for column in (*columns, by)}) > 1:
            raise InputError("Selection takes names or positions of columns, not both.")
        if by in columns or len(set(columns)) < len(columns):
            raise InputError(
                f"Selection needs columns that differ: outcomes {listed(columns)} and the index {by}."
            )
        if not isinstance(when, bool | np.bool_):
            raise InputError(f"when must be True or False; got {when!r}.")
        self.outcomes: tuple[int | str, ...] = columns
        self.by, self.when = by, bool(when)

    @property
    def places(self) -> list[int]:
        """Positions of the outcomes, once they are known."""
        return [int(column) for column in self.outcomes]

    @property
    def index(self) -> int:
        """Position of the index, once it is known."""
        return int(self.by)

    @property
    def width(self) -> None:
        """Not known: other columns are always seen."""
        return None

    def for_columns(self, names: Sequence[str]) -> Self:
        """Return the rule with its columns told by position, where they have names."""
        if isinstance(self.by, str):
            ((*outcomes, by),) = positions([(*self.outcomes, self.by)], names)
            return type(self)(outcomes, by, self.when)
        return super().for_columns(names)

    def check_width(self, width: int) -> None:
        """Raise an ``InputError`` unless the columns are there."""
        check_fit([(*self.outcomes, self.by)], width)

    def seen(self, Y: ArrayLike, random_state: int | Generator | None = None) -> Mask:
        """Mask of the outcomes where the index says so, and of columns that are neither."""
        Y = self._read_rows(Y)
        mask = np.ones(Y.shape, dtype=bool)
        chosen = (Y[:, self.index] > 0.0) == self.when
        mask[:, self.places] = chosen[:, None]
        mask[:, self.index] = False
        return mask

    def holes(self, X: Values, scan: Scan) -> Holes:
        """Return the sign of the index as a half-line; outcomes that are not seen may be anything."""
        cells = np.full(X.shape, SEEN, dtype=np.int32)
        hidden = np.isnan(X[:, self.index])
        positive = self.chosen(X) == self.when
        cells[hidden, self.index] = positive[hidden]
        signs = one_interval_each(np.array([-np.inf, 0.0]), np.array([0.0, np.inf]))
        holes = gather(cells, [signs], [np.array([self.index, self.index])])
        mask = np.isnan(X)
        mask[:, self.index] = False
        return holes.with_missing_at_random(mask)

    def chosen(self, X: Values) -> Mask:
        """Rows in which an outcome is seen."""
        return np.asarray((~np.isnan(X[:, self.places])).any(axis=1))

    def check(self, X: Values, names: Sequence[str], at_random: Mask | None = None) -> None:
        """Raise a ``ContradictionError`` where an index that is seen has the other sign."""
        index = X[:, self.index]
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(self.chosen(X) & ~np.isnan(index) & ((index > 0.0) != self.when))
        if wrong.size:
            row = int(wrong[0])
            raise ContradictionError(
                f"an outcome is seen, but the index is {index[row]:g}: Selection shows outcomes "
                f"where it is {'positive' if self.when else 'not positive'} ({wrong.size} such rows).",
                row,
                names[self.index],
            )

    def __repr__(self) -> str:
        outcomes = self.outcomes[0] if len(self.outcomes) == 1 else list(self.outcomes)
        other = "" if self.when else ", when=False"
        return f"Selection({outcomes!r}, by={self.by!r}{other})"
