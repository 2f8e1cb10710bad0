"""The incomplete beta function.

Within 1e-13 of the result, times the exponents of x and 1 - x where that is tiny. If parameters are
large the function is steep, and the rounding of 1 - x counts as much as the slope makes of it. Near
1, with b far below 1, the error is some ulp of 1. DLMF 8.17.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from tracegraph.ops.special.by_numpy.gamma import betaln, stirling
from tracegraph.ops.special.by_numpy.incomplete_gamma import EPSILON, MANY, log1p_less
from tracegraph.ops.special.by_numpy.scipy_if_there import scipy_if_there

Array = np.ndarray[Any, Any]


def _beta_term(a: Array, b: Array, x: Array, y: Array) -> Array:
    """x**a y**b / beta(a, b), where y is 1 - x: of large parameters by logarithms near 0."""
    direct = np.exp(a * np.log(x) + b * np.where(x < 0.5, np.log1p(-x), np.log(y)) - betaln(a, b))
    large_a, large_b = np.maximum(a, 10.0), np.maximum(b, 10.0)
    both = large_a + large_b
    distance = x * large_b - y * large_a
    exponent = _part(large_a, distance, x * both) + _part(large_b, -distance, y * both)
    exponent = exponent + stirling(both) - stirling(large_a) - stirling(large_b)
    far = np.exp(exponent) * np.sqrt(large_a / both) * np.sqrt(large_b) / sqrt(2 * pi)
    return np.asarray(np.where((a >= 10) & (b >= 10), far, direct))


def _part(a: Array, distance: Array, moved: Array) -> Array:
    """A times log1p(u) - u, where u is distance / a, and 1 + u is moved / a."""
    u = distance / a
    far = np.log(moved / a) - u
    return np.asarray(a * np.where(np.abs(u) < 0.5, log1p_less(u), far))


def _beta_series(a: Array, b: Array, x: Array) -> Array:
    """For b up to 1 and x up to 0.95, in powers of x."""
    total, power = 1 / a, np.ones_like(x)
    for n in range(1, 800):
        power = power * ((n - b) / n * x)
        total = total + power / (a + n)
    logarithm = a * np.log(x) - betaln(a, b)
    return np.asarray(np.exp(logarithm) * total)


def _beta_fraction(a: Array, b: Array, x: Array) -> Array:
    """The fraction of DLMF 8.17.22 by Lentz's method, for x up to (a + 1) / (a + b + 2)."""
    c, d = np.ones_like(x), 1 / _apart(1 - (a + b) * x / (a + 1))
    found, unfinished = d, np.ones_like(x, bool)
    for m in range(1, MANY):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        c, d = _apart(1 + even / c), 1 / _apart(1 + even * d)
        found = np.where(unfinished, found * (c * d), found)
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        c, d = _apart(1 + odd / c), 1 / _apart(1 + odd * d)
        found = np.where(unfinished, found * (c * d), found)
        unfinished = unfinished & (np.abs(c * d - 1) > 4 * EPSILON)
        if not unfinished.any():
            break
    return found


def _apart(x: Array) -> Array:
    """X, or a number near 0 in its place."""
    return np.where(np.abs(x) < 1e-300, 1e-300, x)


@scipy_if_there("betainc")
def betainc(a: Array, b: Array, x: Array) -> Array:
    """The integral of t**(a - 1) (1 - t)**(b - 1) from 0 to x, over beta(a, b)."""
    a, b, x = map(np.asarray, np.broadcast_arrays(a, b, x))
    plain = (a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b) & (x > 0) & (x < 1)
    p, q, z = np.where(plain, a, 1.0), np.where(plain, b, 1.0), np.where(plain, x, 0.5)
    by_series = (q <= 1) & (z <= 0.95)
    series = _beta_series(p, np.where(by_series, q, 1.0), np.where(by_series, z, 0.5))
    swapped = z * (p + q + 2) > p + 1
    first, second = np.where(swapped, q, p), np.where(swapped, p, q)
    near, other = np.where(swapped, 1 - z, z), np.where(swapped, z, 1 - z)
    part = _beta_term(first, second, near, other) * _beta_fraction(first, second, near) / first
    found = np.where(by_series, series, np.where(swapped, 1 - part, part))
    found = np.where((a == 0) | np.isinf(b), 1.0, np.where((b == 0) | np.isinf(a), 0.0, found))
    found = np.where((x == 0) | (x == 1), x, found)
    nothing = ~((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)) | ((a == 0) & (b == 0))
    return np.where(nothing | (np.isinf(a) & np.isinf(b)), np.nan, found)
