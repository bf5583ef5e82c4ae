"""Rows in memory, for tests of what is made from them."""

import numpy as np

from halfseen.missingness.holes import Scan
from halfseen.solvers.full_information import information as _information
from halfseen.solvers.full_information import pair_information as _pairs
from halfseen.solvers.full_information.charts import Chart
from halfseen.solvers.full_information.m_step import Free, MStep
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.full_information.rows import HeldRows


def table(truth, rule, n, seed=0):
    """Rows with NaN where the rule hides them, and their holes."""
    d = truth.dimension
    Y = truth.sample(n, seed)
    X = np.where(rule.seen(Y, seed + 1), Y, np.nan)
    return X, rule.holes(X, Scan(truth.mean, np.ones(d), np.full(d, 40.0)))


def held(Y, holes, n_jobs=1):
    """Rows as they are, in their own units."""
    d = Y.shape[1]
    names = tuple(f"x{j}" for j in range(d))
    return HeldRows(Problem(Y, holes, np.zeros(d), np.ones(d), names, None, None), n_jobs)


def information(Y, holes, mean, covariance, seed=0, n_jobs=1, m_step=None):
    """What rows say about the parameters of a structure; about all of them by default."""
    chart = Chart(m_step or MStep(Free()), mean, covariance, len(Y))
    return _information.information(held(Y, holes, n_jobs), chart, seed)


def pair_errors(Y, holes, mean, covariance, seed, n_jobs):
    return _pairs.pair_errors(held(Y, holes, n_jobs), mean, covariance, seed)
