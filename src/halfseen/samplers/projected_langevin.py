"""Projected Langevin Monte Carlo: the chain of the paper's Algorithm 5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import positive_number, whole_number
from halfseen.kernels.polyhedron import langevin_chain
from halfseen.samplers.region import Region, State, read_point

Floats = NDArray[np.float64]

# In whitened time a chain forgets its start like exp(−t/2): after time 10 less than one per cent is
# left. The projection biases the chain by O(√η) at the boundary: at η = 0.02 the mean of a half-line is
# off by about 0.05 standard deviations, and 500 steps make the time 10.
STEP_SIZE = 0.02
STEPS = 500
# What Algorithm 5 prints as η must be η/2 (erratum 1).
DRIFT = 0.5
# Mass of a k-dimensional Gaussian beyond √k + 6 is below 1e-8.
RADIUS_BEYOND_ROOT = 6.0


@dataclass(frozen=True)
class Info:
    """What happened: how far the chain ran, in steps and in whitened time."""

    steps: int
    time: float


@dataclass(frozen=True)
class ProjectedLangevin:
    """Langevin steps, each projected on the polyhedron and a ball around the mean.

    Parameters
    ----------
    step_size : float
        η_lmc; the bias at a boundary is O(√η).
    steps : int
        M_grad, steps for one draw; ``steps · step_size`` should be about 10.
    radius : float, optional
        R_lmc; √k + 6 by default. It is enlarged where the ball would not hold the start.
    drift : float
        ½; the printed listing has 1, which is wrong.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> half_line = hs.samplers.Region(np.array([-0.5]), -np.eye(1), np.zeros(1))  # u >= 0
    >>> sampler, rng = hs.samplers.ProjectedLangevin(0.002, 2000), np.random.default_rng(0)
    >>> state = sampler.init(half_line, np.array([1.0]), rng)
    >>> draws = []
    >>> for _ in range(500):
    ...     state, info = sampler.step(half_line, state, rng)
    ...     draws.append(state.point[0])
    >>> bool(abs(np.mean(draws) - 0.6411) < 0.12)  # the mean of N(-0.5, 1) above 0
    True
    """

    step_size: float = STEP_SIZE
    steps: int = STEPS
    radius: float | None = None
    drift: float = DRIFT

    def __post_init__(self) -> None:
        positive_number("step_size", self.step_size)
        whole_number("steps", self.steps)
        positive_number("drift", self.drift)
        if self.radius is not None:
            positive_number("radius", self.radius)

    def init(self, region: Region, start: Floats, rng: np.random.Generator) -> State:
        """Start at a feasible point."""
        return State(read_point(region, start))

    def step(self, region: Region, state: State, rng: np.random.Generator) -> tuple[State, Info]:
        """Run the chain for one draw."""
        u = state.point.copy()
        noise = rng.standard_normal((self.steps, u.size))
        radius = self.radius
        if radius is None:
            radius = np.sqrt(u.size) + RADIUS_BEYOND_ROOT
        # The ball must reach into the polyhedron, or the two would not meet.
        radius = max(radius, float(np.linalg.norm(u - region.mean)) + 1.0)
        langevin_chain(
            u, region.mean, region.A, region.c, radius, self.step_size, self.drift, noise
        )
        return State(u), Info(self.steps, self.steps * self.step_size)
