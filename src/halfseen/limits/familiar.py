"""What people know: the Kaplan–Meier mean and regression on order statistics, below limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from halfseen.data.transforms import Transform
from halfseen.diagnostics.one_column import LoneColumn

Floats = NDArray[np.float64]


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
