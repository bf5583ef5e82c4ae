"""Checkpoints of ``full``: how far a run has come, in a file that is whole at any moment.

A run is a sequence of climbs. A checkpoint holds the outcome of those that have ended, and the state of
the one under way. Everything else is computed again when a run is resumed, from the same table with the
same seed, to the same bits.
"""

from __future__ import annotations

import hashlib
import numbers
import os
import tempfile
import time
import weakref
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.archive import Archive, ArchiveError, read_archive, write_archive
from halfseen.errors import HalfseenWarning, InputError, Interrupted, argument, warn
from halfseen.files import remove_left_behind
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.full_information.charts import chart_at
from halfseen.solvers.full_information.climb_state import STALLED_STEPS, State
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
    options: tuple[Any, ...],
    follow_start: bool,
) -> Run:
    """Return a run, and what it depends on: a checkpoint of another run is of no use to it.

    ``options`` are what else it depends on: a penalty and degrees of freedom, None where they are to be
    found, or the equations of a regression.
    """
    structure = m_step.structure
    parts: list[Any] = [structure.name, *options, follow_start, m_step.mean, *start]
    parts += [getattr(structure, field.name) for field in fields(structure)]  # type: ignore[arg-type]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    key = {
        "halfseen": __version__,
        "shape": list(rows.overview.shape),
        "names": list(rows.overview.names),
        "table": rows.checksum(),
        "seed": settings.seed,
        "parameters": digest.hexdigest(),
        "accuracy": settings.accuracy,
        "most_steps": settings.most_steps,
        "standard_errors": bool(settings.standard_errors),
    }
    return Run(key, m_step)


class Record(NamedTuple):
    """A climb: where it is, how it came there, and whether that is its end."""

    state: State
    history: History
    ended: bool


class Checkpoint:
    """What a run has done so far, and the file that says so. It keeps one climb after another.

    Parameters
    ----------
    path : Path
    every : float
        Seconds between one writing and the next.
    archive : Archive or None
        The file to go on from.
    """

    def __init__(self, path: Path, every: float, archive: Archive | None) -> None:
        self.path, self.every, self._archive = path, every, archive
        self._run: dict[str, Any] = {}
        self._climbs: list[Record] = []
        self._current = -1
        self._written = time.monotonic()
        if archive is not None:
            # A run may fail before it comes to the checkpoint.
            weakref.finalize(self, archive.close)

    def close(self) -> None:
        """Close the file to go on from."""
        if self._archive is not None:
            self._archive.close()

    def seed_or(self, random_state: RandomState) -> int:
        """Return the seed that is given; where none is, that of the file."""
        if self._archive is None or random_state is not None:
            return seed_of(random_state)
        seed = _part(self._archive, "run", dict).get("seed")
        if type(seed) is not int or seed < 0:
            raise _unlike(self._archive, f"its seed is {seed!r}")
        return seed

    def for_run(self, run: Run) -> Checkpoint:
        """Take up the file, once it is known what is to be run; refuse that of another run."""
        self._run = run.key
        if self._archive is None:
            return self
        before = _part(self._archive, "run", dict)
        other = [key for key, value in run.key.items() if before.get(key) != value]
        if other:
            # Whatever is computed from another table differs too.
            named = [key for key in other if key not in _FOLLOW.get(other[0], ())]
            raise ArchiveError(
                f"{self.path} is the checkpoint of another run: of "
                f"{', '.join(_CALLED[key] for key in named)}. Repeat the call that wrote it, or "
                "choose another file for this one."
            )
        with self._archive as archive:
            self._climbs = [
                _read_record(archive, k, said, run)
                for k, said in enumerate(_part(archive, "climbs", list))
            ]
            if not self._climbs or not all(climb.ended for climb in self._climbs[:-1]):
                raise _unlike(archive, "a climb has not ended before the next")
        self._archive = None
        return self

    def begin(self) -> Record | None:
        """Turn to the next climb of the run; return what was written down of it."""
        self._current += 1
        return self._climbs[self._current] if self._current < len(self._climbs) else None

    @property
    def due(self) -> bool:
        """Whether it is time for writing."""
        return time.monotonic() - self._written >= self.every

    def write(self, state: State, history: History, ended: bool) -> None:
        """Write the file, in place of the one before."""
        self._climbs[self._current :] = [Record(state, history, ended)]
        content = {"run": self._run, "climbs": [_plain_part(climb) for climb in self._climbs]}
        try:
            write_archive(self.path, FORMAT, VERSION, content, self._arrays())
        except OSError as error:
            text = f"the checkpoint {self.path} cannot be written: {error.strerror or error}."
            if ended:
                # The answer is there: it is not to be lost for want of a file.
                warn(text, HalfseenWarning)
                return
            raise InputError(
                f"{text} One that was written before is whole: make room there, and go on from it "
                f"with {argument('resume', True)}."
            ) from error
        self._written = time.monotonic()

    def _arrays(self) -> Iterator[tuple[str, Floats]]:
        for k, climb in enumerate(self._climbs):
            for name, array in _arrays_of(climb).items():
                yield f"climb{k}.{name}", array

    def interrupted(self, history: History) -> Interrupted:
        """Return what to raise when Ctrl-C was pressed."""
        return Interrupted(
            f"interrupted after {len(history)} step{'' if len(history) == 1 else 's'}; "
            f"{self.path} has the state, and {argument('resume', True)} goes on from there."
        )


def open_checkpoint(path: Any, every: Any, resume: Any) -> Checkpoint | None:
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
        return Checkpoint(target, float(every), None)
    if not resume:
        raise InputError(
            f"{target} is there already. Pass {argument('resume', True)} to go on from it, or "
            "remove it to start anew."
        )
    return Checkpoint(target, float(every), read_archive(target, FORMAT, VERSION))


def check_checkpoint(checkpoint: Any = None, every: Any = EVERY, resume: Any = False) -> None:
    """Find out before a long reading whether what was said about checkpoints can be done."""
    opened = open_checkpoint(checkpoint, every, resume)
    if opened is not None:
        opened.close()


def _check_place(target: Path) -> None:
    """Find out before the work whether a checkpoint can be written; remove what killed writers left."""
    if target.is_dir():
        raise IsADirectoryError("it is a folder")
    if target.exists() and not target.is_file():
        raise OSError("it is a device or a pipe")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    remove_left_behind(folder)
    # Made and removed again.
    with tempfile.TemporaryFile(dir=folder):
        pass


# What JSON holds of a state, by the types of its fields, and the kinds that it may have there.
_PLAIN = {"str": (str,), "float": (int, float), "int": (int,), "bool": (bool,)}
_PHASES = ("climbing", "polishing", "averaging", "settling", "ended")
_PLACE = ("mean", "covariance")
_VECTORS = (*_PLACE, "score", "direction")
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


def _plain_part(record: Record) -> dict[str, Any]:
    """Return what JSON can hold of a climb."""
    return {
        "ended": record.ended,
        "state": {
            field.name: getattr(record.state, field.name)
            for field in fields(State)
            if field.type in _PLAIN
        },
        "phases": [info["phase"] for info in record.history],
    }


def _arrays_of(record: Record) -> dict[str, Floats]:
    """Return the arrays of a climb."""
    state, history = record.state, record.history
    parts: dict[str, Any] = {
        name: getattr(state, name) for name in (*_VECTORS, "scores", "climbed")
    }
    for k, name in enumerate(("step", "fall")):
        parts[f"pairs.{name}"] = [pair[k] for pair in state.pairs]
    for name in ("mean", *_HISTORY):
        parts[f"history.{name}"] = [info[name] for info in history]
    for prefix, place in (("origin", state.origin), ("order", state.order)):
        if place is not None:
            parts |= {f"{prefix}.mean": place[0], f"{prefix}.covariance": place[1]}
    if state.moments is not None:
        parts |= {f"moments.{name}": part for name, part in state.moments._asdict().items()}
    if (known := state.information) is not None:
        parts |= {f"information.{name}": getattr(known.chart, name) for name in _PLACE}
        parts |= {f"information.{name}": getattr(known, name) for name in _INFORMATION}
    arrays = {name: np.asarray(part, dtype=float) for name, part in parts.items()}
    sizes = {"d": state.mean.size, "q": state.score.size}
    for name, array in arrays.items():
        # An empty list does not say how wide its rows are.
        if array.ndim < len(_SHAPES[name]):
            arrays[name] = array.reshape(0, sizes[_SHAPES[name][1]])
    return arrays


def _read_record(archive: Archive, number: int, said: Any, run: Run) -> Record:
    """Make a climb of what was written down of it."""
    prefix = f"climb{number}."
    arrays = {name.removeprefix(prefix): array for name, array in archive.arrays(prefix)}
    try:
        _check_arrays(arrays, run.key["shape"][1])
        moments = _group(arrays, "moments")
        plain = _read_plain(said["state"])
        state = State(
            **{**plain, **{name: arrays[name] for name in _VECTORS}},
            moments=Moments(**moments) if moments else None,
            origin=_read_place(arrays, "origin"),
            order=_read_place(arrays, "order"),
            pairs=list(zip(arrays["pairs.step"], arrays["pairs.fall"], strict=True)),
            information=_read_information(arrays, run),
            scores=list(arrays["scores"]),
            climbed=arrays["climbed"].tolist(),
        )
        np.linalg.cholesky(state.covariance)
        _check_whole(state, len(said["phases"]))
        columns = [arrays[f"history.{name}"].tolist() for name in _HISTORY]
        rows = zip(said["phases"], arrays["history.mean"], *columns, strict=True)
        history = [dict(zip(("phase", "mean", *_HISTORY), row, strict=True)) for row in rows]
        return Record(state, history, _of_kind(said["ended"], "bool", "ended"))
    except (KeyError, OverflowError, TypeError, ValueError, np.linalg.LinAlgError) as error:
        raise _unlike(archive, f"climb {number}: {error}") from None


def _check_arrays(arrays: dict[str, NDArray[Any]], d: int) -> None:
    """Raise where shapes do not go together, or numbers are not finite that must be."""
    sizes = {"d": d}
    for name, array in arrays.items():
        letters = _SHAPES.get(name, "")
        right = array.dtype == np.float64 and array.ndim == len(letters) > 0
        for letter, size in zip(letters, array.shape, strict=False):
            right &= sizes.setdefault(letter, size) == size
        if not right:
            raise ValueError(f"{name} has shape {array.shape}, type {array.dtype}")
        if name not in _OPEN and not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")


def _group(arrays: dict[str, Floats], prefix: str) -> dict[str, Floats]:
    whole = f"{prefix}."
    return {name[len(whole) :]: array for name, array in arrays.items() if name.startswith(whole)}


def _read_place(arrays: dict[str, Floats], prefix: str) -> tuple[Floats, Floats] | None:
    """Return a mean and a covariance, which must be positive definite."""
    place = _group(arrays, prefix)
    if not place:
        return None
    np.linalg.cholesky(place["covariance"])
    return place["mean"], place["covariance"]


def _read_information(arrays: dict[str, Floats], run: Run) -> Information | None:
    place = _read_place(arrays, "information")
    if place is None:
        return None
    chart = chart_at(run.m_step, *place, run.key["shape"][0])
    directions, missing, noise, lost = (arrays[f"information.{name}"] for name in _INFORMATION)
    return Information(chart, directions, missing, noise, lost)


def _read_plain(said: Any) -> dict[str, Any]:
    """Read what JSON holds of a state."""
    if said["phase"] not in _PHASES:
        raise ValueError(f"there is no phase {said['phase']!r}")
    kinds = {field.name: str(field.type) for field in fields(State) if field.type in _PLAIN}
    return {name: _of_kind(said[name], kind, name) for name, kind in kinds.items()}


def _of_kind(value: Any, kind: str, name: str) -> Any:
    if type(value) not in _PLAIN[kind]:
        raise ValueError(f"{name} is {value!r:.100}")
    return float(value) if kind == "float" else value


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


def _part(archive: Archive, name: str, kind: type) -> Any:
    part = archive.content.get(name)
    if not isinstance(part, kind):
        raise _unlike(archive, f"{name!r} is missing")
    return part


def _unlike(archive: Archive, why: str) -> ArchiveError:
    return ArchiveError(
        f"{archive.path} is not a checkpoint that halfseen wrote ({why}). Remove it to start anew."
    )
