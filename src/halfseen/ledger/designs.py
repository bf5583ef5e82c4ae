"""Truths, rules, draws and quadrature that the rows of more than one module share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from halfseen.gaussian import Gaussian
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.samplers import Region
from halfseen.samplers.rejection import draw_by_rejection

Floats = NDArray[np.float64]
Problem = tuple[Gaussian, LinearThreshold]


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
