"""One door to every check of a table and its rule."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import whole_number
from halfseen.diagnostics.assumptions import paper_constants
from halfseen.diagnostics.checked_table import CheckedTable, read, without_a_fit
from halfseen.diagnostics.diagnosis import Diagnosis, PairShares, clopper_pearson
from halfseen.diagnostics.findings import collect
from halfseen.diagnostics.fitted_rows import FittedTable, Ground, stand_on, with_fit
from halfseen.diagnostics.mechanism import look_at_mechanism, taken_at_random
from halfseen.diagnostics.normality import suggest_transforms
from halfseen.diagnostics.together import Losses, judge_losses, judge_normality
from halfseen.errors import HalfseenWarning, InputError
from halfseen.missingness.base import Missingness
from halfseen.parallel import single_blas_thread
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.loop import progress_bar
from halfseen.solvers.prepared_table import FEW_JOINT_ROWS
from halfseen.solvers.result import Estimate

Counts = NDArray[np.int_]

# Fewer simulations than this could not tell a p-value of 0.05 from one of 0.01.
FEWEST_SIMULATIONS = 19


def diagnose(
    X: Any,
    missingness: Missingness | None = None,
    *,
    fit: Estimate | None = None,
    covariance: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    beta: float | None = None,
    missing_at_random: Any = None,
    names: Sequence[str] | None = None,
    transforms: Any = None,
    simulations: int = 199,
    random_state: RandomState = 0,
    progress: bool = False,
) -> Diagnosis:
    """Check a table, the rule that hides its values, and the normality of what is behind it.

    Nothing is raised for data that contradict their rule: contradictions are reported, and the
    cells concerned are left out of all other checks.

    Parameters
    ----------
    X : array-like of shape (n, d), data frame, IntervalData or Fit
        NaN where a value is hidden. A fit brings its table, rule and transforms.
    missingness : Missingness, optional
        What hides a value; None: nothing does, or the table says it itself. Or ``rounded(...)``.
    fit : Estimate, optional
        What was learned from the table, for checks of all columns together.
    covariance : array-like of shape (d, d), optional
        Σ, for the constants that depend on it; that of the fit by default.
    mean : array-like of shape (d,), optional
        The mean, for γ; that of the fit by default.
    beta : float, optional
        Share of the columns that are to be seen together; by default a pair for rules by column (the
        paper's first assumption), one column for rules that bind columns together.
    missing_at_random : boolean array of shape (n, d), optional
        Cells that are missing for no modelled reason.
    names : sequence of str, optional
        As in ``fit``: names of the columns; by default those of the data frame.
    transforms : str, dict or sequence, optional
        As in ``fit``: the scales on which columns are tested.
    simulations : int
        Simulated tables behind each p-value.
    random_state : int, Generator or None
        Seed of simulations and of sampled subsets.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    Diagnosis

    Notes
    -----
    Two questions have one p-value each. *Does the rule explain the holes?* (``losses.p_value``, with a
    fit): hidden cells are held against their probability given all else that is known of their row.
    *Is it a Gaussian, on these scales?* (``normality.p_value``): columns are tested on their own, by
    simulation, and with a fit all together, along columns and principal axes, against groups, heavy
    tails and skewness. The p-values of single columns are adjusted for there being several.

    In tables of more than 5 000 rows, that many of them are tested, evenly spread. Values that were
    rounded to the same number are spread over the interval they were rounded from.

    Examples
    --------
    >>> import halfseen as hs
    >>> truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> rule = hs.LinearThreshold.heckman(1, [1.0, 0.0])
    >>> X = hs.simulate(truth, rule, 1000)
    >>> known = {"covariance": truth.covariance, "mean": truth.mean}
    >>> found = hs.diagnose(X, rule, names=["job", "wage"], **known)
    >>> found.anchors, 0.4 < found.alpha.value < 0.6
    (('job',), True)

    Concentrations that are log-normal, below a detection limit in part:

    >>> import numpy as np
    >>> rule = hs.DetectionLimits(lower=0.5)
    >>> C = np.exp(np.random.default_rng(0).normal(size=(300, 2)))
    >>> found = hs.diagnose(np.where(C < 0.5, np.nan, C), rule)
    >>> found.worst, found.suggested_transform
    ('problem', {'x0': 'log', 'x1': 'log'})
    """
    simulations = whole_number("simulations", simulations, FEWEST_SIMULATIONS)
    X, missingness, missing_at_random, transforms, fitted = with_fit(
        X, missingness, missing_at_random, transforms, fit, names
    )
    with warnings.catch_warnings(), single_blas_thread():
        # Whatever there is to say about how the table is read becomes a finding.
        warnings.simplefilter("ignore", HalfseenWarning)
        table = read(X, missingness, missing_at_random, transforms)
        g, d = None if fitted is None else fitted.fit.gaussian, len(table.names)
        if g is not None and g.dimension != d:
            raise InputError(f"the fit has {g.dimension} columns, but X has {d}.")
        if g is not None and not table.transformed:
            covariance = g.covariance if covariance is None else covariance
            mean = g.mean if mean is None else mean
        seed = seed_of(random_state)
        ground = _ground(table, fitted, seed)
        losses = judge_losses(ground, seed) if isinstance(ground, Ground) else Losses.absent(ground)
        marks = tuple(
            mark
            for mark in look_at_mechanism(table, simulations, seed)
            # One answer to one question: that of all columns together.
            if mark.kind != "hidden too often" or mark.column not in losses.names
        )
        # No scale makes up for cells that were not hidden by the rule at all.
        tested = taken_at_random(table, marks)
        total = d + (simulations if fitted is not None and isinstance(ground, str) else 0)
        with progress_bar("diagnose", total, progress) as advance:
            normality = judge_normality(tested, fitted, ground, simulations, seed, advance)
        doubted = {m.column for m in marks if m.level == "problem" and m.kind != "at random"}
        suggested = suggest_transforms(tested, normality.columns, doubted, simulations, seed)
    counts = table.seen.T.astype(np.int64) @ table.seen
    status = None if fitted is None else fitted.fit.status
    return Diagnosis(
        rows=len(table.values),
        **paper_constants(table, covariance, mean, beta, seed),
        names=table.names,
        hidden=table.hidden.mean(axis=0),
        blank=table.blank.mean(axis=0),
        limits=table.limits,
        pair_alpha=PairShares(
            counts / len(table.values), *clopper_pearson(counts, len(table.values))
        ),
        rare_pairs=_rare_pairs(table, counts),
        contradictions=table.contradictions,
        mechanism=marks,
        losses=losses,
        normality=normality,
        suggested_transform=suggested,
        findings=collect(table, counts, marks, losses, normality, suggested, status),
    )


def _ground(table: CheckedTable, fitted: FittedTable | None, seed: int) -> Ground | str:
    if fitted is None:
        return without_a_fit()
    if table.broken is not None or table.contradictions:
        return "the table contradicts the rule"
    return stand_on(fitted, seed)


def _rare_pairs(table: CheckedTable, counts: Counts) -> tuple[tuple[str, str, int], ...]:
    i, j = np.nonzero(np.triu(counts < FEW_JOINT_ROWS, 1))
    return tuple(
        (table.names[a], table.names[b], int(counts[a, b])) for a, b in zip(i, j, strict=True)
    )
