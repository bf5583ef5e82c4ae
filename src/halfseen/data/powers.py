"""Powers that make a column nearly normal, learned from values and holes together.

For each power the column's own normal distribution is fitted to the transformed values and to the
hidden sets (censored maximum likelihood); with the derivative of the transform at the seen values
the likelihoods of different powers can be compared, as Box and Cox did for complete data.

A column has three parameters of its own: mean, deviation and power. With the power held at places around
the likeliest one, and the other two at their best, it is kept how far the likelihood has fallen there,
where they are, and how well they are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri

from halfseen.checks import share
from halfseen.data.transforms import BoxCox, Transform, YeoJohnson
from halfseen.errors import InputError
from halfseen.kernels.censored_normal import fit_censored_normal, gradient_and_curvature
from halfseen.missingness.holes import Holes

Floats = NDArray[np.float64]

# Where powers are looked for. Below 0 a Box-Cox scale ends at a finite value, so that a normal column
# would have infinite values in original units; the same holds for Yeo-Johnson beyond 0 to 2.
LEAST_POWER, LARGEST_POWER = 0.0, 2.0
# A power is learned to about a hundredth; its standard error is rarely below that.
POWER_TOLERANCE = 1e-3
# The sum of the squares of a column is fit for the kernel after standardising.
FEWEST_SEEN = 2
# Powers are followed to where twice the log-likelihood has fallen by so much, four and a half standard
# errors, on a grid of so many: three or four in one standard error.
FARTHEST_FALL, PLACES = 20.0, 33
# Halvings on the way to the ends: to a thousandth of the range.
HALVINGS = 12
# Of a table that says all of it.
COLUMNS = 7


class NormalFit(NamedTuple):
    """The normal distribution of one column, and its log-likelihood in original units."""

    mean: float
    standard_deviation: float
    log_likelihood: float
    settled: bool


@dataclass(frozen=True)
class ColumnCells:
    """What is known of one column: seen values, and hidden sets with the number of cells in each.

    Cells of which nothing is known are left out. Set s is the union of the intervals from start[s]
    to start[s + 1].
    """

    values: Floats
    start: NDArray[np.intp]
    lower: Floats
    upper: Floats
    count: Floats

    @classmethod
    def from_ends(cls, lower: ArrayLike, upper: ArrayLike) -> ColumnCells:
        """Read the ends of a column's intervals, as in ``IntervalData``."""
        a, b = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        hidden = (a < b) & ~(np.isneginf(a) & np.isposinf(b))
        pairs = np.stack([a[hidden], b[hidden]], axis=1)
        distinct, count = np.unique(pairs, axis=0, return_counts=True)
        return cls(
            a[a == b],
            np.arange(len(distinct) + 1),
            distinct[:, 0].copy(),
            distinct[:, 1].copy(),
            count.astype(float),
        )

    @classmethod
    def from_holes(cls, values: Floats, holes: Holes, column: int) -> ColumnCells:
        """Read one column of a table (NaN where hidden) and its holes, in the same units.

        Cells under a ``Probability`` say nothing here, nor do inequalities between columns.
        """
        index = holes.index[:, column]
        used, count = np.unique(index[index >= 0], return_counts=True)
        sizes = np.diff(holes.sets.start)[used]
        telling = (sizes > 0) & ~holes.whole_lines[used]
        used, count = used[telling], count[telling]
        sets = holes.sets.take(used.astype(np.intp))
        seen = index < 0
        return cls(
            values[seen].astype(float),
            np.asarray(sets.start, dtype=np.intp),
            sets.lower,
            sets.upper,
            count.astype(float),
        )

    @property
    def hidden(self) -> int:
        """Number of hidden cells that say something."""
        return int(self.count.sum())

    def fit(self, transform: Transform) -> NormalFit:
        """Fit a normal distribution on the scale of a transform."""
        x = transform.forward(self.values)
        if x.size < FEWEST_SEEN or not np.isfinite(x).all():
            return NormalFit(math.nan, math.nan, -math.inf, False)
        centre, scale = float(x.mean()), float(x.std())
        if not scale > 0.0:
            return NormalFit(centre, scale, -math.inf, False)
        sums, low, high = self._standardised(transform, x, centre, scale)
        mu, sigma, value, settled = fit_censored_normal(
            sums, self.start, low, high, self.count, 0.0, 1.0
        )
        # Densities of x, not of z: the scale and the derivative of the transform.
        jacobian = float(transform.log_derivative(self.values).sum()) - x.size * math.log(scale)
        return NormalFit(centre + scale * mu, scale * sigma, value + jacobian, bool(settled))

    def variances(self, transform: Transform, found: NormalFit) -> Floats:
        """Return the variances of (mean, log deviation) of a fit; zeros where it has none."""
        x = transform.forward(self.values)
        centre, scale = float(x.mean()), float(x.std())
        theta = scale / found.standard_deviation
        delta = (found.mean - centre) / found.standard_deviation
        g, H = np.empty(2), np.empty((2, 2))
        packed = self._standardised(transform, x, centre, scale)
        curved = gradient_and_curvature(
            theta, delta, packed[0], self.start, *packed[1:], self.count, g, H
        )
        if not curved:
            return np.zeros((2, 2))
        # (μ, log σ) = (δ/θ, −log θ), in units of the column's spread
        slope = np.array([[-delta / theta**2, 1.0 / theta], [-1.0 / theta, 0.0]])
        slope[0] *= scale
        V = slope @ np.linalg.inv(-H) @ slope.T
        return np.asarray(0.5 * (V + V.T))

    def _standardised(
        self, transform: Transform, x: Floats, centre: float, scale: float
    ) -> tuple[Floats, Floats, Floats]:
        """Return number, sum and sum of squares of the values, and the ends, in units of the spread."""
        z = (x - centre) / scale
        low = (transform.end(self.lower) - centre) / scale
        high = (transform.end(self.upper) - centre) / scale
        return np.array([z.size, z.sum(), (z * z).sum()]), low, high


def learn_power(cells: ColumnCells, kind: BoxCox) -> BoxCox:
    """Return the transform of this kind with the power of greatest likelihood, from 0 to 2.

    Examples
    --------
    >>> import numpy as np
    >>> from halfseen.data.powers import ColumnCells, learn_power
    >>> from halfseen.data.transforms import BoxCox
    >>> x = np.exp(np.random.default_rng(0).normal(size=2000))
    >>> hidden = x < 0.5
    >>> cells = ColumnCells.from_ends(np.where(hidden, -np.inf, x), np.where(hidden, 0.5, x))
    >>> abs(learn_power(cells, BoxCox()).power) < 0.1
    True
    """
    # Imported where it is needed: SciPy's optimisers take as long to load as all of halfseen.
    from scipy.optimize import minimize_scalar

    make = YeoJohnson if isinstance(kind, YeoJohnson) else BoxCox

    def cost(power: float) -> float:
        return -cells.fit(make(float(power))).log_likelihood

    # The profile need not have a single top: look at a few powers first.
    grid = np.linspace(LEAST_POWER, LARGEST_POWER, 9)
    costs = [cost(power) for power in grid]
    best = int(np.argmin(costs))
    if not math.isfinite(costs[best]):
        raise InputError(
            f"a power needs at least {FEWEST_SEEN} different seen values, not too large for it."
        )
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = minimize_scalar(
        cost, bounds=bounds, method="bounded", options={"xatol": POWER_TOLERANCE}
    )
    power = float(found.x) if found.fun < costs[best] else float(grid[best])
    # A search between bounds never ends on one: say 0 where it could as well be.
    for edge in (LEAST_POWER, LARGEST_POWER):
        if abs(power - edge) < 2.0 * POWER_TOLERANCE:
            power = edge
    return make(round(power, 4))


def learn_powers(
    transforms: Sequence[Transform], values: Floats, holes: Holes, names: Sequence[str]
) -> tuple[tuple[Transform, ...], dict[int, ColumnCells]]:
    """Learn the powers that were not given, each from its own column, which comes with it."""
    out, learned = list(transforms), {}
    for j, transform in enumerate(transforms):
        if isinstance(transform, BoxCox) and transform.power is None:
            learned[j] = ColumnCells.from_holes(values[:, j], holes, j)
            try:
                out[j] = learn_power(learned[j], transform)
            except InputError as error:
                raise InputError(f"column {names[j]}: {error}") from error
    return tuple(out), learned


@dataclass(frozen=True, eq=False)
class LearnedPower:
    """A power that was learned from its column, and what the column says of others.

    Attributes
    ----------
    power : float
        The likeliest, as the column was transformed.
    powers : array of shape (k,)
        Powers around it, growing.
    falls : array of shape (k,)
        How far twice the log-likelihood of the column has fallen there.
    mean, deviation : arrays of shape (k,)
        The likeliest of the column by itself, on the scale of each power.
    variances : array of shape (k, 2, 2)
        Of the estimates of (mean, log deviation), with the power known; zero where there are none.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> x = np.exp(np.random.default_rng(0).normal(size=(300, 1)))
    >>> x[x < 0.5] = np.nan
    >>> fit = hs.fit(x, hs.DetectionLimits(lower=0.5), transforms="boxcox", random_state=0)
    >>> learned = fit.powers[0]
    >>> low, high = learned.interval(0.95)
    >>> bool(low == 0.0 <= learned.power < high < 0.5), bool(0.0 < learned.standard_error < 0.2)
    (True, True)
    """

    power: float
    powers: Floats
    falls: Floats
    mean: Floats
    deviation: Floats
    variances: Floats

    @property
    def standard_error(self) -> float:
        """How far the power moves until twice the log-likelihood has fallen by one.

        The average of both sides; of one where the power is 0 or 2, beyond which none is looked for.
        """
        low, high = self._ends(1.0)
        reached = [
            abs(end - self.power)
            for end, edge in ((low, self.powers[0]), (high, self.powers[-1]))
            if end != edge
        ]
        return float(np.mean(reached)) if reached else math.inf

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the powers between which twice the log-likelihood has fallen by less than χ².

        Parameters
        ----------
        level : float

        Returns
        -------
        low, high : float
            No less than 0 and no more than 2.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> roots = np.random.default_rng(0).normal(3.0, 0.7, size=(400, 1))
        >>> fit = hs.fit(roots**2, transforms="boxcox", random_state=0)
        >>> low, high = fit.powers[0].interval(0.99)
        >>> bool(low < 0.5 < high)
        True
        """
        return self._ends(float(chdtri(1.0, 1.0 - share("level", level))))

    @property
    def hardly_known(self) -> bool:
        """Whether a 95 % interval leaves out no power that is looked for."""
        low, high = self.interval()
        return low <= LEAST_POWER and high >= LARGEST_POWER

    def _ends(self, cutoff: float) -> tuple[float, float]:
        # The root of the fall is nearly linear in the power.
        root, wanted = np.sqrt(self.falls), math.sqrt(cutoff)
        above, below = self.powers >= self.power, self.powers <= self.power
        high = np.interp(wanted, np.maximum.accumulate(root[above]), self.powers[above])
        low = np.interp(wanted, np.maximum.accumulate(root[below][::-1]), self.powers[below][::-1])
        return float(low), float(high)


def follow_power(cells: ColumnCells, learned: BoxCox) -> LearnedPower:
    """Look at the likelihood of a column with powers around the one that was learned."""
    assert learned.power is not None
    make, power = type(learned), float(learned.power)
    top = cells.fit(learned).log_likelihood

    def fall(at: float) -> float:
        value = cells.fit(make(at)).log_likelihood
        # The top is known to the tolerance of the power: not quite the highest place.
        return max(2.0 * (top - value), 0.0) if math.isfinite(value) else math.inf

    ends = [_far_end(fall, power, edge) for edge in (LEAST_POWER, LARGEST_POWER)]
    powers = np.unique(np.append(np.linspace(ends[0], ends[1], PLACES), power))
    fits = [cells.fit(make(float(at))) for at in powers]
    kept = [k for k, one in enumerate(fits) if one.settled and math.isfinite(one.log_likelihood)]
    if not any(powers[k] == power for k in kept):
        kept = sorted({*kept, int(np.searchsorted(powers, power))})
    chosen = [fits[k] for k in kept]
    return LearnedPower(
        power,
        powers[kept],
        np.array([max(2.0 * (top - one.log_likelihood), 0.0) for one in chosen]),
        np.array([one.mean for one in chosen]),
        np.array([one.standard_deviation for one in chosen]),
        np.array([cells.variances(make(float(powers[k])), fits[k]) for k in kept]),
    )


def _far_end(fall: Callable[[float], float], power: float, edge: float) -> float:
    """Return where the likelihood has fallen far, between a power and the edge of the range."""
    if abs(edge - power) <= POWER_TOLERANCE or fall(edge) <= FARTHEST_FALL:
        return edge
    near, far = power, edge
    for _ in range(HALVINGS):
        middle = 0.5 * (near + far)
        near, far = (near, middle) if fall(middle) > FARTHEST_FALL else (middle, far)
    return far


def as_table(learned: LearnedPower) -> Floats:
    """Return everything but the power: a row for each power that was looked at.

    Columns are the power, the fall, mean, deviation, and the variances of mean and log deviation, with
    their covariance between them.
    """
    V = learned.variances
    return np.column_stack(
        [learned.powers, learned.falls, learned.mean, learned.deviation, V[:, 0, 0], V[:, 0, 1],
         V[:, 1, 1]]
    )  # fmt: skip


def from_table(power: float | None, table: Floats) -> LearnedPower:
    """Return the power of which ``as_table`` made a table; a wrong one is refused."""
    right = table.ndim == 2 and table.shape[1] == COLUMNS and np.isfinite(table).all()
    if not right or not (np.diff(table[:, 0]) > 0.0).all() or power not in table[:, 0]:
        raise InputError(
            f"a power that was learned must be told by finite numbers in {COLUMNS} columns, with "
            f"itself among growing powers; got shape {table.shape}."
        )
    if (table[:, [1, 4, 6]] < 0.0).any() or not (table[:, 3] > 0.0).all():
        raise InputError("a power that was learned has a negative fall, variance or deviation.")
    assert power is not None
    powers, falls, mean, deviation = (table[:, k].copy() for k in range(4))
    V = table[:, [4, 5, 5, 6]].reshape(-1, 2, 2)
    return LearnedPower(float(power), powers, falls, mean, deviation, V)
