"""A regression of a table in pieces: passes over them, and what is learned of rows that are kept.

One pass finds the categories of regressors, where there are some; one the moments of outcomes and a
triangle of the regressors; and the last leaves each piece with an engine, its outcomes in their units
beside covariates that are white over all rows. From there on it is as in memory.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.coding import Levels, factors_of, has_levels
from halfseen.data.design import Design, check_regressors, design_of_arrays, read_design
from halfseen.data.factor_values import Learned
from halfseen.data.formulas import read_formula
from halfseen.data.interval_data import IntervalData
from halfseen.data.plain_columns import PlainColumns, narrowed
from halfseen.data.table import RowBlocks
from halfseen.errors import InputError, spelled, warn
from halfseen.missingness.base import Missingness
from halfseen.parallel import single_blas_thread
from halfseen.scaling.engine import Engine
from halfseen.solvers.columns import check_columns, check_spreads
from halfseen.solvers.full_information.learn import Settings
from halfseen.solvers.full_information.problem import Overview
from halfseen.solvers.full_information.rows import KeptRows
from halfseen.solvers.full_information.shards import count
from halfseen.solvers.in_pieces import shown, told_by_file
from halfseen.solvers.piece import Place
from halfseen.solvers.prepared_table import warn_of_piles
from halfseen.solvers.regression.estimate import RegressionEstimate
from halfseen.solvers.regression.hiding import Hiding
from halfseen.solvers.regression.layout import Whitening
from halfseen.solvers.regression.learn_regression import learn_rows
from halfseen.solvers.regression.model import Model, Setup
from halfseen.solvers.regression.outcomes import (
    Carried,
    Column,
    Outcomes,
    cuts_of,
    doubt_two_values,
    kind_as_said,
    known_kinds,
    need_every_category,
    order_of,
    read_categories,
    split_rules,
    warn_of_blanks,
)
from halfseen.solvers.regression.piece import (
    Layout,
    Reader,
    Shown,
    Survey,
    blank_of,
    head_of,
    levels_of,
    shard,
    survey_piece,
)
from halfseen.solvers.regression.robust import in_parameters, scatter

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of a table in pieces.

    Attributes
    ----------
    formula : str, mapping or None
        None where columns are regressors as they are.
    outcomes : tuple of str
    intercept : bool
        Of regressors without a formula.
    rules, kinds
        As ``regress`` has them.
    at_random : boolean array of shape (n, outcomes), or None
    carried : tuple of str
        Columns that a rule compares outcomes with.
    robust : bool
    """

    formula: Any
    outcomes: tuple[str, ...]
    intercept: bool
    rules: Any
    kinds: Mapping[str, Any] | None
    at_random: Mask | None
    carried: tuple[str, ...]
    robust: bool


def learn_in_pieces(
    blocks: RowBlocks,
    asked: Asked,
    model_of: Callable[[Design, Outcomes], Model],
    engine: Engine,
    settings: Settings,
) -> tuple[RegressionEstimate, Design]:
    """Learn a regression from a table in pieces; ``model_of`` puts design and outcomes together."""
    with engine:
        passes = Passes.prepare(blocks, asked, engine, settings.progress)
        design = passes.design()
        passes = passes.coded(design)
        found = passes.survey()
        warn_of_piles(found.piled, [*asked.outcomes, *asked.carried], passes.rule)
        terms = slice(1, 1 + len(design.terms))
        summary = found.regressors.take(terms)
        for note in check_regressors(summary, design.terms, design.mask, design.outcomes):
            warn(note)
        outcomes, units, cuts = passes.outcomes(found)
        model = model_of(design, outcomes)
        whitening = Whitening.of(found.regressors.triangle, blocks.shape[0])
        equations = model.equations(whitening.T, *(one[: len(asked.outcomes)] for one in units))
        rows = passes.rows(Layout(units, cuts, whitening), outcomes)
        with single_blas_thread():
            setup = Setup.around(model, rows, equations, cuts)
            estimate = learn_rows(model, setup, settings)
            if asked.robust:
                estimate = replace(estimate, covariance=_robust(model, setup, estimate))
    kept = Hiding.of(outcomes, estimate.residual, equations.centre)
    return replace(estimate, kept=kept), design


def _robust(model: Model, setup: Setup, estimate: RegressionEstimate) -> Floats:
    """Return the sandwich: rows are gone when the estimate is there."""
    if setup.cuts:
        raise InputError(
            "robust standard errors of cut points need the table in memory. Leave robust out, or take "
            "some of the rows."
        )
    if estimate.covariance is None:
        raise InputError("this regression has no standard errors to begin with.")
    assert estimate.place is not None
    into = in_parameters(setup.equations, model.free) @ estimate.covariance
    rows, learned = setup.rows.overview.shape[0], estimate.parameters
    return np.asarray(into.T @ scatter(setup.rows, estimate.place) @ into) * rows / (rows - learned)


@dataclass(frozen=True, eq=False)
class Passes:
    """A table in pieces, how they are read, and who reads them."""

    blocks: RowBlocks
    asked: Asked
    reader: Reader
    rule: Missingness | None
    told: Mapping[str, Any]
    places: tuple[Place, ...]
    head: PlainColumns
    engine: Engine
    progress: bool

    @classmethod
    def prepare(cls, blocks: RowBlocks, asked: Asked, engine: Engine, progress: bool) -> Passes:
        """Match rules with outcomes, and see what the first rows hold."""
        if blocks.shape[0] < 2:
            raise InputError(f"at least 2 rows are needed; got {blocks.shape[0]}.")
        rule, selections = split_rules(asked.rules)
        matched, told = known_kinds(asked.outcomes, selections, asked.kinds)
        if rule is not None:
            rule = rule.for_columns([*asked.outcomes, *asked.carried])
        n, places = blocks.shape[0], []
        for first, size in zip(blocks.first_rows, blocks.sizes, strict=True):
            part = slice(first, first + size)
            own = None if rule is None else rule.for_rows(part, n)
            mask = None if asked.at_random is None else asked.at_random[part]
            places.append(Place(first, size, own, mask))
        reader = Reader(blocks.names, asked.outcomes, matched, asked.carried)
        with shown(engine, "looking", blocks, False):
            first_rows = engine.stream(
                head_of, blocks.pieces[:1], places[:1], reader, combine=operator.add
            )
        head = first_rows.frame()
        indices = {asked.outcomes[one.index] for one in matched}
        for name in asked.outcomes:
            if name not in indices:
                head.check(name, "the outcome")
        return cls(blocks, asked, reader, rule, told, tuple(places), head, engine, progress)

    def design(self) -> Design:
        """Find out how regressors are made of columns."""
        asked = self.asked
        if asked.formula is None:
            names = [name for name in self.head.names if name not in asked.outcomes]
            own = {name: self.head[name] for name in names}
            design = design_of_arrays(own, outcomes=asked.outcomes, intercept=asked.intercept)
            return design.take(slice(0))
        formula = read_formula(asked.formula, self.head.names)
        for name in formula.variables:
            self.head.check(name, "the regressor")
        factors = factors_of(formula)
        learned = Learned(dict.fromkeys(formula.variables), {})
        coded = [factor for factor in factors if has_levels(factor, self.head)]
        if coded:
            found = self._levels(coded)
            learned = Learned({**learned.levels, **found.levels}, found.states)
        derived = {asked.outcomes[one.index] for one in self.reader.selections}
        with told_by_file(self.blocks):
            return read_design(asked.formula, self.head, derived, learned).take(slice(0))

    def _levels(self, factors: list[Any]) -> Learned:
        """Find the categories of some factors; other columns are not read."""
        needed = dict.fromkeys(name for factor in factors for name in factor.variables)
        blocks = narrowed(self.blocks, tuple(needed))
        reader = replace(self.reader, names=blocks.names)
        with shown(self.engine, "categories", blocks, self.progress):
            found: Levels = self.engine.stream(
                levels_of, blocks.pieces, self.places, reader, factors, combine=operator.add
            )
        return found.ordered(factors)

    def coded(self, design: Design) -> Passes:
        """Return passes that know the design, and which outcomes are numbers."""
        measured = tuple(
            name
            for name in self.asked.outcomes
            if self.told.get(name, "continuous") == "continuous"
            and (name in self.told or self._looks_measured(name))
        )
        return replace(self, reader=replace(self.reader, design=design, measured=measured))

    def _looks_measured(self, name: str) -> bool:
        """Whether nobody said what an outcome is, and it holds numbers; texts are refused."""
        column = self.head.column(name)
        if column.is_numbers:
            return True
        texts = [value for value in column.values if isinstance(value, str)]
        if column.levels is None and texts:
            raise InputError(
                f"{name} holds texts, such as {texts[0]!r}. Say its categories from the lowest to the "
                f"highest, as in {kind_as_said(name, ['low', 'high'])}; cells such as '<0.5' are "
                f"read from tables in memory{spelled(', by read_parquet', '')}."
            )
        return False

    def survey(self) -> Survey:
        """Look at outcomes and regressors."""
        with shown(self.engine, "reading", self.blocks, self.progress):
            found = self.engine.stream(
                survey_piece, self.blocks.pieces, self.places, self.reader, combine=operator.add
            )
        assert isinstance(found, Survey)
        return found

    def outcomes(self, found: Survey) -> tuple[Outcomes, tuple[Floats, Floats], dict[str, Floats]]:
        """Return outcomes without rows, units of them and of carried columns, and first cut points."""
        asked, measured = self.asked, self.reader.measured
        latent = [name for name in asked.outcomes if name not in measured]
        columns = {
            name: _categories(name, self.told.get(name), one)
            for name, one in zip(latent, found.shown, strict=True)
        }
        units = self._units(found)
        need_every_category(list(columns), [column for column, _ in columns.values()])
        cuts = {
            name: cuts_of(counts)
            for name, (column, counts) in columns.items()
            if column.kind == "ordered"
        }
        for name, ones in zip(measured, found.ones, strict=False):
            doubt_two_values(name, np.arange(2.0) if ones else np.empty(0), self.told.get(name))
        categories = {name: column.categories for name, (column, _) in columns.items()}
        q, c = len(asked.outcomes), len(asked.carried)
        outcomes = Outcomes(
            IntervalData(np.empty((0, q)), np.empty((0, q)), asked.outcomes),
            np.empty((0, q)),
            self.rule,
            np.zeros((0, q), dtype=bool),
            tuple(columns[k][0].kind if k in columns else "continuous" for k in asked.outcomes),
            categories,
            self.reader.selections,
            Carried(asked.carried, np.empty((0, c))) if c else None,
        )
        return outcomes, units, cuts

    def _units(self, found: Survey) -> tuple[Floats, Floats]:
        """Return centre and scale of outcomes, and of the columns that rules compare them with."""
        names = (*self.asked.outcomes, *self.asked.carried)
        centre, scale = np.zeros(len(names)), np.ones(len(names))
        if found.moments is None:
            return centre, scale
        own = [names.index(name) for name in found.moments.names]
        measured = len(self.reader.measured)
        counts = np.diag(found.moments.counts).copy()
        told = replace(found.moments, names=found.moments.names[:measured])
        check_columns(told, counts)
        centre[own], scale[own] = found.moments.means(), found.moments.deviations()
        check_spreads(told.names, centre[own[:measured]], scale[own[:measured]])
        return centre, np.where(scale > 0.0, scale, 1.0)

    def rows(self, layout: Layout, outcomes: Outcomes) -> KeptRows:
        """Lay out the rows of every piece, and leave them with the engine."""
        kinds = {
            name: list(outcomes.categories.get(name, ())) or "continuous" for name in outcomes.names
        }
        reader = replace(self.reader, kinds=kinds)
        with shown(self.engine, "laying out", self.blocks, self.progress):
            fixed = self.engine.make(shard, self.blocks.pieces, self.places, reader, layout)
            census = self.engine.total(count, fixed, combine=operator.add)
        blank = self.engine.total(blank_of, fixed, combine=operator.add)
        warn_of_blanks(outcomes.names, blank[None])
        q, p = len(outcomes.names), layout.whitening.into.shape[1]
        overview = Overview(
            (self.blocks.shape[0], q + p),
            np.concatenate([layout.units[0][:q], np.zeros(p)]),
            np.concatenate([layout.units[1][:q], np.ones(p)]),
            (*outcomes.names, *(f"regressor {k}" for k in range(p))),
            None,
            False,
            census.hidden,
            census.convex,
            census.bound,
            census.sampled,
            census.several,
        )
        return KeptRows(overview, self.engine, fixed)


def _categories(name: str, told: Any, found: Shown) -> tuple[Column, NDArray[Any]]:
    """Return the categories of a latent outcome, and how many rows have each."""
    known = found.counts
    if found.declared:
        told = order_of(name, told, found.declared, found.ordered, known)
    if isinstance(told, list):
        # Others are refused where they stand, when rows are laid out.
        known = Counter({value: count for value, count in known.items() if value in told})
    values = np.empty(len(known), dtype=object)
    values[:] = list(known)
    column = read_categories(name, values, "binary" if told is None else told)
    counts = np.zeros(len(column.categories))
    counts[column.lower.astype(int)] = list(known.values())
    return column, counts
