"""Every public function is fed arrays that nobody should pass: it works, or one of our errors comes.

``public_calls`` names each public function and method, says how to call it, and what a good argument
is. A new public name must be added there.
"""

from __future__ import annotations

import enum
import inspect
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halfseen as hs
from tests.fuzz.arrays import equal_arrays, odd_arrays, same
from tests.fuzz.public_calls import CALLS, Call, X
from tests.fuzz.targets import outcome

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
import public

# What comes out of a function and is only looked at: it holds what the library put there. And what a
# rule and a solver hand each other (``ColumnRule`` to ``Scan``): whoever builds one answers for it.
RECORDS = {
    *(
        "Fit",
        "GroupedFit",
        "GroupDifferences",
        "GroupMeans",
        "Limit",
        "LimitTable",
        "GroupTest",
        "CensoredGaussian",
        "PairMoments",
        "Bootstrap",
        "Intervals",
        "Note",
        "Pooled",
        "Profile",
    ),
    *("RatioTest", "StandardErrors", "TotalVariation", "SelfCensoringPlan", "MissingDescentPlan"),
    *("PilotPlan", "Contradiction", "Diagnosis", "Finding", "Mark", "Normality", "NormalityTest"),
    *("PairShares", "Share", "ColumnRule", "Box", "Parts", "Polyhedra", "Holes", "Inequalities"),
    *("SetTable", "Scan", "Rejection", "RowBlocks", "Rounded"),
    *("LearnedPower", "Loss", "Losses", "Sensitivity", "Tails"),
    *("Comparison", "ConditionalRegression", "MarginalEffects"),
    *("RegressionErrors", "RegressionFit", "RegressionIntervals"),
}
# Called by readers of tables and of losses, which have checked what they pass.
STRUCTURES = ("AR1", "BlockDiagonal", "CompoundSymmetry", "Factor", "Kronecker", "RandomEffects")
STRUCTURES = (*STRUCTURES, "Toeplitz")
FOR_THE_LIBRARY = {
    "halfseen.PairMoments.of_chunk",
    "halfseen.missingness.Holes.with_losses",
    "halfseen.missingness.SetTable.with_losses",
    # Of structures of a covariance, for the engine.
    *(
        f"halfseen.{name}.{method}"
        for name in STRUCTURES
        for method in ("basis", "count", "edges", "learned", "solve")
    ),
}
# Asked through the rules, sets and samplers that follow them.
PROTOCOLS = {"Missingness", "ColumnwiseMissingness", "SeenSet", "Sampler"}
# scikit-learn's validation comes first, with errors of the kinds that its own checks ask for.
FIRST_READ_BY_SCIKIT_LEARN = {
    f"halfseen.CensoredGaussian.{method}" for method in ("fit", "partial_fit", "transform", "score")
}
# What would take too long to try.
TOO_MANY = ("int 109951162", "int 100000000")
KNOWN: dict[str, tuple[str, ...]] = {
    # It would do them.
    "halfseen.Fit.bootstrap": TOO_MANY,
    "halfseen.GroupedFit.tests": TOO_MANY,
    "halfseen.RegressionFit.draw_imputations": TOO_MANY,
    # Half a minute: one row a thousand standard deviations out makes the set rarely hit.
    "halfseen.solvers.truncated_sgd": ("one 1e18",),
}


def choices(call: Call) -> np.ndarray:
    """Return the good value as an array, to make odd ones of."""
    if isinstance(call.good, np.ndarray):
        return call.good
    return np.array(call.good if isinstance(call.good, int | float) else [1.0, 2.0])


def quietly(call: Call, value: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return call.call(value)


ids = [f"{k}-{call.name.removeprefix('halfseen.')}" for k, call in enumerate(CALLS)]


@pytest.mark.parametrize("call", CALLS, ids=ids)
def test_odd_arguments_are_used_or_refused_in_a_sentence(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    allowed = (ValueError, TypeError) if call.name in FIRST_READ_BY_SCIKIT_LEARN else ()
    # Of a table itself nothing is known to come out.
    known = () if call.good is X else KNOWN.get(call.name, ())
    findings = []
    for label, value in odd_arrays(choices(call)):
        if label in known:
            continue
        try:
            outcome(call.call, value)
        except allowed:
            continue
        except Exception as error:
            findings.append(f"{label}: {type(error).__name__}: {error!s:.100}")
    assert not findings, f"{len(findings)} findings: " + "; ".join(findings[:5])


@pytest.mark.parametrize(
    "call", [one for one in CALLS if one.takes_arrays and isinstance(one.good, np.ndarray)],
    ids=lambda call: call.name.removeprefix("halfseen."),
)  # fmt: skip
def test_the_layout_of_an_array_changes_nothing(call):
    before = call.good.copy()
    expected = quietly(call, call.good)
    if before.dtype.kind in "fiub":
        for label, value in equal_arrays(call.good):
            assert same(expected, quietly(call, value)), label
        equal_nan = before.dtype.kind == "f"
        assert np.array_equal(call.good, before, equal_nan=equal_nan), "the argument was changed"


@pytest.mark.parametrize("call", CALLS, ids=ids)
def test_good_arguments_are_good(call):
    if call.takes_arrays:
        quietly(call, call.good)


def test_every_public_name_is_called():
    called = {call.name for call in CALLS}
    missing = [name for name in wanted_names() if name not in called | FOR_THE_LIBRARY]
    assert not missing, f"add these to a table: {missing}"


def wanted_names() -> list[str]:
    """Names of the public functions, classes and methods that take an argument."""
    names = []
    for name, item in public.public_names():
        kind = name.rpartition(".")[2]
        if inspect.isfunction(item):
            names.append(name)
        if not isinstance(item, type) or issubclass(item, BaseException | enum.Enum):
            continue
        if kind in PROTOCOLS:
            continue
        if kind not in RECORDS:
            names.append(name)
        for method, function in public.public_members(item):
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function) and len(inspect.signature(function).parameters) > 1:
                names.append(f"{name}.{method}")
    return names
