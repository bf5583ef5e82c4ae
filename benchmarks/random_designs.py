"""Fits of random designs against the top of the likelihood, as an independent oracle finds it.

To look at one design: ``compare(random_design(seed, index))``; a run prints the worst of them.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import halfseen as hs
from benchmarks.design_tables import SPECIAL, Design, designs, random_design
from benchmarks.exact_oracle import Observed, Top, climb, highest
from benchmarks.hard_running import many
from benchmarks.registry import Row, task

__all__ = ["Comparison", "Design", "compare", "designs", "maximise", "random_design"]

Floats = NDArray[np.float64]
Start = tuple[str, Floats, Floats]
SEED = 20240501
COUNT, QUICK_COUNT = 600, 40
# Points of all rows together, to climb and to compare: a table of 5 000 rows has 26 and 210 for each.
CLIMBING, COMPARING = 2**17, 2**20
# How far below the top a fit that says it has arrived may be. The oracle is good to some 0.05.
ALLOWED = 0.5
# Log-likelihoods within this are worth a second look with more points.
CLOSE = 1.0
RUNAWAY_SPREADS = 50.0
# Correlations with a smaller eigenvalue: the likelihood climbs towards a singular covariance.
SINGULAR = 1e-6
ARRIVED = (hs.Status.CONVERGED.name, hs.Status.WEAKLY_IDENTIFIED.name)
WORST_SHOWN = 10
TABLES, QUICK_TABLES = 10, 2
# With more columns there are more parameters than rows, and a climb does not know when it has arrived.
MOST_COLUMNS_CLIMBED = 10
# For these some steps over few points, for some of the tables; and points to compare.
WIDE_CLIMBING, WIDE_STEPS, WIDE_TABLES, WIDE_COMPARING = 128, 40, 3, 2048


class Comparison(NamedTuple):
    """One fit beside the oracle.

    Attributes
    ----------
    name : str
    status : str
        Name of the status, or the error that was raised.
    shortfall : float
        The highest log-likelihood found minus that at the fit; infinite without a fit.
    at_fit, at_top : float
        Both log-likelihoods, on the same points.
    start : str
        From where the top was reached.
    top : Top or None
    raw_error : bool
        Whether an error came that is not halfseen's.
    runaway : bool
        Whether a mean is more than 50 spreads off.
    singular : bool
        Whether the top has a covariance that is all but singular: there may be none.
    fit : Fit or None
    seconds : float
        Time of the fit.
    """

    name: str
    status: str
    shortfall: float
    at_fit: float
    at_top: float
    start: str
    top: Top | None
    raw_error: bool
    runaway: bool
    singular: bool
    fit: hs.Fit | None
    seconds: float

    @property
    def wrong(self) -> bool:
        """Whether the fit says that it has arrived, and is below the top."""
        return self.status in ARRIVED and self.shortfall > ALLOWED


def compare(design: Design, **options: object) -> Comparison:
    """Fit a design, and look for a higher log-likelihood than that of the fit.

    Parameters
    ----------
    design : Design
    **options
        Further arguments of ``hs.fit``.
    """
    fit, status, raw, seconds = attempt(design, **options)
    known = [("fit", fit.mean, fit.covariance)] if fit is not None else []
    start, top, observed = maximise(design, [*known, *usual_starts(design)])
    at_fit = observed.log_likelihood(fit.mean, fit.covariance) if fit is not None else -np.inf
    spread = np.sqrt(np.diag(design.covariance))
    off = np.abs((fit.mean - design.mean) / spread).max() if fit is not None else 0.0
    spreads = np.sqrt(np.diag(top.covariance))
    smallest = np.linalg.eigvalsh(top.covariance / np.outer(spreads, spreads))[0]
    return Comparison(
        design.name,
        status,
        top.log_likelihood - at_fit,
        at_fit,
        top.log_likelihood,
        start,
        top,
        raw,
        bool(off > RUNAWAY_SPREADS),
        bool(smallest < SINGULAR),
        fit,
        seconds,
    )


def attempt(
    design: Design, method: str = "auto", **options: object
) -> tuple[hs.Fit | None, str, bool, float]:
    """Fit; return the fit, its status or error, whether that is a raw one, and the time."""
    start = time.perf_counter()
    given = {"random_state": 0, **design.options} if method != "pairwise" else {}
    fit, raw = None, False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        try:
            fit = hs.fit(design.X, design.rule, method, **{**given, **options})
            status = fit.status.name
        except hs.HalfseenError as error:
            status = f"{type(error).__name__}"
        except Exception as error:  # whatever comes out of a fit is what is measured
            status, raw = f"raw {type(error).__name__}: {error}", True
    return fit, status, raw, time.perf_counter() - start


def maximise(design: Design, starts: Sequence[Start]) -> tuple[str, Top, Observed]:
    """Highest log-likelihood that is reached from several starts, and from their mirror images.

    Climbs go over few points for each row; what they reach is climbed again over many.

    Returns
    -------
    start : str
        Name of the start that led there.
    top : Top
    observed : Observed
        The table with many points, over which the top is the top.
    """
    n = len(design.X)
    few = design.observed(int(np.clip(CLIMBING / n, 32, 256)))
    many = design.observed(int(np.clip(COMPARING / n, 256, 2048)))
    reached = [(name, climb(few, *start)) for name, *start in starts if _usable(few, *start)]
    best = highest(top for _, top in reached)
    for name, *mirror in mirrored(design, best.mean, best.covariance):
        reached.append((name, climb(few, *mirror)))
    best = highest(top for _, top in reached)
    tops: list[tuple[str, Top]] = []
    for name, top in reached:
        near = top.log_likelihood > best.log_likelihood - CLOSE
        if near and not any(_same(top, other) for _, other in tops):
            tops.append((name, top))
    again = [
        (name, climb(many, top.mean, top.covariance))
        for name, top in tops
        if _usable(many, top.mean, top.covariance)
    ]
    # The few points may have led away from what the many like better.
    given = [
        (name, Top(many.log_likelihood(*start), *start, np.nan, 0))
        for name, *start in starts
        if _usable(many, *start)
    ]
    name, top = max([*again, *given], key=lambda pair: pair[1].log_likelihood)
    if top.steps == 0:
        top = climb(many, top.mean, top.covariance)
    return name, top, many


def _usable(observed: Observed, mean: Floats, covariance: Floats) -> bool:
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        return False
    try:
        # Climbs begin from the factor: of what is singular but for rounding, its square may not be.
        L = np.linalg.cholesky(covariance)
        return bool(np.isfinite(observed.log_likelihood(mean, L @ L.T)))
    except np.linalg.LinAlgError:
        return False


def _same(one: Top, other: Top) -> bool:
    """Whether two tops are within a hundredth of a spread of each other."""
    spread = np.sqrt(np.diag(one.covariance))
    step = np.abs(one.mean - other.mean) / spread
    turn = np.abs(one.covariance - other.covariance) / np.outer(spread, spread)
    return bool(max(step.max(), turn.max()) < 0.01)


def usual_starts(design: Design) -> list[Start]:
    """Return the truth, and the moments of the seen values."""
    centre, spread = np.nanmean(design.X, axis=0), np.nanstd(design.X, axis=0)
    seen = ~np.isnan(design.X)
    Z = np.where(seen, (design.X - centre) / spread, 0.0)
    R = (Z.T @ Z) / (seen.T.astype(float) @ seen)
    # Pairs have rows of their own, so that R need not be positive definite.
    values, vectors = np.linalg.eigh(R)
    R = (vectors * np.maximum(values, 0.02)) @ vectors.T
    return [
        ("truth", design.mean, design.covariance),
        ("moments", centre, R * np.outer(spread, spread)),
    ]


def mirrored(design: Design, mean: Floats, covariance: Floats) -> list[Start]:
    """Mirror images in the windows of columns that are seen between two limits."""
    columns = list(design.windows)
    flips = [[j] for j in columns] + ([columns] if len(columns) > 1 else [])
    starts = []
    for own in flips:
        sign, centre = np.ones(mean.size), mean.copy()
        sign[own] = -1.0
        for j in own:
            centre[j] = 2.0 * design.windows[j] - mean[j]
        starts.append((f"mirror of {own}", centre, covariance * np.outer(sign, sign)))
    return starts


@task
def random_designs(quick: bool) -> Iterator[Row]:
    """Random designs, and those that made trouble before."""
    count = QUICK_COUNT if quick else COUNT
    yield from _rows(many(_compared, range(count)))
    tables = QUICK_TABLES if quick else TABLES
    for name in SPECIAL:
        yield from _special_rows(name, many(_special, [(name, seed) for seed in range(tables)]))


def _compared(index: int) -> Comparison:
    return compare(random_design(SEED, index), n_jobs=1)._replace(fit=None)


def _special(item: tuple[str, int]) -> Special:
    name, seed = item
    return special(SPECIAL[name](seed), seed < WIDE_TABLES)


def _rows(found: Sequence[Comparison]) -> Iterator[Row]:
    where = f"{len(found)} random designs"
    for status, count in Counter(one.status for one in found).most_common():
        yield Row(f"{where}: {status}", f"{count}", "")
    # Where the likelihood grows without end, no fit can be at its top.
    judged = [one for one in found if not one.singular]
    wrong = [one for one in judged if one.wrong]
    worst = sorted(judged, key=lambda one: -one.shortfall)[:WORST_SHOWN]
    print("\n".join(f"  {line(one)}" for one in worst), flush=True)
    yield Row(
        f"{where}: say CONVERGED or WEAKLY_IDENTIFIED, and are more than {ALLOWED} of log-likelihood "
        f"below the top{_names(wrong)}",
        f"{len(wrong)}",
        "0",
        not wrong,
    )
    arrived = [one.shortfall for one in judged if one.status in ARRIVED]
    below = max(arrived, default=0.0)
    yield Row(f"{where}: largest shortfall of these", f"{below:.4g}", "")
    fitted = [one.shortfall for one in judged if np.isfinite(one.at_fit)]
    yield Row(f"{where}: largest shortfall of all", f"{max(fitted, default=0.0):.4g}", "")
    for what, bad in (
        ("errors that are not halfseen's", [one for one in found if one.raw_error]),
        ("means more than 50 spreads off", [one for one in found if one.runaway]),
    ):
        yield Row(f"{where}: {what}{_names(bad)}", f"{len(bad)}", "0", not bad)
    singular = sum(one.singular for one in found)
    yield Row(f"{where}: left out, as the top is all but singular", f"{singular}", "")


def line(one: Comparison) -> str:
    """Say in a line how a fit did."""
    return (
        f"{one.name}: {one.status}, {one.shortfall:.3f} below {one.at_top:.2f}, reached from "
        f"{one.start}{', runaway' * one.runaway}{', singular' * one.singular}"
    )


def _names(those: Sequence[Comparison]) -> str:
    if not those:
        return ""
    few = ", ".join(one.name for one in those[:WORST_SHOWN])
    return f" ({few}{', …' if len(those) > WORST_SHOWN else ''})"


class Special(NamedTuple):
    """One table of a special design: log-likelihoods against that of the fit, and errors."""

    status: str
    start_ahead: float = -np.inf
    shortfall: float = np.nan
    error: float = np.nan
    error_of_start: float = np.nan


def special(design: Design, climbed: bool = True) -> Special:
    """Fit a table by ``auto`` and by ``pairwise``, where it starts, and compare both."""
    fit, status, _, _ = attempt(design, n_jobs=1)
    start, *_ = attempt(design, "pairwise")
    if fit is None or start is None:
        return Special(status)
    known = [(o, f.mean, f.covariance) for o, f in (("fit", fit), ("pairwise", start))]
    n, d = design.X.shape
    best = np.nan
    if d <= MOST_COLUMNS_CLIMBED:
        _, top, observed = maximise(design, [*known, *usual_starts(design)])
        best = top.log_likelihood
    else:
        observed = design.observed(WIDE_COMPARING)
        # With fewer rows than that there is no top.
        if climbed and n >= 2 * d:
            best = observed.log_likelihood(*_further(design, [*known, *usual_starts(design)]))
    ours, theirs = (observed.log_likelihood(f.mean, f.covariance) for f in (fit, start))
    truth, distance = (
        hs.Gaussian(design.mean, design.covariance),
        hs.metrics.relative_frobenius_error,
    )
    errors = [distance(f.covariance, truth) for f in (fit, start)]
    return Special(status, theirs - ours, best - ours, *errors)


def _further(design: Design, starts: Sequence[Start]) -> tuple[Floats, Floats]:
    """Climb some steps from the best start: with more parameters than rows they do not end."""
    few = design.observed(WIDE_CLIMBING)
    usable = [start for _, *start in starts if _usable(few, *start)]
    best = max(usable, key=lambda start: few.log_likelihood(*start))
    top = climb(few, *best, most_steps=WIDE_STEPS)
    return top.mean, top.covariance


def _special_rows(name: str, found: Sequence[Special]) -> Iterator[Row]:
    """Status, log-likelihood against the start of the fit, and error of the covariance."""
    states = Counter(one.status for one in found).most_common()
    words = ", ".join(f"{status} {count}" for status, count in states)
    yield Row(f"{name}, {len(found)} tables: status", words, "")
    arrived = [one for one in found if one.status in ARRIVED]
    for what, values in (
        (
            "largest log-likelihood of pairwise minus that of the fit",
            [o.start_ahead for o in arrived],
        ),
        ("largest shortfall", [o.shortfall for o in arrived if not np.isnan(o.shortfall)]),
    ):
        if values:
            target, met = f"at most {ALLOWED}", bool(max(values) <= ALLOWED)
            yield Row(f"{name}: {what}, where it arrived", f"{max(values):.4g}", target, met)
    every = [o.shortfall for o in found if not np.isnan(o.shortfall)]
    if every:
        yield Row(f"{name}: largest shortfall of all", f"{max(every):.4g}", "")
    errors = [[o.error**2, o.error_of_start**2] for o in found if not np.isnan(o.error)]
    if errors:
        ratio = np.sqrt(np.divide(*np.mean(errors, axis=0)))
        yield Row(f"{name}: error of the covariance / that of pairwise", f"{ratio:.4g}", "")
