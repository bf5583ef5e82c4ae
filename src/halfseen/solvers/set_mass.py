"""How much of the Gaussian that was learned a truncation set holds, and whether α said so."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.missingness.truncation import RowTruncation
from halfseen.parallel import single_blas_thread
from halfseen.solvers.domain import upper_entries
from halfseen.solvers.prepare import warn
from halfseen.solvers.sufficient import metric_of

Floats = NDArray[np.float64]

# Draws that tell the mass of the set: one of 0.1 to two per cent.
MASS_DRAWS = 2**15
# The mass is clearly below alpha if it is by so many standard errors: by chance in 1 of 30 000 fits.
CLEARLY = 4.0


def mass_of_set(
    rows: Floats, rule: RowTruncation, gaussian: Gaussian, accuracy: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Mass of the set under the Gaussian that was learned, and its relative standard error.

    The slope of log P(S) in the natural parameters is g = E[t | S] − E[t], with t the sufficient
    statistics, and the parameters have covariance H⁻¹/n with H the covariance of t in the set. So
    log P(S) has variance g'H⁻¹g/n, and 1 + accuracy² times that with the noise of the descent;
    counting hits adds that of a binomial share. Where there are too many statistics for all of H, its
    diagonal stands for it.
    """
    with single_blas_thread():
        hits = int(rule.contains(gaussian.sample(MASS_DRAWS, rng)).sum())
        # In coordinates in which the Gaussian is N(0, I).
        white = np.linalg.solve(gaussian.cholesky, (rows - gaussian.mean).T).T
        inside, metric = metric_of(white.astype(np.float64, copy=False))
    mass = (hits + 0.5) / (MASS_DRAWS + 1.0)
    k = white.shape[1]
    slope = inside - np.concatenate([np.zeros(k), upper_entries(-0.5 * np.eye(k))])
    step = slope / metric if metric.ndim == 1 else np.linalg.solve(metric, slope)
    statistical = (1.0 + accuracy**2) * float(slope @ step) / len(rows)
    return mass, math.sqrt(statistical + (1.0 - mass) / (mass * MASS_DRAWS))


def compare_with_alpha(
    mass: float, error: float, alpha: float, stated: bool, seen: int, rows: int
) -> None:
    """Warn if the set holds clearly less than alpha of what was learned."""
    from_rows = not stated and seen < rows
    # A share of rows is an estimate too.
    both = math.hypot(error, math.sqrt((1.0 - alpha) / (alpha * rows)) if from_rows else 0.0)
    if math.log(alpha / mass) <= CLEARLY * both:
        return
    if from_rows:
        origin = f"alpha is {alpha:.2g}, the share of rows that are seen"
        advice = "Hidden rows may be absent from the table, or a Gaussian does not fit the rows."
    else:
        origin = f"alpha is {alpha:g}" + ("" if stated else ", as none was stated")
        advice = "alpha is a lower bound on that, and limits the search: pass a smaller alpha=."
    warn(
        f"{origin}, but the set holds {mass:.2g} of the Gaussian that was learned (standard error "
        f"{mass * error:.1g}). {advice}"
    )
