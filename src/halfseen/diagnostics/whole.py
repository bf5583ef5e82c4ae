"""Whether what is behind a table is normal: each column, and all of them together.

Together they are tested by ``shape`` where tables like the one at hand can be simulated. Where they
cannot (cells that tell their own limits, fits without errors of all parameters), the table is completed
by draws at the fitted parameters, and the squared Mahalanobis distances of its rows, from its own mean
in its own covariance, are compared with their distribution under normality, a beta distribution. They
do not change under affine maps, so complete standard normal tables of the same size give the
distribution of their distance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import betainc, betaincc

from halfseen.data.transforms import Transform
from halfseen.diagnostics.fitted_rows import HARDLY_DETERMINED, Ground
from halfseen.diagnostics.normality import (
    Normality,
    NormalityTest,
    judge_columns,
    mean_distances,
    tested_rows,
)
from halfseen.diagnostics.one_column import Distances
from halfseen.diagnostics.reading import Reading, without_a_fit
from halfseen.diagnostics.shape import ALL_TOGETHER, judge_shape
from halfseen.errors import HalfseenError
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.expectation import Parameters
from halfseen.solvers.inference.imputation import draw_table, read_source
from halfseen.solvers.result import Estimate, Status

Floats = NDArray[np.float64]

# Completed tables that are averaged.
COMPLETED_TABLES = 5
# Streams of random numbers, beside those of ``normality``.
BY_ROW, COMPLETING = 3, 5


def complete(fit: Estimate, given: Any, seed: int) -> list[Floats]:
    """Draw completed tables at the fitted parameters, in standardised units of the model.

    Parameters
    ----------
    given : tuple of (X, missingness, missing_at_random), or None for the table of the fit
    """
    problem = read_source(fit, None) if given is None else read_source(fit, *given)
    rows = tested_rows(len(problem.Y))
    if rows.size < len(problem.Y):
        problem = problem.take(rows)
    at = Parameters.of(*problem.from_units(fit.gaussian.mean, fit.gaussian.covariance))
    count = COMPLETED_TABLES if problem.hidden.any() else 1
    with single_blas_thread():
        return [draw_table(problem, at, seed, COMPLETING + k) for k in range(count)]


def row_distances(Y: Floats) -> Distances:
    """Compare squared Mahalanobis distances of rows, in the table's own covariance, with their law.

    n/(n−1)² times a squared distance has the beta distribution with d/2 and (n−d−1)/2.

    References
    ----------
    Gnanadesikan and Kettenring (1972), Robust estimates, residuals, and outlier detection.
    """
    n, d = Y.shape
    Z = Y - Y.mean(axis=0)
    # n/(n−1)² · z S⁻¹ z = n/(n−1) · |q|² with Zᵀ Z = L Lᵀ and L q = z
    Q = solve_triangular(np.linalg.cholesky(Z.T @ Z), Z.T, lower=True, check_finite=False)
    share = np.sort(np.minimum(n / (n - 1.0) * np.einsum("ij,ij->j", Q, Q), 1.0))
    below = betainc(0.5 * d, 0.5 * (n - d - 1), share)
    above = betaincc(0.5 * d, 0.5 * (n - d - 1), share)
    tiny = np.finfo(float).tiny
    i = np.arange(1, n + 1)
    logs = np.log(np.maximum(below, tiny)) + np.log(np.maximum(above[::-1], tiny))
    square = -n - float(((2 * i - 1) * logs).sum()) / n
    largest = max(float((i / n - below).max()), float((below - (i - 1) / n).max()))
    return Distances(square, largest)


def judge_rows(completed: list[Floats], null: Callable[[int, int], Floats]) -> NormalityTest | str:
    """Test all columns together; a sentence where that cannot be done.

    The test is conservative, the more so the more is hidden, for two reasons. Hidden cells are drawn
    from the fitted normal distribution, so completed tables are nearer to it than the table behind
    them. And an average over completions varies less than the distance of one complete table, with
    which it is compared: ``null(n, d)`` are distances of complete tables.
    """
    n, d = completed[0].shape
    if n < d + 3:
        return f"{n} rows are too few for {d} columns"
    try:
        with single_blas_thread():
            found = mean_distances([row_distances(Y) for Y in completed])
    except np.linalg.LinAlgError:
        return "a completed table has a singular covariance"
    return NormalityTest.of(ALL_TOGETHER, found, null(n, d), "completed")


def simulate_rows(
    n: int, d: int, simulations: int, seed: int, advance: Callable[[], None]
) -> Floats:
    """A² of the rows of complete standard normal tables."""

    def one(k: int) -> float:
        rng = keyed_generator(seed, Purpose.DIAGNOSE, BY_ROW, k)
        return row_distances(rng.standard_normal((n, d))).square

    out = np.empty(simulations)
    with single_blas_thread():
        for k, square in enumerate(map_in_order(one, range(simulations))):
            out[k] = square
            advance()
    return out


def judge_normality(
    reading: Reading,
    transforms: tuple[Transform, ...] | None,
    fit: Estimate | None,
    given: Any,
    ground: Ground | str,
    simulations: int,
    seed: int,
    advance: Callable[[], None],
) -> Normality:
    """Make all tests that the table and the fit allow."""
    reason, completed = without_a_fit(), None
    if fit is not None:
        answer = _completed(reading, fit, given, seed)
        completed, reason = (None, answer) if isinstance(answer, str) else (answer, "")
    columns = judge_columns(reading, transforms, completed, simulations, seed, advance)
    overall: NormalityTest | str = reason
    if len(columns) == 1 and columns[0].basis == "cells":
        overall = "it is a single column"
    elif completed is not None and isinstance(ground, Ground):
        overall = judge_shape(ground, seed)
    elif completed is not None:
        overall = judge_rows(
            completed, lambda n, d: simulate_rows(n, d, simulations, seed, advance)
        )
    if isinstance(overall, str):
        return Normality(columns, None, overall)
    return Normality(columns, overall).both_counted()


def _completed(reading: Reading, fit: Estimate, given: Any, seed: int) -> list[Floats] | str:
    """Complete a table at the fitted parameters; a sentence where that cannot be."""
    if reading.broken is not None:
        return "the table contradicts the rule"
    if fit.status.severity >= Status.WEAKLY_IDENTIFIED.severity:
        # Rows completed by it would be tested against what it guessed.
        return HARDLY_DETERMINED
    try:
        return complete(fit, given, seed)
    except (HalfseenError, np.linalg.LinAlgError) as error:
        return f"the table could not be completed: {error}"
