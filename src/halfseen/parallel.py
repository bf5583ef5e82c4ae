"""Threads that never change the answer.

Work is cut into pieces whose number depends on the problem alone, each piece is computed by one
thread, and results are combined in the order of the pieces. BLAS is held to one thread meanwhile:
its own splitting would change the order of additions.
"""

from __future__ import annotations

import numbers
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import RLock
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


class _BlasLimit:
    """One BLAS thread from the first that enters until the last that leaves.

    The limit holds for the whole process. Were it set and lifted by each thread for itself, the first
    to leave would lift it under the others, and the last would restore what it had found: one.

    Ctrl-C may come between any two steps here: what was found is kept until all of it is restored, and
    who was interrupted while leaving leaves again when it is forgotten.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        # By their identities: a guest must be forgotten when its frame is.
        self._inside: set[int] = set()
        self._found: list[tuple[Any, int]] | None = None

    def enter(self, guest: _Guest) -> None:
        with self._lock:
            self._inside.add(id(guest))
            if self._found is None:
                _take_control()
                blas = _controller().select(user_api="blas").lib_controllers
                self._found = [(library, library.num_threads) for library in blas]
                for library in blas:
                    library.set_num_threads(1)

    def leave(self, guest: _Guest) -> None:
        with self._lock:
            if self._inside == {id(guest)} and self._found is not None:
                _take_control()
                for library, threads in self._found:
                    library.set_num_threads(threads)
                _take_control()
                self._found = None
            self._inside.discard(id(guest))


class _Guest:
    """Someone who has entered; forgotten, it leaves."""

    def __del__(self) -> None:
        _BLAS_LIMIT.leave(self)


def _take_control() -> None:
    """Let any thread set limits.

    From 3.8 on, threadpoolctl ignores every thread but the one that set a limit first, until that is
    done. Here the last to leave may be another thread than the first that came.
    """
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is Ctrl-C, also where it came while compiled code handed back its result.

    Python then says SystemError, and that the result came with an error set: Ctrl-C is its cause.
    """
    while isinstance(error, SystemError):
        error = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt)


@contextmanager
def interrupts_as_such() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` where Ctrl-C came out of compiled code as something else."""
    try:
        yield
    except SystemError as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from None
        raise


_BLAS_LIMIT = _BlasLimit()


@cache
def _limited_by_thread() -> ThreadpoolController:
    """Return the BLAS libraries in which a limit holds for the thread that sets it alone."""
    return _controller().select(internal_api="openblas").select(threading_layer="openmp")


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Context in which BLAS uses one thread, so that the order of its additions is fixed."""
    guest = _Guest()
    try:
        _BLAS_LIMIT.enter(guest)
        with _limited_by_thread().limit(limits=1):
            yield
    finally:
        _BLAS_LIMIT.leave(guest)


def map_in_order(
    work: Callable[[Piece], Result],
    pieces: Iterable[Piece],
    n_jobs: int | None = None,
    ahead: int | None = None,
) -> Iterator[Result]:
    """Yield ``work(piece)`` for each piece, in order, computed by ``n_jobs`` threads.

    Besides the result that was handed out last, at most ``ahead`` are under way or waiting, unless one
    thread computes them.
    """
    jobs = resolve_jobs(n_jobs)
    ahead = jobs * PIECES_AHEAD if ahead is None else ahead
    if jobs == 1 or (isinstance(pieces, Sized) and len(pieces) < 2):
        yield from map(work, pieces)
        return
    pool = ThreadPoolExecutor(jobs)
    try:
        waiting: deque[Future[Result]] = deque()
        for piece in pieces:
            waiting.append(pool.submit(work, piece))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class Tree:
    """Combine results as they come, in pairs of neighbours, then pairs of pairs, and so on.

    A result that has no neighbour on its level goes up as it is: five are ((0+1)+(2+3))+4. Of n results
    at most log2(n) + 1 are held at a time.

    Examples
    --------
    >>> tree = Tree("({}+{})".format)
    >>> for name in "abcde":
    ...     tree.add(name)
    >>> tree.root()
    '(((a+b)+(c+d))+e)'
    """

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        # Combined results of 2^level neighbours each, levels falling from left to right.
        self._waiting: list[tuple[int, Any]] = []

    def add(self, result: Any) -> None:
        """Take the next result."""
        level = 0
        while self._waiting and self._waiting[-1][0] == level:
            result = self._combine(self._waiting.pop()[1], result)
            level += 1
        self._waiting.append((level, result))

    def root(self) -> Any:
        """Return what all results combine to."""
        if not self._waiting:
            raise ValueError("there are no results to combine.")
        # What is left has no neighbour of its own size: it goes up until it meets the one on its left.
        _, result = self._waiting.pop()
        while self._waiting:
            result = self._combine(self._waiting.pop()[1], result)
        return result
