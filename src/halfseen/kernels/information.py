"""What a block of rows says about the parameters: the parts of Louis' identity, row by row.

Complete data are here the columns of a row that are not missing at random, U. Parameters are
(a, B_ij for i >= j) of N(μ + L a, L (I + B) Lᵀ), at 0. With u = Lᵀ Q z the score of a row is
(u, c_ij (u uᵀ − Lᵀ Q L)_ij), where c is ½ on the diagonal and 1 elsewhere. Only confined cells are
random in it, z_C = m + δ: u = u₀ + G δ with G = Lᵀ Q_C, so that a score is a linear function of
the δ_k and their products. Its covariance given what is seen is what the holes took.
"""

import math

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.blas import add_products
from halfseen.kernels.confined import box_moments, chord_at, in_intervals, set_moments
from halfseen.kernels.lanes import FIRST, INNER_LANES, add_rows
from halfseen.kernels.paths import path_moments
from halfseen.kernels.patterns import centred_rows, confined_law, split

# Columns of scores that are held before their products are taken.
COLUMNS = 512
# Of the rows that are sampled one in so many is looked at for what the two halves of its points say.
DOUBTED = 8
# A pivot below this share of its own start is rounding.
SMALLEST_PIVOT = 1e-12
# Of δ₀, δ₁, δ₀², δ₁δ₀ and δ₁².
POWERS = np.array([[1, 0], [0, 1], [2, 0], [1, 1], [0, 2]])


@njit(**INNER)
def _features(x, out):
    # δ_k, then δ_k δ_l for k >= l.
    h = x.size
    n = h
    for k in range(h):
        out[k] = x[k]
        for j in range(k + 1):
            out[n] = x[k] * x[j]
            n += 1


@njit(**INNER)
def _root_features(X, weights):
    # The features of weighted paths less their mean, times the roots of the weights.
    h = X.shape[1]
    q = h + h * (h + 1) // 2
    T = np.empty((len(X), q))
    average = np.zeros(q)
    for k in range(len(X)):
        _features(X[k], T[k])
        for j in range(q):
            average[j] += weights[k] * T[k, j]
    for k in range(len(X)):
        root = math.sqrt(weights[k])
        for j in range(q):
            T[k, j] = root * (T[k, j] - average[j])
    return T


@njit(**INNER)
def _one_cell(m, root, sets, A, c, confines):
    # Covariance of (δ, δ²).
    stages = np.zeros(c.size, dtype=np.int64)
    low, high = chord_at(FIRST, m, A, c, stages)
    e, out = np.empty(5), np.empty((2, 2))
    set_moments(m[0], root[0, 0], low, high, sets[0], confines, e)
    out[0, 0] = e[2] - e[1] * e[1]
    out[0, 1] = out[1, 0] = e[3] - e[1] * e[2]
    out[1, 1] = e[4] - e[2] * e[2]
    return out


@njit(**INNER)
def _two_cells(m, root, sets, confines):
    # Covariance of (δ₀, δ₁, δ₀², δ₁δ₀, δ₁²).
    e = np.empty((5, 5))
    box_moments(m, root, sets, confines, e)
    out = np.empty((5, 5))
    for i in range(5):
        for j in range(5):
            a, b = POWERS[i], POWERS[j]
            out[i, j] = e[a[0] + b[0], a[1] + b[1]] - e[a[0], a[1]] * e[b[0], b[1]]
    return out


@njit(**INNER)
def _semidefinite_root(C):
    # R with R Rᵀ = C, columns of pivots that are rounding left out.
    n = len(C)
    R = np.zeros((n, n))
    rank = 0
    for j in range(n):
        pivot = C[j, j]
        for k in range(rank):
            pivot -= R[j, k] * R[j, k]
        if not pivot > SMALLEST_PIVOT * C[j, j]:
            continue
        root = math.sqrt(pivot)
        for i in range(j, n):
            value = C[i, j]
            for k in range(rank):
                value -= R[i, k] * R[j, k]
            R[i, rank] = value / root
        rank += 1
    return R[:, :rank].copy()


@njit(**INNER)
def _lift(u, G, out):
    # Row k of `out` is the derivative of the score in feature k.
    d, h = G.shape
    n = h
    out[:, :] = 0.0
    for k in range(h):
        place = d
        for i in range(d):
            out[k, i] = G[i, k]
            for j in range(i):
                out[k, place] = u[i] * G[j, k] + u[j] * G[i, k]
                place += 1
            out[k, place] = u[i] * G[i, k]
            place += 1
        for b in range(k + 1):
            half = 0.5 if b == k else 1.0
            place = d
            for i in range(d):
                for j in range(i):
                    out[n, place] = half * (G[i, k] * G[j, b] + G[j, k] * G[i, b])
                    place += 1
                out[n, place] = half * G[i, k] * G[i, b]
                place += 1
            n += 1


@njit(**INNER_LANES)
def _path_scores(u, G, X, weights, out):
    # Row k of `out` is the score of path k less their mean, times the root of its weight.
    d = len(G)
    average, w = np.zeros(out.shape[1]), np.empty(d)
    GT = np.ascontiguousarray(G.T)
    for k in range(len(X)):
        for i in range(d):
            w[i] = u[i]
        add_rows(X[k], GT, FIRST, w)
        place = d
        for i in range(d):
            out[k, i] = w[i]
            for j in range(i):
                out[k, place + j] = w[i] * w[j]
            out[k, place + i] = 0.5 * w[i] * w[i]
            place += i + 1
    add_rows(weights, out, FIRST, average)
    for k in range(len(X)):
        root = math.sqrt(weights[k])
        for j in range(average.size):
            out[k, j] = root * (out[k, j] - average[j])


@njit(**INNER)
def _add_scores(F, buffer, used, total):
    # Add FᵀF to the lower triangle of a total, some hundred rows at a time.
    for start in range(0, len(F), COLUMNS):
        part = F[start : start + COLUMNS]
        if used + len(part) > COLUMNS:
            add_products(buffer[:used], total)
            used = 0
        for k in range(len(part)):
            for j in range(part.shape[1]):
                buffer[used + k, j] = part[k, j]
        used += len(part)
    return used


@njit(**INNER)
def _scores(u, G, X, weights):
    # A matrix F with FᵀF = covariance of the score over the paths, of as few rows as can be.
    d, h = G.shape
    features, size = h + h * (h + 1) // 2, d + d * (d + 1) // 2
    if features <= len(X):
        T, lifted = _root_features(X, weights), np.empty((features, size))
        _lift(u, G, lifted)
        return np.dot(_semidefinite_root(np.dot(T.T, T)).T, lifted)
    out = np.empty((len(X), size))
    _path_scores(u, G, X, weights, out)
    return out


@njit(**INNER)
def _expected_row(z, C, m, mean, U, first):
    # Puts conditional means of confined cells into a centred row.
    for a in range(C.size):
        z[C[a]] = m[a] - mean[U[C[a]]] + first[a]


@njit(**INNER)
def _columns(A, chosen):
    out = np.empty((len(A), chosen.size))
    for i in range(len(A)):
        for a in range(chosen.size):
            out[i, a] = A[i, chosen[a]]
    return out


@njit(**INNER)
def _copy(A, out, first):
    # Into the columns of `out` from the first on.
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, first + j] = A[i, j]


@njit(**KERNEL)
def missing_block(
    Y, mean, P, L, grouped, confines, points, shifts, law, moments, taken, one, other
):
    """Add Σ_rows Var(score | seen) of a block to the lower triangle of ``taken``.

    Rows that are sampled are so twice, with independent shifts (``shifts`` of shape (rows, 2, d)). For
    one in so many of them what either half says is added to ``one`` and ``other``. For each group
    ``moments`` receives Lᵀ Q L, then Lᵀ Q T Q L for the expected second moments T about the mean, then
    Lᵀ Q Σ E z: an array of shape (groups, d, 2 d + 1).
    """
    d = len(P)
    size = d + d * (d + 1) // 2
    buffers = np.empty((3, COLUMNS, size))
    used = np.zeros(3, dtype=np.int64)
    totals = (taken, one, other)
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, _, Q, _, _, _ = split(P, grouped.missing[g])
        Z = centred_rows(Y, rows, mean, U, grouped.sets)
        R = np.dot(Z, Q)
        LQ = np.dot(np.ascontiguousarray(L[U].T), Q)
        T = np.zeros((U.size, U.size))
        for i in range(rows.size):
            r = rows[i]
            C, m, root, _, sets, A, c = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
            h = C.size
            if h == 0:
                continue
            first, second = np.zeros(h), np.zeros((h, h))
            _expected_row(Z[i], C, m, mean, U, first)
            u, G = np.dot(LQ, Z[i]), _columns(LQ, C)
            if h == 1 or (h == 2 and in_intervals(sets, A, confines)):
                if h == 1:
                    covariance = _one_cell(m, root, sets, A, c, confines)
                else:
                    covariance = _two_cells(m, root, sets, confines)
                lifted = np.empty((len(covariance), size))
                _lift(u, G, lifted)
                F = np.dot(_semidefinite_root(covariance).T, lifted)
                used[0] = _add_scores(F, buffers[0], used[0], taken)
                law.expect(
                    m, root, sets, A, c, confines, points, shifts[r, 0], law.fill, first, second
                )
            else:
                X, weights = np.empty((2 * len(points), h)), np.empty(2 * len(points))
                for k in range(2):
                    own = slice(k * len(points), (k + 1) * len(points))
                    law.fill(
                        m, root, sets, A, c, confines, points, shifts[r, k], X[own], weights[own]
                    )
                    if r % DOUBTED == 0:
                        F = _scores(u, G, X[own], weights[own])
                        used[1 + k] = _add_scores(F, buffers[1 + k], used[1 + k], totals[1 + k])
                for k in range(weights.size):
                    weights[k] *= 0.5
                F = _scores(u, G, X, weights)
                used[0] = _add_scores(F, buffers[0], used[0], taken)
                path_moments(X, weights, first, second)
            for a in range(h):
                Z[i, C[a]] += first[a]
                for b in range(h):
                    T[C[a], C[b]] += second[a, b]
        T += np.dot(Z.T, Z)
        LQT = np.dot(LQ, T)
        _copy(np.dot(LQ, np.ascontiguousarray(L[U])), moments[g], FIRST)
        _copy(np.dot(LQT, LQ.T), moments[g], d)
        total = np.zeros((U.size, 1))
        for i in range(rows.size):
            for a in range(U.size):
                total[a, 0] += Z[i, a]
        _copy(np.dot(LQ, total), moments[g], 2 * d)
    for k in range(3):
        add_products(buffers[k, : used[k]], totals[k])


@njit(**KERNEL)
def missing_mean_block(Y, mean, P, L, grouped, confines, points, shifts, law, taken, one, other):
    """Do as ``missing_block`` where the mean alone is free; return Σ Lᵀ Q L over the rows."""
    d = len(P)
    whole = np.zeros((d, d))
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, _, Q, _, _, _ = split(P, grouped.missing[g])
        Z = centred_rows(Y, rows, mean, U, grouped.sets)
        R = np.dot(Z, Q)
        LQ = np.dot(np.ascontiguousarray(L[U].T), Q)
        whole += rows.size * np.dot(LQ, np.ascontiguousarray(L[U]))
        for i in range(rows.size):
            r = rows[i]
            C, m, root, _, sets, A, c = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
            h = C.size
            if h == 0:
                continue
            G, first, second = _columns(LQ, C), np.empty(h), np.empty((h, h))
            integrated = h == 1 or (h == 2 and in_intervals(sets, A, confines))
            for k in range(1 if integrated else 2):
                law.expect(
                    m, root, sets, A, c, confines, points, shifts[r, k], law.fill, first, second
                )
                part = np.dot(np.dot(G, second), np.ascontiguousarray(G.T))
                taken += part if integrated else 0.5 * part
                if not integrated and r % DOUBTED == 0:
                    half = one if k == 0 else other
                    half += part
    return whole


@njit(**KERNEL)
def missing_along_block(Y, mean, P, L, grouped, confines, points, shifts, law, directions, taken):
    """Add Σ_rows Var(score along some directions | seen) of a block to ``taken``, of shape (k, k).

    ``directions`` has the shape (parameters, k); ``shifts`` are of shape (rows, 1, d).
    """
    size = len(directions)
    for g in range(grouped.start.size - 1):
        rows = grouped.rows[grouped.start[g] : grouped.start[g + 1]]
        U, _, Q, _, _, _ = split(P, grouped.missing[g])
        Z = centred_rows(Y, rows, mean, U, grouped.sets)
        R = np.dot(Z, Q)
        LQ = np.dot(np.ascontiguousarray(L[U].T), Q)
        for i in range(rows.size):
            r = rows[i]
            C, m, root, _, sets, A, c = confined_law(r, Y[r], R[i], mean, U, Q, grouped, confines)
            h = C.size
            if h == 0:
                continue
            _expected_row(Z[i], C, m, mean, U, np.zeros(h))
            u, G = np.dot(LQ, Z[i]), _columns(LQ, C)
            lifted = np.empty((h + h * (h + 1) // 2, size))
            _lift(u, G, lifted)
            along = np.dot(lifted, directions)
            if h == 1:
                taken += np.dot(along.T, np.dot(_one_cell(m, root, sets, A, c, confines), along))
            elif h == 2 and in_intervals(sets, A, confines):
                taken += np.dot(along.T, np.dot(_two_cells(m, root, sets, confines), along))
            else:
                X, weights = np.empty((len(points), h)), np.empty(len(points))
                law.fill(m, root, sets, A, c, confines, points, shifts[r, 0], X, weights)
                scores = np.dot(_root_features(X, weights), along)
                taken += np.dot(scores.T, scores)
