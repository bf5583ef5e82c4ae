"""More than one process: how much faster two are, and what is lost when some are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import ndtri

import halfseen as hs
from benchmarks.full_information import decaying
from benchmarks.registry import Row, task
from halfseen.archive import ArchiveError, read_archive
from halfseen.files import PART
from halfseen.scaling.cluster import import_distributed
from halfseen.solvers.full_information.checkpoint import FORMAT, VERSION

HIDDEN = 0.3
LIMIT = float(ndtri(HIDDEN))
# Two workers against one.
COLUMNS, ROWS, QUICK_ROWS, CHUNKS = 100, 200_000, 20_000, 20
LEAST_SPEEDUP = 1.6
# Kills of workers: half in each method. Tables that take some seconds to make and to fit.
WORKER_KILLS, KILLED_COLUMNS, KILLED_ROWS = 10, {"pairwise": 100, "full": 20}, 2000
# Kills of a fit on one machine, and seconds between its checkpoints, by turns.
FIT_KILLS, QUICK_KILLS, EVERY = 20, 4, (0.0, 0.05)
# Parts of a fit that are timed, as the client sees them: where they live, and their names there.
PARTS = {
    "reading": ("halfseen.solvers.in_pieces", "InPieces.rows"),
    "start": ("halfseen.solvers.full_information.full", "start_from"),
    "questions": ("halfseen.solvers.full_information.rows", "KeptRows.total"),
    "information": ("halfseen.solvers.full_information.ascent", "information"),
    "steps": ("halfseen.solvers.full_information.ascent", "Ascent.step"),
    "standard errors": ("halfseen.solvers.full_information.learn", "_standard_errors"),
}


def chunk(number: int, rows: int, columns: int) -> np.ndarray:
    """Rows of a table, left-censored; made where they are needed."""
    rule = hs.DetectionLimits(lower=LIMIT)
    return hs.simulate(decaying(columns), rule, rows, random_state=number)


def table(client: Any, chunks: int, rows: int, columns: int) -> Any:
    """Return a Dask array whose chunks the workers make and keep."""
    dask, da = import_module("dask"), import_module("dask.array")
    make = dask.delayed(chunk)
    parts = [
        da.from_delayed(make(number, rows, columns), (rows, columns), float)
        for number in range(chunks)
    ]
    whole = client.persist(da.concatenate(parts))
    import_distributed().wait(whole)
    return whole


@contextmanager
def workers(count: int) -> Iterator[Any]:
    """Start workers with one thread each, and give a client of them."""
    distributed = import_distributed()
    how = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=count, **how) as cluster:  # noqa: SIM117
        with distributed.Client(cluster) as client:
            client.wait_for_workers(count)
            yield client


@contextmanager
def timed_parts() -> Iterator[dict[str, float]]:
    """Seconds that parts of a fit take, added up while the context lasts."""
    seconds: dict[str, float] = defaultdict(float)

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def inner(*given: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                seconds[name] += time.perf_counter() - start

        return inner

    with ExitStack() as stack:
        for name, (module, path) in PARTS.items():
            *inside, last = path.split(".")
            owner: Any = import_module(module)
            for word in inside:
                owner = getattr(owner, word)
            stack.enter_context(patch.object(owner, last, timed(name, getattr(owner, last))))
        yield seconds


@dataclass
class Run:
    """What one fit took."""

    seconds: float
    parts: dict[str, float]
    steps: int
    # Processor time of each worker, of this process (client and scheduler), and of all other programs.
    worked: list[float]
    client: float
    others: float
    bits: bytes

    def told(self) -> str:
        """Seconds by part, for people."""
        parts = dict(self.parts)
        parts["client between questions"] = (
            parts.pop("steps") - parts["questions"] - parts.get("information", 0.0)
        )
        parts["rest"] = self.seconds - sum(parts.values())
        return ", ".join(f"{name} {value:.1f} s" for name, value in parts.items())


def bits(fit: hs.Fit) -> bytes:
    """Every number of a fit."""
    numbers: list[Any] = [fit.mean, fit.covariance, fit.history.get("trace", ())]
    if fit.uncertainty is not None:
        numbers += [fit.standard_errors.mean, fit.standard_errors.covariance]
    return b"".join(np.asarray(value, dtype=float).tobytes() for value in numbers)


def busy() -> float:
    """Return the seconds that all processors have worked so far; 0 where the system does not tell."""
    path = Path("/proc/stat")
    if not path.exists():
        return 0.0
    user, nice, system = map(int, path.read_text(encoding="ascii").split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def timed_fit(count: int, rows: int) -> Run:
    """Fit on so many workers; each has its kernels compiled before."""
    with workers(count) as client:
        rule = hs.DetectionLimits(lower=LIMIT)
        with warnings.catch_warnings():
            # It is stopped after two steps, and says so.
            warnings.simplefilter("ignore", hs.errors.ConvergenceWarning)
            first = table(client, 2 * count, 500, COLUMNS)
            hs.fit(first, rule, client=client, random_state=0, most_steps=2)
        X = table(client, CHUNKS, rows // CHUNKS, COLUMNS)
        before, own, machine = client.run(time.process_time), time.process_time(), busy()
        with timed_parts() as parts:
            start = time.perf_counter()
            fit = hs.fit(X, rule, client=client, random_state=0)
            seconds = time.perf_counter() - start
        after, own, machine = (
            client.run(time.process_time),
            time.process_time() - own,
            busy() - machine,
        )
    worked = [after[one] - before[one] for one in after]
    others = max(0.0, machine - own - sum(worked))
    return Run(seconds, dict(parts), fit.history["steps"], worked, own, others, bits(fit))


@task
def two_workers(quick: bool) -> Iterator[Row]:
    """``full`` on one worker and on two, by turns; the better of two runs each."""
    rows = QUICK_ROWS if quick else ROWS
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for _ in range(1 if quick else 2):
        for count in runs:
            runs[count].append(timed_fit(count, rows))
    best = {count: min(found, key=lambda run: run.seconds) for count, found in runs.items()}
    what = f"full, d = {COLUMNS}, n = {rows}, {HIDDEN:.0%} left-censored"
    for count, run in best.items():
        name = "1 worker" if count == 1 else f"{count} workers"
        share = 1.0 - run.parts["questions"] / run.seconds
        yield Row(
            f"{what}, {name}: steps per second, share of the time outside of questions to rows",
            f"{run.steps / run.parts['questions']:.2f}, {share:.0%} of {run.seconds:.1f} s",
            "",
        )
        yield Row(f"{what}, {name}: where the time goes", run.told(), "")
        yield Row(
            f"{what}, {name}: processor time of workers, of client and scheduler, of other programs",
            f"{' + '.join(f'{worked:.1f}' for worked in run.worked)}, {run.client:.1f}, "
            f"{run.others:.1f} s",
            "",
        )
    ratio = best[1].seconds / best[2].seconds
    yield Row(
        f"{what}: time of one worker / time of two, one thread each",
        f"{ratio:.2f}",
        f"at least {LEAST_SPEEDUP}",
        ratio >= LEAST_SPEEDUP,
    )
    same = len({run.bits for found in runs.values() for run in found})
    yield Row(f"{what}: different answers among all runs", f"{same}", "1", same == 1)


def fit_pieces(method: str, X: Any, client: Any = None) -> hs.Fit:
    """Fit a table by a method, with a seed where it has one."""
    how = {"random_state": 0} if method == "full" else {}
    return hs.fit(X, hs.DetectionLimits(lower=LIMIT), method, client=client, **how)


def lazy_table(method: str) -> Any:
    """Return a Dask array that is not computed yet: what a worker had is made again when it dies."""
    dask, da = import_module("dask"), import_module("dask.array")
    d, make = KILLED_COLUMNS[method], dask.delayed(chunk)
    parts = [make(number, KILLED_ROWS, d) for number in range(CHUNKS)]
    return da.concatenate([da.from_delayed(part, (KILLED_ROWS, d), float) for part in parts])


@task
def killed_workers(quick: bool) -> Iterator[Row]:
    """Kill one of two workers at random moments of fits, and compare every bit."""
    rng = np.random.default_rng(0)
    for method in ("pairwise", "full"):
        kills = 1 if quick else WORKER_KILLS // 2
        alone = bits(fit_pieces(method, lazy_table(method)))
        with workers(2) as client:
            _timed(method, client)  # the first one compiles
            found = [_killed(method, client, rng) for _ in range(kills)]
        what = (
            f"{method}, d = {KILLED_COLUMNS[method]}, n = {CHUNKS * KILLED_ROWS}, two workers: "
            "SIGKILL of one at a random moment"
        )
        same = sum(one.answer == one.calm_answer == alone for one in found)
        yield Row(
            f"{what}: bits of the undisturbed run, and of one machine",
            f"{same} of {kills}",
            "all",
            same == kills,
        )
        told = [f"{one.moment:.1f} of {one.calm:.1f}: {one.seconds:.1f}" for one in found]
        lost = [one.seconds - one.calm for one in found]
        yield Row(
            f"{what}: time lost next to a calm run just before, mean and most (killed at, of: took)",
            f"{np.mean(lost):.1f}, {max(lost):.1f} s ({', '.join(told)} s)",
            "",
        )


def _timed(method: str, client: Any) -> tuple[float, bytes]:
    start = time.perf_counter()
    fit = fit_pieces(method, lazy_table(method), client)
    return time.perf_counter() - start, bits(fit)


@dataclass(frozen=True)
class Killed:
    """A fit during which a worker was killed, and an undisturbed one just before; times in seconds."""

    calm: float
    calm_answer: bytes
    moment: float
    seconds: float
    answer: bytes


def _killed(method: str, client: Any, rng: np.random.Generator) -> Killed:
    """Fit undisturbed, then again with a worker killed on the way."""
    while True:
        client.wait_for_workers(2)
        calm = _timed(method, client)
        victim = int(rng.choice(sorted(client.run(os.getpid).values())))
        moment = float(rng.uniform(0.0, calm[0]))
        timer = threading.Timer(moment, os.kill, (victim, signal.SIGKILL))
        timer.start()
        took = _timed(method, client)
        if timer.finished.is_set():
            return Killed(*calm, moment, *took)
        # It was faster than the undisturbed run: that was no kill.
        timer.cancel()


FIT = """
import sys
from benchmarks.scaling import killable_fit
killable_fit(float(sys.argv[1]))
"""


def killable_fit(every: float) -> None:
    """Fit with a checkpoint ``c`` in this folder, going on from one that is there, and save it."""
    rule = hs.DetectionLimits(lower=LIMIT)
    X = hs.simulate(decaying(10), rule, 10_000, random_state=1)
    # Kernels are loaded before the clock runs: kills are to fall on steps and on files.
    hs.fit(X[:500], rule, "full", random_state=0, n_jobs=1)
    print("started", flush=True)
    how: dict[str, Any] = {"checkpoint": "c", "every": every, "resume": True, "n_jobs": 1}
    fit = hs.fit(X, rule, "full", random_state=0, accuracy=0.02, **how)
    Path("bits").write_bytes(bits(fit))


def _start(folder: Path, every: float) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", FIT, str(every)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def _finish(folder: Path, every: float) -> tuple[float, bytes]:
    """Run a fit to its end; return the seconds, and its bits."""
    process = _start(folder, every)
    start = time.perf_counter()
    process.communicate()
    if process.returncode:
        raise RuntimeError(f"the fit in {folder} ended with {process.returncode}")
    return time.perf_counter() - start, (folder / "bits").read_bytes()


@task
def killed_fits(quick: bool) -> Iterator[Row]:
    """Kill fits on one machine at random moments, and resume each."""
    rng, kills = np.random.default_rng(0), QUICK_KILLS if quick else FIT_KILLS
    same = whole = clean = parts = begun = 0
    with tempfile.TemporaryDirectory(prefix="halfseen-bench-") as place:
        _finish(Path(place, "compiled"), EVERY[0])
        length, reference = _finish(Path(place, "reference"), EVERY[0])
        for kill in range(kills):
            folder, every = Path(place, str(kill)), EVERY[kill % len(EVERY)]
            process = _start(folder, every)
            time.sleep(float(rng.uniform(0.0, length)))
            process.kill()
            process.communicate()
            names = os.listdir(folder)
            begun += "c" in names
            parts += any(name.endswith(PART) for name in names)
            whole += "c" not in names or _is_whole(folder / "c")
            same += _finish(folder, every)[1] == reference
            clean += sorted(os.listdir(folder)) == ["bits", "c"]
    what = f"full on one machine, {length:.1f} s, kill -9 at {kills} random moments, resumed"
    yield Row(f"{what}: bits of the run that was not", f"{same} of {kills}", "all", same == kills)
    yield Row(
        f"{what}: checkpoints that are whole after the kill (there was one yet: {begun}; the writer of "
        f"the next was under way: {parts})",
        f"{whole} of {kills}",
        "all",
        whole == kills,
    )
    yield Row(
        f"{what}: folders without a file that nobody needs, at the end",
        f"{clean} of {kills}",
        "all",
        clean == kills,
    )


def _is_whole(path: Path) -> bool:
    try:
        with read_archive(path, FORMAT, VERSION) as found:
            for _ in found.arrays():
                pass
    except ArchiveError:
        return False
    return True
