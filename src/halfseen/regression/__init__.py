"""Regression under any rule: ``regress``, what it returns, and how nested fits are compared."""

from halfseen.regression.comparison import Comparison, compare
from halfseen.regression.door import regress
from halfseen.regression.effects import ConditionalRegression, MarginalEffects
from halfseen.regression.errors import RegressionErrors, RegressionIntervals
from halfseen.regression.fit import RegressionFit

__all__ = [
    "Comparison",
    "ConditionalRegression",
    "MarginalEffects",
    "RegressionErrors",
    "RegressionFit",
    "RegressionIntervals",
    "compare",
    "regress",
]
