"""The command line: ``halfseen fit`` and its companions, a file for each command."""

from __future__ import annotations

from typing import Annotated

import typer

from halfseen.cli.check import check
from halfseen.cli.demonstrate import demo
from halfseen.cli.fit import fit
from halfseen.cli.impute import impute
from halfseen.cli.plan import plan
from halfseen.cli.regress import regress
from halfseen.cli.reproduce import reproduce
from halfseen.cli.simulate import simulate
from halfseen.version import __version__

EPILOG = (
    "Exit codes: 0, all is well; 1, there is an answer, but look at its status or at what was found; "
    "2, the arguments or the data cannot be used; 3, the data contradict the rule; 4, the data do not "
    "determine the answer; 5, an error of halfseen itself; 130 and 143, interrupted; 141, nobody "
    "reads on."
)

app = typer.Typer(
    help="Learn a Gaussian you only half see: mean and covariance from values that are missing "
    "because of what they are.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"halfseen {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Learn a Gaussian you only half see."""


for command in (fit, regress, impute, check, simulate, plan, demo, reproduce):
    app.command(epilog=EPILOG)(command)
