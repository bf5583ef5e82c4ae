"""Every row of a table, wherever the rows are.

``HeldRows`` has them in memory. ``KeptRows`` leaves them with an engine: on disk, or on a cluster. Both
ask the same questions and add in the same order: the same pieces give the same bits.
"""

from __future__ import annotations

import copy
import hashlib
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.data.table import Table, row_slices
from halfseen.kernels.confined import Confines
from halfseen.missingness.holes import Holes
from halfseen.parallel import Tree, map_in_order
from halfseen.scaling.engine import Engine, Kept
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.expectation import (
    Block,
    Moments,
    Parameters,
    Sampling,
    Sums,
    add_in_order,
    lay_out,
    sums_of_block,
)
from halfseen.solvers.full_information.feasible import check_feasible
from halfseen.solvers.full_information.problem import Overview, Problem
from halfseen.solvers.full_information.shards import (
    ask_piece,
    check_piece,
    checksums,
    join_rows,
    look_at,
    seen_moments,
    take_rows,
    to_arrays,
)

Floats = NDArray[np.float64]
# The piece of the table that a block is of, what confines its cells, and the block.
Place = tuple[Floats, Confines, Block]
BlockWork = Callable[..., Any]
HolesChange = Callable[[Holes], Holes]


class Rows(ABC):
    """Rows, and what they say of complete ones.

    Attributes
    ----------
    overview : Overview
    degrees : float
        Degrees of freedom of their t distribution; infinite for a Gaussian.
    weights : array of shape (n,) or None
        What each row counts, 1 on average.
    n_jobs : int or None
        Threads that ask those in memory; None for all cores.
    """

    degrees = math.inf
    weights: Floats | None = None
    n_jobs: int | None = None

    def __init__(self, overview: Overview) -> None:
        self.overview = overview

    def with_degrees(self, degrees: float) -> Self:
        """Return the same rows of a t distribution with so many degrees of freedom."""
        out = copy.copy(self)
        out.degrees = degrees
        return out

    def expect(self, mean: Floats, covariance: Floats, sampling: Sampling) -> tuple[Moments, float]:
        """Return expected moments of complete rows, and the log-likelihood of what is seen."""
        at = Parameters.of(mean, covariance, self.degrees)
        sums: Sums = self.total(sums_of_block, at, sampling)
        return sums.moments(mean, self.overview.shape[0]), sums.value

    def sample(self, count: int, seed: int) -> Rows:
        """Return so many rows, drawn without replacement and held in memory; all, if there are fewer."""
        return self if self.overview.shape[0] <= count else self.held(count, seed)

    def held(self, count: int, seed: int) -> HeldRows:
        """Return the same in memory in any case, also all of them."""
        n = self.overview.shape[0]
        rng = keyed_generator(seed, Purpose.ORDER_OF_ROWS)
        chosen = np.sort(rng.choice(n, min(n, count), replace=False))
        Y, holes = self.take(chosen)
        about = self.overview
        problem = Problem(Y, holes, about.centre, about.scale, about.names, about.missingness, None)
        if self.weights is not None:
            own = self.weights[chosen]
            problem = replace(problem, weights=own / own.mean())
        return HeldRows(problem, self.n_jobs).with_degrees(self.degrees)

    @abstractmethod
    def total(self, work: BlockWork, at: Parameters, sampling: Sampling, *common: Any) -> Any:
        """Add up what some work says of each block: ``work(Y, block, confines, at, sampling, *common)``.

        It is a function of a module, as other processes may do it.
        """

    @abstractmethod
    def look(self, work: Callable[..., Any], *common: Any) -> Any:
        """Add up what some work says of each piece of the table: ``work(Y, holes, *common)``."""

    @abstractmethod
    def with_holes(self, change: HolesChange) -> Rows:
        """Return the same rows with other holes, which may have other ends and nothing else."""

    @abstractmethod
    def check(self) -> None:
        """Raise where a row contradicts its inequalities."""

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> tuple[Floats, Holes]:
        """Return some rows, in growing order, and their holes."""

    @abstractmethod
    def map(self, work: Callable[..., Any], items: Iterable[Any], *common: Any) -> Iterator[Any]:
        """Yield ``work(item, *common)`` of each item, in order."""

    @abstractmethod
    def seen_moments(self) -> PairMoments:
        """Return moments of the seen values, in standardised units."""

    @abstractmethod
    def checksum(self) -> str:
        """Return a checksum of all that is seen, and of what hides the rest."""


class HeldRows(Rows):
    """Rows of a problem in memory."""

    def __init__(self, problem: Problem, n_jobs: int | None = None) -> None:
        super().__init__(problem.overview)
        self.problem, self.n_jobs, self.weights = problem, n_jobs, problem.weights
        self._laid_out: tuple[Parameters | None, list[list[Place]]] | None = None

    def total(self, work: BlockWork, at: Parameters, sampling: Sampling, *common: Any) -> Any:
        """Add up what some work says of each block, computed by threads."""
        answers = self.each(work, at, sampling, *common)
        tree = Tree(operator.add)
        for piece in self._in_order(sampling.order):
            tree.add(add_in_order(next(answers) for _ in piece))
        return tree.root()

    def each(
        self, work: BlockWork, at: Parameters, sampling: Sampling, *common: Any
    ) -> Iterator[Any]:
        """Yield what some work says of each block, in the order of the rows."""
        pieces, as_they_are = self._in_order(sampling.order), sampling._replace(order=None)

        def ask(place: Place) -> Any:
            Y, confines, block = place
            return work(Y, block, confines, at, as_they_are, *common)

        return map_in_order(ask, [place for piece in pieces for place in piece], self.n_jobs)

    def look(self, work: Callable[..., Any], *common: Any) -> Any:
        """Return what some work says of all rows: they are one piece."""
        return work(np.asarray(self.problem.Y), self.problem.holes, *common)

    def with_holes(self, change: HolesChange) -> HeldRows:
        """Return the same rows with other holes."""
        problem = replace(self.problem, holes=change(self.problem.holes))
        return HeldRows(problem, self.n_jobs).with_degrees(self.degrees)

    def _in_order(self, at: Parameters | None) -> list[list[Place]]:
        """Return the blocks of each piece, with cells in the order of some parameters.

        The last order that was asked for is kept, and no other beside it: whoever climbs asks for it
        again and again.
        """
        if self._laid_out is None or not _same(self._laid_out[0], at):
            self._laid_out = None
            cuts = row_slices(*self.overview.shape)
            self._laid_out = at, [self._lay_out(cut, at) for cut in cuts]
        return self._laid_out[1]

    def _lay_out(self, cut: slice, at: Parameters | None) -> list[Place]:
        """Return the blocks of a piece, with cells in the order of some parameters."""
        Y, own = self.problem.Y[cut], None if self.weights is None else self.weights[cut]
        blocks, confines = lay_out(self.problem.holes.take(cut), cut.start, own)

        def work(block: Block) -> Place:
            return Y, confines, block if at is None else block.in_order(Y, confines, at)

        return list(map_in_order(work, blocks, self.n_jobs))

    def check(self) -> None:
        """Raise where a row contradicts its inequalities."""
        p = self.problem
        for cut in row_slices(*self.overview.shape) if self.overview.bound else []:
            check_feasible(np.asarray(p.Y[cut]), p.holes.take(cut), p.names, cut.start)

    def take(self, rows: NDArray[np.intp]) -> tuple[Floats, Holes]:
        """Return some rows, and their holes."""
        return np.asarray(self.problem.Y[rows]), self.problem.holes.take(rows)

    def map(self, work: Callable[..., Any], items: Iterable[Any], *common: Any) -> Iterator[Any]:
        """Yield ``work(item, *common)`` of each item, in order, computed by threads."""
        return map_in_order(partial(_apply, work, common), items, self.n_jobs)

    def seen_moments(self) -> PairMoments:
        """Return moments of the seen values, in standardised units."""
        p = self.problem
        return PairMoments.of_table(Table(np.where(p.hidden, np.nan, p.Y), p.names), self.n_jobs)

    def checksum(self) -> str:
        """Return a checksum of all that is seen, and of what hides the rest."""
        found: list[int] = []
        for piece in row_slices(*self.overview.shape):
            part = self.problem.take(piece)
            found += checksums(to_arrays(part, piece.start))
        return _digest(found)


class KeptRows(Rows):
    """Rows that an engine keeps.

    Parameters
    ----------
    overview : Overview
    engine : Engine
    fixed : Kept
        What ``shards.to_arrays`` makes of each piece.
    moments : PairMoments, optional
        Of the seen values, in units of the table.
    change : callable, optional
        What is done to the holes of a piece before it is asked anything.
    """

    def __init__(
        self,
        overview: Overview,
        engine: Engine,
        fixed: Kept,
        moments: PairMoments | None = None,
        change: HolesChange | None = None,
    ) -> None:
        super().__init__(overview)
        self.engine, self.fixed, self.moments, self.change = engine, fixed, moments, change

    def total(self, work: BlockWork, at: Parameters, sampling: Sampling, *common: Any) -> Any:
        """Add up what some work says of each block, computed by the engine."""
        return self.engine.total(
            ask_piece,
            self.fixed,
            common=(work, at, sampling, common, self.change),
            combine=operator.add,
        )

    def look(self, work: Callable[..., Any], *common: Any) -> Any:
        """Add up what some work says of each piece, computed by the engine."""
        return self.engine.total(
            look_at, self.fixed, common=(work, common, self.change), combine=operator.add
        )

    def with_holes(self, change: HolesChange) -> KeptRows:
        """Return the same rows with other holes, which are made whenever they are asked."""
        return KeptRows(self.overview, self.engine, self.fixed, self.moments, change)

    def check(self) -> None:
        """Raise where a row contradicts its inequalities."""
        if self.overview.bound:
            self.engine.total(
                check_piece, self.fixed, common=(self.overview.names,), combine=operator.add
            )

    def take(self, rows: NDArray[np.intp]) -> tuple[Floats, Holes]:
        """Return some rows, and their holes."""
        return join_rows(list(self.engine.each(take_rows, self.fixed, common=(rows, self.change))))

    def map(self, work: Callable[..., Any], items: Iterable[Any], *common: Any) -> Iterator[Any]:
        """Yield ``work(item, *common)`` of each item, in order, computed by the engine."""
        return self.engine.map(work, items, *common)

    def seen_moments(self) -> PairMoments:
        """Return moments of the seen values, in standardised units."""
        names = self.overview.names
        first = next(self.engine.each(seen_moments, self.fixed, common=(names, None)))
        found = self.engine.total(
            seen_moments, self.fixed, common=(names, first), combine=PairMoments.merge
        )
        assert isinstance(found, PairMoments)
        return found

    def checksum(self) -> str:
        """Return a checksum of all that is seen, and of what hides the rest."""
        return _digest(self.engine.total(checksums, self.fixed, combine=operator.add))


def _digest(found: list[int]) -> str:
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _same(one: Parameters | None, other: Parameters | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.mean, other.mean) and np.array_equal(one.precision, other.precision)


def _apply(work: Callable[..., Any], common: tuple[Any, ...], item: Any) -> Any:
    return work(item, *common)
