"""Tests of groups against closed forms where nothing is hidden, and exact likelihoods elsewhere."""

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.solvers.groups.tests import average_of_covariances, average_of_means, rao
from tests import naive_regression

QUIET = {"random_state": 0, "n_jobs": 1}


def table(sizes=(25, 30, 20), d=3, seed=0, shift=0.5):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    root = np.linalg.cholesky(0.5 * np.eye(d) + 0.5)
    return rng.normal(size=(codes.size, d)) @ root.T + shift * codes[:, None], codes


def log_det_ratio(Y, codes):
    """Return the likelihood ratios of complete rows: equal means, equal covariances, both."""
    n, counts = len(Y), np.bincount(codes)
    means = np.array([Y[codes == g].mean(axis=0) for g in range(counts.size)])
    within, whole = Y - means[codes], Y - Y.mean(axis=0)

    def log_det(Z):
        return np.linalg.slogdet(Z.T @ Z / len(Z))[1]

    own = sum(m * log_det(within[codes == g]) for g, m in enumerate(counts))
    return n * (log_det(whole) - log_det(within)), n * log_det(within) - own


@pytest.mark.parametrize("d", [1, 3])
def test_ratios_of_complete_rows_are_wilks_and_box(d):
    Y, codes = table(d=d)
    tests = hs.fit(Y, by=codes, **QUIET).tests()
    means, covariances = log_det_ratio(Y, codes)
    # Tops are found to a quarter of a unit at worst, and nearly exactly where nothing is hidden.
    np.testing.assert_allclose(
        [test.statistic for test in tests], [means, covariances, means + covariances], atol=1e-4
    )
    covariance_entries = d * (d + 1) // 2
    assert [test.degrees_of_freedom for test in tests] == [
        2 * d, 2 * covariance_entries, 2 * (d + covariance_entries),
    ]  # fmt: skip


def test_two_groups_of_one_complete_column_are_the_t_test():
    Y, codes = table((9, 7), d=1, shift=1.0)
    fit = hs.fit(Y, by=codes, **QUIET)
    expected = stats.ttest_ind(Y[codes == 0, 0], Y[codes == 1, 0])
    interval = expected.confidence_interval(0.9)
    assert fit.tests()[0].p_value == pytest.approx(expected.pvalue, abs=1e-5)
    apart = fit.differences(0.9)
    assert apart.p_value[0, 0] == pytest.approx(expected.pvalue, abs=1e-5)
    np.testing.assert_allclose([apart.lower[0, 0], apart.upper[0, 0]], interval, rtol=1e-4)


def test_several_groups_of_one_complete_column_are_the_analysis_of_variance():
    Y, codes = table((6, 8, 5, 7), d=1)
    expected = stats.f_oneway(*(Y[codes == g, 0] for g in range(4))).pvalue
    assert hs.fit(Y, by=codes, **QUIET).tests()[0].p_value == pytest.approx(expected, rel=1e-4)


def test_differences_of_groups_of_one_size_are_tukeys():
    Y, codes = table((12, 12, 12), d=1)
    expected = stats.tukey_hsd(*(Y[codes == g, 0] for g in range(3)))
    apart = hs.fit(Y, by=codes, **QUIET).differences()
    first, second = np.triu_indices(3, 1)
    # 65 536 draws know a share of 0.05 to 0.0009, and their quantile to some thousandths.
    np.testing.assert_allclose(apart.p_value[:, 0], expected.pvalue[first, second], atol=0.008)
    ends = expected.confidence_interval()
    np.testing.assert_allclose(apart.lower[:, 0], ends.low[first, second], atol=0.02)
    np.testing.assert_allclose(apart.upper[:, 0], ends.high[first, second], atol=0.02)


def test_raos_f_is_exact_for_two_columns():
    """Then (1 − √Λ)/√Λ has an F law with 2(g − 1) and 2(n − g − 1) degrees of freedom."""
    n, groups, ratio = 30, 4, 11.0
    root = np.exp(-0.5 * ratio / n)
    freedom = 2 * (groups - 1), 2 * (n - groups - 1)
    expected = stats.f.sf((1 - root) / root * freedom[1] / freedom[0], *freedom)
    assert rao(ratio, n, 2, groups) == pytest.approx(expected, rel=1e-10)


def test_averages_are_those_of_drawn_tables():
    rng = np.random.default_rng(1)
    sizes, d, tables = np.array([8, 11, 9]), 2, 4000
    codes = np.repeat(np.arange(3), sizes)
    drawn = np.array([log_det_ratio(rng.normal(size=(28, d)), codes) for _ in range(tables)])
    expected = average_of_means(28, d, 3), average_of_covariances(sizes, d)
    error = drawn.std(axis=0) / np.sqrt(tables)
    assert (np.abs(drawn.mean(axis=0) - expected) < 4.0 * error).all()


def test_the_p_value_of_covariances_is_near_that_of_boxs_m():
    Y, codes = table((25, 25, 25), d=2, seed=4)
    Y[codes == 2] *= 1.35
    counts = np.bincount(codes) - 1
    covariances = [np.cov(Y[codes == g].T) for g in range(3)]
    pooled = np.einsum("g,gij->ij", counts, covariances) / counts.sum()
    logs = [np.linalg.slogdet(S)[1] for S in covariances]
    M = counts.sum() * np.linalg.slogdet(pooled)[1] - counts @ logs
    d, g = 2, 3
    less = (2 * d * d + 3 * d - 1) / (6 * (d + 1) * (g - 1))
    less *= (1.0 / counts).sum() - 1.0 / counts.sum()
    expected = stats.chi2.sf(M * (1.0 - less), d * (d + 1) * (g - 1) / 2)
    test = hs.fit(Y, by=codes, **QUIET).tests()[1]
    # Both hold to second order.
    assert 0.001 < expected < 0.2
    assert test.p_value == pytest.approx(expected, abs=0.003)


@pytest.mark.parametrize("d", [1, 2])
def test_the_ratio_of_means_is_that_of_the_exact_likelihood_with_limits_by_row(d):
    Y, codes = table((20, 15, 25), d=d)
    limits = np.random.default_rng(3).choice([-0.4, 0.1, 0.6], size=Y.shape)
    X = np.where(limits <= Y, Y, np.nan)
    lower, upper = np.where(np.isnan(X), -np.inf, X), np.where(np.isnan(X), limits, X)
    tops = []
    for W in (np.ones((len(Y), 1)), np.eye(3)[codes]):
        free = np.ones((d, W.shape[1]), dtype=bool)
        tops.append(naive_regression.maximise(lower, upper, W, free))
    fit = hs.fit(X, hs.DetectionLimits(lower=limits), by=codes, **QUIET)
    expected = 2.0 * (tops[1].value - tops[0].value)
    assert fit.tests()[0].statistic == pytest.approx(expected, abs=2e-3)
    np.testing.assert_allclose(fit.means().estimate.T, tops[1].Gamma, atol=2e-3)
    # Differences of the first column; means go together where the deviation is not known from values.
    V = tops[1].covariance[:3, :3] * 60.0 / 57.0
    moves = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    expected = np.sqrt(np.diag(moves @ V @ moves.T))
    np.testing.assert_allclose(fit.differences().standard_error[:, 0], expected, rtol=3e-3)


def test_permutations_agree_with_closed_forms_where_rows_are_normal():
    Y, codes = table((15, 15), d=1, shift=0.5, seed=6)
    fit = hs.fit(Y, by=codes, **QUIET)
    plain, permuted = fit.tests(), fit.tests(replicates=99, random_state=1)
    for one, other in zip(plain, permuted, strict=True):
        assert other.statistic == one.statistic
        assert other.permuted.size == 99
        # A share of 99 tables is known to 0.05 at most.
        assert other.p_value == pytest.approx(one.p_value, abs=0.15)
    again = fit.tests(replicates=99, random_state=1)
    assert [test.p_value for test in again] == [test.p_value for test in permuted]


def test_what_is_permuted_for_covariances_does_not_depend_on_means():
    Y, codes = table((15, 15), d=1, shift=0.0)
    X, moved = np.where(Y >= -0.5, Y, np.nan), Y.copy()
    moved[codes == 1] += 100.0
    limits = np.where(codes == 1, 99.5, -0.5)[:, None]
    Z = np.where(moved >= limits, moved, np.nan)
    one = hs.fit(X, hs.DetectionLimits(lower=-0.5), by=codes, **QUIET).tests(19)[1]
    other = hs.fit(Z, hs.DetectionLimits(lower=limits), by=codes, **QUIET).tests(19)[1]
    assert other.statistic == pytest.approx(one.statistic, abs=1e-3)
    np.testing.assert_allclose(other.permuted, one.permuted, atol=5e-3)


def test_tests_hold_their_level_where_values_are_hidden():
    """Of 40 tables in which nothing differs, at most 7 reject at 5 % (chance 0.001 of more)."""
    rejected = np.zeros(3)
    for seed in range(40):
        Y, codes = table((12, 12, 12), d=1, seed=seed, shift=0.0)
        X = np.where(Y >= -0.5, Y, np.nan)
        tests = hs.fit(X, hs.DetectionLimits(lower=-0.5), by=codes, **QUIET).tests()
        rejected += [test.p_value < 0.05 for test in tests]
    assert (rejected <= 7).all()
