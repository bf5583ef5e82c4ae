"""Where outcomes of new rows would be shown: what a fit knows of that, with its table or without."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.missingness.base import ColumnRule, ColumnwiseMissingness, Missingness
from halfseen.missingness.combined import Combined
from halfseen.missingness.resolve import resolve
from halfseen.missingness.selection import Selection
from halfseen.missingness.sets import everything
from halfseen.solvers.full_information.problem import REACH
from halfseen.solvers.regression.outcomes import Outcomes

Floats = NDArray[np.float64]

ALWAYS = np.array([[-np.inf, np.inf]])


class Unknown(enum.Enum):
    """Why it is not known where an outcome of a new row would be shown. The value is a sentence."""

    IN_CELLS = (
        "the cells of the table say where their limits are, and no rule says where those of new rows "
        "would be. State one: rules={...}, beside the table."
    )
    BY_ROW = "limits differ by row, and those of new rows are not known."
    BY_CHANCE = "values are shown by chance (Probability); simulate rows instead."
    WITH_OTHERS = "what is shown depends on other outcomes too; simulate rows, and look at them."


@dataclass(frozen=True, eq=False)
class Hiding:
    """What hides outcomes of new rows.

    Attributes
    ----------
    names : tuple of str
        Of the outcomes.
    rule : Missingness or None
        What hides them, apart from selection.
    selections : tuple of Selection
    shown : tuple of arrays of shape (k, 2), or Unknown
        For each outcome the intervals in which it is shown, or why they are not known.
    carried : tuple of str
        Columns beside the outcomes, with which the rule compares them.
    """

    names: tuple[str, ...]
    rule: Missingness | None
    selections: tuple[Selection, ...]
    shown: tuple[Floats | Unknown, ...]
    carried: tuple[str, ...] = ()

    @classmethod
    def of(cls, outcomes: Outcomes, residual: Floats, centre: Floats | None = None) -> Hiding:
        """Take it from the outcomes that were fitted, and the covariance of their residuals.

        ``centre`` is that of what is seen, where the outcomes have no rows.
        """
        if centre is None:
            data = outcomes.data
            columns = [data.values[data.seen[:, j], j] for j in range(len(outcomes.names))]
            centre = np.array([own.mean() if own.size else 0.0 for own in columns])
        shown = [
            ALWAYS
            if latent
            else _shown(outcomes, j, float(centre[j]), float(np.sqrt(residual[j, j])))
            for j, latent in enumerate(outcomes.latent)
        ]
        carried = () if outcomes.carried is None else outcomes.carried.names
        return cls(outcomes.names, outcomes.rule, outcomes.selections, tuple(shown), carried)

    def pieces(self, j: int) -> list[tuple[float, float]]:
        """Return the intervals in which an outcome is shown; raise where they are not known."""
        shown = self.shown[j]
        if isinstance(shown, Unknown):
            raise InputError(f"{self.names[j]}: {shown.value}")
        return [(float(low), float(high)) for low, high in shown]

    def selecting(self, j: int) -> Selection | None:
        """Return what selects an outcome; None where nothing does."""
        own = [one for one in self.selections if j in one.places]
        if len(own) > 1:
            raise InputError(
                f"{self.names[j]} is selected by several indices; simulate rows, and look at them."
            )
        return own[0] if own else None


def _shown(outcomes: Outcomes, j: int, centre: float, spread: float) -> Floats | Unknown:
    """Return where an outcome is shown by its rule, or by its cells where no rule is stated."""
    rule, data = outcomes.rule, outcomes.data
    if rule is None:
        told = ~data.seen[:, j] & ~data.at_random[:, j]
        return Unknown.IN_CELLS if told.any() else ALWAYS
    own = _rule_of(rule, j)
    if isinstance(own, Unknown):
        return own
    shown = own.seen_set
    if shown is None:
        return Unknown.BY_ROW
    if shown == everything:
        return ALWAYS
    table = resolve(shown, centre, spread, REACH)
    if table.node.size:
        return Unknown.BY_CHANCE
    return np.column_stack([table.lower, table.upper])


def _rule_of(rule: Missingness, j: int) -> ColumnRule | Unknown:
    """Return the rule of one column, wherever it stands."""
    if isinstance(rule, Combined):
        for columns, part in rule.parts:
            if j in columns:
                return _rule_of(part, columns.index(j))
        return ColumnRule.of_set(everything)
    return rule.column_rule(j) if isinstance(rule, ColumnwiseMissingness) else Unknown.WITH_OTHERS
