"""Checkpoints of ``full``: how far a run has come, in a file that is whole at any moment.

A run is a sequence of chains. A checkpoint holds the outcome of those that have ended, the state of the
one under way, and the values of its hidden cells. Everything else is computed again when a run is
resumed, from the same table with the same seed, to the same bits.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.archive import Archive, ArchiveError, read_archive, write_archive
from halfseen.errors import InputError, Interrupted
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.full_information.averaging import Averages
from halfseen.solvers.full_information.completion import Moments
from halfseen.solvers.full_information.information import Information
from halfseen.solvers.full_information.m_step import MStep
from halfseen.solvers.full_information.rows import Rows
from halfseen.solvers.full_information.shards import Drawing
from halfseen.solvers.full_information.stochastic_em import State

if TYPE_CHECKING:
    from halfseen.solvers.full_information.learn import Settings

Floats = NDArray[np.float64]
History = list[dict[str, Any]]

FORMAT, VERSION = "halfseen checkpoint", 1
# Seconds between one checkpoint and the next: what a crash costs at most.
EVERY = 60.0

# What the values of a run's key are called in a sentence.
_CALLED = {
    "halfseen": "another version of halfseen",
    "shape": "a table of another shape",
    "names": "a table with other columns",
    "table": "another table, or another rule",
    "seed": "another random_state",
    "parameters": "other options (covariance, correlation, mean, shrinkage, penalty or start)",
    "accuracy": "another accuracy",
    "most_sweeps": "another most_sweeps",
    "standard_errors": "another standard_errors",
}


def run_key(
    rows: Rows,
    m_step: MStep,
    start: tuple[Floats, Floats],
    settings: Settings,
    penalty: float | None,
    follow_start: bool,
) -> dict[str, Any]:
    """Return what a run depends on: a checkpoint of another run is of no use to it."""
    from halfseen import __version__

    structure = m_step.structure
    parts: list[Any] = [structure.name, penalty, follow_start, m_step.mean, *start]
    parts += [getattr(structure, field.name) for field in fields(structure)]  # type: ignore[arg-type]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    about = rows.overview
    return {
        "halfseen": __version__,
        "shape": list(about.shape),
        "names": list(about.names),
        "table": rows.checksum(),
        "seed": settings.seed,
        "parameters": digest.hexdigest(),
        "accuracy": settings.accuracy,
        "most_sweeps": settings.most_sweeps,
        "standard_errors": bool(settings.standard_errors),
    }


@dataclass
class Record:
    """A chain: where it is, how it came there, and whether that is its end."""

    state: State
    history: History
    ended: bool


class Journal:
    """What a run has done so far, and the file that says so.

    Parameters
    ----------
    path : Path
    every : float
        Seconds between one checkpoint and the next.
    archive : Archive or None
        The checkpoint to go on from.
    """

    def __init__(self, path: Path, every: float, archive: Archive | None) -> None:
        self.path, self.every, self._archive = path, every, archive
        self._run: dict[str, Any] = {}
        self._chains: list[Record] = []
        self._next = 0
        self._written = time.monotonic()

    def seed_or(self, random_state: RandomState) -> int:
        """Return the seed that is given; where none is, that of the checkpoint."""
        if self._archive is None or random_state is not None:
            return seed_of(random_state)
        return int(_told(self._archive, "run", dict)["seed"])

    def for_run(self, run: dict[str, Any]) -> Journal:
        """Take up the checkpoint, once it is known what is to be run; refuse that of another run."""
        self._run = run
        if self._archive is None:
            return self
        before = _told(self._archive, "run", dict)
        other = [_CALLED[key] for key, value in run.items() if before.get(key) != value]
        if other:
            raise ArchiveError(
                f"{self.path} is the checkpoint of another run: of {', '.join(other)}. Repeat the call "
                "that wrote it, or choose another file for this one."
            )
        self._chains = [
            _read_record(self._archive, k, told)
            for k, told in enumerate(_told(self._archive, "chains", list))
        ]
        return self

    def next_chain(self, rows: Rows) -> ChainKeeper:
        """Return the keeper of the next chain of the run."""
        number, self._next = self._next, self._next + 1
        return ChainKeeper(self, number, rows)

    def record(self, number: int) -> Record | None:
        """Return what was written down of a chain."""
        return self._chains[number] if number < len(self._chains) else None

    def take_up(self, number: int, rows: Rows) -> None:
        """Give hidden cells the values that they had, if this was the chain under way."""
        if self._archive is None or number < len(self._chains) - 1:
            return
        with self._archive as archive:
            names = sorted(name for name in archive.names if name.startswith("cells."))
            values = (
                {"plain": archive.array(plain), "mirrored": archive.array(mirrored)}
                for mirrored, plain in zip(names[::2], names[1::2], strict=True)
            )
            rows.restore(values, Drawing(*_told(archive, "drawing", list)))
        self._archive = None

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._written >= self.every

    def write(self, number: int, record: Record, rows: Rows) -> None:
        """Write the checkpoint, in place of the one before."""
        self._chains[number:] = [record]
        told = [_tell(chain) for chain in self._chains]
        content = {"run": self._run, "drawing": list(rows.drawing), "chains": told}
        write_archive(self.path, FORMAT, VERSION, content, self._arrays(rows))
        self._written = time.monotonic()

    def _arrays(self, rows: Rows) -> Iterator[tuple[str, NDArray[Any]]]:
        for k, chain in enumerate(self._chains):
            for name, array in _arrays_of(chain).items():
                yield f"chain{k}.{name}", array
        for k, cells in enumerate(rows.cells()):
            for name in ("mirrored", "plain"):
                yield f"cells.{k:08d}.{name}", cells[name]


class ChainKeeper:
    """Keeps one chain; see ``loop.Keeper``."""

    def __init__(self, journal: Journal, number: int, rows: Rows) -> None:
        self.journal, self.number, self.rows = journal, number, rows

    def begin(self) -> tuple[State, History, bool] | None:
        """Return where the chain was, and give its hidden cells their values."""
        found = self.journal.record(self.number)
        if found is None:
            return None
        self.journal.take_up(self.number, self.rows)
        return found.state, found.history, found.ended

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self.journal.due

    def write(self, state: State, history: History, ended: bool) -> None:
        """Write a checkpoint."""
        self.journal.write(self.number, Record(state, history, ended), self.rows)

    def interrupted(self, history: History) -> Interrupted:
        """Return what to raise when Ctrl-C was pressed."""
        return Interrupted(
            f"interrupted after {2 * len(history)} sweeps; {self.journal.path} has the state, and "
            "resume=True goes on from there."
        )


def open_checkpoint(path: Any, every: Any, resume: Any) -> Journal | None:
    """Read what was said about checkpoints; None where none are asked for."""
    if not isinstance(resume, bool):
        raise InputError(f"resume must be True or False; got {resume!r}.")
    real = isinstance(every, numbers.Real) and not isinstance(every, bool)
    if not real or not 0.0 <= every < math.inf:
        raise InputError(f"every must be a number of seconds, at least 0; got {every!r}.")
    if path is None:
        if resume:
            raise InputError("resume=True needs to know from where: give checkpoint= too.")
        return None
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"checkpoint must be the path of a file; got {path!r}.")
    target = Path(path)
    if target.is_dir():
        raise InputError(f"checkpoint must be the path of a file, but {target} is a folder.")
    if not target.parent.is_dir():
        raise InputError(f"checkpoint {target}: there is no folder {target.parent}.")
    if not target.exists():
        return Journal(target, float(every), None)
    if not resume:
        raise InputError(
            f"{target} is there already. Pass resume=True to go on from it, or remove it to start anew."
        )
    return Journal(target, float(every), read_archive(target, FORMAT, VERSION))


_NUMBERS = ("phase", "looks", "climbs", "last_step", "trust", "ratio", "sweeps")
_INFORMATION = ("basis", "covariance", "missing", "gain", "reach", "at")


def _tell(record: Record) -> dict[str, Any]:
    """Return what JSON can hold of a chain."""
    state, averages = record.state, record.state.averages
    return {
        "ended": record.ended,
        "state": {name: getattr(state, name) for name in _NUMBERS},
        "phases": [info["phase"] for info in record.history],
        "batch_size": None if averages is None else averages.size,
    }


def _arrays_of(record: Record) -> dict[str, NDArray[Any]]:
    """Return the arrays of a chain."""
    state, history = record.state, record.history
    d = state.mean.size
    size = d + d * (d + 1) // 2
    out = {
        "mean": state.mean,
        "covariance": state.covariance,
        "recent": _stack(state.recent, size),
        "history.mean": _stack([info["mean"] for info in history], d),
        "history.ratio": np.array([info["ratio"] for info in history], dtype=float),
    }
    if state.last_look is not None:
        out["last_look"] = state.last_look
    if state.moments is not None:
        out |= {"moments.first": state.moments.first, "moments.second": state.moments.second}
    if state.averages is not None:
        a = state.averages
        out |= {
            "averages.parameters": _stack(a.parameters, size),
            "averages.first": _stack(a.first, d),
            "averages.second": _stack(a.second, d, d),
            "pending.parameters": _stack([p for p, _ in a.pending], size),
            "pending.first": _stack([m.first for _, m in a.pending], d),
            "pending.second": _stack([m.second for _, m in a.pending], d, d),
        }
    if state.information is not None:
        out |= {f"information.{name}": getattr(state.information, name) for name in _INFORMATION}
    return out


def _stack(parts: list[Floats], *shape: int) -> Floats:
    return np.stack(parts) if parts else np.empty((0, *shape))


def _read_record(archive: Archive, number: int, told: Any) -> Record:
    """Make a chain of what was written down of it."""
    prefix = f"chain{number}."
    arrays = {name.removeprefix(prefix): array for name, array in archive.arrays(prefix)}
    try:
        moments = averages = information = None
        if "moments.first" in arrays:
            moments = Moments(arrays["moments.first"], arrays["moments.second"])
        if told["batch_size"] is not None:
            pending = [
                (p, Moments(first, second))
                for p, first, second in zip(
                    *(arrays[f"pending.{name}"] for name in ("parameters", "first", "second")),
                    strict=True,
                )
            ]
            batches = {n: list(arrays[f"averages.{n}"]) for n in ("parameters", "first", "second")}
            averages = Averages(told["batch_size"], pending=pending, **batches)
        if "information.at" in arrays:
            information = Information(*(arrays[f"information.{name}"] for name in _INFORMATION))
        state = State(
            arrays["mean"],
            arrays["covariance"],
            moments=moments,
            averages=averages,
            information=information,
            recent=list(arrays["recent"]),
            last_look=arrays.get("last_look"),
            **{name: told["state"][name] for name in _NUMBERS},
        )
        trace, ratios = arrays["history.mean"], arrays["history.ratio"]
        history = [
            {"mean": mean, "ratio": float(ratio), "phase": phase}
            for mean, ratio, phase in zip(trace, ratios, told["phases"], strict=True)
        ]
        return Record(state, history, bool(told["ended"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _unlike(archive, f"chain {number}: {error}") from None


def _told(archive: Archive, name: str, kind: type) -> Any:
    found = archive.content.get(name)
    if not isinstance(found, kind):
        raise _unlike(archive, f"{name!r} is missing")
    return found


def _unlike(archive: Archive, why: str) -> ArchiveError:
    return ArchiveError(
        f"{archive.path} is not a checkpoint that halfseen wrote ({why}). Remove it to start anew."
    )
