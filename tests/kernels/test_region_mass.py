"""Probabilities of hidden regions: exact ones against SciPy, sampled ones within their errors."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

import halfseen as hs
from halfseen.kernels import region_mass
from halfseen.missingness.holes import SEEN, Holes, Inequalities
from halfseen.missingness.resolve import SetTable, resolve, union_of_intervals
from halfseen.solvers.full_information.completion import make_block
from halfseen.solvers.inference.likelihood import log_likelihood, row_log_likelihoods
from tests import naive

INF = math.inf
MEAN = np.array([0.3, -0.5, 1.0, 0.0, 0.4])
COVARIANCE = np.array([
    [1.0, 0.6, -0.3, 0.2, 0.1],
    [0.6, 2.0, 0.5, -0.4, 0.3],
    [-0.3, 0.5, 1.5, 0.3, 0.5],
    [0.2, -0.4, 0.3, 0.8, -0.2],
    [0.1, 0.3, 0.5, -0.2, 1.2],
])  # fmt: skip
LINE = [(-INF, INF)]


def _table(pieces):
    if isinstance(pieces, SetTable):
        return pieces
    return union_of_intervals(*(np.array(ends, dtype=float) for ends in zip(*pieces, strict=True)))


def _hidden_with(slope):
    """A value x is hidden with probability 1/(1 + exp(slope·x))."""
    return resolve(hs.Probability(lambda x: expit(slope * x)), 0.0, 1.5, 12.0).complement()


def _holes(cells, d, rows=1, V=None, b=None, sign=None):
    """The same row several times; ``cells`` are the sets of its hidden cells by column."""
    index = np.full((rows, d), SEEN, dtype=np.int32)
    for k, column in enumerate(cells):
        index[:, column] = k
    bound = None
    if V is not None:
        signs = np.tile(np.array(sign, dtype=np.int8), (rows, 1))
        bound = Inequalities(np.array(V), np.array(b), signs, np.zeros(len(V), dtype=np.intp))
    return Holes(
        index, SetTable.join([_table(s) for s in cells.values()]), np.array([*cells]), bound
    )


def _log_likelihood(y, cells, **bound):
    """Log-likelihood of a row and its variance."""
    d = len(y)
    holes = _holes(cells, d, **bound)
    values, variance = row_log_likelihoods(
        np.array([y], dtype=float), holes, MEAN[:d], COVARIANCE[:d, :d]
    )
    return values[0], variance[0]


def _given_seen(y, hidden):
    """Log-density of what is seen of a row, and the distribution of the rest."""
    d = len(y)
    seen = [k for k in range(d) if k not in hidden]
    rest = list(hidden)
    S, m = COVARIANCE[:d, :d], MEAN[:d]
    if not seen:
        return 0.0, m, S
    y = np.array(y)[seen]
    gain = np.linalg.solve(S[np.ix_(seen, seen)], S[np.ix_(seen, rest)]).T
    density = stats.multivariate_normal(m[seen], S[np.ix_(seen, seen)]).logpdf(y)
    return (
        density,
        m[rest] + gain @ (y - m[seen]),
        S[np.ix_(rest, rest)] - gain @ S[np.ix_(seen, rest)],
    )


def _box(m, C, low, high):
    """P(low < N(m, C) < high), by SciPy's cubature with a small tolerance."""
    return stats.multivariate_normal.cdf(
        high, m, C, lower_limit=low, abseps=1e-9, releps=1e-9, maxpts=2_000_000, rng=0
    )


def test_a_seen_row_has_its_density():
    y = [0.1, 0.2, 0.3]
    value, variance = _log_likelihood(y, {}) if False else (None, None)
