"""SciPy's BLAS, callable from compiled code."""

import numpy as np
from llvmlite import binding as llvm
from numba import types
from numba.extending import get_cython_function_address

from halfseen.kernels import INNER, KERNEL, njit

for name in ("dsyrk", "dgemm"):
    llvm.add_symbol(
        f"halfseen_{name}", get_cython_function_address("scipy.linalg.cython_blas", name)
    )
# Addresses of everything: characters, whole numbers and arrays.
_dsyrk = types.ExternalFunction("halfseen_dsyrk", types.void(*[types.intp] * 10))
_dgemm = types.ExternalFunction("halfseen_dgemm", types.void(*[types.intp] * 13))


@njit(**KERNEL)
def add_products(F, total):
    """Add FᵀF to the lower triangle of ``total``: half of the work of a product."""
    letters = np.array([ord("U"), ord("N")], dtype=np.uint8)
    # For Fortran all arrays are transposed: F has a column for each of its rows.
    sizes = np.array([F.shape[1], F.shape[0], F.shape[1]], dtype=np.int32)
    _call_dsyrk(letters, sizes, np.array([1.0]), F, total)


@njit(**KERNEL)
def add_masked_products(values, mask, rows, sums, cross):
    """Add ``values maskᵀ`` to ``sums``, and the lower triangle of u uᵀ to that of ``cross``.

    u are the first rows of ``values``, as many as ``mask`` has. Products with columns of the table that
    are seen in all ``rows`` are the same, and made once.
    """
    d, wide = mask.shape[0], values.shape[0]
    place = np.empty(d, dtype=np.intp)
    different = _number_masks(mask, rows, place)
    if different == d:
        _add_product(values, mask, sums)
    else:
        some, part = np.empty((different, mask.shape[1])), np.zeros((wide, different))
        for i in range(d):
            some[place[i]] = mask[i]
        _add_product(values, some, part)
        for i in range(wide):
            for j in range(d):
                sums[i, j] += part[i, place[j]]
    letters = np.array([ord("U"), ord("T")], dtype=np.uint8)
    sizes = np.array([d, mask.shape[1], mask.shape[1]], dtype=np.int32)
    _call_dsyrk(letters, sizes, np.array([1.0]), values, cross)


@njit(**INNER)
def _number_masks(mask, rows, place):
    """Fill ``place`` with numbers of masks, one for all that hide nothing; return how many there are."""
    different, whole = 0, -1
    for i in range(mask.shape[0]):
        seen = 0
        while seen < rows and mask[i, seen] != 0.0:
            seen += 1
        if seen == rows and whole >= 0:
            place[i] = whole
            continue
        if seen == rows:
            whole = different
        place[i] = different
        different += 1
    return different


@njit(**INNER)
def _add_product(A, B, total):
    """Add A Bᵀ to ``total``."""
    letters = np.array([ord("T"), ord("N")], dtype=np.uint8)
    # For Fortran all arrays are transposed: B Aᵀ is asked for.
    sizes = np.array([B.shape[0], A.shape[0], A.shape[1]], dtype=np.int32)
    _call_dgemm(letters, sizes, np.array([1.0]), B, A, total)


# Whoever calls these holds the arrays until they are back: addresses hold nothing.


@njit(**INNER)
def _call_dgemm(letters, sizes, one, A, B, total):
    m, n, k = sizes.ctypes.data, sizes.ctypes.data + 4, sizes.ctypes.data + 8
    letter, number, a, b = letters.ctypes.data, one.ctypes.data, A.ctypes.data, B.ctypes.data
    _dgemm(letter, letter + 1, m, n, k, number, a, k, b, k, number, total.ctypes.data, m)


@njit(**INNER)
def _call_dsyrk(letters, sizes, one, F, total):
    n, k, stride = sizes.ctypes.data, sizes.ctypes.data + 4, sizes.ctypes.data + 8
    letter, number = letters.ctypes.data, one.ctypes.data
    _dsyrk(letter, letter + 1, n, k, number, F.ctypes.data, stride, number, total.ctypes.data, n)
