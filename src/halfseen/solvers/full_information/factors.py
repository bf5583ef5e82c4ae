"""Choosing how many factors there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from halfseen.seeds import Purpose
from halfseen.solvers.full_information.expectation import Parameters, Sampling
from halfseen.solvers.full_information.learn import Settings, climb
from halfseen.solvers.full_information.m_step import MStep
from halfseen.solvers.full_information.rows import Rows
from halfseen.solvers.structures.factor import Factor, most_factors

Floats = NDArray[np.float64]

# It ends where the criterion has grown so often, one after the other. Points for each row that is
# sampled, by which fits are compared: the same for all.
GROWN, POINTS = 2, 64


def choose_factors(
    rows: Rows, m_step: MStep, start: tuple[Floats, Floats], settings: Settings
) -> tuple[MStep, tuple[Floats, Floats], Floats]:
    """Choose the number of factors by Schwarz' criterion; return where that fit was, and all criteria.

    Each fit starts from the moments that the one before expects of complete rows.
    """
    few = replace(settings, standard_errors=False, progress=False)
    n, d = rows.overview.shape
    found: list[tuple[float, MStep, tuple[Floats, Floats]]] = []
    for k in range(most_factors(d) + 1):
        own = replace(m_step, structure=Factor(k))
        reached = climb(rows, own, own.admit(*start), few, climb_only=True)
        place = reached.mean, reached.covariance
        sampling = Sampling(POINTS, 0, 0, Purpose.LIKELIHOOD, Parameters.of(*place))
        moments, value = rows.expect(*place, sampling)
        start = reached.mean, moments.about(reached.mean)
        found.append((float(np.log(n)) * own.count(d) - 2.0 * value, own, place))
        criteria = [one[0] for one in found]
        if len(found) - 1 - int(np.argmin(criteria)) >= GROWN:
            break
    best = found[int(np.argmin(criteria))]
    return best[1], best[2], np.array(criteria)
