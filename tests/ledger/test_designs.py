"""The designs that rows share do what their names say."""

import math

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.ledger import designs
from halfseen.samplers import Region


def test_decaying_correlations():
    truth = designs.decaying(4, 0.3, [1.0, 2.0, 3.0, 4.0])
    assert truth.covariance[0] == pytest.approx([1.0, 0.3, 0.09, 0.027])
    assert truth.mean == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert designs.decaying(3).mean == pytest.approx(np.zeros(3))


@pytest.mark.parametrize(("number", "d"), [(1.0, 2), (10.0, 3), (64.0, 5)])
def test_equal_correlations_have_their_condition_number(number, d):
    truth = designs.equicorrelated(d, designs.correlation_for(number, d))
    assert np.linalg.cond(truth.covariance) == pytest.approx(number)
    assert np.diag(truth.covariance) == pytest.approx(np.ones(d))


def test_limits_hold_in_their_share(rng):
    truth = designs.equicorrelated(3, 0.5, [1.0, -2.0, 0.5])
    V, shares = rng.normal(size=(2, 3)), np.array([0.2, 0.7])
    found = (truth.sample(40_000, rng) @ V.T <= designs.limits_along(truth, V, shares)).mean(axis=0)
    # 4 standard errors of a share of one half or less extreme.
    assert found == pytest.approx(shares, abs=0.01)


def test_random_thresholds_hide_their_share():
    truth = designs.decaying(6, mean=np.arange(6.0))
    rule = designs.random_thresholds(truth, 2, 0.4, 4)
    hidden = np.isnan(hs.simulate(truth, rule, 20_000, 0)).mean(axis=0)
    # 4 standard errors of a share of 0.4.
    assert hidden == pytest.approx([0.0, 0.0, 0.4, 0.4, 0.4, 0.4], abs=0.014)


def test_exact_draws_and_their_mass(rng):
    # z >= 1 around a mean of 0.5: a tail above half a deviation.
    region = Region(np.array([0.5]), np.array([[-1.0]]), np.array([-1.0]))
    points, mass = designs.exact_draws(region, 20_000, rng)
    law = stats.truncnorm(0.5, math.inf, 0.5)
    assert stats.kstest(points[:, 0], law.cdf).pvalue > 1e-4
    # A share of k hits has a relative standard error below 1/√k.
    assert mass == pytest.approx(stats.norm.sf(0.5), rel=4 / math.sqrt(20_000))


def test_legendre_nodes_integrate_polynomials():
    x, w = designs.legendre_nodes(-1.0, 3.0, 4)
    assert w @ x**7 == pytest.approx((3.0**8 - 1.0) / 8.0)


def test_constants_without_a_limit_are_the_textbook_ones():
    # Complete data: Var μ̂ = 1, Var σ̂² = 2, Var Σ̂₁₂ = 1 + ρ².
    alpha, mean, variance, cross = designs.constants(0.4, -8.0)
    assert (alpha, mean, variance) == pytest.approx((1.0, 1.0, math.sqrt(2)), abs=1e-6)
    assert cross == pytest.approx(math.sqrt(1.16), abs=1e-6)


def test_constants_of_a_half_line_by_adaptive_quadrature():
    law = stats.truncnorm(designs.LIMIT, np.inf)
    moments = [law.moment(k) for k in range(1, 5)]
    information = np.array(
        [
            [moments[1] - moments[0] ** 2, -(moments[2] - moments[0] * moments[1]) / 2],
            [0.0, (moments[3] - moments[1] ** 2) / 4],
        ]
    )
    information[1, 0] = information[0, 1]
    ref = np.sqrt(np.diag(np.linalg.inv(information)))
    alpha, mean, variance, _ = designs.constants(0.4, designs.LIMIT)
    assert (mean, variance) == pytest.approx(ref, rel=1e-6)
    mass = stats.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]]).cdf([-designs.LIMIT] * 2)
    assert alpha == pytest.approx(mass, abs=1e-6)


def test_chances_that_are_one_above_the_limit_are_that_limit():
    def step(x):
        return np.asarray(x >= designs.LIMIT, dtype=float)

    ref = designs.constants(0.4, designs.LIMIT)
    # Nodes do not know of the step: it is placed to within a node, a part of 1/NODES of the interval.
    comp = designs.constants(0.4, -9.0, step)
    assert comp == pytest.approx(ref, rel=0.1)


def test_errors_of_a_design_fall_with_rows_and_chances():
    truth = designs.equicorrelated(3, 0.4)
    mean, own, cross = designs.Design(truth, 1_000).errors()
    assert cross.shape == (3,)
    fewer = designs.Design(truth, 4_000, p=0.25)
    # A quarter of the values in four times the rows: as many values, a quarter of the pairs.
    assert fewer.errors()[:2] == pytest.approx((mean, own))
    assert fewer.errors()[2] == pytest.approx(2.0 * cross)
    size = math.sqrt(3 * own**2 + 2 * (cross**2).sum())
    assert designs.Design(truth, 1_000).sizes() == pytest.approx((mean, size))


def test_ratios_of_complete_data_are_one(rng):
    # Below −8 nothing is hidden, and the solver's answer is the moments of the table.
    truth, n = designs.equicorrelated(2, 0.4), 500
    rule = hs.SelfCensoring([hs.at_least(-8.0)] * 2)
    found = [hs.solvers.truncation(hs.simulate(truth, rule, n, k), rule) for k in range(200)]
    for ratio in designs.Design(truth, n, -8.0).ratios(found):
        # 200 tables of two or three independent errors: 4 standard errors are below 4/√(2·200·2).
        assert math.sqrt((ratio**2).mean()) == pytest.approx(1.0, abs=0.15)
