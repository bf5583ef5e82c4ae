"""Fits of rounded values against the exact likelihood, and what coarse steps say."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

import halfseen as hs


def draw(n, random_state, covariance=((4.0, 1.2), (1.2, 1.0)), mean=(10.0, 3.0)):
    return hs.Gaussian(mean, covariance).sample(n, random_state=random_state)


def climb(minus_log_likelihood, start):
    found = minimize(
        minus_log_likelihood, start, method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000, "maxfev": 4000},
    )  # fmt: skip
    assert found.success
    return found


@pytest.mark.parametrize("step", [0.5, 2.0, 4.0])
def test_one_column_has_the_exact_likelihood(step):
    x = step * np.round(draw(300, 1)[:, :1] / step)
    fit = hs.fit(x, hs.rounded(step), random_state=0)

    def loss(p):
        a, b = (norm.cdf(x + s * step / 2, p[0], np.exp(p[1])) for s in (-1, 1))
        return -np.log(b - a).sum()

    found = climb(loss, [10.0, np.log(2.0)])
    assert fit.log_likelihood.value == pytest.approx(-found.fun, abs=1e-4)
    assert fit.mean[0] == pytest.approx(found.x[0], abs=1e-4 * fit.standard_errors.mean[0] + 2e-4)
    assert np.sqrt(fit.covariance[0, 0]) == pytest.approx(np.exp(found.x[1]), rel=5e-4)


def rectangles(lower, upper, mean, covariance):
    """Probabilities of rectangles, each different one once."""
    pairs, which = np.unique(np.hstack([lower, upper]), axis=0, return_inverse=True)
    law = multivariate_normal(mean, covariance)
    masses = [law.cdf(pair[2:], lower_limit=pair[:2]) for pair in pairs]
    return np.array(masses)[which.ravel()]


def test_two_columns_have_the_exact_likelihood():
    step = np.array([2.0, 1.0])
    X = step * np.round(draw(120, 2) / step)
    fit = hs.fit(X, hs.rounded({"x0": 2, "x1": 1}), random_state=0)
    ends = X - step / 2, X + step / 2

    def log_likelihood(mean, covariance):
        return np.log(rectangles(*ends, mean, covariance)).sum()

    top = log_likelihood(fit.mean, fit.covariance)
    assert fit.log_likelihood.value == pytest.approx(top, abs=1e-3)
    # No parameter can be moved to a higher place: half a hundredth of its error is 1.25e-5 below.
    root = np.linalg.cholesky(fit.covariance)
    for k in range(5):
        moved = []
        for sign in (-1.0, 1.0):
            mean, L = fit.mean.copy(), root.copy()
            if k < 2:
                mean[k] += sign * 0.2 * fit.standard_errors.mean[k]
            else:
                i, j = [(0, 0), (1, 0), (1, 1)][k - 2]
                L[i, j] += sign * 0.2 * root[i, i] / np.sqrt(2 * len(X))
            moved.append(log_likelihood(mean, L @ L.T))
        assert max(moved) < top
        # At a top the log-likelihood falls alike on both sides, but for its third derivative.
        assert abs(moved[0] - moved[1]) < 0.35 * (2 * top - sum(moved))


def test_the_size_of_what_rounding_does_is_sheppards():
    """Rounding adds step²/12 to a variance, and nothing to a covariance, where steps are not wide."""
    step = 1.0
    Y = draw(4000, 3, [[1.0, 0.6], [0.6, 1.0]], [0.0, 0.0])
    X = step * np.round(Y / step)
    fit = hs.fit(X, hs.rounded(step), random_state=0)
    sheppard = np.cov(X.T, bias=True) - np.eye(2) * step**2 / 12
    # The two estimators differ by less than a tenth of a standard error of the variance.
    np.testing.assert_allclose(fit.covariance, sheppard, atol=0.25 * np.sqrt(2 / 4000))
    # Without it the variances are too large by 1/12, which is 3.7 standard errors.
    assert (np.diag(np.cov(X.T)) - np.diag(fit.covariance) > 0.06).all()


def test_rounding_goes_with_a_detection_limit():
    """Blank cells stay below it, though all others became intervals; blank ones beside marked ones do
    not, as if nothing had been rounded."""
    Y = draw(1500, 4)
    rule = hs.DetectionLimits(lower=[9.0, np.nan])
    hidden = Y[:, 0] < 9.0
    X = np.column_stack([np.where(hidden, np.nan, np.round(Y[:, 0])), Y[:, 1]])
    fit = hs.fit(X, hs.rounded({"x0": 1}, rule=rule), random_state=0)
    exact = hs.fit(np.where(hidden[:, None] & [True, False], np.nan, Y), rule, random_state=0)
    errors = exact.standard_errors.mean
    # Steps of half a deviation take 2 % of the information, so that the estimate moves by 0.14 errors
    # (root mean square). Uncut, the intervals around 9 would lower it by 0.76 of them.
    assert (np.abs(fit.mean - exact.mean) < 0.42 * errors).all()
    half = np.array([0.5, 0.0])
    lower, upper = X - half, X + half
    lower[:, 0] = np.where(hidden, -np.inf, np.maximum(lower[:, 0], 9.0))
    upper[hidden, 0] = 9.0
    same = hs.fit(hs.IntervalData(lower, upper), random_state=0)
    np.testing.assert_allclose(fit.mean, same.mean, rtol=1e-10)
    marked = np.where(hidden, np.nan, X[:, 0])[:, None]
    upper = marked.copy()
    upper[np.flatnonzero(hidden)[:50], 0] = 9.0
    cells = hs.IntervalData(marked, upper)
    rule = hs.DetectionLimits(lower=9.0)
    ruled = hs.fit(cells, hs.rounded(1, rule=rule), random_state=0)
    free = hs.fit(hs.rounded(1, rule=rule).intervals(cells), random_state=0)
    np.testing.assert_allclose(ruled.mean, free.mean, rtol=1e-10)


def test_intervals_are_cut_at_the_limits_of_every_kind_of_rule():
    X = [[5.0, 7.0, 1.0], [6.0, 7.0, 1.0]]
    by_row = hs.DetectionLimits(lower=[[5.2, np.nan], [np.nan, 6.8]])
    both = hs.Combined([([0, 1], by_row), ([2], hs.SelfCensoring([hs.at_most(1.25)]))])
    data = hs.rounded(1, rule=both).intervals(X)
    np.testing.assert_allclose(data.lower, [[5.2, 6.5, 0.5], [5.5, 6.8, 0.5]])
    np.testing.assert_allclose(data.upper, [[5.5, 7.5, 1.25], [6.5, 7.5, 1.25]])
    with pytest.raises(hs.ContradictionError, match="row 0, column x0: the value 5 is recorded"):
        hs.rounded(1, rule=hs.DetectionLimits(lower=5.6)).intervals(X)
    with pytest.raises(hs.InputError, match="given for 2 rows, but the data have 3"):
        hs.rounded(1, rule=by_row).intervals(np.ones((3, 2)))


def test_a_recorded_zero_on_a_scale_of_logarithms():
    """0 stands for all up to half a step, which on the scale of logarithms is a half-line."""
    z = np.random.default_rng(6).normal(0.3, 1.0, size=(400, 1))
    x = np.round(np.exp(z))
    fit = hs.fit(x, hs.rounded(1), transforms="log", random_state=0)

    def loss(p):
        with np.errstate(divide="ignore"):
            a, b = (norm.cdf(np.log(np.maximum(x + s, 0)), p[0], np.exp(p[1])) for s in (-0.5, 0.5))
        return -np.log(b - a).sum()

    found = climb(loss, [0.0, 0.0])
    assert fit.mean[0] == pytest.approx(found.x[0], abs=2e-4)
    assert np.sqrt(fit.covariance[0, 0]) == pytest.approx(np.exp(found.x[1]), rel=5e-4)


def test_steps_that_determine_nothing_are_said():
    for values in ([45.0] * 20, [45.0] * 20 + [50.0] * 20):
        with pytest.raises(hs.NotIdentifiedError, match="could be the same value in all of its"):
            hs.fit(np.array(values)[:, None], hs.rounded(5))
    coarse = np.array([45.0] * 4 + [50.0] * 60 + [55.0] * 3)[:, None]
    with pytest.warns(hs.ConvergenceWarning, match="more than 3 standard deviations"):
        fit = hs.fit(coarse, hs.rounded(5), random_state=0)
    assert fit.status is hs.Status.WEAKLY_IDENTIFIED
    # A limit is no slab, nor is a step of one standard deviation.
    assert not hs.fit(np.round(draw(60, 7)), hs.rounded(1), random_state=0).notes


def test_a_slab_of_three_deviations_leaves_a_third_of_the_information():
    """As ``solvers.slabs`` has it: mean, least and most over where the grid lies."""

    def left(step, offset):
        e = np.arange(-40, 41) * step + offset
        f, mass = norm.pdf(e), np.diff(norm.cdf(e))
        scores = np.stack([-np.diff(f), -np.diff(e * f)])[:, mass > 0]
        information = (scores / mass[mass > 0]) @ scores.T
        return 0.5 / np.linalg.inv(information)[1, 1]

    at = {step: [left(step, step * o) for o in np.linspace(0, 1, 41)[:-1]] for step in (1.0, 3.0)}
    assert np.mean(at[3.0]) == pytest.approx(0.37, abs=0.01)
    assert (np.min(at[3.0]), np.max(at[3.0])) == pytest.approx((0.13, 0.65), abs=0.01)
    np.testing.assert_allclose(at[1.0], 0.855, atol=0.002)


def test_frames_come_back_filled_and_diagnosed():
    import pandas as pd

    X = pd.DataFrame(np.round(draw(80, 8)), columns=["a", "b"], index=[f"r{k}" for k in range(80)])
    fit = hs.fit(X, hs.rounded({"a": 1}), random_state=0)
    filled = fit.impute()
    assert list(filled.index) == list(X.index)
    np.testing.assert_array_equal(filled["b"], X["b"])
    assert (np.abs(filled["a"] - X["a"]) <= 0.5).all()
    titles = {(one.title, one.column) for one in hs.diagnose(fit, simulations=19).findings}
    assert ("Mostly hidden", "a") not in titles
    again = hs.diagnose(X, hs.rounded({"a": 1}), simulations=19)
    assert again.hidden[0] == 1.0


def test_estimators_and_pieces_say_what_to_do_instead(tmp_path):
    X = np.round(draw(20, 9))
    with pytest.raises(hs.InputError, match=r"halfseen.fit\(X, rounded"):
        hs.CensoredGaussian(hs.rounded(1)).fit(X)
    with pytest.raises(hs.InputError, match="got the name of a file"):
        hs.fit(str(tmp_path / "x.parquet"), hs.rounded(1))
