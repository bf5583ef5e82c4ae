"""Fits as files: what was learned, to the last bit, and the rule behind it; not the table, and no code.

docs/saved-fits.md describes the file. Everything that is read from one is data: it is checked here
before anything is made of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.archive import Archive
from halfseen.data.powers import LearnedPower, as_table, from_table
from halfseen.data.table import LIBRARIES, check_names
from halfseen.data.transforms import BoxCox, Transform
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.solvers.inference.uncertainty import StandardErrors
from halfseen.solvers.loss import Loss
from halfseen.solvers.methods import METHODS
from halfseen.solvers.result import Estimate, MonteCarloErrors, Source, Tails
from halfseen.solvers.saved_values import (
    FINITE,
    PLACE,
    POSITIVE,
    SHARE,
    Absent,
    Finder,
    Shape,
    Store,
    find_rule,
    keep_rule,
    of_kind,
    one_of,
    read_notes,
    read_transform,
    read_values,
    texts_of,
    whole,
    write_fit,
    write_notes,
    write_transform,
    write_values,
)
from halfseen.theta import size_of

Floats = NDArray[np.float64]

FORMAT = "halfseen fit"
VERSION = 1
# As wide as the table, and of no use without it.
OF_THE_TABLE = ("missing_at_random",)
# What is left to do where the rule cannot be written.
REMEDY = "Who loads it must pass missingness= to impute and the like."
# Seeds have 128 bits at most (SeedSequence's own entropy).
SEED_BITS = 128
# What a file holds of these as arrays.
LOSS_ARRAYS = ("share", "standard_error", "lower", "upper", "p_value")
ERROR_ARRAYS = (*PLACE, "correlation", "parameters", "missing")
# Shapes of arrays (d columns, p parameters, t numbers about tails), and between which numbers they lie.
# None: any numbers, which are looked at by who gets them.
ARRAYS: dict[str, Shape] = {
    "mean": ("d", None), "covariance": ("dd", None), "seen_share": ("d", SHARE),
    "precision": ("dd", FINITE), "tails": ("t", POSITIVE),
    "monte_carlo.mean": ("d", POSITIVE), "monte_carlo.covariance": ("dd", POSITIVE),
    **{f"loss.{name}": ("d", None) for name in LOSS_ARRAYS}, "loss.share": ("d", SHARE),
    "uncertainty.mean": ("d", POSITIVE), "uncertainty.covariance": ("dd", POSITIVE),
    "uncertainty.correlation": ("dd", POSITIVE), "uncertainty.parameters": ("pp", FINITE),
    "uncertainty.gaussian.mean": ("d", None), "uncertainty.gaussian.covariance": ("dd", None),
}  # fmt: skip


def save(fit: Estimate, path: str | os.PathLike[str]) -> None:
    """Write a fit to one file; see ``Fit.save``."""
    store = Store()
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
        "notes": write_notes(fit.notes),
        "parameters": fit.parameters,
        "frame": fit.frame,
        "loss": loss and {"group": loss.group.tolist(), "learned": loss.learned.tolist()},
        "transforms": None if transforms is None else [*map(write_transform, transforms)],
        "powers": _write_powers(fit.powers, store),
        "history": write_values(fit.history, store, "history"),
        "uncertainty": _write_uncertainty(fit.uncertainty, fit.gaussian, store),
        "source": None if fit.source is None else _write_source(fit.source, store),
    }
    write_fit(path, FORMAT, VERSION, content, store)


def read_fit(archive: Archive) -> Estimate:
    """Read a fit from a file that is open; see ``halfseen.load``."""
    content, there = archive.content, archive.names
    names = tuple(texts_of(content.get("names"), "names"))
    check_names(names)
    find = _finder(archive, len(names))
    gaussian = Gaussian(*find.parts("", PLACE))
    transforms = _read_transforms(content.get("transforms"), len(names))
    source = content.get("source")
    frame, parameters = content.get("frame"), content.get("parameters")
    return Estimate(
        gaussian,
        one_of(content.get("method"), METHODS[1:], "method"),
        names,
        whole(content.get("rows"), "rows", 1, 2**63),
        find("seen_share"),
        read_notes(content.get("notes")),
        read_values(content.get("history"), find, "history"),
        source=None if source is None else _read_source(source, find),
        uncertainty=_read_uncertainty(content.get("uncertainty"), gaussian, find),
        monte_carlo_errors=MonteCarloErrors(*find.parts("monte_carlo.", PLACE))
        if "monte_carlo.mean" in there
        else None,
        parameters=None if parameters is None else whole(parameters, "parameters"),
        precision=find("precision") if "precision" in there else None,
        transforms=transforms,
        frame=None if frame is None else one_of(frame, LIBRARIES, "frame"),
        tails=_read_tails(find("tails")) if "tails" in there else None,
        powers=_read_powers(content.get("powers"), transforms, find),
        loss=_read_loss(content.get("loss"), find),
    )


def _finder(archive: Archive, d: int) -> Finder:
    sizes = {"d": d, "p": size_of(d), "t": len(fields(Tails))}
    return Finder(archive, sizes, ARRAYS)


# The parts of a fit.


def _read_tails(numbers: Floats) -> Tails:
    degrees, error, lower, upper, p_value, learned = numbers.tolist()
    if degrees < 1.0 or p_value > 1.0 or learned not in (0.0, 1.0):
        raise InputError("what is said of the tails cannot be.")
    return Tails(degrees, error, lower, upper, p_value, bool(learned))


def _read_transforms(said: Any, d: int) -> tuple[Transform, ...] | None:
    if said is None:
        return None
    transforms = tuple(read_transform(item) for item in of_kind(said, list, "transforms"))
    if len(transforms) != d:
        raise InputError(f"{len(transforms)} transforms are told of {d} columns.")
    return transforms


def _write_powers(
    powers: Sequence[LearnedPower | None] | None, store: Store
) -> list[str | None] | None:
    """Write powers that were learned, as one array for each: a row for each power looked at."""
    if powers is None:
        return None
    return [
        None if one is None else store.keep(f"powers.{j}", as_table(one))
        for j, one in enumerate(powers)
    ]


def _read_powers(
    said: Any, transforms: Sequence[Transform] | None, find: Finder
) -> tuple[LearnedPower | None, ...] | None:
    if said is None:
        return None
    names, transforms = of_kind(said, list, "powers"), transforms or ()
    if len(names) != len(transforms):
        raise InputError(f"{len(names)} powers are told of {len(transforms)} columns.")
    powers = []
    for name, transform in zip(names, transforms, strict=True):
        if name is not None and not isinstance(transform, BoxCox):
            raise InputError(f"a power is told of a column with the transform {transform}.")
        power = getattr(transform, "power", None)
        powers.append(None if name is None else from_table(power, find.floats(name)))
    return tuple(powers)


def _read_loss(said: Any, find: Finder) -> Loss | None:
    if said is None:
        return None
    said, d = of_kind(said, dict, "loss"), find.sizes["d"]
    group, learned = (of_kind(said.get(name), list, "loss") for name in ("group", "learned"))
    numbered = all(type(k) is int and -1 <= k < d for k in group)
    marked = all(isinstance(one, bool) for one in learned)
    if not (numbered and marked and len(group) == len(learned) == d):
        raise InputError("loss must say of each column which share is its own.")
    return Loss(
        learned=np.array(learned),
        group=np.array(group, dtype=np.intp),
        **{name: find(f"loss.{name}") for name in LOSS_ARRAYS},
    )


def _write_uncertainty(
    errors: StandardErrors | None, gaussian: Gaussian, store: Store
) -> dict[str, bool] | None:
    if errors is None:
        return None
    store.keep_parts("uncertainty.", errors, ERROR_ARRAYS)
    own = errors.gaussian is not gaussian and errors.gaussian != gaussian
    if own:
        store.keep_parts("uncertainty.gaussian.", errors.gaussian, PLACE)
    has = {name: getattr(errors, name) is not None for name in ("parameters", "missing")}
    return {**has, "gaussian": own}


def _read_uncertainty(said: Any, gaussian: Gaussian, find: Finder) -> StandardErrors | None:
    if said is None:
        return None
    has = of_kind(said, dict, "uncertainty")
    if has.get("gaussian"):
        gaussian = Gaussian(*find.parts("uncertainty.gaussian.", PLACE))
    missing = find.floats("uncertainty.missing") if has.get("missing") else None
    if missing is not None and missing.ndim != 1:
        raise InputError("shares of missing information are a vector.")
    parameters = find("uncertainty.parameters") if has.get("parameters") else None
    mean, covariance, correlation = find.parts("uncertainty.", ERROR_ARRAYS[:3])
    return StandardErrors(mean, covariance, correlation, parameters, gaussian, missing)


def _write_source(source: Source, store: Store) -> dict[str, Any]:
    rule = source.stated_rule
    call = {
        key: Absent() if key in OF_THE_TABLE and value is not None else value
        for key, value in source.call.items()
    }
    return {
        "rule": None if rule is None else keep_rule(rule, store, REMEDY),
        "seed": int(source.seed),
        "options": write_values(source.options, store, "options"),
        "call": write_values(call, store, "call"),
    }


def _read_source(said: Any, find: Finder) -> Source:
    said = of_kind(said, dict, "source")
    seed = whole(said.get("seed"), "seed")
    if seed.bit_length() > SEED_BITS:
        raise InputError(f"a seed has at most {SEED_BITS} bits.")
    rule = find_rule(said.get("rule"), find)
    options, call = (read_values(said.get(name), find, name) for name in ("options", "call"))
    return Source(None, rule, None, seed, None, options, call=call)
