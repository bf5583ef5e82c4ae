"""``halfseen simulate``: a table with holes, for trying things out."""

from __future__ import annotations

import csv
import enum
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from halfseen.cli import options as o
from halfseen.cli.inputs import split_names
from halfseen.cli.outputs import Outputs, show_table, warnings_as_lines
from halfseen.cli.running import guarded
from halfseen.data.csv_files import to_cells
from halfseen.data.interval_data import IntervalData, count_cells, describe_cells
from halfseen.data.parquet_blocks import SUFFIXES as PARQUET
from halfseen.data.parquet_files import (
    check_empty,
    pyarrow_parquet,
    write_parquet,
    write_parquet_parts,
)
from halfseen.data.table import check_names
from halfseen.data.transforms import (
    BoxCox,
    Transform,
    back_to_units,
    parse_transform,
    transform_rule,
)
from halfseen.errors import InputError
from halfseen.files import read_whole, whole_file
from halfseen.gaussian import Gaussian, gaussian_in
from halfseen.missingness import SelfCensoring, everything, rules
from halfseen.missingness.base import Missingness
from halfseen.missingness.holes import Scan
from halfseen.simulate import simulate_blocks


class Format(enum.StrEnum):
    """What is written."""

    AUTO = "auto"
    CSV = "csv"
    PARQUET = "parquet"


Model = Annotated[
    Path | None,
    typer.Option(help="A model: what halfseen fit --output wrote, or a saved Gaussian."),
]
Rows = Annotated[int, typer.Option(min=1, help="Number of rows.")]
Names = Annotated[
    str,
    typer.Option(
        "--columns",
        help="Names of the columns, without a model; or how many, which are named x0, x1 and on.",
    ),
]
Mean = Annotated[str, typer.Option(help="Mean of every column, or one for each: 0,1,2.")]
Deviation = Annotated[str, typer.Option("--sd", help="Standard deviations, likewise.")]
Correlation = Annotated[float, typer.Option(help="Correlation of every pair.")]
Words = Annotated[
    bool,
    typer.Option(
        "--qualifiers/--blanks",
        help="Write hidden cells of CSV as <0.5 where that is known, or leave them empty. In Parquet "
        "they are always null.",
    ),
]
Form = Annotated[
    Format,
    typer.Option(
        "--format",
        help="auto: Parquet for names that end in .parquet or .pq, else CSV. parquet with another "
        "name: a folder of parts, absent or empty before.",
    ),
]
PartRows = Annotated[
    int | None,
    typer.Option(min=1, help="Rows in each part of a folder; else as many as make 256 MiB."),
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
    format: Form = Format.AUTO,
    part_rows: PartRows = None,
    output: o.Output = None,
) -> None:
    """Draw rows from a Gaussian, hide what the rules hide, and write them as CSV or Parquet.

    Rows are drawn and written block by block: there may be more than fit into memory.
    """
    form = _form(format, output, part_rows)
    folder = form is Format.PARQUET and output is not None and _is_folder(output)
    outputs = Outputs([model], folder, output=output)
    gaussian, names, scales = _model(model, columns, mean, sd, correlation, log)
    with warnings_as_lines():
        rule = rules(list(seen), columns=names) if seen else SelfCensoring(everything)
        modelled = transform_rule(rule, scales, names)
        assert modelled is not None
        values = (
            np.where(np.isnan(X), np.nan, back_to_units(Z, scales))
            for X, Z in simulate_blocks(gaussian, modelled, rows, seed)
        )
        if form is Format.PARQUET:
            outputs.deliver(
                lambda: None, output=lambda path: _write_parquet(path, names, values, part_rows)
            )
            return
        tables = (
            _cells(block, rule, names) if qualifiers else IntervalData(block, block, names)
            for block in values
        )
        cells: Counter[str] = Counter()
        lines = _csv_lines(names, tables, cells)

        def show_lines() -> None:
            for text in () if output is not None else lines:
                show_table(text)

        def write_lines(path: Path) -> str:
            with whole_file(path) as file:
                for text in lines:
                    file.write(text.encode("utf-8"))
            return _told(cells, names)

        outputs.deliver(show_lines, output=write_lines)


def _form(form: Format, output: Path | None, part_rows: int | None) -> Format:
    """Say what is to be written, and find out before the work whether there is a place for it."""
    named = output is not None and output.suffix.lower() in PARQUET
    if form is Format.AUTO:
        if output is not None and output.is_dir():
            raise InputError(
                f"--output {output} is a folder; a file name is needed, or --format parquet to fill it."
            )
        form = Format.PARQUET if named else Format.CSV
    if form is Format.CSV:
        if part_rows is not None:
            raise InputError("--part-rows is for folders of Parquet files: add --format parquet.")
        return form
    if output is None:
        raise InputError("--format parquet needs a place to write to: --output data.parquet.")
    pyarrow_parquet("Writing")
    if _is_folder(output):
        check_empty(output)
        return form
    if part_rows is not None:
        raise InputError(
            f"--part-rows is for a folder of parts, but {output} is the name of a file. Name a folder, "
            "as in --output data --format parquet."
        )
    return form


def _is_folder(output: Path) -> bool:
    return output.is_dir() or output.suffix.lower() not in PARQUET


def _write_parquet(
    output: Path, names: tuple[str, ...], blocks: Iterator[Any], part_rows: int | None
) -> str:
    """Write a file, or a folder of parts; return what to say of it."""
    cells: Counter[str] = Counter()

    def counted() -> Iterator[Any]:
        for block in blocks:
            hidden = int(np.isnan(block).sum())
            cells.update(seen=block.size - hidden, blank=hidden)
            yield block

    parts = ""
    if _is_folder(output):
        count = write_parquet_parts(output, names, counted(), part_rows)
        parts = f"{count} part{'s' * (count != 1)}; "
    else:
        write_parquet(output, names, counted())
    return parts + _told(cells, names)


def _told(cells: Counter[str], names: Sequence[str]) -> str:
    d = len(names)
    return describe_cells(cells.total() // d, d, cells)


def _csv_lines(
    names: Sequence[str], tables: Iterator[IntervalData], cells: Counter[str]
) -> Iterator[str]:
    """Yield a table as CSV, block by block, and count its cells."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    for data in tables:
        cells.update(count_cells(data))
        writer.writerows(to_cells(data))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


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
    names = _names(columns)
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


def _names(columns: str) -> tuple[str, ...]:
    """Read names, or a number of columns."""
    told = tuple(split_names(columns))
    if len(told) == 1 and told[0].isascii() and told[0].isdigit():
        if int(told[0]) < 1:
            raise InputError(f"--columns takes names, or how many, at least 1; got {columns!r}.")
        told = tuple(f"x{j}" for j in range(int(told[0])))
    check_names(told)
    return told


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
        content = json.loads(read_whole(path))
    except InputError as error:
        raise InputError(f"--model {error}") from None
    except (ValueError, RecursionError):
        raise InputError(f"--model {path} is not JSON.") from None
    if isinstance(content, dict) and "columns" not in content:
        gaussian = gaussian_in(content, path)
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
