"""Rows that were not fitted."""

import re

import numpy as np
import pytest
from scipy.stats import norm

import halfseen as hs
from tests.regression.tables import FORMULAS, SELECTION, heckman


@pytest.fixture(scope="module")
def fit():
    return hs.regress(FORMULAS, heckman()[0], SELECTION, random_state=0)


def test_one_row_need_not_show_every_category(fit):
    row = {"educ": [12.0], "kids": [1.0], "works": [True], "wage": [4.2]}
    (seen,) = fit.predict(row, "given_seen")
    assert seen[0] == 4.2
    # An index that is known to be positive, and has a wage beside it.
    assert seen[1] > 0.0


def test_new_rows_are_as_the_same_rows_were(fit):
    data = heckman()[0]
    some = {name: column[:20] for name, column in data.items()}
    for kind in ("latent", "seen", "hidden_probability", "given_seen"):
        np.testing.assert_allclose(
            fit.predict(some, kind), fit.predict(None, kind)[:20], rtol=1e-9, atol=1e-12
        )


def test_ordered_rows_are_read_with_the_cut_points_that_were_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    grade = np.digitize(x + rng.normal(size=400), [-1.0, 0.5]).astype(float)
    fit = hs.regress(
        "grade ~ x", {"x": x, "grade": grade}, kinds={"grade": "ordered"}, random_state=0
    )
    highest = fit.predict({"x": [0.0], "grade": [2.0]}, "given_seen")[0, 0]
    assert highest > fit.cut_points["grade"][1]
    middle = fit.predict({"x": [0.0], "grade": [1.0]}, "given_seen")[0, 0]
    assert 0.0 < middle < fit.cut_points["grade"][1]


def test_cells_that_were_not_detected_need_a_limit():
    """As in ``fit``: where it is not said at which limit, no value can be told from another."""
    low = np.array([[1.0], [2.0], [-np.inf], [1.5], [0.7]])
    high = np.array([[1.0], [2.0], [np.inf], [1.5], [0.7]])
    lead = hs.IntervalData(low, high, ["lead"], not_detected=np.isinf(low))
    x = np.arange(5.0)[:, None]
    with pytest.raises(hs.InputError, match="not detected"):
        hs.regress(lead, x)
    fit = hs.regress(lead, x, {"lead": ">=0.5"}, standard_errors=False, random_state=0)
    assert fit.seen_share[0] == 0.8


def test_errors_of_chances_are_those_of_differences_of_parameters():
    """The delta method beside the scatter of chances over parameters drawn from their law.

    A standard deviation of 4 000 draws is off by 1.1 %, and the chances are curved: 5 % is 4 of those.
    """
    rng = np.random.default_rng(1)
    x = rng.normal(size=600)
    e = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], 600)
    data = {"x": x, "grade": np.digitize(x + e[:, 0], [-0.5, 0.8]), "ill": x + e[:, 1] > 0.3}
    fit = hs.regress("grade + ill ~ x", data, kinds={"grade": "ordered"}, random_state=0)
    new = {"x": [-0.7, 0.4]}
    chances, errors = fit.predict(new, "categories", standard_error=True)
    W = np.column_stack([np.ones(2), new["x"]])
    drawn = rng.multivariate_normal(fit.vector, fit.standard_errors.parameters, 4000)
    for name, j in (("grade", 0), ("ill", 1)):
        assert chances[name].sum(axis=1) == pytest.approx(1.0)
        found = []
        for one in drawn:
            weights, _, cuts = fit.unpack(one)
            ends = np.concatenate([[-np.inf], cuts.get(name, [0.0]), [np.inf]])
            found.append(np.diff(norm.cdf(ends - (W @ weights[j])[:, None]), axis=1))
        np.testing.assert_allclose(errors[name], np.std(found, axis=0), rtol=0.05)


def test_effects_on_categories_add_up_to_nothing():
    rng = np.random.default_rng(2)
    x = rng.normal(size=500)
    data = {"x": x, "grade": np.digitize(x + rng.normal(size=500), [-0.5, 0.8])}
    fit = hs.regress("grade ~ x", data, kinds={"grade": "ordered"}, random_state=0)
    found = fit.marginal_effects("x", "categories")
    assert found.outcomes == ("grade: 0", "grade: 1", "grade: 2")
    assert found.effects.sum() == pytest.approx(0.0, abs=1e-9)
    # Chances at x moved a little, by hand.
    high, low = (fit.predict({"x": x + by}, "categories")["grade"] for by in (1e-4, -1e-4))
    np.testing.assert_allclose(found.effects[0], (high - low).mean(axis=0) / 2e-4, atol=1e-6)
    assert (found.standard_errors > 0.0).all()
    # Of an ordered outcome nothing is seen but its category.
    assert np.isnan(fit.marginal_effects("x", "seen").effects).all()
    assert np.isnan(fit.marginal_effects("x", "seen").standard_errors).all()


SLOPES = {
    "log(dose)": lambda b, dose: b[1] / dose,
    "dose + I(dose**2)": lambda b, dose: b[1] + 2.0 * b[2] * dose,
    "sqrt(dose)": lambda b, dose: 0.5 * b[1] / np.sqrt(dose),
}


@pytest.mark.parametrize("terms", SLOPES)
def test_slopes_of_functions_of_a_skewed_variable_are_those_of_calculus(terms):
    rng = np.random.default_rng(3)
    dose = np.exp(2.0 * rng.normal(size=400))
    y = np.log(dose) + rng.normal(size=400)
    fit = hs.regress(f"y ~ {terms}", {"dose": dose, "y": y}, random_state=0)
    found = fit.marginal_effects("dose", "latent")
    expected = np.mean(SLOPES[terms](fit.weights[0], dose))
    assert found.effects[0, 0] == pytest.approx(expected, rel=1e-5)


def test_a_spline_has_slopes_up_to_the_ends_of_what_was_seen():
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(size=300))
    data = {"x": x, "y": 2.0 * x + 0.1 * rng.normal(size=300)}
    fit = hs.regress("y ~ bs(x, df=4)", data, random_state=0)
    inner = {"x": x[1:-1]}
    high, low = (fit.predict({"x": x[1:-1] + by}) for by in (1e-6, -1e-6))
    expected = np.mean(high - low) / 2e-6
    found = fit.marginal_effects("x", "latent", inner).effects[0, 0]
    assert found == pytest.approx(expected, rel=1e-5)
    # The two ends are two of 300 rows.
    assert fit.marginal_effects("x", "latent").effects[0, 0] == pytest.approx(found, rel=0.05)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ("I(kids > 0)", "'I(kids > 0)' jumps as kids changes"),
        ("C(kids > 0)", "jumps as kids changes"),
        ("sqrt(kids)", "'sqrt(kids)' has no slope where kids is 0"),
    ],
)
def test_where_there_is_no_slope_it_is_said(terms, words):
    """Of I(kids > 0) the quotient of differences is -350 one day and 0 the next."""
    rng = np.random.default_rng(5)
    kids = rng.poisson(1.0, 200)
    data = {"kids": kids, "y": (kids > 0) + rng.normal(size=200)}
    fit = hs.regress(f"y ~ {terms}", data, random_state=0)
    with pytest.raises(hs.errors.InputError, match=re.escape(words)):
        fit.marginal_effects("kids")
