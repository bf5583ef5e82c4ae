"""The multivariate normal distribution as a value."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from halfseen.checks import real_array
from halfseen.errors import InputError
from halfseen.files import read_whole, write_text_whole
from halfseen.parallel import single_blas_thread

FORMAT = "halfseen.gaussian"
VERSION = 1
# A file larger than this is refused before it is parsed (d = 5 000 takes about 500 MB as text).
LARGEST_FILE = 2**29
# How far a covariance may be from symmetric, on the scale of correlations.
SYMMETRY_TOLERANCE = 1e-8

Generator = np.random.Generator


class Gaussian:
    """A multivariate normal distribution N(mean, covariance).

    The object does not change after it is made; it holds one Cholesky factor that everything
    else is computed from.

    Parameters
    ----------
    mean : array-like of shape (d,)
    covariance : array-like of shape (d, d)
        Symmetric and positive definite.

    Examples
    --------
    >>> import halfseen as hs
    >>> g = hs.Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]])
    >>> g.condition([0], [2.0]).mean
    array([2.])
    >>> round(float(g.logpdf([0.0, 1.0])), 6)
    -2.117685
    """

    _mean: NDArray[np.float64]
    _covariance: NDArray[np.float64]
    _cholesky: NDArray[np.float64]

    def __init__(self, mean: ArrayLike, covariance: ArrayLike) -> None:
        m = np.atleast_1d(np.array(real_array("mean", mean)))
        S = np.atleast_2d(np.array(real_array("covariance", covariance)))
        _check_parameters(m, S)
        S = 0.5 * S + 0.5 * S.T
        try:
            cholesky = np.linalg.cholesky(S)
        except np.linalg.LinAlgError:
            smallest = float(np.linalg.eigvalsh(S)[0])
            raise InputError(
                "covariance must be positive definite; its smallest eigenvalue is "
                f"{smallest:.6g}. Remove columns that are combinations of others, or add a small "
                "multiple of the identity."
            ) from None
        for name, array in (("_mean", m), ("_covariance", S), ("_cholesky", cholesky)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Gaussian does not change; make a new one to set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Gaussian, (self._mean, self._covariance)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean, of shape (d,)."""
        return self._mean

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance, of shape (d, d)."""
        return self._covariance

    @property
    def cholesky(self) -> NDArray[np.float64]:
        """Lower triangular L with ``L @ L.T == covariance``."""
        return self._cholesky

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return self._mean.size

    @property
    def standard_deviations(self) -> NDArray[np.float64]:
        """Square roots of the diagonal of the covariance."""
        return np.sqrt(np.diag(self._covariance))

    @property
    def correlation(self) -> NDArray[np.float64]:
        """Correlation matrix."""
        scale = self.standard_deviations
        correlation = self._covariance / np.outer(scale, scale)
        np.fill_diagonal(correlation, 1.0)
        return correlation

    @cached_property
    def precision(self) -> NDArray[np.float64]:
        """Inverse of the covariance."""
        inverse = linalg.cho_solve((self._cholesky, True), np.eye(self.dimension))
        inverse = 0.5 * (inverse + inverse.T)
        inverse.setflags(write=False)
        return inverse

    @cached_property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the covariance."""
        return 2.0 * float(np.log(np.diag(self._cholesky)).sum())

    def sample(
        self, n: int, random_state: int | Sequence[int] | Generator | None = None
    ) -> NDArray[np.float64]:
        """Draw ``n`` rows.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, Generator or None

        Returns
        -------
        array of shape (n, d)

        Examples
        --------
        >>> import halfseen as hs
        >>> g = hs.Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]])
        >>> Y = g.sample(10_000, random_state=0)
        >>> Y.shape, bool(abs(Y[:, 1].mean() - 1.0) < 0.06)
        ((10000, 2), True)
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise InputError(f"n must be a number of rows, at least 0; got {n!r}.")
        rng = np.random.default_rng(random_state)
        try:
            with single_blas_thread():
                return self._mean + rng.standard_normal((n, self.dimension)) @ self._cholesky.T
        except (MemoryError, ValueError):
            raise InputError(
                f"{n} rows of {self.dimension} values do not fit into memory; draw fewer at a time."
            ) from None

    def whiten(self, Y: ArrayLike) -> NDArray[np.float64]:
        """Return ``L⁻¹(y - mean)`` for each row, where L is the Cholesky factor.

        Parameters
        ----------
        Y : array-like of shape (n, d) or (d,)

        Returns
        -------
        array of shape (n, d)

        Examples
        --------
        >>> import halfseen as hs
        >>> g = hs.Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]])
        >>> g.whiten(g.mean)
        array([[0., 0.]])
        >>> Z = g.whiten(g.sample(10_000, random_state=0))
        >>> bool(abs((Z.T @ Z / 10_000)[0, 1]) < 0.04)
        True
        """
        Y = np.atleast_2d(real_array("rows", Y))
        if Y.ndim != 2 or Y.shape[1] != self.dimension:
            raise InputError(
                f"rows must have {self.dimension} values, one for each coordinate; "
                f"got {Y.shape[1] if Y.ndim == 2 else f'shape {Y.shape}'}."
            )
        if not np.isfinite(Y).all():
            raise InputError("values must be finite; got NaN or infinity.")
        return linalg.solve_triangular(self._cholesky, (Y - self._mean).T, lower=True).T

    def logpdf(self, Y: ArrayLike) -> NDArray[np.float64] | float:
        """Log-density at one row or at each row of ``Y``.

        Parameters
        ----------
        Y : array-like of shape (n, d) or (d,)

        Returns
        -------
        array of shape (n,), or a number for a single row

        Examples
        --------
        >>> import halfseen as hs
        >>> hs.Gaussian([0.0], [[1.0]]).logpdf([[0.0], [1.0]]).round(4)
        array([-0.9189, -1.4189])
        """
        Y = real_array("rows", Y)
        Z = self.whiten(Y)
        constant = self.dimension * math.log(2.0 * math.pi) + self.log_determinant
        # Where a square overflows, the density is zero to any precision.
        with np.errstate(over="ignore"):
            values = -0.5 * (constant + (Z**2).sum(axis=1))
        return float(values[0]) if Y.ndim < 2 else values

    def marginal(self, indices: ArrayLike) -> Gaussian:
        """Distribution of some of the coordinates.

        Parameters
        ----------
        indices : array-like of int
            The coordinates to keep, in this order.

        Returns
        -------
        Gaussian

        Examples
        --------
        >>> import halfseen as hs
        >>> g = hs.Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]])
        >>> g.marginal([1])
        Gaussian(mean=[1.0], covariance=[[2.0]])
        """
        keep = self._indices(indices)
        return Gaussian(self._mean[keep], self._covariance[np.ix_(keep, keep)])

    def condition(self, indices: ArrayLike, values: ArrayLike) -> Gaussian:
        """Distribution of the other coordinates, given the values of those at ``indices``.

        Parameters
        ----------
        indices : array-like of int
            The coordinates that are known.
        values : array-like of the same length

        Returns
        -------
        Gaussian
            Of the others, in their order.

        Examples
        --------
        >>> import halfseen as hs
        >>> g = hs.Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]])
        >>> g.condition([0], [2.0])
        Gaussian(mean=[2.0], covariance=[[1.75]])
        """
        given = self._indices(indices)
        values = np.atleast_1d(real_array("values", values))
        if values.shape != given.shape:
            raise InputError(
                f"one value for each conditioned coordinate is needed: {given.size} indices, "
                f"{values.size} values."
            )
        rest = np.setdiff1d(np.arange(self.dimension), given)
        if rest.size == 0:
            raise InputError("every coordinate is conditioned on; nothing is left to describe.")
        # On the scale of correlations, where units cannot spoil the condition of the block.
        scale, R = self.standard_deviations, self.correlation
        factor = linalg.cho_factor(R[np.ix_(given, given)], lower=True)
        gain = linalg.cho_solve(factor, R[np.ix_(given, rest)]).T
        gain *= scale[rest, None] / scale[given]
        cross = self._covariance[np.ix_(rest, given)]
        return Gaussian(
            self._mean[rest] + gain @ (values - self._mean[given]),
            self._covariance[np.ix_(rest, rest)] - gain @ cross.T,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the distribution as JSON; every number comes back to the last bit.

        Parameters
        ----------
        path : path of the file

        Examples
        --------
        >>> import tempfile, halfseen as hs
        >>> g = hs.Gaussian([0.1], [[1.0 / 3.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     g.save(f"{folder}/g.json")
        ...     hs.Gaussian.load(f"{folder}/g.json") == g  # to the last bit
        True
        """
        content = {
            "format": FORMAT,
            "version": VERSION,
            "mean": self._mean.tolist(),
            "covariance": self._covariance.tolist(),
        }
        write_text_whole(path, json.dumps(content) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Gaussian:
        """Read what ``save`` wrote.

        Parameters
        ----------
        path : path of a file that ``save`` wrote

        Returns
        -------
        Gaussian

        Examples
        --------
        >>> import tempfile, halfseen as hs
        >>> g = hs.Gaussian([0.1], [[1.0 / 3.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     g.save(f"{folder}/g.json")
        ...     hs.Gaussian.load(f"{folder}/g.json") == g  # to the last bit
        True
        """
        content = read_whole(path, LARGEST_FILE)
        try:
            told = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not a saved Gaussian: not JSON ({error}).") from None
        return gaussian_in(told, path, cls)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Gaussian):
            return NotImplemented
        return np.array_equal(self._mean, other._mean) and np.array_equal(
            self._covariance, other._covariance
        )

    def __hash__(self) -> int:
        # Adding zero makes −0.0 and 0.0, which are equal, hash alike.
        return hash(((self._mean + 0.0).tobytes(), (self._covariance + 0.0).tobytes()))

    def __repr__(self) -> str:
        if self.dimension > 4:
            return f"Gaussian(dimension={self.dimension})"
        return f"Gaussian(mean={self._mean.tolist()}, covariance={self._covariance.tolist()})"

    def _indices(self, indices: ArrayLike) -> NDArray[np.intp]:
        try:
            chosen = np.atleast_1d(np.asarray(indices))
        except ValueError:
            raise InputError(f"coordinates must be a list of numbers; got {indices!r}.") from None
        if chosen.ndim > 1:
            raise InputError(f"coordinates must be a list; got shape {chosen.shape}.")
        if chosen.size == 0:
            raise InputError("at least one coordinate must be named; got none.")
        if chosen.dtype.kind not in "iu":
            raise InputError(f"coordinates are named by whole numbers; got dtype {chosen.dtype}.")
        wrong = chosen[(chosen < 0) | (chosen >= self.dimension)]
        if wrong.size:
            raise InputError(
                f"coordinates run from 0 to {self.dimension - 1}; got {int(wrong[0])}."
            )
        if np.unique(chosen).size != chosen.size:
            raise InputError(f"each coordinate may be named once; got {chosen.tolist()}.")
        return chosen.astype(np.intp)


def gaussian_in(
    content: Any, path: str | os.PathLike[str], kind: type[Gaussian] = Gaussian
) -> Gaussian:
    """Return the distribution in what was read of a file that ``Gaussian.save`` wrote."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'{path} is not a saved Gaussian: it lacks "format": "{FORMAT}".')
    if content.get("version") != VERSION:
        raise InputError(
            f"{path} is of version {content.get('version')!r}; this halfseen reads version "
            f"{VERSION}. A newer halfseen may have written it."
        )
    for name in ("mean", "covariance"):
        if name not in content:
            raise InputError(f'{path} is not a saved Gaussian: it lacks "{name}".')
    try:
        return kind(content["mean"], content["covariance"])
    except InputError as error:
        raise InputError(f"{path} is not a saved Gaussian: {error}") from None


def _check_parameters(mean: NDArray[np.float64], covariance: NDArray[np.float64]) -> None:
    if mean.ndim != 1 or mean.size == 0:
        raise InputError(f"mean must be a vector with at least one entry; got shape {mean.shape}.")
    expected = (mean.size, mean.size)
    if covariance.shape != expected:
        raise InputError(
            f"covariance must have shape {expected} to fit a mean of {mean.size}; "
            f"got {covariance.shape}."
        )
    if not np.isfinite(mean).all():
        where = int(np.flatnonzero(~np.isfinite(mean))[0])
        raise InputError(f"mean must be finite; entry {where} is {mean[where]}.")
    if not np.isfinite(covariance).all():
        i, j = (int(k) for k in np.argwhere(~np.isfinite(covariance))[0])
        raise InputError(f"covariance must be finite; entry ({i}, {j}) is {covariance[i, j]}.")
    # Relative to the two variances, so that units do not matter.
    root = np.sqrt(np.abs(np.diag(covariance)))
    with np.errstate(invalid="ignore"):
        gap = np.abs(covariance - covariance.T) / np.maximum(np.outer(root, root), 1e-300)
    if gap.max() > SYMMETRY_TOLERANCE:
        i, j = (int(k) for k in np.unravel_index(gap.argmax(), gap.shape))
        raise InputError(
            f"covariance must be symmetric; entry ({i}, {j}) is {covariance[i, j]:.6g} but "
            f"({j}, {i}) is {covariance[j, i]:.6g}."
        )
