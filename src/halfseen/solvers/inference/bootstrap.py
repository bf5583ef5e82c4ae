"""The bootstrap: refits of rows drawn anew, each started from the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import share, whole_number
from halfseen.data.interval_data import IntervalData
from halfseen.errors import InputError
from halfseen.parallel import single_blas_thread
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.simulate import simulate
from halfseen.solvers.full_information.full import full, m_step_for
from halfseen.solvers.full_information.learn import Settings, learn
from halfseen.solvers.full_information.problem import read_problem
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.inference.intervals import Limits

if TYPE_CHECKING:
    from halfseen.solvers.result import Fit

Floats = NDArray[np.float64]

KINDS = ("rows", "parametric")
# Monte-Carlo error of a refit, as a share of the statistical one: it adds 4 % to a variance.
ACCURACY = 0.2
# Most steps of a refit.
STEPS = 200


@dataclass(frozen=True)
class Bootstrap:
    """Estimates from rows drawn anew.

    Attributes
    ----------
    mean : array of shape (replicates, d)
    covariance : array of shape (replicates, d, d)
    statistic : array of shape (replicates, ...) or None
        What the given function came to in each.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 300), rule, random_state=0)
    >>> ratio = lambda mean, covariance: mean[0] / covariance[0, 0] ** 0.5
    >>> drawn = fit.bootstrap(20, statistic=ratio, random_state=0)
    >>> drawn.mean.shape, drawn.covariance.shape, drawn.statistic.shape
    ((20, 1), (20, 1, 1), (20,))
    """

    mean: Floats
    covariance: Floats
    statistic: Floats | None = None

    @property
    def correlation(self) -> Floats:
        """Correlations of each replicate."""
        scale = np.sqrt(np.einsum("bii->bi", self.covariance))
        return np.asarray(self.covariance / (scale[:, :, None] * scale[:, None, :]))

    def standard_error(self, of: str = "mean") -> Floats:
        """Return the spread over replicates of mean, covariance, correlation or statistic.

        Parameters
        ----------
        of : {"mean", "covariance", "correlation", "statistic"}

        Returns
        -------
        array

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 300), rule, random_state=0)
        >>> ratio = lambda mean, covariance: mean[0] / covariance[0, 0] ** 0.5
        >>> drawn = fit.bootstrap(20, statistic=ratio, random_state=0)
        >>> bool(0.03 < drawn.standard_error("statistic") < 0.2)
        True
        """
        return np.asarray(np.std(self._values(of), axis=0, ddof=1))

    def interval(self, of: str = "mean", level: float = 0.95) -> Limits:
        """Percentile interval of "mean", "covariance", "correlation" or "statistic".

        Parameters
        ----------
        of : {"mean", "covariance", "correlation", "statistic"}
        level : float

        Returns
        -------
        Limits
            ``lower`` and ``upper``.

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 300), rule, random_state=0)
        >>> ratio = lambda mean, covariance: mean[0] / covariance[0, 0] ** 0.5
        >>> drawn = fit.bootstrap(20, statistic=ratio, random_state=0)
        >>> lower, upper = drawn.interval("statistic", level=0.9)
        >>> bool(lower < 1.0 < upper)
        True
        """
        level = share("level", level)
        tail = 0.5 * (1.0 - level)
        low, high = np.quantile(self._values(of), [tail, 1.0 - tail], axis=0)
        return Limits(low, high)

    def _values(self, of: str) -> Floats:
        choices = ("mean", "covariance", "correlation", "statistic")
        if not isinstance(of, str) or of not in choices:
            raise InputError(f"choose one of {', '.join(choices)}; got {of!r}.")
        values = getattr(self, of)
        if values is None:
            raise InputError("no statistic was given to bootstrap(statistic=...).")
        return np.asarray(values)


def bootstrap(
    fit: Fit,
    replicates: int = 200,
    kind: str = "rows",
    statistic: Callable[[Floats, Floats], ArrayLike] | None = None,
    random_state: RandomState = None,
) -> Bootstrap:
    """Refit rows drawn anew; see ``Fit.bootstrap``."""
    replicates = whole_number("replicates", replicates, 2)
    means, covariances, values = [], [], []
    for found in refits(fit, replicates, kind, seed_of(random_state)):
        means.append(found.gaussian.mean)
        covariances.append(found.gaussian.covariance)
        if statistic is not None:
            g = found.gaussian
            values.append(np.asarray(statistic(g.mean, g.covariance), dtype=float))
    return Bootstrap(np.array(means), np.array(covariances), np.array(values) if values else None)


def refits(fit: Fit, count: int, kind: str, seed: int) -> Iterator[Fit]:
    """Yield fits of rows drawn anew, each started from the fit itself."""
    source = fit.source
    held = source is not None and source.X is not None
    if source is None or not held or fit.method != "full":
        raise InputError(
            'the bootstrap refits by method="full", and needs the table; this fit was made by '
            f"{fit.method!r}{'' if held else ', and does not hold its table (a saved fit never does)'}."
        )
    if kind not in KINDS:
        raise InputError(f"kind must be {' or '.join(KINDS)}; got {kind!r}.")
    rule = source.missingness
    if kind == "parametric" and rule is None:
        raise InputError(
            'a parametric bootstrap hides values by the rule, and none was stated; use kind="rows".'
        )
    if kind == "parametric" and isinstance(source.X, IntervalData):
        raise InputError(
            "a parametric bootstrap needs to know what each value was compared with, which "
            'IntervalData says of hidden cells alone; use kind="rows".'
        )
    options: dict[str, Any] = dict(source.options)
    if "penalty" in fit.history:
        options["penalty"] = fit.history["penalty"]
    shared: dict[str, Any] = {"accuracy": ACCURACY, "standard_errors": False, "start": fit.gaussian}
    if kind == "parametric":
        assert rule is not None
        for k in range(count):
            drawn = int(keyed_generator(seed, Purpose.BOOTSTRAP, k).integers(2**63))
            X = simulate(fit.gaussian, rule.for_columns(fit.names), fit.rows, drawn)
            mask = source.missing_at_random
            if mask is not None:
                X[np.asarray(mask)] = np.nan
            yield full(
                X, rule, missing_at_random=mask, random_state=drawn, n_jobs=source.n_jobs,
                **shared, **options,
            )  # fmt: skip
        return
    problem = read_problem(source.X, rule, source.missing_at_random, source.n_jobs)
    m_step = m_step_for(problem.overview, **options)[0]
    start = problem.from_units(fit.gaussian.mean, fit.gaussian.covariance)
    for k in range(count):
        rng = keyed_generator(seed, Purpose.BOOTSTRAP, k)
        rows = rng.integers(fit.rows, size=fit.rows)
        settings = Settings(
            ACCURACY,
            STEPS,
            False,
            int(rng.integers(2**63)),
            False,
            source.n_jobs,
        )
        with single_blas_thread():
            drawn_rows = HeldRows(problem.take(rows), source.n_jobs)
            found = learn(drawn_rows, m_step, start, settings, [], follow_start=True)
        # Outside: whoever asked goes on with the threads it had.
        yield found
