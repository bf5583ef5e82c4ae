"""Triangles that stand for tall matrices: with the same lengths of columns, and angles between them.

They are put together from those of parts, so that a matrix in pieces is never held as a whole; sums of
products would lose half of the digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from halfseen.parallel import single_blas_thread

Floats = NDArray[np.float64]

# Rows that are looked at together.
BLOCK = 1 << 12


def triangle_of(*parts: Floats) -> Floats:
    """Return R with RᵀR = Σ AᵀA for matrices A of the same columns, by QR decompositions.

    Examples
    --------
    >>> import numpy as np
    >>> from halfseen.data.triangles import triangle_of
    >>> A, B = np.arange(8.0).reshape(4, 2), np.eye(2)
    >>> R = triangle_of(A, B)
    >>> bool(np.allclose(R.T @ R, A.T @ A + B.T @ B)), R.shape
    (True, (2, 2))
    """
    columns = parts[0].shape[1]
    if not columns:
        return np.empty((0, 0))
    out: Floats = np.empty((0, columns))
    with single_blas_thread():
        for part in parts:
            for start in range(0, len(part), BLOCK):
                block = np.vstack([out, part[start : start + BLOCK]])
                triangle = qr(block, mode="r", overwrite_a=True, check_finite=False)[0]
                out = np.array(triangle[:columns], dtype=float)
    return out


def lengths_of(matrix: Floats) -> Floats:
    """Return the lengths of columns, however large or small their squares would be."""
    largest = np.abs(matrix).max(axis=0, initial=0.0)
    safe = np.where(largest > 0.0, largest, 1.0)
    return np.asarray(safe * np.sqrt(np.square(matrix / safe).sum(axis=0)))
