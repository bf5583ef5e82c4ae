import numpy as np
import pytest
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
    # A quarter of a statistical error that is itself a few times that of complete data, 1/√8000.
    assert np.abs(sgd.mean - exact.mean).max() < 0.04
    assert np.abs(sgd.covariance - exact.covariance).max() < 0.08


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
