"""Regression where rows are missing: what the theory promises, and what is found."""

from __future__ import annotations

import math

import numpy as np

from halfseen.ledger.harness import (
    Curve,
    Estimated,
    Floats,
    Kind,
    Measured,
    Sweep,
    claim,
    power_law_from,
    ratio,
)
from halfseen.solvers.regression.truncated import truncated_regression

# Where outcomes are revealed, as intervals: a half-line, and a set that is not convex. With the truth
# below they hold 0.36 and 0.65 of all rows.
SETS = {
    "above a limit": (np.array([0.5]), np.array([np.inf])),
    "outside an interval": (np.array([-np.inf, 0.5]), np.array([-0.5, 2.0])),
}
# Covariates where the rows vary, and rows where the covariates do.
COVARIATES, ROWS = 8, 8_000
# Terms of order k/n, 0.8 % at the end of the sweep in k, add to the variance of maximum likelihood: with
# a constant of 5, twice what k = 128 showed, 2 % to the error.
HIGHER_ORDER = 0.02


def revealed(k: int, n: int, where: str, seed: int) -> tuple[Floats, Floats, Floats]:
    """Draw n rows with k covariates whose outcome lies in a set, and the coefficients.

    Standard normal covariates, y = wβ + e with ‖β‖ = 1 and e of variance 1.
    """
    rng = np.random.default_rng([k, n, seed])
    lower, upper = SETS[where]
    truth = np.full(k, k**-0.5)
    W, y = np.empty((0, k)), np.empty(0)
    while y.size < n:
        more = rng.normal(size=(2 * n, k))
        outcome = more @ truth + rng.normal(size=2 * n)
        there = ((lower <= outcome[:, None]) & (outcome[:, None] <= upper)).any(axis=1)
        W, y = np.vstack([W, more[there]]), np.append(y, outcome[there])
    return y[:n], W[:n], truth


def errors(k: int, n: int, where: str, tables: int) -> tuple[Floats, Floats]:
    """Return the distances ‖β̂ − β‖ of several tables, and their sizes by the observed information."""
    lower, upper = (end[None] for end in SETS[where])
    off, expected = np.empty(tables), np.empty(tables)
    for seed in range(tables):
        y, W, truth = revealed(k, n, where, seed)
        found = truncated_regression(y, W, lower, upper)
        off[seed] = np.linalg.norm(found.coefficients - truth)
        expected[seed] = math.sqrt(np.trace(found.covariance[:k, :k]))
    return off, expected


@claim(
    "regression/truncated-rows",
    "Not in the paper; Daskalakis et al. (2019) on truncated regression",
    Kind.BEYOND,
)
def truncated_rows(quick: bool) -> Measured:
    """Learn regressions from revealed rows, more rows and more covariates at a time.

    Says: From n revealed rows with k covariates truncated regression learns the coefficients with an
    error of order √(k/n), as least squares does where nothing is missing, for any set that is known,
    convex or not, as long as what is revealed leaves no direction of the covariates thin.

    Experiment: Standard normal covariates, coefficients of length 1, residuals of variance 1, outcomes
    revealed above ½, or below −½ and from ½ to 2; maximum likelihood by Newton's method in natural
    parameters, where the paper descends by stochastic gradients, with the variance learned too. n grows
    at k = 8, then k at n = 8,000; root mean square over tables of the distance of all coefficients.

    Tolerance: Slopes in n are −½ within 4 standard errors from the spread of squared errors over tables;
    those in k are at most ½ (along the coefficients themselves less is known than across, which weighs
    less as k grows). Over the size that the information predicts errors are 1 within 4 such errors and
    2 % for terms of order k/n, at the end of each sweep.
    """
    tables = 12 if quick else 40
    rows = (500, 2_000, 8_000) if quick else (500, 2_000, 8_000, 32_000)
    widths = (4, 16, 64)
    in_rows: dict[str, list[Floats]] = {where: [] for where in SETS}
    in_widths: dict[str, list[Floats]] = {where: [] for where in SETS}
    relative: list[Estimated] = []
    for where in SETS:
        for places, into in (
            ([(COVARIATES, n) for n in rows], in_rows),
            ([(k, ROWS) for k in widths], in_widths),
        ):
            for k, n in places:
                off, expected = errors(k, n, where, tables)
                into[where].append(off)
            relative.append(ratio(off / expected))
    by_rows, by_widths = Sweep(rows, in_rows), Sweep(widths, in_widths)
    holds = by_rows.all_near(-0.5)
    holds &= all(power.at_most(0.5) for power in by_widths.powers.values())
    holds &= all(part.near(1.0, HIGHER_ORDER) for part in relative)
    first = next(iter(by_rows.lines.values()))[0]
    return Measured(
        f"n = {rows[0]:,} to {rows[-1]:,}: {by_rows.told('{name} n^{power}, {last:.3f} at the end')}; "
        f"k = {widths[0]} to {widths[-1]}: {by_widths.told('{name} k^{power}, {last:.2f} at the end')}. "
        f"Of the size predicted: {', '.join(map(str, relative))}.",
        holds,
        Curve(
            rows,
            by_rows.lines,
            "revealed rows",
            "distance from the coefficients",
            {"n^(-1/2)": power_law_from(rows, first, -0.5)},
        ),
    )
