"""Columns by name, from whatever holds them, also pieces: numbers, texts, categories side by side."""

from __future__ import annotations

import difflib
import numbers
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import is_iterable, is_time
from halfseen.data.cell_columns import FrameColumns, is_nothing, is_ordered
from halfseen.data.factors import quoted, shown
from halfseen.data.interval_data import IntervalData
from halfseen.data.parquet_files import ParquetChunk
from halfseen.data.table import (
    LIBRARIES,
    OtherTable,
    RowBlocks,
    Table,
    check_names,
    float_of,
    frame_kind,
    printable,
    row_slices,
)
from halfseen.errors import InputError, warn

# The share of numbers from which on a text among them looks like a slip.
MANY = 0.5
Level = str | bool | int | float


class PlainColumn(NamedTuple):
    """A column of numbers (float64, NaN where missing), or of texts and truths (objects, None).

    ``levels`` are those of a categorical column, as it lists them, and ``ordered`` says that they go
    from the lowest to the highest; ``whole`` says that the numbers were integers where they came from.
    """

    name: str
    values: NDArray[Any]
    levels: tuple[Level, ...] | None = None
    whole: bool = False
    ordered: bool = False

    @property
    def is_numbers(self) -> bool:
        """Whether the column holds numbers that are no categories."""
        return self.levels is None and self.values.dtype.kind == "f"


class PlainColumns(Mapping[str, NDArray[Any]]):
    """The columns of a table by name; each is read when it is first asked for."""

    # Whether columns of numbers in which a few cells are texts were warned of when they were read.
    doubted = False

    def __init__(self, names: Sequence[str], rows: int, read: Callable[[int], PlainColumn]) -> None:
        check_names(names)
        self.names, self.rows = tuple(names), rows
        self._places = {name: place for place, name in enumerate(names)}
        self._read = read
        self._columns: dict[str, PlainColumn] = {}

    def column(self, name: str) -> PlainColumn:
        """Return a column with its levels."""
        if name not in self._columns:
            self._columns[name] = self._read(self._places[name])
        return self._columns[name]

    def check(self, name: str, what: str = "the column") -> None:
        """Raise an ``InputError`` where there is no such column; it names the closest."""
        if name not in self._places:
            listed = ", ".join(printable(known) for known in self.names[:8]) or "none"
            raise InputError(
                f"{what} {printable(name)!r} is not in the data{close_to(name, self.names)} Their "
                f"columns: {listed}{', and others' * (len(self.names) > 8)}."
            )

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.column(name).values

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def columns_of(data: Any) -> PlainColumns:
    """Return the columns of a table by name, as arrays.

    Numbers are float64, NaN where missing; texts, truths and categories are objects, None where
    missing. Of ``IntervalData`` they are the seen values.

    Parameters
    ----------
    data : a data frame of pandas, polars or pyarrow, a mapping of columns, or IntervalData
        A mapping may hold single values, which then stand in every row.

    Returns
    -------
    mapping of str to array

    Raises
    ------
    InputError
        Where names stand twice, columns differ in length, or a column mixes texts and numbers.

    Examples
    --------
    >>> from halfseen.data.plain_columns import columns_of
    >>> columns = columns_of({"age": [31, None, 28], "site": ["a", "b", None]})
    >>> columns["age"], columns["site"]
    (array([31., nan, 28.]), array(['a', 'b', None], dtype=object))
    """
    if isinstance(data, PlainColumns):
        return data
    if isinstance(data, IntervalData | Table):
        return _of_values(data)
    if isinstance(data, OtherTable):
        raise InputError(data._needed)
    if isinstance(data, Mapping):
        return _of_mapping(data)
    if isinstance(data, str | os.PathLike):
        raise InputError(f"the data must be a table; got the name of a file, {str(data)!r}.")
    if not is_frame(data):
        raise InputError(
            "the data must be a data frame of pandas, polars or pyarrow, a dict of columns, or "
            f"IntervalData, so that columns have names; got {type(data).__name__}."
        )
    frame = FrameColumns(data)
    return PlainColumns(
        frame.names, frame.rows, lambda place: _of_series(frame.names[place], _series(data, place))
    )


def doubt_texts(column: PlainColumn) -> None:
    """Warn of a column of texts of which most are numbers, as frames of files with limits have."""
    texts = [(row, text) for row, text in enumerate(column.values) if isinstance(text, str)]
    odd = [(row, text) for row, text in texts if not _is_number(text)]
    seen = len(texts) - len(odd)
    if odd and seen >= MANY * len(texts):
        row, text = odd[0]
        remedy = "make the column one of numbers, with None where they are missing"
        warn(taken_as_categories(column.name, seen, f"row {row}", text, remedy))


def _is_number(text: str) -> bool:
    try:
        return np.isfinite(float(text))
    except ValueError:
        return False


def taken_as_categories(name: str, seen: int, where: str, text: str, remedy: str) -> str:
    """Say that a text among numbers makes categories of them, and what to do."""
    if text.strip().startswith(("<", ">")):
        remedy = (
            "make it an outcome of its own, on the left, so that its hidden values are modelled"
        )
    return (
        f"column {printable(name)} holds {seen} numbers, but {where} has {shown(text)}, so it is "
        f"taken as a column of categories. If it should be numbers, {remedy}."
    )


def is_frame(data: Any) -> bool:
    """Whether a table is, or claims to be, a data frame; a lazy one is not asked for its columns."""
    lazy = type(data).__name__ == "LazyFrame"
    return lazy or frame_kind(data) is not None or hasattr(data, "columns")


def close_to(name: str, names: Sequence[str]) -> str:
    """End a sentence about a name that is not there: with the one that was probably meant."""
    folded = {known.casefold().strip(): known for known in names}
    close = difflib.get_close_matches(name.casefold().strip(), folded, 1)
    return f"; did you mean {folded[close[0]]!r}?" if close else "."


def _of_values(data: IntervalData | Table) -> PlainColumns:
    values = np.asarray(data.values, dtype=float)

    def read(place: int) -> PlainColumn:
        column = np.ascontiguousarray(values[:, place])
        # Whole numbers are floats here whatever they were in the file.
        return PlainColumn(
            data.names[place], column, None, bool((np.trunc(column) == column).all())
        )

    return PlainColumns(data.names, len(values), read)


def _of_mapping(data: Mapping[Any, Any]) -> PlainColumns:
    names = [str(name) for name in data]
    columns = list(data.values())
    sizes = [_size(name, column) for name, column in zip(names, columns, strict=True)]
    known = [size for size in sizes if size is not None]
    rows = known[0] if known else int(bool(names))
    for name, size in zip(names, sizes, strict=True):
        if size not in (None, rows):
            first = names[sizes.index(rows)]
            raise InputError(
                f"columns must have the same length; {first!r} has {rows} rows and {name!r} has {size}."
            )

    def read(place: int) -> PlainColumn:
        if sizes[place] is not None:
            return _of_anything(names[place], columns[place])
        value = columns[place].item() if hasattr(columns[place], "item") else columns[place]
        one = _of_objects(names[place], [value])
        return one._replace(values=np.repeat(one.values, rows))

    return PlainColumns(names, rows, read)


def _size(name: str, column: Any) -> int | None:
    """Return the length of a column; None for a single value."""
    if isinstance(column, str | bytes) or not is_iterable(column):
        return None
    if getattr(column, "ndim", 1) != 1 or not hasattr(column, "__len__"):
        raise InputError(
            f"column {printable(name)}: a list or a one-dimensional array is needed; got "
            f"{type(column).__name__}"
            f"{f' of shape {column.shape}' if hasattr(column, 'shape') else ''}."
        )
    return len(column)


def _of_anything(name: str, column: Any) -> PlainColumn:
    library = type(column).__module__.split(".")[0]
    if library in LIBRARIES:
        if library == "pandas" and type(column).__name__ != "Series":
            import pandas as pd

            column = pd.Series(column)
        if library == "pyarrow" and not hasattr(column, "chunks"):
            import pyarrow as pa

            column = pa.chunked_array([column])
        return _of_series(name, column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiu":
        filled = np.ma.filled(column.astype(float), np.nan)
        return PlainColumn(name, np.array(filled, dtype=float), None, column.dtype.kind != "f")
    return _of_objects(name, column.tolist() if isinstance(column, np.ndarray) else list(column))


def _series(frame: Any, place: int) -> Any:
    """Return a column by its place, as its library has it."""
    if frame_kind(frame) == "pandas":
        return frame.iloc[:, place]
    return frame.column(place) if frame_kind(frame) == "pyarrow" else frame[:, place]


def _of_series(name: str, column: Any) -> PlainColumn:
    """Read a column of a data frame."""
    import narwhals.stable.v1 as nw

    series = nw.from_native(column, series_only=True)
    kind = series.dtype
    if kind in (nw.Categorical, nw.Enum):
        read = _of_objects(name, [_as_level(value) for value in series.to_list()])
        levels = [_as_level(value) for value in series.cat.get_categories().to_list()]
        if type(column).__module__.startswith("polars") and kind == nw.Categorical:
            # In the order in which polars met them, in whatever frame.
            levels = sorted(levels, key=str)
        known = tuple(level for level in levels if level is not None)
        return read._replace(levels=known, ordered=is_ordered(series))
    if kind.is_numeric() and not kind.is_decimal():
        floats = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float).view()
        # Perhaps the frame's own memory.
        floats.flags.writeable = False
        return PlainColumn(name, floats, None, kind.is_integer())
    return _of_objects(name, series.to_list())


def _as_level(value: Any) -> Any:
    # Intervals, as of pandas.cut, and whatever else a category may be, go by their text.
    return value if is_nothing(value) or _kind_of(value) != "" else str(value)


def _kind_of(value: Any) -> str:
    """Say what a cell holds; nothing where it is neither number nor text nor truth."""
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool | np.bool_):
        return "true or false"
    if isinstance(value, numbers.Real | Decimal) and not is_time(value):
        return "a number"
    return ""


def _of_objects(name: str, cells: Sequence[Any]) -> PlainColumn:
    """Read a column of anything that is all numbers, all texts, or all truths."""
    kinds = ["missing" if is_nothing(cell) else _kind_of(cell) for cell in cells]
    present = [kind for kind in dict.fromkeys(kinds) if kind != "missing"]
    if "" in present:
        row = kinds.index("")
        raise InputError(
            f"the cell holds {shown(str(cells[row]))}, a {type(cells[row]).__name__}; columns hold "
            "numbers, texts, or true and false. Of a date make a number, such as days since the first.",
            row,
            printable(name),
        )
    if len(present) > 1:
        row, other = kinds.index(present[1]), kinds.index(present[0])
        raise InputError(
            f"the cell holds {quoted(cells[row])}, {present[1]}, but row {other} holds "
            f"{quoted(cells[other])}, {present[0]}. Make them one or the other.",
            row,
            printable(name),
        )
    if present in ([], ["a number"]):
        known = [cell for cell, kind in zip(cells, kinds, strict=True) if kind != "missing"]
        values = np.full(len(cells), np.nan)
        values[[kind != "missing" for kind in kinds]] = [float_of(cell) for cell in known]
        whole = all(isinstance(cell, numbers.Integral) for cell in known)
        return PlainColumn(name, values, None, whole)
    convert = bool if present == ["true or false"] else str
    objects = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells):
        objects[row] = None if kinds[row] == "missing" else convert(cell)
    return PlainColumn(name, objects)


@dataclass(frozen=True, eq=False)
class HeldColumns:
    """Some consecutive rows of a table in memory that has columns of all kinds."""

    columns: tuple[PlainColumn, ...]
    rows: int

    def frame(self) -> PlainColumns:
        """Return the columns."""
        names = [column.name for column in self.columns]
        return PlainColumns(names, self.rows, lambda place: self.columns[place])


@dataclass(frozen=True, eq=False)
class SideBySide:
    """The same rows of two tables of numbers."""

    left: Any
    right: Any

    def read(self) -> NDArray[np.floating]:
        """Return the columns of both."""
        return np.hstack([self.left.read(), self.right.read()])


def columns_of_piece(piece: Any, names: tuple[str, ...]) -> PlainColumns:
    """Read a piece of a table; some say only what numbers they have, and not what those are called."""
    if hasattr(piece, "frame"):
        return columns_of(piece.frame())
    return columns_of(Table(piece.read(), names))


def cut_columns(columns: PlainColumns, names: Sequence[str]) -> RowBlocks:
    """Cut some columns of a table in memory into pieces."""
    for name in names:
        columns.check(name)
    own = [columns.column(name) for name in names]
    cuts = row_slices(columns.rows, max(len(names), 1))
    pieces = tuple(
        HeldColumns(
            tuple(column._replace(values=column.values[cut]) for column in own),
            cut.stop - cut.start,
        )
        for cut in cuts
    )
    return RowBlocks(tuple(names), pieces, tuple(piece.rows for piece in pieces))


def narrowed(blocks: RowBlocks, names: tuple[str, ...]) -> RowBlocks:
    """Return the same pieces with some of the columns, where these can be read by themselves."""
    if not all(isinstance(piece, ParquetChunk) for piece in blocks.pieces):
        return blocks
    pieces = tuple(replace(piece, columns=names) for piece in blocks.pieces)
    return replace(blocks, names=names, pieces=pieces)
