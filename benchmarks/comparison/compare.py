"""Give every task to every tool that can do it, and judge what comes back."""

from __future__ import annotations

import os
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.comparison.judge import Verdict, judge, multiple
from benchmarks.comparison.problems import Problem, Size, problems
from benchmarks.comparison.processes import Outcome, Tool, kill_all, run, tools
from benchmarks.limits import Limit, cramer_rao
from benchmarks.registry import Row

# Seconds that a tool has for all tables of a task at one size.
CAP, QUICK_CAP = 120.0, 12.0
# Quick runs: sizes up to this many columns and rows, and this many tables.
QUICK = Size(d=5, n=5000, tables=2)
# auto may be this far above the lowest error, and the most accurate peer has to be this much slower.
NEAR, FASTER, FROM_COLUMNS = 1.03, 20.0, 10

Say = Callable[[str], None]


@dataclass
class Compared:
    """One task at all of its sizes."""

    title: str
    sizes: list[dict[str, Any]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    busy: float = 0.0


def names() -> list[str]:
    """List the tasks."""
    return list(dict.fromkeys(problem.name for problem in problems()))


def compare(chosen: list[str], quick: bool, say: Say) -> dict[str, Compared]:
    """Run the chosen tasks, as many tools at a time as there are cores, and judge the answers."""
    wanted = [problem for problem in problems() if problem.name in chosen]
    if quick:
        wanted = [small for problem in wanted if (small := _small(problem))]
    with tempfile.TemporaryDirectory() as scratch:
        folders = {}
        for number, problem in enumerate(wanted):
            folders[number] = Path(scratch, str(number))
            problem.write(folders[number])
        _compile(wanted, Path(scratch, "first"))
        outcomes = _run_all(wanted, folders, QUICK_CAP if quick else CAP, say)
    found: dict[str, Compared] = {}
    for number, problem in enumerate(wanted):
        task = found.setdefault(problem.name, Compared(problem.title))
        told = {tool: outcomes[number, tool] for tool in tools() if (number, tool) in outcomes}
        _add(task, problem, told, cramer_rao(problem))
    return found


def _small(problem: Problem) -> Problem | None:
    """Return the quick version of a problem, if it has one."""
    size = problem.size
    if size.d > QUICK.d or size.n > QUICK.n:
        return None
    return replace(problem, size=replace(size, tables=min(size.tables, QUICK.tables)))


def _compile(wanted: list[Problem], folder: Path) -> None:
    """Let our own methods answer one small table of each kind: what they compile is kept on disk."""
    smallest = {p.kind: p for p in sorted(wanted, key=lambda p: -p.size.d)}
    for problem in smallest.values():
        place = folder / problem.name
        replace(problem, size=replace(problem.size, tables=1)).write(place)
        for tool in tools():
            if tool.group == "ours" and tool.takes(problem.kind, problem.numbers):
                run(tool, place, CAP)


def _run_all(
    wanted: list[Problem], folders: dict[int, Path], cap: float, say: Say
) -> dict[tuple[int, Tool], Outcome]:
    """Run every tool on everything it can do, as many tools at a time as there are cores."""
    cores: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in sorted(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)):
        cores.put(core)

    stopped = threading.Event()

    def run_tool(tool: Tool) -> dict[tuple[int, Tool], Outcome]:
        core, found = cores.get(), {}
        try:
            for number, told in _in_turn(tool, wanted, folders, cap, core, say):
                found[number, tool] = told
                if stopped.is_set():
                    break
            return found
        finally:
            cores.put(core)

    # Peers take longest: with them first, no core is idle for long at the end.
    longest_first = sorted(tools(), key=lambda tool: tool.group not in ("peer", "written"))
    with ThreadPoolExecutor(cores.qsize()) as pool:
        futures = [pool.submit(run_tool, tool) for tool in longest_first]
        try:
            return {key: told for future in futures for key, told in future.result().items()}
        except BaseException:
            # Ctrl-C, or an error: nothing goes on behind our back.
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            kill_all()
            raise


def _in_turn(
    tool: Tool, wanted: list[Problem], folders: dict[int, Path], cap: float, core: int, say: Say
) -> Iterator[tuple[int, Outcome]]:
    """Run a tool on its problems, small ones first, and not on those beyond what it could not do."""
    lacks = tool.lacks()
    beyond: list[tuple[Problem, str | None]] = []
    by_size = sorted(enumerate(wanted), key=lambda pair: (pair[1].size.d, pair[1].size.n))
    for number, problem in by_size:
        if not tool.takes(problem.kind, problem.numbers):
            continue
        harder = (reason for small, reason in beyond if _at_least(problem, small))
        reason = lacks or _hopeless(tool, problem) or next(harder, None)
        outcome = Outcome(trouble=reason) if reason else run(tool, folders[number], cap, core)
        size = f"d = {problem.size.d}, n = {problem.size.n}"
        if not outcome.answers and not reason:
            beyond.append((problem, f"not started: {outcome.trouble} in `{problem.name}`, {size}"))
        state = outcome.trouble or f"{outcome.seconds:.1f} s"
        if outcome.answers and outcome.trouble:
            state = f"{len(outcome.answers)} of {problem.size.tables} tables, then {state}"
        say(f"  {problem.name}, {size}: {tool.title}: {state}")
        yield number, outcome


def _hopeless(tool: Tool, problem: Problem) -> str | None:
    """Say why a tool is not tried with so many columns, where that is known."""
    many = tool.most_columns is not None and problem.size.d > tool.most_columns
    return f"not started: {tool.beyond}" if many else None


def _at_least(problem: Problem, small: Problem) -> bool:
    """Tell whether a problem is of the same kind as another, and as large or larger."""
    a, b = problem.size, small.size
    return problem.kind == small.kind and a.d >= b.d and a.n >= b.n


def _add(task: Compared, problem: Problem, told: dict[Tool, Outcome], limit: Limit) -> None:
    """Judge the answers to one problem."""
    auto = next((outcome for tool, outcome in told.items() if tool.name == "auto"), None)
    verdicts = [judge(tool, outcome, problem.truth, limit, auto) for tool, outcome in told.items()]
    task.sizes.append({**vars(problem.size), "tools": [verdict.kept() for verdict in verdicts]})
    task.rows += targets(problem, verdicts)
    task.busy += sum(outcome.seconds for outcome in told.values())
    for outcome in told.values():
        task.versions.update(outcome.versions)


def targets(problem: Problem, verdicts: list[Verdict]) -> Iterator[Row]:
    """Yield what was promised of auto: nobody is sharper, and no sharp peer nearly as fast.

    Each tool is compared with auto on the tables that it answered. Which of several sharp peers comes
    first is chance, so the fastest of those that are as near to the best counts.
    """
    where = f"d = {problem.size.d}, n = {problem.size.n}"
    others = {
        verdict.title: (verdict.auto_covariance / verdict.covariance, verdict)
        for verdict in verdicts
        if verdict.tool != "auto"
        and verdict.uses == "the data"
        and verdict.covariance
        and verdict.auto_covariance
    }
    if not others or not problem.kind.startswith("limits"):
        return
    ratio, best = max(others.values(), key=lambda found: found[0])
    yield Row(
        f"{where}: covariance error of auto / the lowest of the others ({best.title})",
        f"{ratio:.3f}",
        f"at most {NEAR}",
        ratio <= NEAR,
    )
    peers = {title: found for title, found in others.items() if found[1].group == "peer"}
    if not peers:
        yield Row(f"{where}: peers that model the limits and answered in time", "0", "")
    else:
        best_peer = max(ratio for ratio, _ in peers.values())
        sharp = [peer for ratio, peer in peers.values() if ratio * NEAR >= best_peer]
        times = sorted((_slower(peer), peer.title) for peer in sharp)
        due = problem.size.d >= FROM_COLUMNS
        yield Row(
            f"{where}: time of the most accurate peers / auto ({'; '.join(name for _, name in times)})",
            "; ".join(multiple(faster) for faster, _ in times),
            f"at least {FASTER:.0f}" if due else "",
            times[0][0] >= FASTER if due else None,
        )
    for _, verdict in others.values():
        if verdict.group == "written":
            yield Row(f"{where}: time of {verdict.title} / auto", multiple(_slower(verdict)), "")


def _slower(verdict: Verdict) -> float:
    """Return how many times as long as auto a tool takes for a table."""
    return (verdict.seconds or 0.0) / (verdict.auto_seconds or float("inf"))
