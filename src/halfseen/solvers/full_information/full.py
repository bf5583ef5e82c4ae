"""``full``: the door of the full-information engine."""

from __future__ import annotations

import math
import numbers
import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import finite_vector, positive_number, real_array, whole_number
from halfseen.data.table import TableKind
from halfseen.errors import InputError, argument
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness, RuleKind
from halfseen.parallel import resolve_jobs, single_blas_thread
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.conditionals import check_covariance
from halfseen.solvers.full_information.checkpoint import EVERY, describe_run, open_checkpoint
from halfseen.solvers.full_information.learn import Settings, learn
from halfseen.solvers.full_information.learn_losses import LossyTable, learn_with_losses
from halfseen.solvers.full_information.m_step import (
    LARGEST_VARIANCE,
    SMALLEST_VARIANCE,
    CovarianceStructure,
    Diagonal,
    Free,
    Known,
    KnownCorrelation,
    MStep,
    Shrinkage,
    Sparse,
    with_floor,
)
from halfseen.solvers.full_information.problem import Overview, read_problem
from halfseen.solvers.full_information.rows import HeldRows, KeptRows, Rows
from halfseen.solvers.full_information.sparse import choose_penalty
from halfseen.solvers.full_information.starts import margins, start_from
from halfseen.solvers.full_information.tails import learn_tails, read_degrees
from halfseen.solvers.needs import OWN_VALUE, Needs
from halfseen.solvers.prepared_table import PreparedTable, prepared_table
from halfseen.solvers.result import Estimate, Note, Source, Status

Floats = NDArray[np.float64]

_RULES = OWN_VALUE | {RuleKind.THRESHOLDS, RuleKind.OTHER}
NEEDS = Needs({TableKind.VALUES: _RULES, TableKind.INTERVALS: _RULES, TableKind.PIECES: _RULES})
ACCURACY = 0.1
# With fewer rows for each column a free covariance is as good as singular once cells are hidden.
ROWS_PER_COLUMN = 2
MOST_STEPS = 500
# A known mean that is further from the seen values than this, in their spreads, is in other units.
FARTHEST = 1e6


def full(
    X: Any,
    missingness: Missingness | None = None,
    *,
    covariance: ArrayLike | str | None = None,
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
    covariance : array-like of shape (d, d), or {"free", "diagonal", "shrinkage", "sparse"}, optional
        The covariance, where it is known; or what it may be. "shrinkage" pulls correlations towards
        zero, "sparse" is the graphical lasso; both are for few rows. By default it is free, or
        shrunken where there are less than two rows for each column.
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
    rows: Rows
    if isinstance(X, KeptRows):
        # Moments of them are enough for a start; whoever keeps them says where they are from.
        nothing = Source(None, None, None, 0, n_jobs, {})
        rows, data = X, PreparedTable(X.moments, X.overview.missingness, nothing, n_jobs)
    else:
        data = prepared_table(X, missingness, n_jobs)
        rows = HeldRows(read_problem(data, None, missing_at_random), n_jobs)
    lossy = None
    if loss is not None:
        if not isinstance(rows, HeldRows):
            raise InputError(
                f"{argument('loss')} of rows that are kept elsewhere is an argument of fit."
            )
        lossy = LossyTable.read(rows.problem, data.table, data.stated, missing_at_random, loss)
        rows = HeldRows(lossy.problem(np.nan_to_num(lossy.asked.share)), n_jobs)
    rows.check()
    about = rows.overview
    options: dict[str, Any] = {
        "covariance": covariance, "correlation": correlation, "mean": mean,
        "shrinkage": shrinkage, "penalty": penalty,
    }  # fmt: skip
    m_step, notes = m_step_for(about, **options)
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
        elif start.dimension != about.shape[1]:
            raise InputError(
                f"start must be a Gaussian of {about.shape[1]} columns, as the data have; got "
                f"{start.dimension}."
            )
        else:
            first = about.from_units(start.mean, start.covariance)
        if isinstance(m_step.structure, Shrinkage) and _too_few_rows(about) and mean is None:
            m_step = replace(m_step, margins=margins(rows))
        first = m_step.admit(*first)
        if kept is not None:
            run = describe_run(rows, m_step, first, settings, (penalty, degrees), start is not None)
            settings = replace(settings, checkpoint=kept.for_run(run))
        if isinstance(m_step.structure, Sparse) and penalty is None:
            m_step = replace(m_step, structure=choose_penalty(rows, m_step.mean, first, settings))
        common, following = (m_step, first, settings, notes), start is not None
        if lossy is not None:
            return learn_with_losses(lossy, *common, source, following)
        if degrees == math.inf:
            return learn(rows, *common, source, following)
        return learn_tails(rows, *common, degrees, source, following)


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


def _too_few_rows(about: Overview) -> bool:
    """Whether a free covariance is as good as singular."""
    n, d = about.shape
    return n < ROWS_PER_COLUMN * d


def m_step_for(
    about: Overview,
    covariance: ArrayLike | str | None = None,
    correlation: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    shrinkage: float | None = None,
    penalty: float | None = None,
    **others: Any,
) -> tuple[MStep, list[Note]]:
    """Read what was said about the parameters, in the units of the table.

    ``others`` are options of a fit that say nothing about mean and covariance.
    """
    n, d = about.shape
    notes = []
    structure = choose_structure(about, covariance, correlation, shrinkage, penalty)
    if structure is None:
        structure = Free()
        if _too_few_rows(about):
            structure = Shrinkage()
            text = (
                f"{n} rows, {d} columns. Choose a structure of the covariance yourself to say how."
            )
            notes.append(Note(Status.REGULARISED, text))
    known = None
    if mean is not None:
        given = finite_vector("mean", mean, d)
        with np.errstate(over="ignore"):
            known = (given - about.centre) / about.scale
        far = np.flatnonzero(~(np.abs(known) < FARTHEST))
        if far.size:
            j = int(far[0])
            raise InputError(
                f"the mean of column {about.names[j]} is said to be {given[j]:g}, but its seen "
                f"values lie around {about.centre[j]:g} with a spread of {about.scale[j]:g}. Check "
                "the units."
            )
    return MStep(structure, known), notes


def choose_structure(
    about: Overview,
    covariance: ArrayLike | str | None,
    correlation: ArrayLike | None,
    shrinkage: float | None,
    penalty: float | None,
) -> CovarianceStructure | None:
    """Read what was said about the covariance; None where nothing was."""
    d = about.shape[1]
    if correlation is not None:
        if covariance is not None:
            raise InputError(f"give {argument('covariance')} or correlation=, not both.")
        given = real_array("correlation", correlation)
        if given.shape != (d, d) or not np.allclose(np.diag(given), 1.0, atol=1e-8):
            raise InputError(
                f"correlation must have shape ({d}, {d}) and ones on its diagonal; got shape "
                f"{given.shape}."
            )
        return KnownCorrelation(with_floor(Gaussian(np.zeros(d), given).covariance))
    name = covariance if isinstance(covariance, str) else None
    if shrinkage is not None:
        if name != "shrinkage":
            raise InputError('shrinkage= is the share for covariance="shrinkage"; say both.')
        number = isinstance(shrinkage, numbers.Real) and not isinstance(shrinkage, bool)
        if not number or not 0.0 <= shrinkage <= 1.0:
            raise InputError(f"shrinkage must lie between 0 and 1; got {shrinkage!r}.")
    if penalty is not None and name != "sparse":
        raise InputError('penalty= is for covariance="sparse"; say both.')
    if name is not None:
        structures: dict[str, CovarianceStructure | None] = {
            "free": Free(),
            "diagonal": Diagonal(),
            "shrinkage": Shrinkage(shrinkage),
            "sparse": Sparse(1.0 if penalty is None else positive_number("penalty", penalty)),
        }
        if name not in structures:
            raise InputError(
                "covariance must be an array (where it is known) or one of "
                f"{', '.join(structures)}; got {name!r}."
            )
        return structures[name]
    if covariance is None:
        return None
    known = check_covariance(covariance, d).covariance
    with np.errstate(over="ignore", under="ignore"):
        known = known / np.outer(about.scale, about.scale)
    odd = np.flatnonzero(
        ~((np.diag(known) > SMALLEST_VARIANCE) & (np.diag(known) < LARGEST_VARIANCE))
    )
    if odd.size:
        j = int(odd[0])
        raise InputError(
            f"the variance of column {about.names[j]} is said to be {np.diag(known)[j]:.3g} times "
            "that of its seen values. Check the units."
        )
    return Known(known)
