"""Moments of every pair of columns over the rows in which both are seen.

They are all that ``truncation`` and ``pairwise`` need of the data: four masked matrix products
``MᵀM, X₀ᵀM, (X₀∘X₀)ᵀM, X₀ᵀX₀``, done block by block, and exact to merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from halfseen.data.table import (
    LARGEST_VALUE,
    Table,
    TableKind,
    cache_rows,
    check_finite,
    read_names,
    read_table,
    release_pages,
    row_slices,
)
from halfseen.errors import InputError
from halfseen.kernels.blas import add_masked_products
from halfseen.kernels.blocks import (
    WORD,
    count_together,
    pack_mask,
    prepare_columns,
)
from halfseen.parallel import Tree, map_in_order, single_blas_thread

Floats = NDArray[np.float64]

# Rows of a column that are looked through at a time.
LOOK_ROWS = 2**20
# Rows, spread over a chunk of the table, from which the provisional location and scale are taken.
PILOT_ROWS = 1024
# A column with fewer values among them is looked through from its first row.
FEW_PILOT_VALUES = 16
# Rows whose products are added at once, at least: BLAS packs as many at a time, and fewer take longer.
# Part of the last bits of the sums.
PRODUCT_ROWS = 256
# Of the seen values of a column; 1/1e-300 is the largest that is far from overflow.
SMALLEST_SPREAD = 1e-300


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Sums over the rows in which columns i and j are both seen.

    Values enter as ``u = (x - shift) / scale``; scales are powers of two, so that changing them
    rounds nothing.

    Attributes
    ----------
    rows : int
        Number of rows, with or without hidden cells.
    counts : array of shape (d, d)
        Number of rows in which i and j are seen.
    first, second : arrays of shape (d, d)
        Sums of u_i and of u_i² over those rows.
    cross : array of shape (d, d)
        Sum of u_i u_j over those rows.
    shift, scale : arrays of shape (d,)
    smallest, largest : arrays of shape (d,)
        Extremes of the seen values of each column.
    names : tuple of str
        Names of the columns.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 4.0]])
    >>> whole = hs.PairMoments.from_array(X)
    >>> halves = hs.PairMoments.from_array(X[:2]).merge(hs.PairMoments.from_array(X[2:]))
    >>> whole.counts
    array([[3., 2.],
           [2., 2.]])
    >>> bool(np.allclose(whole.means(), halves.means(), rtol=1e-12))
    True
    """

    kind: ClassVar[TableKind] = TableKind.MOMENTS

    rows: int
    counts: Floats
    first: Floats
    second: Floats
    cross: Floats
    shift: Floats
    scale: Floats
    smallest: Floats
    largest: Floats
    names: tuple[str, ...]

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.shift.size

    @classmethod
    def from_array(
        cls, X: Any, names: Sequence[str] | None = None, n_jobs: int | None = None
    ) -> PairMoments:
        """Read a table once, in row blocks.

        Parameters
        ----------
        X : array-like of shape (n, d), or a data frame
            NaN where hidden.
        names : sequence of str, optional
            Names of the columns; those of the frame otherwise.
        n_jobs : int, optional
            Threads; all cores by default. The sums do not depend on it.

        Returns
        -------
        PairMoments

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rule = hs.DetectionLimits(lower=[0.0, 0.0])
        >>> X = hs.simulate(hs.Gaussian([0.5, 1.0], [[1.0, 0.6], [0.6, 1.0]]), rule, 5000)
        >>> moments = hs.PairMoments.from_array(X)  # of shape (2, 2), for any number of rows
        >>> fit = hs.solvers.pairwise(moments, rule)
        >>> abs(fit.mean - [0.5, 1.0]) < 0.1
        array([ True,  True])
        """
        return cls.of_table(read_table(X, names, fewest_rows=1), n_jobs)

    @classmethod
    def of_table(cls, table: Table, n_jobs: int | None = None) -> PairMoments:
        """Collect the sums of a table that was read."""
        X, names = table
        chunks = row_slices(*X.shape)
        # All in the units of the first, so that they are merged by adding.
        first = cls.of_chunk(X[chunks[0]], names)

        def work(rows: slice) -> PairMoments:
            return cls.of_chunk(X[rows], names, first)

        tree = Tree(PairMoments.merge)
        tree.add(first)
        with single_blas_thread():
            for part in map_in_order(work, chunks[1:], n_jobs):
                tree.add(part)
        moments: PairMoments = tree.root()
        moments.check_range(X)
        return moments

    @classmethod
    def of_chunk(
        cls,
        X: NDArray[np.floating],
        names: tuple[str, ...],
        like: PairMoments | None = None,
    ) -> PairMoments:
        """Read a chunk of a table, in the units of another where that one saw enough of a column.

        Chunks in the same units are merged by adding. Values out of range are left to ``check_range``.
        """
        shift, scale = _pilot(X) if like is None else _units_like(like, X)
        d, step = len(names), product_rows(X.shape)
        low, high = np.full(d, np.inf), np.full(d, -np.inf)
        mask, values = np.empty((d, step)), np.empty((2 * d, step))
        seen = np.empty((d, -(-len(X) // step), step // WORD), np.uint64)
        sums, cross, counts = np.zeros((2 * d, d)), np.zeros((d, d)), np.empty((d, d))
        with single_blas_thread():
            for number, start in enumerate(range(0, len(X), step)):
                columns = np.ascontiguousarray(X[start : start + step].T)
                prepare_columns(columns, shift, 1.0 / scale, mask, values, low, high)
                pack_mask(mask, seen[:, number])
                add_masked_products(values, mask, columns.shape[1], sums, cross)
        release_pages(X)
        count_together(seen.reshape(d, -1), counts)
        cross = np.tril(cross) + np.tril(cross, -1).T
        return cls(len(X), counts, sums[:d], sums[d:], cross, shift, scale, low, high, names)

    def check_range(self, X: NDArray[np.floating]) -> None:
        """Raise an ``InputError`` for values of the table that are too large, or infinite."""
        seen = np.diag(self.counts) > 0
        far = (self.smallest < -LARGEST_VALUE) | (self.largest > LARGEST_VALUE)
        if (far & seen).any():
            check_finite(X, self.names)

    def merge(self, other: PairMoments) -> PairMoments:
        """Moments of both tables together, in the units of this one.

        Parameters
        ----------
        other : PairMoments
            Of a table with the same columns.

        Returns
        -------
        PairMoments

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> first, second = np.array([[1.0, np.nan], [3.0, 4.0]]), np.array([[5.0, 6.0]])
        >>> both = hs.PairMoments.from_array(first).merge(hs.PairMoments.from_array(second))
        >>> both.rows, both.means()
        (3, array([3., 5.]))
        """
        if other.width != self.width:
            raise InputError(
                f"tables to be merged must have the same columns: {self.width} and {other.width}."
            )
        if other.names != self.names:
            wrong = next(p for p in zip(self.names, other.names, strict=True) if p[0] != p[1])
            raise InputError(
                "tables to be merged must have the same columns in the same order: "
                f"{wrong[0]} stands where the other has {wrong[1]}."
            )
        # A column with nothing seen yet has no location of its own.
        shift = np.where(np.diag(self.counts) > 0, self.shift, other.shift)
        scale = np.where(np.diag(self.counts) > 0, self.scale, other.scale)
        a, b = self._rebased(shift, scale), other._rebased(shift, scale)
        return replace(
            a,
            rows=a.rows + b.rows,
            counts=a.counts + b.counts,
            first=a.first + b.first,
            second=a.second + b.second,
            cross=a.cross + b.cross,
            smallest=np.minimum(a.smallest, b.smallest),
            largest=np.maximum(a.largest, b.largest),
        )

    def _rebased(self, shift: Floats, scale: Floats) -> PairMoments:
        if np.array_equal(shift, self.shift) and np.array_equal(scale, self.scale):
            return self
        # u' = r u + c with r = scale/scale', c = (shift - shift')/scale'
        r, c = self.scale / scale, (self.shift - shift) / scale
        ri, ci = r[:, None], c[:, None]
        first = ri * self.first + ci * self.counts
        second = ri**2 * self.second + 2.0 * ri * ci * self.first + ci**2 * self.counts
        # Σ u'_i u'_j; `first` of the pair seen from j is its transpose
        cross = ri * r * self.cross + ri * c * self.first + ci * first.T
        return replace(self, first=first, second=second, cross=cross, shift=shift, scale=scale)

    def _with_names(self, names: Sequence[str]) -> PairMoments:
        return replace(self, names=read_names(names, self.width))

    def means(self) -> Floats:
        """Mean of the seen values of each column.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> hs.PairMoments.from_array([[1.0, np.nan], [3.0, 4.0]]).means()
        array([2., 4.])
        """
        return self.shift + self.scale * np.diag(self.first) / np.diag(self.counts)

    def deviations(self) -> Floats:
        """Return the standard deviation (divided by n) of the seen values of each column.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> hs.PairMoments.from_array([[1.0, 2.0], [3.0, 2.5], [np.nan, 3.0]]).deviations().round(3)
        array([1.   , 0.408])
        """
        n, s = np.diag(self.counts), np.diag(self.first)
        return self.scale * np.sqrt(np.maximum(np.diag(self.second) / n - (s / n) ** 2, 0.0))


def _units_like(like: PairMoments, X: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Location and scale of other moments; those of X itself where these saw too little of a column."""
    known = np.diag(like.counts) >= FEW_PILOT_VALUES
    if known.all():
        return like.shift, like.scale
    shift, scale = _pilot(X)
    return np.where(known, like.shift, shift), np.where(known, like.scale, scale)


def product_rows(shape: tuple[int, int]) -> int:
    """Rows of a block whose products are added at once: all that there are, or whole words of bits."""
    n, d = shape
    return WORD * -(-min(n, max(PRODUCT_ROWS, cache_rows(d))) // WORD)


def _pilot(X: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Provisional location and scale of each column, from rows spread over the table."""
    sample = np.array(X[:: max(1, len(X) // PILOT_ROWS)], dtype=float, order="C")
    release_pages(X)
    # Values that are refused in the end say nothing of the others.
    usable = np.abs(sample) <= LARGEST_VALUE
    # A column that is hardly ever seen may be missed altogether: look for its values.
    for column in np.flatnonzero(usable.sum(axis=0) < FEW_PILOT_VALUES):
        found = _first_values(X, int(column), len(sample))
        sample[:, column] = np.nan
        sample[: found.size, column] = found
        usable[:, column] = ~np.isnan(sample[:, column])
    n = np.maximum(usable.sum(axis=0), 1)
    # Scaled down first: neither the sum nor the squares of huge values may overflow.
    largest = np.where(usable, np.abs(sample), 0.0).max(axis=0, initial=0.0)
    unit = np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0))))
    sample = np.where(usable, sample, 0.0) / unit
    mean = sample.sum(axis=0) / n
    spread = np.sqrt((np.where(usable, sample - mean, 0.0) ** 2).sum(axis=0) / n) * unit
    # A spread whose inverse a double cannot hold is none.
    spread[~(spread > SMALLEST_SPREAD)] = 1.0
    return mean * unit, np.exp2(np.round(np.log2(spread)))


def _first_values(X: NDArray[np.floating], column: int, most: int) -> Floats:
    """Return the first usable values of a column."""
    found, count = [np.empty(0)], 0
    for start in range(0, len(X), LOOK_ROWS):
        part = np.array(X[start : start + LOOK_ROWS, column], dtype=float)
        release_pages(X)
        found.append(part[np.abs(part) <= LARGEST_VALUE][: most - count])
        count += found[-1].size
        if count >= most:
            break
    return np.concatenate(found)
