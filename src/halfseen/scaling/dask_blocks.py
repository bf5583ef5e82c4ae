"""Dask arrays and data frames as tables in pieces: a chunk of rows is a piece."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.table import RowBlocks, read_table
from halfseen.errors import InputError
from halfseen.scaling.cluster import ClusterEngine

FEWEST_ROWS = 2


def is_dask(X: Any) -> bool:
    """Whether something is a collection of Dask; Dask is not imported to find out."""
    root = type(X).__module__.split(".")[0]
    return root in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def is_dask_frame(X: Any) -> bool:
    """Whether something is a data frame of Dask."""
    return is_dask(X) and _kind(X) == "DataFrame"


@dataclass(frozen=True, eq=False)
class HeldFrame:
    """A part of a data frame that was computed, on the worker that has it."""

    part: Any

    def frame(self) -> Any:
        """Return the part."""
        return self.part


@dataclass(frozen=True, eq=False)
class DelayedFrame:
    """A part of a data frame that is computed in this process each time it is read."""

    part: Any

    def frame(self) -> Any:
        """Compute the part."""
        return self.part.compute(scheduler="synchronous")


@dataclass(frozen=True, eq=False)
class HeldChunk:
    """A chunk of rows that was computed, on the worker that has it."""

    values: NDArray[np.floating]

    def read(self) -> NDArray[np.floating]:
        """Return a copy: other tasks of the worker have the same chunk."""
        return np.array(self.values, order="C")


@dataclass(frozen=True, eq=False)
class DelayedChunk:
    """A chunk of rows that is computed in this process each time it is read."""

    chunk: Any

    def read(self) -> NDArray[np.floating]:
        """Compute the rows."""
        values = _rows_of(self.chunk.compute(scheduler="synchronous")).values
        return np.array(values, order="C")


def dask_blocks(X: Any, client: Any = None, names: Sequence[str] | None = None) -> RowBlocks:
    """Take a Dask array or data frame as a table in pieces.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask data frame with columns of numbers
        Chunks along the columns are merged. Chunks without rows are left out.
    client : distributed.Client, optional
        With it the chunks are computed on the workers and stay there: the pieces are futures. Without
        it each is computed in this process when it is read.
    names : sequence of str, optional
        Names of the columns; those of the data frame otherwise.

    Returns
    -------
    RowBlocks
    """
    kind = _kind(X)
    is_frame = kind == "DataFrame"
    columns = _check_frame(X) if is_frame else _check_array(X, kind)
    if names is not None and len(names) != len(columns):
        raise InputError(f"names must be {len(columns)}, one for each column; got {len(names)}.")
    columns = columns if names is None else tuple(map(str, names))
    # One chunk for all columns, so that a chunk is a set of whole rows.
    chunks = list(X.to_delayed() if is_frame else X.rechunk({1: -1}).to_delayed().ravel())
    known = None if is_frame else [None if np.isnan(size) else int(size) for size in X.chunks[0]]
    if client is None:
        pieces, sizes = _here(chunks, known)
    else:
        pieces, sizes = _on_workers(chunks, client, _held, _count)
    return _without_empty(columns, pieces, sizes)


def dask_frames(X: Any, columns: Sequence[str], client: Any = None) -> RowBlocks:
    """Take some columns of a Dask data frame as a table in pieces; they may hold anything."""
    known = {str(name): name for name in X.columns}
    # One without columns counts its rows all the same.
    chunks = list(X[[known[name] for name in columns]].to_delayed())
    if client is None:
        pieces: list[Any] = [DelayedFrame(chunk) for chunk in chunks]
        sizes = [len(piece.frame()) for piece in pieces]
    else:
        pieces, sizes = _on_workers(chunks, client, HeldFrame, _count_frame)
    return _without_empty(tuple(columns), pieces, sizes)


def _without_empty(names: tuple[str, ...], pieces: list[Any], sizes: list[int]) -> RowBlocks:
    """Leave chunks out that have no rows."""
    full = [k for k, size in enumerate(sizes) if size]
    n = sum(sizes)
    if n < FEWEST_ROWS:
        raise InputError(
            f"at least {FEWEST_ROWS} rows are needed; got n_samples = {n} (shape {(n, len(names))})."
        )
    return RowBlocks(names, tuple(pieces[k] for k in full), tuple(sizes[k] for k in full))


def _on_workers(
    chunks: list[Any],
    client: Any,
    held: Callable[[Any], Any],
    rows_of: Callable[[Any], int],
) -> tuple[list[Any], list[int]]:
    """Compute the chunks on the workers; only their numbers of rows are brought here."""
    name = uuid.uuid4().hex
    computed = client.compute(chunks)
    keys = [f"halfseen-chunk-{name}-{k}" for k in range(len(chunks))]
    pieces = client.map(held, computed, key=keys, pure=False)
    keys = [f"halfseen-rows-{name}-{k}" for k in range(len(chunks))]
    counts = client.map(rows_of, pieces, key=keys, pure=False)
    engine = ClusterEngine(client)
    # One at a time, through deaths of workers; a chunk that fails takes the others with it.
    return pieces, [engine.bring(count, [*computed, *pieces, *counts]) for count in counts]


def _here(chunks: list[Any], known: list[int | None] | None) -> tuple[list[Any], list[int]]:
    """Leave the chunks to be computed; those whose number of rows is not known are counted."""
    pieces = [DelayedChunk(chunk) for chunk in chunks]
    rows = known or [None] * len(pieces)
    sizes = [
        len(piece.read()) if size is None else size
        for piece, size in zip(pieces, rows, strict=True)
    ]
    return pieces, sizes


def _rows_of(chunk: Any) -> Any:
    return read_table(chunk, fewest_rows=0)


def _held(chunk: Any) -> HeldChunk:
    return HeldChunk(_rows_of(chunk).values)


def _count(piece: HeldChunk) -> int:
    return len(piece.values)


def _count_frame(piece: HeldFrame) -> int:
    return len(piece.part)


def _kind(X: Any) -> str:
    """Return "Array", "DataFrame", "Series" or another name of a collection of Dask."""
    # By the classes it comes from, not by what it has: a delayed object has every attribute.
    names = [base.__name__ for base in type(X).__mro__]
    return next((name for name in ("Array", "DataFrame", "Series") if name in names), names[0])


def _check_array(X: Any, kind: str) -> tuple[str, ...]:
    """Refuse what is no table of numbers; return names for the columns."""
    if kind == "Series":
        raise InputError(
            "the data must be a table of rows and columns; got a Dask series, which has one "
            "dimension. Use series.to_frame()."
        )
    if kind != "Array":
        raise InputError(f"a Dask array or data frame is needed; got {type(X).__name__}.")
    if X.ndim != 2:
        hint = "; reshape a single column with X.reshape(-1, 1)" if X.ndim == 1 else ""
        raise InputError(
            f"the data must be a table of rows and columns; got {X.ndim} dimension"
            f"{'' if X.ndim == 1 else 's'}, shape {X.shape}{hint}."
        )
    if X.shape[1] == 0:
        raise InputError(f"the data have no columns (shape {X.shape}).")
    if np.isnan(X.shape[1]):
        raise InputError(
            "the number of columns of the Dask array is not known; X.compute_chunk_sizes() finds it."
        )
    if X.dtype.kind == "c":
        raise InputError("Complex data not supported: values must be real numbers.")
    if X.dtype.kind not in "fiub":
        raise InputError(
            "every cell must be a number, or NaN where it is hidden; the Dask array has dtype "
            f"{X.dtype}. Use X.astype(float) if its cells are numbers."
        )
    return tuple(f"x{i}" for i in range(X.shape[1]))


def _check_frame(X: Any) -> tuple[str, ...]:
    """Refuse columns that hold no numbers; return the names."""
    names = tuple(str(name) for name in X.columns)
    if not names:
        raise InputError("the data have no columns.")
    for name, dtype in zip(names, X.dtypes, strict=True):
        kind = getattr(dtype, "kind", "O")
        if kind == "c":
            raise InputError(
                f"column {name}: Complex data not supported: values must be real numbers."
            )
        if kind not in "fiub":
            raise InputError(
                f"column {name} has dtype {dtype}; every cell must be a number, with NaN where it is "
                "hidden. Leave the column out, or turn it into numbers."
            )
    return names
