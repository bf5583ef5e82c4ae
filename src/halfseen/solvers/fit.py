"""One door to every solver."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.data.frames import frame_kind
from halfseen.data.interval_data import IntervalData, scan_of
from halfseen.data.learned_power import LearnedPower
from halfseen.data.moments import PairMoments
from halfseen.data.names import check_names, with_names
from halfseen.data.parquet_blocks import is_parquet
from halfseen.data.row_blocks import RowBlocks, is_mapped
from halfseen.data.table import Table, TableKind, read_table
from halfseen.errors import (
    ApproximationWarning,
    AssumptionWarning,
    ConvergenceWarning,
    InputError,
    argument,
)
from halfseen.missingness.base import Missingness, RuleKind
from halfseen.scaling.dask_blocks import is_dask
from halfseen.scaling.engine import Engine
from halfseen.scaling.sources import blocks_of, engine_for
from halfseen.seeds import RandomState
from halfseen.solvers.full_information.journal import check_checkpoint
from halfseen.solvers.in_pieces import InPieces
from halfseen.solvers.loss import Loss, read_loss
from halfseen.solvers.methods import Method, choose, need_rows
from halfseen.solvers.prepare import warn
from halfseen.solvers.result import Estimate, Source, Status, name_some
from halfseen.solvers.scales import power_notes, to_model_scale

# Options that say where a fit is kept on its way, not what it is.
_CHECKPOINTS = ("checkpoint", "every", "resume")


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
    told = table if isinstance(table, IntervalData) and rule is not None else None
    if told is not None and told.is_plain:
        # Values and blank cells alone are a table with NaN, for which there are more methods.
        table = Table(told.values, told.names)
    solver = choose(method, table.kind, rule)
    if transforms is not None and isinstance(table, PairMoments):
        raise InputError(need_rows("transforms need"))
    if told is not None and rule is not None and options.get("missing_at_random") is None:
        _warn_of_blanks(told, rule, solver)
    given = _call(options, covariance, transforms, names, random_state)
    shared = {"random_state": random_state, "progress": progress, "n_jobs": n_jobs}
    options = solver.options({**options, "covariance": covariance}, shared)
    if isinstance(table, PairMoments):
        result = solver.run(table, rule, **options)
    else:
        result = _fit_table(solver.run, table, rule, transforms, options)
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
    solver = choose(method, blocks.kind, rule)
    given = solver.options(options, shared)
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
        if TableKind.MOMENTS in solver.needs.takes:
            # Moments say all that it asks, so rows need not be laid out.
            result = solver.run(table.moments(), stated, spread=engine.map, **given)
        else:
            result = solver.run(table.rows(), stated, **given)
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


def _warn_of_blanks(data: IntervalData, rule: Missingness, method: Method) -> None:
    """Warn of blank cells that are taken to be hidden by the rule: they may be simply missing."""
    marked = (~data.seen & ~data.blank).any(axis=0)
    blank = data.blank & ~marked
    if not method.needs.believes or not blank.any():
        return
    counts = (blank & _hidden_by(rule, data)).sum(axis=0)
    if counts.any():
        told = [f"{data.names[j]} ({counts[j]})" for j in np.flatnonzero(counts)]
        if "missing_at_random" in method.arguments:
            remedy = f"Pass {argument('missing_at_random')} if they are simply missing."
        elif rule.kind is RuleKind.WHOLE_ROWS:
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
    if rule.kind is RuleKind.WHOLE_ROWS:
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
            if rule is None or rule.kind is not RuleKind.WHOLE_ROWS:
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
