"""Expected rows, log-likelihoods and draws of blocks against plain loops over rows."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from halfseen.kernels import paths, patterns
from halfseen.solvers.full_information.expectation import lattice
from tests import naive
from tests.kernels.calling import called
from tests.kernels.holed import INF, LINE, groups, hidden_with, holes_of

D = 5
MEAN = np.array([0.3, -0.5, 1.0, 0.0, 0.4])
COVARIANCE = np.array([
    [1.0, 0.6, -0.3, 0.2, 0.1],
    [0.6, 2.0, 0.5, -0.4, 0.3],
    [-0.3, 0.5, 1.5, 0.3, 0.5],
    [0.2, -0.4, 0.3, 0.8, -0.2],
    [0.1, 0.3, 0.5, -0.2, 1.2],
])  # fmt: skip
P, LOG_DET = np.linalg.inv(COVARIANCE), np.linalg.slogdet(COVARIANCE)[1]
V = np.array([[1.0, 0.5, 0.0, -0.6, 0.0], [0.2, -1.0, 0.7, 0.0, 0.0]])
B = np.array([0.5, 0.9])
BELOW, BETWEEN, SIDES = [(-INF, 0.2)], [(-0.4, 0.9)], [(-INF, -0.3), (0.5, INF)]
# Rows by the sets of their hidden cells. A whole line that no inequality involves is missing at random.
ROWS = [
    {},
    {1: LINE},
    {1: LINE},
    {0: LINE, 1: LINE, 2: LINE, 3: LINE, 4: LINE},
    {2: BELOW},
    {2: SIDES, 4: LINE},
    {0: BETWEEN, 3: BELOW},
    {1: LINE, 2: BETWEEN, 4: SIDES},
    {0: BELOW, 1: BETWEEN, 4: BELOW},
    {0: BELOW, 1: BETWEEN, 2: LINE, 3: SIDES, 4: BELOW},
    {3: hidden_with(1.5), 4: LINE},
    {0: BELOW, 2: LINE, 3: hidden_with(1.5)},
    {0: BELOW, 1: BELOW, 2: BELOW, 3: BELOW, 4: BELOW},
]


def _values(rows, seed=0):
    Y = np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, len(rows))
    for r, cells in enumerate(rows):
        Y[r, list(cells)] = np.nan
    return Y


def _bound_rows():
    """Rows under inequalities: cells in them are confined, though their sets are whole lines."""
    rows = [
        {1: LINE}, {4: LINE}, {0: LINE, 1: LINE}, {0: LINE, 2: LINE, 4: LINE}, {0: BELOW, 3: LINE},
        {0: LINE, 1: LINE, 2: LINE, 3: LINE, 4: BELOW}, {}, {2: LINE, 3: LINE},
    ]  # fmt: skip
    sign = [[1, 1], [1, -1], [1, -1], [-1, 0], [-1, 1], [1, 1], [1, 1], [0, -1]]
    return rows, np.array(sign)


def _law(y, S, H):
    """Log-density of the seen cells of a row, and mean and covariance of cells H given them."""
    if not len(S):
        return 0.0, MEAN[H], COVARIANCE[np.ix_(H, H)]
    within, across = COVARIANCE[np.ix_(S, S)], COVARIANCE[np.ix_(H, S)]
    gain = np.linalg.solve(within, across.T).T
    density = stats.multivariate_normal(MEAN[S], within).logpdf(y[S])
    return density, MEAN[H] + gain @ (y[S] - MEAN[S]), COVARIANCE[np.ix_(H, H)] - gain @ across.T


def _slow(Y, holes, points, shifts):
    """E z, E z zᵀ (z = y − μ) and the log-likelihood of each row, from covariances of its cells.

    What is confined is asked of ``paths.expectation``, which has tests of its own.
    """
    grouped, sets = groups(holes)
    first, second, value = np.zeros((len(Y), D)), np.zeros((len(Y), D, D)), np.zeros(len(Y))
    missing = np.empty(Y.shape, dtype=bool)
    for g, mask in enumerate(grouped.missing):
        missing[grouped.rows[grouped.start[g] : grouped.start[g + 1]]] = mask
    for r, y in enumerate(Y):
        index = holes.index[r]
        S = np.flatnonzero(index < 0)
        C = np.flatnonzero((index >= 0) & ~missing[r])
        density, m, K = _law(y, S, C)
        A, c = np.empty((0, C.size)), np.empty(0)
        if holes.inequalities is not None:
            sign = holes.inequalities.sign[r]
            used = (sign != 0) & (V[:, C] != 0).any(axis=1)
            A = sign[used, None] * V[np.ix_(used, C)]
            c = sign[used] * (B[used] - V[np.ix_(used, S)] @ y[S])
        mass, e, spread = 0.0, np.zeros(C.size), np.zeros((C.size, C.size))
        if C.size:
            fill = paths.law_of(sets).fill
            mass = paths.expectation(
                m, np.linalg.cholesky(K), index[C].astype(np.int64), A, c, sets, points, shifts[r],
                fill, e, spread,
            )  # fmt: skip
        value[r] = density + mass
        # Cells that are missing are regressed on all the others.
        U, M = np.flatnonzero(~missing[r]), np.flatnonzero(missing[r])
        z, T = np.where(index < 0, y - MEAN, 0.0), np.zeros((D, D))
        z[C] = m + e - MEAN[C]
        T[np.ix_(C, C)] = spread
        B_MU, rest = np.zeros((M.size, U.size)), COVARIANCE[np.ix_(M, M)]
        if U.size:
            B_MU = np.linalg.solve(COVARIANCE[np.ix_(U, U)], COVARIANCE[np.ix_(U, M)]).T
            rest = rest - B_MU @ COVARIANCE[np.ix_(U, M)]
        z[M] = B_MU @ z[U]
        T[np.ix_(M, U)] = B_MU @ T[np.ix_(U, U)]
        T[np.ix_(U, M)] = T[np.ix_(M, U)].T
        T[np.ix_(M, M)] = rest + B_MU @ T[np.ix_(U, U)] @ B_MU.T
        first[r], second[r] = z, T + np.outer(z, z)
    return first, second, value


def _fast(Y, holes, points, shifts):
    grouped, sets = groups(holes)
    first, second, value = np.zeros(D), np.zeros((D, D)), np.empty(len(Y))
    args = grouped, sets, points, shifts, paths.law_of(sets)
    patterns.expect_block(Y, MEAN, P, LOG_DET, *args, first, second, value)
    E = np.empty(Y.shape)
    patterns.mean_block(Y, MEAN, P, *args, E)
    return first, second, value, E


def _holes(kind):
    if kind == "sets":
        return ROWS, holes_of(ROWS, D)
    rows, sign = _bound_rows()
    return rows, holes_of(rows, D, V, B, sign)


@pytest.mark.parametrize("kind", ["sets", "inequalities"])
def test_a_block_is_that_of_plain_loops(kind):
    rows, holes = _holes(kind)
    Y = _values(rows)
    shifts = np.random.default_rng(1).random(Y.shape)
    points = lattice(64, D)
    ref_first, ref_second, ref_value = _slow(Y, holes, points, shifts)
    first, second, value, E = _fast(Y, holes, points, shifts)
    # Two ways to the same conditional law: matrices of condition 10 and sums of some terms. Draws from
    # nodes are the same ones, unless a uniform falls on the edge between two.
    np.testing.assert_allclose(value, ref_value, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(E, ref_first, rtol=0, atol=1e-9)
    np.testing.assert_allclose(first, ref_first.sum(axis=0), rtol=0, atol=1e-9)
    np.testing.assert_allclose(second, ref_second.sum(axis=0), rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", ["sets", "inequalities"])
@pytest.mark.parametrize("columns", [1, 3, D])
def test_each_row_by_itself_is_that_of_plain_loops(kind, columns):
    rows, holes = _holes(kind)
    Y = _values(rows)
    shifts = np.random.default_rng(1).random(Y.shape)
    points = lattice(64, D)
    ref_first, ref_second, ref_value = _slow(Y, holes, points, shifts)
    ref_spread = ref_second - np.einsum("ni,nj->nij", ref_first, ref_first)
    grouped, sets = groups(holes)
    n = len(Y)
    E, V, value = np.empty((n, columns)), np.full((n, columns, columns), np.nan), np.empty(n)
    patterns.rows_block(
        Y, MEAN, P, LOG_DET, grouped, sets, points, shifts, paths.law_of(sets), E, V, value
    )
    np.testing.assert_allclose(value, ref_value, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(E, ref_first[:, :columns], rtol=0, atol=1e-9)
    np.testing.assert_allclose(V, ref_spread[:, :columns, :columns], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["sets", "inequalities"])
def test_expected_second_moments_are_positive_semidefinite(kind):
    rows, holes = _holes(kind)
    Y = _values(rows, 3)
    shifts = np.random.default_rng(1).random(Y.shape)
    # Row by row, with few points; about the row's own mean.
    for r in range(len(rows)):
        first, second, _, _ = _fast(
            Y[r : r + 1], holes.take(slice(r, r + 1)), lattice(8, D), shifts[r:]
        )
        np.testing.assert_allclose(second, second.T, atol=1e-13)
        spread = np.linalg.eigvalsh(second - np.outer(first, first))
        assert spread[0] > -1e-12, r


def test_seen_rows_say_what_they_are():
    Y = np.random.default_rng(5).multivariate_normal(MEAN, COVARIANCE, 20)
    first, second, value, E = _fast(Y, holes_of([{}] * 20, D), lattice(4, D), np.zeros(Y.shape))
    np.testing.assert_allclose(first, (Y - MEAN).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(second, (Y - MEAN).T @ (Y - MEAN), atol=1e-11)
    np.testing.assert_allclose(
        value, stats.multivariate_normal(MEAN, COVARIANCE).logpdf(Y), rtol=1e-11
    )
    np.testing.assert_allclose(E, Y - MEAN, atol=1e-15)


def test_a_row_that_is_missing_altogether_is_the_gaussian():
    holes = holes_of([dict.fromkeys(range(D), LINE)], D)
    first, second, value, _ = _fast(np.full((1, D), np.nan), holes, lattice(4, D), np.zeros((1, D)))
    np.testing.assert_allclose(first, 0.0, atol=1e-15)
    np.testing.assert_allclose(second, COVARIANCE, rtol=1e-11)
    assert value[0] == pytest.approx(0.0, abs=1e-11)


def test_integrated_rows_match_quadrature():
    # One and two confined cells beside seen and missing ones, without any kernel in the oracle.
    Y = _values(ROWS)
    first, value = np.empty(0), np.empty(0)
    _, _, value, first = _fast(Y, holes_of(ROWS, D), lattice(1, D), np.zeros(Y.shape))
    for r, C, weight in [(4, [2], None), (5, [2], None), (10, [3], lambda x: expit(-1.5 * x))]:
        density, m, K = _law(Y[r], [j for j in range(D) if j not in ROWS[r]], C)
        pieces = LINE if weight else ROWS[r][C[0]]
        mass, mean, _ = naive.line_moments(m[0], math.sqrt(K[0, 0]), pieces, weight)
        assert value[r] == pytest.approx(density + math.log(mass), abs=1e-8)
        assert first[r, C[0]] + MEAN[C[0]] == pytest.approx(mean, abs=1e-8)
    for r, C in [(6, [0, 3]), (7, [2, 4])]:
        density, m, K = _law(Y[r], [j for j in range(D) if j not in ROWS[r]], C)
        mass = naive.region_mass(m, K, [ROWS[r][j] for j in C])
        assert value[r] == pytest.approx(density + math.log(mass), abs=1e-8)


def test_a_pattern_is_split_by_schur_complements():
    mask = np.array([False, True, False, True, True])
    U, M, Q, slope, spread, log_det = called(patterns.split)(P, mask)
    np.testing.assert_array_equal(U, [0, 2])
    np.testing.assert_array_equal(M, [1, 3, 4])
    within = COVARIANCE[np.ix_(U, U)]
    np.testing.assert_allclose(Q, np.linalg.inv(within), rtol=1e-10)
    ref = np.linalg.solve(within, COVARIANCE[np.ix_(U, M)]).T
    np.testing.assert_allclose(slope, ref, atol=1e-12)
    left = COVARIANCE[np.ix_(M, M)] - ref @ COVARIANCE[np.ix_(U, M)]
    np.testing.assert_allclose(spread, left, atol=1e-12)
    # |Σ_UU| = |Σ| |P_MM|
    assert LOG_DET + log_det == pytest.approx(np.linalg.slogdet(within)[1], rel=1e-10)


# Draws ----------------------------------------------------------------------------------------------

N = 20_000


def _drawn(cells, count=1, points=32, seed=0, y=None, **bound):
    """Draws of a row many times over: (count, N, d), less the mean."""
    rng = np.random.default_rng(seed)
    holes = holes_of([cells], D, **bound)
    many = holes.take(np.zeros(N, dtype=np.intp))
    grouped, sets = groups(many)
    Y = np.tile(_values([cells]) if y is None else y, (N, 1))
    drawn = np.empty((count, N, D))
    patterns.draw_block(
        Y, MEAN, P, grouped, sets, lattice(points, D), rng.random((N, D)), paths.law_of(sets),
        rng.random(N), rng.standard_normal((count, N, D)), drawn,
    )  # fmt: skip
    return Y[0], drawn, holes


DRAWN = {
    "missing": {1: LINE, 3: LINE},
    "one": {2: BELOW},
    "one and missing": {2: SIDES, 4: LINE},
    "two": {0: BETWEEN, 3: BELOW},
    "two and missing": {1: LINE, 2: BETWEEN, 4: SIDES},
    "a probability": {3: hidden_with(1.5), 4: LINE},
    "three": {0: BELOW, 1: BETWEEN, 4: BELOW},
    "all": {0: BELOW, 1: BETWEEN, 2: LINE, 3: SIDES, 4: BELOW},
}


def _check_moments(drawn, y, holes, points=8192):
    """Mean and second moments of N independent draws: five standard errors, and those of the oracle.

    Paths are resampled from 32 with self-normalised weights, which has a bias of about the variance of
    the weights over 32: 1 % of a standard deviation.
    """
    Z = drawn[0]
    first, second, _, _ = _fast(y[None], holes, lattice(points, D), np.full((1, D), 0.2))
    products = np.einsum("ni,nj->nij", Z, Z)
    spread = np.sqrt(np.maximum(np.diag(second) - first**2, 0.0))
    error = Z.std(axis=0) / math.sqrt(N)
    assert (np.abs(Z.mean(axis=0) - first) <= 5.0 * error + 0.01 * spread + 1e-12).all()
    error = products.std(axis=0) / math.sqrt(N)
    scale = products.std(axis=0)
    assert (np.abs(products.mean(axis=0) - second) <= 5.0 * error + 0.01 * scale + 1e-11).all()


@pytest.mark.parametrize("name", DRAWN)
def test_draws_have_the_moments_of_the_row(name):
    y, drawn, holes = _drawn(DRAWN[name])
    _check_moments(drawn, y, holes)
    seen = ~np.isnan(y)
    np.testing.assert_allclose(drawn[0][:, seen], np.tile((y - MEAN)[seen], (N, 1)), atol=1e-14)
    for j, pieces in DRAWN[name].items():
        if isinstance(pieces, list):
            x = drawn[0][:, j] + MEAN[j]
            inside = np.any([(x >= a - 1e-12) & (x <= b + 1e-12) for a, b in pieces], axis=0)
            assert inside.all()


def test_draws_between_inequalities_have_the_moments_of_the_row():
    cells = {0: LINE, 1: LINE, 2: LINE, 4: LINE}
    y, drawn, holes = _drawn(cells, V=V, b=B, sign=[1, -1])
    _check_moments(drawn, y, holes)
    Y = drawn[0] + MEAN
    assert (Y @ V[0] <= B[0] + 1e-12).all()
    assert (Y @ V[1] >= B[1] - 1e-12).all()


@pytest.mark.parametrize("count", [2, 5])
def test_several_draws_of_a_row_share_its_law(count):
    y, drawn, holes = _drawn(DRAWN["all"], count, points=64)
    for k in range(count):
        _check_moments(drawn[k : k + 1], y, holes)
