"""Whether rows are those of a Gaussian: groups, heavy tails and skewness, in columns and beside them."""

import numpy as np
import pytest
from scipy import integrate, stats

import halfseen as hs
from halfseen.diagnostics.fitted_rows import FittedTable, stand_on
from halfseen.diagnostics.normality import Normality, NormalityTest
from halfseen.diagnostics.together import as_if_known, directions, judge_shape, waves
from halfseen.parallel import single_blas_thread

RULE = hs.DetectionLimits(lower=-0.6)
R = np.full((3, 3), 0.5) + 0.5 * np.eye(3)


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrices: threads of BLAS would only wait for each other."""
    with single_blas_thread():
        yield


def normal(n, rng):
    return hs.Gaussian(np.zeros(3), R).sample(n, rng)


def two_groups(n, rng):
    """Three deviations apart in a difference of columns: no column shows it."""
    way = np.array([1.0, -1.0, 0.0])
    way *= 3.0 / np.sqrt(way @ np.linalg.solve(R, way))
    return normal(n, rng) + (rng.integers(0, 2, n) - 0.5)[:, None] * way


def outliers(n, rng):
    return normal(n, rng) * np.where(rng.random(n) < 0.1, 3.0, 1.0)[:, None]


def judged(draw, seed, n=300):
    Y = draw(n, np.random.default_rng(seed))
    fit = hs.fit(np.where(RULE.seen(Y), Y, np.nan), RULE, random_state=0, n_jobs=1)
    return judge_shape(stand_on(FittedTable(fit), seed), seed)


def test_waves_of_normal_numbers_have_mean_zero():
    def mean(k):
        return integrate.quad(
            lambda x: waves(np.array([[[x]]]))[0, k] * stats.norm.pdf(x), -12.0, 12.0
        )[0]

    assert [mean(0), mean(1)] == pytest.approx([0.0, 0.0], abs=1e-8)


def test_values_in_their_own_units_become_standard_normal():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 5))
    own = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    # One value of each five; Kolmogorov's test at 0.001. Untouched they fail it.
    assert stats.kstest(as_if_known(own, 5)[:, 0], "norm").pvalue > 1e-3
    assert stats.kstest(own[:, 0], "norm").pvalue < 1e-3


def test_axes_are_standardised_and_named():
    along = directions(R, ("a", "b", "c"))
    assert [one.words for one in along[:4]] == ["a", "b", "c", "a + b + c"]
    for one in along:
        assert one.weights @ R @ one.weights == pytest.approx(1.0)
    assert len(directions(np.eye(1), ("a",))) == 1
    assert directions(np.array([[1.0, 0.8], [0.8, 1.0]]), ("a", "b"))[3].words in ("a − b", "b − a")


def test_p_values_of_normal_tables_hold_their_level():
    tables = 24
    p = np.array([judged(normal, seed, 150).p_value for seed in range(tables)])
    # Binomial counts leave these bands once in a thousand, each.
    for level in (0.05, 0.5):
        low, high = stats.binom.ppf([0.0005, 0.9995], tables, level)
        assert low <= (p <= level).sum() <= high, level


@pytest.mark.parametrize(
    ("draw", "deviation"), [(two_groups, "two groups"), (outliers, "heavy tails")]
)
def test_mixtures_are_found_and_told_apart(draw, deviation):
    found = [judged(draw, seed) for seed in range(8)]
    # Of 8, with a power of 0.9, fewer than 5 are found with probability 0.005.
    odd = [test for test in found if test.p_value < 0.05]
    assert len(odd) >= 5
    assert {test.deviation for test in odd} == {deviation}
    if draw is two_groups:
        assert {test.direction for test in odd} <= {"x0 − x1", "x1 − x0"}


def test_the_finding_says_what_deviates():
    Y = two_groups(400, np.random.default_rng(1))
    fit = hs.fit(np.where(RULE.seen(Y), Y, np.nan), RULE, random_state=0, n_jobs=1)
    found = hs.diagnose(fit, simulations=39)
    (finding,) = (f for f in found.findings if f.title == "Not normal as a whole")
    assert "two groups" in finding.text
    assert "fit them separately" in finding.text
    # No column shows it.
    assert all(test.adjusted > 0.05 for test in found.normality.columns)
    assert found.normality.p_value == found.normality.overall.adjusted < 1e-3
    assert "Is it a Gaussian, on these scales?  p < 0.001" in str(found)


def test_heavy_tails_have_a_way_out():
    Y = outliers(400, np.random.default_rng(1))
    fit = hs.fit(np.where(RULE.seen(Y), Y, np.nan), RULE, random_state=0, n_jobs=1)
    texts = [f.text for f in hs.diagnose(fit, simulations=39).findings]
    assert any("errors='t'" in text for text in texts)


def test_columns_and_the_whole_have_one_p_value():
    def test(p, basis="cells"):
        return NormalityTest("x", 1.0, 0.1, p, p, p, basis)

    columns = (test(0.04), test(0.7), NormalityTest.absent("y", "no value seen"))
    assert Normality(columns, None).both_counted().p_value == 0.04
    both = Normality(columns, test(0.01, "completed")).both_counted()
    assert both.p_value == pytest.approx(0.02)
    assert [t.adjusted for t in both.columns[:2]] == pytest.approx([0.04, 0.7])
    # Where both doubt it, the larger is enough.
    both = Normality(columns, test(0.03, "completed")).both_counted()
    assert both.p_value == both.overall.adjusted == pytest.approx(0.04)
    both = Normality(columns, test(0.5, "completed")).both_counted()
    assert [t.adjusted for t in both.columns[:2]] == pytest.approx([0.08, 0.7])
    # No column was tested.
    alone = Normality(columns[2:], test(0.03, "completed")).both_counted()
    assert alone.p_value == 0.03
    assert np.isnan(Normality(columns[2:], None).p_value)
