"""Columns of data frames, whichever library they come from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.data.cell_columns import RawColumn, column_of_objects, is_nothing
from halfseen.data.frames import frame_kind
from halfseen.errors import InputError


class FrameColumns:
    """A data frame, column by column."""

    lines: Sequence[int] | None = None

    def __init__(self, frame: Any) -> None:
        nw = _narwhals()
        if type(frame).__name__ == "LazyFrame":
            raise InputError("a lazy frame has no rows yet; pass frame.collect().")
        self.source = "the data frame"
        self.frame = frame_kind(frame)
        self.names = _names_of(frame)
        try:
            # Libraries with labels need no unique names, narwhals does.
            self._table = nw.from_native(_with_plain_names(frame), eager_only=True)
        except TypeError:
            raise InputError(
                "a data frame of pandas, polars or pyarrow is needed here; got "
                f"{type(frame).__module__}.{type(frame).__qualname__}. Arrays go into "
                "IntervalData or fit as they are."
            ) from None
        self.rows = len(self._table)
        self.labels_of_index = _labels_of_index(frame)
        self.index_of_frame = frame.index if self.frame == "pandas" else None

    def column(self, place: int) -> RawColumn:
        """Return a column as texts or numbers."""
        nw = _narwhals()
        series = self._table[:, place]
        name, kind = self.names[place], series.dtype
        if kind.is_numeric():
            try:
                floats = series.cast(nw.Float64).to_numpy()
                return RawColumn(name, None, np.array(floats, dtype=np.float64))
            except Exception:  # each library has its own error for what it cannot cast
                return column_of_objects(name, series.to_list())
        values = series.to_list()
        raw = column_of_objects(name, values)
        if kind == nw.Boolean:
            return raw._replace(kind="true and false")
        if kind.is_temporal():
            return raw._replace(kind="dates or times")
        if kind.is_nested() or kind == nw.Binary:
            return raw._replace(kind=f"values of type {kind}")
        return raw

    def labels(self, place: int) -> tuple[str, ...]:
        """Return a column as labels of the rows."""
        return tuple("" if is_nothing(v) else str(v) for v in self._table[:, place].to_list())


def open_parquet(path: str | os.PathLike[str], asked: Collection[Any] = ()) -> FrameColumns:
    """Read a Parquet file; columns in which pandas saved an index become labels, unless asked for."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(
            'Reading Parquet files needs pyarrow: pip install "halfseen[parquet]".'
        ) from None
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the path of a Parquet file; got {path!r}.")
    source = os.fspath(path)
    if not Path(source).exists():
        raise InputError(f"{source} cannot be read: there is no such file.")
    try:
        table = pq.read_table(source)
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror or error}.") from None
    except (pa.ArrowException, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{source} is no Parquet file that can be read: {first}") from None
    saved = (table.schema.pandas_metadata or {}).get("index_columns", [])
    kept = [name for name in saved if name in table.column_names and name not in asked]
    columns = FrameColumns(table.drop_columns(kept))
    columns.source, columns.frame = source, None
    if kept:
        values = zip(*(table[name].to_pylist() for name in kept), strict=True)
        columns.labels_of_index = tuple(", ".join(map(str, labels)) for labels in values)
    return columns


def _narwhals() -> Any:
    try:
        import narwhals.stable.v1 as nw
    except ImportError:
        raise InputError("Reading data frames needs narwhals: pip install narwhals.") from None
    return nw


def _names_of(frame: Any) -> list[str]:
    names = getattr(frame, "column_names", None)
    if names is None:
        names = getattr(frame, "columns", None)
    if names is None or callable(names):
        return []
    return [str(name) for name in names]


def _with_plain_names(frame: Any) -> Any:
    """Give pandas columns names that are unique texts, without changing the frame itself."""
    if frame_kind(frame) != "pandas":
        if (
            frame_kind(frame) == "pyarrow"
            and max(Counter(frame.column_names).values(), default=0) > 1
        ):
            return frame.rename_columns([str(j) for j in range(frame.num_columns)])
        return frame
    plain = frame.copy(deep=False)
    plain.columns = [str(j) for j in range(frame.shape[1])]
    return plain


def _labels_of_index(frame: Any) -> tuple[str, ...] | None:
    """Return the index of a pandas frame as texts; None where it only counts the rows."""
    index = getattr(frame, "index", None) if frame_kind(frame) == "pandas" else None
    if index is None:
        return None
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
        return None
    return tuple(
        ", ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in index
    )
