"""What remedies leave of the bias of Langevin steps, and the descent without it: rows that can fail."""

import dataclasses

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
    def sweep(U, means, A, levels, directions, uniforms, total, spread):
        before = total.copy()
        true(U, means, A, levels, directions, uniforms, total, spread)
        centre = means.sum(axis=0)
        total[:] = before + centre + 0.9 * (total - before - centre)

    return sweep


def _frozen(true):
    def sweep(U, means, A, levels, directions, uniforms, total, spread):
        total += U.sum(axis=0)

    return sweep


@pytest.mark.filterwarnings("ignore::halfseen.ConvergenceWarning")
@pytest.mark.parametrize("break_it", [_shrunken, _frozen])
def test_broken_chains_fail_the_descent(monkeypatch, break_it):
    true = persistent_descent.gibbs_rows
    monkeypatch.setattr(persistent_descent, "gibbs_rows", break_it(true))
    assert not broken.run_row("missing-descent/persistent").holds


def test_an_average_of_one_iterate_fails_the_descent(monkeypatch):
    true = persistent_descent.PersistentDescent.step

    def step(self, state):
        after, info = true(self, dataclasses.replace(state, step=state.step % 20))
        return dataclasses.replace(after, step=state.step + 1, kept=(after.mean,) * 2), info

    monkeypatch.setattr(persistent_descent.PersistentDescent, "step", step)
    assert not broken.run_row("missing-descent/persistent").holds
