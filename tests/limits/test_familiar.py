"""Kaplan–Meier and regression on order statistics, against published values and plain loops."""

import numpy as np
import pytest
from scipy import stats

from halfseen.data.transforms import Identity, Log
from halfseen.limits.lone import kaplan_meier, order_statistics

# Arsenic in streams of Oahu (Helsel, Nondetects and Data Analysis, 2005; data set Oahu of R's NADA).
SEEN = np.array([0.5, 0.5, 0.5, 0.6, 0.7, 0.7, 0.9, 1.5, 1.7, 2.8, 3.2])
LIMITS = np.array([0.9, *[1.0] * 4, *[2.0] * 8])


def test_published_means_of_arsenic():
    """NADA's cenfit has a mean of 0.949, and cenros 0.972 with a deviation of 0.718."""
    assert kaplan_meier(SEEN, LIMITS).mean == pytest.approx(0.949, abs=5e-4)
    line = order_statistics(SEEN, LIMITS, Log())
    assert line.mean == pytest.approx(0.972, abs=5e-4)
    assert line.deviation == pytest.approx(0.718, abs=5e-4)


def product_limit(seen, limits):
    """Mean and Greenwood's error, step by step from the largest value down."""
    last = min([*seen, *limits])
    cells = [(x, True) for x in seen] + [(c, c == last) for c in limits]
    share, steps = 1.0, []
    for x in sorted({x for x, event in cells if event}, reverse=True):
        at_risk = sum(1 for y, _ in cells if y <= x)
        events = sum(1 for y, event in cells if event and y == x)
        steps.append((x, share, share * (1.0 - events / at_risk), at_risk, events))
        share = steps[-1][2]
    mean = sum(x * (before - after) for x, before, after, _, _ in steps)
    square = 0.0
    for k, (_, _, _, at_risk, events) in enumerate(steps[:-1]):
        area = sum((steps[j][0] - steps[j + 1][0]) * steps[j][2] for j in range(k, len(steps) - 1))
        square += area**2 * events / (at_risk * (at_risk - events))
    m = len(seen)
    return mean, np.sqrt(square * m / (m - 1.0))


@pytest.mark.parametrize("seed", range(6))
def test_the_product_limit_step_by_step(seed):
    rng = np.random.default_rng(seed)
    x = np.round(np.exp(rng.normal(size=25)), 1)
    c = np.round(np.exp(rng.normal(size=25) - 0.5), 1)
    seen, limits = x[x >= c], c[x < c]
    mean, error = product_limit(seen.tolist(), limits.tolist())
    found = kaplan_meier(seen, limits)
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert found.error == pytest.approx(error, rel=1e-12)


def plotting_positions(seen, limits):
    """Helsel and Cohn's positions of seen and hidden values, limit by limit."""
    ends = [-np.inf, *sorted(set(limits)), np.inf]
    beyond = [0.0] * len(ends)
    beyond[0] = 1.0
    for k in range(len(ends) - 2, 0, -1):
        between = sum(ends[k] <= x < ends[k + 1] for x in seen)
        below = sum(x < ends[k] for x in seen) + sum(c <= ends[k] for c in limits)
        beyond[k] = beyond[k + 1] + between / (between + below) * (1.0 - beyond[k + 1])
    above, under = [], []
    for k in range(len(ends) - 1):
        group = sorted(x for x in seen if ends[k] <= x < ends[k + 1])
        for i, x in enumerate(group, 1):
            share = i / (len(group) + 1) * (beyond[k] - beyond[k + 1])
            above.append((x, 1.0 - beyond[k] + share))
        held = sum(c == ends[k] for c in limits)
        under += [i / (held + 1) * (1.0 - beyond[k]) for i in range(1, held + 1)]
    return above, under


@pytest.mark.parametrize("seed", range(4))
def test_plotting_positions_limit_by_limit(seed):
    rng = np.random.default_rng(seed)
    x = np.round(np.exp(rng.normal(size=30)), 1) + 0.1
    c = rng.choice([0.4, 0.9, 1.5], 30)
    seen, limits = x[x >= c], c[x < c]
    above, under = plotting_positions(seen.tolist(), limits.tolist())
    line = stats.linregress(stats.norm.ppf([p for _, p in above]), np.log([x for x, _ in above]))
    filled = np.exp(line.intercept + line.slope * stats.norm.ppf(under))
    everything = np.concatenate([seen, filled])
    found = order_statistics(seen, limits, Log())
    assert found.mean == pytest.approx(everything.mean(), rel=1e-10)
    assert found.deviation == pytest.approx(everything.std(ddof=1), rel=1e-10)


def test_of_complete_columns_it_is_student():
    x = np.random.default_rng(0).normal(size=12)
    found = kaplan_meier(x, np.empty(0))
    assert found.mean == pytest.approx(x.mean())
    assert found.error == pytest.approx(x.std(ddof=1) / np.sqrt(12))
    upper = x.mean() + stats.t.ppf(0.95, 11) * x.std(ddof=1) / np.sqrt(12)
    assert found.limit(0.95) == pytest.approx(upper)
    line = order_statistics(x, np.empty(0), Identity())
    assert (line.mean, line.deviation) == pytest.approx((x.mean(), x.std(ddof=1)))


def test_no_line_through_one_value():
    assert order_statistics(np.array([1.0, 1.0]), np.array([2.0]), Log()) is None
