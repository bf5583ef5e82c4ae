"""First values of hidden cells lie in their holes, or the row that has none is named."""

import numpy as np
import pytest
from scipy.special import expit

import halfseen as hs
from halfseen.errors import ContradictionError
from halfseen.missingness.holes import SEEN, Holes, Inequalities, Scan, whole_line
from halfseen.missingness.resolve import SetTable
from halfseen.solvers.full_information.filling import cell_bounds, fill
from tests import naive

N, D, NAMES = 300, 4, ("height", "weight", "age", "dose")
SCAN = Scan(np.zeros(D), np.ones(D), np.full(D, 40.0))
LIMITS = np.random.default_rng(5).uniform(-2.0, 0.8, (N, D))
LIMITS[::7] = np.nan
V = np.array([[1.0, 0.5, 0.0, -2.0], [0, 0, 0, 0], [0, 0, 0, 0], [0.3, 0.0, 1.0, 0.0]])
OBLIQUE = np.array(
    [[1.0, 0.5, -0.3, 0.2], [0.4, -1.0, 0.6, 0.0], [0.0, 0.7, 1.0, -0.5], [-0.6, 0.2, 0.3, 1.0]]
)
RULES = {
    "sets": hs.SelfCensoring(
        [hs.at_least(0), hs.between(-1, 0.5), hs.between(-2, -1) | hs.at_least(0), hs.everything]
    ),
    "predicate": hs.SelfCensoring(hs.Predicate(lambda x: np.abs(x - 0.2) > 0.7)),
    "probability": hs.SelfCensoring(hs.Probability(lambda x: expit(2.0 * x))),
    "limits": hs.DetectionLimits(lower=-0.5, upper=[1.0, np.nan, 0.3, 2.0]),
    "limits by row": hs.DetectionLimits(lower=LIMITS, upper=1.5),
    "threshold": hs.LinearThreshold(V, [0.3, 0.0, -1.0, 0.2]),
    "four thresholds": hs.LinearThreshold(OBLIQUE, [0.1, -0.2, 0.3, 0.0]),
    "larger of two": hs.LinearThreshold.larger_of(0, 2, D),
    "winner": hs.SelfSelection(),
    "losers win": hs.SelfSelection([[3, 0], [1, 2]], largest=False),
    "boxes": hs.Combined(
        [([2, 0], hs.SelfSelection()), ([3], hs.DetectionLimits(lower=LIMITS[:, :1]))]
    ),
    "parts": hs.Combined([
        ([3], hs.DetectionLimits(lower=0.1, upper=0.9)),
        ([2, 0], hs.LinearThreshold(-np.eye(2), 0)),
        ([1], hs.SelfCensoring(hs.Probability(lambda x: expit(-x)))),
    ]),
    "two thresholds": hs.Combined(
        [
            ([1, 3], hs.LinearThreshold([[1.0, -1.0], [0.5, 1.0]], [0.2, 0.1])),
            ([2, 0], hs.LinearThreshold.larger_of(0, 1, 2)),
        ]
    ),
}  # fmt: skip


@pytest.fixture(params=RULES.values(), ids=RULES.keys())
def rule(request):
    return request.param


def _hide(rule, seed=3):
    Y = np.random.default_rng(seed).normal(size=(N, D))
    return np.where(rule.seen(Y, seed), Y, np.nan)


def _filled(X, holes, seed=0, chain=0, mean=None, n_jobs=None):
    Y = X.copy()
    fill(Y, holes, np.zeros(D) if mean is None else mean, np.ones(D), seed, NAMES, chain, n_jobs)
    return Y


@pytest.mark.parametrize("chain", [0, 1])
def test_filled_rows_lie_in_their_holes(rule, chain):
    X = _hide(rule)
    holes = rule.holes(X, SCAN)
    Y = _filled(X, holes, chain=chain)
    np.testing.assert_array_equal(Y[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(Y).all()
    assert naive.outside_holes(holes, Y).max() < 1e-14


@pytest.mark.parametrize("chain", [0, 1])
def test_a_start_that_is_far_off_is_no_obstacle(rule, chain):
    # Hidden cells are drawn around a mean that is ten standard deviations away.
    X = _hide(rule, 4)
    holes = rule.holes(X, SCAN)
    Y = _filled(X, holes, chain=chain, mean=np.array([10.0, -10.0, 10.0, -10.0]))
    assert naive.outside_holes(holes, Y).max() < 1e-13


def test_cells_missing_at_random_are_filled_too(rule):
    X = _hide(rule)
    mask = np.random.default_rng(6).random(X.shape) < 0.3
    X[mask] = np.nan
    holes = rule.holes(X, SCAN).with_missing_at_random(mask)
    Y = _filled(X, holes)
    assert np.isfinite(Y).all()
    assert naive.outside_holes(holes, Y).max() < 1e-14


def test_intervals_of_a_table_are_filled():
    rng = np.random.default_rng(7)
    Y = rng.normal(size=(N, D))
    lower, upper = Y - rng.exponential(size=Y.shape), Y + rng.exponential(size=Y.shape)
    lower[rng.random(Y.shape) < 0.2] = -np.inf
    upper[rng.random(Y.shape) < 0.2] = np.inf
    seen = rng.random(Y.shape) < 0.3
    lower[seen] = upper[seen] = Y[seen]
    # Intervals 40 standard deviations away, and of a billionth.
    lower[0], upper[0] = [40.0, -41.0, 0.5, 39.0], [np.inf, -40.0, 0.5 + 1e-9, 39.0 + 1e-6]
    data = hs.IntervalData(lower, upper)
    filled = _filled(data.values, data.holes())
    assert naive.outside_holes(data.holes(), filled).max() < 1e-14
    np.testing.assert_array_equal(filled[1:][seen[1:]], Y[1:][seen[1:]])


def test_chains_start_at_different_ends():
    rule = hs.SelfCensoring(hs.between(-1.0, 1.0))
    X = _hide(rule)
    hidden = np.isnan(X)
    low, high = (_filled(X, rule.holes(X, SCAN), chain=k) for k in (0, 1))
    assert (low[hidden] < -1.0).all()
    assert (high[hidden] > 1.0).all()


def test_without_inequalities_cells_have_their_own_distribution():
    # The mean of a standard normal below 0 is −√(2/π), its variance 1 − 2/π; 5 standard errors.
    rule = hs.DetectionLimits(lower=0.0)
    X = np.full((5000, D), np.nan)
    Y = X.copy()
    fill(Y, rule.holes(X, SCAN), np.zeros(D), np.ones(D), 0, NAMES)
    error = np.sqrt((1.0 - 2.0 / np.pi) / Y.size)
    assert Y.mean() == pytest.approx(-np.sqrt(2.0 / np.pi), abs=5.0 * error)


def test_the_seed_says_everything(rule):
    X = _hide(rule)
    holes = rule.holes(X, SCAN)
    one = _filled(X, holes, n_jobs=1)
    np.testing.assert_array_equal(one, _filled(X, holes, n_jobs=2))
    hidden = np.isnan(X)
    assert (_filled(X, holes, seed=1)[hidden] != one[hidden]).any()


def _threshold_holes(V, b, sign, hidden):
    sign = np.array(sign, dtype=np.int8)
    index = np.where(hidden, np.arange(D), SEEN).astype(np.int32)
    bound = Inequalities(
        np.array(V, dtype=float), np.array(b, dtype=float), sign, np.zeros(len(b), dtype=np.intp)
    )
    return Holes(index, SetTable.join([whole_line()] * D), np.arange(D), bound)


def test_narrow_regions_are_found_by_a_linear_programme():
    # A slab 0.001 wide (the relaxation wants 0.05 on both sides), and a long thin wedge.
    hidden = np.array([[True, True, True, False]] * 2)
    V = [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, -1.0, 0.01, 0.0], [1.0, -1.0, -0.01, 0]]
    sign = [[1, -1, 0, 0], [0, 0, 1, -1]]
    holes = _threshold_holes(V, [2.0, 1.999, 0.0, 0.0], sign, hidden)
    Y = _filled(np.array([[np.nan, np.nan, np.nan, 0.3]] * 2), holes)
    slack = holes.inequalities.slack(Y)
    assert (slack[0, :2] > 0.0).all()
    assert (slack[1, 2:] > 0.0).all()
    assert (Y[:, 3] == 0.3).all()


def test_rows_in_long_wedges_are_filled_near_the_mean():
    # A large ball fits into this wedge only hundreds of standard deviations out.
    hidden = np.array([[True, True, True, False]])
    V = [
        [0.90013, -0.23490, 0.36686, 0.0],
        [-0.89096, 0.40695, -0.20143, 0.0],
        [-0.03262, -0.73303, 0.67941, 0.0],
        [-0.88246, 0.11107, -0.45709, 0.0],
    ]
    b = [0.55925, 0.13416, 0.70436, -0.63813]
    holes = _threshold_holes(V, b, [[1, 1, 1, 1]], hidden)
    Y = _filled(np.array([[np.nan, np.nan, np.nan, 0.3]]), holes)
    assert (holes.inequalities.slack(Y) > 0.0).all()
    # Three standard normals are seldom further than 4.5 out, nor is the wedge from them.
    assert np.linalg.norm(Y[0, :3]) < 4.5 + 4.5 + 1.0


@pytest.mark.parametrize("row", [0, 41])
def test_a_row_without_room_is_named(row):
    # y₀ + y₁ <= −1 and y₀ + y₁ >= 1.
    hidden = np.zeros((60, D), dtype=bool)
    hidden[:, :2] = True
    sign = np.zeros((60, 2))
    sign[:, 0] = 1
    sign[row, 1] = -1
    holes = _threshold_holes([[1.0, 1, 0, 0], [1.0, 1, 0, 0]], [-1.0, 1.0], sign, hidden)
    X = np.where(hidden, np.nan, 0.5)
    with pytest.raises(ContradictionError, match=rf"row {row} contradicts.*\(height, weight\)"):
        _filled(X, holes)


def test_a_threshold_that_contradicts_a_row_is_named():
    # As a user meets it: x₁ is shown iff x₀ <= 0, x₂ iff x₀ >= 0, x₀ never. A row that hides both has no
    # x₀; no seen value says so, only the hidden one.
    rule = hs.LinearThreshold(
        [[0.0, 0, 0, 0], [1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 0, 0, 0]], [-1.0, 0, 0, 0]
    )
    Y = np.random.default_rng(8).normal(size=(50, D))
    X = np.where(rule.seen(Y), Y, np.nan)
    X[17, 1:3] = np.nan
    rule.check(X, NAMES)
    with pytest.raises(ContradictionError, match="row 17 contradicts the thresholds"):
        _filled(X, rule.holes(X, SCAN))
    # Unless one of them is missing for another reason.
    mask = np.zeros(X.shape, dtype=bool)
    mask[17, 2] = True
    holes = rule.holes(X, SCAN).with_missing_at_random(mask)
    assert naive.outside_holes(holes, _filled(X, holes)).max() == 0.0


def test_bounds_of_cells():
    rule = hs.SelfCensoring([hs.between(-1, 0.5), hs.at_least(0), hs.between(0, 1) | hs.between(2, 3),
                             hs.Probability(expit)])  # fmt: skip
    X = np.array([[np.nan, np.nan, np.nan, np.nan], [0.0, 1.0, 2.5, 0.0]])
    lower, upper = cell_bounds(rule.holes(X, SCAN))
    np.testing.assert_array_equal(lower[0], [-np.inf, -np.inf, -np.inf, -np.inf])
    np.testing.assert_array_equal(upper[0], [np.inf, 0.0, np.inf, np.inf])
    data = hs.IntervalData([[1.0, -np.inf]], [[2.0, 3.0]])
    lower, upper = cell_bounds(data.holes())
    np.testing.assert_array_equal(lower, [[1.0, -np.inf]])
    np.testing.assert_array_equal(upper, [[2.0, 3.0]])
