"""``halfseen plan``: how many rows are needed."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import Annotated, Any

import typer

from halfseen.cli import options as o
from halfseen.cli.fit import run_fit
from halfseen.cli.inputs import read_input
from halfseen.cli.outputs import WIDTH, as_json_text, show, warnings_as_lines
from halfseen.cli.running import guarded
from halfseen.errors import InputError
from halfseen.planning import rows_for_error, samples_for_self_censoring

Pilot = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATA]", help="A pilot table; without one, the paper's bound.", show_default=False
    ),
]
Error = Annotated[
    float,
    typer.Option(
        help="Error wanted: standard error of means (in standard deviations) and of correlations; "
        "for the bound, in the norms of the theorem."
    ),
]
Width = Annotated[
    int | None, typer.Option("--width", min=1, help="Number of columns, without a pilot.")
]
Together = Annotated[
    float,
    typer.Option("--together", help="Least share of rows in which any two columns are both seen."),
]
Condition = Annotated[float, typer.Option(help="Condition number of the covariance.")]


@guarded
@o.reads_table
def plan(
    table: o.TableOptions,
    data: Pilot = None,
    error: Error = 0.1,
    width: Width = None,
    together: Together = 0.5,
    condition: Condition = 1.0,
    seed: o.Seed = 0,
    as_json: o.AsJson = False,
) -> None:
    """Say how many rows are needed: from a pilot table, or by the paper's bound."""
    if data is None:
        if width is None:
            raise InputError(
                "give a pilot table, or the number of columns with --width, as in halfseen plan "
                "--width 5."
            )
        bound = samples_for_self_censoring(width, error, together, condition)
        show(_told(bound, as_json))
        return
    with warnings_as_lines():
        given = read_input(table, quiet=as_json)
        found = rows_for_error(run_fit(given, "full", None, seed), error)
    show(_told(found, as_json))


def _told(found: Any, as_json: bool) -> str:
    return as_json_text(asdict(found)) if as_json else textwrap.fill(str(found), WIDTH)
