"""Whether rows can say something of each coefficient: columns that are constant, or repeat others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, qr, svd

from halfseen.data.coding import INTERCEPT
from halfseen.data.table import printable
from halfseen.data.triangles import lengths_of, triangle_of
from halfseen.errors import InputError, NotIdentifiedError

Floats = NDArray[np.float64]

# A column of unit length that is less far than this from a combination of others is one. Sums of squares
# have the square of it, far below the sixteen digits of a double.
SAME = 1e-10
# From this condition number on, sums of squares keep fewer than four digits.
NEARLY = 1e6
# Sums of squares of what is larger are beyond a double.
LARGEST = 1e152
_SHOWN = 6


class Summary(NamedTuple):
    """What there is to know of the columns of a matrix apart from its rows; two are added up.

    Attributes
    ----------
    rows : int
    triangle : array of shape (r, k)
        With the sums of products that the columns have.
    low, high : arrays of shape (k,)
        Smallest and largest values.
    """

    rows: int
    triangle: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Summary:
        """Look at some rows."""
        low, high = matrix.min(axis=0, initial=np.inf), matrix.max(axis=0, initial=-np.inf)
        return cls(len(matrix), triangle_of(matrix), low, high)

    def __add__(self, other: Summary) -> Summary:  # type: ignore[override]
        return Summary(
            self.rows + other.rows,
            triangle_of(self.triangle, other.triangle),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def take(self, columns: slice) -> Summary:
        """Return that of some of the columns."""
        return Summary(self.rows, self.triangle[:, columns], self.low[columns], self.high[columns])


def check_regressors(
    summary: Summary, terms: Sequence[str], mask: NDArray[np.bool_], outcomes: Sequence[str]
) -> tuple[str, ...]:
    """Check the regressors of each equation; return notes about those that nearly repeat each other."""
    lengths = lengths_of(summary.triangle)
    lengths[lengths == 0.0] = 1.0
    shape = summary.triangle / lengths
    # Equations with the same regressors are checked, and spoken of, once.
    together: dict[bytes, list[str]] = {}
    for row, outcome in zip(mask, outcomes, strict=True):
        together.setdefault(row.tobytes(), []).append(printable(outcome))
    notes = []
    for row, names in together.items():
        of = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        which = np.flatnonzero(np.frombuffer(row, dtype=bool)).tolist()
        own = [printable(terms[place]) for place in which]
        _check_rows(summary.rows, len(own), of)
        _check_constants(summary.low[which], summary.high[which], own, of)
        notes += _check_repeats(shape[:, which], lengths[which], own, of)
    return tuple(notes)


def check_sizes(matrix: Floats, terms: Sequence[str]) -> None:
    """Raise where a regressor is so large that sums of its squares are beyond a double."""
    far = np.argwhere(~(np.abs(matrix) < LARGEST))
    if far.size:
        row, place = far[0].tolist()
        raise InputError(
            f"the regressor is {matrix[row, place]:g}; regressors must be below {LARGEST:g}. Take "
            "another unit.",
            row,
            printable(terms[place]),
        )


def _check_rows(rows: int, terms: int, of: str) -> None:
    if rows < terms:
        raise NotIdentifiedError(
            f"{of} has {terms} regressors but only {rows} row{'s' * (rows != 1)}; at least as many rows "
            "are needed, and far more are better. Take terms out of the formula."
        )


def _check_constants(low: Floats, high: Floats, terms: Sequence[str], of: str) -> None:
    for place in np.flatnonzero(low == high).tolist():
        term, value = terms[place], float(low[place])
        if term == INTERCEPT:
            continue
        if value == 0.0:
            raise NotIdentifiedError(
                f"{term}, a regressor of {of}, is 0 in every row, so nothing is said of its "
                "coefficient. Leave it out."
            )
        if INTERCEPT in terms:
            raise NotIdentifiedError(
                f"{term}, a regressor of {of}, is {value:.12g} in every row, which the intercept "
                "already stands for. Leave one of them out."
            )


def _check_repeats(shape: Floats, lengths: Floats, terms: Sequence[str], of: str) -> list[str]:
    """Raise where a column is a combination of those before it; note where one nearly is."""
    pivots = np.abs(np.diag(qr(shape, mode="r", pivoting=True, check_finite=False)[0]))
    if (pivots > SAME).sum() < len(terms):
        place, earlier = _first_repeated(shape)
        weights = lstsq(shape[:, earlier], shape[:, place])[0]
        sentence = _combination(weights, lengths, [terms[one] for one in earlier], place, earlier)
        raise NotIdentifiedError(
            f"{terms[place]} = {sentence} in every row, to ten digits, so the regressors of {of} repeat "
            "each other and their coefficients cannot be told apart. Leave one of these terms out."
        )
    values, directions = svd(shape, full_matrices=False, check_finite=False)[1:]
    if len(terms) < 2 or values[-1] * NEARLY > values[0]:
        return []
    heavy = np.flatnonzero(np.abs(directions[-1]) > 0.1).tolist()[:_SHOWN]
    return [
        f"The regressors of {of} nearly repeat each other (condition number "
        f"{values[0] / values[-1]:.1e}): {', '.join(terms[one] for one in heavy)}. Their coefficients "
        "will be uncertain; center them, or leave one out."
    ]


def _first_repeated(shape: Floats) -> tuple[int, list[int]]:
    """Find the first column that is a combination of those before it, and which of those are not."""
    basis: list[Floats] = []
    earlier: list[int] = []
    least, nearest = np.inf, (0, [0])
    for place in range(shape.shape[1]):
        rest = shape[:, place].copy()
        if basis:
            Q = np.stack(basis, axis=1)
            # Twice, so that what rounding left in is taken out too.
            for _ in range(2):
                rest -= Q @ (Q.T @ rest)
        distance = float(np.linalg.norm(rest))
        if distance <= SAME:
            return place, earlier
        if basis and distance < least:
            least, nearest = distance, (place, list(earlier))
        basis.append(rest / distance)
        earlier.append(place)
    # Just above the threshold, by this way of counting.
    return nearest


def _combination(
    weights: Floats, lengths: Floats, names: Sequence[str], place: int, earlier: Sequence[int]
) -> str:
    """Write a combination of columns with its coefficients, in the units of the columns."""
    large = np.flatnonzero(np.abs(weights) > 1e-8 * np.abs(weights).max()).tolist()
    written = []
    for one in large[:_SHOWN]:
        value = float(weights[one] * lengths[place] / lengths[earlier[one]])
        size = "" if abs(abs(value) - 1.0) < 1e-8 else f"{abs(value):.6g} "
        written += ["-" if value < 0.0 else "+", f"{size}{names[one]}"]
    first = "-" * (written[0] == "-") + written[1]
    return " ".join([first, *written[2:]]) + (" + …" if len(large) > _SHOWN else "")
