"""Detection limits: a value is shown iff it lies between the limits of its cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.errors import InputError
from halfseen.missingness.base import ColumnRule, ColumnwiseMissingness, Floats
from halfseen.missingness.sets import Interval, SeenSet


class DetectionLimits(ColumnwiseMissingness):
    """Values below ``lower`` or above ``upper`` are hidden.

    Parameters
    ----------
    lower, upper : None, number, array-like of shape (d,) or of shape (n, d)
        The limits: the same everywhere, one for each column, or one for each cell. NaN means that
        there is no limit.

    Notes
    -----
    A hidden cell with both limits may be on either side.

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.DetectionLimits(lower=[0.5, 1.0]).seen([[0.4, 2.0]])
    array([[False,  True]])
    """

    def __init__(self, lower: ArrayLike | None = None, upper: ArrayLike | None = None) -> None:
        if lower is None and upper is None:
            raise InputError("DetectionLimits needs lower=, upper= or both; got neither.")
        low = _limits("lower", lower, -np.inf)
        high = _limits("upper", upper, np.inf)
        try:
            self.lower, self.upper = np.broadcast_arrays(low, high)
        except ValueError:
            raise InputError(
                f"lower and upper must fit together; got shapes {low.shape} and {high.shape}."
            ) from None
        empty = ~(self.lower < self.upper)
        if empty.any():
            where = tuple(int(k) for k in np.argwhere(empty)[0])
            raise InputError(
                f"lower must be below upper, or nothing can be seen; at {_place(where)} they are "
                f"{self.lower[where]:g} and {self.upper[where]:g}."
            )

    @property
    def width(self) -> int | None:
        """Number of columns; None where the limits are single numbers."""
        return None if self.lower.ndim == 0 else self.lower.shape[-1]

    @property
    def varies_by_row(self) -> bool:
        """Whether the limits are given for each cell."""
        return self.lower.ndim == 2

    def _check_rows(self, n: int) -> None:
        if self.varies_by_row and len(self.lower) != n:
            raise InputError(
                f"the limits are given for {len(self.lower)} rows, but the data have {n}."
            )

    def column_rule(self, column: int) -> ColumnRule:
        """Return the rule of one column; rows with equal limits form a group."""
        if not self.varies_by_row:
            return ColumnRule.of_set(self.cell_set(0, column))
        pairs = np.stack([self.lower[:, column], self.upper[:, column]], axis=1)
        distinct, group = np.unique(pairs, axis=0, return_inverse=True)
        return ColumnRule(
            None, distinct[:, 0].copy(), distinct[:, 1].copy(), group.ravel().astype(np.intp)
        )

    def cell_set(self, row: int, column: int) -> SeenSet:
        """Return the interval in which one cell is shown."""
        where = {0: (), 1: (column,), 2: (row, column)}[self.lower.ndim]
        return Interval(float(self.lower[where]), float(self.upper[where]))

    def shown_probability(self, Y: Floats) -> Floats:
        """1 where a cell lies between its limits, 0 elsewhere."""
        self._check_rows(len(Y))
        return ((self.lower <= Y) & (self.upper >= Y)).astype(float)

    def contradictions(self, values: Floats, column: int) -> NDArray[np.bool_]:
        """Mask of the values that are seen though they lie outside their limits."""
        self._check_rows(len(values))
        index = (..., column) if self.lower.ndim else ()
        return (values < self.lower[index]) | (values > self.upper[index])

    def __repr__(self) -> str:
        def show(limits: Floats) -> str:
            return repr(limits.tolist()) if limits.size <= 8 else f"array of shape {limits.shape}"

        parts = []
        if np.isfinite(self.lower).any():
            parts.append(f"lower={show(self.lower)}")
        if np.isfinite(self.upper).any():
            parts.append(f"upper={show(self.upper)}")
        return f"DetectionLimits({', '.join(parts)})"


def _limits(name: str, given: ArrayLike | None, absent: float) -> Floats:
    if given is None:
        return np.asarray(absent)
    try:
        limits = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers; got {given!r}.") from None
    if limits.ndim > 2:
        raise InputError(
            f"{name} must be a number, one for each column, or an array of shape (n, d); "
            f"got shape {limits.shape}."
        )
    limits[np.isnan(limits)] = absent
    if (limits == -absent).any():
        raise InputError(
            f"{name} may not be {-absent}: nothing could be seen. Use NaN for a cell without a "
            "limit."
        )
    return limits


def _place(where: tuple[int, ...]) -> str:
    if not where:
        return "every cell"
    return f"column {where[0]}" if len(where) == 1 else f"row {where[0]}, column {where[1]}"
