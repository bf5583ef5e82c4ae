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
from halfseen.solvers.regression.entries import Entries
from halfseen.solvers.regression.outcomes import Outcomes
from halfseen.solvers.regression.places import Place
from halfseen.solvers.regression.step import RegressionStep

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Newton's steps, halvings of one, the share of the promised gain that a step must bring, and the gain in
# log-likelihood that may be left: the engine goes on from here, and its own end is stricter.
MOST_STEPS, MOST_HALVINGS, PROMISED, ENOUGH = 50, 40, 1e-4, 1e-9
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
            seen = sum(len(side.Z) for side in self.sides if side.is_seen)
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
    z = side.upper.at(own, predictor)
    moves = np.hstack([-side.Z, side.upper.extra])
    slope -= moves.T @ z
    fall += moves.T @ moves
    return float(-0.5 * (z @ z) - z.size * HALF_LOG_TWO_PI)


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
    slope += moves.T @ (q - p)
    fall += moves.T @ ((bq - ap + (q - p) ** 2)[:, None] * moves)
    if side.lower is not None and side.upper is not None:
        apart = side.upper.extra - side.lower.extra
        slope[k:] += apart.T @ q
        across = moves.T @ ((bq + q * (q - p))[:, None] * apart)
        fall[:, k:] += across
        fall[k:] += across.T
        fall[k:, k:] += apart.T @ ((bq + q * q)[:, None] * apart)
    return float(mass.sum())


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


def starts_alone(problem: Problem, step: RegressionStep, outcomes: Outcomes) -> Alone | None:
    """Bring every outcome to its own top.

    None where a set has several pieces, where inequalities bind cells together, or where an outcome
    has no top of its own.
    """
    if problem.holes.inequalities is not None or not problem.holes.is_convex:
        return None
    terms, errors = step.parts
    q, k = terms.offset.shape
    given = np.full(q, np.nan)
    if isinstance(errors, Entries):
        given = np.where(np.diag(errors.free), np.nan, np.diag(errors.given))
    W = np.hstack([np.ones((len(problem.Y), 1)), problem.Y[:, q:]])
    moves = np.eye(q * k) if terms.basis is None else terms.basis
    coefficients, variances, cuts = terms.offset.copy(), np.ones(q), {}
    first = outcomes.first_cuts()
    for j, (name, own) in enumerate(zip(outcomes.names, moves.reshape(q, k, -1), strict=True)):
        own = _columns(own)
        Z, offset = W @ own, W @ terms.offset[j]
        if name in first:
            one = _graded(outcomes.codes[:, j], Z, offset, first[name])
        else:
            one = _measured(problem, j, Z, offset, given[j])
        top = one.climb()
        if top is None:
            return None
        variances[j] = top.own[0] ** -2.0 if one.scaled else np.nan_to_num(given[j], nan=1.0)
        coefficients[j] += math.sqrt(variances[j]) * (own @ top.slopes)
        if name in first:
            cuts[name] = np.concatenate([[0.0], top.own])
    return Alone(Place(coefficients, np.diag(variances)), cuts)


def _columns(moves: Floats) -> Floats:
    """Return an orthonormal basis of what the coefficients of one equation can be."""
    moves = moves[:, moves.any(axis=0)]
    if np.allclose(moves.T @ moves, np.eye(moves.shape[1])):
        return moves
    # Coefficients that are equal to others are moved by all of them.
    left, sizes, _ = np.linalg.svd(moves, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-9 * sizes.max(initial=0.0)])


def _one_outcome(
    Z: Floats, seen: Mask, lower: Floats, upper: Floats, ends: EndsOf, own: Floats, scaled: bool
) -> OneOutcome:
    """Sort the rows by what is known of them; those of which nothing is known are left out."""
    low, high = np.isfinite(lower) & ~seen, np.isfinite(upper) & ~seen
    sides = []
    if seen.any():
        values = ends(lower[seen], seen)
        sides.append(Side(Z[seen], values, values))
    for below, above in ((True, False), (False, True), (True, True)):
        rows = ~seen & (low == below) & (high == above)
        if rows.any():
            first = ends(lower[rows], rows) if below else None
            sides.append(Side(Z[rows], first, ends(upper[rows], rows) if above else None))
    return OneOutcome(sides, Top(np.zeros(Z.shape[1]), own), scaled)


def _measured(problem: Problem, j: int, Z: Floats, offset: Floats, variance: float) -> OneOutcome:
    """Collect what is known of an outcome that is a measurement, or binary."""
    index, sets = problem.holes.index[:, j], problem.holes.sets
    seen = index == SEEN
    lower, upper = (np.where(seen, problem.Y[:, j], 0.0) for _ in range(2))
    piece = sets.start[index[~seen]]
    lower[~seen], upper[~seen] = sets.lower[piece], sets.upper[piece]
    lower, upper = lower - offset, upper - offset
    if math.isnan(variance):
        return _one_outcome(Z, seen, lower, upper, _times_tau, np.ones(1), True)
    known = 1.0 / math.sqrt(variance)
    return _one_outcome(Z, seen, known * lower, known * upper, _as_they_are, np.empty(0), False)


def _graded(codes: Floats, Z: Floats, offset: Floats, cuts: Floats) -> OneOutcome:
    """Collect what is known of an ordered outcome, from the numbers of its categories."""
    lower = np.where(codes > 0, codes - 1.0, -np.inf)
    upper = np.where(codes < cuts.size, codes, np.inf)
    unknown = np.isnan(codes)
    lower[unknown], upper[unknown] = -np.inf, np.inf

    def ends(numbers: Floats, rows: Mask) -> Ends:
        # The first cut point is 0.
        return Ends(-offset[rows], np.eye(cuts.size)[numbers.astype(int), 1:])

    nowhere = np.zeros(codes.size, dtype=bool)
    return _one_outcome(Z, nowhere, lower, upper, ends, cuts[1:], False)


def _times_tau(values: Floats, rows: Mask) -> Ends:
    return Ends(np.zeros(values.size), values[:, None])


def _as_they_are(values: Floats, rows: Mask) -> Ends:
    return Ends(values, np.empty((values.size, 0)))
