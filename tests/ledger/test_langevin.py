"""The chain of Algorithm 5: its predicted limit against quadrature, and rows that can fail."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, stats

from halfseen.ledger import langevin
from halfseen.ledger.designs import exact_draws
from halfseen.samplers import Region
from tests.ledger.broken import leave_the_region, multiply_drift, one_step, printed_drift, run_row


def _run(name):
    return run_row(f"sample-gradient/{name}")


def test_overshoot_is_the_zeta_constant():
    assert pytest.approx(float(-mp.zeta(0.5) / mp.sqrt(2 * mp.pi)), rel=1e-14) == langevin.OVERSHOOT


@pytest.mark.parametrize(("wall", "variance"), [(0.0, 1.0), (-0.2, 1.0), (0.0, 0.5)])
def test_tail_mean(wall, variance):
    s = math.sqrt(variance)
    ref = stats.truncnorm((wall + 0.5) / s, math.inf, -0.5, s).mean()
    assert langevin.tail_mean(wall, variance) == pytest.approx(ref, rel=1e-9)


@pytest.mark.parametrize(("eta", "drift"), [(0.1, 0.5), (0.01, 0.5), (0.04, 1.0)])
def test_predicted_mean_by_quadrature(eta, drift):
    law = stats.norm(-0.5, math.sqrt(0.5 / drift))
    wall = -langevin.OVERSHOOT * math.sqrt(eta)
    ref = integrate.quad(lambda z: z * law.pdf(z), 0.0, 12.0)[0] / law.sf(wall)
    assert langevin.predicted_mean(eta, drift) == pytest.approx(ref, rel=1e-9)


def test_wedge_mean_matches_rejection(rng):
    u = exact_draws(langevin.WEDGE, 100_000, rng)[0]
    error = u.std(axis=0) / math.sqrt(len(u))
    assert (np.abs(u.mean(axis=0) - langevin.wedge_mean()) < 4.0 * error).all()


@pytest.mark.parametrize("wall", [-1.0, 0.3, 3.0])
def test_half_line_limit_by_quadrature(wall):
    pushed = wall - langevin.OVERSHOOT * math.sqrt(0.04)
    ref = integrate.quad(lambda z: max(z, wall) * stats.norm.pdf(z), pushed, 12.0, points=[wall])[0]
    comp = langevin.half_line_limit(wall, 0.04)
    assert comp == pytest.approx(ref / stats.norm.sf(pushed), rel=1e-9)


def test_projection_on_the_wedge_is_the_nearest_point(rng):
    points = rng.normal(0.0, 2.0, size=(300, 2))
    comp = langevin.on_the_wedge(points)
    assert (comp @ langevin.WEDGE.A.T <= 1e-12).all()
    # A fine grid along both edges, and the point itself where it lies inside.
    edge = np.linspace(0.0, 12.0, 4_001)
    walls = np.vstack([np.column_stack([0.0 * edge, edge]), np.column_stack([edge, 0.5 * edge])])
    for point, found in zip(points, comp, strict=True):
        inside = (langevin.WEDGE.A @ point <= 0.0).all()
        ref = 0.0 if inside else np.linalg.norm(walls - point, axis=1).min()
        assert np.linalg.norm(found - point) == pytest.approx(ref, abs=1e-4)


def test_wedge_limit_without_steps_is_the_truncated_mean():
    np.testing.assert_allclose(langevin.wedge_limit(0.0), langevin.wedge_mean(), rtol=1e-9)


def test_wedge_limit_by_draws(rng):
    push = langevin.OVERSHOOT * math.sqrt(0.1)
    region = Region(langevin.WEDGE.mean, langevin.WEDGE.A, np.full(2, push))
    u = langevin.on_the_wedge(exact_draws(region, 100_000, rng)[0])
    error = u.std(axis=0) / math.sqrt(len(u))
    assert (np.abs(u.mean(axis=0) - langevin.wedge_limit(0.1)) < 4.0 * error).all()


def test_tail_quantiles():
    ref = stats.truncnorm(0.5, math.inf, -0.5).ppf((np.arange(9) + 0.5) / 9)
    np.testing.assert_allclose(langevin.tail_quantiles(9), ref, rtol=1e-9)


def test_kolmogorov_distance_is_that_of_scipy(rng):
    first = rng.normal(size=300)
    levels = stats.norm.cdf(np.sort(first))
    assert langevin.kolmogorov(levels) == pytest.approx(stats.kstest(first, "norm").statistic)


def test_kolmogorov_counts_an_atom_once():
    # Half of the draws on the wall of (0, 1): the distance to the uniform law is that half.
    levels = np.concatenate([np.zeros(100), (np.arange(100) + 0.5) / 100])
    assert langevin.kolmogorov(levels) == pytest.approx(0.5, abs=0.01)


def test_the_printed_drift_as_our_default_fails(monkeypatch):
    printed_drift(monkeypatch)
    entry = _run("drift")
    assert not entry.holds
    # Not because the row broke down: it measures the wrong mean.
    assert "Mean 0.3" in entry.measured


def test_a_kernel_with_twice_the_drift_fails(monkeypatch):
    multiply_drift(monkeypatch, 2.0)
    assert not _run("drift").holds


def test_a_slow_chain_fails(monkeypatch):
    multiply_drift(monkeypatch, 0.5)
    entry = _run("langevin-steps")
    assert not entry.holds
    assert "floor" in entry.measured


def test_a_limit_that_is_not_at_the_walls_fails(monkeypatch):
    one_step(monkeypatch)
    assert not _run("langevin-step-size").holds


@pytest.mark.parametrize("break_chain", [one_step, leave_the_region])
def test_chains_with_another_target_fail(monkeypatch, break_chain):
    break_chain(monkeypatch)
    entry = _run("target")
    assert not entry.holds
    assert "To the truncated Gaussian" in entry.measured
