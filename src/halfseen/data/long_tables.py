"""Long tables: a row for each value, which says of which subject, of what, and when.

Visits, weeks and dates become columns of a wide table, in the order in which people expect them.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import is_iterable
from halfseen.data.cell_columns import Columns, FileColumns, FrameColumns, ReadColumn, open_parquet
from halfseen.data.cells import BLANK, CellFormat, called, print_number, read_cell, shorten
from halfseen.data.csv_files import read_records
from halfseen.data.interval_data import IntervalData
from halfseen.data.long_cells import (
    NOTHING,
    check_units,
    doubt_cases,
    numbers_in,
    read_constant,
    read_values,
    where,
)
from halfseen.data.names import Declared, declare, find_column, is_pattern, matching
from halfseen.data.plain_columns import is_frame
from halfseen.data.readers import check_read
from halfseen.errors import InputError, argument

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
YEAR_FIRST = re.compile(r"([0-9]{4})([-/.]?)([0-9]{1,2})\2([0-9]{1,2})(?:[ T](.*))?")
YEAR_LAST = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})(?:[ T](.*))?")
WITH_NAME = re.compile(
    rf"([0-9]{{1,2}})[- .]*({'|'.join(MONTHS)})[a-z]*[- .,]*([0-9]{{4}})(?:[ :T](.*))?",
    re.IGNORECASE,
)
MIDNIGHT = re.compile(r"(.+)[ T]00:00(?::00(?:\.0+)?)?")
NUMBERED = re.compile(r"(.*?)([0-9]+(?:\.[0-9]+)?)(\D*)")
Integers = NDArray[np.intp]
Mask = NDArray[np.bool_]
# So many other columns are named as what may tell duplicates apart.
MOST_NAMED = 3


class Visits(NamedTuple):
    """Different times in order: how each is called, and which texts are the same one."""

    names: list[str]
    places: dict[str, int]
    are_numbers: bool


def order_visits(
    texts: Sequence[str], column: str, form: CellFormat, levels: Sequence[str] | None = None
) -> Visits:
    """Put the different texts of a column of times in order.

    Categories keep their order. Numbers go by size, dates by day. Words that end in a number after the
    same beginning ("week 2", "week 10") go by the number; of other words among them ("baseline") those
    that come before the first of them in the file stay before, the rest goes last. All else stays in
    the order of the file.

    Examples
    --------
    >>> from halfseen.data.cells import CellFormat
    >>> from halfseen.data.long_tables import order_visits
    >>> order_visits(["10", "2", "2.0"], "week", CellFormat())
    Visits(names=['2', '10'], places={'10': 1, '2': 0, '2.0': 0}, are_numbers=True)
    >>> order_visits(["baseline", "week 10", "week 2", "end"], "visit", CellFormat()).names
    ['baseline', 'week 2', 'week 10', 'end']
    """
    different = list(dict.fromkeys(texts))
    if levels is not None:
        names = [level for level in levels if level in set(different)]
        return Visits(names, {name: place for place, name in enumerate(names)}, False)
    cells = [read_cell(text, form) for text in different]
    if all(cell.lower == cell.upper and not cell.problem for cell in cells):
        numbers = sorted({cell.lower + 0.0 for cell in cells})
        place = {number: k for k, number in enumerate(numbers)}
        places = {text: place[cell.lower] for text, cell in zip(different, cells, strict=True)}
        return Visits([print_number(one, form.decimal) for one in numbers], places, True)
    keys: list[Any] | None = _dates(different, column)
    if keys is not None:
        # A day is no more than a day where no cell has an hour.
        plain = [match[1] if (match := MIDNIGHT.fullmatch(text)) else text for text in different]
        midnight = all(match != text for match, text in zip(plain, different, strict=True))
        called = plain if midnight else different
    else:
        keys, called = _numbered(different), different
    order = sorted(range(len(different)), key=keys.__getitem__)
    places = {different[k]: place for place, k in enumerate(order)}
    return Visits([called[k] for k in order], places, False)


def _numbered(texts: Sequence[str]) -> list[tuple[float, float, int]]:
    """Return the keys by which words are sorted."""
    matches = [NUMBERED.fullmatch(text) for text in texts]
    stems = {(match[1].casefold(), match[3].casefold()) for match in matches if match}
    if len(stems) != 1:
        return [(0.0, 0.0, k) for k in range(len(texts))]
    first = next(k for k, match in enumerate(matches) if match)
    return [
        (0.0, float(match[2]), k) if match else (-1.0 if k < first else 1.0, 0.0, k)
        for k, match in enumerate(matches)
    ]


def _dates(texts: Sequence[str], column: str) -> list[tuple[dt.date, str]] | None:
    """Read dates; None if any text is none."""
    last = [YEAR_LAST.fullmatch(text) for text in texts]
    if all(last):
        return _year_last(texts, [match for match in last if match], column)
    days: list[tuple[dt.date, str]] = []
    for text in texts:
        first, named = YEAR_FIRST.fullmatch(text), WITH_NAME.fullmatch(text)
        if first:
            day = _day(first[1], first[3], first[4])
        elif named:
            day = _day(named[3], str(MONTHS.index(named[2].lower()) + 1), named[1])
        else:
            return None
        if day is None:
            return None
        days.append((day, (first or named)[5 if first else 4] or ""))  # type: ignore[index]
    return days


def _year_last(
    texts: Sequence[str], matches: Sequence[re.Match[str]], column: str
) -> list[tuple[dt.date, str]] | None:
    """Read dates that end in the year: the day stands first, or the month; raise where nobody knows."""
    orders = []
    for day, month in ((1, 3), (3, 1)):
        read = [_day(match[4], match[month], match[day]) for match in matches]
        if all(read):
            orders.append([(one, m[5] or "") for one, m in zip(read, matches, strict=True) if one])
    if len(orders) < 2 or all(match[2] == "." for match in matches):
        return orders[0] if orders else None
    order = [sorted(range(len(texts)), key=keys.__getitem__) for keys in orders]
    if order[0] == order[1]:
        return orders[0]
    raise InputError(
        f"column {column} holds dates such as {shorten(texts[0])}, of which nobody can say whether the "
        "day or the month stands first. Write them as 2024-01-31, so that they can be put in order."
    )


def _day(year: str, month: str, day: str) -> dt.date | None:
    try:
        return dt.date(int(year), int(month), int(day))
    except ValueError:
        return None


@dataclass(frozen=True)
class LongNames:
    """Which columns of a long table say what; see ``read_long``."""

    id: str
    value: str
    time: str | None = None
    variable: str | None = None
    columns: Sequence[str] | str | None = None
    keep: Sequence[str] | str | None = None
    covariates: Sequence[str] | str | None = None
    unit: str | None = None
    flags: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None = None
    limits: str | Sequence[str] | Mapping[str, str] | None = None

    @property
    def asked(self) -> set[Any]:
        """Columns that are read, which may be among those that pandas saved as an index."""
        several = (*_listed(self.keep), *_listed(self.covariates))
        return {self.id, self.value, self.time, self.variable, *several}


class Long(NamedTuple):
    """A long table made wide: ``rows`` and ``columns`` say where each row of the file went, or are -1.

    ``absent`` is a mask of the cells for which there is no row.
    """

    data: IntervalData
    rows: Integers
    columns: Integers
    absent: Mask


def read_long(
    table: Any,
    *,
    id: str,
    value: str,
    time: str | None = None,
    variable: str | None = None,
    columns: Sequence[str] | str | None = None,
    keep: Sequence[str] | str | None = None,
    covariates: Sequence[str] | str | None = None,
    unit: str | None = None,
    flags: str | Mapping[str, str | Sequence[str]] | None = None,
    limits: str | Mapping[str, str] | None = None,
    separator: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    not_detected: Any = (),
    missing: Any = (),
    unreadable: str = "refuse",
    encoding: str = "utf-8",
    companions: bool = True,
    saturated: bool = False,
) -> IntervalData:
    r"""Read a long table, with a row for each value, as one with a row for each subject or sample.

    Values are read as by ``read_csv``, with their flags. The wide table has a column for each variable,
    for each time, or for each variable at each time. Variables stand in the order of the file; times are
    sorted: numbers by size, dates by day, ordered categories in their order, "week 2" before "week 10".
    Where there is no row, the cell is missing.

    Parameters
    ----------
    table : path of a CSV or Parquet file, open file, or data frame of pandas, polars or pyarrow
    id : str
        The column that says of which subject or sample a value is; it labels the rows.
    value : str
        The column of values. Cells may be limits or words; ``flag``, ``qualifier``, ``detected`` and
        the like, alone or after its name, are read with it.
    time, variable : str, optional
        The columns that say when, and of what. One of them is needed.
    columns : names, optional
        Variables to read, or columns of the wide table, in this order; all otherwise. ``"PCB*"`` stands
        for all that are named so.
    keep : names, optional
        Columns that are the same in all rows of a subject and no measurements, such as the well or the
        arm. They are kept as they are in ``data.kept``.
    covariates : names, optional
        Columns of numbers that are the same in all rows of a subject, such as the age. They become
        columns of the table, before the others.
    unit : str, optional
        The column of units, which must be the same for all values of a variable. A column that is called
        unit and holds units is looked at by itself.
    flags : str or dict, optional
        The column of flags, where its name does not say so: ``"Remark"``, or ``{"Result": "Remark"}``.
        ``"Remark:U|ND"`` adds which flags mark what was not detected.
    limits : str or dict, optional
        The column of detection limits, for values that were not detected. Where cells do not say their
        limit, a column such as ``RL`` or ``detection_limit`` is looked for.
    separator, decimal, thousands, not_detected, missing, unreadable, encoding, companions, saturated
        As in ``read_csv``.

    Returns
    -------
    IntervalData

    Examples
    --------
    >>> import io, halfseen as hs
    >>> file = "Sample,Analyte,Result\nW1,lead,<0.5\nW1,zinc,12\nW2,zinc,9\nW2,lead,0.7\n"
    >>> data = hs.read_long(io.StringIO(file), id="Sample", variable="Analyte", value="Result")
    >>> data.names, data.labels
    (('lead', 'zinc'), ('W1', 'W2'))
    >>> data.upper
    array([[ 0.5, 12. ],
           [ 0.7,  9. ]])
    """
    form = CellFormat(decimal, thousands, not_detected, missing)
    names = LongNames(id, value, time, variable, columns, keep, covariates, unit, flags, limits)
    source: Columns
    if is_frame(table):
        source = FrameColumns(table)
    elif isinstance(table, str | os.PathLike) and str(table).lower().endswith((".parquet", ".pq")):
        source = open_parquet(table, names.asked)
    else:
        source = FileColumns(read_records(table, separator, encoding, form))
    return widen(source, form, names, unreadable, companions, saturated).data


def widen(
    table: Columns,
    form: CellFormat,
    names: LongNames,
    unreadable: str = "refuse",
    companions: bool = True,
    saturated: bool = False,
) -> Long:
    """Put the values of a long table into one row for each subject."""
    if names.time is None and names.variable is None:
        raise InputError(
            f"a long table needs a column that says when, {argument('time')}, or of what, "
            f"{argument('variable')}."
        )
    places = _places(table, names)
    if not table.rows:
        raise InputError(f"{table.source} has no rows to read.")
    ids = _keys(table, places["id"])
    heads, columns = _columns(table, form, names, places)
    wanted = columns >= 0
    if not wanted.any():
        raise InputError(f"{table.source} has no rows of these columns.")
    check_units(table, names.unit, names.variable, columns, heads, set(places.values()))
    declared = _declared(table, names)
    value, cells = read_values(
        table, form, names.value, declared, set(places.values()), companions, saturated
    )
    _forget(cells, ~wanted)
    by_name = [] if declared.flags else [value]
    check_read(table, {names.value: cells}, table.labels_of_index, unreadable, by_name)
    labels = list(dict.fromkeys(text for text, one in zip(ids, wanted, strict=True) if one))
    place = {label: k for k, label in enumerate(labels)}
    rows = np.array([place.get(label, -1) for label in ids], dtype=np.intp)
    rows[~wanted] = -1
    _refuse_duplicates(table, names, rows, columns, heads, places)
    return _assembled(table, form, names, cells, rows, columns, heads, labels)


def _declared(table: Columns, names: LongNames) -> Declared:
    """Read which second columns of the values were named: alone, or as those of the values."""

    def of_value(what: str) -> Mapping[Any, Any] | list[str] | None:
        given = getattr(names, what)
        if isinstance(given, Mapping):
            alone = [*given] == [names.value]
        else:
            given = [
                one if "=" in one and one not in table.names else f"{names.value}={one}"
                for one in _listed(given)
            ]
            alone = all(one.partition("=")[0].strip() == names.value for one in given)
        if not alone:
            raise InputError(
                f"{argument(what)} must name the column that goes with {called(names.value)}; got "
                f"{getattr(names, what)!r}."
            )
        return given

    return declare(table.names, of_value("flags"), of_value("limits"))


def _listed(names: Sequence[str] | str | None) -> list[str]:
    alone = isinstance(names, str) or not is_iterable(names)
    return [] if names is None else [str(name) for name in ([names] if alone else names)]


def _places(table: Columns, names: LongNames) -> dict[str, int]:
    """Return where the columns are that say of what a value is; each has one thing to say."""
    asked = {"id": names.id, "time": names.time, "variable": names.variable}
    known = {what: str(name) for what, name in asked.items() if name is not None}
    for what, more in (("keep", names.keep), ("covariates", names.covariates)):
        known |= {f"{what} {k}": name for k, name in enumerate(_listed(more))}
    places: dict[str, int] = {}
    for what, name in (known | {"value": str(names.value)}).items():
        places_before = {place: other for other, place in places.items()}
        option = argument(what.split()[0])
        # The value may be told by two ends, which are looked for later.
        if what == "value" and name not in table.names:
            continue
        place = find_column(table.names, name, option)
        if place in places_before:
            other = argument(places_before[place].split()[0])
            raise InputError(f"column {called(name)} is in {other} and in {option}; it can be one.")
        places[what] = place
    return places


def _keys(table: Columns, place: int, nothing: Collection[str] = NOTHING) -> list[str]:
    """Return the texts of a column that may not be blank."""
    texts = [text.strip() for text in table.labels(place)]
    blank = [row for row, text in enumerate(texts) if text in nothing]
    if blank:
        raise InputError(
            f"{where(table, blank[0])}, column {called(table.names[place])}: the cell is blank, so "
            f"nobody knows of what the value is ({len(blank)} such row{'s' * (len(blank) > 1)}). Fill "
            "it, or leave the row out."
        )
    return texts


def _columns(
    table: Columns, form: CellFormat, names: LongNames, places: Mapping[str, int]
) -> tuple[list[str], Integers]:
    """Return the columns of the wide table in order, and that of each row; -1 where it is not wanted."""
    variables, what = _variables(table, places.get("variable"))
    times, when = _times(table, form, places.get("time"))
    columns = what * len(times) + when
    heads = ["_".join(filter(None, pair)) for pair in product(variables, times)]
    there = np.unique(columns).tolist()
    of = [variables[k // len(times)] for k in there]
    chosen = _chosen(names, [heads[k] for k in there], of)
    place = {heads[k]: k for k in there}
    if len(place) < len(there):
        twice = next(head for head, count in Counter(heads[k] for k in there).items() if count > 1)
        raise InputError(f"two columns would be called {called(twice)}; rename a variable.")
    moved = np.full(len(heads), -1, dtype=np.intp)
    moved[[place[head] for head in chosen]] = np.arange(len(chosen))
    return chosen, moved[columns]


def _variables(table: Columns, place: int | None) -> tuple[list[str], Integers]:
    """Return the variables in order, and that of each row; one without a name where there are none."""
    if place is None:
        return [""], np.zeros(table.rows, dtype=np.intp)
    texts = _keys(table, place, {""})
    present, levels = dict.fromkeys(texts), table.levels(place)
    heads = [*present] if levels is None else [level for level in levels if level in present]
    doubt_cases(heads, table.names[place])
    number = {head: k for k, head in enumerate(heads)}
    return heads, np.array([number[text] for text in texts], dtype=np.intp)


def _times(table: Columns, form: CellFormat, place: int | None) -> tuple[list[str], Integers]:
    """Return what times are called, in order, and that of each row; one without a name for none."""
    if place is None:
        return [""], np.zeros(table.rows, dtype=np.intp)
    name, texts = table.names[place], _keys(table, place)
    visits = order_visits(texts, name, form, table.levels(place))
    heads = [f"{name}_{one}" for one in visits.names] if visits.are_numbers else visits.names
    return heads, np.array([visits.places[text] for text in texts], dtype=np.intp)


def _chosen(names: LongNames, heads: Sequence[str], variables: Sequence[str]) -> list[str]:
    """Return the columns that are wanted: a variable stands for all its times."""
    if names.columns is None:
        return list(heads)
    out: list[str] = []
    where, known = argument("columns"), list(dict.fromkeys([*filter(None, variables), *heads]))
    for asked in _listed(names.columns):
        several = is_pattern(asked, known)
        for name in matching(asked, known, where):
            own = [head for head, of in zip(heads, variables, strict=True) if name in (head, of)]
            if not own:
                find_column(known, name, where)
            out += [head for head in own if not (several and head in out)]
    if not out or len(set(out)) < len(out):
        raise InputError(f"{argument('columns')} names a column twice, or none.")
    return out


def _forget(cells: ReadColumn, rows: Mask) -> None:
    """Say nothing of rows that are not wanted."""
    cells.put(rows, BLANK)
    for row in np.flatnonzero(rows).tolist():
        cells.problems.pop(row, None)


def _refuse_duplicates(
    table: Columns,
    names: LongNames,
    rows: Integers,
    columns: Integers,
    heads: Sequence[str],
    places: Mapping[str, int],
) -> None:
    """Raise where a subject has two values for one column."""
    known = np.flatnonzero(rows >= 0)
    keys = rows[known] * len(heads) + columns[known]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which] != np.arange(known.size))
    if not again.size:
        return
    early, late = int(known[first[which[again[0]]]]), int(known[again[0]])
    cells = ""
    if "value" in places:
        own = table.column(places["value"])
        cells = f", with {shorten(own.text(early))} and {shorten(own.text(late))}"
    others = [j for j in range(len(table.names)) if j not in places.values()]
    differ = [called(table.names[j]) for j in others if len({*_pair(table, j, early, late)}) > 1]
    apart = f" They differ in {', '.join(differ[:MOST_NAMED])}." if differ else ""
    free = [what for what in ("time", "variable") if what not in places]
    also = f", or name the column that tells them apart with {argument(free[0])}" if free else ""
    raise InputError(
        f"{called(names.id)} {shorten(_pair(table, places['id'], early, late)[0])} has two rows for "
        f"{called(heads[columns[early]])}: {where(table, early)} and {where(table, late)}{cells} "
        f"({again.size} such row{'s' * (again.size > 1)}).{apart} Keep one of them, or average them "
        f"first{also}."
    )


def _pair(table: Columns, place: int, early: int, late: int) -> tuple[str, str]:
    labels = table.labels(place)
    return labels[early].strip(), labels[late].strip()


def _assembled(
    table: Columns,
    form: CellFormat,
    names: LongNames,
    cells: ReadColumn,
    rows: Integers,
    columns: Integers,
    heads: Sequence[str],
    labels: Sequence[str],
) -> Long:
    """Put the cells where they belong, after the covariates."""
    known = np.flatnonzero(rows >= 0)
    first = known[np.unique(rows[known], return_index=True)[1]]

    def constant(name: str) -> list[str]:
        return read_constant(table, form, name, names.id, rows, labels)

    before = {name: numbers_in(name, constant(name), form) for name in _listed(names.covariates)}
    if clash := set(before) & set(heads):
        raise InputError(
            f"{argument('covariates')} names {clash.pop()!r}, as a variable is called."
        )
    more = len(before)
    columns = np.where(columns < 0, -1, columns + more)
    absent = np.ones((len(labels), more + len(heads)), dtype=bool)
    absent[:, :more] = False
    absent[rows[known], columns[known]] = False
    blank = ReadColumn.blank(absent.size)

    def wide(end: str) -> NDArray[Any]:
        out: NDArray[Any] = getattr(blank, end).reshape(absent.shape)
        for k, read in enumerate(before.values()):
            out[:, k] = getattr(read, end)
        out[rows[known], columns[known]] = getattr(cells, end)[known]
        return out

    data = IntervalData(
        wide("lower"),
        wide("upper"),
        [*before, *heads],
        labels=labels,
        not_detected=wide("not_detected"),
        frame=table.frame,
        index=table.index_of(list(table.names).index(names.id), first),
        kept={name: constant(name) for name in _listed(names.keep)},
    )
    return Long(data, rows, columns, absent)
