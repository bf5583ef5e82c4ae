"""Heavy tails: fits of t distributions against their Cramér–Rao limit, and how often intervals hold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import halfseen as hs
from benchmarks.hard_running import many
from benchmarks.registry import Row, task
from halfseen.solvers.full_information.problem import read_problem
from halfseen.solvers.inference.likelihood import row_log_likelihoods

Floats = NDArray[np.float64]

D, N, CORRELATION, HIDDEN = 3, 400, 0.5, 0.3
DEGREES = (3.0, 5.0, 10.0)
# Rows from whose scores the information is estimated: to about 1/√20000 of itself.
LIMIT_ROWS = 20_000
# Differences of log-likelihoods of rows, in deviations and in log ν.
STEP = 0.01
MOST_OFF, LOW, HIGH = 1.1, 0.93, 0.97


class Answer(NamedTuple):
    """Of one table: errors of locations, and whether intervals hold, for a t fit and a Gaussian one."""

    off: Floats
    held: dict[str, Floats]
    plain_off: Floats
    plain_held: Floats
    robust_held: Floats
    seconds: tuple[float, float]


def _truth() -> tuple[hs.Gaussian, hs.DetectionLimits]:
    R = np.full((D, D), CORRELATION)
    np.fill_diagonal(R, 1.0)
    return hs.Gaussian(np.zeros(D), R), hs.DetectionLimits(lower=float(ndtri(HIDDEN)))


@task
def heavy_tails(quick: bool) -> Iterator[Row]:
    """Fit tables with t errors as what they are, and as Gaussian ones."""
    tables = 8 if quick else 200
    for degrees in DEGREES:
        found = many(partial(_judge, degrees), range(tables))
        limit = np.sqrt(np.diag(np.linalg.inv(information(degrees, 2000 if quick else LIMIT_ROWS))))
        title = f"t errors, ν = {degrees:g}, d = {D}, n = {N}, {HIDDEN:.0%} below a limit"
        # Of few tables errors are known to 1/√(2 · 3 · 8) only.
        slack = 4.0 / np.sqrt(2.0 * D * tables) if quick else 0.0
        ratio = _size([one.off for one in found]) / (np.sqrt(np.mean(limit[:D] ** 2)) / np.sqrt(N))
        yield Row(
            f"{title}, {tables} tables: root mean square error of locations / Cramér–Rao limit",
            f"{ratio:.3f}",
            f"at most {MOST_OFF}",
            bool(ratio <= MOST_OFF + slack),
        )
        ratio = _size([one.plain_off for one in found]) / _size([one.off for one in found])
        yield Row(
            f"{title}: error of locations of a Gaussian fit / of the t fit", f"{ratio:.2f}", ""
        )
        yield from _coverages(title, found, quick)
        seconds = np.array([one.seconds for one in found]).sum(axis=0)
        yield Row(
            f"{title}: time of the t fit / of a Gaussian one", f"{seconds[0] / seconds[1]:.0f}", ""
        )


def _coverages(title: str, found: list[Answer], quick: bool) -> Iterator[Row]:
    slack = 4.0 * (0.95 * 0.05 / len(found)) ** 0.5 if quick else 0.0
    for family in found[0].held:
        held = float(np.mean([one.held[family] for one in found]))
        yield Row(
            f"{title}: 95 % intervals that hold their {family}",
            f"{held:.3f}",
            f"{LOW} to {HIGH}",
            bool(LOW - slack <= held <= HIGH + slack),
        )
    plain, robust = (
        float(np.mean([getattr(one, name) for one in found]))
        for name in ("plain_held", "robust_held")
    )
    yield Row(
        f"{title}: intervals of a Gaussian fit that hold locations, by its own errors; by robust ones",
        f"{plain:.3f}; {robust:.3f}",
        "",
    )


def _size(errors: list[Floats]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def _judge(degrees: float, seed: int) -> Answer:
    truth, rule = _truth()
    X = hs.simulate(truth, rule, N, seed, degrees_of_freedom=degrees)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        began = time.process_time()
        fit = hs.fit(X, rule, errors="t", random_state=seed, n_jobs=1)
        then = time.process_time()
        plain = hs.fit(X, rule, random_state=seed, n_jobs=1)
        ended = time.process_time()
        robust = plain.robust_standard_errors()
    intervals = fit.confidence_interval()
    lower = np.tril_indices(D, -1)
    held = {
        "locations": _inside(intervals.mean, truth.mean),
        "scales": _inside(intervals.standard_deviation, np.ones(D)),
        "correlations": _inside(intervals.correlation, truth.correlation)[lower],
        "degrees of freedom": np.array([fit.tails.lower <= degrees <= fit.tails.upper], dtype=float)
        if fit.tails is not None
        else np.zeros(1),
    }
    return Answer(
        fit.mean - truth.mean,
        held,
        plain.mean - truth.mean,
        _inside(plain.confidence_interval().mean, truth.mean),
        np.abs(plain.mean - truth.mean) <= float(ndtri(0.975)) * robust.mean,
        (then - began, ended - then),
    )


def _inside(limits: tuple[Floats, Floats], truth: Floats) -> Floats:
    return np.asarray((limits[0] <= truth) & (truth <= limits[1]), dtype=float)


def information(degrees: float, rows: int) -> Floats:
    """Information of one row about location, scatter and log ν: the average of products of scores.

    Scores are differences of log-likelihoods of rows at the truth.
    """
    truth, rule = _truth()
    X = hs.simulate(truth, rule, rows, 10**6, degrees_of_freedom=degrees)
    problem = read_problem(X, rule, None, 1)
    i, j = np.tril_indices(D)
    at = np.concatenate([truth.mean, truth.covariance[i, j], [np.log(degrees)]])

    def values(parameters: Floats) -> Floats:
        S = np.empty((D, D))
        S[i, j] = S[j, i] = parameters[D:-1]
        place = problem.from_units(parameters[:D], S)
        return row_log_likelihoods(
            problem.Y, problem.holes, *place, degrees=float(np.exp(parameters[-1]))
        )[0]

    scores = np.array(
        [(values(at + step) - values(at - step)) / (2.0 * STEP) for step in STEP * np.eye(at.size)]
    )
    return np.asarray(scores @ scores.T / rows)
