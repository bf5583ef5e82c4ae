"""Means of hidden cells in original units: of columns on curved scales, and of sets of several pieces.

Given the rest of a drawn row a cell has a normal distribution restricted to its set, under which the
mean of any function is a sum over nodes; averaged over draws of the row it has much less noise than an
average of drawn values (Rao-Blackwell).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from halfseen.data.transforms import Identity, Transform
from halfseen.kernels.quadrature import NODES_48
from halfseen.kernels.restricted import restricted_nodes
from halfseen.missingness.holes import SEEN, Holes
from halfseen.solvers.full_information.problem import Problem

Floats = NDArray[np.float64]


class PieceMeans:
    """Averages over draws for the hidden cells of one column in a block of rows.

    Parameters
    ----------
    holes : Holes
        Of the block.
    column : int
    problem : Problem
        For its units.
    transform : Transform
        From the units of the table to the scale of the model.
    """

    def __init__(self, holes: Holes, column: int, problem: Problem, transform: Transform) -> None:
        hidden = np.flatnonzero(holes.index[:, column] != SEEN)
        sets, table = holes.index[hidden, column], holes.sets
        sizes = np.diff(table.start)[sets]
        known = sizes > 0
        self.column, self.transform = column, transform
        self.rows = hidden[known]
        sizes, first = sizes[known], table.start[:-1][sets][known]
        # One entry for each piece of each cell.
        self.owner = np.repeat(np.arange(self.rows.size), sizes)
        place = np.arange(self.owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        piece = np.repeat(first, sizes) + place
        self.lower, self.upper = table.lower[piece], table.upper[piece]
        self.log_weight = table.log_weight[piece]
        self.centre, self.scale = problem.centre[column], problem.scale[column]
        if transform.kink is not None:
            self._split((transform.kink - self.centre) / self.scale)
        size = self.owner.size
        # Entries of a cell from below: 0, 1, ...
        order = np.lexsort((self.upper, self.owner))
        begin = np.searchsorted(self.owner[order], self.owner[order])
        self.rank = np.empty(size, dtype=np.intp)
        self.rank[order] = np.arange(size) - begin
        self.several = np.flatnonzero(sizes > 1)
        self.path: list[NDArray[np.int8]] = []
        self.preferred = np.full(self.rows.size, -1)
        self.share, self.first = np.zeros(size), np.zeros(size)
        self._node = np.empty((size, NODES_48.size))
        self._weight, self._mass = np.empty_like(self._node), np.empty(size)

    def _split(self, kink: float) -> None:
        """Cut pieces in two where the way back to original units is not smooth."""
        across = (self.lower < kink) & (kink < self.upper)
        upper = self.upper[across]
        self.upper = np.append(np.where(across, kink, self.upper), upper)
        self.lower = np.append(self.lower, np.full(upper.size, kink))
        self.owner = np.append(self.owner, self.owner[across])
        self.log_weight = np.append(self.log_weight, self.log_weight[across])

    def add(self, Z: Floats, R: Floats, mean: Floats, P: Floats) -> None:
        """Add a draw of all rows, which less their mean are ``Z``, with ``R = Z P``."""
        j = self.column
        m = mean[j] + Z[self.rows, j] - R[self.rows, j] / P[j, j]
        restricted_nodes(
            m[self.owner], P[j, j] ** -0.5, self.lower, self.upper, self._node, self._weight, self._mass
        )  # fmt: skip
        mass = self._mass + self.log_weight
        top = np.full(self.rows.size, -np.inf)
        np.maximum.at(top, self.owner, mass)
        share = np.exp(mass - top[self.owner])
        share /= np.bincount(self.owner, share, self.rows.size)[self.owner]
        values = self.transform.inverse(self.centre + self.scale * self._node)
        if self.several.size:
            y = mean[j] + Z[self.rows, j]
            above = np.bincount(self.owner, y[self.owner] > self.upper, self.rows.size)
            self.path.append(above[self.several].astype(np.int8))
        self.share += share
        self.first += share * np.einsum("ij,ij->i", self._weight, values)

    def values(self) -> Floats:
        """Return a value for each cell, in original units and inside its set.

        That is its mean; where a mean falls between the pieces of a set, that of the likeliest piece, or
        of the one that its row prefers.
        """
        share, first = (
            np.bincount(self.owner, x, self.rows.size) for x in (self.share, self.first)
        )
        mean = first / share
        ends = [
            self.transform.inverse(self.centre + self.scale * e) for e in (self.lower, self.upper)
        ]
        within = (ends[0] <= mean[self.owner]) & (mean[self.owner] <= ends[1])
        inside = np.bincount(self.owner, within, self.rows.size) > 0
        # Pieces in the order of their shares: the last of each cell is the likeliest.
        wanted = (self.rank == self.preferred[self.owner]) & (self.share > 0.0)
        order = np.lexsort((self.share, wanted, self.owner))
        best = order[np.append(np.flatnonzero(np.diff(self.owner[order])), order.size - 1)]
        if not best.size:
            return mean
        value = np.where(inside, mean, self.first[best] / self.share[best])
        # Rounding may not carry a value out of its set.
        least, most = np.full(mean.size, np.inf), np.full(mean.size, -np.inf)
        np.minimum.at(least, self.owner, ends[0])
        np.maximum.at(most, self.owner, ends[1])
        return np.clip(value, least, most)


def agree(columns: Sequence[PieceMeans]) -> None:
    """Let cells of one row prefer pieces together: the combination that was drawn most often.

    Each by itself could end at a corner that is next to impossible.
    """
    members: dict[int, list[tuple[PieceMeans, int]]] = {}
    for found in columns:
        for k, cell in enumerate(found.several):
            members.setdefault(int(found.rows[cell]), []).append((found, k))
    paths = {id(found): np.array(found.path) for found in columns}
    for cells in members.values():
        if len(cells) < 2:
            continue
        drawn = np.stack([paths[id(found)][:, k] for found, k in cells])
        combinations, counts = np.unique(drawn, axis=1, return_counts=True)
        for (found, k), piece in zip(cells, combinations[:, counts.argmax()], strict=True):
            found.preferred[found.several[k]] = piece


def special_columns(
    problem: Problem, transforms: tuple[Transform, ...] | None
) -> dict[int, Transform]:
    """Columns on curved scales or with sets of several pieces, and their transforms."""
    sets, index = problem.holes.sets, problem.holes.index
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.start))
    # A set of lost values leaves nothing out, so that no mean falls between its pieces.
    lost = np.bincount(owner[sets.log_weight != 0.0], minlength=len(sets)) > 0
    many = (np.diff(sets.start) > 1) & ~lost
    several = set(np.nonzero((index >= 0) & many[index])[1].tolist())
    scales = transforms or (Identity(),) * index.shape[1]
    return {j: t for j, t in enumerate(scales) if j in several or not isinstance(t, Identity)}
