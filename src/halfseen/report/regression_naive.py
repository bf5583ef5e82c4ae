"""What people do without better means: least squares where values are seen, or with half the limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.parallel import single_blas_thread
from halfseen.report.shown_table import Kind, ShownColumn

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]

NONE: dict[str, Any] = {"seen": None, "half": None, "rows": None, "deviation": np.nan}


def naive_coefficients(
    fit: RegressionFit, columns: Sequence[ShownColumn] | None
) -> list[dict[str, Any]]:
    """Return naive coefficients of each outcome, all terms in a row; None where there are none.

    Least squares over the rows in which the outcome is seen, the residuals' deviation with it; and the
    same after the usual patch: half the limit in place of what lies below it. Of latent outcomes
    there is nothing of the kind.
    """
    if columns is None:
        return [NONE] * len(fit.outcomes)
    with single_blas_thread():
        return [
            _of_outcome(fit, j, cells) if kind == "continuous" else NONE
            for j, (kind, cells) in enumerate(zip(fit.kinds, columns, strict=True))
        ]


def _of_outcome(fit: RegressionFit, j: int, cells: ShownColumn) -> dict[str, Any]:
    seen = cells.kind == Kind.SEEN
    coefficients, deviation = _least_squares(fit, j, np.where(seen, cells.lower, np.nan))
    patched = with_half_the_limit(cells)
    half = None if patched is None else _least_squares(fit, j, patched)[0]
    return {"seen": coefficients, "half": half, "rows": int(seen.sum()), "deviation": deviation}


def with_half_the_limit(cells: ShownColumn) -> Floats | None:
    """Return the values after the usual patch, NaN where it says nothing.

    Values above a limit are set to it, and those between limits to the middle. None where nothing lies
    below a limit, or where half of a limit is no smaller than the limit.
    """
    kind = cells.kind
    below = kind == Kind.BELOW
    if not below.any() or (kind == Kind.EITHER).any():
        return None
    if not ((cells.upper[below] > 0.0).all() and (cells.seen >= 0.0).all()):
        return None
    values = np.where(kind == Kind.SEEN, cells.lower, np.nan)
    values[below] = 0.5 * cells.upper[below]
    above, between = kind == Kind.ABOVE, kind == Kind.BETWEEN
    values[above] = cells.lower[above]
    values[between] = 0.5 * (cells.lower[between] + cells.upper[between])
    return values


def _least_squares(fit: RegressionFit, j: int, y: Floats) -> tuple[Floats | None, float]:
    """Return coefficients over the rows with a value, and the deviation of the residuals.

    Coefficients that are given stay as they are. None where the rows do not determine the others.
    """
    assert fit.source is not None
    W, rows, free = fit.source.model.W, ~np.isnan(y), fit.free[j]
    left = y[rows] - W[np.ix_(rows, ~free)] @ fit.weights[j, ~free]
    own, out = W[np.ix_(rows, free)], fit.weights[j].copy()
    if rows.sum() <= free.sum():
        return None, np.nan
    counts = fit.source.model.row_weights
    if counts is not None:
        root = np.sqrt(counts[rows])
        own, left = own * root[:, None], left * root
    # In units of the columns, so that the rank does not depend on them.
    size = np.sqrt((own * own).sum(axis=0))
    found, _, rank, _ = np.linalg.lstsq(own / np.where(size > 0.0, size, 1.0), left, rcond=None)
    if rank < free.sum():
        return None, np.nan
    out[free] = found / size
    rest = left - own @ out[free]
    return out, float(np.sqrt(rest @ rest / (rows.sum() - free.sum())))
