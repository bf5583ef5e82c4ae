"""Gibbs sampling on the chords of a polyhedron: exact in the limit of many sweeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """Each coordinate in turn is drawn on its chord; ``sweeps`` rounds make one draw."""

    sweeps: int = SWEEPS

    def init(self, region: Region, start: Floats, rng: np.random.Generator) -> State:
        """Start at a feasible point."""
        return State(start.copy())

    def step(self, region: Region, state: State, rng: np.random.Generator) -> tuple[State, Info]:
        """Sweep for one draw."""
        u = state.point.copy()
        gibbs_chain(u, region.mean, region.A, region.c, rng.random((self.sweeps, u.size)))
        return State(u), Info(self.sweeps)
