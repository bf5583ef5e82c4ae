"""Whether a table that is to be read row by row is a long one, with a row for each value."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from halfseen.data.cells import A_DATE, TRUE_FALSE, CellFormat, called, read_cell, shorten
from halfseen.data.long_cells import LIMITS, UNITS, is_called_flags, only_flags, plain_name
from halfseen.data.names import base_of
from halfseen.data.raw_columns import Columns, FileColumns
from halfseen.errors import AssumptionWarning, InputError, argument, spelled

# Not site or well, which also stand in tables with a row for each sample.
IDS = r"id|subject|patient|participant|person|case|animal|sample|specimen"
TIMES = r"time|week|day|month|year|date|visit|period|wave|hour|minute|round"
VARIABLES = (
    r"analyte|parameter|param|variable|compound|chemical|substance|element|constituent|measure|"
    r"marker|biomarker|test|item|assay|metal|congener"
)
VALUES = r"value|result|conc|concentration|amount|measurement|reading|response|level|obs"
# A subject has at least so many rows on average, and so large a share of the variables.
FEWEST_ROWS, LEAST_SHARE = 1.5, 0.2
# Rows that may be duplicates in a table that is long all the same.
MOST_TWICE = 0.1
# With more columns of measurements, and none that is called a value, a table is wide.
MOST_MEASURED = 6
SHOWN = 2
# What is meant as a number, though it cannot be read as one.
ALMOST = re.compile(r"\s*[<>]?=? *[+-]?[0-9]+([.,][0-9]+)*\s*[^-\w]*\s*$")


class LongShape(NamedTuple):
    """Places of the columns of a long table; ``sure`` says whether names say so too."""

    id: int
    value: int
    variable: int | None
    time: int | None
    sure: bool

    @property
    def words(self) -> int:
        """The place of the column that tells the values of a subject apart."""
        place = self.time if self.variable is None else self.variable
        assert place is not None
        return place


def ask_if_long(
    table: Columns,
    form: CellFormat,
    columns: Sequence[str] | str | None,
    index: str | None,
    exclude: Collection[int] = (),
    unreadable: str = "refuse",
) -> Collection[int]:
    """Refuse, or warn of, a table that looks like a long one, and say how that is read.

    It is refused where reading it as it is would be refused for its words anyway. The columns of
    subjects and times that a warning spoke of are returned.
    """
    shape = recognise(table, form)
    if shape is None or shape.value in exclude:
        return ()
    names = table.names
    asked = [columns] if isinstance(columns, str) else columns
    chosen = asked is not None and names[shape.value] in map(str, asked)
    told = _sentence(table, form, shape)
    is_words = _kind(table, form, shape.words) != "numbers" and str(index) != names[shape.words]
    is_words = is_words and shape.words not in exclude
    if asked is None and unreadable == "refuse" and is_words:
        choose = f"choose the columns to read with {argument('columns')}"
        raise InputError(f"{told} If each row is a sample of its own, {choose}.")
    if shape.sure and (asked is None or chosen):
        warnings.warn(told, AssumptionWarning, stacklevel=4)  # whoever called read_csv
        return [place for place in (shape.id, shape.time) if place is not None]
    return ()


def _sentence(table: Columns, form: CellFormat, shape: LongShape) -> str:
    names = table.names
    parts = {"id": shape.id, "variable": shape.variable, "time": shape.time, "value": shape.value}
    asked: dict[str, Any] = {k: names[place] for k, place in parts.items() if place is not None}
    is_file = isinstance(table, FileColumns) or table.frame is None
    known = is_file and table.source != "the open file"
    source = repr(table.source) if known else ("file" if is_file else "frame")
    written = {"decimal": form.decimal, "thousands": form.thousands}
    asked |= {what: sign for what, sign in written.items() if sign not in (None, ".")}
    python = ", ".join([source, *(f"{what}={name!r}" for what, name in asked.items())])
    options = " ".join(f"--{what} {shlex.quote(name)}" for what, name in asked.items())
    file = shlex.quote(str(table.source)) if known else "-"
    how = spelled(f"read_long({python})", f"halfseen fit {file} {options}")
    different = list(dict.fromkeys(table.labels(shape.words)))
    shown = ", ".join(shorten(text, 20) for text in different[:SHOWN])
    more = ", ..." if len(different) > SHOWN else ""
    return (
        f"{table.source} looks like a long table: for each {called(names[shape.id])} there are rows of "
        f"several {called(names[shape.words])} ({shown}{more}), and {called(names[shape.value])} holds "
        f"the values of all of them.\n  {how}\nreads it as a table with a row for each "
        f"{called(names[shape.id])}."
    )


def recognise(table: Columns, form: CellFormat) -> LongShape | None:
    """Find the columns of a long table; None for other tables."""
    if table.rows < 4:
        return None
    kinds = [_kind(table, form, place) for place in range(len(table.names))]
    words = [j for j, kind in enumerate(kinds) if kind == "words"]
    times = [j for j in range(len(kinds)) if _is_called(table.names[j], TIMES)]
    measured = [j for j, kind in enumerate(kinds) if kind == "numbers"]
    values = [j for j in measured if _is_called(table.names[j], VALUES)]
    if not (words or times) or (len(measured) > MOST_MEASURED and len(values) != 1):
        return None
    texts = _Texts(table)
    ids = [j for j in range(len(kinds)) if kinds[j] and j not in (*times, *values)]
    ids = [j for j in ids if not _is_called(table.names[j], VARIABLES)]
    ids.sort(key=lambda j: (not _is_called(table.names[j], IDS), kinds[j] != "words"))
    for id in ids:
        named = _is_called(table.names[id], IDS)
        for what in (j for j in (*words, *times) if j != id):
            # Numbers alone are a long table only where names say so.
            if (named or kinds[what] == "words") and texts.vary_within(id, what):
                shape = _with_values(table, texts, id, what, times, values or measured)
                if shape is not None:
                    return shape
    return None


def _with_values(
    table: Columns,
    texts: _Texts,
    id: int,
    what: int,
    times: Sequence[int],
    values: Sequence[int],
) -> LongShape | None:
    """Find the values of subjects and variables; None where there are none, or several."""
    time = None
    if what in times:
        variable = None
        time = what
    else:
        variable = what
        if texts.twice(id, what) > 0.0:
            other = [j for j in times if j != id and texts.twice(id, what, j) == 0.0]
            time = other[0] if other else None
    if texts.twice(id, what, *([] if time is None else [time])) > MOST_TWICE:
        return None
    rest = [j for j in values if j not in (id, what, time, *times) and not texts.constant(id, j)]
    if len(rest) != 1:
        return None
    names = table.names
    sure = variable is None or _is_called(names[what], VARIABLES)
    sure = sure or _is_called(names[rest[0]], VALUES)
    return LongShape(id, rest[0], variable, time, sure)


class _Texts:
    """The texts of columns, each read when it is first asked for."""

    def __init__(self, table: Columns) -> None:
        self.table = table
        self.known: dict[int, Sequence[str]] = {}

    def __getitem__(self, place: int) -> Sequence[str]:
        if place not in self.known:
            self.known[place] = self.table.labels(place)
        return self.known[place]

    def different(self, *places: int) -> int:
        """Count the different rows of some columns."""
        return len(set(zip(*(self[place] for place in places), strict=True)))

    def twice(self, *places: int) -> float:
        """Share of the rows that stand there again."""
        return 1.0 - self.different(*places) / self.table.rows

    def vary_within(self, id: int, what: int) -> bool:
        """Whether subjects have rows of several variables, most of them of the same ones."""
        subjects, variables = self.different(id), self.different(what)
        if min(subjects, variables) < 2:
            return False
        own = self.different(id, what) / subjects
        return own >= FEWEST_ROWS and own >= LEAST_SHARE * variables

    def constant(self, id: int, place: int) -> bool:
        """Whether a column is the same in all rows of each subject."""
        return self.different(id, place) == self.different(id)


def _kind(table: Columns, form: CellFormat, place: int) -> str:
    """Say whether a column holds words or measurements, by its first cells; nothing for others."""
    name = table.names[place]
    letters = plain_name(name)
    raw = table.column(place)
    if is_called_flags(name) or base_of(name) or letters in UNITS or letters in LIMITS:
        return ""
    if only_flags(raw):
        return ""
    if raw.kind:
        return "dates" if raw.kind == "dates or times" else ""
    if raw.texts is None:
        return "numbers"
    cells = (raw.text(row) for row in range(table.rows))
    first = next((text for text in cells if text.strip()), "")
    cell = read_cell(first, form)
    if cell.problem == A_DATE:
        return "dates"
    if cell.problem and cell.problem != TRUE_FALSE:
        # Such as 0,31 where the decimal sign was not said.
        return "numbers" if ALMOST.match(first) else "words"
    known = cell.not_detected or cell.lower > -float("inf") or cell.upper < float("inf")
    return "numbers" if known else ""


def _is_called(name: str, words: str) -> bool:
    """Whether a name has one of some words, alone or joined with others: SampleID, analyte_name."""
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).casefold()
    return re.search(rf"(?:^|[^a-z])(?:{words})s?(?:$|[^a-z])", parts) is not None
