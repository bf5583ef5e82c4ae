"""How much wider intervals are because a power was learned.

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
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri

from halfseen.data.powers import LARGEST_POWER, LEAST_POWER, LearnedPower
from halfseen.solvers.inference.intervals import Limits, Location

Floats = NDArray[np.float64]
# A number of a column: of its power, and of means and deviations on the scale of that.
OfPower = Callable[[float, Floats, Floats], Floats]

# Directions around an estimate in which a number is looked at: the largest is missed by less than
# 1 − cos(π/48), a fifth of a percent of a distance.
DIRECTIONS = 48
# Fewer rows than these know next to nothing of a deviation, let alone of a power.
FEWEST_ROWS = 4.0


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
