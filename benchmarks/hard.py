"""Hard tables whose answer is known in part: surveys, and tables with blanks alone.

``HALFSEEN_BEFORE=path/to/src python -m benchmarks hard_survey`` sets times beside those of another
checkout, in the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import halfseen as hs
from benchmarks.hard_reference import Reference
from benchmarks.hard_running import counted, fitted, many, parameters, spread_of
from benchmarks.hard_tables import PEOPLE, HardTable, cycle, monotone, scattered, survey
from benchmarks.registry import Row, task

BEFORE = "HALFSEEN_BEFORE"
# Columns that are never hidden have their sample moments, to rounding, and the errors of closed forms.
MOMENTS, CLOSED_FORM = 1e-8, 1e-6
# How far apart seeds of one table may end in log-likelihood, with some hundred parameters.
SPREAD = 1.0
# Two ways to integrate, of which each has its own error in the difference of two fits.
SAME_DIFFERENCE = 0.5
FASTER = 0.5
AT_RANDOM, AT_RANDOM_ERRORS = 1e-6, 1e-4


class SurveyFits(NamedTuple):
    """What fits of one table with several seeds came to."""

    statuses: tuple[str, ...]
    moments: float
    errors: float
    # Largest difference between seeds in log-likelihood, less twice its Monte-Carlo error.
    spread: float
    monte_carlo: float
    # How far the same differences are from those by ``fit.score_rows``.
    mismatch: float
    # The most that a fit itself says is still to gain; NaN where it says nothing.
    told: float


@task
def hard_survey(quick: bool) -> Iterator[Row]:
    """Fit surveys of 28 columns: what must be exact, agreement of seeds, processor time."""
    n, seeds = (1500, (0, 1)) if quick else (6000, (0, 1, 2))
    variants: tuple[tuple[str, dict[str, Any], range], ...] = (
        ("24 analytes", {}, range(1 if quick else 5)),
        ("12 analytes", {"analytes": 12}, range(1 if quick else 2)),
        ("24 analytes, strength 0.98", {"strength": 0.98}, range(1 if quick else 2)),
    )
    items = [(n, s, more, seeds) for _, more, tables in variants for s in tables]
    answers = iter(many(survey_fits, items))
    for title, _, tables in variants:
        found = [next(answers) for _ in tables]
        where = f"survey, n = {n}, {title}, {len(found)} x {len(seeds)} fits"
        yield from _survey_rows(where, found)
    yield from time_rows(n, range(1 if quick else 5))


def survey_fits(item: tuple[int, int, dict[str, Any], Iterable[int]]) -> SurveyFits:
    """Fit a survey with several seeds."""
    n, number, more, seeds = item
    table = survey(n, number, **more)
    fits = [fitted(table, seed) for seed in seeds]
    moments, errors = np.max([exact_part(fit, table) for fit in fits], axis=0)
    reference = Reference(table, points=64)
    levels = [reference.integral(*parameters(fit)) for fit in fits]
    spread, monte_carlo = spread_of(levels)
    scores = [float(fit.score_rows().sum()) for fit in fits]
    mismatch = max(
        abs(scores[i] - scores[j] - levels[i].less(levels[j])[0])
        for i, j in combinations(range(len(fits)), 2)
    )
    statuses = tuple(fit.status.name for fit in fits)
    told = max(float(fit.history.get("gain_left", np.nan)) for fit in fits)
    return SurveyFits(statuses, float(moments), float(errors), spread, monte_carlo, mismatch, told)


def exact_part(fit: hs.Fit, table: HardTable) -> tuple[float, float]:
    """How far the columns that are never hidden are from what is known of them in closed form.

    Mean and covariance, in standard deviations of the columns, are those of the sample (divisor n);
    their standard errors are σ/√n and √((σ_ii σ_jj + σ_ij²)/n), and are looked at as ratios.
    """
    part = slice(len(PEOPLE))
    Y = table.complete[:, part]
    mean, S = Y.mean(axis=0), np.cov(Y.T, bias=True)
    deviation = np.sqrt(np.diag(S))
    scale = np.outer(deviation, deviation)
    moments = max(
        np.abs((fit.mean[part] - mean) / deviation).max(),
        np.abs((fit.covariance[part, part] - S) / scale).max(),
    )
    try:
        found = fit.standard_errors
    except hs.InputError:  # an estimate as good as singular has none
        return float(moments), np.inf
    of_mean, of_covariance = deviation / len(Y) ** 0.5, np.sqrt((scale**2 + S**2) / len(Y))
    errors = max(
        np.abs(found.mean[part] / of_mean - 1.0).max(),
        np.abs(found.covariance[part, part] / of_covariance - 1.0).max(),
    )
    return float(moments), float(errors)


def _survey_rows(where: str, found: list[SurveyFits]) -> Iterator[Row]:
    for name, words, target in (
        ("moments", "means and covariances less the sample's, in spreads", MOMENTS),
        ("errors", "standard errors / closed forms, less one", CLOSED_FORM),
    ):
        worst = float(np.max([getattr(one, name) for one in found]))
        what = f"{where}: four columns that are never hidden, largest of {words}"
        yield Row(what, f"{worst:.1e}", f"at most {target:.0e}", worst <= target)
    worst, error = max((one.spread, one.monte_carlo) for one in found)
    yield Row(
        f"{where}: largest difference of log-likelihoods between seeds, less twice its error",
        f"{worst:.2f} (Monte-Carlo error {error:.2f})",
        f"at most {SPREAD:g}",
        worst <= SPREAD,
    )
    worst = max(one.mismatch for one in found)
    yield Row(
        f"{where}: the same differences by fit.score_rows, less those above, largest",
        f"{worst:.2f}",
        f"at most {SAME_DIFFERENCE:g}",
        worst <= SAME_DIFFERENCE,
    )
    told = max(one.told for one in found)
    if np.isfinite(told):
        what = f"{where}: log-likelihood that a fit itself says is still to gain, largest"
        yield Row(what, f"{told:.3f}", "")
    statuses = [status for one in found for status in one.statuses]
    yield Row(
        f"{where}: how fits ended",
        counted(statuses),
        "all CONVERGED",
        set(statuses) == {"CONVERGED"},
    )


def time_rows(n: int, tables: range) -> Iterator[Row]:
    """Processor seconds of fits on one thread, beside those of another checkout."""
    here = Path(hs.__file__).parents[1]
    before = os.environ.get(BEFORE)
    what = f"survey, n = {n}, 24 analytes, {len(tables)} fits: processor time of one"
    now = seconds(here, n, tables)
    if before is None:
        yield Row(f"{what} (set {BEFORE} to compare)", f"{np.mean(now):.1f} s", "")
        return
    then = seconds(Path(before).resolve(), n, tables)
    ratio = sum(now) / sum(then)
    yield Row(
        f"{what} / that of the checkout in {BEFORE}",
        f"{ratio:.2f} ({np.mean(now):.1f} s against {np.mean(then):.1f} s)",
        f"at most {FASTER:g}",
        ratio <= FASTER,
    )


def seconds(source: Path, n: int, tables: range) -> list[float]:
    """Time fits with the package in a folder, in a process of its own."""
    words = f"from benchmarks.hard import print_seconds; print_seconds({n}, {list(tables)})"
    done = subprocess.run(
        [sys.executable, "-c", words],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    if Path(told["package"]) != (source / "halfseen").resolve():
        raise ValueError(f"{source} was to be timed, but {told['package']} was")
    return told["seconds"]


def print_seconds(n: int, tables: list[int]) -> None:
    """Print the processor time of each fit, after one that compiles, and which package it is of."""
    fitted(survey(500, 0))
    found = []
    for number in tables:
        table = survey(n, number)
        start = time.process_time()
        fitted(table)
        found.append(time.process_time() - start)
    package = str(Path(hs.__file__).resolve().parent)
    print(json.dumps({"package": package, "seconds": found}))


@task
def hard_at_random(quick: bool) -> Iterator[Row]:
    """Fit tables with blanks alone: the likelihood is in closed form, and so should the answer be."""
    for number in range(1 if quick else 5):
        for table, name in (
            (cycle(seed=number, limit=-np.inf), "in turn, d = 3, n = 900"),
            (monotone(seed=number), "monotone, d = 5, n = 400"),
            (scattered(seed=number), "scattered, d = 5, n = 400"),
        ):
            yield from _at_random_rows(f"blanks {name}, table {number}", table)


def _at_random_rows(where: str, table: HardTable) -> Iterator[Row]:
    answer, errors = at_random_gaps(table)
    yield Row(
        f"{where}: mean and covariance less those of a plain EM, in spreads",
        f"{answer:.1e}",
        f"at most {AT_RANDOM:.0e}",
        answer <= AT_RANDOM,
    )
    yield Row(
        f"{where}: standard errors / those of the numerical Hessian, less one",
        f"{errors:.1e}",
        f"at most {AT_RANDOM_ERRORS:.0e}",
        errors <= AT_RANDOM_ERRORS,
    )


def at_random_gaps(table: HardTable) -> tuple[float, float]:
    """How far a fit is from the slow way, and its standard errors from the curvature there."""
    from tests.naive import observed_information_at_random, plain_em

    fit = fitted(table)
    mean, S = plain_em(table.seen)
    deviation = np.sqrt(np.diag(S))
    answer = max(
        np.abs((fit.mean - mean) / deviation).max(),
        np.abs((fit.covariance - S) / np.outer(deviation, deviation)).max(),
    )
    # In the order of ``StandardErrors.vector``: the mean, then Σ_ij for i >= j.
    information = observed_information_at_random(table.seen, mean, S)
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    return float(answer), float(np.abs(fit.standard_errors.vector() / errors - 1.0).max())
