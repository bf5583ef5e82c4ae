"""Outcomes given other outcomes: what hidden covariates do, once they are modelled too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import is_iterable
from halfseen.errors import InputError
from halfseen.solvers.result import name_some

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ConditionalRegression:
    """The regression of some outcomes on others, and on the regressors.

    Attributes
    ----------
    outcomes : tuple of str
    terms : tuple of str
        The regressors, and then the outcomes that are given.
    coefficients, standard_errors : arrays of shape (terms, outcomes), or pandas frames
    residual_covariance : array of shape (outcomes, outcomes), or a pandas frame

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.normal(size=500)
    >>> lead = 2.0 * dose + rng.normal(size=500)
    >>> data = {"dose": np.where(dose > -0.5, dose, np.nan), "lead": lead}
    >>> fit = hs.regress("lead + dose ~ 1", data, {"dose": ">=-0.5"}, random_state=0)
    >>> fit.given("dose").terms
    ('Intercept', 'dose')
    """

    outcomes: tuple[str, ...]
    terms: tuple[str, ...]
    coefficients: Any
    standard_errors: Any
    residual_covariance: Any


def conditional(fit: RegressionFit, given: str | Sequence[str]) -> ConditionalRegression:
    """Return outcomes given others; see ``RegressionFit.given``."""
    names = (given,) if isinstance(given, str) else tuple(given) if is_iterable(given) else ()
    known = list(fit.outcomes)
    wrong = not all(isinstance(name, str) and name in known for name in names)
    if wrong or not names or len(set(names)) < len(names) or len(names) == len(known):
        raise InputError(
            f"given takes some of the outcomes, which are {name_some(known, 8)}, and leaves at least "
            f"one; got {given!r}."
        )
    on = np.array([known.index(name) for name in names])
    rest = np.setdiff1d(np.arange(len(known)), on)

    def ask(vector: Floats) -> Floats:
        return _slopes(*fit.unpack(vector)[:2], rest, on)

    value = ask(fit.vector)
    error = np.asarray(fit.standard_errors.of_vector(ask).standard_error)
    S = fit.residual
    left = S[np.ix_(rest, rest)] - value[len(fit.terms) :].T @ S[np.ix_(on, rest)]
    outcomes, terms = tuple(known[j] for j in rest), (*fit.terms, *names)
    tables: list[Any] = [value, error, left]
    if fit.frame == "pandas":
        import pandas as pd

        rows = [list(terms), list(terms), list(outcomes)]
        tables = [
            pd.DataFrame(table, index=index, columns=list(outcomes))
            for table, index in zip(tables, rows, strict=True)
        ]
    return ConditionalRegression(outcomes, terms, *tables)


def _slopes(
    weights: Floats, residual: Floats, rest: NDArray[np.intp], on: NDArray[np.intp]
) -> Floats:
    """Return coefficients of the regressors and of the outcomes that are given, stacked.

    With D = Σ_RO Σ_OO⁻¹ these are Γ_R − D Γ_O and D.
    """
    D = np.linalg.solve(residual[np.ix_(on, on)], residual[np.ix_(on, rest)])
    return np.vstack([weights[rest].T - weights[on].T @ D, D])
