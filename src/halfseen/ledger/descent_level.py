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
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.gaussian import Gaussian
from halfseen.ledger.convexity import hidden_covariances
from halfseen.ledger.designs import Problem
from halfseen.ledger.registry import (
    ALLOWED,
    exponent,
    heights,
    relative_error,
    root_mean_square,
    slope,
)
from halfseen.metrics import mahalanobis_error
from halfseen.samplers import Gibbs, Sampler
from halfseen.simulate import simulate
from halfseen.solvers.domain import mean_reach
from halfseen.solvers.missing_descent import missing_descent
from halfseen.solvers.result import Estimate

Floats = NDArray[np.float64]

# Recursions that are run side by side: their root mean square is known to 1/√(2 · 400) or better.
TABLES = 400
# Rows, and draws for each, from which H is estimated; parts that are left out in turn for its error.
INFORMATION_ROWS, INFORMATION_DRAWS, PARTS = 1_200, 6, 10
# Rows for the limits of start and α.
SETTING_ROWS = 20_000


def learn(
    problem: Problem,
    n: int,
    seed: int,
    sampler: Sampler | None = None,
    radius: float | None = None,
    beta: float | None = None,
) -> Estimate:
    """Simulate rows and run Algorithm 3 on them, with its own λ; Gibbs draws unless told."""
    truth, rule = problem
    return missing_descent(
        simulate(truth, rule, n, seed),
        rule,
        truth.covariance,
        sampler=Gibbs() if sampler is None else sampler,
        projection_radius=radius,
        beta=beta,
        random_state=seed,
    )


def errors_of(
    problem: Problem,
    n: int,
    tables: int,
    sampler: Sampler | None = None,
    beta: float | None = None,
) -> list[float]:
    """Mahalanobis errors of the mean over several tables."""
    return [
        mahalanobis_error(learn(problem, n, seed, sampler, beta=beta).mean, problem[0])
        for seed in range(tables)
    ]


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
    alpha = min(seen[:, list(s)].all(axis=1).mean() for s in combinations(range(d), size))
    start = np.concatenate(
        [X[seen[:, k : k + size].all(axis=1), k : k + size].mean(axis=0) for k in range(0, d, size)]
    )
    values = np.linalg.eigvalsh(truth.covariance)
    share, top, bottom = size / d, float(values[-1]), float(values[0])
    radius = float(mean_reach(0.5 * alpha)) * math.sqrt(top / bottom / share)
    return Setting(start, float(alpha) * share / top, radius)


def limit_covariance(truth: Gaussian, H: Floats, strong_convexity: float) -> Floats:
    """Return n times the covariance of the average iterate, by the formula above."""
    h, Q = np.linalg.eigh(H)
    sums = np.add.outer(h, h) / strong_convexity
    inner = Q.T @ truth.precision @ Q / np.outer(h, h) * sums / (sums - 1.0)
    return np.asarray(Q @ inner @ Q.T)


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

    def allowance(self, tables: int) -> float:
        """Relative error that so many tables may have by chance, in ``ALLOWED`` standard errors."""
        return ALLOWED * math.hypot(self.spread / math.sqrt(tables), self.noise)

    def surplus(self, errors: ArrayLike) -> float:
        """How far a root mean square lies above the level, in parts of what is allowed."""
        found = root_mean_square(errors)
        return (found / self.error - 1.0) / self.allowance(np.size(errors))


def level_for(
    problem: Problem, n: int, H: Floats | None = None, beta: float | None = None
) -> Level:
    """Predict the error; H is estimated by Gibbs draws unless it is given."""
    truth, setting, doubt = problem[0], setting_for(problem, beta), 0.0
    if H is None:
        H, others = sampled_information(problem)
        traces = [
            np.trace(truth.precision @ limit_covariance(truth, other, setting.strong_convexity))
            for other in others
        ]
        doubt = jackknife_error(np.sqrt(traces)) / math.sqrt(float(np.mean(traces)))
    lengths = np.linalg.norm(quadratic_descent(truth, H, setting, n), axis=1)
    once = relative_error(lengths)
    return Level(root_mean_square(lengths), once * math.sqrt(lengths.size), math.hypot(once, doubt))


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
class Sweep:
    """Errors along an axis, with what they should be.

    Attributes
    ----------
    errors : list of sequences of float
        Of several tables at each place.
    levels : list of Level
    power, spread : float
        Exponent of the error, and its standard error.
    """

    errors: list[list[float]]
    levels: list[Level]
    power: float
    spread: float

    @property
    def surplus(self) -> float:
        """Largest excess over the predicted level, in parts of what chance allows."""
        return max(p.surplus(e) for p, e in zip(self.levels, self.errors, strict=True))

    @property
    def gap(self) -> float:
        """Largest distance from it, on either side."""
        return max(abs(p.surplus(e)) for p, e in zip(self.levels, self.errors, strict=True))

    def grows_at_most(self, power: float) -> bool:
        """Whether the exponent is at most this one, within 4 standard errors."""
        return self.power <= power + ALLOWED * self.spread

    def compared(self) -> str:
        """Both as text, place by place."""
        found = ", ".join(f"{e:.3f}" for e in heights(self.errors))
        return f"{found} (predicted {', '.join(f'{p.error:.3f}' for p in self.levels)})"


def sweep(
    x: Sequence[float],
    make: Callable[[float], Problem],
    n: int,
    tables: int,
    information: Callable[[float], Floats] | None = None,
    beta: Callable[[float], float] | None = None,
) -> Sweep:
    """Measure and predict the error at each place of an axis."""
    errors, levels = [], []
    for value in x:
        problem, share = make(value), None if beta is None else beta(value)
        errors.append(errors_of(problem, n, tables, beta=share))
        H = None if information is None else information(value)
        levels.append(level_for(problem, n, H, share))
    return Sweep(errors, levels, *exponent(x, errors))


def claimed_exponent(x: Sequence[float], plan: Callable[[float], float]) -> float:
    """Exponent of the error that the analysis allows: half of that of its number of rows."""
    return 0.5 * slope(x, [plan(v) for v in x])
