"""Structures of repeated measures: compound symmetry, autoregression, Toeplitz.

Columns are visits, in their order. Variances are equal, or (heteroscedastic) each column has its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.solvers.full_information.m_step import SINGULAR, correlation_of, with_floor
from halfseen.solvers.structures.base import Structure, in_words, score_up
from halfseen.theta import entries

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Repeated(Structure):
    """Variances, and correlations that depend on how far visits are apart.

    Parameters
    ----------
    heteroscedastic : bool
        Whether each column has a variance of its own.
    """

    heteroscedastic: bool = False
    called: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not isinstance(self.heteroscedastic, bool):
            raise InputError(
                f"heteroscedastic must be True or False; got {self.heteroscedastic!r}."
            )

    @property
    def scale_free(self) -> bool:
        """Whether it says the same whatever the units of each column are."""
        return self.heteroscedastic

    @property
    def words(self) -> str:
        """What it is, in the words of a methods section."""
        return self.called + (", with a variance for each column" if self.heteroscedastic else "")

    @abstractmethod
    def _correlations(self, d: int) -> int:
        """Return how many correlations are free."""

    @abstractmethod
    def _correlation_at(self, r: Floats, d: int) -> Floats:
        """Return the correlation matrix."""

    @abstractmethod
    def _correlation_slopes(self, r: Floats, d: int) -> Floats:
        """Return its derivatives, of shape (correlations, d, d)."""

    @abstractmethod
    def _correlations_of(self, R: Floats) -> Floats:
        """Return the correlations of a matrix that has the structure."""

    def _variances(self, d: int) -> int:
        return d if self.heteroscedastic else 1

    def count(self, d: int) -> int:
        """Return the number of variances and correlations."""
        return self._variances(d) + self._correlations(d)

    def _parameters(self, covariance: Floats) -> Floats:
        """Return logarithms of variances, and correlations."""
        d = len(covariance)
        if self.heteroscedastic:
            log_variances = np.log(np.diag(covariance))
            R = correlation_of(covariance)
        else:
            variance = np.diag(covariance).mean()
            log_variances, R = np.array([np.log(variance)]), covariance / variance
        return np.concatenate([log_variances, self._correlations_of(R) if d > 1 else np.empty(0)])

    def _at(self, theta: Floats, d: int) -> Floats:
        size = self._variances(d)
        with np.errstate(over="ignore", invalid="ignore"):
            scale = np.exp(0.5 * theta[:size]) * np.ones(d)
            return self._correlation_at(theta[size:], d) * np.outer(scale, scale)

    def _slopes(self, theta: Floats, d: int) -> Floats:
        size = self._variances(d)
        scale = np.exp(0.5 * theta[:size]) * np.ones(d)
        squares = np.outer(scale, scale)
        whole = self._correlation_at(theta[size:], d) * squares
        if self.heteroscedastic:
            own = np.eye(d)
            of_variances = 0.5 * whole * (own[:, :, None] + own[:, None, :])
        else:
            of_variances = whole[None]
        of_correlations = self._correlation_slopes(theta[size:], d) * squares
        return entries(np.concatenate([of_variances, of_correlations])).T

    def solve(self, S: Floats, rows: int) -> Floats:
        """Return the covariance of the structure that fits second moments S best, by scoring."""
        S, d = with_floor(S), len(S)
        start = self._parameters(S)
        size = self._variances(d)
        while np.linalg.eigvalsh(self._correlation_at(start[size:], d))[0] < SINGULAR:
            start[size:] *= 0.5
        found = score_up(S, start, lambda x: self._at(x, d), lambda x: self._slopes(x, d))
        return self._at(found, d)

    def basis(self, covariance: Floats) -> Floats:
        """Move the logarithms of variances, and the correlations."""
        return self._slopes(self._parameters(covariance), len(covariance))

    def learned(self, covariance: Floats) -> dict[str, Floats]:
        """Return variance and correlation."""
        d, theta = len(covariance), self._parameters(covariance)
        size = self._variances(d)
        variances, r = np.exp(theta[:size]), theta[size:]
        out = {"variances": variances} if self.heteroscedastic else {"variance": variances[0]}
        if r.size:
            out["correlation"] = r[0] if self._correlations(3) == 1 else r
        return out

    def edges(self, covariance: Floats, names: Sequence[str]) -> list[str]:
        """Say so where the correlations are next to singular."""
        R = correlation_of(covariance)
        if np.linalg.eigvalsh(R)[0] >= SINGULAR:
            return []
        shown = ", ".join(
            f"{one:.4f}" for one in np.atleast_1d(self.learned(covariance)["correlation"])
        )
        return [f"The correlation of the {self.called} ({shown}) is at its bound."]


@in_words
@dataclass(frozen=True, repr=False)
class CompoundSymmetry(Repeated):
    """Equal variances, and one correlation between any two columns.

    What a random intercept for each subject gives, but that the correlation may be negative, down to
    −1/(d − 1). As a text "compound_symmetry", or "cs".

    Parameters
    ----------
    heteroscedastic : bool
        Whether each column has a variance of its own ("csh").

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> truth = hs.Gaussian(np.zeros(4), 0.6 + 0.4 * np.eye(4))
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> X = hs.simulate(truth, rule, 500)
    >>> fit = hs.fit(X, rule, covariance=hs.CompoundSymmetry(), random_state=0)
    >>> fit.parameters, bool(abs(fit.structure["correlation"].value - 0.6) < 0.06)
    (6, True)
    """

    word: ClassVar[str] = "compound_symmetry"
    called: ClassVar[str] = "compound symmetry"

    def _correlations(self, d: int) -> int:
        """Return 1, where there are two columns."""
        return min(d - 1, 1)

    def _correlation_at(self, r: Floats, d: int) -> Floats:
        """Return r everywhere off the diagonal."""
        return np.eye(d) + (r[0] if d > 1 else 0.0) * (1.0 - np.eye(d))

    def _correlation_slopes(self, r: Floats, d: int) -> Floats:
        """Return 1 everywhere off the diagonal."""
        return np.ones((self._correlations(d), 1, 1)) * (1.0 - np.eye(d))

    def _correlations_of(self, R: Floats) -> Floats:
        """Return the average off the diagonal."""
        d = len(R)
        return np.array([(R.sum() - np.trace(R)) / (d * (d - 1))])

    def solve(self, S: Floats, rows: int) -> Floats:
        """Return the covariance that fits best: averages of S, where variances are equal."""
        if self.heteroscedastic:
            return super().solve(S, rows)
        return self._at(self._parameters(with_floor(S)), len(S))


@in_words
@dataclass(frozen=True, repr=False)
class AR1(Repeated):
    """Equal variances, and correlations ρ^k between columns that are k apart.

    Autoregression of first order, for visits at equal distances. As a text "ar1".

    Parameters
    ----------
    heteroscedastic : bool
        Whether each column has a variance of its own ("ar1h").

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> lags = abs(np.subtract.outer(np.arange(5), np.arange(5)))
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> X = hs.simulate(hs.Gaussian(np.zeros(5), 0.7**lags), rule, 500)
    >>> fit = hs.fit(X, rule, covariance="ar1", random_state=0)
    >>> fit.parameters, bool(abs(fit.structure["correlation"].value - 0.7) < 0.06)
    (7, True)
    """

    word: ClassVar[str] = "ar1"
    called: ClassVar[str] = "autoregression of first order"

    def _correlations(self, d: int) -> int:
        """Return 1, where there are two columns."""
        return min(d - 1, 1)

    def _correlation_at(self, r: Floats, d: int) -> Floats:
        """Return r to the power of the distance."""
        return np.asarray((r[0] if d > 1 else 0.0) ** _lags(d), dtype=np.float64)

    def _correlation_slopes(self, r: Floats, d: int) -> Floats:
        """Return k r^(k − 1) at the distance k."""
        lags = _lags(d)
        return np.array([lags * one ** np.maximum(lags - 1, 0) for one in r]).reshape(-1, d, d)

    def _correlations_of(self, R: Floats) -> Floats:
        """Return the average of neighbours."""
        return np.array([np.diag(R, -1).mean()])


@in_words
@dataclass(frozen=True, repr=False)
class Toeplitz(Repeated):
    """Equal variances, and a correlation for each distance of columns.

    For visits at equal distances. As a text "toeplitz", or "toep".

    Parameters
    ----------
    heteroscedastic : bool
        Whether each column has a variance of its own ("toeph").

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> lags = abs(np.subtract.outer(np.arange(4), np.arange(4)))
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> X = hs.simulate(hs.Gaussian(np.zeros(4), 0.3 + 0.7 * 0.5**lags), rule, 500)
    >>> fit = hs.fit(X, rule, covariance=hs.Toeplitz(), random_state=0)
    >>> fit.structure["correlation"].value.shape
    (3,)
    """

    word: ClassVar[str] = "toeplitz"
    called: ClassVar[str] = "Toeplitz correlations"

    def _correlations(self, d: int) -> int:
        """Return the number of distances."""
        return d - 1

    def _correlation_at(self, r: Floats, d: int) -> Floats:
        """Return a correlation for each distance."""
        return np.concatenate([[1.0], r])[_lags(d)]

    def _correlation_slopes(self, r: Floats, d: int) -> Floats:
        """Return 1 at each distance by itself."""
        return (_lags(d) == np.arange(1, d)[:, None, None]).astype(float)

    def _correlations_of(self, R: Floats) -> Floats:
        """Return averages along the diagonals."""
        return np.array([np.diag(R, -k).mean() for k in range(1, len(R))])


def _lags(d: int) -> NDArray[np.intp]:
    """Return how far columns are apart."""
    return np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
