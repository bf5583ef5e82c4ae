import numpy as np
import pytest

from halfseen.kernels import blas
from halfseen.kernels.blas import add_masked_products
from tests.kernels.calling import called


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 7), (50, 4), (512, 33), (0, 5)])
def test_products_are_added_to_the_lower_triangle(rows, columns):
    rng = np.random.default_rng(rows)
    F, total = rng.normal(size=(rows, columns)), rng.normal(size=(columns, columns))
    ref = total.copy()
    called(blas.add_products)(F, total)
    # Sums of up to 512 products of order 1.
    np.testing.assert_allclose(np.tril(total), np.tril(ref + F.T @ F), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.triu(total, 1), np.triu(ref, 1))


def test_some_rows_of_a_buffer_are_added():
    buffer, total = np.random.default_rng(0).normal(size=(9, 3)), np.zeros((3, 3))
    called(blas.add_products)(buffer[:4], total)
    np.testing.assert_allclose(np.tril(total), np.tril(buffer[:4].T @ buffer[:4]), rtol=1e-12)


@pytest.mark.parametrize("never_hidden", [(), (2,), (0, 3, 4), (0, 1, 2, 3, 4)])
def test_masked_products_with_columns_that_are_never_hidden(never_hidden):
    rng = np.random.default_rng(0)
    rows, d = 50, 5
    mask, values = np.zeros((d, 64)), np.zeros((2 * d, 64))
    mask[:, :rows] = rng.random((d, rows)) < 0.7
    mask[never_hidden, :rows] = 1.0
    values[:, :rows] = rng.normal(size=(2 * d, rows))
    sums, cross = rng.normal(size=(2 * d, d)), rng.normal(size=(d, d))
    ref_sums, ref_cross = sums + values @ mask.T, cross + values[:d] @ values[:d].T
    upper = np.triu(cross, 1)
    add_masked_products(values, mask, rows, sums, cross)
    # Sums of 50 products of order 1.
    np.testing.assert_allclose(sums, ref_sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.tril(cross), np.tril(ref_cross), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.triu(cross, 1), upper)
