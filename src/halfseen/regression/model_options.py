"""What is asked of a regression beside its formula: residuals, known coefficients, weights of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import is_iterable, real_array
from halfseen.data.design import Design, columns_of
from halfseen.data.interval_data import IntervalData
from halfseen.data.mixed_columns import MixedColumns
from halfseen.data.table import frame_kind
from halfseen.errors import InputError, argument
from halfseen.solvers.regression.model import Model
from halfseen.solvers.regression.outcomes import Outcomes
from halfseen.solvers.result import name_some
from halfseen.solvers.structures import BlockDiagonal, Structure
from halfseen.solvers.structures.base import read_part

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# Coefficients that are given: the square of larger ones overflows.
LARGEST = 1e100


def by_row(given: Any, data: Any, what: str) -> Any:
    """Return a column of the data for its name; what has a value for each row stays as it is."""
    if isinstance(given, str):
        columns = columns_of(data)
        columns.check(given, f"the column of {what}")
        return columns[given]
    index = getattr(given, "index", None)
    # A list has a method of that name.
    index = None if callable(index) else index
    if frame_kind(data) == "pandas" and index is not None and not data.index.equals(index):
        raise InputError(
            f"{what} have other labels than the rows that were fitted, or another order: pass "
            f"{what}.loc[data.index], or the name of a column."
        )
    return given


def read_weights(given: Any, data: Any, rows: int) -> Floats | None:
    """Return what each row counts, at most 1; 0 for rows that are to leave."""
    if given is None:
        return None
    name = given if isinstance(given, str) else "weights"
    weights = real_array(name, by_row(given, data, "weights"))
    if weights.shape != (rows,):
        raise InputError(
            f"weights must be a number for each of the {rows} rows, or the name of a column; got shape "
            f"{weights.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"a weight must be a finite number that is not negative, 0 for a row that is to leave; got "
            f"{weights[row]:g}.",
            row,
            name if isinstance(given, str) else None,
        )
    if not weights.any():
        raise InputError("every weight is 0, so no row is left.")
    shares = weights / weights.max()
    return np.asarray(shares, dtype=np.float64)


def rows_of_table(data: Any, rows: Rows) -> Any:
    """Return some of the rows of whatever was given as data."""
    if data is None or isinstance(data, IntervalData | MixedColumns):
        return None if data is None else data.take(rows)
    if frame_kind(data) == "pandas":
        return data.iloc[rows]
    if frame_kind(data) is not None:
        import narwhals as nw

        return nw.from_native(data)[rows.tolist()].to_native()
    if isinstance(data, Mapping):
        return {name: _of_column(column, rows) for name, column in data.items()}
    return np.asarray(data)[rows]


def _of_column(column: Any, rows: Rows) -> Any:
    if isinstance(column, IntervalData):
        return column.take(rows)
    if hasattr(column, "iloc"):
        return column.iloc[rows]
    # One value is that of every row.
    return column if np.ndim(column) == 0 else np.asarray(column)[rows]


def model_of(
    design: Design,
    outcomes: Outcomes,
    covariance: ArrayLike | str | Structure,
    fixed: Mapping[str, Mapping[str, float]] | None,
    equal: Sequence[Sequence[tuple[str, str]]] | None,
) -> Model:
    """Put together what is to be learned."""
    structure = _structure(outcomes, covariance)
    free, given = _residuals(outcomes, covariance if structure is None else structure)
    if isinstance(structure, BlockDiagonal) and structure.within.name == "free":
        # Which of its entries are free says all.
        structure = None
    known = _fixed(design, fixed)
    parts = design.terms, design.matrix, design.mask, known, free, given
    model = Model(outcomes, *parts, structure=structure)
    return replace(model, ties=_ties(design, known, equal))


def _structure(outcomes: Outcomes, covariance: Any) -> Structure | None:
    """Read a structure of the covariance of residuals; None for one without parameters of its own."""
    if not isinstance(covariance, str | Structure):
        return None
    if covariance in ("shrinkage", "sparse"):
        raise InputError(
            "residuals of a regression are not pulled towards zero: covariance must be 'free', "
            f"'diagonal', a structure or an array; got {covariance!r}."
        )
    structure = read_part(covariance, argument("covariance"))
    if not isinstance(structure, Structure):
        return None
    structure = structure.for_columns(outcomes.names)
    blocks = isinstance(structure, BlockDiagonal) and structure.within.name == "free"
    if outcomes.latent.any() and not blocks:
        raise InputError(
            f"latent outcomes have residuals of variance 1, which {structure.name!r} cannot keep to: "
            f"{name_some([outcomes.names[j] for j in np.flatnonzero(outcomes.latent)])}. Take "
            "'free', 'diagonal' or BlockDiagonal."
        )
    return structure


def _residuals(
    outcomes: Outcomes, covariance: ArrayLike | str | Structure
) -> tuple[NDArray[np.bool_], Floats]:
    """Return which entries of the covariance of residuals are learned, and the others."""
    q, latent = len(outcomes.names), outcomes.latent
    if isinstance(covariance, str | Structure):
        if isinstance(covariance, BlockDiagonal):
            free = covariance.mask()
        else:
            diagonal = covariance == "diagonal"
            free = np.eye(q, dtype=bool) if diagonal else np.ones((q, q), dtype=bool)
        given = np.diag(latent.astype(float))
        free[latent, latent] = False
        return free, given
    given = real_array("covariance", in_order("covariance", covariance, outcomes.names))
    if given.shape != (q, q):
        raise InputError(
            f"covariance must be a symmetric array of shape ({q}, {q}), one row for each outcome; got "
            f"shape {given.shape}."
        )
    if not (np.isfinite(given).all() and np.allclose(given, given.T)):
        raise InputError(f"covariance must be finite and symmetric; got {given.tolist()}.")
    if not np.abs(given).max() < LARGEST:
        raise InputError(
            f"entries of covariance must be below {LARGEST:g}; got {np.abs(given).max():g}. Take "
            "another unit."
        )
    least = float(np.linalg.eigvalsh(given)[0])
    if least <= 0.0:
        raise InputError(
            "covariance must be positive definite, but its smallest eigenvalue is "
            f"{least:.3g}. Make its correlations smaller."
        )
    wrong = [outcomes.names[j] for j in np.flatnonzero(latent & (np.diag(given) != 1.0))]
    if wrong:
        raise InputError(f"residuals of latent outcomes have variance 1: {name_some(wrong)}.")
    return np.zeros((q, q), dtype=bool), given


def _term_of(design: Design, outcome: str, term: str) -> tuple[int, int]:
    """Return where a coefficient stands."""
    if outcome not in design.outcomes:
        raise InputError(
            f"there is no outcome {outcome!r}; the outcomes are {name_some(list(design.outcomes), 8)}."
        )
    j, own = design.outcomes.index(outcome), design.equation(outcome)
    if term not in own:
        raise InputError(
            f"{outcome} has no term {term!r}; its terms are {name_some(list(own), 8)}."
        )
    return j, design.terms.index(term)


def _fixed(design: Design, given: Mapping[str, Mapping[str, float]] | None) -> Floats:
    """Read coefficients that are known."""
    out = np.full(design.mask.shape, np.nan)
    if given is None:
        return out
    if not isinstance(given, Mapping) or not all(isinstance(v, Mapping) for v in given.values()):
        raise InputError(
            "fixed must say coefficients by outcome and term, as in fixed={'wage': {'exper': 0.02}}; "
            f"got {given!r}."
        )
    for outcome, terms in given.items():
        for term, value in terms.items():
            number = real_array(f"the coefficient of {term}", value)
            if number.ndim or not np.abs(number) < LARGEST:
                raise InputError(
                    f"the coefficient of {term} must be a finite number below {LARGEST:g}; got "
                    f"{value!r}."
                )
            out[_term_of(design, outcome, term)] = float(number)
    return out


def _is_group(group: Any) -> bool:
    """Whether these are pairs of texts, at least two."""
    return (
        isinstance(group, Sequence)
        and len(group) > 1
        and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in group)
        and all(isinstance(name, str) for pair in group for name in pair)
    )


def _ties(
    design: Design, fixed: Floats, equal: Sequence[Sequence[tuple[str, str]]] | None
) -> Floats | None:
    """Return the free coefficients as combinations of those that differ."""
    if equal is None or (isinstance(equal, list | tuple) and not equal):
        return None
    free = design.mask & np.isnan(fixed)
    place = {tuple(at): k for k, at in enumerate(np.argwhere(free).tolist())}
    first = np.arange(len(place))
    for group in equal if is_iterable(equal) else [equal]:
        if not _is_group(group):
            raise InputError(
                "equal must be groups of (outcome, term), as in "
                f"equal=[[('lead', 'age'), ('zinc', 'age')]]; got {group!r}."
            )
        spots = [_term_of(design, *pair) for pair in group]
        given = [pair for pair, spot in zip(group, spots, strict=True) if spot not in place]
        if given:
            raise InputError(f"a coefficient cannot be fixed and equal to another: {given[0]!r}.")
        own = [first[place[spot]] for spot in spots]
        first[np.isin(first, own)] = min(own)
    _, numbers = np.unique(first, return_inverse=True)
    return np.eye(numbers.max() + 1)[numbers]


def in_order(name: str, given: Any, outcomes: Sequence[str]) -> Any:
    """Bring the columns of a pandas frame, and rows named like them, into the order of the outcomes."""
    if frame_kind(given) != "pandas":
        return given
    columns = [str(column) for column in given.columns]
    if sorted(columns) != sorted(outcomes):
        raise InputError(
            f"{name} must have the outcomes as columns, which are {name_some(list(outcomes), 8)}; got "
            f"{name_some(columns, 8)}."
        )
    given = given.set_axis(columns, axis=1)[list(outcomes)]
    if sorted(map(str, given.index)) == sorted(outcomes):
        given = given.set_axis([str(row) for row in given.index]).loc[list(outcomes)]
    return given.to_numpy()
