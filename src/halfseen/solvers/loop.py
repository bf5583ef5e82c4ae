"""The loop that every iterative solver shares.

A solver is ``init``, ``step`` and ``done``; progress is written once, here.
"""

from __future__ import annotations

import time
from typing import Any, Protocol, TypeVar

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


def iterate(solver: IterativeSolver[S], progress: bool = False) -> tuple[S, list[dict[str, Any]]]:
    """Run a solver to its end; return the last state and the record of every step."""
    state = solver.init()
    history: list[dict[str, Any]] = []
    with progress_bar(solver.name, solver.steps, progress) as advance:
        for _ in range(solver.steps):
            state, info = solver.step(state)
            history.append(info)
            advance(info.get("expected_steps"))
            if solver.done(state):
                break
    return state, history


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
