"""The table behind a fit, or another one under the same rule: read, and given back in its shape."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.interval_data import IntervalData
from halfseen.data.table import Table, frame_kind, frame_of, read_table
from halfseen.errors import AssumptionWarning, InputError
from halfseen.missingness.base import Missingness
from halfseen.solvers.full_information.feasible import check_feasible
from halfseen.solvers.full_information.problem import Problem, read_problem
from halfseen.solvers.loss import Loss, losing
from halfseen.solvers.result import Estimate, Source
from halfseen.solvers.scales import apply

Floats = NDArray[np.float64]


def read_source(
    fit: Estimate, X: Any, missingness: Any = None, missing_at_random: Any = None
) -> Problem:
    """Read the table that was fitted, or another one under the same rule, in the units of the fit."""
    source = fit.source
    g = fit.gaussian
    units = g.mean, g.standard_deviations
    if X is None:
        if source is None or source.X is None:
            raise InputError(
                "this fit does not hold its table; pass X. A saved fit never does, nor does one of "
                "moments; the log-likelihood is the sum of score_rows(X)."
            )
        return fitted_problem(source, units, fit.loss)
    rule = rule_of(fit) if missingness is None else missingness
    table = _named_table(fit, X)
    if fit.transforms is not None:
        if rule is not None:
            rule = rule.for_columns(table.names)
            if isinstance(table, Table):
                # What contradicts the rule is to be named in original units.
                rule.check(table.values, table.names, _mask_or_none(missing_at_random))
        table, rule = apply(table, rule, fit.transforms)
    problem = read_problem(table, rule, missing_at_random, None, units)
    check_feasible(problem.Y, problem.holes, problem.names)
    return losing(problem, fit.loss, table, rule, missing_at_random)


def fitted_problem(
    source: Source, units: tuple[Floats, Floats] | None = None, loss: Loss | None = None
) -> Problem:
    """Read the table of a fit once more, with units or losses of the fit where they are asked for."""
    with warnings.catch_warnings():
        # How the table was read was said when it was fitted.
        warnings.simplefilter("ignore", AssumptionWarning)
        return losing(read_problem(*source.given, source.n_jobs, units), loss, *source.given)


def rule_of(fit: Estimate) -> Missingness | None:
    """Return the rule of a fit as it was given, in original units; None where there is none."""
    return None if fit.source is None else fit.source.stated_rule


def _mask_or_none(given: Any) -> NDArray[np.bool_] | None:
    return None if given is None else np.asarray(given, dtype=bool)


def _named_table(fit: Estimate, X: Any) -> Table | IntervalData:
    """Read a table with the columns of the fit; one without names has those of the fit."""
    table = X if isinstance(X, IntervalData) else read_table(X, fewest_rows=1)
    d, width = len(fit.names), table.values.shape[1]
    if width != d:
        raise InputError(f"the fit has {d} columns, but X has {width}.")
    unnamed = table.names == tuple(f"x{j}" for j in range(d))
    if unnamed or (frame_kind(X) is None and not isinstance(X, Table | IntervalData)):
        table = (
            replace(table, names=fit.names)
            if isinstance(table, IntervalData)
            else Table(table.values, fit.names)
        )
    if table.names != fit.names:
        if sorted(table.names) == sorted(fit.names):
            raise InputError(
                "X has the columns of the fit in another order; pass X[list(fit.names)], or the like."
            )
        wrong = next(p for p in zip(fit.names, table.names, strict=True) if p[0] != p[1])
        raise InputError(f"the fit has a column {wrong[0]!r} where X has {wrong[1]!r}.")
    if isinstance(table, IntervalData) and table.is_plain:
        # Values and blank cells alone are a table with NaN, as for ``fit``.
        return Table(table.values, table.names)
    return table


def original_table(fit: Estimate) -> Any:
    """Return the table that was fitted, as it was given."""
    source = fit.source
    assert source is not None
    return source.X if source.original is None else source.original


def seen_values(fit: Estimate, X: Any) -> Floats:
    """Return the table as it was given: seen cells are not changed by a bit.

    What stands in hidden cells is not to be used.
    """
    if X is None:
        X = original_table(fit)
    if isinstance(X, IntervalData):
        # Intervals that are next to nothing were taken for values in their middle.
        with np.errstate(invalid="ignore"):
            middle = X.lower + 0.5 * (X.upper - X.lower)
        return np.where(X.seen, X.lower, np.where(np.isfinite(middle), middle, np.nan))
    return np.asarray(read_table(X, fewest_rows=1).values, dtype=float)


def in_shape_of(fit: Estimate, X: Any, filled: Floats) -> Any:
    """Give the filled table back in the shape that the table came in."""
    given = original_table(fit) if X is None else X
    if isinstance(given, IntervalData):
        index = given.labels if given.index is None else given.index
        return frame_of(filled, given.names, given.frame, index)
    names = list(given.columns) if frame_kind(given) == "pandas" else fit.names
    return frame_of(filled, names, frame_kind(given), getattr(given, "index", None))
