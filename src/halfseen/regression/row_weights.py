"""What each row of a regression counts, and what is left of its table where some count nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import real_array
from halfseen.data.design import columns_of
from halfseen.data.interval_data import IntervalData
from halfseen.data.mixed_columns import MixedColumns
from halfseen.data.table import frame_kind
from halfseen.errors import InputError

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def by_row(given: Any, data: Any, what: str) -> Any:
    """Return a column of the data for its name; what has a value for each row stays as it is."""
    if isinstance(given, str):
        columns = columns_of(data)
        columns.check(given, f"the column of {what}")
        return columns[given]
    index = getattr(given, "index", None)
    # A list has a method of that name.
    index = None if callable(index) else index
    if frame_kind(data) == "pandas" and index is not None and not data.index.equals(index):
        raise InputError(
            f"{what} have other labels than the rows that were fitted, or another order: pass "
            f"{what}.loc[data.index], or the name of a column."
        )
    return given


def read_weights(given: Any, data: Any, rows: int) -> Floats | None:
    """Return what each row counts, at most 1; 0 for rows that are to leave."""
    if given is None:
        return None
    name = given if isinstance(given, str) else "weights"
    weights = real_array(name, by_row(given, data, "weights"))
    if weights.shape != (rows,):
        raise InputError(
            f"weights must be a number for each of the {rows} rows, or the name of a column; got shape "
            f"{weights.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"a weight must be a finite number that is not negative, 0 for a row that is to leave; got "
            f"{weights[row]:g}.",
            row,
            name if isinstance(given, str) else None,
        )
    if not weights.any():
        raise InputError("every weight is 0, so no row is left.")
    shares = weights / weights.max()
    return np.asarray(shares, dtype=np.float64)


def rows_of_table(data: Any, rows: Rows) -> Any:
    """Return some of the rows of whatever was given as data."""
    if data is None or isinstance(data, IntervalData | MixedColumns):
        return None if data is None else data.take(rows)
    if frame_kind(data) == "pandas":
        return data.iloc[rows]
    if frame_kind(data) is not None:
        import narwhals as nw

        return nw.from_native(data)[rows.tolist()].to_native()
    if isinstance(data, Mapping):
        return {name: _of_column(column, rows) for name, column in data.items()}
    return np.asarray(data)[rows]


def _of_column(column: Any, rows: Rows) -> Any:
    if isinstance(column, IntervalData):
        return column.take(rows)
    if hasattr(column, "iloc"):
        return column.iloc[rows]
    # One value is that of every row.
    return column if np.ndim(column) == 0 else np.asarray(column)[rows]
