"""One column on its own: its cells in units of their spread, and what they say of it by themselves.

The posterior of mean and deviation gives limits of any number. A calibrated root is the signed root of
the likelihood, held against simulated columns: a limit is where the root is as far from its mean, in its
own deviations, as the normal quantile says; mean and deviation are those in columns simulated at the
likeliest parameters, the limit being the truth. All places share their random numbers, so that both are
a smooth function of the limit. What people know stands beside them: the Kaplan–Meier mean and regression
on order statistics, below limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit

from halfseen.data.transforms import Transform
from halfseen.diagnostics.one_column import HiddenByLimits, HiddenByRule, LoneColumn, fit_cells
from halfseen.errors import InputError
from halfseen.kernels.posterior import lay_grid, mass_below, next_below
from halfseen.kernels.signed_root import FEWEST_SEEN, highest_at, signed_root, simulated_roots
from halfseen.seeds import Purpose, keyed_generator

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
# Half-lines with more ends than these are gathered: nearly the same limits become their mean.
MOST_SETS = 2048
# Ends of the search for a limit, in deviations of the column; a limit beyond has no end.
SEARCH = (4.0, 2.0**24)
# Limits are found to this share of a deviation.
CLOSE = 1e-9
# Beyond so many cells simulations say no more than the posterior.
MOST_CELLS = 500
# How far an end is looked for, and how well it is found: in distances of the start from the estimate.
FARTHEST, CLOSE_AT_ROOT = 2.0**12, 1e-3
# Fewer roots than this share of the simulated columns say nothing.
FEWEST_USABLE = 0.5


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


class Familiar(NamedTuple):
    """A mean by another method, its standard error and standard deviation; NaN where it has none."""

    mean: float
    error: float
    deviation: float
    cells: int

    def limit(self, level: float) -> float:
        """Return mean + t · error; the lower limit at a level below a half."""
        return self.mean + float(stdtrit(self.cells - 1.0, level)) * self.error


def below_limits(column: LoneColumn, least: float) -> tuple[Floats, Floats] | None:
    """Return seen values, and limits of hidden ones; None where they are not all below limits.

    ``least`` is the least value that there is: ``<0.5`` of a concentration is from 0 to 0.5.
    """
    cells = column.cells
    if (np.diff(cells.start)[cells.count > 0.0] != 1).any():
        return None
    first, count = cells.start[:-1][cells.count > 0.0], cells.count[cells.count > 0.0]
    lower, upper = cells.lower[first], cells.upper[first]
    if (lower > least).any() or np.isposinf(upper).any() or cells.values.size == 0:
        return None
    return cells.values, np.repeat(upper, count.astype(np.intp))


def kaplan_meier(seen: Floats, limits: Floats) -> Familiar:
    """Return the product-limit mean of values below limits (Kaplan and Meier 1958), with its error.

    The curve is SciPy's, of values turned around. Where the lowest limit lies below every value, what it
    hid counts as seen there (Efron). The error is Greenwood's, times √(m/(m − 1)) for m seen values.
    """
    # It takes half a second to import, and most runs do not ask for it.
    from scipy.stats import CensoredData, ecdf

    turned, hidden = -seen, -limits
    last = float(np.concatenate([turned, hidden]).max())
    events = np.concatenate([turned, hidden[hidden == last]])
    survival = ecdf(CensoredData(uncensored=events, right=hidden[hidden < last])).sf
    at, jumps = survival.quantiles, -np.diff(survival.probabilities, prepend=1.0)
    mean = float(at @ jumps)
    deviation = float(np.sqrt((at - mean) ** 2 @ jumps))
    # ∫ S from each step to the last.
    area = np.append(np.cumsum((np.diff(at) * survival.probabilities[:-1])[::-1])[::-1], 0.0)
    cells = np.sort(np.concatenate([turned, hidden]))
    at_risk = cells.size - np.searchsorted(cells, at, side="left")
    died = np.searchsorted(np.sort(events), at, side="right")
    died = np.diff(died, prepend=0)
    some = area > 0.0
    square = (area**2 * died)[some] / (at_risk * (at_risk - died))[some]
    m = seen.size
    error = float(np.sqrt(square.sum() * m / (m - 1.0)))
    return Familiar(-mean, error, deviation, cells.size)


def order_statistics(seen: Floats, limits: Floats, transform: Transform) -> Familiar | None:
    """Return mean and deviation by regression on order statistics (Helsel and Cohn 1988).

    Seen values, on the scale of the model, are regressed on normal quantiles of their plotting
    positions; hidden ones are put on the line. None where the line cannot be drawn.
    """
    if np.unique(seen).size < 2:
        return None
    seen = np.sort(seen)
    ends, held = np.unique(limits, return_counts=True)
    beyond = _exceedances(seen, limits, ends)
    place = np.searchsorted(ends, seen, side="right")
    first = np.searchsorted(place, place, side="left")
    many = np.searchsorted(place, place, side="right") - first
    rank = (np.arange(1, seen.size + 1) - first) / (many + 1.0)
    position = 1.0 - beyond[place] + rank * (beyond[place] - beyond[place + 1])
    slope, start = np.polyfit(ndtri(position), transform.forward(seen), 1)
    share = [np.arange(1, m + 1) / (m + 1.0) * (1.0 - beyond[k + 1]) for k, m in enumerate(held)]
    below = np.concatenate([*share, np.empty(0)])
    filled = np.concatenate([seen, transform.inverse(start + slope * ndtri(below))])
    if not np.isfinite(filled).all():
        return None
    return Familiar(float(filled.mean()), np.nan, float(filled.std(ddof=1)), filled.size)


def _exceedances(seen: Floats, limits: Floats, ends: Floats) -> Floats:
    """Return the probability to lie above nothing, above each limit, and above everything.

    ``seen`` and ``ends`` grow.
    """
    beyond = np.zeros(ends.size + 2)
    beyond[0] = 1.0
    between = np.bincount(np.searchsorted(ends, seen, side="right"), minlength=ends.size + 1)
    below = np.searchsorted(seen, ends, side="left")
    below = below + np.searchsorted(np.sort(limits), ends, side="right")
    for k in range(ends.size, 0, -1):
        share = between[k] / (between[k] + below[k - 1])
        beyond[k] = beyond[k + 1] + share * (1.0 - beyond[k + 1])
    return beyond


@dataclass(frozen=True, eq=False)
class CalibratedRoot:
    """The signed root of one number of a column.

    Attributes
    ----------
    column : Lone
    number : Number
    draws : int
        Simulated columns.
    seed : int
    """

    column: Lone
    number: Number
    draws: int
    seed: int

    @cached_property
    def _simulated(self) -> tuple[NDArray[np.float64], Windows | None]:
        rng = keyed_generator(self.seed, Purpose.LIMITS)
        scores = rng.standard_normal((self.draws, self.column.size))
        return scores, self.column.windows(self.draws, rng)

    @property
    def is_known(self) -> bool:
        """Whether columns can be simulated and hidden as this one was."""
        return self.column.size <= MOST_CELLS and self._simulated[1] is not None

    def distance(self, at: float) -> float:
        """Return how far the root at a place is from its mean, in its deviations; it falls with ``at``.

        NaN where too few of the simulated columns have a root.
        """
        column, own = self.column, self.column.number(self.number)
        place = (at - column.centre) / column.scale
        root, sigma = signed_root(place, *own, *column.cells, column.mean, column.deviation)
        scores, windows = self._simulated
        assert windows is not None
        low, high, below, above = windows
        roots = simulated_roots(place, *own, sigma, scores, below, above, low, high)
        roots = roots[np.isfinite(roots)]
        if roots.size < FEWEST_USABLE * self.draws:
            return np.nan
        return float((root - roots.mean()) / roots.std())

    def limit(self, level: float, side: int, start: float) -> float:
        """Return the lower (−1) or the upper (1) limit at a level; NaN where it is not found.

        ``start`` is a place where it may be.
        """
        centre, wanted = self.column.estimate(self.number), float(ndtri(level))

        def beyond(at: float) -> float:
            return -side * self.distance(at) - wanted

        reach = side * max(side * (start - centre), 1e-3 * self.column.scale)
        inside, outside = centre, centre + reach
        for _ in range(int(np.log2(FARTHEST))):
            value = beyond(outside)
            if np.isnan(value):
                return np.nan
            if value >= 0.0:
                break
            inside, outside = outside, outside + (outside - inside) * 2.0
        else:
            return side * np.inf
        if not beyond(inside) < 0.0:
            return inside
        return float(brentq(beyond, inside, outside, xtol=CLOSE_AT_ROOT * abs(reach)))
