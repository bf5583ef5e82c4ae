"""Rows with their hidden cells filled in, and the sweeps that draw them anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.kernels.sweep import Cells, get, put, sweep
from halfseen.missingness.holes import SEEN, Holes
from halfseen.parallel import map_in_order
from halfseen.seeds import Purpose, keyed_generator

Floats = NDArray[np.float64]

# Cells in a block: its work arrays stay in the cache of a core. Part of the meaning of a seed.
BLOCK_CELLS = 2**15


@dataclass(frozen=True)
class Moments:
    """Expected first and second moments of complete rows, about the origin."""

    first: Floats
    second: Floats

    def about(self, mean: Floats) -> Floats:
        """Second moments about a point."""
        cross = np.outer(mean, self.first)
        return self.second - cross - cross.T + np.outer(mean, mean)


@dataclass(frozen=True)
class Block:
    """Some consecutive rows, and their hidden cells column by column."""

    rows: slice
    cells: Cells

    @property
    def hidden(self) -> int:
        """Number of hidden cells."""
        return self.cells.row.size


class Completion:
    """A table whose hidden cells have values for now; ``sweep`` draws them anew.

    The hidden cells have two sets of values, drawn with mirrored uniforms: u for one, 1 − u for the
    other (antithetic variates). Each is a Gibbs chain in its own right, and most of the noise of
    one is the opposite of the other's, so that their average has little.

    Parameters
    ----------
    Y : array of shape (n, d)
        Complete rows, hidden cells at any point of their region. Changed in place.
    holes : Holes
    seed, chain : int
        The uniforms of a sweep are keyed by both, the number of the sweep, and the block.
    """

    def __init__(
        self, Y: Floats, holes: Holes, seed: int, chain: int = 0, n_jobs: int | None = None
    ) -> None:
        self.Y, self.holes, self.seed, self.chain, self.n_jobs = Y, holes, seed, chain, n_jobs
        self.sweeps = 0
        step = block_rows(Y.shape[1])
        self.blocks = [
            make_block(holes, slice(start, min(start + step, len(Y))))
            for start in range(0, len(Y), step)
        ]
        self._mirrored = [np.empty(block.hidden) for block in self.blocks]
        for block, values in zip(self.blocks, self._mirrored, strict=True):
            get(Y[block.rows], block.cells, values)

    @property
    def hidden(self) -> int:
        """Number of hidden cells."""
        return sum(block.hidden for block in self.blocks)

    def sweep(self, mean: Floats, precision: Floats) -> Moments:
        """Draw both values of every hidden cell; return expected moments given the other cells."""
        n, d = self.Y.shape
        backwards = bool(self.sweeps % 2)

        def work(number: int) -> tuple[Floats, Floats]:
            return self._sweep_block(number, mean, precision, backwards)

        first, second = np.zeros(d), np.zeros((d, d))
        for one, two in map_in_order(work, range(len(self.blocks)), self.n_jobs):
            first += one
            second += two
        self.sweeps += 1
        first /= 2 * n
        second /= 2 * n
        shift = np.outer(mean, first)
        return Moments(mean + first, second + shift + shift.T + np.outer(mean, mean))

    def uniforms(self, number: int) -> Floats:
        """Return the uniforms of a block in the coming sweep."""
        key = (self.chain, self.sweeps, number)
        rng = keyed_generator(self.seed, Purpose.FULL, *key)
        return inside(rng.random(self.blocks[number].hidden))

    def _sweep_block(
        self, number: int, mean: Floats, P: Floats, backwards: bool
    ) -> tuple[Floats, Floats]:
        block = self.blocks[number]
        u = self.uniforms(number)
        first, second = _sweep_rows(self.Y[block.rows], block, mean, P, u, backwards)
        other = self.Y[block.rows].copy()
        put(other, block.cells, self._mirrored[number])
        np.subtract(1.0, u, out=u)
        first_of_other, second_of_other = _sweep_rows(other, block, mean, P, u, backwards)
        get(other, block.cells, self._mirrored[number])
        return first + first_of_other, second + second_of_other


def inside(u: Floats) -> Floats:
    """Keep uniforms off the ends of [0, 1], in place: they would be drawn as infinite values."""
    return np.clip(u, 2.0**-53, 1.0 - 2.0**-53, out=u)


def _sweep_rows(
    Y: Floats, block: Block, mean: Floats, P: Floats, uniforms: Floats, backwards: bool
) -> tuple[Floats, Floats]:
    """Sweep over the rows of a block; return sums of expected moments about the mean."""
    Z = Y - mean
    E, variance = Z.copy(), np.zeros(mean.size)
    run_sweep(Y, Z, E, mean, P, block.cells, uniforms, backwards, variance)
    # A cell was drawn given the new values of the cells before it: those products are kept.
    products = E.T @ Z
    products = np.triu(products, 1) if backwards else np.tril(products, -1)
    products += products.T
    np.fill_diagonal(products, np.einsum("ij,ij->j", E, E) + variance)
    return E.sum(axis=0), products


def run_sweep(
    Y: Floats,
    Z: Floats,
    E: Floats,
    mean: Floats,
    P: Floats,
    cells: Cells,
    uniforms: Floats,
    backwards: bool,
    variance: Floats,
) -> Floats:
    """Sweep over a block; return R = Z P of the rows as they are then."""
    R = Z @ P
    sweep(
        Y, Z, R, E, Z @ cells.V, cells.b - mean @ cells.V, mean, P, cells, uniforms, backwards,
        variance,
    )  # fmt: skip
    return R


def block_rows(d: int) -> int:
    """Rows in a block of a table with d columns."""
    return max(1, BLOCK_CELLS // d)


def make_block(holes: Holes, rows: slice) -> Block:
    """List the hidden cells of some rows, column by column."""
    index = holes.index[rows].T
    d, n = index.shape
    place = np.flatnonzero(index != SEEN)
    start = np.searchsorted(place, n * np.arange(d + 1))
    bound, sets = holes.inequalities, holes.sets
    cells = Cells(
        start,
        (place % n).astype(np.int32),
        index.ravel()[place],
        sets.start,
        sets.lower,
        sets.upper,
        sets.node_start,
        sets.node,
        sets.weight,
        np.empty((d, 0)) if bound is None else np.ascontiguousarray(bound.V.T),
        np.empty(0) if bound is None else bound.b,
        np.empty((n, 0), dtype=np.int8) if bound is None else bound.sign[rows],
    )
    return Block(rows, cells)
