"""Run tasks, print what they measured, and keep it in ``benchmarks/RESULTS.md``."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import time
from pathlib import Path

import numpy as np
import scipy

import halfseen as hs
from benchmarks import linear_threshold, self_censoring, speed  # noqa: F401 - importing registers their tasks
from benchmarks.registry import TASKS, Row

RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="task", help=f"any of {', '.join(TASKS)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, smaller sizes")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.tasks if name not in TASKS]
    if unknown:
        parser.error(f"no task {unknown[0]!r}; there are {', '.join(TASKS)}")
    report: list[tuple[str, float, list[Row]]] = []
    for name in chosen.tasks or TASKS:
        start = time.perf_counter()
        rows = list(TASKS[name](chosen.quick))
        report.append((name, time.perf_counter() - start, rows))
        print(f"\n{name} ({report[-1][1]:.0f} s)")
        for row in rows:
            print(f"  {row.what}: {row.measured}  [{row.target or '-'}] {row.verdict}")
    if not chosen.tasks and not chosen.quick:
        RESULTS.write_text(_markdown(report), encoding="utf-8")
        print(f"\nwritten to {RESULTS.relative_to(Path.cwd())}")
    missed = sum(row.met is False for _, _, rows in report for row in rows)
    print(f"\n{missed} targets missed" if missed else "\nall targets met")
    return int(missed > 0)


def _markdown(report: list[tuple[str, float, list[Row]]]) -> str:
    lines = [
        "# Measured",
        "",
        "Made by `make bench`. Ratios are taken within one run; seconds are for this machine only.",
        "",
        f"halfseen {hs.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, {os.cpu_count()} cores, "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}.",
    ]
    for name, seconds, rows in report:
        lines += ["", f"## {name} ({seconds:.0f} s)", "", "| what | measured | target | |"]
        lines += ["|---|---|---|---|"]
        lines += [f"| {r.what} | {r.measured} | {r.target} | {r.verdict} |" for r in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
