"""Regressions against direct optimisation of the exact likelihood by SciPy."""

import numpy as np
import pytest
from scipy.stats import norm

import halfseen as hs
from tests import naive_regression as naive
from tests.regression.tables import (
    FORMULAS,
    INF,
    SELECTION,
    ends_of,
    heckman,
    regressors,
    residuals,
    signs_of,
)

# Some tables say next to nothing of a direction, and so do both.
pytestmark = pytest.mark.filterwarnings("ignore:Some parameters are hardly determined")

# What is asked of estimates, in standard errors; of log-likelihoods; and of standard errors, as a share.
# The engine stops where 1e-11 of log-likelihood is left, which is 5e-6 standard errors; differences of
# steps h = 2e-3 err by some h² = 4e-6.
CLOSE, CLOSE_VALUE, CLOSE_ERROR = 1e-4, 1e-6, 1e-3


def _agree(fit, ref, unit_variance=()):
    """The same estimates, log-likelihood and standard errors."""
    q = len(fit.outcomes)
    i, j = np.tril_indices(q)
    known = ~((i == j) & np.isin(i, unit_variance))
    free = np.concatenate([np.ones(int(fit.free.sum()), dtype=bool), known])
    ours, errors = fit.vector[free], np.sqrt(np.diag(fit.covariance))[free]
    theirs = np.sqrt(np.diag(ref.covariance))
    np.testing.assert_allclose((ours - ref.parameters) / theirs, 0.0, atol=CLOSE)
    np.testing.assert_allclose(errors, theirs, rtol=CLOSE_ERROR)
    assert fit.log_likelihood == pytest.approx(ref.value, abs=CLOSE_VALUE)
    assert fit.log_likelihood_error == 0.0
    assert fit.status.name in ("CONVERGED", "WEAKLY_IDENTIFIED")


def _both(lower, upper, W, **options):
    """A fit of intervals on regressors without formulas, and the oracle's."""
    names = [f"y{j}" for j in range(lower.shape[1])]
    fit = hs.regress(hs.IntervalData(lower, upper, names), W[:, 1:], random_state=0, **options)
    free = np.ones((lower.shape[1], W.shape[1]), dtype=bool)
    return fit, naive.maximise(lower, upper, W, free)


TOBIT = {
    "below": {"lower": 0.2},
    "above": {"upper": 0.5},
    "both sides": {"lower": -0.5, "upper": 1.0},
    "seldom hidden": {"lower": -2.0},
    "mostly hidden": {"lower": 1.0},
}


@pytest.mark.parametrize("name", TOBIT)
@pytest.mark.parametrize(("k", "correlation"), [(1, 0.0), (4, 0.95)])
def test_tobit(name, k, correlation):
    rng = np.random.default_rng([len(name), k])
    W = regressors(rng, 300, k, correlation)
    Y = W @ rng.normal(size=(k + 1, 1)) * 0.5 + residuals(rng, 300, 1, 0.0)
    _agree(*_both(*ends_of(Y, **TOBIT[name]), W))


def test_limits_that_differ_by_row():
    rng = np.random.default_rng(5)
    W = regressors(rng, 300, 2)
    Y = W @ [[0.3], [1.0], [-0.5]] + residuals(rng, 300, 1, 0.0)
    limit = rng.normal(size=(300, 1))
    lower, upper = ends_of(Y, lower=limit)
    fit, ref = _both(lower, upper, W)
    _agree(fit, ref)
    by_rule = hs.regress(
        np.where(limit > Y, np.nan, Y), W[:, 1:], hs.DetectionLimits(lower=limit), random_state=0
    )
    # In other units, so that the climb ends elsewhere, within its tolerance.
    np.testing.assert_allclose(by_rule.vector, fit.vector, rtol=1e-6)


def test_interval_regression():
    """No value is seen, as of incomes that were asked in brackets."""
    rng = np.random.default_rng(6)
    W = regressors(rng, 400, 2)
    Y = W @ [[0.3], [1.0], [-0.5]] + residuals(rng, 400, 1, 0.0)
    cuts = np.array([-INF, -2.0, -1.0, 0.0, 0.7, 2.0, INF])
    code = np.searchsorted(cuts, Y) - 1
    _agree(*_both(cuts[code], cuts[code + 1], W))


@pytest.mark.parametrize("correlation", [-0.5, 0.6, 0.97])
def test_two_tobits_with_blanks(correlation):
    rng = np.random.default_rng(7)
    W = regressors(rng, 400, 3)
    Y = W @ rng.normal(size=(4, 2)) + residuals(rng, 400, 2, correlation)
    blank = rng.random(Y.shape) < 0.15
    lower, upper = ends_of(Y, lower=np.quantile(Y, [0.3, 0.5], axis=0).diagonal(), blank=blank)
    _agree(*_both(lower, upper, W))


def test_three_outcomes_of_which_two_may_hide():
    rng = np.random.default_rng(8)
    W = regressors(rng, 400, 2)
    Y = W @ rng.normal(size=(3, 3)) + residuals(rng, 400, 3, 0.5)
    lower, upper = ends_of(Y, lower=np.array([-INF, 0.3, 0.0]), upper=np.array([INF, INF, 1.2]))
    _agree(*_both(lower, upper, W))


def test_regressors_by_equation():
    rng = np.random.default_rng(9)
    W = regressors(rng, 400, 3)
    Y = W @ rng.normal(size=(4, 2)) + residuals(rng, 400, 2, 0.7)
    lower, upper = ends_of(Y, lower=np.array([0.0, 0.5]))
    data = {f"x{k}": W[:, k] for k in (1, 2, 3)}
    table = hs.IntervalData(
        np.column_stack([lower, W[:, 1:]]), np.column_stack([upper, W[:, 1:]]), ["a", "b", *data]
    )
    fit = hs.regress({"a": "x1 + x3", "b": "x2"}, table, random_state=0)
    order = [["Intercept", "x1", "x2", "x3"].index(term) for term in fit.terms]
    ref = naive.maximise(lower, upper, W[:, order], fit.mask)
    _agree(fit, ref)


def test_equations_without_an_intercept():
    rng = np.random.default_rng(10)
    x = rng.normal(3.0, 1.0, size=(300, 2))
    Y = x @ [[1.0], [0.5]] + residuals(rng, 300, 1, 0.0)
    lower, upper = ends_of(Y, lower=4.0)
    fit = hs.regress(hs.IntervalData(lower, upper), x, intercept=False, random_state=0)
    _agree(fit, naive.maximise(lower, upper, x, np.ones((1, 2), dtype=bool)))


@pytest.mark.parametrize("correlation", [0.6, -0.3])
def test_selection(correlation):
    data, _ = heckman(500, 1, correlation)
    fit = hs.regress(FORMULAS, data, SELECTION, random_state=0)
    W = np.column_stack([np.ones(500), data["educ"], data["kids"]])
    works = data["works"]
    wage = data["wage"]
    lower = np.column_stack([np.where(works, wage, -INF), np.where(works, 0.0, -INF)])
    upper = np.column_stack([np.where(works, wage, INF), np.where(works, INF, 0.0)])
    ref = naive.maximise(lower, upper, W, fit.mask, unit_variance=(1,))
    _agree(fit, ref, unit_variance=(1,))


def test_probit():
    rng = np.random.default_rng(11)
    W = regressors(rng, 400, 3)
    latent = W @ [0.3, 0.8, -0.4, 0.5] + rng.normal(size=400)
    fit = hs.regress({"y": latent > 0}, W[:, 1:], random_state=0)
    lower, upper = (end[:, None] for end in signs_of(latent))
    ref = naive.maximise(lower, upper, W, np.ones((1, 4), dtype=bool), unit_variance=(0,))
    _agree(fit, ref, unit_variance=(0,))


def test_a_probit_that_is_nearly_separated():
    """A regressor tells the answer in all but a few rows; complete ones would say far more of it."""
    rng = np.random.default_rng(12)
    x = np.concatenate([rng.normal(size=1500), 0.005 * rng.normal(size=20)])
    ill = 400.0 * x + rng.normal(size=1520) > 0.0
    with pytest.warns(hs.ConvergenceWarning, match="as from less than two rows"):
        fit = hs.regress("ill ~ x", {"x": x, "ill": ill})
    W, sign = fit.design.matrix, np.where(ill, 1.0, -1.0)
    eta = sign * (W @ fit.weights[0])
    # -d² log Φ(η): the inverse Mills ratio m, times m + η.
    mills = np.exp(norm.logpdf(eta) - norm.logcdf(eta))
    information = (W * (mills * (mills + eta))[:, None]).T @ W
    expected = np.sqrt(np.diag(np.linalg.inv(information)))
    assert expected[1] > 1000.0 / np.sqrt(1520)
    np.testing.assert_allclose(fit.standard_errors.weights[0], expected, rtol=CLOSE_ERROR)


def test_bivariate_probit():
    rng = np.random.default_rng(12)
    W = regressors(rng, 500, 2)
    latent = W @ rng.normal(size=(3, 2)) * 0.6 + residuals(rng, 500, 2, 0.5)
    fit = hs.regress({"a": latent[:, 0] > 0, "b": latent[:, 1] > 0}, W[:, 1:], random_state=0)
    ref = naive.maximise(*signs_of(latent), W, np.ones((2, 3), dtype=bool), unit_variance=(0, 1))
    _agree(fit, ref, unit_variance=(0, 1))


def test_a_binary_beside_a_censored_outcome():
    rng = np.random.default_rng(13)
    W = regressors(rng, 400, 2)
    Y = W @ rng.normal(size=(3, 2)) * 0.6 + residuals(rng, 400, 2, -0.5)
    sign, censored = signs_of(Y[:, 0]), ends_of(Y[:, 1], lower=0.3)
    lower, upper = (np.column_stack(pair) for pair in zip(sign, censored, strict=True))
    data = {
        "x": W[:, 1],
        "z": W[:, 2],
        "a": Y[:, 0] > 0,
        "b": np.where(Y[:, 1] < 0.3, np.nan, Y[:, 1]),
    }
    fit = hs.regress("a + b ~ x + z", data, {"b": ">=0.3"}, random_state=0)
    ref = naive.maximise(lower, upper, W, np.ones((2, 3), dtype=bool), unit_variance=(0,))
    _agree(fit, ref, unit_variance=(0,))


@pytest.mark.parametrize("categories", [3, 5])
def test_ordered_probit(categories):
    rng = np.random.default_rng(14)
    X = rng.normal(size=(600, 2))
    latent = X @ [1.0, -0.6] + rng.normal(size=600)
    code = np.searchsorted(np.linspace(-1.0, 1.5, categories - 1), latent)
    fit = hs.regress({"y": code.astype(float)}, X, kinds={"y": "ordered"}, random_state=0)
    ref = naive.ordered_probit(code, X)
    # With an intercept the first cut point is 0, and the others as far from it as before.
    slopes, cuts = ref.estimates[:2], ref.estimates[2:]
    ours = np.concatenate([fit.weights[0, 1:], fit.cut_points["y"] - fit.weights[0, 0]])
    errors = np.sqrt(np.diag(ref.covariance))
    np.testing.assert_allclose((ours - np.concatenate([slopes, cuts])) / errors, 0.0, atol=CLOSE)
    assert fit.log_likelihood == pytest.approx(ref.value, abs=CLOSE_VALUE)
    told = fit.standard_errors
    np.testing.assert_allclose(told.weights[0, 1:], errors[:2], rtol=CLOSE_ERROR)
    np.testing.assert_allclose(told.weights[0, 0], errors[2], rtol=CLOSE_ERROR)
    # Var(c_k − c_1)
    V = ref.covariance[2:, 2:]
    apart = np.sqrt(np.diag(V) + V[0, 0] - 2.0 * V[0])
    np.testing.assert_allclose(told.cut_points["y"][1:], apart[1:], rtol=CLOSE_ERROR)


def test_complete_outcomes_are_least_squares():
    rng = np.random.default_rng(15)
    W = regressors(rng, 100, 3)
    Y = W @ rng.normal(size=(4, 2)) + residuals(rng, 100, 2, 0.4)
    fit = hs.regress(Y, W[:, 1:])
    B = np.linalg.lstsq(W, Y, rcond=None)[0]
    np.testing.assert_allclose(fit.weights, B.T, rtol=1e-9)
    E = Y - W @ B
    np.testing.assert_allclose(fit.residual, E.T @ E / 100, rtol=1e-8)
    errors = np.sqrt(np.outer(np.diag(np.linalg.inv(W.T @ W)), np.diag(fit.residual)))
    np.testing.assert_allclose(fit.standard_errors.weights.T, errors, rtol=1e-5)


def test_intervals_of_complete_outcomes_are_those_of_least_squares():
    from scipy import stats

    rng = np.random.default_rng(16)
    W = regressors(rng, 25, 2)
    Y = W @ rng.normal(size=(3, 1)) + residuals(rng, 25, 1, 0.0)
    fit = hs.regress(Y, W[:, 1:])
    B, rest, *_ = np.linalg.lstsq(W, Y, rcond=None)
    half = stats.t.ppf(0.975, 22) * np.sqrt(rest[0] / 22 * np.diag(np.linalg.inv(W.T @ W)))
    ends = fit.confidence_interval(0.95)
    np.testing.assert_allclose(ends.coefficients.lower[:, 0], B[:, 0] - half, rtol=1e-4)
    np.testing.assert_allclose(ends.coefficients.upper[:, 0], B[:, 0] + half, rtol=1e-4)
    deviation = np.sqrt(rest[0] / stats.chi2.ppf([0.975, 0.025], 22))
    np.testing.assert_allclose(
        [ends.residual_deviations.lower[0], ends.residual_deviations.upper[0]], deviation, rtol=1e-4
    )


def test_values_that_are_hidden_by_chance():
    """Each with a probability that falls with the value: exact likelihood by quadrature."""
    from scipy import optimize
    from scipy.special import expit, roots_hermitenorm

    rng = np.random.default_rng(17)
    x = rng.normal(size=400)
    y = 0.5 * x + rng.normal(size=400)
    hidden = rng.random(400) < expit(-y)
    data = {"x": x, "y": np.where(hidden, np.nan, y)}
    rule = hs.SelfCensoring([hs.Probability(expit)])
    fit = hs.regress("y ~ x", data, rule, random_state=0)
    nodes, weights = roots_hermitenorm(80)

    def value(p):
        eta, sigma = p[0] + p[1] * x, np.exp(p[2])
        seen = -0.5 * ((y - eta) / sigma) ** 2 - p[2] - 0.5 * np.log(2 * np.pi)
        lost = np.log(expit(-(eta[:, None] + sigma * nodes)) @ weights / weights.sum())
        return -np.where(hidden, lost, seen).sum()

    best = optimize.minimize(
        value, [0.0, 0.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11}
    )
    ours = [*fit.weights[0], 0.5 * np.log(fit.residual[0, 0])]
    # That a seen value was shown is a factor that no parameter moves.
    assert value(ours) == pytest.approx(best.fun, abs=1e-4)
    errors = fit.standard_errors
    scale = [*errors.weights[0], errors.deviations[0] / np.sqrt(fit.residual[0, 0])]
    np.testing.assert_allclose((np.array(ours) - best.x) / scale, 0.0, atol=0.01)
