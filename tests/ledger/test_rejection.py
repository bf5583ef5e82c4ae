"""Why a chain and not rejection: rows that can fail."""

import numpy as np
import pytest

from halfseen.ledger import rejection as ledger
from halfseen.ledger.registry import CLAIMS, check_claim
from tests.ledger.broken import one_step


def _run(name):
    return check_claim(CLAIMS[f"rejection/{name}"], quick=True)


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
    assert not _run("distance").holds


def test_costs_that_do_not_depend_on_what_is_seen_fail(monkeypatch):
    true = ledger.costs_of_rows

    def shuffled(n, seed):
        costs, seen = true(n, seed)
        return np.random.default_rng(0).permutation(costs), seen

    monkeypatch.setattr(ledger, "costs_of_rows", shuffled)
    assert not _run("mass-at-truth").holds
