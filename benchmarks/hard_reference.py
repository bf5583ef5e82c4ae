"""A slow likelihood and a plain EM for tables with limits from above, with NumPy and SciPy alone.

What is missing at random is integrated out in closed form. Cells below their limits are drawn one after
the other, each below its limit given those before it, along evenly spread points; the product of the
masses on the way is the weight of a path (Geweke, Hajivassiliou and Keane). Likelihoods are averages of
weights, moments are weighted averages. Nothing of halfseen is used: it is what halfseen is judged by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp
from scipy.stats import qmc

from benchmarks.hard_tables import HardTable

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Parameters = tuple[Floats, Floats]

# Numbers that the paths of a piece of the table may take at once: some tens of megabytes.
PIECE = 2**21
# Where a correlation matrix has this condition number, the likelihood has no maximum on that side: it
# grows, slowly, without end.
SINGULAR = 1e8
LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Integral:
    """Log-likelihoods of rows, one for each independently shifted copy of the points."""

    # Of shape (n, copies).
    logs: Floats

    @property
    def weights(self) -> Floats:
        """Masses by copy, relative to their average."""
        w = np.exp(self.logs - self.logs.max(axis=1, keepdims=True))
        return w / w.mean(axis=1, keepdims=True)

    @property
    def rows(self) -> Floats:
        """Log-likelihood of each row."""
        high = self.logs.max(axis=1)
        average = np.exp(self.logs - high[:, None]).mean(axis=1)
        # The logarithm of an average is low by half its relative variance.
        return high + np.log(average) + 0.5 * _variance(self.weights)

    @property
    def value(self) -> float:
        """Log-likelihood of the table."""
        return float(self.rows.sum())

    def less(self, other: Integral) -> tuple[float, float]:
        """Difference to another integral with the same points, and its Monte-Carlo standard error."""
        error = math.sqrt(_variance(self.weights - other.weights).sum())
        return self.value - other.value, error


def _variance(copies: Floats) -> Floats:
    """Variance of each row's average over the copies."""
    return copies.var(axis=1, ddof=1) / copies.shape[1]


class _Rows(NamedTuple):
    """Rows with as many seen and as many confined cells each: their places in the table, by columns."""

    rows: Indices
    seen: Indices
    confined: Indices
    blank: Indices


class _Paths(NamedTuple):
    """Draws of the confined cells of some rows, and the logarithms of their weights."""

    group: _Rows
    centre: Floats
    draws: Floats
    logs: Floats


class Reference:
    """Likelihood and EM steps of a table, with the same points at all parameters.

    Parameters
    ----------
    table : HardTable
        Hidden cells have no lower end.
    points : int
        Points in a copy; a power of two.
    copies : int
        Independently shifted copies, which differ from row to row.
    seed : int
    """

    def __init__(self, table: HardTable, points: int = 256, copies: int = 8, seed: int = 0) -> None:
        self.values = np.where(table.lower == table.upper, table.lower, np.nan)
        self.limits = table.upper
        if np.isfinite(table.lower[np.isnan(self.values)]).any():
            raise ValueError("a hidden cell must have no lower end")
        n, d = self.values.shape
        rng = np.random.default_rng([seed, 9])
        self.points = qmc.Sobol(d, seed=rng).random(points)
        self.shifts = rng.random((n, copies, d))
        self.groups = list(self._in_order(table.mean, table.covariance))

    def _in_order(self, mean: Floats, covariance: Floats) -> Iterator[_Rows]:
        """Group rows; the cells that are least likely to be below their limits come first.

        The order is settled once, so that likelihoods at different parameters have the same errors.
        """
        seen = ~np.isnan(self.values)
        blank = ~seen & np.isinf(self.limits)
        counts = np.stack([seen.sum(axis=1), blank.sum(axis=1)], axis=1)
        for pair in np.unique(counts, axis=0):
            rows = np.flatnonzero((counts == pair).all(axis=1))
            parts = (_places(part[rows]) for part in (seen, ~seen & ~blank, blank))
            group = _Rows(rows, *parts)
            m, V, _ = self._given_seen(group, mean, covariance)
            deviation = np.sqrt(np.diagonal(V, axis1=1, axis2=2))
            margin = (self.limits[rows[:, None], group.confined] - m) / deviation
            order = np.argsort(margin, axis=1)
            yield group._replace(confined=np.take_along_axis(group.confined, order, axis=1))

    def _given_seen(self, group: _Rows, mean: Floats, S: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and covariance of the confined cells given the seen ones, and the seen ones' density."""
        o, c = group.seen, group.confined
        gap = self.values[group.rows[:, None], o] - mean[o]
        K = np.linalg.solve(_block(S, o, o), _block(S, o, c))
        m = mean[c] + np.einsum("rij,ri->rj", K, gap)
        V = _block(S, c, c) - np.swapaxes(_block(S, o, c), 1, 2) @ K
        whitened = np.linalg.solve(np.linalg.cholesky(_block(S, o, o)), gap[..., None])[..., 0]
        log_det = np.linalg.slogdet(_block(S, o, o))[1]
        density = -0.5 * ((whitened**2).sum(axis=1) + log_det + o.shape[1] * LOG_TWO_PI)
        return m, V, density

    def _paths(self, mean: Floats, covariance: Floats) -> Iterator[_Paths]:
        """Draw confined cells; weights hold the density of what is seen too."""
        copies, count = self.shifts.shape[1], len(self.points)
        for whole in self.groups:
            h = whole.confined.shape[1]
            step = max(1, PIECE // (copies * count * max(1, h)))
            for start in range(0, len(whole.rows), step):
                group = _Rows(*(part[start : start + step] for part in whole))
                m, V, density = self._given_seen(group, mean, covariance)
                u = (self.points[:, :h] + self.shifts[group.rows, :, None, :h]) % 1.0
                limit = self.limits[group.rows[:, None], group.confined]
                x, logs = _below(m, np.linalg.cholesky(V), limit, u)
                yield _Paths(group, m, x, logs + density[:, None, None])

    def integral(self, mean: Floats, covariance: Floats) -> Integral:
        """Return the log-likelihood of what is seen of each row."""
        logs = np.empty(self.shifts.shape[:2])
        for paths in self._paths(mean, covariance):
            logs[paths.group.rows] = _log_mean(paths.logs)
        return Integral(logs)

    def em_step(self, mean: Floats, covariance: Floats) -> tuple[Parameters, float]:
        """Return the next parameters, and the log-likelihood at the given ones."""
        n, d = self.values.shape
        total, logs = np.zeros((d, d)), np.empty(self.shifts.shape[:2])
        filled = np.empty((n, d))
        for paths in self._paths(mean, covariance):
            logs[paths.group.rows] = _log_mean(paths.logs)
            filled[paths.group.rows], extra = self._moments(paths, mean, covariance)
            total += extra
        centre = filled.mean(axis=0)
        S = ((filled - centre).T @ (filled - centre) + total) / n
        return (centre, S), Integral(logs).value

    def _moments(self, paths: _Paths, mean: Floats, S: Floats) -> tuple[Floats, Floats]:
        """Means of all cells of some rows given what is known, and the sum of their covariances."""
        rows, o, c, a = paths.group
        r, d = len(rows), len(mean)
        w = np.exp(paths.logs - paths.logs.max(axis=(1, 2), keepdims=True))
        w /= w.sum(axis=(1, 2), keepdims=True)
        # Second moments about the mean that there would be without limits, which is nearby.
        x = (paths.draws - paths.centre[:, None, None]).reshape(r, w[0].size, -1)
        w = w.reshape(r, -1, 1)
        first = (w * x).sum(axis=1)
        C = np.swapaxes(w * x, 1, 2) @ x - first[:, :, None] * first[:, None, :]
        known = np.concatenate([o, c], axis=1)
        filled = np.empty((r, d))
        at = np.arange(r)[:, None]
        filled[at, o] = self.values[rows[:, None], o]
        filled[at, c] = paths.centre + first
        # Blank cells follow the known ones by regression, and inherit their uncertainty.
        B = np.linalg.solve(_block(S, known, known), _block(S, known, a))
        filled[at, a] = mean[a] + np.einsum("rka,rk->ra", B, filled[at, known] - mean[known])
        left = _block(S, a, a) - np.swapaxes(_block(S, known, a), 1, 2) @ B
        B = B[:, o.shape[1] :]
        CB = C @ B
        extra = np.zeros((r, d, d))
        at = at[..., None]
        extra[at, c[:, :, None], c[:, None, :]] = C
        extra[at, c[:, :, None], a[:, None, :]] = CB
        extra[at, a[:, :, None], c[:, None, :]] = np.swapaxes(CB, 1, 2)
        extra[at, a[:, :, None], a[:, None, :]] = left + np.swapaxes(B, 1, 2) @ CB
        return filled, extra.sum(axis=0)


def _places(mask: NDArray[np.bool_]) -> Indices:
    """Columns that are marked in each row; all rows have as many."""
    return np.nonzero(mask)[1].reshape(len(mask), -1)


def _block(S: Floats, i: Indices, j: Indices) -> Floats:
    return S[i[:, :, None], j[:, None, :]]


def _log_mean(logs: Floats) -> Floats:
    high = logs.max(axis=2, keepdims=True)
    return high[..., 0] + np.log(np.exp(logs - high).mean(axis=2))


def _below(m: Floats, L: Floats, limit: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Draw from N(m, LLᵀ) below limits, cell after cell; return draws and logarithms of weights."""
    e, logs = np.empty(u.shape), np.zeros(u.shape[:-1])
    for j in range(m.shape[1]):
        # x_j = m_j + Σ_k L_jk e_k <= limit_j bounds e_j, given the ones before.
        so_far = np.einsum("rcpk,rk->rcp", e[..., :j], L[:, j, :j])
        bound = ((limit - m)[:, j, None, None] - so_far) / L[:, j, j, None, None]
        mass = log_ndtr(bound)
        e[..., j] = ndtri_exp(mass + np.log(np.maximum(u[..., j], 2.0**-53)))
        logs += mass
    return m[:, None, None] + np.einsum("rcpk,rjk->rcpj", e, L), logs


def climb(
    reference: Reference, start: Parameters, tolerance: float = 1e-4, most: int = 1000
) -> Parameters:
    """Follow EM from a start until a cycle gains less than ``tolerance``, three times.

    A cycle is two steps and a leap along them (squared extrapolation, Varadhan and Roland 2008), which
    is taken back where the likelihood falls. Where EM ends does not change; how soon does. It stops too
    where the covariance becomes singular.
    """
    at, best, small = start, -math.inf, 0
    for _ in range(most):
        first, _ = reference.em_step(*at)
        second, level = reference.em_step(*first)
        theta = [_vector(*point) for point in (at, first, second)]
        r, v = theta[1] - theta[0], theta[2] - 2.0 * theta[1] + theta[0]
        length = max(1.0, math.sqrt((r @ r) / max(v @ v, 1e-300)))
        leap = _parameters(theta[0] + 2.0 * length * r + length**2 * v)
        at = second
        if np.isfinite(leap[1]).all() and not is_singular(leap[1]):
            after, there = reference.em_step(*leap)
            if there >= level:
                at, level = after, there
        small = small + 1 if level - best < tolerance else 0
        best = level
        if small == 3 or is_singular(at[1]):
            break
    return at


def is_singular(covariance: Floats) -> bool:
    """Whether a covariance is as good as singular, in whatever units."""
    deviation = np.sqrt(np.diag(covariance))
    return bool(np.linalg.cond(covariance / np.outer(deviation, deviation)) > SINGULAR)


def _vector(mean: Floats, covariance: Floats) -> Floats:
    """Return the mean and the Cholesky factor, with the logarithms of its diagonal: a free vector."""
    L = np.linalg.cholesky(covariance)
    np.fill_diagonal(L, np.log(np.diag(L)))
    return np.concatenate([mean, L[np.tril_indices(len(mean))]])


def _parameters(theta: Floats) -> Parameters:
    d = math.isqrt(2 * len(theta)) - 1
    L = np.zeros((d, d))
    L[np.tril_indices(d)] = theta[d:]
    # Far leaps are refused; here they are only to stay finite.
    np.fill_diagonal(L, np.exp(np.clip(np.diag(L), -50.0, 50.0)))
    return theta[:d], L @ L.T
