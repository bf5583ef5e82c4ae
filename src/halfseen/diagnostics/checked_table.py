"""The table to be diagnosed, read once: its cells, rules and scales by column, what contradicts it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.data.powers import ColumnCells
from halfseen.data.table import LARGEST_SQUARED, Table, check_finite, check_names, read_table
from halfseen.data.transforms import Identity, Transform, read_transforms
from halfseen.diagnostics.one_column import HiddenByLimits, HiddenByRule, LoneColumn, spread_ties
from halfseen.errors import ContradictionError, HalfseenWarning, InputError, spelled
from halfseen.missingness.base import ColumnRule, ColumnwiseMissingness, Missingness
from halfseen.missingness.combined import Combined
from halfseen.missingness.sets import Probability, everything
from halfseen.missingness.truncation import RowTruncation
from halfseen.solvers.full_information.problem import Problem, read_mask, read_problem

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Integers = NDArray[np.intp]

# Rows that are tested: with more, deviations are found that do not matter.
MOST_ROWS = 5000


class Contradiction(NamedTuple):
    """Something that the data show and the rule rules out.

    ``column``, ``row`` and ``value`` are None where it is the row as a whole.

    Attributes
    ----------
    column : str or None
    count : int
        How many there are.
    row : int or None
        The first of them.
    value : float or None
    text : str

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.array([[1.0], [-2.0], [np.nan], [0.5], [-1.0]])
    >>> wrong = hs.diagnose(X, hs.DetectionLimits(lower=0.0)).contradictions[0]
    >>> wrong.column, wrong.count, wrong.row, wrong.value
    ('x0', 2, 1, -2.0)
    """

    column: str | None
    count: int  # type: ignore[assignment]
    row: int | None
    value: float | None
    text: str


@dataclass(frozen=True)
class CheckedTable:
    """A table, in its own units, and what is known of its cells.

    Attributes
    ----------
    values : array of shape (n, d)
        NaN where hidden, and where a value contradicts the rule: whether the value was put in place of
        another or the limit is lower than stated, it lies where the rule hides.
    lower, upper : arrays of shape (n, d)
        What is known of each cell of a table of intervals; else the values.
    blank : boolean array of shape (n, d)
        Hidden for no modelled reason.
    split : boolean array of shape (n, d)
        Cells of a table of intervals that do not tell in which interval they lie.
    excused : boolean array of shape (n, d)
        Cells that were said to be missing at random.
    as_given : array of shape (n, d)
        Values with those that contradict the rule.
    rule : Missingness or None
    intervals : IntervalData or None
        The table itself, where it is one of intervals, without what contradicts the rule.
    contradictions : tuple of Contradiction
    broken : str or None
        Why cells cannot be looked at further.
    notes : tuple of str
        What there is to say about how blank cells were read.
    scales : tuple of Transform
        On which columns are tested.
    """

    names: tuple[str, ...]
    values: Floats
    lower: Floats
    upper: Floats
    blank: Mask
    split: Mask
    excused: Mask
    as_given: Floats
    rule: Missingness | None
    intervals: IntervalData | None
    contradictions: tuple[Contradiction, ...]
    broken: str | None
    notes: tuple[str, ...]
    scales: tuple[Transform, ...]

    def refused(self, text: str) -> CheckedTable:
        """Return the table with a contradiction that concerns it as a whole."""
        wrong = Contradiction(None, 1, None, None, text)
        return replace(self, contradictions=(*self.contradictions, wrong), broken=text)

    @cached_property
    def seen(self) -> Mask:
        """Mask of the cells whose value is known."""
        return ~np.isnan(self.values)

    @cached_property
    def hidden(self) -> Mask:
        """Mask of the cells that are hidden for a modelled reason."""
        return ~self.seen & ~self.blank

    @cached_property
    def transformed(self) -> bool:
        """Whether any column has a scale of its own."""
        return any(scale.name != "none" for scale in self.scales)

    @cached_property
    def rules(self) -> tuple[ColumnRule | None, ...]:
        """The rule of each column that is hidden by its own value alone; None of others."""
        return tuple(column_rule(self.rule, j) for j in range(len(self.names)))

    @cached_property
    def limits(self) -> tuple[tuple[Floats, Floats], ...]:
        """Distinct lower and upper limits that each column is said to have."""
        return tuple(self._stated(j) for j in range(len(self.names)))

    def _stated(self, j: int) -> tuple[Floats, Floats]:
        low, high = ends_of_rule(self.rules[j])
        if self.intervals is not None:
            split, hidden = self.split[:, j], self.hidden[:, j]
            own = hidden & ~split
            # Where cells tell their limits, the rule counts for those that do not.
            if own.any() and not (split & hidden).any():
                low, high = np.empty(0), np.empty(0)
            below, above = np.isneginf(self.lower[:, j]), np.isposinf(self.upper[:, j])
            low = np.concatenate([low, self.upper[own & below, j]])
            high = np.concatenate([high, self.lower[own & above, j]])
        return np.unique(low[np.isfinite(low)]), np.unique(high[np.isfinite(high)])

    @cached_property
    def rows(self) -> Integers:
        """Rows that are tested."""
        return tested_rows(len(self.values))

    @cached_property
    def columns(self) -> tuple[LoneColumn | str, ...]:
        """Tested cells of each column on their own; a sentence where that cannot be."""
        return tuple(self.column(j, self.rows) for j in range(len(self.names)))

    def column(self, j: int, rows: Integers, spread: bool = True) -> LoneColumn | str:
        """Return some cells of a column on their own; a sentence where that cannot be.

        Values that were rounded to the same number are ``spread``.
        """
        if isinstance(self.rule, RowTruncation):
            return "rows are shown whole or not at all"
        if self.broken is not None and self.intervals is None:
            return "the table contradicts the rule"
        keep = rows[~self.blank[rows, j]]
        hidden, split = self.hidden[keep, j], self.split[keep, j]
        if self.intervals is not None and not (split.any() and (split == hidden).all()):
            sides = f"hidden cells may lie on either side of what is shown; {_with_a_fit()}"
            return sides if split.any() else self._told_column(j, keep, spread)
        rule = self.rules[j]
        if rule is None and hidden.any():
            return f"other columns take part in hiding it; {_with_a_fit()}"
        if rule is None:
            rule = ColumnRule.of_set(everything)
        if isinstance(rule.seen_set, Probability):
            return f"chance takes part in hiding it; {_with_a_fit()}"
        if hidden.any() and rule.seen_set == everything:
            return "nothing says at which limit values were not detected"
        x = self.values[keep, j]
        shown = ~np.isnan(x)
        if spread:
            x[shown] = spread_ties(x[shown])
        centre, scale = 0.0, 1.0
        if shown.any():
            centre, scale = float(x[shown].mean()), float(x[shown].std()) or 1.0
        hiding = HiddenByRule.of(rule, keep, centre, scale)
        return LoneColumn(hiding.cells(x, shown), hiding)

    def _told_column(self, j: int, keep: Integers, spread: bool) -> LoneColumn:
        """Return a column whose cells each tell where they lie."""
        lower, upper = self.lower[keep, j], self.upper[keep, j]
        # From 0 to a limit is below the limit where nothing is less than 0.
        lower = np.where((lower <= self.scales[j].least) & (lower < upper), -np.inf, lower)
        cells = ColumnCells.from_ends(lower, upper)
        if spread:
            cells = replace(cells, values=spread_ties(cells.values))
        return LoneColumn(cells, HiddenByLimits.of(lower, upper))


def tested_rows(n: int) -> Integers:
    """Rows that are tested, spread evenly over the table."""
    return evenly(n, MOST_ROWS)


def evenly(n: int, most: int) -> Integers:
    """Return up to so many of n rows, spread evenly."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)


def column_rule(rule: Missingness | None, column: int) -> ColumnRule | None:
    """Return the rule of one column, where its own value alone decides."""
    if rule is None:
        return ColumnRule.of_set(everything)
    if isinstance(rule, ColumnwiseMissingness):
        return rule.column_rule(column)
    if isinstance(rule, Combined):
        for columns, part in rule.parts:
            if column in columns:
                return column_rule(part, columns.index(column))
        return ColumnRule.of_set(everything)
    return None


def ends_of_rule(rule: ColumnRule | None) -> tuple[Floats, Floats]:
    """Return the limits of a rule that shows one interval, for each of its groups; else none."""
    if rule is None:
        return np.empty(0), np.empty(0)
    if rule.seen_set is None:
        return rule.lower, rule.upper
    pieces = rule.seen_set.pieces
    if pieces is None or len(pieces) != 1:
        return np.empty(0), np.empty(0)
    return np.array([pieces[0].lower]), np.array([pieces[0].upper])


def in_rows(limits: Floats, rule: ColumnRule | None, n: int) -> Floats:
    """Return the limit of each row; NaN where there is none."""
    if not limits.size or rule is None:
        return np.full(n, np.nan)
    out = np.full(n, limits[0]) if rule.group is None else limits[rule.group]
    return np.where(np.isfinite(out), out, np.nan)


def read(
    X: Any, missingness: Missingness | None, at_random: Any = None, transforms: Any = None
) -> CheckedTable:
    """Read a table and collect what contradicts its rule."""
    if missingness is not None and not isinstance(missingness, Missingness):
        raise InputError(
            f"missingness must be a rule such as DetectionLimits(...); got {missingness!r}."
        )
    if isinstance(X, PairMoments):
        raise InputError("diagnose needs the rows themselves, but moments were passed.")
    # Values and blank cells alone are a table with NaN.
    data = X if isinstance(X, IntervalData) and (missingness is None or not X.is_plain) else None
    if data is not None and len(data) < 2:
        raise InputError(f"at least 2 rows are needed; got {len(data)}.")
    table = Table(X.values, X.names) if isinstance(X, IntervalData) else read_table(X)
    names = table.names
    check_names(names)
    as_given = np.array(table.values, dtype=np.float64)
    if data is None:
        check_finite(as_given, names, LARGEST_SQUARED)
    rule = None if missingness is None else missingness.for_columns(names)
    mask = read_mask(at_random, as_given, names)
    excused = np.zeros(as_given.shape, dtype=bool) if mask is None else mask
    wrongs, wrong = _contradictions(rule, table.values, names)
    if data is not None and wrong.any():
        lower, upper = np.where(wrong, -np.inf, data.lower), np.where(wrong, np.inf, data.upper)
        data = replace(data, lower=lower, upper=upper, not_detected=data.not_detected | wrong)
    values = np.where(wrong, np.nan, as_given) if data is None else data.values
    scales: Sequence[Transform] = [Identity()] * len(names)
    if transforms is not None:
        scales = read_transforms(transforms, names)
    checked = CheckedTable(
        names=names,
        values=values,
        lower=values if data is None else data.lower,
        upper=values if data is None else data.upper,
        blank=excused if data is None else data.blank,
        split=np.zeros_like(excused) if data is None else data.not_detected,
        excused=excused,
        as_given=as_given,
        rule=rule,
        intervals=data,
        contradictions=tuple(wrongs),
        broken=None,
        notes=(),
        scales=tuple(scales),
    )
    return _ruled_values(checked) if data is None else _ruled_intervals(checked, data, mask)


def _ruled_values(table: CheckedTable) -> CheckedTable:
    """Hold a table of values against its rule."""
    free = np.stack([_free(rule, len(table.values)) for rule in table.rules], axis=1)
    table = replace(table, blank=table.excused | (np.isnan(table.values) & free))
    if table.rule is not None:
        try:
            table.rule.check(table.values, table.names, table.excused)
        except ContradictionError as error:
            return table.refused(str(error))
    return table


def _ruled_intervals(table: CheckedTable, data: IntervalData, mask: Mask | None) -> CheckedTable:
    """Hold a table of intervals against its rule, which tells where undetected cells lie."""
    if table.rule is None and not table.split.any():
        return table
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HalfseenWarning)
        try:
            problem = read_problem(data, table.rule, mask, units=_units(data))
        except ContradictionError as error:
            table = table.refused(str(error))
        except InputError as error:
            table = replace(table, broken=str(error))
        else:
            table = _with_ends(table, data, problem)
    return replace(table, notes=tuple(str(warning.message) for warning in caught))


def _free(rule: ColumnRule | None, n: int) -> Mask:
    """Rows in which a rule hides no value of its column."""
    if rule is None:
        return np.zeros(n, dtype=bool)
    if rule.seen_set is not None:
        return np.full(n, rule.seen_set == everything)
    assert rule.group is not None
    return np.asarray((np.isinf(rule.lower) & np.isinf(rule.upper))[rule.group])


def _contradictions(
    rule: Missingness | None, values: NDArray[np.floating], names: Sequence[str]
) -> tuple[list[Contradiction], Mask]:
    """Find seen values that a rule by column would hide."""
    wrong = np.zeros(values.shape, dtype=bool)
    out: list[Contradiction] = []
    if isinstance(rule, Combined):
        for columns, part in rule.parts:
            where = [int(c) for c in columns]
            more, mask = _contradictions(part, values[:, where], [names[c] for c in where])
            wrong[:, where] |= mask
            out += more
    if not isinstance(rule, ColumnwiseMissingness):
        return out, wrong
    for j, name in enumerate(names):
        try:
            rule.check_column(values[:, j], j, name)
        except ContradictionError as error:
            wrong[:, j] = rule.contradictions(values[:, j].astype(float), j)
            row = int(np.flatnonzero(wrong[:, j])[0])
            count = int(wrong[:, j].sum())
            out.append(Contradiction(name, count, row, float(values[row, j]), str(error)))
    return out, wrong


def _units(data: IntervalData) -> tuple[Floats, Floats]:
    """Location and spread of what is known of each column; 0 and 1 where that is nothing."""
    ends = np.concatenate([data.lower, data.upper])
    d = data.shape[1]
    centre, scale = np.zeros(d), np.ones(d)
    for j in range(d):
        known = ends[np.isfinite(ends[:, j]), j]
        if known.size:
            centre[j], scale[j] = known.mean(), known.std() or 1.0
    return centre, scale


def _with_ends(table: CheckedTable, data: IntervalData, problem: Problem) -> CheckedTable:
    """Add the ends of each cell, which of them are blank, and which have several pieces or none."""
    holes = problem.holes.standardised(-problem.centre / problem.scale, 1.0 / problem.scale)
    index = np.maximum(holes.index, 0)
    hidden = problem.hidden
    sizes = np.diff(holes.sets.start)
    split = hidden & (sizes[index] != 1)
    # Where other columns take part, an interval is not the limit of the cell itself.
    split |= hidden & data.at_random & np.array([rule is None for rule in table.rules])
    first = np.where(sizes[index] > 0, holes.sets.start[index], 0)
    # What the table says itself is taken to the last bit.
    open_ = data.at_random & hidden & ~split
    lower = np.where(open_, holes.sets.lower[first], data.lower)
    upper = np.where(open_, holes.sets.upper[first], data.upper)
    for j, own in enumerate(table.rules):
        # And so is the rule, which has been through other units.
        low, high = (in_rows(limits, own, len(data)) for limits in ends_of_rule(own))
        below = open_[:, j] & np.isneginf(lower[:, j]) & np.isfinite(upper[:, j])
        above = open_[:, j] & np.isposinf(upper[:, j]) & np.isfinite(lower[:, j])
        upper[:, j] = np.where(below & ~np.isnan(low), low, upper[:, j])
        lower[:, j] = np.where(above & ~np.isnan(high), high, lower[:, j])
    blank = np.isneginf(lower) & np.isposinf(upper) & ~split
    return replace(table, lower=lower, upper=upper, blank=blank, split=split)


def without_a_fit() -> str:
    """Say why all columns together are not tested."""
    return f"no fit was given: {spelled('pass fit=, or the fit itself', 'leave --quick out')}"


def _with_a_fit() -> str:
    """Say what tests a column that its own cells cannot."""
    return f"{spelled('pass fit=', 'leave --quick out')} to test it"
