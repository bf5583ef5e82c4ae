"""What a fit says in the units of the table: medians, means and quantiles of each column.

Quantiles go through an increasing transform unharmed, so their intervals are those of the model's
scale, taken back end by end. Means do not: the mean of a log-normal column is exp(μ + σ²/2), and in
general an integral. Where the power of a scale was learned, it may be another one: intervals are wider.

An estimate at a power that was learned comes in two steps. Its variance is that with the power known,
and that of what the power's own error moves. There is no covariance between the two: what a column says
of its power, with its mean and deviation at their best, has none with their score in the column, and the
score of the whole table is that on average, given the column. So the likelihood of a column in all three
parameters says how much longer an interval is than with the power known. The interval that all columns
gave is made longer by this ratio; that what a power moves may be somewhat less where other columns say
where hidden values are is left out.

With a power held fixed, the likelihood is taken for a parabola in (mean, log deviation), and numbers are
followed along its contour as they are: a mean in original units is far from linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri, ndtri, stdtrit

from halfseen.checks import is_iterable, share
from halfseen.data.powers import LARGEST_POWER, LEAST_POWER, LearnedPower
from halfseen.data.transforms import BoxCox, Identity, Log, Transform
from halfseen.errors import InputError
from halfseen.kernels.quadrature import NODES_48
from halfseen.kernels.restricted import restricted_nodes
from halfseen.solvers.inference.confidence import IntervalFinder, interval_finder
from halfseen.solvers.inference.intervals import Limits, Location
from halfseen.theta import places

if TYPE_CHECKING:
    from halfseen.results import Fit

Floats = NDArray[np.float64]
# A number of a column: of its power, and of means and deviations on the scale of that.
OfPower = Callable[[float, Floats, Floats], Floats]

# Steps of differences for the delta method, in units of σ.
STEP = 1e-4
# Nodes over a standard normal distribution, for many means at once: those of logarithms as wide as six
# have their mass there. A way back that is smooth is integrated to rounding, any other to some digits.
GRID = np.linspace(-8.0, 14.0, 221)
GRID_WEIGHTS = np.exp(-0.5 * GRID**2) * ((GRID[1] - GRID[0]) / math.sqrt(2.0 * math.pi))
# Directions around an estimate in which a number is looked at: the largest is missed by less than
# 1 − cos(π/48), a fifth of a percent of a distance.
DIRECTIONS = 48
# Fewer rows than these know next to nothing of a deviation, let alone of a power.
FEWEST_ROWS = 4.0


@dataclass(frozen=True, eq=False)
class OriginalScale:
    """Each column in the units of the table.

    Attributes
    ----------
    names : tuple of str
    level : float
        Of the intervals.
    median, median_lower, median_upper : arrays of shape (d,)
        For columns that were fitted as logarithms this is the geometric mean.
    mean, mean_lower, mean_upper : arrays of shape (d,)
        Arithmetic mean. Intervals are NaN where they are not known.
    geometric_deviation : array of shape (d,)
        exp(σ) of columns that were fitted as logarithms, NaN for others.
    probabilities : tuple of float
    quantiles, quantiles_lower, quantiles_upper : arrays of shape (d, number of probabilities)
    """

    names: tuple[str, ...]
    level: float
    median: Floats
    median_lower: Floats
    median_upper: Floats
    mean: Floats
    mean_lower: Floats
    mean_upper: Floats
    geometric_deviation: Floats
    probabilities: tuple[float, ...]
    quantiles: Floats
    quantiles_lower: Floats
    quantiles_upper: Floats

    def labelled(self) -> OriginalScale:
        """Return the same with pandas labels on every vector and table."""
        import pandas as pd

        index, columns = pd.Index(self.names), pd.Index(self.probabilities)
        labelled: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                one = value.ndim == 1
                labelled[name] = (
                    pd.Series(value, index=index)
                    if one
                    else pd.DataFrame(value, index=index, columns=columns)
                )
        return replace(self, **labelled)


class _Item(NamedTuple):
    """One number of a column: a function of (μ, σ) that is nearly normal, and the way back from it.

    Without a function it is the mean of the model's scale. ``with_power`` is the same number, on the
    same scale, if the power were another one.
    """

    of: Callable[[float, float], float] | None
    back: Callable[[Floats], Floats]
    with_power: OfPower


def original_scale(
    fit: Fit, level: float, probabilities: Sequence[float], kind: str
) -> OriginalScale:
    """Return medians, means and quantiles in original units; see ``Fit.original_scale``."""
    level = share("level", level)
    if not is_iterable(probabilities) or isinstance(probabilities, str):
        raise InputError(
            f"probabilities must be a list, such as [0.05, 0.95]; got {probabilities!r}."
        )
    wanted = tuple(share("each of the probabilities", p, "0.05") for p in probabilities)
    if not wanted:
        raise InputError("probabilities must name at least one quantile, such as 0.5; got none.")
    finder = interval_finder(fit, level, kind)
    heavy = not np.isinf(fit.degrees)
    quantile = partial(stdtrit, fit.degrees) if heavy else ndtri
    z = np.asarray(quantile(np.array(wanted)), dtype=np.float64)
    transforms = fit.transforms or (Identity(),) * len(fit.names)
    items = [_items(transform, z, heavy) for transform in transforms]
    V = joint_variances(fit)
    value, low, high = np.moveaxis(
        np.array([_column(fit, j, items[j], V[j], finder) for j in range(len(items))]), 2, 0
    )
    sigma = fit.gaussian.standard_deviations
    spreads = zip(transforms, sigma, strict=True)
    geometric = [float(t.inverse(s)) if isinstance(t, Log) else np.nan for t, s in spreads]
    return OriginalScale(
        fit.names, level, value[:, 0], low[:, 0], high[:, 0], value[:, 1], low[:, 1], high[:, 1],
        np.array(geometric), wanted, value[:, 2:], low[:, 2:], high[:, 2:],
    )  # fmt: skip


def _items(transform: Transform, z: Floats, heavy: bool) -> list[_Item]:
    """Return the median, the mean and the quantiles of a column.

    With ``heavy`` tails there is no mean on curved scales: that of the exponential of a t distribution
    is infinite.
    """

    def at(z: float) -> OfPower:
        return partial(_quantile_with_power, transform, z)

    median = _Item(None, transform.inverse, at(0.0))
    if isinstance(transform, Identity):
        mean = median
    elif heavy:
        mean = _Item(
            lambda mu, sigma: math.nan, np.asarray, lambda *place: np.full_like(place[1], np.nan)
        )
    elif transform.least == 0.0:
        # Of something positive: on the log scale.
        mean = _Item(
            lambda mu, sigma: _log(mean_in_units(transform, mu, sigma)),
            np.exp,
            lambda *place: np.log(_mean_with_power(transform, *place)),
        )
    else:
        mean = _Item(
            lambda mu, sigma: mean_in_units(transform, mu, sigma),
            np.asarray,
            partial(_mean_with_power, transform),
        )
    quantiles = [
        median if z == 0.0 else _Item(partial(_quantile, z), transform.inverse, at(z))
        for z in z.tolist()
    ]
    return [median, mean, *quantiles]


def _quantile_with_power(
    transform: Transform, z: float, power: float, mean: Floats, deviation: Floats
) -> Floats:
    """Return quantiles of columns with another power, on the scale of the model."""
    assert isinstance(transform, BoxCox)
    value = type(transform)(power).inverse(mean + z * deviation)
    # As a limit, which may be at the edge of the domain.
    return transform.end(value)


def _mean_with_power(transform: Transform, power: float, mean: Floats, deviation: Floats) -> Floats:
    """Return means in original units of columns with another power."""
    assert isinstance(transform, BoxCox)
    mean, deviation = np.asarray(mean), np.asarray(deviation)
    values = type(transform)(power).inverse(mean[..., None] + deviation[..., None] * GRID)
    return np.asarray(values @ GRID_WEIGHTS)


def _quantile(z: float, mu: float, sigma: float) -> float:
    return mu + z * sigma


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _column(
    fit: Fit, j: int, items: list[_Item], V: Floats, finder: IntervalFinder | None
) -> list[tuple[float, float, float]]:
    """Return each number of a column, and the ends of its interval; NaN where there is none."""
    mu, sigma = float(fit.gaussian.mean[j]), float(fit.gaussian.standard_deviations[j])
    learned = None if fit.powers is None else fit.powers[j]
    out = []
    for item in items:
        value, ends = mu, Limits(np.array(np.nan), np.array(np.nan))
        if item.of is None:
            if finder is not None:
                means = fit.confidence_interval(finder.level, finder.kind).without_labels().mean
                ends = Limits(means.lower[j], means.upper[j])
        else:
            value, error = item.of(mu, sigma), delta_error(item.of, mu, sigma, V)
            if finder is not None and np.isfinite(value + error):
                ends = finder.of_column(j, item.of, value, error)
        if learned is not None and finder is not None:
            assert fit.uncertainty is not None
            rows = float(fit.uncertainty.rows_for_variances[j])
            ends = widened(learned, item.with_power, value, ends, finder.level, rows)
        with np.errstate(over="ignore"):
            found = item.back(np.array([value, *ends]))
        out.append((float(found[0]), float(found[1]), float(found[2])))
    return out


def delta_error(of: Callable[[float, float], float], mu: float, sigma: float, V: Floats) -> float:
    """Return the standard error of a function of (μ, σ); NaN where it is not known."""
    h = STEP * sigma
    with np.errstate(invalid="ignore"):
        slope = np.array(
            [
                (of(mu + h, sigma) - of(mu - h, sigma)) / (2.0 * h),
                (of(mu, sigma + h) - of(mu, sigma - h)) / (2.0 * h),
            ]
        )
        # What does not depend on σ needs no error of it, known or not.
        free = slope != 0.0
        return float(np.sqrt(np.maximum(slope[free] @ V[np.ix_(free, free)] @ slope[free], 0.0)))


def joint_variances(fit: Fit) -> Floats:
    """Variances of the estimates of (μ_j, σ_j), for each column; NaN where they are not known."""
    errors, d = fit.uncertainty, len(fit.names)
    out = np.full((d, 2, 2), np.nan)
    if errors is None:
        return out
    out[:, 0, 0] = np.asarray(errors.mean) ** 2
    out[:, 1, 1] = np.asarray(errors.standard_deviation) ** 2
    if errors.parameters is None:
        return out
    # σ = √Σ_jj has slope 1/(2σ).
    slope = 0.5 / fit.gaussian.standard_deviations
    both = errors.parameters[np.arange(d), np.diag(places(d))]
    out[:, 0, 1] = out[:, 1, 0] = slope * both
    return out


def mean_in_units(transform: Transform, mu: float, sigma: float) -> float:
    """Return the arithmetic mean of a column whose transform is N(mu, sigma²)."""
    if isinstance(transform, Identity):
        return mu
    with np.errstate(over="ignore"):
        if isinstance(transform, Log):
            unit = np.log(10.0) if transform.base == 10 else 1.0
            return float(np.exp(unit * mu + 0.5 * (unit * sigma) ** 2))
        return _integral(transform, mu, sigma)


def _integral(transform: Transform, mu: float, sigma: float) -> float:
    """Integrate the way back over the normal distribution, on each side of where it has a kink.

    Right to rounding where both sides are smooth; to about 1e-5 for Box-Cox powers above 1, whose way
    back begins like a root.
    """
    ends = np.array([-np.inf, *([] if transform.kink is None else [transform.kink]), np.inf])
    count = ends.size - 1
    node, weight = np.empty((count, NODES_48.size)), np.empty((count, NODES_48.size))
    mass = np.empty(count)
    restricted_nodes(np.full(count, mu), sigma, ends[:-1], ends[1:], node, weight, mass)
    values = transform.inverse(node)
    # What has no mass adds nothing, though it may be infinite.
    parts = np.where(mass > -np.inf, np.einsum("ij,ij->i", weight, values), 0.0)
    return float(np.exp(mass) @ parts)


def widened(
    learned: LearnedPower, of: OfPower, value: float, ends: Limits, level: float, rows: float
) -> Limits:
    """Return the ends of an interval that were found with the power taken as known, further out.

    Parameters
    ----------
    learned : LearnedPower
    of : callable
        The number, on the scale of the interval: ``of(power, mean, deviation)``.
    value : float
        Its estimate.
    ends : Limits
    level : float
    rows : float
        How many complete rows would know as much about the deviation of the column.
    """
    plain = float(chdtri(1.0, 1.0 - level))
    cutoff = edge_cutoff(level) if _reaches_edge(learned, level) else plain
    place = int(np.searchsorted(learned.powers, learned.power))
    centre = float(of(learned.power, learned.mean[place], learned.deviation[place]))
    fixed = _reached(learned, place, of, plain)
    inside = np.flatnonzero(learned.falls < cutoff).tolist()
    found = [_reached(learned, k, of, cutoff - learned.falls[k]) for k in inside]
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.nanmin([one[0] for one in found], initial=centre)
        high = np.nanmax([one[1] for one in found], initial=centre)
        ratios = (centre - low) / (centre - fixed[0]), (high - centre) / (fixed[1] - centre)
        # What is not known, or known to be no number, is left as it is.
        down, up = (
            max(ratio, 1.0) * _one_row_less(rows, level) if ratio == ratio else 1.0
            for ratio in ratios
        )
        out = Limits(value - down * (value - ends.lower), value + up * (ends.upper - value))
    return Limits(*(np.where(np.isnan(a), b, a) for a, b in zip(out, ends, strict=True)))


def _one_row_less(rows: float, level: float) -> float:
    """Return how much longer an interval is with one degree of freedom less, which a power takes."""
    less, all_rows = (
        Location().distances(np.ones(1), np.array([count]), level).upper[0]
        for count in (max(rows - 1.0, FEWEST_ROWS), max(rows, FEWEST_ROWS))
    )
    return float(less / all_rows)


def edge_cutoff(level: float) -> float:
    """Return how far a likelihood may fall where the power may be at the edge of its range.

    With a nuisance parameter on the edge of its domain the fall is not χ² with one degree of freedom
    (Self and Liang 1987). If it goes closely with the number asked for, which is the worst case, it is
    χ² with two degrees in a quarter of tables, with one in a half, and zero in a quarter.
    """

    def beyond(cutoff: float) -> float:
        return float(0.25 * chdtrc(2.0, cutoff) + 0.5 * chdtrc(1.0, cutoff)) - (1.0 - level)

    # Zero is too little at levels below a quarter, where intervals hold anything but much.
    return float(brentq(beyond, 0.0, 1e3)) if beyond(0.0) > 0.0 else 0.0


def _reaches_edge(learned: LearnedPower, level: float) -> bool:
    low, high = learned.interval(level)
    return low <= LEAST_POWER or high >= LARGEST_POWER


def _reached(learned: LearnedPower, k: int, of: OfPower, left: float) -> tuple[float, float]:
    """Return the least and the largest that a number is where a parabola has fallen by so much."""
    V = learned.variances[k]
    if not (np.isfinite(V).all() and V[0, 0] > 0.0 and V[1, 1] > 0.0):
        return np.nan, np.nan
    angle = np.arange(DIRECTIONS) * (2.0 * math.pi / DIRECTIONS)
    root = np.linalg.cholesky(V)
    moves = math.sqrt(max(left, 0.0)) * root @ np.stack([np.cos(angle), np.sin(angle)])
    mean, deviation = learned.mean[k] + moves[0], learned.deviation[k] * np.exp(moves[1])
    with np.errstate(all="ignore"):
        values = of(float(learned.powers[k]), mean, deviation)
    values = values[~np.isnan(values)]
    return (float(values.min()), float(values.max())) if values.size else (np.nan, np.nan)
