"""Confidence intervals: from standard errors, or from the profile of the likelihood.

Both are told how many rows there are. A table with nothing hidden has exact intervals: Student's for a
mean, chi-square for a variance, and Fisher's for a correlation, which is nearly so. Where cells are
hidden, a standard error says how many complete rows would know as much, and the interval is the one that
so many rows have: the same distribution for ends by standard errors, and the fall of the likelihood at
the ends of the exact interval as the cutoff of a profile. Targets are the numbers that a profile holds
fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri, stdtrit

from halfseen.theta import pack, stands_for, unpack

Floats = NDArray[np.float64]
Methods = NDArray[np.str_]

NAMES = ("mean", "standard_deviation", "covariance", "correlation")
# As wide as the longest of them: "bootstrap".
METHOD = np.dtype("<U9")

# Fewest rows that intervals are made for, as far as degrees of freedom are concerned.
FEWEST_ROWS, FEWEST_FOR_FISHER = 2.0, 3.5
# With more rows than these the normal distribution does: quantiles of others lose digits.
MANY_ROWS = 1e8
# The quantile of a normal distribution for a 95 % interval.
NORMAL_95 = 1.959964
# Steps of differences for functions that have no slopes of their own, in standard deviations.
DIFFERENCE = 1e-5


class Limits(NamedTuple):
    """Lower and upper ends of intervals."""

    lower: Floats
    upper: Floats


class Family(Protocol):
    """Intervals of one kind of number, on the scale where its estimate is nearly normal.

    ``rows`` are how many complete rows would know as much.
    """

    def distances(self, error: Floats, rows: Floats, level: float) -> Limits:
        """Return how far the ends are from an estimate with a standard error."""
        ...

    def cutoffs(self, rows: float, level: float) -> tuple[float, float]:
        """Return how far twice a profile falls to the lower and to the upper end."""
        ...


class Location:
    """Means, and whatever else has no family of its own: Student's t with rows − 1 degrees."""

    def distances(self, error: Floats, rows: Floats, level: float) -> Limits:
        """Return t · error · √(n/(n − 1)): errors are from likeliest variances, which are too small."""
        m = np.clip(rows, FEWEST_ROWS, MANY_ROWS)
        width = _student(m - 1.0, level) * error * np.sqrt(m / (m - 1.0))
        return Limits(-width, width)

    def cutoffs(self, rows: float, level: float) -> tuple[float, float]:
        """Return n log(1 + t²/(n − 1)): what a mean's profile falls to the ends of its interval."""
        m = float(np.clip(rows, FEWEST_ROWS, MANY_ROWS))
        t = float(_student(m - 1.0, level))
        fall = m * float(np.log1p(t * t / (m - 1.0)))
        return fall, fall


class Spread:
    """Logarithms of standard deviations: χ² with rows − 1 degrees."""

    def distances(self, error: Floats, rows: Floats, level: float) -> Limits:
        """Return ½ log(n/χ²) at both quantiles of χ²."""
        m = np.clip(rows, FEWEST_ROWS, MANY_ROWS)
        ends = (-0.5 * np.log(self._ratio(m, tail)) for tail in _tails(level))
        width = ndtri(0.5 + 0.5 * level) * error
        few = rows < MANY_ROWS
        low, high = (
            np.where(few, end, far) for end, far in zip(ends, (-width, width), strict=True)
        )
        return Limits(low, high)

    def cutoffs(self, rows: float, level: float) -> tuple[float, float]:
        """Return n (x − 1 − log x) with x = χ²/n: what a variance's profile falls to either end."""
        m = float(np.clip(rows, FEWEST_ROWS, MANY_ROWS))
        # The smaller σ is, the larger is χ² = Σ (x − x̄)²/σ².
        low, high = (float(self._ratio(m, tail)) for tail in _tails(level))
        return m * (low - 1.0 - float(np.log(low))), m * (high - 1.0 - float(np.log(high)))

    def _ratio(self, rows: Any, tail: float) -> Any:
        """Return χ²/n, exceeded with a probability."""
        return chdtri(rows - 1.0, tail) / rows


class Fisher:
    """Correlations as artanh ρ: normal, of variance 1/(rows − 3)."""

    def distances(self, error: Floats, rows: Floats, level: float) -> Limits:
        """Return q/√(n − 3), and no less than the error itself says."""
        q = ndtri(0.5 + 0.5 * level)
        width = q / np.sqrt(np.maximum(rows, FEWEST_FOR_FISHER) - 3.0)
        width = np.maximum(width, q * error)
        return Limits(-width, width)

    def cutoffs(self, rows: float, level: float) -> tuple[float, float]:
        """Return 2n log cosh δ: what a correlation's profile falls at a distance δ on this scale."""
        m = float(np.clip(rows, FEWEST_FOR_FISHER, MANY_ROWS))
        fall = 2.0 * m * float(np.log(np.cosh(ndtri(0.5 + 0.5 * level) / np.sqrt(m - 3.0))))
        return fall, fall


class Product(Location):
    """Covariances: ends as those of means, and profiles that fall as those of correlations do."""

    def cutoffs(self, rows: float, level: float) -> tuple[float, float]:
        """Return those of a correlation."""
        return Fisher().cutoffs(rows, level)


def put_variances(limits: Limits, ends: Limits) -> None:
    """Put the squares of intervals of deviations on the diagonals of those of covariances."""
    for matrix, of_deviation in zip(limits, ends, strict=True):
        np.fill_diagonal(matrix, of_deviation**2)


def _student(degrees: Any, level: float) -> Any:
    return stdtrit(degrees, 0.5 + 0.5 * level)


def _tails(level: float) -> tuple[float, float]:
    return 0.5 - 0.5 * level, 0.5 + 0.5 * level


def _as_it_is(value: Floats) -> Floats:
    return value


@dataclass(frozen=True, eq=False)
class Numbers:
    """Estimates of one kind, on the scale of their family.

    Attributes
    ----------
    family : Family
    value, error : arrays
        Estimates and their standard errors.
    rows : array
        How many complete rows would know as much about their standard errors: degrees of freedom.
    known : array
        How many complete rows would know as much about the estimates.
    back : callable
        From this scale to the one that people read.
    """

    family: Family
    value: Floats
    error: Floats
    rows: Floats
    known: Floats
    back: Callable[[Floats], Floats] = _as_it_is

    @property
    def least(self) -> Floats:
        """How many complete rows would know as much about an estimate and its error."""
        return np.minimum(self.rows, self.known)

    def at(self, place: tuple[int, ...]) -> Numbers:
        """Return one of them, of shape (1,)."""
        value, error, rows, known = (
            array[place].reshape(1) for array in (self.value, self.error, self.rows, self.known)
        )
        return Numbers(self.family, value, error, rows, known, self.back)

    def by_errors(self, level: float) -> Limits:
        """Return intervals from standard errors."""
        return self.moved(*self.family.distances(self.error, self.rows, level))

    def moved(self, *moves: Floats) -> Limits:
        """Return intervals with ends so far from estimates; what is known has one of no length."""
        return Limits(*(self.back(self.value + np.where(self.is_known, 0.0, m)) for m in moves))

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Which of them have no error."""
        return np.asarray(self.error == 0.0)

    def methods(self, name: str) -> Methods:
        """Return how intervals were found."""
        return np.where(self.is_known, "known", name).astype(METHOD)


class Target(Protocol):
    """A number that is held fixed, at parameters in units of the estimate's deviations."""

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return the number."""
        ...

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return its derivatives in the mean and (symmetric, entry by entry) in the covariance."""
        ...


@dataclass(frozen=True)
class MeanOf:
    """A mean."""

    column: int

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return μ_j."""
        return float(mean[self.column])

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return the unit vector."""
        return np.eye(mean.size)[self.column], np.zeros_like(covariance)


@dataclass(frozen=True)
class LogDeviationOf:
    """The logarithm of a standard deviation."""

    column: int

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return ½ log Σ_jj."""
        return float(0.5 * np.log(covariance[self.column, self.column]))

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return 1/(2 Σ_jj)."""
        out = np.zeros_like(covariance)
        out[self.column, self.column] = 0.5 / covariance[self.column, self.column]
        return np.zeros(mean.size), out


@dataclass(frozen=True)
class FisherOf:
    """A correlation on Fisher's scale, artanh ρ."""

    row: int
    column: int

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return ½ log((1 + ρ)/(1 − ρ))."""
        i, j = self.row, self.column
        product = np.sqrt(covariance[i, i] * covariance[j, j])
        s = covariance[i, j]
        return float(0.5 * np.log((product + s) / (product - s)))

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return dρ/(1 − ρ²), with dρ = dΣ_ij/(σ_i σ_j) − ½ ρ (dΣ_ii/Σ_ii + dΣ_jj/Σ_jj)."""
        i, j = self.row, self.column
        a, b = covariance[i, i], covariance[j, j]
        rho = covariance[i, j] / np.sqrt(a * b)
        out = np.zeros_like(covariance)
        out[i, j] = out[j, i] = 0.5 / np.sqrt(a * b)
        out[i, i], out[j, j] = -0.5 * rho / a, -0.5 * rho / b
        return np.zeros(mean.size), out / (1.0 - rho * rho)


@dataclass(frozen=True)
class CovarianceOf:
    """A covariance."""

    row: int
    column: int

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return Σ_ij."""
        return float(covariance[self.row, self.column])

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return one, shared by the two entries."""
        out = np.zeros_like(covariance)
        out[self.row, self.column] += 0.5
        out[self.column, self.row] += 0.5
        return np.zeros(mean.size), out


@dataclass(frozen=True)
class ColumnFunctionOf:
    """A smooth function of the mean and the standard deviation of one column, in units of the table."""

    column: int
    centre: float
    scale: float
    function: Callable[[float, float], float]

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return f(μ, σ)."""
        return self.function(*self._place(mean, covariance))

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return central differences; dσ = dΣ_jj/(2σ)."""
        mu, sigma = self._place(mean, covariance)
        h, f = DIFFERENCE * sigma, self.function
        of_mean, of_covariance = np.zeros(mean.size), np.zeros_like(covariance)
        j = self.column
        of_mean[j] = self.scale * (f(mu + h, sigma) - f(mu - h, sigma)) / (2.0 * h)
        slope = (f(mu, sigma + h) - f(mu, sigma - h)) / (2.0 * h)
        of_covariance[j, j] = 0.5 * slope * self.scale**2 / sigma
        return of_mean, of_covariance

    def _place(self, mean: Floats, covariance: Floats) -> tuple[float, float]:
        j = self.column
        sigma = self.scale * float(np.sqrt(covariance[j, j]))
        return self.centre + self.scale * float(mean[j]), sigma


@dataclass(frozen=True)
class FunctionOf:
    """Any smooth function of mean and covariance, by differences."""

    function: Callable[[Floats, Floats], float]

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return the function."""
        return self.function(mean, covariance)

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return central differences."""
        d, deviations = mean.size, np.sqrt(np.diag(covariance))
        small = DIFFERENCE * deviations
        lengths = pack(small, np.outer(small, deviations))
        slopes = np.empty(lengths.size)
        for k, along in enumerate(np.diag(lengths)):
            move, change = unpack(along, d)
            up = self.function(mean + move, covariance + change)
            down = self.function(mean - move, covariance - change)
            slopes[k] = (up - down) / (2.0 * lengths[k])
        # An entry off the diagonal moves with its mirror image.
        slopes[d:] /= stands_for(d)
        return unpack(slopes, d)


class Intervals:
    """Confidence intervals of one level, each kind of them made when it is asked for.

    Attributes
    ----------
    level : float
    kind : str
        How they were asked for.
    mean, standard_deviation : Limits of shape (d,)
    covariance, correlation : Limits of shape (d, d)
    methods : mapping
        How each was found, by name: arrays of "wald" (from standard errors), "profile", "bootstrap", or
        "known" where there is nothing to find.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
    >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
    >>> found = fit.confidence_interval(0.9)
    >>> found.level, found.mean.lower.shape, found.correlation.upper.shape
    (0.9, (2,), (2, 2))
    >>> bool(found.mean.lower[0] < fit.mean[0] < found.mean.upper[0])
    True
    >>> found.methods["mean"]
    array(['wald', 'wald'], dtype='<U9')
    """

    def __init__(
        self,
        level: float,
        kind: str,
        find: Callable[[str], tuple[Limits, Methods]],
        label: Callable[[Floats], Any] | None = None,
    ) -> None:
        self.level, self.kind = level, kind
        self.find, self._label = find, label
        self._found: dict[str, tuple[Limits, Methods]] = {}

    @property
    def mean(self) -> Limits:
        """Of the means."""
        return self._limits("mean")

    @property
    def standard_deviation(self) -> Limits:
        """Of the standard deviations."""
        return self._limits("standard_deviation")

    @property
    def covariance(self) -> Limits:
        """Of variances and covariances."""
        return self._limits("covariance")

    @property
    def correlation(self) -> Limits:
        """Of the correlations."""
        return self._limits("correlation")

    @property
    def methods(self) -> Mapping[str, Methods]:
        """How each was found."""
        return _Methods(self._one)

    def without_labels(self) -> Intervals:
        """Return the same as plain arrays, where the table was a frame that has labels.

        Returns
        -------
        Intervals

        Examples
        --------
        >>> import halfseen as hs, pandas as pd
        >>> frame = pd.DataFrame({"lead": [1.2, 2.4, 1.9, 3.1], "zinc": [2.0, 2.9, 2.2, 4.1]})
        >>> found = hs.fit(frame, random_state=0).confidence_interval(kind="wald")
        >>> type(found.mean.lower).__name__, type(found.without_labels().mean.lower).__name__
        ('Series', 'ndarray')
        """
        plain = Intervals(self.level, self.kind, self._one)
        return self if self._label is None else plain

    def _one(self, name: str) -> tuple[Limits, Methods]:
        if name not in self._found:
            limits, methods = self.find(name)
            # The summary and the page show the same arrays.
            for array in (*limits, methods):
                array.setflags(write=False)
            self._found[name] = limits, methods
        return self._found[name]

    def _limits(self, name: str) -> Limits:
        found = self._one(name)[0]
        return found if self._label is None else Limits(*map(self._label, found))

    def __repr__(self) -> str:
        return f"Intervals(level={self.level:g}, kind={self.kind!r})"


class _Methods(Mapping[str, Methods]):
    """How intervals were found, by kind; those that are not asked for are not made."""

    def __init__(self, find: Callable[[str], tuple[Limits, Methods]]) -> None:
        self._find = find

    def __getitem__(self, name: str) -> Methods:
        if name not in NAMES:
            raise KeyError(name)
        return self._find(name)[1]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    def __repr__(self) -> str:
        return repr(dict(self))
