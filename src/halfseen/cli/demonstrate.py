"""``halfseen demo``: the main job on data of scikit-learn, censored here so that the truth is known."""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from halfseen.cli import options as o
from halfseen.cli.outputs import Outputs, as_json_text, warnings_as_lines
from halfseen.cli.running import command_line, guarded
from halfseen.data.csv_files import write_csv
from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.diagnostics import diagnose
from halfseen.gaussian import Gaussian
from halfseen.missingness import DetectionLimits
from halfseen.solvers import Fit, fit

Floats = NDArray[np.float64]
# Concentrations in the wine data, with the limit below which a laboratory would report "not detected".
# The limits are round numbers near the lower third of each column.
LIMITS = {
    "malic_acid": 1.6,
    "ash": 2.2,
    "magnesium": 90.0,
    "total_phenols": 1.9,
    "flavanoids": 1.3,
    "nonflavanoid_phenols": 0.28,
    "proanthocyanins": 1.3,
    "color_intensity": 3.5,
    "proline": 550.0,
}


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


@dataclass(frozen=True)
class Demo:
    """What was censored, what each way of looking at it says, and what is true."""

    names: tuple[str, ...]
    truth: Gaussian
    naive_mean: Floats
    naive_deviation: Floats
    naive_correlation: Floats
    fit: Fit
    concentrations: Floats

    def laboratory_table(self) -> IntervalData:
        """Return the table as a laboratory would report it: concentrations, and cells such as <1.6."""
        limits = np.array(list(LIMITS.values()))
        hidden = self.concentrations < limits
        return IntervalData(
            np.where(hidden, -np.inf, self.concentrations),
            np.where(hidden, limits, self.concentrations),
            self.names,
        )

    def mean_errors(self) -> tuple[float, float]:
        """Average error of the means in true standard deviations: naive, recovered."""
        scale = self.truth.standard_deviations
        return (
            float((np.abs(self.naive_mean - self.truth.mean) / scale).mean()),
            float((np.abs(self.fit.gaussian.mean - self.truth.mean) / scale).mean()),
        )

    def deviation_errors(self) -> tuple[float, float]:
        """Average relative error of the standard deviations: naive, recovered."""
        true = self.truth.standard_deviations
        found = self.fit.gaussian.standard_deviations
        return (
            float(np.abs(self.naive_deviation / true - 1.0).mean()),
            float(np.abs(found / true - 1.0).mean()),
        )

    def correlation_errors(self) -> tuple[float, float]:
        """Average error of the correlations: naive, recovered."""
        pairs = np.triu_indices(len(self.names), 1)
        true = self.truth.correlation[pairs]
        return (
            float(np.abs(self.naive_correlation[pairs] - true).mean()),
            float(np.abs(self.fit.gaussian.correlation[pairs] - true).mean()),
        )


def run_demo(method: str = "auto") -> Demo:
    """Censor the wine data, learn from what is left, and keep the truth beside it."""
    from sklearn.datasets import load_wine

    wine = load_wine()
    names = tuple(LIMITS)
    concentrations = wine.data[:, [wine.feature_names.index(name) for name in names]]
    rule = DetectionLimits(lower=list(LIMITS.values()))
    X = np.where(rule.seen(concentrations), concentrations, np.nan)
    # Concentrations are skewed; their logarithms are close to normal.
    Y = np.log10(concentrations)
    return Demo(
        names,
        Gaussian(Y.mean(axis=0), np.cov(Y.T, bias=True)),
        *_available_cases(np.log10(X)),
        fit(X, rule, method, names=names, transforms="log10", random_state=0),
        concentrations,
    )


def _available_cases(X: Floats) -> tuple[Floats, Floats, Floats]:
    """Means, deviations and correlations of what is seen: what leaving out non-detects gives."""
    m = PairMoments.from_array(X)
    first, second = m.first / m.counts, m.second / m.counts
    spread = np.sqrt(second - first**2)
    correlation = (m.cross / m.counts - first * first.T) / (spread * spread.T)
    return m.means(), m.deviations(), correlation
