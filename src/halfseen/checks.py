"""Checks of arguments that several modules need, each with its sentence."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def positive_number(name: str, value: Any) -> float:
    """Return a finite number above zero."""
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Real)
        or not 0.0 < float(value) < math.inf
    ):
        raise InputError(f"{name} must be above 0; got {value!r}.")
    return float(value)


def share(name: str, value: Any, example: str = "0.95") -> float:
    """Return a number strictly between 0 and 1."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not 0.0 < float(value) < 1.0:
        raise InputError(f"{name} must lie between 0 and 1, such as {example}; got {value!r}.")
    return float(value)


def finite_vector(name: str, value: Any, size: int | None = None) -> NDArray[np.float64]:
    """Return a vector of finite numbers, of a given size where one is given."""
    try:
        vector = np.atleast_1d(np.array(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a vector of numbers; got {value!r}.") from None
    if vector.ndim != 1 or (size is not None and vector.size != size):
        wanted = "a vector" if size is None else f"a vector of {size} numbers"
        raise InputError(f"{name} must be {wanted}; got shape {vector.shape}.")
    if not np.isfinite(vector).all():
        where = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise InputError(f"{name} must be finite; entry {where} is {vector[where]}.")
    return vector
