"""Reading a table from what the user has: an array, a list of rows, or a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError


class Table(NamedTuple):
    """Values of shape (n, d), NaN where hidden, and the names of the columns."""

    values: NDArray[np.floating]
    names: tuple[str, ...]


def read_table(X: Any, given: Sequence[str] | None = None) -> Table:
    """Read ``X`` as a two-dimensional array of floats, with the names of its columns.

    Names that are ``given`` go before those of a data frame. Arrays of float64 and float32 are not
    copied. Infinities are found later, in the one pass that reads every cell.
    """
    if isinstance(X, Table):
        return X
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
    if n < 2:
        raise InputError(
            f"at least 2 rows are needed to learn a variance; got n_samples = {n} (shape "
            f"{array.shape})."
        )
    if given is not None:
        names = tuple(map(str, given))
        if len(names) != d:
            raise InputError(f"names must be {d}, one for each column; got {len(names)}.")
    return Table(array, names or tuple(f"x{i}" for i in range(d)))


def _array_of(X: Any) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    if hasattr(X, "toarray"):
        raise InputError(
            "sparse data were passed, but dense data are required: a hidden value is NaN, not "
            "zero. Use X.toarray() if the zeros are real values."
        )
    names = None
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        names = tuple(str(name) for name in X.columns)
        kinds = [(name, str(kind)) for name, kind in zip(names, X.dtypes, strict=True)]
        wrong = [(n, k) for n, k in kinds if not k.lower().startswith(("float", "int", "uint"))]
        if wrong:
            raise InputError(
                f"column {wrong[0][0]} has dtype {wrong[0][1]}; every column must hold numbers, "
                "with NaN where a value is hidden."
            )
        try:
            array = X.to_numpy(dtype=float, na_value=np.nan)
        except TypeError:
            array = np.asarray(X.to_numpy(), dtype=float)
        return array, names
    array = np.ma.filled(X.astype(float), np.nan) if np.ma.isMaskedArray(X) else np.asarray(X)
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: values must be real numbers.")
    if array.dtype.kind in "OUSVMm":
        array = _numbers_of_objects(array)
    if array.dtype not in (np.float64, np.float32):
        array = array.astype(float)
    return array, names


def _numbers_of_objects(array: NDArray[Any]) -> NDArray[np.float64]:
    """Convert objects that are all numbers or None; name the first cell that is neither."""
    out = np.empty(array.shape)
    for index, value in np.ndenumerate(array):
        if value is None:
            out[index] = np.nan
            continue
        if isinstance(value, bool | int | float | np.number) and not isinstance(
            value, complex | np.complexfloating
        ):
            out[index] = value
            continue
        place = ", ".join(f"{word} {k}" for word, k in zip(("row", "column"), index, strict=False))
        raise InputError(
            f"every cell must be a number, or NaN where it is hidden; {place} holds {value!r} "
            f"(dtype {array.dtype}). argument must be a number, not {type(value).__name__}."
        )
    return out
