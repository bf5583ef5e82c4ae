"""Arrays that nobody should pass, and arrays that are as good as plain ones."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import halfseen as hs


def odd_arrays(good: NDArray[Any]) -> Iterator[tuple[str, Any]]:
    """Yield what may be refused in place of a good array, each under a name."""
    if good.dtype.kind in "fiub":
        yield from _odd_values(good)
        yield from _odd_types(good)
    yield from _odd_shapes(good)
    yield from _no_arrays(good)
    yield from odd_numbers()


def odd_numbers() -> Iterator[tuple[str, Any]]:
    """Yield what may be refused in place of a good number."""
    for value in (np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1e308, 1e-320, 1e18, 2.5, 0.999999):
        yield f"{value!r}", value
    for value in (0, -1, 1, 2**40, 10**400, -(10**400), True, None, 1j, "1", b"1", [], (1,), {}):
        yield f"{type(value).__name__} {str(value)[:9]}", value
    yield "float32", np.float32(0.5)
    yield "float16", np.float16(0.5)
    yield "longdouble", np.longdouble("1e4000")
    yield "int8", np.int8(3)
    yield "bool of NumPy", np.True_
    yield "a date", np.datetime64("2020-01-01")
    yield "a fraction", Fraction(1, 3)
    yield "a decimal", Decimal("0.5")


def _odd_values(good: NDArray[Any]) -> Iterator[tuple[str, Any]]:
    plain = good.astype(float)
    for name, value in (
        ("NaN", np.nan),
        ("inf", np.inf),
        ("-inf", -np.inf),
        ("1e308", 1e308),
        ("-1e308", -1e308),
        ("1e-320", 1e-320),
        ("0", 0.0),
        ("-1", -1.0),
        ("1e18", 1e18),
    ):
        yield f"all {name}", np.full_like(plain, value)
        one = plain.copy()
        one.flat[0] = value
        yield f"one {name}", one
    yield "times 1e308", plain * 1e300
    yield "times 1e-320", plain * 1e-310


def _odd_shapes(good: NDArray[Any]) -> Iterator[tuple[str, Any]]:
    yield "0-d", np.array(good.flat[0])
    if good.ndim:
        yield "no rows", good[:0]
        yield "one row", good[:1]
        yield "no columns", good[..., :0]
        yield "too wide", np.concatenate([good, good], axis=-1)
        yield "too narrow", good[..., 1:]
    yield "flat", good.ravel()
    yield "one dimension more", good[None]
    yield "two dimensions more", good[None, None]
    yield "axis of length 0", np.empty((0, 0, 0))
    if good.ndim == 2:
        yield "transposed", good.T


def _odd_types(good: NDArray[Any]) -> Iterator[tuple[str, Any]]:
    with np.errstate(all="ignore"):
        for kind in (bool, int, np.uint8, np.float32, np.float16, np.longdouble, complex, object):
            yield f"dtype {np.dtype(kind)}", np.where(np.isfinite(good), good, 0).astype(kind)
        whole = np.where(np.isfinite(good), good, 0).astype(np.int64)
    text = good.astype(object)
    text.flat[0] = "n/a"
    yield "a text among objects", text
    none = good.astype(object)
    none.flat[0] = None
    yield "None among objects", none
    large = good.astype(object)
    large.flat[0] = 10**400
    yield "a huge int among objects", large
    yield "texts", good.astype(str)
    yield "bytes", good.astype("S20")
    yield "dates", whole.astype("datetime64[D]")
    yield "times", whole.astype("timedelta64[s]")
    yield "structured", np.zeros(good.shape, dtype=[("a", float), ("b", int)])
    yield "void", np.zeros(good.shape, dtype="V8")
    yield "masked", np.ma.masked_array(good, mask=np.arange(good.size).reshape(good.shape) == 0)
    yield "all masked", np.ma.masked_all(good.shape)
    yield "longdouble beyond a double", np.full(good.shape, np.longdouble("1e4000"))


def _no_arrays(good: NDArray[Any]) -> Iterator[tuple[str, Any]]:
    yield "None", None
    yield "a text", "lead"
    yield "bytes alone", b"\x00"
    yield "an object", object()
    yield "a dict", {"lead": 1.0}
    yield "a ragged list", [[1.0], [1.0, 2.0]]
    yield "a set", {1.0, 2.0}
    yield "an empty list", []
    yield "a function", len
    yield "a type", float


def equal_arrays(good: NDArray[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the same numbers in other layouts; the answer must be the same to the bit."""
    frozen = good.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    wide = np.zeros([2 * size for size in good.shape], dtype=good.dtype)
    places = tuple(slice(None, None, 2) for _ in good.shape)
    wide[places] = good
    yield "every other row and column", wide[places]
    back = tuple(slice(None, None, -1) for _ in good.shape)
    yield "negative strides", good[back].copy()[back]
    yield "Fortran order", np.asfortranarray(good)
    yield "big-endian", good.astype(good.dtype.newbyteorder(">"))
    yield "nested lists", good.tolist()
    yield "unaligned", _unaligned(good)
    yield "broadcast and back", np.broadcast_to(good, (2, *good.shape))[1]
    yield "masked nowhere", np.ma.masked_array(good)


def _unaligned(good: NDArray[Any]) -> NDArray[Any]:
    raw = np.zeros(good.nbytes + 1, dtype=np.uint8)
    shifted = raw[1:].view(good.dtype).reshape(good.shape)
    shifted[...] = good
    return shifted


def same(one: Any, other: Any) -> bool:
    """Whether two answers are the same to the bit, whatever they are made of."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype == object or other.dtype == object:
            return same(one.tolist(), other.tolist())
        return one.shape == other.shape and np.array_equal(
            one, other, equal_nan=one.dtype.kind == "f"
        )
    if isinstance(one, float):
        return one == other or (one != one and other != other)
    if isinstance(one, hs.Fit):
        fields = ("gaussian", "method", "rows", "seen_share", "notes", "uncertainty")
        return all(same(getattr(one, field), getattr(other, field)) for field in fields)
    if isinstance(one, hs.RegressionFit):
        # Not the table that came, which is kept as it came.
        fields = ("weights", "residual", "covariance", "log_likelihood", "seen_share", "notes")
        return all(same(getattr(one, field), getattr(other, field)) for field in fields)
    if isinstance(one, enum.Enum):
        return one is other
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        return all(
            same(getattr(one, field.name), getattr(other, field.name))
            for field in dataclasses.fields(one)
        )
    if hasattr(one, "__dict__") and not callable(one):
        return same(vars(one), vars(other))
    return callable(one) or bool(one == other)
