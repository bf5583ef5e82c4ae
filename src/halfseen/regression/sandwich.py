"""Standard errors that do not believe the model, for a regression: by rows or by clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.parallel import single_blas_thread
from halfseen.regression.row_weights import by_row
from halfseen.solvers.inference.robust import read_clusters
from halfseen.solvers.regression.cut_points import STEP, CutPoints
from halfseen.solvers.regression.leverage import (
    LEAST_LEFT,
    MOST_GROUPS,
    row_information,
    without_own,
)
from halfseen.solvers.regression.prediction import place_of, rows_of
from halfseen.solvers.regression.robust import added_up, in_parameters, row_scores, row_values

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]


def robust_covariance(fit: RegressionFit, clusters: Any = None) -> tuple[Floats, int | None]:
    """Return the covariance of the parameters from the scatter of scores, and how many clusters.

    I⁻¹ M I⁻¹, with M the sum of the outer products of what rows, or clusters of rows, say; where these
    are few, of what they say of an estimate that has not seen them.
    """
    if fit.source is None:
        raise InputError(
            "robust standard errors need the rows, which a saved fit does not hold, nor one of a table "
            "in pieces: ask for them where it is fitted, regress(..., robust=True)."
        )
    inverse = fit.source.inverse
    if inverse is None:
        raise InputError("this regression has no standard errors to begin with.")
    groups = read_clusters(by_row(clusters, fit.data, "clusters"), fit.rows)
    count = fit.rows if groups is None else int(groups.max()) + 1
    with single_blas_thread():
        scores = added_up(_scores(fit), groups)
        if fit.truncation is not None or count > MOST_GROUPS:
            learned = fit.parameters if groups is None else 1
            scores = scores * np.sqrt(count / max(count - learned, 1.0))
        else:
            few = 1.0 if groups is None else np.sqrt((count - 1.0) / count)
            scores = few * _without_own(fit, scores, groups, inverse)
        spread = scores @ inverse
    return spread.T @ spread, None if groups is None else count


def _without_own(
    fit: RegressionFit, scores: Floats, groups: NDArray[np.intp] | None, inverse: Floats
) -> Floats:
    """Return what rows, or clusters, say of an estimate that has not seen them."""
    model, equations, place = fit.source.model, fit.equations, place_of(fit)  # type: ignore[union-attr]
    assert equations is not None
    rows = rows_of(model.outcomes, model.W, equations, fit.source.n_jobs)  # type: ignore[union-attr]
    counts = np.ones(fit.rows) if model.row_weights is None else model.row_weights
    information = counts[:, None, None] * row_information(rows, place)
    j, t = fit.free.nonzero()
    # Of the covariance of residuals a group knows about as much as it has of the rows.
    share = added_up(counts[:, None], groups) / fit.rows
    left = np.maximum(1.0 - share, LEAST_LEFT)
    scores = np.hstack([scores[:, : j.size], scores[:, j.size :] / left])

    def into(some: NDArray[np.intp]) -> Floats:
        """Coefficients stand before all other parameters."""
        out = np.zeros((some.size, len(fit.outcomes), scores.shape[1]))
        out[:, j, np.arange(j.size)] = model.W[np.ix_(some, t)] / equations.scale[j]
        return out

    parts: Any = np.arange(fit.rows)[:, None]
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    return without_own(scores, information, into, inverse, parts)


def _scores(fit: RegressionFit) -> Floats:
    """Return the derivatives of what each row counts in the parameters of a fit."""
    model, equations, place = fit.source.model, fit.equations, place_of(fit)  # type: ignore[union-attr]
    assert equations is not None
    if fit.source.scores is not None:  # type: ignore[union-attr]
        return fit.source.scores  # type: ignore[union-attr]
    rows = rows_of(model.outcomes, model.W, equations, fit.source.n_jobs)  # type: ignore[union-attr]
    scores = row_scores(rows, place)
    whole = scores @ in_parameters(equations, model.free)
    counts = 1.0 if model.row_weights is None else model.row_weights[:, None]
    if not fit.cut_points:
        return np.asarray(counts * whole)
    cuts = CutPoints.of(rows, fit.outcomes, fit.cut_points)
    vector = np.concatenate([fit.cut_points[name][1:] for name in cuts.names])
    ends = [
        [row_values(cuts.rows_at(vector + s * unit), place) for s in (-STEP, STEP)]
        for unit in np.eye(vector.size)
    ]
    of_cuts = [(high - low) / (2.0 * STEP) for low, high in ends]
    return np.asarray(counts * np.column_stack([whole, *of_cuts]))
