import dataclasses

import numpy as np

from halfseen.gaussian import Gaussian
from halfseen.ledger import open_problem
from halfseen.ledger.registry import CLAIMS, check_claim
from halfseen.simulate import simulate


def test_thresholds_hide_what_they_should():
    truth, rule = open_problem.anchored_problem()
    hidden = np.isnan(simulate(truth, rule, 20_000, 0)).mean(axis=0)
    assert (hidden[: open_problem.ANCHORS] == 0.0).all()
    # Binomial standard error 0.0035.
    assert np.abs(hidden[open_problem.ANCHORS :] - open_problem.HIDDEN).max() < 4 * 0.0035


def test_a_fit_that_stays_where_it_started_fails(monkeypatch):
    right, kept = open_problem.full, []

    def lazy(X, rule, *, start=None, **options):
        if start is None:
            kept.append(right(X, rule, **options))
            return kept[-1]
        return dataclasses.replace(kept[-1], gaussian=start)

    monkeypatch.setattr(open_problem, "full", lazy)
    assert not check_claim(CLAIMS["open-problem/starts"], quick=True).holds


def test_leaving_hidden_cells_out_fails(monkeypatch):
    class Naive:
        def __init__(self, X, rule, random_state):
            rows = X[~np.isnan(X).any(axis=1)]
            self.gaussian = Gaussian(rows.mean(axis=0), np.cov(rows.T))

    monkeypatch.setattr(open_problem, "fit", Naive)
    assert not check_claim(CLAIMS["open-problem/rows"], quick=True).holds


def test_starts_that_are_not_listened_to_fail(monkeypatch):
    right = open_problem.full

    def deaf(X, rule, *, start=None, **options):
        return right(X, rule, **options)

    monkeypatch.setattr(open_problem, "full", deaf)
    assert not check_claim(CLAIMS["open-problem/starts"], quick=True).holds
