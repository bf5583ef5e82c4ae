"""Observed-data log-likelihood: exact for up to two confined cells in a row; tests of nested fits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from halfseen.checks import whole_number
from halfseen.data.interval_data import IntervalData
from halfseen.data.table import read_table
from halfseen.data.transforms import log_derivatives
from halfseen.errors import InputError, NotIdentifiedError
from halfseen.missingness.holes import Holes
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.seeds import Purpose, RandomState, seed_of
from halfseen.solvers.full_information.expectation import (
    Block,
    Parameters,
    Sampling,
    count_sampled,
    expect,
    lay_out,
)
from halfseen.solvers.full_information.full import full
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.inference.fitted_table import read_source, seen_values
from halfseen.solvers.inference.refits import FEWEST_USABLE, simulated_tables
from halfseen.solvers.loss import Loss, losing

if TYPE_CHECKING:
    from halfseen.results import Fit
    from halfseen.solvers.result import Estimate, Source

Floats = NDArray[np.float64]
# Mean, covariance and degrees of freedom.
Place = tuple[Floats, Floats, float]
Rows = slice | NDArray[np.intp]

# Independently shifted copies of a point set, whose scatter gives the standard error.
SHIFTS = 8
# Points in a set: at least and at most so many at first, as far as the number of draws in all allows.
FEWEST_POINTS, MOST_POINTS, MOST_DRAWS = 8, 128, 2**25
# Then more, and up to the last, until the standard error of the sum is below this: differences of less
# than a unit decide nothing between models. Errors of a lattice go down with the number of its points;
# so many times as many as that says are taken.
TOLERANCE, LAST_POINTS, MARGIN = 0.25, 1024, 1.2
# Fits that stop at a Monte-Carlo error may fall short of the top of their likelihood by so much, twice.
SLACK = 2.0
# Of Monte-Carlo standard errors, for the range in which the p-value lies.
RANGE = 2.0


@dataclass(frozen=True)
class LogLikelihood:
    """A log-likelihood, and the Monte-Carlo standard error of its estimate (0 where it is exact)."""

    value: float
    standard_error: float

    def __float__(self) -> float:
        return self.value

    @classmethod
    def of(cls, fit: Estimate) -> LogLikelihood:
        """Return the log-likelihood of the table of a fit."""
        return cls.of_rows(*seen_log_likelihoods(fit))

    @classmethod
    def of_rows(cls, values: Floats, variance: Floats) -> LogLikelihood:
        """Add up the log-likelihoods of rows, and the variances of their estimates."""
        return cls(float(values.sum()), float(np.sqrt(variance.sum())))


def seen_log_likelihoods(
    fit: Estimate, X: Any = None, missingness: Any = None, missing_at_random: Any = None
) -> tuple[Floats, Floats]:
    """Log-likelihood of what is seen of each row, in original units, and the variance of its estimate.

    Parameters
    ----------
    X, missingness, missing_at_random
        As in ``Fit.impute``.
    """
    problem = read_source(fit, X, missingness, missing_at_random)
    place = problem.from_units(fit.gaussian.mean, fit.gaussian.covariance)
    values, variance = row_log_likelihoods(problem.Y, problem.holes, *place, degrees=fit.degrees)
    if problem.kept is not None:
        values = values + problem.kept
    # Densities of seen values are per unit of the table, not per standard deviation, nor per unit of a
    # transformed scale.
    values = values - ~problem.hidden @ np.log(problem.scale)
    if fit.transforms is not None:
        seen = np.where(problem.hidden, np.nan, seen_values(fit, X))
        values = values + log_derivatives(seen, fit.transforms, fit.names)
    return values, variance


def row_log_likelihoods(
    Y: Floats,
    holes: Holes,
    mean: Floats,
    covariance: Floats,
    seed: int = 0,
    n_jobs: int | None = None,
    degrees: float = math.inf,
) -> tuple[Floats, Floats]:
    """Log-likelihood of what is seen of each row, and the variance of its estimate.

    Where sets are probabilities of being shown, the probabilities of the seen cells, which do not depend
    on the parameters, are left out.
    """

    def ask(rows: Rows, points: int) -> tuple[Floats, Floats]:
        place = mean, covariance, degrees
        logs = _shifted_logs(Y[rows], holes.take(rows), place, points, seed, n_jobs)
        value, weights = _averages(logs)
        relative = _variances(weights)
        # The logarithm of an average is low by half its relative variance.
        return value + 0.5 * relative, relative

    return _refined(holes, ask)


def row_log_ratios(
    Y: Floats,
    holes: Holes,
    above: Place,
    below: Place,
    seed: int = 0,
    n_jobs: int | None = None,
    below_holes: Holes | None = None,
) -> tuple[Floats, Floats]:
    """How much likelier each row is at one place than at another, and the variance.

    Both are estimated with the same points, so that most of their noise cancels. ``below_holes`` are the
    holes at the second place, where values were lost in another share there.
    """
    asked = (holes, above), (holes if below_holes is None else below_holes, below)

    def ask(rows: Rows, points: int) -> tuple[Floats, Floats]:
        found = [
            _averages(_shifted_logs(Y[rows], own.take(rows), at, points, seed, n_jobs))
            for own, at in asked
        ]
        (high, more), (low, less) = found
        bias = 0.5 * (_variances(more) - _variances(less))
        return high - low + bias, _variances(more - less)

    return _refined(holes, ask)


def _refined(
    holes: Holes, ask: Callable[[Rows, int], tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    """Ask all rows, and where their sum is not known well enough, those that are sampled once more.

    All of these: rows that happen to be overestimated seem to be known better than others, and to keep
    their answers would make the sum too large.
    """
    sampled = count_sampled(holes)
    points = int(np.clip(MOST_DRAWS // (SHIFTS * max(1, sampled)), FEWEST_POINTS, MOST_POINTS))
    values, variance = ask(slice(None), points)
    inexact = np.flatnonzero(variance)
    while variance.sum() > TOLERANCE**2 and points < LAST_POINTS:
        more = MARGIN * points * float(np.sqrt(variance.sum())) / TOLERANCE
        points = min(int(np.ceil(more)), LAST_POINTS)
        values[inexact], variance[inexact] = ask(inexact, points)
    return values, variance


def _shifted_logs(
    Y: Floats,
    holes: Holes,
    place: Place,
    points: int,
    seed: int,
    n_jobs: int | None,
) -> Floats:
    """Log-likelihoods of rows at some parameters, by independent shifts: (shifts, rows)."""
    layout, sampled = lay_out(holes), count_sampled(holes)
    with single_blas_thread():
        at = Parameters.of(*place)

    def work(place: tuple[int, Block]) -> Floats:
        shift, block = place
        sampling = Sampling(points, seed, shift, Purpose.LIKELIHOOD, at)
        return expect(Y, block, layout.confines, at, sampling)[1]

    places = [(k, block) for k in range(SHIFTS if sampled else 1) for block in layout.blocks]
    with single_blas_thread():
        found = list(map_in_order(work, places, n_jobs))
    return np.concatenate(found).reshape(-1, len(Y))


def _averages(logs: Floats) -> tuple[Floats, Floats]:
    """Logarithms of averages over shifts, and the shifts as multiples of their average."""
    high = logs.max(axis=0)
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isneginf(high), 1.0, np.exp(logs - high))
    mean = weights.mean(axis=0)
    return high + np.log(mean), weights / mean


def _variances(weights: Floats) -> Floats:
    """Variances of averages over independent shifts; none where there is one, which is exact."""
    count = len(weights)
    return np.zeros(weights.shape[1]) if count == 1 else weights.var(axis=0, ddof=1) / count


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
        Probability of a larger statistic, divided by ``factor``, if the smaller model is true.
    monte_carlo_error : float
        Standard error of the statistic that comes from estimating the likelihoods.
    p_value_range : tuple of float
        P-values two such errors above and below.
    factor : float
        What the statistic is on average if the smaller model is true, by degree of freedom: Bartlett's
        factor, from simulated tables. The p-values are those of the statistic divided by it. 1 where no
        tables were simulated.
    simulated : array or None
        Statistics of the simulated tables.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
    >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
    >>> apart = hs.fit(X, rule, covariance="diagonal", random_state=0)
    >>> test = hs.likelihood_ratio_test(apart, fit)
    >>> test.degrees_of_freedom, test.p_value < 1e-10
    (1, True)
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float
    monte_carlo_error: float
    p_value_range: tuple[float, float]
    factor: float = 1.0
    simulated: NDArray[np.float64] | None = None


def likelihood_ratio_test(
    small: Fit, large: Fit, replicates: int = 0, random_state: RandomState = None
) -> RatioTest:
    """Test a fit against one of the same table in which more is free.

    Both likelihoods are estimated with the same random numbers, so that most of their noise cancels.
    The p-value is that of many rows. With few, say less than 200, a true small model is rejected too
    often: ``replicates`` tables are then drawn from it, and the statistic divided by what it is on
    average there (Bartlett's factor).

    Parameters
    ----------
    small, large : Fit
        By ``method="full"``; the model of ``small`` must be a special case of that of ``large``, such as
        ``covariance="diagonal"`` (independence) or a known ``mean=`` against a free one.
    replicates : int
        Tables to be simulated from ``small``, such as 100; each is fitted twice.
    random_state : int, Generator or None
        Seed of the simulation.

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
    (of_small, fewer), (of_large, more) = _testable("small", small), _testable("large", large)
    freedom = more - fewer
    if freedom < 1:
        raise InputError(
            f"large must have more free parameters than small; they have {more} and {fewer}."
        )
    if not _same_table(of_small.X, of_large.X):
        raise InputError("both fits must be of the same table; these are not.")
    problem, other = (read_source(replace(fit, loss=None), None) for fit in (large, small))
    if not same_holes(problem, other):
        raise InputError("both fits must be under the same rule; these hide values differently.")
    if not _same_losses(large.loss, small.loss):
        raise InputError(
            "both fits must have the same losses; that nothing was lost is tested by "
            'fit.loss.p_value of a fit with loss="learn".'
        )
    statistic, error = _statistic(problem, small, large, of_large)
    if statistic < -max(SLACK, 4.0 * error):
        raise InputError(
            f"small is likelier than large, by {-0.5 * statistic:.3g} in log-likelihood, so it "
            "cannot be a special case of it."
        )
    simulated, factor = None, 1.0
    if whole_number("replicates", replicates, 0):
        asked = replicates, seed_of(random_state)
        simulated = _simulated_statistics(small, of_small, of_large, *asked)
        # Where a few tables give less than the theory it is chance, or next to nothing.
        factor = max(float(simulated.mean()) / freedom, 1.0)
    low, high = statistic - RANGE * error, statistic + RANGE * error
    p_value, of_high, of_low = (
        float(chdtrc(freedom, max(value / factor, 0.0))) for value in (statistic, high, low)
    )
    return RatioTest(statistic, freedom, p_value, error, (of_high, of_low), factor, simulated)


def _testable(name: str, fit: Fit) -> tuple[Source, int]:
    """Return what a fit came from, and how many parameters it has; raise where it cannot be tested."""
    source: Source | None = getattr(fit, "source", None)
    by_full = getattr(fit, "method", None) == "full"
    if not by_full or source is None or source.X is None or fit.parameters is None:
        raise InputError(f'{name} must be a fit by method="full" that holds its table.')
    if fit.precision is not None or fit.history.get("covariance_structure") == "shrinkage":
        raise InputError(
            f"{name} is regularised: it does not maximise the likelihood, so the test does not "
            "apply."
        )
    return source, fit.parameters


def _statistic(problem: Problem, small: Fit, large: Fit, source: Source) -> tuple[float, float]:
    """Return twice the difference of the log-likelihoods, and its Monte-Carlo standard error."""
    above, below = (losing(problem, fit.loss, *source.given) for fit in (large, small))
    places = [
        (*problem.from_units(fit.gaussian.mean, fit.gaussian.covariance), fit.degrees)
        for fit in (large, small)
    ]
    ratios, variance = row_log_ratios(
        problem.Y, above.holes, places[0], places[1], below_holes=below.holes
    )
    if above.kept is not None and below.kept is not None:
        ratios = ratios + above.kept - below.kept
    return 2.0 * float(ratios.sum()), 2.0 * float(np.sqrt(variance.sum()))


def _simulated_statistics(
    small: Fit, of_small: Source, of_large: Source, count: int, seed: int
) -> Floats:
    """Return the statistics of tables drawn from the smaller model."""
    out = []
    for drawn, X, mask in simulated_tables(small, count, seed):
        shared: dict[str, Any] = {
            "missing_at_random": mask, "standard_errors": False, "start": small.gaussian,
            "random_state": drawn, "n_jobs": of_small.n_jobs,
        }  # fmt: skip
        try:
            values = [
                LogLikelihood.of(
                    full(X, of_small.missingness, loss=source.loss, **shared, **source.options)
                ).value
                for source in (of_large, of_small)
            ]
        except NotIdentifiedError:
            # A column of which next to nothing is seen.
            continue
        out.append(max(2.0 * (values[0] - values[1]), 0.0))
    if len(out) < FEWEST_USABLE * count:
        raise InputError(
            f"{count - len(out)} of {count} simulated tables show next to nothing of some column, "
            "so there is no factor; leave replicates out."
        )
    return np.array(out)


def _same_losses(a: Loss | None, b: Loss | None) -> bool:
    """Whether the same shares are learned, and the same are known."""
    if a is None or b is None:
        return a is b
    same = np.array_equal(a.group, b.group) and np.array_equal(a.learned, b.learned)
    return same and np.array_equal(a.share[~a.learned], b.share[~b.learned])


def _same_table(a: Any, b: Any) -> bool:
    if isinstance(a, IntervalData) or isinstance(b, IntervalData):
        both = isinstance(a, IntervalData) and isinstance(b, IntervalData)
        return both and np.array_equal(a.lower, b.lower) and np.array_equal(a.upper, b.upper)
    return np.array_equal(read_table(a).values, read_table(b).values, equal_nan=True)


def same_holes(a: Problem, b: Problem) -> bool:
    """Whether hidden cells can be in the same places, to rounding."""
    if not np.array_equal(a.hidden, b.hidden):
        return False
    for x, y in zip(_ends(a), _ends(b), strict=True):
        if x.shape != y.shape or not np.allclose(x, y, rtol=1e-9, atol=1e-9, equal_nan=True):
            return False
    return True


def _ends(problem: Problem) -> tuple[NDArray[np.float64], ...]:
    """Return ends of sets, nodes and signs of inequalities of all hidden cells, in table units."""
    sets, bound = problem.holes.sets, problem.holes.inequalities
    index = problem.holes.index[problem.hidden].astype(np.intp)
    pieces, nodes = sets.take(index), problem.holes.set_column[index]
    columns = np.repeat(nodes, np.diff(pieces.start))
    at_nodes = np.repeat(nodes, np.diff(pieces.node_start))
    centre, scale = problem.centre, problem.scale
    ends = (
        centre[columns] + scale[columns] * pieces.lower,
        centre[columns] + scale[columns] * pieces.upper,
        centre[at_nodes] + scale[at_nodes] * pieces.node,
    )
    return ends if bound is None else (*ends, bound.sign.astype(float))
