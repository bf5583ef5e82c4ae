"""A discrete-event simulation of a step of ``scaling.cluster.ClusterEngine``: who waits for whom.

One client, one scheduler, some workers with one thread each, and a network. A step of B blocks is 2 B
tasks: B that ask a block, and B − 1 that combine results in a tree. The client
submits them in one message for each of these groups, and for each level of the tree. The scheduler is
one thread: it takes messages one after another. Block k lives on worker k mod W, as tasks that wait at
the scheduler are handed out; a combination runs where its left part is and fetches the right one.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Any


@dataclass(frozen=True)
class Costs:
    """Seconds of processor time, and of waiting, that one task takes.

    Attributes
    ----------
    client : float
        To describe a task and to keep its future.
    submit, finish : float
        Of the scheduler: to take a task in, and for all that comes after (sending it out, hearing of its
        end, forgetting it).
    worker : float
        Of a worker, besides the work itself.
    hop : float
        From a process to another: messages are collected for some milliseconds before they are sent.
    """

    client: float
    submit: float
    finish: float
    worker: float
    hop: float


@dataclass(frozen=True)
class Step:
    """What is to be done.

    Attributes
    ----------
    blocks : int
    work, combine : float
        Seconds to ask a block, and to add two results.
    before : float
        Seconds of the client before it submits anything: the M step.
    result : int
        Bytes of a result, which is what travels.
    """

    blocks: int
    work: float
    combine: float
    before: float
    result: int


@dataclass(frozen=True)
class Machines:
    """Where it is done.

    Attributes
    ----------
    workers : int
    latency, bandwidth : float
        Of the network, in seconds and in bytes a second.
    speed : float
        Below 1 where other programs take a share of the processors.
    """

    workers: int
    latency: float = 0.0
    bandwidth: float = inf
    speed: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """Seconds of a step, and the shares of it in which the scheduler and the workers were busy."""

    seconds: float
    scheduler: float
    workers: float


class _Clock:
    """Time, and what ends when."""

    def __init__(self, speed: float) -> None:
        self.speed, self.now = speed, 0.0
        self._ends: list[tuple[float, int, Any]] = []
        self._count = 0

    def work(self, seconds: float, then: Any) -> None:
        """Do something after work, which others on the machine may slow down."""
        self.wait(seconds / self.speed, then)

    def wait(self, seconds: float, then: Any) -> None:
        """Do something after some seconds."""
        self._count += 1
        heapq.heappush(self._ends, (self.now + seconds, self._count, then))

    def next(self) -> Any:
        """Go to the next thing that ends, and return what was to be done then."""
        self.now, _, then = heapq.heappop(self._ends)
        return then


class Simulation:
    """One step, from the client's first line to the result in its hands."""

    def __init__(self, step: Step, machines: Machines, costs: Costs) -> None:
        self.step, self.machines, self.costs = step, machines, costs
        self.clock = _Clock(machines.speed)
        self._plan()
        self._messages: deque[tuple[str, int, int]] = deque()
        self._scheduler_free = True
        self._queues: list[list[int]] = [[] for _ in range(machines.workers)]
        self._worker_free = [True] * machines.workers
        self._known = bytearray(len(self.home))
        self.scheduler_time = self.worker_time = 0.0

    def _plan(self) -> None:
        """Give numbers to the tasks: blocks, then the tree level by level."""
        B, W = self.step.blocks, self.machines.workers
        self.home = [k % W for k in range(B)]
        self.needs, self.feeds, self.far = [0] * B, [-1] * B, [False] * B
        self.groups = [(0, B)]
        level = list(range(B))
        while len(level) > 1:
            first = len(self.home)
            above = []
            for left, right in zip(level[::2], level[1::2], strict=False):
                self.feeds[left] = self.feeds[right] = len(self.home)
                above.append(len(self.home))
                self.far.append(self.home[left] != self.home[right])
                self.home.append(self.home[left])
                self.needs.append(2)
                self.feeds.append(-1)
            self.groups.append((first, len(self.home)))
            level = above + (level[-1:] if len(level) % 2 else [])
        self.root = level[0]

    def run(self) -> Outcome:
        """Return how long it takes."""
        clock, ended = self.clock, False
        clock.work(self.step.before, ("client", 0))
        while not ended:
            kind, *what = clock.next()
            ended = getattr(self, f"_{kind}")(*what) is True
        return Outcome(
            clock.now,
            self.scheduler_time / clock.now,
            self.worker_time / clock.now / self.machines.workers,
        )

    def _client(self, group: int) -> None:
        """Describe the tasks of a group, and send the one before."""
        if group:
            self.clock.wait(self._hop(), ("arrive", "group", *self.groups[group - 1]))
        if group < len(self.groups):
            first, last = self.groups[group]
            self.clock.work((last - first) * self.costs.client, ("client", group + 1))

    def _hop(self, size: int = 0) -> float:
        return self.costs.hop + self.machines.latency + size / self.machines.bandwidth

    def _arrive(self, kind: str, first: int, last: int) -> None:
        """Put a message into the scheduler's queue."""
        self._messages.append((kind, first, last))
        self._serve()

    def _serve(self) -> None:
        if not self._messages or not self._scheduler_free:
            return
        kind, first, last = self._messages.popleft()
        cost = self.costs.submit if kind == "group" else self.costs.finish
        seconds = cost * (last - first)
        self._scheduler_free = False
        self.scheduler_time += seconds
        self.clock.work(seconds, ("served", kind, first, last))

    def _served(self, kind: str, first: int, last: int) -> bool:
        """Send out what the message made ready."""
        self._scheduler_free = True
        if kind == "group":
            for task in range(first, last):
                self._known[task] = 1
                if self.needs[task] == 0:
                    self._send(task)
        elif first == self.root:
            return True
        else:
            task = self.feeds[first]
            self.needs[task] -= 1
            if self.needs[task] == 0 and self._known[task]:
                self._send(task)
        self._serve()
        return False

    def _send(self, task: int) -> None:
        fetch = self._hop(self.step.result) if self.far[task] else 0.0
        self.clock.wait(self._hop() + fetch, ("reach", task))

    def _reach(self, task: int) -> None:
        worker = self.home[task]
        heapq.heappush(self._queues[worker], task)
        self._start(worker)

    def _start(self, worker: int) -> None:
        if not self._queues[worker] or not self._worker_free[worker]:
            return
        task, B = heapq.heappop(self._queues[worker]), self.step.blocks
        own = self.step.work if task < B else self.step.combine
        self._worker_free[worker] = False
        self.worker_time += own + self.costs.worker
        self.clock.work(own + self.costs.worker, ("end", task))

    def _end(self, task: int) -> None:
        worker = self.home[task]
        self._worker_free[worker] = True
        self.clock.wait(self._hop(), ("arrive", "end", task, task + 1))
        self._start(worker)


def simulate_step(step: Step, machines: Machines, costs: Costs) -> Outcome:
    """Simulate one step.

    Examples
    --------
    >>> free = Costs(0.0, 0.0, 0.0, 0.0, 0.0)
    >>> simulate_step(Step(8, 1.0, 0.0, 0.0, 0), Machines(2), free).seconds
    4.0
    >>> simulate_step(Step(8, 1.0, 0.0, 0.0, 0), Machines(2, speed=0.5), free).seconds
    8.0
    """
    return Simulation(step, machines, costs).run()
