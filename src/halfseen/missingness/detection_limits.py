"""Detection limits: a value is shown iff it lies between the limits of its cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import real_array
from halfseen.errors import InputError
from halfseen.missingness.base import ColumnRule, ColumnwiseMissingness, Floats, Mask, Scale, listed
from halfseen.missingness.sets import Interval, SeenSet


class DetectionLimits(ColumnwiseMissingness):
    """Values below ``lower`` or above ``upper`` are hidden.

    Parameters
    ----------
    lower, upper : None, number, array-like of shape (d,) or of shape (n, d), dict, Series or DataFrame
        The limits: the same everywhere, one for each column, or one for each cell. NaN means that
        there is no limit. Where they have names, they are matched with the columns of the data by
        name; a dict has a number for each name, or one for each row, and may leave columns out.
        ``pairwise`` and ``truncation`` need limits by cell for seen cells too: to them it matters what a
        value was compared with, also when it passed.

    Notes
    -----
    A hidden cell with both limits may be on either side.

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.DetectionLimits(lower=[0.5, 1.0]).seen([[0.4, 2.0]])
    array([[False,  True]])
    """

    def __init__(
        self,
        lower: ArrayLike | dict[str, Any] | None = None,
        upper: ArrayLike | dict[str, Any] | None = None,
    ) -> None:
        if lower is None and upper is None:
            raise InputError("DetectionLimits needs lower=, upper= or both; got neither.")
        if any(isinstance(limits, dict) and not limits for limits in (lower, upper)):
            raise InputError("DetectionLimits needs at least one limit; got an empty dict.")
        self.labels = _common_labels(lower, upper)
        low = _limits("lower", _by_label(lower, self.labels), -np.inf)
        high = _limits("upper", _by_label(upper, self.labels), np.inf)
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

    def for_columns(self, names: Sequence[str]) -> Self:
        """Return the limits in the order of the columns of the data, where they have names."""
        if self.labels is None or self.labels == tuple(names):
            return super().for_columns(names)
        unknown = [label for label in self.labels if label not in names]
        if unknown:
            raise InputError(
                f"a limit is given for {unknown[0]!r}, but the columns of the data are "
                f"{listed(names)}."
            )
        place = [self.labels.index(name) if name in self.labels else -1 for name in names]
        absent = np.array(place) < 0

        def moved(limits: Floats, none: float) -> Floats:
            return np.where(absent, none, limits[..., place])

        return type(self)(moved(self.lower, np.nan), moved(self.upper, np.nan))

    def for_rows(self, rows: slice | NDArray[np.intp], total: int) -> DetectionLimits:
        """Return the limits of some of the rows."""
        if not self.varies_by_row:
            return self
        self._check_rows(total)
        return type(self)(*(_as_given(limits[rows]) for limits in (self.lower, self.upper)))

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

    def transformed(self, transforms: Sequence[Scale], names: Sequence[str]) -> DetectionLimits:
        """Return the limits of each column on its scale."""
        self.check_width(len(transforms))
        shape = (*self.lower.shape[:-1], len(transforms))
        ends = []
        for limits in (self.lower, self.upper):
            wide = np.broadcast_to(limits, shape)
            ends.append(np.stack([t.end(wide[..., j]) for j, t in enumerate(transforms)], axis=-1))
        hopeless = np.flatnonzero(np.isneginf(ends[1]).reshape(-1, len(transforms)).any(axis=0))
        if hopeless.size:
            j = int(hopeless[0])
            raise InputError(
                f"column {names[j]} is transformed by {transforms[j].name}, but an upper limit of "
                f"{np.min(self.upper[..., j] if self.upper.ndim else self.upper):g} leaves no value "
                "that can be."
            )
        return DetectionLimits(
            np.where(np.isneginf(ends[0]), np.nan, ends[0]),
            np.where(np.isposinf(ends[1]), np.nan, ends[1]),
        )

    def contradictions(self, values: Floats, column: int) -> Mask:
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


def _as_given(limits: Floats) -> Floats:
    """Return limits as a user gives them: NaN where there is none."""
    return np.where(np.isfinite(limits), limits, np.nan)


def _labels(limits: object) -> tuple[str, ...] | None:
    """Names that come with limits: keys of a dict, index of a Series, columns of a DataFrame."""
    if isinstance(limits, dict):
        return tuple(map(str, limits))
    for attribute in ("columns", "index"):
        found = getattr(limits, attribute, None)
        if found is not None and not callable(found):
            labels = list(found)
            # Plain positions are not names.
            return None if labels == list(range(len(labels))) else tuple(map(str, labels))
    return None


def _common_labels(lower: object, upper: object) -> tuple[str, ...] | None:
    """Names of both limits together, in order of appearance."""
    first, second = _labels(lower), _labels(upper)
    if first is None or second is None:
        return first or second
    return first + tuple(label for label in second if label not in first)


def _by_label(limits: Any, labels: tuple[str, ...] | None) -> Any:
    """Put limits with names into the common order; absent ones are NaN."""
    own = _labels(limits)
    if own is None:
        return limits
    table = _side_by_side(limits) if isinstance(limits, dict) else real_array("limits", limits)
    assert labels is not None
    out = np.full((*table.shape[:-1], len(labels)), np.nan)
    out[..., [labels.index(label) for label in own]] = table
    return out


def _side_by_side(limits: dict[Any, Any]) -> Floats:
    """Return limits by name, each a number or one for each row, as an array."""
    columns = [real_array(f"the limits of {name}", one) for name, one in limits.items()]
    try:
        return np.stack(np.broadcast_arrays(*columns), axis=-1)
    except ValueError:
        shapes = ", ".join(
            f"{name} {one.shape}" for name, one in zip(limits, columns, strict=True) if one.ndim
        )
        raise InputError(
            f"limits by name must be numbers, or one for each row, as many for each name; got {shapes}."
        ) from None


def _limits(name: str, given: ArrayLike | None, absent: float) -> Floats:
    if given is None:
        return np.asarray(absent)
    limits = np.array(real_array(name, given))
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
