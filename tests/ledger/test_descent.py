"""The recursion on a quadratic: its covariance by formula, by hand and by running it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import halfseen as hs
from halfseen.ledger import descent as ledger
from halfseen.ledger.likelihood import hessian
from halfseen.ledger.linear_thresholds import (
    autoregressive,
    decided_by_anchor,
    decided_information,
    one_threshold,
)
from halfseen.solvers.descent_defaults import derive_defaults


def test_complete_data_and_tiny_convexity_give_the_covariance_of_a_mean():
    truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.4], [0.4, 1.0]])
    comp = ledger.limit_covariance(truth, truth.precision, 1e-9)
    np.testing.assert_allclose(comp, truth.covariance, rtol=1e-6)


def test_one_column_by_hand():
    # h = ½, noise 1, λ = ¼: a = 2, so the variance is 4 · 4/3.
    truth = hs.Gaussian([0.0], [[1.0]])
    comp = ledger.limit_covariance(truth, np.array([[0.5]]), 0.25)
    assert comp[0, 0] == pytest.approx(16.0 / 3.0)


def test_the_recursion_has_the_covariance_of_the_formula():
    truth = hs.Gaussian([0.3, -0.2], [[1.0, 0.5], [0.5, 1.0]])
    H = decided_information(2, 0.5)
    setting = ledger.Setting(truth.mean, 0.15, 10.0)
    n, tables = 3_000, 2_000
    u = ledger.quadratic_descent(truth, H, setting, n, tables)
    L = truth.cholesky
    found = L @ np.cov(u.T) @ L.T * n
    ref = ledger.limit_covariance(truth, H, 0.15)
    # Four standard errors of a variance, √(2/2000), and first steps in 1 of 100 rows.
    np.testing.assert_allclose(found, ref, rtol=0.15)


def test_iterates_stay_in_the_ball():
    truth = hs.Gaussian([0.0], [[1.0]])
    setting = ledger.Setting(np.array([2.0]), 1e-3, 0.5)
    u = ledger.quadratic_descent(truth, np.eye(1), setting, 50, 20)
    assert (np.abs(u - 2.0) <= 0.5 + 1e-12).all()


@pytest.mark.parametrize("beta", [None, 0.5])
def test_settings_are_those_of_the_solver(beta):
    truth, rule = autoregressive(4, 2)
    X = hs.simulate(truth, rule, 20_000, 1)
    ref = derive_defaults(X, hs.Gaussian(np.zeros(4), truth.covariance), beta)
    comp = ledger.setting_for((truth, rule), beta)
    # Shares of 20 000 rows have relative standard errors below 1 %.
    assert comp.strong_convexity == pytest.approx(ref.strong_convexity, rel=0.05)
    assert comp.radius == pytest.approx(ref.projection_radius, rel=0.05)
    np.testing.assert_allclose(comp.start, hs.solvers.initialize(X, beta), atol=0.06)


def test_sampled_information_is_the_exact_one():
    problem = decided_by_anchor(3, 0.5)
    comp, others = ledger.sampled_information(problem)
    ref = decided_information(3, 0.5)
    for part in np.ndindex(3, 3):
        error = ledger.jackknife_error([other[part] for other in others])
        assert abs(comp[part] - ref[part]) <= 4.5 * error + 1e-12


def test_jackknife_of_a_mean_is_its_standard_error(rng):
    values = rng.normal(size=12)
    left_out = [np.delete(values, k).mean() for k in range(12)]
    assert ledger.jackknife_error(left_out) == pytest.approx(values.std(ddof=1) / math.sqrt(12))


def test_surplus_is_in_parts_of_what_is_allowed():
    level = ledger.Level(2.0, 0.3, 0.0)
    # Nine tables: 4 · 0.3/3 = 0.4 may be off by chance.
    assert level.surplus([2.8] * 9) == pytest.approx(1.0)
    assert level.surplus([1.6] * 9) == pytest.approx(-0.5)


def test_with_tiny_steps_the_fixed_point_is_the_truth():
    problem = one_threshold()
    np.testing.assert_allclose(ledger.fixed_point(problem, 0.0), problem.truth.mean, atol=1e-9)


def test_to_first_order_the_bias_of_the_gradient_goes_through_the_inverse_curvature():
    problem, eta = one_threshold(), 1e-6
    truth = problem.truth
    (part,) = ledger.slices(problem)
    m, s = part.conditional(truth)
    t = (part.low - m) / s
    shift = ledger.half_line_limit(t, eta) - ledger.half_line_limit(t, 0.0)
    gradient = -truth.precision[:, 1] * float(part.weight @ (s * shift))
    ref = -np.linalg.solve(hessian(problem, truth.mean), gradient)
    comp = ledger.fixed_point(problem, eta) - truth.mean
    np.testing.assert_allclose(comp, ref, rtol=0.01, atol=1e-9)


def test_exponents_are_half_those_of_the_rows(monkeypatch):
    monkeypatch.setattr(
        ledger,
        "parameters_for_missing_descent",
        lambda v: SimpleNamespace(descent_steps=7.0 * v**3),
    )
    assert ledger.allowed_exponent((1.0, 3.0, 9.0), lambda v: (v,)) == pytest.approx(1.5)


def test_pooled_estimates_are_those_of_fits():
    problem = autoregressive(3, 1)
    fits = [ledger.learn(problem, 200, seed) for seed in range(2)]
    errors, mean = ledger.pooled(problem, 200, 2)
    np.testing.assert_allclose(mean, (fits[0].mean + fits[1].mean) / 2)
    ref = [hs.metrics.mahalanobis_error(f.mean, problem.truth) for f in fits]
    np.testing.assert_allclose(errors, ref)
