"""``pairwise`` with a hundred columns: how near it comes to the Cramér–Rao limit, and how fast."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import halfseen as hs
from benchmarks.comparison.judge import measures
from benchmarks.comparison.problems import Size, task_of
from benchmarks.limits import cramer_rao
from benchmarks.registry import Row, task
from benchmarks.speed import bare_products, clock

COLUMNS, ROWS, QUICK_ROWS = 100, 200_000, 50_000
# How far above the limit its entries may be, and how far above the products its time.
NEAR, TIMES = 1.25, 2.0


@task
def pairwise_at_100(quick: bool) -> Iterator[Row]:
    n, tables = (QUICK_ROWS, 2) if quick else (ROWS, 8)
    problem = task_of("left", Size(COLUMNS, n, tables))
    rule = hs.DetectionLimits(lower=problem.known["lower_limits"])
    answers, times = [], []
    for seed in range(tables):
        X = hs.simulate(problem.truth, rule, n, seed)
        if not seed:
            hs.fit(X[:2000], rule, "pairwise")
        M = (~np.isnan(X)).astype(float)
        X0 = np.where(M > 0, X, 0.0)
        # Turn by turn, so that a noisy neighbour disturbs both.
        X2 = X0**2
        for _ in range(2):
            products = clock(bare_products, M, X0, X2)
            start = time.perf_counter()
            fit = hs.fit(X, rule, "pairwise")
            times.append([products, time.perf_counter() - start])
        answers.append({"mean": fit.mean, "covariance": fit.covariance})
    found = measures(answers, problem.truth, cramer_rao(problem))
    where = f"pairwise, d = {COLUMNS}, n = {n}, 30 % hidden, {tables} tables"
    yield Row(
        f"{where}: errors of variances and covariances / Cramér–Rao limit, each over its own",
        f"{found['entries']:.3f}",
        f"at most {NEAR}",
        found["entries"] <= NEAR,
    )
    for name, distance in (("mean", "Mahalanobis"), ("covariance", "relative Frobenius")):
        yield Row(
            f"{where}: {distance} error of the {name} / Cramér–Rao limit", f"{found[name]:.3f}", ""
        )
    bare, fits = np.median(times, axis=0)
    ratio = float(np.median([fit / products for products, fit in times]))
    yield Row(
        f"{where}: whole fit / four bare masked products ({fits:.2f} s against {bare:.2f} s)",
        f"{ratio:.2f}",
        # A quarter of the rows, and what is done once counts four times as much.
        "" if quick else f"at most {TIMES:g}",
        None if quick else ratio <= TIMES,
    )
