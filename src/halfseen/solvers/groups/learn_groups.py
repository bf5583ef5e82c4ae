"""From a fit of the whole table to its groups: the models, and what each group can say by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.grouping import Grouping
from halfseen.data.interval_data import IntervalData
from halfseen.data.table import Table, frame_kind
from halfseen.errors import NotIdentifiedError
from halfseen.gaussian import Gaussian
from halfseen.parallel import single_blas_thread
from halfseen.solvers.full_information.full import ACCURACY, MOST_STEPS
from halfseen.solvers.full_information.learn import Settings, learn
from halfseen.solvers.full_information.m_step import Free, MStep, singular
from halfseen.solvers.full_information.parameter_options import ROWS_PER_COLUMN, m_step_for
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.groups.by_group import ByGroup
from halfseen.solvers.groups.differences import Family
from halfseen.solvers.groups.models import (
    EqualCovariances,
    GroupedRows,
    Law,
    climb_equal,
    fit_equal_covariances,
)
from halfseen.solvers.groups.tests import (
    BOTH,
    COVARIANCES,
    MEANS,
    Compared,
    GroupTest,
    permuted_tests,
    ratio_tests,
)
from halfseen.solvers.inference.fitted_table import fitted_problem
from halfseen.solvers.result import Estimate, Note, Source, Status, name_some

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups under all models.

    Attributes
    ----------
    pooled : Estimate
        Every group having the same law.
    grouping : Grouping
    rows : GroupedRows
    common : EqualCovariances
        One covariance, and means of their own; in the units of the problem.
    fits : dict
        By label, the estimate of each group that has one.
    borrowed : dict
        By label, why a group has no covariance of its own.
    alone : list of int
        Groups that have covariances of their own.
    settings : Settings
    """

    pooled: Estimate
    grouping: Grouping
    rows: GroupedRows
    common: EqualCovariances
    fits: dict[Any, Estimate]
    borrowed: dict[Any, str]
    alone: list[int]
    settings: Settings

    @cached_property
    def means(self) -> Floats:
        """Mean of each group and column with equal covariances, on the scale of the model."""
        problem = self.rows.problem
        return np.asarray(problem.centre + problem.scale * self.common.means)

    @property
    def covariance(self) -> Floats:
        """The one covariance."""
        scale = self.rows.problem.scale
        return np.asarray(self.common.covariance * np.outer(scale, scale))

    @cached_property
    def family(self) -> Family | None:
        """Means and how well they are known, for few rows; None where the likelihood has no top.

        Errors are those of maximum likelihood times √(n/(n − groups)), with n − groups degrees of
        freedom, as least squares has them; n counts the rows that say something of a column.
        """
        joint = self.common.covariance_of_means()
        if joint is None:
            return None
        problem, G = self.rows.problem, self.rows.count
        holes = problem.holes
        nothing = problem.hidden & holes.whole_lines[np.maximum(holes.index, 0)]
        if holes.inequalities is not None:
            nothing[:, holes.inequalities.owner] = False
        n = (~nothing).sum(axis=0)
        left = np.maximum(n - G, 1)
        unit = np.tile(problem.scale * np.sqrt(n / left), G)
        return Family(self.means, joint * np.outer(unit, unit), float(left.min()))

    @cached_property
    def compared(self) -> tuple[Compared, Compared | None]:
        """All groups, and those that have covariances of their own; None where there are not two."""
        place = self.rows.problem.from_units(
            self.pooled.gaussian.mean, self.pooled.gaussian.covariance
        )
        whole = Compared(self.rows, self.grouping.labels, Law(*place), self.common, [])
        if len(self.alone) < 2:
            return whole, None
        labels = tuple(self.grouping.labels[g] for g in self.alone)
        own = []
        for label in labels:
            g = self.fits[label].gaussian
            own.append(Law(*self.rows.problem.from_units(g.mean, g.covariance)))
        if len(self.alone) == self.rows.count:
            return whole, replace(whole, own=own)
        rows = self.rows.only(self.alone)
        quick = replace(self.settings, standard_errors=False)
        equal = climb_equal(rows, quick)
        common = fit_equal_covariances(rows, equal, quick)
        return whole, None if common is None else Compared(rows, labels, equal, common, own)

    def tests(self, replicates: int, seed: int) -> list[GroupTest]:
        """Test equal means of all groups, and the rest of those with covariances of their own."""
        whole, alone = self.compared
        asked: list[tuple[Compared, tuple[str, ...]]] = [(whole, (MEANS,))]
        if alone is not None:
            asked.append((alone, (COVARIANCES, BOTH)))
        out = []
        quick = replace(self.settings, standard_errors=False, progress=False)
        for compared, hypotheses in asked:
            tests = ratio_tests(compared, hypotheses, seed)
            if replicates:
                tests = permuted_tests(tests, compared, replicates, seed, quick)
            out += tests
        return out


def learn_groups(by: ByGroup) -> Groups:
    """Learn all models of the groups of a table that was fitted as a whole."""
    pooled, grouping = by.estimate, by.grouping
    source = pooled.source
    assert source is not None
    problem = fitted_problem(source)
    rows = GroupedRows(problem, grouping.codes, len(grouping))
    settings = Settings(ACCURACY, MOST_STEPS, True, source.seed, False, source.n_jobs)
    start = Law(*problem.from_units(pooled.gaussian.mean, pooled.gaussian.covariance))
    common = fit_equal_covariances(rows, start, settings)
    if common is None:
        raise NotIdentifiedError(
            "within groups the columns are combinations of each other, or do not vary, so that the "
            "likelihood has no top. Leave such columns out, join groups, or add rows."
        )
    fits: dict[Any, Estimate] = {}
    borrowed: dict[Any, str] = {}
    alone: list[int] = []
    for g, label in enumerate(grouping.labels):
        why = _too_small(rows, g, problem.names)
        found = None if why else _own_fit(pooled, rows, g, common, settings)
        if found is not None:
            alone.append(g)
        else:
            borrowed[label] = why or "its columns are combinations of each other"
            if rows.endless[g].any():
                continue
            found = _borrowing_fit(pooled, rows, g, common, settings, borrowed[label])
        fits[label] = found
    return Groups(pooled, grouping, rows, common, fits, borrowed, alone, settings)


def _too_small(rows: GroupedRows, g: int, names: tuple[str, ...]) -> str:
    """Say why a group has no covariance of its own; nothing where it has."""
    if rows.enough()[g]:
        return ""
    d, size = len(names), int(rows.sizes[g])
    never = [names[j] for j in np.flatnonzero(rows.seen[g] == 0)]
    if never:
        return f"no value of {name_some(never)} is seen"
    few = [f"{names[j]} ({rows.seen[g, j]})" for j in np.flatnonzero(rows.seen[g] <= d)]
    if size >= max(ROWS_PER_COLUMN * d, d + 2) and few:
        return f"few values are seen of {name_some(few)}"
    return f"{size} row{'s' * (size != 1)} for {d} column{'s' * (d != 1)}"


def _own_fit(
    pooled: Estimate, rows: GroupedRows, g: int, common: EqualCovariances, settings: Settings
) -> Estimate | None:
    """Learn the law of one group; None where its likelihood has no top."""
    own = rows.rows(g)
    held = HeldRows(rows.problem.take(own), settings.n_jobs)
    step = MStep(Free())
    with single_blas_thread():
        found = learn(
            held, step, step.admit(*common.law(g)), settings, [], _source_of(pooled, own, {})
        )
    if singular(rows.problem.from_units(found.gaussian.mean, found.gaussian.covariance)[1]):
        return None
    return _like(found, pooled)


def _borrowing_fit(
    pooled: Estimate,
    rows: GroupedRows,
    g: int,
    common: EqualCovariances,
    settings: Settings,
    why: str,
) -> Estimate:
    """Learn the mean of a group with the covariance of all."""
    own = rows.rows(g)
    law = Gaussian(*rows.problem.to_units(*common.law(g)))
    held = HeldRows(rows.problem.take(own), settings.n_jobs)
    step, _ = m_step_for(held.overview, covariance=law.covariance)
    note = Note(
        Status.REGULARISED,
        f"This group has no covariance of its own ({why}): it borrows that of all groups.",
    )
    source = _source_of(pooled, own, {"covariance": law.covariance})
    with single_blas_thread():
        found = learn(held, step, step.admit(*common.law(g)), settings, [note], source)
    return _like(found, pooled)


def _like(found: Estimate, pooled: Estimate) -> Estimate:
    """Put the estimate of a group on the scales of the whole table; their powers count as known."""
    return replace(found, transforms=pooled.transforms, frame=pooled.frame)


def _source_of(pooled: Estimate, own: NDArray[np.intp], options: Mapping[str, Any]) -> Source:
    """Return what a fit of some rows remembers: their part of the table and of the rule."""
    source = pooled.source
    assert source is not None
    mask = source.missing_at_random
    rule = source.missingness
    stated = source.original_rule
    return replace(
        source,
        X=_take(source.X, own),
        missingness=None if rule is None else rule.for_rows(own, pooled.rows),
        missing_at_random=None if mask is None else np.asarray(mask)[own],
        original=None if source.original is None else _take(source.original, own),
        original_rule=None
        if stated is None
        else stated.for_columns(pooled.names).for_rows(own, pooled.rows),
        options=dict(options),
    )


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of a table."""
    if isinstance(X, IntervalData):
        return X.take(rows)
    if isinstance(X, Table):
        return Table(X.values[rows], X.names)
    kind = frame_kind(X)
    if kind == "pandas":
        return X.iloc[rows]
    return X.take(rows) if kind == "pyarrow" else X[rows.tolist()]
