"""Small tasks as ratios, which the tests measure again: nobody makes a method worse unnoticed.

Errors are multiples of the Cramér–Rao limit; times are processor seconds over those of a yardstick in
the same run. What was recorded may grow by a margin. It is recorded only where the task is asked for by
name: what got worse must not become the measure.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks import results
from benchmarks.comparison.judge import measures
from benchmarks.comparison.problems import Problem, Size, task_of
from benchmarks.comparison.programs.harness import Table
from benchmarks.comparison.programs.ours import estimate
from benchmarks.limits import cramer_rao
from benchmarks.registry import Row, task

# Errors differ between machines by what another BLAS rounds differently; chains drift apart from that,
# by about a tenth of a standard error, as the stopping rule has it. Twice that.
ERROR_MARGIN = 0.2
# Caches, processors and neighbours move a ratio of times by less than this factor.
TIME_FACTOR = 3.0
# The limits are the same each time, so that they need not be exact.
EFFORT = 0.05
# The task, its size, and the methods that are looked at.
SMALL = (
    ("left", Size(d=3, n=1000, tables=3), ("auto", "pairwise", "truncation")),
    ("both", Size(d=4, n=1000, tables=2), ("auto",)),
    ("half_hidden", Size(d=4, n=1000, tables=2), ("auto", "pairwise")),
    ("by_row", Size(d=5, n=1000, tables=2), ("auto",)),
    ("strong", Size(d=5, n=1000, tables=2), ("auto",)),
    ("threshold", Size(d=10, n=1000, tables=1), ("auto",)),
    ("winner", Size(d=5, n=2000, tables=2), ("auto",)),
    ("box", Size(d=3, n=1000, tables=1), ("auto",)),
)


@dataclass(frozen=True)
class Ratio:
    """A figure, and how far it may grow."""

    what: str
    measure: Callable[[], float]
    is_time: bool = False

    def most(self, recorded: float) -> float:
        """Return what it may be, given what it was."""
        return TIME_FACTOR * recorded if self.is_time else recorded + ERROR_MARGIN


def ratios() -> Iterator[Ratio]:
    """List what is guarded."""
    for name, size, methods in SMALL:
        for method in methods:
            where = f"{name}, d = {size.d}, n = {size.n}, {method}"
            for what in ("mean", "covariance"):
                measure = partial(error, name, size, method, what)
                yield Ratio(f"{where}: {what} error / Cramér–Rao limit", measure)
    for method, size in (("auto", Size(10, 2000, 1)), ("pairwise", Size(30, 20_000, 1))):
        where = f"left, d = {size.d}, n = {size.n}, {method}"
        measure = partial(relative_time, "left", size, method)
        yield Ratio(f"{where}: processor time / a million ndtri(ndtr(x))", measure, is_time=True)


def error(name: str, size: Size, method: str, what: str) -> float:
    """Return the error of a method on the tables of a task."""
    return _errors(name, size, method)[what]


@cache
def _errors(name: str, size: Size, method: str) -> dict[str, float]:
    problem = task_of(name, size)
    with tempfile.TemporaryDirectory() as folder:
        answers = [estimate(table, {"method": method}) for table in tables(problem, folder)]
    limit = cramer_rao(problem, effort=EFFORT)
    return measures([vars(answer) for answer in answers], problem.truth, limit)


def tables(problem: Problem, folder: str) -> list[Table]:
    """Write the tables of a problem, as programs find them."""
    problem.write(Path(folder))
    return [Table.of(Path(folder), number) for number in range(problem.size.tables)]


def relative_time(name: str, size: Size, method: str) -> float:
    """Return processor seconds of a fit on one thread, over the yardstick's; the least of three each."""
    x = np.random.default_rng(0).normal(size=1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        (table,) = tables(task_of(name, size), folder)
        fits = _least(lambda: estimate(table, {"method": method}))
        return fits / _least(lambda: ndtri(ndtr(x)))


def _least(work: Callable[[], object]) -> float:
    work()
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def recorded() -> dict[str, float]:
    """Return the ratios as they were recorded."""
    rows = results.read().get("guard", {"rows": []})["rows"]
    return {what: float(measured) for what, measured, *_ in rows}


@task
def guard(quick: bool) -> Iterator[Row]:
    then = recorded()
    for ratio in ratios():
        now = ratio.measure()
        if ratio.what in then:
            most = ratio.most(then[ratio.what])
            yield Row(ratio.what, f"{now:.3f}", f"at most {most:.3f}", now <= most)
        else:
            yield Row(ratio.what, f"{now:.3f}", "")
