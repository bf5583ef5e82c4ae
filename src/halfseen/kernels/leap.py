"""Leaps of several hidden cells of a row at once, from piece to piece of their sets.

Where a row has two or more cells that hide on either side of what is shown, a sweep that draws them
one by one hardly ever gets from one corner to another: the corners between are too unlikely. So all
such cells of a row are proposed anew together, one after the other, each restricted to its set given
those before it and with those after it left free (the sampler of Geweke, Hajivassiliou and Keane).
Its density is that of the wanted distribution times a constant over w, the product of the masses of
the sets that the cells were drawn from, so that a proposal is taken with probability w_new/w_old
(Metropolis and Hastings; the other cells stay).
"""

import math

import numpy as np
from numba import njit

from halfseen.kernels.cholesky import factor, solve
from halfseen.kernels.sweep import draw_union, interval

# Cells of a row that leap together at most: of more, proposals would hardly ever be taken.
MOST_CELLS = 12


@njit(cache=True, nogil=True, error_model="numpy")
def _log_mass(m, s, lower, upper, scratch):
    # log P(N(m, s²) lies in one of the intervals)
    top, total = -math.inf, 0.0
    for k in range(lower.size):
        a, b = (lower[k] - m) / s, (upper[k] - m) / s
        if a < b:
            mass = interval(a, b, scratch)[0]
            if mass > top:
                total = total * math.exp(top - mass) + 1.0 if top > -math.inf else 1.0
                top = mass
            elif mass > -math.inf:
                total += math.exp(mass - top)
    return top + math.log(total) if top > -math.inf else -math.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _conditional(i, k, L, centre, value):
    # Given the cells after it, cell i of k has mean centre_i − Σ_{j>i} L_ji (v_j − c_j)/L_ii.
    shift = 0.0
    for j in range(i + 1, k):
        shift += L[j, i] * (value[j] - centre[j])
    return centre[i] - shift / L[i, i], 1.0 / L[i, i]


@njit(cache=True, nogil=True, error_model="numpy")
def leap(Y, Z, R, mean, P, index, cells, rows, uniforms):
    """Propose new values for the many-pieced hidden cells of some rows, in place.

    ``rows`` are those with at least two such cells and without inequalities; each has a row of
    ``uniforms``: one for each cell, and the last to accept or not. The others are as in
    ``kernels.sweep``.
    """
    d = P.shape[0]
    columns = np.empty(MOST_CELLS, dtype=np.int64)
    L, scratch = np.empty((MOST_CELLS, MOST_CELLS)), np.empty(5)
    centre, old, new = np.empty(MOST_CELLS), np.empty(MOST_CELLS), np.empty(MOST_CELLS)
    for at in range(rows.size):
        r = rows[at]
        k = 0
        for j in range(d):
            s = index[r, j]
            if s >= 0 and k < MOST_CELLS and cells.piece[s + 1] - cells.piece[s] > 1:
                columns[k] = j
                k += 1
        for a in range(k):
            for b in range(a + 1):
                L[a, b] = P[columns[a], columns[b]]
        if not factor(L, k, 0.0):
            # Rounding has made the block indefinite.
            continue
        # Centre of the cells given the rest of the row: z − P_UU⁻¹ r_U.
        for a in range(k):
            centre[a] = R[r, columns[a]]
        solve(L, centre, k)
        for a in range(k):
            j = columns[a]
            old[a] = Y[r, j]
            centre[a] = Y[r, j] - centre[a]
        gain = 0.0
        for a in range(k - 1, -1, -1):
            s = index[r, columns[a]]
            pieces = slice(cells.piece[s], cells.piece[s + 1])
            lower, upper = cells.lower[pieces], cells.upper[pieces]
            m, spread = _conditional(a, k, L, centre, old)
            gain -= _log_mass(m, spread, lower, upper, scratch)
            m, spread = _conditional(a, k, L, centre, new)
            gain += _log_mass(m, spread, lower, upper, scratch)
            x, _, _ = draw_union(
                m, spread, -math.inf, math.inf, lower, upper, uniforms[at, a], scratch
            )
            new[a] = m + spread * x
        # Comparing so refuses what is not a number.
        if not math.log(uniforms[at, MOST_CELLS]) < gain:
            continue
        for a in range(k):
            j = columns[a]
            move = new[a] - old[a]
            Z[r, j] += move
            Y[r, j] = Z[r, j] + mean[j]
            for i in range(d):
                R[r, i] += move * P[j, i]
