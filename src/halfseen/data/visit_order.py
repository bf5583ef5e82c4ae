"""The order in which people expect visits, weeks and dates: as columns of a wide table."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from halfseen.data.cells import CellFormat, print_number, read_cell, shorten
from halfseen.errors import InputError

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
YEAR_FIRST = re.compile(r"([0-9]{4})([-/.]?)([0-9]{1,2})\2([0-9]{1,2})(?:[ T](.*))?")
YEAR_LAST = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})(?:[ T](.*))?")
WITH_NAME = re.compile(
    rf"([0-9]{{1,2}})[- .]*({'|'.join(MONTHS)})[a-z]*[- .,]*([0-9]{{4}})(?:[ :T](.*))?",
    re.IGNORECASE,
)
MIDNIGHT = re.compile(r"(.+)[ T]00:00(?::00(?:\.0+)?)?")
NUMBERED = re.compile(r"(.*?)([0-9]+(?:\.[0-9]+)?)(\D*)")


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
    >>> from halfseen.data.visit_order import order_visits
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
