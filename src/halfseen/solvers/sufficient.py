"""Sufficient statistics of a Gaussian, and the metric in which steps on its parameters are measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.domain import upper_entries, upper_triangle
from halfseen.theta import size_of

Floats = NDArray[np.float64]

# Up to this many statistics the full metric is used; beyond, its diagonal.
LARGEST_METRIC = 600


def statistics_of(Z: Floats) -> Floats:
    """Sufficient statistics of each row: z, and −z_i z_j (−½ z_i² on the diagonal)."""
    i, j = upper_triangle(Z.shape[1])
    return np.concatenate([Z, Z[:, i] * Z[:, j] * np.where(i == j, -0.5, -1.0)], axis=1)


def metric_of(rows: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the sufficient statistics over the data, block by block."""
    k = rows.shape[1]
    p = size_of(k)
    full = p <= LARGEST_METRIC
    total, square = np.zeros(p), np.zeros((p, p) if full else p)
    step = max(1, 2**20 // p)
    for start in range(0, len(rows), step):
        S = statistics_of(rows[start : start + step])
        total += S.sum(axis=0)
        square += S.T @ S if full else (S**2).sum(axis=0)
    mean = total / len(rows)
    covariance = square / len(rows) - (np.outer(mean, mean) if full else mean**2)
    # With few rows the covariance is singular; a Gaussian's own one is added with the weight of p rows.
    prior = np.concatenate([np.ones(k), upper_entries(np.ones((k, k)) - 0.5 * np.eye(k))])
    weight = p / (p + len(rows))
    return mean, (1.0 - weight) * covariance + weight * (np.diag(prior) if full else prior)
