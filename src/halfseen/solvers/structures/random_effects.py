"""Random intercepts and slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import real_array
from halfseen.errors import InputError
from halfseen.solvers.full_information.m_step import with_floor
from halfseen.solvers.structures.base import Structure, in_words
from halfseen.theta import entries, triangle

Floats = NDArray[np.float64]

# Eigenvalues of the covariance of effects below this share of the noise are zero.
ZERO = 1e-9
# Singular values of Z below this share of the largest are zero.
SAME = 1e-9


@in_words
@dataclass(frozen=True, repr=False)
class RandomEffects(Structure):
    """Each row has effects of its own: Σ = Z G Zᵀ + σ² I.

    With a column of ones in Z, rows have random intercepts, and with a column of times random slopes. G
    is any covariance, also a singular one: a variance of zero is said by a note. As a text
    "random_effects([[1, 0], [1, 1], [1, 2]])".

    Parameters
    ----------
    Z : array-like of shape (d, r)
        A row for each column of the table, and a column for each effect; r < d.
    names : sequence of str, optional
        Of the effects.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> Z = np.column_stack([np.ones(5), np.arange(5)])
    >>> truth = Z @ [[1.0, 0.1], [0.1, 0.2]] @ Z.T + 0.5 * np.eye(5)
    >>> rule = hs.DetectionLimits(lower=-1.0)
    >>> X = hs.simulate(hs.Gaussian(np.zeros(5), truth), rule, 500)
    >>> lines = hs.RandomEffects(Z, names=["intercept", "slope"])
    >>> fit = hs.fit(X, rule, covariance=lines, random_state=0)
    >>> fit.parameters, bool(abs(fit.structure["noise"].value - 0.5) < 0.1)
    (9, True)
    """

    Z: Any
    names: Any = None
    word: ClassVar[str] = "random_effects"
    plain: ClassVar[int] = 1

    def __post_init__(self) -> None:
        Z = real_array("Z", self.Z)
        if Z.ndim != 2 or not Z.size or not np.isfinite(Z).all():
            raise InputError(
                "Z must be an array of finite numbers, with a row for each column of the table and a "
                f"column for each effect; got shape {Z.shape}."
            )
        sizes = np.linalg.svd(Z, compute_uv=False)
        if Z.shape[1] >= Z.shape[0] or sizes[-1] <= SAME * sizes[0]:
            raise InputError(
                "Z must have fewer columns than rows, none of which is a combination of the others, so "
                f"that effects are told from noise; got shape {Z.shape}."
            )
        names = [f"effect {k + 1}" for k in range(Z.shape[1])] if self.names is None else self.names
        texts = isinstance(names, list | tuple) and all(isinstance(one, str) for one in names)
        if not texts or len(names) != Z.shape[1]:
            raise InputError(
                f"names must be {Z.shape[1]} texts, one for each effect; got {names!r}."
            )
        object.__setattr__(self, "Z", tuple(map(tuple, Z.tolist())))
        object.__setattr__(self, "names", None if self.names is None else tuple(names))

    @cached_property
    def _factors(self) -> tuple[Floats, Floats]:
        Q, R = np.linalg.qr(np.array(self.Z))
        return np.asarray(Q), np.asarray(R)

    @property
    def _effects(self) -> Sequence[str]:
        return self.names or [f"effect {k + 1}" for k in range(len(self.Z[0]))]

    @property
    def words(self) -> str:
        """What it is, in the words of a methods section."""
        return f"random effects of each row ({', '.join(self._effects)}) and noise"

    def for_columns(self, names: Sequence[str]) -> Structure:
        """Count the columns."""
        if len(names) != len(self.Z):
            raise InputError(
                f"Z must have a row for each of the {len(names)} columns; got {len(self.Z)}."
            )
        return self

    def count(self, d: int) -> int:
        """Return the number of entries of G on and below its diagonal, and 1 for the noise."""
        r = len(self.Z[0])
        return r * (r + 1) // 2 + 1

    def solve(self, S: Floats, rows: int) -> Floats:
        """Return the covariance that fits best, in closed form.

        With Z = Q R it is Q H Qᵀ + σ² (I − Q Qᵀ), and H ⪰ σ² I has the eigenvectors of Qᵀ S Q. Those of
        its eigenvalues that would be smaller than σ² are noise too (as in probabilistic principal
        components).
        """
        S = with_floor(S)
        Q = self._factors[0]
        inner = Q.T @ S @ Q
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        rest, free = np.trace(S) - np.trace(inner), len(S) - values.size
        # They grow: the smallest go to the noise as long as they are no larger.
        noise = rest / free
        for value in values:
            if value > noise:
                break
            rest, free = rest + value, free + 1
            noise = rest / free
        inner = (vectors * np.maximum(values - noise, 0.0)) @ vectors.T
        found = Q @ inner @ Q.T + noise * np.eye(len(S))
        return np.asarray(0.5 * (found + found.T))

    def _parts(self, covariance: Floats) -> tuple[Floats, Floats, float]:
        """Return eigenvalues and eigenvectors of R G Rᵀ, and the variance of the noise."""
        Q, d = self._factors[0], len(covariance)
        inner = Q.T @ covariance @ Q
        noise = float(np.trace(covariance) - np.trace(inner)) / (d - len(inner))
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        return values - noise, vectors, noise

    def basis(self, covariance: Floats) -> Floats:
        """Move G between eigenvectors that are not both of eigenvalue zero, and the noise."""
        values, vectors, noise = self._parts(covariance)
        zero = values < ZERO * noise
        i, j = triangle(values.size)
        kept = ~(zero[i] & zero[j])
        turned = self._factors[0] @ vectors
        moves = [
            np.outer(turned[:, a], turned[:, b]) + np.outer(turned[:, b], turned[:, a])
            for a, b in zip(i[kept], j[kept], strict=True)
        ]
        return entries(np.array([*moves, np.eye(len(covariance))])).T

    def learned(self, covariance: Floats) -> dict[str, Floats]:
        """Return G and the variance of the noise."""
        Q, R = self._factors
        noise = self._parts(covariance)[2]
        inner = Q.T @ covariance @ Q - noise * np.eye(len(R))
        back = np.linalg.inv(R)
        return {"effects": back @ inner @ back.T, "noise": np.asarray(noise)}

    def edges(self, covariance: Floats, names: Sequence[str]) -> list[str]:
        """Say which effects have no variance of their own."""
        values, _, noise = self._parts(covariance)
        zero = values < ZERO * noise
        if not zero.any():
            return []
        if zero.all():
            return ["The variances of all random effects are zero: the rest is noise."]
        G = self.learned(covariance)["effects"]
        own = [self._effects[int(k)] for k in np.flatnonzero(np.diag(G) < ZERO * np.diag(G).max())]
        if own:
            return [f"The variance of the random effect {', '.join(own)} is zero."]
        return [
            f"The covariance of the random effects ({', '.join(self._effects)}) is singular: "
            f"{int(zero.sum())} of {zero.size} of its directions have a variance of zero, so that "
            "correlations of effects are at their bound."
        ]
