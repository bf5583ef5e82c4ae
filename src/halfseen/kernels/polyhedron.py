"""Polyhedra {u : A u <= c}: feasible points, exact projection, and chains inside them.

Everything is in whitened coordinates, where the Gaussian is N(mean, I) and distances are Euclidean.
"""

import math

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.cholesky import factor, solve
from halfseen.kernels.univariate import draw

# A constraint counts as violated beyond this, relative to the size of its terms.
FEASIBILITY = 1e-12
# Squared length, relative to the normal's, below which a normal depends on the active ones.
DEPENDENT = 1e-20
# Pivots of the active normals' products are held above this.
SMALLEST_PIVOT = 1e-300


@njit(**KERNEL)
def most_violated(u, A, c):
    """Return the index of the constraint that u violates most, and by how much; -1 if none."""
    worst, index = 0.0, -1
    for i in range(A.shape[0]):
        total, size = -c[i], abs(c[i])
        for j in range(u.size):
            term = A[i, j] * u[j]
            total += term
            size += abs(term)
        if total > FEASIBILITY * size and total > worst:
            worst, index = total, i
    return index, worst


@njit(**KERNEL)
def relax(u, A, c, margin, sweeps):
    """Move u, in place, onto each violated half-space in turn, a margin inside; True if it ends well.

    The relaxation method of Agmon and Motzkin. Rows of A have unit length.
    """
    for _ in range(sweeps):
        moved = False
        for i in range(A.shape[0]):
            total = margin - c[i]
            for j in range(u.size):
                total += A[i, j] * u[j]
            if total > 1e-3 * margin:
                moved = True
                for j in range(u.size):
                    u[j] -= total * A[i, j]
        if not moved:
            return True
    return False


@njit(**INNER)
def _step_directions(A, q, active, n, r, direction):
    # r = N⁺ a_q and direction = a_q − N r, with N the active normals.
    k = A.shape[1]
    G = np.empty((n, n))
    for a in range(n):
        s = 0.0
        for j in range(k):
            s += A[active[a], j] * A[q, j]
        r[a] = s
        for b in range(a + 1):
            s = 0.0
            for j in range(k):
                s += A[active[a], j] * A[active[b], j]
            G[a, b] = s
    factor(G, n, SMALLEST_PIVOT)
    solve(G, r, n)
    length = 0.0
    for j in range(k):
        s = A[q, j]
        for a in range(n):
            s -= A[active[a], j] * r[a]
        direction[j] = s
        length += s * s
    return length


@njit(**INNER)
def _copy(point, u):
    # As a loop: the text of the error that u[:] = point may raise takes two seconds to compile.
    for j in range(u.size):
        u[j] = point[j]


@njit(**KERNEL)
def project_polyhedron(point, A, c, u):
    """Write the nearest point of {A u <= c} to ``point`` into u; False if the set is empty.

    The dual active-set method of Goldfarb and Idnani for min ½‖u − point‖²: constraints enter with
    their multipliers as they are violated, and leave when a multiplier would turn negative.
    """
    m, k = A.shape
    _copy(point, u)
    # Most often one half-space is enough: nothing nearer can lie in all of them.
    q, violation = most_violated(u, A, c)
    if q < 0:
        return True
    norm = 0.0
    for j in range(k):
        norm += A[q, j] * A[q, j]
    for j in range(k):
        u[j] -= violation / norm * A[q, j]
    if most_violated(u, A, c)[0] < 0:
        return True
    _copy(point, u)
    active = np.empty(k + 1, dtype=np.int64)
    multiplier = np.zeros(k + 1)
    r, direction = np.empty(k + 1), np.empty(k)
    n = 0
    for _ in range(50 * (m + k) + 50):
        q, violation = most_violated(u, A, c)
        if q < 0:
            return True
        entering = 0.0
        while True:
            length = _step_directions(A, q, active, n, r, direction)
            norm = 0.0
            for j in range(k):
                norm += A[q, j] * A[q, j]
            # Longest step before a multiplier of the active set reaches zero.
            partial, leaving = math.inf, -1
            for a in range(n):
                if r[a] > 0.0 and multiplier[a] / r[a] < partial:
                    partial, leaving = multiplier[a] / r[a], a
            full = violation / length if length > DEPENDENT * norm else math.inf
            step = min(partial, full)
            if math.isinf(step):
                return False
            if not math.isinf(full):
                for j in range(k):
                    u[j] -= step * direction[j]
                violation -= step * length
            for a in range(n):
                multiplier[a] -= step * r[a]
            entering += step
            if full <= partial:
                active[n], multiplier[n] = q, entering
                n += 1
                break
            for a in range(leaving, n - 1):
                active[a], multiplier[a] = active[a + 1], multiplier[a + 1]
            n -= 1
    return False


@njit(**KERNEL)
def project(point, A, c, centre, radius, u):
    """Write the nearest point of {A u <= c} ∩ ball(centre, radius) to ``point`` into u.

    With a multiplier τ for the ball the problem is a projection on the polyhedron alone, of the point
    (point + τ·centre)/(1 + τ) on the way to the centre; how far to go is found by bisection, since the
    distance to the centre falls along the way.
    """
    if not project_polyhedron(point, A, c, u):
        return False
    if _distance(u, centre) <= radius:
        return True
    low, high = 0.0, 1.0
    moved = np.empty_like(point)
    for _ in range(100):
        share = 0.5 * (low + high)
        for j in range(point.size):
            moved[j] = point[j] + share * (centre[j] - point[j])
        project_polyhedron(moved, A, c, u)
        if _distance(u, centre) > radius:
            low = share
        else:
            high = share
        if high - low < 1e-16:
            break
    for j in range(point.size):
        moved[j] = point[j] + high * (centre[j] - point[j])
    project_polyhedron(moved, A, c, u)
    # At share = 1 the nearest point to the centre is reached: beyond the ball the two do not meet.
    return _distance(u, centre) <= radius * (1.0 + 1e-9)


@njit(**INNER)
def _distance(u, centre):
    total = 0.0
    for j in range(u.size):
        total += (u[j] - centre[j]) ** 2
    return math.sqrt(total)


@njit(**KERNEL)
def langevin_chain(u, mean, A, c, radius, eta, drift, noise):
    """Run projected Langevin steps on N(mean, I) in the polyhedron and ball, in place.

    u ← Π(u − drift·η·(u − mean) + √η·ζ): Alg. 5, line 8. The listing prints drift 1; it must be ½,
    as in the appendix (with 1 the chain samples a Gaussian of half the variance).
    """
    root = math.sqrt(eta)
    moved = np.empty_like(u)
    for t in range(noise.shape[0]):
        outside = 0.0
        for j in range(u.size):
            moved[j] = u[j] - drift * eta * (u[j] - mean[j]) + root * noise[t, j]
            outside += (moved[j] - mean[j]) ** 2
        if outside <= radius * radius and most_violated(moved, A, c)[0] < 0:
            _copy(moved, u)
        else:
            project(moved, A, c, mean, radius, u)


@njit(**INNER)
def _chord(slack, along):
    # How far one can go backwards and forwards before a constraint is met.
    low, high = -math.inf, math.inf
    for i in range(slack.size):
        if along[i] > 0.0:
            high = min(high, slack[i] / along[i])
        elif along[i] < 0.0:
            low = max(low, slack[i] / along[i])
    return low, high


@njit(**INNER)
def _gibbs_sweep(u, mean, A, c, directions, along, slack, uniforms):
    # One move along each direction δ (unit vectors, in rows): the step t is N(−δ·(u − mean), 1),
    # restricted to the chord that the polyhedron leaves. ``along`` is δ·a for each constraint a.
    m, k = A.shape
    # Anew in each sweep, so that rounding does not pile up.
    for i in range(m):
        s = c[i]
        for j in range(k):
            s -= A[i, j] * u[j]
        slack[i] = s
    for d in range(directions.shape[0]):
        low, high = _chord(slack, along[d])
        if low < high:
            centre = 0.0
            for j in range(k):
                centre -= directions[d, j] * (u[j] - mean[j])
            step = centre + draw(low - centre, high - centre, uniforms[d])
            for i in range(m):
                slack[i] -= along[d, i] * step
            for j in range(k):
                u[j] += directions[d, j] * step


@njit(**KERNEL)
def gibbs_chain(u, mean, A, c, D, uniforms):
    """Run Gibbs sweeps on N(mean, I) in the polyhedron, in place.

    A sweep moves along each axis, then along each row of D (unit vectors).
    """
    directions = np.vstack((np.eye(u.size), D))
    along, slack = directions @ A.T, np.empty(A.shape[0])
    for sweep in range(uniforms.shape[0]):
        _gibbs_sweep(u, mean, A, c, directions, along, slack, uniforms[sweep])


@njit(**KERNEL)
def gibbs_rows(U, X, mean, hidden, seen, gain, W, A, levels, directions, uniforms, gap, within):
    """Run sweeps on the hidden parts u of rows that hide the same columns, in place.

    A row has the seen values in its row of X, and W u in its hidden columns, where u is restricted to
    {A u <= levels} and N(W⁻¹ μ_cond, I) at the mean. ``gap`` grows by y − μ after each sweep, averaged
    over a row's sweeps; ``within`` by the covariance of a row's y, whose divisor is one less than the
    sweeps.
    """
    rows, sweeps, k = U.shape[0], uniforms.shape[1], U.shape[1]
    along, slack = directions @ A.T, np.empty(A.shape[0])
    points, centre, off = np.empty((sweeps, k)), np.empty(k), np.empty(seen.size)
    total, spread = np.zeros(k), np.zeros((k, k))
    for r in range(rows):
        for j in range(seen.size):
            off[j] = X[r, j] - mean[seen[j]]
            gap[seen[j]] += off[j]
        for i in range(k):
            s = mean[hidden[i]]
            for j in range(seen.size):
                s += gain[i, j] * off[j]
            for j in range(i):
                s -= W[i, j] * centre[j]
            centre[i] = s / W[i, i]
        for sweep in range(sweeps):
            _gibbs_sweep(U[r], centre, A, levels[r], directions, along, slack, uniforms[r, sweep])
            for j in range(k):
                points[sweep, j] = U[r, j]
        _add_spread(points, total, spread)
    lifted = W @ spread
    for i in range(k):
        s = -rows * mean[hidden[i]]
        for j in range(i + 1):
            s += W[i, j] * total[j]
        gap[hidden[i]] += s
        for j in range(k):
            s = 0.0
            for m in range(j + 1):
                s += lifted[i, m] * W[j, m]
            within[hidden[i], hidden[j]] += s


@njit(**INNER)
def _add_spread(points, total, spread):
    # The mean of some points, and their covariance.
    n, k = points.shape
    centre = np.zeros(k)
    for j in range(k):
        for t in range(n):
            centre[j] += points[t, j] / n
        total[j] += centre[j]
    for i in range(k):
        for j in range(k):
            s = 0.0
            for t in range(n):
                s += (points[t, i] - centre[i]) * (points[t, j] - centre[j])
            spread[i, j] += s / (n - 1)


@njit(**KERNEL)
def relax_rows(Y, hidden, V, b, sign, lower, upper, margin, sweeps, failed):
    """Move the hidden cells of each row of Y, in place, to where its inequalities hold.

    Inequality i of row r is ``sign[r, i] · (V[i] @ y) <= sign[r, i] · b[i]``, or nothing where the
    sign is 0; cells stay between ``lower`` and ``upper``. ``failed`` marks the rows that did not
    get there.
    """
    m, d = V.shape
    for r in range(Y.shape[0]):
        failed[r] = True
        for _ in range(sweeps):
            moved = False
            for i in range(m):
                if sign[r, i] == 0:
                    continue
                value, norm = -b[i], 0.0
                for j in range(d):
                    value += V[i, j] * Y[r, j]
                    if hidden[r, j]:
                        norm += V[i, j] * V[i, j]
                length = math.sqrt(norm)
                if length == 0.0:
                    continue
                outside = sign[r, i] * value / length + margin
                if outside > 1e-3 * margin:
                    moved = True
                    for j in range(d):
                        if hidden[r, j]:
                            Y[r, j] -= outside * sign[r, i] * V[i, j] / length
            for j in range(d):
                if hidden[r, j] and not lower[r, j] <= Y[r, j] <= upper[r, j]:
                    moved = True
                    Y[r, j] = min(max(Y[r, j], lower[r, j]), upper[r, j])
            if not moved:
                failed[r] = False
                break
