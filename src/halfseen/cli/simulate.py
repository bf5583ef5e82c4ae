"""``halfseen simulate``: a table with holes, for trying things out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from halfseen.cli import options as o
from halfseen.cli.reading import split_names
from halfseen.cli.running import check_writable, guarded, say, warnings_as_lines, write_text
from halfseen.data.interval_data import IntervalData
from halfseen.data.transforms import (
    BoxCox,
    Transform,
    back_to_units,
    parse_transform,
    transform_rule,
)
from halfseen.data.writing import to_cells
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness import SelfCensoring, everything, rules
from halfseen.missingness.base import Missingness
from halfseen.missingness.holes import Scan
from halfseen.simulate import simulate as draw

Model = Annotated[
    Path | None,
    typer.Option(help="A model: what halfseen fit --output wrote, or a saved Gaussian."),
]
Rows = Annotated[int, typer.Option(min=1, help="Number of rows.")]
Names = Annotated[str, typer.Option("--columns", help="Names of the columns, without a model.")]
Mean = Annotated[str, typer.Option(help="Mean of every column, or one for each: 0,1,2.")]
Deviation = Annotated[str, typer.Option("--sd", help="Standard deviations, likewise.")]
Correlation = Annotated[float, typer.Option(help="Correlation of every pair.")]
Words = Annotated[
    bool,
    typer.Option(
        "--qualifiers/--blanks",
        help="Write hidden cells as <0.5 where that is known, or leave them empty.",
    ),
]


@guarded
def simulate(
    model: Model = None,
    rows: Rows = 500,
    columns: Names = "x,y,z",
    mean: Mean = "0",
    sd: Deviation = "1",
    correlation: Correlation = 0.5,
    seen: o.Seen = None,
    seed: o.Seed = 0,
    log: Annotated[
        bool, typer.Option("--log", help="Draw logarithms: columns are log-normal.")
    ] = False,
    qualifiers: Words = True,
    output: o.Output = None,
) -> None:
    """Draw rows from a Gaussian, hide what the rules hide, and write them as CSV."""
    check_writable(output, "--output")
    gaussian, names, scales = _model(model, columns, mean, sd, correlation, log)
    with warnings_as_lines():
        rule = rules(list(seen), columns=names) if seen else SelfCensoring(everything)
        modelled = transform_rule(rule, scales, names)
        assert modelled is not None
        X, Z = draw(gaussian, modelled, rows, seed, return_complete=True)
    values = np.where(np.isnan(X), np.nan, back_to_units(Z, scales))
    data = _cells(values, rule, names) if qualifiers else _blanks(values, names)
    buffer = io.StringIO()
    for line in (list(names), *to_cells(data)):
        buffer.write(_csv_line(line))
    if output is None:
        typer.echo(buffer.getvalue(), nl=False)
    else:
        write_text(output, buffer.getvalue())
        say(f"wrote {output}: {data.describe()}")


def _csv_line(cells: list[str]) -> str:
    import csv

    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def _blanks(values: Any, names: tuple[str, ...]) -> IntervalData:
    return IntervalData(values, values, names)


def _cells(values: Any, rule: Missingness, names: tuple[str, ...]) -> IntervalData:
    """Say of each hidden cell in which interval it lies, where the rule leaves one."""
    d = values.shape[1]
    hidden = np.isnan(values)
    holes = rule.holes(values, Scan(np.zeros(d), np.ones(d), np.full(d, 100.0)))
    sizes = np.diff(holes.sets.start)
    lower, upper = values.copy(), values.copy()
    which = holes.index[hidden]
    single = sizes[which] == 1
    first = holes.sets.start[which]
    ends = [
        np.where(single, side[np.minimum(first, side.size - 1)], far)
        for side, far in ((holes.sets.lower, -np.inf), (holes.sets.upper, np.inf))
    ]
    lower[hidden], upper[hidden] = ends
    return IntervalData(lower, upper, names)


def _model(
    model: Path | None, columns: str, mean: str, sd: str, correlation: float, log: bool
) -> tuple[Gaussian, tuple[str, ...], tuple[Transform, ...]]:
    if model is not None:
        return _read_model(model, log)
    names = tuple(split_names(columns))
    d = len(names)
    spread = _numbers("--sd", sd, d)
    if not (spread > 0.0).all():
        raise InputError(f"--sd must be above 0; got {sd!r}.")
    R = np.full((d, d), correlation)
    np.fill_diagonal(R, 1.0)
    if d > 1 and not -1.0 / (d - 1) < correlation < 1.0:
        raise InputError(
            f"--correlation must lie between {-1.0 / (d - 1):.3g} and 1 for {d} columns; got "
            f"{correlation:g}."
        )
    scale = parse_transform("log" if log else "none")
    gaussian = Gaussian(_numbers("--mean", mean, d), R * np.outer(spread, spread))
    return gaussian, names, (scale,) * d


def _numbers(option: str, text: str, d: int) -> Any:
    try:
        values = np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise InputError(f"{option} takes numbers separated by commas; got {text!r}.") from None
    if values.size not in (1, d) or not np.isfinite(values).all():
        raise InputError(f"{option} takes one number, or {d}; got {text!r}.")
    return np.broadcast_to(values, (d,)).copy()


def _read_model(path: Path, log: bool) -> tuple[Gaussian, tuple[str, ...], tuple[Transform, ...]]:
    """Read what ``halfseen fit --output`` wrote, or a saved Gaussian."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--model {path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        raise InputError(f"--model {path} is not JSON.") from None
    if isinstance(content, dict) and "columns" not in content:
        gaussian = Gaussian.load(path)
        names = tuple(f"x{j}" for j in range(gaussian.dimension))
        return gaussian, names, (parse_transform("log" if log else "none"),) * len(names)
    try:
        names = tuple(content["columns"])
        mean = [content["mean"][name] for name in names]
        covariance = [[content["covariance"][a][b] for b in names] for a in names]
        scales = tuple(parse_transform(content["transforms"][name]) for name in names)
        gaussian = Gaussian(mean, covariance)
    except InputError as error:
        raise InputError(f"--model {path} cannot be used: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputError(
            f"--model {path} is neither what halfseen fit --output writes nor a saved Gaussian."
        ) from None
    for name, scale in zip(names, scales, strict=True):
        if isinstance(scale, BoxCox) and scale.power is None:
            raise InputError(f"--model {path}: the power of column {name} is not told.")
    return gaussian, names, scales
