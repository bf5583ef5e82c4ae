"""The door for tables in pieces, which are never held whole: moments of them, or rows with an engine.

One pass reads every piece, checks it against the rule and collects the moments of pairs, which is all
that ``truncation`` and ``pairwise`` need. For ``full`` a second one leaves each piece, standardised,
with an engine.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.data.parquet_blocks import describe_row
from halfseen.data.table import RowBlocks, TableKind, check_names, frame_kind
from halfseen.data.transforms import BoxCox, Transform, read_transforms
from halfseen.errors import InputError, argument
from halfseen.missingness.base import Missingness
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import everything
from halfseen.scaling.engine import Engine
from halfseen.scaling.sources import held_table
from halfseen.solvers.full_information.checkpoint import check_checkpoint
from halfseen.solvers.full_information.problem import Overview, read_mask, units_of, warn_of_silence
from halfseen.solvers.full_information.rows import KeptRows
from halfseen.solvers.full_information.shards import count
from halfseen.solvers.loop import progress_bar
from halfseen.solvers.loss import Loss, read_loss
from halfseen.solvers.methods import choose
from halfseen.solvers.piece import Place, Reader, Survey, shard, survey_piece
from halfseen.solvers.prepared_table import warn_of_piles
from halfseen.solvers.result import Estimate, Source

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
# Options that say where a fit is kept on its way, not what it is.
CHECKPOINTS = ("checkpoint", "every", "resume")


@dataclass(frozen=True, eq=False)
class InPieces:
    """A table in pieces, how to read it, and who does the work."""

    blocks: RowBlocks
    reader: Reader
    places: tuple[Place, ...]
    engine: Engine
    stated: Missingness | None
    progress: bool = False

    @classmethod
    def prepare(
        cls,
        blocks: RowBlocks,
        stated: Missingness | None,
        at_random: Any,
        transforms: Any,
        engine: Engine,
        progress: bool = False,
        lost: Floats | None = None,
    ) -> InPieces:
        """Read the scales and the mask; the rule was matched with the columns."""
        if blocks.shape[0] < 2:
            raise InputError(f"at least 2 rows are needed; got {blocks.shape[0]}.")
        rule = SelfCensoring(everything) if stated is None else stated
        scales = None if transforms is None else _scales(transforms, blocks.names)
        rows = [
            slice(first, first + size)
            for first, size in zip(blocks.first_rows, blocks.sizes, strict=True)
        ]
        rules = [rule.for_rows(part, blocks.shape[0]) for part in rows]
        masks = _masks(at_random, blocks, rows)
        places = (
            Place(part.start, part.stop - part.start, None if own is rule else own, mask)
            for part, own, mask in zip(rows, rules, masks, strict=True)
        )
        reader = Reader(blocks.names, rule, scales, lost)
        return cls(blocks, reader, tuple(places), engine, stated, progress)

    @property
    def rule(self) -> Missingness:
        """The rule on the scale of the model."""
        if self.reader.transforms is None:
            return self.reader.rule
        return self.reader.rule.transformed(self.reader.transforms, self.reader.names)

    def moments(self) -> PairMoments:
        """Read every piece once; return the moments of all."""
        with shown(self.engine, "reading", self.blocks, self.progress):
            pieces, places = self.blocks.pieces, self.places
            # All in the units of the first, so that they are merged by adding.
            first = self._stream(pieces[:1], places[:1], None)
            found = self._stream(pieces, places, first.moments)
        warn_of_piles(found.piled, self.blocks.names, self.reader.rule)
        return found.moments

    def _stream(
        self, pieces: Sequence[Any], places: Sequence[Place], like: PairMoments | None
    ) -> Survey:
        found = self.engine.stream(
            survey_piece, pieces, places, self.reader, like, combine=operator.add
        )
        assert isinstance(found, Survey)
        return found

    def rows(self) -> KeptRows:
        """Read every piece twice; return rows that the engine keeps."""
        moments = self.moments()
        centre, scale = units_of(moments)
        with shown(self.engine, "laying out", self.blocks, self.progress):
            fixed = self.engine.make(
                shard, self.blocks.pieces, self.places, self.reader, centre, scale
            )
        census = self.engine.total(count, fixed, combine=operator.add)
        warn_of_silence(census.silent, self.stated, self.blocks.names)
        overview = Overview(
            self.blocks.shape,
            centre,
            scale,
            self.blocks.names,
            self.rule,
            any(place.at_random is not None for place in self.places),
            census.hidden,
            census.convex,
            census.bound,
            census.sampled,
            census.several,
        )
        return KeptRows(overview, self.engine, fixed, moments)


@contextmanager
def shown(engine: Engine, title: str, blocks: RowBlocks, progress: bool) -> Iterator[None]:
    """Show a bar while pieces are read, and say in errors in which file a row is."""
    with told_by_file(blocks), progress_bar(title, len(blocks), progress) as advance:
        engine.tick = advance
        try:
            yield
        finally:
            engine.tick = None


@contextmanager
def told_by_file(blocks: RowBlocks) -> Iterator[None]:
    """Add the file, and the row in it, to the row that an error names."""
    try:
        yield
    except InputError as error:
        told = "" if error.row is None else describe_row(blocks, error.row)
        if told != error.where:
            error.where = f"{told} ({error.where} of all)"
        raise


def _scales(given: Any, names: tuple[str, ...]) -> tuple[Transform, ...]:
    transforms = read_transforms(given, names)
    for name, scale in zip(names, transforms, strict=True):
        if isinstance(scale, BoxCox) and scale.power is None:
            raise InputError(
                f"column {name}: the power of {scale.name} is learned from a table in memory. Learn it "
                "from some rows, and state it: 'boxcox(0.3)'."
            )
    return transforms


def _masks(given: Any, blocks: RowBlocks, rows: Sequence[slice]) -> list[Mask | None]:
    if given is None:
        return [None] * len(rows)
    nothing_seen = np.broadcast_to(np.nan, blocks.shape)
    mask = read_mask(given, nothing_seen, blocks.names)
    assert mask is not None
    return [mask[part] for part in rows]


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
