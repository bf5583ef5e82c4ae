"""Reading real tables: files and data frames whose cells may be limits, intervals or words."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from halfseen.data.cell_columns import (
    ReadColumn,
    UnreadableCell,
    apply_flags,
    count_by_column,
    error_for,
    example_of_flags,
    example_of_numbers,
    holds_measurements,
    join_ends,
    read_bounds,
    read_column,
    whole_column,
)
from halfseen.data.cells import CellFormat, called, read_cell, shorten
from halfseen.data.conventions import Contents, Wanted, choose, find_column
from halfseen.data.csv_files import read_records
from halfseen.data.interval_data import IntervalData
from halfseen.data.raw_columns import Columns, FileColumns, FrameColumns, RawColumn, open_parquet
from halfseen.errors import AssumptionWarning, InputError, argument


def read_csv(
    path: str | os.PathLike[str] | IO[Any],
    *,
    columns: Sequence[str] | str | None = None,
    index: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    not_detected: Any = (),
    missing: Any = (),
    unreadable: str = "refuse",
    encoding: str = "utf-8",
    companions: bool = True,
) -> IntervalData:
    r"""Read a file of separated values whose cells may be limits, intervals or words.

    A cell may be a value (``3.2``), lie below a limit (``<0.05``, ``ND(0.05)``, ``0.05 U``), above one
    (``>100``) or between two values (``0.2..0.5``, ``0.2-0.5``), be not detected at a limit that
    is not said (``ND``, ``<LOD``), or be missing (empty, ``NA``). A table may also say it in a second
    column, such as ``lead_flag``, ``lead_censored`` or ``lead_detected`` beside ``lead``, or in two,
    ``lead_lower`` and ``lead_upper``; where one column alone holds measurements, they may be named
    ``flag``, ``lower`` and so on. Nothing is dropped or guessed in silence: what cannot be
    read is an error that says where it is, and why.

    Parameters
    ----------
    path : path of a file, or an open file
        Its first line must hold the names of the columns. Empty lines may follow the last row, but
        not stand between rows.
    columns : names, optional
        The columns to read, in this order; all otherwise. Second columns are read by themselves.
    index : str, optional
        The column whose texts become the labels of the rows.
    separator : str, optional
        What stands between cells; found among comma, semicolon, tab and bar otherwise.
    decimal : "." or ","
    thousands : str, optional
        What stands between groups of three digits, such as "," or a space.
    not_detected, missing : words or numbers
        What else means "not detected" and "missing" in this table, such as "trace" or -999.
    unreadable : "refuse" or "missing"
        Whether cells that cannot be read are an error, or missing with an ``AssumptionWarning``.
    encoding : str
    companions : bool
        Whether second columns are looked for. If not, each column is read by itself.

    Returns
    -------
    IntervalData

    Raises
    ------
    UnreadableError
        Its attribute ``cells`` lists all cells that cannot be read.

    Examples
    --------
    >>> import io, halfseen as hs
    >>> file = io.StringIO("site,lead,zinc\nA,0.31,12\nB,<0.05,>100\nC,ND,7..9\n")
    >>> data = hs.read_csv(file, index="site")
    >>> data.names, data.labels
    (('lead', 'zinc'), ('A', 'B', 'C'))
    >>> data.upper
    array([[ 0.31, 12.  ],
           [ 0.05,   inf],
           [  inf,  9.  ]])
    """
    form = CellFormat(decimal, thousands, not_detected, missing)
    table = FileColumns(read_records(path, separator, encoding, form))
    return read_columns(table, form, columns, index, unreadable, companions)


def read_parquet(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | str | None = None,
    index: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    not_detected: Any = (),
    missing: Any = (),
    unreadable: str = "refuse",
    companions: bool = True,
) -> IntervalData:
    """Read a Parquet file; its columns may hold numbers or texts as in ``read_csv``.

    Row labels that pandas saved become the labels, unless ``index`` names another column.
    Needs pyarrow and narwhals. See ``read_csv`` for the parameters.

    Parameters
    ----------
    path : path of a file
    columns, index, decimal, thousands, not_detected, missing, unreadable, companions
        As in ``read_csv``.

    Returns
    -------
    IntervalData

    Examples
    --------
    >>> import tempfile, halfseen as hs, pyarrow as pa, pyarrow.parquet as pq
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"lead": ["0.31", "<0.05"]}), f"{folder}/lead.parquet")
    ...     hs.read_parquet(f"{folder}/lead.parquet")
    IntervalData(2 rows, 1 column; cells: 1 seen, 1 below)
    """
    form = CellFormat(decimal, thousands, not_detected, missing)
    asked = [columns] if isinstance(columns, str) else list(columns or ())
    table = open_parquet(path, {index, *asked})
    return read_columns(table, form, columns, index, unreadable, companions)


def from_frame(
    frame: Any,
    *,
    columns: Sequence[str] | str | None = None,
    index: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    not_detected: Any = (),
    missing: Any = (),
    unreadable: str = "refuse",
    companions: bool = True,
) -> IntervalData:
    """Read a data frame of pandas, polars or pyarrow; its cells may be numbers or texts.

    The index of a pandas frame becomes the labels of the rows, unless it only counts them or ``index``
    names a column. Needs narwhals. See ``read_csv`` for the parameters.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow
    columns, index, decimal, thousands, not_detected, missing, unreadable, companions
        As in ``read_csv``.

    Returns
    -------
    IntervalData

    Examples
    --------
    >>> import halfseen as hs, pandas as pd
    >>> hs.from_frame(pd.DataFrame({"lead": [0.31, "<0.05", None], "zinc": [12, 7, 9]}))
    IntervalData(3 rows, 2 columns; cells: 4 seen, 1 below, 1 blank)
    """
    form = CellFormat(decimal, thousands, not_detected, missing)
    return read_columns(FrameColumns(frame), form, columns, index, unreadable, companions)


def read_columns(
    table: Columns,
    form: CellFormat,
    columns: Sequence[str] | str | None,
    index: str | None,
    unreadable: str,
    companions: bool,
) -> IntervalData:
    """Read the columns that are wanted of a file or a frame."""
    if columns is None and isinstance(table, FileColumns):
        _doubt_names(table, form)
    if unreadable not in ("refuse", "missing"):
        raise InputError(f"unreadable must be 'refuse' or 'missing'; got {unreadable!r}.")
    place = None if index is None else find_column(table.names, str(index), argument("index"))
    contents = Contents(
        lambda flag: example_of_numbers(table.column(flag), form),
        lambda flag: example_of_flags(table.column(flag), form),
        lambda column: holds_measurements(table.column(column), form),
    )
    wanted = choose(table.names, columns, place, contents, companions)
    if not wanted or not table.rows:
        raise InputError(f"{table.source} has no {'rows' if wanted else 'columns'} to read.")
    labels = table.labels_of_index if place is None else table.labels(place)
    read = [_read_wanted(table, form, one) for one in wanted]
    names = [one.name for one in wanted]
    _tell_problems(table, names, read, labels, unreadable)
    _tell_estimated(names, read)
    _tell_odd_limits(names, read)
    return IntervalData(
        np.stack([cells.lower for cells in read], axis=1),
        np.stack([cells.upper for cells in read], axis=1),
        names,
        labels=labels,
        not_detected=np.stack([cells.not_detected for cells in read], axis=1),
        frame=table.frame,
        index=table.index_of_frame if place is None else None,
    )


def _read_wanted(table: Columns, form: CellFormat, wanted: Wanted) -> ReadColumn:
    """Read one column with its companions."""
    if wanted.value is None:
        assert wanted.lower is not None
        assert wanted.upper is not None
        low, cells = read_bounds(_measurements(table, wanted.lower), form, "lower")
        high, of_upper = read_bounds(_measurements(table, wanted.upper), form, "upper")
        problems = of_upper.problems | cells.problems
        join_ends(low, high, cells)
        for row, (text, reason) in problems.items():
            cells.refuse(row, text, reason)
        return cells
    raw = _measurements(table, wanted.value)
    cells = read_column(raw, form)
    if wanted.flags:
        apply_flags(cells, raw, [table.column(flag) for flag in wanted.flags])
    return cells


def _measurements(table: Columns, place: int) -> RawColumn:
    """Return a column, unless its type says that it holds no measurements."""
    raw = table.column(place)
    if raw.kind:
        shown = (raw.text(row) for row in range(table.rows))
        raise InputError(whole_column(raw.name, raw.kind, shown))
    return raw


def _tell_problems(
    table: Columns,
    names: Sequence[str],
    read: Sequence[ReadColumn],
    labels: tuple[str, ...] | None,
    unreadable: str,
) -> None:
    """Refuse, or warn of, the cells that cannot be read."""
    found = [
        UnreadableCell(row, None if table.lines is None else table.lines[row], name, text, reason)
        for name, cells in zip(names, read, strict=True)
        for row, (text, reason) in cells.problems.items()
    ]
    if not found:
        return

    def place(cell: UnreadableCell) -> str:
        label = "" if labels is None or not labels[cell.row] else f" ({labels[cell.row]})"
        where = f"row {cell.row}{label}" if cell.line is None else f"line {cell.line}"
        return f"{where}, column {called(cell.column)}"

    found.sort(key=lambda cell: cell.row)
    hopeless = [name for name, cells in zip(names, read, strict=True) if cells.missing.all()]
    error = error_for(found, hopeless, table.source, place)
    if unreadable == "refuse":
        raise error
    first = found[0]
    warnings.warn(
        f"{len(found)} cells cannot be read and are taken as missing: "
        f"{count_by_column(cell.column for cell in found)}. The first is {place(first)}: "
        f"{shorten(first.text)} {first.reason}.",
        AssumptionWarning,
        stacklevel=4,
    )


def _tell_estimated(names: Sequence[str], read: Sequence[ReadColumn]) -> None:
    """Warn that estimated values are taken as if they were measured."""
    counts = {name: int(cells.estimated.sum()) for name, cells in zip(names, read, strict=True)}
    if any(counts.values()):
        told = ", ".join(f"{count} in {called(name)}" for name, count in counts.items() if count)
        warnings.warn(
            f"the qualifier J marks estimated values ({told}); they are taken as they are, as "
            "exact as the others.",
            AssumptionWarning,
            stacklevel=4,
        )


def _tell_odd_limits(names: Sequence[str], read: Sequence[ReadColumn]) -> None:
    """Warn of limits that no value of a positive column can lie below."""
    told = []
    for name, cells in zip(names, read, strict=True):
        seen = cells.lower == cells.upper
        odd = int((np.isneginf(cells.lower) & (cells.upper <= 0.0)).sum())
        if odd and seen.any() and (cells.lower[seen] > 0.0).all():
            told.append(f"{odd} in {called(name)}")
    if told:
        warnings.warn(
            f"cells lie below a limit of 0 or less ({', '.join(told)}), though all seen values of "
            "the column are positive. If 0 stands for a limit that is not known, write ND; a "
            "limit that is known belongs in the cell.",
            AssumptionWarning,
            stacklevel=4,
        )


def _doubt_names(table: FileColumns, form: CellFormat) -> None:
    """Warn if the first line looks like a row of the table."""
    cells = [read_cell(name, form) for name in table.names]
    if all(not cell.problem and np.isfinite(cell.lower + cell.upper) for cell in cells):
        warnings.warn(
            f"{table.source}: the first line holds numbers ({', '.join(table.names[:3])}"
            f"{', ...' if len(table.names) > 3 else ''}), and is read as the names of the columns. "
            "If it is a row, put a line with names before it.",
            AssumptionWarning,
            stacklevel=4,  # whoever called read_csv
        )
