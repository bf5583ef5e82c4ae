"""What a regression found: coefficients, the covariance of residuals, and how sure both are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.solvers.regression.hiding import Hiding
from halfseen.solvers.regression.layout import Equations
from halfseen.solvers.regression.model import Model, Penalty
from halfseen.solvers.regression.places import Place
from halfseen.solvers.result import Note, Status
from halfseen.theta import entries, symmetric, triangle

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Regressed:
    """The rows that a regression was learned from.

    Attributes
    ----------
    model : Model
        With the cut points that were learned.
    seed : int
    n_jobs : int or None
    scores : array of shape (n, parameters) or None
        What each row says of the parameters, where that is known already.
    inverse : array or None
        The inverse of the information, which standard errors of the model are from.
    """

    model: Model
    seed: int
    n_jobs: int | None
    scores: Floats | None = None
    inverse: Floats | None = None


@dataclass(frozen=True, eq=False)
class RegressionEstimate:
    """Coefficients of each outcome, the covariance of residuals, and how sure both are.

    Parameters are, in this order: the free coefficients, equation by equation; the entries of the
    covariance of residuals on and below its diagonal, row by row; the cut points of ordered outcomes but
    their first, which is 0.

    Attributes
    ----------
    outcomes, terms : tuple of str
    weights : array of shape (q, k)
        Coefficients; 0 where a term does not stand in an equation.
    residual : array of shape (q, q)
    mask, free : boolean arrays of shape (q, k)
        Which terms stand in which equation, and which of their coefficients were learned.
    cut_points : dict
        Of each ordered outcome.
    kinds : tuple of str
    categories : dict
    covariance : array or None
        Of the estimates of all parameters.
    log_likelihood, log_likelihood_error : float
        Of the outcomes given the regressors, and its Monte-Carlo error.
    parameters : int
        How many were learned.
    rows : int
    seen_share : array of shape (q,)
    notes : tuple of Note
    history : mapping
    equations : Equations
    place : Place
        The same in the units of the engine.
    source : Regressed or None
    truncation : pair of arrays of shape (n, pieces), or None
        Ends of the set in which rows are in the table at all, where others are not.
    kept : Hiding or None
        What hides outcomes, of a fit without its table.
    is_weighted : bool
        Whether rows have weights.
    penalty : Penalty or None
        What pulled coefficients towards 0, and how strongly.
    """

    outcomes: tuple[str, ...]
    terms: tuple[str, ...]
    weights: Floats
    residual: Floats
    mask: Mask
    free: Mask
    cut_points: Mapping[str, Floats]
    kinds: tuple[str, ...]
    categories: Mapping[str, tuple[Any, ...]]
    covariance: Floats | None
    log_likelihood: float
    log_likelihood_error: float
    parameters: int
    rows: int
    seen_share: Floats
    notes: tuple[Note, ...] = ()
    history: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    equations: Equations | None = None
    place: Place | None = None
    source: Regressed | None = None
    truncation: tuple[Floats, Floats] | None = None
    kept: Hiding | None = None
    is_weighted: bool = False
    penalty: Penalty | None = None

    @property
    def status(self) -> Status:
        """The most serious of the notes, or ``CONVERGED``."""
        kinds = [note.status for note in self.notes]
        return max(kinds, key=lambda one: one.severity, default=Status.CONVERGED)

    @property
    def no_likelihood(self) -> str:
        """Why log-likelihoods are not to be compared; an empty text where they are."""
        if self.is_weighted:
            return "rows have weights, so it is the top of a pseudo-likelihood"
        if self.penalty is not None:
            return f"a penalty ({self.penalty.kind}) keeps it below the top of the likelihood"
        return ""

    @cached_property
    def hiding(self) -> Hiding:
        """What hides outcomes of new rows."""
        if self.kept is not None:
            return self.kept
        if self.source is None:
            raise InputError("this fit does not know what hides its outcomes.")
        return Hiding.of(self.source.model.outcomes, self.residual)

    @property
    def undetermined(self) -> list[tuple[int, int]]:
        """Pairs of outcomes of which no row says something of both."""
        return [(int(i), int(j)) for i, j in self.history.get("undetermined", ())]

    @cached_property
    def vector(self) -> Floats:
        """All parameters."""
        cuts = [cuts[1:] for cuts in self.cut_points.values()]
        return np.concatenate([self.weights[self.free], entries(self.residual), *cuts])

    @cached_property
    def parameter_names(self) -> list[str]:
        """What people call all parameters."""
        i, j = triangle(len(self.outcomes))
        of_terms = [
            f"{self.terms[t]} of {self.outcomes[o]}"
            for o, t in zip(*self.free.nonzero(), strict=True)
        ]
        of_residuals = [
            f"residual variance of {self.outcomes[a]}"
            if a == b
            else f"residual covariance of {self.outcomes[b]} and {self.outcomes[a]}"
            for a, b in zip(i, j, strict=True)
        ]
        of_cuts = [
            f"cut point {k + 1} of {name}"
            for name, cuts in self.cut_points.items()
            for k in range(1, cuts.size)
        ]
        return of_terms + of_residuals + of_cuts

    def unpack(self, vector: Floats) -> tuple[Floats, Floats, dict[str, Floats]]:
        """Return coefficients, the covariance of residuals and cut points of a vector of parameters."""
        count, q = int(self.free.sum()), len(self.outcomes)
        weights = self.weights.copy()
        weights[self.free] = vector[:count]
        size = q * (q + 1) // 2
        cuts, at = {}, count + size
        for name, own in self.cut_points.items():
            cuts[name] = np.concatenate([own[:1], vector[at : at + own.size - 1]])
            at += own.size - 1
        return weights, symmetric(vector[count : count + size], q), cuts
