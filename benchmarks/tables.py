"""Real tables: from a file to a report, and what reading costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests.laboratory import write_laboratory

import halfseen as hs
from benchmarks.registry import Row, task

# What one command may take on its second run, and how large its page may be.
SECONDS, BYTES = 15.0, 1_500_000


def _seconds(words: list[str], cache: str) -> tuple[float, str]:
    """Run Python with its compiled kernels in a folder of their own."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
    )
    return time.perf_counter() - start, done.stdout


@task
def laboratory(quick: bool) -> Iterator[Row]:
    """Take a laboratory's file (500 rows, 8 columns, limits that differ by row) to a report."""
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder, "lab.csv"), Path(folder, "lab.html")
        write_laboratory(path)
        words = ["-m", "halfseen", "fit", str(path), "--index", "sample", "--log", "--json"]
        words += ["--report", str(page)]
        first, _ = _seconds(words, folder)
        second, told = _seconds(words, folder)
        start, _ = _seconds(["-c", "import halfseen"], folder)
        yield Row(
            "halfseen fit --log --report, second run",
            f"{second:.1f} s ({second / start:.1f} times `import halfseen`; first run, which compiles, "
            f"{first:.1f} s)",
            f"< {SECONDS:.0f} s",
            second < SECONDS,
        )
        fit = hs.fit(hs.read_csv(path, index="sample"), transforms="log", random_state=0)
        same = json.loads(told) == fit.to_dict()
        yield Row("--json equals Fit.to_dict() of the same fit", str(same), "equal", same)
        size = page.stat().st_size
        yield Row("size of the report", f"{size / 1e6:.2f} MB", "< 1.5 MB", size < BYTES)


# Time of reading numbers, over that of pandas: it makes no limits, labels or doubts of them.
MOST_OF_PANDAS = 4.0


@task
def reading(quick: bool) -> Iterator[Row]:
    """Read a file of numbers and limits; pandas reading it, as text or as numbers, is the yardstick."""
    import pandas as pd

    rows = 20_000 if quick else 200_000
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(rows, 10)))
    with tempfile.TemporaryDirectory() as folder:
        for share in (0.0, 0.3):
            path = Path(folder, f"{share}.csv")
            lines = (
                ",".join("<0.6" if share and x < 0.6 else repr(x) for x in row)
                for row in X.tolist()
            )
            path.write_text("\n".join(["a,b,c,d,e,f,g,h,i,j", *lines]) + "\n", encoding="utf-8")
            start = time.perf_counter()
            hs.read_csv(path)
            ours = time.perf_counter() - start
            start = time.perf_counter()
            pd.read_csv(path, dtype=str)
            theirs = time.perf_counter() - start
            yield Row(
                f"read_csv, {rows} x 10 cells, {'with <' if share else 'numbers alone'}",
                f"{ours:.1f} s, {ours / theirs:.1f} times pandas.read_csv(dtype=str)",
                "",
            )
        yield _plain_numbers(Path(folder, "plain.csv"), 20_000 if quick else 260_000)


def _plain_numbers(path: Path, rows: int) -> Row:
    """Read a file of numbers alone as pandas does, both from memory: medians of five turns."""
    import pandas as pd

    X = np.random.default_rng(1).normal(size=(rows, 10))
    pd.DataFrame(X, columns=list("abcdefghij")).to_csv(path, index=False)
    ours, theirs = [], []
    for _ in range(5):
        for read, kept in ((hs.read_csv, ours), (pd.read_csv, theirs)):
            start = time.perf_counter()
            read(path)
            kept.append(time.perf_counter() - start)
    ratio = float(np.median(ours) / np.median(theirs))
    return Row(
        f"read_csv, {path.stat().st_size / 1e6:.0f} MB of numbers alone: time / that of pandas.read_csv",
        f"{ratio:.1f}",
        f"at most {MOST_OF_PANDAS:.0f}",
        ratio <= MOST_OF_PANDAS,
    )
