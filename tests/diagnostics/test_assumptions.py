import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.diagnostics import Share


def test_shares_have_clopper_pearson_intervals():
    share = Share.of(7, 40)
    ref = stats.binomtest(7, 40).proportion_ci(0.95, "exact")
    assert (share.lower, share.upper) == pytest.approx((ref.low, ref.high))
    assert Share.of(0, 10).lower == 0.0
    assert Share.of(10, 10).upper == 1.0


def test_the_rarest_subset_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    X[rng.random(X.shape) < [0.1, 0.5, 0.0, 0.4, 0.2]] = np.nan
    rule = hs.SelfCensoring(hs.Probability(lambda x: np.full_like(x, 0.5)))
    found = hs.diagnose(X, rule)
    assert found.subset == ("x1", "x3")
    assert found.subset_size == 2
    assert found.every_subset
    seen = ~np.isnan(X)
    assert found.alpha.value == (seen[:, 1] & seen[:, 3]).mean()
    assert found.anchors == ("x2",)


def test_many_subsets_are_sampled():
    X = np.random.default_rng(0).normal(size=(50, 30))
    rule = hs.LinearThreshold(np.zeros((30, 30)), 0.0)
    found = hs.diagnose(X, rule, beta=0.2)
    assert found.subset_size == 6
    assert not found.every_subset


def test_constants_of_linear_thresholds():
    truth = hs.Gaussian([0.0, 0.0, 0.0], np.diag([1.0, 4.0, 1.0]))
    # x1 hangs on the anchor x0 alone; x2 on an independent coin, x2 itself.
    rule = hs.LinearThreshold([[0, 0, 0], [1, 0, 0], [0, 0, 1]], [0.0, 0.0, stats.norm.ppf(0.8)])
    X = hs.simulate(truth, rule, 4000, 0)
    found = hs.diagnose(X, rule, covariance=truth.covariance, mean=truth.mean)
    assert found.anchors == ("x0",)
    # Given x0, x1 is settled and x2 is hidden with probability 0.2: γ = 0.2, the least of 200
    # estimates from 2 000 draws each.
    assert found.gamma == pytest.approx(0.2, abs=5 * np.sqrt(0.16 / 2000))
    rare = hs.LinearThreshold(rule.V, [0.0, 0.0, stats.norm.isf(1e-7)])
    seen = X[~np.isnan(X).any(axis=1)]
    tiny = hs.diagnose(seen, rare, covariance=truth.covariance, mean=truth.mean)
    assert tiny.gamma == pytest.approx(1e-7, rel=1e-3)
    assert found.strong_convexity == pytest.approx(found.alpha.value / 3 / 4)
    assert found.start_distance == pytest.approx(np.sqrt(2 * 4 * 3 * np.log(1 / found.alpha.value)))
    text = str(found)
    for word in ("alpha", "anchors: x0", "gamma", "strong convexity", "at most"):
        assert word in text
    assert hs.diagnose(X, rule).gamma is None


def test_bad_input_is_named():
    with pytest.raises(hs.InputError, match="row 0, column x0: the value is inf"):
        hs.diagnose([[np.inf], [2.0]], hs.DetectionLimits(lower=1.5))
    with pytest.raises(hs.InputError, match="must be a rule"):
        hs.diagnose([[1.0], [2.0]], "at least 1.5")


@pytest.mark.parametrize("limit", [0.0, 1.2816, 2.3263])
def test_the_bias_of_the_start_is_bounded(limit):
    truth = hs.Gaussian([0.0], [[1.0]])
    rule = hs.LinearThreshold([[-1.0]], [-limit])
    X = hs.simulate(truth, rule, 200_000, 0)
    found = hs.diagnose(X, rule, covariance=[[1.0]])
    # The mean of a half-line, reached with 2 000 values or more.
    assert 0.5 * found.start_distance < hs.solvers.initialize(X)[0] < found.start_distance
