"""``missing_descent``: the paper's Algorithm 3, learning a mean under linear thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import positive_number, whole_number
from halfseen.data.table import Table, TableKind, check_finite
from halfseen.errors import InputError, NotIdentifiedError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness, RuleKind
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.parallel import map_in_order, resolve_jobs, single_blas_thread
from halfseen.samplers import Sampler
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.solvers.conditionals import Conditionals, check_covariance
from halfseen.solvers.descent_defaults import derive_defaults
from halfseen.solvers.initialize import initialize
from halfseen.solvers.loop import iterate
from halfseen.solvers.needs import Needs
from halfseen.solvers.prepared_table import prepared_table
from halfseen.solvers.project_to_domain import project_to_domain
from halfseen.solvers.result import Estimate, Note, Status
from halfseen.solvers.sample_gradient import check_sampler, gradient_of_row

Floats = NDArray[np.float64]
Average = Literal["all", "suffix"]

NEEDS = Needs({TableKind.VALUES: {RuleKind.THRESHOLDS}})
# Suffix averaging leaves out the first half, in which steps of 1/(λi) still throw the iterate about.
SUFFIX = 0.5
# Above this share of overshooting steps the average of all iterates is no longer trusted.
MOST_WILD = 0.2


@dataclass
class State:
    """The least that the next step needs."""

    mean: Floats
    total: Floats
    averaged: int
    step: int


class MissingDescent:
    """Projected SGD on the population likelihood, one batch of rows at a step (Alg. 3)."""

    name = "missing_descent"

    def __init__(
        self,
        conditionals: Conditionals,
        known: Gaussian,
        start: Floats,
        points: list[Floats],
        order: NDArray[np.intp],
        sampler: Sampler,
        strong_convexity: float,
        radius: float,
        batch_size: int,
        average: Average,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self.conditionals, self.known, self.start, self.points = conditionals, known, start, points
        self.order, self.sampler, self.seed, self.n_jobs = order, sampler, seed, n_jobs
        self.strong_convexity, self.radius = strong_convexity, radius
        self.batch_size, self.steps = batch_size, -(-len(order) // batch_size)
        self.average_from = SUFFIX * self.steps if average == "suffix" else 0.0

    def init(self) -> State:
        """Start at μ⁽⁰⁾ (line 1)."""
        return State(self.start.copy(), np.zeros_like(self.start), 0, 0)

    def step(self, state: State) -> tuple[State, dict[str, Any]]:
        """Lines 3 to 7: rows, step 1/(λi), gradient, move, projection."""
        first = state.step * self.batch_size
        rows = self.order[first : first + self.batch_size]

        def gradient(k: int) -> Floats:
            return gradient_of_row(
                self.conditionals,
                int(rows[k]),
                state.mean,
                self.known,
                self.points[rows[k]],
                self.sampler,
                keyed_generator(self.seed, Purpose.MISSING_DESCENT, first + k),
            )[0]

        jobs = 1 if len(rows) == 1 else self.n_jobs
        total = np.zeros_like(state.mean)
        for part in map_in_order(gradient, range(len(rows)), jobs):
            total += part
        g = total / len(rows)
        moved = state.mean - g / (self.strong_convexity * (state.step + 1))
        mean = project_to_domain(self.start, moved, self.radius, self.known)
        late = state.step >= self.average_from
        return (
            State(
                mean,
                state.total + mean if late else state.total,
                state.averaged + int(late),
                state.step + 1,
            ),
            {"mean": mean},
        )

    def done(self, state: State) -> bool:
        """Never before the last row."""
        return False


def missing_descent(
    X: Any,
    missingness: Missingness,
    covariance: ArrayLike | None = None,
    *,
    sampler: Sampler | None = None,
    beta: float | None = None,
    strong_convexity: float | None = None,
    projection_radius: float | None = None,
    initial_rows: int | None = None,
    passes: int = 1,
    batch_size: int = 1,
    average: Average = "all",
    random_state: RandomState = None,
    progress: bool = False,
    n_jobs: int | None = None,
) -> Estimate:
    """Learn the mean of a Gaussian with known covariance under linear thresholds.

    Parameters
    ----------
    X : array-like of shape (n, d)
        NaN where a value is hidden.
    missingness : LinearThreshold
    covariance : array-like of shape (d, d)
        Σ, known.
    sampler : Sampler, optional
        Draws the hidden part of a row. ``samplers.ProjectedLangevin(step_size, steps, radius)`` by
        default (the paper's η_lmc, M_grad, R_lmc); ``samplers.Gibbs()`` has no bias at the boundary.
    beta : float, optional
        β: share of the columns in a block; one column by default.
    strong_convexity : float, optional
        λ_sgd; by default αβ/λ_max(Σ), the paper's constant. Steps are 1/(λ_sgd·i). Columns are divided
        by their standard deviations first, so Σ is a correlation matrix here.
    projection_radius : float, optional
        r_proj; by default a bound on how far the start can be from the truth.
    initial_rows : int, optional
        M_init: rows for the start; all by default.
    passes : int
        How often to go over the rows; M_sgd is ``passes · n / batch_size``.
    batch_size : int
        Rows for one gradient.
    average : {"all", "suffix"}
        Average every iterate, as in the paper, or only the second half.
    random_state : int, Generator or None
    progress : bool
        Whether to show a bar.
    n_jobs : int or None
        Threads for batches; the answer does not depend on it.

    Returns
    -------
    Fit
        ``history["iterates"]`` holds the trace, ``history["defaults"]`` the parameters used.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> truth = hs.Gaussian([0.0, 0.5], [[1.0, 0.5], [0.5, 1.0]])
    >>> rule = hs.LinearThreshold.larger_of(0, 1, 2)
    >>> X = hs.simulate(truth, rule, 2000)
    >>> fit = hs.solvers.missing_descent(X, rule, truth.covariance, random_state=0)
    >>> bool(hs.metrics.mahalanobis_error(fit.mean, truth) < 0.2)
    True
    """
    data = prepared_table(X, missingness if isinstance(missingness, Missingness) else None)
    thresholds = data.stated
    if not isinstance(thresholds, LinearThreshold):
        came = missingness if thresholds is None else thresholds
        raise InputError(
            f"missing_descent needs a LinearThreshold rule; got {type(came).__name__}."
        )
    values, names = data.values, data.names
    passes, batch_size = whole_number("passes", passes), whole_number("batch_size", batch_size)
    resolve_jobs(n_jobs)
    _check(values, names, thresholds, average)
    known = check_covariance(covariance, values.shape[1])
    # In units of each column's own standard deviation, so that no unit enters λ, r or a step.
    scale = known.standard_deviations
    values, rule = values / scale, thresholds.scaled(scale)
    unit = Gaussian(np.zeros_like(scale), known.correlation)
    defaults = derive_defaults(values, unit, beta)
    start = initialize(Table(values, names), beta, initial_rows)
    seed = seed_of(random_state)
    conditionals = Conditionals(unit.covariance, rule, values, names)
    solver = MissingDescent(
        conditionals,
        unit,
        start,
        conditionals.feasible_points(start),
        _order_of_rows(len(values), passes, seed),
        check_sampler(sampler),
        _given("strong_convexity", strong_convexity, defaults.strong_convexity),
        _given("projection_radius", projection_radius, defaults.projection_radius),
        batch_size,
        average,
        seed,
        n_jobs,
    )
    with single_blas_thread():
        state, record = iterate(solver, progress)
    iterates = np.array([info["mean"] for info in record])
    history = {
        "seed": seed,
        "start": start * scale,
        "iterates": iterates * scale,
        "defaults": defaults,
        "strong_convexity": solver.strong_convexity,
        "projection_radius": solver.radius,
    }
    share = (~np.isnan(values)).mean(axis=0)
    gaussian = Gaussian(scale * state.total / state.averaged, known.covariance)
    notes = _notes(solver, iterates)
    return Estimate(gaussian, "missing_descent", names, len(values), share, notes, history)


def _order_of_rows(n: int, passes: int, seed: int) -> NDArray[np.intp]:
    """Return every row once in each pass, shuffled: the sample of line 3."""
    shuffles = (keyed_generator(seed, Purpose.ORDER_OF_ROWS, p) for p in range(passes))
    return np.concatenate([rng.permutation(n) for rng in shuffles])


def _notes(solver: MissingDescent, iterates: Floats) -> tuple[Note, ...]:
    notes = []
    late = iterates[len(iterates) // 2 :] - solver.start
    gaps = np.linalg.norm(np.linalg.solve(solver.known.cholesky, late.T), axis=0)
    if np.median(gaps) > 0.999 * solver.radius:
        text = "Iterates are as far from their start as allowed; try a larger projection_radius."
        notes.append(Note(Status.ON_DOMAIN_EDGE, text))
    # A step 1/(λi) overshoots while it is longer than 1/(largest curvature) = λ_min(Σ).
    steepest = 1.0 / float(np.linalg.eigvalsh(solver.known.covariance)[0])
    # What counts is the part of the descent that is averaged.
    left_out = solver.average_from / solver.steps
    wild = (steepest / (solver.strong_convexity * solver.steps) - left_out) / (1.0 - left_out)
    if wild > MOST_WILD:
        text = (
            f"Steps overshoot in about {min(wild, 1.0):.0%} of those averaged, so the answer is off. "
            'Use more passes, smaller batches, or average="suffix".'
        )
        notes.append(Note(Status.NOT_CONVERGED, text))
    return tuple(notes)


def _check(values: Floats, names: tuple[str, ...], rule: LinearThreshold, average: str) -> None:
    rule.check_width(values.shape[1])
    check_finite(values, names)
    rule.check(values, names)
    never = np.flatnonzero(np.isnan(values).all(axis=0))
    if never.size:
        raise NotIdentifiedError(
            f"column {names[never[0]]} is never seen in {len(values)} rows, so its mean has nowhere "
            "to start from. Leave it out, or express the rule through columns that are seen."
        )
    if average not in ("all", "suffix"):
        raise InputError(f'average must be "all" or "suffix"; got {average!r}.')


def _given(name: str, value: float | None, default: float) -> float:
    return default if value is None else positive_number(name, value)
