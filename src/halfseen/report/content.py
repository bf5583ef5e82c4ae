"""All numbers of the report, as one plain dictionary that JSON can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri, gammaln

from halfseen.data.moments import PairMoments
from halfseen.data.table import Table
from halfseen.report import words
from halfseen.report.marginals import (
    column_content,
    drawn_cells,
    forget_substitutes,
    number,
    numbers,
    rounded,
)
from halfseen.report.shown_table import ShownTable, read_shown
from halfseen.report.words import compared
from halfseen.solvers.full_information.ascent import NEAR_THE_TOP
from halfseen.solvers.structures.learned import LearnedStructure
from halfseen.solvers.summary import (
    REGULARISED,
    knows_correlations,
    monte_carlo_share,
    shorten,
    steps_taken,
)

if TYPE_CHECKING:
    from halfseen.results import Fit
    from halfseen.solvers.inference.intervals import Intervals
    from halfseen.solvers.inference.original_scale import OriginalScale

Floats = NDArray[np.float64]

# Level of the intervals, and the quantile that is shown beside the mean in original units.
LEVEL, HIGH = 0.95, 0.95
# Square root of the 95 % quantile of chi-square with two degrees of freedom.
NORMAL_ELLIPSE = 2.447747
# How much wider than those of a normal distribution axes may be.
MOST_WIDENED = 2.0
# What keeps the page small: rows that are drawn, cells of them, columns, and numbers of the trace.
MOST_ROWS, MOST_CELLS, MOST_COLUMNS, MOST_TRACE = 2000, 30_000, 100, 6_000
# Gains in log-likelihood below this are drawn as this: a thousandth of the least that is told in words.
SMALLEST_DRAWN_GAIN = 1e-6


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
    return content_of(read_fit(fit), diagnosis, call, title, most_columns)


class FitRead(NamedTuple):
    """A fit with all that takes time to read from it.

    Attributes
    ----------
    fit : Fit
    table : ShownTable or None
        Where the fit holds it.
    transforms : list
        Of each column; None where there is none.
    intervals : Intervals or None
    units : OriginalScale or None
        What the fit says in original units; None where no column was transformed.
    """

    fit: Fit
    table: ShownTable | None
    transforms: list[Any]
    intervals: Intervals | None
    units: OriginalScale | None


def read_fit(fit: Fit) -> FitRead:
    """Read once what the page shows of a fit, however many columns it has room for."""
    sure = fit.uncertainty is not None
    intervals = fit.confidence_interval(LEVEL).without_labels() if sure else None
    transforms = [None if t.name == "none" else t for t in fit.transforms or ()]
    units = None
    if any(t is not None for t in transforms):
        with np.errstate(all="ignore"):
            units = fit.original_scale(LEVEL, (HIGH,), labels=False)
    transforms = transforms or [None] * len(fit.names)
    return FitRead(fit, read_shown(fit), transforms, intervals, units)


def content_of(
    read: FitRead, diagnosis: Any, call: str | None, title: str | None, most_columns: int
) -> dict[str, Any]:
    """Put everything together that the page shows."""
    fit, table, transforms = read.fit, read.table, read.transforms
    shown = min(len(fit.names), most_columns)
    # Where the scale is the same for all, it is said once, not in every label.
    scales = {None if t is None else str(t.name) for t in transforms}
    scale = scales.pop() if len(scales) == 1 else None
    law = _law(fit)
    # Ellipses of heavy tails are larger; the heaviest would leave no room for the rest.
    wider = min(law["ellipse"] / NORMAL_ELLIPSE, MOST_WIDENED)
    # A transformed cell is held in its original units too.
    weight = shown + sum(t is not None for t in transforms[:shown])
    n = 0 if table is None else len(table.values)
    rows = spread_evenly(n, min(MOST_ROWS, MOST_CELLS // weight))
    rule = None if fit.source is None else fit.source.stated_rule
    contested = compared(rule, fit.names)
    columns = []
    for j, transform in enumerate(transforms[:shown]):
        cells = None if table is None else table.column(j)
        column = column_content(fit, j, transform, cells, read.intervals, read.units, wider)
        if j in contested:
            # Half of what won is no substitute for a limit.
            forget_substitutes(column)
        column["short"] = column["label"] if scale is None else column["name"]
        if cells is not None:
            column["cells"] = drawn_cells(cells, rows, transform)
        columns.append(column)
    pairs = _pairs(read, columns)
    transformed = read.units is not None
    return {
        "title": title or "What a half-seen table says",
        "method": fit.method,
        "rows": fit.rows,
        "drawn_rows": _row_names(table, rows),
        "has_table": table is not None,
        "transformed": transformed,
        "scale": scale,
        "level": LEVEL,
        "law": law,
        "learned": words.learned(fit, _missing(table), columns, pairs),
        "left_out": words.hidden_names(fit.names, shown),
        "status": words.status_of(fit, diagnosis),
        "columns": columns,
        "pairs": pairs,
        "structure": structure_content(fit.structure),
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


def _missing(table: ShownTable | None) -> float:
    """Return the share of all cells of which nothing is known."""
    return 0.0 if table is None else float(table.missing.mean())


def structure_content(learned: LearnedStructure | None) -> dict[str, Any] | None:
    """Return the parameters of the structure of a covariance; None where it has none of its own."""
    if learned is None or not learned:
        return None
    told = [
        [name, number(value, 6), None if error is None else number(error, 6)]
        for name, value, error in learned.numbers()
    ]
    return {"words": learned.words, "numbers": told}


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


def spread_evenly(count: int, most: int) -> NDArray[np.intp]:
    """Return up to so many positions, spread evenly, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _row_names(table: ShownTable | None, rows: NDArray[np.intp]) -> list[str]:
    if table is None or table.labels is None:
        return [f"row {r}" for r in rows]
    return [shorten(table.labels[r], 60) for r in rows]


def _pairs(read: FitRead, columns: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Correlations of every pair, the upper triangle row by row."""
    d = len(columns)
    if d < 2:
        return None
    at = np.triu_indices(d, 1)
    none: list[Any] = [None] * at[0].size
    naive, together, ellipses, lower, upper = none, none, none, none, none
    if read.table is not None:
        names = [c["name"] for c in columns]
        correlation, counts, mean, deviation = _available_cases(read.table.values[:, :d], names)
        naive = numbers(correlation[at], 5)
        together = [int(c) for c in counts[at]]
        both = zip(at[0].tolist(), at[1].tolist(), strict=True)
        ellipses = [_ellipse_of(mean, deviation, i, j) for i, j in both]
    if read.intervals is not None:
        ends = read.intervals.correlation
        lower, upper = (numbers(end[:d, :d][at], 5) for end in (ends.lower, ends.upper))
    recovered = read.fit.gaussian.correlation[:d, :d][at]
    known = (recovered == 0.0) | knows_correlations(read.fit)
    return {
        "naive": naive,
        "recovered": numbers(recovered, 5),
        "lower": lower,
        "upper": upper,
        # Given, or 0 by the structure of the covariance.
        "known": known.tolist(),
        "together": together,
        "ellipses": ellipses,
    }


def _ellipse_of(mean: Floats, deviation: Floats, i: int, j: int) -> list[float | None] | None:
    """Mean and deviation of column i and of column j, over the rows in which both are seen.

    Rounded to a hundredth of the deviation, about a pixel.
    """
    out: list[float | None] = []
    for a, b in ((i, j), (j, i)):
        spread = deviation[a, b]
        if not (np.isfinite(spread) and spread > 0.0):
            return None
        out += rounded(mean[[a], b], 2 - int(np.floor(np.log10(spread))))
        out.append(number(spread, 3))
    return out


def _available_cases(values: Floats, names: list[str]) -> tuple[Floats, Floats, Floats, Floats]:
    """Correlations over the rows in which both columns are seen, and how many these are.

    Also the means and deviations over the same rows: at [i, j] those of column i.
    """
    m = PairMoments.of_table(Table(values, tuple(names)))
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


def _climb(fit: Fit) -> dict[str, Any] | None:
    """Return what was left to be gained in log-likelihood by step: as estimated, and as it came."""
    gains, values = (_in_history(fit, key) for key in ("gains", "log_likelihoods"))
    if gains.ndim != 1 or gains.shape != values.shape or len(gains) < 2:
        return None
    steps = spread_evenly(len(gains), MOST_TRACE)
    # Estimates that are pulled towards something do not climb.
    climbs = str(fit.history.get("covariance_structure")) not in REGULARISED
    # Where points changed, a step may seem to have been higher than the last one.
    gained = np.where(values[-1] - values >= SMALLEST_DRAWN_GAIN, values[-1] - values, np.nan)
    return {
        "steps": (steps + 1).tolist(),
        "all_steps": len(gains),
        "climbs": climbs,
        "enough": NEAR_THE_TOP,
        "smallest": SMALLEST_DRAWN_GAIN,
        "estimated": numbers(np.maximum(gains[steps], SMALLEST_DRAWN_GAIN), 4),
        "gained": numbers(gained[steps], 4) if climbs else None,
    }


def _in_history(fit: Fit, key: str) -> NDArray[np.float64]:
    """Return numbers that a fit kept; none where it kept something else, as a saved one may."""
    try:
        return np.asarray(fit.history.get(key, ()), dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def _trace(fit: Fit, shown: int) -> dict[str, Any] | None:
    """Return the means over the steps, in standard errors from the estimate."""
    trace = _in_history(fit, "trace" if "trace" in fit.history else "iterates")
    if trace.ndim != 2 or len(trace) < 2 or trace.shape[1] < shown:
        return None
    unit = fit.gaussian.standard_deviations[:shown] / np.sqrt(fit.rows)
    word = "standard errors that complete data would have"
    if fit.uncertainty is not None:
        own = np.asarray(fit.uncertainty.mean[:shown], dtype=float)
        if (np.isfinite(own) & (own > 0.0)).all():
            unit, word = own, "standard errors"
    steps = spread_evenly(len(trace), max(2, MOST_TRACE // shown))
    moved = (trace[steps, :shown] - fit.gaussian.mean[:shown]) / unit
    return {
        "unit": word,
        "steps": (steps + 1).tolist(),
        "all_steps": len(trace),
        "columns": [numbers(column, 4) for column in moved.T],
    }


def _monte_carlo(fit: Fit, shown: int) -> dict[str, Any] | None:
    """Monte-Carlo errors of means and deviations, as shares of the statistical errors."""
    errors = fit.monte_carlo_errors
    if errors is None:
        return None
    variance = np.diag(fit.gaussian.covariance)
    unit = np.sqrt(variance / fit.rows), np.sqrt(2.0 / fit.rows) * variance
    word = "that complete data would have"
    if fit.uncertainty is not None:
        unit, word = (fit.uncertainty.mean, np.diag(fit.uncertainty.covariance)), ""
    with np.errstate(all="ignore"):
        mean, deviation = errors.mean / unit[0], np.diag(errors.covariance) / unit[1]
    return {
        "against": word,
        # Not rounded: words round it, as those of the summary do.
        "most": monte_carlo_share(fit),
        "mean": numbers(mean[:shown], 3),
        "deviation": numbers(deviation[:shown], 3),
    }
