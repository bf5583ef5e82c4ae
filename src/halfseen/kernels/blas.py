"""SciPy's BLAS, callable from compiled code."""

import numpy as np
from llvmlite import binding as llvm
from numba import types
from numba.extending import get_cython_function_address

from halfseen.kernels import KERNEL, njit

llvm.add_symbol("halfseen_dsyrk", get_cython_function_address("scipy.linalg.cython_blas", "dsyrk"))
# Addresses of everything: characters, whole numbers and arrays.
_dsyrk = types.ExternalFunction("halfseen_dsyrk", types.void(*[types.intp] * 10))


@njit(**KERNEL)
def add_products(F, total):
    """Add FᵀF to the lower triangle of ``total``: half of the work of a product."""
    letters = np.array([ord("U"), ord("N")], dtype=np.uint8)
    # For Fortran both arrays are transposed: F has a column for each of its rows.
    sizes = np.array([F.shape[1], F.shape[0]], dtype=np.int32)
    one = np.array([1.0])
    n, k = sizes.ctypes.data, sizes.ctypes.data + 4
    number, letter = one.ctypes.data, letters.ctypes.data
    _dsyrk(letter, letter + 1, n, k, number, F.ctypes.data, n, number, total.ctypes.data, n)
