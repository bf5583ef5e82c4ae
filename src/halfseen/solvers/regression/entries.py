"""A covariance of residuals of which some entries are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.charts import information_along
from halfseen.solvers.full_information.m_step import with_floor
from halfseen.theta import entries, pack_slopes, symmetric, triangle

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Steps of scoring, shorter ones that are tried, and when a step changes nothing.
MOST_STEPS, MOST_SHORTER, CLOSE_ENOUGH = 50, 30, 1e-10


@dataclass(frozen=True)
class Entries:
    """A covariance of which some entries are free and the others are given.

    Attributes
    ----------
    free : boolean array of shape (q, q)
        Symmetric.
    given : array of shape (q, q)
        Entries that are not free: 1 for the variance of a latent column, 0 for residuals that have
        nothing to do with each other.
    """

    free: Mask
    given: Floats
    name: ClassVar[str] = "entries"
    regularised: ClassVar[bool] = False
    linear: ClassVar[bool] = True

    def solve(self, S: Floats, rows: int) -> Floats:
        """Maximise −log|Σ| − tr Σ⁻¹S over the free entries, by scoring (Anderson 1973)."""
        S = with_floor(S)
        basis = self.basis(S)
        covariance = self._near(S)
        height = _height(covariance, S)
        for _ in range(MOST_STEPS):
            P = np.asarray(np.linalg.inv(covariance))
            slope = basis.T @ pack_slopes(np.empty(0), 0.5 * P @ (S - covariance) @ P)
            steps = np.linalg.solve(information_of_covariance(P, basis), slope)
            if slope @ steps < CLOSE_ENOUGH**2:
                break
            change = symmetric(basis @ steps, len(S))
            covariance, before = _uphill(covariance, change, S, height), height
            height = _height(covariance, S)
            if height - before < CLOSE_ENOUGH**2:
                break
        return covariance

    def _near(self, S: Floats) -> Floats:
        """Return a covariance of the structure to begin at: that of S, as far as it is free."""
        scale = np.sqrt(np.diag(S))
        fixed = ~np.diag(self.free)
        wanted = np.where(fixed, np.sqrt(np.abs(np.diag(self.given))), scale)
        near = np.where(
            self.free, S / np.outer(scale, scale) * np.outer(wanted, wanted), self.given
        )
        np.fill_diagonal(near, wanted * wanted)
        while np.linalg.eigvalsh(near)[0] < 1e-6 * np.diag(near).min():
            # Zeros may leave no covariance: correlations are halved until there is one.
            near = np.where(self.free & ~np.eye(len(S), dtype=bool), 0.5 * near, near)
        return near

    def basis(self, covariance: Floats) -> Floats:
        """Each free entry moves on its own."""
        i, j = triangle(len(covariance))
        return np.eye(i.size)[:, self.free[i, j]]

    def count(self, d: int) -> int:
        """Return the number of free entries on and below the diagonal."""
        return int(entries(self.free.astype(float)).sum())


def _height(covariance: Floats, S: Floats) -> float:
    """Return −log|Σ| − tr Σ⁻¹S, halved; −∞ where Σ is no covariance."""
    sign, log_det = np.linalg.slogdet(covariance)
    if sign <= 0.0 or np.linalg.eigvalsh(covariance)[0] <= 0.0:
        return -np.inf
    return float(-0.5 * (log_det + np.trace(np.linalg.solve(covariance, S))))


def _uphill(covariance: Floats, change: Floats, S: Floats, height: float) -> Floats:
    """Take a step, or a shorter one, that leads up."""
    for k in range(MOST_SHORTER):
        moved = covariance + 0.5**k * change
        if _height(moved, S) >= height:
            return moved
    return covariance


def information_of_covariance(P: Floats, basis: Floats) -> Floats:
    """Information of one complete row about a covariance in the directions of a basis."""
    return information_along(P, np.concatenate([np.zeros((len(P), basis.shape[1])), basis]))
