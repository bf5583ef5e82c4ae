"""The table behind a fit, on the scale that was modelled: what is seen, and where the rest can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.missingness.holes import SEEN as NO_SET
from halfseen.missingness.holes import Holes, whole_line
from halfseen.missingness.resolve import SetTable
from halfseen.missingness.truncation import RowTruncation
from halfseen.solvers.inference.imputation import read_source, seen_values

if TYPE_CHECKING:
    from halfseen.results import Fit

Floats = NDArray[np.float64]
Kinds = NDArray[np.int8]

# What is known of a cell, and the letter that stands for it on the page.
SEEN, BELOW, ABOVE, BETWEEN, EITHER, ANYWHERE, TIED = range(7)
LETTERS = np.array(list("sbaient"))
WORDS = {
    BELOW: "below a limit",
    ABOVE: "above a limit",
    BETWEEN: "between two limits",
    EITHER: "in one of several ranges",
    ANYWHERE: "anywhere",
    TIED: "where the rule and other columns allow",
}


class Pieces(NamedTuple):
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
class Cells:
    """A table on the modelled scale.

    Attributes
    ----------
    values : array of shape (n, d)
        NaN where hidden.
    index : integer array of shape (n, d)
        The set that each cell lies in; negative where it is seen.
    sets : SetTable
        In the units of ``values``.
    set_kind : int8 array
        What a set says: BELOW, ABOVE, BETWEEN, EITHER or ANYWHERE.
    tied : boolean array of shape (n, d)
        Where a linear inequality ties the cell to other columns: it stands in one, or is hidden by one.
    labels : tuple of str or None
        Names of the rows.
    """

    values: Floats
    index: NDArray[np.int32]
    sets: SetTable
    set_kind: Kinds
    set_lower: Floats
    set_upper: Floats
    tied: NDArray[np.bool_]
    labels: tuple[str, ...] | None

    def first(self, columns: int) -> Cells:
        """Return the first columns."""
        return replace(
            self,
            values=self.values[:, :columns],
            index=self.index[:, :columns],
            tied=self.tied[:, :columns],
        )

    def kind(self, j: int) -> Kinds:
        """Return what is known of each cell of a column."""
        index = self.index[:, j]
        kind = np.where(index == NO_SET, SEEN, self.set_kind[index]).astype(np.int8)
        kind[(kind == ANYWHERE) & self.tied[:, j]] = TIED
        return kind

    def lower(self, j: int) -> Floats:
        """Least value of each cell; its value where it is seen."""
        index = self.index[:, j]
        return np.where(index == NO_SET, self.values[:, j], self.set_lower[index])

    def upper(self, j: int) -> Floats:
        """Largest value of each cell; its value where it is seen."""
        index = self.index[:, j]
        return np.where(index == NO_SET, self.values[:, j], self.set_upper[index])

    def seen(self, j: int) -> Floats:
        """Return the seen values of a column."""
        return self.values[self.index[:, j] == NO_SET, j]

    def pieces(self, j: int) -> Pieces:
        """Return the ranges of the cells of a column that may lie in one of several."""
        index = self.index[:, j]
        chosen = index[(index != NO_SET) & (self.set_kind[index] == EITHER)]
        own, cells = np.unique(chosen, return_counts=True)
        some = self.sets.take(own.astype(np.intp))
        owner = np.repeat(np.arange(own.size), np.diff(some.start))
        return Pieces(some.lower, some.upper, owner, cells)


def read_cells(fit: Fit) -> Cells | None:
    """Read the table of a fit; None where the fit does not hold it."""
    source = fit.source
    if source is None or source.X is None:
        return None
    labels = getattr(source.X, "labels", None) or getattr(source.original, "labels", None)
    labels = None if labels is None else tuple(map(str, labels))
    if isinstance(source.missingness, RowTruncation):
        # Rows are shown whole or not at all: of the table at hand nothing is hidden.
        values = _modelled(fit, seen_values(fit, None))
        index = np.full(values.shape, NO_SET, dtype=np.int32)
        free = np.zeros(values.shape, dtype=bool)
        return Cells(values, index, whole_line(), *_describe(whole_line()), free, labels)
    # Where the rule hides them: any hidden cell may be a lost value, where losses are modelled.
    problem = read_source(replace(fit, loss=None), None)
    mean, scale = fit.gaussian.mean, fit.gaussian.standard_deviations
    holes = problem.holes
    column = np.repeat(holes.set_column, np.diff(holes.sets.start))
    sets = replace(
        holes.sets,
        lower=mean[column] + scale[column] * holes.sets.lower,
        upper=mean[column] + scale[column] * holes.sets.upper,
    )
    return Cells(
        mean + scale * np.where(problem.hidden, np.nan, problem.Y),
        holes.index,
        sets,
        *_describe(sets),
        _tied(holes),
        labels,
    )


def _tied(holes: Holes) -> NDArray[np.bool_]:
    """Which cells stand in an inequality of their row, or are shown or hidden by one."""
    bound = holes.inequalities
    if bound is None:
        return np.zeros(holes.shape, dtype=bool)
    known = (bound.sign != 0).astype(float)
    speaks_of = bound.V != 0.0
    speaks_of[np.arange(len(bound.owner)), bound.owner] = True
    return known @ speaks_of.astype(float) > 0.0


def _modelled(fit: Fit, values: Floats) -> Floats:
    if fit.transforms is None:
        return values
    columns = [t.forward(values[:, j]) for j, t in enumerate(fit.transforms)]
    return np.stack(columns, axis=1)


def _describe(sets: SetTable) -> tuple[Kinds, Floats, Floats]:
    """Kind and outer ends of each set."""
    sizes = np.diff(sets.start)
    low, high = np.full(len(sets), -np.inf), np.full(len(sets), np.inf)
    some = np.flatnonzero(sizes > 0)
    if some.size:
        low[some] = np.minimum.reduceat(sets.lower, sets.start[some])
        high[some] = np.maximum.reduceat(sets.upper, sets.start[some])
    kind = np.full(len(sets), BETWEEN, dtype=np.int8)
    kind[np.isneginf(low)] = BELOW
    kind[np.isposinf(high)] = ABOVE
    kind[np.isneginf(low) & np.isposinf(high)] = ANYWHERE
    kind[sizes > 1] = EITHER
    return kind, low, high
