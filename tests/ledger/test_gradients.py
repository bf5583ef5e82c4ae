"""Gradients by Algorithm 5, and why a chain draws them: rows that can fail."""

import math

import numpy as np
import pytest

from halfseen.ledger import gradients as ledger
from halfseen.samplers import projected_langevin
from tests.ledger.broken import multiply_drift, one_step, printed_drift, run_row


@pytest.fixture
def one_case(monkeypatch):
    """The two rows on moments with one observation and one step size, forgotten afterwards."""
    true = ledger.cases()
    monkeypatch.setattr(ledger, "cases", lambda: {"one": true["two hidden, κ = 3.5"]})
    monkeypatch.setattr(ledger, "MOMENT_STEPS", (0.01,))
    ledger.moment_table.cache_clear()
    yield
    ledger.moment_table.cache_clear()


def test_moments_of_exact_gradients_are_near(one_case):
    case = ledger.cases()["one"]
    found = ledger.moments(case, 0.02, 300, 1)
    assert found.bias.at_most(found.wall_bound)
    assert found.wall_bound < found.bias_bound
    assert found.length.near(0.0, found.wall_bound)
    assert found.excess.near(0.0, found.excess_bound)


def test_rows_on_moments_hold(one_case):
    for name in ("bias", "second-moment"):
        entry = run_row(f"sample-gradient/{name}")
        assert entry.holds, entry.measured


def test_a_wrong_drift_makes_a_bias_that_walls_do_not(one_case, monkeypatch):
    multiply_drift(monkeypatch, 2.0)
    assert not run_row("sample-gradient/bias").holds


def test_gradients_from_the_edge_of_a_ball_fail(one_case, monkeypatch):
    def far(u, mean, A, c, radius, eta, drift, noise):
        u[:] = mean + 10.0 * radius / math.sqrt(u.size)

    monkeypatch.setattr(projected_langevin, "langevin_chain", far)
    assert not run_row("sample-gradient/second-moment").holds


@pytest.mark.parametrize("break_chain", [one_step, printed_drift])
def test_second_moments_of_wrong_chains_fail(one_case, monkeypatch, break_chain):
    break_chain(monkeypatch)
    assert not run_row("sample-gradient/second-moment").holds


def test_some_cases_see_more_than_anchors():
    cases = ledger.cases()
    seen = {name: int((~np.isnan(case.row)).sum()) for name, case in cases.items()}
    beyond = [name for name in cases if "beyond" in name]
    assert len(beyond) == 2
    for name in beyond:
        assert seen[name] > cases[name].rule.always_seen.sum()


def test_proposals_are_geometric(rng):
    region = ledger.quadrant(0.0)
    counts = [ledger.proposals_until_hit(region, rng) for _ in range(2_000)]
    mass = 0.30853754**2
    # A geometric count varies by √(1 − p)/p.
    assert np.mean(counts) == pytest.approx(1 / mass, abs=4 * (1 - mass) ** 0.5 / mass / 2_000**0.5)


def test_mass_of_a_row_is_that_of_its_region():
    # At y₁ = −3 the hidden value is above 2.
    assert ledger.mass_of_row(np.array(-3.0)) == pytest.approx(0.02275013, rel=1e-6)


def test_chains_that_stay_where_they_start_fail(monkeypatch):
    one_step(monkeypatch)
    assert not run_row("rejection/distance").holds


def test_costs_that_do_not_depend_on_what_is_seen_fail(monkeypatch):
    true = ledger.costs_of_rows

    def shuffled(n, seed):
        costs, seen = true(n, seed)
        return np.random.default_rng(0).permutation(costs), seen

    monkeypatch.setattr(ledger, "costs_of_rows", shuffled)
    assert not run_row("rejection/mass-at-truth").holds


def test_proposals_that_are_too_many_break_the_row_on_rejection(monkeypatch):
    right = ledger.proposals_for_a_draw
    monkeypatch.setattr(ledger, "proposals_for_a_draw", lambda *args: 1.5 * right(*args))
    assert not run_row("rejection/distance").holds
