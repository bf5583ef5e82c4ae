"""Slow, obvious oracles for regressions. Nothing here imports a kernel or a solver of halfseen.

Rows are y = Γw + e with e ~ N(0, Σ). Of each outcome a row has ``lower`` and ``upper``: they are equal
where it is seen, infinite on both sides where nothing is known of it, and otherwise the ends of an
interval. At most two cells of a row may be intervals, so that everything is exact: densities, Φ, and
one-dimensional quadrature.

Slopes come from Fisher's identity, the expected slope of the complete row given what is seen of it;
``tests/test_naive_regression.py`` has them beside differences of the log-likelihood.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import optimize
from scipy.special import log_ndtr

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# exp(-40) < 5e-18: what is so far below the top of an integrand cannot be seen in a double.
DROP = 40.0
# Gauss-Legendre on each of fourteen panels: masses and moments right to 12 digits (tests).
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)
# Where panels end around a place at which an integrand bends, in widths of the bend.
BENDS = (-8.0, -3.0, 0.0, 3.0, 8.0)
# Halvings that find the top of an integrand, and where it has dropped.
HALVINGS = 45
# Width of differences of slopes, which are exact, in standard errors: they err by some W²/n.
WIDTH = 1e-4
# The top is found when the log-likelihood rises by less than this over a standard error.
FLAT = 1e-6


class Found(NamedTuple):
    """Estimates, log-likelihood there, and covariance of the estimates."""

    estimates: np.ndarray
    value: float
    covariance: np.ndarray


class Maximum(NamedTuple):
    """Where a log-likelihood is greatest: ``parameters`` are Γ[free] row by row, then Σ_ij, i >= j."""

    Gamma: np.ndarray
    Sigma: np.ndarray
    value: float
    parameters: np.ndarray
    covariance: np.ndarray


class Line(NamedTuple):
    """A standard normal on (a, b): log-mass, φ(a)/mass, φ(b)/mass, E z and E z²."""

    log_mass: np.ndarray
    left: np.ndarray
    right: np.ndarray
    mean: np.ndarray
    square: np.ndarray


class Rows(NamedTuple):
    """Log-likelihood of each row; its slope in Γw; that in Σ, as a symmetric matrix."""

    value: np.ndarray
    slope: np.ndarray
    turn: np.ndarray


# --- what is seen of a row ----------------------------------------------------------------------


def line(a, b):
    """Return the log-mass and moments of a standard normal on (a, b), for arrays of ends."""
    a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
    # On the side where both tails are small.
    low, high = np.where(a > 0, -b, a), np.where(a > 0, -a, b)
    with np.errstate(all="ignore"):
        top = log_ndtr(high)
        # log(Φ(b) − Φ(a)) = log Φ(b) + log(1 − Φ(a)/Φ(b))
        log_mass = top + np.log(-np.expm1(log_ndtr(low) - top))
        left, right = (np.exp(-0.5 * z * z - HALF_LOG_TWO_PI - log_mass) for z in (a, b))
        a_left, b_right = (
            np.where(np.isfinite(z), z, 0.0) * side for z, side in ((a, left), (b, right))
        )
    return Line(log_mass, left, right, left - right, 1.0 + a_left - b_right)


def _halve(inside, outside, is_inside):
    """Bring two points together around the place where ``is_inside`` ends, if it does between them."""
    end, never = outside, is_inside(outside)
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        yes = is_inside(middle)
        inside, outside = np.where(yes, middle, inside), np.where(yes, outside, middle)
    return np.where(never, end, 0.5 * (inside + outside))


def rectangle(a, b, rho):
    """Log-masses, E z and E zzᵀ of pairs of standard normals with correlation rho on rectangles.

    ∫ φ(x) P(a₂ < Z₂ < b₂ | Z₁ = x) dx over (a₁, b₁). ``a`` and ``b`` have a row for each rectangle.
    """
    s = math.sqrt((1.0 - rho) * (1.0 + rho))

    def other(x):
        return line((a[:, 1:] - rho * x) / s, (b[:, 1:] - rho * x) / s)

    edges = _panels(a, b, rho, s, other)
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[:, 1:] + edges[:, :-1])
    x = (middle[:, :, None] + half[:, :, None] * NODES).reshape(len(a), -1)
    inner, width = other(x), (half[:, :, None] * WEIGHTS).reshape(len(a), -1)
    height = -0.5 * x * x - HALF_LOG_TWO_PI + inner.log_mass
    top = height.max(axis=1, keepdims=True)
    share = width * np.exp(height - top)
    mass = share.sum(axis=1, keepdims=True)
    share /= mass
    y = rho * x + s * inner.mean
    yy = (rho * x) ** 2 + 2.0 * rho * x * s * inner.mean + s * s * inner.square
    first = np.stack([(share * part).sum(axis=1) for part in (x, y)], axis=1)
    xx, xy, yy = ((share * part).sum(axis=1) for part in (x * x, x * y, yy))
    second = np.stack([xx, xy, xy, yy], axis=1).reshape(-1, 2, 2)
    return (top + np.log(mass))[:, 0], first, second


def _panels(a, b, rho, s, other):
    """Edges of panels for the first coordinate.

    The integrand is log-concave: the panels reach from where it is exp(-40) of its top to where it is
    that again, and are short where the mass of the other coordinate bends.
    """

    def height(x):
        return -0.5 * x * x + other(x).log_mass

    # Nothing lies further out than this beyond what the limits force.
    ends = np.where(np.isfinite([a, b]), np.abs([a, b]), 0.0).max(axis=(0, 2))[:, None]
    low, high = np.maximum(a[:, :1], -40.0 - ends), np.minimum(b[:, :1], 40.0 + ends)
    # d/dx log P(a₂ < Z₂ < b₂ | x) = ρ/s E[(Z₂ − ρx)/s | …]
    top = _halve(low, high, lambda x: rho / s * other(x).mean > x)
    enough = height(top) - DROP
    low, high = (_halve(top, end, lambda x: height(x) > enough) for end in (low, high))
    thirds = [top + (end - top) / 3.0 for end in (low, high)]
    gain = math.copysign(max(abs(rho), 1e-9), rho)
    bends = [end / gain + s / abs(gain) * k for end in (a[:, 1:], b[:, 1:]) for k in BENDS]
    return np.sort(np.clip(np.hstack([low, top, high, *thirds, *bends]), low, high), axis=1)


def _confined(lower, upper, centre, covariance):
    """Log-mass, E x and E xxᵀ of N(centre, covariance) in boxes of one or two dimensions."""
    spread = np.sqrt(np.diag(covariance))
    a, b = (lower - centre) / spread, (upper - centre) / spread
    if len(spread) == 1:
        found = line(a[:, 0], b[:, 0])
        value, first, second = found.log_mass, found.mean[:, None], found.square[:, None, None]
    else:
        value, first, second = rectangle(a, b, covariance[0, 1] / (spread[0] * spread[1]))
    step = spread * first
    cross = centre[:, :, None] * step[:, None, :]
    second = np.outer(spread, spread) * second + cross + cross.transpose(0, 2, 1)
    return value, centre + step, second + centre[:, :, None] * centre[:, None, :]


def _kind_of_rows(low, high, seen, kept, Sigma):
    """Log-likelihood, E e and E eeᵀ of what is kept, for rows that have the same cells seen."""
    S, H = np.flatnonzero(seen), np.flatnonzero(kept & ~seen)
    if H.size > 2:
        raise ValueError(f"a row has {H.size} cells in intervals; two are the most that are exact")
    n, q = low.shape
    first, second, value = np.zeros((n, q)), np.zeros((n, q, q)), np.zeros(n)
    e, within = low[:, S], Sigma[np.ix_(S, S)]
    if S.size:
        half = np.linalg.solve(np.linalg.cholesky(within), e.T)
        value -= 0.5 * (half**2).sum(axis=0) + S.size * HALF_LOG_TWO_PI
        value -= 0.5 * np.linalg.slogdet(within)[1]
        first[:, S] = e
    if H.size:
        gain = np.linalg.solve(within, Sigma[np.ix_(S, H)])
        rest = Sigma[np.ix_(H, H)] - Sigma[np.ix_(H, S)] @ gain
        mass, first[:, H], inner = _confined(low[:, H], high[:, H], e @ gain, rest)
        value += mass
    second[:] = first[:, :, None] * first[:, None, :]
    if H.size:
        second[:, H[:, None], H] = inner
    return value, first, second


def row_terms(Gamma, Sigma, lower, upper, W):
    """Return the log-likelihood of each row with its slopes."""
    lower, upper, W = (np.asarray(part, float) for part in (lower, upper, W))
    Gamma, Sigma = np.asarray(Gamma, float), np.asarray(Sigma, float)
    low, high = lower - W @ Gamma.T, upper - W @ Gamma.T
    seen = lower == upper
    kept = seen | np.isfinite(lower) | np.isfinite(upper)
    n, q = lower.shape
    value, slope, turn = np.zeros(n), np.zeros((n, q)), np.zeros((n, q, q))
    for kind in np.unique(np.hstack([seen, kept]), axis=0):
        rows = np.flatnonzero((np.hstack([seen, kept]) == kind).all(axis=1))
        known = np.flatnonzero(kind[q:])
        if known.size == 0:
            continue
        value[rows], first, second = _kind_of_rows(low[rows], high[rows], kind[:q], kind[q:], Sigma)
        # Σ⁻¹ E e and ½ Σ⁻¹ (E eeᵀ − Σ) Σ⁻¹, of the outcomes of which something is known.
        P = np.linalg.inv(Sigma[np.ix_(known, known)])
        second = second[np.ix_(range(rows.size), known, known)]
        slope[np.ix_(rows, known)] = first[:, known] @ P
        turn[np.ix_(rows, known, known)] = 0.5 * (P @ second @ P - P)
    return Rows(value, slope, turn)


def log_likelihood(Gamma, Sigma, lower, upper, W):
    """Return the log-likelihood of what is seen of all rows."""
    return float(row_terms(Gamma, Sigma, lower, upper, W).value.sum())


# --- where it is greatest -----------------------------------------------------------------------


def numerical_hessian(slope, at, directions):
    """Return minus the derivative of a slope along directions, the columns of a matrix, turned there.

    Central differences; the result is the information in coordinates along the directions.
    """
    sides = [[slope(at + sign * WIDTH * d) for d in directions.T] for sign in (1, -1)]
    H = directions.T @ (np.array(sides[1]) - np.array(sides[0])).T / (2.0 * WIDTH)
    return 0.5 * (H + H.T)


def _directions(function, at, size):
    """Directions in which the log-likelihood falls by ½ over a length of one, where it falls."""
    before = np.diag(size)
    for _ in range(2):
        values, vectors = np.linalg.eigh(numerical_hessian(lambda p: function(p)[1], at, before))
        # Uphill, and no longer than a hundred before, also where it is not concave.
        before = before @ (vectors / np.sqrt(np.maximum(np.abs(values), 1e-4)))
    return before, values[0] > 0.0


def climb(function, start, size=None):
    """Return the top of a function that gives its value and slope, that value, and its covariance.

    BFGS in units in which the curvature at the start is the identity, then Newton's method.

    Parameters
    ----------
    function : callable
    start : array
    size : array, optional
        About how large a standard error of each parameter is.
    """
    at = np.array(start, float)
    directions, _ = _directions(function, at, np.full(at.size, 0.1) if size is None else size)

    def loss(z):
        value, slope = function(at + directions @ z)
        return (-value, -directions.T @ slope) if np.isfinite(value) else (1e300, np.zeros_like(z))

    with np.errstate(all="ignore"):
        found = optimize.minimize(loss, np.zeros(at.size), jac=True, method="BFGS")
    at = at + directions @ found.x
    for _ in range(50):
        directions, concave = _directions(function, at, np.sqrt((directions**2).sum(axis=1)))
        value, slope = function(at)
        along = directions.T @ slope
        if concave and np.abs(along).max() < FLAT:
            return at, value, directions @ directions.T
        step = directions @ along
        while not function(at + step)[0] >= value - 1e-9:
            step = 0.5 * step
        at = at + step
    raise AssertionError("no maximum was found")


class _Chart(NamedTuple):
    """Unconstrained parameters: Γ[free], log deviations, and rows of a Cholesky factor.

    The factor has ones on its diagonal, and its rows are brought to length one: a correlation matrix,
    whatever the numbers are.
    """

    free: np.ndarray
    known: np.ndarray

    def parts(self, p):
        k, m = self.free.sum(), (~self.known).sum()
        return p[:k], p[k : k + m], p[k + m :]

    def unpack(self, p):
        """Γ and Σ; complex where the parameters are."""
        coefficients, log_deviations, below = self.parts(p)
        q = len(self.known)
        Gamma, D, L = (
            np.zeros(self.free.shape, p.dtype),
            np.ones(q, p.dtype),
            np.eye(q, dtype=p.dtype),
        )
        Gamma[self.free], D[~self.known] = coefficients, np.exp(log_deviations)
        L[np.tril_indices(q, -1)] = below
        L = D[:, None] * L / np.sqrt((L**2).sum(axis=1))[:, None]
        return Gamma, L @ L.T

    def pack(self, Gamma, Sigma):
        D = np.sqrt(np.diag(Sigma))
        L = np.linalg.cholesky(Sigma / np.outer(D, D))
        L = L / np.diag(L)[:, None]
        below = L[np.tril_indices(len(D), -1)]
        return np.concatenate([Gamma[self.free], np.log(D[~self.known]), below])

    def slopes(self, p):
        """Derivatives of Γ and Σ in each parameter, by complex steps: exact to rounding."""
        steps = [self.unpack(p + 1e-30j * e) for e in np.eye(p.size)]
        return [[part.imag / 1e-30 for part in step] for step in steps]

    def told(self, Gamma, Sigma):
        """Γ[free] row by row, then Σ_ij for i >= j, without variances that are known."""
        i, j = np.tril_indices(len(self.known))
        learned = ~((i == j) & self.known[i])
        return np.append(Gamma[self.free], Sigma[i[learned], j[learned]])


def _start(lower, upper, W, chart):
    """Least squares on values, or on middles of intervals, or half a spread beyond their one end."""
    Gamma, deviations = np.zeros(chart.free.shape), np.ones(len(chart.known))
    for j, mask in enumerate(chart.free):
        rows = np.flatnonzero(np.isfinite(lower[:, j]) | np.isfinite(upper[:, j]))
        low, high = lower[rows, j], upper[rows, j]
        low, high = (
            np.where(np.isinf(low), high - 1.0, low),
            np.where(np.isinf(high), low + 1.0, high),
        )
        value = 0.5 * (low + high)
        Gamma[j, mask] = np.linalg.lstsq(W[np.ix_(rows, mask)], value)[0]
        if not chart.known[j]:
            deviations[j] = (value - W[rows] @ Gamma[j]).std()
    return Gamma, np.diag(deviations**2)


def maximise(lower, upper, W, free, unit_variance=(), start=None, weights=None):
    """Return the maximum of the log-likelihood by direct optimisation.

    Parameters
    ----------
    lower, upper : arrays of shape (n, q)
    W : array of shape (n, k)
    free : bool array of shape (q, k)
        Which entries of Γ are learned; the others are 0.
    unit_variance : sequence of int
        Outcomes whose variance is 1.
    start : pair of Γ and Σ, optional
    weights : array of shape (n,), optional
        What each row counts.

    Returns
    -------
    Maximum
    """
    lower, upper, W = (np.asarray(part, float) for part in (lower, upper, W))
    weights = np.ones(len(W)) if weights is None else np.asarray(weights, float)
    chart = _Chart(np.asarray(free, bool), np.isin(np.arange(lower.shape[1]), unit_variance))
    # Outcomes and covariates of size one, so that every parameter is about as large as every other.
    seen = lower == upper
    sizes = [
        low[own].std() if own.sum() > 1 else 1.0 for low, own in zip(lower.T, seen.T, strict=True)
    ]
    size, across = np.where(chart.known, 1.0, sizes), np.sqrt((W**2).mean(axis=0))
    low, high, Z = lower / size, upper / size, W / across
    per_unit = size[:, None] / across
    begin = _start(low, high, Z, chart)
    if start is not None:
        begin = np.asarray(start[0]) / per_unit, np.asarray(start[1]) / np.outer(size, size)

    def function(p):
        rows = row_terms(*chart.unpack(p), low, high, Z)
        G, T = (weights[:, None] * rows.slope).T @ Z, np.tensordot(weights, rows.turn, 1)
        slope = [(G * g).sum() + (T * s).sum() for g, s in chart.slopes(p)]
        return float(weights @ rows.value), np.array(slope)

    at, value, covariance = climb(function, chart.pack(*begin))
    per_pair = np.outer(size, size)
    Gamma, Sigma = chart.unpack(at)
    Gamma, Sigma = Gamma * per_unit, Sigma * per_pair
    back = np.transpose([chart.told(g * per_unit, s * per_pair) for g, s in chart.slopes(at)])
    value -= float(weights @ seen @ np.log(size))
    return Maximum(Gamma, Sigma, value, chart.told(Gamma, Sigma), back @ covariance @ back.T)


# --- one model at a time ------------------------------------------------------------------------


def ordered_probit(category, W):
    """Ordered probit: categories 0, 1, … of a latent Wβ + e with e ~ N(0, 1).

    All cut points are free, so W must have no intercept. Estimates are β, then the cut points.
    """
    category, W = np.asarray(category, int), np.asarray(W, float)
    n, k = W.shape
    count = int(category.max())

    def cuts_of(p):
        return p[k] + np.append(0.0, np.cumsum(np.exp(p[k + 1 :])))

    def function(p):
        ends = np.concatenate([[-np.inf], cuts_of(p), [np.inf]])
        centre = W @ p[:k]
        found = line(ends[category] - centre, ends[category + 1] - centre)
        at_cuts = [
            found.right[category == c].sum() - found.left[category == c + 1].sum()
            for c in range(count)
        ]
        # A later cut moves with each of the gaps before it.
        later = np.cumsum(at_cuts[::-1])[::-1]
        slope = [(found.left - found.right) @ W, later[:1], later[1:] * np.exp(p[k + 1 :])]
        return float(found.log_mass.sum()), np.concatenate(slope)

    first = np.clip(np.cumsum(np.bincount(category))[:-1] / n, 0.02, 0.98)
    gaps = np.log(np.maximum(np.diff(4.0 * first - 2.0), 0.1))
    start = np.concatenate([np.zeros(k), 4.0 * first[:1] - 2.0, gaps])
    size = np.append(0.1 / np.sqrt((W**2).mean(axis=0)), np.full(count, 0.1))
    at, value, covariance = climb(function, start, size)
    back = np.eye(k + count)
    back[k:, k:] = np.tril(np.ones((count, count))) * np.append(1.0, np.exp(at[k + 1 :]))
    return Found(np.append(at[:k], cuts_of(at)), value, back @ covariance @ back.T)


def truncated_log_likelihood(beta, sigma, y, lower, upper, W):
    """Log-likelihood of rows that are in the table only if lower <= y <= upper, with its slopes.

    The slopes are those of each row in (β, σ).
    """
    y, W = np.asarray(y, float), np.asarray(W, float)
    centre = W @ beta
    t = (y - centre) / sigma
    found = line((lower - centre) / sigma, (upper - centre) / sigma)
    value = -math.log(sigma) - HALF_LOG_TWO_PI - 0.5 * t * t - found.log_mass
    slopes = np.column_stack([(t - found.mean)[:, None] * W, t * t - found.square]) / sigma
    return value, slopes


def truncated_regression(y, lower, upper, W, start=None, weights=None):
    """Truncated regression: estimates are β, then σ. Limits may differ by row."""
    y, W = np.asarray(y, float), np.asarray(W, float)
    lower, upper = (np.broadcast_to(np.asarray(end, float), y.shape) for end in (lower, upper))
    weights = np.ones(y.size) if weights is None else np.asarray(weights, float)
    # In units of the residuals of least squares, which the values are counted from.
    plain, (Q, R) = np.linalg.lstsq(W, y)[0], np.linalg.qr(W)
    Q, R = Q * math.sqrt(y.size), R / math.sqrt(y.size)
    rest = y - W @ plain
    s = rest.std()
    values = [(part - W @ plain) / s for part in (y, lower, upper)]

    def function(p):
        sigma = math.exp(p[-1])
        value, slopes = truncated_log_likelihood(p[:-1], sigma, *values, Q)
        slopes[:, -1] *= sigma
        return float(weights @ value) - weights.sum() * math.log(s), weights @ slopes

    begin = np.zeros(W.shape[1] + 1)
    if start is not None:
        begin = np.append(R @ (start[:-1] - plain) / s, math.log(start[-1] / s))
    at, value, covariance = climb(function, begin)
    estimates = np.append(plain + s * np.linalg.solve(R, at[:-1]), s * math.exp(at[-1]))
    back = np.zeros((at.size, at.size))
    back[:-1, :-1], back[-1, -1] = s * np.linalg.inv(R), estimates[-1]
    return Found(estimates, value, back @ covariance @ back.T)


def heckman_log_likelihood(p, wage, works, W_wage, W_works):
    """Heckman's log-likelihood in (β, γ, log σ, artanh ρ), with its slope, as textbooks have it."""
    wage, works = np.asarray(wage, float), np.asarray(works, bool)
    k = W_wage.shape[1]
    beta, gamma, sigma, tau = p[:k], p[k:-2], math.exp(p[-2]), p[-1]
    index = W_works @ gamma
    t, z = (wage[works] - W_wage[works] @ beta) / sigma, index[works]
    # (zγ + ρt)/√(1 − ρ²), where 1/√(1 − ρ²) = cosh τ
    u = z * math.cosh(tau) + t * math.sinh(tau)
    value = -0.5 * t * t - HALF_LOG_TWO_PI - p[-2] + log_ndtr(u)
    hazard, other = (
        np.exp(-0.5 * v * v - HALF_LOG_TWO_PI - log_ndtr(v)) for v in (u, -index[~works])
    )
    on_t = -t + hazard * math.sinh(tau)
    slope = [
        -(on_t @ W_wage[works]) / sigma,
        math.cosh(tau) * hazard @ W_works[works] - other @ W_works[~works],
        [-(on_t @ t) - t.size, hazard @ (z * math.sinh(tau) + t * math.cosh(tau))],
    ]
    return float(value.sum() + log_ndtr(-index[~works]).sum()), np.concatenate(slope)


def heckman(wage, works, W_wage, W_works):
    """Heckman's selection model: estimates are β, γ, σ and ρ. ``wage`` counts where ``works`` is true.

    The best of the tops that are reached from correlations of 0 and ±0.7.
    """
    works = np.asarray(works, bool)
    wage = np.where(works, wage, 0.0)
    W_wage, W_works = np.asarray(W_wage, float), np.asarray(W_works, float)
    beta = np.linalg.lstsq(W_wage[works], wage[works])[0]
    spread = (wage[works] - W_wage[works] @ beta).std()
    gamma = 1.5 * np.linalg.lstsq(W_works, 2.0 * works - 1.0)[0]
    sizes = [
        0.1 * spread / np.sqrt((W_wage**2).mean(axis=0)),
        0.1 / np.sqrt((W_works**2).mean(axis=0)),
    ]
    size = np.concatenate([*sizes, [0.1, 0.1]])
    tops = [
        climb(
            lambda p: heckman_log_likelihood(p, wage, works, W_wage, W_works),
            np.concatenate([beta, gamma, [math.log(spread), math.atanh(rho)]]),
            size,
        )
        for rho in (0.0, -0.7, 0.7)
    ]
    at, value, covariance = max(tops, key=lambda top: top[1])
    sigma, rho = math.exp(at[-2]), math.tanh(at[-1])
    back = np.append(np.ones(at.size - 2), [sigma, 1.0 - rho**2])
    return Found(np.append(at[:-2], [sigma, rho]), value, covariance * np.outer(back, back))
