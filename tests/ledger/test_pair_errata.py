"""The traps of Algorithm 1: the profile likelihood against quadrature, and rows that can fail."""

import math
import sys

import numpy as np
import pytest
from scipy.integrate import quad

import halfseen as hs
from halfseen.ledger import pair_errata
from halfseen.ledger.designs import equicorrelated
from halfseen.ledger.registry import CLAIMS, check_claim
from halfseen.solvers.result import Status


@pytest.mark.parametrize("sigma", [0.5, 2.0, 64.0])
def test_profile_loss_is_the_least_of_the_truncated_likelihood(sigma):
    x = np.random.default_rng(5).exponential(size=20)

    def loss(mu):
        log_mass = math.log(
            quad(lambda t: math.exp(-0.5 * ((t - mu) / sigma) ** 2 + base), 0, np.inf)[0]
        )
        return float((0.5 * ((x - mu) / sigma) ** 2).mean()) + log_mass - base

    comp = pair_errata.profile_loss(x, sigma)
    best = math.inf
    for mu in np.linspace(-3 * sigma**2 - 2, 2, 200):
        base = 0.5 * (mu / sigma) ** 2 if mu < 0 else 0.0
        best = min(best, loss(mu))
    assert comp <= best + 1e-7
    assert comp == pytest.approx(best, abs=2e-2)


def test_existence_holds():
    entry = check_claim(CLAIMS["theorem-1.2/existence"], quick=True)
    assert entry.holds, entry.measured


def test_an_answer_off_the_edge_is_noticed(monkeypatch):
    class Fit:
        status, gaussian = Status.CONVERGED, hs.Gaussian([0.0], [[1.0]])

    monkeypatch.setattr(pair_errata, "truncation", lambda X, rule: Fit)
    assert not check_claim(CLAIMS["theorem-1.2/existence"], quick=True).holds


def test_a_projection_that_makes_matters_worse_is_noticed(monkeypatch):
    # Eigenvalues of the truth are 0.1 and 4.6: a floor of 1 moves four of five away.
    monkeypatch.setattr(pair_errata, "EIGENVALUE_FLOOR", 1.0)
    entry = check_claim(CLAIMS["theorem-1.2/positive-definite"], quick=True)
    assert not entry.holds
    assert "negative eigenvalue" in entry.measured


def test_a_projection_that_also_shrinks_is_noticed(monkeypatch):
    module = sys.modules["halfseen.solvers.truncation"]
    right = module.assemble

    def shrunk(deviations, rho, floor):
        covariance, before, projected = right(deviations, rho, floor)
        if projected:
            own = np.diag(np.diag(covariance))
            covariance = 0.9 * covariance + 0.1 * own
        return covariance, before, projected

    monkeypatch.setattr(module, "assemble", shrunk)
    entry = check_claim(CLAIMS["theorem-1.2/positive-definite"], quick=True)
    assert not entry.holds
    assert "negative eigenvalue" in entry.measured


def test_limits_that_stay_are_not_steeper(monkeypatch):
    # Values are thinned instead, to the same α: what is seen keeps its shape.
    true = pair_errata.half_line
    monkeypatch.setattr(pair_errata, "half_line", lambda d, limit: true(d))
    entry = check_claim(CLAIMS["theorem-1.2/share-limits"], quick=True)
    assert not entry.holds
    assert "by the information" in entry.measured


def test_a_pair_that_no_third_column_chooses_is_not_off(monkeypatch):
    # The same chances by independent coins: self-censoring, which the reduction solves.
    true, coin = pair_errata.simulate, hs.Probability(pair_errata.chance_below)

    def coins(truth, rule, n, seed):
        if isinstance(rule, hs.LinearThreshold):
            rule = hs.SelfCensoring([coin, coin, hs.missingness.everything])
        return true(truth, rule, n, seed)

    monkeypatch.setattr(pair_errata, "simulate", coins)
    entry = check_claim(CLAIMS["theorem-1.2/reduction"], quick=True)
    assert not entry.holds
    assert "threshold" in entry.measured


def test_chances_given_one_column_are_those_of_simulated_rows(rng):
    Y = equicorrelated(2, pair_errata.STRONG).sample(400_000, rng)
    near = np.abs(Y[:, 0] - 0.8) < 0.02
    share = (Y[near, 1] <= pair_errata.THIRD).mean()
    assert abs(share - pair_errata.chance_below(np.array([0.8]))[0]) <= 2 / math.sqrt(near.sum())
