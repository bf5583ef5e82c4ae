"""The constants of the paper's assumptions, estimated from data: α, β, anchors, γ, and what follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtr

from halfseen.checks import finite_vector
from halfseen.data.table import check_finite, read_table
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.solvers.conditionals import check_covariance
from halfseen.solvers.initialize import block_size
from halfseen.solvers.missing_descent import rarest_subset
from halfseen.solvers.result import name_some

# Anchors at which γ is looked for, and completions drawn at each.
ANCHOR_ROWS, COMPLETIONS = 200, 2000


@dataclass(frozen=True)
class Share:
    """A share of rows, with a 95 % confidence interval (Clopper and Pearson)."""

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


@dataclass(frozen=True)
class Diagnosis:
    """What the data say about the assumptions of the paper.

    Attributes
    ----------
    rows : int
    subset_size : int
        βd, the number of columns that are to be seen together.
    alpha : Share
        Least share of rows in which ``subset_size`` columns are seen together.
    subset : tuple of str
        The columns with that share.
    every_subset : bool
        Whether all subsets were looked at, or a sample of them.
    anchors : tuple of str
        Columns that are seen in every row, and by the rule always are.
    gamma : float or None
        Upper bound on the least probability of a pattern given the anchors: that of the rarest pattern
        in simulations, or of the rarest single event, whichever is less. None without a covariance and
        a mean, or without anchors.
    strong_convexity : float or None
        αβ/λ_max(Σ), where the covariance is known.
    start_distance : float or None
        Bound √(2 λ_max/β · log 1/α) on the distance from the mean of what ``initialize`` converges to.
    """

    rows: int
    subset_size: int
    alpha: Share
    subset: tuple[str, ...]
    every_subset: bool
    anchors: tuple[str, ...]
    gamma: float | None
    strong_convexity: float | None
    start_distance: float | None

    def __str__(self) -> str:
        looked = "all subsets" if self.every_subset else "a sample of subsets"
        lines = [
            f"rows: {self.rows}",
            f"alpha, least share in which {self.subset_size} column"
            f"{'s are' if self.subset_size > 1 else ' is'} seen{' together' * (self.subset_size > 1)} "
            f"({looked}):",
            f"  {self.alpha}, for {name_some(list(self.subset), 6)}",
            f"anchors: {name_some(list(self.anchors), 6) or 'none'}",
        ]
        if self.gamma is not None:
            lines.append(
                f"gamma, least probability of a pattern given the anchors, at most: {self.gamma:.2g}"
            )
        if self.strong_convexity is not None:
            lines.append(f"strong convexity, at least: {self.strong_convexity:.3g}")
        if self.start_distance is not None:
            lines.append(f"bias of the start, at most: {self.start_distance:.3g}")
        return "\n".join(lines)


def diagnose(
    X: Any,
    missingness: Missingness,
    *,
    covariance: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    beta: float | None = None,
    random_state: RandomState = 0,
) -> Diagnosis:
    """Estimate the constants of the paper's assumptions.

    Parameters
    ----------
    X : array-like of shape (n, d)
        NaN where a value is hidden.
    missingness : Missingness
    covariance : array-like of shape (d, d), optional
        Σ, for what depends on it.
    mean : array-like of shape (d,), optional
        The fitted mean, for γ.
    beta : float, optional
        Share of the columns that are to be seen together; by default a pair for rules by column (the
        paper's first assumption), one column for linear thresholds.
    random_state : int, Generator or None
        Seed of sampled subsets and of the simulation for γ.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import halfseen as hs
    >>> truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> rule = hs.LinearThreshold.heckman(1, [1.0, 0.0])
    >>> X = hs.simulate(truth, rule, 1000)
    >>> found = hs.diagnose(X, rule, covariance=truth.covariance, mean=truth.mean)
    >>> found.anchors, 0.4 < found.alpha.value < 0.6
    (('x0',), True)
    """
    if not isinstance(missingness, Missingness):
        raise InputError(f"missingness must be a rule; got {missingness!r}.")
    table = read_table(X)
    values, names = np.asarray(table.values, dtype=np.float64), table.names
    d = values.shape[1]
    missingness = missingness.for_columns(names)
    check_finite(values, names)
    missingness.check(values, names)
    seed = seed_of(random_state)
    seen = ~np.isnan(values)
    if beta is None and isinstance(missingness, ColumnwiseMissingness):
        size = min(2, d)
    else:
        size = block_size(beta, d)
    subset, hits, every = rarest_subset(seen, size, seed)
    alpha = Share.of(hits, len(values))
    anchors = _anchors(seen, missingness)
    known = None if covariance is None else check_covariance(covariance, d)
    gamma = None
    if known is not None and mean is not None and isinstance(missingness, LinearThreshold):
        centred = Gaussian(finite_vector("mean", mean, d), known.covariance)
        gamma = _least_pattern_probability(centred, missingness, values, anchors, seed)
    largest = None if known is None else float(np.linalg.eigvalsh(known.covariance)[-1])
    share = size / d
    return Diagnosis(
        len(values),
        size,
        alpha,
        tuple(names[k] for k in subset),
        every,
        tuple(names[k] for k in anchors),
        gamma,
        None if largest is None else alpha.value * share / largest,
        None if largest is None or hits == 0 else _start_distance(largest, share, alpha.value),
    )


def _start_distance(largest: float, share: float, alpha: float) -> float:
    return math.sqrt(2.0 * largest / share * math.log(1.0 / alpha)) if alpha < 1.0 else 0.0


def _anchors(seen: NDArray[np.bool_], rule: Missingness) -> list[int]:
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
