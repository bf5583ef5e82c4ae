"""Limits from the signed root of the likelihood, held against simulated columns.

A limit is where the root is as far from its mean, in its own deviations, as the normal quantile says;
mean and deviation are those in columns simulated at the likeliest parameters, the limit being the truth.
All places share their random numbers, so that both are a smooth function of the limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from halfseen.kernels.signed_root import signed_root, simulated_roots
from halfseen.limits.lone import Lone, Number, Windows
from halfseen.seeds import Purpose, keyed_generator

# Beyond so many cells simulations say no more than the posterior.
MOST_CELLS = 500
# How far an end is looked for, and how well it is found: in distances of the start from the estimate.
FARTHEST, CLOSE = 2.0**12, 1e-3
# Fewer roots than this share of the simulated columns say nothing.
FEWEST_USABLE = 0.5


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
        return float(brentq(beyond, inside, outside, xtol=CLOSE * abs(reach)))
