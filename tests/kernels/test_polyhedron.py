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
