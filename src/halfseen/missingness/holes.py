"""Where the hidden part of a row can be, given the row (the paper's ``𝒦``), and in arrays for a table.

A hidden cell has a set of its own (a union of intervals, or quadrature nodes for a ``Probability``), and
a row may have linear inequalities that bind its hidden cells together. Every missingness model
is told in these terms by its method ``holes``: arrays, which the samplers of ``full`` read. A ``Region``
is a view on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import real_array, whole_number
from halfseen.errors import InputError
from halfseen.missingness.resolve import SetTable, one_interval_each, union_of_intervals
from halfseen.missingness.sets import SeenSet

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
# What stands in ``Holes.index`` for a cell that is seen, so that it lies in no set.
SEEN = -1
# How far from the seen values, in their spreads, the ends of a ``Predicate`` are looked for. Beyond
# it the set is taken to go on as it was.
REACH = 100.0


def products(Y: NDArray[np.floating], V: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``V @ y`` of each row; infinite, or NaN, where it is more than a double can hold."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(Y @ V.T)


def complete_rows(given: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Read complete rows, as many and as long as a region has them."""
    Y = real_array("rows", given)
    if Y.shape != shape:
        raise InputError(f"complete rows of shape {shape} are needed; got {Y.shape}.")
    return Y


@dataclass(frozen=True)
class Box:
    """A box of sets: each hidden cell has a set of its own, whatever the other cells are.

    Attributes
    ----------
    hidden : boolean array of shape (n, d)
        The cells that the region speaks of.
    cell : callable
        ``cell(row, column)`` is the set that the hidden value lies in.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> box = hs.DetectionLimits(lower=0.5).hidden_region([[2.0, np.nan]])
    >>> box.cell(0, 1)
    below(0.5)
    >>> box.contains([[2.0, 0.3]]), box.contains([[2.0, 0.7]])
    (array([ True]), array([False]))
    """

    hidden: NDArray[np.bool_]
    cell: Callable[[int, int], SeenSet]

    def contains(self, Y: ArrayLike) -> NDArray[np.bool_]:
        """Whether the hidden cells of each complete row of ``Y`` lie in their sets.

        Parameters
        ----------
        Y : array-like of shape (n, d)
            Complete rows.

        Returns
        -------
        boolean array of shape (n,)

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> box = hs.DetectionLimits(lower=0.5).hidden_region([[2.0, np.nan], [np.nan, 1.0]])
        >>> box.contains([[2.0, 0.3], [0.9, 1.0]])
        array([ True, False])
        """
        Y = complete_rows(Y, self.hidden.shape)
        inside = np.ones(len(Y), dtype=bool)
        for row, column in np.argwhere(self.hidden):
            inside[row] &= bool(self.cell(row, column).contains(Y[row, column]))
        return inside


@dataclass(frozen=True)
class Polyhedra:
    """A polyhedron for each row, ``{z : A z <= c}``, in the hidden coordinates of the row.

    Attributes
    ----------
    V, b : arrays of shape (d, d) and (d,)
        The thresholds: coordinate i is shown iff ``V[i] @ y <= b[i]``.
    X : array of shape (n, d)
        The rows, NaN where hidden.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.LinearThreshold.larger_of(0, 1, 2)
    >>> hidden, A, c = rule.hidden_region([[3.0, np.nan]]).row(0)
    >>> hidden, A.ravel(), c
    (array([1]), array([1., 1.]), array([3., 3.]))
    """

    V: NDArray[np.float64]
    b: NDArray[np.float64]
    X: NDArray[np.float64]

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """The cells that the region speaks of."""
        return np.isnan(self.X)

    def signs(self) -> NDArray[np.float64]:
        """1 where a coordinate is seen, so that its inequality holds; -1 where it is reversed."""
        return np.where(self.hidden, -1.0, 1.0)

    def levels(self) -> NDArray[np.float64]:
        """Right-hand sides c of every row: what the seen values leave for the hidden ones."""
        return self.signs() * (self.b - products(np.where(self.hidden, 0.0, self.X), self.V))

    def row(self, row: int) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
        """Return the hidden coordinates of a row, and its A and c.

        Parameters
        ----------
        row : int

        Returns
        -------
        hidden : integer array of shape (k,)
        A : array of shape (d, k)
        c : array of shape (d,)

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rule = hs.LinearThreshold.larger_of(0, 1, 2)
        >>> hidden, A, c = rule.hidden_region([[3.0, np.nan]]).row(0)
        >>> bool((A @ [2.9] <= c).all()), bool((A @ [3.1] <= c).all())
        (True, False)
        """
        row = whole_number("row", row, 0)
        if row >= len(self.X):
            raise InputError(f"rows run from 0 to {len(self.X) - 1}; got {row}.")
        one = Polyhedra(self.V, self.b, self.X[row : row + 1])
        where = np.flatnonzero(one.hidden[0])
        return where, one.signs()[0][:, None] * self.V[:, where], one.levels()[0]

    def contains(self, Y: ArrayLike) -> NDArray[np.bool_]:
        """Whether each complete row of ``Y`` would be shown as ``X`` is.

        Parameters
        ----------
        Y : array-like of shape (n, d)
            Complete rows.

        Returns
        -------
        boolean array of shape (n,)

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rule = hs.LinearThreshold.larger_of(0, 1, 2)
        >>> rule.hidden_region([[3.0, np.nan], [3.0, np.nan]]).contains([[3.0, 2.9], [3.0, 3.1]])
        array([ True, False])
        """
        Y = complete_rows(Y, self.X.shape)
        return ((self.b >= products(Y, self.V)) == ~self.hidden).all(axis=1)


@dataclass(frozen=True)
class Parts:
    """A region for each of several sets of columns; columns in none of them may be anything.

    Attributes
    ----------
    hidden : boolean array of shape (n, d)
        The cells that the region speaks of.
    parts : tuple of (columns, region)
        Columns of the table, and the region of the table that they form.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> larger = hs.LinearThreshold.larger_of(0, 1, 2)
    >>> rule = hs.Combined([([0], hs.DetectionLimits(lower=0)), ([1, 2], larger)])
    >>> region = rule.hidden_region([[np.nan, 3.0, np.nan]])
    >>> region.contains([[-1.0, 3.0, 2.0]]), region.contains([[-1.0, 3.0, 4.0]])
    (array([ True]), array([False]))
    """

    hidden: NDArray[np.bool_]
    parts: tuple[tuple[NDArray[np.intp], Box | Polyhedra | Parts], ...]

    def contains(self, Y: ArrayLike) -> NDArray[np.bool_]:
        """Whether each complete row of ``Y`` lies in the region of every part.

        Parameters
        ----------
        Y : array-like of shape (n, d)
            Complete rows.

        Returns
        -------
        boolean array of shape (n,)

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> larger = hs.LinearThreshold.larger_of(0, 1, 2)
        >>> rule = hs.Combined([([0], hs.DetectionLimits(lower=0)), ([1, 2], larger)])
        >>> region = rule.hidden_region([[np.nan, 3.0, np.nan]])
        >>> region.contains([[-1.0, 3.0, 2.0]])
        array([ True])
        """
        Y = complete_rows(Y, self.hidden.shape)
        inside = np.ones(len(Y), dtype=bool)
        for columns, region in self.parts:
            inside &= region.contains(Y[:, columns])
        return inside


Region = Box | Polyhedra | Parts


def _lay_out_by_row(owner: object, name: str) -> None:
    # Of tables that lie column by column the arrays would do so too, and every kernel that reads them
    # would be compiled a second time.
    object.__setattr__(owner, name, np.ascontiguousarray(getattr(owner, name)))


class Scan(NamedTuple):
    """Where to look for the pieces of sets that are known as functions, for each column.

    Rules of intervals may ignore it.

    Attributes
    ----------
    centre, spread : arrays of shape (d,)
        Location and scale of the seen values.
    reach : array of shape (d,)
        How far from the centre mass can lie, in spreads.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> scan = hs.missingness.Scan(centre=np.zeros(1), spread=np.ones(1), reach=np.full(1, 100.0))
    >>> rule = hs.SelfCensoring(hs.Predicate(lambda x: x**2 < 4))
    >>> rule.holes(np.array([[np.nan]]), scan).sets.upper  # the sets end at -2 and at infinity
    array([-2., inf])
    """

    centre: Floats
    spread: Floats
    reach: Floats


def scan_of(values: Floats) -> Scan:
    """Where to look for the ends of sets that are known as functions."""
    # Infinite values are refused elsewhere; a region can be asked for all the same.
    seen = np.isfinite(values)
    count = np.maximum(seen.sum(axis=0), 1)
    known = np.where(seen, values, 0.0)
    # Scaled down first: the squares of huge values would overflow.
    unit = np.abs(known).max(axis=0, initial=0.0)
    unit[unit == 0.0] = 1.0
    known /= unit
    centre = known.sum(axis=0) / count
    spread = np.sqrt((np.where(seen, known - centre, 0.0) ** 2).sum(axis=0) / count)
    spread[spread == 0.0] = 1.0
    return Scan(centre * unit, spread * unit, np.full(values.shape[1], REACH))


@dataclass(frozen=True)
class Inequalities:
    """Linear inequalities on whole rows: ``sign · (V @ y) <= sign · b``.

    Attributes
    ----------
    V, b : arrays of shape (m, d) and (m,)
    sign : int8 array of shape (n, m)
        1 where the inequality holds as stated, -1 where it is reversed, 0 where it is not known.
    owner : integer array of shape (m,)
        The coordinate that the inequality shows or hides.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.LinearThreshold.heckman(1, [1.0, 0.0])  # the second is seen where the first is > 0
    >>> X = np.array([[0.3, 1.0], [-0.8, np.nan]])
    >>> bound = rule.holes(X, None).inequalities
    >>> bound.sign.ravel(), bound.owner
    (array([ 1, -1], dtype=int8), array([1]))
    """

    V: Floats
    b: Floats
    sign: NDArray[np.int8]
    owner: Integers

    def __post_init__(self) -> None:
        _lay_out_by_row(self, "sign")

    def slack(self, Y: Floats) -> Floats:
        """How far inside each inequality complete rows are; negative outside.

        Parameters
        ----------
        Y : array of shape (n, d)
            Complete rows.

        Returns
        -------
        array of shape (n, m)

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rule = hs.LinearThreshold.heckman(1, [1.0, 0.0])
        >>> bound = rule.holes(np.array([[0.3, 1.0]]), None).inequalities
        >>> bool((bound.slack(np.array([[0.3, 1.0]])) > 0).all())
        True
        >>> bool((bound.slack(np.array([[-0.3, 1.0]])) > 0).all())
        False
        """
        Y = complete_rows(Y, (len(self.sign), self.V.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.sign * (self.b - Y @ self.V.T))


@dataclass(frozen=True)
class Holes:
    """The hidden cells of a table.

    Attributes
    ----------
    index : int32 array of shape (n, d)
        The set that each cell lies in; -1 where it is seen.
    sets : SetTable
        The sets, numbered as in ``index``.
    set_column : integer array, one for each set
        The column that a set speaks of.
    inequalities : Inequalities or None
        What binds the hidden cells of a row together.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.array([[2.0, np.nan], [np.nan, 3.0]])
    >>> holes = hs.SelfSelection().holes(X, None)  # the other is below the one that is seen
    >>> holes.index
    array([[-1,  0],
           [ 1, -1]], dtype=int32)
    >>> holes.sets.lower, holes.sets.upper, holes.set_column
    (array([-inf, -inf]), array([2., 3.]), array([1, 0]))
    """

    index: NDArray[np.int32]
    sets: SetTable
    set_column: Integers
    inequalities: Inequalities | None = None

    def __post_init__(self) -> None:
        _lay_out_by_row(self, "index")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.index.shape[0], self.index.shape[1]

    @property
    def is_convex(self) -> bool:
        """Whether every hidden region is convex: one interval for each cell."""
        return self.sets.is_intervals and bool((np.diff(self.sets.start) <= 1).all())

    @property
    def whole_lines(self) -> NDArray[np.bool_]:
        """Which sets leave a cell anything."""
        out = np.zeros(len(self.sets), dtype=bool)
        single = np.flatnonzero(np.diff(self.sets.start) == 1)
        first = self.sets.start[single]
        out[single] = np.isneginf(self.sets.lower[first]) & np.isposinf(self.sets.upper[first])
        return out

    def take(self, rows: NDArray[np.intp] | slice) -> Holes:
        """Return the holes of some of the rows."""
        bound = self.inequalities
        if bound is not None:
            bound = replace(bound, sign=bound.sign[rows])
        return replace(self, index=self.index[rows], inequalities=bound)

    def standardised(self, centre: Floats, scale: Floats) -> Holes:
        """Return the same holes in units ``(y - centre) / scale`` of each column."""
        pieces = np.repeat(self.set_column, np.diff(self.sets.start))
        nodes = np.repeat(self.set_column, np.diff(self.sets.node_start))
        sets = replace(
            self.sets,
            lower=(self.sets.lower - centre[pieces]) / scale[pieces],
            upper=(self.sets.upper - centre[pieces]) / scale[pieces],
            node=(self.sets.node - centre[nodes]) / scale[nodes],
            weight=self.sets.weight / scale[nodes],
            hidden_weight=self.sets.hidden_weight / scale[nodes],
        )
        bound = self.inequalities
        if bound is not None:
            V = bound.V * scale
            size = np.abs(V).max(axis=1, initial=0.0)
            size[size == 0.0] = 1.0
            bound = replace(bound, V=V / size[:, None], b=(bound.b - bound.V @ centre) / size)
        return replace(self, sets=sets, inequalities=bound)

    def with_missing_at_random(self, mask: NDArray[np.bool_]) -> Holes:
        """Return the holes when the cells of ``mask`` are hidden for no modelled reason.

        Parameters
        ----------
        mask : boolean array of shape (n, d)

        Returns
        -------
        Holes

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> holes = hs.SelfSelection().holes(np.array([[2.0, np.nan], [4.0, np.nan]]), None)
        >>> mask = np.array([[False, True], [False, False]])
        >>> holes = holes.with_missing_at_random(mask)
        >>> holes.whole_lines[holes.index[:, 1]]
        array([ True, False])
        """
        mask = read_cells("mask", mask)
        if mask.dtype != bool or mask.shape != self.index.shape:
            raise InputError(
                f"mask must be a boolean array of shape {self.index.shape}; got dtype {mask.dtype}, "
                f"shape {mask.shape}."
            )
        if not mask.any():
            return self
        d = self.index.shape[1]
        count = len(self.sets)
        index = np.where(mask, np.int32(count) + np.arange(d, dtype=np.int32), self.index)
        lines = [whole_line()] * d
        bound = self.inequalities
        if bound is not None:
            sign = np.where(mask[:, bound.owner], np.int8(0), bound.sign)
            bound = replace(bound, sign=sign)
        return Holes(
            index.astype(np.int32),
            SetTable.join([self.sets, *lines]),
            np.concatenate([self.set_column, np.arange(d)]),
            bound,
        )

    def with_intervals(self, mask: NDArray[np.bool_], lower: Floats, upper: Floats) -> Holes:
        """Return the holes when the cells of ``mask`` say themselves in which interval they lie.

        ``lower`` and ``upper`` are the ends for those cells. They were not hidden by the rule, so its
        inequalities are not held against them.
        """
        if not mask.any():
            return self
        bare = self.with_missing_at_random(mask)
        index = bare.index.copy()
        index[mask] = len(bare.sets) + np.arange(lower.size, dtype=np.int32)
        return Holes(
            index,
            SetTable.join([bare.sets, one_interval_each(lower, upper)]),
            np.concatenate([bare.set_column, np.nonzero(mask)[1]]),
            bare.inequalities,
        )

    def with_losses(self, share: Floats, mask: NDArray[np.bool_]) -> Holes:
        """Return the holes when values that the rule shows were lost too, for no modelled reason.

        Parameters
        ----------
        share : array of shape (d,)
            Probability that a value of each column was lost.
        mask : boolean array of shape (n, d)
            Cells that may be lost values. Seen ones, and those that may be anything, stay as they are.

        Returns
        -------
        Holes

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.array([[np.nan], [2.0]])
        >>> holes = hs.DetectionLimits(lower=[[0.5], [0.5]]).holes(X, None)
        >>> lost = holes.with_losses(np.array([0.1]), np.isnan(X))
        >>> which = lost.index[0, 0]
        >>> pieces = slice(*lost.sets.start[which : which + 2])
        >>> lost.sets.lower[pieces], np.exp(lost.sets.log_weight[pieces])
        (array([-inf,  0.5]), array([1. , 0.1]))
        """
        hidden = self.index != SEEN
        lost = hidden & mask & ~self.whole_lines[np.maximum(self.index, 0)]
        index = np.where(lost, self.index + np.int32(len(self.sets)), self.index)
        return replace(
            self,
            index=index.astype(np.int32),
            sets=SetTable.join([self.sets, self.sets.with_losses(share[self.set_column])]),
            set_column=np.concatenate([self.set_column, self.set_column]),
        )


def read_cells(name: str, given: object) -> NDArray[Any]:
    """Read something about every cell as an array, whatever it holds."""
    try:
        return np.asarray(given)
    except ValueError:
        raise InputError(f"{name} must have as many cells in each row as the data.") from None


def whole_line() -> SetTable:
    """Return the set of a cell that may be anything."""
    return union_of_intervals(np.array([-np.inf]), np.array([np.inf]))


def gather(
    index: NDArray[np.int32], tables: Sequence[SetTable], columns: Sequence[Integers]
) -> Holes:
    """Put sets that were made one table after the other together.

    Parameters
    ----------
    index : int32 array of shape (n, d)
        The number of the set that each hidden cell lies in, counted through all tables; ``SEEN``
        where it is seen.
    tables : sequence of SetTable
        The sets.
    columns : sequence of integer arrays
        For each table, the column that each of its sets speaks of.

    Returns
    -------
    Holes

    Examples
    --------
    >>> import numpy as np
    >>> from halfseen.missingness import SEEN, gather, one_interval_each
    >>> index = np.array([[SEEN, 0], [1, SEEN]], dtype=np.int32)
    >>> below = one_interval_each(np.full(2, -np.inf), np.array([0.5, 2.0]))
    >>> holes = gather(index, [below], [np.array([1, 0])])
    >>> holes.shape, len(holes.sets)
    ((2, 2), 2)
    """
    index = read_cells("index", index)
    if index.dtype.kind not in "iu" or index.ndim != 2:
        raise InputError(
            f"index must be whole numbers, one for each cell; got dtype {index.dtype}, shape "
            f"{index.shape}."
        )
    count = sum(map(len, tables))
    # Kernels look the sets up without asking.
    if index.size and not SEEN <= index.min() <= index.max() < count:
        raise InputError(
            f"index must lie between {SEEN} and {count - 1}, the last of the sets; got "
            f"{index.min()} to {index.max()}."
        )
    index = index.astype(np.int32, copy=False)
    if not any(map(len, tables)):
        # Kernels want a set to look at, even where no cell lies in it.
        return Holes(index, SetTable.join([whole_line()]), np.zeros(1, dtype=np.intp))
    return Holes(index, SetTable.join(tables), np.concatenate(columns).astype(np.intp))
