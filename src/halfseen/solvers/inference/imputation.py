"""What the holes hold: conditional means, and draws that carry the uncertainty of the parameters too."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
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
from halfseen.parallel import single_blas_thread
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.solvers.full_information.completion import (
    Completion,
    Draws,
    block_rows,
    make_block,
    slide_factor,
    sweep_block,
)
from halfseen.solvers.full_information.filling import fill
from halfseen.solvers.full_information.problem import Problem, read_problem
from halfseen.solvers.full_information.stochastic_em import inverse
from halfseen.solvers.inference.bootstrap import refits
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
        if source is None:
            raise InputError("this fit does not hold its table; pass X.")
        with warnings.catch_warnings():
            # How the table was read was said when it was fitted.
            warnings.simplefilter("ignore", AssumptionWarning)
            return read_problem(
                source.X, source.missingness, source.missing_at_random, source.n_jobs, units
            )
    rule = missingness
    if rule is None and source is not None and not isinstance(X, IntervalData):
        rule = source.missingness if source.original is None else source.original_rule
    table = X if isinstance(X, IntervalData) else _named_table(fit, X)
    if table.values.shape[1] != g.dimension:
        raise InputError(f"the fit has {g.dimension} columns, but X has {table.values.shape[1]}.")
    if fit.transforms is not None:
        if rule is not None:
            # What contradicts the rule is to be named in original units.
            rule = rule.for_columns(table.names)
            rule.check(table.values, table.names, _mask_or_none(missing_at_random))
        table, rule = apply(table, rule, fit.transforms)
    return read_problem(table, rule, missing_at_random, None, units)


def _mask_or_none(given: Any) -> NDArray[np.bool_] | None:
    return None if given is None else np.asarray(given, dtype=bool)


def _named_table(fit: Fit, X: Any) -> Table:
    """Read a table; one without names has those of the fit."""
    table = read_table(X, fewest_rows=1)
    if frame_kind(X) is None:
        fits = table.values.shape[1] == len(fit.names)
        return Table(table.values, fit.names) if fits else table
    if table.names != fit.names and sorted(table.names) == sorted(fit.names):
        raise InputError(
            "X has the columns of the fit in another order; pass X[list(fit.names)], or the like."
        )
    return table


def original_table(fit: Fit) -> Any:
    """Return the table that was fitted, as it was given."""
    source = fit.source
    assert source is not None
    return source.X if source.original is None else source.original


def seen_values(fit: Fit, X: Any) -> Floats:
    """Return the table as it was given, NaN where hidden: seen cells are not changed by a bit."""
    if X is None:
        X = original_table(fit)
    if isinstance(X, IntervalData):
        return X.values
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
    curved = _curved(fit)
    with single_blas_thread():
        total, tally, originals = _average(problem, mean, covariance, seed, n_jobs, curved)
    Y = np.where(hidden, total, problem.Y)
    if tally is not None:
        _keep_inside(Y, problem, *tally)
    filled = back_to_units(_to_units(problem, Y), fit.transforms)
    one_piece = hidden & ~_several_pieces(problem)
    for j, curve in originals.items():
        # Of a curved scale the mean is taken in original units, draw by draw.
        values = curve.mean(_to_units(problem, total)[:, j])
        filled[:, j] = np.where(one_piece[:, j], values, filled[:, j])
    filled = np.where(hidden, filled, seen_values(fit, X))
    _check_finite(filled, fit)
    return _like(fit, X, filled)


def _curved(fit: Fit) -> dict[int, Transform]:
    """Columns on scales that are not straight, with their transforms."""
    return {j: t for j, t in enumerate(fit.transforms or ()) if not isinstance(t, Identity)}


def _several_pieces(problem: Problem) -> NDArray[np.bool_]:
    sets, index = problem.holes.sets, problem.holes.index
    return (index >= 0) & (np.diff(sets.start)[index] > 1)


def _check_finite(filled: Floats, fit: Fit) -> None:
    wrong = np.argwhere(~np.isfinite(filled))
    if wrong.size:
        row, column = (int(k) for k in wrong[0])
        assert fit.transforms is not None
        raise InputError(
            f"row {row}, column {fit.names[column]}: on the scale {fit.transforms[column].name} the "
            "hidden value lies where original units have none. Choose another transform for this column."
        )


def _like(fit: Fit, X: Any, filled: Floats) -> Any:
    """Give the filled table back in the shape that the table came in."""
    given = original_table(fit) if X is None else X
    if isinstance(given, IntervalData):
        return frame_of(filled, given.names, given.frame, given.labels)
    names = list(given.columns) if frame_kind(given) == "pandas" else fit.names
    return frame_of(filled, names, frame_kind(given), getattr(given, "index", None))


def _average(
    problem: Problem,
    mean: Floats,
    covariance: Floats,
    seed: int,
    n_jobs: int | None,
    curved: Mapping[int, Transform],
) -> tuple[Floats, tuple[Floats, Floats] | None, dict[int, _Curve]]:
    """Average the expected values of hidden cells over sweeps; tally draws by piece of their sets.

    Draws of ``curved`` columns are also averaged in original units.
    """
    originals = {j: _Curve(transform, len(problem.Y)) for j, transform in curved.items()}
    Y, holes = problem.Y, problem.holes
    fill(Y, holes, mean, np.sqrt(np.diag(covariance)), seed, problem.names, 0, n_jobs)
    P = inverse(covariance)
    factor = slide_factor(holes, P)
    total = np.zeros(Y.shape)
    pieces = int(np.diff(holes.sets.start).max(initial=0))
    tally = (np.zeros((pieces, *Y.shape)), np.zeros((pieces, *Y.shape))) if pieces > 1 else None
    step = block_rows(Y.shape[1])
    for start in range(0, len(Y), step):
        rows = slice(start, min(start + step, len(Y)))
        block = make_block(holes, rows)
        rng = keyed_generator(seed, Purpose.IMPUTATION, start)
        part = Y[rows]
        for k in range(FORGET + SWEEPS):
            Z = part - mean
            E = Z.copy()
            draws = Draws.make(block, rng, factor)
            sweep_block(part, Z, E, np.zeros(mean.size), block, mean, P, draws, bool(k % 2))
            if k >= FORGET:
                total[rows] += E
                for j, curve in originals.items():
                    curve.add(rows, problem.centre[j] + problem.scale[j] * part[:, j])
                if tally is not None:
                    _count(tally, part, holes.index[rows], holes.sets, rows)
    return total / SWEEPS + mean, tally, originals


class _Curve:
    """Average of draws of one column in original units.

    Draws z are noisier than their expected values, which are known too; what g(z) owes to the noise
    of z is taken out by regression (a control variate).
    """

    def __init__(self, transform: Transform, rows: int) -> None:
        self.transform = transform
        # Sums of z, z², g, zg, about the first draw; least and largest g.
        self.origin = np.zeros((2, rows))
        self.sums = np.zeros((4, rows))
        self.least, self.largest = np.full(rows, np.inf), np.full(rows, -np.inf)

    def add(self, rows: slice, z: Floats) -> None:
        """Add one draw of each of some rows."""
        g = self.transform.inverse(z)
        first = ~self.sums[:, rows].any(axis=0) & np.isinf(self.least[rows])
        self.origin[:, rows] = np.where(first, (z, g), self.origin[:, rows])
        np.minimum(self.least[rows], g, out=self.least[rows])
        np.maximum(self.largest[rows], g, out=self.largest[rows])
        with np.errstate(invalid="ignore"):
            z, g = z - self.origin[0, rows], g - self.origin[1, rows]
            self.sums[:, rows] += z, z * z, g, z * g

    def mean(self, expected: Floats) -> Floats:
        """Return the mean of g, where the mean of z is known to be ``expected``."""
        with np.errstate(invalid="ignore", divide="ignore"):
            z, zz, g, zg = self.sums / SWEEPS
            slope = (zg - z * g) / (zz - z * z)
            slope = np.where(np.isfinite(slope), slope, 0.0)
            value = self.origin[1] + g - slope * (self.origin[0] + z - expected)
        # Inside of what was drawn, and so inside of the hidden set.
        return np.clip(value, self.least, self.largest)


def _count(tally: tuple[Floats, Floats], part: Floats, index: Any, sets: Any, rows: slice) -> None:
    """Add draws to the piece of the set that each lies in."""
    sizes = np.diff(sets.start)
    for piece in range(len(tally[0])):
        has = (index >= 0) & (sizes[index] > piece)
        at = np.where(has, sets.start[index] + piece, 0)
        here = has & (part >= sets.lower[at]) & (part <= sets.upper[at])
        tally[0][piece, rows] += here
        tally[1][piece, rows] += np.where(here, part, 0.0)


def _keep_inside(Y: Floats, problem: Problem, counts: Floats, sums: Floats) -> None:
    """Where a mean falls between the pieces of its set, take the mean of the likeliest piece."""
    sets, index = problem.holes.sets, problem.holes.index
    several = _several_pieces(problem)
    inside = np.zeros(Y.shape, dtype=bool)
    for piece in range(len(counts)):
        has = several & (np.diff(sets.start)[index] > piece)
        at = np.where(has, sets.start[index] + piece, 0)
        inside |= has & (sets.lower[at] <= Y) & (sets.upper[at] >= Y)
    best = counts.argmax(axis=0)
    r, c = np.nonzero(several & ~inside & (counts.max(axis=0) > 0))
    Y[r, c] = sums[best[r, c], r, c] / counts[best[r, c], r, c]


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
