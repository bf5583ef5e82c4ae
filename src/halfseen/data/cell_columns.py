"""The columns of files and data frames as they came, and what their cells say.

A column says what it says by itself, or of two with the ends of its intervals. Each different text is
read once, and plain numbers all at once.
"""

from __future__ import annotations

import numbers
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cells import (
    BLANK,
    Cell,
    CellFormat,
    called,
    is_lost,
    print_number,
    read_cell,
    shorten,
    tidy,
)
from halfseen.data.csv_files import NumberTexts, Records
from halfseen.data.names import flag_option
from halfseen.data.parquet_files import CHECKED, pyarrow_parquet, pyarrow_sentences, saved_index
from halfseen.data.table import float_of, frame_kind
from halfseen.errors import InputError, argument

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
# Texts made of these alone are numbers wherever Python takes them for numbers: without letters there
# is no "nan" or "inf", and without "_" and spaces none of Python's other liberties.
PLAIN = frozenset("0123456789.+-eE")
INFINITE = "is infinite; a missing value is NaN, and a limit is written as a text such as >100"


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


@dataclass
class ReadColumn:
    """What the cells of one column say. ``problems`` has text and reason of the unreadable rows."""

    lower: Floats
    upper: Floats
    not_detected: Mask
    estimated: Mask
    problems: dict[int, tuple[str, str]]

    @classmethod
    def blank(cls, n: int) -> ReadColumn:
        """Return a column of which nothing is known."""
        return cls(
            np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n, bool), np.zeros(n, bool), {}
        )

    @property
    def are_words(self) -> bool:
        """Whether no cell is a number, and more are unreadable than not detected (ND is a state)."""
        numbers = np.isfinite(self.lower).any() or np.isfinite(self.upper).any()
        return not numbers and len(self.problems) > self.not_detected.sum()

    @property
    def missing(self) -> Mask:
        """Mask of the cells that say nothing at all, or could not be read."""
        return np.isneginf(self.lower) & np.isposinf(self.upper) & ~self.not_detected

    def put(self, rows: Any, cell: Cell) -> None:
        """Write one cell into some rows."""
        self.lower[rows], self.upper[rows] = cell.lower, cell.upper
        self.not_detected[rows], self.estimated[rows] = cell.not_detected, cell.estimated

    def refuse(self, row: int, text: str, reason: str) -> None:
        """Note that a cell cannot be read; it then says nothing."""
        self.put(row, BLANK)
        self.problems.setdefault(row, (text, reason))


def read_column(raw: RawColumn, form: CellFormat) -> ReadColumn:
    """Read the cells of a column of measurements."""
    if raw.texts is None:
        assert raw.numbers is not None
        return _cells_of_numbers(raw.numbers, form)
    if raw.numbers is None:
        plain = _plain_numbers(raw.texts, form)
        if plain is not None:
            return _cells_of_numbers(plain, form)
        cells = ReadColumn.blank(len(raw.texts))
    else:
        cells = _cells_of_numbers(raw.numbers, form)
    _read_texts(raw.texts, form, cells)
    return cells


def read_ends(lower: RawColumn, upper: RawColumn, form: CellFormat) -> ReadColumn:
    """Read the columns of both ends of intervals; reversed ones are refused."""
    low, cells = _read_end(lower, form, "lower")
    high, of_upper = _read_end(upper, form, "upper")
    cells.lower[:], cells.upper[:] = low, high
    # First, so that an end that is no number is not taken for one that is reversed.
    for row, problem in (of_upper.problems | cells.problems).items():
        cells.refuse(row, *problem)
    for row in np.flatnonzero(low > high).tolist():
        text = f"{print_number(low[row])}..{print_number(high[row])}"
        cells.refuse(row, text, "is reversed: its lower end is above its upper end")
    return cells


def _read_end(raw: RawColumn, form: CellFormat, side: str) -> tuple[Floats, ReadColumn]:
    """Read a column of lower or upper ends; an empty cell is no bound on that side.

    Returns the ends, and cells whose ``problems`` say which could not be read.
    """
    lower = side == "lower"
    open_end, signs = (-np.inf, ["-"]) if lower else (np.inf, ["", "+"])
    words = {sign + word for sign in signs for word in ("inf", "infinity", "∞")}
    numbers, texts = raw.numbers, raw.texts
    if numbers is not None:
        numbers = np.where(numbers == open_end, np.nan, numbers)
    if texts is not None:
        texts = ["" if text and tidy(text).casefold() in words else text for text in texts]
    cells = read_column(RawColumn(raw.name, texts, numbers), form)
    end = "a lower end" if lower else "an upper end"
    ends = np.where(cells.missing, open_end, cells.lower)
    for row in np.flatnonzero((cells.lower != cells.upper) & ~cells.missing).tolist():
        cells.refuse(row, raw.text(row), f"must be a number, or empty, to be {end}")
    return ends, cells


def _plain_numbers(texts: Sequence[str | None], form: CellFormat) -> Floats | None:
    """Read a column of plain numbers; None if there is any other text in it."""
    if form.decimal != "." or form.thousands == ".":
        return None
    try:
        if not PLAIN.issuperset("".join(texts)):  # type: ignore[arg-type]  # None is a TypeError here
            return None
        values = np.fromiter(map(float, texts), np.float64, len(texts))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if not np.isfinite(values).all():
        return None
    if any(is_lost(str(texts[row])) for row in np.flatnonzero(values == 0.0).tolist()):
        return None
    if form.words and not form.words.keys().isdisjoint(texts):
        return None
    return values


def _cells_of_numbers(values: Floats, form: CellFormat) -> ReadColumn:
    cells = ReadColumn.blank(len(values))
    known = np.isfinite(values)
    cells.lower[known] = cells.upper[known] = values[known]
    if "" in form.words:
        cells.put(np.isnan(values), form.words[""])
    wrong = np.isinf(values)
    for code, meaning in form.codes.items():
        cells.put(values == code, meaning)
        wrong &= values != code
    for row in np.flatnonzero(wrong):
        cells.refuse(int(row), str(values[row]), INFINITE)
    return cells


def _read_texts(texts: Sequence[str | None], form: CellFormat, cells: ReadColumn) -> None:
    """Read the cells that are texts: numbers and ``<number`` at once, the others one by one."""
    slow = [(row, text) for row, text in _read_common(texts, form, cells) if text is not None]
    known = {text: read_cell(text, form) for text in {text for _, text in slow}}
    rows = [row for row, _ in slow]
    read = [known[text] for _, text in slow]
    into = (cells.lower, cells.upper, cells.not_detected, cells.estimated)
    for array, values in zip(into, zip(*read, strict=True), strict=False):
        array[rows] = values
    for row, text in slow:
        if known[text].problem:
            cells.refuse(row, text, known[text].problem)


def _read_common(
    texts: Sequence[str | None], form: CellFormat, cells: ReadColumn
) -> list[tuple[int, str | None]]:
    """Read the plain numbers and the limits ``<number``; return the rows and texts of the rest."""
    everything = list(enumerate(texts))
    if form.words or form.codes:
        return everything
    is_common = form.patterns["common"].fullmatch
    common = [text is not None and is_common(text) is not None for text in texts]
    chosen = [str(text) for text, is_so in zip(texts, common, strict=True) if is_so]
    values = np.array(
        [float(form.plain(text.removeprefix("<"))) for text in chosen], dtype=np.float64
    )
    # What a double cannot hold is left for the way that has the sentences.
    odd = np.isinf(values)
    odd[[k for k in np.flatnonzero(values == 0.0).tolist() if is_lost(chosen[k])]] = True
    rows = np.flatnonzero(common)
    limit = np.array([text[0] == "<" for text in chosen], dtype=bool)
    cells.upper[rows] = values
    cells.lower[rows] = np.where(limit, -np.inf, values)
    slow = ~np.array(common, dtype=bool)
    slow[rows[odd]] = True
    return [everything[row] for row in np.flatnonzero(slow).tolist()]


def example_of_numbers(raw: RawColumn, form: CellFormat) -> str:
    """Return a number other than 0 and 1 that a flag column holds; empty if there is none."""
    if raw.numbers is not None:
        other = raw.numbers[~np.isnan(raw.numbers) & (raw.numbers != 0) & (raw.numbers != 1)]
        if other.size:
            return print_number(other[0])
    for text in dict.fromkeys(raw.texts or ()):
        if text is not None and any(map(str.isdigit, text)):
            cell = read_cell(text, form)
            if np.isfinite(cell.lower) and cell.lower not in (0.0, 1.0):
                return text
    return ""


def holds_measurements(raw: RawColumn, form: CellFormat) -> bool:
    """Whether there is a value, a limit or a word for "not detected" in a column."""
    cells = (read_cell(text, form) for text in different(raw))
    return any(cell.not_detected or np.isfinite(cell[:2]).any() for cell in cells)


def holds_numbers(raw: RawColumn, form: CellFormat) -> bool:
    """Whether a column holds plain numbers, and nothing else but blank cells."""
    if raw.kind:
        return False
    cells = [read_cell(text, form) for text in different(raw)]
    known = [cell for cell in cells if cell != BLANK]
    return bool(known) and all(cell.lower == cell.upper for cell in known)


def different(raw: RawColumn) -> Iterator[str]:
    """Return the different cells of a column, as texts."""
    if raw.numbers is not None:
        yield from map(print_number, np.unique(raw.numbers[~np.isnan(raw.numbers)]))
    yield from dict.fromkeys(text for text in raw.texts or () if text is not None)


def whole_column(name: str, held: str, texts: Iterable[str], of: str = "") -> str:
    """Say that a column holds no measurements; ``of`` is the only other one, if there is one."""
    different = list(dict.fromkeys(texts))
    shown = ", ".join(shorten(text, 20) for text in different[:2])
    more = ", ..." if len(different) > 2 else ""
    quoted = f" ({shown}{more})" if shown else ""
    if held == "true and false":
        # To leave out the flags of another column would make measurements of its limits.
        mark = next(
            (text for text in different if text.casefold() in ("true", "yes")), different[0]
        )
        return (
            f"column {called(name)} holds {held}{quoted}. If {shorten(mark, 20)} marks values of "
            f"{called(of) if of else 'a column X'} that are not detected, say "
            f"{flag_option(of or 'X', name, mark)}. If it says nothing of "
            f"another column, leave it out with {argument('exclude', name)}, or make it the row labels "
            f"with {argument('index', name)}."
        )
    return (
        f"column {called(name)} holds {held}{quoted}: leave it out with {argument('exclude', name)}, "
        f"or make it the row labels with {argument('index', name)}."
    )
