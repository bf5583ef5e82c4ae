"""``pairwise``: seen values and who is hidden, two columns at a time."""

from __future__ import annotations

from typing import Any

from halfseen.errors import warn
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.parallel import single_blas_thread
from halfseen.solvers.columns import Marginals, censored_marginals
from halfseen.solvers.correlations import (
    EIGENVALUE_FLOOR,
    Correlations,
    Spread,
    assemble,
    solve_pairs,
)
from halfseen.solvers.prepared_table import (
    BY_PAIRS,
    ByColumn,
    Needs,
    PreparedTable,
    by_column,
    prepare,
)
from halfseen.solvers.result import Estimate, name_some
from halfseen.solvers.truncation import finish

NEEDS = Needs(BY_PAIRS)


def pairwise(
    X: Any,
    missingness: Missingness | None = None,
    *,
    eigenvalue_floor: float = EIGENVALUE_FLOOR,
    n_jobs: int | None = None,
    spread: Spread | None = None,
) -> Estimate:
    """Learn a Gaussian from the seen values and from which cells are hidden.

    Each column is a censored one-dimensional problem; each pair then has one correlation, from the
    values where both are seen and the 2×2 table of seen and hidden elsewhere. It is a likelihood of
    coarsened data, and costs no more than ``truncation``. It believes that a hidden cell was hidden
    by the rule; use ``truncation`` where cells are also missing completely at random and nobody can
    tell which, or ``full`` with ``missing_at_random=``.

    Parameters
    ----------
    X : array-like of shape (n, d), data frame, or PairMoments
        NaN where a value is hidden.
    missingness : SelfCensoring or DetectionLimits, optional
        What hides a value. Hidden cells of a column that is always shown are taken to be missing
        at random.
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
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> fit = hs.solvers.pairwise(hs.simulate(truth, rule, 20_000), rule)
    >>> bool(abs(fit.mean).max() < 0.03)
    True
    """
    data = prepare(X, missingness, "pairwise", n_jobs)
    ignorable = [
        name
        for name, column in zip(data.names, data.columns.items, strict=True)
        if column.ignorable
    ]
    if missingness is not None and ignorable:
        warn(
            "cells are hidden where the rule shows every value, in column "
            f"{name_some(ignorable)}; they are taken to be missing at random. State what hides "
            "them, if something does."
        )
    with single_blas_thread():
        marginals, pairs = solve_by_column(data, n_jobs, spread)
        return finish(data, marginals, pairs, "pairwise", eigenvalue_floor, {})


def solve_by_column(
    data: ByColumn, n_jobs: int | None, spread: Spread | None = None
) -> tuple[Marginals, Correlations]:
    """Solve each column, and then each pair for its correlation."""
    marginals = censored_marginals(data.columns)
    pairs = solve_pairs(data.moments, data.columns, marginals, True, data.mask, n_jobs, spread)
    return marginals, pairs


def pairwise_gaussian(data: PreparedTable, n_jobs: int | None) -> Gaussian:
    """Return the Gaussian alone, of a table that was found to agree with its rule."""
    marginals, pairs = solve_by_column(by_column(data), n_jobs)
    covariance, _, _ = assemble(marginals.deviation, pairs.rho, EIGENVALUE_FLOOR)
    return Gaussian(marginals.mean, covariance)
