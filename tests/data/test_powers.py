"""Powers that are learned, and what is known of them, next to slow optimisers of the same likelihood."""

import numpy as np
import pytest
from scipy import optimize, stats

import halfseen as hs
from halfseen.data.powers import ColumnCells, as_table, follow_power, from_table, learn_power
from halfseen.data.transforms import BoxCox, Identity, Log, YeoJohnson
from halfseen.errors import InputError

CHI_SQUARE_95 = 3.841


def _left_censored(x, limit):
    hidden = x < limit
    return np.where(hidden, -np.inf, x), np.where(hidden, limit, x)


def _slow_log_likelihood(lower, upper, transform, mu, sigma):
    """Sum over cells, one by one, in original units."""
    total = 0.0
    for a, b in zip(lower, upper, strict=True):
        if a == b:
            total += stats.norm.logpdf(float(transform.forward(a)), mu, sigma)
            total += float(transform.log_derivative(a))
        elif np.isfinite(a) or np.isfinite(b):
            ends = [float(transform.end(end)) for end in (a, b)]
            total += np.log(np.diff(stats.norm.cdf(ends, mu, sigma)))[0]
    return total


@pytest.mark.parametrize("transform", [Identity(), Log(), BoxCox(0.4), YeoJohnson(0.5)], ids=str)
def test_the_normal_of_one_column_is_that_of_a_general_optimiser(rng, transform):
    x = np.exp(rng.normal(0.5, 0.6, size=80))
    lower, upper = _left_censored(x, 1.2)
    lower[:5], upper[:5] = 1.0, 2.5
    upper[5], lower[5] = np.inf, 2.0
    lower[6], upper[6] = -np.inf, np.inf
    found = ColumnCells.from_ends(lower, upper).fit(transform)

    def cost(p):
        return -_slow_log_likelihood(lower, upper, transform, p[0], np.exp(p[1]))

    best = optimize.minimize(cost, [found.mean + 0.3, np.log(found.standard_deviation) + 0.2])
    assert found.settled
    # BFGS stops at gradients of 1e-5; the likelihood is then right to the square of that.
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-6)
    assert found.mean == pytest.approx(best.x[0], abs=1e-3)


def test_holes_and_ends_say_the_same(rng):
    x = np.exp(rng.normal(size=(200, 1)))
    rule = hs.DetectionLimits(lower=0.7, upper=3.0)
    X = np.where(rule.seen(x), x, np.nan)
    from halfseen.missingness.holes import Scan

    holes = rule.holes(X, Scan(np.zeros(1), np.ones(1), np.full(1, 40.0)))
    cells = ColumnCells.from_holes(X[:, 0], holes, 0)
    assert cells.hidden == np.isnan(X).sum()
    assert cells.count.size == 1
    assert cells.lower.tolist() == [-np.inf, 3.0]
    one_sided = hs.DetectionLimits(lower=0.7)
    X = np.where(one_sided.seen(x), x, np.nan)
    holes = one_sided.holes(X, Scan(np.zeros(1), np.ones(1), np.full(1, 40.0)))
    a = ColumnCells.from_holes(X[:, 0], holes, 0).fit(Log())
    b = ColumnCells.from_ends(*_left_censored(x[:, 0], 0.7)).fit(Log())
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-12)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_box_cox_powers_are_found_under_censoring(power):
    # 4 000 values, 30 % hidden: in complete data the standard error of a power is about
    # 1/(spread of log x · √(2n)) ≈ 0.05 at a coefficient of variation of 0.25; holes at most double it.
    rng = np.random.default_rng(7)
    z = rng.normal(4.0, 1.0, size=4000)
    x = BoxCox(power).inverse(z)
    lower, upper = _left_censored(x, np.quantile(x, 0.3))
    found = learn_power(ColumnCells.from_ends(lower, upper), BoxCox())
    assert abs(found.power - power) < 0.2
    # Leaving the hidden cells out moves it much further than that: the holes are used.
    profile = ColumnCells.from_ends(lower, upper)
    at = [profile.fit(BoxCox(found.power + step)).log_likelihood for step in (-0.02, 0.0, 0.02)]
    assert power == 0.0 or at[1] >= max(at) - 1e-3


def test_complete_data_give_the_power_of_scipy(rng):
    x = np.exp(rng.normal(1.0, 0.5, size=500)) + 1.0
    found = learn_power(ColumnCells.from_ends(x, x), BoxCox())
    assert found.power == pytest.approx(max(stats.boxcox_normmax(x, method="mle"), 0.0), abs=3e-3)
    y = rng.normal(size=500) ** 3 + 1.0
    ours = learn_power(ColumnCells.from_ends(y, y), YeoJohnson())
    assert ours.power == pytest.approx(stats.yeojohnson_normmax(y), abs=3e-3)


def test_bad_input():
    with pytest.raises(hs.InputError, match="at least 2 different seen values"):
        learn_power(ColumnCells.from_ends([1.0, 1.0], [1.0, 1.0]), BoxCox())
    assert not ColumnCells.from_ends([1.0], [1.0]).fit(Identity()).settled


def test_intervals_that_are_next_to_nothing_do_no_harm():
    x = np.exp(np.random.default_rng(0).normal(size=(200, 1)))
    lower, upper = x.copy(), x.copy()
    upper[0] += 1e-10
    lower[1:20], upper[1:20] = -np.inf, 0.3
    fit = hs.fit(hs.IntervalData(lower, upper), transforms="boxcox", random_state=0)
    assert 0.0 <= fit.transforms[0].power < 0.3


@pytest.fixture(scope="module")
def ends():
    x = (1.0 + 0.5 * np.random.default_rng(3).normal(2.0, 1.0, size=120)) ** 2
    hidden = x < 2.5
    return np.where(hidden, -np.inf, x), np.where(hidden, 2.5, x)


def _profile(ends, kind, power):
    """The largest log-likelihood with a power, by a general optimiser on the sum over cells."""
    transform = kind(power)
    z = transform.forward(ends[1])

    def cost(p):
        return -_slow_log_likelihood(*ends, transform, p[0], np.exp(p[1]))

    return -optimize.minimize(cost, [z.mean(), np.log(z.std())], method="Nelder-Mead").fun


@pytest.mark.parametrize("kind", [BoxCox, YeoJohnson])
def test_intervals_of_powers_are_those_of_a_profile_by_hand(ends, kind):
    cells = ColumnCells.from_ends(*ends)
    learned = follow_power(cells, learn_power(cells, kind()))
    top = _profile(ends, kind, learned.power)
    for end, edge in zip(learned.interval(0.95), (0.0, 2.0), strict=True):
        fall = 2.0 * (top - _profile(ends, kind, end))
        # Linear between places a third of a standard error apart, of a root that is nearly linear: 1 %.
        assert fall == pytest.approx(CHI_SQUARE_95, rel=0.02) or (end == edge and fall < 3.9)
    low, high = learned.interval(0.6827)
    # By one side where the other is at the edge.
    half = 0.5 * (high - low) if low > 0.0 else high - learned.power
    assert learned.standard_error == pytest.approx(half, rel=0.01)
    assert learned.interval(0.5)[0] > low
    assert not learned.hardly_known


def test_variances_with_the_power_known_are_the_inverse_of_a_hessian(ends):
    cells = ColumnCells.from_ends(*ends)
    scale = BoxCox(0.4)
    found = cells.fit(scale)

    def value(p):
        return _slow_log_likelihood(*ends, scale, p[0], np.exp(p[1]))

    at, h = np.array([found.mean, np.log(found.standard_deviation)]), 1e-3
    steps = h * np.eye(2)
    H = np.array(
        [[value(at + a + b) - value(at + a - b) - value(at - a + b) + value(at - a - b) for a in steps]
         for b in steps]
    ) / (4.0 * h * h)  # fmt: skip
    # Differences of second order: an error of h² in the third digit of curvatures of the order of n.
    np.testing.assert_allclose(cells.variances(scale, found), np.linalg.inv(-H), rtol=1e-3)


def test_few_values_say_next_to_nothing_of_a_power():
    x = np.exp(0.2 * np.random.default_rng(0).normal(size=8))
    cells = ColumnCells.from_ends(x, x)
    learned = follow_power(cells, learn_power(cells, BoxCox()))
    assert learned.hardly_known
    assert learned.interval(0.95) == (0.0, 2.0)


def test_a_power_comes_back_from_its_array_and_wrong_arrays_are_refused(ends):
    cells = ColumnCells.from_ends(*ends)
    learned = follow_power(cells, learn_power(cells, BoxCox()))
    table = as_table(learned)
    again = from_table(learned.power, table)
    assert again.interval(0.9) == learned.interval(0.9)
    np.testing.assert_array_equal(again.variances, learned.variances)
    wrong = table.copy()
    wrong[3, 1] = np.nan
    for power, bad in (
        (learned.power, wrong),
        (learned.power, table[::-1]),
        (learned.power, table[:, :5]),
        (-3.0, table),
        (None, table),
        (learned.power, -np.abs(table) + 2.0 * table * (np.arange(7) == 0)),
    ):
        with pytest.raises(InputError, match="power that was learned"):
            from_table(power, bad)
