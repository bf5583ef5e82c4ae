"""What is done with one piece of the table of a regression, by whichever process has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.coding import Levels
from halfseen.data.design import Design, Summary, check_sizes
from halfseen.data.factors import Factor
from halfseen.data.moments import PairMoments
from halfseen.data.plain_columns import (
    HeldColumns,
    Level,
    PlainColumn,
    PlainColumns,
    columns_of_piece,
)
from halfseen.errors import InputError
from halfseen.missingness.base import Missingness
from halfseen.missingness.selection import Selection
from halfseen.scaling.engine import Arrays
from halfseen.solvers.full_information.shards import to_arrays
from halfseen.solvers.piece import Place, rows_from
from halfseen.solvers.prepared_table import limits_reached
from halfseen.solvers.regression.layout import Whitening, with_covariates
from halfseen.solvers.regression.outcomes import Carried, index_of, kind_as_said, read_outcomes

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Categories of an outcome; one with more values has no categories.
MOST_CATEGORIES = 1000
# Rows that show what columns hold.
HEAD = 50


@dataclass(frozen=True, eq=False)
class Reader:
    """How a piece becomes outcomes and regressors.

    Attributes
    ----------
    names : tuple of str
        Of the columns of a piece that has none.
    outcomes : tuple of str
    selections : tuple of Selection
        By the places of outcomes. The index of one need not be a column.
    carried : tuple of str
        Columns that a rule compares outcomes with.
    measured : tuple of str
        Outcomes that are numbers; the others are latent.
    kinds : dict
        "continuous", or the categories, of each outcome.
    design : Design or None
        How regressors are made, without rows.
    """

    names: tuple[str, ...]
    outcomes: tuple[str, ...]
    selections: tuple[Selection, ...]
    carried: tuple[str, ...]
    measured: tuple[str, ...] = ()
    kinds: Mapping[str, Any] = field(default_factory=dict)
    design: Design | None = None

    def columns(self, piece: Any, place: Place) -> PlainColumns:
        """Read the columns of a piece."""
        columns = columns_of_piece(piece, self.names)
        if columns.rows != place.rows:
            raise InputError(
                f"a piece of the table that begins here has {columns.rows} rows, but {place.rows} were "
                "told. Chunks of Dask must have the sizes that they tell.",
                0,
            )
        return columns

    def cells(self, columns: PlainColumns) -> dict[str, Any]:
        """Return the outcomes as they came; None for the index of a selection that is no column."""
        return {name: columns.get(name) for name in self.outcomes}

    def carried_values(self, columns: PlainColumns) -> Floats:
        """Return the columns that a rule compares outcomes with."""
        out = np.empty((columns.rows, len(self.carried)))
        for place, name in enumerate(self.carried):
            column = columns.column(name)
            wrong = (
                np.flatnonzero(~np.isfinite(column.values))
                if column.is_numbers
                else np.zeros(1, int)
            )
            if wrong.size:
                raise InputError(
                    "the rule compares outcomes with this column, which must be a number in every row. "
                    "Make it an outcome of its own, or leave rows out in which it is not known.",
                    int(wrong[0]),
                    name,
                )
            out[:, place] = column.values
        return out

    def regressors(self, columns: PlainColumns) -> Floats:
        """Return the regressors of all equations, and the columns that rules alone speak of."""
        assert self.design is not None
        W = self.design.matrix_for(columns)
        check_sizes(W, self.design.terms)
        return np.hstack([W, self.carried_values(columns)])


def head_of(piece: Any, place: Place, reader: Reader) -> HeldColumns:
    """Return the first rows of a piece."""
    with rows_from(place.first_row):
        columns = reader.columns(piece, place)
        own = [columns.column(name) for name in columns.names]
    rows = min(HEAD, columns.rows)
    return HeldColumns(tuple(one._replace(values=np.array(one.values[:rows])) for one in own), rows)


def levels_of(piece: Any, place: Place, reader: Reader, factors: Sequence[Factor]) -> Levels:
    """Return the categories that a piece has."""
    with rows_from(place.first_row):
        return Levels.of(reader.columns(piece, place), factors)


class Shown(NamedTuple):
    """The values of a latent outcome, how often each comes, and the categories of its column."""

    counts: Counter[Any]
    declared: tuple[Level, ...] = ()
    ordered: bool = True

    @classmethod
    def of(cls, column: PlainColumn) -> Shown:
        """Count the values of a column."""
        values = column.values
        if values.dtype.kind == "f":
            known, counts = np.unique(values[~np.isnan(values)], return_counts=True)
            few = Counter(dict(zip(known.tolist(), counts.tolist(), strict=True)))
        else:
            few = Counter(value for value in values.tolist() if value is not None)
        ordered = column.levels is None or column.ordered
        return cls(few, column.levels or (), ordered)._checked(column.name)

    def _checked(self, name: str) -> Shown:
        if len(self.counts) > MOST_CATEGORIES:
            raise InputError(
                f"{name} has more than {MOST_CATEGORIES} values; an outcome that is binary or ordered "
                "has few."
            )
        return self

    def __add__(self, other: Shown) -> Shown:  # type: ignore[override]
        return Shown(
            self.counts + other.counts,
            tuple(dict.fromkeys([*self.declared, *other.declared])),
            self.ordered and other.ordered,
        )


class Survey(NamedTuple):
    """What a pass over pieces finds of outcomes and regressors.

    Attributes
    ----------
    moments : PairMoments or None
        Of the outcomes that are numbers, if there are some, and the columns that rules speak of.
    piled : array
        Of all outcomes and these columns, values on limits; see ``limits_reached``.
    ones : boolean array
        Which of these hold nothing but 0 and 1.
    shown : tuple of Shown
        Of the latent outcomes.
    regressors : Summary
        Of the constant and the regressors.
    """

    moments: PairMoments | None
    piled: Floats
    ones: Mask
    shown: tuple[Shown, ...]
    regressors: Summary

    def __add__(self, other: Survey) -> Survey:  # type: ignore[override]
        moments = self.moments
        if moments is not None and other.moments is not None:
            moments = moments.merge(other.moments)
        return Survey(
            moments,
            self.piled + other.piled,
            self.ones & other.ones,
            tuple(one + more for one, more in zip(self.shown, other.shown, strict=True)),
            self.regressors + other.regressors,
        )


def survey_piece(piece: Any, place: Place, reader: Reader) -> Survey:
    """Read a piece, and look at its outcomes and regressors."""
    with rows_from(place.first_row):
        columns = reader.columns(piece, place)
        W = reader.regressors(columns)
        numbers, moments = _numbers(reader, columns), None
        if numbers.shape[1]:
            moments = PairMoments.of_chunk(numbers, (*reader.measured, *reader.carried))
            moments.check_range(numbers)
        piled = _piled(reader, numbers, place.rule)
        ones = np.all(np.isnan(numbers) | np.isin(numbers, (0.0, 1.0)), axis=0)
        shown = tuple(
            _shown(reader, columns, name) for name in reader.outcomes if name not in reader.measured
        )
    constant = np.column_stack([np.ones(len(W)), W])
    return Survey(moments, piled, ones, shown, Summary.of(constant))


def _numbers(reader: Reader, columns: PlainColumns) -> Floats:
    """Return the outcomes that are numbers, and the columns that rules speak of."""
    out = np.empty((columns.rows, len(reader.measured)))
    for place, name in enumerate(reader.measured):
        column = columns.column(name)
        if not column.is_numbers:
            row, value = next((k, v) for k, v in enumerate(column.values) if v is not None)
            kind = "binary" if isinstance(value, bool) else ["low", "high"]
            raise InputError(
                f"the cell holds {value!r}, but the first rows hold numbers, or nothing. Say what the "
                f"outcome is, as in {kind_as_said(name, kind)}.",
                row,
                name,
            )
        out[:, place] = column.values
    return np.hstack([out, reader.carried_values(columns)])


def _piled(reader: Reader, numbers: Floats, rule: Missingness | None) -> Floats:
    """Count the values that lie on limits, in the rule's order of columns."""
    names = [*reader.outcomes, *reader.carried]
    values = np.full((len(numbers), len(names)), np.nan)
    values[:, [names.index(one) for one in (*reader.measured, *reader.carried)]] = numbers
    return limits_reached(values, rule)


def _shown(reader: Reader, columns: PlainColumns, name: str) -> Shown:
    """Count the values of a latent outcome; of an index that no column shows, how often it selects."""
    if name in columns:
        return Shown.of(columns.column(name))
    codes = index_of(name, reader.selections, reader.cells(columns), [0.0, 1.0]).lower
    return Shown.of(PlainColumn(name, codes))


class Layout(NamedTuple):
    """How rows are laid out: units of outcomes, cut points, and what whitens regressors."""

    units: tuple[Floats, Floats]
    cuts: dict[str, Floats]
    whitening: Whitening


def shard(piece: Any, place: Place, reader: Reader, layout: Layout) -> Arrays:
    """Read a piece, and return its rows as the engine wants them, as arrays that can be kept."""
    with rows_from(place.first_row):
        columns = reader.columns(piece, place)
        W = reader.regressors(columns)
        carried = (
            Carried(reader.carried, reader.carried_values(columns)) if reader.carried else None
        )
        # By name: places would be matched with names a second time.
        named = [
            Selection([reader.outcomes[k] for k in s.places], reader.outcomes[s.index], s.when)
            for s in reader.selections
        ]
        given = [*named, *([] if place.rule is None else [place.rule])]
        outcomes = read_outcomes(
            reader.cells(columns), given, reader.kinds, place.at_random, carried, layout.cuts, True
        )
        problem = outcomes.problem(layout.units)
        whitening = layout.whitening
        problem = with_covariates(
            problem, whitening.covariates(W), whitening.T, len(reader.outcomes)
        )
    return to_arrays(problem, place.first_row) | {"blank": outcomes.unexplained.sum(axis=0)}


def blank_of(fixed: Arrays) -> NDArray[Any]:
    """Return how many blank cells of a piece nothing explains."""
    return fixed["blank"]
