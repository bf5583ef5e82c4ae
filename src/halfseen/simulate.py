"""The data generator 𝒪: complete rows, then what the missingness model leaves to be seen."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of

Floats = NDArray[np.float64]

# Rows drawn from one generator. Part of the meaning of a seed: changing it changes the draws.
BLOCK_ROWS = 65_536


@overload
def simulate(
    gaussian: Gaussian,
    missingness: Missingness,
    n: int,
    random_state: RandomState = ...,
    *,
    return_complete: Literal[False] = ...,
) -> Floats: ...
@overload
def simulate(
    gaussian: Gaussian,
    missingness: Missingness,
    n: int,
    random_state: RandomState = ...,
    *,
    return_complete: Literal[True],
) -> tuple[Floats, Floats]: ...


def simulate(
    gaussian: Gaussian,
    missingness: Missingness,
    n: int,
    random_state: RandomState = 0,
    *,
    return_complete: bool = False,
) -> Floats | tuple[Floats, Floats]:
    """Draw rows from a Gaussian and hide what the missingness model hides.

    Parameters
    ----------
    gaussian : Gaussian
    missingness : Missingness
    n : int
        Number of rows.
    random_state : int, Generator or None
        The same seed gives the same rows.
    return_complete : bool
        Whether to return the complete rows too.

    Returns
    -------
    X : array of shape (n, d)
        NaN where a value is hidden.
    Y : array of shape (n, d)
        The complete rows; only with ``return_complete=True``.

    Examples
    --------
    >>> import halfseen as hs
    >>> X = hs.simulate(hs.Gaussian([0, 0], [[1, 0.5], [0.5, 1]]), hs.DetectionLimits(lower=0), 4)
    >>> X.shape
    (4, 2)
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InputError(f"n must be a number of rows, at least 0; got {n!r}.")
    if not isinstance(missingness, Missingness):
        raise InputError(
            f"missingness must be a rule such as DetectionLimits(...); got {missingness!r}."
        )
    if not isinstance(gaussian, Gaussian):
        raise InputError(
            f"gaussian must be a Gaussian, such as fit.gaussian; got {type(gaussian).__name__}. A fit "
            "draws tables like its own with fit.simulate(n)."
        )
    missingness.check_width(gaussian.dimension)
    seed = seed_of(random_state)
    Y = np.empty((n, gaussian.dimension))
    for block, start in enumerate(range(0, n, BLOCK_ROWS)):
        part = Y[start : start + BLOCK_ROWS]
        part[:] = gaussian.sample(len(part), keyed_generator(seed, Purpose.ROWS, block))
    # The coins of Probability sets come from a stream of their own.
    X = np.where(missingness.seen(Y, keyed_generator(seed, Purpose.COINS)), Y, np.nan)
    return (X, Y) if return_complete else X
