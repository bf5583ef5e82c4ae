"""Φ and Φ⁻¹ as straight lines: no branch and no call, so that loops over arrays run in vector lanes.

A loop that calls SciPy's functions takes one number at a time. These take four or eight at once, at a
fifth of the price. Φ(−t) is exp(−t²/2) times a smooth function of t, and Φ⁻¹(p) a smooth function of
√(−2 log 2p): each is a polynomial in (t − c)/(t + c), interpolated here from SciPy's values.

Loops over them must be compiled with ``LANES``, or ``INNER_LANES``. LLVM puts them into the loops:
Numba's own inlining would have it type and translate them anew in each.
"""

import math
from decimal import Decimal

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.polynomial import Chebyshev, Polynomial
from scipy import special

from halfseen.kernels import INNER, KERNEL, njit
from halfseen.kernels.univariate import INVERSE_ROOT_TWO_PI

# Products and sums may be fused; nothing else may change.
LANES = {**KERNEL, "fastmath": {"contract"}}
INNER_LANES = {**INNER, "fastmath": {"contract"}}
# For a 0 that is written out Numba would compile a kernel once more.
FIRST = np.int64(0)
# The larger part of log 2 has so few digits that its multiples are exact.
LOG_TWO = math.log(2.0)
LOG_TWO_HIGH = round(LOG_TWO * 2.0**40) / 2.0**40
LOG_TWO_LOW = float(Decimal(2).ln() - Decimal(LOG_TWO_HIGH))
PER_LOG_TWO = 1.0 / LOG_TWO
# A number that is added to this has its integer part, plus the bias of exponents, in its last bits.
ROUND = 1.5 * 2.0**52 + 1023.0
# Where exponents are, and numbers whose bits help to take one apart.
EXPONENT, EXPONENTS = np.uint64(52), np.uint64(0xFFF << 52)
HALF_ROOT, BIAS = np.float64(math.sqrt(0.5)).view(np.uint64), np.uint64(1024 << 52)
WHOLE = np.float64(2.0**52).view(np.uint64)
# Polynomials are so many in a power of their argument, each a chain of products of its own.
CHAINS = 4
# Arguments up to this, the c of Φ and that of Φ⁻¹, and the degree: relative errors stay below 1e-14 (but
# for that of the exponent) and 1e-9.
FURTHEST, CENTRE, OTHER_CENTRE, DEGREE = 37.0, 3.0, 2.0, 21


def _in_chains(coefficients):
    # Every fourth coefficient from the first, the second …, each the highest power first.
    return tuple(tuple(coefficients[k::CHAINS][::-1]) for k in range(CHAINS))


def _interpolated(function, c):
    def of_ratio(s):
        return function(c * (1.0 + s) / (1.0 - s))

    domain = [-1.0, (FURTHEST - c) / (FURTHEST + c)]
    found = Chebyshev.interpolate(of_ratio, DEGREE, domain=domain).convert(kind=Polynomial)
    return _in_chains([float(value) for value in found.coef])


def _scaled_tail(t):
    return 0.5 * special.erfcx(t / math.sqrt(2.0)) * (t + CENTRE)


def _scaled_quantile(t):
    return -special.ndtri_exp(-0.5 * t * t - LOG_TWO) / (t + OTHER_CENTRE)


# To the last digit: exp where |x| <= log(2)/2, and 2 atanh(s)/s in s² <= 0.03.
EXP = _in_chains([1.0 / math.factorial(k) for k in range(13)])
LOG = _in_chains([2.0 / (2 * k + 1) for k in range(10)])
MILLS = _interpolated(_scaled_tail, CENTRE)
QUANTILE = _interpolated(_scaled_quantile, OTHER_CENTRE)


@intrinsic
def _bits(_, x):  # pragma: no cover
    def build(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), build


@intrinsic
def _number(_, x):  # pragma: no cover
    def build(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.uint64), build


@njit(**INNER_LANES)
def _horner(coefficients, s):
    total = coefficients[0]
    for k in range(1, len(coefficients)):
        total = total * s + coefficients[k]
    return total


@njit(forceinline=True, **INNER_LANES)
def _polynomial(chains, s):
    square = s * s
    fourth = square * square
    low = _horner(chains[0], fourth) + s * _horner(chains[1], fourth)
    high = _horner(chains[2], fourth) + s * _horner(chains[3], fourth)
    return low + square * high


@njit(forceinline=True, **INNER_LANES)
def exp_lane(x):
    """Exp(x) for x from -700 to 700."""
    shifted = x * PER_LOG_TWO + ROUND
    k = shifted - ROUND
    rest = (x - k * LOG_TWO_HIGH) - k * LOG_TWO_LOW
    return _polynomial(EXP, rest) * _number(_bits(shifted) << EXPONENT)


@njit(forceinline=True, **LANES)
def parts_lane(x):
    """Return k and z, between √½ and √2, with x = z 2ᵏ, for normal numbers x from 0 to 2."""
    bits = _bits(x)
    place = bits - HALF_ROOT + BIAS
    k = _number((place >> EXPONENT) | WHOLE) - (2.0**52 + 1024.0)
    return k, _number(bits - ((place - BIAS) & EXPONENTS))


@njit(forceinline=True, **INNER_LANES)
def log_lane(x):
    """Log(x) for normal numbers x from 0 to 2."""
    k, z = parts_lane(x)
    s = (z - 1.0) / (z + 1.0)
    return k * LOG_TWO + s * _polynomial(LOG, s * s)


@njit(forceinline=True, **INNER_LANES)
def _mills(t):
    # Φ(−t) exp(t²/2), for t from 0 to the furthest.
    inverse = 1.0 / (t + CENTRE)
    s = (t - CENTRE) * inverse
    return inverse * _polynomial(MILLS, s)


@njit(forceinline=True, **LANES)
def ndtr_lane(x):
    """Φ(x); Φ(−37), which is below 1e-299, where x is less than that."""
    t = abs(x)
    t = t if t < FURTHEST else FURTHEST
    tail = exp_lane(-0.5 * t * t) * _mills(t)
    return 1.0 - tail if x > 0.0 else tail


@njit(forceinline=True, **INNER_LANES)
def hazard_lane(x):
    """φ(x)/Φ(x), for x from -37."""
    t = abs(x)
    t = t if t < FURTHEST else FURTHEST
    density, mills = exp_lane(-0.5 * t * t), _mills(t)
    return INVERSE_ROOT_TWO_PI * (density / (1.0 - density * mills) if x > 0.0 else 1.0 / mills)


@njit(forceinline=True, **LANES)
def ndtri_lane(p):
    """Φ⁻¹(p), for p from 1e-290 to 1 less a rounding error."""
    q = 1.0 - p
    q = p if p < q else q
    square = -2.0 * log_lane(2.0 * q)
    t = math.sqrt(square if square > 0.0 else 0.0)
    s = (t - OTHER_CENTRE) / (t + OTHER_CENTRE)
    y = (t + OTHER_CENTRE) * _polynomial(QUANTILE, s)
    return y if p > 0.5 else -y


@njit(**INNER_LANES)
def add_rows(factors, A, first, out):
    """Add Σ_k factors[k] A[k, first + j] to each out[j], four rows at a time."""
    count, whole = factors.size, factors.size - factors.size % 4
    for k in range(0, whole, 4):
        f0, f1, f2, f3 = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        for j in range(out.size):
            near = f0 * A[k, first + j] + f1 * A[k + 1, first + j]
            far = f2 * A[k + 2, first + j] + f3 * A[k + 3, first + j]
            out[j] += near + far
    for k in range(whole, count):
        for j in range(out.size):
            out[j] += factors[k] * A[k, first + j]
