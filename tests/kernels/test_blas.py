import numpy as np
import pytest

from halfseen.kernels.blas import add_products


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 7), (50, 4), (512, 33), (0, 5)])
def test_products_are_added_to_the_lower_triangle(rows, columns):
    rng = np.random.default_rng(rows)
    F, total = rng.normal(size=(rows, columns)), rng.normal(size=(columns, columns))
    ref = total.copy()
    add_products(F, total)
    # Sums of up to 512 products of order 1.
    np.testing.assert_allclose(np.tril(total), np.tril(ref + F.T @ F), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.triu(total, 1), np.triu(ref, 1))


def test_some_rows_of_a_buffer_are_added():
    buffer, total = np.random.default_rng(0).normal(size=(9, 3)), np.zeros((3, 3))
    add_products(buffer[:4], total)
    np.testing.assert_allclose(np.tril(total), np.tril(buffer[:4].T @ buffer[:4]), rtol=1e-12)
