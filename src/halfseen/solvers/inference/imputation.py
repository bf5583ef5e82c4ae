"""What the holes hold: conditional means, and draws that carry the uncertainty of the parameters too."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import whole_number
from halfseen.data.interval_data import IntervalData
from halfseen.data.table import read_table
from halfseen.errors import AssumptionWarning, InputError
from halfseen.gaussian import Gaussian
from halfseen.parallel import single_blas_thread
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.solvers.full_information.completion import (
    Completion,
    Draws,
    block_rows,
    make_block,
    slide_factor,
    sweep_block,
)
from halfseen.solvers.full_information.filling import fill
from halfseen.solvers.full_information.problem import Problem, read_problem
from halfseen.solvers.full_information.stochastic_em import inverse
from halfseen.solvers.inference.bootstrap import refits

if TYPE_CHECKING:
    from halfseen.solvers.result import Fit

Floats = NDArray[np.float64]

# Sweeps that are averaged for conditional means. The noise left is a tenth of a cell's own spread where
# cells move freely, more where they follow each other closely.
SWEEPS = 100
# Along hardly determined directions a drawn variance changes by a factor of at most exp(4).
LARGEST_MOVE = 4.0
# Sweeps that are made before values are used, so that they do not remember where they were filled in.
FORGET = 20


def read_source(
    fit: Fit, X: Any, missingness: Any = None, missing_at_random: Any = None
) -> Problem:
    """Read the table that was fitted, or another one under the same rule, in the units of the fit."""
    source = fit.source
    g = fit.gaussian
    units = g.mean, g.standard_deviations
    if X is None:
        if source is None:
            raise InputError("this fit does not hold its table; pass X.")
        with warnings.catch_warnings():
            # How the table was read was said when it was fitted.
            warnings.simplefilter("ignore", AssumptionWarning)
            return read_problem(
                source.X, source.missingness, source.missing_at_random, source.n_jobs, units
            )
    rule = missingness
    if rule is None and source is not None and not isinstance(X, IntervalData):
        rule = source.missingness
    problem = read_problem(X, rule, missing_at_random, None, units)
    if problem.shape[1] != g.dimension:
        raise InputError(f"the fit has {g.dimension} columns, but X has {problem.shape[1]}.")
    return problem


def seen_values(fit: Fit, X: Any) -> Floats:
    """Return the table as it was given, NaN where hidden: seen cells are not changed by a bit."""
    if X is None:
        assert fit.source is not None
        X = fit.source.X
    if isinstance(X, IntervalData):
        return X.values
    return np.asarray(read_table(X, fewest_rows=1).values, dtype=float)


def impute(
    fit: Fit, X: Any = None, missingness: Any = None, missing_at_random: Any = None
) -> Floats:
    """Return the table with each hidden cell at its conditional mean; see ``Fit.impute``."""
    problem = read_source(fit, X, missingness, missing_at_random)
    n_jobs = None if fit.source is None else fit.source.n_jobs
    seed = 0 if fit.source is None else fit.source.seed
    mean, covariance = problem.from_units(fit.gaussian.mean, fit.gaussian.covariance)
    hidden = problem.hidden
    with single_blas_thread():
        total, tally = _average(problem, mean, covariance, seed, n_jobs)
    Y = np.where(hidden, total, problem.Y)
    if tally is not None:
        _keep_inside(Y, problem, *tally)
    return np.where(hidden, _to_units(problem, Y), seen_values(fit, X))


def _average(
    problem: Problem, mean: Floats, covariance: Floats, seed: int, n_jobs: int | None
) -> tuple[Floats, tuple[Floats, Floats] | None]:
    """Average the expected values of hidden cells over sweeps; tally draws by piece of their sets."""
    Y, holes = problem.Y, problem.holes
    fill(Y, holes, mean, np.sqrt(np.diag(covariance)), seed, problem.names, 0, n_jobs)
    P = inverse(covariance)
    factor = slide_factor(holes, P)
    total = np.zeros(Y.shape)
    pieces = int(np.diff(holes.sets.start).max(initial=0))
    tally = (np.zeros((pieces, *Y.shape)), np.zeros((pieces, *Y.shape))) if pieces > 1 else None
    step = block_rows(Y.shape[1])
    for start in range(0, len(Y), step):
        rows = slice(start, min(start + step, len(Y)))
        block = make_block(holes, rows)
        rng = keyed_generator(seed, Purpose.IMPUTATION, start)
        part = Y[rows]
        for k in range(FORGET + SWEEPS):
            Z = part - mean
            E = Z.copy()
            draws = Draws.make(block, rng, factor)
            sweep_block(part, Z, E, np.zeros(mean.size), block, mean, P, draws, bool(k % 2))
            if k >= FORGET:
                total[rows] += E
                if tally is not None:
                    _count(tally, part, holes.index[rows], holes.sets, rows)
    return total / SWEEPS + mean, tally


def _count(tally: tuple[Floats, Floats], part: Floats, index: Any, sets: Any, rows: slice) -> None:
    """Add draws to the piece of the set that each lies in."""
    sizes = np.diff(sets.start)
    for piece in range(len(tally[0])):
        has = (index >= 0) & (sizes[index] > piece)
        at = np.where(has, sets.start[index] + piece, 0)
        here = has & (part >= sets.lower[at]) & (part <= sets.upper[at])
        tally[0][piece, rows] += here
        tally[1][piece, rows] += np.where(here, part, 0.0)


def _keep_inside(Y: Floats, problem: Problem, counts: Floats, sums: Floats) -> None:
    """Where a mean falls between the pieces of its set, take the mean of the likeliest piece."""
    sets, index = problem.holes.sets, problem.holes.index
    several = (index >= 0) & (np.diff(sets.start)[index] > 1)
    inside = np.zeros(Y.shape, dtype=bool)
    for piece in range(len(counts)):
        has = several & (np.diff(sets.start)[index] > piece)
        at = np.where(has, sets.start[index] + piece, 0)
        inside |= has & (sets.lower[at] <= Y) & (sets.upper[at] >= Y)
    best = counts.argmax(axis=0)
    r, c = np.nonzero(several & ~inside & (counts.max(axis=0) > 0))
    Y[r, c] = sums[best[r, c], r, c] / counts[best[r, c], r, c]


def _to_units(problem: Problem, Y: Floats) -> Floats:
    return problem.centre + problem.scale * Y


def draw_imputations(
    fit: Fit,
    X: Any = None,
    m: int = 20,
    random_state: RandomState = None,
    missingness: Any = None,
    missing_at_random: Any = None,
) -> Floats:
    """Return m completed tables; see ``Fit.draw_imputations``."""
    m = whole_number("m", m)
    seed = seed_of(random_state)
    problem = read_source(fit, X, missingness, missing_at_random)
    n_jobs = None if fit.source is None else fit.source.n_jobs
    out = np.empty((m, *problem.shape))
    hidden = problem.hidden
    seen = seen_values(fit, X)
    with single_blas_thread():
        for k, parameters in enumerate(parameter_draws(fit, m, seed)):
            mean, covariance = problem.from_units(parameters.mean, parameters.covariance)
            if k == 0:
                spread = np.sqrt(np.diag(covariance))
                fill(problem.Y, problem.holes, mean, spread, seed, problem.names, 0, n_jobs)
            # Each table goes on from the one before, at parameters of its own.
            rows = Completion(problem.Y, problem.holes, seed, 1 + k, n_jobs)
            P = inverse(covariance)
            for _ in range(FORGET):
                rows.sweep(mean, P)
            out[k] = np.where(hidden, _to_units(problem, problem.Y), seen)
    return out


def parameter_draws(fit: Fit, m: int, seed: int) -> list[Gaussian]:
    """Draw parameters as uncertain as the fit is.

    From the normal approximation where the covariance of all parameters is known; else by refitting rows
    drawn with replacement.
    """
    errors = fit.uncertainty
    if errors is None or errors.parameters is None:
        return [found.gaussian for found in refits(fit, m, "rows", seed)]
    # On unit scale, so that units do not matter.
    scale = np.sqrt(np.diag(errors.parameters))
    safe = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(errors.parameters / np.outer(safe, safe))
    root = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    rng = keyed_generator(seed, Purpose.IMPUTATION)
    return [_moved(fit.gaussian, root @ rng.standard_normal(values.size)) for _ in range(m)]


def _moved(g: Gaussian, move: Floats) -> Gaussian:
    """Move the parameters of a Gaussian.

    A covariance L Lᵀ + δ becomes L exp(L⁻¹ δ L⁻ᵀ) Lᵀ, which is the same to first order and always
    positive definite.
    """
    d = g.dimension
    i, j = np.tril_indices(d)
    change = np.zeros((d, d))
    change[i, j] = change[j, i] = move[d:]
    L = g.cholesky
    inner = np.linalg.solve(L, np.linalg.solve(L, change).T)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    root = L @ (vectors * np.exp(0.5 * np.clip(values, -LARGEST_MOVE, LARGEST_MOVE)))
    return Gaussian(g.mean + move[:d], root @ root.T)
