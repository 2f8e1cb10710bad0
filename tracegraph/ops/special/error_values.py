"""The complementary error function and the normal distribution where SciPy's lose digits in tails.

SciPy rounds the square of x before it takes the exponential: the error of erfc(23) is 300 ulp, that
of ndtr(-34) 1,500. By SciPy's erfcx and an exponential of an exact square it is 4.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from tracegraph.ops.special.by_scipy import Array, by_scipy

_erf, _erfc, _erfcx = by_scipy("erf"), by_scipy("erfc"), by_scipy("erfcx")
_erfinv, _erfcinv = by_scipy("erfinv"), by_scipy("erfcinv")

_LEAST = 1e-300


def square_exponential(x: Array, sign: float) -> Array:
    """exp(sign x²), without the error that rounding x² to 53 bits makes.

    x is split into its upper 26 bits, whose square is exact, and the rest.
    """
    x = np.clip(x, -40.0, 40.0)  # beyond, the result has overflowed or is zero
    high = (x.view(np.int64) & ~np.int64(0x7FFFFFF)).view(np.float64)
    return np.asarray(np.exp(sign * high * high) * np.exp(sign * ((x - high) * (x + high))))


def erfc(x: Array) -> Array:
    """1 - erf(x)."""
    tail = np.maximum(x, 1.0)
    return np.where(x > 1, square_exponential(tail, -1) * _erfcx(tail), _erfc(x))


def erfcx(x: Array) -> Array:
    """exp(x²) erfc(x)."""
    low = np.minimum(x, 0.0)
    return np.where(x < -1, square_exponential(low, 1) * (1 + _erf(-low)), _erfcx(x))


def erfinv(y: Array) -> Array:
    """The inverse of erf; NaN outside of -1 to 1."""
    return np.copysign(_erfinv(np.abs(y)), y)


def erfcinv(z: Array) -> Array:
    """The inverse of erfc; NaN outside of 0 to 2."""
    least = (z > 0) & (z < _LEAST)  # SciPy is infinite at 5e-324
    found = _erfcinv(np.where(least, _LEAST, z)) + 0.0  # SciPy has -0.0 at 1
    if not least.any():
        return found
    x, logarithm = found, np.log(np.where(least, z, _LEAST))
    for _ in range(4):  # Newton's iteration for the logarithm of erfc, from that of the least
        scaled = _erfcx(np.where(least, x, 1.0))
        x = x + (np.log(scaled) - x * x - logarithm) * scaled * (sqrt(pi) / 2)
    return np.where(least, x, found)


def _normal_tail(x: Array) -> Array:
    """The probability above x, for x from 0. The rounded x / sqrt(2) is not squared."""
    return np.asarray(0.5 * square_exponential(x, -0.5) * _erfcx(x / sqrt(2)))


def ndtr(x: Array) -> Array:
    """The probability below x."""
    tail = _normal_tail(np.abs(x))
    near = 0.5 + 0.5 * _erf(x / sqrt(2))
    return np.where(np.abs(x) < 0.7, near, np.where(x < 0, tail, 1 - tail))


def ndtri(p: Array) -> Array:
    """The inverse of ndtr; NaN outside of 0 to 1."""
    return 0.0 - sqrt(2) * erfcinv(2 * p)


def log_ndtr(x: Array) -> Array:
    """The logarithm of ndtr, also where that is zero."""
    low = np.log(0.5 * _erfcx(-np.minimum(x, 0.0) / sqrt(2))) - 0.5 * x * x
    high = np.log1p(-_normal_tail(np.maximum(x, 0.0)))
    return np.where(x < -1, low, np.where(x < 0, np.log(ndtr(x)), high))
