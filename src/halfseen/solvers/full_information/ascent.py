"""Climbing to the top of the likelihood: quasi-Newton steps on expected moments.

Expected moments of complete rows give the score (Fisher's identity), and the rows' log-likelihoods come
with them. Sampled cells are driven by the same points at every step, so that both are functions of the
parameters alone, and smooth ones where cells lie in intervals. So this is plain optimisation, and a
step that lowers the likelihood is taken back.

*Climbing*: few points a row; the curvature of complete rows, corrected by what steps show, which makes
the first step one of expectation maximisation. *Polishing*: more points, the cells of each row in a new
order, and for the curvature the information, or where that is not known well what scores show of it in
the directions that matter (conjugate gradients). Where some of the rows went before, as scouts, all of
them begin here, with what these know. *Averaging*: near the top, the score is asked for again with
other shifts of the points. The scatter of the answers is the Monte-Carlo error, their average takes most
of it out, and the step that it asks for is the last, unless it is so large that there must be more to
come.

Where the estimate is pulled towards something there is no likelihood to climb, and expectation
maximisation is repeated until it stands still (*settling*).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import RarelyHitError, argument
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.charts import (
    Chart,
    Curvature,
    chart_at,
    conjugate_pairs,
)
from halfseen.solvers.full_information.climb_state import STALLED_STEPS, Guide, State
from halfseen.solvers.full_information.expectation import Moments, Parameters, Sampling
from halfseen.solvers.full_information.information import (
    FEWEST_POINTS,
    LARGEST_STEP_SHARE,
    can_inform,
    information,
    rows_looked_at,
)
from halfseen.solvers.full_information.m_step import (
    Free,
    MStep,
    singular,
    with_floor,
)
from halfseen.solvers.full_information.rows import Rows
from halfseen.theta import pack

Floats = NDArray[np.float64]

# Points for each row that is sampled, at first: between these, as many as keep the number of draws of a
# step below that. Where the information is found on the way, no fewer than INFORMED_POINTS: with less
# noise, steps along it arrive in fewer questions. Gradients alone gain nothing by them.
# Later as many more, up to the last, as it takes for three averages to have so small a share of the
# noise that is allowed; no more than so many times as many.
FIRST_POINTS, FIRST_DRAWS, MOST_POINTS = (16, 64), 2**18, 512
INFORMED_POINTS = 32
SHARE_OF_NOISE, MOST_TIMES = 1.0, 4
# Gain in log-likelihood, in all, that may be left to be had. At the end of the climb, where more points
# are then taken: so much, or so much for each parameter (the truth is half a unit for each below it).
CLIMBED, CLIMBED_EACH = 0.5, 0.01
# At the end of the polish, where nothing is sampled. Where it is, averages do the rest: so much may be
# left, or this share of what a score promises at the top. And what sampling may leave in the end.
POLISHED, POLISHED_SAMPLED, POLISHED_NOISE, NEAR_THE_TOP = 1e-11, 0.02, 0.25, 0.25
# With more parameters than these, that for so many of them each: draws grow with what is left divided by
# the number of parameters, and the truth is as many thousand times further below the top.
MANY_PARAMETERS = 1000
# Averages go on to this, as long as they take no more than so many draws of cells in all.
AIMED, AIMED_DRAWS = 0.05, 2**22
# Shifts of the points on the way up.
CLIMBING_SEED = 0
# Averages at the top: at least and at most so many.
FEWEST_AVERAGED, MOST_AVERAGED = 3, 64
# Where directions are not explored, an information from so many standard errors away is found anew.
STALE = 0.1
# By what share parameters may have changed since the information was found, where it is sampled.
ALLOWED_CHANGE = 1e-2
# Directions are not explored where what is known of each is so many times its error.
KNOWN = 2.0
# The step that ends them is the last if it promises no more than so many times their noise, or changes
# no variance, in any direction, by more than this factor.
MUCH_NOISE, LAST_CHANGE = 4.0, 1.5
# A step that promises less is taken unasked.
SMALL_STEP = 0.05
# Steps whose curvature is remembered.
MEMORY = 20
# Where it is looked for: so many standard errors of complete data away, until what is left to be gained
# is this share of what was found.
PROBE, EXPLORED = 0.1, 0.01
# A step is taken if it brings this share of what the slope promises (Armijo). Log-likelihoods are
# compared to so many of their digits, and so much of a unit.
PROMISED, ROUNDING, TINY = 1e-4, 1e-13, 1e-5
# Shorter steps that are tried before one of expectation maximisation.
MOST_SHORTER = 5
# One step changes no variance, in any direction, by more than this factor.
LARGEST_CHANGE, MOST_HALVINGS = 4.0, 40
# A climb that gained less than this in so many steps, whatever they promised, is at an end: there is no
# top where the likelihood grows to a singular covariance, only an edge.
STALLED = 0.01
# Steps of expectation maximisation while settling that change nothing: the gain that they would have in
# a likelihood.
SETTLED = 0.01
# A change that is not below this share of what it was some steps ago does not fall.
FALLING = 0.9


class Ascent:
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
        Most steps.
    with_information : bool
        Whether to find the information; else the curvature that steps show stands for it.
    seed : int
        Of the shifts of the averages.
    climb_only : bool
        Whether to end with the climb.
    guide : Guide, optional
        What some of the rows say at the start.
    scouting : bool
        Whether to end with the climb, and what is known there: these are some of the rows.
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
        climb_only: bool = False,
        guide: Guide | None = None,
        scouting: bool = False,
    ) -> None:
        self.rows, self.m_step, self.accuracy, self.steps = rows, m_step, accuracy, steps
        self.seed, self.climb_only, self.guide, self.scouting = seed, climb_only, guide, scouting
        self.mean, self.covariance = mean, covariance
        self.n, d = rows.overview.shape
        self.count = m_step.count(d)
        # Of a t distribution there are no closed forms, and the information is found once, at the top.
        gaussian = math.isinf(rows.degrees)
        self.with_information = with_information and gaussian and can_inform(m_step, d)
        self.sampled = rows.overview.sampled
        self.nothing_hidden = gaussian and not rows.overview.hidden.any()
        # Paths jump between the pieces of a set, and scores with them: differences of those say nothing.
        self.explores = self.sampled > 0 and rows.overview.convex
        points = int(np.clip(FIRST_DRAWS // max(1, self.sampled), *FIRST_POINTS))
        if self.with_information:
            points = max(points, INFORMED_POINTS)
        self.first_points = points if guide is None else guide.points
        self.allowed = NEAR_THE_TOP * max(1.0, self.count / MANY_PARAMETERS)
        # Those of which every value is seen have their own moments, in closed form.
        whole = np.flatnonzero(rows.overview.hidden == 0)
        closed = gaussian and isinstance(m_step.structure, Free) and m_step.mean is None
        self.closed = whole if closed and whole.size < d else whole[:0]
        # The last chart that was made, and its origin.
        self._chart: tuple[tuple[Floats, Floats], Chart] | None = None

    def init(self) -> State:
        """Start where told."""
        phase = "settling" if self.m_step.structure.regularised else "climbing"
        place = self.mean, self.covariance
        if self.guide is None:
            return State(*place, phase, points=self.first_points, order=place)
        phase = "climbing" if self.scouting else "polishing"
        known, points, noise = self.guide.information, self.guide.points, self.guide.noise
        return State(
            *place, phase, points=points, noise=noise, order=place, origin=place, information=known
        )

    def step(self, state: State) -> tuple[State, dict[str, Any]]:
        """Ask the rows once, and move the parameters."""
        if self.nothing_hidden:
            self._solve(state)
        elif state.phase == "settling":
            self._settle(state)
        elif state.phase == "averaging":
            self._average(state)
        elif state.moments is None:
            # The first question, and the first with other points.
            moments, value = self._ask(state, state.mean, state.covariance)
            _need_a_place(value)
            self._arrive(state, moments, value)
        else:
            self._try(state)
        return state, {
            "mean": state.mean.copy(),
            "value": state.value,
            "gain": state.gain,
            "ratio": state.ratio,
            "phase": state.phase,
        }

    def _singular(self, state: State) -> bool:
        """Whether the place is on the edge of all covariances, or next to it."""
        return singular(self.m_step.scatter(state.covariance))

    def _held(self, state: State) -> int:
        """Count the eigenvalues that are held on the edge."""
        return self.m_step.count_held(state.covariance)

    def done(self, state: State) -> bool:
        """Whether the top is reached."""
        return state.phase == "ended"

    def _more_points(self, state: State) -> int:
        """Points for each row that is sampled, from the noise of a score with those at hand."""
        self._listen(state)
        # An error of so many standard errors in every parameter costs half its square for each.
        allowed = min(self.allowed, 0.5 * self.count * self.accuracy**2)
        wanted = state.noise / (SHARE_OF_NOISE * FEWEST_AVERAGED * allowed)
        more = min(MOST_TIMES * state.points, max(MOST_POINTS, state.points))
        return int(np.clip(state.points * wanted, state.points, more))

    def chart(self, state: State) -> Chart:
        """Return the coordinates of the state."""
        assert state.origin is not None
        if self._chart is None or self._chart[0] is not state.origin:
            self._chart = state.origin, chart_at(self.m_step, *state.origin, self.n)
        return self._chart[1]

    def curvature(self, state: State) -> Curvature:
        """Return what is known of the inverse of the information, in coordinates of the state."""
        known = state.information
        if known is not None:
            return Curvature(known.inverse(LARGEST_STEP_SHARE), state.pairs)
        return Curvature(self.chart(state).complete_inverse, state.pairs)

    def _knows_curvature(self, state: State) -> bool:
        """Whether the information is known well enough in every direction.

        Its largest error is about the root of parameters over rows; where all are looked at, over all of
        their points.
        """
        known = state.information
        if known is None:
            return False
        looks = rows_looked_at(self.rows.overview, self.count)
        if looks == self.n:
            looks *= FEWEST_POINTS
        if self.guide is not None and np.array_equal(known.chart.mean, self.guide.place[0]):
            looks = self.guide.rows
        left = 1.0 - known.missing.max(initial=0.0)
        return bool(left >= KNOWN * math.sqrt(self.count / looks))

    def _informs_early(self, state: State) -> bool:
        """Whether an information from here will do at the top too, by what is left to be gained."""
        left = math.sqrt(2.0 * state.gain / max(self.count, 1))
        return not self.explores or left <= ALLOWED_CHANGE * math.sqrt(self.n)

    def _ask(
        self,
        state: State,
        mean: Floats,
        covariance: Floats,
        replicate: int = 0,
        seed: int = CLIMBING_SEED,
    ) -> tuple[Moments, float]:
        # The way up is the same for every seed, and so is the top that is found where there are
        # several, or none. A seed is for the averages, which say what the points are worth.
        sampling = self._sampling(state, state.points, replicate, seed)
        return self.rows.expect(mean, covariance, sampling)

    def _sampling(
        self, state: State, points: int, replicate: int = 0, seed: int = CLIMBING_SEED
    ) -> Sampling:
        """Return how rows are asked: with the order of cells of the state."""
        assert state.order is not None
        order = Parameters.of(*state.order) if self.sampled else None
        return Sampling(points, seed, replicate, Purpose.FULL, order)

    def _arrive(self, state: State, moments: Moments, value: float) -> None:
        """Take note of what the rows say at the state's parameters; decide where to go from there."""
        state.moments, state.value = moments, value
        if state.origin is None:
            state.origin = state.mean, state.covariance
        elif self.chart(state).is_far(state.covariance):
            if state.information is not None:
                self._climb_again(state)
            before, state.origin = self.chart(state), (state.mean, state.covariance)
            into = self.chart(state)
            same = before.size == into.size
            state.pairs = [before.carried(pair, into) for pair in state.pairs] if same else []
        state.score = self._score(state, moments, state.mean, state.covariance)
        self._aim(state)

    def _climb_again(self, state: State) -> None:
        """Go back to climbing, as what is known of the curvature was found elsewhere."""
        state.phase, state.information = "climbing", None
        state.stuck, state.climbed, state.noise = False, [], 0.0

    def _score(self, state: State, moments: Moments, mean: Floats, covariance: Floats) -> Floats:
        """Return the score at some parameters, along the edge where they are on it."""
        chart = self.chart(state)
        score = chart.score(moments, mean, covariance)
        return chart.along_edge(score, chart.beyond_edge(score, covariance))

    def _aim(self, state: State) -> None:
        """Choose the next step; end the phase if it promises little."""
        curvature = self.curvature(state)
        state.direction = curvature @ state.score
        if not state.direction @ state.score > 0.0:
            state.pairs.clear()
            state.direction = self.curvature(state) @ state.score
        state.gain = max(0.5 * float(state.direction @ state.score), 0.0)
        state.length, state.tries = 1.0, 0
        little = max(STALLED, POLISHED_NOISE * state.noise)
        stalled = len(state.climbed) == STALLED_STEPS and sum(state.climbed) < little
        if stalled:
            self._give_up(state)
        elif state.gain <= self._enough(state) and self._leaves_bound(state):
            state.length = 0.0
            return
        if stalled or state.gain <= self._enough(state):
            self._end_phase(state)

    def _leaves_bound(self, state: State) -> bool:
        """Whether expectation maximisation moves a parameter away from its bound.

        Scores are along the bound, and say nothing of what is to be gained from leaving it.
        """
        bounds = self.m_step.bounds(state.covariance)
        if not bounds or state.moments is None:
            return False
        return bounds > self.m_step.bounds(self.m_step.solve(state.moments, self.n)[1])

    def _give_up(self, state: State) -> None:
        """Believe what the last steps gained, whatever the slope promises."""
        state.stuck, state.gain = True, max(sum(state.climbed), 0.0)

    def _enough(self, state: State) -> float:
        """Return what may be left to be gained when a phase ends."""
        if state.phase == "climbing" and not self.climb_only:
            return max(CLIMBED, CLIMBED_EACH * self.count, state.noise)
        if not self.sampled:
            return POLISHED
        return max(POLISHED_SAMPLED / NEAR_THE_TOP * self.allowed, POLISHED_NOISE * state.noise)

    def _try(self, state: State) -> None:
        """Try a step; take it if the likelihood grows, else try a shorter one."""
        target, length = self._target(state)
        moments, value = self._ask(state, *target)
        promise = length * float(state.direction @ state.score)
        least = PROMISED * promise - TINY - ROUNDING * abs(state.value)
        if value - state.value >= least:
            chart = self.chart(state)
            before = chart.coordinates(state.mean, state.covariance), state.score
            held = self._held(state)
            state.mean, state.covariance = target
            if self._held(state) == held:
                score = self._score(state, moments, *target)
                after = chart.coordinates(*target)
                self._remember(state, after - before[0], before[1] - score)
            else:
                # Scores along another edge are not to be compared with those before.
                state.pairs = []
            state.climbed = [*state.climbed, value - state.value][-STALLED_STEPS:]
            self._arrive(state, moments, value)
            return
        state.tries += 1
        if self.sampled and not state.noise:
            self._listen(state)
        if state.length == 0.0 or state.gain <= state.noise:
            # Expectation maximisation does not lead up either, or what is left is noise.
            if state.phase == "polishing" and state.gain > state.noise and self._ask_more(state):
                return
            state.stuck = True
            if self._singular(state):
                self._give_up(state)
            self._end_phase(state)
        elif state.tries >= MOST_SHORTER:
            state.length = 0.0
        else:
            # The top of the parabola through both values and the slope.
            short = 0.5 * promise / max(promise - (value - state.value), 1e-300)
            state.length = length * (float(np.clip(short, 0.1, 0.5)) if np.isfinite(value) else 0.1)

    def _listen(self, state: State) -> None:
        """Ask with other shifts: what two scores at one place promise apart is noise."""
        assert state.moments is not None
        chart, place = self.chart(state), (state.mean, state.covariance)
        score = chart.score(state.moments, *place)
        other = chart.score(self._ask(state, *place, 1)[0], *place)
        apart = chart.along_edge(score - other, chart.beyond_edge(score, state.covariance))
        state.noise = max(self.curvature(state).gain(apart), TINY)

    def _target(self, state: State) -> tuple[tuple[Floats, Floats], float]:
        """Return where the next step leads, and its length."""
        if state.length == 0.0:
            assert state.moments is not None
            return self.m_step.solve(state.moments, self.n), 0.0
        chart = self.chart(state)
        root = np.linalg.cholesky(state.covariance)
        length = state.length
        for _ in range(MOST_HALVINGS):
            place = state.mean, state.covariance
            mean, covariance = chart.stepped(*place, length * state.direction)
            inner = np.linalg.solve(root, np.linalg.solve(root, covariance).T)
            ratio = np.linalg.eigvalsh(0.5 * (inner + inner.T))
            if LARGEST_CHANGE * ratio[0] > 1.0 and ratio[-1] < LARGEST_CHANGE:
                return self._admitted(state, mean, covariance), length
            length *= 0.5
        # A direction that leads out of all covariances at once: one of expectation maximisation.
        state.length = 0.0
        return self._target(state)

    def _admitted(self, state: State, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return parameters of the structure, near to these."""
        if not self.m_step.structure.linear:
            return self.m_step.admit(mean, covariance)
        if self.closed.size and state.moments is not None:
            mean, covariance = with_columns(mean, covariance, self.closed, state.moments)
        return mean, with_floor(covariance) if self.m_step.structure.name != "known" else covariance

    def _remember(self, state: State, step: Floats, fall: Floats) -> None:
        """Remember the curvature along a step, where there is any."""
        if step @ fall > 1e-10 * np.linalg.norm(step) * np.linalg.norm(fall):
            state.pairs = [*state.pairs, (step, fall)][-MEMORY:]

    def _end_phase(self, state: State) -> None:
        if state.phase == "climbing" and self.climb_only:
            state.phase = "ended"
        elif state.phase == "climbing":
            state.phase, state.stuck, state.climbed, state.noise = "polishing", False, [], 0.0
            if not self._singular(state):
                self._put_in_order(state)
                self._settle_here(state)
                if self.with_information and self._informs_early(state):
                    self._inform(state)
                if self.explores and not self._knows_curvature(state):
                    known = state.score if state.points <= self.first_points else None
                    self._explore(state, state.score, known)
            points = self._more_points(state) if self.sampled else state.points
            state.noise *= state.points / points
            if self.scouting:
                state.phase, state.points = "ended", points
            elif points > state.points:
                # The same place, with other points.
                state.points, state.moments = points, None
            else:
                self._arrive(state, state.moments, state.value)  # type: ignore[arg-type]
        else:
            self._begin_average(state)

    def _put_in_order(self, state: State) -> None:
        """Put the cells of each row in the order that is best here, and ask again."""
        if self.sampled:
            state.order = state.mean, state.covariance
            state.moments, state.value = self._ask(state, state.mean, state.covariance)

    def _settle_here(self, state: State) -> None:
        """Make the place the origin of the coordinates; what steps showed elsewhere is forgotten."""
        state.origin, state.pairs = (state.mean, state.covariance), []
        assert state.moments is not None
        state.score = self.chart(state).score(state.moments, state.mean, state.covariance)

    def _inform(self, state: State) -> None:
        """Find the information here, and take its coordinates."""
        self._settle_here(state)
        state.information = information(self.rows, self.chart(state), CLIMBING_SEED)

    def _explore(self, state: State, score: Floats, here_known: Floats | None = None) -> None:
        """Find the curvature in the directions that a score asks for, one after the other.

        ``here_known`` is the score of the points that are taken, where it has been asked for.

        Steps up show the curvature along themselves alone. Elsewhere that of complete rows stands for
        it, which promises too little, or an information that is sampled, whose noise may do the same
        where there are about as many parameters as rows.
        """
        chart = self.chart(state)
        sampling = self._sampling(state, min(state.points, self.first_points))

        def ask(place: tuple[Floats, Floats]) -> Floats:
            return chart.score(self.rows.expect(*place, sampling)[0], *place)

        def fall(direction: Floats) -> Floats:
            complete = chart.information_times(direction)
            share = PROBE / np.sqrt(direction @ complete)
            shown = (
                before - ask(chart.stepped(state.mean, state.covariance, share * direction))
            ) / share
            return np.asarray(shown + (1.0 - LARGEST_STEP_SHARE) * complete)

        before = ask((state.mean, state.covariance)) if here_known is None else here_known
        found = conjugate_pairs(self.curvature(state), score, fall, MEMORY, EXPLORED)
        state.pairs = [*state.pairs, *found]

    def _begin_average(self, state: State) -> None:
        # On an edge there is no top, whose curvature could say how large errors are.
        if not self.sampled or not state.score.size or self._singular(state):
            state.phase, state.ratio = "ended", 0.0
            return
        state.phase = "averaging"
        known = state.information
        stale = known is not None and known.moved(state.mean, state.covariance) > STALE
        if self.with_information and (known is None or (stale and not self.explores)):
            self._inform(state)
        elif state.information is not None and not self.explores:
            # It is known better than what steps showed.
            state.pairs = []
        state.scores = [state.score]

    def _average(self, state: State) -> None:
        """Ask again with other shifts; end when little is left of the Monte-Carlo error."""
        place = state.mean, state.covariance
        moments, _ = self._ask(state, *place, len(state.scores), self.seed)
        state.scores.append(self.chart(state).score(moments, *place))
        count = len(state.scores)
        if count < FEWEST_AVERAGED:
            return
        scores = np.array(state.scores)
        if count == FEWEST_AVERAGED and self.explores and not self._knows_curvature(state):
            known = state.scores[0] if state.points <= self.first_points else None
            self._explore(state, scores.mean(axis=0), known)
        curvature = self.curvature(state)
        scatter = scores - scores.mean(axis=0)
        noise = sum(curvature.gain(one) for one in scatter) / (count * (count - 1))
        state.ratio = float(self._ratios(state, curvature, scatter).max(initial=0.0))
        # What is left to go after the step that ends this, by the change of its noise alone.
        state.gain = noise
        cheap = count * state.points * self.sampled < AIMED_DRAWS
        near = noise <= (AIMED if cheap else self.allowed)
        if (near and state.ratio <= self.accuracy) or count >= MOST_AVERAGED:
            state.score = scores.mean(axis=0)
            self._finish(state, curvature)

    def _finish(self, state: State, curvature: Curvature) -> None:
        """Take the step that the averaged score asks for, unless it leads down.

        Values are compared over the points of the climb, and where these say no, over those of some
        averages. What is far from the top by more than noise is polished again.
        """
        noise, promise = state.gain, curvature.gain(state.score)
        state.direction, state.length, state.phase = curvature @ state.score, 1.0, "ended"
        target, _ = self._target(state)
        if promise <= SMALL_STEP:
            state.mean, state.covariance = target
            return
        moments, value = self._ask(state, *target)
        real = self.explores and promise > MUCH_NOISE * noise
        if value < state.value - self.allowed and not (real and self._leads_up(state, target)):
            if real and not self._ask_more(state):
                # The slope promises what no step brings.
                state.gain = promise
            return
        far = real and self._changes_much(state, target[1])
        state.mean, state.covariance = target
        state.moments, state.value = moments, value
        if far and not state.stuck:
            state.phase, state.climbed = "polishing", []
            self._arrive(state, moments, value)

    def _ask_more(self, state: State) -> bool:
        """Polish with more points, if there may be more.

        Averages of few points are biased, scores and log-likelihoods each in their own way: where no
        step leads up that scores ask for, it is this that is left.
        """
        points = min(MOST_TIMES * state.points, MOST_POINTS)
        if not self.explores or points <= state.points or self._singular(state):
            return False
        state.phase, state.noise = "polishing", state.noise * state.points / points
        state.points, state.moments, state.stuck, state.climbed = points, None, False, []
        return True

    def _leads_up(self, state: State, target: tuple[Floats, Floats]) -> bool:
        """Whether a place is higher by the points of several averages: those of the climb may err."""
        gains = [
            self._ask(state, *target, k, self.seed)[1]
            - self._ask(state, state.mean, state.covariance, k, self.seed)[1]
            for k in range(1, 1 + FEWEST_AVERAGED)
        ]
        return sum(gains) > 0.0

    def _changes_much(self, state: State, covariance: Floats) -> bool:
        """Whether variances are so far from the state's that a step there is not to be the last."""
        ratio = np.linalg.eigvals(np.linalg.solve(state.covariance, covariance)).real
        return bool(ratio.min() * LAST_CHANGE < 1.0 or ratio.max() > LAST_CHANGE)

    def errors(self, state: State) -> Floats:
        """Monte-Carlo standard errors of (μ, Σ_ij for i >= j)."""
        if not self.sampled:
            return np.zeros(state.mean.size * (state.mean.size + 3) // 2)
        if len(state.scores) < 2:
            return np.full(state.mean.size * (state.mean.size + 3) // 2, np.inf)
        curvature, scores = self.curvature(state), np.array(state.scores)
        steps = np.array([curvature @ one for one in scores - scores.mean(axis=0)])
        count = len(scores)
        moved = self.chart(state).spread(steps)
        return np.asarray(np.sqrt((moved * moved).sum(axis=0) / (count * (count - 1))))

    def _ratios(self, state: State, curvature: Curvature, scatter: Floats) -> Floats:
        """Monte-Carlo errors as shares of statistical ones."""
        errors = self.errors(state)
        scale = self.standard_errors(state)
        return errors / np.where(scale > 0.0, scale, np.inf)

    def standard_errors(self, state: State) -> Floats:
        """Statistical standard errors: of the data where they are known, else of complete data."""
        if state.information is not None:
            return np.sqrt(state.information.variances())
        return complete_errors(state.covariance, self.n)

    def _solve(self, state: State) -> None:
        """Take the closed form, where every value is seen."""
        state.moments, state.value = self._ask(state, state.mean, state.covariance)
        state.mean, state.covariance = self.m_step.solve(state.moments, self.n)
        state.phase, state.gain, state.ratio = "ended", 0.0, 0.0

    def _settle(self, state: State) -> None:
        """Repeat expectation maximisation until it stands still."""
        moments, value = self._ask(state, state.mean, state.covariance)
        state.moments, state.value = moments, value
        before = state.mean, state.covariance
        state.mean, state.covariance = self.m_step.solve(moments, self.n)
        state.origin = before
        step = Chart(MStep(Free()), *before, self.n).coordinates(state.mean, state.covariance)
        complete = Chart(MStep(Free()), *before, self.n).complete
        gain = float(0.5 * (complete * step * step).sum())
        # A step that is the share r of the one before has 1/(1 − r) of its length to go; gains go with
        # the square.
        share = min(np.sqrt(gain / state.gain), 0.999) if 0.0 < state.gain < np.inf else 0.5
        state.gain = gain
        state.climbed = [*state.climbed, gain][-STALLED_STEPS:]
        # What does not fall any more is noise: of the points, or of the rule that pulls.
        level = len(state.climbed) == STALLED_STEPS and gain > FALLING * state.climbed[0]
        left = gain if level else gain / (1.0 - share) ** 2
        more = min(MOST_TIMES * state.points, MOST_POINTS)
        if level and left > SETTLED and self.sampled and more > state.points:
            state.points, state.climbed = more, []
        elif left <= SETTLED or level:
            state.phase, state.ratio, state.gain = "ended", 0.0, left


def with_columns(
    mean: Floats, covariance: Floats, columns: NDArray[np.intp], moments: Moments
) -> tuple[Floats, Floats]:
    """Give some columns, of which every value is seen, the moments of their values.

    The regression of the others on them stays as it is: the likelihood is the product of that of these
    columns, whose top is there, and that of the others given them.
    """
    rest = np.setdiff1d(np.arange(mean.size), columns)
    own = moments.about(moments.first)[np.ix_(columns, columns)]
    across = covariance[np.ix_(rest, columns)]
    slopes = np.linalg.solve(covariance[np.ix_(columns, columns)], across.T).T
    left = covariance[np.ix_(rest, rest)] - slopes @ across.T
    out_mean, out = mean.copy(), covariance.copy()
    out_mean[columns] = moments.first[columns]
    out_mean[rest] += slopes @ (moments.first[columns] - mean[columns])
    out[np.ix_(columns, columns)] = own
    out[np.ix_(rest, columns)] = slopes @ own
    out[np.ix_(columns, rest)] = own @ slopes.T
    both = left + slopes @ own @ slopes.T
    out[np.ix_(rest, rest)] = 0.5 * (both + both.T)
    return out_mean, out


def complete_errors(covariance: Floats, n: int) -> Floats:
    """Return the standard errors of (μ, Σ_ij for i >= j) from n complete rows."""
    variance = np.diag(covariance)
    return np.sqrt(pack(variance, np.outer(variance, variance) + covariance**2) / n)


def _need_a_place(value: float) -> None:
    """Raise where no path of the sampler leads to where the hidden cells of some row can be."""
    if np.isneginf(value) or np.isnan(value):
        raise RarelyHitError(
            "the rule binds the hidden cells of a row together, by so many inequalities at once that "
            "the paths of full find no place for those of some rows. Where the covariance is known, "
            f"{argument('method', 'missing_descent')} has chains that stay in such places; else use "
            f"{argument('method', 'truncation')}, or hide fewer columns by combinations of all."
        )
