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
