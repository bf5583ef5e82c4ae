"""Rows of Parquet files, read with little more in memory than these rows, and written likewise."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import weakref
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.table import chunk_rows
from halfseen.errors import InputError
from halfseen.files import (
    is_left_behind,
    remove_left_behind,
    unfinished_folder,
    whole_file,
)
from halfseen.kernels.nullable import fill_nullable

Floats = NDArray[np.float64]
Values = NDArray[np.floating]

# How pyarrow opens files. Reading ahead would hold whole row groups, and a mapped file would count as
# memory; with a buffer of this size (in bytes) for each column, pages are read one after another.
# Measured on a row group of 325 MB in 100 columns: peak 0.15 GB, or 0.39 GB if it has dictionaries,
# against 0.6 GB with what pyarrow does by itself.
# Checksums of pages are looked at where a file has them.
CHECKED = {"page_checksum_verification": True}
OPEN = {"pre_buffer": False, "memory_map": False, "buffer_size": 2**16, **CHECKED}
# Measurements hardly ever repeat: a dictionary of them would cost a third of the reading time.
WRITE = {"use_dictionary": False, "write_page_checksum": True}
# Footers that are kept: reading one takes some 60 microseconds for each row group of 100 columns, once
# per file instead of once per chunk.
FOOTERS = 4
# Row groups that are read bit by bit at the same time: threads that take consecutive chunks are in one,
# or at the border of two. Each holds a page of every column.
CURSORS = 2
# Chunks that a cursor passed on its way to a later one and still has: threads overtake each other.
PASSED = 4
# pandas keeps an index without a name in columns of these names.
INDEX = re.compile(r"__index_level_\d+__")
# What the system says where a disk is full.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Row groups in a part, unless a number of rows is told: 256 MiB before compression, so that a few
# gigabytes keep several workers busy and footers stay small.
PART_GROUPS = 32
# Names of the parts sort as their numbers do, up to this many digits.
DIGITS = 5


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file, and how it looked when it was planned."""

    path: str
    size: int
    modified: int
    rows: int

    def check(self) -> None:
        """Raise an ``InputError`` if the file is gone or has changed."""
        now = look_at(self.path)
        if (now.st_size, now.st_mtime_ns) != (self.size, self.modified):
            raise InputError(
                f"{shown(self.path)} has changed since this work began. Start again. A copy on another "
                "machine must have the same time, as cp -p makes it."
            )


@dataclass(frozen=True, slots=True)
class ParquetChunk:
    """Some consecutive rows of a Parquet file; small, and can be sent to other processes.

    Attributes
    ----------
    file : FileStamp
    first_group, last_group : int
        Row groups, both included.
    start, stop : int
        Rows within these groups. If there are several groups, they are read whole.
    first_row : int
        Number of the first row within the file.
    step : int
        Rows in each chunk of a row group that was cut; 0 where none was.
    columns : tuple of str
    single : bool
        Whether values are float32, not float64.
    unpack : str or None
        Folder in which a row group that was cut is unpacked, column by column, before its rows are
        read; otherwise pages of all its columns are in memory together.
    """

    file: FileStamp
    first_group: int
    last_group: int
    start: int
    stop: int
    first_row: int
    step: int
    columns: tuple[str, ...]
    single: bool
    unpack: str | None = None

    def read(self) -> Values:
        """Return the rows, of shape (rows, d), NaN where hidden; each column in one stretch."""
        self.file.check()
        with pyarrow_sentences(self.file.path):
            parts = _take(self) if self.step else _whole_groups(self)
            self._check_rows(sum(part.num_rows for part in parts))
            # Column by column, as the file has it: copying into rows takes as long as reading.
            out = np.empty(
                (self.stop - self.start, len(self.columns)),
                np.float32 if self.single else np.float64,
                order="F",
            )
            row = 0
            for part in parts:
                _fill(out[row : row + part.num_rows], part, self.columns)
                row += part.num_rows
        return out

    def frame(self) -> Any:
        """Return the rows as a table of Arrow: columns may hold anything."""
        import pyarrow as pa

        self.file.check()
        with pyarrow_sentences(self.file.path):
            parts = _take(self) if self.step else _whole_groups(self)
            self._check_rows(sum(part.num_rows for part in parts))
            return pa.Table.from_batches(parts).unify_dictionaries()

    def _check_rows(self, found: int) -> None:
        if found != self.stop - self.start:
            raise InputError(
                f"{shown(self.file.path)} is damaged: row group {self.first_group} holds {found} rows "
                f"where its footer tells {self.stop - self.start}."
            )


def pyarrow_parquet(doing: str = "Reading") -> Any:
    """Return ``pyarrow.parquet``, or say what to install."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(
            f'{doing} Parquet files needs pyarrow: pip install "halfseen[parquet]".'
        ) from None
    return pq


def saved_index(schema: Any) -> list[str]:
    """Return the columns in which pandas saved an index: it says so, where anything may stand."""
    told = schema.pandas_metadata
    columns = told.get("index_columns") if isinstance(told, dict) else None
    # An index that only counts is kept as a description, not as a column.
    kept = columns if isinstance(columns, list) else []
    kept = [name for name in kept if isinstance(name, str) and name in schema.names]
    return [*kept, *(name for name in schema.names if INDEX.fullmatch(name) and name not in kept)]


@contextmanager
def pyarrow_sentences(path: str) -> Iterator[None]:
    """Turn what pyarrow raises about a file into an ``InputError`` that names it."""
    import pyarrow as pa

    try:
        yield
    except (InputError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        # An OSError of the system has a number; pyarrow raises others about what stands in the file.
        if isinstance(error, OSError) and error.errno is not None:
            raise cannot_be_read(path, error) from None
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{shown(path)} is no Parquet file that can be read: {first}") from None


def look_at(path: str) -> os.stat_result:
    """Return size, time and kind of a file, or say that it cannot be read."""
    try:
        return os.stat(path)
    except OSError as error:
        raise cannot_be_read(path, error) from None


def cannot_be_read(path: str, error: OSError) -> InputError:
    """Say why a file or a folder cannot be read."""
    absent = isinstance(error, FileNotFoundError)
    reason = "there is no such file" if absent else str(error.strerror)
    return InputError(f"{shown(path)} cannot be read: {reason}.")


def shown(path: str) -> str:
    """Return a path as short as it can be told."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return path


@lru_cache(FOOTERS)
def _footer(file: FileStamp) -> Any:
    pq = pyarrow_parquet()
    with pq.ParquetFile(file.path, **OPEN) as opened:
        footer = opened.metadata
    if footer.num_rows != file.rows:
        raise InputError(
            f"{shown(file.path)} has changed since this work began: it had {file.rows} rows, and has "
            f"{footer.num_rows}. Start again."
        )
    return footer


def _open(file: FileStamp) -> Any:
    return pyarrow_parquet().ParquetFile(file.path, metadata=_footer(file), **OPEN)


def _whole_groups(chunk: ParquetChunk) -> list[Any]:
    """Read whole row groups, as record batches."""
    groups = list(range(chunk.first_group, chunk.last_group + 1))
    with _open(chunk.file) as opened:
        table = opened.read_row_groups(groups, columns=list(chunk.columns), use_threads=False)
    return list(table.to_batches())


def _batches(opened: Any, chunk: ParquetChunk, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of the row group that a chunk is cut of, some at a time."""
    yield from opened.iter_batches(
        chunk.step, row_groups=[chunk.first_group], columns=list(columns), use_threads=False
    )


class _Unpacked:
    """A row group in a file of its own, column by column, of which any rows are read.

    The file has no name, and is gone with the process. Each batch of rows of a column is a stream of
    Arrow by itself.
    """

    def __init__(self, chunk: ParquetChunk) -> None:
        self.lock = Lock()
        self._file: Any = None
        # Of each column: where a batch is, how many bytes it has, and its first row.
        self._places: list[list[tuple[int, int, int]]] = []
        self._left = _footer(chunk.file).row_group(chunk.first_group).num_rows

    @property
    def finished(self) -> bool:
        """Whether every row has been handed out."""
        return self._left <= 0

    def take(self, chunk: ParquetChunk) -> list[Any]:
        """Return the rows of a chunk."""
        import pyarrow as pa

        if self._file is None:
            try:
                self._unpack(chunk)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                raise InputError(
                    f"a row group of {shown(chunk.file.path)} does not fit on the disk of "
                    f"{chunk.unpack}, where it is unpacked. Try a scratch folder "
                    "on another disk, or more memory."
                ) from None
        columns = {
            name: pa.chunked_array(self._rows(places, chunk))
            for name, places in zip(chunk.columns, self._places, strict=True)
        }
        self._left -= chunk.stop - chunk.start
        return list(pa.table(columns).unify_dictionaries().combine_chunks().to_batches())

    def _unpack(self, chunk: ParquetChunk) -> None:
        import pyarrow as pa

        with ExitStack() as stack:
            file = stack.enter_context(tempfile.TemporaryFile(dir=chunk.unpack))
            opened = stack.enter_context(_open(chunk.file))
            places: list[list[tuple[int, int, int]]] = []
            for name in chunk.columns:
                places.append([])
                row = 0
                for batch in _batches(opened, chunk, [name]):
                    start = file.tell()
                    with pa.ipc.new_stream(file, batch.schema) as stream:
                        stream.write_batch(batch)
                    places[-1].append((start, file.tell() - start, row))
                    row += batch.num_rows
            file.flush()
            stack.pop_all()
        opened.close()
        weakref.finalize(self, file.close)
        self._file, self._places = file, places

    def _rows(self, places: list[tuple[int, int, int]], chunk: ParquetChunk) -> list[Any]:
        import pyarrow as pa

        parts = []
        first = max(0, bisect_right(places, chunk.start, key=itemgetter(2)) - 1)
        for start, size, row in places[first:]:
            if row >= chunk.stop:
                break
            self._file.seek(start)
            column = pa.ipc.open_stream(self._file.read(size)).read_all().column(0)
            skipped = max(0, chunk.start - row)
            parts += column.slice(skipped, chunk.stop - max(row, chunk.start)).chunks
        return parts


class _Cursor:
    """A row group that is read from its first row to its last, some rows at a time."""

    def __init__(self, chunk: ParquetChunk) -> None:
        self.lock = Lock()
        self._passed: dict[int, list[Any]] = {}
        self._position = 0
        self._end = _footer(chunk.file).row_group(chunk.first_group).num_rows
        self._rest: Any = None
        self._batches = _batches(_open(chunk.file), chunk, chunk.columns)

    @property
    def finished(self) -> bool:
        """Whether every row has been handed out."""
        return self._position >= self._end and not self._passed

    def take(self, chunk: ParquetChunk) -> list[Any] | None:
        """Return the rows of a chunk, or None if they are behind."""
        if chunk.start in self._passed:
            return self._passed.pop(chunk.start)
        if chunk.start < self._position:
            return None
        while self._position < chunk.start:
            start = self._position
            self._passed[start] = self._next(chunk.step)
            if self._position == start:
                return []
            if len(self._passed) > PASSED:
                del self._passed[min(self._passed)]
        return self._next(chunk.stop - chunk.start)

    def _next(self, rows: int) -> list[Any]:
        parts = []
        while rows:
            if self._rest is None:
                self._rest = next(self._batches, None)
                if self._rest is None:
                    break
            part = self._rest.slice(0, rows)
            self._rest = self._rest.slice(rows) if self._rest.num_rows > rows else None
            parts.append(part)
            rows -= part.num_rows
            self._position += part.num_rows
        if self._position >= self._end:
            # Pages and the file are let go, even if some rows wait for a slower thread.
            self._batches = iter(())
        return parts


@dataclass
class _Cursors:
    """The open cursors of this process, last used last."""

    lock: Lock = field(default_factory=Lock)
    known: OrderedDict[Any, _Cursor | _Unpacked] = field(default_factory=OrderedDict)

    def find(self, key: Any, chunk: ParquetChunk) -> _Cursor | _Unpacked:
        """Return the cursor of a row group; a new one stands before its first row."""
        with self.lock:
            cursor = self.known.get(key)
            if cursor is None:
                kind = _Cursor if chunk.unpack is None else _Unpacked
                cursor = self.known[key] = kind(chunk)
            self.known.move_to_end(key)
            while len(self.known) > CURSORS:
                self.known.popitem(last=False)
            return cursor

    def forget(self, key: Any, cursor: _Cursor | _Unpacked) -> None:
        """Let go of a cursor, unless another has taken its place."""
        with self.lock:
            if self.known.get(key) is cursor:
                del self.known[key]


_CURSORS = _Cursors()


def _take(chunk: ParquetChunk) -> list[Any]:
    """Read a part of a row group, going on where the last chunk of it ended if that is known.

    A row group can be read from its beginning only. Without the cursors a pass over m chunks of it would
    read it m / 2 times.
    """
    key = (os.getpid(), chunk.file, chunk.first_group, chunk.columns, chunk.step, chunk.unpack)
    cursor = _CURSORS.find(key, chunk)
    parts, keep = None, False
    try:
        with cursor.lock:
            parts = cursor.take(chunk)
            keep = parts is not None and not cursor.finished
    finally:
        if not keep:
            _CURSORS.forget(key, cursor)
    # The rows are behind: the next cursor begins before them.
    return _take(chunk) if parts is None else parts


def page_bytes(chunks: Iterable[Any]) -> tuple[int, int]:
    """Return the most bytes that pages of row groups which were cut may take while they are read.

    First where all columns are read together, then where they are unpacked one after another. A column
    has a dictionary and a page in memory, as they are in the file and unpacked: no more than all of it,
    which is all that the footer tells.
    """
    together, alone = 0, 0
    cut = (chunk for chunk in chunks if isinstance(chunk, ParquetChunk) and chunk.step)
    for (stamp, number, columns), _ in groupby(
        cut, key=lambda chunk: (chunk.file, chunk.first_group, chunk.columns)
    ):
        group, wanted = _footer(stamp).row_group(number), frozenset(columns)
        parts = (group.column(j) for j in range(group.num_columns))
        sizes = [
            part.total_compressed_size + part.total_uncompressed_size
            for part in parts
            if part.path_in_schema.partition(".")[0] in wanted or part.path_in_schema in wanted
        ]
        together, alone = max(together, sum(sizes)), max(alone, max(sizes, default=0))
    return CURSORS * together, CURSORS * alone


def unpacked_in(folder: str, chunks: Iterable[Any]) -> tuple[Any, ...]:
    """Return the same chunks; row groups that are cut are unpacked in a folder, column by column."""
    return tuple(
        replace(chunk, unpack=folder) if isinstance(chunk, ParquetChunk) and chunk.step else chunk
        for chunk in chunks
    )


def _fill(out: Values, batch: Any, columns: Iterable[str]) -> None:
    """Write the columns of a record batch into those of an array."""
    import pyarrow as pa

    wanted = pa.float32() if out.dtype == np.float32 else pa.float64()
    for j, name in enumerate(columns):
        column = batch.column(name)
        if column.type != wanted:
            column = column.cast(wanted, safe=False)
        bits, values = column.buffers()
        if column.null_count == 0:
            out[:, j] = column.to_numpy()
        elif column.offset % 8:
            out[:, j] = column.to_numpy(zero_copy_only=False)
        else:
            size, offset = out.dtype.itemsize, column.offset
            fill_nullable(
                np.frombuffer(values, out.dtype, len(column), offset * size),
                np.frombuffer(bits, np.uint8, offset=offset // 8),
                out[:, j],
            )


def write_parquet(
    path: str | os.PathLike[str], names: Sequence[str], chunks: Iterable[Floats]
) -> None:
    """Write rows to a Parquet file, whole or not at all; NaN becomes null.

    Parameters
    ----------
    path : path of the file
    names : sequence of str
    chunks : iterable of arrays of shape (rows, d)
        Taken one at a time. Row groups have ``chunk_rows(d)`` rows whatever the chunks have.
    """
    pyarrow_parquet("Writing")
    with _write_sentences(path):
        _write_file(path, names, _regroup(chunks, chunk_rows(len(names))))


def write_parquet_parts(
    folder: str | os.PathLike[str],
    names: Sequence[str],
    chunks: Iterable[Floats],
    part_rows: int | None = None,
) -> int:
    """Write rows to files ``part-00000.parquet`` and on; the folder appears whole or not at all.

    Parameters
    ----------
    folder : path
        Must be absent or empty.
    names : sequence of str
    chunks : iterable of arrays of shape (rows, d)
    part_rows : int, optional
        Rows in each part.

    Returns
    -------
    int
        The number of parts.
    """
    pyarrow_parquet("Writing")
    target = Path(folder).resolve()
    check_empty(target)
    group = chunk_rows(len(names))
    most = PART_GROUPS * group if part_rows is None else part_rows
    with _write_sentences(folder), _whole_folder(target) as made:
        count = 0
        for number, part in groupby(_numbered(chunks, most), key=itemgetter(0)):
            name = f"part-{number:0{DIGITS}}.parquet"
            _write_file(made / name, names, _regroup((rows for _, rows in part), group))
            count = number + 1
    return count


def check_empty(folder: Path) -> None:
    """Raise an ``InputError`` unless a folder is absent or empty, and can be filled.

    What writers that were killed left there is removed, unless some of its parts are in place.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a folder of parts cannot take its place.")
    if not folder.exists() and not folder.parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}.")
    with _write_sentences(folder):
        if folder.is_dir():
            if all(map(is_left_behind, os.listdir(folder))):
                remove_left_behind(folder)
            if names := sorted(os.listdir(folder)):
                raise InputError(
                    f"the folder {folder} is not empty (it has {names[0]}); parts of two tables in one "
                    "folder would be read as one. Name another folder, or empty this one."
                )
        with _beside(folder.resolve()):
            pass


def _beside(target: Path) -> AbstractContextManager[Path]:
    """Give an unfinished folder on the disk of ``target``."""
    # A name that begins with a dot is skipped by whoever reads folders of Parquet files.
    return unfinished_folder(target if target.is_dir() else target.parent, target)


@contextmanager
def _whole_folder(target: Path) -> Iterator[Path]:
    """Give a folder to write to, which takes the place of ``target`` at the end, or not at all.

    An empty folder that is there stays, as someone may stand in it, or a disk be mounted there: files
    are moved into it. Until the last one is there, the unfinished folder says so to whoever reads.
    """
    if not target.is_dir():
        remove_left_behind(target.parent)
    with _beside(target) as made:
        yield made
        if not target.is_dir():
            made.rename(target)
            return
        moved = []
        try:
            for file in sorted(made.iterdir()):
                moved.append(target / file.name)
                file.rename(moved[-1])
        except BaseException:
            for there in moved:
                there.unlink(missing_ok=True)
            raise


@contextmanager
def _write_sentences(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{os.fspath(path)} cannot be written: {error.strerror or error}."
        ) from None


def _write_file(
    path: str | os.PathLike[str], names: Sequence[str], groups: Iterable[Floats]
) -> None:
    """Write each array as a row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float64()) for name in names])
    with whole_file(path) as file, pq.ParquetWriter(file, schema, **WRITE) as writer:
        for X in groups:
            columns = [pa.array(np.ascontiguousarray(x), mask=np.isnan(x)) for x in X.T]
            writer.write_batch(pa.record_batch(columns, schema=schema), row_group_size=len(X))


def _regroup(chunks: Iterable[Floats], rows: int) -> Iterator[Floats]:
    """Yield the same rows, ``rows`` at a time; the last may be fewer."""
    held: list[Floats] = []
    count = 0
    for chunk in chunks:
        while len(chunk):
            part, chunk = chunk[: rows - count], chunk[rows - count :]
            held.append(part)
            count += len(part)
            if count == rows:
                yield np.concatenate(held)
                held, count = [], 0
    if held:
        yield np.concatenate(held)


def _numbered(chunks: Iterable[Floats], rows: int) -> Iterator[tuple[int, Floats]]:
    """Yield the same rows with the number of the part they go to; parts have ``rows`` rows."""
    row = 0
    for chunk in chunks:
        while len(chunk):
            number, within = divmod(row, rows)
            part, chunk = chunk[: rows - within], chunk[rows - within :]
            yield number, part
            row += len(part)
