import itertools

import numpy as np
import pytest
from scipy import optimize, stats

from halfseen.solvers.domain import (
    Domain,
    from_upper,
    greatest_variance,
    least_variance,
    mean_reach,
    upper_entries,
)
from tests import naive


@pytest.mark.parametrize("alpha", [1e-4, 0.01, 0.2, 0.5, 0.9, 0.999])
def test_bounds_hold_for_intervals_and_tails_and_are_reached(alpha):
    # Intervals of mass alpha, from the far left to the centre to the far right.
    for start in np.linspace(1e-9, 1 - alpha - 1e-9, 41):
        a, b = stats.norm.ppf([start, start + alpha])
        mean, var = stats.truncnorm.stats(a, b)
        assert abs(mean) <= mean_reach(alpha) * (1 + 1e-6)
        # SciPy's variance of a tiny interval has three digits.
        assert var >= least_variance(alpha) * (1 - 1e-3)
    t = stats.norm.ppf(0.5 + alpha / 2)
    _, moments = naive.mp_truncated_moments(-t, t)
    assert least_variance(alpha) == pytest.approx(float(moments[2]), rel=1e-6)
    tail = stats.norm.isf(alpha)
    assert mean_reach(alpha) == pytest.approx(stats.truncnorm.mean(tail, np.inf), rel=1e-6)
    u = stats.norm.isf(alpha / 2)
    second = stats.truncnorm.moment(2, u, np.inf)
    assert greatest_variance(alpha) == pytest.approx(second, rel=1e-6)


def test_bounds_hold_for_arbitrary_sets_in_the_plane(rng):
    Z = rng.normal(size=(200_000, 2))
    for _ in range(20):
        # A half-plane, a wedge and stripes, at random.
        w = rng.normal(size=2)
        inside = (Z @ w > rng.normal()) ^ (np.sin(Z @ rng.normal(size=2) * 3) > rng.normal())
        alpha = inside.mean()
        if alpha < 0.02:
            continue
        seen = Z[inside]
        mean, cov = seen.mean(axis=0), np.cov(seen.T)
        # Five standard errors of a mean, and of a variance, over the rows that are seen.
        noise = 5 / np.sqrt(len(seen))
        assert np.linalg.norm(mean) <= mean_reach(alpha) + noise
        low, high = np.linalg.eigvalsh(cov)
        assert low >= least_variance(alpha) * (1 - 2 * noise)
        assert high <= greatest_variance(alpha) * (1 + 2 * noise)


def _random_domain(rng, k):
    A = rng.normal(size=(k, k))
    return Domain.around(np.linalg.inv(A @ A.T + np.eye(k))[None], 0.6)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_barrier_derivatives(rng, k):
    domain = _random_domain(rng, k)
    theta = domain.start() + 0.02 * rng.normal(size=(1, k + k * (k + 1) // 2))
    f, g, H = domain.barrier(theta)
    assert np.isfinite(f).all()
    for m in range(theta.shape[1]):
        step = np.zeros_like(theta)
        step[0, m] = 1e-6
        up, down = domain.barrier(theta + step), domain.barrier(theta - step)
        assert g[0, m] == pytest.approx((up[0] - down[0])[0] / 2e-6, rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(H[0, m], (up[1] - down[1])[0] / 2e-6, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("k", [1, 2])
def test_barrier_is_the_sum_of_log_determinants_and_infinite_outside(rng, k):
    domain = _random_domain(rng, k)
    kinds = set()
    for _ in range(200):
        theta = domain.start() + rng.normal(size=(1, k + k * (k + 1) // 2))
        matrices = [A[0] for A in domain.matrices(theta)]
        inside = all(np.linalg.eigvalsh(A)[0] > 0.0 for A in matrices)
        ref = -sum(np.linalg.slogdet(A)[1] for A in matrices) if inside else np.inf
        assert domain.barrier(theta)[0][0] == pytest.approx(ref, rel=1e-9)
        kinds.add(inside)
    assert kinds == {True, False}


@pytest.mark.parametrize("k", [1, 2, 3])
def test_projection_lands_inside_and_leaves_the_inside_alone(rng, k):
    domain = _random_domain(rng, k)
    start = domain.start()[0]
    nu, T = domain.project(start[:k], from_upper(start[k:], k))
    np.testing.assert_allclose(np.concatenate([nu, upper_entries(T)]), start, atol=1e-12)
    for _ in range(20):
        A = rng.normal(size=(k, k)) * 30
        nu, T = domain.project(rng.normal(size=k) * 50, A + A.T)
        relative = np.linalg.eigvals(np.linalg.solve(domain.precision[0], T)).real
        assert relative.min() >= domain.least[0] * (1 - 1e-9)
        assert relative.max() <= domain.greatest[0] * (1 + 1e-9)
        assert nu @ np.linalg.solve(T, nu) <= domain.reach[0] ** 2 * (1 + 1e-9)
        assert domain.on_edge(np.concatenate([nu, upper_entries(T)])[None])[0]


def test_points_on_the_edge_are_outside_of_the_barrier():
    domain = Domain.around(np.eye(2)[None], 0.5)
    theta = domain.start()
    theta[0, 2:] = [domain.least[0], 0.0, domain.least[0]]
    f, g, H = domain.barrier(theta)
    assert f[0] == np.inf
    assert np.isfinite(g).all()
    assert np.isfinite(H).all()


def test_domain_is_convex(rng):
    domain = _random_domain(rng, 2)
    points = []
    while len(points) < 30:
        theta = domain.start() + rng.normal(size=(1, 5)) * 0.5
        if np.isfinite(domain.barrier(theta)[0][0]):
            points.append(theta)
    for a, b in itertools.pairwise(points):
        assert np.isfinite(domain.barrier(0.5 * (a + b))[0][0])


def test_edge_solutions_are_the_constrained_optimum():
    from halfseen.solvers.newton import minimise

    # A linear objective has its optimum on the edge; SLSQP finds the same one.
    domain = Domain.around(np.ones((1, 1, 1)), 0.8)
    direction = np.array([0.3, 1.0])

    def objective(theta, problems):
        n = len(theta)
        return theta @ direction, np.tile(direction, (n, 1)), np.zeros((n, 2, 2))

    comp = minimise(objective, domain, domain.start())
    low, high, reach = domain.least[0], domain.greatest[0], domain.reach[0]
    ref = optimize.minimize(
        lambda t: t @ direction,
        domain.start()[0],
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda t: t[1] - low},
            {"type": "ineq", "fun": lambda t: high - t[1]},
            {"type": "ineq", "fun": lambda t: reach**2 * t[1] - t[0] ** 2},
        ],
        options={"ftol": 1e-12},
    )
    assert comp.on_edge[0]
    assert comp.converged[0]
    assert comp.value[0] == pytest.approx(ref.fun, abs=1e-6)
