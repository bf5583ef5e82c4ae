"""Every row of a table, with its hidden cells filled in, wherever the rows are.

``HeldRows`` has them in memory. ``KeptRows`` leaves them with an engine: on disk, or on a cluster. Both
draw the same random numbers and add in the same order: the same pieces give the same bits.
"""

from __future__ import annotations

import hashlib
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.data.row_blocks import row_slices, sweep_rows
from halfseen.missingness.holes import Holes
from halfseen.parallel import Tree, map_in_order
from halfseen.scaling.engine import Arrays, Engine, Kept
from halfseen.solvers.full_information.completion import (
    Completion,
    Moments,
    Sums,
    slide_factor,
)
from halfseen.solvers.full_information.filling import fill
from halfseen.solvers.full_information.problem import Overview, Problem
from halfseen.solvers.full_information.shards import (
    Drawing,
    cells_of,
    checksums,
    fill_cells,
    hidden_cells,
    join_rows,
    seen_moments,
    sweep_all,
    sweep_cells,
    take_rows,
    to_arrays,
)

Floats = NDArray[np.float64]


class Rows(ABC):
    """Rows, and the sweeps that draw their hidden cells anew.

    Attributes
    ----------
    overview : Overview
    drawing : Drawing
        The seed, the chain, and how many sweeps were made since cells were filled in.
    """

    def __init__(self, overview: Overview) -> None:
        self.overview = overview
        self.drawing = Drawing(0, 0, 0)

    def fill(self, mean: Floats, deviations: Floats, seed: int, chain: int = 0) -> None:
        """Draw each hidden cell from its own marginal, whatever it held before."""
        self.drawing = Drawing(seed, chain, 0)
        self._fill(mean, deviations)

    def sweep(self, mean: Floats, precision: Floats) -> Moments:
        """Draw every hidden cell; return expected moments given the other cells."""
        factor = slide_factor(self.overview.bound, precision)
        sums = self._sweep(mean, precision, factor)
        self.drawing = self.drawing._replace(sweeps=self.drawing.sweeps + 1)
        return sums.moments(mean, self.overview.shape[0])

    def restore(self, cells: Iterable[Arrays], drawing: Drawing) -> None:
        """Take up where ``cells`` were written down."""
        self.drawing = drawing
        self._restore(cells)

    @abstractmethod
    def _fill(self, mean: Floats, deviations: Floats) -> None: ...

    @abstractmethod
    def _sweep(self, mean: Floats, precision: Floats, factor: Floats | None) -> Sums: ...

    @abstractmethod
    def _restore(self, cells: Iterable[Arrays]) -> None: ...

    @abstractmethod
    def cells(self) -> Iterator[Arrays]:
        """Yield both values of the hidden cells, piece by piece."""

    @abstractmethod
    def hidden_cells(self) -> list[int]:
        """Return the number of hidden cells of each piece."""

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> tuple[Floats, Holes]:
        """Return some rows, in growing order, as they are filled in now, and their holes."""

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
    """Rows of a problem in memory, whose hidden cells change in place."""

    def __init__(self, problem: Problem, n_jobs: int | None = None) -> None:
        super().__init__(problem.overview)
        self.problem, self.n_jobs = problem, n_jobs
        self._pieces: list[Completion] = []

    def _cut(self) -> None:
        problem, (seed, chain, sweeps) = self.problem, self.drawing
        self._pieces, first_block = [], 0
        for rows in row_slices(*self.overview.shape):
            piece = Completion(
                problem.Y[rows], problem.holes.take(rows), seed, chain, self.n_jobs, first_block
            )
            piece.sweeps = sweeps
            first_block += len(piece.blocks)
            self._pieces.append(piece)

    def _fill(self, mean: Floats, deviations: Floats) -> None:
        p = self.problem
        seed, chain, _ = self.drawing
        fill(p.Y, p.holes, mean, deviations, seed, p.names, chain, self.n_jobs)
        self._cut()

    def _sweep(self, mean: Floats, precision: Floats, factor: Floats | None) -> Sums:
        tree = Tree(operator.add)
        for sums in sweep_all(self._pieces, mean, precision, factor, self.n_jobs):
            tree.add(sums)
        for piece in self._pieces:
            piece.sweeps += 1
        return tree.root()

    def _restore(self, cells: Iterable[Arrays]) -> None:
        np.copyto(self.problem.Y, 0.0, where=self.problem.hidden)
        self._cut()
        for piece, values in zip(self._pieces, cells, strict=True):
            piece.set_cells(values["plain"], values["mirrored"])

    def cells(self) -> Iterator[Arrays]:
        """Yield both values of the hidden cells, piece by piece."""
        return (cells_of(piece) for piece in self._pieces)

    def hidden_cells(self) -> list[int]:
        """Return the number of hidden cells of each piece."""
        return [int(self.problem.hidden[rows].sum()) for rows in row_slices(*self.overview.shape)]

    def take(self, rows: NDArray[np.intp]) -> tuple[Floats, Holes]:
        """Return some rows as they are filled in now, and their holes."""
        return self.problem.Y[rows], self.problem.holes.take(rows)

    def map(self, work: Callable[..., Any], items: Iterable[Any], *common: Any) -> Iterator[Any]:
        """Yield ``work(item, *common)`` of each item, in order, computed by threads."""
        return map_in_order(partial(_apply, work, common), items, self.n_jobs)

    def seen_moments(self) -> PairMoments:
        """Return moments of the seen values, in standardised units."""
        p = self.problem
        return PairMoments.from_array(np.where(p.hidden, np.nan, p.Y), p.names, self.n_jobs)

    def checksum(self) -> str:
        """Return a checksum of all that is seen, and of what hides the rest."""
        found: list[int] = []
        p = self.problem
        step = sweep_rows(self.overview.shape[1])
        for rows in row_slices(*self.overview.shape):
            part = Problem(
                p.Y[rows], p.holes.take(rows), p.centre, p.scale, p.names, p.missingness,
                None if p.at_random is None else p.at_random[rows],
            )  # fmt: skip
            found += checksums(to_arrays(part, rows.start, rows.start // step))
        return _digest(found)


class KeptRows(Rows):
    """Rows that an engine keeps.

    Parameters
    ----------
    overview : Overview
    engine : Engine
    fixed : Kept
        What ``shards.to_arrays`` makes of each piece.
    moments : PairMoments
        Of the seen values, in units of the table.
    """

    def __init__(
        self, overview: Overview, engine: Engine, fixed: Kept, moments: PairMoments
    ) -> None:
        super().__init__(overview)
        self.engine, self.fixed, self.moments = engine, fixed, moments
        self.state = engine.put({} for _ in range(len(fixed)))

    def _fill(self, mean: Floats, deviations: Floats) -> None:
        common = mean, deviations, self.drawing, self.overview.names
        self.state, _ = self.engine.step(
            fill_cells, self.state, self.fixed, common=common, combine=_first
        )

    def _sweep(self, mean: Floats, precision: Floats, factor: Floats | None) -> Sums:
        common = mean, precision, factor, self.drawing
        self.state, sums = self.engine.step(
            sweep_cells, self.state, self.fixed, common=common, combine=operator.add
        )
        return sums

    def _restore(self, cells: Iterable[Arrays]) -> None:
        self.engine.release(self.state)
        self.state = self.engine.put(cells)

    def cells(self) -> Iterator[Arrays]:
        """Yield both values of the hidden cells, piece by piece."""
        return self.engine.each(_itself, self.state)

    def hidden_cells(self) -> list[int]:
        """Return the number of hidden cells of each piece."""
        found: list[int] = self.engine.total(hidden_cells, self.fixed, combine=operator.add)
        return found

    def take(self, rows: NDArray[np.intp]) -> tuple[Floats, Holes]:
        """Return some rows as they are filled in now, and their holes."""
        return join_rows(list(self.engine.each(take_rows, self.state, self.fixed, common=(rows,))))

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


def _first(a: Any, b: Any) -> Any:
    return a


def _itself(values: Arrays) -> Arrays:
    return values


def _apply(work: Callable[..., Any], common: tuple[Any, ...], item: Any) -> Any:
    return work(item, *common)
