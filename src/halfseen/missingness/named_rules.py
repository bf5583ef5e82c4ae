"""``rules``: what hides the values of a table, told column by column in words."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike

from halfseen.checks import is_iterable
from halfseen.errors import InputError
from halfseen.missingness.base import Generator, Mask, Missingness, Scale, Values, listed
from halfseen.missingness.combined import Combined
from halfseen.missingness.grammar import read_rule
from halfseen.missingness.holes import Holes, Region, Scan
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.missingness.rule_parts import Inequality, Name, Piece, Rule, quoted
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.self_selection import SelfSelection
from halfseen.missingness.sets import Interval, SeenSet, everything

# Longer names are not compared with those of the table: the comparison grows with their product.
LONGEST_COMPARED = 100


def rules(
    told: str | Iterable[str] | Mapping[Any, str], *, columns: Iterable[str] | None = None
) -> Missingness:
    """Say in words where the columns of a table are shown.

    ==============================  ==================================================================
    ``lead: >= 0.5``                values from 0.5 upwards; also ``>``, ``<=``, ``<``
    ``temp: -40..85``               values from -40 to 85; an end may be ``inf`` or ``-inf``
    ``x: 0..1 | 3..5``              values in either range
    ``lead: 0 < lead <= 5``         the same as ``0..5``, but without 0
    ``wage: hours - 2*kids >= 10``  all values of wage, in rows in which this holds
    ``bid1, bid2, bid3: largest``   only the largest value of the row; or ``smallest``
    ``a, b: >= 0``                  both columns have this rule
    ``"blood lead": always``        every value; so are columns that no rule mentions
    ==============================  ==================================================================

    Names with spaces or other odd characters stand in double quotes or backticks. The whole grammar
    is in ``halfseen.missingness.grammar``.

    Parameters
    ----------
    told : str, list of str, or dict
        A rule, several rules, or for each name (or tuple of names) what follows the colon.
    columns : sequence of str, optional
        Names of the columns of the table. Without them the names are matched when the rule meets
        its table.

    Returns
    -------
    Missingness
        With ``columns``, the simplest rule that says so: ``SelfCensoring`` for sets,
        ``SelfSelection`` for a choice, ``LinearThreshold`` for columns that comparisons tie together,
        and ``Combined`` where there are several of these. Without, a rule that becomes this one by
        ``for_columns(names)``.

    Raises
    ------
    RuleError
        An ``InputError`` that marks the character at which a rule goes wrong.

    Notes
    -----
    Whether an end belongs to a set (``>=`` or ``>``) is kept. In comparisons with other columns both
    are the same: equality has probability zero.

    Columns that comparisons tie together may have half-lines (``>= c``, ``<= c``) as sets of their
    own, but no ranges.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.rules({"lead": ">=0.5", "temp": "-40..85"})
    >>> rule.for_columns(["lead", "ph", "temp"])
    SelfCensoring([at_least(0.5), everything, between(-40, 85)])
    >>> hs.rules("wage: hours - 2*kids >= 10", columns=["hours", "kids", "wage"]).seen([[14, 3, 9]])
    array([[ True,  True, False]])
    """
    rule = Rules(told)
    return rule if columns is None else rule.for_columns(_read_columns(columns))


class Rules(Missingness):
    """Rules that know the names of their columns, but not yet the table. Made by ``rules``."""

    def __init__(self, told: str | Iterable[str] | Mapping[Any, str]) -> None:
        self._told: Any = told
        if not isinstance(told, str):
            # Kept as they were, whatever happens to the caller's.
            self._told = dict(told) if isinstance(told, Mapping) else _as_list(told)
        self._rules = tuple(read_rule(text) for text in _texts(self._told))
        if not self._rules:
            raise InputError('rules needs at least one rule, such as "lead: >= 0.5"; got none.')
        self._sets: dict[str, SeenSet] = {}
        self._lines: dict[str, Inequality] = {}
        self._choices: list[Rule] = []
        seen: set[str] = set()
        for rule in self._rules:
            if rule.choice is not None:
                self._choices.append(rule)
            for target in rule.targets:
                if target.text in seen:
                    rule.fail(
                        target.position,
                        f"a column without a rule; {target.text!r} has one before, and a column may "
                        "have only one (pieces of a set are joined by |)",
                    )
                seen.add(target.text)
                if rule.choice is None:
                    self._add(rule, target)
        self._tied = _tied_together(self._lines)
        for group in self._tied:
            self._check_tied(group)

    def _add(self, rule: Rule, target: Name) -> None:
        condition = _condition(rule, target.text)
        if isinstance(condition, Inequality):
            self._lines[target.text] = condition
        else:
            self._sets[target.text] = condition

    @property
    def width(self) -> None:
        """Not known before the names of the table are."""
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that a rule speaks of, each once."""
        spoken = (name.text for rule in self._rules for name in (*rule.targets, *rule.others))
        return tuple(dict.fromkeys(spoken))

    # Any, not Self: what comes out is a SelfCensoring, a LinearThreshold, ...
    def for_columns(self, names: Sequence[str]) -> Any:
        """Return the simplest rule that says the same of a table with these columns."""
        names = [str(name) for name in names]
        self._check_names(names)
        place = {name: k for k, name in enumerate(names)}
        bound = set().union(*self._tied)
        sets = {
            name: shown
            for name, shown in self._sets.items()
            if name not in bound and shown != everything
        }
        groups = [[place[target.text] for target in rule.targets] for rule in self._choices]
        # Where one rule can say it all, it speaks of the whole table.
        if not self._tied and not self._choices:
            return SelfCensoring([sets.get(name, everything) for name in names])
        if len(self._tied) == 1 and not sets and not self._choices:
            return self._thresholds(names)
        largest = {bool(rule.choice) for rule in self._choices}
        if not self._tied and not sets and len(largest) == 1:
            return SelfSelection(groups, largest=largest.pop())
        parts: list[tuple[list[int], Missingness]] = []
        if sets:
            own = sorted(sets, key=place.__getitem__)
            parts.append(
                ([place[name] for name in own], SelfCensoring([sets[name] for name in own]))
            )
        for rule, group in zip(self._choices, groups, strict=True):
            parts.append((group, SelfSelection(largest=bool(rule.choice))))
        for tied in self._tied:
            own = sorted(tied, key=place.__getitem__)
            parts.append(([place[name] for name in own], self._thresholds(own)))
        return Combined(parts)

    def _check_names(self, names: list[str]) -> None:
        """Raise a ``RuleError`` for a column that the table does not have, or has twice."""
        count = Counter(names)
        for rule in self._rules:
            for name in (*rule.targets, *rule.others):
                if count[name.text] > 1:
                    rule.fail(
                        name.position,
                        f"a name that is told once; the data have {count[name.text]} columns "
                        f"{name.text!r}",
                    )
                if count[name.text] == 0:
                    close = _closest(name.text, names)
                    rule.fail(
                        name.position,
                        f"a column of the data, which are {listed(names)}; there is no {name.text!r}"
                        + (f". Did you mean {close!r}?" if close else ""),
                    )

    def _check_tied(self, group: set[str]) -> None:
        """Raise a ``RuleError`` for a column whose own rule no threshold can say."""
        for rule in self._rules:
            for target in rule.targets:
                if target.text not in group or target.text in self._lines:
                    continue
                tied = listed(sorted(group - {target.text}))
                if rule.choice is not None:
                    rule.fail(
                        target.position,
                        f"a column that no comparison speaks of; {target.text!r} is compared with "
                        f"{tied} too, and a choice together with comparisons is not supported. Leave "
                        "one of the two rules out",
                    )
                if _half_line(self._sets[target.text]) is None:
                    rule.fail(
                        rule.pieces[0].position,
                        f"one limit, such as >= 0.5; {target.text!r} is compared with {tied}, and then "
                        "ranges and | are not supported for its own values. Keep the limit that "
                        "matters, or leave one of the two rules out",
                    )

    def _thresholds(self, names: Sequence[str]) -> LinearThreshold:
        """Return the comparisons as ``V y <= b``, with half-lines of single columns among them."""
        place = {name: k for k, name in enumerate(names)}
        V, b = np.zeros((len(names), len(names))), np.zeros(len(names))
        for name, row in place.items():
            if name in self._lines:
                inequality = self._lines[name]
                for other, weight in inequality.weights.items():
                    V[row, place[other]] = -float(weight)
                b[row] = float(inequality.constant)
            elif name in self._sets:
                line = _half_line(self._sets[name])
                assert line is not None
                V[row, row], b[row] = line
        return LinearThreshold(V, b)

    def _unmatched(self) -> NoReturn:
        raise InputError(
            "these rules tell their columns by name, but the names of the table are not known here. "
            "Pass them with rules(..., columns=names), or match them first with "
            "rule.for_columns(names)."
        )

    def check_width(self, width: int) -> None:
        """Raise an ``InputError``: the names of the columns must be matched first."""
        self._unmatched()

    def seen(self, Y: ArrayLike, random_state: int | Generator | None = None) -> Mask:
        """Raise an ``InputError``: the names of the columns must be matched first."""
        self._unmatched()

    def hidden_region(self, X: ArrayLike) -> Region:
        """Raise an ``InputError``: the names of the columns must be matched first."""
        self._unmatched()

    def holes(self, X: Values, scan: Scan) -> Holes:
        """Raise an ``InputError``: the names of the columns must be matched first."""
        self._unmatched()

    def check(self, X: Values, names: Sequence[str], at_random: Mask | None = None) -> None:
        """Raise a ``ContradictionError`` if ``X`` shows what the rules would hide."""
        self.for_columns(names).check(X, names, at_random)

    def transformed(self, transforms: Sequence[Scale], names: Sequence[str]) -> Missingness:
        """Return the rule for these columns on other scales, where it can be told there."""
        return cast(Missingness, self.for_columns(names).transformed(transforms, names))

    def __repr__(self) -> str:
        return f"rules({self._told!r})"


def _tied_together(lines: Mapping[str, Inequality]) -> list[set[str]]:
    """Return the sets of columns that comparisons tie together."""
    groups: list[set[str]] = []
    for target, line in lines.items():
        group = {target, *line.weights}
        apart = [other for other in groups if not other & group]
        groups = [*apart, group.union(*(other for other in groups if other & group))]
    return groups


def _condition(rule: Rule, target: str) -> SeenSet | Inequality:
    """Return where one column is shown: a set of its own values, or an inequality with others."""
    if len(rule.pieces) == 1 and len(rule.pieces[0].inequalities) == 1:
        (inequality,) = rule.pieces[0].inequalities
        if set(inequality.weights) != {target}:
            return inequality
    shown: SeenSet | None = None
    for piece in rule.pieces:
        interval = _interval(rule, piece, target)
        shown = interval if shown is None else shown | interval
    assert shown is not None
    _check_hides(rule, shown)
    return shown


def _interval(rule: Rule, piece: Piece, target: str) -> Interval:
    """Return a piece as an interval of the values of the column itself."""
    if piece.interval is not None:
        return piece.interval
    lower, upper = (-np.inf, False), (np.inf, True)
    for inequality in piece.inequalities:
        if set(inequality.weights) != {target}:
            what = "pieces joined by |" if len(rule.pieces) > 1 else "a double comparison"
            rule.fail(
                piece.position,
                f"a condition on {target!r} alone, since {what} may not speak of other columns; "
                "write one comparison, such as a - b >= 0",
            )
        weight = inequality.weights[target]
        limit = _limit(rule, piece, -inequality.constant / weight)
        # Of two equal ends the open one is the tighter.
        if weight > 0:
            lower = max(lower, (limit, inequality.strict))
        else:
            upper = min(upper, (limit, not inequality.strict))
    if not lower[0] < upper[0]:
        rule.fail(
            piece.end,
            f"limits with something between them; no value is above {lower[0]:.12g} and below "
            f"{upper[0]:.12g} at once",
        )
    # At infinity an end counts as closed, as in every interval that the library makes.
    return Interval(lower[0], upper[0], lower[0] == -np.inf or not lower[1], upper[1])


def _limit(rule: Rule, piece: Piece, value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        rule.fail(piece.position, "a limit below 1e308 in size; this one is larger")


def _check_hides(rule: Rule, shown: SeenSet) -> None:
    """Raise a ``RuleError`` if a set leaves out single values alone, which never occur."""
    pieces = shown.pieces
    assert pieces is not None
    whole = pieces[0].lower == -np.inf and pieces[-1].upper == np.inf and len(pieces) > 1
    if whole and all(a.upper == b.lower for a, b in itertools.pairwise(pieces)):
        rule.fail(
            rule.pieces[0].position,
            f"a set that hides something; this one hides only {pieces[0].upper:.12g}, which has "
            "probability zero. Write always if every value is shown",
        )


def _half_line(shown: SeenSet) -> tuple[float, float] | None:
    """Return (v, b) of a set ``v y <= b``; None if it is not of that form."""
    if not isinstance(shown, Interval):
        return None
    if shown.upper == np.inf:
        return (0.0, 0.0) if shown.lower == -np.inf else (-1.0, -shown.lower)
    return (1.0, shown.upper) if shown.lower == -np.inf else None


def _as_list(told: Any) -> list[Any]:
    if not is_iterable(told) or isinstance(told, bytes):
        raise InputError(
            'rules takes a rule such as "lead: >= 0.5", a list of them, or a dict such as '
            f'{{"lead": ">= 0.5"}}; got {told!r}.'
        )
    return list(told)


def _texts(told: str | list[Any] | Mapping[Any, Any]) -> list[str]:
    """Return each rule as one text, with its names before the colon."""
    if isinstance(told, str):
        return [told]
    if not isinstance(told, Mapping):
        for k, text in enumerate(told):
            if not isinstance(text, str):
                raise InputError(f'rule {k} must be a text such as "lead: >= 0.5"; got {text!r}.')
        return [str(text) for text in told]
    texts = []
    for key, text in told.items():
        names = key if isinstance(key, tuple) else (key,)
        if not names or not all(isinstance(name, str) for name in names):
            raise InputError(
                f"a key of rules is the name of a column, or a tuple of names; got {key!r}."
            )
        if not isinstance(text, str):
            raise InputError(
                f'the rule of {key!r} must be a text such as ">= 0.5", "0..5" or "always"; got '
                f"{text!r}."
            )
        texts.append(f"{', '.join(map(quoted, names))}: {text}")
    return texts


def _read_columns(columns: Any) -> list[str]:
    if isinstance(columns, str) or not is_iterable(columns):
        raise InputError(f"columns must be the names of the columns, in order; got {columns!r}.")
    return [str(name) for name in columns]


def _closest(name: str, names: Sequence[str]) -> str | None:
    """Return the name that was probably meant, or None."""
    if len(name) > LONGEST_COMPARED:
        return None
    for other in names:
        if other.strip().casefold() == name.strip().casefold():
            return other
    short = [other for other in names if len(other) <= LONGEST_COMPARED]
    return next(iter(difflib.get_close_matches(name, short, n=1)), None)
