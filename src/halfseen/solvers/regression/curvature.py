"""What each row says of its own linear predictor and of the residuals, and so of all coefficients.

With η = Γ w the predictor of a row, the score of the coefficients is s ⊗ w, s being that of η, and their
information −Σ ∂s/∂η ⊗ w wᵀ. So a row need only be asked about q predictors and the covariance of
residuals, however many coefficients there are. Where η and Σ_e move is asked of all rows at once: every
intercept a little higher and lower, and every entry of Σ_e.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.kernels.confined import Confines
from halfseen.kernels.patterns import rows_block
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.expectation import Block, Parameters, Sampling, lattice
from halfseen.solvers.full_information.rows import Rows
from halfseen.solvers.regression.places import Place
from halfseen.theta import entries, stands_for, symmetric

Floats = NDArray[np.float64]

# Steps of central differences, in standard deviations of residuals. The error is the square of
# them times a third derivative, a share of some 1e-6, 1e-4 and 2e-3. What is sampled has a noise
# of its own, and where sets have several pieces paths jump between them.
EXACT_STEP, SMOOTH_STEP, SAMPLED_STEP = 2e-3, 0.02, 0.1
# Points for each row that is sampled: with 16 to 1024 of them standard errors of five and eight outcomes
# differ by 0.4 % at most.
POINTS = 32


class Said(NamedTuple):
    """What rows say: expected outcomes and residuals, covariances of what is hidden, log-likelihoods."""

    residual: Floats
    spread: Floats
    value: Floats


def rows_of_block(
    Y: Floats, block: Block, confines: Confines, at: Parameters, sampling: Sampling, place: Place
) -> Said:
    """Return what each row of a block says of its residuals, e = y − Γ w."""
    if sampling.order is not None:
        block = block.in_order(Y, confines, sampling.order)
    part = Y[block.rows]
    (n, d), q = part.shape, len(place.residual)
    E, V, values = np.empty((n, q)), np.empty((n, q, q)), np.empty(n)
    rows_block(
        part, *at[:3], block.groups, confines, lattice(sampling.points, d),
        sampling.shifts(block.first_row, (n, d)), block.law, E, V, values,
    )  # fmt: skip
    return Said(E - part[:, q:] @ place.coefficients[:, 1:].T, V, values)


def scores_of_block(
    Y: Floats, block: Block, confines: Confines, at: Parameters, sampling: Sampling, place: Place
) -> Floats:
    """Return the derivatives of each row's log-likelihood in η, and in Σ_e,ij for i >= j.

    Σ_e⁻¹ E e and ½ Σ_e⁻¹ (E e eᵀ − Σ_e) Σ_e⁻¹.
    """
    residual, spread, _ = rows_of_block(Y, block, confines, at, sampling, place)
    P = np.linalg.inv(place.residual)
    of_eta = residual @ P
    of_errors = of_eta[:, :, None] * of_eta[:, None, :] + P @ spread @ P - P
    return np.hstack([of_eta, entries(of_errors) * (0.5 * stands_for(len(P)))])


class Move(NamedTuple):
    """Two places on either side of another, and how far they are apart."""

    low: tuple[Place, Parameters]
    high: tuple[Place, Parameters]
    apart: float


def moves_from(place: Place, basis: Floats, step: float) -> tuple[list[Move], list[Move]]:
    """Return moves of each intercept, and of Σ_e in each direction of a basis."""
    q = len(place.residual)
    of_eta, of_errors = [], []
    for a in range(q):
        shift = np.zeros(place.coefficients.shape)
        shift[a, 0] = step * math.sqrt(place.residual[a, a])
        ends = [place._replace(coefficients=place.coefficients + s) for s in (-shift, shift)]
        low, high = ((end, end.parameters()) for end in ends)
        of_eta.append(Move(low, high, 2.0 * shift[a, 0]))
    for column in basis.T:
        change = symmetric(column, q)
        # A small share of Σ_e, in every direction.
        length = step / np.abs(np.linalg.eigvals(np.linalg.solve(place.residual, change))).max()
        ends = [place._replace(residual=place.residual + s * change) for s in (-length, length)]
        low, high = ((end, end.parameters()) for end in ends)
        of_errors.append(Move(low, high, 2.0 * float(length)))
    return of_eta, of_errors


def fall_of_block(
    Y: Floats,
    block: Block,
    confines: Confines,
    at: Parameters,
    sampling: Sampling,
    moves: tuple[list[Move], list[Move]],
    basis: Floats,
) -> Floats:
    """Return what a block says about all coefficients Γ, row by row, and then about Σ_e.

    The sum over rows of −∂(score)/∂(coefficients, directions of Σ_e).
    """
    if sampling.order is not None:
        block = block.in_order(Y, confines, sampling.order)
    sampling = sampling._replace(order=None)
    q, part = len(moves[0]), Y[block.rows]
    W = np.hstack([np.ones((len(part), 1)), part[:, q:]])
    k, size = W.shape[1], basis.shape[1]
    out = np.zeros((q * k + size, q * k + size))

    def fall(move: Move) -> Floats:
        low, high = (
            scores_of_block(Y, block, confines, there, sampling, place)
            for place, there in (move.low, move.high)
        )
        change = (low - high) / move.apart
        if block.weights is not None:
            change *= block.weights[:, None]
        return np.hstack([change[:, :q], change[:, q:] @ basis])

    for a, move in enumerate(moves[0]):
        change, own = fall(move), slice(a * k, (a + 1) * k)
        for b in range(q):
            out[own, b * k : (b + 1) * k] = (W * change[:, b, None]).T @ W
        out[own, q * k :] = W.T @ change[:, q:]
    for a, move in enumerate(moves[1]):
        out[q * k + a, q * k :] = fall(move)[:, q:].sum(axis=0)
    out[q * k :, : q * k] = out[: q * k, q * k :].T
    return out


def observed_information(rows: Rows, place: Place, basis: Floats, seed: int) -> Floats:
    """Return the information about all coefficients Γ, row by row, and then about directions of Σ_e."""
    sampled = rows.overview.sampled > 0
    at = place.parameters()
    sampling = Sampling(
        POINTS if sampled else 1, seed, 0, Purpose.INFORMATION, at if sampled else None
    )
    step = EXACT_STEP
    if sampled:
        step = SMOOTH_STEP if rows.overview.convex else SAMPLED_STEP
    moves = moves_from(place, basis, step)
    found: Floats = rows.total(fall_of_block, at, sampling, moves, basis)
    return 0.5 * (found + found.T)
