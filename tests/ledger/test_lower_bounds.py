"""The pair of the lower bound: its censored laws, its couplings, and rows that can fail."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad

from halfseen.ledger import lower_bounds as lb
from tests.ledger.broken import run_row

WIDE = lb.Pair(0.3, 0.09)


def _naive(pair):
    """Masses and half of ∫|p − q| by SciPy's adaptive quadrature, in the coordinates x, y."""
    p, q = pair.gaussian(False), pair.gaussian(True)

    def both(f):
        return dblquad(
            lambda y, x: f(math.exp(p.logpdf([x, y])), math.exp(q.logpdf([x, y]))),
            0,
            1,
            0,
            1,
            epsabs=1e-5,
        )[0]

    def hidden(gaussian, x):
        given = gaussian.condition([0], [x])
        low, high = (
            stats.norm.cdf(t, given.mean[0], given.covariance[0, 0] ** 0.5) for t in (0, 1)
        )
        marginal = stats.norm.pdf(x, gaussian.mean[0], gaussian.covariance[0, 0] ** 0.5)
        return marginal * (1 - high + low)

    one = [quad(lambda x, g=g: hidden(g, x), 0, 1)[0] for g in (p, q)]
    gap = quad(lambda x: abs(hidden(p, x) - hidden(q, x)), 0, 1, limit=200)[0]
    return both, one, gap


@pytest.mark.parametrize("pair", [lb.Pair(0.01, 1e-4), lb.Pair(0.01, 1e-8), WIDE])
def test_masses_are_those_of_simulated_rows(pair):
    rng, n = np.random.default_rng(1), 200_000
    found = lb.censored(pair)
    for moved in (False, True):
        hidden = np.isnan(lb.censor(pair.gaussian(moved).sample(n, rng))).sum(axis=1)
        for count, mass in (
            (0, found.both),
            (1, (2 * found.one[0], 2 * found.one[1])),
            (2, found.none),
        ):
            ref, comp = (hidden == count).mean(), mass[moved]
            assert abs(ref - comp) <= 4 * math.sqrt(comp / n) + 1e-12


def test_total_variation_agrees_with_adaptive_quadrature():
    both, one, gap = _naive(WIDE)
    found = lb.censored(WIDE)
    assert found.one == pytest.approx(one, abs=1e-8)
    assert found.distances[1] == pytest.approx(gap, abs=1e-5)
    assert found.both[0] == pytest.approx(both(lambda a, b: a), abs=1e-5)
    assert found.distances[0] == pytest.approx(0.5 * both(lambda a, b: abs(a - b)), abs=1e-4)


def test_panels_are_fine_enough(monkeypatch):
    coarse = [lb.censored(lb.Pair(0.01, lam)).total_variation for lam in (1e-8, 1e-4, 1e-2)]
    monkeypatch.setattr(lb, "PANEL", 0.1)
    monkeypatch.setattr(lb, "NODES", 24)
    fine = [lb.censored(lb.Pair(0.01, lam)).total_variation for lam in (1e-8, 1e-4, 1e-2)]
    assert coarse == pytest.approx(fine, rel=1e-4)


@pytest.mark.parametrize("branches", [lb.printed_branches, lb.mended_branches])
def test_couplings_have_exact_margins(branches):
    # A wide pair, so that the refused and the left-over rows are many.
    P, Q, carried = lb.couple(WIDE, 50_000, np.random.default_rng(2), branches)
    assert 0.1 < carried.mean() < 0.9
    for rows, mean in ((P, 0.0), (Q, WIDE.eps)):
        z, w = (rows[:, 0] + rows[:, 1]) / lb.ROOT2, (rows[:, 0] - rows[:, 1]) / lb.ROOT2
        # Six tests in all for each coupling: 1e-4 each keeps a false alarm below 1 in 800.
        assert stats.kstest(z, stats.norm(mean, math.sqrt(WIDE.lam)).cdf).pvalue > 1e-4
        assert stats.kstest(w, stats.norm(0, 1).cdf).pvalue > 1e-4
        # z and w are independent: so is the sign of their product.
        signs = ((z - mean) * w > 0).sum()
        assert stats.binomtest(int(signs), len(z)).pvalue > 1e-4


def test_log_ratio_is_that_of_the_densities():
    pair = lb.Pair(0.1, 0.01)
    found = lb.censored(pair)
    X = np.array([[0.05, 0.02], [0.4, np.nan], [np.nan, 0.4], [np.nan, np.nan]])
    comp = lb.log_ratio(pair, X)
    p, q = pair.gaussian(False), pair.gaussian(True)
    assert comp[0] == pytest.approx(float(q.logpdf(X[0])) - float(p.logpdf(X[0])), rel=1e-9)
    assert comp[1] == comp[2]
    assert comp[3] == pytest.approx(math.log(found.none[1] / found.none[0]))


def test_the_mean_of_the_likelihood_ratio_is_one():
    # E_P[q/p] = 1 ties the densities of the patterns to their masses.
    pair, rng, n = lb.Pair(0.1, 0.01), np.random.default_rng(3), 400_000
    ratio = np.exp(lb.log_ratio(pair, lb.censor(pair.gaussian(False).sample(n, rng))))
    assert abs(ratio.mean() - 1.0) <= 4 * ratio.std() / math.sqrt(n)


def test_a_wrong_total_variation_is_noticed(monkeypatch):
    right = lb.total_variation
    monkeypatch.setattr(
        lb, "total_variation", lambda p, q: right(p, q.__class__(1.01 * q.mean, q.covariance))
    )
    assert not run_row("lower-bounds/total-variation").holds


def test_a_coupling_that_shows_what_it_moves_is_noticed(monkeypatch):
    # The printed third branch in the place of the mended one: rows in a branch then differ.
    monkeypatch.setattr(lb, "mended_branches", lb.printed_branches)
    monkeypatch.setattr(lb.couple, "__defaults__", (lb.printed_branches,))
    assert not run_row("lower-bounds/coupling").holds


def test_an_oracle_in_the_place_of_full_is_noticed(monkeypatch):
    true, last = lb.simulate, []

    def remember(truth, *args, **options):
        last[:] = [truth]
        return true(truth, *args, **options)

    class Oracle:
        @property
        def gaussian(self):
            return last[0]

    monkeypatch.setattr(lb, "simulate", remember)
    monkeypatch.setattr(lb, "full", lambda *args, **options: Oracle())
    entry = run_row("lower-bounds/separation")
    assert not entry.holds
    assert "full in 22 of 22" in entry.measured


@pytest.mark.parametrize("apart", lb.READINGS.values())
def test_the_bound_is_what_no_branch_takes(apart):
    pair, rng, n = lb.Pair(0.02 * apart, 4e-4), np.random.default_rng(4), 400_000
    first, second = lb.mended_branches(pair, pair.gaussian(False).sample(n, rng))
    left = 1.0 - (first | second).mean()
    # The bound is of first order in ε: it is met to a part ε of itself.
    assert left <= lb.bound(pair) + 4 * math.sqrt(left / n)
    assert left >= 0.8 * lb.bound(pair)


def test_on_the_line_the_density_of_q_is_the_larger_in_printed_branches():
    # λ = 0: (x, −x) has w = √2 x, and moving x by s leaves w = √2 x + s/√2, nearer to 0.
    s = 0.1
    x = np.linspace(-3.0, -s, 200)
    assert (stats.norm.pdf(lb.ROOT2 * x + s / lb.ROOT2) > stats.norm.pdf(lb.ROOT2 * x)).all()
