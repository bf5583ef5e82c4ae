"""Cramér–Rao limits of regressions, without any solver or sampler of halfseen.

The information of a row is the covariance of its score, which by Fisher's identity is the expected
score of the complete row given what is seen of it. Rows are drawn from the truth, and information is
averaged over them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]
Limits = tuple[Floats, Floats]

# Nodes of the common factor, on so many standard deviations each way; rows that are integrated at once.
NODES, REACH, CHUNK = 161, 8.0, 500
HALF_LOG_TWO_PI = 0.5 * np.log(2.0 * np.pi)


def tobit_limits(
    B: Floats, rho: float, limits: Floats, W: Floats, n: int, rng: np.random.Generator
) -> Limits:
    """Limits of n rows hidden below limits, with residuals of unit variance and correlation ``rho``.

    Residuals are e_j = √ρ f + √(1−ρ) u_j. Given the factor f, cells are independent, so everything is
    an integral over f alone.
    """
    q, k = B.shape
    rho = rho if q > 1 else 0.0
    S = (1.0 - rho) * np.eye(q) + rho
    e = rng.normal(size=(len(W), q)) @ np.linalg.cholesky(S).T
    bound = limits - W @ B.T
    P, (i, j) = np.linalg.inv(S), np.tril_indices(q)
    half = np.where(i == j, 0.5, 1.0)
    total = np.zeros((q * k + i.size, q * k + i.size))
    for start in range(0, len(W), CHUNK):
        part = slice(start, start + CHUNK)
        first, second = _expected(e[part], bound[part], rho)
        on_mean = first @ P
        on_cov = (P @ second @ P - P)[:, i, j] * half
        s = np.hstack([(on_mean[:, :, None] * W[part, None, :]).reshape(len(on_mean), -1), on_cov])
        total += s.T @ s
    return _limits(np.linalg.inv(total / len(W) * n), q * k, (i, j), q)


def _expected(e: Floats, bound: Floats, rho: float) -> tuple[Floats, Floats]:
    """Return E e and E eeᵀ of rows given what is seen: e where it is above the bound."""
    f = np.linspace(-REACH, REACH, NODES)
    sigma = np.sqrt(1.0 - rho)
    seen = e > bound
    # (rows, nodes, outcomes)
    centre = np.sqrt(rho) * f[None, :, None] * np.ones_like(e)[:, None, :]
    z = (np.where(seen, e, bound)[:, None, :] - centre) / sigma
    mass = log_ndtr(z)
    density = -0.5 * z * z - HALF_LOG_TWO_PI
    at = seen[:, None, :]
    log = np.where(at, density, mass).sum(axis=2) - 0.5 * f * f
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    ratio = np.exp(density - mass)
    mean = np.where(at, e[:, None, :], centre - sigma * ratio)
    spread = np.where(at, 0.0, sigma**2 * (1.0 - z * ratio - ratio**2))
    first = np.einsum("rf,rfa->ra", weight, mean)
    second = np.einsum("rfa,rfb->rab", weight[:, :, None] * mean, mean)
    a = np.arange(e.shape[1])
    second[:, a, a] += np.einsum("rf,rfa->ra", weight, spread)
    return first, second


def _limits(inverse: Floats, terms: int, at: tuple[Floats, Floats], q: int) -> Limits:
    """Take limits out of the inverse of the information."""
    error = np.sqrt(np.diag(inverse))
    S = np.full((q, q), np.nan)
    S[at] = error[terms:]
    return error[:terms], np.fmax(S, S.T)


def heckman_limits(
    weights: Floats, S: Floats, W: Floats, n: int, rng: np.random.Generator
) -> Limits:
    """Limits of n rows of which the first outcome is seen where the second is positive.

    The first has the first three regressors, the second all; its variance is known.
    """
    sigma, rho = np.sqrt(S[0, 0]), S[0, 1] / np.sqrt(S[0, 0])
    z = rng.normal(size=(len(W), 2))
    t, index = z[:, 0], W @ weights[3:]
    works = index + rho * t + np.sqrt(1.0 - rho**2) * z[:, 1] > 0.0
    root = np.sqrt(1.0 - rho**2)
    u = (index + rho * t) / root
    hazard = np.exp(-0.5 * u * u - HALF_LOG_TWO_PI - log_ndtr(u))
    other = np.exp(-0.5 * index**2 - HALF_LOG_TWO_PI - log_ndtr(-index))
    # Slopes of log φ(t)/σ + log Φ(u) where it is seen, and of log Φ(−index) elsewhere.
    on_t = -t + hazard * rho / root
    on_index = np.where(works, hazard / root, -other)
    on_rho = np.where(works, hazard * (t + rho * index) / root**3, 0.0)
    on_mean = np.where(works, -on_t / sigma, 0.0)
    on_sigma = np.where(works, (-1.0 - on_t * t) / sigma, 0.0)
    # In (σ², σρ): dσ = dσ²/2σ, dρ = d(σρ)/σ − ρ dσ/σ
    on_variance = (on_sigma - on_rho * rho / sigma) / (2.0 * sigma)
    s = np.column_stack(
        [on_mean[:, None] * W[:, :3], on_index[:, None] * W, on_variance, on_rho / sigma]
    )
    error = np.sqrt(np.diag(np.linalg.inv(s.T @ s / len(W) * n)))
    return error[:7], np.array([[error[7], error[8]], [error[8], np.nan]])


def ordered_limits(weights: Floats, X: Floats, n: int) -> Limits:
    """Limits of n rows of ordered categories: slopes, then cut points."""
    k = X.shape[1]
    ends = np.concatenate([[-np.inf], weights[k:], [np.inf]]) - (X @ weights[:k])[:, None]
    density = np.exp(-0.5 * ends**2 - HALF_LOG_TWO_PI)
    mass = np.diff(np.exp(log_ndtr(ends)), axis=1)
    total = np.zeros((weights.size, weights.size))
    for c in range(mass.shape[1]):
        # The slope of log(Φ(b) − Φ(a)), for rows of this category
        s = np.zeros((len(X), weights.size))
        s[:, :k] = ((density[:, c] - density[:, c + 1]) / mass[:, c])[:, None] * X
        if c > 0:
            s[:, k + c - 1] = -density[:, c] / mass[:, c]
        if c < mass.shape[1] - 1:
            s[:, k + c] = density[:, c + 1] / mass[:, c]
        total += (s * mass[:, c, None]).T @ s
    error = np.sqrt(np.diag(np.linalg.inv(total / len(X) * n)))
    return error, np.full((1, 1), np.nan)
