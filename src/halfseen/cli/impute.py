"""``halfseen impute``: the table with its holes filled."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from halfseen.cli import options as o
from halfseen.cli.fit import needs_a_look, note_of_blanks, run_fit
from halfseen.cli.inputs import Input, read_input
from halfseen.cli.running import LOOK, check_writable, guarded, say, warnings_as_lines, write_text
from halfseen.data.cells import print_cell
from halfseen.data.names import base_of, flag_kind
from halfseen.errors import InputError

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
    check_writable(output=output)
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
    text = "".join(_lines(tables, given, table, numbered=bool(draws), marked=marks))
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        filled = int((~given.data.seen).sum())
        say(f"wrote {output}: {len(tables)} x {len(given.data)} rows, {filled} cells filled")
    if needs_a_look(fit):
        raise typer.Exit(LOOK)


def _lines(
    tables: NDArray[np.float64], given: Input, wanted: o.TableOptions, numbered: bool, marked: bool
) -> Iterator[str]:
    """Write completed tables as CSV, numbered from 1 where there are several.

    Other columns of the file are carried along as they stand.
    """
    data = given.data
    names, others = _carried(given, wanted)
    marks = [f"{name}_filled" for name in data.names] if marked else []
    added = [*(["imputation"] if numbered else []), *marks]
    clash = set(added) & set(names)
    if clash:
        raise InputError(
            f"the output needs a column {clash.pop()!r} of its own, but the table has one of that name."
        )
    place = {name: j for j, name in enumerate(data.names)}
    buffer = io.StringIO()
    comma = wanted.decimal == ","
    writer = csv.writer(buffer, delimiter=";" if comma else ",", lineterminator="\n")
    writer.writerow([*(["imputation"] if numbered else []), *names, *marks])
    for number, table in enumerate(tables, 1):
        for row, values in enumerate(table.tolist()):
            cells = [
                other[row]
                if other is not None
                else print_cell(values[place[n]], values[place[n]], False, decimal=wanted.decimal)
                for n, other in zip(names, others, strict=True)
            ]
            flags = ["01"[int(hidden)] for hidden in ~data.seen[row]] if marked else []
            writer.writerow([*([number] if numbered else []), *cells, *flags])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _carried(
    given: Input, wanted: o.TableOptions
) -> tuple[list[str], list[tuple[str, ...] | None]]:
    """Return the columns of the output in order, with their texts; None for those that were filled.

    Flags and limits of filled columns get other names: they speak of the original cells.
    """
    data, records = given.data, given.records
    if records is not None:
        texts = list(zip(records.names, records.columns, strict=True))
        texts = texts if records.labels is None else [("", records.labels), *texts]
    else:
        texts = [] if data.labels is None else [(wanted.index or "label", data.labels)]
    read = {name.casefold() for name in data.names}
    names: list[str] = []
    others: list[tuple[str, ...] | None] = []
    for name, column in texts:
        if name in data.names:
            names.append(name)
            others.append(None)
            continue
        base = base_of(name).casefold()
        speaks = base in read if base else bool(flag_kind(name)) or name.casefold() in ENDS_ALONE
        renamed = wanted.companions and speaks and name != wanted.index
        names.append(f"{name}_original" if renamed else name)
        others.append(column)
    late = [name for name in data.names if name not in names]
    return names + late, others + [None] * len(late)
