import math

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.data.powers import ColumnCells
from halfseen.data.transforms import Log
from halfseen.diagnostics.checked_table import column_rule
from halfseen.diagnostics.one_column import (
    HiddenByLimits,
    HiddenByRule,
    LoneColumn,
    distances,
    fit_cells,
    product_limit,
    spread_ties,
)

inf = math.inf


def naive_product_limit(limits, others):
    """P(L = c), from the top down, one cell at a time."""
    left, out = 1.0, {}
    for c in sorted(set(limits), reverse=True):
        at = sum(1 for limit in limits if limit == c)
        known = sum(1 for limit in limits if limit <= c) + sum(1 for x in others if x < c)
        out[c] = left * at / known
        left *= 1.0 - at / known
    return [out[c] for c in sorted(out)]


def test_the_product_limit_estimate_matches_a_count_by_hand():
    # Limits 2 (twice), 1; seen 3, 1.5, 0.5: h(2) = 2/(3 + 2), h(1) = 1/(1 + 1).
    found = product_limit(np.array([2.0, 1.0, 2.0]), np.array([3.0, 1.5, 0.5]))
    assert found.value.tolist() == [1.0, 2.0]
    assert found.cumulative == pytest.approx([0.3, 0.7])
    rng = np.random.default_rng(0)
    limits, others = rng.integers(0, 9, 40) / 2.0, rng.normal(3.0, 2.0, 60)
    ref = naive_product_limit(limits.tolist(), others.tolist())
    assert np.diff(product_limit(limits, others).cumulative, prepend=0.0) == pytest.approx(ref)


def test_the_product_limit_estimate_finds_the_limits_behind_a_column():
    rng = np.random.default_rng(1)
    n = 20_000
    x, limit = rng.normal(size=n), rng.choice([-1.0, 0.0, 0.5], n, p=[0.2, 0.5, 0.3])
    hidden = x < limit
    found = product_limit(limit[hidden], x[~hidden])
    # Shares of limits among n/2 cells or so: standard errors below √(0.25/10 000) = 0.005, a little
    # more for the lower ones, which are known through the upper ones.
    assert np.diff(found.cumulative, prepend=0.0) == pytest.approx([0.2, 0.5, 0.3], abs=0.025)


def test_a_single_limit_belongs_to_every_cell():
    x = np.random.default_rng(2).normal(size=50)
    x[0] = 0.1
    found = product_limit(np.full((x < 0.1).sum(), 0.1), x[x >= 0.1])
    # Also with a value seen exactly on it.
    assert found.cumulative.tolist() == [1.0]


@pytest.mark.parametrize(
    "rule",
    [
        hs.DetectionLimits(lower=-0.2, upper=1.0),
        hs.SelfCensoring(hs.between(-1, 0) | hs.at_least(0.5)),
        hs.SelfCensoring(hs.Predicate(lambda x: np.abs(x) < 0.7)),
        hs.DetectionLimits(lower=np.tile([-0.5, 0.0, np.nan, 0.4], 25)[:, None]),
    ],
)
def test_a_rule_hides_as_it_does_elsewhere(rule):
    x = np.random.default_rng(3).normal(size=100)
    column = column_rule(rule, 0)
    hiding = HiddenByRule.of(column, np.arange(100), 0.0, 1.0)
    seen = rule.seen(x[:, None])[:, 0]
    assert (hiding.shows(x) == seen).all()
    cells = hiding.hide(x, np.random.default_rng(0))
    assert (cells.values == x[seen]).all()
    assert cells.hidden == (~seen).sum()
    # Each hidden value lies in a set that has a cell for it.
    for s in np.flatnonzero(cells.count):
        rows = np.flatnonzero(~seen & (hiding.group == s))
        pieces = range(cells.start[s], cells.start[s + 1])
        inside = [any(cells.lower[k] < x[r] < cells.upper[k] for k in pieces) for r in rows]
        assert len(rows) == cells.count[s]
        assert all(inside)


def test_limits_on_both_sides_and_bins_come_back():
    rng = np.random.default_rng(4)
    x = rng.normal(size=4000)
    lower, upper = x.copy(), x.copy()
    low, high, middle = x < -1.0, x > 1.5, (x > 0.0) & (x < 0.5) & (rng.random(4000) < 0.4)
    lower[low], upper[low] = -inf, -1.0
    lower[high], upper[high] = 1.5, inf
    lower[middle], upper[middle] = 0.0, 0.5
    hiding = HiddenByLimits.of(lower, upper)
    again = hiding.hide(rng.normal(size=4000), rng)
    sets = {(a, b): c for a, b, c in zip(again.lower, again.upper, again.count, strict=True)}
    assert set(sets) == {(-inf, -1.0), (1.5, inf), (0.0, 0.5)}
    # Binomial counts of 4 000: five standard errors, the share of the bin being estimated itself.
    for key, share in {
        (-inf, -1.0): stats.norm.cdf(-1.0),
        (1.5, inf): stats.norm.sf(1.5),
        (0.0, 0.5): 0.4 * (stats.norm.cdf(0.5) - 0.5),
    }.items():
        assert sets[key] / 4000 == pytest.approx(share, abs=5 * math.sqrt(2 * share / 4000))


def test_many_intervals_are_taken_for_roundings():
    rng = np.random.default_rng(5)
    x, width = rng.normal(size=300), rng.uniform(0.1, 0.5, 300)
    left = x - width * rng.random(300)
    hiding = HiddenByLimits.of(left, left + width)
    new = rng.normal(size=300)
    cells = hiding.hide(new, rng)
    assert cells.values.size == 0
    assert cells.hidden == 300
    assert np.isin(np.round(cells.upper - cells.lower, 9), np.round(width, 9)).all()


def test_scales_move_values_and_limits_together():
    x = np.exp(np.random.default_rng(6).normal(size=80))
    rule = column_rule(hs.DetectionLimits(lower=0.8), 0)
    hiding = HiddenByRule.of(rule, np.arange(80), 1.0, 1.0)
    column = LoneColumn(hiding.cells(x, x >= 0.8), hiding).on(Log())
    assert column.cells.upper.tolist() == [math.log(0.8)]
    assert column.hiding.lower.tolist() == [[math.log(0.8)]]
    units, centre, scale = column.standardised()
    assert units.cells.values == pytest.approx((np.log(x[x >= 0.8]) - centre) / scale)
    assert (units.cells.values.mean(), units.cells.values.std()) == pytest.approx((0.0, 1.0))


def test_fits_and_distances_of_a_complete_column_are_the_textbook_ones():
    x = np.random.default_rng(7).normal(3.0, 2.0, size=60)
    z = (x - x.mean()) / x.std()
    cells = ColumnCells.from_ends(z, z)
    marginal = fit_cells(cells)
    assert marginal[:2] == pytest.approx((0.0, 1.0), abs=1e-9)
    found = distances(cells, marginal, np.array([0.5]))
    p = np.sort(stats.norm.cdf(z))
    i = np.arange(1, 61)
    ref = -60 - ((2 * i - 1) * (np.log(p) + np.log1p(-p[::-1]))).mean()
    assert found.square == pytest.approx(ref)


def test_ties_are_spread_over_the_interval_they_come_from():
    x = np.array([1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0])
    assert spread_ties(x)[1:5] == pytest.approx([1.625, 1.875, 2.125, 2.375])
    rng = np.random.default_rng(8)
    y = rng.normal(size=500)
    rounded = np.round(y * 4) / 4
    spread = spread_ties(rounded)
    # Only in the tails, where a neighbour of the grid is missing, a value may go further.
    assert np.mean(np.abs(spread - rounded) <= 0.125) > 0.97
    # Where the step of the grid changes, each side has its own.
    steps = np.repeat([0.8, 0.9, 1.0, 2.0, 3.0], 10)
    ones = spread_ties(steps)[20:30]
    assert ones.min() == pytest.approx(0.95 + 0.55 / 20)
    assert ones.max() == pytest.approx(1.5 - 0.55 / 20)
    assert np.unique(spread).size > 0.99 * 500
    # A pile among single values stays where it is.
    piled = np.concatenate([y, np.full(50, 0.4)])
    assert np.ptp(spread_ties(piled)[500:]) < 0.02
    assert (spread_ties(y) == y).all()
    assert (spread_ties(np.array([0.1, 0.1, 0.9, 0.9, 1.5])) > 0).all()


def test_bins_next_to_each_other_have_their_limits_in_every_cell():
    edges = np.array([-inf, 0.0, 1.0, inf])
    place = np.random.default_rng(9).integers(0, 3, 60)
    hiding = HiddenByLimits.of(edges[place], edges[place + 1])
    assert hiding.below.cumulative.tolist() == hiding.above.cumulative.tolist() == [1.0]
    assert hiding.share.tolist() == [1.0]
