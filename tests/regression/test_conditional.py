"""Outcomes given others: covariates that are hidden themselves."""

import numpy as np
import pytest

import halfseen as hs


def _table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.exponential(size=n)
    dose = 0.5 * age + rng.normal(size=n)
    lead = 1.0 + 2.0 * dose - age + rng.normal(size=n)
    return {"age": age, "dose": dose, "lead": lead}


def test_with_nothing_hidden_it_is_least_squares():
    data = _table()
    fit = hs.regress("lead + dose ~ age", data).given("dose")
    W = np.column_stack([np.ones(600), data["age"], data["dose"]])
    B = np.linalg.lstsq(W, data["lead"], rcond=None)[0]
    e = data["lead"] - W @ B
    errors = np.sqrt(e @ e / 600 * np.diag(np.linalg.inv(W.T @ W)))
    assert fit.terms == ("Intercept", "age", "dose")
    np.testing.assert_allclose(fit.coefficients[:, 0], B, rtol=1e-8)
    np.testing.assert_allclose(fit.standard_errors[:, 0], errors, rtol=1e-4)
    np.testing.assert_allclose(fit.residual_covariance, e @ e / 600, rtol=1e-8)


def test_a_hidden_covariate_has_the_slope_that_a_joint_fit_says():
    """Σ of a fit of all three columns has the same slopes, whatever the law of age."""
    data = _table(800, 1)
    data["dose"] = np.where(data["dose"] > 0.3, data["dose"], np.nan)
    rule = {"dose": ">=0.3"}
    found = hs.regress("lead + dose ~ age", data, rule, random_state=0).given(["dose"])
    columns = np.column_stack([data["lead"], data["dose"], data["age"]])
    low = hs.DetectionLimits(lower=[-np.inf, 0.3, -np.inf])
    S = hs.fit(columns, low, random_state=0).covariance
    slopes = np.linalg.solve(S[1:, 1:], S[1:, 0])
    np.testing.assert_allclose(found.coefficients[[2, 1], 0], slopes, rtol=1e-5)
    assert abs(found.coefficients[2, 0] - 2.0) < 4.0 * found.standard_errors[2, 0]


@pytest.mark.parametrize("given", ["zinc", [], ["lead", "dose"], ["dose", "dose"], 3])
def test_what_cannot_be_given_gets_a_sentence(given):
    fit = hs.regress("lead + dose ~ age", _table())
    with pytest.raises(hs.InputError, match="some of the outcomes"):
        fit.given(given)
