"""Where the holes took nearly all of the information in a direction: the Roy model.

Of two wages the larger is seen, with a test score that says something about one of them. About 98 % of
the information on the correlation of the wages is hidden, and the likelihood has a long, curved ridge.
One cell of each row is hidden, so the log-likelihood is exact.
"""

import numpy as np
import pytest

import halfseen as hs
from halfseen.parallel import single_blas_thread
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.learn import _weak_note
from halfseen.solvers.full_information.problem import read_problem
from halfseen.solvers.inference.likelihood import row_log_likelihoods
from halfseen.solvers.inference.refits import refits
from halfseen.theta import pack, unpack
from tests import naive
from tests.solvers.full_information.held import information

SCALE = np.array([0.35, 0.6, 1.0])
ROY = hs.Gaussian(
    [3.0, 2.9, 0.0],
    np.array([[1.0, 0.3, 0.1], [0.3, 1.0, 0.6], [0.1, 0.6, 1.0]]) * np.outer(SCALE, SCALE),
)
RULE = hs.SelfSelection([[0, 1]])


def _table(n, seed):
    Y = ROY.sample(n, seed)
    first = Y[:, 0] >= Y[:, 1]
    Y[first, 1] = Y[~first, 0] = np.nan
    return Y


def _top(problem, start=None):
    """Highest point of the log-likelihood, its inverse Hessian, and the function."""

    def log_likelihood(theta):
        mean, covariance = unpack(theta, 3)
        if np.linalg.eigvalsh(covariance)[0] < 1e-6:
            return -np.inf
        values, variance = row_log_likelihoods(problem.Y, problem.holes, mean, covariance)
        assert (variance == 0.0).all()
        return values.sum()

    if start is None:
        start = pack(*problem.from_units(ROY.mean, ROY.covariance))
    # Steps of about a tenth of the standard errors of complete rows.
    steps = np.full(start.size, 0.1 / np.sqrt(problem.shape[0]))
    return *naive.maximum_likelihood(log_likelihood, start, steps), log_likelihood


def _problem(n, seed):
    X = _table(n, seed)
    return X, read_problem(X, RULE, None, 1)


@pytest.mark.parametrize("seed", [1, 3])
def test_standard_errors_are_those_of_the_hessian(seed):
    _, problem = _problem(4000, seed)
    top, ref, _ = _top(problem)
    with single_blas_thread():
        found = information(problem.Y, problem.holes, *unpack(top, 3))
    assert 0.97 < found.missing[-1] < 0.995
    # Both are exact; the oracle's differences are off by some thousandths where 0.015 is left.
    np.testing.assert_allclose(np.sqrt(found.variances()), np.sqrt(np.diag(ref)), rtol=0.02)


@pytest.mark.parametrize("seed", [0, 4, 9])
def test_a_fit_ends_at_the_top_of_a_curved_ridge(seed):
    # With the information of where the climb began, these three ran to correlations of 0.9.
    X, problem = _problem(1000, seed)
    top, ref, log_likelihood = _top(problem)
    fit = hs.solvers.full(X, RULE, random_state=0, n_jobs=1)
    assert [note.status for note in fit.notes] == [hs.Status.WEAKLY_IDENTIFIED]
    at = pack(*problem.from_units(fit.mean, fit.covariance))
    # A climb ends when 1e-4 are left, by its own estimate, which is rough along a curved ridge.
    assert log_likelihood(top) - log_likelihood(at) < 1e-2
    # 0.1 standard errors from the top the ridge is a little steeper, or less so.
    ratio = fit.standard_errors.vector() / problem.overview.units / np.sqrt(np.diag(ref))
    np.testing.assert_allclose(ratio, 1.0, atol=0.05)


def test_refits_of_the_bootstrap_leave_the_fit():
    X, problem = _problem(1000, 1)
    fit = hs.solvers.full(X, RULE, random_state=0, n_jobs=1)
    here = pack(*problem.from_units(fit.mean, fit.covariance))
    found, tops = [], []
    for k, refit in enumerate(refits(fit, 6, "rows", 7)):
        rows = keyed_generator(7, Purpose.BOOTSTRAP, k).integers(len(X), size=len(X))
        found.append(pack(*problem.from_units(refit.mean, refit.covariance)) - here)
        tops.append(_top(problem.take(rows), found[-1] + here)[0] - here)
    # How much of the way to the tops of their likelihoods they go: all of it, but for what refits leave.
    slopes = (np.array(found) * tops).sum(axis=0) / np.square(tops).sum(axis=0)
    assert slopes.min() > 0.7
    assert slopes.max() < 1.3


def test_known_correlations_converge_as_fast_as_independent_columns():
    truth = hs.Gaussian([0.7, 0.4, 0.2, 0.0], np.diag([0.25, 0.36, 0.64, 0.25]))
    Y = truth.sample(1500, 4)
    X = np.where(Y.max(axis=1, keepdims=True) == Y, Y, np.nan)
    rule = hs.SelfSelection()
    ref = hs.solvers.full(X, rule, covariance="diagonal", random_state=0, n_jobs=1)
    comp = hs.solvers.full(X, rule, correlation=np.eye(4), random_state=0, n_jobs=1)
    # The same likelihood and the same points, in other coordinates: steps end elsewhere near the top.
    assert (np.abs(comp.mean - ref.mean) < 0.05 * ref.standard_errors.mean).all()
    np.testing.assert_allclose(comp.standard_errors.mean, ref.standard_errors.mean, rtol=0.05)
    assert comp.history["steps"] <= 2 * ref.history["steps"]
    R = np.where(np.eye(4, dtype=bool), 1.0, 0.4)
    other = hs.solvers.full(X, rule, correlation=R, random_state=0, n_jobs=1)
    assert other.status is not hs.Status.NOT_CONVERGED
    assert other.history["steps"] < 250
    np.testing.assert_allclose(other.correlation, R, atol=1e-9)


def test_one_column_has_no_correlation_to_know():
    rule = hs.DetectionLimits(lower=0.5)
    X = hs.simulate(hs.Gaussian([1.0], [[4.0]]), rule, 300, 0)
    free, known = (
        hs.solvers.full(X, rule, random_state=0, n_jobs=1, **options)
        for options in ({}, {"correlation": [[1.0]]})
    )
    # In other coordinates, but of the same draws.
    np.testing.assert_allclose(
        known.standard_errors.covariance, free.standard_errors.covariance, rtol=0.02
    )


def test_the_note_on_what_is_hardly_known_names_something():
    names = ["mean of a", "mean of b", "variance of a"]
    text = _weak_note(1, 3, names, np.array([5.2, 1.0, 30.0])).text
    assert text.endswith("complete data: variance of a (30 times), mean of a (5 times).")
    text = _weak_note(1, 3, names, np.array([1.0, 3.54, 3.0])).text
    assert "1 of 3 directions" in text
    assert text.endswith("at most 3.5 times that of complete data (mean of b).")
