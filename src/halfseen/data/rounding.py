"""Values that were rounded before they were recorded: each stands for an interval."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import is_iterable, positive_number, real_number
from halfseen.data.cells import called, print_number
from halfseen.data.interval_data import IntervalData
from halfseen.data.names import find_column
from halfseen.data.table import check_finite, frame_kind, read_table, with_names
from halfseen.errors import ContradictionError, InputError, argument, spelled, warn
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.combined import Combined
from halfseen.missingness.sets import Interval

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# How far below a recorded value the interval begins that was rounded to it, in steps.
BELOW = {"nearest": 0.5, "down": 0.0, "up": 1.0}
# A multiple of a step, as far as numbers such as 0.3 / 0.1 say so.
WHOLE = 1e-6


@dataclass(frozen=True)
class Rounded:
    """How recorded values were rounded, and the rule that hides others; made by ``rounded``.

    Attributes
    ----------
    steps : dict of str to tuple of float
        The steps of each column, from the coarsest; those of every column under an empty name.
    how : dict of str to str
        In which direction columns were rounded, with that of all others under an empty name.
    rule : Missingness or None

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.rounded({"age": 5}).steps
    {'age': (5.0,)}
    """

    steps: dict[str, tuple[float, ...]]
    how: dict[str, str]
    rule: Missingness | None = None

    def intervals(self, X: Any, names: Sequence[str] | None = None) -> IntervalData:
        """Return a table with an interval for each recorded value; all other cells stay as they are.

        Parameters
        ----------
        X : array-like of shape (n, d), data frame or IntervalData
            Recorded values; NaN where there are none.
        names : sequence of str, optional
            Names of the columns; by default those of the data frame.

        Returns
        -------
        IntervalData

        Examples
        --------
        >>> import halfseen as hs
        >>> data = hs.rounded({"age": 5}).intervals([[40, 1.7], [35, 2.2]], names=["age", "dose"])
        >>> data.lower
        array([[37.5,  1.7],
               [32.5,  2.2]])
        """
        data = _as_intervals(X, names)
        lower, upper = data.lower.copy(), data.upper.copy()
        for j, name in self._places(data.names):
            rows = np.flatnonzero(data.seen[:, j])
            ends = self._ends(data.lower[rows, j], data.names[j], name, rows)
            lower[rows, j], upper[rows, j] = ends
        if self.rule is not None:
            _cut(data, lower, upper, self.rule.for_columns(data.names))
        return data.with_ends(lower, upper)

    def _places(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """Return the columns that were rounded, with the name under which their steps are known."""
        for name in {*self.steps, *self.how} - {""}:
            find_column(names, name, argument("rounded"))
        own = [(j, name if name in self.steps else "") for j, name in enumerate(names)]
        return [(j, known) for j, known in own if known in self.steps]

    def _ends(
        self, values: Floats, column: str, known: str, rows: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """Return the ends of the intervals that were rounded to these values."""
        steps = self.steps[known]
        below = BELOW[self.how.get(column, self.how[""])]
        lower, upper = values.copy(), values.copy()
        left = np.ones(values.size, dtype=bool)
        for step in filter(None, steps):
            whole = np.round(values / step)
            on_grid = np.abs(values / step - whole) <= WHOLE * np.maximum(1.0, np.abs(whole))
            own = left & (on_grid if len(steps) > 1 else True)
            # On the grid in whole steps, so that neighbours meet in the same number.
            place = np.where(on_grid, whole, values / step)
            lower[own], upper[own] = (
                ((place - below) * step)[own],
                ((place - below + 1.0) * step)[own],
            )
            left &= ~own
            if len(steps) == 1 and not on_grid.all():
                _doubt_grid(values[~on_grid], column, step, int(rows[~on_grid][0]))
        if left.any() and steps[-1] > 0.0:
            raise InputError(
                f"the value {print_number(values[left][0])} is no multiple of "
                f"{' or '.join(map(print_number, steps))} ({int(left.sum())} such cells). Add the step "
                "to which others were rounded, or 0 for values that were not.",
                int(rows[left][0]),
                column,
            )
        return lower, upper

    def __repr__(self) -> str:
        return f"rounded({self.steps.get('', self.steps)!r})"


def rounded(
    step: float | Mapping[str, float | Sequence[float]],
    how: str | Mapping[str, str] = "nearest",
    rule: Missingness | None = None,
) -> Rounded:
    """Say that values were rounded before they were recorded, so that each stands for an interval.

    Pass it to ``fit`` in place of a rule, or make the table of intervals with its method ``intervals``.
    Limits, blank cells and cells that are intervals already stay as they are.

    Parameters
    ----------
    step : number or dict
        To which step all columns were rounded, or some of them by name. Several steps of a column are
        those of heaped values: each value was rounded to the coarsest of which it is a multiple, and 0
        is for values that were not rounded. ``{"age": [5, 1]}``: 40 stands for 37.5 to 42.5, 41 for
        40.5 to 41.5.
    how : "nearest", "down" or "up", or dict
        In which direction; "down" for an age in completed years.
    rule : Missingness, optional
        What hides other values of the table, by what they were before they were rounded: intervals
        are cut at its limits.

    Returns
    -------
    Rounded

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> age = np.random.default_rng(0).normal(40, 4, size=(500, 1))
    >>> recorded = 5 * np.round(age / 5)
    >>> print(np.sqrt(recorded.var().round(1)).round(2), age.std().round(2))
    4.32 4.05
    >>> fit = hs.fit(recorded, hs.rounded(5), random_state=0)
    >>> print(np.sqrt(fit.covariance[0, 0]).round(2))
    4.08
    """
    if rule is not None and not isinstance(rule, Missingness):
        raise InputError(f"rule must be a rule such as DetectionLimits(...); got {rule!r}.")
    by_name = step if isinstance(step, Mapping) else {"": step}
    if not by_name or (not isinstance(step, Mapping) and is_iterable(step)):
        raise InputError(
            f"step must be a number, or a dict such as {{'age': 5}}; got {step!r}. Several steps of "
            "a column are written {'age': [5, 1]}."
        )
    directions = how if isinstance(how, Mapping) else {"": how}
    for one in directions.values():
        if not isinstance(one, str) or one not in BELOW:
            raise InputError(f"how must be 'nearest', 'down' or 'up'; got {one!r}.")
    steps = {str(name): _steps(str(name), given) for name, given in by_name.items()}
    return Rounded(steps, {"": "nearest", **{str(k): v for k, v in directions.items()}}, rule)


def read_rounded(texts: Sequence[str]) -> Rounded:
    """Read what the command line says: ``0.1``, ``age: 5, lead: 0.1``, ``age: 5/1 down``.

    Examples
    --------
    >>> from halfseen.data.rounding import read_rounded
    >>> read_rounded(["age: 5/1, lead: 0.1 down"]).steps
    {'age': (5.0, 1.0), 'lead': (0.1,)}
    """
    steps: dict[str, list[float]] = {}
    how: dict[str, str] = {}
    for text in texts:
        for part in next(csv.reader([text], skipinitialspace=True), []):
            name, colon, told = part.rpartition(":")
            name, words = name.strip(), told.split()
            try:
                numbers = [float(one) for one in words[0].split("/")]
            except (ValueError, IndexError):
                numbers = []
            known = len(words) == 1 or (len(words) == 2 and words[1] in BELOW)
            if not numbers or not known or (colon and not name):
                raise InputError(
                    f"--rounded is written as 0.1 for all columns, 'age: 5, lead: 0.1', 'age: 5 down' "
                    f"(or up), or 'age: 5/1' for values of which some were rounded to 5; got {part!r}."
                )
            if name in steps:
                raise InputError(f"--rounded speaks of {name or 'all columns'} twice.")
            steps[name], how[name] = numbers, words[1] if len(words) == 2 else "nearest"
    if not steps:
        raise InputError("--rounded names no step.")
    return Rounded(
        {name: _steps(name, given) for name, given in steps.items()}, {"": "nearest"} | how
    )


def as_recorded(
    X: Any, missingness: Any, at_random: Any = None, names: Sequence[str] | None = None
) -> tuple[Any, Any, Any]:
    """Return the table of intervals, the rule beside, and which blank cells are missing at random.

    Where nobody said that values were rounded, all stays as it is.
    """
    if not isinstance(missingness, Rounded):
        return X, missingness, at_random
    recorded = _as_intervals(X, names)
    rule = missingness.rule
    if rule is not None:
        rule = rule.for_columns(recorded.names)
        if at_random is None:
            # As if nothing had been rounded: limits alone say that blank cells were not hidden.
            at_random = recorded.blank & (~recorded.seen & ~recorded.blank).any(axis=0)
    return missingness.intervals(recorded), rule, at_random


def _shown(rule: Missingness, column: int, n: int) -> tuple[Floats, Floats]:
    """Return the ends of the interval that a rule shows of a column, in each row."""
    everywhere = np.full(n, -np.inf), np.full(n, np.inf)
    if isinstance(rule, Combined):
        for columns, part in rule.parts:
            if column in columns:
                return _shown(part, columns.index(column), n)
    if not isinstance(rule, ColumnwiseMissingness):
        return everywhere
    own = rule.column_rule(column)
    if isinstance(own.seen_set, Interval):
        return np.full(n, own.seen_set.lower), np.full(n, own.seen_set.upper)
    if own.group is None:
        return everywhere
    if own.group.size != n:
        raise InputError(f"the limits are given for {own.group.size} rows, but the data have {n}.")
    return own.lower[own.group], own.upper[own.group]


def _cut(data: IntervalData, lower: Floats, upper: Floats, rule: Missingness) -> None:
    """Cut intervals of recorded values at what a rule shows; raise where nothing is left."""
    rounded = data.seen & (lower < upper)
    for j in np.flatnonzero(rounded.any(axis=0)).tolist():
        low, high = _shown(rule, j, len(data))
        own = rounded[:, j]
        lower[own, j] = np.maximum(lower[own, j], low[own])
        upper[own, j] = np.minimum(upper[own, j], high[own])
        wrong = np.flatnonzero(own & (lower[:, j] > upper[:, j]))
        if wrong.size:
            raise ContradictionError(
                f"the value {print_number(data.lower[wrong[0], j])} is recorded, but the rule hides "
                f"all that is rounded to it ({wrong.size} such cells). Correct the rule or the step, or "
                "set the value to NaN if it was not really seen.",
                int(wrong[0]),
                data.names[j],
            )


def _as_intervals(X: Any, names: Sequence[str] | None) -> IntervalData:
    """Return a table of values as intervals without width."""
    if isinstance(X, IntervalData):
        return X if names is None else with_names(X, names)
    table = read_table(X, names, fewest_rows=1)
    values = np.asarray(table.values, dtype=float)
    check_finite(values, table.names)
    kind = frame_kind(X)
    index = X.index if kind == "pandas" else None
    return IntervalData(values, values, table.names, frame=kind, index=index)


def _steps(name: str, given: Any) -> tuple[float, ...]:
    """Read the steps of a column, from the coarsest."""
    what = f"the step of {name}" if name else "step"
    if not is_iterable(given) or isinstance(given, str):
        return (positive_number(what, given),)
    steps = tuple(real_number(what, one) for one in given)
    if len(steps) == 1:
        return (positive_number(what, steps[0]),)
    falling = all(a > b for a, b in pairwise(steps))
    if not steps or not falling or steps[-1] < 0.0 or not np.isfinite(steps).all() or not steps[0]:
        raise InputError(
            f"several steps must be written from the coarsest to the finest, as in [5, 1]; got "
            f"{list(steps)} for {name or 'all columns'}."
        )
    return steps


def _doubt_grid(values: Floats, column: str, step: float, row: int) -> None:
    """Warn of recorded values that are no multiples of the step."""
    heaped = f"[{print_number(step)}, 0]"
    option = f"--rounded '{column}: {print_number(step)}/0'"
    warn(
        f"{values.size} values of {called(column)} are no multiples of {print_number(step)} (the first "
        f"is {print_number(values[0])}, in row {row}); they too are taken to be rounded, each within "
        f"such a step. If only multiples were rounded, say {spelled(heaped, option)}."
    )
