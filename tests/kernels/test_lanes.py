"""Straight-line functions against mpmath and NumPy."""

import mpmath
import numpy as np
import pytest
from numba import njit

from halfseen.kernels import lanes
from tests.kernels.calling import called

POINTS = np.concatenate([np.linspace(-36.9, 9.0, 200), np.linspace(-1.0, 1.0, 41), [-1e-9, 1e-9]])


def _over(lane):
    @njit(**{**lanes.LANES, "cache": False})
    def loop(x, out):
        for i in range(x.size):
            out[i] = lane(x[i])

    def values(x):
        out = np.empty(len(x))
        loop(np.asarray(x, dtype=float), out)
        return out

    return values


def _exact(function, x):
    with mpmath.workdps(40):
        return np.array([float(function(mpmath.mpf(float(one)))) for one in x])


def _hazard(x):
    return mpmath.npdf(x) / mpmath.ncdf(x)


@pytest.mark.parametrize(
    ("name", "reference", "x", "error"),
    [
        ("exp", mpmath.exp, np.linspace(-700.0, 700.0, 301), 1e-15),
        ("exp", mpmath.exp, np.linspace(-1.0, 1.0, 41), 1e-15),
        ("log", mpmath.log, np.geomspace(1e-300, 0.9, 301), 1e-15),
        ("log", mpmath.log, 1.0 + np.linspace(-0.3, 0.99, 60), 1e-15),
        # exp(−x²/2) has the rounding error of its exponent, which is up to 680 there.
        ("ndtr", mpmath.ncdf, POINTS, 2e-13),
        ("ndtr", mpmath.ncdf, POINTS[POINTS > -8.0], 1e-14),
        ("hazard", _hazard, POINTS, 1e-14),
    ],
)
def test_lanes_have_the_values_of_mpmath(name, reference, x, error):
    found = _over(getattr(lanes, f"{name}_lane"))(x)
    np.testing.assert_allclose(found, _exact(reference, x), rtol=error)


def test_quantiles_are_those_of_what_is_below():
    # 1e-9 of a quantile, or of a standard deviation near the middle, from 1e-290 up.
    p = np.concatenate([np.geomspace(1e-290, 0.5, 300), np.linspace(0.5, 1.0 - 1e-9, 100)])
    z = _over(lanes.ndtri_lane)(p)
    below = _exact(mpmath.ncdf, z)
    slope = np.maximum(_exact(mpmath.npdf, z), 1e-320)
    assert (np.abs(below - p) / slope < 1e-9 * np.maximum(1.0, np.abs(z))).all()


def test_what_is_furthest_has_next_to_no_mass():
    found = _over(lanes.ndtr_lane)([-np.inf, -1e9, -37.0, 1e9, np.inf])
    assert (found[:3] > 0.0).all()
    assert (found[:3] < 1e-298).all()
    assert (found[3:] == 1.0).all()


def test_numbers_are_taken_apart_without_loss():
    @njit(**{**lanes.LANES, "cache": False})
    def loop(x, k, z):
        for i in range(x.size):
            k[i], z[i] = lanes.parts_lane(x[i])

    x = np.concatenate([np.geomspace(1e-307, 1.99, 500), [0.5, 1.0, np.sqrt(0.5)]])
    k, z = np.empty(x.size), np.empty(x.size)
    loop(x, k, z)
    np.testing.assert_array_equal(np.ldexp(z, k.astype(int)), x)
    assert (z >= np.sqrt(0.5)).all()
    assert (z < np.sqrt(2.0)).all()


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 8])
def test_sums_of_rows_are_products(count):
    rng = np.random.default_rng(count)
    A, factors, out = rng.normal(size=(9, 13)), rng.normal(size=count), np.ones(10)
    called(lanes.add_rows)(factors, A, 2, out)
    np.testing.assert_allclose(out, 1.0 + factors @ A[:count, 2:12], atol=1e-13)
