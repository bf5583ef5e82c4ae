"""One door to every check of a table and its rule."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfseen.checks import whole_number
from halfseen.diagnostics.assumptions import pair_shares, paper_constants
from halfseen.diagnostics.diagnosis import Diagnosis, PairShares
from halfseen.diagnostics.findings import collect
from halfseen.diagnostics.fitted_rows import Ground, stand_on
from halfseen.diagnostics.losses import Losses, judge_losses
from halfseen.diagnostics.mechanism import column_limits, look_at_mechanism, taken_at_random
from halfseen.diagnostics.reading import Reading, read, scales, unpack, without_a_fit
from halfseen.diagnostics.transforms import suggest_transforms
from halfseen.diagnostics.whole import judge_normality
from halfseen.errors import HalfseenWarning, InputError
from halfseen.missingness.base import Missingness
from halfseen.parallel import single_blas_thread
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.loop import progress_bar
from halfseen.solvers.prepare import FEW_JOINT_ROWS
from halfseen.solvers.result import Estimate

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
        What hides a value; None: nothing does, or the table says it itself.
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
    X, missingness, missing_at_random, transforms, fit, own = unpack(
        X, missingness, missing_at_random, transforms, fit, names
    )
    with warnings.catch_warnings(), single_blas_thread():
        # Whatever there is to say about how the table is read becomes a finding.
        warnings.simplefilter("ignore", HalfseenWarning)
        reading = read(X, missingness, missing_at_random)
        columns = reading.names
        if fit is not None and fit.gaussian.dimension != len(columns):
            raise InputError(
                f"the fit has {fit.gaussian.dimension} columns, but X has {len(columns)}."
            )
        seed = seed_of(random_state)
        scale = scales(transforms, columns)
        if fit is not None and scale is None:
            covariance = fit.gaussian.covariance if covariance is None else covariance
            mean = fit.gaussian.mean if mean is None else mean
        given = None if own else (X, missingness, missing_at_random)
        ground = _ground(reading, fit, given, seed)
        losses = judge_losses(ground, seed) if isinstance(ground, Ground) else Losses.absent(ground)
        marks = tuple(
            mark
            for mark in look_at_mechanism(reading, scale, simulations, seed)
            # One answer to one question: that of all columns together.
            if mark.kind != "hidden too often" or mark.column not in losses.names
        )
        # No scale makes up for cells that were not hidden by the rule at all.
        tested = taken_at_random(reading, marks)
        by_rows = fit is not None and isinstance(ground, str)
        total = len(columns) + (simulations if by_rows else 0)
        with progress_bar("diagnose", total, progress) as advance:
            normality = judge_normality(
                tested, scale, fit, given, ground, simulations, seed, advance
            )
        doubted = {m.column for m in marks if m.level == "problem" and m.kind != "at random"}
        suggested = suggest_transforms(tested, scale, normality.columns, doubted, simulations, seed)
    constants = paper_constants(reading.values, columns, reading.rule, covariance, mean, beta, seed)
    counts = reading.seen.T.astype(np.int64) @ reading.seen
    return Diagnosis(
        len(reading.values),
        *constants,
        columns,
        reading.hidden.mean(axis=0),
        reading.blank.mean(axis=0),
        column_limits(reading),
        PairShares(*pair_shares(counts, len(reading.values))),
        _rare_pairs(reading, counts),
        reading.contradictions,
        marks,
        losses,
        normality,
        suggested,
        collect(
            reading,
            counts,
            marks,
            losses,
            normality,
            suggested,
            None if fit is None else fit.status,
        ),
    )


def _ground(reading: Reading, fit: Estimate | None, given: Any, seed: int) -> Ground | str:
    if fit is None:
        return without_a_fit()
    if reading.broken is not None or reading.contradictions:
        return "the table contradicts the rule"
    return stand_on(fit, given, seed)


def _rare_pairs(reading: Reading, counts: np.ndarray) -> tuple[tuple[str, str, int], ...]:
    i, j = np.triu_indices(len(reading.names), 1)
    few = np.flatnonzero(counts[i, j] < FEW_JOINT_ROWS)
    return tuple((reading.names[i[k]], reading.names[j[k]], int(counts[i[k], j[k]])) for k in few)
