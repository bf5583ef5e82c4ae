"""``project_to_domain``: the paper's Algorithm 4."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import finite_vector, positive_number
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian


def project_to_domain(
    start: ArrayLike, point: ArrayLike, radius: float, covariance: ArrayLike | Gaussian
) -> NDArray[np.float64]:
    """Bring a point back to the Mahalanobis ball of ``radius`` around ``start``.

    Parameters
    ----------
    start : array-like of shape (d,)
        μ⁽⁰⁾.
    point : array-like of shape (d,)
    radius : float
        r_proj.
    covariance : array-like of shape (d, d), or a Gaussian that has it

    Returns
    -------
    array of shape (d,)

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.solvers.project_to_domain([0.0], [10.0], 2.0, [[4.0]])
    array([4.])
    """
    origin = finite_vector("start", start)
    v = finite_vector("point", point, origin.size)
    radius = positive_number("radius", radius)
    if not isinstance(covariance, Gaussian):
        covariance = Gaussian(np.zeros(origin.size), covariance)
    with np.errstate(over="ignore"):
        gap = v - origin
        length = float(np.linalg.norm(np.linalg.solve(covariance.cholesky, gap)))
    if not math.isfinite(length):
        raise InputError("point is too far from start: their distance is more than can be held.")
    return origin + gap * (min(radius, length) / length) if length > 0 else origin.copy()
