"""Groups of few rows: how often tests reject where groups do not differ, and where one does."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ncfdtr, ndtri
from scipy.stats import f as f_law

import halfseen as hs
from benchmarks.hard_running import many
from benchmarks.registry import Row, task
from halfseen.missingness.base import Missingness

Floats = NDArray[np.float64]

GROUPS, ROWS, SHARE, CORRELATION = 5, 25, 0.3, 0.5
LIMIT = float(ndtri(SHARE))
# A shift of the last group, in standard deviations.
SHIFT = 0.5
# Of tests at 5 %. Of 2000 tables a share of 0.05 is known to 0.005, of 1000 to 0.007.
LEVEL, TARGET, SHIFTED = 0.05, (0.04, 0.06), 500
# Columns, whether limits differ by row, and tables of each.
DESIGNS = ((1, False, 2000), (3, False, 1000), (3, True, 1000))
# Rows of a group from which is read what the holes took.
MANY = 8000


def _rule(by_row: bool, n: int) -> Missingness:
    """One limit, or limits of three laboratories: 15, 30 and 45 % below."""
    if not by_row:
        return hs.DetectionLimits(lower=LIMIT)
    limits = ndtri(np.array([0.15, 0.3, 0.45]))[np.arange(n) % 3]
    return hs.DetectionLimits(lower=limits[:, None] * np.ones(3))


def _complete(d: int, rows: int, shift: float, seed: int) -> tuple[Floats, NDArray[np.intp]]:
    codes = np.repeat(np.arange(GROUPS), rows)
    R = np.full((d, d), CORRELATION) + (1.0 - CORRELATION) * np.eye(d)
    Y = np.random.default_rng([seed, d]).multivariate_normal(np.zeros(d), R, codes.size)
    Y[codes == GROUPS - 1] += shift
    return Y, codes


def _hidden(Y: Floats, by_row: bool) -> tuple[Floats, Missingness]:
    rule = _rule(by_row, len(Y))
    return np.where(rule.seen(Y), Y, np.nan), rule


def _p_values(d: int, by_row: bool, shift: float, seed: int) -> list[float]:
    """Return p-values of all tests of one table, the last of the clearest of all differences."""
    Y, codes = _complete(d, ROWS, shift, seed)
    X, rule = _hidden(Y, by_row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        fit = hs.fit(X, rule, by=codes, random_state=seed, n_jobs=1)
        tests = fit.tests()
    plain = [test.p_chi_square for test in tests]
    adjusted = float(np.nanmin(fit.differences().p_value))
    return [*(test.p_value for test in tests), adjusted, *plain, _complete_p(Y, codes)]


def _complete_p(Y: Floats, codes: NDArray[np.intp]) -> float:
    """Return the p-value of Wilks' test of the complete table, by Rao's F."""
    from halfseen.solvers.groups.tests import rao

    n, d = Y.shape
    means = np.array([Y[codes == g].mean(axis=0) for g in range(GROUPS)])
    within, whole = Y - means[codes], Y - Y.mean(axis=0)
    ratio = np.linalg.slogdet(whole.T @ whole)[1] - np.linalg.slogdet(within.T @ within)[1]
    p = rao(n * ratio, n, d, GROUPS)
    assert p is not None
    return p


@task
def group_tests(quick: bool) -> Iterator[Row]:
    """Count how often tests of groups at 5 % reject where groups do not differ."""
    names = ("equal means", "equal covariances", "both", "all differences, family-wise")
    for d, by_row, many_tables in DESIGNS:
        tables = 20 if quick else many_tables
        p = np.array(many(partial(_p_values, d, by_row, 0.0), range(tables)))
        slack = 4.0 * (LEVEL * (1.0 - LEVEL) / tables) ** 0.5 if quick else 0.0
        where = "limits by row, " if by_row else ""
        for k, name in enumerate(names):
            share = float((p[:, k] < LEVEL).mean())
            plain = f" (chi-square {(p[:, k + 4] < LEVEL).mean():.3f})" if k < 3 else ""
            yield Row(
                f"{GROUPS} groups of {ROWS} rows, 30% hidden, {where}d = {d}, {tables} tables: tests of "
                f"{name} at 5 % that reject",
                f"{share:.3f}{plain}",
                f"{TARGET[0]:.2f} to {TARGET[1]:.2f}",
                bool(TARGET[0] - slack <= share <= TARGET[1] + slack),
            )


@task
def group_power(quick: bool) -> Iterator[Row]:
    """Count how often the test of equal means finds a group that is half a standard deviation off."""
    tables = 20 if quick else SHIFTED
    for d in (1, 3):
        p = np.array(many(partial(_p_values, d, False, SHIFT), range(tables, 2 * tables)))
        power, complete = float((p[:, 0] < LEVEL).mean()), float((p[:, -1] < LEVEL).mean())
        whole, kept = _noncentrality(d, False), _noncentrality(d, True)
        took = _power(kept, d) / _power(whole, d)
        yield Row(
            f"{GROUPS} groups of {ROWS} rows, one shifted by {SHIFT} standard deviations, 30% hidden, "
            f"d = {d}, {tables} tables: power of the test of equal means at 5 %",
            f"{power:.3f} (complete {complete:.3f}; the holes leave {took:.3f} of it)",
            f">= {0.95 * took * complete:.3f}",
            bool(power >= 0.95 * took * complete - (0.2 if quick else 0.0)),
        )


def _noncentrality(d: int, hidden: bool) -> float:
    """Return λ = Δᵀ V⁻¹ Δ of ``ROWS`` rows, with V from groups of very many."""
    Y, codes = _complete(d, MANY, SHIFT, 0)
    X, rule = _hidden(Y, False) if hidden else (Y, None)
    family = hs.fit(X, rule, by=codes, random_state=0)._groups.family
    V = family.covariance * MANY / ROWS
    contrast = np.kron(np.eye(GROUPS - 1, GROUPS) - np.eye(GROUPS - 1, GROUPS, 1), np.eye(d))
    delta = contrast @ np.repeat(np.arange(GROUPS) == GROUPS - 1, d) * SHIFT
    return float(delta @ np.linalg.solve(contrast @ V @ contrast.T, delta))


def _power(noncentrality: float, d: int) -> float:
    """Return the power of an F test with the degrees of freedom of complete rows."""
    first, second = d * (GROUPS - 1), GROUPS * ROWS - GROUPS - d + 1
    critical = float(f_law.ppf(1.0 - LEVEL, first, second))
    return 1.0 - float(ncfdtr(first, second, noncentrality, critical))
