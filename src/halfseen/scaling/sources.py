"""Which tables are read in pieces, and who works on them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.data.parquet_blocks import is_parquet, scan_parquet
from halfseen.data.parquet_files import page_bytes, unpacked_in
from halfseen.data.table import (
    ArrayChunk,
    RowBlocks,
    Table,
    array_blocks,
    is_mapped,
    is_private,
    read_names,
    read_table,
)
from halfseen.errors import InputError, argument
from halfseen.memory import LEAST, MATRICES, budget, free_bytes, parse_memory
from halfseen.scaling.cluster import ClusterEngine, check_client
from halfseen.scaling.dask_blocks import HeldChunk, dask_blocks, is_dask
from halfseen.scaling.engine import Engine
from halfseen.scaling.local import LocalEngine

# Pages of Parquet files that are read bit by bit may take one part in so many of what is left.
LARGEST_SHARE = 4


def blocks_of(
    X: Any,
    names: Sequence[str] | None = None,
    client: Any = None,
    memory: Any = None,
    scratch: Any = None,
) -> RowBlocks | None:
    """Return a table as pieces, if it is of a kind that is read so; None if it is to be read whole.

    Parameters
    ----------
    X : anything
        Pieces themselves, Dask collections, paths of Parquet files and memmaps are read in pieces; so is
        any array for which a cluster or a limit of memory is given.
    names : sequence of str, optional
        Names of the columns.
    client, memory, scratch
        As ``fit`` has them.
    """
    parse_memory(memory)
    if client is not None:
        check_client(client)
    if isinstance(X, RowBlocks):
        return _named(X, names)
    if is_dask(X):
        return dask_blocks(X, client, names)
    if is_parquet(X):
        return _named(scan_parquet(X), names)
    asked = [
        argument(name)
        for name, value in (("client", client), ("memory", memory), ("scratch", scratch))
        if value is not None
    ]
    if not asked and not is_mapped(X):
        return None
    if isinstance(X, IntervalData | PairMoments):
        raise InputError(
            f"{asked[0]} is for tables of numbers that are read in pieces; got {type(X).__name__}."
        )
    if memory is not None and is_private(X):
        raise InputError(
            f'a memmap of mode "c" keeps what it reads in memory, whatever {argument("memory")} '
            'says; open it with mode "r".'
        )
    blocks = array_blocks(X, names)
    if client is None:
        return blocks
    # A piece of an array would take all of the array with it.
    return replace(blocks, pieces=tuple(HeldChunk(piece.read()) for piece in blocks.pieces))


def _named(blocks: RowBlocks, names: Sequence[str] | None) -> RowBlocks:
    if names is None:
        return blocks
    return replace(blocks, names=read_names(names, len(blocks.names)))


def held_table(X: Any, blocks: RowBlocks) -> Table | None:
    """Return the table that whoever called has at hand, if any.

    Rows that are elsewhere are not held: imputations are made of rows that are passed then.
    """
    if isinstance(X, RowBlocks) or is_dask(X) or is_parquet(X):
        return None
    if is_mapped(X) and X.dtype not in (np.float64, np.float32):
        # It would be converted as a whole.
        return None
    first = blocks.pieces[0]
    # Pieces of an array in this process were cut from what was read.
    values = np.asarray(first.X) if isinstance(first, ArrayChunk) else read_table(X).values
    return Table(values, blocks.names)


def engine_for(
    client: Any,
    memory: Any,
    scratch: Any,
    n_jobs: int | None,
    blocks: RowBlocks,
    set_aside: int = 0,
) -> tuple[Engine, RowBlocks]:
    """Return who does the work on a table: a cluster, or this process within its memory; and the table.

    So many bytes are ``set_aside`` for what comes into memory after the rows. Pages of Parquet for which
    there is no room are unpacked on the disk, in the folder of what else does not fit.
    """
    if client is not None:
        for name, value in (("memory", memory), ("scratch", scratch)):
            if value is not None:
                raise InputError(
                    f"{argument(name)} is for this process; the workers of a cluster have limits "
                    f"of their own. Leave it out, or {argument('client')}."
                )
        return ClusterEngine(client), blocks
    there = isinstance(scratch, str | os.PathLike) and Path(scratch).is_dir()
    if scratch is not None and not there:
        raise InputError(f"scratch must be a folder that is there; got {scratch!r}.")
    least = LEAST + 8 * MATRICES * blocks.shape[1] ** 2
    pages, unpacking = page_bytes(blocks.pieces)
    left = free_bytes() // 2 if memory is None else budget(memory, least + min(pages, unpacking))
    assert left is not None
    if pages > min(left - least, left // LARGEST_SHARE):
        where = str(scratch or tempfile.gettempdir())
        blocks = replace(blocks, pieces=unpacked_in(where, blocks.pieces))
        pages = unpacking
    promised = parse_memory(memory)
    kept = None if promised is None else promised - set_aside - pages
    return LocalEngine(scratch, n_jobs, max(1, left - pages), kept), blocks
