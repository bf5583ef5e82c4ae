"""The bounded domain in which the truth must lie, given how much of it is seen.

If a set holds a share α of a Gaussian N(μ, Σ), then the mean m and covariance C of what is seen obey,
in any dimension and for any set,

    ‖m − μ‖_Σ <= h(α),      v(α) Σ ⪯ C ⪯ V(α) Σ.

Along any direction the seen part has density φ(t)w(t) with 0 <= w <= 1 and ∫φw = α, so each bound is
reached by the one-dimensional w that is best for it: a tail for h, a centred interval for v, two tails
for V. These are Lemma 6 of Daskalakis et al. (2018) with sharp constants instead of O(·). In natural
parameters (ν, T) the domain is convex: ν'T⁻¹ν <= h² is a matrix-fractional constraint.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from halfseen.theta import size_of

Floats = NDArray[np.float64]

# α is halved before the bounds are taken: the share, mean and covariance that are seen are
# themselves estimates.
SHARE_SLACK = 0.5
# Ratio of eigenvalues below which a matrix cannot be told from a singular one.
SINGULAR = 1e-14
# An estimate within this of the edge, relative to the size of the domain, is said to lie on it.
EDGE_TOLERANCE = 1e-5


def _density(t: Floats) -> Floats:
    return np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)


def mean_reach(alpha: ArrayLike) -> Floats:
    """h(α): how far the mean of a share α can be from the mean, in standard deviations."""
    alpha = np.asarray(alpha, dtype=float)
    return _density(ndtri(alpha)) / alpha


def least_variance(alpha: ArrayLike) -> Floats:
    """v(α): variance of a standard normal on the centred interval of mass α."""
    alpha = np.asarray(alpha, dtype=float)
    t = ndtri(0.5 + 0.5 * alpha)
    with np.errstate(invalid="ignore"):
        exact = 1.0 - 2.0 * np.where(np.isinf(t), 0.0, t * _density(t)) / alpha
    # Small intervals are uniform, and 1 − … would cancel: (width)²/12 with width α√(2π).
    return np.where(alpha < 1e-3, alpha**2 * np.pi / 6.0, exact)


def greatest_variance(alpha: ArrayLike) -> Floats:
    """V(α): variance of a standard normal on the two tails of mass α."""
    alpha = np.asarray(alpha, dtype=float)
    t = ndtri(1.0 - 0.5 * alpha)
    return 1.0 + 2.0 * t * _density(t) / alpha


@dataclass(frozen=True)
class Domain:
    """Domains of a batch of problems, each in coordinates centred at its seen mean.

    Attributes
    ----------
    precision : array of shape (batch, k, k)
        C⁻¹, the inverse of the seen covariance.
    least, greatest : arrays of shape (batch,)
        v(α) and V(α): T lies between ``least · C⁻¹`` and ``greatest · C⁻¹``.
    reach : array of shape (batch,)
        h(α): ν'T⁻¹ν is at most ``reach²``.
    """

    precision: Floats
    least: Floats
    greatest: Floats
    reach: Floats

    @classmethod
    def around(cls, precision: Floats, alpha: ArrayLike) -> Domain:
        """Domain around seen moments, when a share ``alpha`` is seen."""
        share = SHARE_SLACK * np.broadcast_to(np.asarray(alpha, dtype=float), len(precision))
        return cls(precision, least_variance(share), greatest_variance(share), mean_reach(share))

    def take(self, problems: NDArray[np.intp]) -> Domain:
        """Return the domains of some of the problems."""
        return Domain(
            self.precision[problems],
            self.least[problems],
            self.greatest[problems],
            self.reach[problems],
        )

    def start(self) -> Floats:
        """Natural parameters of the seen moments themselves, inside every domain."""
        batch, k, _ = self.precision.shape
        return np.concatenate([np.zeros((batch, k)), upper_entries(self.precision)], axis=1)

    def matrices(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Matrices, affine in θ, that are all positive definite inside the domain."""
        k = self.precision.shape[1]
        nu, T = theta[:, :k], from_upper(theta[:, k:], k)
        bordered = np.zeros((len(theta), k + 1, k + 1))
        bordered[:, 0, 0] = self.reach**2
        bordered[:, 0, 1:] = bordered[:, 1:, 0] = nu
        bordered[:, 1:, 1:] = T
        return (
            T - self.least[:, None, None] * self.precision,
            self.greatest[:, None, None] * self.precision - T,
            bordered,
        )

    def barrier(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """−Σ log det of the matrices, with gradient and Hessian; inf outside the domain."""
        batch, p = theta.shape
        k = self.precision.shape[1]
        if k == 1:
            return self._barrier_on_lines(*theta.T)
        f, g, H = np.zeros(batch), np.zeros((batch, p)), np.zeros((batch, p, p))
        inside = np.ones(batch, dtype=bool)
        for A, slopes in zip(self.matrices(theta), _slopes(k), strict=True):
            # Closer than rounding is outside: the inverse would be noise.
            values = np.linalg.eigvalsh(A)
            inside &= values[:, 0] > SINGULAR * np.abs(values[:, -1])
            safe = np.where(inside[:, None, None], A, np.eye(A.shape[1]))
            # ∂ log det A = tr(A⁻¹ A_m), ∂² log det A = −tr(A⁻¹ A_m A⁻¹ A_n)
            steps = np.einsum("bij,mjk->bmik", np.linalg.inv(safe), slopes)
            f -= np.linalg.slogdet(safe)[1]
            g -= np.einsum("bmii->bm", steps)
            H += np.einsum("bmij,bnji->bmn", steps, steps)
        f[~inside] = np.inf
        return f, g, H

    def _barrier_on_lines(self, nu: Floats, tau: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the barrier of problems in one column, whose matrices have closed forms.

        With a = τ − vC⁻¹, b = VC⁻¹ − τ and c = h²τ − ν² it is −log a − log b − log c.
        """
        p, h2 = self.precision[:, 0, 0], self.reach**2
        a, b, c = tau - self.least * p, self.greatest * p - tau, h2 * tau - nu * nu
        # Largest eigenvalue of the bordered matrix, whose determinant is c.
        largest = 0.5 * (h2 + tau + np.sqrt((h2 - tau) ** 2 + 4.0 * nu * nu))
        inside = (a > 0.0) & (b > 0.0) & (c > SINGULAR * largest**2)
        a, b, c = (np.where(inside, part, 1.0) for part in (a, b, c))
        c_nu, c_tau = -2.0 * nu / c, h2 / c
        g = np.stack([-c_nu, -1.0 / a + 1.0 / b - c_tau], axis=1)
        H = np.empty((len(nu), 2, 2))
        H[:, 0, 0] = 2.0 / c + c_nu**2
        H[:, 0, 1] = H[:, 1, 0] = c_nu * c_tau
        H[:, 1, 1] = a**-2 + b**-2 + c_tau**2
        return np.where(inside, -np.log(a) - np.log(b) - np.log(c), np.inf), g, H

    def on_edge(self, theta: Floats) -> NDArray[np.bool_]:
        """Whether each θ lies on the edge of its domain."""
        low, high, bordered = self.matrices(theta)
        k = self.precision.shape[1]
        # In units of C⁻¹, so that the answer does not depend on the units of the data.
        scale = np.linalg.inv(np.linalg.cholesky(self.precision))
        spans = self.greatest - self.least
        nearest = np.full(len(theta), np.inf)
        for A in (low, high):
            relative = scale @ A @ scale.transpose(0, 2, 1)
            margin = np.linalg.eigvalsh(relative)[:, 0]
            limit = np.minimum(spans, self.least) if A is low else spans
            nearest = np.minimum(nearest, margin / limit)
        nu, T = theta[:, :k], bordered[:, 1:, 1:]
        length = np.einsum("bi,bi->b", nu, np.linalg.solve(T, nu[:, :, None])[:, :, 0])
        nearest = np.minimum(nearest, 1.0 - length / self.reach**2)
        return nearest < EDGE_TOLERANCE

    def project(self, nu: Floats, T: Floats) -> tuple[Floats, Floats]:
        """Bring one point (ν, T) of the first problem back into its domain.

        T is brought between its bounds in the eigenbasis relative to C⁻¹, then ν is shortened.
        """
        L = np.linalg.cholesky(self.precision[0])
        inverse = np.linalg.inv(L)
        values, vectors = np.linalg.eigh(inverse @ (0.5 * (T + T.T)) @ inverse.T)
        values = np.clip(values, self.least[0], self.greatest[0])
        T = L @ (vectors * values) @ vectors.T @ L.T
        length = np.sqrt(nu @ np.linalg.solve(T, nu))
        return nu * min(1.0, self.reach[0] / max(length, 1e-300)), T


# Natural parameters are (ν, T_ij for i <= j), row by row. Of one or two columns that is the order of
# ``halfseen.theta``; of more it is another, in which the sums of ``truncated_sgd`` are rounded.
@cache
def upper_triangle(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the upper triangle of a k × k matrix, with its diagonal."""
    return np.triu_indices(k)


def upper_entries(T: Floats) -> Floats:
    """Upper triangle of each symmetric matrix, row by row."""
    i, j = upper_triangle(T.shape[-1])
    return T[..., i, j]


def from_upper(entries: Floats, k: int) -> Floats:
    """Return the symmetric matrices with these entries in their upper triangles."""
    T = np.empty((*entries.shape[:-1], k, k))
    i, j = upper_triangle(k)
    T[..., i, j] = T[..., j, i] = entries
    return T


@cache
def _slopes(k: int) -> tuple[Floats, Floats, Floats]:
    """Return the derivatives of the three matrices in each component of θ."""
    p = size_of(k)
    low = np.zeros((p, k, k))
    low[k:] = from_upper(np.eye(p - k), k)
    bordered = np.zeros((p, k + 1, k + 1))
    for i in range(k):
        bordered[i, 0, i + 1] = bordered[i, i + 1, 0] = 1.0
    bordered[k:, 1:, 1:] = low[k:]
    return low, -low, bordered
