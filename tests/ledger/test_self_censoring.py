"""Theorem 1.2: the predicted constants against naive oracles, and rows that can fail."""

import math

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.ledger import self_censoring as sc
from halfseen.ledger.designs import equicorrelated
from halfseen.ledger.registry import CLAIMS, check_claim


def test_constants_without_a_limit_are_the_textbook_ones():
    # Complete data: Var μ̂ = 1, Var σ̂² = 2, Var Σ̂₁₂ = 1 + ρ².
    alpha, mean, variance, cross = sc.constants(0.4, -8.0)
    assert (alpha, mean, variance) == pytest.approx((1.0, 1.0, math.sqrt(2)), abs=1e-6)
    assert cross == pytest.approx(math.sqrt(1.16), abs=1e-6)


def test_constants_of_a_half_line_by_adaptive_quadrature():
    law = stats.truncnorm(sc.LIMIT, np.inf)
    moments = [law.moment(k) for k in range(1, 5)]
    information = np.array(
        [
            [moments[1] - moments[0] ** 2, -(moments[2] - moments[0] * moments[1]) / 2],
            [0.0, (moments[3] - moments[1] ** 2) / 4],
        ]
    )
    information[1, 0] = information[0, 1]
    ref = np.sqrt(np.diag(np.linalg.inv(information)))
    alpha, mean, variance, _ = sc.constants(sc.CORRELATION, sc.LIMIT)
    assert (mean, variance) == pytest.approx(ref, rel=1e-6)
    mass = stats.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]]).cdf([-sc.LIMIT] * 2)
    assert alpha == pytest.approx(mass, abs=1e-6)


def test_thinning_keeps_the_law_of_what_is_seen():
    truth, rule = equicorrelated(2, sc.CORRELATION), sc.thinned(2, 0.25)
    X = hs.simulate(truth, rule, 100_000, random_state=0)
    seen = X[~np.isnan(X[:, 0]), 0]
    alpha = sc.constants(sc.CORRELATION, sc.LIMIT)[0] / 16
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
