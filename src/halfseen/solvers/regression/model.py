"""What a regression is to learn, and the same as the engine has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.m_step import CovarianceStructure, Free
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.regression.entries import Entries
from halfseen.solvers.regression.layout import Equations, Regressors, with_covariates
from halfseen.solvers.regression.outcomes import Outcomes
from halfseen.solvers.regression.step import RegressionStep
from halfseen.solvers.structures import InUnits, Structure

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


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
    structure: Structure | None = None


@dataclass(frozen=True, eq=False)
class Setup:
    """A model as the engine has it."""

    rows: HeldRows
    equations: Equations
    step: RegressionStep
    seen: NDArray[np.intp]

    @classmethod
    def of(cls, model: Model, n_jobs: int | None) -> Setup:
        """Bring outcomes and regressors into the units of the engine."""
        problem, q = model.outcomes.problem(), len(model.outcomes.names)
        units = problem.centre[:q], problem.scale[:q]
        carried = model.outcomes.carried
        # Columns that rules alone speak of stand in no equation.
        more = np.empty((len(model.W), 0)) if carried is None else carried.values
        regressors = Regressors.of(np.hstack([model.W, more]))
        mask = np.pad(model.mask, ((0, 0), (0, more.shape[1])))
        fixed = np.pad(model.fixed, ((0, 0), (0, more.shape[1])), constant_values=np.nan)
        equations = Equations(regressors.T, mask, fixed, model.ties, *units)
        names = tuple(f"regressor {k}" for k in range(regressors.X.shape[1]))
        rows = HeldRows(with_covariates(problem, regressors.X, names, q), n_jobs)
        rows.check()
        step = RegressionStep.of(equations.terms, _errors(model, units[1]))
        return cls(rows, equations, step, (~problem.hidden[:, :q]).sum(axis=0))


def _errors(model: Model, scale: Floats) -> CovarianceStructure:
    """Return what the covariance of residuals may be, in the units of the engine."""
    if model.structure is not None:
        return InUnits.of(model.structure, scale)
    if model.free.all():
        return Free()
    return Entries(model.free, model.given / np.outer(scale, scale))
