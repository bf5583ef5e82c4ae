"""``halfseen regress``: what outcomes depend on, from a formula; Parquet files are read in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from halfseen.cli import options as o
from halfseen.cli.inputs import (
    believed_of_pieces,
    in_pieces,
    names_only,
    read_rule,
    refuse_of_pieces,
    say_pieces,
    warn_of_substitutes,
)
from halfseen.cli.options import TableOptions
from halfseen.cli.outputs import Outputs, as_json_text, json_writer, say, show, warnings_as_lines
from halfseen.cli.regression_inputs import (
    RegressionInput,
    as_in_column,
    read_equal,
    read_fixed,
    read_kinds,
    read_model,
    read_regression_input,
    read_selections,
    read_truncated,
)
from halfseen.cli.running import LOOK, command_line, guarded, rows_told
from halfseen.data.formulas import outcome_names
from halfseen.data.parquet_blocks import scan_mixed
from halfseen.data.plain_columns import columns_of_piece
from halfseen.errors import InputError
from halfseen.missingness import rules
from halfseen.missingness.base import Missingness
from halfseen.missingness.selection import Selection
from halfseen.regression import RegressionFit
from halfseen.regression import regress as learn
from halfseen.regression.in_pieces import columns_needed
from halfseen.scaling.cluster import connected
from halfseen.solvers.result import needs_a_look

MODEL, HIDDEN = "The model", "What hides a value"
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV or Parquet file; - reads CSV from standard input. Also a folder of Parquet files, "
        "or a pattern in quotes: 'data/*.parquet'.",
        show_default=False,
    ),
]
Formulas = Annotated[
    list[str],
    typer.Argument(
        metavar="FORMULA...",
        help="Outcomes on the left, what they depend on on the right: 'lead + zinc ~ age + C(site)'. "
        "Several for several equations: 'wage ~ exper + educ' 'works ~ age + kids'.",
        show_default=False,
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="RULE",
        rich_help_panel=HIDDEN,
        help="Outcomes that are seen where another is 1 or true: 'wage: works'; or where it is not: "
        "'y0: not works'. May be repeated.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        rich_help_panel=MODEL,
        help="What an outcome is: 'works: binary', 'grade: low < mid < high', 'score: ordered', "
        "'share: continuous'. May be repeated.",
    ),
]
Diagonal = Annotated[
    bool,
    typer.Option(
        "--diagonal",
        rich_help_panel=MODEL,
        help="Residuals of different outcomes do not go together.",
    ),
]
Robust = Annotated[
    bool,
    typer.Option(
        "--robust", rich_help_panel=MODEL, help="Standard errors that do not believe the model."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=MODEL,
        help="Rows with the same value here belong together; standard errors are robust.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=MODEL,
        help="What each row counts, such as the weights of a survey; standard errors are robust.",
    ),
]
Penalised = Annotated[
    str | None,
    typer.Option(
        "--penalty",
        metavar="KIND",
        rich_help_panel=MODEL,
        help="ridge or lasso: pulls coefficients towards 0, for many regressors.",
    ),
]
Strength = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=MODEL,
        help="Of the penalty; chosen by rows that are held out, where it is not said.",
    ),
]
Fixed = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COEFFICIENT",
        rich_help_panel=MODEL,
        help="A coefficient that is known: 'lead: age=0.04'. May be repeated.",
    ),
]
Equal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COEFFICIENTS",
        rich_help_panel=MODEL,
        help="Coefficients that are the same: 'lead, zinc: age', or 'lead: age = zinc: years'. May be "
        "repeated.",
    ),
]
Truncated = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        rich_help_panel=HIDDEN,
        help="Where the one outcome had to lie for its row to be in the table at all: 'wage: >=0'.",
    ),
]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        rich_help_panel="The table",
        help="Leave out rows in which a regressor, or the column of --cluster or --weights, is missing.",
    ),
]


@dataclass(frozen=True)
class Words:
    """What was said of a regression, as it stands on the command line."""

    formulas: Sequence[str]
    kinds: Sequence[str] | None
    select: Sequence[str] | None
    cluster: str | None
    drop_missing: bool


def regress_in_pieces(
    wanted: TableOptions,
    words: Words,
    quiet: bool,
    scheduler: str | None,
    options: dict[str, Any],
) -> RegressionFit:
    """Learn a regression from Parquet files, piece by piece."""
    refuse_of_pieces(wanted)
    if words.drop_missing:
        raise InputError(
            "--drop-missing is not for tables that are read in pieces; leave such rows out of the files."
        )
    if words.cluster is not None:
        raise InputError("--cluster needs the table in memory, and this one is read in pieces.")
    model = read_model(words.formulas)
    outcomes = outcome_names(model)
    given: list[Missingness] = [*read_selections(words.select, outcomes)]
    rule = _rule(wanted, outcomes)
    given += [] if rule is None else [rule]
    kinds = read_kinds(words.kinds, outcomes)
    blocks = scan_mixed(wanted.data, columns_needed(model, given or None))
    if kinds:
        first = columns_of_piece(blocks.pieces[0], blocks.names)
        kinds = {name: as_in_column(first, name, kind) for name, kind in kinds.items()}
    if not quiet:
        say_pieces(wanted, f"{blocks.shape[0]:,} rows", len(blocks))
    with nullcontext() if scheduler is None else connected(scheduler) as client:
        return learn(
            model,
            blocks,
            given or None,
            kinds=kinds or None,
            client=client,
            progress=True,
            **options,
        )


def _rule(wanted: TableOptions, outcomes: Sequence[str]) -> Missingness | None:
    """Return the rule of the outcomes."""
    if wanted.limits is not None:
        return believed_of_pieces(wanted, read_rule(wanted, names_only(outcomes)))
    # By name: it may speak of covariates too.
    return believed_of_pieces(wanted, rules(wanted.seen) if wanted.seen else None)


@guarded
@o.reads_table_without("log", "transform", "columns", "exclude", "rounded", *o.LONG)
def regress(
    context: typer.Context,
    table: o.TableOptions,
    data: Data,
    formulas: Formulas,
    select: Select = None,
    truncated: Truncated = None,
    kind: Kinds = None,
    diagonal: Diagonal = False,
    covariance: o.Structure = None,
    fixed: Fixed = None,
    equal: Equal = None,
    robust: Robust = False,
    cluster: Cluster = None,
    weights: Weights = None,
    penalty: Penalised = None,
    strength: Strength = None,
    drop_missing: DropMissing = False,
    level: o.Level = 0.95,
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
    """Learn what outcomes depend on, when some of their values are hidden: Tobit, Heckman, probit."""
    outputs = Outputs(
        [data, table.limits], output=output, save=save, report=report, checkpoint=checkpoint
    )
    o.check_level(level)
    more: dict[str, Any] = {"robust": robust, "random_state": seed}
    if diagonal and covariance is not None:
        raise InputError("--diagonal is --covariance diagonal: give one of them.")
    if diagonal or covariance is not None:
        more["covariance"] = "diagonal" if diagonal else covariance
    more |= {"fixed": read_fixed(fixed), "equal": read_equal(equal)}
    more["truncated"] = read_truncated(truncated)
    if checkpoint is not None or resume:
        more |= {"checkpoint": checkpoint, "every": every, "resume": resume}
    with warnings_as_lines():
        if in_pieces(table, memory, scheduler):
            words = Words(formulas, kind, select, cluster, drop_missing)
            more |= {"memory": memory, "scratch": scratch, "weights": weights, "penalty": penalty}
            found = regress_in_pieces(table, words, as_json, scheduler, more)
        else:
            if scratch is not None:
                raise InputError("--scratch is for Parquet files, which are read in pieces.")
            beside = {"clusters": cluster, "weights": weights}
            given = read_regression_input(table, formulas, kind, select, beside, drop_missing)
            if not as_json:
                say(f"{data}: {given.description}")
            if given.note:
                say(f"note: {given.note}")
            if all(isinstance(one, Selection) for one in given.rules):
                for cells in given.columns.intervals.values():
                    warn_of_substitutes(cells, None)
            more |= {
                "cluster": cluster,
                "weights": weights,
                "penalty": penalty,
                "strength": strength,
            }
            found = _learn(given, more)
    content = found.to_dict(level)
    outputs.deliver(
        lambda: show(as_json_text(content) if as_json else found.summary(level)),
        output=json_writer(content),
        save=found.save,
        report=lambda path: found.report(path, call=command_line(context)),
    )
    if needs_a_look(found.status):
        raise typer.Exit(LOOK)


def _learn(given: RegressionInput, more: dict[str, Any]) -> RegressionFit:
    """Fit what was read; errors name the lines of the file."""
    with rows_told(given.rows, given.lines, given.labels):
        return learn(
            given.model,
            given.columns,
            given.rules or None,
            kinds=given.kinds,
            missing_at_random=given.missing_at_random,
            progress=True,
            **more,
        )
