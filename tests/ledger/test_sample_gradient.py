"""Gradients by Algorithm 5: rows on their moments that can fail."""

import math

import numpy as np
import pytest
from scipy import stats

from halfseen.ledger import sample_gradient as ledger
from halfseen.ledger.registry import CLAIMS, check_claim
from halfseen.samplers import projected_langevin
from tests.ledger.broken import multiply_drift, one_step, printed_drift


def _run(name):
    return check_claim(CLAIMS[f"sample-gradient/{name}"], quick=True)


@pytest.fixture
def one_case(monkeypatch):
    """The two rows on moments with one observation and one step size, forgotten afterwards."""
    true = ledger.cases()
    monkeypatch.setattr(ledger, "cases", lambda: {"one": true["two hidden, κ = 3.5"]})
    monkeypatch.setattr(ledger, "MOMENT_STEPS", (0.01,))
    ledger.moment_table.cache_clear()
    yield
    ledger.moment_table.cache_clear()


def test_two_sample_distance_is_that_of_scipy(rng):
    first, second = rng.normal(size=300), rng.normal(0.3, 1.0, size=500)
    ref = stats.ks_2samp(first, second).statistic
    assert ledger.two_sample(first, second) == pytest.approx(ref)


def test_moments_of_exact_gradients_are_near(one_case):
    case = ledger.cases()["one"]
    found = ledger.moments(case, 0.02, 300, 1)
    assert found.bias <= found.wall_bound + 4.0 * found.bias_error
    assert found.wall_bound < found.bias_bound
    assert abs(found.length) <= found.wall_bound + 4.0 * found.length_error
    assert abs(found.excess) <= found.excess_bound + 4.0 * found.excess_error


def test_rows_on_moments_hold(one_case):
    for name in ("bias", "second-moment"):
        entry = _run(name)
        assert entry.holds, entry.measured


def test_a_wrong_drift_makes_a_bias_that_walls_do_not(one_case, monkeypatch):
    multiply_drift(monkeypatch, 2.0)
    assert not _run("bias").holds


def test_gradients_from_the_edge_of_a_ball_fail(one_case, monkeypatch):
    def far(u, mean, A, c, radius, eta, drift, noise):
        u[:] = mean + 10.0 * radius / math.sqrt(u.size)

    monkeypatch.setattr(projected_langevin, "langevin_chain", far)
    assert not _run("second-moment").holds


@pytest.mark.parametrize("break_chain", [one_step, printed_drift])
def test_second_moments_of_wrong_chains_fail(one_case, monkeypatch, break_chain):
    break_chain(monkeypatch)
    assert not _run("second-moment").holds


def test_some_cases_see_more_than_anchors():
    cases = ledger.cases()
    seen = {name: int((~np.isnan(case.row)).sum()) for name, case in cases.items()}
    beyond = [name for name in cases if "beyond" in name]
    assert len(beyond) == 2
    for name in beyond:
        assert seen[name] > cases[name].rule.always_seen.sum()
