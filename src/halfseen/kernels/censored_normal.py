"""One column on its own: the normal distribution of greatest likelihood for values and holes.

In Olsen's parameters θ = 1/σ and δ = μ/σ the log-likelihood of seen values and of intervals is concave,
so Newton's method, with steps that are halved while they lead down, finds its only top. Where a hidden
set has several pieces it need not be concave; where the curvature has the wrong sign the step is that
of complete data.
"""

import math

import numpy as np

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.special import log_ndtr, ndtr
from halfseen.kernels.univariate import HALF_LOG_TWO_PI, draw, log_mass, moments

# Steps, halvings of a step, and the gain in log-likelihood for each cell that still counts as one.
MOST_STEPS, MOST_HALVINGS, SMALL_GAIN = 100, 40, 1e-13
# σ may not fall below or rise above this many times the unit that the values come in.
NARROWEST, WIDEST = 1e-6, 1e6
# Less curvature than this share of that of complete data is none: the likelihood has no top here.
FLAT = 1e-9
# Within so many standard deviations 1 − Φ keeps nine digits.
CLOSE = 5.0
# Multiples of the golden ratio less 1 fill the unit interval evenly, however many are taken.
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
# Uniforms keep this far from 0 and 1, whose normal quantiles are infinite.
SMALLEST_UNIFORM = 1e-12


@njit(**INNER)
def _set_moments(mu, sigma, lower, upper, first, last, out, piece):
    """Raw moments of N(mu, sigma²) on pieces first..last; returns the log-mass."""
    total = moments(mu, sigma, lower[first], upper[first], out)
    for k in range(first + 1, last):
        mass = moments(mu, sigma, lower[k], upper[k], piece)
        if mass == -math.inf:
            continue
        top = max(total, mass)
        joint = top + math.log(math.exp(total - top) + math.exp(mass - top))
        share = math.exp(mass - joint)
        for m in range(5):
            out[m] = (1.0 - share) * out[m] + share * piece[m]
        total = joint
    return total


@njit(**INNER)
def _set_log_mass(mu, sigma, lower, upper, first, last):
    """Log-mass of N(mu, sigma²) on pieces first..last."""
    total = -math.inf
    for k in range(first, last):
        mass = log_mass((lower[k] - mu) / sigma, (upper[k] - mu) / sigma)
        top = max(total, mass)
        if mass > -math.inf:
            total = top + math.log(math.exp(total - top) + math.exp(mass - top))
    return total


@njit(**KERNEL)
def log_likelihood(theta, delta, sums, start, lower, upper, count):
    """Log-likelihood of seen values (``sums`` of x^0, x, x²) and of hidden cells by set."""
    # Σ log θ − (θx − δ)²/2 − log √2π
    n = sums[0]
    value = n * (math.log(theta) - HALF_LOG_TWO_PI)
    value -= 0.5 * (theta * theta * sums[2] - 2.0 * theta * delta * sums[1] + n * delta * delta)
    for s in range(count.size):
        if count[s] > 0.0:
            value += count[s] * _set_log_mass(
                delta / theta, 1.0 / theta, lower, upper, start[s], start[s + 1]
            )
    return value


@njit(**INNER)
def _half_line_terms(theta, delta, limit, side, terms):
    """Terms of a cell below its limit (side 1), or above it (side -1), in closed form.

    log Φ(w) with w = side·(θc − δ) has the derivative λ = φ(w)/Φ(w) and the second derivative −λ(w + λ).
    """
    w = side * (theta * limit - delta)
    hazard = math.exp(-0.5 * w * w - HALF_LOG_TWO_PI - log_ndtr(w))
    bend = -hazard * (w + hazard)
    terms[0], terms[1] = side * hazard * limit, -side * hazard
    terms[2], terms[3], terms[4] = bend * limit * limit, -bend * limit, bend
    # Moments of x = (z + δ)/θ, from E z = −side·λ and E z² = 1 − wλ
    z, zz = -side * hazard, 1.0 - w * hazard
    second = (zz + 2.0 * delta * z + delta * delta) / (theta * theta)
    terms[5], terms[6] = -1.0 / (theta * theta) - second, (z + delta) / theta


@njit(**INNER)
def _set_terms(theta, delta, lower, upper, first, last, terms, E, piece):
    """Gradient, Hessian, and Hessian if it were complete, of a cell in a union of intervals."""
    _set_moments(delta / theta, 1.0 / theta, lower, upper, first, last, E, piece)
    # zx = θx² − δx: its mean and its (co)variance with z, from moments of x
    v11 = (
        theta * theta * (E[4] - E[2] * E[2])
        - 2.0 * theta * delta * (E[3] - E[2] * E[1])
        + delta * delta * (E[2] - E[1] * E[1])
    )
    v22 = theta * theta * (E[2] - E[1] * E[1])
    v12 = -(theta * theta * (E[3] - E[2] * E[1]) - theta * delta * (E[2] - E[1] * E[1]))
    terms[0] = 1.0 / theta - (theta * E[2] - delta * E[1])
    terms[1] = theta * E[1] - delta
    terms[5], terms[6] = -1.0 / (theta * theta) - E[2], E[1]
    terms[2], terms[3], terms[4] = terms[5] + v11, terms[6] + v12, -1.0 + v22


@njit(**KERNEL)
def gradient_and_curvature(theta, delta, sums, start, lower, upper, count, g, H):
    """Fill the gradient in (θ, δ) and the Hessian of the log-likelihood (Louis' identity).

    Returns whether the log-likelihood is concave here, and not as good as flat.
    """
    n, s1, s2 = sums[0], sums[1], sums[2]
    # ∂θ: 1/θ − zx, ∂δ: z, with z = θx − δ; second derivatives −1/θ² − x², x, −1
    g[0] = n / theta - theta * s2 + delta * s1
    g[1] = theta * s1 - n * delta
    H[0, 0], H[0, 1], H[1, 1] = -n / (theta * theta) - s2, s1, -n
    complete = H[0, 0], H[0, 1], H[1, 1]
    terms, E, piece = np.empty(7), np.empty(5), np.empty(5)
    for s in range(count.size):
        c = count[s]
        if c == 0.0:
            continue
        k = start[s]
        if start[s + 1] == k + 1 and lower[k] == -math.inf and upper[k] < math.inf:
            _half_line_terms(theta, delta, upper[k], 1.0, terms)
        elif start[s + 1] == k + 1 and upper[k] == math.inf and lower[k] > -math.inf:
            _half_line_terms(theta, delta, lower[k], -1.0, terms)
        else:
            _set_terms(theta, delta, lower, upper, k, start[s + 1], terms, E, piece)
        g[0] += c * terms[0]
        g[1] += c * terms[1]
        H[0, 0] += c * terms[2]
        H[0, 1] += c * terms[3]
        H[1, 1] += c * terms[4]
        complete = complete[0] + c * terms[5], complete[1] + c * terms[6], complete[2] - c
    determinant = H[0, 0] * H[1, 1] - H[0, 1] * H[0, 1]
    curved = (
        H[0, 0] < 0.0 and H[1, 1] < FLAT * complete[2] and determinant > 1e-12 * H[0, 0] * H[1, 1]
    )
    if not curved:
        H[0, 0], H[0, 1], H[1, 1] = complete
    H[1, 0] = H[0, 1]
    return curved


@njit(**KERNEL)
def fit_censored_normal(sums, start, lower, upper, count, mu, sigma):
    """Find mean, standard deviation and log-likelihood; whether the top was found comes last.

    Parameters
    ----------
    sums : array of 3
        Number, sum and sum of squares of the seen values, which are to be of the order of 1.
    start, lower, upper : arrays
        Hidden set s is the union of (lower[k], upper[k]) for k from start[s] to start[s + 1].
    count : array
        How many cells are hidden in each set.
    mu, sigma : float
        Where to begin.
    """
    theta, delta = 1.0 / sigma, mu / sigma
    value = log_likelihood(theta, delta, sums, start, lower, upper, count)
    cells = sums[0] + count.sum()
    g, H = np.empty(2), np.empty((2, 2))
    settled = curved = False
    for _ in range(MOST_STEPS):
        curved = gradient_and_curvature(theta, delta, sums, start, lower, upper, count, g, H)
        determinant = H[0, 0] * H[1, 1] - H[0, 1] * H[0, 1]
        step_theta = -(H[1, 1] * g[0] - H[0, 1] * g[1]) / determinant
        step_delta = -(H[0, 0] * g[1] - H[0, 1] * g[0]) / determinant
        size, found = 1.0, False
        for _ in range(MOST_HALVINGS):
            new_theta, new_delta = theta + size * step_theta, delta + size * step_delta
            if 1.0 / WIDEST < new_theta < 1.0 / NARROWEST:
                new = log_likelihood(new_theta, new_delta, sums, start, lower, upper, count)
                if new >= value:
                    found = True
                    break
            size *= 0.5
        if not found:
            # Rounding alone: no step leads up.
            settled = True
            break
        gain = new - value
        theta, delta, value = new_theta, new_delta, new
        if gain <= SMALL_GAIN * cells:
            settled = True
            break
    inside = 2.0 / WIDEST < theta < 0.5 / NARROWEST
    return delta / theta, 1.0 / theta, value, settled and curved and inside


@njit(**KERNEL)
def residuals(values, start, lower, upper, count, mu, sigma, phase):
    """Return normal scores of all cells: those of hidden cells are drawn within their sets.

    If the column is N(mu, sigma²), these are standard normal (Dunn and Smyth's randomised quantile
    residuals). The uniforms of hidden cells are frac(phase + k·golden ratio): each is uniform if
    ``phase`` is, and together they fill a set more evenly than independent ones would.
    """
    n = values.size
    for s in range(count.size):
        n += int(count[s])
    z = np.empty(n)
    for i in range(values.size):
        z[i] = (values[i] - mu) / sigma
    i, u = values.size, phase
    for s in range(count.size):
        if count[s] == 0.0:
            continue
        total = _set_log_mass(mu, sigma, lower, upper, start[s], start[s + 1])
        for _ in range(int(count[s])):
            u = (u + GOLDEN) % 1.0
            z[i] = _draw_in_set(mu, sigma, lower, upper, start[s], start[s + 1], total, u)
            i += 1
    return z


@njit(**INNER)
def _draw_in_set(mu, sigma, lower, upper, first, last, total, u):
    """Inverse-CDF draw of a normal score in a union of intervals, from one uniform."""
    a = b = 0.0
    for k in range(first, last):
        a, b = (lower[k] - mu) / sigma, (upper[k] - mu) / sigma
        if last - first > 1:
            share = math.exp(log_mass(a, b) - total)
            if u >= share and k < last - 1:
                u -= share
                continue
            u = u / share if share > 0.0 else 0.5
        break
    return draw(a, b, min(max(u, SMALLEST_UNIFORM), 1.0 - SMALLEST_UNIFORM))


@njit(**KERNEL)
def normal_distances(z):
    """Distances of scores from the standard normal: Anderson and Darling's A², Kolmogorov's D."""
    z = np.sort(z)
    n = z.size
    total, largest = 0.0, 0.0
    for i in range(n):
        # A² = −n − Σ (2i−1)(log Φ(z_i) + log Φ(−z_{n+1−i}))/n
        p = ndtr(z[i])
        if abs(z[i]) < CLOSE:
            below, above = math.log(p), math.log1p(-p)
        else:
            below, above = log_ndtr(z[i]), log_ndtr(-z[i])
        total += (2 * i + 1) * below + (2 * (n - i) - 1) * above
        largest = max(largest, max((i + 1) / n - p, p - i / n))
    return -n - total / n, largest


@njit(**KERNEL)
def cell_distances(values, start, lower, upper, count, mu, sigma, phases):
    """Return ``normal_distances`` of ``residuals``, averaged over phases."""
    square, largest = 0.0, 0.0
    for phase in phases:
        z = residuals(values, start, lower, upper, count, mu, sigma, phase)
        a, b = normal_distances(z)
        square += a
        largest += b
    return square / phases.size, largest / phases.size
