"""Truths, rules, draws and quadrature that the rows of more than one module share.

``constants`` and ``Design`` tell how exact estimates from seen values can be: the inverse information.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from halfseen.gaussian import Gaussian
from halfseen.ledger.registry import root_mean_square
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.results import Fit
from halfseen.samplers import Region
from halfseen.samplers.rejection import draw_by_rejection

Floats = NDArray[np.float64]


class Problem(NamedTuple):
    """A truth, and linear thresholds that hide its values."""

    truth: Gaussian
    rule: LinearThreshold


# A value is seen from half a standard deviation below its mean: 69 % of a column.
LIMIT = -0.5
# Nodes of each axis of the quadrature for the information, up to this many deviations.
NODES, REACH = 120, 9.0


def decaying(d: int, rho: float = 0.5, mean: ArrayLike | None = None) -> Gaussian:
    """Return variances one, correlations ρ^|i−j|; the mean is zero unless given."""
    lags = np.subtract.outer(np.arange(d), np.arange(d))
    return Gaussian(np.zeros(d) if mean is None else mean, rho ** np.abs(lags))


def equicorrelated(d: int, rho: float, mean: ArrayLike | None = None) -> Gaussian:
    """Return variances one and the same correlation of every pair; the mean is zero unless given."""
    covariance = (1.0 - rho) * np.eye(d) + rho * np.ones((d, d))
    return Gaussian(np.zeros(d) if mean is None else mean, covariance)


def correlation_for(condition: float, d: int) -> float:
    """Return the common correlation with this condition number: κ = (1 + (d − 1)ρ)/(1 − ρ)."""
    return (condition - 1.0) / (condition + (d - 1.0))


def limits_along(truth: Gaussian, V: Floats, share: float | Floats) -> Floats:
    """Return the b with which ``V[i] · y <= b[i]`` holds in a share of the rows, for each i."""
    spread = np.sqrt(np.einsum("ij,jk,ik->i", V, truth.covariance, V))
    return np.asarray(V @ truth.mean + spread * ndtri(share))


def random_thresholds(
    truth: Gaussian, anchors: int, hidden: float, random_state: int | np.random.Generator
) -> LinearThreshold:
    """Anchors first; each other column is hidden in a share of the rows, by a random combination."""
    d = truth.mean.size
    V = np.random.default_rng(random_state).normal(size=(d - anchors, d))
    return LinearThreshold.anchored(range(anchors), V, limits_along(truth, V, 1.0 - hidden))


def exact_draws(region: Region, n: int, rng: np.random.Generator) -> tuple[Floats, float]:
    """Points of the Gaussian truncated to a region, by rejection, and the share accepted: its mass."""
    return draw_by_rejection(
        lambda m, g: region.mean + g.standard_normal((m, region.mean.size)),
        lambda u, _: np.asarray((u @ region.A.T <= region.c).all(axis=1)),
        n,
        rng,
    )


def legendre_nodes(low: float, high: float, count: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on an interval."""
    t, w = np.polynomial.legendre.leggauss(count)
    half = 0.5 * (high - low)
    return low + half * (t + 1.0), half * w


def certain(x: Floats) -> Floats:
    """Show every value above the limit."""
    return np.ones_like(x)


@cache
def constants(
    rho: float, limit: float, chance: Callable[[Floats], Floats] = certain
) -> tuple[float, float, float, float]:
    """Return α and the constants c of μ̂_i, Σ̂_ii and Σ̂_ij: the standard error is c over √(rows seen).

    A value above ``limit`` is shown with the given chance. In natural parameters the covariance H of the
    sufficient statistics over the seen part is the information of a seen row. At μ = 0 and unit
    variances dμ = dν, dΣ = −Σ dT Σ.
    """
    x, w = legendre_nodes(limit, REACH, NODES)
    w = w * chance(x)
    weight = w * np.exp(-0.5 * x * x)
    line = np.linalg.inv(np.cov(np.stack([x, -0.5 * x * x]), aweights=weight, ddof=0))
    a, b = (grid.ravel() for grid in np.meshgrid(x, x))
    density = np.exp(-0.5 * (a * a - 2 * rho * a * b + b * b) / (1 - rho**2))
    mass = np.outer(w, w).ravel() * density / (2 * np.pi * math.sqrt(1 - rho**2))
    statistics = np.stack([a, b, -0.5 * a * a, -a * b, -0.5 * b * b])
    plane = np.linalg.inv(np.cov(statistics, aweights=mass, ddof=0))
    direction = np.array([0.0, 0.0, rho, 1.0 + rho**2, rho])
    cross = math.sqrt(direction @ plane @ direction)
    return float(mass.sum()), math.sqrt(line[0, 0]), math.sqrt(line[1, 1]), cross


@dataclass(frozen=True)
class Design:
    """Tables of n rows of a standardised truth; values above the limit are shown with chance ``p``.

    ``p`` may be a function of the value.
    """

    truth: Gaussian
    n: int
    limit: float = LIMIT
    p: float | Callable[[Floats], Floats] = 1.0

    def errors(self) -> tuple[float, float, Floats]:
        """Return the standard errors of μ̂_i, of Σ̂_ii and of each Σ̂_ij that the information allows."""
        share, chance = (1.0, self.p) if callable(self.p) else (self.p, certain)
        both, mean, own, _ = constants(0.0, self.limit, chance)
        # Independent columns are both seen with the square of one's probability.
        column = math.sqrt(share * math.sqrt(both) * self.n)
        i, j = np.triu_indices(self.truth.mean.size, 1)
        pairs = [constants(float(r), self.limit, chance) for r in self.truth.covariance[i, j]]
        cross = [c / (share * math.sqrt(alpha * self.n)) for alpha, *_, c in pairs]
        return mean / column, own / column, np.array(cross)

    def sizes(self) -> tuple[float, float]:
        """Return the root mean square of a coordinate of μ̂ − μ*, and that of ‖Σ̂ − Σ*‖_F."""
        mean, own, cross = self.errors()
        d = self.truth.mean.size
        return mean, math.sqrt(d * own**2 + 2.0 * float((cross**2).sum()))

    def ratios(self, found: Sequence[Fit]) -> tuple[Floats, Floats]:
        """Return both errors of each table over these sizes; Σ̂ is taken before it is projected."""
        mean, covariance = self.sizes()
        raw = [fit.history["covariance_before_projection"] for fit in found]
        return (
            np.array([root_mean_square(fit.gaussian.mean) / mean for fit in found]),
            np.array([np.linalg.norm(S - self.truth.covariance) / covariance for S in raw]),
        )
