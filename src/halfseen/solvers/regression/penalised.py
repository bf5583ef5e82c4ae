"""Regressions whose coefficients are pulled towards 0, by expectation maximisation.

With Γ = (α, B) in units in which every regressor has the variance 1 over the rows, and P the inverse of
the covariance of residuals, what is maximised is the log-likelihood of a row, on average, less

    ½ λ tr(P B Bᵀ)            (ridge)        or        λ Σ_j √P_jj Σ_t |B_jt|            (lasso).

So coefficients are measured against the residuals (1/√P_jj is the deviation of a residual given the
others), and λ has no unit. It also keeps the likelihood from growing for ever as residuals vanish, which
it does where there are as many regressors as rows (Städler, Bühlmann and van de Geer 2010). Intercepts,
and coefficients that are given, are not pulled.

A row is asked about its outcomes given its linear predictor η = Γ w alone, so a step costs as much
as one without regressors, and a pass over them. Given what rows say, the ridge is least squares with p
more rows, in which regressors are √(nλ) and outcomes 0; the lasso is one of scikit-learn's for each
outcome, and its pull on Σ is a tangent (√P_jj is concave). So no step lowers what is maximised.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.missingness.holes import SEEN, Holes, Inequalities
from halfseen.solvers.full_information.expectation import Parameters, Sampling
from halfseen.solvers.full_information.m_step import CovarianceStructure
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.regression.curvature import rows_of_block
from halfseen.solvers.regression.layout import Equations
from halfseen.solvers.regression.model import Penalty
from halfseen.solvers.regression.places import Place, Products

Floats = NDArray[np.float64]

# Points for each row that is sampled.
POINTS = 64
# Cycles of two steps and one beyond them, at most.
MOST_CYCLES = 2000
# Of scikit-learn's lasso: the duality gap as a share of the sum of squares, and passes over
# coefficients. Steps begin where the last one ended, so that what one leaves the next takes.
GAP, PASSES = 1e-12, 1000


class Expected(NamedTuple):
    """What rows say at some parameters: expected outcomes, how these scatter, log-likelihoods."""

    outcomes: Floats
    spread: Floats
    values: Floats


@dataclass(frozen=True, eq=False)
class Predicted:
    """Rows as outcomes beside their own predictors.

    Attributes
    ----------
    problem : Problem
        Outcomes, and then regressors X.
    equations : Equations
        In which X has the variance 1 over all rows.
    errors : CovarianceStructure
    n_jobs : int or None
    """

    problem: Problem
    equations: Equations
    errors: CovarianceStructure
    n_jobs: int | None

    def take(self, rows: NDArray[np.intp]) -> Predicted:
        """Return some of the rows."""
        return replace(self, problem=self.problem.take(rows))

    @cached_property
    def q(self) -> int:
        """How many outcomes there are."""
        return len(self.equations.scale)

    @cached_property
    def X(self) -> Floats:
        """Regressors."""
        return np.ascontiguousarray(self.problem.Y[:, self.q :])

    @cached_property
    def W(self) -> Floats:
        """A constant, and the regressors."""
        return np.hstack([np.ones((len(self.X), 1)), self.X])

    @cached_property
    def shares(self) -> Floats:
        """What each row counts, 1 in all."""
        n, weights = len(self.X), self.problem.weights
        return np.full(n, 1.0 / n) if weights is None else weights / weights.sum()

    @cached_property
    def ww(self) -> Floats:
        """The average of w wᵀ."""
        return np.asarray((self.W * self.shares[:, None]).T @ self.W)

    @cached_property
    def _rows(self) -> HeldRows:
        """Outcomes, a place for their predictors, and what inequalities say of regressors."""
        q, n = self.q, len(self.X)
        holes, bound = self.problem.holes, self.problem.holes.inequalities
        beside = np.zeros((n, q))
        if bound is not None:
            # In units of their own: they stand in the likelihood, and are taken out of it again.
            sums = self.X @ bound.V[:, q:].T
            size = np.maximum(np.sqrt((sums * sums).mean(axis=0)), 1e-300)
            V = np.hstack([bound.V[:, :q], np.zeros((len(size), q)), np.diag(size)])
            bound = Inequalities(V, bound.b, bound.sign, bound.owner)
            beside = np.hstack([beside, sums / size])
        index = np.hstack([holes.index[:, :q], np.full(beside.shape, SEEN, dtype=np.int32)])
        problem = replace(
            self.problem,
            Y=np.hstack([self.problem.Y[:, :q], beside]),
            holes=Holes(index, holes.sets, holes.set_column, bound),
            centre=np.zeros(q + beside.shape[1]),
            scale=np.ones(q + beside.shape[1]),
            names=tuple(map(str, range(q + beside.shape[1]))),
            weights=None,
        )
        return HeldRows(problem, self.n_jobs)

    def _place(self, residual: Floats) -> Place:
        """Return the law of outcomes given their own predictors."""
        d = self._rows.problem.Y.shape[1]
        return Place(np.eye(self.q, 1 + d - self.q, 1), residual)

    def ask(self, place: Place, order: Parameters | None, sampling: Sampling) -> Expected:
        """Return what the rows say of complete outcomes."""
        rows, q = self._rows, self.q
        eta = self.W @ place.coefficients.T
        rows.problem.Y[:, q : 2 * q] = eta
        own = self._place(place.residual)
        sampling = sampling._replace(order=order if rows.overview.sampled else None)
        said = list(rows.each(rows_of_block, own.parameters(), sampling, own))
        known = rows.problem.Y[:, q:]
        of_known = 0.5 * (known * known).sum(axis=1)
        of_known += 0.5 * known.shape[1] * math.log(2.0 * math.pi)
        return Expected(
            eta + np.concatenate([one.residual for one in said]),
            np.tensordot(self.shares, np.concatenate([one.spread for one in said]), axes=1),
            np.concatenate([one.value for one in said]) + of_known,
        )

    @cached_property
    def equations_of_lasso(self) -> list[LassoEquation]:
        """What the lasso of each outcome needs to know."""
        return [LassoEquation.of(self, j) for j in range(self.q)]

    def order_at(self, place: Place) -> Parameters:
        """Return parameters at which cells are put in order."""
        return self._place(place.residual).parameters()

    def products(self, said: Expected) -> Products:
        """Return averages of products of complete rows."""
        weighted = self.shares[:, None] * said.outcomes
        return Products(self.ww, weighted.T @ self.W, weighted.T @ said.outcomes + said.spread)


class Climbed(NamedTuple):
    """Where a climb ended."""

    place: Place
    value: float
    steps: int
    settled: bool


@dataclass(frozen=True, eq=False)
class PenalisedClimb:
    """The climb to the top of the penalised likelihood of some rows.

    Attributes
    ----------
    rows : Predicted
    penalty : Penalty
        With a strength.
    order : Parameters
        At which cells of rows that are sampled are put in order.
    """

    rows: Predicted
    penalty: Penalty
    order: Parameters

    @property
    def strength(self) -> float:
        """λ."""
        assert self.penalty.strength is not None
        return self.penalty.strength

    def pulled(self, place: Place) -> Floats:
        """Return the slopes that are pulled towards 0: less what is given."""
        return np.asarray(place.coefficients[:, 1:] - self.rows.equations.terms.offset[:, 1:])

    def cost(self, place: Place) -> float:
        """Return the penalty."""
        P, B = np.linalg.inv(place.residual), self.pulled(place)
        if self.penalty.kind == "ridge":
            return 0.5 * self.strength * float((P * (B @ B.T)).sum())
        return self.strength * float(np.sqrt(np.diag(P)) @ np.abs(B).sum(axis=1))

    def step(self, place: Place) -> tuple[Place, float]:
        """Return where a step leads, and what is maximised at its beginning."""
        said = self.rows.ask(place, self.order, Sampling(POINTS, 0))
        value = float(self.rows.shares @ said.values) - self.cost(place)
        products = self.rows.products(said)
        if self.penalty.kind == "ridge":
            return self._ridge(place, products), value
        return self._lasso(place, products, said), value

    def _ridge(self, place: Place, products: Products) -> Place:
        """Least squares with a row more for each regressor, in which outcomes are what is given."""
        terms, pull = self.rows.equations.terms, self.strength
        given = terms.offset[:, 1:]
        ww, yw = products.ww.copy(), products.yw.copy()
        ww[1:, 1:] += pull * np.eye(len(ww) - 1)
        yw[:, 1:] += pull * given
        more = Products(ww, yw, products.yy + pull * given @ given.T)
        coefficients = terms.least_squares(more, np.asarray(np.linalg.inv(place.residual)))
        residual = self.rows.errors.solve(more.scatter(coefficients), len(self.rows.X))
        return Place(coefficients, residual)

    def _lasso(self, place: Place, products: Products, said: Expected) -> Place:
        P = np.linalg.inv(place.residual)
        coefficients = place.coefficients.copy()
        for j in range(self.rows.q):
            across = P[j] / P[j, j]
            left = said.outcomes - self.rows.W @ coefficients.T
            target = said.outcomes[:, j] + left @ across - left[:, j]
            target -= self.rows.W @ self.rows.equations.terms.offset[j]
            # The pull in units of this outcome: λ over the root of P_jj.
            pull = self.strength / math.sqrt(P[j, j])
            coefficients[j] = self.rows.equations_of_lasso[j].solve(target, coefficients[j], pull)
        tangent = self.strength * np.abs(self.pulled(Place(coefficients, place.residual))).sum(
            axis=1
        )
        scatter = products.scatter(coefficients) + np.diag(tangent / np.sqrt(np.diag(P)))
        return Place(coefficients, self.rows.errors.solve(scatter, len(self.rows.X)))

    def least_without_slopes(self, place: Place) -> float:
        """Return the least pull of a lasso that leaves no slope, where there is none."""
        said = self.rows.ask(place, self.order, Sampling(POINTS, 0))
        P = np.linalg.inv(place.residual)
        left = (said.outcomes - self.rows.W @ place.coefficients.T) @ P
        each = [
            np.abs(one.Z.T @ (one.root * left[:, j])).max(initial=0.0) / math.sqrt(P[j, j])
            for j, one in enumerate(self.rows.equations_of_lasso)
        ]
        return max(each) / len(left)

    def climb(self, place: Place, enough: float) -> Climbed:
        """Repeat steps until one gains less than enough, in all rows.

        Two steps show how far they still would lead if each were a share of the one before (Varadhan and
        Roland 2008). What lies there is taken where it is higher.
        """
        n, steps = len(self.rows.X), 0
        for _ in range(MOST_CYCLES):
            first, value = self.step(place)
            second, after = self.step(first)
            steps += 2
            if n * (after - value) < enough:
                return Climbed(second, after, steps, True)
            place, beyond = second, extrapolated(place, first, second)
            if beyond is not None:
                steps += 1
                ahead, there = self.step(beyond)
                if there >= after:
                    place = ahead
        return Climbed(place, after, steps, False)


def extrapolated(place: Place, first: Place, second: Place) -> Place | None:
    """Return where two steps lead to in the end; None where that is no place, or no further."""
    a, b, c = (np.concatenate([one.coefficients.ravel(), one.residual.ravel()])
               for one in (place, first, second))  # fmt: skip
    turn = (c - b) - (b - a)
    if not turn.any():
        return None
    length = float(np.linalg.norm(b - a) / np.linalg.norm(turn))
    if not length > 1.0:
        return None
    far = a + 2.0 * length * (b - a) + length * length * turn
    cut = place.coefficients.size
    residual = far[cut:].reshape(place.residual.shape)
    if np.linalg.eigvalsh(residual)[0] <= 0.0:
        return None
    return Place(far[:cut].reshape(place.coefficients.shape), residual)


@dataclass(frozen=True, eq=False)
class LassoEquation:
    """The lasso of one outcome on its own regressors, on the scale on which these have the variance 1.

    Attributes
    ----------
    Z : array of shape (n, m)
        The regressors that are pulled, times roots of what rows count; without their means where there
        is an intercept.
    gram : array of shape (m, m)
    means : array of shape (m,)
    root : array of shape (n,)
    columns : array of shape (m,)
        Where they stand in (1, X).
    place : array of shape (m,)
        What they are worth in the intercept of (1, X) where there is none of their own.
    constant : bool
        Whether there is an intercept.
    given : array of shape (1 + p,)
        What the coefficients that are not learned add up to.
    """

    Z: Floats
    gram: Floats
    means: Floats
    root: Floats
    columns: NDArray[np.intp]
    place: Floats
    constant: bool
    given: Floats

    @classmethod
    def of(cls, rows: Predicted, j: int) -> LassoEquation:
        """Take them from the equations."""
        equations = rows.equations
        own = equations.T[:, equations.free[j]]
        varies = own[1:].any(axis=0)
        slopes = own[:, varies]
        # A regressor is a column of X times its deviation, and its mean.
        columns = np.abs(slopes[1:]).argmax(axis=0)
        deviation = slopes[1 + columns, np.arange(slopes.shape[1])]
        place, constant = slopes[0] / deviation, bool((~varies).any())
        root = np.sqrt(len(rows.X) * rows.shares)
        Z = rows.X[:, columns] + (0.0 if constant else place)
        means = rows.shares @ Z if constant else np.zeros(len(columns))
        Z = np.asfortranarray(root[:, None] * (Z - means))
        given = equations.terms.offset[j]
        return cls(Z, Z.T @ Z, means, root, 1 + columns, place, constant, given)

    def solve(self, target: Floats, before: Floats, pull: float) -> Floats:
        """Return the coefficients of (1, X) that are best for an outcome, starting from others.

        ``target`` has no part in it that is given.
        """
        # Late: with it come a hundred megabytes, which few regressions need.
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import lasso_path

        out, at = self.given.copy(), self.columns
        centre = float(self.root @ (self.root * target)) / len(target) if self.constant else 0.0
        slopes = before[at] - self.given[at]
        if at.size:
            y = self.root * (target - centre)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                slopes = lasso_path(
                    self.Z, y, alphas=[pull], precompute=self.gram, Xy=self.Z.T @ y,
                    coef_init=slopes, tol=GAP, max_iter=PASSES,
                )[1][:, 0]  # fmt: skip
        out[at] += slopes
        out[0] += centre - self.means @ slopes if self.constant else self.place @ slopes
        return out
