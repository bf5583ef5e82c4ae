"""One door to every solver."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.data.interval_data import IntervalData, scan_of
from halfseen.data.moments import PairMoments
from halfseen.data.parquet_blocks import is_parquet
from halfseen.data.powers import LearnedPower
from halfseen.data.row_blocks import RowBlocks, is_mapped
from halfseen.data.table import Table, check_names, frame_kind, read_table, with_names
from halfseen.errors import (
    ApproximationWarning,
    AssumptionWarning,
    ConvergenceWarning,
    InputError,
    argument,
)
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.missingness.truncation import RowTruncation
from halfseen.scaling.dask_blocks import is_dask
from halfseen.scaling.engine import Engine
from halfseen.scaling.sources import blocks_of, engine_for
from halfseen.seeds import RandomState
from halfseen.solvers.full_information import full
from halfseen.solvers.full_information.checkpoint import check_checkpoint
from halfseen.solvers.in_pieces import InPieces
from halfseen.solvers.loss import Loss, read_loss
from halfseen.solvers.missing_descent import missing_descent
from halfseen.solvers.pairwise import pairwise
from halfseen.solvers.prepare import warn
from halfseen.solvers.result import Estimate, Source, Status, name_some
from halfseen.solvers.scales import power_notes, to_model_scale
from halfseen.solvers.truncated_sgd import truncated_sgd
from halfseen.solvers.truncation import truncation
from halfseen.solvers.truncation_psgd import truncation_psgd

# Which solvers each kind of rule allows, the highest rung first: "auto" takes that one.
_COLUMNWISE: dict[str, Callable[..., Estimate]] = {
    "full": full,
    "pairwise": pairwise,
    "truncation": truncation,
    "truncation_psgd": truncation_psgd,
}
_WHOLE_ROWS: dict[str, Callable[..., Estimate]] = {"truncated_sgd": truncated_sgd}
_THRESHOLDS: dict[str, Callable[..., Estimate]] = {"full": full, "missing_descent": missing_descent}
_ANY: dict[str, Callable[..., Estimate]] = {"full": full}
# Options that say where a fit is kept on its way, not what it is.
_CHECKPOINTS = ("checkpoint", "every", "resume")
# Methods that learn nothing from a cell's being hidden.
_UNBELIEVING: tuple[Callable[..., Estimate], ...] = (truncation, truncation_psgd)
METHODS = tuple(dict.fromkeys(("auto", *_COLUMNWISE, *_WHOLE_ROWS, *_THRESHOLDS)))


def fit(
    X: Any,
    missingness: Missingness | None = None,
    method: str = "auto",
    *,
    covariance: ArrayLike | str | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    n_jobs: int | None = None,
    names: Sequence[str] | None = None,
    transforms: Any = None,
    client: Any = None,
    memory: str | float | None = None,
    scratch: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Estimate:
    """Learn the Gaussian behind a table with hidden values.

    Parameters
    ----------
    X : array-like of shape (n, d), data frame, IntervalData, PairMoments, RowBlocks or path
        NaN where a value is hidden. A path is that of a Parquet file, of a folder of them, or a pattern
        such as ``"data/*.parquet"``; these, NumPy memmaps, Dask arrays and Dask data frames are read in
        pieces, and may be larger than memory.
    missingness : Missingness, optional
        What hides a value: SelfCensoring, DetectionLimits, SelfSelection, LinearThreshold, Combined
        or RowTruncation. None: nothing does, and NaN is missing at random.
    method : str
        One of ``halfseen.solvers.METHODS``. "auto" takes the sharpest that the data allow: ``full``,
        but ``truncated_sgd`` for ``RowTruncation``, and ``pairwise`` for moments. ``full`` and
        ``pairwise`` believe that a hidden cell was hidden by the rule; ``truncation`` does not.
    covariance : array-like of shape (d, d) or str, optional
        The covariance, where it is known; or, for ``full``, what it may be: "diagonal", "shrinkage" or
        "sparse".
    random_state : int, Generator or None
        Seed of the methods that sample.
    progress : bool
        Whether to show a bar, for methods that iterate.
    n_jobs : int or None
        Threads; None for all cores. The answer does not depend on it.
    names : sequence of str, optional
        Names of the columns, for messages and tables; by default those of the data frame.
    transforms : str, dict or sequence, optional
        The scale on which columns are normal: "log", "log10", "sqrt", "boxcox", "yeojohnson", a power
        such as "boxcox(0.3)", or "none"; one for all, one for each, or by name in a dict. Powers that
        are not given are learned from values and holes. Limits and rules are stated in original units.
    client : dask.distributed.Client, optional
        A cluster that does the work. The answer is, to the last bit, that of one machine with the same
        pieces: row groups of Parquet files, chunks of Dask arrays.
    memory : str or int, optional
        The most memory that this process may take, as "1GB", for tables in pieces: what does not
        fit is kept on disk. The answer does not depend on how much it is. (With limits by row ``full``
        starts from another place than for an array in memory.)
    scratch : path, optional
        The folder for what does not fit in memory; that for temporary files by default.
    **options
        Further arguments of the method's own function in ``halfseen.solvers``. Those of ``full`` that
        are wanted most:

        - ``missing_at_random=``: mask of cells that the rule did not hide; they are simply missing.
        - ``loss=``: share of the values that the rule shows which were lost all the same, or "learn".
        - ``correlation=``: the correlations, where they are known and the scales are not.
        - ``mean=``: the mean, where it is known.
        - ``start=``: a Gaussian to start from, in place of the usual starts.
        - ``checkpoint=``, ``every=``, ``resume=``: a file to go on from when the work was stopped.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import halfseen as hs
    >>> truth = hs.Gaussian([1.0, 2.0], [[1.0, 0.6], [0.6, 1.0]])
    >>> rule = hs.DetectionLimits(lower=[1.0, 1.5])
    >>> fit = hs.fit(hs.simulate(truth, rule, 10_000), rule, random_state=0)
    >>> fit.method, fit.status.name
    ('full', 'CONVERGED')
    >>> bool(hs.metrics.mahalanobis_error(fit.mean, truth) < 0.05)
    True
    """
    _check_rule(missingness)
    blocks = blocks_of(X, names, client, memory, scratch)
    if blocks is not None:
        result = _fit_pieces(
            blocks,
            X,
            missingness,
            method,
            engine_for(client, memory, scratch, n_jobs, blocks.shape[1]),
            transforms,
            {**options, "covariance": covariance},
            {"random_state": random_state, "progress": progress, "n_jobs": n_jobs},
        )
        call = _call(options, covariance, transforms, names, random_state)
        assert result.source is not None
        source = dataclasses.replace(result.source, call=call)
        return _with_warning(dataclasses.replace(result, source=source))
    table, original, frame = _read(X, names)
    check_names(table.names)
    # What kind of rule it is may be known only when its names are.
    rule = None if missingness is None else missingness.for_columns(table.names)
    if isinstance(table, PairMoments):
        _check_moments(rule, transforms)
    told = table if isinstance(table, IntervalData) and rule is not None else None
    if told is not None and told.is_plain:
        # Values and blank cells alone are a table with NaN, for which there are more methods.
        table = Table(told.values, told.names)
    solver = _choose(method, rule, table)
    if told is not None and rule is not None and options.get("missing_at_random") is None:
        _warn_of_blanks(told, rule, solver)
    given = _call(options, covariance, transforms, names, random_state)
    shared = {"random_state": random_state, "progress": progress, "n_jobs": n_jobs}
    options = _options_of(solver, {**options, "covariance": covariance}, shared)
    if isinstance(table, PairMoments):
        result = solver(table, rule, **options)
    else:
        result = _fit_table(solver, table, rule, transforms, options)
        assert result.source is not None
        source = dataclasses.replace(
            result.source, original=original, original_rule=missingness, call=given
        )
        result = dataclasses.replace(result, source=source, frame=frame)
    return _with_warning(result)


def _call(
    options: dict[str, Any], covariance: Any, transforms: Any, names: Any, random_state: Any
) -> dict[str, Any]:
    """Return what repeats a fit: where its checkpoints were does not."""
    given = {name: value for name, value in options.items() if name not in _CHECKPOINTS}
    given |= {"covariance": covariance, "transforms": transforms}
    if names is not None:
        given["names"] = [str(name) for name in names]
    if isinstance(random_state, int):
        given["random_state"] = random_state
    return given


def _with_warning(result: Estimate) -> Estimate:
    """Warn whoever called ``fit`` if the answer needs a look."""
    if result.status.severity >= Status.TOO_FEW_JOINT_ROWS.severity:
        details = " ".join(note.text for note in result.notes if note.status is result.status)
        warn(f"{result.status.value} {details}", ConvergenceWarning)
    return result


def _fit_pieces(
    blocks: RowBlocks,
    X: Any,
    missingness: Missingness | None,
    method: str,
    engine: Engine,
    transforms: Any,
    options: dict[str, Any],
    shared: dict[str, Any],
) -> Estimate:
    """Fit a table in pieces, where the engine has them."""
    check_names(blocks.names)
    rule = None if missingness is None else missingness.for_columns(blocks.names)
    solver = _choose(method, rule, blocks)
    given = _options_of(solver, options, shared)
    at_random = given.pop("missing_at_random", None)
    said = given.pop("loss", None)
    lost = None if said is None else _known_loss(said, blocks.names, rule)
    check_checkpoint(**{name: given[name] for name in _CHECKPOINTS if name in given})
    with engine:
        table = InPieces.prepare(
            blocks, missingness, at_random, transforms, engine, bool(shared["progress"]),
            None if lost is None else lost.share,
        )  # fmt: skip
        stated = None if rule is None else table.rule
        if solver is full:
            result = solver(table.rows(), stated, **given)
        else:
            result = solver(table.moments(), stated, spread=engine.map, **given)
    source = result.source or Source(None, stated, None, 0, shared["n_jobs"], {})
    held = _held(X, blocks.names) if transforms is None else None
    source = dataclasses.replace(
        source,
        X=held,
        missingness=stated,
        missing_at_random=at_random,
        # Without the pieces, which may hold memory of a cluster.
        original=dataclasses.replace(blocks, pieces=()) if held is None else held,
        original_rule=missingness,
        loss=said,
    )
    frame = None if held is None else frame_kind(X)
    return dataclasses.replace(
        result, source=source, transforms=table.reader.transforms, frame=frame, loss=lost
    )


def _known_loss(given: Any, names: Sequence[str], rule: Missingness | None) -> Loss:
    """Read shares of lost values, of a table in pieces."""
    asked = read_loss(given, names, rule)
    if asked.learned.any():
        raise InputError(
            "a share of lost values is learned from a table in memory. Learn it from some rows, "
            f"and state it: {argument('loss', 0.1)}."
        )
    return Loss.known(*asked)


def _held(X: Any, names: tuple[str, ...]) -> Table | None:
    """Return the table that whoever called has at hand, if any.

    Rows that are elsewhere are not held: imputations are made of rows that are passed then.
    """
    if isinstance(X, RowBlocks) or is_dask(X) or is_parquet(X):
        return None
    if is_mapped(X) and X.dtype not in (np.float64, np.float32):
        # It would be converted as a whole.
        return None
    return Table(read_table(X).values, names)


def _check_rule(missingness: Any) -> None:
    if missingness is None or isinstance(missingness, Missingness):
        return
    told = "rules(...) makes one of text; " if isinstance(missingness, str | dict | list) else ""
    raise InputError(
        "missingness must be a rule such as SelfCensoring(...), DetectionLimits(...) or "
        f"RowTruncation(...); {told}got {missingness!r}."
    )


def _options_of(
    solver: Callable[..., Estimate], options: dict[str, Any], shared: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a solver; raise for an option that it does not take."""
    allowed = inspect.signature(solver).parameters
    if options["covariance"] is None and "covariance" not in allowed:
        del options["covariance"]
    for option in options:
        if option not in allowed or option == "spread":
            known = [p for p in allowed if p not in ("X", "missingness", "contains", "spread")]
            known += [p for p in ("names", "transforms") if p not in known]
            close = difflib.get_close_matches(option, known, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InputError(
                f"method {solver.__name__!r} does not take the option {option!r}; it takes "
                f"{', '.join(known)}.{hint}"
            )
    return {**options, **{key: value for key, value in shared.items() if key in allowed}}


def _check_moments(rule: Missingness | None, transforms: Any) -> None:
    """Raise for what moments of seen values cannot answer, whatever the method."""
    if rule is not None and not isinstance(rule, ColumnwiseMissingness):
        needy = f"{type(rule).__name__} needs"
    elif rule is not None and rule.varies_by_row:
        needy = "limits that differ by row need"
    elif transforms is not None:
        needy = "transforms need"
    else:
        return
    raise InputError(f"{needy} the rows themselves, but moments were passed. Pass the table.")


def _warn_of_blanks(data: IntervalData, rule: Missingness, solver: Callable[..., Estimate]) -> None:
    """Warn of blank cells that are taken to be hidden by the rule: they may be simply missing."""
    marked = (~data.seen & ~data.blank).any(axis=0)
    blank = data.blank & ~marked
    if solver in _UNBELIEVING or not blank.any():
        return
    counts = (blank & _hidden_by(rule, data)).sum(axis=0)
    if counts.any():
        told = [f"{data.names[j]} ({counts[j]})" for j in np.flatnonzero(counts)]
        if solver is full:
            remedy = f"Pass {argument('missing_at_random')} if they are simply missing."
        elif solver is truncated_sgd:
            remedy = "Leave these rows out if they are simply missing."
        else:
            full_with = f"{argument('method', 'full')} with {argument('missing_at_random')}"
            remedy = f"If they are simply missing, use {full_with}."
        warn(
            "blank cells are taken to be hidden by the rule, in column "
            f"{name_some(told, 6)}. {remedy}"
        )


def _hidden_by(rule: Missingness, data: IntervalData) -> NDArray[np.bool_]:
    """Mask of the cells that the rule hides if they are hidden: the others may be anything."""
    if isinstance(rule, RowTruncation):
        return np.ones(data.shape, dtype=bool)
    values = data.values
    # A rule that does not fit the table is refused before it is asked for holes.
    rule.check(values, data.names, ~data.seen)
    with warnings.catch_warnings():
        # The solver will say it again, if it looks for the ends of sets at all.
        warnings.simplefilter("ignore", ApproximationWarning)
        holes = rule.holes(values, scan_of(values))
    free = holes.whole_lines[np.maximum(holes.index, 0)]
    if holes.inequalities is not None:
        free[:, holes.inequalities.owner] = False
    return ~free


def _read(
    X: Any, names: Sequence[str] | None
) -> tuple[Table | IntervalData | PairMoments, Any, str | None]:
    """Read what is to be fitted; also as it is to be remembered, and the library it came from."""
    if names is not None:
        table = with_names(X, names)
    else:
        table = X if isinstance(X, IntervalData | PairMoments) else read_table(X)
    if isinstance(table, PairMoments):
        return table, None, None
    if isinstance(table, IntervalData):
        return table, table, table.frame
    frame = frame_kind(X)
    return table, table if frame is None or names is not None else X, frame


def _fit_table(
    solver: Callable[..., Estimate],
    table: Table | IntervalData,
    rule: Missingness | None,
    transforms: Any,
    options: dict[str, Any],
) -> Estimate:
    """Fit the rows of a table, on the scale of the model."""
    scales = powers = None
    if transforms is None:
        result = solver(table, rule, **options)
    else:
        n_jobs = options.get("n_jobs")
        at_random = options.get("missing_at_random")
        modelled, modelled_rule, scales, powers = to_model_scale(
            table, rule, at_random, transforms, n_jobs
        )
        _check_powers(powers, table.names, options)
        with warnings.catch_warnings():
            if not isinstance(rule, RowTruncation):
                # How the table was read was said just now, in its own units.
                warnings.simplefilter("ignore", AssumptionWarning)
            result = solver(modelled, modelled_rule, **options)
        learned = sum(one is not None for one in powers or ())
        if result.parameters is not None:
            result = dataclasses.replace(result, parameters=result.parameters + learned)
        table, rule = modelled, modelled_rule
    source = result.source or Source(table, rule, None, 0, options.get("n_jobs"), {})
    notes = (*result.notes, *power_notes(powers or (), table.names))
    return dataclasses.replace(result, source=source, transforms=scales, powers=powers, notes=notes)


def _check_powers(
    powers: Sequence[LearnedPower | None] | None, names: Sequence[str], options: dict[str, Any]
) -> None:
    """Raise where a power was learned as if tails were normal, and they are not to be."""
    found = [name for name, one in zip(names, powers or (), strict=False) if one is not None]
    if found and options.get("errors", "normal") != "normal":
        raise InputError(
            f"the power of column {name_some(found)} would be learned as if errors were normal, so "
            f"it does not go with {argument('errors', 't')}: state it, such as boxcox(0.3), or "
            "take logarithms."
        )


def _choose(method: str, missingness: Missingness | None, X: Any) -> Callable[..., Estimate]:
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if isinstance(X, IntervalData):
        allowed = _ANY
    elif isinstance(X, RowBlocks):
        allowed = _in_pieces(missingness)
    elif isinstance(missingness, RowTruncation):
        allowed = _WHOLE_ROWS
    elif isinstance(missingness, LinearThreshold):
        allowed = _THRESHOLDS
    elif missingness is None or isinstance(missingness, ColumnwiseMissingness):
        allowed = _COLUMNWISE
        if isinstance(X, PairMoments):
            # Moments of seen values are all that is left of the table.
            allowed = {name: solver for name, solver in allowed.items() if solver is not full}
    else:
        allowed = _ANY
    if method == "auto":
        if isinstance(X, PairMoments) and missingness is None:
            # With no rule stated, who is hidden says nothing.
            return truncation
        return next(iter(allowed.values()))
    if method not in allowed:
        if isinstance(X, IntervalData):
            what = "IntervalData, whose cells say themselves where they lie"
        elif isinstance(X, PairMoments):
            what = "moments"
        elif isinstance(X, RowBlocks):
            what = "a table in pieces"
            if missingness is not None:
                what += f" under {type(missingness).__name__}"
        else:
            what = "data without a rule" if missingness is None else type(missingness).__name__
        offers = [name for name in allowed if _works(name, missingness, X)]
        raise InputError(f"method {method!r} does not fit {what}; choose {' or '.join(offers)}.")
    return allowed[method]


def _in_pieces(missingness: Missingness | None) -> dict[str, Callable[..., Estimate]]:
    """Methods for tables that are read in pieces."""
    if isinstance(missingness, RowTruncation):
        raise InputError(
            "under RowTruncation the table is needed in memory: pass an array, of some rows if need "
            "be."
        )
    by_column = missingness is None or isinstance(missingness, ColumnwiseMissingness)
    if not by_column or getattr(missingness, "varies_by_row", False):
        return _ANY
    return {"full": full, "pairwise": pairwise, "truncation": truncation}


def _works(method: str, missingness: Missingness | None, X: Any) -> bool:
    """Whether a method that a kind of rule allows takes these data too.

    One that does not is no offer, but who asks for it by name gets its own sentence.
    """
    by_row = isinstance(missingness, ColumnwiseMissingness) and missingness.varies_by_row
    return method != "truncation_psgd" or not (by_row or isinstance(X, PairMoments))
