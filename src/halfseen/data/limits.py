"""Reading limits from a file: one for each column, or one for each cell."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from halfseen.data.cells import CellFormat
from halfseen.data.csv_records import read_records
from halfseen.data.interval_data import IntervalData
from halfseen.data.reading import read_csv
from halfseen.errors import InputError
from halfseen.missingness.detection_limits import DetectionLimits

# How the file of limits by column names its columns.
COLUMN, LOWER, UPPER = "column", "lower", "upper"


def read_limits(
    path: str | os.PathLike[str] | IO[Any], data: IntervalData, **options: Any
) -> DetectionLimits:
    r"""Read the detection limits of a table from a file of separated values.

    The file has either a row for each column of the table (``column,lower,upper``; either limit may be
    left out), or a row for each row of the table and columns of the same names, with the lower limit
    of each cell; there ``lead_upper`` holds upper limits. Empty cells have no limit.

    Parameters
    ----------
    path : path of a file, or an open file
    data : IntervalData
        The table that the limits are for.
    **options
        How the file is written, as in ``read_csv``: ``separator``, ``decimal``, ``thousands``,
        ``encoding``.

    Returns
    -------
    DetectionLimits

    Examples
    --------
    >>> import io, halfseen as hs
    >>> data = hs.read_csv(io.StringIO("lead,zinc\n0.3,ND\nND,7\n0.4,8\n"))
    >>> hs.read_limits(io.StringIO("column,lower\nlead,0.1\nzinc,5\n"), data)
    DetectionLimits(lower=[0.1, 5.0])
    """
    form = CellFormat(options.get("decimal", "."), options.get("thousands"))
    records = read_records(path, options.get("separator"), options.get("encoding", "utf-8"), form)
    if hasattr(path, "seek"):
        path.seek(0)
    by_column = COLUMN in records.names and COLUMN not in data.names
    table = read_csv(path, index=COLUMN if by_column else None, companions=False, **options)
    _numbers_only(table)
    return _by_column(table, data) if by_column else _by_cell(table, data)


def _by_column(table: IntervalData, data: IntervalData) -> DetectionLimits:
    unknown = [name for name in table.names if name not in (LOWER, UPPER)]
    if unknown:
        raise InputError(
            f"a file of limits by column has the columns {COLUMN}, {LOWER} and {UPPER}; got "
            f"{unknown[0]!r}."
        )
    assert table.labels is not None
    for k, name in enumerate(table.labels):
        if name not in data.names:
            raise InputError(
                f"a limit is given for column {name!r}, but the columns of the data are "
                f"{', '.join(data.names[:8])}{', …' if len(data.names) > 8 else ''}."
            )
        if name in table.labels[:k]:
            raise InputError(f"limits are given twice for column {name!r}.")
    ends = {}
    for end in (LOWER, UPPER):
        values = np.full(len(data.names), np.nan)
        if end in table.names:
            column = table.values[:, table.names.index(end)]
            for name, value in zip(table.labels, column, strict=True):
                values[data.names.index(name)] = value
        ends[end] = values
    return DetectionLimits(ends[LOWER], ends[UPPER])


def _by_cell(table: IntervalData, data: IntervalData) -> DetectionLimits:
    if len(table) != len(data):
        raise InputError(
            f"limits by cell need a row for each row of the data, {len(data)}; the file has "
            f"{len(table)}. For limits by column, name the first column {COLUMN!r}."
        )
    ends = {end: np.full(data.shape, np.nan) for end in (LOWER, UPPER)}
    for j, name in enumerate(table.names):
        end, column = LOWER, name
        for suffix in (LOWER, UPPER):
            if name not in data.names and name.endswith(f"_{suffix}"):
                end, column = suffix, name.removesuffix(f"_{suffix}")
        if column not in data.names:
            raise InputError(
                f"the file of limits has a column {name!r}, but the columns of the data are "
                f"{', '.join(data.names[:8])}{', …' if len(data.names) > 8 else ''}."
            )
        ends[end][:, data.names.index(column)] = table.values[:, j]
    return DetectionLimits(ends[LOWER], ends[UPPER])


def _numbers_only(table: IntervalData) -> None:
    wrong = np.argwhere(~table.seen & ~table.blank)
    if wrong.size:
        row, column = (int(k) for k in wrong[0])
        raise InputError(
            f"row {row}, column {table.names[column]} of the file of limits is no number. A limit is "
            "a number, or empty where there is none."
        )
