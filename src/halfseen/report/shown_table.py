"""The table behind a fit, read once: what is seen of it on the modelled scale, where the rest can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.missingness.holes import SEEN, Holes, whole_line
from halfseen.missingness.resolve import SetTable
from halfseen.missingness.truncation import RowTruncation
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.inference.fitted_table import read_source, seen_values

if TYPE_CHECKING:
    from halfseen.results import Fit

Floats = NDArray[np.float64]
Kinds = NDArray[np.int8]


class Kind(IntEnum):
    """What is known of a cell."""

    SEEN, BELOW, ABOVE, BETWEEN, EITHER, ANYWHERE, TIED, CHANCE = range(8)

    @property
    def letter(self) -> str:
        """What stands for a cell of this kind in the content of the page."""
        return "sbaientc"[self]

    @property
    def words(self) -> str:
        """Where a cell of this kind is known to lie."""
        return (
            "at its value", "below a limit", "above a limit", "between two limits",
            "in one of several ranges", "anywhere", "where the rule and other columns allow",
            "anywhere, by chance",
        )[self]  # fmt: skip


class Ranges(NamedTuple):
    """Ranges of cells that may lie in one of several.

    ``owner`` is the set of each range, ``cells`` how many lie in each set.
    """

    lower: Floats
    upper: Floats
    owner: NDArray[np.intp]
    cells: NDArray[np.intp]

    @property
    def ends(self) -> Floats:
        """Ends that are limits."""
        ends = np.concatenate([self.lower, self.upper])
        return ends[np.isfinite(ends)]


@dataclass(frozen=True, eq=False)
class ShownColumn:
    """A column on the modelled scale.

    Attributes
    ----------
    kind : int8 array of shape (n,)
        What is known of each cell, as ``Kind``.
    lower, upper : arrays of shape (n,)
        Least and largest value of each cell; its value where it is seen.
    ranges : Ranges
        Of the cells that may lie in one of several.
    """

    kind: Kinds
    lower: Floats
    upper: Floats
    ranges: Ranges

    @cached_property
    def seen(self) -> Floats:
        """Return the seen values."""
        return self.lower[self.kind == Kind.SEEN]


@dataclass(frozen=True, eq=False)
class ShownTable:
    """A table on the modelled scale.

    Attributes
    ----------
    values : array of shape (n, d)
        NaN where hidden.
    index : integer array of shape (n, d)
        The set that each cell lies in; negative where it is seen.
    sets : SetTable
        In the units of ``values``.
    tied : boolean array of shape (n, d)
        Where a linear inequality ties the cell to other columns: it stands in one, or is hidden by one.
    labels : tuple of str or None
        Names of the rows.
    """

    values: Floats
    index: NDArray[np.int32]
    sets: SetTable
    tied: NDArray[np.bool_]
    labels: tuple[str, ...] | None

    @cached_property
    def _described(self) -> tuple[Kinds, Floats, Floats]:
        """Kind and outer ends of each set."""
        sets = self.sets
        sizes = np.diff(sets.start)
        low, high = np.full(len(sets), -np.inf), np.full(len(sets), np.inf)
        some = np.flatnonzero(sizes > 0)
        if some.size:
            low[some] = np.minimum.reduceat(sets.lower, sets.start[some])
            high[some] = np.maximum.reduceat(sets.upper, sets.start[some])
        kind = np.full(len(sets), Kind.BETWEEN, dtype=np.int8)
        kind[np.isneginf(low)] = Kind.BELOW
        kind[np.isposinf(high)] = Kind.ABOVE
        kind[np.isneginf(low) & np.isposinf(high)] = Kind.ANYWHERE
        kind[sizes > 1] = Kind.EITHER
        # Hidden with a probability that depends on the value.
        kind[np.diff(sets.node_start) > 0] = Kind.CHANCE
        return kind, low, high

    @cached_property
    def missing(self) -> Floats:
        """Return the share of the cells of each column of which nothing is known."""
        anywhere = self._described[0][self.index] == Kind.ANYWHERE
        return np.asarray((anywhere & (self.index != SEEN) & ~self.tied).mean(axis=0))

    def column(self, j: int) -> ShownColumn:
        """Return what is known of the cells of a column."""
        index, x = self.index[:, j], self.values[:, j]
        seen = index == SEEN
        set_kind, low, high = self._described
        kind = np.where(seen, Kind.SEEN, set_kind[index]).astype(np.int8)
        several, cells = np.unique(index[kind == Kind.EITHER], return_counts=True)
        kind[(kind == Kind.ANYWHERE) & self.tied[:, j]] = Kind.TIED
        some = self.sets.take(several.astype(np.intp))
        owner = np.repeat(np.arange(several.size), np.diff(some.start))
        return ShownColumn(
            kind,
            np.where(seen, x, low[index]),
            np.where(seen, x, high[index]),
            Ranges(some.lower, some.upper, owner, cells),
        )


def read_shown(fit: Fit) -> ShownTable | None:
    """Read the table of a fit; None where the fit does not hold it."""
    source = fit.source
    if source is None or source.X is None:
        return None
    labels = getattr(source.X, "labels", None) or getattr(source.original, "labels", None)
    labels = None if labels is None else tuple(map(str, labels))
    if isinstance(source.missingness, RowTruncation):
        # Rows are shown whole or not at all: of the table at hand nothing is hidden.
        values = seen_values(fit, None)
        if fit.transforms is not None:
            columns = [t.forward(values[:, j]) for j, t in enumerate(fit.transforms)]
            values = np.stack(columns, axis=1)
        index = np.full(values.shape, SEEN, dtype=np.int32)
        return ShownTable(values, index, whole_line(), np.zeros(values.shape, dtype=bool), labels)
    # Where the rule hides them: any hidden cell may be a lost value, where losses are modelled.
    problem = read_source(replace(fit, loss=None), None)
    return shown_of(problem, fit.gaussian.mean, fit.gaussian.standard_deviations, labels)


def shown_of(
    problem: Problem, centre: Floats, scale: Floats, labels: tuple[str, ...] | None = None
) -> ShownTable:
    """Return a table that the engine has in its units as people see it."""
    holes = problem.holes
    column = np.repeat(holes.set_column, np.diff(holes.sets.start))
    sets = replace(
        holes.sets,
        lower=centre[column] + scale[column] * holes.sets.lower,
        upper=centre[column] + scale[column] * holes.sets.upper,
    )
    values = centre + scale * np.where(problem.hidden, np.nan, problem.Y)
    return ShownTable(values, holes.index, sets, _tied(holes), labels)


def _tied(holes: Holes) -> NDArray[np.bool_]:
    """Which cells stand in an inequality of their row, or are shown or hidden by one."""
    bound = holes.inequalities
    if bound is None:
        return np.zeros(holes.shape, dtype=bool)
    known = (bound.sign != 0).astype(float)
    speaks_of = bound.V != 0.0
    speaks_of[np.arange(len(bound.owner)), bound.owner] = True
    return known @ speaks_of.astype(float) > 0.0
