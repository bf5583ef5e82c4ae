"""What a regression says of rows: predictors, what would be hidden, what would be seen, and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from halfseen.kernels.quadrature import NODES_48, WEIGHTS_48
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.expectation import Parameters, Sampling, drawn_rows
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.regression.curvature import rows_of_block
from halfseen.solvers.regression.estimate import RegressionEstimate
from halfseen.solvers.regression.layout import Equations, with_covariates
from halfseen.solvers.regression.outcomes import Outcomes
from halfseen.solvers.regression.places import Place

Floats = NDArray[np.float64]

# Points for each row that is sampled: for conditional means, and for draws.
MEAN_POINTS, DRAW_POINTS = 512, 128
# Beyond so many standard deviations there is nothing that a double can see, and no smaller probability.
FARTHEST, SMALLEST = 9.0, 1e-300


def predictor(weights: Floats, W: Floats) -> Floats:
    """Return Γ w of each row."""
    return np.asarray(W @ weights.T)


def category_probabilities(eta: Floats, cuts: Floats) -> Floats:
    """Return the probability of each category of a latent number with mean η and variance 1."""
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    return np.diff(ndtr(ends - eta[:, None]), axis=1)


def predicted(
    fit: RegressionEstimate, kind: str, weights: Floats, residual: Floats, W: Floats
) -> Floats:
    """Return a prediction at some parameters: "latent", "seen" or "hidden_probability".

    NaN where it says nothing of a latent outcome.
    """
    eta = predictor(weights, W)
    if kind == "latent":
        return eta
    out, shown = np.full(eta.shape, np.nan), Shown(fit, weights, residual, W)
    for j in range(len(fit.outcomes)):
        if fit.kinds[j] == "continuous":
            mass, mean = shown.moments(j)
            out[:, j] = mean if kind == "seen" else 1.0 - mass
        elif kind == "seen" and fit.kinds[j] == "binary":
            out[:, j] = category_probabilities(eta[:, j], np.zeros(1))[:, 1]
    return out


class Shown:
    """Where new rows would be shown: by the rule of each column, and by selection.

    Parameters
    ----------
    fit : RegressionEstimate
    weights, residual : arrays
        Parameters, which need not be those of the fit.
    W : array of shape (m, k)
    """

    def __init__(
        self, fit: RegressionEstimate, weights: Floats, residual: Floats, W: Floats
    ) -> None:
        self.hiding, self.residual = fit.hiding, residual
        self.eta = predictor(weights, W)
        self.deviation = np.sqrt(np.diag(residual))

    def moments(self, j: int) -> tuple[Floats, Floats]:
        """Return the probability that an outcome is shown, and its mean where it is.

        Given the index of a selection the outcome is normal; the index is integrated over where it
        selects, on 48 nodes of so much of the line as can be seen.
        """
        one, pieces = self.hiding.selecting(j), self.hiding.pieces(j)
        if one is None:
            mass, first = _normal_within(self.eta[:, j], self.deviation[j], pieces)
            return mass, self.eta[:, j] + self.deviation[j] * first / mass
        by = one.index
        slope = self.residual[j, by]
        left = float(np.sqrt(max(self.residual[j, j] - slope * slope, 0.0)))
        # The residual of the index is above −η, or with the other sign below it.
        sign = 1.0 if one.when else -1.0
        low = -sign * self.eta[:, by]
        width = np.maximum(low, 0.0) + FARTHEST - np.maximum(low, -FARTHEST)
        total, mean = np.zeros(len(low)), np.zeros(len(low))
        for node, weight in zip(NODES_48, WEIGHTS_48, strict=True):
            e = np.maximum(low, -FARTHEST) + node * width
            centre = self.eta[:, j] + slope * sign * e
            mass, first = _normal_within(centre, left, pieces)
            density = weight * width * _density(e)
            total += density * mass
            mean += density * (mass * centre + left * first)
        return total, mean / np.maximum(total, SMALLEST)


def _normal_within(
    mean: Floats, deviation: float, pieces: list[tuple[float, float]]
) -> tuple[Floats, Floats]:
    """Return P(y within) and E((y − mean)/deviation; y within) of normal numbers."""
    mass, first = np.zeros(len(mean)), np.zeros(len(mean))
    for low, high in pieces:
        a, b = (low - mean) / deviation, (high - mean) / deviation
        # From the side on which both ends are small.
        flip = a > 0.0
        mass += np.where(flip, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
        first += _density(a) - _density(b)
    return np.maximum(mass, SMALLEST), first


def _density(x: Floats) -> Floats:
    return np.exp(-0.5 * np.minimum(x * x, 1e4)) / np.sqrt(2.0 * np.pi)


def rows_of(outcomes: Outcomes, W: Floats, equations: Equations, n_jobs: int | None) -> HeldRows:
    """Return rows in the units of a fit."""
    units = equations.centre, equations.scale
    if outcomes.carried is not None:
        W = np.hstack([W, outcomes.carried.values])
    X = equations.regressors(W)
    names = tuple(f"regressor {k}" for k in range(X.shape[1]))
    problem = outcomes.problem(units)
    rows = HeldRows(with_covariates(problem, X, names, len(outcomes.names)), n_jobs)
    rows.check()
    return rows


def place_of(
    fit: RegressionEstimate, weights: Floats | None = None, residual: Floats | None = None
) -> Place:
    """Return parameters in the units of the engine; those of the fit unless others are given."""
    equations = fit.equations
    assert equations is not None
    weights = fit.weights if weights is None else weights
    residual = fit.residual if residual is None else residual
    scale = equations.scale
    return Place(equations.of_coefficients(weights), residual / np.outer(scale, scale))


def expected_outcomes(fit: RegressionEstimate, outcomes: Outcomes, W: Floats) -> Floats:
    """Return outcomes with hidden cells at their means given all that is seen of the row."""
    equations, place = fit.equations, place_of(fit)
    assert equations is not None
    n_jobs = None if fit.source is None else fit.source.n_jobs
    rows = rows_of(outcomes, W, equations, n_jobs)
    at = place.parameters()
    order = at if rows.overview.sampled else None
    sampling = Sampling(MEAN_POINTS if order else 1, 0, 0, Purpose.IMPUTATION, order)
    said = np.concatenate([one.residual for one in rows.each(rows_of_block, at, sampling, place)])
    X = rows.problem.Y[:, len(outcomes.names) :]
    values = said + place.coefficients[:, 0] + X @ place.coefficients[:, 1:].T
    return np.where(
        outcomes.data.seen, outcomes.data.values, equations.centre + equations.scale * values
    )


def drawn_outcomes(
    fit: RegressionEstimate,
    outcomes: Outcomes,
    W: Floats,
    place: Place,
    seed: int,
    replicate: int,
) -> Floats:
    """Return outcomes with hidden cells drawn from their law given all that is seen of the row."""
    equations = fit.equations
    assert equations is not None
    n_jobs = None if fit.source is None else fit.source.n_jobs
    rows = rows_of(outcomes, W, equations, n_jobs)
    sampling = Sampling(DRAW_POINTS, seed, replicate, Purpose.IMPUTATION)
    drawn = np.concatenate(list(rows.each(_draw_block, place.parameters(), sampling)))
    drawn = equations.centre + equations.scale * drawn[:, : len(outcomes.names)]
    return np.where(outcomes.data.seen, outcomes.data.values, drawn)


def _draw_block(Y: Floats, block: Any, confines: Any, at: Parameters, sampling: Sampling) -> Floats:
    return np.asarray(drawn_rows(Y, block, confines, at, sampling)[0])
