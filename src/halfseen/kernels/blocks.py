"""One pass over a block of rows: mask, standardised values, their squares, and the extremes."""

import math

from halfseen.kernels import KERNEL, njit


@njit(**KERNEL)
def prepare_columns(columns, shift, inverse_scale, mask, values, low, high):
    """Do the same for a block that comes column by column: ``columns`` has a row for each of them.

    Without branches, and with the extremes apart, so that the compiler can work on several at a time.
    """
    d, rows = columns.shape
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
def prepare_block(X, shift, inverse_scale, mask, values, low, high):
    """Fill ``mask`` and ``values = [u | u²]`` with u = (x − shift)/scale, 0 where hidden.

    ``low`` and ``high`` are lowered and raised to the extremes of the seen values.
    """
    rows, d = X.shape
    for r in range(rows):
        for i in range(d):
            x = float(X[r, i])
            if math.isnan(x):
                mask[r, i] = 0.0
                values[r, i] = 0.0
                values[r, d + i] = 0.0
            else:
                u = (x - shift[i]) * inverse_scale[i]
                mask[r, i] = 1.0
                values[r, i] = u
                values[r, d + i] = u * u
                if x < low[i]:
                    low[i] = x
                if x > high[i]:
                    high[i] = x
