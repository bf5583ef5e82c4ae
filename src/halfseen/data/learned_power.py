"""What is known of a power that was learned: the column's own likelihood, with other powers.

A column has three parameters of its own: mean, deviation and power. With the power held at places around
the likeliest one, and the other two at their best, it is kept how far the likelihood has fallen there,
where they are, and how well they are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from halfseen.checks import share
from halfseen.data.power import LARGEST_POWER, LEAST_POWER, POWER_TOLERANCE, ColumnCells
from halfseen.data.transforms import BoxCox
from halfseen.errors import InputError

Floats = NDArray[np.float64]

# Powers are followed to where twice the log-likelihood has fallen by so much, four and a half standard
# errors, on a grid of so many: three or four in one standard error.
FARTHEST_FALL, PLACES = 20.0, 33
# Halvings on the way to the ends: to a thousandth of the range.
HALVINGS = 12
# Of a table that says all of it.
COLUMNS = 7


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
