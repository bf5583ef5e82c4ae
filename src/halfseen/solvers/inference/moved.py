"""Parameters moved by a vector, to where they are parameters again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.theta import unpack

# Along hardly determined directions a drawn variance changes by a factor of at most exp(4).
LARGEST_MOVE = 4.0


def moved(g: Gaussian, move: NDArray[np.float64]) -> Gaussian:
    """Move the parameters of a Gaussian.

    A covariance L Lᵀ + δ becomes L exp(L⁻¹ δ L⁻ᵀ) Lᵀ, which is the same to first order and always
    positive definite.
    """
    of_mean, change = unpack(move, g.dimension)
    L = g.cholesky
    inner = np.linalg.solve(L, np.linalg.solve(L, change).T)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    root = L @ (vectors * np.exp(0.5 * np.clip(values, -LARGEST_MOVE, LARGEST_MOVE)))
    return Gaussian(g.mean + of_mean, root @ root.T)
