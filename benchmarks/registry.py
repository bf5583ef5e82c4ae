"""Tasks by name, and the rows that they report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One figure: what was measured, what it came to, and what it has to be."""

    what: str
    measured: str
    target: str
    met: bool | None = None

    @property
    def verdict(self) -> str:
        """Whether the target was met, in a word."""
        return {True: "met", False: "MISSED", None: "for information"}[self.met]


Task = Callable[[bool], Iterator[Row]]
TASKS: dict[str, Task] = {}


def task(function: Task) -> Task:
    """Register a task under the name of its function."""
    TASKS[function.__name__] = function
    return function
