"""What every engine can do: keep values of blocks where they were computed, and combine results.

A table comes in pieces, called blocks here. For each block an engine keeps named arrays; the solvers
say what to do with them, the engine decides where and when. Results are combined in a tree whose shape
depends on the number of blocks alone, so that every engine gives the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Work = Callable[..., Any]
Combine = Callable[[Any, Any], Any]


class Kept:
    """One value for each block, where it was computed; only its engine can look inside."""

    def __init__(self, slots: list[Any]) -> None:
        self._slots: list[Any] | None = slots

    @property
    def slots(self) -> list[Any]:
        """Where the values are."""
        if self._slots is None:
            raise RuntimeError("these values were forgotten when their engine was closed.")
        return self._slots

    def forget(self) -> None:
        """Forget where the values are."""
        self._slots = None

    def __len__(self) -> int:
        return len(self.slots)


def combine_by_level(
    results: Sequence[Any], combine_all: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
) -> Any:
    """Combine in the tree of ``Tree``, where a whole level is combined at once.

    Parameters
    ----------
    results : sequence
    combine_all : callable
        Takes the left and the right halves of all pairs of a level.
    """
    level = list(results)
    if not level:
        raise ValueError("there are no results to combine.")
    while len(level) > 1:
        alone = level[-1:] if len(level) % 2 else []
        level = [*combine_all(level[: len(level) - len(alone) : 2], level[1::2]), *alone]
    return level[0]


def keepable(values: Arrays) -> Arrays:
    """Return values as every engine keeps them: C order, writable, and no part of something larger.

    The order in memory decides the order of additions, so it must not depend on where values were.
    """
    out = {}
    for name, value in values.items():
        array = np.asarray(value, order="C")
        if array.dtype.hasobject:
            raise TypeError(f"{name!r} has dtype {array.dtype}; only numbers can be kept.")
        base = array.base
        whole = base is None or (isinstance(base, np.ndarray) and base.nbytes == array.nbytes)
        out[name] = array if whole and array.flags.writeable else array.copy()
    return out


def size_of(values: Arrays) -> int:
    """Bytes of the arrays."""
    return sum(array.nbytes for array in values.values())


class Engine(ABC):
    """Where work on blocks is done.

    ``work`` and ``combine`` are functions of a module, partials of them, or frozen data classes that can
    be called: they may be sent to other processes. ``combine(a, b)`` must not change what it is given.
    All work runs with one BLAS thread. Engines are context managers; leaving closes them.

    Attributes
    ----------
    tick : callable or None
        Called once for each piece that ``make`` or ``stream`` has read, where that is known.
    """

    tick: Callable[[], object] | None = None

    @abstractmethod
    def make(self, work: Work, pieces: Sequence[Any], numbers: Sequence[Any], *common: Any) -> Kept:
        """Keep ``work(piece, number, *common)`` of each piece.

        Parameters
        ----------
        work : callable
            Returns a flat dictionary of arrays.
        pieces : sequence
        numbers : sequence, as long as ``pieces``
            A small argument for each piece, such as the number of its first row.
        *common
            Arguments that are the same for all pieces.
        """

    @abstractmethod
    def total(self, work: Work, *kept: Kept, common: Sequence[Any] = (), combine: Combine) -> Any:
        """Return the results ``work(*values, *common)`` combined; the values must not be changed."""

    @abstractmethod
    def each(self, work: Work, *kept: Kept, common: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield ``work(*values, *common)`` of each block, in order, a few at a time in memory."""

    @abstractmethod
    def map(self, work: Work, items: Iterable[Any], *common: Any) -> Iterator[Any]:
        """Yield ``work(item, *common)`` of each item, in order; items are small."""

    @abstractmethod
    def stream(
        self,
        work: Work,
        pieces: Sequence[Any],
        numbers: Sequence[Any],
        *common: Any,
        combine: Combine,
    ) -> Any:
        """Return the results ``work(piece, number, *common)`` combined, in one pass; nothing is kept."""

    @abstractmethod
    def close(self) -> None:
        """Forget everything. Closing twice does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()
