"""A table that was read, with the rule for its columns: read once, checked, shared by start and solver.

And what a solver states that it needs of one, so that the door can match it with what came; and what
``truncation``, ``pairwise`` and ``truncation_psgd`` do first: read, check, describe (``prepare``).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.data.table import Table, TableKind, check_names, frame_kind, read_table, with_names
from halfseen.errors import (
    ApproximationWarning,
    ContradictionError,
    InputError,
    NotIdentifiedError,
    spelled,
    warn,
)
from halfseen.missingness.base import ColumnwiseMissingness, Missingness, RuleKind
from halfseen.missingness.detection_limits import DetectionLimits
from halfseen.missingness.holes import scan_of
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import Interval, everything
from halfseen.solvers.columns import Columns, prepare_columns
from halfseen.solvers.result import Note, Source, Status, name_some

# Each cell by its own value; no rule is one that shows everything.
OWN_VALUE = frozenset({RuleKind.BY_COLUMN, RuleKind.BY_ROW})
# What is seen through moments of pairs: pieces become moments, which do not tell rows with different
# limits apart.
BY_PAIRS = {
    TableKind.VALUES: OWN_VALUE,
    TableKind.MOMENTS: frozenset({RuleKind.BY_COLUMN}),
    TableKind.PIECES: frozenset({RuleKind.BY_COLUMN}),
}
# Fewer joint rows than this leave a correlation with a standard error of a third or more.
FEW_JOINT_ROWS = 10
# A limit that is taken so often, and so many times more often than any other value, stands for the
# values beyond it; rounding alone makes ties everywhere.
FEWEST_PILED, PILED_RATIO = 5, 3


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


@dataclass(frozen=True)
class ByColumn:
    """A table that was read and checked, with what is known of each column."""

    moments: PairMoments
    columns: Columns
    missingness: ColumnwiseMissingness
    mask: NDArray[np.bool_] | None
    values: NDArray[np.floating] | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.moments.names


def prepare(
    X: Any,
    missingness: Missingness | None,
    method: str,
    n_jobs: int | None = None,
    integrate: bool = True,
) -> ByColumn:
    """Read a table (or moments that were collected before) and check it against the rule.

    Without ``integrate`` sets are not made ready for integration: a membership oracle is enough.
    """
    data = prepared_table(X, missingness, n_jobs)
    rule = data.rule
    if not isinstance(rule, ColumnwiseMissingness):
        raise InputError(
            f"{method} needs a rule that hides each cell by its own value (SelfCensoring, "
            f"DetectionLimits); got {type(rule).__name__}."
        )
    if data.kind is TableKind.MOMENTS:
        if rule.varies_by_row:
            raise InputError(need_rows("limits that differ by row need"))
        _check_extremes(data.moments, rule)
    else:
        read_moments(data)
    out = by_column(data, integrate)
    if data.stated is None and (np.diag(out.moments.counts) < out.moments.rows).any():
        warn(
            "no rule is stated, so hidden cells are taken to be missing at random. If values are "
            "hidden because of what they are, state the rule."
        )
    return out


def by_column(data: PreparedTable, integrate: bool = True) -> ByColumn:
    """Describe the columns of a table that was found to agree with its rule."""
    rule, moments = data.rule, data.moments
    assert isinstance(rule, ColumnwiseMissingness)
    values = None if data.kind is TableKind.MOMENTS else data.as_given
    mask = ~np.isnan(values) if values is not None and rule.varies_by_row else None
    columns = prepare_columns(moments, rule if integrate else SelfCensoring(everything), mask)
    _check_pairs(moments)
    return ByColumn(moments, columns, rule, mask, values)


def read_moments(data: PreparedTable) -> PairMoments:
    """Collect moments of a table, and check it against its rule, which is one by column."""
    rule, values, moments = data.rule, data.as_given, data.moments
    assert isinstance(rule, ColumnwiseMissingness)
    check_suspects(values, moments, rule)
    _warn_of_habits(values, moments, rule)
    return moments


def check_suspects(
    values: NDArray[np.floating], moments: PairMoments, rule: ColumnwiseMissingness
) -> None:
    """Check values against a rule, where their moments do not already show that they agree with it."""
    for i in _suspect_columns(moments, rule):
        rule.check_column(values[:, i], int(i), moments.names[i])


def _warn_of_habits(
    values: NDArray[np.floating], moments: PairMoments, rule: ColumnwiseMissingness
) -> None:
    """Warn of two habits of laboratories that make a rule untrue."""
    if isinstance(rule, DetectionLimits) and rule.varies_by_row:
        limited = np.isfinite(rule.lower) | np.isfinite(rule.upper)
        hidden = np.isnan(values)
        only = (limited == hidden).all(axis=0) & hidden.any(axis=0) & ~hidden.all(axis=0)
        if only.any():
            names = [moments.names[i] for i in np.flatnonzero(only)]
            warn(
                f"limits are given only where values are hidden, in column {name_some(names)}. "
                "pairwise and truncation need the limit that a seen value was compared with too, or "
                "they come out wrong; full does not."
            )
        return
    warn_of_piles(limits_reached(values, rule), moments.names, rule)


def limits_reached(values: NDArray[np.floating], rule: Missingness | None) -> NDArray[np.float64]:
    """Count, for each column, values on its lower and upper limit, and the most of any other value.

    Of shape (d, 4), the last two for either limit. Where no value lies on a limit nothing is counted.
    """
    out = np.zeros((values.shape[1], 4))
    if not isinstance(rule, ColumnwiseMissingness) or rule.varies_by_row:
        return out
    for i, column in enumerate(values.T):
        seen_set = rule.column_rule(i).seen_set
        if not isinstance(seen_set, Interval):
            continue
        for side, end in enumerate((seen_set.lower, seen_set.upper)):
            if np.isfinite(end) and (column == end).any():
                found, counts = np.unique(column[~np.isnan(column)], return_counts=True)
                out[i, side] = counts[found == end].sum()
                out[i, 2 + side] = counts[found != end].max(initial=1)
    return out


def warn_of_piles(
    reached: NDArray[np.float64], names: Sequence[str], rule: Missingness | None
) -> None:
    """Warn of values that seem to stand for those beyond their limit; see ``limits_reached``."""
    piled = []
    for i, side in np.argwhere(reached[:, :2] >= FEWEST_PILED):
        count, usual = reached[i, side], reached[i, 2 + side]
        if count > PILED_RATIO * usual:
            assert isinstance(rule, ColumnwiseMissingness)
            seen_set = rule.column_rule(int(i)).seen_set
            assert isinstance(seen_set, Interval)
            end = seen_set.upper if side else seen_set.lower
            piled.append(f"{names[int(i)]} ({count:.0f} times {end:g})")
    if piled:
        remedy = spelled(
            "set them to NaN, or read them with IntervalData.saturated(rule)", "pass --saturated"
        )
        warn(
            f"values lie exactly on the limit: {name_some(piled)}. If they stand for values beyond it, "
            f"{remedy}."
        )


def hidden_by(rule: Missingness, data: IntervalData) -> NDArray[np.bool_]:
    """Mask of the cells that the rule hides if they are hidden: the others may be anything."""
    if rule.kind is RuleKind.WHOLE_ROWS:
        return np.ones(data.shape, dtype=bool)
    values = data.values
    # A rule that does not fit the table is refused before it is asked for holes.
    rule.check(values, data.names, ~data.seen)
    with warnings.catch_warnings():
        # The solver will say it again, if it looks for the ends of sets at all.
        warnings.simplefilter("ignore", ApproximationWarning)
        holes = rule.holes(values, scan_of(values))
    free = holes.whole_lines[np.maximum(holes.index, 0)]
    if holes.inequalities is not None:
        free[:, holes.inequalities.owner] = False
    return ~free


def _suspect_columns(moments: PairMoments, rule: ColumnwiseMissingness) -> NDArray[np.intp]:
    """Columns whose extremes do not already show that every seen value lies in its set."""
    if rule.varies_by_row:
        return np.arange(moments.width)
    fine = np.zeros(moments.width, dtype=bool)
    for i, (least, most) in enumerate(zip(moments.smallest, moments.largest, strict=True)):
        seen_set = rule.column_rule(i).seen_set
        if isinstance(seen_set, Interval):
            inside = seen_set.lower < least and most < seen_set.upper
            fine[i] = inside or seen_set.contains([least, most]).all()
    return np.flatnonzero(~fine & (np.diag(moments.counts) > 0))


def _check_extremes(moments: PairMoments, rule: ColumnwiseMissingness) -> None:
    for i in _suspect_columns(moments, rule):
        seen_set = rule.column_rule(i).seen_set
        assert seen_set is not None
        for value in (moments.smallest[i], moments.largest[i]):
            if not seen_set.contains(value):
                raise ContradictionError(
                    f"column {moments.names[i]}: the value {value:.12g} was seen, but the rule "
                    f"shows only {seen_set!r}. Correct the rule or the data."
                )


def _check_pairs(moments: PairMoments) -> None:
    i, j = np.triu_indices(moments.width, 1)
    never = np.flatnonzero(moments.counts[i, j] == 0)
    if never.size:
        pairs = [f"{moments.names[i[k]]} and {moments.names[j[k]]}" for k in never]
        raise NotIdentifiedError(
            f"never seen together in a row: {name_some(pairs)}. Their correlation cannot be "
            "learned from seen values; leave one column of the pair out, or add rows."
        )


def joint_row_notes(moments: PairMoments) -> list[Note]:
    """Note for pairs that are seen together in very few rows."""
    i, j = np.triu_indices(moments.width, 1)
    counts = moments.counts[i, j]
    few = np.flatnonzero(counts < FEW_JOINT_ROWS)
    if few.size == 0:
        return []
    few = few[np.argsort(counts[few], kind="stable")]
    pairs = [f"{moments.names[i[k]]} ~ {moments.names[j[k]]} ({counts[k]:.0f})" for k in few]
    text = f"Seen together in fewer than {FEW_JOINT_ROWS} rows: {name_some(pairs)}."
    return [Note(Status.TOO_FEW_JOINT_ROWS, text)]


def pair_names(names: tuple[str, ...], chosen: NDArray[np.bool_]) -> list[str]:
    """Names of the pairs i < j that are marked."""
    i, j = np.triu_indices(len(names), 1)
    return [f"{names[i[k]]} ~ {names[j[k]]}" for k in np.flatnonzero(chosen)]
