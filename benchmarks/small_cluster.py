"""A scheduler and workers of Dask as processes of their own, and what each of them spends."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cluster_simulation import Costs
from halfseen.scaling.cluster import ClusterEngine, import_distributed
from halfseen.scaling.engine import Arrays, Engine, Kept

# Seconds for a process to start, and to become quiet after a step.
PATIENCE, QUIET = 60.0, 0.5
CHAIN = 100


def nothing(kept: Arrays, result: Any) -> Any:
    """Do nothing with a block."""
    return result


def empty_block(piece: int, number: int) -> Arrays:
    """Return next to nothing."""
    return {"x": np.zeros(1)}


class Spent(NamedTuple):
    """Processor seconds of client, scheduler and workers, and how long they waited for a core."""

    client: float
    scheduler: float
    workers: float
    waited: float

    def since(self, before: Spent) -> Spent:
        """Return what was spent since."""
        return Spent(*(a - b for a, b in zip(self, before, strict=True)))

    @property
    def speed(self) -> float:
        """Share of the time in which those that had work also had a core."""
        worked = self.client + self.scheduler + self.workers
        return worked / (worked + self.waited)


class SmallCluster:
    """A client, and the processes that it talks to."""

    def __init__(self, client: Any, scheduler: int, workers: list[int]) -> None:
        import psutil  # Dask brings it

        self.client = client
        self._scheduler = psutil.Process(scheduler)
        self._all = [psutil.Process(), self._scheduler, *map(psutil.Process, workers)]

    def spent(self) -> Spent:
        """Return what was spent so far."""
        seconds = [sum(p.cpu_times()[:2]) for p in self._all]
        waited = sum(_waited(p.pid) for p in self._all)
        return Spent(seconds[0], seconds[1], sum(seconds[2:]), waited)


def _count_held(dask_scheduler: Any) -> int:
    return len(dask_scheduler.unrunnable)


def _waited(pid: int) -> float:
    """Seconds that threads of a process were ready and had no core (Linux)."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[1])
        except OSError:  # the thread has ended
            continue
    return total / 1e9


@contextmanager
def small_cluster(workers: int) -> Iterator[SmallCluster]:
    """Start a scheduler and some workers with one thread each, and stop them in the end."""
    started: list[subprocess.Popen[bytes]] = []
    path = os.pathsep.join([str(Path(__file__).parents[1]), *(p for p in sys.path if p)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}

    def start(module: str, *words: str) -> None:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.{module}",
            *words,
            "--dashboard-address",
            ":0",
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, env=environment, **quiet))

    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder, "scheduler.json")
        alone = "--nthreads", "1", "--no-nanny", "--memory-limit", "0"
        try:
            start(
                "dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--scheduler-file",
                str(where),
            )
            deadline = time.monotonic() + PATIENCE
            while not where.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            for _ in range(workers):
                start("dask_worker", "--scheduler-file", str(where), *alone)
            with import_distributed().Client(scheduler_file=str(where), timeout=PATIENCE) as client:
                client.wait_for_workers(workers, timeout=PATIENCE)
                yield SmallCluster(client, started[0].pid, [p.pid for p in started[1:]])
        finally:
            # A worker that is asked to end looks for its scheduler first, for a minute.
            for process in started:
                process.kill()
                process.wait()


def blocks_on(engine: Engine, blocks: int) -> Kept:
    """Keep blocks of next to nothing."""
    return engine.make(empty_block, range(blocks), range(blocks))


def measure_overhead(cluster: SmallCluster, blocks: int, steps: int) -> Costs:
    """Take steps that do nothing; what is spent is the price of a task."""
    client = cluster.client
    with ClusterEngine(client) as engine:
        kept = blocks_on(engine, blocks)
        engine.total(nothing, kept, common=(1,), combine=operator.add)
        time.sleep(QUIET)
        before = cluster.spent()
        for _ in range(steps):
            engine.total(nothing, kept, common=(1,), combine=operator.add)
        time.sleep(QUIET)
        spent, count = cluster.spent().since(before), 2 * blocks * steps
    # Tasks that no worker may take are only taken in.
    time.sleep(QUIET)
    before, deadline = cluster.spent(), time.monotonic() + PATIENCE
    held = client.map(operator.neg, range(count), workers=["127.0.0.1:1"], pure=False)
    while client.run_on_scheduler(_count_held) < count and time.monotonic() < deadline:
        time.sleep(QUIET)
    submit = cluster.spent().since(before).scheduler / count
    client.cancel(held)
    scheduler = spent.scheduler / count
    return Costs(
        spent.client / count,
        submit,
        max(scheduler - submit, 0.0),
        spent.workers / count,
        _hop(client, scheduler - submit + spent.workers / count),
    )


def _hop(client: Any, work: float) -> float:
    """Seconds from a process to another: each link of a chain of tasks takes two, and the work on it."""
    times = []
    for _ in range(5):
        link = client.submit(operator.neg, 1, pure=False)
        link.result()
        start = time.perf_counter()
        for _ in range(CHAIN):
            link = client.submit(operator.neg, link, pure=False)
        link.result()
        times.append((time.perf_counter() - start) / CHAIN)
    return max(0.5 * (min(times) - work), 0.0)
