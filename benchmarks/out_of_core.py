"""Tables larger than the memory they are fitted in, against reading their files alone."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from benchmarks.registry import Row, task
from halfseen.data.table import chunk_rows
from halfseen.memory import parse_memory
from halfseen.parallel import map_in_order, resolve_jobs, single_blas_thread

COLUMNS, HIDDEN, CORRELATION = 100, 0.3, 0.5
# Bytes of Parquet, if three times as many are free on the disk.
BYTES, QUICK_BYTES = 10_000_000_000, 200_000_000
# Hidden cells take next to nothing, and random doubles do not compress.
BYTES_PER_ROW = 8 * COLUMNS * (1 - HIDDEN)
MEMORY, MOST_BYTES = "1GB", 1_000_000_000
# Rows per second of a fit, against those of reading.
MOST_RATIO = 3.0
# Of a regression on columns of such files.
OUTCOMES, COVARIATES = 5, 20
# Rows and columns that pandas writes into one row group, and how much memory a fit of them is given.
PANDAS = ((200_000, 100, "500MB"), (200_000, 400, "700MB"), (100_000, 1000, "1500MB"))

# Both scripts tell seconds and the high-water mark of the process itself: that of its parent would be
# counted in ru_maxrss. Start-up is not in the seconds; of a fit, everything else is.
TELL = """
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
told = {"seconds": time.perf_counter() - start, "peak": int(peak.split()[1]) * 1024, **more}
pathlib.Path(sys.argv[1]).write_text(json.dumps(told))
"""
COMMAND = f"""
import json, pathlib, sys, time
from halfseen.cli import app
start = time.perf_counter()
code = 0
try:
    app(sys.argv[2:], prog_name="halfseen")
except SystemExit as end:
    code = int(end.code or 0)
more = {{"code": code}}
{TELL}
"""
READING = f"""
import glob, json, pathlib, sys, time
import pyarrow.parquet as pq
start = time.perf_counter()
rows = 0
for path in sorted(glob.glob(sys.argv[2])):
    for batch in pq.ParquetFile(path).iter_batches():
        rows += batch.num_rows
more = {{"rows": rows}}
{TELL}
"""


@task
def out_of_core(quick: bool) -> Iterator[Row]:
    """Make Parquet files block by block, read them, and fit them by ``pairwise``."""
    with tempfile.TemporaryDirectory(prefix="halfseen-bench-") as place:
        size = QUICK_BYTES if quick else min(BYTES, shutil.disk_usage(place).free // 3)
        rows = int(size / BYTES_PER_ROW)
        data = Path(place, "data")
        yield _make(data, rows)
        read, fit = _rounds(place, str(data / "*.parquet"))
        cold = _rounds(place, str(data / "*.parquet"), drop=True)
        size = sum(path.stat().st_size for path in data.iterdir())
        what = f"{size / 1e9:.2g} GB of Parquet, {rows} rows, d = {COLUMNS}, 30 % hidden"
        yield Row(f"{what}: reading alone, pyarrow", f"{rows / read['seconds']:.0f} rows/s", "")
        yield Row(
            f"{what}: halfseen fit --method pairwise --memory {MEMORY}",
            f"{rows / fit['seconds']:.0f} rows/s",
            "",
        )
        yield Row(
            f"{what}: peak memory of the whole process",
            f"{fit['peak'] / 1e9:.2f} GB",
            f"under {MOST_BYTES / 1e9:.0f} GB",
            fit["peak"] < MOST_BYTES,
        )
        for where, (alone, whole) in (
            ("files that are in memory already", (read, fit)),
            (f"files that are not ({size / 1e6 / cold[0]['seconds']:.0f} MB/s)", cold),
        ):
            ratio = whole["seconds"] / alone["seconds"]
            yield Row(
                f"time of the fit / time of reading alone, {where}; the second of two runs each",
                f"{ratio:.2f}",
                f"at most {MOST_RATIO:.0f}",
                ratio <= MOST_RATIO,
            )
        yield _products(read["seconds"] / rows)
        yield _error(Path(place, "fit.json"), rows)


@task
def pandas_parquet(quick: bool) -> Iterator[Row]:
    """Keep within memory on what pandas writes by itself: one row group, with dictionaries."""
    import pandas as pd

    for rows, columns, memory in PANDAS[:1] if quick else PANDAS:
        with tempfile.TemporaryDirectory(prefix="halfseen-bench-") as place:
            path = Path(place, "pandas.parquet")
            X = np.random.default_rng(columns).normal(size=(rows, columns)).T
            X[ndtri(HIDDEN) > X] = np.nan
            pd.DataFrame({f"x{j}": x for j, x in enumerate(X)}).to_parquet(path)
            size = path.stat().st_size
            rule = ", ".join(f"x{j}" for j in range(columns)) + f": >={float(ndtri(HIDDEN))!r}"
            words = ["fit", str(path), "--method", "pairwise", "--seen", rule, "--memory", memory]
            told = _run(Path(place), COMMAND, *words, "-o", str(Path(place, "fit.json")))
        yield Row(
            f"{rows} x {columns} written by pandas ({size / 1e6:.0f} MB): peak memory of "
            f"halfseen fit --method pairwise --memory {memory}",
            f"{told['peak'] / 1e6:.0f} MB, {told['seconds']:.0f} s",
            f"under {memory}",
            told["peak"] < parse_memory(memory),
        )


@task
def regression_out_of_core(quick: bool) -> Iterator[Row]:
    """Regress columns of Parquet files, a part of which would fill the memory that is given."""
    size, memory = (QUICK_BYTES, "450MB") if quick else (BYTES, MEMORY)
    outcomes = [f"x{j}" for j in range(OUTCOMES)]
    regressors = [f"x{j}" for j in range(OUTCOMES, OUTCOMES + COVARIATES)]
    rule = f"{', '.join(outcomes)}: >={float(ndtri(HIDDEN))!r}"
    with tempfile.TemporaryDirectory(prefix="halfseen-bench-") as place:
        data = Path(place, "data")
        size = min(size, shutil.disk_usage(place).free // 3)
        rows = int(size / (8 * COLUMNS))
        _run(
            Path(place), COMMAND, "simulate", "--rows", str(rows), "--columns", str(COLUMNS),
            "--correlation", str(CORRELATION), "--seen", rule, "--format", "parquet",
            "--output", str(data),
        )  # fmt: skip
        told = _run(
            Path(place), COMMAND, "regress", str(data),
            f"{' + '.join(outcomes)} ~ {' + '.join(regressors)}", "--seen", rule,
            "--memory", memory, "--scratch", place, "--output", str(Path(place, "fit.json")),
        )  # fmt: skip
    yield Row(
        f"{size / 1e9:.2g} GB of Parquet, {rows} rows, {OUTCOMES} outcomes, {COVARIATES} of "
        f"{COLUMNS} columns as regressors: peak memory of halfseen regress --memory {memory}",
        f"{told['peak'] / 1e6:.0f} MB, {rows / told['seconds']:.0f} rows/s",
        f"under {memory}",
        told["peak"] < parse_memory(memory),
    )


def _make(data: Path, rows: int) -> Row:
    told = _run(
        data.parent, COMMAND, "simulate", "--rows", str(rows), "--columns", str(COLUMNS),
        "--correlation", str(CORRELATION), "--seen", _rule(), "--format", "parquet",
        "--output", str(data),
    )  # fmt: skip
    return Row(
        f"halfseen simulate --rows {rows} --columns {COLUMNS}: rows per second, peak memory",
        f"{rows / told['seconds']:.0f} rows/s, {told['peak'] / 1e9:.2f} GB",
        "",
    )


def _products(reading: float) -> Row:
    """Compare the four products of a row, which any such fit must make, with reading it."""
    rng = np.random.default_rng(0)
    n = chunk_rows(COLUMNS)
    U, M = rng.normal(size=(COLUMNS, n)), np.ones((COLUMNS, n))
    V, single = np.vstack([U, U * U]), M.astype(np.float32)

    def products(_: int) -> None:
        for left, right in ((V, M), (U, U), (single, single)):
            _ = left @ right.T

    jobs = resolve_jobs(None)
    with single_blas_thread():
        list(map_in_order(products, range(4 * jobs)))
        start = time.perf_counter()
        list(map_in_order(products, range(20 * jobs)))
        seconds = (time.perf_counter() - start) / (20 * jobs * n)
    return Row(
        f"time of the bare products of a row, {jobs} threads / time of reading it from memory",
        f"{seconds / reading:.2f}",
        "",
    )


def _drop(pattern: str) -> None:
    """Ask the system to forget what it keeps of files."""
    for path in glob.glob(pattern):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _rounds(
    place: str, pattern: str, drop: bool = False
) -> tuple[dict[str, float], dict[str, float]]:
    """Read and fit twice, by turns; return the second of each.

    Files that fit are in memory then, unless they are dropped before each.
    """
    words = ["fit", pattern, "--method", "pairwise", "--seen", _rule(), "--memory", MEMORY]
    words += ["--output", str(Path(place, "fit.json"))]
    for _ in range(2):
        if drop:
            _drop(pattern)
        read = _run(Path(place), READING, pattern)
        if drop:
            _drop(pattern)
        fit = _run(Path(place), COMMAND, *words)
    return read, fit


def _rule() -> str:
    names = ", ".join(f"x{j}" for j in range(COLUMNS))
    return f"{names}: >={float(ndtri(HIDDEN))!r}"


def _run(place: Path, script: str, *words: str) -> dict[str, float]:
    told = place / "told.json"
    done = subprocess.run(
        [sys.executable, "-c", script, str(told), *words], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed:\n{done.stderr}")
    found = json.loads(told.read_text(encoding="utf-8"))
    # 1 says that there is an answer with a remark.
    if found.get("code", 0) > 1:
        raise RuntimeError(f"halfseen {words[0]} ended with {found['code']}:\n{done.stderr}")
    return found


def _error(path: Path, rows: int) -> Row:
    """Compare with the truth, in units of the standard error that complete rows would leave."""
    found = json.loads(path.read_text(encoding="utf-8"))
    names = found["columns"]
    mean = np.array([found["mean"][name] for name in names])
    covariance = np.array([[found["covariance"][a][b] for b in names] for a in names])
    truth = CORRELATION + (1 - CORRELATION) * np.eye(COLUMNS)
    unit = np.sqrt(np.outer(np.diag(truth), np.diag(truth)) + truth**2)
    return Row(
        "largest error of a mean, and of a covariance, in standard errors of complete rows",
        f"{np.abs(mean).max() * np.sqrt(rows):.1f}, "
        f"{(np.abs(covariance - truth) / unit).max() * np.sqrt(rows):.1f}",
        "",
    )
