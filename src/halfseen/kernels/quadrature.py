"""Gauss–Legendre rules on [0, 1]."""

import numpy as np


def _unit_rule(n: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (nodes + 1.0), 0.5 * weights


# 48 nodes integrate exp(-z²/2) over 18 standard deviations to rounding: the error is that of the
# Chebyshev tail I_48(81/4)·exp(-81/4), about 1e-22.
NODES_48, WEIGHTS_48 = _unit_rule(48)
# 24 nodes for the angle integral of Plackett's formula on one panel.
NODES_24, WEIGHTS_24 = _unit_rule(24)
