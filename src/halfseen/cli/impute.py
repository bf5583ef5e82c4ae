"""``halfseen impute``: the table with its holes filled."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from halfseen.cli import options as o
from halfseen.cli.fit import needs_a_look, run_fit
from halfseen.cli.reading import read_input
from halfseen.cli.running import LOOK, check_writable, guarded, say, warnings_as_lines, write_text
from halfseen.data.cells import print_cell
from halfseen.errors import InputError

Draws = Annotated[
    int,
    typer.Option(
        min=0,
        help="Write so many completed tables, one below the other, for multiple imputation; "
        "otherwise one, with each hole at its mean.",
    ),
]


@guarded
@o.reads_table
def impute(
    table: o.Wanted,
    data: o.Data,
    draws: Draws = 0,
    method: o.Method = "auto",
    covariance: o.Structure = None,
    seed: o.Seed = 0,
    output: o.Output = None,
) -> None:
    """Fill the holes of a table, as CSV: each at its mean, or --draws for multiple imputation."""
    check_writable(output, "--output")
    with warnings_as_lines():
        given = read_input(table)
        fit = run_fit(given, method, covariance, seed)
        if draws:
            tables = fit.draw_imputations(m=draws, random_state=seed)
        else:
            tables = np.asarray(fit.impute())[None]
    read = given.data
    text = "".join(
        _lines(tables, read.names, read.labels, table.index or "label", bool(draws), table.decimal)
    )
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        say(
            f"wrote {output}: {len(tables)} x {len(read)} rows, {int((~read.seen).sum())} cells filled"
        )
    if needs_a_look(fit):
        raise typer.Exit(LOOK)


def _lines(
    tables: NDArray[np.float64],
    names: Sequence[str],
    labels: Sequence[str] | None,
    label_name: str,
    numbered: bool,
    decimal: str,
) -> Iterator[str]:
    """Write completed tables as CSV, numbered from 1 where there are several."""
    head: list[Any] = [*(["imputation"] if numbered else []), *([label_name] if labels else [])]
    clash = set(head) & set(names)
    if clash:
        raise InputError(
            f"the output needs a column {clash.pop()!r} of its own, but the table has one of that name. "
            "Leave it out with --columns."
        )
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=";" if decimal == "," else ",", lineterminator="\n")
    writer.writerow([*head, *names])
    for number, table in enumerate(tables, 1):
        for row, values in enumerate(table.tolist()):
            before = [*([number] if numbered else []), *([labels[row]] if labels else [])]
            writer.writerow([*before, *(print_cell(v, v, False, decimal=decimal) for v in values)])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
