"""Shares that are counted twice where chance may have spoken.

Of 200 tables a share of 0.95 is known to 0.015, so that one line in five falls outside 0.93 to 0.97 by
chance. Lines that do are judged by other tables, more of them: to 0.007.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from benchmarks.hard_running import many
from benchmarks.registry import Row

Answer = TypeVar("Answer")

TABLES, OTHER_TABLES = 200, 1000


class Share(NamedTuple):
    """A share of tables, or of what is asked of them.

    Attributes
    ----------
    value : float
    rest : str
        What is told beside it.
    slack : float
        How far beyond its target it may be by chance, where tables are few.
    """

    value: float
    rest: str = ""
    slack: float = 0.0

    def within(self, target: tuple[float, float]) -> bool:
        """Whether it is as large as it has to be."""
        return bool(target[0] - self.slack <= self.value <= target[1] + self.slack)


class TwoStages(Generic[Answer]):
    """What tables of one kind came to, and others, more of them, where the first miss a target.

    Parameters
    ----------
    work : function
        What is done with the table of a seed; None where it cannot be judged. Processes are sent it.
    tables : int
        Of the first stage.
    """

    def __init__(self, work: Callable[[int], Answer | None], tables: int = TABLES) -> None:
        self._work, self._tables = work, tables
        # Where a task is only tried, these are few too.
        self._more = min(OTHER_TABLES, 5 * tables)

    @cached_property
    def first(self) -> list[Answer]:
        """Answers of the first stage."""
        return self._judged(range(self._tables))

    @cached_property
    def others(self) -> list[Answer]:
        """Answers of the second stage, which are waited for where they are first asked for."""
        return self._judged(range(self._tables, self._tables + self._more))

    def _judged(self, seeds: range) -> list[Answer]:
        return [one for one in many(self._work, seeds) if one is not None]

    def row(
        self, what: str, share: Callable[[list[Answer]], Share], target: tuple[float, float]
    ) -> Row:
        """Judge a share by the first tables; by the others, if it misses its target there."""
        found = share(self.first)
        measured = f"{found.value:.3f}"
        if not found.within(target):
            found = share(self.others)
            measured += f"; of {self._more} other tables {found.value:.3f}"
        return Row(what, measured + found.rest, in_words(target), found.within(target))


def in_words(target: tuple[float, float]) -> str:
    """Write a target down."""
    low, high = target
    return f"{low:.2f} or more" if high == 1.0 else f"{low:.2f} to {high:.2f}"
