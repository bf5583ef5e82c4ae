"""Structures of a covariance, written as in textbooks and climbed by SciPy: nothing of halfseen is used.

Parameters are the means and then numbers without bounds: logarithms of variances, hyperbolic tangents of
correlations. Rows have at most two cells in intervals, so that their likelihood is exact.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize

from tests.naive_regression import climb, numerical_hessian, row_terms

# Of differences of Σ, which has no noise.
WIDTH = 1e-6
TIMES = np.arange(4.0)
Z = np.column_stack([np.ones(4), TIMES])
LAGS = np.abs(np.subtract.outer(TIMES, TIMES))


class Family(NamedTuple):
    """A structure of four columns: as halfseen calls it, and Σ of some numbers, from which to start."""

    name: str
    sigma: Callable
    start: np.ndarray


def scales(theta):
    return np.diag(np.exp(0.5 * theta * np.ones(4)))


def autoregressive(r):
    return np.sign(np.tanh(r)) ** LAGS * np.abs(np.tanh(r)) ** LAGS


def symmetric(r):
    # From −1/3 to 1.
    rho = (np.exp(r) - 1.0 / 3.0) / (np.exp(r) + 1.0)
    return rho + (1.0 - rho) * np.eye(4)


def toeplitz(r):
    """Partial autocorrelations to autocorrelations, by the recursion of Durbin and Levinson."""
    partial, found, before = np.tanh(r), [1.0], np.empty(0)
    for one in partial:
        found.append(
            before @ found[:0:-1] + one * (1.0 - before @ found[1:]) if before.size else one
        )
        before = np.append(before - one * before[::-1], one)
    return np.array(found)[LAGS.astype(int)]


def lower(theta):
    return np.array([[np.exp(theta[0]), 0.0], [theta[1], np.exp(theta[2])]])


def square(L):
    return L @ L.T


def of_kronecker(theta):
    B = square(np.array([[1.0, 0.0], [theta[3], np.exp(theta[4])]]))
    return np.kron(square(lower(theta[:3])), B)


def with_autoregression(theta):
    r = np.tanh(theta[3])
    return np.kron(square(lower(theta[:3])), [[1.0, r], [r, 1.0]])


def by_time(theta):
    # The same two sides, columns in the order of times.
    order = [0, 2, 1, 3]
    return of_kronecker(theta)[np.ix_(order, order)]


def in_blocks(theta):
    out = np.zeros((4, 4))
    out[:2, :2], out[2:, 2:] = square(lower(theta[:3])), square(lower(theta[3:]))
    return out


def of_factor(theta):
    return np.outer(theta[:4], theta[:4]) + np.diag(np.exp(theta[4:]))


def of_effects(theta):
    return Z @ square(lower(theta[:3])) @ Z.T + np.exp(theta[3]) * np.eye(4)


def scaled(correlation, size):
    """Return a covariance whose first numbers are logarithms of variances."""

    def sigma(theta):
        D = scales(theta[:size])
        return D @ correlation(theta[size:]) @ D

    return sigma


ZEROS, LINES = np.zeros, "random_effects([[1, 0], [1, 1], [1, 2], [1, 3]])"
FAMILIES = [
    Family("compound_symmetry", scaled(symmetric, 1), ZEROS(2)),
    Family("csh", scaled(symmetric, 4), ZEROS(5)),
    Family("ar1", scaled(autoregressive, 1), np.array([0.0, 0.3])),
    Family("ar1h", scaled(autoregressive, 4), np.array([0.0, 0.0, 0.0, 0.0, 0.3])),
    Family("toeplitz", scaled(toeplitz, 1), ZEROS(4)),
    Family("toeph", scaled(toeplitz, 4), ZEROS(7)),
    Family("kronecker(2, 2)", of_kronecker, ZEROS(5)),
    Family("kronecker(2, 2, of_times=ar1)", with_autoregression, ZEROS(4)),
    Family("kronecker(2, 2, of_times=cs)", with_autoregression, ZEROS(4)),
    Family("kronecker(2, 2, times_first=True)", by_time, ZEROS(5)),
    Family("block_diagonal([2, 2])", in_blocks, ZEROS(6)),
    Family("block_diagonal([[0, 1], [2, 3]])", in_blocks, ZEROS(6)),
    Family("factor(1)", of_factor, np.array([0.7] * 4 + [-0.7] * 4)),
    Family(LINES, of_effects, np.array([-0.3, 0.0, -1.0, -0.5])),
]


def slopes(sigma, theta):
    """Derivatives of Σ in the numbers, by central differences."""
    steps = WIDTH * np.eye(theta.size)
    return np.array([(sigma(theta + e) - sigma(theta - e)) / (2.0 * WIDTH) for e in steps])


def likelihood(low, high, W, family):
    """Return the log-likelihood and its slope as a function of Γ, row by row, and the numbers."""
    k, q = W.shape[1], low.shape[1]

    def function(p):
        Sigma = family.sigma(p[q * k :])
        if np.linalg.eigvalsh(Sigma)[0] <= 0.0:
            return -np.inf, np.zeros_like(p)
        terms = row_terms(p[: q * k].reshape(q, k), Sigma, low, high, W)
        of_sigma = np.einsum("ij,kij->k", terms.turn.sum(axis=0), slopes(family.sigma, p[q * k :]))
        return float(terms.value.sum()), np.concatenate([(terms.slope.T @ W).ravel(), of_sigma])

    return function


def numbers_of(Sigma, family):
    """Return the numbers of which a covariance is; raise where there are none."""
    found = optimize.least_squares(
        lambda theta: (family.sigma(theta) - Sigma).ravel(),
        family.start,
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    )
    assert np.abs(found.fun).max() < 1e-7 * np.abs(Sigma).max(), family.name
    return found.x


def newton_step(low, high, family, Gamma, Sigma, W=None):
    """Return the log-likelihood at a place of a structure, the step from there to the top, and errors.

    The last two are those of Γ row by row and of all entries of Σ.
    """
    W = np.ones((len(low), 1)) if W is None else W
    function = likelihood(low, high, W, family)
    theta = numbers_of(Sigma, family)
    at = np.concatenate([np.ravel(Gamma), theta])
    H = numerical_hessian(lambda p: function(p)[1], at, 0.1 * np.eye(at.size)) / 0.01
    spread = np.linalg.inv(H)
    assert np.linalg.eigvalsh(H)[0] > 0.0
    value, slope = function(at)
    into = np.zeros((np.size(Gamma) + Sigma.size, at.size))
    into[: np.size(Gamma), : np.size(Gamma)] = np.eye(np.size(Gamma))
    into[np.size(Gamma) :, np.size(Gamma) :] = slopes(family.sigma, theta).reshape(theta.size, -1).T
    errors = np.sqrt(np.maximum(np.diag(into @ spread @ into.T), 0.0))
    return value, into @ spread @ slope, errors


def maximise(low, high, family):
    """Return means, Σ and the log-likelihood at the top, from a cold start."""
    function = likelihood(low, high, np.ones((len(low), 1)), family)
    at, value, _ = climb(function, np.concatenate([np.zeros(4), family.start]))
    return at[:4], family.sigma(at[4:]), value
