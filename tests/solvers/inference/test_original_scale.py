import dataclasses

import numpy as np
import pytest
from scipy import stats

import halfseen as hs

TRUTH = hs.Gaussian([0.5, 3.0, 2.0], [[0.5, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])
TRANSFORMS = ("log", "sqrt", "none")


def _table(n, seed):
    Z = TRUTH.sample(n, np.random.default_rng(seed))
    X = np.stack([np.exp(Z[:, 0]), Z[:, 1] ** 2, Z[:, 2]], axis=1)
    return np.where(X < LIMITS, np.nan, X)


LIMITS = [1.2, 7.0, 1.7]
RULE = hs.DetectionLimits(lower=LIMITS)


@pytest.fixture(scope="module")
def fit():
    return hs.fit(_table(500, 0), RULE, transforms=TRANSFORMS, random_state=0)


def test_closed_forms(fit):
    found = fit.original_scale(probabilities=(0.1, 0.9))
    mu, sigma = fit.gaussian.mean, fit.gaussian.standard_deviations
    np.testing.assert_allclose(found.median, [np.exp(mu[0]), mu[1] ** 2, mu[2]], rtol=1e-12)
    log_normal = stats.lognorm(sigma[0], scale=np.exp(mu[0]))
    assert found.mean[0] == pytest.approx(log_normal.mean(), rel=1e-12)
    # E z² = μ² + σ²; below zero there is nothing at 4.7 standard deviations.
    assert found.mean[1] == pytest.approx(mu[1] ** 2 + sigma[1] ** 2, rel=1e-5)
    assert found.mean[2] == mu[2]
    np.testing.assert_allclose(found.quantiles[0], log_normal.ppf([0.1, 0.9]), rtol=1e-12)
    assert found.geometric_deviation[0] == pytest.approx(np.exp(sigma[0]))
    assert np.isnan(found.geometric_deviation[1:]).all()


@pytest.mark.parametrize(
    "transform", ["sqrt", "boxcox(1)", "boxcox(2)", "boxcox(0.3)", "yeojohnson(0.6)"]
)
@pytest.mark.parametrize(("mu", "sigma"), [(0.5, 1.0), (0.0, 5.0), (3.0, 0.2)])
def test_means_are_integrals(transform, mu, sigma):
    from scipy.integrate import quad

    from halfseen.data.transforms import parse_transform
    from halfseen.solvers.inference.original_scale import mean_in_units

    t = parse_transform(transform)
    kink = {"sqrt": 0.0, "boxcox(1)": -1.0, "boxcox(2)": -0.5, "boxcox(0.3)": -1 / 0.3}.get(
        transform, 0.0
    )

    def density(z):
        return float(t.inverse(z)) * stats.norm.pdf(z, mu, sigma)

    ends = mu - 12 * sigma, mu + 12 * sigma
    split = min(max(kink, ends[0]), ends[1])
    expected = sum(
        quad(density, a, b, limit=400, epsabs=1e-13)[0]
        for a, b in ((ends[0], split), (split, ends[1]))
    )
    # Above 1 the way back begins like a root, which quadrature takes less well.
    rel = 1e-4 if transform == "boxcox(2)" else 1e-8
    assert mean_in_units(t, mu, sigma) == pytest.approx(expected, rel=rel)


def test_errors_are_those_of_the_delta_method(fit):
    found = fit.original_scale(0.95, (0.9,), kind="wald")
    z, m = stats.norm.ppf(0.9), float(fit.uncertainty.rows_for_variances[0])
    # Student's t for as many complete rows as would know as much.
    q = stats.t.ppf(0.975, m - 1.0) * np.sqrt(m / (m - 1.0))
    estimate = fit.uncertainty.of(lambda m, S: m[0] + z * np.sqrt(S[0, 0]))
    low = np.exp(estimate.value - q * estimate.standard_error)
    assert found.quantiles_lower[0, 0] == pytest.approx(low, rel=1e-5)
    mean = fit.uncertainty.of(lambda m, S: m[0] + 0.5 * S[0, 0])
    high = np.exp(mean.value + q * mean.standard_error)
    assert found.mean_upper[0] == pytest.approx(high, rel=1e-5)
    interval = fit.confidence_interval(kind="wald").mean
    assert found.median_lower[0] == pytest.approx(np.exp(interval.lower[0]))
    assert found.mean_lower[2] == pytest.approx(interval.lower[2])


def test_a_quantile_has_its_profile(fit):
    """That of a function of mean and covariance, whose slopes are differences in all entries."""
    found = fit.original_scale(0.95, (0.9,), kind="profile")
    z = stats.norm.ppf(0.9)
    ref = fit.confidence_interval(kind="profile", of=lambda m, S: m[0] + z * np.sqrt(S[0, 0]))
    # Cutoffs of a function are those of a correlation: with 500 rows, 1 % further.
    assert np.log(found.quantiles_lower[0, 0]) == pytest.approx(ref.lower, abs=0.005)
    assert np.log(found.quantiles_upper[0, 0]) == pytest.approx(ref.upper, abs=0.005)
    plain = fit.original_scale(0.95, (0.9,), kind="wald")
    assert found.quantiles_upper[0, 0] != plain.quantiles_upper[0, 0]


def test_intervals_hold_what_they_say():
    """100 tables, 95 % intervals of 3 columns: within 4 standard deviations of a binomial."""
    mu, sigma = TRUTH.mean, TRUTH.standard_deviations
    truth = [np.exp(mu[0] + sigma[0] ** 2 / 2), mu[1] ** 2 + sigma[1] ** 2, mu[2]]
    q = stats.norm.ppf(0.95)
    upper = [np.exp(mu[0] + q * sigma[0]), (mu[1] + q * sigma[1]) ** 2, mu[2] + q * sigma[2]]
    hits = np.zeros(2)
    for seed in range(100):
        fit = hs.fit(_table(200, seed), RULE, transforms=TRANSFORMS, random_state=0)
        found = fit.original_scale(probabilities=(0.95,))
        hits[0] += ((found.mean_lower < truth) & (found.mean_upper > truth)).sum()
        inside = (found.quantiles_lower[:, 0] < upper) & (found.quantiles_upper[:, 0] > upper)
        hits[1] += inside.sum()
    # Columns of one table are correlated: count tables, not cells, in the width of the band.
    assert (np.abs(hits / 300 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 100)).all()


def test_what_is_not_known_is_nan():
    fit = hs.fit(_table(300, 1), RULE, "pairwise", transforms=TRANSFORMS)
    found = fit.original_scale()
    for name in ("median_lower", "mean_upper", "quantiles_lower"):
        assert np.isnan(getattr(found, name)).all()
    assert np.isfinite(found.median).all()
    assert np.isfinite(found.mean).all()


def test_untransformed_fits_have_quantiles_too(fit):
    plain = hs.fit(_table(300, 1), RULE, random_state=0)
    found = plain.original_scale(probabilities=[0.5])
    np.testing.assert_allclose(found.quantiles[:, 0], plain.gaussian.mean, rtol=1e-12)


def test_bad_requests(fit):
    with pytest.raises(hs.InputError, match="level must lie between 0 and 1"):
        fit.original_scale(95)
    with pytest.raises(hs.InputError, match="each of the probabilities must lie between"):
        fit.original_scale(probabilities=[0.5, 1.0])
    with pytest.raises(hs.InputError, match="at least one quantile"):
        fit.original_scale(probabilities=[])


def test_labels(fit):
    labelled = dataclasses.replace(fit, frame="pandas").original_scale()
    assert labelled.median["x0"] == fit.original_scale().median[0]
    assert labelled.quantiles.loc["x1", 0.95] == fit.original_scale().quantiles[1, 4]
