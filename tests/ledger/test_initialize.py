import math

import numpy as np
import pytest
from scipy.special import ndtri

import halfseen as hs
from halfseen.ledger import initialize as ledger
from tests.ledger.broken import ignore_blocks, run_row

TRUTHS = ledger.truths()


def _run(name):
    return run_row(f"initialize/{name}")


@pytest.mark.parametrize("name", TRUTHS)
def test_half_space_hides_whole_rows_but_for_its_share(name):
    truth = TRUTHS[name]
    X = hs.simulate(truth, ledger.half_space(truth, 0.1), 20_000, 0)
    hidden = np.isnan(X)
    assert (hidden.all(axis=1) == hidden.any(axis=1)).all()
    # 4.5 standard errors of a share of 0.1 in 20 000 rows.
    assert 1.0 - hidden[:, 0].mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("make", [ledger.half_lines, ledger.random_directions])
def test_each_column_is_shown_in_the_share(make):
    truth = TRUTHS["κ = 100"]
    X = hs.simulate(truth, make(truth, 0.3), 20_000, 0)
    assert (~np.isnan(X)).mean(axis=0) == pytest.approx(np.full(4, 0.3), abs=0.015)


def test_start_by_hand():
    truth = TRUTHS["κ = 100"]
    rule = ledger.half_lines(truth, 0.5)
    X = hs.simulate(truth, rule, 2_000, 7)
    found = ledger.start_from(truth, rule, 0.25, 2_000, 7)
    alpha = (~np.isnan(X)).mean(axis=0).min()
    assert found.distance == pytest.approx(np.linalg.norm(np.nanmean(X, axis=0) - truth.mean))
    assert found.scale == pytest.approx(math.sqrt(10.0 * 4.0 * math.log(1.0 / alpha)))
    assert found.rows == pytest.approx(2_000 * alpha)
    noise = ledger.NOISE * math.sqrt(40.0 / found.rows)
    assert found.distance < ledger.CONSTANT * found.scale + noise


def test_a_block_that_is_hardly_ever_seen_is_left_out():
    truth = TRUTHS["I"]
    assert ledger.start_from(truth, ledger.half_lines(truth, 0.1), 1.0, 2_000, 0) is None


def test_block_of_two_matches_draws(rng):
    block = ledger.block_of_two(0.3)
    y = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], size=200_000)
    both = y[(y > ndtri(0.7)).all(axis=1)]
    # Four standard errors of a share, of a mean and of a variance (kurtosis below 9).
    assert len(both) / len(y) == pytest.approx(block.alpha, abs=4 * math.sqrt(0.25 / len(y)))
    error = math.sqrt(block.variance / len(both))
    assert both[:, 0].mean() == pytest.approx(block.mean, abs=4 * error)
    relative = 4 * math.sqrt(8.0 / len(both))
    assert both[:, 1].var() == pytest.approx(block.variance, rel=relative)


@pytest.mark.parametrize("name", ["distance", "alpha"])
def test_a_start_twice_as_far_fails(name, monkeypatch):
    true = ledger.initialize
    # Away from each truth's mean, which is the same for all.
    centre = TRUTHS["I"].mean
    monkeypatch.setattr(ledger, "initialize", lambda X, beta: 2.0 * true(X, beta) - centre)
    assert not _run(name).holds


def test_columns_by_themselves_do_not_settle(monkeypatch):
    ignore_blocks(monkeypatch, ledger)
    entry = _run("rows")
    assert not entry.holds
    assert "Exponent" in entry.measured


def test_a_third_of_the_rows_is_noticed(monkeypatch):
    true = ledger.initialize
    # Distances are √3 too large; 4 standard errors of 25 tables are about 0.5.
    monkeypatch.setattr(
        ledger, "initialize", lambda X, beta=None: true(np.asarray(X)[: len(X) // 3], beta)
    )
    assert not _run("rows").holds
