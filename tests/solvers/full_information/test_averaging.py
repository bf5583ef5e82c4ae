"""Batch means: the average is exact, and its Monte-Carlo error is what it says."""

import numpy as np
import pytest

from halfseen.solvers.full_information.averaging import MOST_BATCHES, Averages
from halfseen.solvers.full_information.completion import Moments


def _moments(values):
    return Moments(values[:2], np.outer(values[:2], values[:2]))


def _averages(series):
    averages = Averages()
    for values in series:
        averages.add(values, _moments(values))
    return averages


@pytest.mark.parametrize("count", [1, 7, 31, 32, 64, 96, 33 * 16, 1024])
def test_merging_batches_keeps_the_average(count):
    series = np.random.default_rng(count).normal([0.0, 5.0, -1e3], 1.0, (count, 3))
    averages = _averages(series)
    full = averages.batches * averages.size
    assert full + len(averages.pending) == count
    assert averages.batches < MOST_BATCHES
    assert len(averages.pending) < averages.size
    ref = series[:full]
    np.testing.assert_allclose(averages.mean(), ref.mean(axis=0), rtol=1e-13, atol=1e-13)
    moments = averages.moments()
    np.testing.assert_allclose(moments.first, ref[:, :2].mean(axis=0), rtol=1e-13, atol=1e-13)
    second = np.einsum("ni,nj->ij", ref[:, :2], ref[:, :2]) / full
    np.testing.assert_allclose(moments.second, second, rtol=1e-12, atol=1e-13)


def test_merging_whole_numbers_is_exact():
    series = np.arange(3.0 * 4096).reshape(4096, 3)
    averages = _averages(series)
    assert not averages.pending
    np.testing.assert_array_equal(averages.mean(), series.mean(axis=0))


def test_dropping_forgets_the_oldest():
    series = np.random.default_rng(0).normal(size=(20, 2))
    averages = _averages(series)
    averages.drop(8)
    assert averages.batches == 12
    np.testing.assert_allclose(averages.mean(), series[8:].mean(axis=0))
    np.testing.assert_allclose(averages.moments().first, series[8:].mean(axis=0))


def test_drift_is_the_change_between_halves():
    series = np.concatenate([np.zeros((10, 2)), np.tile([3.0, 4.0], (10, 1))])
    assert _averages(series).drift(np.ones(2)) == pytest.approx(np.sqrt(12.5))
    assert _averages(series).drift(np.array([3.0, 4.0])) == pytest.approx(1.0)


def _autoregressive(rho, count, width, rng):
    """Stationary AR(1) series with unit variance."""
    out = np.empty((count, width))
    out[0] = rng.normal(size=width)
    noise = rng.normal(size=(count, width)) * np.sqrt(1.0 - rho**2)
    for k in range(1, count):
        out[k] = rho * out[k - 1] + noise[k]
    return out


# Autocorrelation of 24 values is known to 0.15 at best, so that beyond 0.6 little can be said of them.
@pytest.mark.parametrize(
    ("count", "rho"),
    [(24, -0.3), (24, 0.0), (24, 0.3), (24, 0.6), (192, -0.3), (192, 0.0), (192, 0.6), (192, 0.85)],
)
def test_monte_carlo_errors_of_autoregressive_series(count, rho):
    # 20 parameters share a group; 150 series of each. Errors of averages are known here: the actual
    # spread of 3000 averages has a standard error of 1/√6000 = 1.3 %, and the root mean square of what
    # was reported of less. What is left is the bias of the method, which 25 % bound.
    rng = np.random.default_rng(12)
    scale = np.geomspace(0.1, 1000.0, 20)
    means, reported = [], []
    for _ in range(150):
        averages = _averages(scale * _autoregressive(rho, count, 20, rng))
        means.append(averages.mean() / scale)
        reported.append(averages.errors(scale, [slice(0, 20)]) / scale)
    actual = np.sqrt(np.mean(np.square(means)))
    root = np.sqrt(np.mean(np.square(reported)))
    # Negative autocorrelation is taken for none: the error is then too large by √((1 − ρ)/(1 + ρ)).
    expected = 1.0 if rho >= 0.0 else np.sqrt((1.0 - rho) / (1.0 + rho))
    if rho < 0.0 and count > MOST_BATCHES:
        # Merged batches are nearly independent, so little is lost.
        expected = 1.0
    assert root / actual == pytest.approx(expected, rel=0.25)


def test_errors_are_shared_within_a_group_only():
    # A parameter that does not move at all borrows from its group, and from no other.
    rng = np.random.default_rng(3)
    series = np.zeros((16, 4))
    series[:, 1] = rng.normal(size=16)
    series[:, 3] = 1e-3 * rng.normal(size=16)
    errors = _averages(series).errors(np.ones(4), [slice(0, 2), slice(2, 4)])
    own = series.std(axis=0, ddof=1) ** 2
    # (16·own + 10·common)/26, where common is half of the one that moves; autocorrelation may add.
    assert errors[0] >= np.sqrt(10.0 * own[1] / 2.0 / 26.0 / 16.0) * 0.999
    assert errors[1] > errors[0] > 100.0 * errors[3] > 100.0 * errors[2] > 0.0


def test_errors_of_what_never_moves_are_zero():
    errors = _averages(np.ones((10, 3))).errors(np.ones(3), [slice(0, 1), slice(1, 3)])
    np.testing.assert_array_equal(errors, 0.0)
    assert _averages(np.ones((10, 3))).errors(np.ones(3), [slice(0, 3), slice(3, 3)]).shape == (3,)


def test_errors_have_the_units_of_their_parameters():
    series = np.random.default_rng(5).normal(size=(20, 3))
    units = np.array([1.0, 1e3, 1e-3])
    one = _averages(series).errors(np.ones(3), [slice(0, 3)])
    other = _averages(series * units).errors(units, [slice(0, 3)])
    np.testing.assert_allclose(other, one * units, rtol=1e-12)
