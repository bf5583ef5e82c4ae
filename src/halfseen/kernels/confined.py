"""The law of a row's confined cells, given what is seen of it: moments of one and two, order of more.

Confined cells have a set each, and inequalities may bind them together; given the seen cells they are
normal, N(m, L Lᵀ), restricted to that region. One cell is integrated in closed form, two in intervals
by quadrature; more are sampled, in an order that is found here, one by one (``kernels.paths``).
"""

import math
from typing import NamedTuple

import numpy as np

from halfseen.kernels import INNER, njit
from halfseen.kernels.bivariate import outer_nodes
from halfseen.kernels.lanes import (
    FIRST,
    INNER_LANES,
    add_rows,
    exp_lane,
    hazard_lane,
    log_lane,
    ndtr_lane,
)
from halfseen.kernels.special import log_ndtr
from halfseen.kernels.univariate import FAR, NEGLIGIBLE_DROP, draw, interval, log_mass

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Nodes this many standard deviations away have no mass that a double can see.
NEGLIGIBLE = 9.0
SMALLEST_UNIFORM = 2.0**-53
# What is e to this, and less, cannot be seen next to 1.
LEAST_EXPONENT = -700.0


class Confines(NamedTuple):
    """The sets of hidden cells, and inequalities between them, as ragged arrays.

    Set s has the intervals ``piece[s] : piece[s + 1]``, where a cell hides with the probabilities
    ``exp(log_weight)``, and the nodes ``node_start[s] : node_start[s + 1]``. Inequality i
    reads ``sign[r, i] · (V[:, i] · y) <= sign[r, i] · b[i]`` in row r, or nothing where the sign is 0.
    """

    piece: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    log_weight: np.ndarray
    node_start: np.ndarray
    node: np.ndarray
    weight: np.ndarray
    V: np.ndarray
    b: np.ndarray


@njit(**INNER)
def log_add(a, b):
    """Log(eᵃ + eᵇ)."""
    if a == -math.inf:
        return b
    if b == -math.inf:
        return a
    high = max(a, b)
    return high + math.log(math.exp(a - high) + math.exp(b - high))


# NumPy's ``searchsorted`` takes twenty times as long to compile as these.


@njit(**INNER)
def place_of(items, x):
    """Return how many of some sorted items are before x; all, where x is NaN."""
    low, high = 0, items.size
    while low < high:
        middle = (low + high) // 2
        if items[middle] >= x:
            high = middle
        else:
            low = middle + 1
    return low


@njit(**INNER)
def place_after(items, x):
    """Return how many of some sorted items are not beyond x; all, where x is NaN."""
    low, high = 0, items.size
    while low < high:
        middle = (low + high) // 2
        if items[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low


@njit(**INNER)
def _nodes_within(m, s, low, high, k, confines):
    # The nodes of a set that matter to N(m, s²) on (low, high), and the least z² among them. Where none
    # is within reach, all do.
    first, last = confines.node_start[k], confines.node_start[k + 1]
    node = confines.node[first:last]
    start = place_after(node, max(low, m - NEGLIGIBLE * s))
    stop = place_of(node, min(high, m + NEGLIGIBLE * s))
    if start >= stop:
        start, stop = place_after(node, low), place_of(node, high)
    least = math.inf
    for p in range(first + start, first + stop):
        if confines.weight[p] > 0.0:
            z = (confines.node[p] - m) / s
            least = min(least, z * z)
    return first + start, first + stop, least


@njit(**INNER)
def set_log_mass(m, s, low, high, k, confines):
    """Log of the mass of N(m, s²) on set k cut to (low, high)."""
    total = -math.inf
    for p in range(confines.piece[k], confines.piece[k + 1]):
        a, b = max(confines.lower[p], low), min(confines.upper[p], high)
        mass = log_mass((a - m) / s, (b - m) / s) + confines.log_weight[p]
        total = log_add(total, mass)
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


@njit(**INNER)
def set_draw(m, s, low, high, k, confines, total, u):
    """Draw from N(m, s²) on set k cut to (low, high), whose log-mass is known, from one uniform."""
    first, last = confines.piece[k], confines.piece[k + 1]
    left, chosen = u, math.nan
    for p in range(first, last):
        a = (max(confines.lower[p], low) - m) / s
        b = (min(confines.upper[p], high) - m) / s
        share = 1.0
        if last - first > 1:
            share = math.exp(log_mass(a, b) + confines.log_weight[p] - total)
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


@njit(**INNER)
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
        mass = interval(a, b, part) + confines.log_weight[p]
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


@njit(**INNER)
def _add_rectangle(out, total, a, b, log_weight, rho, root, part):
    # Add what a rectangle says to the moments `out`, of log-mass `total`; return the log-mass of both.
    node, weight, peak = outer_nodes(a[0], b[0], a[1], b[1], rho)
    part[:, :], inner = 0.0, np.empty(5)
    if (a[1] == -math.inf) != (b[1] == math.inf):
        side = 1.0 if a[1] == -math.inf else -1.0
        end = b[1] if side > 0.0 else a[1]
        # Their power, the end and φ/Φ of each node.
        found = np.empty((3, node.size))
        _weigh_nodes(node, weight, peak, side, end, rho, root, found[0], found[1], found[2])
        near = True
        for k in range(node.size):
            near = near and found[1, k] > -FAR
        if near:
            for k in range(node.size):
                _one_ended(side, found[1, k], found[2, k], inner)
                _add_products(part, found[0, k], node[k], rho * node[k], root, inner)
            return _mixed(out, total, part, peak + log_weight)
    for k in range(node.size):
        u = node[k]
        mass = interval((a[1] - rho * u) / root, (b[1] - rho * u) / root, inner)
        if mass > -math.inf:
            power = weight[k] * math.exp(-0.5 * u * u + mass - peak)
            _add_products(part, power, u, rho * u, root, inner)
    return _mixed(out, total, part, peak + log_weight)


@njit(**INNER_LANES)
def _weigh_nodes(node, weight, peak, side, limit, rho, root, powers, ends, hazards):
    # What is beyond a limit of the second cell, given each node of the first.
    for k in range(node.size):
        u = node[k]
        end = side * (limit - rho * u) / root
        size = -0.5 * u * u + log_lane(ndtr_lane(end)) - peak
        ends[k], hazards[k] = end, hazard_lane(end)
        powers[k] = weight[k] * exp_lane(size if size > LEAST_EXPONENT else LEAST_EXPONENT)


@njit(**INNER)
def _one_ended(side, end, hazard, out):
    # Moments of a standard normal below an end, or of its mirror image: with λ = φ/Φ
    # E z^k = (k − 1) E z^(k−2) − end^(k−1) λ.
    out[0], out[1] = 1.0, -hazard
    power = hazard
    for k in range(2, 5):
        power *= end
        out[k] = (k - 1) * out[k - 2] - power
    out[1] *= side
    out[3] *= side


@njit(**INNER)
def _mixed(out, total, part, log_weight):
    # Add the moments of a part, whose mass is relative to a weight; return the log-mass of both.
    if not part[0, 0] > 0.0:
        return total
    mass = math.log(part[0, 0]) - HALF_LOG_TWO_PI + log_weight
    _mix(out, total, part, mass)
    return log_add(total, mass)


@njit(**INNER)
def box_moments(m, L, sets, confines, out):
    """Log-mass of N(m, L Lᵀ) on a product of two unions of intervals.

    ``out[a, b]`` becomes E[(x − m₀)^a (y − m₁)^b], a + b <= 4. Quadrature over the first cell, closed
    forms over the second, for each rectangle that has mass next to the others.
    """
    s0, s1 = L[0, 0], math.hypot(L[1, 0], L[1, 1])
    rho, root = L[1, 0] / s1, L[1, 1] / s1
    total, part = -math.inf, np.empty((5, 5))
    start = confines.piece[sets[0]], confines.piece[sets[1]]
    count = confines.piece[sets[0] + 1] - start[0], confines.piece[sets[1] + 1] - start[1]
    a, b = np.empty((count[0] * count[1], 2)), np.empty((count[0] * count[1], 2))
    bound, log_weight = np.empty(len(a)), np.empty(len(a))
    for k in range(len(a)):
        p, q = start[0] + k // count[1], start[1] + k % count[1]
        a[k, 0], b[k, 0] = (confines.lower[p] - m[0]) / s0, (confines.upper[p] - m[0]) / s0
        a[k, 1], b[k, 1] = (confines.lower[q] - m[1]) / s1, (confines.upper[q] - m[1]) / s1
        # A rectangle has no more mass than either of its sides.
        log_weight[k] = confines.log_weight[p] + confines.log_weight[q]
        bound[k] = min(log_mass(a[k, 0], b[k, 0]), log_mass(a[k, 1], b[k, 1])) + log_weight[k]
    out[:, :] = 0.0
    for _ in range(len(a)):
        k = 0
        for j in range(1, bound.size):
            k = j if bound[j] > bound[k] else k
        if not bound[k] > total - NEGLIGIBLE_DROP:
            break
        total = _add_rectangle(out, total, a[k], b[k], log_weight[k], rho, root, part)
        bound[k] = -math.inf
    for i in range(5):
        for j in range(5 - i):
            out[i, j] *= s0**i * s1**j
    return total


@njit(**INNER)
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


@njit(**INNER)
def _mix(out, total, part, mass):
    # The moments of a mixture: what `out` holds, of log-mass `total`, and sums of log-mass `mass`.
    top = log_add(total, mass)
    old = math.exp(total - top) if total > -math.inf else 0.0
    new = math.exp(mass - top) / part[0, 0]
    for a in range(5):
        for b in range(5 - a):
            out[a, b] = old * out[a, b] + new * part[a, b]


@njit(**INNER)
def inverse_root(K, L):
    """Fill L with the Cholesky factor of the inverse of K, K⁻¹ = L Lᵀ; return log|K|.

    Where K is not positive definite L is NaN, and so is what is returned.
    """
    h = len(K)
    T, W, above = np.empty((h, h)), np.zeros((h, h)), np.empty(h)
    total = 0.0
    # With rows and columns in reverse, K = Tᵀ T with T upper triangular; W is the inverse of Tᵀ.
    for i in range(h):
        for j in range(i, h):
            T[i, j] = K[h - 1 - i, h - 1 - j]
        for k in range(i):
            above[k] = -T[k, i]
        add_rows(above[:i], T, i, T[i, i:])
        pivot = T[i, i]
        if not pivot > 0.0:
            L[:, :] = math.nan
            return math.nan
        total += math.log(pivot)
        inverse = 1.0 / math.sqrt(pivot)
        add_rows(above[:i], W, FIRST, W[i, :i])
        W[i, i] = 1.0
        for j in range(i + 1):
            W[i, j] *= inverse
        for j in range(i, h):
            T[i, j] *= inverse
    for i in range(h):
        for j in range(h):
            L[i, j] = W[h - 1 - j, h - 1 - i]
    return total


@njit(**INNER)
def last_used(T):
    """Return the coordinate at which each inequality is settled, the last that it involves, or -1."""
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


@njit(**INNER)
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


@njit(**INNER)
def _one_ends(sets, confines):
    # Where a cell lies in one interval with one end, 1 or -1 as it is below or above it, and the end.
    side, end = np.zeros(sets.size), np.zeros(sets.size)
    for j in range(sets.size):
        k = sets[j]
        p = confines.piece[k]
        if confines.piece[k + 1] == p + 1 and confines.node_start[k] == confines.node_start[k + 1]:
            if confines.lower[p] == -math.inf:
                side[j], end[j] = 1.0, confines.upper[p]
            elif confines.upper[p] == math.inf:
                side[j], end[j] = -1.0, confines.lower[p]
    return side, end


@njit(**INNER)
def order_cells(m, L, sets, confines, order):
    """Fill ``order`` with the cells of a row, the least likely first.

    Each is the one whose set has the least mass given those before it, where these have their expected
    values (Gibson, Glasbey and Elston 1994): weights of paths then differ little.
    """
    h = m.size
    left, mean, moments, row = np.dot(L, L.T), m.copy(), np.empty(5), np.empty(h)
    side, end = _one_ends(sets, confines)
    for i in range(h):
        order[i] = i
    for i in range(h):
        chosen, least = -1, math.inf
        for p in range(i, h):
            j = order[p]
            if not left[j, j] > 0.0:
                # What is left of the covariance is rounding: the rest as they come.
                return
            s = math.sqrt(left[j, j])
            z = side[j] * (end[j] - mean[j]) / s
            if side[j] != 0.0 and z > -FAR:
                mass = log_ndtr(z)
            else:
                mass = set_log_mass(mean[j], s, -math.inf, math.inf, sets[j], confines)
            if chosen < 0 or mass < least:
                chosen, least = p, mass
        first = order[chosen]
        order[chosen], order[i] = order[i], first
        s = math.sqrt(left[first, first])
        set_moments(mean[first], s, -math.inf, math.inf, sets[first], confines, moments)
        for k in range(h):
            row[k] = left[first, k] / left[first, first]
        for p in range(i + 1, h):
            j = order[p]
            mean[j] += row[j] * moments[1]
            factor = left[j, first]
            for k in range(h):
                left[j, k] -= factor * row[k]


@njit(**INNER)
def in_intervals(sets, A, confines):
    """Whether two cells lie in unions of intervals, with nothing between them."""
    count = A.shape[0]
    for k in sets:
        count += confines.piece[k] == confines.piece[k + 1]
    return count == 0
