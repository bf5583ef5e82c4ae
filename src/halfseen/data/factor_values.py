"""The values of factors in the rows of a table: learned from some rows, and computed anew for others.

What a function learns from the rows (a mean, the places of knots, which categories there are) is kept in
``Learned``, in numbers and texts, and used for all rows that come later.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from halfseen.data.factors import (
    BASES,
    BY_VALUE,
    CATEGORIES,
    CONTRASTS,
    SCALING,
    Factor,
    arguments,
    constant,
    function_name,
    listed,
    quoted,
    shown,
)
from halfseen.data.plain_columns import Level, PlainColumn, PlainColumns, doubt_texts
from halfseen.data.table import float_of, printable
from halfseen.errors import InputError, NotIdentifiedError

Floats = NDArray[np.float64]

# Degrees and degrees of freedom beyond this are slips of the hand.
MOST_COLUMNS = 1000
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}


@dataclass(frozen=True)
class Learned:
    """What was learned from the rows.

    ``levels`` has the categories of a variable, None where it holds numbers; ``states`` has, by the
    source of a factor, what each of its functions learned, in the order in which they are computed.
    """

    levels: dict[str, tuple[Level, ...] | None] = field(default_factory=dict)
    states: dict[str, list[dict[Any, Any]]] = field(default_factory=dict)


class Categories(NamedTuple):
    """The category of each row and the reference, as places among the levels."""

    codes: NDArray[np.intp]
    levels: tuple[Level, ...]
    reference: int = 0


class Evaluator:
    """Computes factors in the rows of a table.

    Where ``learned`` is None everything is learned from these rows, into the attribute ``learned``.
    """

    def __init__(self, columns: PlainColumns, learned: Learned | None = None) -> None:
        self.columns = columns
        self.learning = learned is None
        self.learned = Learned() if learned is None else learned
        # Categories that were made of factors, for those who list them.
        self.categories: dict[str, Categories] = {}
        self._numbers: dict[str, Floats] = {}

    def of(self, factor: Factor) -> Any:
        """Return the values of a factor as formulaic takes them."""
        self._factor, self._calls = factor, 0
        node = factor.tree
        name = function_name(node) if isinstance(node, ast.Call) else ""
        with np.errstate(all="ignore"):
            if name == "C":
                assert isinstance(node, ast.Call)
                values = self._coded(node)
            elif name in BASES:
                assert isinstance(node, ast.Call)
                values = self._basis(node, name)
            elif isinstance(node, ast.Name) and not self._holds_numbers(node.id):
                values = self._bare_categories(node.id)
            else:
                values = self._one_column(node)
        return values

    def find_levels(self, factor: Factor) -> None:
        """Learn which categories a factor has in these rows, and nothing else."""
        self._factor, self._calls = factor, 0
        for name in factor.variables:
            self._holds_numbers(name)
        node = factor.tree
        if isinstance(node, ast.Call) and function_name(node) == "C":
            with np.errstate(all="ignore"):
                self._categories_in(node.args[0], arguments(node, CATEGORIES).get("levels"))

    def _one_column(self, node: ast.expr) -> Any:
        from formulaic import FactorValues as Values

        return Values(self._vector(node), kind="numerical")

    def _vector(self, node: ast.expr) -> Floats:
        """Compute one finite number for each row."""
        value = self._computed(np.broadcast_to, self._value(node), (self.columns.rows,))
        numbers = np.asarray(value, dtype=float)
        self._check_finite(numbers)
        return numbers

    # Columns

    def _holds_numbers(self, name: str) -> bool:
        if self.learning and name not in self.learned.levels:
            column = self.columns.column(name)
            self.learned.levels[name] = None if column.is_numbers else _levels_of(column)
            if not (column.is_numbers or column.levels or self.columns.doubted):
                doubt_texts(column)
        return self.learned.levels[name] is None

    def _numbers_of(self, name: str) -> Floats:
        """Return a column of numbers, all of them there and finite."""
        if name in self._numbers:
            return self._numbers[name]
        column = self.columns.column(name)
        levels = None if self._holds_numbers(name) else self.learned.levels[name]
        if levels is not None and not all(isinstance(level, bool) for level in levels):
            raise InputError(
                f"{printable(name)} holds categories, such as "
                f"{quoted(next(iter(levels), None))}; {shown(self._factor.label)} computes with "
                "it as if it were numbers."
            )
        values = column.values
        if values.dtype.kind == "f":
            self._check_missing(np.isnan(values), name)
        else:
            self._check_missing(np.array([value is None for value in values], dtype=bool), name)
            texts = [row for row, value in enumerate(values) if isinstance(value, str)]
            if texts:
                raise InputError(
                    f"the cell holds {quoted(values[texts[0]])}, but the model knows "
                    f"{printable(name)} as a column of numbers.",
                    texts[0],
                    printable(name),
                )
        out = np.asarray(values, dtype=float)
        infinite = np.flatnonzero(np.isinf(out))
        if infinite.size:
            raise InputError(
                f"the value is {out[infinite[0]]}; regressors must be finite. Leave such rows out, or "
                "put the largest value that makes sense in its place.",
                infinite[0],
                printable(name),
            )
        self._numbers[name] = out
        return out

    def _check_missing(self, missing: NDArray[np.bool_], name: str) -> None:
        rows = np.flatnonzero(missing)
        if rows.size:
            more = f" ({rows.size} such rows)" if rows.size > 1 else ""
            modelled = f", or make {printable(name)} an outcome of its own, so that it is modelled"
            raise InputError(
                f"the value is missing{more}, but regressors must be known in every row. Leave such "
                f"rows out{modelled if self.learning else ', or fill them in'}.",
                rows[0],
                printable(name),
            )

    def _categories_of(self, name: str) -> Categories:
        """Return a column of categories, all of them there and known."""
        levels = self.learned.levels[name]
        assert levels is not None
        return self._matched(self.columns.column(name).values, levels, name)

    def _matched(self, values: NDArray[Any], levels: Sequence[Level], name: str) -> Categories:
        import pandas as pd

        places, present = pd.factorize(values)
        self._check_missing(places < 0, name)
        known = {level: code for code, level in enumerate(levels)}
        codes = np.array([known.get(value, -1) for value in present], dtype=np.intp)
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            row = int(np.flatnonzero(places == unknown[0])[0])
            raise InputError(
                f"{quoted(_plain(values[row]))} is none of the categories that the model knows: "
                f"{listed(levels)}. Leave such rows out"
                f"{'' if self.learning else ', or fit the model with rows that have it'}.",
                row,
                printable(name),
            )
        return Categories(codes[places], tuple(levels))

    # Categories and several columns

    def _bare_categories(self, name: str) -> Any:
        from formulaic import FactorValues as Values

        found = self._categories_of(name)
        self._note(found, name)
        return Values(_series(found), kind="categorical", spans_intercept=True)

    def _coded(self, node: ast.Call) -> Any:
        from formulaic.transforms import TRANSFORMS

        given = arguments(node, CATEGORIES)
        found = self._categories_in(node.args[0], given.get("levels"))
        contrasts = None
        if "contrasts" in given:
            contrasts, reference = self._contrasts(given["contrasts"], found.levels)
            found = found._replace(reference=reference)
        first = node.args[0]
        self._note(found, first.id if isinstance(first, ast.Name) else self._factor.label)
        return TRANSFORMS["C"](_series(found), contrasts)

    def _note(self, found: Categories, name: str) -> None:
        if len(found.levels) < 2:
            raise NotIdentifiedError(
                f"{printable(name)} has the same category in all rows, "
                f"{quoted(found.levels[0])}, so it explains nothing. Leave "
                f"{shown(self._factor.label)} out of the formula."
            )
        self.categories.setdefault(name, found)

    def _categories_in(self, node: ast.expr, wanted: ast.expr | None) -> Categories:
        """Make categories of what stands in C(...), which may be numbers."""
        name = node.id if isinstance(node, ast.Name) else self._factor.label
        values: NDArray[Any]
        if isinstance(node, ast.Name) and not self._holds_numbers(node.id):
            found = self._categories_of(node.id)
            if wanted is None:
                return found
            values = np.array(found.levels, dtype=object)[found.codes]
        else:
            values = self._vector(node)
        state = self._state()
        if self.learning:
            make: type[Level] = bool if isinstance(node, ast.Compare) else float
            if isinstance(node, ast.Name) and self.columns.column(node.id).whole:
                make = int
            state["levels"] = (
                list(map(make, np.unique(values)))
                if wanted is None
                else self._levels_wanted(wanted)
            )
        elif "levels" not in state:
            _damaged(self._factor)
        return self._matched(values, tuple(state["levels"]), name)

    def _levels_wanted(self, node: ast.expr) -> list[Level]:
        levels = constant(node)
        if not isinstance(levels, list) or not levels or len(set(map(repr, levels))) < len(levels):
            raise InputError(
                f"levels in {shown(self._factor.label)} must be a list of different categories; got "
                f"{shown(ast.unparse(node))}."
            )
        for level in levels:
            if not isinstance(level, str | int | float):
                raise InputError(
                    f"levels in {shown(self._factor.label)} must be texts or numbers; got "
                    f"{quoted(level)}."
                )
        return levels

    def _contrasts(self, node: ast.expr, levels: tuple[Level, ...]) -> tuple[Any, int]:
        """Return how categories are compared, and the place of the reference."""
        from formulaic.transforms import TRANSFORMS

        name, given = "", {}
        if isinstance(node, ast.Call):
            name = function_name(node)
            given = {k: constant(v) for k, v in arguments(node, CONTRASTS[name], 0).items()}
        else:
            name = ast.unparse(node)
        reference = given.get("reference", given.get("base"))
        if reference is not None and reference not in levels:
            raise InputError(
                f"the reference {quoted(reference)} in {shown(self._factor.label)} is none of the "
                f"categories: {listed(levels)}."
            )
        short = name.removeprefix("contr.")
        make = TRANSFORMS[name] if short == name else getattr(TRANSFORMS["contr"], short)
        last = short == "SAS" and reference is None
        place = len(levels) - 1 if last else 0 if reference is None else levels.index(reference)
        return self._computed(make, **given), place

    def _basis(self, node: ast.Call, name: str) -> Any:
        from formulaic.transforms import TRANSFORMS

        given = {key: constant(value) for key, value in arguments(node, BASES[name]).items()}
        for key in {"df", "degree"} & set(given):
            if not isinstance(given[key], int) or not 0 <= given[key] <= MOST_COLUMNS:
                raise InputError(
                    f"{key} in {shown(self._factor.label)} must be a whole number from 0 to "
                    f"{MOST_COLUMNS}; got {given[key]!r}."
                )
        numbers = self._vector(node.args[0])
        state = self._state()
        if given.get("extrapolation", "raise" if name == "bs" else "extend") == "raise":
            self._computed(self._check_range, numbers, {**given, **state})
        before = set(state)
        out = self._computed(TRANSFORMS[name], numbers, **given, _state=state)
        self._check_state(before, state)
        columns = list(out.values()) if isinstance(out, dict) else list(np.asarray(out).T)
        for column in columns:
            self._check_finite(np.asarray(column))
        return out

    def _check_range(self, numbers: Floats, bounds: dict[str, Any]) -> None:
        low, high = bounds.get("lower_bound"), bounds.get("upper_bound")
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        outside = np.flatnonzero((numbers < low) | (numbers > high))
        if outside.size:
            raise InputError(
                f"the value {numbers[outside[0]]:.12g} lies outside of the range of "
                f"{shown(self._factor.label)}, from {low:.12g} to {high:.12g}, which is that of the "
                "rows it was learned from unless it is given. Give a wider one (lower_bound=, "
                "upper_bound=), or say how it goes on (extrapolation='extend', or 'clip').",
                outside[0],
                ", ".join(map(printable, self._factor.variables)),
            )

    # Numbers

    def _value(self, node: ast.expr) -> Any:
        """Compute an expression: one number for each row, or for all of them."""
        if isinstance(node, ast.Name):
            return self._numbers_of(node.id)
        if isinstance(node, ast.Constant):
            return np.float64(float_of(node.value))
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](self._value(node.left), self._value(node.right))
        if isinstance(node, ast.Compare):
            return self._compared(node)
        assert isinstance(node, ast.Call)
        return self._called(node)

    def _called(self, node: ast.Call) -> Any:
        from formulaic.transforms import TRANSFORMS

        name, value = function_name(node), self._value(node.args[0])
        if name in BY_VALUE:
            return getattr(np, name)(value)
        if name == "I":
            return value
        given = {key: constant(one) for key, one in arguments(node, SCALING[name]).items()}
        state = self._state()
        before = set(state)
        out = self._computed(TRANSFORMS[name], value, **given, _state=state)
        self._check_state(before, state)
        return out

    def _compared(self, node: ast.Compare) -> Any:
        sides = [node.left, *node.comparators]
        texts = [side for side in sides if isinstance(side, ast.Constant)]
        if any(isinstance(side.value, str) for side in texts):
            return self._compared_with_text(node, str(texts[0].value))
        values = [self._value(side) for side in sides]
        pairs = zip(node.ops, values[:-1], values[1:], strict=True)
        met = [_OPERATORS[type(op)](left, right) for op, left, right in pairs]
        return np.asarray(functools.reduce(np.logical_and, met), dtype=float)

    def _compared_with_text(self, node: ast.Compare, text: str) -> Any:
        column = next(side for side in (node.left, *node.comparators) if isinstance(side, ast.Name))
        if self._holds_numbers(column.id):
            raise InputError(
                f"{printable(column.id)} holds numbers; {shown(self._factor.label)} compares it with "
                "a text."
            )
        found = self._categories_of(column.id)
        if text not in found.levels:
            raise InputError(
                f"{quoted(text)} in {shown(self._factor.label)} is none of the categories of "
                f"{printable(column.id)}: {listed(found.levels)}."
            )
        met = found.codes == found.levels.index(text)
        return np.asarray(met == isinstance(node.ops[0], ast.Eq), dtype=float)

    # What functions learn

    def _state(self) -> dict[Any, Any]:
        """Return what the next function of the factor learned; an empty dict where it is to learn."""
        self._calls += 1
        if self.learning:
            states = self.learned.states.setdefault(self._factor.source, [])
            states.append({})
            return states[-1]
        states = self.learned.states.get(self._factor.source, [])
        if self._calls > len(states):
            _damaged(self._factor)
        # A copy, so that rows that come later cannot change it.
        return copy.deepcopy(states[self._calls - 1])

    def _check_state(self, before: set[Any], state: dict[Any, Any]) -> None:
        """Raise where a function learned from rows that are not to be learned from."""
        if not self.learning and set(state) != before:
            _damaged(self._factor)

    def _computed(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except InputError:
            raise
        except Exception as error:  # whatever was given to a function of formulaic
            why = printable(" ".join(str(error).split())[:300]).rstrip(".")
            raise InputError(
                f"{shown(self._factor.label)} in the formula cannot be computed: {why}."
            ) from None

    def _check_finite(self, values: NDArray[np.floating]) -> None:
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            row = int(wrong[0])
            at = ", ".join(
                f"{printable(name)} = {self._numbers[name][row]:.12g}"
                for name in self._factor.variables
                if name in self._numbers
            )
            raise InputError(
                f"{shown(self._factor.label)} is {values[row]}{f' where {at}' if at else ''}, but "
                "regressors must be finite. Use another function, or leave such rows out.",
                row,
            )


def _levels_of(column: PlainColumn) -> tuple[Level, ...]:
    """Return the categories that a column has, in its own order or sorted."""
    present = {value for value in column.values if value is not None and value == value}
    if column.levels is None:
        return tuple(sorted(present))
    return tuple(level for level in column.levels if level in present)


def _series(found: Categories) -> Any:
    import pandas as pd

    return pd.Series(pd.Categorical.from_codes(found.codes, categories=list(found.levels)))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _damaged(factor: Factor) -> NoReturn:
    raise InputError(
        f"the saved design is damaged: it lacks what {shown(factor.label)} learned. "
        "Fit the model again."
    )
