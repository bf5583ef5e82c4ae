"""One column on its own: its cells in units of their spread, and the posterior of mean and deviation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from halfseen.data.transforms import Transform
from halfseen.diagnostics.one_column import HiddenByLimits, HiddenByRule, LoneColumn, fit_cells
from halfseen.errors import InputError
from halfseen.kernels.posterior import lay_grid, mass_below, next_below
from halfseen.kernels.signed_root import FEWEST_SEEN, highest_at

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# Half-lines with more ends than these are gathered: nearly the same limits become their mean.
MOST_SETS = 2048
# Ends of the search for a limit, in deviations of the column; a limit beyond has no end.
SEARCH = (4.0, 2.0**24)
# Limits are found to this share of a deviation.
CLOSE = 1e-9


class Number(NamedTuple):
    """A number of a column, μ + tσ + bσ²/2 on the scale of the model."""

    tilt: float = 0.0
    bend: float = 0.0

    def at(self, mean: float, deviation: float) -> float:
        """Return its value."""
        return mean + self.tilt * deviation + 0.5 * self.bend * deviation**2


class Windows(NamedTuple):
    """Where cells are seen: limits, and which each cell has; rows of places where limits are drawn."""

    low: Floats
    high: Floats
    below: Integers
    above: Integers


@dataclass(frozen=True, eq=False)
class Lone:
    """A column on its own, in units of ``centre`` and ``scale`` on the scale of the model.

    Attributes
    ----------
    sums : array of 3
        Number, mean and sum of squares about the mean of the seen values.
    lower, upper, count : arrays
        Hidden cells, by interval.
    hiding : HiddenByRule or HiddenByLimits
    size : int
        Cells of which something is known.
    mean, deviation : float
        The likeliest.
    """

    centre: float
    scale: float
    sums: Floats
    lower: Floats
    upper: Floats
    count: Floats
    hiding: HiddenByRule | HiddenByLimits
    size: int
    mean: float
    deviation: float

    @classmethod
    def of(cls, column: LoneColumn, transform: Transform) -> Lone | str:
        """Read a column on the scale of a transform; a word where no limits hold for it."""
        few = _too_few(column)
        if few:
            return few
        try:
            moved, centre, scale = column.on(transform).standardised()
        except InputError:
            return "values that hardly differ"
        cells = moved.cells
        kept = cells.count > 0.0
        if (np.diff(cells.start)[kept] != 1).any():
            return "hidden in one of several ranges"
        first = cells.start[:-1][kept]
        lower, upper, count = _gathered(cells.lower[first], cells.upper[first], cells.count[kept])
        found = fit_cells(cells)
        if not found.settled:
            return "distribution not determined"
        x = cells.values
        middle = float(x.mean()) if x.size else 0.0
        sums = np.array([x.size, middle, ((x - middle) ** 2).sum()])
        return cls(
            centre, scale, sums, lower, upper, count, moved.hiding, moved.size, found.mean,
            found.deviation,
        )  # fmt: skip

    @property
    def cells(self) -> tuple[Floats, Floats, Floats, Floats]:
        """What kernels are given."""
        return self.sums, self.lower, self.upper, self.count

    @property
    def hidden_share(self) -> float:
        """Share of the cells that are known by a limit only."""
        one_sided = np.isneginf(self.lower) | np.isposinf(self.upper)
        return float(self.count[one_sided].sum() / self.size)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is hidden."""
        return self.count.size == 0

    def number(self, number: Number) -> Number:
        """Return a number in the units of the column."""
        return Number(number.tilt, number.bend * self.scale)

    def estimate(self, number: Number) -> float:
        """Return the likeliest value of a number, on the scale of the model."""
        return self.back(self.number(number).at(self.mean, self.deviation))

    def back(self, at: float) -> float:
        """Return a place in the units of the model."""
        return self.centre + self.scale * at

    def fall(self, number: Number, at: float) -> float:
        """Return how far twice the log-likelihood falls where a number is held fixed."""
        own, place = self.number(number), (at - self.centre) / self.scale
        top = highest_at(own.at(self.mean, self.deviation), *own, *self.cells, self.deviation)[0]
        return max(2.0 * (top - highest_at(place, *own, *self.cells, self.deviation)[0]), 0.0)

    def windows(self, draws: int, rng: np.random.Generator) -> Windows | None:
        """Return limits that hide simulated columns as this one was; None where it is not limits."""
        hiding = self.hiding
        if isinstance(hiding, HiddenByRule):
            if len(hiding.lower) != 1:
                return None
            return Windows(hiding.lower[0], hiding.upper[0], hiding.group[None], hiding.group[None])
        if len(hiding.bins) or hiding.rounded > 0.0:
            return None
        low, high = np.append(hiding.below.value, -np.inf), np.append(hiding.above.value, np.inf)
        places = draws * self.size
        below, above = (law.draw(places, rng) for law in (hiding.below, hiding.above))
        return Windows(low, high, below.reshape(draws, -1), above.reshape(draws, -1))

    @cached_property
    def posterior(self) -> Posterior:
        """Mean and deviation, given the cells."""
        grid = lay_grid(*self.cells, self.mean, self.deviation)
        return Posterior(self, *grid)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Mean and deviation given the cells of a column, under the prior σ^−(1+h) dμ dσ.

    h is the share of the cells that only a limit is known of: zero gives the limits of complete samples,
    one would be the prior of a scale whose origin is known, as a limit's is. So chosen, one-sided limits
    hold what they promise where most values are hidden, too (``limits_coverage`` in the benchmarks).
    """

    column: Lone
    deviation: Floats
    log_weight: Floats
    first: Floats
    step: Floats
    mass: Floats
    density: Floats

    @cached_property
    def weight(self) -> Floats:
        """Weight of each deviation."""
        log = self.log_weight - self.column.hidden_share * np.log(self.deviation)
        weight = np.exp(log - log.max())
        return np.asarray(weight / weight.sum())

    def below(self, number: Number, at: float) -> float:
        """Return the probability that a number is below a place, on the scale of the model."""
        own, place = self.column.number(number), (at - self.column.centre) / self.column.scale
        mean = place - own.tilt * self.deviation - 0.5 * own.bend * self.deviation**2
        return float(self._below(mean))

    def next_below(self, at: float, values: int, side: int = 1) -> float:
        """Return the probability that all of the next values are below a place, or above (side −1)."""
        place = (at - self.column.centre) / self.column.scale
        grid = self.first, self.step, self.density
        return float(next_below(place, values, side, self.deviation, self.weight, *grid))

    def quantile(self, number: Number, share: float) -> float:
        """Return the place below which a number is with a probability, on the scale of the model."""
        start = self.column.estimate(number)
        return self._where(lambda at: self.below(number, at) - share, start)

    def next_limit(self, share: float, values: int, side: int) -> float:
        """Return the limit that all of the next values are below (side 1) or above (side −1)."""
        start = self.column.back(self.column.mean)
        return self._where(lambda at: side * (self.next_below(at, values, side) - share), start)

    def mean_quantile(self, mean_of: Callable[[Floats, Floats], Floats], share: float) -> float:
        """Return a quantile of the mean on another scale, which grows with μ.

        ``mean_of(mean, deviation)`` is that mean, for arrays on the scale of the model.
        """
        centre, scale = self.column.centre, self.column.scale
        places = self.first[:, None] + self.step[:, None] * np.arange(self.mass.shape[1])
        deviation = np.broadcast_to(scale * self.deviation[:, None], places.shape)
        means = mean_of(centre + scale * places, deviation)

        def below(at: float) -> float:
            # The place of the mean at each deviation, between those of the grid.
            inside = [np.interp(at, row, place) for row, place in zip(means, places, strict=True)]
            return float(self._below(np.array(inside)))

        low, high = float(means.min()), float(means.max())
        return float(brentq(lambda at: below(at) - share, low, high, xtol=CLOSE * (high - low)))

    def _below(self, mean: Floats) -> float:
        return mass_below(mean, self.weight, self.first, self.step, self.mass, self.density)

    def _where(self, rising: Callable[[float], float], start: float) -> float:
        """Return where a rising function is zero; infinite where it is nowhere near."""
        unit = self.column.scale
        low = high = start
        reach, far = (size * unit for size in SEARCH)
        while rising(low) > 0.0:
            low, reach = low - reach, 2.0 * reach
            if reach > far:
                return -np.inf
        reach = SEARCH[0] * unit
        while rising(high) < 0.0:
            high, reach = high + reach, 2.0 * reach
            if reach > far:
                return np.inf
        return low if low == high else float(brentq(rising, low, high, xtol=CLOSE * unit))


def _too_few(column: LoneColumn) -> str:
    """Say so where less is known than limits can be made of."""
    cells = column.cells
    bounded = np.isfinite(cells.lower) & np.isfinite(cells.upper)
    held = np.repeat(cells.count > 0.0, np.diff(cells.start))
    known = np.unique(cells.values).size + int((bounded & held).sum())
    if known >= FEWEST_SEEN:
        return ""
    if cells.values.size == 0:
        return "every value is hidden" if cells.hidden else "no cells"
    return f"fewer than {FEWEST_SEEN} different values seen"


def _gathered(lower: Floats, upper: Floats, count: Floats) -> tuple[Floats, Floats, Floats]:
    """Put half-lines with nearly the same end together, where there are many."""
    if lower.size <= MOST_SETS:
        return lower, upper, count
    parts = []
    left, right = np.isneginf(lower), np.isposinf(upper)
    for half, end in ((left, upper), (right, lower)):
        bins = np.linspace(end[half].min(initial=0.0), end[half].max(initial=0.0), MOST_SETS)
        place = np.searchsorted(bins, end[half])
        total = np.bincount(place, weights=count[half])
        used = total > 0.0
        at = np.bincount(place, weights=count[half] * end[half])[used] / total[used]
        open_end = np.full(at.size, np.inf)
        ends = (-open_end, at) if half is left else (at, open_end)
        parts.append((*ends, total[used]))
    rest = ~left & ~right
    parts.append((lower[rest], upper[rest], count[rest]))
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))  # type: ignore[return-value]
