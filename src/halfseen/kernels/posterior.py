"""One column on its own: mean and deviation given its cells, on a grid.

The posterior of (μ, σ) under the prior dμ dσ/σ. With nothing hidden it is Student's: means, quantiles
and next values then have the limits of textbooks. Deviations are the nodes of a Gauss-Legendre rule in
σ^(−2/3), which is nearly normal (Wilson and Hilferty); at each of them the density of μ is log-concave,
and stands on an even grid around its top. To the trapezoid between two places h²/12 times the difference
of the slopes is added, and cubics whose slope is the density go between (both of fourth order: limits of
complete samples have their probability to 2e-6).
"""

import math

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.quadrature import NODES_48, WEIGHTS_48
from halfseen.kernels.special import log_ndtr, ndtr
from halfseen.kernels.univariate import HALF_LOG_TWO_PI, moments

# Places of the mean at each deviation.
PLACES = 48
# The density is cut where its logarithm is so far below its top, in μ and in the deviation.
DROP, WIDE_DROP = 18.0, 25.0
# The first place that is looked at for a cut, in deviations; further ones grow by these factors.
FIRST, GROWTH, STRIDE = 6.0, 1.3, 1.15
# Steps to a top, halvings, and how close it is found, in deviations of the mean.
MOST_STEPS, MOST_HALVINGS, CLOSE = 60, 30, 1e-3


@njit(**INNER)
def given_deviation(mu, sigma, sums, lower, upper, count, room):
    """Log-likelihood of a column at μ, with its slope and curvature in μ.

    ``sums`` are the number, the mean and the sum of squares about it of the seen values.
    """
    n, off = sums[0], sums[1] - mu
    square = sigma * sigma
    value = -n * math.log(sigma) - 0.5 * (sums[2] + n * off * off) / square
    slope, bend = n * off / square, -n / square
    for s in range(lower.size):
        side = 0.0
        if lower[s] == -math.inf:
            side, w = 1.0, (upper[s] - mu) / sigma
        elif upper[s] == math.inf:
            side, w = -1.0, (mu - lower[s]) / sigma
        if side != 0.0:
            log_mass = log_ndtr(w)
            hazard = math.exp(-0.5 * w * w - HALF_LOG_TWO_PI - log_mass)
            value += count[s] * log_mass
            slope -= count[s] * side * hazard / sigma
            bend -= count[s] * hazard * (w + hazard) / square
        else:
            value += count[s] * moments(mu, sigma, lower[s], upper[s], room)
            slope += count[s] * (room[1] - mu) / square
            bend += count[s] * ((room[2] - room[1] * room[1]) / square - 1.0) / square
    return value, slope, bend


@njit(**INNER)
def _top(sigma, mu, sums, lower, upper, count, room):
    """Find the best mean at a deviation: place, log-likelihood, curvature."""
    value, slope, bend = given_deviation(mu, sigma, sums, lower, upper, count, room)
    for _ in range(MOST_STEPS):
        step = -slope / bend if bend < 0.0 else math.copysign(math.inf, slope)
        step = min(max(step, -3.0 * sigma), 3.0 * sigma)
        new, new_slope, new_bend = given_deviation(
            mu + step, sigma, sums, lower, upper, count, room
        )
        for _ in range(MOST_HALVINGS):
            if new >= value - 1e-9:
                break
            step *= 0.5
            new, new_slope, new_bend = given_deviation(
                mu + step, sigma, sums, lower, upper, count, room
            )
        mu, value, slope, bend = mu + step, new, new_slope, new_bend
        if bend < 0.0 and abs(step) * math.sqrt(-bend) < CLOSE:
            break
    return mu, value, bend


@njit(**INNER)
def _cut(side, mu, sigma, sums, lower, upper, count, room):
    """Where log σ^(−2/3) is hardly above nothing, on one side: the node there, 0 at the latest."""
    node = sigma ** (-2.0 / 3.0)
    stride = 0.3 * node / math.sqrt(1.0 + 0.1 * (sums[0] + count.sum()))
    highest = -math.inf
    while node > 0.0:
        mu, value, bend = _top(node**-1.5, mu, sums, lower, upper, count, room)
        # dσ/σ = −(3/2) dv/v
        height = value - 0.5 * math.log(-bend) - math.log(node)
        highest = max(highest, height)
        if height < highest - WIDE_DROP:
            break
        node += side * stride
        stride *= STRIDE
    return max(node, 0.0)


@njit(**INNER)
def _fill(i, sigma, mu, value, bend, sums, lower, upper, count, room, grid):
    """Lay the means out at one deviation; returns the logarithm of their mass."""
    first, step, mass, density = grid
    left = right = FIRST / math.sqrt(-bend)
    while given_deviation(mu - left, sigma, sums, lower, upper, count, room)[0] > value - DROP:
        left *= GROWTH
    while given_deviation(mu + right, sigma, sums, lower, upper, count, room)[0] > value - DROP:
        right *= GROWTH
    h = (left + right) / (PLACES - 1)
    first[i], step[i] = mu - left, h
    total = last = last_slope = 0.0
    for k in range(PLACES):
        log, slope, _ = given_deviation(first[i] + k * h, sigma, sums, lower, upper, count, room)
        height = math.exp(log - value)
        slope *= height
        if k > 0:
            total += 0.5 * h * (last + height) - h * h / 12.0 * (slope - last_slope)
        mass[i, k], density[i, k] = total, height
        last, last_slope = height, slope
    mass[i] /= total
    density[i] /= total
    return value + math.log(total)


@njit(**KERNEL)
def lay_grid(sums, lower, upper, count, mu, sigma):
    """Lay out the posterior under dμ dσ/σ.

    Parameters
    ----------
    sums : array of 3
        Number, mean, and sum of squares about the mean, of seen values of the order of 1.
    lower, upper, count : arrays
        Hidden cells: how many lie in each interval.
    mu, sigma : float
        The likeliest mean and deviation.

    Returns
    -------
    deviation, log_weight : arrays of shape (48,)
    first, step : arrays of shape (48,)
        Of the places of the mean at each deviation.
    mass, density : arrays of shape (48, places)
        Of the mean below each place, and there.
    """
    nodes = NODES_48.size
    room = np.empty(5)
    low = _cut(-1.0, mu, sigma, sums, lower, upper, count, room)
    high = _cut(1.0, mu, sigma, sums, lower, upper, count, room)
    deviation, log_weight = np.empty(nodes), np.empty(nodes)
    first, step = np.empty(nodes), np.empty(nodes)
    mass, density = np.empty((nodes, PLACES)), np.empty((nodes, PLACES))
    grid = first, step, mass, density
    # From the smallest deviation up: the top moves little between neighbours.
    for i in range(nodes - 1, -1, -1):
        node = low + (high - low) * NODES_48[i]
        deviation[i] = node**-1.5
        mu, value, bend = _top(deviation[i], mu, sums, lower, upper, count, room)
        log_mass = _fill(i, deviation[i], mu, value, bend, sums, lower, upper, count, room, grid)
        log_weight[i] = log_mass - math.log(node) + math.log(WEIGHTS_48[i])
    return deviation, log_weight, first, step, mass, density


@njit(**KERNEL)
def mass_below(mean, weight, first, step, mass, density):
    """Probability that μ is below ``mean[i]`` where σ is the deviation i."""
    total, last = 0.0, mass.shape[1] - 1
    for i in range(weight.size):
        place = (mean[i] - first[i]) / step[i]
        if place >= last:
            total += weight[i]
        elif place > 0.0:
            k = int(place)
            t = place - k
            a, b = mass[i, k], mass[i, k + 1]
            da, db = density[i, k] * step[i], density[i, k + 1] * step[i]
            s = 1.0 - t
            between = s * s * ((1.0 + 2.0 * t) * a + t * da)
            between += t * t * ((1.0 + 2.0 * s) * b - s * db)
            total += weight[i] * between
    return total


@njit(**KERNEL)
def next_below(x, values, side, deviation, weight, first, step, density):
    """Probability that the next values all lie below x (side 1), or above it (side −1)."""
    total = 0.0
    for i in range(weight.size):
        part = 0.0
        for k in range(density.shape[1]):
            z = side * (x - first[i] - k * step[i]) / deviation[i]
            part += density[i, k] * ndtr(z) ** values
        total += weight[i] * part * step[i]
    return total
