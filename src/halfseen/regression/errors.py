"""How sure the coefficients of a regression are: standard errors, and intervals from them.

Those that do not believe the model are by rows or by clusters (``robust_covariance``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, ndtri, stdtr, stdtrit

from halfseen.checks import real_array, share
from halfseen.errors import InputError
from halfseen.parallel import single_blas_thread
from halfseen.regression.model_options import by_row
from halfseen.solvers.inference.intervals import Limits
from halfseen.solvers.inference.robust import read_clusters
from halfseen.solvers.inference.uncertainty import Estimate, principal_axes
from halfseen.solvers.regression.cut_points import STEP, CutPoints
from halfseen.solvers.regression.estimate import RegressionEstimate
from halfseen.solvers.regression.leverage import (
    LEAST_LEFT,
    MOST_GROUPS,
    row_information,
    without_own,
)
from halfseen.solvers.regression.places import bounds_of
from halfseen.solvers.regression.prediction import place_of, rows_of
from halfseen.solvers.regression.robust import added_up, in_parameters, row_scores, row_values
from halfseen.theta import places

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]
# Steps of central differences, in standard errors.
DIFFERENCE = 1e-3
# Student's t with more degrees of freedom than this is normal.
MANY = 1e7


@dataclass(frozen=True, eq=False)
class RegressionErrors:
    """Standard errors of everything that a regression learned.

    Attributes
    ----------
    fit : RegressionEstimate
    parameters : array of shape (m, m)
        Covariance of the estimates of all parameters, in the order of ``fit.parameter_names``.
    clusters : int or None
        How many clusters of rows the errors are from, where they are robust; None otherwise.
    robust : bool
        Whether the errors are those of the sandwich.
    label : callable or None
        Puts names on what is about coefficients, or about residuals.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 1))
    >>> y = x + rng.normal(size=(400, 1))
    >>> fit = hs.regress(np.where(y > 0, y, np.nan), x, hs.DetectionLimits(lower=0.0), random_state=0)
    >>> fit.standard_errors.coefficients.round(2)
    array([[0.07],
           [0.07]])
    """

    fit: RegressionEstimate
    parameters: Floats
    clusters: int | None = None
    robust: bool = False
    label: Callable[[str, Floats], Any] | None = None

    def _labelled(self, kind: str, values: Floats) -> Any:
        return values if self.label is None else self.label(kind, values)

    @cached_property
    def vector(self) -> Floats:
        """Standard errors of all parameters."""
        return np.sqrt(np.maximum(np.diag(self.parameters), 0.0))

    @property
    def weights(self) -> Floats:
        """Those of coefficients, of shape (outcomes, terms); NaN where a term is not in an equation."""
        out = np.where(self.fit.mask, 0.0, np.nan)
        out[self.fit.free] = self.vector[: int(self.fit.free.sum())]
        return out

    @property
    def coefficients(self) -> Any:
        """Those of coefficients, of shape (terms, outcomes)."""
        return self._labelled("coefficients", self.weights.T)

    @property
    def _places(self) -> NDArray[np.intp]:
        q = len(self.fit.outcomes)
        return int(self.fit.free.sum()) + places(q) - q

    @property
    def residual_covariance(self) -> Any:
        """Those of the covariance of residuals."""
        return self._labelled("residuals", self._known(self.vector[self._places]))

    def _known(self, matrix: Floats) -> Floats:
        """Leave out of a matrix of residuals what no row says anything of."""
        out = np.array(matrix)
        for i, j in self.fit.undetermined:
            out[i, j] = out[j, i] = np.nan
        return out

    @property
    def deviations(self) -> Floats:
        """Those of the standard deviations of residuals."""
        variance = np.diag(self.fit.residual)
        return np.asarray(self.vector[np.diag(self._places)] / (2.0 * np.sqrt(variance)))

    @property
    def residual_deviations(self) -> Any:
        """Those of the standard deviations of residuals, with names."""
        return self._labelled("outcomes", self.deviations)

    @cached_property
    def correlations(self) -> Floats:
        """Those of the correlations of residuals (delta method)."""
        V, S, place = self.parameters, self.fit.residual, self._places
        q = len(S)
        out = np.zeros((q, q))
        for i in range(q):
            for j in range(i):
                root = np.sqrt(S[i, i] * S[j, j])
                slope = np.array([1.0, -0.5 * S[i, j] / S[i, i], -0.5 * S[i, j] / S[j, j]]) / root
                at = [place[i, j], place[i, i], place[j, j]]
                square = slope @ V[np.ix_(at, at)] @ slope
                out[i, j] = out[j, i] = np.sqrt(max(square, 0.0))
        return self._known(out)

    @property
    def residual_correlation(self) -> Any:
        """Those of the correlations of residuals, with names."""
        return self._labelled("residuals", self.correlations)

    @property
    def cut_points(self) -> dict[str, Floats]:
        """Those of the cut points of ordered outcomes; the first is known."""
        out, at = (
            {},
            int(self.fit.free.sum()) + len(self.fit.outcomes) * (len(self.fit.outcomes) + 1) // 2,
        )
        for name, cuts in self.fit.cut_points.items():
            out[name] = np.concatenate([[0.0], self.vector[at : at + cuts.size - 1]])
            at += cuts.size - 1
        return out

    def of(self, function: Callable[[Floats, Floats], ArrayLike]) -> Estimate:
        """Value and standard error of a smooth function of the parameters (delta method).

        Parameters
        ----------
        function : callable
            ``function(coefficients, residual_covariance)``, arrays of shape (terms, outcomes) and
            (outcomes, outcomes), returns a number or an array.

        Returns
        -------
        Estimate
            ``value`` and ``standard_error``.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(400, 2))
        >>> y = x.sum(axis=1, keepdims=True) + rng.normal(size=(400, 1))
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> fit = hs.regress(np.where(y > 0, y, np.nan), x, rule, random_state=0)
        >>> ratio = fit.standard_errors.of(lambda B, S: B[1, 0] / B[2, 0])
        >>> bool(abs(ratio.value - 1.0) < 4 * ratio.standard_error)
        True
        """
        fit = self.fit
        if not callable(function):
            raise InputError(
                "of takes a function of coefficients and residual covariance, such as "
                f"lambda B, S: B[1, 0] / B[2, 0]; got {function!r}."
            )

        def ask(vector: Floats) -> Floats:
            weights, residual, _ = fit.unpack(vector)
            return real_array("what the function returns", function(weights.T, residual))

        return self.of_vector(ask)

    def of_vector(self, function: Callable[[Floats], ArrayLike]) -> Estimate:
        """Value and standard error of a function of the vector of all parameters."""
        here = np.asarray(self.fit.vector, dtype=float)
        value = np.asarray(function(here), dtype=float)
        if not np.isfinite(value).all():
            raise InputError(
                "the function must return finite numbers; it returned NaN or infinity."
            )
        lengths, axes, scale = principal_axes(self.parameters)
        total = np.zeros(value.shape)
        for length, axis in zip(lengths, axes.T, strict=True):
            if length > 0.0:
                move = DIFFERENCE * np.sqrt(length) * axis * scale
                change = np.asarray(function(here + move)) - np.asarray(function(here - move))
                total += (change / (2.0 * DIFFERENCE)) ** 2
        return Estimate(value[()], np.sqrt(total)[()])

    @cached_property
    def freedom(self) -> Floats:
        """Degrees of freedom of each equation: the rows that would know as much, less its coefficients.

        A variance with the standard error s is known as from 2 (σ²/s)² complete rows. A latent
        outcome has no variance to learn, and clusters count as rows.
        """
        if self.clusters is not None:
            return np.full(len(self.fit.outcomes), max(self.clusters - 1.0, 1.0))
        return self._freedom_of_variances

    @property
    def _freedom_of_variances(self) -> Floats:
        """The rows that would know as much about each variance, less the coefficients."""
        errors = self.vector[np.diag(self._places)]
        with np.errstate(divide="ignore"):
            rows = 2.0 * (np.diag(self.fit.residual) / errors) ** 2
        counts = self.fit.free.sum(axis=1)
        return np.where(errors > 0.0, np.maximum(rows - counts, 1.0), np.inf)

    @property
    def _stretch(self) -> Floats:
        """What standard errors of an equation are multiplied by: n − k rows are left of n."""
        counts, freedom = self.fit.free.sum(axis=1), self.freedom
        if self.robust:
            # Errors are from scores that are stretched themselves.
            return np.ones(len(counts))
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(freedom), 1.0, np.sqrt((freedom + counts) / freedom))

    def quantiles(self, level: float) -> Floats:
        """Quantiles of Student's t, for each equation."""
        freedom = np.minimum(self.freedom, MANY)
        return np.asarray(stdtrit(freedom, 0.5 + 0.5 * level))

    def coefficient_limits(self, level: float) -> Limits:
        """Return intervals of coefficients, of shape (outcomes, terms)."""
        half = (self.quantiles(level) * self._stretch)[:, None] * self.weights
        weights = np.where(self.fit.mask, self.fit.weights, np.nan)
        return Limits(weights - half, weights + half)

    def widening(self, level: float) -> float:
        """Return how much wider the widest interval of a coefficient is than by normal errors alone.

        Parameters
        ----------
        level : float

        Examples
        --------
        >>> import halfseen as hs
        >>> few = {"age": [30, 40, 50, 60, 70], "lead": [1.0, 1.7, 1.9, 2.8, 2.9]}
        >>> fit = hs.regress("lead ~ age", few)
        >>> round(fit.standard_errors.widening(0.95), 2)
        1.1
        """
        level = share("level", level)
        own, normal = self.fit.free.any(axis=1), ndtri(0.5 + 0.5 * level)
        if normal == 0.0:
            # Of a level so low that both are a point.
            return 0.0
        ratio = self.quantiles(level) * self._stretch / normal
        return float(np.max(ratio[own], initial=1.0)) - 1.0

    def p_values(self) -> Floats:
        """Two-sided p-values of each coefficient being 0; NaN where it is not learned."""
        errors = self.weights * self._stretch[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(self.fit.weights) / errors
        freedom = np.minimum(self.freedom, MANY)
        return np.where(self.fit.free, 2.0 * stdtr(freedom[:, None], -ratio), np.nan)

    def deviation_limits(self, level: float) -> Limits:
        """Return intervals of standard deviations of residuals: chi-square's."""
        sigma, freedom = np.sqrt(np.diag(self.fit.residual)), self._freedom_of_variances
        rows = freedom + self.fit.free.sum(axis=1)
        known = np.isinf(freedom)
        some = np.where(known, 1.0, freedom)
        ends = [chdtri(some, 0.5 * (1.0 - s * level)) for s in (-1.0, 1.0)]
        with np.errstate(invalid="ignore"):
            high, low = (np.sqrt(rows / end) for end in ends)
        return Limits(*(np.where(known, sigma, sigma * side) for side in (low, high)))

    def correlation_limits(self, level: float) -> Limits:
        """Return intervals of correlations of residuals, on Fisher's scale.

        Of outcomes of which no row says something of both, what the others allow.
        """
        deviation = np.sqrt(np.diag(self.fit.residual))
        R = np.clip(self.fit.residual / np.outer(deviation, deviation), -1.0, 1.0)
        inner = ~np.eye(len(R), dtype=bool) & (np.abs(R) < 1.0)
        half = np.zeros(R.shape)
        half[inner] = ndtri(0.5 + 0.5 * level) * self.correlations[inner] / (1.0 - R[inner] ** 2)
        centre = np.zeros(R.shape)
        centre[inner] = np.arctanh(R[inner])
        low, high = np.tanh(centre - half), np.tanh(centre + half)
        low, high = np.where(inner, low, R), np.where(inner, high, R)
        for i, j in self.fit.undetermined:
            ends = np.array(bounds_of(self.fit.residual, i, j)) / (deviation[i] * deviation[j])
            low[i, j] = low[j, i] = ends[0]
            high[i, j] = high[j, i] = ends[1]
        return Limits(low, high)


@dataclass(frozen=True, eq=False)
class RegressionIntervals:
    """Confidence intervals, each with ``lower`` and ``upper``.

    Attributes
    ----------
    level : float
    coefficients : Limits
        Of shape (terms, outcomes).
    residual_deviations : Limits
    residual_correlation : Limits

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> ends = hs.regress(2.0 * x + rng.normal(size=(200, 1)), x).confidence_interval()
    >>> bool(ends.residual_deviations.lower[0] < 1.0 < ends.residual_deviations.upper[0])
    True
    """

    level: float
    coefficients: Limits
    residual_deviations: Limits
    residual_correlation: Limits


def robust_covariance(fit: RegressionFit, clusters: Any = None) -> tuple[Floats, int | None]:
    """Return the covariance of the parameters from the scatter of scores, and how many clusters.

    I⁻¹ M I⁻¹, with M the sum of the outer products of what rows, or clusters of rows, say; where these
    are few, of what they say of an estimate that has not seen them.
    """
    if fit.source is None:
        raise InputError(
            "robust standard errors need the rows, which a saved fit does not hold, nor one of a table "
            "in pieces: ask for them where it is fitted, regress(..., robust=True)."
        )
    inverse = fit.source.inverse
    if inverse is None:
        raise InputError("this regression has no standard errors to begin with.")
    groups = read_clusters(by_row(clusters, fit.data, "clusters"), fit.rows)
    count = fit.rows if groups is None else int(groups.max()) + 1
    with single_blas_thread():
        scores = added_up(_scores(fit), groups)
        if fit.truncation is not None or count > MOST_GROUPS:
            learned = fit.parameters if groups is None else 1
            scores = scores * np.sqrt(count / max(count - learned, 1.0))
        else:
            few = 1.0 if groups is None else np.sqrt((count - 1.0) / count)
            scores = few * _without_own(fit, scores, groups, inverse)
        spread = scores @ inverse
    return spread.T @ spread, None if groups is None else count


def _without_own(
    fit: RegressionFit, scores: Floats, groups: NDArray[np.intp] | None, inverse: Floats
) -> Floats:
    """Return what rows, or clusters, say of an estimate that has not seen them."""
    model, equations, place = fit.source.model, fit.equations, place_of(fit)  # type: ignore[union-attr]
    assert equations is not None
    rows = rows_of(model.outcomes, model.W, equations, fit.source.n_jobs)  # type: ignore[union-attr]
    counts = np.ones(fit.rows) if model.row_weights is None else model.row_weights
    information = counts[:, None, None] * row_information(rows, place)
    j, t = fit.free.nonzero()
    # Of the covariance of residuals a group knows about as much as it has of the rows.
    share = added_up(counts[:, None], groups) / fit.rows
    left = np.maximum(1.0 - share, LEAST_LEFT)
    scores = np.hstack([scores[:, : j.size], scores[:, j.size :] / left])

    def into(some: NDArray[np.intp]) -> Floats:
        """Coefficients stand before all other parameters."""
        out = np.zeros((some.size, len(fit.outcomes), scores.shape[1]))
        out[:, j, np.arange(j.size)] = model.W[np.ix_(some, t)] / equations.scale[j]
        return out

    parts: Any = np.arange(fit.rows)[:, None]
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    return without_own(scores, information, into, inverse, parts)


def _scores(fit: RegressionFit) -> Floats:
    """Return the derivatives of what each row counts in the parameters of a fit."""
    model, equations, place = fit.source.model, fit.equations, place_of(fit)  # type: ignore[union-attr]
    assert equations is not None
    if fit.source.scores is not None:  # type: ignore[union-attr]
        return fit.source.scores  # type: ignore[union-attr]
    rows = rows_of(model.outcomes, model.W, equations, fit.source.n_jobs)  # type: ignore[union-attr]
    scores = row_scores(rows, place)
    whole = scores @ in_parameters(equations, model.free)
    counts = 1.0 if model.row_weights is None else model.row_weights[:, None]
    if not fit.cut_points:
        return np.asarray(counts * whole)
    cuts = CutPoints.of(rows, fit.outcomes, fit.cut_points)
    vector = np.concatenate([fit.cut_points[name][1:] for name in cuts.names])
    ends = [
        [row_values(cuts.rows_at(vector + s * unit), place) for s in (-STEP, STEP)]
        for unit in np.eye(vector.size)
    ]
    of_cuts = [(high - low) / (2.0 * STEP) for low, high in ends]
    return np.asarray(counts * np.column_stack([whole, *of_cuts]))
