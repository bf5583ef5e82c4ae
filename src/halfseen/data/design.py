"""Regressors: a matrix, which of its columns stand in which equation, and the way to new rows."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.coding import INTERCEPT, FormulaCoding, learn_coding
from halfseen.data.design_checks import Summary, check_regressors, check_sizes
from halfseen.data.factor_values import Categories, Learned
from halfseen.data.formulas import outcome_names, read_formula
from halfseen.data.interval_data import IntervalData
from halfseen.data.plain_columns import PlainColumns, columns_of, is_frame
from halfseen.data.table import (
    check_names,
    listed_names,
    printable,
    read_table,
)
from halfseen.errors import InputError

__all__ = [
    "Design",
    "check_design",
    "columns_of",
    "design_of_arrays",
    "outcome_names",
    "read_design",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ArrayCoding:
    """Regressors that are columns of numbers as they are, and perhaps an intercept."""

    names: tuple[str, ...]
    intercept: bool

    def matrix_for(self, new: Any) -> Floats:
        """Return the regressors of new rows: by name where the columns have names, else by place."""
        if _has_named_columns(new):
            columns = columns_of(new)
            values = np.empty((columns.rows, len(self.names)))
            for place, name in enumerate(self.names):
                columns.check(name, "the regressor")
                values[:, place] = _numbers_of(columns, name)
        else:
            values = np.asarray(read_table(new, fewest_rows=0).values, dtype=float)
            if values.shape[1] != len(self.names):
                raise InputError(
                    f"the regressors have {len(self.names)} column{'s' * (len(self.names) != 1)} "
                    f"({', '.join(map(printable, self.names[:8]))}); got {values.shape[1]}."
                )
        _check_known(values, self.names)
        return np.insert(values, 0, 1.0, axis=1) if self.intercept else np.array(values)

    def to_dict(self) -> dict[str, Any]:
        """Return what is needed to make the regressors of new rows."""
        return {"kind": "arrays", "names": list(self.names), "intercept": self.intercept}


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """The regressors of a regression.

    Parameters
    ----------
    outcomes : tuple of str
        Names of the outcomes, which have an equation each.
    terms : tuple of str
        Names of the columns of ``matrix``, such as ``"Intercept"``, ``"age"``, ``"C(site)[T.b]"``.
    matrix : array of shape (n, k)
        All regressors of all equations, each once; float64, read-only.
    mask : boolean array of shape (q, k)
        Which of them stand in which equation.
    variables : tuple of str
        Names of the columns of the data that the regressors are made of.
    levels : dict of str to tuple of str
        The categories of each categorical variable, the reference first.
    coding : FormulaCoding or ArrayCoding
        How regressors are made of columns, with what was learned from the rows.

    Examples
    --------
    >>> from halfseen.data.design import read_design
    >>> data = {"lead": [1.0, 2.0, 4.0], "age": [30, 40, 50], "site": ["a", "b", "a"]}
    >>> design = read_design("lead ~ age + site", data)
    >>> design
    Design(lead ~ Intercept + age + site[T.b]; 3 rows)
    >>> design.matrix_for({"age": 35, "site": "b"})
    array([[ 1., 35.,  1.]])
    """

    outcomes: tuple[str, ...]
    terms: tuple[str, ...]
    matrix: Floats
    mask: NDArray[np.bool_]
    variables: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    coding: FormulaCoding | ArrayCoding

    def __post_init__(self) -> None:
        self.matrix.flags.writeable = False
        self.mask.flags.writeable = False

    def matrix_for(self, new: Any) -> Floats:
        """Return the regressors of new rows, with what was learned from the first ones.

        Parameters
        ----------
        new : data frame, mapping of columns, IntervalData; or array where the design has no formula
            A mapping may hold single values, for one row.

        Returns
        -------
        array of shape (m, k)

        Raises
        ------
        InputError
            Where a column is not there, or a cell is missing, infinite, of another kind, or of a
            category that the model does not know.
        """
        if isinstance(self.coding, ArrayCoding):
            return self.coding.matrix_for(new)
        return self.coding.matrix_for(columns_of(new), self.terms)

    def equation(self, outcome: int | str) -> tuple[str, ...]:
        """Return the names of the terms of an outcome, which is given by place or by name.

        Examples
        --------
        >>> from halfseen.data.design import read_design
        >>> data = {"wage": [1.0, 2.0], "works": [1, 0], "age": [30, 40], "kids": [0, 2]}
        >>> design = read_design({"wage": "age", "works": "age + kids"}, data)
        >>> design.equation("wage"), design.equation(1)
        (('Intercept', 'age'), ('Intercept', 'age', 'kids'))
        """
        place = self._place_of(outcome)
        return tuple(
            name for name, there in zip(self.terms, self.mask[place], strict=True) if there
        )

    def _place_of(self, outcome: int | str) -> int:
        if isinstance(outcome, str):
            if outcome in self.outcomes:
                return self.outcomes.index(outcome)
        else:
            place = operator.index(outcome)
            if -len(self.outcomes) <= place < len(self.outcomes):
                return place
        raise InputError(
            f"{outcome!r} is none of the outcomes {', '.join(map(printable, self.outcomes))}."
        )

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Design:
        """Return the design of some of the rows, coded as all of them were.

        Parameters
        ----------
        rows : integer array, boolean array or slice

        Examples
        --------
        >>> from halfseen.data.design import read_design
        >>> data = {"lead": [1.0, 2.0, 4.0], "site": ["a", "b", "c"]}
        >>> read_design("lead ~ site", data).take(slice(2)).matrix
        array([[1., 0., 0.],
               [1., 1., 0.]])
        """
        try:
            matrix = self.matrix[rows].reshape(-1, len(self.terms))
        except (IndexError, ValueError, TypeError) as error:
            raise InputError(
                f"rows must be whole numbers below {len(self.matrix)}, a mask of {len(self.matrix)} "
                f"rows, or a slice: {error}."
            ) from None
        return replace(self, matrix=matrix)

    def to_dict(self) -> dict[str, Any]:
        """Return the design without its rows, as lists, texts and numbers that JSON can have."""
        return {
            "outcomes": list(self.outcomes),
            "terms": list(self.terms),
            "mask": self.mask.tolist(),
            "variables": list(self.variables),
            "levels": {name: list(levels) for name, levels in self.levels.items()},
            "coding": self.coding.to_dict(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Design:
        """Return a design from what ``to_dict`` returned; it has no rows, and codes new ones alike.

        Examples
        --------
        >>> from halfseen.data.design import Design, read_design
        >>> data = {"lead": [1.0, 2.0, 4.0], "age": [30, 40, 50]}
        >>> design = read_design("lead ~ center(age)", data)
        >>> Design.from_dict(design.to_dict()).matrix_for({"age": [30, 45]})
        array([[  1., -10.],
               [  1.,   5.]])
        """
        try:
            return cls._from_dict(saved)
        except InputError:
            raise
        except Exception as error:  # whatever stands where something else was saved
            raise InputError(
                f"the saved design is damaged ({type(error).__name__}: {printable(str(error)[:200])}). "
                "Fit the model again."
            ) from None

    @classmethod
    def _from_dict(cls, saved: Mapping[str, Any]) -> Design:
        outcomes, terms = _texts(saved["outcomes"]), _texts(saved["terms"])
        mask = np.array(saved["mask"])
        if mask.dtype != bool or mask.shape != (len(outcomes), len(terms)):
            raise ValueError(f"a mask of shape {mask.shape}")
        levels = {str(name): _texts(one) for name, one in saved["levels"].items()}
        coding = _read_coding(saved["coding"])
        variables = _texts(saved["variables"])
        known = coding.names if isinstance(coding, ArrayCoding) else coding.variables
        if variables != known:
            raise ValueError("other variables than those of the terms")
        if isinstance(coding, ArrayCoding) and terms != _array_terms(coding):
            raise ValueError("other terms than columns")
        empty = np.empty((0, len(terms)))
        return cls(outcomes, terms, empty, mask, variables, levels, coding)

    def __repr__(self) -> str:
        alike = (self.mask == self.mask[0]).all()
        groups = [" + ".join(self.outcomes)] if alike else list(self.outcomes)
        written = "; ".join(
            f"{printable(group)} ~ {' + '.join(map(printable, self.equation(place)))}"
            for place, group in enumerate(groups)
        )
        return f"Design({written}; {len(self.matrix)} row{'s' * (len(self.matrix) != 1)})"


def read_design(
    formula: str | Mapping[str, str],
    data: Any,
    derived: Collection[str] = (),
    learned: Learned | None = None,
) -> Design:
    """Read the regressors that a formula makes of the columns of a table.

    Texts, truths and categorical columns are categories, whose reference is the first of them: sorted,
    or in the order of a categorical column; ``C(x)`` makes categories of numbers. Names are those of
    formulaic.

    Parameters
    ----------
    formula : str or mapping of str to str
        Outcomes on the left and regressors on the right, ``"lead + zinc ~ age + C(site)"``; or
        regressors for each outcome, ``{"wage": "exper + educ", "works": "age + kids"}``. ``.`` stands
        for all columns but the outcomes, and ``0 +`` leaves the intercept out.
    data : a data frame of pandas, polars or pyarrow, a mapping of columns, or IntervalData
    derived : names, optional
        Outcomes that need not be columns of the data: others show them.
    learned : Learned, optional
        What there is to learn from rows, where the data are some rows of a larger table.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        Where the formula cannot be read, a column is not there, or a regressor is missing in some row.

    Examples
    --------
    >>> from halfseen.data.design import read_design
    >>> data = {"lead": [1.0, 2.0, 4.0], "zinc": [3.0, 1.0, 2.0], "dose": [1, 10, 100]}
    >>> design = read_design("lead + zinc ~ log10(dose)", data)
    >>> design.terms
    ('Intercept', 'log10(dose)')
    >>> design.matrix
    array([[1., 0.],
           [1., 1.],
           [1., 2.]])
    """
    # What needs no data first.
    outcome_names(formula)
    columns = columns_of(data)
    read = read_formula(formula, columns.names)
    for outcome in read.outcomes:
        if outcome not in derived:
            columns.check(outcome, "the outcome")
    _check_sides(read.outcomes, read.variables)
    if columns.rows == 0:
        raise InputError("the data have no rows.")
    coding, made, categories = learn_coding(read, columns, learned)
    mask = np.array([np.isin(made.names, names) for names in made.equations])
    return Design(
        read.outcomes,
        made.names,
        made.matrix,
        mask,
        read.variables,
        {name: _reference_first(one) for name, one in categories.items()},
        coding,
    )


def design_of_arrays(
    X: Any,
    names: Sequence[str] | None = None,
    *,
    outcomes: Sequence[str],
    intercept: bool = True,
) -> Design:
    """Return the design whose regressors are the columns of a table of numbers, for all outcomes.

    Parameters
    ----------
    X : array-like of shape (n, k), data frame, mapping of columns, or IntervalData
    names : sequence of str, optional
        Names of the columns; those of the table otherwise, or x0, x1, and so on.
    outcomes : sequence of str
        Names of the outcomes.
    intercept : bool
        Whether a column of ones goes before them.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        Where a value is missing, infinite, or no number.

    Examples
    --------
    >>> from halfseen.data.design import design_of_arrays
    >>> design = design_of_arrays([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]], outcomes=["lead"])
    >>> design.terms
    ('Intercept', 'x0', 'x1')
    >>> design.matrix_for([[7.0, 8.0]])
    array([[1., 7., 8.]])
    """
    if _has_named_columns(X):
        columns = columns_of(X)
        own = columns.names
        table = [_numbers_of(columns, name) for name in own]
        values = np.stack(table, axis=1) if table else np.empty((columns.rows, 0))
    else:
        read = read_table(X, fewest_rows=1)
        own, values = read.names, np.asarray(read.values, dtype=float)
    given = own if names is None else listed_names(names)
    if len(given) != len(own):
        raise InputError(f"names must be {len(own)}, one for each column; got {len(given)}.")
    if not (len(given) or intercept):
        raise InputError("the regressors have no columns, and no intercept is wanted.")
    _check_known(values, given)
    coding = ArrayCoding(given, bool(intercept))
    terms, wanted = _array_terms(coding), listed_names(outcomes)
    check_names((*wanted, *terms))
    if not wanted:
        raise InputError("outcomes must be names of at least one outcome; got none.")
    matrix = np.insert(values, 0, 1.0, axis=1) if intercept else np.array(values)
    mask = np.ones((len(wanted), len(terms)), dtype=bool)
    return Design(wanted, terms, matrix, mask, given, {}, coding)


def check_design(design: Design) -> tuple[str, ...]:
    """Check that the rows can say something of every coefficient.

    Only the terms of an equation are compared with each other.

    Parameters
    ----------
    design : Design

    Returns
    -------
    tuple of str
        Notes about regressors that nearly repeat each other.

    Raises
    ------
    NotIdentifiedError
        Where a column is constant beside the intercept or is a combination of others, or there are
        fewer rows than terms.

    Examples
    --------
    >>> from halfseen.data.design import check_design, read_design
    >>> data = {"lead": [1.0, 2.0, 4.0], "age": [30, 40, 50], "born": [1970, 1960, 1950]}
    >>> check_design(read_design("lead ~ age", data))
    ()
    >>> check_design(read_design("lead ~ age + born", data))
    Traceback (most recent call last):
      ...
    halfseen.errors.NotIdentifiedError: born = 2000 Intercept - age in every row, to ten digits, ...
    """
    check_sizes(design.matrix, design.terms)
    return check_regressors(Summary.of(design.matrix), design.terms, design.mask, design.outcomes)


def _check_sides(outcomes: Sequence[str], variables: Sequence[str]) -> None:
    for name in variables:
        if name in outcomes:
            raise InputError(
                f"{printable(name)} is an outcome and stands among the regressors too. Outcomes are "
                "explained together, and how they go along with each other is in their residual "
                "covariance: take it out on one side."
            )


def _reference_first(found: Categories) -> tuple[str, ...]:
    names = list(map(str, found.levels))
    return (names.pop(found.reference), *names)


def _has_named_columns(X: Any) -> bool:
    return isinstance(X, Mapping | IntervalData | PlainColumns) or is_frame(X)


def _numbers_of(columns: PlainColumns, name: str) -> Floats:
    """Return a column that is to be numbers; true is one."""
    values = columns[name]
    if values.dtype.kind == "f":
        return np.asarray(values, dtype=float)
    texts = [row for row, value in enumerate(values) if isinstance(value, str)]
    if texts:
        python = f"regress('… ~ {name}', data)"
        raise InputError(
            f"the cell holds the text {values[texts[0]]!r}, but without a formula regressors are "
            f"numbers. A formula makes categories of texts: {python}.",
            texts[0],
            printable(name),
        )
    return np.array([np.nan if value is None else float(value) for value in values])


def _check_known(values: Floats, names: Sequence[str]) -> None:
    missing = np.argwhere(np.isnan(values))
    if missing.size:
        row, place = missing[0]
        raise InputError(
            "the value is missing, but regressors must be known in every row. Leave such rows out, or "
            f"make {printable(names[place])} an outcome of its own, so that it is modelled.",
            row,
            printable(names[place]),
        )
    infinite = np.argwhere(np.isinf(values))
    if infinite.size:
        row, place = infinite[0]
        raise InputError(
            f"the value is {values[row, place]}; regressors must be finite. Leave such rows out.",
            row,
            printable(names[place]),
        )


def _array_terms(coding: ArrayCoding) -> tuple[str, ...]:
    return (INTERCEPT, *coding.names) if coding.intercept else coding.names


def _texts(saved: Any) -> tuple[str, ...]:
    if not isinstance(saved, list | tuple) or not all(isinstance(one, str) for one in saved):
        raise TypeError("texts are needed")
    return tuple(saved)


def _read_coding(saved: Mapping[str, Any]) -> FormulaCoding | ArrayCoding:
    if saved["kind"] == "formula":
        return FormulaCoding.from_dict(saved)
    if saved["kind"] != "arrays" or not isinstance(saved["intercept"], bool):
        raise ValueError(f"kind {saved['kind']!r}")
    return ArrayCoding(_texts(saved["names"]), saved["intercept"])
