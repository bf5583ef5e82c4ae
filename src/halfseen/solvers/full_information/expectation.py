"""What rows with holes say of complete ones: their expected moments, at given parameters.

A row says the same however often it is asked: its sampled cells are driven by a lattice of points with a
shift of the row's own, in an order that is part of the question, so that expected moments and
log-likelihoods are functions of the parameters alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.table import cache_rows, row_slices
from halfseen.kernels.confined import Confines
from halfseen.kernels.paths import Law, law_of
from halfseen.kernels.patterns import (
    Grouped,
    draw_block,
    expect_block,
    mean_block,
    order_block,
    rows_block,
)
from halfseen.kernels.scale_mixture import (
    draw_scaled_block,
    expect_scaled_block,
    mean_scaled_block,
)
from halfseen.missingness.holes import SEEN, Holes
from halfseen.seeds import Purpose, keyed_generator

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Blocks in so many rows as fill the cache of a core: small tables are spread over threads too.
BLOCKS_PER_CACHE = 8
# Of a lattice: what one more coordinate in an interaction counts (of 0.02 to 0.3 that were tried the
# best for second moments of 4 to 20 cells), components that are looked at, and what tells two apart.
COORDINATE_WEIGHT, MOST_COMPONENTS, SAME_ERROR = 0.03, 512, 1e-9
# Rows with more confined cells than these are sampled.
MOST_INTEGRATED = 2


class Moments(NamedTuple):
    """Expected first and second moments of complete rows, about the origin."""

    first: Floats
    second: Floats

    def about(self, mean: Floats) -> Floats:
        """Second moments about a point."""
        cross = np.outer(mean, self.first)
        return np.asarray(self.second - cross - cross.T + np.outer(mean, mean))


class Parameters(NamedTuple):
    """A Gaussian as the kernels want it, or with finite degrees of freedom a t distribution."""

    mean: Floats
    precision: Floats
    log_determinant: float
    degrees: float = math.inf

    @classmethod
    def of(cls, mean: Floats, covariance: Floats, degrees: float = math.inf) -> Parameters:
        """Invert the covariance."""
        P = np.linalg.inv(covariance)
        log_det = float(np.linalg.slogdet(covariance)[1])
        # A copy of the mean: kernels would be compiled anew for one that cannot be written to.
        return cls(np.array(mean), np.ascontiguousarray(0.5 * (P + P.T)), log_det, degrees)


class Sampling(NamedTuple):
    """How rows are sampled that cannot be integrated: points for each row, which shifts, and order.

    ``order`` are parameters at which the cells of a row are put in order, the least likely first;
    without them cells come as columns do. An order that followed the parameters that rows are asked
    about would make what they say jump.
    """

    points: int
    seed: int
    replicate: int = 0
    purpose: Purpose = Purpose.FULL
    order: Parameters | None = None

    def shifts(self, first_row: int, shape: tuple[int, ...]) -> Floats:
        """Return the shifts of a block that begins at a row of the table."""
        rng = keyed_generator(self.seed, self.purpose, self.replicate, first_row)
        return rng.random(shape)


class Sums(NamedTuple):
    """Sums over rows: expected moments about the mean of the parameters, and log-likelihoods."""

    first: Floats
    second: Floats
    value: float

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        return Sums(self.first + other.first, self.second + other.second, self.value + other.value)

    def moments(self, about: Floats, rows: int) -> Moments:
        """Return averages, about the origin."""
        first, second = self.first / rows, self.second / rows
        shift = np.outer(about, first)
        second = second + shift + shift.T + np.outer(about, about)
        return Moments(about + first, 0.5 * (second + second.T))


def add_in_order(parts: Iterable[Any]) -> Any:
    """Add up from the first to the last."""
    parts = iter(parts)
    total = next(parts)
    for part in parts:
        total = total + part
    return total


@lru_cache(maxsize=32)
def lattice(count: int, d: int) -> Floats:
    """Points k z/N mod 1 of a rank-1 lattice, with N the first prime that is not below ``count``.

    The components of z are chosen one after the other, each as the one with the least mean square error
    over all shifts, in a space of smooth periodic functions that are nearly sums of functions of one
    and two coordinates (Sloan and Reztsov 2002). So each coordinate by itself is evenly spread, and the
    first h components serve for rows with h cells. There are N/2 components that differ: up to so many
    coordinates, pairs are spread evenly too; beyond, some repeat others, but for their shifts.
    """
    N = _prime_from(count)
    k = np.arange(N)
    # A component and its negative have the same error; of very many some are as good as all.
    z = np.unique(np.linspace(1, max(N // 2, 1), MOST_COMPONENTS).astype(int))
    x = np.outer(z, k) % N / N
    kernel = COORDINATE_WEIGHT * 2.0 * np.pi**2 * (x * x - x + 1.0 / 6.0)
    product, points = np.ones(N), np.empty((N, d))
    for j in range(d):
        error = kernel @ product
        # Many are equally good, but for rounding, which is not to choose among them.
        best = np.flatnonzero(error <= error.min() + SAME_ERROR * N)[0]
        product = product * (1.0 + kernel[best])
        points[:, j] = x[best]
    return points


def _prime_from(count: int) -> int:
    """Return the first prime that is not below a number."""
    candidate = max(2, count)
    while any(candidate % p == 0 for p in range(2, math.isqrt(candidate) + 1)):
        candidate += 1
    return candidate


def block_rows(d: int) -> int:
    """Rows that a thread takes at once."""
    return max(1, cache_rows(d) // BLOCKS_PER_CACHE)


def at_random(holes: Holes) -> Mask:
    """Cells that are hidden but not confined: they may be anything, whatever the other cells are."""
    free = (holes.index != SEEN) & holes.whole_lines[np.maximum(holes.index, 0)]
    bound = holes.inequalities
    if bound is not None:
        involved = (bound.sign != 0).astype(np.int64) @ (bound.V != 0.0).astype(np.int64)
        free &= involved == 0
    return free


def count_sampled(holes: Holes) -> int:
    """Count the confined cells of rows that have to be sampled."""
    # A chunk at a time: masks of all cells would be held beside the rows.
    return sum(_count_sampled(holes.take(rows)) for rows in row_slices(*holes.shape))


def _count_sampled(holes: Holes) -> int:
    confined = (holes.index != SEEN) & ~at_random(holes)
    count = confined.sum(axis=1)
    # Two cells are integrated where both lie in intervals, and nothing binds them together.
    odd = confined & (np.diff(holes.sets.start) == 0)[np.maximum(holes.index, 0)]
    awkward = odd.any(axis=1)
    if holes.inequalities is not None:
        awkward |= (holes.inequalities.sign != 0).any(axis=1)
    sampled = (count > MOST_INTEGRATED) | ((count == MOST_INTEGRATED) & awkward)
    return int(count[sampled].sum())


def several_pieces(holes: Holes) -> NDArray[np.intp]:
    """Columns with cells that a rule hides in more than one piece of a set."""
    owner = np.repeat(np.arange(len(holes.sets)), np.diff(holes.sets.start))
    hiding = np.bincount(owner[holes.sets.log_weight == 0.0], minlength=len(holes.sets))
    several, found = hiding > 1, np.zeros(holes.shape[1], dtype=bool)
    for rows in row_slices(*holes.shape):
        index = holes.index[rows]
        found |= (several[np.maximum(index, 0)] & (index != SEEN)).any(axis=0)
    return np.flatnonzero(found)


def confines_of(holes: Holes) -> Confines:
    """Return the sets and inequalities of holes as the kernels want them."""
    sets, bound = holes.sets, holes.inequalities
    d = holes.shape[1]
    return Confines(
        sets.start,
        sets.lower,
        sets.upper,
        sets.log_weight,
        sets.node_start,
        sets.node,
        sets.weight,
        np.empty((d, 0)) if bound is None else np.ascontiguousarray(bound.V.T),
        np.empty(0) if bound is None else bound.b,
    )


class Block(NamedTuple):
    """Some consecutive rows, by pattern.

    Attributes
    ----------
    rows : slice
        Counted in the piece of the table that they are of.
    first_row : int
        Number of the first of them in the table.
    groups : Grouped
    law : Law
        Kernels that say what the confined cells are.
    weights : array or None
        What each row counts.
    """

    rows: slice
    first_row: int
    groups: Grouped
    law: Law
    weights: Floats | None = None

    def of(self, Y: Floats) -> Floats:
        """Return these rows of ``Y``, one after the other: kernels are compiled for no other layout."""
        return np.ascontiguousarray(Y[self.rows])

    def in_order(self, Y: Floats, confines: Confines, at: Parameters) -> Block:
        """Return the block of the rows ``Y`` with cells in the order that is best at some parameters."""
        order = self.groups.order.copy()
        order_block(self.of(Y), at.mean, at.precision, self.groups, confines, order)
        return self._replace(groups=self.groups._replace(order=order))


class Layout(NamedTuple):
    """The holes of a piece of a table, ready for the kernels."""

    blocks: list[Block]
    confines: Confines


def lay_out(holes: Holes, first_row: int = 0, weights: Floats | None = None) -> Layout:
    """Cut a piece of a table, which begins at a row, into blocks."""
    n, d = holes.shape
    mask, step, found = at_random(holes), block_rows(d), []
    confines = confines_of(holes)
    law = law_of(confines)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        groups = grouped(holes.take(rows), mask[rows])
        own = None if weights is None else weights[rows]
        found.append(Block(rows, first_row + start, groups, law, own))
    return Layout(found, confines)


def grouped(holes: Holes, mask: Mask) -> Grouped:
    """Group rows by which of their cells are missing at random, which ``mask`` says."""
    n = len(mask)
    bound = holes.inequalities
    # A copy, as of the mean of parameters: it may be one that cannot be written to.
    sign = np.empty((n, 0), dtype=np.int8) if bound is None else np.array(bound.sign, order="C")
    packed = np.packbits(mask, axis=1)
    key = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    rows = np.argsort(place, kind="stable")
    start = np.searchsorted(place[rows], np.arange(first.size + 1))
    return Grouped(
        start, rows, mask[first], holes.index, sign, _columns((holes.index != SEEN) & ~mask)
    )


def _columns(mask: Mask) -> NDArray[Any]:
    """Return the columns that each row of a mask has, and -1 after the last, as wide as the longest."""
    d = mask.shape[1]
    # It is kept for every row of a table: as few bytes as will do.
    columns = np.where(mask, np.arange(d), d).astype(np.int16 if d < 2**15 else np.int32)
    columns.sort(axis=1)
    columns[columns == d] = -1
    return columns[:, : int(mask.sum(axis=1).max(initial=0))].copy()


def expect(
    Y: Floats, block: Block, confines: Confines, at: Parameters, sampling: Sampling
) -> tuple[Sums, Floats]:
    """Return sums over a block of the rows ``Y``, and the log-likelihood of each row."""
    if sampling.order is not None:
        block = block.in_order(Y, confines, sampling.order)
    if block.weights is not None:
        return _expect_weighted(Y, block, confines, at, sampling)
    part = block.of(Y)
    n, d = part.shape
    first, second, values = np.zeros(d), np.zeros((d, d)), np.empty(n)
    rest = (
        block.groups, confines, lattice(sampling.points, d),
        sampling.shifts(block.first_row, (n, d)), block.law, first, second, values,
    )  # fmt: skip
    if math.isinf(at.degrees):
        expect_block(part, *at[:3], *rest)
    else:
        expect_scaled_block(part, *at, *rest)
    return Sums(first, second, float(values.sum())), values


def _expect_weighted(
    Y: Floats, block: Block, confines: Confines, at: Parameters, sampling: Sampling
) -> tuple[Sums, Floats]:
    """Return the same of rows with weights, from what each says by itself."""
    part, w = block.of(Y), block.weights
    assert w is not None
    n, d = part.shape
    # Columns after the last that hides a cell are known.
    q = int(np.flatnonzero((block.groups.sets != SEEN).any(axis=0)).max(initial=-1)) + 1
    E, V, values = np.empty((n, q)), np.empty((n, q, q)), np.empty(n)
    rows_block(
        part, *at[:3], block.groups, confines, lattice(sampling.points, d),
        sampling.shifts(block.first_row, (n, d)), block.law, E, V, values,
    )  # fmt: skip
    rows = np.hstack([E, part[:, q:] - at.mean[q:]])
    second = (rows * w[:, None]).T @ rows
    second[:q, :q] += np.tensordot(w, V, axes=1)
    return Sums(w @ rows, second, float(w @ values)), values


def sums_of_block(
    Y: Floats, block: Block, confines: Confines, at: Parameters, sampling: Sampling
) -> Sums:
    """Return sums over a block of the rows ``Y``."""
    return expect(Y, block, confines, at, sampling)[0]


def expected_rows(
    Y: Floats, block: Block, confines: Confines, at: Parameters, sampling: Sampling
) -> Floats:
    """Return a block of the rows ``Y`` with hidden cells at their conditional means."""
    part, block = block.of(Y), block.in_order(Y, confines, at)
    n, d = part.shape
    E = np.empty((n, d))
    rest = (
        block.groups, confines, lattice(sampling.points, d),
        sampling.shifts(block.first_row, (n, d)), block.law, E,
    )  # fmt: skip
    if math.isinf(at.degrees):
        mean_block(part, at.mean, at.precision, *rest)
    else:
        mean_scaled_block(part, at.mean, at.precision, at.degrees, *rest)
    return E + at.mean


def drawn_rows(
    Y: Floats,
    block: Block,
    confines: Confines,
    at: Parameters,
    sampling: Sampling,
    count: int = 1,
) -> Floats:
    """Draw a block of the rows ``Y`` from its law given what is seen: (count, rows, d)."""
    part, block = block.of(Y), block.in_order(Y, confines, at)
    n, d = part.shape
    place = sampling.replicate, block.first_row
    rng = keyed_generator(sampling.seed, sampling.purpose, *place)
    drawn = np.empty((count, n, d))
    rest = block.groups, confines, lattice(sampling.points, d), rng.random((n, d)), block.law
    if math.isinf(at.degrees):
        draw_block(
            part, at.mean, at.precision, *rest, rng.random(n),
            rng.standard_normal((count, n, d)), drawn,
        )  # fmt: skip
    else:
        seen = (block.groups.sets == SEEN).sum(axis=1)
        draw_scaled_block(
            part, at.mean, at.precision, at.degrees, *rest,
            rng.gamma(0.5 * (at.degrees + seen), size=(count, n)), rng.random((count, n, 3)),
            rng.standard_normal((count, n, d)), drawn,
        )  # fmt: skip
    return drawn + at.mean
