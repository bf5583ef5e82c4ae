"""``truncated_regression``: one outcome whose row is in the table only if the outcome lies in a set.

A row is y = wβ + e with e ~ N(0, σ²), and it is there iff y ∈ S_r: limits that all rows share (incomes
below a threshold), or their own (stars bright enough for their distance). That row r is there says
something of w too, so nothing can be learned from the law of the covariates; what is maximised is

    Σ_r log p(y_r | w_r, y_r ∈ S_r),   p(y | w, y ∈ S) = exp(ν y − ½ T y²) / ∫_S exp(ν z − ½ T z²) dz,

with ν = wδ, δ = β/σ² and T = 1/σ². In these natural parameters it is concave whatever the sets are,
unions of intervals included, because the logarithm of the integral is convex (Daskalakis, Gouleakis,
Tzamos, Zampetakis 2019, *Computationally and statistically efficient truncated regression*). In those of
Olsen (1978), β/σ and 1/σ, it is so for censored rows, but not everywhere for truncated ones.

The maximum need not exist: values above a limit whose spread is as large as their distance from it are
described ever better as σ grows. The search keeps to a bounded domain in which the truth lies if a share
alpha of all rows is seen, as ``solvers.domain`` does where there are no covariates. With z = (y − wβ)/σ,
α_r the mass of S_r, ᾱ its mean and v, V the bounds of that module, means over rows that are seen obey

    E z² <= V(ᾱ),      Var(residuals of least squares) >= v(ᾱ) σ²:

the first is E∫_S z²φ / ᾱ, and an average of sets is a set in which values are seen with a probability;
the second holds as least squares leaves what varies within rows, E[α_r v(α_r)]/ᾱ, and αv(α) is convex.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from halfseen.checks import positive_number, share
from halfseen.errors import ContradictionError, InputError
from halfseen.parallel import single_blas_thread
from halfseen.solvers.domain import SHARE_SLACK, greatest_variance, least_variance
from halfseen.solvers.regression.truncated_rows import Problem, Table, prepare, read_table
from halfseen.solvers.result import Note, Status

Floats = NDArray[np.float64]

# Share of all rows that is in the table, at least, where nothing is said of it. One in a hundred leaves
# room for estimates three standard deviations below a limit, which few tables can tell from further.
UNKNOWN_ALPHA = 0.01
# Below this 1 − α/2 is 1 to a double, and the bounds are lost.
SMALLEST_ALPHA = 1e-12
# Weights of the barrier, for maxima on the edge: as in ``solvers.newton``.
BARRIERS = (1e-2, 1e-4, 1e-6, 1e-8)
# A stage is over when the squared Newton decrement is below this share of its barrier.
CENTRED = 0.1
# Without a barrier it is over when the next step is this long in standard errors, squared, or leads down
# by a share of the objective that rounding could hide. That step is taken on trust, and leaves about its
# square: 1e-8 standard errors.
CLOSE, TRUSTED = 1e-8, 1e-12
# Steps of a stage: Newton's method takes five to ten where the maximum is inside.
MOST_STEPS, MOST_HALVINGS = 40, 40
# Nearer to the edge than this, relative to the size of the domain, is on it.
EDGE_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class TruncatedRegression:
    """A regression that was learned from a table in which rows are missing.

    Attributes
    ----------
    coefficients : array of shape (k,)
    sigma : float
        Standard deviation of the residuals before any row was left out.
    log_likelihood : float
        Of the outcomes given the covariates, and given that the rows are there.
    covariance : array of shape (k + 1, k + 1)
        Of the coefficients and sigma, from the observed information; 0 for what was fixed.
    scores : array of shape (n, k + 1)
        Derivative of each row's weighted log-likelihood in the coefficients and sigma, for errors that
        do not believe the model.
    converged : bool
    on_edge : bool
        Whether the estimate lies on the edge of the domain that alpha allows.
    steps : int
        How often all rows were asked.
    notes : tuple of Note
    """

    coefficients: Floats
    sigma: float
    log_likelihood: float
    covariance: Floats
    scores: Floats
    converged: bool
    on_edge: bool
    steps: int
    notes: tuple[Note, ...]

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of the coefficients and sigma."""
        return np.sqrt(np.diag(self.covariance))


def truncated_regression(
    y: ArrayLike,
    W: ArrayLike,
    lower: ArrayLike = -math.inf,
    upper: ArrayLike = math.inf,
    *,
    weights: ArrayLike | None = None,
    fixed: ArrayLike | None = None,
    sigma: float | None = None,
    alpha: float = UNKNOWN_ALPHA,
    names: Sequence[str] | None = None,
    n_jobs: int | None = None,
) -> TruncatedRegression:
    """Learn a regression from rows that are in the table only if their outcome lies in a set.

    Parameters
    ----------
    y : array of shape (n,)
    W : array of shape (n, k)
        Covariates; a column of ones is the intercept.
    lower, upper : float, or array of shape (n,) or (n, m)
        Ends of the set of each row. With two axes it is a union of m intervals that do not overlap; NaN
        in both ends where a row has fewer.
    weights : array of shape (n,), optional
        What each row counts.
    fixed : array of shape (k,), optional
        Coefficients that are known; NaN where one is learned.
    sigma : float, optional
        Standard deviation of the residuals, if it is known.
    alpha : float
        At least this share of all rows is in the table. It bounds the search: where seen rows leave open
        how far the others are, the estimate ends on the edge of what alpha allows, and says so.
    names : sequence of str, optional
        Names of the covariates, for what is said of them.
    n_jobs : int, optional
        Threads; None for all cores. They never change the answer.

    Returns
    -------
    TruncatedRegression

    Examples
    --------
    >>> import numpy as np
    >>> from halfseen.solvers.regression.truncated import truncated_regression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> y = 1.0 + 2.0 * x + rng.normal(size=2000)
    >>> there = y > 1.0
    >>> W = np.column_stack([np.ones(there.sum()), x[there]])
    >>> found = truncated_regression(y[there], W, lower=1.0)
    >>> (abs(found.coefficients - [1.0, 2.0]) < 3 * found.standard_errors[:2]).all()
    np.True_
    >>> plain = np.linalg.lstsq(W, y[there])[0]
    >>> bool(plain[1] < 1.6)  # least squares does not
    True
    """
    table = read_table(y, W, lower, upper, weights, fixed, names)
    sigma = None if sigma is None else positive_number("sigma", sigma)
    with single_blas_thread():
        problem = prepare(table, sigma, n_jobs)
        domain = _Domain.of(share("alpha", alpha, "0.1"), problem)
        return _told(table, problem, _maximise(problem, domain), alpha)


# --- the search ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Domain:
    """Where θ = (δ, T) can be, in units in which covariates are white and residuals have variance 1.

    Both bounds are simple there: T >= v, and mean z² = (T² + ‖δ‖²)/T <= V.
    """

    least: float
    greatest: float

    @classmethod
    def of(cls, alpha: float, problem: Problem) -> _Domain:
        """Domain for at least a share alpha of rows."""
        if alpha < SMALLEST_ALPHA:
            raise InputError(f"alpha must be at least {SMALLEST_ALPHA:g}; got {alpha!r}.")
        slack = SHARE_SLACK * alpha
        least, greatest = float(least_variance(slack)), float(greatest_variance(slack))
        if problem.known is None:
            return cls(least, greatest)
        # Least squares has the least mean of z².
        if problem.known >= greatest:
            sigma = problem.spread / math.sqrt(problem.known)
            raise ContradictionError(
                f"sigma is {sigma:g}, but y varies by {problem.spread:.3g} around least squares. If a "
                f"share alpha = {alpha:g} of all rows is seen, that cannot be more than "
                f"{math.sqrt(greatest):.2g} times sigma. Correct sigma, or pass a smaller alpha."
            )
        return cls(0.0, greatest)

    def margins(self, theta: Floats) -> tuple[float, float]:
        """Return T − v and TV − T² − ‖δ‖², which are positive inside, and concave."""
        T = float(theta[-1])
        return T - self.least, T * self.greatest - float(theta @ theta)

    def barrier(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Minus the logarithms of the margins, with gradient and Hessian, at a point inside."""
        a, c = self.margins(theta)
        slope = -2.0 * theta
        slope[-1] += self.greatest
        g, H = -slope / c, np.outer(slope, slope) / c**2 + 2.0 / c * np.eye(theta.size)
        g[-1] -= 1.0 / a
        H[-1, -1] += 1.0 / a**2
        return -math.log(a) - math.log(c), g, H

    def on_edge(self, theta: Floats) -> bool:
        """Whether a point is as good as on the edge."""
        a, c = self.margins(theta)
        near_least = self.least > 0.0 and a < EDGE_TOLERANCE * self.least
        return near_least or c < EDGE_TOLERANCE * self.greatest * float(theta[-1])


@dataclass
class _Search:
    """Where the search is: parameters, and what all rows say there."""

    problem: Problem
    domain: _Domain
    theta: Floats
    steps: int = 0

    def __post_init__(self) -> None:
        self.ask(self.theta)

    def ask(self, theta: Floats) -> None:
        """Go somewhere, and ask all rows."""
        self.theta, self.parts = theta, self.problem.objective(theta)
        self.steps += 1

    def value(self, weight: float) -> float:
        """Return the objective with a barrier of this weight."""
        return self.parts[0] + (weight * self.domain.barrier(self.theta)[0] if weight else 0.0)

    def direction(self, weight: float) -> tuple[Floats, float]:
        """Newton's step, and the squared decrement."""
        moving, (_, g, H) = self.problem.moving, self.parts
        if weight:
            _, barrier_g, barrier_H = self.domain.barrier(self.theta)
            g, H = g + weight * barrier_g, H + weight * barrier_H
        step = np.zeros_like(self.theta)
        step[moving] = -np.linalg.solve(H[moving, moving], g[moving])
        return step, -float(g @ step)

    def descend(self, weight: float) -> bool:
        """Take Newton's steps until the stage is over; return whether it came to its end."""
        for _ in range(MOST_STEPS):
            step, decrement = self.direction(weight)
            close = max(CLOSE / len(self.problem.design), TRUSTED * max(1.0, abs(self.parts[0])))
            if decrement < close and min(self.domain.margins(self.theta + step)) > 0.0:
                self.ask(self.theta + step)
                return True
            if weight and decrement < CENTRED * weight:
                return True
            if not self.search(step, decrement, weight):
                return False
        return False

    def search(self, step: Floats, decrement: float, weight: float) -> bool:
        """Halve a step until it stays inside and leads down (Armijo); return whether one does."""
        start, parts, before, size = self.theta, self.parts, self.value(weight), 1.0
        for _ in range(MOST_HALVINGS):
            point = start + size * step
            if min(self.domain.margins(point)) > 0.0:
                self.ask(point)
                if self.value(weight) <= before - 1e-4 * size * decrement + 1e-15 * abs(before):
                    return True
            size *= 0.5
        self.theta, self.parts = start, parts
        return False


class _Place(NamedTuple):
    """Where the search ended, with the information there."""

    theta: Floats
    value: float
    information: Floats
    steps: int
    settled: bool
    on_edge: bool


def _maximise(problem: Problem, domain: _Domain) -> _Place:
    """Start at least squares; only where no maximum is found inside, go along the barriers."""
    theta = np.zeros(problem.design.shape[1])
    theta[-1] = 1.0 if problem.known is None else problem.known
    search = _Search(problem, domain, theta)
    settled, on_edge = search.descend(0.0), False
    if not settled:
        search.ask(theta)
        for weight in BARRIERS:
            centred = search.descend(weight)
        settled = not domain.on_edge(search.theta) and search.descend(0.0)
        # A maximum inside would have been found from so near: this is the best place on the edge.
        on_edge = centred and not settled
    value, _, H = search.parts
    return _Place(search.theta, value, H, search.steps, settled, on_edge)


# --- the answer ---------------------------------------------------------------------------------


def _told(table: Table, problem: Problem, at: _Place, alpha: float) -> TruncatedRegression:
    """Return to the units of the table."""
    free, T, s = problem.free, at.theta[-1], problem.spread
    sigma = s / math.sqrt(T)
    coefficients = problem.coefficients.copy()
    coefficients[free] += s * solve_triangular(problem.whiten, at.theta[:-1]) / T
    total = float(table.weights.sum())
    return TruncatedRegression(
        coefficients,
        sigma,
        -total * (at.value + math.log(s)),
        _covariance(problem, at, total),
        _scores(table, problem, at.theta),
        at.settled or at.on_edge,
        at.on_edge,
        at.steps,
        _notes(at, sigma, s, alpha),
    )


def _scores(table: Table, problem: Problem, theta: Floats) -> Floats:
    """Return derivatives of each row's log-likelihood in (β, σ).

    With u = z − y: ∂/∂(wβ) = −E u/σ² and ∂/∂σ = −(E u² + 2(y − wβ) E u)/σ³.
    """
    T = float(theta[-1])
    mean = problem.rows(theta, slice(None))[1]
    nu = problem.design @ theta
    unit = math.sqrt(T) / problem.spread
    of_mean = -mean[:, 0] * unit * math.sqrt(T)
    # y − wβ = −ν'/T, and the second moment is −½u².
    of_sigma = 2.0 * unit * T * (mean[:, 1] + nu / T * mean[:, 0])
    return table.weights[:, None] * np.column_stack([of_mean[:, None] * table.W, of_sigma])


def _covariance(problem: Problem, at: _Place, total: float) -> Floats:
    """Inverse information about (δ, T), carried to (β, σ) by β = s R⁻¹δ/T and σ = s/√T."""
    free, moving, T, s = problem.free, problem.moving, float(at.theta[-1]), problem.spread
    k = problem.coefficients.size
    slopes = np.zeros((k + 1, free.size + 1))
    back = s * solve_triangular(problem.whiten, np.eye(free.size)) / T
    slopes[free, :-1] = back
    slopes[free, -1] = -back @ at.theta[:-1] / T
    slopes[-1, -1] = -0.5 * s * T**-1.5
    slopes = slopes[:, moving]
    inverse = np.linalg.inv(total * at.information[moving, moving])
    covariance = slopes @ (0.5 * (inverse + inverse.T)) @ slopes.T
    return np.asarray(covariance)


def _notes(at: _Place, sigma: float, spread: float, alpha: float) -> tuple[Note, ...]:
    if at.on_edge:
        text = (
            f"The rows do not determine how far the missing ones are: the estimate (sigma {sigma:.3g}, "
            f"where what is seen varies by {spread:.3g}) lies on the edge of where it can be if a share "
            f"alpha = {alpha:g} of all rows is seen. Pass a larger alpha if more are known to be seen, "
            "or sigma if it is known, and check the limits; more rows would help."
        )
        return (Note(Status.ON_DOMAIN_EDGE, text),)
    if not at.settled:
        return (Note(Status.NOT_CONVERGED, Status.NOT_CONVERGED.value),)
    return ()
