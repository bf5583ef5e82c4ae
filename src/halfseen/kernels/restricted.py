"""Quadrature for expectations under normal distributions that are restricted to intervals."""

import math

from halfseen.kernels import KERNEL, njit
from halfseen.kernels.quadrature import NODES_48, WEIGHTS_48
from halfseen.kernels.univariate import effective_range, log_mass


@njit(**KERNEL)
def restricted_nodes(m, s, lower, upper, node, weight, mass):
    """Fill nodes and weights for N(m[i], s²) on (lower[i], upper[i]), and the log-mass there.

    ``Σ_k weight[i, k] g(node[i, k])`` is the mean of g; an interval that holds nothing has weights 0.
    """
    for i in range(m.size):
        a, b = (lower[i] - m[i]) / s, (upper[i] - m[i]) / s
        mass[i] = log_mass(a, b)
        if mass[i] == -math.inf:
            node[i] = 0.0
            weight[i] = 0.0
            continue
        low, high = effective_range(a, b)
        peak = low if low > 0.0 else (high if high < 0.0 else 0.0)
        total = 0.0
        for k in range(NODES_48.size):
            z = low + (high - low) * NODES_48[k]
            node[i, k] = m[i] + s * z
            weight[i, k] = WEIGHTS_48[k] * math.exp(-0.5 * (z - peak) * (z + peak))
            total += weight[i, k]
        for k in range(NODES_48.size):
            weight[i, k] /= total
