"""Several rules in one table, each for columns of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import is_iterable
from halfseen.errors import InputError
from halfseen.missingness.base import (
    Columns,
    Generator,
    Mask,
    Missingness,
    Scale,
    Values,
    by_name,
    check_fit,
    check_never_hidden,
    disjoint_columns,
    listed,
    positions,
)
from halfseen.missingness.holes import SEEN, Box, Holes, Inequalities, Parts, Region, Scan, gather
from halfseen.missingness.sets import SeenSet, everything
from halfseen.missingness.truncation import RowTruncation


class Combined(Missingness):
    """Rules for disjoint sets of columns.

    Each rule sees the table of its own columns alone, in the order in which they are given. Columns
    that no part mentions are always seen.

    Parameters
    ----------
    parts : list of (columns, rule)
        Columns are a list of positions or of names, in all parts alike. A rule may be any but
        ``RowTruncation``, which speaks of whole rows.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.Combined([
    ...     ([0], hs.DetectionLimits(lower=0.5)),
    ...     ([1, 2], hs.SelfSelection()),
    ... ])
    >>> rule.seen([[0.4, 3.0, 2.0, 7.0]])
    array([[False,  True, False,  True]])
    """

    def __init__(self, parts: Iterable[tuple[Iterable[int | str], Missingness]]) -> None:
        pairs = _pairs(parts)
        columns = disjoint_columns("part", [pair[0] for pair in pairs], fewest=1)
        rules = [_rule(k, pair[1]) for k, pair in enumerate(pairs)]
        if by_name(columns):
            rules = [
                _told(k, rule, [str(name) for name in own])
                for k, (own, rule) in enumerate(zip(columns, rules, strict=True))
            ]
        self.parts: tuple[tuple[Columns, Missingness], ...] = tuple(
            zip(columns, rules, strict=True)
        )

    @property
    def width(self) -> None:
        """Not known: columns that no part mentions are always seen."""
        return None

    @property
    def _columns(self) -> list[Columns]:
        return [columns for columns, _ in self.parts]

    def for_columns(self, names: Sequence[str]) -> Self:
        """Return the rule with its columns told by position, and its parts matched with their names."""
        return type(self)(
            (own, _told(k, rule, [names[c] for c in own]))
            for k, (own, (_, rule)) in enumerate(
                zip(positions(self._columns, names), self.parts, strict=True)
            )
        )

    def for_rows(self, rows: slice | NDArray[np.intp], total: int) -> Missingness:
        """Return the rule for some of the rows."""
        parts = [(columns, rule.for_rows(rows, total)) for columns, rule in self.parts]
        same = all(new is old for (_, new), (_, old) in zip(parts, self.parts, strict=True))
        return self if same else type(self)(parts)

    def check_width(self, width: int) -> None:
        """Raise an ``InputError`` unless the parts fit tables of ``width`` columns."""
        check_fit(self._columns, width)
        for k, (columns, rule) in enumerate(self.parts):
            try:
                rule.check_width(len(columns))
            except InputError as error:
                raise InputError(
                    f"part {k}, columns {listed(columns)}, does not fit: {error}"
                ) from error

    def _parts_of(self, width: int) -> list[tuple[NDArray[np.intp], Missingness]]:
        """Positions of the columns and the rule of each part, in a table of ``width`` columns."""
        self.check_width(width)
        return [(np.array(columns, dtype=np.intp), rule) for columns, rule in self.parts]

    def seen(self, Y: ArrayLike, random_state: int | Generator | None = None) -> Mask:
        """Mask of the coordinates of ``Y`` that are shown, each part by its rule."""
        Y = self._read_rows(Y)
        # One stream for all parts: two with the same seed would toss the same coins.
        rng = np.random.default_rng(random_state)
        mask = np.ones(Y.shape, dtype=bool)
        for columns, rule in self._parts_of(Y.shape[1]):
            mask[:, columns] = rule.seen(Y[:, columns], rng)
        return mask

    def transformed(self, transforms: Sequence[Scale], names: Sequence[str]) -> Combined:
        """Return the rules of the parts, each on the scales of its columns."""
        return Combined(
            (own, rule.transformed([transforms[c] for c in own], [names[c] for c in own]))
            for own, rule in self._parts_of(len(transforms))
        )

    def hidden_region(self, X: ArrayLike) -> Region:
        """Return the regions of the parts together: a ``Box`` if all are, ``Parts`` otherwise."""
        X = self._read_rows(X)
        regions = tuple(
            (columns, rule.hidden_region(X[:, columns]))
            for columns, rule in self._parts_of(X.shape[1])
        )
        home: dict[int, tuple[Box, int]] = {}
        for columns, region in regions:
            if not isinstance(region, Box):
                return Parts(np.isnan(X), regions)
            home.update({int(c): (region, k) for k, c in enumerate(columns)})

        def hidden_set(row: int, column: int) -> SeenSet:
            if column not in home:
                return everything
            box, own = home[column]
            return box.cell(row, own)

        return Box(np.isnan(X), hidden_set)

    def holes(self, X: Values, scan: Scan) -> Holes:
        """Return the holes of the parts in one table."""
        n, d = X.shape
        index = np.full((n, d), SEEN, dtype=np.int32)
        unmentioned = np.ones(d, dtype=bool)
        found: list[tuple[NDArray[np.intp], Holes]] = []
        count = 0
        for columns, rule in self._parts_of(d):
            part = rule.holes(X[:, columns], Scan(*(field[columns] for field in scan)))
            index[:, columns] = np.where(part.index == SEEN, SEEN, part.index + count)
            count += len(part.sets)
            unmentioned[columns] = False
            found.append((columns, part))
        holes = gather(
            index,
            [part.sets for _, part in found],
            [columns[part.set_column] for columns, part in found],
        )
        holes = replace(holes, inequalities=_embedded(found, d))
        return holes.with_missing_at_random(np.isnan(X) & unmentioned)

    def check(self, X: Values, names: Sequence[str], at_random: Mask | None = None) -> None:
        """Raise a ``ContradictionError`` if ``X`` shows or hides what the rule of a part would not."""
        never_hidden = np.ones(X.shape[1], dtype=bool)
        for columns, rule in self._parts_of(X.shape[1]):
            absent = None if at_random is None else at_random[:, columns]
            rule.check(X[:, columns], [names[c] for c in columns], absent)
            never_hidden[columns] = False
        fine = ~np.isnan(X) if at_random is None else ~np.isnan(X) | at_random
        check_never_hidden(fine, never_hidden, names)

    def __repr__(self) -> str:
        return f"Combined([{', '.join(f'({list(c)}, {rule!r})' for c, rule in self.parts)}])"


def _embedded(found: Sequence[tuple[NDArray[np.intp], Holes]], width: int) -> Inequalities | None:
    """Inequalities of the parts, as inequalities on whole rows; None where there are none."""
    bounds = [(columns, h.inequalities) for columns, h in found if h.inequalities is not None]
    if not bounds:
        return None
    rows = []
    for columns, bound in bounds:
        V = np.zeros((len(bound.b), width))
        V[:, columns] = bound.V
        rows.append(V)
    return Inequalities(
        np.concatenate(rows),
        np.concatenate([bound.b for _, bound in bounds]),
        np.concatenate([bound.sign for _, bound in bounds], axis=1),
        np.concatenate([columns[bound.owner] for columns, bound in bounds]),
    )


def _pairs(parts: Any) -> list[tuple[Any, Any]]:
    if not is_iterable(parts):
        raise InputError(f"Combined takes a list of (columns, rule); got {parts!r}.")
    pairs = list(parts)
    for k, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(
                f"part {k} must be (columns, rule), such as ([0, 1], DetectionLimits(lower=0.5)); got "
                f"{pair!r}."
            )
    return [(columns, rule) for columns, rule in pairs]


def _rule(k: int, rule: Any) -> Missingness:
    if isinstance(rule, RowTruncation):
        raise InputError(
            f"part {k} is a RowTruncation, which shows rows whole or not at all, so it cannot be the "
            "rule of some columns only. Use SelfCensoring or DetectionLimits for them."
        )
    if not isinstance(rule, Missingness):
        raise InputError(f"part {k} needs a rule such as DetectionLimits(...); got {rule!r}.")
    return rule


def _told(k: int, rule: Missingness, names: list[str]) -> Missingness:
    """Match the rule of part k with the names of its columns."""
    try:
        return rule.for_columns(names)
    except InputError as error:
        raise InputError(f"part {k}, columns {listed(names)}, does not fit: {error}") from error
