"""What is known of a power that was learned, next to slow optimisers of the same likelihood."""

import numpy as np
import pytest
from scipy import optimize

from halfseen.data.powers import ColumnCells, as_table, follow_power, from_table, learn_power
from halfseen.data.transforms import BoxCox, YeoJohnson
from halfseen.errors import InputError
from tests.data.test_power import _slow_log_likelihood

CHI_SQUARE_95 = 3.841


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
