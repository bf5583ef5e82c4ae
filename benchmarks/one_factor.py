"""Cramér–Rao limits of tables with one correlation, by symmetry: any number of columns in seconds.

All columns are alike but for their means, and limits lie at the same shares of each. So the hidden part
of a row is an integral over one factor, and its information is thirteen numbers, however many columns.
``limits.py`` says what scores and information are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

Floats = NDArray[np.float64]
Generator = np.random.Generator

# Numbers that are held at a time in an array: 8 megabytes.
HELD = 2**20
# The factor F is integrated from −REACH to REACH: it lies outside in 1e-18 of all rows.
REACH = 9.0
# Steps h of a trapezoidal rule, in the least standard deviation s of what is integrated: for a Gaussian
# its error is 2 exp(−2π² s²/h²), 1e-34 with half of s, and hidden cells make a density no narrower.
STEP = 0.5


def one_factor_limits(
    d: int, rho: float, shares: Sequence[tuple[float, float]], rows: int, rng: Generator
) -> Floats:
    """Return what squared errors of best estimates are expected to be, for one row.

    Parameters
    ----------
    d : int
    rho : float
        The correlation of all pairs; standard deviations are 1.
    shares : sequence of pairs
        Shares of a column that are hidden below and above; rows have equally often each of these.
    rows : int
        How many are drawn.
    rng : Generator

    Returns
    -------
    array of shape (5,)
        For μ_i, Σ_ii and Σ_ij, for the mean (Mahalanobis) and for the covariance (relative Frobenius).
    """
    if d < 3 or not 0.0 <= rho < 1.0:
        raise ValueError(f"expected d >= 3 and 0 <= correlation < 1, got d = {d} and {rho}")
    each = math.ceil(rows / len(shares))
    missing = np.mean([missing_blocks(d, rho, *share, each, rng) for share in shares], axis=0)
    return symmetric_limits(missing, d, rho)


def missing_blocks(
    d: int, rho: float, below: float, above: float, rows: int, rng: Generator
) -> Floats:
    """Return the blocks of the information that limits at these shares of each column hide."""
    total = np.zeros((3, 3, 3))
    for held in pieces(rows, max(6 * d, _factor_grid(d, rho).size)):
        F, noise = rng.standard_normal((held, 1)), rng.standard_normal((held, d))
        Y = math.sqrt(rho) * F + math.sqrt(1.0 - rho) * noise
        total += symmetric_blocks(*missing_scores(Y, rho, below, above)) * (held / rows)
    return total


def missing_scores(
    Y: Floats, rho: float, below: float, above: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return s − E[s | what is seen] of standardised rows, whose second moment is what is hidden.

    For μ it is R = P(y − m), with m the mean of y given what is seen; for Σ_ij it is f_ij H_ij, where

        H = P (y yᵀ − m mᵀ − Cov(y | seen)) P = U D Uᵀ − diag(q)

    is of low rank but for its diagonal, and is never formed.

    Returns
    -------
    R : array of shape (n, d)
    U : array of shape (n, d, 6)
    D : array of shape (n, 6, 6)
    q : array of shape (n, d)
    """
    n, d = Y.shape
    mean, sides, between, variance = given_seen(Y, rho, below, above)
    # P = a (I − c 1 1ᵀ).
    a, c = 1.0 / (1.0 - rho), rho / (1.0 + (d - 1) * rho)
    U = np.empty((n, d, 6))
    U[:, :, :4] = np.dstack([Y - mean, Y + mean, *sides])
    U[:, :, :4] -= c * U[:, :, :4].sum(axis=1, keepdims=True)
    U[:, :, 4], U[:, :, 5] = variance, 1.0
    D = np.zeros((n, 6, 6))
    # y yᵀ − m mᵀ = ((y − m)(y + m)ᵀ + (y + m)(y − m)ᵀ) / 2.
    D[:, 0, 1] = D[:, 1, 0] = 0.5
    D[:, 2:4, 2:4] = -between
    # −P diag(v) P = a² (c (v 1ᵀ + 1 vᵀ) − c² (Σ v) 1 1ᵀ − diag(v)).
    D[:, 4, 5] = D[:, 5, 4] = c
    D[:, 5, 5] = -(c**2) * variance.sum(axis=1)
    return a * U[:, :, 0], a * U, D, a**2 * variance


def given_seen(
    Y: Floats, rho: float, below: float, above: float
) -> tuple[Floats, NDArray[np.bool_], Floats, Floats]:
    """Return the moments of complete standardised rows, given what is seen of them.

    y_i = √ρ F + √(1−ρ) ε_i: given F, hidden cells are independent truncated normals, and those that
    are hidden on one side of a row are alike. So the density of F given what is seen needs only how many
    cells are hidden on either side and the sum of the others. It is averaged over on a grid.

    Returns
    -------
    mean : array of shape (n, d)
    sides : array of shape (2, n, d)
        Which cells are hidden below, and which above.
    between : array of shape (n, 2, 2)
        Covariance of cells on these sides that comes from F.
    variance : array of shape (n, d)
        What a cell has beside it.
    """
    F = _factor_grid(Y.shape[1], rho)
    tables = np.stack([_below(F, rho, below), _above(F, rho, above)], axis=1)
    log_mass, middle, variance = tables
    sides = np.stack([ndtri(below) > Y, ndtri(1.0 - above) < Y])
    seen = ~sides.any(axis=0)
    log_weight = (
        sides.sum(axis=2).T @ log_mass
        + np.outer((Y * seen).sum(axis=1), F) * math.sqrt(rho) / (1.0 - rho)
        - 0.5 * np.outer(1.0 + seen.sum(axis=1) * rho / (1.0 - rho), F**2)
    )
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    first = weight @ middle.T
    second = (weight @ (middle[:, None] * middle).reshape(4, -1).T).reshape(-1, 2, 2)
    between = second - first[:, :, None] * first[:, None, :]
    mean, variance = (np.einsum("snd,ns->nd", sides, part) for part in (first, weight @ variance.T))
    return np.where(seen, Y, mean), sides, between, variance


def _factor_grid(d: int, rho: float) -> Floats:
    """Return where F is looked at; it is known best, and its density narrowest, where all is seen."""
    step = STEP / math.sqrt(1.0 + d * rho / (1.0 - rho))
    return np.linspace(-REACH, REACH, 2 * math.ceil(REACH / step) + 1)


def _below(F: Floats, rho: float, share: float) -> Floats:
    """Return log probability, mean and variance, given F, of a cell in its column's lowest share."""
    if share == 0.0:
        return np.zeros((3, F.size))
    middle, spread = math.sqrt(rho) * F, math.sqrt(1.0 - rho)
    end = (ndtri(share) - middle) / spread
    log_mass = log_ndtr(end)
    ratio = np.exp(-0.5 * end**2 - log_mass) / math.sqrt(2.0 * math.pi)
    variance = spread**2 * (1.0 - ratio * (end + ratio))
    return np.array([log_mass, middle - spread * ratio, variance])


def _above(F: Floats, rho: float, share: float) -> Floats:
    """Return the same of a cell in the highest share, by symmetry."""
    log_mass, mean, variance = _below(-F, rho, share)
    return np.array([log_mass, -mean, variance])


# Information that is the same for every order of the columns. As a representation of the permutations,
# (μ, Σ_ii, Σ_ij for i > j) is three times the trivial one (sums), three times the standard one (numbers
# whose sum is zero), and once a third one, of dimension d(d−3)/2: what pairs have beside their row sums.
# The information is then three blocks of 3 × 3, whose rows belong to μ, Σ_ii and Σ_ij; of the third only
# the last entry means anything.


def symmetric_blocks(R: Floats, U: Floats, D: Floats, q: Floats) -> Floats:
    """Return the blocks of the average of s sᵀ over scores, and over all orders of their columns."""
    n, d = R.shape
    UD = U @ D
    low_rank = (UD * U).sum(axis=2)
    diagonal = low_rank - q
    others = (UD @ U.sum(axis=1)[:, :, None])[:, :, 0] - low_rank
    # x_i + x_j over pairs has the length √(d−2) |x|, if the sum of x is zero.
    columns = np.stack([R, 0.5 * diagonal, others / math.sqrt(d - 2)])
    sums = np.stack([R, 0.5 * diagonal, 0.5 * others]).sum(axis=2)
    trivial = sums / np.sqrt([[d], [d], [d * (d - 1) / 2]])
    columns -= columns.mean(axis=2, keepdims=True)
    standard = np.tensordot(columns, columns, axes=([1, 2], [1, 2])) / (n * (d - 1))
    third = np.zeros((3, 3))
    if d > 3:
        # |U D Uᵀ|² = tr(D A D A) with A = Uᵀ U.
        DA = UD.transpose(0, 2, 1) @ U
        pairs = 0.5 * ((DA * DA.transpose(0, 2, 1)).sum() - (low_rank**2).sum())
        third[2, 2] = pairs - (trivial[2] ** 2).sum() - (columns[2] ** 2).sum()
    return np.stack([trivial @ trivial.T / n, standard, third / (n * max(1, d * (d - 3) / 2))])


def complete_blocks(d: int, rho: float) -> Floats:
    """Return the blocks of the information of a complete row.

    In a direction (μ, Σ) it is μᵀPμ + tr(PΣPΣ)/2; one direction of each representation is enough.
    """
    precision = np.linalg.inv((1.0 - rho) * np.eye(d) + rho)
    one, x = np.ones(d), np.zeros(d)
    x[:2] = np.array([1.0, -1.0]) / math.sqrt(2.0)
    off = 1.0 - np.eye(d)
    blocks = np.stack([np.eye(3)] * 3)
    for block, vector, length in ((0, one / math.sqrt(d), 2 * (d - 1)), (1, x, d - 2)):
        pairs = off * np.add.outer(vector, vector) / math.sqrt(length)
        half = [precision @ direction for direction in (np.diag(vector), pairs)]
        blocks[block, 0, 0] = vector @ precision @ vector
        blocks[block, 1:, 1:] = 0.5 * np.array([[(a * b.T).sum() for a in half] for b in half])
    if d > 3:
        square = np.zeros((d, d))
        square[[0, 1, 2, 3], [1, 0, 3, 2]], square[[0, 2, 1, 3], [2, 0, 3, 1]] = 0.5, -0.5
        product = precision @ square
        blocks[2, 2, 2] = 0.5 * (product * product.T).sum()
    return blocks


def symmetric_limits(missing: Floats, d: int, rho: float) -> Floats:
    """Return the limits of ``one_factor_limits``, given the blocks of what is hidden."""
    complete = complete_blocks(d, rho)
    inverse = np.linalg.inv(complete - missing)
    # Dimensions of the representations, as far as they are part of μ, Σ_ii and Σ_ij.
    dimensions = np.array([[1, 1, 1], [d - 1, d - 1, d - 1], [0, 0, d * (d - 3) / 2]])
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)
    entries = (dimensions * diagonal).sum(axis=0) / dimensions.sum(axis=0)
    # Complete information is a metric: tr(PV) is the squared Mahalanobis error of an estimate of μ with
    # covariance V, and half of the squared relative Frobenius error of Σ is the same for it.
    products = np.minimum(dimensions[:, :, None], dimensions[:, None, :]) * complete * inverse
    return np.array([*entries, products[:, 0, 0].sum(), 2.0 * products[:, 1:, 1:].sum()])


def pieces(count: int, width: int) -> Iterator[int]:
    """Cut a number of rows into what can be held at a time."""
    most = max(1, HELD // width)
    for start in range(0, count, most):
        yield min(most, count - start)
