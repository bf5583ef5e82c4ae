"""``full``: the door of the full-information engine."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from halfseen.checks import positive_number, whole_number
from halfseen.data.table import TableKind
from halfseen.errors import InputError, argument
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness, RuleKind
from halfseen.parallel import resolve_jobs, single_blas_thread
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.full_information.checkpoint import EVERY, describe_run, open_checkpoint
from halfseen.solvers.full_information.factors import choose_factors
from halfseen.solvers.full_information.learn import Settings, learn
from halfseen.solvers.full_information.learn_losses import learn_with_losses
from halfseen.solvers.full_information.m_step import MStep, Shrinkage, Sparse
from halfseen.solvers.full_information.parameter_options import (
    ROWS_PER_COLUMN,
    m_step_for,
    too_few_rows,
)
from halfseen.solvers.full_information.read_rows import read_rows
from halfseen.solvers.full_information.sparse import choose_penalty
from halfseen.solvers.full_information.starts import margins, start_from
from halfseen.solvers.full_information.tails import learn_tails, read_degrees
from halfseen.solvers.prepared_table import OWN_VALUE, Needs
from halfseen.solvers.result import Estimate
from halfseen.solvers.structures import Factor, Structure

_RULES = OWN_VALUE | {RuleKind.THRESHOLDS, RuleKind.OTHER}
NEEDS = Needs({TableKind.VALUES: _RULES, TableKind.INTERVALS: _RULES, TableKind.PIECES: _RULES})
ACCURACY = 0.1
MOST_STEPS = 500


def full(
    X: Any,
    missingness: Missingness | None = None,
    *,
    covariance: ArrayLike | str | Structure | None = None,
    correlation: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    missing_at_random: ArrayLike | None = None,
    loss: Any = None,
    shrinkage: float | None = None,
    penalty: float | None = None,
    errors: str = "normal",
    degrees_of_freedom: float | None = None,
    accuracy: float = ACCURACY,
    most_steps: int = MOST_STEPS,
    standard_errors: bool = True,
    start: Gaussian | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = EVERY,
    resume: bool = False,
) -> Estimate:
    """Learn a Gaussian from every seen value and from where every hidden one can be.

    The likelihood of what is seen is climbed to its top. Cells that are missing at random are integrated
    out; so are those that the rule confines, in rows with one or two of them, and in other rows they are
    sampled. It reaches the Cramér–Rao limit where the information can be had at all. It starts from
    ``pairwise`` or from the columns one by one, and believes that a hidden cell was hidden by the rule
    unless told otherwise.

    Parameters
    ----------
    X : array-like of shape (n, d), data frame, or IntervalData
        NaN where a value is hidden. (Or rows that are kept elsewhere, from ``fit``.)
    missingness : Missingness, optional
        What hides a value; not with ``IntervalData``, which says it for each cell. None: NaN is missing
        at random.
    covariance : array-like of shape (d, d), structure or str, optional
        The covariance, where it is known; or what it may be: "free", "diagonal", a structure such as
        ``CompoundSymmetry()``, ``AR1()``, ``Toeplitz()``, ``Factor(2)``, ``Kronecker(2, 4)``,
        ``RandomEffects(Z)`` and ``BlockDiagonal([2, 3])``, or its text, "ar1". "shrinkage" pulls
        correlations towards zero, "sparse" is the graphical lasso; both are for few rows. By default it
        is free, or shrunken where there are less than two rows for each column.
    correlation : array-like of shape (d, d), optional
        The correlation matrix, where it is known; the scale of each column is then free.
    mean : array-like of shape (d,), optional
        The mean, where it is known.
    missing_at_random : boolean array of shape (n, d), optional
        Hidden cells that are simply missing: the rule says nothing about them.
    loss : float, "learn", mapping or sequence, optional
        Share of the values that the rule shows which were lost all the same, for reasons that have
        nothing to do with any value; their cells are hidden like others. One for all columns that have
        a rule, or one for each, by name in a mapping; "learn" estimates it, with an interval and a test
        that nothing was lost (``Fit.loss``).
    shrinkage : float, optional
        The share for ``covariance="shrinkage"``, between 0 and 1; chosen from the data by default.
    penalty : float, optional
        The penalty for ``covariance="sparse"``, on the scale of correlations; chosen by the
        extended Bayesian information criterion by default.
    errors : {"normal", "t"}
        "t" for heavy tails: rows of a multivariate t distribution, of which the location, the scatter
        matrix and the degrees of freedom are learned (``fit.tails``). Rows far out then count less.
    degrees_of_freedom : float, optional
        Of the t distribution, where they are known: at least 1.
    accuracy : float
        When to stop sampling: the Monte-Carlo standard error of every parameter, as a share of its
        statistical standard error (of the one with complete data where that is not computed). What may
        be left to be gained in log-likelihood is below a quarter of a unit in any case.
    most_steps : int
        When to stop in any case: each step asks every row once.
    standard_errors : bool
        Whether to compute statistical standard errors.
    start : Gaussian, optional
        Where to start from.
    random_state : int, Generator or None
        Seed of the sampling.
    progress : bool
        Whether to show a bar.
    n_jobs : int or None
        Threads; None for all cores. The answer does not depend on it.
    checkpoint : path, optional
        A file that is written from time to time, whole or not at all, with all that is needed to go on
        from there; also when Ctrl-C is pressed, which then ends in ``errors.Interrupted``.
    every : float
        Seconds between one checkpoint and the next; 0 for one after each step.
    resume : bool
        Whether to go on from ``checkpoint`` if it is there. The answer is that of a run that was never
        stopped, to the last bit.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import halfseen as hs
    >>> truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> fit = hs.solvers.full(hs.simulate(truth, rule, 5000), rule, random_state=0)
    >>> bool(abs(fit.mean).max() < 4 * fit.standard_errors.mean.max())
    True
    """
    resolve_jobs(n_jobs)
    degrees = read_degrees(errors, degrees_of_freedom)
    kept = open_checkpoint(checkpoint, every, resume)
    settings = Settings(
        positive_number("accuracy", accuracy),
        whole_number("most_steps", most_steps),
        standard_errors,
        seed_of(random_state) if kept is None else kept.seed_or(random_state),
        progress,
        n_jobs,
    )
    rows, data, lossy = read_rows(X, missingness, missing_at_random, loss, n_jobs)
    rows.check()
    overview = rows.overview
    options: dict[str, Any] = {
        "covariance": covariance, "correlation": correlation, "mean": mean,
        "shrinkage": shrinkage, "penalty": penalty,
    }  # fmt: skip
    m_step, notes = m_step_for(overview, **options)
    if degrees != math.inf:
        _check_tails(m_step, loss)
        options |= {"errors": errors, "degrees_of_freedom": degrees_of_freedom}
    source = replace(
        data.source,
        missing_at_random=missing_at_random,
        seed=settings.seed,
        n_jobs=n_jobs,
        options=options,
        loss=loss,
    )
    with single_blas_thread():
        if start is None:
            first = start_from(data, rows, n_jobs)
        elif not isinstance(start, Gaussian):
            raise InputError(
                f"start must be a Gaussian, such as that of another fit; got {start!r}."
            )
        elif start.dimension != overview.shape[1]:
            raise InputError(
                f"start must be a Gaussian of {overview.shape[1]} columns, as the data have; got "
                f"{start.dimension}."
            )
        else:
            first = overview.from_units(start.mean, start.covariance)
        if isinstance(m_step.structure, Shrinkage) and too_few_rows(overview) and mean is None:
            m_step = replace(m_step, margins=margins(rows))
        by_criterion = isinstance(m_step.structure, Factor) and m_step.structure.k == "bic"
        if not by_criterion:
            first = m_step.admit(*first)
        if kept is not None:
            run = describe_run(rows, m_step, first, settings, (penalty, degrees), start is not None)
            settings = replace(settings, checkpoint=kept.for_run(run))
        if isinstance(m_step.structure, Sparse) and penalty is None:
            m_step = replace(m_step, structure=choose_penalty(rows, m_step.mean, first, settings))
        criteria = None
        if by_criterion:
            m_step, first, criteria = choose_factors(rows, m_step, first, settings)
            options["covariance"] = m_step.structure
        common, following = (m_step, first, settings, notes), start is not None
        if lossy is not None:
            found = learn_with_losses(lossy, *common, source, following)
        elif degrees == math.inf:
            found = learn(rows, *common, source, following)
        else:
            found = learn_tails(rows, *common, degrees, source, following)
    if criteria is None:
        return found
    return replace(found, history={**found.history, "criteria_of_factors": criteria})


def _check_tails(m_step: MStep, loss: Any) -> None:
    """Raise where a t distribution cannot be learned."""
    if loss is not None:
        lost, heavy = argument("loss"), argument("errors", "t")
        raise InputError(f"{lost} goes with normal errors: leave {heavy} or {lost} out.")
    if m_step.structure.regularised:
        raise InputError(
            f"{argument('errors', 't')} needs a covariance that is free, diagonal or known, or "
            f"known correlations, and at least {ROWS_PER_COLUMN} rows for each column; this one is "
            f"pulled towards something ({m_step.structure.name})."
        )
