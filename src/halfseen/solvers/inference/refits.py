"""Refits of rows drawn anew, or of tables simulated from the fit, each started from the fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.interval_data import IntervalData
from halfseen.data.table import Table
from halfseen.errors import (
    InputError,
    NotIdentifiedError,
)
from halfseen.parallel import single_blas_thread
from halfseen.seeds import Purpose, keyed_generator
from halfseen.simulate import simulate
from halfseen.solvers.full_information.expectation import at_random
from halfseen.solvers.full_information.full import full
from halfseen.solvers.full_information.learn import Settings, learn
from halfseen.solvers.full_information.learn_losses import LossyTable, learn_with_losses
from halfseen.solvers.full_information.parameter_options import m_step_for
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.full_information.tails import learn_tails
from halfseen.solvers.inference.fitted_table import fitted_problem
from halfseen.solvers.loss import cells_at_risk
from halfseen.solvers.result import Estimate, Note, Source

Floats = NDArray[np.float64]

KINDS = ("rows", "parametric")
# Monte-Carlo error of a refit, as a share of the statistical one: it adds 4 % to a variance.
ACCURACY = 0.2
# Share of simulated tables that must have an answer, where something is computed from all of them.
FEWEST_USABLE = 0.9
# Most steps of a refit.
STEPS = 200


def refits(
    fit: Estimate, count: int, kind: str, seed: int, standard_errors: bool = False
) -> Iterator[Estimate]:
    """Yield fits of rows drawn anew, each started from the fit itself."""
    source = check_refits(fit)
    if kind not in KINDS:
        raise InputError(f"kind must be {' or '.join(KINDS)}; got {kind!r}.")
    if kind == "parametric":
        shared: dict[str, Any] = {
            "accuracy": ACCURACY, "standard_errors": standard_errors, "start": fit.gaussian,
            "n_jobs": source.n_jobs, "loss": source.loss, **options_of(fit),
        }  # fmt: skip
        for drawn, X, mask in simulated_tables(fit, count, seed):
            try:
                yield full(
                    X, source.missingness, missing_at_random=mask, random_state=drawn, **shared
                )
            except NotIdentifiedError:
                # A column of which next to nothing is seen: whoever asked counts.
                continue
        return
    problem = fitted_problem(source)
    table = None if source.loss is None else LossyTable.read(problem, *source.given, source.loss)
    m_step = m_step_for(problem.overview, **options_of(fit))[0]
    start = problem.from_units(fit.gaussian.mean, fit.gaussian.covariance)
    for k in range(count):
        rng = keyed_generator(seed, Purpose.BOOTSTRAP, k)
        rows = rng.integers(fit.rows, size=fit.rows)
        drawn = int(rng.integers(2**63))
        settings = Settings(ACCURACY, STEPS, standard_errors, drawn, False, source.n_jobs)
        asked = m_step, start, settings, list[Note]()
        with single_blas_thread():
            if table is not None:
                taken = table.take(rows)
                refit = learn_with_losses(taken, *asked, follow_start=True, intervals=False)
            elif fit.tails is not None:
                degrees = None if fit.tails.learned else fit.degrees
                held = HeldRows(problem.take(rows), source.n_jobs)
                refit = learn_tails(held, *asked, degrees, follow_start=True)
            else:
                held = HeldRows(problem.take(rows), source.n_jobs)
                refit = learn(held, *asked, follow_start=True)
        # Outside: whoever asked goes on with the threads it had.
        yield refit


def options_of(fit: Estimate) -> dict[str, Any]:
    """Return the options that a fit was made with, and the penalty that it chose."""
    assert fit.source is not None
    chosen = {"penalty": fit.history["penalty"]} if "penalty" in fit.history else {}
    return {**fit.source.options, **chosen}


def check_refits(fit: Estimate) -> Source:
    """Return where a fit came from; raise where it cannot be repeated."""
    source = fit.source
    held = source is not None and source.X is not None
    if source is None or not held or fit.method != "full":
        raise InputError(
            'the bootstrap refits by method="full", and needs the table; this fit was made by '
            f"{fit.method!r}{'' if held else ', and does not hold its table (a saved fit never does)'}."
        )
    return source


def simulated_tables(
    fit: Estimate, count: int, seed: int
) -> Iterator[tuple[int, Table, NDArray[np.bool_] | None]]:
    """Yield tables drawn from a fit and hidden by its rule, with a seed, and which cells are blank.

    Cells that are missing at random stay so, in their rows: the rule says nothing about them. Values are
    lost beside the rule as the fit says.
    """
    source = fit.source
    assert source is not None
    if source.missingness is None:
        raise InputError(
            'a parametric bootstrap hides values by the rule, and none was stated; use kind="rows".'
        )
    if isinstance(source.X, IntervalData):
        raise InputError(
            "a parametric bootstrap needs to know what each value was compared with, which "
            'IntervalData says of hidden cells alone; use kind="rows".'
        )
    problem = fitted_problem(source)
    blank = at_random(problem.holes)
    rule = source.missingness.for_columns(fit.names)
    share = None
    if fit.loss is not None:
        risk = cells_at_risk(problem, source.X, rule, source.missing_at_random)
        share = np.where(risk, fit.loss.share, 0.0)
    for k in range(count):
        drawn = int(keyed_generator(seed, Purpose.BOOTSTRAP, k).integers(2**63))
        degrees = None if np.isinf(fit.degrees) else fit.degrees
        X = simulate(fit.gaussian, rule, fit.rows, drawn, degrees_of_freedom=degrees)
        X[blank] = np.nan
        if share is not None:
            X[keyed_generator(drawn, Purpose.LOSSES).random(X.shape) < share] = np.nan
        yield drawn, Table(X, fit.names), blank if blank.any() else None
