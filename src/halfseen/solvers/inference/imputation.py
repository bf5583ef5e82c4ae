"""What the holes hold: conditional means, and draws that carry the uncertainty of the parameters too."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import whole_number
from halfseen.data.frames import frame_kind, frame_of
from halfseen.data.interval_data import IntervalData
from halfseen.data.row_blocks import sweep_rows
from halfseen.data.table import Table, read_table
from halfseen.data.transforms import Identity, Transform, back_to_units
from halfseen.errors import AssumptionWarning, InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import everything
from halfseen.parallel import single_blas_thread
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.simulate import simulate
from halfseen.solvers.full_information.completion import (
    Completion,
    Draws,
    make_block,
    slide_factor,
    sweep_block,
)
from halfseen.solvers.full_information.filling import fill
from halfseen.solvers.full_information.problem import Problem, read_problem
from halfseen.solvers.full_information.stochastic_em import inverse
from halfseen.solvers.inference.bootstrap import refits
from halfseen.solvers.inference.piecewise import PieceMeans, agree, special_columns
from halfseen.solvers.scales import apply

if TYPE_CHECKING:
    from halfseen.solvers.result import Fit

Floats = NDArray[np.float64]

# Sweeps that are averaged for conditional means. The noise left is a tenth of a cell's own spread where
# cells move freely, more where they follow each other closely.
SWEEPS = 100
# Along hardly determined directions a drawn variance changes by a factor of at most exp(4).
LARGEST_MOVE = 4.0
# Sweeps that are made before values are used, so that they do not remember where they were filled in.
FORGET = 20


def read_source(
    fit: Fit, X: Any, missingness: Any = None, missing_at_random: Any = None
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
        with warnings.catch_warnings():
            # How the table was read was said when it was fitted.
            warnings.simplefilter("ignore", AssumptionWarning)
            return read_problem(
                source.X, source.missingness, source.missing_at_random, source.n_jobs, units
            )
    rule = missingness
    if rule is None and source is not None:
        rule = source.missingness if source.original is None else source.original_rule
    table = _named_table(fit, X)
    if fit.transforms is not None:
        if rule is not None and isinstance(table, Table):
            # What contradicts the rule is to be named in original units.
            rule = rule.for_columns(table.names)
            rule.check(table.values, table.names, _mask_or_none(missing_at_random))
        table, rule = apply(table, rule, fit.transforms)
    return read_problem(table, rule, missing_at_random, None, units)


def _mask_or_none(given: Any) -> NDArray[np.bool_] | None:
    return None if given is None else np.asarray(given, dtype=bool)


def _named_table(fit: Fit, X: Any) -> Table | IntervalData:
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


def original_table(fit: Fit) -> Any:
    """Return the table that was fitted, as it was given."""
    source = fit.source
    assert source is not None
    return source.X if source.original is None else source.original


def seen_values(fit: Fit, X: Any) -> Floats:
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


def impute(
    fit: Fit, X: Any = None, missingness: Any = None, missing_at_random: Any = None
) -> Floats:
    """Return the table with each hidden cell at its conditional mean; see ``Fit.impute``."""
    problem = read_source(fit, X, missingness, missing_at_random)
    n_jobs = None if fit.source is None else fit.source.n_jobs
    seed = 0 if fit.source is None else fit.source.seed
    mean, covariance = problem.from_units(fit.gaussian.mean, fit.gaussian.covariance)
    hidden = problem.hidden
    special = special_columns(problem, fit.transforms)
    with single_blas_thread():
        total, means = _average(problem, mean, covariance, seed, n_jobs, special)
    filled = back_to_units(_to_units(problem, np.where(hidden, total, problem.Y)), fit.transforms)
    for start, found in means:
        filled[start + found.rows, found.column] = found.values()
    filled = np.where(hidden, filled, seen_values(fit, X))
    _check_finite(filled, fit)
    return _like(fit, X, filled)


def _check_finite(filled: Floats, fit: Fit) -> None:
    wrong = np.argwhere(~np.isfinite(filled))
    if wrong.size:
        row, column = (int(k) for k in wrong[0])
        scale = "none" if fit.transforms is None else fit.transforms[column].name
        raise InputError(
            f"row {row}, column {fit.names[column]}: on the scale {scale} the hidden value lies where "
            "there are no numbers in original units. Choose another transform, or look at the limit."
        )


def _like(fit: Fit, X: Any, filled: Floats) -> Any:
    """Give the filled table back in the shape that the table came in."""
    given = original_table(fit) if X is None else X
    if isinstance(given, IntervalData):
        index = given.labels if given.index is None else given.index
        return frame_of(filled, given.names, given.frame, index)
    names = list(given.columns) if frame_kind(given) == "pandas" else fit.names
    return frame_of(filled, names, frame_kind(given), getattr(given, "index", None))


def _average(
    problem: Problem,
    mean: Floats,
    covariance: Floats,
    seed: int,
    n_jobs: int | None,
    special: Mapping[int, Transform],
) -> tuple[Floats, list[tuple[int, PieceMeans]]]:
    """Average the expected values of hidden cells over sweeps.

    Those of ``special`` columns are averaged in original units too, for blocks that begin at a row.
    """
    Y, holes = problem.Y, problem.holes
    fill(Y, holes, mean, np.sqrt(np.diag(covariance)), seed, problem.names, 0, n_jobs)
    P = inverse(covariance)
    factor = slide_factor(holes.inequalities is not None, P)
    total = np.zeros(Y.shape)
    means: list[tuple[int, PieceMeans]] = []
    step = sweep_rows(Y.shape[1])
    for start in range(0, len(Y), step):
        rows = slice(start, min(start + step, len(Y)))
        block = make_block(holes, rows)
        own = [PieceMeans(block, j, problem, transform) for j, transform in special.items()]
        rng = keyed_generator(seed, Purpose.IMPUTATION, start)
        part = Y[rows]
        for k in range(FORGET + SWEEPS):
            Z = part - mean
            E = Z.copy()
            draws = Draws.make(block, rng, factor)
            R = sweep_block(part, Z, E, np.zeros(mean.size), block, mean, P, draws, bool(k % 2))
            if k >= FORGET:
                total[rows] += E
                for found in own:
                    found.add(Z, R, mean, P)
        agree(own)
        means += [(start, found) for found in own if found.rows.size]
    return total / SWEEPS + mean, means


def _to_units(problem: Problem, Y: Floats) -> Floats:
    return problem.centre + problem.scale * Y


def draw_imputations(
    fit: Fit,
    X: Any = None,
    m: int = 20,
    random_state: RandomState = None,
    missingness: Any = None,
    missing_at_random: Any = None,
) -> Floats:
    """Return m completed tables; see ``Fit.draw_imputations``."""
    m = whole_number("m", m)
    seed = seed_of(random_state)
    problem = read_source(fit, X, missingness, missing_at_random)
    n_jobs = None if fit.source is None else fit.source.n_jobs
    out = np.empty((m, *problem.shape))
    hidden = problem.hidden
    seen = seen_values(fit, X)
    with single_blas_thread():
        for k, parameters in enumerate(parameter_draws(fit, m, seed)):
            mean, covariance = problem.from_units(parameters.mean, parameters.covariance)
            if k == 0:
                spread = np.sqrt(np.diag(covariance))
                fill(problem.Y, problem.holes, mean, spread, seed, problem.names, 0, n_jobs)
            # Each table goes on from the one before, at parameters of its own.
            rows = Completion(problem.Y, problem.holes, seed, 1 + k, n_jobs)
            P = inverse(covariance)
            for _ in range(FORGET):
                rows.sweep(mean, P)
            drawn = back_to_units(_to_units(problem, problem.Y), fit.transforms)
            out[k] = np.where(hidden, drawn, seen)
            _check_finite(out[k], fit)
    return out


def parameter_draws(fit: Fit, m: int, seed: int) -> list[Gaussian]:
    """Draw parameters as uncertain as the fit is.

    From the normal approximation where the covariance of all parameters is known; else by refitting rows
    drawn with replacement.
    """
    errors = fit.uncertainty
    if errors is None or errors.parameters is None:
        return [found.gaussian for found in refits(fit, m, "rows", seed)]
    # On unit scale, so that units do not matter.
    scale = np.sqrt(np.diag(errors.parameters))
    safe = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(errors.parameters / np.outer(safe, safe))
    root = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    rng = keyed_generator(seed, Purpose.IMPUTATION)
    return [_moved(fit.gaussian, root @ rng.standard_normal(values.size)) for _ in range(m)]


def _moved(g: Gaussian, move: Floats) -> Gaussian:
    """Move the parameters of a Gaussian.

    A covariance L Lᵀ + δ becomes L exp(L⁻¹ δ L⁻ᵀ) Lᵀ, which is the same to first order and always
    positive definite.
    """
    d = g.dimension
    i, j = np.tril_indices(d)
    change = np.zeros((d, d))
    change[i, j] = change[j, i] = move[d:]
    L = g.cholesky
    inner = np.linalg.solve(L, np.linalg.solve(L, change).T)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    root = L @ (vectors * np.exp(0.5 * np.clip(values, -LARGEST_MOVE, LARGEST_MOVE)))
    return Gaussian(g.mean + move[:d], root @ root.T)


def simulate_like(fit: Fit, n: int, missingness: Any, random_state: RandomState) -> Any:
    """Draw a table in original units; see ``Fit.simulate``."""
    source = fit.source
    rule = missingness
    if rule is None and source is not None:
        rule = source.missingness if source.original is None else source.original_rule
    if rule is None:
        rule = SelfCensoring(everything)
    if not isinstance(rule, Missingness):
        raise InputError(f"missingness must be a rule such as DetectionLimits(...); got {rule!r}.")
    rule = rule.for_columns(fit.names)
    transforms = fit.transforms or (Identity(),) * len(fit.names)
    X, Z = simulate(
        fit.gaussian, rule.transformed(transforms, fit.names), n, random_state, return_complete=True
    )
    values = np.where(np.isnan(X), np.nan, back_to_units(Z, transforms))
    return frame_of(values, fit.names, fit.frame)
