"""Coordinates in which the likelihood is climbed, and the steps in them.

A chart is made at some mean and covariance, its origin. A free covariance L Lᵀ there has the coordinates
(a, B) of N(μ + L a, L (I + B) Lᵀ), in which complete rows say the same about every direction, however
near to singular the covariance is. Other structures have their own basis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.expectation import Moments
from halfseen.solvers.full_information.m_step import (
    HELD,
    CovarianceStructure,
    Free,
    MStep,
    bounds_of,
    singular,
)
from halfseen.theta import entries, pack, pack_slopes, stands_for, symmetric, triangle, unpack

Floats = NDArray[np.float64]

# Where all steps since the origin of the coordinates have changed a variance, in any direction, by this
# factor, complete rows say quite other things about it than there, and the place becomes the origin of
# new ones (on the edge of the domain after every step).
MOST_STRETCHED = 16.0
# How curved a structure is is found from moves of its parameters by so many standard errors of one
# complete row, up to so many of them.
BENT, MOST_BENT = 1e-4, 200


@dataclass(frozen=True)
class Chart:
    """Coordinates around a mean and a covariance.

    Parameters
    ----------
    m_step : MStep
    mean, covariance : arrays
        The origin.
    rows : int
        Of the table.
    """

    m_step: MStep
    mean: Floats
    covariance: Floats
    rows: int

    @cached_property
    def whitened(self) -> bool:
        """Whether all of the covariance is free, so that coordinates are (a, B)."""
        return isinstance(self.m_step.structure, Free)

    @cached_property
    def factor(self) -> Floats:
        """The Cholesky factor L of the covariance at the origin."""
        return np.asarray(np.linalg.cholesky(self.covariance))

    @cached_property
    def basis(self) -> Floats:
        """Derivatives of (μ, Σ_ij for i >= j) in the coordinates, for other structures."""
        return self.m_step.basis(self.covariance)

    @cached_property
    def _back(self) -> Floats:
        """What takes changes of (μ, Σ_ij for i >= j) to the nearest coordinates: B⁺."""
        return np.asarray(np.linalg.pinv(self.basis))

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return len(self.complete)

    @cached_property
    def fixed(self) -> int:
        """How many of the first coordinates do not move: those of a mean that is known."""
        return self.mean.size if self.whitened and self.m_step.mean is not None else 0

    @cached_property
    def complete(self) -> Floats:
        """Information of all rows, were they complete: a diagonal (whitened), or a matrix."""
        if self.whitened:
            d = self.mean.size
            whole = np.concatenate([np.ones(d), 0.5 * stands_for(d)])
            return self.rows * whole[self.fixed :]
        P = np.linalg.inv(self.covariance)
        return self.rows * information_along(0.5 * (P + P.T), self.basis)

    @cached_property
    def complete_inverse(self) -> Floats:
        """The inverse of ``complete``, of the same shape."""
        whole = self.complete
        first = 1.0 / whole if whole.ndim == 1 else np.linalg.inv(whole)
        return np.asarray(first, dtype=np.float64)

    @property
    def complete_matrix(self) -> Floats:
        """The same as a matrix."""
        return np.diag(self.complete) if self.complete.ndim == 1 else self.complete

    def information_times(self, direction: Floats) -> Floats:
        """Return the information of complete rows times a direction."""
        whole = self.complete
        return np.asarray(whole * direction if whole.ndim == 1 else whole @ direction)

    def moved(self, step: Floats) -> tuple[Floats, Floats]:
        """Return mean and covariance at some coordinates; the covariance need not be one."""
        d = self.mean.size
        if self.whitened:
            a, B = unpack(np.concatenate([np.zeros(self.fixed), step]), d)
            return self.mean + self.factor @ a, self.covariance + self.factor @ B @ self.factor.T
        a, change = unpack(self.basis @ step, d)
        return self.mean + a, self.covariance + change

    def stepped(self, mean: Floats, covariance: Floats, step: Floats) -> tuple[Floats, Floats]:
        """Return where a step leads from some place; the covariance need not be one.

        Under a curved structure from the place itself, not from its shadow on the tangent.
        """
        if self.whitened or self.m_step.structure.linear:
            return self.moved(self.coordinates(mean, covariance) + step)
        a, change = unpack(self.basis @ step, mean.size)
        return mean + a, covariance + change

    def coordinates(self, mean: Floats, covariance: Floats) -> Floats:
        """Return the coordinates of a mean and a covariance (the nearest, where they have none)."""
        if self.whitened:
            inner = self.whiten(covariance - self.covariance)
            a: Floats = np.asarray(np.linalg.solve(self.factor, mean - self.mean), dtype=np.float64)
            return pack(a, inner)[self.fixed :]
        change = pack(mean - self.mean, covariance - self.covariance)
        return np.asarray(self._back @ change)

    def score(self, moments: Moments, mean: Floats, covariance: Floats) -> Floats:
        """Return the derivative of the log-likelihood in the coordinates, from expected moments."""
        P = np.linalg.inv(covariance)
        of_mean, of_covariance = score_of(moments, mean, covariance, P, self.rows)
        if self.whitened:
            L = self.factor
            of_mean, of_covariance = L.T @ of_mean, L.T @ of_covariance @ L
        full = pack_slopes(of_mean, of_covariance)
        if self.whitened:
            return full[self.fixed :]
        if self.m_step.structure.linear:
            return np.asarray(self.basis.T @ full)
        return along_curve(self.basis, self.m_step.basis(covariance), full)

    def own_information(self, rows: Any, seed: int) -> Any:
        """Return the information, where these coordinates have a way of their own to find it."""
        return None

    def is_far(self, covariance: Floats) -> bool:
        """Whether complete rows say quite other things at a covariance than at the origin."""
        if not self.whitened and self.m_step.structure.linear:
            return False
        bounds = 0 if self.whitened else bounds_of(self.m_step.structure, covariance)
        if self.size + bounds != self.m_step.count(self.mean.size) or singular(covariance):
            return True
        ratio = np.linalg.eigvalsh(self.whiten(covariance))
        return bool(ratio[0] * MOST_STRETCHED < 1.0 or ratio[-1] > MOST_STRETCHED)

    def carried(self, pair: tuple[Floats, Floats], into: Chart) -> tuple[Floats, Floats]:
        """Return a step, and the fall of the score along it, in the coordinates of another chart.

        With T = L₂⁻¹ L₁ a step is (T a, T B Tᵀ) there; what a score says of it stays the same.
        """
        if not self.whitened:
            return carried_along(pair, self.basis, into.basis)
        T = np.linalg.solve(into.factor, self.factor)
        back, d = np.linalg.inv(T), self.mean.size
        step, fall = (unpack(np.concatenate([np.zeros(self.fixed), one]), d) for one in pair)
        moved = pack(T @ step[0], T @ step[1] @ T.T)
        # What ``pack_slopes`` put together, taken apart.
        slope = 0.5 * (fall[1] + np.diag(np.diag(fall[1])))
        fallen = pack_slopes(back.T @ fall[0], back.T @ slope @ back)
        return moved[self.fixed :], fallen[self.fixed :]

    def beyond_edge(self, score: Floats, covariance: Floats) -> Floats:
        """Return what a score says of going beyond the edge of the domain, as a basis of columns.

        Where eigenvalues of the correlations are held, nothing is to be gained from smaller ones,
        whatever the slope. These are the slopes of the eigenvalues that the score would make smaller,
        orthonormal in the metric of complete rows (which is that of Frobenius in B).
        """
        none = np.empty((score.size, 0))
        if not self.whitened:
            return none
        scale = np.sqrt(np.diag(covariance))
        values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
        low = values < HELD
        if not low.any():
            return none
        d = self.mean.size
        weight = frobenius_weights(d)
        inner = weight * score[d - self.fixed :]
        C = entries(self._eigenvalue_slopes(vectors[:, low], values[low], scale)) / weight
        gains, turn = np.linalg.eigh(C @ inner)
        turn = turn[:, gains < 0.0]
        C = np.einsum("abk,ap,bq->pqk", C, turn, turn, optimize=True)
        normals = np.linalg.qr(C[triangle(len(C))].T)[0]
        out = np.zeros((score.size, normals.shape[1]))
        out[d - self.fixed :] = normals
        return out

    def along_edge(self, score: Floats, beyond: Floats) -> Floats:
        """Return a score without what ``beyond_edge`` said."""
        if not beyond.shape[1]:
            return score
        d = self.mean.size
        weight = np.concatenate([np.ones(d - self.fixed), frobenius_weights(d)])
        inner = weight * score
        return np.asarray((inner - beyond @ (beyond.T @ inner)) / weight)

    def _eigenvalue_slopes(self, V: Floats, values: Floats, scale: Floats) -> Floats:
        """Return derivatives in B of V'RV, for eigenvectors V of the correlations R.

        With u = v/σ: u_a'Σu_b, less Σ_i v_ai v_bi Σ_ii/σ_i² times the average of both eigenvalues.
        """
        W = self.factor.T @ (V / scale[:, None])
        inner = self.factor / scale[:, None]
        products = W.T[:, None, :, None] * W.T[None, :, None, :]
        weights = 0.5 * (values[:, None] + values)[:, :, None] * V.T[:, None, :] * V.T[None, :, :]
        shrinking = np.einsum("abi,ij,ik->abjk", weights, inner, inner, optimize=True)
        return np.asarray(0.5 * (products + products.swapaxes(2, 3)) - shrinking)

    def spread(self, steps: Floats) -> Floats:
        """Take steps in coordinates, one a row, to those of (μ, Σ_ij for i >= j)."""
        if not self.whitened:
            return np.asarray(steps @ self.basis.T)
        d, L = self.mean.size, self.factor
        still = np.zeros((len(steps), self.fixed))
        a, B = unpack(np.concatenate([still, steps], axis=1), d)
        return pack(a @ L.T, L @ B @ L.T)

    def whiten(self, change: Floats) -> Floats:
        """Return L⁻¹ · L⁻ᵀ of a symmetric matrix, with L of the origin."""
        inner = np.linalg.solve(self.factor, np.linalg.solve(self.factor, change).T)
        return np.asarray(0.5 * (inner + inner.T))


def along_curve(origin: Floats, here: Floats, slopes: Floats) -> Floats:
    """Return derivatives in the coordinates of a chart from those in θ, where a structure is curved.

    Coordinates are the shadow of a place on the tangent at the origin: with bases B₀ there and B here, a
    move B u has the coordinates B₀⁺ B u. At a bound there are fewer of them here: there the origin is
    moved next, and until then its own tangent stands for that here.
    """
    if here.shape != origin.shape:
        return np.asarray(origin.T @ slopes)
    # (B₀⁺ B)⁻ᵀ = B₀ᵀ B₀ (Bᵀ B₀)⁻¹, with one product of bases.
    return np.asarray(origin.T @ (origin @ np.linalg.solve(here.T @ origin, here.T @ slopes)))


def bend(structure: CovarianceStructure, covariance: Floats, slopes: Floats) -> Floats:
    """Return what the curvature of a structure adds to second derivatives, along its basis.

    Σ_m g_m ∂²Σ_m in coordinates around a covariance, for derivatives g of the log-likelihood in
    (Σ_ij, i >= j): these vanish along the structure at a top, but not across it. From differences of
    the basis; none at a bound, where that changes.
    """
    d, basis = len(covariance), structure.basis(covariance)
    size = basis.shape[1]
    out = np.zeros((size, size))
    if structure.linear or bounds_of(structure, covariance) or size > MOST_BENT:
        return out
    P = np.linalg.inv(covariance)
    lengths = np.sqrt([0.5 * np.sum((P @ B) * (P @ B).T) for B in symmetric(basis.T, d)])
    for k, step in enumerate(BENT / lengths):
        change = step * symmetric(basis[:, k], d)
        up, down = (
            along_curve(basis, structure.basis(covariance + side * change), slopes)
            for side in (1.0, -1.0)
        )
        out[k] = (up - down) / (2.0 * step)
    return 0.5 * (out + out.T)


def carried_along(pair: tuple[Floats, Floats], one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return a step, and the fall of the score along it, on another tangent of the same structure."""
    moves = _shadow(other, one)
    return moves @ pair[0], np.asarray(np.linalg.solve(moves.T, pair[1]))


def _shadow(origin: Floats, here: Floats) -> Floats:
    """Return B₀⁺ B: bases have independent columns."""
    return np.asarray(np.linalg.solve(origin.T @ origin, origin.T @ here))


def chart_at(m_step: MStep, mean: Floats, covariance: Floats, rows: int) -> Chart:
    """Return the coordinates around a place: those that the step has of its own, or a ``Chart``."""
    return (m_step.chart_type or Chart)(m_step, mean, covariance, rows)


@dataclass(frozen=True)
class Curvature:
    """An estimate of the inverse of the information: a first one, and what steps showed since.

    Attributes
    ----------
    first : array of shape (q,) or (q, q)
        The inverse of an information, or its diagonal.
    pairs : sequence of pairs of arrays
        Steps, and by how much the score fell along them (Broyden, Fletcher, Goldfarb, Shanno).
    """

    first: Floats
    pairs: Sequence[tuple[Floats, Floats]] = ()

    def __matmul__(self, score: Floats) -> Floats:
        """Return the step that a score asks for (Nocedal's two loops)."""
        r, shares = score.copy(), []
        for step, fall in reversed(self.pairs):
            share = (step @ r) / (step @ fall)
            shares.append(share)
            r = r - share * fall
        r = self.first * r if self.first.ndim == 1 else self.first @ r
        for (step, fall), share in zip(self.pairs, reversed(shares), strict=True):
            r = r + step * (share - (fall @ r) / (step @ fall))
        return np.asarray(r)

    def gain(self, score: Floats) -> float:
        """Return the gain in log-likelihood that a score promises: ½ g' I⁻¹ g."""
        return float(0.5 * score @ (self @ score))


def conjugate_pairs(
    first: Curvature,
    score: Floats,
    fall: Callable[[Floats], Floats],
    most: int,
    enough: float,
) -> list[tuple[Floats, Floats]]:
    """Return directions that a score asks for, one after the other, and the fall of scores along them.

    Conjugate gradients on I x = g, with a first curvature in place of I⁻¹. With these pairs a
    ``Curvature`` knows I⁻¹ g, and I⁻¹ where it differs most from the first one.

    Parameters
    ----------
    first : Curvature
    score : array
        g, at the place where the information I is asked for.
    fall : callable
        Returns I times a direction.
    most : int
        Directions, at the most.
    enough : float
        When to stop: the share of the gain found that is still promised, by the first curvature.
    """
    pairs: list[tuple[Floats, Floats]] = []
    left, gained = score, 0.0
    direction = asked = first @ left
    promise = float(asked @ left)
    while promise > 0.0 and len(pairs) < most:
        fallen = fall(direction)
        curved = float(direction @ fallen)
        if not curved > 0.0:
            # No hill along this direction.
            break
        pairs.append((direction, fallen))
        gained += 0.5 * promise * promise / curved
        left = left - promise / curved * fallen
        asked = first @ left
        after = float(asked @ left)
        if 0.5 * after <= enough * gained:
            break
        direction = asked + after / promise * direction
        promise = after
    return pairs


def frobenius_weights(d: int) -> Floats:
    """Return what takes entries of B to coordinates in which lengths are those of Frobenius."""
    return np.sqrt(1.0 / stands_for(d))


def score_of(
    moments: Moments, mean: Floats, covariance: Floats, P: NDArray[np.floating[Any]], rows: int
) -> tuple[Floats, Floats]:
    """Return the derivatives of the log-likelihood in mean and covariance, with P = Σ⁻¹.

    P (E y − μ) for the mean and ½ P (E (y − μ)(y − μ)ᵀ − Σ) P for the covariance, of all rows (Fisher's
    identity).
    """
    of_mean = rows * (P @ (moments.first - mean))
    return of_mean, 0.5 * rows * (P @ (moments.about(mean) - covariance) @ P)


def packed_score(moments: Moments, mean: Floats, covariance: Floats, rows: int) -> Floats:
    """Return the derivative of the log-likelihood in (μ, Σ_ij for i >= j)."""
    return pack_slopes(*score_of(moments, mean, covariance, np.linalg.inv(covariance), rows))


def information_along(P: Floats, basis: Floats) -> Floats:
    """Information of one complete row about free parameters, of which ``basis`` has the derivatives.

    ½ tr(P B_k P B_l) for those that move the covariance by B_k. The whole information, of d⁴/4 numbers,
    would not fit in memory where a known covariance has hundreds of columns.
    """
    d = len(P)
    out = basis[:d].T @ P @ basis[:d]
    moving = np.flatnonzero(basis[d:].any(axis=0))
    B = symmetric(basis[d:, moving].T, d)
    products = 0.5 * (P @ B @ P).reshape(moving.size, d * d) @ B.reshape(moving.size, d * d).T
    out[np.ix_(moving, moving)] += 0.5 * (products + products.T)
    return np.asarray(out)
