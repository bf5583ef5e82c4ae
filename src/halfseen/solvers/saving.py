"""Fits as files: what was learned, to the last bit, and the rule behind it; not the table, and no code.

docs/saved-fits.md describes the file. Everything that is read from one is data: it is checked here
before anything is made of it.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfseen.archive import Archive, ArchiveError, read_archive, write_archive
from halfseen.data.powers import LearnedPower, as_table, from_table
from halfseen.data.table import LIBRARIES, check_names
from halfseen.data.transforms import NAMED, BoxCox, Transform, YeoJohnson
from halfseen.errors import AssumptionWarning, InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.missingness.written import CannotBeWritten, NotSaved, read_rule, write_rule
from halfseen.solvers.descent_defaults import Defaults
from halfseen.solvers.inference.uncertainty import StandardErrors
from halfseen.solvers.loss import Loss
from halfseen.solvers.methods import METHODS
from halfseen.solvers.result import Estimate, MonteCarloErrors, Note, Source, Status, Tails
from halfseen.theta import size_of

Floats = NDArray[np.float64]
T = TypeVar("T")

FORMAT = "halfseen fit"
VERSION = 1
# Lists of numbers longer than this are arrays in the file: JSON would be slow and large.
LONG_LIST = 100
# No number of a fit is larger: those of tables end at 1e300.
LARGEST = 1e306
# Lists take some 100 bytes an entry in memory, arrays as little as one: so many entries in all come from
# arrays, and a list that is longer is not saved.
MOST_ENTRIES = 2**20
CALLED: dict[type, str] = {str: "a text", list: "a list", dict: "a JSON object"}
# As wide as the table, and of no use without it.
OF_THE_TABLE = ("missing_at_random",)
# Seeds have 128 bits at most (SeedSequence's own entropy).
SEED_BITS = 128
POWERS: dict[str, type[BoxCox]] = {"boxcox": BoxCox, "yeojohnson": YeoJohnson}
# What a file holds of these as arrays.
PLACE = ("mean", "covariance")
LOSS_ARRAYS = ("share", "standard_error", "lower", "upper", "p_value")
ERROR_ARRAYS = (*PLACE, "correlation", "parameters", "missing")
# Shapes of arrays (d columns, p parameters, t numbers about tails), and between which numbers they lie.
# None: any numbers, which are looked at by who gets them.
POSITIVE, SHARE, FINITE = (0.0, np.inf), (0.0, 1.0), (-LARGEST, LARGEST)
ARRAYS: dict[str, tuple[str, tuple[float, float] | None]] = {
    "mean": ("d", None), "covariance": ("dd", None), "seen_share": ("d", SHARE),
    "precision": ("dd", FINITE), "tails": ("t", POSITIVE),
    "monte_carlo.mean": ("d", POSITIVE), "monte_carlo.covariance": ("dd", POSITIVE),
    **{f"loss.{name}": ("d", None) for name in LOSS_ARRAYS}, "loss.share": ("d", SHARE),
    "uncertainty.mean": ("d", POSITIVE), "uncertainty.covariance": ("dd", POSITIVE),
    "uncertainty.correlation": ("dd", POSITIVE), "uncertainty.parameters": ("pp", FINITE),
    "uncertainty.gaussian.mean": ("d", None), "uncertainty.gaussian.covariance": ("dd", None),
}  # fmt: skip


class Absent:
    """Stands for a value that a file cannot hold, such as a function."""

    def __repr__(self) -> str:
        return "<not saved>"


def save(fit: Estimate, path: str | os.PathLike[str]) -> None:
    """Write a fit to one file; see ``Fit.save``."""
    store = _Store()
    store.keep_parts("", fit.gaussian, PLACE)
    store.keep_parts("", fit, ("seen_share", "precision"))
    if fit.tails is not None:
        store.keep("tails", np.array(astuple(fit.tails), dtype=float))
    store.keep_parts("monte_carlo.", fit.monte_carlo_errors, MonteCarloErrors._fields)
    store.keep_parts("loss.", fit.loss, LOSS_ARRAYS)
    loss, transforms = fit.loss, fit.transforms
    content = {
        "method": fit.method,
        "names": list(fit.names),
        "rows": fit.rows,
        "notes": [{"status": note.status.name, "text": note.text} for note in fit.notes],
        "parameters": fit.parameters,
        "frame": fit.frame,
        "loss": loss and {"group": loss.group.tolist(), "learned": loss.learned.tolist()},
        "transforms": None if transforms is None else [*map(_write_transform, transforms)],
        "powers": _write_powers(fit.powers, store),
        "history": _write_values(fit.history, store, "history"),
        "uncertainty": _write_uncertainty(fit.uncertainty, fit.gaussian, store),
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
    content, there = archive.content, archive.names
    names = tuple(_texts(content.get("names"), "names"))
    check_names(names)
    find = _Finder(archive, len(names))
    gaussian = Gaussian(*find.parts("", PLACE))
    transforms = _read_transforms(content.get("transforms"), len(names))
    notes, source = _of_kind(content.get("notes"), list, "notes"), content.get("source")
    frame, parameters = content.get("frame"), content.get("parameters")
    return Estimate(
        gaussian,
        _one_of(content.get("method"), METHODS[1:], "method"),
        names,
        _whole(content.get("rows"), "rows", 1, 2**63),
        find("seen_share"),
        tuple(_read_note(note) for note in notes),
        _read_values(content.get("history"), find, "history"),
        source=None if source is None else _read_source(source, find),
        uncertainty=_read_uncertainty(content.get("uncertainty"), gaussian, find),
        monte_carlo_errors=MonteCarloErrors(*find.parts("monte_carlo.", PLACE))
        if "monte_carlo.mean" in there
        else None,
        parameters=None if parameters is None else _whole(parameters, "parameters"),
        precision=find("precision") if "precision" in there else None,
        transforms=transforms,
        frame=None if frame is None else _one_of(frame, LIBRARIES, "frame"),
        tails=_read_tails(find("tails")) if "tails" in there else None,
        powers=_read_powers(content.get("powers"), transforms, find),
        loss=_read_loss(content.get("loss"), find),
    )


class _Store:
    """Arrays that are to be written, under names of their own."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.entries = 0

    def keep(self, name: str, array: NDArray[Any]) -> str:
        self.arrays[name] = array
        return name

    def keep_parts(self, prefix: str, owner: Any, names: Sequence[str]) -> None:
        """Keep what an object has under these names, if there is an object and it has them."""
        for name in names:
            array = getattr(owner, name, None)
            if array is not None:
                self.keep(prefix + name, np.asarray(array, dtype=float))

    def keep_numbered(self, prefix: str, array: NDArray[Any]) -> str:
        return self.keep(f"{prefix}.{len(self.arrays)}", array)

    def keep_list(self, kind: str, prefix: str, array: NDArray[Any]) -> dict[str, str]:
        self.entries += len(array)
        if self.entries > MOST_ENTRIES:
            return {"kind": "absent"}
        return {"kind": kind, "name": self.keep_numbered(prefix, array)}


class _Finder:
    """Arrays of a file, each of them given out once: together they are no longer than the file."""

    def __init__(self, archive: Archive, d: int) -> None:
        self.archive, self.d = archive, d
        self.sizes = {"d": d, "p": size_of(d), "t": len(fields(Tails))}
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

    def floats(self, name: Any, shape: tuple[int, ...] | None = None) -> Floats:
        array = self.any(name)
        if array.dtype != np.float64 or (shape is not None and array.shape != shape):
            raise InputError(
                f"the array {name!r} must hold numbers in the shape {shape}; got {array.dtype} in "
                f"{array.shape}."
            )
        return array

    def __call__(self, name: str) -> Floats:
        """Return an array of which it is known what it must be; NaN lies between no two numbers."""
        letters, ends = ARRAYS[name]
        array = self.floats(name, tuple(self.sizes[letter] for letter in letters))
        if ends is not None and not ((array >= ends[0]) & (array <= ends[1])).all():
            raise InputError(
                f"the array {name!r} must hold numbers from {ends[0]:g} to {ends[1]:g}."
            )
        return array

    def parts(self, prefix: str, names: Sequence[str]) -> list[Floats]:
        return [self(prefix + name) for name in names]


# The parts of a fit.


def _read_tails(numbers: Floats) -> Tails:
    degrees, error, lower, upper, p_value, learned = numbers.tolist()
    if degrees < 1.0 or p_value > 1.0 or learned not in (0.0, 1.0):
        raise InputError("what is said of the tails cannot be.")
    return Tails(degrees, error, lower, upper, p_value, bool(learned))


def _write_transform(transform: Transform) -> dict[str, Any]:
    if type(transform) in POWERS.values():
        assert isinstance(transform, BoxCox)
        power = None if transform.power is None else float(transform.power)
        return {"name": transform.word, "power": power}
    if NAMED.get(transform.name) == transform:
        return {"name": transform.name, "power": None}
    raise InputError(
        f"the transform {transform!r} cannot be written to a file; {', '.join(NAMED)} can."
    )


def _read_transform(said: Any) -> Transform:
    said = _of_kind(said, dict, "transforms")
    name, power = _one_of(said.get("name"), NAMED, "transforms"), said.get("power")
    if name not in POWERS and power is None:
        return NAMED[name]
    if name in POWERS and isinstance(power, float) and math.isfinite(power):
        return POWERS[name](power)
    raise InputError(f"the transform {name} has a wrong power.")


def _read_transforms(said: Any, d: int) -> tuple[Transform, ...] | None:
    if said is None:
        return None
    transforms = tuple(_read_transform(item) for item in _of_kind(said, list, "transforms"))
    if len(transforms) != d:
        raise InputError(f"{len(transforms)} transforms are told of {d} columns.")
    return transforms


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
    said: Any, transforms: Sequence[Transform] | None, find: _Finder
) -> tuple[LearnedPower | None, ...] | None:
    if said is None:
        return None
    names, transforms = _of_kind(said, list, "powers"), transforms or ()
    if len(names) != len(transforms):
        raise InputError(f"{len(names)} powers are told of {len(transforms)} columns.")
    powers = []
    for name, transform in zip(names, transforms, strict=True):
        if name is not None and not isinstance(transform, BoxCox):
            raise InputError(f"a power is told of a column with the transform {transform}.")
        power = getattr(transform, "power", None)
        powers.append(None if name is None else from_table(power, find.floats(name)))
    return tuple(powers)


def _read_loss(said: Any, find: _Finder) -> Loss | None:
    if said is None:
        return None
    said, d = _of_kind(said, dict, "loss"), find.d
    group, learned = (_of_kind(said.get(name), list, "loss") for name in ("group", "learned"))
    numbered = all(type(k) is int and -1 <= k < d for k in group)
    marked = all(isinstance(one, bool) for one in learned)
    if not (numbered and marked and len(group) == len(learned) == d):
        raise InputError("loss must say of each column which share is its own.")
    return Loss(
        learned=np.array(learned),
        group=np.array(group, dtype=np.intp),
        **{name: find(f"loss.{name}") for name in LOSS_ARRAYS},
    )


def _read_note(said: Any) -> Note:
    said = _of_kind(said, dict, "notes")
    status = _one_of(said.get("status"), Status.__members__, "status")
    return Note(Status[status], _of_kind(said.get("text"), str, "notes"))


def _write_uncertainty(
    errors: StandardErrors | None, gaussian: Gaussian, store: _Store
) -> dict[str, bool] | None:
    if errors is None:
        return None
    store.keep_parts("uncertainty.", errors, ERROR_ARRAYS)
    own = errors.gaussian is not gaussian and errors.gaussian != gaussian
    if own:
        store.keep_parts("uncertainty.gaussian.", errors.gaussian, PLACE)
    has = {name: getattr(errors, name) is not None for name in ("parameters", "missing")}
    return {**has, "gaussian": own}


def _read_uncertainty(said: Any, gaussian: Gaussian, find: _Finder) -> StandardErrors | None:
    if said is None:
        return None
    has = _of_kind(said, dict, "uncertainty")
    if has.get("gaussian"):
        gaussian = Gaussian(*find.parts("uncertainty.gaussian.", PLACE))
    missing = find.floats("uncertainty.missing") if has.get("missing") else None
    if missing is not None and missing.ndim != 1:
        raise InputError("shares of missing information are a vector.")
    parameters = find("uncertainty.parameters") if has.get("parameters") else None
    mean, covariance, correlation = find.parts("uncertainty.", ERROR_ARRAYS[:3])
    return StandardErrors(mean, covariance, correlation, parameters, gaussian, missing)


def _write_source(source: Source, store: _Store) -> dict[str, Any]:
    rule = source.stated_rule
    call = {
        key: Absent() if key in OF_THE_TABLE and value is not None else value
        for key, value in source.call.items()
    }
    return {
        "rule": None if rule is None else _write_rule(rule, store),
        "seed": int(source.seed),
        "options": _write_values(source.options, store, "options"),
        "call": _write_values(call, store, "call"),
    }


def _write_rule(rule: Missingness, store: _Store) -> dict[str, Any]:
    own = _Store()
    try:
        said = write_rule(rule, lambda name, array: f"rule.{own.keep_numbered(name, array)}")
    except CannotBeWritten as error:
        if not isinstance(rule, NotSaved):
            warnings.warn(
                f"the fit is saved without its rule: {error} Who loads it must pass missingness= to "
                "impute and the like.",
                AssumptionWarning,
                stacklevel=5,
            )
        shown = rule.shown if isinstance(rule, NotSaved) else repr(rule)
        return {"kind": "not saved", "told": shown}
    for name, array in own.arrays.items():
        store.keep(f"rule.{name}", array)
    return said


def _read_source(said: Any, find: _Finder) -> Source:
    said = _of_kind(said, dict, "source")
    seed = _whole(said.get("seed"), "seed")
    if seed.bit_length() > SEED_BITS:
        raise InputError(f"a seed has at most {SEED_BITS} bits.")
    rule = _read_rule(said.get("rule"), find)
    options, call = (_read_values(said.get(name), find, name) for name in ("options", "call"))
    return Source(None, rule, None, seed, None, options, call=call)


def _read_rule(said: Any, find: _Finder) -> Missingness | None:
    if said is None:
        return None
    if isinstance(said, dict) and said.get("kind") == "not saved":
        return NotSaved(_of_kind(said.get("told"), str, "rule"))
    return read_rule(said, find.floats)


# Values of any kind, for history and calls. A JSON object says its kind; everything else is itself.


def _write_values(values: Mapping[str, Any], store: _Store, prefix: str) -> dict[str, Any]:
    return {key: _write_value(value, store, prefix) for key, value in values.items()}


def _read_values(said: Any, find: _Finder, what: str) -> dict[str, Any]:
    return {key: _read_value(value, find) for key, value in _of_kind(said, dict, what).items()}


def _write_value(value: Any, store: _Store, prefix: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return _write_list(value, store, prefix)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.dtype.itemsize <= 8:
        return {"kind": "array", "name": store.keep_numbered(prefix, value)}
    if isinstance(value, Gaussian):
        names = {name: store.keep_numbered(prefix, getattr(value, name)) for name in PLACE}
        return {"kind": "gaussian", **names}
    if isinstance(value, Transform):
        return {"kind": "transform", **_write_transform(value)}
    if isinstance(value, Defaults):
        return {"kind": "defaults", **asdict(value)}
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [_write_value(item, store, prefix) for item in value]}
    if isinstance(value, Mapping) and _are_keys(value):
        return {"kind": "mapping", "items": _write_values(value, store, prefix)}
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
    ) and first and _are_keys(first):  # fmt: skip
        columns = {key: _write_list([r[key] for r in value], store, prefix) for key in first}
        return {"kind": "records", "columns": columns}
    return [_write_value(item, store, prefix) for item in value]


def _are_keys(keys: Iterable[Any]) -> bool:
    return all(isinstance(key, str) and not key.startswith("$") for key in keys)


def _read_value(said: Any, find: _Finder) -> Any:
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
        return _read_transform(said)
    if kind == "defaults":
        numbers: list[Any] = [said.get(field.name) for field in fields(Defaults)]
        if not all(isinstance(number, float) for number in numbers):
            raise InputError("the defaults of a solver are numbers.")
        return Defaults(*numbers)
    if kind == "tuple":
        return tuple(_read_value(_of_kind(said.get("items"), list, "history"), find))
    if kind == "mapping":
        return _read_values(said.get("items"), find, "history")
    if kind == "records":
        columns = _read_values(said.get("columns"), find, "history")
        if len({len(_of_kind(column, list, "history")) for column in columns.values()}) != 1:
            raise InputError("records need columns of one length.")
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    raise InputError(f"{kind!a:.60} is no kind of value.")


# Checks.


def _of_kind(given: Any, kind: type[T], what: str) -> T:
    if not isinstance(given, kind):
        raise InputError(f"{what}: {CALLED[kind]} was expected.")
    return given


def _texts(given: Any, what: str) -> list[str]:
    return [_of_kind(item, str, what) for item in _of_kind(given, list, what)]


def _whole(given: Any, what: str, least: int = 0, below: float = np.inf) -> int:
    if type(given) is not int or not least <= given < below:
        raise InputError(f"{what} must be a whole number, at least {least}.")
    return given


def _one_of(given: Any, known: Iterable[str], what: str) -> str:
    if not isinstance(given, str) or given not in known:
        raise InputError(f"{what} must be one of {', '.join(known)}; got {given!a:.60}.")
    return given
