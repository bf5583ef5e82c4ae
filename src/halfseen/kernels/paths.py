"""Paths: weighted draws of a row's confined cells, where there are too many of them to integrate.

Cells are drawn one after the other, each in what its set leaves given those before it (the sampler of
Geweke, Hajivassiliou and Keane); the weight of a path is the product of the masses on the way. Cells
come in an order that makes weights alike (``confined.order_cells``), and where each lies in one interval
its step is tilted to where the region lets all of them end. Paths are driven by points of a shifted
lattice: averages over them are functions of m and L, smooth ones in intervals, and have much less noise
than independent draws.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numba.experimental.function_type  # noqa: F401  (it lets kernels be arguments of others)
import numpy as np
from numba import typeof, types
from numba.extending import typeof_impl

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.confined import (
    SMALLEST_UNIFORM,
    box_moments,
    chord_at,
    in_intervals,
    last_used,
    set_draw,
    set_log_mass,
    set_moments,
)
from halfseen.kernels.lanes import (
    FIRST,
    INNER_LANES,
    LOG_TWO,
    add_rows,
    hazard_lane,
    ndtr_lane,
    ndtri_lane,
    parts_lane,
)
from halfseen.kernels.univariate import FAR, draw, interval, log_mass

# Where every path of a row ends outside its region, so many more sets of points are tried.
MOST_TRIES = 64
# Steps towards the tilts of paths, and the share of the way that each goes: longer ones overshoot where
# cells go against each other. So do those of cells that others all but determine: a tilt goes less far
# where its change would come back to it more than some 16/0.35 times. All three were tried, on random
# factor models with 3 to 15 cells, not derived; any of them leaves averages right.
TILT_STEPS, TILT_SHARE, MOST_THROWN = 4, 0.35, 16.0
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
# Numbers in a vector of the processor, or in two.
WIDTH = 4
# Masses that are a smaller share of what is below their upper end lose digits as differences.
SMALLEST_DIFFERENCE = 1e-3
# Shares below a draw that quantiles are good for.
SMALLEST_PLACE, LARGEST_PLACE = 1e-290, 1.0 - 2.0**-53


@njit(**INNER)
def _uniform(point, shift):
    # A shifted lattice, folded: averages of smooth functions then converge faster.
    u = point + shift
    if u >= 1.0:
        u -= 1.0
    return min(max(abs(2.0 * u - 1.0), SMALLEST_UNIFORM), 1.0 - SMALLEST_UNIFORM)


@njit(**INNER)
def _face_step(j, L, E, points, shift, centre, uniforms):
    # Where the steps before it put the centre of a cell, in each path, and what drives its own step.
    centre[:] = 0.0
    add_rows(L[j, :j], E, FIRST, centre)
    for q in range(len(points)):
        uniforms[q] = _uniform(points[q, j], shift[j])


@njit(**INNER_LANES)
def _below(side, ends, uniforms, masses, draws):
    # Masses of a standard normal below some ends, and draws from there; with a side of -1 mirrored.
    for q in range(ends.size):
        masses[q] = ndtr_lane(ends[q])
    for q in range(ends.size):
        u = uniforms[q] if side > 0.0 else 1.0 - uniforms[q]
        z = ndtri_lane(u * masses[q])
        draws[q] = side * (z if z < ends[q] else ends[q])


@njit(**INNER_LANES)
def _take_step(mu, size, centre, masses, step, product, total, moved):
    # What a step, drawn around its tilt μ, does to the weights of paths, and where it leads. Their
    # products of masses lose their powers of 2 to the logarithms: they must stay numbers.
    for q in range(centre.size):
        e = step[q] + mu
        step[q] = e
        k, product[q] = parts_lane(product[q] * masses[q])
        total[q] += k * LOG_TWO + mu * (0.5 * mu - e)
        moved[q] = centre[q] + size * e


@njit(**INNER)
def _finish(moved, total, product, X, weights):
    # Where paths ended, less their remainder, and the logarithms of their weights. As a loop: the text
    # of the error that X[:] = moved.T may raise takes seconds to compile.
    for q in range(len(X)):
        for j in range(len(moved)):
            X[q, j] = moved[j, q]
        weights[q] = total[q] + math.log(product[q])


@njit(**INNER)
def _walk(L, low, high, tilt, points, shift, X, weights):
    # Paths e of cells in one interval each, every step drawn around its tilt μ: its weight is
    # P(a < z + μ < b)·φ(e)/φ(e − μ). All paths take a step together, in arrays without a remainder.
    h, count = len(L), len(points)
    width = -(-count // WIDTH) * WIDTH
    E, moved, more = np.empty((h, width)), np.empty((h, width)), np.empty((6, width))
    total, product, centre, uniforms = more[0], more[1], more[2], more[3]
    masses, ends = more[4], more[5]
    total[:], product[:], uniforms[:] = 0.0, 1.0, 0.5
    for j in range(h):
        _face_step(j, L, E, points, shift, centre, uniforms)
        step, inverse, mu = E[j], 1.0 / L[j, j], tilt[j]
        a, b = low[j] * inverse - mu, high[j] * inverse - mu
        one_ended = a == -math.inf or b == math.inf
        side = -1.0 if b == math.inf else 1.0
        if one_ended:
            end = b if side > 0.0 else a
            for q in range(width):
                ends[q] = side * (end - inverse * centre[q])
            _below(side, ends, uniforms, masses, step)
        for q in range(width):
            if not (one_ended and ends[q] > -FAR):
                at = inverse * centre[q]
                masses[q] = 1.0
                total[q] += log_mass(a - at, b - at)
                step[q] = draw(a - at, b - at, uniforms[q])
        _take_step(mu, L[j, j], centre, masses, step, product, total, moved[j])
    _finish(moved, total, product, X, weights)


@njit(**INNER)
def _mean_and_variance(a, b):
    # Of a standard normal between two limits.
    side = -1.0 if b == math.inf else 1.0
    end = b if side > 0.0 else -a
    if (a == -math.inf or b == math.inf) and end > -FAR:
        hazard = hazard_lane(end)
        return -side * hazard, 1.0 - hazard * (hazard + end)
    part = np.empty(5)
    interval(a, b, part)
    return part[1], part[2] - part[1] * part[1]


@njit(**INNER_LANES)
def _find_tilt(L, low, high, tilt):
    # Towards the tilt under which the largest weight of a path is smallest (Botev 2017). With Λ_j the
    # mean of the restricted step j along the path e, there e_j = μ_j + Λ_j and
    # μ_j = Σ_{k>j} L_kj Λ_k / L_kk. A change of μ_j comes back to it times
    # Σ_k |L_kj|/L_kk (1 − Var_k) Σ_{i<k} |L_ki|/L_kk at the most, with Var_k the variance of the step.
    h = len(L)
    more = np.zeros((4, h))
    e, pull, thrown, reach = more[0], more[1], more[2], more[3]
    # Rows over their diagonals.
    M, size_of = np.empty((h, h)), np.empty((h, h))
    for j in range(h):
        for k in range(j):
            M[j, k] = L[j, k] / L[j, j]
            size_of[j, k] = abs(M[j, k])
            reach[j] += size_of[j, k]
    moved = size = 0.0
    tilt[:] = 0.0
    for step in range(TILT_STEPS):
        share = 1.0 if step == 0 else TILT_SHARE
        for j in range(h):
            centre, inverse = tilt[j], 1.0 / L[j, j]
            for k in range(j):
                centre += M[j, k] * e[k]
            drawn, variance = _mean_and_variance(
                low[j] * inverse - centre, high[j] * inverse - centre
            )
            e[j] += share * (tilt[j] + drawn - e[j])
            back = reach[j] * (1.0 - variance)
            pull[j] = thrown[j] = 0.0
            for k in range(j):
                pull[k] += M[j, k] * drawn
                thrown[k] += size_of[j, k] * back
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


@njit(forceinline=True, **INNER_LANES)
def _interval_paths(m, L, sets, confines, points, shift, X, weights):
    # Cells in one interval each: steps are tilted towards where the region lets all of them end.
    h = m.size
    low, high = np.empty(h), np.empty(h)
    for j in range(h):
        p = confines.piece[sets[j]]
        low[j], high[j] = confines.lower[p] - m[j], confines.upper[p] - m[j]
    tilt = np.empty(h)
    _find_tilt(L, low, high, tilt)
    _walk(L, low, high, tilt, points, shift, X, weights)


@njit(**INNER_LANES)
def _measure(low, high, weight, inverse, centre, below, parts, total, largest):
    # The mass of one piece of a set, and what is below it, or above where it is on that side. Adds the
    # mass to the total; of what masses are differences of, the largest is kept.
    for q in range(centre.size):
        a, b = (low - centre[q]) * inverse, (high - centre[q]) * inverse
        mirrored = a + b > 0.0
        under = ndtr_lane(-b if mirrored else a)
        upto = ndtr_lane(-a if mirrored else b)
        below[q], parts[q] = under, weight * (upto - under)
        total[q] += parts[q]
        largest[q] = weight * upto if weight * upto > largest[q] else largest[q]


@njit(**INNER_LANES)
def _choose(low, high, weight, inverse, centre, below, parts, left, draws, ends):
    # Where what is left of a share of the mass lies in a piece: what is below the draw, negative where
    # that is above it; and the ends of the piece. Once it is found nothing is left: -1.
    for q in range(centre.size):
        a, b = (low - centre[q]) * inverse, (high - centre[q]) * inverse
        inside = (left[q] >= 0.0) & (left[q] <= parts[q])
        way = left[q] / weight
        place = -(below[q] + parts[q] / weight - way) if a + b > 0.0 else below[q] + way
        draws[q] = place if inside else draws[q]
        ends[0, q] = a if inside else ends[0, q]
        ends[1, q] = b if inside else ends[1, q]
        left[q] = -1.0 if inside else left[q] - parts[q]


@njit(**INNER_LANES)
def _settle(total, largest, ends, masses, draws):
    # From places to draws; the mass is 0 where it is all but a difference, or where none was found.
    for q in range(total.size):
        place = abs(draws[q])
        place = place if place > SMALLEST_PLACE else SMALLEST_PLACE
        z = ndtri_lane(place if place < LARGEST_PLACE else LARGEST_PLACE)
        z = -z if draws[q] < 0.0 else z
        z = z if z > ends[0, q] else ends[0, q]
        known = (total[q] > SMALLEST_DIFFERENCE * largest[q]) & (total[q] > SMALLEST_PLACE)
        masses[q] = total[q] if known & (draws[q] != 0.0) else 0.0
        draws[q] = z if z < ends[1, q] else ends[1, q]


@njit(**INNER)
def _union_paths(m, L, sets, confines, points, shift, X, weights):
    # Cells in sets of any kind, without inequalities. All paths take a step together, as in a walk.
    h, count = m.size, len(points)
    width = -(-count // WIDTH) * WIDTH
    most = 1
    for k in sets:
        most = max(most, confines.piece[k + 1] - confines.piece[k])
    E, more, ends = np.empty((h, width)), np.empty((8, width)), np.empty((2, width))
    total, product, centre, uniforms = more[0], more[1], more[2], more[3]
    masses, left, mass, largest = more[4], more[5], more[6], more[7]
    below, parts, moved = np.empty((most, width)), np.empty((most, width)), np.empty((h, width))
    total[:], product[:], uniforms[:] = 0.0, 1.0, 0.5
    for j in range(h):
        _face_step(j, L, E, points, shift, centre, uniforms)
        step, k, inverse = E[j], sets[j], 1.0 / L[j, j]
        mass[:], largest[:], step[:], masses[:] = 0.0, 0.0, 0.0, 0.0
        first, last = confines.piece[k], confines.piece[k + 1]
        if confines.node_start[k] == confines.node_start[k + 1]:
            for p in range(first, last):
                a, b = confines.lower[p] - m[j], confines.upper[p] - m[j]
                weight, own = math.exp(confines.log_weight[p]), p - first
                _measure(a, b, weight, inverse, centre, below[own], parts[own], mass, largest)
            for q in range(width):
                left[q] = uniforms[q] * mass[q]
            for p in range(first, last):
                a, b = confines.lower[p] - m[j], confines.upper[p] - m[j]
                weight, own = math.exp(confines.log_weight[p]), p - first
                _choose(a, b, weight, inverse, centre, below[own], parts[own], left, step, ends)
            _settle(mass, largest, ends, masses, step)
        for q in range(count):
            if not masses[q] > 0.0:
                masses[q], place, s = 1.0, m[j] + centre[q], L[j, j]
                log = set_log_mass(place, s, -math.inf, math.inf, k, confines)
                x = set_draw(place, s, -math.inf, math.inf, k, confines, log, uniforms[q])
                total[q] += log
                step[q] = (x - place) * inverse if log > -math.inf else 0.0
        for q in range(count, width):
            masses[q] = 1.0
        _take_step(0.0, L[j, j], centre, masses, step, product, total, moved[j])
    _finish(moved, total, product, X, weights)


@njit(**INNER)
def _set_paths(m, L, sets, A, c, confines, points, shift, X, weights):
    # Cells in sets of any kind, with inequalities, one after the other as they come.
    h = m.size
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


@njit(**INNER)
def _turned_paths(m, L, A, c, points, shift, X, weights):
    # Inequalities. Coordinates are turned, A L = (lower trapezoid)·Qᵀ, so that the first
    # inequality involves one of them, the second two, and so on: the tightest first.
    h, count = m.size, c.size
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


@njit(**INNER)
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


@njit(**INNER)
def _normalise(X, weights):
    # Weights of sum 1 from their logarithms, whose average's logarithm is returned; -inf if none counts.
    top = -math.inf
    for q in range(weights.size):
        if weights[q] > top or math.isnan(weights[q]):
            top = weights[q]
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


@njit(**KERNEL)
def fill_box(m, L, sets, A, c, confines, points, shift, X, weights):
    """Do as ``fill_paths`` where every cell lies in one interval, and no inequality binds them."""
    _interval_paths(m, L, sets, confines, points, shift, X, weights)
    return _normalise(X, weights)


@njit(**KERNEL)
def fill_paths(m, L, sets, A, c, confines, points, shift, X, weights):
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
        if not single and not bound:
            _union_paths(m, L, sets, confines, points, moved, X, weights)
        elif not single:
            _set_paths(m, L, sets, A, c, confines, points, moved, X, weights)
        elif bound:
            _turned_paths(m, L, A, c, points, moved, X, weights)
        else:
            _interval_paths(m, L, sets, confines, points, moved, X, weights)
        mass = _normalise(X, weights)
        if mass > -math.inf:
            return mass - math.log(attempt + 1)
    return -math.inf


@njit(**INNER)
def path_moments(X, weights, first, second):
    """Mean and covariance of weighted paths."""
    count, h = X.shape
    first[:] = 0.0
    add_rows(weights, X, FIRST, first)
    weighted = np.empty(count)
    for i in range(h):
        for q in range(count):
            weighted[q] = weights[q] * (X[q, i] - first[i])
        second[i, : i + 1] = 0.0
        add_rows(weighted, X, FIRST, second[i, : i + 1])
        for j in range(i):
            second[j, i] = second[i, j]
    for i in range(h):
        second[i, i] = max(second[i, i], 0.0)


@njit(**INNER)
def _diagonal(L):
    for i in range(len(L)):
        for j in range(i):
            if L[i, j] != 0.0:
                return False
    return True


@njit(**KERNEL)
def expectation(m, L, sets, A, c, confines, points, shift, fill, first, second):
    """Log-mass of the region of N(m, L Lᵀ); ``first`` and ``second`` become mean less m, and covariance.

    One cell, two in intervals, and cells that are independent are integrated. The rest is sampled by
    ``fill``, which is ``fill_paths`` or ``fill_box``.
    """
    h = m.size
    if h == 1:
        low, high = chord_at(FIRST, m, A, c, last_used(A))
        out = np.empty(5)
        mass = set_moments(m[0], L[0, 0], low, high, sets[0], confines, out)
        first[0], second[0, 0] = out[1], max(out[2] - out[1] * out[1], 0.0)
        return mass
    if h == 2 and in_intervals(sets, A, confines):
        box = np.empty((5, 5))
        mass = box_moments(m, L, sets, confines, box)
        first[0], first[1] = box[1, 0], box[0, 1]
        second[0, 0] = max(box[2, 0] - first[0] ** 2, 0.0)
        second[1, 1] = max(box[0, 2] - first[1] ** 2, 0.0)
        second[0, 1] = second[1, 0] = box[1, 1] - first[0] * first[1]
        return mass
    if A.shape[0] == 0 and _diagonal(L):
        second[:, :] = 0.0
        total, out = 0.0, np.empty(5)
        for j in range(h):
            total += set_moments(m[j], L[j, j], -math.inf, math.inf, sets[j], confines, out)
            first[j], second[j, j] = out[1], max(out[2] - out[1] * out[1], 0.0)
        return total
    X, weights = np.empty((len(points), h)), np.empty(len(points))
    mass = fill(m, L, sets, A, c, confines, points, shift, X, weights)
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
        self.kind = types.FunctionType(signature)

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


@typeof_impl.register(Address)
def _kind(address, _):
    # Numba would make the type anew at every call.
    return address.kind


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
