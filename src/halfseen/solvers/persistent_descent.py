"""The descent of ``missing_descent``: Algorithm 3 with chains that go on, in place of new ones.

The listing draws the hidden part of a row once, by a chain that is started anew, and the bias of that
chain stays in the answer however many rows there are. Here each row keeps a chain of its own for the
whole descent. It moves on chords of the row's polyhedron, each drawn exactly, so that no wall biases it;
what is left of its start fades as the steps shrink. Gradients are preconditioned by the curvature

    H = Σ⁻¹ − Σ⁻¹ E[Cov(y | A, x)] Σ⁻¹

that the same draws show. Draws of a chain that is slow spread too little, which makes H too large and
steps too short, never too long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.kernels.polyhedron import gibbs_rows
from halfseen.parallel import map_in_order
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.conditionals import Conditionals, count_moves
from halfseen.solvers.project_to_domain import project_to_domain

Floats = NDArray[np.float64]

# Rounds over the rows before iterates are averaged, when the start is forgotten, and as many more at
# least; sweeps of a row's chain in each.
PASSES, SWEEPS = 5, 5
# Rounds go on, within reason, until draws add a twentieth to the variance that the rows leave, as parts
# of the averaged iterates tell by how far they are apart, and in no direction more than a tenth, were
# draws independent. Above a quarter it is said.
ADDED, ADDED_ANYWHERE, HEARD, PARTS, MOST_PASSES = 0.05, 0.1, 0.25, 5, 40
# Batches in a round, and rows of a batch for each column.
BATCHES, ROWS_FOR_A_COLUMN = 20, 2
# Sweeps of rows that a thread is given at once: some milliseconds.
SWEEPS_IN_A_PIECE = 4_000


def usual_batch(n: int, d: int) -> int:
    """Return the rows for one gradient."""
    return max(-(-n // BATCHES), ROWS_FOR_A_COLUMN * d)


@dataclass(frozen=True)
class State:
    """The least that the next step needs, beside the points of the chains.

    Attributes
    ----------
    mean : array of shape (d,)
    step : int
    within : array of shape (d, d)
        E[Cov(y | A, x)], as far as it is known.
    kept : tuple of arrays
        Iterates to average.
    """

    mean: Floats
    step: int
    within: Floats
    kept: tuple[Floats, ...]

    @property
    def average(self) -> Floats:
        """The answer so far."""
        return np.asarray(np.mean(self.kept, axis=0))


@dataclass(frozen=True)
class Group:
    """Rows of a batch that hide the same columns.

    Attributes
    ----------
    first, count : int
        The first of them, whose pattern is that of all, and how many there are.
    seen : array of shape (count, d - k)
    points : array of shape (count, k)
        Where their chains are, in whitened coordinates.
    levels : array of shape (count, m)
    """

    first: int
    count: int
    seen: Floats
    points: Floats
    levels: Floats


class PersistentDescent:
    """Projected, preconditioned SGD over batches of rows whose chains go on."""

    name = "missing_descent"

    def __init__(
        self,
        conditionals: Conditionals,
        known: Gaussian,
        start: Floats,
        points: Sequence[Floats],
        order: NDArray[np.intp],
        strong_convexity: float,
        radius: float,
        batch_size: int,
        passes: int | None,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self.conditionals, self.known, self.start = conditionals, known, start
        self.radius = radius
        self.least = strong_convexity * float(np.linalg.eigvalsh(known.covariance)[0])
        self.seed, self.n_jobs = seed, n_jobs
        cuts = range(0, len(order), batch_size)
        self.rows = len(order)
        self.batches = [_groups(conditionals, order[k : k + batch_size], points) for k in cuts]
        most, before = (MOST_PASSES, PASSES) if passes is None else (passes, 0.5 * passes)
        self.steps, self.as_asked = most * len(self.batches), passes is not None
        self.average_from = before * len(self.batches)

    def init(self) -> State:
        """Start at μ⁽⁰⁾ (line 1), as if nothing were hidden: there steps are shortest."""
        d = self.start.size
        return State(self.start.copy(), 0, np.zeros((d, d)), ())

    def step(self, state: State) -> tuple[State, dict[str, Any]]:
        """Lines 3 to 7, with a batch, its curvature, and steps of one over the rounds."""
        which = state.step % len(self.batches)
        gap, within = self._sweep(which, state)
        # An average over one round; the zero that it begins with counts as one of its terms.
        share = 1.0 / min(state.step + 2, len(self.batches))
        within = state.within + share * (within - state.within)
        size = 1.0 / (1.0 + state.step / len(self.batches))
        moved = state.mean + size * self._towards(gap, within)
        mean = project_to_domain(self.start, moved, self.radius, self.known)
        kept = (*state.kept, mean) if state.step >= self.average_from else ()
        after = State(mean, state.step + 1, within, kept)
        return after, {"mean": mean, "expected_steps": self._expected_steps(after)}

    def done(self, state: State) -> bool:
        """After a round, once draws hardly add to the error."""
        return state.step % len(self.batches) == 0 and state.step >= self._expected_steps(state)

    def doubt(self, state: State) -> str | None:
        """Say so where draws, or what is left of the way, add much to the error."""
        added = self._added(state)
        if added <= HEARD:
            return None
        return (
            f"The average still moves: draws add {added:.0%} to the variance that the rows leave. Use "
            "more passes."
        )

    def _expected_steps(self, state: State) -> int:
        fewest = 2 * PASSES * len(self.batches)
        if self.as_asked or state.step < fewest:
            return self.steps if self.as_asked else fewest
        # What draws add falls with how many there are: in a direction where the curvature is a share h
        # of that of complete rows, to (1/h − 1) over their number.
        rounds = len(state.kept) / len(self.batches)
        anywhere = (1.0 / float(self._curvature(state.within)[0].min()) - 1.0) / (SWEEPS * rounds)
        short = max(self._added(state) / ADDED, anywhere / ADDED_ANYWHERE) - 1.0
        return min(state.step + math.ceil(len(state.kept) * max(short, 0.0)), self.steps)

    def _added(self, state: State) -> float:
        """Variance of the average, by how far its parts are apart, over that which the rows leave it."""
        parts = np.array_split(state.kept, min(PARTS, len(state.kept)))
        means = np.linalg.solve(self.known.cholesky, np.transpose([p.mean(axis=0) for p in parts]))
        # In whitened coordinates the estimate has covariance (LᵀHL)⁻¹/n.
        limit = float((1.0 / self._curvature(state.within)[0]).sum()) / self.rows
        apart = float(means.var(axis=1, ddof=1).sum()) if len(parts) > 1 else math.inf
        return apart / len(parts) / limit

    def _curvature(self, within: Floats) -> tuple[Floats, Floats]:
        # Eigenvalues and -vectors of LᵀHL = I − L⁻¹ within L⁻ᵀ; H is at least λ, so that this is at
        # least λ times the least eigenvalue of Σ.
        L = self.known.cholesky
        inner = np.linalg.solve(L, np.linalg.solve(L, within).T)
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        return np.maximum(1.0 - values, self.least), vectors

    def _towards(self, gap: Floats, within: Floats) -> Floats:
        # H⁻¹Σ⁻¹ times the gap between completed rows and the mean: to where the batch has its zero.
        L = self.known.cholesky
        values, vectors = self._curvature(within)
        return np.asarray(L @ (vectors @ ((vectors.T @ np.linalg.solve(L, gap)) / values)))

    def _sweep(self, which: int, state: State) -> tuple[Floats, Floats]:
        """Mean of y − μ over the completed rows of a batch, and of the covariance within rows."""
        groups = self.batches[which]
        rng = keyed_generator(self.seed, Purpose.MISSING_DESCENT, state.step)
        d = state.mean.size
        gap, within, count = np.zeros(d), np.zeros((d, d)), 0

        def work(piece: list[tuple[Group, Floats]]) -> tuple[Floats, Floats]:
            return self._sweep_groups(piece, state.mean)

        for g, w in map_in_order(work, _pieces(groups, rng), self.n_jobs):
            gap += g
            within += w
        count = sum(group.count for group in groups)
        return gap / count, within / count

    def _sweep_groups(
        self, piece: list[tuple[Group, Floats]], mean: Floats
    ) -> tuple[Floats, Floats]:
        """Sweep the rows of some groups: sums of y − μ and of the covariance within rows."""
        gap, within = np.zeros(mean.size), np.zeros((mean.size, mean.size))
        for group, uniforms in piece:
            p = self.conditionals.pattern(group.first)
            if p.hidden.size == 0:
                gap += (group.seen - mean).sum(axis=0)
                continue
            gibbs_rows(
                group.points, group.seen, mean, p.hidden, p.seen, p.gain, p.W, p.A, group.levels,
                p.moves, uniforms, gap, within,
            )  # fmt: skip
        return gap, within


def _groups(
    conditionals: Conditionals, rows: NDArray[np.intp], points: Sequence[Floats]
) -> list[Group]:
    patterns, inverse = np.unique(conditionals.hidden[rows], axis=0, return_inverse=True)
    out = []
    for k in range(len(patterns)):
        members = rows[inverse.ravel() == k]
        p = conditionals.pattern(int(members[0]))
        levels = conditionals.levels[np.ix_(members, p.rows)] / p.lengths
        held = np.stack([points[row] for row in members])
        seen = conditionals.X[np.ix_(members, p.seen)]
        out.append(Group(int(members[0]), len(members), seen, held, levels))
    return out


def _pieces(groups: list[Group], rng: np.random.Generator) -> list[list[tuple[Group, Floats]]]:
    """Cut the groups of a batch into pieces for threads, each group with its uniforms."""
    pieces: list[list[tuple[Group, Floats]]] = []
    room = 0
    for group in groups:
        if room <= 0:
            pieces.append([])
            room = SWEEPS_IN_A_PIECE
        k = group.points.shape[1]
        uniforms = rng.random((group.count, SWEEPS, count_moves(k)))
        pieces[-1].append((group, uniforms))
        room -= group.count * SWEEPS if k else 0
    return pieces
