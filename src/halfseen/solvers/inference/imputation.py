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
from halfseen.data.table import Table, read_table
from halfseen.data.transforms import Identity, Transform, back_to_units
from halfseen.errors import AssumptionWarning, InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import everything
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.simulate import simulate
from halfseen.solvers.full_information.expectation import (
    Block,
    Parameters,
    Sampling,
    drawn_rows,
    expected_rows,
    lay_out,
)
from halfseen.solvers.full_information.feasible import check_feasible
from halfseen.solvers.full_information.problem import Problem, read_problem
from halfseen.solvers.inference.bootstrap import refits
from halfseen.solvers.inference.piecewise import PieceMeans, agree, special_columns
from halfseen.solvers.loss import losing
from halfseen.solvers.result import name_some
from halfseen.solvers.scales import apply

if TYPE_CHECKING:
    from halfseen.solvers.result import Estimate

Floats = NDArray[np.float64]

# Points for conditional means, for draws of a row, and for means in original units of columns on curved
# scales; the last are averages over that many draws.
MEAN_POINTS, DRAW_POINTS, SPECIAL_DRAWS = 512, 128, 100
# Along hardly determined directions a drawn variance changes by a factor of at most exp(4).
LARGEST_MOVE = 4.0


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
        with warnings.catch_warnings():
            # How the table was read was said when it was fitted.
            warnings.simplefilter("ignore", AssumptionWarning)
            given = source.X, source.missingness, source.missing_at_random
            return losing(read_problem(*given, source.n_jobs, units), fit.loss, *given)
    rule = missingness
    if rule is None and source is not None:
        rule = source.missingness if source.original is None else source.original_rule
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


def impute(
    fit: Estimate, X: Any = None, missingness: Any = None, missing_at_random: Any = None
) -> Floats:
    """Return the table with each hidden cell at its conditional mean; see ``Fit.impute``."""
    problem = read_source(fit, X, missingness, missing_at_random)
    n_jobs = None if fit.source is None else fit.source.n_jobs
    seed = 0 if fit.source is None else fit.source.seed
    hidden = problem.hidden
    special = special_columns(problem, fit.transforms)
    if special and not np.isinf(fit.degrees):
        names = name_some([fit.names[j] for j in special])
        raise InputError(
            f"hidden cells of column {names} are on a curved scale, or in sets of several pieces; under "
            "t errors they have no mean in original units that can be relied on. Use "
            "fit.draw_imputations()."
        )
    with single_blas_thread():
        at = _at(problem, fit, fit.gaussian)
        total, means = _average(problem, at, seed, n_jobs, special)
    filled = back_to_units(_to_units(problem, np.where(hidden, total, problem.Y)), fit.transforms)
    for start, found in means:
        filled[start + found.rows, found.column] = found.values()
    filled = np.where(hidden, filled, seen_values(fit, X))
    _check_finite(filled, fit)
    return _like(fit, X, filled)


def _at(problem: Problem, fit: Estimate, g: Gaussian) -> Parameters:
    """Return parameters as the kernels want them, with the tails of a fit."""
    return Parameters.of(*problem.from_units(g.mean, g.covariance), fit.degrees)


def _check_finite(filled: Floats, fit: Estimate) -> None:
    wrong = np.argwhere(~np.isfinite(filled))
    if wrong.size:
        row, column = (int(k) for k in wrong[0])
        scale = "none" if fit.transforms is None else fit.transforms[column].name
        raise InputError(
            f"on the scale {scale} the hidden value lies where "
            "there are no numbers in original units. Choose another transform, or look at the limit.",
            row,
            fit.names[column],
        )


def _like(fit: Estimate, X: Any, filled: Floats) -> Any:
    """Give the filled table back in the shape that the table came in."""
    given = original_table(fit) if X is None else X
    if isinstance(given, IntervalData):
        index = given.labels if given.index is None else given.index
        return frame_of(filled, given.names, given.frame, index)
    names = list(given.columns) if frame_kind(given) == "pandas" else fit.names
    return frame_of(filled, names, frame_kind(given), getattr(given, "index", None))


def _average(
    problem: Problem,
    at: Parameters,
    seed: int,
    n_jobs: int | None,
    special: Mapping[int, Transform],
) -> tuple[Floats, list[tuple[int, PieceMeans]]]:
    """Return rows with hidden cells at their conditional means.

    For ``special`` columns come means in original units too, for blocks that begin at a row.
    """
    Y, layout = problem.Y, lay_out(problem.holes)
    sampling = Sampling(MEAN_POINTS, seed, 0, Purpose.IMPUTATION)

    def work(block: Block) -> tuple[Floats, list[tuple[int, PieceMeans]]]:
        found = expected_rows(Y, block, layout.confines, at, sampling)
        part = problem.holes.take(block.rows)
        own = [PieceMeans(part, j, problem, transform) for j, transform in special.items()]
        if own:
            for one in drawn_rows(Y, block, layout.confines, at, sampling, SPECIAL_DRAWS):
                Z = one - at.mean
                R = Z @ at.precision
                for means in own:
                    means.add(Z, R, at.mean, at.precision)
            agree(own)
        return found, [(block.first_row, means) for means in own if means.rows.size]

    parts = list(map_in_order(work, layout.blocks, n_jobs))
    return np.concatenate([rows for rows, _ in parts]), [m for _, means in parts for m in means]


def draw_table(
    problem: Problem, at: Parameters, seed: int, number: int, n_jobs: int | None = None
) -> Floats:
    """Draw all hidden cells of a table, in standardised units."""
    sampling = Sampling(DRAW_POINTS, seed, number, Purpose.IMPUTATION)
    layout = lay_out(problem.holes)

    def work(block: Block) -> Floats:
        return drawn_rows(problem.Y, block, layout.confines, at, sampling)[0]

    return np.concatenate(list(map_in_order(work, layout.blocks, n_jobs)))


def _to_units(problem: Problem, Y: Floats) -> Floats:
    return problem.centre + problem.scale * Y


def draw_imputations(
    fit: Estimate,
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
            at = _at(problem, fit, parameters)
            table = draw_table(problem, at, seed, 1 + k, n_jobs)
            drawn = back_to_units(_to_units(problem, table), fit.transforms)
            out[k] = np.where(hidden, drawn, seen)
            _check_finite(out[k], fit)
    return out


def parameter_draws(fit: Estimate, m: int, seed: int) -> list[Gaussian]:
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
    return [moved(fit.gaussian, root @ rng.standard_normal(values.size)) for _ in range(m)]


def moved(g: Gaussian, move: Floats) -> Gaussian:
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


def simulate_like(fit: Estimate, n: int, missingness: Any, random_state: RandomState) -> Any:
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
        fit.gaussian, rule.transformed(transforms, fit.names), n, random_state, return_complete=True,
        degrees_of_freedom=None if np.isinf(fit.degrees) else fit.degrees,
    )  # fmt: skip
    hidden = np.isnan(X)
    if missingness is None and fit.loss is not None:
        lost = (
            keyed_generator(seed_of(random_state), Purpose.LOSSES).random(X.shape) < fit.loss.share
        )
        hidden |= lost
    values = np.where(hidden, np.nan, back_to_units(Z, transforms))
    return frame_of(values, fit.names, fit.frame)
