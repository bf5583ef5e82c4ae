import math

import numpy as np
import pytest

from halfseen.kernels import correlation
from halfseen.kernels.correlation import (
    PairCells,
    PairSums,
    Pieces,
    SetMasses,
    solve_correlations,
)
from tests import naive
from tests.kernels.calling import called

SUMS = PairSums(*(np.array([v]) for v in (40.0, 45.0, 38.0, 20.0)))
CELLS = PairCells(
    np.array([0, 1]), np.array([0]), np.array([1]), np.array([[-40.0, 7.0, 9.0, 12.0]])
)
LIMITS = (-0.3, 0.4)


def _corners():
    p = np.array([1 - naive.cdf(c, 0, 1) for c in LIMITS])
    ends, infinite = np.array(LIMITS), np.full(2, np.inf)
    one_each = np.array([0, 1, 2])
    return SetMasses(
        p,
        1 - p,
        one_each,
        ends,
        np.array([-1.0, -1.0]),
        np.empty((2, 0)),
        Pieces(one_each, ends, infinite),
        Pieces(one_each, -infinite, ends),
    )


def _series(terms=256):
    from halfseen.missingness.resolve import union_of_intervals
    from halfseen.solvers.correlations import hermite_coefficients

    table = np.stack(
        [
            hermite_coefficients(union_of_intervals(np.array([c]), np.array([np.inf])), terms)
            for c in LIMITS
        ]
    )
    corners = _corners()
    none = np.empty(0)
    return corners._replace(
        end_start=np.zeros(3, dtype=np.intp), ends=none, signs=none, series=table
    )


@pytest.mark.parametrize("sets", [_corners, _series])
@pytest.mark.parametrize("rho", [-0.6, 0.1, 0.8])
def test_derivatives(sets, rho):
    masses = sets()
    step = 1e-5
    _, slope, curve = called(correlation.objective)(rho, 0, SUMS, CELLS, masses)
    up, up_slope, _ = called(correlation.objective)(rho + step, 0, SUMS, CELLS, masses)
    down, down_slope, _ = called(correlation.objective)(rho - step, 0, SUMS, CELLS, masses)
    assert slope == pytest.approx((up - down) / (2 * step), rel=1e-6)
    assert curve == pytest.approx((up_slope - down_slope) / (2 * step), rel=1e-6)


def test_series_and_corners_are_the_same_function():
    for rho in (-0.9, -0.3, 0.5, 0.9):
        ref = called(correlation.objective)(rho, 0, SUMS, CELLS, _corners())
        np.testing.assert_allclose(
            called(correlation.objective)(rho, 0, SUMS, CELLS, _series()), ref, rtol=1e-8
        )


def test_series_of_far_ends_is_that_of_infinite_ones():
    from halfseen.missingness.resolve import union_of_intervals
    from halfseen.solvers.correlations import hermite_coefficients

    near, far = (
        hermite_coefficients(union_of_intervals(np.array([-0.3]), np.array([end])))
        for end in (np.inf, 500.0)
    )
    np.testing.assert_array_equal(near, far)


def test_objective_is_the_formula():
    rho = 0.37
    n, suu, svv, suv = (float(s[0]) for s in SUMS)
    ref = 0.5 * n * math.log(1 - rho**2) + (suu - 2 * rho * suv + svv) / (2 * (1 - rho**2))
    unit = ((0.0, 1.0), (0.0, 1.0))
    above = [[(c, 60.0)] for c in LIMITS]
    below = [[(-60.0, c)] for c in LIMITS]
    cells = [(above, above), (above, below), (below, above), (below, below)]
    for count, (left, right) in zip(CELLS.counts[0], cells, strict=True):
        ref -= count * math.log(naive.product_mass(unit, rho, left[0], right[1]))
    assert called(correlation.objective)(rho, 0, SUMS, CELLS, _corners())[0] == pytest.approx(
        ref, rel=1e-9
    )


def test_an_optimum_at_perfect_correlation_is_flagged():
    sums = PairSums(*(np.array([v]) for v in (30.0, 30.0, 30.0, 30.0)))
    cells = PairCells(np.array([0, 0]), np.empty(0, int), np.empty(0, int), np.empty((0, 4)))
    rho, flag = solve_correlations(sums, cells, _corners())
    assert rho[0] > 0.99999
    assert flag[0] == 1
