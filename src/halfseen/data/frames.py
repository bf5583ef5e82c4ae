"""Giving back what came in: labelled vectors and matrices, and tables of the same library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError

LIBRARIES = ("pandas", "polars", "pyarrow")


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
