"""Gibbs sampling on the chords of a polyhedron: exact in the limit of many sweeps.

A sweep moves along the axes, and along the principal directions of the constraints: in a thin slab the
former hardly move at all, while one of the latter runs the length of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import whole_number
from halfseen.kernels.polyhedron import gibbs_chain
from halfseen.samplers.region import Region, State, read_point

Floats = NDArray[np.float64]

# In whitened coordinates the Gaussian has no correlation, so only the polyhedron slows the chain.
SWEEPS = 20


@dataclass(frozen=True)
class Info:
    """How many sweeps were made."""

    sweeps: int


@dataclass(frozen=True)
class Gibbs:
    """Each direction in turn is drawn on its chord; ``sweeps`` rounds make one draw.

    Parameters
    ----------
    sweeps : int
        Rounds for one draw.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> half_line = hs.samplers.Region(np.array([-0.5]), -np.eye(1), np.zeros(1))  # u >= 0
    >>> sampler, rng = hs.samplers.Gibbs(sweeps=1), np.random.default_rng(0)
    >>> state = sampler.init(half_line, np.array([1.0]), rng)
    >>> draws = []
    >>> for _ in range(2000):
    ...     state, info = sampler.step(half_line, state, rng)
    ...     draws.append(state.point[0])
    >>> bool(abs(np.mean(draws) - 0.6411) < 0.05)  # the mean of N(-0.5, 1) above 0
    True
    """

    sweeps: int = SWEEPS

    def __post_init__(self) -> None:
        whole_number("sweeps", self.sweeps)

    def init(self, region: Region, start: Floats, rng: np.random.Generator) -> State:
        """Start at a feasible point."""
        return State(read_point(region, start))

    def step(self, region: Region, state: State, rng: np.random.Generator) -> tuple[State, Info]:
        """Sweep for one draw."""
        u = state.point.copy()
        D = region.directions
        uniforms = rng.random((self.sweeps, u.size + len(D)))
        gibbs_chain(u, region.mean, region.A, region.c, D, uniforms)
        return State(u), Info(self.sweeps)
