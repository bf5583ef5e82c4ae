"""All numbers of the report, as one plain dictionary that JSON can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri, gammaln

from halfseen.data.moments import PairMoments
from halfseen.report import words
from halfseen.report.cells import ANYWHERE, BELOW, BETWEEN, LETTERS, TIED, Cells, read_cells
from halfseen.report.columns import (
    axis_range,
    histogram,
    kinds,
    limits_to_draw,
    number,
    substituted,
)
from halfseen.report.ticks import ticks_in_units
from halfseen.report.units import in_units, median_interval, medians, original_scale
from halfseen.solvers.full_information.ascent import NEAR_THE_TOP
from halfseen.solvers.summary import REGULARISED, monte_carlo_share, shorten, steps_taken

if TYPE_CHECKING:
    from halfseen.results import Fit
    from halfseen.solvers.inference.intervals import Intervals

Floats = NDArray[np.float64]

LEVEL = 0.95
# Square root of the 95 % quantile of chi-square with two degrees of freedom.
NORMAL_ELLIPSE = 2.447747
# How much wider than those of a normal distribution axes may be.
MOST_WIDENED = 2.0
# What keeps the page small: rows that are drawn, cells of them, columns, and numbers of the trace.
MOST_ROWS, MOST_CELLS, MOST_COLUMNS, MOST_TRACE = 2000, 30_000, 100, 6_000
LONGEST_NAME = 200
# Gains in log-likelihood below this are drawn as this: a thousandth of the least that is told in words.
SMALLEST_DRAWN_GAIN = 1e-6
# Digits of a drawn value, counted from the spread of its column; and of one in original units.
DIGITS, UNIT_DIGITS = 4, 6


def report_content(
    fit: Fit,
    diagnosis: Any = None,
    *,
    call: str | None = None,
    title: str | None = None,
    most_columns: int = MOST_COLUMNS,
) -> dict[str, Any]:
    """Return everything that the page shows, as a dictionary of plain values.

    Parameters
    ----------
    fit : Fit
    diagnosis : Diagnosis, optional
        What ``halfseen.diagnose`` found.
    call : str, optional
        The call that repeats the analysis; put together from the fit by default.
    title : str, optional
    most_columns : int
        How many columns are shown.

    Returns
    -------
    dict
        Numbers, texts, lists and dictionaries; a number that is not known is None.

    Examples
    --------
    >>> import halfseen as hs
    >>> from halfseen.report import report_content
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 500, random_state=0)
    >>> column = report_content(hs.fit(X, rule, random_state=0))["columns"][0]
    >>> column["naive"]["mean"] > column["recovered"]["mean"]
    True
    """
    shown = min(len(fit.names), most_columns)
    cells = read_cells(fit)
    if cells is not None:
        cells = cells.first(shown)
    intervals = None
    if fit.uncertainty is not None:
        intervals = fit.confidence_interval(LEVEL).without_labels()
    transforms = _transforms(fit)
    scale = _common_scale(transforms)
    columns = [_column(fit, cells, intervals, transforms[j], j) for j in range(shown)]
    units = original_scale(fit, LEVEL)
    for j, column in enumerate(columns):
        # Where the scale is the same for all, it is said once, not in every label.
        column["short"] = column["label"] if scale is None else column["name"]
        column["units"] = (
            None if units is None else in_units(units, cells, column, transforms[j], j)
        )
        if units is not None and transforms[j] is not None:
            column["original"]["interval"] = median_interval(units, j)
    pairs = _pairs(fit, cells, intervals, columns)
    if cells is not None:
        # A transformed cell is held in its original units too.
        weight = shown + sum(t is not None for t in transforms[:shown])
        rows = _sample(len(cells.values), weight)
        for j, column in enumerate(columns):
            column["cells"] = _cells(cells, j, rows, transforms[j])
    else:
        rows = np.empty(0, dtype=np.intp)
    transformed = any(t is not None for t in transforms)
    return {
        "title": title or "What a half-seen table says",
        "method": fit.method,
        "rows": fit.rows,
        "drawn_rows": _row_names(cells, rows),
        "has_table": cells is not None,
        "transformed": transformed,
        "scale": scale,
        "level": LEVEL,
        "law": _law(fit),
        "learned": words.learned(fit, columns, pairs),
        "left_out": words.hidden_names(fit.names, shown),
        "status": words.status_of(fit),
        "columns": columns,
        "pairs": pairs,
        "steps_taken": steps_taken(fit),
        "climb": _climb(fit),
        "trace": _trace(fit, shown),
        "monte_carlo": _monte_carlo(fit, shown),
        "assumptions": words.assumptions(fit, transformed),
        "checks": words.checks(diagnosis),
        "paper": words.PAPER,
        "call": call or words.call_of(fit),
        "versions": words.versions(),
    }


def _law(fit: Fit) -> dict[str, Any]:
    """Say what curves of a standard column and pair are: degrees of freedom, peak, radius of 95 %.

    Squared distances of two columns are chi-square with 2 degrees of freedom, and twice F with 2 and ν
    for a t distribution.
    """
    if np.isinf(fit.degrees):
        return {"degrees": None, "peak": 1.0 / np.sqrt(2.0 * np.pi), "ellipse": NORMAL_ELLIPSE}
    nu = fit.degrees
    peak = float(np.exp(gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu)) / np.sqrt(nu * np.pi))
    return {"degrees": nu, "peak": peak, "ellipse": float(np.sqrt(2.0 * fdtri(2.0, nu, LEVEL)))}


def _transforms(fit: Fit) -> list[Any]:
    """Return the transformation of each column; None where there is none."""
    if fit.transforms is None:
        return [None] * len(fit.names)
    return [None if t.name == "none" else t for t in fit.transforms]


def _common_scale(transforms: list[Any]) -> str | None:
    """Name of the transformation, where all columns have the same."""
    names = {None if t is None else str(t.name) for t in transforms}
    return names.pop() if len(names) == 1 else None


def _column(
    fit: Fit, cells: Cells | None, intervals: Intervals | None, transform: Any, j: int
) -> dict[str, Any]:
    """Everything about one column."""
    g, name = fit.gaussian, shorten(fit.names[j], LONGEST_NAME)
    mean, deviation = float(g.mean[j]), float(g.standard_deviations[j])
    # Ellipses of heavy tails are larger; the heaviest would leave no room for the rest.
    wider = min(_law(fit)["ellipse"] / NORMAL_ELLIPSE, MOST_WIDENED)
    span = axis_range(cells, j, mean, wider * deviation)
    found = {
        "mean": number(mean),
        "deviation": number(deviation),
        "mean_interval": None if intervals is None else _limits(intervals.mean, j),
        "deviation_interval": None
        if intervals is None
        else _limits(intervals.standard_deviation, j),
    }
    naive: dict[str, Any] = {"mean": None, "deviation": None}
    column: dict[str, Any] = {
        "name": name,
        "label": name if transform is None else transform.label(name),
        "transform": None if transform is None else transform.name,
        "hidden_share": number(1.0 - fit.seen_share[j]),
        "recovered": found,
        "naive": naive,
        "substituted": None,
        "range": [number(end) for end in span],
        "ticks": None,
        "histogram": None,
        "kinds": {},
        "not_drawn": 0,
        "limits": [],
        "limit_range": None,
    }
    if cells is not None:
        seen = cells.seen(j)
        if seen.size:
            naive["mean"], naive["deviation"] = number(seen.mean()), number(seen.std())
        column["substituted"] = substituted(cells, j, transform)
        column["histogram"] = histogram(cells, j, span)
        column["kinds"] = kinds(cells, j)
        column["not_drawn"] = int(np.isin(cells.kind(j), (ANYWHERE, TIED)).sum())
        column.update(limits_to_draw(cells, j))
    if transform is not None:
        column["ticks"] = ticks_in_units(transform, *span)
        if column["histogram"] is not None:
            _edges_in_units(column["histogram"], transform)
        column["original"] = medians(column, transform)
    return column


def _edges_in_units(h: dict[str, Any], transform: Any) -> None:
    """Add the edges of the bins in original units."""
    edges = h["start"] + h["width"] * np.arange(len(h["seen"]) + 1.0)
    with np.errstate(all="ignore"):
        h["edges"] = [number(x, 4) for x in np.asarray(transform.inverse(edges), dtype=float)]


def _limits(limits: Any, j: int) -> list[float | None] | None:
    low, high = number(limits.lower[j]), number(limits.upper[j])
    return None if low is None or high is None else [low, high]


def _pairs(
    fit: Fit, cells: Cells | None, intervals: Intervals | None, columns: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Correlations of every pair, the upper triangle row by row."""
    d = len(columns)
    if d < 2:
        return None
    at = np.triu_indices(d, 1)
    none: list[Any] = [None] * at[0].size
    naive, together, ellipses = none, none, none
    if cells is not None:
        names = [c["name"] for c in columns]
        correlation, counts, mean, deviation = _available_cases(cells.values, names)
        naive = [number(r, 5) for r in correlation[at]]
        together = [int(c) for c in counts[at]]
        both = zip(at[0].tolist(), at[1].tolist(), strict=True)
        ellipses = [_ellipse_of(mean, deviation, i, j) for i, j in both]
    lower, upper = none, none
    if intervals is not None:
        lower = [number(r, 5) for r in intervals.correlation.lower[:d, :d][at]]
        upper = [number(r, 5) for r in intervals.correlation.upper[:d, :d][at]]
    return {
        "naive": naive,
        "recovered": [number(r, 5) for r in fit.gaussian.correlation[:d, :d][at]],
        "lower": lower,
        "upper": upper,
        "together": together,
        "ellipses": ellipses,
    }


def _ellipse_of(mean: Floats, deviation: Floats, i: int, j: int) -> list[float | None] | None:
    """Mean and deviation of column i and of column j, over the rows in which both are seen.

    Rounded to a hundredth of the deviation, about a pixel.
    """
    spread = np.array([deviation[i, j], deviation[j, i]])
    if not (np.isfinite(spread) & (spread > 0.0)).all():
        return None
    places = 2 - np.floor(np.log10(spread)).astype(int)
    means = [_rounded(m, p)[0] for m, p in zip((mean[[i], j], mean[[j], i]), places, strict=True)]
    return [means[0], number(spread[0], 3), means[1], number(spread[1], 3)]


def _available_cases(values: Floats, names: list[str]) -> tuple[Floats, Floats, Floats, Floats]:
    """Correlations over the rows in which both columns are seen, and how many these are.

    Also the means and deviations over the same rows: at [i, j] those of column i.
    """
    m = PairMoments.from_array(values, names)
    with np.errstate(all="ignore"):
        first, second = m.first / m.counts, m.second / m.counts
        variance = second - first**2
        variance[variance <= 1e-14 * second] = np.nan
        spread = np.sqrt(variance)
        correlation = (m.cross / m.counts - first * first.T) / (spread * spread.T)
        mean = m.shift[:, None] + m.scale[:, None] * first
    # Two rows always lie on a line.
    correlation = np.where(m.counts > 2, np.clip(correlation, -1.0, 1.0), np.nan)
    return correlation, m.counts, mean, m.scale[:, None] * spread


def _sample(n: int, cells_of_row: int) -> NDArray[np.intp]:
    """Return rows spread evenly over the table, as many as the page can hold."""
    many = min(n, MOST_ROWS, MOST_CELLS // cells_of_row)
    return np.unique(np.linspace(0, n - 1, many).round().astype(np.intp))


def _row_names(cells: Cells | None, rows: NDArray[np.intp]) -> list[str]:
    if cells is None:
        return []
    if cells.labels is None:
        return [f"row {r}" for r in rows]
    return [shorten(cells.labels[r], 60) for r in rows]


def _cells(cells: Cells, j: int, rows: NDArray[np.intp], transform: Any) -> dict[str, Any]:
    """Return the drawn cells of a column: a letter for what is known, and the value or the limit."""
    kind, low, high = cells.kind(j)[rows], cells.lower(j)[rows], cells.upper(j)[rows]
    at = np.where(kind == BELOW, high, low)
    between = kind == BETWEEN
    at[between] = 0.5 * (low[between] + high[between])
    seen = cells.seen(j)
    spread = float(seen.std()) if seen.size > 1 else 0.0
    if not spread > 0.0:
        known = at[np.isfinite(at)]
        spread = float(np.abs(known).max(initial=0.0)) or 1.0
    places = DIGITS - int(np.floor(np.log10(spread)))
    out: dict[str, Any] = {
        "kind": "".join(LETTERS[kind]),
        "at": _rounded(at, places),
        "half": {
            str(k): number(0.5 * (high[k] - low[k]), 5) for k in np.flatnonzero(kind == BETWEEN)
        },
    }
    if transform is not None:
        with np.errstate(all="ignore"):
            back = np.asarray(transform.inverse(at), dtype=float)
        out["original"] = [number(x, UNIT_DIGITS) for x in back]
    return out


def _rounded(x: Floats, places: int) -> list[float | None]:
    """Round to so many decimals; None where not finite."""
    with np.errstate(all="ignore"):
        y = np.round(x, places)
    y = np.where(np.isfinite(y), y, x)
    return [float(v) if np.isfinite(v) else None for v in y]


def _climb(fit: Fit) -> dict[str, Any] | None:
    """Return what was left to be gained in log-likelihood by step: as estimated, and as it came."""
    found = [fit.history.get(key) for key in ("gains", "log_likelihoods")]
    if any(one is None for one in found):
        return None
    gains, values = (np.asarray(one, dtype=float) for one in found)
    if gains.ndim != 1 or gains.shape != values.shape or len(gains) < 2:
        return None
    steps = _some_steps(len(gains), MOST_TRACE)
    # Estimates that are pulled towards something do not climb.
    climbs = str(fit.history.get("covariance_structure")) not in REGULARISED
    return {
        "steps": (steps + 1).tolist(),
        "all_steps": len(gains),
        "climbs": climbs,
        "enough": NEAR_THE_TOP,
        "smallest": SMALLEST_DRAWN_GAIN,
        "estimated": [number(x, 4) for x in np.maximum(gains[steps], SMALLEST_DRAWN_GAIN)],
        # Where points changed, a step may seem to have been higher than the last one.
        "gained": [
            number(x, 4) if x >= SMALLEST_DRAWN_GAIN else None for x in (values[-1] - values)[steps]
        ]
        if climbs
        else None,
    }


def _some_steps(count: int, most: int) -> NDArray[np.intp]:
    """Return the positions of steps that are drawn, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _trace(fit: Fit, shown: int) -> dict[str, Any] | None:
    """Return the means over the steps, in standard errors from the estimate."""
    found = fit.history.get("trace", fit.history.get("iterates"))
    trace = None if found is None else np.asarray(found, dtype=float)
    if trace is None or trace.ndim != 2 or len(trace) < 2:
        return None
    trace = trace[:, :shown]
    mean = fit.gaussian.mean[:shown]
    complete = fit.gaussian.standard_deviations[:shown] / np.sqrt(fit.rows)
    unit, word = complete, "standard errors that complete data would have"
    if fit.uncertainty is not None:
        own = np.asarray(fit.uncertainty.mean[:shown], dtype=float)
        if (np.isfinite(own) & (own > 0.0)).all():
            unit, word = own, "standard errors"
    steps = _some_steps(len(trace), max(2, MOST_TRACE // shown))
    moved = (trace[steps] - mean) / unit
    return {
        "unit": word,
        "steps": (steps + 1).tolist(),
        "all_steps": len(trace),
        "columns": [[number(x, 4) for x in moved[:, j]] for j in range(shown)],
    }


def _monte_carlo(fit: Fit, shown: int) -> dict[str, Any] | None:
    """Monte-Carlo errors of means and deviations, as shares of the statistical errors."""
    errors = fit.monte_carlo_errors
    if errors is None:
        return None
    n = fit.rows
    g = fit.gaussian
    variance = np.diag(g.covariance)[:shown]
    unit, word = (
        (np.sqrt(variance / n), np.sqrt(2.0 / n) * variance),
        "that complete data would have",
    )
    if fit.uncertainty is not None:
        unit = fit.uncertainty.mean[:shown], np.diag(fit.uncertainty.covariance)[:shown]
        word = ""
    with np.errstate(all="ignore"):
        mean = errors.mean[:shown] / unit[0]
        deviation = np.diag(errors.covariance)[:shown] / unit[1]
    share = monte_carlo_share(fit)
    return {
        "against": word,
        # Not rounded: words round it, as those of the summary do.
        "most": share,
        "mean": [number(x, 3) for x in mean],
        "deviation": [number(x, 3) for x in deviation],
    }
