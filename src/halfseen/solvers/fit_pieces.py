"""The door for tables in pieces: what ``fit`` does where the rows are not all at hand at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from halfseen.data.row_blocks import RowBlocks
from halfseen.data.table import TableKind, check_names, frame_kind
from halfseen.errors import InputError, argument
from halfseen.missingness.base import Missingness
from halfseen.scaling.engine import Engine
from halfseen.scaling.sources import held_table
from halfseen.solvers.full_information.checkpoint import check_checkpoint
from halfseen.solvers.in_pieces import InPieces
from halfseen.solvers.loss import Loss, read_loss
from halfseen.solvers.methods import choose
from halfseen.solvers.result import Estimate, Source

# Options that say where a fit is kept on its way, not what it is.
CHECKPOINTS = ("checkpoint", "every", "resume")


def fit_pieces(
    blocks: RowBlocks,
    X: Any,
    missingness: Missingness | None,
    method: str,
    engine: Engine,
    transforms: Any,
    options: Mapping[str, Any],
    shared: Mapping[str, Any],
    call: Mapping[str, Any],
) -> Estimate:
    """Fit a table in pieces, where the engine has them; ``X`` is what the pieces are of."""
    check_names(blocks.names)
    rule = None if missingness is None else missingness.for_columns(blocks.names)
    chosen = choose(method, blocks.kind, rule)
    given = chosen.options(options, shared)
    at_random = given.pop("missing_at_random", None)
    said = given.pop("loss", None)
    lost = None if said is None else _known_loss(said, blocks.names, rule)
    check_checkpoint(**{name: given[name] for name in CHECKPOINTS if name in given})
    with engine:
        table = InPieces.prepare(
            blocks, rule, at_random, transforms, engine, bool(shared["progress"]),
            None if lost is None else lost.share,
        )  # fmt: skip
        stated = None if rule is None else table.rule
        if TableKind.MOMENTS in chosen.needs.takes:
            # Moments say all that it asks, so rows need not be laid out.
            result = chosen.run(table.moments(), stated, spread=engine.map, **given)
        else:
            result = chosen.run(table.rows(), stated, **given)
    held = held_table(X, blocks) if transforms is None else None
    source = replace(
        result.source or Source(None, None, None, 0, shared["n_jobs"], {}),
        X=held,
        missingness=stated,
        missing_at_random=at_random,
        # Without the pieces, which may hold memory of a cluster.
        original=replace(blocks, pieces=()) if held is None else held,
        original_rule=missingness,
        call=call,
        loss=said,
    )
    frame = None if held is None else frame_kind(X)
    return replace(
        result, source=source, transforms=table.reader.transforms, frame=frame, loss=lost
    )


def _known_loss(given: Any, names: Sequence[str], rule: Missingness | None) -> Loss:
    """Read shares of lost values, of a table in pieces."""
    asked = read_loss(given, names, rule)
    if asked.learned.any():
        raise InputError(
            "a share of lost values is learned from a table in memory. Learn it from some rows, "
            f"and state it: {argument('loss', 0.1)}."
        )
    return Loss.known(*asked)
