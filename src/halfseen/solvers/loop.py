"""The loop that every iterative solver shares.

A solver is ``init``, ``step`` and ``done``; progress is written once, here.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

S = TypeVar("S")


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
            advance()
            if solver.done(state):
                break
    return state, history


class progress_bar:
    """Context whose value is called once for each finished step; shows a bar when asked."""

    def __init__(self, title: str, total: int, show: bool) -> None:
        self._bar: Any = None
        if show:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True))
            self._task = self._bar.add_task(title, total=total)

    def __enter__(self) -> Any:
        if self._bar is None:
            return lambda: None
        self._bar.start()
        return lambda: self._bar.advance(self._task)

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()
