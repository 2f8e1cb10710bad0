"""The error function, its complements and their inverses, within 4 ulp.

erfcx is Shepherd and Laframboise's expansion (Mathematics of Computation 36, 1981) of
(1 + 2x) erfcx(x) in Chebyshev polynomials of (x - K) / (x + K), for all x from 0. The coefficients
were computed with 60 digits, at 64 nodes. Inverses are an estimate, and Halley's iteration.
"""

from __future__ import annotations

from math import factorial, pi, sqrt
from typing import Any

import numpy as np

from tracegraph.ops.special.by_numpy.scipy_if_there import scipy_if_there

Array = np.ndarray[Any, Any]

_TWO_BY_ROOT_PI = 2 / sqrt(pi)

_SERIES = [_TWO_BY_ROOT_PI * (-1) ** k / (factorial(k) * (2 * k + 1)) for k in range(20)]
"""Of erf(x) / x in powers of x², which is below 1."""

_K = 3.75
_EXPANSION = (
    *(1.17757893456740175, -0.00459005458064647733, -0.0842491333665179156),
    *(0.0592099399981918905, -0.0266586684353057523, 0.00907499767070526509),
    *(-0.00241316354041760819, 0.000490775836525808632, -6.91697330250120637e-5),
    *(4.13902798607301017e-6, 7.74038306619849067e-7, -2.18864010492343957e-7),
    *(1.07649994656709104e-8, 4.5219598112182869e-9, -7.75440020883135111e-10),
    *(-6.31808834088668449e-11, 2.8687950109306699e-11, 1.94558685457773472e-13),
    *(-9.65469674843343891e-13, 3.25254814814873984e-14, 3.34781194828680539e-14),
    *(-1.8645628804193131e-15, -1.25079505306886471e-15, 7.41823525662404346e-17),
    *(5.06814890479611132e-17,),
)


def square_exponential(x: Array, sign: float) -> Array:
    """exp(sign x²), without the error that rounding x² to 53 bits makes.

    x is split into its upper 26 bits, whose square is exact, and the rest.
    """
    x = np.clip(x, -40.0, 40.0)  # beyond, the result has overflowed or is zero
    high = (x.view(np.int64) & ~np.int64(0x7FFFFFF)).view(np.float64)
    return np.asarray(np.exp(sign * high * high) * np.exp(sign * ((x - high) * (x + high))))


def _polynomial(coefficients: Any, x: Array) -> Array:
    """Horner's rule, the constant coefficient first."""
    found: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        found = found * x + coefficient
    return np.asarray(found)


def _erfcx_from_0(x: Array) -> Array:
    t = 1 - (2 * _K) / (x + _K)
    found = np.polynomial.chebyshev.chebval(t, _EXPANSION) / (1 + 2 * x)
    return np.where(x > 1e8, (_TWO_BY_ROOT_PI / 2) / x, found)


@scipy_if_there("erfcx")
def erfcx(x: Array) -> Array:
    """exp(x²) erfc(x)."""
    found = _erfcx_from_0(np.abs(x))
    return np.where(x < 0, 2 * square_exponential(x, 1) - found, found)


@scipy_if_there("erf")
def erf(x: Array) -> Array:
    """2 / sqrt(pi) times the integral of exp(-t²) from 0 to x."""
    small = x * _polynomial(_SERIES, np.minimum(x * x, 1.0))
    size = np.abs(x)
    large = 1 - square_exponential(size, -1) * _erfcx_from_0(size)
    return np.where(size < 1, small, np.copysign(large, x))


@scipy_if_there("erfc")
def erfc(x: Array) -> Array:
    """1 - erf(x)."""
    size = np.abs(x)
    tail = square_exponential(size, -1) * _erfcx_from_0(size)
    near = 1 - x * _polynomial(_SERIES, np.minimum(x * x, 1.0))
    return np.where(size < 0.5, near, np.where(x < 0, 2 - tail, tail))


def _from_the_tail(z: Array) -> Array:
    """The inverse of erfc from 0 to 0.5.

    The estimate is equation 26.2.23 of Abramowitz and Stegun, within 4.5e-4. Each step of Halley's
    iteration triples the number of digits. The ratio z exp(x²) has the exponent added first, since
    either may leave the range.
    """
    t = np.sqrt(-2 * np.log(z / 2))
    above = _polynomial((2.515517, 0.802853, 0.010328), t)
    below = _polynomial((1.0, 1.432788, 0.189269, 0.001308), t)
    x = np.asarray((t - above / below) / sqrt(2))
    logarithm = np.log(z)
    for _ in range(3):
        step = (_erfcx_from_0(x) - np.exp(x * x + logarithm)) / _TWO_BY_ROOT_PI
        x = x + step / (1 - x * step)
    return np.where(z == 0, np.inf, x)


def _from_the_middle(y: Array) -> Array:
    """The inverse of erf from -0.5 to 0.5, from the first terms of its Taylor series."""
    terms = (1.0, pi / 12, 7 * pi**2 / 480, 127 * pi**3 / 40320)
    x = y * _polynomial(terms, y * y) / _TWO_BY_ROOT_PI
    for _ in range(2):
        rest = x * _polynomial(_SERIES, x * x) - y
        step = -rest * np.exp(x * x) / _TWO_BY_ROOT_PI
        x = x + step / (1 - x * step)
    return np.asarray(x)


def _inverse(y: Array, z: Array) -> Array:
    """The x with erf(x) = y and erfc(x) = z; the smaller one of |y| and min(z, 2 - z) counts."""
    middle = _from_the_middle(np.clip(y, -0.5, 0.5))
    tail = _from_the_tail(np.clip(np.minimum(z, 2 - z), 0, 0.5))
    found = np.where(np.abs(y) <= 0.5, middle, np.copysign(tail, y))
    return np.where((z >= 0) & (z <= 2) & (np.abs(y) <= 1), found, np.nan)


def erfinv(y: Array) -> Array:
    """The inverse of erf; NaN outside of -1 to 1."""
    return np.copysign(_erfinv_from_0(np.abs(y)), y)


@scipy_if_there("erfinv")
def _erfinv_from_0(y: Array) -> Array:
    return _inverse(y, 1 - y)


def erfcinv(z: Array) -> Array:
    """The inverse of erfc; NaN outside of 0 to 2."""
    return _erfcinv(z) + 0.0  # SciPy has -0.0 at 1


@scipy_if_there("erfcinv")
def _erfcinv(z: Array) -> Array:
    return _inverse(1 - z, z)


# the standard normal distribution


def _normal_tail(x: Array) -> Array:
    """The probability above x, for x from 0. The rounded x / sqrt(2) is not squared."""
    return np.asarray(0.5 * square_exponential(x, -0.5) * erfcx(x / sqrt(2)))


def ndtr(x: Array) -> Array:
    """The probability below x."""
    tail = _normal_tail(np.abs(x))
    near = 0.5 + 0.5 * erf(x / sqrt(2))
    return np.where(np.abs(x) < 0.7, near, np.where(x < 0, tail, 1 - tail))


def ndtri(p: Array) -> Array:
    """The inverse of ndtr; NaN outside of 0 to 1."""
    return 0.0 - sqrt(2) * erfcinv(2 * p)


def log_ndtr(x: Array) -> Array:
    """The logarithm of ndtr, also where that is zero."""
    low = np.log(0.5 * erfcx(-np.minimum(x, 0.0) / sqrt(2))) - 0.5 * x * x
    high = np.log1p(-_normal_tail(np.maximum(x, 0.0)))
    return np.where(x < -1, low, np.where(x < 0, np.log(ndtr(x)), high))
