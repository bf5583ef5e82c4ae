"""Values that were lost beside the rule, against likelihoods written down in full."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import halfseen as hs

GAUSSIAN = hs.Gaussian([0.6, 0.3], [[1.0, 0.7], [0.7, 1.5]])
LIMITS = np.array([0.0, 0.2])


def _table(n, share=0.15, seed=0, d=2, rule=None):
    """Return a table with values below limits hidden, and some of the others lost."""
    truth = hs.Gaussian(GAUSSIAN.mean[:d], GAUSSIAN.covariance[:d, :d])
    rule = hs.DetectionLimits(lower=LIMITS[:d]) if rule is None else rule
    X = hs.simulate(truth, rule, n, seed)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X, rule


def _naive_one(X, epsilon, mean, deviation):
    """Log-likelihood of one column: (1 − ε) f(x), or F(c) + ε (1 − F(c))."""
    x = X[~np.isnan(X)]
    below = stats.norm.cdf(LIMITS[0], mean, deviation)
    hidden = np.isnan(X).sum() * np.log(below + epsilon * (1.0 - below))
    return np.sum(stats.norm.logpdf(x, mean, deviation) + np.log1p(-epsilon)) + hidden


def _naive_two(X, epsilon, g):
    """Do so for two columns, where both hidden cells of a row are integrated by SciPy."""
    total = 0.0
    S, m = g.covariance, g.mean
    deviation = np.sqrt(np.diag(S))

    def weight(x, j):
        return 1.0 if x < LIMITS[j] else epsilon[j]

    def slice_mass(x):
        centre = m[1] + S[0, 1] / S[0, 0] * (x - m[0])
        spread = np.sqrt(S[1, 1] - S[0, 1] ** 2 / S[0, 0])
        below = stats.norm.cdf(LIMITS[1], centre, spread)
        inner = below + epsilon[1] * (1.0 - below)
        return weight(x, 0) * stats.norm.pdf(x, m[0], deviation[0]) * inner

    parts = [(-12.0, LIMITS[0]), (LIMITS[0], 12.0)]
    both = np.log(sum(integrate.quad(slice_mass, *part, epsabs=1e-13)[0] for part in parts))
    for row in X:
        seen = np.flatnonzero(~np.isnan(row))
        total += np.log1p(-np.asarray(epsilon))[seen].sum()
        if seen.size == 2:
            total += stats.multivariate_normal.logpdf(row, m, S)
        elif seen.size == 0:
            total += both
        else:
            i, j = int(seen[0]), 1 - int(seen[0])
            centre = m[j] + S[i, j] / S[i, i] * (row[i] - m[i])
            spread = np.sqrt(S[j, j] - S[i, j] ** 2 / S[i, i])
            below = stats.norm.cdf(LIMITS[j], centre, spread)
            total += stats.norm.logpdf(row[i], m[i], deviation[i])
            total += np.log(below + epsilon[j] * (1.0 - below))
    return total


def test_one_column_is_the_naive_likelihood_and_its_top():
    X, rule = _table(300, d=1)
    fit = hs.fit(X, rule, loss=0.15, random_state=0, n_jobs=1)
    deviation = fit.gaussian.standard_deviations[0]
    ref = _naive_one(X, 0.15, fit.mean[0], deviation)
    # Both are closed forms: they differ by rounding, of sums of 300 terms.
    assert fit.log_likelihood.value == pytest.approx(ref, rel=1e-11)
    top = optimize.minimize(
        lambda p: -_naive_one(X, 0.15, p[0], np.exp(p[1])), [0.5, 0.0], tol=1e-12
    )
    # The top of a parabola is found to the root of the tolerance of its value, 1e-6 of its width.
    np.testing.assert_allclose([fit.mean[0], np.log(deviation)], top.x, atol=2e-6)


@pytest.mark.parametrize("share", [0.15, (0.1, 0.25)])
def test_two_columns_are_the_naive_likelihood(share):
    X, rule = _table(120)
    fit = hs.fit(X, rule, loss=share, random_state=0, n_jobs=1)
    ref = _naive_two(X, np.broadcast_to(share, 2), fit.gaussian)
    # SciPy's quadrature is good to 1e-13 of a mass, ours to 1e-12 or so.
    assert fit.log_likelihood.value == pytest.approx(ref, abs=1e-8)
    for k in range(2):
        moved = fit.mean + 0.02 * np.eye(2)[k]
        assert _naive_two(X, np.broadcast_to(share, 2), hs.Gaussian(moved, fit.covariance)) < ref


def test_a_learned_share_is_the_top_of_the_naive_likelihood():
    X, rule = _table(2000, share=0.2, d=1)
    fit = hs.fit(X, rule, loss="learn", random_state=0, n_jobs=1)

    def value(p):
        return -_naive_one(X, p[0], p[1], np.exp(p[2]))

    top = optimize.minimize(
        value, [0.1, 0.5, 0.0], bounds=[(1e-9, 0.9), (None, None), (None, None)], tol=1e-12
    )
    found = [fit.loss.share[0], fit.mean[0], np.log(fit.gaussian.standard_deviations[0])]
    # Steps end where 1e-7 is left: √(2e-7) = 5e-4 standard errors from the top, which are 0.1 at most.
    np.testing.assert_allclose(found, top.x, atol=1e-4)
    assert fit.log_likelihood.value == pytest.approx(-top.fun, abs=1e-6)
    assert fit.parameters == 3

    # The information about all three, by differences of the same function.
    H = _hessian(value, top.x)
    V = np.linalg.inv(H)
    # Differences with a step of 5 % of ε leave out some thousandths of the curvature.
    assert fit.loss.standard_error[0] == pytest.approx(np.sqrt(V[0, 0]), rel=5e-3)
    assert fit.standard_errors.mean[0] == pytest.approx(np.sqrt(V[1, 1]), rel=5e-3)
    known = hs.fit(X, rule, loss=float(fit.loss.share[0]), random_state=0, n_jobs=1)
    assert known.standard_errors.mean[0] < 0.99 * fit.standard_errors.mean[0]

    # Ends of the interval are where the profile has fallen by 1.92.
    for end in (fit.loss.lower[0], fit.loss.upper[0]):
        best = optimize.minimize(lambda p, e=end: value([e, *p]), top.x[1:], tol=1e-10).fun
        # The root of twice the fall is looked for to half a percent.
        assert 2.0 * (best - top.fun) == pytest.approx(stats.chi2.ppf(0.95, 1), rel=0.012)
    none = optimize.minimize(lambda p: value([0.0, *p]), top.x[1:], tol=1e-10).fun
    assert fit.loss.p_value[0] == pytest.approx(
        0.5 * stats.chi2.sf(2.0 * (none - top.fun), 1), rel=1e-3
    )


def _hessian(function, x, step=1e-4):
    n = len(x)
    out = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            a, b = step * np.eye(n)[i], step * np.eye(n)[j]
            f = [function(x + p * a + q * b) for p in (1, -1) for q in (1, -1)]
            out[i, j] = (f[0] - f[1] - f[2] + f[3]) / (4.0 * step**2)
    return out


def test_known_losses_are_a_probability_with_a_jump():
    X, rule = _table(150, d=1)
    fit = hs.fit(X, rule, loss=0.15, random_state=0, n_jobs=1)
    chance = hs.SelfCensoring(hs.Probability(lambda x: 0.85 * (x >= LIMITS[0])))
    other = hs.fit(X, chance, random_state=0, n_jobs=1)
    # Nodes of a Gauss rule on panels of half a spread, good to 1e-7 or better.
    np.testing.assert_allclose(fit.mean, other.mean, atol=1e-6)
    np.testing.assert_allclose(fit.covariance, other.covariance, atol=1e-6)
    np.testing.assert_allclose(fit.standard_errors.mean, other.standard_errors.mean, rtol=1e-5)


def test_a_probability_can_lose_values_too():
    X, _ = _table(150, d=1)
    once = hs.SelfCensoring(hs.Probability(lambda x: 0.85 * (x >= LIMITS[0])))
    twice = hs.SelfCensoring(hs.Probability(lambda x: 0.765 * (x >= LIMITS[0])))
    fit = hs.fit(X, once, loss=0.1, random_state=0, n_jobs=1)
    other = hs.fit(X, twice, random_state=0, n_jobs=1)
    np.testing.assert_allclose(fit.mean, other.mean, rtol=1e-7)


def test_more_than_two_cells_are_sampled_from_the_same_law():
    g = hs.Gaussian([0.3, 0.0, -0.2], [[1.0, 0.6, 0.4], [0.6, 1.0, 0.5], [0.4, 0.5, 1.0]])
    rule = hs.DetectionLimits(lower=0.0)
    share = 0.2
    X = np.full((1, 3), np.nan)
    fit = hs.fit(_lost(g, rule, 60, share), rule, loss=share, random_state=0, n_jobs=1)
    value = fit.score_rows(X)[0]
    Y = np.random.default_rng(0).multivariate_normal(fit.mean, fit.covariance, 400_000)
    weight = np.where(Y >= 0.0, share, 1.0).prod(axis=1)
    # The standard error of the average, four times; the row itself is sampled better than that.
    error = weight.std() / weight.mean() / np.sqrt(len(weight))
    assert value == pytest.approx(np.log(weight.mean()), abs=4.0 * error + 1e-3)


def _lost(g, rule, n, share, seed=0):
    X = hs.simulate(g, rule, n, seed)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def test_no_losses_change_nothing():
    X, rule = _table(200, share=0.0)
    plain, none = (hs.fit(X, rule, loss=loss, random_state=0, n_jobs=1) for loss in (None, 0.0))
    np.testing.assert_array_equal(plain.mean, none.mean)
    np.testing.assert_array_equal(plain.covariance, none.covariance)
    assert plain.log_likelihood.value == none.log_likelihood.value
    tiny = hs.fit(X, rule, loss=1e-14, random_state=0, n_jobs=1)
    np.testing.assert_allclose(tiny.mean, plain.mean, atol=1e-10)
    assert tiny.log_likelihood.value == pytest.approx(plain.log_likelihood.value, abs=1e-9)


def test_without_losses_the_edge_is_found():
    found = [
        hs.fit(*_table(200, 0.0, seed), loss="learn", random_state=0, n_jobs=1) for seed in range(6)
    ]
    shares = [fit.loss.share[0] for fit in found]
    # Half of such tables lie on the edge: 0 or 6 of 6 in one of 32.
    assert 0 < sum(share == 0.0 for share in shares) < 6
    for fit, share in zip(found, shares, strict=True):
        assert fit.loss.lower[0] == 0.0 or fit.loss.p_value[0] < 0.05
        assert share < fit.loss.upper[0] < 0.3
        assert (fit.loss.p_value[0] == 1.0) == (share == 0.0)
        if share == 0.0:
            # A normal distribution of this spread would leave the interval no more often than it does.
            assert fit.loss.standard_error[0] <= fit.loss.upper[0] / 1.959


def test_columns_with_shares_of_their_own():
    X, rule = _table(500, share=0.0)
    X[np.random.default_rng(1).random(500) < 0.3, 0] = np.nan
    fit = hs.fit(X, rule, loss=["learn", "learn"], random_state=0, n_jobs=1)
    assert fit.loss.lower[0] < 0.3 < fit.loss.upper[0]
    assert fit.loss.lower[1] < 0.02
    names = ["lead", "zinc"]
    one = hs.fit(X, rule, loss={"lead": "learn"}, names=names, random_state=0, n_jobs=1)
    assert one.loss.share[1] == 0.0
    assert list(one.loss.group) == [0, -1]
    # Both have a share, and that of zinc is next to nothing.
    assert one.loss.share[0] == pytest.approx(fit.loss.share[0], abs=0.03)
    value = one.log_likelihood.value
    for share in (one.loss.share[0] * 0.9, one.loss.share[0] * 1.1):
        held = hs.fit(X, rule, loss={"lead": share}, names=names, random_state=0, n_jobs=1)
        assert held.log_likelihood.value < value


def test_cells_that_are_simply_missing_are_not_lost():
    X, rule = _table(200, share=0.0)
    simply = np.zeros(X.shape, dtype=bool)
    simply[::7, 0] = True
    X[simply] = np.nan
    fit = hs.fit(X, rule, loss=0.2, missing_at_random=simply, random_state=0, n_jobs=1)
    problem_rows = fit.score_rows()
    row = 7
    g = fit.gaussian
    ref = (
        stats.norm.logpdf(X[row, 1], g.mean[1], g.standard_deviations[1]) + np.log(0.8)
        if ~np.isnan(X[row, 1])
        else np.log(0.2 + 0.8 * stats.norm.cdf(LIMITS[1], g.mean[1], g.standard_deviations[1]))
    )
    assert problem_rows[row] == pytest.approx(ref, rel=1e-9)


def test_columns_and_rows_without_a_limit_are_left_alone():
    rng = np.random.default_rng(0)
    lower = np.full((200, 2), -np.inf)
    lower[::2, 0] = 0.0
    X = rng.multivariate_normal(GAUSSIAN.mean, GAUSSIAN.covariance, 200)
    X[lower > X] = np.nan
    fit = hs.fit(X, hs.DetectionLimits(lower=lower), loss=0.1, random_state=0, n_jobs=1)
    plain = stats.multivariate_normal.logpdf(X, fit.mean, fit.covariance)
    complete = ~np.isnan(X).any(axis=1)
    kept = np.where(np.arange(200) % 2 == 0, np.log(0.9), 0.0)
    np.testing.assert_allclose(fit.score_rows()[complete], (plain + kept)[complete], rtol=1e-9)
    assert list(fit.loss.share) == [0.1, 0.0]


def test_cells_that_say_why_they_are_hidden_are_not_lost():
    X, rule = _table(150)
    hidden = np.isnan(X)
    # Blanks in the first column; in the second every hidden cell says "<0.2".
    ends = np.where(hidden, [np.inf, LIMITS[1]], X)
    data = hs.IntervalData(np.where(hidden, -np.inf, X), ends)
    with pytest.warns(hs.errors.AssumptionWarning, match="hidden by the rule, in column x0"):
        told = hs.fit(data, rule, loss=0.15, random_state=0, n_jobs=1)
    assert list(told.loss.share) == [0.15, 0.0]
    table = hs.fit(X, rule, loss=[0.15, 0.0], random_state=0, n_jobs=1)
    # The same likelihood, in other units of the columns.
    np.testing.assert_allclose(told.mean, table.mean, atol=1e-6)
    assert told.log_likelihood.value == pytest.approx(table.log_likelihood.value, abs=1e-6)


def test_imputations_come_from_both_sides():
    X, rule = _table(2000, share=0.2)
    fit = hs.fit(X, rule, loss=0.2, random_state=0, n_jobs=1)
    drawn = fit.draw_imputations(m=5, random_state=0)
    hidden = np.isnan(X[:, 0])
    above = (drawn[:, hidden, 0] >= LIMITS[0]).mean()
    below = stats.norm.cdf(LIMITS[0], fit.mean[0], fit.gaussian.standard_deviations[0])
    expected = 0.2 * (1.0 - below) / (below + 0.2 * (1.0 - below))
    # A binomial share of the 5 · 800 cells, five standard errors: 0.034. Cells of a row go together.
    assert above == pytest.approx(expected, abs=0.035)
    filled = fit.impute()[hidden, 0]
    assert filled.mean() == pytest.approx(drawn[:, hidden, 0].mean(), abs=0.06)


def test_imputations_on_a_curved_scale_are_the_means_of_draws():
    X, _ = _table(1500, share=0.2)
    rule = hs.DetectionLimits(lower=np.exp(LIMITS))
    fit = hs.fit(np.exp(X), rule, transforms="log", loss=0.2, random_state=0, n_jobs=1)
    drawn = fit.draw_imputations(m=60, random_state=0)[:, np.isnan(X)]
    # The mean over 60 tables: a log-normal with a deviation of some 2 in each of 1000 cells that are
    # nearly independent, 2/√60000 = 0.01 and that of the parameters, 0.05.
    assert fit.impute()[np.isnan(X)].mean() == pytest.approx(drawn.mean(), abs=0.12)


def test_bootstraps_lose_values_again():
    X, rule = _table(300)
    fit = hs.fit(X, rule, loss="learn", random_state=0, n_jobs=1)
    for kind in ("rows", "parametric"):
        errors = fit.bootstrap(30, kind=kind, random_state=0).standard_error("mean")
        # A spread of 30 is known to 1/√58 = 13 %: four times that.
        np.testing.assert_allclose(errors, fit.standard_errors.mean, rtol=0.53)
    again = fit.simulate(4000, random_state=1)
    share = np.isnan(again[:, 0]).mean()
    below = stats.norm.cdf(LIMITS[0], fit.mean[0], fit.gaussian.standard_deviations[0])
    # Four binomial standard errors.
    assert share == pytest.approx(below + fit.loss.share[0] * (1.0 - below), abs=0.03)


def test_profiles_are_at_the_known_share_and_refused_for_a_learned_one():
    X, rule = _table(60)
    known = hs.fit(X, rule, loss=0.15, random_state=0, n_jobs=1)
    found = known.confidence_interval(kind="profile").mean
    assert (found.lower < known.mean).all()
    assert (known.mean < found.upper).all()
    learned = hs.fit(X, rule, loss="learn", random_state=0, n_jobs=1)
    with pytest.raises(hs.errors.InputError, match="was learned"):
        learned.confidence_interval(kind="profile")
    assert set(learned.confidence_interval().methods["mean"]) == {"wald"}


def test_nested_fits_learn_their_shares_each():
    X, rule = _table(300)
    small, large = (
        hs.fit(X, rule, loss="learn", covariance=kind, random_state=0, n_jobs=1)
        for kind in ("diagonal", "free")
    )
    assert small.loss.share[0] != large.loss.share[0]
    found = hs.likelihood_ratio_test(small, large)
    ref = 2.0 * (large.log_likelihood.value - small.log_likelihood.value)
    assert found.statistic == pytest.approx(ref, rel=1e-9)
    assert found.degrees_of_freedom == 1
    plain = hs.fit(X, rule, covariance="diagonal", random_state=0, n_jobs=1)
    with pytest.raises(hs.errors.InputError, match="the same losses"):
        hs.likelihood_ratio_test(plain, large)


def test_the_page_says_it(tmp_path):
    X, rule = _table(100)
    fit = hs.fit(X, rule, loss=0.15, random_state=0, n_jobs=1)
    page = fit.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "15.0 % are taken to be lost" in page
    assert "loss=0.15" in page


def test_robust_errors_know_of_losses():
    X, rule = _table(1500)
    fit = hs.fit(X, rule, loss=0.15, random_state=0, n_jobs=1)
    ratio = fit.robust_standard_errors().mean / fit.standard_errors.mean
    # The model is right: 1 ± 4 √(1.5/1500).
    np.testing.assert_allclose(ratio, 1.0, atol=0.13)


def test_it_is_said_saved_and_loaded(tmp_path):
    X, rule = _table(300)
    fit = hs.fit(X, rule, loss="learn", names=["lead", "zinc"], random_state=0, n_jobs=1)
    assert "are estimated to be lost (lead, zinc); 95 % interval" in " ".join(fit.summary().split())
    told = fit.to_dict()["loss"]["lead"]
    assert told["share"] == fit.loss.share[0]
    assert told["learned"] is True
    fit.save(tmp_path / "lead.hsfit")
    again = hs.load(tmp_path / "lead.hsfit")
    for name in ("share", "learned", "group", "standard_error", "lower", "upper", "p_value"):
        np.testing.assert_array_equal(getattr(again.loss, name), getattr(fit.loss, name))
    np.testing.assert_array_equal(again.impute(X), fit.impute(X))
    np.testing.assert_array_equal(again.score_rows(X), fit.score_rows())


def test_pieces_lose_values_as_tables_in_memory_do(tmp_path):
    X, rule = _table(400)
    path = tmp_path / "table.npy"
    np.save(path, X)
    pieces = hs.fit(np.load(path, mmap_mode="r"), rule, loss=0.15, random_state=0, n_jobs=1)
    whole = hs.fit(X, rule, loss=0.15, random_state=0, n_jobs=1)
    np.testing.assert_allclose(pieces.mean, whole.mean, rtol=1e-9)
    assert pieces.loss.share[0] == 0.15
    with pytest.raises(hs.errors.InputError, match="from a table in memory"):
        hs.fit(np.load(path, mmap_mode="r"), rule, loss="learn")


def test_a_checkpoint_is_gone_on_from_with_the_same_losses(tmp_path):
    X, rule = _table(200)
    kept = {"checkpoint": tmp_path / "run.ckpt", "every": 0.0, "random_state": 0, "n_jobs": 1}
    first = hs.fit(X, rule, loss=0.15, **kept)
    again = hs.fit(X, rule, loss=0.15, resume=True, **kept)
    np.testing.assert_array_equal(first.mean, again.mean)
    with pytest.raises(hs.errors.InputError):
        hs.fit(X, rule, loss=0.25, resume=True, **kept)
    with pytest.raises(hs.errors.InputError, match="many climbs"):
        hs.fit(X, rule, loss="learn", checkpoint=tmp_path / "other.ckpt")


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (1.0, "share from 0 to below 1"),
        (-0.1, "share from 0 to below 1"),
        (np.nan, "share from 0 to below 1"),
        (True, "share from 0 to below 1"),
        ("guess", "or 'learn'"),
        ([0.1], "an entry for each of the 2 columns"),
        ({"gold": 0.1}, "speaks of column 'gold'"),
        ([0.1, 0.1], "speaks of column zinc, but no rule"),
    ],
)
def test_what_loss_may_be(loss, text):
    X, _ = _table(50)
    X[:, 1] = 1.0 + np.arange(50)
    rule = hs.DetectionLimits(lower={"lead": 0.0})
    with pytest.raises(hs.errors.InputError, match=text):
        hs.fit(X, rule, loss=loss, names=["lead", "zinc"])


def test_rules_that_cannot_take_it():
    X, rule = _table(50)
    chosen = np.where(np.arange(2) == np.nan_to_num(X).argmax(axis=1)[:, None], X, np.nan)
    chosen = chosen[~np.isnan(chosen).all(axis=1)]
    with pytest.raises(hs.errors.InputError, match="the rule is SelfSelection"):
        hs.fit(chosen, hs.SelfSelection(), loss=0.1)
    with pytest.raises(hs.errors.InputError, match="no rule is stated"), pytest.warns():
        hs.fit(X, loss=0.1)
    both = hs.Combined([([0], hs.DetectionLimits(lower=0.0)), ([1, 2], hs.SelfSelection())])
    odd, values = np.arange(50) % 2 == 1, 1.0 + 0.01 * np.arange(50)
    Y = np.column_stack([X[:, 0], np.where(odd, values, np.nan), np.where(odd, np.nan, values)])
    with pytest.raises(hs.errors.InputError, match="Say it by column"):
        hs.fit(Y, both, loss=0.1)
    with pytest.raises(hs.errors.InputError, match="does not take the option 'loss'"):
        hs.fit(X, rule, method="truncation", loss=0.1)
    hidden = np.isnan(X)
    marked = hs.IntervalData(np.where(hidden, -np.inf, X), np.where(hidden, LIMITS, X))
    with pytest.raises(hs.errors.InputError, match="say themselves"):
        hs.fit(marked, rule, loss=0.1)


def test_a_column_that_is_never_seen_is_an_error_as_ever():
    X, rule = _table(50)
    X[:, 0] = np.nan
    with pytest.raises(hs.errors.InputError, match="x0"):
        hs.fit(X, rule, loss=0.1)
