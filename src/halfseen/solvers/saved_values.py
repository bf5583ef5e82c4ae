"""What saved fits of any kind hold: arrays by name, rules, notes, and values that are plain data.

Everything that is read from a file is checked here, or by who asks for it, before anything is made
of it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfseen.archive import Archive, write_archive
from halfseen.data.transforms import NAMED, BoxCox, Transform, YeoJohnson
from halfseen.errors import InputError, warn
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.missingness.written import CannotBeWritten, NotSaved, read_rule, write_rule
from halfseen.solvers.descent_defaults import Defaults
from halfseen.solvers.result import Note, Status
from halfseen.solvers.structures import Structure

Floats = NDArray[np.float64]
Shape = tuple[str, tuple[float, float] | None]
T = TypeVar("T")

# Lists of numbers longer than this are arrays in the file: JSON would be slow and large.
LONG_LIST = 100
# No number of a fit is larger: those of tables end at 1e300.
LARGEST = 1e306
# Lists take some 100 bytes an entry in memory, arrays as little as one: so many entries in all come from
# arrays, and a list that is longer is not saved.
MOST_ENTRIES = 2**20
CALLED: dict[type, str] = {str: "a text", list: "a list", dict: "a JSON object"}
POWERS: dict[str, type[BoxCox]] = {"boxcox": BoxCox, "yeojohnson": YeoJohnson}
# What a file holds of a Gaussian as arrays.
PLACE = ("mean", "covariance")
# Between which numbers an array lies.
POSITIVE, SHARE, FINITE = (0.0, np.inf), (0.0, 1.0), (-LARGEST, LARGEST)


class Absent:
    """Stands for a value that a file cannot hold, such as a function."""

    def __repr__(self) -> str:
        return "<not saved>"


def write_fit(
    path: str | os.PathLike[str],
    format: str,
    version: int,
    content: Mapping[str, Any],
    store: Store,
) -> None:
    """Write what a fit holds to one file, or say why that cannot be."""
    try:
        write_archive(path, format, version, content, store.arrays)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"the fit cannot be written to {path}: {why}. Try another place."
        ) from error


class Store:
    """Arrays that are to be written, under names of their own."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.entries = 0

    def keep(self, name: str, array: NDArray[Any]) -> str:
        """Keep an array under a name, which is returned."""
        self.arrays[name] = array
        return name

    def keep_parts(self, prefix: str, owner: Any, names: Sequence[str]) -> None:
        """Keep what an object has under these names, if there is an object and it has them."""
        for name in names:
            array = getattr(owner, name, None)
            if array is not None:
                self.keep(prefix + name, np.asarray(array, dtype=float))

    def keep_numbered(self, prefix: str, array: NDArray[Any]) -> str:
        """Keep an array under a name that no other has."""
        return self.keep(f"{prefix}.{len(self.arrays)}", array)

    def keep_list(self, kind: str, prefix: str, array: NDArray[Any]) -> dict[str, str]:
        """Keep an array that was a list, unless there are too many of them."""
        self.entries += len(array)
        if self.entries > MOST_ENTRIES:
            return {"kind": "absent"}
        return {"kind": kind, "name": self.keep_numbered(prefix, array)}


class Finder:
    """Arrays of a file, each of them given out once: together they are no longer than the file.

    Parameters
    ----------
    archive : Archive
    sizes : mapping
        Lengths, by the letters that stand for them in ``shapes``.
    shapes : mapping
        Of arrays that are known by name: letters of their shape, and between which numbers they lie;
        None for any numbers, which are looked at by who gets them.
    """

    def __init__(
        self, archive: Archive, sizes: Mapping[str, int], shapes: Mapping[str, Shape]
    ) -> None:
        self.archive, self.sizes, self.shapes = archive, dict(sizes), shapes
        self.used: set[str] = set()
        self.entries = 0

    def any(self, name: Any) -> NDArray[Any]:
        """Return an array that may be anything."""
        if not isinstance(name, str) or name in self.used:
            raise InputError(f"the array {name!a:.60} is asked for twice, or has no name.")
        self.used.add(name)
        return self.archive.array(name)

    def list_of(self, name: Any, kind: str) -> list[Any]:
        """Return an array as the list that it was."""
        array = self.any(name)
        self.entries += len(array) if array.ndim else MOST_ENTRIES
        if self.entries > MOST_ENTRIES or (kind == "numbers" and array.ndim != 1):
            raise InputError(f"the array {name!r} cannot be a list.")
        return array.tolist() if kind == "numbers" else list(array)

    def floats(self, name: Any, shape: tuple[int, ...] | None = None) -> Floats:
        """Return an array of doubles, in a shape if one is given."""
        array = self.any(name)
        if array.dtype != np.float64 or (shape is not None and array.shape != shape):
            raise InputError(
                f"the array {name!r} must hold numbers in the shape {shape}; got {array.dtype} in "
                f"{array.shape}."
            )
        return array

    def __call__(self, name: str) -> Floats:
        """Return an array of which it is known what it must be; NaN lies between no two numbers."""
        letters, ends = self.shapes[name]
        array = self.floats(name, tuple(self.sizes[letter] for letter in letters))
        if ends is not None and not ((array >= ends[0]) & (array <= ends[1])).all():
            raise InputError(
                f"the array {name!r} must hold numbers from {ends[0]:g} to {ends[1]:g}."
            )
        return array

    def parts(self, prefix: str, names: Sequence[str]) -> list[Floats]:
        """Return several arrays whose names begin alike."""
        return [self(prefix + name) for name in names]


# Parts of several kinds of fits.


def write_transform(transform: Transform) -> dict[str, Any]:
    """Return a transform as plain data."""
    if type(transform) in POWERS.values():
        assert isinstance(transform, BoxCox)
        power = None if transform.power is None else float(transform.power)
        return {"name": transform.word, "power": power}
    if NAMED.get(transform.name) == transform:
        return {"name": transform.name, "power": None}
    raise InputError(
        f"the transform {transform!r} cannot be written to a file; {', '.join(NAMED)} can."
    )


def read_transform(said: Any) -> Transform:
    """Read what ``write_transform`` returned."""
    said = of_kind(said, dict, "transforms")
    name, power = one_of(said.get("name"), NAMED, "transforms"), said.get("power")
    if name not in POWERS and power is None:
        return NAMED[name]
    if name in POWERS and isinstance(power, float) and math.isfinite(power):
        return POWERS[name](power)
    raise InputError(f"the transform {name} has a wrong power.")


def write_notes(notes: Iterable[Note]) -> list[dict[str, str]]:
    """Return notes as plain data, by name of their status."""
    return [{"status": note.status.name, "text": note.text} for note in notes]


def read_notes(said: Any) -> tuple[Note, ...]:
    """Read what ``write_notes`` returned."""
    return tuple(_read_note(note) for note in of_kind(said, list, "notes"))


def _read_note(said: Any) -> Note:
    said = of_kind(said, dict, "notes")
    status = one_of(said.get("status"), Status.__members__, "status")
    return Note(Status[status], of_kind(said.get("text"), str, "notes"))


def keep_rule(rule: Missingness, store: Store, remedy: str) -> dict[str, Any]:
    """Keep a rule, or how it showed itself, with a warning that ends in what is left to do."""
    own = Store()
    try:
        said = write_rule(rule, lambda name, array: f"rule.{own.keep_numbered(name, array)}")
    except CannotBeWritten as error:
        if not isinstance(rule, NotSaved):
            warn(f"the fit is saved without its rule: {error} {remedy}")
        shown = rule.shown if isinstance(rule, NotSaved) else repr(rule)
        return {"kind": "not saved", "told": shown}
    for name, array in own.arrays.items():
        store.keep(f"rule.{name}", array)
    return said


def find_rule(said: Any, find: Finder) -> Missingness | None:
    """Read what ``keep_rule`` returned, None for no rule."""
    if said is None:
        return None
    if isinstance(said, dict) and said.get("kind") == "not saved":
        return NotSaved(of_kind(said.get("told"), str, "rule"))
    return read_rule(said, find.floats)


# Values of any kind, for history and calls. A JSON object says its kind; everything else is itself.


def write_values(values: Mapping[str, Any], store: Store, prefix: str) -> dict[str, Any]:
    """Return values of any kind as plain data, their arrays kept apart."""
    return {key: _write_value(value, store, prefix) for key, value in values.items()}


def read_values(said: Any, find: Finder, what: str) -> dict[str, Any]:
    """Read what ``write_values`` returned."""
    return {key: _read_value(value, find) for key, value in of_kind(said, dict, what).items()}


def _write_value(value: Any, store: Store, prefix: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Structure):
        # Which is read again wherever it is asked for.
        return value.name
    if isinstance(value, list):
        return _write_list(value, store, prefix)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.dtype.itemsize <= 8:
        return {"kind": "array", "name": store.keep_numbered(prefix, value)}
    if isinstance(value, Gaussian):
        names = {name: store.keep_numbered(prefix, getattr(value, name)) for name in PLACE}
        return {"kind": "gaussian", **names}
    if isinstance(value, Transform):
        return {"kind": "transform", **write_transform(value)}
    if isinstance(value, Defaults):
        return {"kind": "defaults", **asdict(value)}
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [_write_value(item, store, prefix) for item in value]}
    if isinstance(value, Mapping) and _are_keys(value):
        return {"kind": "mapping", "items": write_values(value, store, prefix)}
    return {"kind": "absent"}


def _write_list(value: list[Any], store: Store, prefix: str) -> Any:
    """Write a list; numbers, arrays and records of one form are put together, one array for all."""
    first = value[0] if value else None
    if len(value) > LONG_LIST and all(type(item) is float for item in value):
        return store.keep_list("numbers", prefix, np.array(value))
    if isinstance(first, np.ndarray) and first.dtype.kind in "fiub" and all(
        isinstance(item, np.ndarray) and (item.dtype, item.shape) == (first.dtype, first.shape)
        for item in value
    ):  # fmt: skip
        return store.keep_list("stack", prefix, np.array(value))
    if isinstance(first, dict) and len(value) > 1 and all(
        isinstance(item, dict) and list(item) == list(first) for item in value
    ) and first and _are_keys(first):  # fmt: skip
        columns = {key: _write_list([r[key] for r in value], store, prefix) for key in first}
        return {"kind": "records", "columns": columns}
    return [_write_value(item, store, prefix) for item in value]


def _are_keys(keys: Iterable[Any]) -> bool:
    return all(isinstance(key, str) and not key.startswith("$") for key in keys)


def _read_value(said: Any, find: Finder) -> Any:
    if isinstance(said, list):
        return [_read_value(item, find) for item in said]
    if not isinstance(said, dict):
        return said
    kind = said.get("kind")
    if kind == "absent":
        return Absent()
    if kind == "array":
        return find.any(said.get("name"))
    if kind in ("stack", "numbers"):
        return find.list_of(said.get("name"), kind)
    if kind == "gaussian":
        return Gaussian(*(find.floats(said.get(name)) for name in PLACE))
    if kind == "transform":
        return read_transform(said)
    if kind == "defaults":
        numbers: list[Any] = [said.get(field.name) for field in fields(Defaults)]
        if not all(isinstance(number, float) for number in numbers):
            raise InputError("the defaults of a solver are numbers.")
        return Defaults(*numbers)
    if kind == "tuple":
        return tuple(_read_value(of_kind(said.get("items"), list, "history"), find))
    if kind == "mapping":
        return read_values(said.get("items"), find, "history")
    if kind == "records":
        columns = read_values(said.get("columns"), find, "history")
        if len({len(of_kind(column, list, "history")) for column in columns.values()}) != 1:
            raise InputError("records need columns of one length.")
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    raise InputError(f"{kind!a:.60} is no kind of value.")


# Checks.


def of_kind(given: Any, kind: type[T], what: str) -> T:
    """Return what is a text, a list or a mapping, as it must be."""
    if not isinstance(given, kind):
        raise InputError(f"{what}: {CALLED[kind]} was expected.")
    return given


def texts_of(given: Any, what: str) -> list[str]:
    """Return what must be a list of texts."""
    return [of_kind(item, str, what) for item in of_kind(given, list, what)]


def whole(given: Any, what: str, least: int = 0, below: float = np.inf) -> int:
    """Return what must be a whole number."""
    if type(given) is not int or not least <= given < below:
        raise InputError(f"{what} must be a whole number, at least {least}.")
    return given


def one_of(given: Any, known: Iterable[str], what: str) -> str:
    """Return what must be one of some words."""
    if not isinstance(given, str) or given not in known:
        raise InputError(f"{what} must be one of {', '.join(known)}; got {given!a:.60}.")
    return given
