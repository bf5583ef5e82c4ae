"""Parts of Louis' identity, row by row, against quadrature and rejection."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from halfseen.kernels import information as kernel
from halfseen.kernels.paths import law_of
from halfseen.solvers.full_information.expectation import lattice
from tests import naive
from tests.kernels.holed import INF, LINE, groups, hidden_with, holes_of

D = 4
MEAN = np.array([0.3, -0.5, 1.0, 0.0])
COVARIANCE = np.array(
    [[1.0, 0.6, -0.3, 0.2], [0.6, 2.0, 0.5, -0.4], [-0.3, 0.5, 1.5, 0.3], [0.2, -0.4, 0.3, 0.8]]
)
P, L = np.linalg.inv(COVARIANCE), np.linalg.cholesky(COVARIANCE)
SIZE = D + D * (D + 1) // 2
LOWER = np.tril_indices(D)
SHARE = np.where(LOWER[0] == LOWER[1], 0.5, 1.0)
VALUES = np.array([0.6, 0.1, 0.7, -0.4])


def _pattern(U):
    """Lᵀ Q and Lᵀ Q L for the columns U of a row."""
    LQ = L[U].T @ np.linalg.inv(COVARIANCE[np.ix_(U, U)])
    return LQ, LQ @ L[U]


def _scores(Z, U):
    """Scores in (a, B_ij for i >= j) of N(μ + L a, L (I + B) Lᵀ), of rows with the columns U."""
    LQ, K = _pattern(U)
    u = Z @ LQ.T
    products = np.einsum("ni,nj->nij", u, u) - K
    return np.hstack([u, SHARE * products[:, LOWER[0], LOWER[1]]])


def test_the_oracle_has_the_derivatives_of_the_log_density():
    U, step = [0, 1, 3], 1e-5
    Y = np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, 3)[:, U]
    scores = _scores(Y - MEAN[U], U)
    for k in range(SIZE):
        theta = np.eye(SIZE)[k] * step
        B = np.zeros((D, D))
        B[LOWER] = theta[D:]
        B = B + np.tril(B, -1).T
        ends = []
        for sign in (1, -1):
            m, S = MEAN + sign * L @ theta[:D], L @ (np.eye(D) + sign * B) @ L.T
            ends.append(stats.multivariate_normal(m[U], S[np.ix_(U, U)]).logpdf(Y))
        # step² of third derivatives of order 1, and rounding / step.
        np.testing.assert_allclose(scores[:, k], (ends[0] - ends[1]) / (2 * step), atol=1e-7)


def _taken(cells, rows=1, points=256, seed=0, **bound):
    """What the kernel makes of a row, so many times over: its share of each, and moments."""
    holes = holes_of([cells] * rows, D, **bound)
    Y = np.tile(VALUES, (rows, 1))
    Y[:, list(cells)] = np.nan
    grouped, sets = groups(holes)
    shifts = np.random.default_rng(seed).random((rows, 2, D))
    taken, one, other = (np.zeros((SIZE, SIZE)) for _ in range(3))
    moments = np.empty((1, D, 2 * D + 1))
    args = Y, MEAN, P, L, grouped, sets, lattice(points, D), shifts, law_of(sets)
    kernel.missing_block(*args, moments, taken, one, other)
    parts = [np.tril(part) + np.tril(part, -1).T for part in (taken, one, other)]
    means = [np.zeros((D, D)) for _ in range(3)]
    whole = kernel.missing_mean_block(*args, *means)
    return parts, moments[0], means, whole


def _law(C, U):
    """Mean and covariance of the confined cells of a row given its seen ones, among columns U."""
    S = [j for j in U if j not in C]
    if not S:
        return MEAN[C], COVARIANCE[np.ix_(C, C)]
    gain = np.linalg.solve(COVARIANCE[np.ix_(S, S)], COVARIANCE[np.ix_(S, C)]).T
    spread = COVARIANCE[np.ix_(C, C)] - gain @ COVARIANCE[np.ix_(S, C)]
    return MEAN[C] + gain @ (VALUES[S] - MEAN[S]), spread


def _weighted(X, weights, C, U):
    """Mean and covariance of the scores, and E z and E z zᵀ, over weighted values of the cells C."""
    Z = np.tile(VALUES - MEAN, (len(X), 1))
    Z[:, C] = X - MEAN[C]
    Z = Z[:, U]
    scores = _scores(Z, U)
    mean = weights @ scores
    centred = scores - mean
    return (centred * weights[:, None]).T @ centred, weights @ Z, (Z * weights[:, None]).T @ Z


def _line(m, s, pieces, weight=None, count=120):
    """Nodes and weights of N(m, s²) on pieces, by Gauss and Legendre; 400 say the same to 1e-12."""
    node, share = np.polynomial.legendre.leggauss(count)
    x, w = [], []
    for a, b in pieces:
        a, b = max(a, m - 11 * s), min(b, m + 11 * s)
        x.append(0.5 * (a + b) + 0.5 * (b - a) * node)
        w.append(0.5 * (b - a) * share * np.exp(-0.5 * ((x[-1] - m) / s) ** 2))
    x, w = np.concatenate(x), np.concatenate(w)
    w = w if weight is None else w * weight(x)
    return x, w / s


BELOW, SIDES = [(-INF, 0.2)], [(-INF, -0.3), (0.5, INF)]
INTEGRATED = {
    "one": ({2: BELOW}, None),
    "one on two sides, others missing": ({1: SIDES, 3: LINE}, None),
    "a probability": ({0: hidden_with(1.5)}, lambda x: expit(-1.5 * x)),
    "two": ({0: BELOW, 2: [(-0.4, 0.9)]}, None),
    "two on two sides, one missing": ({0: SIDES, 1: LINE, 3: SIDES}, None),
}


def _split(cells):
    C = [j for j, pieces in cells.items() if pieces is not LINE]
    return C, [j for j in range(D) if j not in cells or j in C]


def _check_moments(moments, means, whole, U, ref, first, second, tolerance):
    LQ, K = _pattern(U)
    np.testing.assert_allclose(moments[:, :D], K, atol=1e-11)
    np.testing.assert_allclose(moments[:, D : 2 * D], LQ @ second @ LQ.T, atol=tolerance)
    np.testing.assert_allclose(moments[:, 2 * D], LQ @ first, atol=tolerance)
    # Of the mean alone the same is said.
    np.testing.assert_allclose(whole, K, atol=1e-11)
    np.testing.assert_allclose(means[0], ref[:D, :D], atol=tolerance)


@pytest.mark.parametrize("name", INTEGRATED)
def test_integrated_rows_match_quadrature(name):
    cells, weight = INTEGRATED[name]
    C, U = _split(cells)
    m, S = _law(C, U)
    s = np.sqrt(np.diag(S))
    if len(C) == 1:
        x, w = _line(m[0], s[0], LINE if weight else cells[C[0]], weight)
        X = x[:, None]
    else:
        x, w1 = _line(m[0], s[0], cells[C[0]])
        y, w2 = _line(m[1], s[1], cells[C[1]])
        X = np.stack(np.broadcast_arrays(x[:, None], y[None]), axis=-1).reshape(-1, 2)
        density = stats.multivariate_normal(m, S).pdf(X)
        own = [naive_density(x, m[0], s[0]), naive_density(y, m[1], s[1])]
        w = (np.outer(w1 / own[0], w2 / own[1])).ravel() * density
    ref, first, second = _weighted(X, w / w.sum(), C, U)
    (taken, one, other), moments, means, whole = _taken(cells)
    # Quadrature of both to ten digits, and nodes of a probability to eight.
    np.testing.assert_allclose(taken, ref, rtol=0, atol=1e-7 if weight else 1e-9)
    assert not one.any()
    assert not other.any()
    _check_moments(moments, means, whole, U, ref, first, second, 1e-7)


def naive_density(x, m, s):
    return np.exp(-0.5 * ((x - m) / s) ** 2) / s


V, B = np.array([[1.0, 0.5, 0.0, -0.6], [0.2, -1.0, 0.7, 0.0]]), np.array([0.5, 0.9])
SAMPLED = {
    "three in intervals": ({0: BELOW, 1: [(-0.4, 0.9)], 3: BELOW}, {}),
    "three and one missing": ({0: BELOW, 1: SIDES, 2: LINE, 3: BELOW}, {}),
    "four": (dict.fromkeys(range(4), BELOW), {}),
    "two between inequalities": ({0: LINE, 1: LINE}, {"V": V, "b": B, "sign": [1, -1]}),
    "four between inequalities": (
        dict.fromkeys(range(4), LINE), {"V": V, "b": B, "sign": [1, 1]},
    ),
}  # fmt: skip


def _places(name):
    """The confined columns of a sampled row, and all that are not missing at random."""
    cells, bound = SAMPLED[name]
    return ([*cells], [*range(D)]) if bound else _split(cells)


@cache
def _rejected(name):
    """Draws of the confined cells of a sampled row: the same for any number of points."""
    cells, bound = SAMPLED[name]
    C, U = _places(name)
    m, S = _law(C, U)

    def inside(X):
        ok = np.ones(len(X), dtype=bool)
        for k, j in enumerate(C):
            ok &= np.any([(X[:, k] > a) & (X[:, k] < b) for a, b in cells[j]], axis=0)
        if bound:
            Y = np.tile(VALUES, (len(X), 1))
            Y[:, C] = X
            ok &= (np.array(bound["sign"]) * (B - Y @ V.T) >= 0).all(axis=1)
        return ok

    return naive.truncated_draws(m, S, inside, 200_000)


@pytest.mark.parametrize("points", [256, 4])
@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_rows_match_rejection(name, points):
    cells, bound = SAMPLED[name]
    C, U = _places(name)
    X = _rejected(name)
    ref, first, second = _weighted(X, np.full(len(X), 1.0 / len(X)), C, U)
    # Standard errors of the oracle: fourth moments of its scores.
    Z = np.tile(VALUES - MEAN, (len(X), 1))
    Z[:, C] = X - MEAN[C]
    scores = _scores(Z[:, U], U)
    scores -= scores.mean(axis=0)
    error = np.sqrt(np.einsum("ni,nj->ij", scores**2, scores**2)) / len(X)
    rows = 160 if points == 256 else 2000
    (taken, one, other), moments, means, whole = _taken(cells, rows, points, **bound)
    # Each row is driven by shifts of its own. Of one row with 2·256 even points a covariance is known to
    # 5 % of its scale or better, of the average over 160 to 0.4 %; five of these, and of the oracle's.
    # 2·4 points, fewer than there are parameters, are treated apart; a covariance of so few about
    # their own mean is low by some 1/8, and more where weights differ.
    scale = np.sqrt(np.outer(np.diag(ref), np.diag(ref)))
    allowed = 5.0 * error + (0.02 if points == 256 else 0.35) * scale
    assert (np.abs(taken / rows - ref) < allowed).all()
    assert np.linalg.eigvalsh(taken)[0] > -1e-9 * rows
    # One row in so many is doubted, by either half.
    doubted = -(-rows // kernel.DOUBTED)
    loose = 5.0 * error + (0.1 if points == 256 else 0.6) * scale
    for half in (one, other):
        assert (np.abs(half / doubted - ref) < loose).all()
    assert (one != other).any()
    if points == 256:
        means = [part / rows for part in means]
        moments = moments.copy()
        moments[:, D:] /= rows
        _check_moments(moments, means, whole / rows, U, ref, first, second, 0.03)


def test_more_columns_than_the_buffer_holds_are_added():
    # Features of four cells in each of 200 rows: 14 columns of scores each, in buffers of 512.
    cells = dict.fromkeys(range(4), BELOW)
    (many, _, _), *_ = _taken(cells, 200, 16)
    parts = np.zeros((SIZE, SIZE))
    shifts = np.random.default_rng(0).random((200, 2, D))
    holes = holes_of([cells], D)
    grouped, sets = groups(holes)
    for r in range(200):
        total, *halves = (np.zeros((SIZE, SIZE)) for _ in range(3))
        kernel.missing_block(
            np.full((1, D), np.nan), MEAN, P, L, grouped, sets, lattice(16, D), shifts[r : r + 1],
            law_of(sets), np.empty((1, D, 2 * D + 1)), total, *halves,
        )  # fmt: skip
        parts += total
    np.testing.assert_allclose(np.tril(many), np.tril(parts), rtol=1e-10, atol=1e-10)
    assert math.isfinite(many.sum())


@pytest.mark.parametrize("name", [*INTEGRATED, *SAMPLED])
def test_along_directions_the_same_is_taken(name):
    cells, bound = SAMPLED[name] if name in SAMPLED else (INTEGRATED[name][0], {})
    holes = holes_of([cells], D, **bound)
    Y = VALUES[None].copy()
    Y[:, list(cells)] = np.nan
    grouped, sets = groups(holes)
    shifts = np.random.default_rng(4).random((1, 2, D))
    totals = [np.zeros((SIZE, SIZE)) for _ in range(3)]
    args = Y, MEAN, P, L, grouped, sets, lattice(64, D)
    kernel.missing_block(*args, shifts, law_of(sets), np.empty((1, D, 2 * D + 1)), *totals)
    # Sampled rows: what the first half of the points says, of a row that is doubted.
    ref = totals[1] if name in SAMPLED else totals[0]
    ref = np.tril(ref) + np.tril(ref, -1).T
    directions, comp = np.random.default_rng(5).normal(size=(SIZE, 3)), np.zeros((3, 3))
    first = np.ascontiguousarray(shifts[:, :1])
    kernel.missing_along_block(*args, first, law_of(sets), directions, comp)
    # Pivots below 1e-12 of their start are left out of the one, not of the other.
    np.testing.assert_allclose(comp, directions.T @ ref @ directions, rtol=1e-8, atol=1e-8)
