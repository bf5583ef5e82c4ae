"""How sure a fit is: standard errors, and intervals from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import real_array, share
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.solvers.inference.intervals import (
    Fisher,
    Intervals,
    Limits,
    Location,
    Methods,
    Numbers,
    Product,
    Spread,
    put_variances,
)
from halfseen.theta import pack, places, unpack

Floats = NDArray[np.float64]

# Steps of central differences, in standard errors: small next to the curvature of a smooth
# function, large next to the rounding of its values.
STEP = 1e-3
# Standard errors of correlations, on Fisher's scale, that are rounding.
KNOWN = 1e-7


class Estimate(NamedTuple):
    """The value of a function of the parameters, and its standard error."""

    value: Any
    standard_error: Any


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """Standard errors of everything that was learned.

    Attributes
    ----------
    mean, standard_deviation : arrays of shape (d,)
    covariance, correlation : arrays of shape (d, d)
    parameters : array of shape (d + d(d+1)/2, d + d(d+1)/2) or None
        Covariance of the estimates of the mean and of Σ_ij for i >= j, row by row; None where only
        parameters of two columns at a time were looked at.
    gaussian : Gaussian
        The estimate.
    missing : array or None
        Shares of the information that the holes took, in independent directions, growing.
    label : callable or None
        Puts names on vectors and matrices, where the table was a frame that has labels.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
    >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
    >>> errors = fit.standard_errors
    >>> errors.mean.round(2), errors.correlation[0, 1].round(2)
    (array([0.04, 0.05]), np.float64(0.03))
    >>> bool(errors.mean[1] > 1.0 / 500**0.5)  # more than with nothing hidden
    True
    """

    mean: Floats
    covariance: Floats
    correlation: Floats
    parameters: Floats | None
    gaussian: Gaussian
    missing: Floats | None = None
    label: Callable[[Floats], Any] | None = None

    @classmethod
    def from_parameters(
        cls, gaussian: Gaussian, parameters: Floats, missing: Floats | None = None
    ) -> StandardErrors:
        """Take every standard error from the covariance of all parameters."""
        d = gaussian.dimension
        place, V = places(d), parameters
        diagonal = np.diag(place)
        ii, jj = np.broadcast_to(diagonal[:, None], (d, d)), np.broadcast_to(diagonal, (d, d))
        return cls(
            np.sqrt(np.diag(V)[:d]),
            np.sqrt(V[place, place]),
            correlation_errors(
                gaussian,
                (V[place, place], V[place, ii], V[place, jj]),
                (V[ii, ii], V[ii, jj], V[jj, jj]),
            ),
            V,
            gaussian,
            missing,
        )

    @property
    def standard_deviation(self) -> Floats:
        """Standard errors of the standard deviations: se(σ²)/(2σ)."""
        errors = np.diag(self.covariance) / (2.0 * self.gaussian.standard_deviations)
        return errors if self.label is None else self.label(errors)

    def labelled(self, label: Callable[[Floats], Any]) -> StandardErrors:
        """Return the same with labels on vectors and matrices."""
        return replace(
            self,
            mean=label(self.mean),
            covariance=label(self.covariance),
            correlation=label(self.correlation),
            label=label,
        )

    def vector(self) -> Floats:
        """Return the standard errors of (μ, Σ_ij for i >= j)."""
        return pack(np.asarray(self.mean), np.asarray(self.covariance))

    def of(self, function: Callable[[Floats, Floats], ArrayLike]) -> Estimate:
        """Value and standard error of a smooth function of mean and covariance (delta method).

        Parameters
        ----------
        function : callable
            ``function(mean, covariance)`` returns a number or an array.

        Returns
        -------
        Estimate
            ``value`` and ``standard_error``, of the shape that the function returns.

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 2000), rule, random_state=0)
        >>> ratio = fit.standard_errors.of(lambda mean, covariance: mean[0] / covariance[0, 0] ** 0.5)
        >>> bool(0.01 < ratio.standard_error < 0.1)
        True
        """
        if self.parameters is None:
            raise InputError(
                f"with {self.gaussian.dimension} columns only standard errors of means, covariances "
                "and correlations are computed; use fit.bootstrap for functions of more parameters."
            )
        mean, covariance = self.gaussian.mean, self.gaussian.covariance
        value = _answer(function, mean.copy(), covariance.copy())
        # Along each principal axis of the uncertainty, a thousandth of its length.
        lengths, axes, scale = principal_axes(self.parameters)
        total = np.zeros(value.shape)
        for length, axis in zip(lengths, axes.T, strict=True):
            if length <= 0.0:
                continue
            move, change = unpack(STEP * (np.sqrt(length) * axis * scale), mean.size)
            up = _answer(function, mean + move, covariance + change)
            down = _answer(function, mean - move, covariance - change)
            total += ((up - down) / (2.0 * STEP)) ** 2
        error = np.sqrt(total)
        return Estimate(value[()], error[()])

    def intervals(self, level: float = 0.95) -> Intervals:
        """Confidence intervals for every parameter.

        Parameters
        ----------
        level : float

        Returns
        -------
        Intervals

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
        >>> wide, narrow = fit.standard_errors.intervals(0.99), fit.standard_errors.intervals(0.5)
        >>> bool(wide.mean.lower[0] < narrow.mean.lower[0])
        True
        """
        level = share("level", level)
        plain = self if self.label is None else replace(self, label=None)
        return Intervals(level, "wald", partial(limits_of, plain, level=level), self.label)

    @property
    def rows_for_variances(self) -> Floats:
        """How many complete rows would know as much about each variance: its error is σ² √(2/n)."""
        variance, error = np.diag(self.gaussian.covariance), np.diag(np.asarray(self.covariance))
        with np.errstate(divide="ignore"):
            return np.asarray(2.0 * (variance / error) ** 2)


def limits_of(errors: StandardErrors, name: str, level: float) -> tuple[Limits, Methods]:
    """Return intervals of one kind of parameters, without labels, and how they were found."""
    numbers = numbers_of(errors, name)
    found = numbers.by_errors(level)
    if name == "covariance":
        # A variance is positive: by its standard deviation.
        ends, _ = limits_of(errors, "standard_deviation", level)
        # None is larger than the product of its deviations, however little is known of it.
        largest = np.outer(ends.upper, ends.upper)
        for matrix in found:
            np.clip(matrix, -largest, largest, out=matrix)
        put_variances(found, ends)
    return found, numbers.methods("wald")


def numbers_of(errors: StandardErrors, name: str) -> Numbers:
    """Return the estimates of one kind, on the scale where they are nearly normal."""
    g, rows = errors.gaussian, errors.rows_for_variances
    # Labels, where there are any, are put on anew by whoever wants them.
    with np.errstate(divide="ignore", invalid="ignore"):
        if name == "mean":
            error = np.asarray(errors.mean)
            known = (g.standard_deviations / error) ** 2
            return Numbers(Location(), g.mean, error, rows, known)
        if name == "standard_deviation":
            error = np.sqrt(0.5 / rows)
            return Numbers(Spread(), np.log(g.standard_deviations), error, rows, rows, np.exp)
        if name == "covariance":
            few, error = np.minimum(rows[:, None], rows), np.asarray(errors.covariance)
            variance = np.diag(g.covariance)
            known = (np.outer(variance, variance) + g.covariance**2) / error**2
            return Numbers(Product(), g.covariance, error, few, known)
        R = g.correlation
        # artanh ρ has the error se(ρ)/(1 − ρ²)
        error = np.asarray(errors.correlation) / (1.0 - R * R)
        # What is known has an error of rounding, the root of 1e-16.
        error[~(error > KNOWN)] = 0.0
        return Numbers(Fisher(), np.arctanh(R), error, error**-2.0, error**-2.0, np.tanh)


def least_known(errors: StandardErrors) -> float:
    """Return how many complete rows would know as much about what is known least."""
    kinds = [numbers_of(errors, name) for name in ("mean", "standard_deviation", "covariance")]
    return float(min(np.min(one.known[one.error > 0.0], initial=np.inf) for one in kinds))


def correlation_errors(
    gaussian: Gaussian,
    covariance: tuple[Floats, Floats, Floats],
    variances: tuple[Floats, Floats, Floats],
) -> Floats:
    """Return the standard errors of correlations, by the delta method.

    ``covariance`` holds, for each pair, the variance of σ_ij and its covariances with σ_ii and σ_jj;
    ``variances`` those of (σ_ii, σ_ii), (σ_ii, σ_jj) and (σ_jj, σ_jj).
    """
    # ρ = σ_ij/√(σ_ii σ_jj): derivatives 1/√(σ_ii σ_jj), −ρ/(2σ_ii), −ρ/(2σ_jj)
    R = gaussian.correlation
    variance = np.diag(gaussian.covariance)
    a = 1.0 / np.sqrt(np.outer(variance, variance))
    b, c = -0.5 * R / variance[:, None], -0.5 * R / variance
    square = (
        a * a * covariance[0]
        + 2.0 * a * b * covariance[1]
        + 2.0 * a * c * covariance[2]
        + b * b * variances[0]
        + 2.0 * b * c * variances[1]
        + c * c * variances[2]
    )
    out = np.sqrt(np.maximum(square, 0.0))
    np.fill_diagonal(out, 0.0)
    return out


def principal_axes(V: Floats) -> tuple[Floats, Floats, Floats]:
    """Return variances along the principal axes of estimates, the axes, and units of parameters.

    In units of standard errors, so that those of the table do not matter.
    """
    scale = np.sqrt(np.diag(V))
    safe = np.where(scale > 0.0, scale, 1.0)
    return *np.linalg.eigh(V / np.outer(safe, safe)), scale


def _answer(function: Callable[[Floats, Floats], ArrayLike], *parameters: Floats) -> Floats:
    """Ask a function of the parameters, and check its answer."""
    value = real_array("what the function returns", function(*parameters))
    if not np.isfinite(value).all():
        raise InputError("the function must return finite numbers; it returned NaN or infinity.")
    return value
