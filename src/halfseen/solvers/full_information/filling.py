"""First values for hidden cells: somewhere in the region of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import ContradictionError
from halfseen.kernels.polyhedron import relax_rows
from halfseen.missingness.holes import SEEN, Holes
from halfseen.missingness.resolve import SetTable, starts
from halfseen.parallel import map_in_order
from halfseen.samplers.region import MARGIN, NEAR, SWEEPS, Region
from halfseen.solvers.full_information.completion import Completion

Floats = NDArray[np.float64]

# Number of the chain whose random numbers fill the cells, beyond those of all chains that sweep them.
FILLING = 2**31
# Intervals further away than this, in spreads of the seen values, have no mass that counts.
FAR = 40.0


def fill(
    Y: Floats,
    holes: Holes,
    mean: Floats,
    deviations: Floats,
    seed: int,
    names: Sequence[str],
    chain: int = 0,
    n_jobs: int | None = None,
    first_block: int = 0,
    first_row: int = 0,
) -> None:
    """Draw each hidden cell of ``Y`` from its own marginal, in place.

    Where a set has several pieces, the chains start at different ends of it. Rows with inequalities
    are moved to where these hold. ``first_block`` and ``first_row`` say where a piece of a larger table
    begins.
    """
    np.copyto(Y, mean, where=holes.index != SEEN)
    boxes = replace(holes, inequalities=None, sets=_end_pieces(holes.sets, chain))
    rows = Completion(Y, boxes, seed, FILLING + chain, n_jobs, first_block)
    P = np.diag(deviations**-2.0)
    # Independent columns have nowhere to slide to.
    work = partial(rows.sweep_block, mean=mean, P=P, factor=None)
    for _ in map_in_order(work, range(len(rows.blocks)), n_jobs):
        pass
    if holes.inequalities is not None:
        _make_feasible(Y, holes, names, first_row)


def _end_pieces(sets: SetTable, chain: int) -> SetTable:
    """Keep one end of each union: the lowest interval in the first chain, the highest in the second.

    Intervals so far away that nothing can lie there are no place to start from.
    """
    has = np.diff(sets.start) > 0
    owner = np.repeat(np.arange(has.size), np.diff(sets.start))
    gap = np.maximum(np.maximum(sets.lower, -sets.upper), 0.0)
    # Within reach, and among those the end of this chain; else the nearest.
    place = np.arange(gap.size) if chain == 0 else -np.arange(gap.size)
    order = np.lexsort((place, np.where(gap <= FAR, 0.0, gap), owner))
    chosen = order[np.searchsorted(owner[order], np.flatnonzero(has))]
    return replace(sets, start=starts(has), lower=sets.lower[chosen], upper=sets.upper[chosen])


def _make_feasible(Y: Floats, holes: Holes, names: Sequence[str], first_row: int) -> None:
    bound = holes.inequalities
    assert bound is not None
    hidden = holes.index != SEEN
    lower, upper = cell_bounds(holes)
    failed, drawn = np.zeros(len(Y), dtype=bool), Y.copy()
    relax_rows(Y, hidden, bound.V, bound.b, bound.sign, lower, upper, MARGIN, SWEEPS, failed)
    # Relaxed rows may end far out in a wedge: one of them there would swell the first covariance.
    far = np.linalg.norm(Y - drawn, axis=1) > NEAR
    for row in np.flatnonzero(failed | far):
        point = _feasible_point(drawn[row], holes, int(row), lower[row], upper[row])
        if point is None:
            where = [names[int(k)] for k in np.flatnonzero(hidden[row])]
            raise ContradictionError(
                f"row {first_row + row} contradicts the thresholds: no values of its hidden columns "
                f"({', '.join(where[:5])}) would hide exactly these and show the others. Correct the "
                "rule, or the row."
            )
        Y[row, hidden[row]] = point


def _feasible_point(
    y: Floats, holes: Holes, row: int, lower: Floats, upper: Floats
) -> Floats | None:
    """Return a point inside the region of one row, by linear programming where need be."""
    bound = holes.inequalities
    assert bound is not None
    where = np.flatnonzero(holes.index[row] != SEEN)
    sign = bound.sign[row].astype(float)
    seen = y.copy()
    seen[where] = 0.0
    A = [sign[:, None] * bound.V[:, where], np.eye(where.size), -np.eye(where.size)]
    c = [sign * (bound.b - bound.V @ seen), upper[where], -lower[where]]
    A_all, c_all = np.vstack(A), np.concatenate(c)
    lengths = np.linalg.norm(A_all, axis=1)
    used = (lengths > 0) & np.isfinite(c_all)
    if (c_all[(lengths == 0.0) & np.isfinite(c_all)] < -1e-9).any():
        return None
    A_all, c_all = A_all[used] / lengths[used, None], c_all[used] / lengths[used]
    return Region(y[where], A_all, c_all).feasible_point()


def cell_bounds(holes: Holes) -> tuple[Floats, Floats]:
    """Least and greatest value of each cell's set."""
    sets = holes.sets
    has = np.diff(sets.start) > 0
    least, greatest = np.full(len(sets), -np.inf), np.full(len(sets), np.inf)
    least[has], greatest[has] = (
        sets.lower[sets.start[:-1][has]],
        sets.upper[sets.start[1:][has] - 1],
    )
    index = np.maximum(holes.index, 0)
    return least[index], greatest[index]
