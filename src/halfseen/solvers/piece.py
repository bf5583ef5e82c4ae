"""What is done with one piece of a table, by whichever process has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.data.table import Table, check_finite
from halfseen.data.transforms import Transform, transform_table
from halfseen.errors import InputError
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.scaling.engine import Arrays
from halfseen.solvers.full_information.problem import read_mask, standardise
from halfseen.solvers.full_information.shards import to_arrays
from halfseen.solvers.loss import cells_at_risk, with_losses
from halfseen.solvers.prepared_table import check_suspects, limits_reached
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
        modelled = rule.transformed(self.transforms, self.names)
        assert isinstance(table, Table)
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
        moments = PairMoments.of_chunk(values, reader.names, like)
        moments.check_range(values)
        if place.at_random is not None:
            read_mask(place.at_random, values, reader.names)
        if isinstance(rule, ColumnwiseMissingness):
            check_suspects(values, moments, rule)
        else:
            rule.check(values, reader.names, place.at_random)
    return Survey(moments, limits_reached(values, rule))


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


@contextmanager
def rows_from(first: int) -> Iterator[None]:
    """Count the row that an error names from the first of the table, not of its piece."""
    try:
        yield
    except InputError as error:
        error.count_from(first)
        raise
