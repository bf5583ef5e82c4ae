"""The main job on data that come with scikit-learn, censored here so that the truth is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.gaussian import Gaussian
from halfseen.missingness import DetectionLimits
from halfseen.solvers import Fit, fit

Floats = NDArray[np.float64]

# Concentrations in the wine data, with the limit below which a laboratory would report "not detected".
# The limits are round numbers near the lower third of each column.
LIMITS = {
    "malic_acid": 1.6,
    "ash": 2.2,
    "magnesium": 90.0,
    "total_phenols": 1.9,
    "flavanoids": 1.3,
    "nonflavanoid_phenols": 0.28,
    "proanthocyanins": 1.3,
    "color_intensity": 3.5,
    "proline": 550.0,
}


@dataclass(frozen=True)
class Demo:
    """What was censored, what each way of looking at it says, and what is true."""

    names: tuple[str, ...]
    truth: Gaussian
    naive_mean: Floats
    naive_deviation: Floats
    naive_correlation: Floats
    fit: Fit
    concentrations: Floats

    def laboratory_table(self) -> IntervalData:
        """Return the table as a laboratory would report it: concentrations, and cells such as <1.6."""
        limits = np.array(list(LIMITS.values()))
        hidden = self.concentrations < limits
        return IntervalData(
            np.where(hidden, -np.inf, self.concentrations),
            np.where(hidden, limits, self.concentrations),
            self.names,
        )

    def mean_errors(self) -> tuple[float, float]:
        """Average error of the means in true standard deviations: naive, recovered."""
        scale = self.truth.standard_deviations
        return (
            float((np.abs(self.naive_mean - self.truth.mean) / scale).mean()),
            float((np.abs(self.fit.gaussian.mean - self.truth.mean) / scale).mean()),
        )

    def deviation_errors(self) -> tuple[float, float]:
        """Average relative error of the standard deviations: naive, recovered."""
        true = self.truth.standard_deviations
        found = self.fit.gaussian.standard_deviations
        return (
            float(np.abs(self.naive_deviation / true - 1.0).mean()),
            float(np.abs(found / true - 1.0).mean()),
        )

    def correlation_errors(self) -> tuple[float, float]:
        """Average error of the correlations: naive, recovered."""
        pairs = np.triu_indices(len(self.names), 1)
        true = self.truth.correlation[pairs]
        return (
            float(np.abs(self.naive_correlation[pairs] - true).mean()),
            float(np.abs(self.fit.gaussian.correlation[pairs] - true).mean()),
        )


def run_demo(method: str = "auto") -> Demo:
    """Censor the wine data, learn from what is left, and keep the truth beside it."""
    from sklearn.datasets import load_wine

    wine = load_wine()
    names = tuple(LIMITS)
    concentrations = wine.data[:, [wine.feature_names.index(name) for name in names]]
    rule = DetectionLimits(lower=list(LIMITS.values()))
    X = np.where(rule.seen(concentrations), concentrations, np.nan)
    # Concentrations are skewed; their logarithms are close to normal.
    Y = np.log10(concentrations)
    return Demo(
        names,
        Gaussian(Y.mean(axis=0), np.cov(Y.T, bias=True)),
        *_available_cases(np.log10(X)),
        fit(X, rule, method, names=names, transforms="log10", random_state=0),
        concentrations,
    )


def _available_cases(X: Floats) -> tuple[Floats, Floats, Floats]:
    """Means, deviations and correlations of what is seen: what leaving out non-detects gives."""
    m = PairMoments.from_array(X)
    first, second = m.first / m.counts, m.second / m.counts
    spread = np.sqrt(second - first**2)
    correlation = (m.cross / m.counts - first * first.T) / (spread * spread.T)
    return m.means(), m.deviations(), correlation
