"""Learning which share of values was lost, together with mean and covariance.

For given shares ε the likelihood is climbed as ever, to θ̂(ε). The profile l(θ̂(ε), ε) is then climbed by
Newton's steps. Its slope is ∂l/∂ε (the slope in θ is 0), and its curvature

    C = −∂²l/∂ε² − Sᵀ V S,    S = ∂(score in θ)/∂ε,    V = (information about θ)⁻¹,

so that dθ̂/dε = V S, ε̂ has the variance C⁻¹, and θ̂ that of a known ε and (V S) C⁻¹ (V S)ᵀ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from halfseen.errors import InputError, argument
from halfseen.missingness.base import Missingness
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.charts import Chart, packed_score
from halfseen.solvers.full_information.expectation import Parameters, Sampling
from halfseen.solvers.full_information.information import can_inform, information
from halfseen.solvers.full_information.learn import Settings, climb, learn
from halfseen.solvers.full_information.m_step import MStep, singular
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.inference.uncertainty import StandardErrors
from halfseen.solvers.loss import Asked, Loss, cells_at_risk, matched_rule, read_loss, with_losses
from halfseen.solvers.result import Estimate, Note, Source, Status
from halfseen.theta import unpack

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Mask = NDArray[np.bool_]
# The log-likelihood and the score, at some shares.
Look = Callable[[Floats], tuple[float, Floats]]

# Shares of the hidden cells that may be lost ones, at which the profile is looked at first: it may have
# two tops, one where the rule hid most, and one where most were lost.
FIRST_LOOKS = (0.0, 0.1, 0.3, 0.7)
# Steps of differences, as shares of ε: for slopes, where what is left out is a millionth of the
# slope, and for curvatures, which rounding and kinks of sampled rows disturb; and the smallest.
SLOPE_STEP, CURVATURE_STEP, SMALLEST_STEP = 1e-3, 0.05, 1e-4
# No larger share is looked at: what is then seen of a table is next to nothing.
LARGEST = 0.99
# The top is found where a step promises less than this in log-likelihood.
GAIN_LEFT = 1e-7
MOST_ROUNDS, MOST_HALVINGS = 30, 8
# Points of sampled rows, as in profiles: all places have the same ones.
POINTS, MOST_DRAWS = (32, 128), 2**13
# An end of a 95 % interval is where twice the fall is the quantile of a chi-square; its root is looked
# for until it is this close.
CUTOFF, CLOSE, MOST_PLACES = 1.959964, 0.005, 15


@dataclass(frozen=True, eq=False)
class LossyTable:
    """A table, which of its cells may be lost values, and what was said of their shares."""

    plain: Problem
    risk: Mask
    asked: Asked

    @classmethod
    def read(
        cls, plain: Problem, X: Any, rule: Missingness | None, missing_at_random: Any, loss: Any
    ) -> LossyTable:
        """Read what was said of lost values, of a table that was read."""
        if rule is not None:
            rule = matched_rule(plain, rule)
        asked = read_loss(loss, plain.names, rule, X)
        return cls(plain, cells_at_risk(plain, X, rule, missing_at_random), asked)

    def problem(self, share: Floats) -> Problem:
        """Return the problem when such shares of the columns were lost."""
        return with_losses(self.plain, self.risk, share)

    def take(self, rows: NDArray[np.intp]) -> LossyTable:
        """Return the table of some of the rows."""
        return LossyTable(self.plain.take(rows), self.risk[rows], self.asked)

    def shares(self, epsilon: Floats) -> Floats:
        """Return the share of each column, from those that are learned."""
        share = np.where(self.asked.learned, 0.0, self.asked.share)
        for columns, one in zip(self.asked.to_learn, epsilon, strict=True):
            share[columns] = one
        return share

    def share_of_hidden(self, columns: Integers, lost: float) -> float:
        """Return the share of values that was lost where this share of the hidden cells is lost values.

        Lost cells are ε/(1 − ε) times as many as seen ones.
        """
        hidden = int((self.plain.hidden & self.risk)[:, columns].sum())
        seen = int((~self.plain.hidden & self.risk)[:, columns].sum())
        return lost * hidden / max(seen + lost * hidden, 1)


class Peak(NamedTuple):
    """The top of the likelihood for given shares, in standardised units."""

    epsilon: Floats
    mean: Floats
    covariance: Floats
    value: float


class Slopes(NamedTuple):
    """Derivatives at a peak.

    Attributes
    ----------
    slope : array of shape (k,)
        ∂l/∂ε.
    curvature : array of shape (k, k)
        C, of the profile.
    follow : array of shape (p, k)
        dθ̂/dε, of (μ, Σ_ij for i >= j).
    """

    slope: Floats
    curvature: Floats
    follow: Floats


@dataclass(eq=False)
class ShareProfile:
    """The profile of the likelihood over shares that are learned."""

    table: LossyTable
    m_step: MStep
    settings: Settings
    sampling: Sampling
    seen: list[Peak] = field(default_factory=list)

    def rows(self, epsilon: Floats) -> HeldRows:
        """Return the rows as they are when such shares were lost."""
        return HeldRows(self.table.problem(self.table.shares(epsilon)), self.settings.n_jobs)

    def value(self, rows: HeldRows, mean: Floats, covariance: Floats) -> float:
        """Return the log-likelihood, with that of the seen cells' not being lost."""
        kept = rows.problem.kept
        found = rows.expect(mean, covariance, self.sampling)[1]
        return found if kept is None else found + float(kept.sum())

    def peak(self, epsilon: Floats, start: tuple[Floats, Floats] | None = None) -> Peak:
        """Climb to the top for given shares, from the nearest of those that were found."""
        if start is None:
            gaps = [float(np.abs(one.epsilon - epsilon).sum()) for one in self.seen]
            near = self.seen[int(np.argmin(gaps))]
            start = near.mean, near.covariance
        rows = self.rows(epsilon)
        found = climb(rows, self.m_step, start, self.settings)
        place = found.mean, found.covariance
        peak = Peak(epsilon, *place, self.value(rows, *place))
        self.seen.append(peak)
        return peak

    def slopes(self, peak: Peak) -> Slopes:
        """Return derivatives of the profile, by differences of the likelihood at the peak."""
        count = peak.epsilon.size
        place, n = (peak.mean, peak.covariance), self.table.plain.shape[0]

        def look(moved: Floats) -> tuple[float, Floats]:
            rows = self.rows(moved)
            moments, value = rows.expect(*place, self.sampling)
            kept = rows.problem.kept
            value += 0.0 if kept is None else float(kept.sum())
            return value, packed_score(moments, *place, n)

        slope, direct, S = np.empty(count), np.empty((count, count)), []
        for k in range(count):
            fine = _three(look, peak.epsilon, k, SLOPE_STEP)
            wide = _three(look, peak.epsilon, k, CURVATURE_STEP)
            slope[k], direct[k, k] = fine[0], -wide[1]
            S.append(wide[2])
            for j in range(k):
                direct[j, k] = direct[k, j] = -_mixed(look, peak.epsilon, j, k)
        known = information(self.rows(peak.epsilon), self._chart(peak), self.settings.seed)
        score = np.array(S).T
        follow = known.covariance() @ score
        curvature = direct - score.T @ follow
        return Slopes(slope, 0.5 * (curvature + curvature.T), follow)

    def _chart(self, peak: Peak) -> Chart:
        return Chart(self.m_step, peak.mean, peak.covariance, self.table.plain.shape[0])

    def climb(self, peak: Peak, free: Mask) -> Peak:
        """Climb the profile along some of the shares."""
        for _ in range(MOST_ROUNDS):
            if not free.any() or singular(peak.covariance):
                return peak
            at = self.slopes(peak)
            # On the edge, where the likelihood falls inwards, a share stays.
            inner = free & ((peak.epsilon > 0.0) | (at.slope > 0.0))
            if not inner.any():
                return peak
            step = np.zeros(peak.epsilon.size)
            step[inner] = _newton(at.slope[inner], at.curvature[np.ix_(inner, inner)])
            higher = self._higher(peak, step, at.follow)
            if higher is None:
                return peak
            promised = 0.5 * float(at.slope @ (higher.epsilon - peak.epsilon))
            peak = higher
            if promised < GAIN_LEFT:
                return peak
        return peak

    def _higher(self, peak: Peak, step: Floats, follow: Floats) -> Peak | None:
        """Return a place that is not lower, along a step; None where there is none."""
        for _ in range(MOST_HALVINGS):
            to = np.clip(peak.epsilon + step, 0.0, LARGEST)
            start = _moved(peak, follow @ (to - peak.epsilon))
            found = self.peak(to, start)
            if found.value >= peak.value:
                return found
            step = 0.5 * step
        return None

    def best_at(self, top: Peak, k: int, epsilon: float) -> Peak:
        """Return the top where one share is given."""
        for one in self.seen:
            if top.epsilon.size == 1 and one.epsilon[0] == epsilon:
                return one
        to = top.epsilon.copy()
        to[k] = epsilon
        others = np.arange(to.size) != k
        return self.climb(self.peak(to), others)

    def fall(self, top: Peak, k: int, epsilon: float) -> float:
        """Return the root of twice the fall of the profile of one share."""
        value = self.best_at(top, k, epsilon).value
        return float(np.sqrt(2.0 * max(top.value - value, 0.0)))

    def interval(self, top: Peak, k: int, error: float) -> tuple[float, float, float]:
        """Return the ends of a share's interval, and the p-value of its being 0."""
        at_zero = self.fall(top, k, 0.0)
        low, high = (self.end(top, k, error, side, at_zero) for side in (-1, 1))
        return low, high, 0.5 * float(chdtrc(1.0, at_zero**2)) if at_zero > 0.0 else 1.0

    def end(self, top: Peak, k: int, error: float, side: int, at_zero: float) -> float:
        """Return the end of a share's interval, below (−1) or above (+1)."""
        best = float(top.epsilon[k])
        if side < 0 and at_zero <= CUTOFF:
            return 0.0
        inside, outside = (best, 0.0), ((0.0, at_zero) if side < 0 else (np.nan, np.inf))
        guess = best + side * CUTOFF * error
        if side < 0:
            guess = guess if guess > 0.0 else 0.5 * best
        for _ in range(MOST_PLACES):
            guess = min(guess, LARGEST)
            root = self.fall(top, k, guess)
            if abs(root - CUTOFF) < CLOSE * CUTOFF:
                return guess
            if root > CUTOFF:
                outside = guess, root
            elif guess >= LARGEST:
                return 1.0
            else:
                inside = guess, root
            guess = _between(inside, outside, side)
        return guess


def _between(inside: tuple[float, float], outside: tuple[float, float], side: int) -> float:
    """Return where a root that grows nearly linearly comes to the cutoff."""
    if not np.isfinite(outside[1]):
        return inside[0] + side * max(0.5 * inside[0], 0.01)
    width = outside[0] - inside[0]
    part = (CUTOFF - inside[1]) / (outside[1] - inside[1])
    return inside[0] + width * float(np.clip(part, 0.05, 0.95))


def _three(look: Look, epsilon: Floats, k: int, share: float) -> tuple[float, float, Floats]:
    """Return the first and the second derivative of the value, and the first of the score."""
    step = max(share * float(epsilon[k]), SMALLEST_STEP)
    # At the edge the same three places stand to one side.
    centre = max(float(epsilon[k]), step)
    found = []
    for place in (centre - step, centre, centre + step):
        moved = epsilon.copy()
        moved[k] = place
        found.append(look(moved))
    (low, score_low), (middle, _), (high, score_high) = found
    second = (low - 2.0 * middle + high) / step**2
    first = (high - low) / (2.0 * step) + second * (float(epsilon[k]) - centre)
    return first, second, (score_high - score_low) / (2.0 * step)


def _mixed(look: Look, epsilon: Floats, j: int, k: int) -> float:
    """Return the mixed second derivative of the value."""
    steps = [max(CURVATURE_STEP * float(epsilon[i]), SMALLEST_STEP) for i in (j, k)]
    centres = [max(float(epsilon[i]), step) for i, step in zip((j, k), steps, strict=True)]
    total = 0.0
    for one in (-1, 1):
        for other in (-1, 1):
            moved = epsilon.copy()
            moved[j], moved[k] = centres[0] + one * steps[0], centres[1] + other * steps[1]
            total += one * other * look(moved)[0]
    return float(total / (4.0 * steps[0] * steps[1]))


def _newton(slope: Floats, curvature: Floats) -> Floats:
    """Return Newton's step, or one uphill where the profile is not curved downwards."""
    values, vectors = np.linalg.eigh(curvature)
    # A direction that is hardly curved is gone along no further than by a tenth.
    along = vectors.T @ slope
    length = np.abs(along) / np.maximum(values, np.abs(along) / 0.1)
    return np.asarray(vectors @ (np.sign(along) * length))


def _moved(peak: Peak, change: Floats) -> tuple[Floats, Floats]:
    """Return where the top is expected to have moved; the old one where that is no covariance."""
    a, B = unpack(change, peak.mean.size)
    covariance = peak.covariance + B
    if np.linalg.eigvalsh(covariance)[0] < 0.5 * np.linalg.eigvalsh(peak.covariance)[0]:
        return peak.mean, peak.covariance
    return peak.mean + a, covariance


def learn_with_losses(
    table: LossyTable,
    m_step: MStep,
    start: tuple[Floats, Floats],
    settings: Settings,
    notes: list[Note],
    source: Source | None = None,
    follow_start: bool = False,
    intervals: bool = True,
) -> Estimate:
    """Do as ``learn`` where values were lost, in shares that are known, or learned too.

    Without ``intervals`` a learned share has a standard error alone.
    """
    if not table.asked.to_learn:
        rows = HeldRows(table.problem(table.asked.share), settings.n_jobs)
        fit = learn(rows, m_step, start, settings, notes, source, follow_start)
        return replace(fit, loss=Loss.known(*table.asked))
    _check_learnable(table, m_step, settings)
    profile, notes = _first_looks(table, m_step, start, settings, notes, follow_start)
    top = max(profile.seen, key=lambda peak: peak.value)
    top = profile.climb(top, np.ones(top.epsilon.size, dtype=bool))
    rows = profile.rows(top.epsilon)
    fit = learn(rows, m_step, (top.mean, top.covariance), settings, notes, source, True)
    return _describe(fit, profile, top, settings.standard_errors, intervals)


def _check_learnable(table: LossyTable, m_step: MStep, settings: Settings) -> None:
    """Raise where a share cannot be learned."""
    d = table.plain.shape[1]
    if not can_inform(m_step, d):
        raise InputError(
            "a share of lost values is learned together with a mean or a covariance that is free, "
            f"not regularised, of no more than 42 columns; here are {d}. State the share: "
            f"{argument('loss', 0.1)}."
        )
    if settings.checkpoint is not None:
        raise InputError(
            "a share of lost values is learned by many climbs, which a checkpoint does not hold. "
            f"State the share, or leave {argument('checkpoint')} out."
        )


def _first_looks(
    table: LossyTable,
    m_step: MStep,
    start: tuple[Floats, Floats],
    settings: Settings,
    notes: list[Note],
    follow_start: bool,
) -> tuple[ShareProfile, list[Note]]:
    """Return the profile, with a few peaks along it, and what is to be said of the first of them."""
    quiet = replace(settings, standard_errors=False, progress=False)
    first_looks = [
        np.array([table.share_of_hidden(columns, lost) for columns in table.asked.to_learn])
        for lost in FIRST_LOOKS
    ]
    middle = HeldRows(table.problem(table.shares(first_looks[2])), settings.n_jobs)
    first = learn(middle, m_step, start, quiet, [], None, follow_start)
    notes = notes + [note for note in first.notes if note.status is Status.NO_GLOBAL_GUARANTEE]
    place = middle.overview.from_units(first.gaussian.mean, first.gaussian.covariance)
    sampled = middle.overview.sampled
    points = int(np.clip(MOST_DRAWS // max(sampled, 1), *POINTS))
    order = Parameters.of(*place) if sampled else None
    sampling = Sampling(points, settings.seed, 0, Purpose.LIKELIHOOD, order)
    profile = ShareProfile(table, m_step, quiet, sampling)
    for look in first_looks:
        profile.peak(look, place)
    return profile, notes


def _uncertain_shares(
    profile: ShareProfile, top: Peak, at: Slopes, intervals: bool
) -> tuple[Floats, Floats]:
    """Return the covariance of shares; and standard error, ends and p-value of each."""
    values, vectors = np.linalg.eigh(at.curvature)
    # A direction that is not curved downwards is as good as not known.
    V = (vectors / np.maximum(values, 1.0)) @ vectors.T
    spread = np.sqrt(np.diag(V))
    told = np.full((spread.size, 4), np.nan)
    shrink = np.ones(spread.size)
    for k, error in enumerate(spread):
        if intervals:
            told[k, 1:] = profile.interval(top, k, error)
            if top.epsilon[k] == 0.0:
                # On the edge the likelihood falls by its slope, too: the interval knows how fast.
                shrink[k] = min(1.0, told[k, 2] / CUTOFF / error)
    told[:, 0] = shrink * spread
    return V * np.outer(shrink, shrink), told


def _describe(
    fit: Estimate, profile: ShareProfile, top: Peak, errors: bool, intervals: bool
) -> Estimate:
    """Add the shares that were learned to a fit, and what is not known about them."""
    table = profile.table
    learned, count = table.asked.learned, top.epsilon.size
    loss = replace(Loss.known(table.shares(top.epsilon), table.asked.group), learned=learned)
    fit = replace(fit, parameters=None if fit.parameters is None else fit.parameters + count)
    if singular(top.covariance):
        text = "The share of lost values was looked for at a few places only."
        fit = replace(fit, notes=(*fit.notes, Note(Status.ON_DOMAIN_EDGE, text)))
    if not errors or singular(top.covariance):
        return replace(fit, loss=loss)
    at = profile.slopes(top)
    V, told = _uncertain_shares(profile, top, at, intervals)
    found = np.full((4, learned.size), np.nan)
    for k, columns in enumerate(table.asked.to_learn):
        found[:, columns] = told[k][:, None]
    error, lower, upper, p_value = found
    loss = replace(loss, standard_error=error, lower=lower, upper=upper, p_value=p_value)
    uncertainty = fit.uncertainty
    if uncertainty is not None and uncertainty.parameters is not None:
        follow = at.follow * table.plain.overview.units[:, None]
        total = uncertainty.parameters + follow @ V @ follow.T
        uncertainty = StandardErrors.from_parameters(fit.gaussian, total, uncertainty.missing)
    return replace(fit, loss=loss, uncertainty=uncertainty)
