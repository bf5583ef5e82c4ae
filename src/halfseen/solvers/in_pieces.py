"""A table in pieces: passes over them that collect moments, or leave rows with an engine.

One pass reads every piece, checks it against the rule and collects the moments of pairs, which is all
that ``truncation`` and ``pairwise`` need. For ``full`` a second one leaves each piece, standardised,
with an engine.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.data.parquet_blocks import describe_row
from halfseen.data.row_blocks import RowBlocks
from halfseen.data.transforms import (
    BoxCox,
    Transform,
    read_transforms,
)
from halfseen.errors import InputError
from halfseen.missingness.base import Missingness
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import everything
from halfseen.scaling.engine import Engine
from halfseen.solvers.full_information.problem import (
    Overview,
    read_mask,
    units_of,
    warn_of_silence,
)
from halfseen.solvers.full_information.rows import KeptRows
from halfseen.solvers.full_information.shards import count
from halfseen.solvers.loop import progress_bar
from halfseen.solvers.piece import Place, Reader, Survey, shard, survey_piece
from halfseen.solvers.prepare import warn_of_piles

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


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
