"""A standard Gaussian restricted to a polyhedron, in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.kernels.polyhedron import most_violated, relax

Floats = NDArray[np.float64]

# Relaxation aims this far inside every half-space, in standard deviations, and gives up after so many
# sweeps; a linear programme then looks for the Chebyshev centre.
MARGIN = 0.05
SWEEPS = 200
# Where a region is unbounded its centre may lie anywhere: this many standard deviations bound it.
LARGEST_BALL = 3.0
SMALLEST_BALL = 1e-9


@dataclass
class State:
    """Where a sampler is: the least that its next step needs."""

    point: Floats


@dataclass(frozen=True)
class Region:
    """N(mean, I) restricted to {u : A u <= c}; rows of A have unit length.

    Attributes
    ----------
    mean : array of shape (k,)
    A : array of shape (m, k)
    c : array of shape (m,)
    """

    mean: Floats
    A: Floats
    c: Floats

    def contains(self, u: Floats) -> bool:
        """Whether a point lies in the polyhedron, to rounding."""
        return bool(most_violated(u, self.A, self.c)[0] < 0)

    def feasible_point(self, start: Floats | None = None) -> Floats | None:
        """Return a point of the polyhedron, near ``start`` where that is easy; None if it is empty."""
        u = np.array(self.mean if start is None else start, dtype=float)
        if relax(u, self.A, self.c, MARGIN, SWEEPS):
            return u
        return self.chebyshev_centre()

    def chebyshev_centre(self) -> Floats | None:
        """Return the centre of the largest ball in the polyhedron, by HiGHS; None if there is none."""
        # Imported where it is needed: SciPy's optimisers take as long to load as all of halfseen.
        from scipy.optimize import linprog

        k = self.mean.size
        objective = np.zeros(k + 1)
        objective[-1] = -1.0
        found = linprog(
            objective,
            A_ub=np.column_stack([self.A, np.linalg.norm(self.A, axis=1)]),
            b_ub=self.c,
            bounds=[(None, None)] * k + [(0.0, LARGEST_BALL)],
            method="highs",
        )
        # A polyhedron without an inside has no mass: as good as empty.
        if found.status != 0 or found.x is None or found.x[k] < SMALLEST_BALL:
            return None
        return np.asarray(found.x[:k], dtype=float)
