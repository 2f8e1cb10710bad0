"""Bessel functions at the ends of their ranges, else SciPy's.

SciPy rounds the phase of those of the first and second kind: at a million they are 5e-11 off. From
100 on they are Hankel's asymptotic expansion, with the sine and cosine of x itself.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from tracegraph.ops.special.by_scipy import Array, by_scipy, horner

_j0, _j1, _y0, _y1 = map(by_scipy, ("j0", "j1", "y0", "y1"))
_i0e, _i1e = map(by_scipy, ("i0e", "i1e"))


_FAR = 100.0
_TERMS = 12


def _factors(order: int) -> list[float]:
    found = [1.0]
    for k in range(1, _TERMS):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


_FACTORS = [_factors(0), _factors(1)]


def _with_far(order: int, second: bool, x: Array, near: Array) -> Array:
    """A function of |x| in place of `near` where that is large; 0 at infinity."""
    size = np.abs(x)
    far = (size >= _FAR) & np.isfinite(size)
    if not far.any():
        return np.where(np.isinf(size), 0.0, near)
    large = np.where(far, size, _FAR)
    inverse = 1 / large
    square = -inverse * inverse
    even = horner(_FACTORS[order][::2], square)
    odd = inverse * horner(_FACTORS[order][1::2], square)
    sine, cosine = np.sin(large), np.cos(large)
    in_phase, across = (sine - cosine, -sine - cosine) if order else (sine + cosine, sine - cosine)
    wave = even * across + odd * in_phase if second else even * in_phase - odd * across
    found = wave / np.sqrt(large) / sqrt(pi)
    return np.where(far, found, np.where(np.isinf(size), 0.0, near))


def j0(x: Array) -> Array:
    """J0(x), which is even."""
    return _with_far(0, False, x, _j0(x))


def j1(x: Array) -> Array:
    """J1(x), which is odd; exact where SciPy's is not, below 1e-307."""
    found = _with_far(1, False, x, _j1(np.abs(x)))
    return np.where(np.abs(x) < 1e-9, 0.5 * x, found * np.copysign(1.0, x))


def _second_kind(order: int, x: Array, found: Array) -> Array:
    return np.where(x < 0, np.nan, _with_far(order, True, x, found))


def y0(x: Array) -> Array:
    """Y0(x); NaN below 0."""
    return _second_kind(0, x, _y0(x))


def y1(x: Array) -> Array:
    """Y1(x); NaN below 0."""
    return _second_kind(1, x, _y1(x))


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
