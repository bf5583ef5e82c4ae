"""Fitting a structure of the covariance to moments of complete rows, by scoring (Anderson 1973)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.charts import information_along
from halfseen.theta import pack_slopes

Floats = NDArray[np.float64]

# Steps of scoring, shorter ones that are tried, and when a step changes nothing.
MOST_STEPS, MOST_SHORTER, CLOSE_ENOUGH = 100, 30, 1e-10
# Heights are compared to so many of their digits.
ROUNDING = 1e-14


def score_up(
    S: Floats, start: Floats, at: Callable[[Floats], Floats], slopes: Callable[[Floats], Floats]
) -> Floats:
    """Return the parameters that maximise −log|Σ| − tr Σ⁻¹S.

    Parameters
    ----------
    S : array of shape (d, d)
    start : array of shape (q,)
        Where Σ is positive definite.
    at : callable
        Returns Σ at some parameters; it need not be positive definite, nor finite.
    slopes : callable
        Returns derivatives of (Σ_ij, i >= j) in the parameters, one column each.
    """
    theta, covariance = start, at(start)
    height = _height(covariance, S)
    for _ in range(MOST_STEPS):
        P = np.asarray(np.linalg.inv(covariance))
        basis = slopes(theta)
        slope = basis.T @ pack_slopes(np.empty(0), 0.5 * P @ (S - covariance) @ P)
        step = np.linalg.solve(information_of_covariance(P, basis), slope)
        if slope @ step < CLOSE_ENOUGH**2:
            break
        for k in range(MOST_SHORTER):
            moved = theta + 0.5**k * step
            there = at(moved)
            reached = _height(there, S)
            if reached >= height:
                break
        else:
            break
        gained = reached - height
        theta, covariance, height = moved, there, reached
        if gained <= ROUNDING * abs(height) and k == 0 and slope @ step < CLOSE_ENOUGH:
            break
    return theta


def _height(covariance: Floats, S: Floats) -> float:
    """Return −log|Σ| − tr Σ⁻¹S, halved; −∞ where Σ is no covariance."""
    if not np.isfinite(covariance).all():
        return -np.inf
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return -np.inf
    log_det = 2.0 * float(np.log(np.diag(root)).sum())
    return -0.5 * (log_det + float(np.trace(np.linalg.solve(covariance, S))))


def information_of_covariance(P: Floats, basis: Floats) -> Floats:
    """Information of one complete row about a covariance in the directions of a basis."""
    return information_along(P, np.concatenate([np.zeros((len(P), basis.shape[1])), basis]))
