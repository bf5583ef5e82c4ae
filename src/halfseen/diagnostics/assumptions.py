"""The constants of the paper's assumptions, estimated from a table: α, β, anchors, γ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from halfseen.checks import finite_vector
from halfseen.diagnostics.checked_table import CheckedTable
from halfseen.diagnostics.diagnosis import Share
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import ColumnwiseMissingness
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.conditionals import check_covariance
from halfseen.solvers.descent_defaults import rarest_subset
from halfseen.solvers.initialize import block_size

# Anchors at which γ is looked for, and completions drawn at each.
ANCHOR_ROWS, COMPLETIONS = 200, 2000


def paper_constants(
    table: CheckedTable,
    covariance: ArrayLike | None,
    mean: ArrayLike | None,
    beta: float | None,
    seed: int,
) -> dict[str, Any]:
    """Estimate the constants of the paper's assumptions: α, β, anchors, γ, and what follows.

    By default a pair is to be seen together under rules by column (the paper's first assumption), one
    column under rules that bind columns together. The names are those of ``Diagnosis``.
    """
    n, d = table.values.shape
    if beta is None and (table.rule is None or isinstance(table.rule, ColumnwiseMissingness)):
        size = min(2, d)
    else:
        size = block_size(beta, d)
    subset, hits, every = rarest_subset(table.seen, size, seed)
    alpha, share = Share.of(hits, n), size / d
    always = table.seen.all(axis=0)
    if isinstance(table.rule, LinearThreshold):
        always &= table.rule.always_seen
    anchors = np.flatnonzero(always).tolist()
    gamma, convexity, distance = None, None, None
    if covariance is not None:
        known = check_covariance(covariance, d)
        if mean is not None and isinstance(table.rule, LinearThreshold):
            centred = Gaussian(finite_vector("mean", mean, d), known.covariance)
            gamma = _least_pattern_probability(centred, table.rule, table.values, anchors, seed)
        largest = float(np.linalg.eigvalsh(known.covariance)[-1])
        convexity = alpha.value * share / largest
        if hits:
            # No more than nothing where all rows are seen.
            log = math.log(1.0 / alpha.value) if alpha.value < 1.0 else 0.0
            distance = math.sqrt(2.0 * largest / share * log)
    return {
        "subset_size": size,
        "alpha": alpha,
        "subset": tuple(table.names[k] for k in subset),
        "every_subset": every,
        "anchors": tuple(table.names[k] for k in anchors),
        "gamma": gamma,
        "strong_convexity": convexity,
        "start_distance": distance,
    }


def _least_pattern_probability(
    fitted: Gaussian,
    rule: LinearThreshold,
    values: NDArray[np.float64],
    anchors: list[int],
    seed: int,
) -> float | None:
    """γ, at most: complete rows many times given their anchors, and find the rarest pattern.

    What is too rare to occur is bounded by the probability of the rarest single event, a coordinate
    being seen or hidden, which is known exactly.
    """
    rest = [k for k in range(fitted.dimension) if k not in anchors]
    if not anchors or not rest:
        return None
    rng = keyed_generator(seed, Purpose.DIAGNOSE, 1)
    rows = rng.choice(len(values), min(ANCHOR_ROWS, len(values)), replace=False)
    least = 1.0
    for row in rows:
        conditional = fitted.condition(anchors, values[row, anchors])
        V = rule.V[:, rest]
        spread = np.sqrt(np.einsum("ij,jk,ik->i", V, conditional.covariance, V))
        open_ = spread > 0
        level = rule.b - rule.V[:, anchors] @ values[row, anchors] - V @ conditional.mean
        ratio = level[open_] / spread[open_]
        shown, hidden = ndtr(ratio), ndtr(-ratio)
        least = min(least, float(np.minimum(shown, hidden).min(initial=1.0)))
        Y = np.empty((COMPLETIONS, fitted.dimension))
        Y[:, anchors] = values[row, anchors]
        Y[:, rest] = conditional.sample(COMPLETIONS, rng)
        _, counts = np.unique(rule.seen(Y), axis=0, return_counts=True)
        least = min(least, float(counts.min()) / COMPLETIONS)
    return least
