"""Which tables with columns of all kinds are read in pieces: those of regressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from halfseen.data.parquet_blocks import is_parquet, scan_mixed
from halfseen.data.plain_columns import PlainColumns, SideBySide, columns_of, cut_columns, narrowed
from halfseen.data.table import ArrayChunk, RowBlocks, frame_kind, is_mapped, read_table, row_slices
from halfseen.errors import InputError
from halfseen.memory import parse_memory
from halfseen.scaling.cluster import check_client
from halfseen.scaling.dask_blocks import HeldChunk, dask_blocks, dask_frames, is_dask, is_dask_frame
from halfseen.scaling.sources import blocks_of

Choose = Callable[[Sequence[str]], Sequence[str]]


def mixed_blocks(
    data: Any, choose: Choose, client: Any, memory: Any, scratch: Any
) -> RowBlocks | None:
    """Return some columns of a table as pieces, if it is read so; None if it is to be read whole.

    ``choose`` is told the names of all columns, and returns those that are wanted.
    """
    parse_memory(memory)
    if client is not None:
        check_client(client)
    if is_dask_frame(data):
        return dask_frames(data, choose([str(name) for name in data.columns]), client)
    if is_parquet(data):
        return scan_mixed(data, choose)
    mixed = isinstance(data, Mapping) or frame_kind(data) is not None
    if mixed and not isinstance(data, PlainColumns):
        if client is None and memory is None and scratch is None:
            return None
        columns = columns_of(data)
        return cut_columns(columns, choose(columns.names))
    blocks = blocks_of(data, None, client, memory, scratch)
    return None if blocks is None else narrowed(blocks, tuple(choose(blocks.names)))


def paired_blocks(
    Y: Any, X: Any, names: Sequence[str] | None, client: Any, memory: Any, scratch: Any
) -> tuple[RowBlocks, int] | None:
    """Return outcomes and regressors side by side as pieces, and how many are outcomes; None if whole.

    Both are arrays; names that nobody gave are y0, y1 and so on for outcomes, and x0, x1, … .
    """
    parse_memory(memory)
    asked = any(one is not None for one in (client, memory, scratch))
    odd = [one for one in (Y, X) if isinstance(one, RowBlocks) or is_parquet(one)]
    odd += [one for one in (Y, X) if is_dask_frame(one)]
    in_pieces = any(is_dask(one) or is_mapped(one) for one in (Y, X))
    if not (asked or odd or in_pieces):
        return None
    if odd or is_dask(Y) != is_dask(X) or not (is_dask(Y) or _are_arrays(Y, X)):
        raise InputError(
            "outcomes and regressors that are read in pieces are both Dask arrays, or both NumPy arrays "
            "or memmaps. Other tables have both in one, and a formula: "
            "regress('lead + zinc ~ age', 'folder/*.parquet')."
        )
    Y, X = (one[:, None] if one.ndim == 1 else one for one in (Y, X))
    if Y.ndim != 2 or X.ndim != 2 or len(Y) != len(X):
        raise InputError(
            "outcomes and regressors must be tables with the same rows; got shapes "
            f"{Y.shape} and {X.shape}."
        )
    q = Y.shape[1]
    called = [f"y{j}" for j in range(q)] if names is None else [str(name) for name in names]
    if len(called) != q:
        raise InputError(f"names must be {q}, one for each outcome; got {len(called)}.")
    called += [f"x{j}" for j in range(X.shape[1])]
    if is_dask(Y):
        import dask.array as da

        joined = da.concatenate([Y, X.rechunk({0: Y.chunks[0]})], axis=1)
        return dask_blocks(joined, client, called), q
    return _side_by_side(Y, X, tuple(called), client), q


def _are_arrays(*tables: Any) -> bool:
    return all(isinstance(one, np.ndarray) for one in tables)


def _side_by_side(Y: Any, X: Any, names: tuple[str, ...], client: Any) -> RowBlocks:
    if client is not None:
        check_client(client)
    # What is mapped is looked at piece by piece: two rows tell whether it is a table.
    left, right = (one if is_mapped(one) else read_table(one).values for one in (Y, X))
    for one in (left, right):
        read_table(one[:2])
    cuts = row_slices(len(Y), len(names))
    pieces: tuple[Any, ...] = tuple(
        SideBySide(*(ArrayChunk(one, cut.start, cut.stop) for one in (left, right))) for cut in cuts
    )
    sizes = tuple(cut.stop - cut.start for cut in cuts)
    if client is not None:
        # A piece of an array would take all of the array with it.
        pieces = tuple(HeldChunk(piece.read()) for piece in pieces)
    return RowBlocks(names, pieces, sizes)
