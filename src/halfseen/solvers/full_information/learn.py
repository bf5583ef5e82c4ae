"""From a problem to a fit: chains, their agreement, and what to say about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.solvers.full_information.information import (
    MOST_PARAMETERS,
    information,
    spread_rows,
)
from halfseen.solvers.full_information.journal import Journal
from halfseen.solvers.full_information.m_step import (
    SMALLEST_EIGENVALUE,
    MStep,
    Sparse,
    correlation_of,
    graphical_lasso,
)
from halfseen.solvers.full_information.pair_information import pair_errors
from halfseen.solvers.full_information.problem import Overview
from halfseen.solvers.full_information.rows import Rows
from halfseen.solvers.full_information.starts import other_starts
from halfseen.solvers.full_information.stochastic_em import (
    ALLOWED_MOVE,
    State,
    StochasticEM,
    complete_errors,
    root_mean_square,
)
from halfseen.solvers.inference.likelihood import log_likelihood
from halfseen.solvers.inference.uncertainty import StandardErrors, correlation_errors
from halfseen.solvers.loop import iterate
from halfseen.solvers.result import Fit, MonteCarloErrors, Note, Source, Status, name_some

Floats = NDArray[np.float64]

# Steps from each of several starts before their likelihoods are compared, and the rows compared on.
TRIAL_SWEEPS, TRIAL_ROWS = 8, 2000
# Chains that differ by more than this many standard errors have not found the same answer.
CHAIN_GAP = 1.0
# Share of missing information beyond which a direction is hardly determined by the data: standard errors
# are six times those of complete data.
HARDLY_KNOWN = 0.97
# Columns with a correlation beyond this are told apart by rounding alone.
AS_GOOD_AS_EQUAL = 1.0 - 1e-5
# Variance of a column over that given all others, beyond which sweeps cannot be trusted to have settled:
# with two columns a correlation of 0.998. At 0.99 likelihoods were at their top, at 0.999 up to 7 below.
MOST_INFLATION = 300.0
# Standard errors so many times those of complete data are named.
MUCH_LARGER = 4.0


@dataclass(frozen=True)
class Settings:
    """What does not depend on the data."""

    accuracy: float
    most_sweeps: int
    standard_errors: bool
    seed: int
    progress: bool
    n_jobs: int | None
    journal: Journal | None = None


@dataclass(frozen=True)
class Chain:
    """Where one chain ended, in standardised units."""

    mean: Floats
    covariance: Floats
    state: State
    history: list[dict[str, Any]]
    errors: Floats
    settled: bool

    @property
    def parameters(self) -> Floats:
        """(μ, Σ_ij for i >= j)."""
        return np.concatenate([self.mean, self.covariance[np.tril_indices(self.mean.size)]])


def run_chain(
    rows: Rows,
    m_step: MStep,
    start: tuple[Floats, Floats],
    settings: Settings,
    number: int = 0,
) -> Chain:
    """Fill the hidden cells, and sweep until the average is accurate or the sweeps are used up."""
    n = rows.overview.shape[0]
    solver = StochasticEM(
        rows, m_step, *start, settings.accuracy, settings.most_sweeps // 2,
        settings.standard_errors, settings.seed, number,
    )  # fmt: skip
    keeper = None if settings.journal is None else settings.journal.next_chain(rows)
    state, history = iterate(solver, settings.progress, keeper)
    mean, covariance = state.mean, state.covariance
    averages = state.averages
    errors = np.full(complete_errors(covariance, n).shape, np.inf)
    if solver.nothing_hidden:
        errors = np.zeros_like(errors)
    elif averages is not None and averages.batches:
        if state.information is None:
            mean, covariance = m_step.solve(averages.moments(), n)
        if averages.batches > 2:
            errors = averages.errors(solver.standard_errors(state), solver.groups)
    return Chain(mean, covariance, state, history, errors, solver.done(state))


def best_start(
    rows: Rows, m_step: MStep, start: tuple[Floats, Floats], settings: Settings
) -> tuple[tuple[Floats, Floats], list[float]]:
    """Try several starts for a few sweeps each, and return where the likeliest of them came to."""
    trial = replace(
        settings,
        accuracy=0.0,
        most_sweeps=2 * TRIAL_SWEEPS,
        standard_errors=False,
        progress=False,
    )
    chosen = spread_rows(rows.overview.shape[0], TRIAL_ROWS)
    found, heights = [], []
    for mean, covariance in (start, *other_starts(*start)):
        chain = run_chain(rows, m_step, (mean, covariance), trial)
        found.append((chain.state.mean, chain.state.covariance))
        # It does not depend on what stands in hidden cells.
        sample = rows.take(chosen)
        height = log_likelihood(*sample, *found[-1], settings.seed, settings.n_jobs)
        heights.append(height.value)
    return found[int(np.argmax(heights))], heights


def learn(
    rows: Rows,
    m_step: MStep,
    start: tuple[Floats, Floats],
    settings: Settings,
    notes: list[Note],
    source: Source | None = None,
    follow_start: bool = False,
) -> Fit:
    """Run one chain, or two where a hidden region has several parts, and describe the answer.

    With ``follow_start`` no other starts are tried.
    """
    history: dict[str, Any] = {}
    about, structure = rows.overview, m_step.structure
    if about.bound and structure.name != "known":
        if not follow_start:
            start, history["likelihoods_of_starts"] = best_start(rows, m_step, start, settings)
        notes = [*notes, Note(Status.NO_GLOBAL_GUARANTEE, "")]
    numbers = (0,) if about.convex else (0, 1)
    chains = [run_chain(rows, m_step, start, settings, k) for k in numbers]
    mean = np.mean([chain.mean for chain in chains], axis=0)
    covariance = np.mean([chain.covariance for chain in chains], axis=0)
    if len(chains) > 1 and not structure.linear:
        mean, covariance = m_step.admit(mean, covariance)
    gaussian = Gaussian(*about.to_units(mean, covariance))
    last = chains[-1]
    uncertainty = _standard_errors(rows, m_step, (mean, covariance), last.state, settings)
    history.update(
        # Each step draws every hidden cell twice, with mirrored uniforms.
        sweeps=2 * sum(len(chain.history) for chain in chains),
        chains=len(chains),
        trace=np.array([info["mean"] for info in last.history]) * about.scale + about.centre,
        monte_carlo_ratio=[info["ratio"] for info in last.history],
        covariance_structure=structure.name,
    )
    precision = None
    if isinstance(structure, Sparse):
        averages = last.state.averages
        expected = averages.moments() if averages and averages.batches else last.state.moments
        assert expected is not None
        precision = graphical_lasso(expected.about(mean), structure.penalty)[1]
        precision = precision / np.outer(about.scale, about.scale)
        history["penalty"] = structure.penalty
    return Fit(
        gaussian,
        "full",
        about.names,
        about.shape[0],
        (about.shape[0] - about.hidden) / about.shape[0],
        (*notes, *_notes(about, chains, uncertainty, settings, structure.name != "known")),
        history,
        source=source,
        uncertainty=uncertainty,
        monte_carlo_errors=_monte_carlo_errors(about, chains),
        parameters=_count(m_step, precision, about.shape[1]),
        precision=precision,
    )


def _count(m_step: MStep, precision: Floats | None, d: int) -> int:
    """Return the number of free parameters; zeros of a sparse precision matrix are not free."""
    if precision is None:
        return m_step.count(d)
    zeros = int((precision[np.tril_indices(d, -1)] == 0.0).sum())
    return m_step.count(d) - zeros


def _standard_errors(
    rows: Rows,
    m_step: MStep,
    estimate: tuple[Floats, Floats],
    state: State,
    settings: Settings,
) -> StandardErrors | None:
    """Return standard errors in the units of the table; None where there are none."""
    about = rows.overview
    if not settings.standard_errors or m_step.structure.regularised:
        return None
    if _as_good_as_singular(estimate[1]) and about.hidden.any():
        # The likelihood has no top there, only an edge.
        return None
    d = about.shape[1]
    gaussian = Gaussian(*about.to_units(*estimate))
    if m_step.count(d) <= MOST_PARAMETERS:
        found = state.information
        if found is None or state.moved(*estimate) > ALLOWED_MOVE:
            basis = m_step.basis(estimate[1])
            found = information(rows, *estimate, basis, settings.seed)
        units = about.units
        whole = found.basis @ found.covariance @ found.basis.T
        return StandardErrors.from_parameters(
            gaussian, whole * np.outer(units, units), found.missing
        )
    pairs = pair_errors(rows, *estimate, settings.seed).scaled(about.scale)
    errors = np.sqrt(pairs.mean), np.sqrt(pairs.covariance[0])
    if m_step.mean is not None:
        errors = np.zeros(d), errors[1]
    return StandardErrors(
        *errors, correlation_errors(gaussian, pairs.covariance, pairs.variances), None, gaussian
    )


def _as_good_as_singular(covariance: Floats) -> bool:
    """Whether a covariance lies where its smallest eigenvalue is held."""
    return bool(np.linalg.eigvalsh(correlation_of(covariance))[0] < 2.0 * SMALLEST_EIGENVALUE)


def _nearly_repeated(about: Overview, covariance: Floats) -> NDArray[np.intp]:
    """Return columns with hidden cells that the others nearly determine."""
    inflation = np.diag(covariance) * np.diag(np.linalg.inv(covariance))
    return np.flatnonzero((inflation > MOST_INFLATION) & (about.hidden > 0))


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


def _monte_carlo_errors(about: Overview, chains: list[Chain]) -> MonteCarloErrors:
    """Return the errors of the average over chains.

    Where two chains differ by more than their errors say, these were too small, and are raised.
    """
    d = about.shape[1]
    errors = np.sqrt(np.mean([c.errors**2 for c in chains], axis=0) / len(chains))
    if len(chains) == 2:
        gap = 0.5 * (chains[0].parameters - chains[1].parameters)
        known = errors > 0.0
        if known.any():
            errors = errors * max(1.0, root_mean_square(gap[known] / errors[known]))
    i, j = np.tril_indices(d)
    matrix = np.empty((d, d))
    matrix[i, j] = matrix[j, i] = errors[d:]
    s = about.scale
    return MonteCarloErrors(errors[:d] * s, matrix * np.outer(s, s))


def _notes(
    about: Overview,
    chains: list[Chain],
    uncertainty: StandardErrors | None,
    settings: Settings,
    learned: bool,
) -> list[Note]:
    """Say what was out of the ordinary; ``learned`` is whether the covariance was."""
    notes = []
    names = parameter_names(about.names)
    last = chains[-1]
    errors = complete = complete_errors(last.covariance, about.shape[0])
    if uncertainty is not None:
        errors = uncertainty.vector() / about.units
    if uncertainty is not None and uncertainty.missing is not None:
        hardly = uncertainty.missing > HARDLY_KNOWN
        ratio = errors / complete
        if hardly.any():
            notes.append(_weak_note(int(hardly.sum()), hardly.size, names, ratio))
    if _as_good_as_singular(last.covariance):
        notes.append(_singular_note(about, last.covariance))
    elif learned and (repeated := _nearly_repeated(about, last.covariance)).size:
        text = f"Columns: {name_some([about.names[k] for k in repeated])}."
        notes.append(Note(Status.NEARLY_REPEATED, text))
    if len(chains) == 2:
        difference = np.abs(chains[0].parameters - chains[1].parameters)
        gap = difference / np.where(errors > 0.0, errors, complete)
        if gap.max() > CHAIN_GAP:
            worst = [names[k] for k in np.argsort(-gap, kind="stable") if gap[k] > CHAIN_GAP]
            text = f"They differ by up to {gap.max():.2g} standard errors: {name_some(worst)}."
            notes.append(Note(Status.CHAINS_DISAGREE, text))
    if not all(chain.settled for chain in chains):
        largest = max(chain.state.ratio for chain in chains)
        reached = f"{largest:.0%} of its statistical error" if np.isfinite(largest) else "not known"
        text = (
            f"After {2 * max(len(chain.history) for chain in chains)} sweeps the largest Monte-Carlo "
            f"error is {reached}; {settings.accuracy:.0%} was asked for. Raise most_sweeps, or accuracy."
        )
        notes.append(Note(Status.NOT_CONVERGED, text))
    return notes


def _weak_note(hardly: int, directions: int, names: list[str], ratio: Floats) -> Note:
    """Say how many directions are hardly known, and which standard errors show it.

    ``ratio`` are standard errors next to those of complete data.
    """
    order = np.argsort(-ratio, kind="stable")
    worst = [f"{names[k]} ({ratio[k]:.0f} times)" for k in order if ratio[k] > MUCH_LARGER]
    text = (
        f"{hardly} of {directions} directions among the parameters have lost more than "
        f"{HARDLY_KNOWN:.0%} of their information to the holes. "
    )
    if worst:
        text += f"Standard errors much larger than those of complete data: {name_some(worst, 5)}."
    else:
        text += (
            "It is combinations of parameters that are hardly known; the standard error of one by "
            f"itself is at most {ratio[order[0]]:.1f} times that of complete data ({names[order[0]]})."
        )
    return Note(Status.WEAKLY_IDENTIFIED, text)


def parameter_names(names: tuple[str, ...]) -> list[str]:
    """Names of (μ, Σ_ij for i >= j)."""
    i, j = np.tril_indices(len(names))
    of_covariance = [
        f"variance of {names[a]}" if a == b else f"covariance of {names[b]} and {names[a]}"
        for a, b in zip(i, j, strict=True)
    ]
    return [f"mean of {name}" for name in names] + of_covariance
