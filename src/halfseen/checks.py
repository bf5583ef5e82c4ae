"""Checks of arguments that several modules need, each with its sentence."""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least ``least``."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or is_time(value) or value < least:
        raise InputError(
            f"{name} must be a whole number of at least {least}; got {reprlib.repr(value)}."
        )
    return int(value)


def positive_number(name: str, value: Any) -> float:
    """Return a finite number above zero."""
    number = _float_or_nan(value)
    if not 0.0 < number < math.inf:
        raise InputError(f"{name} must be above 0; got {reprlib.repr(value)}.")
    return number


def share(name: str, value: Any, example: str = "0.95") -> float:
    """Return a number strictly between 0 and 1."""
    number = _float_or_nan(value)
    if not 0.0 < number < 1.0:
        raise InputError(
            f"{name} must lie between 0 and 1, such as {example}; got {reprlib.repr(value)}."
        )
    return number


def real_number(name: str, value: Any) -> float:
    """Return a number, which may be infinite but not NaN."""
    number = _float_or_nan(value)
    if math.isnan(number):
        raise InputError(f"{name} must be a number; got {reprlib.repr(value)}.")
    return number


def _float_or_nan(value: Any) -> float:
    """Return a real number as a float, and NaN for anything else."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real) or is_time(value):
        return math.nan
    return _as_float(value)


def is_time(value: Any) -> bool:
    """Whether a value is a span of time, which NumPy counts among the integers."""
    return isinstance(value, np.timedelta64)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_iterable(value: Any) -> bool:
    """Whether a value can be gone through; an array without dimensions only looks like it."""
    return isinstance(value, Iterable) and not (isinstance(value, np.ndarray) and value.ndim == 0)


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Return ``np.asarray(value)``; what goes wrong in an object of somebody else is told as such."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"{name}: a {type(value).__qualname__} was passed, which cannot be made an array: "
            f"{type(error).__name__}: {error}."
        ) from error


def real_array(name: str, value: Any, kind: str = "numbers") -> NDArray[np.float64]:
    """Return an array of doubles, NaN where a cell is None or masked; not copied if it is one.

    Texts, dates, complex numbers and other objects are refused, never converted. What a double cannot
    hold becomes infinite, for a check of its own.
    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    try:
        masked = np.ma.getmaskarray(value) if np.ma.isMaskedArray(value) else None
        array = as_array(name, value)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} must be {kind}; got {reprlib.repr(value)}.") from None
    if array.dtype.kind == "O":
        array = _numbers_of_objects(f"{name} must be {kind}", array)
    elif array.dtype.kind not in "fiub":
        raise InputError(
            f"{name} must be {kind}; got {reprlib.repr(value)}, of dtype {array.dtype}."
        )
    with np.errstate(over="ignore"):
        array = np.asarray(array, dtype=np.float64)
    return array if masked is None else np.where(masked, np.nan, array)


def _numbers_of_objects(wanted: str, array: NDArray[Any]) -> NDArray[np.float64]:
    """Read objects that are all real numbers or None; name the first that is neither."""
    out = np.empty(array.shape)
    for where, item in np.ndenumerate(array):
        # The NA of pandas is neither equal to itself nor not.
        if item is None or type(item).__name__ == "NAType":
            out[where] = np.nan
        elif isinstance(item, numbers.Real | Decimal | np.bool_) and not is_time(item):
            out[where] = _as_float(item)
        else:
            place = f"; entry {', '.join(map(str, where))} is" if where else "; got"
            raise InputError(f"{wanted}{place} {reprlib.repr(item)}.")
    return out


def finite_vector(name: str, value: Any, size: int | None = None) -> NDArray[np.float64]:
    """Return a vector of finite numbers, of a given size where one is given."""
    # A copy, so that whoever passed it may change theirs.
    vector = np.atleast_1d(np.array(real_array(name, value, "a vector of numbers")))
    if vector.ndim != 1 or (size is not None and vector.size != size):
        wanted = "a vector" if size is None else f"a vector of {size} numbers"
        raise InputError(f"{name} must be {wanted}; got shape {vector.shape}.")
    if not np.isfinite(vector).all():
        where = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise InputError(f"{name} must be finite; entry {where} is {vector[where]}.")
    return vector
