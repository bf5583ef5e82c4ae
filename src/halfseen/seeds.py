"""Random generators keyed by a seed and a place, so that threads and blocks never change a draw."""

from __future__ import annotations

import enum

import numpy as np

from halfseen.errors import InputError

RandomState = int | np.random.Generator | np.random.RandomState | None


def seed_of(random_state: RandomState) -> int:
    """Return a whole-number seed; a fresh one for None, the next one of a generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InputError(f"random_state must be at least 0; got {random_state}.")
        return int(random_state)
    raise InputError(
        f"random_state must be a whole number, a NumPy generator or None; got {random_state!r}."
    )


class Purpose(enum.IntEnum):
    """What a stream of random numbers is for; streams of different purposes never meet."""

    ROWS = 1
    COINS = 2
    TRUNCATED_SGD = 3
    SAMPLE_GRADIENT = 4
    MISSING_DESCENT = 5
    ORDER_OF_ROWS = 6
    DIAGNOSE = 7
    FULL = 8
    INFORMATION = 9
    LIKELIHOOD = 10
    IMPUTATION = 11
    BOOTSTRAP = 12
    SCALES = 13
    LOSSES = 14
    FOLDS = 15
    GROUPS = 16
    LIMITS = 17


def keyed_generator(seed: int, purpose: Purpose, *place: int) -> np.random.Generator:
    """Return the generator of one place (a row block, a pair, a sweep) under a seed."""
    key = np.random.SeedSequence(seed, spawn_key=(int(purpose), *place))
    return np.random.default_rng(key)
