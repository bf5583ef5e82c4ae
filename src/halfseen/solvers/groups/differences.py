"""Differences of the means of groups, all of them at once.

Estimates of all differences are jointly normal, and with few rows jointly t: their family-wise intervals
hold all truths together with the stated probability. With one column, nothing hidden and groups of one
size they are those of Tukey.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from halfseen.seeds import Purpose, keyed_generator

Floats = NDArray[np.float64]

# Draws of the joint law, at least and at most, numbers that are looked at in all, and at once.
FEWEST_DRAWS, MOST_DRAWS, MOST_NUMBERS, CHUNK = 2**12, 2**16, 2**24, 2**20
# Draws beyond a statistic from which its share is known to a tenth.
WELL_KNOWN = 100
# Differences with a smaller variance, as a share of those of the means, are constants.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Differences of means and the joint law of their errors.

    Attributes
    ----------
    pairs : list of (int, int)
        Positions of groups: the mean of the second is taken from that of the first.
    estimate, standard_error : arrays of shape (pairs, d)
        NaN where one of the means is not known.
    freedom : float
        Degrees of freedom.
    largest : array of shape (draws,)
        The largest of all |t| of the family, drawn from their law.
    family : int
        How many differences there are in the family.
    """

    pairs: list[tuple[int, int]]
    estimate: Floats
    standard_error: Floats
    freedom: float
    largest: Floats
    family: int

    def critical(self, level: float) -> float:
        """Return by how many standard errors family-wise intervals reach to either side."""
        if self.family <= 1:
            return quantile(0.5 + 0.5 * level, self.freedom)
        return float(np.quantile(self.largest, level))

    def p_values(self) -> Floats:
        """Return p-values of each difference by itself."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.abs(self.estimate / self.standard_error)
        return 2.0 * upper_tail(t, self.freedom)

    def adjusted(self) -> Floats:
        """Return p-values of the whole family: how often the largest of all would be as large.

        Where draws are too few for that, Bonferroni's bound, which is sharp far out.
        """
        single = self.p_values()
        if self.family <= 1:
            return single
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.abs(self.estimate / self.standard_error)
        ordered = np.sort(self.largest)
        beyond = ordered.size - np.searchsorted(ordered, t)
        drawn, bound = beyond / ordered.size, np.minimum(self.family * single, 1.0)
        out = np.where(beyond < WELL_KNOWN, bound, np.minimum(np.maximum(drawn, single), bound))
        return np.where(np.isnan(single), np.nan, out)


class Family(NamedTuple):
    """Which means may be compared, and how well they are known.

    Attributes
    ----------
    means : array of shape (groups, d)
        NaN where not known.
    covariance : array of shape (groups · d, groups · d)
    freedom : float
    """

    means: Floats
    covariance: Floats
    freedom: float


def contrasts(known: Family, columns: list[int] | None = None, seed: int = 0) -> Contrasts:
    """Compare all pairs of groups in some columns, or in all of them, as one family."""
    G, d = known.means.shape
    pairs = list(itertools.combinations(range(G), 2))
    first, second = np.transpose(pairs)
    cov = np.nan_to_num(known.covariance)
    cube = cov.reshape(G, d, G, d)
    own = np.einsum("gjgj->gj", cube)
    # Var(a − b) = Var a + Var b − 2 Cov(a, b).
    between = np.einsum("gjhj->ghj", cube)[first, second]
    variance = own[first] + own[second] - 2.0 * between
    outside = np.setdiff1d(np.arange(d), np.arange(d) if columns is None else columns)
    estimate = known.means[first] - known.means[second]
    estimate[:, outside] = np.nan
    error = np.where(np.isnan(estimate), np.nan, np.sqrt(np.maximum(variance, 0.0)))
    family = int((error > 0.0).sum())
    largest = _largest(cov, error, (first, second), known.freedom, seed)
    return Contrasts(pairs, estimate, error, known.freedom, largest, family)


def _largest(
    covariance: Floats,
    error: Floats,
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    freedom: float,
    seed: int,
) -> Floats:
    """Draw the largest |t| of a family: means at once, and their differences a few draws at a time."""
    wanted = np.where(error > 0.0, error, np.inf)
    if np.isfinite(wanted).sum() < 2:
        return np.empty(0)
    values, vectors = np.linalg.eigh(covariance)
    keep = values > NOTHING * values.max()
    root = vectors[:, keep] * np.sqrt(values[keep])
    draws = int(np.clip(MOST_NUMBERS // error.size, FEWEST_DRAWS, MOST_DRAWS))
    rng = keyed_generator(seed, Purpose.GROUPS)
    out, step = np.empty(draws), max(1, CHUNK // error.size)
    for start in range(0, draws, step):
        z = rng.standard_normal((min(step, draws - start), root.shape[1])) @ root.T
        means = z.reshape(len(z), -1, error.shape[1])
        apart = np.abs(means[:, pairs[0]] - means[:, pairs[1]]) / wanted
        out[start : start + len(z)] = apart.max(axis=(1, 2))
    if math.isfinite(freedom):
        out /= np.sqrt(rng.chisquare(freedom, draws) / freedom)
    return out


def quantile(share: float, freedom: float) -> float:
    """Return a quantile of Student's t."""
    return float(ndtri(share) if math.isinf(freedom) else stdtrit(freedom, share))


def upper_tail(t: Floats, freedom: float) -> Floats:
    """Return the probability of more than t."""
    return np.asarray(ndtr(-t) if math.isinf(freedom) else stdtr(freedom, -t))
