"""What the holes hold: conditional means, and draws as uncertain as the parameters are.

The conditional mean of a cell is on the scale of the model. For columns on curved scales, and for sets
of several pieces, that is not enough: ``piece_means`` has theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import whole_number
from halfseen.data.transforms import Transform, back_to_units
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.seeds import Purpose, RandomState, seed_of
from halfseen.solvers.full_information.expectation import (
    Block,
    Parameters,
    Sampling,
    drawn_rows,
    expected_rows,
    lay_out,
)
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.inference.draw_table import draw_table
from halfseen.solvers.inference.fitted_table import in_shape_of, read_source, seen_values
from halfseen.solvers.inference.parameter_draws import parameter_draws
from halfseen.solvers.inference.piece_means import PieceMeans, agree, special_columns
from halfseen.solvers.result import Estimate, name_some

Floats = NDArray[np.float64]

# Points for conditional means, and for means in original units of columns on curved scales, which are
# averages over that many draws.
MEAN_POINTS, SPECIAL_DRAWS = 512, 100


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
    for start, column in means:
        filled[start + column.rows, column.column] = column.values()
    filled = np.where(hidden, filled, seen_values(fit, X))
    _check_finite(filled, fit)
    return in_shape_of(fit, X, filled)


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
        rows = expected_rows(Y, block, layout.confines, at, sampling)
        part = problem.holes.take(block.rows)
        own = [PieceMeans(part, j, problem, transform) for j, transform in special.items()]
        if own:
            for one in drawn_rows(Y, block, layout.confines, at, sampling, SPECIAL_DRAWS):
                Z = one - at.mean
                R = Z @ at.precision
                for means in own:
                    means.add(Z, R, at.mean, at.precision)
            agree(own)
        return rows, [(block.first_row, means) for means in own if means.rows.size]

    parts = list(map_in_order(work, layout.blocks, n_jobs))
    return np.concatenate([rows for rows, _ in parts]), [m for _, means in parts for m in means]


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
