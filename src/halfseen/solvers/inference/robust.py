"""Standard errors that do not believe the model: the sandwich estimator.

Where rows are not Gaussian, or not independent, the maximum of the likelihood still settles on
something, but not with the errors of the information I. What rows say apart from each other, the sum M
of the outer products of their scores, takes the place of what the model says they would: I⁻¹ M I⁻¹.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError, warn
from halfseen.kernels.paths import law_of
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.charts import score_of
from halfseen.solvers.full_information.expectation import (
    Block,
    Parameters,
    Sampling,
    at_random,
    confines_of,
    expect,
    grouped,
)
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.inference.fitted_table import read_source
from halfseen.solvers.inference.uncertainty import StandardErrors
from halfseen.solvers.result import name_some
from halfseen.theta import pack_slopes, parameter_names

if TYPE_CHECKING:
    from halfseen.results import Fit

Floats = NDArray[np.float64]

# Points for each row that is sampled.
POINTS = 256
# Robust errors that are so many times those of the model, or more than that by chance, are said.
MUCH_LARGER, BY_CHANCE = 1.5, 3.0


def robust_errors(fit: Fit, clusters: Any = None) -> StandardErrors:
    """Return standard errors from the scatter of the rows; see ``Fit.robust_standard_errors``."""
    errors = fit.standard_errors
    if fit.source is None or fit.source.X is None:
        raise InputError(
            "robust standard errors need the rows, and this fit does not hold its table (a saved fit "
            "never does)."
        )
    if fit.parameters == 0:
        raise InputError("every parameter is known, so there are no standard errors to find.")
    if not np.isinf(fit.degrees):
        raise InputError(
            'robust standard errors are for Gaussian fits; one with errors="t" has heavy tails in its '
            "model. For rows that belong together, use the Gaussian fit."
        )
    if errors.parameters is None:
        raise InputError(
            f"with {len(fit.names)} columns only pairs of columns are looked at; for errors that do "
            "not believe the model, use fit.bootstrap()."
        )
    problem = read_source(fit, None)
    groups = read_clusters(clusters, fit.rows)
    g = fit.gaussian
    scores = row_scores(problem, *problem.from_units(g.mean, g.covariance), fit.source.n_jobs)
    scores = scores / problem.overview.units
    if groups is not None:
        count = int(groups.max()) + 1
        together = np.zeros((count, scores.shape[1]))
        np.add.at(together, groups, scores)
        # As few clusters scatter too little around their own average.
        scores = together * np.sqrt(count / (count - 1.0))
    spread = scores @ errors.parameters
    found = StandardErrors.from_parameters(g, spread.T @ spread, errors.missing)
    _compare(fit, found, len(scores))
    return found if errors.label is None else found.labelled(errors.label)


def row_scores(
    problem: Problem, mean: Floats, covariance: Floats, n_jobs: int | None = None
) -> Floats:
    """Return the derivative of each row's log-likelihood in (μ, Σ_ij for i >= j), in its units."""
    with single_blas_thread():
        at = Parameters.of(mean, covariance)
    holes, free, confines = problem.holes, at_random(problem.holes), confines_of(problem.holes)
    law, P = law_of(confines), at.precision
    sampling = Sampling(POINTS, 0, 0, Purpose.LIKELIHOOD, at)

    def score(row: int) -> Floats:
        own = slice(row, row + 1)
        block = Block(own, row, grouped(holes.take(own), free[own]), law)
        moments = expect(problem.Y, block, confines, at, sampling)[0].moments(mean, 1)
        return pack_slopes(*score_of(moments, mean, covariance, P, 1))

    with single_blas_thread():
        return np.array(list(map_in_order(score, range(problem.shape[0]), n_jobs)))


def read_clusters(given: Any, rows: int) -> NDArray[np.intp] | None:
    """Return the number of the cluster of each row."""
    if given is None:
        return None
    try:
        labels = np.asarray(given)
    except ValueError:
        raise InputError(
            f"clusters must name the cluster of each of the {rows} rows; got lists of different lengths."
        ) from None
    if labels.shape != (rows,):
        raise InputError(
            f"clusters must name the cluster of each of the {rows} rows; got shape {labels.shape}."
        )
    # NaN, NaT and the like are not themselves.
    missing = np.array([one is None or bool(one != one) for one in labels.tolist()])
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise InputError(
            f"clusters must name the cluster of each row; that of row {row} is missing."
        )
    try:
        found, numbers = np.unique(labels, return_inverse=True)
    except TypeError:
        raise InputError(
            "clusters must be of one kind, all numbers or all texts, so that they can be told apart."
        ) from None
    if found.size < 2:
        raise InputError(f"at least 2 clusters are needed; all rows are in {found.tolist()[0]!r}.")
    return np.asarray(numbers, dtype=np.intp).reshape(rows)


def _compare(fit: Fit, found: StandardErrors, count: int) -> None:
    """Warn where errors are others than those of the model, by more than chance."""
    assert fit.uncertainty is not None
    model, robust = fit.uncertainty.vector(), found.vector()
    known = model > 0.0
    ratio = np.where(known, robust / np.where(known, model, 1.0), 1.0)
    # The root of an average of ``count`` squares of squares of normal numbers: (1 ± √(24/count)/4).
    allowed = max(MUCH_LARGER, 1.0 + BY_CHANCE * np.sqrt(1.5 / count))
    odd = np.flatnonzero((ratio > allowed) | (ratio < 1.0 / allowed))
    if not odd.size:
        return
    names = parameter_names(fit.names)
    order = odd[np.argsort(-np.abs(np.log(ratio[odd])), kind="stable")]
    some = name_some([f"{names[k]} ({ratio[k]:.1f} times)" for k in order])
    warn(
        f"standard errors that do not believe the model differ from its own: {some}. Rows have heavier "
        "or lighter tails than a Gaussian, belong together, or are of several kinds; see hs.diagnose.",
    )
