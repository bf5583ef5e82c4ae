"""One pass over a block of rows: mask, standardised values, their squares, extremes, and who is seen."""

import numpy as np
from numba import types
from numba.extending import intrinsic

from halfseen.kernels import KERNEL, njit

# Rows whose bits are kept in one whole number.
WORD = 64


@njit(**KERNEL)
def prepare_columns(columns, shift, inverse_scale, mask, values, low, high):
    """Fill ``mask`` and ``values = [u | u²]`` with u = (x − shift)/scale, 0 where hidden.

    All have a row for each column of the table, ``mask`` and ``values`` with room for more: 0 there.
    ``low`` and ``high`` are lowered and raised to the extremes of the seen values. Without branches,
    and with the extremes apart, so that the compiler can work on several at a time.
    """
    d, rows = columns.shape
    mask[:, rows:] = 0.0
    values[:, rows:] = 0.0
    for i in range(d):
        s, f = shift[i], inverse_scale[i]
        for r in range(rows):
            x = float(columns[i, r])
            u = (x - s) * f
            u = u if x == x else 0.0
            mask[i, r] = 1.0 if x == x else 0.0
            values[i, r] = u
            values[d + i, r] = u * u
        least, most = low[i], high[i]
        for r in range(rows):
            x = float(columns[i, r])
            # Comparisons with NaN are false.
            least = x if x < least else least
            most = x if x > most else most
        low[i], high[i] = least, most


@njit(**KERNEL)
def pack_mask(mask, words):
    """Fill ``words`` with the bits of ``mask``, of which each row has a multiple of ``WORD``."""
    for i in range(words.shape[0]):
        for w in range(words.shape[1]):
            word = np.uint64(0)
            for k in range(WORD):
                word |= np.uint64(mask[i, WORD * w + k] != 0.0) << np.uint64(k)
            words[i, w] = word


@njit(**KERNEL)
def count_together(words, counts):
    """Fill ``counts`` with how many bits are set in each two rows of ``words``."""
    for i in range(words.shape[0]):
        for j in range(i + 1):
            together = np.uint64(0)
            for w in range(words.shape[1]):
                together += _count_bits(words[i, w] & words[j, w])
            counts[i, j] = counts[j, i] = together


@intrinsic
def _count_bits(context, word):
    """Return how many bits of a whole number are set."""

    def make(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), make
