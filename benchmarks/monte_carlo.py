"""What sampling adds to estimates and log-likelihoods, next to what fits say that it adds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import halfseen as hs
from benchmarks.hard_running import many
from benchmarks.registry import Row, task
from halfseen.solvers.inference.fitted_table import read_source
from halfseen.solvers.inference.likelihood import TOLERANCE, LogLikelihood, row_log_likelihoods

Floats = NDArray[np.float64]

# 58 % of every column lie below it: rows of three and more confined cells are the rule.
LIMIT = 0.2
# Fits of one table, each with shifts of its own; and one that stops at a fifth of their error.
SEEDS, ACCURACY, FINER = 4, 0.1, 0.02
# Shifts of a log-likelihood.
SHIFTS = 6
SHAPES = tuple(
    (d, correlation, n) for n in (200, 2000) for d in (5, 10, 20) for correlation in (0.5, 0.9)
)
LARGE = ((4, 0.5, 100_000),)


class Answer(NamedTuple):
    """Of one table: errors of estimates by parameter, and of log-likelihoods.

    ``off`` is how far fits are from a finer one, ``told`` what they say, both as shares of the standard
    errors (root mean squares over fits).
    """

    off: Floats
    told: Floats
    reached: bool
    likelihoods: Floats
    likelihood_errors: Floats


@task
def monte_carlo(quick: bool) -> Iterator[Row]:
    """Compare Monte-Carlo errors that fits tell with those that they have."""
    tables = 1 if quick else 4
    for shape in SHAPES[:2] if quick else SHAPES:
        d, correlation, n = shape
        title = f"d = {d}, correlations {correlation:g}, n = {n}, {tables} tables"
        found = many(partial(judge, shape), range(tables))
        off, told = (np.array([getattr(one, name) for one in found]) for name in ("off", "told"))
        reached = all(one.reached for one in found)
        yield Row(
            f"{title}: Monte-Carlo errors as shares of standard errors, root mean square and largest "
            "(what fits say)",
            f"{_root(off):.3f}, {off.max():.3f} ({_root(told):.3f}, {told.max():.3f})",
            f"{ACCURACY:g} at most, or the status says so",
            bool(off.max() <= 2.0 * ACCURACY and told.max() <= ACCURACY) or not reached,
        )
        yield _of_likelihoods(title, found)
    for shape in () if quick else LARGE:
        d, correlation, n = shape
        title = f"d = {d}, correlations {correlation:g}, n = {n}"
        yield _of_likelihoods(title, [judge(shape, 0, fits=1)])


def _of_likelihoods(title: str, found: list[Answer]) -> Row:
    spread = _root(np.array([one.likelihoods.std(ddof=1) for one in found]))
    errors = np.array([one.likelihood_errors for one in found])
    return Row(
        f"{title}: scatter of the log-likelihood over shifts (the error that it says, on average and at "
        "most)",
        f"{spread:.3f} ({_root(errors):.3f}, {errors.max():.3f})",
        f"{TOLERANCE:g} at most",
        bool(spread <= 2.0 * TOLERANCE and errors.max() <= TOLERANCE),
    )


def judge(shape: tuple[int, float, int], seed: int, fits: int = SEEDS) -> Answer:
    """Fit one table several times, and ask for its log-likelihood with several shifts."""
    d, correlation, n = shape
    R = np.full((d, d), correlation)
    np.fill_diagonal(R, 1.0)
    rule = hs.DetectionLimits(lower=LIMIT)
    X = hs.simulate(hs.Gaussian(np.zeros(d), R), rule, n, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        found = [hs.fit(X, rule, random_state=k, n_jobs=1) for k in range(fits)]
        finer = found[0]
        if fits > 1:
            finer = hs.fit(X, rule, random_state=fits, accuracy=FINER, n_jobs=1)
    scale = finer.standard_errors.vector()
    off = np.array([_packed(one.mean, one.covariance) for one in found])
    off = (off - _packed(finer.mean, finer.covariance)) / scale
    errors = [one.monte_carlo_errors for one in found]
    told = np.array([_packed(*one) for one in errors if one is not None]) / scale
    problem, g = read_source(found[0], None), found[0].gaussian
    place = problem.from_units(g.mean, g.covariance)
    levels = [
        LogLikelihood.of_rows(
            *row_log_likelihoods(problem.Y, problem.holes, *place, seed=k, n_jobs=1)
        )
        for k in range(SHIFTS)
    ]
    return Answer(
        np.sqrt((off**2).mean(axis=0)),
        np.sqrt((told**2).mean(axis=0)),
        all(one.status is not hs.Status.NOT_CONVERGED for one in found),
        np.array([one.value for one in levels]),
        np.array([one.standard_error for one in levels]),
    )


def _packed(mean: Floats, covariance: Floats) -> Floats:
    return np.concatenate([mean, np.asarray(covariance)[np.tril_indices(len(mean))]])


def _root(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))
