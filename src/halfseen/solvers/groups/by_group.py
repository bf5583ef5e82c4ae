"""What ``fit`` is asked for with ``by=``, and where groups cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halfseen.data.grouping import Grouping
from halfseen.data.moments import PairMoments
from halfseen.data.table import TableKind
from halfseen.errors import InputError, NotIdentifiedError, argument
from halfseen.missingness.base import RuleKind
from halfseen.solvers.full_information.parameter_options import ROWS_PER_COLUMN
from halfseen.solvers.prepared_table import PreparedTable
from halfseen.solvers.result import Estimate

# Options that do not go with groups, as people know them.
NOT_WITH_GROUPS = (
    "loss", "degrees_of_freedom", "correlation", "mean", "shrinkage", "penalty", "start",
    "checkpoint", "every", "resume",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ByGroup:
    """A fit of the whole table, and which group each of its rows is of."""

    estimate: Estimate
    grouping: Grouping


def check_options(method: str, options: Mapping[str, Any], in_pieces: bool) -> None:
    """Raise where groups cannot be compared with what was asked for."""
    by = argument("by")
    if in_pieces:
        raise InputError(
            f"{by} needs the table in memory, and this one is read in pieces. Fit some of its rows, or "
            "leave out what reads it in pieces."
        )
    if method not in ("auto", "full"):
        raise InputError(
            f"{by} compares likelihoods, which needs {argument('method', 'full')}; got {method!r}."
        )
    covariance = options.get("covariance")
    if not (covariance is None or (isinstance(covariance, str) and covariance == "free")):
        raise InputError(f"{by} learns covariances, so they must be free: leave covariance out.")
    if options.get("errors", "normal") != "normal":
        raise InputError(
            f"{by} is for normal errors: leave {argument('errors', 't')} out, or fit each group by "
            "itself."
        )
    given = [name for name in NOT_WITH_GROUPS if options.get(name) is not None]
    if given:
        raise InputError(f"{argument(given[0])} does not go with {by}: leave one of them out.")


def check_table(grouping: Grouping, data: PreparedTable) -> None:
    """Raise where there are too few rows for the number of groups, or rows are not in the table."""
    if data.kind is TableKind.MOMENTS:
        raise InputError(f"{argument('by')} needs the rows themselves, but moments were passed.")
    if data.rule.kind is RuleKind.WHOLE_ROWS:
        raise InputError(
            f"{argument('by')} compares rows that are in the table, and under RowTruncation others are "
            "not; fit each group by itself."
        )
    assert not isinstance(data.table, PairMoments)
    rows, columns = data.table.values.shape
    if len(grouping.codes) != rows:
        raise InputError(
            f"{argument('by')} has {len(grouping.codes)} labels, but the table {rows} rows."
        )
    left, least = rows - len(grouping), max(ROWS_PER_COLUMN * columns, 2)
    if left < least:
        raise NotIdentifiedError(
            f"{rows} rows in {len(grouping)} groups leave {left} to learn how {columns} "
            f"column{'s' * (columns != 1)} vary within a group; at least {least} are needed. Leave "
            "columns out, join groups, or add rows."
        )
