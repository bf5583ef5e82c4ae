"""Paths of confined cells against importance sampling, closed forms and each other."""

import math
import pickle

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from halfseen.kernels import confined, paths
from halfseen.solvers.full_information.expectation import lattice
from tests.kernels.calling import called
from tests.kernels.holed import INF, LINE, confines, fill_of, hidden_with
from tests.kernels.test_confined import AGAINST, expected

MEAN = np.array([0.3, -0.5, 1.0, 0.0])
COVARIANCE = np.array(
    [[1.0, 0.6, -0.3, 0.2], [0.6, 2.0, 0.5, -0.4], [-0.3, 0.5, 1.5, 0.3], [0.2, -0.4, 0.3, 0.8]]
)
ROOT = np.linalg.cholesky(COVARIANCE)
NONE = np.empty((0, 4)), np.empty(0)
V = np.array([[1.0, 0.5, 0.0, -0.6], [0.2, -1.0, 0.7, 0.0], [0.0, 0.3, 1.0, 1.0]])
B = np.array([0.5, 0.9, 1.2])


def _within(Y, pieces):
    return np.any([(a < Y) & (b > Y) for a, b in pieces], axis=0)


# Name: sets, inequalities, and the probability that a row is in the region.
REGIONS = {
    "intervals": ([[(-INF, 0.4)], [(-1.0, 0.5)], [(0.2, INF)], [(-INF, 0.3)]], NONE),
    "unions": (
        [[(-INF, -0.4), (0.6, 1.5)], [(-1.0, 0.2), (1.0, INF)], [(-INF, 0.8), (1.4, 1.9)], LINE], NONE,
    ),
    "probabilities": ([hidden_with(2.0), [(-INF, 0.3)], hidden_with(-1.0), LINE], NONE),
    "one inequality": ([LINE] * 4, (V[:1], B[:1])),
    "three inequalities": ([LINE] * 4, (V, B)),
    "reversed inequalities": ([LINE] * 4, (V * [[-1], [1], [-1]], B * [-1, 1, -1])),
    "a slab": ([LINE] * 4, (np.array([V[2], -V[2]]), np.array([1.2, 0.2]))),
    "more inequalities than cells": (
        [LINE] * 4, (np.vstack([V, -np.eye(4)[:2]]), np.array([*B, 1.0, 1.5])),
    ),
    "inequalities and intervals": (
        [[(-1.0, 1.2)], [(-INF, 0.5)], LINE, [(-0.6, 0.9)]], (V[:2], B[:2]),
    ),
    "inequalities and unions": (
        [[(-INF, -0.1), (0.2, INF)], LINE, [(-2.0, 0.9), (1.1, 3.0)], LINE], (V, B),
    ),
}  # fmt: skip
SLOPES = {"probabilities": {0: 2.0, 2: -1.0}}


def _chance(name, Y):
    sets, (A, c) = REGIONS[name]
    out = (c - Y @ A.T >= 0).all(axis=1).astype(float)
    for j, pieces in enumerate(sets):
        slope = SLOPES.get(name, {}).get(j)
        out *= _within(Y[:, j], pieces) if slope is None else expit(-slope * Y[:, j])
    return out


def _filled(sets, A, c, count, shift):
    points = lattice(count, len(sets))
    X, weights = np.empty(points.shape), np.empty(len(points))
    mass = paths.fill_paths(
        MEAN, ROOT, np.arange(len(sets)), A, c, confines(*sets), points, shift, X, weights
    )
    return mass, X, weights


@pytest.mark.parametrize("name", REGIONS)
def test_paths_have_the_mass_and_the_moments_of_their_region(name):
    sets, (A, c) = REGIONS[name]
    rng = np.random.default_rng(2)
    mass, first, second = [], [], []
    for _ in range(40):
        one, X, weights = _filled(sets, A, c, 512, rng.random(4))
        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0.0).all()
        Y = MEAN + X[weights > 0]
        # Rounding of a sum of four terms.
        assert (Y @ A.T - c).max(initial=-1.0) <= 1e-12
        for j, pieces in enumerate(sets):
            if isinstance(pieces, list):
                assert all(min(max(a - y, y - b) for a, b in pieces) < 1e-12 for y in Y[:, j])
        mean, covariance = np.empty(4), np.empty((4, 4))
        called(paths.path_moments)(X, weights, mean, covariance)
        np.testing.assert_allclose(mean, weights @ X, atol=1e-12)
        np.testing.assert_allclose(covariance, np.cov(X.T, aweights=weights, ddof=0), atol=1e-12)
        mass.append(math.exp(one))
        first.append(mean)
        second.append(covariance + np.outer(mean, mean))
    # Importance sampling of a million plain draws is the oracle; five standard errors of both.
    Y = np.random.default_rng(7).multivariate_normal(MEAN, COVARIANCE, 1_000_000)
    chance = _chance(name, Y)
    p, error = chance.mean(), chance.std() / 1e3
    own = np.std(mass, ddof=1) / math.sqrt(40)
    assert abs(np.mean(mass) - p) < 5.0 * math.hypot(error, own)
    inside = chance > 0
    Z, w = Y[inside] - MEAN, chance[inside] / chance.sum()
    # The ratio of two averages, from 512 points each, is off by a hundredth of its variation or less.
    for comp, statistic in [(first, Z), (second, np.einsum("ni,nj->nij", Z, Z))]:
        ref = np.tensordot(w, statistic, 1)
        noise = np.sqrt(np.tensordot(w * w, (statistic - ref) ** 2, 1))
        own = np.std(comp, axis=0, ddof=1) / math.sqrt(40)
        assert (np.abs(np.mean(comp, axis=0) - ref) < 5.0 * np.hypot(noise, own) + 1e-3).all()


@pytest.mark.parametrize("name", ["intervals", "unions", "three inequalities"])
def test_the_lattice_has_less_noise_than_independent_points(name):
    sets, (A, c) = REGIONS[name]
    rng = np.random.default_rng(5)
    even = [_filled(sets, A, c, 257, rng.random(4))[0] for _ in range(60)]
    plain = []
    for _ in range(60):
        X, weights = np.empty((257, 4)), np.empty(257)
        plain.append(paths.fill_paths(
            MEAN, ROOT, np.arange(4), A, c, confines(*sets), rng.random((257, 4)), np.zeros(4), X,
            weights,
        ))  # fmt: skip
    assert np.std(even) < 0.4 * np.std(plain)


@pytest.mark.parametrize("name", ["intervals", "three inequalities"])
def test_paths_are_smooth_functions_of_the_parameters(name):
    # The same points at means that are h apart: third differences of a smooth function fall with h³.
    sets, (A, c) = REGIONS[name]
    points = lattice(64, 4)
    X, weights = np.empty(points.shape), np.empty(len(points))

    def value(t):
        m = MEAN + t * np.array([1.0, -0.5, 0.3, 0.2])
        return paths.fill_paths(
            m, ROOT, np.arange(4), A, c, confines(*sets), points, np.full(4, 0.3), X, weights
        )

    differences = [
        abs(value(3 * h) - 3 * value(2 * h) + 3 * value(h) - value(0.0)) for h in (1e-2, 1e-3)
    ]
    assert differences[0] < 1e-5
    assert differences[1] < 1e-8


def test_one_inequality_is_exact_however_many_cells():
    mass, _, weights = _filled([LINE] * 4, V[:1], B[:1], 17, np.full(4, 0.2))
    v = V[0]
    ref = stats.norm.logcdf(B[0], v @ MEAN, math.sqrt(v @ COVARIANCE @ v))
    assert mass == pytest.approx(ref, rel=1e-12)
    np.testing.assert_allclose(weights, 1.0 / 17, rtol=1e-12)


def _slow_walk(L, low, high, tilt, U):
    # One path at a time, one step after the other, by SciPy.
    h = len(L)
    X, weights = np.empty(U.shape), np.zeros(len(U))
    for q, u in enumerate(U):
        e = np.zeros(h)
        for j in range(h):
            centre = L[j] @ e
            a, b = (np.array([low[j], high[j]]) - centre) / L[j, j] - tilt[j]
            step = stats.truncnorm(a, b)
            e[j] = tilt[j] + step.ppf(u[j])
            log_mass = stats.norm.logcdf(b) if a == -INF else stats.norm.logsf(a)
            if np.isfinite([a, b]).all():
                log_mass = math.log(integrate.quad(stats.norm.pdf, a, b, epsabs=0.0)[0])
            weights[q] += log_mass + tilt[j] * (0.5 * tilt[j] - e[j])
        X[q] = L @ e
    return X, weights


@pytest.mark.parametrize(
    ("low", "high"),
    [
        # Below and above limits, between them on either side of 0, and in a narrow interval.
        ([-INF, 0.4, -0.5, 0.3, 0.999], [0.2, INF, 0.8, INF, 1.0]),
        ([-INF, 3.0, 1.5, -4.0, -2.0001], [-3.0, INF, 4.0, -1.0, -2.0]),
        # Further away than vectors of numbers go, and so wide that nothing is cut off.
        ([-INF, 40.0, -9.0, -1.0, 0.0], [-38.0, INF, 30.0, INF, INF]),
    ],
)
def test_a_walk_in_vectors_is_one_of_single_steps(low, high):
    h, rng = 5, np.random.default_rng(8)
    A = rng.normal(size=(h, h))
    L, tilt = np.linalg.cholesky(0.3 * A @ A.T + np.eye(h)), np.array([0.4, -0.3, 0.0, 1.1, -0.2])
    points, shift = lattice(17, h), rng.random(h)
    U = (points + shift) % 1.0
    X, weights = np.empty(points.shape), np.empty(len(points))
    called(paths._walk)(L, np.array(low), np.array(high), tilt, points, shift, X, weights)
    ref, log_weights = _slow_walk(L, low, high, tilt, np.abs(2.0 * U - 1.0))
    # Steps are right to 1e-9 of their size, and later ones follow from those before; a narrow interval
    # all but fixes its step, whose mass has the relative error of the difference of two.
    np.testing.assert_allclose(X, ref, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(weights, log_weights, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize(
    "sets",
    [
        [[(-INF, -0.2), (0.4, INF)], [(-1.0, 0.1), (0.3, 0.31), (2.0, INF)], LINE, [(0.2, INF)]],
        # Pieces without mass next to others, on either side, and all of them far away.
        [
            [(-INF, -30.0), (-0.1, 0.1)],
            [(39.0, 40.0), (50.0, INF)],
            [(-3.0, -2.9999)],
            [(-INF, 20.0)],
        ],
        [
            hidden_with(1.5),
            [(-INF, 0.0), (1.0, 2.0)],
            [(-INF, -1.0), (1.0, INF)],
            hidden_with(-1.0),
        ],
    ],
)
def test_paths_through_unions_in_vectors_are_those_of_single_steps(sets):
    points, shift = lattice(31, 4), np.array([0.1, 0.6, 0.35, 0.8])
    own, found = confines(*sets), []
    for take in (called(paths._union_paths), called(paths._set_paths)):
        X, weights = np.empty(points.shape), np.empty(len(points))
        bounds = NONE if take is called(paths._set_paths) else ()
        take(MEAN, ROOT, np.arange(4), *bounds, own, points, shift, X, weights)
        found.append((X, weights))
    # As for a walk; both are sums of four logarithms.
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-7, atol=1e-6)


def test_paths_of_a_far_region_have_the_limit_that_they_should():
    # Three independent cells, 12, 20 and 36 standard deviations away.
    S, sets = np.eye(3), [[(12.0, INF)], [(-INF, -20.0)], [(36.0, 40.0)]]
    X, weights = np.empty((67, 3)), np.empty(67)
    args = np.arange(3), np.empty((0, 3)), np.empty(0), confines(*sets)
    mass = paths.fill_paths(
        np.zeros(3), S, *args, lattice(67, 3), np.array([0.1, 0.5, 0.9]), X, weights
    )
    assert mass == pytest.approx(
        stats.norm.logsf(12.0) + stats.norm.logsf(20.0) + stats.norm.logsf(36.0), rel=1e-12
    )
    assert (X[:, 0] >= 12.0).all()
    assert (X[:, 1] <= -20.0).all()
    assert ((X[:, 2] >= 36.0) & (X[:, 2] < 40.0)).all()


@pytest.mark.parametrize("h", [5, 12])
@pytest.mark.parametrize("rho", [0.3, 0.9, -0.05])
def test_many_cells_have_the_mass_and_the_mean_of_their_region(h, rho):
    # Equal correlations: given a common factor cells are independent, which leaves one integral. (With
    # ρ < 0 the factor is imaginary, so there rejection is asked.)
    S = np.full((h, h), rho) + (1.0 - rho) * np.eye(h)
    m = np.linspace(-0.5, 0.8, h)
    sets = [[(-INF, 0.3)] if j % 2 else [(-0.8, 1.0)] for j in range(h)]
    low, high = np.array([pieces[0] for pieces in sets]).T
    if rho > 0:
        t, w = np.polynomial.hermite_e.hermegauss(200)
        spread = math.sqrt(1.0 - rho)
        centre = m + math.sqrt(rho) * t[:, None]
        a, b = (low - centre) / spread, (high - centre) / spread
        inside = stats.norm.cdf(b) - stats.norm.cdf(a)
        w = w * inside.prod(axis=1)
        ref = w.sum() / math.sqrt(2.0 * math.pi)
        step = (stats.norm.pdf(a) - stats.norm.pdf(b)) / np.maximum(inside, 1e-300)
        mean = w @ (centre + spread * step) / w.sum() - m
        error = np.zeros(h)
    else:
        Y = np.random.default_rng(3).multivariate_normal(m, S, 2_000_000)
        Y = Y[((low < Y) & (high > Y)).all(axis=1)]
        ref, mean = len(Y) / 2e6, Y.mean(axis=0) - m
        error = Y.std(axis=0) / math.sqrt(len(Y))
    rng, found, first = np.random.default_rng(1), [], []
    args = np.arange(h), np.empty((0, h)), np.empty(0), confines(*sets)
    for _ in range(40):
        X, weights = np.empty((521, h)), np.empty(521)
        found.append(
            paths.fill_paths(
                m, np.linalg.cholesky(S), *args, lattice(521, h), rng.random(h), X, weights
            )
        )
        first.append(weights @ X)
    # Five standard errors of 40 independent estimates, and of rejection; 521 points have a bias of the
    # variance of their weights over 521, which is a thousandth or two.
    found = np.exp(found)
    own = found.std(ddof=1) / math.sqrt(40)
    plain = 0.0 if rho > 0 else ref / math.sqrt(len(Y))
    assert abs(found.mean() - ref) < 5.0 * math.hypot(own, plain)
    own = np.std(first, axis=0, ddof=1) / math.sqrt(40)
    assert (np.abs(np.mean(first, axis=0) - mean) < 5.0 * np.hypot(own, error) + 2e-3).all()


def test_cells_against_each_other_are_sampled_well_in_any_order():
    # The share of the paths that count, (Σw)²/(n Σw²): without tilts it is 0.06 as the cells come, and
    # with steps half of the way 0.03 in the last order. At a quarter errors are twice as large.
    L = np.linalg.cholesky(np.full((4, 4), 0.95) + 0.05 * np.eye(4))
    rng, points = np.random.default_rng(4), lattice(61, 4)
    X, weights = np.empty(points.shape), np.empty(len(points))
    for order in ([0, 1, 2, 3], [2, 0, 1, 3], [3, 1, 0, 2]):
        args = np.arange(4), np.empty((0, 4)), np.empty(0), confines(*(AGAINST[j] for j in order))
        shares = []
        for _ in range(40):
            paths.fill_paths(np.zeros(4), L, *args, points, rng.random(4), X, weights)
            shares.append(1.0 / (len(weights) * (weights @ weights)))
        assert np.mean(shares) > 0.25


@pytest.mark.parametrize(("noise", "h"), [(0.1, 15), (0.01, 8), (0.001, 4), (0.001, 15)])
def test_cells_that_all_but_determine_each_other_are_no_worse_for_their_tilts(noise, h):
    # Two factors and little noise of their own, below limits of their own, the least likely first: a
    # sampler whose log-mass errs by much more than an untilted one is of no use. In 400 rows ratios are
    # known to 4 % in the median and 10 % in the quantile, and were 0.36 to 1.00 and 0.27 to 1.35: the
    # largest of each, and more than four times its error.
    rng, points = np.random.default_rng(1), lattice(67, h)
    none, args = np.zeros(h), (np.empty((0, h)), np.empty(0))
    tilted, plain = [], []
    for _ in range(400):
        A = rng.normal(size=(h, 2))
        S = A @ A.T + noise * np.eye(h)
        root = np.linalg.cholesky(S)
        high = root @ rng.normal(size=h) + rng.exponential(0.7, h)
        own, order = confines(*([(-INF, b)] for b in high)), np.empty(h, dtype=np.int64)
        called(confined.order_cells)(none, root, np.arange(h), own, order)
        L = np.linalg.cholesky(S[np.ix_(order, order)])
        masses = []
        for shift in rng.random((8, h)):
            X, weights = np.empty(points.shape), np.empty(len(points))
            one = paths.fill_box(none, L, order, *args, own, points, shift, X, weights)
            called(paths._walk)(L, np.full(h, -INF), high[order], none, points, shift, X, weights)
            masses.append((one, called(paths._normalise)(X, weights)))
        spread = np.std(masses, axis=0)
        tilted.append(spread[0])
        plain.append(spread[1])
    assert np.median(tilted) < 1.2 * np.median(plain)
    assert np.quantile(tilted, 0.9) < 2.0 * np.quantile(plain, 0.9)


def test_kernels_that_were_sent_are_found_anew():
    own = confines(*REGIONS["intervals"][0])
    fill = paths.law_of(own).fill
    assert fill.__wrapper_address__() == fill.address
    again = pickle.loads(pickle.dumps(fill))
    assert again.address is None
    assert again.signature() == fill.signature()
    assert again.__wrapper_address__() == fill.address


def test_an_empty_region_is_told():
    A, c = np.array([[1.0, 1, 1, 1], [-1.0, -1, -1, -1]]), np.array([0.0, -1.0])
    mass, _, _ = _filled([LINE] * 4, A, c, 16, np.zeros(4))
    assert mass == -INF


def test_a_narrow_region_is_found_by_other_points():
    # x₁ must follow x₀, of which the walk to x₀ does not know: one in 30 of those leaves it room.
    sets = [[(-5.0, 5.0)], [(1.0, 1.1)], LINE, LINE]
    A, c = np.array([[1.0, -1.0, 0, 0], [-1.0, 1.0, 0, 0]]), np.array([0.02, 0.02])
    shifts = np.random.default_rng(0).random((300, 4))
    found = np.array([_filled(sets, A, c, 8, shift)[0] for shift in shifts])
    assert np.isfinite(found).all()
    law = stats.multivariate_normal(MEAN[:2], COVARIANCE[:2, :2])
    ref = integrate.dblquad(
        lambda y, x: law.pdf([x, y]), 0.98, 1.12, lambda x: max(x - 0.02, 1.0),
        lambda x: max(min(x + 0.02, 1.1), 1.0, x - 0.02),
    )[0]  # fmt: skip
    # Others are asked until a path ends inside, and the average is over all of them: E(1/tries) is more
    # than the chance p of a try, by the factor log(1/p)/(1 − p) = 1.9 for p = 0.25.
    assert 0.8 < np.exp(found).mean() / ref < 2.2


@pytest.mark.parametrize("name", REGIONS)
def test_boxes_have_a_kernel_of_their_own_that_says_the_same(name):
    sets, (A, c) = REGIONS[name]
    own = confines(*sets)
    assert (fill_of(own, A, c).kernel is paths.fill_box) == (name == "intervals")
    if name != "intervals":
        return
    points, shift, found = lattice(64, 4), np.full(4, 0.3), []
    for kernel in (paths.fill_paths, paths.fill_box):
        X, weights = np.empty(points.shape), np.empty(len(points))
        args = np.arange(4), A, c, own, points, shift, X, weights
        found.append((kernel(MEAN, COVARIANCE, *args), X.tolist(), weights.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["intervals", "unions", "three inequalities"])
def test_the_expectation_of_several_cells_is_that_of_paths(name):
    sets, (A, c) = REGIONS[name]
    mass, first, second = expected(sets, COVARIANCE, MEAN, A, c)
    other, X, weights = _filled(sets, A, c, 4096, np.full(4, 0.37))
    assert mass == pytest.approx(other, rel=1e-12)
    np.testing.assert_allclose(first, weights @ X, atol=1e-13)
    np.testing.assert_allclose(second, np.cov(X.T, aweights=weights, ddof=0), atol=1e-12)
