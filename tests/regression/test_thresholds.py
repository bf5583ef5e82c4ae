"""Outcomes that are seen where they, and covariates, satisfy inequalities together."""

import numpy as np
import pytest
from scipy import stats

import halfseen as hs


def _table(n=500, seed=0):
    rng = np.random.default_rng(seed)
    kids, educ = rng.poisson(0.8, n).astype(float), rng.normal(size=n)
    wage = 3.0 + educ + 1.5 * rng.normal(size=n)
    shown = wage - 2.0 * kids >= 1.0
    return {"educ": educ, "kids": kids, "wage": np.where(shown, wage, np.nan)}


@pytest.mark.parametrize("formula", ["wage ~ educ", "wage ~ educ + kids"])
@pytest.mark.filterwarnings("ignore:The likeliest of several starts")
def test_a_threshold_that_goes_with_a_covariate_is_a_limit_that_differs_by_row(formula):
    """What hides a wage is a limit of 1 + 2 kids, which ``DetectionLimits`` can say too."""
    data = _table()
    rule = {"wage": "wage - 2*kids >= 1"}
    fit = hs.regress(formula, data, rule, random_state=0)
    limit = (1.0 + 2.0 * data["kids"])[:, None]
    ref = hs.regress(formula, data, hs.DetectionLimits(lower=limit), random_state=0)
    errors = ref.standard_errors.vector
    # One of them samples what the other integrates: a tenth of a standard error is what it stops at.
    np.testing.assert_allclose((fit.vector - ref.vector) / errors, 0.0, atol=0.1)
    np.testing.assert_allclose(fit.standard_errors.vector, errors, rtol=0.05)
    assert fit.log_likelihood == pytest.approx(ref.log_likelihood, abs=0.1)
    assert fit.coefficients.shape == ref.coefficients.shape


@pytest.mark.filterwarnings("ignore:The likeliest of several starts")
def test_imputations_keep_to_the_threshold():
    data = _table()
    fit = hs.regress("wage ~ educ", data, {"wage": "wage - 2*kids >= 1"}, random_state=0)
    hidden = np.isnan(data["wage"])
    (drawn,) = fit.draw_imputations(1, random_state=0)
    assert (drawn[hidden, 0] - 2.0 * data["kids"][hidden] <= 1.0 + 1e-9).all()
    assert stats.kstest(fit.residuals()[:, 0], "norm").pvalue > 1e-3


def test_a_column_that_is_not_there_gets_a_sentence():
    with pytest.raises(hs.InputError, match="kidz"):
        hs.regress("wage ~ educ", _table(), {"wage": "wage - 2*kidz >= 1"})
