"""What the page says of the rule: the rule itself, or how many cells say their own limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.data.interval_data import IntervalData
from halfseen.missingness.base import Missingness
from halfseen.missingness.truncation import RowTruncation
from halfseen.solvers.summary import shorten

if TYPE_CHECKING:
    from halfseen.results import Fit
    from halfseen.solvers.result import Source

LONGEST_RULE = 500
# Where an object lies in memory says nothing, and differs from run to run.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def given_rule(source: Source) -> Missingness | None:
    """Return the rule as it was given, in the units of the table."""
    return source.missingness if source.original is None else source.original_rule


def rule_of(fit: Fit) -> dict[str, Any]:
    """Say which rule was believed: a text, and the rule as it is written, where there is one."""
    source = fit.source
    if source is None:
        return {
            "text": "This fit does not hold its table and its rule. Whatever hid the values is believed "
            "to be known.",
            "code": None,
        }
    rule = given_rule(source)
    own = _own_limits(source.X if source.original is None else source.original)
    texts, code = [], None
    if own:
        many = "One cell says its own limits" if own == 1 else f"{own:,} cells say their own limits"
        texts.append(f"{many}, as in “<0.05”, and these are believed to be right.")
    if rule is not None:
        code = shorten(ADDRESS.sub("", repr(rule)), LONGEST_RULE)
        texts.append(_introduction(rule, bool(own)))
        if "array of shape" in code:
            texts.append("The limits are listed under “Column by column”.")
    elif not own:
        texts.append("No rule was given.")
    if rule is None and _blank(fit, own):
        texts.append("Blank cells are believed to be missing at random.")
    if own or rule is not None:
        texts.append("A wrong limit moves the mean.")
    return {"text": " ".join(texts), "code": code}


def _introduction(rule: Missingness, some_say: bool) -> str:
    if isinstance(rule, RowTruncation):
        return "Rows are shown if this set holds them, and not at all otherwise."
    who = "Of the other cells, a" if some_say else "A"
    return (
        f"{who} value is shown where this rule holds, and hidden otherwise; it is told in the units "
        "of the table."
    )


def _own_limits(table: Any) -> int:
    """Count the cells that say their own limits."""
    if not isinstance(table, IntervalData):
        return 0
    limited = np.isfinite(table.lower) | np.isfinite(table.upper)
    return int((limited & ~table.seen).sum())


def _blank(fit: Fit, own: int) -> bool:
    """Whether cells are hidden that say nothing."""
    hidden = round(float(np.sum(1.0 - fit.seen_share)) * fit.rows)
    return hidden > own
