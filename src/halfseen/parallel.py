"""Threads that never change the answer.

Work is cut into pieces whose number depends on the problem alone, each piece is computed by one
thread, and results are combined in the order of the pieces. BLAS is held to one thread meanwhile:
its own splitting would change the order of additions.
"""

import numbers
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from halfseen.errors import InputError

Piece = TypeVar("Piece")
Result = TypeVar("Result")

# Results waiting to be combined hold memory: at most this many pieces are under way per thread.
PIECES_AHEAD = 2


def resolve_jobs(n_jobs: int | None) -> int:
    """Return how many threads to use: ``None`` means every core this process may run on."""
    if n_jobs is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if whole and n_jobs == -1:
        return resolve_jobs(None)
    if not whole or n_jobs < 1:
        raise InputError(
            f"n_jobs must be a whole number of threads, at least 1, or None (or -1) for all cores; "
            f"got {n_jobs!r}."
        )
    return int(n_jobs)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def single_blas_thread() -> Any:
    """Context in which BLAS uses one thread, so that the order of its additions is fixed."""
    return _controller().limit(limits=1, user_api="blas")


def map_in_order(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], n_jobs: int | None = None
) -> Iterator[Result]:
    """Yield ``work(piece)`` for each piece, in order, computed by ``n_jobs`` threads."""
    jobs = resolve_jobs(n_jobs)
    if jobs == 1 or (isinstance(pieces, Sized) and len(pieces) < 2):
        yield from map(work, pieces)
        return
    pool = ThreadPoolExecutor(jobs)
    try:
        waiting: deque[Future[Result]] = deque()
        for piece in pieces:
            waiting.append(pool.submit(work, piece))
            if len(waiting) > jobs * PIECES_AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
