import numpy as np
import pandas as pd
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


def _by_the_book(Q, U, complete=np.inf):
    """The formulas of mice's pool.scalar and barnard.rubin, one number at a time."""
    m, qbar, ubar = len(Q), sum(Q) / len(Q), sum(U) / len(U)
    b = sum((q - qbar) ** 2 for q in Q) / (m - 1)
    t = ubar + (1 + 1 / m) * b
    share = (1 + 1 / m) * b / t
    old = (m - 1) / share**2
    if np.isinf(complete):
        return qbar, t**0.5, old
    observed = (complete + 1) / (complete + 3) * complete * (1 - share)
    return qbar, t**0.5, old * observed / (old + observed)


def _tables(m=8, n=40, seed=0):
    """Completed tables of y on two regressors: the last ten y are drawn anew in each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = X @ [1.0, -0.5] + rng.normal(size=n)
    tables = []
    for _ in range(m):
        drawn = y.copy()
        drawn[-10:] = X[-10:] @ [1.0, -0.5] + rng.normal(size=10)
        tables.append(pd.DataFrame({"y": drawn, "a": X[:, 0], "b": X[:, 1]}))
    return tables


def _least_squares(table):
    W = np.column_stack([np.ones(len(table)), table[["a", "b"]]])
    beta, rest, *_ = np.linalg.lstsq(W, table["y"], rcond=None)
    return beta, rest[0] / (len(table) - 3) * np.linalg.inv(W.T @ W)


@pytest.mark.parametrize("freedom", [None, 37.0])
def test_a_function_is_run_on_each_table(freedom):
    tables = _tables()
    pooled = hs.pool(_least_squares, tables, freedom)
    pairs = [_least_squares(table) for table in tables]
    for j in range(3):
        Q, U = zip(*((beta[j], V[j, j]) for beta, V in pairs), strict=True)
        found = [getattr(pooled, key)[j] for key in ("estimate", "standard_error")]
        expected = _by_the_book(Q, U, freedom or np.inf)
        assert [*found, pooled.degrees_of_freedom[j]] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(np.diag(pooled.covariance) ** 0.5, pooled.standard_error)


def test_results_of_statsmodels_are_pooled_as_it_pools_them():
    ols = pytest.importorskip("statsmodels.formula.api").ols
    from statsmodels.imputation.bayes_mi import MI
    from statsmodels.regression.linear_model import OLS

    tables = _tables()
    pooled = hs.pool(lambda table: ols("y ~ a + b", table).fit(), tables)
    fits = [OLS.from_formula("y ~ a + b", table).fit() for table in tables]
    params, covariance, lost = MI._combine(
        None, [fit.params.to_numpy() for fit in fits], [fit.cov_params().to_numpy() for fit in fits]
    )
    assert pooled.names == ("Intercept", "a", "b")
    np.testing.assert_allclose(pooled.estimate, params, rtol=1e-12)
    np.testing.assert_allclose(pooled.covariance, covariance, rtol=1e-10)
    np.testing.assert_allclose(pooled.missing_information, lost, rtol=1e-10)
    # 40 rows and three coefficients leave 37 degrees of freedom, of which the holes take some.
    Q, U = zip(*((fit.params.iloc[1], fit.cov_params().iloc[1, 1]) for fit in fits), strict=True)
    assert pooled.degrees_of_freedom[1] == pytest.approx(_by_the_book(Q, U, 37)[2], rel=1e-9)
    assert (pooled.degrees_of_freedom < 37).all()
    # A number of degrees of freedom that is given goes before that of the results.
    less = hs.pool(lambda table: ols("y ~ a + b", table).fit(), tables, 5)
    assert (less.degrees_of_freedom < 5).all()


def test_imputations_may_come_one_by_one_or_as_an_array():
    tables = np.stack([table.to_numpy() for table in _tables()])
    mean = hs.pool(lambda table: (table.mean(axis=0), table.var(axis=0) / len(table)), tables)
    same = hs.pool(lambda t: (t.mean(axis=0), t.var(axis=0) / len(t)), iter(tables))
    np.testing.assert_array_equal(mean.estimate, same.estimate)
    assert mean.covariance is None
    assert mean.names is None


def test_p_values_are_those_of_the_t_distribution():
    pooled = hs.pool([1.0, 1.2, 0.8], [0.04, 0.05, 0.03], 9)
    t = pooled.estimate / pooled.standard_error
    assert pooled.p_value == pytest.approx(2 * stats.t.sf(t, pooled.degrees_of_freedom))


def test_the_summary_has_a_line_for_each_name():
    named = [pd.Series({"lead": 1.0 + k, "zinc": 0.002 * k}) for k in range(3)]
    pooled = hs.pool(lambda q: (q, q * 0 + 0.01), named)
    head, lead, zinc = str(pooled).splitlines()
    assert "95 % interval" in head
    assert lead.split()[:2] == ["lead", "2.00"]
    assert zinc.startswith("zinc")
    assert lead.split()[-2:] == [f"{100 * pooled.missing_information[0]:.0f}", "%"]


def _fails(table):
    raise ZeroDivisionError("no rows")


@pytest.mark.parametrize(
    ("function", "imputations", "sentence"),
    [
        (np.mean, np.zeros((5, 3)), r"several completed tables, as fit.draw_imputations\(m=20\)"),
        (np.mean, np.zeros((5, 3)), r"got an array of shape \(5, 3\)"),
        (np.mean, 7, "several completed tables"),
        (np.mean, "table", "several completed tables"),
        (
            np.mean,
            [np.ones(3), np.ones(3)],
            r"and its variance .* on imputation 0 it returned .*1\.0",
        ),
        (lambda t: (1.0, 2.0), [], "at least 2 completed tables are needed; got 0"),
        (lambda t: (1.0, 2.0), [1], "at least 2 completed tables are needed; got 1"),
        (
            lambda t: (t, np.ones(3)),
            np.ones((2, 2, 2)),
            r"imputation 0 .*\(2, 2\) and a variance of",
        ),
        (lambda t: (t, t), [np.ones(2), np.ones(3)], r"shape \(2,\), on imputation 1 .*\(3,\)"),
        (
            lambda t: ("a", 1.0),
            [1, 2],
            "the estimate that the function returned on imputation 0 must",
        ),
        (lambda t: (np.nan, 1.0), [1, 2], "estimates must be finite"),
        (
            lambda t: (pd.Series(1.0, ["site A" if t else "site B"]), [1.0]),
            [1, 0],
            "imputation 0 it was site A, on imputation 1 site B",
        ),
    ],
)
def test_bad_functions_get_a_sentence(function, imputations, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.pool(function, imputations)


def test_a_model_that_was_not_fitted_is_told_of():
    ols = pytest.importorskip("statsmodels.formula.api").ols
    with pytest.raises(hs.InputError, match=r"not fitted: return model.fit\(\)"):
        hs.pool(lambda table: ols("y ~ a", table), _tables(2))


def test_what_a_function_raises_says_on_which_table():
    with pytest.raises(ZeroDivisionError) as caught:
        hs.pool(_fails, _tables(2))
    assert caught.value.__notes__ == ["raised by the function given to pool, on imputation 0."]
