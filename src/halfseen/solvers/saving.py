"""Fits as files: what was learned, to the last bit, and the rule behind it; not the table, and no code.

docs/saved-fits.md describes the file. Everything that is read from one is data: it is checked here
before anything is made of it.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.archive import Archive, ArchiveError, read_archive, write_archive
from halfseen.data.frames import LIBRARIES
from halfseen.data.learned_power import LearnedPower, as_table, from_table
from halfseen.data.names import check_names
from halfseen.data.transforms import NAMED, BoxCox, Transform, YeoJohnson
from halfseen.errors import AssumptionWarning, InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.missingness.written import CannotBeWritten, NotSaved, read_rule, write_rule
from halfseen.solvers.inference.uncertainty import StandardErrors
from halfseen.solvers.loss import Loss
from halfseen.solvers.methods import METHODS
from halfseen.solvers.missing_descent import Defaults
from halfseen.solvers.result import Estimate, MonteCarloErrors, Note, Source, Status, Tails

Floats = NDArray[np.float64]

FORMAT = "halfseen fit"
VERSION = 1
# Lists of numbers longer than this are arrays in the file: JSON would be slow and large.
LONG_LIST = 100
# No number of a fit is larger: those of tables end at 1e300.
LARGEST = 1e306
# Lists take some 100 bytes an entry in memory, arrays as little as one: so many entries in all come from
# arrays, and a list that is longer is not saved.
MOST_ENTRIES = 2**20
# As wide as the table, and of no use without it.
OF_THE_TABLE = ("missing_at_random",)
# Seeds have 128 bits at most (SeedSequence's own entropy).
SEED_BITS = 128
# What a file holds of lost values, as arrays.
LOSS_ARRAYS = ("share", "standard_error", "lower", "upper", "p_value")
POWERS: dict[str, type[BoxCox]] = {"boxcox": BoxCox, "yeojohnson": YeoJohnson}


class Absent:
    """Stands for a value that a file cannot hold, such as a function."""

    def __repr__(self) -> str:
        return "<not saved>"


def save(fit: Estimate, path: str | os.PathLike[str]) -> None:
    """Write a fit to one file; see ``Fit.save``."""
    store = _Store()
    g = fit.gaussian
    store.keep("mean", g.mean)
    store.keep("covariance", g.covariance)
    store.keep("seen_share", np.asarray(fit.seen_share, dtype=float))
    if fit.precision is not None:
        store.keep("precision", np.asarray(fit.precision, dtype=float))
    if fit.tails is not None:
        store.keep("tails", np.array(astuple(fit.tails), dtype=float))
    if fit.monte_carlo_errors is not None:
        store.keep("monte_carlo.mean", fit.monte_carlo_errors.mean)
        store.keep("monte_carlo.covariance", fit.monte_carlo_errors.covariance)
    if fit.loss is not None:
        for name in LOSS_ARRAYS:
            store.keep(f"loss.{name}", np.asarray(getattr(fit.loss, name), dtype=float))
    content = {
        "method": fit.method,
        "names": list(fit.names),
        "rows": fit.rows,
        "notes": [{"status": note.status.name, "text": note.text} for note in fit.notes],
        "parameters": fit.parameters,
        "frame": fit.frame,
        "loss": _write_loss(fit.loss),
        "transforms": _write_transforms(fit.transforms),
        "powers": _write_powers(fit.powers, store),
        "history": {
            key: _write_value(value, store, "history") for key, value in fit.history.items()
        },
        "uncertainty": _write_uncertainty(fit.uncertainty, g, store),
        "source": None if fit.source is None else _write_source(fit.source, store),
    }
    try:
        write_archive(path, FORMAT, VERSION, content, store.arrays)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"the fit cannot be written to {path}: {why}. Try another place."
        ) from error


def load(path: str | os.PathLike[str]) -> Estimate:
    """Read a fit that ``Fit.save`` wrote.

    What was learned comes back to the last bit, with the rule of the table where it can be written. The
    table does not: ``impute``, ``score_rows`` and ``draw_imputations`` need ``X``. A file can be loaded
    whoever made it: nothing in it is run, and sizes are checked before memory is taken.

    Parameters
    ----------
    path : path of a file that ``Fit.save`` wrote

    Returns
    -------
    Fit

    Raises
    ------
    InputError
        The file is not there, is damaged, is something else, or was written by a newer halfseen.

    Examples
    --------
    >>> import tempfile, halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
    >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(f"{folder}/metals.hsfit")
    ...     again = hs.load(f"{folder}/metals.hsfit")
    >>> again.gaussian == fit.gaussian, again.summary() == fit.summary()
    (True, True)
    >>> bool((again.impute(X) == fit.impute(X)).all())
    True
    """
    with read_archive(path, FORMAT, VERSION) as archive:
        try:
            return _read_fit(archive)
        except ArchiveError:
            raise
        except InputError as error:
            raise ArchiveError(f"{archive.path} is not a saved fit: {error}") from None


def _read_fit(archive: Archive) -> Estimate:
    content = archive.content
    names = tuple(_strings(content.get("names"), "names"))
    check_names(names)
    d = len(names)
    find = _Finder(archive)
    gaussian = Gaussian(find("mean", (d,)), find("covariance", (d, d)))
    monte_carlo = None
    if "monte_carlo.mean" in archive.names:
        monte_carlo = MonteCarloErrors(
            find.within("monte_carlo.mean", (d,)), find.within("monte_carlo.covariance", (d, d))
        )
    transforms = _read_transforms(content.get("transforms"), d)
    history = _mapping(content.get("history"), "history")
    source = content.get("source")
    return Estimate(
        gaussian,
        _one_of(content.get("method"), METHODS[1:], "method"),
        names,
        _rows(content.get("rows")),
        find.within("seen_share", (d,), high=1.0),
        _read_notes(content.get("notes")),
        {key: _read_value(value, find) for key, value in history.items()},
        source=None if source is None else _read_source(source, find),
        uncertainty=_read_uncertainty(content.get("uncertainty"), gaussian, find),
        monte_carlo_errors=monte_carlo,
        parameters=_optional_whole(content.get("parameters"), "parameters"),
        precision=find.within("precision", (d, d), -LARGEST, LARGEST)
        if "precision" in archive.names
        else None,
        transforms=transforms,
        frame=_read_frame(content.get("frame")),
        tails=_read_tails(find) if "tails" in archive.names else None,
        powers=_read_powers(content.get("powers"), transforms, find),
        loss=_read_loss(content.get("loss"), d, find),
    )


def _read_tails(find: _Finder) -> Tails:
    numbers = find.within("tails", (len(fields(Tails)),))
    if numbers[0] < 1.0 or numbers[4] > 1.0 or numbers[5] not in (0.0, 1.0):
        raise InputError("what is said of the tails cannot be.")
    degrees, error, lower, upper, p_value, learned = numbers.tolist()
    return Tails(degrees, error, lower, upper, p_value, bool(learned))


class _Store:
    """Arrays that are to be written, under names of their own."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.entries = 0

    def keep(self, name: str, array: NDArray[Any]) -> str:
        self.arrays[name] = array
        return name

    def keep_numbered(self, prefix: str, array: NDArray[Any]) -> str:
        return self.keep(f"{prefix}.{len(self.arrays)}", array)

    def keep_list(self, kind: str, prefix: str, array: NDArray[Any]) -> dict[str, str]:
        self.entries += len(array)
        if self.entries > MOST_ENTRIES:
            return {"kind": "absent"}
        return {"kind": kind, "name": self.keep_numbered(prefix, array)}


class _Finder:
    """Arrays of a file, each of them given out once: together they are no longer than the file."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.used: set[str] = set()
        self.entries = 0

    def any(self, name: Any) -> NDArray[Any]:
        if not isinstance(name, str) or name in self.used:
            raise InputError(f"the array {name!a:.60} is asked for twice, or has no name.")
        self.used.add(name)
        return self.archive.array(name)

    def list_of(self, name: Any, kind: str) -> list[Any]:
        array = self.any(name)
        self.entries += len(array) if array.ndim else MOST_ENTRIES
        if self.entries > MOST_ENTRIES or (kind == "numbers" and array.ndim != 1):
            raise InputError(f"the array {name!r} cannot be a list.")
        return array.tolist() if kind == "numbers" else list(array)

    def __call__(self, name: Any, shape: tuple[int, ...] | None) -> Floats:
        array = self.any(name)
        if array.dtype != np.float64 or (shape is not None and array.shape != shape):
            raise InputError(
                f"the array {name!r} must hold numbers in the shape {shape}; got {array.dtype} in "
                f"{array.shape}."
            )
        return array

    def within(
        self, name: str, shape: tuple[int, ...], low: float = 0.0, high: float = np.inf
    ) -> Floats:
        """Return an array of numbers that lie between two others; NaN lies nowhere."""
        array = self(name, shape)
        if not ((array >= low) & (array <= high)).all():
            raise InputError(f"the array {name!r} must hold numbers from {low:g} to {high:g}.")
        return array


# The parts of a fit.


def _write_transforms(transforms: Sequence[Transform] | None) -> list[Any] | None:
    if transforms is None:
        return None
    out = []
    for transform in transforms:
        if type(transform) in POWERS.values():
            assert isinstance(transform, BoxCox)
            power = None if transform.power is None else float(transform.power)
            out.append({"name": transform.word, "power": power})
        elif NAMED.get(transform.name) == transform:
            out.append({"name": transform.name, "power": None})
        else:
            raise InputError(
                f"the transform {transform!r} cannot be written to a file; {', '.join(NAMED)} can."
            )
    return out


def _read_transforms(told: Any, d: int) -> tuple[Transform, ...] | None:
    if told is None:
        return None
    out: list[Transform] = []
    for item in _list(told, "transforms"):
        item = _mapping(item, "transforms")
        name = _one_of(item.get("name"), NAMED, "transforms")
        power = item.get("power")
        if name not in POWERS and power is None:
            out.append(NAMED[name])
        elif name in POWERS and isinstance(power, float) and math.isfinite(power):
            out.append(POWERS[name](power))
        else:
            raise InputError(f"the transform {name} has a wrong power.")
    if len(out) != d:
        raise InputError(f"{len(out)} transforms are told of {d} columns.")
    return tuple(out)


def _write_powers(
    powers: Sequence[LearnedPower | None] | None, store: _Store
) -> list[str | None] | None:
    """Write powers that were learned, as one array for each: a row for each power looked at."""
    if powers is None:
        return None
    return [
        None if one is None else store.keep(f"powers.{j}", as_table(one))
        for j, one in enumerate(powers)
    ]


def _read_powers(
    told: Any, transforms: Sequence[Transform] | None, find: _Finder
) -> tuple[LearnedPower | None, ...] | None:
    if told is None:
        return None
    names = _list(told, "powers")
    if len(names) != len(transforms or ()):
        raise InputError(f"{len(names)} powers are told of {len(transforms or ())} columns.")
    out = []
    for name, transform in zip(names, transforms or (), strict=True):
        if name is not None and not isinstance(transform, BoxCox):
            raise InputError(f"a power is told of a column with the transform {transform}.")
        power = getattr(transform, "power", None)
        out.append(None if name is None else from_table(power, find(name, None)))
    return tuple(out)


def _write_loss(loss: Loss | None) -> dict[str, Any] | None:
    return (
        None if loss is None else {"group": loss.group.tolist(), "learned": loss.learned.tolist()}
    )


def _read_loss(told: Any, d: int, find: _Finder) -> Loss | None:
    if told is None:
        return None
    told = _mapping(told, "loss")
    group, learned = (_list(told.get(name), "loss") for name in ("group", "learned"))
    whole = all(isinstance(k, int) and not isinstance(k, bool) and -1 <= k < d for k in group)
    if not (
        whole and len(group) == len(learned) == d and all(isinstance(b, bool) for b in learned)
    ):
        raise InputError("loss must say of each column which share is its own.")
    share = find.within("loss.share", (d,), high=1.0)
    others = {name: find(f"loss.{name}", (d,)) for name in LOSS_ARRAYS if name != "share"}
    return Loss(share, np.array(learned), np.array(group, dtype=np.intp), **others)


def _read_notes(told: Any) -> tuple[Note, ...]:
    notes = []
    for item in _list(told, "notes"):
        item = _mapping(item, "notes")
        status = _one_of(item.get("status"), Status.__members__, "status")
        notes.append(Note(Status[status], _string(item.get("text"), "notes")))
    return tuple(notes)


def _read_frame(told: Any) -> str | None:
    return None if told is None else _one_of(told, LIBRARIES, "frame")


def _write_uncertainty(
    errors: StandardErrors | None, gaussian: Gaussian, store: _Store
) -> dict[str, bool] | None:
    if errors is None:
        return None
    for name in ("mean", "covariance", "correlation", "parameters", "missing"):
        array = getattr(errors, name)
        if array is not None:
            store.keep(f"uncertainty.{name}", np.asarray(array))
    own = errors.gaussian is not gaussian and errors.gaussian != gaussian
    if own:
        store.keep("uncertainty.gaussian.mean", errors.gaussian.mean)
        store.keep("uncertainty.gaussian.covariance", errors.gaussian.covariance)
    return {
        "parameters": errors.parameters is not None,
        "missing": errors.missing is not None,
        "gaussian": own,
    }


def _read_uncertainty(told: Any, gaussian: Gaussian, find: _Finder) -> StandardErrors | None:
    if told is None:
        return None
    has = _mapping(told, "uncertainty")
    d = gaussian.dimension
    p = d + d * (d + 1) // 2
    if has.get("gaussian"):
        gaussian = Gaussian(
            find("uncertainty.gaussian.mean", (d,)), find("uncertainty.gaussian.covariance", (d, d))
        )
    missing = find("uncertainty.missing", None) if has.get("missing") else None
    if missing is not None and missing.ndim != 1:
        raise InputError("shares of missing information are a vector.")
    return StandardErrors(
        find.within("uncertainty.mean", (d,)),
        find.within("uncertainty.covariance", (d, d)),
        find.within("uncertainty.correlation", (d, d)),
        find.within("uncertainty.parameters", (p, p), -LARGEST, LARGEST)
        if has.get("parameters")
        else None,
        gaussian,
        missing,
    )


def _write_source(source: Source, store: _Store) -> dict[str, Any]:
    rule = source.missingness if source.original is None else source.original_rule
    return {
        "rule": None if rule is None else _write_rule(rule, store),
        "seed": int(source.seed),
        "options": {k: _write_value(v, store, "options") for k, v in source.options.items()},
        "call": {
            key: {"kind": "absent"}
            if key in OF_THE_TABLE and value is not None
            else _write_value(value, store, "call")
            for key, value in source.call.items()
        },
    }


def _write_rule(rule: Missingness, store: _Store) -> dict[str, Any]:
    own = _Store()
    try:
        told = write_rule(rule, lambda name, array: f"rule.{own.keep_numbered(name, array)}")
    except CannotBeWritten as error:
        if not isinstance(rule, NotSaved):
            warnings.warn(
                f"the fit is saved without its rule: {error} Who loads it must pass missingness= to "
                "impute and the like.",
                AssumptionWarning,
                stacklevel=5,
            )
        return {
            "kind": "not saved",
            "told": rule.told if isinstance(rule, NotSaved) else repr(rule),
        }
    for name, array in own.arrays.items():
        store.keep(f"rule.{name}", array)
    return told


def _read_source(told: Any, find: _Finder) -> Source:
    told = _mapping(told, "source")
    seed = _whole(told.get("seed"), "seed")
    if seed.bit_length() > SEED_BITS:
        raise InputError(f"a seed has at most {SEED_BITS} bits.")
    options, call = _mapping(told.get("options"), "options"), _mapping(told.get("call"), "call")
    return Source(
        None,
        _read_rule(told.get("rule"), find),
        None,
        seed,
        None,
        {key: _read_value(value, find) for key, value in options.items()},
        call={key: _read_value(value, find) for key, value in call.items()},
    )


def _read_rule(told: Any, find: _Finder) -> Missingness | None:
    if told is None:
        return None
    if isinstance(told, dict) and told.get("kind") == "not saved":
        return NotSaved(_string(told.get("told"), "rule"))
    return read_rule(told, lambda name: find(name, None))


# Values of any kind, for history and calls. A JSON object says its kind; everything else is itself.


def _write_value(value: Any, store: _Store, prefix: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiub" or value.dtype.itemsize > 8:
            return {"kind": "absent"}
        return {"kind": "array", "name": store.keep_numbered(prefix, value)}
    if isinstance(value, Gaussian):
        return {
            "kind": "gaussian",
            "mean": store.keep_numbered(prefix, value.mean),
            "covariance": store.keep_numbered(prefix, value.covariance),
        }
    if isinstance(value, Transform):
        return {"kind": "transform", **(_write_transforms([value]) or [{}])[0]}
    if isinstance(value, Defaults):
        return {"kind": "defaults", **asdict(value)}
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [_write_value(item, store, prefix) for item in value]}
    if isinstance(value, list):
        return _write_list(value, store, prefix)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        items = {key: _write_value(item, store, prefix) for key, item in value.items()}
        if not any(key.startswith("$") for key in items):
            return {"kind": "mapping", "items": items}
    return {"kind": "absent"}


def _write_list(value: list[Any], store: _Store, prefix: str) -> Any:
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
    ):  # fmt: skip
        keys = [key for key in first if isinstance(key, str)]
        if len(keys) == len(first) > 0 and not any(key.startswith("$") for key in keys):
            columns = {key: _write_list([r[key] for r in value], store, prefix) for key in keys}
            return {"kind": "records", "columns": columns}
    return [_write_value(item, store, prefix) for item in value]


def _read_value(told: Any, find: _Finder) -> Any:
    if isinstance(told, list):
        return [_read_value(item, find) for item in told]
    if not isinstance(told, dict):
        return told
    kind = told.get("kind")
    if kind == "absent":
        return Absent()
    if kind == "array":
        return find.any(told.get("name"))
    if kind in ("stack", "numbers"):
        return find.list_of(told.get("name"), kind)
    if kind == "gaussian":
        return Gaussian(find(told.get("mean"), None), find(told.get("covariance"), None))
    if kind == "transform":
        return (_read_transforms([told], 1) or (None,))[0]
    if kind == "defaults":
        fields: list[Any] = [told.get(name) for name in Defaults.__annotations__]
        if not all(isinstance(number, float) for number in fields):
            raise InputError("the defaults of a solver are numbers.")
        return Defaults(*fields)
    if kind == "tuple":
        return tuple(_read_value(item, find) for item in _list(told.get("items"), "history"))
    if kind == "mapping":
        items = _mapping(told.get("items"), "history")
        return {key: _read_value(item, find) for key, item in items.items()}
    if kind == "records":
        columns = _mapping(told.get("columns"), "history")
        lists = [_read_value(column, find) for column in columns.values()]
        if not lists or len({len(_list(column, "history")) for column in lists}) != 1:
            raise InputError("records need columns of one length.")
        return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
    raise InputError(f"{kind!a:.60} is no kind of value.")


# Checks.


def _string(given: Any, what: str) -> str:
    if not isinstance(given, str):
        raise InputError(f"{what}: a text was expected.")
    return given


def _strings(given: Any, what: str) -> list[str]:
    return [_string(item, what) for item in _list(given, what)]


def _list(given: Any, what: str) -> list[Any]:
    if not isinstance(given, list):
        raise InputError(f"{what}: a list was expected.")
    return given


def _mapping(given: Any, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InputError(f"{what}: a JSON object was expected.")
    return given


def _rows(given: Any) -> int:
    if not 1 <= _whole(given, "rows") < 2**63:
        raise InputError("rows must be a whole number, at least 1.")
    return int(given)


def _whole(given: Any, what: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise InputError(f"{what} must be a whole number, at least 0.")
    return given


def _optional_whole(given: Any, what: str) -> int | None:
    return None if given is None else _whole(given, what)


def _one_of(given: Any, known: Any, what: str) -> str:
    if not isinstance(given, str) or given not in known:
        raise InputError(f"{what} must be one of {', '.join(known)}; got {given!a:.60}.")
    return given
