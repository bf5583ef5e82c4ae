"""Theorem 1.5: designs, fixed points, and rows that can fail."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.ledger import linear_thresholds as ledger
from halfseen.ledger.convexity import hessian, hidden_covariances
from halfseen.ledger.registry import CLAIMS, check_claim
from tests.ledger import broken


def _run(name):
    return check_claim(CLAIMS[f"theorem-1.5/{name}"], quick=True)


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


def test_with_tiny_steps_the_fixed_point_is_the_truth():
    problem = ledger.one_threshold()
    np.testing.assert_allclose(ledger.fixed_point(problem, 0.0), problem[0].mean, atol=1e-9)


def test_to_first_order_the_bias_of_the_gradient_goes_through_the_inverse_curvature():
    problem, eta = ledger.one_threshold(), 1e-6
    truth = problem[0]
    (part,) = ledger.slices(problem)
    m, s = part.conditional(truth)
    t = (part.low - m) / s
    shift = ledger.half_line_limit(t, eta) - ledger.half_line_limit(t, 0.0)
    gradient = -truth.precision[:, 1] * float(part.weight @ (s * shift))
    ref = -np.linalg.solve(hessian(problem, truth.mean), gradient)
    comp = ledger.fixed_point(problem, eta) - truth.mean
    np.testing.assert_allclose(comp, ref, rtol=0.01, atol=1e-9)


# That rows hold is seen in test_ledger; here, that they fail when what they claim is broken.
@pytest.mark.parametrize(
    "break_it", [broken.last_iterate, broken.shrink_gibbs, broken.printed_drift]
)
def test_broken_parts_fail_the_row_on_rows(monkeypatch, break_it):
    break_it(monkeypatch)
    entry = _run("rows")
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
    entry = _run(name)
    assert not entry.holds
    assert "predicted" in entry.measured


def test_exponents_are_half_those_of_the_rows():
    assert ledger.claimed_exponent((1.0, 3.0, 9.0), lambda v: 7.0 * v**3) == pytest.approx(1.5)


def test_pooled_means_are_those_of_fits():
    problem = ledger.autoregressive(3, 1)
    fits = [ledger.learn(problem, 200, seed) for seed in range(2)]
    errors, mean = ledger.pooled_means(problem, 200, 2)
    np.testing.assert_allclose(mean, (fits[0].mean + fits[1].mean) / 2)
    ref = [hs.metrics.mahalanobis_error(f.mean, problem[0]) for f in fits]
    np.testing.assert_allclose(errors, ref)
