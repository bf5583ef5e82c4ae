"""Oracles for regressions, against closed forms, mpmath and differences."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from tests import naive
from tests import naive_regression as oracle

EVERYWHERE = [
    (-math.inf, 0.3), (-0.4, 2.0), (1.5, math.inf), (30.0, math.inf), (-math.inf, -30.0),
    (29.0, 29.5), (0.2, 0.2001), (-9.0, 8.0),
]  # fmt: skip
RECTANGLES = [
    (0.0, [-0.5, 0.2], [1.0, math.inf]),
    (0.6, [-math.inf, -math.inf], [0.4, -1.0]),
    (-0.95, [0.0, 0.0], [math.inf, math.inf]),
    (0.9999, [2.8, 0.9], [3.0, math.inf]),
    (-0.8, [30.0, 20.0], [math.inf, math.inf]),
    (0.9, [8.0, 6.0], [math.inf, 7.0]),
    (0.3, [-0.001, 0.5], [0.001, 0.5005]),
]


@pytest.mark.parametrize(("a", "b"), EVERYWHERE)
def test_intervals_agree_with_mpmath(a, b):
    log_mass, moments = naive.mp_truncated_moments(a, b, order=2)
    comp = oracle.line(a, b)
    # Ends that are near each other leave fewer digits: 1e-16 over their distance, and its share of E z².
    digits = 1e-12 if b - a > 0.01 else 1e-10
    assert float(comp.log_mass) == pytest.approx(float(log_mass), rel=1e-13, abs=digits)
    assert float(comp.mean) == pytest.approx(float(moments[1]), rel=digits)
    assert float(comp.square) == pytest.approx(float(moments[2]), rel=digits)


def mp_rectangle(a, b, rho):
    """Log-mass, E z₁ and E z₁z₂ by adaptive quadrature around the top of the integrand."""
    with mp.workdps(30):
        rho = mp.mpf(rho)
        s = mp.sqrt(1 - rho**2)

        def other(x):
            return naive.mp_interval_moments((a[1] - rho * x) / s, (b[1] - rho * x) / s, 30)[:2]

        low, high = mp.mpf(max(a[0], -45)), mp.mpf(min(b[0], 45))
        left, right = low, high
        for _ in range(60):
            one, two = left + (right - left) / 3, right - (right - left) / 3
            heights = [mp.log(mp.npdf(x) * other(x)[0]) for x in (one, two)]
            left, right = (one, right) if heights[0] < heights[1] else (left, two)
        cuts = {low, high, left}
        for k, sign in itertools.product(range(-14, 7), (-1, 1)):
            cuts.add(left + sign * mp.mpf(2) ** k)
        cuts = sorted(cut for cut in cuts if low <= cut <= high)

        def integral(function):
            return mp.quad(lambda x: mp.npdf(x) * function(x, *other(x)), cuts, maxdegree=5)

        mass = integral(lambda x, p, _: p)
        first = integral(lambda x, p, _: x * p) / mass
        product = integral(lambda x, p, mean: x * (rho * x + s * mean) * p) / mass
        return float(mp.log(mass)), float(first), float(product)


@pytest.mark.parametrize(("rho", "a", "b"), RECTANGLES)
def test_rectangles_agree_with_mpmath(rho, a, b):
    ref = mp_rectangle(a, b, rho)
    log_mass, first, second = oracle.rectangle(np.array([a]), np.array([b]), rho)
    # The log of a mass of exp(-3000) has thirteen digits before the point too.
    assert log_mass[0] == pytest.approx(ref[0], rel=1e-14, abs=1e-12)
    assert first[0, 0] == pytest.approx(ref[1], rel=1e-12, abs=1e-12)
    assert second[0, 0, 1] == pytest.approx(ref[2], rel=1e-11, abs=1e-12)


@pytest.mark.parametrize(("rho", "a", "b"), RECTANGLES)
def test_rectangles_do_not_depend_on_the_order_of_columns(rho, a, b):
    a, b = np.array([a]), np.array([b])
    ref, comp = oracle.rectangle(a, b, rho), oracle.rectangle(a[:, ::-1], b[:, ::-1], rho)
    np.testing.assert_allclose(comp[0], ref[0], rtol=1e-14, atol=1e-12)
    np.testing.assert_allclose(comp[1][:, ::-1], ref[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(comp[2][:, ::-1, ::-1], ref[2], rtol=1e-10, atol=1e-12)


def test_quadrants_have_their_closed_form():
    """P(both positive) = 1/4 + asin(ρ)/2π."""
    for rho in (-0.99, -0.3, 0.0, 0.5, 0.999):
        comp = oracle.rectangle(np.zeros((1, 2)), np.full((1, 2), np.inf), rho)[0][0]
        assert math.exp(comp) == pytest.approx(0.25 + math.asin(rho) / (2 * math.pi), rel=1e-12)


def check_top(value, comp):
    """Whether a function is flat at what was found, with its curvature."""
    at, errors = comp.estimates, np.sqrt(np.diag(comp.covariance))
    assert value(at) == pytest.approx(comp.value, rel=1e-11)

    def at_move(k, m, p, q, h):
        step = np.zeros(at.size)
        step[k] += p * h * errors[k]
        step[m] += q * h * errors[m]
        return value(at + step)

    def slope(k, h):
        return (at_move(k, k, 1, 0, h) - at_move(k, k, -1, 0, h)) / (2 * h)

    def bend(k, m, h):
        signs = itertools.product((1, -1), repeat=2)
        return sum(p * q * at_move(k, m, p, q, h) for p, q in signs) / (4 * h * h)

    def richardson(difference, *which):
        return (4 * difference(*which, 0.01) - difference(*which, 0.02)) / 3

    every = range(at.size)
    H = np.array([[richardson(bend, k, m) for k in every] for m in every])
    ref = np.linalg.inv(-H) * np.outer(errors, errors)
    # Rounding of 1e-12 over 1e-4, and the condition of correlations of estimates.
    assert np.abs((comp.covariance - ref) / np.outer(errors, errors)).max() < 2e-4
    # What the search leaves, and rounding over 0.02.
    assert max(abs(richardson(slope, k)) for k in every) < 3e-6


GAMMA = np.array([[0.5, 1.0], [-0.3, 0.4], [0.2, -0.6]])
SIGMA = np.array([[1.0, 0.5, -0.3], [0.5, 1.4, 0.2], [-0.3, 0.2, 0.8]])


@pytest.fixture
def mixed(rng):
    """Rows of three outcomes: at most two in intervals, others seen or not known at all."""
    n = 60
    W = np.column_stack([np.ones(n), rng.normal(size=n)])
    Y = W @ GAMMA.T + rng.multivariate_normal(np.zeros(3), SIGMA, n)
    lower, upper = Y.copy(), Y.copy()
    for r in range(n):
        kinds = rng.choice(5, size=3)
        for j, kind in enumerate(kinds):
            if kind == 0:
                lower[r, j], upper[r, j] = -np.inf, np.inf
            elif kind in (1, 2, 3) and (lower[r] != upper[r]).sum() < 2:
                width = rng.exponential()
                lower[r, j] = -np.inf if kind == 1 else Y[r, j] - width
                upper[r, j] = np.inf if kind == 2 else Y[r, j] + width
    return lower, upper, W


def test_likelihood_agrees_with_that_of_cells(mixed):
    lower, upper, W = mixed
    X = np.where(lower == upper, lower, np.nan)

    def cells(r, j):
        return [(lower[r, j], upper[r, j])]

    ref = 0.0
    for r in range(len(W)):
        kept = np.flatnonzero(
            (lower[r] == upper[r]) | np.isfinite(lower[r]) | np.isfinite(upper[r])
        )
        if kept.size:
            ref += naive.observed_log_likelihood(
                X[r : r + 1, kept],
                lambda _, j, r=r, kept=kept: cells(r, kept[j]),
                W[r] @ GAMMA[kept].T,
                SIGMA[np.ix_(kept, kept)],
            )
    assert oracle.log_likelihood(GAMMA, SIGMA, lower, upper, W) == pytest.approx(ref, rel=1e-9)


def test_slopes_are_differences(mixed):
    lower, upper, W = mixed
    rows, h = oracle.row_terms(GAMMA, SIGMA, lower, upper, W), 1e-5
    for j, k in itertools.product(range(3), range(2)):
        step = np.zeros_like(GAMMA)
        step[j, k] = h
        up, down = (
            oracle.row_terms(GAMMA + sign * step, SIGMA, lower, upper, W).value for sign in (1, -1)
        )
        # Rounding over h, and h² times the third derivative.
        np.testing.assert_allclose((up - down) / (2 * h), rows.slope[:, j] * W[:, k], atol=1e-8)
    for i, j in zip(*np.tril_indices(3), strict=True):
        turn = np.zeros_like(SIGMA)
        turn[i, j] = turn[j, i] = h
        up, down = (
            oracle.row_terms(GAMMA, SIGMA + sign * turn, lower, upper, W).value for sign in (1, -1)
        )
        ref = rows.turn[:, i, j] * (1 if i == j else 2)
        np.testing.assert_allclose((up - down) / (2 * h), ref, atol=2e-8)


def test_three_intervals_in_a_row_are_refused():
    with pytest.raises(ValueError, match="two are the most"):
        oracle.log_likelihood(GAMMA, SIGMA, np.zeros((1, 3)), np.ones((1, 3)), np.ones((1, 2)))


def complete(rng, n=80):
    W = np.column_stack([np.ones(n), 50.0 * rng.normal(size=n), rng.random(n)])
    Y = W @ rng.normal(size=(2, 3)).T + rng.multivariate_normal([0, 0], [[4.0, 1.0], [1.0, 0.5]], n)
    return Y, W


def test_complete_rows_give_least_squares(rng):
    Y, W = complete(rng)
    comp = oracle.maximise(Y, Y, W, np.ones((2, 3), bool))
    ref = np.linalg.lstsq(W, Y)[0]
    rest = Y - W @ ref
    Sigma = rest.T @ rest / len(Y)
    errors = np.sqrt(np.diag(comp.covariance))
    assert np.abs((comp.Gamma - ref.T).ravel() / errors[:6]).max() < 1e-6
    np.testing.assert_allclose(comp.Sigma, Sigma, rtol=1e-6)
    assert comp.value == pytest.approx(
        stats.multivariate_normal([0, 0], Sigma).logpdf(rest).sum(), rel=1e-12
    )
    # Σ ⊗ (W'W)⁻¹, and Σ_ik Σ_jl + Σ_il Σ_jk over n.
    i, j = np.tril_indices(2)
    spread = (
        Sigma[np.ix_(i, i)] * Sigma[np.ix_(j, j)] + Sigma[np.ix_(i, j)] * Sigma[np.ix_(j, i)]
    ) / len(Y)
    expected = np.zeros((9, 9))
    expected[:6, :6] = np.kron(Sigma, np.linalg.inv(W.T @ W))
    expected[6:, 6:] = spread
    off = (comp.covariance - expected) / np.outer(errors, errors)
    assert np.abs(off).max() < 1e-4


def test_restricted_coefficients_are_generalised_least_squares(rng):
    Y, W = complete(rng)
    free = np.array([[True, True, False], [True, False, True]])
    comp = oracle.maximise(Y, Y, W, free)
    P = np.linalg.inv(comp.Sigma)
    designs = [W[:, mask] for mask in free]
    A = np.block([[P[i, j] * designs[i].T @ designs[j] for j in range(2)] for i in range(2)])
    b = np.concatenate([designs[i].T @ Y @ P[i] for i in range(2)])
    ref = np.linalg.solve(A, b)
    assert np.abs((comp.parameters[:4] - ref) / np.sqrt(np.diag(comp.covariance))[:4]).max() < 1e-6
    assert comp.Gamma[0, 2] == comp.Gamma[1, 1] == 0.0
    np.testing.assert_allclose(np.linalg.inv(comp.covariance)[:4, :4], A, rtol=1e-3)


@pytest.fixture
def pairs(mixed):
    """The first two outcomes of these rows."""
    lower, upper, W = mixed
    return lower[:, :2], upper[:, :2], W


def test_the_top_is_flat_and_its_curvature_that_of_differences(pairs):
    """Along each parameter, without the chart that the search goes by."""
    lower, upper, W = pairs
    comp = oracle.maximise(lower, upper, W, np.ones((2, 2), bool))

    def value(p):
        Sigma = np.array([[p[4], p[5]], [p[5], p[6]]])
        return oracle.log_likelihood(p[:4].reshape(2, 2), Sigma, lower, upper, W)

    check_top(value, oracle.Found(comp.parameters, comp.value, comp.covariance))


def test_a_start_and_weights_are_used(pairs):
    lower, upper, W = pairs
    free = np.ones((2, 2), bool)
    twice = oracle.maximise(*(np.repeat(part, 2, axis=0) for part in (lower, upper, W)), free)
    comp = oracle.maximise(
        lower, upper, W, free, start=(GAMMA[:2], SIGMA[:2, :2]), weights=np.full(len(W), 2.0)
    )
    errors = np.sqrt(np.diag(twice.covariance))
    assert np.abs((comp.parameters - twice.parameters) / errors).max() < 1e-5
    assert comp.value == pytest.approx(twice.value, rel=1e-11)
    np.testing.assert_allclose(np.diag(comp.covariance), errors**2, rtol=1e-4)


@pytest.fixture
def groups(rng):
    """Three groups as dummies, and a latent that differs between them."""
    group = np.repeat([0, 1, 2], [90, 70, 60])
    return group, np.eye(3)[group], rng.normal(size=220) + np.array([-0.5, 0.0, 0.9])[group]


def test_probit_of_groups_has_closed_forms(groups):
    """Coefficients are quantiles of shares; variances p(1 − p)/(n φ²)."""
    group, W, latent = groups
    positive = latent > 0
    lower, upper = np.where(positive, 0.0, -np.inf), np.where(positive, np.inf, 0.0)
    comp = oracle.maximise(lower[:, None], upper[:, None], W, np.ones((1, 3), bool), (0,))
    shares = np.array([positive[group == g].mean() for g in range(3)])
    ref = stats.norm.ppf(shares)
    variance = shares * (1 - shares) / (np.bincount(group) * stats.norm.pdf(ref) ** 2)
    np.testing.assert_allclose(comp.parameters, ref, atol=1e-6)
    np.testing.assert_allclose(comp.covariance, np.diag(variance), rtol=1e-4, atol=1e-8)
    counts = np.bincount(group)
    log_likelihood = (counts * (shares * np.log(shares) + (1 - shares) * np.log1p(-shares))).sum()
    assert comp.value == pytest.approx(log_likelihood, rel=1e-12)
    assert comp.Sigma[0, 0] == 1.0


def test_ordered_probit_without_covariates_has_closed_forms(groups):
    """Cut points are quantiles of shares, whose covariance is p(1 − q)/(n φ(a) φ(b))."""
    category = np.digitize(groups[2], [-1.0, 0.0, 0.7])
    n = category.size
    comp = oracle.ordered_probit(category, np.empty((n, 0)))
    shares = np.cumsum(np.bincount(category))[:-1] / n
    ref = stats.norm.ppf(shares)
    np.testing.assert_allclose(comp.estimates, ref, atol=1e-6)
    between = np.minimum.outer(shares, shares) - np.outer(shares, shares)
    density = stats.norm.pdf(ref)
    expected = between / (n * np.outer(density, density))
    np.testing.assert_allclose(comp.covariance, expected, rtol=1e-4)


def test_ordered_probit_with_covariates_is_at_the_top(rng):
    n = 150
    W = rng.normal(size=(n, 2)) * [1.0, 20.0]
    category = np.digitize(W @ [0.6, 0.02] + rng.normal(size=n), [-0.5, 0.4, 1.3])
    comp = oracle.ordered_probit(category, W)

    def value(p):
        ends = np.concatenate([[-np.inf], p[2:], [np.inf]])
        centre = W @ p[:2]
        mass = stats.norm.cdf(ends[category + 1] - centre) - stats.norm.cdf(ends[category] - centre)
        return np.log(mass).sum()

    check_top(value, comp)


def test_truncated_regression_is_at_the_top_of_scipys_likelihood(rng):
    n = 400
    W = np.column_stack([np.ones(n), 10.0 * rng.random(n)])
    y = W @ [1.0, 0.3] + 2.0 * rng.normal(size=n)
    lower, upper = (
        np.where(rng.random(n) < 0.5, 0.0, -np.inf),
        np.where(rng.random(n) < 0.5, 5.0, np.inf),
    )
    kept = (lower <= y) & (y <= upper)
    y, lower, upper, W = y[kept], lower[kept], upper[kept], W[kept]
    comp = oracle.truncated_regression(y, lower, upper, W)

    def value(p):
        centre, sigma = W @ p[:2], p[2]
        law = stats.truncnorm((lower - centre) / sigma, (upper - centre) / sigma, centre, sigma)
        return law.logpdf(y).sum()

    check_top(value, comp)
    # Twice the information in rows of weight two.
    double = oracle.truncated_regression(y, lower, upper, W, comp.estimates, np.full(y.size, 2.0))
    np.testing.assert_allclose(double.estimates, comp.estimates, rtol=1e-7)
    np.testing.assert_allclose(double.covariance, comp.covariance / 2, rtol=1e-4)
    # The slopes of rows add up to nothing.
    slopes = oracle.truncated_log_likelihood(
        comp.estimates[:2], comp.estimates[2], y, lower, upper, W
    )[1]
    assert np.abs(slopes.sum(axis=0) * np.sqrt(np.diag(comp.covariance))).max() < 1e-5


def test_truncated_regression_without_limits_is_least_squares(rng):
    Y, W = complete(rng)
    comp = oracle.truncated_regression(Y[:, 0], -np.inf, np.inf, W)
    ref = np.linalg.lstsq(W, Y[:, 0])[0]
    sigma = (Y[:, 0] - W @ ref).std()
    errors = np.sqrt(np.diag(comp.covariance))
    assert np.abs((comp.estimates - np.append(ref, sigma)) / errors).max() < 1e-6
    assert errors[-1] == pytest.approx(sigma / math.sqrt(2 * len(Y)), rel=1e-4)
    np.testing.assert_allclose(
        comp.covariance[:3, :3], sigma**2 * np.linalg.inv(W.T @ W), rtol=1e-3
    )


@pytest.fixture
def wages(rng):
    n = 300
    W = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    e = rng.multivariate_normal([0, 0], [[4.0, 1.2], [1.2, 1.0]], n)
    works = W @ [0.3, 0.5, 0.8] + e[:, 1] > 0
    return np.where(works, W[:, :2] @ [1.0, 0.7] + e[:, 0], np.nan), works, W


def test_heckman_is_the_maximum_of_two_outcomes_one_of_which_is_latent(wages):
    wage, works, W = wages
    ref = oracle.heckman(wage, works, W[:, :2], W)
    lower = np.column_stack([np.where(works, wage, -np.inf), np.where(works, 0.0, -np.inf)])
    upper = np.column_stack([np.where(works, wage, np.inf), np.where(works, np.inf, 0.0)])
    free = np.array([[True, True, False], [True, True, True]])
    comp = oracle.maximise(lower, upper, W, free, (1,))
    assert comp.value == pytest.approx(ref.value, rel=1e-11)
    sigma, rho = ref.estimates[-2:]
    errors = np.sqrt(np.diag(comp.covariance))
    expected = [*ref.estimates[:-2], sigma**2, rho * sigma]
    assert np.abs((comp.parameters - expected) / errors).max() < 1e-5
    # σ² and ρσ from σ and ρ
    back = np.eye(7)
    back[5:, 5:] = [[2 * sigma, 0.0], [rho, sigma]]
    spread = back @ ref.covariance @ back.T
    assert np.abs((comp.covariance - spread) / np.outer(errors, errors)).max() < 1e-4


def test_heckmans_slope_is_that_of_differences(wages):
    wage, works, W = wages
    p, h = np.array([0.8, 0.5, 0.2, 0.6, 0.7, 0.4, -0.6]), 1e-5

    def value(p):
        return oracle.heckman_log_likelihood(p, wage, works, W[:, :2], W)

    ref = [(value(p + e)[0] - value(p - e)[0]) / (2 * h) for e in h * np.eye(7)]
    np.testing.assert_allclose(value(p)[1], ref, atol=1e-5)


def test_units_change_nothing_but_units(wages):
    wage, works, W = wages
    ref = oracle.heckman(wage, works, W[:, :2], W)
    comp = oracle.heckman(1000.0 * wage, works, W[:, :2] * [1.0, 0.01], W * [1.0, 1.0, 30.0])
    factors = [1e3, 1e5, 1.0, 1.0, 1 / 30, 1e3, 1.0]
    errors = np.sqrt(np.diag(ref.covariance))
    assert np.abs((comp.estimates / factors - ref.estimates) / errors).max() < 1e-5
    np.testing.assert_allclose(np.sqrt(np.diag(comp.covariance)) / factors, errors, rtol=1e-4)
    assert comp.value == pytest.approx(ref.value - works.sum() * math.log(1e3), rel=1e-11)
