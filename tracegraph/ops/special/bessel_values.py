"""Bessel functions at the ends of their ranges, else SciPy's.

SciPy rounds the phase of those of the first and second kind: at a million they are 5e-11 off. From
1000 on they are Hankel's asymptotic expansion, with the sine and cosine of x itself.
"""

from __future__ import annotations

from functools import partial
from math import pi, sqrt

import numpy as np

from tracegraph.ops.special.by_scipy import Array, by_scipy, horner, mended

_j0, _j1, _y0, _y1 = map(by_scipy, ("j0", "j1", "y0", "y1"))
_i0e, _i1e = map(by_scipy, ("i0e", "i1e"))


_FAR = 1000.0
_TERMS = 8


def _factors(order: int) -> list[float]:
    found = [1.0]
    for k in range(1, _TERMS):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


_FACTORS = [_factors(0), _factors(1)]


def _far(order: int, second: bool, x: Array) -> Array:
    inverse = 1 / x
    square = -inverse * inverse
    even = horner(_FACTORS[order][::2], square)
    odd = inverse * horner(_FACTORS[order][1::2], square)
    sine, cosine = np.sin(x), np.cos(x)
    in_phase, across = (sine - cosine, -sine - cosine) if order else (sine + cosine, sine - cosine)
    wave = even * across + odd * in_phase if second else even * in_phase - odd * across
    return np.asarray(wave / np.sqrt(x) / sqrt(pi))


def _from_0(order: int, second: bool, x: Array) -> Array:
    """A function for x from 0, or NaN."""
    far = x >= _FAR
    if not far.any():
        return _NEAR[order, second](x)
    found = mended(np.zeros_like(x), ~far, _NEAR[order, second], x)
    return mended(found, far & np.isfinite(x), partial(_far, order, second), x)


_NEAR = {(0, False): _j0, (1, False): _j1, (0, True): _y0, (1, True): _y1}


def j0(x: Array) -> Array:
    """J0(x), which is even."""
    return _from_0(0, False, np.abs(x))


def j1(x: Array) -> Array:
    """J1(x), which is odd; exact where SciPy's is not, below 1e-307."""
    found = _from_0(1, False, np.abs(x)) * np.copysign(1.0, x)
    return np.where(np.abs(x) < 1e-9, 0.5 * x, found)


def y0(x: Array) -> Array:
    """Y0(x); NaN below 0."""
    return _from_0(0, True, x)


def y1(x: Array) -> Array:
    """Y1(x); NaN below 0."""
    return _from_0(1, True, x)


def _grown(scaled: Array, x: Array) -> Array:
    """exp(x) times a scaled function, whose product may be finite where exp(x) is not."""
    half = np.exp(np.minimum(x, 1500.0) / 2)
    return np.where(np.isinf(x), x, half * scaled * half)


def i0(x: Array) -> Array:
    """I0(x)."""
    return _grown(_i0e(x), np.abs(x))


def i1e(x: Array) -> Array:
    """exp(-|x|) I1(x)."""
    return np.copysign(_i1e(np.abs(x)), x)


def i1(x: Array) -> Array:
    """I1(x)."""
    return np.copysign(_grown(_i1e(np.abs(x)), np.abs(x)), x)
