"""``sample_gradient``: the paper's Algorithm 5."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import finite_vector, real_array, whole_number
from halfseen.data.table import check_finite, read_table
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.samplers import ProjectedLangevin, Sampler
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.solvers.conditionals import Conditionals, check_covariance

Floats = NDArray[np.float64]


def sample_gradient(
    row: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    missingness: LinearThreshold,
    *,
    draws: int = 1,
    sampler: Sampler | None = None,
    random_state: RandomState = None,
) -> Floats:
    """Draw ``-Σ⁻¹(y - μ)`` with y the completed row: an estimate of ∇ℓ(μ) from one observation.

    Parameters
    ----------
    row : array-like of shape (d,)
        An observation, NaN where hidden.
    mean : array-like of shape (d,)
        μ, where the gradient is wanted.
    covariance : array-like of shape (d, d)
    missingness : LinearThreshold
    draws : int
        Independent chains.
    sampler : Sampler, optional
        ``ProjectedLangevin()`` by default, as in the paper; or ``Gibbs()``, ``Rejection()``.
    random_state : int, Generator or None

    Returns
    -------
    array of shape (draws, d)

    Notes
    -----
    Line 8 of the listing prints the drift as η; it is η/2 here, as in the paper's appendix
    (``ProjectedLangevin(drift=...)`` shows the difference). The ball around W⁻¹μ_cond is Euclidean,
    since the coordinates are whitened.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.LinearThreshold.larger_of(0, 1, 2)
    >>> g = hs.solvers.sample_gradient([1.0, np.nan], [0.0, 0.0], np.eye(2), rule, random_state=0)
    >>> bool(g[0, 1] >= -1)   # the hidden value is at most 1
    True
    """
    if not isinstance(missingness, LinearThreshold):
        raise InputError(f"missingness must be a LinearThreshold; got {missingness!r}.")
    values = real_array("row", row)
    if values.ndim != 1:
        raise InputError(f"row must be one observation, a vector; got shape {values.shape}.")
    names = read_table(values[None], fewest_rows=1).names
    X = values[None]
    check_finite(X, names)
    missingness.check_width(X.shape[1])
    missingness.check(X, names)
    draws = whole_number("draws", draws)
    known = check_covariance(covariance, X.shape[1])
    conditionals = Conditionals(known.covariance, missingness, X, names)
    mu = finite_vector("mean", mean, X.shape[1])
    start = conditionals.feasible_points(mu)[0]
    seed = seed_of(random_state)
    chosen = check_sampler(sampler)
    return np.stack(
        [
            gradient_of_row(
                conditionals,
                0,
                mu,
                known,
                start,
                chosen,
                keyed_generator(seed, Purpose.SAMPLE_GRADIENT, draw),
            )[0]
            for draw in range(draws)
        ]
    )


def check_sampler(sampler: Sampler | None) -> Sampler:
    """Return the sampler, the paper's by default."""
    if sampler is None:
        return ProjectedLangevin()
    if isinstance(sampler, type) or not (hasattr(sampler, "init") and hasattr(sampler, "step")):
        raise InputError(
            "sampler must be a sampler such as ProjectedLangevin(), Gibbs() or Rejection(); got "
            f"{sampler!r}."
        )
    return sampler


def gradient_of_row(
    conditionals: Conditionals,
    row: int,
    mean: Floats,
    known: Gaussian,
    start: Floats,
    sampler: Sampler,
    rng: np.random.Generator,
) -> tuple[Floats, Any]:
    """Return the gradient of one row, and what its sampler says of the draw."""
    if start.size == 0:
        return known.precision @ (mean - conditionals.X[row]), None
    region = conditionals.region(row, mean)
    state, info = sampler.step(region, sampler.init(region, start, rng), rng)
    y = conditionals.complete(row, state.point)
    return known.precision @ (mean - y), info
