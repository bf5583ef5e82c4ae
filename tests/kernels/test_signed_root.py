"""The signed root of a likelihood, against SciPy's optimisers and against plain loops."""

import numpy as np
import pytest
from scipy import optimize, stats

from halfseen.kernels.signed_root import highest_at, signed_root, simulated_roots

VALUES = np.array([0.2, 0.31, 0.5, 0.9, 1.4, 2.0])
LOWER = np.array([-np.inf, -np.inf, 0.4, 0.3])
UPPER = np.array([-0.2, 0.1, np.inf, 0.6])
COUNT = np.array([2.0, 3.0, 1.0, 2.0])


def sums_of(x):
    return np.array([x.size, x.mean(), x.size * x.var()])


def log_likelihood(mu, sigma, values, lower, upper, count):
    """Log-likelihood without the constant of seen values."""
    mass = stats.norm.cdf((upper - mu) / sigma) - stats.norm.cdf((lower - mu) / sigma)
    seen = stats.norm.logpdf(values, mu, sigma).sum() + 0.5 * values.size * np.log(2.0 * np.pi)
    with np.errstate(divide="ignore"):
        return seen + count @ np.log(mass)


def reference(at, tilt, bend, *cells):
    """Return the signed root and the deviation at φ = ``at``."""
    top = optimize.minimize(
        lambda p: -log_likelihood(p[0], np.exp(p[1]), *cells), [0.0, 0.0], method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000},
    )  # fmt: skip

    def held(eta):
        sigma = np.exp(eta)
        return -log_likelihood(at - tilt * sigma - 0.5 * bend * sigma**2, sigma, *cells)

    best = min(np.linspace(-3, 3, 121), key=held)
    there = optimize.minimize_scalar(
        held, bounds=(best - 0.1, best + 0.1), method="bounded", options={"xatol": 1e-11}
    )
    mu, sigma = top.x[0], np.exp(top.x[1])
    root = np.sqrt(max(2.0 * (there.fun - top.fun), 0.0))
    return np.sign(mu + tilt * sigma + 0.5 * bend * sigma**2 - at) * root, np.exp(there.x)


NUMBERS = [
    (0.1, 0.0, 0.0), (0.8, 0.0, 0.0), (1.2, 1.645, 0.0), (2.9, 1.645, 0.0), (-1.0, -1.3, 0.0),
    (0.9, 0.0, 1.0), (3.0, 0.0, 1.0), (2.0, 0.0, 4.0),
]  # fmt: skip


@pytest.mark.parametrize(("at", "tilt", "bend"), NUMBERS)
def test_roots_and_deviations_are_those_of_an_optimiser(at, tilt, bend):
    root, sigma = signed_root(at, tilt, bend, sums_of(VALUES), LOWER, UPPER, COUNT, 0.5, 1.0)
    expected, there = reference(at, tilt, bend, VALUES, LOWER, UPPER, COUNT)
    assert root == pytest.approx(expected, abs=1e-6)
    # Flat to the second order: 1e-6 of the deviation where the value is right to 1e-12.
    assert sigma == pytest.approx(there, rel=2e-6)


def test_where_to_begin_does_not_matter():
    found = [
        highest_at(0.9, 0.0, 1.0, sums_of(VALUES), LOWER, UPPER, COUNT, sigma)
        for sigma in (0.05, 0.4, 1.0, 6.0)
    ]
    assert np.ptp([value for value, _ in found]) < 1e-10


def test_of_a_complete_mean_it_is_student():
    """Twice the fall of a mean is n log(1 + t²/(n − 1))."""
    x = np.random.default_rng(0).normal(size=9)
    t = (x.mean() - 0.4) / (x.std(ddof=1) / 3.0)
    none = np.empty(0)
    root = signed_root(0.4, 0.0, 0.0, sums_of(x), none, none, none, 0.0, 1.0)[0]
    assert root == pytest.approx(np.sign(t) * np.sqrt(9.0 * np.log1p(t * t / 8.0)), abs=1e-9)


@pytest.mark.parametrize("drawn", [False, True])
def test_simulated_columns_are_hidden_by_their_limits(drawn):
    rng = np.random.default_rng(2)
    m, n, at, bend, sigma = 6, 15, 0.7, 1.0, 1.2
    scores = rng.normal(size=(m, n))
    low, high = np.array([-0.4, 0.5, -np.inf]), np.array([1.6, np.inf])
    below = rng.integers(0, 3, (m if drawn else 1, n))
    above = rng.integers(0, 2, (m if drawn else 1, n))
    found = simulated_roots(at, 0.0, bend, sigma, scores, below, above, low, high)
    mu = at - 0.5 * bend * sigma**2
    for r in range(m):
        k = r if drawn else 0
        x, a, b = mu + sigma * scores[r], low[below[k]], high[above[k]]
        shown = (a <= x) & (x <= b)
        lower = np.where(x > b, b, -np.inf)[~shown]
        upper = np.where(x < a, a, np.inf)[~shown]
        expected = reference(at, 0.0, bend, x[shown], lower, upper, np.ones(lower.size))[0]
        assert found[r] == pytest.approx(expected, abs=1e-5)


def test_columns_of_which_too_little_is_seen_have_none():
    scores = np.zeros((1, 5)) + np.array([-1.0, -1.0, -1.0, 2.0, 2.5])
    places = np.zeros((1, 5), dtype=np.intp)
    found = simulated_roots(
        0.0, 0.0, 0.0, 1.0, scores, places, places, np.zeros(1), np.full(1, np.inf)
    )
    assert np.isnan(found).all()
