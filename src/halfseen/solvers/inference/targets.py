"""Numbers that can be held fixed: what a profile is of.

Each says its value and its slopes at a mean and a covariance, in units of the estimate's deviations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Steps of differences for functions that have no slopes of their own, in standard deviations.
DIFFERENCE = 1e-5


class Target(Protocol):
    """A number that is held fixed, at parameters in units of the estimate's deviations."""

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return the number."""
        ...

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return its derivatives in the mean and (symmetric, entry by entry) in the covariance."""
        ...


@dataclass(frozen=True)
class MeanOf:
    """A mean."""

    column: int

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return μ_j."""
        return float(mean[self.column])

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return the unit vector."""
        out = np.zeros(mean.size)
        out[self.column] = 1.0
        return out, np.zeros_like(covariance)


@dataclass(frozen=True)
class LogDeviationOf:
    """The logarithm of a standard deviation."""

    column: int

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return ½ log Σ_jj."""
        return float(0.5 * np.log(covariance[self.column, self.column]))

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return 1/(2 Σ_jj)."""
        out = np.zeros_like(covariance)
        out[self.column, self.column] = 0.5 / covariance[self.column, self.column]
        return np.zeros(mean.size), out


@dataclass(frozen=True)
class FisherOf:
    """A correlation on Fisher's scale, artanh ρ."""

    row: int
    column: int

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return ½ log((1 + ρ)/(1 − ρ))."""
        i, j = self.row, self.column
        product = np.sqrt(covariance[i, i] * covariance[j, j])
        s = covariance[i, j]
        return float(0.5 * np.log((product + s) / (product - s)))

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return dρ/(1 − ρ²), with dρ = dΣ_ij/(σ_i σ_j) − ½ ρ (dΣ_ii/Σ_ii + dΣ_jj/Σ_jj)."""
        i, j = self.row, self.column
        a, b = covariance[i, i], covariance[j, j]
        rho = covariance[i, j] / np.sqrt(a * b)
        out = np.zeros_like(covariance)
        out[i, j] = out[j, i] = 0.5 / np.sqrt(a * b)
        out[i, i], out[j, j] = -0.5 * rho / a, -0.5 * rho / b
        return np.zeros(mean.size), out / (1.0 - rho * rho)


@dataclass(frozen=True)
class CovarianceOf:
    """A covariance."""

    row: int
    column: int

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return Σ_ij."""
        return float(covariance[self.row, self.column])

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return one, shared by the two entries."""
        out = np.zeros_like(covariance)
        out[self.row, self.column] += 0.5
        out[self.column, self.row] += 0.5
        return np.zeros(mean.size), out


@dataclass(frozen=True)
class ColumnFunctionOf:
    """A smooth function of the mean and the standard deviation of one column, in units of the table."""

    column: int
    centre: float
    scale: float
    function: Callable[[float, float], float]

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return f(μ, σ)."""
        return self.function(*self._place(mean, covariance))

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return central differences; dσ = dΣ_jj/(2σ)."""
        mu, sigma = self._place(mean, covariance)
        h, f = DIFFERENCE * sigma, self.function
        of_mean, of_covariance = np.zeros(mean.size), np.zeros_like(covariance)
        j = self.column
        of_mean[j] = self.scale * (f(mu + h, sigma) - f(mu - h, sigma)) / (2.0 * h)
        slope = (f(mu, sigma + h) - f(mu, sigma - h)) / (2.0 * h)
        of_covariance[j, j] = 0.5 * slope * self.scale**2 / sigma
        return of_mean, of_covariance

    def _place(self, mean: Floats, covariance: Floats) -> tuple[float, float]:
        j = self.column
        sigma = self.scale * float(np.sqrt(covariance[j, j]))
        return self.centre + self.scale * float(mean[j]), sigma


@dataclass(frozen=True)
class FunctionOf:
    """Any smooth function of mean and covariance, by differences."""

    function: Callable[[Floats, Floats], float]

    def value(self, mean: Floats, covariance: Floats) -> float:
        """Return the function."""
        return self.function(mean, covariance)

    def slope(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return central differences."""
        d = mean.size
        of_mean, of_covariance = np.empty(d), np.empty((d, d))
        deviations = np.sqrt(np.diag(covariance))
        for i in range(d):
            move = np.zeros(d)
            move[i] = DIFFERENCE * deviations[i]
            ends = self.function(mean + move, covariance), self.function(mean - move, covariance)
            of_mean[i] = (ends[0] - ends[1]) / (2.0 * move[i])
        for i in range(d):
            for j in range(i + 1):
                change = np.zeros((d, d))
                h = DIFFERENCE * deviations[i] * deviations[j]
                change[i, j] = change[j, i] = h
                ends = (
                    self.function(mean, covariance + change),
                    self.function(mean, covariance - change),
                )
                # An entry off the diagonal moves with its mirror image.
                both = (ends[0] - ends[1]) / (2.0 * h)
                of_covariance[i, j] = of_covariance[j, i] = both if i == j else 0.5 * both
        return of_mean, of_covariance
