"""From standard deviations and correlations of pairs to one covariance matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError

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
    the Frobenius error on the scale on which it is done. That is the scale of correlations, so that
    units do not matter; in the units of the table the error can rise, where deviations are off.

    Returns
    -------
    covariance : array of shape (d, d)
    before : array of shape (d, d)
        The covariance as the pairs gave it.
    projected : bool
        Whether the two differ.
    """
    if not 0.0 < floor < 1.0:
        raise InputError(f"eigenvalue_floor must lie between 0 and 1; got {floor!r}.")
    d = deviations.size
    matrix = np.eye(d)
    i, j = np.triu_indices(d, 1)
    matrix[i, j] = matrix[j, i] = rho
    scale = np.outer(deviations, deviations)
    # A pair solved on its own may ask for |ρ| > 1. Each entry is brought back first: left to the
    # eigenvalues, it would inflate variances that are right.
    bounded = np.clip(matrix, -1.0, 1.0)
    values, vectors = np.linalg.eigh(bounded)
    if values[0] >= floor:
        return bounded * scale, matrix * scale, bool((bounded != matrix).any())
    nearest = (vectors * np.maximum(values, floor)) @ vectors.T
    return 0.5 * (nearest + nearest.T) * scale, matrix * scale, True
