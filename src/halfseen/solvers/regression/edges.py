"""Whether the likelihood of a selection is higher where residuals determine each other.

With few rows Heckman's likelihood may have a top inside its domain, and grow beyond it towards a
correlation of 1 or −1, where it has none. The top inside is the estimate; that it is not the highest
place of all is said.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.learn import Climb, Settings, climb
from halfseen.solvers.regression.entries import Entries
from halfseen.solvers.regression.model import Model, Setup
from halfseen.solvers.regression.places import Place, split
from halfseen.solvers.regression.step import RegressionStep
from halfseen.solvers.result import Note, Status
from halfseen.theta import triangle

Floats = NDArray[np.float64]

# An edge this near, in standard errors on Fisher's scale, is looked at: likelihoods fall by half the
# square of these on the way, where they are those of a normal law. And where climbs to it begin.
NEAR, STEEP = 8.0, 0.99
# What a climb along the edge may gain over the top before it is said, and its most steps.
HIGHER, MOST_STEPS = 0.1, 100


def notes_of_edges(
    model: Model, setup: Setup, top: Climb, covariance: Floats, settings: Settings
) -> list[Note]:
    """Climb towards the edges that are near, for each outcome and the index that selects it.

    ``covariance`` is that of the estimates of all parameters, in units of the table.
    """
    place = split(top.mean, top.covariance, len(model.outcomes.names))
    names, notes = model.outcomes.names, []
    for one in model.outcomes.selections:
        for j in one.places:
            if not model.free[j, one.index]:
                continue
            for sign in _near_edges(setup, place, covariance, j, one.index):
                steep = _steep(place, j, one.index, sign)
                higher = _top_beyond(setup, steep, settings).state.value - top.state.value
                if higher > HIGHER:
                    notes.append(_note(names[j], names[one.index], sign, higher))
    return notes


def _top_beyond(setup: Setup, steep: Place, settings: Settings) -> Climb:
    """Climb with residuals held, which brings coefficients along, and then with everything free."""
    few = replace(settings, standard_errors=False, progress=False, most_steps=MOST_STEPS)
    held = Entries(np.zeros(steep.residual.shape, dtype=bool), steep.residual)
    step = RegressionStep.of(setup.step.parts[0], held)
    beside = climb(setup.rows, step, steep.joined(), few, climb_only=True)
    start = setup.step.admit(beside.mean, beside.covariance)
    return climb(setup.rows, setup.step, start, few, climb_only=True)


def _near_edges(setup: Setup, place: Place, covariance: Floats, j: int, by: int) -> list[float]:
    """Return the signs of the correlations of 1 that are within so many standard errors."""
    q = len(place.residual)
    scale = setup.equations.scale
    residual = place.residual * np.outer(scale, scale)
    rows, columns = triangle(q)
    first = int(setup.equations.free.sum())
    own = [
        first + int(np.flatnonzero((rows == max(a, b)) & (columns == min(a, b)))[0])
        for a, b in ((j, by), (j, j))
    ]
    correlation = residual[j, by] / math.sqrt(residual[j, j])
    slopes = np.array([1.0 / math.sqrt(residual[j, j]), -0.5 * correlation / residual[j, j]])
    error = math.sqrt(max(slopes @ covariance[np.ix_(own, own)] @ slopes, 0.0))
    error /= 1.0 - correlation * correlation
    far = math.atanh(STEEP)
    return [s for s in (-1.0, 1.0) if far - s * math.atanh(correlation) < NEAR * error]


def _steep(place: Place, j: int, by: int, sign: float) -> Place:
    """Return a place with another correlation of two residuals; the other residuals know of neither."""
    deviation = math.sqrt(place.residual[j, j] * place.residual[by, by])
    residual = np.diag(np.diag(place.residual))
    residual[j, by] = residual[by, j] = sign * STEEP * deviation
    return place._replace(residual=residual)


def _note(outcome: str, by: str, sign: float, higher: float) -> Note:
    """Say by how much the likelihood is higher, and what that means."""
    text = (
        f"With a correlation near {sign:+.0f} between the residuals of {outcome} and {by} the "
        f"log-likelihood is {higher:.2g} above the top that is reported, as may be where rows are few. "
        "Estimates and intervals are those of that top. More rows would help, or a regressor that "
        f"moves {by} alone."
    )
    return Note(Status.NO_GLOBAL_GUARANTEE, text)
