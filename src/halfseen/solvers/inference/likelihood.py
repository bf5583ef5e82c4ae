"""The observed-data log-likelihood: exact for up to two hidden cells in a row, else estimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.data.row_blocks import sweep_rows
from halfseen.kernels.region_mass import block_log_likelihood
from halfseen.missingness.holes import Holes
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.completion import make_block

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
) -> tuple[Floats, Floats]:
    """Log-likelihood of what is seen of each row, and the variance of its estimate.

    Where sets are probabilities of being shown, the probabilities of the seen cells, which do not depend
    on the parameters, are left out.
    """
    n, d = Y.shape
    with single_blas_thread():
        P = np.linalg.inv(covariance)
        P = np.ascontiguousarray(0.5 * (P + P.T))
        log_det = float(np.linalg.slogdet(covariance)[1])
    hidden = max(1, int((holes.index >= 0).sum()))
    count = int(np.clip(MOST_DRAWS // (SHIFTS * hidden), FEWEST_POINTS, MOST_POINTS))
    points = _richtmyer(count, d)
    free = holes.whole_lines
    step = max(1, sweep_rows(d) // 8)
    out, variance = np.empty(n), np.empty(n)

    def work(start: int) -> None:
        rows = slice(start, min(start + step, n))
        rng = keyed_generator(seed, Purpose.LIKELIHOOD, start)
        shifts = rng.random((rows.stop - start, SHIFTS, d))
        block_log_likelihood(
            Y[rows], holes.index[rows], mean, P, log_det, make_block(holes, rows).cells, free,
            points, shifts, out[rows], variance[rows],
        )  # fmt: skip

    with single_blas_thread():
        for _ in map_in_order(work, range(0, n, step), n_jobs):
            pass
    return out, variance


def log_likelihood(
    Y: Floats,
    holes: Holes,
    mean: Floats,
    covariance: Floats,
    seed: int = 0,
    n_jobs: int | None = None,
) -> LogLikelihood:
    """Sum of the rows' log-likelihoods, with its Monte-Carlo standard error."""
    values, variance = row_log_likelihoods(Y, holes, mean, covariance, seed, n_jobs)
    return LogLikelihood(float(values.sum()), float(np.sqrt(variance.sum())))


def _richtmyer(count: int, d: int) -> Floats:
    """Points k·√p mod 1 with the d first primes: evenly spread, in any number of dimensions."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < d:
        if all(candidate % p for p in primes if p * p <= candidate):
            primes.append(candidate)
        candidate += 1
    return np.ascontiguousarray(np.outer(np.arange(1, count + 1), np.sqrt(primes)) % 1.0)
