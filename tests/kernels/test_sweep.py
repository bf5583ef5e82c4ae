"""Gibbs sweeps against a slow one on the same uniforms, and against the truth."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import halfseen as hs
from halfseen.kernels import sweep as kernel
from halfseen.missingness.holes import SEEN, Holes, Inequalities, Scan
from halfseen.missingness.resolve import SetTable, resolve, union_of_intervals
from halfseen.solvers.full_information.completion import (
    Completion,
    make_block,
    slide_factor,
)
from tests import naive

INF = math.inf
MEAN = np.array([0.3, -0.5, 1.0, 0.0])
COVARIANCE = np.array(
    [[1.0, 0.6, -0.3, 0.2], [0.6, 2.0, 0.5, -0.4], [-0.3, 0.5, 1.5, 0.3], [0.2, -0.4, 0.3, 0.8]]
)
# Sets around a value y, by name. Those 30 standard deviations away hold a value that is as far.
AROUND = {
    "interval": lambda y: [(y - 0.7, y + 0.4)],
    "wide interval": lambda y: [(y - 9.0, y + 6.0)],
    "above": lambda y: [(y - 0.3, INF)],
    "below": lambda y: [(-INF, y + 0.3)],
    "whole line": lambda y: [(-INF, INF)],
    "narrow": lambda y: [(y - 1e-5, y + 2e-5)],
    "very narrow": lambda y: [(y - 1e-9, y + 2e-9)],
    "union": lambda y: [(y - 5.0, y - 1.5), (y - 0.5, y + 0.1), (y + 0.6, y + 0.7)],
    "two sides": lambda y: [(-INF, y + 0.2), (y + 1.0, INF)],
    "gap around": lambda y: [(-INF, y - 2.0), (y - 0.1, INF)],
    "far above": lambda y: [(y - 0.01, INF)],
    "far interval": lambda y: [(y - 0.5, y + 0.3)],
    "far and narrow": lambda y: [(y - 1e-6, y + 1e-6)],
    "far below": lambda y: [(-INF, -y + 0.02)],
    "far union": lambda y: [(-INF, -y), (y, INF)],
}
INTERVALS = [
    (-0.5, 2.0), (0.0, 0.101), (0.0, 0.099), (3.0, 3.0 + 1e-9), (-1e-3, 2e-3), (-9.0, INF),
    (-4.0, 7.0), (5.0, 6.0), (30.0, INF), (30.0, 30.2), (-30.2, -30.0), (34.9, 36.0), (35.1, INF),
    (-INF, -34.9), (-INF, -40.0), (-40.0, 3.0), (40.0, 40.001),
]  # fmt: skip


def _table(pieces):
    return union_of_intervals(*(np.array(ends, dtype=float) for ends in zip(*pieces, strict=True)))


def _probability():
    """Nodes and weights of being hidden, for a value that is shown with probability 1/(1 + e^-2x)."""
    return resolve(hs.Probability(lambda x: expit(2.0 * x)), 0.0, 1.5, 12.0).complement()


def _holes(Y, cells, inequalities=None):
    """Holes of a table in which ``cells`` has, by row and column, intervals, a table, or nothing."""
    index = np.full(Y.shape, SEEN, dtype=np.int32)
    tables, columns = [], []
    for (row, column), given in cells.items():
        index[row, column] = len(tables)
        tables.append(given if isinstance(given, SetTable) else _table(given))
        columns.append(column)
    return Holes(index, SetTable.join(tables), np.array(columns), inequalities)


def _naive_sets(Y, cells):
    rows = [[None] * Y.shape[1] for _ in Y]
    for (row, column), given in cells.items():
        rows[row][column] = (given.node, given.weight) if isinstance(given, SetTable) else given
    return rows


def _no_inequalities(Y):
    none = np.empty((len(Y), 0), dtype=np.int8)
    return Inequalities(np.empty((0, Y.shape[1])), np.empty(0), none, np.empty(0, dtype=np.intp))


class _Fast:
    """A block of rows, and what the kernels keep up to date with it."""

    def __init__(self, Y, cells, inequalities=None):
        self.Y, self.P = Y.copy(), np.linalg.inv(COVARIANCE)
        self.holes = _holes(Y, cells, inequalities)
        self.cells = make_block(self.holes, slice(0, len(Y))).cells
        self.Z = Y - MEAN
        self.R, self.W = self.Z @ self.P, self.Z @ self.cells.V
        self.level = self.cells.b - MEAN @ self.cells.V
        self.E, self.variance = self.Z.copy(), np.zeros(Y.shape[1])

    def sweep(self, uniforms, backwards):
        listed = np.empty(self.cells.row.size)
        kernel.get(uniforms, self.cells, listed)
        kernel.sweep(
            self.Y, self.Z, self.R, self.E, self.W, self.level, MEAN, self.P, self.cells, listed,
            backwards, self.variance,
        )  # fmt: skip
        self._check()

    def slide(self, direction, uniforms):
        kernel.slide(
            self.Y, self.Z, self.R, self.W, self.level, MEAN, self.P, self.holes.index, self.cells,
            direction, uniforms,
        )  # fmt: skip
        self._check()

    def _check(self):
        # What is kept up to date is that of the rows as they are.
        np.testing.assert_allclose(self.Z, self.Y - MEAN, rtol=0, atol=1e-12)
        np.testing.assert_allclose(self.R, self.Z @ self.P, rtol=0, atol=1e-11)
        np.testing.assert_allclose(self.W, self.Z @ self.cells.V, rtol=0, atol=1e-11)


def _both(Y, cells, backwards, inequalities=None, seed=0):
    """(rows, conditional means, variances by column) of the slow sweep and of the compiled one."""
    uniforms = np.random.default_rng(seed).uniform(size=Y.shape)
    bound = inequalities or _no_inequalities(Y)
    slow = Y.copy()
    E, variance = naive.gibbs_sweep(
        slow, _naive_sets(Y, cells), MEAN, COVARIANCE, uniforms, backwards, bound.V, bound.b,
        bound.sign,
    )  # fmt: skip
    fast = _Fast(Y, cells, inequalities)
    fast.sweep(uniforms, backwards)
    return (slow, E, variance.sum(axis=0)), (fast.Y, fast.E + MEAN, fast.variance)


def _agree(ref, comp, tolerance=1e-8):
    for one, other in zip(ref, comp, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=tolerance)


def _rows(n, seed, far=False):
    rng = np.random.default_rng(seed)
    Y = rng.multivariate_normal(MEAN, COVARIANCE, n)
    if far:
        # One cell of each row, so that the others are pulled along.
        Y[np.arange(n), rng.integers(4, size=n)] = rng.uniform(28.0, 32.0, n)
    return Y


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", AROUND)
def test_a_sweep_is_that_of_plain_loops(name, backwards):
    Y = _rows(4, 11)
    if name.startswith("far"):
        Y[:, 1] = [28.0, 30.0, 31.0, 29.0]
        hidden = [(r, 1) for r in range(4)] + [(r, 3) for r in range(4)]
        cells = {(r, c): AROUND[name if c == 1 else "whole line"](Y[r, c]) for r, c in hidden}
    else:
        hidden = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 2), (2, 0), (2, 3), (3, 1), (3, 3)]
        cells = {(r, c): AROUND[name](Y[r, c]) for r, c in hidden}
    ref, comp = _both(Y, cells, backwards, seed=3)
    _agree(ref, comp)
    moved = np.zeros(Y.shape, dtype=bool)
    moved[tuple(zip(*hidden, strict=True))] = True
    np.testing.assert_array_equal(comp[0][~moved], Y[~moved])
    assert (comp[0][moved] != Y[moved]).all()


def _mixture(seed, n=24, far=False):
    """Rows whose cells are hidden by all kinds of sets, and bound by inequalities that they keep."""
    rng = np.random.default_rng(seed)
    Y = _rows(n, seed, far)
    names = [name for name in AROUND if not name.startswith("far")]
    cells = {}
    for row, column in np.ndindex(*Y.shape):
        kind = rng.choice([*names, "seen", "seen"])
        if kind != "seen":
            cells[row, column] = AROUND[kind](Y[row, column])
    V = rng.normal(size=(3, 4))
    V[0, :2] = 0.0
    b = V @ MEAN + rng.normal(size=3)
    sign = np.where(b >= Y @ V.T, 1, -1).astype(np.int8)
    sign[rng.random(sign.shape) < 0.3] = 0
    return Y, cells, Inequalities(V, b, sign, np.zeros(3, dtype=np.intp))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("seed", "far"), [(1, False), (2, False), (3, True)])
def test_mixed_sets_and_inequalities(seed, far, backwards):
    Y, cells, bound = _mixture(seed, far=far)
    ref, comp = _both(Y, cells, backwards, bound, seed)
    _agree(ref, comp)
    assert (bound.slack(comp[0]) > -1e-12).all()


@pytest.mark.parametrize("backwards", [False, True])
def test_inequalities_alone(backwards):
    Y, _, bound = _mixture(5)
    cells = {place: [(-INF, INF)] for place in np.ndindex(*Y.shape) if sum(place) % 3}
    _agree(*_both(Y, cells, backwards, bound, 5))


@pytest.mark.parametrize("backwards", [False, True])
def test_sets_that_are_probabilities(backwards):
    Y, cells, bound = _mixture(6)
    for place in list(cells)[::2]:
        cells[place] = _probability()
    _agree(*_both(Y, cells, backwards, bound, 6))


def test_the_moments_of_a_probability_are_those_of_its_function():
    # Not of the rule alone: against quadrature of N(m, s²)·(1 − p(x)).
    Y = _rows(6, 8)
    cells = {(r, 2): _probability() for r in range(6)}
    _, (_, E, total) = _both(Y, cells, False)
    variances = []
    for r in range(6):
        m, s = naive.conditional(Y[r], 2, MEAN, COVARIANCE)
        _, one, two = naive.line_moments(m, s, [(-INF, INF)], lambda x: expit(-2.0 * x))
        assert E[r, 2] == pytest.approx(one, abs=1e-9)
        variances.append(two - one * one)
    assert total[2] == pytest.approx(sum(variances), abs=1e-8)


def test_the_moments_of_cells_are_those_of_scipy():
    Y = _rows(5, 9)
    sets = [(-0.5, 1.0), (-INF, 0.2), (0.4, INF), (3.0, 3.5), (-INF, INF)]
    cells = {(r, 1): [ends] for r, ends in enumerate(sets)}
    _, (_, E, total) = _both(Y, cells, False)
    refs = []
    for r, (low, high) in enumerate(sets):
        m, s = naive.conditional(Y[r], 1, MEAN, COVARIANCE)
        ref = stats.truncnorm((low - m) / s, (high - m) / s, m, s)
        assert E[r, 1] == pytest.approx(ref.mean(), abs=1e-9)
        refs.append(ref.var())
    assert total[1] == pytest.approx(sum(refs), abs=1e-8)


def test_the_moments_of_unions_by_quadrature():
    pieces = [(-2.0, -1.0), (0.5, 0.6), (1.5, 4.0)]
    Y = _rows(3, 10)
    _, (_, E, total) = _both(Y, {(r, 0): pieces for r in range(3)}, False)
    variances = []
    for r in range(3):
        m, s = naive.conditional(Y[r], 0, MEAN, COVARIANCE)
        _, one, two = naive.line_moments(m, s, pieces)
        assert E[r, 0] == pytest.approx(one, abs=1e-9)
        variances.append(two - one * one)
    assert total[0] == pytest.approx(sum(variances), abs=1e-8)


@pytest.mark.parametrize("b", [-34.9, -20.0, -5.0, -0.1, 0.0, 0.7, 3.0, 8.0, 38.0])
def test_draws_below_a_limit_match_mpmath(b):
    _, mean, variance = naive.mp_interval_moments(-INF, b)
    for u in (2.0**-53, 1e-9, 0.2, 0.5, 0.9, 1.0 - 1e-9, 1.0 - 2.0**-53):
        z, comp_mean, comp_variance = kernel.below(b, u)
        ref = float(naive.mp_inverse_cdf(-INF, b, u))
        # u·Φ(b) is rounded by up to 2^-53, and a draw by that over its density.
        rounding = min(2.0**-52 / naive.pdf(ref, 0.0, 1.0), 0.5) if ref > 0.0 else 0.0
        assert z == pytest.approx(ref, rel=1e-11, abs=1e-11 + rounding), u
        assert z <= b
    assert comp_mean == pytest.approx(float(mean), rel=1e-11, abs=1e-300)
    # 1 − bλ − λ² loses the digits of b², that is 1 part in 1e-13·b⁴ at most.
    assert comp_variance == pytest.approx(float(variance), rel=1e-12 + 1e-13 * b**4 * (b < 0))


@pytest.mark.parametrize(("a", "b"), INTERVALS)
def test_intervals_match_mpmath(a, b):
    mass, mean, variance = naive.mp_interval_moments(a, b)
    log_mass, one, centred = kernel.interval(a, b, np.empty(5))
    assert log_mass == pytest.approx(float(naive.mp.log(mass)), rel=1e-10, abs=1e-12)
    assert one == pytest.approx(float(mean), rel=1e-11, abs=1e-15)
    # E z² − (E z)² loses digits of the square of the limit nearest to 0; what is left is absolute.
    near = 0.0 if a < 0.0 < b else min(abs(a), abs(b))
    assert centred == pytest.approx(float(variance), rel=1e-9, abs=1e-15 + 1e-13 * near**2)
    # The same by quadrature, so that the closed form is not its own witness.
    ref_log, moments = naive.mp_truncated_moments(a, b)
    assert float(naive.mp.log(mass)) == pytest.approx(float(ref_log), rel=1e-12, abs=1e-15)
    assert float(mean) == pytest.approx(float(moments[1]), rel=1e-12, abs=1e-15)


def test_hidden_cells_are_put_and_got_column_by_column():
    Y = np.arange(12.0).reshape(3, 4)
    cells = {(0, 1): [(0.0, 1.0)], (2, 0): [(0.0, 1.0)], (1, 1): [(0.0, 1.0)], (0, 3): [(0.0, 1.0)]}
    block = make_block(_holes(Y, cells), slice(0, 3))
    values = np.empty(4)
    kernel.get(Y, block.cells, values)
    assert values.tolist() == [8.0, 1.0, 5.0, 3.0]
    assert block.cells.set.tolist() == [1, 0, 2, 3]
    kernel.put(Y, block.cells, -values)
    ref = np.arange(12.0).reshape(3, 4)
    ref[[2, 0, 1, 0], [0, 1, 1, 3]] *= -1.0
    np.testing.assert_array_equal(Y, ref)


def test_a_cell_without_room_stays():
    # Two inequalities that cross by rounding leave nothing: y₀ <= 0 and y₀ >= 1e-12.
    Y = _rows(2, 12)
    V, b = np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0]]), np.array([0.0, 1e-12])
    sign = np.array([[1, -1], [1, 0]], dtype=np.int8)
    bound = Inequalities(V, b, sign, np.zeros(2, dtype=np.intp))
    fast = _Fast(Y, {(r, 0): [(-INF, INF)] for r in range(2)}, bound)
    fast.sweep(np.full(Y.shape, 0.3), False)
    assert fast.Y[0, 0] == Y[0, 0]
    assert fast.E[0, 0] == Y[0, 0] - MEAN[0]
    assert fast.Y[1, 0] != Y[1, 0]
    assert fast.Y[1, 0] <= 1e-15


# Slides ---------------------------------------------------------------------------------------------


def _slid(Y, cells, inequalities=None, seed=0):
    """Rows after the slow slide and after the compiled one."""
    rng = np.random.default_rng(seed)
    direction, uniforms = rng.normal(size=4), rng.uniform(size=len(Y))
    bound = inequalities or _no_inequalities(Y)
    slow = Y.copy()
    naive.slide(
        slow, _naive_sets(Y, cells), MEAN, COVARIANCE, direction, uniforms, bound.V, bound.b,
        bound.sign,
    )  # fmt: skip
    fast = _Fast(Y, cells, inequalities)
    fast.slide(direction, uniforms)
    return slow, fast.Y


@pytest.mark.parametrize("name", [name for name in AROUND if not name.startswith("far")])
def test_a_slide_is_that_of_plain_loops(name):
    Y = _rows(4, 11)
    hidden = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 2), (2, 0), (2, 3), (3, 1), (3, 3)]
    slow, fast = _slid(Y, {(r, c): AROUND[name](Y[r, c]) for r, c in hidden}, seed=3)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-9)
    moved = np.zeros(Y.shape, dtype=bool)
    moved[tuple(zip(*hidden, strict=True))] = True
    # A cell that is hidden alone is left to the sweep.
    moved[1] = False
    np.testing.assert_array_equal(fast != Y, moved)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_slides_between_inequalities_and_of_mixed_sets(seed):
    Y, cells, bound = _mixture(seed)
    for place in list(cells)[::5]:
        # Cells known at nodes stay.
        cells[place] = _probability()
    slow, fast = _slid(Y, cells, bound, seed)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-8)
    assert (fast != Y).any(axis=1).sum() > 10
    assert (bound.slack(fast) > -1e-12).all()
    for place in list(cells)[::5]:
        assert fast[place] == Y[place]


def test_a_slide_far_out():
    # The whole line of cells that were 30 standard deviations away, and an interval there.
    Y = _rows(3, 4)
    Y[:, 1] = [30.0, 29.0, -31.0]
    cells = {(r, c): [(-INF, INF)] for r in range(3) for c in (0, 1, 3)}
    cells[1, 1], cells[2, 1] = [(28.0, INF)], [(-31.5, -30.5)]
    slow, fast = _slid(Y, cells, seed=2)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-8)


# Stationarity ---------------------------------------------------------------------------------------

TRUTH = hs.Gaussian([0.2, -0.1, 0.4], [[1.0, 0.6, -0.3], [0.6, 1.5, 0.4], [-0.3, 0.4, 0.8]])
RULES = {
    "below limits": hs.DetectionLimits(lower=[0.0, 0.3, -0.2]),
    "two sides": hs.SelfCensoring(
        [hs.between(-0.8, 0.9), hs.between(-1.0, 0.4) | hs.at_least(1.5), hs.at_most(1.0)]
    ),
    "threshold": hs.LinearThreshold([[1.0, 0.5, 0.0], [0.0, 0, 0], [-0.4, 0.3, 1.0]], [0.1, 0, 0.2]),
    "never seen together": hs.LinearThreshold(
        [[0.0, 0.0, 1.0], [1.0, -1.0, 0.0], [1.0, 1.0, 1.0]], [0.3, 0.2, 0.5]
    ),
    "self-selection": hs.SelfSelection(),
    "probability": hs.SelfCensoring(hs.Probability(lambda x: expit(1.5 * x))),
}  # fmt: skip
# The first two columns nearly follow each other: the variance inflation factor is 8, and rows slide.
CLOSE = hs.Gaussian([0.2, 0.1, 0.0], [[1.0, 0.93, 0.3], [0.93, 1.0, 0.2], [0.3, 0.2, 0.8]])
ROWS, SWEEPS = 60_000, 6


def _statistics(Y, mean):
    """What a row says of first, second and third moments."""
    Z = Y - mean
    i, j = np.tril_indices(3)
    return np.hstack([Z, Z[:, i] * Z[:, j], Z**3])


@pytest.mark.parametrize(
    ("name", "truth"),
    [*((name, TRUTH) for name in RULES)]
    + [(name, CLOSE) for name in ("below limits", "two sides", "threshold", "self-selection")],
    ids=lambda value: value if isinstance(value, str) else ("plain" if value is TRUTH else "close"),
)
def test_rows_of_the_truth_stay_rows_of_the_truth(name, truth):
    # Rows drawn from the truth have their hidden cells distributed as given what is seen. Sweeps at the
    # true parameters keep that distribution, whatever was seen: the change of a statistic of a row has
    # mean 0. Rows are independent but for the direction of a slide, given which changes have mean 0
    # too. So the average change is within 5 of its standard errors but for one time in 1.7 million;
    # there are 12 statistics, 2 chains and 10 cases.
    rule = RULES[name]
    Y = truth.sample(ROWS, 77)
    shown = rule.seen(Y, 78)
    X = np.where(shown, Y, np.nan)
    holes = rule.holes(X, Scan(np.zeros(3), np.ones(3), np.full(3, 40.0)))
    slides = slide_factor(holes.inequalities is not None, truth.precision) is not None
    assert slides == (truth is CLOSE or holes.inequalities is not None)
    before = _statistics(Y, truth.mean)
    rows = Completion(Y.copy(), holes, 5)
    expected = [rows.sweep(truth.mean, truth.precision) for _ in range(SWEEPS)]
    mirrored = rows.Y.copy()
    for block, values in zip(rows.blocks, rows.mirrored, strict=True):
        kernel.put(mirrored[block.rows], block.cells, values)
    for after in (rows.Y, mirrored):
        change = _statistics(after, truth.mean) - before
        error = change.std(axis=0) / math.sqrt(ROWS)
        assert (np.abs(change.mean(axis=0)) < 5.0 * error + 1e-12).all()
        # Hidden cells have moved, seen ones have not.
        assert (error > 0).any()
        np.testing.assert_array_equal(after[shown], Y[shown])
    # Expected moments are those of the rows. A conditional expectation has no more variance than what it
    # is the expectation of, so that the difference of two averages has at most twice the deviation.
    i, j = np.tril_indices(3)
    for moments in expected:
        comp = np.concatenate([moments.first - truth.mean, moments.about(truth.mean)[i, j]])
        bound = before[:, :9].std(axis=0) * 2.0 / math.sqrt(ROWS)
        assert (np.abs(comp - before[:, :9].mean(axis=0)) < 5.0 * bound).all()


def test_expected_moments_are_exact_where_columns_are_independent():
    # With a diagonal covariance E[y_j | rest] is that of the column by itself, whatever was drawn.
    rule = hs.SelfCensoring([hs.between(-0.5, 0.7), hs.at_least(0.1)])
    mean, spread = np.array([0.2, -0.3]), np.array([1.1, 0.8])
    Y = mean + spread * np.random.default_rng(4).normal(size=(300, 2))
    shown = rule.seen(Y)
    holes = rule.holes(np.where(shown, Y, np.nan), Scan(mean, spread, np.full(2, 40.0)))
    found = Completion(Y.copy(), holes, 0).sweep(mean, np.diag(spread**-2.0))
    for column, hidden in enumerate([[(-INF, -0.5), (0.7, INF)], [(-INF, 0.1)]]):
        _, one, two = naive.line_moments(mean[column], spread[column], hidden)
        count = (~shown[:, column]).sum()
        seen = Y[shown[:, column], column]
        assert found.first[column] == pytest.approx((seen.sum() + count * one) / 300, abs=1e-12)
        ref = ((seen**2).sum() + count * two) / 300
        assert found.second[column, column] == pytest.approx(ref, abs=1e-12)


def test_expected_products_of_one_hidden_cell():
    # One hidden cell in a row, drawn last: E[y₀ y₁] = y₀ E[y₁ | y₀], whatever was drawn.
    mean, S = MEAN[:2], COVARIANCE[:2, :2]
    Y = np.array([[0.5, -0.7], [1.0, 0.4]])
    holes = _holes(Y, {(r, 1): [(-1.0, 1.2)] for r in range(2)})
    found = Completion(Y.copy(), holes, 0).sweep(mean, np.linalg.inv(S))
    total = np.zeros(3)
    for row in Y:
        m, s = naive.conditional(row, 1, mean, S)
        _, one, two = naive.line_moments(m, s, [(-1.0, 1.2)])
        total += [one, two, one * row[0]]
    np.testing.assert_allclose(
        [found.first[1], found.second[1, 1], found.second[0, 1]], total / 2, rtol=1e-9
    )
