"""One correlation per pair, with the two marginals fixed.

With standardised values u, v and P₁₁(ρ) the probability that both are seen, the objective is

    f(ρ) = ½ n log(1 − ρ²) + (Σu² − 2ρ Σuv + Σv²) / (2(1 − ρ²)) − Σ_cells c · log P_cell(ρ),

over the rows in which both are seen, and the cells of the 2×2 table seen/hidden. ``truncation`` has
one cell, both seen, with c = −n₁₁ (it divides by the mass of the set); ``pairwise`` has the other three
with their counts. All four masses move together: P₁₁ = p_i p_j + I(ρ), P₁₀ = p_i q_j − I(ρ), and so on,
where I sums Plackett's integral over the corners of the set.
"""

import math
from typing import NamedTuple

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.bivariate import density_and_slope, excess, rectangle_log_mass

# Edge of the domain of ρ, on Fisher's scale: tanh(7) = 1 − 1.7e-6.
EDGE_Z = 7.0
# Where the objective is looked at first; between them the search goes on by Newton's method.
SCAN_Z = np.array([-EDGE_Z, -4.5, -2.75, -1.75, -1.0, -0.5, 0.0, 0.5, 1.0, 1.75, 2.75, 4.5, EDGE_Z])
# The scan begins this far from the ends of the list, at |ρ| = 0.94, and goes on where it has to.
FIRST_SCANNED = 3
# Signs with which I(ρ) enters the cells (both, first only, second only, neither).
_CELL_SIGN = np.array([1.0, -1.0, -1.0, 1.0])
# A mass that is this small next to the terms it is the difference of has lost its digits.
_CANCELLED = 1e-7


class PairSums(NamedTuple):
    """Per pair: rows in which both are seen, and Σu², Σv², Σuv over them."""

    n: np.ndarray
    suu: np.ndarray
    svv: np.ndarray
    suv: np.ndarray


class PairCells(NamedTuple):
    """Groups ``start[k] : start[k + 1]`` of pair k: the sets of both columns, and the cell counts."""

    start: np.ndarray
    left: np.ndarray
    right: np.ndarray
    counts: np.ndarray


class Pieces(NamedTuple):
    """Intervals ``start[k] : start[k + 1]`` of set k."""

    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class SetMasses(NamedTuple):
    """Per set: its mass and that of its complement, its finite ends with their signs, or a series.

    ``shown`` and ``gone`` hold the intervals of each set and of its complement.
    """

    p: np.ndarray
    q: np.ndarray
    end_start: np.ndarray
    ends: np.ndarray
    signs: np.ndarray
    series: np.ndarray
    shown: Pieces
    gone: Pieces


@njit(**INNER)
def _mass_excess(rho, i, j, sets):
    # I(ρ), I'(ρ), I''(ρ): corners of interval sets, or the Hermite series of general ones.
    value, slope, curve = 0.0, 0.0, 0.0
    for a in range(sets.end_start[i], sets.end_start[i + 1]):
        for b in range(sets.end_start[j], sets.end_start[j + 1]):
            sign = sets.signs[a] * sets.signs[b]
            value += sign * excess(sets.ends[a], sets.ends[b], rho)
            density, change = density_and_slope(sets.ends[a], sets.ends[b], rho)
            slope += sign * density
            curve += sign * change
    # I(ρ) = Σ_{k≥1} a_k b_k ρ^k, by Horner's rule with its derivatives
    for k in range(sets.series.shape[1] - 1, -1, -1):
        c = sets.series[i, k] * sets.series[j, k] if k > 0 else 0.0
        curve = curve * rho + 2.0 * slope
        slope = slope * rho + value
        value = value * rho + c
    return value, slope, curve


@njit(**INNER)
def _log_product_mass(rho, i, j, left, right):
    # log P of a product of two unions, as a sum of positive terms: slow, and never cancels.
    high, total = -math.inf, 0.0
    for a in range(left.start[i], left.start[i + 1]):
        for b in range(right.start[j], right.start[j + 1]):
            log_part = rectangle_log_mass(
                left.lower[a], left.upper[a], right.lower[b], right.upper[b], rho
            )
            if log_part > high:
                total = total * math.exp(high - log_part) + 1.0
                high = log_part
            elif log_part > -math.inf:
                total += math.exp(log_part - high)
    return high + math.log(total) if total > 0.0 else -math.inf


@njit(**INNER)
def _log_cell_mass(rho, i, j, cell, sum_of_terms, size, sets):
    # The quick sum where it has its digits; else term by term; -inf where neither can be had.
    if sum_of_terms > _CANCELLED * size:
        return math.log(sum_of_terms)
    if sets.series.shape[1] > 0:
        return -math.inf
    left = sets.shown if cell < 2 else sets.gone
    right = sets.shown if cell % 2 == 0 else sets.gone
    return _log_product_mass(rho, i, j, left, right)


@njit(**INNER)
def objective(rho, k, sums, cells, sets):
    """f(ρ), f'(ρ), f''(ρ) of pair k."""
    n, suv, total = sums.n[k], sums.suv[k], sums.suu[k] + sums.svv[k]
    v = 1.0 - rho * rho
    spread = total - 2.0 * rho * suv
    bend = rho * total - suv * (1.0 + rho * rho)
    f = 0.5 * n * math.log(v) + 0.5 * spread / v
    df = -n * rho / v + bend / (v * v)
    ddf = (spread - n * (1.0 + rho * rho)) / (v * v) + 4.0 * rho * bend / (v * v * v)
    mass = np.empty(4)
    for g in range(cells.start[k], cells.start[k + 1]):
        i, j = cells.left[g], cells.right[g]
        value, slope, curve = _mass_excess(rho, i, j, sets)
        mass[0], mass[1] = sets.p[i] * sets.p[j], sets.p[i] * sets.q[j]
        mass[2], mass[3] = sets.q[i] * sets.p[j], sets.q[i] * sets.q[j]
        for c in range(4):
            count = cells.counts[g, c]
            if count != 0.0:
                log_m = _log_cell_mass(
                    rho, i, j, c, mass[c] + _CELL_SIGN[c] * value, mass[c] + abs(value), sets
                )
                # A mass that is not known makes the point inadmissible, whatever its sign.
                f = f - count * log_m if log_m > -math.inf else math.inf
                m = math.exp(log_m)
                if m > 0.0:
                    ratio = slope / m
                    df -= count * _CELL_SIGN[c] * ratio
                    ddf -= count * (_CELL_SIGN[c] * curve / m - ratio * ratio)
    return f, df, ddf


@njit(**INNER)
def _polish(rho, low, high, k, sums, cells, sets):
    # A root of f' between low and high, by Newton's method kept inside a shrinking bracket.
    for _ in range(100):
        _, df, ddf = objective(rho, k, sums, cells, sets)
        if df < 0.0:
            low = rho
        else:
            high = rho
        following = rho - df / ddf if ddf > 0.0 else math.nan
        if not low < following < high:
            following = 0.5 * (low + high)
        # The tolerance follows 1 − ρ², the natural unit near the edge.
        if abs(following - rho) <= 1e-13 * (1.0 - rho * rho) + 1e-16:
            return following, True
        rho = following
    return rho, False


@njit(**KERNEL)
def solve_correlations(sums, cells, sets):
    """Minimise f for each pair; returns ρ and a flag: 0 inside, 1 on the edge, 2 not converged."""
    pairs = sums.n.size
    rho, flag = np.zeros(pairs), np.zeros(pairs, dtype=np.int64)
    for k in range(pairs):
        best, lowest = FIRST_SCANNED, math.inf
        for s in range(FIRST_SCANNED, SCAN_Z.size - FIRST_SCANNED):
            f, _, _ = objective(math.tanh(SCAN_Z[s]), k, sums, cells, sets)
            if f < lowest:
                best, lowest = s, f
        # On towards the edge only while the objective falls: masses there are costly.
        outwards = -1 if best == FIRST_SCANNED else 1
        while (best <= FIRST_SCANNED or best >= SCAN_Z.size - 1 - FIRST_SCANNED) and (
            0 <= best + outwards < SCAN_Z.size
        ):
            f, _, _ = objective(math.tanh(SCAN_Z[best + outwards]), k, sums, cells, sets)
            if not f < lowest:
                break
            best, lowest = best + outwards, f
        low = math.tanh(SCAN_Z[max(best - 1, 0)])
        high = math.tanh(SCAN_Z[min(best + 1, SCAN_Z.size - 1)])
        rho[k], converged = _polish(math.tanh(SCAN_Z[best]), low, high, k, sums, cells, sets)
        if not converged:
            flag[k] = 2
        if 1.0 - abs(rho[k]) < 1.01 * (1.0 - math.tanh(EDGE_Z)):
            flag[k] = 1
    return rho, flag
