"""Marks that another rule than the stated one leaves in a column, and those that are plain to see.

Values that stand where others would be: on a limit, in place of what was not detected, at an end; cells
that tell other limits than the rule; limits that are given only where values are hidden.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.data.interval_data import IntervalData
from halfseen.diagnostics.checked_table import CheckedTable, column_rule, ends_of_rule, in_rows
from halfseen.errors import spelled
from halfseen.missingness.base import Missingness
from halfseen.missingness.detection_limits import DetectionLimits
from halfseen.solvers.prepared_table import FEWEST_PILED, PILED_RATIO

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# What laboratories put in place of a value below its limit, as a share of the limit.
SUBSTITUTES = (
    (1.0, "the limit itself"),
    (0.5, "half the limit"),
    (math.sqrt(0.5), "the limit over √2"),
)
# Fewest distinct values between the smallest and the largest: with less, a column is a code or a count.
FEWEST_BETWEEN = 3
# So many values are told with their counts; of more, the first.
MOST_TOLD = 2
# Limits that differ by less come from writing them down.
SAME_LIMIT = 1e-6


@dataclass(frozen=True)
class Mark:
    """Something in a column that the stated rule would not leave there.

    Attributes
    ----------
    kind : str
        "on the limit", "substituted", "gap", "limits only where hidden", "other limits", "nothing
        hidden", "at random", "hidden too often" or "cut off".
    column : str
    level : {"ok", "look", "problem"}
    p_value : float or None
        How often the rule and the column's own normal distribution would leave as much or more,
        adjusted for the number of columns; None where no probability is meant.
    text : str

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> x = np.maximum(np.random.default_rng(0).normal(size=(300, 1)), -0.5)  # a sensor that clips
    >>> mark = hs.diagnose(x, hs.DetectionLimits(lower=-0.5)).mechanism[0]
    >>> mark.kind, mark.level
    ('on the limit', 'problem')
    """

    kind: str
    column: str
    level: str
    p_value: float | None
    text: str


def plain_marks(table: CheckedTable) -> Iterator[Mark]:
    """Find the marks for which no probability is needed."""
    for j, name in enumerate(table.names):
        hidden = bool(table.hidden[:, j].any())
        yield from _piles(table.as_given[:, j], name, table.limits[j], hidden)
        yield from _other_limits(table, j)
        if _limits_only_where_hidden(table, j):
            text = (
                "Limits are given only where values are hidden. A seen value needs the limit it was "
                "compared with too, or pairwise and truncation get correlations wrong."
            )
            yield Mark("limits only where hidden", name, "problem", None, text)


def substituted(data: IntervalData, rule: Missingness | None) -> Iterator[Mark]:
    """Find values that seem to stand for others: far more often than any, at an end without a limit."""
    rule = None if rule is None else rule.for_columns(data.names)
    for j, name in enumerate(data.names):
        lower, upper = data.lower[:, j], data.upper[:, j]
        low, high = ends_of_rule(column_rule(rule, j))
        low, high = (
            np.append(low, upper[np.isneginf(lower)]),
            np.append(high, lower[np.isposinf(upper)]),
        )
        stated = low[np.isfinite(low)], high[np.isfinite(high)]
        hidden = bool((~data.seen[:, j] & ~data.blank[:, j]).any())
        for mark in _piles(data.values[:, j], name, stated, hidden):
            if mark.kind == "substituted":
                yield mark


def _piles(
    values: Floats, name: str, stated: tuple[Floats, Floats], hidden: bool
) -> Iterator[Mark]:
    """Find values that stand far more often than all others, where non-detects would be put.

    ``stated`` are the lower and upper limits of the column.
    """
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    often = np.flatnonzero(counts >= FEWEST_PILED)
    if distinct.size < 2 or not often.size:
        return
    places = [(often[np.isin(distinct[often], np.concatenate(stated))], "the limit itself", 1.0)]
    for share, words in SUBSTITUTES[1:]:
        close = np.isclose(distinct[often][:, None], share * stated[0][stated[0] > 0.0], rtol=1e-3)
        places.append((often[close.any(axis=1)], words, share))
    # How often a value stands that has no such reason to.
    usual = int(np.delete(counts, np.concatenate([p[0] for p in places])).max(initial=1))
    # The habit that explains most: half of one limit can be another one.
    piled, words, share = max(places, key=lambda place: counts[place[0]].sum())
    piled = piled[counts[piled] > PILED_RATIO * usual]
    if not piled.size:
        yield from _at_ends(name, distinct, counts, stated, hidden)
        return
    text = _how_often(distinct[piled], counts[piled], usual)
    if share == 1.0:
        text = f"{text} {_beyond(distinct[piled], stated)}"
        yield Mark("on the limit", name, "problem", None, text)
        return
    text += (
        f" It is {words} of {distinct[piled[0]] / share:.4g}, a common substitute for values that "
        "were not detected. Set these cells to NaN."
    )
    yield Mark("substituted", name, "problem", None, text)


def _beyond(values: Floats, stated: tuple[Floats, Floats]) -> str:
    """Say what values on limits may stand for, and how to tell."""
    ways = [f"<{x:.6g}" for x in values if x in stated[0]]
    ways += [f">{x:.6g}" for x in values if x in stated[1]]
    shown = " or ".join(ways) if len(ways) <= MOST_TOLD else f"{ways[0]} and so on"
    many = "the limits" if values.size > 1 else "the limit"
    return (
        f"They may stand for values beyond {many}: mark such cells as {shown}, or use "
        f"{_saturated()}."
    )


def _at_ends(
    name: str, distinct: Floats, counts: Integers, stated: tuple[Floats, Floats], hidden: bool
) -> Iterator[Mark]:
    """Find piles at the smallest and the largest value, on sides where no limit is stated."""
    if distinct.size < 2 + FEWEST_BETWEEN:
        return
    # Where something is hidden that no limit speaks of, values may stand for it or not.
    if hidden and not (stated[0].size or stated[1].size):
        return
    usual = int(counts[1:-1].max())
    ends = [
        k
        for k, limits in ((0, stated[0]), (distinct.size - 1, stated[1]))
        if not limits.size and counts[k] >= FEWEST_PILED and counts[k] > PILED_RATIO * usual
    ]
    if not ends:
        return
    text = _how_often(distinct[ends], counts[ends], usual)
    if len(ends) == 2:
        low, high = (f"{distinct[k]:.6g}" for k in ends)
        text += (
            " They are the smallest and the largest. If nothing beyond them can be shown, mark "
            f"such cells as <{low} or >{high}; or state the rule {low}..{high} and use "
            f"{_saturated()}."
        )
    elif ends[0] == 0:
        text += f" {_guess(float(distinct[0]), float(distinct[1]))}"
    else:
        high = f"{distinct[-1]:.6g}"
        text += (
            f" It is the largest. If the instrument shows no more than that, mark such cells as "
            f">{high}; or state the limit {high} and use {_saturated()}."
        )
    yield Mark("substituted", name, "look", None, text)


def _how_often(values: Floats, counts: Integers, usual: int) -> str:
    most = "once" if usual == 1 else f"{usual} times"
    first = zip(values[:MOST_TOLD], counts[:MOST_TOLD], strict=True)
    each = ", ".join(f"{value:.6g} stands {count} times" for value, count in first)
    if values.size > MOST_TOLD:
        each = f"{values[0]:.6g} stands {counts[0]} times, as others do ({values.size} in all)"
    return f"The value {each}, and no ordinary value more than {most}."


def _guess(value: float, following: float) -> str:
    """Say which limit a pile at the smallest value may stand for: the largest below the other values."""
    share, words = SUBSTITUTES[0]
    for other in SUBSTITUTES[1:]:
        if value > 0.0 and value / other[0] <= following and other[0] < share:
            share, words = other
    limit = value / share
    text = "It is the smallest. If it was put in place of values that were not detected"
    if share < 1.0:
        text += f" (it would be {words} of {limit:.6g})"
    return f"{text}, set these cells to NaN and state the limit."


def _saturated() -> str:
    way = spelled("IntervalData.saturated(rule)", "--saturated")
    return f"{way}, which reads values on a limit of the rule as lying beyond it"


def _other_limits(table: CheckedTable, j: int) -> Iterator[Mark]:
    """Find cells that say that they lie beyond another limit than that of the rule."""
    data, rule = table.intervals, table.rules[j]
    if data is None or table.rule is None or rule is None:
        return
    limited = ~data.seen[:, j] & ~data.at_random[:, j] & ~table.excused[:, j]
    sides = zip(
        ("<", ">"),
        (">=", "<="),
        (data.upper[:, j], data.lower[:, j]),
        (np.isneginf(data.lower[:, j]), np.isposinf(data.upper[:, j])),
        ends_of_rule(rule),
        strict=True,
    )
    for sign, way, ends, open_, limits in sides:
        of_rule = in_rows(limits, rule, ends.size)
        other = limited & open_ & np.isfinite(of_rule)
        other &= ~np.isclose(ends, of_rule, rtol=SAME_LIMIT, atol=0.0)
        if other.any():
            count = int(other.sum())
            text = (
                f"{count} cell{' says' if count == 1 else 's say'} {_spread(sign, ends[other])}, but "
                f"the rule says {_spread(way, of_rule[other])}. The cell's own interval goes first, and "
                "the rule speaks only of cells that say nothing. State the limit that holds, or "
                "leave this column out of the rule."
            )
            yield Mark("other limits", table.names[j], "look", None, text)


def _spread(sign: str, limits: Floats) -> str:
    least, most = limits.min(), limits.max()
    return f"{sign}{least:.6g}" if least == most else f"{sign}{least:.6g} to {sign}{most:.6g}"


def _limits_only_where_hidden(table: CheckedTable, j: int) -> bool:
    rule = table.rule
    if (
        not isinstance(rule, DetectionLimits)
        or not rule.varies_by_row
        or table.intervals is not None
    ):
        return False
    limited = np.isfinite(rule.lower[:, j]) | np.isfinite(rule.upper[:, j])
    hidden = ~table.seen[:, j]
    return bool((limited == hidden).all() and hidden.any() and not hidden.all())
