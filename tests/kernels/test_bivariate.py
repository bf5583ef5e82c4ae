import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.kernels import bivariate, univariate
from tests import naive
from tests.kernels.calling import called


@pytest.mark.parametrize(
    "rho", [-0.9999, -0.95, -0.5, 0.0, 0.2, 0.69, 0.71, 0.93, 0.999, 0.9999983]
)
@pytest.mark.parametrize(("h", "k"), [(0.3, -0.2), (1.0, 1.0), (1.0, 1.1), (-2.0, 3.0), (4.0, 4.0)])
def test_excess_matches_plackett_in_mpmath(h, k, rho):
    with mp.workdps(30):
        stop = mp.asin(mp.mpf(rho))

        def integrand(theta):
            s, c = mp.sin(theta), mp.cos(theta)
            return mp.exp(-(h * h - 2 * h * k * s + k * k) / (2 * c * c))

        # The integrand changes on the scale of cos θ: cut towards the far end.
        cuts = [stop * (1 - mp.mpf(2) ** -m) for m in range(12)] + [stop]
        ref = mp.quad(integrand, cuts) / (2 * mp.pi)
    comp = called(bivariate.excess)(h, k, rho)
    assert comp == pytest.approx(float(ref), rel=1e-11, abs=1e-17)


def test_excess_gives_the_bivariate_distribution_function_of_scipy():
    for h, k, rho in itertools.product((-1.0, 0.5), (0.0, 2.0), (-0.6, 0.3, 0.8)):
        ref = stats.multivariate_normal.cdf([h, k], cov=[[1, rho], [rho, 1]])
        comp = stats.norm.cdf(h) * stats.norm.cdf(k) + called(bivariate.excess)(h, k, rho)
        assert comp == pytest.approx(ref, abs=1e-9)


def test_density_is_the_slope_of_excess():
    for h, k, rho in [(0.3, -0.7, 0.4), (1.0, 2.0, -0.8)]:
        step = 1e-5
        density, slope = called(bivariate.density_and_slope)(h, k, rho)
        up, down = (
            called(bivariate.excess)(h, k, rho + step),
            called(bivariate.excess)(h, k, rho - step),
        )
        assert density == pytest.approx((up - down) / (2 * step), rel=1e-7)
        ahead, _ = called(bivariate.density_and_slope)(h, k, rho + step)
        behind, _ = called(bivariate.density_and_slope)(h, k, rho - step)
        assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-7)


RECTANGLES = [
    ((-0.5, 1.0), (0.0, math.inf)),
    ((0.2, math.inf), (-math.inf, 0.4)),
    ((-math.inf, math.inf), (-1.0, 2.0)),
]


@pytest.mark.parametrize("rho", [-0.7, 0.0, 0.3, 0.95])
@pytest.mark.parametrize(("left", "right"), RECTANGLES)
def test_rectangle_moments_match_nested_quadrature(left, right, rho):
    mu, sigma = np.array([0.3, -0.2]), np.array([1.2, 0.7])
    cov = np.array([[sigma[0] ** 2, rho * sigma.prod()], [rho * sigma.prod(), sigma[1] ** 2]])
    g = hs.Gaussian(mu, cov)
    comp = np.empty((5, 5))
    lower, upper = np.array([left[0], right[0]]), np.array([left[1], right[1]])
    log_mass = called(bivariate.rectangle_moments)(mu, sigma, rho, lower, upper, comp)
    far = [(max(p[0], -60), min(p[1], 60)) for p in (left, right)]
    mass = naive.product_moment(g, [far[0]], [far[1]], 0, 0)
    assert math.exp(log_mass) == pytest.approx(mass, rel=1e-9)
    for a, b in [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 2), (3, 1), (0, 4)]:
        ref = naive.product_moment(g, [far[0]], [far[1]], a, b) / mass
        assert comp[a, b] == pytest.approx(ref, rel=1e-8, abs=1e-11), (a, b)
    assert comp[3, 2] == 0.0


def test_rectangle_factorises_far_in_the_tail_without_correlation():
    out = np.empty((5, 5))
    one, two = np.zeros(2), np.ones(2)
    log_mass = called(bivariate.rectangle_moments)(
        one, two, 0.0, np.array([40.0, -math.inf]), np.array([math.inf, -30.0]), out
    )
    left, m = naive.mp_truncated_moments(40.0, math.inf)
    right, k = naive.mp_truncated_moments(-math.inf, -30.0)
    assert log_mass == pytest.approx(float(left + right), rel=1e-12)
    assert out[2, 1] == pytest.approx(float(m[2] * k[1]), rel=1e-10)


def test_rectangle_follows_a_strong_correlation_into_the_tail():
    # Given y > 30 and ρ = 0.9, x lies near 27: far outside what its own marginal would allow.
    out = np.empty((5, 5))
    log_mass = called(bivariate.rectangle_moments)(
        np.zeros(2), np.ones(2), 0.9, np.array([-math.inf, 30.0]), np.full(2, math.inf), out
    )
    ref_log, ref = naive.mp_truncated_moments(30.0, math.inf)
    assert log_mass == pytest.approx(float(ref_log), rel=1e-11)
    assert out[1, 0] == pytest.approx(0.9 * float(ref[1]), rel=1e-10)
    assert out[2, 0] == pytest.approx(0.81 * float(ref[2]) + 0.19, rel=1e-10)


@pytest.mark.parametrize("rho", [-0.99, -0.5, 0.0, 0.05, 0.8, 0.999])
@pytest.mark.parametrize(
    "rectangle",
    [(-0.5, 1.0, 0.0, math.inf), (-math.inf, 0.4, -math.inf, -0.2), (2.0, 5.0, -1.0, 6.0),
     (30.0, math.inf, 25.0, 31.0), (-math.inf, math.inf, -math.inf, math.inf)],
)  # fmt: skip
def test_outer_nodes_integrate_the_rectangle(rectangle, rho):
    a1, b1, a2, b2 = rectangle
    node, weight, peak = called(bivariate.outer_nodes)(*rectangle, rho)
    assert (np.diff(node) > 0.0).all()
    assert (weight > 0.0).all()
    assert node[0] > a1
    assert node[-1] < b1
    root = math.sqrt(1.0 - rho * rho)
    inner = univariate.log_masses((a2 - rho * node) / root, (b2 - rho * node) / root)
    heights = np.exp(-0.5 * node**2 + inner - peak)
    # The peak anchors the scale: it is within a unit of the highest value.
    assert 0.3 < heights.max() < 3.0
    comp = math.log(weight @ heights) + peak - 0.5 * math.log(2.0 * math.pi)
    assert comp == pytest.approx(
        called(bivariate.rectangle_log_mass)(*rectangle, rho), rel=1e-12, abs=1e-13
    )


def test_rectangle_masses_are_those_of_scipy():
    for rho, (a1, b1, a2, b2) in itertools.product(
        (-0.6, 0.3, 0.9), [(-0.5, 1.0, 0.0, 1.7), (-1.0, 0.3, -2.0, -0.4)]
    ):
        law = stats.multivariate_normal(cov=[[1, rho], [rho, 1]])
        ref = law.cdf([b1, b2], lower_limit=[a1, a2])
        # SciPy's cubature has some eight digits here.
        comp = called(bivariate.rectangle_log_mass)(a1, b1, a2, b2, rho)
        assert comp == pytest.approx(math.log(ref), abs=1e-6)
