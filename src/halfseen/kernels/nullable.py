"""A column with a bit for each row that says whether it holds a value, as Arrow keeps it."""

import math

import numpy as np

from halfseen.kernels import KERNEL, njit


@njit(**KERNEL)
def fill_nullable(values, bits, out):
    """Copy ``values`` to ``out``, NaN where the bit of a row (lowest first in each byte) is 0."""
    # Without branches, and with every value read: the compiler works on several rows at a time.
    for row in range(values.size):
        value = values[row]
        out[row] = value if (bits[row >> 3] >> np.uint8(row & 7)) & 1 else math.nan
