"""Profile likelihoods: the best that can be had with one number held fixed.

For a function g of mean and covariance, the profile at c is the largest log-likelihood among parameters
with g = c. An interval is where it is less than some amount below the top. It follows the likelihood
where that is lopsided, flat or without end, which a standard error cannot.

Coordinates are (a, B) of N(μ + L a, L exp(B) Lᵀ) around the estimate N(μ, L Lᵀ): every step is a
covariance, and the likelihood of a variance is nearly a parabola in its logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.parallel import single_blas_thread
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.charts import Chart, Curvature, score_of
from halfseen.solvers.full_information.expectation import Parameters, Sampling, at_random
from halfseen.solvers.full_information.information import can_inform, information
from halfseen.solvers.full_information.m_step import (
    SMALLEST_EIGENVALUE,
    KnownCorrelation,
    MStep,
    correlation_of,
    singular,
)
from halfseen.solvers.full_information.parameter_options import m_step_for
from halfseen.solvers.full_information.problem import Overview
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.inference.fitted_table import read_source
from halfseen.solvers.inference.intervals import FisherOf, Target
from halfseen.solvers.structures.learned import structure_of
from halfseen.theta import triangle, unpack

if TYPE_CHECKING:
    from halfseen.results import Fit

Floats = NDArray[np.float64]

# Points for each row that is sampled: between these, as many as keep draws of a question below that. All
# places of a profile have the same points, whose errors go together: more rows need fewer of them.
POINTS, MOST_DRAWS = (32, 128), 2**13
# What a draw costs where a set is known by its probabilities, in draws from intervals (measured).
DRAW_BY_CHANCE = 5
# A place on a profile is found when no more than this is left to be gained in log-likelihood, and g is
# this close to c, in standard errors. What is left is added to the value, which is then right to a small
# share of it.
GAIN_LEFT, CLOSE = 1e-3, 1e-3
# The end of an interval is found when the root of twice the fall is this close to what was asked for:
# the slope of the profile, which is known, gives the rest.
CLOSE_ENOUGH = 0.02
# What may be left where steps end for another reason; beyond, the profile is lost.
MOST_LEFT = 0.05
# Steps to one place; shorter steps that are tried.
MOST_STEPS, MOST_SHORTER, MOST_HALVINGS = 40, 8, 40
# One step changes no variance by more than this factor, and no mean by more than so many deviations.
LARGEST_STEP = np.log(4.0)
# Places on the way to an end; beyond so many times the distance of the first, there is none. Where it is
# known to this share, it is found.
MOST_PLACES, FARTHEST, NARROW = 30, 2.0**12, 1e-6
# A target that stays behind by this share of its distance cannot be moved so far.
UNREACHED = 0.1
# Steps whose curvature is remembered.
MEMORY = 20
# A step counts if it brings this share of what it promises, up to rounding in so many digits of the
# log-likelihood. (Scores of sampled rows promise what is not there: a step that leads down, however
# little, would be followed by as many as are allowed.)
PROMISED, ROUNDING = 1e-4, 1e-13


@dataclass(frozen=True)
class Coordinates:
    """Free parameters as one vector, zero at the estimate.

    Attributes
    ----------
    mean, covariance, factor : arrays
        The estimate N(μ, L Lᵀ).
    mean_free : bool
    entries : pair of integer arrays
        The entries of B, on and below its diagonal, that are free.
    scales : bool
        Whether it is the scales of the columns that are free: Σ = diag(exp b) L Lᵀ diag(exp b).
    """

    mean: Floats
    covariance: Floats
    factor: Floats
    mean_free: bool
    entries: tuple[NDArray[np.intp], NDArray[np.intp]]
    scales: bool = False

    @classmethod
    def of(cls, m_step: MStep, mean: Floats, covariance: Floats) -> Coordinates:
        """Choose those in which a structure is free."""
        i, j = triangle(mean.size)
        kept = m_step.structure.basis(covariance).any(axis=1)
        return cls(
            mean,
            covariance,
            np.asarray(np.linalg.cholesky(covariance), dtype=np.float64),
            m_step.mean is None,
            (i[kept], j[kept]),
            isinstance(m_step.structure, KnownCorrelation),
        )

    @property
    def means(self) -> int:
        """How many of the first coordinates are of the mean."""
        return self.mean.size if self.mean_free else 0

    def place(self, x: Floats) -> tuple[Floats, Floats]:
        """Return mean and covariance at some coordinates."""
        mean = self.mean + self.factor @ x[: self.means] if self.mean_free else self.mean
        b = x[self.means :]
        if self.scales:
            return mean, self.covariance * np.exp(b[:, None] + b)
        values, vectors = self._spectrum(b)
        root = self.factor @ (vectors * np.exp(0.5 * values))
        return mean, root @ root.T

    def pull(self, x: Floats, of_mean: Floats, of_covariance: Floats) -> Floats:
        """Return derivatives in the coordinates from those in mean and covariance.

        The derivative of exp(B), with B = U diag(λ) Uᵀ, multiplies entries of Uᵀ dB U by the divided
        differences of exp at the λ (Daleckii and Krein).
        """
        first = self.factor.T @ of_mean if self.mean_free else np.empty(0)
        b = x[self.means :]
        if self.scales:
            grown = self.covariance * np.exp(b[:, None] + b)
            return np.concatenate([first, 2.0 * (of_covariance * grown).sum(axis=1)])
        values, U = self._spectrum(b)
        half = 0.5 * (values[:, None] - values)
        small = np.abs(half) < 1e-4
        quotient = np.where(
            small, 1.0 + half * half / 6.0, np.sinh(half) / np.where(small, 1.0, half)
        )
        divided = np.exp(0.5 * (values[:, None] + values)) * quotient
        inner = U.T @ (self.factor.T @ of_covariance @ self.factor) @ U
        of_B = U @ (divided * inner) @ U.T
        # An entry off the diagonal stands for two.
        of_B = 2.0 * of_B - np.diag(np.diag(of_B))
        return np.concatenate([first, of_B[self.entries]])

    def shortened(self, step: Floats) -> Floats:
        """Return a step, no longer than one may be."""
        a, b = step[: self.means], step[self.means :]
        largest = np.abs(b).max(initial=0.0) if self.scales else np.abs(self._spectrum(b)[0]).max()
        far = max(float(np.abs(a).max(initial=0.0)), float(largest))
        return step if far <= LARGEST_STEP else step * (LARGEST_STEP / far)

    def inverse_information(self, V: Floats) -> Floats:
        """Return the covariance of the coordinates from that of (μ, Σ_ij for i >= j)."""
        d = self.mean.size
        L = self.factor
        rows = []
        for column in np.eye(len(V)):
            of_mean, change = unpack(column, d)
            a = np.linalg.solve(L, of_mean) if self.mean_free else np.empty(0)
            if self.scales:
                rows.append(np.concatenate([a, 0.5 * np.diag(change) / np.diag(self.covariance)]))
                continue
            inner = np.linalg.solve(L, np.linalg.solve(L, change).T)
            rows.append(np.concatenate([a, inner[self.entries]]))
        T = np.array(rows)
        return np.asarray(T.T @ V @ T)

    def _spectrum(self, b: Floats) -> tuple[Floats, Floats]:
        d = self.mean.size
        B = np.zeros((d, d))
        B[self.entries] = b
        values, vectors = np.linalg.eigh(B)  # which reads the lower triangle
        return values, vectors


class NotFollowed(Exception):
    """A profile is lost: steps do not come to a top, as where the covariance is all but singular."""


class Place(NamedTuple):
    """A place on a profile.

    Attributes
    ----------
    x : array
        Coordinates.
    at : float
        What the target is there.
    value : float
        The profile: the largest log-likelihood.
    slope : float
        Its derivative.
    lost : bool
        Whether steps ended before they came to a top.
    """

    x: Floats
    at: float
    value: float
    slope: float
    lost: bool = False


@dataclass
class Question:
    """The log-likelihood at some coordinates, and the target there, with their derivatives."""

    x: Floats
    value: float
    score: Floats
    target: float
    normal: Floats


@dataclass(eq=False)
class Surface:
    """The log-likelihood around an estimate, as a function of coordinates.

    Attributes
    ----------
    rows : HeldRows
    coordinates : Coordinates
    inverse : array of shape (q, q)
        The inverse of the information at the estimate.
    sampling : Sampling
    m_step : MStep
    lower_tops : sequence of Gaussians
        At other tops of the likelihood that the fit came across.
    questions : int
        How often all rows were asked.
    """

    rows: HeldRows
    coordinates: Coordinates
    inverse: Floats
    sampling: Sampling
    m_step: MStep
    lower_tops: Sequence[Gaussian] = ()
    questions: int = 0
    _allowed: float = np.inf

    @classmethod
    def of(cls, fit: Fit) -> Surface:
        """Read the table that was fitted."""
        why = profile_refusal(fit)
        if why is not None:
            raise InputError(f"a profile likelihood cannot be had: {why}.")
        assert fit.source is not None
        assert fit.uncertainty is not None
        problem = read_source(fit, None)
        m_step = m_step_for(problem.overview, **fit.source.options)[0]
        with single_blas_thread():
            at = problem.from_units(fit.gaussian.mean, fit.gaussian.covariance)
            coordinates = Coordinates.of(m_step, *at)
            units = problem.overview.units
            inverse = coordinates.inverse_information(
                np.asarray(fit.uncertainty.parameters) / np.outer(units, units)
            )
        rows = HeldRows(problem, fit.source.n_jobs).with_degrees(fit.degrees)
        tops = fit.history.get("other_tops", ())
        return cls(rows, coordinates, inverse, _sampling(rows, at), m_step, tops)

    @cached_property
    def others(self) -> list[Surface]:
        """The likelihood around the other tops, as far as it has a curvature there."""
        found = []
        n, d = self.overview.shape
        for top in self.lower_tops if can_inform(self.m_step, d, self.rows.degrees) else ():
            with single_blas_thread():
                at = self.overview.from_units(top.mean, top.covariance)
                if singular(at[1]):
                    continue
                known = information(self.rows, Chart(self.m_step, *at, n), 0)
                coordinates = Coordinates.of(self.m_step, *at)
                inverse = coordinates.inverse_information(known.covariance())
                sampling = _sampling(self.rows, at)
            other = Surface(self.rows, coordinates, inverse, sampling, self.m_step)
            if other._summit is not None:
                found.append(other)
        return found

    @property
    def top(self) -> tuple[Floats, float]:
        """Coordinates and log-likelihood of the top.

        Where rows are sampled it is that of these points, next to the estimate.
        """
        if self._summit is None:
            raise NotFollowed
        return self._summit.x, self._summit.value

    @cached_property
    def _summit(self) -> Place | None:
        """The top; None where there is none, which is looked for once."""
        try:
            found = self.peak(None, 0.0, np.zeros(len(self.inverse)), [])
        except NotFollowed:
            return None
        return None if found.lost else found

    def centre(self, target: Target) -> float:
        """Return what a target is at the top."""
        return target.value(*self.coordinates.place(self.top[0]))

    def allow(self, questions: int) -> None:
        """Give up with ``NotFollowed`` after so many questions more."""
        self._allowed = self.questions + questions

    def fall(self, place: Place) -> float:
        """Return twice the fall of a profile from the top to a place; none where that is likelier."""
        return max(2.0 * (self.top[1] - place.value), 0.0)

    def moved(self, target: Target, move: float) -> Place:
        """Return the place on a profile whose target has moved so far from the top."""
        x = self.top[0]
        centre, normal = self.look(x, target)
        guess = x + self.coordinates.shortened(move * self.along(normal))
        place = self.peak(target, centre + move, guess, [])
        if place.lost:
            raise NotFollowed
        return place

    def highest(self, target: Target, place: Place) -> float:
        """Return the profile at a place: around another top it may be higher."""
        values = [place.value]
        for other in self.others:
            try:
                values.append(other.moved(target, place.at - other.centre(target)).value)
            except NotFollowed:
                continue
        return max(values)

    def along(self, normal: Floats) -> Floats:
        """Return the direction of a profile at the top, by one unit of a target with this slope."""
        across = self.inverse @ normal
        steep = float(normal @ across)
        if not (np.isfinite(steep) and steep > 0.0):
            # A function that does not move with the parameters, or is not smooth.
            raise NotFollowed
        return np.asarray(across / steep)

    @property
    def overview(self) -> Overview:
        """What there is to know of the table apart from its rows."""
        return self.rows.overview

    @property
    def cells(self) -> int:
        """How many cells, and draws of them, a question takes: a microsecond each, or less."""
        n, d = self.overview.shape
        by_chance = self.rows.problem.holes.sets.node.size > 0
        draws = self.sampling.points * self.overview.sampled
        return n * d + draws * (DRAW_BY_CHANCE if by_chance else 1)

    @cached_property
    def told(self) -> Floats:
        """How many cells of each column are seen, or confined by a rule."""
        free = at_random(self.rows.problem.holes)
        return np.asarray((~free).sum(axis=0), dtype=np.float64)

    def peak(
        self, target: Target | None, c: float, x: Floats, pairs: list[tuple[Floats, Floats]]
    ) -> Place:
        """Climb to the likeliest place by quasi-Newton steps, with a target held at c if there is one.

        ``pairs`` are steps, and the fall of scores along them: what is known of the curvature, from
        places nearby; more are added.
        """
        with single_blas_thread():
            here = self.ask(x, target)
            for _ in range(MOST_HALVINGS):
                if np.isfinite(here.value) or target is None:
                    break
                # A guess beyond the edge of the domain: half way back.
                x = 0.5 * (x + self.top[0])
                here = self.ask(x, target)
            if not np.isfinite(here.value):
                raise NotFollowed
            for _ in range(MOST_STEPS):
                step, multiplier, left = self._aim(here, c, pairs)
                if self.questions > self._allowed:
                    raise NotFollowed
                if left <= GAIN_LEFT and abs(here.target - c) <= CLOSE * self._error(here):
                    break
                there = self._advance(here, step, multiplier, c, target)
                if there is None:
                    if not pairs:
                        break
                    pairs.clear()
                    continue
                moved = there.x - here.x
                fall = (here.score - multiplier * here.normal) - (
                    there.score - multiplier * there.normal
                )
                if moved @ fall > 1e-6 * float(moved @ np.linalg.solve(self.inverse, moved)):
                    pairs.append((moved, fall))
                    del pairs[:-MEMORY]
                here = there
            _, multiplier, left = self._aim(here, c, pairs)
        lost = not left <= MOST_LEFT
        # Held at its own value, not at c: they differ by next to nothing.
        return Place(here.x, here.target, here.value + (0.0 if lost else left), multiplier, lost)

    def _error(self, here: Question) -> float:
        """Return the standard error of the target, as far as the information at the estimate says."""
        return float(np.sqrt(here.normal @ self.inverse @ here.normal)) or 1.0

    def ask(self, x: Floats, target: Target | None) -> Question:
        """Ask all rows about some coordinates; outside of the domain there is no likelihood."""
        self.questions += 1
        mean, covariance = self.coordinates.place(x)
        if not _inside(covariance):
            nothing = np.zeros(x.size)
            return Question(x, -np.inf, nothing, np.nan, nothing)
        moments, value = self.rows.expect(mean, covariance, self.sampling)
        n, P = self.overview.shape[0], np.linalg.inv(covariance)
        score = self.coordinates.pull(x, *score_of(moments, mean, covariance, P, n))
        if target is None:
            return Question(x, value, score, 0.0, np.zeros(x.size))
        at, normal = self.look(x, target)
        # A function need not be known everywhere.
        known = np.isfinite(at) and np.isfinite(normal).all()
        return Question(x, value if known else -np.inf, score, at, normal)

    def look(self, x: Floats, target: Target) -> tuple[float, Floats]:
        """Return a target at some coordinates, and its slope in them; no row is asked."""
        place = self.coordinates.place(x)
        return target.value(*place), self.coordinates.pull(x, *target.slope(*place))

    def _aim(
        self, here: Question, c: float, pairs: list[tuple[Floats, Floats]]
    ) -> tuple[Floats, float, float]:
        """Return the step to the likeliest place with the target at c, by a quadratic approximation.

        With it come the multiplier, which is the slope of the profile, and the gain in log-likelihood
        that is left along places where the target is what it is here.
        """
        curvature = Curvature(self.inverse, pairs)
        asked = curvature @ here.score
        across = curvature @ here.normal
        steep = float(here.normal @ across)
        if not steep > 0.0:
            return asked, 0.0, max(0.5 * float(here.score @ asked), 0.0)
        along = float(here.normal @ asked) / steep
        left = 0.5 * (float(here.score @ asked) - along * along * steep)
        multiplier = along + (here.target - c) / steep
        return asked - multiplier * across, multiplier, max(left, 0.0)

    def _advance(
        self, here: Question, step: Floats, multiplier: float, c: float, target: Target | None
    ) -> Question | None:
        """Take a step, or a shorter one, that makes it better; None where none does.

        Better: likelier, less the distance of the target from c times a price above its own.
        """
        price = 2.0 * abs(multiplier) + 1.0 / self._error(here)
        worth = here.value - price * abs(here.target - c)
        whole, step = step, self.coordinates.shortened(step)
        share = 1.0
        promise = float(here.score @ whole) + price * abs(here.target - c)
        length = float(np.linalg.norm(whole))
        promise *= float(np.linalg.norm(step)) / length if length > 0.0 else 1.0
        for _ in range(MOST_SHORTER):
            there = self.ask(here.x + share * step, target)
            gained = there.value - price * abs(there.target - c) - worth
            if gained >= PROMISED * share * max(promise, 0.0) - ROUNDING * abs(worth):
                return there
            share *= 0.3
        return None


def _sampling(rows: HeldRows, at: tuple[Floats, Floats]) -> Sampling:
    """Return how rows are sampled around a place."""
    sampled = rows.overview.sampled
    points = int(np.clip(MOST_DRAWS // max(sampled, 1), *POINTS))
    order = Parameters.of(*at) if sampled else None
    return Sampling(points, 0, 0, Purpose.LIKELIHOOD, order)


def _inside(covariance: Floats) -> bool:
    """Whether a covariance is in the domain of ``full``: its correlations are not singular."""
    variance = np.diag(covariance)
    if not (np.isfinite(covariance).all() and variance.min() > 0.0):
        return False
    return bool(np.linalg.eigvalsh(correlation_of(covariance))[0] > SMALLEST_EIGENVALUE)


def profile_refusal(fit: Fit) -> str | None:
    """Say why there is no profile of a fit; None where there is one."""
    if fit.method != "full":
        return f'it needs a fit by method="full"; this is {fit.method!r}'
    if fit.source is None or fit.source.X is None:
        return "the fit does not hold its table (a saved fit never does)"
    if fit.uncertainty is None:
        return "the fit has no standard errors"
    if fit.parameters == 0:
        return "every parameter is known"
    if structure_of(fit.history, fit.names) is not None:
        return "the covariance has a structure, whose parameters would have to move together"
    if fit.loss is not None and fit.loss.learned.any():
        return "the share of lost values was learned, and a profile would hold it fixed"
    if fit.uncertainty.parameters is None:
        return f"with {len(fit.names)} columns only pairs of columns are looked at"
    if fit.tails is not None and fit.tails.learned and not np.isinf(fit.degrees):
        return "its degrees of freedom were learned, and would have to move with everything else"
    return None


def find_end(surface: Surface, target: Target, side: int, cutoff: float, first: Place) -> float:
    """Find where twice the fall of a profile comes to a cutoff, below (−1) or above (+1) the top.

    Returns ±infinity where it never does. The root of twice the fall is nearly linear in the target:
    Newton's steps on it, with the slope that the multiplier gives.

    Parameters
    ----------
    surface : Surface
    target : Target
    side : {-1, 1}
    cutoff : float
    first : Place
        A place on that side, about as far from the top.
    """
    x, _ = surface.top
    centre = surface.centre(target)
    wanted = float(np.sqrt(cutoff))
    inside, outside, farthest = 0.0, np.inf, FARTHEST * abs(first.at - centre)
    pairs: list[tuple[Floats, Floats]] = []
    place = first
    for _ in range(MOST_PLACES):
        reached = side * (place.at - centre)
        root = float(np.sqrt(surface.fall(place)))
        # d root/d distance
        steep = -side * place.slope / root if root > 0.0 else 0.0
        if abs(root - wanted) <= CLOSE_ENOUGH * wanted and steep > 0.0:
            return place.at + side * (wanted - root) / steep
        if root < wanted:
            inside = max(inside, reached)
        else:
            outside = min(outside, reached)
        distance = _next_distance(reached, root, steep, wanted, inside, outside)
        if outside - inside <= NARROW * reached:
            break
        # Along the line from the top through the last place.
        guess = x + (distance / reached) * (place.x - x) if reached > 0.0 else x
        guess = place.x + surface.coordinates.shortened(guess - place.x)
        place = surface.peak(target, centre + side * distance, guess, pairs)
        if distance > farthest:
            return float(side * np.inf)
        if distance - side * (place.at - centre) > UNREACHED * distance and root < wanted:
            # The edge of the domain: of a correlation that is ±1, where it never fell so far.
            if isinstance(target, FisherOf):
                return float(side * np.inf)
            raise NotFollowed
        if place.lost:
            raise NotFollowed
    return centre + side * (inside if np.isinf(outside) else 0.5 * (inside + outside))


def _next_distance(
    reached: float, root: float, steep: float, wanted: float, inside: float, outside: float
) -> float:
    """Return where to look next: Newton's step, inside of what is known."""
    proposal = reached + (wanted - root) / steep if steep > 0.0 else np.inf
    if np.isinf(outside):
        return float(np.clip(proposal, 1.05 * reached, 2.0 * reached))
    width = outside - inside
    return float(np.clip(proposal, inside + 0.05 * width, outside - 0.05 * width))
