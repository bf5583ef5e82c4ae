"""Rows of a truncated regression: what came, and the problem in coordinates that fit the numbers."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from halfseen.checks import real_array
from halfseen.errors import ContradictionError, InputError, NotIdentifiedError
from halfseen.kernels.partition import LineTerms, line_partition
from halfseen.parallel import map_in_order

Floats = NDArray[np.float64]

# Rows that a thread sweeps at once: their arrays stay in the cache.
BLOCK = 2**13
# Of a covariate, beside those before it, less than this share is within the rounding of sums.
REPEATED = 1e-10
# Residuals that are smaller than this, relative to the values, are rounding.
EXACT_FIT = 1e-13


class Table(NamedTuple):
    """What came, as arrays of the right shapes."""

    y: Floats
    W: Floats
    lower: Floats
    upper: Floats
    weights: Floats
    fixed: Floats
    names: Sequence[str]


def read_table(
    y: Any, W: Any, lower: Any, upper: Any, weights: Any, fixed: Any, names: Sequence[str] | None
) -> Table:
    """Check what came, and give it the shapes that the solver takes."""
    y, W = real_array("y", y), real_array("W", W)
    if y.ndim != 1 or W.ndim != 2 or len(W) != y.size:
        raise InputError(
            "y must have a value, and W a row of covariates, for each row of the table; got shapes "
            f"{y.shape} and {W.shape}."
        )
    n, k = W.shape
    names = [f"w{j}" for j in range(k)] if names is None else list(names)
    if len(names) != k:
        raise InputError(f"names must name each of {k} covariates; got {len(names)}.")
    _check_finite(y, W, names)
    weights = np.ones(n) if weights is None else real_array("weights", weights)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise InputError(
            f"weights must be a finite number of at least 0 for each of {n} rows; got "
            f"{reprlib.repr(weights)}."
        )
    fixed = np.full(k, np.nan) if fixed is None else real_array("fixed", fixed)
    if fixed.shape != (k,) or np.isinf(fixed).any():
        raise InputError(
            f"fixed must have a number, or NaN, for each of {k} coefficients; got {fixed!r}."
        )
    return Table(y, W, *_sets(y, lower, upper), weights, fixed, names)


def _check_finite(y: Floats, W: Floats, names: Sequence[str]) -> None:
    for name, column in (("y", y), *zip(names, W.T, strict=True)):
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            raise InputError(
                f"values must be finite; got {column[bad[0]]}. Leave out rows without a value.",
                int(bad[0]),
                name,
            )


def _sets(y: Floats, lower: Any, upper: Any) -> tuple[Floats, Floats]:
    """Return the ends of intervals with an axis for the pieces, which hold what is seen."""
    ends = []
    for name, value in (("lower", lower), ("upper", upper)):
        end = real_array(name, value)
        end = end[:, None] if end.ndim == 1 else end
        if end.ndim > 2 or len(np.atleast_1d(end)) not in (1, y.size):
            raise InputError(
                f"{name} must be a number, one for each of {y.size} rows, or a row of them for each; "
                f"got shape {end.shape}."
            )
        ends.append(end)
    low, high, _ = (np.array(end) for end in np.broadcast_arrays(*ends, y[:, None]))
    inside = ((low <= y[:, None]) & (y[:, None] <= high) & (low < high)).any(axis=1)
    if not inside.all():
        row = int(np.flatnonzero(~inside)[0])
        told = ", ".join(f"{a:g} to {b:g}" for a, b in zip(low[row], high[row], strict=True))
        raise ContradictionError(
            f"it has the value {y[row]:g}, but rows are in the table only with values of {told} "
            f"({(~inside).sum()} such rows). Correct the limits or leave such rows out.",
            row,
        )
    return low, high


@dataclass(frozen=True)
class Problem:
    """Rows counted from the residuals of least squares, in units of their spread.

    Each row has its own seen value as origin: with u = z − y its density is exp(ν'u − ½Tu²) over the
    integral of that, where ν' = ν − Ty, so that no limit and no value is too far off.

    Attributes
    ----------
    design : array of shape (n, m + 1)
        ν' is this times θ = (δ, T). Covariates are whitened, and the last column is −y.
    terms : LineTerms
        The set of each row, less its value.
    weight : array of shape (n,)
        Share of each row.
    coefficients : array of shape (k,)
        Those of least squares, and what is fixed.
    free : integer array of shape (m,)
        Which of them are learned.
    whiten : array of shape (m, m)
        R with W[:, free] R⁻¹ white.
    spread : float
        Unit of the residuals.
    known : float or None
        T, where σ is known.
    """

    design: Floats
    terms: LineTerms
    weight: Floats
    coefficients: Floats
    free: NDArray[np.intp]
    whiten: Floats
    spread: float
    known: float | None
    n_jobs: int | None

    @property
    def moving(self) -> slice:
        """Parameters that are learned."""
        return slice(0, self.free.size + (self.known is None))

    def rows(self, theta: Floats, rows: slice) -> tuple[Floats, Floats, Floats]:
        """Log of the integral, mean and covariance of (u, −½u²), for some rows."""
        of_rows = np.arange(*rows.indices(len(self.design)))
        natural = np.column_stack(
            [self.design[rows] @ theta, np.broadcast_to(theta[-1], of_rows.size)]
        )
        found: tuple[Floats, Floats, Floats] = line_partition(natural, self.terms, of_rows)
        return found

    def objective(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Minus the mean log-likelihood, with gradient and Hessian."""
        blocks = [slice(i, i + BLOCK) for i in range(0, len(self.design), BLOCK)]
        parts = list(map_in_order(partial(self._block, theta), blocks, self.n_jobs))
        f, g, H = (sum(part) for part in zip(*parts, strict=True))
        return float(f), np.asarray(g), np.asarray(H)

    def _block(self, theta: Floats, rows: slice) -> tuple[float, Floats, Floats]:
        f, mean, covariance = self.rows(theta, rows)
        X, w = self.design[rows], self.weight[rows]
        # θ acts through ν' = Xθ, and through T itself.
        g = X.T @ (w * mean[:, 0])
        g[-1] += w @ mean[:, 1]
        H = X.T @ ((w * covariance[:, 0, 0])[:, None] * X)
        cross = X.T @ (w * covariance[:, 0, 1])
        H[-1] += cross
        H[:, -1] += cross
        H[-1, -1] += w @ covariance[:, 1, 1]
        return float(w @ f), g, H


def prepare(table: Table, sigma: float | None, n_jobs: int | None) -> Problem:
    """Whiten the covariates, and take out least squares."""
    free = np.flatnonzero(np.isnan(table.fixed))
    rows = int((table.weights > 0.0).sum())
    needed = free.size + (sigma is None)
    if rows <= needed:
        raise NotIdentifiedError(
            f"{rows} rows cannot tell {needed} parameters; at least {needed + 1} are needed. Leave out "
            "covariates, or add rows."
        )
    weight = table.weights / table.weights.sum()
    W, root = table.W[:, free], np.sqrt(weight)[:, None]
    R = _whitener(root * W, [table.names[int(j)] for j in free])
    Q = solve_triangular(R, W.T, trans="T").T
    known = np.nan_to_num(table.fixed)
    rest = table.y - table.W @ known
    along = Q.T @ (weight * rest)
    residual = rest - Q @ along
    # Once more, for what rounding left.
    again = Q.T @ (weight * residual)
    residual -= Q @ again
    spread = math.sqrt(float(weight @ residual**2))
    if spread <= EXACT_FIT * np.abs(table.y).max():
        raise NotIdentifiedError(
            "the covariates fit y exactly, so there are no residuals to learn from. Leave some out."
        )
    coefficients = known.copy()
    coefficients[free] = solve_triangular(R, along + again)
    y = residual / spread
    # Limits follow their values: a limit at a value stays there.
    lower, upper = ((end - table.y[:, None]) / spread for end in (table.lower, table.upper))
    return Problem(
        np.column_stack([Q, -y]), _terms(lower, upper), weight, coefficients, free, R, spread,
        None if sigma is None else (spread / sigma) ** 2, n_jobs,
    )  # fmt: skip


def _whitener(W: Floats, names: Sequence[str]) -> Floats:
    """Return R of W = QR, or say which covariate repeats others."""
    length = np.sqrt((W**2).sum(axis=0))
    scaled = W / np.where(length > 0.0, length, 1.0)
    R = np.atleast_2d(np.linalg.qr(scaled, mode="r")) * length
    alone = np.flatnonzero(~(np.abs(np.diag(R)) > REPEATED * length))
    if alone.size:
        j = int(alone[0])
        raise NotIdentifiedError(
            f"covariate {names[j]} is a sum of multiples of those before it"
            + (" (all of its values are 0)" if length[j] == 0.0 else "")
            + ", so its coefficient cannot be told from theirs. Leave it out."
        )
    return np.asarray(R)


def _terms(lower: Floats, upper: Floats) -> LineTerms:
    """Return a problem for each row, with one set, of as many pieces as there are columns."""
    n, pieces = lower.shape
    none = np.zeros(n + 1, dtype=np.intp)
    start = np.arange(n + 1)
    return LineTerms(
        start, np.ones(n), start * pieces, lower.ravel(), upper.ravel(),
        none, np.empty(0), np.empty(0),
    )  # fmt: skip
