"""``initialize``: the paper's Algorithm 2."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import whole_number
from halfseen.data.table import check_finite, read_table
from halfseen.errors import InputError, NotIdentifiedError


def initialize(X: Any, beta: float | None = None, rows: int | None = None) -> NDArray[np.float64]:
    """Average each block of βd columns over the rows in which the whole block is seen.

    The answer is biased, but within O(√(λ_max/β · log 1/α)) of the mean.

    Parameters
    ----------
    X : array-like of shape (n, d)
        NaN where a value is hidden.
    beta : float, optional
        Share of the columns in a block; βd is rounded to a whole number of at least 1, which is also
        the default.
    rows : int, optional
        M_init: how many of the first rows to use; all by default.

    Returns
    -------
    array of shape (d,)

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> hs.solvers.initialize([[1.0, np.nan], [3.0, 5.0]])
    array([2., 5.])
    """
    values, names = read_table(X)
    size = block_size(beta, values.shape[1])
    if rows is not None:
        rows = whole_number("rows", rows)
    check_finite(values, names)
    part = np.asarray(values[:rows], dtype=float)
    out = np.empty(values.shape[1])
    for start in range(0, values.shape[1], size):
        block = part[:, start : start + size]
        complete = block[~np.isnan(block).any(axis=1)]
        if len(complete) == 0:
            which = ", ".join(names[start : start + size])
            alone = "is never seen" if block.shape[1] == 1 else "are never seen together"
            raise NotIdentifiedError(
                f"column {which} {alone} in {len(part)} rows, so there is nowhere to start from. "
                "Leave it out, or choose a smaller beta."
            )
        out[start : start + size] = complete.mean(axis=0)
    return out


def block_size(beta: float | None, d: int) -> int:
    """Return βd as a whole number of columns."""
    if beta is None:
        return 1
    if isinstance(beta, bool) or not isinstance(beta, numbers.Real) or not 0.0 < beta <= 1.0:
        raise InputError(f"beta must lie between 0 and 1; got {beta!r}.")
    return max(1, round(beta * d))
