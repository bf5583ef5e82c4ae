"""What was measured, kept by task: the store, and the pages that are made from it."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import halfseen as hs
from benchmarks.comparison import pages
from benchmarks.registry import Row

HERE = Path(__file__).parent
STORE, RESULTS = HERE / "results.json", HERE / "RESULTS.md"
PAGE = HERE.parent / "docs" / "benchmarks.md"

Kept = dict[str, dict[str, Any]]


def read() -> Kept:
    """Return what is kept."""
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}


def keep(name: str, seconds: float, rows: Iterable[Row], order: Iterable[str], **more: Any) -> None:
    """Put a task's figures into the store, and make the pages anew."""
    kept = read()
    kept[name] = {
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "seconds": round(seconds),
        "machine": machine(),
        "rows": [[row.what, row.measured, row.target, row.verdict] for row in rows],
        **more,
    }
    write({task: kept[task] for task in order if task in kept})


def write(kept: Kept) -> None:
    """Write the store, and the pages that show it."""
    STORE.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    RESULTS.write_text(markdown(kept), encoding="utf-8")
    PAGE.write_text(pages.comparison_page(kept), encoding="utf-8")


def machine() -> str:
    """Say what computed, in a line."""
    return (
        f"{os.cpu_count()} cores{_processor()}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}, halfseen {hs.__version__}"
    )


def _processor() -> str:
    """Return the processor's name in brackets, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    name = next(names, "")
    return f" ({name})" if name else ""


def markdown(kept: Kept) -> str:
    """Return the page with everything."""
    whole = sum(found["seconds"] for found in kept.values()) / 60.0
    lines = [
        "# Measured",
        "",
        "Made by `make bench`, or `make bench BENCH=task` for one of them; `make bench QUICK=1` prints",
        "a short version of all and keeps nothing. Ratios are taken within one run; seconds are for",
        f"the machine named. The tasks below took {whole:.0f} minutes in all.",
    ]
    for name, found in kept.items():
        lines += ["", *section(name, found)]
    return "\n".join(lines) + "\n"


def section(name: str, found: dict[str, Any]) -> list[str]:
    """Return the lines of one task."""
    lines = [f"## {name}", "", f"{found['date']}, {found['seconds']} s, {found['machine']}."]
    if "sizes" in found:
        lines += ["", *pages.comparison(found)]
    if found["rows"]:
        lines += ["", "| what | measured | target | |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in found["rows"]]
    return lines
