"""A table from what the user has (an array, a list of rows, a data frame), and results like it.

One that is larger than memory, or on other machines, is a table in chunks, read one at a time.
"""

from __future__ import annotations

import enum
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import as_array, is_iterable
from halfseen.data.names import base_of, flag_kind
from halfseen.errors import InputError

LIBRARIES = ("pandas", "polars", "pyarrow")
# Sums of a hundred million values of this size still fit into a double.
LARGEST_VALUE = 1e300
# The same of their squares, for those who do not scale the values first.
LARGEST_SQUARED = 1e150
Floats = NDArray[np.float64]
# Cells that stay in the cache of a core while they are worked on. Part of the meaning of a seed.
CACHE_CELLS = 2**15
# So many of these in a chunk of a table that does not come in chunks: 8 MiB, little enough to hold
# several and enough to keep a core busy for a tenth of a second. Sums are taken chunk by chunk, so it is
# part of the last bits of an answer.
CACHES_PER_CHUNK = 32


class TableKind(enum.Enum):
    """What a table is made of: solvers say which kinds they take. The value is what people call it."""

    VALUES = "a table of values"
    INTERVALS = "IntervalData, whose cells say themselves where they lie"
    MOMENTS = "moments"
    PIECES = "a table in pieces"


class Table(NamedTuple):
    """Values of shape (n, d), NaN where hidden, and the names of the columns."""

    values: NDArray[np.floating]
    names: tuple[str, ...]

    @property
    def kind(self) -> TableKind:
        """Values in memory."""
        return TableKind.VALUES


class OtherTable:
    """A table that is not one of values in memory; each kind says what to do where that is needed."""

    _needed: ClassVar[str]
    kind: ClassVar[TableKind]


def read_table(X: Any, given: Sequence[str] | None = None, fewest_rows: int = 2) -> Table:
    """Read ``X`` as a two-dimensional array of floats, with the names of its columns.

    Names that are ``given`` go before those of a data frame. Arrays of float64 and float32 are not
    copied. Infinities are found later, in the one pass that reads every cell.
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, OtherTable):
        raise InputError(X._needed)
    if isinstance(X, str | os.PathLike):
        reader = "read_parquet" if str(X).lower().endswith((".parquet", ".pq")) else "read_csv"
        raise InputError(
            f"the data must be a table; got the name of a file. Try {reader}({str(X)!r})."
        )
    array, names = _array_of(X)
    if array.ndim != 2:
        hint = "; reshape a single column with X.reshape(-1, 1)" if array.ndim == 1 else ""
        raise InputError(
            f"the data must be a table of rows and columns; got {array.ndim} dimension"
            f"{'' if array.ndim == 1 else 's'}, shape {array.shape}{hint}."
        )
    n, d = array.shape
    if d == 0:
        raise InputError(f"the data have no columns (shape {array.shape}).")
    if n < fewest_rows:
        raise InputError(
            f"at least {fewest_rows} rows are needed; got n_samples = {n} (shape {array.shape})."
        )
    if given is not None:
        names = read_names(given, d)
    return Table(array, names or tuple(f"x{i}" for i in range(d)))


def listed_names(given: Any) -> tuple[str, ...]:
    """Read a sequence of names, of whatever kind, once."""
    if isinstance(given, str) or not is_iterable(given):
        raise InputError(f"names must be a sequence of names; got {given!r}.")
    return tuple(map(str, given))


def read_names(given: Any, width: int) -> tuple[str, ...]:
    """Read names for a table of ``width`` columns."""
    names = listed_names(given)
    if len(names) != width:
        raise InputError(f"names must be {width}, one for each column; got {len(names)}.")
    return names


def with_names(X: Any, names: Sequence[str]) -> Any:
    """Read ``X`` under these names, whatever names it brings."""
    renamed = getattr(X, "_with_names", None)
    return read_table(X, names) if renamed is None else renamed(names)


def check_names(names: Sequence[str]) -> None:
    """Raise an ``InputError`` for a name that stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"columns need names of their own; {name!r} stands twice.")
        seen.add(name)


def printable(text: str) -> str:
    """Replace characters that would steer a terminal: names come from files."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def check_finite(
    values: NDArray[np.floating], names: Sequence[str], largest: float = LARGEST_VALUE
) -> None:
    """Raise an ``InputError`` naming the first value that is infinite, or larger than ``largest``."""
    # In the type of the values, which a float32 would otherwise leave.
    limit = values.dtype.type(min(largest, float(np.finfo(values.dtype).max)))
    wrong = np.argwhere((values > limit) | (values < -limit))
    if wrong.size:
        row, column = wrong[0]
        value = values[row, column]
        what = (
            "values must be finite, and NaN where they are hidden. Input X contains infinity."
            if np.isinf(value)
            else f"values must lie within ±{largest:g}. Change the unit of the column."
        )
        raise InputError(f"the value is {value}; {what}", row, names[column])


def frame_kind(X: Any) -> str | None:
    """Return which library of data frames a table belongs to; None for arrays and lists."""
    # By the module of its class: no library is imported to find out.
    root = type(X).__module__.split(".")[0]
    return root if root in LIBRARIES and hasattr(X, "columns") else None


def labelled(array: NDArray[np.float64], names: Sequence[str], kind: str | None) -> Any:
    """Return a vector or a square matrix with the names of its columns, where the library has labels."""
    if kind != "pandas":
        return array
    import pandas as pd

    index = pd.Index(list(names))
    if array.ndim == 1:
        return pd.Series(array, index=index)
    return pd.DataFrame(array, index=index, columns=index)


def frame_of(
    array: NDArray[np.float64], names: Sequence[str], kind: str | None, index: Any = None
) -> Any:
    """Return a table in the library that it came from; the array itself where it came from none."""
    if kind is None:
        return array
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(array, index=index, columns=list(names))
    columns = {name: np.ascontiguousarray(array[:, j]) for j, name in enumerate(names)}
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    if kind == "pyarrow":
        import pyarrow as pa

        return pa.table(columns)
    raise InputError(f"a frame is one of {', '.join(LIBRARIES)}; got {kind!r}.")


def _array_of(X: Any) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    if hasattr(X, "toarray"):
        raise InputError(
            "sparse data were passed, but dense data are required: a hidden value is NaN, not "
            "zero. Use X.toarray() if the zeros are real values."
        )
    named = _named_columns(X)
    if named is not None:
        columns = [_numbers_of_column(column, name) for name, column in named]
        names = tuple(str(name) for name, _ in named)
        _refuse_flags(names, columns)
        return np.stack(columns, axis=1) if columns else np.empty((len(X), 0)), names
    try:
        array = (
            np.ma.filled(X.astype(float), np.nan)
            if np.ma.isMaskedArray(X)
            else as_array("the data", X)
        )
    except InputError:
        raise
    except ValueError:
        raise InputError("the rows must all have the same number of values.") from None
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: values must be real numbers.")
    if array.dtype.kind in "OUSVMm":
        array = _numbers_of_objects(array)
    if array.dtype not in (np.float64, np.float32):
        # What a double cannot hold becomes infinite, and is told as such.
        with np.errstate(over="ignore"):
            array = array.astype(float)
    return array, None


def _named_columns(X: Any) -> list[tuple[Any, Any]] | None:
    """Return names and columns of a data frame; None for anything else."""
    if frame_kind(X) == "pyarrow":
        return list(zip(X.column_names, X.columns, strict=True))
    if not hasattr(X, "columns") or not hasattr(X, "to_numpy"):
        return None
    if hasattr(X, "iloc"):
        # By position: pandas lets a name stand twice.
        return [(name, X.iloc[:, i]) for i, name in enumerate(X.columns)]
    return [(name, X[name]) for name in X.columns]


def _refuse_flags(names: Sequence[str], columns: Sequence[NDArray[np.float64]]) -> None:
    """Refuse a column of 0 and 1 that is named as the flags of another: it is no measurement."""
    for name, values in zip(names, columns, strict=True):
        base = base_of(name)
        if base not in names or not flag_kind(name):
            continue
        known = values[~np.isnan(values)]
        if known.size and np.isin(known, (0.0, 1.0)).all():
            raise InputError(
                f"column {name!r} holds 0 and 1, and is named like flags that say which values of "
                f"{base!r} were not detected. Read the data frame with from_frame, which reads both "
                f"together; or drop the column. As a measurement it is taken from an array: "
                f"frame.to_numpy(), with names=."
            )


def _numbers_of_column(column: Any, name: Any) -> NDArray[np.float64]:
    """Read one column of a data frame; missing values of every kind become NaN."""
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind in "fiub":
        try:
            return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
        except TypeError:
            return np.asarray(column.to_numpy(), dtype=float)
    out = np.empty(len(column))
    for row, value in enumerate(column.to_pylist() if hasattr(column, "to_pylist") else column):
        # The NA of pandas is neither equal to itself nor not.
        if value is None or type(value).__name__ == "NAType" or value != value:
            out[row] = np.nan
        elif isinstance(value, int | float | np.floating | np.integer):
            out[row] = float_of(value)
        elif isinstance(value, str):
            raise _about_text(column, row, str(name))
        else:
            raise InputError(
                f"the cell holds {value!r}; every cell must be a number, with NaN where it is hidden. "
                "State limits in the rule, not in the cells.",
                row,
                str(name),
            )
    return out


def float_of(value: Any) -> float:
    """Return a number as a double: infinite where it is more than one can hold."""
    try:
        with np.errstate(over="ignore"):
            return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _about_text(column: Any, row: int, name: str) -> InputError:
    """Say which cell of a column of texts is no number, or that all of them are texts."""
    for k, value in enumerate(column):
        try:
            float(str(value))
        except ValueError:
            return InputError(
                f"the cell holds {value!r}; every cell must be a number, with NaN where it is hidden. "
                "from_frame reads cells such as '<0.05'.",
                k,
                name,
            )
    return InputError(
        "the cell holds a text, not a number. from_frame reads numbers that are written as text.",
        row,
        name,
    )


def _numbers_of_objects(array: NDArray[Any]) -> NDArray[np.float64]:
    """Convert objects that are all numbers or None; name the first cell that is neither."""
    out = np.empty(array.shape)
    for index, value in np.ndenumerate(array):
        if value is None:
            out[index] = np.nan
            continue
        if isinstance(value, bool | int | float | np.number) and not isinstance(
            value, complex | np.complexfloating | np.timedelta64
        ):
            out[index] = float_of(value)
            continue
        raise InputError(
            f"the cell holds {value!r} (dtype {array.dtype}); every cell must be a number, or NaN where "
            f"it is hidden. argument must be a number, not {type(value).__name__}.",
            *(index[:1] if len(index) < 2 else (index[0], str(index[1]))),
        )
    return out


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
