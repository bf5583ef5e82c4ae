"""Likelihood of what is seen of a Gaussian, and its top, without anything of halfseen's solvers.

Seen cells enter by their density. Blank cells are left out, which integrates over them. Cells that are
confined to sets enter by the probability of these given what is seen: sets are cut into boxes, and the
mass of a box comes from sequential conditioning (GHK) on a point set that never changes, so that the
likelihood is a smooth function of the parameters. One interval in a row has a closed form.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri, ndtri_exp
from scipy.stats import qmc

Floats = NDArray[np.float64]
# Values of a standard normal for one cell that is hidden by chance: the trapezoidal rule, which for
# analytic functions errs by exp(−2π · distance of the nearest pole / step).
LINE = np.linspace(-9.0, 9.0, 361)
# No box gets fewer points, however many boxes share those of its row.
FEWEST_POINTS = 16
# Numbers that are worked on at once: what fits into a cache of some megabytes.
AT_ONCE = 400_000
LOG_TWO_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class HiddenSet:
    """Where the hidden cells of a column lie.

    Attributes
    ----------
    lower, upper : arrays of shape (1, pieces) or (n, pieces)
        Ends of disjoint intervals, for all rows or for each.
    probability : callable, optional
        In their place, the probability with which a value is hidden.
    """

    lower: Floats
    upper: Floats
    probability: Callable[[Floats], Floats] | None = None

    @classmethod
    def of(cls, *pieces: tuple[float, float]) -> HiddenSet:
        """Make the set that is the same in every row."""
        ends = np.array(pieces, dtype=float)
        return cls(ends[None, :, 0], ends[None, :, 1])

    @classmethod
    def by_chance(cls, probability: Callable[[Floats], Floats]) -> HiddenSet:
        """Make the set of a column whose values are hidden with some probability."""
        return cls(np.full((1, 1), -np.inf), np.full((1, 1), np.inf), probability)


class Pattern(NamedTuple):
    """Rows in which the same cells are seen, and the same are confined."""

    rows: NDArray[np.intp]
    seen: NDArray[np.intp]
    confined: NDArray[np.intp]


class Group(NamedTuple):
    """Rows with as many confined cells, as many boxes, and as many cells hidden by chance.

    Attributes
    ----------
    rows : array of shape (R,)
    columns : array of shape (R, k)
        The confined cells; those hidden by chance come first.
    lower, upper : arrays of shape (R, Q, k)
        The Q boxes of each row.
    chance : int
        Cells that are hidden by chance.
    points : array of shape (k, P)
        Points in the unit cube, common to all boxes.
    shift : array of shape (R, Q, k)
        What is added to them, modulo 1: errors of rows are then independent, and do not add up.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    lower: Floats
    upper: Floats
    chance: int
    points: Floats
    shift: Floats


class Evaluation(NamedTuple):
    """Log-likelihood of each row, and its slopes along the coordinates of ``moved``."""

    rows: Floats
    scores: Floats

    @property
    def total(self) -> float:
        """Log-likelihood of the table."""
        return float(self.rows.sum())


class Top(NamedTuple):
    """Where a climb ended."""

    log_likelihood: float
    mean: Floats
    covariance: Floats
    gain_left: float
    steps: int


class Observed:
    """A table with hidden and blank cells, ready for evaluation.

    Parameters
    ----------
    X : array of shape (n, d)
        NaN where hidden or blank.
    hidden : sequence of HiddenSet or None
        For each column, where its hidden cells lie; None for one that is never hidden.
    blank : boolean array of shape (n, d), optional
        Cells that are missing at random.
    points : int
        Points for each row with two or more confined cells.
    seed : int
        Of the point set.
    """

    def __init__(
        self,
        X: Floats,
        hidden: Sequence[HiddenSet | None],
        blank: NDArray[np.bool_] | None = None,
        points: int = 1024,
        seed: int = 0,
    ) -> None:
        self.X = np.asarray(X, dtype=float)
        self.hidden = tuple(hidden)
        seen = ~np.isnan(self.X)
        blank = ~seen & (np.zeros(self.X.shape, bool) if blank is None else np.asarray(blank))
        self.confined = ~seen & ~blank
        # Cells hidden by chance first: the last cell of a row is then an interval, in closed form.
        by_chance = np.array([h is not None and h.probability is not None for h in self.hidden])
        self.order = np.argsort(~by_chance, kind="stable")
        self.by_chance = by_chance
        self.patterns = self._patterns(seen)
        self.groups = self._groups(points, np.random.default_rng(seed))

    def _patterns(self, seen: NDArray[np.bool_]) -> list[Pattern]:
        state = np.where(seen, 2, np.where(self.confined, 1, 0)).astype(np.int8)
        distinct, member = np.unique(state, axis=0, return_inverse=True)
        by_pattern = np.argsort(member.ravel(), kind="stable")
        cuts = np.cumsum(np.bincount(member.ravel()))[:-1]
        return [
            Pattern(rows, np.flatnonzero(line == 2), self.order[line[self.order] == 1])
            for rows, line in zip(np.split(by_pattern, cuts), distinct, strict=True)
        ]

    def _groups(self, points: int, rng: np.random.Generator) -> list[Group]:
        parts: dict[tuple[int, int, int], list[tuple[np.ndarray, ...]]] = defaultdict(list)
        for rows, _, confined in self.patterns:
            if not confined.size:
                continue
            lower, upper = self._boxes(rows, confined)
            key = (confined.size, lower.shape[1], int(self.by_chance[confined].sum()))
            parts[key].append((rows, np.tile(confined, (rows.size, 1)), lower, upper))
        groups = []
        for (k, boxes, chance), part in sorted(parts.items(), key=lambda item: item[0]):
            rows, columns, lower, upper = (np.concatenate(p) for p in zip(*part, strict=True))
            # A single cell needs no points.
            power = int(np.log2(max(points / boxes, FEWEST_POINTS))) if k > 1 else 0
            cube = qmc.Sobol(k, rng=rng).random_base2(power).T
            shift = rng.random(lower.shape)
            groups.append(Group(rows, columns, lower, upper, chance, cube, shift))
        return groups

    def _boxes(self, rows: NDArray[np.intp], confined: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Cut the hidden sets of some rows into boxes: lower and upper ends, of shape (R, Q, k)."""
        ends = []
        for side in ("lower", "upper"):
            columns = []
            for j in confined:
                hidden = self.hidden[j]
                assert hidden is not None, f"column {j} has hidden cells, but no set"
                table = getattr(hidden, side)
                columns.append(np.broadcast_to(table, (len(self.X), table.shape[1]))[rows])
            choices = itertools.product(*(range(c.shape[1]) for c in columns))
            boxes = [
                np.stack([c[:, q] for c, q in zip(columns, choice, strict=True)], axis=1)
                for choice in choices
            ]
            ends.append(np.stack(boxes, axis=1))
        return ends[0], ends[1]

    def log_likelihood(self, mean: Floats, covariance: Floats) -> float:
        """Log-likelihood of the table; -inf where the covariance is not positive definite."""
        try:
            rows, _, _ = self._integrate(mean, covariance)
        except np.linalg.LinAlgError:
            return -np.inf
        total = float(rows.sum())
        return total if np.isfinite(total) else -np.inf

    def evaluate(self, mean: Floats, L: Floats) -> Evaluation:
        """Log-likelihood and scores at a mean and the Cholesky factor of a covariance.

        The score of what is seen is the conditional expectation of that of the seen and confined
        cells together (Fisher's identity). In the coordinates of ``moved`` it is, with T the inverse
        of their covariance, e their expected deviation and W their conditional covariance,
        s = Lᵀ T e for the mean and s sᵀ + Lᵀ T W T L − Lᵀ T L for L.
        """
        rows, expected, spread = self._integrate(mean, L @ L.T)
        n, d = self.X.shape
        lower = np.tril_indices(d)
        scores = np.empty((n, d + lower[0].size))
        for where, seen, confined in self.patterns:
            known = np.concatenate([seen, confined])
            k = confined.size
            step = np.hstack([self.X[np.ix_(where, seen)] - mean[seen], expected[where, :k]])
            # Tᵀ L of the known cells, of shape (known, d).
            T_L = np.linalg.solve((L @ L.T)[np.ix_(known, known)], L[known])
            s = step @ T_L
            inner = T_L[seen.size :]
            square = s[:, :, None] * s[:, None, :] - L[known].T @ T_L
            if k:
                square += inner.T @ spread[where, :k, :k] @ inner
            scores[where, :d] = s
            scores[where, d:] = square[:, lower[0], lower[1]]
        return Evaluation(rows, scores)

    def _integrate(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats, Floats]:
        """Log-likelihood of rows; deviation from the mean and covariance of their confined cells."""
        n, d = self.X.shape
        rows = np.zeros(n)
        centre, within = np.zeros((n, d)), np.zeros((n, d, d))
        for where, seen, confined in self.patterns:
            k = confined.size
            V = covariance[np.ix_(confined, confined)]
            if seen.size:
                factor = np.linalg.cholesky(covariance[np.ix_(seen, seen)])
                step = np.linalg.solve(factor, (self.X[np.ix_(where, seen)] - mean[seen]).T)
                rows[where] = -0.5 * (step**2).sum(axis=0) - np.log(np.diag(factor)).sum()
                rows[where] -= 0.5 * seen.size * LOG_TWO_PI
                across = np.linalg.solve(factor, covariance[np.ix_(seen, confined)])
                centre[where, :k] = step.T @ across
                V = V - across.T @ across
            within[where, :k, :k] = V
        expected, spread = np.zeros((n, d)), np.zeros((n, d, d))
        for group in self.groups:
            k = group.columns.shape[1]
            factor = np.linalg.cholesky(within[group.rows, :k, :k])
            # A runaway is evaluated too; what overflows is then -inf in the end.
            with np.errstate(over="ignore", invalid="ignore"):
                mass, e, W = self._masses(group, mean, centre[group.rows, :k], factor)
            rows[group.rows] += mass
            expected[group.rows, :k] = e
            spread[group.rows, :k, :k] = W
        return rows, expected, spread

    def _masses(
        self, group: Group, mean: Floats, centre: Floats, factor: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Log-mass of the hidden sets of the rows of a group, and conditional moments."""
        R, Q, k = group.lower.shape
        # Ends and centres as deviations from the mean, which keeps digits.
        middle = mean[group.columns]
        mass, first, second = np.empty((R, Q)), np.empty((R, Q, k)), np.empty((R, Q, k, k))
        size = max(1, AT_ONCE // (Q * max(group.points.shape[1], LINE.size) * k))
        for start in range(0, R, size):
            part = slice(start, start + size)
            flat = (len(mass[part]) * Q, k)
            u = group.points[:, None] + group.shift[part].reshape(flat).T[:, :, None]
            u -= u >= 1.0
            found = _box_moments(
                np.repeat(centre[part], Q, axis=0),
                np.repeat(factor[part], Q, axis=0),
                (group.lower[part] - middle[part, None]).reshape(flat),
                (group.upper[part] - middle[part, None]).reshape(flat),
                self._chances(group, part, mean),
                u,
            )
            mass[part] = found[0].reshape(-1, Q)
            first[part] = found[1].reshape(-1, Q, k)
            second[part] = found[2].reshape(-1, Q, k, k)
        return _mixture(mass, first, second)

    def _chances(self, group: Group, part: slice, mean: Floats) -> list[Callable]:
        """Log-probabilities of being hidden at deviations from the mean, for each place by chance."""
        Q = group.lower.shape[1]

        def at(place: int) -> Callable[[Floats], Floats]:
            columns = np.repeat(group.columns[part, place], Q)

            def log_probability(step: Floats) -> Floats:
                out = np.empty(step.shape)
                for j in np.unique(columns):
                    own, function = columns == j, self.hidden[j].probability
                    out[own] = np.log(np.maximum(function(mean[j] + step[own]), 1e-300))
                return out

            return log_probability

        return [at(place) for place in range(group.chance)]


def _mixture(mass: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Log-mass, mean and covariance over the boxes of each row, from raw moments in each box."""
    most = mass.max(axis=1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    share = np.exp(mass - most)
    total = share.sum(axis=1)
    # A row that is impossible in every box has the log-mass -inf, and moments that nobody uses.
    share = share / np.maximum(total, 1e-300)[:, None]
    mean = np.einsum("rq,rqi->ri", share, first)
    spread = np.einsum("rq,rqij->rij", share, second) - mean[:, :, None] * mean[:, None, :]
    with np.errstate(divide="ignore"):
        return most[:, 0] + np.log(total), mean, spread


def _box_moments(
    centre: Floats,
    factor: Floats,
    lower: Floats,
    upper: Floats,
    chances: Sequence[Callable[[Floats], Floats]],
    u: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Log-mass, mean and raw second moment of Gaussians in B boxes of k sides.

    Parameters
    ----------
    centre, factor : arrays of shapes (B, k) and (B, k, k)
        Means, and Cholesky factors of covariances.
    lower, upper : arrays of shape (B, k)
    chances : sequence of callable
        For the first sides, log-probabilities in place of ends.
    u : array of shape (k, B, P)
        Points of the unit cube.
    """
    k, B, P = u.shape
    if k == 1:
        # One interval has a closed form, one cell by chance the rule of LINE: neither needs points.
        P = LINE.size if chances else 1
    z = np.empty((k, B, P))
    log_weight, rest = np.zeros((B, P)), np.zeros((B, P))
    for c in range(k):
        m = centre[:, c, None] + sum(factor[:, c, j, None] * z[j] for j in range(c))
        s = factor[:, c, c, None]
        if c < len(chances):
            if k == 1:
                z[c] = LINE
                log_weight += np.log(P * (LINE[1] - LINE[0])) - 0.5 * (LINE**2 + LOG_TWO_PI)
            else:
                z[c] = ndtri(np.maximum(u[c], 1e-16))
            log_weight += chances[c](m + s * z[c])
        else:
            a, b = (lower[:, c, None] - m) / s, (upper[:, c, None] - m) / s
            mass, z[c], rest = _in_interval(a, b, u[c] if c + 1 < k else None)
            log_weight += mass
    most = log_weight.max(axis=1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    weight = np.exp(log_weight - most)
    total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    weight /= total
    by_box = z.transpose(1, 0, 2)
    weighted = by_box * weight[:, None, :]
    second = weighted @ by_box.transpose(0, 2, 1)
    second[:, -1, -1] += (weight * rest).sum(axis=1)
    shift = np.einsum("bij,bj->bi", factor, weighted.sum(axis=2))
    around = factor @ second @ factor.transpose(0, 2, 1)
    cross = shift[:, :, None] * centre[:, None, :]
    raw = around + cross + cross.transpose(0, 2, 1) + centre[:, :, None] * centre[:, None, :]
    return (most + np.log(total / P))[:, 0], centre + shift, raw


def _in_interval(a: Floats, b: Floats, u: Floats | None) -> tuple[Floats, Floats, Floats]:
    """Log-mass of a standard normal in (a, b), a value in it, and the variance around that value.

    The value is the quantile at ``u``, or without ``u`` the conditional mean.
    """
    # The side on which the tail is small, where logarithms have all digits.
    flip = a + b > 0.0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    end = log_ndtr(high)
    # Φ(low) / Φ(high); 0 for a half-line.
    ratio = np.zeros(low.shape)
    bounded = low > -np.inf
    if bounded.any():
        ratio[bounded] = np.exp(log_ndtr(low[bounded]) - end[bounded])
    ratio = np.minimum(ratio, 1.0 - 1e-15)
    mass = end + np.log1p(-ratio)
    if u is not None:
        u = np.maximum(u, 1e-16)
        z, rest = ndtri_exp(end + np.log(u + (1.0 - u) * ratio)), np.zeros(low.shape)
    else:
        # (φ(low) − φ(high)) / mass, and the same with low·φ(low) − high·φ(high).
        ends = [np.exp(-0.5 * (x**2 + LOG_TWO_PI) - mass) for x in (low, high)]
        steps = [
            np.where(np.isfinite(x), x, 0.0) * e for x, e in zip((low, high), ends, strict=True)
        ]
        z = ends[0] - ends[1]
        rest = np.clip(1.0 + steps[0] - steps[1] - z**2, 0.0, 1.0)
    return mass, np.where(flip, -z, z), rest


def moved(mean: Floats, L: Floats, step: Floats) -> tuple[Floats, Floats]:
    """Mean and Cholesky factor after a step: μ + L a, and L B with log-diagonal and entries below."""
    d = mean.size
    B = np.zeros((d, d))
    B[np.tril_indices(d)] = step[d:]
    np.fill_diagonal(B, np.exp(np.diag(B)))
    return mean + L @ step[:d], L @ B


def climb(
    observed: Observed,
    mean: Floats,
    covariance: Floats,
    tolerance: float = 1e-3,
    most_steps: int = 100,
) -> Top:
    """Climb from one start: scoring with outer products of scores, damped as by Levenberg.

    In the coordinates of ``moved`` the information of n complete rows is n (2n for the diagonal), so
    that a damping of 1 is about a step of expectation maximisation.
    """
    L = np.linalg.cholesky(covariance)
    mean = np.asarray(mean, dtype=float)
    here, damping, gain = observed.evaluate(mean, L), 1e-3, np.inf
    n = len(here.rows)
    taken = 0
    while taken < most_steps:
        taken += 1
        slope, products = here.scores.sum(axis=0), here.scores.T @ here.scores
        products[np.diag_indices_from(products)] += 1e-9 * n
        gain = 0.5 * float(slope @ np.linalg.solve(products, slope))
        # Scores are those of the integral, values those of the sum over points: where the difference
        # between them is all that is left, no step leads up.
        if gain < tolerance or damping > 1e3:
            break
        products[np.diag_indices_from(products)] += damping * n
        step = np.linalg.solve(products, slope)
        step *= min(1.0, 3.0 / np.abs(step).max())
        ahead = _try(observed, *moved(mean, L, step))
        if ahead is not None and ahead.total > here.total:
            mean, L = moved(mean, L, step)
            here, damping = ahead, max(damping / 10.0, 1e-6)
        else:
            damping *= 30.0
    return Top(here.total, mean, L @ L.T, gain, taken)


def _try(observed: Observed, mean: Floats, L: Floats) -> Evaluation | None:
    try:
        found = observed.evaluate(mean, L)
    except np.linalg.LinAlgError:
        return None
    return found if np.isfinite(found.total) and np.isfinite(found.scores).all() else None


def highest(tops: Iterable[Top]) -> Top:
    """Return the highest of several tops."""
    return max(tops, key=lambda top: top.log_likelihood)
