"""Tables as hard as those that people bring, with the truth beside them; nothing in them is real.

A survey (analytes that go together, limits by row, analytes that some years did not measure), repeated
visits of which many did not happen, columns of which no row shows all, many columns half hidden, and
the rows of two laboratories in turn. A seed gives the same table wherever it is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class HardTable(NamedTuple):
    """A table and what lies behind it.

    Attributes
    ----------
    names : tuple of str
    complete, seen : arrays of shape (n, d)
        All values, and those that are not hidden (NaN elsewhere).
    lower, upper : arrays of shape (n, d)
        Where each cell lies, as ``IntervalData`` takes it: both ends are the value where it is seen.
    limit : array of shape (n, d)
        Below which a value is hidden; -inf where none is.
    at_random : boolean array of shape (n, d)
        Cells that are missing whatever their value.
    mean, covariance : arrays
        Of the law that the rows come from.
    """

    names: tuple[str, ...]
    complete: Floats
    seen: Floats
    lower: Floats
    upper: Floats
    limit: Floats
    at_random: Mask
    mean: Floats
    covariance: Floats


def hide(
    names: tuple[str, ...],
    Y: Floats,
    limit: Floats | float,
    at_random: Mask,
    mean: Floats,
    covariance: Floats,
) -> HardTable:
    """Hide what is below its limit, and leave out what is missing at random."""
    limit = np.broadcast_to(limit, Y.shape)
    below = (limit > Y) & ~at_random
    seen = ~(below | at_random)
    return HardTable(
        names,
        Y,
        np.where(seen, Y, np.nan),
        np.where(seen, Y, -np.inf),
        np.where(seen, Y, np.where(below, limit, np.inf)),
        limit,
        at_random,
        mean,
        covariance,
    )


class _Recipe(NamedTuple):
    """Columns as sums of independent sources: Y = offset + sources @ mix.T."""

    offset: Floats
    mix: Floats


# A survey's columns that are always seen.
PEOPLE = ("pressure", "male", "age", "bmi")
# Its sources: three of people, two that analytes share, then one of each analyte and of pressure.
MALE, AGE, BUILD, FIRST, SECOND, OWN = range(6)
# Age is 12 + 70 Beta(a, b); build is Gamma(shape, scale).
AGE_SHAPE, BUILD_SHAPE, BUILD_SCALE, MEN = (1.0, 1.6), 4.0, 0.5, 0.48
TAIL_FREEDOM = 6.0
# Volumes of a sample, each with limits of its own, and years.
VOLUMES, YEARS = 40, 4


def survey(
    n: int = 6000, seed: int = 0, analytes: int = 24, strength: float = 0.95, tails: bool = False
) -> HardTable:
    """Four columns of people, always seen, and analytes on the log scale.

    Given the four, analytes are Gaussian; the four are not (one is of 0 and 1, one is skewed).

    Parameters
    ----------
    n, seed, analytes : int
    strength : float
        Variance that the first factor explains of the tighter group of analytes, at most.
    tails : bool
        Whether the common factors are t with six degrees of freedom.

    Returns
    -------
    HardTable
        With the mean and covariance of the population, in closed form.
    """
    rng = np.random.default_rng([seed, 1])
    recipe = _recipe(rng, analytes, strength)
    sources = _sources(rng, n, analytes, tails)
    Y = recipe.offset + sources @ recipe.mix.T
    limit = np.full(Y.shape, -np.inf)
    limit[:, len(PEOPLE) :] = _limits_by_volume(rng, Y[:, len(PEOPLE) :])
    at_random = np.zeros(Y.shape, dtype=bool)
    at_random[:, len(PEOPLE) :] = _not_measured(rng, n, analytes)
    names = (*PEOPLE, *(f"analyte{k + 1}" for k in range(analytes)))
    return hide(names, Y, limit, at_random, *_population(recipe, tails))


def _recipe(rng: np.random.Generator, analytes: int, strength: float) -> _Recipe:
    """Draw how analytes depend on the two factors, and put all columns together."""
    tight = analytes * 3 // 5
    loose = analytes - tight
    load = np.zeros((analytes, 2))
    load[:tight, 0] = np.sqrt(strength) * rng.uniform(0.93, 1.0, tight)
    load[:tight, 1] = 0.1
    load[tight:, 0] = rng.uniform(0.2, 0.5, loose)
    load[tight:, 1] = rng.uniform(0.4, 0.8, loose)
    own = np.sqrt(np.clip(1.0 - (load**2).sum(axis=1), 0.03, None))
    slope = np.repeat([0.045, 0.012], [tight, loose])
    spread = np.linspace(0.7, 1.3, analytes)
    mix = np.zeros((len(PEOPLE) + analytes, OWN + analytes))
    mix[4:, AGE] = slope
    mix[4:, [FIRST, SECOND]] = spread[:, None] * load
    mix[4:, OWN:] = np.diag(spread * own)
    offset = np.append(np.zeros(4), np.linspace(-3.0, -5.0, analytes) - 35.0 * slope)
    mix[1, MALE], mix[2, AGE] = 1.0, 1.0
    mix[3, [BUILD, AGE]], offset[3] = (3.0, 0.02), 26.0 - 0.02 * 40.0
    # pressure = 62 + 0.12 age + 0.2 (bmi - 26) + 1.5 analyte1 + noise
    mix[0] = 0.2 * mix[3] + 1.5 * mix[4]
    mix[0, AGE] += 0.12
    offset[0] = 62.0 + 0.2 * (offset[3] - 26.0) + 1.5 * offset[4]
    noise = np.zeros((len(mix), 1))
    noise[0] = 11.0
    return _Recipe(offset, np.hstack([mix, noise]))


def _sources(rng: np.random.Generator, n: int, analytes: int, tails: bool) -> Floats:
    male = (rng.random(n) < MEN).astype(float)
    age = 12.0 + 70.0 * rng.beta(*AGE_SHAPE, n)
    build = rng.gamma(BUILD_SHAPE, BUILD_SCALE, n)
    common = rng.normal(size=(n, 2))
    if tails:
        common *= np.sqrt(TAIL_FREEDOM / rng.chisquare(TAIL_FREEDOM, n))[:, None]
    return np.column_stack(
        [male, age, build, common, rng.normal(size=(n, analytes)), rng.normal(size=n)]
    )


def _population(recipe: _Recipe, tails: bool) -> tuple[Floats, Floats]:
    """Mean and covariance of the columns, from those of the sources."""
    a, b = AGE_SHAPE
    count = recipe.mix.shape[1]
    mean, variance = np.zeros(count), np.ones(count)
    mean[[MALE, AGE, BUILD]] = MEN, 12.0 + 70.0 * a / (a + b), BUILD_SHAPE * BUILD_SCALE
    variance[MALE] = MEN * (1.0 - MEN)
    variance[AGE] = 70.0**2 * a * b / ((a + b) ** 2 * (a + b + 1.0))
    variance[BUILD] = BUILD_SHAPE * BUILD_SCALE**2
    if tails:
        variance[[FIRST, SECOND]] = TAIL_FREEDOM / (TAIL_FREEDOM - 2.0)
    return recipe.offset + recipe.mix @ mean, (recipe.mix * variance) @ recipe.mix.T


def _limits_by_volume(rng: np.random.Generator, log: Floats) -> Floats:
    """Limits that go with the volume of the sample: some dozens, each for many rows."""
    n, analytes = log.shape
    volume = rng.integers(0, VOLUMES, n)
    share = np.linspace(0.2, 0.65, analytes)
    middle = np.array([np.quantile(log[:, k], share[k]) for k in range(analytes)])
    of_volume = 0.35 * rng.normal(size=(VOLUMES, 1))
    of_both = 0.1 * rng.normal(size=(VOLUMES, analytes))
    return middle + (of_volume + of_both)[volume]


def _not_measured(rng: np.random.Generator, n: int, analytes: int) -> Mask:
    """Blank the last sixth in all years but one, some others in two, and a few cells everywhere."""
    year = rng.integers(0, YEARS, n)
    blank = np.zeros((n, analytes), dtype=bool)
    for k in range(analytes):
        years = [3] if k >= analytes - analytes // 6 else [1, 3] if k % 5 == 1 else range(YEARS)
        blank[:, k] = ~np.isin(year, years) | (rng.random(n) < 0.06)
    return blank


def visits(n: int = 72, seed: int = 0, times: int = 8) -> HardTable:
    """Repeated measures with limits that differ by row; later visits happened less often."""
    rng = np.random.default_rng([seed, 2])
    mean = 3.6 + 1.2 * (1.0 - np.exp(-np.arange(times) / 1.5))
    covariance = 0.34 * np.eye(times) + 0.77
    Y = _gaussian_rows(rng, n, mean, covariance)
    limit = np.where(rng.random((n, 1)) < 0.5, 2.6, 3.4)
    gone = rng.random((n, times)) < np.linspace(0.0, 0.75, times)
    return hide(_numbered("visit", times), Y, limit, gone, mean, covariance)


def cycle(n: int = 900, seed: int = 0, d: int = 3, limit: float = -0.3) -> HardTable:
    """Columns that are left out in turn, so that no row shows all of them."""
    rng = np.random.default_rng([seed, 4])
    covariance = 0.6 + 0.4 * np.eye(d)
    Y = _gaussian_rows(rng, n, np.zeros(d), covariance)
    left_out = np.arange(n)[:, None] % d == np.arange(d)
    return hide(_numbered("x", d), Y, limit, left_out, np.zeros(d), covariance)


def monotone(n: int = 400, seed: int = 0, d: int = 5) -> HardTable:
    """Rows that end early, never to come back; nothing else is hidden."""
    rng = np.random.default_rng([seed, 5])
    last = rng.integers(1, d + 1, n)
    return _blanks_alone(rng, np.arange(d) >= last[:, None])


def scattered(n: int = 400, seed: int = 0, d: int = 5, share: float = 0.3) -> HardTable:
    """Cells that are missing here and there; nothing else is hidden."""
    rng = np.random.default_rng([seed, 6])
    return _blanks_alone(rng, rng.random((n, d)) < share)


def _blanks_alone(rng: np.random.Generator, blank: Mask) -> HardTable:
    n, d = blank.shape
    mean, covariance = np.arange(d, dtype=float), _one_factor(d)
    Y = _gaussian_rows(rng, n, mean, covariance)
    return hide(_numbered("x", d), Y, -np.inf, blank, mean, covariance)


def half_hidden(n: int = 400, seed: int = 0, d: int = 20, rho: float = 0.5) -> HardTable:
    """Columns with one factor in common, each hidden below its median."""
    rng = np.random.default_rng([seed, 7])
    R = _one_factor(d, rho)
    Y = _gaussian_rows(rng, n, np.zeros(d), R)
    return hide(_numbered("x", d), Y, 0.0, np.zeros(Y.shape, dtype=bool), np.zeros(d), R)


def laboratories(n: int = 4096, seed: int = 0, d: int = 5) -> HardTable:
    """Rows of two laboratories in turn, one of which sees much less than the other."""
    rng = np.random.default_rng([seed, 8])
    Y = _gaussian_rows(rng, n, np.zeros(d), _one_factor(d))
    # They hide 16 % and 62 % of every column.
    limit = np.where(np.arange(n) % 2 == 0, -1.0, 0.3)[:, None]
    return hide(
        _numbered("x", d), Y, limit, np.zeros(Y.shape, dtype=bool), np.zeros(d), _one_factor(d)
    )


def _one_factor(d: int, rho: float = 0.5) -> Floats:
    return (1.0 - rho) * np.eye(d) + rho


def _gaussian_rows(rng: np.random.Generator, n: int, mean: Floats, covariance: Floats) -> Floats:
    return mean + rng.normal(size=(n, len(mean))) @ np.linalg.cholesky(covariance).T


def _numbered(word: str, count: int) -> tuple[str, ...]:
    return tuple(f"{word}{k + 1}" for k in range(count))
