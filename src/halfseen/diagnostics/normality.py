"""Whether the columns of a table are normal, each by itself.

The normal distribution of greatest likelihood for its cells, seen and hidden; normal scores
of all cells, those of hidden ones drawn within their sets; their distance from the normal distribution
(Anderson and Darling 1954). Parameters were estimated and cells hidden, so the distribution of that
distance is simulated: values from the fitted normal, hidden as the real ones were, fitted again. Columns
that do not look normal may do so on a better scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from halfseen.data.powers import ColumnCells, learn_power
from halfseen.data.transforms import BoxCox, Identity, Log, SquareRoot, Transform, YeoJohnson
from halfseen.diagnostics.checked_table import CheckedTable
from halfseen.diagnostics.one_column import Distances, LoneColumn, Marginal, distances, fit_cells
from halfseen.errors import InputError
from halfseen.kernels.censored_normal import normal_distances
from halfseen.parallel import map_in_order
from halfseen.seeds import Purpose, keyed_generator

Floats = NDArray[np.float64]

# A test on fewer seen values than this could hardly reject anything.
FEWEST_SEEN = 8
# Draws of hidden scores that are averaged in small columns; in large ones a single draw says the same.
MOST_PHASES, CELLS_PER_PHASE = 4, 2000
# Share of the largest simulated distances from which their tail is estimated.
TAIL = 0.1
# Reasons why a column is not tested.
CONSTANT, NEVER_SEEN = "constant", "no value seen"
# How the reason begins for a column whose values its transform does not take.
WRONG_SCALE = "its transform does not fit"
# A column whose own p-value is below this is given a better scale.
DOUBTFUL = 0.01
# A simpler scale is preferred if its log-likelihood is within this of the best: the power, one
# parameter more, has a 95 % interval of 1.92 around its best.
NEARLY_AS_GOOD = 2.0
# Streams of random numbers: of those of ``diagnose``, 1 is of the paper's constants, 3 and 5 are of
# completed rows, 7 of cells that were cut off, 8 of simulated rows, 9 of the largest of several numbers.
BY_COLUMN, COMPLETE_COLUMN, SUGGESTING = 2, 4, 6


@dataclass(frozen=True)
class NormalityTest:
    """A test of normality, of a column or of the whole.

    Attributes
    ----------
    name : str
    statistic : float
        Anderson and Darling's A², averaged over draws of what is hidden. Of all columns together, where
        tables can be simulated: the largest of the standardised differences between averages of
        cos 2x and sin 1.5x along columns and principal axes and what they should be.
    distance : float
        Largest difference between the share of cells (or rows) below a point and what the normal
        distribution says (Kolmogorov's D).
    p_value : float
        (1 + number of simulations at least as far) / (simulations + 1).
    tail_p_value : float
        The same; where the data are farther off than nine simulations of ten, from the exponential tail
        of the simulated distances.
    adjusted : float
        ``tail_p_value`` adjusted for the number of columns (Holm), and for there being a test of the
        whole.
    basis : {"cells", "completed", "none"}
        Whether cells were tested on their own, or values completed at the fitted parameters.
    reason : str
        Why there is no test; empty where there is one.
    deviation, direction : str
        Of all columns together: "two groups", "heavy tails" or "skewed", and the column or the
        combination of columns in which that is seen most; else empty.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> x = np.exp(np.random.default_rng(0).normal(size=(300, 1)))
    >>> test = hs.diagnose(x).normality.columns[0]
    >>> test.name, test.basis, test.p_value < 0.01
    ('x0', 'cells', True)
    """

    name: str
    statistic: float
    distance: float
    p_value: float
    tail_p_value: float
    adjusted: float
    basis: str
    reason: str = ""
    deviation: str = ""
    direction: str = ""

    @classmethod
    def absent(cls, name: str, reason: str) -> NormalityTest:
        """Return a test that was not made."""
        nan = float("nan")
        return cls(name, nan, nan, nan, nan, nan, "none", reason)

    @classmethod
    def of(cls, name: str, off: Distances, simulated: Floats, basis: str) -> NormalityTest:
        """Return the outcome of a test."""
        p, tail = p_values(off.square, simulated)
        return cls(name, off.square, off.largest, p, tail, tail, basis)


@dataclass(frozen=True)
class Normality:
    """Tests of normality: of each column, and of the whole where there is a fit.

    Attributes
    ----------
    columns : tuple of NormalityTest
    overall : NormalityTest or None
        Of all columns together.
    overall_reason : str
        Why there is no test of the whole; empty where there is one.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 300)
    >>> tests = hs.diagnose(X, rule).normality
    >>> [test.p_value > 0.01 for test in tests.columns]
    [True, True]
    """

    columns: tuple[NormalityTest, ...]
    overall: NormalityTest | None
    overall_reason: str = ""

    @property
    def p_value(self) -> float:
        """One p-value for one question: whether this is a Gaussian, on these scales.

        The least of all tests, adjusted for their number: columns among each other by Holm's method, and
        with the test of the whole by Hochberg's. NaN where nothing was tested.
        """
        tests = [*self.columns, *([] if self.overall is None else [self.overall])]
        known = [test.adjusted for test in tests if test.basis != "none"]
        return min(known, default=float("nan"))

    def both_counted(self) -> Normality:
        """Return the tests with p-values that allow for columns and the whole being tested both.

        Two of them are doubled, but to no more than the larger (Hochberg 1988), which holds for tests
        that agree more often than by chance. These do: what a column shows the whole shows too.
        """
        known = [test.adjusted for test in self.columns if test.basis != "none"]
        if self.overall is None or not known:
            return self
        least, whole = min(known), self.overall.adjusted
        columns = tuple(
            replace(test, adjusted=_of_two(test.adjusted, whole)) for test in self.columns
        )
        overall = replace(self.overall, adjusted=_of_two(whole, least))
        return replace(self, columns=columns, overall=overall)


def _of_two(p: float, other: float) -> float:
    """Return a p-value that allows for another test."""
    return min(2.0 * p, max(p, other))


def p_values(observed: float, simulated: Floats) -> tuple[float, float]:
    """Return the share of simulations at least as far off, and the same with a smooth tail.

    Where parameters are estimated, the upper tail of A² is close to exponential. Beyond q, the largest
    but k of S simulations, whose mean excess over it is m,

        P(A² > a) = (k + 1)/(S + 1) · (1 + (a − q)/(k m))⁻ᵏ,

    which is exact for such a tail: a new excess over the sum of k others has a Pareto law. That has
    values between those of a count, which matters where it is multiplied by the number of tests: of six
    at 5 %, a count of 199 simulations rejects at 1/200 and not at 2/200.
    """
    size = simulated.size
    # NaN: a simulation that could not be fitted counts as far off.
    p = (1 + int((~(simulated < observed)).sum())) / (size + 1)
    beyond = round(TAIL * (size + 1)) - 1
    if beyond < 1 or not np.isfinite(simulated).all():
        return p, p
    edge, *excesses = np.partition(simulated, size - 1 - beyond)[size - 1 - beyond :]
    total = float(np.sum(excesses)) - beyond * float(edge)
    if observed <= edge or not total > 0.0:
        return p, p
    tail = (beyond + 1) / (size + 1) * (1.0 + (observed - float(edge)) / total) ** -beyond
    return p, max(tail, np.finfo(float).tiny)


def holm(p: Floats) -> Floats:
    """Adjust p-values for their number; NaN stays and is not counted.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    out = np.full(p.size, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factor = order.size - np.arange(order.size)
    out[order] = np.minimum(np.maximum.accumulate(factor * p[order]), 1.0)
    return out


def judge_cells(
    name: str, column: LoneColumn, simulations: int, rng: np.random.Generator
) -> NormalityTest:
    """Test a column on its own: parametric bootstrap of A²."""
    column, _, _ = column.standardised()
    marginal = fit_cells(column.cells)
    phases = rng.random(max(1, min(MOST_PHASES, CELLS_PER_PHASE // column.size)))
    off = distances(column.cells, marginal, phases)
    simulated = simulate_distances(column, marginal, simulations, phases.size, rng)
    return NormalityTest.of(name, off, simulated, "cells")


def simulate_distances(
    column: LoneColumn, marginal: Marginal, simulations: int, phases: int, rng: np.random.Generator
) -> Floats:
    """A² of columns drawn from a normal distribution, hidden as the real one, and fitted again."""
    out = np.empty(simulations)
    for k in range(simulations):
        x = marginal.mean + marginal.deviation * rng.standard_normal(column.size)
        cells = column.hiding.hide(x, rng)
        again = fit_cells(cells, marginal.mean, marginal.deviation)
        out[k] = distances(cells, again, rng.random(phases)).square
    return out


def why_not(column: LoneColumn) -> str:
    """Say why a column cannot be tested; empty where it can."""
    seen = column.cells.values.size
    if column.size and seen == 0 and column.cells.lower.size > 1:
        return ""
    if seen == 0:
        return NEVER_SEEN
    if seen < FEWEST_SEEN:
        return f"{seen} value{'' if seen == 1 else 's'} seen; a test needs {FEWEST_SEEN}"
    if np.ptp(column.cells.values) == 0.0:
        return CONSTANT
    return ""


def scale_of(column: LoneColumn, transform: Transform) -> Transform:
    """Return the transform of a column, with its power learned where it has none; check its domain."""
    x = column.cells.values
    low = x < transform.least if transform.closed else x <= transform.least
    if low.any():
        raise InputError(f"{transform.name} is for values above {transform.least:g}")
    if isinstance(transform, BoxCox) and transform.power is None:
        return learn_power(column.cells, transform)
    return transform


def judge_columns(
    table: CheckedTable,
    completed: list[Floats] | None,
    simulations: int,
    seed: int,
    advance: Callable[[], None],
) -> tuple[NormalityTest, ...]:
    """Test every column: on its own where its own value alone hides it, else completed values."""

    @cache
    def complete_null() -> Floats:
        # The same for all columns, and needed by few.
        rng = keyed_generator(seed, Purpose.DIAGNOSE, COMPLETE_COLUMN)
        draws = (rng.standard_normal(table.rows.size) for _ in range(simulations))
        return np.array([_complete_distances(x).square for x in draws])

    def one(j: int) -> NormalityTest:
        name, column = table.names[j], columns[j]
        if isinstance(column, str) and completed is not None:
            pairs = [_complete_distances(Y[:, j]) for Y in completed]
            return NormalityTest.of(name, mean_distances(pairs), complete_null(), "completed")
        reason = column if isinstance(column, str) else why_not(column)
        if isinstance(column, str) or reason:
            return NormalityTest.absent(name, reason)
        try:
            column = column.on(scale_of(column, table.scales[j]))
        except InputError as error:
            return NormalityTest.absent(name, f"{WRONG_SCALE}: {error}")
        rng = keyed_generator(seed, Purpose.DIAGNOSE, BY_COLUMN, j)
        return judge_cells(name, column, simulations, rng)

    # What threads share is made before they start.
    columns = table.columns
    if completed is not None:
        complete_null()
    tests = []
    for test in map_in_order(one, range(len(table.names))):
        tests.append(test)
        advance()
    adjusted = holm(np.array([test.tail_p_value for test in tests]))
    return tuple(replace(t, adjusted=float(a)) for t, a in zip(tests, adjusted, strict=True))


def mean_distances(pairs: list[Distances]) -> Distances:
    """Average over completed tables."""
    square, largest = np.mean(pairs, axis=0)
    return Distances(float(square), float(largest))


def _complete_distances(x: Floats) -> Distances:
    return Distances(*normal_distances((x - x.mean()) / x.std()))


def suggest_transforms(
    table: CheckedTable,
    tests: tuple[NormalityTest, ...],
    skip: set[str],
    simulations: int,
    seed: int,
) -> dict[str, str]:
    """Return, for columns that do not look normal, a scale on which they look better.

    Columns to ``skip`` do not look as their rule would leave them: no scale repairs that.
    """
    out: dict[str, str] = {}
    for j, test in enumerate(tests):
        if test.basis != "cells" or not test.p_value < DOUBTFUL or test.name in skip:
            continue
        column = table.columns[j]
        assert not isinstance(column, str)
        best = best_scale(column.cells)
        on_best = column.on(best)
        if best.name == scale_of(column, table.scales[j]).name or why_not(on_best):
            continue
        rng = keyed_generator(seed, Purpose.DIAGNOSE, SUGGESTING, j)
        if judge_cells(test.name, on_best, simulations, rng).tail_p_value > test.tail_p_value:
            out[test.name] = best.name
            if isinstance(best, BoxCox) and best.power is not None:
                # As ``fit`` reads it, with a power to two digits.
                out[test.name] = f"{best.word}({round(best.power, 2):g})"
    return out


def best_scale(cells: ColumnCells) -> Transform:
    """Return the simplest scale whose likelihood is nearly the greatest.

    Likelihoods are those of the cells in original units, so they can be compared.
    """
    scales = list(_allowed(cells))
    values = [cells.fit(scale).log_likelihood for scale in scales]
    values = [value if math.isfinite(value) else -math.inf for value in values]
    enough = max(values) - NEARLY_AS_GOOD
    return next(s for s, value in zip(scales, values, strict=True) if value >= enough)


def _allowed(cells: ColumnCells) -> Iterator[Transform]:
    """Yield the scales that the values allow, the simplest first."""
    yield Identity()
    x = cells.values
    # A cell said to lie below zero has no place on these scales.
    inside = bool((cells.upper[np.isfinite(cells.upper)] > 0.0).all())
    positive = inside and bool((x > 0.0).all())
    if positive:
        yield Log()
        # At zero a square root has no derivative: its likelihood would be infinite.
        yield SquareRoot()
    for kind in (BoxCox(), YeoJohnson()) if positive else (YeoJohnson(),):
        try:
            yield learn_power(cells, kind)
        except InputError:
            continue
