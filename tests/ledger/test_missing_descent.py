"""How Algorithm 3 behaves: rows that can fail."""

import dataclasses
import math

import numpy as np
import pytest

from halfseen.ledger import missing_descent as ledger
from halfseen.ledger.registry import CLAIMS, check_claim
from tests.ledger import broken


def _run(name):
    ledger.descent.cache_clear()
    entry = check_claim(CLAIMS[name], quick=True)
    ledger.descent.cache_clear()
    return entry


def test_without_the_projection_first_steps_fail(monkeypatch):
    monkeypatch.setattr(
        broken.descent, "project_to_domain", lambda start, point, *_: np.clip(point, -1e9, 1e9)
    )
    entry = _run("missing-descent/first-steps")
    assert not entry.holds
    assert "furthest" in entry.measured


@pytest.mark.parametrize(
    "break_it", [broken.box, broken.last_iterate, broken.root_steps, broken.move_start]
)
def test_a_broken_descent_fails(monkeypatch, break_it):
    break_it(monkeypatch)
    entry = _run("missing-descent/first-steps")
    assert not entry.holds
    assert "furthest" in entry.measured


@pytest.mark.parametrize(
    ("name", "break_chain"),
    [
        ("planning/constants", broken.one_step),
        ("planning/constants", broken.printed_drift),
        ("missing-descent/forgets", broken.printed_drift),
    ],
)
def test_a_broken_chain_fails(monkeypatch, break_chain, name):
    break_chain(monkeypatch)
    entry = _run(name)
    assert not entry.holds
    assert "stopped" not in entry.measured


def test_growth_of_distances_by_hand():
    euclidean, mahalanobis = ledger.growth_of_distances(10.0, 5, 0)
    moved = np.array([10.0, 1.0]) / math.sqrt(2.0)
    assert euclidean[0] == pytest.approx(np.linalg.norm(moved - [10.0, 0.0]))
    assert mahalanobis[0] == pytest.approx(np.linalg.norm(moved / [10.0, 1.0] - [1.0, 0.0]))


def test_a_projection_that_expands_in_both_norms_fails(monkeypatch):
    true = ledger.project_to_domain
    monkeypatch.setattr(ledger, "project_to_domain", lambda s, p, r, g: 1.01 * true(s, p, r, g))
    assert not _run("missing-descent/projection").holds


def test_modest_constants_fail(monkeypatch):
    true = ledger.parameters_for_missing_descent
    monkeypatch.setattr(
        ledger,
        "parameters_for_missing_descent",
        lambda *a: dataclasses.replace(true(*a), langevin_steps=1e4),
    )
    assert not _run("planning/constants").holds
