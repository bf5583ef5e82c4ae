"""Run tasks, print what they measured, and keep it in ``benchmarks/RESULTS.md``.

Tasks are of two kinds: comparisons with other tools (files in ``benchmarks/comparison/tasks``), which
run together, and figures of halfseen's own. Quick runs are printed, not kept.
"""

from __future__ import annotations

import argparse
import time
import traceback

from benchmarks import (  # noqa: F401 - importing registers their tasks
    check_power,
    full_information,
    fuzzing,
    groups,
    guard,
    hard,
    hard_intervals,
    hard_visits,
    heavy_tails,
    learned_powers,
    linear_threshold,
    losses,
    monte_carlo,
    out_of_core,
    pairwise_limit,
    random_designs,
    regression_coverage,
    regression_oracles,
    regression_penalties,
    regression_scale,
    reported_limits,
    results,
    scale_model,
    scaling,
    self_censoring,
    small_tables,
    speed,
    structures,
    tables,
)
from benchmarks.comparison import (  # noqa: F401 - importing registers its task
    before,
    compare,
    pages,
    regressions,
)
from benchmarks.registry import TASKS, Row

COMPARISONS = compare.names()
# One word for all of them.
ALL_COMPARISONS = "comparison"
ORDER = (*COMPARISONS, *TASKS)
# Tasks whose record is what others are measured by: kept only where they are asked for.
ON_REQUEST = ("guard",)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    words = (ALL_COMPARISONS, *ORDER)
    parser.add_argument("tasks", nargs="*", metavar="task", help=f"any of {', '.join(words)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, smaller sizes")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.tasks if name not in words]
    if unknown:
        parser.error(f"no task {unknown[0]!r}; there are {', '.join(words)}")
    wanted = set(chosen.tasks or ORDER)
    if ALL_COMPARISONS in wanted:
        wanted.update(COMPARISONS)
    start = time.perf_counter()
    missed = _compare([name for name in COMPARISONS if name in wanted], chosen.quick)
    for name in TASKS:
        if name in wanted:
            keep = not chosen.quick and (name not in ON_REQUEST or name in chosen.tasks)
            missed += _measure(name, chosen.quick, keep)
    minutes = (time.perf_counter() - start) / 60.0
    verdict = f"{missed} targets missed" if missed else "all targets met"
    print(f"\n{verdict}, in {minutes:.1f} minutes")
    return int(missed > 0)


def _compare(names: list[str], quick: bool) -> int:
    """Run comparisons, and return how many targets were missed."""
    if not names:
        return 0
    start = time.perf_counter()
    print("comparisons with other tools, as they come:")
    found = compare.compare(names, quick, lambda line: print(line, flush=True))
    seconds = time.perf_counter() - start
    # Tasks run side by side, so that each has its share of the whole.
    busy = sum(task.busy for task in found.values()) or 1.0
    for name, task in found.items():
        share = seconds * task.busy / busy
        print(f"\n{name} ({share:.0f} s)")
        cap = compare.QUICK_CAP if quick else compare.CAP
        kept = {"title": task.title, "cap": cap, "versions": task.versions, "sizes": task.sizes}
        print("\n".join(pages.comparison(kept)))
        _print(task.rows)
        if not quick:
            results.keep(name, share, task.rows, ORDER, **kept)
    return sum(row.met is False for task in found.values() for row in task.rows)


def _measure(name: str, quick: bool, keep: bool) -> int:
    """Run a task of our own, and return how many targets were missed."""
    start = time.perf_counter()
    print(f"\n{name}", flush=True)
    rows = []
    try:
        for row in TASKS[name](quick):
            rows.append(row)
            _print([row])
    except Exception:  # the others are to be measured all the same
        print(f"{name} failed:\n{traceback.format_exc()}", flush=True)
        return 1
    seconds = time.perf_counter() - start
    print(f"({seconds:.0f} s)", flush=True)
    # A task that measured nothing leaves what it measured before.
    if keep and rows:
        results.keep(name, seconds, rows, ORDER)
    return sum(row.met is False for row in rows)


def _print(rows: list[Row]) -> None:
    for row in rows:
        print(f"  {row.what}: {row.measured}  [{row.target or '-'}] {row.verdict}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
