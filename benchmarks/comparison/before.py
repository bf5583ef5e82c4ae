"""The tables of the comparison, given to another checkout of halfseen too.

``HALFSEEN_BEFORE=path/to/src python -m benchmarks comparison_before``: accuracy and time of ``auto``,
here and there, in one run on one core. Needs no other tool, and no figure of another day.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import halfseen as hs
from benchmarks.comparison.compare import CAP
from benchmarks.comparison.judge import Verdict, judge
from benchmarks.comparison.problems import Problem, problems
from benchmarks.comparison.processes import Outcome, run, tools
from benchmarks.hard import BEFORE
from benchmarks.limits import cramer_rao
from benchmarks.registry import Row, task

# What one engine may be worse by: in its errors, on the same tables, and in time, which is noisy.
WORSE, SLOWER = 1.02, 1.1
# Quick runs stop at this many columns.
QUICK_COLUMNS = 5


@task
def comparison_before(quick: bool) -> Iterator[Row]:
    """Divide errors and times of ``auto`` by those of another checkout."""
    before = os.environ.get(BEFORE)
    if before is None:
        print(f"  nothing to compare with: set {BEFORE} to the folder src of another checkout")
        return
    sources = Path(hs.__file__).parents[1], Path(before).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        for number, problem in enumerate(problems()):
            if problem.kind == "truncated" or (quick and problem.size.d > QUICK_COLUMNS):
                continue
            folder = Path(scratch, str(number))
            problem.write(folder)
            here, there = (_verdict(problem, folder, source) for source in sources)
            yield from _rows(problem, here, there)


def _verdict(problem: Problem, folder: Path, source: Path) -> Verdict:
    """Let the package in a folder answer, compiled beforehand."""
    tool = next(tool for tool in tools() if tool.name == "auto")
    with mock.patch.dict(os.environ, {"PYTHONPATH": str(source)}):
        first = folder.with_name(f"{folder.name}-first")
        replace(problem, size=replace(problem.size, tables=1, n=min(problem.size.n, 1000))).write(
            first
        )
        run(tool, first, 4.0 * CAP, 0)
        outcome: Outcome = run(tool, folder, CAP, 0)
    return judge(tool, outcome, problem.truth, cramer_rao(problem), None)


def _rows(problem: Problem, here: Verdict, there: Verdict) -> Iterator[Row]:
    where = f"{problem.name}, d = {problem.size.d}, n = {problem.size.n}, {here.tables} tables"
    if here.trouble or there.trouble:
        trouble = f"{here.trouble or 'fine'} (before: {there.trouble or 'fine'})"
        yield Row(f"{where}: how it ended", trouble, "fine", here.trouble is None)
        return
    for what in ("mean", "covariance"):
        now, then = getattr(here, what), getattr(there, what)
        if now is not None and then:
            yield Row(
                f"{where}: error of the {what} / that of the checkout in {BEFORE}",
                f"{now / then:.3f} ({now:.2f} of the limit)",
                f"at most {WORSE}",
                now <= WORSE * then,
            )
    assert here.seconds is not None
    assert there.seconds is not None
    ratio = here.seconds / there.seconds
    yield Row(
        f"{where}: time / that of the checkout in {BEFORE}",
        f"{ratio:.2f} ({here.seconds:.2f} s)",
        f"at most {SLOWER}",
        ratio <= SLOWER,
    )
