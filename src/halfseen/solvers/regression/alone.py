"""Each outcome by itself: where a regression starts, and for one outcome where it ends.

With residuals of other outcomes left aside, what a row says of one outcome y = o + z β + e is

    log τ + log φ(τ (y − o) − z γ)                                   where y is seen,
    log [Φ(τ (u − o) − z γ) − Φ(τ (l − o) − z γ)]                    where it lies between l and u,

in Olsen's (1978) parameters γ = β/σ and τ = 1/σ, and for an ordered outcome Φ(c' − z γ) − Φ(c − z γ)
in γ and the cut points c, τ being 1. Normal distributions are log-concave, so this is concave in all of
them (Prékopa 1973): Newton's method, with steps that are halved while they lead down, finds its only
top, in some eight looks at the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from halfseen.missingness.holes import SEEN
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.regression.entries import Entries
from halfseen.solvers.regression.model import Setup
from halfseen.solvers.regression.places import Place, Terms

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Newton's steps, halvings of one, the share of the promised gain that a step must bring, and the gain in
# log-likelihood that may be left: the engine goes on from here, and its own end is stricter.
MOST_STEPS, MOST_HALVINGS, PROMISED, ENOUGH = 50, 40, 1e-4, 1e-9
# Rows that are looked at where they are kept elsewhere, or where several outcomes go on together.
START_ROWS = 4000
# Log-likelihoods are compared to so many of their digits.
ROUNDING = 1e-14


class Ends(NamedTuple):
    """An end of the cells of some rows: ``constant + own · extra − z γ``, in standard deviations.

    ``own`` are τ, where it is learned, or the cut points of an ordered outcome.
    """

    constant: Floats
    extra: Floats

    def at(self, own: Floats, predictor: Floats) -> Floats:
        """Return the ends for some parameters."""
        return np.asarray(self.constant + self.extra @ own - predictor)


# From numbers that stand for ends, and the rows that they are of.
EndsOf = Callable[[Floats, Mask], Ends]


class Side(NamedTuple):
    """Rows that have the same ends: values, or cells with a lower end, an upper one, or both."""

    Z: Floats
    counts: Floats
    lower: Ends | None
    upper: Ends | None

    @property
    def is_seen(self) -> bool:
        """Whether values are seen: both ends are the same."""
        return self.lower is self.upper


class Top(NamedTuple):
    """Parameters of one outcome: γ, and τ or cut points."""

    slopes: Floats
    own: Floats


@dataclass(frozen=True, eq=False)
class OneOutcome:
    """What there is to know of one outcome.

    Attributes
    ----------
    sides : list of Side
    first : Top
        Where to start.
    scaled : bool
        Whether τ is learned, which is then the one number in ``own``.
    """

    sides: list[Side]
    first: Top
    scaled: bool

    def allowed(self, own: Floats) -> bool:
        """Whether τ is positive, and cut points are in order, the first being 0."""
        if self.scaled:
            return bool(own[0] > 0.0)
        return bool((np.diff(own, prepend=0.0) > 0.0).all())

    def look(self, at: Top) -> tuple[float, Floats, Floats]:
        """Return the log-likelihood, its gradient and minus its Hessian."""
        k, m = at.slopes.size, at.own.size
        value, slope, fall = 0.0, np.zeros(k + m), np.zeros((k + m, k + m))
        for side in self.sides:
            predictor = side.Z @ at.slopes
            say = _values if side.is_seen else _intervals
            value += say(side, at.own, predictor, slope, fall)
        if self.scaled:
            seen = sum(float(side.counts.sum()) for side in self.sides if side.is_seen)
            value += seen * math.log(at.own[0])
            slope[-1] += seen / at.own[0]
            fall[-1, -1] += seen / at.own[0] ** 2
        return value, slope, fall

    def climb(self) -> Top | None:
        """Climb to the top; None where there is none to be found."""
        # Where offsets are out of reach there is no number to go on from.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._climb()

    def _climb(self) -> Top | None:
        at, size = self.first, self.first.slopes.size
        here = self.look(at)
        for _ in range(MOST_STEPS):
            value, slope, fall = here
            try:
                step = np.linalg.solve(fall, slope)
            except np.linalg.LinAlgError:
                return None
            promise = float(slope @ step)
            if not 0.0 <= promise < np.inf:
                return None
            if promise < ENOUGH:
                return at
            for halving in range(MOST_HALVINGS):
                share = 0.5**halving
                there = Top(at.slopes + share * step[:size], at.own + share * step[size:])
                if self.allowed(there.own):
                    here = self.look(there)
                    if here[0] >= value + PROMISED * share * promise - ROUNDING * abs(value):
                        break
            else:
                return None
            at = there
        return None


def _values(side: Side, own: Floats, predictor: Floats, slope: Floats, fall: Floats) -> float:
    """Add what values say: −½ z² each, apart from log τ."""
    assert side.upper is not None
    z, counts = side.upper.at(own, predictor), side.counts
    moves = np.hstack([-side.Z, side.upper.extra])
    slope -= moves.T @ (counts * z)
    fall += (counts[:, None] * moves).T @ moves
    return float(-counts @ (0.5 * z * z + HALF_LOG_TWO_PI))


def _intervals(side: Side, own: Floats, predictor: Floats, slope: Floats, fall: Floats) -> float:
    """Add what intervals say: log m with m = Φ(b) − Φ(a) each.

    With p = φ(a)/m and q = φ(b)/m the slopes in a and b are −p and q. Both ends move alike with γ, along
    r, and b moves by δ more: second derivatives are −(b q − a p) − (q − p)² along r, −b q − q (q − p)
    along r and δ, and −b q − q² along δ, none of which loses digits where a and b are close.
    """
    n, k = side.Z.shape
    nowhere = np.full(n, np.inf)
    a = -nowhere if side.lower is None else side.lower.at(own, predictor)
    b = nowhere if side.upper is None else side.upper.at(own, predictor)
    mass = log_mass(a, b)
    if not np.isfinite(mass).all():
        return -math.inf
    p, q = (np.exp(-0.5 * end * end - HALF_LOG_TWO_PI - mass) for end in (a, b))
    ap = np.zeros(n) if side.lower is None else a * p
    bq = np.zeros(n) if side.upper is None else b * q
    one = side.upper if side.lower is None else side.lower
    assert one is not None
    moves = np.hstack([-side.Z, one.extra])
    counted = side.counts[:, None] * moves
    slope += counted.T @ (q - p)
    fall += counted.T @ ((bq - ap + (q - p) ** 2)[:, None] * moves)
    if side.lower is not None and side.upper is not None:
        apart = side.upper.extra - side.lower.extra
        slope[k:] += apart.T @ (side.counts * q)
        across = counted.T @ ((bq + q * (q - p))[:, None] * apart)
        fall[:, k:] += across
        fall[k:] += across.T
        fall[k:, k:] += apart.T @ ((side.counts * (bq + q * q))[:, None] * apart)
    return float(side.counts @ mass)


def log_mass(a: Floats, b: Floats) -> Floats:
    """Return log[Φ(b) − Φ(a)], in the tail that keeps its digits."""
    turned = a + b > 0.0
    low, high = np.where(turned, -b, a), np.where(turned, -a, b)
    top = log_ndtr(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(top + np.log1p(-np.exp(log_ndtr(low) - top)))


class Alone(NamedTuple):
    """Every outcome at its own top: residuals have nothing to do with each other.

    Attributes
    ----------
    place : Place
    cuts : dict
        Cut points of ordered outcomes, the first of which is 0.
    """

    place: Place
    cuts: dict[str, Floats]


def starts_alone(setup: Setup, seed: int) -> Alone | None:
    """Bring every outcome to its own top: of all rows, or of some of them where that is but a start.

    None where a set has several pieces, where inequalities bind cells together, or where an outcome
    has no top of its own.
    """
    about, rows = setup.rows.overview, setup.rows
    if about.bound or not about.convex:
        return None
    if not isinstance(rows, HeldRows):
        return _alone(setup, rows.held(START_ROWS, seed).problem)
    if setup.step.outcomes > 1 and about.shape[0] > START_ROWS:
        found = _alone(setup, rows.held(START_ROWS, seed).problem)
        if found is not None:
            return found
    return _alone(setup, rows.problem)


def _alone(setup: Setup, problem: Problem) -> Alone | None:
    """Bring every outcome to its own top, of these rows."""
    about = setup.rows.overview
    terms, errors = setup.step.parts
    q, k = terms.offset.shape
    given = np.full(q, np.nan)
    if isinstance(errors, Entries):
        given = np.where(np.diag(errors.free), np.nan, np.diag(errors.given))
    W = np.hstack([np.ones((len(problem.Y), 1)), problem.Y[:, q:]])
    moves = np.eye(q * k) if terms.basis is None else terms.basis
    coefficients, variances, cuts = terms.offset.copy(), np.ones(q), {}
    for j, (name, own) in enumerate(zip(about.names, moves.reshape(q, k, -1), strict=False)):
        own = _columns(own)
        first = setup.cuts.get(name)
        known = Known.of(problem, j, W @ own, W @ terms.offset[j])
        one = known.measured(given[j]) if first is None else known.graded(first)
        top = one.climb()
        if top is None:
            return None
        variances[j] = top.own[0] ** -2.0 if one.scaled else np.nan_to_num(given[j], nan=1.0)
        coefficients[j] += math.sqrt(variances[j]) * (own @ top.slopes)
        if first is not None:
            cuts[name] = np.concatenate([[0.0], top.own])
    return Alone(Place(coefficients, np.diag(variances)), cuts)


def graded_alone(
    problem: Problem, terms: Terms, place: Place, cuts: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return what rows of one ordered outcome say around some parameters, in closed form.

    Returns
    -------
    slope, fall : arrays
        The gradient and minus the Hessian of the log-likelihood in (γ, learned cut points).
    basis : array
        Derivatives of the coefficients in γ, orthonormal.
    """
    k = terms.offset.shape[1]
    W = np.hstack([np.ones((len(problem.Y), 1)), problem.Y[:, 1:]])
    own = _columns(np.eye(k) if terms.basis is None else terms.basis)
    one = Known.of(problem, 0, W @ own, W @ terms.offset[0]).graded(cuts)
    at = Top(own.T @ (place.coefficients[0] - terms.offset[0]), cuts[1:])
    _, slope, fall = one.look(at)
    return slope, fall, own


def _columns(moves: Floats) -> Floats:
    """Return an orthonormal basis of what the coefficients of one equation can be."""
    moves = moves[:, moves.any(axis=0)]
    if np.allclose(moves.T @ moves, np.eye(moves.shape[1])):
        return moves
    # Coefficients that are equal to others are moved by all of them.
    left, sizes, _ = np.linalg.svd(moves, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-9 * sizes.max(initial=0.0)])


class Known(NamedTuple):
    """What is known of one outcome: values, or the ends of cells, and what the rows count."""

    Z: Floats
    offset: Floats
    seen: Mask
    lower: Floats
    upper: Floats
    weights: Floats | None = None

    @classmethod
    def of(cls, problem: Problem, j: int, Z: Floats, offset: Floats) -> Known:
        """Collect it from the holes of a table."""
        index, sets = problem.holes.index[:, j], problem.holes.sets
        seen = index == SEEN
        lower, upper = (np.where(seen, problem.Y[:, j], 0.0) for _ in range(2))
        piece = sets.start[index[~seen]]
        lower[~seen], upper[~seen] = sets.lower[piece], sets.upper[piece]
        return cls(Z, offset, seen, lower, upper, problem.weights)

    def measured(self, variance: float) -> OneOutcome:
        """Take it for a measurement, or for a binary outcome, whose cut point is 0."""
        known = 1.0 if math.isnan(variance) else 1.0 / math.sqrt(variance)

        def ends(values: Floats, rows: Mask) -> Ends:
            values = known * (values - self.offset[rows])
            if math.isnan(variance):
                return Ends(np.zeros(values.size), values[:, None])
            return Ends(values, np.empty((values.size, 0)))

        own = np.ones(1) if math.isnan(variance) else np.empty(0)
        return self._sorted(ends, own, math.isnan(variance))

    def graded(self, cuts: Floats) -> OneOutcome:
        """Take it for an ordered outcome, whose cells lie between these cut points."""

        def ends(values: Floats, rows: Mask) -> Ends:
            # The first cut point is 0.
            own = np.eye(cuts.size)[np.searchsorted(cuts, values)]
            return Ends(-self.offset[rows], own[:, 1:])

        return self._sorted(ends, cuts[1:], False)

    def _sorted(self, ends: EndsOf, own: Floats, scaled: bool) -> OneOutcome:
        """Sort the rows by what is known of them; those of which nothing is known are left out."""
        low, high = np.isfinite(self.lower) & ~self.seen, np.isfinite(self.upper) & ~self.seen
        counts = np.ones(len(self.Z)) if self.weights is None else self.weights
        sides = []
        if self.seen.any():
            values = ends(self.lower[self.seen], self.seen)
            sides.append(Side(self.Z[self.seen], counts[self.seen], values, values))
        for below, above in ((True, False), (False, True), (True, True)):
            rows = ~self.seen & (low == below) & (high == above)
            if rows.any():
                first = ends(self.lower[rows], rows) if below else None
                last = ends(self.upper[rows], rows) if above else None
                sides.append(Side(self.Z[rows], counts[rows], first, last))
        return OneOutcome(sides, Top(np.zeros(self.Z.shape[1]), own), scaled)
