"""Truths, rules, draws and quadrature that the rows of more than one module share.

``constants`` and ``Design`` tell how exact estimates from seen values can be: the inverse information.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from halfseen.gaussian import Gaussian
from halfseen.ledger.harness import Floats, ratio, root_mean_square
from halfseen.missingness import LinearThreshold, Probability, SelfCensoring, at_least
from halfseen.samplers import Region
from halfseen.samplers.rejection import draw_by_rejection
from halfseen.simulate import simulate
from halfseen.solvers.result import Estimate
from halfseen.solvers.truncation import truncation

Solver = Callable[[Floats, SelfCensoring], Estimate]

# A value is seen from half a standard deviation below its mean: 69 % of a column.
LIMIT = -0.5
# Nodes of each axis of the quadrature for the information, up to this many deviations.
NODES, REACH = 120, 9.0
# Part of an error that its first order, the information, may miss: terms of order 1/(αn). They were
# (16 ± 9)/(αn) for means and (8 ± 8)/(αn) for covariances in 1 500 tables with αn = 530; αn is above
# 1 500 wherever a size is predicted.
SECOND_ORDER = 0.02


class Problem(NamedTuple):
    """A truth, and linear thresholds that hide its values."""

    truth: Gaussian
    rule: LinearThreshold


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


def joint_share(seen: NDArray[np.bool_], size: int) -> float:
    """Return how often the rarest block of so many columns is seen whole: α, counted in rows."""
    blocks = combinations(range(seen.shape[1]), size)
    return min(float(seen[:, list(block)].all(axis=1).mean()) for block in blocks)


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


def half_line(d: int, limit: float = LIMIT) -> SelfCensoring:
    """Show every coordinate from a limit upwards."""
    return SelfCensoring([at_least(limit)] * d)


def thinned(d: int, share: float, limit: float = LIMIT) -> SelfCensoring:
    """Show a coordinate above the limit with this probability: S_i : R → [0, 1] of one shape."""

    def probability(x: Floats) -> Floats:
        return np.where(x >= limit, share, 0.0)

    return SelfCensoring([Probability(probability)] * d)


def solve_paper(X: Floats, rule: SelfCensoring) -> Estimate:
    """Solve the problems of Algorithm 1 exactly: five free parameters for each pair."""
    return truncation(X, rule, form="paper")


@dataclass(frozen=True)
class Design:
    """Tables of n rows of a standardised truth under self-censoring.

    Attributes
    ----------
    truth : Gaussian
    n : int
    limit : float
        Values are seen from here upwards.
    p : float or callable, optional
        The chance that a value above the limit is shown; without one, all are. A chance that depends on
        the value is told to solvers; a fixed one drops out of the problem of seen values.
    """

    truth: Gaussian
    n: int
    limit: float = LIMIT
    p: float | Callable[[Floats], Floats] | None = None

    def rules(self) -> tuple[SelfCensoring, SelfCensoring]:
        """Return what hides values, and what solvers are told of it."""
        d = self.truth.mean.size
        if callable(self.p):
            rule = SelfCensoring([Probability(self.p)] * d)
            return rule, rule
        told = half_line(d, self.limit)
        return (told if self.p is None else thinned(d, self.p, self.limit)), told

    def fits(self, tables: int, seed: Iterable[int], solve: Solver = solve_paper) -> list[Estimate]:
        """Draw tables and fit each; seeds are made of ``seed`` and n."""
        rule, told = self.rules()
        seeds = np.random.SeedSequence([*seed, self.n]).generate_state(tables)
        return [solve(simulate(self.truth, rule, self.n, int(s)), told) for s in seeds]

    def errors(self) -> tuple[float, float, Floats]:
        """Return the standard errors of μ̂_i, of Σ̂_ii and of each Σ̂_ij that the information allows."""
        share, chance = (1.0, self.p) if callable(self.p) else (self.p or 1.0, certain)
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

    def ratios(self, found: Sequence[Estimate]) -> tuple[Floats, Floats]:
        """Return both errors of each table over these sizes; Σ̂ is taken before it is projected."""
        mean, covariance = self.sizes()
        raw = [fit.history["covariance_before_projection"] for fit in found]
        return (
            np.array([root_mean_square(fit.gaussian.mean) / mean for fit in found]),
            np.array([np.linalg.norm(S - self.truth.covariance) / covariance for S in raw]),
        )


def fit_tables(
    designs: Sequence[Design],
    tables: int,
    seed: int,
    places: Iterable[int] | None = None,
    solve: Solver = solve_paper,
) -> list[list[Estimate]]:
    """Fit tables of each design, with a seed for the row of the ledger.

    Designs of the same n need places, with seeds of their own: errors along a curve are then
    independent, as their standard errors have it.
    """
    seeds = [[seed]] * len(designs) if places is None else [[seed, place] for place in places]
    return [g.fits(tables, some, solve) for g, some in zip(designs, seeds, strict=True)]


def level(designs: Sequence[Design], tables: Sequence[list[Estimate]]) -> tuple[str, bool]:
    """Compare the size of errors with what the information predicts, over all designs together."""
    found = [design.ratios(some) for design, some in zip(designs, tables, strict=True)]
    means, covariances = (ratio(np.concatenate(values)) for values in zip(*found, strict=True))
    return (
        f"Of the size predicted: mean {means}, covariance {covariances}",
        means.near(1.0, SECOND_ORDER) and covariances.near(1.0, SECOND_ORDER),
    )
