"""The methods of halfseen, each as ``hs.fit`` has it by default, with its standard errors."""

from __future__ import annotations

import warnings
from typing import Any

import halfseen as hs
from benchmarks.comparison.problems import SETS
from benchmarks.comparison.programs.harness import Answer, Table, run


def given(table: Table, method: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return the data, the rule, and what else is known in a task of this kind."""
    task, kind = table.task, table.task["kind"]
    if kind == "linear threshold":
        known = {"covariance": task["covariance"]} if method == "missing_descent" else {}
        return table.values, hs.LinearThreshold(task["V"], task["b"]), known
    if kind == "winner":
        return table.values, hs.SelfSelection(), {"covariance": "diagonal"}
    if kind == "truncated":
        return table.values, hs.RowTruncation(SETS[task["set"]]), {}
    if method == "auto":
        return hs.IntervalData(table.array("lower"), table.array("upper")), None, {}
    limits = hs.DetectionLimits(lower=task["lower_limits"], upper=task["upper_limits"])
    return table.values, limits, {}


def estimate(table: Table, options: dict[str, Any]) -> Answer:
    """Fit, with intervals where the method has standard errors."""
    method = options["method"]
    data, rule, known = given(table, method)
    known |= {name: value for name, value in options.items() if name != "method"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = hs.fit(data, rule, method, random_state=table.seed, n_jobs=1, **known)
    try:
        inside = fit.confidence_interval(table.task["level"])
    except hs.InputError:  # the method has no standard errors
        return Answer(fit.mean, fit.covariance, chosen=fit.method)
    return Answer(
        fit.mean, fit.covariance, tuple(inside.mean), tuple(inside.covariance), fit.method
    )


if __name__ == "__main__":
    run(estimate, "numba", halfseen=hs.__version__)
