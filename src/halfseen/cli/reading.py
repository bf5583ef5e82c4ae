"""From the words of a command to a table, a rule and scales."""

from __future__ import annotations

import glob
import io
import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.cli.options import Blank, Wanted
from halfseen.data.cells import CellFormat
from halfseen.data.csv_files import Records, read_records
from halfseen.data.interval_data import IntervalData
from halfseen.data.limits import read_limits
from halfseen.data.raw_columns import FileColumns
from halfseen.data.readers import read_columns, read_parquet
from halfseen.data.transforms import read_transforms
from halfseen.errors import InputError
from halfseen.missingness import Combined, DetectionLimits, rules
from halfseen.missingness.base import Missingness
from halfseen.missingness.columns import listed

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Input:
    """What the solvers are given."""

    data: IntervalData
    rule: Missingness | None
    missing_at_random: NDArray[np.bool_] | None
    transforms: Any
    # The file as texts, with the line of each row; None where it has none.
    records: Records | None


def read_input(wanted: Wanted) -> Input:
    """Read the table, the rule and the scales."""
    data, records = _table(wanted)
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
    scales = read_scales(wanted.log, wanted.transform, data.names)
    return Input(data, rule, mask, scales, records)


def _refuse_many(data: str) -> None:
    """Refuse folders and patterns, of which there is no one table."""
    if data != "-" and (os.path.isdir(data) or (glob.has_magic(data) and not os.path.exists(data))):
        raise InputError(
            f"{data} is not one table; this command needs one in memory. Name a file. (fit takes "
            "folders and patterns of Parquet files.)"
        )


def _table(wanted: Wanted) -> tuple[IntervalData, Records | None]:
    _refuse_many(wanted.data)
    form: dict[str, Any] = {
        "decimal": wanted.decimal,
        "thousands": wanted.thousands,
        "not_detected": wanted.not_detected,
        "missing": wanted.missing,
    }
    chosen: dict[str, Any] = {
        "columns": None if wanted.columns is None else split_names(wanted.columns),
        "index": wanted.index,
        "unreadable": str(wanted.unreadable),
        "companions": wanted.companions,
    }
    if wanted.data.lower().endswith(PARQUET):
        return read_parquet(wanted.data, **form, **chosen), None
    separator = "\t" if wanted.separator in ("\\t", "tab") else wanted.separator
    source: Any = io.StringIO(sys.stdin.read()) if wanted.data == "-" else wanted.data
    cells = CellFormat(**form)
    records = read_records(source, separator, wanted.encoding, cells)
    return read_columns(FileColumns(records), cells, **chosen), records


def split_names(text: str) -> list[str]:
    """Read names separated by commas; quotes keep a comma inside a name."""
    import csv

    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not names or not all(names):
        raise InputError(f"names are separated by commas, as in lead,zinc; got {text!r}.")
    return names


def read_rule(wanted: Wanted, data: IntervalData) -> Missingness | None:
    """Put --seen and --limits together."""
    told = rules(list(wanted.seen)) if wanted.seen else None
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


def read_scales(log: bool, told: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """Read --log and --transform: one scale for all columns, and others for some; None for none."""
    common = "log" if log else "none"
    by_name: dict[str, str] = {}
    general = 0
    for text in told:
        before, colon, scale = text.rpartition(":")
        if not colon:
            common, general = text, general + 1
            continue
        for name in split_names(before):
            if name in by_name:
                raise InputError(f"--transform names column {name!r} twice.")
            by_name[name] = scale.strip()
    if general + log > 1:
        raise InputError(
            "give one scale for all columns, with --log or --transform, and others as 'column: scale'."
        )
    if not log and not told:
        return None
    read_transforms(by_name, names)
    return {name: by_name.get(name, common) for name in names}
