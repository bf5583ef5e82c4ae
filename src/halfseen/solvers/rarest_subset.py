"""Which columns are least often seen together: α of the paper's assumptions."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from halfseen.seeds import Purpose, keyed_generator

# All subsets of βd columns are looked at up to this many; beyond, as many are sampled.
MOST_SUBSETS = 5000


def least_joint_share(seen: NDArray[np.bool_], size: int) -> float:
    """Least share of rows in which ``size`` columns are seen together; sampled if there are many."""
    return rarest_subset(seen, size)[1] / len(seen)


def rarest_subset(
    seen: NDArray[np.bool_], size: int, seed: int = 0
) -> tuple[tuple[int, ...], int, bool]:
    """Return the columns that are least often seen together, how often, and whether all were tried."""
    d = seen.shape[1]
    every = math.comb(d, size) <= MOST_SUBSETS
    if every:
        subsets = list(combinations(range(d), size))
    else:
        rng = keyed_generator(seed, Purpose.DIAGNOSE, 0)
        subsets = [tuple(sorted(rng.choice(d, size, replace=False))) for _ in range(MOST_SUBSETS)]
    hits = [int(seen[:, list(subset)].all(axis=1).sum()) for subset in subsets]
    rarest = int(np.argmin(hits))
    return subsets[rarest], hits[rarest], every
