"""From a fit to its limits: which method holds for which number, or the word why none does.

What holds of a column alone says how far its likelihood falls to a limit. The likelihood of all columns,
with everything else at its best, is followed to where it has fallen as far (``JointColumn``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from halfseen.checks import is_iterable, share, whole_number
from halfseen.data.transforms import Identity, Log, Transform
from halfseen.diagnostics.checked_table import CheckedTable, read
from halfseen.diagnostics.fitted_rows import with_fit
from halfseen.diagnostics.one_column import LoneColumn
from halfseen.errors import HalfseenWarning, InputError
from halfseen.limits.lone import (
    MOST_CELLS,
    CalibratedRoot,
    Lone,
    Number,
    below_limits,
    kaplan_meier,
    order_statistics,
)
from halfseen.limits.table import Limit, LimitTable
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.inference.confidence import ENOUGH_ROWS, Parameter, interval_finder
from halfseen.solvers.inference.intervals import ColumnFunctionOf, Limits, Numbers
from halfseen.solvers.inference.original_scale import (
    GRID,
    GRID_WEIGHTS,
    delta_error,
    joint_variances,
    mean_in_units,
)

if TYPE_CHECKING:
    from halfseen.results import Fit
    from halfseen.solvers.inference.confidence import IntervalFinder

Floats = NDArray[np.float64]
# Simulated columns behind a calibrated root, at least.
FEWEST_DRAWS = 100
# Limits were measured, and held, from so many rows on, with up to this share hidden, or with so many
# values seen (``limits_coverage`` in the benchmarks).
MEASURED_ROWS, MEASURED_HIDDEN, MEASURED_SEEN = 20, 0.7, 10
TOO_FEW = "not measured to hold for so few values"
CAUTIOUS = "the upper limit holds more often than it says"
BLANK = "blank cells are left out"
OTHER_SCALE = "not measured on this scale"
NO_END = "no end"
LOWEST = "what the lowest limit hides counts as at the limit"
KAPLAN_MEIER, ROS = "Kaplan–Meier", "ROS"
# Shares nearer to 0 or 1, and more values at once, are none that a table can speak of.
RAREST, MOST_NEXT = 1e-9, 1_000_000


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


class Ends(NamedTuple):
    """An estimate with its limits on some scale, and what they come from."""

    estimate: float
    lower: float
    upper: float
    method: str
    remark: str = ""


@dataclass(frozen=True)
class Asked:
    """What is asked for: levels, quantiles, and how."""

    level: float
    coverage: float
    next_values: int
    probabilities: tuple[float, ...]
    draws: int
    seed: int

    @property
    def quantities(self) -> list[str]:
        """Names of the numbers of each column."""
        quantiles = [f"quantile {p:g}" for p in self.probabilities]
        return ["mean", *quantiles, f"tolerance {self.coverage:g}", f"next {self.next_values}"]


def _not_extreme(name: str, value: Any) -> float:
    """Return a share that is not so near 0 or 1 that no table can speak of it."""
    number = share(name, value)
    if not RAREST <= number <= 1.0 - RAREST:
        raise InputError(f"{name} must lie between {RAREST:g} and 1 - {RAREST:g}; got {number:g}.")
    return number


def find_limits(
    fit: Fit, level: float, coverage: float, next_values: int, probabilities: Sequence[float],
    replicates: int, random_state: RandomState,
) -> LimitTable:  # fmt: skip
    """Return the limits of every column; see ``Fit.limits``."""
    if not is_iterable(probabilities) or isinstance(probabilities, str):
        raise InputError(
            f"probabilities must be a list, such as [0.5, 0.95]; got {probabilities!r}."
        )
    level = share("level", level)
    if not level > 0.5:
        raise InputError(
            f"level must be above 0.5, such as 0.95: each limit is one-sided; got {level:g}."
        )
    asked = Asked(
        level,
        _not_extreme("coverage", coverage),
        whole_number("next_values", next_values),
        tuple(_not_extreme("each of the probabilities", p) for p in probabilities),
        whole_number("replicates", replicates, FEWEST_DRAWS),
        seed_of(random_state),
    )
    if asked.next_values > MOST_NEXT:
        raise InputError(
            f"next_values must be at most {MOST_NEXT}; of so many, ask for a coverage."
        )
    if fit.source is None or fit.source.X is None:
        raise InputError(
            "limits need the rows, and this fit does not hold its table (a saved fit never does, nor "
            "does one of moments or of a table in pieces): fit the rows again, in memory."
        )
    X, rule, at_random, transforms, _ = with_fit(fit, None, None, None, None, None)
    with warnings.catch_warnings():
        # How the table was read was said when it was fitted.
        warnings.simplefilter("ignore", HalfseenWarning)
        table = read(X, rule, at_random, transforms)
    limits = [limit for j in range(len(fit.names)) for limit in _column(fit, table, j, asked)]
    return LimitTable(tuple(limits), asked.level, asked.coverage)


def _column(fit: Fit, table: CheckedTable, j: int, asked: Asked) -> Iterator[Limit]:
    """Yield the limits of a column, and beside them what people know."""
    transform = Identity() if fit.transforms is None else fit.transforms[j]
    column = table.column(j, np.arange(fit.rows), spread=False)
    name = fit.names[j]
    why = _why_not(fit, j)
    lone = why or (column if isinstance(column, str) else Lone.of(column, transform))
    if isinstance(lone, str):
        for quantity in asked.quantities:
            yield _none(name, quantity, lone.split(";")[0])
    else:
        blank = bool(table.blank[:, j].any()) and len(fit.names) > 1
        yield from ColumnLimits(fit, j, lone, transform, blank, asked).found()
    yield from _familiar(name, column, transform, asked)


def _why_not(fit: Fit, j: int) -> str:
    """Say why the law of a column is none that limits were made for; nothing where it is."""
    if not np.isinf(fit.degrees):
        return "errors of a t distribution"
    if fit.loss is not None and fit.loss.group[j] >= 0:
        return "values are lost beside the rule"
    if fit.powers is not None and fit.powers[j] is not None:
        return "the power of its scale was learned"
    return ""


@dataclass(frozen=True, eq=False)
class ColumnLimits:
    """The limits of one column."""

    fit: Fit
    j: int
    lone: Lone
    transform: Transform
    blank: bool
    asked: Asked

    def found(self) -> Iterator[Limit]:
        """Yield the limits of everything that is asked for, in original units."""
        values = (self._mean(), *map(self._quantile, self.asked.probabilities), self._tolerance())
        for quantity, ends in zip(self.asked.quantities, (*values, self._next()), strict=True):
            yield self._limit(quantity, ends)

    @cached_property
    def _joint(self) -> JointColumn | None:
        """What the other columns add, where they can."""
        return JointColumn.of(self.fit, self.j)

    def _mean(self) -> Ends:
        """Limits of the mean; those of a curved scale are of its way back."""
        if isinstance(self.transform, Identity):
            return self._of(Number(), "Student's t")
        if isinstance(self.transform, Log):
            # log E = uμ + u²σ²/2 in units of u = log(base).
            unit = np.log(10.0) if self.transform.base == 10 else 1.0
            return self._log_mean(Number(bend=float(unit)))
        lone, level = self.lone, self.asked.level
        mean_of = partial(_mean_over, self.transform)
        low, high = (lone.posterior.mean_quantile(mean_of, p) for p in (1.0 - level, level))
        place = lone.back(lone.mean), lone.scale * lone.deviation
        estimate = mean_in_units(self.transform, *place)
        back = self.transform.forward(np.array([estimate, low, high]))
        at, below, above = map(float, back)
        return Ends(at, below, above, "matching posterior", OTHER_SCALE)

    def _log_mean(self, number: Number) -> Ends:
        """Limits of the logarithm of a log-normal mean."""
        found = self._alone(number, "generalised pivot")
        if not self.lone.is_complete:
            root = CalibratedRoot(self.lone, number, self.asked.draws, self.asked.seed)
            if root.is_known:
                sides = ((-1, found.lower), (1, found.upper))
                low, high = (root.limit(self.asked.level, side, start) for side, start in sides)
                if np.isfinite([low, high]).all():
                    found = Ends(found.estimate, low, high, "calibrated root")
            if found.method != "calibrated root" and self._is_cautious():
                found = found._replace(remark=CAUTIOUS)
        return self._joined(number, found)

    def _is_cautious(self) -> bool:
        """Whether the posterior of a log-normal mean goes farther than it has to."""
        return self.lone.hidden_share > 0.0 and self.lone.size <= MOST_CELLS

    def _quantile(self, probability: float) -> Ends:
        """Limits of a quantile."""
        return self._of(Number(tilt=float(ndtri(probability))), "noncentral t")

    def _tolerance(self) -> Ends:
        """Limits that a share of all values is above, and below: those of two quantiles."""
        low = self._quantile(1.0 - self.asked.coverage)
        high = self._quantile(self.asked.coverage)
        return high._replace(estimate=np.nan, lower=low.lower)

    def _next(self) -> Ends:
        """Limits that all of the next values are above, and below."""
        level, values = self.asked.level, self.asked.next_values
        posterior = self.lone.posterior
        method = "Student's t" if self.lone.is_complete else "matching posterior"
        low, high = (posterior.next_limit(level, values, side) for side in (-1, 1))
        return Ends(np.nan, low, high, method, BLANK if self.blank else "")

    def _of(self, number: Number, complete: str) -> Ends:
        return self._joined(number, self._alone(number, complete))

    def _alone(self, number: Number, complete: str) -> Ends:
        """Limits from the cells of the column alone."""
        level, posterior = self.asked.level, self.lone.posterior
        low, high = (posterior.quantile(number, p) for p in (1.0 - level, level))
        method = complete if self.lone.is_complete else "matching posterior"
        return Ends(self.lone.estimate(number), low, high, method)

    def _joined(self, number: Number, alone: Ends) -> Ends:
        """Take what the other columns say of the cells that are not seen."""
        if self.lone.is_complete and not self.blank:
            return alone
        joint = self._joint
        if joint is not None and np.isfinite([alone.lower, alone.upper]).all():
            falls = (self.lone.fall(number, alone.lower), self.lone.fall(number, alone.upper))
            found = joint.limits(number, falls)
            if found is not None:
                return Ends(*found, "joint likelihood", alone.remark)
        remarks = [alone.remark, BLANK if self.blank else ""]
        return alone._replace(remark="; ".join(filter(None, remarks)))

    def _limit(self, quantity: str, ends: Ends) -> Limit:
        """Bring ends to original units, with what there is to know about them."""
        with np.errstate(over="ignore"):
            back = self.transform.inverse(np.array([ends.estimate, ends.lower, ends.upper]))
        estimate, low, high = (float(x) for x in back)
        remarks = [ends.remark, TOO_FEW if self._is_beyond() else ""]
        if np.isinf(high) or np.isneginf(low):
            remarks.append(NO_END)
        remark = "; ".join(text for text in remarks if text)
        return Limit(self.fit.names[self.j], quantity, estimate, low, high, ends.method, remark)

    def _is_beyond(self) -> bool:
        """Whether less is known than in any table of the measurement."""
        lone = self.lone
        seen = lone.size * (1.0 - lone.hidden_share)
        many_hidden = lone.hidden_share > MEASURED_HIDDEN and seen < MEASURED_SEEN
        return lone.size < MEASURED_ROWS or many_hidden


def _mean_over(transform: Transform, mean: Floats, deviation: Floats) -> Floats:
    """Return means in original units of columns that are normal on a scale."""
    values = transform.inverse(mean[..., None] + deviation[..., None] * GRID)
    return np.asarray(values @ GRID_WEIGHTS)


def _none(name: str, quantity: str, word: str) -> Limit:
    return Limit(name, quantity, np.nan, np.nan, np.nan, "", word)


def _familiar(
    name: str, column: LoneColumn | str, transform: Transform, asked: Asked
) -> Iterator[Limit]:
    """Yield the mean by Kaplan and Meier, and by regression on order statistics."""
    cells = None
    if not isinstance(column, str):
        cells = below_limits(column, transform.least)
    if cells is None or cells[0].size < 2:
        word = "only for values below limits" if cells is None else "fewer than 2 values seen"
        yield from (_none(name, f"{by} mean", word) for by in ("KM", "ROS"))
        return
    found = kaplan_meier(*cells)
    low, high = (found.limit(p) for p in (1.0 - asked.level, asked.level))
    lowest = cells[1].size and cells[1].min() <= cells[0].min()
    remark = LOWEST if lowest else ""
    yield Limit(name, "KM mean", found.mean, low, high, KAPLAN_MEIER, remark)
    yield _alone(name, "KM s.d.", found.deviation, KAPLAN_MEIER)
    line = order_statistics(*cells, transform)
    if line is None:
        yield _none(name, "ROS mean", "no line through the seen values")
        return
    yield _alone(name, "ROS mean", line.mean, ROS)
    yield _alone(name, "ROS s.d.", line.deviation, ROS)


def _alone(name: str, quantity: str, estimate: float, method: str) -> Limit:
    return Limit(name, quantity, estimate, np.nan, np.nan, method)


def find_group_limits(
    by: str, fits: Mapping[Any, Fit], without: Mapping[Any, str], names: Sequence[str], **asked: Any
) -> LimitTable:
    """Return the limits of every group; those ``without`` a fit have the word why."""
    limits: list[Limit] = []
    for label, fit in fits.items():
        found = find_limits(fit, **asked)
        limits += [replace(one, group=label) for one in found.limits]
    for label, why in without.items():
        limits += [replace(_none(name, "mean", why), group=label) for name in names]
    return LimitTable(tuple(limits), asked["level"], asked["coverage"], by)
