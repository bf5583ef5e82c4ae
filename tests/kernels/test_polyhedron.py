import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

from halfseen.kernels import polyhedron
from tests import naive


def _clarabel(point, A, c, centre, radius):
    """min ½‖u − point‖² over {A u <= c} ∩ ball, as a cone programme."""
    k = point.size
    rows = sparse.csc_matrix(np.vstack([A, np.zeros((1, k)), -np.eye(k)]))
    right = np.concatenate([c, [radius], -centre])
    cones = [clarabel.NonnegativeConeT(len(A)), clarabel.SecondOrderConeT(k + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-14
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.eye(k)), -point, rows, right, cones, settings
    )
    return np.array(solver.solve().x)


def _problem(seed):
    rng = np.random.default_rng(seed)
    k, m = rng.integers(1, 7), rng.integers(1, 10)
    A = rng.normal(size=(m, k))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    inside = rng.normal(size=k)
    c = A @ inside + 0.5 * rng.exponential(size=m)
    return rng.normal(size=k) * 4, A, c, inside + 0.2 * rng.normal(size=k), rng.uniform(0.8, 5)


@pytest.mark.parametrize("seed", range(60))
def test_projection_matches_a_cone_solver(seed):
    point, A, c, centre, radius = _problem(seed)
    u = np.empty_like(point)
    assert polyhedron.project(point, A, c, centre, radius, u)
    assert (A @ u <= c + 1e-11).all()
    assert np.linalg.norm(u - centre) <= radius * (1 + 1e-11)
    ref = _clarabel(point, A, c, centre, radius)
    # The solver may stop at 1e-8 of the objective, which leaves its point uncertain by the root.
    assert np.abs(u - ref).max() < 1e-3
    assert np.linalg.norm(u - point) <= np.linalg.norm(ref - point) + 1e-9
    # The optimality conditions hold: point − u is a combination, with weights of at least zero, of the
    # normals that are active. The problem is 1-strongly convex, so the residual bounds the error of u.
    active = [A[i] for i in range(len(A)) if A[i] @ u > c[i] - 1e-9]
    if np.linalg.norm(u - centre) > radius - 1e-9:
        active.append(u - centre)
    normals = np.array(active).T if active else np.zeros((point.size, 1))
    _, residual = nnls(normals, point - u)
    assert residual < 1e-9


@pytest.mark.parametrize("seed", range(60))
def test_projection_on_the_polyhedron_is_exact(seed):
    point, A, c, _, _ = _problem(seed)
    u = np.empty_like(point)
    assert polyhedron.project_polyhedron(point, A, c, u)
    np.testing.assert_allclose(u, naive.project_polyhedron(point, A, c), atol=1e-9)


def test_duplicate_and_opposite_constraints():
    A = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    c = np.array([1.0, 1.0, 0.5, -0.5])
    u = np.empty(2)
    assert polyhedron.project_polyhedron(np.array([3.0, 3.0]), A, c, u)
    np.testing.assert_allclose(u, [1.0, 0.5], atol=1e-12)


def test_an_empty_polyhedron_is_noticed():
    A = np.array([[1.0], [-1.0]])
    u = np.empty(1)
    assert not polyhedron.project_polyhedron(np.array([0.0]), A, np.array([-1.0, -1.0]), u)
    assert not polyhedron.relax(np.zeros(1), A, np.array([-1.0, -1.0]), 0.05, 100)


def test_a_ball_that_does_not_reach_is_noticed():
    u = np.empty(1)
    far = np.array([[1.0]]), np.array([-9.0]), np.array([0.0])
    assert not polyhedron.project(np.array([0.0]), *far, 2.0, u)


@pytest.mark.parametrize("seed", range(20))
def test_relaxation_ends_inside(seed):
    point, A, c, _, _ = _problem(seed)
    u = point.copy()
    # There is a point 1e-3 inside every half-space of these problems.
    assert polyhedron.relax(u, A, c + 1e-3, 1e-3, 5000)
    assert (A @ u <= c + 1e-3).all()


def _rows(seed, n=60, d=5, m=4):
    """Rows with some cells hidden, inequalities that other values of these keep, and bounds."""
    rng = np.random.default_rng(seed)
    inside = rng.normal(size=(n, d))
    V = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.8)
    b = rng.normal(size=m)
    sign = np.where(b >= inside @ V.T, 1, -1).astype(np.int8)
    sign[rng.random((n, m)) < 0.2] = 0
    hidden = rng.random((n, d)) < 0.6
    hidden[:, 0] |= ~hidden.any(axis=1)
    lower = np.where(rng.random((n, d)) < 0.3, inside - 0.4, -np.inf)
    upper = np.where(rng.random((n, d)) < 0.3, inside + 0.4, np.inf)
    Y = np.where(hidden, rng.normal(size=(n, d)) * 3, inside)
    # Room of 0.1 on the inner side of each inequality, in the hidden cells' own units.
    lengths = np.sqrt((V**2 * hidden[:, None, :]).sum(axis=2))
    slack = sign * (b - inside @ V.T)
    roomy = ((slack >= 0.1 * lengths) | (sign == 0)).all(axis=1)
    return Y, hidden, V, b, sign, lower, upper, lengths, roomy


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_relaxed_into_their_regions(seed):
    Y, hidden, V, b, sign, lower, upper, lengths, roomy = _rows(seed)
    before, failed = Y.copy(), np.zeros(len(Y), dtype=bool)
    polyhedron.relax_rows(Y, hidden, V, b, sign, lower, upper, 0.05, 2000, failed)
    # A point with twice the margin exists, so that the projections come to an end.
    assert roomy.any()
    assert not failed[roomy].any()
    np.testing.assert_array_equal(Y[~hidden], before[~hidden])
    slack = sign * (b - Y @ V.T)
    binding = (sign != 0) & (lengths > 0) & ~failed[:, None]
    # It stops within a thousandth of the margin.
    assert (slack[binding] >= 0.0499 * lengths[binding]).all()
    kept = hidden & ~failed[:, None]
    assert (Y[kept] >= lower[kept]).all()
    assert (Y[kept] <= upper[kept]).all()


def test_rows_without_bounds_are_relaxed_like_one_region():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(3, 4))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    inside = rng.normal(size=4)
    c = A @ inside + 0.3
    start = inside + 4.0 * rng.normal(size=4)
    Y, failed = start[None].copy(), np.ones(1, dtype=bool)
    free = np.full((1, 4), np.inf)
    everything = np.ones((1, 4), dtype=bool)
    polyhedron.relax_rows(
        Y, everything, A, c, np.ones((1, 3), dtype=np.int8), -free, free, 0.05, 5000, failed
    )
    u = start.copy()
    assert polyhedron.relax(u, A, c, 0.05, 5000)
    assert not failed[0]
    for point in (Y[0], u):
        assert (A @ point <= c - 0.0499).all()
    # The same rows with every inequality turned round, twice.
    again, failed = start[None].copy(), np.ones(1, dtype=bool)
    polyhedron.relax_rows(
        again, everything, -A, -c, -np.ones((1, 3), dtype=np.int8), -free, free, 0.05, 5000, failed
    )
    np.testing.assert_array_equal(again, Y)


def test_rows_inside_by_the_margin_do_not_move():
    Y = np.array([[0.0, 0.0], [-1.0, 2.0]])
    before, failed = Y.copy(), np.ones(2, dtype=bool)
    V, b = np.array([[1.0, 1.0]]), np.array([1.5])
    free = np.full((2, 2), np.inf)
    sign = np.array([[1], [1]], dtype=np.int8)
    polyhedron.relax_rows(Y, np.ones((2, 2), dtype=bool), V, b, sign, -free, free, 0.05, 10, failed)
    np.testing.assert_array_equal(Y, before)
    assert not failed.any()


def test_rows_without_room_are_marked():
    # y₀ + y₁ <= 0 with both at least 1; the same without the inequality; two that contradict.
    V, b = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([0.0, 1.0])
    sign = np.array([[1, 0], [0, 0], [1, -1], [0, 1]], dtype=np.int8)
    lower = np.array([[1.0, 1.0], [1.0, 1.0], [-np.inf, -np.inf], [-np.inf, -np.inf]])
    Y, failed = np.zeros((4, 2)), np.zeros(4, dtype=bool)
    hidden = np.ones((4, 2), dtype=bool)
    polyhedron.relax_rows(Y, hidden, V, b, sign, lower, np.full((4, 2), np.inf), 0.05, 500, failed)
    assert failed.tolist() == [True, False, True, False]
    np.testing.assert_array_equal(Y[1], 1.0)


def test_the_shortest_way_is_gone():
    # Alone, an inequality is met by the orthogonal projection of the hidden cells, a margin inside.
    Y, failed = np.array([[3.0, 1.0, 2.0]]), np.zeros(1, dtype=bool)
    V, b = np.array([[2.0, 5.0, -1.0]]), np.array([1.0])
    hidden = np.array([[True, False, True]])
    free = np.full((1, 3), np.inf)
    polyhedron.relax_rows(
        Y, hidden, V, b, np.array([[1]], dtype=np.int8), -free, free, 0.05, 10, failed
    )
    # Of 2·y₀ − y₂ <= 1 − 5 in the plane.
    ref = naive.project_polyhedron(
        np.array([3.0, 2.0]), np.array([[2.0, -1.0]]), np.array([-4.0 - 0.05 * np.sqrt(5.0)])
    )
    np.testing.assert_allclose(Y[0], [ref[0], 1.0, ref[1]], atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_swept_like_chains(seed):
    rng = np.random.default_rng(seed)
    rows, sweeps, k, m, d = 5, 3, 1 + seed, 4, 6
    A = rng.normal(size=(m, k))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    U, X, mean = rng.normal(size=(rows, k)), rng.normal(size=(rows, d - k)), rng.normal(size=d)
    hidden, seen = np.split(rng.permutation(d), [k])
    W, gain = np.tril(rng.normal(size=(k, k))) + 2.0 * np.eye(k), rng.normal(size=(k, d - k))
    levels = U @ A.T + rng.exponential(size=(rows, m))
    D = np.linalg.svd(A)[2]
    uniforms = rng.random((rows, sweeps, 2 * k))
    Y = np.empty((rows, sweeps, d))
    last = np.empty_like(U)
    for r in range(rows):
        u = U[r].copy()
        centre = np.linalg.solve(W, mean[hidden] + gain @ (X[r] - mean[seen]))
        for t in range(sweeps):
            polyhedron.gibbs_chain(u, centre, A, levels[r], D, uniforms[r, t : t + 1])
            Y[r, t, hidden], Y[r, t, seen] = W @ u, X[r]
        last[r] = u
    gap, within = np.ones(d), np.ones((d, d))
    directions = np.vstack([np.eye(k), D])
    polyhedron.gibbs_rows(
        U, X, mean, hidden, seen, gain, W, A, levels, directions, uniforms, gap, within
    )
    np.testing.assert_allclose(U, last, atol=1e-12)
    np.testing.assert_allclose(gap, 1.0 + (Y.mean(axis=1) - mean).sum(axis=0), atol=1e-10)
    inside = sum(np.cov(row.T) for row in Y)
    np.testing.assert_allclose(within, 1.0 + inside, atol=1e-10)
