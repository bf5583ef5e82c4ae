"""Standard errors where there are too many parameters for one matrix: two columns at a time.

For each pair, the five parameters of its marginal distribution have the information of complete
rows less what the holes took away, given *all* that is seen of a row; the parameters of other
columns are taken as known there. What is neglected is how uncertainty about those spreads to the
pair, which is second order in the correlations between what is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.kernels.paths import law_of
from halfseen.missingness.holes import Holes
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.correlations import Spread
from halfseen.solvers.full_information.expectation import (
    Block,
    Parameters,
    Sampling,
    at_random,
    confines_of,
    drawn_rows,
    grouped,
)
from halfseen.solvers.full_information.information import LARGEST_SHARE
from halfseen.solvers.full_information.m_step import correlation_of
from halfseen.solvers.full_information.rows import Rows

Floats = NDArray[np.float64]

# Draws of a row, twice, and the points that they are taken from.
DRAWS, POINTS = 40, 128
# Products of cells looked at in all: rows times squared columns. And no more rows than this.
MOST_PRODUCTS, MOST_ROWS = 2**24, 2048
# Rows of a block, whose products of all pairs are held at once.
BLOCK_ROWS = 16
# Blocks that are handed out together: their sums, of 25 d² numbers, may have to travel.
BLOCKS_PER_ITEM = 4
# Pairs whose matrices of 5 × 5 are worked on at once: those of all columns would outweigh the rows.
PAIRS_AT_ONCE = 2**12
# Statistics of a pair: (x, y, x², xy, y²), by their powers.
POWERS = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
# Powers of the products of two statistics; those with x and y exchanged are their transposes.
PRODUCTS = ((1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (4, 0))


@dataclass(frozen=True)
class PairErrors:
    """Variances of the estimated means, and covariances of (σ_ij, σ_ii, σ_jj) for each pair."""

    mean: Floats
    covariance: tuple[Floats, Floats, Floats]
    variances: tuple[Floats, Floats, Floats]

    def scaled(self, scale: Floats) -> PairErrors:
        """Return them in units in which columns are ``scale`` times larger."""
        s = scale
        ij, ii, jj = np.outer(s, s), s[:, None] ** 2, s**2
        a, b, c = self.covariance
        e, f, g = self.variances
        return PairErrors(
            self.mean * s**2,
            (a * ij * ij, b * ij * ii, c * ij * jj),
            (e * ii * ii, f * ii * jj, g * jj * jj),
        )


def pair_errors(rows: Rows, mean: Floats, covariance: Floats, seed: int) -> PairErrors:
    """Estimate the covariance of the estimates of each pair's parameters, in the units of the rows."""
    n, d = rows.overview.shape
    most = max(BLOCK_ROWS, min(MOST_ROWS, MOST_PRODUCTS // (d * d)))
    rng = keyed_generator(seed, Purpose.INFORMATION)
    chosen = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    scale = np.sqrt(np.diag(covariance))
    hidden = _conditional_covariances(rows.take(chosen), mean, covariance, scale, seed, rows.map)
    i, j = np.tril_indices(d, -1)
    rho, V = correlation_of(covariance)[i, j], np.empty((i.size, 5, 5))
    for start in range(0, i.size, PAIRS_AT_ONCE):
        some = slice(start, start + PAIRS_AT_ONCE)
        own = hidden[:, :, i[some], j[some]] / len(chosen)
        V[some] = _pair_covariances(own, rho[some]) / n
    return _unpack(V, i, j, d).scaled(scale)


def _conditional_covariances(
    sample: tuple[Floats, Holes],
    mean: Floats,
    covariance: Floats,
    scale: Floats,
    seed: int,
    spread: Spread,
) -> Floats:
    """Σ_rows Cov(statistics of a pair | what is seen), of shape (5, 5, d, d)."""
    Y, holes = sample
    d = mean.size
    step = BLOCKS_PER_ITEM * BLOCK_ROWS
    pieces = [slice(start, min(start + step, len(Y))) for start in range(0, len(Y), step)]
    items = [(rows.start, Y[rows], holes.take(rows)) for rows in pieces]
    total = np.zeros((5, 5, d, d))
    for part in spread(_drawn_covariances, items, Parameters.of(mean, covariance), scale, seed):
        total += part
    return total


def _drawn_covariances(
    item: tuple[int, Floats, Holes], at: Parameters, scale: Floats, seed: int
) -> Floats:
    """Add them up over some rows."""
    first, Y, holes = item
    total = np.zeros((5, 5, scale.size, scale.size))
    mask, confines = at_random(holes), confines_of(holes)
    law = law_of(confines)
    for start in range(0, len(Y), BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, len(Y)))
        block = Block(rows, first + start, grouped(holes.take(rows), mask[rows]), law)
        pair = []
        for k in (0, 1):
            sampling = Sampling(POINTS, seed, 2 + k, Purpose.INFORMATION)
            drawn = drawn_rows(Y, block, confines, at, sampling, DRAWS)
            pair.append(np.ascontiguousarray(np.swapaxes((drawn - at.mean) / scale, 0, 1)))
        total += _block_covariances(pair)
    return total


def _block_covariances(pair: list[Floats]) -> Floats:
    """Add them up over a block, from two independent sets of draws of shape (rows, draws, d)."""
    d = pair[0].shape[2]
    total = dict.fromkeys(PRODUCTS, np.zeros(()))
    averages = [_statistics(drawn) for drawn in pair]
    for drawn in pair:
        for key, product in _power_products(drawn.reshape(-1, d)).items():
            total[key] = total[key] + product
    out = np.empty((5, 5, d, d))
    for a, (p, q) in enumerate(POWERS):
        for b, (r, s) in enumerate(POWERS[: a + 1]):
            high, low = max(p + r, q + s), min(p + r, q + s)
            whole = total[high, low] if p + r >= q + s else total[high, low].T
            # Of both orders of the sets.
            cross = np.einsum("rij,rij->ij", averages[0][a], averages[1][b])
            cross += np.einsum("rij,rij->ij", averages[1][a], averages[0][b])
            out[a, b] = out[b, a] = whole / (2 * DRAWS) - 0.5 * cross
    return out


def _power_products(z: Floats) -> dict[tuple[int, int], Floats]:
    """Add up z_i^p z_j^q over rows, by (p, q), as arrays of shape (d, d)."""
    square = z * z
    powers = [np.ones_like(z), z, square, square * z, square * square]
    return {(p, q): powers[p].T @ powers[q] for p, q in PRODUCTS}


def _statistics(drawn: Floats) -> list[Floats]:
    """Averages of (x, y, x², xy, y²) for each row and pair, over draws of shape (rows, draws, d)."""
    one = drawn.mean(axis=1)
    two = np.swapaxes(drawn, 1, 2) @ drawn / drawn.shape[1]
    diagonal = np.einsum("rii->ri", two)
    shape = two.shape
    return [
        np.broadcast_to(one[:, :, None], shape),
        np.broadcast_to(one[:, None, :], shape),
        np.broadcast_to(diagonal[:, :, None], shape),
        two,
        np.broadcast_to(diagonal[:, None, :], shape),
    ]


def _pair_covariances(hidden: Floats, rho: Floats) -> Floats:
    """Covariance, times the number of rows, of the estimates of (m, s) of each pair on unit scale.

    In terms of the expected statistics t = (x, y, x², xy, y²) complete rows have information C⁻¹ with
    C = Cov(t), and what is missing is C⁻¹ Cov(t | seen) C⁻¹; so the estimates have covariance
    (C⁻¹ − C⁻¹ H C⁻¹)⁻¹ = C^½ (I − C^-½ H C^-½)⁻¹ C^½.
    """
    C = np.zeros((rho.size, 5, 5))
    C[:, 0, 0] = C[:, 1, 1] = 1.0
    C[:, 0, 1] = C[:, 1, 0] = rho
    C[:, 2, 2] = C[:, 4, 4] = 2.0
    C[:, 2, 3] = C[:, 3, 2] = C[:, 3, 4] = C[:, 4, 3] = 2.0 * rho
    C[:, 2, 4] = C[:, 4, 2] = 2.0 * rho**2
    C[:, 3, 3] = 1.0 + rho**2
    H = np.moveaxis(hidden, 2, 0)
    L = np.linalg.cholesky(C)
    half = np.linalg.solve(L, H)
    share = np.linalg.solve(L, np.swapaxes(half, 1, 2))
    values, vectors = np.linalg.eigh(0.5 * (share + np.swapaxes(share, 1, 2)))
    kept = 1.0 - np.clip(values, 0.0, LARGEST_SHARE)
    root = L @ (vectors / np.sqrt(kept)[:, None, :])
    return np.asarray(root @ np.swapaxes(root, 1, 2))


def _unpack(V: Floats, i: NDArray[np.intp], j: NDArray[np.intp], d: int) -> PairErrors:
    """Spread the 5 × 5 matrices of the pairs over (d, d) arrays.

    A mean or variance takes part in many pairs; the largest of its variances is taken, since each pair
    knows only part of what it depends on.
    """
    mean, variance = np.zeros(d), np.zeros(d)
    for k, (at_mean, at_variance) in ((i, (0, 2)), (j, (1, 4))):
        np.maximum.at(mean, k, V[:, at_mean, at_mean])
        np.maximum.at(variance, k, V[:, at_variance, at_variance])

    def spread(a: int, b: int, mirror_a: int, mirror_b: int) -> Floats:
        out = np.diag(variance)
        out[i, j], out[j, i] = V[:, a, b], V[:, mirror_a, mirror_b]
        return out

    return PairErrors(
        mean,
        (spread(3, 3, 3, 3), spread(3, 2, 3, 4), spread(3, 4, 3, 2)),
        (spread(2, 2, 4, 4), spread(2, 4, 4, 2), spread(4, 4, 2, 2)),
    )
