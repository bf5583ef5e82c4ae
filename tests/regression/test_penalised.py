"""Regressions whose coefficients a penalty pulls towards 0."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso, Ridge

import halfseen as hs
from halfseen.solvers.regression import learn_penalised
from halfseen.solvers.regression.model import Penalty, Setup
from halfseen.solvers.regression.penalised import PenalisedClimb, Predicted
from tests import naive_regression as naive
from tests.regression.tables import FORMULAS, INF, SELECTION, ends_of, heckman, residuals

KINDS = ("ridge", "lasso")


def _regressors(rng, n, p):
    """Regressors in units of all sizes, far from 0, that go together."""
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return 10.0 ** rng.integers(-3, 4, p) * (X + 5.0 * rng.normal(size=p))


def _standard(X, weights=None):
    middle = np.average(X, axis=0, weights=weights)
    return (X - middle) / np.sqrt(np.average((X - middle) ** 2, axis=0, weights=weights))


def _tobit(n=150, p=6, q=1, seed=0):
    """A censored table, as intervals, and its regressors."""
    rng = np.random.default_rng(seed)
    X = _regressors(rng, n, p)
    B = np.zeros((p, q))
    B[:3] = [[0.8], [-0.6], [0.5]]
    Y = 0.3 + _standard(X) @ B + residuals(rng, n, q, 0.5)
    return *ends_of(Y, lower=0.0), X


def _fit(lower, upper, X, **options):
    names = [f"y{j}" for j in range(lower.shape[1])]
    return hs.regress(hs.IntervalData(lower, upper, names), X, random_state=0, **options)


@pytest.mark.parametrize("constant", [True, False])
def test_with_nothing_hidden_it_is_that_of_scikit_learn(constant):
    rng = np.random.default_rng(1)
    X = _regressors(rng, 80, 120)
    scale = X.std(axis=0)
    Z, y = X / scale, _standard(X)[:, :5].sum(axis=1) + 3.0 + rng.normal(size=80)
    ridge = hs.regress(y, X, penalty="ridge", strength=0.3, intercept=constant)
    ref = Ridge(alpha=80 * 0.3, fit_intercept=constant, tol=1e-12).fit(Z, y)
    np.testing.assert_allclose(ridge.weights[0, -120:] * scale, ref.coef_, atol=1e-8)
    lasso = hs.regress(y, X, penalty="lasso", strength=0.15, intercept=constant)
    sigma = float(np.sqrt(lasso.residual[0, 0]))
    ref = Lasso(alpha=0.15 * sigma, fit_intercept=constant, tol=1e-10, max_iter=100_000).fit(Z, y)
    np.testing.assert_allclose(lasso.weights[0, -120:] * scale, ref.coef_, atol=1e-5)
    assert np.array_equal(lasso.weights[0, -120:] == 0.0, ref.coef_ == 0.0)
    # σ is the top in closed form, given the coefficients.
    S, a = np.mean((y - ref.predict(Z)) ** 2), 0.15 * np.abs(ref.coef_).sum()
    assert sigma == pytest.approx(0.5 * (a + np.sqrt(a * a + 4.0 * S)), rel=1e-5)


def test_a_censored_ridge_is_that_of_direct_optimisation():
    lower, upper, X = _tobit()
    W, scale, pull = np.column_stack([np.ones(150), X]), X.std(axis=0), 0.2
    Z = np.column_stack([np.ones(150), _standard(X)])

    def function(p):
        beta, variance = p[:-1], np.exp(2.0 * p[-1])
        rows = naive.row_terms(beta[None], [[variance]], lower, upper, Z)
        square = 150 * pull * float(beta[1:] @ beta[1:]) / variance
        slope = rows.slope[:, 0] @ Z
        slope[1:] -= 150 * pull * beta[1:] / variance
        return float(rows.value.sum()) - 0.5 * square, np.append(
            slope, 2.0 * variance * rows.turn.sum() + square
        )

    at, _, covariance = naive.climb(function, np.zeros(8))
    fit = _fit(lower, upper, X, penalty="ridge", strength=pull)
    ours = np.append(fit.weights[0, 1:] * scale, 0.5 * np.log(fit.residual[0, 0]))
    gap = (ours - at[1:]) / np.sqrt(np.diag(covariance))[1:]
    np.testing.assert_allclose(gap, 0.0, atol=1e-4)
    log_likelihood = naive.log_likelihood(fit.weights, fit.residual, lower, upper, W)
    assert fit.log_likelihood == pytest.approx(log_likelihood, abs=1e-7)


def _slopes(fit, kind, lower, upper, X, unit_variance=()):
    """Derivatives of what is maximised in slopes (less the lasso's own), intercepts, and Σ."""
    n, pull = len(X), fit.penalty.strength
    W = np.column_stack([np.ones(n), X])
    rows = naive.row_terms(fit.weights, fit.residual, lower, upper, W)
    P = np.linalg.inv(fit.residual)
    of_terms = rows.slope.T @ W / n
    B = fit.weights[:, 1:] * X.std(axis=0)
    pulled = of_terms[:, 1:] / X.std(axis=0)
    of_errors = rows.turn.mean(axis=0)
    if kind == "ridge":
        pulled = pulled - pull * P @ B
        of_errors = of_errors + 0.5 * pull * P @ B @ B.T @ P
    else:
        weight = np.abs(B).sum(axis=1) / np.sqrt(np.diag(P))
        of_errors = of_errors + 0.5 * pull * P @ np.diag(weight) @ P
    known = np.isin(np.arange(len(P)), unit_variance)
    of_errors = np.where(np.diag(known), 0.0, of_errors)
    return pulled / np.sqrt(np.diag(P))[:, None], of_terms[:, 0], of_errors, B


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_to_gain_with_two_censored_outcomes(kind):
    lower, upper, X = _tobit(n=200, q=2)
    fit = _fit(lower, upper, X, penalty=kind, strength=0.1)
    slopes, intercepts, of_errors, B = _slopes(fit, kind, lower, upper, X)
    np.testing.assert_allclose(intercepts, 0.0, atol=1e-6)
    np.testing.assert_allclose(of_errors, 0.0, atol=1e-6)
    if kind == "ridge":
        np.testing.assert_allclose(slopes, 0.0, atol=1e-6)
        return
    taken = B != 0.0
    assert 0 < taken.sum() < taken.size
    np.testing.assert_allclose(slopes[taken], 0.1 * np.sign(B[taken]), atol=1e-6)
    assert np.abs(slopes[~taken]).max() < 0.1


def test_the_lasso_of_wages_and_of_who_works():
    """A selected outcome, a latent one, and regressors that do nothing."""
    data, _ = heckman(300)
    rng = np.random.default_rng(2)
    data |= {f"x{k}": rng.normal(size=300) for k in range(6)}
    right = " + ".join(["educ", "kids", *(f"x{k}" for k in range(6))])
    fit = hs.regress(
        f"wage + works ~ {right}", data, SELECTION, penalty="lasso", strength=0.05, random_state=0
    )
    X = np.column_stack([data[name] for name in fit.terms[1:]])
    seen = data["works"]
    lower = np.column_stack([np.where(seen, data["wage"], -INF), np.where(seen, 0.0, -INF)])
    upper = np.column_stack([np.where(seen, data["wage"], INF), np.where(seen, INF, 0.0)])
    slopes, intercepts, of_errors, B = _slopes(fit, "lasso", lower, upper, X, [1])
    np.testing.assert_allclose(intercepts, 0.0, atol=1e-5)
    np.testing.assert_allclose(of_errors, 0.0, atol=1e-5)
    taken = B != 0.0
    np.testing.assert_allclose(slopes[taken], 0.05 * np.sign(B[taken]), atol=1e-5)
    assert np.abs(slopes[~taken]).max() < 0.05


def _tables():
    """Models of every sort: what is given to ``regress``."""
    data, _ = heckman(250)
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(2, 250))
    y = 1.0 + x - 0.5 * z + rng.normal(size=250)
    with_rule = {"x": x, "z": z, "y": np.where(y - 0.5 * z >= 0.0, y, np.nan)}
    blank = rng.random(250) < 0.2
    two = {**with_rule, "v": np.where(blank, np.nan, x + rng.normal(size=250))}
    both = {"missing_at_random": np.column_stack([np.isnan(two["y"]), blank])}
    one = {"missing_at_random": blank[:, None]}
    return {
        "selection, exclusion": ((FORMULAS, data, SELECTION), {}),
        "a threshold that goes with a regressor": (
            ("y ~ x", with_rule, {"y": "y - 0.5*z >= 0"}),
            {},
        ),
        "blanks, a diagonal covariance": (
            ("y + v ~ x + z", two),
            both | {"covariance": "diagonal"},
        ),
        "a coefficient that is given": (("v ~ x + z", two), one | {"fixed": {"v": {"x": 0.8}}}),
        "no intercept": (("v ~ 0 + x + z", two), one),
        "equal coefficients": (
            ("y + v ~ x + z", two),
            both | {"equal": [[("y", "x"), ("v", "x")]]},
        ),
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", _tables())
def test_a_penalty_of_next_to_nothing_changes_nothing(name, kind):
    given, options = _tables()[name]
    options = {**options, "random_state": 0}
    if name == "equal coefficients" and kind == "lasso":
        with pytest.raises(hs.InputError, match="lasso cannot keep"):
            hs.regress(*given, penalty=kind, strength=1e-9, **options)
        return
    free = hs.regress(*given, **options)
    fit = hs.regress(*given, penalty=kind, strength=1e-9, **options)
    at = free.standard_errors.vector > 0.0
    gap = (fit.vector - free.vector)[at] / free.standard_errors.vector[at]
    np.testing.assert_allclose(gap, 0.0, atol=1e-3)
    assert fit.log_likelihood == pytest.approx(free.log_likelihood, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_is_not_pulled(kind):
    """A coefficient that is given is as good as taken from the outcome."""
    lower, upper, X = _tobit()
    fixed = {"y0": {"x0": 2.0 / X[:, 0].std()}}
    given = X[:, :1] * fixed["y0"]["x0"]
    fit = _fit(lower, upper, X, penalty=kind, strength=0.1, fixed=fixed)
    apart = _fit(lower - given, upper - given, X[:, 1:], penalty=kind, strength=0.1)
    np.testing.assert_allclose(
        fit.weights[:, [0, *range(2, 7)]], apart.weights, rtol=1e-4, atol=1e-9
    )
    np.testing.assert_allclose(fit.residual, apart.residual, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_leads_down(kind):
    lower, upper, X = _tobit(q=2)
    fit = _fit(lower, upper, X, penalty=kind, strength=0.05)
    setup = Setup.of(fit.source.model, 1)
    rows = Predicted(setup.rows.problem, setup.equations, setup.step.parts[1], 1)
    place = learn_penalised.without_slopes(rows)
    climb, values = PenalisedClimb(rows, Penalty(kind, 0.05), rows.order_at(place)), []
    for _ in range(30):
        place, value = climb.step(place)
        values.append(value)
    assert (np.diff(values) > -1e-12).all()
    assert values[-1] > values[0] + 0.1


@pytest.mark.parametrize(("kind", "strength"), [("ridge", None), ("lasso", 0.1)])
def test_units_do_not_matter(kind, strength):
    lower, upper, X = _tobit(n=100)
    fit = _fit(lower, upper, X, penalty=kind, strength=strength)
    lower, upper, X = 50.0 * lower + 7.0, 50.0 * upper + 7.0, 1e3 * X - np.arange(6)
    moved = _fit(lower, upper, X, penalty=kind, strength=strength)
    assert moved.penalty.strength == pytest.approx(fit.penalty.strength, rel=1e-9)
    np.testing.assert_allclose(moved.predict(), 50.0 * fit.predict() + 7.0, rtol=1e-5, atol=1e-3)


def test_weights_are_copies_of_rows():
    lower, upper, X = _tobit(n=100)
    w = np.random.default_rng(4).integers(1, 4, 100)
    rows = np.repeat(np.arange(100), w)
    for kind in KINDS:
        fit = _fit(lower, upper, X, penalty=kind, strength=0.1, weights=w)
        copies = _fit(lower[rows], upper[rows], X[rows], penalty=kind, strength=0.1)
        np.testing.assert_allclose(fit.weights, copies.weights, rtol=1e-5, atol=1e-9)
        assert fit.is_weighted


def test_rows_that_are_held_out_choose():
    """The held-out curve of the ridge is that of closed forms, and its best strength is taken."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 40))
    y = X[:, 0] + rng.normal(size=60)
    fit = hs.regress(y, X, penalty="ridge", random_state=3)
    Z, strengths, total = _standard(X), fit.history["strengths"], 0.0
    for part in learn_penalised.folds_of(60, 3):
        rest, values = np.setdiff1d(np.arange(60), part), []
        for strength in strengths:
            ref = Ridge(alpha=rest.size * strength).fit(Z[rest], y[rest])
            left = np.mean((y[rest] - ref.predict(Z[rest])) ** 2)
            variance = left + strength * ref.coef_ @ ref.coef_
            error = y[part] - ref.predict(Z[part])
            values.append(-0.5 * (np.log(2.0 * np.pi * variance) + error**2 / variance).sum())
        total = total + np.array(values) / 60
    np.testing.assert_allclose(fit.history["held_out"], total, atol=1e-4)
    assert fit.penalty.strength == strengths[np.argmax(total)]
    assert fit.history["path"].shape == (len(strengths), 1, 41)
    again = hs.regress(y, X, penalty="ridge", random_state=3)
    np.testing.assert_array_equal(again.weights, fit.weights)


def test_more_regressors_than_rows_that_repeat_each_other():
    """Half of 100 regressors are copies of the others, and half of the outcome is hidden."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 50))
    eta = 2.0 * X[:, 0] - 1.5 * X[:, 1]
    y = eta + rng.normal(size=60)
    for kind in KINDS:
        fit = hs.regress(
            np.where(y > 0, y, np.nan), np.hstack([X, X]), hs.DetectionLimits(lower=0.0),
            penalty=kind, random_state=0,
        )  # fmt: skip
        assert fit.status.name == "CONVERGED"
        least = 0.9 if kind == "lasso" else 0.4
        assert np.corrcoef(fit.predict()[:, 0], eta)[0, 1] > least
        assert fit.residual[0, 0] > 0.3


def test_what_such_a_fit_can_do(tmp_path):
    lower, upper, X = _tobit()
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(6)])
    frame["y"] = np.where(lower == upper, lower, np.nan)[:, 0]
    right = " + ".join(frame.columns[:6])
    fit = hs.regress(f"y ~ {right}", frame, {"y": ">=0"}, penalty="lasso", random_state=0)
    for ask in (
        lambda: fit.standard_errors,
        lambda: fit.confidence_interval(),
        lambda: fit.draw_imputations(m=2),
        lambda: fit.predict(standard_error=True),
    ):
        with pytest.raises(hs.InputError, match="off on purpose"):
            ask()
    with pytest.raises(hs.InputError, match="no standard errors"):
        fit.robust()
    with pytest.raises(hs.InputError, match="a penalty \\(lasso\\)"):
        hs.compare(fit, hs.regress("y ~ 1", frame, {"y": ">=0"}, random_state=0))
    assert np.isnan(fit.aic)
    assert "less a penalty (the lasso, strength" in " ".join(fit.summary().split())
    assert abs(float(fit.residuals().std().iloc[0]) - 1.0) < 0.3
    assert fit.predict(frame[:3], kind="seen").shape == (3, 1)
    effects = fit.marginal_effects("x0")
    assert np.isfinite(effects.effects.iloc[0, 0])
    assert np.isnan(effects.standard_errors.iloc[0, 0])
    assert "pulls coefficients towards 0" in fit.report(tmp_path / "p.html").read_text("utf-8")
    fit.save(tmp_path / "p.hsreg")
    again = hs.load(tmp_path / "p.hsreg")
    assert again.penalty == fit.penalty
    np.testing.assert_array_equal(again.predict(frame), fit.predict(frame))
    np.testing.assert_array_equal(again.history["held_out"], fit.history["held_out"])


REFUSED = {
    "another penalty": ({"penalty": "elastic"}, "'ridge' or 'lasso'; got 'elastic'"),
    "a number": ({"penalty": 0.1}, "'ridge' or 'lasso'; got 0.1"),
    "a strength alone": ({"strength": 0.1}, "add penalty="),
    "no strength": ({"penalty": "ridge", "strength": 0.0}, "strength must be"),
    "no number": ({"penalty": "ridge", "strength": "much"}, "strength must be"),
    "clusters": ({"penalty": "ridge", "cluster": np.arange(150)}, "Leave robust= and cluster= out"),
    "robust": ({"penalty": "lasso", "robust": True}, "Leave robust= and cluster= out"),
    "rows that are not there": ({"penalty": "lasso", "truncated": {"y0": ">=0"}}, "truncated="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_said(name):
    options, text = REFUSED[name]
    rng = np.random.default_rng(7)
    with pytest.raises(hs.InputError, match=text):
        hs.regress(rng.gamma(2.0, size=150), rng.normal(size=(150, 2)), **options)


def test_few_rows_constants_and_grades_are_refused():
    rng = np.random.default_rng(8)
    x = rng.normal(size=40)
    with pytest.raises(hs.InputError, match="at least 10 rows"):
        hs.regress(x[:5], x[5:10], penalty="ridge")
    with pytest.raises(hs.InputError, match=r"flat.* is 1 in every row"):
        hs.regress("y ~ x + flat", {"y": x, "x": x[::-1], "flat": np.ones(40)}, penalty="ridge")
    with pytest.raises(hs.InputError, match="none is to be learned"):
        hs.regress("y ~ 1", {"y": x}, penalty="lasso")
    with pytest.raises(hs.InputError, match="none is to be learned"):
        hs.regress("y ~ x", {"y": x, "x": x[::-1]}, penalty="ridge", fixed={"y": {"x": 1.0}})
    data = {"y": np.arange(40) % 3, "x": x}
    with pytest.raises(hs.InputError, match="y is ordered"):
        hs.regress("y ~ x", data, kinds={"y": "ordered"}, penalty="ridge")
    apart = {"old": x > 0, "x": x}
    # What separates categories has no finite estimate, but a finite one that is pulled.
    fit = hs.regress("old ~ x", apart, penalty="ridge", random_state=0)
    assert 0.0 < fit.weights[0, 1] < 20.0
