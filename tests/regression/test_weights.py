"""Regressions whose rows have weights: weighted likelihoods, and the sandwich for them."""

import numpy as np
import pandas as pd
import pytest

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

# In standard errors, as in ``test_oracles``.
CLOSE = 1e-4


def _weights(rng, n):
    """Weights as of a survey, of mean one."""
    w = rng.gamma(2.0, size=n)
    return w / w.mean()


def _table(n=300, seed=1):
    """A Tobit as intervals, its regressors with an intercept, and weights that are whole numbers."""
    rng = np.random.default_rng(seed)
    W = regressors(rng, n, 2)
    Y = W @ [[0.3], [0.8], [-0.4]] + residuals(rng, n, 1, 0.0)
    return *ends_of(Y, lower=0.2), W, rng.integers(0, 4, n)


def _sandwich(ref, lower, upper, W, weights):
    """The root of the sandwich of one outcome, by the oracle's scores, each without its own row."""
    rows = naive.row_terms(ref.Gamma, ref.Sigma, lower, upper, W)
    places = [ref.Gamma + shift * np.array([[1.0, 0.0, 0.0]]) for shift in (-1e-4, 1e-4)]
    ends = [naive.row_terms(one, ref.Sigma, lower, upper, W).slope[:, 0] for one in places]
    falls = weights * (ends[0] - ends[1]) / 2e-4
    left = 1.0 - weights[:, None] / weights.sum()
    scores = weights[:, None] * np.hstack([rows.slope * W, rows.turn[:, 0] / left])
    own = np.zeros((len(W), 4, 4))
    own[:, :3, :3] = falls[:, None, None] * W[:, :, None] * W[:, None, :]
    rest = np.linalg.inv(ref.covariance) - own
    return np.linalg.solve(rest, scores[:, :, None])[:, :, 0]


def _agree(fit, ref, unit_variance=()):
    i, j = np.tril_indices(len(fit.outcomes))
    known = ~((i == j) & np.isin(i, unit_variance))
    learned = np.concatenate([np.ones(int(fit.free.sum()), dtype=bool), known])
    gap = (fit.vector[learned] - ref.parameters) / np.sqrt(np.diag(ref.covariance))
    np.testing.assert_allclose(gap, 0.0, atol=CLOSE)
    assert fit.log_likelihood == pytest.approx(ref.value, abs=1e-6)


def test_tobit():
    lower, upper, W, _ = _table()
    weights = _weights(np.random.default_rng(2), len(W))
    free = np.ones((1, 3), dtype=bool)
    ref = naive.maximise(lower, upper, W, free, weights=weights)
    data = hs.IntervalData(lower, upper, ["y"])
    fit = hs.regress(data, W[:, 1:], weights=weights, random_state=0)
    _agree(fit, ref)
    assert fit.is_robust
    spread = _sandwich(ref, lower, upper, W, weights)
    np.testing.assert_allclose(fit.covariance, spread.T @ spread, rtol=2e-3, atol=1e-8)
    # Another unit of the weights is no difference.
    again = hs.regress(data, W[:, 1:], weights=1e6 * weights, random_state=0)
    np.testing.assert_allclose(again.vector, fit.vector, rtol=1e-9)
    np.testing.assert_allclose(again.covariance, fit.covariance, rtol=1e-6)


def test_probit():
    rng = np.random.default_rng(3)
    W = regressors(rng, 300, 2)
    lower, upper = signs_of(W @ [[0.3], [0.8], [-0.4]] + residuals(rng, 300, 1, 0.0))
    weights = _weights(rng, 300)
    ref = naive.maximise(lower, upper, W, np.ones((1, 3), dtype=bool), [0], weights=weights)
    fit = hs.regress({"y": lower[:, 0] == 0.0}, W[:, 1:], weights=weights, random_state=0)
    _agree(fit, ref, [0])


def test_heckman():
    data, _ = heckman(300)
    weights = _weights(np.random.default_rng(4), 300)
    fit = hs.regress(FORMULAS, data, SELECTION, weights=weights, random_state=0)
    W = np.column_stack([np.ones(300), data["educ"], data["kids"]])
    lower, upper = signs_of(np.where(data["works"], 1.0, -1.0))
    wage = data["wage"]
    lower = np.column_stack([np.where(np.isnan(wage), -INF, wage), lower])
    upper = np.column_stack([np.where(np.isnan(wage), INF, wage), upper])
    free = np.array([[True, True, False], [True, True, True]])
    _agree(fit, naive.maximise(lower, upper, W, free, [1], weights=weights), [1])


def test_ordered():
    """Cut points climb a weighted likelihood too: weights are copies of rows."""
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=200), rng.integers(1, 4, 200)
    y = np.digitize(0.8 * x + rng.normal(size=200), [-0.5, 0.6])
    kinds = {"y": "ordered"}
    fit = hs.regress("y ~ x", {"x": x, "y": y}, kinds=kinds, weights=w, random_state=0)
    rows = np.repeat(np.arange(200), w)
    copies = hs.regress(
        "y ~ x", {"x": x[rows], "y": y[rows]}, kinds=kinds, cluster=rows, random_state=0
    )
    np.testing.assert_allclose(fit.vector, copies.vector, atol=1e-5)
    np.testing.assert_allclose(fit.covariance * 199 / 200, copies.covariance, rtol=1e-3, atol=1e-8)


def test_weights_are_copies_of_rows_and_those_of_none_leave():
    """Estimates are those of a table with copies, and errors those of clusters of copies."""
    lower, upper, W, w = _table()
    rows = np.repeat(np.arange(len(w)), w)
    left = int((w > 0).sum())
    fit = hs.regress(hs.IntervalData(lower, upper, ["y"]), W[:, 1:], weights=w, random_state=0)
    copies = hs.regress(
        hs.IntervalData(lower[rows], upper[rows], ["y"]), W[rows, 1:], cluster=rows, random_state=0
    )
    assert fit.rows == left
    np.testing.assert_allclose(fit.vector, copies.vector, atol=1e-6)
    share = (left - 1.0) / left
    np.testing.assert_allclose(share * fit.covariance, copies.covariance, rtol=1e-4, atol=1e-10)


def test_several_outcomes_in_clusters():
    """More outcomes than are moved one by one, of which two may hide; clusters."""
    rng = np.random.default_rng(6)
    W, w = regressors(rng, 150, 1), rng.integers(1, 3, 150)
    Y = W @ rng.normal(size=(2, 4)) + residuals(rng, 150, 4, 0.5)
    site = np.arange(150) // 5
    Y[:, :2][Y[:, :2] < -0.5] = np.nan
    rule = hs.DetectionLimits(lower=[-0.5, -0.5, -INF, -INF])
    rows = np.repeat(np.arange(150), w)
    fit = hs.regress(Y, W[:, 1:], rule, weights=w, cluster=site, random_state=0)
    copies = hs.regress(Y[rows], W[rows, 1:], rule, cluster=site[rows], random_state=0)
    assert fit.clusters == 30
    np.testing.assert_allclose(fit.vector, copies.vector, atol=1e-5)
    # One of both moves intercepts by a hundredth, the other has Louis' identity.
    np.testing.assert_allclose(fit.standard_errors.vector, copies.standard_errors.vector, rtol=2e-3)


def test_limits_by_row_frames_and_what_is_asked_of_rows():
    """Rows of no weight leave the table, the limits, the clusters and all answers."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"x": rng.normal(size=200), "site": np.arange(200) % 20})
    limit = rng.normal(-0.5, 0.3, 200)
    y = 0.5 + frame.x + rng.normal(size=200)
    frame["y"], frame["w"] = y.where(y >= limit), rng.integers(0, 3, 200)
    rule = hs.DetectionLimits(lower=limit[:, None])
    fit = hs.regress("y ~ x", frame, rule, weights="w", cluster="site", random_state=0)
    kept = frame.w > 0
    rule = hs.DetectionLimits(lower=limit[kept, None])
    ref = hs.regress("y ~ x", frame[kept], rule, weights="w", cluster="site", random_state=0)
    np.testing.assert_allclose(fit.vector, ref.vector, rtol=1e-12)
    np.testing.assert_allclose(fit.covariance, ref.covariance, rtol=1e-12)
    assert fit.residuals().index.equals(frame.index[kept])
    assert fit.predict().index.equals(frame.index[kept])
    np.testing.assert_allclose(fit.robust("site").covariance, fit.covariance, rtol=1e-12)


def test_a_sandwich_is_made_from_the_model_again():
    """Robust errors of a fit that has robust errors are those of the fit."""
    lower, upper, W, _ = _table()
    plain = hs.regress(hs.IntervalData(lower, upper, ["y"]), W[:, 1:], random_state=0)
    site = np.arange(len(W)) // 10
    np.testing.assert_array_equal(
        plain.robust().robust(site).covariance, plain.robust(site).covariance
    )


def test_effects_are_averages_by_weight():
    lower, upper, W, w = _table()
    data = {"x": W[:, 1], "z": W[:, 2], "y": np.where(lower == upper, lower, np.nan)[:, 0], "w": w}
    fit = hs.regress("y ~ x + z", data, {"y": ">=0.2"}, weights="w", random_state=0)
    rows = np.repeat(np.arange(len(w)), w)
    copies = {name: column[rows] for name, column in data.items()}
    own, other = fit.marginal_effects("x"), fit.marginal_effects("x", new=copies)
    np.testing.assert_allclose(own.effects, other.effects, rtol=1e-6)


def test_rows_that_are_not_there():
    rng = np.random.default_rng(8)
    x, w = rng.normal(size=600), rng.integers(1, 4, 600)
    y = 1.0 + x + rng.normal(size=600)
    x, y, w = x[y > 0], y[y > 0], w[y > 0]
    rows = np.repeat(np.arange(len(x)), w)
    rule = {"y": ">=0"}
    fit = hs.regress("y ~ x", {"x": x, "y": y}, truncated=rule, weights=w, random_state=0)
    copies = hs.regress(
        "y ~ x", {"x": x[rows], "y": y[rows]}, truncated=rule, cluster=rows, random_state=0
    )
    np.testing.assert_allclose(fit.vector, copies.vector, rtol=1e-6)
    share = (len(x) - 3.0) / (len(x) - 1.0)
    np.testing.assert_allclose(share * fit.covariance, copies.covariance, rtol=1e-4)


def test_a_pseudo_likelihood_is_not_compared(tmp_path):
    lower, upper, W, w = _table()
    data = {"x": W[:, 1], "z": W[:, 2], "y": np.where(lower == upper, lower, np.nan)[:, 0], "w": w}
    fits = [
        hs.regress(f"y ~ {right}", data, {"y": ">=0.2"}, weights="w", random_state=0)
        for right in ("x + z", "x")
    ]
    with pytest.raises(hs.InputError, match="larger is none: rows have weights"):
        hs.compare(*fits)
    assert np.isnan(fits[0].aic)
    assert np.isnan(fits[0].bic)
    assert "rows are weighted" in " ".join(fits[0].summary().split())
    assert "AIC 2" not in fits[0].summary()
    fits[0].save(tmp_path / "w.hsreg")
    again = hs.load(tmp_path / "w.hsreg")
    assert again.is_weighted
    assert np.isnan(again.aic)
    page = fits[0].report(tmp_path / "w.html").read_text(encoding="utf-8")
    assert "Rows have weights" in page
    assert "log-pseudo-likelihood" in page
