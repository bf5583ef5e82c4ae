"""SciPy's BLAS, callable from compiled code."""

import numpy as np
from llvmlite import binding as llvm
from numba import njit, types
from numba.extending import get_cython_function_address


def _external(name):
    symbol = f"halfseen_{name}"
    llvm.add_symbol(symbol, get_cython_function_address("scipy.linalg.cython_blas", name))
    # Addresses of everything: characters, whole numbers and arrays.
    return types.ExternalFunction(symbol, types.void(*[types.intp] * 10))


_dsyrk, _ssyrk = _external("dsyrk"), _external("ssyrk")


@njit(cache=True, nogil=True, error_model="numpy")
def add_products(F, total):
    """Add FᵀF to the lower triangle of ``total``: half of the work of a product."""
    letters = np.array([ord("U"), ord("N")], dtype=np.uint8)
    # For Fortran both arrays are transposed: F has a column for each of its rows.
    sizes = np.array([F.shape[1], F.shape[0]], dtype=np.int32)
    one = np.array([1.0])
    n, k = sizes.ctypes.data, sizes.ctypes.data + 4
    number, letter = one.ctypes.data, letters.ctypes.data
    _dsyrk(letter, letter + 1, n, k, number, F.ctypes.data, n, number, total.ctypes.data, n)


@njit(cache=True, nogil=True, error_model="numpy")
def add_single_products(F, scratch, total):
    """Do as ``add_products`` with F in single precision, of which not too many rows come at once.

    ``scratch`` has the shape of ``total``, in single precision.
    """
    letters = np.array([ord("U"), ord("N")], dtype=np.uint8)
    sizes = np.array([F.shape[1], F.shape[0]], dtype=np.int32)
    numbers = np.array([1.0, 0.0], dtype=np.float32)
    n, k = sizes.ctypes.data, sizes.ctypes.data + 4
    one, none, letter = numbers.ctypes.data, numbers.ctypes.data + 4, letters.ctypes.data
    _ssyrk(letter, letter + 1, n, k, one, F.ctypes.data, n, none, scratch.ctypes.data, n)
    for i in range(len(total)):
        for j in range(i + 1):
            total[i, j] += scratch[i, j]
