"""Tables in pieces: what ``fit`` does where the rows are not all at hand at once.

One pass reads every piece, checks it against the rule and collects the moments of pairs, which is all
that ``truncation`` and ``pairwise`` need. For ``full`` a second one leaves each piece, standardised,
with an engine.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.data.parquet_blocks import describe_row
from halfseen.data.row_blocks import RowBlocks
from halfseen.data.table import Table, check_finite
from halfseen.data.transforms import (
    BoxCox,
    Transform,
    read_transforms,
    transform_rule,
    transform_table,
)
from halfseen.errors import InputError
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import everything
from halfseen.scaling.engine import Arrays, Engine
from halfseen.solvers.full_information.problem import (
    Overview,
    read_mask,
    standardise,
    units_of,
    warn_of_silence,
)
from halfseen.solvers.full_information.rows import KeptRows
from halfseen.solvers.full_information.shards import count, to_arrays
from halfseen.solvers.loop import progress_bar
from halfseen.solvers.loss import cells_at_risk, with_losses
from halfseen.solvers.prepare import (
    check_suspects,
    limits_reached,
    warn_of_piles,
)
from halfseen.solvers.scales import onto_limits

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Place(NamedTuple):
    """What is known of a piece before it is read.

    Attributes
    ----------
    first_row : int
        Where it begins.
    rows : int
        How many it has.
    rule : Missingness or None
        Its own rule, where limits differ by row.
    at_random : boolean array or None
        Its cells that are simply missing.
    """

    first_row: int
    rows: int
    rule: Missingness | None
    at_random: Mask | None


@dataclass(frozen=True, eq=False)
class Reader:
    """How a piece becomes values on the scale of the model.

    Attributes
    ----------
    names : tuple of str
    rule : Missingness
        In original units.
    transforms : tuple of Transform or None
    lost : array or None
        Share of the values of each column that were lost beside the rule.
    """

    names: tuple[str, ...]
    rule: Missingness
    transforms: tuple[Transform, ...] | None
    lost: Floats | None = None

    def __call__(
        self, piece: Any, place: Place, check: bool
    ) -> tuple[NDArray[np.floating], Missingness]:
        """Return the values of a piece, and the rule for them.

        With ``check`` values that the rule would hide are looked for before they are transformed.
        """
        rule = self.rule if place.rule is None else place.rule
        values = piece.read()
        if values.shape != (place.rows, len(self.names)):
            raise InputError(
                f"a piece of the table that begins here has shape {values.shape}, but "
                f"{(place.rows, len(self.names))} was told. Chunks of Dask must have the sizes that "
                "they tell: X.compute_chunk_sizes() finds them.",
                0,
            )
        if self.transforms is None:
            return values, rule
        if check:
            check_finite(values, self.names)
            rule.check(values, self.names, place.at_random)
        table = transform_table(Table(values, self.names), self.transforms)
        modelled = transform_rule(rule, self.transforms, self.names)
        assert isinstance(table, Table)
        assert modelled is not None
        values = np.array(table.values, dtype=float)
        onto_limits(values, modelled)
        return values, modelled


class Survey(NamedTuple):
    """What one pass over pieces finds: moments, and how many values lie on limits of the rule.

    ``piled`` has a row for each column: values on its lower and its upper limit, and the most of any
    other value.
    """

    moments: PairMoments
    piled: Floats

    def __add__(self, other: Survey) -> Survey:  # type: ignore[override]
        return Survey(self.moments.merge(other.moments), self.piled + other.piled)


def survey_piece(piece: Any, place: Place, reader: Reader, like: PairMoments | None) -> Survey:
    """Read a piece, check it, and collect its moments, in the units of other moments."""
    with rows_from(place.first_row):
        values, rule = reader(piece, place, check=True)
        by_column = values.flags.f_contiguous and not values.flags.c_contiguous
        moments = PairMoments.of_chunk(values, reader.names, like, by_column)
        moments.check_range(values)
        if place.at_random is not None:
            read_mask(place.at_random, values, reader.names)
        if isinstance(rule, ColumnwiseMissingness):
            check_suspects(values, moments, rule)
        else:
            rule.check(values, reader.names, place.at_random)
    return Survey(moments, limits_reached(values, moments, rule))


def shard(piece: Any, place: Place, reader: Reader, centre: Floats, scale: Floats) -> Arrays:
    """Read a piece, and return it standardised, as arrays that an engine can keep."""
    with rows_from(place.first_row):
        values, rule = reader(piece, place, check=False)
        values = np.asarray(values, dtype=np.float64)
        problem = standardise(values, reader.names, rule, place.at_random, centre, scale)
        if reader.lost is not None:
            risk = cells_at_risk(problem, values, rule, place.at_random)
            problem = with_losses(problem, risk, reader.lost)
    return to_arrays(problem, place.first_row)


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
        missingness: Missingness | None,
        at_random: Any,
        transforms: Any,
        engine: Engine,
        progress: bool = False,
        lost: Floats | None = None,
    ) -> InPieces:
        """Read the rule, the scales and the mask."""
        if blocks.shape[0] < 2:
            raise InputError(f"at least 2 rows are needed; got {blocks.shape[0]}.")
        rule = SelfCensoring(everything) if missingness is None else missingness
        rule = rule.for_columns(blocks.names)
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
        return cls(blocks, reader, tuple(places), engine, missingness, progress)

    @property
    def rule(self) -> Missingness:
        """The rule on the scale of the model."""
        if self.reader.transforms is None:
            return self.reader.rule
        rule = transform_rule(self.reader.rule, self.reader.transforms, self.reader.names)
        assert rule is not None
        return rule

    def moments(self) -> PairMoments:
        """Read every piece once; return the moments of all."""
        with self._told_by_file(), self._shown("reading"):
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
        with self._told_by_file(), self._shown("laying out"):
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
    def _shown(self, title: str) -> Iterator[None]:
        """Show a bar while pieces are read."""
        with progress_bar(title, len(self.blocks), self.progress) as advance:
            self.engine.tick = advance
            try:
                yield
            finally:
                self.engine.tick = None

    @contextmanager
    def _told_by_file(self) -> Iterator[None]:
        """Add the file, and the row in it, to the row that an error names."""
        try:
            yield
        except InputError as error:
            told = "" if error.row is None else describe_row(self.blocks, error.row)
            if told != error.where:
                error.where = f"{told} ({error.where} of all)"
            raise


@contextmanager
def rows_from(first: int) -> Iterator[None]:
    """Count the row that an error names from the first of the table, not of its piece."""
    try:
        yield
    except InputError as error:
        error.count_from(first)
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
