import numpy as np
import pytest

from halfseen.kernels.partition import LineTerms, PlaneTerms, line_partition, plane_partition
from tests import naive

ONE = np.array([0], dtype=np.intp)


def _line(pieces=(), nodes=((), ())):
    return LineTerms(
        np.array([0, 1]),
        np.array([2.0]),
        np.array([0, len(pieces)]),
        np.array([p[0] for p in pieces], dtype=float),
        np.array([p[1] for p in pieces], dtype=float),
        np.array([0, len(nodes[0])]),
        np.array(nodes[0], dtype=float),
        np.array(nodes[1], dtype=float),
    )


def _check_derivatives(function, theta, step=1e-5):
    _, g, H = function(theta)
    for k in range(theta.size):
        e = np.zeros_like(theta)
        e[k] = step
        up, g_up, _ = function(theta + e)
        down, g_down, _ = function(theta - e)
        assert g[0, k] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-6, abs=1e-8)
        np.testing.assert_allclose(H[0, k], (g_up[0] - g_down[0]) / (2 * step), 1e-6, 1e-8)


def test_line_partition_of_a_union_matches_quadrature():
    pieces = [(-1.0, 0.2), (0.9, 60.0)]
    mu, sigma = 0.4, 1.3
    theta = np.array([mu / sigma**2, 1 / sigma**2])
    f, g, _ = line_partition(theta[None], _line(pieces), ONE)
    mass, m1, m2 = naive.line_moments(mu, sigma, pieces)
    log_z = 0.5 * mu**2 / sigma**2 + 0.5 * np.log(2 * np.pi * sigma**2) + np.log(mass)
    assert f[0] == pytest.approx(2 * log_z, rel=1e-10)
    np.testing.assert_allclose(g[0], [2 * m1, -m2], rtol=1e-9)


def test_line_partition_derivatives():
    terms = _line([(-1.0, 0.2), (0.9, np.inf)])
    _check_derivatives(lambda t: line_partition(t[None], terms, ONE), np.array([0.3, 0.6]))
    x = np.linspace(-8, 8, 400)
    nodes = _line(nodes=(x, (x[1] - x[0]) / (1 + np.exp(-x))))
    _check_derivatives(lambda t: line_partition(t[None], nodes, ONE), np.array([0.3, 0.6]))


def test_plane_partition_derivatives():
    none = np.empty(0)
    terms = PlaneTerms(
        np.array([0, 1]),
        np.array([1.0]),
        np.array([0, 2]),
        np.array([[-1.0, 0.0], [1.0, 0.0]]),
        np.array([[0.5, np.inf], [2.0, np.inf]]),
        np.array([0, 0]),
        none,
        none,
        np.array([0, 0]),
        none,
        none,
    )
    theta = np.array([0.3, -0.2, 1.2, -0.5, 0.9])
    _check_derivatives(lambda t: plane_partition(t[None], terms, ONE), theta)


def test_plane_partition_of_nodes_agrees_with_rectangles():
    edges = np.linspace(-0.5, 9, 40)
    x, w = np.polynomial.legendre.leggauss(16)
    half = 0.5 * np.diff(edges)[:, None]
    node = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel()
    weight = (half * w).ravel()
    none, zero = np.empty(0), np.array([0, 0])
    common = np.array([0, 1]), np.array([1.0])
    by_nodes = PlaneTerms(
        *common,
        zero,
        np.empty((0, 2)),
        np.empty((0, 2)),
        np.array([0, node.size]),
        node,
        weight,
        np.array([0, node.size]),
        node,
        weight,
    )
    by_rectangle = PlaneTerms(
        *common,
        np.array([0, 1]),
        np.full((1, 2), -0.5),
        np.full((1, 2), np.inf),
        zero,
        none,
        none,
        zero,
        none,
        none,
    )
    theta = np.array([[0.3, -0.2, 1.2, -0.5, 0.9]])
    for ref, comp in zip(
        plane_partition(theta, by_rectangle, ONE),
        plane_partition(theta, by_nodes, ONE),
        strict=True,
    ):
        np.testing.assert_allclose(comp, ref, rtol=1e-9)


def test_outside_the_cone_is_infinite():
    assert line_partition(np.array([[0.0, -1.0]]), _line([(0.0, 1.0)]), ONE)[0][0] == np.inf
