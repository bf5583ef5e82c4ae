"""Sensitivity: refits under other assumptions, what is said of them, and bounds."""

import numpy as np
import pytest
from scipy import stats

import halfseen as hs

LIMITS = np.array([1.5, 1.2])
TRUTH = hs.Gaussian([2.0, 1.6], [[1.0, 0.6], [0.6, 1.0]])


def _fit(n=400, lost=0.0, seed=0, **options):
    rule = hs.DetectionLimits(lower=LIMITS)
    X = hs.simulate(TRUTH, rule, n, seed)
    if lost:
        X[np.random.default_rng(seed).random(X.shape) < lost] = np.nan
    names = ["lead", "zinc"]
    return X, hs.fit(X, rule, names=names, random_state=0, n_jobs=1, **options), rule


@pytest.fixture(scope="module")
def studied():
    X, fit, rule = _fit()
    return X, fit, rule, fit.sensitivity()


def test_at_no_loss_and_factor_one_nothing_moves(studied):
    _, fit, _, found = studied
    for one in (found.by_share[0], found.by_factor[list(found.factors).index(1.0)]):
        # Both climbs end within 1e-11 of the top: √(2e-11) standard errors, some 0.05.
        np.testing.assert_allclose(one.gaussian.mean, fit.mean, atol=1e-5)
        np.testing.assert_allclose(one.gaussian.covariance, fit.covariance, atol=1e-5)


def test_a_share_of_hidden_cells_is_a_loss_by_column(studied):
    X, _, rule, found = studied
    hidden, seen = np.isnan(X).sum(axis=0), (~np.isnan(X)).sum(axis=0)
    epsilon = 0.3 * hidden / (seen + 0.3 * hidden)
    ref = hs.fit(X, rule, loss=list(epsilon), random_state=0, n_jobs=1)
    comp = found.by_share[list(found.shares).index(0.3)]
    np.testing.assert_allclose(comp.gaussian.mean, ref.mean, atol=1e-5)
    np.testing.assert_allclose(comp.mean, ref.standard_errors.mean, rtol=1e-4)


@pytest.mark.parametrize("transforms", [None, "log"])
def test_a_factor_moves_the_limits_of_hidden_cells(transforms):
    X, _, rule = _fit()
    X = np.where(X > 0.0, X, np.nan)
    fit = hs.fit(X, rule, transforms=transforms, random_state=0, n_jobs=1)
    found = fit.sensitivity(shares=(0.0, 0.1), factors=(0.6, 1.0, 1.8))
    hidden = np.isnan(X)
    for factor, comp in zip(found.factors, found.by_factor, strict=True):
        intervals = hs.IntervalData(
            np.where(hidden, -np.inf if transforms is None else 0.0, X),
            np.where(hidden, factor * LIMITS, X),
        )
        ref = hs.fit(intervals, transforms=transforms, random_state=0, n_jobs=1)
        np.testing.assert_allclose(comp.gaussian.mean, ref.mean, atol=1e-5)
        np.testing.assert_allclose(comp.gaussian.covariance, ref.covariance, atol=1e-5)


def test_moves_and_bounds_are_those_of_the_refits(studied):
    _, fit, _, found = studied
    move = found.moves("share")[1]
    assert move.name == "mean of zinc"
    values = np.array([one.gaussian.mean[1] for one in found.by_share])
    np.testing.assert_array_equal(move.values, values)
    np.testing.assert_allclose(
        move.in_errors, (values - fit.mean[1]) / fit.standard_errors.mean[1], rtol=1e-9
    )
    bounds = found.bounds(share=0.2)
    used = [one.intervals(0.95).mean for one in found.by_share[:3]]
    np.testing.assert_allclose(bounds.mean.lower, np.min([one.lower for one in used], axis=0))
    np.testing.assert_allclose(bounds.mean.upper, np.max([one.upper for one in used], axis=0))
    # Between two shares, linearly.
    ends = [one.intervals(0.95).correlation.upper[0, 1] for one in found.by_share[:3]]
    middle = max(*ends[:2], 0.5 * (ends[1] + ends[2]))
    assert found.bounds(share=0.15).correlation.upper[0, 1] == pytest.approx(middle)
    wide = found.bounds(factors=(0.5, 2.0))
    assert (wide.mean.lower <= fit.confidence_interval(kind="wald").mean.lower + 1e-4).all()


def test_sentences_say_where_things_end(studied):
    _, fit, _, found = studied
    text = found.sentences()
    assert any("sign of the correlation of lead and zinc holds up to a share of" in s for s in text)
    line = next(s for s in text if s.startswith("The mean of lead stays") and "share" in s)
    told = float(line.split("share of ")[1].split(" %")[0]) / 100.0
    low, high = fit.confidence_interval(kind="wald").mean
    inside = [
        share
        for share, one in zip(found.shares, found.by_share, strict=True)
        if low[0] <= one.gaussian.mean[0] <= high[0]
    ]
    # Within the step in which the mean leaves its interval.
    assert max(inside) - 0.005 <= told <= max(inside) + 0.105


def test_a_sign_that_turns_is_said():
    # Blanks in both columns of the same rows look like a correlation, if the rule hid them.
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([2.0, 2.0], [[1.0, -0.25], [-0.25, 1.0]], 400)
    X[X < 0.5] = np.nan
    X[:60] = np.nan
    fit = hs.fit(X, hs.DetectionLimits(lower=0.5), random_state=0, n_jobs=1)
    assert fit.correlation[0, 1] > 0.0
    found = fit.sensitivity(shares=np.linspace(0.0, 0.9, 7), factors=(0.9, 1.1))
    line = found.sentences()[0]
    assert "the most looked at" not in line
    told = float(line.split("share of ")[1].split(" %")[0]) / 100.0
    values = found.moves()[-1].values
    k = int(np.flatnonzero(values < 0.0)[0])
    assert found.shares[k - 1] - 0.005 <= told <= found.shares[k] + 0.005


def test_bounds_hold_the_truth_where_the_stated_share_was_lost():
    # 30 % of the hidden cells were lost: of 30 % and 35 % below limits, as many as 0.3/0.7 of them.
    below = stats.norm.cdf(LIMITS, TRUTH.mean, 1.0)
    share = 0.3 / 0.7 * below / (1.0 - below)
    held, plain = [], []
    for seed in range(12):
        rule = hs.DetectionLimits(lower=LIMITS)
        X = hs.simulate(TRUTH, rule, 300, seed)
        X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
        fit = hs.fit(X, rule, random_state=0, n_jobs=1)
        found = fit.sensitivity(shares=(0.0, 0.15, 0.3), factors=(0.9, 1.1)).bounds(share=0.3)
        for limits, out in ((found.mean, held), (fit.confidence_interval(kind="wald").mean, plain)):
            out.append((limits.lower <= TRUTH.mean) & (limits.upper >= TRUTH.mean))
    # Each of 24 is held with 95 % or more: fewer than 20 have a probability of 0.2 %.
    assert np.sum(held) >= 20
    assert np.sum(plain) < 20


def test_what_cannot_be_looked_at(studied):
    X, fit, _, found = studied
    for given, text in (
        ({"shares": [0.1]}, "at least two numbers"),
        ({"shares": [0.0, 1.0]}, "below 1"),
        ({"factors": [0.0, 1.0]}, "must be positive"),
    ):
        with pytest.raises(hs.errors.InputError, match=text):
            fit.sensitivity(**given)
    with pytest.raises(hs.errors.InputError, match="give one of them"):
        found.bounds()
    with pytest.raises(hs.errors.InputError, match=r"between 0 and 0\.5"):
        found.bounds(share=0.7)
    with pytest.raises(hs.errors.InputError, match="share or factor"):
        found.moves("limit")
    hidden = np.isnan(X)
    marked = hs.IntervalData(np.where(hidden, -np.inf, X), np.where(hidden, LIMITS, X))
    told = hs.fit(marked, random_state=0, n_jobs=1).sensitivity(factors=(0.8, 1.25))
    assert told.by_share == ()
    with pytest.raises(hs.errors.InputError, match="say themselves why"):
        told.moves("share")
    below_zero = hs.fit(X - 5.0, hs.DetectionLimits(lower=LIMITS - 5.0), random_state=0, n_jobs=1)
    assert below_zero.sensitivity(shares=(0.0, 0.2)).by_factor == ()
    with pytest.raises(hs.errors.InputError, match="no hidden cell"):
        hs.fit(np.where(hidden, 1.0, X), random_state=0, n_jobs=1).sensitivity()


def test_the_figure_has_a_line_for_each_move(studied):
    pytest.importorskip("matplotlib")
    _, fit, _, found = studied
    for by in ("share", "factor"):
        ax = fit.plot.sensitivity(by, found)
        labels = ax.get_legend_handles_labels()[1]
        assert "mean of lead" in labels
        assert len(labels) == 6
