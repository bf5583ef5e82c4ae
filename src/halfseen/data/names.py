"""Names of columns: given ones in place of a table's own, each of them once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.data.table import Table, read_table
from halfseen.errors import InputError


def printable(text: str) -> str:
    """Replace characters that would steer a terminal: names come from files."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def check_names(names: Sequence[str]) -> None:
    """Raise an ``InputError`` for a name that stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"columns need names of their own; {name!r} stands twice.")
        seen.add(name)


def with_names(X: Any, names: Sequence[str]) -> Table | IntervalData | PairMoments:
    """Read ``X`` under these names, whatever names it brings."""
    if isinstance(X, PairMoments):
        return dataclasses.replace(X, names=read_table(np.zeros((2, X.width)), names).names)
    if isinstance(X, IntervalData):
        return dataclasses.replace(X, names=tuple(names))
    return read_table(X, names)
