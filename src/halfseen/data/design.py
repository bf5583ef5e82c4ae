"""Regressors: a matrix, which of its columns stand in which equation, and the way to new rows.

Rows must be able to say something of each coefficient: columns that are constant, or repeat others, are
refused.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, qr, svd

from halfseen.data.coding import INTERCEPT, FormulaCoding, learn_coding
from halfseen.data.factor_values import Categories, Learned
from halfseen.data.formulas import outcome_names, read_formula
from halfseen.data.interval_data import IntervalData
from halfseen.data.plain_columns import PlainColumns, columns_of, is_frame
from halfseen.data.table import check_names, listed_names, printable, read_table
from halfseen.data.triangles import lengths_of, triangle_of
from halfseen.errors import InputError, NotIdentifiedError

Floats = NDArray[np.float64]
# A column of unit length that is less far than this from a combination of others is one. Sums of squares
# have the square of it, far below the sixteen digits of a double.
SAME = 1e-10
# From this condition number on, sums of squares keep fewer than four digits.
NEARLY = 1e6
# Sums of squares of what is larger are beyond a double.
LARGEST = 1e152
_SHOWN = 6
__all__ = [
    "Design",
    "check_design",
    "columns_of",
    "design_of_arrays",
    "outcome_names",
    "read_design",
]


class Summary(NamedTuple):
    """What there is to know of the columns of a matrix apart from its rows; two are added up.

    Attributes
    ----------
    rows : int
    triangle : array of shape (r, k)
        With the sums of products that the columns have.
    low, high : arrays of shape (k,)
        Smallest and largest values.
    """

    rows: int
    triangle: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Summary:
        """Look at some rows."""
        low, high = matrix.min(axis=0, initial=np.inf), matrix.max(axis=0, initial=-np.inf)
        return cls(len(matrix), triangle_of(matrix), low, high)

    def __add__(self, other: Summary) -> Summary:  # type: ignore[override]
        return Summary(
            self.rows + other.rows,
            triangle_of(self.triangle, other.triangle),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def take(self, columns: slice) -> Summary:
        """Return that of some of the columns."""
        return Summary(self.rows, self.triangle[:, columns], self.low[columns], self.high[columns])


def check_regressors(
    summary: Summary, terms: Sequence[str], mask: NDArray[np.bool_], outcomes: Sequence[str]
) -> tuple[str, ...]:
    """Check the regressors of each equation; return notes about those that nearly repeat each other."""
    lengths = lengths_of(summary.triangle)
    lengths[lengths == 0.0] = 1.0
    shape = summary.triangle / lengths
    # Equations with the same regressors are checked, and spoken of, once.
    together: dict[bytes, list[str]] = {}
    for row, outcome in zip(mask, outcomes, strict=True):
        together.setdefault(row.tobytes(), []).append(printable(outcome))
    notes = []
    for row, names in together.items():
        of = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        which = np.flatnonzero(np.frombuffer(row, dtype=bool)).tolist()
        own = [printable(terms[place]) for place in which]
        _check_rows(summary.rows, len(own), of)
        _check_constants(summary.low[which], summary.high[which], own, of)
        notes += _check_repeats(shape[:, which], lengths[which], own, of)
    return tuple(notes)


def check_sizes(matrix: Floats, terms: Sequence[str]) -> None:
    """Raise where a regressor is so large that sums of its squares are beyond a double."""
    far = np.argwhere(~(np.abs(matrix) < LARGEST))
    if far.size:
        row, place = far[0].tolist()
        raise InputError(
            f"the regressor is {matrix[row, place]:g}; regressors must be below {LARGEST:g}. Take "
            "another unit.",
            row,
            printable(terms[place]),
        )


def _check_rows(rows: int, terms: int, of: str) -> None:
    if rows < terms:
        raise NotIdentifiedError(
            f"{of} has {terms} regressors but only {rows} row{'s' * (rows != 1)}; at least as many rows "
            "are needed, and far more are better. Take terms out of the formula."
        )


def _check_constants(low: Floats, high: Floats, terms: Sequence[str], of: str) -> None:
    for place in np.flatnonzero(low == high).tolist():
        term, value = terms[place], float(low[place])
        if term == INTERCEPT:
            continue
        if value == 0.0:
            raise NotIdentifiedError(
                f"{term}, a regressor of {of}, is 0 in every row, so nothing is said of its "
                "coefficient. Leave it out."
            )
        if INTERCEPT in terms:
            raise NotIdentifiedError(
                f"{term}, a regressor of {of}, is {value:.12g} in every row, which the intercept "
                "already stands for. Leave one of them out."
            )


def _check_repeats(shape: Floats, lengths: Floats, terms: Sequence[str], of: str) -> list[str]:
    """Raise where a column is a combination of those before it; note where one nearly is."""
    pivots = np.abs(np.diag(qr(shape, mode="r", pivoting=True, check_finite=False)[0]))
    if (pivots > SAME).sum() < len(terms):
        place, earlier = _first_repeated(shape)
        weights = lstsq(shape[:, earlier], shape[:, place])[0]
        sentence = _combination(weights, lengths, [terms[one] for one in earlier], place, earlier)
        raise NotIdentifiedError(
            f"{terms[place]} = {sentence} in every row, to ten digits, so the regressors of {of} repeat "
            "each other and their coefficients cannot be told apart. Leave one of these terms out."
        )
    values, directions = svd(shape, full_matrices=False, check_finite=False)[1:]
    if len(terms) < 2 or values[-1] * NEARLY > values[0]:
        return []
    heavy = np.flatnonzero(np.abs(directions[-1]) > 0.1).tolist()[:_SHOWN]
    return [
        f"The regressors of {of} nearly repeat each other (condition number "
        f"{values[0] / values[-1]:.1e}): {', '.join(terms[one] for one in heavy)}. Their coefficients "
        "will be uncertain; center them, or leave one out."
    ]


def _first_repeated(shape: Floats) -> tuple[int, list[int]]:
    """Find the first column that is a combination of those before it, and which of those are not."""
    basis: list[Floats] = []
    earlier: list[int] = []
    least, nearest = np.inf, (0, [0])
    for place in range(shape.shape[1]):
        rest = shape[:, place].copy()
        if basis:
            Q = np.stack(basis, axis=1)
            # Twice, so that what rounding left in is taken out too.
            for _ in range(2):
                rest -= Q @ (Q.T @ rest)
        distance = float(np.linalg.norm(rest))
        if distance <= SAME:
            return place, earlier
        if basis and distance < least:
            least, nearest = distance, (place, list(earlier))
        basis.append(rest / distance)
        earlier.append(place)
    # Just above the threshold, by this way of counting.
    return nearest


def _combination(
    weights: Floats, lengths: Floats, names: Sequence[str], place: int, earlier: Sequence[int]
) -> str:
    """Write a combination of columns with its coefficients, in the units of the columns."""
    large = np.flatnonzero(np.abs(weights) > 1e-8 * np.abs(weights).max()).tolist()
    written = []
    for one in large[:_SHOWN]:
        value = float(weights[one] * lengths[place] / lengths[earlier[one]])
        size = "" if abs(abs(value) - 1.0) < 1e-8 else f"{abs(value):.6g} "
        written += ["-" if value < 0.0 else "+", f"{size}{names[one]}"]
    first = "-" * (written[0] == "-") + written[1]
    return " ".join([first, *written[2:]]) + (" + …" if len(large) > _SHOWN else "")


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
