"""Tables in pieces whose columns hold numbers, texts and categories side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.parquet_files import ParquetChunk
from halfseen.data.plain_columns import PlainColumn, PlainColumns, columns_of
from halfseen.data.table import RowBlocks, Table, row_slices


@dataclass(frozen=True, eq=False)
class HeldColumns:
    """Some consecutive rows of a table in memory that has columns of all kinds."""

    columns: tuple[PlainColumn, ...]
    rows: int

    def frame(self) -> PlainColumns:
        """Return the columns."""
        names = [column.name for column in self.columns]
        return PlainColumns(names, self.rows, lambda place: self.columns[place])


@dataclass(frozen=True, eq=False)
class SideBySide:
    """The same rows of two tables of numbers."""

    left: Any
    right: Any

    def read(self) -> NDArray[np.floating]:
        """Return the columns of both."""
        return np.hstack([self.left.read(), self.right.read()])


def columns_of_piece(piece: Any, names: tuple[str, ...]) -> PlainColumns:
    """Read a piece of a table; some say only what numbers they have, and not what those are called."""
    if hasattr(piece, "frame"):
        return columns_of(piece.frame())
    return columns_of(Table(piece.read(), names))


def cut_columns(columns: PlainColumns, names: Sequence[str]) -> RowBlocks:
    """Cut some columns of a table in memory into pieces."""
    for name in names:
        columns.check(name)
    own = [columns.column(name) for name in names]
    cuts = row_slices(columns.rows, max(len(names), 1))
    pieces = tuple(
        HeldColumns(
            tuple(column._replace(values=column.values[cut]) for column in own),
            cut.stop - cut.start,
        )
        for cut in cuts
    )
    return RowBlocks(tuple(names), pieces, tuple(piece.rows for piece in pieces))


def narrowed(blocks: RowBlocks, names: tuple[str, ...]) -> RowBlocks:
    """Return the same pieces with some of the columns, where these can be read by themselves."""
    if not all(isinstance(piece, ParquetChunk) for piece in blocks.pieces):
        return blocks
    pieces = tuple(replace(piece, columns=names) for piece in blocks.pieces)
    return replace(blocks, names=names, pieces=pieces)
