"""Theorem 1.5 and Algorithm 3: designs, fixed points, and rows that can fail."""

import dataclasses
import math

import numpy as np
import pytest

import halfseen as hs
from halfseen.ledger import linear_thresholds as ledger
from halfseen.ledger.likelihood import hidden_covariances
from tests.ledger import broken


def _patterns(problem, n=40_000):
    """Share of rows of each pattern of hidden columns."""
    hidden = np.isnan(hs.simulate(*problem, n, 0))
    rows, counts = np.unique(hidden, axis=0, return_counts=True)
    return {tuple(np.flatnonzero(row)): c / n for row, c in zip(rows, counts, strict=True)}


@pytest.mark.parametrize("gamma", [0.3, 0.03])
def test_patterns_of_the_designs(gamma):
    shown = _patterns(ledger.rarely_shown(gamma))
    assert shown[()] == pytest.approx(gamma, abs=0.01)
    slab = _patterns(ledger.thin_slab(gamma))
    assert slab[(1, 2)] == pytest.approx(gamma, abs=0.01)
    assert slab[(2,)] == pytest.approx(0.35, abs=0.01)
    assert slab[(1,)] == pytest.approx(0.65 - gamma, abs=0.01)
    decided = _patterns(ledger.decided_by_anchor(3, gamma))
    assert decided == {
        (): pytest.approx(gamma, abs=0.01),
        (1, 2): pytest.approx(1 - gamma, abs=0.01),
    }


@pytest.mark.parametrize("number", [1.0, 4.0, 64.0])
def test_condition_number(number):
    truth, _ = ledger.equally_correlated(number)
    assert np.linalg.cond(truth.covariance) == pytest.approx(number)
    np.testing.assert_allclose(np.diag(truth.covariance), 1.0)


def test_information_where_an_anchor_decides():
    truth, rule = ledger.decided_by_anchor(3, 0.4)
    _, hidden = hidden_covariances(truth, rule, truth.mean, 4_000, 4, 0)
    P = truth.precision
    # Four standard errors of entries of hidden covariances are below 0.1.
    comp = ledger.decided_information(3, 0.4)
    np.testing.assert_allclose(comp, P - P @ hidden.mean(axis=0) @ P, atol=0.1)


# That rows hold is seen in test_ledger; here, that they fail when what they claim is broken.
@pytest.mark.parametrize(
    "break_it", [broken.last_iterate, broken.shrink_gibbs, broken.printed_drift]
)
def test_broken_parts_fail_the_row_on_rows(monkeypatch, break_it):
    break_it(monkeypatch)
    entry = broken.run_row("theorem-1.5/rows")
    assert not entry.holds
    assert "Slope" in entry.measured


@pytest.mark.parametrize(
    ("name", "break_it"),
    [
        ("gamma", broken.move_start),
        ("alpha", broken.last_iterate),
        ("beta", broken.root_steps),
        ("condition", broken.box),
        ("poly-dimension", broken.last_iterate),
    ],
)
def test_a_broken_descent_fails_a_sweep(monkeypatch, break_it, name):
    break_it(monkeypatch)
    entry = broken.run_row(f"theorem-1.5/{name}")
    assert not entry.holds
    assert "predicted" in entry.measured


def test_without_the_projection_first_steps_fail(monkeypatch):
    monkeypatch.setattr(
        broken.descent, "project_to_domain", lambda start, point, *_: np.clip(point, -1e9, 1e9)
    )
    entry = broken.run_row("missing-descent/first-steps")
    assert not entry.holds
    assert "furthest" in entry.measured


@pytest.mark.parametrize(
    "break_it", [broken.box, broken.last_iterate, broken.root_steps, broken.move_start]
)
def test_a_broken_descent_fails_first_steps(monkeypatch, break_it):
    break_it(monkeypatch)
    entry = broken.run_row("missing-descent/first-steps")
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
    entry = broken.run_row(name)
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
    assert not broken.run_row("missing-descent/projection").holds


def test_modest_constants_fail(monkeypatch):
    true = ledger.parameters_for_missing_descent
    monkeypatch.setattr(
        ledger,
        "parameters_for_missing_descent",
        lambda *a: dataclasses.replace(true(*a), langevin_steps=1e4),
    )
    assert not broken.run_row("planning/constants").holds
