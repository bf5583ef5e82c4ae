"""What a regression is to learn, and the same as the engine has it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.m_step import CovarianceStructure, Free
from halfseen.solvers.full_information.rows import HeldRows, Rows
from halfseen.solvers.regression.entries import Entries
from halfseen.solvers.regression.facts import Tally, tally
from halfseen.solvers.regression.layout import Equations, Regressors, with_covariates
from halfseen.solvers.regression.outcomes import Outcomes
from halfseen.solvers.regression.step import RegressionStep
from halfseen.solvers.structures import InUnits, Structure

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


PENALTIES = ("ridge", "lasso")


class Penalty(NamedTuple):
    """What pulls coefficients towards 0.

    Attributes
    ----------
    kind : {"ridge", "lasso"}
    strength : float or None
        None where it is to be chosen.
    """

    kind: str
    strength: float | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """What is to be learned.

    Attributes
    ----------
    outcomes : Outcomes
    terms : tuple of str
    W : array of shape (n, k)
        Regressors, without the columns that rules alone speak of.
    mask : boolean array of shape (q, k)
        Which terms stand in which equation.
    fixed : array of shape (q, k)
        Coefficients that are given; NaN elsewhere.
    free : boolean array of shape (q, q)
        Which entries of the covariance of residuals are learned.
    given : array of shape (q, q)
        The others.
    ties : array or None
        Of ``Equations``.
    row_weights : array of shape (n,) or None
        What each row counts, 1 on average.
    penalty : Penalty or None
    structure : Structure or None
        What the covariance of residuals may be, where that is not told by ``free``.
    """

    outcomes: Outcomes
    terms: tuple[str, ...]
    W: Floats
    mask: Mask
    fixed: Floats
    free: Mask
    given: Floats
    ties: Floats | None = None
    row_weights: Floats | None = None
    penalty: Penalty | None = None
    structure: Structure | None = None

    def equations(self, T: Floats, centre: Floats, scale: Floats) -> Equations:
        """Return what coefficients are in the units of the engine; T is that of ``Regressors``."""
        # Columns that rules alone speak of come last, and stand in no equation.
        wide = ((0, 0), (0, T.shape[1] - len(self.terms)))
        mask, fixed = np.pad(self.mask, wide), np.pad(self.fixed, wide, constant_values=np.nan)
        return Equations(T, mask, fixed, self.ties, centre, scale)


@dataclass(frozen=True, eq=False)
class Setup:
    """A model as the engine has it.

    Attributes
    ----------
    rows : Rows
    equations : Equations
    step : RegressionStep
    seen : array of shape (q,)
        Rows in which the value of an outcome is seen.
    together : array of shape (q, q)
        Rows that say something of both of two outcomes.
    squares : float
        Of covariates, added up over the rows.
    cuts : dict
        Cut points of ordered outcomes, as the holes of the rows have them.
    """

    rows: Rows
    equations: Equations
    step: RegressionStep
    seen: Floats
    together: Floats
    squares: float
    cuts: dict[str, Floats]

    @classmethod
    def of(cls, model: Model, n_jobs: int | None) -> Setup:
        """Bring outcomes and regressors into the units of the engine."""
        problem, q = model.outcomes.problem(), len(model.outcomes.names)
        problem = replace(problem, weights=model.row_weights)
        units = problem.centre[:q], problem.scale[:q]
        carried = model.outcomes.carried
        more = np.empty((len(model.W), 0)) if carried is None else carried.values
        read = Regressors.of if model.penalty is None else Regressors.scaled
        regressors = read(np.hstack([model.W, more]), model.row_weights)
        equations = model.equations(regressors.T, *units)
        rows = HeldRows(with_covariates(problem, regressors.X, regressors.T, q), n_jobs)
        return cls.around(model, rows, equations, model.outcomes.first_cuts())

    @classmethod
    def around(
        cls, model: Model, rows: Rows, equations: Equations, cuts: dict[str, Floats]
    ) -> Setup:
        """Put rows and equations together, and count in the rows."""
        rows.check()
        q, about = len(model.outcomes.names), rows.overview
        step = RegressionStep.of(equations.terms, _errors(model, equations.scale))
        counted: Tally = rows.look(tally, q)
        seen, squares = about.shape[0] - about.hidden[:q], counted.squares
        if isinstance(rows, HeldRows) and rows.weights is not None:
            seen = rows.weights @ ~rows.problem.hidden[:, :q]
            squares = float(rows.weights @ (rows.problem.Y[:, q:] ** 2).sum(axis=1))
        return cls(rows, equations, step, seen, counted.together, squares, cuts)


def _errors(model: Model, scale: Floats) -> CovarianceStructure:
    """Return what the covariance of residuals may be, in the units of the engine."""
    if model.structure is not None:
        return InUnits.of(model.structure, scale)
    if model.free.all():
        return Free()
    return Entries(model.free, model.given / np.outer(scale, scale))
