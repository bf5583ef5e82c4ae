"""One-dimensional problems: the mean and variance of each column.

``truncated_marginals`` uses the seen values alone (convex); ``censored_marginals`` also uses how many
are hidden. Where these can lie on two sides its likelihood need not be convex (the paper's remark with
S = [2, 4]), and it starts from the former too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.errors import InputError, NotIdentifiedError
from halfseen.kernels.partition import LineTerms, line_partition
from halfseen.missingness.base import ColumnRule, ColumnwiseMissingness
from halfseen.missingness.resolve import (
    SetTable,
    one_interval_each,
    resolve,
    starts,
    union_of_intervals,
)
from halfseen.solvers.domain import SHARE_SLACK, Domain, least_variance, mean_reach
from halfseen.solvers.newton import Minimum, minimise

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# Beyond this many standard deviations a Gaussian has no mass that a double can see.
FAR = 9.0
# Spreads whose fourth powers, the units of variances of covariances, stay within the range of a double.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-70, 1e70
# Below this spread, relative to its mean, a column has fewer than three digits left.
RELATIVE_SPREAD = 1e-13
# A start for the censored problem is pulled this far towards the seen moments, off any edge.
PULL = 0.05


@dataclass(frozen=True)
class Column:
    """One column in units of its own seen mean and spread.

    Attributes
    ----------
    sets : SetTable
        The seen-set of each group of rows; one group unless limits differ by row.
    seen, hidden : arrays of shape (groups,)
        Number of seen values, and of cells hidden by the rule, in each group.
    group : integer array of shape (n,) or None
        Group of each row.
    ignorable : bool
        Whether hidden cells of the column are missing for reasons that the rule does not state.
    """

    sets: SetTable
    seen: Floats
    hidden: Floats
    group: Integers | None
    ignorable: bool


@dataclass(frozen=True)
class Columns:
    """Every column, with the location and spread of its seen values."""

    items: list[Column]
    mean: Floats
    spread: Floats
    share: Floats

    def __len__(self) -> int:
        return len(self.items)

    def take(self, some: Integers) -> Columns:
        """Return some of the columns."""
        return Columns(
            [self.items[i] for i in some], self.mean[some], self.spread[some], self.share[some]
        )

    @cached_property
    def stated(self) -> NDArray[np.bool_]:
        """Which columns have cells that the rule hides."""
        return np.array([column.hidden.sum() > 0 for column in self.items])


@dataclass(frozen=True)
class Marginals:
    """Mean and standard deviation of each column, and how each search ended."""

    mean: Floats
    deviation: Floats
    minimum: Minimum


def prepare_columns(
    moments: PairMoments,
    missingness: ColumnwiseMissingness,
    mask: NDArray[np.bool_] | None = None,
) -> Columns:
    """Check that each column can be learned from, and describe its sets for integration.

    ``mask`` says which cells are seen; it is needed only where limits differ by row.
    """
    counts = np.diag(moments.counts)
    check_columns(moments, counts)
    mean, spread = moments.means(), moments.deviations()
    check_spreads(moments.names, mean, spread)
    share = counts / moments.rows
    slack = SHARE_SLACK * share
    reach = (mean_reach(slack) + FAR) / np.sqrt(least_variance(slack))
    items = []
    for i in range(moments.width):
        rule = missingness.column_rule(i)
        if rule.seen_set is not None:
            resolved = resolve(rule.seen_set, mean[i], spread[i], reach[i])
            whole = resolved.is_whole_line
            hidden = 0.0 if whole else moments.rows - counts[i]
            items.append(
                Column(
                    resolved.standardised(mean[i], spread[i]).within(reach[i]),
                    np.array([counts[i]]),
                    np.array([hidden]),
                    None,
                    whole and counts[i] < moments.rows,
                )
            )
            continue
        if mask is None or rule.group is None:
            raise InputError(
                "limits that differ by row need the rows themselves: call fit with the table."
            )
        items.append(_column_by_groups(rule, mask[:, i], mean[i], spread[i], reach[i]))
    return Columns(items, mean, spread, share)


def _column_by_groups(
    rule: ColumnRule, mask: NDArray[np.bool_], mean: float, spread: float, reach: float
) -> Column:
    assert rule.group is not None
    groups = rule.lower.size
    seen = np.bincount(rule.group, weights=mask, minlength=groups).astype(float)
    hidden = np.bincount(rule.group, minlength=groups) - seen
    # A cell without any limit that is hidden all the same is missing for another reason.
    free = np.isinf(rule.lower) & np.isinf(rule.upper)
    ignorable = bool((hidden[free] > 0).any())
    hidden[free] = 0.0
    sets = one_interval_each(rule.lower, rule.upper).standardised(mean, spread).within(reach)
    return Column(sets, seen, hidden, rule.group, ignorable)


def check_columns(moments: PairMoments, counts: Floats) -> None:
    """Raise unless every column has two distinct seen values."""
    for i, name in enumerate(moments.names):
        if counts[i] == 0:
            raise NotIdentifiedError(
                f"column {name} is hidden in all of its {moments.rows} rows, so nothing can be "
                "learned about it. Leave it out."
            )
        if counts[i] < 2:
            raise NotIdentifiedError(
                f"column {name} is seen in {counts[i]:.0f} of {moments.rows} rows; at least 2 seen "
                "values are needed to learn a variance. Leave the column out or add rows."
            )
        if moments.smallest[i] == moments.largest[i]:
            raise NotIdentifiedError(
                f"column {name} is constant: each of its {counts[i]:.0f} seen values is "
                f"{moments.smallest[i]:.12g}. A Gaussian with variance zero has no density; leave "
                "the column out."
            )


def check_spreads(names: tuple[str, ...], mean: Floats, spread: Floats) -> None:
    """Raise unless every spread can be squared, and told from rounding."""
    for i, name in enumerate(names):
        if not SMALLEST_SPREAD < spread[i] < LARGEST_SPREAD:
            raise InputError(
                f"column {name} has a spread of {spread[i]:.3g}, whose powers are not numbers that a "
                "computer can hold. Change the unit of the column."
            )
        if spread[i] < RELATIVE_SPREAD * abs(mean[i]):
            raise NotIdentifiedError(
                f"column {name} varies by {spread[i]:.3g} around {mean[i]:.6g}, which is within the "
                "rounding of its values. Subtract a constant before they are rounded."
            )


def truncated_marginals(columns: Columns) -> Marginals:
    """Maximum likelihood for each column from its seen values alone (the 1-D calls of Alg. 1)."""
    problems = []
    for column in columns.items:
        used = np.flatnonzero(column.seen)
        problems.append((column.seen[used] / column.seen.sum(), column.sets.take(used)))
    return _solve(columns, _line_terms(problems), np.ones(len(columns)), None)


def censored_marginals(columns: Columns) -> Marginals:
    """Maximum likelihood for each column from its seen values and the count of hidden ones.

    Where each hidden cell lies in one interval the log-likelihood is concave in (μ/σ, 1/σ) (Burridge
    1981; Pratt 1981), so that inside the domain there is one top, and any start leads there. Elsewhere,
    and on the edge, there are two starts: what is seen, and the answer of ``truncated_marginals``.
    """
    terms, weight, one_top = _censored_terms(columns)
    plain = _solve(columns, terms, weight, None)
    again = np.flatnonzero(~one_top | plain.minimum.on_edge | ~plain.minimum.converged)
    if again.size == 0:
        return plain
    some = columns.take(again)
    terms, weight, _ = _censored_terms(some)
    near = _solve(some, terms, weight, truncated_marginals(some).minimum.theta).minimum
    # The lower objective wins; a tie goes to the start that the theory vouches for.
    wins = near.value <= plain.minimum.value[again] + 1e-12
    return _marginals(columns, plain.minimum.replaced(again[wins], near.take(wins)))


def _censored_terms(columns: Columns) -> tuple[LineTerms, Floats, NDArray[np.bool_]]:
    """Return the problems, the share of seen cells in each, and whether hidden sets are intervals."""
    line = union_of_intervals(np.array([-np.inf]), np.array([np.inf]))
    problems, weight = [], np.empty(len(columns))
    one_top = np.empty(len(columns), dtype=bool)
    for i, column in enumerate(columns.items):
        total = column.seen.sum() + column.hidden.sum()
        weight[i] = column.seen.sum() / total
        used = np.flatnonzero(column.hidden)
        hidden = column.sets.complement().take(used)
        weights = np.concatenate([[1.0], -column.hidden[used] / total])
        problems.append((weights, SetTable.join([line, hidden])))
        one_top[i] = hidden.is_one_interval_each
    return _line_terms(problems), weight, one_top


def _solve(columns: Columns, terms: LineTerms, weight: Floats, start: Floats | None) -> Marginals:
    domain = Domain.around(np.ones((len(columns), 1, 1)), columns.share)
    # In these units the seen values have mean 0 and variance 1, so t = (0, −½).
    statistic = np.stack([np.zeros(len(columns)), -0.5 * weight], axis=1)

    def objective(theta: Floats, problems: Integers) -> tuple[Floats, Floats, Floats]:
        f, g, H = line_partition(theta, terms, problems)
        t = statistic[problems]
        return f - (theta * t).sum(axis=1), g - t, H

    interior = domain.start()
    if start is None:
        minimum = minimise(objective, domain, interior)
    else:
        begin = (1.0 - PULL) * start + PULL * interior
        minimum = minimise(objective, domain, begin, stage=2)
    return _marginals(columns, minimum)


def _marginals(columns: Columns, minimum: Minimum) -> Marginals:
    nu, tau = minimum.theta[:, 0], minimum.theta[:, 1]
    return Marginals(
        columns.mean + columns.spread * nu / tau, columns.spread / np.sqrt(tau), minimum
    )


def _line_terms(problems: list[tuple[Floats, SetTable]]) -> LineTerms:
    """Pack the terms of each problem, weights and sets, into ragged arrays."""
    sets = SetTable.join([table for _, table in problems])
    return LineTerms(
        starts([weights.size for weights, _ in problems]),
        np.concatenate([weights for weights, _ in problems]),
        sets.start,
        sets.lower,
        sets.upper,
        sets.node_start,
        sets.node,
        sets.weight,
    )
