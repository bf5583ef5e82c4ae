"""The error that Algorithm 3 should have: its own recursion on a quadratic, with Gaussian noise.

Near μ* the gradient of ℓ is H(μ − μ*) with H = ∇²ℓ(μ*). A row with its hidden part drawn at μ* is a
row of N(μ*, Σ) again, so the noise of a gradient has covariance Σ⁻¹. With steps 1/(λi) the average of n
iterates then has, in the eigenbasis of H and with a = h/λ, the covariance

    (Σ⁻¹)_kl / (h_k h_l) · (a_k + a_l)/(a_k + a_l − 1) / n,

which complete data, H = Σ⁻¹ and a = ∞, bring to Σ/n. First steps overshoot and the projection holds
them: what that leaves in the average is found by running the recursion, with start, λ and radius counted
here and not taken from the solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfseen.gaussian import Gaussian
from halfseen.ledger.designs import Problem, joint_share
from halfseen.ledger.harness import (
    ALLOWED,
    Curve,
    Estimated,
    Floats,
    Lines,
    exponent,
    heights,
    listed,
    ratio,
    root_mean_square,
    slope,
)
from halfseen.ledger.langevin import half_line_limit
from halfseen.ledger.likelihood import hidden_covariances, slices
from halfseen.metrics import mahalanobis_error
from halfseen.planning import parameters_for_missing_descent
from halfseen.samplers import Gibbs, Sampler
from halfseen.simulate import simulate
from halfseen.solvers.domain import mean_reach
from halfseen.solvers.missing_descent import missing_descent
from halfseen.solvers.result import Estimate

# Recursions that are run side by side: their root mean square is known to 1/√(2 · 400) or better.
TABLES = 400
# Rows, and draws for each, from which H is estimated; parts that are left out in turn for its error.
INFORMATION_ROWS, INFORMATION_DRAWS, PARTS = 1_200, 6, 10
# Rows for the limits of start and α.
SETTING_ROWS = 20_000


def learn(
    problem: Problem, n: int, seed: int, sampler: Sampler | None = None, **options: Any
) -> Estimate:
    """Simulate rows and run Algorithm 3 on them, with its own λ; by Gibbs draws without a sampler."""
    truth, rule = problem
    X, sampler = simulate(truth, rule, n, seed), Gibbs() if sampler is None else sampler
    listing: dict[str, Any] = {"form": "paper", "sampler": sampler, "random_state": seed}
    return missing_descent(X, rule, truth.covariance, **listing, **options)


def pooled(
    problem: Problem, n: int, tables: int, sampler: Sampler | None = None, **options: Any
) -> tuple[list[float], Floats]:
    """Mahalanobis errors of several tables, and the mean of their estimates."""
    means = [learn(problem, n, seed, sampler, **options).mean for seed in range(tables)]
    return [mahalanobis_error(m, problem.truth) for m in means], np.mean(means, axis=0)


@dataclass(frozen=True)
class Setting:
    """Where the descent starts, its λ and its radius, for columns of variance one."""

    start: Floats
    strong_convexity: float
    radius: float


def setting_for(problem: Problem, beta: float | None = None) -> Setting:
    """Count start and α in many rows: Algorithm 2, λ = αβ/λ_max, and r = h(α/2) √(κ/β)."""
    truth, rule = problem
    d = truth.mean.size
    size = 1 if beta is None else round(beta * d)
    X = np.asarray(simulate(truth, rule, SETTING_ROWS, 99))
    seen = ~np.isnan(X)
    alpha = joint_share(seen, size)
    start = np.concatenate(
        [X[seen[:, k : k + size].all(axis=1), k : k + size].mean(axis=0) for k in range(0, d, size)]
    )
    bottom, *_, top = map(float, np.linalg.eigvalsh(truth.covariance))
    share = size / d
    radius = float(mean_reach(0.5 * alpha)) * math.sqrt(top / bottom / share)
    return Setting(start, alpha * share / top, radius)


def limit_covariance(truth: Gaussian, H: Floats, strong_convexity: float) -> Floats:
    """Return n times the covariance of the average iterate, by the formula above."""
    h, Q = np.linalg.eigh(H)
    sums = np.add.outer(h, h) / strong_convexity
    inner = Q.T @ truth.precision @ Q / np.outer(h, h) * sums / (sums - 1.0)
    return np.asarray(Q @ inner @ Q.T)


def standard_errors(problem: Problem, H: Floats, rows: int) -> Floats:
    """Return standard errors of a mean estimate pooled over so many rows, by the formula."""
    C = limit_covariance(problem.truth, H, setting_for(problem).strong_convexity)
    return np.asarray(np.sqrt(np.diag(C) / rows))


def fixed_point(problem: Problem, step_size: float) -> Floats:
    """Return where the mean gradient with Langevin draws is zero, for two columns and one anchor.

    The chain's limit on a half-line is known to first order in √η, so E ĝ(μ) is an integral over the
    seen value. E ĝ = Σ⁻¹(μ − E y): so μ₀ stays, and μ₁ is the mean of y₁ when its draws are made at μ.
    """
    truth = problem.truth
    (part,) = slices(problem)
    assert np.isfinite(part.low).all(), "hidden above an edge"
    seen = truth.mean[1] - float(part.weight @ part.moments(truth)[1])
    mean = truth.mean.copy()
    # Each round leaves at most the hidden share of the gap: half of it, here.
    for _ in range(60):
        m, s = part.conditional(Gaussian(mean, truth.covariance))
        drawn = m + s * half_line_limit((part.low - m) / s, step_size)
        mean[1] = seen + float(part.weight @ drawn)
    return mean


def quadratic_descent(
    truth: Gaussian, H: Floats, setting: Setting, n: int, tables: int = TABLES, seed: int = 0
) -> Floats:
    """Run the recursion: gaps of averages from the truth in whitened coordinates, a row for each."""
    rng = np.random.default_rng(seed)
    L = truth.cholesky
    inverse = np.linalg.inv(L)
    # u = L⁻¹(μ − μ*) moves by L⁻¹(H L u + L⁻ᵀ z), with z standard normal.
    pull, noise = inverse @ H @ L, inverse @ inverse.T
    origin = inverse @ (setting.start - truth.mean)
    u = np.tile(origin, (tables, 1))
    total = np.zeros_like(u)
    for i in range(1, n + 1):
        z = rng.standard_normal(u.shape)
        u = u - (u @ pull.T + z @ noise.T) / (setting.strong_convexity * i)
        gap = u - origin
        length = np.linalg.norm(gap, axis=1)
        u = origin + gap * np.minimum(1.0, setting.radius / length)[:, None]
        total += u
    return total / n


@dataclass(frozen=True)
class Level:
    """The root mean square error to expect.

    Attributes
    ----------
    error : float
    spread : float
        Half of the relative standard deviation of the square of one table's error: over √k it is the
        relative standard error of the root mean square of k tables.
    noise : float
        Relative standard error of ``error`` itself: of the recursion, and of H where it is estimated.
    """

    error: float
    spread: float
    noise: float

    def surplus(self, errors: ArrayLike) -> float:
        """How far the root mean square of errors of tables lies above the level.

        In parts of what chance allows, ``ALLOWED`` standard errors.
        """
        allowed = ALLOWED * math.hypot(self.spread / math.sqrt(np.size(errors)), self.noise)
        return (root_mean_square(errors) / self.error - 1.0) / allowed


def level_for(
    problem: Problem, n: int, H: Floats | None = None, beta: float | None = None
) -> Level:
    """Predict the error; H is estimated by Gibbs draws unless it is given."""
    truth, setting, doubt = problem.truth, setting_for(problem, beta), 0.0
    if H is None:
        H, others = sampled_information(problem)
        traces = [
            np.trace(truth.precision @ limit_covariance(truth, other, setting.strong_convexity))
            for other in others
        ]
        doubt = jackknife_error(np.sqrt(traces)) / math.sqrt(float(np.mean(traces)))
    lengths = np.linalg.norm(quadratic_descent(truth, H, setting, n), axis=1)
    error, once = ratio(lengths)
    return Level(error, once * math.sqrt(lengths.size), math.hypot(once, doubt))


def sampled_information(problem: Problem) -> tuple[Floats, list[Floats]]:
    """H at the truth from Gibbs draws, and the same with each of ten parts of the rows left out."""
    truth, rule = problem
    _, hidden = hidden_covariances(
        truth, rule, truth.mean, INFORMATION_ROWS, INFORMATION_DRAWS, seed=17
    )
    P = truth.precision
    parts = np.array([part.mean(axis=0) for part in np.array_split(hidden, PARTS)])
    out = [np.asarray(P - P @ np.delete(parts, k, axis=0).mean(axis=0) @ P) for k in range(PARTS)]
    return np.asarray(P - P @ parts.mean(axis=0) @ P), out


def jackknife_error(values: Sequence[float] | Floats) -> float:
    """Return the standard error of a statistic from its values with each part left out."""
    each = np.asarray(values, dtype=float)
    return float(np.sqrt((each.size - 1) * each.var()))


@dataclass(frozen=True)
class Descents:
    """Errors of Algorithm 3 along an axis, with what they should be.

    Attributes
    ----------
    x : sequence of float
    n : int
        Rows of each table, where they are as many at every place.
    errors : list of sequences of float
        Of several tables at each place.
    levels : list of Level
    """

    x: Sequence[float]
    n: int
    errors: list[list[float]]
    levels: list[Level]

    @property
    def power(self) -> Estimated:
        """The exponent of the error."""
        return exponent(self.x, self.errors)

    @property
    def surpluses(self) -> list[float]:
        """Excesses over the predicted level, in parts of what chance allows."""
        return [p.surplus(e) for p, e in zip(self.levels, self.errors, strict=True)]

    def compared(self) -> str:
        """Both as text, place by place."""
        predicted = listed(level.error for level in self.levels)
        return f"{listed(heights(self.errors))} (predicted {predicted})"

    def told(self, at: str, most: float, which: str = "exponent") -> str:
        """Say errors, places, and the exponent beside the one that the analysis allows."""
        return (
            f"Errors {self.compared()} at {at}: {which} {self.power.value:.2f} ± "
            f"{self.power.error:.2f}, where the analysis allows {most:.2f}"
        )

    def curve(self, across: str, claimed: Lines) -> Curve:
        """Return errors and levels for a figure, with what else is claimed."""
        levels = {"predicted": [level.error for level in self.levels]}
        lines, up = {"missing_descent": heights(self.errors)}, f"Mahalanobis error, n = {self.n}"
        return Curve(self.x, lines, across, up, {**levels, **claimed})


def descents(
    x: Sequence[float],
    make: Callable[[float], Problem],
    n: int,
    tables: int,
    information: Callable[[float], Floats] | None = None,
    beta: Callable[[float], float] | None = None,
) -> Descents:
    """Measure and predict the error at each place of an axis."""
    errors, levels = [], []
    for value in x:
        problem, share = make(value), None if beta is None else beta(value)
        errors.append(pooled(problem, n, tables, beta=share)[0])
        H = None if information is None else information(value)
        levels.append(level_for(problem, n, H, share))
    return Descents(x, n, errors, levels)


def allowed_exponent(x: Sequence[float], plan: Callable[[float], tuple[Any, ...]]) -> float:
    """Exponent of the error that the analysis allows: half of that of the rows that planning asks for.

    ``plan`` gives the arguments of ``parameters_for_missing_descent`` at each place.
    """
    return 0.5 * slope(x, [parameters_for_missing_descent(*plan(v)).descent_steps for v in x])
