"""The hidden part of a row given the seen part, for a fixed covariance: eqs. (3) and (4) of the paper.

What depends on the pattern of hidden coordinates alone is computed once for each pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import real_array
from halfseen.data.table import LARGEST_SQUARED
from halfseen.errors import ContradictionError, InputError, spelled
from halfseen.gaussian import Gaussian
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.samplers import Region
from halfseen.samplers.region import principal_directions

Floats = NDArray[np.float64]

# Patterns are kept while they hold at most this many numbers (half a gigabyte).
MOST_NUMBERS = 2**26


@dataclass(frozen=True)
class Pattern:
    """One pattern of hidden coordinates.

    Attributes
    ----------
    hidden, seen : integer arrays
    gain : array of shape (hidden, seen)
        Σ_{ĀA} Σ_AA⁻¹: how seen values move the hidden mean.
    W : array of shape (hidden, hidden)
        Cholesky factor of the conditional covariance.
    A : array of shape (m, hidden)
        Constraints in whitened coordinates, with unit rows.
    rows, lengths : arrays of shape (m,)
        Which thresholds they come from, and the lengths that were divided out.
    directions : array of shape (hidden, hidden)
        Principal directions of the constraints.
    """

    hidden: NDArray[np.intp]
    seen: NDArray[np.intp]
    gain: Floats
    W: Floats
    A: Floats
    rows: NDArray[np.intp]
    lengths: Floats
    directions: Floats

    @property
    def numbers(self) -> int:
        """How many numbers are held."""
        return self.gain.size + self.A.size + 4 * self.W.size

    @cached_property
    def moves(self) -> Floats:
        """Directions of a sweep: the axes, and in two or more dimensions the principal ones."""
        k = self.hidden.size
        return np.vstack([np.eye(k), self.directions])[: count_moves(k)]


def count_moves(k: int) -> int:
    """Return the moves of a sweep in k dimensions."""
    return k if k < 2 else 2 * k


class Conditionals:
    """Regions of the hidden parts of rows, for a covariance and a linear threshold rule."""

    def __init__(
        self, covariance: Floats, rule: LinearThreshold, X: Floats, names: tuple[str, ...]
    ) -> None:
        self.covariance, self.X, self.names = covariance, X, names
        self.rule = rule.normalised()
        self.hidden = np.isnan(X)
        self.levels = self.rule.hidden_region(X).levels()
        self._patterns: dict[bytes, Pattern] = {}
        self._numbers = 0

    def pattern(self, row: int) -> Pattern:
        """Return what the pattern of a row determines."""
        key = self.hidden[row].tobytes()
        found = self._patterns.get(key)
        if found is None:
            found = self._make(self.hidden[row])
            self._numbers += found.numbers
            if self._numbers > MOST_NUMBERS:
                self._patterns.clear()
                self._numbers = found.numbers
            self._patterns[key] = found
        return found

    def _make(self, mask: NDArray[np.bool_]) -> Pattern:
        hidden, seen = np.flatnonzero(mask), np.flatnonzero(~mask)
        S = self.covariance
        cross = S[np.ix_(hidden, seen)]
        gain = np.asarray(np.linalg.solve(S[np.ix_(seen, seen)], cross.T).T, dtype=np.float64)
        conditional = S[np.ix_(hidden, hidden)] - gain @ cross.T
        W = np.asarray(np.linalg.cholesky(conditional), dtype=np.float64)
        sign = np.where(mask, -1.0, 1.0)
        A = sign[:, None] * self.rule.V[:, hidden] @ W
        lengths = np.linalg.norm(A, axis=1)
        rows = np.flatnonzero(lengths > 0)
        A = A[rows] / lengths[rows, None]
        return Pattern(hidden, seen, gain, W, A, rows, lengths[rows], principal_directions(A))

    def conditional_mean(self, row: int, mean: Floats) -> Floats:
        """μ_cond of the hidden coordinates of a row, when the mean is ``mean``."""
        p = self.pattern(row)
        return mean[p.hidden] + p.gain @ (self.X[row, p.seen] - mean[p.seen])

    def region(self, row: int, mean: Floats) -> Region:
        """Return W⁻¹𝒦 with the whitened conditional mean."""
        p = self.pattern(row)
        centre = np.linalg.solve(p.W, self.conditional_mean(row, mean))
        levels = self.levels[row, p.rows] / p.lengths
        return Region(np.asarray(centre, dtype=np.float64), p.A, levels, p.directions)

    def complete(self, row: int, u: Floats) -> Floats:
        """Return the row x ∘ (W u)."""
        p = self.pattern(row)
        y = self.X[row].copy()
        y[p.hidden] = p.W @ u
        return y

    def feasible_points(self, mean: Floats) -> list[Floats]:
        """Return a point of each row's hidden region, in whitened coordinates.

        Raises
        ------
        ContradictionError
            For a row whose region is empty.
        """
        self._check_reach(mean)
        points = []
        for row in range(len(self.X)):
            if not self.hidden[row].any():
                points.append(np.empty(0))
                continue
            point = self.region(row, mean).feasible_point()
            if point is None:
                where = [self.names[k] for k in np.flatnonzero(self.hidden[row])]
                raise ContradictionError(
                    f"no values of its hidden columns ({', '.join(where[:5])}) would hide exactly "
                    "these and show the others, which contradicts the thresholds. Correct V and b, "
                    "or the row.",
                    row,
                )
            points.append(point)
        return points

    def _check_reach(self, mean: Floats) -> None:
        """Raise an ``InputError`` for a value whose squared distance no double can hold."""
        deviations = np.sqrt(np.diag(self.covariance))
        with np.errstate(over="ignore"):
            far = np.fmax(np.abs(self.X), np.abs(mean)) / deviations > LARGEST_SQUARED
        if far.any():
            row, column = (int(k) for k in np.argwhere(far)[0])
            raise InputError(
                f"the value or its mean is more than "
                f"{LARGEST_SQUARED:g} standard deviations ({deviations[column]:.3g}) from zero. Is "
                "the covariance in the units of the data?",
                row,
                self.names[column],
            )


def check_covariance(covariance: object, d: int) -> Gaussian:
    """Return N(0, Σ) for a known covariance of d columns, or raise with a sentence."""
    if covariance is None:
        raise InputError(
            "this method needs the covariance: pass "
            f"{spelled('covariance=', 'it from Python')}, of shape ({d}, {d}). It learns the mean alone."
        )
    S = real_array("covariance", covariance, "an array of numbers")
    if S.shape != (d, d):
        raise InputError(f"covariance must have shape ({d}, {d}), as the data have; got {S.shape}.")
    return Gaussian(np.zeros(d), S)
