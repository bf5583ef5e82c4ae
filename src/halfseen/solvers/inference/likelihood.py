"""The observed-data log-likelihood: exact for up to two confined cells in a row, else estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

Floats = NDArray[np.float64]

# Independently shifted copies of a point set, whose scatter gives the standard error.
SHIFTS = 8
# Points in a set: at least and at most so many, as far as the number of draws in all allows.
FEWEST_POINTS, MOST_POINTS, MOST_DRAWS = 8, 128, 2**25


@dataclass(frozen=True)
class LogLikelihood:
    """A log-likelihood, and the Monte-Carlo standard error of its estimate (0 where it is exact)."""

    value: float
    standard_error: float

    def __float__(self) -> float:
        return self.value


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
    sampled = count_sampled(holes)
    count = int(np.clip(MOST_DRAWS // (SHIFTS * max(1, sampled)), FEWEST_POINTS, MOST_POINTS))
    layout = lay_out(holes)
    with single_blas_thread():
        at = Parameters.of(mean, covariance, degrees)

    def work(place: tuple[int, Block]) -> Floats:
        shift, block = place
        sampling = Sampling(count, seed, shift, Purpose.LIKELIHOOD, at)
        return expect(Y, block, layout.confines, at, sampling)[1]

    places = [(k, block) for k in range(SHIFTS if sampled else 1) for block in layout.blocks]
    with single_blas_thread():
        found = list(map_in_order(work, places, n_jobs))
    logs = np.concatenate(found).reshape(-1, len(Y))
    return _average(logs)


def _average(logs: Floats) -> tuple[Floats, Floats]:
    """Logarithms of averages over independent shifts, and their variances."""
    count = len(logs)
    high = logs.max(axis=0)
    if count == 1:
        return high, np.zeros(high.size)
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isneginf(high), 1.0, np.exp(logs - high))
    mean = weights.mean(axis=0)
    relative = weights.var(axis=0, ddof=1) / count / mean**2
    # The logarithm of an average is low by half its relative variance.
    return high + np.log(mean) + 0.5 * relative, relative


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
