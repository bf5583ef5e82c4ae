"""What people do by hand: leave hidden cells out, or put something in for them. And the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from benchmarks.comparison.programs.harness import Answer, Floats, Table, run

# Columns are logarithms: half of a limit is the limit less log 2.
PARTS = {"half the limit": np.log(2.0), "limit / √2": 0.5 * np.log(2.0)}


def substituted(table: Table, less: float) -> Floats:
    """Put a part of the limit in for what lies below it, and the limit for what lies above."""
    lower, upper = table.array("lower"), table.array("upper")
    below, above = np.isneginf(lower), np.isposinf(upper)
    return np.where(below, upper - less, np.where(above, lower, table.values))


def available_cases(X: Floats) -> Answer:
    """Return means of what is seen in each column, and covariances of the rows that show both."""
    seen = ~np.isnan(X)
    M, X0 = seen.astype(float), np.where(seen, X, 0.0)
    count = M.T @ M
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.diag(X0.T @ M) / np.diag(count)
        first = (X0.T @ M) / count
        covariance = ((X0.T @ X0) / count - first * first.T) * count / (count - 1.0)
    return Answer(mean, covariance)


def with_intervals(answer: Answer, count: Floats, level: float) -> Answer:
    """Add the textbook's intervals for the means, which take the rows for complete."""
    reach = -ndtri(0.5 - 0.5 * level) * np.sqrt(np.diag(answer.covariance) / count)
    return Answer(answer.mean, answer.covariance, (answer.mean - reach, answer.mean + reach))


def estimate(table: Table, options: dict[str, Any]) -> Answer:
    """Return mean and covariance of what the option ``takes`` in."""
    takes = options["takes"]
    if takes == "complete data":
        X = table.array("complete")
    elif takes == "available cases":
        X = table.values
    else:
        X = substituted(table, PARTS[takes])
    return with_intervals(available_cases(X), (~np.isnan(X)).sum(axis=0), table.task["level"])


if __name__ == "__main__":
    run(estimate, "numpy")
