import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit

import halfseen as hs
from halfseen.missingness.resolve import SetTable, one_interval_each, resolve, union_of_intervals


def test_intervals_stay_as_they_are():
    table = resolve(hs.between(-1, 2) | hs.at_least(5), 0.0, 1.0, 50.0)
    assert table.lower.tolist() == [-1, 5]
    assert table.upper.tolist() == [2, np.inf]


def test_ends_of_a_predicate_are_found_to_the_last_bits():
    ends = np.array([-np.pi / 7, np.sqrt(2), 17.3])
    p = hs.Predicate(lambda x: ((x > ends[0]) & (x < ends[1])) | (x > ends[2]))
    table = resolve(p, 0.3, 1.1, 60.0)
    np.testing.assert_allclose(table.lower, ends[[0, 2]], rtol=1e-14)
    np.testing.assert_allclose(table.upper, [ends[1], np.inf], rtol=1e-14)


def test_a_predicate_that_is_never_true_is_refused():
    with pytest.raises(hs.ContradictionError, match="holds none of"):
        resolve(hs.Predicate(lambda x: x > 1e9), 0.0, 1.0, 50.0)


def test_a_predicate_that_oscillates_warns():
    with pytest.warns(hs.ApproximationWarning, match="pieces narrower than the scan"):
        resolve(hs.Predicate(lambda x: np.sin(40 * x) > 0), 0.0, 1.0, 50.0)


@pytest.mark.parametrize(
    "function", [expit, lambda x: np.where(x > 0.3, 0.9, 0.2), lambda x: np.clip(x, 0, 1)]
)
def test_nodes_of_a_probability_integrate_it(function):
    table = resolve(hs.Probability(function), 0.1, 1.0, 40.0)
    density = np.exp(-0.5 * table.node**2) / np.sqrt(2 * np.pi)
    points = [0.0, 0.3, 1.0]
    ref, _ = integrate.quad(
        lambda x: function(x) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi),
        -12,
        12,
        points=points,
        epsabs=1e-13,
    )
    # A kink that is no jump (clip) is left inside a panel: half a panel squared.
    tolerance = 1e-4 if function(0.5) == 0.5 else 1e-10
    assert (table.weight * density).sum() == pytest.approx(ref, abs=tolerance)
    assert (table.hidden_weight * density).sum() == pytest.approx(1 - ref, abs=tolerance)


def test_tables_complement_take_and_join():
    one = resolve(hs.between(-1, 2) | hs.at_least(5), 0.0, 1.0, 50.0)
    two = one_interval_each(np.array([0.0, -np.inf]), np.array([np.inf, 3.0]))
    table = SetTable.join([one, two])
    assert len(table) == 3
    rest = table.complement()
    pieces = [
        [(a, b) for a, b in zip(rest.lower[s:e], rest.upper[s:e], strict=True) if a < b]
        for s, e in zip(rest.start, rest.start[1:], strict=False)
    ]
    assert pieces == [[(-np.inf, -1), (2, 5)], [(-np.inf, 0)], [(3, np.inf)]]
    back = table.take(np.array([2, 0]))
    assert back.lower.tolist() == [-np.inf, -1, 5]
    assert back.start.tolist() == [0, 1, 3]
    assert not table.is_whole_line
    assert resolve(hs.everything, 0, 1, 9).is_whole_line
    np.testing.assert_array_equal(one.standardised(1.0, 2.0).lower, [-1.0, 2.0])


def test_sets_of_one_interval_are_told_from_unions():
    below, both = np.array([-np.inf]), np.array([-np.inf, 2.0])
    one = union_of_intervals(below, np.array([1.0]))
    two = union_of_intervals(both, np.array([1.0, np.inf]))
    assert one.is_one_interval_each
    assert not two.is_one_interval_each
    # What (-inf, 1) leaves is one interval, and an empty one before it.
    assert one.complement().is_one_interval_each
    assert not SetTable.join([one, two]).is_one_interval_each
