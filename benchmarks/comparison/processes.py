"""Run a tool on a task: a process of its own, on one core, stopped when its time is up."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Everyone computes on one core, so that nobody's threads get in the way of another's figures.
ONE_CORE = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}
# How much of a tool's last words a table has room for.
WORDS = 160


@dataclass(frozen=True)
class Tool:
    """A tool, as its file in ``tools/`` has it.

    ``group`` is "ours", "oracle" (is told what nobody sees), "peer" (models what hides values),
    "written" (does so by a sampler that its user has to write) or "baseline" (does not). ``uses`` is
    what it is told; ``sets`` are those it can do of truncated tasks; with more than ``most_columns``
    it is not tried, for the reason ``beyond``.
    """

    name: str
    title: str
    group: str
    program: str
    kinds: tuple[str, ...]
    setup: str
    needs: tuple[str, ...] = ()
    uses: str = "the data"
    sets: tuple[str, ...] = ()
    most_columns: int | None = None
    beyond: str = ""
    options: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def in_r(self) -> bool:
        """Whether the program is R's."""
        return self.program.endswith(".R")

    def takes(self, kind: str, numbers: dict[str, Any]) -> bool:
        """Tell whether the tool can do a task at all."""
        return kind in self.kinds and (not self.sets or numbers.get("set") in self.sets)

    def command(self, folder: Path, answers: Path) -> list[str]:
        """Return the words that start the program."""
        words = [str(folder), str(answers), json.dumps(self.options)]
        if self.in_r:
            return ["Rscript", "--vanilla", str(HERE / "programs" / self.program), *words]
        module = f"benchmarks.comparison.programs.{self.program}"
        return [sys.executable, "-W", "ignore", "-m", module, *words]

    def lacks(self) -> str | None:
        """Name what is not installed of what the tool needs, if anything."""
        if self.in_r and shutil.which("Rscript") is None:
            return "Rscript is not there"
        missing = [need for need in self.needs if not (_has_r if self.in_r else _has)(need)]
        return f"{', '.join(missing)} not installed" if missing else None


@dataclass
class Outcome:
    """What became of a tool on a task: its answers, and why there are no more of them."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    trouble: str | None = None
    seconds: float = 0.0


def tools() -> list[Tool]:
    """Read the tools: ours, the oracle, then the others by name."""
    order = ("ours", "oracle", "peer", "written", "baseline")
    found = []
    for path in sorted((HERE / "tools").glob("*.toml")):
        told = tomllib.loads(path.read_text(encoding="utf-8"))
        lists = {name: tuple(told.pop(name)) for name in ("kinds", "needs", "sets") if name in told}
        found.append(Tool(path.stem, **told, **lists))
    return sorted(found, key=lambda tool: (order.index(tool.group), tool.name))


def run(tool: Tool, folder: Path, seconds: float, core: int | None = None) -> Outcome:
    """Let a tool answer the tables in a folder for at most so many seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        answers, told = Path(scratch, "answers.jsonl"), Path(scratch, "stderr")
        start = time.perf_counter()
        code = _wait(tool.command(folder, answers), told, seconds, core)
        outcome = Outcome(seconds=time.perf_counter() - start)
        for line in _lines(answers):
            outcome.versions.update(line.get("versions", {}))
            if "table" in line:
                outcome.answers.append(line)
        outcome.trouble = _trouble(code, seconds, told)
        if outcome.trouble is None and len(outcome.answers) < _tables(folder):
            outcome.trouble = "failed: it ended without a word"
        return outcome


def _trouble(code: int | None, seconds: float, told: Path) -> str | None:
    """Say why a program ended, unless all was well."""
    if code is None:
        return f"no answer in {seconds:.0f} s"
    if code < 0:
        return f"failed: killed by {signal.Signals(-code).name}"
    return f"failed: {last_words(told) or f'exit code {code}'}" if code else None


def _tables(folder: Path) -> int:
    return json.loads((folder / "task.json").read_text(encoding="utf-8"))["tables"]


def _wait(command: list[str], told: Path, seconds: float, core: int | None) -> int | None:
    """Return the exit code; None, and nothing left running, where time was up first."""
    with told.open("wb") as stderr:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **ONE_CORE}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr,
        )  # fmt: skip
        if core is not None and hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(process.pid, {core})
        _running.add(process)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _running.discard(process)
            _kill(process)


_running: set[subprocess.Popen[bytes]] = set()


def kill_all() -> None:
    """Stop every tool that is still running: whoever waits for one has been told to stop."""
    for process in list(_running):
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program, with those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _lines(path: Path) -> list[dict[str, Any]]:
    """Read lines of JSON; the last may have been cut short."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with contextlib.suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


def last_words(path: Path) -> str:
    """Return the last line that a program wrote, in printable characters."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    lines = [" ".join(re.sub(r"[^ -~]", " ", line).split()) for line in lines]
    said = next((line for line in reversed(lines) if line and line != "Execution halted"), "")
    return said if len(said) <= WORDS else said[: WORDS - 1] + "…"


@cache
def _has(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


@cache
def _has_r(name: str) -> bool:
    asks = f'quit(status = !requireNamespace("{name}", quietly = TRUE))'
    return subprocess.run(["Rscript", "--vanilla", "-e", asks], capture_output=True).returncode == 0
