"""What likelihood ratios of groups are with few rows, if nothing is hidden.

For complete rows the law of the test of equal means is known: Wilks' Λ = exp(−T/n), whose F
approximation (Rao's) is exact for one or two columns, and for two or three groups. The averages of the
other two follow from those of logarithms of Wishart determinants,

    E log |W_d(ν)| = d log 2 + Σ_j ψ((ν − j)/2),  j = 0 … d − 1,

and the ratio divided by its average, for each degree of freedom, is chi-square to second order
(Bartlett). Both are used where values are hidden too: how often such tests reject is measured by the
benchmark ``group_tests``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, psi


def rao(statistic: float, rows: int, columns: int, groups: int) -> float | None:
    """Return the p-value of a test of equal means, by Rao's F; None where there are too few rows."""
    p, q = columns, groups - 1
    below = p * p + q * q - 5
    root = math.sqrt((p * p * q * q - 4) / below) if below > 0 else 1.0
    first = p * q
    second = (rows - 1 - 0.5 * (p + q + 1)) * root - 0.5 * (first - 2)
    if second <= 0.0:
        return None
    # Λ^(-1/root) − 1, without cancellation.
    ratio = math.expm1(max(statistic, 0.0) / (rows * root)) * second / first
    return float(fdtrc(first, second, ratio))


def average_of_covariances(sizes: NDArray[np.intp], columns: int) -> float:
    """Return the average of the likelihood ratio of equal covariances, means being free."""
    n, d = int(sizes.sum()), columns
    whole = n * (_log_determinant(n - sizes.size, d) - d * math.log(n))
    return whole - sum(
        int(m) * (_log_determinant(int(m) - 1, d) - d * math.log(int(m))) for m in sizes
    )


def average_of_means(rows: int, columns: int, groups: int) -> float:
    """Return the average of the likelihood ratio of equal means, covariances being equal."""
    return rows * (_log_determinant(rows - 1, columns) - _log_determinant(rows - groups, columns))


def _log_determinant(freedom: int, d: int) -> float:
    """Average of the logarithm of the determinant of a Wishart matrix."""
    return d * math.log(2.0) + float(psi(0.5 * (freedom - np.arange(d))).sum())
