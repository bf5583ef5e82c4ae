"""Checkpoints of ``full``: how far a run has come, in a file that is whole at any moment.

A run is a sequence of chains. A checkpoint holds the outcome of those that have ended, the state of the
one under way, and the values of its hidden cells. Everything else is computed again when a run is
resumed, from the same table with the same seed, to the same bits.
"""

from __future__ import annotations

import hashlib
import numbers
import operator
import os
import tempfile
import time
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.archive import Archive, ArchiveError, read_archive, write_archive
from halfseen.errors import HalfseenWarning, InputError, Interrupted
from halfseen.files import remove_left_behind
from halfseen.scaling.engine import Arrays
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
# Longer than any run.
LONGEST = 1e12

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
# Where one of these differs, so do those: there is no need to name them.
_FOLLOW = {"shape": ("names", "table", "parameters"), "table": ("parameters",)}


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
        if archive is not None:
            # A run may fail before it comes to the checkpoint.
            weakref.finalize(self, archive.close)

    def close(self) -> None:
        """Close the checkpoint to go on from."""
        if self._archive is not None:
            self._archive.close()

    def seed_or(self, random_state: RandomState) -> int:
        """Return the seed that is given; where none is, that of the checkpoint."""
        if self._archive is None or random_state is not None:
            return seed_of(random_state)
        seed = _told(self._archive, "run", dict).get("seed")
        if not _is_count(seed):
            raise _unlike(self._archive, f"its seed is {seed!r}")
        return int(seed)

    def for_run(self, run: dict[str, Any]) -> Journal:
        """Take up the checkpoint, once it is known what is to be run; refuse that of another run."""
        self._run = run
        if self._archive is None:
            return self
        before = _told(self._archive, "run", dict)
        other = [key for key, value in run.items() if before.get(key) != value]
        if other:
            # Whatever is computed from another table differs too.
            told = [key for key in other if key not in _FOLLOW.get(other[0], ())]
            raise ArchiveError(
                f"{self.path} is the checkpoint of another run: of "
                f"{', '.join(_CALLED[key] for key in told)}. Repeat the call that wrote it, or choose "
                "another file for this one."
            )
        self._chains = [
            _read_record(self._archive, k, told, run["shape"][1])
            for k, told in enumerate(_told(self._archive, "chains", list))
        ]
        if not self._chains or not all(chain.ended for chain in self._chains[:-1]):
            raise _unlike(self._archive, "a chain has not ended before the next")
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
            told = _told(archive, "drawing", list)
            if len(told) != 3 or not all(map(_is_count, told)) or told[0] != self._run["seed"]:
                raise _unlike(archive, f"its random numbers are those of {told!r:.100}")
            rows.restore(_read_cells(archive, rows.hidden_cells()), Drawing(*told))
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
        try:
            write_archive(self.path, FORMAT, VERSION, content, self._arrays(rows))
        except OSError as error:
            text = f"the checkpoint {self.path} cannot be written: {error.strerror or error}."
            if record.ended:
                # The answer is there: it is not to be lost for want of a file.
                warnings.warn(text, HalfseenWarning, stacklevel=2)
                return
            raise InputError(
                f"{text} One that was written before is whole: make room there, and go on from it with "
                "resume=True."
            ) from error
        self._written = time.monotonic()

    def _arrays(self, rows: Rows) -> Iterator[tuple[str, NDArray[Any]]]:
        for k, chain in enumerate(self._chains):
            for name, array in _arrays_of(chain).items():
                yield f"chain{k}.{name}", array
        for k, cells in enumerate(rows.cells()):
            for name in ("mirrored", "plain"):
                yield _cells_name(k, name), cells[name]


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
    if not real or not 0.0 <= every < LONGEST:
        raise InputError(f"every must be a number of seconds, at least 0; got {every!r}.")
    if path is None:
        if resume:
            raise InputError("resume=True needs to know from where: give checkpoint= too.")
        return None
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"checkpoint must be the path of a file; got {path!r}.")
    target = Path(path)
    try:
        _check_place(target)
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"no checkpoint can be written to {target}: {why}.") from None
    if not target.exists():
        return Journal(target, float(every), None)
    if not resume:
        raise InputError(
            f"{target} is there already. Pass resume=True to go on from it, or remove it to start anew."
        )
    return Journal(target, float(every), read_archive(target, FORMAT, VERSION))


def check_checkpoint(checkpoint: Any = None, every: Any = EVERY, resume: Any = False) -> None:
    """Find out before a long reading whether what was said about checkpoints can be done."""
    found = open_checkpoint(checkpoint, every, resume)
    if found is not None:
        found.close()


def _check_place(target: Path) -> None:
    """Find out before the work whether a checkpoint can be written; remove what killed writers left."""
    if target.is_dir():
        raise IsADirectoryError("it is a folder")
    if target.exists() and not target.is_file():
        raise OSError("it is a device or a pipe")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    remove_left_behind(target)
    # Made and removed again.
    with tempfile.TemporaryFile(dir=folder):
        pass


_NUMBERS = ("phase", "looks", "climbs", "last_step", "trust", "ratio", "sweeps")
_PHASES = ("settling", "climbing", "averaging")
_INFORMATION = ("basis", "covariance", "missing", "gain", "reach", "at")
# Shapes of the arrays of a chain: d columns, s parameters of them, q that are free; and as many recent
# steps, batches, pending sweeps and steps in all as there are.
_SHAPES = {
    "mean": "d", "covariance": "dd", "recent": "rs", "last_look": "s",
    "history.mean": "hd", "history.ratio": "h", "moments.first": "d", "moments.second": "dd",
    "averages.parameters": "bs", "averages.first": "bd", "averages.second": "bdd",
    "pending.parameters": "ps", "pending.first": "pd", "pending.second": "pdd",
    "information.basis": "sq", "information.covariance": "qq", "information.missing": "q",
    "information.gain": "qq", "information.reach": "qq", "information.at": "s",
}  # fmt: skip


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


def _cells_name(piece: int, name: str) -> str:
    return f"cells.{piece:08d}.{name}"


def _read_cells(archive: Archive, hidden: list[int]) -> Iterator[Arrays]:
    """Yield both values of the hidden cells of each piece."""
    both = ("mirrored", "plain")
    names = {_cells_name(k, name) for k in range(len(hidden)) for name in both}
    if names != {name for name in archive.names if name.startswith("cells.")}:
        raise _unlike(archive, f"the hidden cells are not those of {len(hidden)} pieces")
    for k, count in enumerate(hidden):
        cells = {name: archive.array(_cells_name(k, name)) for name in both}
        for array in cells.values():
            if array.dtype != np.float64 or array.shape != (count,) or not np.isfinite(array).all():
                raise _unlike(archive, f"piece {k} has {count} hidden cells, with values each")
        yield cells


def _read_arrays(archive: Archive, number: int, d: int) -> dict[str, NDArray[Any]]:
    """Read the arrays of a chain, and compare their shapes."""
    prefix = f"chain{number}."
    arrays = {name.removeprefix(prefix): array for name, array in archive.arrays(prefix)}
    sizes = {"d": d, "s": d + d * (d + 1) // 2}
    for name, array in arrays.items():
        letters = _SHAPES.get(name, "")
        right = array.dtype == np.float64 and array.ndim == len(letters) > 0
        for letter, size in zip(letters, array.shape, strict=False):
            right &= sizes.setdefault(letter, size) == size
        if not right:
            raise _unlike(archive, f"{prefix}{name} has shape {array.shape}, type {array.dtype}")
    return arrays


def _read_numbers(told: Any) -> dict[str, Any]:
    """Read what JSON holds of a state."""
    phase, last = told["phase"], told["last_step"]
    if phase not in _PHASES:
        raise ValueError(f"there is no phase {phase!r}")
    return {
        "phase": phase,
        "looks": [float(look) for look in told["looks"]],
        "last_step": None if last is None else float(last),
        **{name: float(told[name]) for name in ("trust", "ratio")},
        **{name: operator.index(told[name]) for name in ("climbs", "sweeps")},
    }


def _read_record(archive: Archive, number: int, told: Any, d: int) -> Record:
    """Make a chain of what was written down of it."""
    arrays = _read_arrays(archive, number, d)
    try:
        averages = information = None
        moments = Moments(arrays["moments.first"], arrays["moments.second"])
        if told["batch_size"] is not None:
            if not _is_count(told["batch_size"]) or told["batch_size"] == 0:
                raise ValueError(f"batches of {told['batch_size']!r:.100} sweeps")
            pending = [
                (p, Moments(first, second))
                for p, first, second in zip(
                    *(arrays[f"pending.{name}"] for name in ("parameters", "first", "second")),
                    strict=True,
                )
            ]
            batches = {n: list(arrays[f"averages.{n}"]) for n in ("parameters", "first", "second")}
            averages = Averages(told["batch_size"], pending=pending, **batches)
        if "information.at" in arrays or told["state"]["phase"] == "climbing":
            information = Information(*(arrays[f"information.{name}"] for name in _INFORMATION))
        state = State(
            arrays["mean"],
            arrays["covariance"],
            moments=moments,
            averages=averages,
            information=information,
            recent=list(arrays["recent"]),
            last_look=arrays.get("last_look"),
            **_read_numbers(told["state"]),
        )
        for name, array in arrays.items():
            # The ratio of Monte-Carlo errors is infinite until it is known.
            if name != "history.ratio" and not np.isfinite(array).all():
                raise ValueError(f"{name} is not finite")
        np.linalg.cholesky(state.covariance)
        trace, ratios = arrays["history.mean"], arrays["history.ratio"]
        history = [
            {"mean": mean, "ratio": float(ratio), "phase": phase}
            for mean, ratio, phase in zip(trace, ratios, told["phases"], strict=True)
        ]
        return Record(state, history, bool(told["ended"]))
    except (KeyError, OverflowError, TypeError, ValueError, np.linalg.LinAlgError) as error:
        raise _unlike(archive, f"chain {number}: {error}") from None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _told(archive: Archive, name: str, kind: type) -> Any:
    found = archive.content.get(name)
    if not isinstance(found, kind):
        raise _unlike(archive, f"{name!r} is missing")
    return found


def _unlike(archive: Archive, why: str) -> ArchiveError:
    return ArchiveError(
        f"{archive.path} is not a checkpoint that halfseen wrote ({why}). Remove it to start anew."
    )
