"""Cut points of ordered outcomes: where one category of a latent number ends and the next begins.

They are parameters of the sets in which cells hide, not of the law of the rows. So for given ones the
engine climbs to a top in all other parameters, and then they take a step of Newton's in the
profile of the likelihood, until both stand still. Their derivatives are differences of what rows say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from halfseen.missingness.holes import Holes
from halfseen.solvers.full_information.expectation import Sampling
from halfseen.solvers.full_information.rows import HeldRows, Rows
from halfseen.solvers.regression.alone import graded_alone
from halfseen.solvers.regression.step import RegressionChart

Floats = NDArray[np.float64]

# Steps of differences, in standard deviations of the latent number. Errors are of the order of their
# square; rounding adds some 1e-15 of the log-likelihood over the step to first differences, which say
# where the top is, and over its square to second ones.
FINE_STEP, STEP = 1e-4, 3e-3
# Shift of the points of sampled rows.
POINTS = 128
# The share of the way to the next cut point that a step may take, at most.
LARGEST_SHARE = 0.5
# Curvatures of a profile, as a share of the largest, that are not told from 0.
FLATTEST = 1e-6


@dataclass(frozen=True, eq=False)
class MovedCuts:
    """Holes with other cut points, of a column for each ordered outcome."""

    columns: tuple[int, ...]
    before: tuple[Floats, ...]
    after: tuple[Floats, ...]

    def __call__(self, holes: Holes) -> Holes:
        """Move the ends of the sets of these columns: those that are categories."""
        sets = holes.sets
        lower, upper = sets.lower.copy(), sets.upper.copy()
        single = np.diff(sets.start) == 1
        for column, before, after in zip(self.columns, self.before, self.after, strict=True):
            place = sets.start[:-1][single & (holes.set_column == column)]
            code = np.searchsorted(before, sets.lower[place], side="right")
            # A set that is the whole line is no category.
            own = _ends(before)[code + 1] == sets.upper[place]
            place, code = place[own], code[own]
            lower[place], upper[place] = _ends(after)[code], _ends(after)[code + 1]
        return replace(holes, sets=replace(sets, lower=lower, upper=upper))


def _ends(cuts: Floats) -> Floats:
    return np.concatenate([[-np.inf], cuts, [np.inf]])


@dataclass(frozen=True, eq=False)
class CutPoints:
    """The cut points of all ordered outcomes, and rows in which cells lie between them.

    Attributes
    ----------
    rows : Rows
    names : tuple of str
        Of the ordered outcomes.
    columns : tuple of int
        Their places.
    first : tuple of arrays
        The cut points that the rows have; of each the first is 0, and the others are learned.
    """

    rows: Rows
    names: tuple[str, ...]
    columns: tuple[int, ...]
    first: tuple[Floats, ...]

    @classmethod
    def of(cls, rows: Rows, outcomes: Sequence[str], cuts: Mapping[str, Floats]) -> CutPoints:
        """Take up the cut points of some outcomes, as the rows have them."""
        names = tuple(name for name in outcomes if name in cuts)
        columns = tuple(list(outcomes).index(name) for name in names)
        return cls(rows, names, columns, tuple(np.asarray(cuts[name]) for name in names))

    def unpack(self, vector: Floats) -> dict[str, Floats]:
        """Return the cut points of each outcome, the first of which is 0."""
        ends = np.cumsum([one.size - 1 for one in self.first])
        parts = np.split(vector, ends[:-1])
        return {
            name: np.concatenate([[0.0], part])
            for name, part in zip(self.names, parts, strict=True)
        }

    def meeting(self) -> list[tuple[int, int]]:
        """Return pairs of learned cut points that a row may speak of: neighbours, or of two outcomes."""
        outcome = np.repeat(np.arange(len(self.first)), [one.size - 1 for one in self.first])
        return [
            (a, b)
            for a in range(outcome.size)
            for b in range(a)
            if a == b + 1 or outcome[a] != outcome[b]
        ]

    def rows_at(self, vector: Floats) -> Rows:
        """Return the rows with other cut points."""
        after = tuple(self.unpack(vector).values())
        return self.rows.with_holes(MovedCuts(self.columns, self.first, after))


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives of the log-likelihood in the cut points, at a place of all parameters.

    Attributes
    ----------
    first : array of shape (m,)
    second : array of shape (m, m)
    across : array of shape (m, c)
        Second derivatives in cut points and in the coordinates of a chart.
    """

    first: Floats
    second: Floats
    across: Floats

    @classmethod
    def at(cls, cuts: CutPoints, vector: Floats, chart: RegressionChart) -> Slopes:
        """Return them in closed form for one outcome whose cells are intervals, else by differences."""
        rows = cuts.rows_at(vector)
        about = rows.overview
        if chart.m_step.outcomes > 1 or about.bound or not about.convex:
            return cls._by_differences(cuts, vector, chart)
        if not isinstance(rows, HeldRows):
            return cls._by_differences(cuts, vector, chart)
        (own,) = cuts.unpack(vector).values()
        terms = chart.m_step.parts[0]
        slope, fall, basis = graded_alone(rows.problem, terms, chart.origin, own)
        k = basis.shape[1]
        moves = np.array([chart.unpacked(unit).coefficients[0] for unit in np.eye(chart.size)])
        return cls(slope[k:], -fall[k:, k:], -fall[k:, :k] @ basis.T @ moves.T)

    @classmethod
    def _by_differences(cls, cuts: CutPoints, vector: Floats, chart: RegressionChart) -> Slopes:
        """Take differences.

        A row lies between two cut points of an outcome, so that second derivatives in others are zero.
        Mixed ones are f(a, b) + f(−a, −b) − f(a) − f(−a) − f(b) − f(−b) + 2 f(0), over 2 h².
        """
        sampled = cuts.rows.overview.sampled > 0
        order = chart.origin.parameters() if sampled else None
        sampling = Sampling(POINTS if sampled else 1, 0, order=order)
        place = chart.mean, chart.covariance
        m = vector.size

        def ask(shift: Floats) -> tuple[float, Floats]:
            moments, value = cuts.rows_at(vector + shift).expect(*place, sampling)
            return value, chart.score(moments, *place)

        units = STEP * np.eye(m)
        here = ask(np.zeros(m))[0]
        ends = [(ask(-unit), ask(unit)) for unit in units]
        fine = FINE_STEP * np.eye(m)
        first = np.array([ask(unit)[0] - ask(-unit)[0] for unit in fine]) / (2.0 * FINE_STEP)
        across = np.array([(high[1] - low[1]) / (2.0 * STEP) for low, high in ends])
        bent = np.array([low[0] - 2.0 * here + high[0] for low, high in ends])
        second = np.diag(bent / STEP**2)
        for a, b in cuts.meeting():
            both = units[a] + units[b]
            mixed = ask(both)[0] - 2.0 * here + ask(-both)[0] - bent[a] - bent[b]
            second[a, b] = second[b, a] = mixed / (2.0 * STEP**2)
        return cls(first, second, across.reshape(m, -1))

    def profile_step(self, inverse: Floats) -> tuple[Floats, float]:
        """Return Newton's step in the profile, and the gain that it promises.

        ``inverse`` is the covariance of the coordinates for given cut points. Where the profile is not
        concave along a direction, its curvature there is taken for that of a hill: the step leads up all
        the same.
        """
        curvature = -(self.second + self.across @ inverse @ self.across.T)
        values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
        values = np.maximum(np.abs(values), FLATTEST * np.abs(values).max(initial=0.0))
        if not values.all():
            return np.zeros(self.first.size), 0.0
        step = vectors @ ((vectors.T @ self.first) / values)
        return step, float(0.5 * step @ self.first)

    def whole_covariance(self, inverse: Floats) -> Floats:
        """Return the covariance of the coordinates and the cut points together."""
        curvature = -(self.second + self.across @ inverse @ self.across.T)
        own = np.linalg.inv(0.5 * (curvature + curvature.T))
        pull = inverse @ self.across.T
        return np.block([[inverse + pull @ own @ pull.T, pull @ own], [own @ pull.T, own]])


def shortened(cuts: CutPoints, vector: Floats, step: Floats) -> Floats:
    """Shorten a step so that cut points keep their order."""
    share = 1.0
    for now, moved in zip(cuts.unpack(vector).values(), cuts.unpack(step).values(), strict=True):
        gaps, closing = np.diff(now), -np.diff(moved)
        narrow = closing > 0.0
        if narrow.any():
            share = min(share, LARGEST_SHARE * float((gaps[narrow] / closing[narrow]).min()))
    return share * step
