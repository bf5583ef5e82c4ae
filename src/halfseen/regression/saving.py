"""Regressions as files: what was learned, to the last bit, and the rules behind it, but no table.

docs/saved-fits.md describes the file. Everything that is read from one is data: it is checked here
before anything is made of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.archive import Archive
from halfseen.data.design import Design
from halfseen.data.table import LIBRARIES, check_names
from halfseen.errors import InputError
from halfseen.missingness.selection import Selection
from halfseen.missingness.written import NotSaved, read_rule, write_rule
from halfseen.solvers.regression.hiding import Hiding, Unknown
from halfseen.solvers.regression.layout import Equations
from halfseen.solvers.regression.model import PENALTIES, Penalty
from halfseen.solvers.regression.outcomes import KINDS
from halfseen.solvers.regression.places import Place
from halfseen.solvers.saved_values import (
    FINITE,
    LARGEST,
    POSITIVE,
    SHARE,
    Finder,
    Shape,
    Store,
    find_rule,
    keep_rule,
    of_kind,
    one_of,
    read_notes,
    read_values,
    texts_of,
    whole,
    write_fit,
    write_notes,
    write_values,
)

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FORMAT = "halfseen regression"
VERSION = 1
# What is left to do where the rule cannot be written.
REMEDY = "Who loads it cannot predict 'given_seen'; all else is there."
# How far correlations may be beyond 1, and a covariance from symmetric, by rounding.
ROUNDING = 1e-9
# Shapes of arrays, and between which numbers they lie: q outcomes, k terms, w of them and columns that
# rules alone speak of, of which the engine makes c columns, m parameters.
ARRAYS: dict[str, Shape] = {
    "weights": ("qk", FINITE), "residual": ("qq", FINITE), "covariance": ("mm", FINITE),
    "seen_share": ("q", SHARE),
    "equations.fixed": ("qw", None),
    "equations.centre": ("q", FINITE), "equations.scale": ("q", POSITIVE),
    "place.coefficients": ("qc", FINITE), "place.residual": ("qq", FINITE),
}  # fmt: skip
OF_FIT = ("weights", "residual", "mask", "free", "covariance", "seen_share")
OF_EQUATIONS = ("T", "fixed", "ties", "centre", "scale")


def save(fit: RegressionFit, path: str | os.PathLike[str]) -> None:
    """Write a regression to one file; see ``RegressionFit.save``."""
    store = Store()
    for prefix, owner, names in (
        ("", fit, OF_FIT),
        ("equations.", fit.equations, OF_EQUATIONS),
        ("place.", fit.place, Place._fields),
    ):
        for name in names:
            if (array := getattr(owner, name, None)) is not None:
                store.keep(prefix + name, np.asarray(array))
    for j, name in enumerate(fit.outcomes):
        if name in fit.cut_points:
            store.keep(f"cut_points.{j}", np.asarray(fit.cut_points[name], dtype=float))
    content = {
        "outcomes": list(fit.outcomes),
        "terms": list(fit.terms),
        "kinds": list(fit.kinds),
        "categories": [_write_categories(fit, name) for name in fit.outcomes],
        "rows": int(fit.rows),
        "parameters": int(fit.parameters),
        "log_likelihood": float(fit.log_likelihood),
        "log_likelihood_error": float(fit.log_likelihood_error),
        "notes": write_notes(fit.notes),
        "history": write_values(fit.history, store, "history"),
        "design": None if fit.design is None else _escaped(fit.design.to_dict()),
        "frame": fit.frame,
        "clusters": fit.clusters,
        "robust": bool(fit.is_robust),
        "weighted": bool(fit.is_weighted),
        "penalty": None if fit.penalty is None else fit.penalty._asdict(),
        "truncated": None if fit.truncation is None else int(fit.truncation[0].shape[1]),
        "hiding": _write_hiding(fit.hiding, store),
    }
    write_fit(path, FORMAT, VERSION, content, store)


def read_regression(archive: Archive) -> dict[str, Any]:
    """Return the fields of a ``RegressionFit`` from a file that is open; see ``halfseen.load``."""
    content = archive.content
    outcomes, terms = (tuple(texts_of(content.get(one), one)) for one in ("outcomes", "terms"))
    if not outcomes:
        raise InputError("a regression has an outcome.")
    check_names(outcomes)
    check_names(terms)
    find = Finder(archive, {"q": len(outcomes), "k": len(terms)}, ARRAYS)
    mask, free = (_read_mask(find, name) for name in ("mask", "free"))
    if (free & ~mask).any():
        raise InputError("coefficients that are learned must stand in their equations.")
    kinds = _read_kinds(content.get("kinds"), outcomes)
    categories = _read_categories(content.get("categories"), outcomes, kinds)
    cut_points = {
        name: _read_cuts(find, j, len(categories[name]))
        for j, name in enumerate(outcomes)
        if kinds[j] == "ordered"
    }
    q, cuts = len(outcomes), sum(one.size - 1 for one in cut_points.values())
    hiding = _read_hiding(content.get("hiding"), outcomes, kinds, find)
    find.sizes["m"] = int(free.sum()) + q * (q + 1) // 2 + cuts
    return {
        **_read_numbers(find, mask),
        **_read_counts(content),
        "outcomes": outcomes,
        "terms": terms,
        "mask": mask,
        "free": free,
        "kinds": kinds,
        "categories": categories,
        "cut_points": cut_points,
        "history": _read_history(content.get("history"), find),
        # The place has as many columns as the equations say.
        "equations": _read_equations(find, mask, free, len(hiding.carried)),
        "place": _read_place(find),
        "design": _read_design(content.get("design"), outcomes, terms, mask),
        "kept": hiding,
    }


# The numbers.


def _read_mask(find: Finder, name: str) -> Mask:
    array = find.any(name)
    if array.dtype != bool or array.shape != (find.sizes["q"], find.sizes["k"]):
        raise InputError(f"the array {name!r} must say yes or no of each term of each outcome.")
    return array


def _read_numbers(find: Finder, mask: Mask) -> dict[str, Any]:
    weights, residual, seen_share = find("weights"), find("residual"), find("seen_share")
    if weights[~mask].any():
        raise InputError("a term that does not stand in an equation has a coefficient there.")
    _check_covariance(residual, "residual")
    covariance = None
    if "covariance" in find.archive.names:
        covariance = find("covariance")
        if not np.allclose(covariance, covariance.T, rtol=1e-6, atol=0.0):
            raise InputError("the covariance of the parameters must be symmetric.")
    return {
        "weights": weights,
        "residual": residual,
        "seen_share": seen_share,
        "covariance": covariance,
    }


def _check_covariance(S: Floats, name: str) -> None:
    """Raise where an array is no covariance, as far as rounding lets that be told."""
    variance = np.diag(S)
    if not (variance > 0.0).all():
        raise InputError(f"the array {name!r} must have positive variances.")
    deviation = np.sqrt(variance)
    with np.errstate(over="ignore"):
        R = S / deviation[:, None] / deviation
    sound = np.isfinite(R).all() and np.abs(R - R.T).max() <= ROUNDING
    if not sound or np.linalg.eigvalsh(R)[0] < -ROUNDING:
        raise InputError(f"the array {name!r} must be a covariance.")


def _read_counts(content: Mapping[str, Any]) -> dict[str, Any]:
    """Read what is said in single numbers and words."""
    clusters, frame, pieces = (content.get(one) for one in ("clusters", "frame", "truncated"))
    # Older files know of no weights.
    robust, weighted = content.get("robust"), content.get("weighted", False)
    if not isinstance(robust, bool) or not isinstance(weighted, bool):
        raise InputError("robust and weighted must be true or false.")
    error = _number(content, "log_likelihood_error")
    if error < 0.0:
        raise InputError("log_likelihood_error must not be negative.")
    none = None if pieces is None else np.empty((0, whole(pieces, "truncated", 1, 2**16)))
    return {
        "rows": whole(content.get("rows"), "rows", 1, 2**63),
        "parameters": whole(content.get("parameters"), "parameters", 0, 2**63),
        "log_likelihood": _number(content, "log_likelihood"),
        "log_likelihood_error": error,
        "notes": read_notes(content.get("notes")),
        "clusters": None if clusters is None else whole(clusters, "clusters", 1, 2**63),
        "is_robust": robust,
        "is_weighted": weighted,
        "penalty": _read_penalty(content.get("penalty")),
        "frame": None if frame is None else one_of(frame, LIBRARIES, "frame"),
        # Ends for each row are the table's.
        "truncation": None if none is None else (none, none),
    }


def _read_history(said: Any, find: Finder) -> dict[str, Any]:
    history = read_values(said, find, "history")
    pairs = history.get("undetermined", [])
    if not isinstance(pairs, list | tuple) or not all(map(_is_pair(find.sizes["q"]), pairs)):
        raise InputError("what is not determined is told by pairs of outcomes.")
    return history


def _is_pair(outcomes: int) -> Callable[[Any], bool]:
    def check(pair: Any) -> bool:
        known = isinstance(pair, list | tuple) and len(pair) == 2
        return known and all(type(one) is int and 0 <= one < outcomes for one in pair)

    return check


def _read_penalty(said: Any) -> Penalty | None:
    if said is None:
        return None
    said = of_kind(said, dict, "penalty")
    strength = _number(said, "strength")
    if strength <= 0.0:
        raise InputError("the strength of a penalty must be positive.")
    return Penalty(one_of(said.get("kind"), PENALTIES, "kind of a penalty"), strength)


def _number(content: Mapping[str, Any], name: str) -> float:
    value = content.get(name)
    if not isinstance(value, float) or not abs(value) <= LARGEST:
        raise InputError(f"{name} must be a finite number.")
    return value


def _read_equations(find: Finder, mask: Mask, free: Mask, carried: int) -> Equations:
    """Read them; columns that rules alone speak of come last, and stand in no equation."""
    T, wide = find.floats("equations.T"), find.sizes["k"] + carried
    if T.ndim != 2 or T.shape[1] != wide or not 1 <= len(T) <= wide + 1 or not _is_finite(T):
        raise InputError("the array 'equations.T' must be finite, with a column for each term.")
    find.sizes["w"], find.sizes["c"] = wide, len(T)
    fixed, centre, scale = (find(f"equations.{name}") for name in ("fixed", "centre", "scale"))
    # The file is known to be long enough for arrays of this shape.
    mask, free = (np.pad(one, ((0, 0), (0, carried))) for one in (mask, free))
    given = mask & ~free
    if not _is_finite(fixed[given]) or not np.isnan(fixed[~given]).all():
        raise InputError("the array 'equations.fixed' must hold the coefficients that are given.")
    if not ((scale > 0.0) & (scale <= LARGEST)).all():
        raise InputError("the array 'equations.scale' must be positive.")
    ties = None
    if "equations.ties" in find.archive.names:
        ties, count = find.floats("equations.ties"), int(free.sum())
        if ties.ndim != 2 or len(ties) != count or ties.shape[1] > count or not _is_finite(ties):
            raise InputError("the array 'equations.ties' must have a row for each coefficient.")
    return Equations(T, mask, fixed, ties, centre, scale)


def _is_finite(values: Floats) -> bool:
    return bool((np.abs(values) <= LARGEST).all())


def _read_place(find: Finder) -> Place | None:
    if "place.coefficients" not in find.archive.names:
        return None
    place = Place(find("place.coefficients"), find("place.residual"))
    _check_covariance(place.residual, "place.residual")
    return place


# Outcomes.


def _write_categories(fit: RegressionFit, name: str) -> list[Any] | None:
    if name not in fit.categories:
        return None
    plain = [one.item() if isinstance(one, np.generic) else one for one in fit.categories[name]]
    wrong = [one for one in plain if not isinstance(one, str | bool | int | float)]
    if wrong:
        raise InputError(
            f"the category {wrong[0]!r} of {name} cannot be written to a file; texts and numbers can."
        )
    return plain


def _read_kinds(said: Any, outcomes: Sequence[str]) -> tuple[str, ...]:
    kinds = tuple(one_of(one, KINDS, "kinds") for one in texts_of(said, "kinds"))
    if len(kinds) != len(outcomes):
        raise InputError(f"{len(kinds)} kinds are told of {len(outcomes)} outcomes.")
    return kinds


def _read_categories(
    said: Any, outcomes: Sequence[str], kinds: Sequence[str]
) -> dict[str, tuple[Any, ...]]:
    of_outcomes = of_kind(said, list, "categories")
    if len(of_outcomes) != len(outcomes):
        raise InputError(f"categories of {len(of_outcomes)} outcomes are told of {len(outcomes)}.")
    out = {}
    for name, kind, given in zip(outcomes, kinds, of_outcomes, strict=True):
        if (given is None) != (kind == "continuous"):
            raise InputError("latent outcomes have categories, and no others.")
        if given is None:
            continue
        categories = of_kind(given, list, "categories")
        plain = all(isinstance(one, str | bool | int | float) and one == one for one in categories)
        if not plain or len(set(categories)) != len(categories):
            raise InputError("categories must be different texts or numbers.")
        if (len(categories) == 2) != (kind == "binary") or len(categories) < 2:
            raise InputError("a binary outcome has two categories, and an ordered one more.")
        out[name] = tuple(categories)
    return out


def _read_cuts(find: Finder, j: int, categories: int) -> Floats:
    cuts = find.floats(f"cut_points.{j}", (categories - 1,))
    if cuts[0] != 0.0 or not _is_finite(cuts) or not (np.diff(cuts) > 0.0).all():
        raise InputError("cut points must begin at 0, and rise.")
    return cuts


# Regressors. The keys of a design are names of columns, which may begin with what JSON here reserves.


def _escaped(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {(f"~{k}" if k[:1] in ("$", "~") else k): _escaped(one) for k, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, list | tuple) else value


def _unescaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {k.removeprefix("~"): _unescaped(one) for k, one in value.items()}
    return [_unescaped(one) for one in value] if isinstance(value, list) else value


def _read_design(
    said: Any, outcomes: Sequence[str], terms: Sequence[str], mask: Mask
) -> Design | None:
    if said is None:
        return None
    design = Design.from_dict(_unescaped(of_kind(said, dict, "design")))
    same = (design.outcomes, design.terms) == (outcomes, terms)
    if not same or not np.array_equal(design.mask, mask):
        raise InputError("the design is that of another regression.")
    return design


# What hides outcomes.


def _write_hiding(hiding: Hiding, store: Store) -> dict[str, Any]:
    # A selection has no arrays.
    selections = [write_rule(one, lambda name, array: name) for one in hiding.selections]
    shown = [
        {"unknown": one.name}
        if isinstance(one, Unknown)
        else {"array": store.keep(f"shown.{j}", one)}
        for j, one in enumerate(hiding.shown)
    ]
    rule = None if hiding.rule is None else keep_rule(hiding.rule, store, REMEDY)
    carried = list(hiding.carried)
    return {"rule": rule, "selections": selections, "shown": shown, "carried": carried}


def _read_hiding(
    said: Any, outcomes: tuple[str, ...], kinds: Sequence[str], find: Finder
) -> Hiding:
    said = of_kind(said, dict, "hiding")
    rule, carried = find_rule(said.get("rule"), find), texts_of(said.get("carried"), "carried")
    if rule is not None and not isinstance(rule, NotSaved):
        rule.check_width(len(outcomes) + len(carried))
    selections = []
    for one in of_kind(said.get("selections"), list, "selections"):
        selection = read_rule(one, find.floats)
        if not isinstance(selection, Selection):
            raise InputError("a selection was expected.")
        places = [*selection.outcomes, selection.by]
        if not all(isinstance(k, int) and 0 <= k < len(outcomes) for k in places):
            raise InputError("a selection speaks of what is no outcome.")
        if kinds[selection.index] != "binary":
            raise InputError("the index of a selection is binary.")
        selections.append(selection)
    shown = [_read_shown(one, find) for one in of_kind(said.get("shown"), list, "shown")]
    if len(shown) != len(outcomes):
        raise InputError(f"{len(shown)} sets are told of {len(outcomes)} outcomes.")
    check_names((*outcomes, *carried))
    return Hiding(outcomes, rule, tuple(selections), tuple(shown), tuple(carried))


def _read_shown(said: Any, find: Finder) -> Floats | Unknown:
    said = of_kind(said, dict, "shown")
    if "unknown" in said:
        return Unknown[one_of(said["unknown"], Unknown.__members__, "shown")]
    pieces = find.floats(said.get("array"))
    if pieces.ndim != 2 or pieces.shape[1] != 2 or not (pieces[:, 0] <= pieces[:, 1]).all():
        raise InputError("intervals in which an outcome is shown have two ends each.")
    return pieces
