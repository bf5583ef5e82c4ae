"""Numbers as people read them."""

from __future__ import annotations

import numpy as np

# What stands for a number that is not known.
DASH = "–"


def percent(share: float) -> str:
    """Show a share in percent, with a decimal where it is small."""
    if 0.0 < share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.0995 and share > 0.0 else f"{100 * share:.0f} %"


def signed(x: float) -> str:
    """Show a correlation with a sign and two decimals."""
    text = f"{x:+.2f}"
    return "0.00" if float(text) == 0.0 else text.replace("-", "−")


def places_for(error: float | None, value: float | None) -> int:
    """Decimals that show two digits of an error; four digits of the value where there is none."""
    size = error if error else value
    if not size or not np.isfinite(size):
        return 3
    digits = 1 if error else 3
    return int(np.clip(digits - np.floor(np.log10(abs(size))), 0, 12))


def real_minus(text: str) -> str:
    """Write a minus sign as one, and none before a zero."""
    return (text.lstrip("-") if float(text) == 0.0 else text).replace("-", "−")


def show(x: float | None, places: int) -> str:
    """Show a number with so many decimals and a real minus sign."""
    if x is None:
        return DASH
    if x and not 1e-9 < abs(x) < 1e9:
        return f"{x:.4g}".replace("-", "−")
    return real_minus(f"{x:.{places}f}")


def readable(x: float, digits: int = 6) -> str:
    """Show a number to so many digits, without an exponent up to ten millions.

    Whole numbers are shown whole.

    Examples
    --------
    >>> readable(150000.0), readable(1234567.0), readable(0.05), readable(-2.5), readable(1e9)
    ('150000', '1234567', '0.05', '−2.5', '1e+09')
    """
    if 1.0 <= abs(x) < 1e7 and abs(x - round(x)) <= 1e-9 * abs(x):
        return real_minus(f"{round(x)}")
    text = f"{x:.{digits}g}"
    if "e" in text and 1e-6 < abs(x) < 1e7:
        text = f"{float(text):.{0 if abs(x) > 1.0 else 12}f}"
        text = text.rstrip("0") if "." in text else text
    return real_minus(text)
