"""``halfseen demo``: the main job on data whose truth is known."""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from halfseen.cli import options as o
from halfseen.cli.outputs import Outputs, as_json_text, warnings_as_lines
from halfseen.cli.running import command_line, guarded
from halfseen.data.csv_files import write_csv
from halfseen.demo import LIMITS, run_demo
from halfseen.diagnostics import diagnose


@guarded
def demo(
    context: typer.Context,
    method: Annotated[
        str, typer.Option(help="auto, pairwise, truncation or truncation_psgd.")
    ] = "auto",
    write: Annotated[
        Path | None, typer.Option(help="Write the censored table as a CSV file to try things on.")
    ] = None,
    report: o.Report = None,
    as_json: o.AsJson = False,
) -> None:
    """Censor the wine data by detection limits, and recover what was hidden."""
    outputs = Outputs(write=write, report=report)
    with warnings_as_lines():
        result = run_demo(method)

        def write_page(path: Path) -> None:
            diagnosis = diagnose(result.fit, progress=True)
            call = command_line(context)
            result.fit.report(path, diagnosis=diagnosis, call=call, title="Wine chemistry")

        def answer() -> None:
            if as_json:
                typer.echo(as_json_text(_demo_figures(result)))
            else:
                _print_demo(result)

        outputs.deliver(
            answer,
            write=lambda path: write_csv(result.laboratory_table(), path),
            report=write_page,
        )


def _demo_figures(demo: Any) -> dict[str, Any]:
    names = ("naive", "halfseen")
    return {
        "method": demo.fit.method,
        "status": demo.fit.status.name,
        "mean_error": dict(zip(names, demo.mean_errors(), strict=True)),
        "deviation_error": dict(zip(names, demo.deviation_errors(), strict=True)),
        "correlation_error": dict(zip(names, demo.correlation_errors(), strict=True)),
    }


def _print_demo(demo: Any) -> None:
    found, true = demo.fit.gaussian.standard_deviations, demo.truth.standard_deviations
    typer.echo(
        f"Wine chemistry: {demo.fit.rows} wines, log10 of concentrations. Values below a detection\n"
        f"limit are hidden. Naive leaves them out; halfseen ({demo.fit.method}) uses the limits."
    )
    heads = f"{'naive':>7}{'halfseen':>9}{'truth':>7}"
    typer.secho(f"\n{'':<33}{'mean':^22} {'standard deviation':^23}", bold=True)
    typer.secho(f"{'column':<20}{'limit':>5}{'hidden':>7}{heads} {heads}", bold=True)
    for i, name in enumerate(demo.names):
        typer.echo(
            f"{name:<20}{LIMITS[name]:>5g}{1 - demo.fit.seen_share[i]:>6.0%} "
            f"{demo.naive_mean[i]:>7.3f}{demo.fit.gaussian.mean[i]:>9.3f}{demo.truth.mean[i]:>7.3f} "
            f"{demo.naive_deviation[i]:>7.3f}{found[i]:>9.3f}{true[i]:>7.3f}"
        )
    typer.secho(f"\n{'':<47}{'correlation':^22}", bold=True)
    typer.secho(f"{'pair':<46}{heads}", bold=True)
    for i, j in itertools.combinations(range(len(demo.names)), 2):
        typer.echo(
            f"{demo.names[i] + ' ~ ' + demo.names[j]:<46}"
            f"{demo.naive_correlation[i, j]:>+7.2f}{demo.fit.gaussian.correlation[i, j]:>+9.2f}"
            f"{demo.truth.correlation[i, j]:>+7.2f}"
        )
    mean, deviation, rho = demo.mean_errors(), demo.deviation_errors(), demo.correlation_errors()
    typer.secho(
        f"\nMeans: naive is off by {mean[0]:.2f} standard deviations, halfseen by {mean[1]:.2f}.\n"
        f"Standard deviations: naive is off by {deviation[0]:.0%}, halfseen by {deviation[1]:.0%}.\n"
        f"Correlations: naive is off by {rho[0]:.2f}, halfseen by {rho[1]:.2f}.",
        bold=True,
    )
    typer.echo(textwrap.fill(f"Status: {demo.fit.status.value}", 80))
