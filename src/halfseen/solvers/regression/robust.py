"""What each row of a regression says, for standard errors that do not believe the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from halfseen.seeds import Purpose
from halfseen.solvers.full_information.expectation import Sampling
from halfseen.solvers.full_information.rows import HeldRows, Rows
from halfseen.solvers.regression.curvature import rows_of_block, scores_of_block
from halfseen.solvers.regression.places import Place

Floats = NDArray[np.float64]

# Points for each row that is sampled.
POINTS = 256


def row_scores(rows: HeldRows, place: Place) -> Floats:
    """Return the derivatives of each row's log-likelihood in Γ, row by row, and in Σ_e,ij for i >= j."""
    at = place.parameters()
    sampled = rows.overview.sampled > 0
    sampling = Sampling(POINTS if sampled else 1, 0, 0, Purpose.LIKELIHOOD, at if sampled else None)
    scores = np.concatenate(list(rows.each(scores_of_block, at, sampling, place)))
    q, n = len(place.residual), len(scores)
    W = np.hstack([np.ones((n, 1)), rows.problem.Y[:, q:]])
    of_terms = scores[:, :q, None] * W[:, None, :]
    return np.hstack([of_terms.reshape(n, -1), scores[:, q:]])


def row_values(rows: Rows, place: Place) -> Floats:
    """Return the log-likelihood of each row in memory, as the engine has it."""
    assert isinstance(rows, HeldRows)
    at = place.parameters()
    sampled = rows.overview.sampled > 0
    sampling = Sampling(POINTS if sampled else 1, 0, 0, Purpose.LIKELIHOOD, at if sampled else None)
    said = rows.each(rows_of_block, at, sampling, place)
    return np.concatenate([one.value for one in said])


def clustered(scores: Floats, clusters: NDArray[np.intp] | None) -> Floats:
    """Add scores up over clusters; as few clusters scatter too little, each counts a little more."""
    if clusters is None:
        return scores
    count = int(clusters.max()) + 1
    together = np.zeros((count, scores.shape[1]))
    np.add.at(together, clusters, scores)
    return together * np.sqrt(count / (count - 1.0))
