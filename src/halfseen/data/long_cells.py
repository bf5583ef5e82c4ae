"""The values of a long table, with the flags, limits and units that stand beside them.

And whether a table that is to be read row by row is a long one, with a row for each value.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cell_columns import (
    Columns,
    FileColumns,
    RawColumn,
    ReadColumn,
    example_of_numbers,
    read_column,
)
from halfseen.data.cells import (
    A_DATE,
    TRUE_FALSE,
    CellFormat,
    called,
    print_number,
    read_cell,
    shorten,
)
from halfseen.data.conventions import Wanted
from halfseen.data.names import (
    ENDS,
    Declared,
    Flag,
    base_of,
    find_column,
    flag_kind,
    split_name,
    split_prefix,
)
from halfseen.data.names import LIMITS as WORDS_OF_LIMITS
from halfseen.data.second_columns import EXACT, SILENT, meaning_of, read_wanted
from halfseen.errors import InputError, argument, spelled, warn

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


def plain_name(name: str) -> str:
    """Return the letters of a name, in lower case."""
    return "".join(character for character in name.casefold() if character.isalpha())


# Names of columns of limits, their letters in lower case, alone or after the name of the value.
LIMITS = frozenset(
    (
        *map(plain_name, WORDS_OF_LIMITS),
        *("detlimit", "detlim", "reportlimit", "methoddetectionlimit", "quantitationlimit"),
        *("quantificationlimit", "limitofdetection", "limitofquantification"),
    )
)
# How names of columns of flags end, without what is no letter: also those of ResultQualifier.
FLAGS = ("flag", "flags", "qualifier", "qualifiers", "qual", "quals", "qualcode", "censored")
UNITS = frozenset(("unit", "units", "resultunit", "resultunits", "uom"))
# Units without "/" or "%": of any other word that stands in a column called unit nobody knows.
UNIT_WORDS = frozenset(
    (
        *(
            "ppm",
            "ppb",
            "ppt",
            "ppq",
            "g",
            "kg",
            "mg",
            "ug",
            "ng",
            "pg",
            "l",
            "ml",
            "m",
            "cm",
            "mm",
        ),
        *("mol", "mmol", "umol", "nmol"),
    )
)
# Texts that are no subject and no time. Of variables the empty one alone: NA may be sodium.
NOTHING = frozenset(("", "NA", "nan", "NaN"))


def where(table: Columns, row: int) -> str:
    """Name a row of a table: by its line in the file, or by its place and label in the frame."""
    if table.lines is not None:
        return f"line {table.lines[row]}"
    label = "" if table.labels_of_index is None else f" ({table.labels_of_index[row]})"
    return f"row {row}{label}"


def is_called_flags(name: str) -> bool:
    """Whether a column is named like flags, in whichever way its words are joined."""
    return bool(flag_kind(name)) or plain_name(name).endswith(FLAGS)


def only_flags(raw: RawColumn) -> str:
    """Return a flag that says of values where they lie, if a column holds flags alone; else nothing."""
    example = ""
    for text in dict.fromkeys(raw.texts or ()):
        meaning = None if text is None else meaning_of(text, "qualifier")
        if meaning is None:
            return ""
        if meaning not in (SILENT, EXACT):
            example = example or str(text)
    return example


def read_values(
    table: Columns,
    form: CellFormat,
    value: str,
    declared: Declared,
    taken: Collection[int],
    companions: bool = True,
    saturated: bool = False,
) -> tuple[Wanted, ReadColumn]:
    """Read the column of values with its flags and limits, and return where these were.

    Parameters
    ----------
    table, form : as for ``read_columns``
    value : name of the column
    declared : its second columns that need not be looked for
    taken : places of the columns that say of what a value is
    companions : whether flags and limits are looked for by name
    saturated : whether values on their limit or below it were not detected
    """
    wanted = _wanted(table, form, value, declared, taken, companions)
    cells = read_wanted(table, form, wanted)
    place = None if wanted.value is None else declared.limits.get(wanted.value)
    needed = cells.not_detected | _flagged(table, form, wanted, cells, zeros=place is None)
    if saturated:
        needed |= cells.lower == cells.upper
    if place is None and companions and needed.any():
        place = _limit_column(table, form, value, taken)
    if place is not None and needed.any():
        _put_limits(table, form, cells, table.column(place), needed)
    return wanted, cells


def _wanted(
    table: Columns,
    form: CellFormat,
    value: str,
    declared: Declared,
    taken: Collection[int],
    companions: bool,
) -> Wanted:
    """Find the columns that speak of the values."""
    own: dict[str, int] = {}
    for j, name in enumerate(table.names):
        base, suffix = split_name(name)
        if base.casefold() == value.casefold() and suffix in (*ENDS, *ENDS.values()):
            own[suffix] = j
    if value not in table.names and companions:
        for low, high in ENDS.items():
            if low in own and high in own:
                return Wanted(value, None, lower=own[low], upper=own[high])
    place = find_column(table.names, value, argument("value"))
    if place in declared.flags:
        return Wanted(value, place, tuple(declared.flags[place]))
    others = [
        j for j in range(len(table.names)) if j not in (*taken, place, *declared.limits.values())
    ]
    others = others if companions else []
    flags = [j for j in others if _speaks(table, form, j, value)]
    for j in others:
        if j not in flags and (example := only_flags(table.column(j))):
            name = table.names[j]
            option = spelled(f"flags={name!r}", f"--flag {shlex.quote(name)}")
            raise InputError(
                f"column {called(name)} holds flags such as {shorten(example)}. If they are those of "
                f"{called(value)}, say {option}; else pass {argument('companions', False)}."
            )
    kinds = (flag_kind(table.names[j]) or "qualifier" for j in flags)
    return Wanted(value, place, tuple(map(Flag, flags, kinds)))


def _speaks(table: Columns, form: CellFormat, place: int, value: str) -> bool:
    """Whether a column holds the flags of the values, by its name."""
    name = table.names[place]
    base = (split_name(name)[0] or split_prefix(name)[0]).casefold()
    # Those of other columns are named after them.
    other = base not in ("", value.casefold()) and base in {one.casefold() for one in table.names}
    return (
        is_called_flags(name)
        and not other
        and (not base or base == value.casefold() or bool(only_flags(table.column(place))))
        and not example_of_numbers(table.column(place), form)
    )


def _flagged(
    table: Columns, form: CellFormat, wanted: Wanted, cells: ReadColumn, zeros: bool
) -> NDArray[np.bool_]:
    """Mask of the numbers of which a flag says that the value lies below; of those that are 0 alone."""
    if wanted.value is None or not wanted.flags:
        return np.zeros(cells.lower.size, dtype=bool)
    plain = read_column(table.column(wanted.value), form)
    below = (plain.lower == plain.upper) & np.isneginf(cells.lower)
    return below & (cells.upper == 0.0) if zeros else below


def _limit_column(
    table: Columns, form: CellFormat, value: str, taken: Collection[int]
) -> int | None:
    """Find the one column of limits by its name."""
    start = plain_name(value)
    places = [
        j
        for j, name in enumerate(table.names)
        if j not in taken and {plain_name(name), plain_name(name).removeprefix(start)} & LIMITS
    ]
    places = [j for j in places if not read_column(table.column(j), form).missing.all()]
    if len(places) > 1:
        listed = " or ".join(called(table.names[j]) for j in places)
        first = table.names[places[0]]
        option = spelled(f"limits={first!r}", f"--limit {shlex.quote(first)}")
        raise InputError(
            f"the limits of values that were not detected may be those of {listed}; say which, as in "
            f"{option}."
        )
    return places[0] if places else None


def _put_limits(
    table: Columns,
    form: CellFormat,
    cells: ReadColumn,
    raw: RawColumn,
    needed: NDArray[np.bool_],
) -> None:
    """Take the limits of a column for cells that were not detected; seen ones only on them or below."""
    limits = read_column(raw, form)
    known = limits.lower == limits.upper
    seen = cells.lower == cells.upper
    wrong = np.flatnonzero(needed & ~known & ~(limits.missing & ~limits.not_detected))
    wrong = np.union1d(wrong, [row for row in limits.problems if needed[row]]).astype(int)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"{where(table, row)}, column {called(raw.name)}: a limit is a number; got "
            f"{shorten(raw.text(row))}."
        )
    use = needed & known & ~(seen & (cells.lower > limits.lower))
    cells.lower[use & seen] = -np.inf
    differ = np.flatnonzero(use & ~seen & np.isfinite(cells.upper) & (cells.upper != limits.lower))
    differ = differ[cells.upper[differ] != 0.0]
    if differ.size:
        row = int(differ[0])
        warn(
            f"{differ.size} values that were not detected are not their limit in column "
            f"{called(raw.name)}; the limit is taken. The first is in {where(table, row)}: "
            f"{print_number(cells.upper[row])}, where the limit is {print_number(limits.lower[row])}."
        )
    cells.upper[use] = limits.lower[use]
    cells.not_detected[use] = False


def check_units(
    table: Columns,
    unit: str | None,
    variable: str | None,
    columns: NDArray[np.intp],
    heads: Sequence[str],
    taken: Collection[int],
) -> None:
    """Raise where the values of one variable are in two units."""
    place = None if unit is None else find_column(table.names, unit, argument("unit"))
    if place is None:
        named = [j for j, name in enumerate(table.names) if plain_name(name) in UNITS]
        if len(named) != 1 or named[0] in taken:
            return
        place = named[0]
    texts = [_plain_unit(text) for text in table.labels(place)]
    if unit is None and not any(map(_is_unit, set(texts))):
        return
    what = (
        [""] * table.rows
        if variable is None
        else [text.strip() for text in table.labels(list(table.names).index(variable))]
    )
    first: dict[str, int] = {}
    for row in (row for row in np.flatnonzero(columns >= 0).tolist() if texts[row]):
        before = first.setdefault(what[row], row)
        if texts[before] != texts[row]:
            own = table.labels(place)
            of = f"{called(what[row])} is" if what[row] else "values are"
            raise InputError(
                f"{of} given in {shorten(own[before].strip())} ({where(table, before)}) and in "
                f"{shorten(own[row].strip())} ({where(table, row)}), by column "
                f"{called(table.names[place])}. Bring the values of a variable to one unit first."
            )


def doubt_cases(heads: Sequence[str], column: str) -> None:
    """Warn of names that differ in nothing but their case or spaces."""
    first: dict[str, str] = {}
    for head in heads:
        other = first.setdefault("".join(head.casefold().split()), head)
        if other != head:
            warn(
                f"column {called(column)} has {shorten(other)} and {shorten(head)}, which are read as "
                "two variables. If they are one, write them alike."
            )


def _plain_unit(text: str) -> str:
    return "".join(text.casefold().replace("μ", "u").replace("µ", "u").split())


def _is_unit(text: str) -> bool:
    return "/" in text or "%" in text or text in UNIT_WORDS


def read_constant(
    table: Columns,
    form: CellFormat,
    name: str,
    of: str,
    rows: NDArray[np.intp],
    labels: Sequence[str],
) -> list[str]:
    """Return what a column says of each subject; raise where it says two things of one."""
    texts = [text.strip() for text in table.labels(list(table.names).index(name))]
    first: dict[int, int] = {}
    for row in np.flatnonzero(rows >= 0).tolist():
        if texts[row] in NOTHING:
            continue
        before = first.setdefault(int(rows[row]), row)
        if texts[before] != texts[row] and not _same_number(texts[before], texts[row], form):
            raise InputError(
                f"column {called(name)} cannot be kept, because it differs within {called(of)} "
                f"{shorten(labels[rows[row]])}: {shorten(texts[before])} in {where(table, before)}, "
                f"{shorten(texts[row])} in {where(table, row)}."
            )
    return [texts[first[k]] if k in first else "" for k in range(len(labels))]


def _same_number(one: str, other: str, form: CellFormat) -> bool:
    first, second = read_cell(one, form), read_cell(other, form)
    return not first.problem and bool(np.isfinite(first[:2]).all()) and first == second


def numbers_in(name: str, texts: Sequence[str], form: CellFormat) -> ReadColumn:
    """Read what a covariate says of each subject as measurements; raise where it holds words."""
    cells = read_column(RawColumn(name, texts, None), form)
    for text, reason in cells.problems.values():
        raise InputError(
            f"a covariate is a number; of column {called(name)} the cell {shorten(text)} {reason}. "
            f"Words are carried along by {argument('keep')}."
        )
    return cells


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
        warn(told)
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
            known = named or kinds[what] == "words"
            known = known and not _is_called(table.names[what], IDS)
            if known and texts.vary_within(id, what):
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
        pairs = self.different(id, what)
        if pairs == variables:
            # Each is of one subject alone, as cows are of one diet: subjects themselves.
            return False
        return pairs / subjects >= max(FEWEST_ROWS, LEAST_SHARE * variables)

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
