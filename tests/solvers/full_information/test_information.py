"""Louis' identity against Hessians of exact log-likelihoods."""

import numpy as np
import pytest
from scipy.special import expit

import halfseen as hs
from halfseen.missingness.holes import Scan
from halfseen.parallel import single_blas_thread
from halfseen.solvers.full_information.information import (
    LARGEST_GAIN_SHARE,
    MOST_ROWS,
    complete_information,
    information_along,
    row_scores,
    spread_rows,
)
from halfseen.solvers.full_information.m_step import (
    Diagonal,
    Free,
    KnownCorrelation,
    MStep,
    pack,
    unpack,
)
from halfseen.solvers.inference.likelihood import row_log_likelihoods
from tests import naive
from tests.solvers.full_information.held import information, pair_errors


def _table(truth, rule, n, seed=0):
    """Complete rows and their holes."""
    d = truth.dimension
    Y = truth.sample(n, seed)
    shown = rule.seen(Y, seed + 1)
    return Y, rule.holes(np.where(shown, Y, np.nan), Scan(truth.mean, np.ones(d), np.full(d, 40.0)))


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
    whole = complete_information(three.precision)
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
    comp = complete_information(three.precision)
    # Differences at steps of 1e-3 are good to 1e-6 (truncation) and 1e-16/1e-6 (rounding).
    units = np.sqrt(np.diag(comp))
    np.testing.assert_allclose(
        comp / np.outer(units, units), -hessian / np.outer(units, units), atol=1e-4
    )
    # And the inverse of the closed form.
    np.testing.assert_allclose(np.linalg.inv(comp), _closed_form(three.covariance, 1), atol=1e-9)


def test_scores_are_the_gradient_of_the_log_density(three):
    Y = three.sample(5, 3)
    scores = row_scores((Y - three.mean) @ three.precision, three.precision, None)
    at = pack(three.mean, three.covariance)
    for k, step in enumerate(1e-5 * np.eye(at.size)):
        up, down = (hs.Gaussian(*unpack(at + s * step, 3)).logpdf(Y) for s in (1, -1))
        np.testing.assert_allclose(scores[:, k], (up - down) / 2e-5, rtol=1e-6, atol=1e-7)
    basis = np.random.default_rng(0).normal(size=(at.size, 2))
    np.testing.assert_allclose(
        row_scores((Y - three.mean) @ three.precision, three.precision, basis), scores @ basis
    )


def test_with_nothing_hidden_the_covariance_is_the_closed_form(three):
    Y, holes = _table(three, hs.DetectionLimits(lower=-1e6), 100)
    found = information(
        Y, holes, three.mean, three.covariance, MStep(Free()).basis(three.covariance), 0
    )
    ref = _closed_form(three.covariance, 100)
    np.testing.assert_allclose(found.covariance, ref, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.variances(), np.diag(ref), rtol=1e-8)
    np.testing.assert_allclose(found.missing, 0.0, atol=1e-10)
    np.testing.assert_allclose(found.gain, np.eye(9), atol=1e-8)
    np.testing.assert_array_equal(found.at, pack(three.mean, three.covariance))


def test_of_independent_columns_only_variances_are_uncertain():
    truth = hs.Gaussian([0.0, 1.0], np.diag([1.0, 4.0]))
    Y, holes = _table(truth, hs.DetectionLimits(lower=-1e6), 50)
    found = information(
        Y, holes, truth.mean, truth.covariance, MStep(Diagonal()).basis(truth.covariance), 0
    )
    ref = np.array([1.0, 4.0, 2.0, 0.0, 32.0]) / 50
    np.testing.assert_allclose(found.variances(), ref, rtol=1e-8, atol=1e-15)


# Where information is missing: Louis' identity holds at the maximum of the likelihood, where the
# second moments that complete rows are expected to have are those of the estimate. The score of a row is
# drawn 2·40 times; over 1500 rows the noise of its variance is 1 % or less of the complete information,
# and weighs 1/(1 − share) times as much in directions where a share is missing.

ONE = hs.Gaussian([0.3], [[1.4]])
TWO = hs.Gaussian([0.2, -0.3], [[1.0, 0.6], [0.6, 1.5]])
EXACT = {
    "one, below a limit": (ONE, hs.DetectionLimits(lower=0.0), 1500, 0.05),
    "one, two sides": (ONE, hs.SelfCensoring(hs.between(-1.0, 1.5)), 1500, 0.05),
    "one, by chance": (ONE, hs.SelfCensoring(hs.Probability(lambda x: expit(1.5 * x))), 1500, 0.1),
    "two, below limits": (TWO, hs.DetectionLimits(lower=[-0.3, -0.5]), 1500, 0.06),
    "two, the larger": (TWO, hs.LinearThreshold([[0, 0], [-1.0, 1.0]], [0, 0.6]), 1500, 0.08),
    "two, missing at random": (TWO, None, 1500, 0.06),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_observed_information_is_the_hessian_of_the_log_likelihood(name):
    truth, rule, n, tolerance = EXACT[name]
    d = truth.dimension
    if rule is None:
        Y, holes = _table(truth, hs.DetectionLimits(lower=-1e6), n)
        mask = np.random.default_rng(1).random(Y.shape) < 0.3
        mask[mask.all(axis=1)] = False
        holes = holes.with_missing_at_random(mask)
    else:
        Y, holes = _table(truth, rule, n)

    def log_likelihood(theta):
        values, variance = row_log_likelihoods(Y, holes, *unpack(theta, d))
        assert (variance == 0.0).all()
        return values.sum()

    steps = 0.05 * np.sqrt(np.diag(_closed_form(truth.covariance, n)))
    top, ref = naive.maximum_likelihood(log_likelihood, pack(truth.mean, truth.covariance), steps)
    mean, covariance = unpack(top, d)
    with single_blas_thread():
        found = information(Y, holes, mean, covariance, MStep(Free()).basis(covariance), 5)
    assert found.missing[-1] > 0.2
    assert found.missing[-1] < 0.95
    _compare(found.covariance, ref, tolerance)
    # The gain is what is complete over what is seen.
    whole = complete_information(np.linalg.inv(covariance)) * n
    np.testing.assert_allclose(found.gain, found.covariance @ whole, rtol=1e-6, atol=1e-8)
    # On average over directions much closer: standard errors within 2 %.
    np.testing.assert_allclose(np.sqrt(found.variances()), np.sqrt(np.diag(ref)), rtol=0.025)


def test_observed_information_of_scales_of_a_known_correlation():
    # Free: μ and log s. The identity holds in expectation, so n is larger.
    R = TWO.correlation
    Y, holes = _table(TWO, hs.DetectionLimits(lower=[-0.3, -0.5]), 3000)

    def parameters(theta):
        return theta[:2], R * np.exp(theta[2:, None] + theta[2:])

    def log_likelihood(theta):
        return row_log_likelihoods(Y, holes, *parameters(theta))[0].sum()

    start = np.concatenate([TWO.mean, np.log(TWO.standard_deviations)])
    top, ref = naive.maximum_likelihood(log_likelihood, start, np.full(4, 1e-3))
    mean, covariance = parameters(top)
    basis = MStep(KnownCorrelation(R)).basis(covariance)
    found = information(Y, holes, mean, covariance, basis, 5)
    assert found.covariance.shape == (4, 4)
    _compare(found.covariance, ref, 0.08)
    known = MStep(KnownCorrelation(R), mean).basis(covariance)
    # With the mean known, the block of the Hessian that is left.
    _compare(
        information(Y, holes, mean, covariance, known, 5).covariance,
        np.linalg.inv(np.linalg.inv(ref)[2:, 2:]),
        0.08,
    )


def test_what_is_hardly_known_is_capped():
    # Below a limit that 99.6 % of rows are under: 12 of 3000 are seen.
    Y, holes = _table(ONE, hs.DetectionLimits(lower=0.3 + 2.65 * np.sqrt(1.4)), 3000)
    found = information(Y, holes, ONE.mean, ONE.covariance, np.eye(2), 0)
    assert found.missing[-1] > 0.97
    assert np.linalg.eigvals(found.gain).real.max() < 1.001 / (1.0 - LARGEST_GAIN_SHARE)
    assert np.linalg.eigvals(found.reach).real.max() > np.linalg.eigvals(found.gain).real.max()
    assert np.isfinite(found.covariance).all()


def test_threads_change_no_bit_of_the_information():
    Y, holes = _table(TWO, hs.DetectionLimits(lower=0.0), MOST_ROWS)
    with single_blas_thread():
        one, two = (
            information(Y, holes, TWO.mean, TWO.covariance, np.eye(5), 3, jobs) for jobs in (1, 2)
        )
        other = information(Y, holes, TWO.mean, TWO.covariance, np.eye(5), 4, 1)
    np.testing.assert_array_equal(one.covariance, two.covariance)
    assert (one.covariance != other.covariance).any()


def test_many_rows_are_judged_by_some():
    # Rows twice over: information doubles, though half of the rows are not looked at.
    Y, holes = _table(ONE, hs.DetectionLimits(lower=0.0), MOST_ROWS)
    one = information(Y, holes, ONE.mean, ONE.covariance, np.eye(2), 0)
    twice = np.tile(np.arange(MOST_ROWS), 2)
    two = information(Y[twice], holes.take(twice), ONE.mean, ONE.covariance, np.eye(2), 0)
    # The share that is missing, about a half, is an average over 4096 rows; of those that are looked at
    # twice every other one is new, which changes it by a hundredth or two.
    np.testing.assert_allclose(2.0 * two.variances(), one.variances(), rtol=0.1)


@pytest.mark.parametrize(("n", "most"), [(10, 20), (10, 10), (1000, 7), (5, 1)])
def test_rows_are_spread_evenly(n, most):
    rows = spread_rows(n, most)
    assert len(rows) == min(n, most)
    assert (np.diff(rows) > 0).all()
    assert rows[0] == 0
    assert rows[-1] <= n - 1
    if len(rows) > 1:
        assert rows[-1] == n - 1
        assert np.ptp(np.diff(rows)) <= 1


# Two columns at a time ------------------------------------------------------------------------------

FOUR = hs.Gaussian(
    [0.2, -0.1, 0.4, 0.0],
    [[1.0, 0.5, -0.3, 0.2], [0.5, 1.5, 0.4, 0.1], [-0.3, 0.4, 0.8, 0.3], [0.2, 0.1, 0.3, 0.6]],
)


def _both(rule, n=2000, truth=FOUR):
    d = truth.dimension
    Y, holes = _table(truth, rule, n)
    args = Y, holes, truth.mean, truth.covariance
    with single_blas_thread():
        pairs = pair_errors(*args, 7, None)
        whole = information(*args, np.eye(d + d * (d + 1) // 2), 8)
    return pairs, whole, *unpack(whole.variances(), d)


@pytest.mark.parametrize(
    "rule",
    [hs.DetectionLimits(lower=[-0.4, -0.6, 0.0, -0.3]), hs.SelfCensoring(hs.between(-1.0, 1.0))],
    ids=["limits", "two sides"],
)
def test_pairs_agree_with_the_whole_information(rule):
    pairs, _, mean, covariance = _both(rule)
    # 10 %: what a pair neglects is of second order in the correlations, and the noise of 2·40 scores of
    # each of 2000 rows is 1 or 2 %.
    # What pairs neglect is up to an eighth of a standard error where both sides are hidden.
    np.testing.assert_allclose(np.sqrt(pairs.mean), np.sqrt(mean), rtol=0.15)
    np.testing.assert_allclose(np.sqrt(pairs.covariance[0]), np.sqrt(covariance), rtol=0.15)


def test_a_pair_of_two_columns_is_the_whole_information():
    # Nothing is neglected, and column 0 loses much more than column 1.
    pairs, whole, mean, covariance = _both(hs.DetectionLimits(lower=[0.5, -1.5]), 3000, TWO)
    # The noise of both is 1 or 2 %.
    np.testing.assert_allclose(pairs.mean, mean, rtol=0.06)
    np.testing.assert_allclose(pairs.covariance[0], covariance, rtol=0.06)
    # Covariances of the estimates of (σ_ij, σ_ii, σ_jj) among 2: Σ₀₀, 3: Σ₁₀, 4: Σ₁₁.
    V = whole.covariance / np.sqrt(np.outer(whole.variances(), whole.variances()))
    assert abs(V[3, 2] - V[3, 4]) > 0.1
    found = [pairs.covariance[1], pairs.covariance[2], pairs.variances[1]]
    for (i, j), (a, b) in {(1, 0): (4, 2), (0, 1): (2, 4)}.items():
        for table, p, q in zip(found, (3, 3, a), (a, b, b), strict=True):
            size = np.sqrt(whole.covariance[p, p] * whole.covariance[q, q])
            assert table[i, j] / size == pytest.approx(V[p, q], abs=0.03), (i, j, p, q)
        assert pairs.variances[0][i, j] == pytest.approx(whole.covariance[a, a], rel=0.06)
        assert pairs.variances[2][i, j] == pytest.approx(whole.covariance[b, b], rel=0.06)


def test_pairs_of_complete_rows_have_the_closed_form():
    pairs, _, mean, covariance = _both(hs.DetectionLimits(lower=-1e6), 30)
    ref = _closed_form(FOUR.covariance, 30)
    np.testing.assert_allclose(pairs.mean, np.diag(ref)[:4], rtol=1e-9)
    np.testing.assert_allclose(pairs.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(pairs.covariance[0], covariance, rtol=1e-8)


def test_pairs_in_other_units():
    Y, holes = _table(FOUR, hs.DetectionLimits(lower=0.0), 100)
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
