"""What every program in Python shares: read the tables of a task, time the work, write answers.

A program ends with ``run(estimate)``. The folder of a task holds ``task.json`` and, for each table, a
folder with arrays of doubles, column after column: ``values`` (NaN where hidden) and, where the kind
of the task has them, ``lower`` and ``upper`` (where each cell lies; equal where it is seen).
``complete`` is what nobody sees; only the oracle reads it. Answers are lines of JSON, one a table, so
that those which were ready when time ran out still count.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]


@dataclass(frozen=True)
class Table:
    """One table of a task, and what is known about it."""

    folder: Path
    task: dict[str, Any]

    @classmethod
    def of(cls, folder: Path, number: int) -> Table:
        """Return a table of the task in a folder."""
        task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
        return cls(folder / str(number), task)

    def array(self, name: str) -> Floats:
        """Return an array of the table, a row for each of its n."""
        flat = np.fromfile(self.folder / f"{name}.f64")
        return flat.reshape(self.task["n"], -1, order="F")

    @property
    def values(self) -> Floats:
        """What is seen; NaN elsewhere."""
        return self.array("values")

    @property
    def seed(self) -> int:
        """A seed for the tool, another one for each table."""
        return int(self.folder.name)


@dataclass(frozen=True)
class Answer:
    """An estimate; NaN in the covariance where a tool says nothing, intervals where it has them.

    ``chosen`` is what a tool that chooses for its user chose.
    """

    mean: Floats
    covariance: Floats
    mean_interval: Interval | None = None
    covariance_interval: Interval | None = None
    chosen: str | None = None


Estimate = Callable[[Table, dict[str, Any]], Answer]


def run(estimate: Estimate, *distributions: str, **versions: str) -> None:
    """Answer every table of a folder into a file, with some options: the three words of the command."""
    folder, answers, options = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    first = Table.of(folder, 0)
    with answers.open("w", encoding="utf-8") as lines:
        tell(lines, versions={name: version(name) for name in distributions} | versions)
        for number in range(first.task["tables"]):
            table = Table.of(folder, number)
            start = time.perf_counter()
            answer = estimate(table, options)
            seconds = time.perf_counter() - start
            found = {name: _plain(part) for name, part in vars(answer).items() if part is not None}
            tell(lines, table=number, seconds=seconds, peak=peak_memory(), **found)


def tell(lines: Any, **line: Any) -> None:
    """Write a line at once: the process may be stopped at any time."""
    lines.write(json.dumps(line) + "\n")
    lines.flush()


def peak_memory() -> int | None:
    """Return the most memory that this process has held so far, in bytes, where Linux tells it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def _plain(value: Floats | Interval | str) -> Any:
    """Turn arrays into lists, with null for NaN."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return [_plain(end) for end in value]
    return np.where(np.isnan(value), None, np.asarray(value, dtype=object)).tolist()
