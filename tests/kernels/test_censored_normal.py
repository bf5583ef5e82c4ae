import math

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from halfseen.kernels import censored_normal as kernel


def pack(values, sets):
    """Arguments of the kernel from seen values and (pieces, count) of each hidden set."""
    x = np.asarray(values, dtype=float)
    pieces = [piece for parts, _ in sets for piece in parts]
    start = np.cumsum([0] + [len(parts) for parts, _ in sets])
    ends = np.array(pieces, dtype=float).reshape(-1, 2)
    count = np.array([c for _, c in sets], dtype=float)
    sums = np.array([x.size, x.sum(), (x * x).sum()])
    return sums, start, ends[:, 0].copy(), ends[:, 1].copy(), count


def log_mass(a, b):
    """log(Φ(b) − Φ(a)), by the tail in which it does not cancel."""
    if a > 0:
        a, b = -b, -a
    return special.log_ndtr(b) + np.log1p(-np.exp(special.log_ndtr(a) - special.log_ndtr(b)))


def ref_log_likelihood(mu, sigma, values, sets):
    value = stats.norm.logpdf(values, mu, sigma).sum()
    for parts, count in (item for item in sets if item[1]):
        masses = [log_mass((a - mu) / sigma, (b - mu) / sigma) for a, b in parts]
        value += count * special.logsumexp(masses)
    return value


def ref_fit(values, sets, start=(0.0, 0.0)):
    def cost(p):
        return -ref_log_likelihood(p[0], math.exp(p[1]), values, sets)

    found = optimize.minimize(
        cost, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    )
    return found.x[0], math.exp(found.x[1]), -found.fun


def cases():
    rng = np.random.default_rng(0)
    x = rng.normal(0.3, 1.2, size=120)
    inf = math.inf
    low, high = x < -0.4, x > 1.1
    middle = (x > -0.4) & (x < 0.5)
    yield "all seen", x, []
    yield "below", x[~low], [([(-inf, -0.4)], low.sum())]
    yield "above", x[~high], [([(1.1, inf)], high.sum())]
    yield "between", x[~middle], [([(-0.4, 0.5)], middle.sum())]
    yield "two pieces", x[~low & ~high], [([(-inf, -0.4), (1.1, inf)], (low | high).sum())]
    yield "each side", x[~low & ~high], [([(-inf, -0.4)], low.sum()), ([(1.1, inf)], high.sum())]
    yield "nine tenths hidden", x[x > 1.6], [([(-inf, 1.6)], (x <= 1.6).sum())]
    edges = np.array([-inf, -1.0, 0.0, 1.0, 2.0, inf])
    counts = np.histogram(x, edges)[0]
    yield (
        "only bins",
        x[:0],
        [([(a, b)], c) for a, b, c in zip(edges, edges[1:], counts, strict=False)],
    )
    yield "sets without cells", x[~low], [([(50.0, 51.0)], 0), ([(-inf, -0.4)], low.sum()), ([], 0)]
    limits = rng.normal(size=x.size)
    yield "by row", x[x >= limits], [([(-inf, c)], 1) for c in limits[x < limits]]


@pytest.mark.parametrize(("values", "sets"), [c[1:] for c in cases()], ids=[c[0] for c in cases()])
def test_the_top_is_that_of_a_general_optimiser(values, sets):
    ref = ref_fit(values, sets)
    mu, sigma, value, settled = kernel.fit_censored_normal(*pack(values, sets), 0.0, 1.0)
    assert settled
    # Near the top a likelihood is flat: an error e in it allows √e in the parameters, and
    # the reference stops at 1e-12.
    assert (mu, sigma) == pytest.approx(ref[:2], abs=1e-5)
    assert value == pytest.approx(ref[2], abs=1e-8)
    assert value >= ref[2] - 1e-10


def test_all_seen_has_the_mean_and_the_spread():
    x = np.random.default_rng(1).normal(size=50)
    mu, sigma, value, settled = kernel.fit_censored_normal(*pack(x, []), 0.5, 3.0)
    assert settled
    assert (mu, sigma) == pytest.approx((x.mean(), x.std()), abs=1e-12)
    assert value == pytest.approx(stats.norm.logpdf(x, mu, sigma).sum(), rel=1e-12)


@pytest.mark.parametrize("start", [(0.0, 1.0), (5.0, 0.1), (-8.0, 20.0), (30.0, 1.0)])
def test_the_start_does_not_matter_for_intervals(start):
    x = np.random.default_rng(2).normal(size=200)
    sets = [([(-math.inf, 0.2)], (x < 0.2).sum())]
    near = kernel.fit_censored_normal(*pack(x[x >= 0.2], sets), 0.0, 1.0)
    far = kernel.fit_censored_normal(*pack(x[x >= 0.2], sets), *start)
    assert far[3]
    assert far[:2] == pytest.approx(near[:2], abs=1e-6)


def test_limits_far_away_are_harmless():
    x = np.random.default_rng(3).normal(size=100)
    # Nobody would be hidden 40 standard deviations away, but one was said to be.
    sets = [([(-math.inf, -40.0)], 1)]
    found = kernel.fit_censored_normal(*pack(x, sets), 0.0, 1.0)
    assert found[3]
    assert found[:2] == pytest.approx(ref_fit(x, sets, (0.0, 1.0))[:2], rel=1e-5)
    sets = [([(40.0, math.inf)], 0), ([(-math.inf, math.inf)], 7)]
    found = kernel.fit_censored_normal(*pack(x, sets), 0.0, 1.0)
    assert found[:2] == pytest.approx((x.mean(), x.std()), abs=1e-6)


def test_what_has_no_top_is_said_to_have_none():
    # All hidden on one side: the likelihood grows as the mean moves away.
    *_, settled = kernel.fit_censored_normal(*pack([], [([(-math.inf, 0.0)], 10)]), 0.0, 1.0)
    assert not settled
    sets = [([(-math.inf, 0.0)], 10), ([(-math.inf, 1.0)], 5)]
    *_, settled = kernel.fit_censored_normal(*pack([], sets), 0.0, 1.0)
    assert not settled
    # A single value: the spread shrinks to nothing.
    *_, settled = kernel.fit_censored_normal(*pack([0.3], []), 0.0, 1.0)
    assert not settled


def test_the_gradient_is_that_of_the_log_likelihood():
    rng = np.random.default_rng(4)
    x = rng.normal(size=30)
    sets = [([(-math.inf, -0.5), (1.0, 2.0)], 12), ([(0.0, 0.7)], 5), ([(9.0, 9.5)], 2)]
    packed = pack(x, sets)
    g, H = np.empty(2), np.empty((2, 2))
    kernel.gradient_and_curvature(0.8, 0.3, *packed, g, H)

    def value(p):
        return kernel.log_likelihood(p[0], p[1], *packed)

    # Central differences: errors h² ≈ 1e-10 and 1e-16·|value|/h ≈ 1e-9, of values of the order of 100.
    ref = optimize.approx_fprime([0.8, 0.3], value, 1e-6)
    assert g == pytest.approx(ref, rel=1e-4)


def test_scores_of_hidden_cells_lie_in_their_sets_and_are_uniform_there():
    sets = [([(-math.inf, -1.0)], 400), ([(-0.5, 0.5), (2.0, math.inf)], 600)]
    args = pack([0.1, 0.2], sets)[1:]
    mu, sigma = 0.2, 1.5
    z = kernel.residuals(np.array([0.1, 0.2]), *args, mu, sigma, 0.3)
    assert z[:2] == pytest.approx((np.array([0.1, 0.2]) - mu) / sigma)
    x = mu + sigma * z[2:]
    assert (x[:400] < -1.0).all()
    second = x[400:]
    inside = (second > -0.5) & (second < 0.5)
    assert (inside | (second > 2.0)).all()
    masses = np.diff(stats.norm.cdf([-0.5, 0.5], mu, sigma))[0], stats.norm.sf(2.0, mu, sigma)
    # Golden-ratio points: shares are met within a few of the 600.
    assert inside.mean() == pytest.approx(masses[0] / sum(masses), abs=4 / 600)
    below = stats.norm.cdf(x[:400], mu, sigma) / stats.norm.cdf(-1.0, mu, sigma)
    beyond = stats.norm.sf(second[~inside], mu, sigma) / stats.norm.sf(2.0, mu, sigma)
    for u in (below, beyond):
        # Evenly filled: Kolmogorov's distance far below the 1.36/√n of independent draws.
        even = (np.arange(u.size) + 0.5) / u.size
        assert np.abs(np.sort(u) - even).max() < 4 / u.size


def test_distances_match_their_definitions():
    z = np.random.default_rng(5).normal(size=37) * 1.3
    square, largest = kernel.normal_distances(z)
    assert largest == pytest.approx(stats.kstest(z, "norm").statistic, rel=1e-12)
    # A² = n ∫ (F_n − Φ)² / (Φ(1 − Φ)) dΦ
    ends = np.concatenate([[0.0], np.sort(stats.norm.cdf(z)), [1.0]])
    ref = sum(
        integrate.quad(lambda u, k=k: (k / 37 - u) ** 2 / (u * (1 - u)), ends[k], ends[k + 1])[0]
        for k in range(38)
    )
    assert square == pytest.approx(37 * ref, rel=1e-6)


def test_distances_are_finite_far_out():
    square, largest = kernel.normal_distances(np.array([-60.0, 0.0, 60.0]))
    assert math.isfinite(square)
    assert 0.3 < largest < 0.4


def test_averages_over_phases():
    sets = [([(-math.inf, 0.0)], 20)]
    x = np.linspace(0.1, 2.0, 20)
    args = pack(x, sets)[1:]
    both = kernel.cell_distances(x, *args, 0.0, 1.0, np.array([0.1, 0.6]))
    each = [
        kernel.normal_distances(kernel.residuals(x, *args, 0.0, 1.0, phase)) for phase in (0.1, 0.6)
    ]
    assert both == pytest.approx(np.mean(each, axis=0))
