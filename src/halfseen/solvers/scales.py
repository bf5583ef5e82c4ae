"""To the scale of the model before a fit, and from original units afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.data.powers import (
    LARGEST_POWER,
    LEAST_POWER,
    LearnedPower,
    follow_power,
    learn_powers,
)
from halfseen.data.table import Table
from halfseen.data.transforms import (
    BoxCox,
    Transform,
    read_transforms,
    transform_table,
)
from halfseen.errors import InputError, argument
from halfseen.missingness.base import ColumnwiseMissingness, Missingness, RuleKind
from halfseen.missingness.combined import Combined
from halfseen.missingness.holes import scan_of
from halfseen.solvers.full_information.problem import Problem, read_problem, sharpened
from halfseen.solvers.prepared_table import PreparedTable
from halfseen.solvers.result import Note, Status, name_some

Floats = NDArray[np.float64]


class OnModelScale(NamedTuple):
    """A table and its rule on the scale of the model.

    ``powers`` are those that were learned, for each column; None where none was.
    """

    data: PreparedTable
    transforms: tuple[Transform, ...]
    powers: tuple[LearnedPower | None, ...] | None


def to_model_scale(data: PreparedTable, missing_at_random: Any, given: Any) -> OnModelScale:
    """Transform a table and its rule; powers that were not given are learned.

    What is wrong with the table is said here, in its own units.
    """
    X = data.table
    assert not isinstance(X, PairMoments)
    transforms, powers = read_transforms(given, X.names), None
    by_cells = data.rule.kind is not RuleKind.WHOLE_ROWS
    if by_cells:
        problem = read_problem(data, None, missing_at_random)
        if any(isinstance(t, BoxCox) and t.power is None for t in transforms):
            _check_domains(X, transforms)
            centre, scale = problem.centre, problem.scale
            holes = problem.holes.standardised(-centre / scale, 1.0 / scale)
            # With the same cells for values as the holes were made of.
            known = sharpened(X, scale) if isinstance(X, IntervalData) else X
            values = np.asarray(known.values, dtype=float)
            transforms, cells = learn_powers(transforms, values, holes, X.names)
            powers = tuple(
                follow_power(cells[j], t) if j in cells and isinstance(t, BoxCox) else None
                for j, t in enumerate(transforms)
            )
    table, rule = apply(X, data.stated, transforms)
    if rule is not None and by_cells:
        _check_still_explained(problem, table, rule, transforms)
    source = replace(data.source, X=table, missingness=rule)
    modelled = replace(data, table=table, stated=rule, source=source)
    return OnModelScale(modelled, transforms, powers)


def check_powers(
    powers: Sequence[LearnedPower | None] | None, names: Sequence[str], errors: Any
) -> None:
    """Raise where a power was learned as if tails were normal, and they are not to be."""
    learned = [name for name, one in zip(names, powers or (), strict=False) if one is not None]
    if learned and errors != "normal":
        raise InputError(
            f"the power of column {name_some(learned)} would be learned as if errors were normal, "
            f"so it does not go with {argument('errors', 't')}: state it, such as boxcox(0.3), or "
            "take logarithms."
        )


def power_notes(powers: Sequence[LearnedPower | None], names: Sequence[str]) -> list[Note]:
    """Say which powers are hardly determined by their columns."""
    hardly = [
        name
        for one, name in zip(powers, names, strict=False)
        if one is not None and one.hardly_known
    ]
    if not hardly:
        return []
    text = (
        f"The power of {name_some(hardly)} is hardly determined: a 95 % interval reaches from "
        f"{LEAST_POWER:g} to {LARGEST_POWER:g}. Intervals in original units take account of it; a "
        "scale that is known from elsewhere would make them shorter."
    )
    return [Note(Status.WEAKLY_IDENTIFIED, text)]


def _check_still_explained(
    problem: Problem,
    table: Table | IntervalData,
    rule: Missingness,
    transforms: Sequence[Transform],
) -> None:
    """Refuse a scale on which nothing can lie where the rule hides values."""
    if isinstance(table, IntervalData):
        # Limits of its cells were looked at one by one, and the rule speaks of the others.
        values, looked = table.values, table.at_random
    else:
        values, looked = np.asarray(table.values, dtype=float), np.isnan(table.values)
    holes = rule.holes(values, scan_of(values))
    before, after = (h.whole_lines[np.maximum(h.index, 0)] for h in (problem.holes, holes))
    lost = np.argwhere(looked & ~before & after)
    if lost.size:
        row, column = (int(k) for k in lost[0])
        scale = transforms[column]
        raise InputError(
            f"the rule says that the hidden value lies "
            f"where {scale.name} has no values, at or below {scale.least:g} ({len(lost)} such "
            "cells). Correct the limit, choose another scale, or pass "
            f"{argument('missing_at_random')} for these cells.",
            row,
            problem.names[column],
        )


def _check_domains(X: Table | IntervalData, transforms: Sequence[Transform]) -> None:
    """Find values outside of a transform's domain before a power is learned from them."""
    with_powers = [
        type(t)(1.0) if isinstance(t, BoxCox) and t.power is None else t for t in transforms
    ]
    transform_table(X, with_powers)


def apply(
    X: Table | IntervalData, rule: Missingness | None, transforms: Sequence[Transform]
) -> tuple[Table | IntervalData, Missingness | None]:
    """Transform a table and the rule for its columns, which were found to agree in original units."""
    table = transform_table(X, transforms)
    if rule is not None:
        rule = rule.transformed(transforms, X.names)
    if rule is not None and isinstance(table, Table):
        values = np.array(table.values, dtype=float)
        onto_limits(values, rule)
        table = Table(values, table.names)
    return table, rule


def onto_limits(values: Floats, rule: Missingness) -> None:
    """Move values that rounding took across their limit, by the last digit, back onto it."""
    if isinstance(rule, Combined):
        for columns, part in rule.parts:
            chosen = [int(c) for c in columns]
            own = values[:, chosen]
            onto_limits(own, part)
            values[:, chosen] = own
    if not isinstance(rule, ColumnwiseMissingness):
        return
    for j in range(values.shape[1]):
        for row in np.flatnonzero(rule.contradictions(values[:, j], j)):
            ends = [e for p in rule.cell_set(int(row), j).pieces or () for e in (p.lower, p.upper)]
            near = [e for e in ends if np.isclose(e, values[row, j], rtol=1e-12, atol=1e-12)]
            if near:
                values[row, j] = near[0]
