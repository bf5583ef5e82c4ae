"""Rubin's rules: one answer from those of several completed tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from halfseen.checks import positive_number, real_array, share
from halfseen.errors import InputError
from halfseen.solvers.inference.intervals import Limits

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pooled:
    """An estimate from several completed tables.

    Attributes
    ----------
    estimate, standard_error : arrays
        The average, and the root of the within-variance plus (1 + 1/m) times the between-variance.
    degrees_of_freedom : array
        Of the t distribution that the estimate follows, about.
    missing_information : array
        Share of the information that the holes took.

    Examples
    --------
    >>> import halfseen as hs
    >>> pooled = hs.pool(estimates=[1.0, 1.2, 0.8], variances=[0.04, 0.05, 0.03])
    >>> round(float(pooled.estimate), 6), round(float(pooled.standard_error), 3)
    (1.0, 0.306)
    >>> round(float(pooled.missing_information), 2)
    0.57
    """

    estimate: Floats
    standard_error: Floats
    degrees_of_freedom: Floats
    missing_information: Floats

    def interval(self, level: float = 0.95) -> Limits:
        """Confidence interval, from the t distribution.

        Parameters
        ----------
        level : float

        Returns
        -------
        Limits
            ``lower`` and ``upper``.

        Examples
        --------
        >>> import halfseen as hs
        >>> lower, upper = hs.pool([1.0, 1.2, 0.8], [0.04, 0.05, 0.03]).interval(0.9)
        >>> round(float(lower), 2), round(float(upper), 2)
        (0.41, 1.59)
        """
        level = share("level", level)
        q = stdtrit(self.degrees_of_freedom, 0.5 + 0.5 * level)
        return Limits(
            self.estimate - q * self.standard_error, self.estimate + q * self.standard_error
        )


def pool(
    estimates: ArrayLike, variances: ArrayLike, degrees_of_freedom: float | None = None
) -> Pooled:
    """Combine estimates from completed tables, made by ``fit.draw_imputations``.

    Parameters
    ----------
    estimates : array-like of shape (m, ...)
        What your own estimator said for each table.
    variances : array-like of the same shape
        Its squared standard errors.
    degrees_of_freedom : float, optional
        Those of the analysis of a complete table, for the small-sample rule of Barnard and
        Rubin (1999); infinite by default.

    Returns
    -------
    Pooled

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([0.5], [[1.0]]), rule, 500)
    >>> tables = hs.fit(X, rule, random_state=0).draw_imputations(m=10, random_state=0)
    >>> pooled = hs.pool(tables.mean(axis=1), tables.var(axis=1) / 500)
    >>> bool(abs(pooled.estimate[0] - 0.5) < 0.2)
    True
    """
    Q, U = real_array("estimates", estimates), real_array("variances", variances)
    if Q.shape != U.shape or Q.ndim == 0:
        raise InputError(
            f"estimates and variances must have the same shape; got {Q.shape} and {U.shape}."
        )
    m = len(Q)
    if m < 2:
        raise InputError(f"at least 2 completed tables are needed; got {m}.")
    if not np.isfinite(Q).all():
        raise InputError("estimates must be finite; got NaN or infinity.")
    if not (U >= 0.0).all():
        raise InputError("variances must be at least 0, and not NaN.")
    with np.errstate(over="ignore", invalid="ignore"):
        within, between = U.mean(axis=0), Q.var(axis=0, ddof=1)
        total = within + (1.0 + 1.0 / m) * between
    if not np.isfinite(total).all():
        raise InputError(
            "estimates and variances are too large: what they come to is more than a computer can "
            "hold. Change the unit."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.where(total > 0.0, (1.0 + 1.0 / m) * between / total, 0.0)
        freedom = (m - 1) / missing**2
        if degrees_of_freedom is not None:
            v = positive_number("degrees_of_freedom", degrees_of_freedom)
            observed = (v + 1.0) / (v + 3.0) * v * (1.0 - missing)
            # Where all variance is between tables, the tables alone say how much there is.
            freedom = np.where(observed > 0.0, 1.0 / (1.0 / freedom + 1.0 / observed), freedom)
    return Pooled(Q.mean(axis=0), np.sqrt(total), np.asarray(freedom), np.asarray(missing))
