"""Rows at fitted parameters, seen and simulated, and the law of sums over them.

A check adds up something over rows, g = Σ g(row; θ̂), of which every term has mean zero at the true
parameters. They were estimated from the same rows, which takes away what the terms have in common with
the scores s of the rows: the sum varies as Σ (g − C I⁻¹ s) does, where C = E g sᵀ and I = E s sᵀ. So
its covariance is n (E g gᵀ − C I⁻¹ Cᵀ), with n I the inverse of the covariance of the estimates. The
averages are those over rows drawn from the fit, hidden as the real ones were. Their complete values z
are known, and C = E g s(z)ᵀ with the score of complete rows, which is far simpler: s is its conditional
mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.interval_data import IntervalData
from halfseen.data.rounding import as_recorded
from halfseen.data.table import Table, frame_kind, read_table, with_names
from halfseen.diagnostics.checked_table import column_rule, evenly, tested_rows
from halfseen.errors import HalfseenError, InputError, argument
from halfseen.gaussian import Gaussian
from halfseen.missingness.holes import SEEN, Holes
from halfseen.missingness.resolve import SetTable
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import everything
from halfseen.seeds import Purpose, keyed_generator
from halfseen.simulate import simulate
from halfseen.solvers.full_information.expectation import (
    Parameters,
    Sampling,
    at_random,
    drawn_rows,
    expect,
    lay_out,
)
from halfseen.solvers.full_information.problem import Problem, standardise
from halfseen.solvers.inference.fitted_table import original_table, read_source
from halfseen.solvers.result import Estimate, Status
from halfseen.theta import stands_for, triangle, unpack

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Simulated rows: the variance of a sum is then known to some percent.
MOST_SIMULATED, FEWEST_SIMULATED = 2000, 500
# Rows of the table that are looked at, at least; and what all simulated ones may cost, counted in
# columns times squares of confined cells (and one more) in a row.
FEWEST_TESTED, MOST_WORK = 1000, 2e5
# Points for each row that is sampled.
POINTS = 32
# Largest step along a parameter, in units of the columns, for derivatives of log-likelihoods.
STEP = 1e-3
# Share of the variance of terms that their sum has at least.
LEAST_LEFT = 0.05
HARDLY_DETERMINED = (
    "the fit is hardly determined by the data, so that its completed rows prove nothing"
)
# Stream of random numbers, beside those of ``normality``.
SIMULATING = 8


@dataclass(frozen=True)
class FittedRows:
    """Rows in standardised units, with what would confine each cell if it were hidden.

    Attributes
    ----------
    Y : array of shape (n, d)
        NaN where hidden.
    every : Holes
        Of columns that are hidden by their own value, those of every cell; of others, those there are.
    hidden, blank : boolean arrays of shape (n, d)
        Cells that are hidden at all, and for no modelled reason.
    """

    Y: Floats
    every: Holes
    hidden: Mask
    blank: Mask

    @classmethod
    def of(cls, problem: Problem, values: Floats, blank: Mask, own: Mask) -> FittedRows:
        """Read values in units of the table; some columns are hidden by their ``own`` value alone."""
        rule = problem.missingness or SelfCensoring(everything)
        hidden = np.isnan(values)
        bare = np.where(own, np.nan, values)
        mask = blank if blank.any() else None
        all_hidden = standardise(bare, problem.names, rule, mask, problem.centre, problem.scale)
        Y = (values - problem.centre) / problem.scale
        return cls(np.ascontiguousarray(Y), all_hidden.holes, hidden, blank)

    @classmethod
    def stacked(cls, parts: list[FittedRows]) -> FittedRows:
        """Put tables under the same rule below each other."""
        sizes = np.cumsum([0, *(len(part.every.sets) for part in parts)])
        index = [
            np.where(part.every.index == SEEN, SEEN, part.every.index + first).astype(np.int32)
            for part, first in zip(parts, sizes, strict=False)
        ]
        bound = parts[0].every.inequalities
        if bound is not None:
            signs = [part.every.inequalities.sign for part in parts]  # type: ignore[union-attr]
            bound = replace(bound, sign=np.concatenate(signs))
        every = Holes(
            np.concatenate(index),
            SetTable.join([part.every.sets for part in parts]),
            np.concatenate([part.every.set_column for part in parts]),
            bound,
        )
        arrays = zip(*((part.Y, part.hidden, part.blank) for part in parts), strict=True)
        Y, hidden, blank = (np.concatenate(array) for array in arrays)
        return cls(Y, every, hidden, blank)

    @property
    def holes(self) -> Holes:
        """What hides in the cells that are hidden."""
        return self._with(self.hidden)

    def hiding(self, column: int) -> Holes:
        """Return the holes if the cells of a column were all hidden by the rule."""
        hidden = self.hidden.copy()
        hidden[:, column] = True
        return self._with(hidden)

    def losing(self, column: int) -> Holes:
        """Return the holes if the cells of a column were all missing at random."""
        lost = np.zeros(self.hidden.shape, dtype=bool)
        lost[:, column] = True
        return self.holes.with_missing_at_random(lost)

    def ruled(self, column: int) -> Mask:
        """Return which cells of a column the rule can hide."""
        whole = self.every.whole_lines[np.maximum(self.every.index[:, column], 0)]
        return np.asarray(~whole & (self.every.index[:, column] != SEEN))

    def _with(self, hidden: Mask) -> Holes:
        return replace(self.every, index=np.where(hidden, self.every.index, np.int32(SEEN)))

    def take(self, chosen: NDArray[np.intp]) -> FittedRows:
        """Return some of the rows."""
        if chosen.size == len(self.Y):
            return self
        every = self.every.take(chosen)
        return FittedRows(self.Y[chosen], every, self.hidden[chosen], self.blank[chosen])

    def log_likelihoods(self, holes: Holes, at: Parameters, order: Parameters) -> Floats:
        """Log-likelihood of each row with these holes, its cells in the order of some parameters."""
        layout, sampling = lay_out(holes), Sampling(POINTS, 0, 0, Purpose.LIKELIHOOD, order)
        return np.concatenate(
            [expect(self.Y, b, layout.confines, at, sampling)[1] for b in layout.blocks]
        )

    def draws(self, at: Parameters, count: int, seed: int, number: int) -> Floats:
        """Complete the rows so many times: (count, rows, d)."""
        layout, sampling = lay_out(self.holes), Sampling(POINTS, seed, number, Purpose.IMPUTATION)
        return np.concatenate(
            [drawn_rows(self.Y, b, layout.confines, at, sampling, count) for b in layout.blocks],
            axis=1,
        )


@dataclass(frozen=True)
class Ground:
    """What checks at fitted parameters stand on.

    Attributes
    ----------
    names : tuple of str
    own : boolean array of shape (d,)
        Columns that are hidden by their own value alone.
    rows : int
        Of the table that was fitted.
    seen, simulated : FittedRows
        Rows of the table that are looked at, and rows drawn from the fit.
    complete : array of shape (m, d)
        The simulated rows before anything was hidden, about the mean.
    correlation : array of shape (d, d)
        In the units of the rows, which have mean zero and unit variances.
    errors : array of shape (q, q)
        I⁻¹: covariance of the estimates of (μ, Σ_ij for i >= j) in these units, times the rows.
    """

    names: tuple[str, ...]
    own: Mask
    rows: int
    seen: FittedRows
    simulated: FittedRows
    complete: Floats
    correlation: Floats
    errors: Floats

    @cached_property
    def at(self) -> Parameters:
        """The fitted parameters."""
        return Parameters.of(np.zeros(len(self.names)), self.correlation)

    def covariance(self, terms: Floats) -> Floats:
        """Return the covariance of the sum of terms over the rows that are looked at."""
        scores = complete_scores(self.complete, self.at.precision)
        # C from every other row, and from the rest: independent estimates, of which a product has no
        # bias, however many parameters there are.
        one, other = (terms[k::2].T @ scores[k::2] / len(terms[k::2]) for k in (0, 1))
        n = len(self.seen.Y)
        # Where only some of the rows are looked at, the estimates know less of them.
        taken = (n / self.rows) * (one @ self.errors @ other.T)
        whole = terms.T @ terms / len(terms)
        # What sampling leaves of a variance is not to be less than nothing.
        low = LEAST_LEFT * np.diag(whole) - np.diag(whole - taken)
        return np.asarray(n * (whole - 0.5 * (taken + taken.T) + np.diag(np.maximum(low, 0.0))))

    def residuals(self, terms: Floats) -> Floats:
        """Return terms of the simulated rows less what they have in common with scores: g − C I⁻¹ s.

        Their variance has no error of a difference of large numbers, where estimates explain most of the
        terms. The scores of rows in the directions that matter are differences of log-likelihoods.
        """
        holes, d = self.simulated.holes, len(self.names)
        left = terms.copy()
        scores = complete_scores(self.complete, self.at.precision)
        slope = terms.T @ scores / len(terms) @ self.errors
        for k, along in enumerate(slope):
            step = STEP / max(float(np.abs(along).max()), np.finfo(float).tiny)
            mean, change = unpack(step * along, d)
            up, down = (
                self.simulated.log_likelihoods(
                    holes, Parameters.of(sign * mean, self.correlation + sign * change), self.at
                )
                for sign in (1.0, -1.0)
            )
            left[:, k] -= (up - down) / (2.0 * step)
        return left


def complete_scores(Z: Floats, P: Floats) -> Floats:
    """Score of complete rows, about their mean, in (μ, Σ_ij for i >= j).

    P z, and ½ (P z zᵀ P − P), of which an entry off the diagonal stands for two.
    """
    W = Z @ P
    i, j = triangle(len(P))
    return np.hstack([W, 0.5 * stands_for(len(P)) * (W[:, i] * W[:, j] - P[i, j])])


@dataclass(frozen=True)
class FittedTable:
    """A fit, and the table that it is of, which is read when it is first needed.

    Attributes
    ----------
    fit : Estimate
    given : tuple of (X, missingness, missing_at_random), or None for the table of the fit
    """

    fit: Estimate
    given: Any = None

    @cached_property
    def problem(self) -> Problem:
        """The table in the units of the fit."""
        return read_source(self.fit, *(self.given or (None,)))

    @property
    def why_not(self) -> str:
        """Why rows at the fitted parameters prove nothing; empty where they do."""
        fit = self.fit
        if fit.status.severity >= Status.WEAKLY_IDENTIFIED.severity:
            return HARDLY_DETERMINED
        if fit.method != "full" or fit.uncertainty is None or fit.uncertainty.parameters is None:
            return (
                'it needs a fit of method="full" with standard errors of all parameters, and this one '
                f"is by {fit.method!r}"
            )
        if not np.isinf(fit.degrees):
            return f"it needs a fit with normal errors, and this one has {argument('errors', 't')}"
        if fit.loss is not None:
            return "the fit has losses in its model, and fit.loss says what is known of them"
        table = self.given[0] if self.given else None if fit.source is None else fit.source.X
        if isinstance(table, IntervalData) and not table.is_plain:
            return (
                "cells tell their own limits, and nothing says what seen values were compared with"
            )
        return ""


def with_fit(
    X: Any,
    missingness: Any,
    at_random: Any,
    transforms: Any,
    fit: Estimate | None,
    names: Sequence[str] | None,
) -> tuple[Any, Any, Any, Any, FittedTable | None]:
    """Take table, rule and transforms from a fit, where it stands for them."""
    if not isinstance(X, Estimate):
        if fit is not None and not isinstance(fit, Estimate):
            raise InputError(f"fit must be what halfseen.fit returned; got {fit!r}.")
        if names is not None:
            X = with_names(X, names)
        elif fit is not None:
            X = _named(X, fit)
        X, missingness, at_random = as_recorded(X, missingness, at_random)
        if fit is None:
            return X, missingness, at_random, transforms, None
        transforms = fit.transforms if transforms is None else transforms
        given = X, missingness, at_random
        return *given, transforms, FittedTable(fit, given)
    if names is not None:
        raise InputError("a fit brings the names of its columns; names= goes with a table.")
    if fit is not None and fit is not X:
        raise InputError("two fits were given, one as X and another as fit=. Pass one of them.")
    fit, source = X, X.source
    if source is None or source.X is None:
        raise InputError("this fit does not hold its table; pass the table, and fit=.")
    own = missingness is None and at_random is None
    if missingness is None:
        missingness = source.stated_rule
    at_random = source.missing_at_random if at_random is None else at_random
    transforms = fit.transforms if transforms is None else transforms
    given = original_table(fit), missingness, at_random
    return *given, transforms, FittedTable(fit, None if own else given)


def _named(X: Any, fit: Estimate) -> Any:
    """Read a table without names as one with those of the fit."""
    if isinstance(X, IntervalData) or frame_kind(X) is not None:
        return X
    table = read_table(X)
    fits = table.values.shape[1] == len(fit.names)
    return Table(table.values, fit.names) if fits else table


def stand_on(fitted: FittedTable, seed: int) -> Ground | str:
    """Return the rows at fitted parameters, beside simulated ones; a sentence where that cannot be."""
    fit = fitted.fit
    if fitted.why_not:
        return fitted.why_not
    try:
        problem = fitted.problem
    except (HalfseenError, np.linalg.LinAlgError) as error:
        return f"the table could not be read as that of the fit: {error}"
    if problem.shape[0] != fit.rows:
        return f"the fit is of another table, with {fit.rows} rows"
    errors = None if fit.uncertainty is None else fit.uncertainty.parameters
    assert errors is not None
    n, d = problem.shape
    by_column = [column_rule(problem.missingness, j) for j in range(d)]
    own = np.array([one is not None and one.seen_set != everything for one in by_column])
    blank = at_random(problem.holes)
    values = np.where(problem.hidden, np.nan, problem.centre + problem.scale * problem.Y)
    confined = (problem.hidden & ~blank).sum() / n
    work = d * (1.0 + confined) ** 2
    affordable = int(max(FEWEST_TESTED, 4.0 * MOST_WORK / work))
    rows = evenly(n, min(tested_rows(n).size, affordable))
    seen = FittedRows.of(problem, values, blank, own).take(rows)
    count = int(np.clip(MOST_WORK / work, FEWEST_SIMULATED, MOST_SIMULATED))
    simulated, complete = _simulated(problem, fit.gaussian, blank, own, rows, count, seed)
    correlation = problem.from_units(fit.gaussian.mean, fit.gaussian.covariance)[1]
    units = problem.overview.units
    errors = n * errors / np.outer(units, units)
    return Ground(problem.names, own, n, seen, simulated, complete, correlation, errors)


def _simulated(
    problem: Problem,
    g: Gaussian,
    blank: Mask,
    own: Mask,
    rows: NDArray[np.intp],
    count: int,
    seed: int,
) -> tuple[FittedRows, Floats]:
    """Draw at least so many rows from a Gaussian, and hide them as those of the table."""
    rule = problem.missingness or SelfCensoring(everything)
    parts, complete = [], []
    for k in range(-(-count // rows.size)):
        drawn = int(keyed_generator(seed, Purpose.DIAGNOSE, SIMULATING, k).integers(2**63))
        X, Y = simulate(g, rule, len(blank), drawn, return_complete=True)
        X[blank] = np.nan
        parts.append(FittedRows.of(problem, X, blank, own).take(rows))
        complete.append(((Y - g.mean) / problem.scale)[rows])
    return FittedRows.stacked(parts), np.concatenate(complete)
