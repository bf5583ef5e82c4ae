import dataclasses
import importlib
import math

import numpy as np
import pytest
from scipy.special import ndtri

import halfseen as hs
from halfseen.ledger import missing_descent as ledger
from halfseen.ledger.registry import CLAIMS, check_claim
from halfseen.samplers import Gibbs, gibbs

# The package has the function under this name.
solver = importlib.import_module("halfseen.solvers.missing_descent")


def _run(name):
    return check_claim(CLAIMS[name], quick=True)


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


@pytest.mark.parametrize("number", [1.0, 4.0, 64.0])
def test_condition_number(number):
    truth, _ = ledger.equally_correlated(number)
    assert np.linalg.cond(truth.covariance) == pytest.approx(number)
    np.testing.assert_allclose(np.diag(truth.covariance), 1.0)


def test_exponents_are_half_those_of_the_rows():
    assert ledger.claimed_exponent((1.0, 3.0, 9.0), lambda v: 7.0 * v**3) == pytest.approx(1.5)


def test_error_is_that_of_the_fit():
    problem = ledger.autoregressive(3, 1)
    fits = [ledger.learn(problem, 200, seed, Gibbs()) for seed in range(2)]
    ref = math.sqrt(np.mean([hs.metrics.mahalanobis_error(f.mean, problem[0]) ** 2 for f in fits]))
    assert ledger.error(problem, 200, 2) == pytest.approx(ref)


@pytest.mark.parametrize("name", ["missing-descent/first-steps", "planning/constants"])
def test_rows_hold(name):
    entry = _run(name)
    assert entry.holds, entry.measured


def test_without_the_regions_rows_do_not_help(monkeypatch):
    def whole(u, mean, A, c, D, uniforms):
        u[:] = mean + ndtri(uniforms[-1, : u.size])

    monkeypatch.setattr(gibbs, "gibbs_chain", whole)
    entry = _run("theorem-1.5/rows")
    assert not entry.holds
    assert "Slope" in entry.measured


def test_without_the_projection_first_steps_fail(monkeypatch):
    monkeypatch.setattr(
        solver, "project_to_domain", lambda start, point, *_: np.clip(point, -1e9, 1e9)
    )
    ledger.descent.cache_clear()
    entry = _run("missing-descent/first-steps")
    ledger.descent.cache_clear()
    assert not entry.holds
    assert "furthest" in entry.measured


def test_modest_constants_fail(monkeypatch):
    true = ledger.parameters_for_missing_descent
    monkeypatch.setattr(
        ledger,
        "parameters_for_missing_descent",
        lambda *a: dataclasses.replace(true(*a), langevin_steps=1e4),
    )
    assert not _run("planning/constants").holds
