"""Which rows belong together: a column of labels, taken out of the table that it came with."""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.cell_columns import is_nothing
from halfseen.data.interval_data import IntervalData
from halfseen.data.names import find_column
from halfseen.data.table import frame_kind
from halfseen.errors import InputError, argument, spelled

# What groups are called where nobody named them.
NAMELESS = "group"
# Longest label that a message repeats.
SHOWN = 40


@dataclass(frozen=True, eq=False)
class Grouping:
    """Which group each row is of.

    Attributes
    ----------
    name : str
        What groups are by, such as "Well".
    labels : tuple
        Of the groups: numbers by size, texts in natural order (A2 before A10), categories of a data
        frame in their own order.
    codes : integer array of shape (n,)
        Position of each row's label.
    """

    name: str
    labels: tuple[Any, ...]
    codes: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of rows of each group."""
        return np.bincount(self.codes, minlength=len(self))

    def rows(self, group: int) -> NDArray[np.intp]:
        """Return the rows of one group, in their order."""
        return np.flatnonzero(self.codes == group)

    def only(self, groups: Sequence[int]) -> Grouping:
        """Return some of the groups, for the rows that are of these."""
        place = np.full(len(self), -1)
        place[list(groups)] = np.arange(len(groups))
        codes = place[self.codes]
        return Grouping(self.name, tuple(self.labels[g] for g in groups), codes[codes >= 0])


def split_groups(X: Any, by: Any) -> tuple[Any, Grouping]:
    """Return a table without its column of groups, and the groups.

    ``by`` is the name of a column of a data frame, or of one that ``IntervalData`` kept; or a label for
    each row.
    """
    if not isinstance(by, str):
        return X, read_grouping(_named(by), _labels_beside(by, X))
    if isinstance(X, IntervalData):
        return X, read_grouping(by, _kept(X, by))
    if frame_kind(X) is None:
        raise InputError(
            f"{argument('by')} names a column of a data frame, or one that was kept when a file was "
            "read; for an array, pass a label for each row: by=wells."
        )
    names = _names(X)
    place = find_column([str(name) for name in names], by, argument("by"))
    values, categories = _column(X, place)
    return _without(X, place), read_grouping(by, values, categories)


def read_grouping(name: str, values: Sequence[Any], categories: Sequence[Any] = ()) -> Grouping:
    """Put rows with equal labels together; ``categories`` are their order, where there is one."""
    labels = [_label(value, row, name) for row, value in enumerate(values)]
    different = list(dict.fromkeys(labels))
    known = [_label(one, 0, name) for one in categories]
    ordered = [one for one in known if one in different] if known else sorted(different, key=_key)
    if len(ordered) < 2:
        only = "" if not ordered else f": all {len(labels)} rows are of {ordered[0]!r}"
        raise InputError(
            f"{name} has one group{only}. Leave {argument('by')} out, or name a column whose values "
            "differ."
        )
    if len(ordered) == len(labels):
        raise InputError(
            f"{name} has as many groups as rows ({len(labels)}), so nothing says how much rows of a "
            "group differ. Name a column that is the same for rows that belong together."
        )
    place = {label: g for g, label in enumerate(ordered)}
    return Grouping(name, tuple(ordered), np.array([place[one] for one in labels], dtype=np.intp))


def _label(value: Any, row: int, name: str) -> Any:
    """Read a label: whole numbers are whole, texts have no blanks around them, others become texts."""
    if is_nothing(value) or (isinstance(value, str) and not value.strip()):
        raise InputError(
            "the row has no group: its label is blank. Say which one it is of, or leave the row out.",
            row,
            name,
        )
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        hash(value)
    except TypeError:
        raise InputError(
            f"the label of a group must be a text or a number; got {str(value)[:SHOWN]!r}.",
            row,
            name,
        ) from None
    # Dates and the like as they are written.
    return value if isinstance(value, numbers.Real) else str(value)


def _key(label: Any) -> tuple[Any, ...]:
    """Sort numbers by size, then texts with the numbers in them by size."""
    if isinstance(label, numbers.Real):
        return 0, label, ""
    parts = re.split(r"(\d+)", str(label).casefold())
    # Texts and numbers alternate, so that like is compared with like.
    natural = [int(part) if k % 2 else part for k, part in enumerate(parts)]
    return 1, 0.0, natural, str(label)


def _named(by: Any) -> str:
    name = getattr(by, "name", None)
    return name if isinstance(name, str) and name else NAMELESS


def _labels_beside(by: Any, X: Any) -> Sequence[Any]:
    """Read a label for each row, given beside the table."""
    index = getattr(by, "index", None) if frame_kind(X) == "pandas" else None
    if index is not None and not callable(index) and not X.index.equals(index):
        raise InputError(
            f"{argument('by')} has rows with other labels than the table, or in another order. Bring "
            "them in order: by.loc[X.index]."
        )
    to_list = getattr(by, "to_list", None) or getattr(by, "tolist", None)
    values = to_list() if to_list is not None else by
    n = len(X) if hasattr(X, "__len__") else None
    if not isinstance(values, list | tuple):
        raise InputError(
            f"{argument('by')} must be the name of a column, or a label for each row; got {by!r}."
        )
    if any(isinstance(one, list) for one in values):
        raise InputError(
            f"{argument('by')} must be one label for each row; got rows of several. Groups by two "
            "columns are groups by their pairs: join the labels first."
        )
    if n is not None and len(values) != n:
        raise InputError(f"{argument('by')} has {len(values)} labels, but the table {n} rows.")
    return values


def _kept(data: IntervalData, by: str) -> tuple[Any, ...]:
    if by in data.kept:
        return data.kept[by]
    kept = ", ".join(data.kept) or "none"
    advice = spelled(f'read_csv(path, keep=["{by}"])', f"--by {by}")
    raise InputError(
        f"the table keeps no column {by!r} beside its measurements (kept: {kept}). Keep it when the "
        f"table is read: {advice}; or pass a label for each row."
    )


def _names(X: Any) -> list[Any]:
    return list(X.column_names) if frame_kind(X) == "pyarrow" else list(X.columns)


def _column(X: Any, place: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the values of a column, and the order of its categories, where it has one."""
    if frame_kind(X) == "pandas":
        column = X.iloc[:, place]
        categories = getattr(column.dtype, "categories", None)
        return column.tolist(), () if categories is None else categories.tolist()
    column = X.column(place) if frame_kind(X) == "pyarrow" else X[:, place]
    return (column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()), ()


def _without(X: Any, place: int) -> Any:
    """Return a data frame without one of its columns."""
    left = [j for j in range(len(_names(X))) if j != place]
    if frame_kind(X) == "pandas":
        return X.iloc[:, left]
    return X.select([_names(X)[j] for j in left])
