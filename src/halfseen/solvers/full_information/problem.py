"""A table, what hides its values, and where to start from: what ``full`` reads first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import as_array
from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.data.table import TableKind, check_finite
from halfseen.errors import ContradictionError, InputError, NotIdentifiedError, spelled, warn
from halfseen.missingness.base import ColumnwiseMissingness, Missingness, RuleKind
from halfseen.missingness.holes import SEEN, Holes, Scan
from halfseen.missingness.rule_parts import quoted
from halfseen.solvers.columns import check_columns, check_spreads
from halfseen.solvers.full_information.expectation import count_sampled, several_pieces
from halfseen.solvers.prepared_table import prepared_table, read_moments
from halfseen.solvers.result import name_some
from halfseen.theta import parameter_units

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# How far from the seen values, in their spreads, the pieces of a set known as a function are looked for.
REACH = 40.0
# Intervals narrower than this share of a column's spread are values.
NARROW = 1e-9


@dataclass(frozen=True)
class Overview:
    """What there is to know of a table apart from its rows.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    centre, scale : arrays of shape (d,)
        Of the seen values: the units in which ``full`` works.
    names : tuple of str
    missingness : Missingness or None
        The rule for these columns; None where the table itself says what is hidden.
    simply_missing : bool
        Whether some cells were said to be missing for no modelled reason.
    hidden : array of shape (d,)
        Number of hidden cells of each column.
    convex : bool
        Whether every hidden region is.
    bound : bool
        Whether inequalities bind the hidden cells of a row together.
    sampled : int
        Number of confined cells in rows that cannot be integrated.
    several : integer array
        Columns with cells that hide in more than one piece of a set.
    """

    shape: tuple[int, int]
    centre: Floats
    scale: Floats
    names: tuple[str, ...]
    missingness: Missingness | None
    simply_missing: bool
    hidden: Floats
    convex: bool
    bound: bool
    sampled: int
    several: NDArray[np.intp]

    @property
    def units(self) -> Floats:
        """Units of (μ, Σ_ij for i >= j)."""
        return parameter_units(self.scale)

    def to_units(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Bring parameters into the units of the table."""
        return self.centre + self.scale * mean, covariance * np.outer(self.scale, self.scale)

    def from_units(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Bring parameters from the units of the table into standardised ones."""
        return (mean - self.centre) / self.scale, covariance / np.outer(self.scale, self.scale)


class Standardised:
    """Values in units of their columns, computed whenever they are looked at: no second table is held.

    Some of its rows are one too. NumPy takes it for the array that it stands for.
    """

    def __init__(self, values: NDArray[np.floating], centre: Floats, scale: Floats) -> None:
        self.values, self.centre, self.scale = values, centre, scale

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: NDArray[np.intp] | slice) -> Standardised:
        return Standardised(self.values[rows], self.centre, self.scale)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        # Row by row whatever the table's layout: the kernels are compiled for that.
        Y: Floats = np.subtract(self.values, self.centre, order="C")
        Y /= self.scale
        return Y


@dataclass(frozen=True)
class Problem:
    """A table in units of its columns' seen values, as ``full`` works on it.

    Attributes
    ----------
    Y : array of shape (n, d), or ``Standardised``
        Standardised values; NaN where hidden.
    holes : Holes
        In the same units.
    centre, scale : arrays of shape (d,)
    names : tuple of str
    missingness : Missingness or None
        The rule for these columns; None where the table itself says what is hidden.
    at_random : boolean array or None
        Cells that were said to be missing for no modelled reason.
    kept : array of shape (n,) or None
        Where values may have been lost: the log-probability that those which are seen were not.
    weights : array of shape (n,) or None
        What each row counts, 1 on average.
    """

    Y: Floats
    holes: Holes
    centre: Floats
    scale: Floats
    names: tuple[str, ...]
    missingness: Missingness | None
    at_random: Mask | None
    kept: Floats | None = None
    weights: Floats | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.holes.shape

    @property
    def hidden(self) -> Mask:
        """Mask of the hidden cells."""
        return self.holes.index != SEEN

    @cached_property
    def overview(self) -> Overview:
        """What there is to know of it apart from its rows."""
        return Overview(
            self.shape,
            self.centre,
            self.scale,
            self.names,
            self.missingness,
            self.at_random is not None,
            self.hidden.sum(axis=0).astype(float),
            self.holes.is_convex,
            self.holes.inequalities is not None,
            count_sampled(self.holes),
            several_pieces(self.holes),
        )

    def take(self, rows: NDArray[np.intp] | slice) -> Problem:
        """Return the problem of some of the rows."""
        at_random = None if self.at_random is None else self.at_random[rows]
        return Problem(
            self.Y[rows],
            self.holes.take(rows),
            self.centre,
            self.scale,
            self.names,
            self.missingness,
            at_random,
            None if self.kept is None else self.kept[rows],
            None if self.weights is None else self.weights[rows],
        )

    def to_units(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Bring parameters into the units of the table."""
        return self.overview.to_units(mean, covariance)

    def from_units(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Bring parameters from the units of the table into standardised ones."""
        return self.overview.from_units(mean, covariance)


def read_problem(
    X: Any,
    missingness: Missingness | None,
    at_random: Any = None,
    n_jobs: int | None = None,
    units: tuple[Floats, Floats] | None = None,
    held: bool = True,
) -> Problem:
    """Read a table, check it against the rule, and describe its holes.

    A table that was prepared brings its own rule; ``missingness`` and ``n_jobs`` are not looked at then.
    With ``units`` (a centre and a scale of each column) the table need not determine them itself: it may
    have a single row, or columns that are never seen.
    """
    data = prepared_table(X, missingness, n_jobs, fewest_rows=2 if units is None else 1)
    if isinstance(data.table, IntervalData):
        return _read_intervals(data.table, data.stated, at_random, units)
    if data.kind is TableKind.MOMENTS:
        raise InputError("full needs the rows themselves, but moments were passed.")
    rule, values, names = data.rule, data.values, data.names
    if rule.kind is RuleKind.WHOLE_ROWS:
        raise InputError(
            "full needs to know of every row, but under RowTruncation rows that are not shown are not "
            'counted; use method="truncated_sgd".'
        )
    check_finite(values, names)
    mask = read_mask(at_random, values, names)
    if isinstance(rule, ColumnwiseMissingness):
        # Which also checks them, in the precision they came in.
        read_moments(data)
    else:
        rule.check(data.as_given, names, mask)
    centre, scale = units_of(data.moments) if units is None else units
    problem = standardise(values, names, rule, mask, centre, scale, held)
    warn_of_silence(silent_columns(problem), data.stated, names)
    return problem


def units_of(moments: PairMoments) -> tuple[Floats, Floats]:
    """Centre and scale of the seen values of each column; raise where there are none."""
    check_columns(moments, np.diag(moments.counts))
    centre, scale = moments.means(), moments.deviations()
    check_spreads(moments.names, centre, scale)
    return centre, scale


def standardise(
    values: NDArray[np.floating],
    names: tuple[str, ...],
    rule: Missingness,
    mask: Mask | None,
    centre: Floats,
    scale: Floats,
    held: bool = True,
) -> Problem:
    """Describe the holes of values that were found to agree with the rule, in the given units."""
    holes = rule.holes(values, Scan(centre, scale, np.full(scale.size, REACH)))
    if mask is not None:
        holes = holes.with_missing_at_random(mask)
    lazy: Any = Standardised(values, centre, scale)
    Y: Floats = np.asarray(lazy) if held else lazy
    return Problem(Y, holes.standardised(centre, scale), centre, scale, names, rule, mask)


def read_mask(given: Any, values: NDArray[np.floating], names: Sequence[str]) -> Mask | None:
    """Read which cells are missing at random; seen ones cannot be."""
    if given is None:
        return None
    try:
        mask = as_array("missing_at_random", given)
    except InputError:
        raise
    except ValueError:
        raise InputError(
            f"missing_at_random must be a boolean array of shape {values.shape}; its rows have "
            "different lengths."
        ) from None
    if mask.dtype != bool or mask.shape != values.shape:
        raise InputError(
            f"missing_at_random must be a boolean array of shape {values.shape}, as the data have; "
            f"got dtype {mask.dtype} and shape {mask.shape}."
        )
    wrong = np.argwhere(mask & ~np.isnan(values))
    if wrong.size:
        row, column = (int(k) for k in wrong[0])
        raise ContradictionError(
            f"the cell is said to be missing at random, but its "
            f"value {values[row, column]:.12g} is seen ({len(wrong)} such cells).",
            row,
            names[column],
        )
    return mask


def silent_columns(problem: Problem) -> Mask:
    """Columns with hidden cells that the rule does not explain and nobody called missing at random."""
    out = np.zeros(problem.shape[1], dtype=bool)
    if not isinstance(problem.missingness, ColumnwiseMissingness):
        return out
    whole = problem.holes.whole_lines
    # One column at a time: masks of all cells would be held beside the rows.
    for j, index in enumerate(problem.holes.index.T):
        hidden = index != SEEN
        if problem.at_random is not None:
            hidden &= ~problem.at_random[:, j]
        out[j] = whole[index[hidden]].any()
    return out


def warn_of_silence(silent: Mask, missingness: Missingness | None, names: Sequence[str]) -> None:
    """Warn of columns with hidden cells that nothing explains."""
    if not silent.any():
        return
    if missingness is None:
        warn(
            "no rule is stated, so hidden cells are taken to be missing at random. If values are "
            "hidden because of what they are, state the rule."
        )
        return
    warn(
        "cells are hidden where the rule shows every value, in column "
        f"{name_some([names[int(i)] for i in np.flatnonzero(silent)])}; they are taken to be "
        "missing at random. State what hides them, if something does."
    )


def _read_intervals(
    data: IntervalData,
    rule: Missingness | None,
    at_random: Any,
    units: tuple[Floats, Floats] | None,
) -> Problem:
    if units is None:
        if len(data) < 2:
            raise InputError(f"at least 2 rows are needed; got {len(data)}.")
        centre, scale = units_of_intervals(data)
    else:
        centre, scale = units
    data = sharpened(data, scale)
    values = data.values
    mask = read_mask(at_random, values, data.names)
    if rule is None:
        _need_a_rule(data, data.not_detected)
        holes = data.holes()
    else:
        holes = _holes_under(rule, data, mask, Scan(centre, scale, np.full(scale.size, REACH)))
    if mask is not None:
        # Said of a cell with an interval of its own too: then the interval is not to be believed.
        holes = holes.with_missing_at_random(mask)
    return Problem(
        (values - centre) / scale,
        holes.standardised(centre, scale),
        centre,
        scale,
        data.names,
        None,
        None,
    )


def sharpened(data: IntervalData, scale: Floats) -> IntervalData:
    """Take intervals that are next to nothing for values: their ends would not be told apart."""
    width = data.upper - data.lower
    narrow = ~data.seen & (width < NARROW * scale)
    if not narrow.any():
        return data
    middle = np.where(narrow, data.lower, 0.0) + 0.5 * np.where(narrow, width, 0.0)
    return data.with_ends(
        np.where(narrow, middle, data.lower), np.where(narrow, middle, data.upper)
    )


def _holes_under(rule: Missingness, data: IntervalData, mask: Mask | None, scan: Scan) -> Holes:
    """Holes of a table of intervals under a rule: what a cell says of itself goes first.

    The rule speaks of cells of which nothing is known but that they were not detected. It also speaks
    of blank cells, unless others in their column are marked: then a blank one was not hidden by it.
    """
    if rule.kind is RuleKind.WHOLE_ROWS:
        raise InputError(
            "RowTruncation shows whole rows or none, so it does not go with IntervalData."
        )
    told = ~data.seen & ~data.at_random
    if mask is None:
        marked = (told | data.not_detected).any(axis=0)
        mask = data.blank & marked
        if mask.any():
            names = [data.names[j] for j in np.flatnonzero(mask.any(axis=0))]
            warn(
                f"blank cells in column {name_some(names)} are taken to be missing at random, "
                "since other cells there say that they were not detected. Pass "
                f"{spelled('missing_at_random=', '--blank hidden')} to say otherwise."
            )
    values = data.values
    rule.check(values, data.names, told | mask)
    holes = rule.holes(values, scan)
    unexplained = holes.whole_lines[np.maximum(holes.index, 0)] & data.not_detected
    if holes.inequalities is None:
        _need_a_rule(data, unexplained)
    holes = _below(holes, data)
    holes = holes.with_missing_at_random(mask)
    return holes.with_intervals(told, data.lower[told], data.upper[told])


def _below(holes: Holes, data: IntervalData) -> Holes:
    """Put cells that were not detected below what the rule shows, if it hides on both sides."""
    where = data.not_detected & (holes.index != SEEN)
    if not where.any():
        return holes
    first = holes.sets.start[np.maximum(holes.index, 0)]
    known = where & (np.diff(holes.sets.start)[np.maximum(holes.index, 0)] > 0)
    lowest = holes.sets.lower[np.minimum(first, holes.sets.lower.size - 1)]
    _need_a_rule(data, known & ~np.isneginf(lowest))
    several = known & (np.diff(holes.sets.start)[np.maximum(holes.index, 0)] > 1)
    at = first[several]
    return holes.with_intervals(several, holes.sets.lower[at], holes.sets.upper[at])


def _need_a_rule(data: IntervalData, unexplained: Mask) -> None:
    if unexplained.any():
        row, column = (int(k) for k in np.argwhere(unexplained)[0])
        name = data.names[column]
        stated = spelled(
            f"rules({{{name!r}: '>=0.5'}}) or DetectionLimits(lower={{{name!r}: 0.5}})",
            f"--seen {shlex.quote(f'{quoted(name)}: >=0.5')}",
        )
        raise InputError(
            f"the cell says that the value was not detected, but not at "
            f"which limit ({int(unexplained.sum())} such cells). State the limit, as in {stated}.",
            row,
            name,
        )


def units_of_intervals(data: IntervalData) -> tuple[Floats, Floats]:
    """Location and spread of what is known of each column: values, and ends of intervals."""
    ends = np.concatenate([data.lower, data.upper])
    ends = np.where(np.isfinite(ends), ends, np.nan)
    d = data.shape[1]
    centre, scale = np.empty(d), np.empty(d)
    for j in range(d):
        known = ends[~np.isnan(ends[:, j]), j]
        distinct = np.unique(known)
        if distinct.size < 2:
            raise NotIdentifiedError(
                f"column {data.names[j]} has {distinct.size} distinct "
                f"value{'' if distinct.size == 1 else 's'} or limits in {len(data)} rows; at least "
                "2 are needed to learn a mean and a variance. Leave the column out or add rows."
            )
        if data.lower[:, j].max() <= data.upper[:, j].min():
            raise NotIdentifiedError(
                f"column {data.names[j]} could be the same value in all of its {len(data)} rows, "
                "so nothing says that it varies. Leave the column out or add rows."
            )
        centre[j], scale[j] = known.mean(), known.std()
    check_spreads(data.names, centre, scale)
    return centre, scale
