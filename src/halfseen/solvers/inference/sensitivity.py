"""How estimates move as limits are off, or as hidden cells were hidden for other reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import finite_vector, positive_number, share
from halfseen.data.interval_data import IntervalData
from halfseen.data.transforms import Identity
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.parallel import single_blas_thread
from halfseen.solvers.full_information.learn import Settings, learn
from halfseen.solvers.full_information.parameter_options import m_step_for
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.inference.fitted_table import fitted_problem
from halfseen.solvers.inference.intervals import NORMAL_95, Limits
from halfseen.solvers.inference.refits import (
    ACCURACY,
    STEPS,
    check_refits,
    options_of,
)
from halfseen.solvers.inference.uncertainty import StandardErrors
from halfseen.solvers.loss import cells_at_risk, ruled_columns, with_losses

if TYPE_CHECKING:
    from halfseen.results import Fit

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# As many columns have a sentence each.
MOST_SAID = 6


class Move(NamedTuple):
    """How one number moves.

    Attributes
    ----------
    name : str
        As "mean of lead".
    values : array
        The estimate at each place that was looked at.
    in_errors : array
        How far it is from the first estimate, in standard errors of that.
    """

    name: str
    values: Floats
    in_errors: Floats


class Bounds(NamedTuple):
    """The smallest and the largest that estimates and their intervals come to."""

    mean: Limits
    standard_deviation: Limits
    correlation: Limits


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Estimates under other assumptions about what is hidden.

    Attributes
    ----------
    names : tuple of str
    base : StandardErrors
        The fit itself, ``base.gaussian``, and how sure it is.
    shares : array
        Shares of the hidden cells that are taken to be lost ones, in every column with a rule; empty
        where hidden cells say themselves why they are hidden.
    by_share : tuple of StandardErrors
        The estimate, ``.gaussian``, and its errors at each share.
    factors : array
        Factors of all limits of hidden cells, in original units; empty where no limit is positive.
    by_factor : tuple of StandardErrors
        The same at each factor.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=[0.5, 0.5])
    >>> X = hs.simulate(hs.Gaussian([1.0, 1.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
    >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
    >>> found = fit.sensitivity()
    >>> print(found.sentences()[0])
    The sign of the correlation of lead and zinc holds up to a share of 50 %, the most looked at.
    >>> [round(float(one.gaussian.mean[0]), 1) for one in found.by_share]
    [1.0, 1.1, 1.1, 1.1, 1.2, 1.2]
    """

    names: tuple[str, ...]
    base: StandardErrors
    shares: Floats
    by_share: tuple[StandardErrors, ...]
    factors: Floats
    by_factor: tuple[StandardErrors, ...]

    def bounds(
        self,
        share: float | None = None,
        factors: tuple[float, float] | None = None,
        level: float = 0.95,
    ) -> Bounds:
        """Return the ends of all intervals up to a share of lost cells, or between two factors.

        Parameters
        ----------
        share : float, optional
            Anything from nothing to this share of the hidden cells of every column was lost.
        factors : pair of float, optional
            Limits are off by a factor between these two.
        level : float
            Of the intervals, which widen the bounds by what the rows leave open.

        Returns
        -------
        Bounds
            ``mean``, ``standard_deviation`` and ``correlation``, each with ``lower`` and ``upper``.

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=[0.5, 0.5])
        >>> X = hs.simulate(hs.Gaussian([1.0, 1.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
        >>> lower, upper = fit.sensitivity().bounds(share=0.3).mean
        >>> bool(lower[0] < fit.confidence_interval().mean.lower[0] + 1e-9)
        True
        """
        if (share is None) == (factors is None):
            raise InputError("bounds are over a share or over factors; give one of them.")
        if share is not None:
            most = positive_number("share", share)
            return _bounds(self.shares, self.by_share, 0.0, most, level, "share")
        assert factors is not None
        low, high = finite_vector("factors", factors, 2)
        return _bounds(self.factors, self.by_factor, low, high, level, "factors")

    def moves(self, by: str = "share") -> list[Move]:
        """Return how every mean, standard deviation and correlation moves.

        Parameters
        ----------
        by : {"share", "factor"}

        Returns
        -------
        list of Move

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.5)
        >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 300), rule, random_state=0)
        >>> [move.name for move in fit.sensitivity().moves("factor")]
        ['mean of x0', 'standard deviation of x0']
        """
        points, names = self._points(by), self.names
        columns = [(j,) for j in range(len(names))]
        pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
        kinds: dict[str, Sequence[tuple[int, ...]]]
        kinds = {"mean": columns, "standard deviation": columns, "correlation": pairs}
        out = []
        for kind, places in kinds.items():
            errors = getattr(self.base, kind.replace(" ", "_"))
            here, *there = (_estimates(one.gaussian, kind) for one in (self.base, *points))
            for place in places:
                name = f"{kind} of {' and '.join(names[j] for j in place)}"
                values = np.array([one[place] for one in there])
                out.append(self._move(name, values, here[place], errors[place]))
        return out

    def _points(self, by: str) -> tuple[StandardErrors, ...]:
        if not isinstance(by, str) or by not in ("share", "factor"):
            raise InputError(f"by must be share or factor; got {by!r}.")
        points = self.by_share if by == "share" else self.by_factor
        if not points:
            raise InputError(_why_none(by))
        return points

    @staticmethod
    def _move(name: str, values: Floats, here: float, error: float) -> Move:
        return Move(name, values, (values - here) / error if error > 0.0 else 0.0 * values)

    def sentences(self) -> list[str]:
        """Say how far the signs of correlations hold, and how far means stay in their intervals.

        Returns
        -------
        list of str

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.5)
        >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 300), rule, random_state=0)
        >>> fit.sensitivity().sentences()[0][:58]
        'The mean of x0 stays within its 95 % interval up to a shar'
        """
        out = []
        if self.by_share:
            for move in self._spoken("share", "correlation"):
                same = np.sign(move.values[0]) * move.values > 0.0
                held = _held(self.shares, same, move.values)
                out.append(f"The sign of the {move.name} holds {_up_to(held, self.shares)}")
            for move, held in self._within("share", self.shares):
                out.append(
                    f"The {move.name} stays within its 95 % interval {_up_to(held, self.shares)}"
                )
        if self.by_factor:
            for move, held in self._within("factor", self.factors):
                out.append(
                    f"The {move.name} stays within its 95 % interval {_between(held, self.factors)}"
                )
        return out

    def _spoken(self, by: str, kind: str) -> list[Move]:
        """Return the moves of a kind that are told of: the largest."""
        moves = [move for move in self.moves(by) if move.name.startswith(kind)]
        order = sorted(moves, key=lambda move: -float(np.abs(move.in_errors).max()))[:MOST_SAID]
        return [move for move in moves if any(move is one for one in order)]

    def _within(self, by: str, places: Floats) -> list[tuple[Move, tuple[float, float]]]:
        """Return between which places means and deviations stay within their intervals."""
        moves = self._spoken(by, "mean") + self._spoken(by, "standard deviation")
        return [(move, _held_within(places, np.abs(move.in_errors))) for move in moves]


def _estimates(g: Gaussian, kind: str) -> Floats:
    return g.standard_deviations if kind == "standard deviation" else getattr(g, kind)


def _held_within(places: Floats, distance: Floats) -> tuple[float, float]:
    return _held(places, distance <= NORMAL_95, distance - NORMAL_95)


def _held(places: Floats, holds: Mask, values: Floats) -> tuple[float, float]:
    """Return between which places, around the first or 1, something holds.

    ``values`` pass through 0 where it ends; between places they are taken to be linear.
    """
    home = int(np.argmin(np.abs(places - 1.0))) if places[0] > 0.0 else 0
    ends = []
    for step in (-1, 1):
        k = home
        while 0 <= k + step < places.size and holds[k + step] and holds[home]:
            k += step
        end = float(places[k])
        if 0 <= k + step < places.size and holds[k]:
            a, b = abs(float(values[k])), abs(float(values[k + step]))
            end += float(places[k + step] - places[k]) * (a / (a + b) if a + b > 0.0 else 0.0)
        ends.append(end)
    return ends[0], ends[1]


def _up_to(held: tuple[float, float], shares: Floats) -> str:
    most = ", the most looked at" if held[1] >= shares[-1] else ""
    return f"up to a share of {100.0 * held[1]:.0f} %{most}."


def _between(held: tuple[float, float], factors: Floats) -> str:
    whole = held[0] <= factors[0] and held[1] >= factors[-1]
    return (
        f"where limits are off by factors from {held[0]:.2g} to {held[1]:.2g}"
        f"{', all that were looked at' if whole else ''}."
    )


def _why_none(by: str) -> str:
    if by == "share":
        return (
            "no hidden cell can be a lost value: no rule by column is stated, or hidden cells say "
            "themselves why they are hidden."
        )
    return "no hidden cell has a positive limit that could be off by a factor."


def _bounds(
    places: Floats,
    points: tuple[StandardErrors, ...],
    low: float,
    high: float,
    level: float,
    what: str,
) -> Bounds:
    """Return the ends of intervals between two places; between those that were looked at, linearly."""
    level = share("level", level)
    if not points:
        raise InputError(_why_none("share" if what == "share" else "factor"))
    if not places[0] <= low <= high <= places[-1]:
        raise InputError(
            f"{what} must lie between {places[0]:g} and {places[-1]:g}, which were looked at; got "
            f"{low:g} to {high:g}. Pass others to fit.sensitivity()."
        )
    inside = np.unique(np.concatenate([places[(places > low) & (places < high)], [low, high]]))
    found = [one.intervals(level) for one in points]
    out = []
    for name in ("mean", "standard_deviation", "correlation"):
        ends = []
        for k, best in enumerate((np.min, np.max)):
            values = np.array([np.asarray(getattr(one, name)[k]) for one in found])
            flat = values.reshape(len(values), -1)
            along = np.array([np.interp(inside, places, column) for column in flat.T])
            ends.append(best(along, axis=1).reshape(values.shape[1:]))
        out.append(Limits(*ends))
    return Bounds(*out)


def sensitivity(fit: Fit, shares: Sequence[float], factors: Sequence[float]) -> Sensitivity:
    """Refit a table under other assumptions; see ``Fit.sensitivity``."""
    check_refits(fit)
    if fit.uncertainty is None:
        raise InputError(
            "sensitivity is told in standard errors, and this fit has none: regularised estimates, and "
            "those as good as singular, do not."
        )
    study = Study(fit)
    lost, scaled = _places("shares", shares, 0.0, 1.0), _places("factors", factors, 0.0, np.inf)
    if scaled[0] <= 0.0:
        raise InputError(f"factors must be positive; got {scaled[0]:g}.")
    risk, limited = study.at_risk(), study.limited()
    by_share = tuple(study.refit(study.with_lost(risk, one)) for one in lost) if risk.any() else ()
    by_factor = (
        tuple(study.refit(study.with_limits(limited, one)) for one in scaled)
        if limited.any()
        else ()
    )
    if not (by_share or by_factor):
        raise InputError(f"{_why_none('share')} And {_why_none('factor')}")
    nothing = np.empty(0)
    base = replace(fit.uncertainty, label=None)
    return Sensitivity(
        fit.names, base, lost if by_share else nothing, by_share,
        scaled if by_factor else nothing, by_factor,
    )  # fmt: skip


def _places(name: str, given: Any, low: float, high: float) -> Floats:
    places = np.unique(finite_vector(name, given))
    if places.size < 2 or places[0] < low or not places[-1] < high:
        raise InputError(
            f"{name} must be at least two numbers from {low:g} to below {high:g}; got {given!r}."
        )
    return places


class Study:
    """A table that is fitted again and again."""

    def __init__(self, fit: Fit) -> None:
        source = fit.source
        assert source is not None
        self.fit, self.source, self.plain = fit, source, fitted_problem(source)
        rule = source.missingness
        self.rule = None if rule is None else rule.for_columns(fit.names)
        self.m_step = m_step_for(self.plain.overview, **options_of(fit))[0]

    def at_risk(self) -> Mask:
        """Mask of the cells that would be hidden if their values were lost; none without a rule."""
        if self.rule is None:
            return np.zeros(self.plain.shape, dtype=bool)
        given = self.source.X, self.rule, self.source.missing_at_random
        risk = cells_at_risk(self.plain, *given)
        return risk if (risk & self.plain.hidden).any() else np.zeros_like(risk)

    def limited(self) -> Mask:
        """Columns whose hidden cells have limits, all of them positive in original units."""
        d = self.plain.shape[1]
        told = isinstance(self.source.X, IntervalData)
        columns = (
            np.ones(d, dtype=bool) if self.rule is None or told else ruled_columns(self.rule, d)
        )
        sets, where = self.plain.holes.sets, self._pieces()
        used = np.isin(np.arange(len(sets)), self.plain.holes.index)[
            np.repeat(np.arange(len(sets)), np.diff(sets.start))
        ]
        has, positive = np.zeros(d, dtype=bool), np.ones(d, dtype=bool)
        for ends in (sets.lower, sets.upper):
            finite = np.isfinite(ends) & used
            at = self._to_units(ends, where)
            has[where[finite]] = True
            positive[where[finite & ~(at > 0.0)]] = False
        return np.asarray(columns & has & positive)

    def _pieces(self) -> NDArray[np.intp]:
        holes = self.plain.holes
        return np.repeat(holes.set_column, np.diff(holes.sets.start))

    def _to_units(self, ends: Floats, columns: NDArray[np.intp]) -> Floats:
        """Return ends of sets in original units."""
        out = self.plain.centre[columns] + self.plain.scale[columns] * ends
        for j, transform in enumerate(self.fit.transforms or ()):
            own = (columns == j) & np.isfinite(out)
            if not isinstance(transform, Identity) and own.any():
                out[own] = transform.inverse(out[own])
        return np.asarray(out)

    def with_lost(self, risk: Mask, lost: float) -> Problem:
        """Return the problem in which such a share of the hidden cells is lost values.

        Lost cells are ε/(1 − ε) times as many as seen ones.
        """
        hidden = (risk & self.plain.hidden).sum(axis=0)
        seen = (risk & ~self.plain.hidden).sum(axis=0)
        return with_losses(self.plain, risk, lost * hidden / np.maximum(seen + lost * hidden, 1.0))

    def with_limits(self, limited: Mask, factor: float) -> Problem:
        """Return the problem in which limits of hidden cells are off by a factor."""
        sets, where = self.plain.holes.sets, self._pieces()
        moved = []
        for ends in (sets.lower, sets.upper):
            out = ends.copy()
            own = np.isfinite(ends) & limited[where] & (factor != 1.0)
            at = factor * self._to_units(ends, where)
            for j in np.flatnonzero(limited):
                mine = own & (where == j)
                scale = None if self.fit.transforms is None else self.fit.transforms[j]
                new = at[mine] if scale is None else scale.end(at[mine])
                out[mine] = (new - self.plain.centre[j]) / self.plain.scale[j]
            moved.append(out)
        holes = replace(self.plain.holes, sets=replace(sets, lower=moved[0], upper=moved[1]))
        problem = replace(self.plain, holes=holes)
        loss = self.fit.loss
        return problem if loss is None else with_losses(problem, self.at_risk(), loss.share)

    def refit(self, problem: Problem) -> StandardErrors:
        """Return the estimate from a problem, and its standard errors."""
        g: Gaussian = self.fit.gaussian
        settings = Settings(ACCURACY, STEPS, True, self.source.seed, False, self.source.n_jobs)
        with single_blas_thread():
            start = problem.from_units(g.mean, g.covariance)
            rows = HeldRows(problem, self.source.n_jobs)
            found = learn(rows, self.m_step, start, settings, [], follow_start=True)
        if found.uncertainty is None:
            raise InputError(
                "under one of these assumptions the estimate is as good as singular, and has no "
                "standard errors. Look at smaller shares, or at factors nearer to 1."
            )
        return found.uncertainty
