"""Standard errors that do not believe the model, for a regression: by rows or by clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.design import columns_of
from halfseen.errors import InputError
from halfseen.parallel import single_blas_thread
from halfseen.solvers.inference.robust import read_clusters
from halfseen.solvers.regression.cut_points import STEP, CutPoints
from halfseen.solvers.regression.prediction import place_of, rows_of
from halfseen.solvers.regression.robust import clustered, in_parameters, row_scores, row_values

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]


def robust_covariance(fit: RegressionFit, clusters: Any = None) -> tuple[Floats, int | None]:
    """Return the covariance of the parameters from the scatter of scores, and how many clusters.

    I⁻¹ M I⁻¹, with M the sum of the outer products of what rows, or clusters of rows, say.
    """
    if fit.source is None:
        raise InputError(
            "robust standard errors need the rows, which a saved fit does not hold, nor one of a table "
            "in pieces: ask for them where it is fitted, regress(..., robust=True)."
        )
    if fit.covariance is None:
        raise InputError("this regression has no standard errors to begin with.")
    groups = read_clusters(_column(fit, clusters), fit.rows)
    with single_blas_thread():
        scores = clustered(_scores(fit), groups)
    spread = scores @ fit.covariance
    return spread.T @ spread, None if groups is None else int(groups.max()) + 1


def _column(fit: RegressionFit, clusters: Any) -> Any:
    """Return the column that a name stands for."""
    if not isinstance(clusters, str):
        index, own = getattr(clusters, "index", None), getattr(fit.data, "index", None)
        # A list has a method of that name.
        index = None if callable(index) else index
        if (
            fit.frame == "pandas"
            and index is not None
            and own is not None
            and not own.equals(index)
        ):
            raise InputError(
                "clusters have other labels than the rows that were fitted, or another order: pass "
                "clusters.loc[data.index], or the name of a column."
            )
        return clusters
    columns = columns_of(fit.data)
    columns.check(clusters, "the column of clusters")
    return columns[clusters]


def _scores(fit: RegressionFit) -> Floats:
    """Return the derivatives of each row's log-likelihood in the parameters of a fit."""
    model, equations, place = fit.source.model, fit.equations, place_of(fit)  # type: ignore[union-attr]
    assert equations is not None
    if fit.source.scores is not None:  # type: ignore[union-attr]
        return fit.source.scores  # type: ignore[union-attr]
    rows = rows_of(model.outcomes, model.W, equations, fit.source.n_jobs)  # type: ignore[union-attr]
    scores = row_scores(rows, place)
    whole = scores @ in_parameters(equations, model.free)
    if not fit.cut_points:
        return np.asarray(whole)
    cuts = CutPoints.of(rows, fit.outcomes, fit.cut_points)
    vector = np.concatenate([fit.cut_points[name][1:] for name in cuts.names])
    ends = [
        [row_values(cuts.rows_at(vector + s * unit), place) for s in (-STEP, STEP)]
        for unit in np.eye(vector.size)
    ]
    of_cuts = [(high - low) / (2.0 * STEP) for low, high in ends]
    return np.column_stack([whole, *of_cuts])
