"""Practical values of the parameters of Algorithm 3, from the data and the covariance.

Among them α of the paper's assumptions: how often those columns are seen that are so least often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.domain import mean_reach
from halfseen.solvers.initialize import block_size

# All subsets of βd columns are looked at up to this many; beyond, as many are sampled.
MOST_SUBSETS = 5000
Floats = NDArray[np.float64]


def least_joint_share(seen: NDArray[np.bool_], size: int) -> float:
    """Least share of rows in which ``size`` columns are seen together; sampled if there are many."""
    return rarest_subset(seen, size)[1] / len(seen)


def rarest_subset(
    seen: NDArray[np.bool_], size: int, seed: int = 0
) -> tuple[tuple[int, ...], int, bool]:
    """Return the columns that are least often seen together, how often, and whether all were tried."""
    d = seen.shape[1]
    every = math.comb(d, size) <= MOST_SUBSETS
    if every:
        subsets = list(combinations(range(d), size))
    else:
        rng = keyed_generator(seed, Purpose.DIAGNOSE, 0)
        subsets = [tuple(sorted(rng.choice(d, size, replace=False))) for _ in range(MOST_SUBSETS)]
    hits = [int(seen[:, list(subset)].all(axis=1).sum()) for subset in subsets]
    rarest = int(np.argmin(hits))
    return subsets[rarest], hits[rarest], every


@dataclass(frozen=True)
class Defaults:
    """Practical values of the paper's parameters, derived in one place.

    Attributes
    ----------
    alpha : float
        Least share of rows in which βd columns are seen together.
    beta : float
        Share of the columns in a block.
    strong_convexity : float
        λ_sgd = αβ/λ_max(Σ), as in the paper.
    projection_radius : float
        r_proj: each block's start is off by at most h(α) standard deviations, so the whole by at most
        √(κ/β)·h(α) in Mahalanobis distance, with κ the condition number of Σ.
    """

    alpha: float
    beta: float
    strong_convexity: float
    projection_radius: float


def derive_defaults(X: Floats, known: Gaussian, beta: float | None) -> Defaults:
    """Compute the practical parameters from the data and the covariance."""
    d = X.shape[1]
    size = block_size(beta, d)
    alpha = least_joint_share(~np.isnan(X), size)
    values = np.linalg.eigvalsh(known.covariance)
    share = size / d
    # The share is an estimate: half of it bounds the start, as in every other domain here.
    reach = float(mean_reach(0.5 * max(alpha, 1.0 / len(X))))
    return Defaults(
        alpha,
        share,
        max(alpha, 1.0 / len(X)) * share / float(values[-1]),
        reach * float(np.sqrt(values[-1] / values[0] / share)),
    )
