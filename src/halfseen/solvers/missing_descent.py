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
from halfseen.solvers.persistent_descent import PersistentDescent, usual_batch
from halfseen.solvers.prepared_table import Needs, prepared_table
from halfseen.solvers.project_to_domain import project_to_domain
from halfseen.solvers.result import Estimate, Note, Status
from halfseen.solvers.sample_gradient import check_sampler, gradient_of_row

Floats = NDArray[np.float64]
Average = Literal["all", "suffix"]
Form = Literal["persistent", "paper"]

NEEDS = Needs({TableKind.VALUES: {RuleKind.THRESHOLDS}})
# Suffix averaging leaves out the first half, in which steps of 1/(λi) still throw the iterate about.
SUFFIX = 0.5
# Of the listing: one row at a step, once, and the average of all iterates.
LISTING_PASSES, LISTING_BATCH = 1, 1
# Above this share of overshooting steps the average of all iterates is no longer trusted.
MOST_WILD = 0.2


@dataclass
class State:
    """The least that the next step needs."""

    mean: Floats
    total: Floats
    averaged: int
    step: int

    @property
    def average(self) -> Floats:
        """The answer so far."""
        return self.total / self.averaged


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
        strong_convexity: float,
        radius: float,
        batch_size: int,
        sampler: Sampler,
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

    def doubt(self, state: State) -> str | None:
        """Say so where steps are too long for the average to be trusted."""
        # A step 1/(λi) overshoots while it is longer than 1/(largest curvature) = λ_min(Σ).
        steepest = 1.0 / float(np.linalg.eigvalsh(self.known.covariance)[0])
        # What counts is the part of the descent that is averaged.
        left_out = self.average_from / self.steps
        wild = (steepest / (self.strong_convexity * self.steps) - left_out) / (1.0 - left_out)
        if wild <= MOST_WILD:
            return None
        return (
            f"Steps overshoot in about {min(wild, 1.0):.0%} of those averaged, so the answer is off. "
            'Use more passes, smaller batches, or average="suffix".'
        )


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
    passes: int | None = None,
    batch_size: int | None = None,
    average: Average | None = None,
    form: Form = "persistent",
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
        With ``form="paper"``: draws the hidden part of a row.
        ``samplers.ProjectedLangevin(step_size, steps, radius)`` by default (the paper's η_lmc, M_grad,
        R_lmc); ``samplers.Gibbs()`` has no bias at the boundary.
    beta : float, optional
        β: share of the columns in a block; one column by default.
    strong_convexity : float, optional
        λ_sgd; by default αβ/λ_max(Σ), the paper's constant. Columns are divided by their standard
        deviations first, so Σ is a correlation matrix here. Steps of the paper's form are 1/(λ_sgd·i);
        otherwise it bounds the curvature from below.
    projection_radius : float, optional
        r_proj; by default a bound on how far the start can be from the truth.
    initial_rows : int, optional
        M_init: rows for the start; all by default.
    passes : int, optional
        How often to go over the rows: by default from 10 to 40 times, until draws hardly add to the
        error; once in the paper's form. M_sgd is ``passes · n / batch_size``.
    batch_size : int, optional
        Rows for one gradient: by default a twentieth of them, and one in the paper's form.
    average : {"all", "suffix"}, optional
        With ``form="paper"``: average every iterate, as in the paper, or only the second half.
    form : {"persistent", "paper"}
        How rows are drawn and steps are made. "paper" is the listing of Algorithm 3: each row once, by
        a new chain, and a step of 1/(λ_sgd·i) along its gradient; the bias of the chain stays in the
        answer, however many rows there are. "persistent" has a chain for each row that goes on from
        pass to pass, in exact moves that no wall biases; steps shrink from pass to pass, and
        are preconditioned by the curvature that the draws show.
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
    resolve_jobs(n_jobs)
    _check(values, names, thresholds)
    options = _read_options(form, passes, batch_size, sampler, average, values.shape)
    known = check_covariance(covariance, values.shape[1])
    # In units of each column's own standard deviation, so that no unit enters λ, r or a step.
    scale = known.standard_deviations
    values, rule = values / scale, thresholds.scaled(scale)
    unit = Gaussian(np.zeros_like(scale), known.correlation)
    defaults = derive_defaults(values, unit, beta)
    start = initialize(Table(values, names), beta, initial_rows)
    seed = seed_of(random_state)
    conditionals = Conditionals(unit.covariance, rule, values, names)
    points = conditionals.feasible_points(start)
    order = _order_of_rows(len(values), options.rounds, seed)
    strong_convexity = _given("strong_convexity", strong_convexity, defaults.strong_convexity)
    radius = _given("projection_radius", projection_radius, defaults.projection_radius)
    shared = conditionals, unit, start, points, order, strong_convexity, radius
    solver: MissingDescent | PersistentDescent
    if options.form == "paper":
        solver = MissingDescent(
            *shared, options.batch_size, options.sampler, options.average, seed, n_jobs
        )
    else:
        solver = PersistentDescent(*shared, options.batch_size, options.passes, seed, n_jobs)
    with single_blas_thread():
        state, record = iterate(solver, progress)  # type: ignore[misc]
    iterates = np.array([info["mean"] for info in record])
    history = {
        "seed": seed,
        "start": start * scale,
        "iterates": iterates * scale,
        "defaults": defaults,
        "strong_convexity": strong_convexity,
        "projection_radius": radius,
        "form": options.form,
    }
    share = (~np.isnan(values)).mean(axis=0)
    gaussian = Gaussian(scale * state.average, known.covariance)
    notes = _notes(solver, state, iterates)
    return Estimate(gaussian, "missing_descent", names, len(values), share, notes, history)


def _order_of_rows(n: int, passes: int, seed: int) -> NDArray[np.intp]:
    """Return every row once in each pass, shuffled: the sample of line 3."""
    shuffles = (keyed_generator(seed, Purpose.ORDER_OF_ROWS, p) for p in range(passes))
    return np.concatenate([rng.permutation(n) for rng in shuffles])


@dataclass(frozen=True)
class Options:
    """What was asked for, with the defaults of the form."""

    form: Form
    passes: int | None
    batch_size: int
    sampler: Sampler
    average: Average

    @property
    def rounds(self) -> int:
        """How many orders of the rows are wanted: batches of chains that go on stay together."""
        return self.passes or 1 if self.form == "paper" else 1


def _read_options(
    form: Form,
    passes: int | None,
    batch_size: int | None,
    sampler: Sampler | None,
    average: Average | None,
    shape: tuple[int, int],
) -> Options:
    if form not in ("persistent", "paper"):
        raise InputError(f'form must be "persistent" or "paper"; got {form!r}.')
    listing, chosen = form == "paper", check_sampler(sampler)
    for name, given in (("sampler", sampler), ("average", average)):
        if given is not None and not listing:
            raise InputError(
                f'{name}= is an option of the paper\'s listing. Pass form="paper" with it, or leave it '
                "out."
            )
    average = "all" if average is None else average
    if average not in ("all", "suffix"):
        raise InputError(f'average must be "all" or "suffix"; got {average!r}.')
    usual = (LISTING_PASSES, LISTING_BATCH) if listing else (None, usual_batch(*shape))
    return Options(
        form,
        usual[0] if passes is None else whole_number("passes", passes),
        usual[1] if batch_size is None else whole_number("batch_size", batch_size),
        chosen,
        average,
    )


def _notes(solver: Any, state: Any, iterates: Floats) -> tuple[Note, ...]:
    notes = []
    late = iterates[len(iterates) // 2 :] - solver.start
    gaps = np.linalg.norm(np.linalg.solve(solver.known.cholesky, late.T), axis=0)
    if np.median(gaps) > 0.999 * solver.radius:
        text = "Iterates are as far from their start as allowed; try a larger projection_radius."
        notes.append(Note(Status.ON_DOMAIN_EDGE, text))
    doubt = solver.doubt(state)
    if doubt is not None:
        notes.append(Note(Status.NOT_CONVERGED, doubt))
    return tuple(notes)


def _check(values: Floats, names: tuple[str, ...], rule: LinearThreshold) -> None:
    rule.check_width(values.shape[1])
    check_finite(values, names)
    rule.check(values, names)
    never = np.flatnonzero(np.isnan(values).all(axis=0))
    if never.size:
        raise NotIdentifiedError(
            f"column {names[never[0]]} is never seen in {len(values)} rows, so its mean has nowhere "
            "to start from. Leave it out, or express the rule through columns that are seen."
        )


def _given(name: str, value: float | None, default: float) -> float:
    return default if value is None else positive_number(name, value)
