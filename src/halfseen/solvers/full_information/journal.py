"""Checkpoints of ``full``: how far a run has come, in a file that is whole at any moment.

A run is a sequence of climbs. A checkpoint holds the outcome of those that have ended, and the state of
the one under way. Everything else is computed again when a run is resumed, from the same table with the
same seed, to the same bits.
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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.archive import Archive, ArchiveError, read_archive, write_archive
from halfseen.errors import HalfseenWarning, InputError, Interrupted, argument
from halfseen.files import remove_left_behind
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.full_information.ascent import STALLED_STEPS, State
from halfseen.solvers.full_information.charts import Chart
from halfseen.solvers.full_information.expectation import Moments
from halfseen.solvers.full_information.information import Information
from halfseen.solvers.full_information.m_step import MStep
from halfseen.solvers.full_information.rows import Rows
from halfseen.version import __version__

if TYPE_CHECKING:
    from halfseen.solvers.full_information.learn import Settings

Floats = NDArray[np.float64]
History = list[dict[str, Any]]

FORMAT, VERSION = "halfseen checkpoint", 3
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
    "parameters": "other options (covariance, correlation, mean, shrinkage, penalty, errors, "
    "degrees_of_freedom or start)",
    "accuracy": "another accuracy",
    "most_steps": "another most_steps",
    "standard_errors": "another standard_errors",
}
# Where one of these differs, so do those: there is no need to name them.
_FOLLOW = {"shape": ("names", "table", "parameters"), "table": ("parameters",)}


class Run(NamedTuple):
    """What is run, and all that it depends on."""

    key: dict[str, Any]
    m_step: MStep


def describe_run(
    rows: Rows,
    m_step: MStep,
    start: tuple[Floats, Floats],
    settings: Settings,
    options: tuple[float | None, ...],
    follow_start: bool,
) -> Run:
    """Return a run, and what it depends on: a checkpoint of another run is of no use to it.

    ``options`` are a penalty and degrees of freedom, None where they are to be found.
    """
    structure = m_step.structure
    parts: list[Any] = [structure.name, *options, follow_start, m_step.mean, *start]
    parts += [getattr(structure, field.name) for field in fields(structure)]  # type: ignore[arg-type]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    about = rows.overview
    key = {
        "halfseen": __version__,
        "shape": list(about.shape),
        "names": list(about.names),
        "table": rows.checksum(),
        "seed": settings.seed,
        "parameters": digest.hexdigest(),
        "accuracy": settings.accuracy,
        "most_steps": settings.most_steps,
        "standard_errors": bool(settings.standard_errors),
    }
    return Run(key, m_step)


@dataclass
class Record:
    """A climb: where it is, how it came there, and whether that is its end."""

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
        self._climbs: list[Record] = []
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

    def for_run(self, run: Run) -> Journal:
        """Take up the checkpoint, once it is known what is to be run; refuse that of another run."""
        self._run = run.key
        if self._archive is None:
            return self
        before = _told(self._archive, "run", dict)
        other = [key for key, value in run.key.items() if before.get(key) != value]
        if other:
            # Whatever is computed from another table differs too.
            told = [key for key in other if key not in _FOLLOW.get(other[0], ())]
            raise ArchiveError(
                f"{self.path} is the checkpoint of another run: of "
                f"{', '.join(_CALLED[key] for key in told)}. Repeat the call that wrote it, or "
                "choose another file for this one."
            )
        with self._archive as archive:
            self._climbs = [
                _read_record(archive, k, told, run)
                for k, told in enumerate(_told(archive, "climbs", list))
            ]
            if not self._climbs or not all(climb.ended for climb in self._climbs[:-1]):
                raise _unlike(archive, "a climb has not ended before the next")
        self._archive = None
        return self

    def next_climb(self, rows: Rows) -> ClimbKeeper:
        """Return the keeper of the next climb of the run."""
        number, self._next = self._next, self._next + 1
        return ClimbKeeper(self, number)

    def record(self, number: int) -> Record | None:
        """Return what was written down of a climb."""
        return self._climbs[number] if number < len(self._climbs) else None

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._written >= self.every

    def write(self, number: int, record: Record) -> None:
        """Write the checkpoint, in place of the one before."""
        self._climbs[number:] = [record]
        told = [_tell(climb) for climb in self._climbs]
        content = {"run": self._run, "climbs": told}
        try:
            write_archive(self.path, FORMAT, VERSION, content, self._arrays())
        except OSError as error:
            text = f"the checkpoint {self.path} cannot be written: {error.strerror or error}."
            if record.ended:
                # The answer is there: it is not to be lost for want of a file.
                warnings.warn(text, HalfseenWarning, stacklevel=2)
                return
            raise InputError(
                f"{text} One that was written before is whole: make room there, and go on from it "
                f"with {argument('resume', True)}."
            ) from error
        self._written = time.monotonic()

    def _arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        for k, climb in enumerate(self._climbs):
            for name, array in _arrays_of(climb).items():
                yield f"climb{k}.{name}", array


class ClimbKeeper:
    """Keeps one climb; see ``loop.Keeper``."""

    def __init__(self, journal: Journal, number: int) -> None:
        self.journal, self.number = journal, number

    def begin(self) -> tuple[State, History, bool] | None:
        """Return where the climb was."""
        found = self.journal.record(self.number)
        return None if found is None else (found.state, found.history, found.ended)

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self.journal.due

    def write(self, state: State, history: History, ended: bool) -> None:
        """Write a checkpoint."""
        self.journal.write(self.number, Record(state, history, ended))

    def interrupted(self, history: History) -> Interrupted:
        """Return what to raise when Ctrl-C was pressed."""
        return Interrupted(
            f"interrupted after {len(history)} step{'' if len(history) == 1 else 's'}; "
            f"{self.journal.path} has the state, and {argument('resume', True)} goes on from there."
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
            raise InputError(
                f"{argument('resume', True)} needs to know from where: give "
                f"{argument('checkpoint')} too."
            )
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
            f"{target} is there already. Pass {argument('resume', True)} to go on from it, or "
            "remove it to start anew."
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


def _of_state(kind: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(State) if field.type == kind)


# What JSON holds of a state.
_NUMBERS, _COUNTS, _TRUTHS = _of_state("float"), _of_state("int"), _of_state("bool")
_PHASES = ("climbing", "polishing", "averaging", "settling", "ended")
_INFORMATION = ("directions", "missing", "noise", "lost")
_HISTORY = ("value", "gain", "ratio")
# Shapes of the arrays of a climb: d columns, q coordinates, and as many pairs, scores and steps as there
# are.
_SHAPES = {
    "mean": "d", "covariance": "dd", "origin.mean": "d", "origin.covariance": "dd",
    "order.mean": "d", "order.covariance": "dd",
    "moments.first": "d", "moments.second": "dd", "score": "q", "direction": "q",
    "pairs.step": "pq", "pairs.fall": "pq", "scores": "rq",
    "information.mean": "d", "information.covariance": "dd",
    "information.directions": "ii", "information.missing": "i", "information.noise": "i",
    "information.lost": "i",
    "climbed": "c", "history.mean": "hd", "history.value": "h", "history.gain": "h",
    "history.ratio": "h",
}  # fmt: skip
# What is infinite until it is known.
_OPEN = ("history.value", "history.gain", "history.ratio")


def _tell(record: Record) -> dict[str, Any]:
    """Return what JSON can hold of a climb."""
    state = record.state
    return {
        "ended": record.ended,
        "state": {name: getattr(state, name) for name in ("phase", *_NUMBERS, *_COUNTS, *_TRUTHS)},
        "phases": [info["phase"] for info in record.history],
    }


def _arrays_of(record: Record) -> dict[str, NDArray[Any]]:
    """Return the arrays of a climb."""
    state, history = record.state, record.history
    d, q = state.mean.size, state.score.size
    out = {
        "mean": state.mean,
        "covariance": state.covariance,
        "score": state.score,
        "direction": state.direction,
        "pairs.step": _stack([step for step, _ in state.pairs], q),
        "pairs.fall": _stack([fall for _, fall in state.pairs], q),
        "scores": _stack(state.scores, q),
        "climbed": np.array(state.climbed, dtype=float),
        "history.mean": _stack([info["mean"] for info in history], d),
    }
    out |= {
        f"history.{name}": np.array([float(info[name]) for info in history]) for name in _HISTORY
    }
    for name, place in (("origin", state.origin), ("order", state.order)):
        if place is not None:
            out |= {f"{name}.mean": place[0], f"{name}.covariance": place[1]}
    if state.moments is not None:
        out |= {"moments.first": state.moments.first, "moments.second": state.moments.second}
    if state.information is not None:
        known = state.information
        out |= {
            "information.mean": known.chart.mean,
            "information.covariance": known.chart.covariance,
            "information.directions": known.directions,
            "information.missing": known.missing,
            "information.noise": known.noise,
            "information.lost": known.lost,
        }
    return out


def _stack(parts: list[Floats], *shape: int) -> Floats:
    return np.stack(parts) if parts else np.empty((0, *shape))


def _read_arrays(archive: Archive, number: int, d: int) -> dict[str, NDArray[Any]]:
    """Read the arrays of a climb, and compare their shapes."""
    prefix = f"climb{number}."
    arrays = {name.removeprefix(prefix): array for name, array in archive.arrays(prefix)}
    sizes = {"d": d}
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
    phase = told["phase"]
    if phase not in _PHASES:
        raise ValueError(f"there is no phase {phase!r}")
    for name in _NUMBERS:
        if not isinstance(told[name], int | float):
            raise ValueError(f"{name} is {told[name]!r:.100}")
    return {
        "phase": phase,
        **{name: _read_truth(told, name) for name in _TRUTHS},
        **{name: operator.index(told[name]) for name in _COUNTS},
        **{name: float(told[name]) for name in _NUMBERS},
    }


def _read_truth(told: Any, name: str) -> bool:
    if not isinstance(told[name], bool):
        raise ValueError(f"{name} is {told[name]!r:.100}")
    return bool(told[name])


def _read_record(archive: Archive, number: int, told: Any, run: Run) -> Record:
    """Make a climb of what was written down of it."""
    arrays = _read_arrays(archive, number, run.key["shape"][1])
    try:
        for name, array in arrays.items():
            if name not in _OPEN and not np.isfinite(array).all():
                raise ValueError(f"{name} is not finite")
        pairs = list(zip(arrays["pairs.step"], arrays["pairs.fall"], strict=True))
        state = State(
            arrays["mean"],
            arrays["covariance"],
            moments=_read_moments(arrays),
            origin=_read_place(arrays, "origin"),
            order=_read_place(arrays, "order"),
            score=arrays["score"],
            direction=arrays["direction"],
            pairs=pairs,
            information=_read_information(arrays, run),
            scores=list(arrays["scores"]),
            climbed=arrays["climbed"].tolist(),
            **_read_numbers(told["state"]),
        )
        np.linalg.cholesky(state.covariance)
        _check_whole(state, len(told["phases"]))
        history = [
            {"mean": mean, "phase": phase, **dict(zip(_HISTORY, map(float, numbers), strict=True))}
            for mean, phase, *numbers in zip(
                arrays["history.mean"],
                told["phases"],
                *(arrays[f"history.{name}"] for name in _HISTORY),
                strict=True,
            )
        ]
        return Record(state, history, _read_truth(told, "ended"))
    except (KeyError, OverflowError, TypeError, ValueError, np.linalg.LinAlgError) as error:
        raise _unlike(archive, f"climb {number}: {error}") from None


def _check_whole(state: State, steps: int) -> None:
    """Raise where a state lacks what every one has after so many steps."""
    if state.origin is None and state.score.size:
        raise ValueError("there is a score, but no origin of its coordinates")
    if state.order is None:
        raise ValueError("there is no order of the cells")
    if state.moments is None and state.phase != "polishing":
        raise ValueError("there are no moments")
    if len(state.climbed) > min(steps, STALLED_STEPS):
        raise ValueError(f"{len(state.climbed)} gains of {steps} steps")


def _has(arrays: dict[str, NDArray[Any]], name: str) -> bool:
    return any(key.startswith(f"{name}.") for key in arrays)


def _read_moments(arrays: dict[str, NDArray[Any]]) -> Moments | None:
    if not _has(arrays, "moments"):
        return None
    return Moments(arrays["moments.first"], arrays["moments.second"])


def _read_place(arrays: dict[str, NDArray[Any]], name: str) -> tuple[Floats, Floats] | None:
    if not _has(arrays, name):
        return None
    place = arrays[f"{name}.mean"], arrays[f"{name}.covariance"]
    np.linalg.cholesky(place[1])
    return place


def _read_information(arrays: dict[str, NDArray[Any]], run: Run) -> Information | None:
    place = _read_place(arrays, "information")
    if place is None:
        return None
    chart = Chart(run.m_step, *place, run.key["shape"][0])
    return Information(chart, *(arrays[f"information.{n}"] for n in _INFORMATION))


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
