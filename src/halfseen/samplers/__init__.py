"""Samplers of Gaussians restricted to sets. Each is ``init`` and ``step``; one step is one draw."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from halfseen.samplers.gibbs import Gibbs
from halfseen.samplers.projected_langevin import ProjectedLangevin
from halfseen.samplers.region import Region
from halfseen.samplers.rejection import Rejection


class Sampler(Protocol):
    """What the gradient sampler needs: a first state, and a draw from a state."""

    def init(self, region: Region, start: NDArray[np.float64], rng: np.random.Generator) -> Any:
        """Return the first state, at a feasible point."""
        ...

    def step(self, region: Region, state: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return the next state, whose ``point`` is a draw, and what happened."""
        ...


__all__ = ["Gibbs", "ProjectedLangevin", "Region", "Rejection", "Sampler"]
