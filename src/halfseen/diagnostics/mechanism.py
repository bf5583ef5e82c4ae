"""Whether the data look as if the stated rule had hidden them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from halfseen.data.powers import ColumnCells
from halfseen.data.transforms import Transform
from halfseen.diagnostics.at_random import cut_off, hidden_too_often, set_log_masses
from halfseen.diagnostics.marks import FEWEST_SEEN, UNLIKELY, Candidate, Mark
from halfseen.diagnostics.normality import holm, scale_of, tested_rows, why_not
from halfseen.diagnostics.one_column import Column, HiddenByRule, fit_cells
from halfseen.diagnostics.piles import piles
from halfseen.diagnostics.reading import Reading, ends_of_rule, in_rows
from halfseen.errors import InputError
from halfseen.missingness.base import ColumnRule
from halfseen.missingness.detection_limits import DetectionLimits

Floats = NDArray[np.float64]

# Values beyond the nearest one to a limit whose distances say how finely a column is measured.
NEIGHBOURS = 5
# A wrong limit is to be likelier than cells missing at random by this log-likelihood: it is chosen to
# suit the data, and few hidden cells make the two nearly the same.
MUCH_LIKELIER = 5.0
# Limits that differ by less come from writing them down.
SAME_LIMIT = 1e-6
# What is tested together, in this order, and how serious it is.
FAMILIES = (("gap",), ("nothing hidden",), ("at random", "hidden too often"), ("cut off",))
# Values that stand for hidden ones explain why nothing is hidden, and sharp ends.
PILED = ("on the limit", "substituted")
LOOKS = ("hidden too often", "cut off")


def look_at_mechanism(
    reading: Reading, transforms: tuple[Transform, ...] | None, simulations: int, seed: int
) -> tuple[Mark, ...]:
    """Look for the marks of rules that differ from the stated one."""
    marks: list[Mark] = []
    for j, name in enumerate(reading.names):
        rule = reading.column_rule(j)
        hidden = bool(reading.hidden[:, j].any())
        marks += piles(reading.as_given[:, j], name, _stated(reading, j, rule), hidden)
        marks += _other_limits(reading, j, rule)
        if _limits_only_where_hidden(reading, j):
            text = (
                "Limits are given only where values are hidden. A seen value needs the limit it was "
                "compared with too, or pairwise and truncation get correlations wrong."
            )
            marks.append(Mark("limits only where hidden", name, "problem", None, text))
    piled = {mark.column for mark in marks if mark.kind in PILED}
    marks += _unlikely(reading, transforms, piled, simulations, seed)
    return tuple(marks)


def taken_at_random(reading: Reading, marks: tuple[Mark, ...]) -> Reading:
    """Return the table with cells that look missing at random taken to be so."""
    columns = {mark.column for mark in marks if mark.kind == "at random"}
    if not columns:
        return reading
    chosen = np.isin(np.array(reading.names, dtype=object), list(columns))
    return replace(reading, blank=reading.blank | (reading.hidden & chosen))


def _stated(reading: Reading, j: int, rule: ColumnRule | None) -> tuple[Floats, Floats]:
    """Return distinct lower and upper limits that a column is said to have."""
    low, high = ends_of_rule(rule)
    if reading.intervals is not None:
        split, hidden = reading.split[:, j], reading.hidden[:, j]
        told = hidden & ~split
        # Where cells tell their limits, the rule counts for those that do not.
        if told.any() and not (split & hidden).any():
            low, high = np.empty(0), np.empty(0)
        below, above = np.isneginf(reading.lower[:, j]), np.isposinf(reading.upper[:, j])
        low = np.concatenate([low, reading.upper[told & below, j]])
        high = np.concatenate([high, reading.lower[told & above, j]])
    return np.unique(low[np.isfinite(low)]), np.unique(high[np.isfinite(high)])


def column_limits(reading: Reading) -> tuple[tuple[Floats, Floats], ...]:
    """Return the distinct lower and upper limits of each column."""
    return tuple(_stated(reading, j, reading.column_rule(j)) for j in range(len(reading.names)))


def _other_limits(reading: Reading, j: int, rule: ColumnRule | None) -> Iterator[Mark]:
    """Find cells that say that they lie beyond another limit than that of the rule."""
    data = reading.intervals
    if data is None or reading.rule is None or rule is None:
        return
    told = ~data.seen[:, j] & ~data.at_random[:, j] & ~reading.excused[:, j]
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
        other = told & open_ & np.isfinite(of_rule)
        other &= ~np.isclose(ends, of_rule, rtol=SAME_LIMIT, atol=0.0)
        if other.any():
            count = int(other.sum())
            text = (
                f"{count} cell{' says' if count == 1 else 's say'} {_spread(sign, ends[other])}, but "
                f"the rule says {_spread(way, of_rule[other])}. The cell's own interval goes first, and "
                "the rule speaks only of cells that say nothing. State the limit that holds, or "
                "leave this column out of the rule."
            )
            yield Mark("other limits", reading.names[j], "look", None, text)


def _spread(sign: str, limits: Floats) -> str:
    least, most = limits.min(), limits.max()
    return f"{sign}{least:.6g}" if least == most else f"{sign}{least:.6g} to {sign}{most:.6g}"


def _limits_only_where_hidden(reading: Reading, j: int) -> bool:
    rule = reading.rule
    if not isinstance(rule, DetectionLimits) or not rule.varies_by_row:
        return False
    if reading.intervals is not None:
        return False
    limited = np.isfinite(rule.lower[:, j]) | np.isfinite(rule.upper[:, j])
    hidden = ~reading.seen[:, j]
    return bool((limited == hidden).all() and hidden.any() and not hidden.all())


def _unlikely(
    reading: Reading,
    transforms: tuple[Transform, ...] | None,
    piled: set[str],
    simulations: int,
    seed: int,
) -> list[Mark]:
    """Find what the columns' own normal distributions make unlikely, over all columns together."""
    if reading.broken is not None:
        return []
    rows = tested_rows(len(reading.values))
    stated = column_limits(reading)
    found: list[Candidate] = []
    quiet: list[Mark] = []
    for j, name in enumerate(reading.names):
        column = reading.column(j, rows)
        if isinstance(column, str) or why_not(column) or column.cells.values.size < FEWEST_SEEN:
            continue
        try:
            scale = scale_of(column, None if transforms is None else transforms[j])
        except InputError:
            continue
        told = reading.intervals is not None
        values = reading.values[rows, j]
        if column.cells.hidden and not (told and _has_bins(column.cells)):
            gaps = [
                gap
                for side, limits in zip((1, -1), stated[j], strict=True)
                for gap in _gap(column.on(scale), name, limits, side, scale, values)
            ]
            often = hidden_too_often(column, scale, name, _unmarked(reading, j))
            found += _likelier(gaps, often)
        elif not column.cells.hidden and isinstance(column.hiding, HiddenByRule):
            mark = None if name in piled else _nothing_hidden(column.on(scale), name)
            if isinstance(mark, Mark):
                quiet.append(mark)
            elif mark is not None:
                found.append(mark)
        blank = int((reading.blank & ~reading.excused)[rows, j].sum())
        if blank and not column.cells.hidden and name not in piled:
            cut = cut_off(values[~np.isnan(values)], blank, scale, name, simulations, seed)
            found += [] if cut is None else [cut]
    return quiet + _told(found)


def _unmarked(reading: Reading, j: int) -> int:
    """Count the hidden cells of a column, if nothing but the rule says of them that they were hidden."""
    hidden = reading.hidden[:, j]
    # A seen value that contradicts the rule stands for one beyond the limit.
    marked = hidden & ~np.isnan(reading.as_given[:, j])
    if reading.intervals is not None:
        marked |= hidden & ~reading.intervals.blank[:, j]
    return 0 if marked.any() else int(hidden.sum())


def _likelier(gaps: list[Candidate], often: Candidate) -> list[Candidate]:
    """Decide between a wrong limit and cells that are missing at random, which both leave a gap."""
    if often.kind != "at random":
        return [*gaps, often]
    best = max((c.log_likelihood for c in gaps if c.p_value < UNLIKELY), default=-math.inf)
    if best > often.log_likelihood + MUCH_LIKELIER:
        return [*gaps, replace(often, kind="hidden too often")]
    return [often]


def _told(found: list[Candidate]) -> list[Mark]:
    """Return the candidates that are unlikely even for the best of so many columns."""
    marks: list[Mark] = []
    for family in FAMILIES:
        alike = [c for c in found if c.kind in family]
        p = holm(np.array([c.p_value for c in alike]))
        # A wrong limit explains by itself why more is hidden than it should.
        explained = {mark.column for mark in marks}
        marks += [
            Mark(c.kind, c.column, "look" if c.kind in LOOKS else "problem", float(value), c.text)
            for c, value in zip(alike, p, strict=True)
            if value < UNLIKELY and c.column not in explained
        ]
    return marks


def _has_bins(cells: ColumnCells) -> bool:
    """Whether cells are known to lie between two limits: they are neither seen nor beyond one."""
    return bool((np.isfinite(cells.lower) & np.isfinite(cells.upper)).any())


def _gap(
    column: Column, name: str, limits: Floats, side: int, scale: Transform, values: Floats
) -> Iterator[Candidate]:
    """Test whether seen values keep away from the only limit of a column, on one side of it.

    The column is fitted as if the limit were at the nearest seen value m. If the limit c is right,
    each seen value lies between c and m with probability q, and none does with probability (1 − q)ⁿ.
    ``side`` is 1 for lower limits, -1 for upper ones.
    """
    if limits.size != 1:
        return
    limit = float(limits[0])
    distinct = side * np.unique(side * values[~np.isnan(values)])
    distinct = distinct[side * distinct >= side * limit]
    if distinct.size <= NEIGHBOURS or distinct[0] == limit:
        return
    nearest = float(distinct[0])
    # A gap no wider than those between the next values comes from rounding.
    if abs(nearest - limit) <= np.abs(np.diff(distinct[: NEIGHBOURS + 1])).max():
        return
    cells = column.cells
    c, m = float(scale.end(limit)), float(scale.forward(nearest))
    moved = replace(
        cells,
        upper=np.where((cells.upper == c) & (side > 0), m, cells.upper),
        lower=np.where((cells.lower == c) & (side < 0), m, cells.lower),
    )
    units, centre, spread = replace(column, cells=moved).standardised()
    fitted = fit_cells(units.cells)

    def score(x: float) -> float:
        return side * ((x - centre) / spread - fitted.mean) / fitted.deviation

    beyond = float(ndtr(-score(c)))
    between = float(ndtr(score(m)) - ndtr(score(c)))
    n = cells.values.size
    p = math.exp(n * math.log1p(-min(between / max(beyond, 1e-300), 1.0 - 1e-16)))
    text = (
        f"No seen value lies between the stated limit {limit:.6g} and {nearest:.6g}, where about "
        f"{between * column.size:.0f} are expected: the limit looks like {nearest:.4g} rather than "
        f"{limit:.6g}."
    )
    yield Candidate("gap", name, p, text, fitted.log_likelihood)


def _nothing_hidden(column: Column, name: str) -> Candidate | Mark | None:
    """Look at a column under a rule in which nothing is hidden, and whether something should be."""
    column = column.standardised()[0]
    hiding = column.hiding
    assert isinstance(hiding, HiddenByRule)
    sets = hiding.hidden_sets
    if not sets.lower.size:
        return None
    marginal = fit_cells(column.cells)
    cells = ColumnCells(
        np.empty(0), sets.start, sets.lower, sets.upper,
        np.bincount(hiding.group, minlength=len(sets)).astype(float),
    )  # fmt: skip
    hidden = np.exp(set_log_masses(cells, marginal.mean, marginal.deviation))
    expected = float(cells.count @ hidden)
    # P(none hidden) = Π (1 − P_r)
    p = math.exp(float(cells.count @ np.log1p(-np.minimum(hidden, 1.0 - 1e-16))))
    text = (
        f"The rule would hide about {expected:.0f} of {column.size} values, but nothing is hidden. Were "
        "rows with hidden values left out, or values put in their place?"
    )
    if p < UNLIKELY:
        return Candidate("nothing hidden", name, p, text)
    return Mark(
        "nothing hidden", name, "ok", None, "The rule hides nothing here, as is to be expected."
    )
