"""From standard deviations and correlations of pairs to one covariance matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Smallest eigenvalue of the assembled correlation matrix. A pair with correlation 0.9999 reaches it;
# a smaller floor would only make the precision matrix larger than any data support.
EIGENVALUE_FLOOR = 1e-4


def assemble(
    deviations: Floats, rho: Floats, floor: float = EIGENVALUE_FLOOR
) -> tuple[Floats, Floats, bool]:
    """Correlation matrix of the pairs, and the nearest one with eigenvalues of at least ``floor``.

    Pairs that were solved one by one need not fit together (erratum 4). Clipping eigenvalues is the
    Frobenius projection on {Σ ⪰ floor·I}, a convex set that holds the truth, so it never increases
    the Frobenius error. It is done on the correlation scale, so that units do not matter.

    Returns
    -------
    covariance : array of shape (d, d)
    before : array of shape (d, d)
        The covariance as the pairs gave it.
    projected : bool
        Whether the two differ.
    """
    d = deviations.size
    matrix = np.eye(d)
    i, j = np.triu_indices(d, 1)
    matrix[i, j] = matrix[j, i] = rho
    scale = np.outer(deviations, deviations)
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= floor:
        return matrix * scale, matrix * scale, False
    nearest = (vectors * np.maximum(values, floor)) @ vectors.T
    return 0.5 * (nearest + nearest.T) * scale, matrix * scale, True
