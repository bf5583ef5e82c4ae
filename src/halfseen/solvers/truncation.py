"""``truncation``: the paper's estimator from seen values, solved exactly instead of by SGD.

With ``form="paper"`` each pair has all five parameters free, as the paper's Algorithm 1 has it.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.kernels.partition import PlaneTerms, plane_partition
from halfseen.missingness.base import Missingness
from halfseen.missingness.resolve import SetTable, composite_rule, set_of_nodes, starts
from halfseen.parallel import map_in_order, single_blas_thread
from halfseen.solvers.columns import Columns, Floats, Integers, Marginals, truncated_marginals
from halfseen.solvers.correlations import (
    EIGENVALUE_FLOOR,
    Correlations,
    Spread,
    assemble,
    count_cells_by_row,
    needs_series,
    solve_pairs,
)
from halfseen.solvers.domain import Domain
from halfseen.solvers.newton import minimise
from halfseen.solvers.prepared_table import (
    BY_PAIRS,
    ByColumn,
    Needs,
    joint_row_notes,
    pair_names,
    prepare,
)
from halfseen.solvers.result import Estimate, Note, Status, name_some, projection_notes

# Five parameters need at least six rows; with fewer the pair is left to the one-parameter form.
FEWEST_ROWS = 6
PAIRS_PER_PIECE = 64
# Seen correlations are held this far from ±1 so that the seen covariance can be inverted.
LARGEST_SEEN_CORRELATION = 1.0 - 1e-9
# Nodes for sets known as functions reach this many standard deviations from the fitted mean.
NODE_REACH = 13.0
Form = Literal["correlation", "paper"]
NEEDS = Needs(BY_PAIRS, believes=False)


def solve_planes(
    moments: PairMoments,
    columns: Columns,
    marginals: Marginals,
    fallback: Correlations,
    mask: NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
) -> Correlations:
    """Solve every pair for five parameters; Σ̂₁₂ comes back over the fixed deviations, as ρ."""
    i, j = np.triu_indices(moments.width, 1)
    enough = np.flatnonzero(moments.counts[i, j] >= FEWEST_ROWS)
    covariance = fallback.rho * marginals.deviation[i] * marginals.deviation[j]
    on_edge, converged = fallback.on_edge.copy(), fallback.converged.copy()
    pieces = [enough[s : s + PAIRS_PER_PIECE] for s in range(0, enough.size, PAIRS_PER_PIECE)]

    def solve(pairs: Integers) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
        return _solve_some(moments, columns, marginals, i[pairs], j[pairs], mask)

    for pairs, answer in zip(pieces, map_in_order(solve, pieces, n_jobs), strict=True):
        covariance[pairs], on_edge[pairs], converged[pairs] = answer
    rho = covariance / (marginals.deviation[i] * marginals.deviation[j])
    return Correlations(rho, on_edge, converged)


def _solve_some(
    moments: PairMoments,
    columns: Columns,
    marginals: Marginals,
    i: Integers,
    j: Integers,
    mask: NDArray[np.bool_] | None,
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    n = moments.counts[i, j]
    # Units of each pair: mean and spread of both columns over the rows in which both are seen.
    centre = np.stack([moments.first[i, j] / n, moments.first[j, i] / n], axis=1)
    square = np.stack([moments.second[i, j] / n, moments.second[j, i] / n], axis=1)
    spread = np.sqrt(np.maximum(square - centre**2, 1e-300))
    seen = (moments.cross[i, j] / n - centre[:, 0] * centre[:, 1]) / spread.prod(axis=1)
    seen = np.clip(seen, -LARGEST_SEEN_CORRELATION, LARGEST_SEEN_CORRELATION)
    scale = np.stack([moments.scale[i], moments.scale[j]], axis=1)
    shift = np.stack([moments.shift[i], moments.shift[j]], axis=1)
    centre, spread = shift + scale * centre, scale * spread
    precision = np.linalg.inv(
        np.stack([np.ones_like(seen), seen, seen, np.ones_like(seen)], 1).reshape(-1, 2, 2)
    )
    terms = _plane_terms(columns, marginals, i, j, centre, spread, mask)
    # Means 0, variances 1, correlation `seen`: t = (0, 0, −½, −seen, −½)
    half = np.full_like(seen, -0.5)
    statistic = np.stack([np.zeros_like(seen), np.zeros_like(seen), half, -seen, half], axis=1)
    domain = Domain.around(precision, n / moments.rows)

    def objective(theta: Floats, problems: Integers) -> tuple[Floats, Floats, Floats]:
        f, g, H = plane_partition(theta, terms, problems)
        t = statistic[problems]
        return f - (theta * t).sum(axis=1), g - t, H

    minimum = minimise(objective, domain, domain.start())
    t11, t12, t22 = minimum.theta[:, 2:].T
    covariance = -t12 / (t11 * t22 - t12**2) * spread.prod(axis=1)
    return covariance, minimum.on_edge, minimum.converged


def _plane_terms(
    columns: Columns,
    marginals: Marginals,
    i: Integers,
    j: Integers,
    centre: Floats,
    spread: Floats,
    mask: NDArray[np.bool_] | None,
) -> PlaneTerms:
    """Seen-seen sets of each pair, in the units of the pair."""
    left, right, weights, sizes = [], [], [], []
    for k, (a, b) in enumerate(zip(i, j, strict=True)):
        if columns.items[a].group is None and columns.items[b].group is None:
            here, there, share = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp), np.ones(1)
        else:
            assert mask is not None
            here, there, table = count_cells_by_row(columns, mask, a, b)
            used = np.flatnonzero(table[:, 0])
            here, there, share = here[used], there[used], table[used, 0] / table[:, 0].sum()
        general = needs_series(columns.items[a]) or needs_series(columns.items[b])
        sides = []
        for side, (column, chosen) in enumerate(((a, here), (b, there))):
            sets = columns.items[column].sets.take(chosen)
            if general:
                sets = _as_nodes(sets, columns, marginals, column)
            # From the units of the column to those of the pair.
            shift = (centre[k, side] - columns.mean[column]) / columns.spread[column]
            sides.append(sets.standardised(shift, spread[k, side] / columns.spread[column]))
        left.append(sides[0])
        right.append(sides[1])
        weights.append(share)
        sizes.append(share.size)
    return _pack(SetTable.join(left), SetTable.join(right), np.concatenate(weights), starts(sizes))


def _as_nodes(sets: SetTable, columns: Columns, marginals: Marginals, column: int) -> SetTable:
    """Nodes within reach of the fitted marginal, for one set of either kind."""
    centre = (marginals.mean[column] - columns.mean[column]) / columns.spread[column]
    reach = NODE_REACH * marginals.deviation[column] / columns.spread[column]
    if not sets.is_intervals:
        near = np.abs(sets.node - centre) <= reach
        return set_of_nodes(sets.node[near], sets.weight[near], sets.hidden_weight[near])
    lower, upper = np.maximum(sets.lower, centre - reach), np.minimum(sets.upper, centre + reach)
    rules = []
    for low, high in zip(lower, upper, strict=True):
        if low < high:
            panels = 1 + int((high - low) / (0.1 * reach))
            rules.append(composite_rule(np.linspace(low, high, panels + 1), 16))
    node, weight = (np.concatenate(part) for part in zip(*rules, strict=True))
    return set_of_nodes(node, weight, np.zeros_like(weight))


def _pack(left: SetTable, right: SetTable, weights: Floats, start: Integers) -> PlaneTerms:
    """Products of the sets of both sides, term by term, as ragged arrays of rectangles."""
    rows, counts = [], np.diff(left.start) * np.diff(right.start)
    for t in range(len(left)):
        a = np.arange(left.start[t], left.start[t + 1])
        b = np.arange(right.start[t], right.start[t + 1])
        rows.append(np.stack([np.repeat(a, b.size), np.tile(b, a.size)], axis=1))
    first, second = np.concatenate(rows).T
    return PlaneTerms(
        start,
        weights,
        starts(counts),
        np.stack([left.lower[first], right.lower[second]], axis=1),
        np.stack([left.upper[first], right.upper[second]], axis=1),
        left.node_start,
        left.node,
        left.weight,
        right.node_start,
        right.node,
        right.weight,
    )


def truncation(
    X: Any,
    missingness: Missingness | None = None,
    *,
    form: Form = "correlation",
    eigenvalue_floor: float = EIGENVALUE_FLOOR,
    n_jobs: int | None = None,
    spread: Spread | None = None,
) -> Estimate:
    """Learn a Gaussian from the seen values alone.

    Each column is a one-dimensional truncated problem and each pair a two-dimensional one, as in
    Algorithm 1 of the paper; both are convex and solved by Newton's method, with exact moments in
    place of sampled ones. Hidden cells are not used, so the answer stays right when some of them
    are missing completely at random, for reasons that have nothing to do with any value. Where they
    are missing for other reasons, use ``full`` with ``missing_at_random=``.

    Parameters
    ----------
    X : array-like of shape (n, d), data frame, or PairMoments
        NaN where a value is hidden.
    missingness : SelfCensoring or DetectionLimits, optional
        What hides a value. None: nothing does, and NaN is missing at random.
    form : {"correlation", "paper"}
        "correlation" keeps the one-dimensional answers and solves each pair for its correlation
        alone, which about halves the error; "paper" frees all five parameters of each pair and
        keeps Σ̂₁₂, as the paper does.
    eigenvalue_floor : float
        Smallest eigenvalue of the assembled correlation matrix.
    n_jobs : int or None
        Threads; None for all cores. The answer does not depend on it.
    spread : callable, optional
        Who solves the pairs, in place of threads: the ``map`` of an engine.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import halfseen as hs
    >>> truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> fit = hs.solvers.truncation(hs.simulate(truth, rule, 20_000), rule)
    >>> bool(abs(fit.correlation[0, 1] - 0.5) < 0.05)
    True
    """
    if form not in ("correlation", "paper"):
        raise InputError(f'form must be "correlation" or "paper"; got {form!r}.')
    data = prepare(X, missingness, "truncation", n_jobs)
    with single_blas_thread():
        marginals = truncated_marginals(data.columns)
        pairs = solve_pairs(data.moments, data.columns, marginals, False, data.mask, n_jobs, spread)
        if form == "paper":
            pairs = solve_planes(data.moments, data.columns, marginals, pairs, data.mask, n_jobs)
        return finish(data, marginals, pairs, "truncation", eigenvalue_floor, {"form": form})


def finish(
    data: ByColumn,
    marginals: Marginals,
    pairs: Correlations,
    method: str,
    floor: float,
    history: dict[str, Any],
) -> Estimate:
    """Assemble the pieces into an ``Estimate``, with notes on whatever was out of the ordinary."""
    covariance, before, projected = assemble(marginals.deviation, pairs.rho, floor)
    notes = joint_row_notes(data.moments)
    notes += projection_notes(covariance, before, projected, floor)
    edge = [data.names[i] for i in np.flatnonzero(marginals.minimum.on_edge)]
    edge += pair_names(data.names, pairs.on_edge)
    if edge:
        notes.append(Note(Status.ON_DOMAIN_EDGE, f"On the edge: {name_some(edge)}."))
    unsettled = [data.names[i] for i in np.flatnonzero(~marginals.minimum.converged)]
    unsettled += pair_names(data.names, ~pairs.converged)
    if unsettled:
        notes.append(Note(Status.NOT_CONVERGED, f"Not settled: {name_some(unsettled)}."))
    return Estimate(
        Gaussian(marginals.mean, covariance),
        method,
        data.names,
        data.moments.rows,
        data.columns.share,
        tuple(notes),
        {**history, "covariance_before_projection": before},
    )
