"""The normal distribution restricted to an interval: log-mass, moments to order 4, draws.

Everything is computed relative to the highest point of the density on the interval, so a limit 40
standard deviations away is as harmless as one at zero.
"""

import math

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.quadrature import NODES_48, WEIGHTS_48
from halfseen.kernels.special import log_ndtr, ndtr, ndtri, ndtri_exp

# exp(-40) < 5e-18: what lies this far below the peak, on a log scale, cannot be seen in a double.
NEGLIGIBLE_DROP = 40.0
# sqrt(2·40) = 8.94, rounded up: the same drop around an interior peak.
NEGLIGIBLE_RADIUS = 9.0
# Beyond this many standard deviations on both sides of zero, odd moments need their closed form.
WIDE = 3.0
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
INVERSE_ROOT_TWO_PI = 1.0 / math.sqrt(2.0 * math.pi)
# Φ(−35) is about 1e-268: beyond, masses are computed on a log scale.
FAR = 35.0
# Narrower intervals lose digits in closed forms, and are integrated instead.
NARROW = 0.1


@njit(**INNER)
def effective_range(a, b):
    """Part of [a, b] that holds all of the standard normal mass on it, to rounding."""
    if a >= 0.0:
        # a·t + t²/2 = 40 at t = sqrt(a² + 80) − a
        return a, min(b, math.sqrt(a * a + 2.0 * NEGLIGIBLE_DROP))
    if b <= 0.0:
        return max(a, -math.sqrt(b * b + 2.0 * NEGLIGIBLE_DROP)), b
    return max(a, -NEGLIGIBLE_RADIUS), min(b, NEGLIGIBLE_RADIUS)


@njit(**INNER)
def _log_mass_by_quadrature(a, b):
    low, high = effective_range(a, b)
    peak = low if low > 0.0 else (high if high < 0.0 else 0.0)
    width = high - low
    total = 0.0
    for k in range(NODES_48.size):
        z = low + width * NODES_48[k]
        total += WEIGHTS_48[k] * math.exp(-0.5 * (z - peak) * (z + peak))
    return math.log(total * width) - 0.5 * peak * peak - HALF_LOG_TWO_PI


@njit(**INNER)
def log_mass(a, b):
    """Log P(a < Z < b) for Z standard normal; -inf when the interval is empty."""
    if not a < b:
        return -math.inf
    if a > 0.0:
        a, b = -b, -a
    if b <= 0.0:
        # log(Φ(b) − Φ(a)) = log Φ(b) + log(1 − Φ(a)/Φ(b)), unless the two are nearly equal
        upper = log_ndtr(b)
        if a == -math.inf:
            return upper
        drop = log_ndtr(a) - upper
        if drop < -0.5:
            return upper + math.log1p(-math.exp(drop))
        return _log_mass_by_quadrature(a, b)
    outside = ndtr(a) + ndtr(-b)
    if outside < 0.5:
        return math.log1p(-outside)
    return _log_mass_by_quadrature(a, b)


@njit(**INNER)
def moments(mu, sigma, lower, upper, out):
    """Raw moments of N(mu, sigma²) restricted to (lower, upper); returns the log-mass.

    ``out[k]`` becomes E[x^k], k = 0..4. Every term of the sums for even k is positive, so nothing
    cancels there.
    """
    a = (lower - mu) / sigma
    b = (upper - mu) / sigma
    out[:] = 0.0
    if not a < b:
        return -math.inf
    low, high = effective_range(a, b)
    peak = low if low > 0.0 else (high if high < 0.0 else 0.0)
    width = high - low
    # x = mu + sigma·z; E[x^k] = Σ w x^k exp(−(z² − peak²)/2) / Σ w exp(…)
    for k in range(NODES_48.size):
        z = low + width * NODES_48[k]
        weight = WEIGHTS_48[k] * math.exp(-0.5 * (z - peak) * (z + peak))
        x = mu + sigma * z
        out[0] += weight
        weight *= x
        out[1] += weight
        weight *= x
        out[2] += weight
        weight *= x
        out[3] += weight
        out[4] += weight * x
    total = out[0]
    for k in range(5):
        out[k] /= total
    if a < 0.0 < b:
        outside = ndtr(a) + ndtr(-b)
        if outside < 0.5:
            if b > WIDE and a < -WIDE:
                _repair_odd_moments(mu, sigma, a, b, 1.0 - outside, out)
            # The closed form keeps the digits of a log-mass near zero.
            return math.log1p(-outside)
    return math.log(total * width) - 0.5 * peak * peak - HALF_LOG_TWO_PI


@njit(**INNER)
def _repair_odd_moments(mu, sigma, a, b, mass, out):
    # On a wide interval around zero the odd moments of z are tiny, and a sum of signed terms gives
    # only rounding noise. In closed form: E z = (φ(a) − φ(b))/P, E z³ = 2 E z + (a²φ(a) − b²φ(b))/P.
    left = math.exp(-0.5 * a * a - HALF_LOG_TWO_PI) / mass
    right = math.exp(-0.5 * b * b - HALF_LOG_TWO_PI) / mass
    z1 = left - right
    z3 = 2.0 * z1 + (a * a * left if left > 0.0 else 0.0) - (b * b * right if right > 0.0 else 0.0)
    z2 = 1.0 + (a * left if left > 0.0 else 0.0) - (b * right if right > 0.0 else 0.0)
    out[1] = mu + sigma * z1
    out[3] = mu**3 + 3.0 * mu * mu * sigma * z1 + 3.0 * mu * sigma**2 * z2 + sigma**3 * z3


@njit(**INNER)
def interval(a, b, out):
    """Moments of a standard normal on (a, b), in closed form where it keeps its digits.

    ``out[k]`` becomes E[z^k], k = 0..4; returns the log-mass.
    """
    if not (b - a > NARROW and a < FAR and b > -FAR):
        return moments(0.0, 1.0, a, b, out)
    # Masses are taken on the side where they are small.
    mass = ndtr(-a) - ndtr(-b) if a > 0.0 else ndtr(b) - ndtr(a)
    left = INVERSE_ROOT_TWO_PI * math.exp(-0.5 * a * a) / mass
    right = INVERSE_ROOT_TWO_PI * math.exp(-0.5 * b * b) / mass
    # E z^k = (k − 1) E z^(k−2) + (a^(k−1) φ(a) − b^(k−1) φ(b))/P
    out[0], out[1] = 1.0, left - right
    for k in range(2, 5):
        left *= a if left != 0.0 else 0.0
        right *= b if right != 0.0 else 0.0
        out[k] = (k - 1) * out[k - 2] + left - right
    return math.log(mass)


@njit(**INNER)
def draw(a, b, u):
    """Inverse-CDF draw of a standard normal restricted to (a, b), from one uniform u."""
    if a > 0.0:
        return -draw(-b, -a, 1.0 - u)
    if b <= 0.0:
        # log Φ(z) = log Φ(b) + log(u + (1 − u)·Φ(a)/Φ(b))
        upper = log_ndtr(b)
        ratio = 0.0 if a == -math.inf else math.exp(log_ndtr(a) - upper)
        z = ndtri_exp(upper + math.log(u + (1.0 - u) * ratio)) if u + ratio > 0.0 else a
    else:
        below, above = ndtr(a), ndtr(-b)
        p = below + u * (1.0 - below - above)
        z = ndtri(p) if p <= 0.5 else -ndtri(above + (1.0 - u) * (1.0 - below - above))
    return min(max(z, a), b)


@njit(**KERNEL)
def log_masses(a, b):
    """``log_mass`` for arrays of limits."""
    out = np.empty(a.size)
    for i in range(a.size):
        out[i] = log_mass(a[i], b[i])
    return out
