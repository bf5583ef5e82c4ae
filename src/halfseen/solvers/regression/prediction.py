"""What a regression says of rows: predictors, what would be hidden, what would be seen, and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from halfseen.errors import InputError
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


def category_tables(fit: RegressionEstimate, vector: Floats, W: Floats) -> dict[str, Floats]:
    """Return the probabilities of the categories of each latent outcome, at a vector of parameters."""
    weights, _, cuts = fit.unpack(vector)
    eta, out = predictor(weights, W), {}
    for j, name in enumerate(fit.outcomes):
        if name in fit.categories:
            out[name] = category_probabilities(eta[:, j], np.asarray(cuts.get(name, np.zeros(1))))
    if not out:
        raise InputError("no outcome is binary or ordered, so there are no categories.")
    return out


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
            mass, first, log_scale = _normal_within(self.eta[:, j], self.deviation[j], pieces)
            mean = self.eta[:, j] + self.deviation[j] * first / mass
            return mass * np.exp(log_scale), mean
        by = one.index
        slope = self.residual[j, by]
        left = float(np.sqrt(max(self.residual[j, j] - slope * slope, 0.0)))
        # The residual of the index is above −η, or with the other sign below it.
        sign = 1.0 if one.when else -1.0
        low = -sign * self.eta[:, by]
        near = np.maximum(low, 0.0)
        width = near + FARTHEST - np.maximum(low, -FARTHEST)
        total, mean = np.zeros(len(low)), np.zeros(len(low))
        for node, weight in zip(NODES_48, WEIGHTS_48, strict=True):
            e = np.maximum(low, -FARTHEST) + node * width
            centre = self.eta[:, j] + slope * sign * e
            mass, first, log_scale = _normal_within(centre, left, pieces)
            # Next to the density at the nearest place that selects, which may be very far out.
            density = weight * width * _density(e, near) * np.exp(log_scale)
            total += density * mass
            mean += density * (mass * centre + left * first)
        return total * np.exp(-0.5 * near * near), mean / np.maximum(total, SMALLEST)


def _normal_within(
    mean: Floats, deviation: float, pieces: list[tuple[float, float]]
) -> tuple[Floats, Floats, Floats]:
    """Return P(y within) and E((y − mean)/deviation; y within) of normal numbers, and a logarithm.

    Both are multiples of the exponential of the last: of the density at the nearest place, which may be
    so far out that no double holds it.
    """
    ends = [((low - mean) / deviation, (high - mean) / deviation) for low, high in pieces]
    near = np.min([np.maximum(np.maximum(a, -b), 0.0) for a, b in ends], axis=0)
    mass, first = np.zeros(len(mean)), np.zeros(len(mean))
    for a, b in ends:
        # A piece on one side of the mean is a difference of tails there; any other has it within.
        right, left = a > 0.0, b < 0.0
        low, high = np.where(right, a, -b), np.where(right, b, -a)
        tails = _tail(np.maximum(low, 0.0), near) - _tail(np.maximum(high, 0.0), near)
        mass += np.where(right | left, tails, ndtr(b) - ndtr(a))
        first += _density(a, near) - _density(b, near)
    return np.maximum(mass, SMALLEST), first, -0.5 * near * near


def _tail(x: Floats, near: Floats) -> Floats:
    """Return exp(near²/2) P(z > x) of a standard normal number z, for x >= 0."""
    return np.asarray(np.sqrt(0.5 * np.pi) * erfcx(x / np.sqrt(2.0)) * _density(x, near))


def _density(x: Floats, near: Floats) -> Floats:
    """Return exp((near² − x²)/2)/√(2π); 0 at infinity."""
    far = np.where(np.isinf(x), np.inf, 0.0)
    finite = np.where(np.isinf(x), 0.0, x)
    return np.exp(0.5 * (near - finite) * (near + finite) - far) / np.sqrt(2.0 * np.pi)


def rows_of(outcomes: Outcomes, W: Floats, equations: Equations, n_jobs: int | None) -> HeldRows:
    """Return rows in the units of a fit."""
    units = equations.centre, equations.scale
    if outcomes.carried is not None:
        W = np.hstack([W, outcomes.carried.values])
    X = equations.regressors(W)
    problem = outcomes.problem(units)
    rows = HeldRows(with_covariates(problem, X, equations.T, len(outcomes.names)), n_jobs)
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
