"""What the page says of each column in the units of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.report.cells import Cells
from halfseen.report.columns import number

if TYPE_CHECKING:
    from halfseen.results import Fit
    from halfseen.solvers.inference.original_scale import OriginalScale

# The quantile that is shown beside the mean.
HIGH = 0.95


def original_scale(fit: Fit, level: float) -> OriginalScale | None:
    """Return what the fit says in original units; None where no column was transformed."""
    if fit.transforms is None or all(t.name == "none" for t in fit.transforms):
        return None
    with np.errstate(all="ignore"):
        return fit.original_scale(level, (HIGH,), labels=False)


def in_units(
    found: OriginalScale, cells: Cells | None, column: dict[str, Any], transform: Any, j: int
) -> dict[str, Any]:
    """Arithmetic mean and a high quantile of a column, and the naive means beside."""
    naive = None
    if cells is not None:
        seen = cells.seen(j)
        with np.errstate(all="ignore"):
            values = seen if transform is None else np.asarray(transform.inverse(seen), dtype=float)
        naive = number(values.mean()) if values.size else None
    patched = column["substituted"]
    return {
        "naive": naive,
        "substituted": None if patched is None else patched["units_mean"],
        "mean": number(found.mean[j]),
        "mean_interval": _ends(found.mean_lower[j], found.mean_upper[j]),
        "high": number(found.quantiles[j, 0]),
        "high_interval": _ends(found.quantiles_lower[j, 0], found.quantiles_upper[j, 0]),
    }


def median_interval(found: OriginalScale, j: int) -> list[float | None] | None:
    """Return the interval of a column's median."""
    return _ends(found.median_lower[j], found.median_upper[j])


def _ends(low: float, high: float) -> list[float | None] | None:
    ends = [number(low), number(high)]
    return None if None in ends else ends


def medians(column: dict[str, Any], transform: Any) -> dict[str, Any]:
    """Medians in original units: means of the modelled scale, transformed back; and the limits.

    Their interval is for others to say: a power that was learned makes it longer.
    """

    def back(z: float | None) -> float | None:
        if z is None:
            return None
        with np.errstate(all="ignore"):
            return number(np.asarray(transform.inverse(np.array([z])), dtype=float)[0])

    patched = column["substituted"]
    return {
        "word": "geometric mean" if transform.name.startswith("log") else "median",
        "naive": back(column["naive"]["mean"]),
        "substituted": None if patched is None else back(patched["mean"]),
        "recovered": back(column["recovered"]["mean"]),
        "interval": None,
        "limits": [back(limit["at"]) for limit in column["limits"]],
        "limit_range": None
        if column["limit_range"] is None
        else [back(column["limit_range"][end]) for end in ("from", "to")],
    }
