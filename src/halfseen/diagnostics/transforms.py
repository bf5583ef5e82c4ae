"""A better scale for a column that does not look normal."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from halfseen.data.powers import ColumnCells, learn_power
from halfseen.data.transforms import BoxCox, Identity, Log, SquareRoot, Transform, YeoJohnson
from halfseen.diagnostics.normality import (
    NormalityTest,
    judge_cells,
    scale_of,
    tested_rows,
    why_not,
)
from halfseen.diagnostics.reading import Reading
from halfseen.errors import InputError
from halfseen.seeds import Purpose, keyed_generator

# A column whose own p-value is below this is looked at.
DOUBTFUL = 0.01
# A simpler scale is preferred if its log-likelihood is within this of the best: the power, one
# parameter more, has a 95 % interval of 1.92 around its best.
NEARLY_AS_GOOD = 2.0
# Stream of random numbers, beside those of ``normality``.
SUGGESTING = 6


def suggest_transforms(
    reading: Reading,
    transforms: tuple[Transform, ...] | None,
    tests: tuple[NormalityTest, ...],
    skip: set[str],
    simulations: int,
    seed: int,
) -> dict[str, str]:
    """Return, for columns that do not look normal, a scale on which they look better.

    Columns to ``skip`` do not look as their rule would leave them: no scale repairs that.
    """
    rows = tested_rows(len(reading.values))
    out: dict[str, str] = {}
    for j, test in enumerate(tests):
        if test.basis != "cells" or not test.p_value < DOUBTFUL or test.name in skip:
            continue
        column = reading.column(j, rows)
        assert not isinstance(column, str)
        present = scale_of(column, None if transforms is None else transforms[j])
        best = best_scale(column.cells)
        if best.name == present.name:
            continue
        rng = keyed_generator(seed, Purpose.DIAGNOSE, SUGGESTING, j)
        on_best = column.on(best)
        if why_not(on_best):
            continue
        found = judge_cells(test.name, on_best, simulations, rng)
        if found.tail_p_value > test.tail_p_value:
            out[test.name] = _words(best)
    return out


def best_scale(cells: ColumnCells) -> Transform:
    """Return the simplest scale whose likelihood is nearly the greatest.

    Likelihoods are those of the cells in original units, so they can be compared.
    """
    scales = list(_allowed(cells))
    values = [_log_likelihood(cells, scale) for scale in scales]
    enough = max(values) - NEARLY_AS_GOOD
    return next(s for s, value in zip(scales, values, strict=True) if value >= enough)


def _allowed(cells: ColumnCells) -> Iterator[Transform]:
    """Yield the scales that the values allow, the simplest first."""
    yield Identity()
    x = cells.values
    # A cell said to lie below zero has no place on these scales.
    inside = bool((cells.upper[np.isfinite(cells.upper)] > 0.0).all())
    if inside and (x > 0.0).all():
        yield Log()
    # At zero a square root has no derivative: its likelihood would be infinite.
    if inside and (x > 0.0).all():
        yield SquareRoot()
    kinds = (BoxCox(),) if inside and (x > 0.0).all() else ()
    for kind in (*kinds, YeoJohnson()):
        try:
            yield learn_power(cells, kind)
        except InputError:
            continue


def _log_likelihood(cells: ColumnCells, scale: Transform) -> float:
    fitted = cells.fit(scale)
    return fitted.log_likelihood if math.isfinite(fitted.log_likelihood) else -math.inf


def _words(scale: Transform) -> str:
    """Write a scale as ``fit`` reads it, with a power to two digits."""
    if isinstance(scale, BoxCox):
        assert scale.power is not None
        return f"{scale.word}({round(scale.power, 2):g})"
    return scale.name
