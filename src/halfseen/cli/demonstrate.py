"""The command line."""

from __future__ import annotations

import itertools
import json
import textwrap
from typing import Annotated, Any

import typer

from halfseen import __version__
from halfseen.errors import HalfseenError

app = typer.Typer(
    help="Learn a Gaussian you only half see: mean and covariance from values that are missing "
    "because of what they are.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
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


@app.command()
def demo(
    method: Annotated[
        str, typer.Option(help="auto, pairwise, truncation or truncation_psgd.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print figures for machines.")] = False,
) -> None:
    """Censor the wine data by detection limits, and recover what was hidden."""
    import warnings

    from halfseen.demo import run_demo
    from halfseen.errors import HalfseenWarning

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HalfseenWarning)
            result = run_demo(method)
    except HalfseenError as error:
        typer.echo(f"halfseen: {error}", err=True)
        raise typer.Exit(2) from None
    for warning in caught:
        typer.echo(textwrap.fill(f"warning: {warning.message}", 80), err=True)
    if as_json:
        typer.echo(json.dumps(_demo_figures(result), indent=2))
    else:
        _print_demo(result)


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
            f"{name:<20}{10 ** demo.limits[i]:>5g}{1 - demo.fit.seen_share[i]:>6.0%} "
            f"{demo.naive_mean[i]:>7.3f}{demo.fit.mean[i]:>9.3f}{demo.truth.mean[i]:>7.3f} "
            f"{demo.naive_deviation[i]:>7.3f}{found[i]:>9.3f}{true[i]:>7.3f}"
        )
    typer.secho(f"\n{'':<47}{'correlation':^22}", bold=True)
    typer.secho(f"{'pair':<46}{heads}", bold=True)
    for i, j in itertools.combinations(range(len(demo.names)), 2):
        typer.echo(
            f"{demo.names[i] + ' ~ ' + demo.names[j]:<46}"
            f"{demo.naive_correlation[i, j]:>+7.2f}{demo.fit.correlation[i, j]:>+9.2f}"
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
