"""Whether what is behind a table is normal: column by column, and as a whole.

By column: the normal distribution of greatest likelihood for its cells, seen and hidden; normal scores
of all cells, those of hidden ones drawn within their sets; their distance from the normal distribution
(Anderson and Darling 1954). Parameters were estimated and cells hidden, so the distribution of that
distance is simulated: values from the fitted normal, hidden as the real ones were, fitted again.

As a whole: the table is completed by draws at the fitted parameters, and the squared Mahalanobis
distances of its rows, from its own mean in its own covariance, are compared with their distribution
under normality, a beta distribution. They do not change under affine maps, so complete standard normal
tables of the same size give the distribution of their distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import betainc, betaincc

from halfseen.data.power import learn_power
from halfseen.data.transforms import BoxCox, Identity, Transform
from halfseen.diagnostics.one_column import Column, Distances, Marginal, distances, fit_cells
from halfseen.diagnostics.reading import Reading
from halfseen.errors import HalfseenError, InputError
from halfseen.kernels.censored_normal import normal_distances
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.expectation import Parameters
from halfseen.solvers.inference.imputation import draw_table, read_source
from halfseen.solvers.result import Fit, Status

Floats = NDArray[np.float64]

# A test on fewer seen values than this could hardly reject anything.
FEWEST_SEEN = 8
# Rows that are tested: with more, deviations are found that do not matter.
MOST_ROWS = 5000
# Draws of hidden scores that are averaged in small columns; in large ones a single draw says the same.
MOST_PHASES, CELLS_PER_PHASE = 4, 2000
# Completed tables that are averaged.
COMPLETED_TABLES = 5
# Share of the largest simulated distances from which the tail beyond them is estimated.
TAIL = 0.1
# Reasons why a column is not tested.
CONSTANT, NEVER_SEEN = "constant", "no value seen"
# How the reason begins for a column whose values its transform does not take.
WRONG_SCALE = "its transform does not fit"
# Streams of random numbers, beside those of ``assumptions``.
BY_COLUMN, BY_ROW, COMPLETE_COLUMN, COMPLETING = 2, 3, 4, 5


@dataclass(frozen=True)
class NormalityTest:
    """A test of normality, of a column or of the whole.

    Attributes
    ----------
    name : str
    statistic : float
        Anderson and Darling's A², averaged over draws of what is hidden.
    distance : float
        Largest difference between the share of cells (or rows) below a point and what the normal
        distribution says (Kolmogorov's D).
    p_value : float
        (1 + number of simulations at least as far) / (simulations + 1).
    tail_p_value : float
        The same; where the data are farther off than every simulation, the exponential tail of the
        simulated distances is prolonged.
    adjusted : float
        ``tail_p_value`` adjusted for the number of columns (Holm).
    basis : {"cells", "completed", "none"}
        Whether cells were tested on their own, or values completed at the fitted parameters.
    reason : str
        Why there is no test; empty where there is one.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> x = np.exp(np.random.default_rng(0).normal(size=(300, 1)))
    >>> test = hs.diagnose(x).normality.columns[0]
    >>> test.name, test.basis, test.p_value < 0.01
    ('x0', 'cells', True)
    """

    name: str
    statistic: float
    distance: float
    p_value: float
    tail_p_value: float
    adjusted: float
    basis: str
    reason: str = ""

    @classmethod
    def absent(cls, name: str, reason: str) -> NormalityTest:
        """Return a test that was not made."""
        nan = float("nan")
        return cls(name, nan, nan, nan, nan, nan, "none", reason)

    @classmethod
    def of(cls, name: str, found: Distances, simulated: Floats, basis: str) -> NormalityTest:
        """Return the outcome of a test."""
        p, tail = p_values(found.square, simulated)
        return cls(name, found.square, found.largest, p, tail, tail, basis)


@dataclass(frozen=True)
class Normality:
    """Tests of normality: of each column, and of the whole where there is a fit.

    Attributes
    ----------
    columns : tuple of NormalityTest
    overall : NormalityTest or None
    overall_reason : str
        Why there is no test of the whole; empty where there is one.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 300)
    >>> tests = hs.diagnose(X, rule).normality
    >>> [test.p_value > 0.01 for test in tests.columns]
    [True, True]
    """

    columns: tuple[NormalityTest, ...]
    overall: NormalityTest | None
    overall_reason: str = ""


def p_values(observed: float, simulated: Floats) -> tuple[float, float]:
    """Return the share of simulations at least as far off, and the same with a prolonged tail.

    Where parameters are estimated, the upper tail of A² is close to exponential. Beyond the largest
    simulation, P(A² > a) ≈ TAIL · exp(−(a − q)/m), with q the quantile that leaves TAIL above it
    and m the mean excess over it.
    """
    size = simulated.size
    # NaN: a simulation that could not be fitted counts as far off.
    p = (1 + int((~(simulated < observed)).sum())) / (size + 1)
    known = simulated[np.isfinite(simulated)]
    if p * (size + 1) > 1 or known.size < 1.0 / TAIL:
        return p, p
    edge = float(np.quantile(known, 1.0 - TAIL))
    excess = float((known[known > edge] - edge).mean())
    tail = TAIL * float(np.exp(-(observed - edge) / excess)) if excess > 0.0 else 0.0
    return p, min(p, max(tail, np.finfo(float).tiny))


def holm(p: Floats) -> Floats:
    """Adjust p-values for their number; NaN stays and is not counted.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    out = np.full(p.size, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factor = order.size - np.arange(order.size)
    out[order] = np.minimum(np.maximum.accumulate(factor * p[order]), 1.0)
    return out


def judge_cells(
    name: str, column: Column, simulations: int, rng: np.random.Generator
) -> NormalityTest:
    """Test a column on its own: parametric bootstrap of A²."""
    column, _, _ = column.standardised()
    marginal = fit_cells(column.cells)
    phases = rng.random(max(1, min(MOST_PHASES, CELLS_PER_PHASE // column.size)))
    found = distances(column.cells, marginal, phases)
    simulated = simulate_distances(column, marginal, simulations, phases.size, rng)
    return NormalityTest.of(name, found, simulated, "cells")


def simulate_distances(
    column: Column, marginal: Marginal, simulations: int, phases: int, rng: np.random.Generator
) -> Floats:
    """A² of columns drawn from a normal distribution, hidden as the real one, and fitted again."""
    out = np.empty(simulations)
    for k in range(simulations):
        x = marginal.mean + marginal.deviation * rng.standard_normal(column.size)
        cells = column.hiding.hide(x, rng)
        again = fit_cells(cells, marginal.mean, marginal.deviation)
        out[k] = distances(cells, again, rng.random(phases)).square
    return out


def why_not(column: Column) -> str:
    """Say why a column cannot be tested; empty where it can."""
    seen = column.cells.values.size
    if column.size and seen == 0 and column.cells.lower.size > 1:
        return ""
    if seen == 0:
        return NEVER_SEEN
    if seen < FEWEST_SEEN:
        return f"{seen} value{'' if seen == 1 else 's'} seen; a test needs {FEWEST_SEEN}"
    if np.ptp(column.cells.values) == 0.0:
        return CONSTANT
    return ""


def tested_rows(n: int) -> NDArray[np.intp]:
    """Rows that are tested, spread evenly over the table."""
    return np.arange(n) if n <= MOST_ROWS else np.linspace(0, n - 1, MOST_ROWS).astype(np.intp)


def scale_of(column: Column, transform: Transform | None) -> Transform:
    """Return the transform of a column, with its power learned where it has none; check its domain."""
    if transform is None:
        return Identity()
    x = column.cells.values
    low = x < transform.least if transform.closed else x <= transform.least
    if low.any():
        raise InputError(f"{transform.name} is for values above {transform.least:g}")
    if isinstance(transform, BoxCox) and transform.power is None:
        return learn_power(column.cells, transform)
    return transform


def judge_columns(
    reading: Reading,
    transforms: tuple[Transform, ...] | None,
    completed: list[Floats] | None,
    simulations: int,
    seed: int,
    advance: Callable[[], None],
) -> tuple[NormalityTest, ...]:
    """Test every column: on its own where its own value alone hides it, else completed values."""
    rows = tested_rows(len(reading.values))
    whole: list[Floats] = []

    def complete_null() -> Floats:
        # The same for all columns, and needed by few.
        if not whole:
            whole.append(_complete_columns(rows.size, simulations, seed))
        return whole[0]

    def one(j: int) -> NormalityTest:
        name = reading.names[j]
        column = reading.column(j, rows)
        if isinstance(column, str) and completed is not None:
            pairs = [_complete_distances(Y[:, j]) for Y in completed]
            return NormalityTest.of(name, _mean_distances(pairs), complete_null(), "completed")
        reason = column if isinstance(column, str) else why_not(column)
        if isinstance(column, str) or reason:
            return NormalityTest.absent(name, reason)
        try:
            column = column.on(scale_of(column, None if transforms is None else transforms[j]))
        except InputError as error:
            return NormalityTest.absent(name, f"{WRONG_SCALE}: {error}")
        return judge_cells(
            name, column, simulations, keyed_generator(seed, Purpose.DIAGNOSE, BY_COLUMN, j)
        )

    if completed is not None:
        complete_null()
    found = []
    for test in map_in_order(one, range(len(reading.names))):
        found.append(test)
        advance()
    adjusted = holm(np.array([test.tail_p_value for test in found]))
    return tuple(replace(t, adjusted=float(a)) for t, a in zip(found, adjusted, strict=True))


def _mean_distances(pairs: list[Distances]) -> Distances:
    square, largest = np.mean(pairs, axis=0)
    return Distances(float(square), float(largest))


def _complete_distances(x: Floats) -> Distances:
    return Distances(*normal_distances((x - x.mean()) / x.std()))


def _complete_columns(n: int, simulations: int, seed: int) -> Floats:
    rng = keyed_generator(seed, Purpose.DIAGNOSE, COMPLETE_COLUMN)
    return np.array(
        [_complete_distances(rng.standard_normal(n)).square for _ in range(simulations)]
    )


def complete(fit: Fit, given: Any, seed: int) -> list[Floats]:
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
            found = _mean_distances([row_distances(Y) for Y in completed])
    except np.linalg.LinAlgError:
        return "a completed table has a singular covariance"
    return NormalityTest.of("all columns together", found, null(n, d), "completed")


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
    fit: Fit | None,
    given: Any,
    simulations: int,
    seed: int,
    advance: Callable[[], None],
) -> Normality:
    """Make all tests that the table and the fit allow."""
    completed, reason = None, "no fit was given: pass fit=, or the fit itself"
    if fit is not None and reading.broken is not None:
        reason = "the table contradicts the rule"
    elif fit is not None and fit.status.severity >= Status.WEAKLY_IDENTIFIED.severity:
        # Rows completed by it would be tested against what it guessed.
        reason = (
            "the fit is hardly determined by the data, so that its completed rows prove nothing"
        )
    elif fit is not None:
        try:
            completed = complete(fit, given, seed)
        except (HalfseenError, np.linalg.LinAlgError) as error:
            reason = f"the table could not be completed: {error}"
    columns = judge_columns(reading, transforms, completed, simulations, seed, advance)
    overall: NormalityTest | str = reason
    if completed is not None:
        overall = judge_rows(
            completed, lambda n, d: simulate_rows(n, d, simulations, seed, advance)
        )
    if isinstance(overall, str):
        return Normality(columns, None, overall)
    return Normality(columns, overall)
