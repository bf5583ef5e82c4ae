"""Newton's method inside a bounded convex domain, for many small problems at once.

A logarithmic barrier keeps the iterates inside and is taken away in stages. Where the optimum is
interior the last stage has no barrier at all; where it is not, the answer is the best point on the
edge, to within the last barrier. Far from a minimum of a function that is not convex, eigenvalues of
the Hessian are replaced by their absolute values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.domain import Domain

Floats = NDArray[np.float64]
# (θ of some problems, which problems) → value, gradient, Hessian
Objective = Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats, Floats]]

# Weights of the barrier, stage by stage. 1e-8 of the objective per row is far below any statistical
# error, and the distance to the edge that goes with it can still be told from rounding.
BARRIERS = np.array([1e-2, 1e-4, 1e-6, 1e-8, 0.0])
LAST_STAGE = BARRIERS.size - 1
# A stage is over when the squared Newton decrement is below this share of its barrier; the last one
# when parameters are right to ten digits of the standard error of one row.
CENTRED, DONE = 0.1, 1e-20
# Below this decrement the fall of the objective drowns in rounding, but its gradient does not: a few
# more steps are taken on trust.
TRUSTED, TRUSTED_STEPS = 1e-12, 4
# A search that can no longer improve has converged if its decrement is below this.
SETTLED = 1e-8
MAX_ITERATIONS = 300
MAX_HALVINGS = 40


@dataclass
class Minimum:
    """Where the search ended, for each problem."""

    theta: Floats
    value: Floats
    converged: NDArray[np.bool_]
    on_edge: NDArray[np.bool_]

    def take(self, problems: NDArray[np.bool_]) -> Minimum:
        """Return the answers of some of the problems."""
        return Minimum(*(getattr(self, part.name)[problems] for part in fields(self)))

    def replaced(self, problems: NDArray[np.intp], by: Minimum) -> Minimum:
        """Return the same with other answers for some of the problems."""
        parts = [getattr(self, part.name).copy() for part in fields(self)]
        for into, part in zip(parts, fields(by), strict=True):
            into[problems] = getattr(by, part.name)
        return Minimum(*parts)


def minimise(objective: Objective, domain: Domain, start: Floats, stage: int = 0) -> Minimum:
    """Minimise ``objective`` over ``domain`` for each of a batch of problems.

    Parameters
    ----------
    objective : callable
        Values, gradients and Hessians at given parameters of given problems; inf outside.
    domain : Domain
    start : array of shape (batch, p)
        Interior points.
    stage : int
        First stage of the barrier; later ones keep the search near its start.
    """
    batch = len(start)
    theta, value = start.copy(), np.full(batch, np.inf)
    stages, trusted = np.full(batch, stage), np.zeros(batch, dtype=int)
    converged = np.zeros(batch, dtype=bool)
    active = np.arange(batch)
    parts = _evaluate(objective, domain, theta, active)
    for _ in range(MAX_ITERATIONS):
        barrier, last = BARRIERS[stages[active]], stages[active] == LAST_STAGE
        f, g, H = _combine(parts, barrier)
        delta, decrement = _newton_step(g, H)
        trusted[active[last & (decrement < TRUSTED)]] += 1
        settled = decrement < np.where(last, DONE, CENTRED * barrier)
        settled |= trusted[active] > TRUSTED_STEPS
        search = _Search(theta[active], delta, decrement, f, barrier)
        trial, trial_parts, moved = search.run(objective, domain, active, ~settled)
        theta[active[moved]] = trial[moved]
        parts = tuple(
            np.where(moved.reshape(-1, *[1] * (new.ndim - 1)), new, old)
            for new, old in zip(trial_parts, parts, strict=True)
        )
        # No step improves any more: the stage is over too.
        over = settled | ~moved
        # Before the last stage, a point on the edge is where it belongs.
        edge = over & (stages[active] == LAST_STAGE - 1)
        if edge.any():
            edge[edge] = domain.take(active[edge]).on_edge(theta[active[edge]])
        done = over & (last | edge)
        converged[active[done]] = (decrement < SETTLED)[done]
        value[active[done]] = parts[0][done]
        stages[active[over & ~done]] += 1
        active, parts = active[~done], tuple(part[~done] for part in parts)
        if active.size == 0:
            break
    value[active] = parts[0]
    # On the edge the objective still has a slope; the best point there is what was asked for.
    on_edge = domain.on_edge(theta)
    return Minimum(theta, value, converged | on_edge, on_edge)


def _evaluate(
    objective: Objective, domain: Domain, theta: Floats, problems: NDArray[np.intp]
) -> tuple[Floats, ...]:
    """Objective and barrier, each with gradient and Hessian."""
    inside = domain.take(problems).barrier(theta)
    return (*objective(theta, problems), *inside)


def _combine(parts: tuple[Floats, ...], weight: Floats) -> tuple[Floats, Floats, Floats]:
    f, g, H, bf, bg, bH = parts
    # Outside the domain the barrier is infinite, with any weight.
    total = np.where(np.isfinite(bf), f + weight * np.where(np.isfinite(bf), bf, 0.0), np.inf)
    return total, g + weight[:, None] * bg, H + weight[:, None, None] * bH


def _newton_step(g: Floats, H: Floats) -> tuple[Floats, Floats]:
    values, vectors = np.linalg.eigh(H)
    # |λ| instead of λ: a direction of descent even where the objective is not convex.
    values = np.maximum(np.abs(values), 1e-12 * np.abs(values).max(axis=1, keepdims=True) + 1e-300)
    along = np.einsum("bij,bi->bj", vectors, g)
    return -np.einsum("bij,bj->bi", vectors, along / values), (along**2 / values).sum(axis=1)


@dataclass
class _Search:
    """Halve each step until the objective falls (Armijo) inside the domain."""

    theta: Floats
    delta: Floats
    decrement: Floats
    value: Floats
    barrier: Floats

    def run(
        self,
        objective: Objective,
        domain: Domain,
        problems: NDArray[np.intp],
        moving: NDArray[np.bool_],
    ) -> tuple[Floats, tuple[Floats, ...], NDArray[np.bool_]]:
        batch, p = self.theta.shape
        size, trial, found = np.ones(batch), self.theta.copy(), np.zeros(batch, dtype=bool)
        result = [np.zeros((batch, *shape)) for shape in ((), (p,), (p, p)) * 2]
        looking = np.flatnonzero(moving)
        for _ in range(MAX_HALVINGS):
            if looking.size == 0:
                break
            point = self.theta[looking] + size[looking, None] * self.delta[looking]
            parts = _evaluate(objective, domain, point, problems[looking])
            value, _, _ = _combine(parts, self.barrier[looking])
            enough = 1e-4 * size[looking] * self.decrement[looking]
            rounding = 1e-15 * np.abs(self.value[looking])
            good = value <= self.value[looking] - enough + rounding
            chosen = looking[good]
            trial[chosen] = point[good]
            for into, part in zip(result, parts, strict=True):
                into[chosen] = part[good]
            found[chosen] = True
            looking = looking[~good]
            size[looking] *= 0.5
        return trial, tuple(result), found
