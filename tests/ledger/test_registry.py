"""The statistics that rows share."""

import math

import numpy as np
import pytest

from halfseen.ledger.registry import (
    exponent,
    heights,
    power_law,
    power_law_from,
    relative_error,
    slope_error,
)


def test_exponent_and_its_error():
    # Root mean squares of k normals around n^-½: the slope is right, its error that of the theory.
    rng, sizes, k = np.random.default_rng(4), [1.0, 4.0, 16.0, 64.0], 4_000
    errors = [rng.standard_normal(k) / math.sqrt(n) for n in sizes]
    power, error = exponent(sizes, errors)
    expected = 1 / math.sqrt(2 * k) / math.sqrt(((np.log(sizes) - np.log(8.0)) ** 2).sum())
    assert error == pytest.approx(expected, rel=0.1)
    assert abs(power + 0.5) <= 4 * error


def test_one_relative_error_for_all_is_that_of_each():
    sizes = [1.0, 3.0, 20.0]
    ref = 0.2 / math.sqrt(((np.log(sizes) - np.log(sizes).mean()) ** 2).sum())
    assert slope_error(sizes, 0.2) == pytest.approx(ref)
    assert slope_error(sizes, [0.2] * 3) == pytest.approx(ref)
    # The middle of three evenly spread places has no weight.
    assert slope_error([1.0, 2.0, 4.0], [0.0, 9.0, 0.0]) == pytest.approx(0.0, abs=1e-12)


def test_relative_error_of_normals(rng):
    errors = rng.normal(size=(200_000, 1))[:, 0]
    assert relative_error(errors) == pytest.approx(1 / math.sqrt(2 * errors.size), rel=0.02)


def test_power_laws():
    x, y = [1.0, 2.0, 8.0], [3.0, 12.0, 192.0]
    assert power_law(x, y, 2.0) == pytest.approx(y)
    assert power_law_from(x, 3.0, 2.0) == pytest.approx(y)
    assert heights([[3.0, 4.0], [2.0]]) == pytest.approx([math.sqrt(12.5), 2.0])
