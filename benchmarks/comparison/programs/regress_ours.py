"""``hs.regress`` as it is by default, with its intervals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import halfseen as hs
from benchmarks.comparison.programs.harness import Answer, Table, run


def fitted(table: Table) -> hs.RegressionFit:
    """Fit a table of any of the kinds."""
    X, values, kind = table.array("regressors"), table.values, table.task["kind"]
    options: dict[str, Any] = {"random_state": table.seed, "n_jobs": 1}
    if kind == "tobit":
        return hs.regress(values, X, hs.DetectionLimits(lower=table.task["limits"]), **options)
    if kind == "ordered":
        return hs.regress({"y": values[:, 0]}, X, kinds={"y": "ordered"}, **options)
    data = {
        "a": X[:, 0],
        "b": X[:, 1],
        "c": X[:, 2],
        "wage": values[:, 0],
        "works": values[:, 1] > 0.0,
    }
    equations = {"wage": "a + b", "works": "a + b + c"}
    return hs.regress(equations, data, hs.Selection("wage", by="works"), **options)


def estimate(table: Table, options: dict[str, Any]) -> Answer:
    """Fit, with intervals of coefficients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = fitted(table)
        found = fit.confidence_interval(table.task["level"]).coefficients
    weights = np.asarray(fit.weights)[fit.free]
    ends = [np.asarray(end).T[fit.free] for end in found]
    residual = np.asarray(fit.residual)
    if table.task["kind"] == "ordered":
        # Without an intercept, cut points are as far below.
        cuts = fit.cut_points["y"] - weights[0]
        unknown = np.full(cuts.shape, np.nan)
        weights = np.concatenate([weights[1:], cuts])
        ends = [np.concatenate([end[1:], unknown]) for end in ends]
    return Answer(weights, residual, (ends[0], ends[1]))


if __name__ == "__main__":
    run(estimate, "numba", halfseen=hs.__version__)
