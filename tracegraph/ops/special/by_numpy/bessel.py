"""Modified Bessel functions of the first kind, of orders 0 and 1, within 10 ulp.

Up to 20 the power series, whose terms are all positive; above, Hankel's asymptotic expansion. Both
are written as nested products, so that the ratios of neighbouring terms are all that is stored.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from tracegraph.ops.special.by_numpy.scipy_if_there import scipy_if_there

Array = np.ndarray[Any, Any]

_SPLIT = 20.0
_SERIES_TERMS = 46
_ASYMPTOTIC_TERMS = 34


def _nested(ratios: Any, x: Array) -> Array:
    """1 + r0 x (1 + r1 x (1 + …))."""
    found: Any = 1.0
    for ratio in reversed(ratios):
        found = 1 + (ratio * x) * found
    return np.asarray(found)


def _scaled(order: int, x: Array) -> Array:
    """exp(-x) I(x) for x from 0."""
    small = np.minimum(x, _SPLIT)
    ratios = [1 / (k * (k + order)) for k in range(1, _SERIES_TERMS + 1)]
    series = np.exp(-small) * _nested(ratios, small * small / 4)
    if order:
        series = series * (small / 2)
    large = np.maximum(x, _SPLIT)
    ratios = [((2 * k - 1) ** 2 - 4 * order**2) / (8 * k) for k in range(1, _ASYMPTOTIC_TERMS + 1)]
    expansion = _nested(ratios, 1 / large) / np.sqrt(large) / sqrt(2 * pi)
    return np.where(x < _SPLIT, series, expansion)


def _grown(scaled: Array, x: Array) -> Array:
    """exp(x) times a scaled function, whose product may be finite where exp(x) is not."""
    half = np.exp(np.minimum(x, 1500.0) / 2)
    return np.where(np.isinf(x), x, half * scaled * half)


@scipy_if_there("i0e")
def i0e(x: Array) -> Array:
    """exp(-|x|) I0(x)."""
    return _scaled(0, np.abs(x))


def i1e(x: Array) -> Array:
    """exp(-|x|) I1(x)."""
    return np.copysign(_i1e_from_0(np.abs(x)), x)


@scipy_if_there("i1e")
def _i1e_from_0(x: Array) -> Array:
    return _scaled(1, x)


def i0(x: Array) -> Array:
    """I0(x)."""
    return _grown(i0e(x), np.abs(x))


def i1(x: Array) -> Array:
    """I1(x)."""
    return np.copysign(_grown(_i1e_from_0(np.abs(x)), np.abs(x)), x)
