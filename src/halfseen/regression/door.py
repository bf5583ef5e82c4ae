"""``regress``: the door of regression under any rule."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfseen.checks import positive_number, whole_number
from halfseen.data.design import Design, check_design
from halfseen.data.table import frame_kind
from halfseen.errors import InputError, NotIdentifiedError, warn
from halfseen.parallel import resolve_jobs
from halfseen.regression.fit import RegressionFit
from halfseen.regression.in_pieces import InPieces, Place, refuse_in_pieces
from halfseen.regression.model_options import in_order, model_of, read_weights, rows_of_table
from halfseen.regression.outcome_cells import of_arrays, of_formula, read_carried, read_truncation
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.full_information.checkpoint import EVERY, open_checkpoint
from halfseen.solvers.full_information.full import ACCURACY, MOST_STEPS
from halfseen.solvers.full_information.learn import Settings
from halfseen.solvers.regression.estimate import RegressionEstimate
from halfseen.solvers.regression.learn_penalised import learn_penalised, read_penalty
from halfseen.solvers.regression.learn_regression import learn_regression
from halfseen.solvers.regression.learn_truncated import learn_truncated
from halfseen.solvers.regression.model import Model, Penalty
from halfseen.solvers.regression.outcomes import Outcomes, read_outcomes, split_rules
from halfseen.solvers.result import warn_of_status
from halfseen.solvers.structures import Structure


def regress(
    model: Any,
    data: Any = None,
    rules: Any = None,
    *,
    kinds: Mapping[str, Any] | None = None,
    covariance: ArrayLike | str | Structure = "free",
    fixed: Mapping[str, Mapping[str, float]] | None = None,
    equal: Sequence[Sequence[tuple[str, str]]] | None = None,
    missing_at_random: ArrayLike | None = None,
    truncated: Any = None,
    robust: bool = False,
    cluster: Any = None,
    weights: Any = None,
    penalty: str | None = None,
    strength: float | None = None,
    names: Sequence[str] | None = None,
    intercept: bool = True,
    standard_errors: bool = True,
    accuracy: float = ACCURACY,
    most_steps: int = MOST_STEPS,
    random_state: RandomState = None,
    progress: bool = False,
    n_jobs: int | None = None,
    client: Any = None,
    memory: str | float | None = None,
    scratch: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = EVERY,
    resume: bool = False,
) -> RegressionFit:
    """Learn what outcomes depend on, when some of their values are hidden because of what they are.

    Outcomes are y = Γ w + e with regressors w and residuals e ~ N(0, Σ_e), which may go together. Their
    likelihood given the regressors is climbed to its top, whatever the law of the regressors. So
    one verb is Tobit regression of one or many outcomes, interval regression, sample selection
    (Heckman), switching regression (Roy), probit and ordered probit, and any mixture of them.

    Parameters
    ----------
    model : str, mapping or array-like
        A formula, ``"lead + zinc ~ age + C(site)"``; a formula for each outcome,
        ``{"wage": "exper + educ", "works": "age + kids"}``; or the outcomes themselves, an array, a data
        frame or ``IntervalData``, of which the regressors are then ``data``.
    data : data frame, mapping of columns, IntervalData, or array of regressors
        NaN where the value of an outcome is hidden. Cells of a data frame may be texts such as ``<0.5``.
        Paths of Parquet files (one, a folder, or a pattern), ``RowBlocks``, NumPy memmaps, and Dask data
        frames and arrays are read in pieces, and may be larger than memory.
    rules : rule, or list of rules, optional
        What hides the values of outcomes: ``{"lead": ">=0.5"}`` and whatever else ``halfseen.rules``
        reads, ``DetectionLimits``, ``SelfSelection``, ``Selection("wage", by="works")``; a list of
        selections and one other rule.
    kinds : mapping, optional
        "binary" (a latent number whose sign is seen), "ordered" (with cut points, which are learned) or
        "continuous", by name of outcome; or the list of its categories from the lowest to the highest.
        Columns of true and false are binary, and ordered categories of a data frame ordered.
    covariance : structure, str or array-like of shape (outcomes, outcomes)
        What the covariance of residuals may be: "free", "diagonal", or a structure such as
        ``CompoundSymmetry()`` or its text, as in ``fit``. Latent outcomes have residuals of variance 1.
    fixed : mapping of mappings, optional
        Coefficients that are known: ``{"wage": {"exper": 0.02}}``.
    equal : list of lists of (outcome, term), optional
        Coefficients that are the same: ``[[("lead", "age"), ("zinc", "age")]]``.
    missing_at_random : boolean array of shape (n, outcomes), optional
        Hidden cells that are simply missing: the rule says nothing about them.
    truncated : mapping, optional
        Where the one outcome must lie for a row to be in the table at all: ``{"wage": ">=0"}``, a
        set such as ``between(0, 10)``, or ``DetectionLimits`` that differ by row. Rows that were
        left out are not counted, so what is learned is the law of the outcome given that it is in
        the set.
    robust : bool
        Whether standard errors are those of the sandwich, which do not believe the model.
    cluster : str or array-like of shape (n,), optional
        What rows belong together, for robust standard errors.
    weights : str or array-like of shape (n,), optional
        What each row counts: the rows of the population that it stands for, in a survey. What is
        maximised is the sum of log-likelihoods times weights (a pseudo-likelihood), whatever the unit of
        the weights, and standard errors are those of the sandwich. Rows with the weight 0 leave.
    penalty : {"ridge", "lasso"}, optional
        What pulls coefficients towards 0, on the scale on which every regressor has the variance 1;
        intercepts are left alone. For many regressors, also more than rows. Such fits have no
        standard errors.
    strength : float, optional
        Of the penalty. Otherwise that at which rows that were held out are likeliest, by fivefold
        cross-validation.
    names : sequence of str, optional
        Names of the outcomes, where these are an array.
    intercept : bool
        Whether regressors that are an array get an intercept.
    standard_errors : bool
        Whether to compute standard errors.
    accuracy, most_steps, random_state, progress, n_jobs, checkpoint, every, resume
        As in ``halfseen.solvers.full``.
    client, memory, scratch
        As in ``halfseen.fit``, for tables in pieces.

    Returns
    -------
    RegressionFit
        ``coefficients``, ``residual_covariance``, ``standard_errors``, ``confidence_interval()``,
        ``summary()``, ``predict(new, kind=)``, ``marginal_effects(...)``, ``residuals()``,
        ``draw_imputations(m=)``.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20.0, 70.0, 1000)
    >>> noise = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], 1000)
    >>> lead, zinc = (np.array([[0.02], [0.01]]) * age + noise.T)
    >>> data = {"age": age, "lead": np.where(lead >= 0.5, lead, np.nan), "zinc": zinc}
    >>> fit = hs.regress("lead + zinc ~ age", data, {"lead": ">=0.5"}, random_state=0)
    >>> fit.status.name, bool(abs(fit.residual_correlation[0, 1] - 0.5) < 0.1)
    ('CONVERGED', True)
    """
    resolve_jobs(n_jobs)
    kept = open_checkpoint(checkpoint, every, resume)
    settings = Settings(
        positive_number("accuracy", accuracy),
        whole_number("most_steps", most_steps),
        standard_errors,
        seed_of(random_state) if kept is None else kept.seed_or(random_state),
        progress,
        n_jobs,
        kept,
    )
    formula = isinstance(model, str | Mapping) and not _holds_columns(model)
    if formula and data is None:
        raise InputError("a formula needs data: regress(formula, data).")
    place = Place(client, memory, scratch)
    if formula:
        pieces = InPieces.of_formula(model, data, rules, place)
    else:
        pieces = None if data is None else InPieces.of_arrays(model, data, names, place)

    def put_together(design: Design, outcomes: Outcomes) -> Model:
        return model_of(design, outcomes, covariance, fixed, equal)

    if pieces is not None:
        refuse_in_pieces(truncated=truncated, cluster=cluster, weights=weights, penalty=penalty)
        with _told_apart():
            estimate, design = pieces.learn(
                rules, kinds, missing_at_random, intercept, robust, put_together, place, settings
            )
        warn_of_status(estimate.status, estimate.notes)
        return RegressionFit(**_fields(estimate), design=design, is_robust=robust)
    if formula:
        indices = {str(one.by) for one in split_rules(rules)[1]}
        design, columns = of_formula(model, data, indices, kinds)
    else:
        if type(model).__name__ == "Series":
            # A table of one column, which is called as the series.
            model = model.to_frame(model.name or "y0")
        design, columns = of_arrays(model, data, names, intercept, kinds)
    kinds = columns.kinds
    pull = read_penalty(penalty, strength, robust or cluster is not None, truncated is not None)
    learn = _learner(truncated is not None, pull is not None, kept is not None)
    if truncated is not None:
        rules = read_truncation(columns.cells, rules, kinds, truncated)
    carried = read_carried(rules, list(columns.cells), data)
    if missing_at_random is not None:
        missing_at_random = in_order("missing_at_random", missing_at_random, [*columns.cells])
    # Values on the edge of what is in the table say nothing of those that are not.
    quiet = truncated is not None
    outcomes = read_outcomes(columns.cells, rules, kinds, missing_at_random, carried, quiet=quiet)
    if len(outcomes.data) != len(design.matrix):
        raise InputError(
            f"outcomes have {len(outcomes.data)} rows, but regressors {len(design.matrix)}."
        )
    counts = read_weights(weights, data, len(design.matrix))
    if counts is not None and not counts.all():
        rows = np.flatnonzero(counts)
        outcomes, design, counts = outcomes.take(rows), design.take(rows), counts[rows]
        cluster = cluster if isinstance(cluster, str) else rows_of_table(cluster, rows)
        data = rows_of_table(data, rows)
    _check(design, pull)
    counts = None if counts is None else counts / counts.mean()
    wanted = replace(put_together(design, outcomes), row_weights=counts, penalty=pull)
    with _told_apart():
        estimate = learn(wanted, settings)
    frame = "pandas" if frame_kind(data) == "pandas" or frame_kind(model) == "pandas" else None
    fit = RegressionFit(**_fields(estimate), design=design, data=data, frame=frame)
    if robust or cluster is not None or (fit.is_weighted and fit.covariance is not None):
        fit = fit.robust(cluster)
    warn_of_status(fit.status, fit.notes)
    return fit


def _learner(
    truncated: bool, penalised: bool, checkpoint: bool
) -> Callable[[Model, Settings], RegressionEstimate]:
    """Return what learns a regression of this kind."""
    if checkpoint and truncated:
        raise InputError("a truncated regression takes a moment, and writes no checkpoints.")
    if checkpoint and penalised:
        raise InputError(
            "a regression with a penalty writes no checkpoints; leave checkpoint= out."
        )
    if penalised:
        return learn_penalised
    return learn_truncated if truncated else learn_regression


@contextmanager
def _told_apart() -> Iterator[None]:
    """Say what is wrong where numbers are so far apart in size that matrices are singular."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise NotIdentifiedError(
            "what is given, or the outcomes, are so far apart in size that sixteen digits do not hold "
            f"them together ({error}). Check fixed= and covariance=, and the units of the outcomes."
        ) from None


def _fields(estimate: RegressionEstimate) -> dict[str, Any]:
    return {field.name: getattr(estimate, field.name) for field in fields(estimate)}


def _check(design: Design, penalty: Penalty | None) -> None:
    """Raise where regressors do not determine coefficients; those that are pulled need not."""
    if penalty is not None:
        constant = np.ptp(design.matrix, axis=0) == 0.0
        design = replace(design, mask=design.mask & constant)
    for note in check_design(design):
        warn(note)


def _holds_columns(model: Any) -> bool:
    """Whether a mapping has columns rather than formulas."""
    return isinstance(model, Mapping) and not all(isinstance(one, str) for one in model.values())
