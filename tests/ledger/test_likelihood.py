import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtri

from halfseen.ledger import likelihood
from halfseen.samplers import gibbs
from tests.ledger.broken import run_row, shrink_gibbs

DESIGNS = likelihood.designs()
CHOSEN = ("the larger of two, ρ = 0.9", "an anchor, κ = 100", "an anchor, ρ = −0.9, κ = 535")


def _run(name):
    return run_row(f"likelihood/{name}")


@pytest.mark.parametrize("limits", [(-np.inf, 0.7), (-1.3, np.inf), (-np.inf, -6.0), (5.0, np.inf)])
def test_half_line_moments(limits):
    comp = likelihood.half_line(*(np.array([x]) for x in limits))
    law = stats.truncnorm(*limits)
    ref = np.log(stats.norm.cdf(limits[1]) - stats.norm.cdf(limits[0])), law.mean(), law.var()
    # SciPy's moments lose digits in the tails.
    np.testing.assert_allclose(np.concatenate(comp), ref, rtol=1e-6)


def _naive_likelihood(design, mean):
    """ℓ(μ) as an average over a grid of full rows, each turned into its observation."""
    truth, S = design.truth, design.truth.covariance
    u = (np.arange(800) + 0.5) / 40.0 - 10.0
    U = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    weight = stats.norm.pdf(U).prod(axis=1) / 1600.0
    Y = truth.mean + U @ truth.cholesky.T
    seen = design.rule.seen(Y)
    value = -stats.multivariate_normal(mean, S).logpdf(Y)
    for j, k in ((0, 1), (1, 0)):
        rows = ~seen[:, j]
        x = Y[rows, k]
        m = mean[j] + S[j, k] / S[k, k] * (x - mean[k])
        s = math.sqrt(S[j, j] - S[j, k] ** 2 / S[k, k])
        v, w = design.rule.V[j, j], design.rule.V[j, k]
        if rows.any():
            edge = (design.rule.b[j] - w * x) / v
            log_mass = stats.norm.logsf(edge, m, s) if v > 0 else stats.norm.logcdf(edge, m, s)
            value[rows] = -stats.norm.logpdf(x, mean[k], math.sqrt(S[k, k])) - log_mass
    return float(weight @ value)


@pytest.mark.parametrize("name", CHOSEN)
def test_excess_matches_a_grid_of_rows(name):
    design = DESIGNS[name]
    mean = design.truth.mean + design.truth.cholesky @ np.array([0.8, -1.1])
    ref = _naive_likelihood(design, mean) - _naive_likelihood(design, design.truth.mean)
    # A cell of the grid that a threshold cuts goes to one side whole: the grid is 0.025 wide.
    assert likelihood.excess(design, mean) == pytest.approx(ref, abs=2e-3)


@pytest.mark.parametrize("name", CHOSEN)
def test_hessian_is_the_derivative_of_the_slope(name):
    design = DESIGNS[name]
    mean = design.truth.mean + design.truth.cholesky @ np.array([-0.5, 0.7])
    scale = design.truth.standard_deviations
    comp = likelihood.hessian(design, mean)
    for i, e in enumerate(np.diag(1e-3 * scale)):
        ref = likelihood.slope_of(design, mean + e) - likelihood.slope_of(design, mean - e)
        np.testing.assert_allclose(
            comp[i] * scale * scale[i], ref * scale / 2e-3, atol=2e-4 * np.abs(comp).max()
        )


@pytest.mark.parametrize("name", CHOSEN)
def test_joint_shares_match_rows(name, rng):
    design = DESIGNS[name]
    seen = design.rule.seen(
        design.truth.mean + rng.normal(size=(40_000, 2)) @ design.truth.cholesky.T
    )
    shares = likelihood.joint_shares(design)
    # 0.01 is four standard errors of a share of 40 000 rows.
    assert shares[1] == pytest.approx(seen.mean(axis=0).min(), abs=0.01)
    assert shares[2] == pytest.approx(seen.all(axis=1).mean(), abs=0.01)


@pytest.mark.parametrize(("low", "high"), [(2.0, 4.0), (-0.5, 0.5), (1.0, math.inf)])
def test_interval_curvature_is_a_second_derivative(low, high):
    def loss(mu):
        part = integrate.quad(lambda y: stats.norm.pdf(y) * 0.5 * (y - mu) ** 2, low, high)[0]
        hidden = stats.norm.cdf(low, mu) + stats.norm.sf(high, mu)
        at_truth = stats.norm.cdf(low) + stats.norm.sf(high)
        return part - at_truth * math.log(hidden)

    for mu in (-1.0, 0.3, 2.5, 3.0):
        h = 1e-2
        ref = (loss(mu + h) - 2 * loss(mu) + loss(mu - h)) / h**2
        comp = likelihood.interval_curvature(low, high, np.array([mu]))[0]
        assert comp == pytest.approx(ref, abs=2e-3)


def test_gradients_that_ignore_the_region_fail(monkeypatch):
    def whole(u, mean, A, c, D, uniforms):
        u[:] = mean + ndtri(uniforms[-1, : u.size])

    monkeypatch.setattr(gibbs, "gibbs_chain", whole)
    assert not _run("global-minimum").holds


def test_hidden_values_that_vary_too_much_fail(monkeypatch):
    true = likelihood.half_line

    def wider(low, high):
        log_mass, mean, variance = true(low, high)
        return log_mass, mean, 1.1 * variance

    monkeypatch.setattr(likelihood, "half_line", wider)
    assert not _run("strong-convexity").holds


def test_draws_that_vary_too_little_fail(monkeypatch):
    shrink_gibbs(monkeypatch)
    assert not _run("strong-convexity").holds


def test_a_half_line_in_place_of_the_interval_fails(monkeypatch):
    true = likelihood.interval_curvature
    monkeypatch.setattr(
        likelihood, "interval_curvature", lambda low, high, mu: true(low, math.inf, mu)
    )
    assert not _run("counterexample").holds
