"""Which names are public: for the pages of the reference, and for the tests that go through them.

A name is public if ``halfseen`` or one of its public modules lists it. Of its methods, those that other
parts of the library call (the protocol that a rule follows, and builders of results) are left to the
page on extending.
"""

import enum
import inspect
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

import halfseen
from halfseen import diagnostics, metrics, missingness, planning, regression, samplers, solvers
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.sets import SeenSet

MODULES = (halfseen, regression, solvers, samplers, metrics, planning, diagnostics, missingness)
PROTOCOLS = (Missingness, ColumnwiseMissingness, SeenSet)
# What a rule or a set must be able to do for the solvers; users ask them ``seen`` and ``contains``.
PROTOCOL = {name for base in PROTOCOLS for name in vars(base) if not name.startswith("_")} - {
    "seen",
    "contains",
    "probability",
}
# Builders and conversions that the library needs for itself.
FOR_THE_LIBRARY = {
    "ColumnRule.of_set",
    "ColumnwiseMissingness.kind",
    "Holes.is_convex",
    "Holes.standardised",
    "Holes.take",
    "Holes.with_intervals",
    "IntervalData.describe",
    "IntervalData.holes",
    "IntervalData.with_ends",
    "LinearThreshold.normalised",
    "LinearThreshold.scaled",
    "Loss.known",
    "Losses.absent",
    "Missingness.kind",
    "Normality.both_counted",
    "NormalityTest.absent",
    "NormalityTest.of",
    "PairMoments.check_range",
    "PairMoments.of_chunk",
    "PairMoments.of_table",
    "PairMoments.width",
    "Polyhedra.levels",
    "Polyhedra.signs",
    "Region.directions",
    "RegressionErrors.coefficient_limits",
    "RegressionErrors.correlation_limits",
    "RegressionErrors.deviation_limits",
    "RegressionErrors.of_vector",
    "RegressionErrors.p_values",
    "RegressionErrors.quantiles",
    "RegressionErrors.vector",
    "Selection.chosen",
    "SelfCensoring.column_set",
    "SetTable.is_intervals",
    "SetTable.is_whole_line",
    "SetTable.standardised",
    "SetTable.take",
    "SetTable.within",
    "SetTable.without_empty",
    "Share.of",
    "StandardErrors.from_parameters",
    "StandardErrors.labelled",
    "StandardErrors.vector",
    "RowTruncation.contains",
}


def names_of(module: ModuleType) -> list[str]:
    """List the public names of a module."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, item in vars(module).items()
        if not name.startswith("_") and getattr(item, "__module__", None) == module.__name__
    ]


def public_names() -> Iterator[tuple[str, Any]]:
    """Yield the shortest dotted name of every public object, once, and the object."""
    told: list[Any] = []
    for module in MODULES:
        for name in names_of(module):
            item = getattr(module, name)
            if not isinstance(item, ModuleType) and not any(item is one for one in told):
                told.append(item)
                yield f"{module.__name__}.{name}", item


def classes() -> dict[str, type]:
    """Return the public classes by their names."""
    return {name: item for name, item in public_names() if isinstance(item, type)}


def kinds_of_classes() -> dict[str, str]:
    """Tell enumerations, errors and other classes apart, for the template of classes."""
    kinds = ((enum.Enum, "enumeration"), (BaseException, "error"), (object, "class"))
    return {
        name: next(kind for base, kind in kinds if issubclass(cls, base))
        for name, cls in classes().items()
    }


def members_by_class() -> dict[str, list[str]]:
    """List the methods and properties that the page of each class shows."""
    return {name: [member for member, _ in public_members(cls)] for name, cls in classes().items()}


def public_members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, as they stand in its body."""
    stated = attributes_in(cls.__doc__ or "")
    for name, item in vars(cls).items():
        kinds = (classmethod, staticmethod, property, cached_property)
        if name.startswith("_") or not (inspect.isfunction(item) or isinstance(item, kinds)):
            continue
        hidden = name in PROTOCOL and cls not in PROTOCOLS
        listed = name in stated and isinstance(item, property)
        if not (hidden or listed or f"{cls.__name__}.{name}" in FOR_THE_LIBRARY):
            yield name, item


def attributes_in(docstring: str) -> set[str]:
    """Read the names in the section Attributes, which need no place of their own."""
    _, _, after = inspect.cleandoc(docstring).partition("Attributes\n----------\n")
    lines = after.split("\n\n")[0].splitlines()
    heads = [line.split(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip() for head in heads for name in head.split(",")}
