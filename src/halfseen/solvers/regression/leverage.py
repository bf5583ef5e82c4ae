"""What the scores of rows, or of clusters of rows, would be had the estimate not seen them.

An estimate leans towards each row that it was made from, so that scores at it scatter less than at the
truth, and so do standard errors made of them. Without a cluster g, whose part of the information
about coefficients is J_g, a step of Newton's moves the estimate by −(I − J_g)⁻¹ s_g, and the squares of
such moves are those of the jackknife: HC3 and CV3 of least squares (MacKinnon, Nielsen and Webb 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from halfseen.kernels.confined import Confines
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.expectation import Block, Parameters, Sampling
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.regression.curvature import (
    EXACT_STEP,
    SAMPLED_STEP,
    SMOOTH_STEP,
    Move,
    moves_from,
    scores_of_block,
)
from halfseen.solvers.regression.places import Place

Floats = NDArray[np.float64]

# With more groups than these none weighs much: on average its share of what is known of a parameter is
# one over their number.
MOST_GROUPS = 5000
# A group that has nearly all that is known of a direction leaves no estimate without it. Its scores are
# 0 there, and stay what they are.
LEAST_LEFT = 0.05
# Points for each row that is sampled.
POINTS = 32


def row_information(rows: HeldRows, place: Place) -> Floats:
    """Return −∂²/∂η² of each row's log-likelihood, η being its predictors: of shape (n, q, q)."""
    at, sampled = place.parameters(), rows.overview.sampled > 0
    sampling = Sampling(
        POINTS if sampled else 1, 0, 0, Purpose.INFORMATION, at if sampled else None
    )
    step = SMOOTH_STEP if rows.overview.convex else SAMPLED_STEP
    moves, _ = moves_from(place, np.empty((0, 0)), step if sampled else EXACT_STEP)
    found = np.concatenate(list(rows.each(_falls, at, sampling, moves)))
    return np.asarray(0.5 * (found + found.transpose(0, 2, 1)))


def _falls(
    Y: Floats,
    block: Block,
    confines: Confines,
    at: Parameters,
    sampling: Sampling,
    moves: list[Move],
) -> Floats:
    """Return by how much scores of a block in η fall along each move."""
    out = []
    for low, high, apart in moves:
        before, after = (
            scores_of_block(Y, block, confines, there, sampling, place)[:, : len(moves)]
            for place, there in (low, high)
        )
        out.append((before - after) / apart)
    return np.stack(out, axis=1)


def without_own(
    scores: Floats,
    information: Floats,
    into: Callable[[NDArray[np.intp]], Floats],
    inverse: Floats,
    groups: Sequence[NDArray[np.intp]] | NDArray[np.intp],
) -> Floats:
    """Return the scores of groups of rows, as estimates without them have them.

    Parameters
    ----------
    scores : array of shape (groups, p)
    information : array of shape (n, q, q)
        Of each row about its predictors.
    into : callable
        The derivatives of the predictors of some rows in all parameters: of shape (rows, q, p).
    inverse : array of shape (p, p)
        Of the information of all rows.
    groups : arrays
        The rows of each.
    """
    out = scores.copy()
    for own, rows in zip(out, groups, strict=True):
        U = into(rows)
        pull, U = (information[rows] @ U).reshape(-1, len(inverse)), U.reshape(-1, len(inverse))
        # (I − Uᵀ A U V)⁻¹ s, where rows are few in as many dimensions as they have.
        few = len(U) < len(inverse)
        left = np.eye(min(U.shape)) - (U @ inverse @ pull.T if few else U.T @ pull @ inverse)
        if np.linalg.eigvals(left).real.min() < LEAST_LEFT:
            continue
        if few:
            own += pull.T @ np.linalg.solve(left, U @ (inverse @ own))
        else:
            own[:] = np.linalg.solve(left, own)
    return out
