"""Whether rows are those of a Gaussian: along each column, and along each principal axis.

The table is completed by draws at the fitted parameters. Along a direction in which its values x should
be standard normal, E cos(t x) = exp(−t²/2) and E sin(t x) = 0. Cosines fall short where values keep
away from the middle (two groups), and exceed it where there are many in the middle and far out (heavy
tails); sines tell of skewness and of groups of different sizes. Both are bounded: a sum over few rows
is nearly normal, and its covariance is that of ``fitted_rows``. Of Mardia's moments, matrices of fourth
moments, distances of rows and empirical characteristic functions in all directions none had more power
against mixtures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr, ndtri

from halfseen.diagnostics.fitted_rows import Ground, Rows
from halfseen.diagnostics.losses import largest_p_values
from halfseen.diagnostics.normality import NormalityTest
from halfseen.solvers.full_information.expectation import Parameters

Floats = NDArray[np.float64]

# t of the cosine and of the sine: cosines at 2 find two groups three deviations apart, and heavy tails.
COSINE, SINE = 2.0, 1.5
# Completed tables that are averaged.
COMPLETIONS = 4
# Columns that take part in an axis are named if their weight is this share of the largest.
LARGE_WEIGHT = 0.5
# Streams of draws, of the table and of simulated rows.
OF_TABLE, OF_SIMULATED = 21, 22
ALL_TOGETHER = "all columns together"


class Direction(NamedTuple):
    """A direction in which a standardised row should be standard normal."""

    weights: Floats
    words: str


def directions(correlation: Floats, names: tuple[str, ...]) -> list[Direction]:
    """Return the columns and, of several, the principal axes, scaled to unit variance."""
    found = [Direction(row, name) for row, name in zip(np.eye(len(names)), names, strict=True)]
    if len(names) == 1:
        return found
    values, vectors = np.linalg.eigh(correlation)
    for value, axis in zip(values[::-1], vectors.T[::-1], strict=True):
        weights = axis / np.sqrt(max(value, np.finfo(float).tiny))
        found.append(Direction(weights, _words(axis, names)))
    return found


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
    found = as_if_known(_completed(ground.seen, ground.at, axes, seed, OF_TABLE), ground.rows)
    terms = waves(_completed(ground.simulated, ground.at, axes, seed, OF_SIMULATED))
    covariance = ground.covariance(terms)
    scale = np.sqrt(np.diag(covariance))
    z = waves(found).sum(axis=0) / scale
    both = np.kron([[1.0, -1.0], [-1.0, 1.0]], covariance / np.outer(scale, scale))
    p = float(largest_p_values(np.concatenate([z, -z]), both, seed).min())
    worst = int(np.argmax(np.abs(z)))
    place = worst % len(along)
    return NormalityTest(
        ALL_TOGETHER, float(np.abs(z[worst])), _distance(found[:, :, place]), p, p, p, "completed",
        deviation=_deviation(worst < len(along), float(z[worst])), direction=along[place].words,
    )  # fmt: skip


def _completed(rows: Rows, at: Parameters, axes: Floats, seed: int, number: int) -> Floats:
    """Complete rows, and return them along some axes: (completions, rows, axes)."""
    count = COMPLETIONS if rows.hidden.any() else 1
    return np.asarray(rows.draws(at, count, seed, number) @ axes)


def _deviation(cosine: bool, z: float) -> str:
    if not cosine:
        return "skewed"
    return "heavy tails" if z > 0.0 else "two groups"


def _distance(x: Floats) -> float:
    """Kolmogorov's distance of values from normal ones, averaged over completions."""
    n = x.shape[1]
    p = ndtr(np.sort(x, axis=1))
    i = np.arange(1, n + 1)
    return float(np.maximum((i / n - p).max(axis=1), (p - (i - 1) / n).max(axis=1)).mean())
