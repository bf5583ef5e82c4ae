"""What rows of a regression say by themselves, before any parameter: counts, and triangles.

Each is asked of the rows of one piece of a table at a time, as the engine has them, and added up: so it
is the same of a table in memory and of one that is kept elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from halfseen.data.triangles import triangle_of
from halfseen.missingness.holes import SEEN, Holes
from halfseen.solvers.full_information.expectation import at_random

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Tally(NamedTuple):
    """What is counted of outcomes.

    Attributes
    ----------
    together : array of shape (q, q)
        In how many rows something is said of both of two outcomes.
    squares : float
        Of covariates, added up.
    """

    together: Floats
    squares: float

    def __add__(self, other: Tally) -> Tally:  # type: ignore[override]
        return Tally(self.together + other.together, self.squares + other.squares)


def tally(Y: Floats, holes: Holes, q: int) -> Tally:
    """Count in some rows."""
    informed = (~at_random(holes)[:, :q]).astype(float)
    X = Y[:, q:]
    return Tally(informed.T @ informed, float((X * X).sum()))


class Triangles(NamedTuple):
    """Triangles of regressors over the rows that say something of an outcome, and that hold it."""

    rows: int
    known: Floats
    pinned: Floats

    def __add__(self, other: Triangles) -> Triangles:  # type: ignore[override]
        known, pinned = (triangle_of(*pair) for pair in zip(self[1:], other[1:], strict=True))
        return Triangles(self.rows + other.rows, known, pinned)


class Several(NamedTuple):
    """The triangles of some equations."""

    each: tuple[Triangles, ...]

    def __add__(self, other: Several) -> Several:  # type: ignore[override]
        return Several(tuple(a + b for a, b in zip(self.each, other.each, strict=True)))


class Triangle(NamedTuple):
    """The triangle of a matrix in pieces."""

    R: Floats

    def __add__(self, other: Triangle) -> Triangle:  # type: ignore[override]
        return Triangle(triangle_of(self.R, other.R))


class Equation(NamedTuple):
    """An equation, and how its regressors are made of a constant and the covariates.

    Attributes
    ----------
    outcome, outcomes : int
        Its place, and how many there are.
    T : array of shape (1 + p, k)
    cuts : array or None
        Of an ordered outcome the cut points, which the holes have: they take part as regressors.
    """

    outcome: int
    outcomes: int
    T: Floats
    cuts: Floats | None = None

    def take(self, terms: NDArray[np.intp]) -> Equation:
        """Return it with some of its regressors."""
        return self._replace(T=self.T[:, terms])

    def regressors(self, Y: Floats) -> Floats:
        """Return the regressors of some rows."""
        X = Y[:, self.outcomes :]
        return np.asarray(self.T[0] + X @ self.T[1:])


class Sides(NamedTuple):
    """Regressors, which rows hold a prediction where it is, and to which side the others let it go.

    A side is −1 or 1 for a half-line, and 0 for rows that say nothing.
    """

    W: Floats
    pinned: Mask
    sides: Floats

    @classmethod
    def of(cls, Y: Floats, holes: Holes, equation: Equation) -> Sides:
        """Look at an outcome in some rows."""
        blank = at_random(holes)[:, equation.outcome]
        held, W = Held.of(holes, blank, equation.outcome), equation.regressors(Y)
        if equation.cuts is not None:
            return _with_cuts(W, held.lower, held.single, equation.cuts)
        return cls(W, held.pinned, held.sides)

    @property
    def moving(self) -> NDArray[np.intp]:
        """Rows that let a prediction go to one side."""
        return np.flatnonzero(~self.pinned & (self.sides != 0.0))

    def moves(self, left: Floats) -> Floats:
        """Return how far such rows let a prediction go along some directions."""
        rows = self.moving
        return np.asarray(self.sides[rows, None] * (self.W[rows] @ left))


class Held(NamedTuple):
    """Which rows of a column hold a prediction, the sides of others, and lower ends of intervals."""

    pinned: Mask
    sides: Floats
    lower: Floats
    single: Mask

    @classmethod
    def of(cls, holes: Holes, blank: Mask, column: int) -> Held:
        """Look at the holes of a column; of blank cells nothing is known."""
        index, sets = holes.index[:, column], holes.sets
        n, seen = len(index), index == SEEN
        if not sets.lower.size:
            return cls(seen, np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool))
        own = np.maximum(index, 0)
        first, last = sets.start[own], sets.start[own + 1] - 1
        single = ~seen & ~blank & (last == first)
        place = np.minimum(first, sets.lower.size - 1)
        lower = sets.lower[place]
        below, above = single & np.isneginf(lower), single & np.isposinf(sets.upper[place])
        # Between two ends a prediction is held. On either side of something, or by chance, it is not.
        pinned = seen | (single & ~below & ~above)
        return cls(pinned, np.where(above, 1.0, 0.0) - np.where(below, 1.0, 0.0), lower, single)


def _with_cuts(W: Floats, lower: Floats, known: Mask, cuts: Floats) -> Sides:
    """Return regressors and cut points side by side, with a row for each end of a row's category.

    The first cut point is 0; wβ − c is to be positive at the lower end, and negative at the upper.
    """
    code = np.searchsorted(cuts, lower[known], side="right")
    rows, ends = [], []
    for side, cut in ((1.0, code - 1), (-1.0, code)):
        there = (cut >= 0) & (cut < cuts.size)
        of_cuts = np.zeros((int(there.sum()), cuts.size))
        of_cuts[np.arange(len(of_cuts)), cut[there]] = -1.0
        rows.append(np.hstack([W[known][there], of_cuts[:, 1:]]))
        ends.append(np.full(len(of_cuts), side))
    stacked = np.vstack(rows)
    return Sides(stacked, np.zeros(len(stacked), dtype=bool), np.concatenate(ends))


def triangles_of(
    Y: Floats, holes: Holes, equations: tuple[Equation, ...], most: int | None
) -> Several:
    """Return the triangles of equations over some rows, or over so many of each kind, evenly spread."""
    blank, out = at_random(holes), []
    for one in equations:
        known = ~blank[:, one.outcome]
        if one.cuts is None:
            pinned = _triangle(Y, Held.of(holes, ~known, one.outcome).pinned, one, most)
        else:
            # Nothing holds a prediction, nor the cut points, which take part.
            pinned = np.empty((0, one.T.shape[1] + one.cuts.size - 1))
        out.append(Triangles(int(known.sum()), _triangle(Y, known, one, most), pinned))
    return Several(tuple(out))


def _triangle(Y: Floats, mask: Mask, equation: Equation, most: int | None) -> Floats:
    rows = np.flatnonzero(mask)
    step = 1 if most is None else max(1, -(-len(rows) // most))
    return triangle_of(equation.regressors(Y[rows[::step]]))


class Worst(NamedTuple):
    """Moves that are the furthest on the wrong side, and how far."""

    along: Floats
    moves: Floats
    most: int

    @classmethod
    def of(cls, along: Floats, moves: Floats, most: int) -> Worst:
        """Keep so many."""
        order = np.argsort(along, kind="stable")[:most]
        return cls(along[order], moves[order], most)

    def __add__(self, other: Worst) -> Worst:  # type: ignore[override]
        along = np.concatenate([self.along, other.along])
        return Worst.of(along, np.concatenate([self.moves, other.moves]), self.most)


def some_moves(Y: Floats, holes: Holes, equation: Equation, left: Floats, most: int) -> Worst:
    """Return some moves, spread over the rows."""
    moves = Sides.of(Y, holes, equation).moves(left)
    spread = np.unique(np.linspace(0, len(moves) - 1, min(len(moves), most)).astype(int))
    # All are as far: the first are kept.
    return Worst(np.zeros(spread.size), moves[spread], most)


def wrong_moves(
    Y: Floats,
    holes: Holes,
    equation: Equation,
    left: Floats,
    direction: Floats,
    least: float,
    most: int,
) -> Worst:
    """Return the moves that a direction of ``left`` makes to the wrong side, by more than a little."""
    moves = Sides.of(Y, holes, equation).moves(left)
    along = moves @ direction
    wrong = along < -least
    return Worst.of(along[wrong], moves[wrong], most)


def norm_logpdf(x: Floats) -> Floats:
    """Return the logarithm of the standard normal density."""
    return -0.5 * (x * x + np.log(2.0 * np.pi))


def mills_ratio(index: Floats, sign: float) -> Floats:
    """Return the density of an index over the probability of being selected, above 0 or below."""
    return np.asarray(np.exp(norm_logpdf(index) - log_ndtr(sign * index)))


def mills_triangle(
    Y: Floats, holes: Holes, equation: Equation, index: Floats, sign: float
) -> Triangle:
    """Return the triangle of the constant, the regressors of an outcome and its Mills ratio.

    Over the rows that show the outcome; ``index`` are the coefficients of what selects it, in the
    constant and the covariates.
    """
    shown = ~at_random(holes)[:, equation.outcome]
    X = Y[shown, equation.outcomes :]
    ratio = mills_ratio(index[0] + X @ index[1:], sign)
    W = equation.regressors(Y[shown])
    return Triangle(triangle_of(np.column_stack([np.ones(len(X)), W, ratio])))
