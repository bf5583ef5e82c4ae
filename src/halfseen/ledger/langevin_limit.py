"""Where the chain of Lemma 4.7 ends for steps that are not short, on a half-line."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from halfseen.ledger.harness import Floats

# −ζ(½)/√(2π): how far beyond a wall a random walk is on average when it crosses it, in its steps.
OVERSHOOT = 1.4603545088095868 / math.sqrt(2.0 * math.pi)


def half_line_limit(wall: Floats | float, step_size: float) -> Floats:
    """Mean of the chain's limit for N(0, 1) above a wall, to first order in √η."""
    t = np.asarray(wall, dtype=float)
    # E max(t, z) − t for z beyond the wall pushed out: the part above the wall, over the mass beyond.
    part = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) - t * ndtr(-t)
    return np.asarray(t + part / ndtr(OVERSHOOT * math.sqrt(step_size) - t))
