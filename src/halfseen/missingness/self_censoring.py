"""Self-censoring: coordinate i is shown iff its value is in ``S_i`` (section 1.1.1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from halfseen.checks import is_iterable
from halfseen.errors import InputError
from halfseen.missingness.base import ColumnRule, ColumnwiseMissingness, Floats, Mask, Scale
from halfseen.missingness.sets import Interval, SeenSet, Union


class SelfCensoring(ColumnwiseMissingness):
    """Each column has a set; a value is shown iff it lies in the set of its column.

    Parameters
    ----------
    sets : SeenSet, or one SeenSet for each column
        A single set is used for every column.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.SelfCensoring([hs.at_least(0.0), hs.between(-1, 1) | hs.at_least(2)])
    >>> rule.seen([[0.5, 1.5], [-0.5, 3.0]])
    array([[ True, False],
           [False,  True]])
    """

    def __init__(self, sets: SeenSet | Iterable[SeenSet]) -> None:
        self._shared = isinstance(sets, SeenSet)
        if not (isinstance(sets, SeenSet) or is_iterable(sets)):
            raise InputError(
                f"SelfCensoring takes a set, or one set for each column; got {sets!r}."
            )
        given = (sets,) if isinstance(sets, SeenSet) else tuple(sets)
        if not given:
            raise InputError("SelfCensoring needs at least one set; got none.")
        for i, item in enumerate(given):
            if not isinstance(item, SeenSet):
                raise InputError(
                    f"the set of column {i} must be made by at_least, at_most, between, "
                    f"everything, Predicate or Probability; got {item!r}."
                )
        self._sets = given

    @property
    def width(self) -> int | None:
        """Number of columns; None for a single shared set."""
        return None if self._shared else len(self._sets)

    @property
    def varies_by_row(self) -> bool:
        """Never: the sets are those of the columns."""
        return False

    def column_set(self, column: int) -> SeenSet:
        """Return the set of one column."""
        return self._sets[0] if self._shared else self._sets[column]

    def column_rule(self, column: int) -> ColumnRule:
        """Return the rule of one column."""
        return ColumnRule.of_set(self.column_set(column))

    def cell_set(self, row: int, column: int) -> SeenSet:
        """Return the set in which one cell is shown."""
        return self.column_set(column)

    def shown_probability(self, Y: Floats) -> Floats:
        """Probability that each cell of ``Y`` is shown."""
        columns = [self.column_set(i).probability(Y[:, i]) for i in range(Y.shape[1])]
        return np.stack(columns, axis=1) if columns else np.empty(Y.shape)

    def transformed(self, transforms: Sequence[Scale], names: Sequence[str]) -> SelfCensoring:
        """Return the sets of the columns, each on the scale of its column."""
        self.check_width(len(transforms))
        return SelfCensoring(
            _mapped(self.column_set(i), transform, name)
            for i, (transform, name) in enumerate(zip(transforms, names, strict=True))
        )

    def contradictions(self, values: Floats, column: int) -> Mask:
        """Mask of the values that are seen though their set does not hold them."""
        seen_set = self.column_set(column)
        seen = ~np.isnan(values)
        if isinstance(seen_set, Interval | Union):
            return seen & ~seen_set.contains(values)
        wrong = np.zeros(values.shape, dtype=bool)
        wrong[seen] = ~seen_set.contains(values[seen])
        return wrong

    def __repr__(self) -> str:
        return f"SelfCensoring({self._sets[0] if self._shared else list(self._sets)})"


def _mapped(seen_set: SeenSet, transform: Scale, name: str) -> SeenSet:
    if transform.name == "none":
        return seen_set
    try:
        return seen_set.mapped(transform.end, transform.inverse)
    except InputError as error:
        raise InputError(
            f"column {name} is transformed by {transform.name}, and {error}"
        ) from error
