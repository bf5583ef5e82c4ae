"""What ``regress`` does where the rows are not all at hand at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.design import Design
from halfseen.data.formulas import outcome_names, read_formula
from halfseen.data.plain_columns import PlainColumn, PlainColumns
from halfseen.data.table import RowBlocks
from halfseen.errors import InputError, argument
from halfseen.missingness.named_rules import Rules
from halfseen.scaling.mixed_sources import mixed_blocks, paired_blocks
from halfseen.scaling.sources import engine_for
from halfseen.solvers.full_information.learn import Settings
from halfseen.solvers.full_information.problem import read_mask
from halfseen.solvers.regression.estimate import RegressionEstimate
from halfseen.solvers.regression.in_pieces import Asked, learn_in_pieces
from halfseen.solvers.regression.model import Model
from halfseen.solvers.regression.outcomes import Outcomes, split_rules

# Bytes of what comes into memory when rows are laid out already: kernels, and what threads keep for
# their work. 150 MB were measured after three questions to five million rows.
SET_ASIDE = 2**27


@dataclass(frozen=True)
class Place:
    """Where the work is done: on a cluster, or here within so much memory."""

    client: Any
    memory: Any
    scratch: Any


@dataclass(frozen=True, eq=False)
class InPieces:
    """A table in pieces, and which of its columns are what."""

    blocks: RowBlocks
    formula: Any
    outcomes: tuple[str, ...]
    carried: tuple[str, ...]

    @classmethod
    def of_formula(cls, formula: Any, data: Any, rules: Any, place: Place) -> InPieces | None:
        """Return the columns of a table that a formula and rules name; None where it is read whole."""
        choose = columns_needed(formula, rules)
        blocks = mixed_blocks(data, choose, place.client, place.memory, place.scratch)
        if blocks is None:
            return None
        outcomes, spoken = outcome_names(formula), _spoken(rules)
        carried = tuple(k for k in spoken if k in blocks.names and k not in outcomes)
        return cls(blocks, formula, outcomes, carried)

    @classmethod
    def of_arrays(
        cls, Y: Any, X: Any, names: Sequence[str] | None, place: Place
    ) -> InPieces | None:
        """Return two arrays side by side; None where they are read whole."""
        paired = paired_blocks(Y, X, names, place.client, place.memory, place.scratch)
        if paired is None:
            return None
        blocks, q = paired
        return cls(blocks, None, blocks.names[:q], ())

    def learn(
        self,
        rules: Any,
        kinds: Mapping[str, Any] | None,
        missing_at_random: Any,
        intercept: bool,
        robust: bool,
        model_of: Callable[[Design, Outcomes], Model],
        place: Place,
        settings: Settings,
    ) -> tuple[RegressionEstimate, Design]:
        """Learn from all rows."""
        where = place.client, place.memory, place.scratch
        engine, blocks = engine_for(*where, settings.n_jobs, self.blocks, SET_ASIDE)
        mask = self._mask(missing_at_random)
        asked = Asked(
            self.formula, self.outcomes, intercept, rules, kinds, mask, self.carried, robust
        )
        return learn_in_pieces(blocks, asked, model_of, engine, settings)

    def _mask(self, given: Any) -> NDArray[Any] | None:
        nothing_seen = np.broadcast_to(np.nan, (self.blocks.shape[0], len(self.outcomes)))
        return read_mask(given, nothing_seen, self.outcomes)


def columns_needed(formula: Any, rules: Any) -> Callable[[Sequence[str]], list[str]]:
    """Return what chooses the columns that a formula and rules name; it refuses those not there."""
    outcomes, (_, selections) = outcome_names(formula), split_rules(rules)
    indices = {str(one.by) for one in selections}

    def choose(names: Sequence[str]) -> list[str]:
        columns = _names_only(names)
        for name in outcomes:
            if name not in indices:
                columns.check(name, "the outcome")
        variables = read_formula(formula, names).variables
        for name in variables:
            columns.check(name, "the regressor")
        wanted = {*outcomes, *variables, *_spoken(rules)}
        return [name for name in names if name in wanted]

    return choose


def _spoken(rules: Any) -> tuple[str, ...]:
    """Return the columns that a rule speaks of by name."""
    rule, _ = split_rules(rules)
    return tuple(rule.names) if isinstance(rule, Rules) else ()


def refuse_in_pieces(**given: Any) -> None:
    """Raise where something is asked that needs the table in memory."""
    why = {
        "truncated": "rows that are not in the table",
        "cluster": "clusters of rows",
        "weights": "what rows count",
        "penalty": "a pull that is chosen on rows held out",
    }
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{argument(name)} ({why[name]}) needs the table in memory, and this one is read in "
                "pieces. Leave it out, or take some of the rows."
            )


def _names_only(names: Sequence[str]) -> PlainColumns:
    """Return columns of which nothing but the names is known."""

    def read(place: int) -> PlainColumn:
        raise AssertionError("they have no rows.")

    return PlainColumns(names, 0, read)
