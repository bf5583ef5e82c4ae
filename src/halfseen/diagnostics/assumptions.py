"""The constants of the paper's assumptions, estimated from data: α, β, anchors, γ, and what follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtr

from halfseen.checks import finite_vector
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.conditionals import check_covariance
from halfseen.solvers.initialize import block_size
from halfseen.solvers.missing_descent import rarest_subset

# Anchors at which γ is looked for, and completions drawn at each.
ANCHOR_ROWS, COMPLETIONS = 200, 2000


@dataclass(frozen=True)
class Share:
    """A share of rows, with a 95 % confidence interval (Clopper and Pearson).

    Attributes
    ----------
    value : float
    lower, upper : float
        Ends of the interval.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 300)
    >>> found = hs.diagnose(X, rule).alpha
    >>> found.lower < found.value < found.upper
    True
    """

    value: float
    lower: float
    upper: float

    @classmethod
    def of(cls, hits: int, rows: int, level: float = 0.95) -> Share:
        """Share of ``hits`` among ``rows``."""
        tail = 0.5 * (1.0 - level)
        # Quantiles of beta distributions
        lower = betaincinv(hits, rows - hits + 1, tail) if hits else 0.0
        upper = betaincinv(hits + 1, rows - hits, 1.0 - tail) if hits < rows else 1.0
        return cls(hits / rows, float(lower), float(upper))

    def __str__(self) -> str:
        return f"{self.value:.3f} (95 % interval {self.lower:.3f} to {self.upper:.3f})"


class Constants(NamedTuple):
    """The constants of the paper's assumptions; see ``Diagnosis``."""

    subset_size: int
    alpha: Share
    subset: tuple[str, ...]
    every_subset: bool
    anchors: tuple[str, ...]
    gamma: float | None
    strong_convexity: float | None
    start_distance: float | None


def paper_constants(
    values: NDArray[np.float64],
    names: tuple[str, ...],
    missingness: Missingness | None,
    covariance: ArrayLike | None,
    mean: ArrayLike | None,
    beta: float | None,
    seed: int,
) -> Constants:
    """Estimate α, β, anchors, γ, and what follows, from values that are NaN where hidden.

    By default a pair is to be seen together under rules by column (the paper's first assumption), one
    column under rules that bind columns together.
    """
    n, d = values.shape
    seen = ~np.isnan(values)
    if beta is None and (missingness is None or isinstance(missingness, ColumnwiseMissingness)):
        size = min(2, d)
    else:
        size = block_size(beta, d)
    subset, hits, every = rarest_subset(seen, size, seed)
    alpha = Share.of(hits, n)
    anchors = _anchors(seen, missingness)
    known = None if covariance is None else check_covariance(covariance, d)
    gamma = None
    if known is not None and mean is not None and isinstance(missingness, LinearThreshold):
        centred = Gaussian(finite_vector("mean", mean, d), known.covariance)
        gamma = _least_pattern_probability(centred, missingness, values, anchors, seed)
    largest = None if known is None else float(np.linalg.eigvalsh(known.covariance)[-1])
    share = size / d
    return Constants(
        size,
        alpha,
        tuple(names[k] for k in subset),
        every,
        tuple(names[k] for k in anchors),
        gamma,
        None if largest is None else alpha.value * share / largest,
        None if largest is None or hits == 0 else _start_distance(largest, share, alpha.value),
    )


def pair_shares(counts: NDArray[np.int_], rows: int) -> tuple[NDArray[np.float64], ...]:
    """Shares of rows in which pairs are seen together, with 95 % limits (Clopper and Pearson)."""
    lower, upper = np.zeros(counts.shape), np.ones(counts.shape)
    some, gaps = counts > 0, counts < rows
    lower[some] = betaincinv(counts[some], rows - counts[some] + 1, 0.025)
    upper[gaps] = betaincinv(counts[gaps] + 1, rows - counts[gaps], 0.975)
    return counts / rows, lower, upper


def _start_distance(largest: float, share: float, alpha: float) -> float:
    return math.sqrt(2.0 * largest / share * math.log(1.0 / alpha)) if alpha < 1.0 else 0.0


def _anchors(seen: NDArray[np.bool_], rule: Missingness | None) -> list[int]:
    always = seen.all(axis=0)
    if isinstance(rule, LinearThreshold):
        always &= rule.always_seen
    return [int(k) for k in np.flatnonzero(always)]


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
