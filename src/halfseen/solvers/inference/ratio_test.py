"""The likelihood-ratio test of nested fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc

from halfseen.data.interval_data import IntervalData
from halfseen.data.table import read_table
from halfseen.errors import InputError
from halfseen.solvers.inference.imputation import read_source
from halfseen.solvers.inference.likelihood import row_log_likelihoods

if TYPE_CHECKING:
    from halfseen.solvers.result import Fit

# Of Monte-Carlo standard errors, for the range in which the p-value lies.
RANGE = 2.0


@dataclass(frozen=True)
class RatioTest:
    """A likelihood-ratio test.

    Attributes
    ----------
    statistic : float
        Twice the difference of the log-likelihoods.
    degrees_of_freedom : int
        Parameters that the smaller model holds fixed.
    p_value : float
        Probability of a larger statistic if the smaller model is true, for many rows.
    monte_carlo_error : float
        Standard error of the statistic that comes from estimating the likelihoods.
    p_value_range : tuple of float
        P-values two such errors above and below.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float
    monte_carlo_error: float
    p_value_range: tuple[float, float]


def likelihood_ratio_test(small: Fit, large: Fit) -> RatioTest:
    """Test a fit against one of the same table in which more is free.

    Both likelihoods are estimated with the same random numbers, so that most of their noise cancels.

    Parameters
    ----------
    small, large : Fit
        By ``method="full"``; the model of ``small`` must be a special case of that of ``large``, such as
        ``covariance="diagonal"`` (independence) or a known ``mean=`` against a free one.

    Returns
    -------
    RatioTest

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([0, 0], [[1, 0.5], [0.5, 1]]), rule, 500)
    >>> independent = hs.fit(X, rule, covariance="diagonal", random_state=0)
    >>> test = hs.likelihood_ratio_test(independent, hs.fit(X, rule, random_state=0))
    >>> test.degrees_of_freedom, bool(test.p_value < 0.001)
    (1, True)
    """
    for name, fit in (("small", small), ("large", large)):
        if fit.source is None or fit.parameters is None or fit.method != "full":
            raise InputError(f'{name} must be a fit by method="full" that holds its table.')
        if fit.precision is not None or fit.history.get("covariance_structure") == "shrinkage":
            raise InputError(
                f"{name} is regularised: it does not maximise the likelihood, so the test does not "
                "apply."
            )
    assert small.parameters is not None
    assert large.parameters is not None
    freedom = large.parameters - small.parameters
    if freedom < 1:
        raise InputError(
            f"large must have more free parameters than small; they have {large.parameters} and "
            f"{small.parameters}."
        )
    assert small.source is not None
    assert large.source is not None
    if not _same_table(small.source.X, large.source.X):
        raise InputError("both fits must be of the same table; these are not.")
    problem = read_source(large, None)
    values, variance = [], []
    for fit in (large, small):
        found = row_log_likelihoods(
            problem.Y, problem.holes, *problem.from_units(fit.mean, fit.covariance)
        )
        values.append(found[0])
        variance.append(found[1])
    statistic = 2.0 * float((values[0] - values[1]).sum())
    error = 2.0 * float(np.sqrt((variance[0] + variance[1]).sum()))
    low, high = statistic - RANGE * error, statistic + RANGE * error
    return RatioTest(
        statistic,
        freedom,
        float(chdtrc(freedom, max(statistic, 0.0))),
        error,
        (float(chdtrc(freedom, max(high, 0.0))), float(chdtrc(freedom, max(low, 0.0)))),
    )


def _same_table(a: Any, b: Any) -> bool:
    if isinstance(a, IntervalData) or isinstance(b, IntervalData):
        both = isinstance(a, IntervalData) and isinstance(b, IntervalData)
        return both and np.array_equal(a.lower, b.lower) and np.array_equal(a.upper, b.upper)
    return np.array_equal(read_table(a).values, read_table(b).values, equal_nan=True)
