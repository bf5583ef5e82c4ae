"""From outcomes and regressors to coefficients: where to start, the climb, and what to say about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from halfseen.parallel import single_blas_thread
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.ascent import ALLOWED_CHANGE, Ascent
from halfseen.solvers.full_information.checkpoint import Run, describe_run
from halfseen.solvers.full_information.climb_state import Guide
from halfseen.solvers.full_information.expectation import Parameters, Sampling
from halfseen.solvers.full_information.information import Information
from halfseen.solvers.full_information.learn import (
    Climb,
    Settings,
    bound_notes,
    climb,
    guided,
    likely_tops,
    short_note,
)
from halfseen.solvers.full_information.m_step import singular
from halfseen.solvers.full_information.rows import HeldRows, Rows
from halfseen.solvers.loop import iterate
from halfseen.solvers.regression.alone import Alone, starts_alone
from halfseen.solvers.regression.cut_points import CutPoints, Slopes, shortened
from halfseen.solvers.regression.edges import notes_of_edges
from halfseen.solvers.regression.entries import Entries
from halfseen.solvers.regression.estimate import Regressed, RegressionEstimate
from halfseen.solvers.regression.identification import (
    check_identified,
    never_together,
    note_of_singular,
    note_of_zeros,
    notes_of_information,
    notes_of_residuals,
    notes_of_selection,
)
from halfseen.solvers.regression.model import Model, Setup
from halfseen.solvers.regression.places import Place, split
from halfseen.solvers.regression.step import RegressionChart, RegressionStep
from halfseen.solvers.result import Note, Status
from halfseen.theta import entries

Floats = NDArray[np.float64]

# Steps of each equation by itself, before residuals may go together; and rows that a start is made from.
START_STEPS, START_ROWS = 30, 4000
# Residuals with a smaller variance, in units of what is seen, are as good as zero.
NO_VARIANCE = 1e-8
# Shifts of the points of rows that are sampled, for the log-likelihood, and points of each: more, where
# its Monte-Carlo error is not below this, unless cells were drawn so often already.
REPLICATES, POINTS, ENOUGH_KNOWN, MOST_DRAWS = 4, (16, 64, 256, 1024, 2048), 0.05, 2**26
# Steps of cut points, at most, and the gain in log-likelihood that may be left to them.
MOST_CUTS, ENOUGH = 50, 1e-9
# Shorter steps that are tried, and what noise may take from a log-likelihood.
MOST_SHORTER, SLACK = 20, 1e-3


class Top(NamedTuple):
    """The top of the likelihood: where it is, how sure that is, and what happened on the way."""

    setup: Setup
    climb: Climb
    known: Information | None
    cuts: Cuts | None
    history: dict[str, Any]
    tops: int


class Cuts(NamedTuple):
    """Learned cut points, and the derivatives of the likelihood in them."""

    points: CutPoints
    vector: Floats
    slopes: Slopes | None


def learn_regression(model: Model, settings: Settings) -> RegressionEstimate:
    """Climb to the top of the likelihood, and describe the answer."""
    with single_blas_thread():
        return learn_rows(model, Setup.of(model, settings.n_jobs), settings)


def learn_rows(model: Model, setup: Setup, settings: Settings) -> RegressionEstimate:
    """Do the same for rows that are laid out, wherever they are."""
    check_identified(model, setup)
    if settings.checkpoint is not None:
        run = _run_of(model, setup, settings)
        settings = replace(settings, checkpoint=settings.checkpoint.for_run(run))
    alone = starts_alone(setup, settings.seed)
    climb_to = _top_with_cuts if setup.cuts else top_of
    return _describe(model, climb_to(setup, settings, alone), settings)


def _run_of(model: Model, setup: Setup, settings: Settings) -> Run:
    """Return what the run depends on."""
    equations = setup.equations
    options = (
        *(equations.T, equations.mask, equations.fixed, equations.ties),
        *(model.free, model.given, model.row_weights),
    )
    nowhere = np.empty(0), np.empty(0)
    return describe_run(setup.rows, setup.step, nowhere, settings, options, follow_start=False)


def top_of(setup: Setup, settings: Settings, alone: Alone | None) -> Top:
    """Climb to the highest place that several starts lead to."""
    history: dict[str, Any] = {}
    start, guide = start_of(setup, settings, alone), None
    tops, heights = likely_tops(setup.rows, setup.step, start, settings)
    if tops:
        start = tops[0].mean, tops[0].covariance
        history["likelihoods_of_starts"] = heights
    elif setup.step.outcomes > 1 or alone is None:
        guide = guided(setup.rows, setup.step, start, settings)
    return top_from(setup, settings, start, guide)._replace(history=history, tops=len(tops))


def top_from(
    setup: Setup,
    settings: Settings,
    start: tuple[Floats, Floats],
    guide: Guide | None = None,
) -> Top:
    """Climb from one start, or from that of a guide."""
    start = start if guide is None else guide.place
    climbed = climb(setup.rows, setup.step, start, settings, guide=guide)
    known = _information(setup, climbed, settings, guide is not None)
    return Top(setup, climbed, known, None, {}, 0)


def _top_with_cuts(setup: Setup, settings: Settings, alone: Alone | None) -> Top:
    """Climb, and let the cut points of ordered outcomes take a step, in turn."""
    points = CutPoints.of(setup.rows, setup.rows.overview.names, setup.cuts)
    cuts = setup.cuts if alone is None else alone.cuts
    vector = np.concatenate([cuts[name][1:] for name in points.names])
    always = replace(settings, standard_errors=True)
    top = top_of(replace(setup, rows=points.rows_at(vector)), always, alone)
    left = np.inf
    for _ in range(MOST_CUTS):
        if top.known is None:
            # The likelihood has no top.
            return top._replace(cuts=Cuts(points, vector, None))
        chart = top.known.chart
        assert isinstance(chart, RegressionChart)
        slopes = Slopes.at(points, vector, chart)
        step, left = slopes.profile_step(top.known.inverse())
        if left < ENOUGH:
            break
        step = shortened(points, vector, step)
        top, moved = _uphill(points, vector, step, top, always)
        if np.array_equal(moved, vector):
            break
        vector = moved
    known = top.known if settings.standard_errors else None
    history = {**top.history, "gain_left_of_cut_points": left}
    return top._replace(cuts=Cuts(points, vector, slopes), known=known, history=history)


def _uphill(
    points: CutPoints, vector: Floats, step: Floats, top: Top, settings: Settings
) -> tuple[Top, Floats]:
    """Take a step of the cut points, or a shorter one, that leads to a higher top."""
    place = top.climb.mean, top.climb.covariance
    for k in range(MOST_SHORTER):
        moved = vector + 0.5**k * step
        setup = replace(top.setup, rows=points.rows_at(moved))
        found = top_from(setup, settings, place)
        if found.climb.state.value >= top.climb.state.value - settings.accuracy * SLACK:
            return found._replace(history=top.history, tops=top.tops), moved
    return top, vector


def start_of(setup: Setup, settings: Settings, alone: Alone | None) -> tuple[Floats, Floats]:
    """Return where to start: each equation by itself, and then residuals that may go together.

    Cells that are independent are integrated, so that this is exact and cheap.
    """
    if alone is not None and setup.step.outcomes == 1:
        return alone.place.joined()
    some = setup.rows.sample(START_ROWS, settings.seed)
    place = _each_by_itself(setup.step, some, settings) if alone is None else alone.place.joined()
    moments, _ = some.expect(*place, Sampling(1, 0))
    return setup.step.solve(moments, some.overview.shape[0])


def _each_by_itself(step: RegressionStep, rows: Rows, settings: Settings) -> tuple[Floats, Floats]:
    """Climb with residuals that have nothing to do with each other."""
    terms, errors = step.parts
    q, d = step.outcomes, rows.overview.shape[1]
    own = errors.free if isinstance(errors, Entries) else np.ones((q, q), dtype=bool)
    given = errors.given if isinstance(errors, Entries) else np.zeros((q, q))
    diagonal = Entries(own & np.eye(q, dtype=bool), np.diag(np.diag(given)))
    by_itself = RegressionStep.of(terms, diagonal)
    place = by_itself.admit(np.zeros(d), np.eye(d))
    solver = Ascent(
        rows, by_itself, *place, settings.accuracy, START_STEPS, False, settings.seed, True
    )
    state, _ = iterate(solver)
    return state.mean, state.covariance


def no_top(setup: Setup, found: Climb) -> bool:
    """Whether the likelihood grows towards residuals that are zero, or combinations of each other."""
    residual = setup.step.scatter(found.covariance)
    return singular(residual) or bool((np.diag(residual) < NO_VARIANCE).any())


def _information(
    setup: Setup, found: Climb, settings: Settings, guided: bool
) -> Information | None:
    """Return the information at the estimate; None where it is not wanted, or there is no top.

    That of a climb with a guide is what some of the rows say.
    """
    if not settings.standard_errors or no_top(setup, found):
        return None
    known = found.state.information
    n = setup.rows.overview.shape[0]
    # So many standard errors are a share of one over the root of the rows of the parameters' own size.
    allowed = ALLOWED_CHANGE * math.sqrt(n) if setup.rows.overview.sampled else 0.0
    if known is None or guided or known.moved(found.mean, found.covariance) > allowed:
        chart = RegressionChart(setup.step, found.mean, found.covariance, n)
        known = chart.own_information(setup.rows, settings.seed)
    return known


def _describe(model: Model, top: Top, settings: Settings) -> RegressionEstimate:
    """Put an estimate together, in the units of the table."""
    setup, found, outcomes = top.setup, top.climb, model.outcomes
    equations, scale = setup.equations, setup.equations.scale
    place = split(found.mean, found.covariance, len(outcomes.names))
    value, error = log_likelihood(setup, found)
    covariance = covariance_of(top)
    notes = _notes(model, top, place, settings)
    if covariance is not None:
        notes += notes_of_edges(model, setup, found, covariance, settings)
    n = setup.rows.overview.shape[0]
    held = isinstance(setup.rows, HeldRows)
    structure = model.structure
    more = {} if structure is None else {"covariance_structure": structure.name}
    cuts = {} if top.cuts is None else top.cuts.points.unpack(top.cuts.vector)
    learned = 0 if top.cuts is None else top.cuts.vector.size
    source = replace(model, outcomes=outcomes.cut_at(cuts))
    return RegressionEstimate(
        outcomes.names,
        model.terms,
        equations.coefficients(place)[:, : len(model.terms)],
        place.residual * np.outer(scale, scale),
        model.mask,
        equations.free[:, : len(model.terms)],
        cuts,
        outcomes.kinds,
        outcomes.categories,
        covariance,
        value,
        error,
        setup.step.count(0) + learned,
        n,
        setup.seen / n,
        tuple(notes),
        {
            **top.history,
            "steps": len(found.history),
            "gain_left": found.state.gain,
            **more,
            "undetermined": [[i, j] for i, j in _undetermined(model, setup)],
            "log_likelihoods": np.array([info["value"] for info in found.history]),
        },
        equations,
        place,
        Regressed(source, settings.seed, settings.n_jobs, inverse=covariance) if held else None,
        is_weighted=model.row_weights is not None,
    )


def covariance_of(top: Top) -> Floats | None:
    """Return the covariance of the estimates of all parameters."""
    if top.known is None:
        return None
    assert isinstance(top.known.chart, RegressionChart)
    into, inverse = derivatives(top.setup, top.known.chart), top.known.inverse()
    if top.cuts is not None and top.cuts.slopes is not None:
        into = block_diag(into, np.eye(top.cuts.vector.size))
        inverse = top.cuts.slopes.whole_covariance(inverse)
    return np.asarray(into @ inverse @ into.T)


def derivatives(setup: Setup, chart: RegressionChart) -> Floats:
    """Return derivatives of the parameters in the coordinates of a chart."""
    scale, terms = setup.equations.scale, setup.step.parts[0]
    first = setup.equations.from_terms
    if chart.free_terms:
        first = first @ np.kron(chart.root, np.eye(terms.offset.shape[1]))
    units = entries(np.outer(scale, scale))
    return block_diag(first, units[:, None] * chart.errors_derivatives)


def _replicated(
    rows: Rows,
    place: tuple[Floats, Floats],
    order: Parameters,
    counts: Sequence[int],
    allowed: float,
) -> tuple[float, float, int]:
    """Return a log-likelihood that is sampled, its error, and how many points made that small enough."""
    for points in counts:
        values = [_asked(rows, place, order, points, k) for k in range(REPLICATES)]
        error = float(np.std(values, ddof=1)) / math.sqrt(REPLICATES)
        if error < allowed or REPLICATES * points * rows.overview.sampled > MOST_DRAWS:
            break
    return float(np.mean(values)), error, points


def _asked(
    rows: Rows, place: tuple[Floats, Floats], order: Parameters, points: int, replicate: int
) -> float:
    """Return a log-likelihood by one set of shifts."""
    sampling = Sampling(points, 0, replicate, Purpose.LIKELIHOOD, order)
    return rows.expect(*place, sampling)[1]


def _sampled_log_likelihood(rows: Rows, found: Climb) -> tuple[float, float]:
    """Return a log-likelihood that is sampled, and its error.

    Of many rows some are asked how much these vary, and then all of them once: rows err by themselves.
    """
    place, n = (found.mean, found.covariance), rows.overview.shape[0]
    # In the order of the climb rows are laid out already.
    order = Parameters.of(*(found.state.order or place))
    if n <= START_ROWS:
        return _replicated(rows, place, order, POINTS, ENOUGH_KNOWN)[:2]
    times = math.sqrt(REPLICATES * n / START_ROWS)
    most = REPLICATES * MOST_DRAWS / rows.overview.sampled
    counts = [points for points in POINTS if points <= most] or POINTS[:1]
    some = rows.sample(START_ROWS, 0)
    _, error, points = _replicated(some, place, order, counts, ENOUGH_KNOWN / times)
    return _asked(rows, place, order, points, 0), times * error


def log_likelihood(setup: Setup, found: Climb) -> tuple[float, float]:
    """Return the log-likelihood of outcomes given regressors, and its Monte-Carlo error.

    The engine has that of both together, in its own units.
    """
    rows, q = setup.rows, setup.step.outcomes
    n, d = rows.overview.shape
    if rows.overview.sampled:
        value, error = _sampled_log_likelihood(rows, found)
    else:
        value, error = rows.expect(found.mean, found.covariance, Sampling(1, 0))[1], 0.0
    of_regressors = -0.5 * (n * (d - q) * math.log(2.0 * math.pi) + setup.squares)
    in_units = float(setup.seen @ np.log(setup.equations.scale))
    return float(value) - of_regressors - in_units, float(error)


def _undetermined(model: Model, setup: Setup) -> list[tuple[int, int]]:
    """Return pairs whose covariance is free, and of which no row says something of both.

    Under a structure other pairs say what it is.
    """
    if model.structure is not None:
        return []
    return [(i, j) for i, j in never_together(setup.together) if model.free[i, j]]


def _notes(model: Model, top: Top, place: Place, settings: Settings) -> list[Note]:
    """Say what was out of the ordinary."""
    notes = []
    if top.tops > 1 or top.setup.rows.overview.bound:
        notes.append(Note(Status.NO_GLOBAL_GUARANTEE, ""))
    never = _undetermined(model, top.setup)
    residual = top.setup.step.scatter(top.climb.covariance)
    zero = np.flatnonzero(np.diag(residual) < NO_VARIANCE)
    if not top.climb.reached and not zero.size:
        notes.append(short_note(top.climb, settings))
    if zero.size:
        notes.append(note_of_zeros([model.outcomes.names[j] for j in zero]))
    elif singular(residual):
        notes.append(note_of_singular(model.outcomes.names))
    notes += notes_of_residuals(model, top.setup.equations.scale, place, never)
    coefficients = top.setup.equations.coefficients(place)[:, : len(model.terms)]
    notes += notes_of_selection(model, top.setup, coefficients)
    if model.structure is not None:
        scale = top.setup.equations.scale
        covariance = place.residual * np.outer(scale, scale)
        notes += bound_notes(model.structure, covariance, model.outcomes.names)
    if top.known is not None:
        notes += notes_of_information(model, top.setup, top.known, len(never))
    return notes
