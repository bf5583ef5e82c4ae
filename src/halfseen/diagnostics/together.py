"""What all columns of a fitted table say together: whether the rule explains the holes, and normality.

*The holes* are held against their probability given all else of the row. In the model of losses a value
that would be seen is lost with probability ε. Given all else that is known of the row, the other columns
with it, a cell is then hidden with probability P + ε (1 − P), where P is that of lying where the rule
hides. The score in ε at zero is (hidden − P)/P: (1 − P)/P for a hidden cell and −1 for a seen one, the
locally most powerful test. Where other columns tell much, P can be next to nothing, and the score has
tails so heavy that its variance is infinite (in a pair of columns as soon as the correlation is above
√½). So the weight is that of the score at ε₀,

    u = (hidden − P) / (P + ε₀ (1 − P)),

which has mean zero under the rule just the same, and lies between −1 and 1/ε₀. P is the ratio of two
likelihoods of the row: with the cell hidden by the rule, and with the cell missing at random.

*Normality* is tested along each column, and along each principal axis, where tables like the one at
hand can be simulated. The table is completed by draws at the fitted parameters. Along a direction in
which its values x should be standard normal, E cos(t x) = exp(−t²/2) and E sin(t x) = 0. Cosines fall
short where values keep away from the middle (two groups), and exceed it where there are many in the
middle and far out (heavy tails); sines tell of skewness and of groups of different sizes. Both are
bounded: a sum over few rows is nearly normal, and its covariance is that of ``fitted_rows``. Of Mardia's
moments, matrices of fourth moments, distances of rows and empirical characteristic functions in all
directions none had more power against mixtures.

Where such tables cannot be simulated (cells that tell their own limits, fits without errors of all
parameters), the squared Mahalanobis distances of completed rows, from their own mean in their own
covariance, are compared with their distribution under normality, a beta distribution. They do not change
under affine maps, so complete standard normal tables of the same size give the distribution of their
distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import betainc, betaincc, ndtr, ndtri

from halfseen.diagnostics.checked_table import CheckedTable, tested_rows, without_a_fit
from halfseen.diagnostics.fitted_rows import HARDLY_DETERMINED, FittedRows, FittedTable, Ground
from halfseen.diagnostics.normality import Normality, NormalityTest, judge_columns, mean_distances
from halfseen.diagnostics.one_column import Distances
from halfseen.errors import HalfseenError
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.expectation import Parameters
from halfseen.solvers.inference.draw_table import draw_table
from halfseen.solvers.result import Status

Floats = NDArray[np.float64]

# The share of losses ε₀ against which weights are best: about the smallest that so many rows tell.
LEAST_SHARE, MOST_SHARE, SHARE_BY_ROWS = 0.1, 0.5, 3.0
# Draws of the largest of several normal numbers, and how many of them a p-value rests on at least.
LARGEST_DRAWS, FEWEST_BEYOND = 20_000, 20
# t of the cosine and of the sine: cosines at 2 find two groups three deviations apart, and heavy tails.
COSINE, SINE = 2.0, 1.5
# Completed tables that are averaged, along directions and by distances of rows.
COMPLETIONS, COMPLETED_TABLES = 4, 5
# Columns that take part in an axis are named if their weight is this share of the largest.
LARGE_WEIGHT = 0.5
# Streams of random numbers, beside those of ``normality``.
BY_ROW, COMPLETING, LARGEST = 3, 5, 9
# Streams of draws, of the table and of simulated rows.
OF_TABLE, OF_SIMULATED = 21, 22
ALL_TOGETHER = "all columns together"


@dataclass(frozen=True)
class Losses:
    """A test of whether the rule explains the holes, against cells that were lost for other reasons.

    How many were lost, ``fit(..., loss="learn")`` estimates.

    Attributes
    ----------
    p_value : float
        One for all columns: how often the largest of the standardised scores, those of the columns and
        of their sum, would be as large if the rule and the fitted normal distribution were right. NaN
        where there is no test.
    names : tuple of str
        Columns that were looked at.
    adjusted : array
        The p-value of each of them, allowing for their number; none is below ``p_value``, but the sum
        of all columns may be what is significant.
    untested : dict
        By column, why its holes cannot be tested.
    reason : str
        Why there is no test; empty where there is one.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.7], [0.7, 1.0]])
    >>> X = hs.simulate(truth, rule, 500)
    >>> hs.diagnose(hs.fit(X, rule, random_state=0)).losses.p_value > 0.05
    True
    >>> X[np.random.default_rng(0).random(500) < 0.2, 0] = np.nan  # a fifth of a column is lost
    >>> losses = hs.diagnose(hs.fit(X, rule, random_state=0)).losses
    >>> losses.names, losses.p_value < 0.001, bool(losses.adjusted.argmin() == 0)
    (('x0', 'x1'), True, True)
    """

    p_value: float
    names: tuple[str, ...]
    adjusted: Floats
    untested: dict[str, str]
    reason: str = ""

    @classmethod
    def absent(cls, reason: str) -> Losses:
        """Return a test that was not made."""
        return cls(float("nan"), (), np.empty(0), {}, reason)


def judge_losses(ground: Ground, seed: int) -> Losses:
    """Test whether the rule explains the holes of a table."""
    rows, untested, columns = ground.seen, {}, []
    for j, name in enumerate(ground.names):
        reason = _why_not(ground, j)
        if not reason:
            columns.append(j)
        elif (rows.hidden & ~rows.blank)[:, j].any():
            untested[name] = reason
    if not columns:
        reason = "; ".join(dict.fromkeys(untested.values())) or "no cell is hidden by a rule"
        return replace(Losses.absent(reason), untested=untested)
    z, correlation = standard_scores(ground, columns)
    adjusted = largest_p_values(z, correlation, seed)
    names = tuple(ground.names[j] for j in columns)
    return Losses(float(adjusted.min()), names, adjusted[: len(columns)], untested)


def standard_scores(ground: Ground, columns: list[int]) -> tuple[Floats, Floats]:
    """Return scores of columns, standard normal where the rule is right, and their correlation.

    Of several columns the sum of all scores comes last: a little in each of them.
    """
    rows, at, weight = ground.seen, ground.at, weighted_for(ground.rows)
    P, simulated = (hidden_probabilities(r, columns, at) for r in (rows, ground.simulated))
    observed = loss_scores(P, rows.hidden[:, columns], weight).sum(axis=0)
    terms = loss_scores(simulated, ground.simulated.hidden[:, columns], weight)
    sums = np.vstack([np.eye(len(columns)), np.ones((int(len(columns) > 1), len(columns)))])
    n = len(rows.Y)
    left = ground.residuals(terms)
    # Where only some of the rows are looked at, the estimates know less of them.
    part = n / ground.rows
    covariance = n * (part * left.T @ left + (1.0 - part) * terms.T @ terms) / len(terms)
    of_sums = sums @ covariance @ sums.T
    scale = np.sqrt(np.diag(of_sums))
    z = straightened(sums @ observed / scale, skewness(left @ sums.T, n))
    return z, of_sums / np.outer(scale, scale)


def _why_not(ground: Ground, j: int) -> str:
    """Say why the holes of a column cannot be tested; empty where they can."""
    if not ground.own[j]:
        return "other columns take part in hiding it"
    ruled = ground.seen.ruled(j)
    hidden = ground.seen.hidden[:, j] & ruled
    if not hidden.any():
        return "the rule hides nothing of it"
    return "no value of it is seen" if hidden.sum() == ruled.sum() else ""


def weighted_for(n: int) -> float:
    """Return ε₀ for so many rows: with few, far smaller shares could not be found with any weights."""
    return float(np.clip(SHARE_BY_ROWS / np.sqrt(n), LEAST_SHARE, MOST_SHARE))


def hidden_probabilities(rows: FittedRows, columns: list[int], at: Parameters) -> Floats:
    """Return P of each row for each of some columns; NaN where the rule does not speak of a cell."""
    out = np.empty((len(rows.Y), len(columns)))
    for k, j in enumerate(columns):
        hidden, free = (
            rows.log_likelihoods(holes, at, at) for holes in (rows.hiding(j), rows.losing(j))
        )
        out[:, k] = np.where(rows.ruled(j), np.exp(np.minimum(hidden - free, 0.0)), np.nan)
    return out


def loss_scores(P: Floats, hidden: NDArray[np.bool_], share: float) -> Floats:
    """Return u of cells; zero where the rule does not speak of them."""
    u = (hidden - P) / np.maximum(P + share * (1.0 - P), np.finfo(float).tiny)
    return np.where(np.isnan(P), 0.0, u)


def skewness(terms: Floats, n: int) -> Floats:
    """Skewness of sums of n terms."""
    centred = terms - terms.mean(axis=0)
    return np.asarray((centred**3).mean(axis=0) / (centred**2).mean(axis=0) ** 1.5 / np.sqrt(n))


def straightened(z: Floats, skewed: Floats) -> Floats:
    """Bring numbers of a law with some skewness to a nearly normal one (Cornish and Fisher 1938).

    z − γ (z² − 1)/6, continued by its tangent from half the way to where it would turn back.
    """
    inner = np.minimum(z, 1.5 / np.maximum(skewed, 1e-6))
    slope = 1.0 - skewed * inner / 3.0
    return np.asarray(inner - skewed * (inner * inner - 1.0) / 6.0 + slope * (z - inner))


def largest_p_values(z: Floats, correlation: Floats, seed: int) -> Floats:
    """Return, for each number, how often the largest of normal ones would be as large.

    Where draws are too few to say, the sum of all probabilities is a bound, and close to it.
    """
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = keyed_generator(seed, Purpose.DIAGNOSE, LARGEST)
    largest = (rng.standard_normal((LARGEST_DRAWS, z.size)) @ root.T).max(axis=1)
    beyond = (largest[:, None] >= z).sum(axis=0)
    bound = np.minimum(z.size * ndtr(-z), 1.0)
    drawn = (1.0 + beyond) / (1.0 + LARGEST_DRAWS)
    return np.where(beyond < FEWEST_BEYOND, np.minimum(bound, drawn), drawn)


class Direction(NamedTuple):
    """A direction in which a standardised row should be standard normal."""

    weights: Floats
    words: str


def directions(correlation: Floats, names: tuple[str, ...]) -> list[Direction]:
    """Return the columns and, of several, the principal axes, scaled to unit variance."""
    out = [Direction(row, name) for row, name in zip(np.eye(len(names)), names, strict=True)]
    if len(names) == 1:
        return out
    values, vectors = np.linalg.eigh(correlation)
    for value, axis in zip(values[::-1], vectors.T[::-1], strict=True):
        weights = axis / np.sqrt(max(value, np.finfo(float).tiny))
        out.append(Direction(weights, _words(axis, names)))
    return out


def _words(axis: Floats, names: tuple[str, ...]) -> str:
    """Write an axis as signed columns, the largest first."""
    axis = axis * np.sign(axis[np.argmax(np.abs(axis).round(6))])
    # Equal but for rounding, columns come as they stand.
    order = np.argsort(-np.abs(axis).round(6), kind="stable")
    large = [k for k in order if abs(axis[k]) >= LARGE_WEIGHT * axis[order[0]]]
    if len(large) > 4:
        return f"a combination of {len(large)} columns"
    signs = ["" if k == 0 else " + " if axis[j] > 0 else " − " for k, j in enumerate(large)]
    return "".join(sign + names[j] for sign, j in zip(signs, large, strict=True))


def waves(x: Floats) -> Floats:
    """Cosines and sines of standard normal numbers, less their means, averaged over the first axis."""
    cosines = np.cos(COSINE * x).mean(axis=0) - np.exp(-0.5 * COSINE**2)
    return np.hstack([cosines, np.sin(SINE * x).mean(axis=0)])


def as_if_known(x: Floats, n: int) -> Floats:
    """Bring values in units of their own mean and deviation to those of a known normal distribution.

    Of n normal values x²/(n − 1) has the beta distribution with ½ and (n − 2)/2.
    """
    share = betainc(0.5, 0.5 * (n - 2), np.minimum(x * x / (n - 1.0), 1.0))
    tiny = np.finfo(float).eps
    return np.asarray(np.sign(x) * -ndtri(np.clip(0.5 * (1.0 - share), tiny, 0.5)))


def judge_shape(ground: Ground, seed: int) -> NormalityTest:
    """Test all columns together, against what deviates along columns and principal axes."""
    along = directions(ground.correlation, ground.names)
    axes = np.array([one.weights for one in along]).T
    x = as_if_known(_completed(ground.seen, ground.at, axes, seed, OF_TABLE), ground.rows)
    terms = waves(_completed(ground.simulated, ground.at, axes, seed, OF_SIMULATED))
    covariance = ground.covariance(terms)
    scale = np.sqrt(np.diag(covariance))
    z = waves(x).sum(axis=0) / scale
    both = np.kron([[1.0, -1.0], [-1.0, 1.0]], covariance / np.outer(scale, scale))
    p = float(largest_p_values(np.concatenate([z, -z]), both, seed).min())
    worst = int(np.argmax(np.abs(z)))
    place = worst % len(along)
    deviation = "heavy tails" if z[worst] > 0.0 else "two groups"
    return NormalityTest(
        ALL_TOGETHER, float(np.abs(z[worst])), _distance(x[:, :, place]), p, p, p, "completed",
        deviation=deviation if worst < len(along) else "skewed", direction=along[place].words,
    )  # fmt: skip


def _completed(rows: FittedRows, at: Parameters, axes: Floats, seed: int, number: int) -> Floats:
    """Complete rows, and return them along some axes: (completions, rows, axes)."""
    count = COMPLETIONS if rows.hidden.any() else 1
    return np.asarray(rows.draws(at, count, seed, number) @ axes)


def _distance(x: Floats) -> float:
    """Kolmogorov's distance of values from normal ones, averaged over completions."""
    n = x.shape[1]
    p = ndtr(np.sort(x, axis=1))
    i = np.arange(1, n + 1)
    return float(np.maximum((i / n - p).max(axis=1), (p - (i - 1) / n).max(axis=1)).mean())


def complete(fitted: FittedTable, seed: int) -> list[Floats]:
    """Draw completed tables at the fitted parameters, in standardised units of the model."""
    problem, g = fitted.problem, fitted.fit.gaussian
    rows = tested_rows(len(problem.Y))
    if rows.size < len(problem.Y):
        problem = problem.take(rows)
    at = Parameters.of(*problem.from_units(g.mean, g.covariance))
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
            distances = mean_distances([row_distances(Y) for Y in completed])
    except np.linalg.LinAlgError:
        return "a completed table has a singular covariance"
    return NormalityTest.of(ALL_TOGETHER, distances, null(n, d), "completed")


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
    table: CheckedTable,
    fitted: FittedTable | None,
    ground: Ground | str,
    simulations: int,
    seed: int,
    advance: Callable[[], None],
) -> Normality:
    """Make all tests that the table and the fit allow."""
    answer = without_a_fit() if fitted is None else _completed_tables(table, fitted, seed)
    completed = None if isinstance(answer, str) else answer
    columns = judge_columns(table, completed, simulations, seed, advance)
    if len(columns) == 1 and columns[0].basis == "cells":
        return Normality(columns, None, "it is a single column")
    if isinstance(answer, str):
        return Normality(columns, None, answer)
    if isinstance(ground, Ground):
        return Normality(columns, judge_shape(ground, seed)).both_counted()
    overall = judge_rows(answer, lambda n, d: simulate_rows(n, d, simulations, seed, advance))
    if isinstance(overall, str):
        return Normality(columns, None, overall)
    return Normality(columns, overall).both_counted()


def _completed_tables(table: CheckedTable, fitted: FittedTable, seed: int) -> list[Floats] | str:
    """Complete a table at the fitted parameters; a sentence where that cannot be."""
    if table.broken is not None:
        return "the table contradicts the rule"
    if fitted.fit.status.severity >= Status.WEAKLY_IDENTIFIED.severity:
        # Rows completed by it would be tested against what it guessed.
        return HARDLY_DETERMINED
    try:
        return complete(fitted, seed)
    except (HalfseenError, np.linalg.LinAlgError) as error:
        return f"the table could not be completed: {error}"
