"""What a regression takes, in sweeps over its rows and in regressions of complete outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import halfseen as hs
from benchmarks.comparison.pages import thousands
from benchmarks.registry import Row, task
from benchmarks.regression_tables import RegressionTable, heckman, many_censored
from halfseen.parallel import single_blas_thread
from halfseen.solvers.full_information.expectation import Sampling
from halfseen.solvers.full_information.rows import HeldRows

Floats = NDArray[np.float64]

# A fit may take so many times as long as one sweep.
SWEEPS = 3.0
OUTCOMES, COVARIATES = 5, 20


class Sweep(NamedTuple):
    """Rows, and the last question that the climb asked them."""

    rows: HeldRows
    mean: Floats
    covariance: Floats
    sampling: Sampling


@task
def regression_scale(quick: bool) -> Iterator[Row]:
    """Divide times of fits by those of a sweep over the rows, and of least squares without holes."""
    first = 5_000 if quick else 100_000
    cases = (
        (many_censored(first, OUTCOMES, COVARIATES, 0), SWEEPS),
        (many_censored(1_000, 5, 3, 0), None),
        (many_censored(2_000 if quick else 10_000, 20, 3, 0), None),
        (heckman(750, 0), None),
    )
    for table, target in cases:
        yield from measured(table, target, 1 if quick or target else 3)


def measured(table: RegressionTable, target: float | None, repeats: int) -> Iterator[Row]:
    """Time a fit, one of its sweeps, and least squares of complete outcomes, in turn."""
    warm_up(table)
    fits, sweeps, plain = [], [], []
    asked, last = [0], []
    for _ in range(repeats):
        with watched(asked, last):
            fits.append(processor(table.fit, 1)[0])
        sweeps.append(processor(lambda: ask(last[0]), 3)[0])
        plain.append(processor(lambda: least_squares(last[0].rows, table), 3)[0])
    n, q, k = last[0].rows.overview.shape[0], *shape(table)
    where = f"n = {thousands(n)}, {q} outcomes, {k} regressors"
    fit, sweep, complete = (min(one) for one in (fits, sweeps, plain))
    times = fit / sweep
    yield Row(
        f"{where}: rows of a fit in a processor second", f"{n / fit:,.0f}".replace(",", " "), ""
    )
    yield Row(
        f"{where}: fit / one sweep over its rows",
        f"{times:.1f} ({asked[0]} sweeps, some with more points; {fit:.2f} s)",
        f"at most {target:g}" if target else "",
        times <= target if target else None,
    )
    yield Row(f"{where}: fit / least squares of complete outcomes", f"{fit / complete:.0f}", "")


def warm_up(table: RegressionTable) -> None:
    """Compile what the fit needs, with a few rows of the same kind."""
    if isinstance(table.data, dict):
        table.fit()
    else:
        few = slice(0, 300)
        rule = hs.DetectionLimits(lower=np.asarray(table.rules.lower)[few])
        hs.regress(table.model[few], table.data[few], rule, random_state=0, n_jobs=1)


def shape(table: RegressionTable) -> tuple[int, int]:
    """Outcomes and regressors."""
    return table.weights.shape[1], table.weights.shape[0]


@contextmanager
def watched(asked: list[int], last: list[Sweep]) -> Iterator[None]:
    """Count the sweeps of a fit, and remember the last of its first number of points."""
    asked[0] = 0
    expect = HeldRows.expect

    def counted(
        self: HeldRows, mean: Floats, covariance: Floats, sampling: Sampling
    ) -> tuple[Any, float]:
        asked[0] += 1
        # Some of the rows are asked before all of them.
        size = self.overview.shape[0], -sampling.points
        if not last or size >= (last[0].rows.overview.shape[0], -last[0].sampling.points):
            last[:] = [Sweep(self, mean, covariance, sampling)]
        return expect(self, mean, covariance, sampling)

    with mock.patch.object(HeldRows, "expect", counted):
        yield


def ask(sweep: Sweep) -> None:
    """Sweep over the rows once."""
    rows, *rest = sweep
    with single_blas_thread():
        rows.expect(*rest)


def least_squares(rows: HeldRows, table: RegressionTable) -> Floats:
    """Regress outcomes of which all is seen: a factor of the regressors, and residuals."""
    Z = rows.problem.Y
    q = shape(table)[0]
    Y, X = Z[:, :q], np.column_stack([np.ones(len(Z)), Z[:, q:]])
    Y = np.nan_to_num(Y)
    with single_blas_thread():
        B = np.linalg.solve(X.T @ X, X.T @ Y)
        E = Y - X @ B
        return np.asarray(E.T @ E)


def processor(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Return the least processor time of some work, and what came of it."""
    found, out = [], None
    for _ in range(times):
        start = time.process_time()
        out = work()
        found.append(time.process_time() - start)
    return min(found), out
