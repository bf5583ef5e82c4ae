"""The observed-data log-likelihood: exact for up to two confined cells in a row, else estimated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.transforms import log_derivatives
from halfseen.missingness.holes import Holes
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.expectation import (
    Block,
    Parameters,
    Sampling,
    count_sampled,
    expect,
    lay_out,
)
from halfseen.solvers.inference.imputation import read_source, seen_values

if TYPE_CHECKING:
    from halfseen.solvers.result import Estimate

Floats = NDArray[np.float64]
# Mean, covariance and degrees of freedom.
Place = tuple[Floats, Floats, float]
Rows = slice | NDArray[np.intp]

# Independently shifted copies of a point set, whose scatter gives the standard error.
SHIFTS = 8
# Points in a set: at least and at most so many at first, as far as the number of draws in all allows.
FEWEST_POINTS, MOST_POINTS, MOST_DRAWS = 8, 128, 2**25
# Then more, and up to the last, until the standard error of the sum is below this: differences of less
# than a unit decide nothing between models. Errors of a lattice go down with the number of its points;
# so many times as many as that says are taken.
TOLERANCE, LAST_POINTS, MARGIN = 0.25, 1024, 1.2


@dataclass(frozen=True)
class LogLikelihood:
    """A log-likelihood, and the Monte-Carlo standard error of its estimate (0 where it is exact)."""

    value: float
    standard_error: float

    def __float__(self) -> float:
        return self.value

    @classmethod
    def of(cls, fit: Estimate) -> LogLikelihood:
        """Return the log-likelihood of the table of a fit."""
        values, variance = seen_log_likelihoods(fit)
        return cls(float(values.sum()), float(np.sqrt(variance.sum())))


def seen_log_likelihoods(
    fit: Estimate, X: Any = None, missingness: Any = None, missing_at_random: Any = None
) -> tuple[Floats, Floats]:
    """Log-likelihood of what is seen of each row, in original units, and the variance of its estimate.

    Parameters
    ----------
    X, missingness, missing_at_random
        As in ``Fit.impute``.
    """
    problem = read_source(fit, X, missingness, missing_at_random)
    place = problem.from_units(fit.gaussian.mean, fit.gaussian.covariance)
    values, variance = row_log_likelihoods(problem.Y, problem.holes, *place, degrees=fit.degrees)
    if problem.kept is not None:
        values = values + problem.kept
    # Densities of seen values are per unit of the table, not per standard deviation, nor per unit of a
    # transformed scale.
    values = values - ~problem.hidden @ np.log(problem.scale)
    if fit.transforms is not None:
        seen = np.where(problem.hidden, np.nan, seen_values(fit, X))
        values = values + log_derivatives(seen, fit.transforms, fit.names)
    return values, variance


def row_log_likelihoods(
    Y: Floats,
    holes: Holes,
    mean: Floats,
    covariance: Floats,
    seed: int = 0,
    n_jobs: int | None = None,
    degrees: float = math.inf,
) -> tuple[Floats, Floats]:
    """Log-likelihood of what is seen of each row, and the variance of its estimate.

    Where sets are probabilities of being shown, the probabilities of the seen cells, which do not depend
    on the parameters, are left out.
    """

    def ask(rows: Rows, points: int) -> tuple[Floats, Floats]:
        place = mean, covariance, degrees
        logs = _shifted_logs(Y[rows], holes.take(rows), place, points, seed, n_jobs)
        value, weights = _averages(logs)
        relative = _variances(weights)
        # The logarithm of an average is low by half its relative variance.
        return value + 0.5 * relative, relative

    return _refined(holes, ask)


def row_log_ratios(
    Y: Floats,
    holes: Holes,
    above: Place,
    below: Place,
    seed: int = 0,
    n_jobs: int | None = None,
    below_holes: Holes | None = None,
) -> tuple[Floats, Floats]:
    """How much likelier each row is at one place than at another, and the variance.

    Both are estimated with the same points, so that most of their noise cancels. ``below_holes`` are the
    holes at the second place, where values were lost in another share there.
    """
    asked = (holes, above), (holes if below_holes is None else below_holes, below)

    def ask(rows: Rows, points: int) -> tuple[Floats, Floats]:
        found = [
            _averages(_shifted_logs(Y[rows], own.take(rows), at, points, seed, n_jobs))
            for own, at in asked
        ]
        (high, more), (low, less) = found
        bias = 0.5 * (_variances(more) - _variances(less))
        return high - low + bias, _variances(more - less)

    return _refined(holes, ask)


def _refined(
    holes: Holes, ask: Callable[[Rows, int], tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    """Ask all rows, and where their sum is not known well enough, those that are sampled once more.

    All of these: rows that happen to be overestimated seem to be known better than others, and to keep
    their answers would make the sum too large.
    """
    sampled = count_sampled(holes)
    points = int(np.clip(MOST_DRAWS // (SHIFTS * max(1, sampled)), FEWEST_POINTS, MOST_POINTS))
    values, variance = ask(slice(None), points)
    inexact = np.flatnonzero(variance)
    while variance.sum() > TOLERANCE**2 and points < LAST_POINTS:
        more = MARGIN * points * float(np.sqrt(variance.sum())) / TOLERANCE
        points = min(int(np.ceil(more)), LAST_POINTS)
        values[inexact], variance[inexact] = ask(inexact, points)
    return values, variance


def _shifted_logs(
    Y: Floats,
    holes: Holes,
    place: Place,
    points: int,
    seed: int,
    n_jobs: int | None,
) -> Floats:
    """Log-likelihoods of rows at some parameters, by independent shifts: (shifts, rows)."""
    layout, sampled = lay_out(holes), count_sampled(holes)
    with single_blas_thread():
        at = Parameters.of(*place)

    def work(place: tuple[int, Block]) -> Floats:
        shift, block = place
        sampling = Sampling(points, seed, shift, Purpose.LIKELIHOOD, at)
        return expect(Y, block, layout.confines, at, sampling)[1]

    places = [(k, block) for k in range(SHIFTS if sampled else 1) for block in layout.blocks]
    with single_blas_thread():
        found = list(map_in_order(work, places, n_jobs))
    return np.concatenate(found).reshape(-1, len(Y))


def _averages(logs: Floats) -> tuple[Floats, Floats]:
    """Logarithms of averages over shifts, and the shifts as multiples of their average."""
    high = logs.max(axis=0)
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isneginf(high), 1.0, np.exp(logs - high))
    mean = weights.mean(axis=0)
    return high + np.log(mean), weights / mean


def _variances(weights: Floats) -> Floats:
    """Variances of averages over independent shifts; none where there is one, which is exact."""
    count = len(weights)
    return np.zeros(weights.shape[1]) if count == 1 else weights.var(axis=0, ddof=1) / count


def log_likelihood(
    Y: Floats,
    holes: Holes,
    mean: Floats,
    covariance: Floats,
    seed: int = 0,
    n_jobs: int | None = None,
    degrees: float = math.inf,
) -> LogLikelihood:
    """Sum of the rows' log-likelihoods, with its Monte-Carlo standard error."""
    values, variance = row_log_likelihoods(Y, holes, mean, covariance, seed, n_jobs, degrees)
    return LogLikelihood(float(values.sum()), float(np.sqrt(variance.sum())))
