"""``halfseen impute``: the table with its holes filled."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from halfseen.cli import options as o
from halfseen.cli.fit import note_of_blanks, run_fit
from halfseen.cli.inputs import Input, read_input
from halfseen.cli.outputs import Outputs, say, show_table, warnings_as_lines
from halfseen.cli.running import LOOK, guarded
from halfseen.data.cells import print_cell
from halfseen.data.names import base_of, flag_kind
from halfseen.errors import InputError
from halfseen.files import write_text_whole
from halfseen.solvers.result import needs_a_look

# Ends of intervals that are named so speak of the only column.
ENDS_ALONE = ("lower", "upper", "lo", "hi")
Draws = Annotated[
    int,
    typer.Option(
        min=0,
        help="Write so many completed tables, one below the other, for multiple imputation; "
        "otherwise one, with each hole at its mean.",
    ),
]
Marks = Annotated[
    bool,
    typer.Option(
        "--marks", help="Add a column lead_filled, 1 where a cell was filled, for each column."
    ),
]


@guarded
@o.reads_table
def impute(
    table: o.TableOptions,
    data: o.Data,
    draws: Draws = 0,
    method: o.Method = "auto",
    covariance: o.Structure = None,
    seed: o.Seed = 0,
    marks: Marks = False,
    output: o.Output = None,
) -> None:
    """Fill the holes of a table, as CSV: each at its mean, or --draws for multiple imputation."""
    outputs = Outputs([data, table.limits], output=output)
    with warnings_as_lines():
        given = read_input(table, quiet=True)
        note_of_blanks(given)
        if given.records is None:
            say("note: other columns of a Parquet file are not carried along.")
        fit = run_fit(given, method, covariance, seed)
        if draws:
            tables = fit.draw_imputations(m=draws, random_state=seed)
        else:
            tables = np.asarray(fit.impute())[None]
    filled = _as_in_file(tables, given, table)
    text = "".join(_lines(filled, given, table, numbered=bool(draws), marked=marks))
    count = int(filled.hidden.sum())
    told = f"{len(tables)} x {len(filled.hidden)} rows, {count} cells filled"

    def write(path: Path) -> str:
        write_text_whole(path, text)
        return told

    outputs.deliver(lambda: show_table(text) if output is None else None, output=write)
    if needs_a_look(fit.status):
        raise typer.Exit(LOOK)


class Filled(NamedTuple):
    """Completed tables in the shape of the file; ``hidden`` is a mask of what was filled."""

    names: tuple[str, ...]
    tables: NDArray[np.float64]
    hidden: NDArray[np.bool_]


def _as_in_file(tables: NDArray[np.float64], given: Input, wanted: o.TableOptions) -> Filled:
    """Bring completed tables into the shape of the file: of a long one, a column of values."""
    data, long = given.data, given.long
    if long is None or given.records is None:
        return Filled(data.names, tables, ~data.seen)
    # Rows of variables that were not read stay as they are.
    known = long.rows >= 0
    values = np.where(known, tables[:, long.rows, long.columns], np.nan)
    hidden = known & ~data.seen[long.rows, long.columns]
    return Filled((str(wanted.value),), values[..., None], hidden[:, None])


def _lines(
    filled: Filled, given: Input, wanted: o.TableOptions, numbered: bool, marked: bool
) -> Iterator[str]:
    """Write completed tables as CSV, numbered from 1 where there are several.

    Other columns of the file are carried along as they stand.
    """
    names, others = _carried(given, wanted, filled.names)
    marks = [f"{name}_filled" for name in filled.names] if marked else []
    added = [*(["imputation"] if numbered else []), *marks]
    clash = set(added) & set(names)
    if clash:
        raise InputError(
            f"the output needs a column {clash.pop()!r} of its own, but the table has one of that name."
        )
    place = {name: j for j, name in enumerate(filled.names)}
    buffer = io.StringIO()
    comma = wanted.decimal == ","
    writer = csv.writer(buffer, delimiter=";" if comma else ",", lineterminator="\n")
    writer.writerow([*(["imputation"] if numbered else []), *names, *marks])
    for number, table in enumerate(filled.tables, 1):
        for row, values in enumerate(table.tolist()):
            cells = [
                texts[row]
                if (value := values[place[name]] if name in place else np.nan) != value
                else print_cell(value, value, False, decimal=wanted.decimal)
                for name, texts in zip(names, others, strict=True)
            ]
            flags = ["01"[int(hidden)] for hidden in filled.hidden[row]] if marked else []
            writer.writerow([*([number] if numbered else []), *cells, *flags])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _carried(
    given: Input, wanted: o.TableOptions, filled: Sequence[str]
) -> tuple[list[str], list[Sequence[str]]]:
    """Return the columns of the output in order, with their texts, where they have any.

    Flags and limits of filled columns get other names: they speak of the original cells.
    """
    data, records = given.data, given.records
    if records is not None:
        texts = list(zip(records.names, records.columns, strict=True))
        texts = texts if records.labels is None else [("", records.labels), *texts]
    else:
        name = wanted.id or wanted.index or "label"
        texts = [] if data.labels is None else [(name, data.labels)]
    read = {name.casefold() for name in filled}
    names: list[str] = []
    others: list[Sequence[str]] = []
    for name, column in texts:
        base = base_of(name).casefold()
        speaks = base in read if base else bool(flag_kind(name)) or name.casefold() in ENDS_ALONE
        renamed = wanted.companions and speaks and name not in (wanted.index, *filled)
        names.append(f"{name}_original" if renamed else name)
        others.append(column)
    late = [name for name in filled if name not in names]
    return names + late, others + [()] * len(late)
