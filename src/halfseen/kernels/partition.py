"""Sums of weighted log-partition functions, with gradient and Hessian.

Every exact solver minimises

    f(θ) = −θ·t + Σ_m w_m log Z_m(θ),   Z_m(θ) = ∫_{S_m} exp(νᵀz − ½ zᵀTz) dz,

in natural parameters: for truncated data the one term is the seen set, with the number of seen
values as its weight; for censored data there is the whole line, and the hidden set with a negative
weight. The gradient of log Z is the mean of the sufficient statistics on S, its Hessian their
covariance.

A problem b has the terms ``start[b] : start[b + 1]``; a term has intervals (or rectangles) and, for
sets that are only known as functions, quadrature nodes with weights.
"""

import math
from typing import NamedTuple

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.bivariate import rectangle_moments
from halfseen.kernels.univariate import HALF_LOG_TWO_PI, moments


class LineTerms(NamedTuple):
    """Terms of a batch of 1-D problems, as ragged arrays."""

    start: np.ndarray
    weight: np.ndarray
    piece_start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    node_start: np.ndarray
    node: np.ndarray
    node_weight: np.ndarray


class PlaneTerms(NamedTuple):
    """Terms of a batch of 2-D problems, as ragged arrays; a piece is a rectangle."""

    start: np.ndarray
    weight: np.ndarray
    piece_start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    x_start: np.ndarray
    x: np.ndarray
    x_weight: np.ndarray
    y_start: np.ndarray
    y: np.ndarray
    y_weight: np.ndarray


@njit(**INNER)
def _blend(total, log_total, part, log_part):
    # Mixture of two sets of moments, as flat arrays, with masses exp(log_total) and exp(log_part), in
    # place. Loops: assigning whole arrays brings in the text of a broadcasting error, which takes two
    # seconds to compile.
    if log_part == -math.inf:
        return log_total
    if log_total == -math.inf:
        for k in range(total.size):
            total[k] = part[k]
        return log_part
    high = max(log_total, log_part)
    a, b = math.exp(log_total - high), math.exp(log_part - high)
    for k in range(total.size):
        total[k] = (a * total[k] + b * part[k]) / (a + b)
    return high + math.log(a + b)


@njit(**INNER)
def _node_moments(nu, tau, x, weights, out):
    high = -math.inf
    for k in range(x.size):
        high = max(high, nu * x[k] - 0.5 * tau * x[k] * x[k])
    out[:] = 0.0
    for k in range(x.size):
        power = weights[k] * math.exp(nu * x[k] - 0.5 * tau * x[k] * x[k] - high)
        for a in range(5):
            out[a] += power
            power *= x[k]
    total = out[0]
    if not total > 0.0:
        return -math.inf
    out /= total
    return high + math.log(total)


@njit(**KERNEL)
def line_partition(theta, terms, problems):
    """Σ w log Z, its gradient and Hessian in θ = (ν, τ), for some of a batch of 1-D problems."""
    batch = theta.shape[0]
    f, g, H = np.zeros(batch), np.zeros((batch, 2)), np.zeros((batch, 2, 2))
    m, part = np.empty(5), np.empty(5)
    for b in range(batch):
        nu, tau = theta[b, 0], theta[b, 1]
        if not tau > 0.0:
            f[b] = math.inf
            continue
        mu, sigma = nu / tau, 1.0 / math.sqrt(tau)
        base = 0.5 * nu * mu + HALF_LOG_TWO_PI + math.log(sigma)
        for t in range(terms.start[problems[b]], terms.start[problems[b] + 1]):
            log_z = -math.inf
            for k in range(terms.piece_start[t], terms.piece_start[t + 1]):
                log_part = base + moments(mu, sigma, terms.lower[k], terms.upper[k], part)
                log_z = _blend(m, log_z, part, log_part)
            nodes = slice(terms.node_start[t], terms.node_start[t + 1])
            if nodes.stop > nodes.start:
                log_part = _node_moments(nu, tau, terms.node[nodes], terms.node_weight[nodes], part)
                log_z = _blend(m, log_z, part, log_part)
            w = terms.weight[t]
            f[b] += w * log_z
            g[b, 0] += w * m[1]
            g[b, 1] -= 0.5 * w * m[2]
            H[b, 0, 0] += w * (m[2] - m[1] * m[1])
            H[b, 0, 1] -= 0.5 * w * (m[3] - m[1] * m[2])
            H[b, 1, 1] += 0.25 * w * (m[4] - m[2] * m[2])
        H[b, 1, 0] = H[b, 0, 1]
    return f, g, H


@njit(**INNER)
def _tensor_moments(theta, x, wx, y, wy, out):
    # Nodes of both coordinates, as a product rule: for sets known only as functions.
    high = -math.inf
    for k in range(x.size):
        for j in range(y.size):
            high = max(high, _exponent(theta, x[k], y[j]))
    out[:, :] = 0.0
    row = np.empty(5)
    for k in range(x.size):
        row[:] = 0.0
        for j in range(y.size):
            power = wy[j] * math.exp(_exponent(theta, x[k], y[j]) - high)
            for b in range(5):
                row[b] += power
                power *= y[j]
        power = wx[k]
        for a in range(5):
            for b in range(5 - a):
                out[a, b] += power * row[b]
            power *= x[k]
    total = out[0, 0]
    if not total > 0.0:
        return -math.inf
    out /= total
    return high + math.log(total)


@njit(**INNER)
def _exponent(theta, x, y):
    return (
        theta[0] * x + theta[1] * y - 0.5 * (theta[2] * x * x + theta[4] * y * y) - theta[3] * x * y
    )


# Sufficient statistics of a pair, (x, y, −x²/2, −xy, −y²/2): exponents and factors.
_POWER_X = np.array([1, 0, 2, 1, 0])
_POWER_Y = np.array([0, 1, 0, 1, 2])
_FACTOR = np.array([1.0, 1.0, -0.5, -1.0, -0.5])


@njit(**KERNEL)
def plane_partition(theta, terms, problems):
    """Σ w log Z, its gradient and Hessian in θ = (ν₁, ν₂, T₁₁, T₁₂, T₂₂), for some 2-D problems."""
    batch = theta.shape[0]
    f, g, H = np.zeros(batch), np.zeros((batch, 5)), np.zeros((batch, 5, 5))
    m, part = np.zeros((5, 5)), np.zeros((5, 5))
    flat_m, flat_part = m.ravel(), part.ravel()
    mu, sigma = np.empty(2), np.empty(2)
    for b in range(batch):
        t11, t12, t22 = theta[b, 2], theta[b, 3], theta[b, 4]
        det = t11 * t22 - t12 * t12
        if not (t11 > 0.0 and det > 0.0):
            f[b] = math.inf
            continue
        # Σ = T⁻¹, μ = Σν
        mu[0] = (t22 * theta[b, 0] - t12 * theta[b, 1]) / det
        mu[1] = (t11 * theta[b, 1] - t12 * theta[b, 0]) / det
        sigma[0], sigma[1] = math.sqrt(t22 / det), math.sqrt(t11 / det)
        rho = -t12 / math.sqrt(t11 * t22)
        base = (
            0.5 * (theta[b, 0] * mu[0] + theta[b, 1] * mu[1])
            + 2.0 * HALF_LOG_TWO_PI
            - 0.5 * math.log(det)
        )
        for t in range(terms.start[problems[b]], terms.start[problems[b] + 1]):
            log_z = -math.inf
            for k in range(terms.piece_start[t], terms.piece_start[t + 1]):
                log_part = base + rectangle_moments(
                    mu, sigma, rho, terms.lower[k], terms.upper[k], part
                )
                log_z = _blend(flat_m, log_z, flat_part, log_part)
            xs = slice(terms.x_start[t], terms.x_start[t + 1])
            ys = slice(terms.y_start[t], terms.y_start[t + 1])
            if xs.stop > xs.start:
                log_part = _tensor_moments(
                    theta[b], terms.x[xs], terms.x_weight[xs], terms.y[ys], terms.y_weight[ys], part
                )
                log_z = _blend(flat_m, log_z, flat_part, log_part)
            _add_plane_term(terms.weight[t], log_z, m, b, f, g, H)
    return f, g, H


@njit(**INNER)
def _add_plane_term(w, log_z, m, b, f, g, H):
    f[b] += w * log_z
    for i in range(5):
        mean = m[_POWER_X[i], _POWER_Y[i]]
        g[b, i] += w * _FACTOR[i] * mean
        for j in range(5):
            both = m[_POWER_X[i] + _POWER_X[j], _POWER_Y[i] + _POWER_Y[j]]
            product = mean * m[_POWER_X[j], _POWER_Y[j]]
            H[b, i, j] += w * _FACTOR[i] * _FACTOR[j] * (both - product)
