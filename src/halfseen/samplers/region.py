"""A standard Gaussian restricted to a polyhedron, in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.kernels.polyhedron import most_violated, project_polyhedron, relax

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
    known_directions : array of shape (k, k), optional
        ``principal_directions(A)``, where many regions share A.
    """

    mean: Floats
    A: Floats
    c: Floats
    known_directions: Floats | None = None

    @property
    def directions(self) -> Floats:
        """Principal directions of the constraints: right singular vectors of A, in rows."""
        if self.known_directions is not None:
            return self.known_directions
        return principal_directions(self.A)

    def contains(self, u: Floats) -> bool:
        """Whether a point lies in the polyhedron, to rounding."""
        return bool(most_violated(u, self.A, self.c)[0] < 0)

    def feasible_point(self) -> Floats | None:
        """Return a point inside the polyhedron, near the mean; None if there is none.

        Relaxation finds most; for the rest a linear programme says how much room there is, and the mean
        is projected to half that depth.
        """
        u = self.mean.copy()
        if relax(u, self.A, self.c, MARGIN, SWEEPS):
            return u
        found = self.chebyshev_ball()
        if found is None:
            return None
        centre, radius = found
        if project_polyhedron(self.mean, self.A, self.c - 0.5 * radius, u):
            return u
        return centre

    def chebyshev_ball(self) -> tuple[Floats, float] | None:
        """Return centre and radius of the largest ball that fits, by HiGHS; None if none does."""
        # Imported where it is needed: SciPy's optimisers take as long to load as all of halfseen.
        from scipy.optimize import linprog

        k = self.mean.size
        objective = np.zeros(k + 1)
        objective[-1] = -1.0
        found = linprog(
            objective,
            A_ub=np.column_stack([self.A, np.linalg.norm(self.A, axis=1)]),
            # Centred at the mean, so that where the origin lies does not matter.
            b_ub=self.c - self.A @ self.mean,
            bounds=[(None, None)] * k + [(0.0, LARGEST_BALL)],
            method="highs",
        )
        # A polyhedron without an inside has no mass: as good as empty.
        if found.status != 0 or found.x is None or found.x[k] < SMALLEST_BALL:
            return None
        return self.mean + np.asarray(found.x[:k], dtype=float), float(found.x[k])


def principal_directions(A: Floats) -> Floats:
    """Right singular vectors of the constraints, in rows: along and across slabs and wedges."""
    return np.linalg.svd(A, full_matrices=True)[2] if len(A) else np.empty((0, A.shape[1]))
