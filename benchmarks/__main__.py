"""Run tasks, print what they measured, and keep it in ``benchmarks/RESULTS.md``.

Quick runs are printed, not kept.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import scipy

import halfseen as hs
from benchmarks import (  # noqa: F401 - importing registers their tasks
    full_information,
    fuzzing,
    linear_threshold,
    out_of_core,
    scale_model,
    scaling,
    self_censoring,
    speed,
    tables,
)
from benchmarks.registry import TASKS, Row

RESULTS = Path(__file__).with_name("RESULTS.md")
STORE = Path(__file__).with_name("results.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="task", help=f"any of {', '.join(TASKS)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, smaller sizes")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.tasks if name not in TASKS]
    if unknown:
        parser.error(f"no task {unknown[0]!r}; there are {', '.join(TASKS)}")
    missed = 0
    for name in chosen.tasks or TASKS:
        start = time.perf_counter()
        rows = list(TASKS[name](chosen.quick))
        seconds = time.perf_counter() - start
        print(f"\n{name} ({seconds:.0f} s)")
        for row in rows:
            print(f"  {row.what}: {row.measured}  [{row.target or '-'}] {row.verdict}", flush=True)
        missed += sum(row.met is False for row in rows)
        if not chosen.quick:
            _keep(name, seconds, rows)
    print(f"\n{missed} targets missed" if missed else "\nall targets met")
    return int(missed > 0)


def _keep(name: str, seconds: float, rows: list[Row]) -> None:
    """Put a task's figures into the store, and make the page anew."""
    kept = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}
    kept[name] = {
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "seconds": round(seconds),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}, halfseen {hs.__version__}",
        "rows": [[row.what, row.measured, row.target, row.verdict] for row in rows],
    }
    ordered = {task: kept[task] for task in TASKS if task in kept}
    STORE.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    RESULTS.write_text(_markdown(ordered), encoding="utf-8")


def _markdown(kept: dict[str, dict]) -> str:
    lines = [
        "# Measured",
        "",
        "Made by `make bench`, or `make bench BENCH=task` for one of them. Ratios are taken within one",
        "run; seconds are for the machine named.",
    ]
    for name, found in kept.items():
        lines += [
            "",
            f"## {name}",
            "",
            f"{found['date']}, {found['seconds']} s, {found['machine']}.",
            "",
        ]
        lines += ["| what | measured | target | |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in found["rows"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
