"""Limits that are reported: how often one-sided limits of means, tolerance and next values hold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import halfseen as hs
from benchmarks.registry import Row, task
from halfseen.data.powers import ColumnCells
from halfseen.data.transforms import Identity
from halfseen.diagnostics.one_column import HiddenByLimits, HiddenByRule, LoneColumn
from halfseen.limits.find import JointColumn
from halfseen.limits.lone import CalibratedRoot, Lone, Number

Floats = NDArray[np.float64]

LEVEL = 0.95
TARGET = (0.93, 0.97)
NORMAL = float(ndtri(LEVEL))
# Of 1 000 tables a share of 0.95 is known to 0.007: with some two hundred of them, one falls outside its
# target by chance. Shares that do are judged by other tables, more of them.
TABLES, OTHER_TABLES, QUICK_TABLES, JOINT_TABLES = 1000, 4000, 40, 250
# Simulated columns behind a calibrated root: fewer than by default, which makes limits no better.
DRAWS = 200
NEXT = (1, 5)
QUANTITIES = (
    "UCL95 of a normal mean", "UCL95 of a log-normal mean", "UTL 95-95", "prediction limit of 1",
    "prediction limit of 5", "LCL95 of a normal mean", "LCL95 of a log-normal mean", "LTL 95-95",
)  # fmt: skip
ASKED = 5
SPREAD = 0.5


class Design(NamedTuple):
    """A kind of column: standard normal, below limits in part."""

    n: int
    hidden: float
    by_row: bool

    @property
    def title(self) -> str:
        """What it is, in words."""
        kind = "limits that differ by row" if self.by_row else "one limit"
        return f"n = {self.n}, {self.hidden:.0%} hidden, {kind}"


def column(design: Design, rng: np.random.Generator) -> LoneColumn:
    """Draw a column. Limits by row are known of hidden cells only, as laboratories report them."""
    y = rng.standard_normal(design.n)
    if not design.by_row:
        limit = np.full((1, 1), ndtri(design.hidden))
        hiding = HiddenByRule(limit, np.full((1, 1), np.inf), np.zeros(design.n, dtype=np.intp))
        return LoneColumn(hiding.hide(y, rng), hiding)
    middle = ndtri(design.hidden) * np.sqrt(1.0 + SPREAD**2)
    limits = middle + SPREAD * rng.standard_normal(design.n)
    shown = y >= limits
    lower, upper = np.where(shown, y, -np.inf), np.where(shown, y, limits)
    return LoneColumn(ColumnCells.from_ends(lower, upper), HiddenByLimits.of(lower, upper))


def judge(design: Design, with_log: bool, seed: int) -> Floats | None:
    """Return which limits of a column hold; None where there is a word instead."""
    key = [design.n, round(100 * design.hidden), int(design.by_row), seed]
    rng = np.random.default_rng(key)
    lone = Lone.of(column(design, rng), Identity())
    if isinstance(lone, str):
        return None
    posterior, coming = lone.posterior, rng.standard_normal(max(NEXT))
    mean = posterior.below(Number(), 0.0)
    high, low = (posterior.below(Number(tilt=z), z) for z in (NORMAL, -NORMAL))
    log_low, log_high = _log_mean(lone, seed) if with_log else (np.nan, np.nan)
    ahead = [posterior.next_below(coming[:k].max(), k) < LEVEL for k in NEXT]
    under = 1.0 - LEVEL
    return np.array(
        [mean < LEVEL, log_high, high < LEVEL, *ahead, mean > under, log_low, low > under]
    ).astype(float)


def _log_mean(lone: Lone, seed: int, deviation: float = 1.0) -> tuple[float, float]:
    """Return whether the lower and the upper limit of a log-normal mean hold.

    The deviation of the logarithm takes the place of its unit: the cells are those of y/σ.
    """
    number, truth = Number(bend=deviation), 0.5 * deviation
    root = CalibratedRoot(lone, number, DRAWS, seed)
    if lone.is_complete or not root.is_known:
        below = lone.posterior.below(number, truth)
        return float(below > 1.0 - LEVEL), float(below < LEVEL)
    distance = root.distance(truth)
    if np.isnan(distance):
        below = lone.posterior.below(number, truth)
        return float(below > 1.0 - LEVEL), float(below < LEVEL)
    return float(distance < NORMAL), float(distance > -NORMAL)


def _measured(design: Design, seeds: range, with_log: bool = True) -> tuple[Floats, int]:
    """Return the shares of limits that hold, and how many columns have none."""
    found = [judge(design, with_log, seed) for seed in seeds]
    held = [one for one in found if one is not None]
    return np.mean(held, axis=0), len(found) - len(held)


@task
def limits_coverage(quick: bool) -> Iterator[Row]:
    """Count how often one-sided 95 % limits of one column hold what they are for."""
    tables = QUICK_TABLES if quick else TABLES
    slack = 4.0 * (0.95 * 0.05 / tables) ** 0.5 if quick else 0.0
    for by_row in (False, True):
        for n in (20, 50, 200):
            for hidden in (0.1, 0.3, 0.5, 0.7):
                design = Design(n, hidden, by_row)
                yield _row(design, *_measured(design, range(tables)), slack)


def _row(design: Design, shares: Floats, without: int, slack: float) -> Row:
    """Judge the upper limits of a design, by other tables where they are outside the target."""
    low, high = TARGET
    outside = [k for k in range(ASKED) if not low - slack <= shares[k] <= high + slack]
    words = [f"{share:.3f}" for share in shares]
    met = True
    if outside:
        others = range(TABLES, TABLES + OTHER_TABLES)
        again, _ = _measured(
            design, others, QUANTITIES.index("UCL95 of a log-normal mean") in outside
        )
        met = all(low <= again[k] <= high for k in outside)
        for k in outside:
            words[k] += f" ({again[k]:.3f} of {OTHER_TABLES} other tables)"
    named = [f"{name} {word}" for name, word in zip(QUANTITIES, words, strict=True)]
    measured = f"{', '.join(named[:ASKED])}; lower limits: {', '.join(named[ASKED:])}"
    return Row(
        f"{design.title}: one-sided 95 % limits that hold",
        f"{measured}; {without} tables have a word instead",
        f"{low:.2f} to {high:.2f} (upper limits)",
        met,
    )


@task
def limits_log_means(quick: bool) -> Iterator[Row]:
    """Count the same of log-normal means where the logarithm varies less, and more."""
    tables = QUICK_TABLES if quick else TABLES
    low, high = TARGET
    slack = 4.0 * (0.95 * 0.05 / tables) ** 0.5 if quick else 0.0
    # With 1 000 rows limits are from the posterior, and no longer simulated.
    for deviation, rows in ((0.5, (20, 50)), (1.0, (1000,)), (2.0, (20, 50))):
        for n in rows:
            for hidden in (0.3, 0.7):
                design = Design(n, hidden, False)
                held = [_log_mean_of(design, deviation, seed) for seed in range(tables)]
                shares = np.mean([one for one in held if one is not None], axis=0)
                yield Row(
                    f"{design.title}, deviation of the logarithm {deviation:g}: one-sided 95 % limits "
                    "that hold",
                    f"UCL95 of a log-normal mean {shares[1]:.3f}, LCL95 {shares[0]:.3f}; "
                    f"{sum(one is None for one in held)} tables have a word instead",
                    f"{low:.2f} to {high:.2f} (upper limits)",
                    bool(low - slack <= shares[1] <= high + slack),
                )


def _log_mean_of(design: Design, deviation: float, seed: int) -> tuple[float, float] | None:
    lone = Lone.of(column(design, np.random.default_rng([seed, design.n, 9])), Identity())
    return None if isinstance(lone, str) else _log_mean(lone, seed, deviation)


@task
def limits_beyond(quick: bool) -> Iterator[Row]:
    """Count the same where few values are seen: there is a remark, or a word in place of a limit."""
    tables = QUICK_TABLES if quick else TABLES
    for by_row in (False, True):
        for n, hidden in (
            (10, 0.3),
            (10, 0.5),
            (10, 0.7),
            (20, 0.8),
            (50, 0.8),
            (50, 0.9),
            (200, 0.9),
        ):
            design = Design(n, hidden, by_row)
            shares, without = _measured(design, range(tables))
            named = ", ".join(f"{q} {s:.3f}" for q, s in zip(QUANTITIES, shares, strict=True))
            yield Row(
                f"{design.title}: one-sided 95 % limits that hold",
                f"{named}; {without} tables have a word instead",
                "",
            )


@task
def limits_joint(quick: bool) -> Iterator[Row]:
    """Two columns that go together: limits by all columns beside those of the column alone."""
    tables = QUICK_TABLES if quick else JOINT_TABLES
    slack = 4.0 * (0.95 * 0.05 / tables) ** 0.5
    for n in (30, 100):
        for correlation in (0.5, 0.9):
            for blank in (0.0, 0.3):
                found = [_beside(n, correlation, blank, seed) for seed in range(tables)]
                held = np.array([one for one in found if one is not None])
                alone, joint = held[:, :3].mean(axis=0), held[:, 3:6].mean(axis=0)
                shorter = np.nanmedian(held[:, 6:], axis=0)
                met = bool((abs(joint - 0.95) < slack).all()) if blank else None
                kind = f", {blank:.0%} blank where the other is high" if blank else ""
                yield Row(
                    f"two columns, correlation {correlation:g}, n = {n}, 50% below a limit{kind}: "
                    "UCL95 of a normal mean, UCL95 of a log-normal mean, UTL 95-95 that hold",
                    f"by all columns {_in_words(joint)}; by the column alone {_in_words(alone)}; "
                    f"from estimate to limit, of that by the column alone, {_in_words(shorter)}",
                    f"0.95, within four standard errors ({slack:.3f})" if blank else "",
                    met,
                )


def _in_words(shares: Floats) -> str:
    return ", ".join(f"{share:.3f}" for share in shares)


def _beside(n: int, correlation: float, blank: float, seed: int) -> Floats | None:
    """Return which limits hold: alone, then by all columns; and how much nearer the latter are."""
    rng = np.random.default_rng([n, round(10 * correlation), round(10 * blank), seed])
    other = rng.standard_normal(n)
    y = correlation * other + np.sqrt(1.0 - correlation**2) * rng.standard_normal(n)
    lower, upper = np.where(y < 0.0, -np.inf, y), np.where(y < 0.0, 0.0, y)
    lost = rng.random(n) < 2.0 * blank * (other > 0.0)
    lower[lost], upper[lost] = -np.inf, np.inf
    data = hs.IntervalData(
        np.stack([lower, other], axis=1), np.stack([upper, other], axis=1), ("half", "whole")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        fit = hs.fit(data, random_state=seed, n_jobs=1)
    kept = ~lost
    hiding = HiddenByLimits.of(lower[kept], upper[kept])
    lone = Lone.of(LoneColumn(ColumnCells.from_ends(lower[kept], upper[kept]), hiding), Identity())
    joint = JointColumn.of(fit, 0)
    if isinstance(lone, str) or joint is None:
        return None
    out = []
    for number, truth in ((Number(), 0.0), (Number(bend=1.0), 0.5), (Number(tilt=NORMAL), NORMAL)):
        limit = lone.posterior.quantile(number, LEVEL)
        if number.bend:
            limit = CalibratedRoot(lone, number, DRAWS, seed).limit(LEVEL, 1, limit)
        if not np.isfinite(limit):
            # Both hold, as ``fit.limits`` keeps a limit that has no end.
            out.append((True, True, np.nan))
            continue
        fall = lone.fall(number, limit)
        found = joint.limits(number, (fall, fall))
        if found is None:
            return None
        near = (found[2] - found[0]) / (limit - lone.estimate(number))
        out.append((limit > truth, found[2] > truth, near))
    return np.array(out).T.ravel()


@task
def limits_cost(quick: bool) -> Iterator[Row]:
    """Seconds for all limits of a column."""
    for n in (50, 1000, 100_000):
        rng = np.random.default_rng(n)
        y = np.exp(rng.standard_normal((n, 1)))
        limit = np.exp(0.5 * rng.standard_normal((n, 1)))
        shown = y >= limit
        data = hs.IntervalData(np.where(shown, y, 0.0), np.where(shown, y, limit), ("lead",))
        fit = hs.fit(data, transforms="log", random_state=0)
        fit.limits()
        began = time.perf_counter()
        fit.limits()
        yield Row(
            f"one log-normal column, n = {n}, limits that differ by row: seconds for fit.limits()",
            f"{time.perf_counter() - began:.2f}",
            "",
        )
