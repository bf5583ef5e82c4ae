"""Values that were lost beside the rule, for reasons that have nothing to do with any value.

A value that the rule shows is lost with probability ε. A seen cell then counts (1 − ε) f(x); a hidden
one has the mass of what the rule hides, and ε times that of what it shows.
"""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import is_iterable
from halfseen.data.interval_data import IntervalData
from halfseen.errors import InputError, argument, spelled
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.combined import Combined
from halfseen.missingness.sets import everything
from halfseen.solvers.full_information.problem import Problem, read_mask
from halfseen.solvers.result import name_some

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Mask = NDArray[np.bool_]

LEARN = "learn"
# Stands for a column in which nothing was said to be lost.
NO_GROUP = -1


@dataclass(frozen=True, eq=False)
class Loss:
    """Which share of the values that the rule shows was lost, for each column.

    Attributes
    ----------
    share : array of shape (d,)
        Probability that a value was lost; 0 in columns without a rule.
    learned : boolean array of shape (d,)
        Whether it was learned from the table, or said.
    group : integer array of shape (d,)
        Columns with the same number have one share; -1 where nothing was said to be lost.
    standard_error, lower, upper : arrays of shape (d,)
        Of a learned share; the ends are those of a 95 % interval, from how the likelihood falls. NaN
        where it is known.
    p_value : array of shape (d,)
        Of the likelihood-ratio test that nothing was lost. A share cannot be negative, so half of the
        tables without losses have a statistic of 0: the p-value is half that of a chi-square, or 1.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.DetectionLimits(lower=[0.0, 0.0])
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.8], [0.8, 1.0]]), rule, 1000)
    >>> X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan  # lost
    >>> loss = hs.fit(X, rule, loss="learn", random_state=0).loss
    >>> bool(loss.lower[0] < 0.1 < loss.upper[0]), bool(loss.p_value[0] < 0.001)
    (True, True)
    """

    share: Floats
    learned: Mask
    group: Integers
    standard_error: Floats
    lower: Floats
    upper: Floats
    p_value: Floats

    @classmethod
    def known(cls, share: Floats, group: Integers) -> Loss:
        """Return shares that were said."""
        nothing = np.full(share.size, np.nan)
        return cls(
            share, np.zeros(share.size, dtype=bool), group, nothing, nothing, nothing, nothing
        )

    @property
    def groups(self) -> list[Integers]:
        """The columns of each share."""
        return [np.flatnonzero(self.group == k) for k in np.unique(self.group[self.group >= 0])]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Say each share in a sentence.

        Parameters
        ----------
        names : sequence of str
            Of the columns.

        Returns
        -------
        list of str

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=[0.0, 0.0])
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.8], [0.8, 1.0]]), rule, 200)
        >>> hs.fit(X, rule, loss=0.1, random_state=0).loss.sentences(["lead", "zinc"])
        ['Of the values that the rule shows, 10.0 % are taken to be lost (lead, zinc).']
        """
        texts = is_iterable(names) and all(isinstance(name, str) for name in names)
        if not texts or len(names) != self.share.size:
            raise InputError(
                f"names must be those of the {self.share.size} columns; got {reprlib.repr(names)}."
            )
        out = []
        for columns in self.groups:
            first, where = int(columns[0]), name_some([names[j] for j in columns], 6)
            text = f"Of the values that the rule shows, {self.share[first]:.1%}".replace("%", " %")
            if not self.learned[first]:
                out.append(f"{text} are taken to be lost ({where}).")
                continue
            text += f" are estimated to be lost ({where})"
            if np.isfinite(self.p_value[first]):
                low, high = 100.0 * self.lower[first], 100.0 * self.upper[first]
                text += f"; 95 % interval {low:.1f} to {high:.1f} %, test of no losses p = "
                text += f"{self.p_value[first]:.2g}"
            out.append(text + ".")
        return out


class Asked(NamedTuple):
    """What was said of losses, for each column.

    Attributes
    ----------
    share : array of shape (d,)
        NaN where it is to be learned.
    group : integer array of shape (d,)
        Columns with one share; ``NO_GROUP`` where nothing was said to be lost.
    """

    share: Floats
    group: Integers

    @property
    def learned(self) -> Mask:
        """Columns whose share is to be learned."""
        return np.isnan(self.share)

    @property
    def to_learn(self) -> list[Integers]:
        """The columns of each share that is to be learned."""
        return [
            columns
            for k in np.unique(self.group[self.group >= 0])
            if self.learned[(columns := np.flatnonzero(self.group == k))[0]]
        ]


def read_loss(given: Any, names: Sequence[str], rule: Missingness | None, X: Any = None) -> Asked:
    """Read what was said of losses; raise where the rule, or the table, cannot take it.

    Parameters
    ----------
    given : float, "learn", mapping or sequence
    names : sequence of str
    rule : Missingness or None
        Matched with the names.
    X : table
        Where it is ``IntervalData``, columns whose cells say why they are hidden are left out.
    """
    ruled = _ruled_columns(rule, names, X)
    share, group = np.zeros(len(names)), np.full(len(names), NO_GROUP, dtype=np.intp)
    if isinstance(given, Mapping):
        for k, (name, one) in enumerate(given.items()):
            j = _column(name, names)
            share[j], group[j] = _one_share(one, names[j]), k
    elif isinstance(given, str) or not is_iterable(given):
        _check_all(rule, names)
        share[ruled], group[ruled] = _one_share(given, ""), 0
    else:
        entries = list(given)
        if len(entries) != len(names):
            raise InputError(
                f"loss must have an entry for each of the {len(names)} columns; got {len(entries)}."
            )
        share[:] = [_one_share(one, name) for one, name in zip(entries, names, strict=True)]
        group[share != 0.0] = np.flatnonzero(share != 0.0)
    wrong = np.flatnonzero((group >= 0) & ~ruled & (share != 0.0))
    if wrong.size:
        raise InputError(
            f"loss speaks of column {names[wrong[0]]}, but no rule looks at each cell of this "
            "column by itself, or its hidden cells say themselves why they are hidden. Leave it "
            f"out of {argument('loss')}."
        )
    return Asked(share, group)


def _ruled_columns(rule: Missingness | None, names: Sequence[str], X: Any) -> Mask:
    """Columns in which a value can be told to be lost, or hidden by the rule."""
    ruled = ruled_columns(rule, len(names)) if rule is not None else None
    if ruled is None or not ruled.any():
        what = "no rule is stated" if rule is None else f"the rule is {type(rule).__name__}"
        raise InputError(
            f"{argument('loss')} is for cells that a rule may have hidden, each by its own value, "
            f"as DetectionLimits and SelfCensoring do; {what}. Leave {argument('loss')} out; "
            f"where cells are known to be simply missing, say so with {argument('missing_at_random')}."
        )
    if isinstance(X, IntervalData):
        ruled = ruled & ~_marked(X)
        if not ruled.any():
            raise InputError(
                f"{argument('loss')} is for blank cells that a rule may have hidden, but the "
                "hidden cells of this table say themselves why they are hidden. Leave "
                f"{argument('loss')} out."
            )
    return ruled


def _marked(data: IntervalData) -> Mask:
    """Columns in which hidden cells say why they are."""
    told = ~data.seen & ~data.at_random
    return np.asarray((told | data.not_detected).any(axis=0))


def _check_all(rule: Missingness | None, names: Sequence[str]) -> None:
    """Raise where one share is said for all columns, and a part of the rule cannot take it."""
    for columns, part in rule.parts if isinstance(rule, Combined) else ():
        if not isinstance(part, ColumnwiseMissingness):
            where = name_some([names[int(j)] for j in columns])
            by_column = spelled("loss={'lead': 0.1}", "--loss lead=0.1")
            raise InputError(
                f"{argument('loss')} cannot be for all columns: {type(part).__name__} of column "
                f"{where} does not look at each cell by itself. Say it by column: {by_column}."
            )


def _column(name: Any, names: Sequence[str]) -> int:
    if name in names:
        return list(names).index(name)
    whole = isinstance(name, int | np.integer) and not isinstance(name, bool)
    if whole and 0 <= name < len(names):
        return int(name)
    raise InputError(
        f"loss speaks of column {name!r}; the columns are {name_some(list(names), 8)}."
    )


def _one_share(given: Any, name: str) -> float:
    """Return a share; NaN where it is to be learned."""
    if isinstance(given, str) and given == LEARN:
        return np.nan
    number = isinstance(given, numbers.Real) and not isinstance(given, bool)
    if not number or not 0.0 <= given < 1.0:
        where = f" of column {name}" if name else ""
        raise InputError(
            f"loss{where} must be a share from 0 to below 1, such as 0.1, or {LEARN!r}; got "
            f"{reprlib.repr(given)}."
        )
    return float(given)


def ruled_columns(rule: Missingness, width: int) -> Mask:
    """Columns in which a rule by column may hide a cell."""
    return np.asarray(_ruled_cells(rule, (1, width))[0])


def _ruled_cells(rule: Missingness, shape: tuple[int, int]) -> Mask:
    """Mask of the cells that a rule by column may hide. With one row: whether it does so in any."""
    mask = np.zeros(shape, dtype=bool)
    if isinstance(rule, Combined):
        for columns, part in rule.parts:
            own = np.array(columns, dtype=np.intp)
            mask[:, own] = _ruled_cells(part, (shape[0], own.size))
    elif isinstance(rule, ColumnwiseMissingness):
        for j in range(shape[1]):
            one = rule.column_rule(j)
            if one.group is None:
                mask[:, j] = one.seen_set != everything
            else:
                limited = np.isfinite(one.lower) | np.isfinite(one.upper)
                mask[:, j] = limited.any() if shape[0] == 1 else limited[one.group]
    return mask


def cells_at_risk(
    problem: Problem, X: Any, rule: Missingness | None, missing_at_random: Any
) -> Mask:
    """Mask of the cells, seen or hidden, that would be hidden if their value was lost.

    Not those where the rule shows everything, nor those of which it is known why they are hidden.
    """
    risk = _ruled_cells(matched_rule(problem, rule), problem.shape)
    mask = problem.at_random
    if isinstance(X, IntervalData):
        risk &= ~_marked(X)
        mask = read_mask(missing_at_random, X.values, X.names)
    return risk if mask is None else risk & ~mask


def matched_rule(problem: Problem, rule: Missingness | None) -> Missingness:
    """Return the rule for the columns of a problem; of cells that speak for themselves, ``rule``."""
    if problem.missingness is not None:
        return problem.missingness
    assert rule is not None
    return rule.for_columns(problem.names)


def with_losses(problem: Problem, risk: Mask, share: Floats) -> Problem:
    """Return a problem in which such shares of the cells at risk were lost."""
    if not share.any():
        return problem
    kept = np.asarray((risk & ~problem.hidden) @ np.log1p(-share), dtype=np.float64)
    holes = problem.holes.with_losses(share, risk & (share > 0.0))
    return replace(problem, holes=holes, kept=kept)


def losing(
    problem: Problem, loss: Loss | None, X: Any, rule: Missingness | None, missing_at_random: Any
) -> Problem:
    """Return a problem under the losses of a fit; the same where there are none."""
    if loss is None or not loss.share.any():
        return problem
    if rule is None and problem.missingness is None:
        return problem
    return with_losses(problem, cells_at_risk(problem, X, rule, missing_at_random), loss.share)
