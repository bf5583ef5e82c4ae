"""Louis' identity against Hessians of exact log-likelihoods."""

import numpy as np
import pytest
from scipy.special import expit

import halfseen as hs
from halfseen.parallel import single_blas_thread
from halfseen.solvers.full_information import information as module
from halfseen.solvers.full_information.charts import Chart, information_along
from halfseen.solvers.full_information.information import LARGEST_SHARE
from halfseen.solvers.full_information.m_step import (
    Diagonal,
    Free,
    Known,
    KnownCorrelation,
    MStep,
)
from halfseen.solvers.inference.likelihood import row_log_likelihoods
from halfseen.theta import pack, unpack
from tests import naive
from tests.solvers.full_information.held import information, pair_errors, table


def _closed_form(S, n):
    """Covariance of the mean and of (Σ_ij, i >= j) from n complete rows."""
    d = len(S)
    i, j = np.tril_indices(d)
    out = np.zeros((d + i.size, d + i.size))
    out[:d, :d] = S
    for a, (p, q) in enumerate(zip(i, j, strict=True)):
        for b, (r, s) in enumerate(zip(i, j, strict=True)):
            out[d + a, d + b] = S[p, r] * S[q, s] + S[p, s] * S[q, r]
    return out / n


def _compare(comp, ref, tolerance):
    """Two covariances agree in every direction, not only on the diagonal."""
    L = np.linalg.cholesky(ref)
    ratio = np.linalg.eigvalsh(np.linalg.solve(L, np.linalg.solve(L, comp).T))
    np.testing.assert_allclose(ratio, 1.0, atol=tolerance)


def test_information_along_a_basis_is_the_whole_between_it(three):
    rng = np.random.default_rng(4)
    whole = naive.complete_information(three.precision)
    # Parameters that move the mean, the covariance, or both.
    basis = rng.normal(size=(len(whole), 4))
    basis[3:, 0] = basis[:3, 1] = 0.0
    for chosen in (basis, basis[:, :1], basis[:, 1:2]):
        comp = information_along(three.precision, chosen)
        np.testing.assert_allclose(comp, chosen.T @ whole @ chosen, rtol=1e-12, atol=1e-12)


def test_a_known_covariance_of_many_columns_fits_in_memory():
    # The whole information of 300 columns would take 15 GiB.
    d = 300
    basis = np.zeros((d + d * (d + 1) // 2, d))
    basis[:d] = np.eye(d)
    np.testing.assert_array_equal(information_along(np.eye(d), basis), np.eye(d))


def test_complete_information_is_the_hessian_of_the_expected_log_likelihood(three):
    at = pack(three.mean, three.covariance)

    def expected(theta):
        mean, S = unpack(theta, 3)
        spread = three.covariance + np.outer(mean - three.mean, mean - three.mean)
        return -0.5 * (np.linalg.slogdet(S)[1] + np.trace(np.linalg.solve(S, spread)))

    steps = 1e-3 * np.diag(np.sqrt(np.diag(_closed_form(three.covariance, 1))))
    size = at.size
    hessian = np.empty((size, size))
    for a in range(size):
        for b in range(size):
            ends = [
                s * t * expected(at + s * steps[a] + t * steps[b]) for s in (1, -1) for t in (1, -1)
            ]
            hessian[a, b] = sum(ends) / (4.0 * steps[a, a] * steps[b, b])
    comp = naive.complete_information(three.precision)
    # Differences at steps of 1e-3 are good to 1e-6 (truncation) and 1e-16/1e-6 (rounding).
    units = np.sqrt(np.diag(comp))
    np.testing.assert_allclose(
        comp / np.outer(units, units), -hessian / np.outer(units, units), atol=1e-4
    )
    # And the inverse of the closed form.
    np.testing.assert_allclose(np.linalg.inv(comp), _closed_form(three.covariance, 1), atol=1e-9)


def test_with_nothing_hidden_the_covariance_is_the_closed_form(three):
    # At the moments of the rows. (Elsewhere what they say differs from what they say on average.)
    Y, holes = table(three, hs.DetectionLimits(lower=-1e6), 100)
    mean, covariance = Y.mean(axis=0), np.cov(Y.T, bias=True)
    found = information(Y, holes, mean, covariance)
    ref = _closed_form(covariance, 100)
    np.testing.assert_allclose(found.covariance(), ref, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.variances(), np.diag(ref), rtol=1e-8)
    np.testing.assert_allclose(found.missing, 0.0, atol=1e-10)
    assert (found.lost == 0.0).all()
    assert (found.noise == 0.0).all()


def test_of_independent_columns_only_variances_are_uncertain():
    truth = hs.Gaussian([0.0, 1.0], np.diag([1.0, 4.0]))
    Y = truth.sample(50, 0)
    at = Y.mean(axis=0), np.diag(Y.var(axis=0))
    found = information(
        *table(truth, hs.DetectionLimits(lower=-1e6), 50), *at, m_step=MStep(Diagonal())
    )
    v = Y.var(axis=0)
    ref = np.array([v[0], v[1], 2.0 * v[0] ** 2, 0.0, 2.0 * v[1] ** 2]) / 50
    np.testing.assert_allclose(found.variances(), ref, rtol=1e-8, atol=1e-15)


# Where information is missing. The identity holds wherever it is asked, in coordinates in which mean and
# covariance are linear.

ONE = hs.Gaussian([0.3], [[1.4]])
TWO = hs.Gaussian([0.2, -0.3], [[1.0, 0.6], [0.6, 1.5]])
FOUR = hs.Gaussian(
    [0.2, -0.1, 0.4, 0.0],
    [[1.0, 0.5, -0.3, 0.2], [0.5, 1.5, 0.4, 0.1], [-0.3, 0.4, 0.8, 0.3], [0.2, 0.1, 0.3, 0.6]],
)
EXACT = {
    "one, below a limit": (ONE, hs.DetectionLimits(lower=0.0)),
    "one, two sides": (ONE, hs.SelfCensoring(hs.between(-1.0, 1.5))),
    "one, by chance": (ONE, hs.SelfCensoring(hs.Probability(lambda x: expit(1.5 * x)))),
    "two, below limits": (TWO, hs.DetectionLimits(lower=[-0.3, -0.5])),
    "two, two sides": (TWO, hs.SelfCensoring(hs.between(-1.0, 1.0))),
    "two, the smaller": (TWO, hs.LinearThreshold([[1.0, -1.0], [-1.0, 1.0]], [0.6, 0.6])),
    "two, missing at random": (TWO, None),
    "four, limits and missing at random": (FOUR, hs.DetectionLimits(lower=[0.0, 0.3, np.nan, np.nan])),
}  # fmt: skip


def _holed(name, n=300):
    truth, rule = EXACT[name]
    X, holes = table(truth, rule or hs.DetectionLimits(lower=-1e6), n)
    if "at random" in name:
        mask = np.random.default_rng(1).random(X.shape) < 0.3
        mask[mask.all(axis=1)] = False
        X[mask] = np.nan
        holes = holes.with_missing_at_random(mask)
    return truth, X, holes


def _hessian(function, size, h=0.02):
    """Second derivatives at 0, by central differences of two widths (Richardson): some h⁴."""

    def difference(k, m, width):
        total = 0.0
        for p in (1, -1):
            for q in (1, -1):
                step = np.zeros(size)
                step[k] += p * width
                step[m] += q * width
                total += p * q * function(step)
        return total / (4.0 * width**2)

    out = np.empty((size, size))
    for k in range(size):
        for m in range(k + 1):
            wide, narrow = (difference(k, m, width) for width in (h, h / 2))
            out[k, m] = out[m, k] = (4.0 * narrow - wide) / 3.0
    return out


def _seen(found):
    """The information itself, in coordinates of the chart."""
    inward = np.linalg.inv(found.directions)
    return inward.T @ np.diag(1.0 - found.missing) @ inward


def _both(X, holes, mean, covariance, m_step, seed=0):
    """The information, and minus the Hessian of the log-likelihood, of what complete rows would say."""
    chart = Chart(m_step, mean, covariance, len(X))

    def log_likelihood(step):
        values, variance = row_log_likelihoods(X, holes, *chart.moved(step), n_jobs=1)
        assert (variance == 0.0).all()
        return values.sum()

    found = information(X, holes, mean, covariance, seed, m_step=m_step)
    complete = np.diag(chart.complete) if chart.complete.ndim == 1 else chart.complete
    unit = np.sqrt(np.outer(np.diag(complete), np.diag(complete)))
    ref = -_hessian(log_likelihood, len(complete))
    return found, _seen(found) / unit, ref / unit


@pytest.mark.parametrize("name", EXACT)
def test_observed_information_is_the_hessian_of_the_log_likelihood(name):
    truth, X, holes = _holed(name)
    found, comp, ref = _both(X, holes, truth.mean, truth.covariance, MStep(Free()))
    # h⁴ = 1.6e-7 times sixth derivatives of order ten, and rounding of sums, 1e-13·300/h²/300. As shares
    # of what complete rows would say.
    np.testing.assert_allclose(comp, ref, rtol=0, atol=2e-6)
    assert 0.1 < found.missing[-1] < 1.0
    assert (found.noise == 0.0).all()


@pytest.mark.parametrize(
    "m_step",
    [
        MStep(Diagonal()),
        MStep(Known(TWO.covariance)),
        MStep(Free(), TWO.mean),
        MStep(Diagonal(), TWO.mean),
    ],
    ids=["diagonal", "known covariance", "known mean", "variances alone"],
)
def test_observed_information_of_structures(m_step):
    _, X, holes = _holed("two, below limits")
    covariance = TWO.covariance
    if isinstance(m_step.structure, Diagonal):
        covariance = np.diag(np.diag(covariance))
    found, comp, ref = _both(X, holes, TWO.mean, covariance, m_step)
    np.testing.assert_allclose(comp, ref, rtol=0, atol=2e-6)
    assert found.covariance().shape == (5, 5)


def test_observed_information_of_scales_of_a_known_correlation():
    # Free: μ and log s. The space is curved, and the score across it is 0 on average only.
    R = TWO.correlation
    X, holes = table(TWO, hs.DetectionLimits(lower=[-0.3, -0.5]), 3000)

    def parameters(theta):
        return theta[:2], R * np.exp(theta[2:, None] + theta[2:])

    def log_likelihood(theta):
        return row_log_likelihoods(X, holes, *parameters(theta))[0].sum()

    start = np.concatenate([TWO.mean, np.log(TWO.standard_deviations)])
    top, ref = naive.maximum_likelihood(log_likelihood, start, np.full(4, 1e-3))
    mean, covariance = parameters(top)
    found = information(X, holes, mean, covariance, m_step=MStep(KnownCorrelation(R)))
    assert found.inverse().shape == (4, 4)
    # Of the order of 1/√3000, four times.
    _compare(found.inverse(), ref, 0.08)
    known = information(X, holes, mean, covariance, m_step=MStep(KnownCorrelation(R), mean))
    # With the mean known, the block of the Hessian that is left.
    _compare(known.inverse(), np.linalg.inv(np.linalg.inv(ref)[2:, 2:]), 0.08)


def test_at_the_top_standard_errors_are_those_of_the_hessian():
    truth, X, holes = _holed("two, below limits", 1500)

    def log_likelihood(theta):
        return row_log_likelihoods(X, holes, *unpack(theta, 2))[0].sum()

    steps = 0.05 * np.sqrt(np.diag(_closed_form(truth.covariance, 1500)))
    top, ref = naive.maximum_likelihood(log_likelihood, pack(truth.mean, truth.covariance), steps)
    found = information(X, holes, *unpack(top, 2))
    # The oracle's differences are good to a thousandth.
    _compare(found.covariance(), ref, 0.003)
    np.testing.assert_allclose(found.variances(), np.diag(found.covariance()), rtol=1e-10)
    # How far the truth is, in standard errors.
    step = pack(truth.mean, truth.covariance) - top
    far = np.sqrt(step @ np.linalg.solve(ref, step) / step.size)
    assert found.moved(truth.mean, truth.covariance) == pytest.approx(far, rel=0.01)
    assert found.moved(*unpack(top, 2)) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("mean", [False, True], ids=["mean to be found", "known mean"])
def test_complete_rows_in_a_plane_say_all_about_it(mean):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 2))
    X = np.column_stack([Z, Z.sum(axis=1)])
    fit = hs.fit(X, hs.DetectionLimits(lower=-99.0), "full", mean=np.zeros(3) if mean else None)
    assert fit.status is hs.Status.PROJECTED
    ref = np.sqrt(np.diag(_closed_form(fit.covariance, 200)))[3:]
    np.testing.assert_allclose(fit.standard_errors.vector()[3:], ref, rtol=1e-4)


@pytest.mark.parametrize("rows", [1000, 300], ids=["all rows", "some rows"])
def test_columns_that_are_never_hidden_have_closed_forms(rows, monkeypatch):
    # The second of three columns; at the top, where the oracle differentiates.
    monkeypatch.setattr(module, "FEWEST_ROWS", rows)
    monkeypatch.setattr(module, "MOST_PRODUCTS", 1.0)
    truth = FOUR.marginal([0, 1, 2])
    X, holes = table(truth, hs.DetectionLimits(lower=[0.0, np.nan, -0.2]), 1000)

    def log_likelihood(theta):
        return row_log_likelihoods(X, holes, *unpack(theta, 3))[0].sum()

    closed = _closed_form(np.cov(X[:, [1]].T, bias=True).reshape(1, 1), 1000)
    steps = 0.05 * np.sqrt(np.diag(_closed_form(truth.covariance, 1000)))
    top, ref = naive.maximum_likelihood(log_likelihood, pack(truth.mean, truth.covariance), steps)
    mean, S = unpack(top, 3)
    own = [1, 3 + 2]  # in (μ, Σ_ij for i >= j)
    everywhere = [(mean, S), (mean + np.array([0.2, 0.0, -0.1]), S + np.diag([0.3, 0.0, 0.1]))]
    for place in everywhere:
        found = information(X, holes, *place).covariance()[np.ix_(own, own)]
        # The oracle's top is good to some 1e-5 standard errors.
        np.testing.assert_allclose(found, closed, rtol=1e-4, atol=1e-9)
    if rows == 1000:
        # The oracle's differences are good to a thousandth.
        _compare(information(X, holes, mean, S).covariance(), ref, 0.003)


def test_sampled_rows_are_known_to_their_noise():
    # Rows with three and four confined cells: seeds differ by as much as they say, and their average is
    # what many points say.
    X, holes = table(FOUR, hs.DetectionLimits(lower=[0.3, 0.4, 0.6, 0.2]), 400)
    at = FOUR.mean, FOUR.covariance
    found = [information(X, holes, *at, seed=seed) for seed in range(8)]
    seen = np.array([_seen(one) for one in found])
    V = found[0].directions
    along = np.einsum("ik,sij,jk->sk", V, seen, V)
    spread = along.std(axis=0, ddof=1)
    reported = np.sqrt(np.mean([one.noise**2 for one in found], axis=0))
    # What complete rows would say is 1 in these directions.
    assert 0.0 < spread.max() < module.SHARE_ERROR
    # Eight values know a spread to a quarter, what is reported is one difference in each: over 14
    # directions that move together, within a factor of two.
    ratio = np.sqrt(np.mean(spread**2) / np.mean(reported**2))
    assert 0.4 < ratio < 2.5


def test_what_is_hardly_known_is_capped():
    # Below a limit that 99.6 % of rows are under: 12 of 3000 are seen.
    X, holes = table(ONE, hs.DetectionLimits(lower=0.3 + 2.65 * np.sqrt(1.4)), 3000)
    found = information(X, holes, ONE.mean, ONE.covariance)
    assert found.missing[-1] > 0.97
    assert found.lost[-1] == pytest.approx(found.missing[-1], abs=0.01)
    whole = np.linalg.inv(np.diag(Chart(MStep(Free()), ONE.mean, ONE.covariance, 3000).complete))
    for most in (0.9, LARGEST_SHARE):
        ratio = np.linalg.eigvalsh(found.inverse(most)) / np.diag(whole).min()
        assert ratio[-1] < 2.001 / (1.0 - most)
    assert np.isfinite(found.covariance()).all()


def test_cells_missing_at_random_are_not_lost_to_a_rule():
    _, X, holes = _holed("two, missing at random")
    found = information(X, holes, TWO.mean, TWO.covariance)
    assert found.missing[-1] > 0.3
    np.testing.assert_allclose(found.lost, 0.0, atol=1e-12)


def test_threads_change_no_bit_of_the_information():
    X, holes = table(FOUR, hs.DetectionLimits(lower=0.3), 3000)
    at = FOUR.mean, FOUR.covariance
    with single_blas_thread():
        one, two = (information(X, holes, *at, 3, jobs) for jobs in (1, 2))
        other = information(X, holes, *at, 4)
    np.testing.assert_array_equal(one.covariance(), two.covariance())
    assert (one.covariance() != other.covariance()).any()


def test_many_rows_are_judged_by_some(monkeypatch):
    X, holes = table(ONE, hs.DetectionLimits(lower=0.0), 4000)
    ref = information(X, holes, ONE.mean, ONE.covariance)
    monkeypatch.setattr(module, "MOST_PRODUCTS", 1.0)
    monkeypatch.setattr(module, "FEWEST_ROWS", 1000)
    comp = information(X, holes, ONE.mean, ONE.covariance)
    # The share that is missing, about a half, is an average over 1000 of the rows: its standard error
    # is below 1/√1000 = 3 %, and −∂² log f is taken at its mean. Four of these.
    np.testing.assert_allclose(comp.variances(), ref.variances(), rtol=0.13)


# Two columns at a time ------------------------------------------------------------------------------


def _pairs_and_whole(rule, n=2000, truth=FOUR):
    X, holes = table(truth, rule, n)
    # At the top of the likelihood: pairs take the information of complete rows at its mean.
    top = hs.solvers.full(X, rule, standard_errors=False, random_state=0, n_jobs=1)
    args = X, holes, top.mean, top.covariance
    with single_blas_thread():
        pairs = pair_errors(*args, 7, None)
        whole = information(*args)
    return pairs, whole, *unpack(whole.variances(), truth.dimension)


@pytest.mark.parametrize(
    "rule",
    [hs.DetectionLimits(lower=[-0.4, -0.6, 0.0, -0.3]), hs.SelfCensoring(hs.between(-1.0, 1.0))],
    ids=["limits", "two sides"],
)
def test_pairs_agree_with_the_whole_information(rule):
    pairs, _, mean, covariance = _pairs_and_whole(rule)
    # 10 %: what a pair neglects is of second order in the correlations, and the noise of 2·40 scores of
    # each of 2000 rows is 1 or 2 %.
    # What pairs neglect is up to an eighth of a standard error where both sides are hidden.
    np.testing.assert_allclose(np.sqrt(pairs.mean), np.sqrt(mean), rtol=0.15)
    np.testing.assert_allclose(np.sqrt(pairs.covariance[0]), np.sqrt(covariance), rtol=0.15)


def test_a_pair_of_two_columns_is_the_whole_information():
    # Nothing is neglected, and column 0 loses much more than column 1.
    pairs, whole, mean, covariance = _pairs_and_whole(
        hs.DetectionLimits(lower=[0.5, -1.5]), 2000, TWO
    )
    # The noise of pairs, of 2·40 draws of each row, is 3 % in the variance that is known least; three of
    # these.
    np.testing.assert_allclose(pairs.mean, mean, rtol=0.1)
    np.testing.assert_allclose(pairs.covariance[0], covariance, rtol=0.1)
    # Covariances of the estimates of (σ_ij, σ_ii, σ_jj) among 2: Σ₀₀, 3: Σ₁₀, 4: Σ₁₁.
    V = whole.covariance() / np.sqrt(np.outer(whole.variances(), whole.variances()))
    assert abs(V[3, 2] - V[3, 4]) > 0.1
    found = [pairs.covariance[1], pairs.covariance[2], pairs.variances[1]]
    for (i, j), (a, b) in {(1, 0): (4, 2), (0, 1): (2, 4)}.items():
        for part, p, q in zip(found, (3, 3, a), (a, b, b), strict=True):
            size = np.sqrt(whole.covariance()[p, p] * whole.covariance()[q, q])
            assert part[i, j] / size == pytest.approx(V[p, q], abs=0.05), (i, j, p, q)
        assert pairs.variances[0][i, j] == pytest.approx(whole.covariance()[a, a], rel=0.1)
        assert pairs.variances[2][i, j] == pytest.approx(whole.covariance()[b, b], rel=0.1)


def test_pairs_of_complete_rows_have_the_closed_form():
    pairs, whole, mean, covariance = _pairs_and_whole(hs.DetectionLimits(lower=-1e6), 30)
    ref = _closed_form(whole.chart.covariance, 30)
    np.testing.assert_allclose(pairs.mean, np.diag(ref)[:4], rtol=1e-9)
    np.testing.assert_allclose(pairs.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(pairs.covariance[0], covariance, rtol=1e-8)


def test_pairs_in_other_units():
    Y, holes = table(FOUR, hs.DetectionLimits(lower=0.0), 100)
    units = np.array([1e-3, 1.0, 20.0, 1e4])
    plain = pair_errors(Y, holes, FOUR.mean, FOUR.covariance, 0, 1).scaled(units)
    scaled = pair_errors(
        Y * units,
        holes.standardised(np.zeros(4), 1.0 / units),
        FOUR.mean * units,
        FOUR.covariance * np.outer(units, units),
        0,
        1,
    )
    np.testing.assert_allclose(plain.mean, scaled.mean, rtol=1e-6)
    for one, other in zip(
        (*plain.covariance, *plain.variances), (*scaled.covariance, *scaled.variances), strict=True
    ):
        scale = np.sqrt(np.abs(other))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-9 * scale.max() ** 2)
