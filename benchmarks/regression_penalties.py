"""What a penalty is worth where there are nearly as many regressors as rows, and values are hidden."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LassoCV, RidgeCV

import halfseen as hs
from benchmarks.registry import Row, task

Floats = NDArray[np.float64]

ROWS, REGRESSORS, HIDDEN, TAKEN = 300, 200, 0.4, 8
TABLES, QUICK_TABLES = 20, 3
# Strengths that scikit-learn's ridge chooses from, by leaving one row out.
ALPHAS = np.geomspace(1e-1, 1e5, 40)
# An error may be so many times that of complete rows.
ALLOWED = 2.0


class Made(NamedTuple):
    """A table: regressors, complete outcomes, where they are cut off, and the truth."""

    X: Floats
    y: Floats
    limit: float
    slopes: Floats


def made(seed: int) -> Made:
    """Return regressors that go together in blocks, of which a few matter."""
    rng = np.random.default_rng([seed, 31])
    blocks = np.repeat(rng.normal(size=(ROWS, REGRESSORS // 10)), 10, axis=1)
    X = np.sqrt(0.5) * (blocks + rng.normal(size=(ROWS, REGRESSORS)))
    slopes = np.zeros(REGRESSORS)
    chosen = rng.choice(REGRESSORS, TAKEN, replace=False)
    slopes[chosen] = rng.choice([-1.0, 1.0], TAKEN) * rng.uniform(0.3, 0.9, TAKEN)
    y = X @ slopes + rng.normal(size=ROWS)
    return Made(X, y, float(np.quantile(y, HIDDEN)), slopes)


def error_of(slopes: Floats, truth: Floats) -> float:
    """Return the mean square of a predictor's error on new rows, in variances of a residual."""
    gap = (slopes - truth).reshape(-1, 10)
    # Regressors have the variance 1, and those of a block the correlation ½.
    return float(0.5 * (gap**2).sum() + 0.5 * (gap.sum(axis=1) ** 2).sum())


def errors_of(table: Made) -> dict[str, float]:
    """Return the errors of every way to learn slopes from a table."""
    X, y = table.X, table.y
    cut, rule = np.where(y >= table.limit, y, np.nan), hs.DetectionLimits(lower=table.limit)
    fits = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        free = hs.regress(cut, X, rule, standard_errors=False, random_state=0)
        fits["free, 40 % hidden"] = free.weights[0, 1:]
        for kind in ("ridge", "lasso"):
            fit = hs.regress(cut, X, rule, penalty=kind, random_state=0)
            fits[f"{kind}, 40 % hidden"] = fit.weights[0, 1:]
        fits["RidgeCV, nothing hidden"] = RidgeCV(ALPHAS).fit(X, y).coef_
        fits["LassoCV, nothing hidden"] = LassoCV(cv=5, random_state=0).fit(X, y).coef_
        half = np.where(np.isnan(cut), table.limit, y)
        fits["LassoCV, hidden values at the limit"] = (
            LassoCV(cv=5, random_state=0).fit(X, half).coef_
        )
    return {name: error_of(slopes, table.slopes) for name, slopes in fits.items()}


@task
def regression_penalties(quick: bool) -> Iterator[Row]:
    """Compare errors of predictors with those of scikit-learn's from complete rows."""
    tables = QUICK_TABLES if quick else TABLES
    found = [errors_of(made(seed)) for seed in range(tables)]
    where = f"{ROWS} rows, {REGRESSORS} regressors of which {TAKEN} matter, {tables} tables"
    averages = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    for name, value in averages.items():
        each = np.array([one[name] for one in found])
        spread = each.std(ddof=1) / np.sqrt(tables)
        what = f"{where}: mean square error of predictors, in residual variances: {name}"
        yield Row(what, f"{value:.2f} ± {spread:.2f}", "")
    for ours, theirs in (("ridge", "RidgeCV"), ("lasso", "LassoCV")):
        ratio = averages[f"{ours}, 40 % hidden"] / averages[f"{theirs}, nothing hidden"]
        what = f"{where}: error of the {ours} with 40 % hidden, of {theirs}'s with nothing hidden"
        yield Row(what, f"{ratio:.2f}", f"at most {ALLOWED:g}", ratio <= ALLOWED)
