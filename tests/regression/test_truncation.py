"""Rows that are not in the table at all, through the door."""

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from tests import naive_regression as naive


def _table(n=600, seed=0, low=1.0, high=np.inf):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 1.0 + 0.8 * x + rng.normal(size=n)
    there = (y > low) & (y < high)
    return {"x": x[there], "y": y[there]}


@pytest.mark.parametrize(("rule", "ends"), [(">=1", (1.0, np.inf)), ("0..2.5", (0.0, 2.5))])
def test_the_answer_is_that_of_direct_optimisation(rule, ends):
    data = _table(low=ends[0], high=ends[1])
    fit = hs.regress("y ~ x", data, truncated={"y": rule})
    W = np.column_stack([np.ones(data["x"].size), data["x"]])
    ref = naive.truncated_regression(data["y"], *ends, W)
    errors = np.sqrt(np.diag(ref.covariance))
    ours = np.append(fit.weights[0], np.sqrt(fit.residual[0, 0]))
    np.testing.assert_allclose((ours - ref.estimates) / errors, 0.0, atol=1e-4)
    np.testing.assert_allclose(fit.standard_errors.weights[0], errors[:2], rtol=1e-3)
    np.testing.assert_allclose(fit.standard_errors.deviations[0], errors[2], rtol=1e-3)
    assert fit.log_likelihood == pytest.approx(ref.value, abs=1e-5)


def test_sets_may_be_told_in_several_ways():
    data = _table()
    n = data["y"].size
    text = hs.regress("y ~ x", data, truncated={"y": ">=1"})
    for given in (
        {"y": hs.at_least(1.0)}, hs.at_least(1.0), hs.DetectionLimits(lower=np.full((n, 1), 1.0)),
    ):  # fmt: skip
        np.testing.assert_allclose(
            hs.regress("y ~ x", data, truncated=given).vector, text.vector, rtol=1e-6
        )


def test_residuals_are_standard_normal():
    """Their distribution against the normal one: Kolmogorov's statistic at one in a thousand."""
    fit = hs.regress("y ~ x", _table(2000), truncated={"y": ">=1"})
    assert stats.kstest(fit.residuals()[:, 0], "norm").pvalue > 1e-3
    plain = hs.regress("y ~ x", _table(2000))
    assert stats.kstest(plain.residuals()[:, 0], "norm").pvalue < 1e-3


def test_predictions_know_what_is_left_out():
    fit = hs.regress("y ~ x", _table(2000), truncated={"y": ">=1"})
    new = {"x": [-1.0, 0.0, 1.0]}
    eta, sigma = fit.predict(new)[:, 0], np.sqrt(fit.residual[0, 0])
    hidden = stats.norm.cdf((1.0 - eta) / sigma)
    np.testing.assert_allclose(fit.predict(new, "hidden_probability")[:, 0], hidden, rtol=1e-9)
    mean = stats.truncnorm((1.0 - eta) / sigma, np.inf, eta, sigma).mean()
    np.testing.assert_allclose(fit.predict(new, "seen")[:, 0], mean, rtol=1e-9)


def test_robust_errors_of_rows_that_scatter_more():
    rng = np.random.default_rng(4)
    x = rng.normal(size=4000)
    y = 1.0 + 0.8 * x + (0.4 + np.abs(x)) * rng.normal(size=4000)
    there = y > 0.0
    fit = hs.regress("y ~ x", {"x": x[there], "y": y[there]}, truncated={"y": ">=0"})
    assert fit.robust().standard_errors.weights[0, 1] > 1.2 * fit.standard_errors.weights[0, 1]


def test_a_row_outside_its_set_is_refused():
    data = _table()
    data["y"][3] = 0.5
    with pytest.raises(hs.InputError, match="row 3"):
        hs.regress("y ~ x", data, truncated={"y": ">=1"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"z": ">=1"}, "the outcome y"),
        (3.0, "must be a set"),
        ({"y": hs.Probability(lambda v: 0.0 * v + 0.5)}, "no such set"),
    ],
)
def test_what_is_no_set_gets_a_sentence(given, words):
    with pytest.raises(hs.InputError, match=words):
        hs.regress("y ~ x", _table(), truncated=given)


def test_only_one_outcome_may_leave_rows_out():
    data = _table() | {"z": np.zeros(_table()["y"].size)}
    with pytest.raises(hs.InputError, match="one outcome"):
        hs.regress("y + z ~ x", data, truncated={"y": ">=1"})


def test_rows_that_do_not_tell_how_many_are_missing():
    """A tail that falls more slowly than that of any normal law, however far out it begins."""
    rng = np.random.default_rng(0)
    data = {"y": rng.lognormal(size=80), "x": rng.normal(size=80)}
    with pytest.warns(hs.ConvergenceWarning, match="missing ones of y are: .* take logarithms"):
        fit = hs.regress("y ~ x", data, truncated={"y": ">0"})
    assert fit.status.name == "ON_DOMAIN_EDGE"
    assert fit.covariance is None
