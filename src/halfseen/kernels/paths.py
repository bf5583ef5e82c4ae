"""Paths: weighted draws of a row's confined cells, where there are too many of them to integrate.

Cells are drawn one after the other, each in what its set leaves given those before it (the sampler of
Geweke, Hajivassiliou and Keane); the weight of a path is the product of the masses on the way. Cells
come in an order that makes weights alike (``confined.order_cells``), and where each lies in one interval
its step is tilted to where the region lets all of them end. Paths are driven by points of a shifted
lattice: averages over them are functions of m and S, smooth ones in intervals, and have much less noise
than independent draws.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numba.experimental.function_type  # noqa: F401  (it lets kernels be arguments of others)
import numpy as np
from numba import njit, typeof, types

from halfseen.kernels.confined import (
    SMALLEST_UNIFORM,
    box_moments,
    cholesky,
    chord_at,
    in_intervals,
    last_used,
    set_draw,
    set_log_mass,
    set_moments,
)
from halfseen.kernels.special import ndtr, ndtri
from halfseen.kernels.univariate import FAR, draw, interval, log_mass

# Where every path of a row ends outside its region, so many more sets of points are tried.
MOST_TRIES = 64
# Steps towards the tilts of paths, and the share of the way that each goes: longer ones overshoot where
# cells go against each other. So do those of cells that others all but determine: a tilt goes less far
# where its change would come back to it more than some 16/0.35 times. All three were tried, on random
# factor models with 3 to 15 cells, not derived; any of them leaves averages right.
TILT_STEPS, TILT_SHARE, MOST_THROWN = 4, 0.35, 16.0
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
# Smaller products of masses are kept as logarithms.
SMALLEST_PRODUCT = 1e-30


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
    # μ_j = Σ_{k>j} L_kj Λ_k / L_kk. A change of μ_j comes back to it times
    # Σ_k |L_kj|/L_kk (1 − Var_k) Σ_{i<k} |L_ki|/L_kk at the most, with Var_k the variance of the step.
    h = len(L)
    e, pull, thrown, part = np.zeros(h), np.empty(h), np.empty(h), np.empty(5)
    moved = size = 0.0
    tilt[:] = 0.0
    for step in range(TILT_STEPS):
        share = 1.0 if step == 0 else TILT_SHARE
        for j in range(h):
            centre, reach, inverse = 0.0, 0.0, 1.0 / L[j, j]
            for k in range(j):
                centre += L[j, k] * e[k]
                reach += abs(L[j, k]) * inverse
            a, b = (low[j] - centre) * inverse - tilt[j], (high[j] - centre) * inverse - tilt[j]
            interval(a, b, part)
            e[j] += share * (tilt[j] + part[1] - e[j])
            reach *= 1.0 - (part[2] - part[1] * part[1])
            pull[j] = thrown[j] = 0.0
            for k in range(j):
                pull[k] += L[j, k] * part[1] * inverse
                thrown[k] += abs(L[j, k]) * inverse * reach
        moved, size = 0.0, 0.0
        for j in range(h):
            change = pull[j] - tilt[j]
            tilt[j] += min(TILT_SHARE, MOST_THROWN / (1.0 + thrown[j])) * change
            moved += change * change
            size += tilt[j] * tilt[j]
    # A tilt is taken as far as it has settled: one that is still on its way is worse than none.
    if size > 0.0:
        settled = 1.0 / (1.0 + (moved / size) ** 2)
        for j in range(h):
            tilt[j] *= settled


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
def _set_paths(m, S, sets, A, c, confines, points, shift, X, weights):
    # Cells in sets of any kind, perhaps with inequalities, one after the other as they come.
    h = m.size
    L = np.zeros((h, h))
    if not cholesky(S, L):
        weights[:] = -math.inf
        return
    T, level = A @ L, c - A @ m
    stages, e = last_used(T), np.empty(h)
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
    stages, e, back = last_used(T), np.empty(h), L @ np.ascontiguousarray(Q)
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
def _normalise(X, weights):
    # Weights of sum 1 from their logarithms, whose average's logarithm is returned; -inf if none counts.
    top = weights.max()
    if top == -math.inf:
        return top
    total = 0.0
    for q in range(weights.size):
        weights[q] = math.exp(weights[q] - top)
        total += weights[q]
        if weights[q] == 0.0:
            X[q] = 0.0
    weights /= total
    return top + math.log(total / weights.size)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_box(m, S, sets, A, c, confines, points, shift, X, weights):
    """Do as ``fill_paths`` where every cell lies in one interval, and no inequality binds them."""
    _interval_paths(m, S, sets, confines, points, shift, X, weights)
    return _normalise(X, weights)


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
        mass = _normalise(X, weights)
        if mass > -math.inf:
            return mass - math.log(attempt + 1)
    return -math.inf


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
def expectation(m, S, sets, A, c, confines, points, shift, fill, first, second):
    """Log-mass of the region of N(m, S); ``first`` and ``second`` become mean less m, and covariance.

    What cannot be integrated is sampled by ``fill``, which is ``fill_paths`` or ``fill_box``.
    """
    h = m.size
    if h == 1:
        low, high = chord_at(0, m, A, c, last_used(A))
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
    mass = fill(m, S, sets, A, c, confines, points, shift, X, weights)
    path_moments(X, weights, first, second)
    return mass


class Address(types.WrapperAddressProtocol):
    """A kernel that others are given to call.

    A kernel that calls another by its name is compiled together with it, and with all that the other
    calls, again for each caller. One that is called by its address is compiled once, when it is first
    asked for: what a table does not need is not compiled. Nothing that it raises comes through, so that
    it must not raise.

    Parameters
    ----------
    kernel : compiled function
    signature : signature
        Types of its arguments and of what it returns.
    """

    def __init__(self, kernel, signature):
        self.kernel, self.types, self.address = kernel, signature, None

    def signature(self):
        """Return the types, as Numba asks for them."""
        return self.types

    def __wrapper_address__(self):
        """Compile the kernel, or find it among those that were; return where it is."""
        if self.address is None:
            self.kernel.compile(self.types.args)
            done = self.kernel.get_compile_result(self.types)
            name = done.fndesc.llvm_cfunc_wrapper_name
            self.address = done.library.get_pointer_to_function(name)
        return self.address

    def __reduce__(self):
        """Leave out the address, which is one of this process: in another the kernel is found anew."""
        return Address, (self.kernel, self.types)


class Law(NamedTuple):
    """The kernels that say what confined cells are: ``expectation``, and the one that fills paths."""

    expect: Address
    fill: Address


def law_of(confines):
    """Return the kernels for cells so confined: ``fill_box`` is quicker to compile, where it will do."""
    nodes, pieces = np.diff(confines.node_start), np.diff(confines.piece)
    boxes = confines.b.size == 0 and not nodes.any() and bool((pieces == 1).all())
    return _law(fill_box if boxes else fill_paths, typeof(confines))


@lru_cache(maxsize=32)
def _law(kernel, confines):
    line, plane, whole = types.float64[::1], types.float64[:, ::1], types.int64[::1]
    cells = line, plane, whole, plane, line, confines, plane, line
    fill = Address(kernel, types.float64(*cells, plane, line))
    return Law(Address(expectation, types.float64(*cells, typeof(fill), line, plane)), fill)
