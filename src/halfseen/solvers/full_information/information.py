"""How much the data say about each parameter: Louis' identity, by sampling.

The information in what is seen is that of complete rows less what the holes took away,

    I_seen = I_complete − Σ_rows Var(score of the complete row | what is seen of it).

The first is a closed form. The second is estimated from sweeps of two independent chains: the mean of
score · scoreᵀ less the product of the averages of the two chains, in which no Monte-Carlo noise is
squared. (Averages of one chain would be: noise in them makes standard errors too small.)

Where nearly all is missing, a difference of two large numbers says little about what is left. There that
product itself is taken: the average of a row's scores is the score of what is seen of it, and the sum of
their squares over rows is the information in what is seen, with an error in proportion to it. (It is the
same number only where the rule and normality hold, and has the larger error where much is left.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.row_blocks import sweep_rows
from halfseen.kernels.scores import fill_scores
from halfseen.missingness.holes import Holes
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.correlations import Spread
from halfseen.solvers.full_information.completion import (
    Draws,
    make_block,
    slide_factor,
    sweep_block,
)
from halfseen.solvers.full_information.m_step import pack
from halfseen.solvers.full_information.rows import Rows

Floats = NDArray[np.float64]

# Sweeps averaged for each chain: between these, as many as keep the number of scores below that.
FEWEST_SWEEPS, MOST_SWEEPS, MOST_SCORES = 40, 400, 2**20
# Share of them that two chains which start at the same rows are given to become independent.
FORGET = 0.25
# Of the sweeps averaged, one in so many is squared: that is most of the work, and neighbours are alike.
# (Noise that squares and products of averages have in common then cancels in part only: what is left is
# below a hundredth of the standard deviation of a score.)
THIN = 2
# Rows whose scores are looked at, at most: the share of information that is missing is an average.
MOST_ROWS = 2048
# Parameters for which the whole matrix is computed; beyond, parameters of each pair of columns alone.
MOST_PARAMETERS = 500
# Largest share of missing information that is told from 1: beyond, standard errors are a lower bound.
LARGEST_SHARE = 1.0 - 1e-4
# Share of missing information beyond which what is left is not found as a difference. The error of that
# is about 1/√rows of the complete information, 0.02 with as many rows as are looked at: a fifth of what
# is left here, all of it at a share of 0.98. The error of the outer product of scores is √((κ − 1)/rows)
# of what is left, where κ is the kurtosis of scores, and as much again by sampling them: 15 % in the Roy
# model, at a share of 0.985.
LARGEST_DIFFERENCE_SHARE = 0.9
# For steps along hardly determined directions the share counts as no more than the first: steps are
# at most twenty times those of expectation maximisation. How far is left to go is judged with the
# second.
LARGEST_GAIN_SHARE, LARGEST_REACH_SHARE = 0.95, 0.995


@dataclass(frozen=True)
class Information:
    """Covariance of the estimates of the free parameters, and what the holes took.

    Attributes
    ----------
    basis : array of shape (d + d(d+1)/2, q)
        Derivatives of (μ, Σ_ij for i >= j) in the free parameters.
    covariance : array of shape (q, q)
        Of the estimates of the free parameters.
    missing : array of shape (q,)
        Shares of the information that are missing, in the directions in which they are extreme, growing.
    gain, reach : arrays of shape (q, q)
        I_seen⁻¹ I_complete, how far the top of the likelihood is for a unit step of expectation
        maximisation: capped for steps, and nearly as it is.
    at : array of shape (d + d(d+1)/2,)
        The parameters at which it was estimated.
    """

    basis: Floats
    covariance: Floats
    missing: Floats
    gain: Floats
    reach: Floats
    at: Floats

    def variances(self) -> Floats:
        """Variances of the estimates of (μ, Σ_ij for i >= j)."""
        return np.einsum("ij,ij->i", self.basis @ self.covariance, self.basis)


def complete_information(P: Floats) -> Floats:
    """Information of one complete row about (μ, Σ_ij for i >= j).

    P for the mean, and c_ij c_kl (P_ik P_jl + P_il P_jk) for the covariance, where c is ½ on the
    diagonal and 1 elsewhere: an entry off the diagonal stands for two.
    """
    d = len(P)
    i, j = np.tril_indices(d)
    c = np.where(i == j, 0.5, 1.0)
    out = np.zeros((d + i.size, d + i.size))
    out[:d, :d] = P
    products = P[np.ix_(i, i)] * P[np.ix_(j, j)] + P[np.ix_(i, j)] * P[np.ix_(j, i)]
    out[d:, d:] = np.outer(c, c) * products
    return out


def information_along(P: Floats, basis: Floats) -> Floats:
    """Information of one complete row about free parameters, of which ``basis`` has the derivatives.

    ½ tr(P B_k P B_l) for those that move the covariance by B_k. The whole information, of d⁴/4 numbers,
    would not fit in memory where a known covariance has hundreds of columns.
    """
    d = len(P)
    out = basis[:d].T @ P @ basis[:d]
    moving = np.flatnonzero(basis[d:].any(axis=0))
    B = np.zeros((moving.size, d, d))
    i, j = np.tril_indices(d)
    B[:, i, j] = B[:, j, i] = basis[d:, moving].T
    products = 0.5 * (P @ B @ P).reshape(moving.size, d * d) @ B.reshape(moving.size, d * d).T
    out[np.ix_(moving, moving)] += 0.5 * (products + products.T)
    return np.asarray(out)


def row_scores(R: Floats, P: Floats, basis: Floats | None) -> Floats:
    """Scores of complete rows with R = P (y − μ): R itself, and c_ij (R_i R_j − P_ij)."""
    d = len(P)
    if basis is not None and not basis[d:].any():
        return R @ basis[:d]
    scores = np.empty((len(R), d + d * (d + 1) // 2))
    fill_scores(R, P, scores)
    return scores if basis is None else scores @ basis


@dataclass(frozen=True)
class Scores:
    """Scores of complete rows, made from R = P (y − μ).

    In the free parameters that have the derivatives ``basis``; or, without one, in those of
    w = L⁻¹(y − μ).
    """

    P: Floats
    basis: Floats | None = None
    L: Floats | None = None

    def __call__(self, R: Floats) -> Floats:
        """Return the scores, one row each."""
        if self.L is not None:
            return row_scores(R @ self.L, np.eye(len(self.P)), None)
        return row_scores(R, self.P, self.basis)


class Sampling(NamedTuple):
    """How scores are sampled: the seed, and how many sweeps are forgotten and averaged."""

    seed: int
    forget: int
    average: int


def missing_information(
    sample: tuple[Floats, Holes],
    mean: Floats,
    P: Floats,
    score: Scores,
    seed: int,
    spread: Spread,
) -> tuple[Floats, Floats]:
    """Σ_rows Var(score | what is seen) and Σ_rows E(score | seen) E(score | seen)ᵀ.

    Over some rows whose hidden cells are filled in, and their holes; ``spread`` does the work.
    """
    Y, holes = sample
    step = max(1, sweep_rows(Y.shape[1]) // 4)
    factor = slide_factor(holes.inequalities is not None, P)
    size = score(np.zeros((1, len(P)))).shape[1]
    average = int(np.clip(MOST_SCORES // max(1, len(Y) * size), FEWEST_SWEEPS, MOST_SWEEPS))
    pieces = [slice(start, min(start + step, len(Y))) for start in range(0, len(Y), step)]
    items = [(rows.start, Y[rows], holes.take(rows)) for rows in pieces]
    sampling = Sampling(seed, int(FORGET * average), average)
    taken, products = np.zeros((size, size)), np.zeros((size, size))
    for one, other in spread(_sampled_scores, items, mean, P, factor, score, sampling):
        taken += one
        products += other
    return taken, products


def _sampled_scores(
    item: tuple[int, Floats, Holes],
    mean: Floats,
    P: Floats,
    factor: Floats | None,
    score: Scores,
    sampling: Sampling,
) -> tuple[Floats, Floats]:
    """Do so for some rows."""
    start, Y, holes = item
    seed, forget, average = sampling
    size = score(np.zeros((1, len(P)))).shape[1]
    block = make_block(holes, slice(0, len(Y)))
    square, sums = np.zeros((size, size)), []
    for chain in (0, 1):
        rng = keyed_generator(seed, Purpose.INFORMATION, chain, start)
        part = Y.copy()
        total = np.zeros((len(part), size))
        for k in range(forget + average):
            Z = part - mean
            draws = Draws.make(block, rng, factor)
            R = sweep_block(part, Z, Z.copy(), np.zeros(len(P)), block, mean, P, draws, bool(k % 2))
            if k >= forget:
                scores = score(R)
                total += scores
                if (k - forget) % THIN == 0:
                    square += scores.T @ scores
        sums.append(total)
    cross = sums[0].T @ sums[1]
    product = 0.5 * (cross + cross.T) / average**2
    squared = len(range(0, average, THIN))
    return square / (2 * squared) - product, product


def information(
    rows: Rows, mean: Floats, covariance: Floats, basis: Floats, seed: int
) -> Information:
    """Estimate the covariance of the estimates at ``mean`` and ``covariance``.

    Parameters
    ----------
    rows : Rows
        With hidden cells anywhere in their region.
    mean, covariance : arrays
    basis : array of shape (d + d(d+1)/2, q)
        Derivatives of (μ, Σ_ij for i >= j) in the free parameters.
    seed : int
    """
    n, d = rows.overview.shape
    P = np.linalg.inv(covariance)
    P = 0.5 * (P + P.T)
    chosen = spread_rows(n, MOST_ROWS)
    some = rows.take(chosen), mean, P
    at = pack(mean, covariance)
    if not np.array_equal(basis, np.eye(len(at))):
        sums = missing_information(*some, Scores(P, basis), seed, rows.map)
        whole = information_along(P, basis)
        return Information(basis, *_shares(whole, *sums, len(chosen), n), at)
    # All of the covariance is free. For w = L⁻¹(y − μ) the information of complete rows is diagonal,
    # however near to singular the covariance is.
    L = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    sums = missing_information(*some, Scores(P, L=L), seed, rows.map)
    found = _shares(complete_information(np.eye(d)), *sums, len(chosen), n)
    there, back = _lift(L), _lift(np.asarray(np.linalg.inv(L), dtype=np.float64))
    gain, reach = there @ found.gain @ back, there @ found.reach @ back
    return Information(basis, there @ found.covariance @ there.T, found.missing, gain, reach, at)


class Shares(NamedTuple):
    """Covariance of estimates, shares of missing information, gain and reach, in some coordinates."""

    covariance: Floats
    missing: Floats
    gain: Floats
    reach: Floats


def _shares(whole: Floats, taken: Floats, products: Floats, rows: int, n: int) -> Shares:
    """Compare the information of a complete row with what the holes took of that of some rows.

    ``products`` is the outer product of the scores of what is seen of those rows, for directions with
    little left; ``n`` are all rows.
    """
    # In coordinates where complete rows have information I, shares lie between 0 and 1.
    L = np.asarray(np.linalg.cholesky(whole), dtype=np.float64)
    missing, vectors = np.linalg.eigh(_between(L, taken / rows))
    weak = missing > LARGEST_DIFFERENCE_SHARE
    if weak.any():
        # With their rows and columns, for the directions themselves are as uncertain as their shares.
        share = np.diag(missing)
        by_scores = np.eye(len(L)) - vectors.T @ _between(L, products / rows) @ vectors
        share[weak], share[:, weak] = by_scores[weak], by_scores[:, weak]
        missing, turn = np.linalg.eigh(share)
        vectors = vectors @ turn
    kept = 1.0 - np.clip(missing, 0.0, LARGEST_SHARE)
    directions = np.linalg.solve(L.T, vectors)
    gain, reach = (
        (directions / (1.0 - np.clip(missing, 0.0, most))) @ (L @ vectors).T
        for most in (LARGEST_GAIN_SHARE, LARGEST_REACH_SHARE)
    )
    return Shares((directions / kept) @ directions.T / n, missing, gain, reach)


def _between(L: Floats, A: Floats) -> Floats:
    """Return L⁻¹ A L⁻ᵀ, symmetric to the last bit."""
    out = np.linalg.solve(L, np.linalg.solve(L, A).T)
    return np.asarray(0.5 * (out + out.T))


def _lift(L: Floats) -> Floats:
    """Return the matrix of (a, B) → (L a, L B Lᵀ), for vectors of (μ, Σ_ij for i >= j)."""
    d = len(L)
    i, j = np.tril_indices(d)
    out = np.zeros((d + i.size, d + i.size))
    out[:d, :d] = L
    # Entry (a, b) of B stands for (b, a) too, unless it is on the diagonal.
    both = L[np.ix_(i, i)] * L[np.ix_(j, j)] + L[np.ix_(i, j)] * L[np.ix_(j, i)]
    out[d:, d:] = both * np.where(i == j, 0.5, 1.0)
    return out


def spread_rows(n: int, most: int) -> NDArray[np.intp]:
    """At most so many rows, evenly spread over the table."""
    if n <= most:
        return np.arange(n)
    return np.linspace(0, n - 1, most).astype(np.intp)
