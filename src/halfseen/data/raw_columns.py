"""The columns of files and data frames as they came, before anyone asks what their cells say."""

from __future__ import annotations

import numbers
import os
from collections import Counter
from collections.abc import Collection, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.csv_files import NumberTexts, Records
from halfseen.data.parquet_files import CHECKED, pyarrow_parquet, pyarrow_sentences, saved_index
from halfseen.data.table import float_of, frame_kind
from halfseen.errors import InputError


class RawColumn(NamedTuple):
    """A column as it came: texts, numbers, or a mixture.

    ``texts`` has None where ``numbers`` holds the cell, and NaN in ``numbers`` is a missing one.
    ``kind`` says what the column holds if its type alone rules out that it holds measurements.
    """

    name: str
    texts: Sequence[str | None] | None
    numbers: NDArray[np.float64] | None
    kind: str = ""

    def text(self, row: int) -> str:
        """Return a cell as a message shows it."""
        text = None if self.texts is None else self.texts[row]
        if text is not None:
            return text
        assert self.numbers is not None
        value = float(self.numbers[row])
        return "" if np.isnan(value) else repr(value)


class FileColumns:
    """The columns of a file of separated values."""

    frame: str | None = None
    index_of_frame: Any = None

    def __init__(self, records: Records) -> None:
        self.labels_of_index = records.labels
        self.source, self.names = records.source, records.names
        self.lines: Sequence[int] | None = records.lines
        self.rows = len(records.lines)
        self._columns = records.columns

    def column(self, place: int) -> RawColumn:
        """Return a column of texts, or of numbers if all are and there are many."""
        texts = self._columns[place]
        if isinstance(texts, NumberTexts):
            return RawColumn(self.names[place], None, texts.numbers)
        return RawColumn(self.names[place], texts, None)

    def labels(self, place: int) -> tuple[str, ...]:
        """Return a column as labels of the rows."""
        return tuple(self._columns[place])

    def index_of(self, place: int, rows: NDArray[np.intp]) -> None:
        """Files have no labels but texts."""

    def levels(self, place: int) -> None:
        """Texts of a file have no order of their own."""


class FrameColumns:
    """The columns of a data frame, whichever library it comes from."""

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
            table = nw.from_native(_with_plain_names(frame), eager_only=True)
        except TypeError:
            raise InputError(
                "a data frame of pandas, polars or pyarrow is needed here; got "
                f"{type(frame).__module__}.{type(frame).__qualname__}. Arrays go into "
                "IntervalData or fit as they are."
            ) from None
        self.rows = len(table)
        # Taken one by one, each would go through all of the table.
        self._series = list(table.iter_columns())
        self.labels_of_index = _labels_of_index(frame)
        self.index_of_frame = frame.index if self.frame == "pandas" else None

    def column(self, place: int) -> RawColumn:
        """Return a column as texts or numbers."""
        nw = _narwhals()
        series = self._series[place]
        name, kind = self.names[place], series.dtype
        if kind.is_numeric():
            try:
                floats = series.cast(nw.Float64).to_numpy()
                return RawColumn(name, None, np.array(floats, dtype=np.float64))
            except Exception:  # each library has its own error for what it cannot cast
                return column_of_objects(name, series.to_list())
        raw = column_of_objects(name, series.to_list())
        if kind == nw.Boolean:
            return raw._replace(kind="true and false")
        if kind.is_temporal():
            return raw._replace(kind="dates or times")
        if kind.is_nested() or kind == nw.Binary:
            return raw._replace(kind=f"values of type {kind}")
        return raw

    def labels(self, place: int) -> tuple[str, ...]:
        """Return a column as labels of the rows."""
        return tuple("" if is_nothing(v) else str(v) for v in self._series[place].to_list())

    def index_of(self, place: int, rows: NDArray[np.intp]) -> Any:
        """Return cells of a column as labels in the way of its library; None where it has none."""
        if self.frame != "pandas":
            return None
        import pandas as pd

        return pd.Index(self._series[place].to_native().iloc[rows], name=self.names[place])

    def levels(self, place: int) -> tuple[str, ...] | None:
        """Return the categories of a column in their own order; None where they have none."""
        nw, series = _narwhals(), self._series[place]
        if series.dtype not in (nw.Categorical, nw.Enum) or not is_ordered(series):
            return None
        return tuple(map(str, series.cat.get_categories().to_list()))


Columns = FileColumns | FrameColumns


def open_parquet(path: str | os.PathLike[str], asked: Collection[Any] = ()) -> FrameColumns:
    """Read a Parquet file; columns in which pandas saved an index become labels, unless asked for."""
    pq = pyarrow_parquet()
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the path of a Parquet file; got {path!r}.")
    source = os.fspath(path)
    if not Path(source).exists():
        raise InputError(f"{source} cannot be read: there is no such file.")
    with pyarrow_sentences(source):
        table = pq.read_table(source, **CHECKED)
        kept = [name for name in saved_index(table.schema) if name not in asked]
    columns = FrameColumns(table.drop_columns(kept))
    columns.source, columns.frame = source, None
    if kept:
        values = zip(*(table[name].to_pylist() for name in kept), strict=True)
        columns.labels_of_index = tuple(", ".join(map(str, labels)) for labels in values)
    return columns


def column_of_objects(name: str, values: Sequence[Any]) -> RawColumn:
    """Read a column of anything: numbers stay numbers, the rest becomes texts."""
    numbers_read = np.full(len(values), np.nan)
    texts: list[str | None] = [None] * len(values)
    for row, value in enumerate(values):
        if isinstance(value, str):
            texts[row] = value
        elif isinstance(value, bool | np.bool_):
            texts[row] = str(bool(value)).lower()
        elif isinstance(value, numbers.Real | Decimal):
            numbers_read[row] = float_of(value)
        elif not is_nothing(value):
            texts[row] = str(value)
    only_numbers = all(text is None for text in texts)
    return RawColumn(name, None if only_numbers else texts, numbers_read)


def is_ordered(categories: Any) -> bool:
    """Whether the categories of a series of narwhals go from the lowest to the highest."""
    native = categories.to_native()
    if hasattr(native, "cat") and hasattr(native.cat, "ordered"):
        return bool(native.cat.ordered)
    # Of pyarrow the type says it; of polars it is the other type of categories that has no order.
    return (
        bool(getattr(native.type, "ordered", False))
        if hasattr(native, "type")
        else (categories.dtype == _narwhals().Enum)
    )


def is_nothing(value: Any) -> bool:
    """Tell the many kinds of missing values from others."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Real | Decimal) and value != value


def _narwhals() -> Any:
    try:
        import narwhals.stable.v1 as nw
    except ImportError:
        raise InputError("Reading data frames needs narwhals: pip install narwhals.") from None
    return nw


def _names_of(frame: Any) -> list[str]:
    # Not whichever there is: a column of pandas that has the name of the other would be taken for it.
    where = "column_names" if frame_kind(frame) == "pyarrow" else "columns"
    names = getattr(frame, where, None)
    return [] if names is None or callable(names) else [str(name) for name in names]


def _with_plain_names(frame: Any) -> Any:
    """Give columns names that are unique texts, without changing the frame itself."""
    kind = frame_kind(frame)
    if kind == "pandas":
        plain = frame.copy(deep=False)
        plain.columns = [str(j) for j in range(frame.shape[1])]
        return plain
    if kind == "pyarrow" and max(Counter(frame.column_names).values(), default=0) > 1:
        return frame.rename_columns([str(j) for j in range(frame.num_columns)])
    return frame


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
