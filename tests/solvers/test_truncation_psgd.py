import numpy as np
import pytest
from scipy import special
from scipy.special import expit

import halfseen as hs


def _rule(truth, share_hidden=0.3):
    from scipy.special import ndtri

    limits = truth.mean + ndtri(share_hidden) * truth.standard_deviations
    return hs.SelfCensoring([hs.at_least(float(c)) for c in limits])


def test_error_is_close_to_that_of_the_exact_solution():
    rng = np.random.default_rng(5)
    A = rng.normal(size=(5, 5))
    truth = hs.Gaussian(np.arange(5.0), A @ A.T / 5 + np.eye(5))
    rule = _rule(truth)
    errors = []
    for seed in range(3):
        X = hs.simulate(truth, rule, 20_000, seed)
        exact = hs.fit(X, rule, "truncation")
        sgd = hs.fit(X, rule, "truncation_psgd", random_state=seed)
        errors.append(
            [
                (
                    hs.metrics.mahalanobis_error(f.mean, truth),
                    hs.metrics.relative_frobenius_error(f.covariance, truth),
                )
                for f in (exact, sgd)
            ]
        )
    exact, sgd = np.mean(errors, axis=0)
    assert (sgd <= 1.5 * exact).all()


@pytest.mark.parametrize(
    "seen_set",
    [
        hs.between(-1.0, 1.2),
        hs.at_most(-0.2) | hs.at_least(0.5),
        hs.Predicate(lambda x: np.abs(x) > 0.4),
        hs.Probability(lambda x: expit(2 * x)),
    ],
    ids=repr,
)
def test_every_kind_of_set_lands_near_the_exact_solution(seen_set):
    truth = hs.Gaussian([0.1, -0.1], [[1.0, 0.4], [0.4, 1.0]])
    rule = hs.SelfCensoring(seen_set)
    X = hs.simulate(truth, rule, 8000, 1)
    exact = hs.fit(X, rule, "truncation", form="paper")
    sgd = hs.fit(X, rule, "truncation_psgd", random_state=0)
    # A fifth of a statistical error that is itself a few times that of complete data, 1/√8000.
    assert np.abs(sgd.mean - exact.mean).max() < 0.04
    assert np.abs(sgd.covariance - exact.covariance).max() < 0.08


def test_an_optimum_on_the_edge_is_the_exact_one():
    y = np.random.default_rng(0).exponential(size=(2000, 1)) ** 1.2
    rule = hs.DetectionLimits(lower=0.0)
    with pytest.warns(hs.ConvergenceWarning):
        exact = hs.fit(y, rule, "truncation")
    with pytest.warns(hs.ConvergenceWarning, match="smaller alpha="):
        sgd = hs.fit(y, rule, "truncation_psgd", random_state=0)
    assert sgd.status is hs.Status.ON_DOMAIN_EDGE

    def loss(fit):
        m, s = fit.mean[0], fit.gaussian.standard_deviations[0]
        tail = 0.5 * special.erfc(-m / (s * np.sqrt(2)))
        return (0.5 * ((y - m) / s) ** 2).mean() + np.log(s) + np.log(tail)

    # Noise keeps an average a little inside the edge.
    assert loss(sgd) - loss(exact) < 0.005


def test_thin_sets_need_no_scan():
    thin = hs.Predicate(lambda x: np.sin(40 * x) > 0)
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), hs.SelfCensoring(thin), 4000, 0)
    fit = hs.fit(X, hs.SelfCensoring(thin), "truncation_psgd", random_state=0)
    # Stripes hide half of everything alike: four standard errors of 2 000 values.
    assert abs(fit.mean[0]) < 4 / np.sqrt(2000)


def test_the_same_seed_gives_the_same_bits(three):
    rule = _rule(three)
    X = hs.simulate(three, rule, 1000, 0)
    first, second = (hs.fit(X, rule, "truncation_psgd", random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.covariance, second.covariance)
    np.testing.assert_array_equal(first.mean, second.mean)


def test_limits_by_row_and_moments_are_refused():
    X = np.array([[1.0, 2.0], [2.0, 3.0], [4.0, 1.0]])
    with pytest.raises(hs.InputError, match="limits differ by row"):
        hs.fit(X, hs.DetectionLimits(lower=np.zeros((3, 2))), "truncation_psgd")
    with pytest.raises(hs.InputError, match="needs the table"):
        hs.fit(hs.PairMoments.from_array(X), None, "truncation_psgd")
