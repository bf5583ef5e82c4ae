"""``full``: the door of the full-information engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import finite_vector, positive_number, whole_number
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.parallel import resolve_jobs, single_blas_thread
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.conditionals import check_covariance
from halfseen.solvers.full.learn import Settings, learn
from halfseen.solvers.full.m_step import (
    CovarianceStructure,
    Diagonal,
    Free,
    Known,
    KnownCorrelation,
    MStep,
    Shrinkage,
    Sparse,
)
from halfseen.solvers.full.problem import Problem, read_problem
from halfseen.solvers.full.sparse import choose_penalty
from halfseen.solvers.full.starts import start_from
from halfseen.solvers.result import Fit, Note, Source, Status

Floats = NDArray[np.float64]

ACCURACY = 0.1
MOST_SWEEPS = 500


def full(
    X: Any,
    missingness: Missingness | None = None,
    *,
    covariance: ArrayLike | str | None = None,
    correlation: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    missing_at_random: ArrayLike | None = None,
    shrinkage: float | None = None,
    penalty: float | None = None,
    accuracy: float = ACCURACY,
    most_sweeps: int = MOST_SWEEPS,
    standard_errors: bool = True,
    start: Gaussian | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    n_jobs: int | None = None,
) -> Fit:
    """Learn a Gaussian from every seen value and from where every hidden one can be."""
    resolve_jobs(n_jobs)
    settings = Settings(
        positive_number("accuracy", accuracy),
        whole_number("most_sweeps", most_sweeps),
        standard_errors,
        seed_of(random_state),
        progress,
        n_jobs,
    )
    problem = read_problem(X, missingness, missing_at_random, n_jobs)
    structure = choose_structure(problem, covariance, correlation, shrinkage, penalty)
    known_mean = None if mean is None else finite_vector("mean", mean, problem.shape[1])
    notes = []
    n, d = problem.shape
    if structure is None:
        structure = Free()
        if n <= d:
            structure = Shrinkage()
            text = f"{n} rows, {d} columns. Choose covariance= yourself to say how."
            notes.append(Note(Status.REGULARISED, text))
    options = {
        "covariance": covariance, "correlation": correlation, "mean": mean,
        "shrinkage": shrinkage, "penalty": penalty,
    }  # fmt: skip
    source = Source(X, missingness, missing_at_random, settings.seed, n_jobs, options)
    if known_mean is not None:
        known_mean = (known_mean - problem.centre) / problem.scale
    with single_blas_thread():
        if start is None:
            first = start_from(X, problem, n_jobs)
        else:
            first = problem.from_units(start.mean, start.covariance)
        if known_mean is not None:
            first = known_mean, first[1]
        if isinstance(structure, Known):
            first = first[0], structure.covariance
        if isinstance(structure, Sparse) and penalty is None:
            structure = choose_penalty(problem, known_mean, first, settings)
        return learn(problem, MStep(structure, known_mean), first, settings, notes, source)


def choose_structure(
    problem: Problem,
    covariance: ArrayLike | str | None,
    correlation: ArrayLike | None,
    shrinkage: float | None,
    penalty: float | None,
) -> CovarianceStructure | None:
    """Read what was said about the covariance; None where nothing was."""
    d = problem.shape[1]
    if correlation is not None:
        if covariance is not None:
            raise InputError("give covariance= or correlation=, not both.")
        given = np.asarray(correlation, dtype=float)
        if given.shape != (d, d) or not np.allclose(np.diag(given), 1.0, atol=1e-8):
            raise InputError(
                f"correlation must have shape ({d}, {d}) and ones on its diagonal; got shape {given.shape}."
            )
        return KnownCorrelation(Gaussian(np.zeros(d), given).covariance)
    name = covariance if isinstance(covariance, str) else None
    if shrinkage is not None:
        if name != "shrinkage":
            raise InputError('shrinkage= is the share for covariance="shrinkage"; say both.')
        if isinstance(shrinkage, bool) or not 0.0 <= shrinkage <= 1.0:
            raise InputError(f"shrinkage must lie between 0 and 1; got {shrinkage!r}.")
    if penalty is not None and name != "sparse":
        raise InputError('penalty= is for covariance="sparse"; say both.')
    if name is not None:
        structures: dict[str, CovarianceStructure | None] = {
            "free": Free(),
            "diagonal": Diagonal(),
            "shrinkage": Shrinkage(shrinkage),
            "sparse": Sparse(1.0 if penalty is None else positive_number("penalty", penalty)),
        }
        if name not in structures:
            raise InputError(
                f"covariance must be an array (where it is known) or one of {', '.join(structures)}; got "
                f"{name!r}."
            )
        return structures[name]
    if covariance is None:
        return None
    known = check_covariance(covariance, d).covariance
    return Known(known / np.outer(problem.scale, problem.scale))
