"""A standard Gaussian restricted to a polyhedron, in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import real_array
from halfseen.data.table import LARGEST_SQUARED
from halfseen.errors import InputError
from halfseen.kernels.polyhedron import most_violated, project_polyhedron, relax

Floats = NDArray[np.float64]

# Relaxation aims this far inside every half-space, in standard deviations, and gives up after so many
# sweeps; a linear programme then looks for the Chebyshev centre.
MARGIN = 0.05
SWEEPS = 200
# Where a region is unbounded its centre may lie anywhere: this many standard deviations bound it.
LARGEST_BALL = 3.0
SMALLEST_BALL = 1e-9
# A wedge may have room only far out, where nothing lies: a point further from the mean than this is
# looked for again, nearer, with margins that shrink by ten until it is at most this much further
# than the nearest point of all.
NEAR, FURTHER = 4.0, 1.0
MARGINS = tuple(MARGIN * 10.0**-k for k in range(7))


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

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> half_line = hs.samplers.Region(np.array([-0.5]), -np.eye(1), np.zeros(1))  # u >= 0
    >>> half_line.contains(np.array([0.3])), half_line.contains(np.array([-0.3]))
    (True, False)
    >>> point = half_line.feasible_point()
    >>> bool(point[0] > 0.0)
    True
    """

    mean: Floats
    A: Floats
    c: Floats
    known_directions: Floats | None = None

    def __post_init__(self) -> None:
        mean, A, c = (real_array(name, getattr(self, name)) for name in ("mean", "A", "c"))
        if mean.ndim != 1 or A.ndim != 2 or A.shape[1] != mean.size or c.shape != A.shape[:1]:
            raise InputError(
                "mean, A and c must have the shapes (k,), (m, k) and (m,); got "
                f"{mean.shape}, {A.shape} and {c.shape}."
            )
        for name, array in (("mean", mean), ("A", A), ("c", c)):
            object.__setattr__(self, name, array)

    @property
    def directions(self) -> Floats:
        """Principal directions of the constraints: right singular vectors of A, in rows."""
        if self.known_directions is not None:
            return self.known_directions
        return principal_directions(self.A)

    def contains(self, u: Floats) -> bool:
        """Whether a point lies in the polyhedron, to rounding.

        Parameters
        ----------
        u : array of shape (k,)

        Returns
        -------
        bool

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> half_line = hs.samplers.Region(np.array([-0.5]), -np.eye(1), np.zeros(1))  # u >= 0
        >>> half_line.contains(np.array([0.3]))
        True
        """
        return bool(most_violated(read_point(self, u), self.A, self.c)[0] < 0)

    def feasible_point(self) -> Floats | None:
        """Return a point inside the polyhedron, near the mean; None if there is none.

        Relaxation finds most. Where it ends far out the mean is projected instead, a margin inside; for
        the rest a linear programme says how much room there is, and the mean is projected to half
        that depth.

        Returns
        -------
        array of shape (k,), or None

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> half_line = hs.samplers.Region(np.array([-0.5]), -np.eye(1), np.zeros(1))  # u >= 0
        >>> bool(half_line.feasible_point()[0] > 0.0)
        True
        >>> A, c = np.array([[-1.0], [1.0]]), np.array([-1.0, 0.0])  # u >= 1 and u <= 0
        >>> print(hs.samplers.Region(np.zeros(1), A, c).feasible_point())
        None
        """
        u = self.mean.copy()
        if relax(u, self.A, self.c, MARGIN, SWEEPS) and np.linalg.norm(u - self.mean) <= NEAR:
            return u
        near = self._near_point()
        if near is not None:
            return near
        found = self.chebyshev_ball()
        if found is None:
            return None
        centre, radius = found
        if project_polyhedron(self.mean, self.A, self.c - 0.5 * radius, u):
            return u
        return centre

    def _near_point(self) -> Floats | None:
        """Return a point hardly further from the mean than the nearest, as far inside as can be."""
        u = self.mean.copy()
        if not project_polyhedron(self.mean, self.A, self.c, u):
            return None
        reach = float(np.linalg.norm(u - self.mean)) + FURTHER
        for margin in MARGINS:
            inside = project_polyhedron(self.mean, self.A, self.c - margin, u)
            if inside and np.linalg.norm(u - self.mean) <= reach:
                return u
        return None

    def chebyshev_ball(self) -> tuple[Floats, float] | None:
        """Return centre and radius of the largest ball that fits, by HiGHS; None if none does.

        Returns
        -------
        centre : array of shape (k,)
        radius : float
            At most 3, where the region has no bounds.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> slab = hs.samplers.Region(np.zeros(1), np.array([[-1.0], [1.0]]), np.array([-1.0, 2.0]))
        >>> centre, radius = slab.chebyshev_ball()  # 1 <= u <= 2
        >>> float(centre[0]), radius
        (1.5, 0.5)
        """
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


def read_point(region: Region, u: Floats) -> Floats:
    """Return a point as an array of its own, of the dimension of the region."""
    point = np.array(real_array("the point", u))
    if not (np.abs(point) <= LARGEST_SQUARED).all():
        raise InputError(f"the point must be finite, and within ±{LARGEST_SQUARED:g}.")
    if point.shape != region.mean.shape:
        raise InputError(f"the point must have shape {region.mean.shape}; got {point.shape}.")
    return point


def principal_directions(A: Floats) -> Floats:
    """Right singular vectors of the constraints, in rows: along and across slabs and wedges."""
    return np.linalg.svd(A, full_matrices=True)[2] if len(A) else np.empty((0, A.shape[1]))
