"""Random tables with hidden and blank cells, and the special ones that have made trouble.

Each comes with the rule as halfseen takes it, and with the same in the terms of ``exact_oracle``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

import halfseen as hs
from benchmarks.exact_oracle import HiddenSet, Observed

Floats = NDArray[np.float64]
Generator = np.random.Generator
# Rows in which two columns must be seen together: with fewer than their five parameters a line goes
# through all of them, and the likelihood may have no top.
FEWEST_TOGETHER = 10
# Each column of this kind doubles the boxes of a row.
MOST_UNIONS = 3
NONE = np.nan


@dataclass(frozen=True)
class Design:
    """A table, what hides its cells, and what it was drawn from.

    Attributes
    ----------
    name : str
        What it is, with the seed that makes it again.
    kinds : tuple of str
        How each column is hidden.
    X : array of shape (n, d)
        NaN where hidden or blank.
    rule : Missingness
        What hides, for halfseen.
    blank : boolean array of shape (n, d)
        Cells that are missing completely at random.
    hidden : tuple of HiddenSet or None
        What hides, for the oracle.
    mean, covariance : arrays of shapes (d,) and (d, d)
        The truth.
    windows : dict of int to float
        Middle of the window of columns that are seen between two limits.
    """

    name: str
    kinds: tuple[str, ...]
    X: Floats
    rule: hs.missingness.Missingness
    blank: NDArray[np.bool_]
    hidden: tuple[HiddenSet | None, ...]
    mean: Floats
    covariance: Floats
    windows: dict[int, float]

    def observed(self, points: int) -> Observed:
        """Return the table as the oracle takes it."""
        return Observed(self.X, self.hidden, self.blank, points)

    @property
    def options(self) -> dict[str, NDArray[np.bool_]]:
        """What ``hs.fit`` is told beside the rule."""
        return {"missing_at_random": self.blank} if self.blank.any() else {}


class Column(NamedTuple):
    """How one column is hidden: a set, or limits that differ by row; and the same for the oracle."""

    kind: str
    hidden: HiddenSet | None
    seen_set: hs.missingness.SeenSet | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    window: float | None = None


# Each takes the generator, quantiles of the column, the share to hide, the number of rows.
Quantile = Callable[[float | Floats], Floats]


def one_lower(rng: Generator, at: Quantile, share: float, n: int) -> Column:
    limit = float(at(share))
    return Column("lower", HiddenSet.of((-np.inf, limit)), hs.at_least(limit))


def one_upper(rng: Generator, at: Quantile, share: float, n: int) -> Column:
    limit = float(at(1.0 - share))
    return Column("upper", HiddenSet.of((limit, np.inf)), hs.at_most(limit))


def two_sided(rng: Generator, at: Quantile, share: float, n: int) -> Column:
    below = share * rng.uniform(0.05, 0.95)
    a, b = float(at(below)), float(at(1.0 - share + below))
    hidden = HiddenSet.of((-np.inf, a), (b, np.inf))
    return Column("two-sided", hidden, hs.between(a, b), window=0.5 * (a + b))


def in_the_middle(rng: Generator, at: Quantile, share: float, n: int) -> Column:
    below = (1.0 - share) * rng.uniform(0.1, 0.9)
    a, b = float(at(below)), float(at(below + share))
    return Column("middle", HiddenSet.of((a, b)), hs.at_most(a) | hs.at_least(b))


def union(rng: Generator, at: Quantile, share: float, n: int) -> Column:
    """Seen in a window and above it, or in two windows; hidden in a tail and between them."""
    tail = share * rng.uniform(0.2, 0.8)
    first = (1.0 - share) * rng.uniform(0.3, 0.7)
    a, b, c = (float(at(q)) for q in (tail, tail + first, share + first))
    return Column("union", HiddenSet.of((-np.inf, a), (b, c)), hs.between(a, b) | hs.at_least(c))


def limits_by_row(rng: Generator, at: Quantile, share: float, n: int) -> Column:
    """Limits of some laboratories, or of every row its own; below or above."""
    few = rng.random() < 0.5
    choices = np.clip(share + 0.3 * rng.uniform(-1.0, 1.0, int(rng.integers(2, 5))), 0.02, 0.85)
    shares = rng.choice(choices, n) if few else np.clip(rng.normal(share, 0.12, n), 0.02, 0.9)
    kind = "few limits" if few else "limits by row"
    if rng.random() < 0.7:
        limit = np.asarray(at(shares))
        hidden = HiddenSet(np.full((n, 1), -np.inf), limit[:, None])
        return Column(f"{kind}, lower", hidden, lower=limit)
    limit = np.asarray(at(1.0 - shares))
    return Column(f"{kind}, upper", HiddenSet(limit[:, None], np.full((n, 1), np.inf)), upper=limit)


def by_chance(rng: Generator, at: Quantile, share: float, n: int) -> Column:
    """Shown with a logistic probability, which rises or falls."""
    spread = float(at(0.8413) - at(0.5))
    steepness = rng.uniform(1.0, 8.0) * rng.choice([-1.0, 1.0]) / spread
    grid = at((np.arange(400) + 0.5) / 400)
    low, high = float(at(1e-6)), float(at(1.0 - 1e-6))
    for _ in range(50):
        middle = 0.5 * (low + high)
        too_much = expit(-steepness * (grid - middle)).mean() > share
        # A rising curve that is moved up hides more.
        low, high = (low, middle) if too_much == (steepness > 0) else (middle, high)
    centre = middle
    return Column(
        "by chance",
        HiddenSet.by_chance(lambda x: expit(-steepness * (x - centre))),
        hs.Probability(lambda x: expit(steepness * (x - centre))),
    )


def never(rng: Generator, at: Quantile, share: float, n: int) -> Column:
    return Column("never", None, hs.everything)


KINDS = (one_lower, one_upper, two_sided, in_the_middle, union, limits_by_row, by_chance, never)
WEIGHTS = np.array([5.0, 3.0, 2.0, 1.0, 1.5, 2.5, 2.0, 1.5])
UNIONS = (two_sided, union)


def correlations(rng: Generator, d: int) -> Floats:
    """Correlation matrix of one of three shapes; in a third of cases the largest is above 0.9."""
    strong = rng.random() < 0.35
    top = 1.0 - 10.0 ** rng.uniform(-3.0, -1.0) if strong else rng.uniform(0.0, 0.9)
    shape = rng.integers(3)
    if shape == 0:
        R = equal(d, top)
    elif shape == 1:
        loadings = rng.uniform(0.2, 1.0, d)
        loadings *= np.sqrt(top / np.sort(loadings)[-2:].prod())
        loadings = np.minimum(loadings, 0.9999)
        R = np.outer(loadings, loadings)
        np.fill_diagonal(R, 1.0)
    else:
        A = rng.normal(size=(d, d + int(rng.integers(1, 6))))
        R = _rescaled(A @ A.T)
        highest = (R - 2.0 * np.eye(d)).max()
        if strong and highest < top:
            # What all columns have in common, as much as makes the largest correlation the wanted one.
            R = _rescaled(R + (top - highest) / (1.0 - top))
    signs = rng.choice([-1.0, 1.0], d) if rng.random() < 0.4 else np.ones(d)
    return R * np.outer(signs, signs)


def _rescaled(S: Floats) -> Floats:
    spread = np.sqrt(np.diag(S))
    return S / np.outer(spread, spread)


def built(
    name: str, truth: tuple[Floats, Floats], columns: Sequence[Column], Y: Floats, blank, rng
) -> Design:
    """Hide cells of a complete table, and put a design together."""
    X = Y.copy()
    for j, column in enumerate(columns):
        hidden = column.hidden
        if hidden is None:
            continue
        if hidden.probability is not None:
            away = rng.random(len(Y)) < hidden.probability(Y[:, j])
        else:
            values = Y[:, j, None]
            away = ((values > hidden.lower) & (values < hidden.upper)).any(axis=1)
        X[away, j] = np.nan
    X[blank] = np.nan
    windows = {j: c.window for j, c in enumerate(columns) if c.window is not None}
    hidden_sets, kinds = tuple(c.hidden for c in columns), tuple(c.kind for c in columns)
    return Design(name, kinds, X, rule_of(columns, len(Y)), blank, hidden_sets, *truth, windows)


def rule_of(columns: Sequence[Column], n: int) -> hs.missingness.Missingness:
    """Return the rule as halfseen takes it: sets where they will do, limits by row where they must."""
    sets = [j for j, c in enumerate(columns) if c.seen_set is not None]
    rows = [j for j, c in enumerate(columns) if c.seen_set is None]
    censoring = hs.SelfCensoring([columns[j].seen_set for j in sets]) if sets else None
    if not rows:
        return censoring
    none = np.full(n, NONE)
    lower, upper = (
        np.stack([none if limit is None else limit for limit in ends], axis=1)
        for ends in ([columns[j].lower for j in rows], [columns[j].upper for j in rows])
    )
    limits = hs.DetectionLimits(lower=lower, upper=upper)
    return limits if censoring is None else hs.Combined([(sets, censoring), (rows, limits)])


def random_design(seed: int, index: int) -> Design:
    """Make one of the random designs; those with too few rows seen together are drawn again."""
    for attempt in range(200):
        rng = np.random.default_rng([seed, index, attempt])
        d = int(rng.integers(2, 7))
        n = round(float(np.exp(rng.uniform(np.log(50), np.log(5000)))))
        scale = 10.0 ** rng.uniform(-1.0, 1.0, d)
        mean = scale * rng.normal(0.0, 3.0, d)
        covariance = correlations(rng, d) * np.outer(scale, scale)
        columns: list[Column] = []
        for j in range(d):
            full = sum(c.kind in ("two-sided", "union") for c in columns) >= MOST_UNIONS
            weights = WEIGHTS * [not (full and kind in UNIONS) for kind in KINDS]
            make = KINDS[rng.choice(len(KINDS), p=weights / weights.sum())]
            at = _quantiles(mean[j], scale[j])
            columns.append(make(rng, at, float(rng.uniform(0.1, 0.7)), n))
        Y = rng.multivariate_normal(mean, covariance, n, method="cholesky")
        share = rng.uniform(0.0, 0.3) if rng.random() < 0.5 else 0.0
        blank = rng.random((n, d)) < share
        design = built(f"random {seed}/{index}", (mean, covariance), columns, Y, blank, rng)
        together = (~np.isnan(design.X)).astype(float)
        if (together.T @ together).min() >= FEWEST_TOGETHER:
            return design
    raise AssertionError(f"no table of seed {seed}, {index} had enough rows")


def _quantiles(mean: float, spread: float) -> Quantile:
    return lambda q: mean + spread * ndtri(q)


def designs(count: int, seed: int = 0, first: int = 0) -> Iterator[Design]:
    """Random designs, from number ``first`` on."""
    for index in range(first, first + count):
        yield random_design(seed, index)


def one_limit(name: str, R: Floats, n: int, share: float, seed: int) -> Design:
    """Every column has mean zero, variance one and the same lower limit."""
    rng, d = np.random.default_rng(seed), len(R)
    column = one_lower(rng, _quantiles(0.0, 1.0), share, n)
    Y = rng.multivariate_normal(np.zeros(d), R, n, method="cholesky")
    blank = np.zeros((n, d), bool)
    return built(f"{name}, {seed}", (np.zeros(d), R), [column] * d, Y, blank, rng)


def equal(d: int, rho: float) -> Floats:
    return np.full((d, d), rho) + (1.0 - rho) * np.eye(d)


def decaying(d: int, rho: float) -> Floats:
    return rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def two_peaks(seed: int, n: int = 400) -> Design:
    """Mean far below the window in which the first column is seen: its mirror image is as good."""
    rng = np.random.default_rng(seed)
    mean = np.array([-4.0, 0.0, 0.0])
    covariance = np.array([[16.0, 2.4, 2.0], [2.4, 1.0, 0.5], [2.0, 0.5, 1.0]])
    a, b = 0.5, 2.5
    hidden = HiddenSet.of((-np.inf, a), (b, np.inf))
    columns = [
        Column("two-sided", hidden, hs.between(a, b), window=0.5 * (a + b)),
        one_lower(rng, _quantiles(0.0, 1.0), 0.3, n),
        never(rng, _quantiles(0.0, 1.0), 0.0, n),
    ]
    Y = rng.multivariate_normal(mean, covariance, n)
    return built(f"two peaks, {seed}", (mean, covariance), columns, Y, np.zeros((n, 3), bool), rng)


def two_laboratories(seed: int, n: int = 4096) -> Design:
    """Odd rows have another lower limit than even ones."""
    rng, d = np.random.default_rng(seed), 4
    R = equal(d, 0.6)
    limit = np.where(np.arange(n) % 2 == 0, ndtri(0.25), ndtri(0.6))
    hidden = HiddenSet(np.full((n, 1), -np.inf), limit[:, None])
    columns = [Column("few limits, lower", hidden, lower=limit)] * d
    Y = rng.multivariate_normal(np.zeros(d), R, n)
    return built(
        f"two laboratories, {seed}", (np.zeros(d), R), columns, Y, np.zeros((n, d), bool), rng
    )


# What has made trouble before, by name: functions of a seed.
SPECIAL: dict[str, Callable[[int], Design]] = {
    "d = 2, n = 100, 65 % hidden, correlation 0.99": lambda seed: one_limit(
        "two columns", equal(2, 0.99), 100, 0.65, seed
    ),
    "two peaks, seen in a window far from the mean": two_peaks,
    "two laboratories in turn, n = 4096": two_laboratories,
    "d = 30, n = 400, half hidden, correlation 0.5": lambda seed: one_limit(
        "30 columns", equal(30, 0.5), 400, 0.5, seed
    ),
    "d = 31, n = 400, half hidden, correlation 0.5": lambda seed: one_limit(
        "31 columns", equal(31, 0.5), 400, 0.5, seed
    ),
    "d = 40, n = 400, half hidden, correlation 0.9": lambda seed: one_limit(
        "40 columns, 0.9", equal(40, 0.9), 400, 0.5, seed
    ),
    "d = 40, n = 400, half hidden, correlation 0.6": lambda seed: one_limit(
        "40 columns, 0.6", equal(40, 0.6), 400, 0.5, seed
    ),
    "d = 40, n = 400, half hidden, AR(0.9)": lambda seed: one_limit(
        "40 columns, AR", decaying(40, 0.9), 400, 0.5, seed
    ),
    "d = 100, n = 50, half hidden, correlation 0.2": lambda seed: one_limit(
        "100 columns", equal(100, 0.2), 50, 0.5, seed
    ),
}
