"""Limits of one column by the likelihood of all: as far down as at the limit from the column alone.

What holds of a column alone says how far its likelihood falls to a limit. The likelihood of all columns,
with everything else at its best, is followed to where it has fallen as far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.limits.lone import Number
from halfseen.solvers.inference.confidence import ENOUGH_ROWS, Parameter, interval_finder
from halfseen.solvers.inference.intervals import ColumnFunctionOf, Limits, Numbers
from halfseen.solvers.inference.original_scale import delta_error, joint_variances

if TYPE_CHECKING:
    from halfseen.results import Fit
    from halfseen.solvers.inference.confidence import IntervalFinder

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Falls:
    """Intervals that end where the likelihood has fallen by given amounts, on either side."""

    lower: float
    upper: float

    def distances(self, error: Floats, rows: Floats, level: float) -> Limits:
        """Return √fall · error."""
        return Limits(-np.sqrt(self.lower) * error, np.sqrt(self.upper) * error)

    def cutoffs(self, rows: float, level: float) -> tuple[float, float]:
        """Return the falls."""
        return self.lower, self.upper


@dataclass(frozen=True, eq=False)
class JointColumn:
    """A column beside the others of a fit."""

    fit: Fit
    j: int
    finder: IntervalFinder
    variances: Floats

    @classmethod
    def of(cls, fit: Fit, j: int) -> JointColumn | None:
        """Return a column of a fit; None where the fit adds nothing that can be followed."""
        if len(fit.names) < 2 or fit.method != "full":
            return None
        finder = interval_finder(fit, 0.95, "auto")
        if finder is None or not (finder.profiled or cls._known(finder, j) >= ENOUGH_ROWS):
            return None
        variances = joint_variances(fit)[j]
        return cls(fit, j, finder, variances) if np.isfinite(variances).all() else None

    @staticmethod
    def _known(finder: IntervalFinder, j: int) -> float:
        return float(finder.errors.rows_for_variances[j])

    def limits(
        self, number: Number, falls: tuple[float, float]
    ) -> tuple[float, float, float] | None:
        """Return the estimate of a number and its limits, on the scale of the model."""
        g = self.fit.gaussian
        unit = float(g.mean[self.j]), float(g.standard_deviations[self.j])
        value = number.at(*unit)
        error, known = (
            delta_error(number.at, *unit, self.variances),
            self._known(self.finder, self.j),
        )
        if not (np.isfinite(error) and error > 0.0):
            return None
        rows = np.array([known])
        numbers = Numbers(Falls(*falls), np.array([value]), np.array([error]), rows, rows)
        target = ColumnFunctionOf(self.j, *unit, number.at)
        try:
            low, high = self.finder.of_parameter(Parameter(target, 1.0, numbers, known))
        except InputError:
            return None
        return value, float(low), float(high)
