"""Where a coordinate is shown: the paper's ``S_i``.

Intervals and their unions are exact. ``Predicate`` is any vectorised membership function, and
``Probability`` any function into [0, 1], for values that are shown only sometimes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import is_iterable, real_array
from halfseen.errors import InputError, warn

Floats = NDArray[np.float64]
# To another scale, or back.
Increasing = Callable[[ArrayLike], Floats]


class SeenSet(ABC):
    """A set of real numbers, or a probability of being shown at each of them.

    Examples
    --------
    >>> import halfseen as hs
    >>> everywhere_but = ~hs.between(1, 2)
    >>> everywhere_but, everywhere_but & hs.at_least(0)
    (below(1) | above(2), [0, 1) | above(2))
    """

    @abstractmethod
    def probability(self, x: ArrayLike) -> Floats:
        """Probability that a value ``x`` is shown: 0 or 1 unless the set is a ``Probability``.

        Parameters
        ----------
        x : array-like

        Returns
        -------
        array of the shape of x

        Examples
        --------
        >>> import halfseen as hs
        >>> (~hs.Probability(lambda x: x / 4)).probability([1.0, 3.0])
        array([0.75, 0.25])
        """

    @property
    @abstractmethod
    def pieces(self) -> tuple[Interval, ...] | None:
        """The intervals that make up the set, in order; None where only a function is known."""

    @abstractmethod
    def __invert__(self) -> SeenSet: ...

    def contains(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Whether a value ``x`` can be shown.

        Parameters
        ----------
        x : array-like

        Returns
        -------
        boolean array of the shape of x

        Examples
        --------
        >>> import halfseen as hs
        >>> hs.at_least(0.5).contains([0.4, 0.5])
        array([False,  True])
        """
        return self.probability(x) > 0.0

    @abstractmethod
    def mapped(self, end: Increasing, inverse: Increasing) -> SeenSet:
        """Return the set on another, increasing scale.

        ``end`` takes limits there, -inf and inf to themselves; ``inverse`` leads back.
        """

    def __or__(self, other: SeenSet) -> SeenSet:
        if not isinstance(other, SeenSet):
            return NotImplemented
        if self == everything or other == everything:
            return everything
        if self.pieces is not None and other.pieces is not None:
            return _join(self.pieces + other.pieces)
        return ~(~self & ~other)

    def __and__(self, other: SeenSet) -> SeenSet:
        if not isinstance(other, SeenSet):
            return NotImplemented
        if self == everything or other == everything:
            return other if self == everything else self
        if self.pieces is not None and other.pieces is not None:
            return _meet(self.pieces, other.pieces)
        both = (self, other)
        text = f"({self!r} & {other!r})"
        if any(isinstance(part, Probability) for part in both):
            return Probability(lambda x: self.probability(x) * other.probability(x), text)
        return Predicate(lambda x: self.contains(x) & other.contains(x), text)


@dataclass(frozen=True)
class Interval(SeenSet):
    """An interval of the real line.

    Prefer ``at_least``, ``at_most``, ``between`` and ``everything``. Whether an end belongs to the
    interval matters only for values that sit exactly on it.

    Parameters
    ----------
    lower, upper : float
        The ends; -inf and inf by default.
    closed_lower, closed_upper : bool
        Whether the ends belong to it.

    Examples
    --------
    >>> import halfseen as hs
    >>> ~hs.at_least(0.5)
    below(0.5)
    >>> hs.at_least(0.5).contains([0.4, 0.5])
    array([False,  True])
    """

    lower: float = -math.inf
    upper: float = math.inf
    closed_lower: bool = True
    closed_upper: bool = True

    def __post_init__(self) -> None:
        ends = [real_array("the ends of an interval", end) for end in (self.lower, self.upper)]
        if any(end.ndim for end in ends):
            raise InputError(
                f"the ends of an interval must be numbers; got {self.lower!r} and {self.upper!r}."
            )
        lower, upper = (float(end) for end in ends)
        if math.isnan(lower) or math.isnan(upper):
            raise InputError(f"the ends of an interval may not be NaN; got {lower} and {upper}.")
        if not lower < upper:
            raise InputError(
                f"the interval from {lower:g} to {upper:g} is empty: a value would never be seen "
                "in it. The lower end must be below the upper end"
                + (f"; did you mean between({upper:g}, {lower:g})?" if lower > upper else ".")
            )
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def pieces(self) -> tuple[Interval, ...]:
        """The interval itself."""
        return (self,)

    def contains(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Whether each value lies in the interval."""
        x = real_array("values", x)
        above = x >= self.lower if self.closed_lower else x > self.lower
        below = x <= self.upper if self.closed_upper else x < self.upper
        return above & below

    def probability(self, x: ArrayLike) -> Floats:
        """1 inside, 0 outside."""
        return self.contains(x).astype(float)

    def mapped(self, end: Increasing, inverse: Increasing) -> Interval:
        """Return the interval between the mapped ends."""
        lower, upper = float(end(self.lower)), float(end(self.upper))
        if lower == upper:
            raise InputError(f"on the transformed scale no value lies in {self!r}.")
        return Interval(lower, upper, self.closed_lower, self.closed_upper)

    def __invert__(self) -> SeenSet:
        return _complement((self,))

    def __repr__(self) -> str:
        low, high = _number(self.lower), _number(self.upper)
        if self.lower == -math.inf:
            if self.upper == math.inf:
                return "everything"
            return f"at_most({high})" if self.closed_upper else f"below({high})"
        if self.upper == math.inf:
            return f"at_least({low})" if self.closed_lower else f"above({low})"
        if self.closed_lower and self.closed_upper:
            return f"between({low}, {high})"
        left, right = "[" if self.closed_lower else "(", "]" if self.closed_upper else ")"
        return f"{left}{low}, {high}{right}"


@dataclass(frozen=True)
class Union(SeenSet):
    """Two or more intervals that do not touch, in order. Made by ``A | B`` and ``~A``.

    Parameters
    ----------
    intervals : iterable of Interval
        Those that touch or overlap are joined.

    Examples
    --------
    >>> import halfseen as hs
    >>> shown = hs.between(0, 1) | hs.at_least(3)
    >>> shown.contains([0.5, 2.0, 4.0])
    array([ True, False,  True])
    >>> ~shown
    below(0) | (1, 3)
    """

    intervals: tuple[Interval, ...]

    def __init__(self, intervals: Iterable[Interval]) -> None:
        parts: tuple[Any, ...] = tuple(intervals) if is_iterable(intervals) else (intervals,)
        if not all(isinstance(part, Interval) for part in parts):
            raise InputError("a union is made of intervals; use A | B to join other sets.")
        joined = _join(parts) if parts else None
        if joined is None or joined.pieces is None:
            raise InputError("a union needs at least one interval; got none.")
        object.__setattr__(self, "intervals", joined.pieces)

    @property
    def pieces(self) -> tuple[Interval, ...]:
        """The intervals, in order."""
        return self.intervals

    def contains(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Whether each value lies in one of the intervals."""
        x = real_array("values", x)
        inside = np.zeros(x.shape, dtype=bool)
        for piece in self.intervals:
            inside |= piece.contains(x)
        return inside

    def probability(self, x: ArrayLike) -> Floats:
        """1 inside, 0 outside."""
        return self.contains(x).astype(float)

    def mapped(self, end: Increasing, inverse: Increasing) -> SeenSet:
        """Return the union of the mapped intervals that are not empty on the new scale."""
        reach = [piece for piece in self.intervals if float(end(piece.upper)) > -math.inf]
        if not reach:
            raise InputError(f"on the transformed scale no value lies in {self!r}.")
        return _join(tuple(piece.mapped(end, inverse) for piece in reach))

    def __invert__(self) -> SeenSet:
        return _complement(self.intervals)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.intervals))


class _Asked(SeenSet):
    """A set known only through a function."""

    def __init__(self, function: Callable[[Floats], ArrayLike], name: str | None = None) -> None:
        kind = type(self).__name__
        if not callable(function):
            raise InputError(f"{kind} takes a function of an array; got {function!r}.")
        self.function = function
        self.name = name or f"{kind}({getattr(function, '__name__', 'function')})"

    @property
    def pieces(self) -> None:
        """Not known."""
        return None

    def _answer(self, x: Floats) -> NDArray[Any]:
        """Ask the function, and check that it answers for each value."""
        try:
            answer = np.asarray(self.function(x))
        except Exception as error:
            raise InputError(
                f"{self.name} failed on an array of shape {x.shape}: {error}. It is given a NumPy "
                "array, and must answer for each value; write (x > 0) & (x < 1), not 0 < x < 1."
            ) from error
        if answer.shape != x.shape:
            raise InputError(
                f"{self.name} must answer with one entry for each value: it was given shape {x.shape} "
                f"and returned shape {answer.shape}. Write it with array operations."
            )
        return answer

    def __repr__(self) -> str:
        return self.name


class Predicate(_Asked):
    """A set known only through a membership function.

    The exact solvers find the ends of its intervals by scanning about 16 000 points, dense where
    the data are, and bisecting; pieces narrower than a thousandth of the spread of the seen values
    can escape the scan. ``truncated_sgd`` and ``truncation_psgd`` ask the function alone.

    Parameters
    ----------
    function : callable
        Takes an array of values, returns an array of booleans of the same shape.
    name : str, optional
        How the set is called in messages.

    Examples
    --------
    >>> import halfseen as hs
    >>> odd = hs.Predicate(lambda x: (abs(x) > 1) & (abs(x) < 3))
    >>> odd.contains([0.0, 2.0])
    array([False,  True])
    """

    def contains(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Ask the function."""
        x = real_array("values", x)
        answer = self._answer(x)
        if answer.dtype != bool and not np.isin(answer, (0, 1)).all():
            raise InputError(
                f"{self.name} must answer True or False for each value; got "
                f"{answer.ravel()[:3].tolist()}. For probabilities use Probability."
            )
        return answer.astype(bool)

    def probability(self, x: ArrayLike) -> Floats:
        """1 inside, 0 outside."""
        return self.contains(x).astype(float)

    def mapped(self, end: Increasing, inverse: Increasing) -> Predicate:
        """Ask the function about original values."""
        return Predicate(lambda z: self.contains(inverse(z)), self.name)

    def __invert__(self) -> Predicate:
        return Predicate(lambda x: ~self.contains(x), f"~{self.name}")


class Probability(_Asked):
    """A value x is shown with probability ``function(x)``: the paper's sets ``S_i : R → [0, 1]``.

    Parameters
    ----------
    function : callable
        Takes an array of values, returns an array of numbers between 0 and 1.
    name : str, optional
        How the set is called in messages.

    Examples
    --------
    >>> import halfseen as hs
    >>> from scipy.special import expit
    >>> hs.Probability(expit).probability([0.0])
    array([0.5])
    """

    def probability(self, x: ArrayLike) -> Floats:
        """Ask the function."""
        x = real_array("values", x)
        answer = self._answer(x).astype(float, copy=False)
        wrong = ~((answer >= 0.0) & (answer <= 1.0))
        if wrong.any():
            raise InputError(
                f"{self.name} must answer between 0 and 1; at {x[wrong].flat[0]:g} it gave "
                f"{answer[wrong].flat[0]:g}."
            )
        return answer

    def mapped(self, end: Increasing, inverse: Increasing) -> Probability:
        """Ask the function about original values."""
        return Probability(lambda z: self.probability(inverse(z)), self.name)

    def __invert__(self) -> Probability:
        return Probability(lambda x: 1.0 - self.probability(x), f"~{self.name}")


def at_least(limit: float) -> Interval:
    """Values from ``limit`` upwards are seen.

    Parameters
    ----------
    limit : float
        The lowest value that is seen.

    Returns
    -------
    Interval

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.at_least(0.5)
    at_least(0.5)
    """
    return Interval(limit, math.inf)


def at_most(limit: float) -> Interval:
    """Values up to ``limit`` are seen.

    Parameters
    ----------
    limit : float
        The highest value that is seen.

    Returns
    -------
    Interval

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.at_most(100) | hs.at_least(200)
    at_most(100) | at_least(200)
    """
    return Interval(-math.inf, limit)


def between(lower: float, upper: float) -> Interval:
    """Values from ``lower`` to ``upper`` are seen.

    Parameters
    ----------
    lower, upper : float
        The lowest and the highest value that are seen.

    Returns
    -------
    Interval

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.between(-40, 85).contains([20, 100])
    array([ True, False])
    """
    return Interval(lower, upper)


everything = Interval()


def _join(parts: tuple[Interval, ...]) -> SeenSet:
    """Join intervals into an ``Interval`` or a ``Union``; warn where they overlap."""
    ordered = sorted(parts, key=lambda p: (p.lower, not p.closed_lower))
    joined = [ordered[0]]
    for piece in ordered[1:]:
        last = joined[-1]
        if piece.lower < last.upper:
            warn(
                f"{last!r} and {piece!r} overlap between {_number(piece.lower)} and "
                f"{_number(min(last.upper, piece.upper))}; they are read as one interval. If that "
                "is meant, write it as one; if not, check the limits."
            )
        touching = piece.lower == last.upper and (piece.closed_lower or last.closed_upper)
        if not (piece.lower < last.upper or touching):
            joined.append(piece)
            continue
        if (piece.upper, piece.closed_upper) > (last.upper, last.closed_upper):
            joined[-1] = Interval(last.lower, piece.upper, last.closed_lower, piece.closed_upper)
    if len(joined) == 1:
        return joined[0]
    union = object.__new__(Union)
    object.__setattr__(union, "intervals", tuple(joined))
    return union


def _complement(pieces: tuple[Interval, ...]) -> SeenSet:
    gaps: list[Interval] = []
    start, closed = -math.inf, True
    for piece in pieces:
        if start < piece.lower:
            gaps.append(Interval(start, piece.lower, closed, not piece.closed_lower))
        start, closed = piece.upper, not piece.closed_upper
    if start < math.inf:
        gaps.append(Interval(start, math.inf, closed, True))
    if not gaps:
        raise InputError("the complement of everything is empty: no value would ever be seen.")
    return _join(tuple(gaps))


def _meet(left: tuple[Interval, ...], right: tuple[Interval, ...]) -> SeenSet:
    common: list[Interval] = []
    for a in left:
        for b in right:
            # The larger lower end wins; of two equal ends the open one does.
            lower, open_lower = max((a.lower, not a.closed_lower), (b.lower, not b.closed_lower))
            upper, closed_upper = min((a.upper, a.closed_upper), (b.upper, b.closed_upper))
            if lower < upper:
                common.append(Interval(lower, upper, not open_lower, closed_upper))
    if not common:
        raise InputError("the two sets have no interval in common: no value would ever be seen.")
    return _join(tuple(common))


def _number(value: float) -> str:
    return f"{value:.12g}"
