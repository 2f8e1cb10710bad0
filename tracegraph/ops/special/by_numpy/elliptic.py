"""Complete elliptic integrals by the arithmetic-geometric mean, within 16 ulp: DLMF 19.8."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from tracegraph.ops.special.by_numpy.scipy_if_there import scipy_if_there

Array = np.ndarray[Any, Any]

_STEPS = 16
"""The logarithm of the ratio of both means is halved by each, and then squared."""


@scipy_if_there("ellipk")
def ellipk(m: Array) -> Array:
    """The complete elliptic integral of the first kind; NaN above 1."""
    a, b = np.ones_like(m), np.sqrt(1 - m)
    for _ in range(_STEPS):
        a, b = (a + b) / 2, np.sqrt(a * b)
    found = pi / (a + b)
    return np.where(m == 1, np.inf, np.where(np.isneginf(m), 0.0, found))


@scipy_if_there("ellipe")
def ellipe(m: Array) -> Array:
    """The complete elliptic integral of the second kind; NaN above 1.

    Of negative m by that of m / (m - 1). Near 1, where the mean cancels, by a series.
    """
    below = m < 0
    rest = np.where(below, 1 / (1 - m), 1 - m)
    square = np.where(below, -m / (1 - m), m)
    a, b, total, weight = np.ones_like(m), np.sqrt(rest), square / 2, 0.5
    half = square / (2 * (1 + b))
    for _ in range(_STEPS):
        a, b = (a + b) / 2, np.sqrt(a * b)
        weight = 2 * weight
        total = total + weight * half * half
        half = half * half / (2 * (a + b))
    found = pi / (a + b) * (1 - total)
    small = np.clip(rest, 1e-320, 1e-6)
    logarithm = np.log(4 / np.sqrt(small))
    series = 1 + small * ((logarithm - 0.5) / 2 + 3 / 16 * small * (logarithm - 13 / 12))
    found = np.where(rest < 1e-6, np.where(rest == 0, 1.0, series), found)
    found = np.where(below, np.sqrt(1 - m) * found, found)
    return np.where(np.isneginf(m), np.inf, np.where(m > 1, np.nan, found))
