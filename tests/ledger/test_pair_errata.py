"""The traps of Algorithm 1: the profile likelihood against quadrature, and rows that can fail."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

import halfseen as hs
from halfseen.ledger import pair_errata
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
