"""Whether the data look as if the stated rule had hidden them.

Wrong limits, cells that a rule does not explain, and blank ones that a rule would.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from halfseen.data.powers import ColumnCells
from halfseen.data.transforms import Identity, Transform
from halfseen.diagnostics.checked_table import CheckedTable
from halfseen.diagnostics.marks import Mark, plain_marks
from halfseen.diagnostics.normality import best_scale, holm, p_values, scale_of, why_not
from halfseen.diagnostics.one_column import HiddenByRule, LoneColumn, fit_cells, spread_ties
from halfseen.errors import InputError, argument
from halfseen.kernels.univariate import log_masses
from halfseen.seeds import Purpose, keyed_generator

Floats = NDArray[np.float64]

# A mark with a smaller p-value, adjusted for the number of columns, is told.
UNLIKELY = 0.01
# Fewest seen values for a statement about the shape of a column.
FEWEST_SEEN = 20
# Values beyond the nearest one to a limit whose distances say how finely a column is measured.
NEIGHBOURS = 5
# A wrong limit is to be likelier than cells missing at random by this log-likelihood: it is chosen to
# suit the data, and few hidden cells make the two nearly the same.
MUCH_LIKELIER = 5.0
# What is tested together, in this order, and how serious it is.
FAMILIES = (("gap",), ("nothing hidden",), ("at random", "hidden too often"), ("cut off",))
LOOKS = ("hidden too often", "cut off")
# Values that stand for hidden ones explain why nothing is hidden, and sharp ends.
PILED = ("on the limit", "substituted")
# A rule that explains no more than this share of what is hidden explains nothing of it.
NEGLIGIBLE = 0.05
# Least log-likelihood that cutting has to bring: columns on no simple scale have somewhat sharp ends.
LEAST_GAIN = 3.0
# Fewest distinct values of a column whose end can be called sharp: codes and grades have ends.
FEWEST_DISTINCT = 20
# A probability of one would have no logarithm of its complement, and some have no logarithm at all.
NEARLY_ONE, TINY = 1.0 - 1e-16, np.finfo(float).tiny
# Stream of random numbers, beside those of ``normality``.
CUTTING = 7


@dataclass(frozen=True)
class Candidate:
    """A mark that counts only if its p-value is small enough for the number of columns.

    ``log_likelihood`` is that of the explanation it offers, in units of the seen values.
    """

    kind: str
    column: str
    p_value: float
    text: str
    log_likelihood: float = 0.0


def look_at_mechanism(table: CheckedTable, simulations: int, seed: int) -> tuple[Mark, ...]:
    """Look for the marks of rules that differ from the stated one."""
    marks = list(plain_marks(table))
    piled = {mark.column for mark in marks if mark.kind in PILED}
    return (*marks, *_unlikely(table, piled, simulations, seed))


def taken_at_random(table: CheckedTable, marks: tuple[Mark, ...]) -> CheckedTable:
    """Return the table with cells that look missing at random taken to be so."""
    columns = {mark.column for mark in marks if mark.kind == "at random"}
    if not columns:
        return table
    chosen = np.isin(np.array(table.names, dtype=object), list(columns))
    return replace(table, blank=table.blank | (table.hidden & chosen))


def _unlikely(table: CheckedTable, piled: set[str], simulations: int, seed: int) -> list[Mark]:
    """Find what the columns' own normal distributions make unlikely, over all columns together."""
    if table.broken is not None:
        return []
    candidates: list[Candidate] = []
    quiet: list[Mark] = []
    for j, (name, column) in enumerate(zip(table.names, table.columns, strict=True)):
        if isinstance(column, str) or why_not(column) or column.cells.values.size < FEWEST_SEEN:
            continue
        try:
            scale = scale_of(column, table.scales[j])
        except InputError:
            continue
        values, hidden = table.values[table.rows, j], column.cells.hidden
        if hidden and not (table.intervals is not None and _has_bins(column.cells)):
            gaps = [
                gap
                for side, limits in zip((1, -1), table.limits[j], strict=True)
                for gap in _gap(column.on(scale), name, limits, side, scale, values)
            ]
            often = hidden_too_often(column, scale, name, _unmarked(table, j))
            candidates += _likelier(gaps, often)
        elif not hidden and isinstance(column.hiding, HiddenByRule) and name not in piled:
            mark = _nothing_hidden(column.on(scale), name)
            if isinstance(mark, Mark):
                quiet.append(mark)
            elif mark is not None:
                candidates.append(mark)
        blank = int((table.blank & ~table.excused)[table.rows, j].sum())
        if blank and not hidden and name not in piled:
            cut = cut_off(values[~np.isnan(values)], blank, scale, name, simulations, seed)
            candidates += [] if cut is None else [cut]
    return quiet + _told(candidates)


def _unmarked(table: CheckedTable, j: int) -> int:
    """Count the hidden cells of a column, if nothing but the rule says of them that they were hidden."""
    hidden = table.hidden[:, j]
    # A seen value that contradicts the rule stands for one beyond the limit.
    marked = hidden & ~np.isnan(table.as_given[:, j])
    if table.intervals is not None:
        marked |= hidden & ~table.intervals.blank[:, j]
    return 0 if marked.any() else int(hidden.sum())


def _likelier(gaps: list[Candidate], often: Candidate) -> list[Candidate]:
    """Decide between a wrong limit and cells that are missing at random, which both leave a gap."""
    if often.kind != "at random":
        return [*gaps, often]
    best = max((c.log_likelihood for c in gaps if c.p_value < UNLIKELY), default=-math.inf)
    if best > often.log_likelihood + MUCH_LIKELIER:
        return [*gaps, replace(often, kind="hidden too often")]
    return [often]


def _told(candidates: list[Candidate]) -> list[Mark]:
    """Return the candidates that are unlikely even for the best of so many columns."""
    marks: list[Mark] = []
    for family in FAMILIES:
        alike = [c for c in candidates if c.kind in family]
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
    column: LoneColumn, name: str, limits: Floats, side: int, scale: Transform, values: Floats
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
    p = math.exp(n * math.log1p(-min(between / max(beyond, 1e-300), NEARLY_ONE)))
    text = (
        f"No seen value lies between the stated limit {limit:.6g} and {nearest:.6g}, where about "
        f"{between * column.size:.0f} are expected: the limit looks like {nearest:.4g} rather than "
        f"{limit:.6g}."
    )
    yield Candidate("gap", name, p, text, fitted.log_likelihood)


def _nothing_hidden(column: LoneColumn, name: str) -> Candidate | Mark | None:
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
    p = math.exp(float(cells.count @ np.log1p(-np.minimum(hidden, NEARLY_ONE))))
    text = (
        f"The rule would hide about {expected:.0f} of {column.size} values, but nothing is hidden. Were "
        "rows with hidden values left out, or values put in their place?"
    )
    if p < UNLIKELY:
        return Candidate("nothing hidden", name, p, text)
    text = "The rule hides nothing here, as is to be expected."
    return Mark("nothing hidden", name, "ok", None, text)


class Excess(NamedTuple):
    """A column in which any cell is also hidden with probability ``share``, whatever its value.

    ``explained`` is the share of the hidden cells that lie beyond the limits all the same.
    """

    share: float
    explained: float
    p_value: float
    log_likelihood: float


def set_log_masses(cells: ColumnCells, mean: float, deviation: float) -> Floats:
    """Log-mass of each hidden set."""
    pieces = log_masses((cells.lower - mean) / deviation, (cells.upper - mean) / deviation)
    if pieces.size == cells.count.size:
        return pieces
    owner = np.repeat(np.arange(cells.count.size), np.diff(cells.start))
    mass = np.bincount(owner, weights=np.exp(pieces), minlength=cells.count.size)
    return np.log(np.maximum(mass, TINY))


def fit_excess(column: LoneColumn) -> Excess:
    """Fit the share of the cells that are hidden for another reason than the sets they lie in.

    Likelihood ratio of a model in which any cell is also hidden with probability π, against π = 0;
    on the edge of the parameters, so half of the chi-square probability (Chernoff 1954).
    """
    # Imported where it is needed: SciPy's optimisers take as long to load as all of halfseen.
    from scipy.optimize import minimize

    cells = column.standardised()[0].cells
    plain = fit_cells(cells)
    best, highest = np.array([plain.mean, math.log(plain.deviation), 0.0]), plain.log_likelihood
    hidden = cells.hidden / column.size

    def cost(p: Floats) -> float:
        return -_log_likelihood(cells, float(p[0]), float(p[1]), float(p[2]))

    # From what was fitted, from the seen values as they are, and as if the rule hid nothing.
    starts = [
        [plain.mean, math.log(plain.deviation), 0.05 * hidden],
        [0.0, 0.0, 0.5 * hidden],
        [0.0, 0.0, min(hidden, 0.999)],
    ]
    bounds = [(-20.0, 20.0), (-6.0, 6.0), (0.0, 0.999)]
    for start in starts:
        end = minimize(cost, np.array(start), method="L-BFGS-B", bounds=bounds)
        if -end.fun > highest:
            best, highest = end.x, -float(end.fun)
    gain = highest - plain.log_likelihood
    share = float(best[2])
    by_rule = (1.0 - share) * np.exp(set_log_masses(cells, float(best[0]), math.exp(best[1])))
    # The probability that a hidden cell lies beyond a limit.
    posterior = by_rule / np.maximum(share + by_rule, TINY)
    explained = float(cells.count @ posterior) / max(cells.hidden, 1)
    p = float(ndtr(-math.sqrt(2.0 * gain))) if gain > 0.0 else 1.0
    return Excess(share, explained, p, highest)


def _log_likelihood(cells: ColumnCells, mean: float, log_deviation: float, share: float) -> float:
    deviation = math.exp(log_deviation)
    z = (cells.values - mean) / deviation
    # Seen: (1 − π) φ(x); hidden: π + (1 − π) P(set)
    seen = -0.5 * float(z @ z) - z.size * (log_deviation + 0.5 * math.log(2.0 * math.pi))
    masses = np.exp(set_log_masses(cells, mean, deviation))
    used = cells.count > 0
    hidden = cells.count[used] @ np.log(np.maximum(share + (1.0 - share) * masses[used], TINY))
    return seen + z.size * math.log1p(-share) + float(hidden)


def hidden_too_often(column: LoneColumn, scale: Transform, name: str, unmarked: int) -> Candidate:
    """Test whether cells of a column are hidden for another reason than its limits.

    Where next to nothing lies beyond the limits, the cells are missing at random: if nothing but the
    rule says that they were hidden (``unmarked`` is their number, else 0), and if the same holds on
    the scale that suits the seen values best. Skewed values look as if nothing could lie far out.
    """
    excess = fit_excess(column.on(scale))
    if unmarked and excess.explained <= NEGLIGIBLE:
        x = column.cells.values
        best = best_scale(ColumnCells.from_ends(x, x))
        other = excess if best.name == scale.name else fit_excess(column.on(best))
        if other.explained <= NEGLIGIBLE:
            p = max(excess.p_value, other.p_value)
            return Candidate("at random", name, p, _looks_random(unmarked), excess.log_likelihood)
    # Counted: shares of a large table may round to nothing.
    hidden = int(column.cells.hidden)
    odd = min(max(round(excess.share * column.size), 1), hidden)
    text = (
        f"{hidden:,} of {column.size:,} cells are hidden, but the shape of the seen values leaves room "
        f"for fewer beyond the limits: about {odd:,} look as if they were hidden for "
        "another reason, unless the column is not normal. Say which are missing at random "
        f"({argument('missing_at_random')}), or try another scale."
    )
    return Candidate("hidden too often", name, excess.p_value, text, excess.log_likelihood)


def _looks_random(hidden: int) -> str:
    one = hidden == 1
    return (
        f"{'This cell looks' if one else f'These {hidden} cells look'} missing at random: next to "
        "nothing lies beyond the limits of the rule, if the column is anything like what is seen "
        f"of it. Pass {argument('missing_at_random')} for {'it' if one else 'them'}."
    )


def cut_off(
    x: Floats, blank: int, scale: Transform, name: str, simulations: int, seed: int
) -> Candidate | None:
    """Test whether seen values stop where blank cells would go on.

    One model has the blank cells beyond the largest (or smallest) seen value, the other anywhere. Their
    log-likelihoods differ by an amount whose distribution under the second, for a normal column,
    depends on the numbers of cells alone, so it is simulated. A column that is not normal has sharp ends
    too: the second model may take the scale that suits the seen values best.
    """
    if np.unique(x).size < FEWEST_DISTINCT:
        return None
    ends, x = (x.min(), x.max()), spread_ties(x)
    best = best_scale(ColumnCells.from_ends(x, x))
    scales = [scale] if best.name == scale.name else [scale, best]
    gain, side = _gain_of_cutting(x, blank, scales)
    # Else blank cells anywhere are no worse an explanation.
    if not gain > LEAST_GAIN:
        return None
    rng = keyed_generator(seed, Purpose.DIAGNOSE, CUTTING)
    draws = rng.standard_normal((simulations, x.size))
    null = np.array([_gain_of_cutting(row, blank, [Identity()])[0] for row in draws])
    cells = "1 cell is" if blank == 1 else f"{blank} cells are"
    text = (
        f"Values stop at {ends[side > 0]:.6g} and {cells} blank: were they cut off? If values "
        f"{'above' if side > 0 else 'below'} that are not shown, state the rule. If not, the "
        "column ends there, as a normal one does not."
    )
    return Candidate("cut off", name, p_values(gain, null)[1], text, gain)


def _gain_of_cutting(x: Floats, blank: int, scales: list[Transform]) -> tuple[float, int]:
    """Log-likelihood of blank cells beyond an end, less that of blank cells anywhere; and which end."""
    n = x.size + blank
    whole = ColumnCells.from_ends(x, x)
    anywhere = max(whole.fit(scale).log_likelihood for scale in scales)
    anywhere += blank * math.log(blank / n) + x.size * math.log(x.size / n)
    beyond = []
    for side in (1, -1):
        low, high = (x.max(), np.inf) if side > 0 else (-np.inf, x.min())
        cells = ColumnCells(
            x, np.array([0, 1]), np.array([low]), np.array([high]), np.array([float(blank)])
        )
        beyond.append((max(cells.fit(scale).log_likelihood for scale in scales), side))
    highest, side = max(beyond)
    return (highest - anywhere, side) if math.isfinite(highest) else (-math.inf, side)
