"""Which categories the factors of a formula have, in a table that is read in pieces."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from halfseen.data.factor_values import Evaluator, Learned
from halfseen.data.factors import BASES, SCALING, Factor, function_name, shown
from halfseen.data.formulas import Formula
from halfseen.data.plain_columns import Level, PlainColumns
from halfseen.data.table import printable
from halfseen.errors import InputError

# Categories of a variable; beyond, they are numbers of rows, or names of people.
MOST_LEVELS = 10_000


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
