"""Rows of a multivariate t distribution: a Gaussian whose rows are scaled, each by a number of its own.

A row is μ + z/√w, with z ~ N(0, Σ) and w ~ Gamma(ν/2, rate ν/2). Given the p cells that are seen, at a
squared distance δ from the mean, w ~ Gamma((ν + p)/2, rate (ν + δ)/2); given w, confined cells are
N(m, S/w), restricted, and cells missing at random have the variance P_MM⁻¹/w. So rows without confined
cells are closed forms, and others are sums over w: trapezoids in log w, which converge fast as the
integrand is smooth and vanishes at both ends.
"""

import math

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.patterns import (
    add_group,
    centred_rows,
    complete_rows,
    confined_law,
    split,
)

# Trapezoids of width h in log w err by 2|Γ(a + 2πi/h)|/Γ(a) for a gamma density of shape a, which is
# below 1e-7 for h = 1/√(a + 3.5), whatever a is. What is e⁻¹⁷ of the largest, 4e-8, is left out.
NARROWER, DROP = 3.5, 17.0
# Nodes on either side. With three degrees of freedom and nothing seen it takes 26 to go down by DROP,
# and four more for each tenfold distance of a limit.
MOST_NODES = 64
# More confined cells of a row are sampled.
MOST_INTEGRATED = 2


@njit(**INNER)
def _node(u, shape, rate, m, L, sets, A, c, confines, points, shift, law, first, second):
    # The logarithm of the integrand at w = exp(u), and the moments of the confined cells there.
    w = math.exp(u)
    mass = law.expect(
        m, L / math.sqrt(w), sets, A, c, confines, points, shift, law.fill, first, second
    )
    return shape * u - rate * w + mass


@njit(**INNER)
def mix(shape, rate, offset, m, L, sets, A, c, confines, points, shift, law, scales, weights, F, V):
    """Integrate over w ~ Gamma(shape, rate) what confined cells N(m, L Lᵀ/w) say.

    Fills, for nodes 0 … count − 1, ``scales`` with w, ``weights`` with the posterior probability of
    each, ``F`` and ``V`` with the means (less m) and covariances of the cells. Returns count and the
    logarithm of the mean mass. ``offset`` moves all nodes, by a share of the distance between two.
    """
    h = m.size
    # Cells that are all but seen count like seen ones.
    width = 1.0 / math.sqrt(shape + 0.5 * h + NARROWER)
    centre = math.log(shape / rate) + offset * width
    top, count = -math.inf, 0
    for side in range(2):
        for k in range(side, MOST_NODES):
            u = centre + (1 - 2 * side) * k * width
            value = _node(
                u, shape, rate, m, L, sets, A, c, confines, points, shift, law, F[count], V[count]
            )
            if value > -math.inf:
                scales[count], weights[count] = math.exp(u), value
                count += 1
                top = max(top, value)
            if not value > top - DROP and top > -math.inf:
                break
    total = 0.0
    for k in range(count):
        weights[k] = math.exp(weights[k] - top)
        total += weights[k]
    for k in range(count):
        weights[k] /= total
    norm = shape * math.log(rate) - math.lgamma(shape) + math.log(width)
    return count, top + math.log(total) + norm if count > 0 else -math.inf


@njit(**INNER)
def log_density(degrees, p, square, log_det):
    """Log-density of p cells of a t distribution at a squared distance, with log|Σ| of theirs."""
    gammas = math.lgamma(0.5 * (degrees + p)) - math.lgamma(0.5 * degrees)
    return (
        gammas
        - 0.5 * (p * math.log(degrees * math.pi) + log_det)
        - 0.5 * (degrees + p) * math.log1p(square / degrees)
    )


@njit(**INNER)
def _seen_part(Z, R, C, m, mean, U):
    # Squared distance of the seen cells: z' Q z less what the confined ones would add (patterns).
    square = 0.0
    for j in range(U.size):
        square += Z[j] * R[j]
    for a in range(C.size):
        square += (m[a] - mean[U[C[a]]]) * R[C[a]]
    return max(square, 0.0)


@njit(**INNER)
def _expect_group(
    Y, rows, mean, U, Q, log_det, degrees, grouped, confines, points, shifts, law, V, total, out
):
    # √E(w) · E(w z)/E(w) of each row of a group, in the columns U; V gathers what their products lack of
    # E(w z z'), and total E(w z).
    Z = centred_rows(Y, rows, mean, U, grouped.sets)
    R = np.dot(Z, Q)
    most = 2 * MOST_NODES
    scales, weights = np.empty(most), np.empty(most)
    F, D, before = np.empty((most, 0)), np.empty((most, 0, 0)), np.empty(0, dtype=np.int64)
    count, mass = 0, 0.0
    for i in range(rows.size):
        r = rows[i]
        C, m, L, log_k, sets, A, c = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
        h = C.size
        square, p = _seen_part(Z[i], R[i], C, m, mean, U), U.size - h
        shape, rate = 0.5 * (degrees + p), 0.5 * (degrees + square)
        out[r] = log_density(degrees, p, square, log_det + log_k)
        weight = shape / rate
        # Rows of which nothing is seen say the same where they are confined alike, and not sampled.
        alike = p == 0 and h <= MOST_INTEGRATED and A.shape[0] == 0
        if h > 0:
            if not (alike and np.array_equal(sets, before)):
                F, D = np.empty((most, h)), np.empty((most, h, h))
                count, mass = mix(
                    shape, rate, 0.0, m, L, sets, A, c, confines, points, shifts[r], law,
                    scales, weights, F, D,
                )  # fmt: skip
                before = sets if alike else before[:0]
            out[r] += mass
            weight = 0.0
            mixed = np.zeros(h)
            for k in range(count):
                weight += weights[k] * scales[k]
                mixed += weights[k] * scales[k] * F[k]
            mixed /= weight
            for a in range(h):
                Z[i, C[a]] = m[a] - mean[U[C[a]]] + mixed[a]
                for b in range(h):
                    for k in range(count):
                        apart = (F[k, a] - mixed[a]) * (F[k, b] - mixed[b])
                        V[C[a], C[b]] += weights[k] * scales[k] * (D[k, a, b] + apart)
        for j in range(U.size):
            total[j] += weight * Z[i, j]
            Z[i, j] *= math.sqrt(weight)
    return Z


@njit(**KERNEL)
def expect_scaled_block(
    Y, mean, P, log_det, degrees, grouped, confines, points, shifts, law, first, second, out
):
    """Do as ``patterns.expect_block`` for rows of a t distribution: moments are those of w z and w z z'.

    Their score in mean and covariance is that of ``expect_block``'s: P E(w z) and
    ½ P (E(w z z') − Σ) P.
    """
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, M, Q, B, spread, log_m = split(P, grouped.missing[g])
        T, total = np.zeros((U.size, U.size)), np.zeros(U.size)
        E = _expect_group(
            Y, rows, mean, U, Q, log_det + log_m, degrees, grouped, confines, points, shifts, law, T,
            total, out,
        )  # fmt: skip
        T += np.dot(E.T, E)
        # Cells missing at random have the variance P_MM⁻¹/w, and w times it is P_MM⁻¹.
        add_group(rows.size, T, total, U, M, B, spread, first, second)


@njit(**KERNEL)
def mean_scaled_block(Y, mean, P, degrees, grouped, confines, points, shifts, law, E):
    """Do as ``patterns.mean_block`` for rows of a t distribution."""
    most = 2 * MOST_NODES
    scales, weights = np.empty(most), np.empty(most)
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, M, Q, B, _, _ = split(P, grouped.missing[g])
        Z = centred_rows(Y, rows, mean, U, grouped.sets)
        R = np.dot(Z, Q)
        for i in range(rows.size):
            r = rows[i]
            C, m, L, _, sets, A, c = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
            h = C.size
            if h == 0:
                continue
            square = _seen_part(Z[i], R[i], C, m, mean, U)
            F, D = np.empty((most, h)), np.empty((most, h, h))
            count, _ = mix(
                0.5 * (degrees + U.size - h), 0.5 * (degrees + square), 0.0, m, L, sets, A, c,
                confines, points, shifts[r], law, scales, weights, F, D,
            )  # fmt: skip
            for a in range(h):
                Z[i, C[a]] = m[a] - mean[U[C[a]]]
                for k in range(count):
                    Z[i, C[a]] += weights[k] * F[k, a]
        complete_rows(E, rows, Z, U, M, np.dot(Z, B.T))


@njit(**INNER)
def _choose(weights, count, u):
    # The first place at which cumulated weights reach u.
    reached = 0.0
    for k in range(count):
        reached += weights[k]
        if reached >= u:
            return k
    return count - 1


@njit(**KERNEL)
def draw_scaled_block(
    Y, mean, P, degrees, grouped, confines, points, shifts, law, gammas, uniforms, normals, drawn
):
    """Fill ``drawn`` with draws of complete rows of a t distribution, less their mean.

    Of the shape (draws, rows, d). For each draw of a row: ``gammas``, of shape (ν + p)/2, p the number
    of its seen cells (used where none is confined); ``uniforms``, of shape (draws, rows, 3), move the
    nodes, choose one of them, and a path there; ``normals``, of the shape of ``drawn``, are for cells
    that are missing at random.
    """
    most = 2 * MOST_NODES
    scales, weights = np.empty(most), np.empty(most)
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, M, Q, B, spread, _ = split(P, grouped.missing[g])
        Z = centred_rows(Y, rows, mean, U, grouped.sets)
        R = np.dot(Z, Q)
        root = np.linalg.cholesky(spread) if M.size else spread
        for i in range(rows.size):
            r = rows[i]
            C, m, L, _, sets, A, c = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
            h = C.size
            square = _seen_part(Z[i], R[i], C, m, mean, U)
            shape, rate = 0.5 * (degrees + U.size - h), 0.5 * (degrees + square)
            F, D = np.empty((most, h)), np.empty((most, h, h))
            X, paths = np.empty((len(points), h)), np.empty(len(points))
            for k in range(len(drawn)):
                w = gammas[k, r] / rate
                if h > 0:
                    # Nodes that lie anywhere make draws of w those of a density.
                    count, _ = mix(
                        shape, rate, uniforms[k, r, 0] - 0.5, m, L, sets, A, c, confines, points,
                        shifts[r], law, scales, weights, F, D,
                    )  # fmt: skip
                    w = scales[_choose(weights, count, uniforms[k, r, 1])]
                    law.fill(m, L / math.sqrt(w), sets, A, c, confines, points, shifts[r], X, paths)
                    q = _choose(paths, paths.size, uniforms[k, r, 2])
                    for a in range(h):
                        Z[i, C[a]] = m[a] - mean[U[C[a]]] + X[q, a]
                for a in range(U.size):
                    drawn[k, r, U[a]] = Z[i, a]
                for a in range(M.size):
                    value = 0.0
                    for b in range(U.size):
                        value += B[a, b] * Z[i, b]
                    for b in range(a + 1):
                        value += root[a, b] * normals[k, r, M[b]] / math.sqrt(w)
                    drawn[k, r, M[a]] = value
