"""What each row of a regression says, for standard errors that do not believe the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from halfseen.kernels.confined import Confines
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.expectation import Block, Parameters, Sampling
from halfseen.solvers.full_information.rows import HeldRows, Rows
from halfseen.solvers.regression.curvature import rows_of_block, scores_of_block
from halfseen.solvers.regression.layout import Equations
from halfseen.solvers.regression.places import Place
from halfseen.theta import entries

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Points for each row that is sampled.
POINTS = 256


def _sampling(rows: Rows, at: Parameters) -> Sampling:
    sampled = rows.overview.sampled > 0
    return Sampling(POINTS if sampled else 1, 0, 0, Purpose.LIKELIHOOD, at if sampled else None)


def row_scores(rows: HeldRows, place: Place) -> Floats:
    """Return the derivatives of each row's log-likelihood in Γ, row by row, and in Σ_e,ij for i >= j."""
    at = place.parameters()
    scores = np.concatenate(list(rows.each(scores_of_block, at, _sampling(rows, at), place)))
    return _of_coefficients(scores, rows.problem.Y, len(place.residual))


def _of_coefficients(scores: Floats, Y: Floats, q: int) -> Floats:
    """Return scores of coefficients, row by row of Γ, from those of predictors."""
    W = np.hstack([np.ones((len(Y), 1)), Y[:, q:]])
    of_terms = scores[:, :q, None] * W[:, None, :]
    return np.hstack([of_terms.reshape(len(Y), -1), scores[:, q:]])


def products_of_block(
    Y: Floats, block: Block, confines: Confines, at: Parameters, sampling: Sampling, place: Place
) -> Floats:
    """Return the sum of the outer products of the scores of a block."""
    scores = scores_of_block(Y, block, confines, at, sampling, place)
    scores = _of_coefficients(scores, Y[block.rows], len(place.residual))
    return np.asarray(scores.T @ scores)


def scatter(rows: Rows, place: Place) -> Floats:
    """Return the sum of the outer products of the scores of all rows, wherever they are."""
    at = place.parameters()
    out: Floats = rows.total(products_of_block, at, _sampling(rows, at), place)
    return out


def in_parameters(equations: Equations, learned: Mask) -> Floats:
    """Return the derivatives of Γ and Σ_e of the engine in the parameters of a regression.

    Γ of the engine is Γ Tᵀ in other units, and Σ_e another unit each.
    """
    of_terms = block_diag(
        *(equations.T[:, own] / s for own, s in zip(equations.free, equations.scale, strict=True))
    )
    units = entries(np.outer(equations.scale, equations.scale))
    return np.asarray(block_diag(of_terms, np.diag(entries(learned.astype(float)) / units)))


def row_values(rows: Rows, place: Place) -> Floats:
    """Return the log-likelihood of each row in memory, as the engine has it."""
    assert isinstance(rows, HeldRows)
    at = place.parameters()
    said = rows.each(rows_of_block, at, _sampling(rows, at), place)
    return np.concatenate([one.value for one in said])


def added_up(scores: Floats, clusters: NDArray[np.intp] | None) -> Floats:
    """Add scores up over clusters."""
    if clusters is None:
        return scores
    together = np.zeros((int(clusters.max()) + 1, scores.shape[1]))
    np.add.at(together, clusters, scores)
    return together
