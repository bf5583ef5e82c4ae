"""The data generator 𝒪: complete rows, then what the missingness model leaves to be seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import positive_number
from halfseen.data.table import chunk_rows
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.combined import Combined
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
    degrees_of_freedom: float | None = ...,
) -> Floats: ...
@overload
def simulate(
    gaussian: Gaussian,
    missingness: Missingness,
    n: int,
    random_state: RandomState = ...,
    *,
    return_complete: Literal[True],
    degrees_of_freedom: float | None = ...,
) -> tuple[Floats, Floats]: ...


def simulate(
    gaussian: Gaussian,
    missingness: Missingness,
    n: int,
    random_state: RandomState = 0,
    *,
    return_complete: bool = False,
    degrees_of_freedom: float | None = None,
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
    degrees_of_freedom : float, optional
        Of a multivariate t distribution, from which rows are drawn instead: the Gaussian's mean is its
        location, and the covariance its scatter matrix.

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
    _check(gaussian, missingness, n)
    seed = seed_of(random_state)
    Y = _room_for(n, gaussian.dimension)
    for block, start in enumerate(range(0, n, BLOCK_ROWS)):
        part = Y[start : start + BLOCK_ROWS]
        part[:] = _complete(gaussian, seed, block, len(part))
        if degrees_of_freedom is not None:
            _spread(part, gaussian, degrees_of_freedom, seed, block)
    # The coins of Probability sets come from a stream of their own.
    X = np.where(missingness.seen(Y, keyed_generator(seed, Purpose.COINS)), Y, np.nan)
    return (X, Y) if return_complete else X


def _room_for(n: int, d: int) -> Floats:
    try:
        return np.empty((n, d))
    except (MemoryError, ValueError, OverflowError):
        raise InputError(
            f"{n} rows of {d} columns do not fit in memory. Draw fewer, or write them block by block: "
            "halfseen simulate --format parquet."
        ) from None


def simulate_blocks(
    gaussian: Gaussian, missingness: Missingness, n: int, random_state: RandomState = 0
) -> Iterator[tuple[Floats, Floats]]:
    """Draw the rows of ``simulate`` block by block: memory does not grow with their number.

    Parameters
    ----------
    gaussian : Gaussian
    missingness : Missingness
        Limits that differ by row, and coins within ``Combined``, need ``simulate``, unless all rows fit
        into one block.
    n : int
        Number of rows.
    random_state : int, Generator or None
        The same seed gives the same rows, here and in ``simulate``.

    Yields
    ------
    X : array of shape (rows, d)
        The next rows, at most ``BLOCK_ROWS`` and ``chunk_rows(d)``; NaN where a value is hidden.
    Y : array of shape (rows, d)
        The complete rows.

    Examples
    --------
    >>> import halfseen as hs
    >>> from halfseen.simulate import simulate_blocks
    >>> gaussian, rule = hs.Gaussian([0.0], [[1.0]]), hs.DetectionLimits(lower=0)
    >>> [len(X) for X, _ in simulate_blocks(gaussian, rule, 150_000)]
    [65536, 65536, 18928]
    """
    _check(gaussian, missingness, n)
    if n > _step(gaussian) and _varies_by_row(missingness):
        raise InputError(
            "limits that differ by row belong to one table; draw it as a whole, with simulate."
        )
    return _blocks(gaussian, missingness, n, seed_of(random_state))


def _blocks(
    gaussian: Gaussian, missingness: Missingness, n: int, seed: int
) -> Iterator[tuple[Floats, Floats]]:
    step = _step(gaussian)
    for block, first in enumerate(range(0, n, BLOCK_ROWS)):
        Y = _complete(gaussian, seed, block, min(BLOCK_ROWS, n - first))
        # Rows of one generator are drawn at once, and hidden few at a time: wide ones take much memory.
        for start in range(0, len(Y), step):
            part = Y[start : start + step]
            seen = _seen(missingness, part, seed, first + start, n > step)
            yield np.where(seen, part, np.nan), part


def _step(gaussian: Gaussian) -> int:
    return min(BLOCK_ROWS, chunk_rows(gaussian.dimension))


def _seen(
    missingness: Missingness, Y: Floats, seed: int, first: int, several: bool
) -> NDArray[np.bool_]:
    """Return what is seen of rows that ``first`` others precede, in a table of ``several`` blocks."""
    coins = keyed_generator(seed, Purpose.COINS)
    by_column = isinstance(missingness, ColumnwiseMissingness)
    if by_column:
        # A coin for each cell, row by row: the coins of the rows before are passed over.
        assert isinstance(coins.bit_generator, np.random.PCG64)
        coins.bit_generator.advance(first * Y.shape[1])
    before = coins.bit_generator.state
    seen = missingness.seen(Y, coins)
    # Parts of a Combined toss their coins one part after another, each for all rows.
    if several and not by_column and coins.bit_generator.state != before:
        raise InputError(
            f"{type(missingness).__name__} tosses coins, which cannot be done block by block. Draw "
            "the table as a whole, with simulate, or state the rule as SelfCensoring."
        )
    return seen


def _check(gaussian: Gaussian, missingness: Missingness, n: int) -> None:
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


def _complete(gaussian: Gaussian, seed: int, block: int, rows: int) -> Floats:
    """Draw the rows of one block."""
    return gaussian.sample(rows, keyed_generator(seed, Purpose.ROWS, block))


def _spread(Y: Floats, gaussian: Gaussian, degrees: float, seed: int, block: int) -> None:
    """Make rows of a Gaussian rows of a t distribution: each is divided by √w, w ~ χ²(ν)/ν."""
    degrees = positive_number("degrees_of_freedom", degrees)
    w = keyed_generator(seed, Purpose.SCALES, block).chisquare(degrees, len(Y)) / degrees
    mean = gaussian.mean
    Y[:] = mean + (Y - mean) / np.sqrt(w)[:, None]


def _varies_by_row(missingness: Missingness) -> bool:
    if isinstance(missingness, Combined):
        return any(_varies_by_row(rule) for _, rule in missingness.parts)
    return isinstance(missingness, ColumnwiseMissingness) and missingness.varies_by_row
