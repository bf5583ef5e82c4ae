"""Tables in which something is not determined, or too far out for a double; and labels of pandas."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import halfseen as hs
from tests import naive_regression as naive
from tests.regression.tables import FORMULAS, SELECTION, heckman

N = 60
RNG = np.random.default_rng(1)
X, Z = RNG.normal(size=(2, N))


def _status(*model, **options):
    """The fit, and how it ended; the warning that goes with it is not looked at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        fit = hs.regress(*model, random_state=0, **options)
    return fit, fit.status.name


@pytest.mark.parametrize("noise", [0.1, 0.01, 0.003])
def test_a_line_that_explains_nearly_all_has_the_errors_of_least_squares(noise):
    y = 2.0 * X + 1.0 + noise * Z
    fit = hs.regress("y ~ x", {"x": X, "y": y})
    W = np.column_stack([np.ones(N), X])
    B, rest, *_ = np.linalg.lstsq(W, y, rcond=None)
    errors = np.sqrt(rest[0] / N * np.diag(np.linalg.inv(W.T @ W)))
    assert fit.status.name == "CONVERGED"
    np.testing.assert_allclose(fit.weights[0], B, rtol=1e-7)
    np.testing.assert_allclose(fit.residual[0, 0], rest[0] / N, rtol=1e-5)
    np.testing.assert_allclose(fit.standard_errors.weights[0], errors, rtol=1e-4)


@pytest.mark.parametrize(
    ("rows", "noise", "rule"), [(N, 0.0, None), (2, 1.0, None), (N, 0.0, {"y": ">=0"}), (N, 1e-7, None)]
)  # fmt: skip
def test_residuals_that_vanish_are_said(rows, noise, rule):
    y = (2.0 * X + 1.0 + noise * Z)[:rows]
    y = y if rule is None else np.where(y >= 0.0, y, np.nan)
    fit, _ = _status("y ~ x", {"x": X[:rows], "y": y}, rule)
    assert any("residuals of y are as good as zero" in note.text for note in fit.notes)
    assert fit.status.severity >= hs.Status.ON_DOMAIN_EDGE.severity
    assert fit.covariance is None


def test_residuals_of_more_outcomes_than_rows_allow_are_said():
    fit, status = _status(RNG.normal(size=(4, 3)), RNG.normal(size=(4, 1)))
    assert status == "ON_DOMAIN_EDGE"
    assert "combinations of each other" in fit.notes[0].text


@pytest.mark.parametrize("formula", ["g ~ x", "g ~ x + z"])
def test_separated_grades_are_found_before_the_climb(formula):
    latent = X if formula == "g ~ x" else X + Z
    data = {"x": X, "z": Z, "g": np.digitize(latent, [-0.5, 0.5]).astype(float)}
    with pytest.raises(hs.NotIdentifiedError, match="without exception"):
        hs.regress(formula, data, kinds={"g": "ordered"})
    _, status = _status(
        "g ~ x", data | {"g": np.digitize(X + Z, [-0.5, 0.5])}, kinds={"g": "ordered"}
    )
    assert status == "CONVERGED"


def test_a_mean_where_hardly_anything_is_seen_stays_within_the_rule():
    """E(y | y >= 0) at η = −σz is σ(φ(z)/Φ(−z) − z)."""
    y = 1.0 + X + Z
    fit = hs.regress("y ~ x", {"x": X, "y": np.where(y >= 0, y, np.nan)}, {"y": ">=0"})
    far = np.array([-5.0, -30.0, -100.0])
    eta, sigma = fit.predict({"x": far})[:, 0], np.sqrt(fit.residual[0, 0])
    z = -eta / sigma
    ref = sigma * (np.exp(stats.norm.logpdf(z) - stats.norm.logsf(z)) - z)
    np.testing.assert_allclose(fit.predict({"x": far}, "seen")[:, 0], ref, rtol=1e-4)


def test_only_a_special_case_is_compared():
    y = 1.0 + X + Z
    data = {
        "x": X,
        "z": Z,
        "y": np.where(y >= 0, y, np.nan),
        "w": RNG.normal(size=N),
        "x3": 3.0 * X,
    }
    rule = {"y": ">=0"}
    larger = hs.regress("y ~ x + w", data, rule)
    with pytest.raises(hs.InputError, match="z of y is no combination"):
        hs.compare(larger, hs.regress("y ~ z", data, rule))
    with pytest.raises(hs.InputError, match="under the same rule"):
        hs.compare(larger, hs.regress("y ~ x", data, {"y": ">=-1"}))
    rescaled = hs.compare(larger, hs.regress("y ~ x3", data, rule))
    assert rescaled.test.statistic == pytest.approx(
        hs.compare(larger, hs.regress("y ~ x", data, rule)).test.statistic, abs=1e-6
    )


def _height_at(correlation, data):
    """The exact log-likelihood of a selection with this correlation, everything else at its best."""
    works, ones = data["works"], np.ones(len(data["works"]))
    wage = np.where(works, data["wage"], 0.0)
    W = np.column_stack([ones, data["educ"]])
    W_works = np.column_stack([W, data["kids"]])

    def loss(p):
        p = np.append(p, np.arctanh(correlation))
        value, slope = naive.heckman_log_likelihood(p, wage, works, W, W_works)
        return -value, -slope[:-1]

    start = np.append(np.linalg.lstsq(W[works], wage[works])[0], [0.0, 0.0, 0.0, np.log(1.5)])
    return -optimize.minimize(loss, start, jac=True, method="BFGS").fun


def test_a_selection_that_is_likelier_on_an_edge_says_so():
    data, _ = heckman(n=60, seed=0)
    with np.errstate(all="ignore"):
        near_the_edge = _height_at(0.9999, data)
    fit, status = _status(FORMULAS, data, SELECTION)
    assert status == "NO_GLOBAL_GUARANTEE"
    (note,) = fit.notes
    # A top inside its domain, by the oracle too, and a higher place where there is none.
    inside = fit.residual_correlation[0, 1]
    assert abs(inside) < 0.95
    assert fit.log_likelihood == pytest.approx(_height_at(inside, data), abs=1e-4)
    assert near_the_edge > fit.log_likelihood + 0.5
    assert "correlation near +1 between the residuals of wage and works" in note.text


def test_a_selection_far_from_edges_looks_at_none():
    data, _ = heckman(n=2000, seed=0)
    fit, status = _status(FORMULAS, data, SELECTION)
    assert status == "CONVERGED"
    assert not fit.notes


class TestLabels:
    data = pd.DataFrame({"x": X, "y": X + Z, "q": RNG.normal(size=N)})

    def test_a_covariance_is_read_by_its_labels(self):
        C = pd.DataFrame([[4.0, 0.2], [0.2, 1.0]], index=["q", "y"], columns=["q", "y"])
        fit = hs.regress("y + q ~ x", self.data, covariance=C)
        assert fit.residual_covariance.loc["q", "q"] == pytest.approx(4.0)
        with pytest.raises(hs.InputError, match="outcomes as columns"):
            hs.regress("y ~ x", self.data, covariance=C)

    def test_a_mask_is_read_by_its_labels(self):
        data = self.data.assign(y=self.data.y.where(self.data.y >= 0))
        mask = pd.DataFrame({"q": np.zeros(N, dtype=bool), "y": data.y.isna() & (X > 0)})
        rule = {"y": ">=0"}
        by_name = hs.regress("y + q ~ x", data, rule, missing_at_random=mask)
        plain = hs.regress("y + q ~ x", data, rule, missing_at_random=mask[["y", "q"]].to_numpy())
        np.testing.assert_array_equal(by_name.vector, plain.vector)

    def test_rows_in_another_order_are_refused(self):
        other = self.data.sample(frac=1.0, random_state=0)
        with pytest.raises(hs.InputError, match="in another order"):
            hs.regress(self.data[["y"]], other[["x"]])
        fit = hs.regress("y ~ x", self.data)
        site = pd.Series(np.arange(N) // 4, index=self.data.index)
        assert fit.robust(site).clusters == 15
        with pytest.raises(hs.InputError, match="clusters have other labels"):
            fit.robust(site.loc[other.index])
