"""``halfseen fit``: from a table to mean, covariance and how sure they are."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import typer

from halfseen.cli import options as o
from halfseen.cli.inputs import (
    Input,
    believed_of_pieces,
    in_pieces,
    names_only,
    read_input,
    read_rule,
    read_scales,
    refuse_of_pieces,
    say_pieces,
    split_names,
    warn_of_substitutes,
)
from halfseen.cli.options import TableOptions
from halfseen.cli.outputs import Outputs, as_json_text, json_writer, say, show, warnings_as_lines
from halfseen.cli.running import LOOK, command_line, guarded, rows_by_line
from halfseen.data.parquet_blocks import scan_parquet
from halfseen.diagnostics import diagnose
from halfseen.errors import InputError
from halfseen.limits.table import LimitTable
from halfseen.scaling.cluster import connected
from halfseen.solvers import Fit, GroupedFit
from halfseen.solvers import fit as learn
from halfseen.solvers.result import needs_a_look


@guarded
@o.reads_table
def fit(
    context: typer.Context,
    table: o.TableOptions,
    data: o.Data,
    method: o.Method = "auto",
    covariance: o.Structure = None,
    errors: o.Tails = o.Errors.NORMAL,
    degrees_of_freedom: o.DegreesOfFreedom = None,
    loss: o.Loss = None,
    by: o.By = None,
    level: o.Level = 0.95,
    ucl: o.Reported = False,
    coverage: o.Coverage = 0.95,
    next_values: o.NextValues = 1,
    seed: o.Seed = 0,
    report: o.Report = None,
    output: o.Output = None,
    save: o.Save = None,
    as_json: o.AsJson = False,
    memory: o.Memory = None,
    scratch: o.ScratchFolder = None,
    scheduler: o.Scheduler = None,
    checkpoint: o.Checkpoint = None,
    every: o.Every = 60.0,
    resume: o.Resume = False,
) -> None:
    """Learn the mean and the covariance behind a table with hidden values."""
    outputs = Outputs(
        [data, table.limits], output=output, save=save, report=report, checkpoint=checkpoint
    )
    if by is not None and save is not None:
        raise InputError("--save is for one fit, and --by makes several. Keep the figures with -o.")
    o.check_level(level)
    o.check_reported(ucl, level, coverage, next_values)
    kept: dict[str, Any] = {}
    if errors is not o.Errors.NORMAL or degrees_of_freedom is not None:
        kept = {"errors": str(errors), "degrees_of_freedom": degrees_of_freedom}
    if checkpoint is not None or resume:
        kept |= {"checkpoint": checkpoint, "every": every, "resume": resume}
    if loss is not None:
        kept["loss"] = o.read_loss(loss)
    if by is not None:
        kept["by"] = by
    with warnings_as_lines():
        if in_pieces(table, memory, scheduler):
            if report is not None:
                raise InputError(
                    "--report needs the table in memory; fit some of the rows for one, or none."
                )
            large = {"memory": memory, "scratch": scratch, **kept}
            found = _fit_in_pieces(table, method, covariance, seed, as_json, scheduler, **large)
        else:
            if scratch is not None:
                raise InputError("--scratch is for Parquet files, which are read in pieces.")
            given = read_input(table, quiet=as_json, by=by)
            note_of_blanks(given)
            warn_of_substitutes(given.data, given.rule)
            found = run_fit(given, method, covariance, seed, **kept)
        limits = found.limits(level, coverage, next_values, random_state=seed) if ucl else None
    content = found.to_dict(level) if as_json or output is not None else {}
    if limits is not None and content:
        content["limits"] = limits.to_dict()
    outputs.deliver(
        lambda: _show(found, limits, level, content if as_json else None),
        output=json_writer(content),
        save=found.save,
        report=lambda path: _report(found, path, seed, command_line(context), limits),
    )
    if needs_a_look(found.status):
        raise typer.Exit(LOOK)


def _show(
    found: Fit | GroupedFit, limits: LimitTable | None, level: float, content: dict[str, Any] | None
) -> None:
    """Print what was found, or its content for other programs."""
    show(found.summary(level=level) if content is None else as_json_text(content))
    if limits is not None and content is None:
        show(f"\n{limits!r}")


def _report(
    found: Fit | GroupedFit, path: Path, seed: int, call: str, limits: LimitTable | None
) -> None:
    """Write the page; that of one fit has checks of its assumptions."""
    if isinstance(found, GroupedFit):
        found.report(path, call=call)
        if limits is not None:
            say("note: the page of groups has no limits; they are printed, and in --json.")
        return
    diagnosis = diagnose(found, random_state=seed, progress=True)
    found.report(path, diagnosis=diagnosis, call=call, limits=limits)
    problems = [one.title for one in diagnosis.findings if one.level == "problem"]
    if problems:
        say(f"the checks found problems: {'; '.join(dict.fromkeys(problems))}. The page has them.")


def note_of_blanks(given: Input) -> None:
    """Say how blank cells are read where no rule speaks of them."""
    blank = given.data.blank
    if given.long is not None:
        absent = int(given.long.absent.sum())
        if absent:
            say(f"note: {absent} cells have no row in the file, and are missing at random.")
        blank = blank & ~given.long.absent
    count = int(blank.sum())
    if given.rule is None and count and given.missing_at_random is None:
        say(
            f"note: no rule is stated, so {count} blank cells are taken to be missing at random. If "
            "they are blank because of their values, state the rule with --seen or --limits."
        )


def run_fit(given: Input, method: str, covariance: str | None, seed: int, **more: Any) -> Any:
    """Fit what was read."""
    if given.missing_at_random is not None:
        more["missing_at_random"] = given.missing_at_random
    with rows_by_line(given.data, given.lines):
        return learn(
            given.data,
            given.rule,
            method,
            covariance=covariance,
            random_state=seed,
            progress=True,
            transforms=given.transforms,
            **more,
        )


def _fit_in_pieces(
    wanted: TableOptions,
    method: str,
    covariance: str | None,
    seed: int,
    quiet: bool,
    scheduler: str | None,
    **options: Any,
) -> Fit:
    """Fit Parquet files piece by piece."""
    refuse_of_pieces(wanted)
    columns = None if wanted.columns is None else split_names(wanted.columns)
    blocks = scan_parquet(wanted.data, columns)
    if not quiet:
        n, d = blocks.shape
        say_pieces(wanted, f"{n:,} rows, {d} columns", len(blocks))
    rule = believed_of_pieces(wanted, read_rule(wanted, names_only(blocks.names)))
    with nullcontext() if scheduler is None else connected(scheduler) as client:
        return learn(
            blocks,
            rule,
            method,
            covariance=covariance,
            random_state=seed,
            progress=True,
            transforms=read_scales(wanted, blocks.names),
            client=client,
            **options,
        )
