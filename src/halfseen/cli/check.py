"""``halfseen check``: whether a table, its rule and the model go together."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import typer

from halfseen.cli import options as o
from halfseen.cli.fit import run_fit
from halfseen.cli.inputs import Input, read_input
from halfseen.cli.outputs import as_json_text, say, show, warnings_as_lines
from halfseen.cli.running import LOOK, guarded
from halfseen.diagnostics import diagnose
from halfseen.errors import HalfseenError, HalfseenWarning
from halfseen.solvers import Fit
from halfseen.solvers.result import needs_a_look

Simulations = Annotated[int, typer.Option(min=19, help="Simulated tables behind each p-value.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Do not fit: no check of all columns together.")
]


@guarded
@o.reads_table
def check(
    table: o.TableOptions,
    data: o.Data,
    quick: Quick = False,
    simulations: Simulations = 199,
    seed: o.Seed = 0,
    as_json: o.AsJson = False,
) -> None:
    """Check a table, the rule that hides its values, and the normality of what is behind it."""
    with warnings_as_lines():
        given = read_input(table, quiet=as_json)
        fit = None if quick else _try_fit(given, seed)
        settings: dict[str, Any] = {
            "simulations": simulations, "random_state": seed, "progress": True,
        }  # fmt: skip
        if fit is not None:
            found = diagnose(fit, **settings)
        else:
            found = diagnose(
                given.data,
                given.rule,
                missing_at_random=given.missing_at_random,
                transforms=given.transforms,
                **settings,
            )
    show(as_json_text(found.to_dict()) if as_json else str(found))
    if fit is not None and needs_a_look(fit.status):
        say(f"fit: {fit.status.value}")
    if found.worst == "problem" or (fit is not None and needs_a_look(fit.status)):
        raise typer.Exit(LOOK)


def _try_fit(given: Input, seed: int) -> Fit | None:
    """Fit, if it can be done: what stands in the way will be among the findings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HalfseenWarning)
            return run_fit(given, "auto", None, seed)
    except HalfseenError as error:
        say(f"no fit, so no check of all columns together: {error}")
        return None
