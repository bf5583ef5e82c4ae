"""A few common factors and noise: what wide tables need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from halfseen.checks import whole_number
from halfseen.errors import InputError
from halfseen.solvers.full_information.m_step import correlation_of, with_floor
from halfseen.solvers.result import name_some
from halfseen.solvers.structures.base import Structure, in_words
from halfseen.theta import triangle

Floats = NDArray[np.float64]

# Noise is at least this share of the variance of a column (that of R's ``factanal``): without a bound
# the likelihood may grow towards columns that have none.
LEAST_NOISE = 0.005
# Noise within this factor of the bound is at the bound.
AT_BOUND = 1.02
# Newton steps, shorter ones that are tried, and when a step changes nothing.
MOST_STEPS, MOST_SHORTER, CLOSE_ENOUGH = 200, 20, 1e-20
# What keeps a step finite where an eigenvalue says nothing.
RIDGE = 1e-10


@in_words
@dataclass(frozen=True, repr=False)
class Factor(Structure):
    """A few common factors, and noise of each column's own: Σ = Λ Λᵀ + Ψ.

    For wide tables, in which a free covariance has too many parameters. Loadings Λ are those for which
    Λᵀ Ψ⁻¹ Λ is diagonal and falls, and columns add up to something positive; any rotation gives the same
    covariance. Noise is at least 0.5 % of the variance of a column. As a text "factor(2)".

    Parameters
    ----------
    k : int or "bic"
        How many factors; by default as many as Schwarz' criterion (BIC) says, of 0, 1, 2 and so on up to
        where it has grown twice.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> loadings = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    >>> truth = np.outer(loadings, loadings) + np.diag(1.0 - loadings**2)
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> X = hs.simulate(hs.Gaussian(np.zeros(5), truth), rule, 500)
    >>> fit = hs.fit(X, rule, covariance=hs.Factor(1), random_state=0)
    >>> fit.structure["loadings"].value.shape, bool((fit.structure["loadings"].value > 0.3).all())
    ((5, 1), True)
    """

    k: Any = "bic"
    word: ClassVar[str] = "factor"
    plain: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.k is None or (isinstance(self.k, str) and self.k.lower() == "bic"):
            object.__setattr__(self, "k", "bic")
        elif isinstance(self.k, str):
            raise InputError(f"k must be a number of factors, or 'bic'; got {self.k!r}.")
        else:
            object.__setattr__(self, "k", whole_number("k", self.k, 0))

    @property
    def scale_free(self) -> bool:
        """Always: loadings and noise have the units of their columns."""
        return True

    @property
    def words(self) -> str:
        """What it is, in the words of a methods section."""
        return f"{self.k} common factor{'' if self.k == 1 else 's'} and noise"

    def for_columns(self, names: Sequence[str]) -> Structure:
        """Check that there are fewer parameters than a free covariance has."""
        most = most_factors(len(names))
        if self.k != "bic" and self.k > most:
            raise InputError(
                f"of {len(names)} columns at most {most} common factors can be told from noise; got "
                f"{self.k}."
            )
        return self

    def count(self, d: int) -> int:
        """Return the number of loadings, less that of rotations, and of variances of noise."""
        k = int(self.k)
        return d * (k + 1) - k * (k - 1) // 2

    def solve(self, S: Floats, rows: int) -> Floats:
        """Return the covariance that fits best: Newton's steps in log Ψ, as Λ given Ψ is known."""
        S = with_floor(S)
        scale = np.sqrt(np.diag(S))
        R = correlation_of(S)
        loadings, noise = split(R, int(self.k))
        return (loadings @ loadings.T + np.diag(noise)) * np.outer(scale, scale)

    def _parts(self, covariance: Floats) -> tuple[Floats, Floats]:
        """Return loadings and noise of a covariance of this structure."""
        scale = np.sqrt(np.diag(covariance))
        loadings, noise = split(correlation_of(covariance), int(self.k))
        return loadings * scale[:, None], noise * scale * scale

    def basis(self, covariance: Floats) -> Floats:
        """Move loadings but for rotations, and noise that is not at its bound."""
        loadings, noise = self._parts(covariance)
        d, k = loadings.shape
        i, j = triangle(d)
        if k:
            loadings, pivots = _trapezoid(loadings)
        free = [
            (row, a) for a in range(k) for row in range(d) if row not in pivots[:a]
        ]  # fmt: skip
        out = np.zeros((i.size, len(free) + d))
        for column, (row, a) in enumerate(free):
            out[:, column] = (i == row) * loadings[j, a] + (j == row) * loadings[i, a]
        own = np.arange(d)
        out[own * (own + 3) // 2, len(free) + own] = 1.0
        held = noise < AT_BOUND * LEAST_NOISE * np.diag(covariance)
        return np.delete(out, len(free) + np.flatnonzero(held), axis=1)

    def learned(self, covariance: Floats) -> dict[str, Floats]:
        """Return loadings and the variances of noise."""
        loadings, noise = self._parts(covariance)
        return ({"loadings": loadings} if loadings.size else {}) | {"uniquenesses": noise}

    def edges(self, covariance: Floats, names: Sequence[str]) -> list[str]:
        """Say of which columns the noise is at its bound (Heywood cases)."""
        noise = self._parts(covariance)[1]
        held = np.flatnonzero(noise < AT_BOUND * LEAST_NOISE * np.diag(covariance))
        if not held.size:
            return []
        return [
            f"The noise of {name_some([names[int(j)] for j in held])} is at its bound, "
            f"{LEAST_NOISE:.1%} of the variance: factors explain all of it. Try fewer factors."
        ]


def most_factors(d: int) -> int:
    """Return how many factors have no more parameters than a free covariance (Ledermann's bound)."""
    return int(np.floor(d + 0.5 - np.sqrt(2.0 * d + 0.25) + 1e-9))


def split(R: Floats, k: int) -> tuple[Floats, Floats]:
    """Return loadings and noise that fit a correlation matrix best, by maximum likelihood.

    Given Ψ the loadings are known from the eigenvectors w and eigenvalues γ of Ψ^-½ R Ψ^-½, and what is
    left to be minimised over log Ψ is the sum of γ − log γ − 1 over all but the k largest (Lawley and
    Maxwell). Its slope is Σ (1 − γ) w², and its curvature next to (Σ w wᵀ)² by entries (Jöreskog 1967).
    """
    d = len(R)
    if k == 0:
        return np.empty((d, 0)), np.ones(d)
    lowest = np.log(LEAST_NOISE)
    precision = np.diag(np.linalg.inv(R))
    x = np.clip(np.log((1.0 - 0.5 * k / d) / precision), lowest, 0.0)
    value, slope, curvature = _profile(R, x, k)
    for _ in range(MOST_STEPS):
        moving = ~((x <= lowest) & (slope > 0.0)) & ~((x >= 0.0) & (slope < 0.0))
        own = np.ix_(moving, moving)
        inner = curvature[own] + RIDGE * np.eye(int(moving.sum()))
        step = np.zeros(d)
        step[moving] = -np.linalg.solve(inner, slope[moving])
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        for shorter in range(MOST_SHORTER):
            there = np.clip(x + 0.5**shorter * step, lowest, 0.0)
            found = _profile(R, there, k)
            if found[0] <= value:
                break
        else:
            break
        promise = -float(slope @ step)
        x, (value, slope, curvature) = there, found
        if promise < CLOSE_ENOUGH:
            break
    root = np.exp(0.5 * x)
    values, vectors = np.linalg.eigh(R / np.outer(root, root))
    top = np.sqrt(np.maximum(values[::-1][:k] - 1.0, 0.0))
    loadings = root[:, None] * vectors[:, ::-1][:, :k] * top
    return loadings * np.where(loadings.sum(axis=0) < 0.0, -1.0, 1.0), np.exp(x)


def _profile(R: Floats, x: Floats, k: int) -> tuple[float, Floats, Floats]:
    """Return what is to be minimised over log Ψ, its slope, and about its curvature."""
    root = np.exp(0.5 * x)
    values, vectors = np.linalg.eigh(R / np.outer(root, root))
    # Factors with eigenvalues below 1 would have negative variances: they are noise as well.
    noise = np.arange(len(R)) < len(R) - k
    noise |= values < 1.0
    g, w = values[noise], vectors[:, noise]
    inner = w @ w.T
    return float((g - np.log(g) - 1.0).sum()), (w * w) @ (1.0 - g), inner * inner


def _trapezoid(loadings: Floats) -> tuple[Floats, list[int]]:
    """Rotate loadings so that those of some rows are triangular; return these rows too."""
    k = loadings.shape[1]
    Q, _, order = qr(loadings.T, pivoting=True)
    return np.asarray(loadings @ Q), [int(row) for row in order[:k]]
