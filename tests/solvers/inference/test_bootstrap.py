import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import halfseen as hs

TWO = hs.Gaussian([0.5, 0.5], [[1.0, 0.5], [0.5, 1.0]])

TWO = hs.Gaussian([1.0, 2.0], [[1.0, 0.6], [0.6, 2.0]])
LEFT = hs.DetectionLimits(lower=[0.8, 1.0])


def _fit(n=300, **options):
    X = hs.simulate(TWO, LEFT, n, 0)
    return hs.fit(X, LEFT, "full", random_state=0, n_jobs=1, **options)


@pytest.mark.parametrize("kind", ["rows", "parametric"])
def test_agrees_with_the_information(kind):
    fit = _fit()
    boot = fit.bootstrap(80, kind, random_state=0)
    assert boot.mean.shape == (80, 2)
    assert boot.covariance.shape == (80, 2, 2)
    # A standard deviation of 80 replicates is known to 1/√160 = 8 %. The noise of the refits, a
    # fifth of a standard error at most, adds 2 %. Four of these.
    np.testing.assert_allclose(boot.standard_error("mean"), fit.standard_errors.mean, rtol=0.34)
    np.testing.assert_allclose(
        boot.standard_error("covariance"), fit.standard_errors.covariance, rtol=0.34
    )
    np.testing.assert_allclose(
        boot.standard_error("correlation"), fit.standard_errors.correlation, rtol=0.34, atol=1e-12
    )
    # Together they are known better: seven numbers, of which some five are independent.
    ratio = np.concatenate(
        [
            boot.standard_error("mean") / fit.standard_errors.mean,
            (boot.standard_error("covariance") / fit.standard_errors.covariance)[
                np.tril_indices(2)
            ],
        ]
    )
    assert 0.85 < np.exp(np.log(ratio).mean()) < 1.17
    # Replicates lie around the fit: the bias of a hundred rows or so is small next to 1/√80.
    off = (boot.mean.mean(axis=0) - fit.mean) / fit.standard_errors.mean
    assert np.abs(off).max() < 4.5 / np.sqrt(80)
    low, high = boot.interval("mean", 0.9)
    assert ((low < fit.mean) & (fit.mean < high)).all()
    np.testing.assert_allclose(low, np.quantile(boot.mean, 0.05, axis=0))


def test_statistics_are_kept():
    fit = _fit(100)
    boot = fit.bootstrap(10, statistic=lambda m, S: [m[0] - m[1], S[0, 1]], random_state=1)
    np.testing.assert_allclose(boot.statistic[:, 0], boot.mean[:, 0] - boot.mean[:, 1])
    np.testing.assert_allclose(boot.statistic[:, 1], boot.covariance[:, 0, 1])
    np.testing.assert_allclose(boot.standard_error("statistic"), boot.statistic.std(axis=0, ddof=1))
    np.testing.assert_allclose(boot.correlation[:, 0, 0], 1.0)
    one = fit.bootstrap(3, statistic=lambda m, S: m[0], random_state=1)
    assert one.statistic.shape == (3,)


@pytest.mark.parametrize("kind", ["rows", "parametric"])
def test_same_seed_same_bits(kind):
    fit = _fit(100)
    ref, comp, other = (fit.bootstrap(3, kind, random_state=seed).mean for seed in (7, 7, 8))
    np.testing.assert_array_equal(comp, ref)
    assert not np.array_equal(other, ref)
    # The first replicates do not depend on how many follow.
    np.testing.assert_array_equal(fit.bootstrap(2, kind, random_state=7).mean, ref[:2])


@pytest.mark.parametrize("kind", ["rows", "parametric"])
def test_what_is_known_stays_known(kind):
    boot = _fit(100, mean=[1.0, 2.0], covariance="diagonal").bootstrap(3, kind, random_state=0)
    np.testing.assert_allclose(boot.mean, [[1.0, 2.0]] * 3)
    np.testing.assert_array_equal(boot.covariance[:, 0, 1], 0.0)
    assert np.ptp(boot.covariance[:, 0, 0]) > 0.0


def test_regularised_fits_have_a_bootstrap():
    fit = _fit(100, covariance="shrinkage", shrinkage=0.5)
    boot = fit.bootstrap(8, random_state=0)
    # Shrunken by a half in each replicate: a correlation of 0.42 becomes 0.21, ±0.05.
    assert (boot.correlation[:, 0, 1] < 0.42).all()
    sparse = _fit(100, covariance="sparse", penalty=0.9)
    np.testing.assert_allclose(
        sparse.bootstrap(3, random_state=0).covariance[:, 0, 1], 0.0, atol=1e-12
    )


@pytest.mark.parametrize("kind", ["rows", "parametric"])
def test_limits_by_row_and_cells_missing_at_random(kind):
    lower = np.tile([0.8, 1.0], (120, 1)) + np.arange(120)[:, None] % 3 * 0.2
    rule = hs.DetectionLimits(lower=lower)
    X = hs.simulate(TWO, rule, 120, 0)
    mask = np.random.default_rng(0).random(X.shape) < 0.1
    X[mask] = np.nan
    fit = hs.fit(X, rule, "full", missing_at_random=mask, random_state=0, n_jobs=1)
    boot = fit.bootstrap(12, kind, random_state=0)
    # Twelve replicates: a standard deviation is known to a fifth, here to within a factor of 2.5.
    ratio = boot.standard_error("mean") / fit.standard_errors.mean
    assert ratio.min() > 0.4
    assert ratio.max() < 2.5


def test_intervals_are_resampled_by_rows():
    X = hs.simulate(TWO, LEFT, 80, 0)
    fit = hs.fit(hs.IntervalData.from_table(X, LEFT), random_state=0, n_jobs=1)
    assert fit.bootstrap(3, random_state=0).mean.shape == (3, 2)
    with pytest.raises(hs.InputError, match='none was stated; use kind="rows"'):
        fit.bootstrap(3, "parametric")


def test_few_rows_do_not_break_it():
    # Rows drawn with replacement may all be the same.
    rule = hs.DetectionLimits(lower=0.0)
    fit = hs.fit([[1.0], [0.3], [np.nan], [2.0]], rule, random_state=0, n_jobs=1)
    boot = fit.bootstrap(20, random_state=0)
    assert np.isfinite(boot.mean).all()
    assert np.isfinite(boot.covariance).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda f: f.bootstrap(1), "replicates must be a whole number of at least 2; got 1"),
        (lambda f: f.bootstrap(3, "wild"), "kind must be rows or parametric; got 'wild'"),
        (lambda f: f.bootstrap(2, random_state=0).standard_error("median"), "got 'median'"),
        (lambda f: f.bootstrap(2, random_state=0).interval("statistic"), "no statistic was given"),
        (lambda f: f.bootstrap(2, random_state=0).interval("mean", 95), "level must .*got 95"),
        (lambda f: f.bootstrap(2, random_state=0).interval("mean", "a"), "level must .*got 'a'"),
        (lambda f: hs.fit(f.source.X, LEFT, "pairwise").bootstrap(), 'method="full".*pairwise'),
    ],
)
def test_bad_requests_get_a_sentence(call, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        call(_fit(60))


@pytest.mark.filterwarnings("ignore::halfseen.HalfseenWarning")
def test_blank_cells_stay_blank_in_simulated_tables():
    """A column with a fifth of its cells, and no rule for it: the error is σ/√60, not σ/√300.

    100 replicates know a standard error to 7 %; three of these.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X[60:, 0] = np.nan
    rule = hs.SelfCensoring([hs.everything, hs.at_least(-1.0)])
    X[X[:, 1] < -1.0, 1] = np.nan
    fit = hs.fit(X, rule, random_state=0)
    drawn = fit.bootstrap(100, "parametric", random_state=1).standard_error("mean")
    ref = X[:60, 0].std() / np.sqrt(60)
    assert drawn[0] == pytest.approx(ref, rel=0.21)
    assert fit.standard_errors.mean[0] == pytest.approx(ref, rel=0.05)


def test_studentised_intervals_are_those_of_textbooks_where_nothing_is_hidden():
    """Fifteen rows, and a limit that hides none of them.

    The 2.5 % quantile of 800 draws of t with 14 degrees of freedom has a standard error of
    √(0.025·0.975/800)/0.037 = 0.15, where 0.037 is the density there; three of these.
    """
    Y = np.random.default_rng(0).normal(size=(15, 1))
    fit = hs.fit(Y, hs.DetectionLimits(lower=-9.0), random_state=0)
    found = fit.confidence_interval(kind="bootstrap", replicates=800, random_state=3)
    t = stats.t.ppf(0.975, 14)
    error = Y.std(ddof=1) / np.sqrt(15)
    low, high = (float(abs(end[0] - Y.mean()) / error) for end in found.mean)
    assert low == pytest.approx(t, abs=0.45)
    assert high == pytest.approx(t, abs=0.45)
    exact = np.sqrt(14 * Y.var(ddof=1) / stats.chi2.ppf([0.975, 0.025], 14))
    np.testing.assert_allclose(np.ravel(found.standard_deviation), exact, rtol=0.1)
    assert found.methods["mean"].tolist() == ["bootstrap"]
    np.testing.assert_allclose(np.ravel(found.covariance), np.ravel(found.standard_deviation) ** 2)


def test_studentised_intervals_of_two_columns_and_of_rows_drawn_anew():
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(60, 2)) @ [[1.0, 0.6], [0.0, 0.8]]
    fit = hs.fit(Y, random_state=0)  # no rule: rows are drawn anew
    found = fit.confidence_interval(0.9, "bootstrap", replicates=100)
    again = fit.confidence_interval(0.9, "bootstrap", replicates=100)
    for name in ("mean", "standard_deviation", "covariance", "correlation"):
        low, high = getattr(found, name)
        np.testing.assert_array_equal(low, getattr(again, name).lower)
        part = ~np.eye(2, dtype=bool) if low.ndim == 2 else slice(None)
        assert (low[part] < high[part]).all()
    assert found.methods["correlation"].tolist() == [["known", "bootstrap"], ["bootstrap", "known"]]
    wald = fit.confidence_interval(0.9, "wald").correlation
    # A third of the width of the interval, as 100 draws are few.
    width = wald.upper[0, 1] - wald.lower[0, 1]
    assert found.correlation.lower[0, 1] == pytest.approx(wald.lower[0, 1], abs=width / 3)


@pytest.mark.filterwarnings("ignore::halfseen.ConvergenceWarning")
def test_tables_that_show_nothing_are_left_out_and_counted():
    """A tenth of thirty rows is seen: some simulated tables show one value, or none."""
    rule = hs.DetectionLimits(lower={"lead": 1.2816})
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), hs.DetectionLimits(lower=1.2816), 30, 3)
    fit = hs.fit(X, rule, names=["lead"], random_state=0)
    with pytest.warns(hs.errors.ApproximationWarning, match="of 60 simulated tables show next to"):
        drawn = fit.bootstrap(60, "parametric", random_state=0)
    assert 50 < len(drawn.mean) < 60
    low, high = fit.confidence_interval(kind="bootstrap", replicates=60).mean
    assert low[0] < fit.mean[0] < high[0]


def test_rules_by_name_are_simulated():
    rule = hs.DetectionLimits(lower={"lead": 0.0, "zinc": 0.0})
    X = hs.simulate(TWO, hs.DetectionLimits(lower=0.0), 60, 0)
    fit = hs.fit(pd.DataFrame(X, columns=["lead", "zinc"]), rule, random_state=0)
    found = fit.confidence_interval(kind="bootstrap", replicates=20)
    assert found.mean.lower["lead"] < fit.mean["lead"] < found.mean.upper["lead"]
    small = hs.fit(
        pd.DataFrame(X, columns=["lead", "zinc"]), rule, covariance="diagonal", random_state=0
    )
    assert hs.likelihood_ratio_test(small, fit, replicates=3).simulated.shape == (3,)


def test_a_saved_fit_is_refused_at_once(tmp_path):
    fit = hs.fit(np.random.default_rng(0).normal(size=(30, 1)), random_state=0)
    fit.save(tmp_path / "fit.hsfit")
    with pytest.raises(hs.InputError, match="does not hold its table"):
        hs.load(tmp_path / "fit.hsfit").confidence_interval(kind="bootstrap")
    with pytest.raises(hs.InputError, match=r"for anything else use fit\.bootstrap"):
        fit.original_scale(kind="bootstrap")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"replicates": 5}, "replicates must be a whole number of at least 20"),
        ({"replicates": "many"}, "replicates must be"),
        ({"of": lambda mean, S: mean[0]}, r"use fit\.bootstrap\(statistic=\.\.\.\)"),
    ],
)
def test_bad_requests_for_studentised_intervals(options, sentence):
    fit = hs.fit(np.random.default_rng(0).normal(size=(30, 1)), random_state=0)
    with pytest.raises(hs.InputError, match=sentence):
        fit.confidence_interval(kind="bootstrap", **options)


def test_a_bootstrap_shows_itself_in_a_line():
    drawn = hs.solvers.inference.bootstrap.Bootstrap(np.zeros((200, 3)), np.zeros((200, 3, 3)))
    assert repr(drawn) == "Bootstrap(replicates=200, columns=3)"
    told = dataclasses.replace(drawn, statistic=np.zeros((200, 2)))
    assert repr(told) == "Bootstrap(replicates=200, columns=3, statistic of shape (2,))"
