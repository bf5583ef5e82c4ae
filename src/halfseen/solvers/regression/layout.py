"""The rows of a regression as the engine wants them: outcomes, and covariates without scale or place.

Covariates are centred and brought to a basis that is orthonormal over the rows, so that any regressors
that span the same space give the same answer, however near they are to combinations of each other.
Outcomes have the units of what is seen of them; latent ones have units of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from halfseen.data.triangles import lengths_of
from halfseen.missingness.holes import SEEN, Holes, Inequalities
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.regression.places import Place, Terms

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Singular values of centred columns of unit length that count as zero: the constant is a combination of
# the columns, or of none but itself.
SAME = 1e-9


class Regressors(NamedTuple):
    """Regressors W, as (1, X) T: X has mean 0 and identity covariance over the rows.

    Attributes
    ----------
    X : array of shape (n, p)
    T : array of shape (1 + p, k)
    """

    X: Floats
    T: Floats

    @classmethod
    def of(cls, W: Floats, weights: Floats | None = None) -> Regressors:
        """Centre and whiten some regressors, over rows that may have weights, 1 on average."""
        n = len(W)
        middle = W.mean(axis=0) if weights is None else weights @ W / n
        root = np.ones((n, 1)) if weights is None else np.sqrt(weights)[:, None]
        centred = root * (W - middle)
        length = np.sqrt((centred * centred).sum(axis=0))
        varying = length > SAME * np.sqrt(((root * W) ** 2).sum(axis=0))
        scaled = centred[:, varying] / length[varying]
        left, sizes, right = np.linalg.svd(scaled, full_matrices=False)
        kept = sizes > SAME * sizes.max(initial=0.0)
        X = np.sqrt(n) * left[:, kept] / root
        slopes = np.zeros((int(kept.sum()), W.shape[1]))
        slopes[:, varying] = sizes[kept, None] * right[kept] * length[varying] / np.sqrt(n)
        return cls(np.ascontiguousarray(X), np.vstack([middle, slopes]))

    @classmethod
    def scaled(cls, W: Floats, weights: Floats | None = None) -> Regressors:
        """Centre some regressors and bring each to the variance 1, as they are otherwise."""
        middle = np.average(W, axis=0, weights=weights)
        deviation = np.sqrt(np.average((W - middle) ** 2, axis=0, weights=weights))
        varying = np.flatnonzero(deviation > SAME * np.sqrt((W * W).mean(axis=0)))
        X = (W[:, varying] - middle[varying]) / deviation[varying]
        slopes = np.zeros((varying.size, W.shape[1]))
        slopes[np.arange(varying.size), varying] = deviation[varying]
        return cls(np.ascontiguousarray(X), np.vstack([middle, slopes]))


class Whitening(NamedTuple):
    """The same of regressors in pieces: X = (W − the first row of T) ``into``.

    Attributes
    ----------
    T : array of shape (1 + p, k)
        Of ``Regressors``.
    into : array of shape (k, p)
    """

    T: Floats
    into: Floats

    @classmethod
    def of(cls, triangle: Floats, rows: int) -> Whitening:
        """Take it from the triangle of (1, W), whose rows after the first are that of W centred."""
        middle, centred = triangle[0, 1:] / triangle[0, 0], triangle[1:, 1:]
        length = lengths_of(centred)
        varying = length > SAME * lengths_of(triangle[:, 1:])
        _, sizes, right = np.linalg.svd(centred[:, varying] / length[varying], full_matrices=False)
        kept = sizes > SAME * sizes.max(initial=0.0)
        slopes = np.zeros((int(kept.sum()), middle.size))
        into = np.zeros(slopes.shape[::-1])
        unit = length[varying] / np.sqrt(rows)
        slopes[:, varying] = sizes[kept, None] * right[kept] * unit
        into[varying] = (right[kept] / sizes[kept, None]).T / unit[:, None]
        return cls(np.vstack([middle, slopes]), into)

    def covariates(self, W: Floats) -> Floats:
        """Return X of some rows."""
        return np.asarray((W - self.T[0]) @ self.into)


@dataclass(frozen=True, eq=False)
class Equations:
    """What the coefficients in the units of the table are to those of the engine.

    Attributes
    ----------
    T : array of shape (1 + p, k)
        Of ``Regressors``.
    mask : boolean array of shape (q, k)
        Which regressors stand in which equation.
    fixed : array of shape (q, k)
        Coefficients that are given; NaN where they are free.
    ties : array of shape (free coefficients, parameters), or None
        Free coefficients, equation by equation, as combinations of fewer parameters.
    centre, scale : arrays of shape (q,)
        Units of the outcomes.
    """

    T: Floats
    mask: Mask
    fixed: Floats
    ties: Floats | None
    centre: Floats
    scale: Floats

    def regressors(self, W: Floats) -> Floats:
        """Return the covariates X of other rows."""
        return np.asarray((W - self.T[0]) @ np.linalg.pinv(self.T[1:]))

    @property
    def free(self) -> Mask:
        """Which coefficients are learned."""
        return self.mask & np.isnan(self.fixed)

    @property
    def _given(self) -> Floats:
        """Coefficients that are given, and 0 elsewhere."""
        return np.where(self.mask & ~np.isnan(self.fixed), self.fixed, 0.0)

    @cached_property
    def _unrestricted(self) -> bool:
        """Whether every regressor stands in every equation, and they span the constant."""
        q, k = self.T.shape
        return self.ties is None and q == k and bool(self.free.all())

    @cached_property
    def _factors(self) -> tuple[Floats, Floats]:
        """Return Q and R of what the parameters do to Γ, row by row."""
        columns = [self.T[:, own] / s for own, s in zip(self.free, self.scale, strict=True)]
        moves = block_diag(*columns)
        Q, R = np.linalg.qr(moves if self.ties is None else moves @ self.ties)
        return np.asarray(Q), np.asarray(R)

    @cached_property
    def terms(self) -> Terms:
        """The same in the coordinates of the engine."""
        if self._unrestricted:
            return Terms(np.zeros((len(self.mask), len(self.T))))
        return Terms(self.of_coefficients(self._given), self._factors[0])

    def coefficients(self, place: Place) -> Floats:
        """Return the coefficients of the regressors, of shape (q, k); 0 for those not in the model."""
        if self._unrestricted:
            left = self.scale[:, None] * place.coefficients
            left[:, 0] += self.centre
            return np.asarray(np.linalg.solve(self.T, left.T).T)
        out = self._given
        out[self.free] = self.from_terms @ self.terms.of(place.coefficients)
        return out

    def of_coefficients(self, coefficients: Floats) -> Floats:
        """Return Γ in the coordinates of the engine."""
        # Columns that rules alone speak of come last, and stand in no equation.
        out = coefficients @ self.T[:, : coefficients.shape[1]].T
        out[:, 0] -= self.centre
        return np.asarray(out / self.scale[:, None])

    @cached_property
    def from_terms(self) -> Floats:
        """Derivatives of the free coefficients, equation by equation, in those of ``terms``."""
        if self._unrestricted:
            inverse = np.linalg.inv(self.T)
            return np.asarray(block_diag(*(s * inverse for s in self.scale)))
        back = np.asarray(np.linalg.inv(self._factors[1]))
        return back if self.ties is None else np.asarray(self.ties @ back)


def with_covariates(outcomes: Problem, X: Floats, T: Floats, count: int) -> Problem:
    """Put covariates, of which every value is seen, beside the outcomes.

    Columns after the first ``count``, with which a rule compares outcomes, are combinations of a
    constant and the covariates, the last of T: inequalities in them become inequalities in these.
    """
    n, p = X.shape
    holes = outcomes.holes
    index = np.hstack([holes.index[:, :count], np.full((n, p), SEEN, dtype=np.int32)])
    bound = holes.inequalities
    if bound is not None:
        more = T[:, T.shape[1] - (outcomes.shape[1] - count) :].copy()
        more[0] -= outcomes.centre[count:]
        slopes = bound.V[:, count:] @ (more / outcomes.scale[count:]).T
        V = np.hstack([bound.V[:, :count], slopes[:, 1:]])
        bound = Inequalities(V, bound.b - slopes[:, 0], bound.sign, bound.owner)
    return replace(
        outcomes,
        Y=np.hstack([outcomes.Y[:, :count], X]),
        holes=Holes(index, holes.sets, holes.set_column, bound),
        centre=np.concatenate([outcomes.centre[:count], np.zeros(p)]),
        scale=np.concatenate([outcomes.scale[:count], np.ones(p)]),
        names=(*outcomes.names[:count], *(f"regressor {k}" for k in range(p))),
        at_random=None,
        missingness=None,
    )
