"""Powers that make a column nearly normal, learned from values and holes together.

For each power the column's own normal distribution is fitted to the transformed values and to the
hidden sets (censored maximum likelihood); with the derivative of the transform at the seen values
the likelihoods of different powers can be compared, as Box and Cox did for complete data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    """Return the transform of this kind with the power of greatest likelihood, from 0 to 2."""
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


def fit_power(lower: ArrayLike, upper: ArrayLike, kind: str) -> BoxCox:
    """Learn the power of "boxcox" or "yeojohnson" from the intervals of one column.

    Parameters
    ----------
    lower, upper : arrays of shape (n,)
        As in ``IntervalData``: equal for a seen value.
    kind : {"boxcox", "yeojohnson"}

    Returns
    -------
    BoxCox or YeoJohnson

    Examples
    --------
    >>> import numpy as np
    >>> from halfseen.data.power import fit_power
    >>> x = np.exp(np.random.default_rng(0).normal(size=2000))
    >>> hidden = x < 0.5
    >>> found = fit_power(np.where(hidden, -np.inf, x), np.where(hidden, 0.5, x), "boxcox")
    >>> abs(found.power) < 0.1
    True
    """
    kinds = {"boxcox": BoxCox(), "yeojohnson": YeoJohnson()}
    if kind not in kinds:
        raise InputError(f"kind must be {' or '.join(kinds)}; got {kind!r}.")
    return learn_power(ColumnCells.from_ends(lower, upper), kinds[kind])


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
