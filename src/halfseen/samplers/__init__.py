"""Samplers of Gaussians restricted to sets. Each is ``init`` and ``step``; one step is one draw."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from halfseen.samplers.gibbs import Gibbs
from halfseen.samplers.projected_langevin import ProjectedLangevin
from halfseen.samplers.region import Region
from halfseen.samplers.rejection import Rejection


class Sampler(Protocol):
    """What the gradient sampler needs: a first state, and a draw from a state.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> half_line = hs.samplers.Region(np.array([-0.5]), -np.eye(1), np.zeros(1))  # u >= 0
    >>> from halfseen.samplers import Gibbs, ProjectedLangevin, Rejection
    >>> for sampler in (Rejection(), Gibbs(), ProjectedLangevin()):
    ...     rng = np.random.default_rng(0)
    ...     state = sampler.init(half_line, half_line.feasible_point(), rng)
    ...     state, info = sampler.step(half_line, state, rng)
    ...     print(bool(state.point[0] >= 0.0), type(info).__module__.split(".")[-1])
    True rejection
    True gibbs
    True projected_langevin
    """

    def init(self, region: Region, start: NDArray[np.float64], rng: np.random.Generator) -> Any:
        """Return the first state, at a feasible point.

        Parameters
        ----------
        region : Region
        start : array of shape (k,)
            A point of the region.
        rng : Generator

        Returns
        -------
        state
            The least that the next step needs; it has a ``point``.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> half_line = hs.samplers.Region(np.array([-0.5]), -np.eye(1), np.zeros(1))  # u >= 0
        >>> sampler, rng = hs.samplers.Gibbs(), np.random.default_rng(0)
        >>> state = sampler.init(half_line, np.array([1.0]), rng)
        >>> state.point
        array([1.])
        """
        ...

    def step(self, region: Region, state: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return the next state, whose ``point`` is a draw, and what happened.

        Parameters
        ----------
        region : Region
        state
            What ``init`` or the last step returned.
        rng : Generator

        Returns
        -------
        state
            With the new ``point``.
        info
            What happened, for people.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> half_line = hs.samplers.Region(np.array([-0.5]), -np.eye(1), np.zeros(1))  # u >= 0
        >>> sampler, rng = hs.samplers.Gibbs(), np.random.default_rng(0)
        >>> state = sampler.init(half_line, np.array([1.0]), rng)
        >>> state, info = sampler.step(half_line, state, rng)
        >>> bool(state.point[0] > 0.0), info
        (True, Info(sweeps=20))
        """
        ...


__all__ = ["Gibbs", "ProjectedLangevin", "Region", "Rejection", "Sampler"]
