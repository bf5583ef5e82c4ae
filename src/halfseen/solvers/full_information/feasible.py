"""Whether rows can be what a rule of inequalities says they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import ContradictionError
from halfseen.kernels.polyhedron import relax_rows
from halfseen.missingness.holes import SEEN, Holes
from halfseen.samplers.region import MARGIN, SWEEPS, Region

Floats = NDArray[np.float64]


def check_feasible(Y: Floats, holes: Holes, names: Sequence[str], first_row: int = 0) -> None:
    """Raise where no values of a row's hidden cells agree with its sets and inequalities.

    ``Y`` has the seen values; ``first_row`` says where the rows begin in the table.
    """
    bound = holes.inequalities
    if bound is None:
        return
    hidden = holes.index != SEEN
    filled = np.where(hidden, 0.0, Y)
    lower, upper = cell_bounds(holes)
    failed, relaxed = np.zeros(len(Y), dtype=bool), filled.copy()
    relax_rows(relaxed, hidden, bound.V, bound.b, bound.sign, lower, upper, MARGIN, SWEEPS, failed)
    for row in np.flatnonzero(failed):
        if not _has_a_point(filled[row], holes, int(row), lower[row], upper[row]):
            where = [names[int(k)] for k in np.flatnonzero(hidden[row])]
            raise ContradictionError(
                f"no values of its hidden columns ({', '.join(where[:5])}) would hide exactly these and "
                "show the others, which contradicts the thresholds. Correct the rule, or the row.",
                first_row + int(row),
            )


def _has_a_point(y: Floats, holes: Holes, row: int, lower: Floats, upper: Floats) -> bool:
    """Look for a point inside the region of one row, by linear programming."""
    bound = holes.inequalities
    assert bound is not None
    where = np.flatnonzero(holes.index[row] != SEEN)
    sign = bound.sign[row].astype(float)
    A = [sign[:, None] * bound.V[:, where], np.eye(where.size), -np.eye(where.size)]
    c = [sign * (bound.b - bound.V @ y), upper[where], -lower[where]]
    A_all, c_all = np.vstack(A), np.concatenate(c)
    lengths = np.linalg.norm(A_all, axis=1)
    used = (lengths > 0) & np.isfinite(c_all)
    if (c_all[(lengths == 0.0) & np.isfinite(c_all)] < -1e-9).any():
        return False
    A_all, c_all = A_all[used] / lengths[used, None], c_all[used] / lengths[used]
    return Region(y[where], A_all, c_all).feasible_point() is not None


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
