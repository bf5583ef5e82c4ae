"""Scales on which skewed columns are nearly normal, and the way back.

Limits are transformed with the values: ``<0.05`` becomes ``< log 0.05``. A limit at or below the least
value of a scale's domain hides nothing, so it becomes -inf. Where the normal distribution of
a transformed column reaches below what the scale can have (square roots and powers below zero),
the way back leads to that least value.
"""

from __future__ import annotations

import difflib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import boxcox, boxcox1p, inv_boxcox, inv_boxcox1p

from halfseen.data.interval_data import IntervalData
from halfseen.data.names import matching
from halfseen.data.table import Table, check_finite
from halfseen.errors import InputError, argument
from halfseen.missingness.base import Missingness

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Transform(ABC):
    """An increasing function of a column: to the scale of the model, and back."""

    # Values must lie above this; at it too where the domain is closed.
    least: ClassVar[float] = -math.inf
    closed: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """How the transform is written."""

    @abstractmethod
    def forward(self, x: ArrayLike) -> Floats:
        """Return values on the scale of the model."""

    @abstractmethod
    def inverse(self, z: ArrayLike) -> Floats:
        """Return values in the original units."""

    @abstractmethod
    def log_derivative(self, x: ArrayLike) -> Floats:
        """Return the logarithm of the derivative of ``forward``."""

    def label(self, column: str) -> str:
        """How the transformed column is called."""
        return f"{self.name}({column})"

    def end(self, limit: ArrayLike) -> Floats:
        """Transform a limit: infinite ones stay, and those outside of the domain become -inf."""
        limit = np.asarray(limit, dtype=float)
        above = limit >= self.least if self.closed else limit > self.least
        inside = np.isfinite(limit) & above
        safe = np.where(inside, limit, 1.0)
        return np.where(inside, self.forward(safe), np.where(np.isposinf(limit), np.inf, -np.inf))

    @property
    def kink(self) -> float | None:
        """Where the way back is not smooth, on the scale of the model."""
        return None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Identity(Transform):
    """The column as it is."""

    name: ClassVar[str] = "none"

    def forward(self, x: ArrayLike) -> Floats:
        """Return the values."""
        return np.asarray(x, dtype=float)

    def inverse(self, z: ArrayLike) -> Floats:
        """Return the values."""
        return np.asarray(z, dtype=float)

    def log_derivative(self, x: ArrayLike) -> Floats:
        """Return zeros."""
        return np.zeros(np.shape(x))

    def label(self, column: str) -> str:
        """How the column is called."""
        return column


@dataclass(frozen=True)
class Log(Transform):
    """Logarithms, natural ones unless the base is 10."""

    base: int | None = None
    least: ClassVar[float] = 0.0

    @property
    def name(self) -> str:
        """How the transform is written."""
        return "log10" if self.base == 10 else "log"

    def forward(self, x: ArrayLike) -> Floats:
        """Return logarithms."""
        return np.log10(x) if self.base == 10 else np.log(x)

    def inverse(self, z: ArrayLike) -> Floats:
        """Return powers of the base."""
        with np.errstate(over="ignore"):
            return np.power(10.0, z) if self.base == 10 else np.exp(z)

    def log_derivative(self, x: ArrayLike) -> Floats:
        """Return −log x, less log log 10 for base 10."""
        return -np.log(x) - (math.log(math.log(10.0)) if self.base == 10 else 0.0)


@dataclass(frozen=True)
class SquareRoot(Transform):
    """Square roots."""

    name: ClassVar[str] = "sqrt"
    least: ClassVar[float] = 0.0
    closed: ClassVar[bool] = True

    @property
    def kink(self) -> float:
        """Below it everything stands for zero."""
        return 0.0

    def forward(self, x: ArrayLike) -> Floats:
        """Return square roots."""
        return np.sqrt(x)

    def inverse(self, z: ArrayLike) -> Floats:
        """Return squares; what lies below zero stands for zero."""
        return np.square(np.maximum(z, 0.0))

    def log_derivative(self, x: ArrayLike) -> Floats:
        """Return −log(2√x), infinite at zero."""
        with np.errstate(divide="ignore"):
            return -math.log(2.0) - 0.5 * np.log(x)


@dataclass(frozen=True)
class BoxCox(Transform):
    """(x^power − 1)/power, and log x where the power is 0; None until the power is learned."""

    power: float | None = None
    least: ClassVar[float] = 0.0
    word: ClassVar[str] = "boxcox"

    @property
    def name(self) -> str:
        """How the transform is written."""
        return self.word if self.power is None else f"{self.word}({self.power!r})"

    def label(self, column: str) -> str:
        """How the transformed column is called."""
        return column if self.power is None else f"{self.word}({column}, {self.power:.3g})"

    @property
    def kink(self) -> float | None:
        """The end of the range of the transform."""
        return -1.0 / self.power if self.power else None

    def forward(self, x: ArrayLike) -> Floats:
        """Return the transformed values."""
        assert self.power is not None
        return np.asarray(boxcox(np.asarray(x, dtype=np.float64), self.power), dtype=np.float64)

    def inverse(self, z: ArrayLike) -> Floats:
        """Return original values; zero or infinity beyond the range of the transform."""
        z = np.asarray(z, dtype=float)
        assert self.power is not None
        if self.power == 0.0:
            return np.asarray(inv_boxcox(z, 0.0))
        inside = self.power * z > -1.0
        back = inv_boxcox(np.where(inside, z, 0.0), self.power)
        return np.where(inside, back, 0.0 if self.power > 0 else np.inf)

    def log_derivative(self, x: ArrayLike) -> Floats:
        """Return (power − 1) log x."""
        assert self.power is not None
        return (self.power - 1.0) * np.log(x)


@dataclass(frozen=True)
class YeoJohnson(BoxCox):
    """Box-Cox of x + 1 above zero, and of 1 − x with 2 − power, mirrored, below."""

    least: ClassVar[float] = -math.inf
    word: ClassVar[str] = "yeojohnson"

    @property
    def kink(self) -> float:
        """Where the two halves meet."""
        return 0.0

    def forward(self, x: ArrayLike) -> Floats:
        """Return the transformed values."""
        x = np.asarray(x, dtype=float)
        assert self.power is not None
        above = boxcox1p(np.maximum(x, 0.0), self.power)
        below = -boxcox1p(np.maximum(-x, 0.0), 2.0 - self.power)
        return np.where(x >= 0.0, above, below)

    def inverse(self, z: ArrayLike) -> Floats:
        """Return original values; infinite beyond the range of the transform."""
        z = np.asarray(z, dtype=float)
        assert self.power is not None
        sides = []
        for side, power in (
            (np.maximum(z, 0.0), self.power),
            (np.maximum(-z, 0.0), 2 - self.power),
        ):
            inside = power * side > -1.0
            back = inv_boxcox1p(np.where(inside, side, 0.0), power)
            sides.append(np.where(inside, back, np.inf))
        return np.where(z >= 0.0, sides[0], -sides[1])

    def log_derivative(self, x: ArrayLike) -> Floats:
        """Return ±(power − 1) log(1 + |x|)."""
        x = np.asarray(x, dtype=float)
        assert self.power is not None
        return np.sign(x) * (self.power - 1.0) * np.log1p(np.abs(x))


NAMED: dict[str, Transform] = {
    t.name: t for t in (Identity(), Log(), Log(10), SquareRoot(), BoxCox(), YeoJohnson())
}
_WITH_POWER = re.compile(r"(boxcox|yeojohnson)\(\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*\)")


def parse_transform(text: str) -> Transform:
    """Read one transform: none, log, log10, sqrt, boxcox, yeojohnson, or boxcox(0.3).

    Examples
    --------
    >>> from halfseen.data.transforms import parse_transform
    >>> parse_transform("log10").forward([1.0, 100.0])
    array([0., 2.])
    >>> parse_transform("Box-Cox(0.5)")
    BoxCox(power=0.5)
    """
    word = text.strip().lower().replace("-", "", 1) if text.lower().startswith("box-") else text
    word = re.sub(r"^yeo[- ]", "yeo", word.strip().lower())
    if word in NAMED:
        return NAMED[word]
    found = _WITH_POWER.fullmatch(word)
    try:
        power = float(found[2]) if found else math.nan
    except ValueError:
        power = math.nan
    if found is None or not math.isfinite(power):
        close = ["log"] if word == "ln" else difflib.get_close_matches(word, NAMED, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(
            f"{text!r} is no transform; choose {', '.join(NAMED)}, or a power such as boxcox(0.3).{hint}"
        )
    return (BoxCox if found[1] == "boxcox" else YeoJohnson)(power)


def read_transforms(given: Any, names: Sequence[str]) -> tuple[Transform, ...]:
    """Read the transforms of columns: one for all, one for each, or by name."""
    if isinstance(given, str | Transform):
        return (_one(given),) * len(names)
    if isinstance(given, Mapping):
        given = {
            one: scale
            for name, scale in given.items()
            for one in matching(str(name), names, argument("transforms"))
        }
        for name in given:
            if name not in names:
                close = difflib.get_close_matches(str(name), names, 1)
                hint = f"; did you mean {close[0]!r}?" if close else "."
                raise InputError(
                    f"a transform is given for {name!r}, but the columns of the data are "
                    f"{', '.join(list(names)[:8])}{', …' if len(names) > 8 else ''}{hint}"
                )
        return tuple(_one(given.get(name, "none")) for name in names)
    if not isinstance(given, Sequence):
        raise InputError(
            "transforms must be a word such as 'log', a dict from columns to words, or one word for "
            f"each column; got {given!r}."
        )
    if len(given) != len(names):
        raise InputError(f"transforms must be {len(names)}, one for each column; got {len(given)}.")
    return tuple(map(_one, given))


def _one(given: Any) -> Transform:
    if isinstance(given, Transform):
        return given
    if isinstance(given, str):
        return parse_transform(given)
    raise InputError(f"a transform is a word such as 'log'; got {given!r}.")


def transform_table(
    X: Table | IntervalData, transforms: Sequence[Transform]
) -> Table | IntervalData:
    """Bring a table to the scale of the model, its limits with it."""
    if isinstance(X, IntervalData):
        return _transform_intervals(X, transforms)
    # In double precision: a value that single precision put on its limit is to stay there.
    values = np.asarray(X.values, dtype=float)
    check_finite(values, X.names)
    out = np.empty(values.shape)
    for j, transform in enumerate(transforms):
        column = values[:, j]
        known = ~np.isnan(column)
        _check_domain(column, known, transform, X.names[j])
        out[:, j] = np.nan
        out[known, j] = transform.forward(column[known])
        _check_result(column, out[:, j], known, transform, X.names[j])
    return Table(out, X.names)


def _transform_intervals(data: IntervalData, transforms: Sequence[Transform]) -> IntervalData:
    lower, upper = data.lower.copy(), data.upper.copy()
    seen = data.seen
    for j, transform in enumerate(transforms):
        values, known = data.lower[:, j], seen[:, j]
        _check_domain(values, known, transform, data.names[j])
        lower[~known, j] = transform.end(data.lower[~known, j])
        upper[~known, j] = transform.end(data.upper[~known, j])
        lower[known, j] = upper[known, j] = transform.forward(values[known])
        _check_result(values, lower[:, j], known, transform, data.names[j])
        empty = np.flatnonzero(np.isneginf(upper[:, j]))
        if empty.size:
            row = int(empty[0])
            raise InputError(
                f"the cell lies below {data.upper[row, j]:.12g}, but "
                f"{transform.name} is for values above {transform.least:g}. Choose another transform "
                "for this column, or correct the cell.",
                row,
                data.names[j],
            )
    return data.with_ends(lower, upper)


def _check_domain(
    values: Floats, known: NDArray[np.bool_], transform: Transform, name: str
) -> None:
    low = values < transform.least if transform.closed else values <= transform.least
    wrong = np.flatnonzero(known & low)
    if wrong.size and math.isfinite(transform.least):
        row = int(wrong[0])
        more = f" ({wrong.size} such values)" if wrong.size > 1 else ""
        other = "yeojohnson" if values[row] < 0.0 or transform.closed else "sqrt or yeojohnson"
        stand, which = ("they stand", "them") if wrong.size > 1 else ("it stands", "it")
        raise InputError(
            f"{transform.name} is for values above {transform.least:g}; got "
            f"{values[row]:.12g}{more}. If {stand} for what was not detected, set {which} to NaN and "
            f"state the limit; else choose {other} for this column, or no transform.",
            row,
            name,
        )


def _check_result(
    values: Floats, out: Floats, known: NDArray[np.bool_], transform: Transform, name: str
) -> None:
    wrong = np.flatnonzero(known & ~np.isfinite(out))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"{transform.name} of {values[row]:.12g} is too large to be "
            "represented. Rescale the column, or choose another transform.",
            row,
            name,
        )


def transform_rule(
    rule: Missingness | None, transforms: Sequence[Transform], names: Sequence[str]
) -> Missingness | None:
    """Bring a rule, which speaks in original units, to the scale of the model."""
    return None if rule is None else rule.for_columns(names).transformed(transforms, names)


def back_to_units(Z: Floats, transforms: Sequence[Transform] | None) -> Floats:
    """Bring a table from the scale of the model to the original units."""
    if transforms is None:
        return Z
    return np.stack([t.inverse(Z[..., j]) for j, t in enumerate(transforms)], axis=-1)


def log_derivatives(
    values: Floats, transforms: Sequence[Transform], names: Sequence[str]
) -> Floats:
    """Return, for each row, the sum of the log-derivatives at its seen values."""
    out = np.zeros(len(values))
    for j, transform in enumerate(transforms):
        seen = ~np.isnan(values[:, j])
        slope = transform.log_derivative(values[seen, j])
        if not np.isfinite(slope).all():
            row = int(np.flatnonzero(seen)[np.flatnonzero(~np.isfinite(slope))[0]])
            raise InputError(
                f"{transform.name} is infinitely steep at "
                f"{values[row, j]:.12g}, so the likelihood in original units is infinite there.",
                row,
                names[j],
            )
        out[seen] += slope
    return out
