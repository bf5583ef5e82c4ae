"""Standard errors of functions and intervals, against closed forms."""

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.errors import InputError
from halfseen.solvers.inference.uncertainty import StandardErrors, correlation_errors
from tests import naive

N = 400


def _of_complete_rows(gaussian, n=N):
    """Standard errors of n complete rows, whose covariance is known in closed form."""
    return StandardErrors.from_parameters(
        gaussian, np.linalg.inv(naive.complete_information(gaussian.precision)) / n
    )


@pytest.fixture
def errors(three):
    return _of_complete_rows(three)


def test_standard_errors_of_parameters(errors, three):
    S = three.covariance
    variance = np.diag(S)
    np.testing.assert_allclose(errors.mean, np.sqrt(variance / N), rtol=1e-9)
    ref = np.sqrt((np.outer(variance, variance) + S**2) / N)
    np.testing.assert_allclose(errors.covariance, ref, rtol=1e-9)
    # σ/√(2n), and (1 − ρ²)/√n for correlations.
    np.testing.assert_allclose(
        errors.standard_deviation, three.standard_deviations / np.sqrt(2 * N), rtol=1e-9
    )
    R = three.correlation
    np.testing.assert_allclose(errors.correlation, (1 - R**2) / np.sqrt(N), rtol=1e-7, atol=1e-12)
    np.testing.assert_array_equal(np.diag(errors.correlation), 0.0)
    i, j = np.tril_indices(3)
    np.testing.assert_allclose(errors.vector(), [*errors.mean, *errors.covariance[i, j]])


# Functions, their derivatives in closed form, and their standard errors from complete rows.
FUNCTIONS = {
    "mean": (lambda m, S: m[1], lambda g: g.standard_deviations[1] / np.sqrt(N)),
    "log variance": (lambda m, S: np.log(S[2, 2]), lambda g: np.sqrt(2 / N)),
    "correlation": (
        lambda m, S: S[0, 1] / np.sqrt(S[0, 0] * S[1, 1]),
        lambda g: (1 - g.correlation[0, 1] ** 2) / np.sqrt(N),
    ),
    "Fisher's z": (
        lambda m, S: np.arctanh(S[0, 2] / np.sqrt(S[0, 0] * S[2, 2])),
        lambda g: 1 / np.sqrt(N),
    ),
    "log determinant": (lambda m, S: np.linalg.slogdet(S)[1], lambda g: np.sqrt(2 * 3 / N)),
    "coefficient of variation": (
        lambda m, S: np.sqrt(S[0, 0]) / m[0],
        # cv·√(1/2n + cv²/n)
        lambda g: (c := g.standard_deviations[0] / g.mean[0]) * np.sqrt((0.5 + c * c) / N),
    ),
    "regression slope": (
        # s²/(n σ²) with the residual variance s²
        lambda m, S: S[0, 1] / S[0, 0],
        lambda g: np.sqrt(
            (g.covariance[1, 1] - g.covariance[0, 1] ** 2 / g.covariance[0, 0])
            / g.covariance[0, 0] / N
        ),
    ),
    "a constant": (lambda m, S: 7.0, lambda g: 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_by_the_delta_method(errors, three, name):
    function, closed_form = FUNCTIONS[name]
    found = errors.of(function)
    assert found.value == function(three.mean, three.covariance)
    # Central differences at a thousandth of a standard error: off by 1e-6/6 of the third derivative, and
    # by rounding, 1e-16/1e-3.
    assert found.standard_error == pytest.approx(closed_form(three), rel=1e-6, abs=1e-12)
    assert np.ndim(found.value) == 0
    assert np.ndim(found.standard_error) == 0


def test_functions_of_several_values(errors, three):
    found = errors.of(lambda m, S: S)
    np.testing.assert_array_equal(found.value, three.covariance)
    np.testing.assert_allclose(found.standard_error, errors.covariance, rtol=1e-8)
    lists = errors.of(lambda m, S: [m[0], m[0] + m[1]])
    S = three.covariance
    ref = np.sqrt([S[0, 0] / N, (S[0, 0] + 2 * S[0, 1] + S[1, 1]) / N])
    np.testing.assert_allclose(lists.standard_error, ref, rtol=1e-8)


def test_a_function_may_change_what_it_is_given(errors, three):
    def careless(mean, covariance):
        mean += 1.0
        covariance *= 2.0
        return mean[0] * covariance[0, 0]

    found = errors.of(careless)
    assert found.value == (three.mean[0] + 1.0) * 2.0 * three.covariance[0, 0]
    assert three.mean[0] == 1.0
    # 2σ² δμ + 2(μ + 1) δσ², independent: (2σ²)²σ²/n + (2(μ + 1))²·2σ⁴/n with σ = 1
    assert found.standard_error == pytest.approx(np.sqrt((4 + 16 * 2) / N), rel=1e-6)


def test_units_that_are_far_apart():
    g = hs.Gaussian([1e-6, 1e9], [[1e-14, 0.0], [0.0, 1e16]])
    errors = _of_complete_rows(g)
    found = errors.of(lambda m, S: [m[0], m[1], np.log(S[0, 0]), np.log(S[1, 1])])
    ref = [1e-7 / np.sqrt(N), 1e8 / np.sqrt(N), np.sqrt(2 / N), np.sqrt(2 / N)]
    np.testing.assert_allclose(found.standard_error, ref, rtol=1e-5)


def test_what_is_known_does_not_vary(three):
    # The covariance is known: only the mean has errors.
    V = np.zeros((9, 9))
    V[:3, :3] = three.covariance / N
    errors = StandardErrors.from_parameters(three, V)
    np.testing.assert_array_equal(errors.covariance, 0.0)
    np.testing.assert_array_equal(errors.correlation, 0.0)
    found = errors.of(lambda m, S: [m @ np.ones(3), S[0, 0]])
    np.testing.assert_allclose(found.standard_error, [np.sqrt(three.covariance.sum() / N), 0.0])
    intervals = errors.intervals()
    np.testing.assert_allclose(intervals.covariance.lower, three.covariance, rtol=1e-14)
    np.testing.assert_allclose(intervals.correlation.upper, three.correlation, rtol=1e-12)


def test_pairs_alone_give_no_functions(three, errors):
    only = StandardErrors(errors.mean, errors.covariance, errors.correlation, None, three)
    with pytest.raises(InputError, match=r"fit\.bootstrap"):
        only.of(lambda m, S: m[0])
    assert only.intervals().mean.lower.shape == (3,)


def test_correlation_errors_agree_with_the_delta_method():
    # Any covariance of the estimates, not only that of complete rows.
    rng = np.random.default_rng(2)
    g = hs.Gaussian([0.0, 1.0], [[2.0, -0.9], [-0.9, 1.5]])
    A = 0.05 * rng.normal(size=(5, 5))
    errors = StandardErrors.from_parameters(g, A @ A.T)
    found = errors.of(lambda m, S: S[0, 1] / np.sqrt(S[0, 0] * S[1, 1]))
    assert errors.correlation[0, 1] == pytest.approx(found.standard_error, rel=1e-5)
    assert errors.correlation[1, 0] == pytest.approx(found.standard_error, rel=1e-5)
    # Rounding below zero counts as zero.
    zero = np.zeros((2, 2))
    out = correlation_errors(g, (zero - 1e-20, zero, zero), (zero, zero, zero))
    np.testing.assert_array_equal(out, 0.0)


# Intervals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals(errors, three, level):
    found = errors.intervals(level)
    assert found.level == level
    S, R, variance = three.covariance, three.correlation, np.diag(three.covariance)
    # Those of N complete rows: Student's t, with variances divided by N − 1.
    t = stats.t.ppf(0.5 + level / 2, N - 1)
    np.testing.assert_allclose(found.mean.lower, three.mean - t * np.sqrt(variance / (N - 1)))
    np.testing.assert_allclose(found.mean.upper, three.mean + t * np.sqrt(variance / (N - 1)))
    low, high = (N / stats.chi2.ppf(0.5 + sign * level / 2, N - 1) for sign in (1, -1))
    np.testing.assert_allclose(found.standard_deviation.lower, np.sqrt(variance * low))
    np.testing.assert_allclose(found.standard_deviation.upper, np.sqrt(variance * high))
    np.testing.assert_allclose(np.diag(found.covariance.lower), variance * low)
    np.testing.assert_allclose(np.diag(found.covariance.upper), variance * high)
    off = ~np.eye(3, dtype=bool)
    half = t * np.sqrt((np.outer(variance, variance) + S**2) / (N - 1))
    np.testing.assert_allclose(found.covariance.lower[off], (S - half)[off])
    np.testing.assert_allclose(found.covariance.upper[off], (S + half)[off])
    # artanh ρ ± q/√(n − 3)
    z, width = np.arctanh(R[off]), stats.norm.ppf(0.5 + level / 2) / np.sqrt(N - 3)
    np.testing.assert_allclose(found.correlation.lower[off], np.tanh(z - width))
    np.testing.assert_allclose(found.correlation.upper[off], np.tanh(z + width))
    np.testing.assert_array_equal(np.diag(found.correlation.lower), 1.0)
    np.testing.assert_array_equal(np.diag(found.correlation.upper), 1.0)


def test_intervals_stay_where_parameters_can_be():
    # Five rows: symmetric ones would pass 0 and 1.
    g = hs.Gaussian([0.0, 0.0], [[1.0, 0.97], [0.97, 1.0]])
    found = _of_complete_rows(g, 5).intervals(0.99)
    assert (found.standard_deviation.lower > 0.0).all()
    assert found.correlation.upper[0, 1] < 1.0
    assert found.correlation.lower[0, 1] > -1.0


def test_intervals_hold_the_truth_as_often_as_they_say(three):
    # Intervals of 1000 estimates from 400 complete rows each. A coverage of 0.9 has a standard
    # error of √(0.09/1000) = 0.0095; 4 of these, and 0.01 for the normal approximation.
    rng = np.random.default_rng(3)
    hits = np.zeros(4)
    off = ~np.eye(3, dtype=bool)
    for _ in range(1000):
        Y = three.mean + rng.normal(size=(N, 3)) @ three.cholesky.T
        found = _of_complete_rows(hs.Gaussian(Y.mean(axis=0), np.cov(Y.T, bias=True))).intervals(
            0.9
        )
        truths = (three.mean, three.standard_deviations, three.covariance, three.correlation[off])
        limits = (found.mean, found.standard_deviation, found.covariance)
        inside = [
            ((low <= t) & (t <= high)).mean()
            for (low, high), t in zip(limits, truths[:3], strict=True)
        ]
        low, high = found.correlation.lower[off], found.correlation.upper[off]
        hits += [*inside, ((low <= truths[3]) & (truths[3] <= high)).mean()]
    np.testing.assert_allclose(hits / 1000, 0.9, atol=0.048)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1, np.nan, "0.95", None, True])
def test_a_level_lies_between_0_and_1(errors, level):
    with pytest.raises(InputError, match=r"level must lie between 0 and 1, such as 0\.95; got"):
        errors.intervals(level)


@pytest.mark.parametrize("level", [np.float64(0.9), np.float32(0.9), 0.9])
def test_levels_of_any_float(errors, level):
    assert errors.intervals(level).level == pytest.approx(0.9)
