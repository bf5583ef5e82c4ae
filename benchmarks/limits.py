"""Cramér–Rao limits: how exact the best unbiased estimates of μ_i and Σ_ij can be, for every task.

Nothing here uses a solver or a sampler of halfseen. Throughout, the score s of a complete row y has
entries R = P(y − μ) for μ and f_ij (R_i R_j − P_ij) for Σ_ij, i >= j, with P = Σ⁻¹, f = 1 off the
diagonal and 1/2 on it; its covariance I has a closed form. Where part of a row is hidden, the
information is

    I − E Var(s | what is seen)

(the missing-information principle), and only the second term is an average over rows drawn at random:
with little hidden there is little noise, and with nothing hidden none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from benchmarks.comparison.problems import SETS, Problem, linear_threshold
from benchmarks.one_factor import HELD, REACH, STEP, Floats, Generator, one_factor_limits, pieces
from halfseen.gaussian import Gaussian

# Rows that are drawn under limits and linear thresholds, and rows of a truncated law. From N rows a
# variance comes with a relative noise of √((κ−1)/N) m/(1−m), with m the share of its information that is
# hidden (under truncation m/(1−m) is 1) and κ the kurtosis of what is averaged: 3 for a Gaussian, 15 for
# its square, 60 in a truncated law (two columns in the box). Standard deviations have half of it.
ROWS, TRUNCATED = 300_000, 1_000_000
# Proposals of a round of rejection: this many for each row at first, twice as many in each later round,
# but for all rows of a pattern together no more than the second number.
FIRST_TRIES, PROPOSALS = 16, 2**16


@dataclass(frozen=True)
class Limit:
    """Root mean square errors of a best unbiased estimate.

    Attributes
    ----------
    mean : array of shape (d,)
        Standard deviations of μ_i.
    covariance : array of shape (d, d)
        Standard deviations of Σ_ij; NaN for entries that everyone is told.
    mahalanobis : float
        Of the mean, |Σ^-½ (μ̂ − μ)|.
    frobenius : float
        Of the covariance, |Σ^-½ (Σ̂ − Σ) Σ^-½|.
    """

    mean: Floats
    covariance: Floats
    mahalanobis: float
    frobenius: float

    @classmethod
    def of(cls, inverse: Floats, truth: Gaussian) -> Limit:
        """Return the limits of one row, from the inverse of its information on (μ, Σ_ij for i >= j)."""
        d, (i, j) = truth.dimension, np.tril_indices(truth.dimension)
        variances, covariance = np.diag(inverse), np.empty((d, d))
        covariance[i, j] = covariance[j, i] = variances[d:]
        # Complete information is a metric: that of squared Mahalanobis errors, and of half the squared
        # relative Frobenius errors.
        products = complete_information(truth) * inverse
        squares = products[:d, :d].sum(), 2.0 * products[d:, d:].sum()
        return cls(np.sqrt(variances[:d]), np.sqrt(covariance), *map(math.sqrt, squares))


def cramer_rao(problem: Problem, seed: int = 0, effort: float = 1.0) -> Limit:
    """Return how exact a best unbiased estimate from one table of a task can be.

    Parameters
    ----------
    problem : Problem
    seed : int
        Of the rows that are drawn; another one shows how exact the answer is.
    effort : float
        How many rows are drawn, as a multiple of what comparisons take.

    Returns
    -------
    Limit
    """
    one_row = KINDS[problem.kind](problem, np.random.default_rng(seed), effort)
    return Limit(*(part / math.sqrt(problem.size.n) for part in vars(one_row).values()))


# Limits: one correlation for all pairs, and columns that differ in nothing but their means.


def _limits(problem: Problem, rng: Generator, effort: float) -> Limit:
    below, above = (problem.numbers.get(side, 0.0) for side in ("below", "above"))
    return _one_factor(problem, [(below, above)], rng, effort)


def _limits_by_row(problem: Problem, rng: Generator, effort: float) -> Limit:
    return _one_factor(problem, [(below, 0.0) for below in problem.numbers["below"]], rng, effort)


def _one_factor(
    problem: Problem, shares: list[tuple[float, float]], rng: Generator, effort: float
) -> Limit:
    d, rho = problem.size.d, problem.numbers["correlation"]
    rows = int(effort * ROWS)
    mean, variance, pair, *distances = np.sqrt(one_factor_limits(d, rho, shares, rows, rng))
    entries = np.where(np.eye(d, dtype=bool), variance, pair)
    spread = problem.truth.standard_deviations
    return Limit(mean * spread, entries * np.outer(spread, spread), *map(float, distances))


# Any rule, by rejection.


def _linear_threshold(problem: Problem, rng: Generator, effort: float) -> Limit:
    truth, rule = linear_threshold()
    rows = int(effort * ROWS)
    information = information_by_rejection(truth, lambda Y: rule.b >= Y @ rule.V.T, rows, rng)
    return Limit.of(np.linalg.inv(information), truth)


def information_by_rejection(
    truth: Gaussian, pattern: Callable[[Floats], NDArray], rows: int, rng: Generator
) -> Floats:
    """Return the information of a row on (μ, Σ_ij for i >= j), whatever it is that hides values.

    The hidden part of each row is drawn once more from its conditional Gaussian, until the pattern is
    the same: half the squared difference of the two scores has the mean Var(s | what is seen).

    Parameters
    ----------
    truth : Gaussian
    pattern : callable
        Tells of each cell of complete rows whether it is seen (True, or 1) or, by other numbers, why
        it is not.
    rows : int
        How many are drawn.
    rng : Generator

    Returns
    -------
    array of shape (p, p), p = d + d(d+1)/2
    """
    information = complete_information(truth)
    for held in pieces(rows, truth.dimension):
        Y = truth.sample(held, rng)
        gap = scores(truth, Y) - scores(truth, redraw(truth, pattern, Y, rng))
        information -= 0.5 * gap.T @ gap / rows
    return information


def scores(truth: Gaussian, Y: Floats) -> Floats:
    """Return scores of complete rows, for μ and for Σ_ij, i >= j."""
    i, j = np.tril_indices(truth.dimension)
    P = truth.precision
    R = (Y - truth.mean) @ P
    return np.hstack([R, np.where(i == j, 0.5, 1.0) * (R[:, i] * R[:, j] - P[i, j])])


def complete_information(truth: Gaussian) -> Floats:
    """Return the covariance of the scores: P, and f_ij f_kl (P_ik P_jl + P_il P_jk)."""
    i, j = np.tril_indices(truth.dimension)
    P, factor = truth.precision, np.where(i == j, 0.5, 1.0)
    fourth = P[np.ix_(i, i)] * P[np.ix_(j, j)] + P[np.ix_(i, j)] * P[np.ix_(j, i)]
    nothing = np.zeros((truth.dimension, i.size))
    return np.block([[P, nothing], [nothing.T, np.outer(factor, factor) * fourth]])


def redraw(
    truth: Gaussian, pattern: Callable[[Floats], NDArray], Y: Floats, rng: Generator
) -> Floats:
    """Return rows whose hidden cells are drawn anew, given what is seen, by rejection.

    Over all rows, the expected number of proposals is at most that of rows times that of patterns.
    """
    Y = Y.copy()
    patterns, which = np.unique(pattern(Y), axis=0, return_inverse=True)
    for number, found in enumerate(patterns):
        rows, hidden, seen = np.flatnonzero(which == number), found != 1, found == 1
        if not hidden.any():
            continue
        cross = truth.covariance[np.ix_(hidden, seen)]
        slope = cross @ np.linalg.inv(truth.covariance[np.ix_(seen, seen)])
        root = np.linalg.cholesky(truth.covariance[np.ix_(hidden, hidden)] - slope @ cross.T)
        centre = truth.mean[hidden] + (Y[np.ix_(rows, seen)] - truth.mean[seen]) @ slope.T
        tries = FIRST_TRIES
        while rows.size:
            tries = max(1, min(tries, PROPOSALS // rows.size))
            Z = np.repeat(Y[rows], tries, axis=0)
            noise = rng.standard_normal((len(Z), len(root))) @ root.T
            Z[:, hidden] = np.repeat(centre, tries, axis=0) + noise
            good = (pattern(Z) == found).all(axis=1).reshape(rows.size, tries)
            done, first = good.any(axis=1), good.argmax(axis=1)
            Y[rows[done]] = Z.reshape(rows.size, tries, -1)[done, first[done]]
            rows, centre, tries = rows[~done], centre[~done], 2 * tries
    return Y


# The largest of independent columns, and truncation.


def _winner(problem: Problem, rng: Generator, effort: float) -> Limit:
    mean, variance = problem.truth.mean, np.diag(problem.truth.covariance)
    inverse = np.linalg.inv(winner_information(mean, variance))
    of_mean, of_variance = np.sqrt(np.diag(inverse)).reshape(2, -1)
    entries = np.where(np.eye(mean.size, dtype=bool), of_variance, np.nan)
    distances = (
        np.linalg.norm(of_mean / np.sqrt(variance)),
        np.linalg.norm(of_variance / variance),
    )
    return Limit(of_mean, entries, *map(float, distances))


def winner_information(mean: Floats, variance: Floats) -> Floats:
    """Return the information on means, then variances, of the largest of independent columns."""
    spread = np.sqrt(variance)
    low, high = (mean - REACH * spread).max(), (mean + REACH * spread).max()
    # The logarithm of a density or a distribution function is at most curved by 1/σ².
    step = STEP / math.sqrt((1.0 / variance).sum())
    x = np.linspace(low, high, 1 + math.ceil((high - low) / step))
    total = np.zeros((2 * mean.size, 2 * mean.size))
    for winner in range(mean.size):
        log_density, score = winner_score(x, winner, mean, variance)
        total += (np.exp(log_density) * (x[1] - x[0]) * score) @ score.T
    return total


def winner_score(x: Floats, winner: int, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return log density, and its derivatives by means and variances, of this winner with value x."""
    spread = np.sqrt(variance)[:, None]
    z = (x - mean[:, None]) / spread
    log_each, log_pdf = log_ndtr(z), -0.5 * z**2 - 0.5 * math.log(2.0 * math.pi)
    by_z = np.exp(log_pdf - log_each)
    by_z[winner] = -z[winner]
    log_each[winner] = log_pdf[winner] - math.log(spread[winner, 0])
    # z falls by 1/σ with the mean and by z/(2σ²) with the variance; a density has 1/σ in front.
    by_variance = -by_z * z / (2.0 * spread**2)
    by_variance[winner] -= 0.5 / variance[winner]
    return log_each.sum(axis=0), np.vstack([-by_z / spread, by_variance])


def _truncated(problem: Problem, rng: Generator, effort: float) -> Limit:
    rows = int(effort * TRUNCATED)
    information = truncated_information(problem.truth, SETS[problem.numbers["set"]], rows, rng)
    return Limit.of(np.linalg.inv(information), problem.truth)


def truncated_information(
    truth: Gaussian, contains: Callable[[Floats], NDArray[np.bool_]], rows: int, rng: Generator
) -> Floats:
    """Return the information on (μ, Σ_ij for i >= j) of a row in a set, where others are not seen.

    The score of such a row is that of a complete one less its mean over the set, which is the derivative
    of the logarithm of the set's probability: the information is the covariance of complete scores.
    """
    kept: list[Floats] = []
    while sum(map(len, kept)) < rows:
        Y = truth.sample(HELD // truth.dimension, rng)
        kept.append(Y[contains(Y)])
    return np.cov(scores(truth, np.concatenate(kept)[:rows]).T)


# Limits of one row.
KINDS: dict[str, Callable[[Problem, Generator, float], Limit]] = {
    "limits": _limits,
    "limits by row": _limits_by_row,
    "linear threshold": _linear_threshold,
    "winner": _winner,
    "truncated": _truncated,
}
