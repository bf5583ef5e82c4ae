"""Two regimes of which each row shows one: what binds them is not determined, and that is said."""

import numpy as np
import pytest

import halfseen as hs

FORMULAS = {"union": "age", "other": "age", "joins": "age + near"}
RULES = [hs.Selection("union", by="joins"), hs.Selection("other", by="joins", when=False)]


def _table(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    age, near = rng.normal(size=(2, n))
    S = np.array([[1.0, 0.3, 0.6], [0.3, 1.0, 0.4], [0.6, 0.4, 1.0]])
    e = rng.normal(size=(n, 3)) @ np.linalg.cholesky(S).T
    joins = 0.3 * age + 1.2 * near + e[:, 2] > 0.0
    union, other = 1.0 + 0.5 * age + e[:, 0], 0.5 + 0.8 * age + e[:, 1]
    return {
        "age": age, "near": near, "joins": joins,
        "union": np.where(joins, union, np.nan), "other": np.where(joins, np.nan, other),
    }  # fmt: skip


@pytest.fixture(scope="module")
def fit():
    with pytest.warns(hs.ConvergenceWarning, match="No row says anything of both union and other"):
        return hs.regress(FORMULAS, _table(), RULES, random_state=0)


def test_regimes_are_recovered(fit):
    truth = np.array([[1.0, 0.5, 0.0], [0.5, 0.8, 0.0], [0.0, 0.3, 1.2]])
    errors = fit.standard_errors.weights
    assert (np.abs(fit.weights - truth)[fit.mask] < 4.0 * errors[fit.mask]).all()
    R, error = fit.residual_correlation, fit.standard_errors.residual_correlation
    assert abs(R[0, 2] - 0.6) < 4.0 * error[0, 2]
    assert abs(R[1, 2] - 0.4) < 4.0 * error[1, 2]
    # Selection with a regressor of its own: errors that say something.
    assert error[0, 2] < 0.15


def test_what_binds_the_regimes_is_an_interval_and_no_number(fit):
    assert np.isnan(fit.residual_covariance[0, 1])
    assert np.isnan(fit.residual_correlation[1, 0])
    assert np.isnan(fit.standard_errors.residual_correlation[0, 1])
    ends = fit.confidence_interval().residual_correlation
    R = fit.residual_correlation
    half = np.sqrt((1.0 - R[0, 2] ** 2) * (1.0 - R[1, 2] ** 2))
    assert ends.lower[0, 1] == pytest.approx(R[0, 2] * R[1, 2] - half)
    assert ends.upper[0, 1] == pytest.approx(R[0, 2] * R[1, 2] + half)
    assert "any within" in fit.summary()


def test_each_regime_by_itself_says_the_same(fit):
    """The likelihood has no term with both, so that it is greatest where two selections share an index.

    Coefficients of a regime by itself are consistent for the same numbers: within the errors of both.
    """
    data = _table()
    alone = hs.regress(
        {"union": "age", "joins": "age + near"}, data, hs.Selection("union", by="joins"),
        random_state=0,
    )  # fmt: skip
    errors = np.hypot(alone.standard_errors.weights[0], fit.standard_errors.weights[0, :3])
    apart = np.abs(alone.weights[0] - fit.weights[0])[alone.mask[0]]
    assert (apart < 0.5 * errors[alone.mask[0]]).all()


def test_a_saved_fit_knows_it_too(fit, tmp_path):
    fit.save(tmp_path / "switching.hsreg")
    assert np.isnan(hs.load(tmp_path / "switching.hsreg").residual_covariance[0, 1])
