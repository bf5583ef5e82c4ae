"""The law of confined cells: quadrature, closed forms and order against slow oracles."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

import halfseen as hs
from halfseen.kernels import confined, paths
from halfseen.solvers.full_information.expectation import lattice
from tests import naive
from tests.kernels.calling import called
from tests.kernels.holed import INF, LINE, confines, fill_of, hidden_with

# One cell -------------------------------------------------------------------------------------------

UNIONS = {
    "interval": [(-0.7, 0.4)],
    "above": [(0.9, INF)],
    "below": [(-INF, -0.2)],
    "line": LINE,
    "narrow": [(0.2, 0.2 + 1e-6)],
    "two sides": [(-INF, -1.0), (0.5, INF)],
    "three pieces": [(-2.0, -1.0), (0.5, 0.6), (1.5, 4.0)],
    "far above": [(31.0, INF)],
    "far below": [(-INF, -29.0)],
    "far interval": [(30.0, 30.2)],
    "far on both sides": [(-INF, -30.0), (30.5, INF)],
}


def _mp_moments(m, s, pieces):
    """Log-mass and E[(x − m)^r], r = 0 … 4, of N(m, s²) on a union, in mpmath."""
    found = [
        naive.mp_truncated_moments((a - m) / s, (b - m) / s, digits=50) for a, b in pieces if a < b
    ]
    with naive.mp.workdps(50):
        masses = [naive.mp.exp(log_mass) for log_mass, _ in found]
        total = sum(masses)
        moments = [
            sum(mass * e[r] for mass, (_, e) in zip(masses, found, strict=True)) / total * s**r
            for r in range(5)
        ]
        return float(naive.mp.log(total)), [float(e) for e in moments]


@pytest.mark.parametrize("name", UNIONS)
@pytest.mark.parametrize(("low", "high"), [(-INF, INF), (-40.0, 35.0)])
def test_one_cell_in_intervals_matches_mpmath(name, low, high):
    m, s, pieces = 0.3, 1.2, UNIONS[name]
    sets = confines(pieces)
    ref_log, ref = _mp_moments(m, s, [(max(a, low), min(b, high)) for a, b in pieces])
    out = np.empty(5)
    comp_log = called(confined.set_moments)(m, s, low, high, 0, sets, out)
    assert comp_log == pytest.approx(ref_log, rel=1e-11, abs=1e-13)
    assert called(confined.set_log_mass)(m, s, low, high, 0, sets) == comp_log
    # Odd moments of the whole line are 0: rounding of terms of order s^r.
    np.testing.assert_allclose(out, ref, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("slope", [2.0, -0.7])
@pytest.mark.parametrize(("m", "s"), [(0.2, 0.9), (-2.5, 0.5), (3.0, 2.0)])
def test_one_cell_with_a_probability_matches_quadrature(slope, m, s):
    def integral(r):
        return integrate.quad(
            lambda x: (x - m) ** r * expit(-slope * x) * naive.pdf(x, m, s),
            m - 12 * s, m + 12 * s, epsabs=1e-15, epsrel=1e-13, limit=400,
        )[0]  # fmt: skip

    sets, out = confines(hidden_with(slope)), np.empty(5)
    log_mass = called(confined.set_moments)(m, s, -INF, INF, 0, sets, out)
    mass = integral(0)
    # The rule has nodes every so often: nine digits for spreads like these.
    assert log_mass == pytest.approx(math.log(mass), abs=1e-8)
    for r in range(5):
        assert out[r] == pytest.approx(integral(r) / mass, rel=1e-7, abs=1e-8), r


def test_a_probability_is_cut_by_a_chord():
    m, s, low, high = 0.3, 1.0, -0.4, 1.1
    sets, out = confines(hidden_with(1.5)), np.empty(5)
    log_mass = called(confined.set_moments)(m, s, low, high, 0, sets, out)
    mass, mean, _ = naive.line_moments(m, s, [(low, high)], lambda x: expit(-1.5 * x))
    # The ends fall between nodes: what is cut is right to half of the mass between two, at either end.
    gap = np.diff(sets.node[np.abs(sets.node) < 2.0]).max()
    ends = gap * 0.5 * sum(expit(-1.5 * x) * naive.pdf(x, m, s) for x in (low, high))
    assert ends < 0.05
    assert abs(math.exp(log_mass) - mass) < ends
    assert abs(m + out[1] - mean) < ends * (high - low) / mass


def test_a_set_that_is_cut_to_nothing_has_no_mass():
    out = np.full(5, 7.0)
    assert called(confined.set_moments)(0.0, 1.0, 2.0, 3.0, 0, confines([(-1.0, 1.0)]), out) == -INF
    assert not out.any()
    assert called(confined.set_log_mass)(0.0, 1.0, 3.0, 2.0, 0, confines(LINE)) == -INF


@pytest.mark.parametrize("name", UNIONS)
def test_draws_are_those_of_the_inverse_distribution_function(name):
    m, s, pieces = 0.3, 1.2, UNIONS[name]
    sets = confines(pieces)
    total = called(confined.set_log_mass)(m, s, -INF, INF, 0, sets)
    for u in (1e-9, 0.1, 0.45, 0.8, 1.0 - 1e-9):
        comp = called(confined.set_draw)(m, s, -INF, INF, 0, sets, total, u)
        ref, _, _ = naive.draw_from_pieces(m, s, pieces, u)
        # Shares of pieces are rounded to 1e-15, and a draw by that over the density at the end of one.
        assert comp == pytest.approx(ref, rel=1e-7, abs=1e-7), u
        assert any(a <= comp <= b for a, b in pieces)


def test_draws_grow_with_their_uniform_across_pieces():
    sets = confines(UNIONS["three pieces"])
    total = called(confined.set_log_mass)(0.3, 1.2, -1.7, 3.0, 0, sets)
    u = np.linspace(0.0, 1.0, 2001)[1:-1]
    x = np.array([called(confined.set_draw)(0.3, 1.2, -1.7, 3.0, 0, sets, total, p) for p in u])
    assert (np.diff(x) >= 0.0).all()
    assert x.min() > -1.7
    assert x.max() < 3.0
    # Evenly spaced uniforms: their average is the mean to one part in the number of them.
    _, mean, _ = naive.line_moments(0.3, 1.2, [(-1.7, -1.0), (0.5, 0.6), (1.5, 3.0)])
    assert x.mean() == pytest.approx(mean, abs=5.0 / u.size)


def test_draws_of_a_probability_have_its_shares():
    sets = confines(hidden_with(2.0))
    nodes, weights = sets.node, sets.weight
    total = called(confined.set_log_mass)(0.2, 0.9, -INF, INF, 0, sets)
    for u in (0.001, 0.2, 0.5, 0.77, 0.999):
        ref, _, _ = naive.draw_from_nodes(0.2, 0.9, nodes[weights > 0], weights[weights > 0], u)
        assert called(confined.set_draw)(0.2, 0.9, -INF, INF, 0, sets, total, u) == ref


# Two cells in intervals -----------------------------------------------------------------------------

POWERS = [(a, b) for a, b in itertools.product(range(5), repeat=2) if a + b <= 4]
MEAN2 = np.array([0.3, -0.2])
BOXES = {
    "rectangle": ([(-0.5, 1.0)], [(0.0, 1.4)]),
    "quadrant": ([(-INF, 0.2)], [(-INF, -0.5)]),
    "other quadrant": ([(0.4, INF)], [(-INF, 0.1)]),
    "unions": ([(-INF, -0.4), (0.6, 1.5)], [(-1.0, 0.2), (1.0, INF)]),
    "a line and an interval": (LINE, [(-0.3, 0.5)]),
}


def _covariance(rho, sigma=(1.2, 0.7)):
    return np.array([[1.0, rho], [rho, 1.0]]) * np.outer(sigma, sigma)


def _box(m, S, left, right):
    out = np.empty((5, 5))
    return called(confined.box_moments)(
        m, np.linalg.cholesky(S), np.arange(2), confines(left, right), out
    ), out


def _plane_moments(m, S, left, right):
    """Mass and central moments on a product of unions, by nested quadrature of scipy."""
    g = hs.Gaussian(np.zeros(2), S)
    moved = [
        [(max(a - c, -60.0), min(b - c, 60.0)) for a, b in pieces]
        for pieces, c in zip((left, right), m, strict=True)
    ]
    mass = naive.product_moment(g, *moved, 0, 0)
    return mass, {p: naive.product_moment(g, *moved, *p) / mass for p in POWERS}


@pytest.mark.parametrize("rho", [-0.7, 0.0, 0.3, 0.95])
@pytest.mark.parametrize("name", BOXES)
def test_two_cells_match_nested_quadrature(name, rho):
    S = _covariance(rho)
    log_mass, comp = _box(MEAN2, S, *BOXES[name])
    mass, ref = _plane_moments(MEAN2, S, *BOXES[name])
    assert log_mass == pytest.approx(math.log(mass), abs=1e-8)
    for a, b in POWERS:
        assert comp[a, b] == pytest.approx(ref[a, b], rel=1e-7, abs=1e-9), (a, b)
    assert comp[3, 2] == comp[4, 4] == 0.0


@pytest.mark.parametrize("rho", [0.999, -0.9999, 0.999999])
def test_two_cells_that_are_nearly_one(rho):
    # With y = ρ x + √(1 − ρ²) e for standard normal x, y: given both limits the pair follows from x and
    # e apart. Of x > 0.2, y in (−0.5, 0.9), in mpmath over x with closed forms over e.
    root = math.sqrt(1.0 - rho * rho)
    left, right = (0.2, INF), (-0.5, 0.9)

    def inner(x, b):
        low, high = ((end - rho * x) / root for end in right)
        if high < -12.0 or low > 12.0:
            return 0.0
        mass = naive.cdf(high, 0, 1) - naive.cdf(low, 0, 1)
        e1 = naive.pdf(low, 0, 1) - naive.pdf(high, 0, 1)
        if b == 0:
            return mass
        if b == 1:
            return rho * x * mass + root * e1
        e2 = mass + low * naive.pdf(low, 0, 1) - high * naive.pdf(high, 0, 1)
        return (rho * x) ** 2 * mass + 2 * rho * x * root * e1 + root**2 * e2

    # The inner mass falls from 1 to 0 within some roots of where ρ x is at a limit.
    ends = sorted(end / rho for end in right)
    cuts = [end + k * root for end in ends for k in (-8, -3, 0, 3, 8)]
    cuts = sorted({left[0], 9.0, *(c for c in cuts if left[0] < c < 9.0)})

    def integral(a, b):
        return sum(
            integrate.quad(lambda x: x**a * naive.pdf(x, 0, 1) * inner(x, b), p, q, epsabs=1e-16)[0]
            for p, q in itertools.pairwise(cuts)
        )

    log_mass, comp = _box(np.zeros(2), _covariance(rho, (1.0, 1.0)), [left], [right])
    mass = integral(0, 0)
    # 64 panels at most: at ρ = 0.999999 the edge is 1/700 wide, and a few nodes see it.
    tolerance = 1e-8 if abs(rho) < 0.9999 else 1e-5
    assert log_mass == pytest.approx(math.log(mass), abs=tolerance)
    for a, b in [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (2, 2)]:
        assert comp[a, b] == pytest.approx(integral(a, b) / mass, rel=10 * tolerance), (a, b)


def test_two_cells_far_in_the_tails():
    # Without correlation everything factorises.
    log_mass, comp = _box(np.zeros(2), np.eye(2), [(40.0, INF)], [(-INF, -30.0)])
    left, m = naive.mp_truncated_moments(40.0, INF)
    right, k = naive.mp_truncated_moments(-INF, -30.0)
    assert log_mass == pytest.approx(float(left + right), rel=1e-11)
    for a, b in POWERS:
        assert comp[a, b] == pytest.approx(float(m[a] * k[b]), rel=1e-9), (a, b)


def test_a_strong_correlation_is_followed_into_the_tail():
    # Given y > 30 and ρ = 0.9, x = 0.9 y + √0.19 e lies near 27.
    log_mass, comp = _box(np.zeros(2), _covariance(0.9, (1.0, 1.0)), LINE, [(30.0, INF)])
    ref_log, e = naive.mp_truncated_moments(30.0, INF)
    assert log_mass == pytest.approx(float(ref_log), rel=1e-11)
    ref = {
        (1, 0): 0.9 * e[1],
        (2, 0): 0.81 * e[2] + 0.19,
        (3, 1): 0.9**3 * e[4] + 3 * 0.9 * 0.19 * e[2],
        (4, 0): 0.9**4 * e[4] + 6 * 0.81 * 0.19 * e[2] + 3 * 0.19**2,
    }
    for p, value in ref.items():
        assert comp[p] == pytest.approx(float(value), rel=1e-9), p


def test_two_cells_exchanged_have_their_moments_exchanged():
    # Quadrature over one cell or over the other.
    S, (left, right) = _covariance(0.8), BOXES["unions"]
    one_log, one = _box(MEAN2, S, left, right)
    two_log, two = _box(MEAN2[::-1].copy(), S[::-1, ::-1].copy(), right, left)
    assert one_log == pytest.approx(two_log, abs=1e-11)
    np.testing.assert_allclose(one, two.T, rtol=1e-9, atol=1e-11)


def test_a_piece_without_mass_changes_nothing():
    S = _covariance(0.5)
    one = _box(MEAN2, S, [(-0.5, 1.0)], [(0.0, 1.4)])
    two = _box(MEAN2, S, [(-0.5, 1.0), (90.0, 95.0)], [(-99.0, -90.0), (0.0, 1.4)])
    assert two[0] == pytest.approx(one[0], rel=1e-12)
    np.testing.assert_allclose(two[1], one[1], rtol=1e-10, atol=1e-13)


# Order ----------------------------------------------------------------------------------------------

# Two cells that must be low, one that must be high though it goes with them, and one in the middle.
AGAINST = [[(-INF, -0.5)], [(-INF, -0.2)], [(0.9, INF)], [(-1.0, 1.0)]]


def _slow_order(m, S, pieces):
    """The least likely cell first, given the means of those before it: plain conditional Gaussians."""
    order, values = [], []
    while len(order) < m.size:
        found = []
        for j in set(range(m.size)) - set(order):
            slopes = np.linalg.solve(S[np.ix_(order, order)], S[order, j]) if order else np.empty(0)
            centre = m[j] + slopes @ (np.array(values) - m[order])
            s = math.sqrt(S[j, j] - slopes @ S[order, j])
            masses = [
                stats.norm.cdf(b, centre, s) - stats.norm.cdf(a, centre, s) for a, b in pieces[j]
            ]
            means = [
                stats.truncnorm.mean((a - centre) / s, (b - centre) / s, centre, s)
                for a, b in pieces[j]
            ]
            found.append((sum(masses), j, np.average(means, weights=masses)))
        _, chosen, value = min(found)
        order.append(chosen)
        values.append(value)
    return order


@pytest.mark.parametrize("sets", [AGAINST, [[(-INF, -1.0), (1.5, INF)], *AGAINST[1:]]])
@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_the_least_likely_cell_comes_first(sets, rho):
    S = (np.full((4, 4), rho) + (1.0 - rho) * np.eye(4)) * np.outer([1, 2, 1, 0.5], [1, 2, 1, 0.5])
    m, order = np.array([0.1, -0.3, 0.2, 0.4]), np.empty(4, dtype=np.int64)
    called(confined.order_cells)(m, np.linalg.cholesky(S), np.arange(4), confines(*sets), order)
    assert order.tolist() == _slow_order(m, S, sets)


def test_an_order_is_one_where_the_covariance_is_all_but_singular():
    L, order = np.outer(np.ones(4), [1.0, 0.0, 0.0, 0.0]), np.empty(4, dtype=np.int64)
    called(confined.order_cells)(np.zeros(4), L, np.arange(4), confines(*AGAINST), order)
    assert sorted(order) == [0, 1, 2, 3]


# Expectations ---------------------------------------------------------------------------------------


def expected(sets, S, m, A=None, c=None, count=4096):
    """Log-mass, mean less m and covariance of cells, from a lattice with shifts of 0.37."""
    h = len(sets)
    A = np.empty((0, h)) if A is None else A
    c = np.empty(0) if c is None else c
    first, second = np.empty(h), np.empty((h, h))
    points, shift = lattice(count, h), np.full(h, 0.37)
    own = confines(*sets)
    mass = paths.expectation(
        m,
        np.linalg.cholesky(S),
        np.arange(h),
        A,
        c,
        own,
        points,
        shift,
        fill_of(own, A, c),
        first,
        second,
    )
    return mass, first, second


def test_the_expectation_of_one_cell_between_inequalities():
    m, S = np.array([0.4]), np.array([[1.3]])
    # x >= −0.6 and x <= 1.1, in a set that ends at 0.9.
    mass, first, second = expected(
        [[(-INF, 0.9)]], S, m, np.array([[-2.0], [1.0]]), np.array([1.2, 1.1])
    )
    ref = stats.truncnorm((-0.6 - 0.4) / math.sqrt(1.3), 0.5 / math.sqrt(1.3), 0.4, math.sqrt(1.3))
    assert mass == pytest.approx(math.log(np.diff(stats.norm.cdf([-0.6, 0.9], 0.4, 1.3**0.5))[0]))
    assert first[0] == pytest.approx(ref.mean() - 0.4, abs=1e-12)
    assert second[0, 0] == pytest.approx(ref.var(), rel=1e-9)


def test_the_expectation_of_two_cells_in_intervals_takes_no_points():
    S = _covariance(0.6)
    mass, first, second = expected(BOXES["unions"], S, MEAN2)
    other = expected(BOXES["unions"], S, MEAN2, count=1)
    ref_mass, ref = _plane_moments(MEAN2, S, *BOXES["unions"])
    assert mass == other[0] == pytest.approx(math.log(ref_mass), abs=1e-9)
    np.testing.assert_array_equal(first, other[1])
    np.testing.assert_allclose(first, [ref[1, 0], ref[0, 1]], atol=1e-9)
    cross = ref[1, 1] - ref[1, 0] * ref[0, 1]
    spread = [[ref[2, 0] - ref[1, 0] ** 2, cross], [cross, ref[0, 2] - ref[0, 1] ** 2]]
    np.testing.assert_allclose(second, spread, atol=1e-9)


def test_two_bound_cells_match_quadrature():
    # x + y <= 0.4: in coordinates along and across, a half-line and a line.
    S = _covariance(0.3)
    mass, first, _ = expected([LINE, LINE], S, MEAN2, np.array([[1.0, 1.0]]), np.array([0.4]))
    s = math.sqrt(S.sum())
    z = (0.4 - MEAN2.sum()) / s
    assert mass == pytest.approx(stats.norm.logcdf(z), rel=1e-12)
    # E (y − m) = −S 1 φ(z) / (s Φ(z)); the second coordinate is driven by 4096 even points.
    ref = -S.sum(axis=1) / s * stats.norm.pdf(z) / stats.norm.cdf(z)
    np.testing.assert_allclose(first, ref, atol=1e-3)


@pytest.mark.parametrize("h", [1, 2, 6, 21])
def test_the_factor_of_an_inverse_is_that_of_numpy(h):
    A = np.random.default_rng(h).normal(size=(h, h))
    K, L = A @ A.T + 0.1 * np.eye(h), np.empty((h, h))
    log_det = called(confined.inverse_root)(K, L)
    assert log_det == pytest.approx(np.linalg.slogdet(K)[1], rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(L, np.linalg.cholesky(np.linalg.inv(K)), rtol=1e-9, atol=1e-10)
    K[-1, -1] = -1.0
    assert math.isnan(called(confined.inverse_root)(K, L))
    assert np.isnan(L).all()


def test_cells_that_are_independent_take_no_points():
    sets, S, m = (
        [[(-INF, 0.4)], [(-0.3, 0.9)], BOXES["unions"][0]],
        np.diag([1.0, 0.5, 2.0]),
        np.ones(3),
    )
    mass, first, second = expected(sets, S, m, count=1)
    for j in range(3):
        one = expected([sets[j]], S[j : j + 1, j : j + 1], m[j : j + 1])
        mass -= one[0]
        assert first[j] == one[1][0]
        assert second[j, j] == one[2][0, 0]
    assert mass == pytest.approx(0.0, abs=1e-12)
    assert not (second - np.diag(np.diag(second))).any()
