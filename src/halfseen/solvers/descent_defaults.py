"""Practical values of the parameters of Algorithm 3, from the data and the covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.solvers.domain import mean_reach
from halfseen.solvers.initialize import block_size
from halfseen.solvers.rarest_subset import least_joint_share

Floats = NDArray[np.float64]


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
