"""Stochastic expectation maximisation: sweeps of the hidden cells, steps of the parameters.

Three phases. *Settling*: each sweep draws the hidden cells at the parameters as they are and moves
these to the best for the expected moments, which forgets the start at the rate of the missing
information. *Climbing*: the information is estimated, and a step averaged over some sweeps is
stretched by I_seen⁻¹ I_complete, which is Newton's method; it ends when a step is small next to the
standard errors. *Averaging*: the stretched steps of all further sweeps are averaged, which takes
the Monte-Carlo noise out at the best rate there is (Polyak), until little of it is left.

Where there are too many parameters for the information, or it is not asked for, or the estimate is
pulled towards something, there is no climbing, and plain steps are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.averaging import Averages
from halfseen.solvers.full_information.completion import Moments
from halfseen.solvers.full_information.information import (
    LARGEST_GAIN_SHARE,
    MOST_PARAMETERS,
    Information,
    information,
)
from halfseen.solvers.full_information.m_step import MStep, pack, unpack
from halfseen.solvers.full_information.rows import Rows

Floats = NDArray[np.float64]

# Sweeps between looks at the drift while the start is being forgotten, and the least number of looks.
LOOK_EVERY, FEWEST_LOOKS = 2, 2
# The start counts as forgotten when parameters change, from one look to the next, by less than this
# share of their standard errors in complete data, or when the change no longer falls by this factor.
SMALL_DRIFT, STILL_FALLING = 0.05, 0.7
# Where a climb follows, which covers what is left of the way, a larger change will do.
CLIMBABLE_DRIFT = 0.2


class Climb(NamedTuple):
    """How carefully to climb: lengths are in standard errors, for any parameter."""

    # Sweeps averaged for one step: at least so many, and until its noise is below this.
    fewest: int
    noise: float
    # What may be left to go at the end.
    small: float


# Where no direction has lost more than 95 % of its information, one step mostly leads to the top.
# Elsewhere the top is at the end of a curved ridge, and a step sees only part of the way.
EASY, HARD = Climb(3, 0.25, 1.0), Climb(12, 0.1, 0.2)
# Most sweeps for one step, longest step (root mean square), and most steps.
MOST_CLIMB_SWEEPS, LONGEST_STEP, MOST_CLIMBS = 40, 3.0, 20
# A step that is not above this many times its noise is not told from none.
NOISE_RATIO = 2.0
# A long step that is not shorter than this share of the one before shows that the gain was too large.
SHORTER, LONG = 0.8, 0.5
# A longer step than this changes the information enough to estimate it again.
NEW_INFORMATION = 1.0
# How far parameters may have moved since the information was estimated, in standard errors (root mean
# square), for standard errors, and for steps on a curved ridge: with the gain of where they began, each
# leads further off the ridge than the one before.
ALLOWED_MOVE = 0.25
# One step changes no variance, in any direction, by more than this factor; it is halved until that
# holds.
LARGEST_CHANGE, MOST_HALVINGS = 3.0, 30
# Batches (of one sweep at first) before the Monte-Carlo error is trusted.
FEWEST_BATCHES = 6
# A change between the halves of the average that is so many times its Monte-Carlo error is a drift.
DRIFT_RATIO = 4.0


@dataclass
class State:
    """Parameters, and what is averaged."""

    mean: Floats
    covariance: Floats
    phase: str = "settling"
    moments: Moments | None = None
    averages: Averages | None = None
    information: Information | None = None
    recent: list[Floats] = field(default_factory=list)
    last_look: Floats | None = None
    looks: list[float] = field(default_factory=list)
    climbs: int = 0
    last_step: float | None = None
    trust: float = 1.0
    ratio: float = np.inf
    sweeps: int = 0

    def moved(self, mean: Floats, covariance: Floats) -> float:
        """How far parameters are from where the information was estimated, in standard errors."""
        assert self.information is not None
        errors = np.sqrt(self.information.variances())
        change = pack(mean, covariance) - self.information.at
        return root_mean_square(change / np.where(errors > 0.0, errors, 1.0))


class StochasticEM:
    """``init``, ``step`` and ``done`` for the shared loop.

    Parameters
    ----------
    rows : Rows
    m_step : MStep
    mean, covariance : arrays
        Where to start.
    accuracy : float
        Monte-Carlo error to be reached, as a share of the statistical standard error.
    steps : int
        Most sweeps.
    with_information : bool
        Whether to estimate statistical standard errors; else those of complete data stand for them.
    seed, chain : int
        Of the random numbers.
    """

    name = "full"

    def __init__(
        self,
        rows: Rows,
        m_step: MStep,
        mean: Floats,
        covariance: Floats,
        accuracy: float,
        steps: int,
        with_information: bool,
        seed: int = 0,
        chain: int = 0,
    ) -> None:
        self.rows, self.m_step, self.accuracy, self.steps = rows, m_step, accuracy, steps
        self.with_information, self.seed, self.chain = with_information, seed, chain
        self.mean, self.covariance = mean, covariance
        d = mean.size
        self.lower = np.tril_indices(d)
        self.groups = [slice(0, d), slice(d, d + self.lower[0].size)]
        self.nothing_hidden = not rows.overview.hidden.any()

    def init(self) -> State:
        """Fill the hidden cells, and start where told."""
        self.rows.fill(self.mean, np.sqrt(np.diag(self.covariance)), self.seed, self.chain)
        return State(self.mean, self.covariance)

    def step(self, state: State) -> tuple[State, dict[str, Any]]:
        """Sweep once, and move the parameters."""
        moments = self.rows.sweep(state.mean, inverse(state.covariance))
        state.moments = moments
        best = self.m_step.solve(moments, self.rows.overview.shape[0])
        if state.phase == "settling":
            state.mean, state.covariance = best
            state.recent.append(pack(*best))
            if len(state.recent) == LOOK_EVERY:
                self._look(state)
        elif state.phase == "climbing":
            state.recent.append(pack(*best))
            self._climb(state)
        else:
            self._average(state, best, moments)
        state.sweeps += 1
        return state, {
            "mean": state.mean.copy(),
            "ratio": state.ratio,
            "phase": state.phase,
            "expected_steps": self._expected_steps(state),
        }

    def _expected_steps(self, state: State) -> int:
        """How many steps there may be in all, for people who wait."""
        averages = state.averages
        if averages is None or not np.isfinite(state.ratio):
            return min(self.steps, state.sweeps + 2 * FEWEST_BATCHES)
        # An average over k sweeps has an error of the order 1/√k.
        made = averages.batches * averages.size
        left = made * (max(state.ratio / self.accuracy, 1.0) ** 2 - 1.0)
        return int(min(self.steps, state.sweeps + left))

    def done(self, state: State) -> bool:
        """Whether every Monte-Carlo error is small enough."""
        return self.nothing_hidden or state.ratio <= self.accuracy

    def standard_errors(self, state: State) -> Floats:
        """Statistical standard errors: of the data where they are known, else of complete data."""
        if state.information is not None:
            errors = np.sqrt(state.information.variances())
            # A parameter that is known does not vary.
            return np.where(errors > 0.0, errors, 1.0)
        return complete_errors(state.covariance, self.rows.overview.shape[0])

    def _target(self, state: State, best: tuple[Floats, Floats]) -> Floats:
        """Where a step of expectation maximisation leads, stretched where the information is known."""
        if state.information is None:
            return pack(*best)
        now = pack(state.mean, state.covariance)
        gain = self._gain(state, state.information.gain)
        return now + self.m_step.stretched(pack(*best) - now, gain, state.covariance)

    def _look(self, state: State) -> None:
        """See whether the start is forgotten; if it is, go on to the next phase."""
        now = np.mean(state.recent, axis=0)
        state.recent.clear()
        if state.last_look is not None:
            change = (now - state.last_look) / complete_errors(
                state.covariance, self.rows.overview.shape[0]
            )
            state.looks.append(root_mean_square(change))
        state.last_look = now
        if len(state.looks) < FEWEST_LOOKS:
            return
        before, drift = state.looks[-2:]
        small = CLIMBABLE_DRIFT if self._can_climb(state) else SMALL_DRIFT
        if drift < small or drift > STILL_FALLING * before:
            state.information = self._information(state)
            state.phase = "averaging" if state.information is None else "climbing"

    def _climb(self, state: State) -> None:
        """Take an averaged, stretched step when its noise is small; end when little is left to go."""
        assert state.information is not None
        count = len(state.recent)
        climb = HARD if state.information.missing[-1] > LARGEST_GAIN_SHARE else EASY
        if count < climb.fewest:
            return
        now = pack(state.mean, state.covariance)
        errors = self.standard_errors(state)
        steps = np.array(state.recent) - now
        left, left_noise = _mean_and_noise(
            self.m_step.stretched(steps, state.information.reach, state.covariance) / errors
        )
        if left_noise > climb.noise and count < MOST_CLIMB_SWEEPS:
            return
        gain = self._gain(state, state.information.gain)
        step, noise = _mean_and_noise(self.m_step.stretched(steps, gain, state.covariance) / errors)
        length = root_mean_square(step)
        state.recent.clear()
        state.climbs += 1
        if state.last_step is not None and length > SHORTER * state.last_step and length > LONG:
            state.trust *= 0.5
        state.last_step = length
        # A step that is mostly noise is mostly not taken.
        kept = 0.0 if length <= noise else 1.0 - (noise / length) ** 2
        kept *= min(1.0, LONGEST_STEP / length) if length > 0.0 else 0.0
        self._move(state, now + kept * errors * step)
        stale = climb is HARD and state.moved(state.mean, state.covariance) > ALLOWED_MOVE
        if length > NEW_INFORMATION or stale:
            state.information = self._information(state)
        arrived = np.abs(left).max() < max(climb.small, NOISE_RATIO * left_noise)
        if arrived or state.climbs >= MOST_CLIMBS:
            state.phase = "averaging"

    def _gain(self, state: State, gain: Floats) -> Floats:
        return state.trust * gain + (1.0 - state.trust) * np.eye(len(gain))

    def _move(self, state: State, parameters: Floats) -> None:
        """Set the parameters; a step that shrinks or stretches the covariance too far is shortened."""
        now = pack(state.mean, state.covariance)
        L = np.linalg.cholesky(state.covariance)
        for _ in range(MOST_HALVINGS):
            mean, covariance = unpack(parameters, state.mean.size)
            if not self.m_step.structure.linear:
                covariance = self.m_step.admit(mean, covariance)[1]
            ratio = np.linalg.eigvalsh(np.linalg.solve(L, np.linalg.solve(L, covariance).T))
            if LARGEST_CHANGE * ratio[0] > 1.0 and ratio[-1] < LARGEST_CHANGE:
                state.mean, state.covariance = mean, covariance
                return
            parameters = 0.5 * (now + parameters)

    def _average(self, state: State, best: tuple[Floats, Floats], moments: Moments) -> None:
        if state.averages is None:
            state.averages = Averages()
        averages = state.averages
        averages.add(self._target(state, best), moments)
        if state.information is None:
            state.mean, state.covariance = best
        if averages.batches >= FEWEST_BATCHES and not averages.pending:
            noise = self._judge(state)
            if state.information is not None and noise < EASY.noise:
                # A noisier average would only add its noise to the parameters.
                self._move(state, averages.mean())

    def _can_climb(self, state: State) -> bool:
        """Whether the information is to be estimated, and steps can be stretched by it."""
        if not self.with_information or self.m_step.structure.regularised:
            return False
        return 0 < self.m_step.count(state.mean.size) <= MOST_PARAMETERS

    def _information(self, state: State) -> Information | None:
        if not self._can_climb(state):
            return None
        basis = self.m_step.basis(state.covariance)
        return information(self.rows, state.mean, state.covariance, basis, self.seed)

    def _judge(self, state: State) -> float:
        """Compare Monte-Carlo errors with statistical ones; return their root mean square ratio."""
        averages = state.averages
        assert averages is not None
        scale = self.standard_errors(state)
        errors = averages.errors(scale, self.groups)
        state.ratio = float((errors / scale).max())
        noise = root_mean_square(errors / scale)
        if state.ratio <= self.accuracy and averages.drift(scale) > DRIFT_RATIO * noise:
            # The first half still remembers the start.
            averages.drop(averages.batches // 2)
            state.ratio = np.inf
        return noise


def _mean_and_noise(steps: Floats) -> tuple[Floats, float]:
    """Average of steps, and the root mean square of its standard errors."""
    noise = root_mean_square(steps.std(axis=0, ddof=1)) / np.sqrt(len(steps))
    return steps.mean(axis=0), noise


def root_mean_square(values: Floats) -> float:
    """Root of the mean of squares; 0 of nothing."""
    return float(np.sqrt(np.mean(values * values))) if values.size else 0.0


def complete_errors(covariance: Floats, n: int) -> Floats:
    """Return the standard errors of (μ, Σ_ij for i >= j) from n complete rows."""
    i, j = np.tril_indices(len(covariance))
    variance = np.diag(covariance)
    return np.sqrt(
        np.concatenate([variance, variance[i] * variance[j] + covariance[i, j] ** 2]) / n
    )


def inverse(covariance: Floats) -> Floats:
    """Precision matrix, symmetric to the last bit."""
    P = np.linalg.inv(covariance)
    return np.ascontiguousarray(0.5 * (P + P.T))
