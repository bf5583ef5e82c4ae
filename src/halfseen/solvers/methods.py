"""The ladder of methods, and how the door chooses from it what fits a table and its rule."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from halfseen.data.table import TableKind
from halfseen.errors import InputError
from halfseen.missingness.base import Missingness, RuleKind
from halfseen.solvers.full_information.full import NEEDS as FULL
from halfseen.solvers.full_information.full import full
from halfseen.solvers.missing_descent import NEEDS as MISSING_DESCENT
from halfseen.solvers.missing_descent import missing_descent
from halfseen.solvers.pairwise import NEEDS as PAIRWISE
from halfseen.solvers.pairwise import pairwise
from halfseen.solvers.prepared_table import Needs, need_rows
from halfseen.solvers.result import Estimate
from halfseen.solvers.truncated_sgd import NEEDS as TRUNCATED_SGD
from halfseen.solvers.truncated_sgd import truncated_sgd
from halfseen.solvers.truncation import NEEDS as TRUNCATION
from halfseen.solvers.truncation import truncation
from halfseen.solvers.truncation_psgd import NEEDS as TRUNCATION_PSGD
from halfseen.solvers.truncation_psgd import truncation_psgd

# Arguments of solvers that are no options: what is fitted, and who does the work.
_NO_OPTIONS = ("X", "missingness", "contains", "spread")


@dataclass(frozen=True)
class Method:
    """A solver, and what it needs."""

    run: Callable[..., Estimate]
    needs: Needs

    @property
    def name(self) -> str:
        """How it is asked for."""
        return self.run.__name__

    @property
    def arguments(self) -> list[str]:
        """Names of all that it takes."""
        return list(inspect.signature(self.run).parameters)

    def options(self, given: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
        """Return its arguments; raise for an option that was given and that it does not take.

        Those that are ``shared`` by methods are left out where it has no use for them.
        """
        allowed = self.arguments
        out = dict(given)
        if out["covariance"] is None and "covariance" not in allowed:
            del out["covariance"]
        for option in out:
            if option not in allowed or option == "spread":
                known = [p for p in allowed if p not in _NO_OPTIONS]
                known += [p for p in ("names", "transforms") if p not in known]
                close = difflib.get_close_matches(option, known, 1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise InputError(
                    f"method {self.name!r} does not take the option {option!r}; it takes "
                    f"{', '.join(known)}.{hint}"
                )
        return out | {name: value for name, value in shared.items() if name in allowed}


# The highest rung first: "auto" takes the first that what came allows.
LADDER = (
    Method(full, FULL),
    Method(pairwise, PAIRWISE),
    Method(truncation, TRUNCATION),
    Method(truncation_psgd, TRUNCATION_PSGD),
    Method(truncated_sgd, TRUNCATED_SGD),
    Method(missing_descent, MISSING_DESCENT),
)
METHODS = ("auto", *(method.name for method in LADDER))


def choose(
    name: str, table: TableKind, rule: Missingness | None, transformed: bool = False
) -> Method:
    """Return the method of this name, or the highest that fits; raise where it does not fit."""
    if name not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {name!r}.")
    if transformed and table is TableKind.MOMENTS:
        raise InputError(need_rows("transforms need"))
    # No rule is one that shows everything.
    kind = RuleKind.BY_COLUMN if rule is None else rule.kind
    offers = [method for method in LADDER if method.needs.met_by(table, kind)]
    if not offers:
        assert rule is not None
        raise InputError(_nothing_fits(table, rule))
    if name == "auto":
        if table is TableKind.MOMENTS and rule is None:
            # With no rule stated, who is hidden says nothing.
            offers = [method for method in offers if not method.needs.believes]
        return offers[0]
    asked = next(method for method in LADDER if method.name == name)
    if asked in offers:
        return asked
    if (table, kind) in asked.needs.refuses:
        raise InputError(asked.needs.refuses[table, kind])
    raise InputError(
        f"method {name!r} does not fit {_what_came(table, rule)}; choose "
        f"{' or '.join(method.name for method in offers)}."
    )


def _what_came(table: TableKind, rule: Missingness | None) -> str:
    if table is TableKind.VALUES:
        return "data without a rule" if rule is None else type(rule).__name__
    if table is TableKind.PIECES and rule is not None:
        return f"{table.value} under {type(rule).__name__}"
    return table.value


def _nothing_fits(table: TableKind, rule: Missingness) -> str:
    """Say why no method takes such a table under the rule."""
    name = type(rule).__name__
    if table is TableKind.INTERVALS:
        return f"{name} shows whole rows or none, so it does not go with IntervalData."
    if table is TableKind.PIECES:
        return (
            f"under {name} the table is needed in memory: pass an array, of some rows if need be."
        )
    by_row = rule.kind is RuleKind.BY_ROW
    return need_rows("limits that differ by row need" if by_row else f"{name} needs")
