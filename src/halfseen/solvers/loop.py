"""The loop that every iterative solver shares.

A solver is ``init``, ``step`` and ``done``; progress, checkpoints and stopping are written once, here.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from halfseen.parallel import interrupts_as_such

S = TypeVar("S")

# Seconds of work before a bar is shown.
SHOW_AFTER = 2.0


class IterativeSolver(Protocol[S]):
    """What the loop needs of a solver. ``Info`` is for people, ``State`` for the next step."""

    name: str
    steps: int

    def init(self) -> S:
        """Return the first state."""
        ...

    def step(self, state: S) -> tuple[S, dict[str, Any]]:
        """Return the next state, and what happened."""
        ...

    def done(self, state: S) -> bool:
        """Whether to stop before the last step."""
        ...


class Keeper(Protocol[S]):
    """Who writes down how far a solver has come."""

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        ...

    def begin(self) -> tuple[S, list[dict[str, Any]], bool] | None:
        """Return the state and the record that were written down before, and whether they are the end's.

        It is called once for each solver, before its first step.
        """
        ...

    def write(self, state: S, history: list[dict[str, Any]], ended: bool) -> None:
        """Write them down."""
        ...

    def interrupted(self, history: list[dict[str, Any]]) -> BaseException:
        """Return what to raise when Ctrl-C was pressed and all is written down."""
        ...


def iterate(
    solver: IterativeSolver[S], progress: bool = False, keeper: Keeper[S] | None = None
) -> tuple[S, list[dict[str, Any]]]:
    """Run a solver to its end; return the last state and the record of every step.

    With a ``keeper`` it goes on from what was written down, and Ctrl-C waits for the end of a step.
    """
    before = None if keeper is None else keeper.begin()
    if before is not None and before[2]:
        return before[0], before[1]
    history: list[dict[str, Any]]
    state, history = (solver.init(), []) if before is None else before[:2]
    with (
        progress_bar(solver.name, solver.steps, progress) as advance,
        interrupts_as_such(),
        interrupts_held(keeper is not None) as pressed,
    ):
        for _ in range(len(history), solver.steps):
            state, info = solver.step(state)
            history.append(info)
            advance(info.get("expected_steps"))
            ended = solver.done(state) or len(history) == solver.steps
            if keeper is not None:
                # Asked once: it may be pressed at any moment.
                stop = pressed()
                if ended or stop or keeper.due:
                    keeper.write(state, history, ended)
                if stop:
                    raise keeper.interrupted(history)
            if ended:
                break
    return state, history


@contextmanager
def interrupts_held(hold: bool) -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C back, and say whether it was pressed; pressed again, it interrupts at once.

    Signals reach the main thread alone: elsewhere nothing is held.
    """
    pressed = False

    def note(number: int, frame: Any) -> None:
        nonlocal pressed
        if pressed:
            signal.default_int_handler(number, frame)
        pressed = True
        # An error here would end the step; a stream may be closed, or in the middle of a line.
        with suppress(OSError, RuntimeError, ValueError):
            print(
                "\nhalfseen: finishing a step to write the checkpoint; press Ctrl-C again to stop at "
                "once.",
                file=sys.stderr,
            )

    if not hold or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        # Someone else decides what Ctrl-C means.
        yield lambda: False
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


class progress_bar:
    """Context whose value is called once for each finished step.

    When asked, shows a bar with the time that remains, on a terminal, once the work has taken two
    seconds. ``advance(total=...)`` corrects how many steps there will be.
    """

    def __init__(self, title: str, total: int, show: bool) -> None:
        self._title, self._total, self._done = title, total, 0
        self._console: Any = None
        self._bar: Any = None
        if show:
            from rich.console import Console

            console = Console(stderr=True)
            self._console = console if console.is_terminal else None

    def __enter__(self) -> Any:
        self._start = time.monotonic()
        return self._advance if self._console is not None else lambda total=None: None

    def _advance(self, total: int | None = None) -> None:
        self._done += 1
        if total is not None:
            self._total = max(total, self._done)
        if self._bar is None:
            if time.monotonic() - self._start < SHOW_AFTER:
                return
            self._open()
        self._bar.update(self._task, completed=self._done, total=self._total)

    def _open(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task(self._title, total=self._total)
        self._bar.start()

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()
