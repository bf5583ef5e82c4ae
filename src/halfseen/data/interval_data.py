"""Tables that say of each cell in which interval it lies: the common currency of real data."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.data.table import OtherTable, TableKind, check_finite, read_table
from halfseen.errors import InputError
from halfseen.missingness.base import ColumnwiseMissingness, Missingness, RuleKind
from halfseen.missingness.holes import SEEN, Holes, Scan, gather, read_cells, scan_of
from halfseen.missingness.resolve import one_interval_each
from halfseen.missingness.sets import Interval

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# How a table may say on which side a hidden cell lies; the last ones say nothing.
SIDES = {"<": -1, "-1": -1, "-1.0": -1, ">": 1, "1": 1, "1.0": 1, "+1": 1} | dict.fromkeys(
    ("", "0", "0.0", "nan", "None", "<NA>"), 0
)


@dataclass(frozen=True, eq=False, init=False)
class IntervalData(OtherTable):
    """A table of intervals: each cell lies between its ``lower`` and its ``upper``.

    ==================  =========================
    ``lower == upper``  a seen value
    ``(-inf, c)``       below a detection limit c
    ``(c, inf)``        saturated above c
    ``(a, b)``          between a and b
    ``(-inf, inf)``     missing at random
    ==================  =========================

    NaN in ``lower`` means -inf and NaN in ``upper`` means +inf, as in R's
    ``Surv(lower, upper, type="interval2")``.

    Parameters
    ----------
    lower, upper : array-like of shape (n, d), or data frames
    names : sequence of str, optional
        Names of the columns; those of the data frames otherwise.
    labels : sequence of str, optional
        Labels of the rows.
    not_detected : boolean array of shape (n, d), optional
        Cells that are said to be hidden, but not where: ``(-inf, inf)``, until a rule says it.
    frame : str, optional
        The library of data frames that the table came from; results take its shape.
    index : optional
        Labels of the rows as that library has them, for tables that are given back.
    kept : mapping from names to sequences, optional
        Columns that came with the table and are no measurements, such as the group of each row.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> data = hs.IntervalData(lower=[[1.0, np.nan], [2.0, 3.0]], upper=[[1.0, 0.5], [np.nan, 4.0]])
    >>> data
    IntervalData(2 rows, 2 columns; cells: 1 seen, 1 below, 1 above, 1 between)
    >>> data.values
    array([[ 1., nan],
           [nan, nan]])
    """

    _needed: ClassVar[str] = (
        "a table of values is needed here; got IntervalData. Its attribute values has the seen values, "
        "with NaN elsewhere, but the intervals are lost with it."
    )
    kind: ClassVar[TableKind] = TableKind.INTERVALS

    lower: Floats
    upper: Floats
    names: tuple[str, ...]
    labels: tuple[str, ...] | None
    not_detected: Mask
    frame: str | None
    index: Any
    kept: dict[str, tuple[Any, ...]]

    def __init__(
        self,
        lower: Any,
        upper: Any,
        names: Sequence[str] | None = None,
        *,
        labels: Sequence[str] | None = None,
        not_detected: ArrayLike | None = None,
        frame: str | None = None,
        index: Any = None,
        kept: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        low = read_table(lower, names, fewest_rows=0)
        high = read_table(upper, names, fewest_rows=0)
        if low.values.shape != high.values.shape:
            raise InputError(
                f"lower and upper must have the same shape; got {low.values.shape} and "
                f"{high.values.shape}."
            )
        if names is None and _has_names(lower) and _has_names(upper) and low.names != high.names:
            wrong = next(p for p in zip(low.names, high.names, strict=True) if p[0] != p[1])
            raise InputError(
                "lower and upper must have the same columns in the same order: "
                f"{wrong[0]} stands where upper has {wrong[1]}."
            )
        known = high.names if names is None and not _has_names(lower) else low.names
        a = np.where(np.isnan(low.values), -np.inf, low.values).astype(np.float64, copy=False)
        b = np.where(np.isnan(high.values), np.inf, high.values).astype(np.float64, copy=False)
        _check_intervals(a, b, known)
        unexplained = _read_not_detected(not_detected, a, b, known)
        for array in (a, b, unexplained):
            array.flags.writeable = False
        words = _read_labels(labels, len(a))
        fields = (a, b, known, words, unexplained, frame, index, _read_kept(kept, len(a)))
        for field, value in zip(dataclasses.fields(self), fields, strict=True):
            object.__setattr__(self, field.name, value)

    @classmethod
    def from_table(
        cls, X: Any, missingness: Missingness, side: ArrayLike | None = None
    ) -> IntervalData:
        """Read a table with NaN where hidden, and the rule that hid the values.

        Parameters
        ----------
        X : array-like of shape (n, d), or a data frame
        missingness : Missingness
            A rule that leaves an interval for each hidden cell, such as ``DetectionLimits``.
        side : array-like of shape (n, d), optional
            "<" or -1 where a hidden cell lies below its limit, ">" or 1 where it lies above. Needed
            where a rule hides on both sides; empty, 0 or NaN elsewhere. What it says of seen cells
            is not read.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0, upper=9)
        >>> X = [[1.0, np.nan], [np.nan, 2.0]]
        >>> data = hs.IntervalData.from_table(X, rule, side=[["", ">"], ["<", ""]])
        >>> data.lower
        array([[  1.,   9.],
               [-inf,   2.]])
        """
        if not isinstance(missingness, Missingness):
            raise InputError(
                f"missingness must be a rule such as DetectionLimits(...); got {missingness!r}."
            )
        table = read_table(X, fewest_rows=0)
        values, names = table.values.astype(np.float64), table.names
        check_finite(values, names)
        rule = missingness.for_columns(names)
        # As they were read: float32 may have been rounded across a limit, and the check knows it.
        rule.check(table.values, names)
        if rule.kind is RuleKind.WHOLE_ROWS:
            # Such a rule refuses to say a region.
            rule.hidden_region(values)
        holes = rule.holes(values, scan_of(values))
        if holes.inequalities is not None:
            raise InputError(
                f"{type(rule).__name__} binds the hidden cells of a row together, so that they have no "
                "intervals of their own. Pass the table and the rule as they are."
            )
        lower, upper = values.copy(), values.copy()
        hidden = np.isnan(values)
        ends = _one_interval(holes, hidden, _sides(side, hidden, names), names)
        lower[hidden], upper[hidden] = ends
        return cls(lower, upper, names)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.lower.shape[0], self.lower.shape[1]

    @property
    def seen(self) -> Mask:
        """Mask of the cells whose value is known."""
        return self.lower == self.upper

    @property
    def at_random(self) -> Mask:
        """Mask of the cells of which nothing is known."""
        return np.isneginf(self.lower) & np.isposinf(self.upper)

    @property
    def blank(self) -> Mask:
        """Mask of the cells of which nothing is known, not even that they were not detected."""
        return self.at_random & ~self.not_detected

    def saturated(self, missingness: Missingness) -> IntervalData:
        """Read values on a limit of a rule, or beyond it, as lying beyond: sensors that clip.

        Parameters
        ----------
        missingness : Missingness
            A rule by column whose sets are intervals, such as ``DetectionLimits``.

        Examples
        --------
        >>> import halfseen as hs
        >>> data = hs.IntervalData([[60.0], [12.0]], [[60.0], [12.0]], ["temp"])
        >>> data.saturated(hs.rules({"temp": "-20..60"})).lower
        array([[60.],
               [12.]])
        >>> data.saturated(hs.rules({"temp": "-20..60"})).upper
        array([[inf],
               [12.]])
        """
        known = isinstance(missingness, Missingness)
        rule = missingness.for_columns(self.names) if known else missingness
        if not isinstance(rule, ColumnwiseMissingness):
            raise InputError(
                "saturated needs a rule by column, such as DetectionLimits(...) or "
                f"rules({{'temp': '-20..60'}}); got {type(rule).__name__}."
            )
        lower, upper, seen = self.lower.copy(), self.upper.copy(), self.seen
        for j, name in enumerate(self.names):
            own = rule.column_rule(j)
            if own.seen_set is not None and not isinstance(own.seen_set, Interval):
                raise InputError(
                    f"column {name}: saturated needs a lower and an upper limit; the rule shows "
                    f"{own.seen_set!r}."
                )
            ends = (own.seen_set.lower, own.seen_set.upper) if own.seen_set else None
            if own.group is not None and own.group.size != len(self):
                raise InputError(
                    f"the limits are given for {own.group.size} rows, but the data have {len(self)}."
                )
            low, high = ends or (own.lower[own.group], own.upper[own.group])
            values = self.lower[:, j]
            below, above = seen[:, j] & (values <= low), seen[:, j] & (values >= high)
            upper[below, j] = np.broadcast_to(low, values.shape)[below]
            lower[below, j] = -np.inf
            lower[above, j] = np.broadcast_to(high, values.shape)[above]
            upper[above, j] = np.inf
        return self.with_ends(lower, upper)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing but values and blank cells."""
        return bool((self.seen | self.blank).all())

    @property
    def values(self) -> Floats:
        """The seen values; NaN elsewhere."""
        return np.where(self.seen, self.lower, np.nan)

    def take(self, rows: NDArray[np.intp] | Mask | slice) -> IntervalData:
        """Return some of the rows.

        Parameters
        ----------
        rows : integer array, boolean array or slice

        Returns
        -------
        IntervalData

        Examples
        --------
        >>> import halfseen as hs
        >>> low, high = [[1.0], [-float("inf")], [3.0]], [[1.0], [0.5], [3.0]]
        >>> data = hs.IntervalData(low, high, labels=["A", "B", "C"])
        >>> data.take(data.seen[:, 0])
        IntervalData(2 rows, 1 column; cells: 2 seen)
        >>> data.take(slice(1, 3)).labels
        ('B', 'C')
        """
        try:
            lower = self.lower[rows]
        except (IndexError, ValueError, TypeError) as error:
            raise InputError(
                f"rows must be whole numbers below {len(self)}, a mask of {len(self)} rows, or a "
                f"slice: {error}."
            ) from None
        labels = None if self.labels is None else np.array(self.labels, dtype=object)[rows].tolist()
        return IntervalData(
            lower,
            self.upper[rows],
            self.names,
            labels=labels,
            not_detected=self.not_detected[rows],
            frame=self.frame,
            index=None if self.index is None else self.index[rows],
            kept={
                name: np.fromiter(values, dtype=object, count=len(self))[rows].tolist()
                for name, values in self.kept.items()
            },
        )

    def with_ends(
        self, lower: Floats, upper: Floats, not_detected: Mask | None = None
    ) -> IntervalData:
        """Return a table with other ends, under the same names and labels."""
        unexplained = self.not_detected if not_detected is None else not_detected
        return replace(self, lower=lower, upper=upper, not_detected=unexplained)

    def _with_names(self, names: Sequence[str]) -> IntervalData:
        return replace(self, names=tuple(names))

    def holes(self, scan: Scan | None = None) -> Holes:
        """Return the intervals of the hidden cells as arrays; ``scan`` is not needed for intervals."""
        hidden = ~self.seen
        index = np.full(self.shape, SEEN, dtype=np.int32)
        index[hidden] = np.arange(hidden.sum(), dtype=np.int32)
        sets = one_interval_each(self.lower[hidden], self.upper[hidden])
        return gather(index, [sets], [np.nonzero(hidden)[1]])

    def __len__(self) -> int:
        return len(self.lower)

    def describe(self) -> str:
        """Return rows, columns, and how many cells there are of each kind, in words."""
        return describe_cells(*self.shape, count_cells(self))

    def __repr__(self) -> str:
        return f"IntervalData({self.describe()})"


def count_cells(data: IntervalData) -> Counter[str]:
    """Count the cells of each kind."""
    no_lower, no_upper = np.isneginf(data.lower), np.isposinf(data.upper)
    kinds = {
        "seen": data.seen,
        "below": no_lower & ~no_upper,
        "above": ~no_lower & no_upper,
        "between": ~(data.seen | no_lower | no_upper),
        "not detected": data.not_detected,
        "blank": data.blank,
    }
    return Counter({kind: int(mask.sum()) for kind, mask in kinds.items()})


def describe_cells(n: int, d: int, cells: Counter[str]) -> str:
    """Say how large a table is, and how many cells there are of each kind."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in cells.items() if count)
    return f"{n} row{'s' * (n != 1)}, {d} column{'s' * (d != 1)}; cells: {kinds or 'none'}"


def _has_names(table: Any) -> bool:
    return hasattr(table, "columns")


def _read_labels(labels: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    read = tuple(map(str, labels))
    if len(read) != n:
        raise InputError(f"labels must be {n}, one for each row; got {len(read)}.")
    return read


def _read_kept(given: Mapping[str, Sequence[Any]] | None, n: int) -> dict[str, tuple[Any, ...]]:
    kept = {str(name): tuple(values) for name, values in (given or {}).items()}
    for name, values in kept.items():
        if len(values) != n:
            raise InputError(
                f"kept must have {n} values of {name}, one for each row; got {len(values)}."
            )
    return kept


def _read_not_detected(
    given: ArrayLike | None, lower: Floats, upper: Floats, names: Sequence[str]
) -> Mask:
    if given is None:
        return np.zeros(lower.shape, dtype=bool)
    mask = np.array(read_cells("not_detected", given))
    if mask.dtype != bool or mask.shape != lower.shape:
        raise InputError(
            f"not_detected must be a boolean array of shape {lower.shape}, as the data have; got "
            f"dtype {mask.dtype}, shape {mask.shape}."
        )
    wrong = np.argwhere(mask & ~(np.isneginf(lower) & np.isposinf(upper)))
    if wrong.size:
        row, column = wrong[0]
        raise InputError(
            f"not_detected is for cells without a limit, from -inf "
            f"to inf; this one goes from {lower[row, column]:.12g} to {upper[row, column]:.12g}.",
            row,
            names[column],
        )
    return mask


def _check_intervals(lower: Floats, upper: Floats, names: Sequence[str]) -> None:
    """Raise an ``InputError`` naming the first cell that is no interval."""
    wrong = np.argwhere((lower > upper) | ((lower == upper) & np.isinf(lower)))
    if not wrong.size:
        return
    row, column = (int(k) for k in wrong[0])
    a, b = lower[row, column], upper[row, column]
    if a > b:
        raise InputError(
            f"lower is {a:.12g} and upper is {b:.12g}, but lower may not be above upper "
            f"({len(wrong)} such cells). Did you mean them the other way round?",
            row,
            names[column],
        )
    raise InputError(
        f"lower and upper are both {a}, which is no value. Use (-inf, inf), or NaN in both, for a cell "
        "that is missing.",
        row,
        names[column],
    )


def _sides(given: ArrayLike | None, hidden: Mask, names: Sequence[str]) -> NDArray[np.int8]:
    """Read the side of each hidden cell: -1 below, 1 above, 0 where it is not said."""
    if given is None:
        return np.zeros(hidden.sum(), dtype=np.int8)
    table = read_cells("side", given).astype(object)
    if table.shape != hidden.shape:
        raise InputError(
            f"side must have the shape of the data, {hidden.shape}; got {table.shape}."
        )
    words, place = np.unique([str(word) for word in table[hidden]], return_inverse=True)
    for k, word in enumerate(words):
        if word.strip() not in SIDES:
            row, column = np.argwhere(hidden)[np.flatnonzero(place == k)[0]]
            raise InputError(
                f"side must be '<' or -1, '>' or 1, or empty; got {str(word)!r}.",
                row,
                names[column],
            )
    return np.array([SIDES[word.strip()] for word in words], dtype=np.int8)[place]


def _one_interval(
    holes: Holes, hidden: Mask, side: NDArray[np.int8], names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Find the interval of each hidden cell, on the side that is said."""
    sets = holes.sets
    which = holes.index[hidden]
    first, last = sets.start[which], sets.start[which + 1] - 1

    def complain(wrong: Mask, sentence: str) -> None:
        if wrong.any():
            row, column = np.argwhere(hidden)[np.flatnonzero(wrong)[0]]
            raise InputError(sentence, row, names[column])

    complain(
        last < first,
        "the value is hidden by chance (Probability), so it has no interval. Pass the table and the "
        "rule as they are.",
    )
    complain(
        (last > first) & (side == 0),
        "the value is hidden, and may lie on either side of what the rule shows. State with side= "
        "on which: '<' for below, '>' for above.",
    )
    for sign, interval, end, other, word in (
        (-1, first, sets.lower, sets.upper, "below"),
        (1, last, sets.upper, sets.lower, "above"),
    ):
        said = side == sign
        # A side must be open to the far end, and have a limit at the near one.
        open_there = np.isinf(end[interval]) & np.isfinite(other[interval])
        complain(
            said & ~open_there,
            f"side says that the value lies {word} its limit, but the rule hides nothing there. "
            "Correct the side, or the rule.",
        )
    chosen = np.where(side > 0, last, first)
    return sets.lower[chosen], sets.upper[chosen]
