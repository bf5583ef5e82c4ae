"""Tests of normality hold their level, and find what they are to find."""

import bisect
import math

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.diagnostics import checked_table, normality
from halfseen.diagnostics.checked_table import read
from halfseen.diagnostics.fitted_rows import FittedTable
from halfseen.diagnostics.normality import holm, judge_cells, p_values
from halfseen.diagnostics.together import complete, judge_rows, row_distances, simulate_rows
from halfseen.parallel import single_blas_thread


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrices: threads of BLAS would only wait for each other."""
    with single_blas_thread():
        yield


def judge(X, rule, simulations, seed):
    reading = read(X, rule, None)
    column = reading.column(0, np.arange(len(reading.values)))
    return judge_cells("x", column, simulations, np.random.default_rng(seed))


def fixed_limit(x, rng):
    return np.where(x < 2.0, np.nan, x)[:, None], hs.DetectionLimits(lower=2.0)


def row_limits(x, rng):
    limit = rng.normal(2.0, 1.0, size=x.size)
    return np.where(x < limit, np.nan, x)[:, None], hs.DetectionLimits(lower=limit[:, None])


def either_side(x, rng):
    rule = hs.SelfCensoring(hs.between(1.0, 4.5))
    return np.where(rule.seen(x[:, None])[:, 0], x, np.nan)[:, None], rule


def told_limits(x, rng):
    """Limits below and above, told of hidden cells alone."""
    low, high = rng.choice([1.0, 2.0, 4.0], x.size), rng.normal(6.0, 1.0, size=x.size)
    below, above = x < low, (x >= low) & (x > high)
    lower = np.where(below, -np.inf, np.where(above, high, x))
    upper = np.where(below, low, np.where(above, np.inf, x))
    return hs.IntervalData(lower[:, None], upper[:, None]), None


@pytest.mark.parametrize("hide", [fixed_limit, row_limits, either_side, told_limits])
def test_p_values_of_normal_columns_hold_their_level(hide):
    tables = 200
    p = np.empty(tables)
    for k in range(tables):
        rng = np.random.default_rng(k)
        p[k] = judge(*hide(rng.normal(3.0, 2.0, size=100), rng), 99, 10_000 + k).p_value
    # With 99 simulations P(p <= 0.05) is 0.05 exactly if all is as assumed: a binomial count of
    # 200, in a band that it leaves once in a thousand; the same at one half.
    for level in (0.05, 0.5):
        low, high = stats.binom.ppf([0.0005, 0.9995], tables, level)
        assert low <= (p <= level).sum() <= high, level


def test_rounding_is_not_taken_for_a_deviation():
    rejected = 0
    for k in range(40):
        x = np.round(np.random.default_rng(k).normal(size=1000) * 5) / 5
        rejected += judge(x[:, None], None, 39, k).p_value <= 0.05
    # Binomial(40, 0.05) exceeds 7 with probability 0.001. Untouched ties reject every time.
    assert rejected <= 7


def test_log_normal_columns_are_found_out():
    found = 0
    for k in range(20):
        x = np.exp(np.random.default_rng(k).normal(size=300))
        limit = np.quantile(x, 0.3)
        X = np.where(x < limit, np.nan, x)[:, None]
        found += judge(X, hs.DetectionLimits(lower=limit), 39, k).p_value <= 0.05
    # 30 % hidden, n = 300: a power below 0.95 would leave fewer than 16 with probability 0.003.
    assert found >= 16


@pytest.fixture(scope="module")
def null():
    """A² of complete tables of 200 rows and 3 columns; 999 of them, so that p-values are fine."""
    found = simulate_rows(200, 3, 999, 0, lambda: None)
    return lambda n, d: found


def three_columns():
    return hs.Gaussian(np.zeros(3), np.full((3, 3), 0.5) + 0.5 * np.eye(3))


def test_p_values_of_normal_tables_hold_their_level(null):
    rule = hs.DetectionLimits(lower=stats.norm.ppf(0.3))
    tables = 80
    p = np.empty(tables)
    for k in range(tables):
        fit = hs.fit(hs.simulate(three_columns(), rule, 200, k), rule, "pairwise")
        p[k] = judge_rows(complete(FittedTable(fit), k), null).p_value
    # Conservative, so only too many rejections are wrong.
    assert (p <= 0.05).sum() <= stats.binom.ppf(0.9995, tables, 0.05)
    assert (p <= 0.2).sum() <= stats.binom.ppf(0.9995, tables, 0.2)
    # But no less than a useful test: half of the level at 0.5, and some p-values below 0.2.
    assert (p <= 0.5).sum() >= stats.binom.ppf(0.0005, tables, 0.25)
    assert (p <= 0.2).any()


def test_p_values_of_complete_tables_are_uniform(null):
    p = [
        judge_rows([np.random.default_rng(k).normal(size=(200, 3)) @ np.tri(3)], null).p_value
        for k in range(200)
    ]
    # Kolmogorov's test at 0.001.
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_heavy_tails_are_found_behind_normal_columns():
    n, d = 500, 5
    limit = stats.norm.ppf(0.3)
    truth = hs.Gaussian(np.zeros(d), np.full((d, d), 0.5) + 0.5 * np.eye(d))
    simulated = simulate_rows(n, d, 199, 0, lambda: None)
    found = 0
    for k in range(12):
        rng = np.random.default_rng(k)
        # A t-copula with 4 degrees of freedom: each column is normal, the rows are not.
        Z = truth.sample(n, rng) * np.sqrt(4.0 / rng.chisquare(4, size=(n, 1)))
        Y = stats.norm.ppf(stats.t.cdf(Z, 4))
        fit = hs.fit(np.where(limit > Y, np.nan, Y), hs.DetectionLimits(lower=limit), "pairwise")
        found += judge_rows(complete(FittedTable(fit), k), lambda n, d: simulated).p_value <= 0.05
    # A power below 0.9 would leave fewer than 9 of 12 with probability 0.03.
    assert found >= 9


def test_row_distances_are_those_of_the_squared_mahalanobis_distances():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) + 5.0
    Z = Y - Y.mean(axis=0)
    squares = np.einsum("ij,jk,ik->i", Z, np.linalg.inv(np.cov(Y.T)), Z)
    p = np.sort(stats.beta.cdf(40 / 39**2 * squares, 1.5, 18.0))
    i = np.arange(1, 41)
    ref = -40 - ((2 * i - 1) * (np.log(p) + np.log1p(-p[::-1]))).mean()
    found = row_distances(Y)
    assert found.square == pytest.approx(ref)
    assert found.largest == pytest.approx(stats.kstest(p, "uniform").statistic)


def test_p_values_count_and_prolong_the_tail():
    simulated = np.arange(1.0, 100.0)
    assert p_values(50.5, simulated) == (0.5, 0.5)
    assert p_values(50.0, simulated)[0] == 0.51
    # A simulation that could not be fitted counts against the data.
    assert p_values(1000.0, np.append(simulated[:-1], np.nan)) == (0.02, 0.02)
    rng = np.random.default_rng(0)
    exponential = rng.exponential(size=199)
    p, tail = p_values(12.0, exponential)
    assert p == 1 / 200
    # 19 excesses give the rate to 1/√19: over the way from 0.1 to e⁻¹², 9.7 on a log scale, that is a
    # factor of exp(±2.2) for one standard error.
    assert abs(math.log(tail) + 12.0) < 3 * 2.2


def test_the_tail_of_anderson_and_darling_is_prolonged_well():
    rng = np.random.default_rng(1)

    def distance():
        x = rng.normal(size=50)
        return normality._complete_distances(x).square

    many = np.array([distance() for _ in range(20_000)])
    parts = many.reshape(100, 200)[:, 1:]
    far = np.quantile(many, 1 - 5e-4)
    guesses = [p_values(far, part)[1] for part in parts if part.max() < far]
    # The truth is 5e-4; a factor of three either way in the middle of the guesses.
    assert 5e-4 / 3 < np.median(guesses) < 5e-4 * 3
    # One of six tests at 5 %: a count of 199 simulations is 1/200 or 2/200, and rejects too seldom.
    ordered = np.sort(many)
    for which, share in ((0, 1 / 200), (1, 0.05 / 6)):

        def kept(part, which=which):
            """Share of all distances that are not rejected by the simulations of a part."""
            key = lambda x: -p_values(x, part)[which]  # noqa: E731
            return bisect.bisect_left(ordered, -0.05 / 6, key=key) / many.size

        rejected = [1.0 - kept(part) for part in parts]
        # The share has a deviation of 0.006 between parts, a tenth of that in their mean.
        assert np.mean(rejected) == pytest.approx(share, abs=0.0018), which


def test_holm_adjusts_and_leaves_out_what_was_not_tested():
    p = np.array([0.01, np.nan, 0.04, 0.03])
    assert holm(p) == pytest.approx([0.03, np.nan, 0.06, 0.06], nan_ok=True)
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


def test_columns_bound_together_are_tested_by_completed_values():
    rule = hs.LinearThreshold.heckman(1, [1.0, 0.0])
    truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    X = hs.simulate(truth, rule, 300, 0)
    alone = hs.diagnose(X, rule, simulations=39).normality
    assert [test.basis for test in alone.columns] == ["cells", "none"]
    assert "pass fit=" in alone.columns[1].reason
    assert alone.overall is None
    assert "no fit" in alone.overall_reason
    fit = hs.fit(X, rule, covariance=truth.covariance, random_state=0)
    both = hs.diagnose(fit, simulations=39).normality
    assert [test.basis for test in both.columns] == ["cells", "completed"]
    assert both.columns[1].p_value > 0.05
    assert both.overall.p_value > 0.05


def test_units_do_not_matter_and_seeds_do():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(150, 2))
    rule = hs.DetectionLimits(lower=[-0.5, 0.0])
    X = np.where(rule.seen(x), x, np.nan)
    plain = hs.diagnose(X, rule, simulations=39)
    scale, shift = np.array([1e-3, 50.0]), np.array([7.0, -20.0])
    moved = hs.DetectionLimits(lower=np.array([-0.5, 0.0]) * scale + shift)
    again = hs.diagnose(X * scale + shift, moved, simulations=39)
    other = hs.diagnose(X, rule, simulations=39, random_state=1)
    for one, two, three in zip(
        plain.normality.columns, again.normality.columns, other.normality.columns, strict=True
    ):
        assert one.statistic == pytest.approx(two.statistic, rel=1e-6)
        assert one.p_value == two.p_value
        assert one.statistic != three.statistic


def test_large_tables_are_tested_in_part(monkeypatch):
    monkeypatch.setattr(checked_table, "MOST_ROWS", 50)
    X = np.random.default_rng(4).normal(size=(1000, 1))
    assert checked_table.tested_rows(1000).size == 50
    found = hs.diagnose(X, simulations=39)
    # A² of 50 rows, not of 1 000.
    rows = checked_table.tested_rows(1000)
    part = hs.diagnose(X[rows], simulations=39)
    assert found.normality.columns[0].statistic == part.normality.columns[0].statistic


def test_a_fit_that_is_hardly_determined_is_not_tested():
    rule = hs.SelfSelection()
    X = hs.simulate(hs.Gaussian([0.0, 0.3], [[1.0, 0.6], [0.6, 1.0]]), rule, 200, 0)
    with pytest.warns(hs.ConvergenceWarning):
        fit = hs.fit(X, rule, random_state=0)
    assert fit.status is hs.Status.WEAKLY_IDENTIFIED
    found = hs.diagnose(fit, simulations=19)
    assert found.normality.overall is None
    assert "hardly determined" in found.normality.overall_reason
