"""``truncated_sgd``: learning a Gaussian from samples truncated to a set known by an oracle.

Algorithm 1 of Daskalakis, Gouleakis, Tzamos, Zampetakis (2018), the subroutine ``Uni/Biv_SGD_trunc``
of the paper's Algorithm 1. In natural parameters T = Σ⁻¹, ν = Σ⁻¹μ the loss

    E_x[½ xᵀTx − νᵀx] + log ∫_S exp(νᵀz − ½ zᵀTz) dz

is convex; its gradient is the moments of N(T⁻¹ν, T⁻¹) restricted to S, drawn by rejection through the
oracle, less those of the data.

Where this differs from the listing, and why:

* The data enter the gradient only through their mean moments, so these are used whole instead of one
  sampled row at a time. That removes half of the noise and costs nothing; ``data_batch`` samples rows.
* Steps are taken in the metric of the covariance of the sufficient statistics, which is the Hessian of
  the loss at the truth. Whitening the rows alone leaves condition numbers of a thousand.
* The radius of the domain is computed from α exactly (``solvers.domain``), not up to O(·). Points are
  projected in the metric of the steps up to three dimensions; beyond, by clipping eigenvalues, which
  ends on the edge too, but not always at its best point.
* Several draws make one gradient, so that the oracle is asked in batches.

How much of the Gaussian that was learned the set holds is counted afterwards, and compared with α.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.data.table import LARGEST_SQUARED, TableKind, check_finite
from halfseen.errors import InputError, NotIdentifiedError, warn
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import RuleKind
from halfseen.missingness.truncation import RowTruncation
from halfseen.parallel import single_blas_thread
from halfseen.samplers.rejection import draw_by_rejection
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.solvers.domain import Domain, from_upper, upper_entries, upper_triangle
from halfseen.solvers.loop import iterate
from halfseen.solvers.newton import minimise
from halfseen.solvers.prepared_table import Needs, prepared_table
from halfseen.solvers.result import Estimate, Note, Status
from halfseen.theta import size_of

Floats = NDArray[np.float64]
# Up to this many statistics the full metric is used; beyond, its diagonal.
LARGEST_METRIC = 600
# Draws that tell the mass of the set: one of 0.1 to two per cent.
MASS_DRAWS = 2**15
# The mass is clearly below alpha if it is by so many standard errors: by chance in 1 of 30 000 fits.
CLEARLY = 4.0
Accept = Callable[[Floats, np.random.Generator], NDArray[np.bool_]]
NEEDS = Needs({TableKind.VALUES: {RuleKind.WHOLE_ROWS}})
# Noise of the draws as a share of the statistical error: an average over m draws has covariance H⁻¹/m
# where the data leave H⁻¹/n, so m = n/ACCURACY² inflates the error by 1 + ACCURACY²/2, two per cent.
ACCURACY = 0.2
STEPS = 120
SMALLEST_BATCH = 256
# γ_t = (1 + t/20)^-0.7: between 1/2 and 1, as averaging needs (Polyak and Juditsky 1992); flat at first,
# because a step of 1 in this metric is Newton's.
DECAY_START, DECAY_POWER = 20.0, 0.7
# Iterates after this share of the steps are averaged.
AVERAGE_FROM = 0.4
REPEATS = 3
# Mass of the set when nothing is known about it: rows may have been dropped unseen.
UNKNOWN_ALPHA = 0.1
# Up to this dimension a point outside the domain is projected in the metric of the steps, so that an
# optimum on the edge is found; beyond, eigenvalues are clipped.
LARGEST_EXACT_PROJECTION = 3
PULL = 0.05
# An average of iterates of which more than this share had to be projected lies on the edge.
EDGE_SHARE = 0.1
# No step is longer than this, in standard deviations of the sufficient statistics.
LONGEST_STEP = 1.0


def statistics_of(Z: Floats) -> Floats:
    """Sufficient statistics of each row: z, and −z_i z_j (−½ z_i² on the diagonal)."""
    i, j = upper_triangle(Z.shape[1])
    return np.concatenate([Z, Z[:, i] * Z[:, j] * np.where(i == j, -0.5, -1.0)], axis=1)


def metric_of(rows: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the sufficient statistics over the data, block by block."""
    k = rows.shape[1]
    p = size_of(k)
    full = p <= LARGEST_METRIC
    total, square = np.zeros(p), np.zeros((p, p) if full else p)
    step = max(1, 2**20 // p)
    for start in range(0, len(rows), step):
        S = statistics_of(rows[start : start + step])
        total += S.sum(axis=0)
        square += S.T @ S if full else (S**2).sum(axis=0)
    mean = total / len(rows)
    covariance = square / len(rows) - (np.outer(mean, mean) if full else mean**2)
    # With few rows the covariance is singular; a Gaussian's own one is added with the weight of p rows.
    prior = np.concatenate([np.ones(k), upper_entries(np.ones((k, k)) - 0.5 * np.eye(k))])
    weight = p / (p + len(rows))
    return mean, (1.0 - weight) * covariance + weight * (np.diag(prior) if full else prior)


def mass_of_set(
    rows: Floats, rule: RowTruncation, gaussian: Gaussian, accuracy: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Mass of the set under the Gaussian that was learned, and its relative standard error.

    The slope of log P(S) in the natural parameters is g = E[t | S] − E[t], with t the sufficient
    statistics, and the parameters have covariance H⁻¹/n with H the covariance of t in the set. So
    log P(S) has variance g'H⁻¹g/n, and 1 + accuracy² times that with the noise of the descent;
    counting hits adds that of a binomial share. Where there are too many statistics for all of H, its
    diagonal stands for it.
    """
    with single_blas_thread():
        hits = int(rule.contains(gaussian.sample(MASS_DRAWS, rng)).sum())
        # In coordinates in which the Gaussian is N(0, I).
        white = np.linalg.solve(gaussian.cholesky, (rows - gaussian.mean).T).T
        inside, metric = metric_of(white.astype(np.float64, copy=False))
    mass = (hits + 0.5) / (MASS_DRAWS + 1.0)
    k = white.shape[1]
    slope = inside - np.concatenate([np.zeros(k), upper_entries(-0.5 * np.eye(k))])
    step = slope / metric if metric.ndim == 1 else np.linalg.solve(metric, slope)
    statistical = (1.0 + accuracy**2) * float(slope @ step) / len(rows)
    return mass, math.sqrt(statistical + (1.0 - mass) / (mass * MASS_DRAWS))


def compare_with_alpha(
    mass: float, error: float, alpha: float, stated: bool, seen: int, rows: int
) -> None:
    """Warn if the set holds clearly less than alpha of what was learned."""
    from_rows = not stated and seen < rows
    # A share of rows is an estimate too.
    both = math.hypot(error, math.sqrt((1.0 - alpha) / (alpha * rows)) if from_rows else 0.0)
    if math.log(alpha / mass) <= CLEARLY * both:
        return
    if from_rows:
        origin = f"alpha is {alpha:.2g}, the share of rows that are seen"
        advice = "Hidden rows may be absent from the table, or a Gaussian does not fit the rows."
    else:
        origin = f"alpha is {alpha:g}" + ("" if stated else ", as none was stated")
        advice = "alpha is a lower bound on that, and limits the search: pass a smaller alpha=."
    warn(
        f"{origin}, but the set holds {mass:.2g} of the Gaussian that was learned (standard error "
        f"{mass * error:.1g}). {advice}"
    )


@dataclass
class State:
    """The least that the next step needs."""

    theta: Floats
    total: Floats
    averaged: int
    step: int
    acceptance: float
    projected: int

    @property
    def average(self) -> Floats:
        """The averaged iterate."""
        return self.total / self.averaged if self.averaged else self.theta


class TruncatedSGD:
    """One run of projected SGD, in whitened coordinates.

    Parameters
    ----------
    rows : array of shape (n, k)
        Seen rows, with mean 0 and identity covariance.
    accept : callable
        Oracle in whitened coordinates.
    alpha : float
        Share of the distribution that is seen, at least.
    draws : int
        Accepted draws in all.
    """

    name = "truncated_sgd"

    def __init__(
        self,
        rows: Floats,
        accept: Accept,
        alpha: float,
        draws: int,
        rng: np.random.Generator,
        data_batch: int | None = None,
        steps: int = STEPS,
    ) -> None:
        self.k = rows.shape[1]
        self.rows, self.accept, self.rng = rows, accept, rng
        self.steps, self.data_batch = steps, data_batch
        self.batch = max(SMALLEST_BATCH, math.ceil(draws / steps))
        self.domain = Domain.around(np.eye(self.k)[None], alpha)
        self.target, self.metric = metric_of(rows)

    def init(self) -> State:
        """Start at the seen moments themselves: ν = 0, T = I."""
        theta = self.domain.start()[0]
        return State(theta, np.zeros_like(theta), 0, 0, 0.5, 0)

    def step(self, state: State) -> tuple[State, dict[str, Any]]:
        """Draw a gradient, move, and project."""
        nu, T = state.theta[: self.k], from_upper(state.theta[self.k :], self.k)
        L = np.linalg.cholesky(np.linalg.inv(T))
        mu = L @ (L.T @ nu)

        def propose(m: int, rng: np.random.Generator) -> Floats:
            return mu + rng.standard_normal((m, self.k)) @ L.T

        Z, share = draw_by_rejection(propose, self.accept, self.batch, self.rng, state.acceptance)
        target = self.target
        if self.data_batch is not None:
            chosen = self.rng.integers(len(self.rows), size=self.data_batch)
            target = statistics_of(self.rows[chosen]).mean(axis=0)
        gradient = statistics_of(Z).mean(axis=0) - target
        direction = self._in_metric(gradient)
        size = (1.0 + state.step / DECAY_START) ** -DECAY_POWER
        length = math.sqrt(max(float(gradient @ direction), 0.0))
        theta = state.theta - size * min(1.0, LONGEST_STEP / max(length, 1e-300)) * direction
        theta, projected = self._project(theta)
        late = state.step >= AVERAGE_FROM * self.steps
        following = State(
            theta,
            state.total + theta if late else state.total,
            state.averaged + int(late),
            state.step + 1,
            share,
            state.projected + int(late and projected),
        )
        return following, {"acceptance": share, "gradient_length": length}

    def _project(self, theta: Floats) -> tuple[Floats, bool]:
        """Bring θ back into the domain, in the metric of the steps where that is cheap."""
        if np.isfinite(self.domain.barrier(theta[None])[0][0]):
            return theta, False
        nu, T = self.domain.project(theta[: self.k], from_upper(theta[self.k :], self.k))
        near = np.concatenate([nu, upper_entries(T)])
        if self.k > LARGEST_EXACT_PROJECTION:
            return near, True
        start = (1.0 - PULL) * near + PULL * self.domain.start()[0]

        def distance(trial: Floats, problems: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
            gap = trial - theta
            slope = gap @ self.metric
            return 0.5 * (gap * slope).sum(axis=1), slope, self.metric[None]

        return minimise(distance, self.domain, start[None], stage=1).theta[0], True

    def done(self, state: State) -> bool:
        """Never before the last step: the number of steps sets the accuracy."""
        return False

    def _in_metric(self, gradient: Floats) -> Floats:
        if self.metric.ndim == 1:
            return gradient / self.metric
        return np.asarray(np.linalg.solve(self.metric, gradient), dtype=np.float64)

    def distance(self, a: Floats, b: Floats) -> float:
        """Length of a − b in units of the standard error of one row."""
        gap = a - b
        weighted = self.metric * gap if self.metric.ndim == 1 else self.metric @ gap
        return math.sqrt(max(float(gap @ weighted), 0.0))


def truncated_sgd(
    X: Any,
    contains: RowTruncation | Callable[[Floats], ArrayLike],
    *,
    alpha: float | None = None,
    accuracy: float = ACCURACY,
    repeats: int = REPEATS,
    data_batch: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> Estimate:
    """Learn a Gaussian from rows that were shown because they lie in a set.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows that were seen; rows of NaN are hidden ones, which only inform ``alpha``.
    contains : RowTruncation or callable
        Membership oracle: rows of shape (m, d) to m booleans. It is asked in batches.
    alpha : float, optional
        Lower bound on the mass of the set. By default the share of rows that are seen where some are
        not, else 0.1. An ``AssumptionWarning`` says if the set holds clearly less of what was learned.
    accuracy : float
        Monte-Carlo error, as a share of the statistical error.
    repeats : int
        Independent runs; the one nearest to most others is returned (boosting).
    data_batch : int, optional
        Rows sampled for each gradient, as in the listing; by default all of them.
    random_state : int, Generator or None
    progress : bool
        Whether to show a bar.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import halfseen as hs
    >>> truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.3], [0.3, 1.0]])
    >>> ring = hs.RowTruncation(lambda Y: (Y**2).sum(axis=1) > 1)
    >>> X = hs.simulate(truth, ring, 5000)
    >>> fit = hs.solvers.truncated_sgd(X, ring, random_state=0)
    >>> bool(hs.metrics.mahalanobis_error(fit.mean, truth) < 0.1)
    True
    """
    rule = contains if isinstance(contains, RowTruncation) else RowTruncation(contains)
    data = prepared_table(X, rule)
    values, names = data.values, data.names
    check_finite(values, names, LARGEST_SQUARED)
    rule.check(values, names)
    rows = values[~np.isnan(values).any(axis=1)]
    if len(rows) == 0:
        raise NotIdentifiedError("no row is seen, so nothing can be learned.")
    stated = alpha is not None
    if alpha is None:
        alpha = len(rows) / len(values) if len(rows) < len(values) else UNKNOWN_ALPHA
    if not 0.0 < alpha <= 1.0:
        raise InputError(f"alpha must lie between 0 and 1; got {alpha!r}.")
    seed = seed_of(random_state)
    gaussian, notes, history = learn_truncated(
        rows,
        lambda Y, rng: rule.contains(Y),
        alpha,
        names,
        accuracy=accuracy,
        repeats=repeats,
        data_batch=data_batch,
        seed=seed,
        progress=progress,
    )
    # A stream of its own, after those of the runs.
    rng = keyed_generator(seed, Purpose.TRUNCATED_SGD, repeats)
    mass, error = mass_of_set(rows, rule, gaussian, accuracy, rng)
    history |= {"mass": mass, "mass_error": error}
    # On the edge the status speaks of alpha already, and the error is not that of an optimum.
    if not any(note.status is Status.ON_DOMAIN_EDGE for note in notes):
        compare_with_alpha(mass, error, alpha, stated, len(rows), len(values))
    share = np.full(values.shape[1], len(rows) / len(values))
    return Estimate(gaussian, "truncated_sgd", names, len(values), share, tuple(notes), history)


def learn_truncated(
    rows: Floats,
    accept: Accept,
    alpha: float,
    names: tuple[str, ...],
    *,
    accuracy: float = ACCURACY,
    repeats: int = REPEATS,
    data_batch: int | None = None,
    seed: int,
    place: tuple[int, ...] = (),
    progress: bool = False,
) -> tuple[Gaussian, list[Note], dict[str, Any]]:
    """Whiten, run ``repeats`` times, choose, and undo the whitening."""
    if not accuracy > 0.0:
        raise InputError(f"accuracy must be above 0; got {accuracy!r}.")
    if repeats < 1:
        raise InputError(f"repeats must be at least 1; got {repeats!r}.")
    if data_batch is not None and data_batch < 1:
        raise InputError(f"data_batch must be at least 1 or None; got {data_batch!r}.")
    mean, factor = _whitening(rows, names)
    inverse = np.linalg.inv(factor)
    white = (rows - mean) @ inverse.T
    draws = math.ceil(len(rows) / accuracy**2 / (1.0 - AVERAGE_FROM))
    candidates, records, edges = [], [], []
    for repeat in range(repeats):
        solver = TruncatedSGD(
            white,
            lambda Z, rng: accept(mean + Z @ factor.T, rng),
            alpha,
            draws,
            keyed_generator(seed, Purpose.TRUNCATED_SGD, *place, repeat),
            data_batch,
        )
        with single_blas_thread():
            state, record = iterate(solver, progress)
        candidates.append(state.average)
        records.append(record)
        edges.append(state.projected > EDGE_SHARE * state.averaged)
    best, disagreement = _boost(candidates, solver)
    theta = candidates[best]
    k = white.shape[1]
    T = from_upper(theta[k:], k)
    sigma = np.linalg.inv(T)
    gaussian = Gaussian(mean + factor @ sigma @ theta[:k], factor @ sigma @ factor.T)
    notes = _notes(solver, theta, edges[best], disagreement, len(rows), names)
    history = {"seed": seed, "chosen": best, "runs": records, "disagreement": disagreement}
    return gaussian, notes, history


def _boost(candidates: list[Floats], solver: TruncatedSGD) -> tuple[int, float]:
    """Return the candidate whose median distance to the others is least, and that distance."""
    if len(candidates) == 1:
        return 0, 0.0
    table = np.array([[solver.distance(a, b) for b in candidates] for a in candidates])
    off = table[~np.eye(len(candidates), dtype=bool)].reshape(len(candidates), -1)
    medians = np.median(off, axis=1)
    best = int(np.argmin(medians))
    return best, float(medians[best])


def _notes(
    solver: TruncatedSGD,
    theta: Floats,
    edge: bool,
    disagreement: float,
    n: int,
    names: tuple[str, ...],
) -> list[Note]:
    notes = []
    where = " ~ ".join(names) if len(names) <= 2 else f"{len(names)} columns"
    if edge or solver.domain.on_edge(theta[None])[0]:
        text = f"On the edge: {where}. The domain follows from alpha, the least mass of the set; try a "
        notes.append(
            Note(Status.ON_DOMAIN_EDGE, text + "smaller alpha= if rows were dropped unseen.")
        )
    # The statistical error has length √(p/n) in this metric.
    if disagreement > math.sqrt(theta.size / n):
        notes.append(
            Note(
                Status.NOT_CONVERGED,
                f"Runs disagree by more than the statistical error: {where}. Ask for a smaller "
                "accuracy=.",
            )
        )
    return notes


def _whitening(rows: Floats, names: tuple[str, ...]) -> tuple[Floats, Floats]:
    n, k = rows.shape
    if n <= k:
        raise NotIdentifiedError(
            f"{n} rows are seen whole in {k} columns ({', '.join(names[:3])}); at least {k + 1} "
            "are needed to learn a covariance."
        )
    mean = rows.mean(axis=0)
    centred = rows - mean
    spread = np.sqrt((centred**2).mean(axis=0))
    if (spread == 0.0).any():
        i = int(np.flatnonzero(spread == 0.0)[0])
        raise NotIdentifiedError(
            f"column {names[i]} is constant: every seen value is {rows[0, i]:.12g}. Leave it out."
        )
    scaled = centred / spread
    correlation = scaled.T @ scaled / n
    values, _ = np.linalg.eigh(correlation)
    if values[0] < 1e-10:
        raise NotIdentifiedError(
            "the seen rows lie in a subspace: some column is a combination of others. Leave it "
            f"out ({', '.join(names[:5])})."
        )
    return mean, spread[:, None] * np.linalg.cholesky(correlation)
