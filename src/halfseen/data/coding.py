"""From the terms of a formula to the columns of a matrix, through formulaic, and the same for new rows.

formulaic gets the values of factors under their names, and no text that it could run. It decides which
categories of a factor need a column beside those of other terms, multiplies, and names the columns.
``Levels`` are the categories in a table that is read in pieces.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.factor_values import Categories, Evaluator, Learned
from halfseen.data.factors import (
    BASES,
    SCALING,
    Factor,
    column_factor,
    expression,
    function_name,
    shown,
)
from halfseen.data.formulas import Formula, Term
from halfseen.data.plain_columns import Level, PlainColumns
from halfseen.data.table import printable
from halfseen.errors import InputError
from halfseen.parallel import single_blas_thread

Floats = NDArray[np.float64]
INTERCEPT = "Intercept"
# Cells of a matrix: 16 GB.
MOST_CELLS = 2_000_000_000
# Categories of a variable; beyond, they are numbers of rows, or names of people.
MOST_LEVELS = 10_000


class Regressors(NamedTuple):
    """The columns of all equations, and the names of those of each."""

    names: tuple[str, ...]
    matrix: Floats
    equations: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class FormulaCoding:
    """How the regressors of a formula are made of the columns of a table."""

    equations: tuple[tuple[Term, ...], ...]
    learned: Learned

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the columns that the regressors are made of."""
        return Formula((), self.equations).variables

    def matrix_for(self, new: PlainColumns, names: Sequence[str]) -> Floats:
        """Return the regressors of new rows, in the order of their names."""
        for name in self.variables:
            new.check(name, "the regressor")
        if new.rows == 0:
            return np.empty((0, len(names)))
        made = _regressors(self.equations, Evaluator(new, self.learned))
        if made.names != tuple(names):
            raise InputError(
                "the saved design is damaged: its terms are not those of its formula. "
                "Fit the model again."
            )
        return made.matrix

    def to_dict(self) -> dict[str, Any]:
        """Return what is needed to make the regressors of new rows, as plain lists and numbers."""
        return {
            "kind": "formula",
            "equations": [[list(map(_plain_factor, t)) for t in terms] for terms in self.equations],
            "levels": {
                name: None if levels is None else list(levels)
                for name, levels in self.learned.levels.items()
            },
            "states": {
                source: [_plain(state) for state in states]
                for source, states in self.learned.states.items()
            },
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> FormulaCoding:
        """Read what ``to_dict`` returned."""
        equations = tuple(
            tuple(tuple(map(_read_factor, term)) for term in terms) for terms in saved["equations"]
        )
        levels = {
            str(name): None if one is None else tuple(map(_read_level, one))
            for name, one in saved["levels"].items()
        }
        states = {
            str(source): [_read_state(state) for state in states]
            for source, states in saved["states"].items()
        }
        coding = cls(equations, Learned(levels, states))
        if set(levels) != set(coding.variables):
            raise ValueError("levels")
        return coding


def learn_coding(
    formula: Formula, columns: PlainColumns, learned: Learned | None = None
) -> tuple[FormulaCoding, Regressors, dict[str, Categories]]:
    """Learn how to code a formula from the rows of a table.

    With ``learned``, what there is to learn is known: the rows are some of those of a larger table.

    Returns
    -------
    coding : FormulaCoding
    regressors : Regressors
    categories : dict of str to Categories
        Those of each categorical variable.
    """
    for name in formula.variables:
        columns.check(name, "the regressor")
    evaluator = Evaluator(columns, learned)
    made = _regressors(formula.equations, evaluator)
    return FormulaCoding(formula.equations, evaluator.learned), made, evaluator.categories


def _regressors(equations: Sequence[tuple[Term, ...]], evaluator: Evaluator) -> Regressors:
    """Make the regressors of all equations, those that several have once."""
    _require_formulaic()
    factors = _factors_by_label(equations)
    values = {label: evaluator.of(factor) for label, factor in factors.items()}
    made: dict[tuple[Term, ...], tuple[tuple[str, ...], Floats]] = {}
    for terms in dict.fromkeys(equations):
        _check_size(terms, values, evaluator.columns.rows)
        with single_blas_thread():
            made[terms] = _materialised(terms, values, evaluator.columns.rows)
    by_equation = tuple(made[terms][0] for terms in equations)
    if len(made) == 1:
        return Regressors(*made[equations[0]], by_equation)
    columns: dict[str, Floats] = {}
    for names, matrix in made.values():
        for place, name in enumerate(names):
            # Equal names have equal columns.
            if not np.array_equal(columns.setdefault(name, matrix[:, place]), matrix[:, place]):
                _refuse_name(name)
    names = tuple(sorted(columns, key=lambda name: name != INTERCEPT))
    return Regressors(names, np.stack([columns[name] for name in names], axis=1), by_equation)


def _require_formulaic() -> None:
    try:
        import formulaic  # noqa: F401
    except ImportError:
        raise InputError('Formulas need formulaic: pip install "halfseen[formulas]".') from None


def _factors_by_label(equations: Sequence[tuple[Term, ...]]) -> dict[str, Factor]:
    out: dict[str, Factor] = {}
    for factor in (factor for terms in equations for term in terms for factor in term):
        # formulaic takes a column that is called 1 for the intercept.
        if factor.label == "1" or out.setdefault(factor.label, factor).source != factor.source:
            _refuse_name(factor.label)
    return out


def _refuse_name(name: str) -> None:
    raise InputError(
        f"two different terms of the formula have the name {shown(name)}. Rename the column."
    )


def _check_size(terms: Sequence[Term], values: Mapping[str, Any], rows: int) -> None:
    """Raise an ``InputError`` where the matrix would not fit into memory, before it is made."""
    widths = {label: _width(value) for label, value in values.items()}
    for term in terms:
        # Python's whole numbers, which cannot overflow.
        wide = 1
        for factor in term:
            wide *= widths[factor.label]
        if wide * rows > MOST_CELLS:
            widest = max(term, key=lambda factor: widths[factor.label])
            raise InputError(
                f"{shown(':'.join(factor.label for factor in term))} would have {wide} columns of "
                f"{rows} rows; {shown(widest.label)} alone has {widths[widest.label]}. Group its "
                "categories, or leave it out."
            )


def _width(value: Any) -> int:
    categories = getattr(getattr(value, "cat", None), "categories", None)
    if categories is not None:
        return len(categories)
    return len(value) if isinstance(value, dict) else 1 if value.ndim == 1 else int(value.shape[1])


def _materialised(
    terms: Sequence[Term], values: Mapping[str, Any], rows: int
) -> tuple[tuple[str, ...], Floats]:
    """Let formulaic make the columns of some terms."""
    import pandas as pd
    from formulaic import Formula as FormulaicFormula
    from formulaic import ModelSpec
    from formulaic.materializers import PandasMaterializer
    from formulaic.parser.types import Factor as FormulaicFactor
    from formulaic.parser.types import Term as FormulaicTerm

    one = FormulaicFactor("1", eval_method="literal")
    given = [
        FormulaicTerm([FormulaicFactor(f.label, eval_method="lookup") for f in term] or [one])
        for term in terms
    ]
    spec = ModelSpec(
        formula=FormulaicFormula(given),
        output="numpy",
        na_action="ignore",
        materializer="pandas",
    )
    # Values are looked up by the names of factors, in a table that has rows and nothing else.
    context = dict(values)
    maker = PandasMaterializer(pd.DataFrame(index=pd.RangeIndex(rows)), context=context)
    made = maker.get_model_matrix(spec)
    # It refers to itself, and so would hold the columns of piece after piece until Python looks for
    # such circles.
    for held in (context, maker.factor_cache, maker.encoded_cache):
        held.clear()
    names = tuple(str(name) for name in made.model_spec.column_names)
    for name, count in Counter(names).items():
        if count > 1:
            _refuse_name(name)
    return names, np.asarray(made, dtype=float)


# Plain lists and numbers


def _plain_factor(factor: Factor) -> dict[str, str]:
    kind = "column" if factor.is_column else "expression"
    return {kind: factor.label if factor.is_column else factor.source}


def _read_factor(saved: Mapping[str, str]) -> Factor:
    if "column" in saved:
        if not isinstance(saved["column"], str):
            raise TypeError("column")
        return column_factor(saved["column"])
    source = saved["expression"]
    if source.startswith("{"):
        return expression(source[1:-1], braces=True)
    return expression(source)


def _read_level(value: Any) -> Level:
    if not isinstance(value, str | bool | int | float):
        raise TypeError("level")
    return value


def _plain(value: Any) -> Any:
    """Return what a function learned as JSON can have it."""
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(one)] for key, one in value.items()]}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return _plain(value.item()) if value.ndim == 0 else {"array": value.tolist()}
    return value.item() if isinstance(value, np.generic) else value


def _read_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "array" in value:
            return np.array(value["array"], dtype=float)
        return {_read_plain(key): _read_plain(one) for key, one in value["pairs"]}
    return [_read_plain(one) for one in value] if isinstance(value, list) else value


def _read_state(saved: Any) -> dict[Any, Any]:
    state = _read_plain(saved)
    if not isinstance(state, dict):
        raise TypeError("state")
    if "levels" in state:
        state["levels"] = list(map(_read_level, state["levels"]))
    return state


class Levels(NamedTuple):
    """Categories in some rows; those of two parts of a table are added up.

    Attributes
    ----------
    learned : Learned
    declared : dict
        All categories of the columns that have an order of their own, in that order.
    """

    learned: Learned
    declared: dict[str, tuple[Level, ...]]

    @classmethod
    def of(cls, columns: PlainColumns, factors: Sequence[Factor]) -> Levels:
        """Look for the categories of some factors."""
        evaluator = Evaluator(columns)
        for factor in factors:
            evaluator.find_levels(factor)
        learned = evaluator.learned
        declared = {name: columns.column(name).levels for name in learned.levels}
        return cls(learned, {name: one for name, one in declared.items() if one is not None})

    def __add__(self, other: Levels) -> Levels:  # type: ignore[override]
        one, two = self.learned, other.learned
        levels: dict[str, tuple[Level, ...] | None] = {}
        for name in one.levels:
            # A column in which nothing is known looks like numbers.
            known = [own for own in (one.levels[name], two.levels[name]) if own is not None]
            levels[name] = _union(name, *known) if known else None
        states = {**one.states, **two.states}
        for source in one.states.keys() & two.states.keys():
            both = (learned.states[source][0]["levels"] for learned in (one, two))
            states[source] = [{"levels": list(_union(source, *both))}]
        declared = {
            name: _union(name, self.declared.get(name, ()), other.declared.get(name, ()))
            for name in {**self.declared, **other.declared}
        }
        return Levels(Learned(levels, states), declared)

    def ordered(self, factors: Sequence[Factor]) -> Learned:
        """Return what a table in memory would have said: categories sorted, or in their own order."""
        levels: dict[str, tuple[Level, ...] | None] = {}
        for name, own in self.learned.levels.items():
            if own is None:
                levels[name] = None
            elif name in self.declared:
                levels[name] = tuple(level for level in self.declared[name] if level in own)
            else:
                levels[name] = _sorted(name, own)
        told = {factor.source for factor in factors if "levels" in _keywords(factor)}
        states = {
            source: [
                one if source in told else {"levels": list(_sorted(source, one["levels"]))}
                for one in states
            ]
            for source, states in self.learned.states.items()
        }
        return Learned(levels, states)


def factors_of(formula: Formula) -> list[Factor]:
    """Return the factors of all equations, each once; raise where one would learn from all rows."""
    factors = {f.source: f for terms in formula.equations for term in terms for f in term}
    for factor in factors.values():
        for node in ast.walk(factor.tree):
            name = function_name(node) if isinstance(node, ast.Call) else ""
            if name in SCALING or name in BASES:
                raise InputError(
                    f"{shown(factor.label)} in the formula learns from all rows, which are read in "
                    f"pieces here. Make a column of it first; or learn {name} from some of the rows, "
                    "and write its numbers, as in I((x - 40) / 12)."
                )
    return list(factors.values())


def has_levels(factor: Factor, columns: PlainColumns) -> bool:
    """Whether categories stand in a factor, as far as some rows tell."""
    coded = isinstance(factor.tree, ast.Call) and function_name(factor.tree) == "C"
    return coded or not all(columns.column(name).is_numbers for name in factor.variables)


def _keywords(factor: Factor) -> list[str | None]:
    node = factor.tree
    if not isinstance(node, ast.Call):
        return []
    # After contrasts, the second of them by position.
    return [*(one.arg for one in node.keywords), *(["levels"] if len(node.args) > 2 else [])]


def _union(name: str, *parts: Sequence[Level]) -> tuple[Level, ...]:
    """Put categories together, in the order in which they come."""
    out = dict.fromkeys(level for part in parts for level in part)
    if len(out) > MOST_LEVELS:
        raise InputError(
            f"{printable(name)} has more than {MOST_LEVELS} categories. Group them, or leave it out."
        )
    return tuple(out)


def _sorted(name: str, levels: Sequence[Level]) -> tuple[Level, ...]:
    try:
        return tuple(sorted(levels))
    except TypeError:
        raise InputError(
            f"{printable(name)} holds texts in some pieces of the table, and true and false, or "
            "numbers, in others. Make them one or the other."
        ) from None
