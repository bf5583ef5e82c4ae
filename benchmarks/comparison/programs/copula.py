"""gcimpute: a Gaussian copula in which each column is truncated at its limits.

Its margins are ranks, so it has a correlation of the latent normals, and neither means nor variances.
Those are taken from each column by itself: the likeliest normal, given what is seen and how many cells
are hidden on which side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gcimpute.gaussian_copula import GaussianCopula
from scipy.stats import CensoredData, norm

from benchmarks.comparison.programs.harness import Answer, Floats, Table, run


def estimate(table: Table, options: dict[str, Any]) -> Answer:
    """Put the limit into each hidden cell, as the package expects it, and fit the copula."""
    lower, upper = table.array("lower"), table.array("upper")
    below, above = np.isneginf(lower), np.isposinf(upper)
    filled = np.where(below, upper, lower)
    columns = list(range(filled.shape[1]))
    model = GaussianCopula(random_state=table.seed, **options)
    model.fit(filled, **{_kind(table.task): columns})
    margins = np.array([_margin(filled[:, j], below[:, j], above[:, j]) for j in columns])
    mean, scale = margins.T
    return Answer(mean, model.get_params()["copula_corr"] * np.outer(scale, scale))


def _kind(task: dict[str, Any]) -> str:
    """Return the package's word for where columns are cut."""
    if task["lower_limits"] is None:
        return "upper_truncated"
    return "lower_truncated" if task["upper_limits"] is None else "twosided_truncated"


def _margin(cells: Floats, below: Any, above: Any) -> tuple[float, float]:
    """Return mean and standard deviation of the likeliest normal for one column."""
    seen = ~(below | above)
    data = CensoredData(uncensored=cells[seen], left=cells[below], right=cells[above])
    return norm.fit(data)


if __name__ == "__main__":
    run(estimate, "gcimpute")
