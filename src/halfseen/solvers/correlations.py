"""One correlation per pair, with the marginals fixed: DESIGN's sharper form of the 2-D problem.

And from standard deviations and correlations of pairs to one covariance matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.errors import InputError
from halfseen.kernels.correlation import PairCells, PairSums, Pieces, SetMasses, solve_correlations
from halfseen.kernels.univariate import HALF_LOG_TWO_PI, log_masses
from halfseen.missingness.resolve import SetTable, starts
from halfseen.parallel import map_in_order
from halfseen.solvers.columns import Column, Columns, Floats, Integers, Marginals

# Who works on items: ``spread(work, items, *common)`` yields ``work(item, *common)`` in order.
Spread = Callable[..., Iterator[Any]]
# Terms of the Hermite series for sets that are only known as functions: 0.95^256 = 2e-6 bounds what
# is left out at ρ = 0.95, and a smooth probability has long been zero there.
SERIES_TERMS = 256
# Further out φ(z) is below 1e-31, and high Hermite polynomials would overflow.
SERIES_REACH = 12.0
# Beyond this many intervals in a set the series is cheaper than a sum over pairs of ends.
MANY_PIECES = 16
PAIRS_PER_PIECE = 512
# Where limits differ by row each pair counts the rows anew, so pieces are smaller.
PAIRS_PER_PIECE_BY_ROW = 4
# Smallest eigenvalue of the assembled correlation matrix. A pair with correlation 0.9999 reaches it;
# a smaller floor would only make the precision matrix larger than any data support.
EIGENVALUE_FLOOR = 1e-4


@dataclass(frozen=True)
class Correlations:
    """ρ of each pair i < j (in the order of ``triu_indices``), and how each search ended."""

    rho: Floats
    on_edge: NDArray[np.bool_]
    converged: NDArray[np.bool_]


def solve_pairs(
    moments: PairMoments,
    columns: Columns,
    marginals: Marginals,
    use_hidden: bool,
    mask: NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
    spread: Spread | None = None,
) -> Correlations:
    """Solve every pair for its correlation.

    Parameters
    ----------
    moments, columns, marginals
        The data, the sets, and the fixed means and standard deviations.
    use_hidden : bool
        False for ``truncation`` (seen values alone), True for ``pairwise`` (the 2×2 table too).
    mask : boolean array of shape (n, d), optional
        Which cells are seen; needed where limits differ by row.
    spread : callable, optional
        ``spread(work, items, *common)`` yields ``work(item, *common)`` in order; threads otherwise.
    """
    i, j = np.triu_indices(moments.width, 1)
    sums = _pair_sums(moments, marginals, i, j)
    offset = starts([len(column.sets) for column in columns.items])
    by_row = any(column.group is not None for column in columns.items)
    corners, series = _masses(columns, marginals)
    general = np.array([needs_series(c) for c in columns.items])
    step = PAIRS_PER_PIECE_BY_ROW if by_row else PAIRS_PER_PIECE
    mixed = (general[i] | general[j]) if i.size else np.zeros(0, dtype=bool)

    def counted(pairs: Integers) -> tuple[PairSums, PairCells]:
        if by_row:
            assert mask is not None
            cells = _cells_by_row(columns, mask, i[pairs], j[pairs], offset, use_hidden)
        else:
            cells = _cells(moments, columns, i[pairs], j[pairs], use_hidden)
        return PairSums(*(s[pairs] for s in sums)), cells

    rho, flag = np.zeros(i.size), np.zeros(i.size, dtype=np.int64)
    for kind, masses in ((np.flatnonzero(~mixed), corners), (np.flatnonzero(mixed), series)):
        pieces = [kind[start : start + step] for start in range(0, kind.size, step)]
        if spread is None:
            answers = map_in_order(partial(_count_and_solve, counted, masses), pieces, n_jobs)
        else:
            answers = spread(_solve, map(counted, pieces), masses)
        for pairs, answer in zip(pieces, answers, strict=True):
            rho[pairs], flag[pairs] = answer
    return Correlations(rho, flag == 1, flag != 2)


def _count_and_solve(
    counted: Callable[[Integers], tuple[PairSums, PairCells]], masses: SetMasses, pairs: Integers
) -> tuple[Floats, NDArray[np.int64]]:
    return _solve(counted(pairs), masses)


def _solve(item: tuple[PairSums, PairCells], masses: SetMasses) -> tuple[Floats, NDArray[np.int64]]:
    return solve_correlations(*item, masses)


def _pair_sums(moments: PairMoments, marginals: Marginals, i: Integers, j: Integers) -> PairSums:
    """Sum standardised values over the rows in which both are seen."""
    mu = (marginals.mean - moments.shift) / moments.scale
    sigma = marginals.deviation / moments.scale
    n = moments.counts
    squares = (moments.second - 2.0 * mu[:, None] * moments.first + n * mu[:, None] ** 2) / (
        sigma[:, None] ** 2
    )
    products = (
        moments.cross - mu * moments.first - mu[:, None] * moments.first.T + n * mu * mu[:, None]
    ) / (sigma * sigma[:, None])
    return PairSums(n[i, j].copy(), squares[i, j], squares[j, i], products[i, j])


def _cells(
    moments: PairMoments, columns: Columns, i: Integers, j: Integers, use_hidden: bool
) -> PairCells:
    """Count the 2×2 table seen/hidden, where every row has the same sets."""
    n11 = moments.counts[i, j]
    counts = np.zeros((i.size, 4))
    if use_hidden:
        seen = np.diag(moments.counts)
        table = np.stack(
            [
                np.zeros(i.size),
                seen[i] - n11,
                seen[j] - n11,
                moments.rows - seen[i] - seen[j] + n11,
            ],
            axis=1,
        )
        # A cell hidden for no stated reason says nothing: only rows where it is seen count.
        stated = columns.stated
        counts[:, 1] = np.where(stated[j], table[:, 1], 0.0)
        counts[:, 2] = np.where(stated[i], table[:, 2], 0.0)
        counts[:, 3] = np.where(stated[i] & stated[j], table[:, 3], 0.0)
    else:
        counts[:, 0] = -n11
    return PairCells(np.arange(i.size + 1), i, j, counts)


def _cells_by_row(
    columns: Columns,
    mask: NDArray[np.bool_],
    i: Integers,
    j: Integers,
    offset: Integers,
    use_hidden: bool,
) -> PairCells:
    """Do the same for each combination of the limits of both columns."""
    left, right, counts = [], [], []
    for a, b in zip(i, j, strict=True):
        here, there, table = count_cells_by_row(columns, mask, a, b)
        if use_hidden:
            table[:, 0] = 0.0
            stated_a = columns.items[a].hidden[here] > 0
            stated_b = columns.items[b].hidden[there] > 0
            table[:, 1] *= stated_b
            table[:, 2] *= stated_a
            table[:, 3] *= stated_a & stated_b
        else:
            table[:, 0] *= -1.0
            table[:, 1:] = 0.0
        used = table.any(axis=1)
        left.append(offset[a] + here[used])
        right.append(offset[b] + there[used])
        counts.append(table[used])
    return PairCells(
        starts([len(c) for c in counts]),
        np.concatenate(left),
        np.concatenate(right),
        np.concatenate(counts),
    )


def count_cells_by_row(
    columns: Columns, mask: NDArray[np.bool_], a: int, b: int
) -> tuple[Integers, Integers, Floats]:
    """Count rows by the limits of columns a and b, and by which of the two is seen.

    Returns the group of a, the group of b, and the counts (both, a only, b only, neither) for each
    combination of limits that occurs.
    """
    width = len(columns.items[b].sets)
    combined = _row_groups(columns, a, len(mask)) * width + _row_groups(columns, b, len(mask))
    distinct, code = np.unique(combined, return_inverse=True)
    cell = np.where(mask[:, a], np.where(mask[:, b], 0, 1), np.where(mask[:, b], 2, 3))
    table = np.bincount(4 * code.ravel() + cell, minlength=4 * distinct.size).reshape(-1, 4)
    here, there = np.divmod(distinct, width)
    return here, there, table.astype(float)


def _row_groups(columns: Columns, column: int, rows: int) -> Integers:
    group = columns.items[column].group
    return np.zeros(rows, dtype=np.intp) if group is None else group


def _masses(columns: Columns, marginals: Marginals) -> tuple[SetMasses, SetMasses]:
    """Masses of every set under its marginal, with corners; and again with Hermite series."""
    # From units of the seen values to those of the fitted marginals.
    centre = (marginals.mean - columns.mean) / columns.spread
    scale = marginals.deviation / columns.spread
    tables = [c.sets.standardised(centre[k], scale[k]) for k, c in enumerate(columns.items)]
    sets = SetTable.join(tables)
    p = _mass(sets)
    q = np.concatenate([_mass(table.complement()) for table in tables])
    ends = np.stack([sets.lower, sets.upper], axis=1).ravel()
    finite = np.isfinite(ends)
    per_set = np.diff(np.concatenate([[0], np.cumsum(finite)])[2 * sets.start])
    gone = SetTable.join([table.complement() for table in tables])
    corners = SetMasses(
        p,
        q,
        starts(per_set),
        ends[finite],
        np.tile([-1.0, 1.0], sets.lower.size)[finite],
        np.empty((len(sets), 0)),
        Pieces(sets.start, sets.lower, sets.upper),
        Pieces(gone.start, gone.lower, gone.upper),
    )
    if not any(map(needs_series, columns.items)):
        return corners, corners
    # Such sets come with their column, so each table holds one set.
    series = np.stack([hermite_coefficients(table) for table in tables])
    none, no_ends = np.empty(0), np.zeros(len(sets) + 1, dtype=np.intp)
    return corners, corners._replace(end_start=no_ends, ends=none, signs=none, series=series)


def needs_series(column: Column) -> bool:
    """Whether a set is known only as a function, or has too many ends for a sum over corners."""
    return column.group is None and (
        not column.sets.is_intervals or column.sets.lower.size > MANY_PIECES
    )


def _mass(sets: SetTable) -> Floats:
    """Return the standard normal mass of each set."""
    density = sets.weight * np.exp(-0.5 * sets.node**2 - HALF_LOG_TWO_PI)
    mass = _sums(np.exp(log_masses(sets.lower, sets.upper)), sets.start)
    return np.minimum(mass + _sums(density, sets.node_start), 1.0)


def _sums(values: Floats, start: Integers) -> Floats:
    """Sum of each ragged piece."""
    owner = np.repeat(np.arange(start.size - 1), np.diff(start))
    return np.bincount(owner, weights=values, minlength=start.size - 1).astype(float)


def hermite_coefficients(seen_set: SetTable, terms: int = SERIES_TERMS) -> Floats:
    """a_k = E[1_S(Z) h_k(Z)] for one set, with normalised Hermite polynomials h_k.

    For two sets with coefficients a, b and correlation ρ, P(both) = Σ a_k b_k ρ^k (Mehler).
    """
    out = np.zeros(terms)
    if seen_set.is_intervals:
        # ∫ h_k φ over (e, f) is (h_{k−1}φ(e) − h_{k−1}φ(f)) / √k; ends at infinity give nothing.
        ends = np.stack([seen_set.lower, seen_set.upper], axis=1).ravel()
        sign = np.tile([1.0, -1.0], seen_set.lower.size)
        keep = np.abs(ends) < SERIES_REACH
        z, weight = ends[keep], sign[keep] * np.exp(-0.5 * ends[keep] ** 2 - HALF_LOG_TWO_PI)
        for k, h in zip(range(1, terms), _hermite(z, terms), strict=False):
            out[k] = (weight * h).sum() / np.sqrt(k)
        return out
    z = seen_set.node
    weight = seen_set.weight * np.exp(-0.5 * z**2 - HALF_LOG_TWO_PI)
    near = np.abs(z) < SERIES_REACH
    for k, h in zip(range(terms), _hermite(z[near], terms), strict=False):
        out[k] = (weight[near] * h).sum()
    return out


def _hermite(z: Floats, terms: int) -> Iterator[Floats]:
    """Yield h_0, h_1, …: h_{k+1} = (z h_k − √k h_{k−1}) / √(k+1)."""
    before, now = np.zeros_like(z), np.ones_like(z)
    for k in range(terms):
        yield now
        before, now = now, (z * now - np.sqrt(k) * before) / np.sqrt(k + 1.0)


def assemble(
    deviations: Floats, rho: Floats, floor: float = EIGENVALUE_FLOOR
) -> tuple[Floats, Floats, bool]:
    """Correlation matrix of the pairs, and the nearest one with eigenvalues of at least ``floor``.

    Pairs that were solved one by one need not fit together (erratum 4). Clipping eigenvalues is the
    Frobenius projection on {Σ ⪰ floor·I}, a convex set that holds the truth, so it never increases
    the Frobenius error on the scale on which it is done. That is the scale of correlations, so that
    units do not matter; in the units of the table the error can rise, where deviations are off.

    Returns
    -------
    covariance : array of shape (d, d)
    before : array of shape (d, d)
        The covariance as the pairs gave it.
    projected : bool
        Whether the two differ.
    """
    if not 0.0 < floor < 1.0:
        raise InputError(f"eigenvalue_floor must lie between 0 and 1; got {floor!r}.")
    d = deviations.size
    matrix = np.eye(d)
    i, j = np.triu_indices(d, 1)
    matrix[i, j] = matrix[j, i] = rho
    scale = np.outer(deviations, deviations)
    # A pair solved on its own may ask for |ρ| > 1. Each entry is brought back first: left to the
    # eigenvalues, it would inflate variances that are right.
    bounded = np.clip(matrix, -1.0, 1.0)
    values, vectors = np.linalg.eigh(bounded)
    if values[0] >= floor:
        return bounded * scale, matrix * scale, bool((bounded != matrix).any())
    nearest = (vectors * np.maximum(values, floor)) @ vectors.T
    return 0.5 * (nearest + nearest.T) * scale, matrix * scale, True
