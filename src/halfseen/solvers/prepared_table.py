"""A table that was read, with the rule for its columns: read once, shared by start and solver.

And what a solver states that it needs of one, so that the door can match it with what came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.data.table import Table, TableKind, check_names, frame_kind, read_table, with_names
from halfseen.errors import InputError
from halfseen.missingness.base import ColumnwiseMissingness, Missingness, RuleKind
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import everything
from halfseen.solvers.result import Source

# Each cell by its own value; no rule is one that shows everything.
OWN_VALUE = frozenset({RuleKind.BY_COLUMN, RuleKind.BY_ROW})
# What is seen through moments of pairs: pieces become moments, which do not tell rows with different
# limits apart.
BY_PAIRS = {
    TableKind.VALUES: OWN_VALUE,
    TableKind.MOMENTS: frozenset({RuleKind.BY_COLUMN}),
    TableKind.PIECES: frozenset({RuleKind.BY_COLUMN}),
}


@dataclass(frozen=True)
class Needs:
    """Which tables a solver takes, and under which rules.

    Attributes
    ----------
    takes : mapping
        For each kind of table the kinds of rules. Kinds of tables that are not there are not taken.
    believes : bool
        Whether it believes that a hidden cell was hidden by the rule; else it learns nothing from it.
    refuses : mapping
        What it says itself to a kind of table under a kind of rule, in place of the door's sentence.
    """

    takes: Mapping[TableKind, Set[RuleKind]]
    believes: bool = True
    refuses: Mapping[tuple[TableKind, RuleKind], str] = field(default_factory=dict)

    def met_by(self, table: TableKind, rule: RuleKind) -> bool:
        """Whether it takes such a table under such a rule."""
        return rule in self.takes.get(table, ())


def need_rows(what: str) -> str:
    """Say that moments are not enough."""
    return f"{what} the rows themselves, but moments were passed. Pass the table."


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table and its rule, as a solver works on them.

    Attributes
    ----------
    table : Table, IntervalData or PairMoments
        On the scale of the model.
    stated : Missingness or None
        The rule, matched with the columns, on the same scale; None where none was stated.
    source : Source
        What a fit remembers of them.
    n_jobs : int or None
        Threads that collect moments; they do not depend on it.
    frame : str or None
        The library of data frames that the table came from, where results are to have its shape.
    """

    table: Table | IntervalData | PairMoments
    stated: Missingness | None
    source: Source
    n_jobs: int | None = None
    frame: str | None = None

    @property
    def kind(self) -> TableKind:
        """What the table is made of."""
        return self.table.kind

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.table.names

    @cached_property
    def rule(self) -> Missingness:
        """The rule; one that shows everything where none was stated."""
        return SelfCensoring(everything) if self.stated is None else self.stated

    @property
    def as_given(self) -> NDArray[np.floating]:
        """Values, NaN where hidden, in the precision they came in; raise where there are none."""
        if isinstance(self.table, Table):
            return self.table.values
        # Which says what to do instead.
        return read_table(self.table).values

    @property
    def values(self) -> NDArray[np.float64]:
        """Values as doubles: a copy where they are not, which is not kept beside the table."""
        return np.asarray(self.as_given, dtype=np.float64)

    @cached_property
    def moments(self) -> PairMoments:
        """Moments of the seen values."""
        if isinstance(self.table, PairMoments):
            return self.table
        # Rules by column are checked against extremes in the precision that values came in.
        by_column = isinstance(self.rule, ColumnwiseMissingness)
        values = self.as_given if by_column else self.values
        return PairMoments.of_table(Table(values, self.names), self.n_jobs)


def prepared_table(
    X: Any, missingness: Any = None, n_jobs: int | None = None, fewest_rows: int = 2
) -> PreparedTable:
    """Read what a solver was given; a table that was prepared before stays as it is, with its rule."""
    if isinstance(X, PreparedTable):
        return X
    if missingness is not None and not isinstance(missingness, Missingness):
        raise InputError(
            f"missingness must be a rule such as DetectionLimits(...); got {missingness!r}."
        )
    known = isinstance(X, IntervalData | PairMoments)
    table = X if known else read_table(X, fewest_rows=fewest_rows)
    rule = None if missingness is None else missingness.for_columns(table.names)
    return PreparedTable(table, rule, Source(X, missingness, None, 0, n_jobs, {}), n_jobs)


def read_given(
    X: Any,
    missingness: Missingness | None,
    names: Sequence[str] | None,
    call: Mapping[str, Any],
    n_jobs: int | None,
) -> PreparedTable:
    """Read what came through the door, under the names that were given, if any were.

    ``call`` is what repeats the fit.
    """
    if names is not None:
        table = with_names(X, names)
    else:
        table = X if isinstance(X, IntervalData | PairMoments) else read_table(X)
    check_names(table.names)
    # What kind of rule it is may be known only when its names are.
    rule = None if missingness is None else missingness.for_columns(table.names)
    original: Any = table
    frame = frame_kind(X)
    if isinstance(table, IntervalData):
        frame = table.frame
        if rule is not None and table.is_plain:
            # Values and blank cells alone are a table with NaN, for which there are more methods.
            table = Table(table.values, table.names)
    elif frame is not None and names is None:
        original = X
    source = Source(
        table, rule, None, 0, None, {}, original=original, original_rule=missingness, call=call
    )
    return PreparedTable(table, rule, source, n_jobs, frame)
