"""Theorem 1.2, where it ends, and its lemmas: rows fail when what they claim is broken."""

import itertools
import math
import sys

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import halfseen as hs
from halfseen.ledger import designs
from halfseen.ledger import self_censoring as sc
from halfseen.ledger.designs import equicorrelated
from halfseen.solvers.result import Status
from tests.ledger.broken import run_row


def fails(row):
    """Whether a row of the theorem fails."""
    return not run_row(f"theorem-1.2/{row}").holds


def test_thinning_keeps_the_law_of_what_is_seen():
    truth, rule = equicorrelated(2, sc.CORRELATION), designs.thinned(2, 0.25)
    X = hs.simulate(truth, rule, 100_000, random_state=0)
    seen = X[~np.isnan(X[:, 0]), 0]
    alpha = designs.constants(sc.CORRELATION, designs.LIMIT)[0] / 16
    both = (~np.isnan(X)).all(axis=1).mean()
    assert abs(both - alpha) <= 4 * math.sqrt(alpha / len(X))
    assert stats.kstest(seen, stats.truncnorm(designs.LIMIT, np.inf).cdf).pvalue > 1e-4


def test_a_solver_that_stops_learning_is_noticed():
    # With 500 rows whatever n is, the slope is 0: about seven standard errors from −½.
    def stops(X, rule):
        return designs.solve_paper(X[:500], rule)

    truth = equicorrelated(2, sc.CORRELATION)
    along = [designs.Design(truth, n) for n in (500, 2_000, 8_000)]
    for solve, holds in ((stops, False), (designs.solve_paper, True)):
        tables = designs.fit_tables(along, 16, 6, solve=solve)
        assert sc.against_rows(along, tables).holds is holds


@pytest.mark.parametrize("row", ["rows", "share", "columns", "condition"])
def test_half_of_the_rows_is_noticed(row, monkeypatch):
    def half(X, rule, **options):
        return hs.solvers.truncation(X[: len(X) // 2], rule, **options)

    monkeypatch.setattr(designs, "truncation", half)
    assert fails(row)


def test_a_limit_that_is_slightly_off_is_noticed(monkeypatch):
    def off(X, rule, **options):
        moved = hs.SelfCensoring([hs.at_least(designs.LIMIT - 0.02)] * X.shape[1])
        return hs.solvers.truncation(X, moved, **options)

    monkeypatch.setattr(designs, "truncation", off)
    assert fails("rows")


def test_weights_that_are_ignored_are_noticed(monkeypatch):
    def support_alone(X, rule, **options):
        everywhere = hs.SelfCensoring([hs.missingness.everything] * X.shape[1])
        return hs.solvers.truncation(X, everywhere, **options)

    monkeypatch.setattr(designs, "truncation", support_alone)
    assert fails("probabilistic")


def test_noise_of_sgd_in_the_covariance_is_noticed(monkeypatch):
    rng = np.random.default_rng(9)

    def noisy(X, rule, **options):
        fit = hs.solvers.truncation_psgd(X, rule, **options)
        factor = 1.0 + 3.0 * rng.standard_normal() / math.sqrt(len(X))
        gaussian = hs.Gaussian(fit.gaussian.mean, max(factor, 0.1) * fit.gaussian.covariance)

        class Noisy:
            pass

        Noisy.gaussian = gaussian
        return Noisy

    monkeypatch.setattr(sc, "truncation_psgd", noisy)
    assert fails("rows-psgd")


def test_a_solver_that_fails_one_time_in_ten_breaks_the_guarantee(monkeypatch):
    number = itertools.count()

    def sometimes(X, rule, **options):
        used = X[:200] if next(number) % 10 == 0 else X
        return hs.solvers.truncation(used, rule, **options)

    monkeypatch.setattr(designs, "truncation", sometimes)
    assert fails("guarantee")


@pytest.mark.parametrize("sigma", [0.5, 2.0, 64.0])
def test_profile_loss_is_the_least_of_the_truncated_likelihood(sigma):
    x = np.random.default_rng(5).exponential(size=20)

    def loss(mu):
        log_mass = math.log(
            quad(lambda t: math.exp(-0.5 * ((t - mu) / sigma) ** 2 + base), 0, np.inf)[0]
        )
        return float((0.5 * ((x - mu) / sigma) ** 2).mean()) + log_mass - base

    comp = sc.profile_loss(x, sigma)
    best = math.inf
    for mu in np.linspace(-3 * sigma**2 - 2, 2, 200):
        base = 0.5 * (mu / sigma) ** 2 if mu < 0 else 0.0
        best = min(best, loss(mu))
    assert comp <= best + 1e-7
    assert comp == pytest.approx(best, abs=2e-2)


def test_an_answer_off_the_edge_is_noticed(monkeypatch):
    class Fit:
        status, gaussian = Status.CONVERGED, hs.Gaussian([0.0], [[1.0]])

    monkeypatch.setattr(sc, "truncation", lambda X, rule: Fit)
    assert not run_row("theorem-1.2/existence").holds


def test_a_projection_that_makes_matters_worse_is_noticed(monkeypatch):
    # Eigenvalues of the truth are 0.1 and 4.6: a floor of 1 moves four of five away.
    monkeypatch.setattr(sc, "EIGENVALUE_FLOOR", 1.0)
    entry = run_row("theorem-1.2/positive-definite")
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
    entry = run_row("theorem-1.2/positive-definite")
    assert not entry.holds
    assert "negative eigenvalue" in entry.measured


def test_limits_that_stay_are_not_steeper(monkeypatch):
    # Values are thinned instead, to the same α: what is seen keeps its shape.
    true = designs.half_line
    monkeypatch.setattr(designs, "half_line", lambda d, limit: true(d))
    entry = run_row("theorem-1.2/share-limits")
    assert not entry.holds
    assert "by the information" in entry.measured


def test_a_pair_that_no_third_column_chooses_is_not_off(monkeypatch):
    # The same chances by independent coins: self-censoring, which the reduction solves.
    true, coin = sc.simulate, hs.Probability(sc.chance_below)

    def coins(truth, rule, n, seed):
        if isinstance(rule, hs.LinearThreshold):
            rule = hs.SelfCensoring([coin, coin, hs.missingness.everything])
        return true(truth, rule, n, seed)

    monkeypatch.setattr(sc, "simulate", coins)
    entry = run_row("theorem-1.2/reduction")
    assert not entry.holds
    assert "threshold" in entry.measured


def test_chances_given_one_column_are_those_of_simulated_rows(rng):
    Y = equicorrelated(2, sc.STRONG).sample(400_000, rng)
    near = np.abs(Y[:, 0] - 0.8) < 0.02
    share = (Y[near, 1] <= sc.THIRD).mean()
    assert abs(share - sc.chance_below(np.array([0.8]))[0]) <= 2 / math.sqrt(near.sum())


@pytest.mark.parametrize("lemma", ["lemma-mean", "lemma-covariance"])
def test_an_estimate_twice_as_far_off_is_noticed(lemma, monkeypatch):
    true = designs.constants

    def halved(*place):
        alpha, *errors = true(*place)
        return alpha, *(0.5 * c for c in errors)

    monkeypatch.setattr(designs, "constants", halved)
    entry = run_row(f"{lemma}/constant")
    assert not entry.holds
    # Not because the row broke down: it is the constant that is off.
    assert "n^-0." in entry.measured
