"""Whether the data look as if the stated rule had hidden them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

from halfseen.data.power import ColumnCells
from halfseen.data.transforms import Transform
from halfseen.diagnostics.normality import holm, scale_of, tested_rows, why_not
from halfseen.diagnostics.one_column import Column, HiddenByRule, fit_cells
from halfseen.diagnostics.reading import Reading
from halfseen.errors import InputError
from halfseen.kernels.univariate import log_masses
from halfseen.missingness.base import ColumnRule
from halfseen.missingness.detection_limits import DetectionLimits
from halfseen.solvers.prepare import FEWEST_PILED, PILED_RATIO

Floats = NDArray[np.float64]

# What laboratories put in place of a value below its limit, as a share of the limit.
SUBSTITUTES = (
    (1.0, "the limit itself"),
    (0.5, "half the limit"),
    (math.sqrt(0.5), "the limit over √2"),
)
# A mark with a smaller p-value, adjusted for the number of columns, is told.
UNLIKELY = 0.01
# Values beyond the nearest one to a limit whose distances say how finely a column is measured.
NEIGHBOURS = 5
# Fewest seen values for a statement about the shape of a column.
FEWEST_SEEN = 20


@dataclass(frozen=True)
class Mark:
    """Something in a column that the stated rule would not leave there.

    Attributes
    ----------
    kind : str
        "on the limit", "substituted", "gap", "limits only where hidden", "nothing hidden" or
        "hidden too often".
    column : str
    level : {"ok", "look", "problem"}
    p_value : float or None
        How often the rule and the column's own normal distribution would leave as much or more,
        adjusted for the number of columns; None where no probability is meant.
    text : str
    """

    kind: str
    column: str
    level: str
    p_value: float | None
    text: str


def look_at_mechanism(
    reading: Reading, transforms: tuple[Transform, ...] | None
) -> tuple[Mark, ...]:
    """Look for the marks of rules that differ from the stated one."""
    marks: list[Mark] = []
    for j, name in enumerate(reading.names):
        rule = reading.column_rule(j)
        hidden = bool(reading.hidden[:, j].any())
        marks += _piles(reading.as_given[:, j], name, _stated(reading, j, rule), hidden)
        if _limits_only_where_hidden(reading, j):
            text = (
                "Limits are given only where values are hidden. A seen value needs the limit it was "
                "compared with too, or correlations come out wrong."
            )
            marks.append(Mark("limits only where hidden", name, "problem", None, text))
    marks += _unlikely(reading, transforms)
    return tuple(marks)


def _stated(reading: Reading, j: int, rule: ColumnRule | None) -> tuple[Floats, Floats]:
    """Return distinct lower and upper limits that a column is said to have."""
    if reading.intervals is not None:
        hidden = reading.hidden[:, j] & ~reading.split[:, j]
        low = reading.upper[hidden & np.isneginf(reading.lower[:, j]), j]
        high = reading.lower[hidden & np.isposinf(reading.upper[:, j]), j]
    elif rule is None:
        return np.empty(0), np.empty(0)
    elif rule.seen_set is not None:
        pieces = rule.seen_set.pieces
        if pieces is None or len(pieces) > 1:
            return np.empty(0), np.empty(0)
        low, high = np.array([pieces[0].lower]), np.array([pieces[0].upper])
    else:
        low, high = rule.lower, rule.upper
    return np.unique(low[np.isfinite(low)]), np.unique(high[np.isfinite(high)])


def column_limits(reading: Reading) -> tuple[tuple[Floats, Floats], ...]:
    """Return the distinct lower and upper limits of each column."""
    return tuple(_stated(reading, j, reading.column_rule(j)) for j in range(len(reading.names)))


def _piles(
    values: Floats, name: str, stated: tuple[Floats, Floats], hidden: bool
) -> Iterator[Mark]:
    """Find values that stand far more often than all others, where non-detects would be put."""
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
    if found.size:
        yield _pile_mark(name, distinct[found], counts[found], usual, words, share)
        return
    top = int(np.argmax(counts))
    usual = int(np.delete(counts, top).max())
    if hidden or counts[top] <= PILED_RATIO * usual:
        return
    text = _how_often(distinct[[top]], counts[[top]], usual)
    if not stated[0].size and top == 0:
        guess = _guess(float(distinct[0]), float(distinct[1]))
        yield Mark("substituted", name, "look", None, f"{text} {guess}")
    elif not stated[1].size and top == distinct.size - 1:
        text += (
            " It is the largest. If the instrument shows no more than that, set these cells to NaN and "
            f"state the limit {distinct[top]:.6g}."
        )
        yield Mark("substituted", name, "look", None, text)


def _pile_mark(
    name: str, values: Floats, counts: NDArray[np.intp], usual: int, words: str, share: float
) -> Mark:
    text = _how_often(values, counts, usual)
    if share == 1.0:
        text += (
            " If it stands for values beyond the limit, on which it lies, set these cells to NaN."
        )
        return Mark("on the limit", name, "problem", None, text)
    text += (
        f" It is {words} of {values[0] / share:.4g}, a common substitute for values that were not "
        "detected. Set these cells to NaN."
    )
    return Mark("substituted", name, "problem", None, text)


def _how_often(values: Floats, counts: NDArray[np.intp], usual: int) -> str:
    most = "once" if usual == 1 else f"{usual} times"
    others = f", as others do ({values.size} in all)" if values.size > 1 else ""
    return (
        f"The value {values[0]:.6g} stands {counts[0]} times{others}, and no ordinary value more than "
        f"{most}."
    )


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


def _limits_only_where_hidden(reading: Reading, j: int) -> bool:
    rule = reading.rule
    if not isinstance(rule, DetectionLimits) or not rule.varies_by_row:
        return False
    if reading.intervals is not None:
        return False
    limited = np.isfinite(rule.lower[:, j]) | np.isfinite(rule.upper[:, j])
    hidden = ~reading.seen[:, j]
    return bool((limited == hidden).all() and hidden.any() and not hidden.all())


@dataclass(frozen=True)
class _Candidate:
    """A mark that counts only if its p-value is small enough for the number of columns."""

    kind: str
    column: str
    p_value: float
    text: str


def _unlikely(reading: Reading, transforms: tuple[Transform, ...] | None) -> list[Mark]:
    """Find what the columns' own normal distributions make unlikely, over all columns together."""
    if reading.broken is not None:
        return []
    rows = tested_rows(len(reading.values))
    stated = column_limits(reading)
    found: list[_Candidate] = []
    quiet: list[Mark] = []
    for j, name in enumerate(reading.names):
        column = reading.column(j, rows)
        if isinstance(column, str) or why_not(column) or column.cells.values.size < FEWEST_SEEN:
            continue
        try:
            scale = scale_of(column, None if transforms is None else transforms[j])
        except InputError:
            continue
        column = column.on(scale)
        told = reading.intervals is not None
        if column.cells.hidden and not (told and _has_bins(column.cells)):
            for side, limits in zip((1, -1), stated[j], strict=True):
                found += _gap(column, name, limits, side, scale, reading.values[rows, j])
            found.append(_hidden_too_often(column, name))
        elif not column.cells.hidden and isinstance(column.hiding, HiddenByRule):
            mark = _nothing_hidden(column, name)
            if isinstance(mark, Mark):
                quiet.append(mark)
            elif mark is not None:
                found.append(mark)
    return quiet + _told(found)


def _told(found: list[_Candidate]) -> list[Mark]:
    """Return the candidates that are unlikely even for the best of so many columns."""
    marks: list[Mark] = []
    for kind in ("gap", "nothing hidden", "hidden too often"):
        of_kind = [c for c in found if c.kind == kind]
        level = "look" if kind == "hidden too often" else "problem"
        p = holm(np.array([c.p_value for c in of_kind]))
        # A wrong limit explains by itself why more is hidden than it should.
        explained = {mark.column for mark in marks}
        marks += [
            Mark(kind, c.column, level, float(value), c.text)
            for c, value in zip(of_kind, p, strict=True)
            if value < UNLIKELY and c.column not in explained
        ]
    return marks


def _has_bins(cells: ColumnCells) -> bool:
    """Whether cells are known to lie between two limits: they are neither seen nor beyond one."""
    return bool((np.isfinite(cells.lower) & np.isfinite(cells.upper)).any())


def _gap(
    column: Column, name: str, limits: Floats, side: int, scale: Transform, values: Floats
) -> Iterator[_Candidate]:
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
    yield _Candidate("gap", name, p, text)


def _hidden_too_often(column: Column, name: str) -> _Candidate:
    """Test whether a share of the cells is hidden for another reason than the sets they lie in.

    Likelihood ratio of a model in which any cell is also hidden with probability π, against π = 0;
    on the edge of the parameters, so half of the chi-square probability (Chernoff 1954).
    """
    cells = column.standardised()[0].cells
    plain = fit_cells(cells)
    share, gain = 0.0, 0.0
    hidden = cells.hidden / column.size

    def cost(p: Floats) -> float:
        return -_log_likelihood(cells, float(p[0]), float(p[1]), float(p[2]))

    for pi in (0.05 * hidden, 0.5 * hidden):
        # From the seen values as they are, and from what was fitted.
        start = [0.0, 0.0, pi] if pi > 0.1 * hidden else [plain.mean, math.log(plain.deviation), pi]
        best = minimize(
            cost,
            np.array(start),
            method="L-BFGS-B",
            bounds=[(-20.0, 20.0), (-6.0, 6.0), (0.0, 0.999)],
        )
        if -best.fun - plain.log_likelihood > gain:
            gain, share = -best.fun - plain.log_likelihood, float(best.x[2])
    p = float(ndtr(-math.sqrt(2.0 * gain))) if gain > 0.0 else 1.0
    text = (
        f"{hidden:.0%} of the cells are hidden, but the shape of the seen values leaves room for fewer "
        f"beyond the limits: about {share:.0%} look as if they were hidden for another reason, unless "
        "the column is not normal. Say which are missing at random, or see normality."
    )
    return _Candidate("hidden too often", name, p, text)


def _set_log_masses(cells: ColumnCells, mean: float, deviation: float) -> Floats:
    """Log-mass of each hidden set."""
    pieces = log_masses((cells.lower - mean) / deviation, (cells.upper - mean) / deviation)
    if pieces.size == cells.count.size:
        return pieces
    owner = np.repeat(np.arange(cells.count.size), np.diff(cells.start))
    mass = np.bincount(owner, weights=np.exp(pieces), minlength=cells.count.size)
    return np.log(np.maximum(mass, np.finfo(float).tiny))


def _log_likelihood(cells: ColumnCells, mean: float, log_deviation: float, share: float) -> float:
    deviation = math.exp(log_deviation)
    z = (cells.values - mean) / deviation
    # Seen: (1 − π) φ(x); hidden: π + (1 − π) P(set)
    seen = -0.5 * float(z @ z) - z.size * (log_deviation + 0.5 * math.log(2.0 * math.pi))
    masses = np.exp(_set_log_masses(cells, mean, deviation))
    used = cells.count > 0
    hidden = cells.count[used] @ np.log(
        np.maximum(share + (1.0 - share) * masses[used], np.finfo(float).tiny)
    )
    return seen + z.size * math.log1p(-share) + float(hidden)


def _nothing_hidden(column: Column, name: str) -> _Candidate | Mark | None:
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
    hidden = np.exp(_set_log_masses(cells, marginal.mean, marginal.deviation))
    expected = float(cells.count @ hidden)
    # P(none hidden) = Π (1 − P_r)
    p = math.exp(float(cells.count @ np.log1p(-np.minimum(hidden, 1.0 - 1e-16))))
    text = (
        f"The rule would hide about {expected:.0f} of {column.size} values, but nothing is hidden. Were "
        "rows with hidden values left out, or values put in their place?"
    )
    if p < UNLIKELY:
        return _Candidate("nothing hidden", name, p, text)
    return Mark(
        "nothing hidden", name, "ok", None, "The rule hides nothing here, as is to be expected."
    )
