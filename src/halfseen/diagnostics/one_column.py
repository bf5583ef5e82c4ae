"""One column on its own: its cells, what hides them, and how far they are from normal.

The hiding has to be known for simulations. Where a rule is stated, it hides simulated values as it hid
the real ones. Where each hidden cell tells its limit (``IntervalData``), the limits of the seen cells
are not known; their distribution is estimated by the product-limit estimator with the parts of value and
limit exchanged (the reverse Kaplan-Meier estimator): a limit is "observed" where it hid a value, and
known to lie beyond the value where it did not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.powers import ColumnCells
from halfseen.data.transforms import Transform
from halfseen.errors import InputError
from halfseen.kernels.censored_normal import cell_distances, fit_censored_normal
from halfseen.missingness.base import ColumnRule
from halfseen.missingness.resolve import SetTable, resolve, starts

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Mask = NDArray[np.bool_]
Map = Callable[[Floats], Floats]

# More distinct intervals than this are taken to be roundings of each value for itself.
MOST_BINS = 50
# How far from the seen values, in their spreads, the ends of a ``Predicate`` are looked for.
REACH = 40.0
# Squares of smaller deviations are lost in a double.
SMALLEST_SCALE = 1e-150


class Marginal(NamedTuple):
    """The normal distribution of a column, of greatest likelihood for its cells alone."""

    mean: float
    deviation: float
    log_likelihood: float
    settled: bool


class Distances(NamedTuple):
    """How far cells are from normal: Anderson and Darling's A², and Kolmogorov's D."""

    square: float
    largest: float


@dataclass(frozen=True)
class HiddenByRule:
    """Each cell is seen in a union of intervals, that of its group.

    ``lower`` and ``upper`` have shape (pieces, groups); ``group`` has an entry for each cell.
    """

    lower: Floats
    upper: Floats
    group: Integers

    @classmethod
    def of(cls, rule: ColumnRule, rows: Integers, centre: float, spread: float) -> HiddenByRule:
        """Read the rule of a column for some of its rows."""
        if rule.seen_set is None:
            assert rule.group is not None
            return cls(rule.lower[None, :], rule.upper[None, :], rule.group[rows])
        sets = resolve(rule.seen_set, centre, spread, REACH)
        return cls(sets.lower[:, None], sets.upper[:, None], np.zeros(rows.size, dtype=np.intp))

    @cached_property
    def hidden_sets(self) -> SetTable:
        """What each group hides."""
        pieces, groups = self.lower.shape
        none, no_nodes = np.empty(0), np.zeros(groups + 1, dtype=np.intp)
        ends = self.lower.T.ravel(), self.upper.T.ravel()
        shown = SetTable(starts(np.full(groups, pieces)), *ends, no_nodes, none, none, none)
        return shown.complement().without_empty()

    def cells(self, x: Floats, shown: Mask) -> ColumnCells:
        """Return the cells of a column of which some values are shown."""
        sets = self.hidden_sets
        count = np.bincount(self.group[~shown], minlength=self.lower.shape[1])
        return ColumnCells(x[shown], sets.start, sets.lower, sets.upper, count.astype(float))

    def shows(self, x: Floats) -> Mask:
        """Whether each value is shown."""
        inside = (self.lower[:, self.group] <= x) & (x <= self.upper[:, self.group])
        return np.asarray(inside.any(axis=0))

    def hide(self, x: Floats, rng: np.random.Generator) -> ColumnCells:
        """Return what is left to be seen of complete values."""
        return self.cells(x, self.shows(x))

    def moved(self, ends: Map) -> HiddenByRule:
        """Return the same on another scale, to which ``ends`` brings limits."""
        return HiddenByRule(ends(self.lower), ends(self.upper), self.group)


@dataclass(frozen=True)
class LimitLaw:
    """Limits on one side, with the probability of each; the rest of the cells have none."""

    value: Floats
    cumulative: Floats

    def draw(self, n: int, rng: np.random.Generator) -> Integers:
        """Draw positions of limits, ``value.size`` for none."""
        return np.searchsorted(self.cumulative, rng.random(n), side="right")


def product_limit(limits: Floats, others: Floats) -> LimitLaw:
    """Estimate the distribution of lower limits.

    Parameters
    ----------
    limits : array
        Those that hid a value.
    others : array
        Least values of the cells that are not hidden below a limit: their limits lie no higher.

    Notes
    -----
    From the top down: among the cells whose limit is c or less, the share that has c is that of those
    hidden at c among all cells that are hidden at c or known to lie below it. A value seen exactly
    at c says nothing about it.
    """
    value, events = np.unique(limits, return_counts=True)
    below = np.searchsorted(np.sort(limits), value, side="right")
    below = below + np.searchsorted(np.sort(others), value, side="left")
    hazard = events / below
    # P(L = c) = h(c) Π_{c' > c} (1 − h(c'))
    survival = np.cumprod((1.0 - hazard)[::-1])[::-1]
    probability = hazard * np.append(survival[1:], 1.0)
    return LimitLaw(value, np.cumsum(probability))


@dataclass(frozen=True)
class HiddenByLimits:
    """Limits below and above, drawn for each cell, and intervals in which values were left unresolved.

    ``bins`` has shape (k, 2); ``share`` is how often a value in each is hidden. Where there are
    many, ``rounded`` is the share of cells that are given an interval, as wide as one of the bins.
    """

    below: LimitLaw
    above: LimitLaw
    bins: Floats
    share: Floats
    rounded: float

    @classmethod
    def of(cls, lower: Floats, upper: Floats) -> HiddenByLimits:
        """Read the ends of the cells of a column, without those of which nothing is known."""
        under, over = np.isneginf(lower), np.isposinf(upper)
        inside = ~under & ~over
        above = product_limit(-lower[over], -upper[~over])
        between = inside & (lower < upper)
        bins = np.unique(np.stack([lower[between], upper[between]], axis=1), axis=0)
        rounded, share = 0.0, np.empty(0)
        if len(bins) > MOST_BINS:
            rounded = float(between.sum() / max(inside.sum(), 1))
        else:
            share = np.array([_hidden_share(lower, upper, a, b) for a, b in bins])
        below = product_limit(upper[under], lower[~under])
        return cls(below, LimitLaw(-above.value, above.cumulative), bins, share, rounded)

    def hide(self, x: Floats, rng: np.random.Generator) -> ColumnCells:
        """Return what is left to be seen of complete values."""
        sizes = self.below.value.size, self.above.value.size
        low, high = self.below.draw(x.size, rng), self.above.draw(x.size, rng)
        limit = np.append(self.below.value, -np.inf)[low]
        which = np.full(x.size, -1)
        under = x < limit
        which[under] = low[under]
        over = ~under & (x > np.append(self.above.value, np.inf)[high])
        which[over] = sizes[0] + high[over]
        lower = np.concatenate([np.full(sizes[0], -np.inf), self.above.value])
        upper = np.concatenate([self.below.value, np.full(sizes[1], np.inf)])
        if self.rounded > 0.0:
            return self._round(x, which, lower, upper, rng)
        coins = rng.random(x.size) if len(self.bins) else x
        for k, (a, b) in enumerate(self.bins):
            which[(which < 0) & (x > a) & (x < b) & (coins < self.share[k])] = lower.size + k
        if len(self.bins):
            lower = np.concatenate([lower, self.bins[:, 0]])
            upper = np.concatenate([upper, self.bins[:, 1]])
        return _gathered(x, which, lower, upper)

    def _round(
        self, x: Floats, which: NDArray[np.int_], lower: Floats, upper: Floats,
        rng: np.random.Generator,
    ) -> ColumnCells:  # fmt: skip
        chosen = np.flatnonzero((which < 0) & (rng.random(x.size) < self.rounded))
        width = rng.choice(self.bins[:, 1] - self.bins[:, 0], chosen.size)
        left = x[chosen] - width * rng.random(chosen.size)
        # In the order in which the sets of the real column stand.
        order = np.argsort(left)
        chosen, left, width = chosen[order], left[order], width[order]
        which[chosen] = lower.size + np.arange(chosen.size)
        return _gathered(
            x, which, np.concatenate([lower, left]), np.concatenate([upper, left + width])
        )

    def moved(self, ends: Map) -> HiddenByLimits:
        """Return the same on another scale."""
        return replace(
            self,
            below=replace(self.below, value=ends(self.below.value)),
            above=replace(self.above, value=ends(self.above.value)),
            bins=ends(self.bins),
        )


def _hidden_share(lower: Floats, upper: Floats, a: float, b: float) -> float:
    """Share of the cells in (a, b) that are hidden there."""
    within = (lower >= a) & (upper <= b)
    return float(((lower == a) & (upper == b)).sum() / within.sum())


def _gathered(x: Floats, which: NDArray[np.int_], lower: Floats, upper: Floats) -> ColumnCells:
    count = np.bincount(which[which >= 0], minlength=lower.size).astype(float)
    return ColumnCells(x[which < 0], np.arange(lower.size + 1), lower, upper, count)


@dataclass(frozen=True)
class LoneColumn:
    """The cells of a column of which something is known, and what hides them."""

    cells: ColumnCells
    hiding: HiddenByRule | HiddenByLimits

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.cells.values.size + self.cells.hidden

    def on(self, transform: Transform) -> LoneColumn:
        """Return the column on the scale of a transform."""
        return self._moved(transform.forward, transform.end)

    def standardised(self) -> tuple[LoneColumn, float, float]:
        """Return the column in units of what is known of it, with their centre and scale."""
        ends = np.concatenate([self.cells.values, self.cells.lower, self.cells.upper])
        known = ends[np.isfinite(ends)] if self.cells.values.size < 2 else self.cells.values
        centre, scale = float(known.mean()), float(known.std())
        if not scale > SMALLEST_SCALE:
            raise InputError(
                f"the values of a column differ by less than {SMALLEST_SCALE:g}, too little to work "
                "with. Change its unit."
            )

        def units(x: Floats) -> Floats:
            return (x - centre) / scale

        return self._moved(units, units), centre, scale

    def _moved(self, values: Map, ends: Map) -> LoneColumn:
        x, lower, upper = self.cells.values, self.cells.lower, self.cells.upper
        cells = replace(self.cells, values=values(x), lower=ends(lower), upper=ends(upper))
        return LoneColumn(cells, self.hiding.moved(ends))


def fit_cells(cells: ColumnCells, mean: float = 0.0, deviation: float = 1.0) -> Marginal:
    """Fit a normal distribution to cells in units of their column, from a start."""
    x, sets = cells.values, (cells.start, cells.lower, cells.upper, cells.count)
    sums = np.array([x.size, x.sum(), x @ x])
    return Marginal(*fit_censored_normal(sums, *sets, mean, deviation))


def distances(cells: ColumnCells, marginal: Marginal, phases: Floats) -> Distances:
    """Return how far the residuals of cells are from normal, averaged over phases of their uniforms."""
    sets = cells.start, cells.lower, cells.upper, cells.count
    return Distances(
        *cell_distances(cells.values, *sets, marginal.mean, marginal.deviation, phases)
    )


def spread_ties(values: Floats) -> Floats:
    """Spread values that were rounded to the same number over the interval they were rounded from.

    Half the distance to the neighbour on each side: a grid becomes a continuum again, also where its
    step changes (two digits at 0.9, one at 2), while a pile in the midst of single values stays a pile.
    """
    distinct, place, count = np.unique(values, return_inverse=True, return_counts=True)
    if distinct.size < 3 or distinct.size == values.size:
        return values
    gap = np.diff(distinct)
    # At the ends, as much as on the other side; positive values stay positive.
    most = np.where(distinct != 0.0, 0.5 * np.abs(distinct), np.inf)
    left = np.minimum(0.5 * np.insert(gap, 0, gap[0]), most)
    right = np.minimum(0.5 * np.append(gap, gap[-1]), most)
    order = np.argsort(place, kind="stable")
    rank = np.empty(values.size)
    rank[order] = np.arange(values.size) - np.repeat(np.cumsum(count) - count, count)
    share = (rank + 0.5) / count[place]
    spread = values - left[place] + (left + right)[place] * share
    return np.where(count[place] > 1, spread, values)
