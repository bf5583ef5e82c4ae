"""The columns of outcomes, from whatever table they stand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from halfseen.data.design import columns_of
from halfseen.data.interval_data import IntervalData
from halfseen.data.mixed_columns import MixedColumns
from halfseen.data.raw_columns import FrameColumns
from halfseen.data.readers import UnreadableError, from_frame
from halfseen.data.table import frame_kind
from halfseen.errors import InputError
from halfseen.missingness.selection import Selection
from halfseen.missingness.written import NotSaved
from halfseen.solvers.regression.estimate import RegressionEstimate
from halfseen.solvers.regression.outcomes import (
    Carried,
    Outcomes,
    are_truths,
    kinds_by_name,
    order_of,
    read_outcomes,
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
