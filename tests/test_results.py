"""Estimates of solvers become fits at the door."""

import inspect
import pickle

import numpy as np
import pytest

import halfseen as hs
from halfseen.results import as_fit
from halfseen.solvers.pairwise import pairwise
from halfseen.solvers.result import Estimate

RULE = hs.DetectionLimits(lower=0.0)


@pytest.fixture(scope="module")
def X():
    return hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), RULE, 200, 0)


@pytest.mark.parametrize("method", ["full", "pairwise", "truncation"])
def test_all_doors_give_fits(method, X):
    by_name = hs.fit(X, RULE, method)
    by_solver = getattr(hs.solvers, method)(X, RULE)
    assert type(by_name) is type(by_solver) is hs.Fit
    np.testing.assert_array_equal(by_name.mean, by_solver.mean)


def test_a_fit_has_all_that_the_solver_found(X):
    found = pairwise(X, RULE)
    assert type(found) is Estimate
    fit = as_fit(found)
    assert vars(fit) == vars(found)
    assert repr(found) == "Estimate" + repr(fit).removeprefix("Fit")
    # And what can be asked of a fit is not asked of an estimate.
    assert hasattr(fit, "summary")
    assert not hasattr(found, "summary")


@pytest.mark.parametrize(
    "name",
    [
        "fit",
        "full",
        "missing_descent",
        "pairwise",
        "truncated_sgd",
        "truncation",
        "truncation_psgd",
    ],
)
def test_functions_are_found_again_where_they_were(name):
    """So that they can be sent to other processes."""
    function = getattr(hs.solvers, name)
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__doc__
    signature = inspect.signature(function)
    returned = hs.Fit | hs.GroupedFit if name == "fit" else hs.Fit
    assert signature.return_annotation == returned
    assert function.__annotations__["return"] == returned
    assert next(iter(signature.parameters)) == "X"


def test_warnings_point_at_whoever_called(X):
    with pytest.warns(hs.ConvergenceWarning) as caught:
        hs.fit(X[:12], RULE, "pairwise")
    assert caught[0].filename == __file__


def test_load_is_found_again():
    assert pickle.loads(pickle.dumps(hs.load)) is hs.load
