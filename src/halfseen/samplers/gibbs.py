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
from halfseen.samplers.region import Region, State

Floats = NDArray[np.float64]

# In whitened coordinates the Gaussian has no correlation, so only the polyhedron slows the chain.
SWEEPS = 20


@dataclass(frozen=True)
class Info:
    """How many sweeps were made."""

    sweeps: int


@dataclass(frozen=True)
class Gibbs:
    """Each direction in turn is drawn on its chord; ``sweeps`` rounds make one draw."""

    sweeps: int = SWEEPS

    def __post_init__(self) -> None:
        whole_number("sweeps", self.sweeps)

    def init(self, region: Region, start: Floats, rng: np.random.Generator) -> State:
        """Start at a feasible point."""
        return State(start.copy())

    def step(self, region: Region, state: State, rng: np.random.Generator) -> tuple[State, Info]:
        """Sweep for one draw."""
        u = state.point.copy()
        D = region.directions
        uniforms = rng.random((self.sweeps, u.size + len(D)))
        gibbs_chain(u, region.mean, region.A, region.c, D, uniforms)
        return State(u), Info(self.sweeps)
