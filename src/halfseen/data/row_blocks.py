"""A table in chunks, read one at a time: larger than memory, or on other machines."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from halfseen.data.table import OtherTable, TableKind, read_table

Floats = NDArray[np.float64]

# Cells that stay in the cache of a core while they are worked on. Part of the meaning of a seed.
CACHE_CELLS = 2**15
# So many of these in a chunk of a table that does not come in chunks: 8 MiB, little enough to hold
# several and enough to keep a core busy for a tenth of a second. Sums are taken chunk by chunk, so it is
# part of the last bits of an answer.
CACHES_PER_CHUNK = 32


def cache_rows(d: int) -> int:
    """Rows of a table with d columns that stay in the cache of a core."""
    return max(1, CACHE_CELLS // d)


def chunk_rows(d: int) -> int:
    """Rows in a chunk of a table with d columns: as many at least, so that it outweighs its sums."""
    return cache_rows(d) * max(CACHES_PER_CHUNK, -(-d // cache_rows(d)))


def row_slices(n: int, d: int) -> list[slice]:
    """Cut n rows into chunks."""
    step = chunk_rows(d)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


class Chunk(Protocol):
    """Some consecutive rows of a table, wherever they are."""

    def read(self) -> NDArray[np.floating]:
        """Return the rows, of shape (rows, d), NaN where hidden."""
        ...


@dataclass(frozen=True, eq=False)
class RowBlocks(OtherTable):
    """A table in chunks of consecutive rows.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    pieces : tuple of Chunk
        In the order of the rows. They can be sent to other processes, unless they hold an array.
    sizes : tuple of int
        Rows in each chunk.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq, halfseen as hs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"lead": [0.3, None], "zinc": [5.0, 7.0]}), f"{folder}/a.parquet")
    ...     table = hs.scan_parquet(folder)
    >>> table.names, table.shape, len(table)
    (('lead', 'zinc'), (2, 2), 1)
    """

    _needed: ClassVar[str] = (
        "a table in memory is needed here; got RowBlocks, a table in pieces. Pass some of its rows."
    )
    kind: ClassVar[TableKind] = TableKind.PIECES

    names: tuple[str, ...]
    pieces: tuple[Any, ...]
    sizes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return sum(self.sizes), len(self.names)

    @cached_property
    def first_rows(self) -> tuple[int, ...]:
        """Number of the first row of each chunk."""
        return tuple(int(k) for k in np.cumsum([0, *self.sizes[:-1]]))

    def __len__(self) -> int:
        return len(self.pieces)


@dataclass(frozen=True, eq=False)
class ArrayChunk:
    """Rows of an array, in memory or mapped from a file."""

    X: NDArray[np.floating]
    start: int
    stop: int

    def read(self) -> NDArray[np.floating]:
        """Return a copy of the rows; pages of a mapped file are given back."""
        part = self.X[self.start : self.stop]
        # Other numbers than these become doubles chunk by chunk, never all at once.
        kept = part.dtype in (np.float64, np.float32) and part.dtype.isnative
        out = np.array(part, dtype=part.dtype if kept else np.float64, order="C")
        release_pages(self.X)
        return out


def array_blocks(X: Any, names: Any = None) -> RowBlocks:
    """Cut an array into chunks; only a copy of one at a time is ever made."""
    if is_mapped(X) and X.ndim == 2 and X.dtype.kind in "fiub":
        # Two rows tell whether it is a table; to read it whole might convert it whole.
        values, names = X, read_table(X[:2], names).names
    else:
        values, names = read_table(X, names)
    n, d = values.shape
    cuts = row_slices(n, d)
    return RowBlocks(
        names,
        tuple(ArrayChunk(values, cut.start, cut.stop) for cut in cuts),
        tuple(cut.stop - cut.start for cut in cuts),
    )


def release_pages(X: NDArray[Any]) -> None:
    """Give the pages of a mapped file back: they would count as memory of this process.

    Pages of a private copy (mode "c") hold changes that are nowhere else, and stay.
    """
    for owner in _bases(X):
        if isinstance(owner, np.memmap) and owner.mode != "c":
            mapped = getattr(owner, "_mmap", None)
            if isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)
                return


def is_private(X: Any) -> bool:
    """Whether an array is mapped so that changes stay in memory, and its pages with them."""
    return isinstance(X, np.ndarray) and any(
        isinstance(a, np.memmap) and a.mode == "c" for a in _bases(X)
    )


def is_mapped(X: Any) -> bool:
    """Whether an array, or what it is a view of, is mapped from a file."""
    return isinstance(X, np.ndarray) and any(isinstance(a, np.memmap) for a in _bases(X))


def _bases(X: Any) -> Iterator[Any]:
    while isinstance(X, np.ndarray):
        yield X
        X = X.base
