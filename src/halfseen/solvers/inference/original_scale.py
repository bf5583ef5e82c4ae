"""What a fit says in the units of the table: medians, means and quantiles of each column.

Quantiles go through an increasing transform unharmed, so their intervals are those of the model's
scale, taken back end by end. Means do not: the mean of a log-normal column is exp(μ + σ²/2), and in
general an integral.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from halfseen.checks import is_iterable, share
from halfseen.data.transforms import Identity, Log, Transform
from halfseen.errors import InputError
from halfseen.kernels.quadrature import NODES_48
from halfseen.kernels.restricted import restricted_nodes

if TYPE_CHECKING:
    from halfseen.solvers.result import Fit

Floats = NDArray[np.float64]

# Steps of differences for the delta method, in units of σ.
STEP = 1e-4


@dataclass(frozen=True, eq=False)
class OriginalScale:
    """Each column in the units of the table.

    Attributes
    ----------
    names : tuple of str
    level : float
        Of the intervals.
    median, median_lower, median_upper : arrays of shape (d,)
        For columns that were fitted as logarithms this is the geometric mean.
    mean, mean_lower, mean_upper : arrays of shape (d,)
        Arithmetic mean. Intervals are NaN where they are not known.
    geometric_deviation : array of shape (d,)
        exp(σ) of columns that were fitted as logarithms, NaN for others.
    probabilities : tuple of float
    quantiles, quantiles_lower, quantiles_upper : arrays of shape (d, number of probabilities)
    """

    names: tuple[str, ...]
    level: float
    median: Floats
    median_lower: Floats
    median_upper: Floats
    mean: Floats
    mean_lower: Floats
    mean_upper: Floats
    geometric_deviation: Floats
    probabilities: tuple[float, ...]
    quantiles: Floats
    quantiles_lower: Floats
    quantiles_upper: Floats

    def labelled(self) -> OriginalScale:
        """Return the same with pandas labels on every vector and table."""
        import pandas as pd

        index, columns = pd.Index(self.names), pd.Index(self.probabilities)
        labelled: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                one = value.ndim == 1
                labelled[name] = (
                    pd.Series(value, index=index)
                    if one
                    else pd.DataFrame(value, index=index, columns=columns)
                )
        return replace(self, **labelled)


def original_scale(fit: Fit, level: float, probabilities: Sequence[float]) -> OriginalScale:
    """Return medians, means and quantiles in original units; see ``Fit.original_scale``."""
    level = share("level", level)
    if not is_iterable(probabilities) or isinstance(probabilities, str):
        raise InputError(
            f"probabilities must be a list, such as [0.05, 0.95]; got {probabilities!r}."
        )
    wanted = tuple(share("each of the probabilities", p, "0.05") for p in probabilities)
    if not wanted:
        raise InputError("probabilities must name at least one quantile, such as 0.5; got none.")
    d = len(fit.names)
    transforms = fit.transforms or (Identity(),) * d
    mu, sigma = fit.gaussian.mean, fit.gaussian.standard_deviations
    joint = _joint_variances(fit)
    q = float(ndtri(0.5 + 0.5 * level))
    z = ndtri(np.array(wanted))
    columns = [
        _column(transforms[j], mu[j], sigma[j], None if joint is None else joint[j], q, z)
        for j in range(d)
    ]
    errors = np.full(d, np.nan) if fit.uncertainty is None else fit.uncertainty.mean
    # The median needs the mean alone, whose error is known also where joint ones are not.
    median, low, high = (
        np.array([float(t.inverse(mu[j] + move[j])) for j, t in enumerate(transforms)])
        for move in (np.zeros(d), -q * errors, q * errors)
    )
    mean, mean_low, mean_high, *quantiles = (
        np.array([column[k] for column in columns]) for k in range(6)
    )
    spreads = zip(transforms, sigma, strict=True)
    geometric = [float(t.inverse(s)) if isinstance(t, Log) else np.nan for t, s in spreads]
    return OriginalScale(
        fit.names, level, median, low, high, mean, mean_low, mean_high, np.array(geometric), wanted,
        quantiles[0], quantiles[1], quantiles[2],
    )  # fmt: skip


def _joint_variances(fit: Fit) -> Floats | None:
    """Variances of the estimates of (μ_j, σ_j), for each column; None where they are not known."""
    errors = fit.uncertainty
    if errors is None or errors.parameters is None:
        return None
    d = len(fit.names)
    # Σ_jj stands at d + j(j + 3)/2 among (μ, Σ_ij for i >= j); σ = √Σ_jj has slope 1/(2σ).
    place = d + np.arange(d) * (np.arange(d) + 3) // 2
    slope = 0.5 / fit.gaussian.standard_deviations
    V = errors.parameters
    out = np.empty((d, 2, 2))
    for j in range(d):
        chosen = V[np.ix_([j, place[j]], [j, place[j]])]
        out[j] = chosen * np.outer([1.0, slope[j]], [1.0, slope[j]])
    return out


def _column(
    transform: Transform, mu: float, sigma: float, V: Floats | None, q: float, z: Floats
) -> tuple[Floats, ...]:
    """Mean with its interval, quantiles with theirs."""
    mean = _mean(transform, mu, sigma)
    at = mu + sigma * z
    if V is None:
        unknown = np.full(z.size, np.nan)
        nan = np.array(np.nan)
        return np.array(mean), nan, nan, transform.inverse(at), unknown, unknown
    # var(μ + zσ) = V_μμ + 2z V_μσ + z² V_σσ
    width = q * np.sqrt(np.maximum(V[0, 0] + 2.0 * z * V[0, 1] + z * z * V[1, 1], 0.0))
    h = STEP * sigma
    slope = np.array(
        [
            (_mean(transform, mu + h, sigma) - _mean(transform, mu - h, sigma)) / (2.0 * h),
            (_mean(transform, mu, sigma + h) - _mean(transform, mu, sigma - h)) / (2.0 * h),
        ]
    )
    with np.errstate(invalid="ignore"):
        error = float(np.sqrt(np.maximum(slope @ V @ slope, 0.0)))
        if transform.least == 0.0 and mean > 0.0:
            # Of something positive: on the log scale.
            low, high = mean * np.exp(-q * error / mean), mean * np.exp(q * error / mean)
        else:
            low, high = mean - q * error, mean + q * error
    return (
        np.array(mean), np.array(low), np.array(high),
        transform.inverse(at), transform.inverse(at - width), transform.inverse(at + width),
    )  # fmt: skip


def _mean(transform: Transform, mu: float, sigma: float) -> float:
    """Return the arithmetic mean of a column whose transform is N(mu, sigma²)."""
    if isinstance(transform, Identity):
        return mu
    with np.errstate(over="ignore"):
        if isinstance(transform, Log):
            unit = np.log(10.0) if transform.base == 10 else 1.0
            return float(np.exp(unit * mu + 0.5 * (unit * sigma) ** 2))
        return _integral(transform, mu, sigma)


def _integral(transform: Transform, mu: float, sigma: float) -> float:
    """Integrate the way back over the normal distribution, on each side of where it has a kink.

    Right to rounding where both sides are smooth; to about 1e-5 for Box-Cox powers above 1, whose way
    back begins like a root.
    """
    ends = np.array([-np.inf, *([] if transform.kink is None else [transform.kink]), np.inf])
    count = ends.size - 1
    node, weight = np.empty((count, NODES_48.size)), np.empty((count, NODES_48.size))
    mass = np.empty(count)
    restricted_nodes(np.full(count, mu), sigma, ends[:-1], ends[1:], node, weight, mass)
    values = transform.inverse(node)
    # What has no mass adds nothing, though it may be infinite.
    parts = np.where(mass > -np.inf, np.einsum("ij,ij->i", weight, values), 0.0)
    return float(np.exp(mass) @ parts)
