"""Rejection through a membership oracle: exact, and as costly as the set is rare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import RarelyHitError
from halfseen.samplers.region import Region, State, read_point

Floats = NDArray[np.float64]

# Proposals after which a set that was hit in less than one of RAREST_HIT is given up.
FEWEST_PROPOSALS = 2**18
RAREST_HIT = 20_000
LARGEST_BATCH = 2**17


def draw_by_rejection(
    propose: Callable[[int, np.random.Generator], Floats],
    accept: Callable[[Floats, np.random.Generator], NDArray[np.bool_]],
    count: int,
    rng: np.random.Generator,
    guess: float = 0.5,
) -> tuple[Floats, float]:
    """Draw ``count`` rows from ``propose`` that ``accept`` lets through.

    Parameters
    ----------
    propose : callable
        ``propose(m, rng)`` gives m rows.
    accept : callable
        ``accept(rows, rng)`` gives m booleans.
    count : int
        Rows wanted.
    rng : Generator
    guess : float
        Expected share of accepted rows, for the size of the first batch.

    Returns
    -------
    rows : array of shape (count, d)
    share : float
        Share of the proposals that were accepted.

    Raises
    ------
    RarelyHitError
        When fewer than one in 20 000 of a quarter of a million proposals are accepted.
    """
    kept: list[Floats] = []
    have = tried = 0
    while have < count:
        share = (have + 0.5) / (tried + 1.0) if tried else guess
        # Twenty per cent more than expected, so that one batch is usually enough.
        size = int(min(max(1.2 * (count - have) / max(share, 1e-9), 64), LARGEST_BATCH))
        rows = propose(size, rng)
        rows = rows[accept(rows, rng)]
        kept.append(rows)
        have += len(rows)
        tried += size
        if have < count and tried >= FEWEST_PROPOSALS and have * RAREST_HIT < tried:
            raise RarelyHitError(
                f"the set was hit {have} times in {tried} draws, which is too rare to go on. "
                "Check that the membership function is in the units of the data; if it is, use "
                "a method that does not sample (truncation, pairwise), or a larger set."
            )
    return np.concatenate(kept)[:count], have / tried


@dataclass(frozen=True)
class Info:
    """Share of the proposals that were accepted."""

    acceptance: float


@dataclass(frozen=True)
class Rejection:
    """Exact draws of N(mean, I) in a polyhedron, at a cost of one over its mass.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> half_line = hs.samplers.Region(np.array([-0.5]), -np.eye(1), np.zeros(1))  # u >= 0
    >>> sampler, rng = hs.samplers.Rejection(), np.random.default_rng(0)
    >>> state = sampler.init(half_line, np.array([1.0]), rng)
    >>> draws = []
    >>> for _ in range(2000):
    ...     state, info = sampler.step(half_line, state, rng)
    ...     draws.append(state.point[0])
    >>> bool(abs(np.mean(draws) - 0.6411) < 0.05)  # the mean of N(-0.5, 1) above 0
    True
    """

    def init(self, region: Region, start: Floats, rng: np.random.Generator) -> State:
        """Nothing to prepare."""
        return State(read_point(region, start))

    def step(self, region: Region, state: State, rng: np.random.Generator) -> tuple[State, Info]:
        """Propose until a point falls into the polyhedron."""

        def propose(m: int, generator: np.random.Generator) -> Floats:
            return region.mean + generator.standard_normal((m, region.mean.size))

        def accept(U: Floats, generator: np.random.Generator) -> NDArray[np.bool_]:
            return np.asarray((region.c >= U @ region.A.T).all(axis=1))

        rows, share = draw_by_rejection(propose, accept, 1, rng)
        return State(rows[0]), Info(share)
