"""What statsmodels has: least squares on substituted or complete rows, two steps, ordered models."""

from __future__ import annotations

from typing import Any

import numpy as np
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.special import log_ndtr
from statsmodels.miscmodels.ordinal_model import OrderedModel

from benchmarks.comparison.programs.harness import Answer, Table, run

Floats = NDArray[np.float64]


def substituted(table: Table, level: float) -> Answer:
    """Least squares with half the limit in place of hidden values, which are logarithms."""
    values, limits = table.values, np.array(table.task["limits"])
    return _least_squares(np.where(np.isnan(values), limits - np.log(2.0), values), table, level)


def complete_rows(table: Table, level: float) -> Answer:
    """Least squares, for each outcome on the rows that show it."""
    return _least_squares(table.values, table, level)


def _least_squares(Y: Floats, table: Table, level: float) -> Answer:
    W = sm.add_constant(table.array("regressors"))
    fits = [sm.OLS(y, W, missing="drop").fit() for y in Y.T]
    E = Y - W @ np.array([fit.params for fit in fits]).T
    S = np.ma.cov(np.ma.masked_invalid(E), rowvar=False, allow_masked=True)
    ends = np.concatenate([fit.conf_int(1.0 - level) for fit in fits])
    coefficients = np.concatenate([fit.params for fit in fits])
    return Answer(coefficients, np.atleast_2d(S.filled(np.nan)), (ends[:, 0], ends[:, 1]))


def two_steps(table: Table, level: float) -> Answer:
    """Heckman's two steps: a probit, then least squares with the inverse Mills ratio beside."""
    W, (wage, works) = sm.add_constant(table.array("regressors")), table.values.T
    probit = sm.Probit(works, W).fit(disp=0)
    index = W @ probit.params
    mills = np.exp(-0.5 * index**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(index))
    seen = works > 0.0
    second = sm.OLS(wage[seen], np.column_stack([W[seen, :3], mills[seen]])).fit()
    slope, m = second.params[3], mills[seen]
    variance = np.mean(second.resid**2) + slope**2 * np.mean(m * (m + index[seen]))
    unknown = np.full((3, 2), np.nan)
    ends = np.concatenate([unknown, probit.conf_int(1.0 - level)])
    return Answer(
        np.concatenate([second.params[:3], probit.params]),
        np.array([[variance, slope], [slope, 1.0]]),
        (ends[:, 0], ends[:, 1]),
    )


def ordered(table: Table, level: float) -> Answer:
    """OrderedModel, whose later cut points are logarithms of distances."""
    X, code = table.array("regressors"), table.values[:, 0]
    model = OrderedModel(code.astype(int), X, distr="probit")
    fit = model.fit(method="bfgs", disp=0)
    k = X.shape[1]
    cuts = model.transform_threshold_params(fit.params)[1:-1]
    ends = np.concatenate([fit.conf_int(1.0 - level)[:k], np.full((cuts.size, 2), np.nan)])
    return Answer(np.concatenate([fit.params[:k], cuts]), np.eye(1), (ends[:, 0], ends[:, 1]))


METHODS = {
    "substituted": substituted,
    "complete rows": complete_rows,
    "two steps": two_steps,
    "ordered": ordered,
}


def estimate(table: Table, options: dict[str, Any]) -> Answer:
    """Estimate by the method that was asked for."""
    method = options["method"]
    if method == "complete rows" and table.task["kind"] == "heckman":
        return _selected_rows(table, table.task["level"])
    return METHODS[method](table, table.task["level"])


def _selected_rows(table: Table, level: float) -> Answer:
    """Least squares on the rows that show the outcome, and a probit by itself."""
    W, (wage, works) = sm.add_constant(table.array("regressors")), table.values.T
    first = sm.OLS(wage, W[:, :3], missing="drop").fit()
    probit = sm.Probit(works, W).fit(disp=0)
    ends = np.concatenate([fit.conf_int(1.0 - level) for fit in (first, probit)])
    S = np.array([[first.scale, np.nan], [np.nan, 1.0]])
    return Answer(np.concatenate([first.params, probit.params]), S, (ends[:, 0], ends[:, 1]))


if __name__ == "__main__":
    run(estimate, "statsmodels")
