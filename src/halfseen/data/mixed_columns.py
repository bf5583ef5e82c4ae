"""Files in which outcomes, whose cells may be limits, stand beside columns of numbers and of texts."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cell_columns import Columns, RawColumn, read_column
from halfseen.data.cells import BLANK, CellFormat, called, read_cell, shorten
from halfseen.data.interval_data import IntervalData
from halfseen.data.names import base_of
from halfseen.data.plain_columns import MANY, PlainColumn, PlainColumns, taken_as_categories
from halfseen.data.readers import read_columns
from halfseen.errors import InputError, argument, spelled, warn

TRUTHS = {"true": True, "false": False}
# Words that are shown.
MOST_SHOWN = 5


class MixedColumns(PlainColumns):
    """Columns by name, of which some are intervals.

    Attributes
    ----------
    intervals : dict of str to IntervalData
        One column each. As plain columns they are their seen values.
    """

    doubted = True

    def __init__(
        self,
        names: Sequence[str],
        rows: int,
        read: Callable[[int], PlainColumn],
        intervals: Mapping[str, IntervalData],
    ) -> None:
        super().__init__(names, rows, read)
        self.intervals = dict(intervals)

    def take(self, rows: NDArray[np.intp]) -> MixedColumns:
        """Return some of the rows."""

        def read(place: int) -> PlainColumn:
            column = self.column(self.names[place])
            return column._replace(values=column.values[rows])

        intervals = {name: data.take(rows) for name, data in self.intervals.items()}
        return MixedColumns(self.names, len(rows), read, intervals)

    def with_intervals(self, intervals: Mapping[str, IntervalData]) -> MixedColumns:
        """Return the same with other cells of some outcomes."""

        def read(place: int) -> PlainColumn:
            name = self.names[place]
            return _seen_values(name, intervals[name]) if name in intervals else self.column(name)

        return MixedColumns(self.names, self.rows, read, {**self.intervals, **intervals})


def read_mixed(
    table: Columns,
    form: CellFormat,
    measured: Sequence[str],
    *,
    companions: bool = True,
    categories: Mapping[str, Collection[str]] | None = None,
    **reading: Any,
) -> MixedColumns:
    r"""Read outcomes by the grammar of cells, with their flags or ends, and other columns as plain ones.

    A plain column holds numbers where all its cells are numbers or blank, truths where all are true or
    false, and else texts. It is read when it is asked for.

    Parameters
    ----------
    table : FileColumns or FrameColumns
    form : CellFormat
    measured : names
        Outcomes whose cells may be limits. Those that hold truths, or categories in order, stay plain
        columns; those that are not in the table are left to who asks for them.
    companions : bool
        As in ``read_csv``.
    categories : mapping, optional
        Words that are categories of a column, though they may mean elsewhere that a cell is missing.
    **reading
        More options of ``read_csv``: index, unreadable, flags, limits, saturated.

    Returns
    -------
    MixedColumns

    Raises
    ------
    InputError
        Where a cell of an outcome cannot be read, or an outcome holds words.

    Examples
    --------
    >>> import io
    >>> from halfseen.data.cells import CellFormat
    >>> from halfseen.data.csv_files import read_records
    >>> from halfseen.data.cell_columns import FileColumns
    >>> form = CellFormat()
    >>> file = io.StringIO("lead,age,site\n<0.5,31,mill\n0.7,,well\n")
    >>> columns = read_mixed(FileColumns(read_records(file, None, "utf-8", form)), form, ["lead"])
    >>> columns.intervals["lead"]
    IntervalData(2 rows, 1 column; cells: 1 seen, 1 below)
    >>> columns["age"], columns["site"]
    (array([31., nan]), array(['mill', 'well'], dtype=object))
    """
    spoken = {} if not companions else {name: base_of(name).casefold() for name in table.names}
    intervals: dict[str, IntervalData] = {}
    for name in measured:
        beside = name.casefold() in spoken.values()
        if name in table.names:
            place = list(table.names).index(name)
            raw = table.column(place)
            if _holds_truths(raw, form) or table.levels(place) is not None:
                continue
            _check_words(raw, form)
        elif not beside:
            continue
        intervals[name] = read_columns(
            table, form, [name], companions=companions, may_be_long=False, **reading
        )
    of_intervals = {name.casefold() for name in intervals}
    others = [
        name
        for name in table.names
        if name not in intervals and spoken.get(name) not in of_intervals
    ]
    place_of = {name: place for place, name in enumerate(table.names)}
    names = [*intervals, *others]

    def read(place: int) -> PlainColumn:
        name = names[place]
        if name in intervals:
            return _seen_values(name, intervals[name])
        raw, levels = table.column(place_of[name]), table.levels(place_of[name])
        if levels is not None and raw.texts is not None:
            # Categories as they are, whatever else such a word may mean.
            return PlainColumn(name, np.array(raw.texts, dtype=object), levels, ordered=True)
        return plain_column(raw, form, table.lines, (categories or {}).get(name, ()))

    return MixedColumns(names, table.rows, read, intervals)


def plain_column(
    raw: RawColumn,
    form: CellFormat,
    lines: Sequence[int] | None = None,
    categories: Collection[str] = (),
) -> PlainColumn:
    """Return a column as numbers, as truths, or as texts; missing cells are NaN or None."""
    if raw.kind and raw.kind != "true and false":
        raise InputError(
            f"column {called(raw.name)} holds {raw.kind}. Make numbers of it, such as days since the "
            "first."
        )
    if raw.texts is None:
        assert raw.numbers is not None
        return _of_numbers(raw.name, raw.numbers)
    cells = read_column(raw, form)
    seen = cells.lower == cells.upper
    odd = ~(seen | cells.missing)
    odd[list(cells.problems)] = True
    if not odd.any():
        return _of_numbers(raw.name, np.where(seen, cells.lower, np.nan))
    texts = [_text(raw.text(row), form, categories) for row in range(len(seen))]
    values = np.array([text if text is None else TRUTHS.get(text.casefold()) for text in texts])
    if not any(
        text is not None and value is None for text, value in zip(texts, values, strict=True)
    ):
        return PlainColumn(raw.name, values.astype(object))
    _doubt_texts(raw, int(seen.sum()), np.flatnonzero(odd), lines)
    return PlainColumn(raw.name, np.array(texts, dtype=object))


def _seen_values(name: str, data: IntervalData) -> PlainColumn:
    return _of_numbers(name, data.values[:, 0])


def _of_numbers(name: str, values: NDArray[np.float64]) -> PlainColumn:
    known = values[~np.isnan(values)]
    return PlainColumn(name, np.array(values), None, bool((np.trunc(known) == known).all()))


def _text(text: str, form: CellFormat, categories: Collection[str] = ()) -> str | None:
    """Return a cell as a category; None where it is missing."""
    text = text.strip()
    if text in categories:
        return text
    return None if not text or read_cell(text, form) == BLANK else text


def _holds_truths(raw: RawColumn, form: CellFormat) -> bool:
    if raw.texts is None or (raw.kind and raw.kind != "true and false"):
        return False
    present = {_text(text, form) for text in set(raw.texts) if text is not None} - {None}
    return bool(present) and all(str(text).casefold() in TRUTHS for text in present)


def _check_words(raw: RawColumn, form: CellFormat) -> None:
    """Raise where an outcome holds words, and no cell of it says anything of a number."""
    if raw.texts is None or raw.kind:
        return
    if raw.numbers is not None and not np.isnan(raw.numbers).all():
        return
    words = {text for one in set(raw.texts) if one is not None and (text := _text(one, form))}
    if not words or not all(read_cell(word, form).problem for word in words):
        return
    if any(character.isdigit() for word in words for character in word):
        return
    some = sorted(words)[:MOST_SHOWN]
    told = shlex.quote(f"{raw.name}: {' < '.join(some)}")
    raise InputError(
        f"{called(raw.name)} holds words: {', '.join(map(shorten, some))}"
        f"{', and others' * (len(words) > MOST_SHOWN)}. Say its categories from the lowest to the "
        f"highest, as in {spelled(f'kinds={{{raw.name!r}: {some!r}}}', f'--kind {told}')}."
    )


def _doubt_texts(
    raw: RawColumn, seen: int, odd: NDArray[np.intp], lines: Sequence[int] | None
) -> None:
    """Warn of a column of numbers that a few other cells make one of texts."""
    if seen < MANY * (seen + odd.size):
        return
    row = int(odd[0])
    where = f"row {row}" if lines is None else f"line {lines[row]}"
    remedy = f"correct the cell, or tell a word for missing with {argument('missing')}"
    warn(taken_as_categories(raw.name, seen, where, raw.text(row), remedy))
