"""Probabilities of hidden regions: exact ones against SciPy, sampled ones within their errors."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

import halfseen as hs
from halfseen.missingness.holes import SEEN, Holes, Inequalities
from halfseen.missingness.resolve import SetTable, resolve, union_of_intervals
from halfseen.solvers.inference import likelihood as module
from halfseen.solvers.inference.likelihood import (
    LogLikelihood,
    row_log_likelihoods,
    row_log_ratios,
)
from tests import naive

INF = math.inf
MEAN = np.array([0.3, -0.5, 1.0, 0.0, 0.4])
COVARIANCE = np.array([
    [1.0, 0.6, -0.3, 0.2, 0.1],
    [0.6, 2.0, 0.5, -0.4, 0.3],
    [-0.3, 0.5, 1.5, 0.3, 0.5],
    [0.2, -0.4, 0.3, 0.8, -0.2],
    [0.1, 0.3, 0.5, -0.2, 1.2],
])  # fmt: skip
LINE = [(-INF, INF)]


def log_likelihood(*args, **options):
    """Sum of the rows' log-likelihoods, with its Monte-Carlo standard error."""
    return LogLikelihood.of_rows(*row_log_likelihoods(*args, **options))


def _table(pieces):
    if isinstance(pieces, SetTable):
        return pieces
    return union_of_intervals(*(np.array(ends, dtype=float) for ends in zip(*pieces, strict=True)))


def _hidden_with(slope):
    """A value x is hidden with probability 1/(1 + exp(slope·x))."""
    return resolve(hs.Probability(lambda x: expit(slope * x)), 0.0, 1.5, 12.0).complement()


def _holes(cells, d, rows=1, V=None, b=None, sign=None):
    """The same row several times; ``cells`` are the sets of its hidden cells by column."""
    index = np.full((rows, d), SEEN, dtype=np.int32)
    for k, column in enumerate(cells):
        index[:, column] = k
    bound = None
    if V is not None:
        signs = np.tile(np.array(sign, dtype=np.int8), (rows, 1))
        bound = Inequalities(np.array(V), np.array(b), signs, np.zeros(len(V), dtype=np.intp))
    return Holes(
        index, SetTable.join([_table(s) for s in cells.values()]), np.array([*cells]), bound
    )


def _log_likelihood(y, cells, **bound):
    """Log-likelihood of a row and its variance."""
    d = len(y)
    holes = _holes(cells, d, **bound)
    values, variance = row_log_likelihoods(
        np.array([y], dtype=float), holes, MEAN[:d], COVARIANCE[:d, :d]
    )
    return values[0], variance[0]


def _given_seen(y, hidden):
    """Log-density of what is seen of a row, and the distribution of the rest."""
    d = len(y)
    seen = [k for k in range(d) if k not in hidden]
    rest = list(hidden)
    S, m = COVARIANCE[:d, :d], MEAN[:d]
    if not seen:
        return 0.0, m, S
    y = np.array(y)[seen]
    gain = np.linalg.solve(S[np.ix_(seen, seen)], S[np.ix_(seen, rest)]).T
    density = stats.multivariate_normal(m[seen], S[np.ix_(seen, seen)]).logpdf(y)
    return (
        density,
        m[rest] + gain @ (y - m[seen]),
        S[np.ix_(rest, rest)] - gain @ S[np.ix_(seen, rest)],
    )


def _box(m, C, low, high):
    """P(low < N(m, C) < high), by SciPy's cubature with a small tolerance."""
    return stats.multivariate_normal.cdf(
        high, m, C, lower_limit=low, abseps=1e-8, releps=1e-8, maxpts=300_000
    )


def _plane(m, C, low, high, left=(-INF, INF), weight=None):
    """Mass of the x in ``left`` and the y between ``low(x)`` and ``high(x)``, by nested quadrature."""
    weight = weight or (lambda x, y: 1.0)
    density = stats.multivariate_normal(m, C).pdf
    reach = 9.0 * np.sqrt(np.diag(C))
    start, stop = max(left[0], m[0] - reach[0]), min(left[1], m[0] + reach[0])

    def end(function, x):
        return min(max(function(x), m[1] - reach[1]), m[1] + reach[1])

    return integrate.dblquad(
        lambda y, x: weight(x, y) * density([x, y]), start, stop,
        lambda x: end(low, x), lambda x: max(end(high, x), end(low, x)), epsabs=1e-10, epsrel=1e-8,
    )[0]  # fmt: skip


# One hidden cell ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        [(-0.5, 0.4)], [(-INF, 0.1)], [(1.2, INF)], LINE, [(-INF, -1.0), (0.5, 0.7), (2.0, INF)],
        [(0.0, 1e-6)],
    ],
)  # fmt: skip
def test_one_cell_in_intervals(pieces):
    y = [0.1, np.nan, 0.7]
    density, m, C = _given_seen(y, [1])
    mass = sum(np.diff(stats.norm.cdf(ends, m[0], math.sqrt(C[0, 0])))[0] for ends in pieces)
    value, variance = _log_likelihood(y, {1: pieces})
    assert value == pytest.approx(density + math.log(mass), abs=1e-9)
    assert variance == 0.0


def test_one_cell_far_away():
    y = [0.1, np.nan]
    density, m, C = _given_seen(y, [1])
    limit = m[0] + 30.0 * math.sqrt(C[0, 0])
    value, _ = _log_likelihood(y, {1: [(limit, INF)]})
    assert value == pytest.approx(density + stats.norm.logsf(30.0), rel=1e-10)


def test_one_cell_with_a_probability():
    y = [0.1, 0.2, np.nan]
    density, m, C = _given_seen(y, [2])
    s = math.sqrt(C[0, 0])
    mass, _, _ = naive.line_moments(m[0], s, LINE, lambda x: expit(-2.0 * x))
    value, variance = _log_likelihood(y, {2: _hidden_with(2.0)})
    assert value == pytest.approx(density + math.log(mass), abs=1e-9)
    assert variance == 0.0


def test_one_cell_between_inequalities_and_in_a_set():
    # 0.5·x₀ + x₁ <= 1 reversed, x₁ − x₂ <= 2 as stated, and one that is not known.
    y = [0.4, np.nan, 0.3]
    density, m, C = _given_seen(y, [1])
    V = [[0.5, 1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 5.0, 0.0]]
    value, _ = _log_likelihood(y, {1: [(-INF, 1.5)]}, V=V, b=[1.0, 2.0, 0.0], sign=[-1, 1, 0])
    mass = np.diff(stats.norm.cdf([0.8, 1.5], m[0], math.sqrt(C[0, 0])))[0]
    assert value == pytest.approx(density + math.log(mass), abs=1e-9)


def test_inequalities_of_seen_values_alone_change_nothing():
    y = [0.4, np.nan]
    V, b = [[1.0, 0.0]], [0.0]
    density, _, _ = _given_seen(y, [1])
    # Whether they hold is for the rule's ``check`` to say, in the units of the table.
    for sign in (-1, 1):
        found = _log_likelihood(y, {1: LINE}, V=V, b=b, sign=[sign])[0]
        assert found == pytest.approx(density)


# Two hidden cells -----------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [[np.nan, np.nan], [np.nan, 0.6, np.nan], [0.2, np.nan, np.nan, 0.5]])
def test_two_cells_in_rectangles_and_unions(y):
    hidden = [k for k, value in enumerate(y) if np.isnan(value)]
    density, m, C = _given_seen(y, hidden)
    left, right = [(-INF, -0.2), (0.4, 1.5)], [(-0.6, 0.3), (0.8, INF)]
    mass = sum(
        _box(m, C, [a, c], [b, d]) for a, b in left for c, d in right
    )  # fmt: skip
    value, variance = _log_likelihood(y, dict(zip(hidden, [left, right], strict=True)))
    # SciPy answers to about 1e-8.
    assert value == pytest.approx(density + math.log(mass), abs=2e-7)
    assert variance == 0.0
    low, high = np.array([-0.3, -INF]), np.array([0.9, 0.2])
    value, _ = _log_likelihood(y, {hidden[0]: [(-0.3, 0.9)], hidden[1]: [(-INF, 0.2)]})
    assert value == pytest.approx(density + math.log(_box(m, C, low, high)), abs=2e-7)


INEQUALITIES = {
    # Name: V, b, sign, and what they leave of x₁ given x₀.
    "one": ([[1.0, 0.5]], [0.4], [1], lambda x: -INF, lambda x: 2.0 * (0.4 - x)),
    "the other side": ([[1.0, 0.5]], [0.4], [-1], lambda x: 2.0 * (0.4 - x), lambda x: INF),
    "a wedge": (
        [[1.0, -1.0], [1.0, 1.0]], [0.2, 1.0], [1, 1], lambda x: x - 0.2, lambda x: 1.0 - x,
    ),
    "a slab": (
        [[1.0, -2.0], [1.0, -2.0]], [0.5, -0.3], [1, -1],
        lambda x: 0.5 * (x - 0.5), lambda x: 0.5 * (x + 0.3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INEQUALITIES)
@pytest.mark.parametrize("box", [None, ((-0.8, 1.1), (-1.5, 0.6))])
def test_two_cells_between_inequalities(name, box):
    V, b, sign, low, high = INEQUALITIES[name]
    m, C = MEAN[:2], COVARIANCE[:2, :2]
    left, right = box or ((-INF, INF), (-INF, INF))
    ref = _plane(m, C, lambda x: max(low(x), right[0]), lambda x: min(high(x), right[1]), left)
    values, variance = _repeated(2, {0: [left], 1: [right]}, 100, V=V, b=b, sign=sign)
    # Five standard errors of 100 independent estimates; SciPy's quadrature has eight digits.
    error = values.std(ddof=1) / math.sqrt(values.size)
    assert abs(values.mean() - math.log(ref)) < 5.0 * error + 1e-7
    # The spread of 100 values is known to 7 %, and what is reported to 5 %.
    if name == "a wedge" or box:
        assert values.std(ddof=1) == pytest.approx(math.sqrt(variance.mean()), rel=0.4)
    else:
        # A single coordinate settles one inequality, or two that are parallel.
        assert variance.max() < 1e-20


@pytest.mark.parametrize("limit", [12.0, 20.0, 30.0])
def test_two_bound_cells_far_away(limit):
    m, C = MEAN[:2], COVARIANCE[:2, :2]
    for v in ([1.0, 0.0], [1.0, 1.0], [-0.3, 1.0]):
        v = np.array(v)
        level = v @ m + limit * math.sqrt(v @ C @ v)
        value, _ = _log_likelihood([np.nan] * 2, {0: LINE, 1: LINE}, V=[v], b=[level], sign=[-1])
        assert value == pytest.approx(stats.norm.logsf(limit), rel=1e-8)


def test_a_wedge_of_two_cells():
    # V y is a pair of normal values itself, in a quadrant.
    V, b = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([0.2, 1.0])
    m, C = V @ MEAN[:2], V @ COVARIANCE[:2, :2] @ V.T
    s = np.sqrt(np.diag(C))
    ref = naive.product_mass(
        list(zip(m, s, strict=True)), C[0, 1] / s.prod(), [(-INF, b[0])], [(-INF, b[1])]
    )
    values, variance = _repeated(2, {0: LINE, 1: LINE}, V=V, b=b, sign=[1, 1])
    _check(values, variance, math.log(ref))


def test_two_cells_with_probabilities():
    m, C = MEAN[:2], COVARIANCE[:2, :2]
    everywhere = (lambda x: -INF), (lambda x: INF)
    one = _plane(m, C, *everywhere, weight=lambda x, y: expit(-2.0 * x) * expit(y))
    _check_mean({0: _hidden_with(2.0), 1: _hidden_with(-1.0)}, one)
    for order in (0, 1):
        cells = {order: _hidden_with(2.0), 1 - order: [(-0.5, 0.9)]}
        box = (lambda x: -INF, lambda x: INF, (-0.5, 0.9))
        swap = [0, 1] if order == 1 else [1, 0]
        ref = _plane(m[swap], C[np.ix_(swap, swap)], *box, weight=lambda x, y: expit(-2.0 * y))
        _check_mean(dict(sorted(cells.items())), ref)


def _check_mean(cells, ref):
    """The average of 40 independent estimates is within five standard errors."""
    values, _ = _repeated(2, cells, 40)
    error = values.std(ddof=1) / math.sqrt(values.size)
    assert error < 1e-3
    assert abs(values.mean() - math.log(ref)) < 5.0 * error + 1e-7


# Three and more hidden cells ------------------------------------------------------------------------

REPEATS = 300


def _repeated(d, cells, repeats=REPEATS, **bound):
    """Log-masses of one region estimated many times over, and the variances that are reported."""
    Y = np.full((repeats, d), np.nan)
    holes = _holes(cells, d, repeats, **bound)
    return row_log_likelihoods(Y, holes, MEAN[:d], COVARIANCE[:d, :d], 0)


def _check(values, variance, ref, ref_error=0.0, least=0.88):
    """Estimates are right on average, and as far off as they say.

    Each row has shifts of its own, so that there are 300 independent estimates. Their average is within
    5 standard errors of the truth. A reported variance has 7 degrees of freedom and is off by
    √(2/7) = 53 %, the average of 300 by 3 %; the spread of 300 values is known to √(2/300)/2 = 4 %, more
    where tails are heavy. The share of rows within 2.36 errors (95 % of t with 7 degrees) has a standard
    error of 1.3 %, and is at least ``least``.
    """
    spread = values.std(ddof=1)
    assert abs(values.mean() - ref) < 5.0 * math.hypot(spread / math.sqrt(values.size), ref_error)
    assert spread == pytest.approx(math.sqrt(variance.mean()), rel=0.25)
    z = np.abs(values - ref) / np.sqrt(variance + ref_error**2)
    assert least < (z < 2.36).mean() < 0.99


@pytest.mark.parametrize("d", [3, 4, 5])
def test_three_and_more_cells_in_boxes(d):
    low = np.array([-INF, -1.0, 0.2, -INF, -0.5])[:d]
    high = np.array([0.4, 0.5, INF, 0.3, 1.4])[:d]
    cells = {k: [(low[k], high[k])] for k in range(d)}
    ref = math.log(_box(MEAN[:d], COVARIANCE[:d, :d], low, high))
    # A shift of three cells errs by few waves of its lattice, 5e-5 in all, far from normal: over
    # 3 000 rows 88 % are within 2.36 errors, with a standard error of 1.9 % for 300 of them.
    _check(*_repeated(d, cells), ref, least=0.82 if d == 3 else 0.88)


def test_three_cells_in_unions():
    unions = [[(-INF, -0.4), (0.6, 1.5)], [(-1.0, 0.2), (1.0, INF)], [(-INF, 0.8), (1.4, 1.9)]]
    ref = 0.0
    for one in unions[0]:
        for two in unions[1]:
            for three in unions[2]:
                low, high = zip(one, two, three, strict=True)
                ref += _box(MEAN[:3], COVARIANCE[:3, :3], low, high)
    _check(*_repeated(3, dict(enumerate(unions))), math.log(ref))


@cache
def _draws(d):
    return hs.Gaussian(MEAN[:d], COVARIANCE[:d, :d]).sample(400_000, 9)


def _monte_carlo(d, inside):
    """Log of a probability by plain sampling, and its standard error."""
    chance = inside(_draws(d))
    return math.log(chance.mean()), chance.std() / chance.mean() / math.sqrt(chance.size)


def _check_against_draws(values, variance, ref, error, rel=0.25):
    # Here the plain sampling has the larger error.
    own = values.std(ddof=1) / math.sqrt(values.size)
    assert abs(values.mean() - ref) < 5.0 * math.hypot(own, error)
    assert values.std(ddof=1) == pytest.approx(math.sqrt(variance.mean()), rel=rel)


V = np.array([[1.0, 0.5, 0.0, -0.6], [0.2, -1.0, 0.7, 0.0], [0.0, 0.3, 1.0, 1.0], [1.0, 1, 1, 1]])
B = np.array([0.5, 0.9, 1.2, 2.0])


@pytest.mark.parametrize(
    ("rows", "sign"),
    [([0], [1]), ([0, 1], [1, -1]), ([0, 1, 2], [-1, 1, -1]), ([0, 1, 2, 3], [1, 1, 1, -1]),
     ([3, 3], [1, -1]), ([0, 1, 2, 3, 0, 1], [1, 1, 1, 1, 0, 1])],
)  # fmt: skip
def test_four_cells_between_inequalities(rows, sign):
    b = B[rows].copy()
    if rows == [3, 3]:
        # A slab: the second is parallel to the first.
        b[1] = 0.7
    sign = np.array(sign)
    values, variance = _repeated(4, dict.fromkeys(range(4), LINE), V=V[rows], b=b, sign=sign)

    def inside(Y):
        return (sign * (b - Y @ V[rows].T) >= 0).all(axis=1)

    ref, error = _monte_carlo(4, inside)
    if variance.max() < 1e-20:
        # One inequality, or parallel ones: a single coordinate settles them, without error.
        assert len({*rows}) == 1
        assert abs(values.mean() - ref) < 5.0 * error
    else:
        _check_against_draws(values, variance, ref, error)


def test_one_inequality_is_exact_however_many_cells():
    # v·y is normal: one coordinate settles it, and every path has the same weight.
    v = V[3]
    values, variance = _repeated(4, dict.fromkeys(range(4), LINE), V=[v], b=[2.0], sign=[1])
    ref = stats.norm.logcdf(2.0, v @ MEAN[:4], math.sqrt(v @ COVARIANCE[:4, :4] @ v))
    np.testing.assert_allclose(values, ref, rtol=1e-9)
    assert variance.max() < 1e-20


def test_inequalities_and_boxes_together():
    low, high = np.array([-1.0, -INF, -INF, -0.6]), np.array([1.2, 0.5, INF, 0.9])
    cells = {k: [(low[k], high[k])] for k in range(4)}
    sign = np.array([1, -1])

    def inside(Y):
        box = ((low < Y) & (high > Y)).all(axis=1)
        return box & (sign * (B[:2] - Y @ V[:2].T) >= 0).all(axis=1)

    _check_against_draws(
        *_repeated(4, cells, V=V[:2], b=B[:2], sign=sign), *_monte_carlo(4, inside)
    )


def test_probabilities_of_three_cells():
    cells = {0: _hidden_with(2.0), 1: [(-INF, 0.3)], 2: _hidden_with(-1.0)}

    def chance(Y):
        return expit(-2.0 * Y[:, 0]) * (Y[:, 1] < 0.3) * expit(Y[:, 2])

    # The spread of 60 values is known to √(2/60)/2 = 9 %.
    _check_against_draws(*_repeated(3, cells, 60), *_monte_carlo(3, chance), rel=0.4)


def test_an_empty_region_has_no_likelihood():
    cells = dict.fromkeys(range(3), LINE)
    values, variance = _repeated(3, cells, V=[[1.0, 1, 1], [1.0, 1, 1]], b=[0.0, 1.0], sign=[1, -1])
    assert (values == -INF).all()
    assert (variance == 0.0).all()


# Whole tables ---------------------------------------------------------------------------------------


def test_rows_add_up_and_threads_change_nothing():
    rng = np.random.default_rng(4)
    d = 4
    Y = rng.multivariate_normal(MEAN[:d], COVARIANCE[:d, :d], 600)
    shown = Y > 0.3
    index = np.where(shown, SEEN, np.arange(d)).astype(np.int32)
    holes = Holes(index, SetTable.join([_table([(-INF, 0.3)])] * d), np.arange(d))
    args = np.where(shown, Y, np.nan), holes, MEAN[:d], COVARIANCE[:d, :d]
    values, variance = row_log_likelihoods(*args, seed=1, n_jobs=1)
    again, _ = row_log_likelihoods(*args, seed=1, n_jobs=2)
    np.testing.assert_array_equal(values, again)
    total = log_likelihood(*args, seed=1)
    assert total.value == pytest.approx(values.sum())
    assert total.standard_error == pytest.approx(math.sqrt(variance.sum()))
    hidden = (~shown).sum(axis=1)
    assert (variance[hidden <= 2] == 0.0).all()
    assert (variance[hidden > 2] > 0.0).all()
    # Rows one by one, against the oracle of their pattern.
    for row in np.flatnonzero(hidden > 0)[:25]:
        density, m, C = _given_seen(args[0][row], list(np.flatnonzero(~shown[row])))
        high = np.full(m.size, 0.3)
        ref = density + math.log(_box(m, C, np.full(m.size, -INF), high))
        assert values[row] == pytest.approx(ref, abs=1e-6 + 6.0 * math.sqrt(variance[row]))
    whole = np.flatnonzero(hidden == 0)[:5]
    for row in whole:
        ref = stats.multivariate_normal(MEAN[:d], COVARIANCE[:d, :d]).logpdf(Y[row])
        assert values[row] == pytest.approx(ref, abs=1e-10)


def _half_hidden(rows, seed=4, d=4):
    """A table with many rows of three and four cells below a limit."""
    Y = np.random.default_rng(seed).multivariate_normal(MEAN[:d], COVARIANCE[:d, :d], rows)
    shown = Y > 0.3
    index = np.where(shown, SEEN, np.arange(d)).astype(np.int32)
    holes = Holes(index, SetTable.join([_table([(-INF, 0.3)])] * d), np.arange(d))
    return np.where(shown, Y, np.nan), holes


def test_more_points_are_taken_until_the_sum_is_known(monkeypatch):
    # As few points as a table of a million rows begins with, and an error that is too large for them.
    monkeypatch.setattr(module, "MOST_POINTS", 8)
    monkeypatch.setattr(module, "TOLERANCE", 0.1)
    Y, holes = _half_hidden(6000)
    place = MEAN[:4], COVARIANCE[:4, :4]
    found = [log_likelihood(Y, holes, *place, seed=seed, n_jobs=1) for seed in range(8)]
    errors = np.array([one.standard_error for one in found])
    assert (errors <= module.TOLERANCE).all()
    values = np.array([one.value for one in found])
    monkeypatch.setattr(module, "FEWEST_POINTS", 512)
    monkeypatch.setattr(module, "MOST_POINTS", 512)
    exact = log_likelihood(Y, holes, *place, seed=99, n_jobs=1)
    assert exact.standard_error < 0.2 * errors.min()
    # The mean square of eight errors, of what they are said to be: χ² with 8 degrees, divided by 8, is
    # between 0.1 and 3.3 but for once in a thousand times on either side.
    assert 0.1 < np.mean(((values - exact.value) / errors) ** 2) < 3.3
    monkeypatch.setattr(module, "FEWEST_POINTS", 8)
    monkeypatch.setattr(module, "MOST_POINTS", 8)
    monkeypatch.setattr(module, "LAST_POINTS", 8)
    assert log_likelihood(Y, holes, *place, n_jobs=1).standard_error > 2.0 * module.TOLERANCE


def test_noise_cancels_in_ratios_and_what_is_left_is_told(monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 8)
    monkeypatch.setattr(module, "LAST_POINTS", 8)
    Y, holes = _half_hidden(1500)
    above, below = (MEAN[:4], COVARIANCE[:4, :4]), (MEAN[:4] + 0.02, 1.03 * COVARIANCE[:4, :4])
    found = [row_log_ratios(Y, holes, above, below, seed, n_jobs=1) for seed in range(24)]
    sums = np.array([values.sum() for values, _ in found])
    told = np.sqrt(np.mean([variance.sum() for _, variance in found]))
    # A standard deviation of 24 is right to 15 %: three of these.
    assert sums.std(ddof=1) == pytest.approx(told, rel=0.45)
    apart = [row_log_likelihoods(Y, holes, *place, n_jobs=1) for place in (above, below)]
    assert told < 0.3 * math.sqrt(sum(variance.sum() for _, variance in apart))
    difference = apart[0][0].sum() - apart[1][0].sum()
    assert sums[0] == pytest.approx(difference, abs=1e-9)
