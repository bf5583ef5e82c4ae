import warnings

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.solvers.inference.parameter_draws import parameter_draws
from tests import naive

BELOW = -np.inf
TWO = hs.Gaussian([1.0, 2.0], [[1.0, 0.6], [0.6, 2.0]])
THREE = hs.Gaussian([0.3, 0.0, -0.2], [[1.0, 0.4, -0.3], [0.4, 1.5, 0.2], [-0.3, 0.2, 0.8]])
LIMITS = np.random.default_rng(0).normal(-0.5, 0.5, size=(80, 3))
RULES = (
    hs.DetectionLimits(lower=-0.5),
    hs.DetectionLimits(lower=-0.6, upper=[0.9, np.nan, 0.5]),
    hs.DetectionLimits(lower=LIMITS, upper=LIMITS + 1.5),
    hs.SelfCensoring([hs.at_most(-1.0) | hs.between(-0.2, 0.9), hs.at_most(0.5), hs.everything]),
    hs.SelfCensoring([hs.Predicate(lambda x: np.abs(x) < 1), hs.at_least(-0.4), hs.everything]),
    hs.SelfSelection([[0, 2]]),
    hs.SelfSelection(largest=False),
    hs.LinearThreshold.larger_of(0, 1, 3),
    hs.LinearThreshold.anchored([0], [[1.0, 0.5, 0.3], [-0.5, 0.2, 1.0]], [0.3, 0.2]),
    hs.Combined(
        [([2], hs.DetectionLimits(lower=-0.5)), ([1, 0], hs.LinearThreshold.larger_of(0, 1, 2))]
    ),
)


def _fit(X, rule=None, **options):
    """Fit roughly: what is imputed must lie in its region whatever the parameters are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.fit(X, rule, "full", random_state=0, n_jobs=1, **{"accuracy": 0.5, **options})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: repr(rule)[:40])
def test_the_rule_hides_in_completed_tables_what_it_hid(rule):
    X = hs.simulate(THREE, rule, 80, 1)
    seen = ~np.isnan(X)
    assert not seen.all()
    fit = _fit(X, rule)
    for table in (fit.impute(), *fit.draw_imputations(m=3, random_state=0)):
        np.testing.assert_array_equal(rule.seen(table), seen)
        np.testing.assert_array_equal(table[seen], X[seen])


def test_cells_of_intervals_stay_in_them():
    Y = THREE.sample(60, 0)
    known = np.random.default_rng(1).random(Y.shape) < 0.5
    data = hs.IntervalData(np.where(known, Y, np.floor(Y)), np.where(known, Y, np.floor(Y) + 1))
    fit = _fit(data)
    for table in (fit.impute(), *fit.draw_imputations(m=3, random_state=0)):
        assert ((data.lower <= table) & (table <= data.upper)).all()
        np.testing.assert_array_equal(table[known], Y[known])


def test_cells_that_are_simply_missing_may_be_anything():
    rule = hs.DetectionLimits(lower=[1.0, 1.0])
    X = hs.simulate(TWO, rule, 400, 0)
    mask = np.random.default_rng(0).random(X.shape) < 0.2
    X[mask] = np.nan
    tables = _fit(X, rule, missing_at_random=mask).draw_imputations(m=3, random_state=0)
    hidden = np.isnan(X) & ~mask
    assert (tables[:, hidden] < 1.0).all()
    # Half of x0 lies above its limit; 240 such cells in three tables, so 50 % ± 3 %.
    assert 0.35 < (tables[:, mask[:, 0], 0] > 1.0).mean() < 0.65


def test_one_column_is_filled_with_its_truncated_mean():
    rule = hs.DetectionLimits(lower=0.3, upper=2.0)
    X = hs.simulate(hs.Gaussian([0.5], [[2.0]]), rule, 200, 0)
    # Which side is told, so that each cell has one interval.
    side = np.where(hs.Gaussian([0.5], [[2.0]]).sample(200, 0) < 0.3, "<", ">")
    fit = _fit(hs.IntervalData.from_table(X, rule, side=side))
    hidden = np.isnan(X)
    mu, sigma = fit.mean[0], fit.gaussian.standard_deviations[0]
    low, high = (
        naive.line_moments(mu, sigma, piece)[1]
        for piece in ([(mu - 12 * sigma, 0.3)], [(2.0, mu + 12 * sigma)])
    )
    # A sweep reports the mean of a cell given the others, which is exact where there are none.
    ref = np.where(side[hidden] == "<", low, high)
    np.testing.assert_allclose(fit.impute()[hidden], ref, rtol=1e-9)


def test_a_mean_between_two_pieces_moves_into_the_likelier():
    rule = hs.SelfCensoring(hs.between(-1.0, 1.5))
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 300, 0)
    fit = _fit(X, rule)
    mu, sigma = fit.mean[0], fit.gaussian.standard_deviations[0]
    masses = stats.norm.cdf(-1.0, mu, sigma), stats.norm.sf(1.5, mu, sigma)
    piece = [(mu - 12 * sigma, -1.0)] if masses[0] > masses[1] else [(1.5, mu + 12 * sigma)]
    filled = fit.impute()[np.isnan(X)]
    # Means of some 70 draws: a cell's spread is 0.45, so ±0.06; six standard errors.
    np.testing.assert_allclose(filled, naive.line_moments(mu, sigma, piece)[1], atol=0.35)
    assert (filled < -1.0).all() or (filled > 1.5).all()


def _two_kinds_of_rows(count):
    """Rows of which x1 is hidden below 1.5, and rows of which both are hidden, after some whole ones."""
    whole = TWO.sample(200, 0)
    whole = whole[(whole > [1.0, 1.5]).all(axis=1)]
    one, both = np.tile([1.3, np.nan], (count, 1)), np.full((count, 2), np.nan)
    rule = hs.DetectionLimits(lower=[1.0, 1.5])
    X = np.concatenate([whole, one, both])
    fit = _fit(X, rule, mean=TWO.mean, covariance=TWO.covariance)
    return fit, slice(len(whole), len(whole) + count), slice(len(whole) + count, None)


def test_conditional_means_of_two_columns():
    fit, one, both = _two_kinds_of_rows(300)
    filled = fit.impute()
    # x1 given x0 = 1.3: mean 2 + 0.6·0.3, variance 2 − 0.36; exact, since one cell is hidden.
    ref = naive.line_moments(2.18, np.sqrt(1.64), [(-20.0, 1.5)])[1]
    np.testing.assert_allclose(filled[one, 1], ref, rtol=1e-9)
    cells = [(-20.0, 1.0)], [(-20.0, 1.5)]
    mass = naive.product_moment(TWO, *cells, 0, 0)
    ref = [naive.product_moment(TWO, *cells, *p) / mass for p in ((1, 0), (0, 1))]
    # Each mean is promised to a tenth of the cell's spread (0.6 and 0.8); 300 rows average it.
    spread = np.array([0.6, 0.8])
    np.testing.assert_array_less(
        np.abs(filled[both].mean(axis=0) - ref), 4 * 0.1 * spread / np.sqrt(300)
    )
    assert (filled[both].std(axis=0) < 0.15 * spread).all()


def test_draws_follow_the_conditional_distribution():
    count = 1500
    fit, one, both = _two_kinds_of_rows(count)
    # The parameters are known, so that draws are those of the distribution itself.
    table = fit.draw_imputations(m=1, random_state=0)[0]
    # Kolmogorov's statistic of 1500 draws exceeds 1.95/√1500 once in a thousand times.
    limit = 1.95 / np.sqrt(count)
    centre, width = 2.18, np.sqrt(1.64)
    conditional = stats.truncnorm(-np.inf, (1.5 - centre) / width, centre, width)
    assert stats.kstest(table[one, 1], conditional.cdf).statistic < limit
    mass = naive.region_mass(TWO.mean, TWO.covariance, [[(BELOW, 1.0)], [(BELOW, 1.5)]])

    def marginal(x, column):
        ends = [1.0, 1.5]
        ends[column] = min(x, ends[column])
        return naive.region_mass(TWO.mean, TWO.covariance, [[(BELOW, e)] for e in ends]) / mass

    for column in (0, 1):
        grid = np.quantile(table[both, column], np.linspace(0.02, 0.98, 25))
        empirical = (table[both, column][:, None] <= grid).mean(axis=0)
        ref = np.array([marginal(x, column) for x in grid])
        assert np.abs(empirical - ref).max() < limit
    cells = [(-20.0, 1.0)], [(-20.0, 1.5)]
    product = table[both, 0] * table[both, 1]
    ref = naive.product_moment(TWO, *cells, 1, 1) / naive.product_moment(TWO, *cells, 0, 0)
    assert abs(product.mean() - ref) < 4 * product.std() / np.sqrt(count)


def test_tables_are_drawn_anew():
    # Slow to mix: cells that follow each other closely.
    S = 0.95 + 0.05 * np.eye(4)
    X = np.full((900, 4), np.nan)
    X[:300] = hs.Gaussian(np.zeros(4), S).sample(300, 0)
    fit = _fit(X, mean=np.zeros(4), covariance=S, missing_at_random=np.isnan(X))
    rows = fit.draw_imputations(m=3, random_state=0)[:, 300:].mean(axis=2)
    # Row means have variance 0.95 + 0.05/4. 600 rows: a correlation of ±0.04, a variance of ±6 %.
    np.testing.assert_allclose(rows.var(axis=1), 0.9625, rtol=0.25)
    assert np.abs(np.corrcoef(rows)[np.triu_indices(3, 1)]).max() < 0.17


def test_parameters_of_tables_scatter_as_the_standard_errors_say():
    # Columns of very different units: a covariance matrix of all parameters spans many decades.
    scale = np.array([1e4, 1e-3])
    truth = hs.Gaussian(TWO.mean * scale, TWO.covariance * np.outer(scale, scale))
    rule = hs.DetectionLimits(lower=[1.0, 1.5] * scale)
    fit = hs.fit(hs.simulate(truth, rule, 400, 0), rule, "full", random_state=0)
    draws = parameter_draws(fit, 400, 0)
    # Standard deviations of 400 draws are known to 1/√800 = 3.5 %; five of these, as the log-scale
    # of variances adds some.
    errors = fit.standard_errors
    np.testing.assert_allclose(np.std([g.mean for g in draws], axis=0), errors.mean, rtol=0.18)
    np.testing.assert_allclose(
        np.std([g.covariance for g in draws], axis=0), errors.covariance, rtol=0.18
    )
    off = np.mean([g.mean for g in draws], axis=0) - fit.mean
    # Centred at the fit: 400 draws leave a twentieth of a standard error.
    assert (np.abs(off) < 4 / 20 * errors.mean).all()


def test_draws_carry_the_uncertainty_of_the_parameters():
    rule = hs.DetectionLimits(lower=0.0)
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 50, 0)
    free = _fit(X, rule, accuracy=0.1)
    fixed = _fit(X, rule, mean=free.mean, covariance=free.covariance)
    proper, improper = (
        fit.draw_imputations(m=200, random_state=1).mean(axis=(1, 2)).var(ddof=1)
        for fit in (free, fixed)
    )
    # Improper tables scatter by the draws alone: h cells of variance v give h·v/n².
    hidden = np.isnan(X).sum()
    mu, sigma = free.mean[0], free.gaussian.standard_deviations[0]
    _, m1, m2 = naive.line_moments(mu, sigma, [(mu - 12 * sigma, 0.0)])
    # A variance of 200 draws is known to √(2/200) = 10 %.
    np.testing.assert_allclose(improper, hidden * (m2 - m1**2) / 50**2, rtol=0.35)
    # The mean of a completed table moves with the parameters: h/n of it by the mean of a hidden cell.
    # What the parameters add is their delta-method variance of that.
    added = free.standard_errors.of(
        lambda m, S: (
            hidden
            / 50
            * stats.truncnorm.mean(-np.inf, -m[0] / S[0, 0] ** 0.5, m[0], S[0, 0] ** 0.5)
        )
    ).standard_error
    np.testing.assert_allclose(proper, improper + added**2, rtol=0.4)
    assert proper > 1.5 * improper


def test_same_seed_same_tables():
    rule = hs.DetectionLimits(lower=[1.0, 1.0])
    fit = _fit(hs.simulate(TWO, rule, 60, 0), rule)
    ref = fit.draw_imputations(m=2, random_state=5)
    np.testing.assert_array_equal(fit.draw_imputations(m=2, random_state=5), ref)
    assert not np.array_equal(fit.draw_imputations(m=2, random_state=6), ref)
    np.testing.assert_array_equal(fit.impute(), fit.impute())
    assert not np.array_equal(ref[0], ref[1])


def test_other_tables_under_the_same_rule_and_under_another():
    rule = hs.DetectionLimits(lower=[1.0, 1.0])
    fit = _fit(hs.simulate(TWO, rule, 60, 0), rule)
    new = hs.simulate(TWO, rule, 40, 1)
    hidden = np.isnan(new)
    filled = fit.impute(new)
    assert filled.shape == (40, 2)
    assert (filled[hidden] < 1.0).all()
    np.testing.assert_array_equal(filled[~hidden], new[~hidden])
    assert fit.draw_imputations(new, m=2, random_state=0).shape == (2, 40, 2)
    # One row, of which everything is hidden.
    assert (fit.impute([[np.nan, np.nan]]) < 1.0).all()
    high = hs.DetectionLimits(upper=np.full((1, 2), 0.5))
    assert (fit.impute([[np.nan, 0.0]], high)[0, 0] > 0.5).all()
    mask = np.array([[True, False]])
    # Nothing is known of x0 but what x1 says: the regression of x0 on x1.
    g = fit.gaussian
    slope = g.covariance[0, 1] / g.covariance[1, 1]
    found = fit.impute([[np.nan, 3.0]], missing_at_random=mask)[0, 0]
    assert found == pytest.approx(g.mean[0] + slope * (3.0 - g.mean[1]), rel=1e-9)


def test_intervals_are_imputed_by_any_fit():
    rule = hs.DetectionLimits(lower=[1.0, 1.0])
    X = hs.simulate(TWO, rule, 60, 0)
    fit = _fit(X, rule)
    data = hs.IntervalData.from_table(X, rule)
    np.testing.assert_allclose(fit.impute(data), fit.impute(X), rtol=1e-9)


def test_data_frames():
    import pandas as pd

    rule = hs.DetectionLimits(lower={"zinc": 1.0, "lead": 0.8})
    X = hs.simulate(TWO, hs.DetectionLimits(lower=[0.8, 1.0]), 60, 0)
    frame = pd.DataFrame(X, columns=["lead", "zinc"])
    fit = _fit(frame, rule)
    filled = fit.impute()
    hidden = np.isnan(X)
    assert list(filled.columns) == ["lead", "zinc"]
    assert (filled.to_numpy() < [0.8, 1.0])[hidden].all()
    np.testing.assert_allclose(fit.impute(frame), filled, rtol=1e-12)
    np.testing.assert_allclose(fit.impute(X), filled, rtol=1e-12)
    with pytest.raises(hs.InputError, match="another order"):
        fit.impute(frame[["zinc", "lead"]])
    assert fit.draw_imputations(frame, m=2, random_state=0).shape == (2, 60, 2)


def test_other_methods_impute_too():
    rule = hs.DetectionLimits(lower=[1.0, 1.0])
    X = hs.simulate(TWO, rule, 300, 0)
    pairs = hs.fit(X, rule, "pairwise").impute()
    # Nearly the same Gaussian, so nearly the same means: estimates differ by a standard error,
    # 1/√300 = 0.06 of a standard deviation.
    np.testing.assert_allclose(pairs, _fit(X, rule).impute(), atol=0.5)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda f, X: f.impute(X[:, :1]), "2 columns, but .* 1"),
        (lambda f, X: f.impute(np.ones((2, 3))), "2 columns, but .* 3"),
        (lambda f, X: f.impute(X[0]), "table of rows and columns"),
        (lambda f, X: f.impute([[0.0, 2.0]]), r"row 0, column x0: the value 0 is seen"),
        (lambda f, X: f.impute(X, "rule"), "must be a rule"),
        (lambda f, X: f.impute([[np.inf, 2.0]]), "must be finite"),
        (lambda f, X: f.draw_imputations(m=0), "m must be a whole number of at least 1; got 0"),
        (
            lambda f, X: hs.fit(hs.PairMoments.from_array(X), f.source.missingness).impute(),
            "does not hold its table; pass X",
        ),
        (
            lambda f, X: hs.fit(X, f.source.missingness, "pairwise").draw_imputations(),
            'method="full"',
        ),
    ],
)
def test_bad_tables_get_a_sentence(call, sentence):
    rule = hs.DetectionLimits(lower=[1.0, 1.0])
    X = hs.simulate(TWO, rule, 60, 0)
    with pytest.raises(hs.HalfseenError, match=sentence):
        call(_fit(X, rule), X)


def test_cells_of_one_row_choose_their_sides_together():
    rng = np.random.default_rng(1)
    Z = rng.multivariate_normal([0, 0], [[1, -0.97], [-0.97, 1]], 400)
    Y = np.concatenate([Z, -Z])
    Y[np.abs(Y) > 0.7] = np.nan
    rule = hs.rules({"x0": "-0.7..0.7", "x1": "-0.7..0.7"})
    for transform in ("none", "yeojohnson(1)"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hs.ConvergenceWarning)
            fit = hs.fit(Y, rule, transforms=transform, random_state=0, standard_errors=False)
        filled = fit.impute()
        both = np.isnan(Y).all(axis=1)
        assert both.sum() > 200
        # Both on one side has a probability below 1e-6 in any row.
        assert (filled[both, 0] * filled[both, 1] < 0.0).all()
        assert (np.abs(filled[np.isnan(Y)]) > 0.7).all()
