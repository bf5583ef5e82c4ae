"""Parquet files, however many and large, as a table in chunks."""

from __future__ import annotations

import glob
import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfseen.checks import is_iterable
from halfseen.data.names import base_of, expand, find_column
from halfseen.data.parquet_files import (
    OPEN,
    FileStamp,
    ParquetChunk,
    cannot_be_read,
    look_at,
    pyarrow_parquet,
    pyarrow_sentences,
    saved_index,
    shown,
)
from halfseen.data.table import RowBlocks, check_names, chunk_rows
from halfseen.errors import InputError, argument
from halfseen.files import is_left_behind
from halfseen.missingness.base import listed

SUFFIXES = (".parquet", ".pq")
# Spark, Hive and pyarrow keep what is no data in files and folders whose names begin with these.
NO_DATA = (".", "_")
# Chunks of a file: 8 TiB of values. A damaged footer that tells of more would fill the memory with them.
MOST_CHUNKS = 2**20

Source = str | os.PathLike[str]


@dataclass(frozen=True)
class _File:
    """What the footer of a file tells."""

    stamp: FileStamp
    # Types of Arrow by name, in the order of the columns.
    types: dict[str, Any]
    # Columns in which pandas saved an index.
    index: frozenset[str]
    group_sizes: tuple[int, ...]


def scan_parquet(
    path: Source | Sequence[Source], columns: Sequence[str] | str | None = None
) -> RowBlocks:
    """Plan to read Parquet files chunk by chunk.

    Footers are read here, rows later, each chunk by whoever works on it. How rows are cut into chunks
    depends on the files and on the number of columns alone: small row groups of a file are joined up
    to ``chunk_rows(d)`` rows, those of more than twice as many are cut.

    Parameters
    ----------
    path : path or sequence of paths
        A file; a folder, of which every ``*.parquet`` and ``*.pq`` below it is read, in the order of
        their names; a pattern such as ``"data/*.parquet"``. Files and folders in them whose names begin
        with ``.`` or ``_`` hold no data, by an old habit, and are left out. Names of folders
        (``year=2024``) are not read as columns.
    columns : names, optional
        The columns to read, in this order. Otherwise all that the files have, except those in
        which pandas saved an index; all must hold numbers then.

    Returns
    -------
    RowBlocks
        Its chunks are small, and can be sent to machines that see the same files under the same paths.
        Numbers of all kinds become float64, or float32 if all columns are float32; null becomes NaN.

    Raises
    ------
    InputError
        If there are no files, rows or columns, a file cannot be read, a column is missing, twice there
        or not of numbers, or files do not have the same columns.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from halfseen.data.parquet_blocks import scan_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"lead": [0.3, None]}), f"{folder}/2023.parquet")
    ...     pq.write_table(pa.table({"lead": [0.7]}), f"{folder}/2024.parquet")
    ...     blocks = scan_parquet(folder)
    ...     blocks.shape, [chunk.read().tolist() for chunk in blocks.pieces]
    ((3, 1), [[[0.3], [nan]], [[0.7]]])
    """
    pyarrow_parquet()
    files = [_look(name) for name in files_to_read(path)]
    names = _choose(files[0], columns)
    for file in files:
        _check_file(file, files[0], names, columns is None)
        _check_numbers(file, names, columns is None)
    return _plan(files, names)


def scan_mixed(
    path: Source | Sequence[Source], choose: Callable[[Sequence[str]], Sequence[str]]
) -> RowBlocks:
    """Plan to read columns of any kind chunk by chunk, of which ``columns_of_piece`` makes columns.

    ``choose`` is told which columns there are, and returns those to be read.
    """
    pyarrow_parquet()
    files = [_look(name) for name in files_to_read(path)]
    names = tuple(choose(_choose(files[0], None)))
    for file in files:
        _check_file(file, files[0], names, everything=False)
        _check_kinds(file, files[0], names)
    return _plan(files, names)


def _plan(files: Sequence[_File], names: tuple[str, ...]) -> RowBlocks:
    """Cut files into chunks of some columns."""
    single = all(str(file.types[name]) == "float" for file in files for name in names)
    chunks = [
        chunk for file in files for chunk in _cut(file, names, single, chunk_rows(len(names)))
    ]
    if not chunks:
        many = "has" if len(files) == 1 else f"and {len(files) - 1} more have"
        raise InputError(f"{shown(files[0].stamp.path)} {many} no rows to read.")
    return RowBlocks(names, tuple(chunks), tuple(chunk.stop - chunk.start for chunk in chunks))


def is_parquet(path: Any) -> bool:
    """Whether a path, a pattern or all of a list look like Parquet files, or folders of them."""
    if isinstance(path, list | tuple):
        return bool(path) and all(is_parquet(one) for one in path)
    if not isinstance(path, str | os.PathLike):
        return False
    name = str(os.fspath(path))
    if name.lower().rstrip("/").endswith(SUFFIXES) or os.path.isdir(name):
        return True
    # A pattern may leave the ending open.
    return glob.has_magic(name) and any(
        found.lower().endswith(SUFFIXES) for found in glob.iglob(name, recursive=True)
    )


def bytes_in_memory(path: Source) -> int:
    """Bytes that the numbers of a Parquet file take when they are read."""
    file = _look(os.fspath(path))
    return 8 * sum(file.group_sizes) * len(file.types)


def describe_row(blocks: RowBlocks, row: int) -> str:
    """Say where a row of the whole table is, such as "row 17 of part-3.parquet"; counted from 0."""
    number = bisect_right(blocks.first_rows, row) - 1
    chunk = blocks.pieces[number]
    if not isinstance(chunk, ParquetChunk):
        return f"row {row}"
    return f"row {chunk.first_row + row - blocks.first_rows[number]} of {shown(chunk.file.path)}"


def files_to_read(path: Any) -> list[str]:
    """Return absolute paths of the files that are meant by a path, a pattern or a list, in order."""
    sources = list(path) if isinstance(path, list | tuple) else [path]
    found: dict[str, None] = {}
    there: set[str] = set()
    for source in sources:
        if not isinstance(source, str | os.PathLike):
            raise InputError(
                "path must be the path of a Parquet file, a folder, a pattern, or a list of "
                f"these; got {source!r}."
            )
        for name in _files_of(os.fspath(source)):
            whole = os.path.abspath(name)
            real = os.path.realpath(name)
            if real in there:
                raise InputError(f"{shown(whole)} stands twice among the files to read.")
            there.add(real)
            found[whole] = None
    if not found:
        raise InputError("the list of Parquet files to read is empty.")
    return list(found)


def _files_of(source: str) -> list[str]:
    if os.path.isdir(source):
        below = list(_files_below(source))
        if not below:
            raise InputError(f"the folder {source} has no files that end in .parquet or .pq.")
        return below
    if os.path.exists(source) or not glob.has_magic(source):
        return [source]
    parts = Path(source).parts
    plain = next(k for k, part in enumerate(parts) if glob.has_magic(part))
    # A pattern that begins with the sign asks for such names, as with hidden files in a shell.
    asked = any(part.startswith(NO_DATA) for part in parts[plain:])
    files = [
        file
        for name in sorted(Path(found).parts for found in glob.glob(source, recursive=True))
        if asked or not any(part.startswith(NO_DATA) for part in name[plain:])
        for file in _files_below(os.path.join(*name))
    ]
    if not files:
        raise InputError(f"no Parquet files match {source}.")
    # A pattern with ** finds a folder, and then what is in it.
    return list(dict.fromkeys(files))


def _files_below(path: str, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the files in a folder and below; a file is yielded itself, whatever its name.

    ``above`` are the folders on the way down: a link to one of them leads in a circle.
    """
    if not os.path.isdir(path):
        yield path
        return
    real = os.path.realpath(path)
    if real in above:
        return
    above |= {real}
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise cannot_be_read(path, error) from None
    for unfinished in filter(is_left_behind, names):
        inside = os.path.join(path, unfinished)
        if not os.path.isdir(inside) or not os.listdir(inside):
            continue  # all parts were moved out of it
        raise InputError(
            f"the folder {shown(path)} holds {unfinished}, parts of a table whose writing has not "
            "ended, or was broken off. Wait for it, or write the table anew."
        )
    for name in names:
        inside = os.path.join(path, name)
        if name.startswith(NO_DATA):
            continue
        if os.path.isdir(inside) or name.lower().endswith(SUFFIXES):
            yield from _files_below(inside, above)


def _look(path: str) -> _File:
    """Read the footer of a file."""
    pq = pyarrow_parquet()
    before = look_at(path)
    if not stat.S_ISREG(before.st_mode):
        raise InputError(
            f"{shown(path)} is no file that can be read: a device, a pipe or a folder."
        )
    with pyarrow_sentences(path), pq.ParquetFile(path, **OPEN) as opened:
        footer, schema = opened.metadata, opened.schema_arrow
        sizes = tuple(footer.row_group(k).num_rows for k in range(footer.num_row_groups))
        saved = saved_index(schema)
    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise InputError(f"{shown(path)}: two columns are named {twice!r}; rename them first.")
    if sum(sizes) != footer.num_rows or min(sizes, default=0) < 0:
        raise InputError(f"{shown(path)} is damaged: its footer contradicts itself about its rows.")
    return _File(
        FileStamp(path, before.st_size, before.st_mtime_ns, footer.num_rows),
        dict(zip(schema.names, schema.types, strict=True)),
        frozenset(saved),
        sizes,
    )


def _choose(file: _File, columns: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the names of the columns to read."""
    if columns is None:
        names = tuple(name for name in file.types if name not in file.index)
        if not names:
            raise InputError(f"{shown(file.stamp.path)} has no columns to read.")
        _refuse_second_columns(file, names)
        return names
    if not isinstance(columns, str) and not is_iterable(columns):
        raise InputError(f"{argument('columns')} must be names of columns; got {columns!r}.")
    asked = [columns] if isinstance(columns, str) else [str(name) for name in columns]
    if not asked:
        raise InputError(f"{argument('columns')} names no columns.")
    asked = expand(asked, list(file.types), argument("columns"))
    check_names(asked)
    for name in asked:
        find_column(list(file.types), name, argument("columns"))
    return tuple(asked)


def _refuse_second_columns(file: _File, names: tuple[str, ...]) -> None:
    """Ask where a column is named like flags or limits of another: here it would be a measurement."""
    for name in names:
        if (base := base_of(name)) and base in names:
            raise InputError(
                f"{shown(file.stamp.path)}: column {name!r} is named like flags or limits of {base!r}, "
                "and a table that is read in pieces holds values alone. Set what was not detected to "
                "null there, state the rule, and name the columns of values with "
                f"{argument('columns')}."
            )


def _check_file(file: _File, first: _File, names: tuple[str, ...], everything: bool) -> None:
    """Refuse a file without the columns of the first, or with more."""
    here, there = shown(file.stamp.path), shown(first.stamp.path)
    for name in names:
        if name not in file.types:
            raise InputError(f"{here} has no column {name!r}, which {there} has.")
    more = [n for n in file.types if n not in file.index and n not in names] if everything else []
    if more:
        raise InputError(
            f"{here} has a column {more[0]!r}, which {there} has not. Name those to read with "
            f"{argument('columns')}."
        )


def _check_kinds(file: _File, first: _File, names: tuple[str, ...]) -> None:
    """Refuse a file in which a column holds something else than in the first."""
    from pyarrow import types

    for name in names:
        here, there = file.types[name], first.types[name]
        if types.is_null(here) or types.is_null(there):
            continue
        if _is_number(here) != _is_number(there) or types.is_boolean(here) != types.is_boolean(
            there
        ):
            raise InputError(
                f"{shown(file.stamp.path)}: column {name!r} has type {here}, but {there} in "
                f"{shown(first.stamp.path)}. Make them the same."
            )


def _check_numbers(file: _File, names: tuple[str, ...], everything: bool) -> None:
    """Refuse a file with columns that hold no numbers."""
    here = shown(file.stamp.path)
    for place, name in enumerate(names, 1):
        if everything and not name.strip():
            raise InputError(
                f"{here}: column {place} has no name. Name it, or choose others with "
                f"{argument('columns')}."
            )
        if str(file.types[name]) == "bool":
            raise InputError(
                f"{here}: column {name!r} holds true and false, and is no measurement. Name the columns "
                f"to read with {argument('columns')}; or make it a column of 0 and 1, if it is one."
            )
        if not _is_number(file.types[name]):
            advice = (
                _advice(file, names)
                if everything
                else "Texts such as '<0.05' are read from tables that fit into memory, by read_parquet."
            )
            raise InputError(
                f"{here}: column {name!r} has type {file.types[name]}, which holds no numbers. "
                f"{advice}"
            )


def _advice(file: _File, names: Iterable[str]) -> str:
    numbers = [name for name in names if _is_number(file.types[name])]
    return (
        f"Name those to read with {argument('columns')}; numbers are in "
        f"{listed(numbers) or 'none'}."
    )


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    # A column in which every cell is null has no other type than that.
    return bool(
        types.is_floating(kind)
        or types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _cut(file: _File, names: tuple[str, ...], single: bool, step: int) -> Iterator[ParquetChunk]:
    """Yield the chunks of a file."""
    if file.stamp.rows > MOST_CHUNKS * step:
        raise InputError(
            f"{shown(file.stamp.path)} tells of {file.stamp.rows} rows, too many to plan for; it "
            "may be damaged. A table that is so large can be read from several files."
        )
    first_row = 0
    for first, last, start, stop, cut in plan_chunks(file.group_sizes, step):
        yield ParquetChunk(
            file.stamp, first, last, start, stop, first_row, step if cut else 0, names, single
        )
        first_row += stop - start


def plan_chunks(sizes: Sequence[int], step: int) -> Iterator[tuple[int, int, int, int, bool]]:
    """Join and cut row groups into chunks of about ``step`` rows.

    Parameters
    ----------
    sizes : sequence of int
        Rows in each group.
    step : int

    Yields
    ------
    first, last, start, stop, cut
        Groups first to last, and rows within them; whether they are a part of a larger group.

    Examples
    --------
    >>> list(plan_chunks([3, 4, 25], 10))
    [(0, 1, 0, 7, False), (2, 2, 0, 10, True), (2, 2, 10, 20, True), (2, 2, 20, 25, True)]
    """
    first, rows = 0, 0
    for group, size in enumerate(sizes):
        if rows and rows + size > step:
            yield first, group - 1, 0, rows, False
            rows = 0
        if rows == 0:
            first = group
        if size > 2 * step:
            for start in range(0, size, step):
                yield group, group, start, min(start + step, size), True
        else:
            rows += size
    if rows:
        yield first, len(sizes) - 1, 0, rows, False
