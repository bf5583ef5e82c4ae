"""The bootstrap: what refits of rows drawn anew say of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import share, whole_number
from halfseen.errors import ApproximationWarning, InputError, warn
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.inference.intervals import Limits
from halfseen.solvers.inference.refits import refits
from halfseen.solvers.result import Estimate

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        shape = "" if self.statistic is None else f", statistic of shape {self.statistic.shape[1:]}"
        return f"Bootstrap(replicates={len(self.mean)}, columns={self.mean.shape[1]}{shape})"

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
    fit: Estimate,
    replicates: int = 200,
    kind: str = "rows",
    statistic: Callable[[Floats, Floats], ArrayLike] | None = None,
    random_state: RandomState = None,
) -> Bootstrap:
    """Refit rows drawn anew; see ``Fit.bootstrap``."""
    replicates = whole_number("replicates", replicates, 2)
    means, covariances, values = [], [], []
    for refit in refits(fit, replicates, kind, seed_of(random_state)):
        g = refit.gaussian
        means.append(g.mean)
        covariances.append(g.covariance)
        if statistic is not None:
            values.append(np.asarray(statistic(g.mean, g.covariance), dtype=float))
    if len(means) < replicates:
        warn(
            f"{replicates - len(means)} of {replicates} simulated tables show next to nothing of some "
            "column, and were left out.",
            ApproximationWarning,
        )
    if len(means) < 2:
        raise InputError('less than two simulated tables could be fitted; use kind="rows".')
    return Bootstrap(np.array(means), np.array(covariances), np.array(values) if values else None)
