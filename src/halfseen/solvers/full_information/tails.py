"""Heavy tails: rows of a multivariate t distribution, with degrees of freedom given or learned.

The location and the scatter matrix Σ of a t distribution with ν degrees of freedom are learned as the
mean and the covariance of a Gaussian are: rows say E(w z) and E(w z z') (``kernels.scale_mixture``), and
the ascent does the rest. ν is learned by the profile of the likelihood in κ = 1/ν, which is regular at
the Gaussian, κ = 0, and whose slope at the top of the others is the slope with the others held fixed.
"""

from __future__ import annotations

import math
import reprlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from halfseen.errors import InputError, argument
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.charts import packed_score
from halfseen.solvers.full_information.expectation import Parameters, Sampling
from halfseen.solvers.full_information.learn import Climb, Settings, climb, learn, likely_tops
from halfseen.solvers.full_information.m_step import MStep
from halfseen.solvers.full_information.rows import Rows
from halfseen.solvers.inference.uncertainty import StandardErrors
from halfseen.solvers.result import Estimate, Note, Source, Status, Tails

Floats = NDArray[np.float64]
Place = tuple[Floats, Floats]

# Fewer have no mean; more are told from a Gaussian by no table (κ = 0.001).
FEWEST, MOST = 1.0, 1000.0
# What is asked for beyond this many is a Gaussian to the last digit.
LIKE_A_GAUSSIAN = 1e15
# κ at which the slope is looked at to find where it changes its sign.
BRACKET = (1.0 / MOST, 0.02, 0.2, 1.0 / FEWEST)
# κ is found when so little is promised in log-likelihood (a hundredth of a standard error); secants stay
# this share of the way off both ends, and are no more than so many: each brings an end a tenth nearer.
GAIN_LEFT, AWAY, MOST_PLACES = 1e-4, 0.1, 100
# Differences in log κ, of values and of scores.
STEP = 0.02
# Points for each row that is sampled, where values and scores at different ν are compared.
POINTS = 128
LEVEL = 0.95


def read_degrees(errors: str, degrees_of_freedom: float | None) -> float | None:
    """Read what was said of the tails; None where degrees of freedom are to be learned."""
    if errors not in ("normal", "t"):
        raise InputError(f'errors must be "normal" or "t"; got {errors!r}.')
    if degrees_of_freedom is None:
        return math.inf if errors == "normal" else None
    if errors == "normal":
        raise InputError(
            f"{argument('degrees_of_freedom')} is for {argument('errors', 't')}; say both."
        )
    number = isinstance(degrees_of_freedom, int | float | np.integer | np.floating)
    if not number or isinstance(degrees_of_freedom, bool) or not degrees_of_freedom >= FEWEST:
        name = argument("degrees_of_freedom").rstrip("=")
        raise InputError(
            f"{name} must be a number, at least {FEWEST:g} (below, there is no mean); got "
            f"{reprlib.repr(degrees_of_freedom)}."
        )
    return float(degrees_of_freedom) if degrees_of_freedom < LIKE_A_GAUSSIAN else math.inf


def learn_tails(
    rows: Rows,
    m_step: MStep,
    start: Place,
    settings: Settings,
    notes: list[Note],
    degrees: float | None,
    source: Source | None = None,
    follow_start: bool = False,
) -> Estimate:
    """Learn location and scatter of a t distribution, and ν where ``degrees`` is None."""
    if degrees is not None:
        heavy = rows.with_degrees(degrees)
        found = learn(heavy, m_step, start, settings, notes, source, follow_start)
        return replace(found, tails=Tails(degrees))
    if not follow_start:
        # Where the likelihood has several tops, that of a Gaussian says which one is gone on from.
        tops, _ = likely_tops(rows, m_step, start, settings)
        start = (tops[0].mean, tops[0].covariance) if tops else start
        notes = [*notes, Note(Status.NO_GLOBAL_GUARANTEE, "")] if len(tops) > 1 else notes
    common = settings, notes, source
    search = _Search(rows, m_step, settings)
    kappa, place, gain = search.run(start)
    heavy = rows if kappa == 0.0 else rows.with_degrees(1.0 / kappa)
    found = learn(heavy, m_step, place, *common, True)
    found = replace(
        found, history={**found.history, "steps": search.steps + found.history["steps"]}
    )
    if kappa == 0.0:
        lower = 1.0 / min(search.largest(), 1.0 / FEWEST)
        return replace(found, tails=Tails(math.inf, math.inf, lower, math.inf, 1.0, True))
    if kappa >= BRACKET[-1]:
        text = (
            f"Tails are as heavy as those of {FEWEST:g} degree of freedom or heavier; the estimate "
            "is that of this one. Look for values that are wrong, or for rows of several kinds."
        )
        found = replace(found, notes=(*found.notes, Note(Status.ON_DOMAIN_EDGE, text)))
    p_value = 0.5 * float(chdtrc(1, max(2.0 * gain, 0.0)))
    assert found.parameters is not None
    tails, uncertainty = _uncertain(heavy, found, kappa, p_value)
    return replace(found, tails=tails, uncertainty=uncertainty, parameters=found.parameters + 1)


class _Search:
    """The likeliest κ, each with the likeliest location and scatter, climbed to from the last."""

    def __init__(self, rows: Rows, m_step: MStep, settings: Settings) -> None:
        self.rows, self.m_step = rows, m_step
        self.settings = replace(settings, standard_errors=False, progress=False)
        self.place: Place | None = None
        self.steps = 0
        self.sampling = Sampling(POINTS, 0, 0, Purpose.LIKELIHOOD)

    def run(self, start: Place) -> tuple[float, Place, float]:
        """Return κ, the place, and what it gains over the Gaussian; κ = 0 where nothing is gained."""
        normal = self._climb(self.rows, start)
        gaussian = normal.mean, normal.covariance
        self.place = gaussian
        if self.rows.overview.sampled:
            order = Parameters.of(*gaussian)
            self.sampling = self.sampling._replace(order=order)
        low = high = None
        for kappa in BRACKET:
            there = math.log(kappa), self._slope(kappa)
            if there[1] < 0.0:
                high = there
                break
            low = there
        if low is None:
            return 0.0, gaussian, 0.0
        if high is not None:
            kappa = self._between(low, high)
        assert self.place is not None
        gain = self._value(kappa, self.place) - self._value(0.0, gaussian)
        return kappa, self.place, gain

    def largest(self) -> float:
        """Return how large κ may be where the likelihood falls from κ = 0 on: to the end of an interval.

        By a parabola with the slopes at two small κ.
        """
        one, other = BRACKET[:2]
        steep = -self._slope(one) / one
        curved = max((-self._slope(other) / other - steep) / (other - one), 0.0)
        fall = 0.5 * float(ndtri(0.5 + 0.5 * LEVEL)) ** 2
        return 2.0 * fall / (steep + math.sqrt(steep**2 + 2.0 * curved * fall))

    def _between(self, low: tuple[float, float], high: tuple[float, float]) -> float:
        """Return κ between two places (log κ, slope), one with the profile rising, one with it falling.

        Secants, kept away from both ends; where next to nothing is promised, that is the top.
        """
        for _ in range(MOST_PLACES):
            width = high[0] - low[0]
            t = low[0] + width * low[1] / (low[1] - high[1])
            t = min(max(t, low[0] + AWAY * width), high[0] - AWAY * width)
            here = t, self._slope(math.exp(t))
            curvature = (low[1] - high[1]) / width
            if 0.5 * here[1] ** 2 <= GAIN_LEFT * curvature:
                break
            low, high = (here, high) if here[1] > 0.0 else (low, here)
        return math.exp(here[0])

    def _climb(self, rows: Rows, start: Place) -> Climb:
        found = climb(rows, self.m_step, start, self.settings, climb_only=True)
        self.steps += len(found.history)
        return found

    def _slope(self, kappa: float) -> float:
        """Return the derivative of the profile in log κ; the place of the profile is kept."""
        assert self.place is not None
        found = self._climb(self.rows.with_degrees(1.0 / kappa), self.place)
        self.place = found.mean, found.covariance
        ends = [self._value(kappa * math.exp(sign * STEP), self.place) for sign in (1.0, -1.0)]
        return (ends[0] - ends[1]) / (2.0 * STEP)

    def _value(self, kappa: float, place: Place) -> float:
        rows = self.rows.with_degrees(1.0 / kappa) if kappa > 0.0 else self.rows
        return rows.expect(*place, self.sampling)[1]


def _uncertain(
    rows: Rows, found: Estimate, kappa: float, p_value: float
) -> tuple[Tails, StandardErrors | None]:
    """Say how well κ is known, and what that adds to the errors of all else.

    With V the inverse of the information about all else, and c the fall of its score in κ, κ has the
    variance 1/(I_κκ − c' V c), and all else (V c)(V c)' times that more.
    """
    about = rows.overview
    place = about.from_units(found.gaussian.mean, found.gaussian.covariance)
    order = Parameters.of(*place) if about.sampled else None
    sampling = Sampling(POINTS, 0, 0, Purpose.LIKELIHOOD, order)
    values, scores = [], []
    for sign in (-1.0, 0.0, 1.0):
        moved = rows.with_degrees(math.exp(-sign * STEP) / kappa)
        moments, value = moved.expect(*place, sampling)
        values.append(value)
        scores.append(packed_score(moments, *place, about.shape[0]))
    # In log κ; the slope there is zero.
    own = -(values[0] - 2.0 * values[1] + values[2]) / STEP**2
    across = (scores[2] - scores[0]) / (2.0 * STEP)
    errors, units = found.uncertainty, about.units
    if errors is None or errors.parameters is None:
        variance = 1.0 / own if own > 0.0 else np.inf
    else:
        moves = np.asarray(errors.parameters / np.outer(units, units)) @ across
        left = own - float(across @ moves)
        variance = 1.0 / left if left > 0.0 else np.inf
        if np.isfinite(variance):
            more = np.outer(units * moves, units * moves) * variance
            errors = StandardErrors.from_parameters(
                found.gaussian, errors.parameters + more, errors.missing
            )
    error = kappa * math.sqrt(variance)
    reach = float(ndtri(0.5 + 0.5 * LEVEL)) * error
    lower, upper = 1.0 / min(kappa + reach, 1.0 / FEWEST), kappa - reach
    tails = Tails(
        1.0 / kappa,
        error / kappa**2,
        lower,
        1.0 / upper if upper > 0.0 else math.inf,
        p_value,
        True,
    )
    return tails, errors
