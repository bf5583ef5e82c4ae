"""``halfseen regress`` of Parquet files that are read in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from halfseen.cli.inputs import names_only, read_rule, refuse_of_pieces
from halfseen.cli.options import Blank, TableOptions
from halfseen.cli.outputs import say
from halfseen.cli.regression_inputs import as_in_column, read_kinds, read_model, read_selections
from halfseen.data.formulas import outcome_names
from halfseen.data.mixed_blocks import columns_of_piece
from halfseen.data.parquet_blocks import scan_mixed
from halfseen.errors import InputError
from halfseen.missingness import rules
from halfseen.missingness.base import Missingness
from halfseen.regression import RegressionFit
from halfseen.regression import regress as learn
from halfseen.regression.in_pieces import columns_needed
from halfseen.scaling.cluster import connected


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
        pieces = f"{len(blocks)} piece{'' if len(blocks) == 1 else 's'}"
        say(f"{wanted.data}: {blocks.shape[0]:,} rows, read in {pieces}")
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
    rule: Missingness | None
    if wanted.limits is None:
        rule = rules(wanted.seen) if wanted.seen else None
    else:
        rule = read_rule(wanted, names_only(outcomes))
    if wanted.blank is Blank.RANDOM:
        # Every hidden cell of numbers is blank, so that the rule has nothing left to say.
        return None
    if wanted.blank is Blank.HIDDEN and rule is None:
        raise InputError("--blank hidden says that a rule hid the blank cells; state it by --seen.")
    return rule
