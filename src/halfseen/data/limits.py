"""Reading limits from a file: one for each column, or one for each cell."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cells import CellFormat, read_cell, shorten
from halfseen.data.csv_files import cut_records, read_text
from halfseen.data.interval_data import IntervalData
from halfseen.data.raw_columns import FileColumns
from halfseen.data.readers import read_columns
from halfseen.errors import AssumptionWarning, InputError, argument
from halfseen.missingness.base import listed
from halfseen.missingness.detection_limits import DetectionLimits

# How the file of limits by column names its columns.
COLUMN, LOWER, UPPER = "column", "lower", "upper"
# Options that say how cells are written.
FORM = ("decimal", "thousands", "not_detected", "missing")


def read_limits(
    path: str | os.PathLike[str] | IO[Any],
    data: IntervalData,
    *,
    index: str | None = None,
    **options: Any,
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
    index : str, optional
        The column of the file that holds labels of rows. Rows are then matched with those of the data
        by label, in whichever order they stand. Without it, or where the file has no such
        column (which is told in an ``AssumptionWarning``), they are matched by position. Limits
        by column have no need of it.
    **options
        How the file is written, as in ``read_csv``: ``separator``, ``decimal``, ``thousands``,
        ``encoding``.

    Returns
    -------
    DetectionLimits

    Examples
    --------
    >>> import io, halfseen as hs
    >>> data = hs.read_csv(io.StringIO("site,lead,zinc\nA,0.3,ND\nB,ND,7\n"), index="site")
    >>> hs.read_limits(io.StringIO("column,lower\nlead,0.1\nzinc,5\n"), data)
    DetectionLimits(lower=[0.1, 5.0])
    >>> hs.read_limits(io.StringIO("site,lead\nB,0.2\nA,0.1\n"), data, index="site").lower
    array([[ 0.1, -inf],
           [ 0.2, -inf]])
    """
    encoding, separator = options.pop("encoding", "utf-8"), options.pop("separator", None)
    form = CellFormat(**{name: options.pop(name) for name in FORM if name in options})
    source, text = read_text(path, encoding)
    _check_first_line(source, text, data, form)
    records = cut_records(source, text, separator, form)
    names = records.names
    by_column = COLUMN in names and COLUMN not in data.names
    if by_column and index == COLUMN:
        # The labels of the rows are in a column of that name, unless all is as limits by column are.
        by_column = {*names} <= {COLUMN, LOWER, UPPER}
    labels = COLUMN if by_column else index
    if labels is not None and labels not in names:
        warnings.warn(
            f"{source} has no column {labels!r}: its rows are matched with those of the data by "
            "position.",
            AssumptionWarning,
            stacklevel=2,
        )
        labels = None
    table = read_columns(
        FileColumns(records), form, index=labels, companions=False, may_be_long=False, **options
    )
    _numbers_only(table)
    if by_column:
        return _by_column(table, data)
    if labels is None:
        _check_length(table, data)
        return _by_cell(table, data)
    return _by_cell(table.take(_order(source, labels, table.labels, data.labels)), data)


def _check_first_line(source: str, text: str, data: IntervalData, form: CellFormat) -> None:
    """Raise an ``InputError`` if there are limits where the names must be."""
    first = text.strip().partition("\n")[0].strip()
    # Whatever separates them: a decimal comma leaves numbers too.
    for name in (part.strip().strip('"') for part in re.split("[,;|\t]", first)):
        if name not in data.names and np.isfinite(read_cell(name, form)[:2]).any():
            raise InputError(
                f"{source}: the first line of a file of limits must be {COLUMN},{LOWER},{UPPER}, "
                f"or the names of the columns of the data; got {shorten(first)}. Put such a line "
                "before it."
            )


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
                f"{listed(data.names)}."
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


def _check_length(table: IntervalData, data: IntervalData) -> None:
    if len(table) == len(data):
        return
    by_label = (
        ""
        if data.labels is None
        else f" To match rows by their labels, tell with {argument('index')} where."
    )
    raise InputError(
        f"limits by cell need a row for each row of the data, {len(data)}; the file has "
        f"{len(table)}. For limits by column, name the first column {COLUMN!r}.{by_label}"
    )


def _order(
    source: str, index: str, given: Sequence[str] | None, wanted: Sequence[str] | None
) -> NDArray[np.intp]:
    """Return where the row of each label of the data is; each must be there once, and no other."""
    assert given is not None
    if wanted is None:
        raise InputError(
            f"{source} has labels of rows in column {index!r}, but the data have none. Read the "
            f"data with {argument('index')} too, or leave that column out of the file."
        )
    place = {label: row for row, label in enumerate(given)}
    for labels, whose in ((wanted, "the data"), (given, source)):
        twice = [label for label, count in Counter(labels).items() if count > 1]
        if twice:
            raise InputError(
                f"rows are matched by label, but {shorten(twice[0])} stands more than once among "
                f"the labels of {whose} ({len(twice)} such labels). Make them unique."
            )
    for labels, others, what in (
        (given, wanted, "has limits for rows that the data do not have"),
        (wanted, given, "has no row for some rows of the data"),
    ):
        known = set(others)
        if lost := [shorten(label) for label in labels if label not in known]:
            raise InputError(
                f"{source} {what}: {listed(lost)} (column {index!r}). Each row of the data needs "
                "one row of limits, whose cells may be empty."
            )
    return np.array([place[label] for label in wanted], dtype=np.intp)


def _by_cell(table: IntervalData, data: IntervalData) -> DetectionLimits:
    ends = {end: np.full(data.shape, np.nan) for end in (LOWER, UPPER)}
    told: dict[tuple[str, str], str] = {}
    for j, name in enumerate(table.names):
        end, column = LOWER, name
        for suffix in (LOWER, UPPER):
            if name not in data.names and name.endswith(f"_{suffix}"):
                end, column = suffix, name.removesuffix(f"_{suffix}")
        if column not in data.names:
            raise InputError(
                f"the file of limits has a column {name!r}, but the columns of the data are "
                f"{listed(data.names)}. If it holds labels of the rows, pass "
                f"{argument('index', name)}."
            )
        other = told.setdefault((end, column), name)
        if other != name:
            raise InputError(
                f"the file of limits has the {end} limits of column {column!r} twice, in {other!r} "
                f"and in {name!r}. Leave one of them out."
            )
        ends[end][:, data.names.index(column)] = table.values[:, j]
    return DetectionLimits(ends[LOWER], ends[UPPER])


def _numbers_only(table: IntervalData) -> None:
    wrong = np.argwhere(~table.seen & ~table.blank)
    if wrong.size:
        row, column = (int(k) for k in wrong[0])
        raise InputError(
            f"row {row}, column {table.names[column]} of the file of limits is no number. A limit "
            "is a number, or empty where there is none."
        )
