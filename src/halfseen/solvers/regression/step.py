"""How coefficients and the covariance of residuals move, given expected moments of complete rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from halfseen.seeds import Purpose
from halfseen.solvers.full_information.charts import (
    MOST_STRETCHED,
    Chart,
    along_curve,
    bend,
    carried_along,
)
from halfseen.solvers.full_information.expectation import Moments, Sampling
from halfseen.solvers.full_information.information import (
    Information,
    can_inform,
    information,
    whole_information,
)
from halfseen.solvers.full_information.m_step import (
    CovarianceStructure,
    Free,
    MStep,
    bounds_of,
    with_floor,
)
from halfseen.solvers.full_information.rows import Rows
from halfseen.solvers.regression.curvature import observed_information
from halfseen.solvers.regression.places import Place, Products, Terms, split
from halfseen.solvers.structures.base import information_of_covariance
from halfseen.theta import entries, pack, pack_slopes, stands_for, symmetric, unpack

Floats = NDArray[np.float64]

# Rounds of generalised least squares with the covariance of residuals found anew, and when coefficients
# and covariance are close enough.
MOST_ROUNDS, CLOSE_ENOUGH = 200, 1e-10
# With more outcomes than these Louis' identity is cheaper than to move each of their covariances.
MOST_MOVED = 3
# Points of sampled rows that say how a structure of residuals bends.
BEND_POINTS = 64


@dataclass(frozen=True)
class Conditional:
    """What the engine is told of the covariance of outcomes and covariates: that it is not free."""

    errors: CovarianceStructure
    name: ClassVar[str] = "regression"
    regularised: ClassVar[bool] = False
    linear: ClassVar[bool] = False

    def solve(self, S: Floats, rows: int) -> Floats:
        """Refuse: it is found together with the coefficients, by ``RegressionStep``."""
        raise TypeError("the covariance of a regression is found together with its coefficients.")

    def basis(self, covariance: Floats) -> Floats:
        """Coordinates are those of ``RegressionChart``."""
        raise TypeError("a regression has coordinates of its own.")

    def count(self, d: int) -> int:
        """Return how many parameters residuals have, d being the number of outcomes."""
        return self.errors.count(d)


@dataclass(frozen=True)
class RegressionStep(MStep):
    """Coefficients and the covariance of residuals from expected moments of complete rows.

    Attributes
    ----------
    terms : Terms
    errors : CovarianceStructure
        What the covariance of residuals may be.
    """

    terms: Terms | None = None
    errors: CovarianceStructure | None = None

    @classmethod
    def of(cls, terms: Terms, errors: CovarianceStructure) -> RegressionStep:
        """Put both together."""
        return cls(Conditional(errors), terms=terms, errors=errors)

    @property
    def parts(self) -> tuple[Terms, CovarianceStructure]:
        """Terms and structure of the residuals."""
        assert self.terms is not None
        assert self.errors is not None
        return self.terms, self.errors

    @property
    def outcomes(self) -> int:
        """How many columns are outcomes; the others are covariates."""
        return len(self.parts[0].offset)

    def solve(self, moments: Moments, rows: int) -> tuple[Floats, Floats]:
        """Return mean and covariance of the regression that fits best.

        Generalised least squares and the covariance of its residuals in turn, until both stand still;
        at once where every coefficient is free.
        """
        terms, errors = self.parts
        products = Products.of(moments, self.outcomes)
        P: Floats = np.eye(self.outcomes)
        before = np.full(terms.offset.shape, np.inf)
        for _ in range(MOST_ROUNDS):
            coefficients = terms.least_squares(products, P)
            residual = errors.solve(products.scatter(coefficients), rows)
            if terms.basis is None or np.abs(coefficients - before).max() < CLOSE_ENOUGH:
                break
            P, before = np.asarray(np.linalg.inv(residual)), coefficients
        return Place(coefficients, residual).joined()

    def admit(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return the nearest regression of this kind."""
        here = split(mean, covariance, self.outcomes)
        mean, covariance = Place(here.coefficients, with_floor(here.residual)).joined()
        moments = Moments(mean, covariance + np.outer(mean, mean))
        return self.solve(moments, 1)

    def basis(self, covariance: Floats) -> Floats:
        """Coordinates are those of ``RegressionChart``."""
        raise TypeError("a regression has coordinates of its own.")

    def scatter(self, covariance: Floats) -> Floats:
        """Return the covariance of residuals, however much the regressors explain."""
        B = covariance[: self.outcomes, self.outcomes :]
        return split(np.zeros(len(covariance)), covariance, len(B)).residual

    def bounds(self, covariance: Floats) -> int:
        """Count the parameters of the covariance of residuals that are at a bound."""
        return bounds_of(self.parts[1], self.scatter(covariance))

    def count(self, d: int) -> int:
        """Return how many parameters are free."""
        terms, errors = self.parts
        return terms.count + errors.count(self.outcomes)


@dataclass(frozen=True)
class RegressionChart(Chart):
    """Coordinates of the coefficients, and then of the covariance of residuals.

    With L Lᵀ the covariance of residuals at the origin, these are b of Γ + L b where every
    coefficient is free and β of ``Terms`` elsewhere, and B of L (I + B) Lᵀ where that covariance
    is free and those of its structure elsewhere.
    """

    m_step: RegressionStep

    @cached_property
    def whitened(self) -> bool:
        """Not in the sense of a ``Chart``."""
        return False

    @cached_property
    def origin(self) -> Place:
        """Coefficients and covariance of residuals at the origin."""
        return split(self.mean, self.covariance, self.m_step.outcomes)

    @cached_property
    def root(self) -> Floats:
        """The Cholesky factor of the covariance of residuals."""
        return np.asarray(np.linalg.cholesky(self.origin.residual))

    @property
    def free_terms(self) -> bool:
        """Whether every coefficient is free."""
        return self.m_step.parts[0].basis is None

    @property
    def free_errors(self) -> bool:
        """Whether every entry of the covariance of residuals is free."""
        return isinstance(self.m_step.parts[1], Free)

    @cached_property
    def errors_basis(self) -> Floats:
        """Directions in which the covariance of residuals moves, where it has a structure."""
        return self.m_step.parts[1].basis(self.origin.residual)

    @cached_property
    def complete(self) -> Floats:
        """Information of all rows, were they complete."""
        terms, q = self.m_step.parts[0], self.m_step.outcomes
        P = np.linalg.inv(self.origin.residual)
        P = 0.5 * (P + P.T)
        if self.free_terms and self.free_errors:
            return self.rows * np.concatenate([np.ones(terms.count), 0.5 * stands_for(q)])
        ww = np.eye(terms.offset.shape[1])
        first = np.eye(terms.count) if self.free_terms else terms.information(P, ww)
        if self.free_errors:
            second = np.diag(0.5 * stands_for(q))
        else:
            second = information_of_covariance(P, self.errors_basis)
        return np.asarray(self.rows * block_diag(first, second))

    def unpacked(self, step: Floats) -> Place:
        """Return by how much a step changes coefficients and covariance of residuals."""
        terms, q = self.m_step.parts[0], self.m_step.outcomes
        one, other = step[: terms.count], step[terms.count :]
        if self.free_terms:
            change = self.root @ one.reshape(terms.offset.shape)
        else:
            change = terms.at(one) - terms.offset
        if self.free_errors:
            return Place(change, self.root @ symmetric(other, q) @ self.root.T)
        return Place(change, symmetric(self.errors_basis @ other, q))

    def moved(self, step: Floats) -> tuple[Floats, Floats]:
        """Return mean and covariance at some coordinates; the covariance need not be one."""
        change = self.unpacked(step)
        here = self.origin
        return Place(here.coefficients + change[0], here.residual + change[1]).joined()

    def stepped(self, mean: Floats, covariance: Floats, step: Floats) -> tuple[Floats, Floats]:
        """Return where a step leads from some place; the covariance need not be one."""
        if self.m_step.parts[1].linear:
            return self.moved(self.coordinates(mean, covariance) + step)
        change, here = self.unpacked(step), split(mean, covariance, self.m_step.outcomes)
        return Place(here.coefficients + change[0], here.residual + change[1]).joined()

    def coordinates(self, mean: Floats, covariance: Floats) -> Floats:
        """Return the coordinates of a mean and a covariance (the nearest, where they have none)."""
        there, here = split(mean, covariance, self.m_step.outcomes), self.origin
        change = there.coefficients - here.coefficients
        if self.free_terms:
            first = np.linalg.solve(self.root, change).ravel()
        else:
            terms = self.m_step.parts[0]
            first = terms.of(change + terms.offset)
        moved = there.residual - here.residual
        if self.free_errors:
            return np.concatenate([first, entries(self._inner(moved))])
        second = np.linalg.lstsq(self.errors_basis, entries(moved), rcond=None)[0]
        return np.concatenate([first, second])

    def _inner(self, change: Floats) -> Floats:
        """Return L⁻¹ · L⁻ᵀ of a change of the covariance of residuals."""
        inner = np.linalg.solve(self.root, np.linalg.solve(self.root, change).T)
        return np.asarray(0.5 * (inner + inner.T))

    def score(self, moments: Moments, mean: Floats, covariance: Floats) -> Floats:
        """Return the derivative of the log-likelihood in the coordinates, from expected moments.

        Σ_e⁻¹ (E y wᵀ − Γ w wᵀ) for Γ and ½ Σ_e⁻¹ (E e eᵀ − Σ_e) Σ_e⁻¹ for Σ_e, of all rows.
        """
        place = split(mean, covariance, self.m_step.outcomes)
        products = Products.of(moments, self.m_step.outcomes)
        P = np.linalg.inv(place.residual)
        of_terms = self.rows * (P @ (products.yw - place.coefficients @ products.ww))
        scatter = products.scatter(place.coefficients)
        of_errors = 0.5 * self.rows * (P @ (scatter - place.residual) @ P)
        if self.free_terms:
            first = (self.root.T @ of_terms).ravel()
        else:
            first = self.m_step.parts[0].slopes(of_terms)
        if self.free_errors:
            second = pack_slopes(np.empty(0), self.root.T @ of_errors @ self.root)
        else:
            second = self._of_structure(pack_slopes(np.empty(0), of_errors), place.residual)
        return np.concatenate([first, second])

    def _of_structure(self, slopes: Floats, residual: Floats) -> Floats:
        """Return derivatives in the coordinates of a structured covariance of residuals."""
        errors = self.m_step.parts[1]
        if errors.linear:
            return np.asarray(self.errors_basis.T @ slopes)
        return along_curve(self.errors_basis, errors.basis(residual), slopes)

    def own_information(self, rows: Rows, seed: int) -> Information:
        """Return the observed information about the coordinates, at the origin."""
        q = self.m_step.outcomes
        d = self.mean.size
        unrestricted = self.free_terms and self.free_errors
        whole = unrestricted and rows.weights is None
        if whole and q > MOST_MOVED and can_inform(MStep(Free()), d):
            return whole_information(self, self._of_joint_law(rows, seed), False)
        basis = np.eye(q * (q + 1) // 2) if self.free_errors else self.errors_basis
        seen = observed_information(rows, self.origin, basis, seed)
        into = self._derivatives()
        seen = into.T @ seen @ into
        if not self.m_step.parts[1].linear:
            place = self.origin
            more = bend(self.m_step.parts[1], place.residual, self._slopes_of_errors(rows, seed))
            start = len(seen) - len(more)
            seen[start:, start:] -= more
        return whole_information(self, seen, not rows.overview.sampled)

    def _slopes_of_errors(self, rows: Rows, seed: int) -> Floats:
        """Return the derivatives of the log-likelihood in (Σ_e,ij, i >= j), at the origin."""
        at = self.origin.parameters() if rows.overview.sampled else None
        sampling = Sampling(BEND_POINTS, seed, 0, Purpose.INFORMATION, at)
        moments, _ = rows.expect(self.mean, self.covariance, sampling)
        scatter = Products.of(moments, self.m_step.outcomes).scatter(self.origin.coefficients)
        P = np.linalg.inv(self.origin.residual)
        slopes = 0.5 * self.rows * (P @ (scatter - self.origin.residual) @ P)
        return pack_slopes(np.empty(0), slopes)

    def _of_joint_law(self, rows: Rows, seed: int) -> Floats:
        """Return the information from that about mean and covariance of outcomes and covariates.

        Where nothing is restricted the score of the joint law is 0 too, so that coordinates may be
        changed by their derivatives alone.
        """
        joint = Chart(MStep(Free()), self.mean, self.covariance, self.rows)
        known = information(rows, joint, seed)
        back = np.linalg.inv(known.directions)
        size = self.complete.shape[0]
        moves = self.spread(np.eye(size))
        places = (unpack(move, self.mean.size) for move in moves)
        into = np.stack(
            [joint.coordinates(self.mean + a, self.covariance + b) for a, b in places], axis=1
        )
        root = back @ into
        return np.asarray(root.T @ ((1.0 - known.missing)[:, None] * root))

    def _derivatives(self) -> Floats:
        """Return derivatives of Γ, row by row, and of the directions of Σ_e in the coordinates."""
        terms = self.m_step.parts[0]
        k = terms.offset.shape[1]
        first = np.kron(self.root, np.eye(k)) if terms.basis is None else terms.basis
        first = np.asarray(first, dtype=np.float64)
        if not self.free_errors:
            return block_diag(first, np.eye(self.errors_basis.shape[1]))
        return block_diag(first, self.errors_derivatives)

    @cached_property
    def errors_derivatives(self) -> Floats:
        """Derivatives of (Σ_e,ij for i >= j) in the coordinates of the covariance of residuals."""
        if not self.free_errors:
            return self.errors_basis
        q = self.m_step.outcomes
        units = np.eye(q * (q + 1) // 2)
        moved = [entries(self.root @ symmetric(one, q) @ self.root.T) for one in units]
        return np.stack(moved, axis=1)

    def is_far(self, covariance: Floats) -> bool:
        """Whether variances of residuals, in some direction, are quite others than at the origin."""
        there = split(self.mean, covariance, self.m_step.outcomes).residual
        if self.size + bounds_of(self.m_step.parts[1], there) != self.m_step.count(self.mean.size):
            return True
        ratio = np.linalg.eigvalsh(self._inner(there))
        return bool(ratio[0] * MOST_STRETCHED < 1.0 or ratio[-1] > MOST_STRETCHED)

    def carried(self, pair: tuple[Floats, Floats], into: Chart) -> tuple[Floats, Floats]:
        """Return a step, and the fall of the score along it, in the coordinates of another chart."""
        assert isinstance(into, RegressionChart)
        T = np.linalg.solve(into.root, self.root)
        back, k = np.linalg.inv(T), self.m_step.parts[0].count
        (one, other), (fall_one, fall_other) = ((a[:k], a[k:]) for a in pair)
        shape, q = self.m_step.parts[0].offset.shape, len(T)
        if self.free_terms:
            one = (T @ one.reshape(shape)).ravel()
            fall_one = (back.T @ fall_one.reshape(shape)).ravel()
        if self.free_errors:
            other = entries(T @ symmetric(other, q) @ T.T)
            fall = symmetric(fall_other, q)
            slope = 0.5 * (fall + np.diag(np.diag(fall)))
            fall_other = pack_slopes(np.empty(0), back.T @ slope @ back)
        elif not self.m_step.parts[1].linear:
            pair = other, fall_other
            other, fall_other = carried_along(pair, self.errors_basis, into.errors_basis)
        return np.concatenate([one, other]), np.concatenate([fall_one, fall_other])

    def spread(self, steps: Floats) -> Floats:
        """Take steps in coordinates, one a row, to those of (μ, Σ_ij for i >= j)."""
        d, q = self.mean.size, self.m_step.outcomes
        out = np.empty((len(steps), d + d * (d + 1) // 2))
        B = self.origin.coefficients[:, 1:]
        for row, step in zip(out, steps, strict=True):
            change = self.unpacked(step)
            of_mean, of_covariance = np.zeros(d), np.zeros((d, d))
            of_mean[:q] = change.coefficients[:, 0]
            across = change.coefficients[:, 1:]
            of_covariance[:q, q:], of_covariance[q:, :q] = across, across.T
            of_covariance[:q, :q] = across @ B.T + B @ across.T + change.residual
            row[:] = pack(of_mean, of_covariance)
        return out


RegressionStep.chart_type = RegressionChart
