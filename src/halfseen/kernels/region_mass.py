"""Probability of the hidden region of a row, given what is seen of it.

One or two hidden cells are integrated. More are sampled one after the other, each in what its set
leaves given those before it; the product of the masses on the way is an unbiased estimate (Geweke,
Hajivassiliou and Keane). Where inequalities bind the cells together, coordinates are turned so that
the first inequality involves one of them, the second two, and so on.
"""

import math

import numpy as np
from numba import njit

from halfseen.kernels.bivariate import rectangle_log_mass
from halfseen.kernels.quadrature import NODES_24, WEIGHTS_24
from halfseen.kernels.sweep import NEGLIGIBLE
from halfseen.kernels.univariate import draw, log_mass

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# For two bound cells: width of panels of 24 nodes, and how far out the mass is looked for.
PANEL, FARTHEST = 0.45, 1e3


@njit(cache=True, nogil=True, error_model="numpy")
def _log_add(a, b):
    if a == -math.inf:
        return b
    if b == -math.inf:
        return a
    high = max(a, b)
    return high + math.log(math.exp(a - high) + math.exp(b - high))


@njit(cache=True, nogil=True, error_model="numpy")
def set_log_mass(m, s, low, high, lower, upper, node, weight):
    """Log of the mass of N(m, s²) on a set cut to (low, high)."""
    total = -math.inf
    for k in range(lower.size):
        total = _log_add(
            total, log_mass((max(lower[k], low) - m) / s, (min(upper[k], high) - m) / s)
        )
    if node.size > 0:
        for k in range(node.size):
            if weight[k] > 0.0 and low < node[k] < high:
                z = (node[k] - m) / s
                total = _log_add(total, math.log(weight[k] / s) - 0.5 * z * z - HALF_LOG_TWO_PI)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _set_draw(m, s, low, high, lower, upper, node, weight, total, u):
    # A draw from the same restricted distribution, whose log-mass is known; in units of x.
    left = u
    chosen = math.nan
    for k in range(lower.size):
        a, b = (max(lower[k], low) - m) / s, (min(upper[k], high) - m) / s
        share = math.exp(log_mass(a, b) - total) if lower.size > 1 or node.size > 0 else 1.0
        if share > 0.0:
            inner = min(max(left / share, 2.0**-53), 1.0 - 2.0**-53)
            chosen = m + s * draw(a, b, inner)
            if left < share:
                return chosen
            left -= share
    for k in range(node.size):
        if weight[k] > 0.0 and low < node[k] < high:
            z = (node[k] - m) / s
            if abs(z) < NEGLIGIBLE:
                chosen = node[k]
                share = math.exp(math.log(weight[k] / s) - 0.5 * z * z - HALF_LOG_TWO_PI - total)
                if left < share:
                    return chosen
                left -= share
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def _chord_at(stage, eps, T, c, stages):
    # What the inequalities that are settled at this stage leave for its coordinate.
    low, high = -math.inf, math.inf
    for i in range(c.size):
        if stages[i] == stage:
            room = c[i]
            for k in range(stage):
                room -= T[i, k] * eps[k]
            if T[i, stage] > 0.0:
                high = min(high, room / T[i, stage])
            else:
                low = max(low, room / T[i, stage])
    return low, high


@njit(cache=True, nogil=True, error_model="numpy")
def _sets_of(cells, k):
    pieces = slice(cells.piece[k], cells.piece[k + 1])
    nodes = slice(cells.node_start[k], cells.node_start[k + 1])
    return cells.lower[pieces], cells.upper[pieces], cells.node[nodes], cells.weight[nodes]


@njit(cache=True, nogil=True, error_model="numpy")
def _path(m, L, sets, bound, T, c, stages, cells, u, eps):
    # One path of the sequential sampler; returns the log of its weight.
    h = m.size
    total = 0.0
    for j in range(h):
        low, high = _chord_at(j, eps, T, c, stages)
        if bound:
            # Turned coordinates: only the inequalities restrict, and each is settled somewhere.
            mass = log_mass(low, high)
            if mass == -math.inf:
                return -math.inf
            eps[j] = draw(low, high, u[j])
        else:
            centre = m[j]
            for k in range(j):
                centre += L[j, k] * eps[k]
            s = L[j, j]
            lower, upper, node, weight = _sets_of(cells, sets[j])
            low, high = centre + s * low, centre + s * high
            mass = set_log_mass(centre, s, low, high, lower, upper, node, weight)
            if mass == -math.inf:
                return -math.inf
            x = _set_draw(centre, s, low, high, lower, upper, node, weight, mass, u[j])
            eps[j] = (x - centre) / s
        total += mass
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _sampled(m, L, sets, bound, T, c, stages, cells, points, shifts):
    # Log of the average weight, and its variance over independently shifted point sets.
    eps, u = np.empty(m.size), np.empty(m.size)
    logs = np.empty(shifts.shape[0])
    for b in range(shifts.shape[0]):
        total = -math.inf
        for q in range(points.shape[0]):
            for j in range(m.size):
                u[j] = min(max((points[q, j] + shifts[b, j]) % 1.0, 2.0**-53), 1.0 - 2.0**-53)
            total = _log_add(total, _path(m, L, sets, bound, T, c, stages, cells, u, eps))
        logs[b] = total - math.log(points.shape[0])
    high = logs.max()
    if high == -math.inf:
        return -math.inf, 0.0
    weights = np.exp(logs - high)
    mean = weights.mean()
    relative = ((weights - mean) ** 2).sum() / (weights.size - 1) / weights.size / (mean * mean)
    # The logarithm of an average is low by half its relative variance.
    return high + math.log(mean) + 0.5 * relative, relative


@njit(cache=True, nogil=True, error_model="numpy")
def _two_bound(m, L, sets, T, c, stages, cells):
    # Two cells: quadrature over the first, closed form over the second, for each pair of pieces.
    low0, high0 = _chord_at(0, np.empty(2), T, c, stages)
    lower, upper, node, weight = _sets_of(cells, sets[0])
    total = -math.inf
    lines = _lines(T, c, stages)
    below, above, points, chance = _sets_of(cells, sets[1])
    for q in range(max(1, below.size)):
        if below.size > 0:
            # The piece of the second cell as two more lines: l <= m₁ + L₁₀ z + L₁₁ e <= u.
            _set_line(lines, len(lines) - 2, -L[1, 0], -L[1, 1], m[1] - below[q])
            _set_line(lines, len(lines) - 1, L[1, 0], L[1, 1], above[q] - m[1])
        for k in range(node.size):
            z = (node[k] - m[0]) / L[0, 0]
            if weight[k] > 0.0 and low0 < z < high0:
                inner = _log_slice(z, lines, m, L, points, chance)
                total = _log_add(total, math.log(weight[k] / L[0, 0]) + inner)
        for p in range(lower.size):
            start = max(low0, (lower[p] - m[0]) / L[0, 0])
            stop = min(high0, (upper[p] - m[0]) / L[0, 0])
            total = _log_add(total, _log_outer(start, stop, lines, m, L, points, chance))
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _set_line(lines, k, a, b, h):
    # One by one: assigning a tuple takes two seconds to compile.
    lines[k, 0] = a
    lines[k, 1] = b
    lines[k, 2] = h


@njit(cache=True, nogil=True, error_model="numpy")
def _lines(T, c, stages):
    # Inequalities a z + b e <= h that involve the second coordinate: rows (a, b, h), and room for two.
    count = 0
    for i in range(c.size):
        count += stages[i] == 1
    out = np.zeros((count + 2, 3))
    out[:, 2] = math.inf
    k = 0
    for i in range(c.size):
        if stages[i] == 1:
            _set_line(out, k, T[i, 0], T[i, 1], c[i])
            k += 1
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _log_slice(z, lines, m, L, points, chance):
    # Log of the density of the first coordinate times the mass that is left to the second.
    low, high = -math.inf, math.inf
    for i in range(len(lines)):
        if lines[i, 1] > 0.0:
            high = min(high, (lines[i, 2] - lines[i, 0] * z) / lines[i, 1])
        elif lines[i, 1] < 0.0:
            low = max(low, (lines[i, 2] - lines[i, 0] * z) / lines[i, 1])
    if points.size == 0:
        mass = log_mass(low, high)
    else:
        s, centre, none = L[1, 1], m[1] + L[1, 0] * z, points[:0]
        mass = set_log_mass(
            centre, s, centre + s * low, centre + s * high, none, none, points, chance
        )
    return mass - 0.5 * z * z - HALF_LOG_TWO_PI


@njit(cache=True, nogil=True, error_model="numpy")
def _log_outer(start, stop, lines, m, L, points, chance):
    # Quadrature over the first coordinate, on panels that end where two lines cross: the mass of the
    # slice has a kink there. That of a convex slice is log-concave in z, so that the integrand falls
    # from its peak at least as fast as a normal density: nine units on both sides hold all.
    cuts = np.empty(len(lines) * (len(lines) - 1) // 2 + 2)
    count = 0
    for i in range(len(lines)):
        for j in range(i):
            b, d = lines[i, 1], lines[j, 1]
            slope = lines[i, 0] / b - lines[j, 0] / d if b != 0.0 and d != 0.0 else 0.0
            gap = lines[i, 2] / b - lines[j, 2] / d if b != 0.0 and d != 0.0 else 0.0
            if slope != 0.0 and abs(gap) < math.inf:
                z = gap / slope
                cuts[count] = z
                count += 1
                # Where one bounds from above and the other from below, there is room on one side only.
                if b * d < 0.0:
                    if (b > 0.0) == (slope > 0.0):
                        stop = min(stop, z)
                    else:
                        start = max(start, z)
    if not start < stop:
        return -math.inf
    peak = min(max(0.0, start), stop)
    if points.size == 0:
        peak = _peak(max(start, -FARTHEST), min(stop, FARTHEST), lines, m, L, points, chance)
    start, stop = max(start, peak - NEGLIGIBLE), min(stop, peak + NEGLIGIBLE)
    cuts[count], cuts[count + 1] = start, stop
    ends = np.sort(np.minimum(np.maximum(cuts[: count + 2], start), stop))
    total = -math.inf
    for i in range(ends.size - 1):
        panels = math.ceil((ends[i + 1] - ends[i]) / PANEL)
        for panel in range(panels):
            width = (ends[i + 1] - ends[i]) / panels
            for k in range(NODES_24.size):
                z = ends[i] + width * (panel + NODES_24[k])
                inner = _log_slice(z, lines, m, L, points, chance)
                total = _log_add(total, math.log(WEIGHTS_24[k] * width) + inner)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _peak(low, high, lines, m, L, points, chance):
    # Golden-section search; the integrand is log-concave.
    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left = _log_slice(left, lines, m, L, points, chance)
    at_right = _log_slice(right, lines, m, L, points, chance)
    for _ in range(60):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = _log_slice(right, lines, m, L, points, chance)
        else:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = _log_slice(left, lines, m, L, points, chance)
    return 0.5 * (low + high)


@njit(cache=True, nogil=True, error_model="numpy")
def _two_free(m, C, sets, cells):
    # Two cells in a box of intervals: rectangles.
    s0, s1 = math.sqrt(C[0, 0]), math.sqrt(C[1, 1])
    rho = C[0, 1] / (s0 * s1)
    total = -math.inf
    for p in range(cells.piece[sets[0]], cells.piece[sets[0] + 1]):
        for q in range(cells.piece[sets[1]], cells.piece[sets[1] + 1]):
            part = rectangle_log_mass(
                (cells.lower[p] - m[0]) / s0,
                (cells.upper[p] - m[0]) / s0,
                (cells.lower[q] - m[1]) / s1,
                (cells.upper[q] - m[1]) / s1,
                rho,
            )
            total = _log_add(total, part)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _last_used(T):
    # The coordinate at which each inequality is settled: the last one it involves; -1 for none.
    stages = np.empty(T.shape[0], dtype=np.int64)
    for i in range(T.shape[0]):
        size = np.abs(T[i]).max()
        stages[i] = -1
        for k in range(T.shape[1]):
            if abs(T[i, k]) > 1e-12 * size:
                stages[i] = k
    return stages


@njit(cache=True, nogil=True, error_model="numpy")
def row_log_mass(m, C, sets, A, c, boxed, cells, points, shifts):
    """Log P(hidden cells ~ N(m, C) lie in their sets and A z <= c), and its relative variance.

    ``boxed`` says whether any set is not the whole line; ``sets`` are those of the hidden cells.
    """
    h = m.size
    L = np.linalg.cholesky(C)
    none = A.shape[0] == 0
    nodes = False
    for j in range(h):
        nodes = nodes or cells.node_start[sets[j] + 1] > cells.node_start[sets[j]]
    if h == 2 and none and not nodes:
        return _two_free(m, C, sets, cells), 0.0
    T = A @ L
    level = c - A @ m
    bound = not none and not boxed and h > 2
    if bound:
        # A L = (lower trapezoid)·Qᵀ, and Qᵀε is as standard normal as ε.
        R = np.linalg.qr(T.T)[1]
        T = np.zeros((R.shape[1], h))
        for i in range(R.shape[1]):
            for k in range(R.shape[0]):
                T[i, k] = R[k, i]
    # Inequalities in which no hidden cell takes part are settled nowhere: ``check`` has judged them.
    stages = _last_used(T)
    if h == 1:
        low, high = _chord_at(0, np.empty(1), T, level, stages)
        lower, upper, node, weight = _sets_of(cells, sets[0])
        s = L[0, 0]
        return set_log_mass(
            m[0], s, m[0] + s * low, m[0] + s * high, lower, upper, node, weight
        ), 0.0
    if h == 2:
        return _two_bound(m, L, sets, T, level, stages, cells), 0.0
    return _sampled(m, L, sets, bound, T, level, stages, cells, points, shifts)


@njit(cache=True, nogil=True, error_model="numpy")
def block_log_likelihood(Y, index, mean, P, log_det, cells, free, points, shifts, out, variance):
    """Observed-data log-likelihood of each row, and the variance of its estimate.

    ``index`` is the set of each cell (-1 where seen), ``free`` says which sets are the whole line, and
    ``log_det`` is log|Σ|.
    """
    n, d = Y.shape
    for r in range(n):
        h = 0
        for j in range(d):
            h += index[r, j] >= 0
        hidden, seen = np.empty(h, dtype=np.int64), np.empty(d - h, dtype=np.int64)
        a, b = 0, 0
        for j in range(d):
            if index[r, j] >= 0:
                hidden[a] = j
                a += 1
            else:
                seen[b] = j
                b += 1
        z = np.zeros(d)
        for k in range(d - h):
            z[seen[k]] = Y[r, seen[k]] - mean[seen[k]]
        log_k, mass, spread = 0.0, 0.0, 0.0
        if h > 0:
            K, pull = np.empty((h, h)), np.zeros(h)
            for a in range(h):
                for b in range(h):
                    K[a, b] = P[hidden[a], hidden[b]]
                for b in range(d - h):
                    pull[a] += P[hidden[a], seen[b]] * z[seen[b]]
            C = np.linalg.inv(K)
            C = 0.5 * (C + C.T)
            m = -C @ pull
            log_k = np.linalg.slogdet(K)[1]
            sets, walls = np.empty(h, dtype=np.int64), 0
            for a in range(h):
                z[hidden[a]] = m[a]
                sets[a] = index[r, hidden[a]]
                walls += not free[sets[a]]
            used = 0
            for i in range(cells.b.size):
                used += cells.sign[r, i] != 0
            if walls > 0 or used > 0:
                A, c = np.empty((used, h)), np.empty(used)
                k = 0
                for i in range(cells.b.size):
                    sign = cells.sign[r, i]
                    if sign != 0:
                        c[k] = sign * cells.b[i]
                        for b in range(d - h):
                            c[k] -= sign * cells.V[seen[b], i] * Y[r, seen[b]]
                        for a in range(h):
                            A[k, a] = sign * cells.V[hidden[a], i]
                        k += 1
                for a in range(h):
                    m[a] += mean[hidden[a]]
                mass, spread = row_log_mass(m, C, sets, A, c, walls > 0, cells, points, shifts[r])
        square = 0.0
        for j in range(d):
            inner = 0.0
            for k in range(d):
                inner += P[j, k] * z[k]
            square += z[j] * inner
        out[r] = mass - 0.5 * (square + log_det + log_k) - (d - h) * HALF_LOG_TWO_PI
        variance[r] = spread
