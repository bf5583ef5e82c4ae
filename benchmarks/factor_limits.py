"""Common factors and limits of detection, exactly: the likelihood, its top, and the Cramér–Rao limit.

Given its factors f a row's cells are independent: so what is hidden of it costs an integral over k
numbers, however many columns there are. Around its top the posterior of f is next to Gaussian, as most
columns are seen, and Gauss's rule with a few points a factor is exact. No solver is used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]

# Points for each factor.
POINTS = 4
# Newton's steps to the top of a posterior, and when one is small enough.
MOST_STEPS, CLOSE_ENOUGH = 30, 1e-10
# Directions of which complete rows know less than this share of the one they know best are rotations.
ROTATION = 1e-9


class FactorLaw(NamedTuple):
    """y = μ + Λ f + ε, with noise ε of these variances."""

    mean: Floats
    loadings: Floats
    noise: Floats

    @property
    def covariance(self) -> Floats:
        """Λ Λᵀ + Ψ."""
        return np.asarray(self.loadings @ self.loadings.T + np.diag(self.noise))


class Given(NamedTuple):
    """What a row says: its log-likelihood; points and weights; of cells E (y − η) and E (y − η)²."""

    value: float
    weights: Floats
    factors: Floats
    first: Floats
    second: Floats


def given(law: FactorLaw, y: Floats, limit: Floats) -> Given:
    """Integrate over the factors of a row: its cells that are NaN lie below their limits."""
    hidden, k = np.isnan(y), law.loadings.shape[1]
    seen, spread = np.where(hidden, 0.0, y), np.sqrt(law.noise)

    def cells(f: Floats) -> tuple[Floats, Floats, Floats]:
        eta = law.mean + f @ law.loadings.T
        z = (limit - eta) / spread
        return seen - eta, z, np.exp(-0.5 * z * z - log_ndtr(z)) / np.sqrt(2.0 * np.pi)

    top = np.zeros(k)
    for _ in range(MOST_STEPS):
        rest, z, ratio = cells(top)
        slope = law.loadings.T @ np.where(hidden, -ratio / spread, rest / law.noise) - top
        bend = np.where(hidden, ratio * (ratio + z), 1.0) / law.noise
        curvature = (law.loadings.T * bend) @ law.loadings + np.eye(k)
        step = np.linalg.solve(curvature, slope)
        top = top + step
        if np.abs(step).max() < CLOSE_ENOUGH:
            break
    points, log_weights = _gauss(k)
    root = np.linalg.cholesky(np.linalg.inv(curvature))
    F = top + points @ root.T
    rest, z, ratio = cells(F)
    of_seen = -0.5 * (rest * rest / law.noise + np.log(2.0 * np.pi * law.noise))
    heights = np.where(hidden, log_ndtr(z), of_seen).sum(axis=1)
    heights += log_weights + 0.5 * ((points * points) - (F * F)).sum(axis=1)
    heights += np.log(np.diag(root)).sum()
    highest = heights.max()
    weights = np.exp(heights - highest)
    return Given(
        float(highest + np.log(weights.sum())),
        weights / weights.sum(),
        F,
        np.where(hidden, -spread * ratio, rest),
        np.where(hidden, law.noise * (1.0 - z * ratio), rest * rest),
    )


def _gauss(k: int) -> tuple[Floats, Floats]:
    """Return points and log weights of Gauss's rule for a standard normal of k dimensions."""
    x, w = np.polynomial.hermite_e.hermegauss(POINTS)
    points = np.stack(np.meshgrid(*[x] * k, indexing="ij"), axis=-1).reshape(-1, k)
    weights = np.stack(np.meshgrid(*[w] * k, indexing="ij"), axis=-1).reshape(-1, k)
    return points, np.log(weights / np.sqrt(2.0 * np.pi)).sum(axis=1)


def information(law: FactorLaw, y: Floats, limit: Floats) -> Floats:
    """Return the observed information of a row about (μ_j, Λ_j, Ψ_j), column by column (Louis 1982).

    With the factors known, minus second derivatives are blocks, one a cell, and so is the variance of
    scores over what a hidden cell may be; over the factors it is of low rank.
    """
    at = given(law, y, limit)
    d, k = law.loadings.shape
    noise, w = law.noise, at.weights
    G = np.column_stack([np.ones(len(at.factors)), at.factors])
    e1, e2, e3, e4 = _powers(law, y, limit, at)
    blocks = np.zeros((d, k + 2, k + 2))
    lines = np.einsum("s,sj,sa,sb->jab", w, 1.0 / noise - (e2 - e1 * e1) / noise**2, G, G)
    cross = np.einsum("s,sj,sa->ja", w, e1 / noise**2 - (e3 - e1 * e2) / (2.0 * noise**3), G)
    blocks[:, :-1, :-1], blocks[:, :-1, -1], blocks[:, -1, :-1] = lines, cross, cross
    of_noise = e2 / noise**3 - 0.5 / noise**2 - (e4 - e2 * e2) / (4.0 * noise**4)
    blocks[:, -1, -1] = w @ of_noise
    scores = np.empty((len(w), d, k + 2))
    scores[:, :, :-1] = (e1 / noise)[:, :, None] * G[:, None, :]
    scores[:, :, -1] = (e2 / noise - 1.0) / (2.0 * noise)
    flat = scores.reshape(len(w), -1)
    flat = flat - w @ flat
    out = -(flat.T * w) @ flat
    for j in range(d):
        own = slice(j * (k + 2), (j + 1) * (k + 2))
        out[own, own] += blocks[j]
    return np.asarray(out)


def _powers(law: FactorLaw, y: Floats, limit: Floats, at: Given) -> tuple[Floats, ...]:
    """Return E (y − η)^p of all cells at each point, for p from 1 to 4.

    Of a standard normal below z: E u^p = (p − 1) E u^(p−2) − z^(p−1) r.
    """
    spread, hidden = np.sqrt(law.noise), np.isnan(y)
    z = (limit - law.mean - at.factors @ law.loadings.T) / spread
    u1, u2 = at.first / spread, at.second / law.noise
    ratio = -u1
    u3, u4 = 2.0 * u1 - z**2 * ratio, 3.0 * u2 - z**3 * ratio
    return (
        at.first,
        at.second,
        np.where(hidden, u3 * spread**3, at.first**3),
        np.where(hidden, u4 * law.noise**2, at.first**4),
    )


def slopes(law: FactorLaw) -> Floats:
    """Return the derivatives of Σ in (μ_j, Λ_j, Ψ_j), column by column."""
    d, k = law.loadings.shape
    out = np.zeros((d, k + 2, d, d))
    for j in range(d):
        out[j, 1:-1, j] = law.loadings.T
        out[j, 1:-1, :, j] += law.loadings.T
        out[j, -1, j, j] = 1.0
    return out.reshape(-1, d, d)


def complete_information(law: FactorLaw) -> Floats:
    """Return the information of a complete row about (μ_j, Λ_j, Ψ_j)."""
    d, k = law.loadings.shape
    P = np.linalg.inv(law.covariance)
    moved = P @ slopes(law)
    out = 0.5 * moved.reshape(len(moved), -1) @ moved.swapaxes(1, 2).reshape(len(moved), -1).T
    means = np.arange(d) * (k + 2)
    out[np.ix_(means, means)] = P
    return np.asarray(out)


def limits_of_covariance(
    law: FactorLaw, limit: Floats, rows: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the least expected squared error of Σ (Frobenius) of one row: with holes, and without.

    What holes take is averaged over rows that are drawn. Rotations of the factors, of which no row says
    anything, move no Σ, and are left out.
    """
    d, k = law.loadings.shape
    lost = np.zeros((d * (k + 2), d * (k + 2)))
    for _ in range(rows):
        y = law.mean + law.loadings @ rng.normal(size=k) + rng.normal(size=d) * np.sqrt(law.noise)
        lost += information(law, y, limit) - information(law, np.where(y < limit, np.nan, y), limit)
    complete = complete_information(law)
    values, vectors = np.linalg.eigh(complete)
    turn = vectors[:, values > ROTATION * values[-1]]
    flat = turn.T @ slopes(law).reshape(len(complete), -1)
    least = [
        float(np.sum(np.linalg.solve(turn.T @ known @ turn, flat) * flat))
        for known in (complete - lost / rows, complete)
    ]
    return least[0], least[1]


def climbed(law: FactorLaw, X: Floats, limit: Floats, steps: int) -> tuple[FactorLaw, float]:
    """Climb the exact likelihood by EM, where mean and covariance of the factors are free in each step.

    Returns
    -------
    law : FactorLaw
    value : float
        The log-likelihood before the last step.
    """
    k = law.loadings.shape[1]
    for _ in range(steps):
        value, inner = 0.0, np.zeros((k + 1, k + 1))
        cross, squares = np.zeros((len(law.mean), k + 1)), np.zeros(len(law.mean))
        for y in X:
            at = given(law, y, limit)
            eta = law.mean + at.factors @ law.loadings.T
            regressors = np.column_stack([np.ones(len(eta)), at.factors])
            value += at.value
            inner += (regressors * at.weights[:, None]).T @ regressors
            cross += (at.weights[:, None] * (eta + at.first)).T @ regressors
            squares += at.weights @ (at.second + 2.0 * at.first * eta + eta * eta)
        both = np.linalg.solve(inner, cross.T).T
        noise = (squares - (both * cross).sum(axis=1)) / len(X)
        middle = inner[0, 1:] / len(X)
        spread = np.linalg.cholesky(inner[1:, 1:] / len(X) - np.outer(middle, middle))
        law = FactorLaw(both[:, 0] + both[:, 1:] @ middle, both[:, 1:] @ spread, noise)
    return law, value
