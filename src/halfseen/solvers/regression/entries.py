"""A covariance of residuals of which some entries are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.m_step import with_floor
from halfseen.solvers.structures.base import score_up
from halfseen.theta import entries, symmetric, triangle

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


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
        """Maximise −log|Σ| − tr Σ⁻¹S over the free entries, by scoring (Anderson 1973).

        Where all that is given is the covariance of some columns, as of the index of a selection, the
        others are regressed on these, and no scoring is needed.
        """
        S = with_floor(S)
        held = ~np.diag(self.free)
        if (self.free != np.outer(held, held)).all():
            return self._beside(S, held)
        basis, near = self.basis(S), self._near(S)

        def at(theta: Floats) -> Floats:
            return near + symmetric(basis @ theta, len(S))

        return at(score_up(S, np.zeros(basis.shape[1]), at, lambda theta: basis))

    def _beside(self, S: Floats, held: Mask) -> Floats:
        """Return the best covariance with that of the held columns given, and all else free."""
        L, F = np.flatnonzero(held), np.flatnonzero(~held)
        slopes = np.linalg.solve(S[np.ix_(L, L)], S[np.ix_(L, F)])
        known = self.given[np.ix_(L, L)]
        left = S[np.ix_(F, F)] - S[np.ix_(F, L)] @ slopes
        out = np.empty_like(S)
        out[np.ix_(L, L)] = known
        out[np.ix_(L, F)] = known @ slopes
        out[np.ix_(F, L)] = out[np.ix_(L, F)].T
        out[np.ix_(F, F)] = 0.5 * (left + left.T) + slopes.T @ known @ slopes
        return out

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
