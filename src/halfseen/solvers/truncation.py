"""``truncation``: the paper's estimator from seen values, solved exactly instead of by SGD."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.parallel import single_blas_thread
from halfseen.solvers.assemble import EIGENVALUE_FLOOR, assemble
from halfseen.solvers.columns import Marginals, truncated_marginals
from halfseen.solvers.correlations import Correlations, Spread, solve_pairs
from halfseen.solvers.needs import BY_PAIRS, Needs
from halfseen.solvers.plane import solve_planes
from halfseen.solvers.prepare import ByColumn, joint_row_notes, pair_names, prepare
from halfseen.solvers.result import Estimate, Note, Status, name_some, projection_notes

Form = Literal["correlation", "paper"]

NEEDS = Needs(BY_PAIRS, believes=False)


def truncation(
    X: Any,
    missingness: Missingness | None = None,
    *,
    form: Form = "correlation",
    eigenvalue_floor: float = EIGENVALUE_FLOOR,
    n_jobs: int | None = None,
    spread: Spread | None = None,
) -> Estimate:
    """Learn a Gaussian from the seen values alone.

    Each column is a one-dimensional truncated problem and each pair a two-dimensional one, as in
    Algorithm 1 of the paper; both are convex and solved by Newton's method, with exact moments in
    place of sampled ones. Hidden cells are not used, so the answer stays right when some of them
    are missing completely at random, for reasons that have nothing to do with any value. Where they
    are missing for other reasons, use ``full`` with ``missing_at_random=``.

    Parameters
    ----------
    X : array-like of shape (n, d), data frame, or PairMoments
        NaN where a value is hidden.
    missingness : SelfCensoring or DetectionLimits, optional
        What hides a value. None: nothing does, and NaN is missing at random.
    form : {"correlation", "paper"}
        "correlation" keeps the one-dimensional answers and solves each pair for its correlation
        alone, which about halves the error; "paper" frees all five parameters of each pair and
        keeps Σ̂₁₂, as the paper does.
    eigenvalue_floor : float
        Smallest eigenvalue of the assembled correlation matrix.
    n_jobs : int or None
        Threads; None for all cores. The answer does not depend on it.
    spread : callable, optional
        Who solves the pairs, in place of threads: the ``map`` of an engine.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import halfseen as hs
    >>> truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> fit = hs.solvers.truncation(hs.simulate(truth, rule, 20_000), rule)
    >>> bool(abs(fit.correlation[0, 1] - 0.5) < 0.05)
    True
    """
    if form not in ("correlation", "paper"):
        raise InputError(f'form must be "correlation" or "paper"; got {form!r}.')
    data = prepare(X, missingness, "truncation", n_jobs)
    with single_blas_thread():
        marginals = truncated_marginals(data.columns)
        pairs = solve_pairs(data.moments, data.columns, marginals, False, data.mask, n_jobs, spread)
        if form == "paper":
            pairs = solve_planes(data.moments, data.columns, marginals, pairs, data.mask, n_jobs)
        return finish(data, marginals, pairs, "truncation", eigenvalue_floor, {"form": form})


def finish(
    data: ByColumn,
    marginals: Marginals,
    pairs: Correlations,
    method: str,
    floor: float,
    history: dict[str, Any],
) -> Estimate:
    """Assemble the pieces into an ``Estimate``, with notes on whatever was out of the ordinary."""
    covariance, before, projected = assemble(marginals.deviation, pairs.rho, floor)
    notes = joint_row_notes(data.moments)
    notes += projection_notes(covariance, before, projected, floor)
    edge = [data.names[i] for i in np.flatnonzero(marginals.minimum.on_edge)]
    edge += pair_names(data.names, pairs.on_edge)
    if edge:
        notes.append(Note(Status.ON_DOMAIN_EDGE, f"On the edge: {name_some(edge)}."))
    unsettled = [data.names[i] for i in np.flatnonzero(~marginals.minimum.converged)]
    unsettled += pair_names(data.names, ~pairs.converged)
    if unsettled:
        notes.append(Note(Status.NOT_CONVERGED, f"Not settled: {name_some(unsettled)}."))
    return Estimate(
        Gaussian(marginals.mean, covariance),
        method,
        data.names,
        data.moments.rows,
        data.columns.share,
        tuple(notes),
        {**history, "covariance_before_projection": before},
    )
