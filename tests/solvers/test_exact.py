"""The exact solvers against naive optimisation of the same likelihoods, and what puts pairs together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import expit

import halfseen as hs
from halfseen.solvers.correlations import assemble
from tests import naive

N = 400
TRUTH = hs.Gaussian([0.3, -0.5], [[1.0, 0.6], [0.6, 1.44]])
UNION = hs.between(-1.5, 0.2) | hs.at_least(0.8)
SETS = {
    "intervals": (hs.at_least(-0.4), hs.between(-2.0, 0.9)),
    "unions": (UNION, hs.at_most(-0.6) | hs.between(0.0, 3.0)),
    "predicates": (
        hs.Predicate(lambda x: ((x >= -1.5) & (x <= 0.2)) | (x >= 0.8)),
        hs.Predicate(lambda x: x > -1.3),
    ),
}
# The same sets as intervals, for the oracles.
PIECES = {
    "intervals": SETS["intervals"],
    "unions": SETS["unions"],
    "predicates": (UNION, hs.at_least(-1.3)),
}


def _data(kind, seed=5):
    rule = hs.SelfCensoring(SETS[kind])
    return rule, hs.simulate(TRUTH, rule, N, seed)


def _seen(X, column):
    return X[~np.isnan(X[:, column]), column]


@pytest.mark.parametrize("kind", SETS)
def test_truncation_marginals_equal_naive_optimisation(kind):
    rule, X = _data(kind)
    fit = hs.fit(X, rule, "truncation")
    for i in range(2):
        mu, sigma = naive.truncated_line_mle(_seen(X, i), naive.pieces_of(PIECES[kind][i]))
        assert fit.mean[i] == pytest.approx(mu, abs=1e-6 * sigma)
        assert fit.gaussian.standard_deviations[i] == pytest.approx(sigma, rel=1e-6)


@pytest.mark.parametrize("kind", SETS)
def test_truncation_correlation_equals_naive_optimisation(kind):
    rule, X = _data(kind)
    fit = hs.fit(X, rule, "truncation")
    marginals = list(zip(fit.mean, fit.gaussian.standard_deviations, strict=True))
    left, right = (naive.pieces_of(s) for s in PIECES[kind])
    both = int((~np.isnan(X).any(axis=1)).sum())
    rho = naive.correlation_mle(
        X,
        marginals,
        lambda r: {"both": naive.product_mass(marginals, r, left, right)},
        {"both": -both},
    )
    assert fit.correlation[0, 1] == pytest.approx(rho, abs=1e-6)


@pytest.mark.parametrize("kind", SETS)
def test_truncation_in_the_papers_form_equals_naive_optimisation(kind):
    rule, X = _data(kind)
    fit = hs.fit(X, rule, "truncation", form="paper")
    left, right = (naive.pieces_of(s) for s in PIECES[kind])
    _, ref = naive.truncated_plane_mle(X[~np.isnan(X).any(axis=1)], left, right)
    comp = fit.history["covariance_before_projection"][0, 1]
    assert comp == pytest.approx(ref[0, 1], abs=1e-6)


@pytest.mark.parametrize("kind", SETS)
def test_pairwise_equals_naive_optimisation(kind):
    rule, X = _data(kind)
    fit = hs.fit(X, rule, "pairwise")
    seen = ~np.isnan(X)
    for i in range(2):
        x = _seen(X, i)
        hidden = naive.pieces_of(~PIECES[kind][i])
        mu, sigma = naive.censored_line_mle(x, N - x.size, hidden, (x.mean(), x.std()))
        assert fit.mean[i] == pytest.approx(mu, abs=1e-6 * sigma)
        assert fit.gaussian.standard_deviations[i] == pytest.approx(sigma, rel=1e-6)
    marginals = list(zip(fit.mean, fit.gaussian.standard_deviations, strict=True))
    shown = [naive.pieces_of(s) for s in PIECES[kind]]
    gone = [naive.pieces_of(~s) for s in PIECES[kind]]

    def masses(r):
        return {
            (a, b): naive.product_mass(
                marginals, r, shown[0] if a else gone[0], shown[1] if b else gone[1]
            )
            for a, b in ((True, False), (False, True), (False, False))
        }

    cells = {
        (a, b): int(((seen[:, 0] == a) & (seen[:, 1] == b)).sum())
        for a, b in ((True, False), (False, True), (False, False))
    }
    rho = naive.correlation_mle(X, marginals, masses, cells)
    assert fit.correlation[0, 1] == pytest.approx(rho, abs=1e-6)


SHOWN = (lambda x: expit(2 * x + 0.5), lambda x: expit(-1.5 * (x - 0.4)))
LINE = [(-60.0, 60.0)]


@pytest.fixture(scope="module")
def sometimes():
    rule = hs.SelfCensoring([hs.Probability(f) for f in SHOWN])
    return rule, hs.simulate(TRUTH, rule, N, 6)


def test_truncation_with_probabilities_equals_naive_optimisation(sometimes):
    rule, X = sometimes
    fit = hs.fit(X, rule, "truncation")
    for i in range(2):
        mu, sigma = naive.truncated_line_mle(_seen(X, i), LINE, SHOWN[i])
        assert fit.mean[i] == pytest.approx(mu, abs=1e-6 * sigma)
        assert fit.gaussian.standard_deviations[i] == pytest.approx(sigma, rel=1e-6)


def test_pairwise_with_probabilities_equals_naive_optimisation(sometimes):
    rule, X = sometimes
    fit = hs.fit(X, rule, "pairwise")
    seen = ~np.isnan(X)
    for i in range(2):
        x = _seen(X, i)
        mu, sigma = naive.censored_line_mle(
            x, N - x.size, LINE, (x.mean(), x.std()), lambda t, i=i: 1 - SHOWN[i](t)
        )
        assert fit.mean[i] == pytest.approx(mu, abs=1e-6 * sigma)
        assert fit.gaussian.standard_deviations[i] == pytest.approx(sigma, rel=1e-6)
    marginals = list(zip(fit.mean, fit.gaussian.standard_deviations, strict=True))
    alone = [naive.line_moments(*m, LINE, f)[0] for m, f in zip(marginals, SHOWN, strict=True)]

    def masses(r):
        both = naive.product_mass(marginals, r, LINE, LINE, *SHOWN)
        return {
            (True, False): alone[0] - both,
            (False, True): alone[1] - both,
            (False, False): 1 - alone[0] - alone[1] + both,
        }

    cells = {
        (a, b): int(((seen[:, 0] == a) & (seen[:, 1] == b)).sum())
        for a, b in ((True, False), (False, True), (False, False))
    }
    rho = naive.correlation_mle(X, marginals, masses, cells)
    assert fit.correlation[0, 1] == pytest.approx(rho, abs=1e-6)


def test_probabilities_of_zero_and_one_are_intervals():
    step = hs.Probability(lambda x: (x >= -0.4).astype(float))
    exact = hs.SelfCensoring([hs.at_least(-0.4), hs.between(-2.0, 0.9)])
    X = hs.simulate(TRUTH, exact, 2000, 1)
    for method, form in (("pairwise", {}), ("truncation", {}), ("truncation", {"form": "paper"})):
        ref = hs.fit(X, exact, method, **form)
        comp = hs.fit(X, hs.SelfCensoring([step, hs.between(-2.0, 0.9)]), method, **form)
        # The Hermite series of a set with jumps is cut at 256 terms: 0.6^256 is nothing.
        np.testing.assert_allclose(comp.mean, ref.mean, atol=1e-8)
        np.testing.assert_allclose(comp.covariance, ref.covariance, rtol=1e-7)


@pytest.mark.parametrize("method", ["truncation", "pairwise"])
def test_limits_by_row_that_are_all_equal_change_nothing(method):
    flat = hs.DetectionLimits(lower=[-0.4, -0.9], upper=[2.0, np.nan])
    tall = hs.DetectionLimits(
        lower=np.tile([-0.4, -0.9], (N, 1)), upper=np.tile([2.0, np.nan], (N, 1))
    )
    X = hs.simulate(TRUTH, flat, N, 2)
    ref, comp = hs.fit(X, flat, method), hs.fit(X, tall, method)
    np.testing.assert_allclose(comp.mean, ref.mean, rtol=1e-10)
    np.testing.assert_allclose(comp.covariance, ref.covariance, rtol=1e-10)


def test_limits_by_row_equal_naive_optimisation():
    limits = np.random.default_rng(0).uniform(-1.0, 0.3, size=(N, 2))
    rule = hs.DetectionLimits(lower=limits)
    X = hs.simulate(TRUTH, rule, N, 3)
    seen = ~np.isnan(X)

    def marginal_score(p, i, censored):
        # d/d(mu, log sigma) of the log-likelihood, row by row
        mu, sigma = p[0], np.exp(p[1])
        z, t = (X[:, i] - mu) / sigma, (limits[:, i] - mu) / sigma
        z = np.where(seen[:, i], z, 0.0)
        density = np.exp(-t * t / 2) / np.sqrt(2 * np.pi)
        mass = np.array([naive.cdf(v, 0, 1) for v in t])
        data = np.array([z, z * z - 1])
        hidden = -density / mass * np.array([np.ones(N), t])
        shown = density / (1 - mass) * np.array([np.ones(N), t])
        total = np.where(seen[:, i], data - (0 if censored else shown), hidden if censored else 0)
        return total.mean(axis=1)

    from scipy.optimize import root

    for method, censored in (("truncation", False), ("pairwise", True)):
        fit = hs.fit(X, rule, method)
        for i in range(2):
            start = [np.nanmean(X[:, i]) - 0.2, np.log(np.nanstd(X[:, i]) * 1.2)]
            ref = root(marginal_score, start, args=(i, censored), tol=1e-12).x
            assert fit.mean[i] == pytest.approx(ref[0], abs=1e-6)
            assert fit.gaussian.standard_deviations[i] == pytest.approx(np.exp(ref[1]), rel=1e-6)
        _check_correlation_by_row(fit, X, limits, seen, censored)


def _check_correlation_by_row(fit, X, limits, seen, censored):
    from scipy.optimize import minimize_scalar
    from scipy.stats import multivariate_normal

    m, s = fit.mean, fit.gaussian.standard_deviations
    z, t = (X - m) / s, (limits - m) / s
    p = np.array([[naive.cdf(-v, 0, 1) for v in row] for row in t])

    def loss(rho):
        joint = multivariate_normal(cov=[[1, rho], [rho, 1]]).cdf(-t)
        masses = np.stack(
            [joint, p[:, 0] - joint, p[:, 1] - joint, 1 - p[:, 0] - p[:, 1] + joint], axis=1
        )
        both = seen.all(axis=1)
        u, v = z[both].T
        value = (0.5 * (u**2 - 2 * rho * u * v + v**2) / (1 - rho**2)).sum()
        value += 0.5 * both.sum() * np.log(1 - rho**2)
        if not censored:
            return value + np.log(masses[both, 0]).sum()
        cell = np.where(seen[:, 0], 1, np.where(seen[:, 1], 2, 3))
        return value - np.log(masses[np.arange(N), cell])[~both].sum()

    ref = minimize_scalar(loss, bounds=(-0.9, 0.95), method="bounded", options={"xatol": 1e-9}).x
    assert fit.correlation[0, 1] == pytest.approx(ref, abs=2e-6)


def test_nothing_hidden_gives_the_sample_moments():
    Y = TRUTH.sample(300, 4)
    for method in ("truncation", "pairwise"):
        fit = hs.fit(Y, None, method)
        np.testing.assert_allclose(fit.mean, Y.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(fit.covariance, np.cov(Y.T, bias=True), rtol=1e-8)
    paper = hs.fit(Y, None, "truncation", form="paper")
    np.testing.assert_allclose(paper.covariance, np.cov(Y.T, bias=True), rtol=1e-8)


def test_columns_of_one_sided_limits_have_one_top(rng):
    # From every start: the censored log-likelihood is concave in (μ/σ, 1/σ).
    limits = hs.DetectionLimits(lower=np.where(rng.random((80, 1)) < 0.5, -0.5, 0.4))
    X = np.asarray(hs.simulate(hs.Gaussian([0.0], [[1.0]]), limits, 80, 1))
    lower, hidden = limits.lower[:, 0], np.isnan(X[:, 0])

    def fall(place):
        mean, deviation = place[0], np.exp(place[1])
        seen = stats.norm.logpdf(X[~hidden, 0], mean, deviation).sum()
        return -seen - stats.norm.logcdf(lower[hidden], mean, deviation).sum()

    found = hs.fit(X, limits, method="pairwise")
    for start in ([-6.0, 1.5], [4.0, -1.0], [0.0, 2.0]):
        # SciPy's simplex stops within 1e-8 in every direction.
        ref = optimize.minimize(
            fall, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12}
        )
        np.testing.assert_allclose(found.mean[0], ref.x[0], atol=1e-6)
        np.testing.assert_allclose(np.sqrt(found.covariance[0, 0]), np.exp(ref.x[1]), atol=1e-6)


@pytest.mark.parametrize(
    ("bands", "n", "seed"),
    [
        ([(0.67, 1.06), (1.93, 2.48)], 2000, 175),  # from the seen moments: 81 below the top
        ([(-3.27, -2.05), (-2.02, -1.41), (-0.74, -0.08)], 20, 453),  # from seen values alone: 1.6
    ],
)
def test_columns_of_several_bands_take_the_better_of_two_starts(bands, n, seed):
    shown = hs.between(*bands[0])
    for band in bands[1:]:
        shown |= hs.between(*band)
    rule = hs.SelfCensoring(shown)
    X = np.asarray(hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, n, seed))
    seen = X[~np.isnan(X)]

    def fall(place):
        mean, deviation = place[0], np.exp(place[1])
        share = sum(np.diff(stats.norm.cdf(band, mean, deviation))[0] for band in bands)
        if share >= 1.0:
            return np.inf
        shown = stats.norm.logpdf(seen, mean, deviation).sum()
        return -shown - (n - seen.size) * np.log1p(-share)

    fit = hs.fit(X, rule, method="pairwise")
    here = fall([fit.mean[0], 0.5 * np.log(fit.covariance[0, 0])])
    grid = [(mean, spread) for mean in np.linspace(-3, 3, 7) for spread in (-1.0, 0.0, 1.0)]
    tops = [optimize.minimize(fall, start, method="Nelder-Mead").fun for start in grid]
    # SciPy's simplex stops within 1e-4 of its top.
    assert here <= min(tops) + 1e-4


def test_the_nonconvex_example_of_the_paper_is_solved_from_the_convex_start():
    # S = [2, 4], mu = 0: the censored likelihood is not convex; the truth is recovered all the same.
    rule = hs.SelfCensoring(hs.between(2, 4))
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 100_000, 0)
    fit = hs.fit(X, rule, "pairwise")
    x = X[~np.isnan(X)]
    # Fisher information of one row at the truth, by numerical differentiation of the log-likelihood.
    step = 1e-4

    def score(mu, sigma):
        def total(m, s):
            inside = naive.cdf(4, m, s) - naive.cdf(2, m, s)
            seen = -0.5 * ((x - m) / s) ** 2 - np.log(s)
            return (seen.sum() + (len(X) - x.size) * np.log(1 - inside)) / len(X)

        return np.array(
            [
                (total(mu + step, sigma) - total(mu - step, sigma)) / (2 * step),
                (total(mu, sigma + step) - total(mu, sigma - step)) / (2 * step),
            ]
        )

    information = -np.stack(
        [
            (score(step, 1.0) - score(-step, 1.0)) / (2 * step),
            (score(0.0, 1.0 + step) - score(0.0, 1.0 - step)) / (2 * step),
        ]
    )
    error = np.sqrt(np.diag(np.linalg.inv(information)) / len(X))
    assert abs(fit.mean[0]) < 4 * error[0]
    assert abs(fit.gaussian.standard_deviations[0] - 1) < 4 * error[1]


@given(st.integers(0, 2**32 - 1), st.integers(2, 8))
def test_projection_is_positive_definite_and_never_increases_the_error(seed, d):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d + 2))
    truth = A @ A.T
    scale = np.sqrt(np.diag(truth))
    truth = truth / np.outer(scale, scale)
    floor = min(1e-3, 0.5 * np.linalg.eigvalsh(truth)[0])
    i, j = np.triu_indices(d, 1)
    rho = np.clip(truth[i, j] + 0.5 * rng.normal(size=i.size), -1, 1)
    covariance, before, projected = assemble(np.ones(d), rho, floor)
    assert np.linalg.eigvalsh(covariance)[0] >= floor * (1 - 1e-9)
    assert np.linalg.norm(covariance - truth) <= np.linalg.norm(before - truth) + 1e-12
    assert projected == (np.linalg.eigvalsh(before)[0] < floor)
    if not projected:
        np.testing.assert_array_equal(covariance, before)


def test_units_do_not_matter():
    rho = np.array([0.9, -0.9, 0.9])
    scale = np.array([1e-3, 1.0, 1e4])
    plain, _, _ = assemble(np.ones(3), rho)
    scaled, _, projected = assemble(scale, rho)
    assert projected
    np.testing.assert_allclose(scaled, plain * np.outer(scale, scale), rtol=1e-13)
