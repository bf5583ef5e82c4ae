"""What a prediction rests on: how it changes with a variable, and with other outcomes that are known.

Marginal effects are averages over rows. Outcomes given other outcomes say what hidden covariates do,
once they are modelled too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import is_iterable
from halfseen.data.design import ArrayCoding, Design, columns_of
from halfseen.data.factors import shown
from halfseen.data.table import frame_kind, printable
from halfseen.errors import InputError
from halfseen.solvers.regression.prediction import category_tables, predicted
from halfseen.solvers.result import name_some

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]
# Regressors before and behind a change, and how far they are apart in each row.
Pair = tuple[Floats, Floats, Floats]
# Steps of the regressors, as a share of their standard deviation.
STEP = 1e-4
# Steps of the variable, by which slopes of its functions are found: a share of its standard deviation,
# or of itself if that is less (log(dose) of a skewed dose), but not less than LEAST of that.
FINE_STEP, LEAST = 1e-6, 1e-5
# And not less than so many times the distance to the next double, where a column is far from 0.
ENOUGH_PLACES = 1e6
# Half the step changes a slope that exists by about FINE_STEP, and one that does not (of sqrt at 0) by a
# third; NOISE is what rounding does to one that is 0, in standard deviations.
SAME_SLOPE, NOISE = 1e-2, 1e-4
KINDS = ("latent", "seen", "hidden_probability", "categories")
# Regressors of which the square is still a double.
LARGEST = 1e100


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


@dataclass(frozen=True, eq=False)
class MarginalEffects:
    """How a prediction changes with a variable, on average over rows.

    Attributes
    ----------
    variable, kind : str
    changes : tuple of str
        What changes, for each row of ``effects``: the slope, or one category against the reference.
    outcomes : tuple of str
        What is predicted: outcomes, or their categories.
    effects, standard_errors : arrays of shape (changes, outcomes)
        NaN where the prediction says nothing of an outcome.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rng = np.random.default_rng(0)
    >>> data = {"dose": rng.normal(size=300), "lead": rng.normal(size=300)}
    >>> effects = hs.regress("lead ~ dose", data).marginal_effects("dose", "latent")
    >>> effects.changes
    ('slope',)
    """

    variable: str
    kind: str
    changes: tuple[str, ...]
    outcomes: tuple[str, ...]
    effects: Any
    standard_errors: Any


def marginal_effects(fit: RegressionFit, variable: str, kind: str, new: Any) -> MarginalEffects:
    """Return average changes of a prediction; see ``RegressionFit.marginal_effects``."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    design = fit.design
    assert design is not None
    data = fit.data if new is None else new
    if data is None:
        raise InputError(
            "this fit does not hold its table (a saved fit never does, nor one of a table in pieces); "
            "pass new rows."
        )
    if not isinstance(variable, str) or variable not in design.variables:
        raise InputError(
            f"{variable!r} is no variable of the regressors; these are {', '.join(design.variables)}."
        )
    columns = _columns(fit, data)
    _check_rows(design.matrix_for(columns))
    if design.levels.get(variable) is None:
        pairs, changes = [_along_slope(design, columns, variable)], ["slope"]
    else:
        pairs, changes = _between_levels(design, columns, variable)
    counts = None if fit.source is None or new is not None else fit.source.model.row_weights

    def at(vector: Floats, W: Floats) -> Floats:
        if kind == "categories":
            return np.hstack([*category_tables(fit, vector, W).values()])
        return predicted(fit, kind, *fit.unpack(vector)[:2], W)

    def ask(vector: Floats) -> Floats:
        rows = [(at(vector, high) - at(vector, low)) / apart for low, high, apart in pairs]
        return np.array([np.average(row, axis=0, weights=counts) for row in rows])

    value = ask(fit.vector)
    said = ~np.isnan(value)
    errors = np.full(value.shape, np.nan)
    if fit.penalty is None:
        found = fit.standard_errors.of_vector(lambda vector: np.where(said, ask(vector), 0.0))
        errors = np.where(said, found.standard_error, np.nan)
    names = list(fit.outcomes)
    if kind == "categories":
        latent = [name for name in fit.outcomes if name in fit.categories]
        names = [f"{name}: {one}" for name in latent for one in fit.categories[name]]
    if fit.frame == "pandas":
        import pandas as pd

        value, errors = (
            pd.DataFrame(table, index=list(changes), columns=names) for table in (value, errors)
        )
    return MarginalEffects(variable, kind, tuple(changes), tuple(names), value, errors)


def _check_rows(matrix: Floats) -> None:
    """Raise where there is nothing to average over, or nothing that could be squared."""
    if not len(matrix):
        raise InputError("effects are averages over rows; got none.")
    if not np.abs(matrix).max() < LARGEST:
        raise InputError(
            f"regressors must be below {LARGEST:g}; got {np.abs(matrix).max():g}. Take another unit."
        )


def _columns(fit: RegressionFit, data: Any) -> dict[str, Any]:
    """Return the columns that regressors are made of."""
    design = fit.design
    assert design is not None
    if isinstance(design.coding, ArrayCoding) and frame_kind(data) is None:
        # With no formula regressors are these columns as they are, behind an intercept.
        matrix = design.matrix_for(data)[:, -len(design.variables) :]
        return {name: matrix[:, j] for j, name in enumerate(design.variables)}
    columns = columns_of(data)
    for name in design.variables:
        columns.check(name, "the regressor")
    return {name: columns[name] for name in design.variables}


def _along_slope(design: Design, columns: dict[str, Any], variable: str) -> Pair:
    """Return regressors a small step before and behind, along the slope that a variable gives them."""
    _check_smooth(design, variable)
    values = np.asarray(columns[variable], dtype=float)
    spread = float(np.std(values)) or 1.0
    step = FINE_STEP * np.clip(np.abs(values), LEAST * spread, spread)
    step = np.maximum(step, ENOUGH_PLACES * np.spacing(np.abs(values)))
    W = design.matrix_for(columns)
    scale = np.std(W, axis=0)
    scale[scale == 0.0] = 1.0
    slope, check = (
        _regressor_slopes(design, columns, variable, share * step) for share in (1.0, 0.5)
    )
    near = SAME_SLOPE * (np.abs(slope) + np.abs(check)) + NOISE * scale / spread
    rough = np.argwhere(np.abs(slope - check) > near)
    if rough.size:
        row, term = rough[0]
        raise InputError(
            f"{shown(design.terms[term])} has no slope where {printable(variable)} is "
            f"{values[row]:.12g}, so neither has a prediction. Compare predictions at values of your "
            "choice: fit.predict(new).",
            row,
            printable(variable),
        )
    steepest = np.abs(slope / scale).max(axis=1)
    apart = STEP / np.where(steepest == 0.0, 1.0, steepest)[:, None]
    return W - apart * slope, W + apart * slope, 2.0 * apart


def _check_smooth(design: Design, variable: str) -> None:
    """Raise where regressors jump as the variable changes."""
    if isinstance(design.coding, ArrayCoding):
        return
    terms = (term for terms in design.coding.equations for term in terms)
    jumps = [one.label for term in terms for one in term if one.jumps_with(variable)]
    if jumps:
        raise InputError(
            f"{shown(jumps[0])} jumps as {printable(variable)} changes, so {printable(variable)} has no "
            "slope. Compare predictions at values of your choice: fit.predict(new)."
        )


def _regressor_slopes(
    design: Design, columns: dict[str, Any], variable: str, step: Floats
) -> Floats:
    """Return slopes of the regressors in each row, by steps that stay where the variable was seen."""
    values = np.asarray(columns[variable], dtype=float)
    low, high = values - step, values + step
    if values.min() < values.max():
        low, high = np.maximum(low, values.min()), np.minimum(high, values.max())
    ends = [design.matrix_for({**columns, variable: one}) for one in (low, high)]
    return np.asarray((ends[1] - ends[0]) / (high - low)[:, None])


def _between_levels(
    design: Design, columns: dict[str, Any], variable: str
) -> tuple[list[Pair], list[str]]:
    """Return regressors with every row in the reference and in another category, for each of these."""
    levels, values = design.levels[variable], columns[variable]
    known: dict[str, Any] = {}
    for one in values.tolist():
        # Numbers may be categories too, called by what they were: 2, or 2.0.
        known |= {str(one): one} | ({f"{one:g}": one} if isinstance(one, float) else {})
    same = [np.full(len(values), known.get(level, level)) for level in levels]
    tables = [one.astype(object) if one.dtype.kind in "US" else one for one in same]
    reference, *others = [design.matrix_for({**columns, variable: one}) for one in tables]
    names = [f"{level} against {levels[0]}" for level in levels[1:]]
    return [(reference, other, np.ones((len(values), 1))) for other in others], names
