"""Where a climb is: what a step of ``ascent`` begins from, and a checkpoint writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from halfseen.solvers.full_information.expectation import Moments
    from halfseen.solvers.full_information.information import Information

Floats = NDArray[np.float64]

# Gains that are remembered, to see a climb stall.
STALLED_STEPS = 8


class Guide(NamedTuple):
    """What a climb on some of the rows says to one on all: the place that it came to is its start.

    Attributes
    ----------
    information : Information
        As of all rows, at that place.
    rows : int
        How many rows said so.
    points : int
        For each row that is sampled.
    noise : float
        What a score from these promises at the top: no more for many rows than for few, as scores vary
        with the rows and what they promise is divided by their number.
    """

    information: Information
    rows: int
    points: int
    noise: float

    @property
    def place(self) -> tuple[Floats, Floats]:
        """The mean and covariance that were come to."""
        return self.information.chart.mean, self.information.chart.covariance


@dataclass
class State:
    """Where the climb is, and what the next step needs.

    Attributes
    ----------
    mean, covariance : arrays
    phase : {"climbing", "polishing", "averaging", "settling", "ended"}
    value : float
        The log-likelihood there, as the points of the phase have it.
    moments : Moments or None
        Expected moments there.
    origin : pair of arrays
        Of the chart.
    score, direction : arrays
        The score, and the step that is tried, in coordinates of the chart.
    length : float
        The share of the step that is tried next; 0 for one of expectation maximisation.
    tries : int
        Steps that were taken back since the last that was not.
    pairs : list of pairs of arrays
    information : Information or None
    scores : list of arrays
        Of independent shifts, while averaging.
    gain, ratio : float
        What may be left to be gained in log-likelihood, and the largest Monte-Carlo error as a share of
        a standard error.
    stuck : bool
        Whether the phase ended because no step led up.
    climbed : list of float
        What the last steps gained.
    noise : float
        What a score from the points of the phase promises at the top; 0 until it is asked for.
    points : int
        For each row that is sampled.
    order : pair of arrays
        The mean and covariance at which the cells of each row were put in order.
    """

    mean: Floats
    covariance: Floats
    phase: str = "climbing"
    value: float = -np.inf
    moments: Moments | None = None
    origin: tuple[Floats, Floats] | None = None
    score: Floats = field(default_factory=lambda: np.empty(0))
    direction: Floats = field(default_factory=lambda: np.empty(0))
    length: float = 1.0
    tries: int = 0
    pairs: list[tuple[Floats, Floats]] = field(default_factory=list)
    information: Information | None = None
    scores: list[Floats] = field(default_factory=list)
    gain: float = np.inf
    ratio: float = np.inf
    stuck: bool = False
    climbed: list[float] = field(default_factory=list)
    noise: float = 0.0
    points: int = 1
    order: tuple[Floats, Floats] | None = None
