"""What the page says of each column: naive and recovered numbers, a histogram, its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.report.cells import ABOVE, BELOW, BETWEEN, EITHER, TIED, WORDS, Cells

Floats = NDArray[np.float64]

# How far the axis reaches around the recovered mean, in recovered deviations; and never further than
# this many spans of what is seen, where a deviation is hardly determined.
REACH, MOST_SPANS = 3.3, 4.0
FEWEST_BINS, MOST_BINS = 8, 40
# Limits that are drawn one by one; more of them are drawn as a range.
MOST_LIMITS = 6


def number(x: Any, digits: int = 15) -> float | None:
    """Return a number that JSON can hold; None where it is not finite."""
    x = float(x)
    return float(f"{x:.{digits}g}") if np.isfinite(x) else None


def axis_range(cells: Cells | None, j: int, mean: float, deviation: float) -> tuple[float, float]:
    """Return the ends of an axis: what is seen, its limits, and where the recovered mass lies."""
    low, high = mean - REACH * deviation, mean + REACH * deviation
    if cells is None:
        return low, high
    ends = np.concatenate([cells.lower(j), cells.upper(j), cells.pieces(j).ends])
    ends = ends[np.isfinite(ends)]
    if ends.size == 0:
        return low, high
    first, last = float(ends.min()), float(ends.max())
    far = MOST_SPANS * (last - first)
    if far > 0.0:
        low, high = max(low, first - far), min(high, last + far)
    # A limit at the very edge would leave no room for what it hides.
    room = 0.5 * min(deviation, far / MOST_SPANS or deviation)
    return min(low, first - room), max(high, last + room)


def histogram(cells: Cells, j: int, span: tuple[float, float]) -> dict[str, Any]:
    """Densities of what is seen, and of what is hidden, over bins that end at a common limit.

    A hidden cell is spread evenly over where it can be, up to the end of the axis: no model enters. All
    areas together are the share of the cells of which something is known.
    """
    seen, n = cells.seen(j), len(cells.values)
    anchor, width = _grid(seen, limits_of(cells, j)[0], span)
    first, last = np.floor((span[0] - anchor) / width), np.ceil((span[1] - anchor) / width)
    edges = anchor + width * np.arange(first, last + 1.0)
    # Rounding may not carry a value that stands on an edge into the bin before.
    place = np.floor((seen - anchor) / width + 1e-6) - first
    inside = np.clip(place, 0, edges.size - 2).astype(np.intp)
    counts = np.bincount(inside, minlength=edges.size - 1)
    spread = _spread(cells, j, edges)
    return {
        "start": number(edges[0]),
        "width": number(width),
        "seen": [number(c / (n * width), 4) for c in counts],
        "counts": counts.tolist(),
        "hidden": [number(m / (n * width), 4) for m in spread],
        "texts": _texts(cells, j, edges),
    }


def _grid(seen: Floats, limits: Floats, span: tuple[float, float]) -> tuple[float, float]:
    """Return an edge and the width of bins; one limit, or two, stand on edges."""
    low, high = span
    stretch = float(np.ptp(seen)) if seen.size > 1 else 0.0
    if stretch == 0.0:
        stretch = (high - low) / 2.0
    count = int(np.clip(np.ceil(np.sqrt(max(seen.size, 1))), FEWEST_BINS, MOST_BINS))
    width = max(stretch / count, (high - low) / (4 * MOST_BINS))
    if limits.size not in (1, 2):
        return float(seen.min()) if seen.size else low, width
    gap = float(np.ptp(limits))
    if gap > 0.5 * width:
        width = gap / np.ceil(gap / width)
    return float(limits[0]), float(width)


def _spread(cells: Cells, j: int, edges: Floats) -> Floats:
    """Cells in each bin when every hidden cell is spread evenly over where it can be."""
    kind = cells.kind(j)
    known = (kind == BELOW) | (kind == ABOVE) | (kind == BETWEEN)
    ends = np.stack([cells.lower(j)[known], cells.upper(j)[known]], axis=1)
    pairs, counts = np.unique(ends, axis=0, return_counts=True)
    several = cells.pieces(j)
    low = np.clip(np.concatenate([pairs[:, 0], several.lower]), edges[0], edges[-1])
    high = np.clip(np.concatenate([pairs[:, 1], several.upper]), edges[0], edges[-1])
    length = np.maximum(high - low, 1e-12 * (edges[-1] - edges[0]))
    # A cell that may lie in one of several ranges is shared among them by their lengths.
    part = length[counts.size :]
    whole = np.bincount(several.owner, weights=part, minlength=several.cells.size)
    shared = (several.cells / np.where(whole > 0.0, whole, 1.0))[several.owner] * part
    mass = np.concatenate([counts, shared])
    below = [np.sum(mass * np.clip((e - low) / length, 0.0, 1.0)) for e in edges]
    # What rounding leaves in a bin beside a limit is nothing.
    return np.where(np.diff(below) > 1e-6, np.diff(below), 0.0)


def _texts(cells: Cells, j: int, edges: Floats) -> list[dict[str, Any]]:
    """Hidden shares to be written, and over which place.

    ``ends`` says at which ends of the axis the text may stand instead.
    """
    kind, low, high = cells.kind(j), cells.lower(j), cells.upper(j)
    found = []
    for code, word, other in (
        (BELOW, "hidden", "l"),
        (ABOVE, "hidden", "r"),
        (BETWEEN, "between limits", ""),
    ):
        chosen = kind == code
        if chosen.any():
            # Over the stretch that all such cells can lie in, where there is one.
            a = max(edges[0], float(low[chosen].max()))
            b = min(edges[-1], float(high[chosen].min()))
            found.append((float(chosen.mean()), 0.5 * (a + b), word, other))
    if (kind == EITHER).any():
        ends = cells.pieces(j).ends
        left, right = ends.min() - edges[0], edges[-1] - ends.max()
        at = edges[0] + 0.5 * left if left > right else edges[-1] - 0.5 * right
        word = "hidden, on either side" if ends.size == 2 else "hidden, in one of several ranges"
        found.append((float((kind == EITHER).mean()), at, word, "lr" if ends.size == 2 else ""))
    return [
        {"share": share, "at": number(at), "word": word, "ends": other}
        for share, at, word, other in found
    ]


def limits_of(cells: Cells, j: int) -> tuple[Floats, NDArray[np.str_], NDArray[np.intp]]:
    """Return the limits of hidden cells: where, on which side values are hidden, how many are."""
    kind = cells.kind(j)
    found = [
        (*_distinct(cells.upper(j)[kind == BELOW]), "below"),
        (*_distinct(cells.lower(j)[kind == ABOVE]), "above"),
    ]
    several = cells.pieces(j)
    many = int(several.cells.sum())
    for ends, side in ((several.upper, "below"), (several.lower, "above")):
        at = _distinct(ends[np.isfinite(ends)])[0]
        found.append((at, np.full(at.size, many), side))
    return (
        np.concatenate([at for at, _, _ in found]),
        np.concatenate([np.full(at.size, side) for at, _, side in found]),
        np.concatenate([counts for _, counts, _ in found]),
    )


def _distinct(ends: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return distinct limits and how often each occurs.

    The same limit may differ in its last bits once it was standardised and brought back.
    """
    at, counts = np.unique(ends, return_counts=True)
    if at.size == 0:
        return at, counts
    size = np.abs(at).max() + np.ptp(at)
    first = np.concatenate([[True], np.diff(at) > 1e-13 * size])
    together = np.bincount(np.cumsum(first) - 1, weights=counts)
    return at[first], together.astype(np.intp)


def limits_to_draw(cells: Cells, j: int) -> dict[str, Any]:
    """Limits one by one, or the range of them where there are many."""
    at, side, counts = limits_of(cells, j)
    if at.size > MOST_LIMITS:
        ends = {"from": number(at.min(), 12), "to": number(at.max(), 12), "many": at.size}
        return {"limits": [], "limit_range": ends}
    limits = [
        {"at": number(x, 12), "side": str(s), "count": int(c)}
        for x, s, c in zip(at, side, counts, strict=True)
    ]
    return {"limits": limits, "limit_range": None}


def kinds(cells: Cells, j: int) -> dict[str, int]:
    """Count the hidden cells by what is known of them."""
    count = np.bincount(cells.kind(j), minlength=TIED + 1)
    return {word: int(count[code]) for code, word in WORDS.items() if count[code]}


def substituted(cells: Cells, j: int, transform: Any) -> dict[str, Any] | None:
    """Mean and deviation after the usual patch: half the limit in place of what lies below it.

    Values above a limit are set to it, those between limits to the middle, the rest is left out. None
    where nothing lies below a limit, or where half of a limit is no smaller than the limit.
    """
    kind, low, high = cells.kind(j), cells.lower(j), cells.upper(j)
    if not (kind == BELOW).any() or (kind == EITHER).any():
        return None

    def original(z: Floats) -> Floats:
        return z if transform is None else np.asarray(transform.inverse(z), dtype=float)

    limit, seen = original(high[kind == BELOW]), cells.seen(j)
    if not (limit > 0.0).all() or not (original(seen) >= 0.0).all():
        return None
    half = 0.5 * limit
    if transform is not None:
        with np.errstate(all="ignore"):
            half = np.asarray(transform.forward(half), dtype=float)
    between = 0.5 * (low[kind == BETWEEN] + high[kind == BETWEEN])
    patched = np.concatenate([seen, half, low[kind == ABOVE], between])
    if not np.isfinite(patched).all():
        return None
    ends = original(low[kind == BETWEEN]), original(high[kind == BETWEEN])
    in_units = [
        original(seen),
        0.5 * limit,
        original(low[kind == ABOVE]),
        0.5 * (ends[0] + ends[1]),
    ]
    return {
        "mean": number(patched.mean()),
        "deviation": number(patched.std()),
        "units_mean": number(np.concatenate(in_units).mean()),
    }
