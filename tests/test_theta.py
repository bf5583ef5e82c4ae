"""The order of all parameters in one vector, there and back."""

import numpy as np
import pytest

from halfseen import theta
from halfseen.theta import pack, unpack


@pytest.mark.parametrize("d", [1, 2, 7])
def test_packing_goes_round(d):
    rng = np.random.default_rng(d)
    mean, A = rng.normal(size=d), rng.normal(size=(d, d))
    S = A @ A.T
    vector = pack(mean, S)
    assert vector.shape == (d + d * (d + 1) // 2,)
    again, matrix = unpack(vector, d)
    np.testing.assert_array_equal(again, mean)
    np.testing.assert_array_equal(np.tril(matrix), np.tril(S))
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(pack(again, matrix), vector)
    if d == 2:
        np.testing.assert_array_equal(vector, [mean[0], mean[1], S[0, 0], S[1, 0], S[1, 1]])


def test_vectors_may_be_many_at_once():
    rng = np.random.default_rng(0)
    many = rng.normal(size=(2, 4, theta.size_of(3)))
    mean, S = unpack(many, 3)
    np.testing.assert_array_equal(pack(mean, S), many)
    for k in np.ndindex(2, 4):
        one = unpack(many[k], 3)
        np.testing.assert_array_equal(mean[k], one[0])
        np.testing.assert_array_equal(S[k], one[1])


def test_every_entry_has_a_place_a_unit_a_name_and_a_weight():
    scale = np.array([2.0, 3.0, 5.0])
    where, units, names = (
        theta.places(3),
        theta.parameter_units(scale),
        theta.parameter_names("abc"),
    )
    count = theta.stands_for(3)
    np.testing.assert_array_equal(units[:3], scale)
    assert names[:3] == ["mean of a", "mean of b", "mean of c"]
    for i, j in np.ndindex(3, 3):
        k = where[i, j]
        assert units[k] == scale[i] * scale[j]
        low, high = "abc"[min(i, j)], "abc"[max(i, j)]
        whole = f"variance of {low}" if i == j else f"covariance of {low} and {high}"
        assert names[k] == whole
        assert count[k - 3] == (where == k).sum()


def test_slopes_of_a_symmetric_matrix_are_differences_along_the_vector():
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    # Linear in all entries of Σ, with slopes that are symmetric.
    slope = 0.5 * (A + A.T)

    def value(vector):
        mean, S = unpack(vector, 3)
        return b @ mean + (slope * S).sum()

    steps = np.eye(theta.size_of(3))
    ref = [value(step) - value(0.0 * step) for step in steps]
    np.testing.assert_allclose(theta.pack_slopes(b, slope), ref, rtol=1e-14)


def test_nobody_can_change_the_order_for_everybody():
    i, _ = theta.triangle(4)
    with pytest.raises(ValueError, match="read-only"):
        i[0] = 1
