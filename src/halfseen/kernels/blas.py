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
# What BLAS is told: an upper triangle, of products of columns or of rows; one transposed and one plain.
OF_COLUMNS, OF_ROWS, PLAIN_SECOND = (
    np.array([*text], dtype="S1").view(np.uint8) for text in ("UN", "UT", "TN")
)
ONE = np.array([1.0])


@njit(**INNER)
def add_products(F, total):
    """Add FᵀF to the lower triangle of ``total``: half of the work of a product."""
    # For Fortran all arrays are transposed: F has a column for each of its rows.
    _call_dsyrk(OF_COLUMNS, _sizes(F.shape[1], F.shape[0], F.shape[1]), F, total)


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
        # A loop: the text of the error that an assignment of rows may raise takes seconds to compile.
        for i in range(d):
            for r in range(mask.shape[1]):
                some[place[i], r] = mask[i, r]
        _add_product(values, some, part)
        for i in range(wide):
            for j in range(d):
                sums[i, j] += part[i, place[j]]
    _call_dsyrk(OF_ROWS, _sizes(d, mask.shape[1], mask.shape[1]), values, cross)


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
    # For Fortran all arrays are transposed: B Aᵀ is asked for.
    _call_dgemm(PLAIN_SECOND, _sizes(B.shape[0], A.shape[0], A.shape[1]), B, A, total)


@njit(**INNER)
def _sizes(m, n, k):
    sizes = np.empty(3, dtype=np.int32)
    sizes[0], sizes[1], sizes[2] = m, n, k
    return sizes


# Whoever calls these holds the arrays until they are back: addresses hold nothing.


@njit(**INNER)
def _call_dgemm(letters, sizes, A, B, total):
    m, n, k = sizes.ctypes.data, sizes.ctypes.data + 4, sizes.ctypes.data + 8
    letter, number, a, b = letters.ctypes.data, ONE.ctypes.data, A.ctypes.data, B.ctypes.data
    _dgemm(letter, letter + 1, m, n, k, number, a, k, b, k, number, total.ctypes.data, m)


@njit(**INNER)
def _call_dsyrk(letters, sizes, F, total):
    n, k, stride = sizes.ctypes.data, sizes.ctypes.data + 4, sizes.ctypes.data + 8
    letter, number = letters.ctypes.data, ONE.ctypes.data
    _dsyrk(letter, letter + 1, n, k, number, F.ctypes.data, stride, number, total.ctypes.data, n)
