"""Coefficients and the covariance of residuals, and the joint law of outcomes and covariates.

The rows of the engine have q outcomes and then p covariates, which are always seen, have mean 0, and are
uncorrelated with unit variances over the rows of the table. The likelihood of such rows is the
product of the law of the covariates, which says nothing about the rest and is held fixed, and that
of the outcomes given them, y = Γ w + e with w = (1, x) and e ~ N(0, Σ_e). So both together are
normal with

    mean (α, 0) and covariance ((B Bᵀ + Σ_e, B), (Bᵀ, I)),  Γ = (α, B),

and the engine climbs that, in coordinates of Γ and Σ_e alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.expectation import Moments, Parameters

Floats = NDArray[np.float64]


class Place(NamedTuple):
    """Coefficients Γ of shape (q, 1 + p), and the covariance of residuals."""

    coefficients: Floats
    residual: Floats

    def joined(self) -> tuple[Floats, Floats]:
        """Return mean and covariance of outcomes and covariates together."""
        p = self.coefficients.shape[1] - 1
        B = self.coefficients[:, 1:]
        mean = np.concatenate([self.coefficients[:, 0], np.zeros(p)])
        return mean, np.block([[B @ B.T + self.residual, B], [B.T, np.eye(p)]])

    def parameters(self) -> Parameters:
        """Return the same as the kernels want it: the precision ((P, −P B), (−Bᵀ P, I + Bᵀ P B))."""
        B = self.coefficients[:, 1:]
        P = np.linalg.inv(self.residual)
        P = 0.5 * (P + P.T)
        across = -P @ B
        whole = np.block([[P, across], [across.T, np.eye(B.shape[1]) - B.T @ across]])
        log_det = float(np.linalg.slogdet(self.residual)[1])
        mean = np.concatenate([self.coefficients[:, 0], np.zeros(B.shape[1])])
        return Parameters(mean, np.ascontiguousarray(0.5 * (whole + whole.T)), log_det)


def split(mean: Floats, covariance: Floats, outcomes: int) -> Place:
    """Return the coefficients and the covariance of residuals of a joint law."""
    B = covariance[:outcomes, outcomes:]
    rest = covariance[:outcomes, :outcomes] - B @ B.T
    return Place(np.column_stack([mean[:outcomes], B]), 0.5 * (rest + rest.T))


class Products(NamedTuple):
    """Averages of w wᵀ, y wᵀ and y yᵀ over complete rows."""

    ww: Floats
    yw: Floats
    yy: Floats

    @classmethod
    def of(cls, moments: Moments, outcomes: int) -> Products:
        """Take them from the moments of outcomes and covariates."""
        first, second = moments
        of_x, of_y = first[outcomes:], first[:outcomes]
        ww = np.block(
            [[np.ones((1, 1)), of_x[None]], [of_x[:, None], second[outcomes:, outcomes:]]]
        )
        yw = np.column_stack([of_y, second[:outcomes, outcomes:]])
        return cls(ww, yw, second[:outcomes, :outcomes])

    def scatter(self, coefficients: Floats) -> Floats:
        """Return the average of (y − Γ w)(y − Γ w)ᵀ."""
        across = coefficients @ self.yw.T
        return np.asarray(self.yy - across - across.T + coefficients @ self.ww @ coefficients.T)


@dataclass(frozen=True)
class Terms:
    """Which coefficients there are: Γ = offset + Σ_k β_k basis_k.

    Attributes
    ----------
    offset : array of shape (q, 1 + p)
    basis : array of shape (q (1 + p), m) or None
        Orthonormal columns; the coefficients of the first outcome stand before those of the second. None
        where every coefficient is free.
    """

    offset: Floats
    basis: Floats | None = None

    @property
    def count(self) -> int:
        """How many coefficients are free."""
        return self.offset.size if self.basis is None else self.basis.shape[1]

    def at(self, free: Floats) -> Floats:
        """Return Γ."""
        if self.basis is None:
            return free.reshape(self.offset.shape)
        return np.asarray(self.offset + (self.basis @ free).reshape(self.offset.shape))

    def of(self, coefficients: Floats) -> Floats:
        """Return the free coefficients of a Γ, or of the nearest that there is."""
        if self.basis is None:
            return coefficients.ravel()
        return np.asarray(self.basis.T @ (coefficients - self.offset).ravel())

    def slopes(self, of_coefficients: Floats) -> Floats:
        """Return derivatives in the free coefficients from those in Γ."""
        flat = of_coefficients.ravel()
        return flat if self.basis is None else np.asarray(self.basis.T @ flat)

    def information(self, P: Floats, ww: Floats) -> Floats:
        """Return the information of one complete row: P ⊗ w wᵀ, in the free coefficients."""
        q, k = self.offset.shape
        if self.basis is None:
            return np.asarray(np.kron(P, ww))
        cube = self.basis.reshape(q, k, -1)
        weighted = np.einsum("jl,lum->jum", P, np.einsum("tu,jum->jtm", ww, cube))
        return np.asarray(self.basis.T @ weighted.reshape(q * k, -1))

    def least_squares(self, products: Products, P: Floats) -> Floats:
        """Return the Γ that generalised least squares gives, for residuals with the precision P."""
        if self.basis is None:
            return np.asarray(np.linalg.solve(products.ww, products.yw.T).T)
        slopes = self.slopes(P @ (products.yw - self.offset @ products.ww))
        return self.at(np.asarray(np.linalg.solve(self.information(P, products.ww), slopes)))


def bounds_of(residual: Floats, i: int, j: int) -> tuple[float, float]:
    """Return between which values a covariance may lie, given all the others."""
    both = np.array([i, j])
    rest = np.setdiff1d(np.arange(len(residual)), both)
    pair = np.ix_(both, rest)
    slopes = np.linalg.solve(residual[np.ix_(rest, rest)], residual[pair].T).T
    explained = slopes @ residual[pair].T
    left = np.diag(residual)[both] - np.diag(explained)
    half = float(np.sqrt(max(left[0], 0.0) * max(left[1], 0.0)))
    return float(explained[0, 1]) - half, float(explained[0, 1]) + half
