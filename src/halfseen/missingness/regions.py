"""Where the hidden part of a row can be, given the row: the paper's ``𝒦``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.errors import InputError
from halfseen.missingness.sets import SeenSet


@dataclass(frozen=True)
class Box:
    """A box of sets: each hidden cell has a set of its own, whatever the other cells are.

    Attributes
    ----------
    hidden : boolean array of shape (n, d)
        The cells that the region speaks of.
    cell : callable
        ``cell(row, column)`` is the set that the hidden value lies in.
    """

    hidden: NDArray[np.bool_]
    cell: Callable[[int, int], SeenSet]

    def contains(self, Y: ArrayLike) -> NDArray[np.bool_]:
        """Whether the hidden cells of each complete row of ``Y`` lie in their sets."""
        Y = np.asarray(Y, dtype=float)
        if Y.shape != self.hidden.shape:
            raise InputError(
                f"complete rows of shape {self.hidden.shape} are needed; got {Y.shape}."
            )
        inside = np.ones(len(Y), dtype=bool)
        for row, column in np.argwhere(self.hidden):
            inside[row] &= bool(self.cell(row, column).contains(Y[row, column]))
        return inside
