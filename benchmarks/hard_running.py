"""Fits of hard tables, many of them side by side."""

from __future__ import annotations

import multiprocessing
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from typing import TypeVar

import numba
import numpy as np
from threadpoolctl import threadpool_limits

import halfseen as hs
from benchmarks.hard_reference import Integral, Parameters
from benchmarks.hard_tables import HardTable

# Processes that share many tables, with one thread each.
WORKERS = 2

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def fitted(table: HardTable, seed: int = 0) -> hs.Fit:
    """Fit a table on one thread; what the fit warns of, its status says too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        data = hs.IntervalData(table.lower, table.upper, table.names)
        return hs.fit(data, random_state=seed, n_jobs=1)


def many(work: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    """Do the same with many tables, in processes; answers come in the order of the items.

    Processes are started anew, as threads of BLAS and Numba do not live through a fork.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, context, initializer=_use_one_thread) as pool:
        return list(pool.map(work, items))


def _use_one_thread() -> None:
    threadpool_limits(1)
    numba.set_num_threads(1)


def spread_of(levels: list[Integral]) -> tuple[float, float]:
    """Largest difference of log-likelihoods less twice its Monte-Carlo error, and that error."""
    found = [a.less(b) for a, b in combinations(levels, 2)]
    return max((max(0.0, abs(value) - 2.0 * error), error) for value, error in found)


def parameters(fit: hs.Fit) -> Parameters:
    return np.asarray(fit.mean), np.asarray(fit.covariance)


def counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common())
