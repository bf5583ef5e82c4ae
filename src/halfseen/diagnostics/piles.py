"""Values that stand where others would be: on a limit, in place of what was not detected, at an end."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from halfseen.diagnostics.marks import Mark
from halfseen.errors import spelled
from halfseen.solvers.prepare import FEWEST_PILED, PILED_RATIO

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


def piles(values: Floats, name: str, stated: tuple[Floats, Floats], hidden: bool) -> Iterator[Mark]:
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
    found, words, share = max(places, key=lambda place: counts[place[0]].sum())
    found = found[counts[found] > PILED_RATIO * usual]
    if not found.size:
        yield from _at_ends(name, distinct, counts, stated, hidden)
        return
    text = _how_often(distinct[found], counts[found], usual)
    if share == 1.0:
        text = f"{text} {_beyond(distinct[found], stated)}"
        yield Mark("on the limit", name, "problem", None, text)
        return
    text += (
        f" It is {words} of {distinct[found[0]] / share:.4g}, a common substitute for values that "
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
    name: str,
    distinct: Floats,
    counts: Integers,
    stated: tuple[Floats, Floats],
    hidden: bool,
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
    told = zip(values[:MOST_TOLD], counts[:MOST_TOLD], strict=True)
    each = ", ".join(f"{value:.6g} stands {count} times" for value, count in told)
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
    told = spelled("IntervalData.saturated(rule)", "--saturated")
    return f"{told}, which reads values on a limit of the rule as lying beyond it"
