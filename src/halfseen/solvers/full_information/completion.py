"""Rows with their hidden cells filled in, and the sweeps that draw them anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.row_blocks import sweep_rows
from halfseen.kernels.leap import MOST_CELLS, leap
from halfseen.kernels.sweep import Cells, get, put, slide, sweep
from halfseen.missingness.holes import SEEN, Holes
from halfseen.parallel import map_in_order
from halfseen.seeds import Purpose, keyed_generator

Floats = NDArray[np.float64]

# Variance of a column over that given all others (the variance inflation factor) beyond which a sweep by
# itself would need many rounds.
CLOSELY_BOUND = 5.0


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
    index: NDArray[np.int32]
    # Rows, counted in the block, with several cells that hide in more than one piece.
    leaping: NDArray[np.intp]

    @property
    def hidden(self) -> int:
        """Number of hidden cells."""
        return self.cells.row.size


class Draws(NamedTuple):
    """Random numbers of one sweep over a block.

    Attributes
    ----------
    cells : array, one for each hidden cell
        Uniforms.
    direction : array of shape (d,), or empty
        Along which the hidden cells of each row slide together before they are swept.
    rows : array, one for each row, or empty
        Uniforms of the slides.
    leaps : array, a row for each row that leaps, or empty
        Uniforms of the leaps.
    """

    cells: Floats
    direction: Floats
    rows: Floats
    leaps: Floats

    @classmethod
    def make(cls, block: Block, rng: np.random.Generator, factor: Floats | None) -> Draws:
        """Draw them; slides go along L ξ, where ``factor`` is L and ξ standard normal."""
        cells = inside(rng.random(block.hidden))
        direction, rows = np.empty(0), np.empty(0)
        if factor is not None:
            direction = factor @ rng.standard_normal(len(factor))
            rows = inside(rng.random(len(block.index)))
        leaps = inside(rng.random((block.leaping.size, MOST_CELLS + 1)))
        return cls(cells, direction, rows, leaps)

    def mirrored(self) -> Draws:
        """Return 1 − u for each uniform."""
        return Draws(1.0 - self.cells, self.direction, 1.0 - self.rows, 1.0 - self.leaps)


def slide_factor(bound: bool, P: Floats) -> Floats | None:
    """Return the Cholesky factor of the covariance where slides are of use, else None.

    They are where some column is nearly a function of the others, or where inequalities bind cells
    together, which ``bound`` says.
    """
    S = np.linalg.inv(P)
    S = 0.5 * (S + S.T)
    if not bound and (np.diag(S) * np.diag(P)).max() < CLOSELY_BOUND:
        return None
    return np.asarray(np.linalg.cholesky(S))


class Sums(NamedTuple):
    """Sums over rows, and over both values of hidden cells, of expected moments about a point."""

    first: Floats
    second: Floats

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        return Sums(self.first + other.first, self.second + other.second)

    def moments(self, about: Floats, rows: int) -> Moments:
        """Return averages, about the origin."""
        first, second = self.first / (2 * rows), self.second / (2 * rows)
        shift = np.outer(about, first)
        return Moments(about + first, second + shift + shift.T + np.outer(about, about))


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
    n_jobs : int or None
    first_block : int
        Number of the first block, where the rows are a piece of a larger table.
    blocks : list of Block, optional
        Those of ``holes``, where they are at hand.
    """

    def __init__(
        self,
        Y: Floats,
        holes: Holes,
        seed: int,
        chain: int = 0,
        n_jobs: int | None = None,
        first_block: int = 0,
        blocks: list[Block] | None = None,
    ) -> None:
        self.Y, self.holes, self.seed, self.chain, self.n_jobs = Y, holes, seed, chain, n_jobs
        self.first_block, self.sweeps = first_block, 0
        self.blocks = make_blocks(holes) if blocks is None else blocks
        self.mirrored = self.plain()

    @property
    def hidden(self) -> int:
        """Number of hidden cells."""
        return sum(block.hidden for block in self.blocks)

    def plain(self) -> list[Floats]:
        """Return the values that hidden cells have in ``Y``, block by block."""
        values = [np.empty(block.hidden) for block in self.blocks]
        for block, part in zip(self.blocks, values, strict=True):
            get(self.Y[block.rows], block.cells, part)
        return values

    def set_cells(self, plain: Floats, mirrored: Floats) -> None:
        """Give hidden cells both of their values, in the order of ``plain``."""
        ends = np.cumsum([block.hidden for block in self.blocks])[:-1]
        self.mirrored = [part.copy() for part in np.split(mirrored, ends)]
        for block, part in zip(self.blocks, np.split(plain, ends), strict=True):
            put(self.Y[block.rows], block.cells, part)

    def sweep(self, mean: Floats, precision: Floats) -> Moments:
        """Draw both values of every hidden cell; return expected moments given the other cells."""
        factor = slide_factor(self.holes.inequalities is not None, precision)

        def work(number: int) -> Sums:
            return self.sweep_block(number, mean, precision, factor)

        total = add_in_order(map_in_order(work, range(len(self.blocks)), self.n_jobs))
        self.sweeps += 1
        return total.moments(mean, len(self.Y))

    def draws(self, number: int, factor: Floats | None) -> Draws:
        """Return the random numbers of a block in the coming sweep."""
        place = self.chain, self.sweeps, self.first_block + number
        rng = keyed_generator(self.seed, Purpose.FULL, *place)
        return Draws.make(self.blocks[number], rng, factor)

    def sweep_block(self, number: int, mean: Floats, P: Floats, factor: Floats | None) -> Sums:
        """Draw the hidden cells of one block, in the coming sweep."""
        block, backwards = self.blocks[number], bool(self.sweeps % 2)
        draws = self.draws(number, factor)
        plain = _expected_sums(self.Y[block.rows], block, mean, P, draws, backwards)
        other = self.Y[block.rows].copy()
        put(other, block.cells, self.mirrored[number])
        mirrored = _expected_sums(other, block, mean, P, draws.mirrored(), backwards)
        get(other, block.cells, self.mirrored[number])
        return plain + mirrored


def add_in_order(parts: Iterable[Sums]) -> Sums:
    """Add sums from the first to the last."""
    parts = iter(parts)
    total = next(parts)
    first, second = total.first.copy(), total.second.copy()
    for part in parts:
        first += part.first
        second += part.second
    return Sums(first, second)


def inside(u: Floats) -> Floats:
    """Keep uniforms off the ends of [0, 1], in place: they would be drawn as infinite values."""
    return np.clip(u, 2.0**-53, 1.0 - 2.0**-53, out=u)


def _expected_sums(
    Y: Floats, block: Block, mean: Floats, P: Floats, draws: Draws, backwards: bool
) -> Sums:
    """Sweep over the rows of a block; return sums of expected moments about the mean."""
    Z = Y - mean
    E, variance = Z.copy(), np.zeros(mean.size)
    sweep_block(Y, Z, E, variance, block, mean, P, draws, backwards)
    # A cell was drawn given the new values of the cells before it: those products are kept.
    products = E.T @ Z
    products = np.triu(products, 1) if backwards else np.tril(products, -1)
    products += products.T
    np.fill_diagonal(products, np.einsum("ij,ij->j", E, E) + variance)
    return Sums(E.sum(axis=0), products)


def sweep_block(
    Y: Floats,
    Z: Floats,
    E: Floats,
    variance: Floats,
    block: Block,
    mean: Floats,
    P: Floats,
    draws: Draws,
    backwards: bool,
) -> Floats:
    """Leap, slide and sweep the rows of a block, in place; return R = Z P of the rows as they are then.

    ``Z`` are the rows less the mean; ``E`` and ``variance`` are as in ``kernels.sweep``.
    """
    cells = block.cells
    R, W, level = Z @ P, Z @ cells.V, cells.b - mean @ cells.V
    if block.leaping.size:
        leap(Y, Z, R, mean, P, block.index, cells, block.leaping, draws.leaps)
    if draws.direction.size:
        slide(Y, Z, R, W, level, mean, P, block.index, cells, draws.direction, draws.rows)
    sweep(Y, Z, R, E, W, level, mean, P, cells, draws.cells, backwards, variance)
    return R


def make_blocks(holes: Holes) -> list[Block]:
    """Cut a table into blocks that are swept at once."""
    n, d = holes.shape
    step = sweep_rows(d)
    return [make_block(holes, slice(k, min(k + step, n))) for k in range(0, n, step)]


def make_block(holes: Holes, rows: slice) -> Block:
    """List the hidden cells of some rows, column by column."""
    index = holes.index[rows].T
    d, n = index.shape
    place = np.flatnonzero(index != SEEN)
    start = np.searchsorted(place, n * np.arange(d + 1))
    bound, sets = holes.inequalities, holes.sets
    cells = Cells(
        start,
        # A block has at most 2¹⁵ rows.
        (place % n).astype(np.int16),
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
    return Block(rows, cells, holes.index[rows], _leaping(holes, rows))


def _leaping(holes: Holes, rows: slice) -> NDArray[np.intp]:
    """Return rows with two or more cells in several pieces, and without inequalities that bind."""
    index = holes.index[rows]
    several = (index != SEEN) & (np.diff(holes.sets.start)[index] > 1)
    leaping = several.sum(axis=1) > 1
    if holes.inequalities is not None:
        leaping &= ~holes.inequalities.sign[rows].any(axis=1)
    return np.flatnonzero(leaping)
