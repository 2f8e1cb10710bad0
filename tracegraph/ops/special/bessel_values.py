"""Bessel functions of the first and second kind at the ends of their ranges, else SciPy's."""

from __future__ import annotations

import numpy as np

from tracegraph.ops.special.by_scipy import Array, by_scipy

_j0, _j1, _y0, _y1 = map(by_scipy, ("j0", "j1", "y0", "y1"))
_i0e, _i1, _i1e = map(by_scipy, ("i0e", "i1", "i1e"))


def j0(x: Array) -> Array:
    """J0(x), which is even."""
    return np.where(np.isinf(x), 0.0, _j0(x))


def j1(x: Array) -> Array:
    """J1(x), which is odd; exact where SciPy's is not, below 1e-307."""
    found = np.where(np.isinf(x), np.copysign(0.0, x), _j1(x))
    return np.where(np.abs(x) < 1e-9, 0.5 * x, found)


def y0(x: Array) -> Array:
    """Y0(x); NaN below 0."""
    return np.where(x == np.inf, 0.0, _y0(x))


def y1(x: Array) -> Array:
    """Y1(x); NaN below 0."""
    return np.where(x == np.inf, 0.0, _y1(x))


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
