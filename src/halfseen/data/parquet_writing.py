"""Writing Parquet block by block: memory does not grow with the rows, and files appear whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.row_blocks import piece_rows
from halfseen.errors import InputError
from halfseen.files import file_mask, whole_file

Floats = NDArray[np.float64]

# Row groups in a part, unless a number of rows is told: 256 MiB before compression, so that a few
# gigabytes keep several workers busy and footers stay small.
PART_GROUPS = 32
# Names of the parts sort as their numbers do, up to this many digits.
DIGITS = 5


def write_parquet(
    path: str | os.PathLike[str], names: Sequence[str], blocks: Iterable[Floats]
) -> None:
    """Write rows to a Parquet file, whole or not at all; NaN becomes null.

    Parameters
    ----------
    path : path of the file
    names : sequence of str
    blocks : iterable of arrays of shape (rows, d)
        Taken one at a time. Row groups have ``piece_rows(d)`` rows whatever the blocks have.
    """
    check_parquet()
    with _write_sentences(path):
        _write_file(path, names, _regroup(blocks, piece_rows(len(names))))


def write_parquet_parts(
    folder: str | os.PathLike[str],
    names: Sequence[str],
    blocks: Iterable[Floats],
    part_rows: int | None = None,
) -> int:
    """Write rows to files ``part-00000.parquet`` and on; the folder appears whole or not at all.

    Parameters
    ----------
    folder : path
        Must be absent or empty.
    names : sequence of str
    blocks : iterable of arrays of shape (rows, d)
    part_rows : int, optional
        Rows in each part.

    Returns
    -------
    int
        The number of parts.
    """
    check_parquet()
    target = Path(folder).resolve()
    check_empty(target)
    group = piece_rows(len(names))
    most = PART_GROUPS * group if part_rows is None else part_rows
    with _write_sentences(folder), _whole_folder(target) as made:
        count = 0
        for number, part in groupby(_numbered(blocks, most), key=itemgetter(0)):
            name = f"part-{number:0{DIGITS}}.parquet"
            _write_file(made / name, names, _regroup((rows for _, rows in part), group))
            count = number + 1
    return count


def check_parquet() -> None:
    """Raise an ``InputError`` if pyarrow is not there."""
    try:
        import pyarrow.parquet  # noqa: F401 - only asks whether it is there
    except ImportError:
        raise InputError(
            'Writing Parquet files needs pyarrow: pip install "halfseen[parquet]".'
        ) from None


def check_empty(folder: Path) -> None:
    """Raise an ``InputError`` unless a folder is absent or empty, and can be made."""
    if folder.is_dir():
        first = next(iter(sorted(os.listdir(folder))), None)
        if first is not None:
            raise InputError(
                f"the folder {folder} is not empty (it has {first}); parts of two tables in one folder "
                "would be read as one. Name another folder, or empty this one."
            )
    elif folder.exists():
        raise InputError(f"{folder} is a file; a folder of parts cannot take its place.")
    elif not folder.parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}.")


@contextmanager
def _whole_folder(target: Path) -> Iterator[Path]:
    """Give a folder to write to, which takes the place of ``target`` at the end, or not at all.

    An empty folder that is there stays, as someone may stand in it, or a disk be mounted there: files
    are moved into it.
    """
    there = target.is_dir()
    # A name that begins with a dot is skipped by whoever reads folders of Parquet files.
    made = Path(tempfile.mkdtemp(dir=target if there else target.parent, prefix=f".{target.name}."))
    try:
        # mkdtemp makes folders that only their owner may enter.
        made.chmod(0o777 & ~file_mask())
        yield made
        if there:
            for file in sorted(made.iterdir()):
                file.rename(target / file.name)
            made.rmdir()
        else:
            made.rename(target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
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
    # Measurements hardly ever repeat: a dictionary of them would cost a third of the reading time.
    with whole_file(path) as file, pq.ParquetWriter(file, schema, use_dictionary=False) as writer:
        for X in groups:
            columns = [_nullable(np.ascontiguousarray(column)) for column in X.T]
            writer.write_batch(pa.record_batch(columns, schema=schema), row_group_size=len(X))


def _nullable(column: Floats) -> Any:
    import pyarrow as pa

    return pa.array(column, mask=np.isnan(column))


def _regroup(blocks: Iterable[Floats], rows: int) -> Iterator[Floats]:
    """Yield the same rows, ``rows`` at a time; the last may be fewer."""
    held: list[Floats] = []
    count = 0
    for block in blocks:
        while len(block):
            part, block = block[: rows - count], block[rows - count :]
            held.append(part)
            count += len(part)
            if count == rows:
                yield np.concatenate(held)
                held, count = [], 0
    if held:
        yield np.concatenate(held)


def _numbered(blocks: Iterable[Floats], rows: int) -> Iterator[tuple[int, Floats]]:
    """Yield the same rows with the number of the part they go to; parts have ``rows`` rows."""
    row = 0
    for block in blocks:
        while len(block):
            number, within = divmod(row, rows)
            part, block = block[: rows - within], block[rows - within :]
            yield number, part
            row += len(part)
