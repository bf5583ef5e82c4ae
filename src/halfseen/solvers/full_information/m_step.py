"""How the parameters move, given the expected moments of complete rows.

Each structure of the covariance is a small class: ``solve`` maximises the expected log-likelihood
over it, and ``basis`` are the directions in which the covariance is free to move, which is what
standard errors need.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.expectation import Moments
from halfseen.theta import triangle

Floats = NDArray[np.float64]

# Smallest eigenvalue of a correlation matrix. The information about a covariance has the square of its
# condition, and must still be invertible.
SMALLEST_EIGENVALUE = 1e-6
# Below the first an eigenvalue counts as held there, up to rounding; below the second a covariance as
# singular, for two columns with a correlation of 1 − 1e-5 have an eigenvalue of 1e-5.
HELD, SINGULAR = 1.001 * SMALLEST_EIGENVALUE, 10.0 * SMALLEST_EIGENVALUE
SMALLEST_VARIANCE, LARGEST_VARIANCE = 1e-10, 1e10
# Coordinate steps for the scales of a known correlation, and when they are close enough.
MOST_STEPS, CLOSE_ENOUGH = 500, 1e-12
# The graphical lasso: floor of its input's eigenvalues, dual gap, precision of its inner problems, and
# most passes. The gap settles at about 1e-3 for such inner problems, with entries right to 1e-3.
LASSO_FLOOR, LASSO_GAP, LASSO_INNER, LASSO_PASSES = 1e-4, 1e-2, 1e-4, 100


class CovarianceStructure(Protocol):
    """What a covariance may be."""

    # Whether its estimate is pulled towards something, so that the information does not describe it.
    regularised: ClassVar[bool]
    # Whether its covariances form a linear space, which a stretched step does not leave.
    linear: ClassVar[bool]

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def solve(self, S: Floats, rows: int) -> Floats:
        """Return the covariance of the structure that fits second moments S best."""
        ...

    def basis(self, covariance: Floats) -> Floats:
        """Return the derivatives of (Σ_ij, i >= j) in the free parameters, one column each."""
        ...

    def count(self, d: int) -> int:
        """Return how many parameters of a covariance of d columns are free."""
        ...


@dataclass(frozen=True)
class Free:
    """Any positive definite covariance."""

    name: ClassVar[str] = "free"
    regularised: ClassVar[bool] = False
    linear: ClassVar[bool] = True

    def solve(self, S: Floats, rows: int) -> Floats:
        """Take the second moments themselves, kept off singular matrices."""
        return with_floor(S)

    def basis(self, covariance: Floats) -> Floats:
        """Every entry moves on its own."""
        return np.eye(self.count(len(covariance)))

    def count(self, d: int) -> int:
        """Return the number of entries on and below the diagonal."""
        return d * (d + 1) // 2


@dataclass(frozen=True)
class Known:
    """A covariance that is given."""

    covariance: Floats
    name: ClassVar[str] = "known"
    regularised: ClassVar[bool] = False
    linear: ClassVar[bool] = True

    def solve(self, S: Floats, rows: int) -> Floats:
        """Nothing moves."""
        return self.covariance

    def basis(self, covariance: Floats) -> Floats:
        """Nothing moves."""
        return np.empty((Free().count(len(covariance)), 0))

    def count(self, d: int) -> int:
        """Nothing is free."""
        return 0


@dataclass(frozen=True)
class Diagonal:
    """Independent columns."""

    name: ClassVar[str] = "diagonal"
    regularised: ClassVar[bool] = False
    linear: ClassVar[bool] = True

    def solve(self, S: Floats, rows: int) -> Floats:
        """Keep the variances."""
        return with_floor(np.diag(np.diag(S)))

    def basis(self, covariance: Floats) -> Floats:
        """Each variance moves on its own."""
        i, j = triangle(len(covariance))
        return np.eye(i.size)[:, i == j]

    def count(self, d: int) -> int:
        """Return one for each column."""
        return d


@dataclass(frozen=True)
class KnownCorrelation:
    """A given correlation matrix; the scale of each column is free."""

    correlation: Floats
    name: ClassVar[str] = "known correlation"
    regularised: ClassVar[bool] = False
    linear: ClassVar[bool] = False

    def solve(self, S: Floats, rows: int) -> Floats:
        """Scales s that maximise the likelihood of second moments S.

        With w = 1/s the function to be minimised is w'(R⁻¹∘S)w − 2Σ log w, which is convex; each
        coordinate has its minimum at the positive root of a quadratic.
        """
        S = with_floor(S)
        A = np.linalg.inv(self.correlation) * S
        w = 1.0 / np.sqrt(np.diag(S))
        for _ in range(MOST_STEPS):
            before = w.copy()
            for i in range(w.size):
                rest = A[i] @ w - A[i, i] * w[i]
                w[i] = 2.0 / (rest + np.sqrt(rest * rest + 4.0 * A[i, i]))
            if np.abs(w - before).max() < CLOSE_ENOUGH * w.max():
                break
        return self.correlation / np.outer(w, w)

    def basis(self, covariance: Floats) -> Floats:
        """Change row and column k in proportion with log s_k."""
        i, j = triangle(len(covariance))
        k = np.arange(len(covariance))
        return covariance[i, j][:, None] * ((i[:, None] == k).astype(float) + (j[:, None] == k))

    def count(self, d: int) -> int:
        """Return one for each column."""
        return d


@dataclass(frozen=True)
class Shrinkage:
    """Correlations pulled towards zero by a share; variances stay.

    Without a share, that of Chen, Wiesel, Eldar and Hero (oracle-approximating shrinkage, 2010) is
    taken, on the scale of correlations, anew in each step.
    """

    share: float | None = None
    name: ClassVar[str] = "shrinkage"
    regularised: ClassVar[bool] = True
    linear: ClassVar[bool] = False

    def solve(self, S: Floats, rows: int) -> Floats:
        """Return (1 − share)·S off the diagonal."""
        share = self.share_for(S, rows)
        return with_floor((1.0 - share) * S + share * np.diag(np.diag(S)))

    def share_for(self, S: Floats, rows: int) -> float:
        """Return the share, chosen by the oracle-approximating formula unless it is given."""
        if self.share is not None:
            return self.share
        R = correlation_of(S)
        d = len(R)
        # Eq. (23) of the paper, with tr R = d: the dispersion of R around the identity.
        square = float((R * R).sum())
        top = (1.0 - 2.0 / d) * square + d * d
        bottom = (rows + 1.0 - 2.0 / d) * (square - d)
        return 1.0 if bottom <= 0.0 else min(1.0, top / bottom)

    def basis(self, covariance: Floats) -> Floats:
        """As if it were free; intervals come from the bootstrap."""
        return Free().basis(covariance)

    def count(self, d: int) -> int:
        """As if it were free."""
        return Free().count(d)


@dataclass(frozen=True)
class Sparse:
    """A sparse precision matrix: the graphical lasso, on the scale of correlations.

    Attributes
    ----------
    penalty : float
        Weight of the sum of absolute off-diagonal entries of the precision matrix.
    """

    penalty: float
    name: ClassVar[str] = "sparse"
    regularised: ClassVar[bool] = True
    linear: ClassVar[bool] = False

    def solve(self, S: Floats, rows: int) -> Floats:
        """Return the covariance whose inverse solves the graphical lasso."""
        return graphical_lasso(with_floor(S), self.penalty)[0]

    def basis(self, covariance: Floats) -> Floats:
        """As if it were free; intervals come from the bootstrap."""
        return Free().basis(covariance)

    def count(self, d: int) -> int:
        """As if it were free."""
        return Free().count(d)


def graphical_lasso(S: Floats, penalty: float) -> tuple[Floats, Floats]:
    """Covariance and precision by scikit-learn's solver, on the scale of correlations."""
    # Imported where it is needed: scikit-learn takes longer to load than all of halfseen.
    from sklearn.covariance import graphical_lasso as solve

    scale = np.sqrt(np.diag(S))
    if len(S) == 1:
        return S, 1.0 / S
    # A singular matrix of moments is as good, but the solver divides by its eigenvalues.
    R = with_floor(correlation_of(S), LASSO_FLOOR)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Its own messages on convergence speak of steps that a later sweep repeats.
        warnings.simplefilter("ignore")
        options = {"tol": LASSO_GAP, "enet_tol": LASSO_INNER, "max_iter": LASSO_PASSES}
        try:
            T = solve(R, penalty, **options)[1]
        except FloatingPointError:
            T = solve(with_floor(R, 100.0 * LASSO_FLOOR), penalty, **options)[1]
    covariance = with_floor(np.linalg.inv(0.5 * (T + T.T)))
    return covariance * np.outer(scale, scale), T / np.outer(scale, scale)


def correlation_of(S: Floats) -> Floats:
    """Correlation matrix of a covariance."""
    scale = np.sqrt(np.diag(S))
    R = S / np.outer(scale, scale)
    np.fill_diagonal(R, 1.0)
    return R


def with_floor(S: Floats, floor: float = SMALLEST_EIGENVALUE) -> Floats:
    """Return the nearest covariance whose correlations have eigenvalues of at least ``floor``.

    Variances stay within bounds too, in units of the seen values: rows that were drawn anew may hide all
    of a column.
    """
    S = 0.5 * (S + S.T)
    variance = np.diag(S)
    bounded = np.clip(variance, SMALLEST_VARIANCE, LARGEST_VARIANCE)
    if not np.array_equal(bounded, variance):
        ratio = np.sqrt(bounded / np.where(variance > 0.0, variance, bounded))
        S = S * np.outer(ratio, ratio)
        np.fill_diagonal(S, bounded)
    scale = np.sqrt(np.diag(S))
    R = S / np.outer(scale, scale)
    try:
        np.linalg.cholesky(R - floor * np.eye(len(R)))
        return S
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(R)
        R = (vectors * np.maximum(values, floor)) @ vectors.T
        return 0.5 * (R + R.T) * np.outer(scale, scale)


def singular(covariance: Floats) -> bool:
    """Whether a covariance lies where its smallest eigenvalue is held, or next to it."""
    return bool(np.linalg.eigvalsh(correlation_of(covariance))[0] < SINGULAR)


def count_held(covariance: Floats) -> int:
    """Count the eigenvalues of the correlations that are held."""
    return int((np.linalg.eigvalsh(correlation_of(covariance)) < HELD).sum())


def bounds_of(structure: CovarianceStructure, covariance: Floats) -> int:
    """Count the parameters of a structure that are at a bound: its basis leaves them out."""
    if structure.linear or structure.regularised:
        return 0
    return structure.count(len(covariance)) - structure.basis(covariance).shape[1]


@dataclass(frozen=True)
class MStep:
    """Mean and covariance from expected moments.

    Attributes
    ----------
    structure : CovarianceStructure
    mean : array of shape (d,) or None
        The mean, where it is known.
    margins : pair of arrays of shape (d,), or None
        Means and variances of the columns by themselves, where these are kept and correlations alone
        are learned.
    """

    # The class of coordinates that this step is climbed in; None for ``charts.Chart``.
    chart_type: ClassVar[Any] = None

    structure: CovarianceStructure
    mean: Floats | None = None
    margins: tuple[Floats, Floats] | None = None

    def solve(self, moments: Moments, rows: int) -> tuple[Floats, Floats]:
        """Return the mean and covariance that fit best."""
        if self.margins is not None:
            mean, variance = self.margins
            R = correlation_of(self.structure.solve(moments.about(mean), rows))
            return mean, R * np.sqrt(np.outer(variance, variance))
        mean = moments.first if self.mean is None else self.mean
        return mean, self.structure.solve(moments.about(mean), rows)

    def admit(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return a place near this one that the structure allows: to start from, or after a step."""
        mean = mean if self.mean is None else self.mean
        structure = self.structure
        # A penalty is not yet chosen where a sparse matrix is asked for: any start will do.
        return mean, covariance if structure.regularised else structure.solve(covariance, 1)

    def basis(self, covariance: Floats) -> Floats:
        """Return the derivatives of (μ, Σ_ij for i >= j) in all free parameters, one column each."""
        d = len(covariance)
        of_mean = np.eye(d) if self.mean is None else np.empty((d, 0))
        of_covariance = self.structure.basis(covariance)
        out = np.zeros((d + len(of_covariance), of_mean.shape[1] + of_covariance.shape[1]))
        out[:d, : of_mean.shape[1]] = of_mean
        out[d:, of_mean.shape[1] :] = of_covariance
        return out

    def count(self, d: int) -> int:
        """Return how many parameters are free."""
        return self.structure.count(d) + (d if self.mean is None else 0)

    def scatter(self, covariance: Floats) -> Floats:
        """Return the covariance that is not to be singular: all of it."""
        return covariance

    def bounds(self, covariance: Floats) -> int:
        """Count the parameters that are at a bound."""
        return bounds_of(self.structure, covariance)

    def count_held(self, covariance: Floats) -> int:
        """Count the eigenvalues that are held on the edge, and parameters that are at a bound."""
        return count_held(self.scatter(covariance)) + self.bounds(covariance)
