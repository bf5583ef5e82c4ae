"""How much the data say about each parameter: Louis' identity.

The information in what is seen is that of complete rows less what the holes took away,

    I_seen = Σ_rows E(−∂² log f | seen) − Var(score | seen),

where a complete row has the cells that are not missing at random. Rows with no more than two confined
cells are integrated. Others are sampled, twice, with independent shifts of a lattice: both together are
taken, and the difference of the two, in some of the rows, says how well it is known in every direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.kernels.confined import Confines
from halfseen.kernels.information import (
    DOUBTED,
    missing_along_block,
    missing_block,
    missing_mean_block,
)
from halfseen.kernels.paths import law_of
from halfseen.missingness.holes import Holes
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.charts import Chart, bend, packed_score
from halfseen.solvers.full_information.expectation import (
    MOST_INTEGRATED,
    Block,
    Parameters,
    Sampling,
    at_random,
    block_rows,
    confines_of,
    grouped,
    lattice,
)
from halfseen.solvers.full_information.m_step import MStep
from halfseen.solvers.full_information.problem import Overview
from halfseen.solvers.full_information.rows import Rows
from halfseen.theta import entries, size_of, stands_for, symmetric, triangle

Floats = NDArray[np.float64]

# Parameters for which the whole matrix is computed; beyond, parameters of each pair of columns alone.
MOST_PARAMETERS = 1000
# And where it is found from differences of scores, which ask every row twice for each; by so many
# standard errors of complete rows.
MOST_DIFFERENCES, DIFFERENCE = 300, 0.1
# Products of scores in all, draws in all, and rows at least: what decides how many rows are looked at.
MOST_PRODUCTS, MOST_DRAWS, FEWEST_ROWS = 4e10, 2**23, 4096
# More rows for each parameter than these are not needed: errors of the information, as shares of it, are
# about the root of one over them in the worst direction, and those of standard errors half of that.
ENOUGH_EACH = 1000
# Points for each row that is sampled, twice: between these, as many as make errors of shares so small.
FEWEST_POINTS, MOST_POINTS, SHARE_ERROR = 16, 128, 0.04
# Largest share of missing information that is told from 1: beyond, standard errors are a lower bound.
# Where no row is sampled, rounding alone is in the way.
LARGEST_SHARE, LARGEST_EXACT_SHARE = 1.0 - 1e-4, 1.0 - 1e-9
# For steps it counts as no more than this: they are at most so many times longer than those of
# expectation maximisation, and what the steps themselves show does the rest.
LARGEST_STEP_SHARE = 0.99
# Directions with a larger share missing or lost, at most so many of either, are looked at with more
# points: noise alone makes the largest of many shares too large. Directions that are combinations of
# others to this share are left out.
DOUBTFUL, MOST_DOUBTFUL, SAME = 0.8, 32, 1e-6
# These points, between so many, make so many draws of each cell in all rows: with 1024 rows or more a
# share is then known to √(2 / draws) = 0.0014, which is 5 % of what is left where 97 % is lost.
FINER_POINTS, FINER_DRAWS = (256, 1024), 2**20
# Share of the complete information that is added where nothing at all is known about a direction.
TOUCH = 1e-9


@dataclass(frozen=True)
class Information:
    """What is known about the parameters, at the origin of a chart.

    Attributes
    ----------
    chart : Chart
    directions : array of shape (q, q)
        A column for each direction, in coordinates of the chart: independent of each other, and of unit
        information in all rows, were they complete.
    missing : array of shape (q,)
        Shares of the information that are missing, in these directions, growing.
    noise : array of shape (q,)
        Standard errors of the shares, from sampling.
    lost : array of shape (q,)
        Shares of what the cells that are not missing at random would have said that was lost because
        some of them are confined, in the directions in which these shares are extreme, growing.
    told : float
        The largest share of what is missing that can be told from 1.
    """

    chart: Chart
    directions: Floats
    missing: Floats
    noise: Floats
    lost: Floats
    told: float = LARGEST_SHARE

    def inverse(self, most: float | None = None) -> Floats:
        """Return the covariance of the estimates of the coordinates."""
        kept = 1.0 - np.minimum(self.missing, self.told if most is None else most)
        return np.asarray((self.directions / kept) @ self.directions.T)

    def of_rows(self, rows: int) -> Information:
        """Return what so many rows of the same kind would say."""
        share = math.sqrt(self.chart.rows / rows)
        return replace(
            self, chart=replace(self.chart, rows=rows), directions=share * self.directions
        )

    def _root(self) -> Floats:
        """Return moves of (μ, Σ_ij for i >= j) one standard error along each direction, as rows."""
        kept = 1.0 - np.minimum(self.missing, self.told)
        return self.chart.spread((self.directions / np.sqrt(kept)).T)

    def covariance(self) -> Floats:
        """Return the covariance of the estimates of (μ, Σ_ij for i >= j)."""
        root = self._root()
        return np.asarray(root.T @ root)

    def variances(self) -> Floats:
        """Variances of the estimates of (μ, Σ_ij for i >= j)."""
        root = self._root()
        return np.asarray((root * root).sum(axis=0))

    def moved(self, mean: Floats, covariance: Floats) -> float:
        """How far parameters are from the origin, in standard errors (root mean square)."""
        step = self.chart.coordinates(mean, covariance)
        along = np.linalg.solve(self.directions, step)
        kept = 1.0 - np.minimum(self.missing, LARGEST_SHARE)
        return float(np.sqrt(np.mean(kept * along * along))) if step.size else 0.0


class Parts(NamedTuple):
    """Sums over rows, in whitened coordinates (a, B_ij for i >= j).

    Attributes
    ----------
    whole : array
        Of E(−∂² log f | seen), over the cells that are not missing at random.
    taken : array
        Of Var(score | seen).
    one, other : arrays
        Of the same over some of the rows that are sampled, by independent points.
    """

    whole: Floats
    taken: Floats
    one: Floats
    other: Floats

    def __add__(self, other: Parts) -> Parts:  # type: ignore[override]
        return Parts(*(a + b for a, b in zip(self, other, strict=True)))

    def along(self, basis: Floats) -> Parts:
        """Return them in the directions of a basis."""
        if np.array_equal(basis, np.eye(len(basis))):
            return self
        return Parts(*(basis.T @ part @ basis for part in self))

    def scaled(self, factor: float) -> Parts:
        """Return them as they would be with so many times the rows."""
        return Parts(*(factor * part for part in self))


def can_inform(m_step: MStep, d: int, degrees: float = math.inf) -> bool:
    """Whether the whole information is looked at: that of all entries, or of a mean alone."""
    if m_step.structure.regularised or m_step.count(d) == 0:
        return False
    if m_step.chart_type is not None:
        return m_step.count(d) <= MOST_PARAMETERS
    if not math.isinf(degrees):
        return m_step.count(d) <= MOST_DIFFERENCES
    if m_step.structure.count(d) == 0:
        return d <= MOST_PARAMETERS
    return size_of(d) <= MOST_PARAMETERS


class Task(NamedTuple):
    """What rows are asked."""

    at: Parameters
    factor: Floats
    sampling: Sampling
    mean_only: bool
    # Whether −∂² log f is taken at its mean: less noisy, where not all rows are looked at, and exact if
    # all are complete, also if they lie in a plane.
    expected: bool


def information(rows: Rows, chart: Chart, seed: int) -> Information:
    """Find the information about the coordinates of a chart, at its origin.

    Parameters
    ----------
    rows : Rows
    chart : Chart
    seed : int
    """
    own = chart.own_information(rows, seed)
    if own is not None:
        return own
    if not math.isinf(rows.degrees):
        return _by_differences(rows, chart)
    n, d = rows.overview.shape
    basis = None if chart.whitened else chart.basis
    mean_only = basis is not None and not basis[d:].any()
    size = d if mean_only else size_of(d)
    chosen = _chosen_rows(rows, size, seed)
    Y, holes = rows.take(chosen)
    # The largest error of a share is about √(parameters / (rows · points)).
    wanted = size / (len(chosen) * SHARE_ERROR**2)
    points = int(np.clip(wanted, FEWEST_POINTS, MOST_POINTS))
    task = Task(
        Parameters.of(chart.mean, chart.covariance),
        np.ascontiguousarray(chart.factor),
        Sampling(points, seed, 0, Purpose.INFORMATION),
        mean_only,
        len(chosen) < n or not rows.overview.hidden.any(),
    )
    items = [(cut.start, Y[cut], holes.take(cut)) for cut in _cuts(len(Y), d)]
    into = _into_whitened(chart, mean_only)
    scale = n / len(chosen)
    found = _sum(rows.map(_parts, items, task)).along(into).scaled(scale)
    found = _with_closed_forms(found, chart, np.flatnonzero(rows.overview.hidden == 0))
    if not chart.whitened and not chart.m_step.structure.linear:
        found = _bent(found, rows, chart, task.sampling)
    first = _shares(chart, found)
    if not rows.overview.sampled or mean_only:
        return first.information
    doubtful = _doubtful(first)
    if not doubtful.size:
        return first.information
    # Where little is left it is found anew, from points that had no part in choosing the directions.
    points = int(np.clip(FINER_DRAWS // len(chosen), *FINER_POINTS))
    finer = task._replace(sampling=task.sampling._replace(points=points, replicate=1))
    again = _sum(rows.map(_taken_along, items, finer, into @ doubtful))
    return _refined(first, found, doubtful, scale * again)


def _by_differences(rows: Rows, chart: Chart) -> Information:
    """Find the information from how scores fall, where rows are of a t distribution.

    Points of sampled rows stay the same, so that scores are smooth.
    """
    place = chart.mean, chart.covariance
    order = Parameters.of(*place) if rows.overview.sampled else None
    # Nodes of w are as good as points, and there are four or more.
    wanted = chart.complete.shape[0] / (4.0 * chart.rows * SHARE_ERROR**2)
    points = int(np.clip(wanted, FEWEST_POINTS, MOST_POINTS))
    sampling = Sampling(points, 0, 0, Purpose.INFORMATION, order)
    complete = chart.complete_matrix
    fall = np.empty_like(complete)
    for k, step in enumerate(np.diag(DIFFERENCE / np.sqrt(np.diag(complete)))):
        ends = [
            chart.score(rows.expect(*there, sampling)[0], *there)
            for there in (chart.moved(-step), chart.moved(step))
        ]
        fall[k] = (ends[0] - ends[1]) / (2.0 * step[k])
    return whole_information(chart, 0.5 * (fall + fall.T), False)


def whole_information(chart: Chart, seen: Floats, exact: bool) -> Information:
    """Describe an information about the coordinates of a chart, of which all is known at once.

    It is ``exact`` where no row was sampled. What is lost because cells are confined is not told from
    what is missing.
    """
    complete = chart.complete_matrix
    root = np.asarray(np.linalg.cholesky(complete))
    missing, vectors = np.linalg.eigh(_between(root, complete - seen))
    directions = np.linalg.solve(root.T, vectors)
    told = LARGEST_EXACT_SHARE if exact else LARGEST_SHARE
    return Information(chart, directions, missing, np.zeros(missing.size), missing, told)


def rows_looked_at(about: Overview, size: int) -> int:
    """Return how many rows are looked at: all, or as many as there is time for, or as are enough."""
    n = about.shape[0]
    # Of rows that are not sampled no more than two cells count; blanks are integrated.
    cells = MOST_INTEGRATED + about.sampled / n
    features = min(cells + 0.5 * cells * (cells + 1.0), 2.0 * MOST_POINTS)
    most = min(MOST_PRODUCTS / (size * size * max(features, 1.0)), MOST_DRAWS / max(cells, 1.0))
    most = min(most, ENOUGH_EACH * size)
    return min(n, max(FEWEST_ROWS, int(min(most, n))))


def _chosen_rows(rows: Rows, size: int, seed: int) -> NDArray[np.intp]:
    """Return the rows that are looked at, drawn without replacement where these are not all."""
    n, most = rows.overview.shape[0], rows_looked_at(rows.overview, size)
    if n <= most:
        return np.arange(n)
    rng = keyed_generator(seed, Purpose.INFORMATION)
    return np.sort(rng.choice(n, most, replace=False)).astype(np.intp)


def _cuts(n: int, d: int) -> list[slice]:
    """Cut rows into items: matrices of d⁴/4 numbers travel for each."""
    step = max(block_rows(d), -(-n // 16))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _parts(item: tuple[int, Floats, Holes], task: Task) -> Parts:
    """Return the parts of Louis' identity of some rows."""
    first_row, Y, holes = item
    Y = np.ascontiguousarray(Y)
    n, d = Y.shape
    size = d if task.mean_only else size_of(d)
    taken, one, other = (np.zeros((size, size)) for _ in range(3))
    block, confines = _in_order(first_row, Y, holes, task.at)
    points = lattice(task.sampling.points, d)
    shifts = task.sampling.shifts(first_row, (n, 2, d))
    place = task.at.mean, task.at.precision, task.factor
    common = Y, *place, block.groups, confines, points, shifts, block.law
    if task.mean_only:
        whole = missing_mean_block(*common, taken, one, other)
        return Parts(whole, taken, one, other)
    moments = np.empty((len(block.groups.missing), d, 2 * d + 1))
    missing_block(*common, moments, taken, one, other)
    whole = _whole(moments, np.diff(block.groups.start), task.expected)
    return Parts(whole, *(part + np.tril(part, -1).T for part in (taken, one, other)))


def _in_order(first_row: int, Y: Floats, holes: Holes, at: Parameters) -> tuple[Block, Confines]:
    """Return some rows as one block, with cells in the order that is best there."""
    confines = confines_of(holes)
    groups = grouped(holes, at_random(holes))
    block = Block(slice(0, len(Y)), first_row, groups, law_of(confines))
    return block.in_order(Y, confines, at), confines


def _whole(moments: Floats, counts: NDArray[np.intp], expected: bool) -> Floats:
    """Return Σ E(−∂² log f | seen) from what ``missing_block`` says of each group.

    With K = Lᵀ Q L, W = Lᵀ Q T Q L and t = Lᵀ Q Σ E z: K for the mean, c_ij (K_mi t_j + K_mj t_i) for
    mean m and entry ij, and for entries ij and kl, with W' = W − ½ n K,
    c_ij c_kl (K_li W'_jk + K_lj W'_ik + K_ki W'_jl + K_kj W'_il); c is ½ on the diagonal.
    """
    d = moments.shape[1]
    K, W, t = moments[:, :, :d], moments[:, :, d : 2 * d], moments[:, :, 2 * d]
    half = 0.5 * counts[:, None, None] * K
    inner = half if expected else W - half
    R = (K.reshape(-1, d * d).T @ inner.reshape(-1, d * d)).reshape(d, d, d, d)
    i, j = triangle(d)
    c = 0.5 * stands_for(d)
    a, b, k, m = i[:, None], j[:, None], i[None], j[None]
    out = np.empty((d + i.size, d + i.size))
    out[:d, :d] = (2.0 * half).sum(axis=0)
    out[d:, d:] = np.outer(c, c) * (R[m, a, b, k] + R[m, b, a, k] + R[k, a, b, m] + R[k, b, a, m])
    if expected:
        out[:d, d:] = 0.0
    else:
        cross = np.einsum("gmi,gj->mij", K, t)
        out[:d, d:] = c * (cross[:, i, j] + cross[:, j, i])
    out[d:, :d] = out[:d, d:].T
    return out


def _taken_along(item: tuple[int, Floats, Holes], task: Task, directions: Floats) -> Floats:
    """Return Σ Var(score | seen) of some rows, along some directions."""
    first_row, Y, holes = item
    Y = np.ascontiguousarray(Y)
    n, d = Y.shape
    taken = np.zeros((directions.shape[1], directions.shape[1]))
    block, confines = _in_order(first_row, Y, holes, task.at)
    missing_along_block(
        Y, task.at.mean, task.at.precision, task.factor, block.groups, confines,
        lattice(task.sampling.points, d), task.sampling.shifts(first_row, (n, 1, d)), block.law,
        np.ascontiguousarray(directions), taken,
    )  # fmt: skip
    return taken


def _sum(parts: Iterator[Any]) -> Any:
    """Add up from the first to the last."""
    total = next(parts)
    for part in parts:
        total = total + part
    return total


def _into_whitened(chart: Chart, mean_only: bool) -> Floats:
    """Return the derivatives of (a, B_ij for i >= j) in the coordinates of a chart."""
    d = chart.mean.size
    if chart.whitened:
        return np.eye(size_of(d))[:, chart.fixed :]
    L, basis = chart.factor, chart.basis
    of_mean = np.linalg.solve(L, basis[:d])
    if mean_only:
        return np.asarray(of_mean)
    out = np.empty((size_of(d), basis.shape[1]))
    out[:d] = of_mean
    for k in range(basis.shape[1]):
        half = np.linalg.solve(L, symmetric(basis[d:, k], d))
        out[d:, k] = entries(np.linalg.solve(L, half.T))
    return out


def _with_closed_forms(found: Parts, chart: Chart, columns: NDArray[np.intp]) -> Parts:
    """Put what is known in closed form in place of what was summed: columns that are never hidden.

    Their likelihood is a factor of its own, and the rest is that of the others given them: about their
    moments, with the regression on them held fixed, rows say what complete rows would, and nothing in
    common with what they say about the regression.
    """
    if not chart.whitened or chart.fixed or not columns.size:
        return found
    root = np.sqrt(chart.complete)
    E = _closed_directions(chart, columns)
    E = root[:, None] * E / np.linalg.norm(root[:, None] * E, axis=0)

    def elsewhere(A: Floats) -> Floats:
        inner = A / np.outer(root, root)
        inner = inner - E @ (E.T @ inner)
        inner = inner - (inner @ E) @ E.T
        return np.asarray(inner * np.outer(root, root))

    whole, *taken = (elsewhere(part) for part in found)
    return Parts(whole + np.outer(root, root) * (E @ E.T), *taken)


def _bent(found: Parts, rows: Rows, chart: Chart, sampling: Sampling) -> Parts:
    """Add what the curvature of a structure says, whose directions are those of its tangent alone."""
    place, d = (chart.mean, chart.covariance), chart.mean.size
    moments = rows.expect(*place, sampling._replace(order=task_order(rows, place)))[0]
    slopes = packed_score(moments, *place, chart.rows)[d:]
    more = bend(chart.m_step.structure, chart.covariance, slopes)
    whole, start = found.whole.copy(), len(found.whole) - len(more)
    whole[start:, start:] -= more
    return found._replace(whole=whole)


def task_order(rows: Rows, place: tuple[Floats, Floats]) -> Parameters | None:
    """Return the parameters by which cells of sampled rows are ordered, if there are any."""
    return Parameters.of(*place) if rows.overview.sampled else None


def _closed_directions(chart: Chart, columns: NDArray[np.intp]) -> Floats:
    """Directions that move the moments of some columns, and leave the regression on them as it is.

    μ by Γ m and Σ by Γ D Γᵀ, where Γ = Σ_·c Σ_cc⁻¹. In whitened coordinates Γ Σ_cc^½ has orthonormal
    columns g_i: a is one of them, or B one of the g_i g_jᵀ + g_j g_iᵀ.
    """
    d, S = chart.mean.size, chart.covariance
    inner = np.linalg.cholesky(S[np.ix_(columns, columns)])
    across = np.linalg.solve(inner, S[columns]).T
    g = np.linalg.solve(chart.factor, across).T
    i, j = triangle(columns.size)
    products = g[i, :, None] * g[j, None, :]
    out = np.zeros((size_of(d), len(g) + i.size))
    out[:d, : len(g)] = g.T
    out[d:, len(g) :] = entries(products + products.transpose(0, 2, 1)).T
    return out


class Shares(NamedTuple):
    """What is missing, as first found, and how that was found.

    Attributes
    ----------
    information : Information
    root : array of shape (q, q)
        Of the information of complete rows.
    held : array of shape (q, q)
        Of that of cells that are not missing at random.
    lost_along : array of shape (q, q)
        Directions in which shares of the latter are lost, in coordinates of the chart.
    """

    information: Information
    root: Floats
    held: Floats
    lost_along: Floats


def _shares(chart: Chart, found: Parts) -> Shares:
    """Compare what is left with what complete rows would say."""
    complete = chart.complete_matrix
    # In coordinates where complete rows have information I, shares lie between 0 and 1.
    root = np.asarray(np.linalg.cholesky(complete))
    missing, vectors = np.linalg.eigh(_between(root, complete - found.whole + found.taken))
    # Half the difference of two halves is the error of their average; rows err independently.
    doubt = 0.5 * np.sqrt(DOUBTED) * (found.one - found.other)
    noise = _along(vectors, _between(root, doubt))
    try:
        held = np.asarray(np.linalg.cholesky(found.whole + TOUCH * complete))
    except np.linalg.LinAlgError:
        # Far from the top rows may say less than nothing about a direction.
        held = root
    lost, along = np.linalg.eigh(_between(held, found.taken))
    known = Information(chart, np.linalg.solve(root.T, vectors), missing, noise, lost)
    return Shares(known, root, held, np.linalg.solve(held.T, along))


def _doubtful(first: Shares) -> Floats:
    """Return directions, in coordinates of the chart, in which most is missing or lost."""
    known = first.information
    most_missing = known.directions[:, known.missing > DOUBTFUL][:, -MOST_DOUBTFUL:]
    most_lost = first.lost_along[:, known.lost > DOUBTFUL][:, -MOST_DOUBTFUL:]
    both = np.hstack([most_missing, most_lost])
    if not both.shape[1]:
        return both
    # Independent of each other, in what complete rows say.
    vectors, sizes, _ = np.linalg.svd(first.root.T @ both, full_matrices=False)
    return np.asarray(np.linalg.solve(first.root.T, vectors[:, sizes > SAME * sizes[0]]))


def _refined(first: Shares, found: Parts, doubtful: Floats, taken: Floats) -> Information:
    """Put what was found anew along some directions in place of what was found before."""
    known = first.information
    change = taken - doubtful.T @ found.taken @ doubtful
    # Of unit information in complete rows, so that the change of a matrix is V change Vᵀ.
    V = first.root.T @ doubtful
    base = _between(first.root, first.root @ first.root.T - found.whole + found.taken)
    missing, vectors = np.linalg.eigh(base + V @ change @ V.T)
    inner = np.linalg.solve(first.held, first.root @ V)
    lost = np.linalg.eigvalsh(_between(first.held, found.taken) + inner @ change @ inner.T)
    shares = np.asarray(missing, dtype=np.float64), known.noise, np.asarray(lost, dtype=np.float64)
    directions = np.linalg.solve(first.root.T, vectors)
    return Information(known.chart, directions, *shares)


def _along(vectors: Floats, A: Floats) -> Floats:
    """Return |v' A v| for the columns v of ``vectors``."""
    return np.asarray(np.abs(np.einsum("ij,ij->j", vectors, A @ vectors)))


def _between(L: Floats, A: Floats) -> Floats:
    """Return L⁻¹ A L⁻ᵀ, symmetric to the last bit."""
    out = np.linalg.solve(L, np.linalg.solve(L, A).T)
    return np.asarray(0.5 * (out + out.T))
