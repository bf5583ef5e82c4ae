import numpy as np
import pytest
from scipy import stats

import halfseen as hs


def test_rubins_rules_by_hand():
    # Three tables: W = (1 + 2 + 3)/3 = 2, B = ((−2)² + 0 + 2²)/2 = 4, T = 2 + 4/3·4 = 22/3.
    pooled = hs.pool([1.0, 3.0, 5.0], [1.0, 2.0, 3.0])
    assert pooled.estimate == pytest.approx(3.0)
    assert pooled.standard_error == pytest.approx(np.sqrt(22 / 3))
    # λ = (16/3)/(22/3) = 8/11, degrees of freedom (m − 1)/λ².
    assert pooled.missing_information == pytest.approx(8 / 11)
    assert pooled.degrees_of_freedom == pytest.approx(2 * (11 / 8) ** 2)
    half = stats.t.ppf(0.95, 2 * (11 / 8) ** 2) * np.sqrt(22 / 3)
    np.testing.assert_allclose(pooled.interval(0.9), [3 - half, 3 + half])


def test_few_rows_after_barnard_and_rubin():
    pooled = hs.pool([1.0, 3.0, 5.0], [1.0, 2.0, 3.0], degrees_of_freedom=10)
    # (v + 1)/(v + 3)·v·(1 − λ) = 11/13·10·3/11 = 30/13, and the harmonic sum with the older rule.
    old, observed = 2 * (11 / 8) ** 2, 30 / 13
    assert pooled.degrees_of_freedom == pytest.approx(1 / (1 / old + 1 / observed))
    assert pooled.degrees_of_freedom < 10


def test_tables_that_agree_leave_the_complete_analysis():
    pooled = hs.pool([[2.0, 1.0], [2.0, 1.0]], [[0.25, 4.0], [0.25, 4.0]])
    np.testing.assert_allclose(pooled.standard_error, [0.5, 2.0])
    np.testing.assert_array_equal(pooled.missing_information, 0.0)
    np.testing.assert_allclose(
        pooled.interval().upper, [2 + 1.959964 * 0.5, 1 + 1.959964 * 2], rtol=1e-6
    )


def test_arrays_are_pooled_entry_by_entry():
    rng = np.random.default_rng(0)
    Q, U = rng.normal(size=(6, 2, 3)), rng.random((6, 2, 3))
    pooled = hs.pool(Q, U)
    one = hs.pool(Q[:, 1, 2], U[:, 1, 2])
    assert pooled.estimate.shape == (2, 3)
    for name in ("estimate", "standard_error", "degrees_of_freedom", "missing_information"):
        assert getattr(pooled, name)[1, 2] == pytest.approx(float(getattr(one, name)))


def test_pooled_intervals_cover():
    # The mean of 60 values, a third of them below their limit. 60 tables, 6 imputations of each.
    rule = hs.DetectionLimits(lower=-0.43)
    truth = hs.Gaussian([0.0], [[1.0]])
    covered, filled_covered = 0, 0
    for seed in range(60):
        X = hs.simulate(truth, rule, 60, seed)
        fit = hs.fit(X, rule, "full", random_state=0, n_jobs=1)
        tables = fit.draw_imputations(m=6, random_state=seed)[:, :, 0]
        pooled = hs.pool(tables.mean(axis=1), tables.var(axis=1, ddof=1) / 60, 59)
        low, high = pooled.interval(0.8)
        covered += low < 0.0 < high
        # The habit to put the limit into the holes moves the mean by two standard errors.
        filled = np.where(np.isnan(X[:, 0]), -0.43, X[:, 0])
        width = stats.t.ppf(0.9, 59) * filled.std(ddof=1) / np.sqrt(60)
        filled_covered += abs(filled.mean()) < width
    # Of 60 intervals of 80 %, between 38 and 57 cover but for three times in a thousand.
    assert 38 <= covered <= 57
    assert filled_covered < 30


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([1.0, 2.0], [1.0]), r"same shape; got \(2,\) and \(1,\)"),
        (([1.0], [1.0]), "at least 2 completed tables are needed; got 1"),
        ((1.0, 1.0), "same shape"),
        (([1.0, 2.0], [1.0, -1.0]), "at least 0"),
        (([1.0, 2.0], [1.0, np.nan]), "not NaN"),
        (([1.0, np.nan], [1.0, 1.0]), "estimates must be finite"),
        ((["a", "b"], [1.0, 1.0]), "must be numbers"),
        (([1.0, 2.0], [1.0, 1.0], -3.0), "degrees_of_freedom must be above 0; got -3.0"),
        (([1.0, 2.0], [1.0, 1.0], "many"), "degrees_of_freedom must be above 0; got 'many'"),
    ],
)
def test_bad_estimates_get_a_sentence(arguments, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.pool(*arguments)


@pytest.mark.parametrize("level", [0.0, 1.0, "high"])
def test_bad_levels_get_a_sentence(level):
    with pytest.raises(hs.InputError, match="level must lie between 0 and 1"):
        hs.pool([1.0, 2.0], [1.0, 1.0]).interval(level)


def test_analyses_without_variance_have_intervals_all_the_same():
    # All of the variance is between tables; with few degrees of freedom the interval is still a number.
    low, high = hs.pool([1.0, 2.0, 4.0], [0.0, 0.0, 0.0], 10).interval()
    assert np.isfinite([low, high]).all()
    assert low < 7 / 3 < high
