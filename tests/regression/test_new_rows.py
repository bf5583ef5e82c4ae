"""Rows that were not fitted."""

import numpy as np
import pytest

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
