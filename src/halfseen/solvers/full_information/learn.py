"""From a problem to a fit: where to start, the climb, and what to say about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from halfseen.gaussian import Gaussian
from halfseen.solvers.full_information.ascent import (
    ALLOWED_CHANGE,
    CLIMBING_SEED,
    Ascent,
    complete_errors,
)
from halfseen.solvers.full_information.charts import Chart
from halfseen.solvers.full_information.checkpoint import Checkpoint
from halfseen.solvers.full_information.climb_state import Guide, State
from halfseen.solvers.full_information.information import (
    Information,
    can_inform,
    information,
    rows_looked_at,
)
from halfseen.solvers.full_information.m_step import (
    MStep,
    Sparse,
    correlation_of,
    graphical_lasso,
    singular,
)
from halfseen.solvers.full_information.pair_information import pair_errors
from halfseen.solvers.full_information.problem import Overview
from halfseen.solvers.full_information.rows import Rows
from halfseen.solvers.full_information.starts import (
    mirrored_starts,
    other_starts,
    turned_starts,
)
from halfseen.solvers.inference.uncertainty import StandardErrors, correlation_errors
from halfseen.solvers.loop import iterate
from halfseen.solvers.result import Estimate, MonteCarloErrors, Note, Source, Status, name_some
from halfseen.solvers.structures.base import InUnits, Structure
from halfseen.theta import pack, parameter_names, unpack

Floats = NDArray[np.float64]

# Steps from each of several starts, and rows that they climb on; most places that are then gone on from.
TRIAL_STEPS, TRIAL_ROWS, MOST_PLACES = 40, 400, 3
# Climbs that end so many standard errors of complete data from each other found different tops.
APART = 5.0
# Share of what the cells would have said that is lost because a rule hides them, beyond which a
# direction is hardly determined by the data: standard errors are six times those of the same cells, were
# they seen. And the same where the data say no more about a direction than so many complete rows would.
HARDLY_KNOWN, FEWEST_ROWS = 0.97, 2.0
# Up to so many rows there is a caution, whatever is seen of them.
VERY_FEW_ROWS = 3
# Columns with a correlation beyond this are told apart by rounding alone.
AS_GOOD_AS_EQUAL = 1.0 - 1e-5
# Up to so many rows intervals are too short where hidden cells may be on either side: those of 95 % held
# 0.86 of the correlations with 30 rows (task small_intervals), and 0.90 with 100.
OPEN_ROWS = 100
# Standard errors so many times those of complete data are named.
MUCH_LARGER = 4.0
# Some of the rows climb first, where there are so many times as many: this share of them, but no fewer
# than this, and than this for each parameter (whose information they then know to a quarter, in all
# directions together), and no more than have so many cells.
MANY_MORE, SHARE_OF_ROWS, GUIDES, GUIDES_EACH, GUIDING_CELLS = 4, 8, 4000, 20, 2**21


@dataclass(frozen=True)
class Settings:
    """What does not depend on the data."""

    accuracy: float
    most_steps: int
    standard_errors: bool
    seed: int
    progress: bool
    n_jobs: int | None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class Climb:
    """Where one climb ended, in standardised units."""

    mean: Floats
    covariance: Floats
    state: State
    history: list[dict[str, Any]]
    errors: Floats
    reached: bool

    @property
    def parameters(self) -> Floats:
        """(μ, Σ_ij for i >= j)."""
        return pack(self.mean, self.covariance)


def climb(
    rows: Rows,
    m_step: MStep,
    start: tuple[Floats, Floats],
    settings: Settings,
    climb_only: bool = False,
    guide: Guide | None = None,
    scouting: bool = False,
) -> Climb:
    """Climb from a start until the top is reached, or the steps are used up."""
    solver = Ascent(
        rows, m_step, *start, settings.accuracy, settings.most_steps,
        settings.standard_errors, settings.seed, climb_only, guide, scouting,
    )  # fmt: skip
    state, history = iterate(solver, settings.progress, settings.checkpoint)
    near = state.gain <= solver.allowed or singular(m_step.scatter(state.covariance))
    reached = solver.done(state) and near and state.ratio <= settings.accuracy
    return Climb(
        state.mean, state.covariance, state, history, solver.errors(state), reached or climb_only
    )


def tops_from(
    rows: Rows,
    m_step: MStep,
    starts: Iterable[tuple[Floats, Floats]],
    settings: Settings,
) -> tuple[list[Climb], list[float]]:
    """Climb from several starts, and return the climbs that came to different tops, likeliest first.

    All climb on some of the rows; those that come to the highest places, apart from each other, go on
    with all of them. With the tops come the log-likelihoods reached.
    """
    few = replace(
        settings, most_steps=TRIAL_STEPS, standard_errors=False, progress=False, checkpoint=None
    )
    some = rows.sample(TRIAL_ROWS, settings.seed)
    tried = [climb(some, m_step, m_step.admit(*start), few, True) for start in starts]
    places = _apart(tried, some.overview.shape[0])[:MOST_PLACES]
    if len(places) == 1:
        return places, [one.state.value for one in tried]
    more = replace(few, most_steps=settings.most_steps, checkpoint=settings.checkpoint)
    found = [climb(rows, m_step, (one.mean, one.covariance), more, True) for one in places]
    heights = [one.state.value for one in found]
    return _apart(found, rows.overview.shape[0]), heights


def _apart(climbs: list[Climb], rows: int) -> list[Climb]:
    """Return climbs in the order of their heights, without those that came to the place of a higher."""
    order = sorted(climbs, key=lambda one: -one.state.value)
    kept: list[Climb] = []
    for one in order:
        errors = [complete_errors(other.covariance, rows) for other in kept]
        gaps = [
            float(np.abs((one.parameters - other.parameters) / error).max())
            for other, error in zip(kept, errors, strict=True)
        ]
        if not gaps or min(gaps) > APART:
            kept.append(one)
    return kept


def likely_tops(
    rows: Rows, m_step: MStep, start: tuple[Floats, Floats], settings: Settings
) -> tuple[list[Climb], list[float]]:
    """Try several starts where the likelihood may have several tops; see ``tops_from``.

    None where it has one.
    """
    about = rows.overview
    starts = [start]
    if about.bound and m_step.structure.name != "known":
        starts += other_starts(*start)
    if about.several.size and m_step.mean is None:
        starts += mirrored_starts(*start, about.several)
        # With more rows, those that show both values of a pair nearly always settle its sign.
        if m_step.structure.name == "free" and about.shape[0] <= TRIAL_ROWS:
            starts += turned_starts(*start, about.several, rows.seen_moments())
    if len(starts) == 1 or m_step.structure.regularised:
        return [], []
    return tops_from(rows, m_step, starts, settings)


def guided(
    rows: Rows, m_step: MStep, start: tuple[Floats, Floats], settings: Settings
) -> Guide | None:
    """Climb on some of the rows first, where there are many more than it takes.

    Their top is about a standard error of theirs from that of all, and they know the curvature there: a
    few questions to all rows are left. Some of these may have climbed on some of them before. None where
    all are to climb from the start: where the likelihood may have several tops, or none, and where these
    rows say next to nothing of some direction, as of what only rare rows show.
    """
    about = rows.overview
    n, d = about.shape
    one_top = about.convex and not about.bound and bool(about.hidden.any())
    if not one_top or not math.isinf(rows.degrees) or not can_inform(m_step, d):
        return None
    count = m_step.count(d)
    fewest = max(GUIDES, GUIDES_EACH * count)
    if n < MANY_MORE * fewest:
        return None
    used = max(fewest, min(n // SHARE_OF_ROWS, GUIDING_CELLS // d))
    # The same for every seed, as all of the way up.
    some = rows.sample(used, CLIMBING_SEED)
    before = guided(some, m_step, start, settings)
    alone = replace(settings, standard_errors=True, progress=False, checkpoint=None)
    first = start if before is None else before.place
    state = climb(some, m_step, first, alone, guide=before, scouting=True).state
    known = state.information
    if known is None or used * (1.0 - known.missing.max(initial=0.0)) < GUIDES_EACH:
        return None
    return Guide(known.of_rows(n), used, state.points, state.noise)


def learn(
    rows: Rows,
    m_step: MStep,
    start: tuple[Floats, Floats],
    settings: Settings,
    notes: list[Note],
    source: Source | None = None,
    follow_start: bool = False,
) -> Estimate:
    """Climb to the top of the likelihood, and describe the answer.

    With ``follow_start`` no other starts are tried.
    """
    history: dict[str, Any] = {}
    notes = list(notes)
    about, structure = rows.overview, m_step.structure
    tops: list[Climb] = []
    before: list[dict[str, Any]] = []
    if not follow_start:
        tops, heights = likely_tops(rows, m_step, start, settings)
        if tops:
            start, before = (tops[0].mean, tops[0].covariance), tops[0].history
            history["likelihoods_of_starts"] = heights
            history["other_tops"] = [
                Gaussian(*about.to_units(one.mean, one.covariance)) for one in tops[1:]
            ]
    if len(tops) > 1 or (about.bound and structure.name != "known"):
        notes.append(Note(Status.NO_GLOBAL_GUARANTEE, ""))
    guide = None if follow_start or tops else guided(rows, m_step, start, settings)
    start = start if guide is None else guide.place
    found = climb(rows, m_step, start, settings, guide=guide)
    found = replace(found, history=[*before, *found.history])
    state = found.state
    gaussian = Gaussian(*about.to_units(found.mean, found.covariance))
    known = _information(rows, m_step, found, settings, guide)
    uncertainty = _standard_errors(rows, m_step, found, known, settings)
    history.update(
        steps=len(found.history),
        gain_left=state.gain,
        trace=np.array([info["mean"] for info in found.history]) * about.scale + about.centre,
        log_likelihoods=np.array([info["value"] for info in found.history]),
        gains=np.array([info["gain"] for info in found.history]),
        covariance_structure=structure.name,
    )
    precision = None
    if isinstance(structure, Sparse):
        assert state.moments is not None
        precision = graphical_lasso(state.moments.about(found.mean), structure.penalty)[1]
        precision = precision / np.outer(about.scale, about.scale)
        history["penalty"] = structure.penalty
    notes += _notes(about, found, known, uncertainty, settings)
    if tops and structure.name == "free":
        notes += _sign_notes(rows, found)
    notes += bound_notes(structure, gaussian.covariance, about.names)
    return Estimate(
        gaussian,
        "full",
        about.names,
        about.shape[0],
        (about.shape[0] - about.hidden) / about.shape[0],
        tuple(notes),
        history,
        source=source,
        uncertainty=uncertainty,
        monte_carlo_errors=_monte_carlo_errors(about, found.errors),
        parameters=_count(m_step, precision, about.shape[1]),
        precision=precision,
    )


def _sign_notes(rows: Rows, found: Climb) -> list[Note]:
    """Say which correlations may as well have the other sign, as hidden cells may be on either side."""
    about = rows.overview
    if about.shape[0] > OPEN_ROWS:
        return []
    turned = np.zeros(found.covariance.shape, dtype=bool)
    place = found.mean, found.covariance
    for _, covariance in turned_starts(*place, about.several, rows.seen_moments()):
        turned |= covariance * found.covariance < 0.0
    pairs = [f"{about.names[j]} ~ {about.names[i]}" for i, j in np.argwhere(np.tril(turned))]
    if not pairs:
        return []
    text = (
        "Hidden cells may be on either side of what is seen, and so few rows show both values of a pair "
        f"that the sign of these correlations is open: {name_some(pairs)}. No method was found whose "
        "intervals of means and correlations are long enough: with three columns, 30 rows and 40 % "
        "hidden those of 95 % held 90 % and 86 %. Say the sides, with IntervalData, or take more rows."
    )
    return [Note(Status.NO_GLOBAL_GUARANTEE, text)]


def _count(m_step: MStep, precision: Floats | None, d: int) -> int:
    """Return the number of free parameters; zeros of a sparse precision matrix are not free."""
    if precision is None:
        return m_step.count(d)
    zeros = int((precision[np.tril_indices(d, -1)] == 0.0).sum())
    return m_step.count(d) - zeros


def _information(
    rows: Rows, m_step: MStep, found: Climb, settings: Settings, guide: Guide | None
) -> Information | None:
    """Return the information at the estimate; None where it is not wanted, or cannot be had."""
    about = rows.overview
    if not settings.standard_errors or not can_inform(m_step, about.shape[1], rows.degrees):
        return None
    if singular(found.covariance) and about.hidden.any():
        return None
    known = found.state.information
    # So many standard errors are a share of one over the root of the rows of the parameters' own size.
    allowed = ALLOWED_CHANGE * np.sqrt(about.shape[0]) if about.sampled else 0.0
    # What some rows say will do, if no more would be looked at, and none is known in closed form.
    few = guide is not None and (
        guide.rows < rows_looked_at(about, m_step.count(about.shape[1])) or not about.hidden.all()
    )
    if known is None or few or known.moved(found.mean, found.covariance) > allowed:
        chart = Chart(m_step, found.mean, found.covariance, about.shape[0])
        known = information(rows, chart, settings.seed)
    return known


def _standard_errors(
    rows: Rows, m_step: MStep, found: Climb, known: Information | None, settings: Settings
) -> StandardErrors | None:
    """Return standard errors in the units of the table; None where there are none."""
    about = rows.overview
    if not settings.standard_errors or m_step.structure.regularised:
        return None
    if singular(found.covariance) and about.hidden.any():
        # The likelihood has no top there, only an edge.
        return None
    structured = isinstance(m_step.structure, Structure | InUnits)
    if known is None and (structured or not math.isinf(rows.degrees)):
        # Pairs of columns are those of a Gaussian, whose covariances are free.
        return None
    d = about.shape[1]
    gaussian = Gaussian(*about.to_units(found.mean, found.covariance))
    if known is not None:
        units = about.units
        return StandardErrors.from_parameters(
            gaussian, known.covariance() * np.outer(units, units), known.missing
        )
    pairs = pair_errors(rows, found.mean, found.covariance, settings.seed).scaled(about.scale)
    errors = np.sqrt(pairs.mean), np.sqrt(pairs.covariance[0])
    if m_step.mean is not None:
        errors = np.zeros(d), errors[1]
    return StandardErrors(
        *errors, correlation_errors(gaussian, pairs.covariance, pairs.variances), None, gaussian
    )


def _singular_note(about: Overview, covariance: Floats) -> Note:
    """Say so, and name columns that repeat each other."""
    R = correlation_of(covariance)
    i, j = np.tril_indices(len(R), -1)
    equal = np.flatnonzero(np.abs(R[i, j]) > AS_GOOD_AS_EQUAL)
    hidden = about.hidden.any()
    text = "The covariance is as good as singular: columns are combinations of each other."
    if hidden:
        text += " The likelihood has no top there, so there are no standard errors."
    if equal.size:
        pairs = [f"{about.names[j[k]]} ~ {about.names[i[k]]}" for k in equal]
        text += f" Columns that repeat each other: {name_some(pairs)}."
    return Note(Status.ON_DOMAIN_EDGE if equal.size or hidden else Status.PROJECTED, text)


def _monte_carlo_errors(about: Overview, errors: Floats) -> MonteCarloErrors:
    """Return Monte-Carlo errors in the units of the table."""
    return MonteCarloErrors(*unpack(errors * about.units, about.shape[1]))


def _notes(
    about: Overview,
    found: Climb,
    known: Information | None,
    uncertainty: StandardErrors | None,
    settings: Settings,
) -> list[Note]:
    """Say what was out of the ordinary."""
    notes = []
    names = parameter_names(about.names)
    complete = complete_errors(found.covariance, about.shape[0])
    if uncertainty is not None and known is not None:
        kept = about.shape[0] * (1.0 - known.missing)
        hardly = max(int((known.lost > HARDLY_KNOWN).sum()), int((kept < FEWEST_ROWS).sum()))
        if hardly:
            ratio = uncertainty.vector() / about.units / complete
            notes.append(_weak_note(hardly, known.missing.size, names, ratio))
    few = about.shape[0] <= VERY_FEW_ROWS
    if few and uncertainty is not None and np.diag(uncertainty.covariance).any():
        notes.append(_few_rows_note(about.shape[0]))
    if singular(found.covariance):
        notes.append(_singular_note(about, found.covariance))
    if not found.reached:
        notes.append(short_note(found, settings))
    return notes


def bound_notes(structure: Any, covariance: Floats, names: Sequence[str]) -> list[Note]:
    """Say which parameters of a structure are at a bound."""
    own = structure.structure if isinstance(structure, InUnits) else structure
    if not isinstance(own, Structure):
        return []
    return [Note(Status.AT_BOUND, text) for text in own.edges(covariance, names)]


def _few_rows_note(rows: int) -> Note:
    """Say how little very few rows know, were they complete."""
    low, high = np.sqrt(rows / chdtri(rows - 1.0, np.array([0.025, 0.975])))
    text = (
        f"{rows} rows: even where nothing is hidden, a standard deviation may be {low:.1f} to "
        f"{high:.0f} times its estimate (95 % interval)."
    )
    return Note(Status.WEAKLY_IDENTIFIED, text)


def short_note(found: Climb, settings: Settings) -> Note:
    """Say how far from the top a climb was stopped."""
    state = found.state
    left = f"{state.gain:.2g}" if np.isfinite(state.gain) else "an unknown amount"
    text = (
        f"After {len(found.history)} steps the log-likelihood may still be {left} below its top; "
    )
    if state.phase == "ended" and settings.accuracy < state.ratio < np.inf:
        text = (
            f"After {len(found.history)} steps the largest Monte-Carlo error is {state.ratio:.0%} of "
            f"its statistical error; {settings.accuracy:.0%} was asked for: "
        )
    return Note(Status.NOT_CONVERGED, text + "raise most_steps, or accuracy.")


def _weak_note(hardly: int, directions: int, names: list[str], ratio: Floats) -> Note:
    """Say how many directions are hardly known, and which standard errors show it.

    ``ratio`` are standard errors next to those of complete data.
    """
    order = np.argsort(-ratio, kind="stable")
    worst = [f"{names[k]} ({ratio[k]:.0f} times)" for k in order if ratio[k] > MUCH_LARGER]
    text = (
        f"{hardly} of {directions} directions among the parameters have lost more than "
        f"{HARDLY_KNOWN:.0%} of their information to the holes, or are known from hardly any row. "
    )
    if worst:
        text += f"Standard errors much larger than those of complete data: {name_some(worst, 5)}."
    else:
        text += (
            "It is combinations of parameters that are hardly known; the standard error of one by "
            f"itself is at most {ratio[order[0]]:.1f} times that of complete data ({names[order[0]]})."
        )
    return Note(Status.WEAKLY_IDENTIFIED, text)
