"""Work on a Dask cluster: values stay on the workers, only combined results come back.

Every value is what a task returned, never data that were sent there: Dask can compute it again, from the
same pieces and the same numbers, when a worker dies.
"""

from __future__ import annotations

import threading
import time
import uuid
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import count
from typing import Any

import numpy as np

from halfseen.errors import HalfseenError, InputError
from halfseen.parallel import single_blas_thread
from halfseen.scaling.engine import (
    Arrays,
    Combine,
    Engine,
    Kept,
    Work,
    combine_by_level,
    keepable,
)
from halfseen.version import __version__

# A task that was on four workers as they died is given up by Dask (its allowed-failures is 3): often the
# workers are killed for other reasons, so it is tried again this many times.
TRIES = 3
# Seconds without any worker before giving up; a nanny starts a new one in a few.
PATIENCE = 60.0
# Seconds between looks at what became of the workers.
LOOK = 0.1
# Results that are computed ahead of the one that is asked for, for each thread of the cluster: enough
# that no thread waits, few enough to hold.
AHEAD = 2


class ClusterError(HalfseenError, RuntimeError):
    """The cluster cannot do the work any more."""


class Common:
    """Arguments that all blocks share, wrapped so that Dask does not search them for its keys."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def __dask_tokenize__(self) -> str:
        return uuid.uuid4().hex


def _same(common: Common) -> Common:
    return common


def _make(work: Work, piece: Any, number: Common, common: Common) -> Arrays:
    with single_blas_thread():
        return keepable(work(piece, *number.values, *_own(common)))


def _read(work: Work, piece: Any, number: Common, common: Common) -> Any:
    with single_blas_thread():
        return work(piece, *number.values, *_own(common))


def _look(work: Work, common: Common, *kept: Arrays) -> Any:
    with single_blas_thread():
        return work(*map(_usable, kept), *_own(common))


def _item(work: Work, item: Common, common: Common) -> Any:
    with single_blas_thread():
        return work(*_own(item), *_own(common))


def _combine(combine: Combine, left: Any, right: Any) -> Any:
    with single_blas_thread():
        return combine(left, right)


def _usable(kept: Arrays) -> Arrays:
    """Return arrays as they are in one process: what came over the network may lie unaligned."""
    return {name: np.require(value, requirements=["C", "A", "W"]) for name, value in kept.items()}


def _own(common: Common) -> tuple[Any, ...]:
    """Return arguments that no other task of this worker shares, their arrays writable and aligned."""
    return deepcopy(common.values)


class _Setter:
    """Sets an event, and holds no future."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def __call__(self, future: Any) -> None:
        self.event.set()


class ClusterEngine(Engine):
    """Work on the workers of a Dask cluster.

    A question is one task for each block, and about one that combines results. Blocks of a worker that
    dies are read again, from the pieces of the table, by the others.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        distributed = check_client(client)
        _check_versions(client)
        self.client = client
        self._killed = distributed.KilledWorker
        self._name = uuid.uuid4().hex
        self._calls = count()
        # Whoever holds a Kept after the work is done holds no memory of the cluster.
        self._known: weakref.WeakSet[Kept] = weakref.WeakSet()

    def _kept(self, slots: list[Any]) -> Kept:
        kept = Kept(slots)
        self._known.add(kept)
        return kept

    def make(self, work: Work, pieces: Sequence[Any], numbers: Sequence[Any], *common: Any) -> Kept:
        """Keep ``work(piece, number, *common)`` of each piece; pieces may be futures."""
        pairs = list(zip(pieces, numbers, strict=True))
        slots = self._submit(
            _make,
            work,
            [piece for piece, _ in pairs],
            [Common((number,)) for _, number in pairs],
            self._share(work, common, len(pairs)),
        )
        return self._kept(slots)

    def total(self, work: Work, *kept: Kept, common: Sequence[Any] = (), combine: Combine) -> Any:
        """Return the results ``work(*values, *common)`` combined."""
        blocks = [one.slots for one in kept]
        shared = self._share(work, common, len(blocks[0]))
        return self._combined(self._submit(_look, work, shared, *blocks), combine)

    def each(self, work: Work, *kept: Kept, common: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield ``work(*values, *common)`` of each block, in order."""
        shared = self._share(work, common, 1)

        def submit(block: tuple[Any, ...]) -> Any:
            return self._submit(_look, work, shared, *([one] for one in block))[0]

        yield from self._stream(submit, zip(*(one.slots for one in kept), strict=True))

    def map(self, work: Work, items: Iterable[Any], *common: Any) -> Iterator[Any]:
        """Yield ``work(item, *common)`` of each item, in order."""
        shared = self._share(work, common, 1)

        def submit(item: Any) -> Any:
            return self._submit(_item, work, [Common((item,))], shared)[0]

        yield from self._stream(submit, items)

    def stream(
        self,
        work: Work,
        pieces: Sequence[Any],
        numbers: Sequence[Any],
        *common: Any,
        combine: Combine,
    ) -> Any:
        """Return the results ``work(piece, number, *common)`` combined, in one pass."""
        results = self._submit(
            _read,
            work,
            list(pieces),
            [Common((number,)) for number in numbers],
            self._share(work, common, len(pieces)),
        )
        return self._combined(results, combine)

    def close(self) -> None:
        """Forget every value; the client belongs to the caller and stays open."""
        for kept in list(self._known):
            kept.forget()

    def _share(self, work: Work, common: Sequence[Any], times: int) -> list[Any]:
        """Return one future of the common arguments, as often as it is needed."""
        return self._submit(_same, None, [Common(tuple(common))], label="share") * times

    def _submit(
        self, task: Callable[..., Any], work: Work | None, *columns: Sequence[Any], **how: Any
    ) -> list[Any]:
        """Submit a task for each block in one message; ``work`` goes before the columns."""
        n = len(columns[0])
        if n == 0:
            return []
        name = (
            f"halfseen-{how.pop('label', None) or label_of(work)}-{self._name}-{next(self._calls)}"
        )
        if work is not None:
            columns = ([work] * n, *columns)
        with warnings.catch_warnings():
            # Parameters of many columns are sent with each question, and that is meant.
            warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            futures: list[Any] = self.client.map(
                task, *columns, key=[f"{name}-{k}" for k in range(n)], pure=False, **how
            )
        return futures

    def _combined(self, results: list[Any], combine: Combine) -> Any:
        """Combine results on the workers, in the tree of every engine, and bring the root here."""

        def combine_all(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
            return self._submit(_combine, combine, left, right, label="combine")

        return self.bring(combine_by_level(results, combine_all))

    def _stream(self, submit: Callable[[Any], Any], arguments: Iterable[Any]) -> Iterator[Any]:
        """Yield results in order, with a few computed ahead."""
        ahead = AHEAD * max(1, sum(self.client.nthreads().values()))
        waiting: deque[Any] = deque()
        try:
            for argument in arguments:
                waiting.append(submit(argument))
                if len(waiting) > ahead:
                    yield self.bring(waiting.popleft())
            while waiting:
                yield self.bring(waiting.popleft())
        finally:
            if waiting:
                self._cancel(list(waiting))

    def bring(self, future: Any, also: Sequence[Any] = ()) -> Any:
        """Wait for a result and return it; what is under way is cancelled if that fails."""
        try:
            return self._result_of(future)
        except BaseException:
            self._cancel([future, *also])
            raise

    def _result_of(self, future: Any) -> Any:
        """Wait for a result, through deaths of workers."""
        tries = 0
        while True:
            self._settle(future)
            if future.status == "finished":
                try:
                    # Its worker may die before the result is here; then there is more to wait for.
                    return future.result(timeout=PATIENCE)
                except TimeoutError:
                    continue
            if future.status == "error" and isinstance(future.exception(), self._killed):
                tries += 1
                if tries > TRIES:
                    raise ClusterError(
                        f"the workers of the cluster died again and again: {future.exception()} If "
                        "they run out of memory, try smaller pieces or fewer threads in each worker."
                    ) from future.exception()
                self.client.retry([future])
                continue
            if future.status == "cancelled":
                raise ClusterError(
                    "the work was cancelled: the scheduler of the cluster is gone, or was restarted."
                )
            if future.status == "error":
                return future.result()

    def _settle(self, future: Any) -> None:
        """Wait until a future has a result or an error, and look around meanwhile."""
        # Not by distributed.wait with a time limit: its error would hold the callers' futures, and so
        # the values on the workers, until Python collects its garbage.
        settled = threading.Event()
        future.add_done_callback(_Setter(settled))
        lonely = None
        while not settled.wait(LOOK):
            lonely = self._look_around(lonely)

    def _look_around(self, lonely: float | None) -> float | None:
        """Return since when there are no workers; raise an error where it is too long."""
        if self.client.status != "running":
            raise ClusterError("the connection to the scheduler of the cluster was lost.")
        if self.client.nthreads():
            return None
        now = time.monotonic()
        if lonely is not None and now - lonely > PATIENCE:
            raise ClusterError(
                f"the cluster has had no workers for {PATIENCE:.0f} seconds. Start some and try again."
            )
        return now if lonely is None else lonely

    def _cancel(self, futures: Sequence[Any]) -> None:
        try:
            self.client.cancel(list(futures))
        except Exception:
            # The error that is under way says more than that its futures are gone too.
            return


def check_client(client: Any) -> Any:
    """Refuse what is no client of a cluster that answers; return the module ``distributed``."""
    distributed = import_distributed()
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise InputError(
            f"client must be a dask.distributed.Client that is not asynchronous; got {client!r}."
        )
    if client.status != "running":
        raise InputError(f"client is {client.status}; connect a new one to the cluster.")
    return distributed


def _check_versions(client: Any) -> None:
    """Refuse workers that have another version of halfseen, or none."""

    def version() -> str | None:
        # Sent as it stands here: a worker may have another module of this name, or none.
        try:
            from halfseen.version import __version__
        except ImportError:
            return None
        return __version__

    # Workers that die meanwhile are asked nothing else.
    found: dict[str, str | None] = client.run(version, on_error="ignore")
    for worker, there in found.items():
        if there != __version__:
            has = "no halfseen" if there is None else f"halfseen {there}"
            raise InputError(
                f"the worker {worker} has {has}, and this process has halfseen {__version__}. Install "
                "the same version on all workers."
            )


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to the scheduler of a cluster, for as long as it is needed."""
    distributed = import_distributed()
    try:
        client = distributed.Client(address, timeout=PATIENCE / 4)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no cluster of Dask answers at {address!r}: {error}. Start one with 'dask scheduler' and "
            "'dask worker ADDRESS'."
        ) from None
    with client:
        yield client


def label_of(work: Any) -> str:
    """Return a name of some work for the dashboard of Dask, which shows it up to the first digit."""
    while hasattr(work, "func"):
        work = work.func
    name = getattr(work, "__name__", type(work).__name__)
    return "-".join(word for word in name.split("_") if word.isalpha()) or "work"


def import_distributed() -> Any:
    """Return the module ``distributed``, or say how to get it."""
    try:
        import distributed
    except ImportError:
        raise InputError('Scaling out needs Dask: pip install "halfseen[dask]".') from None
    return distributed
