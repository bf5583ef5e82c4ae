"""``regress``: the door of regression under any rule."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import is_iterable, positive_number, real_array, whole_number
from halfseen.data.design import (
    Design,
    check_design,
    columns_of,
    design_of_arrays,
    outcome_names,
    read_design,
)
from halfseen.data.interval_data import IntervalData
from halfseen.data.table import frame_kind, listed_names, read_table
from halfseen.errors import (
    ContradictionError,
    ConvergenceWarning,
    InputError,
    NotIdentifiedError,
    argument,
)
from halfseen.missingness.base import Missingness
from halfseen.missingness.named_rules import Rules
from halfseen.missingness.named_rules import rules as read_rules
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import Probability, SeenSet
from halfseen.parallel import resolve_jobs
from halfseen.regression.fit import RegressionFit
from halfseen.regression.in_pieces import InPieces, Place, refuse_in_pieces
from halfseen.regression.outcome_cells import Cells, column_of, outcome_cells
from halfseen.regression.row_weights import read_weights, rows_of_table
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.full_information.checkpoint import EVERY, open_checkpoint
from halfseen.solvers.full_information.full import ACCURACY, MOST_STEPS
from halfseen.solvers.full_information.learn import Settings
from halfseen.solvers.prepare import warn
from halfseen.solvers.regression.estimate import RegressionEstimate
from halfseen.solvers.regression.learn_penalised import learn_penalised, read_penalty
from halfseen.solvers.regression.learn_regression import learn_regression
from halfseen.solvers.regression.learn_truncated import learn_truncated
from halfseen.solvers.regression.model import Model, Penalty
from halfseen.solvers.regression.outcomes import (
    Carried,
    Outcomes,
    are_truths,
    kinds_by_name,
    read_outcomes,
    split_rules,
)
from halfseen.solvers.result import Status, name_some
from halfseen.solvers.structures import BlockDiagonal, Structure
from halfseen.solvers.structures.base import read_part

Floats = NDArray[np.float64]

# Coefficients that are given: the square of larger ones overflows.
LARGEST = 1e100


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

    def model_of(design: Design, outcomes: Outcomes) -> Model:
        return _model(design, outcomes, covariance, fixed, equal)

    if pieces is not None:
        refuse_in_pieces(truncated=truncated, cluster=cluster, weights=weights, penalty=penalty)
        with _told_apart():
            estimate, design = pieces.learn(
                rules, kinds, missing_at_random, intercept, robust, model_of, place, settings
            )
        return _looked_at(RegressionFit(**_fields(estimate), design=design, is_robust=robust))
    if formula:
        indices = {str(one.by) for one in split_rules(rules)[1]}
        design, columns = _of_formula(model, data, indices, kinds)
    else:
        if type(model).__name__ == "Series":
            # A table of one column, which is called as the series.
            model = model.to_frame(model.name or "y0")
        design, columns = _of_arrays(model, data, names, intercept, kinds)
    kinds = columns.kinds
    pull = read_penalty(penalty, strength, robust or cluster is not None, truncated is not None)
    learn = _learner(truncated is not None, pull is not None, kept is not None)
    if truncated is not None:
        rules = _truncation(columns.cells, rules, kinds, truncated)
    carried = _carried(rules, list(columns.cells), data)
    if missing_at_random is not None:
        missing_at_random = _in_order("missing_at_random", missing_at_random, [*columns.cells])
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
    wanted = replace(model_of(design, outcomes), row_weights=counts, penalty=pull)
    with _told_apart():
        estimate = learn(wanted, settings)
    frame = "pandas" if frame_kind(data) == "pandas" or frame_kind(model) == "pandas" else None
    fit = RegressionFit(**_fields(estimate), design=design, data=data, frame=frame)
    if robust or cluster is not None or (fit.is_weighted and fit.covariance is not None):
        fit = fit.robust(cluster)
    return _looked_at(fit)


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


def _looked_at(fit: RegressionFit) -> RegressionFit:
    """Warn whoever called if the answer needs a look."""
    if fit.status.severity >= Status.TOO_FEW_JOINT_ROWS.severity:
        details = " ".join(note.text for note in fit.notes if note.status is fit.status)
        warn(f"{fit.status.value} {details}", ConvergenceWarning)
    return fit


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


def _of_formula(
    formula: Any, data: Any, indices: set[str], kinds: Mapping[str, Any] | None
) -> tuple[Design, Cells]:
    """Read outcomes and regressors that a formula names."""
    outcomes = outcome_names(formula)
    design = read_design(formula, data, derived=indices)
    return design, outcome_cells(outcomes, data, indices, kinds)


def _of_arrays(
    Y: Any, X: Any, names: Sequence[str] | None, intercept: bool, kinds: Mapping[str, Any] | None
) -> tuple[Design, Cells]:
    """Read outcomes and regressors that are tables of their own."""
    _need_the_same_labels(Y, X)
    told = kinds_by_name(kinds)
    if X is None:
        raise InputError(
            "regressors are needed: regress(formula, data), or regress(Y, X) for arrays; for a mean "
            "and a covariance alone there is fit(X)."
        )
    if Y is None or (np.isscalar(Y) and not isinstance(Y, str)):
        raise InputError(
            "the model must be a formula such as 'lead + zinc ~ age', a mapping from outcomes to their "
            f"regressors, or a table of outcomes; got {Y!r}."
        )
    if isinstance(X, np.ndarray) and X.ndim == 1:
        # One regressor.
        X = X[:, None]
    if isinstance(Y, IntervalData):
        # Names that nobody gave are those of regressors too.
        unnamed = Y.names == tuple(f"x{j}" for j in range(len(Y.names)))
        called = [f"y{j}" for j in range(len(Y.names))] if unnamed else list(Y.names)
        cells: dict[str, Any] = {name: column_of(Y, j) for j, name in enumerate(called)}
    elif isinstance(Y, Mapping) or frame_kind(Y) is not None:
        columns = columns_of(Y)
        read = outcome_cells(list(columns), Y, set(), kinds)
        cells, told = read.cells, read.kinds
    else:
        values = np.atleast_1d(real_array("the outcomes", Y))
        values = values[:, None] if values.ndim == 1 else values
        table = read_table(values, fewest_rows=1)
        numbered = [f"y{j}" for j in range(table.values.shape[1])]
        called = numbered if names is None else list(listed_names(names))
        if len(called) != table.values.shape[1]:
            raise InputError(
                f"names must be {table.values.shape[1]}, one for each outcome; got {len(called)}."
            )
        cells = {name: table.values[:, j] for j, name in enumerate(called)}
    return design_of_arrays(X, outcomes=list(cells), intercept=intercept), Cells(cells, told)


def _carried(given: Any, outcomes: Sequence[str], data: Any) -> Carried | None:
    """Return the columns of the data that a rule compares outcomes with, and that are none."""
    rule, _ = split_rules(given)
    if not isinstance(rule, Rules):
        return None
    names = [name for name in rule.names if name not in outcomes]
    if not names or isinstance(data, np.ndarray) or data is None:
        return None
    columns = columns_of(data)
    known = [name for name in names if name in columns]
    for name in known:
        values = columns.column(name)
        if not values.is_numbers or not np.isfinite(values.values).all():
            raise InputError(
                f"the rule compares outcomes with {name}, which must be a number in every row. Make it "
                "an outcome of its own, or leave rows out in which it is not known."
            )
    return (
        Carried(tuple(known), np.column_stack([columns[name] for name in known])) if known else None
    )


def _need_the_same_labels(Y: Any, X: Any) -> None:
    """Raise where two pandas frames have rows of other labels, or in another order."""
    if frame_kind(Y) == "pandas" and frame_kind(X) == "pandas" and not Y.index.equals(X.index):
        raise InputError(
            "outcomes and regressors have rows with other labels, or in another order. Put them in one "
            "frame, or bring them in order: regress(Y, X.loc[Y.index])."
        )


def _in_order(name: str, given: Any, outcomes: Sequence[str]) -> Any:
    """Bring the columns of a pandas frame, and rows named like them, into the order of the outcomes."""
    if frame_kind(given) != "pandas":
        return given
    columns = [str(column) for column in given.columns]
    if sorted(columns) != sorted(outcomes):
        raise InputError(
            f"{name} must have the outcomes as columns, which are {name_some(list(outcomes), 8)}; got "
            f"{name_some(columns, 8)}."
        )
    given = given.set_axis(columns, axis=1)[list(outcomes)]
    if sorted(map(str, given.index)) == sorted(outcomes):
        given = given.set_axis([str(row) for row in given.index]).loc[list(outcomes)]
    return given.to_numpy()


def _truncation(
    cells: Mapping[str, Any], rules: Any, kinds: Mapping[str, Any] | None, given: Any
) -> Missingness:
    """Read in which set the outcome of a row must lie for the row to be in the table."""
    if len(cells) != 1:
        raise InputError(
            f"rows that are not in the table are for a regression of one outcome; got {len(cells)}."
        )
    if rules is not None:
        raise InputError(
            f"{argument('truncated')} says why rows are not there; hidden cells need rules without it."
        )
    ((name, column),) = cells.items()
    kind = kinds_by_name(kinds).get(name, "continuous")
    if kind != "continuous" or (not isinstance(column, IntervalData) and are_truths(column)):
        raise InputError(
            f"{name} has categories, of which no value is seen, so it cannot lie in a set that rows "
            f"are left out by. {argument('truncated')} is for a measurement; leave it out here."
        )
    values = column.values if isinstance(column, IntervalData) else real_array(name, column)
    if np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise InputError(
            f"the outcome is not seen; with {argument('truncated')} every row in the table shows it. "
            "Leave such rows out.",
            row,
            name,
        )
    if isinstance(given, Mapping):
        if list(given) != [name]:
            raise InputError(
                f"{argument('truncated')} must speak of the outcome {name}; got {list(given)!r}."
            )
        given = given[name]
    if isinstance(given, str):
        given = read_rules({name: given})
    if not isinstance(given, Missingness | SeenSet):
        raise InputError(
            f"{argument('truncated')} must be a set, such as {{{name!r}: '>=0'}} or between(0, 10); "
            f"got {given!r}."
        )
    rule = given if isinstance(given, Missingness) else SelfCensoring([given])
    rule = rule.for_columns([name])
    if isinstance(given, Probability):
        # Told apart from sets where the likelihood is made.
        return rule
    outside = np.flatnonzero(~rule.seen(values.reshape(-1, 1)))
    if outside.size:
        raise ContradictionError(
            f"the value {values.flat[outside[0]]:g} is in the table, where {argument('truncated')} says "
            f"that no such row is ({outside.size} of them). Leave such rows out, or correct the set.",
            int(outside[0]),
            name,
        )
    return rule


def _model(
    design: Design,
    outcomes: Outcomes,
    covariance: ArrayLike | str | Structure,
    fixed: Mapping[str, Mapping[str, float]] | None,
    equal: Sequence[Sequence[tuple[str, str]]] | None,
) -> Model:
    """Put together what is to be learned."""
    structure = _structure(outcomes, covariance)
    free, given = _residuals(outcomes, covariance if structure is None else structure)
    if isinstance(structure, BlockDiagonal) and structure.within.name == "free":
        # Which of its entries are free says all.
        structure = None
    known = _fixed(design, fixed)
    parts = design.terms, design.matrix, design.mask, known, free, given
    model = Model(outcomes, *parts, structure=structure)
    return replace(model, ties=_ties(design, known, equal))


def _structure(outcomes: Outcomes, covariance: Any) -> Structure | None:
    """Read a structure of the covariance of residuals; None for one without parameters of its own."""
    if not isinstance(covariance, str | Structure):
        return None
    if covariance in ("shrinkage", "sparse"):
        raise InputError(
            "residuals of a regression are not pulled towards zero: covariance must be 'free', "
            f"'diagonal', a structure or an array; got {covariance!r}."
        )
    structure = read_part(covariance, argument("covariance"))
    if not isinstance(structure, Structure):
        return None
    structure = structure.for_columns(outcomes.names)
    blocks = isinstance(structure, BlockDiagonal) and structure.within.name == "free"
    if outcomes.latent.any() and not blocks:
        raise InputError(
            f"latent outcomes have residuals of variance 1, which {structure.name!r} cannot keep to: "
            f"{name_some([outcomes.names[j] for j in np.flatnonzero(outcomes.latent)])}. Take "
            "'free', 'diagonal' or BlockDiagonal."
        )
    return structure


def _residuals(
    outcomes: Outcomes, covariance: ArrayLike | str | Structure
) -> tuple[NDArray[np.bool_], Floats]:
    """Return which entries of the covariance of residuals are learned, and the others."""
    q, latent = len(outcomes.names), outcomes.latent
    if isinstance(covariance, str | Structure):
        if isinstance(covariance, BlockDiagonal):
            free = covariance.mask()
        else:
            diagonal = covariance == "diagonal"
            free = np.eye(q, dtype=bool) if diagonal else np.ones((q, q), dtype=bool)
        given = np.diag(latent.astype(float))
        free[latent, latent] = False
        return free, given
    given = real_array("covariance", _in_order("covariance", covariance, outcomes.names))
    if given.shape != (q, q):
        raise InputError(
            f"covariance must be a symmetric array of shape ({q}, {q}), one row for each outcome; got "
            f"shape {given.shape}."
        )
    if not (np.isfinite(given).all() and np.allclose(given, given.T)):
        raise InputError(f"covariance must be finite and symmetric; got {given.tolist()}.")
    if not np.abs(given).max() < LARGEST:
        raise InputError(
            f"entries of covariance must be below {LARGEST:g}; got {np.abs(given).max():g}. Take "
            "another unit."
        )
    least = float(np.linalg.eigvalsh(given)[0])
    if least <= 0.0:
        raise InputError(
            "covariance must be positive definite, but its smallest eigenvalue is "
            f"{least:.3g}. Make its correlations smaller."
        )
    wrong = [outcomes.names[j] for j in np.flatnonzero(latent & (np.diag(given) != 1.0))]
    if wrong:
        raise InputError(f"residuals of latent outcomes have variance 1: {name_some(wrong)}.")
    return np.zeros((q, q), dtype=bool), given


def _term_of(design: Design, outcome: str, term: str) -> tuple[int, int]:
    """Return where a coefficient stands."""
    if outcome not in design.outcomes:
        raise InputError(
            f"there is no outcome {outcome!r}; the outcomes are {name_some(list(design.outcomes), 8)}."
        )
    j, own = design.outcomes.index(outcome), design.equation(outcome)
    if term not in own:
        raise InputError(
            f"{outcome} has no term {term!r}; its terms are {name_some(list(own), 8)}."
        )
    return j, design.terms.index(term)


def _fixed(design: Design, given: Mapping[str, Mapping[str, float]] | None) -> Floats:
    """Read coefficients that are known."""
    out = np.full(design.mask.shape, np.nan)
    if given is None:
        return out
    if not isinstance(given, Mapping) or not all(isinstance(v, Mapping) for v in given.values()):
        raise InputError(
            "fixed must say coefficients by outcome and term, as in fixed={'wage': {'exper': 0.02}}; "
            f"got {given!r}."
        )
    for outcome, terms in given.items():
        for term, value in terms.items():
            number = real_array(f"the coefficient of {term}", value)
            if number.ndim or not np.abs(number) < LARGEST:
                raise InputError(
                    f"the coefficient of {term} must be a finite number below {LARGEST:g}; got "
                    f"{value!r}."
                )
            out[_term_of(design, outcome, term)] = float(number)
    return out


def _is_group(group: Any) -> bool:
    """Whether these are pairs of texts, at least two."""
    return (
        isinstance(group, Sequence)
        and len(group) > 1
        and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in group)
        and all(isinstance(name, str) for pair in group for name in pair)
    )


def _ties(
    design: Design, fixed: Floats, equal: Sequence[Sequence[tuple[str, str]]] | None
) -> Floats | None:
    """Return the free coefficients as combinations of those that differ."""
    if equal is None or (isinstance(equal, list | tuple) and not equal):
        return None
    free = design.mask & np.isnan(fixed)
    place = {tuple(at): k for k, at in enumerate(np.argwhere(free).tolist())}
    first = np.arange(len(place))
    for group in equal if is_iterable(equal) else [equal]:
        if not _is_group(group):
            raise InputError(
                "equal must be groups of (outcome, term), as in "
                f"equal=[[('lead', 'age'), ('zinc', 'age')]]; got {group!r}."
            )
        spots = [_term_of(design, *pair) for pair in group]
        given = [pair for pair, spot in zip(group, spots, strict=True) if spot not in place]
        if given:
            raise InputError(f"a coefficient cannot be fixed and equal to another: {given[0]!r}.")
        own = [first[place[spot]] for spot in spots]
        first[np.isin(first, own)] = min(own)
    _, numbers = np.unique(first, return_inverse=True)
    return np.eye(numbers.max() + 1)[numbers]
