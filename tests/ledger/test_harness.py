"""What rows share: how they are declared, and their statistics."""

import math

import numpy as np
import pytest

from halfseen.ledger import harness
from halfseen.ledger.harness import (
    Estimated,
    Kind,
    Measured,
    Sweep,
    average,
    claim,
    exponent,
    heights,
    listed,
    power_law,
    power_law_from,
    ratio,
    relative_error,
    root_mean_square,
    slope,
    slope_error,
)


def test_a_row_is_told_by_its_docstring(monkeypatch):
    monkeypatch.setattr(harness, "CLAIMS", {})

    @claim("group/row", "Section 9", Kind.TRAP, {"near": "within 4"})
    def row(quick):
        """Look.

        Says: It is so: always,
        everywhere.

        Experiment: Looked at C = {0}.

        Tolerance: One, {near}.
        """
        return Measured("1", quick)

    told = harness.CLAIMS["group/row"]
    assert (told.name, told.where, told.kind) == ("group/row", "Section 9", Kind.TRAP)
    assert told.says == "It is so: always, everywhere."
    assert told.experiment == "Looked at C = {0}."
    assert told.tolerance == "One, within 4."
    assert told.run is row
    with pytest.raises(ValueError, match="two rows are called group/row"):
        claim("group/row", "Section 9")(row)


def test_figures_are_judged_by_their_standard_errors():
    found = Estimated(1.0, 0.1)
    assert str(found) == "1.00 (± 0.10)"
    assert found.near(1.39)
    assert not found.near(1.41)
    assert not found.near(0.59)
    assert found.near(1.41, 0.05)
    assert found.at_most(0.61)
    assert not found.at_most(0.59)
    assert listed([1.0, 0.25], ".2f") == "1.00, 0.25"


def test_averages_and_ratios(rng):
    draws = rng.normal(2.0, 3.0, size=(40_000, 2))
    mean, error = average(draws)
    assert error == pytest.approx(3.0 / 200.0, rel=0.05)
    assert (np.abs(mean - 2.0) <= 4 * error).all()
    assert ratio([3.0, 4.0]) == (root_mean_square([3.0, 4.0]), relative_error([3.0, 4.0]))


def test_a_sweep_has_a_power_law_for_each_name():
    x = [1.0, 4.0, 16.0]
    spread = np.array([0.9, 1.1])
    falling, flat = [spread / math.sqrt(v) for v in x], [spread] * 3
    found = Sweep(x, {"falling": falling, "flat": flat})
    assert found.lines["falling"] == pytest.approx(heights(falling))
    assert found.powers["falling"].value == pytest.approx(-0.5)
    assert found.powers["flat"] == exponent(x, flat)
    assert not found.all_near(-0.5)
    assert Sweep(x, {"falling": falling}).all_near(-0.5)
    told = found.told("{name} {first:.2f} to {last:.2f}, {power}").split("; ")
    assert told[0] == f"falling 1.00 to 0.25, {found.powers['falling']}"
    assert told[1].startswith("flat 1.00 to 1.00, ")


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


def test_slopes_and_errors_of_known_curves():
    x = [1.0, 10.0, 100.0]
    assert slope(x, [5.0, 0.5, 0.05]) == pytest.approx(-1.0)
    # Least squares by hand: the variance of a slope is σ²/Σ(t − t̄)².
    assert slope_error(x, 0.1) == pytest.approx(0.1 / (2.302585 * 2**0.5), rel=1e-6)
    assert root_mean_square([3.0, 4.0]) == pytest.approx(12.5**0.5)
    # Var(v²)/n, through the square root: half of the relative error of the mean of squares.
    assert relative_error([1.0, 3.0]) == pytest.approx((32.0**0.5 / 2**0.5) / 5.0 / 2.0)
