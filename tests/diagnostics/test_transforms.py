"""Scales that are suggested for columns which do not look normal."""

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.data.powers import ColumnCells
from halfseen.diagnostics.normality import best_scale


def suggestion(x, hide=0.3, **options):
    limit = np.quantile(x, hide)
    X = np.where(x < limit, np.nan, x)[:, None]
    return hs.diagnose(X, hs.DetectionLimits(lower=limit), simulations=199, **options)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [(np.exp, "log"), (lambda z: (z + 6.0) ** 4, None), (lambda z: z, "none")],
    ids=["log-normal", "fourth power", "normal"],
)
def test_the_scale_behind_a_column_is_found(make, wanted):
    x = make(np.random.default_rng(0).normal(size=600))
    found = suggestion(x).suggested_transform
    if wanted == "none":
        assert found == {}
    elif wanted == "log":
        assert found == {"x0": "log"}
    else:
        # Between the log and the square root, and told as fit reads it.
        scale = hs.diagnose(
            np.where(x < np.quantile(x, 0.3), np.nan, x)[:, None],
            hs.DetectionLimits(lower=np.quantile(x, 0.3)),
            transforms=found["x0"],
        )
        assert scale.normality.columns[0].p_value > 0.05


def test_the_likelihood_of_a_scale_has_its_jacobian():
    x = np.exp(0.5 * np.random.default_rng(1).normal(size=400) + 1.0)
    limit = np.quantile(x, 0.25)
    hidden = x < limit
    cells = ColumnCells.from_ends(np.where(hidden, -np.inf, x), np.where(hidden, limit, x))
    chosen = best_scale(cells)
    fitted = cells.fit(chosen)
    assert chosen.name == "log"
    ref = stats.lognorm.logpdf(x[~hidden], fitted.standard_deviation, scale=np.exp(fitted.mean))
    below = stats.lognorm.logcdf(limit, fitted.standard_deviation, scale=np.exp(fitted.mean))
    assert fitted.log_likelihood == pytest.approx(ref.sum() + hidden.sum() * below)


def test_a_better_scale_than_the_present_one_is_told():
    rng = np.random.default_rng(2)
    found = suggestion(np.exp(rng.normal(size=600)), transforms="sqrt")
    assert found.suggested_transform == {"x0": "log"}
    normal = suggestion(rng.normal(10.0, 2.0, size=600) ** 1.0, transforms="log", hide=0.05)
    assert normal.suggested_transform == {"x0": "none"}
    assert any("Without a transform" in finding.text for finding in normal.findings)


def test_columns_with_negative_values_get_a_scale_that_takes_them():
    z = np.random.default_rng(3).normal(size=800)
    x = np.sinh(z) + np.expm1(z)
    found = suggestion(x).suggested_transform
    assert all(word.startswith("yeojohnson") for word in found.values())


def test_two_peaks_get_no_scale_that_does_not_help():
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.normal(-4.0, 1.0, 300), rng.normal(4.0, 1.0, 300)])
    found = suggestion(x, 0.1)
    assert found.normality.columns[0].p_value < 0.01
    assert found.suggested_transform == {}
