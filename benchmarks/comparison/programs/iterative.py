"""scikit-learn's IterativeImputer: regress columns on each other, and draw hidden cells from that.

It takes what is hidden as missing at random. All it can be told of limits is one bound for a column,
which draws do not pass: the tightest that holds for all hidden cells of the column. There is none where
cells are hidden on both sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from benchmarks.comparison.programs.harness import Answer, Table, run

# The user guide asks for several draws and names no number; five is what mice, its model, takes.
IMPUTATIONS = 5


def estimate(table: Table, options: dict[str, Any]) -> Answer:
    """Average mean and covariance over several imputations."""
    values, lower, upper = (table.array(name) for name in ("values", "lower", "upper"))
    # NaN stands for no bound from a cell; a column with nothing hidden has none at all.
    lower, upper = (np.where(np.isnan(values), ends, np.nan) for ends in (lower, upper))
    bounds = {
        "min_value": np.nan_to_num(np.fmin.reduce(lower), nan=-np.inf, neginf=-np.inf),
        "max_value": np.nan_to_num(np.fmax.reduce(upper), nan=np.inf, posinf=np.inf),
    }
    rng = np.random.RandomState(table.seed)
    means, covariances = [], []
    for _ in range(IMPUTATIONS):
        imputer = IterativeImputer(sample_posterior=True, random_state=rng, **bounds, **options)
        completed = imputer.fit_transform(values)
        means.append(completed.mean(axis=0))
        covariances.append(np.cov(completed, rowvar=False))
    return Answer(np.mean(means, axis=0), np.mean(covariances, axis=0))


if __name__ == "__main__":
    run(estimate, "scikit-learn")
