"""What remedies leave of the bias of Langevin steps, and the descent without it: rows that can fail."""

import dataclasses

import numpy as np
import pytest

from halfseen.ledger import remedies as ledger
from halfseen.ledger.langevin import WEDGE
from halfseen.solvers import persistent_descent
from tests.ledger import broken


@pytest.fixture
def half_as_many(monkeypatch):
    """Fewer chains at one step size: what is broken here shows with these."""
    true = ledger.biases

    def fewer(region, truth, etas, n, seed):
        return true(region, truth, etas, n // 2, seed)

    monkeypatch.setattr(ledger, "biases", fewer)


def _in_place(name, remedy):
    return pytest.param(lambda true: {**true, name: (remedy, true[name][1])}, id=name)


@pytest.mark.usefixtures("half_as_many")
@pytest.mark.parametrize(
    "changed",
    [
        _in_place("reflection", ledger.projected),
        _in_place("chords", ledger.projected),
        _in_place("Metropolis", ledger.vectorised(ledger.proposed)),
        # Steps that grow in place of shrinking.
        _in_place(
            "shrinking steps",
            lambda U, region, eta, rng: ledger.projected(U, region, 16 * eta, rng),
        ),
    ],
)
def test_a_remedy_that_does_something_else_fails(monkeypatch, changed):
    monkeypatch.setattr(ledger, "REMEDIES", changed(ledger.REMEDIES))
    assert not broken.run_row("sample-gradient/remedies").holds


@pytest.mark.usefixtures("half_as_many")
def test_moves_that_are_not_exact_fail(monkeypatch):
    broken.shrink_gibbs(monkeypatch)
    assert not broken.run_row("sample-gradient/remedies").holds


def test_reflections_stay_inside(rng):
    U = ledger.exact_points(WEDGE, 500, rng)
    comp = ledger.reflected(U, WEDGE, 4.0, rng)
    assert (comp @ WEDGE.A.T <= WEDGE.c).all()
    assert (comp != U).any(axis=1).mean() > 0.9


def _shrunken(true):
    def sweep(U, X, mean, hidden, seen, gain, W, *rest):
        centres = np.linalg.solve(W, mean[hidden, None] + gain @ (X - mean[seen]).T).T
        gap = rest[-2]
        before = gap[hidden]
        true(U, X, mean, hidden, seen, gain, W, *rest)
        # Draws too near to the conditional mean.
        middle = (centres @ W.T - mean[hidden]).sum(axis=0)
        gap[hidden] = before + middle + 0.9 * (gap[hidden] - before - middle)

    return sweep


def _at_medians(true):
    def sweep(*arguments):
        *first, uniforms, gap, within = arguments
        true(*first, np.full_like(uniforms, 0.5), gap, within)

    return sweep


@pytest.mark.filterwarnings("ignore::halfseen.ConvergenceWarning")
@pytest.mark.parametrize("break_it", [_shrunken, _at_medians])
def test_broken_chains_fail_the_descent(monkeypatch, break_it):
    true = persistent_descent.gibbs_rows
    monkeypatch.setattr(persistent_descent, "gibbs_rows", break_it(true))
    assert not broken.run_row("persistent-descent/rows").holds


def test_an_average_of_one_iterate_fails_the_descent(monkeypatch):
    true = persistent_descent.PersistentDescent.step

    def step(self, state):
        after, info = true(self, dataclasses.replace(state, step=state.step % 20))
        return dataclasses.replace(after, step=state.step + 1, kept=(after.mean,) * 2), info

    monkeypatch.setattr(persistent_descent.PersistentDescent, "step", step)
    assert not broken.run_row("persistent-descent/rows").holds
