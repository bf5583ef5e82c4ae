"""``halfseen reproduce``: the paper's claims, checked."""

from __future__ import annotations

import datetime
import os
import platform
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy
import typer

from halfseen.cli import options as o
from halfseen.cli.outputs import WIDTH, Outputs, as_json_text, printing
from halfseen.cli.running import LOOK, command_line, guarded
from halfseen.errors import InputError
from halfseen.files import whole_file, write_text_whole
from halfseen.ledger import Claim, Curve, Entry, check_claim, choose
from halfseen.ledger.page import draw_curve, figure_name, render_page, verdicts
from halfseen.version import __version__

Rows = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ROW]...",
        help="Rows or groups, as in theorem-1.2 or sample-gradient/drift; all of them without one.",
        show_default=False,
    ),
]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="Smaller experiments, with wider tolerances: a minute or two."),
]
Listed = Annotated[bool, typer.Option("--list", help="Show the rows and stop.")]
Page = Annotated[
    Path | None,
    typer.Option(help="Write the ledger as a Markdown page, its figures in figures/ beside it."),
]


@guarded
def reproduce(
    context: typer.Context,
    rows: Rows = None,
    quick: Quick = False,
    listed: Listed = False,
    page: Page = None,
    as_json: o.AsJson = False,
) -> None:
    """Check the claims of the paper, each by an experiment that could contradict it."""
    chosen = choose(rows or [])
    if listed:
        for row in chosen:
            typer.echo(f"{row.name:<36}{row.where}")
        return
    outputs = Outputs(page=page)
    if page is not None:
        _prepare_figures(page)
    entries = []
    for row in chosen:
        entries.append(check_claim(row, quick))
        if not as_json:
            with printing():
                _print_entry(entries[-1])

    def answer() -> None:
        if as_json:
            rows = [_plain(entry) for entry in entries]
            typer.echo(as_json_text({"quick": quick, "rows": rows}))
        else:
            seconds = sum(entry.seconds for entry in entries)
            count = "1 row" if len(entries) == 1 else f"{len(entries)} rows"
            typer.secho(f"{count} in {seconds:.0f} s: {verdicts(entries)}.", bold=True)

    outputs.deliver(answer, page=lambda path: _write_page(path, entries, command_line(context)))
    if not all(entry.holds for entry in entries):
        raise typer.Exit(LOOK)


def _print_entry(entry: Entry) -> None:
    row, told = entry.claim, f"{entry.verdict}, {entry.seconds:.1f} s"
    colour = typer.colors.GREEN if entry.holds else typer.colors.RED
    typer.secho(row.name, bold=True, nl=False)
    typer.echo(" " * max(2, WIDTH - len(row.name) - len(told)), nl=False)
    typer.secho(told, fg=colour, bold=not entry.holds)
    told_in = {f"says ({row.where})": row.says, "decides": row.tolerance, "found": entry.measured}
    for head, text in told_in.items():
        typer.echo(
            textwrap.fill(f"{head}: {text}", WIDTH, initial_indent="  ", subsequent_indent="    ")
        )
    typer.echo()


def _plain(entry: Entry) -> dict[str, Any]:
    row: Claim = entry.claim
    return {
        "row": row.name,
        "where": row.where,
        "says": row.says,
        "experiment": row.experiment,
        "decides": row.tolerance,
        "measured": entry.measured,
        "verdict": entry.verdict,
        "holds": entry.holds,
        "seconds": round(entry.seconds, 2),
        "curve": None if entry.curve is None else asdict(entry.curve),
    }


def _prepare_figures(page: Path) -> None:
    """Find out before the work whether figures can be drawn, and where they go."""
    draw_curve(Curve([1.0, 2.0], {"a": [1.0, 2.0]}, "", ""))
    folder = page.parent / "figures"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} is not a folder: {error.strerror or error}.") from None


def _write_page(path: Path, entries: list[Entry], command: str) -> None:
    """Write the figures, then the page that shows them."""
    folder = path.parent / "figures"
    try:
        for entry in entries:
            if entry.curve is not None:
                with whole_file(folder / figure_name(entry)) as file:
                    file.write(draw_curve(entry.curve))
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}.") from None
    stamp = (
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, halfseen "
        f"{__version__}"
    )
    write_text_whole(path, render_page(entries, command, stamp))
