"""The law of a row's confined cells, given what is seen of it: its mass, its moments, draws from it.

Confined cells have a set each, and inequalities may bind them together; given the seen cells they are
normal, N(m, S), restricted to that region. One cell is integrated in closed form, two in intervals by
quadrature. More are sampled one after the other, each in what its set leaves given those before it (the
sampler of Geweke, Hajivassiliou and Keane): a path of draws, whose weight is the product of the masses
on the way. Paths are driven by points of a shifted lattice: averages over them are functions of m and S,
smooth ones where every cell lies in one interval, and have much less noise than independent draws.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from halfseen.kernels.bivariate import outer_nodes
from halfseen.kernels.special import ndtr, ndtri
from halfseen.kernels.univariate import FAR, NEGLIGIBLE_DROP, draw, interval, log_mass

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Where every path of a row ends outside its region, so many more sets of points are tried.
MOST_TRIES = 64
# Nodes this many standard deviations away have no mass that a double can see.
NEGLIGIBLE = 9.0
# Steps towards the tilts of paths, and the share of the way that each goes: longer ones overshoot where
# cells go against each other.
TILT_STEPS, TILT_SHARE = 4, 0.35
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
SMALLEST_UNIFORM, SMALLEST_PRODUCT = 2.0**-53, 1e-30


class Confines(NamedTuple):
    """The sets of hidden cells, and inequalities between them, as ragged arrays.

    Set s has the intervals ``piece[s] : piece[s + 1]`` and the nodes ``node_start[s] :
    node_start[s + 1]``. Inequality i reads ``sign[r, i] · (V[:, i] · y) <= sign[r, i] · b[i]`` in row r,
    or nothing where the sign is 0.
    """

    piece: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    node_start: np.ndarray
    node: np.ndarray
    weight: np.ndarray
    V: np.ndarray
    b: np.ndarray


@njit(cache=True, nogil=True, error_model="numpy")
def log_add(a, b):
    """Log(eᵃ + eᵇ)."""
    if a == -math.inf:
        return b
    if b == -math.inf:
        return a
    high = max(a, b)
    return high + math.log(math.exp(a - high) + math.exp(b - high))


@njit(cache=True, nogil=True, error_model="numpy")
def _nodes_within(m, s, low, high, k, confines):
    # The nodes of a set that matter to N(m, s²) on (low, high), and the least z² among them. Where none
    # is within reach, all do.
    first, last = confines.node_start[k], confines.node_start[k + 1]
    node = confines.node[first:last]
    start = np.searchsorted(node, max(low, m - NEGLIGIBLE * s), side="right")
    stop = np.searchsorted(node, min(high, m + NEGLIGIBLE * s))
    if start >= stop:
        start, stop = np.searchsorted(node, low, side="right"), np.searchsorted(node, high)
    least = math.inf
    for p in range(first + start, first + stop):
        if confines.weight[p] > 0.0:
            z = (confines.node[p] - m) / s
            least = min(least, z * z)
    return first + start, first + stop, least


@njit(cache=True, nogil=True, error_model="numpy")
def set_log_mass(m, s, low, high, k, confines):
    """Log of the mass of N(m, s²) on set k cut to (low, high)."""
    total = -math.inf
    for p in range(confines.piece[k], confines.piece[k + 1]):
        a, b = max(confines.lower[p], low), min(confines.upper[p], high)
        total = log_add(total, log_mass((a - m) / s, (b - m) / s))
    if confines.node_start[k] < confines.node_start[k + 1]:
        # A set that is known as a function: the quadrature rule itself is the distribution.
        first, last, least = _nodes_within(m, s, low, high, k, confines)
        mass = 0.0
        for p in range(first, last):
            z = (confines.node[p] - m) / s
            mass += confines.weight[p] * math.exp(0.5 * (least - z * z))
        if mass > 0.0:
            total = log_add(total, math.log(mass / s) - 0.5 * least - HALF_LOG_TWO_PI)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def set_draw(m, s, low, high, k, confines, total, u):
    """Draw from N(m, s²) on set k cut to (low, high), whose log-mass is known, from one uniform."""
    first, last = confines.piece[k], confines.piece[k + 1]
    left, chosen = u, math.nan
    for p in range(first, last):
        a = (max(confines.lower[p], low) - m) / s
        b = (min(confines.upper[p], high) - m) / s
        share = math.exp(log_mass(a, b) - total) if last - first > 1 else 1.0
        if share > 0.0:
            inner = min(max(left / share, SMALLEST_UNIFORM), 1.0 - SMALLEST_UNIFORM)
            chosen = m + s * draw(a, b, inner)
            if left < share:
                return chosen
            left -= share
    if confines.node_start[k] < confines.node_start[k + 1]:
        start, stop, _ = _nodes_within(m, s, low, high, k, confines)
        for p in range(start, stop):
            z = (confines.node[p] - m) / s
            share = confines.weight[p] / s * math.exp(-0.5 * z * z - HALF_LOG_TWO_PI - total)
            if share > 0.0:
                chosen = confines.node[p]
                if left < share:
                    return chosen
                left -= share
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def set_moments(m, s, low, high, k, confines, out):
    """Log-mass of N(m, s²) on set k cut to (low, high); ``out`` are E[(x − m)^r], r = 0 … 4."""
    out[:] = 0.0
    top = set_log_mass(m, s, low, high, k, confines)
    if top == -math.inf:
        return top
    part = np.empty(5)
    for p in range(confines.piece[k], confines.piece[k + 1]):
        a = (max(confines.lower[p], low) - m) / s
        b = (min(confines.upper[p], high) - m) / s
        mass = interval(a, b, part)
        if mass > -math.inf:
            share = math.exp(mass - top)
            for r in range(5):
                out[r] += share * part[r]
    if confines.node_start[k] < confines.node_start[k + 1]:
        first, last, _ = _nodes_within(m, s, low, high, k, confines)
        for p in range(first, last):
            z = (confines.node[p] - m) / s
            share = confines.weight[p] / s * math.exp(-0.5 * z * z - HALF_LOG_TWO_PI - top)
            for r in range(5):
                out[r] += share
                share *= z
    scale = 1.0
    for r in range(5):
        out[r] *= scale
        scale *= s
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def _add_rectangle(out, total, a, b, rho, root, part):
    # Add what a rectangle says to the moments `out`, of log-mass `total`; return the log-mass of both.
    node, weight, peak = outer_nodes(a[0], b[0], a[1], b[1], rho)
    part[:, :], inner = 0.0, np.empty(5)
    for k in range(node.size):
        u = node[k]
        mass = interval((a[1] - rho * u) / root, (b[1] - rho * u) / root, inner)
        if mass > -math.inf:
            power = weight[k] * math.exp(-0.5 * u * u + mass - peak)
            _add_products(part, power, u, rho * u, root, inner)
    if not part[0, 0] > 0.0:
        return total
    mass = math.log(part[0, 0]) + peak - HALF_LOG_TWO_PI
    _mix(out, total, part, mass)
    return log_add(total, mass)


@njit(cache=True, nogil=True, error_model="numpy")
def box_moments(m, S, sets, confines, out):
    """Log-mass of N(m, S) on a product of two unions of intervals.

    ``out[a, b]`` becomes E[(x − m₀)^a (y − m₁)^b], a + b <= 4. Quadrature over the first cell, closed
    forms over the second, for each rectangle that has mass next to the others.
    """
    s0, s1 = math.sqrt(S[0, 0]), math.sqrt(S[1, 1])
    rho = S[0, 1] / (s0 * s1)
    root = math.sqrt(max(1.0 - rho * rho, 1e-300))
    total, part = -math.inf, np.empty((5, 5))
    start = confines.piece[sets[0]], confines.piece[sets[1]]
    count = confines.piece[sets[0] + 1] - start[0], confines.piece[sets[1] + 1] - start[1]
    a, b = np.empty((count[0] * count[1], 2)), np.empty((count[0] * count[1], 2))
    bound = np.empty(len(a))
    for k in range(len(a)):
        p, q = start[0] + k // count[1], start[1] + k % count[1]
        a[k, 0], b[k, 0] = (confines.lower[p] - m[0]) / s0, (confines.upper[p] - m[0]) / s0
        a[k, 1], b[k, 1] = (confines.lower[q] - m[1]) / s1, (confines.upper[q] - m[1]) / s1
        # A rectangle has no more mass than either of its sides.
        bound[k] = min(log_mass(a[k, 0], b[k, 0]), log_mass(a[k, 1], b[k, 1]))
    out[:, :] = 0.0
    for _ in range(len(a)):
        k = bound.argmax()
        if not bound[k] > total - NEGLIGIBLE_DROP:
            break
        total = _add_rectangle(out, total, a[k], b[k], rho, root, part)
        bound[k] = -math.inf
    for i in range(5):
        for j in range(5 - i):
            out[i, j] *= s0**i * s1**j
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _add_products(part, power, u, centre, root, inner):
    # Adds power · u^a · E[(centre + root·e)^b] for a + b <= 4, where e has the moments `inner`.
    e1, e2, e3, e4 = root * inner[1], root**2 * inner[2], root**3 * inner[3], root**4 * inner[4]
    c = centre
    y1 = c + e1
    y2 = c * c + 2.0 * c * e1 + e2
    y3 = c**3 + 3.0 * c * c * e1 + 3.0 * c * e2 + e3
    y4 = c**4 + 4.0 * c**3 * e1 + 6.0 * c * c * e2 + 4.0 * c * e3 + e4
    for a in range(5):
        part[a, 0] += power
        if a < 4:
            part[a, 1] += power * y1
        if a < 3:
            part[a, 2] += power * y2
        if a < 2:
            part[a, 3] += power * y3
        if a < 1:
            part[a, 4] += power * y4
        power *= u


@njit(cache=True, nogil=True, error_model="numpy")
def _mix(out, total, part, mass):
    # The moments of a mixture: what `out` holds, of log-mass `total`, and sums of log-mass `mass`.
    top = log_add(total, mass)
    old = math.exp(total - top) if total > -math.inf else 0.0
    new = math.exp(mass - top) / part[0, 0]
    for a in range(5):
        for b in range(5 - a):
            out[a, b] = old * out[a, b] + new * part[a, b]


@njit(cache=True, nogil=True, error_model="numpy")
def cholesky(S, L):
    """Fill the lower triangle of L with the Cholesky factor of S; return whether it exists."""
    h = len(S)
    for i in range(h):
        for j in range(i + 1):
            total = S[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i > j:
                L[i, j] = total / L[j, j]
            elif total > 0.0:
                L[i, i] = math.sqrt(total)
            else:
                return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def invert(K, S):
    """Fill S with the inverse of a positive definite K; return log|K|, or NaN where it is not."""
    h = len(K)
    L = np.zeros((h, h))
    if not cholesky(K, L):
        return math.nan
    total = 0.0
    # The inverse of L in place, and then S = L⁻ᵀ L⁻¹.
    for j in range(h):
        total += 2.0 * math.log(L[j, j])
        L[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, h):
            value = 0.0
            for k in range(j, i):
                value -= L[i, k] * L[k, j]
            L[i, j] = value / L[i, i]
    for i in range(h):
        for j in range(i + 1):
            value = 0.0
            for k in range(i, h):
                value += L[k, i] * L[k, j]
            S[i, j] = S[j, i] = value
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _uniform(point, shift):
    # A shifted lattice, folded: averages of smooth functions then converge faster.
    u = point + shift
    if u >= 1.0:
        u -= 1.0
    return min(max(abs(2.0 * u - 1.0), SMALLEST_UNIFORM), 1.0 - SMALLEST_UNIFORM)


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(L, low, high, tilt, points, shift, X, weights):
    # Paths e of cells in one interval each, every step drawn around its tilt μ: its weight is
    # P(a < z + μ < b)·φ(e)/φ(e − μ).
    h = len(L)
    e = np.empty(h)
    for q in range(len(points)):
        total, product = 0.0, 1.0
        for j in range(h):
            centre, mu = 0.0, tilt[j]
            for k in range(j):
                centre += L[j, k] * e[k]
            inverse, u = 1.0 / L[j, j], _uniform(points[q, j], shift[j])
            a, b = (low[j] - centre) * inverse - mu, (high[j] - centre) * inverse - mu
            if a == -math.inf and b > -FAR:
                p = ndtr(b)
                e[j] = min(ndtri(u * p), b)
                product *= p
            elif b == math.inf and a < FAR:
                p = ndtr(-a)
                e[j] = max(-ndtri(u * p), a)
                product *= p
            else:
                total += log_mass(a, b)
                e[j] = draw(a, b, u)
            if product < SMALLEST_PRODUCT:
                # Masses of -35 spreads and more may follow: the product must stay a number.
                total += math.log(product)
                product = 1.0
            e[j] += mu
            total += mu * (0.5 * mu - e[j])
            X[q, j] = centre + L[j, j] * e[j]
        weights[q] = total + math.log(product)


@njit(cache=True, nogil=True, error_model="numpy")
def _find_tilt(L, low, high, tilt):
    # Towards the tilt under which the largest weight of a path is smallest (Botev 2017). With Λ_j the
    # mean of the restricted step j along the path e, there e_j = μ_j + Λ_j and
    # μ_j = Σ_{k>j} L_kj Λ_k / L_kk.
    h = len(L)
    e, pull, part = np.zeros(h), np.empty(h), np.empty(5)
    tilt[:] = 0.0
    for step in range(TILT_STEPS):
        share = 1.0 if step == 0 else TILT_SHARE
        for j in range(h):
            centre, inverse = 0.0, 1.0 / L[j, j]
            for k in range(j):
                centre += L[j, k] * e[k]
            a, b = (low[j] - centre) * inverse - tilt[j], (high[j] - centre) * inverse - tilt[j]
            interval(a, b, part)
            e[j] += share * (tilt[j] + part[1] - e[j])
            pull[j] = 0.0
            for k in range(j):
                pull[k] += L[j, k] * part[1] * inverse
        for j in range(h):
            tilt[j] += TILT_SHARE * (pull[j] - tilt[j])


@njit(cache=True, nogil=True, error_model="numpy")
def _interval_paths(m, S, sets, confines, points, shift, X, weights):
    # Cells in one interval each: steps are tilted towards where the region lets all of them end.
    h = m.size
    low, high = np.empty(h), np.empty(h)
    for j in range(h):
        p = confines.piece[sets[j]]
        low[j], high[j] = confines.lower[p] - m[j], confines.upper[p] - m[j]
    L, tilt = np.zeros((h, h)), np.empty(h)
    if not cholesky(S, L):
        weights[:] = -math.inf
        return
    _find_tilt(L, low, high, tilt)
    _walk(L, low, high, tilt, points, shift, X, weights)


@njit(cache=True, nogil=True, error_model="numpy")
def _last_used(T):
    # The coordinate at which each inequality is settled: the last one it involves; -1 for none.
    stages = np.empty(T.shape[0], dtype=np.int64)
    for i in range(T.shape[0]):
        size = 0.0
        for k in range(T.shape[1]):
            size = max(size, abs(T[i, k]))
        stages[i] = -1
        for k in range(T.shape[1]):
            if abs(T[i, k]) > 1e-12 * size:
                stages[i] = k
    return stages


@njit(cache=True, nogil=True, error_model="numpy")
def chord_at(stage, e, T, c, stages):
    """Return what the inequalities that are settled at a stage leave for its coordinate."""
    low, high = -math.inf, math.inf
    for i in range(c.size):
        if stages[i] == stage:
            room = c[i]
            for k in range(stage):
                room -= T[i, k] * e[k]
            if T[i, stage] > 0.0:
                high = min(high, room / T[i, stage])
            else:
                low = max(low, room / T[i, stage])
    return low, high


@njit(cache=True, nogil=True, error_model="numpy")
def _set_paths(m, S, sets, A, c, confines, points, shift, X, weights):
    # Cells in sets of any kind, perhaps with inequalities, one after the other as they come.
    h = m.size
    L = np.zeros((h, h))
    if not cholesky(S, L):
        weights[:] = -math.inf
        return
    T, level = A @ L, c - A @ m
    stages, e = _last_used(T), np.empty(h)
    for q in range(len(points)):
        total = 0.0
        for j in range(h):
            low, high = chord_at(j, e, T, level, stages)
            centre, s = m[j], L[j, j]
            for k in range(j):
                centre += L[j, k] * e[k]
            low, high = centre + s * low, centre + s * high
            mass = set_log_mass(centre, s, low, high, sets[j], confines)
            total += mass
            if total == -math.inf:
                break
            u = _uniform(points[q, j], shift[j])
            x = set_draw(centre, s, low, high, sets[j], confines, mass, u)
            e[j] = (x - centre) / s
            X[q, j] = x - m[j]
        weights[q] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _turned_paths(m, S, A, c, points, shift, X, weights):
    # Inequalities. Coordinates are turned, A L = (lower trapezoid)·Qᵀ, so that the first
    # inequality involves one of them, the second two, and so on: the tightest first.
    h, count = m.size, c.size
    L = np.zeros((h, h))
    if not cholesky(S, L):
        weights[:] = -math.inf
        return
    T, level, room = A @ L, c - A @ m, np.empty(count)
    for i in range(count):
        room[i] = level[i] / math.sqrt(max((T[i] * T[i]).sum(), 1e-300))
    order = np.argsort(room)
    turn = np.zeros((h, h + count))
    for i in range(count):
        turn[:, i] = T[order[i]]
    # Unit vectors complete the basis where there are fewer inequalities than cells.
    for i in range(h):
        turn[i, count + i] = 1.0
    Q, R = np.linalg.qr(turn)
    T, level = np.ascontiguousarray(R[:, :count].T), level[order]
    stages, e, back = _last_used(T), np.empty(h), L @ np.ascontiguousarray(Q)
    for q in range(len(points)):
        total = 0.0
        for j in range(h):
            low, high = chord_at(j, e, T, level, stages)
            total += log_mass(low, high)
            if total == -math.inf:
                break
            e[j] = draw(low, high, _uniform(points[q, j], shift[j]))
        if total > -math.inf:
            for j in range(h):
                value = 0.0
                for k in range(h):
                    value += back[j, k] * e[k]
                X[q, j] = value
        weights[q] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _with_intervals(sets, A, c, confines):
    # The inequalities A y <= c, and the ends of the cells' intervals as further ones.
    h, count = sets.size, c.size
    B, e = np.zeros((count + 2 * h, h)), np.empty(count + 2 * h)
    B[:count], e[:count] = A, c
    for j in range(h):
        p = confines.piece[sets[j]]
        if confines.upper[p] < math.inf:
            B[count, j], e[count] = 1.0, confines.upper[p]
            count += 1
        if confines.lower[p] > -math.inf:
            B[count, j], e[count] = -1.0, -confines.lower[p]
            count += 1
    return B[:count].copy(), e[:count].copy()


@njit(cache=True, nogil=True, error_model="numpy")
def fill_paths(m, S, sets, A, c, confines, points, shift, X, weights):
    """Fill ``X`` with paths less ``m``, one for each point, and ``weights`` with normalised weights.

    ``A y <= c`` are the inequalities of the row. Returns the log of the mass of the region, as the
    average of the weights has it; -inf where no path ends inside.
    """
    single = True
    for k in sets:
        single = single and confines.piece[k + 1] - confines.piece[k] == 1
    bound = A.shape[0] > 0
    if single and bound:
        A, c = _with_intervals(sets, A, c, confines)
    for attempt in range(MOST_TRIES):
        moved = (shift + GOLDEN * attempt) % 1.0
        if not single:
            _set_paths(m, S, sets, A, c, confines, points, moved, X, weights)
        elif bound:
            _turned_paths(m, S, A, c, points, moved, X, weights)
        else:
            _interval_paths(m, S, sets, confines, points, moved, X, weights)
        top = weights.max()
        if top > -math.inf:
            total = 0.0
            for q in range(weights.size):
                weights[q] = math.exp(weights[q] - top)
                total += weights[q]
                if weights[q] == 0.0:
                    X[q] = 0.0
            weights /= total
            return top + math.log(total / ((attempt + 1) * weights.size))
    return -math.inf


@njit(cache=True, nogil=True, error_model="numpy")
def order_cells(m, S, sets, confines, order):
    """Fill ``order`` with the cells of a row, the least likely first.

    Each is the one whose set has the least mass given those before it, where these have their expected
    values (Gibson, Glasbey and Elston 1994): weights of paths then differ little.
    """
    h = m.size
    L, e, moments = np.zeros((h, h)), np.empty(h), np.empty(5)
    order[:] = np.arange(h)
    for i in range(h):
        chosen, least, centre, s = -1, math.inf, 0.0, 0.0
        for p in range(i, h):
            j = order[p]
            mean, left = m[j], S[j, j]
            for k in range(i):
                mean += L[j, k] * e[k]
                left -= L[j, k] * L[j, k]
            if not left > 0.0:
                # What is left of S is rounding: the rest as they come.
                return
            mass = set_log_mass(mean, math.sqrt(left), -math.inf, math.inf, sets[j], confines)
            if chosen < 0 or mass < least:
                chosen, least, centre, s = p, mass, mean, math.sqrt(left)
        first = order[chosen]
        order[chosen], order[i] = order[i], first
        set_moments(centre, s, -math.inf, math.inf, sets[first], confines, moments)
        e[i] = moments[1] / s
        for p in range(i, h):
            j = order[p]
            value = S[j, first]
            for k in range(i):
                value -= L[j, k] * L[first, k]
            L[j, i] = value / s


@njit(cache=True, nogil=True, error_model="numpy")
def path_moments(X, weights, first, second):
    """Mean and covariance of weighted paths."""
    h = X.shape[1]
    first[:] = 0.0
    second[:, :] = 0.0
    for q in range(weights.size):
        w = weights[q]
        if w > 0.0:
            for i in range(h):
                x = w * X[q, i]
                first[i] += x
                for j in range(i + 1):
                    second[i, j] += x * X[q, j]
    for i in range(h):
        for j in range(i + 1):
            second[i, j] -= first[i] * first[j]
            second[j, i] = second[i, j]
    for i in range(h):
        second[i, i] = max(second[i, i], 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def in_intervals(sets, A, confines):
    """Whether two cells lie in unions of intervals, with nothing between them."""
    count = A.shape[0]
    for k in sets:
        count += confines.piece[k] == confines.piece[k + 1]
    return count == 0


@njit(cache=True, nogil=True, error_model="numpy")
def expectation(m, S, sets, A, c, confines, points, shift, first, second):
    """Log-mass of the region of N(m, S); ``first`` and ``second`` become mean less m, and covariance."""
    h = m.size
    if h == 1:
        low, high = chord_at(0, m, A, c, _last_used(A))
        out = np.empty(5)
        mass = set_moments(m[0], math.sqrt(S[0, 0]), low, high, sets[0], confines, out)
        first[0], second[0, 0] = out[1], max(out[2] - out[1] * out[1], 0.0)
        return mass
    if h == 2 and in_intervals(sets, A, confines):
        box = np.empty((5, 5))
        mass = box_moments(m, S, sets, confines, box)
        first[0], first[1] = box[1, 0], box[0, 1]
        second[0, 0] = max(box[2, 0] - first[0] ** 2, 0.0)
        second[1, 1] = max(box[0, 2] - first[1] ** 2, 0.0)
        second[0, 1] = second[1, 0] = box[1, 1] - first[0] * first[1]
        return mass
    X, weights = np.empty((len(points), h)), np.empty(len(points))
    mass = fill_paths(m, S, sets, A, c, confines, points, shift, X, weights)
    path_moments(X, weights, first, second)
    return mass
