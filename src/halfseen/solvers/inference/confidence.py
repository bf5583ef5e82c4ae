"""Confidence intervals of a fit: from standard errors where profiles agree, else from profiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import share, whole_number
from halfseen.data.interval_data import IntervalData
from halfseen.errors import InputError
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.inference.intervals import (
    NAMES,
    ColumnFunctionOf,
    CovarianceOf,
    Family,
    FisherOf,
    FunctionOf,
    Intervals,
    Limits,
    Location,
    LogDeviationOf,
    MeanOf,
    Methods,
    Numbers,
    Product,
    Target,
    put_variances,
)
from halfseen.solvers.inference.profile import (
    NotFollowed,
    Place,
    Surface,
    find_end,
    profile_refusal,
)
from halfseen.solvers.inference.refits import FEWEST_USABLE, check_refits, refits
from halfseen.solvers.inference.uncertainty import (
    StandardErrors,
    least_known,
    limits_of,
    numbers_of,
)

if TYPE_CHECKING:
    from halfseen.results import Fit

Floats = NDArray[np.float64]
Function = Callable[[Floats, Floats], ArrayLike]

KINDS = ("auto", "wald", "profile", "bootstrap")
# "auto" believes standard errors where as much is known as from so many complete rows. How lopsided a
# likelihood is goes down with their root, and what that does to a coverage with their number: at 100,
# taking the normal distribution for Student's would cost 0.6 %.
ENOUGH_ROWS = 100.0
# Elsewhere it looks at the profile, if there are no more than so many parameters of a kind, and a
# question takes no more than so many cells, or draws of them. An interval takes ten to thirty questions
# of some milliseconds.
MOST_PROFILED, MOST_CELLS = 60, 2**14
# Questions for one interval, beyond which the profile counts as lost.
MOST_QUESTIONS = 200
# Ends from standard errors are taken if the root of twice the fall there is as close as this to what it
# should be: with a density of 0.058 at 1.96, the coverage changes by 0.6 % at most at either end.
AGREES = 0.05
# How far beyond a place can be that is looked at first.
FAR_BEYOND = 1.5
# Tables of a bootstrap.
FEWEST_REPLICATES = 20
# Places of a profile that is shown, on either side, how far it goes beyond the interval, and questions.
SHOWN_PLACES, SHOWN_BEYOND, SHOWN_QUESTIONS = 12, 1.25, 2000


@dataclass(frozen=True, eq=False)
class Parameter:
    """One number that a fit says something about.

    Attributes
    ----------
    target : Target
    unit : float
        Of the target, in units of the number: surfaces have columns in units of deviations.
    numbers : Numbers
        The estimate, of shape (1,).
    rows : float
        How many rows the cutoffs of its profile are for.
    """

    target: Target
    unit: float
    numbers: Numbers
    rows: float

    def cutoffs(self, level: float) -> tuple[float, float]:
        """Return how far twice the profile falls to the lower and to the upper end."""
        return self.numbers.family.cutoffs(self.rows, level)

    def distances(self, level: float) -> tuple[float, float]:
        """Return how far ends from standard errors are away, in units of the target."""
        found = self.numbers
        low, high = found.family.distances(found.error, found.rows, level)
        return float(-low[0]) / self.unit, float(high[0]) / self.unit

    def read(self, surface: Surface, at: float) -> float:
        """Return a value of the target as people read it."""
        estimate = self.target.value(surface.coordinates.mean, surface.coordinates.covariance)
        moved = self.numbers.value[0] + self.unit * (at - estimate)
        return float(self.numbers.back(np.asarray(moved)))

    def first_places(self, surface: Surface, level: float) -> tuple[Place, Place]:
        """Return the places on the profile where ends from standard errors are.

        Ends that are far beyond where the standard error itself would have them are those of very few
        rows, which the profile does not agree with: it is looked for on this side of them.
        """
        error = float(self.numbers.error[0]) / self.unit
        low, high = (
            min(distance, FAR_BEYOND * float(np.sqrt(cutoff)) * error)
            for distance, cutoff in zip(self.distances(level), self.cutoffs(level), strict=True)
        )
        return surface.moved(self.target, -low), surface.moved(self.target, high)

    def _is_there(self, surface: Surface, level: float, first: tuple[Place, Place]) -> bool:
        """Whether places are where ends from standard errors are."""
        reached = np.abs([place.at - surface.centre(self.target) for place in first])
        return bool((reached > (1.0 - AGREES) * np.array(self.distances(level))).all())

    def ends(self, surface: Surface, level: float, first: tuple[Place, Place]) -> list[float]:
        """Return the ends of a profile's interval, in units of the target.

        Where other tops are as likely as the interval allows, it goes as far as around those.
        """
        ends = []
        for side, cutoff, place in zip((-1, 1), self.cutoffs(level), first, strict=True):
            own = find_end(surface, self.target, side, cutoff, place)
            others = [
                self._end_around(other, side, cutoff - lower)
                for other, lower in self._other_tops(surface)
                if lower < cutoff
            ]
            ends.append(side * max(side * end for end in (own, *others)))
        return ends

    def _other_tops(self, surface: Surface) -> list[tuple[Surface, float]]:
        """Return other tops, with twice how much lower they are."""
        height = surface.top[1]
        return [(other, max(2.0 * (height - other.top[1]), 0.0)) for other in surface.others]

    def _end_around(self, other: Surface, side: int, cutoff: float) -> float:
        """Return the end around another top; that top itself where its profile is lost."""
        other.allow(MOST_QUESTIONS)
        centre, normal = other.look(other.top[0], self.target)
        far = float(np.sqrt(cutoff * (normal @ other.inverse @ normal)))
        try:
            first = other.moved(self.target, side * far)
            return find_end(other, self.target, side, cutoff, first)
        except NotFollowed:
            return centre

    def agrees(self, surface: Surface, level: float, first: tuple[Place, Place]) -> bool:
        """Whether the profile falls as far as it should at the ends from standard errors."""
        if any(lower < max(self.cutoffs(level)) for _, lower in self._other_tops(surface)):
            return False
        falls = [surface.fall(place) for place in first]
        roots, wanted = np.sqrt(np.array(falls)), np.sqrt(np.array(self.cutoffs(level)))
        agreed = bool((np.abs(roots - wanted) <= AGREES * wanted).all())
        return agreed and self._is_there(surface, level, first)

    def interval(self, surface: Surface, level: float, where_needed: bool) -> Limits | None:
        """Return a profile's interval; None where one from standard errors will do.

        Raises ``NotFollowed`` where it has to.
        """
        surface.allow(MOST_QUESTIONS)
        first = self.first_places(surface, level)
        if where_needed and self.agrees(surface, level, first):
            return None
        low, high = (self.read(surface, end) for end in self.ends(surface, level, first))
        return Limits(np.asarray(low), np.asarray(high))


def parameter_of(fit: Fit, name: str, place: tuple[int, ...]) -> Parameter:
    """Return a mean, standard deviation, covariance or correlation by its indices."""
    assert fit.uncertainty is not None
    one = numbers_of(fit.uncertainty, name).at(place)
    deviations = fit.gaussian.standard_deviations[list(place)]
    rows = profile_rows(name, float(one.rows[0]), float(fit.surface.told[list(place)].min()))
    if name == "mean":
        return Parameter(MeanOf(*place), float(deviations[0]), one, rows)
    if name == "standard_deviation":
        return Parameter(LogDeviationOf(*place), 1.0, one, rows)
    if name == "correlation":
        return Parameter(FisherOf(*place), 1.0, one, rows)
    return Parameter(CovarianceOf(*place), float(deviations.prod()), one, rows)


def profile_rows(name: str, known: float, told: float) -> float:
    """Return how many rows the cutoffs of a profile are for.

    As many complete rows as would know as much are too few: what a limit says of a hidden cell counts,
    too. As many as have a cell that is seen or confined are too many where other numbers have to be
    learned with it. Of tables with 20 to 200 rows, 1 to 5 columns and 0 to 90 % hidden, the following
    held what they promise best: all those cells for means and standard deviations, what is known for
    correlations, and the geometric mean of both for others (``small_intervals`` in the benchmarks).
    """
    if name == "correlation":
        return known
    told = max(known, told)
    return told if name in ("mean", "standard_deviation") else float(np.sqrt(known * told))


def parameters_of_function(fit: Fit, function: Function) -> tuple[list[Parameter], tuple[int, ...]]:
    """Return what a function of mean and covariance returns, number by number, and its shape."""
    assert fit.uncertainty is not None
    value, error = map(np.asarray, fit.uncertainty.of(function))
    surface, freedom = fit.surface, float(fit.uncertainty.rows_for_variances.min())
    rows = profile_rows("function", freedom, float(surface.told.min()))
    known = least_known(fit.uncertainty)

    def component(k: int) -> Callable[[Floats, Floats], float]:
        def one(mean: Floats, covariance: Floats) -> float:
            at = surface.overview.to_units(mean, covariance)
            try:
                answer = np.asarray(function(*at), dtype=np.float64)
            except Exception:
                return np.nan
            return float(answer.ravel()[k]) if answer.shape == value.shape else np.nan

        return one

    found = [
        Parameter(FunctionOf(component(k)), 1.0, _one_number(Product(), v, e, freedom, known), rows)
        for k, (v, e) in enumerate(zip(value.ravel(), error.ravel(), strict=True))
    ]
    return found, value.shape


def _one_number(family: Family, value: float, error: float, rows: float, known: float) -> Numbers:
    return Numbers(
        family, np.array([value]), np.array([error]), np.array([rows]), np.array([known])
    )


def confidence_interval(
    fit: Fit, level: float, kind: str, replicates: int, random_state: RandomState
) -> Intervals:
    """Return intervals for every parameter; see ``Fit.confidence_interval``."""
    level, label = share("level", level), fit.standard_errors.label
    if kind == "bootstrap":
        replicates = whole_number("replicates", replicates, FEWEST_REPLICATES)
        check_refits(fit)
        studentised = Studentised(fit, level, replicates, seed_of(random_state))
        return Intervals(level, kind, studentised.find, label)
    finder = interval_finder(fit, level, kind)
    assert finder is not None
    return Intervals(level, kind, finder.find, label)


def function_interval(fit: Fit, function: Function, level: float, kind: str) -> Limits:
    """Return intervals for what a function of mean and covariance returns."""
    finder = interval_finder(fit, share("level", level), kind)
    if not callable(function):
        raise InputError(
            f"of must be a function of mean and covariance, such as lambda mean, covariance: mean[0] "
            f"- mean[1]; got {function!r}."
        )
    errors = fit.standard_errors
    assert finder is not None
    if not finder.profiled:
        value, error = map(np.asarray, errors.of(function))
        rows = np.full(value.shape, errors.rows_for_variances.min())
        return Numbers(Product(), value, error, rows, rows).by_errors(finder.level)
    found, shape = parameters_of_function(fit, function)
    ends = [finder.of_parameter(one) for one in found]
    low, high = (np.array([end[k] for end in ends]).reshape(shape) for k in range(2))
    return Limits(low[()], high[()])


def interval_finder(fit: Fit, level: float, kind: str) -> IntervalFinder | None:
    """Return what finds intervals of a kind; None where a fit has no standard errors."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    if kind == "bootstrap":
        raise InputError(
            'kind="bootstrap" is for means, deviations, covariances and correlations; for anything '
            "else use fit.bootstrap(statistic=...)."
        )
    why = profile_refusal(fit)
    if kind == "profile" and why is not None:
        advice = "" if fit.uncertainty is None else ' Use kind="wald".'
        raise InputError(f'kind="profile" cannot be had: {why}.{advice}')
    if fit.uncertainty is None:
        return None
    return IntervalFinder(fit, fit.uncertainty, level, kind, kind != "wald" and why is None)


@dataclass(frozen=True, eq=False)
class IntervalFinder:
    """Finds intervals by profiles, or by standard errors.

    Attributes
    ----------
    fit : Fit
    errors : StandardErrors
        Of the fit, without labels.
    level : float
    kind : {"auto", "wald", "profile"}
    profiled : bool
        Whether profiles are looked at.
    """

    fit: Fit
    errors: StandardErrors
    level: float
    kind: str
    profiled: bool

    @property
    def where_needed(self) -> bool:
        """Whether standard errors are taken where they will do."""
        return self.kind == "auto"

    def find(self, name: str) -> tuple[Limits, Methods]:
        """Return the intervals of one kind of parameters, and how each was found."""
        limits, methods = limits_of(self.errors, name, self.level)
        if name == "covariance":
            made = self.fit.confidence_interval(self.level, self.kind).without_labels()
            put_variances(limits, made.standard_deviation)
            np.fill_diagonal(methods, made.methods["standard_deviation"])
        for place in self._places(name):
            one = parameter_of(self.fit, name, place)
            try:
                found = one.interval(self.fit.surface, self.level, self.where_needed)
            except NotFollowed:
                found = None
            if found is None:
                continue
            for both in (place, place[::-1]):
                limits.lower[both], limits.upper[both] = found
                methods[both] = "profile"
        return limits, methods

    def of_parameter(self, one: Parameter) -> Limits:
        """Return the interval of one number."""
        found = one.numbers
        looked = self.profiled and found.error[0] > 0.0
        if looked and self.where_needed:
            looked = found.least[0] < ENOUGH_ROWS and self._is_affordable()
        if looked:
            try:
                ends = one.interval(self.fit.surface, self.level, self.where_needed)
            except NotFollowed:
                if not self.where_needed:
                    raise InputError(
                        "the profile cannot be followed: what is asked for is not a smooth function "
                        'of the parameters, or the likelihood has no top nearby. Use kind="wald".'
                    ) from None
                ends = None
            if ends is not None:
                return ends
        low, high = found.by_errors(self.level)
        return Limits(low[0], high[0])

    def of_column(
        self, j: int, function: Callable[[float, float], float], value: float, error: float
    ) -> Limits:
        """Return the interval of a function of the mean and deviation of a column."""
        g, freedom = self.fit.gaussian, float(self.errors.rows_for_variances[j])
        unit = float(g.mean[j]), float(g.standard_deviations[j])
        known = min(freedom, float(numbers_of(self.errors, "mean").known[j]))
        looked = self.profiled and not (self.where_needed and known >= ENOUGH_ROWS)
        told = float(self.fit.surface.told[j]) if looked else freedom
        target = ColumnFunctionOf(j, *unit, function)
        rows = profile_rows("function", freedom, told)
        return self.of_parameter(
            Parameter(target, 1.0, _one_number(Location(), value, error, freedom, known), rows)
        )

    def _places(self, name: str) -> list[tuple[int, ...]]:
        """Return the parameters of one kind whose profiles are looked at, by their indices."""
        if not self.profiled:
            return []
        numbers = numbers_of(self.errors, name)
        d = len(self.fit.names)
        places: list[tuple[int, ...]] = [(j,) for j in range(d)]
        if numbers.value.ndim == 2:
            places = [(i, j) for i in range(d) for j in range(i)]
        places = [place for place in places if numbers.error[place] > 0.0]
        if not self.where_needed:
            return places
        few = [place for place in places if numbers.least[place] < ENOUGH_ROWS]
        return few if 0 < len(few) <= MOST_PROFILED and self._is_affordable() else []

    def _is_affordable(self) -> bool:
        """Whether questions take no more than some seconds in all."""
        # The table is not read only to be told that it is too large.
        cells = self.fit.rows * len(self.fit.names)
        return cells <= MOST_CELLS and self.fit.surface.cells <= MOST_CELLS


@dataclass(frozen=True, eq=False)
class Studentised:
    """Finds intervals by the bootstrap: how far estimates are off, in their own standard errors.

    Tables are simulated from the fit where a rule is stated, and else of rows drawn anew.
    """

    fit: Fit
    level: float
    replicates: int
    seed: int

    def find(self, name: str) -> tuple[Limits, Methods]:
        """Return the intervals of one kind of parameters: value − t · error, for quantiles of t."""
        assert self.fit.uncertainty is not None
        numbers = numbers_of(self.fit.uncertainty, name)
        off = np.array([self._off(numbers_of(one, name), numbers) for one in self._drawn])
        tail = 0.5 - 0.5 * self.level
        high, low = np.quantile(off, [1.0 - tail, tail], axis=0)
        limits = numbers.moved(-high * numbers.error, -low * numbers.error)
        methods = numbers.methods("bootstrap")
        if name == "covariance":
            ends, how = self.find("standard_deviation")
            put_variances(limits, ends)
            np.fill_diagonal(methods, how)
        return limits, methods

    @staticmethod
    def _off(found: Numbers, centre: Numbers) -> Floats:
        """Return how far estimates are from those of the fit, in their own standard errors."""
        with np.errstate(invalid="ignore", divide="ignore"):
            off = (found.value - centre.value) / found.error
        return np.where(found.error > 0.0, off, 0.0)

    @cached_property
    def _drawn(self) -> list[StandardErrors]:
        """Estimates and standard errors of tables drawn anew, as far as there are any."""
        source = self.fit.source
        assert source is not None
        parametric = source.missingness is not None and not isinstance(source.X, IntervalData)
        kind = "parametric" if parametric else "rows"
        drawn = refits(self.fit, self.replicates, kind, self.seed, standard_errors=True)
        found = [one.uncertainty for one in drawn if one.uncertainty is not None]
        if len(found) < FEWEST_USABLE * self.replicates:
            raise InputError(
                f"{self.replicates - len(found)} of {self.replicates} tables drawn anew have no "
                'standard errors, so there is no bootstrap interval; use kind="profile".'
            )
        return found


@dataclass(frozen=True, eq=False)
class Profile:
    """How the likelihood falls as one number moves, everything else at its best.

    Attributes
    ----------
    name : str
        What the number is.
    estimate : float
    level : float
    interval : Limits
        Where the fall is below ``cutoffs``.
    at : array
        Values of the number, growing.
    log_likelihood : array
        The profile there, less the top.
    by_error : array
        What it would be by the standard error, on the scale where estimates are nearly normal.
    cutoffs : tuple of float
        How far the log-likelihood falls to the lower and to the upper end.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.8)
    >>> X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 30, random_state=3)
    >>> profile = hs.fit(X, rule, names=["lead"], random_state=0).profile("mean", "lead")
    >>> profile.name
    'mean of lead'
    >>> down, up = (abs(end - profile.estimate) for end in profile.interval)
    >>> bool(down > 1.5 * up)  # most values are hidden below: there is less to say about that side
    True
    """

    name: str
    estimate: float
    level: float
    interval: Limits
    at: Floats
    log_likelihood: Floats
    by_error: Floats
    cutoffs: tuple[float, float]


def profile(fit: Fit, of: str | Function, columns: tuple[Any, ...], level: float) -> Profile:
    """Follow a profile; see ``Fit.profile``."""
    level = share("level", level)
    why = profile_refusal(fit)
    if why is not None:
        raise InputError(f"a profile likelihood cannot be had: {why}.")
    if callable(of):
        if columns:
            raise InputError(f"a function says itself what it is of; got columns {columns!r} too.")
        found, _ = parameters_of_function(fit, of)
        if len(found) != 1:
            raise InputError(f"a profile is of one number; the function returns {len(found)}.")
        one, name = found[0], getattr(of, "__name__", "function")
    else:
        place = _place_of(fit, of, columns)
        one = parameter_of(fit, of, place)
        name = f"{of.replace('_', ' ')} of {' and '.join(fit.names[j] for j in place)}"
    if one.numbers.error[0] == 0.0:
        raise InputError(f"the {name} is known: there is nothing to follow.")
    try:
        return _followed(fit.surface, one, name, level)
    except NotFollowed:
        raise InputError(
            f"the profile of the {name} cannot be followed: it is not a smooth function of the "
            "parameters, or the likelihood has no top nearby, as where the covariance is all but "
            "singular."
        ) from None


def _place_of(fit: Fit, of: str, columns: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the indices of a parameter that is told by kind and columns."""
    if of not in NAMES:
        raise InputError(f"of must be one of {', '.join(NAMES)}, or a function; got {of!r}.")
    count = 1 if of in ("mean", "standard_deviation") else 2
    if len(columns) != count:
        raise InputError(
            f"the {of.replace('_', ' ')} needs {count} column{'s' if count > 1 else ''}, such as "
            f"fit.profile({of!r}, {', '.join(map(repr, fit.names[:count]))}); got {len(columns)}."
        )
    place = tuple(fit.column(which) for which in columns)
    if len(set(place)) < count:
        raise InputError(
            f"two different columns are needed; got {columns[0]!r} twice. A variance is the square of "
            'a "standard_deviation".'
        )
    return place


def _followed(surface: Surface, one: Parameter, name: str, level: float) -> Profile:
    """Follow a profile from the top to either side, a little beyond the interval."""
    surface.allow(SHOWN_QUESTIONS)
    centre = surface.centre(one.target)
    at, fall = [centre], [0.0]
    ends = one.ends(surface, level, one.first_places(surface, level))
    for other in surface.others:
        other.allow(SHOWN_QUESTIONS)
    for side, end, far in zip((-1, 1), ends, one.distances(level), strict=True):
        reach = SHOWN_BEYOND * (abs(end - centre) if np.isfinite(end) else far)
        last = centre
        for distance in np.linspace(0.0, reach, SHOWN_PLACES + 1)[1:]:
            try:
                place = surface.moved(one.target, side * distance)
            except NotFollowed:
                break
            if side * (place.at - last) > 0.0:
                at.append(place.at)
                fall.append(surface.top[1] - surface.highest(one.target, place))
                last = place.at
    order = np.argsort(at)
    places, error = np.array(at)[order], float(one.numbers.error[0]) / one.unit
    cutoffs = one.cutoffs(level)
    return Profile(
        name,
        one.read(surface, centre),
        level,
        Limits(*(np.asarray(one.read(surface, end)) for end in ends)),
        np.array([one.read(surface, place) for place in places]),
        -np.array(fall)[order],
        -0.5 * ((places - centre) / error) ** 2,
        (0.5 * cutoffs[0], 0.5 * cutoffs[1]),
    )
