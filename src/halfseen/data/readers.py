"""Reading real tables: files and data frames whose cells may be limits, intervals or words.

Limits may have a file of their own: one for each column, or one for each cell.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cell_columns import (
    Columns,
    FileColumns,
    FrameColumns,
    ReadColumn,
    example_of_numbers,
    holds_measurements,
    holds_numbers,
    open_parquet,
    whole_column,
)
from halfseen.data.cells import (
    A_DATE,
    NO_NUMBER,
    TRUE_FALSE,
    CellFormat,
    called,
    read_cell,
    shorten,
)
from halfseen.data.conventions import Contents, Wanted, choose
from halfseen.data.csv_files import cut_records, read_records, read_text
from halfseen.data.doubts import doubt_columns, doubt_copies, doubt_totals, doubt_units
from halfseen.data.interval_data import IntervalData
from halfseen.data.long_cells import ask_if_long
from halfseen.data.names import declare, expand, find_column, flag_option
from halfseen.data.second_columns import example_of_flags, note_of_flags, read_wanted
from halfseen.errors import InputError, argument, spelled, warn
from halfseen.missingness.base import listed
from halfseen.missingness.detection_limits import DetectionLimits

# As many cells are shown in full; the others are counted by column.
SHOWN = 8
# Parts of reasons that say themselves what to do.
SELF_HELP = ("has the flag", "has a comma; pass", "write the number alone")
# What a column holds if every cell has the same one of these reasons.
WHOLE_COLUMN = {NO_NUMBER: "no numbers", A_DATE: "dates", TRUE_FALSE: "true and false"}
# How the file of limits by column names its columns.
COLUMN, LOWER, UPPER = "column", "lower", "upper"
# Options that say how cells are written.
FORM = ("decimal", "thousands", "not_detected", "missing")


class UnreadableCell(NamedTuple):
    """One cell that cannot be read: its row (from 0), its line in the file, and why."""

    row: int
    line: int | None
    column: str
    text: str
    reason: str


class UnreadableError(InputError):
    """A table has cells that cannot be read; ``cells`` lists all of them."""

    def __init__(self, message: str, cells: Sequence[UnreadableCell] = ()) -> None:
        super().__init__(message)
        self.cells = list(cells)


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
    keep: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    flags: Mapping[str, str | Sequence[str]] | None = None,
    limits: Mapping[str, str] | None = None,
    saturated: bool = False,
) -> IntervalData:
    r"""Read a file of separated values whose cells may be limits, intervals or words.

    A cell may be a value (``3.2``), lie below a limit (``<0.05``, ``ND(0.05)``, ``0.05 U``), above one
    (``>100``) or between two values (``0.2..0.5``, ``0.2-0.5``), be not detected at a limit that
    is not said (``ND``, ``<LOD``), or be missing (empty, ``NA``). A table may also say it in a second
    column, such as ``lead_flag``, ``lead_censored``, ``PbCen`` or ``D_Pb`` beside ``Pb``, or in two,
    ``lead_lower`` and ``lead_upper``; where one column alone holds measurements, they may be named
    ``flag``, ``lower`` and so on. ``lead_RL`` and its like hold limits. Nothing is dropped or guessed in
    silence: what cannot be read is an error that says where it is, and why; and so is what can be read
    but does not look like a measurement.

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
        Whether second columns are looked for. If not, each column is read by itself, and as it is.
    keep : names, optional
        Columns that are no measurements, and are kept as they are in ``data.kept``: the group of each
        row, for ``fit(data, by="Well")``.
    exclude : names, optional
        Columns to leave out, with their second columns. Here and in ``columns``, ``"PCB*"`` stands for
        all columns that are named so.
    flags : dict, optional
        From columns to their columns of flags, whatever these are named: ``{"Pb": "PbCen"}``, or
        ``{"*": "*Cen"}`` for all. ``{"Pb": "D_Pb:0"}`` adds which flag marks what was not detected.
    limits : dict, optional
        From columns to columns of numbers below which their cells were not detected:
        ``{"Pb": "Pb_RL"}``.
    saturated : bool
        Whether values on such a limit or below it stand for what was not detected.

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
    return read_columns(
        table, form, columns, index, unreadable, companions, keep, exclude, flags, limits, saturated
    )


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
    keep: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    flags: Mapping[str, str | Sequence[str]] | None = None,
    limits: Mapping[str, str] | None = None,
    saturated: bool = False,
) -> IntervalData:
    """Read a Parquet file; its columns may hold numbers or texts as in ``read_csv``.

    Row labels that pandas saved become the labels, unless ``index`` names another column.
    Needs pyarrow and narwhals. See ``read_csv`` for the parameters.

    Parameters
    ----------
    path : path of a file
    columns, index, decimal, thousands, not_detected, missing, unreadable, companions, keep
        As in ``read_csv``.
    exclude, flags, limits, saturated
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
    asked += [keep] if isinstance(keep, str) else list(keep)
    table = open_parquet(path, {index, *asked})
    return read_columns(
        table, form, columns, index, unreadable, companions, keep, exclude, flags, limits, saturated
    )


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
    keep: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    flags: Mapping[str, str | Sequence[str]] | None = None,
    limits: Mapping[str, str] | None = None,
    saturated: bool = False,
) -> IntervalData:
    """Read a data frame of pandas, polars or pyarrow; its cells may be numbers or texts.

    The index of a pandas frame becomes the labels of the rows, unless it only counts them or ``index``
    names a column. Needs narwhals. See ``read_csv`` for the parameters.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow
    columns, index, decimal, thousands, not_detected, missing, unreadable, companions, keep
        As in ``read_csv``.
    exclude, flags, limits, saturated
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
    table = FrameColumns(frame)
    return read_columns(
        table, form, columns, index, unreadable, companions, keep, exclude, flags, limits, saturated
    )


def read_columns(
    table: Columns,
    form: CellFormat,
    columns: Sequence[str] | str | None = None,
    index: str | None = None,
    unreadable: str = "refuse",
    companions: bool = True,
    keep: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    flags: Any = None,
    limits: Any = None,
    saturated: bool = False,
    may_be_long: bool = True,
) -> IntervalData:
    """Read the columns that are wanted of a file or a frame.

    Of one that ``may_be_long``, it is asked whether it has a row for each value.
    """
    if columns is None and isinstance(table, FileColumns):
        _doubt_names(table, form)
    if index == "" and table.labels_of_index is not None and "" not in table.names:
        index = None  # a first column without a name, which holds the labels already
    place = None if index is None else find_column(table.names, str(index), argument("index"))
    left_out = _left_out(table, exclude)
    asked: Collection[int] = ()
    if may_be_long:
        asked = ask_if_long(table, form, columns, index, left_out, unreadable)
    declared = declare(table.names, flags, limits)
    contents = Contents(
        lambda flag: example_of_numbers(table.column(flag), form),
        lambda flag, kind: example_of_flags(table.column(flag), form, kind),
        lambda column: holds_measurements(table.column(column), form),
        lambda column: holds_numbers(table.column(column), form),
    )
    kept = [keep] if isinstance(keep, str) else [str(name) for name in keep]
    places = [find_column(table.names, name, spelled("keep", "--by")) for name in kept]
    wanted = choose(table.names, columns, place, contents, companions, left_out, declared, places)
    if not wanted or not table.rows:
        raise InputError(f"{table.source} has no {'rows' if wanted else 'columns'} to read.")
    labels = table.labels_of_index if place is None else table.labels(place)
    read = {one.name: read_wanted(table, form, one, saturated) for one in wanted}
    if companions and columns is None:
        # Asked first: a row of units or of totals has cells that cannot be read.
        doubt_units(table, read)
        doubt_totals(table, read, labels)
    by_name = [one for one in wanted if companions and one.value not in declared.flags]
    check_read(table, read, labels, unreadable, by_name)
    if companions and columns is None:
        doubt_columns([one for one in wanted if one.value not in asked], read)
        doubt_copies(wanted, read)
    ends = [[cells.lower, cells.upper, cells.not_detected] for cells in read.values()]
    lower, upper, not_detected = (np.stack(end, axis=1) for end in zip(*ends, strict=True))
    return IntervalData(
        lower,
        upper,
        list(read),
        labels=labels,
        not_detected=not_detected,
        frame=table.frame,
        index=table.index_of_frame if place is None else None,
        kept={name: table.labels(at) for name, at in zip(kept, places, strict=True)},
    )


def check_read(
    table: Columns,
    read: dict[str, ReadColumn],
    labels: tuple[str, ...] | None,
    unreadable: str = "refuse",
    by_name: Sequence[Wanted] = (),
) -> None:
    """Say what is to be said of columns that were read: cells that cannot be, and odd ones.

    Of columns whose flags were found ``by_name``, it is said how 0 and 1 are read.
    """
    if unreadable not in ("refuse", "missing"):
        raise InputError(f"unreadable must be 'refuse' or 'missing'; got {unreadable!r}.")
    _tell_problems(table, read, labels, unreadable)
    _tell_flags(table, by_name)
    _tell_estimated(read)
    _tell_odd_limits(read)


def _left_out(table: Columns, exclude: Sequence[str] | str) -> list[int]:
    """Return the columns that are left out."""
    where = argument("exclude")
    if not isinstance(exclude, Iterable):
        raise InputError(f"{where} must be names of columns; got {exclude!r}.")
    asked = [exclude] if isinstance(exclude, str) else exclude
    names = expand(map(str, asked), table.names, where)
    return [find_column(table.names, name, where) for name in names]


def _tell_flags(table: Columns, wanted: Sequence[Wanted]) -> None:
    """Say how 0 and 1 are read, where a name in short alone says it."""
    notes = [
        (note_of_flags(one.name, table.column(flag.place), flag.kind), one.name, flag)
        for one in wanted
        for flag in one.flags
    ]
    if told := [note for note in notes if note[0]]:
        _, name, flag = told[0]
        says = flag_option(name, table.names[flag.place], "1" if flag.kind == "censored" else "0")
        warn(
            f"flags are read by the names of their columns: {'; '.join(n for n, _, _ in told[:SHOWN])}"
            f"{', and so on' if len(told) > SHOWN else ''}. {says} says it outright"
            f"{', and so for the others' if len(told) > 1 else ''}."
        )


def _tell_problems(
    table: Columns, read: dict[str, ReadColumn], labels: tuple[str, ...] | None, unreadable: str
) -> None:
    """Refuse, or warn of, the cells that cannot be read."""
    wrong = [
        UnreadableCell(row, None if table.lines is None else table.lines[row], name, text, reason)
        for name, cells in read.items()
        for row, (text, reason) in cells.problems.items()
    ]
    if not wrong:
        return

    def show(cell: UnreadableCell) -> str:
        label = "" if labels is None or not labels[cell.row] else f" ({labels[cell.row]})"
        where = f"row {cell.row}{label}" if cell.line is None else f"line {cell.line}"
        return f"{where}, column {called(cell.column)}: {shorten(cell.text)} {cell.reason}."

    wrong.sort(key=lambda cell: cell.row)
    if unreadable == "refuse":
        hopeless = [name for name, cells in read.items() if cells.are_words]
        lines = _unreadable_lines(wrong, hopeless, list(read), show)
        raise UnreadableError(f"{table.source}: " + "\n".join(lines), wrong)
    warn(
        f"{len(wrong)} cells cannot be read and are taken as missing: "
        f"{_by_column(Counter(cell.column for cell in wrong))}. The first is {show(wrong[0])}"
    )


def _unreadable_lines(
    cells: Sequence[UnreadableCell],
    hopeless: Sequence[str],
    names: Sequence[str],
    show: Callable[[UnreadableCell], str],
) -> list[str]:
    """Say of columns of which no cell can be read what they hold, and show some of the other cells."""
    lines = []
    told = set()
    by_column: dict[str, list[UnreadableCell]] = {}
    for cell in cells:
        by_column.setdefault(cell.column, []).append(cell)
    for name in hopeless:
        of_column = by_column.get(name, [])
        reasons = {cell.reason for cell in of_column}
        if reasons and reasons <= WHOLE_COLUMN.keys():
            held = WHOLE_COLUMN[min(reasons) if len(reasons) == 1 else NO_NUMBER]
            besides = [one for one in names if one != name]
            of = besides[0] if len(besides) == 1 else ""
            lines.append(whole_column(name, held, (cell.text for cell in of_column), of))
            told.add(name)
    others = [cell for cell in cells if cell.column not in told]
    if others:
        count = "1 cell" if len(others) == 1 else f"{len(others)} cells"
        lines.append(f"{count} cannot be read:")
        lines += [f"  {show(cell)}" for cell in others[:SHOWN]]
        if len(others) > SHOWN:
            rest = _by_column(Counter(cell.column for cell in others[SHOWN:]))
            lines.append(f"  and {len(others) - SHOWN} more: {rest}.")
    # Some reasons say themselves what to do; and a flag that is not known, or a comma, hides a value
    # that is not missing.
    if any(not any(part in cell.reason for part in SELF_HELP) for cell in others):
        lines.append(
            f"Correct them; or tell words of your own with {argument('not_detected')} and "
            f"{argument('missing')}; or pass {argument('unreadable', 'missing')} to take them as "
            "missing."
        )
    return lines


def _tell_estimated(read: dict[str, ReadColumn]) -> None:
    """Warn that estimated values are taken as if they were measured."""
    counts = {name: int(cells.estimated.sum()) for name, cells in read.items()}
    if any(counts.values()):
        warn(
            f"the qualifier J marks estimated values ({_by_column(counts)}); they are taken as they "
            "are, as exact as the others."
        )


def _tell_odd_limits(read: dict[str, ReadColumn]) -> None:
    """Warn of limits that nothing can lie below, if what is measured is positive."""
    counts = {}
    for name, cells in read.items():
        seen = cells.lower[cells.lower == cells.upper]
        # Where nothing is seen, limits say whether there are negative numbers.
        known = seen if seen.size else cells.upper[np.isfinite(cells.upper)]
        if not (known < 0.0).any():
            counts[name] = int((np.isneginf(cells.lower) & (cells.upper <= 0.0)).sum())
    if any(counts.values()):
        warn(
            f"cells lie below a limit of 0 or less ({_by_column(counts)}), though no seen value of the "
            "column is negative: they are taken to be negative. If 0 stands for a limit that is not "
            "known, write ND; a limit that is known belongs in the cell."
        )


def _doubt_names(table: FileColumns, form: CellFormat) -> None:
    """Warn if the first line looks like a row of the table."""
    cells = [read_cell(name, form) for name in table.names]
    if all(not cell.problem and np.isfinite(cell.lower + cell.upper) for cell in cells):
        warn(
            f"{table.source}: the first line holds numbers ({', '.join(table.names[:3])}"
            f"{', ...' if len(table.names) > 3 else ''}), and is read as the names of the columns. "
            "If it is a row, put a line with names before it.",
        )


def _by_column(counts: Mapping[str, int]) -> str:
    """Say how many there are in each column that has any."""
    return ", ".join(f"{count} in {called(name)}" for name, count in counts.items() if count)


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
        warn(
            f"{source} has no column {labels!r}: its rows are matched with those of the data by "
            "position."
        )
        labels = None
    table = read_columns(
        FileColumns(records), form, index=labels, companions=False, may_be_long=False, **options
    )
    _numbers_only(table)
    if by_column:
        return _limits_by_column(table, data)
    if labels is None:
        _check_length(table, data)
        return _limits_by_cell(table, data)
    return _limits_by_cell(table.take(_order(source, labels, table.labels, data.labels)), data)


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


def _limits_by_column(table: IntervalData, data: IntervalData) -> DetectionLimits:
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


def _limits_by_cell(table: IntervalData, data: IntervalData) -> DetectionLimits:
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
