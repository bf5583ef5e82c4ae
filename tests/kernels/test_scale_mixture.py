"""Rows of a t distribution against integrals over their scale, and SciPy's distributions."""

import math
import warnings

import numpy as np
import pytest
from scipy import integrate, stats

from halfseen.solvers.full_information.charts import score_of
from halfseen.solvers.full_information.expectation import (
    Parameters,
    Sampling,
    drawn_rows,
    expect,
    expected_rows,
    lay_out,
)
from tests import naive
from tests.kernels.holed import INF, LINE, holes_of
from tests.solvers.full_information.held import held

NU = 3.5
MEAN = np.array([0.3, -0.5, 0.2])
COVARIANCE = np.array([[1.0, 0.6, 0.2], [0.6, 2.0, -0.3], [0.2, -0.3, 0.8]])
BELOW, BETWEEN, SIDES = [(-INF, 0.2)], [(-0.4, 0.9)], [(-INF, -0.3), (0.5, INF)]
# Rows by the sets of their hidden cells; a whole line is missing at random.
ROWS = [
    {},
    {1: LINE},
    {0: BELOW},
    {2: SIDES},
    {0: BETWEEN, 1: LINE},
    {0: BELOW, 2: BETWEEN},
    {1: BELOW, 2: SIDES, 0: LINE},
    {0: [(-INF, -40.0)]},
    {0: LINE, 1: LINE, 2: LINE},
]


def _table(rows, seed=0):
    Y = stats.multivariate_t(MEAN, COVARIANCE, NU, seed=seed).rvs(len(rows)).reshape(-1, 3)
    for r, cells in enumerate(rows):
        Y[r, list(cells)] = np.nan
    return Y, holes_of(rows, 3)


def _values(Y, holes, at, points=64):
    layout = lay_out(holes)
    (block,) = layout.blocks
    return expect(Y, block, layout.confines, at, Sampling(points, 0, order=at))[1]


def test_rows_are_integrals_over_their_scale():
    Y, holes = _table(ROWS)
    comp = _values(Y, holes, Parameters.of(MEAN, COVARIANCE, NU))
    for r, cells in enumerate(ROWS):
        # What is missing at random is left out: the margins of a t distribution are one.
        kept = [j for j in range(3) if cells.get(j) is not LINE]
        if not kept:
            assert comp[r] == pytest.approx(0.0, abs=1e-12)
            continue
        where = [cells.get(j) for j in kept]
        ref = naive.t_log_likelihood(
            Y[r, kept],
            lambda row, k, where=where: tuple(where[k]),
            MEAN[kept],
            COVARIANCE[np.ix_(kept, kept)],
            NU,
        )
        # Trapezoids are right to 1e-7, and so is what is left out.
        assert comp[r] == pytest.approx(ref, abs=2e-7), cells


def test_rows_seen_whole_are_scipys():
    Y = stats.multivariate_t(MEAN, COVARIANCE, NU, seed=1).rvs(20)
    holes = holes_of([{}] * 20, 3)
    for nu in (1.0, NU, 1e6):
        comp = _values(Y, holes, Parameters.of(MEAN, COVARIANCE, nu))
        np.testing.assert_allclose(comp, stats.multivariate_t(MEAN, COVARIANCE, nu).logpdf(Y))


def test_three_confined_cells_are_sampled():
    cells = {0: BELOW, 1: BETWEEN, 2: BELOW}
    Y, holes = _table([cells])
    comp = _values(Y, holes, Parameters.of(MEAN, COVARIANCE, NU), points=512)[0]
    lower, upper = np.array([-INF, -0.4, -INF]), np.array([0.2, 0.9, 0.2])
    law = stats.gamma(0.5 * NU, scale=2.0 / NU)
    u = np.linspace(-16.0, 4.0, 81)
    masses = [
        stats.multivariate_normal(MEAN, COVARIANCE / w, seed=0).cdf(upper, lower_limit=lower)
        for w in np.exp(u)
    ]
    ref = np.log(np.trapezoid(np.array(masses) * law.pdf(np.exp(u)) * np.exp(u), u))
    # SciPy's masses are good to 1e-5, and 512 points of a lattice in three coordinates to 1e-4.
    assert comp == pytest.approx(ref, abs=5e-4)


def test_the_score_is_the_derivative_of_the_value():
    Y, holes = _table(ROWS)
    rows, sampling = held(Y, holes).with_degrees(NU), Sampling(16, 0)

    def value(mean, covariance):
        return rows.expect(mean, covariance, sampling)[1]

    moments = rows.expect(MEAN, COVARIANCE, sampling)[0]
    of_mean, of_covariance = score_of(moments, MEAN, COVARIANCE, np.linalg.inv(COVARIANCE), len(Y))
    # Central differences err by h²/6 of third derivatives, which are some 20 here, and by the error of
    # values, 1e-7 for each of nine rows, over h.
    h, close = 5e-3, 3e-4
    for j in range(3):
        e = h * np.eye(3)[j]
        ref = (value(MEAN + e, COVARIANCE) - value(MEAN - e, COVARIANCE)) / (2 * h)
        assert of_mean[j] == pytest.approx(ref, abs=close)
    for i, j in zip(*np.tril_indices(3), strict=True):
        E = np.zeros((3, 3))
        E[i, j] = E[j, i] = h
        ref = (value(MEAN, COVARIANCE + E) - value(MEAN, COVARIANCE - E)) / (2 * h)
        assert of_covariance[i, j] * (1 + (i != j)) == pytest.approx(ref, abs=close)


def test_many_degrees_of_freedom_are_a_gaussian():
    Y, holes = _table([*ROWS, {0: BELOW, 1: BETWEEN, 2: BELOW}])
    order, near = Parameters.of(MEAN, COVARIANCE), 1e8
    sampling = Sampling(64, 0, order=order)
    ref = held(Y, holes).expect(MEAN, COVARIANCE, sampling)
    comp = held(Y, holes).with_degrees(near).expect(MEAN, COVARIANCE, sampling)
    # Differences are of the order δ²/ν, and the far limit is 40 deviations away: 40⁴/1e8 = 0.03.
    assert comp[1] == pytest.approx(ref[1], abs=0.05)
    far = [r for r, cells in enumerate(ROWS) if cells.get(0) == [(-INF, -40.0)]]
    others = [r for r in range(len(Y)) if r not in far]
    ref = held(Y[others], holes.take(others)).expect(MEAN, COVARIANCE, sampling)
    comp = held(Y[others], holes.take(others)).with_degrees(near).expect(MEAN, COVARIANCE, sampling)
    assert comp[1] == pytest.approx(ref[1], abs=1e-5)
    np.testing.assert_allclose(comp[0].second, ref[0].second, atol=1e-5)


def _conditional(y, nu, cell):
    """Mean and variance of the first of two cells in an interval, given the second, by integrals."""
    mean, covariance = MEAN[:2], COVARIANCE[:2, :2]
    law = stats.multivariate_t(mean, covariance, nu)
    moments = [
        integrate.quad(lambda x, k=k: x**k * law.pdf([x, y]), *cell, epsabs=1e-12, limit=400)[0]
        for k in range(3)
    ]
    first, second = moments[1] / moments[0], moments[2] / moments[0]
    return first, second - first**2


@pytest.mark.parametrize("cell", [(-INF, 0.2), (-0.4, 0.9)])
def test_means_of_confined_cells(cell):
    Y, holes = np.array([[np.nan, 0.7]]), holes_of([{0: [cell]}], 2)
    layout = lay_out(holes)
    at = Parameters.of(MEAN[:2], COVARIANCE[:2, :2], NU)
    comp = expected_rows(Y, layout.blocks[0], layout.confines, at, Sampling(16, 0))[0, 0]
    assert comp == pytest.approx(_conditional(0.7, NU, cell)[0], abs=1e-6)


def test_draws_have_the_moments_of_their_law():
    count, cell = 40_000, (-0.4, 0.9)
    Y, holes = np.array([[np.nan, 0.7]]), holes_of([{0: [cell]}], 2)
    layout = lay_out(holes)
    at = Parameters.of(MEAN[:2], COVARIANCE[:2, :2], NU)
    drawn = drawn_rows(Y, layout.blocks[0], layout.confines, at, Sampling(61, 3), count)[:, 0, 0]
    mean, variance = _conditional(0.7, NU, cell)
    assert drawn.min() > cell[0]
    assert drawn.max() < cell[1]
    # Four standard errors, of an average and of a variance of a bounded number.
    assert drawn.mean() == pytest.approx(mean, abs=4 * math.sqrt(variance / count))
    assert drawn.var() == pytest.approx(variance, rel=4 * math.sqrt(2 / count))


def test_draws_of_cells_missing_at_random_are_t():
    """Given one cell, the other is t with ν + 1 degrees of freedom, wider the further out it is."""
    count, y = 40_000, 4.0
    Y, holes = np.array([[np.nan, y]]), holes_of([{0: LINE}], 2)
    layout = lay_out(holes)
    S = COVARIANCE[:2, :2]
    at = Parameters.of(MEAN[:2], S, NU)
    drawn = drawn_rows(Y, layout.blocks[0], layout.confines, at, Sampling(16, 5), count)[:, 0, 0]
    off = y - MEAN[1]
    centre = MEAN[0] + S[0, 1] / S[1, 1] * off
    scale = (NU + off**2 / S[1, 1]) / (NU + 1) * (S[0, 0] - S[0, 1] ** 2 / S[1, 1])
    law = stats.t(NU + 1, centre, math.sqrt(scale))
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        # As a Gaussian they would be noticed.
        assert stats.kstest(drawn, stats.norm(centre, math.sqrt(scale)).cdf).pvalue < 1e-6
