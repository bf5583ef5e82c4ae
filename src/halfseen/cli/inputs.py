"""From the words of a command to a table, a rule and scales; large tables are fitted in pieces."""

from __future__ import annotations

import csv
import glob
import io
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.cli.options import Blank, Covariance, TableOptions
from halfseen.cli.running import say
from halfseen.data.cells import CellFormat
from halfseen.data.csv_files import Records, read_records
from halfseen.data.interval_data import IntervalData
from halfseen.data.limits import read_limits
from halfseen.data.parquet_blocks import SUFFIXES as PARQUET
from halfseen.data.parquet_blocks import bytes_in_memory, is_parquet, scan_parquet
from halfseen.data.raw_columns import FileColumns, open_parquet
from halfseen.data.readers import read_columns
from halfseen.data.row_blocks import RowBlocks
from halfseen.data.transforms import read_transforms
from halfseen.errors import InputError
from halfseen.missingness import Combined, DetectionLimits, rules
from halfseen.missingness.base import Missingness, listed
from halfseen.scaling.cluster import connected
from halfseen.solvers import Fit
from halfseen.solvers import fit as learn

# Bytes of numbers beyond which one file is read in pieces without being asked to.
LARGE = 2**28


@dataclass(frozen=True)
class Input:
    """What the solvers are given."""

    data: IntervalData
    rule: Missingness | None
    missing_at_random: NDArray[np.bool_] | None
    transforms: Any
    # The file as texts, with the line of each row; None where it has none.
    records: Records | None


def read_input(wanted: TableOptions, quiet: bool = False, by: str | None = None) -> Input:
    """Read the table, the rule and the scales; say what is in the table, unless that would disturb.

    ``by`` is a column that is no measurement, and kept.
    """
    data, records = _table(wanted, by)
    rule = read_rule(wanted, data)
    if wanted.saturated:
        if rule is None:
            raise InputError("--saturated needs the limits, from --seen or --limits.")
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
        mask = np.zeros(data.shape, dtype=bool)
    given = Input(data, rule, mask, read_scales(wanted, data.names), records)
    if not quiet:
        say(f"{wanted.data}: {data.describe()}")
    return given


def refuse_many(data: str) -> None:
    """Refuse folders and patterns, of which there is no one table."""
    if data != "-" and (os.path.isdir(data) or (glob.has_magic(data) and not os.path.exists(data))):
        raise InputError(
            f"{data} is not one table; this command needs one in memory. Name a file. (fit takes "
            "folders and patterns of Parquet files.)"
        )


def _table(wanted: TableOptions, by: str | None) -> tuple[IntervalData, Records | None]:
    refuse_many(wanted.data)
    chosen: dict[str, Any] = {
        "columns": None if wanted.columns is None else split_names(wanted.columns),
        "index": wanted.index,
        "unreadable": str(wanted.unreadable),
        "companions": wanted.companions,
        "keep": () if by is None else (by,),
    }
    form = cell_form(wanted)
    if wanted.data.lower().endswith(PARQUET):
        names = {wanted.index, by, *(chosen["columns"] or ())}
        return read_columns(open_parquet(wanted.data, names), form, **chosen), None
    records = open_csv(wanted, form)
    return read_columns(FileColumns(records), form, **chosen), records


def cell_form(wanted: TableOptions) -> CellFormat:
    """Return how cells are written."""
    return CellFormat(wanted.decimal, wanted.thousands, wanted.not_detected, wanted.missing)


def open_csv(wanted: TableOptions, form: CellFormat) -> Records:
    """Cut a file of separated values, or standard input, into columns of texts."""
    separator = "\t" if wanted.separator in ("\\t", "tab") else wanted.separator
    source: Any = io.StringIO(sys.stdin.read()) if wanted.data == "-" else wanted.data
    return read_records(source, separator, wanted.encoding, form)


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
        index=wanted.index,
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
        for name in split_names(before):
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


def fit_in_pieces(
    wanted: TableOptions,
    method: str,
    covariance: Covariance | None,
    seed: int,
    quiet: bool,
    scheduler: str | None,
    **options: Any,
) -> Fit:
    """Fit Parquet files piece by piece."""
    _refuse(wanted)
    columns = None if wanted.columns is None else split_names(wanted.columns)
    blocks = scan_parquet(wanted.data, columns)
    if not quiet:
        n, d = blocks.shape
        pieces = f"{len(blocks)} piece{'' if len(blocks) == 1 else 's'}"
        say(f"{wanted.data}: {n:,} rows, {d} columns, read in {pieces}")
    rule = read_rule(wanted, _names_only(blocks))
    if wanted.blank is Blank.RANDOM:
        # Every hidden cell of numbers is blank, so that the rule has nothing left to say.
        rule = None
    elif wanted.blank is Blank.HIDDEN and rule is None:
        raise InputError("--blank hidden says that a rule hid the blank cells; state it by --seen.")
    with nullcontext() if scheduler is None else connected(scheduler) as client:
        return learn(
            blocks,
            rule,
            method,
            covariance=None if covariance is None else str(covariance),
            random_state=seed,
            progress=True,
            transforms=read_scales(wanted, blocks.names),
            client=client,
            **options,
        )


def _refuse(wanted: TableOptions) -> None:
    """Refuse what needs the whole table, or cells of text."""
    for option, given, why in (
        ("--saturated", wanted.saturated, "set such values to null in the files"),
        ("--index", wanted.index is not None, "name the columns of numbers with --columns"),
        ("--missing", bool(wanted.missing), "set such values to null in the files"),
    ):
        if given:
            raise InputError(f"{option} is not for tables that are read in pieces; {why}.")


def _names_only(blocks: RowBlocks) -> IntervalData:
    """Return a table with the same columns, for rules that ask for no more."""
    empty = np.full((1, blocks.shape[1]), np.nan)
    return IntervalData(empty, empty, blocks.names)
