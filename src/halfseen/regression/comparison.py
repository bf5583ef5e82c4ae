"""Nested regressions side by side: likelihood ratios, and what each is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from halfseen.errors import InputError
from halfseen.regression.fit import RegressionFit
from halfseen.solvers.inference.likelihood import RatioTest, same_holes
from halfseen.solvers.result import name_some

# Differences of log-likelihoods that are rounding.
SLACK = 1e-4
# Standard errors of a statistic within which its p-value is said.
RANGE = 2.0
# What may be left of a term after the larger model's terms, as a share of it.
NESTED = 1e-8


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two nested regressions of the same rows.

    Attributes
    ----------
    larger, smaller : RegressionFit
    test : RatioTest
        Of the smaller against the larger.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rng = np.random.default_rng(0)
    >>> data = {"dose": rng.normal(size=300), "age": rng.normal(size=300)}
    >>> data["lead"] = data["dose"] + rng.normal(size=300)
    >>> larger = hs.regress("lead ~ dose + age", data)
    >>> found = hs.compare(larger, hs.regress("lead ~ dose", data))
    >>> found.test.degrees_of_freedom, bool(found.test.p_value > 0.05)
    (1, True)
    """

    larger: RegressionFit
    smaller: RegressionFit
    test: RatioTest

    def __str__(self) -> str:
        lines = [f"{'':<10}{'parameters':>11}{'log-lik.':>13}{'AIC':>13}{'BIC':>13}"]
        for name, fit in (("smaller", self.smaller), ("larger", self.larger)):
            lines.append(
                f"{name:<10}{fit.parameters:>11}{fit.log_likelihood:>13.3f}{fit.aic:>13.2f}"
                f"{fit.bic:>13.2f}"
            )
        test = self.test
        p = "p < 0.0001" if test.p_value < 1e-4 else f"p = {test.p_value:.4f}"
        lines.append(
            f"Likelihood ratio {test.statistic:.3f} on {test.degrees_of_freedom} "
            f"degree{'s' * (test.degrees_of_freedom != 1)} of freedom, {p}."
        )
        return "\n".join(lines)

    __repr__ = __str__


def compare(larger: RegressionFit, smaller: RegressionFit) -> Comparison:
    """Compare a regression with a special case of it: likelihood ratio, AIC and BIC.

    Parameters
    ----------
    larger, smaller : RegressionFit
        Of the same outcomes of the same rows; the smaller lacks some terms, or has more coefficients or
        residual correlations that are given.

    Returns
    -------
    Comparison
        ``test`` has the statistic and its p-value; printed, it is a table.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rng = np.random.default_rng(0)
    >>> data = {"dose": rng.normal(size=300), "age": rng.normal(size=300)}
    >>> data["lead"] = 0.5 * data["dose"] + rng.normal(size=300)
    >>> larger = hs.regress("lead ~ dose + age", data)
    >>> bool(hs.compare(larger, hs.regress("lead ~ age", data)).test.p_value < 0.001)
    True
    """
    for name, fit in (("larger", larger), ("smaller", smaller)):
        if not isinstance(fit, RegressionFit):
            raise InputError(
                f"compare is for two fits of regress, and {name} is a {type(fit).__name__}; for fits of "
                "fit there is likelihood_ratio_test(small, large)."
            )
    if larger.outcomes != smaller.outcomes:
        raise InputError(
            f"both must be of the same outcomes; these are of {name_some(list(larger.outcomes), 5)} and "
            f"of {name_some(list(smaller.outcomes), 5)}."
        )
    freedom = larger.parameters - smaller.parameters
    if freedom < 1:
        raise InputError(
            f"the larger must have more parameters than the smaller; they have {larger.parameters} and "
            f"{smaller.parameters}."
        )
    for name, fit in (("larger", larger), ("smaller", smaller)):
        if fit.no_likelihood:
            raise InputError(
                f"log-likelihoods are compared, and that of the {name} is none: {fit.no_likelihood}. "
                "Look at the standard errors of what the larger has beside the smaller."
            )
    _check_rows(larger, smaller)
    statistic = 2.0 * (larger.log_likelihood - smaller.log_likelihood)
    error = 2.0 * float(np.hypot(larger.log_likelihood_error, smaller.log_likelihood_error))
    if statistic < -max(SLACK, 4.0 * error):
        raise InputError(
            f"the smaller is likelier than the larger, by {-0.5 * statistic:.3g} in log-likelihood, so "
            "it cannot be a special case of it."
        )
    ends = [max(statistic + s * RANGE * error, 0.0) for s in (0.0, 1.0, -1.0)]
    p, of_high, of_low = (float(chdtrc(freedom, end)) for end in ends)
    test = RatioTest(statistic, freedom, p, error, (of_high, of_low), 1.0, None)
    return Comparison(larger, smaller, test)


def _check_rows(larger: RegressionFit, smaller: RegressionFit) -> None:
    """Raise where two fits are of other rows, or hide other values, as far as can be told."""
    if larger.rows != smaller.rows:
        raise InputError(
            f"both must be of the same rows; these are of {larger.rows} and {smaller.rows}."
        )
    if larger.source is None or smaller.source is None:
        return
    one, other = larger.source.model.outcomes, smaller.source.model.outcomes
    same = np.array_equal(one.data.values, other.data.values, equal_nan=True)
    if not (same and np.array_equal(one.at_random, other.at_random)):
        raise InputError("both must be of the same values of the outcomes; these differ.")
    units = np.zeros(len(one.names)), np.ones(len(one.names))
    # Cut points that were learned are no rule.
    ordered = "ordered" in one.kinds
    if not ordered and not same_holes(one.problem(units), other.problem(units)):
        raise InputError("both must be under the same rule; these hide values differently.")
    _check_nested(larger, smaller)


def _check_nested(larger: RegressionFit, smaller: RegressionFit) -> None:
    """Raise where the smaller has terms that are no combinations of those of the larger."""
    assert larger.source is not None
    assert smaller.source is not None
    W, V = larger.source.model.W, smaller.source.model.W
    for j, name in enumerate(larger.outcomes):
        space = W[:, larger.free[j]]
        for t in np.flatnonzero(smaller.free[j]):
            column = V[:, t]
            slopes = np.linalg.lstsq(space, column, rcond=None)[0] if space.size else np.empty(0)
            left = column - space @ slopes
            if np.linalg.norm(left) > NESTED * np.linalg.norm(column):
                raise InputError(
                    f"the smaller is no special case of the larger: {smaller.terms[t]} of {name} is "
                    "no combination of the larger's terms. Compare AIC or BIC of the two instead."
                )
