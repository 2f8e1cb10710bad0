"""The normal distribution, whose tails have all digits, and inverses at the ends of their ranges.

SciPy rounds the square of x before it takes the exponential: the error of ndtr(-34) is 1,500 ulp.
By SciPy's erfcx and an exponential of an exact square it is 4.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from tracegraph.ops.special.by_scipy import Array, by_scipy, mended

_erf, _erfcx = by_scipy("erf"), by_scipy("erfcx")
_erfinv, _erfcinv = by_scipy("erfinv"), by_scipy("erfcinv")

_LEAST = 1e-300


def square_exponential(x: Array, sign: float) -> Array:
    """exp(sign x²), without the error that rounding x² to 53 bits makes.

    x is split into its upper 26 bits, whose square is exact, and the rest.
    """
    x = np.clip(x, -40.0, 40.0)  # beyond, the result has overflowed or is zero
    high = (x.view(np.int64) & ~np.int64(0x7FFFFFF)).view(np.float64)
    return np.asarray(np.exp(sign * high * high) * np.exp(sign * ((x - high) * (x + high))))


def erfinv(y: Array) -> Array:
    """The inverse of erf; NaN outside of -1 to 1."""
    return np.copysign(_erfinv(np.abs(y)), y)


def erfcinv(z: Array) -> Array:
    """The inverse of erfc; NaN outside of 0 to 2."""
    found = _erfcinv(z) + 0.0  # SciPy has -0.0 at 1
    return mended(found, (z > 0) & (z < _LEAST), _erfcinv_of_least, z)


def _erfcinv_of_least(z: Array) -> Array:
    """Newton's iteration for the logarithm of erfc; SciPy is infinite at 5e-324."""
    x = np.full_like(z, _erfcinv(np.asarray(_LEAST)))
    for _ in range(4):
        scaled = _erfcx(x)
        x = x + (np.log(scaled) - x * x - np.log(z)) * scaled * (sqrt(pi) / 2)
    return x


def ndtri(p: Array) -> Array:
    """The inverse of ndtr; NaN outside of 0 to 1."""
    return 0.0 - sqrt(2) * erfcinv(2 * p)


def _normal_tail(x: Array) -> Array:
    """The probability above x, for x from 0. The rounded x / sqrt(2) is not squared."""
    return np.asarray(0.5 * square_exponential(x, -0.5) * _erfcx(x / sqrt(2)))


def ndtr(x: Array) -> Array:
    """The probability below x."""
    tail = _normal_tail(np.abs(x))
    near = 0.5 + 0.5 * _erf(x / sqrt(2))
    return np.where(np.abs(x) < 0.7, near, np.where(x < 0, tail, 1 - tail))


def log_ndtr(x: Array) -> Array:
    """The logarithm of ndtr, also where that is zero."""
    low = np.log(0.5 * _erfcx(-np.minimum(x, 0.0) / sqrt(2))) - 0.5 * x * x
    high = np.log1p(-_normal_tail(np.maximum(x, 0.0)))
    return np.where(x < -1, low, np.where(x < 0, np.log(ndtr(x)), high))
