"""Bessel functions of the first and second kind, of orders 0 and 1.

Below 1 the power series, from 25 on Hankel's asymptotic expansion, and between them Miller's
backward recurrence with Neumann's series. The error is some 1e-15 of the amplitude, or of the
value if that is larger.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, log, pi, sqrt
from typing import Any

import numpy as np

from tracegraph.ops.special.by_numpy.gamma import EULER, horner
from tracegraph.ops.special.by_numpy.scipy_if_there import scipy_if_there

Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]

_TERMS = 12
_FIRST = 70
"""The order from which the recurrence goes down: J70(25) is 1e-23 of the amplitude."""

_HARMONIC = [sum(1 / j for j in range(1, k + 1)) for k in range(_TERMS + 1)]


def _near(order: int, x: Array) -> Pair:
    """By the power series, from 0 to 1."""
    half = x / 2
    square = half * half
    factors = [(-1) ** k / (factorial(k) * factorial(k + order)) for k in range(_TERMS)]
    first = half**order * horner(factors, square)
    sums = [_HARMONIC[k] + _HARMONIC[k + order] - 2 * EULER for k in range(_TERMS)]
    series = half**order * horner([c * s for c, s in zip(factors, sums, strict=True)], square)
    second = (2 * (np.log(x) - log(2)) * first - series) / pi
    return first, second - 2 / (pi * x) if order else second


def _middle(order: int, x: Array) -> Pair:
    """By the recurrence J(k - 1) = 2 k / x J(k) - J(k + 1), from 1 to 25."""
    above, here = np.zeros_like(x), np.full_like(x, 1e-250)
    total = np.zeros_like(x)  # J0 + 2 J2 + 2 J4 + … is 1
    neumann = np.zeros_like(x)
    first = here
    for k in range(_FIRST, -1, -1):
        if k == order:
            first = here
        if k % 2 == 0:
            total = total + (2 if k else 1) * here
        if k % 2 == order and k > order:
            j = k // 2
            weight = (2 * j + 1) / (2 * j * (j + 1)) if order else 1 / j
            neumann = neumann - (-1) ** j * weight * here
        above, here = here, 2 * k / x * here - above
    first = first / total
    second = 2 / pi * (np.log(x / 2) + EULER - order) * first + 4 / pi * neumann / total
    return first, second - 2 / (pi * x) * (above / total) if order else second


def _far(order: int, x: Array) -> Pair:
    """By the asymptotic expansion, from 25."""
    factors = [1.0]
    for k in range(1, 26):
        factors.append(factors[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    inverse = 1 / x
    square = -inverse * inverse
    even, odd = horner(factors[::2], square), inverse * horner(factors[1::2], square)
    sine, cosine = np.sin(x), np.cos(x)
    in_phase, across = (sine - cosine, -sine - cosine) if order else (sine + cosine, sine - cosine)
    scale = 1 / np.sqrt(x) / sqrt(pi)
    return scale * (even * in_phase - odd * across), scale * (even * across + odd * in_phase)


def _both(order: int, x: Array) -> Pair:
    """The functions of the first and second kind, for x from 0."""
    near = _near(order, np.minimum(x, 1.0))
    middle = _middle(order, np.clip(x, 1.0, 25.0))
    far = _far(order, np.maximum(x, 25.0))
    found = (
        np.where(x < 1, a, np.where(x < 25, b, c))
        for a, b, c in zip(near, middle, far, strict=True)
    )
    first, second = found
    return first, second


@scipy_if_there("j0")
def _j0_from_0(x: Array) -> Array:
    return _both(0, x)[0]


@scipy_if_there("j1")
def _j1_from_0(x: Array) -> Array:
    return _both(1, x)[0]


@scipy_if_there("y0")
def _y0_from_0(x: Array) -> Array:
    return _both(0, x)[1]


@scipy_if_there("y1")
def _y1_from_0(x: Array) -> Array:
    return _both(1, x)[1]


def j0(x: Array) -> Array:
    """J0(x), which is even."""
    return np.where(np.isinf(x), 0.0, _j0_from_0(np.abs(x)))


def j1(x: Array) -> Array:
    """J1(x), which is odd."""
    found = np.where(np.isinf(x), 0.0, _j1_from_0(np.abs(x))) * np.copysign(1.0, x)
    return np.where(np.abs(x) < 1e-9, 0.5 * x, found)  # exact where SciPy is not, below 1e-307


def _second_kind(from_0: Callable[[Array], Array], x: Array) -> Array:
    found = np.where(x == 0, -np.inf, from_0(np.abs(x)))
    return np.where(x < 0, np.nan, np.where(x == np.inf, 0.0, found))


def y0(x: Array) -> Array:
    """Y0(x); NaN below 0."""
    return _second_kind(_y0_from_0, x)


def y1(x: Array) -> Array:
    """Y1(x); NaN below 0."""
    return _second_kind(_y1_from_0, x)
