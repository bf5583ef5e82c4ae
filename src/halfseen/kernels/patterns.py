"""What a block of rows says of complete rows: expected moments, log-likelihoods, draws.

Rows are grouped by which of their cells are missing at random (their pattern). Those cells are never
drawn: the other columns, U, have the covariance Σ_UU, whose inverse is Q = P_UU − P_UM P_MM⁻¹ P_MU, and
what is missing, M, is normal given them, with mean B z_U, B = −P_MM⁻¹ P_MU, and covariance P_MM⁻¹. Of U
some cells are seen and the rest, confined ones, have the law of ``kernels.confined``. Kernels of that
law are an argument (``paths.law_of``).
"""

from typing import NamedTuple

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.confined import (
    HALF_LOG_TWO_PI,
    in_intervals,
    inverse_root,
    order_cells,
    place_of,
)


class Grouped(NamedTuple):
    """Rows of a block by pattern.

    ``rows[start[g] : start[g + 1]]`` are the rows of group g; ``missing[g]`` says which of their columns
    are missing at random. ``sets`` has the set of each cell, -1 where it is seen, and ``sign`` the signs
    of the inequalities of each row. ``order`` has the confined columns of each row in the order in which
    they are sampled, and -1 after the last.
    """

    start: np.ndarray
    rows: np.ndarray
    missing: np.ndarray
    sets: np.ndarray
    sign: np.ndarray
    order: np.ndarray


@njit(**INNER)
def split(P, missing):
    """Return U, M, Q, B, P_MM⁻¹ and log|P_MM| of a pattern."""
    d, k = len(P), 0
    for i in range(d):
        k += missing[i]
    M, U = np.empty(k, dtype=np.int64), np.empty(d - k, dtype=np.int64)
    a = b = 0
    for i in range(d):
        if missing[i]:
            M[a] = i
            a += 1
        else:
            U[b] = i
            b += 1
    if k == 0:
        return U, M, P, np.empty((0, d)), np.empty((0, 0)), 0.0
    inner, root, across = np.empty((k, k)), np.empty((k, k)), np.empty((k, d - k))
    for a in range(k):
        for b in range(k):
            inner[a, b] = P[M[a], M[b]]
        for b in range(d - k):
            across[a, b] = P[M[a], U[b]]
    log_det = inverse_root(inner, root)
    spread = np.dot(root, root.T)
    B = -np.dot(spread, across)
    Q = np.dot(np.ascontiguousarray(across.T), B)
    for a in range(d - k):
        for b in range(a + 1):
            Q[a, b] = Q[b, a] = P[U[a], U[b]] + 0.5 * (Q[a, b] + Q[b, a])
    return U, M, Q, B, spread, log_det


@njit(**INNER)
def _bounds(r, y, C, U, grouped, confines):
    # The inequalities A y_C <= c of a row in which its confined cells take part.
    sign, V = grouped.sign[r], confines.V
    used = np.zeros(confines.b.size, dtype=np.bool_)
    count = 0
    for i in range(confines.b.size):
        if sign[i] != 0:
            for a in C:
                used[i] = used[i] or V[U[a], i] != 0.0
            count += used[i]
    A, c = np.empty((count, C.size)), np.empty(count)
    k = 0
    for i in range(confines.b.size):
        if used[i]:
            c[k] = sign[i] * confines.b[i]
            for j in range(U.size):
                if grouped.sets[r, U[j]] < 0:
                    c[k] -= sign[i] * V[U[j], i] * y[U[j]]
            for a in range(C.size):
                A[k, a] = sign[i] * V[U[C[a]], i]
            k += 1
    return A, c


@njit(**INNER)
def confined_law(r, y, pull, mean, U, Q, grouped, confines):
    """Return the confined cells of a row (counted in U), m, L, log|Q_CC|, sets, and A y_C <= c.

    They are N(m, L Lᵀ), but for what confines them. ``pull`` is Q z with z the centred row, 0 where it
    is hidden.
    """
    order = grouped.order[r]
    count = 0
    while count < order.size and order[count] >= 0:
        count += 1
    C, sets = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for k in range(count):
        C[k], sets[k] = place_of(U, order[k]), grouped.sets[r, order[k]]
    K, L, m = np.empty((count, count)), np.empty((count, count)), np.empty(count)
    for a in range(count):
        for b in range(count):
            K[a, b] = Q[C[a], C[b]]
    log_det = inverse_root(K, L)
    # m = μ_C − L Lᵀ (Q z)_C
    inner = np.zeros(count)
    for a in range(count):
        for b in range(a + 1):
            inner[b] += L[a, b] * pull[C[a]]
    for a in range(count):
        m[a] = mean[U[C[a]]]
        for b in range(a + 1):
            m[a] -= L[a, b] * inner[b]
    A, c = _bounds(r, y, C, U, grouped, confines)
    return C, m, L, log_det, sets, A, c


@njit(**INNER)
def centred_rows(Y, rows, mean, U, index):
    """Rows less their mean, in the columns U; 0 where they are hidden."""
    Z = np.zeros((rows.size, U.size))
    for i in range(rows.size):
        for j in range(U.size):
            if index[rows[i], U[j]] < 0:
                Z[i, j] = Y[rows[i], U[j]] - mean[U[j]]
    return Z


@njit(forceinline=True, **INNER)
def _expect_group(Y, rows, mean, U, Q, log_det, grouped, confines, points, shifts, law, V, out):
    # Expected rows of a group, in the columns U; V gathers their covariances.
    Z = centred_rows(Y, rows, mean, U, grouped.sets)
    R = np.dot(Z, Q)
    for i in range(rows.size):
        r = rows[i]
        square = 0.0
        for j in range(U.size):
            square += Z[i, j] * R[i, j]
        if grouped.order[r, 0] < 0:
            # Nothing is confined.
            out[r] = -0.5 * (square + log_det) - U.size * HALF_LOG_TWO_PI
            continue
        C, m, L, log_k, sets, A, c = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
        h = C.size
        first, second = np.empty(h), np.empty((h, h))
        mass = law.expect(m, L, sets, A, c, confines, points, shifts[r], law.fill, first, second)
        for a in range(h):
            offset = m[a] - mean[U[C[a]]]
            # What the seen cells say of the confined ones: z_S' Q z_S − (Q z)_C' L L' (Q z)_C.
            square += offset * R[i, C[a]]
            Z[i, C[a]] = offset + first[a]
            for b in range(h):
                V[C[a], C[b]] += second[a, b]
        out[r] = mass - 0.5 * (square + log_det + log_k) - (U.size - h) * HALF_LOG_TWO_PI
    return Z


@njit(**INNER)
def add_group(count, T, total, U, M, B, spread, first, second):
    """Add sums over so many rows, T and total in the columns U, and what these say of the columns M."""
    for a in range(U.size):
        first[U[a]] += total[a]
        for b in range(U.size):
            second[U[a], U[b]] += T[a, b]
    if M.size == 0:
        return
    BT = np.dot(B, T)
    BTB, filled = np.dot(BT, B.T), np.dot(B, total)
    for a in range(M.size):
        first[M[a]] += filled[a]
        for b in range(U.size):
            second[M[a], U[b]] += BT[a, b]
            second[U[b], M[a]] += BT[a, b]
        for b in range(M.size):
            second[M[a], M[b]] += BTB[a, b] + count * spread[a, b]


@njit(**KERNEL)
def expect_block(Y, mean, P, log_det, grouped, confines, points, shifts, law, first, second, out):
    """Add expected moments of complete rows about ``mean``; fill ``out`` with log-likelihoods.

    ``log_det`` is log|Σ|; ``points`` are those of the lattice, ``shifts`` those of each row.
    """
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, M, Q, B, spread, log_m = split(P, grouped.missing[g])
        T = np.zeros((U.size, U.size))
        E = _expect_group(
            Y, rows, mean, U, Q, log_det + log_m, grouped, confines, points, shifts, law, T, out
        )
        T += np.dot(E.T, E)
        total = np.zeros(U.size)
        for i in range(rows.size):
            for a in range(U.size):
                total[a] += E[i, a]
        add_group(rows.size, T, total, U, M, B, spread, first, second)


@njit(**KERNEL)
def order_block(Y, mean, P, grouped, confines, order):
    """Put the confined cells of each row, in ``order``, in the order in which they are best sampled.

    Those of rows that are integrated stay as they are, and so do those between inequalities.
    """
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, _, Q, _, _, _ = split(P, grouped.missing[g])
        Z = centred_rows(Y, rows, mean, U, grouped.sets)
        R = np.dot(Z, Q)
        for i in range(rows.size):
            r = rows[i]
            C, m, L, _, sets, A, _ = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
            integrated = C.size < 2 or (C.size == 2 and in_intervals(sets, A, confines))
            if not integrated and A.shape[0] == 0:
                own = np.empty(C.size, dtype=np.int64)
                order_cells(m, L, sets, confines, own)
                for k in range(C.size):
                    order[r, k] = U[C[own[k]]]


@njit(**KERNEL)
def mean_block(Y, mean, P, grouped, confines, points, shifts, law, E):
    """Fill ``E`` with the expected rows of a block, less their mean."""
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, M, Q, B, _, _ = split(P, grouped.missing[g])
        T, out = np.empty((U.size, U.size)), np.empty(len(Y))
        Z = _expect_group(Y, rows, mean, U, Q, 0.0, grouped, confines, points, shifts, law, T, out)
        complete_rows(E, rows, Z, U, M, np.dot(Z, B.T))


@njit(**INNER)
def complete_rows(E, rows, Z, U, M, rest):
    """Put what is known of some rows in the columns U and M into their places."""
    for i in range(rows.size):
        for a in range(U.size):
            E[rows[i], U[a]] = Z[i, a]
        for a in range(M.size):
            E[rows[i], M[a]] = rest[i, a]


@njit(**KERNEL)
def rows_block(Y, mean, P, log_det, grouped, confines, points, shifts, law, E, V, out):
    """Fill what is known of each row: expected values less ``mean``, covariances, log-likelihoods.

    Of the first columns alone, as many as E has: E is (rows, q) and V is (rows, q, q).
    """
    q = E.shape[1]
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, M, Q, B, spread, log_m = split(P, grouped.missing[g])
        Z = centred_rows(Y, rows, mean, U, grouped.sets)
        R = np.dot(Z, Q)
        u, k = place_of(U, q), place_of(M, q)
        for i in range(rows.size):
            r = rows[i]
            square = np.dot(Z[i], R[i])
            C, m, L, log_k, sets, A, c = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
            h, mass = C.size, 0.0
            first, second = np.empty(h), np.empty((h, h))
            if h > 0:
                mass = law.expect(
                    m, L, sets, A, c, confines, points, shifts[r], law.fill, first, second
                )
            for a in range(h):
                offset = m[a] - mean[U[C[a]]]
                square += offset * R[i, C[a]]
                Z[i, C[a]] = offset + first[a]
            out[r] = mass - 0.5 * (square + log_det + log_m + log_k)
            out[r] -= (U.size - h) * HALF_LOG_TWO_PI
            V[r] = 0.0
            for a in range(h):
                for b in range(h):
                    if C[a] < u and C[b] < u:
                        V[r, U[C[a]], U[C[b]]] = second[a, b]
            _fill_missing(Z[i], C, second, U, M[:k], B, spread, V[r], E[r])
            for a in range(u):
                E[r, U[a]] = Z[i, a]


@njit(**INNER)
def _fill_missing(z, C, second, U, M, B, spread, V, e):
    # Cells that are missing at random: B z, and P_MM⁻¹ + B V_CC Bᵀ.
    h = C.size
    for a in range(M.size):
        e[M[a]] = 0.0
        for b in range(U.size):
            e[M[a]] += B[a, b] * z[b]
        across = np.zeros(h)
        for b in range(h):
            for c in range(h):
                across[b] += B[a, C[c]] * second[c, b]
            if U[C[b]] < e.size:
                V[M[a], U[C[b]]] = V[U[C[b]], M[a]] = across[b]
        for b in range(M.size):
            V[M[a], M[b]] = spread[a, b]
            for c in range(h):
                V[M[a], M[b]] += across[c] * B[b, C[c]]


@njit(**KERNEL)
def draw_block(Y, mean, P, grouped, confines, points, shifts, law, uniforms, normals, drawn):
    """Fill ``drawn`` with independent draws of complete rows, less their mean: (draws, rows, d).

    Of the paths of a row as many as are wanted are taken, by their weights (``uniforms``: one for each
    row); cells that are missing at random follow (``normals``: of the shape of ``drawn``).
    """
    count = len(drawn)
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, M, Q, B, spread, _ = split(P, grouped.missing[g])
        Z = centred_rows(Y, rows, mean, U, grouped.sets)
        R = np.dot(Z, Q)
        root = np.linalg.cholesky(spread) if M.size else spread
        for i in range(rows.size):
            r = rows[i]
            C, m, L, _, sets, A, c = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
            X, weights = np.zeros((len(points), C.size)), np.ones(len(points))
            if C.size > 0:
                law.fill(m, L, sets, A, c, confines, points, shifts[r], X, weights)
            reached, q, last = weights[0], 0, 0.0
            total = weights.sum()
            for k in range(count):
                # Systematic resampling: evenly spaced places in the cumulated weights, each of which is
                # anywhere on their circle. Neighbours on a lattice are alike: a place that depended on
                # k would be near the same of them.
                place = total * ((k / count + uniforms[r]) % 1.0)
                if place < last:
                    reached, q = weights[0], 0
                last = place
                while reached < place and q < len(points) - 1:
                    q += 1
                    reached += weights[q]
                for a in range(C.size):
                    Z[i, C[a]] = m[a] - mean[U[C[a]]] + X[q, a]
                for a in range(U.size):
                    drawn[k, r, U[a]] = Z[i, a]
                for a in range(M.size):
                    value = 0.0
                    for b in range(U.size):
                        value += B[a, b] * Z[i, b]
                    for b in range(a + 1):
                        value += root[a, b] * normals[k, r, M[b]]
                    drawn[k, r, M[a]] = value
