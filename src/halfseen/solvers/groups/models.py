"""The three models of rows in groups, each at the top of its likelihood.

    equal               every group has the same mean and covariance
    equal covariances   y = μ_g + e with e ~ N(0, Σ): a regression on the group
    own                 every group has a mean and a covariance of its own

All work on one problem, in the units of the whole table, so that likelihoods may be compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.parallel import single_blas_thread
from halfseen.solvers.full_information.learn import Climb, Settings, climb
from halfseen.solvers.full_information.m_step import Free, MStep, singular
from halfseen.solvers.full_information.parameter_options import ROWS_PER_COLUMN
from halfseen.solvers.full_information.problem import Problem
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.inference.likelihood import row_log_ratios
from halfseen.solvers.regression.facts import Tally, tally
from halfseen.solvers.regression.layout import Equations, Regressors, with_covariates
from halfseen.solvers.regression.learn_regression import (
    Top,
    covariance_of,
    no_top,
    top_from,
    top_of,
)
from halfseen.solvers.regression.model import Setup
from halfseen.solvers.regression.places import Place, split
from halfseen.solvers.regression.step import RegressionStep

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]


class Law(NamedTuple):
    """Mean and covariance, in the units of the problem."""

    mean: Floats
    covariance: Floats


class Ratio(NamedTuple):
    """How much likelier a larger model is, in log-likelihood, and the variance of the estimate."""

    value: float
    variance: float


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows and their groups.

    Attributes
    ----------
    problem : Problem
    codes : integer array of shape (n,)
    count : int
        How many groups there are.
    """

    problem: Problem
    codes: Codes
    count: int

    @cached_property
    def sizes(self) -> Codes:
        """Rows of each group."""
        return np.bincount(self.codes, minlength=self.count)

    @cached_property
    def seen(self) -> Codes:
        """Seen values of each group and column."""
        return self._sums(~self.problem.hidden)

    @cached_property
    def blank(self) -> Mask:
        """Columns of which nothing at all is said in a group."""
        holes = self.problem.holes
        free = self.problem.hidden & holes.whole_lines[np.maximum(holes.index, 0)]
        if holes.inequalities is not None:
            free[:, holes.inequalities.owner] = False
        return np.asarray(self._sums(free) == self.sizes[:, None])

    @cached_property
    def endless(self) -> Mask:
        """Columns of which a group has no value, and a mean that is as likely the further it goes.

        All its cells are hidden on the same side, so that the likelihood tends to what it were
        if these cells said nothing.
        """
        sets, index = self.problem.holes.sets, self.problem.holes.index
        out = np.zeros(self.blank.shape, dtype=bool)
        owner = np.repeat(np.arange(len(sets)), np.diff(sets.start))
        for ends in (np.isneginf(sets.lower), np.isposinf(sets.upper)):
            open_end = np.bincount(owner, ends, minlength=len(sets)) > 0.0
            free = self.problem.hidden & open_end[np.maximum(index, 0)]
            out |= self._sums(free) == self.sizes[:, None]
        if self.problem.holes.inequalities is not None:
            out[:, self.problem.holes.inequalities.owner] = False
        return out | self.blank

    @cached_property
    def opened(self) -> Problem:
        """The problem in which cells that only say how far away a mean is say nothing."""
        where = self.endless[self.codes] & self.problem.hidden
        if not where.any():
            return self.problem
        return replace(self.problem, holes=self.problem.holes.with_missing_at_random(where))

    def _sums(self, cells: Mask) -> Codes:
        out = np.zeros((self.count, cells.shape[1]), dtype=np.intp)
        np.add.at(out, self.codes, cells)
        return out

    def rows(self, group: int) -> Codes:
        """Return the rows of a group."""
        return np.flatnonzero(self.codes == group)

    def only(self, groups: list[int]) -> GroupedRows:
        """Return the rows of some groups."""
        place = np.full(self.count, -1)
        place[groups] = np.arange(len(groups))
        codes = place[self.codes]
        kept = np.flatnonzero(codes >= 0)
        return GroupedRows(self.problem.take(kept), codes[kept], len(groups))

    def regrouped(self, order: Codes) -> GroupedRows:
        """Return the same rows with their groups in another order."""
        return GroupedRows(self.problem, self.codes[order], self.count)

    def enough(self) -> Mask:
        """Say which groups have rows enough for a covariance of their own."""
        d = self.problem.shape[1]
        rows = self.sizes >= max(ROWS_PER_COLUMN * d, d + 2)
        return np.asarray(rows & (self.seen > d).all(axis=1))


def climb_equal(rows: GroupedRows, settings: Settings) -> Law:
    """Learn one law for all rows, starting from columns by themselves."""
    d = rows.problem.shape[1]
    return _climbed(rows.problem, Law(np.zeros(d), np.eye(d)), settings)[0]


def climb_own(
    rows: GroupedRows, group: int, start: Law, settings: Settings
) -> tuple[Law, Climb] | None:
    """Learn the law of one group; None where its likelihood has no top."""
    law, found = _climbed(rows.problem.take(rows.rows(group)), start, settings)
    return None if singular(law.covariance) else (law, found)


def _climbed(problem: Problem, start: Law, settings: Settings) -> tuple[Law, Climb]:
    held, step = HeldRows(problem, settings.n_jobs), MStep(Free())
    with single_blas_thread():
        found = climb(held, step, step.admit(*start), settings)
    return Law(found.mean, found.covariance), found


@dataclass(frozen=True, eq=False)
class EqualCovariances:
    """Groups with means of their own and one covariance, in the units of the problem.

    Attributes
    ----------
    means : array of shape (groups, d)
        NaN where nothing says where it is.
    covariance : array of shape (d, d)
    top : Top
        The regression that it is.
    """

    means: Floats
    covariance: Floats
    top: Top

    def law(self, group: int) -> Law:
        """Return the law of a group; means that are not known are put in the middle of the table."""
        return Law(np.nan_to_num(self.means[group]), self.covariance)

    def covariance_of_means(self) -> Floats | None:
        """Covariance of the estimates of all means, group by group; None where there is no top."""
        if self.top.known is None:
            return None
        G, d = self.means.shape
        free = self.top.setup.equations.free
        count = int(free.sum())
        whole = covariance_of(self.top)
        assert whole is not None
        own = whole[:count, :count]
        out = np.full((d, G, d, G), np.nan)
        at = np.nonzero(free)
        out[at[0][:, None], at[1][:, None], at[0], at[1]] = own
        return np.asarray(out.transpose(1, 0, 3, 2).reshape(G * d, G * d))


def fit_equal_covariances(
    rows: GroupedRows, start: Law, settings: Settings, several: bool = True
) -> EqualCovariances | None:
    """Learn means and the one covariance; None where the likelihood has no top.

    Without ``several`` no other starts are tried, as is enough for tables that were drawn anew.
    """
    setup = _setup(rows, settings.n_jobs)
    d = rows.problem.shape[1]
    p = setup.rows.overview.shape[1] - d
    first = Place(np.column_stack([start.mean, np.zeros((d, p))]), start.covariance)
    with single_blas_thread():
        place = setup.step.admit(*first.joined())
        if several:
            one = _has_one_top(setup)
            top = top_from(setup, settings, place) if one else top_of(setup, settings, None)
        else:
            top = Top(setup, climb(setup.rows, setup.step, place, settings), None, None, {}, 0)
        if no_top(setup, top.climb):
            return None
    at = split(top.climb.mean, top.climb.covariance, d)
    means = setup.equations.coefficients(at).T
    means[rows.endless] = np.nan
    return EqualCovariances(means, at.residual, top)


def _has_one_top(setup: Setup) -> bool:
    """Whether one start will do: no others would be tried."""
    about = setup.rows.overview
    return not about.bound and not about.several.size


def _setup(rows: GroupedRows, n_jobs: int | None) -> Setup:
    """Bring groups to the columns that the engine of regression wants."""
    problem, d = rows.opened, rows.problem.shape[1]
    regressors = Regressors.of(np.eye(rows.count)[rows.codes])
    fixed = np.where(rows.endless.T, 0.0, np.nan)
    mask = np.ones(fixed.shape, dtype=bool)
    equations = Equations(regressors.T, mask, fixed, None, np.zeros(d), np.ones(d))
    held = HeldRows(with_covariates(problem, regressors.X, regressors.T, d), n_jobs)
    step = RegressionStep.of(equations.terms, Free())
    counted: Tally = held.look(tally, d)
    seen = (~problem.hidden).sum(axis=0)
    return Setup(held, equations, step, seen, counted.together, counted.squares, {})


def log_ratio(
    rows: GroupedRows, larger: list[Law], smaller: list[Law], opened: tuple[bool, bool], seed: int
) -> Ratio:
    """How much likelier groups are under some laws than under others.

    ``opened`` says for either model whether means go as far as they like, where nothing stops them.
    """
    one, other = (rows.opened.holes if yes else rows.problem.holes for yes in opened)
    value = variance = 0.0
    for g in range(rows.count):
        own = rows.rows(g)
        above, below = ((*laws[g], np.inf) for laws in (larger, smaller))
        values, variances = row_log_ratios(
            rows.problem.Y[own], one.take(own), above, below, seed, None, other.take(own)
        )
        value, variance = value + float(values.sum()), variance + float(variances.sum())
    return Ratio(value, variance)
