"""The exact likelihood of common factors against integration of another kind, and its derivatives."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from benchmarks import factor_limits
from benchmarks.factor_limits import FactorLaw, climbed, complete_information, given, information


@pytest.fixture
def law():
    rng = np.random.default_rng(1)
    return FactorLaw(rng.normal(size=5), 0.7 * rng.normal(size=(5, 2)), rng.uniform(0.5, 1.0, 5))


@pytest.fixture(autouse=True)
def many_points(monkeypatch):
    """Of five columns few are seen, so that posteriors are further from Gaussian than those of 100."""
    monkeypatch.setattr(factor_limits, "POINTS", 25)


LIMIT = np.full(5, -0.2)
HALF = np.array([0.4, np.nan, 1.1, np.nan, 0.3])


def flat(law):
    return np.column_stack([law.mean, law.loadings, law.noise]).ravel()


def at(parameters):
    parts = parameters.reshape(5, 4)
    return FactorLaw(parts[:, 0], parts[:, 1:3], parts[:, 3])


def test_values_are_those_of_the_normal_distribution(law):
    hidden = np.isnan(HALF)
    P = np.linalg.inv(law.covariance[np.ix_(~hidden, ~hidden)])
    across = law.covariance[np.ix_(hidden, ~hidden)] @ P
    middle = law.mean[hidden] + across @ (HALF - law.mean)[~hidden]
    left = law.covariance[np.ix_(hidden, hidden)] - across @ law.covariance[np.ix_(~hidden, hidden)]
    expected = multivariate_normal(
        law.mean[~hidden], law.covariance[np.ix_(~hidden, ~hidden)]
    ).logpdf(HALF[~hidden]) + np.log(multivariate_normal(middle, left).cdf(LIMIT[hidden]))
    assert given(law, HALF, LIMIT).value == pytest.approx(expected, abs=1e-6)


def test_information_is_minus_the_second_derivative(law):
    def value(parameters):
        return given(at(parameters), HALF, LIMIT).value

    start, moves = flat(law), 1e-4 * np.eye(20)
    second = np.array(
        [
            [
                value(start + a + b) - value(start + a - b) - value(start - a + b) + value(start - a - b)
                for b in moves
            ]
            for a in moves
        ]
    )  # fmt: skip
    np.testing.assert_allclose(information(law, HALF, LIMIT), -second / 4e-8, atol=1e-5)


def test_complete_rows_have_the_information_of_complete_rows(law):
    rng = np.random.default_rng(2)
    Y = law.mean + rng.multivariate_normal(np.zeros(5), law.covariance, size=4000)
    each = np.array([information(law, y, LIMIT) for y in Y])
    error = each.std(axis=0) / np.sqrt(len(Y))
    # Of 400 entries the largest is off by 5 errors in 1 of 4 000 such tests.
    assert (abs(each.mean(axis=0) - complete_information(law)) <= 5.0 * error + 1e-9).all()


def test_steps_climb_and_settle(law):
    rng = np.random.default_rng(3)
    Y = law.mean + rng.multivariate_normal(np.zeros(5), law.covariance, size=60)
    X = np.where(LIMIT > Y, np.nan, Y)
    values = [climbed(law, X, LIMIT, steps)[1] for steps in (1, 2, 20)]
    assert values[0] < values[1] < values[2]
