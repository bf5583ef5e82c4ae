"""Speed against the bare matrix products, peak memory, and start-up, each in one run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numba import njit
from scipy.special import ndtr, ndtri

import halfseen as hs
from benchmarks.registry import Row, task
from halfseen.kernels.lanes import LANES, ndtr_lane, ndtri_lane

HIDDEN = 0.3


def data(n: int, d: int) -> tuple[np.ndarray, hs.DetectionLimits]:
    truth = hs.Gaussian(np.zeros(d), 0.5 * np.eye(d) + 0.5)
    rule = hs.DetectionLimits(lower=float(ndtri(HIDDEN)))
    return hs.simulate(truth, rule, n, 0), rule


def bare_products(M: np.ndarray, X0: np.ndarray, X2: np.ndarray) -> None:
    _ = M.T @ M, X0.T @ M, X2.T @ M, X0.T @ X0


def clock(work, *arguments) -> float:
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


@task
def standard_errors(quick: bool) -> Iterator[Row]:
    """Price standard errors in fits without, in processor seconds on one thread."""
    for d, n in ((5, 2_000), (10, 2_000), (20, 2_000)) + (() if quick else ((40, 1_000),)):
        X, rule = data(n, d)
        rounds = [
            [processor_seconds(X, rule, standard_errors=wanted) for wanted in (True, False)]
            for _ in range(3 if quick or d > 20 else 5)
        ][1:]
        ratio = float(np.median([a / b for a, b in rounds]))
        yield Row(
            f"full with standard errors / without, d = {d}, n = {n}, 30 % hidden",
            f"{ratio:.2f} ({np.median(rounds, axis=0)[0]:.2f} s)",
            "at most 1.5",
            ratio <= 1.5,
        )


def processor_seconds(X: np.ndarray, rule: hs.DetectionLimits, **options: bool) -> float:
    """Return the processor seconds of a fit on one thread."""
    start = time.process_time()
    hs.fit(X, rule, "full", random_state=0, n_jobs=1, **options)
    return time.process_time() - start


@task
def products(quick: bool) -> Iterator[Row]:
    n, d = (50_000, 200) if quick else (200_000, 200)
    X, rule = data(n, d)
    M = (~np.isnan(X)).astype(float)
    X0 = np.where(M > 0, X, 0.0)
    X2 = X0**2
    for method in ("truncation", "pairwise"):
        hs.fit(X[:2000], rule, method)
    # Turn by turn, so that a noisy neighbour disturbs both; the median of the ratios counts.
    rounds = [
        (
            clock(bare_products, M, X0, X2),
            clock(hs.fit, X, rule, "truncation"),
            clock(hs.fit, X, rule, "pairwise"),
        )
        for _ in range(3 if quick else 7)
    ]
    bare, *fits = np.median(rounds, axis=0)
    yield Row(f"four bare masked products, n = {n}, d = {d}", f"{bare:.2f} s", "")
    ratios = np.median([[f / r[0] for f in r[1:]] for r in rounds], axis=0)
    for method, ratio, seconds in zip(("truncation", "pairwise"), ratios, fits, strict=True):
        yield Row(
            f"{method}: whole fit / bare products, n = {n}, d = {d}, 30 % hidden",
            f"{ratio:.2f} ({seconds:.2f} s)",
            "at most 2.0",
            bool(ratio <= 2.0),
        )


# The high-water mark is read from the process itself: ru_maxrss would count the parent's memory too.
MEMORY = """
import sys, numpy as np, halfseen as hs
X = np.load(sys.argv[1])
hs.fit(X, hs.DetectionLimits(lower=float(sys.argv[2])), sys.argv[3])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) * 1024 / X.nbytes)
"""


@task
def memory(quick: bool) -> Iterator[Row]:
    n, d = (50_000 if quick else 200_000), 200
    X, _ = data(n, d)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        del X
        for method, most in (("truncation", 3), ("pairwise", 3), ("full", 3)):
            done = subprocess.run(
                [
                    sys.executable, "-W", "ignore", "-c", MEMORY,
                    str(path), str(float(ndtri(HIDDEN))), method,
                ],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            ratio = float(done.stdout)
            # Of a small table in a quick run, Python itself takes more than the table.
            yield Row(
                f"{method}: peak memory of the whole process / input, n = {n}, d = {d}",
                f"{ratio:.2f}",
                "" if quick else f"at most {most}",
                None if quick else ratio <= most,
            )


@task
def start_up(quick: bool) -> Iterator[Row]:
    # As a user has it: with modules that are parsed once.
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def run(*words: str) -> float:
        command = [sys.executable, *words]
        return clock(
            lambda: subprocess.run(command, check=True, capture_output=True, env=variables)
        )

    run("-c", "import halfseen")
    importing = min(run("-c", "import halfseen") for _ in range(3))
    empty = min(run("-c", "pass") for _ in range(3))
    yield Row("import halfseen", f"{importing - empty:.2f} s", "under 1 s", importing - empty < 1)
    run("-m", "halfseen", "demo")
    again = run("-m", "halfseen", "demo")
    yield Row("halfseen demo, second run", f"{again:.1f} s", "under 10 s", again < 10)


COMPILING = """
import time
from numba.core import event

class Compiling(event.Listener):
    count, depth, waited, worked = 0, 0, 0.0, 0.0

    def on_start(self, event):
        if self.depth == 0:
            self.started = time.perf_counter(), time.process_time()
        self.depth += 1
        self.count += 1

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            self.waited += time.perf_counter() - self.started[0]
            self.worked += time.process_time() - self.started[1]

compiling = Compiling()
event.register("numba:compile", compiling)
from halfseen.cli import app
app(["demo"], standalone_mode=False)
print(compiling.count, compiling.waited, compiling.worked)
"""


@task
def cold_start(quick: bool) -> Iterator[Row]:
    """Compile everything that the demo needs into an empty folder, then nothing."""

    def run(cache: str) -> tuple[int, float, float]:
        done = subprocess.run(
            [sys.executable, "-c", COMPILING],
            env=os.environ | {"NUMBA_CACHE_DIR": cache},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        count, waited, worked = done.stdout.splitlines()[-1].split()
        return int(count), float(waited), float(worked)

    with tempfile.TemporaryDirectory() as folder:
        count, waited, worked = run(folder)
        again, *_ = run(folder)
    yield Row(
        f"halfseen demo, first run: waiting for the compiler ({count} functions, processor time "
        f"{worked:.1f} s)",
        f"{waited:.1f} s",
        "under 15 s",
        waited < 15,
    )
    yield Row("halfseen demo, second run: functions compiled", f"{again}", "none", again == 0)


@task
def pair_forms(quick: bool) -> Iterator[Row]:
    X, rule = data(20_000, 60)
    pairs = 60 * 59 // 2
    for form in ("correlation", "paper"):
        hs.fit(X, rule, "truncation", form=form)
        seconds = clock(lambda form=form: hs.fit(X, rule, "truncation", form=form))
        yield Row(
            f'truncation, form="{form}": microseconds per pair, d = 60, n = 20 000',
            f"{1e6 * seconds / pairs:.0f}",
            "",
        )


@njit(**LANES)
def _draw_below(ends: np.ndarray, uniforms: np.ndarray, out: np.ndarray) -> None:
    for k in range(ends.size):
        out[k] = ndtr_lane(ends[k])
    for k in range(ends.size):
        out[k] = ndtri_lane(uniforms[k] * out[k])


@task
def lanes(quick: bool) -> Iterator[Row]:
    """Draw from truncated normals by the straight-line functions, and by SciPy's on the same arrays."""
    rng = np.random.default_rng(0)
    ends, uniforms, out = rng.normal(size=4096), rng.random(4096), np.empty(4096)
    _draw_below(ends, uniforms, out)

    def many(work) -> float:
        return clock(lambda: [work() for _ in range(20)])

    rounds = [
        (
            many(lambda: _draw_below(ends, uniforms, out)),
            many(lambda: ndtri(uniforms * ndtr(ends))),
        )
        for _ in range(20 if quick else 200)
    ]
    ratio = float(np.median([here / there for here, there in rounds]))
    apart = float(np.abs(out - ndtri(uniforms * ndtr(ends))).max())
    yield Row(
        "draws below limits: straight-line Φ and Φ⁻¹ / SciPy's on the same arrays",
        f"{ratio:.2f} (draws at most {apart:.0e} apart)",
        "at most 0.5",
        ratio <= 0.5,
    )
