"""One door to every solver."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfseen.data.grouping import split_groups
from halfseen.data.interval_data import IntervalData
from halfseen.data.rounding import Rounded, as_recorded
from halfseen.data.table import TableKind, listed_names
from halfseen.errors import AssumptionWarning, InputError, argument, warn
from halfseen.missingness.base import Missingness, RuleKind
from halfseen.scaling.sources import blocks_of, engine_for
from halfseen.seeds import RandomState
from halfseen.solvers.groups.by_group import ByGroup, check_options, check_table
from halfseen.solvers.in_pieces import CHECKPOINTS, fit_pieces
from halfseen.solvers.methods import Method, choose
from halfseen.solvers.prepared_table import PreparedTable, hidden_by, read_given
from halfseen.solvers.result import Estimate, Note, Status, name_some, warn_of_status
from halfseen.solvers.scales import check_powers, power_notes, to_model_scale
from halfseen.solvers.structures import Structure

# Intervals of so many standard deviations are slabs. Values that are rounded to steps of three say of
# the standard deviation what 0.37 times as many exact ones would, 0.13 to 0.65 depending on where
# the mean lies; to steps of one 0.86, whatever the mean.
SLAB = 3.0
# Share of the cells of a column that are slabs where it rests on them.
MOSTLY = 0.5


def fit(
    X: Any,
    missingness: Missingness | Rounded | None = None,
    method: str = "auto",
    *,
    covariance: ArrayLike | str | Structure | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    n_jobs: int | None = None,
    names: Sequence[str] | None = None,
    transforms: Any = None,
    by: Any = None,
    client: Any = None,
    memory: str | float | None = None,
    scratch: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Estimate | ByGroup:
    """Learn the Gaussian behind a table with hidden values.

    Parameters
    ----------
    X : array-like of shape (n, d), data frame, IntervalData, PairMoments, RowBlocks or path
        NaN where a value is hidden. A path is that of a Parquet file, of a folder of them, or a pattern
        such as ``"data/*.parquet"``; these, NumPy memmaps, Dask arrays and Dask data frames are read in
        pieces, and may be larger than memory.
    missingness : Missingness, optional
        What hides a value: SelfCensoring, DetectionLimits, SelfSelection, LinearThreshold, Combined
        or RowTruncation. None: nothing does, and NaN is missing at random. Or ``rounded(...)``: recorded
        values stand for intervals.
    method : str
        One of ``halfseen.solvers.METHODS``. "auto" takes the sharpest that the data allow: ``full``,
        but ``truncated_sgd`` for ``RowTruncation``, and ``pairwise`` for moments. ``full`` and
        ``pairwise`` believe that a hidden cell was hidden by the rule; ``truncation`` does not.
    covariance : array-like of shape (d, d), structure or str, optional
        The covariance, where it is known; or, for ``full``, what it may be: "diagonal", "shrinkage",
        "sparse", or a structure such as ``CompoundSymmetry()``, ``AR1()``, ``Toeplitz()``,
        ``Factor(2)``, ``Kronecker(2, 4)``, ``RandomEffects(Z)``, ``BlockDiagonal([2, 3])``, or its
        text, "ar1".
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
    by : str or sequence, optional
        Groups of rows that are to be compared: the name of a column of a data frame, or of one that
        ``read_csv(..., keep=)`` kept, or a label for each row. Needs ``full`` with a free covariance
        and normal errors.
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
    Fit, or with ``by`` a GroupedFit

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
    names = None if names is None else listed_names(names)
    grouping = None
    if by is not None:
        in_pieces = blocks_of(X, names, client, memory, scratch) is not None
        check_options(method, {**options, "covariance": covariance}, in_pieces)
        X, grouping = split_groups(X, by)
    rule: Any = missingness
    if isinstance(missingness, Rounded):
        at_random = options.get("missing_at_random")
        X, rule, at_random = as_recorded(X, missingness, at_random, names)
        options = {**options, "missing_at_random": at_random}
    _check_rule(rule)
    call = _call(options, covariance, transforms, names, random_state)
    options = {**options, "covariance": covariance}
    shared = {"random_state": random_state, "progress": progress, "n_jobs": n_jobs}
    blocks = blocks_of(X, names, client, memory, scratch)
    if blocks is not None:
        engine, blocks = engine_for(client, memory, scratch, n_jobs, blocks)
        found = fit_pieces(blocks, X, rule, method, engine, transforms, options, shared, call)
        warn_of_status(found.status, found.notes)
        return found
    data = read_given(X, rule, names, call, n_jobs)
    if grouping is not None:
        check_table(grouping, data)
    chosen = choose(method, data.kind, data.stated, transforms is not None)
    if data.stated is not None and options.get("missing_at_random") is None:
        _warn_of_blanks(data, chosen)
    result = _fit_table(chosen, data, transforms, chosen.options(options, shared))
    warn_of_status(result.status, result.notes)
    return result if grouping is None else ByGroup(result, grouping)


def _call(
    options: dict[str, Any], covariance: Any, transforms: Any, names: Any, random_state: Any
) -> dict[str, Any]:
    """Return what repeats a fit: where its checkpoints were does not."""
    given = {name: value for name, value in options.items() if name not in CHECKPOINTS}
    given |= {"covariance": covariance, "transforms": transforms}
    if names is not None:
        given["names"] = list(names)
    if isinstance(random_state, int):
        given["random_state"] = random_state
    return given


def _check_rule(missingness: Any) -> None:
    if missingness is None or isinstance(missingness, Missingness):
        return
    hint = "rules(...) makes one of text; " if isinstance(missingness, str | dict | list) else ""
    raise InputError(
        "missingness must be a rule such as SelfCensoring(...), DetectionLimits(...) or "
        f"RowTruncation(...); {hint}got {missingness!r}."
    )


def _warn_of_blanks(table: PreparedTable, method: Method) -> None:
    """Warn of blank cells that are taken to be hidden by the rule: they may be simply missing."""
    data, rule = table.source.original, table.rule
    if not isinstance(data, IntervalData):
        return
    marked = (~data.seen & ~data.blank).any(axis=0)
    blank = data.blank & ~marked
    if not method.needs.believes or not blank.any():
        return
    counts = (blank & hidden_by(rule, data)).sum(axis=0)
    if counts.any():
        blanks = [f"{data.names[j]} ({counts[j]})" for j in np.flatnonzero(counts)]
        if "missing_at_random" in method.arguments:
            remedy = f"Pass {argument('missing_at_random')} if they are simply missing."
        elif rule.kind is RuleKind.WHOLE_ROWS:
            remedy = "Leave these rows out if they are simply missing."
        else:
            full_with = f"{argument('method', 'full')} with {argument('missing_at_random')}"
            remedy = f"If they are simply missing, use {full_with}."
        warn(
            "blank cells are taken to be hidden by the rule, in column "
            f"{name_some(blanks, 6)}. {remedy}"
        )


def _fit_table(
    method: Method, data: PreparedTable, transforms: Any, options: dict[str, Any]
) -> Estimate:
    """Fit a table on the scale of the model, and describe the fit in the words of the table."""
    if data.kind is TableKind.MOMENTS:
        # Of the table that they are of nothing else is known.
        return method.run(data, data.stated, **options)
    scales, powers, learned = None, None, 0
    if transforms is not None:
        data, scales, powers = to_model_scale(data, options.get("missing_at_random"), transforms)
        check_powers(powers, data.names, options.get("errors", "normal"))
        learned = sum(one is not None for one in powers or ())
    said = transforms is not None and data.rule.kind is not RuleKind.WHOLE_ROWS
    # Leaving such a context makes Python forget which warnings it has shown.
    with warnings.catch_warnings() if said else nullcontext():
        if said:
            # How the table was read was said just now, in its own units.
            warnings.simplefilter("ignore", AssumptionWarning)
        result = method.run(data, data.stated, **options)
    return replace(
        result,
        source=result.source or replace(data.source, n_jobs=options.get("n_jobs")),
        parameters=None if result.parameters is None else result.parameters + learned,
        notes=(*result.notes, *power_notes(powers or (), data.names), *_slab_notes(data, result)),
        transforms=scales,
        powers=powers,
        frame=data.frame,
    )


def _slab_notes(data: PreparedTable, result: Estimate) -> list[Note]:
    """Say which columns rest on intervals that are much wider than the column spreads."""
    table = data.table
    if not isinstance(table, IntervalData):
        return []
    with np.errstate(invalid="ignore"):
        width = table.upper - table.lower
    deviations = np.sqrt(np.diag(result.covariance))
    slabs = np.isfinite(width) & (width > SLAB * deviations)
    known = ~table.at_random
    mostly = slabs.sum(axis=0) > MOSTLY * np.maximum(known.sum(axis=0), 1)
    names = [table.names[j] for j in np.flatnonzero(mostly)]
    if not names:
        return []
    text = (
        f"Values of {name_some(names)} are known to intervals of more than {SLAB:g} standard "
        "deviations, as where they were rounded to a coarse step: how far they spread rests on "
        "normality more than on what was recorded."
    )
    return [Note(Status.WEAKLY_IDENTIFIED, text)]
