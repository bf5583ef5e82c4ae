"""What the page says of each column: naive and recovered numbers, a histogram, limits, other units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.report.numbers import readable
from halfseen.report.shown_table import Kind, ShownColumn
from halfseen.solvers.summary import shorten

if TYPE_CHECKING:
    from halfseen.results import Fit
    from halfseen.solvers.inference.intervals import Intervals
    from halfseen.solvers.inference.original_scale import OriginalScale

Floats = NDArray[np.float64]

LONGEST_NAME = 200
# How far the axis reaches around the recovered mean, in recovered deviations; and never further than
# this many spans of what is seen, where a deviation is hardly determined.
REACH, MOST_SPANS = 3.3, 4.0
FEWEST_BINS, MOST_BINS = 8, 40
FEWEST_TICKS, MOST_TICKS = 3, 8
# Limits that are drawn one by one; more of them are drawn as a range.
MOST_LIMITS = 6
# Digits of a drawn value, counted from the spread of its column; and of one in original units.
DIGITS, UNIT_DIGITS = 4, 6


def number(x: Any, digits: int = 15) -> float | None:
    """Return a number that JSON can hold; None where it is not finite."""
    x = float(x)
    return float(f"{x:.{digits}g}") if np.isfinite(x) else None


def numbers(values: Iterable[Any], digits: int = 15) -> list[float | None]:
    """Return numbers that JSON can hold."""
    return [number(x, digits) for x in values]


def rounded(x: Floats, places: int) -> list[float | None]:
    """Round to so many decimals; None where not finite."""
    with np.errstate(all="ignore"):
        y = np.round(x, places)
    y = np.where(np.isfinite(y), y, x)
    return [float(v) if np.isfinite(v) else None for v in y]


def _ends(low: Any, high: Any) -> list[float | None] | None:
    ends = numbers([low, high])
    return None if None in ends else ends


def _in_units(transform: Any, z: Floats) -> Floats:
    """Bring values of the modelled scale back to the units of the table."""
    if transform is None:
        return z
    with np.errstate(all="ignore"):
        return np.asarray(transform.inverse(z), dtype=float)


def column_content(
    fit: Fit,
    j: int,
    transform: Any,
    cells: ShownColumn | None,
    intervals: Intervals | None,
    units: OriginalScale | None,
    wider: float,
) -> dict[str, Any]:
    """Everything about one column, but for the cells that are drawn.

    ``units`` is what the fit says in original units; None where no column was transformed. Axes are
    ``wider`` than those of a normal distribution.
    """
    name = shorten(fit.names[j], LONGEST_NAME)
    mean = float(fit.gaussian.mean[j])
    deviation = float(fit.gaussian.standard_deviations[j])
    span = _axis_range(cells, mean, wider * deviation)
    column = {
        "name": name,
        "label": name if transform is None else transform.label(name),
        "transform": None if transform is None else transform.name,
        **_shares(1.0 - fit.seen_share[j], cells),
        "recovered": {"mean": number(mean), "deviation": number(deviation)},
        "range": numbers(span),
        "ticks": None if transform is None else ticks_in_units(transform, *span),
        **_from_table(cells, transform, span),
    }
    for key, own in (("mean", "mean"), ("deviation", "standard_deviation")):
        limits = getattr(intervals, own, None)
        interval = None if limits is None else _ends(limits.lower[j], limits.upper[j])
        column["recovered"][f"{key}_interval"] = interval
    column["units"] = None if units is None else _means_in_units(units, j, column, cells, transform)
    if units is not None and transform is not None:
        column["original"] = _medians_in_units(units, j, column, transform)
    return column


def forget_substitutes(column: dict[str, Any]) -> None:
    """Leave out what is said with half a limit, of a column that has no limits of its own."""
    for part in (column, column["units"], column.get("original")):
        if part is not None:
            part["substituted"] = None


def _shares(unseen: float, cells: ShownColumn | None) -> dict[str, float | None]:
    """Return which share is hidden by a limit or a rule, and of which share nothing is known."""
    missing = 0.0 if cells is None else float(np.mean(cells.kind == Kind.ANYWHERE))
    return {
        # What rounding leaves is nothing.
        "hidden_share": number(max(unseen - missing, 0.0) if unseen - missing > 1e-12 else 0.0),
        "missing_share": None if cells is None else number(missing),
    }


def _axis_range(cells: ShownColumn | None, mean: float, deviation: float) -> tuple[float, float]:
    """Return the ends of an axis: what is seen, its limits, and where the recovered mass lies."""
    low, high = mean - REACH * deviation, mean + REACH * deviation
    if cells is None:
        return low, high
    ends = np.concatenate([cells.lower, cells.upper, cells.ranges.ends])
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


def _from_table(
    cells: ShownColumn | None, transform: Any, span: tuple[float, float]
) -> dict[str, Any]:
    """Return what the table itself says of a column."""
    out: dict[str, Any] = {
        "naive": {"mean": None, "deviation": None}, "substituted": None, "histogram": None,
        "kinds": {}, "not_drawn": 0, "limits": [], "limit_range": None,
    }  # fmt: skip
    if cells is None:
        return out
    if cells.seen.size:
        out["naive"] = {"mean": number(cells.seen.mean()), "deviation": number(cells.seen.std())}
    at, side, counts = _limits_of(cells)
    out["substituted"] = _substituted(cells, transform)
    out["histogram"] = _histogram(cells, at, span, transform)
    count = np.bincount(cells.kind, minlength=len(Kind))
    hidden = [kind for kind in Kind if kind not in (Kind.SEEN, Kind.ANYWHERE) and count[kind]]
    out["kinds"] = {kind.words: int(count[kind]) for kind in hidden}
    out["not_drawn"] = int(count[Kind.TIED] + count[Kind.CHANCE])
    if at.size > MOST_LIMITS:
        ends = {"from": number(at.min(), 12), "to": number(at.max(), 12), "many": at.size}
        out["limit_range"] = ends
    else:
        out["limits"] = [
            {"at": number(x, 12), "side": str(s), "count": int(c)}
            for x, s, c in zip(at, side, counts, strict=True)
        ]
    return out


def _histogram(
    cells: ShownColumn, limits: Floats, span: tuple[float, float], transform: Any
) -> dict[str, Any]:
    """Densities of what is seen, and of what is hidden, over bins that end at a common limit.

    A hidden cell is spread evenly over where it can be, up to the end of the axis: no model enters.
    Areas are shares of the cells of which something is known, as is that of the recovered density.
    """
    seen, n = cells.seen, max(int((cells.kind != Kind.ANYWHERE).sum()), 1)
    anchor, width = _grid(seen, limits, span)
    first, last = np.floor((span[0] - anchor) / width), np.ceil((span[1] - anchor) / width)
    edges = anchor + width * np.arange(first, last + 1.0)
    # Rounding may not carry a value that stands on an edge into the bin before.
    place = np.floor((seen - anchor) / width + 1e-6) - first
    inside = np.clip(place, 0, edges.size - 2).astype(np.intp)
    counts = np.bincount(inside, minlength=edges.size - 1)
    out: dict[str, Any] = {
        "start": number(edges[0]),
        "width": number(width),
        "seen": numbers(counts / (n * width), 4),
        "counts": counts.tolist(),
        "hidden": numbers(_spread(cells, edges) / (n * width), 4),
        "texts": _texts(cells, edges),
    }
    if transform is not None:
        edges = out["start"] + out["width"] * np.arange(counts.size + 1.0)
        out["edges"] = numbers(_in_units(transform, edges), 4)
    return out


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


def _spread(cells: ShownColumn, edges: Floats) -> Floats:
    """Cells in each bin when every hidden cell is spread evenly over where it can be."""
    known = np.isin(cells.kind, (Kind.BELOW, Kind.ABOVE, Kind.BETWEEN))
    ends = np.stack([cells.lower[known], cells.upper[known]], axis=1)
    pairs, counts = np.unique(ends, axis=0, return_counts=True)
    several = cells.ranges
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


def _texts(cells: ShownColumn, edges: Floats) -> list[dict[str, Any]]:
    """Hidden shares to be written, and over which place.

    ``ends`` says at which ends of the axis the text may stand instead.
    """
    kinds = (
        (Kind.BELOW, "hidden", "l"),
        (Kind.ABOVE, "hidden", "r"),
        (Kind.BETWEEN, "between limits", ""),
    )
    out = []
    for code, word, other in kinds:
        chosen = cells.kind == code
        if chosen.any():
            # Over the stretch that all such cells can lie in, where there is one.
            a = max(edges[0], float(cells.lower[chosen].max()))
            b = min(edges[-1], float(cells.upper[chosen].min()))
            out.append((float(chosen.mean()), 0.5 * (a + b), word, other))
    chosen = cells.kind == Kind.EITHER
    if chosen.any():
        ends = cells.ranges.ends
        left, right = ends.min() - edges[0], edges[-1] - ends.max()
        at = edges[0] + 0.5 * left if left > right else edges[-1] - 0.5 * right
        two = ends.size == 2
        word = "hidden, on either side" if two else "hidden, in one of several ranges"
        out.append((float(chosen.mean()), at, word, "lr" if two else ""))
    return [
        {"share": share, "at": number(at), "word": word, "ends": other}
        for share, at, word, other in out
    ]


def _limits_of(cells: ShownColumn) -> tuple[Floats, NDArray[np.str_], NDArray[np.intp]]:
    """Return the limits of hidden cells: where, on which side values are hidden, how many are."""
    limits = [
        (*_distinct(cells.upper[cells.kind == Kind.BELOW]), "below"),
        (*_distinct(cells.lower[cells.kind == Kind.ABOVE]), "above"),
    ]
    many = int(cells.ranges.cells.sum())
    for ends, side in ((cells.ranges.upper, "below"), (cells.ranges.lower, "above")):
        at = _distinct(ends[np.isfinite(ends)])[0]
        limits.append((at, np.full(at.size, many), side))
    return (
        np.concatenate([at for at, _, _ in limits]),
        np.concatenate([np.full(at.size, side) for at, _, side in limits]),
        np.concatenate([counts for _, counts, _ in limits]),
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


def _substituted(cells: ShownColumn, transform: Any) -> dict[str, Any] | None:
    """Mean and deviation after the usual patch: half the limit in place of what lies below it.

    Values above a limit are set to it, those between limits to the middle, the rest is left out. None
    where nothing lies below a limit, or where half of a limit is no smaller than the limit.
    """
    below, above, between = (cells.kind == code for code in (Kind.BELOW, Kind.ABOVE, Kind.BETWEEN))
    if not below.any() or (cells.kind == Kind.EITHER).any():
        return None
    modelled = cells.seen, cells.upper[below], cells.lower[above]
    ends = cells.lower[between], cells.upper[between]
    seen, limit, top, low, high = (_in_units(transform, z) for z in (*modelled, *ends))
    if not (limit > 0.0).all() or not (seen >= 0.0).all():
        return None
    half = 0.5 * limit
    with np.errstate(all="ignore"):
        patch = half if transform is None else np.asarray(transform.forward(half), dtype=float)
    patched = np.concatenate([cells.seen, patch, modelled[2], 0.5 * (ends[0] + ends[1])])
    if not np.isfinite(patched).all():
        return None
    return {
        "mean": number(patched.mean()),
        "deviation": number(patched.std()),
        "units_mean": number(np.concatenate([seen, half, top, 0.5 * (low + high)]).mean()),
    }


def _means_in_units(
    units: OriginalScale, j: int, column: dict[str, Any], cells: ShownColumn | None, transform: Any
) -> dict[str, Any]:
    """Arithmetic mean and a high quantile of a column, and the naive means beside."""
    naive, patched = None, column["substituted"]
    if cells is not None and cells.seen.size:
        naive = number(_in_units(transform, cells.seen).mean())
    return {
        "naive": naive,
        "substituted": None if patched is None else patched["units_mean"],
        "mean": number(units.mean[j]),
        "mean_interval": _ends(units.mean_lower[j], units.mean_upper[j]),
        "high": number(units.quantiles[j, 0]),
        "high_interval": _ends(units.quantiles_lower[j, 0], units.quantiles_upper[j, 0]),
    }


def _medians_in_units(
    units: OriginalScale, j: int, column: dict[str, Any], transform: Any
) -> dict[str, Any]:
    """Medians in original units: means of the modelled scale, transformed back; and the limits.

    Their interval is that of the fit: a power that was learned makes it longer.
    """

    def back(z: float | None) -> float | None:
        return None if z is None else number(_in_units(transform, np.array([z]))[0])

    patched, ranged = column["substituted"], column["limit_range"]
    return {
        "word": "geometric mean" if transform.name.startswith("log") else "median",
        "naive": back(column["naive"]["mean"]),
        "substituted": None if patched is None else back(patched["mean"]),
        "recovered": back(column["recovered"]["mean"]),
        "interval": _ends(units.median_lower[j], units.median_upper[j]),
        "limits": [back(limit["at"]) for limit in column["limits"]],
        "limit_range": None if ranged is None else [back(ranged[end]) for end in ("from", "to")],
    }


def drawn_cells(cells: ShownColumn, rows: NDArray[np.intp], transform: Any) -> dict[str, Any]:
    """Return the drawn cells of a column: a letter for what is known, and the value or the limit."""
    kind, low, high = cells.kind[rows], cells.lower[rows], cells.upper[rows]
    at = np.where(kind == Kind.BELOW, high, low)
    between = np.flatnonzero(kind == Kind.BETWEEN)
    at[between] = 0.5 * (low[between] + high[between])
    spread = float(cells.seen.std()) if cells.seen.size > 1 else 0.0
    if not spread > 0.0:
        spread = float(np.abs(at[np.isfinite(at)]).max(initial=0.0)) or 1.0
    out: dict[str, Any] = {
        "kind": "".join(np.array([one.letter for one in Kind])[kind]),
        "at": rounded(at, DIGITS - int(np.floor(np.log10(spread)))),
        "half": {str(k): number(0.5 * (high[k] - low[k]), 5) for k in between},
    }
    if transform is not None:
        out["original"] = numbers(_in_units(transform, at), UNIT_DIGITS)
    return out


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
    ends = _in_units(transform, np.linspace(low, high, 33))
    # Below its smallest value some transforms have no original.
    ends = ends[np.isfinite(ends)]
    if ends.size < 2 or ends.min() == ends.max():
        return None
    best, least = None, np.inf
    for family in _families(float(ends.min()), float(ends.max())):
        with np.errstate(all="ignore"):
            at = np.asarray(transform.forward(family), dtype=float)
        inside = np.isfinite(at) & (at >= low) & (at <= high)
        if not FEWEST_TICKS <= inside.sum() <= MOST_TICKS:
            continue
        order = np.argsort(at[inside])
        place = at[inside][order]
        gaps = np.diff(np.concatenate([[low], place, [high]]))
        # Crowded ticks are as bad as empty stretches.
        cost = gaps.max() + max(0.0, (high - low) / 9.0 - gaps[1:-1].min()) * 4.0
        if cost < least:
            best, least = (place, family[inside][order]), cost
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
        if last - first < 4 * MOST_TICKS:
            out.append(step * np.arange(first, last + 1.0))
    return out
