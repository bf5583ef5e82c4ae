"""Stochastic expectation maximisation: sweeps of the hidden cells, steps of the parameters.

Each sweep draws the hidden cells at the parameters as they are, and moves these to the best for the expected
moments. That forgets its start at the rate of the missing information; averaging the moments of later sweeps
(Polyak) then takes the Monte-Carlo noise out. A decreasing step would remember the start for longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full.averaging import Averages
from halfseen.solvers.full.completion import Completion, Moments
from halfseen.solvers.full.information import MOST_PARAMETERS, Information, information
from halfseen.solvers.full.m_step import MStep

Floats = NDArray[np.float64]

# Sweeps between looks at the drift while the start is being forgotten, and the least number of looks.
LOOK_EVERY, FEWEST_LOOKS = 4, 2
# The start counts as forgotten when parameters change, from one look to the next, by less than this
# share of their standard errors in complete data, or when the change no longer falls by this factor.
SMALL_DRIFT, STILL_FALLING = 0.05, 0.7
# Batches (of two sweeps at first) before the Monte-Carlo error is trusted.
FEWEST_BATCHES = 6
# A change between the halves of the average that is so many times its Monte-Carlo error is a drift.
DRIFT_RATIO = 4.0


@dataclass
class State:
    """Parameters, and what is averaged."""

    mean: Floats
    covariance: Floats
    moments: Moments | None = None
    averages: Averages | None = None
    information: Information | None = None
    recent: list[Floats] = field(default_factory=list)
    last_look: Floats | None = None
    looks: list[float] = field(default_factory=list)
    errors: Floats | None = None
    ratio: float = np.inf


class StochasticEM:
    """``init``, ``step`` and ``done`` for the shared loop.

    Parameters
    ----------
    rows : Completion
    m_step : MStep
    mean, covariance : arrays
        Where to start.
    accuracy : float
        Monte-Carlo error to be reached, as a share of the statistical standard error.
    steps : int
        Most sweeps.
    with_information : bool
        Whether to estimate statistical standard errors; else those of complete data stand for them.
    """

    name = "full"

    def __init__(
        self,
        rows: Completion,
        m_step: MStep,
        mean: Floats,
        covariance: Floats,
        accuracy: float,
        steps: int,
        with_information: bool,
    ) -> None:
        self.rows, self.m_step, self.accuracy, self.steps = rows, m_step, accuracy, steps
        self.with_information = with_information
        self.mean, self.covariance = mean, covariance
        d = mean.size
        self.lower = np.tril_indices(d)
        self.groups = [slice(0, d), slice(d, d + self.lower[0].size)]
        self.nothing_hidden = rows.hidden == 0

    def init(self) -> State:
        """Start where told."""
        return State(self.mean, self.covariance)

    def step(self, state: State) -> tuple[State, dict[str, Any]]:
        """Sweep once, and move the parameters."""
        n = len(self.rows.Y)
        moments = self.rows.sweep(state.mean, inverse(state.covariance))
        state.moments = moments
        state.mean, state.covariance = self.m_step.solve(moments, n)
        parameters = np.concatenate([state.mean, state.covariance[self.lower]])
        if state.averages is None:
            state.recent.append(parameters)
            if len(state.recent) == LOOK_EVERY:
                self._look(state)
        else:
            state.averages.add(parameters, moments)
            if state.averages.batches >= FEWEST_BATCHES and not state.averages.pending:
                self._judge(state)
        return state, {"mean": state.mean.copy(), "ratio": state.ratio}

    def done(self, state: State) -> bool:
        """Whether every Monte-Carlo error is small enough."""
        return self.nothing_hidden or state.ratio <= self.accuracy

    def standard_errors(self, state: State) -> Floats:
        """Statistical standard errors: of the data where they are known, else of complete data."""
        if state.information is not None:
            errors = np.sqrt(state.information.variances())
            # A parameter that is known does not vary.
            return np.where(errors > 0.0, errors, 1.0)
        return complete_errors(state.covariance, len(self.rows.Y))

    def _look(self, state: State) -> None:
        """See whether the start is forgotten; if it is, begin to average."""
        now = np.mean(state.recent, axis=0)
        state.recent.clear()
        if state.last_look is not None:
            change = (now - state.last_look) / complete_errors(state.covariance, len(self.rows.Y))
            state.looks.append(float(np.sqrt(np.mean(change * change))))
        state.last_look = now
        if len(state.looks) < FEWEST_LOOKS:
            return
        before, drift = state.looks[-2:]
        if drift < SMALL_DRIFT or drift > STILL_FALLING * before:
            state.averages = Averages()
            state.information = self._information(state)

    def _information(self, state: State) -> Information | None:
        count = self.m_step.count(state.mean.size)
        if not self.with_information or self.m_step.structure.regularised:
            return None
        if not 0 < count <= MOST_PARAMETERS:
            return None
        return information(
            self.rows.Y,
            self.rows.holes,
            state.mean,
            state.covariance,
            self.m_step.basis(state.covariance),
            self.rows.seed,
            self.rows.n_jobs,
        )

    def _judge(self, state: State) -> None:
        """Compare Monte-Carlo errors with statistical ones."""
        averages = state.averages
        assert averages is not None
        scale = self.standard_errors(state)
        errors = averages.errors(scale, self.groups)
        state.errors, state.ratio = errors, float((errors / scale).max())
        noise = float(np.sqrt(np.mean((errors / scale) ** 2)))
        if state.ratio <= self.accuracy and averages.drift(scale) > DRIFT_RATIO * noise:
            # The first half still remembers the start.
            averages.drop(averages.batches // 2)
            state.ratio = np.inf


def complete_errors(covariance: Floats, n: int) -> Floats:
    """Standard errors of (μ, Σ_ij for i >= j) from n complete rows."""
    i, j = np.tril_indices(len(covariance))
    variance = np.diag(covariance)
    return np.sqrt(
        np.concatenate([variance, variance[i] * variance[j] + covariance[i, j] ** 2]) / n
    )


def inverse(covariance: Floats) -> Floats:
    """Precision matrix, symmetric to the last bit."""
    P = np.linalg.inv(covariance)
    return np.ascontiguousarray(0.5 * (P + P.T))
