"""The outcomes of a regression: what is seen of them, and what kind each is."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from halfseen.checks import is_iterable, real_array
from halfseen.data.interval_data import IntervalData
from halfseen.data.table import check_finite
from halfseen.errors import ContradictionError, InputError, NotIdentifiedError, spelled, warn
from halfseen.missingness.base import Missingness
from halfseen.missingness.holes import read_cells
from halfseen.missingness.named_rules import rules as read_rules
from halfseen.missingness.selection import Selection
from halfseen.missingness.truncation import RowTruncation
from halfseen.solvers.full_information.problem import Problem, read_problem, units_of_intervals
from halfseen.solvers.prepared_table import limits_reached, warn_of_piles
from halfseen.solvers.result import name_some

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

KINDS = ("continuous", "binary", "ordered")


@dataclass(frozen=True, eq=False)
class Carried:
    """Columns beside the outcomes, of which every value is seen."""

    names: tuple[str, ...]
    values: Floats

    @property
    def units(self) -> tuple[Floats, Floats]:
        """Centre and scale of each."""
        spread = self.values.std(axis=0)
        return self.values.mean(axis=0), np.where(spread > 0.0, spread, 1.0)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What is seen of the outcomes.

    Attributes
    ----------
    data : IntervalData
        Values and intervals: those of a latent outcome lie between its cut points.
    codes : array of shape (n, q)
        Of a latent outcome the number of the category of each row; NaN elsewhere.
    rule : Missingness or None
        What hides the rest, apart from selection.
    at_random : boolean array of shape (n, q)
        Cells about which no rule says anything.
    kinds : tuple of str
        "continuous", "binary" or "ordered".
    categories : dict
        For a binary or an ordered outcome, its categories from the lowest to the highest.
    selections : tuple of Selection
    carried : Carried or None
        Columns that are no outcomes, but that the rule compares outcomes with.
    """

    data: IntervalData
    codes: Floats
    rule: Missingness | None
    at_random: Mask
    kinds: tuple[str, ...]
    categories: dict[str, tuple[Any, ...]]
    selections: tuple[Selection, ...]
    carried: Carried | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the outcomes."""
        return self.data.names

    @property
    def latent(self) -> Mask:
        """Outcomes of which no value is ever seen, and whose residuals have unit variance."""
        return np.array([kind != "continuous" for kind in self.kinds])

    def unselected(self) -> Mask:
        """Cells that selection hides."""
        mask = np.zeros(self.data.shape, dtype=bool)
        for one in self.selections:
            chosen = (self.data.lower[:, one.index] >= 0.0) == one.when
            for j in one.places:
                mask[:, j] |= ~chosen
        return mask

    def take(self, rows: NDArray[np.intp]) -> Outcomes:
        """Return those of some of the rows."""
        more = self.carried
        return replace(
            self,
            data=self.data.take(rows),
            codes=self.codes[rows],
            rule=None if self.rule is None else self.rule.for_rows(rows, len(self.data)),
            at_random=self.at_random[rows],
            carried=None if more is None else replace(more, values=more.values[rows]),
        )

    @property
    def unexplained(self) -> Mask:
        """Blank cells of which nothing says why they are."""
        if self.rule is not None:
            return np.zeros(self.data.shape, dtype=bool)
        return np.asarray(self.data.blank & ~self.at_random)

    def first_cuts(self) -> dict[str, Floats]:
        """Return where the cut points of ordered outcomes begin."""
        out = {}
        for j, name in enumerate(self.names):
            if self.kinds[j] == "ordered":
                known = self.codes[~np.isnan(self.codes[:, j]), j]
                counts = np.bincount(known.astype(int), minlength=len(self.categories[name]))
                out[name] = cuts_of(counts)
        return out

    def cut_at(self, cuts: Mapping[str, Floats]) -> Outcomes:
        """Return them with the categories of latent outcomes between these cut points."""
        lower, upper = self.data.lower.copy(), self.data.upper.copy()
        for j in np.flatnonzero(self.latent):
            ends = np.concatenate([[-np.inf], cuts.get(self.names[j], np.zeros(1)), [np.inf]])
            known = ~np.isnan(self.codes[:, j])
            code = self.codes[known, j].astype(int)
            lower[known, j], upper[known, j] = ends[code], ends[code + 1]
        return replace(self, data=self.data.with_ends(lower, upper))

    def problem(self, units: tuple[Floats, Floats] | None = None) -> Problem:
        """Return them as the engine reads a table, in given units or those of what is seen.

        Columns that the rule compares them with come after them; units may speak of these too.
        """
        data, blank, units = self.data, self.at_random & ~self.data.seen, units or self._units()
        more = self.carried
        if more is not None:
            lower, upper = (np.hstack([end, more.values]) for end in (data.lower, data.upper))
            data = IntervalData(lower, upper, [*data.names, *more.names])
            blank = np.hstack([blank, np.zeros(more.values.shape, dtype=bool)])
            if units[0].size < len(data.names):
                units = np.append(units[0], more.units[0]), np.append(units[1], more.units[1])
        return read_problem(data, self.rule, blank, units=units)

    def _units(self) -> tuple[Floats, Floats]:
        """Centre and scale of what is known of each outcome; latent ones have units of their own."""
        centre, scale = np.zeros(len(self.names)), np.ones(len(self.names))
        own = np.flatnonzero(~self.latent)
        if own.size:
            lower, upper = self.data.lower[:, own], self.data.upper[:, own]
            some = IntervalData(lower, upper, [self.names[j] for j in own])
            centre[own], scale[own] = units_of_intervals(some)
        return centre, scale


@dataclass(frozen=True, eq=False)
class Column:
    """One outcome as it was read.

    Attributes
    ----------
    lower, upper : arrays of shape (n,)
        Of a latent outcome the numbers of categories, as values; NaN where nothing is known.
    kind : str
    categories : tuple
        Of a latent outcome, from the lowest to the highest.
    not_detected : boolean array of shape (n,), or None
        Cells that are said to be hidden, but not where.
    """

    lower: Floats
    upper: Floats
    kind: str
    categories: tuple[Any, ...] = ()
    not_detected: Mask | None = None


def cuts_of(counts: NDArray[Any]) -> Floats:
    """Return cut points of a standard normal with the shares of some categories, the first at 0."""
    cuts = ndtri(np.cumsum(counts)[:-1] / np.sum(counts))
    return np.asarray(cuts - cuts[0])


def read_outcomes(
    columns: Mapping[str, Any],
    given: Any = None,
    kinds: Mapping[str, Any] | None = None,
    missing_at_random: Any = None,
    carried: Carried | None = None,
    cuts: Mapping[str, Floats] | None = None,
    quiet: bool = False,
) -> Outcomes:
    """Read outcomes by name, the rules about them, and what kind each is.

    ``columns`` has an ``IntervalData`` of one column, or an array, for each outcome; None for the index
    of a selection that is not in the table. ``cuts`` are cut points that were learned from other rows:
    then a category need not have a row of its own. With ``quiet``
    nobody is warned of blank cells.
    """
    names = list(columns)
    rule, selections = split_rules(given)
    selections, kinds = known_kinds(names, selections, kinds)
    if rule is not None:
        rule = rule.for_columns([*names, *(() if carried is None else carried.names)])
    read = [
        _read_column(name, column, kinds.get(name))
        if column is not None
        else index_of(name, selections, columns, kinds.get(name, "binary"))
        for name, column in columns.items()
    ]
    if cuts is None:
        need_every_category(names, read)
    outcomes = Outcomes(
        _intervals(names, read),
        np.column_stack(
            [one.lower if one.categories else np.full(len(one.lower), np.nan) for one in read]
        ),
        rule,
        np.zeros((len(read[0].lower), len(read)), dtype=bool),
        tuple(column.kind for column in read),
        {name: one.categories for name, one in zip(names, read, strict=True) if one.categories},
        selections,
        carried,
    )
    outcomes = outcomes.cut_at(outcomes.first_cuts() if cuts is None else cuts)
    outcomes = replace(outcomes, at_random=_at_random(outcomes, missing_at_random))
    if not quiet:
        # A table of intervals says itself that a cell may be anything.
        plain = [not isinstance(columns[name], IntervalData) for name in names]
        warn_of_blanks(outcomes.names, outcomes.unexplained & plain)
        warn_of_piles(limits_reached(outcomes.data.values, rule), outcomes.names, rule)
    return outcomes


def known_kinds(
    names: Sequence[str], selections: Sequence[Selection], kinds: Mapping[str, Any] | None
) -> tuple[tuple[Selection, ...], dict[str, Any]]:
    """Match selections with outcomes; return what is known of the kinds of these before any row."""
    _check_selections(names, selections, kinds_by_name(kinds))
    matched = tuple(one.for_columns(names) for one in selections)
    return matched, {names[one.index]: "binary" for one in matched} | _told_kinds(names, kinds)


def _check_selections(
    names: Sequence[str], selections: Sequence[Selection], kinds: Mapping[str, Any]
) -> None:
    """Raise where a selection speaks of what has no equation, or of an index that is no index."""
    for one in selections:
        for name in (*one.outcomes, one.by):
            if isinstance(name, str) and name not in names:
                raise InputError(
                    f"{one!r} speaks of {name}, which has no equation; the equations are of "
                    f"{name_some(list(names), 8)}. Say what it depends on: "
                    "regress({'wage': 'educ', 'works': 'educ + kids'}, data, "
                    "Selection('wage', by='works'))."
                )
        if kinds.get(str(one.by)) in ("continuous", "ordered"):
            raise InputError(
                f"{one.by} is the index of a selection, of which the sign alone is seen, so it cannot "
                f"be {kinds[str(one.by)]}. Leave it out of kinds."
            )


def split_rules(given: Any) -> tuple[Missingness | None, tuple[Selection, ...]]:
    """Tell selections from the rule for all other cells."""
    if given is None:
        return None, ()
    if isinstance(given, Missingness):
        parts: list[Any] = [given]
    elif isinstance(given, str | Mapping):
        parts = [read_rules(given)]
    elif is_iterable(given):
        several = list(given)
        texts = [one for one in several if isinstance(one, str)]
        parts = [one for one in several if not isinstance(one, str)]
        parts += [read_rules(texts)] if texts else []
    else:
        parts = [given]
    parts = [read_rules(one) if isinstance(one, Mapping) else one for one in parts]
    wrong = [one for one in parts if not isinstance(one, Missingness)]
    if wrong:
        raise InputError(
            "rules must be rules such as rules({'lead': '>=0.5'}) or Selection('wage', by='works'), "
            f"or a list of them; got {wrong[0]!r}."
        )
    if any(isinstance(one, RowTruncation) for one in parts):
        raise InputError(
            "RowTruncation shows whole rows or none; rows that are not in the table are told by "
            "truncated={'wage': '>=0'}, for one outcome."
        )
    others = [one for one in parts if not isinstance(one, Selection)]
    if len(others) > 1:
        raise InputError(
            f"beside Selection there may be one rule; got {len(others)}. Put them together: "
            "rules([...]) takes several, and Combined takes any rules of different columns."
        )
    chosen = tuple(one for one in parts if isinstance(one, Selection))
    return (others[0] if others else None), chosen


def kinds_by_name(kinds: Any) -> dict[str, Any]:
    """Return what was said about kinds, by names of outcomes."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise InputError(
            'kinds must say the kind of outcomes by name, as in kinds={"works": "binary"}; got '
            f"{kinds!r}."
        )
    return dict(kinds)


def _told_kinds(names: Sequence[str], kinds: Mapping[str, Any] | None) -> dict[str, Any]:
    """Read what was said about the kinds of outcomes."""
    told = kinds_by_name(kinds)
    for name, kind in told.items():
        if name not in names:
            raise InputError(
                f"kinds speaks of {name!r}, but the outcomes are {name_some(list(names), 8)}."
            )
        if isinstance(kind, str) and kind not in KINDS:
            raise InputError(
                f"the kind of an outcome is one of {', '.join(KINDS)}, or the list of its categories "
                f"from the lowest to the highest; got {kind!r} for {name}."
            )
        if not isinstance(kind, str) and (not is_iterable(kind) or len(list(kind)) < 2):
            raise InputError(f"at least 2 categories are needed for {name}; got {kind!r}.")
        _check_categories(name, kind)
    return {name: kind if isinstance(kind, str) else list(kind) for name, kind in told.items()}


def _check_categories(name: str, kind: Any) -> None:
    """Raise where the categories that were listed cannot be told apart."""
    if isinstance(kind, str):
        return
    listed = list(kind)
    try:
        different = len(set(listed)) == len(listed)
    except TypeError:
        different = False
    if not different:
        raise InputError(
            f"the categories of {name} must be texts or numbers, each of them once; got {kind!r}."
        )


def _read_column(name: str, column: Any, told: Any) -> Column:
    """Read one outcome."""
    if isinstance(column, IntervalData):
        lower, upper = column.lower[:, 0], column.upper[:, 0]
        if told in (None, "continuous"):
            doubt_two_values(name, lower[lower == upper], told)
            return Column(lower, upper, "continuous", not_detected=column.not_detected[:, 0])
        if not (column.seen | column.at_random).all():
            raise InputError(
                f"{name} is to be {told if isinstance(told, str) else 'ordered'}, but some of its cells "
                "are intervals. Write the categories as they are."
            )
        column = column.values[:, 0]
    values = np.asarray(column)
    if told is None and are_truths(values):
        told = "binary"
    if told is None or told == "continuous":
        numbers = _numbers(name, values)
        doubt_two_values(name, numbers[~np.isnan(numbers)], told)
        return Column(
            np.where(np.isnan(numbers), -np.inf, numbers),
            np.where(np.isnan(numbers), np.inf, numbers),
            "continuous",
        )
    return read_categories(name, values, told)


def order_of(
    name: str, told: Any, levels: Sequence[Any], ordered: bool, present: Collection[Any]
) -> Any:
    """Return what is said of the kind of a column of categories, with the order that these have."""
    if told not in (None, "binary", "ordered"):
        return told
    found = [level for level in levels if level in present]
    if len(found) > 2 and not ordered:
        texts = [*map(str, found)]
        raise InputError(
            f"{name} is a column of categories without an order: {name_some(texts, 5)}. Say it, from "
            f"the lowest to the highest, as in {kind_as_said(name, texts)}, or give the column ordered "
            "categories."
        )
    return told if told == "binary" and len(found) > 2 else found


def are_truths(values: NDArray[Any]) -> bool:
    """Whether a column holds true and false, and perhaps None where it is not known."""
    if values.dtype != object:
        return values.dtype == bool
    known = [one for one in values.tolist() if one is not None]
    return bool(known) and all(isinstance(one, bool | np.bool_) for one in known)


def doubt_two_values(name: str, seen: Floats, told: Any) -> None:
    """Raise where an outcome has two values alone, and nobody said what it is."""
    if told is None and np.array_equal(np.unique(seen), (0.0, 1.0)):
        raise InputError(
            f"{name} holds 0 and 1 alone. Say {kind_as_said(name, 'binary')} for a probit (a latent "
            f"number whose sign is seen), or {kind_as_said(name, 'continuous')} to take them as "
            "measurements."
        )


def kind_as_said(name: str, kind: str | Sequence[str]) -> str:
    """Spell the kind of an outcome, or its categories, for whoever reads the message."""
    written = kind if isinstance(kind, str) else " < ".join(kind)
    return spelled(f"kinds={{{name!r}: {kind!r}}}", f"--kind {shlex.quote(f'{name}: {written}')}")


def _numbers(name: str, values: NDArray[Any]) -> Floats:
    """Read the values of a continuous outcome; NaN where hidden."""
    try:
        numbers = real_array(name, values)
    except InputError:
        raise InputError(
            f"{name} holds texts. Say kinds={{{name!r}: [...]}} with its categories from the "
            "lowest to the "
            "highest, or read cells such as '<0.5' with from_frame or read_csv."
        ) from None
    check_finite(numbers[:, None], (name,))
    return numbers


def read_categories(name: str, values: NDArray[Any], told: Any) -> Column:
    """Read the numbers of categories, the lowest being 0."""
    blank = np.array([one is None or bool(one != one) for one in values.tolist()])
    present = values[~blank].tolist()
    if isinstance(told, str):
        distinct = set(present)
        if told == "ordered" and any(isinstance(one, str) for one in distinct):
            raise InputError(
                f"{name} holds texts, whose order is not known. Say it, from the lowest to the highest: "
                f"kinds={{{name!r}: {sorted(map(str, distinct))!r}}}."
            )
        categories = tuple(_whole(one) for one in sorted(distinct))
    else:
        categories = tuple(_whole(one) for one in told)
    if told == "binary" and len(categories) > 2:
        raise InputError(
            f"{name} is to be binary, but has {len(categories)} values: "
            f"{name_some([repr(one) for one in categories], 5)}. "
            f"Say kinds={{{name!r}: 'ordered'}} if they have an order."
        )
    place = {one: k for k, one in enumerate(categories)}
    numbers = np.full(len(values), np.nan)
    for row in np.flatnonzero(~blank):
        one = values[row].item() if hasattr(values[row], "item") else values[row]
        if one not in place:
            raise InputError(
                f"the value is {one!r}, but the categories are "
                f"{name_some([*map(repr, categories)], 8)}.",
                int(row),
                name,
            )
        numbers[row] = place[one]
    kind = "binary" if len(categories) <= 2 else "ordered"
    return Column(numbers, numbers, kind, categories)


def _whole(category: Any) -> Any:
    """Return a whole number as one: columns of numbers have floats."""
    return int(category) if isinstance(category, float) and category.is_integer() else category


def need_every_category(names: Sequence[str], read: Sequence[Column]) -> None:
    """Raise where a category has no row, so that nothing says where it lies."""
    for name, column in zip(names, read, strict=True):
        if column.kind == "continuous":
            continue
        has = [bool((column.lower == k).any()) for k in range(len(column.categories))]
        empty = [str(one) for one, there in zip(column.categories, has, strict=True) if not there]
        if empty or len(has) < 2:
            lacking = f"category {name_some(empty)} has" if empty else "a second category has"
            raise NotIdentifiedError(
                f"{name}: {lacking} no row, so nothing says where it lies. Leave it out, or put it "
                "together with another."
            )


def index_of(
    name: str, known: Sequence[Selection], columns: Mapping[str, Any], told: Any
) -> Column:
    """Return the index of a selection that no column shows: which outcomes are seen shows it."""
    selections = [one for one in known if list(columns)[one.index] == name]
    if not selections:
        raise InputError(f"there is no column {name!r} in the data.")
    chosen = None
    for one in selections:
        for k in one.places:
            outcome = list(columns)[k]
            column = columns[outcome]
            seen = (
                ~column.at_random[:, 0]
                if isinstance(column, IntervalData)
                else ~np.isnan(_numbers(outcome, np.asarray(column)))
            )
            own = seen if one.when else ~seen
            chosen = own if chosen is None else chosen | own if one.when else chosen & own
    assert chosen is not None
    return read_categories(name, chosen.astype(float), told)


def _intervals(names: Sequence[str], read: Sequence[Column]) -> IntervalData:
    """Put outcomes beside each other; of latent ones nothing is known before they are cut."""
    n = len(read[0].lower)
    far = np.full(n, np.inf)
    lower = [-far if one.categories else one.lower for one in read]
    upper = [far if one.categories else one.upper for one in read]
    nothing = np.zeros(n, dtype=bool)
    marked = [nothing if one.not_detected is None else one.not_detected for one in read]
    return IntervalData(
        np.column_stack(lower),
        np.column_stack(upper),
        names,
        not_detected=np.column_stack(marked),
    )


def _at_random(outcomes: Outcomes, given: Any) -> Mask:
    """Return the cells about which no rule says anything, and check what selection shows."""
    data = outcomes.data
    mask = np.zeros(data.shape, dtype=bool)
    if given is not None:
        mask = np.array(read_cells("missing_at_random", given))
        if mask.dtype != bool or mask.shape != data.shape:
            raise InputError(
                f"missing_at_random must be a boolean array of shape {data.shape}, one for each "
                "outcome; "
                f"got dtype {mask.dtype} and shape {mask.shape}."
            )
    for one in outcomes.selections:
        by = one.index
        chosen = (data.lower[:, by] >= 0.0) == one.when
        unknown = data.at_random[:, by]
        for j in one.places:
            wrong = np.flatnonzero(~data.at_random[:, j] & ~chosen & ~unknown)
            if wrong.size:
                raise ContradictionError(
                    f"the value is seen, but {data.names[by]} says that it is not "
                    f"({wrong.size} such rows). Correct the column, or set the value to NaN.",
                    int(wrong[0]),
                    data.names[j],
                )
            mask[:, j] |= data.at_random[:, j] & ~chosen
    return mask


def warn_of_blanks(names: Sequence[str], blank: NDArray[Any]) -> None:
    """Warn of blank cells that nothing explains: a row for each of the table, or for each piece."""
    counts = blank.sum(axis=0)
    if counts.any():
        told = [f"{names[int(j)]} ({int(counts[j])})" for j in np.flatnonzero(counts)]
        warn(
            f"cells are blank in {name_some(told)}, and no rule says why; they are taken to be "
            "missing at random. If values are hidden because of what they are, state the rule."
        )
