"""What a solver states of itself, so that the door can match it with what came."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from halfseen.data.table import TableKind
from halfseen.missingness.base import RuleKind

# Each cell by its own value; no rule is one that shows everything.
OWN_VALUE = frozenset({RuleKind.BY_COLUMN, RuleKind.BY_ROW})
# What is seen through moments of pairs: pieces become moments, which do not tell rows with different
# limits apart.
BY_PAIRS = {
    TableKind.VALUES: OWN_VALUE,
    TableKind.MOMENTS: frozenset({RuleKind.BY_COLUMN}),
    TableKind.PIECES: frozenset({RuleKind.BY_COLUMN}),
}


@dataclass(frozen=True)
class Needs:
    """Which tables a solver takes, and under which rules.

    Attributes
    ----------
    takes : mapping
        For each kind of table the kinds of rules. Kinds of tables that are not there are not taken.
    believes : bool
        Whether it believes that a hidden cell was hidden by the rule; else it learns nothing from it.
    refuses : mapping
        What it says itself to a kind of table under a kind of rule, in place of the door's sentence.
    """

    takes: Mapping[TableKind, Set[RuleKind]]
    believes: bool = True
    refuses: Mapping[tuple[TableKind, RuleKind], str] = field(default_factory=dict)

    def met_by(self, table: TableKind, rule: RuleKind) -> bool:
        """Whether it takes such a table under such a rule."""
        return rule in self.takes.get(table, ())


def need_rows(what: str) -> str:
    """Say that moments are not enough."""
    return f"{what} the rows themselves, but moments were passed. Pass the table."
