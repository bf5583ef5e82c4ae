"""JSON as its standard has it, and numbers that it has no word for.

NaN and infinities are written as {"$float": "nan"}, "inf" or "-inf". Other keys that begin with "$" are
refused, and so are keys that come twice, text that is not Unicode, and nesting without end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from halfseen.errors import InputError

# Deeper than anything that is written, and far from where Python's own recursion ends.
DEEPEST = 50
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
FLOAT_KEY = "$float"


def to_json(value: Any, place: str) -> bytes:
    """Write ``value``; ``place`` names it in the message where it cannot be written."""
    plain = _plain(value, place, 0)
    return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode("ascii")


def from_json(text: bytes, place: str) -> Any:
    """Read what ``to_json`` wrote; anything else is a ValueError."""
    try:
        value = json.loads(
            text.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError("it is nested without end") from None
    _inspect(value, place, 0)
    return value


def _inspect(value: Any, place: str, depth: int) -> None:
    """Raise for what could not have been written: text that is not Unicode, nesting without end."""
    if depth > DEEPEST:
        raise InputError(f"{place} is nested more than {DEEPEST} deep.")
    if isinstance(value, str):
        _check_text(value, place)
    elif isinstance(value, list):
        for item in value:
            _inspect(item, place, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, place)
            _inspect(item, place, depth + 1)


def _check_text(text: str, place: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{place} has text that is not Unicode: {text!a:.60}.") from None


def _plain(value: Any, place: str, depth: int) -> Any:
    """Return ``value`` as JSON can hold it; ``place`` is for the message where it cannot."""
    if depth > DEEPEST:
        raise InputError(f"{place} is nested more than {DEEPEST} deep.")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        _check_text(value, place)
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {FLOAT_KEY: str(value)}
    if isinstance(value, list | tuple):
        return [_plain(item, place, depth + 1) for item in value]
    if not isinstance(value, Mapping):
        raise InputError(f"{place} is a {type(value).__name__}, which JSON cannot hold.")
    wrong = [key for key in value if not isinstance(key, str) or key.startswith("$")]
    if wrong:
        raise InputError(
            f"keys in {place} must be strings that do not begin with '$'; got {wrong[0]!r}."
        )
    return {
        _plain(key, f"a key in {place}", depth): _plain(item, ascii(key)[:60], depth + 1)
        for key, item in value.items()
    }


def _refuse_constant(token: str) -> float:
    raise ValueError(f"{token} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _object(pairs: list[tuple[str, Any]]) -> Any:
    """Make a mapping, or the number that stands in {"$float": "nan"}."""
    if len(pairs) == 1 and pairs[0][0] == FLOAT_KEY:
        if not isinstance(pairs[0][1], str) or pairs[0][1] not in NOT_FINITE:
            raise ValueError(f"{FLOAT_KEY} must be one of {', '.join(NOT_FINITE)}")
        return NOT_FINITE[pairs[0][1]]
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key comes twice")
    if any(key.startswith("$") for key in made):
        raise ValueError("a key begins with '$'")
    return made
