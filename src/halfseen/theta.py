"""θ: the parameters of a Gaussian as one vector, (μ, Σ_ij for i >= j).

The triangle below the diagonal is read row by row: Σ_00, Σ_10, Σ_11, Σ_20, and so on. Slopes, steps,
information and standard errors of all parameters have this order. An entry off the diagonal stands for
two of Σ. Vectors may be the last axis of a larger array, but for slopes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]


def size_of(d: int) -> int:
    """Return how many parameters d columns have."""
    return d + d * (d + 1) // 2


@lru_cache(maxsize=8)
def triangle(d: int) -> tuple[Integers, Integers]:
    """Return the rows i and the columns j of the entries Σ_ij in θ."""
    i, j = np.tril_indices(d)
    # Everybody is given the same arrays.
    i.setflags(write=False)
    j.setflags(write=False)
    return i, j


def entries(S: Floats) -> Floats:
    """Return the entries of symmetric matrices that stand in θ."""
    i, j = triangle(S.shape[-1])
    return S[..., i, j]


def symmetric(values: Floats, d: int) -> Floats:
    """Return the symmetric matrices that have these entries."""
    i, j = triangle(d)
    S = np.empty((*values.shape[:-1], d, d))
    S[..., i, j] = S[..., j, i] = values
    return S


def pack(mean: Floats, covariance: Floats) -> Floats:
    """Return (μ, Σ_ij for i >= j) as one vector."""
    return np.concatenate([mean, entries(covariance)], axis=-1)


def unpack(theta: Floats, d: int) -> tuple[Floats, Floats]:
    """Return the mean and covariance that ``pack`` put into a vector."""
    return theta[..., :d].copy(), symmetric(theta[..., d:], d)


def pack_slopes(of_mean: Floats, of_covariance: Floats) -> Floats:
    """Return derivatives in θ from those in all entries of one symmetric Σ."""
    both = of_covariance + of_covariance.T - np.diag(np.diag(of_covariance))
    return pack(of_mean, both)


def stands_for(d: int) -> Floats:
    """Return how many entries of Σ each of those in θ stands for: 1 on the diagonal, else 2."""
    i, j = triangle(d)
    return np.where(i == j, 1.0, 2.0)


def places(d: int) -> Integers:
    """Return where each entry of Σ stands in θ, as a symmetric matrix."""
    i, j = triangle(d)
    out = np.empty((d, d), dtype=np.intp)
    out[i, j] = out[j, i] = d + np.arange(i.size)
    return out


def parameter_units(scale: Floats) -> Floats:
    """Return the units of θ, where columns have those of ``scale``."""
    return pack(scale, np.outer(scale, scale))


def parameter_names(names: Sequence[str]) -> list[str]:
    """Return what people call the parameters of columns with names."""
    of_covariance = [
        f"variance of {names[i]}" if i == j else f"covariance of {names[j]} and {names[i]}"
        for i, j in zip(*triangle(len(names)), strict=True)
    ]
    return [f"mean of {name}" for name in names] + of_covariance
