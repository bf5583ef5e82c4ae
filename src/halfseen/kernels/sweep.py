"""Gibbs sweeps over the hidden cells of a block of rows.

A cell has, given the rest of its row, the normal distribution with precision P_jj and mean
−Σ_{k≠j} P_jk z_k / P_jj (rows are centred), restricted to its set and to the chord that the
inequalities of its row leave. With r = P z kept up to date the mean is z_j − r_j / P_jj; a move by
δ adds δ P_j to r.

Each draw also gives the mean and variance of its cell given all others. Statistics made of these
(Rao-Blackwell) have much less Monte-Carlo noise than those made of the draws.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from halfseen.kernels.special import ndtr, ndtri
from halfseen.kernels.univariate import draw, moments

# Φ(−35) is about 1e-268: beyond, masses are computed on a log scale.
FAR = 35.0
# Narrower intervals lose digits in closed forms, and are integrated instead.
NARROW = 0.1
INVERSE_ROOT_TWO_PI = 1.0 / math.sqrt(2.0 * math.pi)
# Nodes this many standard deviations away have no mass that a double can see.
NEGLIGIBLE = 9.0


class Cells(NamedTuple):
    """Hidden cells of a block of rows, and their sets, as ragged arrays.

    Column j has the cells ``start[j] : start[j + 1]``, each with its row and its set; set s has the
    intervals ``piece[s] : piece[s + 1]`` and the nodes ``node_start[s] : node_start[s + 1]``. Inequality
    i reads ``sign[r, i] · (V[:, i] · z) <= sign[r, i] · b[i]``, or nothing where the sign is 0.
    """

    start: np.ndarray
    row: np.ndarray
    set: np.ndarray
    piece: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    node_start: np.ndarray
    node: np.ndarray
    weight: np.ndarray
    V: np.ndarray
    b: np.ndarray
    sign: np.ndarray


@njit(cache=True, nogil=True, error_model="numpy")
def below(b, u):
    """Draw from a standard normal below b > −35; return it with its mean and variance."""
    p = ndtr(b)
    z = ndtri(u * p)
    # λ = φ(b)/Φ(b): mean −λ, variance 1 − bλ − λ²
    ratio = INVERSE_ROOT_TWO_PI * math.exp(-0.5 * b * b) / p
    return min(z, b), -ratio, 1.0 - ratio * (b + ratio)


@njit(cache=True, nogil=True, error_model="numpy")
def interval(a, b, scratch):
    """Log-mass, mean and variance of a standard normal on (a, b)."""
    if b - a > NARROW and a < FAR and b > -FAR:
        # Masses are taken on the side where they are small.
        mass = ndtr(-a) - ndtr(-b) if a > 0.0 else ndtr(b) - ndtr(a)
        left, right = math.exp(-0.5 * a * a), math.exp(-0.5 * b * b)
        mean = INVERSE_ROOT_TWO_PI * (left - right) / mass
        ends = (a * left if left > 0.0 else 0.0) - (b * right if right > 0.0 else 0.0)
        variance = 1.0 + INVERSE_ROOT_TWO_PI * ends / mass - mean * mean
        return math.log(mass), mean, max(variance, 0.0)
    log_mass = moments(0.0, 1.0, a, b, scratch)
    return log_mass, scratch[1], max(scratch[2] - scratch[1] * scratch[1], 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_interval(a, b, u, scratch):
    if a == -math.inf:
        if b == math.inf:
            return ndtri(u), 0.0, 1.0
        if b > -FAR:
            return below(b, u)
    elif b == math.inf and a < FAR:
        z, mean, variance = below(-a, 1.0 - u)
        return -z, -mean, variance
    _, mean, variance = interval(a, b, scratch)
    return draw(a, b, u), mean, variance


@njit(cache=True, nogil=True, error_model="numpy")
def draw_union(m, s, low, high, lower, upper, u, scratch):
    """Draw from N(m, s²) on a union of intervals between low and high, in units of s about m.

    A piece is chosen by its mass, with the same uniform, and drawn in; mean and variance are those of
    the union.
    """
    count = lower.size
    log_mass, mean, second = np.empty(count), np.empty(count), np.empty(count)
    top = -math.inf
    for k in range(count):
        a, b = (max(lower[k], low) - m) / s, (min(upper[k], high) - m) / s
        log_mass[k] = -math.inf
        if a < b:
            log_mass[k], mean[k], variance = interval(a, b, scratch)
            second[k] = variance + mean[k] * mean[k]
            top = max(top, log_mass[k])
    if top == -math.inf:
        return math.nan, 0.0, 0.0
    total, e1, e2 = 0.0, 0.0, 0.0
    for k in range(count):
        if log_mass[k] > -math.inf:
            share = math.exp(log_mass[k] - top)
            log_mass[k] = share
            total += share
            e1 += share * mean[k]
            e2 += share * second[k]
        else:
            log_mass[k] = 0.0
    e1, e2 = e1 / total, e2 / total
    left, chosen = u * total, -1
    for k in range(count):
        if log_mass[k] > 0.0:
            chosen = k
            if left < log_mass[k]:
                break
            left -= log_mass[k]
    inner = min(max(left / log_mass[chosen], 1e-300), 1.0 - 2.0**-53)
    a, b = (max(lower[chosen], low) - m) / s, (min(upper[chosen], high) - m) / s
    return draw(a, b, inner), e1, max(e2 - e1 * e1, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_node(m, s, low, high, node, weight, u):
    # A set that is known as a function: the quadrature rule itself is the distribution.
    first = np.searchsorted(node, max(low, m - NEGLIGIBLE * s))
    last = np.searchsorted(node, min(high, m + NEGLIGIBLE * s))
    top = -math.inf
    for k in range(first, last):
        if weight[k] > 0.0:
            top = max(top, -0.5 * ((node[k] - m) / s) ** 2)
    if top == -math.inf:
        # Nothing within reach: the nearest node that the set allows.
        first, last = 0, node.size
        for k in range(node.size):
            if weight[k] > 0.0 and low < node[k] < high:
                top = max(top, -0.5 * ((node[k] - m) / s) ** 2)
        if top == -math.inf:
            return math.nan, 0.0, 0.0
    total, e1, e2 = 0.0, 0.0, 0.0
    for k in range(first, last):
        if low < node[k] < high:
            z = (node[k] - m) / s
            share = weight[k] * math.exp(-0.5 * z * z - top)
            total += share
            e1 += share * z
            e2 += share * z * z
    left, chosen = u * total, math.nan
    for k in range(first, last):
        if low < node[k] < high:
            z = (node[k] - m) / s
            share = weight[k] * math.exp(-0.5 * z * z - top)
            if share > 0.0:
                chosen = z
                if left < share:
                    break
            left -= share
    e1, e2 = e1 / total, e2 / total
    return chosen, e1, max(e2 - e1 * e1, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _chord(z, along, level, value, sign):
    # What the inequalities leave for a coordinate that is z now and enters them with `along`.
    low, high = -math.inf, math.inf
    for i in range(along.size):
        if sign[i] != 0 and along[i] != 0.0:
            end = z + (level[i] - value[i]) / along[i]
            if (along[i] > 0.0) == (sign[i] > 0):
                high = min(high, end)
            else:
                low = max(low, end)
    return low, high


@njit(cache=True, nogil=True, error_model="numpy")
def _chords(cells, j, Z, W, level, low, high):
    # What the inequalities leave for each hidden cell of column j.
    first = cells.start[j]
    for c in range(first, cells.start[j + 1]):
        r = cells.row[c]
        low[c - first], high[c - first] = _chord(Z[r, j], cells.V[j], level, W[r], cells.sign[r])


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_column(cells, j, mean, s, m, low, high, uniforms, x, e, scratch):
    # Draw each hidden cell of column j, in units of its own distribution; return the sum of variances.
    first, total, per_deviation = cells.start[j], 0.0, 1.0 / s
    for c in range(first, cells.start[j + 1]):
        i, k = c - first, cells.set[c]
        p, q = cells.piece[k], cells.piece[k + 1]
        if q - p == 1:
            a = (max(cells.lower[p] - mean, low[i]) - m[i]) * per_deviation
            b = (min(cells.upper[p] - mean, high[i]) - m[i]) * per_deviation
            if a == -math.inf and -FAR < b < math.inf:
                x[i], e[i], v = below(b, uniforms[c])
            elif a < b:
                x[i], e[i], v = _draw_interval(a, b, uniforms[c], scratch)
            else:
                # Rounding has left no room: the cell stays where it is.
                x[i], e[i], v = math.nan, 0.0, 0.0
        elif q > p:
            x[i], e[i], v = draw_union(
                m[i] + mean, s, low[i] + mean, high[i] + mean,
                cells.lower[p:q], cells.upper[p:q], uniforms[c], scratch,
            )  # fmt: skip
        else:
            nodes = slice(cells.node_start[k], cells.node_start[k + 1])
            x[i], e[i], v = _draw_node(
                m[i] + mean, s, low[i] + mean, high[i] + mean,
                cells.node[nodes], cells.weight[nodes], uniforms[c],
            )  # fmt: skip
        total += v
    return s * s * total


@njit(cache=True, nogil=True, error_model="numpy")
def put(Y, cells, values):
    """Set the hidden cells of a block of rows, listed column by column, in place."""
    for j in range(Y.shape[1]):
        for c in range(cells.start[j], cells.start[j + 1]):
            Y[cells.row[c], j] = values[c]


@njit(cache=True, nogil=True, error_model="numpy")
def get(Y, cells, values):
    """Write the hidden cells of a block of rows, listed column by column, into ``values``."""
    for j in range(Y.shape[1]):
        for c in range(cells.start[j], cells.start[j + 1]):
            values[c] = Y[cells.row[c], j]


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(Y, Z, R, E, W, level, mean, P, cells, uniforms, backwards, variance):
    """Draw every hidden cell of a block of rows once, in place, column by column.

    ``Y`` are the rows, ``Z`` the rows less the mean, ``R = Z P`` and ``W = Z Vᵀ``, all kept up to date.
    ``E`` receives the mean of each hidden cell given the others, less its own mean, and
    ``variance`` the sum over rows of its variance. ``level`` are the inequalities' sides for
    centred rows. ``backwards`` says in which order the columns are drawn.
    """
    d = P.shape[0]
    most = Y.shape[0]
    m, low, high = np.empty(most), np.full(most, -math.inf), np.full(most, math.inf)
    x, e, scratch = np.empty(most), np.empty(most), np.empty(5)
    for step in range(d):
        j = d - 1 - step if backwards else step
        first, last = cells.start[j], cells.start[j + 1]
        if first == last:
            continue
        inverse = 1.0 / P[j, j]
        s = math.sqrt(inverse)
        for c in range(first, last):
            r = cells.row[c]
            m[c - first] = Z[r, j] - R[r, j] * inverse
        if level.size > 0:
            _chords(cells, j, Z, W, level, low, high)
        variance[j] += _draw_column(cells, j, mean[j], s, m, low, high, uniforms, x, e, scratch)
        for c in range(first, last):
            r, i = cells.row[c], c - first
            if math.isnan(x[i]):
                E[r, j] = Z[r, j]
                continue
            E[r, j] = m[i] + s * e[i]
            move = m[i] + s * x[i] - Z[r, j]
            Z[r, j] += move
            Y[r, j] = Z[r, j] + mean[j]
            for k in range(d):
                R[r, k] += move * P[j, k]
            for k in range(level.size):
                W[r, k] += move * cells.V[j, k]


@njit(cache=True, nogil=True, error_model="numpy")
def _room(z, along, lower, upper, low, high):
    # What an interval leaves for a step t along a line through z.
    if along > 0.0:
        return max(low, (lower - z) / along), min(high, (upper - z) / along)
    if along < 0.0:
        return max(low, (upper - z) / along), min(high, (lower - z) / along)
    return low, high


@njit(cache=True, nogil=True, error_model="numpy")
def slide(Y, Z, R, W, level, mean, P, index, cells, direction, uniforms):
    """Move the hidden cells of each row together along a direction, in place.

    On the line z + tδ the density is normal, with precision δ'Pδ and mean −δ'Pz/δ'Pδ; t is drawn on
    the segment around the current point that the cells' intervals and the inequalities leave. Where
    cells follow each other closely, a sweep by itself moves them together in small steps only.
    Cells known at nodes stay. ``index`` is the set of each cell, -1 where it is seen.
    """
    n, d = Z.shape
    delta, g = np.empty(d), np.empty(d)
    v = np.empty(level.size)
    for r in range(n):
        low, high = -math.inf, math.inf
        g[:] = 0.0
        v[:] = 0.0
        moving = 0
        for j in range(d):
            delta[j] = 0.0
            k = index[r, j]
            if k < 0 or cells.piece[k] == cells.piece[k + 1]:
                continue
            for p in range(cells.piece[k], cells.piece[k + 1]):
                if cells.lower[p] <= Y[r, j] <= cells.upper[p]:
                    delta[j] = direction[j]
                    low, high = _room(
                        Z[r, j], direction[j], cells.lower[p] - mean[j], cells.upper[p] - mean[j],
                        low, high,
                    )  # fmt: skip
                    break
            if delta[j] != 0.0:
                moving += 1
                for i in range(d):
                    g[i] += delta[j] * P[j, i]
                for i in range(level.size):
                    v[i] += delta[j] * cells.V[j, i]
        if moving < 2:
            # One cell by itself is drawn by the sweep.
            continue
        for i in range(level.size):
            sign = cells.sign[r, i]
            if sign > 0:
                low, high = _room(W[r, i], v[i], -math.inf, level[i], low, high)
            elif sign < 0:
                low, high = _room(W[r, i], v[i], level[i], math.inf, low, high)
        precision, slope = 0.0, 0.0
        for j in range(d):
            precision += delta[j] * g[j]
            slope += delta[j] * R[r, j]
        if not (precision > 0.0 and low < high):
            continue
        s = 1.0 / math.sqrt(precision)
        centre = -slope / precision
        step = centre + s * draw((low - centre) / s, (high - centre) / s, uniforms[r])
        for j in range(d):
            if delta[j] != 0.0:
                Z[r, j] += step * delta[j]
                Y[r, j] = Z[r, j] + mean[j]
            R[r, j] += step * g[j]
        for i in range(level.size):
            W[r, i] += step * v[i]
