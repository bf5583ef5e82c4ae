"""Marginal effects: how a prediction changes with a variable, on average over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.design import ArrayCoding, columns_of
from halfseen.data.table import frame_kind
from halfseen.errors import InputError
from halfseen.solvers.regression.prediction import category_tables, predicted

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]

# Steps of the variable, as a share of its standard deviation.
STEP = 1e-4
KINDS = ("latent", "seen", "hidden_probability", "categories")
# Regressors of which the square is still a double.
LARGEST = 1e100


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
    pairs, changes, divisor = _changed(design.levels.get(variable), columns, variable)
    counts = None if fit.source is None or new is not None else fit.source.model.row_weights
    matrices = [tuple(design.matrix_for(one) for one in pair) for pair in pairs]

    def at(vector: Floats, W: Floats) -> Floats:
        if kind == "categories":
            return np.hstack([*category_tables(fit, vector, W).values()])
        return predicted(fit, kind, *fit.unpack(vector)[:2], W)

    def ask(vector: Floats) -> Floats:
        rows = [at(vector, high) - at(vector, low) for low, high in matrices]
        return np.array([np.average(row, axis=0, weights=counts) for row in rows]) / divisor

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


def _changed(
    levels: tuple[str, ...] | None, columns: dict[str, Any], variable: str
) -> tuple[list[tuple[dict[str, Any], dict[str, Any]]], list[str], float]:
    """Return tables between which a variable changes, what to call the changes, and their size."""
    values = columns[variable]

    def put(value: Any) -> dict[str, Any]:
        return {**columns, variable: value}

    if levels is None:
        step = STEP * (float(np.std(values)) or 1.0)
        return [(put(values - step), put(values + step))], ["slope"], 2.0 * step
    known: dict[str, Any] = {}
    for one in values.tolist():
        # Numbers may be categories too, called by what they were: 2, or 2.0.
        known |= {str(one): one} | ({f"{one:g}": one} if isinstance(one, float) else {})
    same = [np.full(len(values), known.get(level, level)) for level in levels]
    reference = same[0].astype(object) if same[0].dtype.kind in "US" else same[0]
    tables = [one.astype(object) if one.dtype.kind in "US" else one for one in same[1:]]
    names = [f"{level} against {levels[0]}" for level in levels[1:]]
    return [(put(reference), put(one)) for one in tables], names, 1.0
