"""One column on its own: how far its likelihood falls where a number is held fixed.

The number is φ = μ + tσ + bσ²/2: a mean, a quantile, or the logarithm of the mean of a log-normal
distribution. With it fixed the likelihood is one of log σ alone. The signed root of the fall,
r = ±√(2(ℓ(θ̂) − ℓ(θ̂_φ))) with the sign of φ̂ − φ, is nearly standard normal at the true φ; in few rows its
mean and deviation are those in columns simulated at θ̂_φ and hidden as the real one was (DiCiccio and
Young 2008).
"""

import math

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.censored_normal import fit_censored_normal
from halfseen.kernels.posterior import given_deviation
from halfseen.kernels.special import log_ndtr
from halfseen.kernels.univariate import HALF_LOG_TWO_PI, moments

# Deviations that are looked at first are up to so many times the start, or less; then the slope is
# followed to where log σ is known this well.
REACH, LOOKS, CLOSE, MOST_STEPS = math.log(8.0), 9, 1e-7, 60
# Fewer seen values tell nothing of a deviation.
FEWEST_SEEN = 3


@njit(**INNER)
def _slope(at, tilt, bend, log_sigma, sums, lower, upper, count, room):
    """Slope of the log-likelihood in log σ where φ = ``at``."""
    sigma = math.exp(log_sigma)
    mu = at - tilt * sigma - 0.5 * bend * sigma * sigma
    move = -tilt * sigma - bend * sigma * sigma
    n, off = sums[0], sums[1] - mu
    slope = -n + (sums[2] + n * off * off + n * off * move) / (sigma * sigma)
    for s in range(lower.size):
        side = 0.0
        if lower[s] == -math.inf:
            side, w = 1.0, (upper[s] - mu) / sigma
        elif upper[s] == math.inf:
            side, w = -1.0, (mu - lower[s]) / sigma
        if side != 0.0:
            hazard = math.exp(-0.5 * w * w - HALF_LOG_TWO_PI - log_ndtr(w))
            slope -= count[s] * hazard * (w + side * move / sigma)
        else:
            moments(mu, sigma, lower[s], upper[s], room)
            second = room[2] - 2.0 * mu * room[1] + mu * mu
            slope += count[s] * (
                second / (sigma * sigma) - 1.0 + (room[1] - mu) * move / (sigma * sigma)
            )
    return slope


@njit(**INNER)
def _height(at, tilt, bend, log_sigma, sums, lower, upper, count, room):
    """Log-likelihood where φ = ``at``."""
    sigma = math.exp(log_sigma)
    mu = at - tilt * sigma - 0.5 * bend * sigma * sigma
    return given_deviation(mu, sigma, sums, lower, upper, count, room)[0]


@njit(**KERNEL)
def highest_at(at, tilt, bend, sums, lower, upper, count, sigma):
    """Largest log-likelihood where φ = ``at``, and the deviation there.

    The best of some places is taken, and the slope followed from there to zero (Illinois).
    """
    room = np.empty(5)
    best, middle = -math.inf, math.log(sigma)
    start, gap = middle - REACH, 2.0 * REACH / (LOOKS - 1)
    for k in range(LOOKS):
        height = _height(at, tilt, bend, start + k * gap, sums, lower, upper, count, room)
        if height > best:
            best, middle = height, start + k * gap
    slope = _slope(at, tilt, bend, middle, sums, lower, upper, count, room)
    away = gap if slope > 0.0 else -gap
    a, of_a = middle, slope
    b = middle + away
    of_b = _slope(at, tilt, bend, b, sums, lower, upper, count, room)
    for _ in range(MOST_STEPS):
        if of_a * of_b <= 0.0:
            break
        a, of_a = b, of_b
        b += away
        of_b = _slope(at, tilt, bend, b, sums, lower, upper, count, room)
    for _ in range(MOST_STEPS):
        if abs(b - a) < CLOSE or of_a == of_b:
            break
        c = (a * of_b - b * of_a) / (of_b - of_a)
        of_c = _slope(at, tilt, bend, c, sums, lower, upper, count, room)
        if of_c * of_b < 0.0:
            a, of_a = b, of_b
        else:
            of_a *= 0.5
        moved = abs(c - b)
        b, of_b = c, of_c
        if of_c == 0.0 or moved < CLOSE:
            break
    return _height(at, tilt, bend, b, sums, lower, upper, count, room), math.exp(b)


@njit(**KERNEL)
def signed_root(at, tilt, bend, sums, lower, upper, count, mu, sigma):
    """Return the signed root at φ = ``at``, and the deviation there; NaN where there is no top."""
    n = sums[0]
    raw = np.array([n, n * sums[1], sums[2] + n * sums[1] * sums[1]])
    start = np.arange(lower.size + 1)
    mu, sigma, _, settled = fit_censored_normal(raw, start, lower, upper, count, mu, sigma)
    if not settled:
        return math.nan, math.nan
    top = given_deviation(mu, sigma, sums, lower, upper, count, np.empty(5))[0]
    height, there = highest_at(at, tilt, bend, sums, lower, upper, count, sigma)
    root = math.sqrt(max(2.0 * (top - height), 0.0))
    return (root if mu + tilt * sigma + 0.5 * bend * sigma * sigma > at else -root), there


@njit(**INNER)
def _hide(values, below, above, low, high, sums, lower, upper, count, held):
    """Hide values outside their limits; fills the sums, and returns how many intervals hold some.

    ``held[g]`` is where the cells below limit g are counted (and those above limit g, after them).
    """
    held[:] = -1
    total, square, seen, sets = 0.0, 0.0, 0, 0
    for i in range(values.size):
        x, a, b = values[i], below[i], above[i]
        if x < low[a]:
            key, left, right = a, -math.inf, low[a]
        elif x > high[b]:
            key, left, right = low.size + b, high[b], math.inf
        else:
            # Welford's sums lose no digits.
            seen += 1
            off = x - total
            total += off / seen
            square += off * (x - total)
            continue
        if held[key] < 0:
            held[key] = sets
            lower[sets], upper[sets], count[sets] = left, right, 0.0
            sets += 1
        count[held[key]] += 1.0
    sums[0], sums[1], sums[2] = seen, total, square
    return sets


@njit(**KERNEL)
def simulated_roots(at, tilt, bend, sigma, scores, below, above, low, high):
    """Return signed roots of simulated columns at the true φ = ``at``, with deviation ``sigma``.

    Parameters
    ----------
    scores : array of shape (m, n)
        Standard normal.
    below, above : integer arrays of shape (m, n) or (1, n)
        The lower and the upper limit of each cell, by its place in ``low`` and ``high``.
    low, high : arrays
        Limits; infinite where there is none.

    Returns
    -------
    array of m
        NaN where too little is seen, or the likelihood has no top.
    """
    m, n = scores.shape
    mu = at - tilt * sigma - 0.5 * bend * sigma * sigma
    out = np.full(m, math.nan)
    sums, held = np.empty(3), np.empty(low.size + high.size, dtype=np.int64)
    lower, upper, count = np.empty(n), np.empty(n), np.empty(n)
    for r in range(m):
        k = r if below.shape[0] > 1 else 0
        values = mu + sigma * scores[r]
        sets = _hide(values, below[k], above[k], low, high, sums, lower, upper, count, held)
        if sums[0] >= FEWEST_SEEN:
            cells = lower[:sets], upper[:sets], count[:sets]
            out[r] = signed_root(at, tilt, bend, sums, *cells, mu, sigma)[0]
    return out
