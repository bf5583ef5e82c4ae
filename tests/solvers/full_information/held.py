"""Rows in memory, for tests of what is made from them."""

import numpy as np

from halfseen.solvers.full_information import information as _information
from halfseen.solvers.full_information import pair_information as _pairs
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.full_information.rows import HeldRows


def held(Y, holes, n_jobs=None):
    """Rows as they are, in their own units."""
    d = Y.shape[1]
    names = tuple(f"x{j}" for j in range(d))
    return HeldRows(Problem(Y, holes, np.zeros(d), np.ones(d), names, None, None), n_jobs)


def information(Y, holes, mean, covariance, basis, seed, n_jobs=None):
    return _information.information(held(Y, holes, n_jobs), mean, covariance, basis, seed)


def pair_errors(Y, holes, mean, covariance, seed, n_jobs):
    return _pairs.pair_errors(held(Y, holes, n_jobs), mean, covariance, seed)
