"""Rules in words, with the names of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halfseen.errors import InputError
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.combined import Combined
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.missingness.selection import Selection
from halfseen.missingness.self_selection import SelfSelection
from halfseen.missingness.sets import Interval, SeenSet
from halfseen.report.numbers import readable
from halfseen.solvers.result import name_some
from halfseen.solvers.summary import shorten

# Lines of a rule that are shown, and names in a line.
MOST_LINES, MOST_NAMES = 12, 8
BY_ROW = "shown beyond limits that differ by row"


def in_words(rule: Missingness, names: Sequence[str]) -> list[str] | None:
    """Say where values are shown, a line for each condition; None where a rule has no words.

    Parameters
    ----------
    rule : Missingness
    names : sequence of str
        Of the columns of the table.

    Examples
    --------
    >>> import halfseen as hs
    >>> from halfseen.report.rule_words import in_words
    >>> in_words(hs.SelfSelection([[0, 1]]), ["first bid", "second bid", "price"])
    ['Of first bid and second bid, only the largest of a row is shown.']
    >>> in_words(hs.DetectionLimits(lower=[0.5, 0.5]), ["lead", "zinc"])
    ['lead, zinc: shown at 0.5 and above.']
    """
    names = [shorten(name, 60) for name in names]
    try:
        matched = rule.for_columns(names)
    except InputError:
        return None
    # Of a rule that speaks of other columns too there are no names here.
    lines = _lines(matched, names) if matched.width in (None, len(names)) else None
    if lines is not None and len(lines) > MOST_LINES:
        rest = len(lines) - MOST_LINES + 1
        return [*lines[: MOST_LINES - 1], f"… and {rest} more conditions."]
    return lines


def compared(rule: Missingness | None, names: Sequence[str]) -> set[int]:
    """Return the columns that are hidden by the larger values of others, so that no limit is theirs.

    Parameters
    ----------
    rule : Missingness or None
    names : sequence of str
        Of the columns of the table.

    Examples
    --------
    >>> import halfseen as hs
    >>> from halfseen.report.rule_words import compared
    >>> compared(hs.SelfSelection([[0, 2]]), ["first bid", "price", "second bid"])
    {0, 2}
    """
    try:
        rule = None if rule is None else rule.for_columns(names)
    except InputError:
        return set()
    if isinstance(rule, SelfSelection):
        groups = rule.groups or [tuple(range(len(names)))]
        return {int(k) for group in groups for k in group}
    if isinstance(rule, Combined):
        parts = [
            ([int(c) for c in own], compared(part, [names[int(c)] for c in own]))
            for own, part in rule.parts
        ]
        return {own[k] for own, held in parts for k in held}
    return set()


def _lines(rule: Missingness, names: Sequence[str]) -> list[str] | None:
    if isinstance(rule, Combined):
        parts = [_lines(part, [names[int(c)] for c in own]) for own, part in rule.parts]
        if any(part is None for part in parts):
            return None
        return [line for part in parts for line in part or ()]
    if isinstance(rule, SelfSelection):
        return _winners(rule, names)
    if isinstance(rule, Selection):
        told = name_some([names[k] for k in rule.places], MOST_NAMES)
        when = "positive" if rule.when else "not positive"
        return [f"{told}: shown where the index behind {names[rule.index]} is {when}."]
    if isinstance(rule, LinearThreshold):
        return _thresholds(rule, names)
    if isinstance(rule, ColumnwiseMissingness):
        return _by_column(rule, names)
    return None


def _winners(rule: SelfSelection, names: Sequence[str]) -> list[str]:
    groups = rule.groups or [tuple(range(len(names)))]
    word = "largest" if rule.largest else "smallest"
    return [
        f"Of {_and([names[int(k)] for k in group])}, only the {word} of a row is shown."
        for group in groups
    ]


def _and(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMES:
        return name_some(list(names), MOST_NAMES)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _thresholds(rule: LinearThreshold, names: Sequence[str]) -> list[str]:
    lines = []
    for name, weights, bound, never in zip(names, rule.V, rule.b, rule.never_seen, strict=True):
        if never:
            lines.append(f"{name}: never shown.")
        elif weights.any():
            lines.append(f"{name}: shown where {_inequality(weights, float(bound), names)}.")
    return lines or ["Every value is shown."]


def _inequality(weights: np.ndarray, bound: float, names: Sequence[str]) -> str:
    """Write ``weights @ row <= bound`` with as few signs as can be."""
    sign = "≤"
    # Turned round where that leaves fewer minus signs.
    minus, plus = (weights < 0.0).sum(), (weights > 0.0).sum()
    if minus > plus or (minus == plus and bound < 0.0):
        weights, bound, sign = -weights, -bound, "≥"
    terms = ""
    order = [*np.flatnonzero(weights > 0.0), *np.flatnonzero(weights < 0.0)]
    for k in order:
        size = abs(float(weights[k]))
        term = names[k] if size == 1.0 else f"{readable(size)} × {names[k]}"
        between = (" − " if weights[k] < 0.0 else " + ") if terms else ""
        terms += between + term
    if bound == 0.0 and len(order) == 2 and weights[order[0]] == -weights[order[1]] == 1.0:
        return f"{names[order[0]]} {sign} {names[order[1]]}"
    return f"{terms} {sign} {readable(bound)}"


def _by_column(rule: ColumnwiseMissingness, names: Sequence[str]) -> list[str] | None:
    alike: dict[str, list[str]] = {}
    for j, name in enumerate(names):
        shown = rule.column_rule(j).seen_set
        if shown is None:
            text = BY_ROW
        elif shown.pieces is None:
            return None
        else:
            text = _set_in_words(shown)
        alike.setdefault(text, []).append(name)
    always = "always shown"
    return [
        f"{name_some(own, MOST_NAMES)}: {text}."
        for text, own in alike.items()
        if text != always or len(alike) > 1
    ] or ["Every value is shown."]


def _set_in_words(shown: SeenSet) -> str:
    pieces = shown.pieces or ()
    if any(np.isinf(p.lower) and np.isinf(p.upper) for p in pieces):
        return "always shown"
    return "shown " + ", and ".join(map(_piece_in_words, pieces))


def _piece_in_words(piece: Interval) -> str:
    low, high = readable(piece.lower), readable(piece.upper)
    if np.isinf(piece.lower):
        return f"at {high} and below" if piece.closed_upper else f"below {high}"
    if np.isinf(piece.upper):
        return f"at {low} and above" if piece.closed_lower else f"above {low}"
    return f"from {low} to {high}"
