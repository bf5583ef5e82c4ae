"""Round numbers in original units for an axis on the modelled scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.report.tables import readable

Floats = NDArray[np.float64]

FEWEST, MOST = 3, 8


def ticks_in_units(transform: Any, low: float, high: float) -> tuple[list[float], list[str]] | None:
    """Return positions on the modelled scale and round numbers in original units.

    Several families of round numbers are tried, and the one that covers the axis most evenly is taken;
    None where no family has enough of them.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> log10 = SimpleNamespace(forward=np.log10, inverse=lambda z: 10.0**z)
    >>> ticks_in_units(log10, -1.2, 3.2)
    ([-1.0, 0.0, 1.0, 2.0, 3.0], ['0.1', '1', '10', '100', '1000'])
    """
    with np.errstate(all="ignore"):
        ends = np.asarray(transform.inverse(np.linspace(low, high, 33)), dtype=float)
    # Below its smallest value some transforms have no original.
    ends = ends[np.isfinite(ends)]
    if ends.size < 2 or ends.min() == ends.max():
        return None
    best, least = None, np.inf
    for numbers in _families(float(ends.min()), float(ends.max())):
        with np.errstate(all="ignore"):
            at = np.asarray(transform.forward(numbers), dtype=float)
        inside = np.isfinite(at) & (at >= low) & (at <= high)
        if not FEWEST <= inside.sum() <= MOST:
            continue
        order = np.argsort(at[inside])
        place = at[inside][order]
        gaps = np.diff(np.concatenate([[low], place, [high]]))
        # Crowded ticks are as bad as empty stretches.
        cost = gaps.max() + max(0.0, (high - low) / 9.0 - gaps[1:-1].min()) * 4.0
        if cost < least:
            best, least = (place, numbers[inside][order]), cost
    if best is None:
        return None
    return [float(p) for p in best[0]], [readable(x) for x in best[1]]


def _families(low: float, high: float) -> list[Floats]:
    """Return round numbers between two ends: powers of ten with 1, 1-3, 1-2-5, and even steps."""
    out = []
    if low > 0.0 or high > 0.0:
        bottom = low if low > 0.0 else high * 1e-6
        powers = 10.0 ** np.arange(np.floor(np.log10(bottom)), np.ceil(np.log10(high)) + 1.0)
        for digits in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
            out.append(np.sort(np.outer(powers, digits).ravel()))
        # Every other power, every third and so on, where there are many.
        out += [powers[::k] for k in (2, 3, 5, 10)]
    rough = (high - low) / 5.0
    for size in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5):
        step = size * 10.0 ** np.floor(np.log10(rough)) * 2.0
        first, last = np.ceil(low / step), np.floor(high / step)
        if last - first < 4 * MOST:
            out.append(step * np.arange(first, last + 1.0))
    return out
