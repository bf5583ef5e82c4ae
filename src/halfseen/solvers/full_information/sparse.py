"""Choosing the penalty of a sparse precision matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.expectation import Moments
from halfseen.solvers.full_information.learn import Settings, climb
from halfseen.solvers.full_information.m_step import (
    CovarianceStructure,
    MStep,
    Shrinkage,
    Sparse,
    correlation_of,
    graphical_lasso,
)
from halfseen.solvers.full_information.rows import Rows

Floats = NDArray[np.float64]

# Penalties tried, from where every edge vanishes down to this share of it.
PATH, LEAST_SHARE = 16, 0.05
# Weight of the number of possible graphs in the extended criterion (Foygel and Drton 2010).
GAMMA = 0.5
# The expected moments depend on the penalty a little: choose again, at most so often.
ROUNDS, TRIAL_STEPS = 3, 12


def choose_penalty(
    rows: Rows,
    mean: Floats | None,
    start: tuple[Floats, Floats],
    settings: Settings,
) -> Sparse:
    """Choose the penalty by the extended Bayesian criterion, on expected moments of complete rows.

    The first moments are those of a shrunken covariance; then those of the chosen graph.
    """
    trial = replace(
        settings, accuracy=0.3, most_steps=TRIAL_STEPS, standard_errors=False, progress=False
    )
    structure: CovarianceStructure = Shrinkage()
    n = rows.overview.shape[0]
    chosen = Sparse(1.0)
    for _ in range(ROUNDS):
        found = climb(rows, MStep(structure, mean), start, trial)
        moments = found.state.moments
        assert moments is not None
        before, chosen = chosen, Sparse(select(_centred(moments, mean), n))
        structure, start = chosen, (found.mean, found.covariance)
        if np.isclose(before.penalty, chosen.penalty, rtol=0.15):
            break
    return chosen


def select(S: Floats, n: int) -> float:
    """Return the penalty with the least extended criterion, for second moments S of n rows."""
    R = correlation_of(S)
    d = len(R)
    most = float(np.abs(R - np.eye(d)).max())
    if most == 0.0:
        return 1.0
    path = most * np.geomspace(1.0, LEAST_SHARE, PATH)
    return float(path[int(np.argmin([criterion(R, penalty, n) for penalty in path]))])


def criterion(R: Floats, penalty: float, n: int) -> float:
    """−2·log-likelihood + edges·log n + 4γ·edges·log d, at the graphical lasso of a penalty."""
    d = len(R)
    precision = graphical_lasso(R, penalty)[1]
    edges = int((precision[np.tril_indices(d, -1)] != 0.0).sum())
    fit = n * (float((precision * R).sum()) - float(np.linalg.slogdet(precision)[1]))
    return fit + edges * (np.log(n) + 4.0 * GAMMA * np.log(d))


def _centred(moments: Moments, mean: Floats | None) -> Floats:
    return moments.about(moments.first if mean is None else mean)
