"""Cells that a rule does not explain, and blank ones that a rule would."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from halfseen.data.powers import ColumnCells
from halfseen.data.transforms import Identity, Transform
from halfseen.diagnostics.marks import Candidate
from halfseen.diagnostics.normality import p_values
from halfseen.diagnostics.one_column import Column, fit_cells, spread_ties
from halfseen.diagnostics.transforms import best_scale
from halfseen.errors import argument
from halfseen.kernels.univariate import log_masses
from halfseen.seeds import Purpose, keyed_generator

Floats = NDArray[np.float64]

# A rule that explains no more than this share of what is hidden explains nothing of it.
NEGLIGIBLE = 0.05
# Least log-likelihood that cutting has to bring: columns on no simple scale have somewhat sharp ends.
LEAST_GAIN = 3.0
# Fewest distinct values of a column whose end can be called sharp: codes and grades have ends.
FEWEST_DISTINCT = 20
# Stream of random numbers, beside those of ``normality`` and ``transforms``.
CUTTING = 7


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
    return np.log(np.maximum(mass, np.finfo(float).tiny))


def fit_excess(column: Column) -> Excess:
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

    for start in (
        # From what was fitted, from the seen values as they are, and as if the rule hid nothing.
        [plain.mean, math.log(plain.deviation), 0.05 * hidden],
        [0.0, 0.0, 0.5 * hidden],
        [0.0, 0.0, min(hidden, 0.999)],
    ):
        found = minimize(
            cost,
            np.array(start),
            method="L-BFGS-B",
            bounds=[(-20.0, 20.0), (-6.0, 6.0), (0.0, 0.999)],
        )
        if -found.fun > highest:
            best, highest = found.x, -float(found.fun)
    gain = highest - plain.log_likelihood
    share = float(best[2])
    by_rule = (1.0 - share) * np.exp(set_log_masses(cells, float(best[0]), math.exp(best[1])))
    # The probability that a hidden cell lies beyond a limit.
    posterior = by_rule / np.maximum(share + by_rule, np.finfo(float).tiny)
    return Excess(
        share,
        float(cells.count @ posterior) / max(cells.hidden, 1),
        float(ndtr(-math.sqrt(2.0 * gain))) if gain > 0.0 else 1.0,
        highest,
    )


def _log_likelihood(cells: ColumnCells, mean: float, log_deviation: float, share: float) -> float:
    deviation = math.exp(log_deviation)
    z = (cells.values - mean) / deviation
    # Seen: (1 − π) φ(x); hidden: π + (1 − π) P(set)
    seen = -0.5 * float(z @ z) - z.size * (log_deviation + 0.5 * math.log(2.0 * math.pi))
    masses = np.exp(set_log_masses(cells, mean, deviation))
    used = cells.count > 0
    hidden = cells.count[used] @ np.log(
        np.maximum(share + (1.0 - share) * masses[used], np.finfo(float).tiny)
    )
    return seen + z.size * math.log1p(-share) + float(hidden)


def hidden_too_often(column: Column, scale: Transform, name: str, unmarked: int) -> Candidate:
    """Test whether cells of a column are hidden for another reason than its limits.

    Where next to nothing lies beyond the limits, the cells are missing at random: if nothing but the
    rule says that they were hidden (``unmarked`` is their number, else 0), and if the same holds on
    the scale that suits the seen values best. Skewed values look as if nothing could lie far out.
    """
    found = fit_excess(column.on(scale))
    hidden = column.cells.hidden
    if unmarked and found.explained <= NEGLIGIBLE:
        x = column.cells.values
        best = best_scale(ColumnCells.from_ends(x, x))
        other = found if best.name == scale.name else fit_excess(column.on(best))
        if other.explained <= NEGLIGIBLE:
            p = max(found.p_value, other.p_value)
            return Candidate("at random", name, p, _looks_random(unmarked), found.log_likelihood)
    text = (
        f"{hidden / column.size:.0%} of the cells are hidden, but the shape of the seen values "
        f"leaves room for fewer beyond the limits: about {found.share:.0%} look as if they were "
        "hidden for another reason, unless the column is not normal. Say which are missing at "
        "random, or see normality."
    )
    return Candidate("hidden too often", name, found.p_value, text, found.log_likelihood)


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
