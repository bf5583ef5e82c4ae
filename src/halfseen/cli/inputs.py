"""From the words of a command to a table, a rule and scales; large tables are fitted in pieces."""

from __future__ import annotations

import csv
import glob
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.cli.options import LONG, Blank, TableOptions
from halfseen.cli.outputs import say
from halfseen.data.cell_columns import Columns, FileColumns, open_parquet
from halfseen.data.cells import CellFormat
from halfseen.data.csv_files import Records, cut_records, read_records, text_of
from halfseen.data.interval_data import IntervalData
from halfseen.data.long_tables import Long, LongNames, widen
from halfseen.data.names import expand
from halfseen.data.parquet_blocks import SUFFIXES as PARQUET
from halfseen.data.parquet_blocks import bytes_in_memory, is_parquet
from halfseen.data.readers import read_columns, read_limits
from halfseen.data.rounding import as_recorded, read_rounded
from halfseen.data.transforms import read_transforms
from halfseen.diagnostics.marks import substituted
from halfseen.errors import InputError
from halfseen.files import read_stream
from halfseen.missingness import Combined, DetectionLimits, rules
from halfseen.missingness.base import Missingness, listed
from halfseen.solvers.result import name_some

# Bytes of numbers beyond which one file is read in pieces without being asked to.
LARGE = 2**28
# Columns of which each gets a warning of its own; others are named together.
MOST_MARKS = 2


@dataclass(frozen=True)
class Input:
    """What the solvers are given."""

    data: IntervalData
    rule: Missingness | None
    missing_at_random: NDArray[np.bool_] | None
    transforms: Any
    # The file as texts, with the line of each row; None where it has none.
    records: Records | None
    # Where the rows of a long file went.
    long: Long | None = None

    @property
    def lines(self) -> Sequence[int] | None:
        """The line of each row of the table; None where it has none of its own."""
        return None if self.records is None or self.long is not None else self.records.lines


def read_input(wanted: TableOptions, quiet: bool = False, by: str | None = None) -> Input:
    """Read the table, the rule and the scales; say what is in the table, unless that would disturb.

    ``by`` is a column that is no measurement, and kept.
    """
    data, records, long = _table(wanted, by)
    rule = read_rule(wanted, data)
    if wanted.saturated and rule is None and not wanted.limit:
        raise InputError("--saturated needs the limits, from --seen, --limits or --limit.")
    if wanted.saturated and rule is not None:
        data = data.saturated(rule)
    mask = None
    if wanted.blank is Blank.RANDOM:
        mask = data.blank
    elif wanted.blank is Blank.HIDDEN:
        if rule is None:
            raise InputError(
                "--blank hidden says that a rule hid the blank cells, but none is stated; use --seen or "
                "--limits."
            )
        mask = np.zeros(data.shape, dtype=bool) if long is None else long.absent
    elif rule is not None and long is not None:
        # A visit that did not take place was not hidden by a rule.
        marked = (~data.seen & ~data.blank).any(axis=0)
        mask = long.absent | (data.blank & marked)
    described = data.describe()
    if wanted.rounded:
        data, rule, mask = as_recorded(data, replace(read_rounded(wanted.rounded), rule=rule), mask)
    given = Input(data, rule, mask, read_scales(wanted, data.names), records, long)
    if not quiet:
        say(f"{wanted.data}: {described}")
    return given


def warn_of_substitutes(data: IntervalData, rule: Missingness | None) -> None:
    """Warn of values that seem to stand for others."""
    marks = list(substituted(data, rule))
    for mark in marks[:MOST_MARKS]:
        say(f"warning: {mark.column}: {mark.text[0].lower()}{mark.text[1:]}")
    if rest := [mark.column for mark in marks[MOST_MARKS:]]:
        say(f"warning: values of {name_some(rest)} look so too; halfseen check has all of them.")


def refuse_many(data: str) -> None:
    """Refuse folders and patterns, of which there is no one table."""
    if data != "-" and (os.path.isdir(data) or (glob.has_magic(data) and not os.path.exists(data))):
        raise InputError(
            f"{data} is not one table; this command needs one in memory. Name a file. (fit and "
            "regress take folders and patterns of Parquet files.)"
        )


def _table(
    wanted: TableOptions, by: str | None
) -> tuple[IntervalData, Records | None, Long | None]:
    refuse_many(wanted.data)
    if long_options(wanted):
        return _long_table(wanted, by)
    chosen: dict[str, Any] = {
        "columns": None if wanted.columns is None else split_names(wanted.columns),
        "exclude": _excluded(wanted),
        "keep": () if by is None else (by,),
        **how_to_read(wanted),
    }
    table, form, records = _open(wanted, {wanted.index, by, *(chosen["columns"] or ())})
    return read_columns(table, form, **chosen), records, None


def _open(
    wanted: TableOptions, asked: Collection[Any]
) -> tuple[Columns, CellFormat, Records | None]:
    """Open a table of either kind; a file of separated values with its records."""
    form = cell_form(wanted)
    if wanted.data.lower().endswith(PARQUET):
        return open_parquet(wanted.data, asked), form, None
    records = open_csv(wanted, form)
    return FileColumns(records), form, records


def long_options(wanted: TableOptions) -> list[str]:
    """Return the options of long tables that were given."""
    return [f"--{name}" for name in LONG if getattr(wanted, name) is not None]


def _long_table(wanted: TableOptions, by: str | None) -> tuple[IntervalData, Records | None, Long]:
    """Read a long table, and say how its rows became one for each subject."""
    if wanted.id is None or wanted.value is None:
        raise InputError(
            f"{long_options(wanted)[0]} is for long tables, of which --id and --value must say which "
            "columns tell the subject and the value."
        )
    if wanted.index is not None:
        raise InputError("--index is not for long tables, whose rows are labelled by --id.")
    if wanted.exclude:
        raise InputError("--exclude is not for long tables; name what to read with --columns.")
    several: dict[str, Any] = {
        name: None if (given := getattr(wanted, name)) is None else split_names(given)
        for name in ("columns", "keep", "covariates")
    }
    if by is not None and by not in (several["keep"] or ()):
        several["keep"] = [*(several["keep"] or ()), by]
    asked = {name: getattr(wanted, name) for name in ("time", "variable", "unit")}
    names = LongNames(
        wanted.id, wanted.value, flags=wanted.flag, limits=wanted.limit, **several, **asked
    )
    source, form, records = _open(wanted, names.asked)
    long = widen(
        source,
        form,
        names,
        str(wanted.unreadable),
        wanted.companions,
        saturated=wanted.saturated and bool(wanted.limit),
    )
    return long.data, records, long


def how_to_read(wanted: TableOptions) -> dict[str, Any]:
    """Return what is told of rows and second columns, for whoever reads the columns."""
    return {
        "index": wanted.index,
        "unreadable": str(wanted.unreadable),
        "companions": wanted.companions,
        "flags": wanted.flag,
        "limits": wanted.limit,
        "saturated": wanted.saturated and bool(wanted.limit),
    }


def _excluded(wanted: TableOptions) -> list[str]:
    return [name for names in wanted.exclude or () for name in split_names(names)]


def cell_form(wanted: TableOptions) -> CellFormat:
    """Return how cells are written."""
    return CellFormat(wanted.decimal, wanted.thousands, wanted.not_detected, wanted.missing)


def open_csv(wanted: TableOptions, form: CellFormat) -> Records:
    """Cut a file of separated values, or standard input, into columns of texts."""
    words = {"\\t": "\t", "tab": "\t", "blank": " ", "blanks": " ", "space": " "}
    separator = words.get(wanted.separator or "", wanted.separator)
    if wanted.data != "-":
        return read_records(wanted.data, separator, wanted.encoding, form)
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("- reads standard input, which is closed; name a file.")
    try:
        content = read_stream("standard input", sys.stdin.buffer)
    except OSError as error:
        raise InputError(f"standard input cannot be read: {error.strerror or error}.") from None
    text = text_of("standard input", content, wanted.encoding).removeprefix("\ufeff")
    return cut_records("standard input", text, separator, form)


def split_names(text: str) -> list[str]:
    """Read names separated by commas; quotes keep a comma inside a name."""
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not names or not all(names):
        raise InputError(f"names are separated by commas, as in lead,zinc; got {text!r}.")
    return names


def read_rule(wanted: TableOptions, data: IntervalData) -> Missingness | None:
    """Put --seen and --limits together."""
    told = rules(wanted.seen) if wanted.seen else None
    if wanted.limits is None:
        return None if told is None else told.for_columns(data.names)
    limits = read_limits(
        wanted.limits,
        data,
        index=wanted.id or wanted.index,
        decimal=wanted.decimal,
        thousands=wanted.thousands,
        encoding=wanted.encoding,
    )
    if told is None:
        return limits
    shape = (-1, len(data.names))
    limited = (np.isfinite(limits.lower) | np.isfinite(limits.upper)).reshape(shape).any(axis=0)
    own, rest = np.flatnonzero(limited), np.flatnonzero(~limited)
    if not rest.size:
        raise InputError(
            "--limits has a limit for every column, so nothing is left for --seen. State each column "
            "once."
        )
    try:
        others = told.for_columns([data.names[j] for j in rest])
    except InputError as error:
        raise InputError(
            "--seen may not speak of columns that have a limit in --limits "
            f"({listed([data.names[j] for j in own])}): {error}"
        ) from error
    part = DetectionLimits(
        *(np.where(np.isfinite(e), e, np.nan)[..., own] for e in (limits.lower, limits.upper))
    )
    return Combined([(own.tolist(), part), (rest.tolist(), others)]) if own.size else others


def read_scales(wanted: TableOptions, names: tuple[str, ...]) -> Any:
    """Read --log and --transform: one scale for all columns, and others for some; None for none."""
    common = ["log"] if wanted.log else []
    by_name: dict[str, str] = {}
    for text in wanted.transform or ():
        before, colon, scale = text.rpartition(":")
        if not colon:
            common.append(text)
            continue
        for name in expand(split_names(before), names, "--transform"):
            if ":" in name and name not in names:
                raise InputError(
                    f"--transform says one scale, for the columns before its colon; got {text!r}. Say "
                    "it again for another: --transform 'Pb: log' --transform 'Zn: sqrt'."
                )
            if name in by_name:
                raise InputError(f"--transform names column {name!r} twice.")
            by_name[name] = scale.strip()
    if len(common) > 1:
        raise InputError(
            "give one scale for all columns, with --log or --transform, and others as 'column: scale'."
        )
    if not common and not by_name:
        return None
    read_transforms(by_name, names)
    return {name: by_name.get(name, common[0] if common else "none") for name in names}


def in_pieces(wanted: TableOptions, memory: str | None, scheduler: str | None) -> bool:
    """Whether the table is to be read in pieces."""
    asked = [f"--{k}" for k, v in (("memory", memory), ("scheduler", scheduler)) if v is not None]
    name = wanted.data
    if name == "-" or not (is_parquet(name) or any(sign in name for sign in "*?[")):
        if asked:
            raise InputError(
                f"{asked[0]} is for Parquet files, which are read in pieces; {name} is not one. "
                "Convert it to Parquet first."
            )
        return False
    if asked or not os.path.isfile(name):
        return True
    return name.lower().endswith(PARQUET) and bytes_in_memory(name) > LARGE


def refuse_of_pieces(wanted: TableOptions) -> None:
    """Refuse what needs the whole table, or cells of text."""
    for option, given, why in (
        ("--id", bool(long_options(wanted)), "name one file, without --memory"),
        ("--rounded", bool(wanted.rounded), "fit a part of the rows, in one file"),
        ("--saturated", wanted.saturated, "set such values to null in the files"),
        ("--index", wanted.index is not None, "name the columns of numbers with --columns"),
        ("--missing", bool(wanted.missing), "set such values to null in the files"),
        ("--exclude", bool(wanted.exclude), "name the columns to read with --columns"),
        ("--flag", bool(wanted.flag), "set such values to null, and state the rule with --seen"),
        ("--limit", bool(wanted.limit), "set such values to null, and state limits with --seen"),
    ):
        if given:
            raise InputError(f"{option} is not for tables that are read in pieces; {why}.")


def believed_of_pieces(wanted: TableOptions, rule: Missingness | None) -> Missingness | None:
    """Return the rule of a table in pieces, of which every hidden cell is blank."""
    if wanted.blank is Blank.RANDOM:
        # The rule has nothing left to say.
        return None
    if wanted.blank is Blank.HIDDEN and rule is None:
        raise InputError("--blank hidden says that a rule hid the blank cells; state it by --seen.")
    return rule


def say_pieces(wanted: TableOptions, size: str, pieces: int) -> None:
    """Say how large a table is that is read in pieces, and in how many."""
    say(f"{wanted.data}: {size}, read in {pieces} piece{'' if pieces == 1 else 's'}")


def names_only(names: Sequence[str]) -> IntervalData:
    """Return a table with these columns, for rules that ask for no more."""
    empty = np.full((1, len(names)), np.nan)
    return IntervalData(empty, empty, names)
