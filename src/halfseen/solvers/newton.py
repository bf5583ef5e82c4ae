"""Newton's method inside a bounded convex domain, for many small problems at once.

A logarithmic barrier keeps the iterates inside and is taken away step by step; where the optimum is
interior the last barrier moves it by less than rounding, and where it is not, the answer is the best
point on the edge. Far from a minimum of a function that is not convex, eigenvalues of the Hessian are
replaced by their absolute values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.domain import Domain

Floats = NDArray[np.float64]
# (θ of some problems, which problems) → value, gradient, Hessian
Objective = Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats, Floats]]

FIRST_BARRIER, LAST_BARRIER, BARRIER_STEP = 1e-2, 1e-12, 1e-2
# Newton decrements (squared, in units of the objective per row) at which a barrier is lowered, and at
# which the last one is done: 1e-20 means parameters right to ten digits of their standard error at one
# row.
CENTRED, DONE = 1e-4, 1e-20
# Below this decrement the fall of the objective drowns in rounding, but its gradient does not: a few
# more steps are taken on trust.
TRUSTED, TRUSTED_STEPS = 1e-12, 4
MAX_ITERATIONS = 300
MAX_HALVINGS = 40


@dataclass
class Minimum:
    """Where the search ended, for each problem."""

    theta: Floats
    value: Floats
    converged: NDArray[np.bool_]
    on_edge: NDArray[np.bool_]


def minimise(
    objective: Objective, domain: Domain, start: Floats, first_barrier: float = FIRST_BARRIER
) -> Minimum:
    """Minimise ``objective`` over ``domain`` for each of a batch of problems.

    Parameters
    ----------
    objective : callable
        Values, gradients and Hessians at given parameters of given problems; inf outside.
    domain : Domain
    start : array of shape (batch, p)
        Interior points.
    first_barrier : float
        Weight of the barrier at first; small values keep the search near its start.
    """
    theta = start.copy()
    batch = len(theta)
    barrier = np.full(batch, first_barrier)
    value = np.full(batch, np.inf)
    converged = np.zeros(batch, dtype=bool)
    trusted = np.zeros(batch, dtype=int)
    active = np.arange(batch)
    parts = _evaluate(objective, domain, theta, active)
    for _ in range(MAX_ITERATIONS):
        f, g, H = _combine(parts, barrier[active])
        delta, decrement = _newton_step(g, H)
        last = barrier[active] <= LAST_BARRIER
        trusted[active[last & (decrement < TRUSTED)]] += 1
        settled = decrement < np.where(last, DONE, CENTRED)
        settled |= trusted[active] > TRUSTED_STEPS
        moving = ~settled
        trial, trial_parts, moved = _line_search(
            objective, domain, theta, active, barrier, f, delta, decrement, moving
        )
        # Settled, or no step improves any more: lower the barrier, or finish.
        settled |= moving & ~moved
        done = settled & last
        lower = active[settled & ~last]
        barrier[lower] = np.maximum(barrier[lower] * BARRIER_STEP, LAST_BARRIER)
        converged[active[done]] = decrement[done] < 1e-8
        value[active[done]] = parts[0][done]
        theta[active[moved]] = trial[moved]
        parts = tuple(
            np.where(moved.reshape(-1, *[1] * (new.ndim - 1)), new, old)
            for new, old in zip(trial_parts, parts, strict=True)
        )
        keep = ~done
        active = active[keep]
        parts = tuple(part[keep] for part in parts)
        if active.size == 0:
            break
    value[active] = parts[0]
    return Minimum(theta, value, converged, domain.on_edge(theta))


def _evaluate(
    objective: Objective, domain: Domain, theta: Floats, problems: NDArray[np.intp]
) -> tuple[Floats, ...]:
    """Objective and barrier, each with gradient and Hessian."""
    inside = domain.take(problems).barrier(theta)
    return (*objective(theta, problems), *inside)


def _combine(parts: tuple[Floats, ...], weight: Floats) -> tuple[Floats, Floats, Floats]:
    f, g, H, bf, bg, bH = parts
    return f + weight * bf, g + weight[:, None] * bg, H + weight[:, None, None] * bH


def _newton_step(g: Floats, H: Floats) -> tuple[Floats, Floats]:
    values, vectors = np.linalg.eigh(H)
    # |λ| instead of λ: a direction of descent even where the objective is not convex.
    values = np.maximum(np.abs(values), 1e-12 * np.abs(values).max(axis=1, keepdims=True) + 1e-300)
    along = np.einsum("bij,bi->bj", vectors, g)
    return -np.einsum("bij,bj->bi", vectors, along / values), (along**2 / values).sum(axis=1)


def _line_search(
    objective: Objective,
    domain: Domain,
    theta: Floats,
    active: NDArray[np.intp],
    barrier: Floats,
    f: Floats,
    delta: Floats,
    decrement: Floats,
    moving: NDArray[np.bool_],
) -> tuple[Floats, tuple[Floats, ...], NDArray[np.bool_]]:
    """Halve each step until the objective falls (Armijo) inside the domain."""
    size = np.ones(len(active))
    trial = theta[active]
    found = np.zeros(len(active), dtype=bool)
    p = theta.shape[1]
    result = [np.zeros((len(active), *shape)) for shape in ((), (p,), (p, p)) * 2]
    looking = np.flatnonzero(moving)
    for _ in range(MAX_HALVINGS):
        if looking.size == 0:
            break
        problems = active[looking]
        point = theta[problems] + size[looking, None] * delta[looking]
        parts = _evaluate(objective, domain, point, problems)
        with np.errstate(invalid="ignore"):
            value = parts[0] + barrier[problems] * parts[3]
        rounding = 1e-15 * np.abs(f[looking])
        good = value <= f[looking] - 1e-4 * size[looking] * decrement[looking] + rounding
        chosen = looking[good]
        trial[chosen] = point[good]
        for into, part in zip(result, parts, strict=True):
            into[chosen] = part[good]
        found[chosen] = True
        looking = looking[~good]
        size[looking] *= 0.5
    return trial, tuple(result), found
