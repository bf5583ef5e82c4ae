"""Linear thresholds: coordinate i is shown iff ``v_i · y <= b_i`` (section 1.1.2 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from halfseen.checks import finite_vector, is_iterable, real_array, whole_number
from halfseen.errors import ContradictionError, InputError
from halfseen.missingness.base import (
    Floats,
    Generator,
    Mask,
    Missingness,
    RuleKind,
    Scale,
    Values,
    is_whole,
)
from halfseen.missingness.holes import (
    SEEN,
    Holes,
    Inequalities,
    Polyhedra,
    Scan,
    products,
    whole_line,
)
from halfseen.missingness.resolve import SetTable
from halfseen.missingness.rule_parts import quoted

# Rounding that a seen row may be off by, relative to the terms of its inequality.
ROUNDING = 1e-9
# Terms of a sum that a message shows.
FEW_TERMS = 4


class LinearThreshold(Missingness):
    """Coordinate i of a row y is shown iff ``V[i] @ y <= b[i]``.

    A row of zeros in V means always seen (``b[i] >= 0``) or never seen (``b[i] < 0``).

    Parameters
    ----------
    V : array-like of shape (d, d)
    b : array-like of shape (d,) or a number

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.LinearThreshold([[0, 0], [1, 0]], [0, 0.5])   # x1 is shown iff x0 <= 0.5
    >>> rule.seen([[0.0, 9.0], [1.0, 9.0]])
    array([[ True,  True],
           [ True, False]])
    """

    def __init__(self, V: ArrayLike, b: ArrayLike) -> None:
        self.V, self.b = (
            np.array(real_array("V and b", given, "arrays of numbers")) for given in (V, b)
        )
        if self.V.ndim != 2 or self.V.shape[0] != self.V.shape[1] or self.V.size == 0:
            raise InputError(
                f"V must have one row and one column for each coordinate; got shape {self.V.shape}."
            )
        d = len(self.V)
        if self.b.ndim == 0:
            self.b = np.full(d, float(self.b))
        if self.b.shape != (d,):
            raise InputError(f"b must have {d} entries, one for each row of V; got {self.b.shape}.")
        if not np.isfinite(self.V).all() or not np.isfinite(self.b).all():
            raise InputError("V and b must be finite; use a row of zeros for always or never seen.")

    @property
    def kind(self) -> RuleKind:
        """Linear combinations of a row."""
        return RuleKind.THRESHOLDS

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.V)

    @property
    def always_seen(self) -> Mask:
        """Coordinates that are seen whatever the row is."""
        return ~self.V.any(axis=1) & (self.b >= 0)

    @property
    def never_seen(self) -> Mask:
        """Coordinates that are hidden whatever the row is."""
        return ~self.V.any(axis=1) & (self.b < 0)

    @classmethod
    def larger_of(cls, i: int, j: int, d: int) -> LinearThreshold:
        """Only the larger of coordinates i and j is shown; the others always are.

        Parameters
        ----------
        i, j : int
            The two that are compared.
        d : int
            Number of coordinates.

        Returns
        -------
        LinearThreshold

        Examples
        --------
        >>> import halfseen as hs
        >>> hs.LinearThreshold.larger_of(0, 1, 2).seen([[3.0, 1.0]])
        array([[ True, False]])
        """
        d = whole_number("d", d, 2)
        i, j = _coordinate(i, d), _coordinate(j, d)
        if i == j:
            raise InputError(f"larger_of compares two coordinates; got {i} twice.")
        V = np.zeros((d, d))
        V[i, j], V[i, i] = 1.0, -1.0
        V[j, i], V[j, j] = 1.0, -1.0
        return cls(V, np.zeros(d))

    @classmethod
    def heckman(cls, outcome: int, weights: ArrayLike, intercept: float = 0.0) -> LinearThreshold:
        """Show an outcome only when an index ``weights @ y + intercept`` is at least zero.

        The index may involve the outcome itself, other columns, or a column that is never seen
        (pass its thresholds with ``LinearThreshold`` then).

        Parameters
        ----------
        outcome : int
            The coordinate that may be hidden.
        weights : array-like of shape (d,)
            Of the index; that of the outcome itself is usually 0.
        intercept : float

        Returns
        -------
        LinearThreshold

        Examples
        --------
        >>> import halfseen as hs
        >>> wage = hs.LinearThreshold.heckman(1, [2.0, 0.0], intercept=-1.0)
        >>> wage.seen([[1.0, 5.0], [0.0, 5.0]])
        array([[ True,  True],
               [ True, False]])
        """
        index = finite_vector("weights", weights)
        d = index.size
        V, b = np.zeros((d, d)), np.zeros(d)
        V[_coordinate(outcome, d)] = -index
        b[outcome] = finite_vector("intercept", intercept, 1)[0]
        if not index.any():
            raise InputError("weights may not all be zero: the index would not depend on the row.")
        return cls(V, b)

    @classmethod
    def anchored(cls, anchors: Sequence[int], V: ArrayLike, b: ArrayLike) -> LinearThreshold:
        """Show the anchors always; the other coordinates, in order, have thresholds V and b.

        Parameters
        ----------
        anchors : sequence of int
        V : array-like of shape (d - number of anchors, d)
        b : array-like of shape (d - number of anchors,)

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.LinearThreshold.anchored([0], [[1.0, 0.0]], [0.5])
        >>> rule.always_seen
        array([ True, False])
        """
        rows = np.atleast_2d(real_array("V", V, "an array of numbers"))
        if rows.ndim > 2:
            raise InputError(f"V must have rows and columns; got shape {rows.shape}.")
        limits = finite_vector("b", b)
        d = rows.shape[1]
        if not is_iterable(anchors):
            raise InputError(f"anchors must be a list of coordinates; got {anchors!r}.")
        chosen = {_coordinate(a, d) for a in anchors}
        others = [k for k in range(d) if k not in chosen]
        if len(rows) != len(others) or limits.shape != (len(others),):
            raise InputError(
                f"with {len(chosen)} anchors of {d} coordinates, V needs {len(others)} rows and b as "
                f"many entries; got {len(rows)} and {limits.size}."
            )
        full, level = np.zeros((d, d)), np.zeros(d)
        full[others], level[others] = rows, limits
        return cls(full, level)

    def normalised(self) -> LinearThreshold:
        """Return the same rule with the largest entry of each row of V at 1."""
        size = np.abs(self.V).max(axis=1)
        size[size == 0.0] = 1.0
        return LinearThreshold(self.V / size[:, None], self.b / size)

    def scaled(self, scale: Floats) -> LinearThreshold:
        """Return the rule for rows whose columns were divided by ``scale``."""
        return LinearThreshold(self.V * scale, self.b)

    def seen(self, Y: ArrayLike, random_state: int | Generator | None = None) -> Mask:
        """Mask of the coordinates of ``Y`` that are shown."""
        Y = self._read_rows(Y)
        return self.b >= products(Y, self.V)

    def transformed(self, transforms: Sequence[Scale], names: Sequence[str]) -> LinearThreshold:
        """Return the rule itself, where no transformed column takes part in a threshold."""
        self.check_width(len(transforms))
        for j in map(int, np.flatnonzero(self.V.any(axis=0))):
            transform = transforms[j]
            if transform.name != "none":
                raise InputError(
                    f"column {names[j]} takes part in a linear threshold, which is linear in original "
                    f"units only, but it is to be transformed by {transform.name}. Leave that column as "
                    "it is, or transform the data yourself and state the threshold on that scale."
                )
        return self

    def hidden_region(self, X: ArrayLike) -> Polyhedra:
        """Polyhedron of each row of ``X`` in its hidden coordinates."""
        X = self._read_rows(X)
        return Polyhedra(self.V, self.b, X)

    def holes(self, X: Values, scan: Scan) -> Holes:
        """Return the thresholds as inequalities; on its own a hidden cell may be anything."""
        hidden = np.isnan(X)
        d = self.width
        binding = np.flatnonzero(self.V.any(axis=1))
        rule = self.normalised()
        sign = np.where(hidden[:, binding], -1, 1).astype(np.int8)
        return Holes(
            np.where(hidden, np.arange(d), SEEN).astype(np.int32),
            SetTable.join([whole_line()] * d),
            np.arange(d),
            Inequalities(rule.V[binding], rule.b[binding], sign, binding),
        )

    def check(self, X: Values, names: Sequence[str], at_random: Mask | None = None) -> None:
        """Raise a ``ContradictionError`` for a row whose seen values alone contradict the rule.

        Rows that contradict it through their hidden values are found when a solver looks for a
        feasible point. Cells in ``at_random`` were not hidden by their threshold, so it is not held
        against them.
        """
        hidden = np.isnan(X)
        known = np.where(hidden, 0.0, X)
        value = products(known, self.V)
        # Infinite where a double cannot hold it: then nothing is known to be wrong.
        with np.errstate(over="ignore"):
            size = products(np.abs(known), np.abs(self.V)) + np.abs(self.b)
        # Inequalities in which no hidden value takes part.
        settled = (hidden @ (self.V != 0).T) == 0
        wrong_seen = settled & ~hidden & (value > self.b + ROUNDING * size)
        wrong_hidden = settled & hidden & (value < self.b - ROUNDING * size)
        wrong_hidden |= hidden & self.always_seen
        if at_random is not None:
            wrong_hidden &= ~at_random
        for wrong, is_hidden in ((wrong_seen, False), (wrong_hidden, True)):
            if wrong.any():
                row, column = (int(k) for k in np.argwhere(wrong)[0])
                why = self._why_wrong(column, float(value[row, column]), is_hidden, names)
                count = int(wrong[:, column].sum())
                also = ", or state that such cells are missing at random" if is_hidden else ""
                raise ContradictionError(
                    f"the value is "
                    f"{'hidden' if is_hidden else 'seen'}, but {why} ({count} such rows). Correct the "
                    f"rule, or the row{also}.",
                    row,
                    names[column],
                )

    def _why_wrong(self, column: int, value: float, is_hidden: bool, names: Sequence[str]) -> str:
        """Say what the threshold of a column compares, and what it would have asked for."""
        weights, limit = self.V[column], float(self.b[column])
        if not weights.any():
            return f"the rule {'never hides' if is_hidden else 'never shows'} this column"
        greater = bool(weights[weights != 0.0][0] < 0.0)
        if greater:
            weights, value, limit = -weights, -value, -limit
        if is_hidden:
            asked = "hidden only where that is " + ("below" if greater else "above")
        else:
            asked = "shown only where that is " + ("at least" if greater else "at most")
        # As many digits as tell them apart.
        digits = next(k for k in (6, 9, 12, 17) if k == 17 or f"{value:.{k}g}" != f"{limit:.{k}g}")
        # Adding zero takes the sign off a zero.
        return (
            f"{_sum_of(weights, names)} is {value + 0.0:.{digits}g}, and it is {asked} "
            f"{limit + 0.0:.{digits}g}"
        )

    def __repr__(self) -> str:
        if len(self.V) <= 4:
            return f"LinearThreshold({self.V.tolist()}, {self.b.tolist()})"
        return f"LinearThreshold(of {len(self.V)} coordinates)"


def _sum_of(weights: Floats, names: Sequence[str]) -> str:
    """Write a weighted sum of columns for a message, as rules have it; a long one is cut."""
    terms = np.flatnonzero(weights)
    text = ""
    for j in terms[:FEW_TERMS]:
        sign = "-" if weights[j] < 0 else "+"
        factor = f"{abs(weights[j]):.6g}"
        term = quoted(str(names[j])) if factor == "1" else f"{factor}*{quoted(str(names[j]))}"
        text += f" {sign} {term}"
    if terms.size > FEW_TERMS:
        text += f" + … ({terms.size} columns)"
    return text.removeprefix(" + ")


def _coordinate(k: int, d: int) -> int:
    if not is_whole(k) or not 0 <= k < d:
        raise InputError(f"a coordinate is a whole number from 0 to {d - 1}; got {k!r}.")
    return int(k)
