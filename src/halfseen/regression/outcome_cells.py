"""Columns of outcomes and regressors, from whatever tables they stand in, and what rules say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from halfseen.checks import real_array
from halfseen.data.cell_columns import FrameColumns
from halfseen.data.design import Design, columns_of, design_of_arrays, outcome_names, read_design
from halfseen.data.interval_data import IntervalData
from halfseen.data.mixed_columns import MixedColumns
from halfseen.data.readers import UnreadableError, from_frame
from halfseen.data.table import frame_kind, listed_names, read_table
from halfseen.errors import ContradictionError, InputError, argument
from halfseen.missingness.base import Missingness
from halfseen.missingness.named_rules import Rules
from halfseen.missingness.named_rules import rules as read_rules
from halfseen.missingness.selection import Selection
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import Probability, SeenSet
from halfseen.missingness.written import NotSaved
from halfseen.solvers.regression.estimate import RegressionEstimate
from halfseen.solvers.regression.outcomes import (
    Carried,
    Outcomes,
    are_truths,
    kinds_by_name,
    order_of,
    read_outcomes,
    split_rules,
)
from halfseen.solvers.result import name_some


class Cells:
    """Outcomes as they came, by name, and the kinds that their columns say themselves."""

    def __init__(self, cells: dict[str, Any], kinds: dict[str, Any]) -> None:
        self.cells, self.kinds = cells, kinds


def outcome_cells(
    outcomes: Sequence[str], data: Any, indices: set[str], kinds: Mapping[str, Any] | None
) -> Cells:
    """Return the columns of outcomes; None for the index of a selection that is not there."""
    told = kinds_by_name(kinds)
    if isinstance(data, IntervalData):
        known = {
            name: column_of(data, data.names.index(name)) if name in data.names else None
            for name in outcomes
        }
        return Cells(known, told)
    columns = columns_of(data)
    texts = _text_columns(data, outcomes, told)
    read = data.intervals if isinstance(data, MixedColumns) else _read_texts(data, texts)
    cells: dict[str, Any] = {}
    for name in outcomes:
        if name in read:
            cells[name] = read[name]
        elif name not in columns and name in indices:
            cells[name] = None
        else:
            columns.check(name, "the outcome")
            column = columns.column(name)
            if column.levels is not None:
                own, present = (column.levels, column.ordered), set(column.values)
                told[name] = order_of(name, told.get(name), *own, present)
            cells[name] = column.values
    return Cells(cells, told)


def _text_columns(data: Any, outcomes: Sequence[str], told: Mapping[str, Any]) -> list[str]:
    """Return the outcomes whose cells are texts or a mixture, and may be limits."""
    if frame_kind(data) is None:
        return []
    frame = FrameColumns(data)
    return [
        name
        for name in outcomes
        if name in frame.names
        and name not in told
        and (raw := frame.column(list(frame.names).index(name))).texts is not None
        and not raw.kind
        and not _says_what_it_is(data, name)
    ]


def _says_what_it_is(data: Any, name: str) -> bool:
    """Whether a column holds categories, or true and false."""
    try:
        column = columns_of(data).column(name)
    except InputError:
        # Numbers and texts side by side.
        return False
    return column.levels is not None or are_truths(column.values)


def _read_texts(data: Any, names: Sequence[str]) -> dict[str, IntervalData]:
    """Read columns of cells such as "<0.5"; a column of words is a matter of ``kinds``."""
    out = {}
    for name in names:
        try:
            out[name] = from_frame(data, columns=[name])
        except UnreadableError as error:
            texts = FrameColumns(data).column([*FrameColumns(data).names].index(name)).texts or []
            words = sorted({text for text in texts if text})
            if any(character.isdigit() for character in "".join(words)):
                raise error
            raise InputError(
                f"{name} holds words: {name_some(words, 5)}. Say kinds={{{name!r}: [...]}} with its "
                "categories from the lowest to the highest."
            ) from None
    return out


def column_of(data: IntervalData, place: int) -> IntervalData:
    """Return one column of a table of intervals."""
    own = slice(place, place + 1)
    return IntervalData(
        data.lower[:, own],
        data.upper[:, own],
        data.names[place : place + 1],
        not_detected=data.not_detected[:, own],
    )


def outcomes_like(fit: RegressionEstimate, new: Any) -> Outcomes:
    """Read the outcomes of new rows as those of a fit were read."""
    old = fit.hiding
    if isinstance(old.rule, NotSaved):
        raise InputError(
            f"this fit was saved without its rule, {old.rule.shown}: a file holds no functions. Fit the "
            "model again to ask for outcomes given what is seen."
        )
    told = {name: list(cells) for name, cells in fit.categories.items()}
    names = list(old.names)
    given: list[Any] = [
        Selection([names[k] for k in one.places], names[one.index], one.when)
        for one in old.selections
    ]
    cells = outcome_cells(names, new, {str(one.by) for one in given}, told).cells
    if old.rule is not None:
        given.append(old.rule)
    # Of few new rows there may be values such as 0 and 1 alone.
    plain = {name: "continuous" for name in names if name not in told}
    carried = _carried(old.carried, new)
    outcomes = read_outcomes(cells, given, {**told, **plain}, carried=carried, cuts=fit.cut_points)
    return outcomes.cut_at(fit.cut_points)


def _carried(names: Sequence[str], new: Any) -> Carried | None:
    """Return the columns of new rows with which a rule compares outcomes."""
    if not names:
        return None
    columns = columns_of(new)
    for name in names:
        columns.check(name, "the column that the rule compares outcomes with,")
        column = columns.column(name)
        if not column.is_numbers or not np.isfinite(column.values).all():
            raise InputError(
                f"the rule compares outcomes with {name}, which must be a number in every row."
            )
    return Carried(tuple(names), np.column_stack([columns[name] for name in names]))


def of_formula(
    formula: Any, data: Any, indices: set[str], kinds: Mapping[str, Any] | None
) -> tuple[Design, Cells]:
    """Read outcomes and regressors that a formula names."""
    outcomes = outcome_names(formula)
    design = read_design(formula, data, derived=indices)
    return design, outcome_cells(outcomes, data, indices, kinds)


def of_arrays(
    Y: Any, X: Any, names: Sequence[str] | None, intercept: bool, kinds: Mapping[str, Any] | None
) -> tuple[Design, Cells]:
    """Read outcomes and regressors that are tables of their own."""
    _need_the_same_labels(Y, X)
    told = kinds_by_name(kinds)
    if X is None:
        raise InputError(
            "regressors are needed: regress(formula, data), or regress(Y, X) for arrays; for a mean "
            "and a covariance alone there is fit(X)."
        )
    if Y is None or (np.isscalar(Y) and not isinstance(Y, str)):
        raise InputError(
            "the model must be a formula such as 'lead + zinc ~ age', a mapping from outcomes to their "
            f"regressors, or a table of outcomes; got {Y!r}."
        )
    if isinstance(X, np.ndarray) and X.ndim == 1:
        # One regressor.
        X = X[:, None]
    if isinstance(Y, IntervalData):
        # Names that nobody gave are those of regressors too.
        unnamed = Y.names == tuple(f"x{j}" for j in range(len(Y.names)))
        called = [f"y{j}" for j in range(len(Y.names))] if unnamed else list(Y.names)
        cells: dict[str, Any] = {name: column_of(Y, j) for j, name in enumerate(called)}
    elif isinstance(Y, Mapping) or frame_kind(Y) is not None:
        columns = columns_of(Y)
        read = outcome_cells(list(columns), Y, set(), kinds)
        cells, told = read.cells, read.kinds
    else:
        values = np.atleast_1d(real_array("the outcomes", Y))
        values = values[:, None] if values.ndim == 1 else values
        table = read_table(values, fewest_rows=1)
        numbered = [f"y{j}" for j in range(table.values.shape[1])]
        called = numbered if names is None else list(listed_names(names))
        if len(called) != table.values.shape[1]:
            raise InputError(
                f"names must be {table.values.shape[1]}, one for each outcome; got {len(called)}."
            )
        cells = {name: table.values[:, j] for j, name in enumerate(called)}
    return design_of_arrays(X, outcomes=list(cells), intercept=intercept), Cells(cells, told)


def _need_the_same_labels(Y: Any, X: Any) -> None:
    """Raise where two pandas frames have rows of other labels, or in another order."""
    if frame_kind(Y) == "pandas" and frame_kind(X) == "pandas" and not Y.index.equals(X.index):
        raise InputError(
            "outcomes and regressors have rows with other labels, or in another order. Put them in one "
            "frame, or bring them in order: regress(Y, X.loc[Y.index])."
        )


def read_carried(given: Any, outcomes: Sequence[str], data: Any) -> Carried | None:
    """Return the columns of the data that a rule compares outcomes with, and that are none."""
    rule, _ = split_rules(given)
    if not isinstance(rule, Rules):
        return None
    names = [name for name in rule.names if name not in outcomes]
    if not names or isinstance(data, np.ndarray) or data is None:
        return None
    columns = columns_of(data)
    known = [name for name in names if name in columns]
    for name in known:
        values = columns.column(name)
        if not values.is_numbers or not np.isfinite(values.values).all():
            raise InputError(
                f"the rule compares outcomes with {name}, which must be a number in every row. Make it "
                "an outcome of its own, or leave rows out in which it is not known."
            )
    return (
        Carried(tuple(known), np.column_stack([columns[name] for name in known])) if known else None
    )


def read_truncation(
    cells: Mapping[str, Any], rules: Any, kinds: Mapping[str, Any] | None, given: Any
) -> Missingness:
    """Read in which set the outcome of a row must lie for the row to be in the table."""
    if len(cells) != 1:
        raise InputError(
            f"rows that are not in the table are for a regression of one outcome; got {len(cells)}."
        )
    if rules is not None:
        raise InputError(
            f"{argument('truncated')} says why rows are not there; hidden cells need rules without it."
        )
    ((name, column),) = cells.items()
    kind = kinds_by_name(kinds).get(name, "continuous")
    if kind != "continuous" or (not isinstance(column, IntervalData) and are_truths(column)):
        raise InputError(
            f"{name} has categories, of which no value is seen, so it cannot lie in a set that rows "
            f"are left out by. {argument('truncated')} is for a measurement; leave it out here."
        )
    values = column.values if isinstance(column, IntervalData) else real_array(name, column)
    if np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise InputError(
            f"the outcome is not seen; with {argument('truncated')} every row in the table shows it. "
            "Leave such rows out.",
            row,
            name,
        )
    if isinstance(given, Mapping):
        if list(given) != [name]:
            raise InputError(
                f"{argument('truncated')} must speak of the outcome {name}; got {list(given)!r}."
            )
        given = given[name]
    if isinstance(given, str):
        given = read_rules({name: given})
    if not isinstance(given, Missingness | SeenSet):
        raise InputError(
            f"{argument('truncated')} must be a set, such as {{{name!r}: '>=0'}} or between(0, 10); "
            f"got {given!r}."
        )
    rule = given if isinstance(given, Missingness) else SelfCensoring([given])
    rule = rule.for_columns([name])
    if isinstance(given, Probability):
        # Told apart from sets where the likelihood is made.
        return rule
    outside = np.flatnonzero(~rule.seen(values.reshape(-1, 1)))
    if outside.size:
        raise ContradictionError(
            f"the value {values.flat[outside[0]]:g} is in the table, where {argument('truncated')} says "
            f"that no such row is ({outside.size} of them). Leave such rows out, or correct the set.",
            int(outside[0]),
            name,
        )
    return rule
