"""Rules as plain data and arrays, for saved fits, and back.

A set that is known only as a function cannot be written: a file holds no code. ``write_rule`` says so,
and ``NotSaved`` stands for such a rule in a fit that was read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.missingness.base import Missingness
from halfseen.missingness.combined import Combined
from halfseen.missingness.detection_limits import DetectionLimits
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.missingness.named_rules import Rules
from halfseen.missingness.selection import Selection
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.self_selection import SelfSelection
from halfseen.missingness.sets import Interval, SeenSet, Union

# Keeps an array under a name of its own, which it returns; and finds it again.
Keep = Callable[[str, NDArray[Any]], str]
Find = Callable[[Any], NDArray[Any]]

# Classes derived from these may mean something else.
WRITTEN = (
    DetectionLimits,
    SelfCensoring,
    LinearThreshold,
    SelfSelection,
    Selection,
    Combined,
    Rules,
)
# Rules within rules: Combined may hold Combined, but nobody needs it deeper than this.
DEEPEST = 10
# What a message shows of a rule that could not be written.
LONGEST = 200


class CannotBeWritten(InputError):
    """A rule is known only as a function, or of a class that is not halfseen's own."""


class NotSaved(Missingness):
    """Stands for a rule that could not be written to a file; ``shown`` is how it showed itself."""

    def __init__(self, shown: str) -> None:
        # It comes from a file, and goes into messages.
        self.shown = "".join(c if c.isprintable() else "?" for c in shown[:LONGEST])

    @property
    def width(self) -> None:
        """Not known."""
        return None

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        raise InputError(
            f"this fit was saved without its rule, {self.shown}: a file holds no functions. Pass "
            "missingness=."
        )

    # Everything that asks the rule.
    for_columns = seen = hidden_region = holes = check = _refuse

    def __repr__(self) -> str:
        return f"<not saved: {self.shown}>"


def write_rule(rule: Missingness, keep: Keep, depth: int = 0) -> dict[str, Any]:
    """Return a rule as plain data, its arrays kept apart; raise ``CannotBeWritten`` where it is none."""
    if depth > DEEPEST:
        raise CannotBeWritten(f"rules within rules are written at most {DEEPEST} deep.")
    if isinstance(rule, NotSaved):
        raise CannotBeWritten("it was not saved before.")
    if type(rule) not in WRITTEN:
        raise CannotBeWritten(f"{type(rule).__name__} is known only as a function.")
    if isinstance(rule, DetectionLimits):
        return {
            "kind": "detection limits",
            "lower": keep("lower", rule.lower),
            "upper": keep("upper", rule.upper),
            "labels": None if rule.labels is None else list(rule.labels),
        }
    if isinstance(rule, SelfCensoring):
        sets = [_write_set(rule.column_set(k)) for k in range(rule.width or 1)]
        return {"kind": "self-censoring", "shared": rule.width is None, "sets": sets}
    if isinstance(rule, LinearThreshold):
        return {"kind": "linear threshold", "V": keep("V", rule.V), "b": keep("b", rule.b)}
    if isinstance(rule, SelfSelection):
        groups = None if rule.groups is None else [list(group) for group in rule.groups]
        return {"kind": "self-selection", "groups": groups, "largest": rule.largest}
    if isinstance(rule, Selection):
        columns = {"outcomes": list(rule.outcomes), "by": rule.by}
        return {"kind": "selection", **columns, "when": rule.when}
    if isinstance(rule, Combined):
        parts = [[list(own), write_rule(part, keep, depth + 1)] for own, part in rule.parts]
        return {"kind": "combined", "parts": parts}
    assert isinstance(rule, Rules)
    return {"kind": "rules", **_write_texts(rule._told)}


def read_rule(said: Any, find: Find, depth: int = 0) -> Missingness:
    """Make a rule of what ``write_rule`` returned; raise an ``InputError`` for anything else."""
    kind = _field(said, "kind", str)
    if depth > DEEPEST:
        raise InputError(f"rules within rules are read at most {DEEPEST} deep.")
    if kind == "detection limits":
        rule = DetectionLimits(find(said.get("lower")), find(said.get("upper")))
        if said.get("labels") is not None:
            labels = _strings(_field(said, "labels", list))
            if len(labels) != rule.width or len(set(labels)) != len(labels):
                raise InputError("limits with names need one name for each column.")
            rule.labels = tuple(labels)
        return rule
    if kind == "self-censoring":
        sets = [_read_set(item) for item in _field(said, "sets", list)]
        shared = _field(said, "shared", bool)
        if shared and len(sets) != 1:
            raise InputError("a set for all columns is one set.")
        return SelfCensoring(sets[0] if shared else sets)
    if kind == "linear threshold":
        return LinearThreshold(find(said.get("V")), find(said.get("b")))
    if kind == "self-selection":
        groups = None if said.get("groups") is None else _field(said, "groups", list)
        return SelfSelection(groups, _field(said, "largest", bool))
    if kind == "selection":
        return Selection(_field(said, "outcomes", list), said.get("by"), _field(said, "when", bool))
    if kind == "combined":
        parts = _field(said, "parts", list)
        if not all(isinstance(part, list) and len(part) == 2 for part in parts):
            raise InputError("each part of a combined rule has columns and a rule.")
        return Combined((part[0], read_rule(part[1], find, depth + 1)) for part in parts)
    if kind == "rules":
        return Rules(_read_texts(said))
    raise InputError(f"{kind!a:.60} is no kind of rule.")


def _write_set(item: SeenSet) -> dict[str, Any]:
    if type(item) is not Interval and type(item) is not Union:
        raise CannotBeWritten(f"the set {item!r:.100} is known only as a function.")
    return {
        "union": isinstance(item, Union),
        "intervals": [
            [piece.lower, piece.upper, bool(piece.closed_lower), bool(piece.closed_upper)]
            for piece in item.pieces or ()
        ],
    }


def _read_set(said: Any) -> SeenSet:
    pieces = []
    for piece in _field(said, "intervals", list):
        if not isinstance(piece, list) or [type(part) for part in piece[2:]] != [bool, bool]:
            raise InputError("an interval has two ends, and says of each whether it belongs.")
        if not all(type(end) in (int, float) for end in piece[:2]):
            raise InputError("the ends of an interval are numbers.")
        pieces.append(Interval(*piece))
    if _field(said, "union", bool):
        return Union(pieces)
    if len(pieces) != 1:
        raise InputError("a set that is no union is one interval.")
    return pieces[0]


def _write_texts(said: Any) -> dict[str, Any]:
    """Keep a text, a list or a mapping as it was given."""
    if isinstance(said, Mapping):
        keys = [list(key) if isinstance(key, tuple) else key for key in said]
        return {"columns": keys, "texts": list(said.values())}
    return {"columns": None, "texts": said if isinstance(said, str) else list(said)}


def _read_texts(said: Mapping[str, Any]) -> Any:
    texts, columns = said.get("texts"), said.get("columns")
    if isinstance(texts, str) and columns is None:
        return texts
    texts = _strings(texts)
    if columns is None:
        return texts
    keys = [
        tuple(_strings(key)) if isinstance(key, list) else _strings([key])[0]
        for key in _list(columns)
    ]
    if not len(set(keys)) == len(keys) == len(texts):
        raise InputError("rules by column need one text for each column.")
    return dict(zip(keys, texts, strict=True))


def _field(said: Any, name: str, kind: type) -> Any:
    if not isinstance(said, dict) or not isinstance(said.get(name), kind):
        raise InputError(f"a rule or a set lacks {name!r}, or has something else there.")
    return said[name]


def _list(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise InputError("a list was expected.")
    return given


def _strings(given: Any) -> list[str]:
    if not all(isinstance(item, str) for item in _list(given)):
        raise InputError("names and texts of rules are strings.")
    return list(given)
