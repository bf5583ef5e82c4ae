"""Distances between Gaussians."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import erf, ndtr

from halfseen.checks import real_array, whole_number
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian

# Relative gap below which two covariances count as equal, so that the closed form applies.
EQUAL_COVARIANCES = 1e-12
# Covariances closer than this, relative to one of them, are compared by their difference.
NEAR = 0.5
# Beyond this ratio of scales, or shift, two densities on the line have nothing in common.
LARGEST_RATIO = 1e30

__all__ = [
    "TotalVariation",
    "hellinger_distance",
    "kl_divergence",
    "mahalanobis_error",
    "relative_frobenius_error",
    "total_variation",
]


@dataclass(frozen=True)
class TotalVariation:
    """A total variation distance, how sure it is, and what is known about it for certain.

    Attributes
    ----------
    value : float
        The distance, between 0 and 1.
    standard_error : float
        Monte-Carlo standard error of ``value``; 0 where a closed form was used.
    lower, upper : float
        Closed-form bounds (Hellinger, Pinsker and Bretagnolle-Huber), which hold to rounding.
    exact : bool
        Whether ``value`` is from a closed form.

    Examples
    --------
    >>> import halfseen as hs
    >>> p, q = hs.Gaussian([0.0], [[1.0]]), hs.Gaussian([0.5], [[2.0]])
    >>> d = hs.metrics.total_variation(p, q)
    >>> d.lower < float(d) < d.upper, d.exact
    (True, True)
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    exact: bool

    def __float__(self) -> float:
        return self.value


def mahalanobis_error(mean: ArrayLike, truth: Gaussian) -> float:
    """Length of ``mean - truth.mean`` in units of the true covariance: ‖Σ*^-½ (μ̂ - μ*)‖.

    Parameters
    ----------
    mean : array-like of shape (d,)
        An estimate.
    truth : Gaussian

    Returns
    -------
    float

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.metrics.mahalanobis_error([3.0], hs.Gaussian([1.0], [[4.0]]))
    1.0
    """
    _check_truth(truth)
    found = real_array("mean", mean)
    if found.shape != truth.mean.shape:
        raise InputError(f"mean must have shape {truth.mean.shape}; got {found.shape}.")
    # A mean that is too far away for its square is infinitely far.
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(truth.whiten(found)))


def relative_frobenius_error(covariance: ArrayLike, truth: Gaussian) -> float:
    """Error of a covariance relative to the true one: ‖I - Σ*^-½ Σ̂ Σ*^-½‖_F.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        An estimate.
    truth : Gaussian

    Returns
    -------
    float

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.metrics.relative_frobenius_error([[6.0]], hs.Gaussian([1.0], [[4.0]]))
    0.5
    """
    _check_truth(truth)
    covariance = np.atleast_2d(real_array("covariance", covariance))
    if covariance.shape != truth.covariance.shape:
        raise InputError(
            f"covariance must have shape {truth.covariance.shape}; got {covariance.shape}."
        )
    if not np.isfinite(covariance).all():
        raise InputError("covariance must be finite; got NaN or infinity.")
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.linalg.norm(_whitened_gap(covariance, truth)))
    return math.inf if math.isnan(error) else error


def kl_divergence(p: Gaussian, q: Gaussian) -> float:
    """Kullback-Leibler divergence KL(p ‖ q), in nats.

    Parameters
    ----------
    p, q : Gaussian

    Returns
    -------
    float

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.metrics.kl_divergence(hs.Gaussian([1.0], [[1.0]]), hs.Gaussian([0.0], [[1.0]]))
    0.5
    """
    _check_same_dimension(p, q)
    # With Σ_p = L(I + Δ)Lᵀ and L that of q: KL = ½(tr Δ − log det(I + Δ) + ‖L⁻¹(μ_p − μ_q)‖²)
    gaps = np.linalg.eigvalsh(_whitened_gap(p.covariance, q))
    shift = q.whiten(p.mean)
    if np.abs(gaps).max() < NEAR:
        spread = float((gaps - np.log1p(gaps)).sum())
    else:
        spread = float(gaps.sum()) + q.log_determinant - p.log_determinant
    return max(0.0, 0.5 * (spread + float((shift**2).sum())))


def hellinger_distance(p: Gaussian, q: Gaussian) -> float:
    """Hellinger distance, between 0 and 1.

    Parameters
    ----------
    p, q : Gaussian

    Returns
    -------
    float

    Examples
    --------
    >>> import halfseen as hs
    >>> p = hs.Gaussian([0.0], [[1.0]])
    >>> hs.metrics.hellinger_distance(p, p)
    0.0
    """
    _check_same_dimension(p, q)
    gaps = np.linalg.eigvalsh(_whitened_gap(q.covariance, p))
    average = Gaussian(p.mean, 0.5 * p.covariance + 0.5 * q.covariance)
    shift = average.whiten(q.mean)
    # log of (det Σ_p det Σ_q)^¼ / det(average)^½; for neighbours, log det Σ_p is cancelled by hand
    if np.abs(gaps).max() < NEAR:
        spread = float((0.25 * np.log1p(gaps) - 0.5 * np.log1p(0.5 * gaps)).sum())
    else:
        spread = 0.25 * (p.log_determinant + q.log_determinant) - 0.5 * average.log_determinant
    return math.sqrt(max(0.0, -math.expm1(spread - 0.125 * float((shift**2).sum()))))


def total_variation(
    p: Gaussian, q: Gaussian, draws: int = 100_000, random_state: int | None = 0
) -> TotalVariation:
    """Total variation distance between two Gaussians.

    Exact for equal covariances and in one dimension; elsewhere a Monte-Carlo estimate with its
    standard error. The bounds hold always.

    Parameters
    ----------
    p, q : Gaussian
    draws : int
        Number of Monte-Carlo draws, where they are needed.
    random_state : int or None
        Seed of those draws.

    Returns
    -------
    TotalVariation

    Examples
    --------
    >>> import halfseen as hs
    >>> d = hs.metrics.total_variation(hs.Gaussian([0.0], [[1.0]]), hs.Gaussian([2.0], [[1.0]]))
    >>> round(d.value, 6), d.exact
    (0.682689, True)
    """
    _check_same_dimension(p, q)
    lower, upper = _total_variation_bounds(p, q)
    if np.abs(_whitened_gap(q.covariance, p)).max() <= EQUAL_COVARIANCES:
        # 2Φ(δ/2) - 1, the paper's formula for P_λ and Q_λ
        value = float(erf(np.linalg.norm(p.whiten(q.mean)) / (2.0 * math.sqrt(2.0))))
        return TotalVariation(value, 0.0, lower, upper, True)
    if p.dimension == 1:
        return TotalVariation(_total_variation_on_the_line(p, q), 0.0, lower, upper, True)
    draws = whole_number("draws", draws)
    if draws < 2:
        raise InputError(f"draws must be at least 2 to give a standard error; got {draws}.")
    # TV = E |p - q| / (p + q) over the half-and-half mixture, and the ratio is |tanh(Δ/2)|.
    rng = np.random.default_rng(random_state)
    half = draws // 2
    values = []
    for source, count in ((p, draws - half), (q, half)):
        Y = source.sample(count, rng)
        values.append(np.abs(np.tanh(0.5 * (np.asarray(p.logpdf(Y)) - np.asarray(q.logpdf(Y))))))
    value = 0.5 * (values[0].mean() + values[1].mean())
    error = 0.5 * math.sqrt(sum(v.var(ddof=1) / v.size for v in values if v.size > 1))
    return TotalVariation(float(value), error, lower, upper, False)


def _total_variation_bounds(p: Gaussian, q: Gaussian) -> tuple[float, float]:
    hellinger = hellinger_distance(p, q)
    kl = min(kl_divergence(p, q), kl_divergence(q, p))
    lower = hellinger**2
    pinsker = math.sqrt(0.5 * kl)
    bretagnolle_huber = math.sqrt(-math.expm1(-kl))
    upper = min(hellinger * math.sqrt(2.0 - hellinger**2), pinsker, bretagnolle_huber, 1.0)
    return lower, max(lower, upper)


def _total_variation_on_the_line(p: Gaussian, q: Gaussian) -> float:
    # The densities cross at the two roots of a quadratic; between them the narrower one is above.
    narrow, wide = (p, q) if p.covariance[0, 0] < q.covariance[0, 0] else (q, p)
    m, s = float(narrow.mean[0]), float(narrow.standard_deviations[0])
    shift, ratio = (float(wide.mean[0]) - m) / s, float(wide.standard_deviations[0]) / s
    if max(ratio, abs(shift)) > LARGEST_RATIO:
        return 1.0
    # In units of the narrow one: z² - ((z - shift)/ratio)² = 2 log ratio
    a, b = ratio**2 - 1.0, shift
    c = -(shift**2) - 2.0 * ratio**2 * math.log(ratio)
    root = math.sqrt(b * b - a * c)
    # The root without cancellation first, the other one from the product of the roots.
    far = (-b - root) / a if b >= 0 else (-b + root) / a
    low, high = sorted((far, c / (a * far)))
    inside_narrow = ndtr(high) - ndtr(low)
    inside_wide = ndtr((high - shift) / ratio) - ndtr((low - shift) / ratio)
    return float(min(max(inside_narrow - inside_wide, 0.0), 1.0))


def _whitened_gap(covariance: NDArray[np.float64], truth: Gaussian) -> NDArray[np.float64]:
    """L⁻¹(Σ̂ − Σ*)L⁻ᵀ: that is Σ*^-½ Σ̂ Σ*^-½ − I up to a rotation, which no norm here sees."""
    half = linalg.solve_triangular(truth.cholesky, covariance - truth.covariance, lower=True)
    gap = linalg.solve_triangular(truth.cholesky, half.T, lower=True)
    return np.asarray(0.5 * (gap + gap.T))


def _check_truth(truth: Gaussian) -> None:
    if not isinstance(truth, Gaussian):
        raise InputError(f"truth must be a Gaussian; got {type(truth).__qualname__}.")


def _check_same_dimension(p: Gaussian, q: Gaussian) -> None:
    for one in (p, q):
        if not isinstance(one, Gaussian):
            raise InputError(f"distances are between Gaussians; got {type(one).__qualname__}.")
    if p.dimension != q.dimension:
        raise InputError(
            f"both distributions must have the same number of coordinates; "
            f"got {p.dimension} and {q.dimension}."
        )
