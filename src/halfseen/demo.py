"""The main job on data that come with scikit-learn, censored here so that the truth is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    limits: Floats
    truth: Gaussian
    naive_mean: Floats
    naive_deviation: Floats
    naive_correlation: Floats
    fit: Fit

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
    chosen = [wine.feature_names.index(name) for name in names]
    # Concentrations are skewed; their logarithms are close to normal.
    Y = np.log10(wine.data[:, chosen])
    limits = np.log10(np.array(list(LIMITS.values())))
    rule = DetectionLimits(lower=limits)
    X = np.where(rule.seen(Y), Y, np.nan)
    return Demo(
        names,
        limits,
        Gaussian(Y.mean(axis=0), np.cov(Y.T, bias=True)),
        *_available_cases(X),
        fit(X, rule, method, names=names, random_state=0),
    )


def _available_cases(X: Floats) -> tuple[Floats, Floats, Floats]:
    """Means, deviations and correlations of what is seen: what leaving out non-detects gives."""
    m = PairMoments.from_array(X)
    first, second = m.first / m.counts, m.second / m.counts
    spread = np.sqrt(second - first**2)
    correlation = (m.cross / m.counts - first * first.T) / (spread * spread.T)
    return m.means(), m.deviations(), correlation
