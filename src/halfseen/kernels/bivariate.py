"""The bivariate normal on products of intervals: mass, its ρ-derivative, moments to order 4."""

import math

import numpy as np

from halfseen.kernels import INNER, njit
from halfseen.kernels.quadrature import NODES_24, NODES_48, WEIGHTS_24, WEIGHTS_48
from halfseen.kernels.univariate import NEGLIGIBLE_DROP, log_mass, moments

# One panel of 24 nodes is exact to rounding up to this correlation; beyond it panels shrink
# geometrically towards |ρ| = 1, where the integrand varies on the scale of cos θ.
ONE_PANEL_RHO = 0.7
TWO_PI = 2.0 * math.pi


@njit(**INNER)
def _angle_integral(h, k, start, stop):
    # ∫ exp(−(h² + k² − 2hk·sin θ) / (2 cos² θ)) dθ; the exponent is rewritten so that nothing
    # cancels as sin θ → ±1.
    total = 0.0
    width = stop - start
    for m in range(NODES_24.size):
        theta = start + width * NODES_24[m]
        s = math.sin(theta)
        c2 = math.cos(theta) ** 2
        if s >= 0.0:
            exponent = 0.5 * (h - k) ** 2 / c2 + h * k / (1.0 + s)
        else:
            exponent = 0.5 * (h + k) ** 2 / c2 - h * k / (1.0 - s)
        total += WEIGHTS_24[m] * math.exp(-exponent)
    return total * width


@njit(**INNER)
def excess(h, k, rho):
    """P(Z₁ ≤ h, Z₂ ≤ k) − Φ(h)Φ(k) at correlation rho, by Plackett's identity.

    The derivative of the bivariate distribution function in ρ is the density at (h, k); with
    r = sin θ its integral from 0 to ρ is smooth.
    """
    if rho == 0.0 or math.isinf(h) or math.isinf(k):
        return 0.0
    stop = math.asin(rho)
    sign = 1.0 if rho > 0.0 else -1.0
    if abs(rho) <= ONE_PANEL_RHO:
        return _angle_integral(h, k, 0.0, stop) / TWO_PI
    edge = math.asin(ONE_PANEL_RHO)
    total = _angle_integral(h, k, 0.0, sign * edge)
    remaining = 0.5 * math.pi - edge
    while edge < abs(stop):
        remaining *= 0.5
        following = min(0.5 * math.pi - remaining, abs(stop))
        total += _angle_integral(h, k, sign * edge, sign * following)
        edge = following
    return total / TWO_PI


@njit(**INNER)
def density_and_slope(h, k, rho):
    """Bivariate standard normal density at (h, k), and its derivative in ρ."""
    v = 1.0 - rho * rho
    density = math.exp(-0.5 * (h * h - 2.0 * rho * h * k + k * k) / v) / (TWO_PI * math.sqrt(v))
    slope = rho / v + (h * k * (1.0 + rho * rho) - rho * (h * h + k * k)) / (v * v)
    return density, density * slope


@njit(**INNER)
def _log_integrand(u, a2, b2, rho, root):
    # log φ-kernel at u plus log P(a2 < Z₂ < b2 | Z₁ = u)
    return -0.5 * u * u + log_mass((a2 - rho * u) / root, (b2 - rho * u) / root)


@njit(**INNER)
def _mode(low, high, a2, b2, rho, root):
    # The integrand is log-concave: ternary search, until its logarithm varies by less than one over
    # what is left. The mode only anchors the scale and the range of the quadrature.
    at_low, at_high = (
        _log_integrand(low, a2, b2, rho, root),
        _log_integrand(high, a2, b2, rho, root),
    )
    for _ in range(200):
        third = (high - low) / 3.0
        left, right = low + third, high - third
        at_left = _log_integrand(left, a2, b2, rho, root)
        at_right = _log_integrand(right, a2, b2, rho, root)
        best = max(max(at_low, at_left), max(at_right, at_high))
        worst = min(min(at_low, at_left), min(at_right, at_high))
        if (best - worst < 1.0 and third < 0.5) or not low < left:
            break
        if at_left < at_right:
            low, at_low = left, at_left
        else:
            high, at_high = right, at_right
    if at_low >= at_high:
        return (low, at_low) if at_low >= at_left else (left, at_left)
    return (high, at_high) if at_high >= at_right else (right, at_right)


@njit(**INNER)
def _reach(mode, end, peak, a2, b2, rho, root):
    # The point between mode and end where the integrand has become negligible, by bisection to five
    # per cent of its distance.
    if peak - _log_integrand(end, a2, b2, rho, root) <= NEGLIGIBLE_DROP:
        return end
    near, far = mode, end
    for _ in range(100):
        middle = 0.5 * (near + far)
        if peak - _log_integrand(middle, a2, b2, rho, root) <= NEGLIGIBLE_DROP:
            near = middle
        else:
            far = middle
        if abs(far - near) < 0.05 * abs(far - mode):
            break
    return far


@njit(**INNER)
def _outer_range(a1, b1, a2, b2, rho, root):
    # Beyond `far`, z₁ can neither hold its own mass nor follow z₂ into its interval.
    far = 60.0
    for limit in (a1, b1, a2, b2):
        if not math.isinf(limit):
            far = max(far, 60.0 + 2.0 * abs(limit))
    low, high = max(a1, -far), min(b1, far)
    mode, peak = _mode(low, high, a2, b2, rho, root)
    start = _reach(mode, low, peak, a2, b2, rho, root)
    return start, _reach(mode, high, peak, a2, b2, rho, root), peak


@njit(**INNER)
def _panels(start, stop, rho, root):
    # 48 nodes resolve about ten times the width over which P(y | x) changes.
    if abs(rho) <= 0.1:
        return 1
    # (A limit may be so far away that the number of panels would be no integer.)
    return 1 + int(min(63.0, (stop - start) * abs(rho) / (10.0 * root)))


@njit(**INNER)
def outer_nodes(a1, b1, a2, b2, rho):
    """Nodes and weights for Z₁ on a rectangle, and the peak of the log of the integrand.

    The integrand is exp(−u²/2) times the mass of Z₂ in (a2, b2) given Z₁ = u.
    """
    root = math.sqrt(1.0 - rho * rho)
    start, stop, peak = _outer_range(a1, b1, a2, b2, rho, root)
    panels = _panels(start, stop, rho, root)
    width = (stop - start) / panels
    node, weight = np.empty(panels * NODES_48.size), np.empty(panels * NODES_48.size)
    for panel in range(panels):
        for k in range(NODES_48.size):
            node[panel * NODES_48.size + k] = start + width * (panel + NODES_48[k])
            weight[panel * NODES_48.size + k] = width * WEIGHTS_48[k]
    return node, weight, peak


@njit(**INNER)
def rectangle_log_mass(a1, b1, a2, b2, rho):
    """Log P(a1 < Z₁ < b1, a2 < Z₂ < b2) at correlation rho, with all its digits however small."""
    if not (a1 < b1 and a2 < b2):
        return -math.inf
    root = math.sqrt(1.0 - rho * rho)
    start, stop, peak = _outer_range(a1, b1, a2, b2, rho, root)
    panels = _panels(start, stop, rho, root)
    width = (stop - start) / panels
    total = 0.0
    for panel in range(panels):
        for k in range(NODES_48.size):
            u = start + width * (panel + NODES_48[k])
            total += WEIGHTS_48[k] * math.exp(_log_integrand(u, a2, b2, rho, root) - peak)
    return math.log(total * width) + peak - 0.5 * math.log(TWO_PI)


@njit(**INNER)
def rectangle_moments(mu, sigma, rho, lower, upper, out):
    """Raw moments of a bivariate normal restricted to a rectangle; returns the log-mass.

    Quadrature over the first coordinate, closed conditional over the second. ``out[a, b]`` becomes
    E[x^a y^b] for a + b <= 4, and 0 elsewhere.
    """
    out[:, :] = 0.0
    root = math.sqrt(1.0 - rho * rho)
    a1, b1 = (lower[0] - mu[0]) / sigma[0], (upper[0] - mu[0]) / sigma[0]
    a2, b2 = (lower[1] - mu[1]) / sigma[1], (upper[1] - mu[1]) / sigma[1]
    if not (a1 < b1 and a2 < b2):
        return -math.inf
    start, stop, peak = _outer_range(a1, b1, a2, b2, rho, root)
    panels = _panels(start, stop, rho, root)
    inner = np.empty(5)
    width = (stop - start) / panels
    for panel in range(panels):
        for k in range(NODES_48.size):
            u = start + width * (panel + NODES_48[k])
            x = mu[0] + sigma[0] * u
            log_inner = moments(
                mu[1] + sigma[1] * rho * u, sigma[1] * root, lower[1], upper[1], inner
            )
            power = WEIGHTS_48[k] * math.exp(-0.5 * u * u + log_inner - peak)
            for a in range(5):
                for b in range(5 - a):
                    out[a, b] += power * inner[b]
                power *= x
    total = out[0, 0]
    for a in range(5):
        for b in range(5 - a):
            out[a, b] /= total
    return math.log(total * width) + peak - 0.5 * math.log(TWO_PI)
