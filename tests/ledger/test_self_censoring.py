"""Theorem 1.2: rows hold, and fail when the solver is broken."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.ledger import designs
from halfseen.ledger import self_censoring as sc
from halfseen.ledger.designs import equicorrelated
from halfseen.ledger.registry import CLAIMS, check_claim


def fails(row):
    """Whether a row fails, with figures: not because it broke down."""
    entry = check_claim(CLAIMS[f"theorem-1.2/{row}"], quick=True)
    assert "stopped by" not in entry.measured, entry.measured
    return not entry.holds


def test_thinning_keeps_the_law_of_what_is_seen():
    truth, rule = equicorrelated(2, sc.CORRELATION), sc.thinned(2, 0.25)
    X = hs.simulate(truth, rule, 100_000, random_state=0)
    seen = X[~np.isnan(X[:, 0]), 0]
    alpha = designs.constants(sc.CORRELATION, sc.LIMIT)[0] / 16
    both = (~np.isnan(X)).all(axis=1).mean()
    assert abs(both - alpha) <= 4 * math.sqrt(alpha / len(X))
    assert stats.kstest(seen, stats.truncnorm(sc.LIMIT, np.inf).cdf).pvalue > 1e-4


def test_condition_holds():
    entry = check_claim(CLAIMS["theorem-1.2/condition"], quick=True)
    assert entry.holds, entry.measured


def test_a_solver_that_stops_learning_is_noticed():
    # With 500 rows whatever n is, the slope is 0: about seven standard errors from −½.
    def stops(X, rule):
        return sc.solve_paper(X[:500], rule)

    truth, rule, sizes = equicorrelated(2, sc.CORRELATION), sc.half_line(2), [500, 2_000, 8_000]
    for solve, holds in ((stops, False), (sc.solve_paper, True)):
        tables = [sc.fits(truth, rule, n, 16, 6, solve) for n in sizes]
        assert sc.against_rows(sizes, tables, truth).holds is holds


@pytest.mark.parametrize("row", ["rows", "share", "columns", "condition"])
def test_half_of_the_rows_is_noticed(row, monkeypatch):
    def half(X, rule, **options):
        return hs.solvers.truncation(X[: len(X) // 2], rule, **options)

    monkeypatch.setattr(sc, "truncation", half)
    assert fails(row)


def test_a_limit_that_is_slightly_off_is_noticed(monkeypatch):
    def off(X, rule, **options):
        moved = hs.SelfCensoring([hs.at_least(sc.LIMIT - 0.02)] * X.shape[1])
        return hs.solvers.truncation(X, moved, **options)

    monkeypatch.setattr(sc, "truncation", off)
    assert fails("rows")


def test_weights_that_are_ignored_are_noticed(monkeypatch):
    def support_alone(X, rule, **options):
        everywhere = hs.SelfCensoring([hs.missingness.everything] * X.shape[1])
        return hs.solvers.truncation(X, everywhere, **options)

    monkeypatch.setattr(sc, "truncation", support_alone)
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

    monkeypatch.setattr(sc, "truncation", sometimes)
    assert fails("guarantee")
