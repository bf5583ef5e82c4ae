"""What every missingness model can do, and how one tells which columns it speaks of."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import is_iterable, is_time, real_array
from halfseen.errors import ContradictionError, InputError
from halfseen.missingness.holes import SEEN, Box, Holes, Region, Scan, gather, scan_of, whole_line
from halfseen.missingness.resolve import SetTable, one_interval_each, resolve
from halfseen.missingness.sets import Interval, SeenSet, Union, everything

Floats = NDArray[np.float64]
# A table as it came, in single or in double precision.
Values = NDArray[np.floating]
Mask = NDArray[np.bool_]
Generator = np.random.Generator
# A set of columns, told by position or by name.
Columns = tuple[int | str, ...]

# Names that a message lists before it says "…".
FEW_NAMES = 8


class Scale(Protocol):
    """An increasing function of a column, as rules need to know it."""

    @property
    def name(self) -> str:
        """How it is written; "none" where it changes nothing."""

    def end(self, limit: ArrayLike) -> Floats:
        """Transform limits."""

    def inverse(self, z: ArrayLike) -> Floats:
        """Return values in the original units."""


class RuleKind(enum.Enum):
    """What a rule looks at: solvers say which kinds they take."""

    BY_COLUMN = "each cell by itself, every row in the same way"
    BY_ROW = "each cell by itself, with limits that differ by row"
    THRESHOLDS = "linear combinations of a row"
    WHOLE_ROWS = "whole rows, which are shown or not there"
    OTHER = "a row, in ways of its own"


@dataclass(frozen=True)
class ColumnRule:
    """The rule of one column: one set for all rows, or an interval for each group of rows.

    Attributes
    ----------
    seen_set : SeenSet or None
        The set of every row; None where it differs by row.
    lower, upper : array of shape (groups,)
        The interval of each group, where it differs by row; empty otherwise.
    group : integer array of shape (n,) or None
        The group that each row belongs to.

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.SelfCensoring([hs.everything, hs.between(0, 1)]).column_rule(1).seen_set
    between(0, 1)
    >>> by_row = hs.DetectionLimits(lower=[[0.5], [1.0], [0.5]]).column_rule(0)
    >>> by_row.lower, by_row.group
    (array([0.5, 1. ]), array([0, 1, 0]))
    """

    seen_set: SeenSet | None
    lower: Floats
    upper: Floats
    group: NDArray[np.intp] | None

    @classmethod
    def of_set(cls, seen_set: SeenSet) -> ColumnRule:
        """Rule that is the same in every row."""
        return cls(seen_set, np.empty(0), np.empty(0), None)


def listed(names: Sequence[object]) -> str:
    """Return the first few names, for a message."""
    return ", ".join(map(str, names[:FEW_NAMES])) + (", …" if len(names) > FEW_NAMES else "")


def box_of(holes: Holes) -> Box:
    """View holes as a box, with a set for each hidden cell to which its ends belong."""
    index, sets = holes.index, holes.sets

    def hidden_set(row: int, column: int) -> SeenSet:
        own = slice(*sets.start[index[row, column] + np.arange(2)])
        ends = zip(sets.lower[own].tolist(), sets.upper[own].tolist(), strict=True)
        pieces = Union(Interval(*pair) for pair in ends).pieces
        return pieces[0] if len(pieces) == 1 else Union(pieces)

    return Box(index != SEEN, hidden_set)


class Missingness(ABC):
    """A rule that says which coordinates of a row are shown: the paper's ``𝕊``.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.DetectionLimits(lower=[0.5, 1.0])
    >>> isinstance(rule, hs.missingness.Missingness), rule.width
    (True, 2)
    >>> rule.hidden_region([[2.0, np.nan]]).cell(0, 1)
    below(1)
    """

    @property
    def kind(self) -> RuleKind:
        """What the rule looks at; known once it is matched with columns."""
        return RuleKind.OTHER

    @property
    @abstractmethod
    def width(self) -> int | None:
        """Number of columns the rule is for; None where it fits any number."""

    @abstractmethod
    def seen(self, Y: ArrayLike, random_state: int | Generator | None = None) -> Mask:
        """Mask of the coordinates of ``Y`` that are shown.

        Parameters
        ----------
        Y : array-like of shape (n, d)
            Complete rows.
        random_state : int, Generator or None
            Used by rules that show a value only sometimes.

        Returns
        -------
        boolean array of shape (n, d)

        Examples
        --------
        >>> import halfseen as hs
        >>> hs.SelfSelection().seen([[1.0, 3.0, 2.0]])
        array([[False,  True, False]])
        """

    def hidden_region(self, X: ArrayLike) -> Region:
        """Where the hidden cells of ``X`` can be.

        Unless a rule says more than arrays can (whether ends of sets belong to them, what binds cells
        together), this is a view on its ``holes``.
        """
        X = self._read_rows(X)
        holes = self.holes(X, scan_of(X))
        if holes.inequalities is not None:
            raise InputError(
                f"{type(self).__name__} binds the hidden cells of a row together, so it has to say its "
                "hidden_region itself."
            )
        return box_of(holes)

    @abstractmethod
    def holes(self, X: Values, scan: Scan) -> Holes:
        """Return the hidden region as arrays, for the samplers of ``full``."""

    @abstractmethod
    def check(self, X: Values, names: Sequence[str], at_random: Mask | None = None) -> None:
        """Raise a ``ContradictionError`` if ``X`` shows what the rule would hide.

        Parameters
        ----------
        X : array of shape (n, d)
            NaN where hidden.
        names : sequence of str
            Names of the columns.
        at_random : boolean array of shape (n, d), optional
            Cells that are missing for no modelled reason: that they are hidden contradicts nothing.
        """

    def for_columns(self, names: Sequence[str]) -> Self:
        """Return the rule for a table with these columns; a rule with names of its own matches them."""
        self.check_width(len(names))
        return self

    def for_rows(self, rows: slice | NDArray[np.intp], total: int) -> Missingness:
        """Return the rule for some of the rows of a table; the same one unless limits differ by row.

        Parameters
        ----------
        rows : slice or integer array
        total : int
            Rows of the whole table.
        """
        return self

    def transformed(self, transforms: Sequence[Scale], names: Sequence[str]) -> Missingness:
        """Return the rule for columns on other scales, where it can be told there.

        Parameters
        ----------
        transforms : sequence of Scale
            One for each column; the rule itself speaks in original units.
        names : sequence of str
            Names of the columns.
        """
        changed = [n for n, t in zip(names, transforms, strict=True) if t.name != "none"]
        if changed:
            raise InputError(
                f"{type(self).__name__} cannot be told on another scale, but column {changed[0]} is to "
                "be transformed. Transform the data yourself, and state the rule on that scale."
            )
        return self

    def _read_rows(self, Y: ArrayLike) -> Floats:
        """Read rows that the rule is asked about: a table that it fits, or one row alone."""
        rows = np.atleast_2d(real_array("rows", Y, "arrays of numbers"))
        if rows.ndim > 2:
            raise InputError(f"rows must be a table of rows and columns; got shape {rows.shape}.")
        self.check_width(rows.shape[1])
        return rows

    def check_width(self, width: int) -> None:
        """Raise an ``InputError`` unless the rule fits tables of ``width`` columns."""
        if self.width is not None and self.width != width:
            raise InputError(
                f"{type(self).__name__} is for {self.width} columns, but the data have {width}."
            )


class ColumnwiseMissingness(Missingness):
    """Each cell is shown or hidden by its own value alone: self-censoring in the wide sense.

    A rule of this kind tells ``column_rule``, ``cell_set``, ``shown_probability`` and
    ``contradictions``, ``width`` and ``varies_by_row``; the rest follows from them.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=[[0.5, 1.0], [0.7, 1.0]])
    >>> isinstance(rule, hs.missingness.ColumnwiseMissingness), rule.varies_by_row
    (True, True)
    >>> rule.cell_set(1, 0)
    at_least(0.7)
    >>> isinstance(hs.SelfSelection(), hs.missingness.ColumnwiseMissingness)
    False
    """

    @property
    def kind(self) -> RuleKind:
        """Each cell by itself."""
        return RuleKind.BY_ROW if self.varies_by_row else RuleKind.BY_COLUMN

    @abstractmethod
    def column_rule(self, column: int) -> ColumnRule:
        """Return the rule of one column."""

    @property
    @abstractmethod
    def varies_by_row(self) -> bool:
        """Whether the sets differ from row to row."""

    @abstractmethod
    def cell_set(self, row: int, column: int) -> SeenSet:
        """Return the set in which one cell is shown."""

    @abstractmethod
    def shown_probability(self, Y: Floats) -> Floats:
        """Probability that each cell of ``Y`` is shown."""

    def seen(self, Y: ArrayLike, random_state: int | Generator | None = None) -> Mask:
        """Mask of the coordinates of ``Y`` that are shown.

        Parameters
        ----------
        Y : array-like of shape (n, d)
            Complete rows.
        random_state : int, Generator or None
            Used by ``Probability`` sets alone.
        """
        Y = self._read_rows(Y)
        shown = self.shown_probability(Y)
        chance = (shown > 0.0) & (shown < 1.0)
        mask = shown >= 1.0
        if chance.any():
            rng = np.random.default_rng(random_state)
            mask |= chance & (rng.random(Y.shape) < shown)
        return mask

    def hidden_region(self, X: ArrayLike) -> Box:
        """Box of the complements of the seen-sets, for the cells of ``X`` that are NaN."""
        X = self._read_rows(X)

        def hidden_set(row: int, column: int) -> SeenSet:
            shown = self.cell_set(row, column)
            # A cell that the rule would show is missing for another reason: it may be anything.
            return everything if shown == everything else ~shown

        return Box(np.isnan(X), hidden_set)

    def holes(self, X: Values, scan: Scan) -> Holes:
        """Return the complements of the seen-sets of the cells of ``X`` that are NaN, as arrays."""
        index = np.full(X.shape, SEEN, dtype=np.int32)
        tables: list[SetTable] = []
        columns: list[NDArray[np.intp]] = []
        count = 0
        for j in range(X.shape[1]):
            hidden = np.isnan(X[:, j])
            if not hidden.any():
                continue
            rule = self.column_rule(j)
            if rule.seen_set is not None:
                shown = resolve(rule.seen_set, scan.centre[j], scan.spread[j], scan.reach[j])
                # A cell that the rule would show is missing for another reason: it may be anything.
                table = whole_line() if shown.is_whole_line else shown.complement()
                index[hidden, j] = count
            else:
                assert rule.group is not None
                used, place = np.unique(rule.group[hidden], return_inverse=True)
                lower, upper = rule.lower[used].copy(), rule.upper[used].copy()
                free = np.isinf(lower) & np.isinf(upper)
                # (∞, ∞) has the whole line as its complement.
                lower[free] = np.inf
                table = one_interval_each(lower, upper).complement()
                index[hidden, j] = count + place
            tables.append(table.without_empty())
            columns.append(np.full(len(table), j))
            count += len(table)
        return gather(index, tables, columns)

    def check(self, X: Values, names: Sequence[str], at_random: Mask | None = None) -> None:
        """Raise a ``ContradictionError`` naming the first seen value outside its own seen-set.

        A hidden cell contradicts nothing here, so ``at_random`` changes nothing.
        """
        for column in range(X.shape[1]):
            self.check_column(X[:, column], column, names[column])

    def check_column(self, values: Values, column: int, name: str) -> None:
        """Raise a ``ContradictionError`` naming the first value of a column outside its seen-set."""
        outside = self.contradictions(np.asarray(values, dtype=float), column)
        if values.dtype == np.float32:
            # A value may have been rounded across its limit.
            for way in (-np.inf, np.inf):
                neighbours = np.nextafter(values, np.float32(way)).astype(float)
                outside &= self.contradictions(neighbours, column)
        wrong = np.flatnonzero(outside)
        if wrong.size:
            row = int(wrong[0])
            more = "" if wrong.size == 1 else f" ({wrong.size} such values in this column)"
            raise ContradictionError(
                f"the value {values[row]:.12g} is seen, but the rule "
                f"shows only {self.cell_set(row, column)!r}{more}. Correct the rule, or set the "
                "value to NaN if it was not really seen.",
                row,
                name,
            )

    @abstractmethod
    def contradictions(self, values: Floats, column: int) -> Mask:
        """Mask of the values of a column (NaN where hidden) that lie outside their sets."""


def disjoint_columns(what: str, given: Iterable[Any], fewest: int) -> tuple[Columns, ...]:
    """Read sets of columns that do not overlap: all of them positions, or all of them names.

    Parameters
    ----------
    what : str
        How one of the sets is called in messages.
    given : iterable of lists of int or str
    fewest : int
        Number of columns that each set must have.
    """
    groups = tuple(_columns(f"{what} {k}", item) for k, item in enumerate(given))
    if not groups:
        raise InputError(f"at least one {what} is needed; got none.")
    if len({type(column) for group in groups for column in group}) > 1:
        raise InputError(
            f"columns must be given all by position or all by name; got "
            f"{', '.join(repr(list(group)) for group in groups)}."
        )
    home: dict[int | str, int] = {}
    for k, group in enumerate(groups):
        if len(group) < fewest:
            raise InputError(
                f"{what} {k} must have at least {fewest} column{'s' if fewest > 1 else ''}; got "
                f"{list(group)}."
            )
        for column in group:
            if column in home:
                where = f"in {what} {home[column]} and again in {what} {k}"
                raise InputError(f"column {column!r} stands {where}; a column may stand only once.")
            home[column] = k
    return groups


def by_name(groups: Sequence[Columns]) -> bool:
    """Whether the columns are told by name."""
    return isinstance(groups[0][0], str)


def positions(groups: Sequence[Columns], names: Sequence[str]) -> list[list[int]]:
    """Return where the columns stand in a table with these names."""
    if not by_name(groups):
        check_fit(groups, len(names))
        return [[int(column) for column in group] for group in groups]
    place = {name: k for k, name in enumerate(names)}
    for column in (column for group in groups for column in group):
        if column not in place:
            raise InputError(
                f"the rule speaks of column {column!r}, but the columns of the data are "
                f"{listed(names)}."
            )
    return [[place[str(column)] for column in group] for group in groups]


def check_fit(groups: Sequence[Columns], width: int) -> None:
    """Raise an ``InputError`` unless the columns are positions in a table of ``width`` columns."""
    if by_name(groups):
        raise InputError(
            f"the rule tells its columns by name ({listed(groups[0])}), but the data have no names "
            "here. Use positions, or match the names first with rule.for_columns(names)."
        )
    last = max(int(column) for group in groups for column in group)
    if last >= width:
        raise InputError(
            f"the rule speaks of column {last}, but the data have {width} columns, 0 to {width - 1}."
        )


def check_never_hidden(fine: Mask, columns: Mask, names: Sequence[str]) -> None:
    """Raise a ``ContradictionError`` for a cell that is not ``fine`` in columns that no rule hides."""
    wrong = np.argwhere(~fine & columns)
    if wrong.size:
        row, column = (int(k) for k in wrong[0])
        raise ContradictionError(
            f"the value is hidden, but the rule never hides this "
            f"column ({len(wrong)} such cells). Add the column to the rule, or state that these cells "
            "are missing at random.",
            row,
            names[column],
        )


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, and neither a truth value nor a span of time."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and not is_time(value)


def _columns(what: str, given: Any) -> Columns:
    if isinstance(given, str) or not is_iterable(given):
        raise InputError(f"{what} must be a list of columns; got {given!r}.")
    out: list[int | str] = []
    for column in given:
        if not (isinstance(column, str) or (is_whole(column) and column >= 0)):
            raise InputError(
                f"a column is a name, or a position counted from 0; {what} holds {column!r}."
            )
        out.append(str(column) if isinstance(column, str) else int(column))
    return tuple(out)
