"""Columns whose values are known to so wide intervals that they say little of how far they spread."""

from __future__ import annotations

import numpy as np

from halfseen.data.interval_data import IntervalData
from halfseen.solvers.prepared_table import PreparedTable
from halfseen.solvers.result import Estimate, Note, Status, name_some

# Intervals of so many standard deviations are slabs. Values that are rounded to steps of three say of
# the standard deviation what 0.37 times as many exact ones would, 0.13 to 0.65 depending on where
# the mean lies; to steps of one 0.86, whatever the mean.
SLAB = 3.0
# Share of the cells of a column that are slabs where it rests on them.
MOSTLY = 0.5


def slab_notes(data: PreparedTable, result: Estimate) -> list[Note]:
    """Say which columns rest on intervals that are much wider than the column spreads."""
    table = data.table
    if not isinstance(table, IntervalData):
        return []
    with np.errstate(invalid="ignore"):
        width = table.upper - table.lower
    deviations = np.sqrt(np.diag(result.covariance))
    slabs = np.isfinite(width) & (width > SLAB * deviations)
    known = ~table.at_random
    mostly = slabs.sum(axis=0) > MOSTLY * np.maximum(known.sum(axis=0), 1)
    names = [table.names[j] for j in np.flatnonzero(mostly)]
    if not names:
        return []
    text = (
        f"Values of {name_some(names)} are known to intervals of more than {SLAB:g} standard "
        "deviations, as where they were rounded to a coarse step: how far they spread rests on "
        "normality more than on what was recorded."
    )
    return [Note(Status.WEAKLY_IDENTIFIED, text)]
