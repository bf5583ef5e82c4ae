"""Where the hidden part of a row can be, given the row: the paper's ``𝒦``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import real_array, whole_number
from halfseen.errors import InputError
from halfseen.missingness.sets import SeenSet


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
