"""What the holes hold: conditional means, draws as uncertain as the parameters are, and Rubin's rules.

The conditional mean of a cell is on the scale of the model. For columns on curved scales, and for sets
of several pieces, that is not enough. Given the rest of a drawn row a cell has a normal distribution
restricted to its set, under which the mean of any function is a sum over nodes; averaged over
draws of the row it has much less noise than an average of drawn values (Rao-Blackwell).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from halfseen.checks import positive_number, real_array, share, whole_number
from halfseen.data.interval_data import IntervalData
from halfseen.data.table import Table, frame_kind, frame_of, read_table
from halfseen.data.transforms import Identity, Transform, back_to_units
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.kernels.quadrature import NODES_48
from halfseen.kernels.restricted import restricted_nodes
from halfseen.missingness.base import Missingness
from halfseen.missingness.holes import SEEN, Holes
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
from halfseen.solvers.inference.bootstrap import fitted_problem, refits
from halfseen.solvers.inference.intervals import Limits
from halfseen.solvers.inference.uncertainty import principal_axes
from halfseen.solvers.loss import losing
from halfseen.solvers.result import name_some
from halfseen.solvers.scales import apply
from halfseen.theta import unpack

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
        return fitted_problem(source, units, fit.loss)
    rule = _rule_of(fit) if missingness is None else missingness
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


def _rule_of(fit: Estimate) -> Missingness | None:
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
    values, vectors, scale = principal_axes(errors.parameters)
    root = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    rng = keyed_generator(seed, Purpose.IMPUTATION)
    return [moved(fit.gaussian, root @ rng.standard_normal(values.size)) for _ in range(m)]


def moved(g: Gaussian, move: Floats) -> Gaussian:
    """Move the parameters of a Gaussian.

    A covariance L Lᵀ + δ becomes L exp(L⁻¹ δ L⁻ᵀ) Lᵀ, which is the same to first order and always
    positive definite.
    """
    of_mean, change = unpack(move, g.dimension)
    L = g.cholesky
    inner = np.linalg.solve(L, np.linalg.solve(L, change).T)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    root = L @ (vectors * np.exp(0.5 * np.clip(values, -LARGEST_MOVE, LARGEST_MOVE)))
    return Gaussian(g.mean + of_mean, root @ root.T)


def simulate_like(fit: Estimate, n: int, missingness: Any, random_state: RandomState) -> Any:
    """Draw a table in original units; see ``Fit.simulate``."""
    rule = _rule_of(fit) if missingness is None else missingness
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


class PieceMeans:
    """Averages over draws for the hidden cells of one column in a block of rows.

    Parameters
    ----------
    holes : Holes
        Of the block.
    column : int
    problem : Problem
        For its units.
    transform : Transform
        From the units of the table to the scale of the model.
    """

    def __init__(self, holes: Holes, column: int, problem: Problem, transform: Transform) -> None:
        hidden = np.flatnonzero(holes.index[:, column] != SEEN)
        sets, table = holes.index[hidden, column], holes.sets
        sizes = np.diff(table.start)[sets]
        known = sizes > 0
        self.column, self.transform = column, transform
        self.rows = hidden[known]
        sizes, first = sizes[known], table.start[:-1][sets][known]
        # One entry for each piece of each cell.
        self.owner = np.repeat(np.arange(self.rows.size), sizes)
        place = np.arange(self.owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        piece = np.repeat(first, sizes) + place
        self.lower, self.upper = table.lower[piece], table.upper[piece]
        self.log_weight = table.log_weight[piece]
        self.centre, self.scale = problem.centre[column], problem.scale[column]
        if transform.kink is not None:
            self._split((transform.kink - self.centre) / self.scale)
        size = self.owner.size
        # Entries of a cell from below: 0, 1, ...
        order = np.lexsort((self.upper, self.owner))
        begin = np.searchsorted(self.owner[order], self.owner[order])
        self.rank = np.empty(size, dtype=np.intp)
        self.rank[order] = np.arange(size) - begin
        self.several = np.flatnonzero(sizes > 1)
        self.path: list[NDArray[np.int8]] = []
        self.preferred = np.full(self.rows.size, -1)
        self.share, self.first = np.zeros(size), np.zeros(size)
        self._node = np.empty((size, NODES_48.size))
        self._weight, self._mass = np.empty_like(self._node), np.empty(size)

    def _split(self, kink: float) -> None:
        """Cut pieces in two where the way back to original units is not smooth."""
        across = (self.lower < kink) & (kink < self.upper)
        upper = self.upper[across]
        self.upper = np.append(np.where(across, kink, self.upper), upper)
        self.lower = np.append(self.lower, np.full(upper.size, kink))
        self.owner = np.append(self.owner, self.owner[across])
        self.log_weight = np.append(self.log_weight, self.log_weight[across])

    def add(self, Z: Floats, R: Floats, mean: Floats, P: Floats) -> None:
        """Add a draw of all rows, which less their mean are ``Z``, with ``R = Z P``."""
        j = self.column
        m = mean[j] + Z[self.rows, j] - R[self.rows, j] / P[j, j]
        restricted_nodes(
            m[self.owner], P[j, j] ** -0.5, self.lower, self.upper, self._node, self._weight, self._mass
        )  # fmt: skip
        mass = self._mass + self.log_weight
        top = np.full(self.rows.size, -np.inf)
        np.maximum.at(top, self.owner, mass)
        share = np.exp(mass - top[self.owner])
        share /= np.bincount(self.owner, share, self.rows.size)[self.owner]
        values = self.transform.inverse(self.centre + self.scale * self._node)
        if self.several.size:
            y = mean[j] + Z[self.rows, j]
            above = np.bincount(self.owner, y[self.owner] > self.upper, self.rows.size)
            self.path.append(above[self.several].astype(np.int8))
        self.share += share
        self.first += share * np.einsum("ij,ij->i", self._weight, values)

    def values(self) -> Floats:
        """Return a value for each cell, in original units and inside its set.

        That is its mean; where a mean falls between the pieces of a set, that of the likeliest piece, or
        of the one that its row prefers.
        """
        share, first = (
            np.bincount(self.owner, x, self.rows.size) for x in (self.share, self.first)
        )
        mean = first / share
        ends = [
            self.transform.inverse(self.centre + self.scale * e) for e in (self.lower, self.upper)
        ]
        within = (ends[0] <= mean[self.owner]) & (mean[self.owner] <= ends[1])
        inside = np.bincount(self.owner, within, self.rows.size) > 0
        # Pieces in the order of their shares: the last of each cell is the likeliest.
        wanted = (self.rank == self.preferred[self.owner]) & (self.share > 0.0)
        order = np.lexsort((self.share, wanted, self.owner))
        best = order[np.append(np.flatnonzero(np.diff(self.owner[order])), order.size - 1)]
        if not best.size:
            return mean
        value = np.where(inside, mean, self.first[best] / self.share[best])
        # Rounding may not carry a value out of its set.
        least, most = np.full(mean.size, np.inf), np.full(mean.size, -np.inf)
        np.minimum.at(least, self.owner, ends[0])
        np.maximum.at(most, self.owner, ends[1])
        return np.clip(value, least, most)


def agree(columns: Sequence[PieceMeans]) -> None:
    """Let cells of one row prefer pieces together: the combination that was drawn most often.

    Each by itself could end at a corner that is next to impossible.
    """
    members: dict[int, list[tuple[PieceMeans, int]]] = {}
    for found in columns:
        for k, cell in enumerate(found.several):
            members.setdefault(int(found.rows[cell]), []).append((found, k))
    paths = {id(found): np.array(found.path) for found in columns}
    for cells in members.values():
        if len(cells) < 2:
            continue
        drawn = np.stack([paths[id(found)][:, k] for found, k in cells])
        combinations, counts = np.unique(drawn, axis=1, return_counts=True)
        for (found, k), piece in zip(cells, combinations[:, counts.argmax()], strict=True):
            found.preferred[found.several[k]] = piece


def special_columns(
    problem: Problem, transforms: tuple[Transform, ...] | None
) -> dict[int, Transform]:
    """Columns on curved scales or with sets of several pieces, and their transforms."""
    sets, index = problem.holes.sets, problem.holes.index
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.start))
    # A set of lost values leaves nothing out, so that no mean falls between its pieces.
    lost = np.bincount(owner[sets.log_weight != 0.0], minlength=len(sets)) > 0
    many = (np.diff(sets.start) > 1) & ~lost
    several = set(np.nonzero((index >= 0) & many[index])[1].tolist())
    scales = transforms or (Identity(),) * index.shape[1]
    return {j: t for j, t in enumerate(scales) if j in several or not isinstance(t, Identity)}


@dataclass(frozen=True)
class Pooled:
    """An estimate from several completed tables.

    Attributes
    ----------
    estimate, standard_error : arrays
        The average, and the root of the within-variance plus (1 + 1/m) times the between-variance.
    degrees_of_freedom : array
        Of the t distribution that the estimate follows, about.
    missing_information : array
        Share of the information that the holes took.

    Examples
    --------
    >>> import halfseen as hs
    >>> pooled = hs.pool(estimates=[1.0, 1.2, 0.8], variances=[0.04, 0.05, 0.03])
    >>> round(float(pooled.estimate), 6), round(float(pooled.standard_error), 3)
    (1.0, 0.306)
    >>> round(float(pooled.missing_information), 2)
    0.57
    """

    estimate: Floats
    standard_error: Floats
    degrees_of_freedom: Floats
    missing_information: Floats

    def interval(self, level: float = 0.95) -> Limits:
        """Confidence interval, from the t distribution.

        Parameters
        ----------
        level : float

        Returns
        -------
        Limits
            ``lower`` and ``upper``.

        Examples
        --------
        >>> import halfseen as hs
        >>> lower, upper = hs.pool([1.0, 1.2, 0.8], [0.04, 0.05, 0.03]).interval(0.9)
        >>> round(float(lower), 2), round(float(upper), 2)
        (0.41, 1.59)
        """
        level = share("level", level)
        q = stdtrit(self.degrees_of_freedom, 0.5 + 0.5 * level)
        return Limits(
            self.estimate - q * self.standard_error, self.estimate + q * self.standard_error
        )


def pool(
    estimates: ArrayLike, variances: ArrayLike, degrees_of_freedom: float | None = None
) -> Pooled:
    """Combine estimates from completed tables, made by ``fit.draw_imputations``.

    Parameters
    ----------
    estimates : array-like of shape (m, ...)
        What your own estimator said for each table.
    variances : array-like of the same shape
        Its squared standard errors.
    degrees_of_freedom : float, optional
        Those of the analysis of a complete table, for the small-sample rule of Barnard and
        Rubin (1999); infinite by default.

    Returns
    -------
    Pooled

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([0.5], [[1.0]]), rule, 500)
    >>> tables = hs.fit(X, rule, random_state=0).draw_imputations(m=10, random_state=0)
    >>> pooled = hs.pool(tables.mean(axis=1), tables.var(axis=1) / 500)
    >>> bool(abs(pooled.estimate[0] - 0.5) < 0.2)
    True
    """
    Q, U = real_array("estimates", estimates), real_array("variances", variances)
    if Q.shape != U.shape or Q.ndim == 0:
        raise InputError(
            f"estimates and variances must have the same shape; got {Q.shape} and {U.shape}."
        )
    m = len(Q)
    if m < 2:
        raise InputError(f"at least 2 completed tables are needed; got {m}.")
    if not np.isfinite(Q).all():
        raise InputError("estimates must be finite; got NaN or infinity.")
    if not (U >= 0.0).all():
        raise InputError("variances must be at least 0, and not NaN.")
    with np.errstate(over="ignore", invalid="ignore"):
        within, between = U.mean(axis=0), Q.var(axis=0, ddof=1)
        total = within + (1.0 + 1.0 / m) * between
    if not np.isfinite(total).all():
        raise InputError(
            "estimates and variances are too large: what they come to is more than a computer can "
            "hold. Change the unit."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.where(total > 0.0, (1.0 + 1.0 / m) * between / total, 0.0)
        freedom = (m - 1) / missing**2
        if degrees_of_freedom is not None:
            v = positive_number("degrees_of_freedom", degrees_of_freedom)
            observed = (v + 1.0) / (v + 3.0) * v * (1.0 - missing)
            # Where all variance is between tables, the tables alone say how much there is.
            freedom = np.where(observed > 0.0, 1.0 / (1.0 / freedom + 1.0 / observed), freedom)
    return Pooled(Q.mean(axis=0), np.sqrt(total), np.asarray(freedom), np.asarray(missing))
